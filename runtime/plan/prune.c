// SPDX-License-Identifier: Apache-2.0
// First pass: the nodes that lead to an output or update something in place, in the graph's order; and which tensors
// they touch from outside.
#include <stdlib.h>

#include "plan/plan.h"

static clv_status out_of_memory(const clv_plan *plan) {
    return clv__error_set(clv__runtime_error_of(plan->graph->runtime), CLV_E_HOST_MEMORY, "no host memory for the plan");
}

/** Collect the ids of needed tensors of a kind. */
static bool collect(const clv_plan *plan, const bool *used, clv__tensor_kind kind, int **ids, int *n) {
    *ids = clv__alloc((size_t)plan->n_tensors, sizeof **ids);
    if (!*ids) return false;
    for (int id = 0; id < plan->n_tensors; id++) {
        const clv_tensor *tensor = plan->graph->tensors[id];
        bool wanted = kind == CLV__VALUE ? tensor->is_output : used[id];
        if (tensor->kind == kind && wanted) (*ids)[(*n)++] = id;
    }
    return true;
}

clv_status clv__plan_prune(clv_plan *plan) {
    clv_graph *graph = plan->graph;
    clv__error *error = clv__runtime_error_of(graph->runtime);
    int n = (int)graph->n_nodes;
    plan->n_tensors = (int)graph->n_tensors;
    bool *needed = clv__alloc((size_t)n, sizeof *needed);
    bool *used = clv__alloc((size_t)plan->n_tensors, sizeof *used);
    plan->nodes = clv__alloc((size_t)n, sizeof *plan->nodes);
    plan->tensors = clv__alloc((size_t)plan->n_tensors, sizeof *plan->tensors);
    clv_status status = CLV_OK;
    if (!needed || !used || !plan->nodes || !plan->tensors) {
        status = out_of_memory(plan);
        goto done;
    }
    for (int id = n - 1; id >= 0; id--) {
        const clv__node *node = graph->nodes[id];
        if (node->io.op->mutates) needed[id] = true;
        for (int i = 0; i < node->io.n_out; i++) needed[id] |= node->out[i]->is_output;
        if (!needed[id]) continue;
        for (int i = 0; i < node->io.n_in; i++) {
            const clv_tensor *in = node->in[i];
            if (!in) continue;
            used[in->id] = true;
            if (in->node) needed[in->node->id] = true;
        }
        for (int i = 0; i < node->io.n_out; i++) used[node->out[i]->id] = true;
    }
    for (int id = 0; id < n; id++) {
        if (!needed[id]) continue;
        plan->nodes[plan->n_nodes++].node = graph->nodes[id];
        plan->trains |= graph->nodes[id]->io.op->mutates != 0;
    }
    if (!collect(plan, used, CLV__INPUT, &plan->inputs, &plan->n_inputs) ||
        !collect(plan, used, CLV__VALUE, &plan->outputs, &plan->n_outputs) ||
        !collect(plan, used, CLV__PERSISTENT, &plan->persistents, &plan->n_persistents)) {
        status = out_of_memory(plan);
    } else if (plan->n_nodes == 0) {
        status = clv__error_set(error, CLV_E_VALUE, "the graph has no outputs and updates nothing: mark a result with clv_output");
    }
done:
    free(needed);
    free(used);
    return status;
}
