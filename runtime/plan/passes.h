// SPDX-License-Identifier: Apache-2.0
// The pipeline: a plan is made by passes over plan/ir.h, one after the other; passes.def lists them. To add one: a file with
// clv__pass_NAME, and its row.
//
// A pass includes plan/ir.h, perhaps plan/index.h, and headers of its own, but nothing of another pass. It may rewrite nodes,
// values and transfers; it may not allocate on a device, look at an op's name, or at a vendor's. What it keeps for itself are its
// notes (clv__note), and who has to know asks the pass by its row. The passes from lives on move no node: where everything lies is a
// function of the order of the nodes alone, so recompute asks them what an order would cost.
#ifndef CLV_PLAN_PASSES_H
#define CLV_PLAN_PASSES_H

#include "plan/ir.h"

/** A pass: what it does, and what can be asked of it. NULL: it has nothing to say. */
typedef struct clv__pass {
    clv_status (*run)(clv_plan *plan);
    /** Of an input that it writes (clv__value.writer): what is fed, value.bytes of it, now that memory is taken. `chunk`: bytes of the
     *  chunks in which the place's gradients lie. */
    void (*write)(const clv_plan *plan, int value, size_t chunk, void *out);
    /** Of such an input: the values that are read by way of it, so that they live as long. Returns how many. */
    int (*reads)(const clv_plan *plan, int value, const int **values);
} clv__pass;

#define CLV__PASS(name, ...) extern const clv__pass clv__pass_##name;
#include "plan/passes.def"
#undef CLV__PASS

/** Do the passes from `first` to `last`. */
clv_status clv__passes_run(clv_plan *plan, clv__pass_key first, clv__pass_key last);

#endif
