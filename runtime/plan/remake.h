// SPDX-License-Identifier: Apache-2.0
// Rewriting a plan so that values are dropped after the forward pass and computed again for the backward pass: the tool of
// recompute.c (which says what is dropped) and fit.c (which finds out what must be).
#ifndef CLV_PLAN_REMAKE_H
#define CLV_PLAN_REMAKE_H

#include "plan/ir.h"

/** What becomes of a node's results once the forward pass has read them. */
typedef enum clv__fate {
    CLV__KEEP,       // they stay for the backward pass
    CLV__AGAIN_ONCE, // dropped; computed again before their first use in the backward pass, and kept from there
    CLV__AGAIN_EACH // dropped; computed again for each node of the backward pass that needs them
} clv__fate;

/** A plan as it was before (the base), fates, and the plan that follows from both. */
typedef struct clv__remake {
    clv_plan *plan;
    clv__plan_node *base;
    size_t n_base, n_values;
    clv__fate *fate;     // by base node; of those that clv__remake_can
    clv__fate *resolved; // by base node: a view's is that of what it views
    int *maker;          // by base value: the base node that can compute it again, -1: none can
    int *latest;         // by base value: the value it was computed again as last, -1: not yet
    int *asked, *made;   // by base node: for which base node it was asked for, computed again, last; -1
    int *pending;        // scratch: base nodes to be computed again
    double *work;        // by base node: see clv__node_seconds
    double base_work, extra_work;
    bool too_many;    // the fates ask for more than is sensible: plan->nodes is not whole
    clv__arena arena; // of all this
} clv__remake;

/** Begin: plan->nodes becomes the base. plan has no nodes that compute again. */
clv_status clv__remake_init(clv__remake *remake, clv_plan *plan);
/** Can the results of this base node be computed again, and is it more than a view? */
bool clv__remake_can(const clv__remake *remake, int base);
/** Make plan->nodes from base and fates. Nodes that compute again have a workspace's size but no launches yet. */
clv_status clv__remake_apply(clv__remake *remake);
/** End: the plan stays as it was applied last, launches are written down. On failure it is the base again. */
clv_status clv__remake_finish(clv__remake *remake);
/** End: the plan is the base again. */
void clv__remake_undo(clv__remake *remake);

/**
 * Choose fates so that the plan fits its devices' budgets and memory, with little computed again; unchanged if it fits as
 * it is. If nothing makes it fit, what needs least. Applied last.
 */
clv_status clv__remake_fit(clv__remake *remake);

#endif
