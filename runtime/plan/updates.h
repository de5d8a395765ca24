// SPDX-License-Identifier: Apache-2.0
// Which updates go by themselves: the tool of groups, which joins the others, and of early, which moves these.
#ifndef CLV_PLAN_UPDATES_H
#define CLV_PLAN_UPDATES_H

#include "plan/ir.h"

/** Is it an update of one large parameter, which need not wait for the others? With several devices it would wait for the other
 *  devices, so none is early there; nor is any that is not to be fused: each stays where the graph has it. */
bool clv__update_is_early(const clv_plan *plan, const clv__plan_node *at);

#endif
