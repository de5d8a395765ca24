// SPDX-License-Identifier: Apache-2.0
// The first value of an array from a file that is NaN or infinite.
#include "data/finite.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

clv_status clv__array_finite(clv__error *error, const char *what, const clv_array *array, int64_t rows) {
    if (array->type != CLV_DTYPE_F32 || array->shape.rank < 1) return CLV_OK;
    const float *at = array->data;
    int64_t row = 1;
    for (int d = 1; d < array->shape.rank; d++) row *= array->shape.dims[d];
    int64_t i = 0;
    while (i < rows * row && isfinite(at[i])) i++;
    if (i == rows * row) return CLV_OK;
    char index[CLV_MAX_RANK * 24] = "";
    int64_t left = i, block = rows * row;
    for (int d = 0; d < array->shape.rank; d++) {
        const size_t used = strlen(index);
        block /= d ? array->shape.dims[d] : rows;
        snprintf(index + used, sizeof index - used, "%s%" PRId64, d ? "," : "", left / block);
        left %= block;
    }
    CLV_FAIL(error, CLV_E_VALUE,
             "%s: element [%s] is %g in f32, and data must be finite; numpy leaves such rows out with "
             "x[numpy.isfinite(x.reshape(len(x), -1)).all(1)], of samples and targets alike",
             what, index, (double)at[i]);
}
