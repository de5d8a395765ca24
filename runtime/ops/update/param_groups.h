// SPDX-License-Identifier: Apache-2.0
// Groups of parameters that an optimizer updates in ways of their own: param_groups.c.
#ifndef CLV_OPS_PARAM_GROUPS_H
#define CLV_OPS_PARAM_GROUPS_H

#include "base/text.h"
#include "cleave/optim.h"
#include "graph/graph.h"

/** Which group a parameter belongs to: the first that covers it; -1: none. */
int clv__param_group_of(const clv_optimizer_config *config, const clv_tensor *parameter);
/** Does every group have sensible values and parameters? False: the graph has failed. `call` is for sentences. */
bool clv__param_groups_check(clv_graph *graph, const clv_optimizer_config *config, const char *call);
/** The settings for the parameters of a group, -1 for those of none: weight_decay replaced. */
clv_optimizer_config clv__param_group_config(const clv_optimizer_config *config, int group);
/** Factor of the learning rate of a group; 1 for -1. */
float clv__param_group_lr(const clv_optimizer_config *config, int group);
/** All groups as one text, for checkpoints: `norm*: weight_decay none; conv1: lr 0.1`; "" without any. */
void clv__param_groups_text(const clv_optimizer_config *config, clv__text *out);

#endif
