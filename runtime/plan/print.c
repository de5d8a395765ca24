// SPDX-License-Identifier: Apache-2.0
// A plan as text, line by line.
#include "plan/print.h"

#include <string.h>

static const char *const segments[] = {[CLV__NOWHERE] = "nowhere",          [CLV__IN_SESSION] = "session",
                                       [CLV__IN_INPUTS] = "inputs",         [CLV__IN_OUTPUTS] = "outputs",
                                       [CLV__IN_GRADIENTS] = "gradients",   [CLV__IN_ACTIVATIONS] = "activations",
                                       [CLV__IN_ONCE] = "once",             [CLV__IN_SHARED] = "lender"};

static void print_values(clv__text *text, const char *what, const int *values, int n) {
    int last = n;
    while (last > 0 && values[last - 1] < 0) last--;
    if (last) clv__text_add(text, " %s", what);
    for (int i = 0; i < last; i++) {
        if (values[i] < 0)
            clv__text_add(text, " -");
        else
            clv__text_add(text, " %d", values[i]);
    }
}

/** FNV-1a, 64 bits. */
static uint64_t mix(uint64_t hash, const void *data, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) hash = (hash ^ ((const unsigned char *)data)[i]) * 0x100000001b3;
    return hash;
}

/** Everything that a launch has beside its entry point and its grid. */
static uint64_t number_of(const clv__launch *launch) {
    uint64_t hash = mix(0xcbf29ce484222325, launch->defines, strlen(launch->defines));
    for (int i = 0; i < launch->n_slots; i++) {
        const clv__slot *slot = &launch->slots[i];
        hash = mix(hash, &slot->kind, sizeof slot->kind);
        hash = mix(hash, &slot->index, sizeof slot->index);
        hash = mix(hash, &slot->bytes, sizeof slot->bytes);
        hash = mix(hash, &slot->offset, sizeof slot->offset);
        hash = mix(hash, &slot->i32, sizeof slot->i32);
        hash = mix(hash, &slot->f32, sizeof slot->f32);
    }
    hash = mix(hash, &launch->bytes, sizeof launch->bytes);
    hash = mix(hash, &launch->pattern, sizeof launch->pattern);
    return mix(hash, &launch->gemm, sizeof launch->gemm);
}

static void print_launch(clv__text *text, const clv__launch *launch) {
    static const char *const kinds[] = {[CLV__LAUNCH_KERNEL] = "kernel",
                                        [CLV__LAUNCH_COPY] = "copy",
                                        [CLV__LAUNCH_FILL] = "fill",
                                        [CLV__LAUNCH_GEMM] = "library",
                                        [CLV__LAUNCH_REFERENCE] = "reference"};
    const size_t *global = launch->grid.global, *local = launch->grid.local;
    clv__text_add(text, "  launch %s %s", kinds[launch->kind], launch->entry ? launch->entry : "");
    if (launch->kind == CLV__LAUNCH_KERNEL)
        clv__text_add(text, " %zux%zux%zu in groups of %zux%zux%zu", global[0], global[1], global[2], local[0],
                      local[1], local[2]);
    clv__text_add(text, " %016llx\n", (unsigned long long)number_of(launch));
}

static void print_node(clv__text *text, const clv_plan *plan, size_t position) {
    static const char *const phases[] = {"forward", "backward", "update"},
                            *const reasons[] = {"", "pinned", "tuned", "ranked"};
    const clv__plan_node *at = &plan->nodes[position];
    clv__text_add(text, "node %zu at %d:", position, at->place);
    if (at->work == CLV__COMPUTE)
        clv__text_add(text, " %s %s '%s'", phases[at->node->phase], at->node->io.op->name, at->node->layer);
    else
        clv__text_add(text, " %s %d", at->work == CLV__SEND ? "send" : "receive", at->transfer);
    if (at->fused) clv__text_add(text, " as %d nodes, also %s", at->fused->n, *at->fused->also ? at->fused->also : "-");
    if (at->variant) clv__text_add(text, " by %s %s", reasons[at->chosen], at->variant->name);
    print_values(text, "in", at->in, CLV__MAX_IN);
    print_values(text, "out", at->out, CLV__MAX_OUT);
    if (at->once) clv__text_add(text, ", once");
    if (at->again) clv__text_add(text, ", again");
    if (at->whole) clv__text_add(text, ", part %d of %d of %s", at->slice, at->slices, at->whole->layer);
    if (at->within) clv__text_add(text, ", %zu bytes within", at->within);
    if (at->launches.workspace_bytes)
        clv__text_add(text, ", workspace %zu in %s at %zu", at->launches.workspace_bytes, segments[at->workspace_in],
                      at->workspace_at);
    if (at->awaits) clv__text_add(text, ", awaits %llx", (unsigned long long)at->awaits);
    clv__text_add(text, "\n");
    for (size_t i = 0; i < at->launches.n; i++) print_launch(text, &at->launches.items[i]);
}

static void print_value(clv__text *text, const clv_plan *plan, size_t id) {
    const clv__value *value = &plan->values[id];
    clv__text_add(text, "value %zu '%s' at %d: %zu bytes in %s", id, value->tensor->name, value->place, value->bytes,
                  segments[value->segment]);
    if (value->segment != CLV__NOWHERE) {
        clv__text_add(text, " at %zu", value->offset);
        if (value->root == (int)id) clv__text_add(text, ", lives %d to %d", value->first, value->last);
        if (value->segment == CLV__IN_INPUTS)
            clv__text_add(text, ", second slot at %zu, staged at %zu", value->second, value->staged);
        if (value->segment == CLV__IN_SHARED) clv__text_add(text, ", lent by %d", value->owner);
        if (value->root != (int)id) clv__text_add(text, ", %zu within %d", value->within, value->root);
    }
    if (value->copy) clv__text_add(text, ", copy");
    if (value->of >= 0) clv__text_add(text, ", again %d", value->of);
    const int self = (int)id, *pieces, n = clv__value_pieces(plan, &self, &pieces);
    if (clv__value_is_cut(plan, self)) print_values(text, ", pieces", pieces, n);
    clv__text_add(text, "\n");
}

static void print_place(clv__text *text, const clv__place *place, int number) {
    clv__text_add(text,
                  "place %d %s: aligned to %zu, gradients %zu, activations %zu, workspace %zu, io %zu, staged %zu and %zu",
                  number, place->device->name, place->alignment, place->gradients.bytes, place->activations.bytes,
                  place->workspace_bytes, place->io.bytes, place->input_bytes, place->staged_bytes);
    if (place->same_session_bytes) clv__text_add(text, ", beside %zu", place->same_session_bytes);
    if (place->once.bytes) clv__text_add(text, ", once %zu", place->once.bytes);
    if (place->awaits) clv__text_add(text, ", awaits %llx", (unsigned long long)place->awaits);
    print_values(text, ", inputs", place->inputs, place->n_inputs);
    print_values(text, ", outputs", place->outputs, place->n_outputs);
    print_values(text, ", persistents", place->persistents, place->n_persistents);
    clv__text_add(text, "\n");
}

void clv__plan_print(const clv_plan *plan, clv__text *text) {
    for (int i = 0; i < plan->n_places; i++) print_place(text, &plan->places[i], i);
    for (size_t i = 0; i < plan->n_nodes; i++) print_node(text, plan, i);
    for (size_t i = 0; i < plan->n_values; i++) print_value(text, plan, i);
    for (size_t i = 0; i < plan->n_transfers; i++) {
        const clv__transfer *transfer = &plan->transfers[i];
        clv__text_add(text, "transfer %zu: %d to %d, %zu bytes", i, transfer->from, transfer->to, transfer->bytes);
        if (transfer->shared)
            clv__text_add(text, ", lent%s", transfer->until_end ? " until the end" : "");
        else
            clv__text_add(text, ", staged at %zu", transfer->staged_at);
        clv__text_add(text, "\n");
    }
}
