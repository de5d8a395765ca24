// SPDX-License-Identifier: Apache-2.0
// Which values are the same memory because one is seen through another: a view's result lies where its input does, and what is
// joined lies, one after the other, where the result does; what is exchanged stays where it is. (in_place.c adds results that are written over inputs.)
#include "plan/passes.h"

static void share_view(clv_plan *plan, const clv__plan_node *node) {
    clv__value *out = &plan->values[node->out[0]];
    if (!node->node->io.op->joins) {
        out->root = clv__value_root(plan, node->in[0]);
        out->within = plan->values[node->in[0]].within + node->within;
        return;
    }
    size_t at = 0;
    for (int i = 0; i < node->node->io.n_in; i++) {
        clv__value *in = &plan->values[node->in[i]]; // its own root: it was made for this
        in->root = node->out[0];
        in->within = at;
        at += in->bytes;
    }
}

/** What ranks make of a tensor lies where it did. */
static void arrive(clv_plan *plan, const clv__plan_node *node) {
    const clv__transfer *transfer = &plan->transfers[node->transfer];
    if (transfer->into < 0) return;
    plan->values[node->out[0]].root = clv__value_root(plan, transfer->into);
    plan->values[node->out[0]].within = plan->values[transfer->into].within + transfer->came_at;
}

static clv_status run(clv_plan *plan) {
    for (size_t i = 0; i < plan->n_values; i++) {
        plan->values[i].root = (int)i;
        plan->values[i].within = 0;
    }
    for (size_t at = 0; at < plan->n_nodes; at++) {
        const clv__plan_node *node = &plan->nodes[at];
        if (node->work == CLV__COMPUTE && node->node->io.op->view) share_view(plan, node);
        if (node->work == CLV__RECEIVE && plan->transfers[node->transfer].exchanged) arrive(plan, node);
    }
    for (size_t i = 0; i < plan->n_values; i++)
        clv__value_root(plan, (int)i); // of what was joined, its views' too
    return CLV_OK;
}

const clv__pass clv__pass_roots = {.run = run};
