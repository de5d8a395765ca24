// SPDX-License-Identifier: Apache-2.0
// Numbers of a file's tensors on the host.
#ifndef CLV_ONNX_KNOWN_H
#define CLV_ONNX_KNOWN_H

#include "onnx/import.h"

/** A tensor's numbers, if they are at most so many; NULL: more, of no type of numbers, or no memory. */
const clv__known *clv__known_of(clv__onnx_use *use, const clv__onnx_tensor *data, int64_t most);
/** n numbers as doubles from `first` on; false: the type is none of numbers. */
bool clv__onnx_widen(const clv__onnx_tensor *data, int64_t first, int64_t n, double *out);

#endif
