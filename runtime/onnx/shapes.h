// SPDX-License-Identifier: Apache-2.0
// What nodes that move numbers say of shapes: as attributes or as inputs that are known, by opset. False after a failure.
#ifndef CLV_ONNX_SHAPES_H
#define CLV_ONNX_SHAPES_H

#include "onnx/import.h"

/** Reshape: 0 is the input's dimension there, one -1 what is left. A first dimension that was exported as the file's own batch is the
 *  batch at hand. */
bool clv__onnx_reshaped(clv__onnx_use *use, const clv_shape *x, clv_shape *out);
bool clv__onnx_squeezed(clv__onnx_use *use, const clv_shape *x, clv_shape *out);
bool clv__onnx_unsqueezed(clv__onnx_use *use, const clv_shape *x, clv_shape *out);
/** Transpose: where each axis comes from. */
bool clv__onnx_transposed(clv__onnx_use *use, int rank, int axes[CLV_MAX_RANK]);

/** A part of an axis: `n` numbers from `start`, `step` apart. */
typedef struct clv__onnx_range {
    int64_t start, step, n;
} clv__onnx_range;
/** Slice: of each axis. */
bool clv__onnx_ranges(clv__onnx_use *use, const clv_shape *x, clv__onnx_range out[CLV_MAX_RANK]);
/** Reductions: which axes are. */
bool clv__onnx_reduced(clv__onnx_use *use, int rank, bool out[CLV_MAX_RANK]);
/** Numbers of an attribute, or of an input where that is how newer opsets have it; -1: neither is there. */
int clv__onnx_list(clv__onnx_use *use, const char *attribute, int input, int64_t *out, int most);

/** In which dimension of its results the samples are, by where they are in its inputs and what the node does. */
void clv__onnx_follow_batch(clv__onnx_use *use);

#endif
