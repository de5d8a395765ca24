// SPDX-License-Identifier: Apache-2.0
// The two-byte floats on the host: conversions that agree with kernels_cl/common/storage.cl to the bit, and elements of any
// dtype as doubles.
#ifndef CLV_TENSOR_HALF_H
#define CLV_TENSOR_HALF_H

#include "cleave/tensor.h"

/** Is it one of the two-byte floats? */
static inline bool clv__is_half(clv_dtype dtype) {
    return dtype == CLV_DTYPE_F16 || dtype == CLV_DTYPE_BF16;
}
static inline bool clv__is_float(clv_dtype dtype) {
    return dtype == CLV_DTYPE_F32 || clv__is_half(dtype);
}

/** Exact. */
float clv__f16_to_float(uint16_t stored);
float clv__bf16_to_float(uint16_t stored);
/** The nearest, to even between two; infinite past the largest; a NaN stays one. */
uint16_t clv__f16_of_float(float value);
uint16_t clv__bf16_of_float(float value);

/** Spacing of a float type's numbers at 1, and its smallest normal number; 0 for integers. */
double clv__dtype_epsilon(clv_dtype dtype);
double clv__dtype_smallest(clv_dtype dtype);

/** n elements of a dtype as doubles; exact, of i64 up to 2^53. */
void clv__elements_widen(clv_dtype dtype, const void *from, int64_t n, double *to);
/** Back: floats are rounded to the nearest float first, of integers the fraction is cut; one byte holds the
 *  nearest that it can. */
void clv__elements_narrow(clv_dtype dtype, const double *from, int64_t n, void *to);

#endif
