// SPDX-License-Identifier: Apache-2.0
// Of each root, between which nodes it lives, and in which segment it lies.
#include <limits.h>

#include "plan/passes.h"

/** A root lives at a node. */
static void live_at(clv_plan *plan, int value, int at) {
    clv__value *root = &plan->values[plan->values[value].root];
    if (root->first > at) root->first = at;
    if (root->last < at) root->last = at;
}

static void find_lives(clv_plan *plan) {
    for (size_t i = 0; i < plan->n_values; i++) {
        clv__value *value = &plan->values[i];
        value->segment = CLV__NOWHERE;
        value->offset = 0;
        value->first = INT_MAX;
        value->last = value->owner = -1;
    }
    for (int at = 0; at < (int)plan->n_nodes; at++) {
        const clv__plan_node *node = &plan->nodes[at];
        for (int i = 0; i < CLV__MAX_IN + CLV__MAX_OUT; i++) {
            const int value = i < CLV__MAX_IN ? node->in[i] : node->out[i - CLV__MAX_IN];
            if (value < 0) continue;
            live_at(plan, value, at);
            const clv__pass *writer = plan->values[value].writer;
            const int *also, n = writer && writer->reads ? writer->reads(plan, value, &also) : 0;
            for (int k = 0; k < n; k++) live_at(plan, also[k], at);
        }
    }
}

/** The segment of each root, from everything that shares it. */
static void find_segments(clv_plan *plan) {
    for (size_t i = 0; i < plan->n_values; i++) {
        const clv__value *value = &plan->values[i];
        clv__value *root = &plan->values[value->root];
        if (root->last < 0) continue;
        const bool fetched = value->tensor->is_output && !value->copy;
        // what each step reads is there in the next one
        const bool stays = root->once && root->last < (int)plan->n_nodes && !plan->nodes[root->last].once;
        if (root->once) {
            root->segment = CLV__IN_ONCE;
        } else if (root->tensor->kind == CLV__PERSISTENT && !root->copy) {
            root->segment = CLV__IN_SESSION;
        } else if (root->tensor->kind == CLV__INPUT) {
            root->segment = CLV__IN_INPUTS;
        } else if ((value->tensor->category == CLV_GRADIENTS && !value->copy) ||
                   root->segment == CLV__IN_GRADIENTS) {
            root->segment = CLV__IN_GRADIENTS;
        } else if (fetched || root->segment == CLV__IN_OUTPUTS) {
            root->segment = CLV__IN_OUTPUTS;
        } else {
            root->segment = CLV__IN_ACTIVATIONS;
        }
        if (fetched || stays) root->last = (int)plan->n_nodes; // read after the last node
    }
}

static clv_status run(clv_plan *plan) {
    find_lives(plan);
    find_segments(plan);
    return CLV_OK;
}

const clv__pass clv__pass_lives = {.run = run};
