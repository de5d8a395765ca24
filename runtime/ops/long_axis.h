// SPDX-License-Identifier: Apache-2.0
// Walks along axes that are too long for the loops of one work-item (kernels_cl/README.md): softmax, cross entropy and
// batch_norm lower to these in place of their plain kernels, on every device.
#ifndef CLV_OPS_LONG_AXIS_H
#define CLV_OPS_LONG_AXIS_H

#include "graph/op.h"

/** Up to so many elements one work-item walks: in longer walks there is work for several, and their loops would be too long for
 *  some devices. A part has so many. */
enum { CLV__LONG_AXIS = 16000, CLV__LONG_CHUNK = 4096 };

/** Element j of row r is at r / inner * major + r % inner * minor + j / length * far + j % length * near, j < count. */
typedef struct clv__long_walk {
    int64_t rows, count, inner, major, minor, length, far, near;
} clv__long_walk;

/** Results, plane after plane of one float for each row; lie in the workspace. */
typedef struct clv__long_rows {
    size_t offset, bytes;
} clv__long_rows;

/** Rows along the middle of [outer, D, inner]. */
clv__long_walk clv__long_middle(int64_t outer, int64_t D, int64_t inner);
/** Channels of [N, C, S]. */
clv__long_walk clv__long_channels(int64_t N, int64_t C, int64_t S);

/** Of input 0: largest element, sum(exp(x - largest)). */
clv__long_rows clv__long_softmax(clv__launches *list, const clv__op_io *io, const clv__long_walk *walk);
/** The same, with the logarithm of the sum, to output `out`. */
void clv__long_log_softmax_to(clv__launches *list, const clv__op_io *io, const clv__long_walk *walk, int out);
/** Of inputs 0 (dy) and 1 (x): sum(dy), sum(dy * (x - mean)); input `mean` has one for each row, -1: 0. */
clv__long_rows clv__long_sums(clv__launches *list, const clv__op_io *io, const clv__long_walk *walk,
                              int mean);
/** One for each row of what the rows' parts left, two planes of sums: part k of row r is at r * ceil(count / CLV__LONG_CHUNK) + k. */
clv__long_rows clv__long_join_sums(clv__launches *list, const clv__long_walk *walk, clv__long_rows parts);
/** Of input 0: mean, sum of squared differences from it, number of elements. */
clv__long_rows clv__long_moments(clv__launches *list, const clv__op_io *io, const clv__long_walk *walk);

#endif
