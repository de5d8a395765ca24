// SPDX-License-Identifier: Apache-2.0
// The states of rows that are too long for one work-item, for batch_norm's plain variant.
#ifndef CLV_OPS_LONG_AXIS_H
#define CLV_OPS_LONG_AXIS_H

#include "ops/rows.h"

/** Up to so many elements one work-item walks (kernels_cl/README.md). */
enum { CLV__LONG_AXIS = 16000 };

typedef clv__row_walk clv__long_walk;
typedef clv__part clv__long_rows; // of the workspace: plane after plane of one float for each row

/** Channels of [N, C, S]. */
static inline clv__long_walk clv__long_channels(int64_t N, int64_t C, int64_t S) {
    return clv__row_channels(N, C, S);
}
/** Of inputs 0 (dy) and 1 (x): sum(dy), sum(dy * (x - mean)); input `mean` has one for each row. */
clv__long_rows clv__long_sums(clv__launches *list, const clv__op_io *io, const clv__long_walk *walk,
                              int mean);
/** Of input 0: mean, sum of squared differences from it, number of elements. */
clv__long_rows clv__long_moments(clv__launches *list, const clv__op_io *io, const clv__long_walk *walk);

#endif
