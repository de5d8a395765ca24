// SPDX-License-Identifier: Apache-2.0
// The two-byte floats on the host: conversions that agree with kernels_cl/common/storage.cl to the bit.
#ifndef CLV_TENSOR_HALF_H
#define CLV_TENSOR_HALF_H

#include "tensor/dtype.h"

/** Exact. */
float clv__f16_to_float(uint16_t stored);
float clv__bf16_to_float(uint16_t stored);
/** The nearest, to even between two; infinite past the largest; a NaN stays one. */
uint16_t clv__f16_of_float(float value);
uint16_t clv__bf16_of_float(float value);

#endif
