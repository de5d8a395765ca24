// SPDX-License-Identifier: Apache-2.0
// The pipeline: a plan is made by passes over plan/ir.h, one after the other; passes.def lists them. To add one: a file with
// clv__pass_NAME, and its row.
//
// A pass includes plan/ir.h, perhaps plan/index.h, and headers of its own, but nothing of another pass. It may rewrite nodes,
// values and transfers; it may not allocate on a device, look at an op's name, or at a vendor's. The passes from lives on move no
// node: where everything lies is a function of the order of the nodes alone, so recompute asks them what an order would cost.
#ifndef CLV_PLAN_PASSES_H
#define CLV_PLAN_PASSES_H

#include "plan/ir.h"

#define CLV__PASS(name) clv_status clv__pass_##name(clv_plan *plan);
#include "plan/passes.def"
#undef CLV__PASS

typedef enum clv__pass {
#define CLV__PASS(name) CLV__PASS_##name,
#include "plan/passes.def"
#undef CLV__PASS
} clv__pass;

/** Do the passes from `first` to `last`. */
clv_status clv__passes_run(clv_plan *plan, clv__pass first, clv__pass last);

#endif
