// SPDX-License-Identifier: Apache-2.0
// Long rows as programs over rows that end with their states.
#include "ops/long_axis.h"

#include <assert.h>

clv__long_rows clv__long_sums(clv__launches *list, const clv__op_io *io, const clv__long_walk *walk,
                              int mean) {
    static const clv__row_program program = {
        .params =
            "global const T_Y *restrict dy, global const T_X *restrict x, global const float *restrict means",
        .tensors = "i0=T_Y i1=T_X i3",
        .begin = "const float mean = means[r];",
        CLV__ROW_SUMS,
        .load = "a[k] = LOAD(T_Y, dy + at); b[k] = a[k] * (LOAD(T_X, x + at) - mean);"};
    assert(mean == 3);
    (void)mean;
    return clv__rows_states(list, io, &(clv__rows){.program = &program, .walk = *walk}, false);
}

clv__long_rows clv__long_moments(clv__launches *list, const clv__op_io *io, const clv__long_walk *walk) {
    static const clv__row_program program = {.params = "global const T_X *restrict x",
                                             .tensors = "i0=T_X",
                                             CLV__ROW_MOMENTS,
                                             .load = "a[k] = LOAD(T_X, x + at);"};
    return clv__rows_states(list, io, &(clv__rows){.program = &program, .walk = *walk}, false);
}
