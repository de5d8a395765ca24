// SPDX-License-Identifier: Apache-2.0
// Running averages of parameters, in the graph: averages.c.
#ifndef CLV_OPS_AVERAGES_H
#define CLV_OPS_AVERAGES_H

#include <stdio.h>

#include "graph/graph.h"

/** What the session keeps beside a parameter: `<parameter>.average`. False: the name is too long. */
static inline bool clv__average_name(const char *parameter, char *name, size_t bytes) {
    const int n = snprintf(name, bytes, "%s.average", parameter);
    return n >= 0 && (size_t)n < bytes;
}

/**
 * Append an update of a running average for each parameter that has a gradient, after the optimizer's (clv_optimizer_add):
 *
 *     a = p after the first step that updates anything, later  a = decay * a + (1 - decay) * p
 *
 * A step that updates nothing moves no average.
 *
 * Errors  (sticky) CLV_E_VALUE  decay is not between 0 and 1; there is such a tensor already;  CLV_E_STATE  no optimizer
 * Source  torch.optim.swa_utils.AveragedModel with get_ema_multi_avg_fn
 */
void clv__averages_add(clv_graph *graph, double decay);

#endif
