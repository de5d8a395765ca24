// SPDX-License-Identifier: Apache-2.0
// Making a plan by its passes, and what can be asked of it.
#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>

clv_status clv_plan_create(clv_graph *graph, const clv_plan_config *config, clv_plan **out) {
    *out = NULL;
    CLV_TRY(clv_graph_status(graph));
    clv_device *device = config ? config->device : NULL;
    if (!device) CLV_TRY(clv_device_find(graph->runtime, NULL, &device));
    const char *pins = config && config->variants ? config->variants : getenv("CLEAVE_VARIANTS");
    clv__error *error = clv__runtime_error_of(graph->runtime);
    if (!device->info.usable) {
        CLV_FAIL(error, CLV_E_UNSUPPORTED, "device %s cannot be used: %s", device->info.name, device->info.reason);
    }

    clv_plan *plan = clv__alloc(1, sizeof *plan);
    if (!plan) CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for a plan");
    plan->graph = graph;
    plan->device = device;
    clv_status status = CLV_OK;
    if (pins && !(plan->pins = clv__strdup(pins))) {
        status = clv__error_set(error, CLV_E_HOST_MEMORY, "no host memory for a plan");
    }
    if (status == CLV_OK) status = clv__plan_prune(plan);
    if (status == CLV_OK) status = clv__plan_again(plan);
    if (status != CLV_OK) {
        clv_plan_destroy(plan);
        return status;
    }
    *out = plan;
    return CLV_OK;
}

clv_status clv__plan_again(clv_plan *plan) {
    CLV_TRY(clv__plan_select(plan));
    return clv__plan_memory(plan);
}

void clv_plan_destroy(clv_plan *plan) {
    if (!plan) return;
    for (int i = 0; plan->nodes && i < plan->n_nodes; i++) clv__launches_reset(&plan->nodes[i].launches);
    free(plan->nodes);
    free(plan->tensors);
    free(plan->inputs);
    free(plan->outputs);
    free(plan->persistents);
    free(plan->pins);
    free(plan);
}

clv_graph *clv_plan_graph(const clv_plan *plan) {
    return plan->graph;
}

clv_device *clv_plan_device(const clv_plan *plan) {
    return plan->device;
}

// ---- memory -----------------------------------------------------------------------------------------------------------

/** Was this persistent counted with an earlier plan? */
static bool counted(clv_plan *const *plans, int n, const char *name) {
    for (int p = 0; p < n; p++) {
        for (int i = 0; i < plans[p]->n_persistents; i++) {
            if (strcmp(plans[p]->graph->tensors[plans[p]->persistents[i]]->name, name) == 0) return true;
        }
    }
    return false;
}

static void at_least(uint64_t *most, uint64_t bytes) {
    if (bytes > *most) *most = bytes;
}

clv_plan_memory clv_plans_memory(clv_plan *const *plans, int n) {
    clv_plan_memory memory = {.device = n > 0 ? plans[0]->device : NULL};
    for (int p = 0; p < n; p++) {
        const clv_plan *plan = plans[p];
        for (int i = 0; i < plan->n_persistents; i++) {
            const clv_tensor *tensor = plan->graph->tensors[plan->persistents[i]];
            if (!counted(plans, p, tensor->name)) memory.category[tensor->category] += clv_tensor_bytes(tensor);
        }
        at_least(&memory.category[CLV_GRADIENTS], plan->gradients.bytes);
        at_least(&memory.category[CLV_ACTIVATIONS], plan->activations.bytes);
        at_least(&memory.category[CLV_WORKSPACE], plan->workspace_bytes);
        at_least(&memory.category[CLV_IO], clv__io_bytes(plan));
        at_least(&memory.category[CLV_STAGING], clv__staging_bytes(plan));
    }
    for (int c = 0; c < CLV_CATEGORIES; c++) memory.predicted_peak_bytes += memory.category[c];
    return memory;
}

// ---- what it does ---------------------------------------------------------------------------------------------------

int clv_plan_node_count(const clv_plan *plan) {
    return plan->n_nodes;
}

static void cost_of(const clv__op_io *io, clv__cost *cost) {
    if (io->op->cost) {
        io->op->cost(io, cost);
        return;
    }
    for (int i = 0; i < io->n_out; i++) cost->flops += (double)clv__numel(&io->out[i]);
    for (int i = 0; i < io->n_in; i++) cost->bytes += (double)clv__numel(&io->in[i]) * (double)clv_dtype_bytes(io->in[i].dtype);
    for (int i = 0; i < io->n_out; i++) cost->bytes += (double)clv__numel(&io->out[i]) * (double)clv_dtype_bytes(io->out[i].dtype);
}

/** Does an earlier node of the plan read this tensor? */
static bool read_before(const clv_plan *plan, int index, const clv_tensor *tensor) {
    for (int at = 0; at < index; at++) {
        const clv__node *node = plan->nodes[at].node;
        for (int i = 0; i < node->io.n_in; i++) {
            if (node->in[i] == tensor) return true;
        }
    }
    return false;
}

clv_plan_node clv_plan_node_get(const clv_plan *plan, int index) {
    static const char *const phases[] = {"forward", "backward", "update"};
    const clv__plan_node *at = &plan->nodes[index];
    const clv__node *node = at->node;
    const clv__op *op = node->io.op;
    clv_plan_node out = {
        .layer = node->layer,
        .op = op->name,
        .variant = op->view ? "view" : at->variant ? at->variant->name : "reference",
        .phase = phases[node->phase],
        .device = plan->device,
        .bytes = at->launches.workspace_bytes,
        .launches = (int)at->launches.n,
    };
    if (node->io.n_out) out.output_shape = node->io.out[0].shape;
    for (int i = 0; i < node->io.n_in; i++) {
        const clv_tensor *in = node->in[i];
        if (in && in->trainable && !read_before(plan, index, in)) out.parameters += clv_tensor_numel(in);
    }
    if (!op->view) {
        clv__cost cost = {0};
        for (int i = 0; i < node->io.n_out; i++) out.bytes += clv_tensor_bytes(node->out[i]);
        cost_of(&node->io, &cost);
        out.flops = cost.flops;
    }
    return out;
}
