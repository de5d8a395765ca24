// SPDX-License-Identifier: Apache-2.0
// What every pass may do to a plan.
#include "plan/ir.h"

#include <stdlib.h>
#include <string.h>

clv_status clv__plan_no_memory(const clv_plan *plan) {
    return clv__error_set(clv__plan_error(plan), CLV_E_HOST_MEMORY, "no host memory for the plan");
}

bool clv__by_kernels(const clv_plan *plan, const clv__plan_node *at) {
    return at->work == CLV__COMPUTE && plan->places[at->place].device->info.type != CLV_DEVICE_HOST;
}

double clv__node_seconds(const clv__plan_node *at) {
    static const double flops = 100e9,
                        bytes = 10e9; // a second, of a nominal device: only their ratio matters
    clv__cost cost;
    if (at->work != CLV__COMPUTE || at->node->io.op->view || at->once) return 0;
    clv__op_cost(&at->node->io, &cost);
    const double compute = cost.flops / flops, move = cost.bytes / bytes;
    return compute > move ? compute : move;
}

const clv__place *clv__plan_place_of(const clv_plan *plan, const clv_device *device) {
    for (int i = 0; i < plan->n_places; i++) {
        if (plan->places[i].device == device) return &plan->places[i];
    }
    return NULL;
}

/** Sharing in place makes chains; each look shortens the one it follows. */
int clv__value_root(clv_plan *plan, int value) {
    clv__value *values = plan->values;
    while (values[value].root != value) {
        const clv__value *next = &values[values[value].root];
        if (next->root != values[value].root) values[value].within += next->within;
        values[value].root = next->root;
        value = values[value].root;
    }
    return value;
}

// ---- pieces -------------------------------------------------------------------------------------------------------------------

size_t clv__split_largest(const clv_device *device) {
    enum { PAGE = 4096 }; // an allocation is cut so that a strict device's tensors begin where they may
    const uint64_t most = device->info.max_alloc_bytes ? device->info.max_alloc_bytes : SIZE_MAX;
    const uint64_t grain = most >= 16 * PAGE ? PAGE : device->info.alignment_bytes;
    const uint64_t largest = grain ? most / grain * grain : most;
    return (size_t)(largest ? largest : most);
}

int64_t clv__split_rows(const clv__desc *desc, const clv_device *device) {
    const size_t largest = clv__split_largest(device), bytes = clv__desc_bytes(desc);
    const int64_t all = clv__split_length(&desc->shape, 0);
    if (bytes <= largest) return all;
    const uint64_t most = all > 0 ? largest / (bytes / (size_t)all) : 0;
    return most ? (int64_t)(UINT64_C(1) << (63 - __builtin_clzll(most))) : 0;
}

// ---- writing ------------------------------------------------------------------------------------------------------------------

clv__plan_node clv__plan_node_of(clv__work work, const clv__node *node, int place) {
    clv__plan_node at = {.work = work, .node = node, .place = place, .transfer = -1};
    for (int i = 0; i < CLV__MAX_IN; i++) at.in[i] = -1;
    for (int i = 0; i < CLV__MAX_OUT; i++) at.out[i] = -1;
    return at;
}

clv_status clv__plan_append(clv_plan *plan, const clv__plan_node *node) {
    if (!clv__grow(&plan->nodes, &plan->nodes_room, plan->n_nodes + 1, sizeof *plan->nodes))
        return clv__plan_no_memory(plan);
    plan->nodes[plan->n_nodes++] = *node;
    return CLV_OK;
}

clv_status clv__plan_append_value(clv_plan *plan, const clv__value *value, int *out) {
    if (!clv__grow(&plan->values, &plan->values_room, plan->n_values + 1, sizeof *plan->values))
        return clv__plan_no_memory(plan);
    *out = (int)plan->n_values;
    plan->values[plan->n_values++] = *value;
    return CLV_OK;
}

clv__value clv__value_of(const clv_tensor *tensor, int place) {
    return (clv__value){.tensor = tensor,
                        .desc = tensor->desc,
                        .layout = CLV__ROW_MAJOR,
                        .bytes = clv__desc_bytes(&tensor->desc),
                        .place = place,
                        .of = -1};
}

/** Where what a pass makes of its own lies: with choices it goes when these are made again. */
static clv__arena *arena_of(clv_plan *plan) {
    return plan->placed ? &plan->chosen : &plan->arena;
}

clv_status clv__plan_append_node(clv_plan *plan, const clv__node *of, const clv__op *op, const void *attrs,
                                 int place, const int *in, int n_in, const int *out, int n_out) {
    clv__node *node = clv__arena_alloc(arena_of(plan), 1, sizeof *node);
    if (!node) return clv__plan_no_memory(plan);
    *node = *of;
    node->io = (clv__op_io){.op = op, .n_out = n_out};
    if (!clv__node_room(arena_of(plan), node, n_in)) return clv__plan_no_memory(plan);
    node->io.n_in = n_in;
    memset(node->out, 0, sizeof node->out);
    node->attrs = clv__attrs_copy(arena_of(plan), op, attrs);
    if (!node->attrs) return clv__plan_no_memory(plan);
    if (op->attrs_bytes) node->io.attrs = node->attrs;
    clv__plan_node at = clv__plan_node_of(CLV__COMPUTE, node, place);
    for (int i = 0; i < n_in; i++) {
        at.in[i] = in[i];
        if (in[i] < 0) continue;
        node->in[i] = (clv_tensor *)plan->values[in[i]].tensor;
        node->in_desc[i] = plan->values[in[i]].desc;
    }
    for (int i = 0; i < n_out; i++) {
        at.out[i] = out[i];
        if (out[i] < 0) continue;
        node->out[i] = (clv_tensor *)plan->values[out[i]].tensor;
        node->io.out[i] = plan->values[out[i]].desc;
    }
    return clv__plan_append(plan, &at);
}

clv_status clv__plan_append_own(clv_plan *plan, const clv_tensor *tensor, const clv__desc *desc, int place,
                                int *out) {
    clv_tensor *own = clv__arena_alloc(arena_of(plan), 1, sizeof *own);
    if (!own) return clv__plan_no_memory(plan);
    *own = *tensor;
    own->desc = *desc;
    own->is_output = own->trainable = false; // whatever it is a copy of
    own->gradient = own->as_float = NULL;
    const clv__value value = clv__value_of(own, place);
    return clv__plan_append_value(plan, &value, out);
}

clv_status clv__plan_append_input(clv_plan *plan, int place, const char *name, const clv__desc *desc,
                                  const struct clv__pass *writer, int *out) {
    const clv_tensor tensor = {
        .graph = plan->graph, .id = -1, .name = name, .layer = "", .kind = CLV__INPUT, .category = CLV_IO};
    clv__place *at = &plan->places[place];
    int *inputs = clv__arena_alloc(&plan->arena, (size_t)at->n_inputs + 1, sizeof *inputs);
    if (!inputs) return clv__plan_no_memory(plan);
    CLV_TRY(clv__plan_append_own(plan, &tensor, desc, place, out));
    plan->values[*out].writer = writer;
    for (int i = 0; i < at->n_inputs; i++) inputs[i] = at->inputs[i];
    inputs[at->n_inputs++] = *out;
    at->inputs = inputs;
    return CLV_OK;
}

// ---- notes --------------------------------------------------------------------------------------------------------------------

void *clv__note(clv_plan *plan, clv__pass_key pass, size_t i, size_t size) {
    clv__notes *notes = &plan->notes[pass];
    notes->size = size;
    if (!clv__grow(&notes->items, &notes->room, i + 1, size)) return NULL;
    return notes->items + i * size;
}

const void *clv__noted(const clv_plan *plan, clv__pass_key pass, size_t i) {
    const clv__notes *notes = &plan->notes[pass];
    return i < notes->room ? notes->items + i * notes->size : NULL;
}

void clv__notes_reset(clv_plan *plan, clv__pass_key pass) {
    free(plan->notes[pass].items);
    plan->notes[pass] = (clv__notes){0};
}

// ---- writing again -------------------------------------------------------------------------------------------------------------

clv_status clv__rewrite_begin(clv_plan *plan, clv__rewrite *out) {
    clv__plan_node *nodes = clv__alloc(plan->n_nodes + 1, sizeof *nodes);
    if (!nodes) return clv__plan_no_memory(plan);
    *out = (clv__rewrite){plan->nodes, plan->n_nodes};
    plan->nodes = nodes;
    plan->nodes_room = plan->n_nodes + 1;
    plan->n_nodes = 0;
    return CLV_OK;
}

void clv__rewrite_end(clv__rewrite *rewrite) {
    free(rewrite->nodes);
    *rewrite = (clv__rewrite){0};
}

void clv__plan_leave_out(clv_plan *plan, const bool *gone) {
    size_t n = 0;
    for (size_t at = 0; at < plan->n_nodes; at++) {
        if (!gone[at]) plan->nodes[n++] = plan->nodes[at];
    }
    plan->n_nodes = n;
}

clv_status clv__fuse_begin(clv_plan *plan, clv__plan_node *at) {
    clv__fused *fused = clv__arena_alloc(&plan->chosen, 1, sizeof *fused);
    if (!fused) return clv__plan_no_memory(plan);
    *fused = (clv__fused){.node = *at->node, .base = at->node, .n = 1};
    if (!clv__node_room(&plan->chosen, &fused->node, CLV__MAX_IN)) return clv__plan_no_memory(plan);
    at->fused = fused;
    at->node = &fused->node;
    return CLV_OK;
}
