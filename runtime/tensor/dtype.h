// SPDX-License-Identifier: Apache-2.0
// What is known of a dtype: rows of dtypes.def, and elements of any of them as doubles.
#ifndef CLV_TENSOR_DTYPE_H
#define CLV_TENSOR_DTYPE_H

#include "cleave/tensor.h"

/** A row of dtypes.def. */
typedef struct clv__dtype_row {
    const char *id, *name;
    size_t bytes;
    double least, most; // of integers
    const char *kernels;
} clv__dtype_row;

/** Of NONE, and of what is no dtype, the row `none` of 0 bytes. */
const clv__dtype_row *clv__dtype(clv_dtype dtype);

/** Is it one of the two-byte floats? */
static inline bool clv__is_half(clv_dtype dtype) {
    return dtype == CLV_DTYPE_F16 || dtype == CLV_DTYPE_BF16;
}
static inline bool clv__is_float(clv_dtype dtype) {
    return dtype == CLV_DTYPE_F32 || clv__is_half(dtype);
}

/** Spacing of a float type's numbers at 1, and its smallest normal number; 0 for integers. */
double clv__dtype_epsilon(clv_dtype dtype);
double clv__dtype_smallest(clv_dtype dtype);

/** n elements of a dtype as doubles; exact, of i64 up to 2^53. */
void clv__elements_widen(clv_dtype dtype, const void *from, int64_t n, double *to);
/** Back, as clv_cast says. */
void clv__elements_narrow(clv_dtype dtype, const double *from, int64_t n, void *to);
/** Element i of integers, exact, or of truth values; of floats 0. */
int64_t clv__element_whole(clv_dtype dtype, const void *elements, int64_t i);
/** What an element of the dtype holds when that number is stored. */
double clv__dtype_nearest(clv_dtype dtype, double value);

#endif
