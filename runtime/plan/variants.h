// SPDX-License-Identifier: Apache-2.0
// Which variant computes a node, and its launches: the tool of the passes that choose (epilogues, select) or compute again.
#ifndef CLV_PLAN_VARIANTS_H
#define CLV_PLAN_VARIANTS_H

#include "plan/ir.h"

/** Choices to pin: those given, else those of CLEAVE_VARIANTS when the runtime was made; NULL for none. */
const char *clv__pins(const clv_runtime *runtime, const char *variants);
/** Is the op pinned by its name? */
bool clv__variant_pinned(const clv_plan *plan, const clv__op *op);
/** The variant for one node, and why. passed_over: a bit for each variant of its op that is not wanted. */
clv_status clv__variant_choose(const clv_plan *plan, clv__plan_node *at, uint64_t passed_over);
/** Write down the launches of one node, by the variant that it has. */
clv_status clv__variant_write(const clv_plan *plan, clv__plan_node *at);

/** Say of each tensor among the arguments of launches how large it is: helpers that compile them ahead want to know. */
void clv__variant_note_bytes(const clv_plan *plan, const clv__plan_node *at, clv__launches *list);

#endif
