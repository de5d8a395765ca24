// SPDX-License-Identifier: Apache-2.0
// One tensor of what each rank of a training has of it, and updates that are shared out among ranks.
#ifndef CLV_OPS_UPDATE_OVER_RANKS_H
#define CLV_OPS_UPDATE_OVER_RANKS_H

#include "graph/graph.h"

/**
 * The sum of x over ranks, f32, the same bits on each. Its memory is that of x, which nothing may read after it but what reads it before
 * the result is first used: gradients and losses, at the end of the backward pass.
 *
 * terms      ranks that have something to add: 0 to terms - 1; the others' x counts nothing
 * from_last  x[terms-1] + x[terms-2] + ... + x[0], as clv_backward adds the gradients of replicas; else x[0] + x[1] + ..., as their losses
 */
clv_tensor *clv__over_ranks(clv_tensor *x, int terms, bool from_last);

/** The same in the midst of a model; its gradient is the sum of that of every rank. x has no other reader. */
clv_tensor *clv__over_ranks_within(clv_tensor *x, int terms);

/** The gradients of all parameters are the sums of those of each rank; bf16: sent and kept as such. */
void clv__gradients_over_ranks(clv_graph *graph, int terms, bool bf16);

/** Can the updates be shared out: do they work on each element by itself? */
bool clv__updates_can_be_parts(const clv_optimizer_config *config);
/** Instead of that: each rank has the sums of its part of the gradients, updates that part of each parameter, and so keeps optimizer state
 *  of that alone. Before clv_optimizer_add ... */
void clv__parts_over_ranks(clv_graph *graph, int rank, int size, int terms);
/** ... and behind it: all ranks have all parts. */
void clv__parameters_over_ranks(clv_graph *graph);

#endif
