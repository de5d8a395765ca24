// SPDX-License-Identifier: Apache-2.0
// Optimizers of a program's own: custom_optimizer.c. And the op that stores what their updates make: assign.c.
#ifndef CLV_OPS_CUSTOM_OPTIMIZER_H
#define CLV_OPS_CUSTOM_OPTIMIZER_H

#include "base/text.h"
#include "ops/update/gradients.h"

/** Store a value in a session tensor of the same shape: target = value, or with keep > 0 keep * target + (1 - keep) * value, of which
 *  the first step takes the value alone. Nothing in steps that update nothing. */
void clv__assign_add(clv_tensor *target, clv_tensor *value, double keep, const clv__gradients *all);

/** Is the descriptor whole, and are the other settings those that it has? False: the graph has failed. */
bool clv__custom_optimizer_check(clv_graph *graph, const clv_optimizer_config *config);
/** Append one parameter's update. config: of its group. */
void clv__custom_optimizer_add(const clv_optimizer_config *config, float lr_factor, clv_tensor *parameter,
                               const clv__gradients *all);
/** Its name and attributes, for checkpoints; "" without one. */
void clv__custom_optimizer_text(const clv_optimizer_config *config, clv__text *out);

#endif
