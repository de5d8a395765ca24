// SPDX-License-Identifier: Apache-2.0
// Rewriting a plan by fates; see remake.h.
//
// Before a node of the backward pass that reads something dropped, the nodes that make it are put in once more, in their
// order, back to values that are still there: kept ones, inputs, parameters (which do not change before the updates, and
// those come last here: early.c moves some later), values received from another device. They read and write
// values of their own; later nodes read these. The same kernels get the same bytes, so the bits are the same: dropout's mask
// too, which is a function of the step and of the node's own number.
#include "plan/remake.h"

#include <stdlib.h>
#include <string.h>

#include "plan/variants.h"

/** So many nodes that compute again for each one of the base are too many: fates that ask for more are no good. */
enum { MOST_AGAIN = 4 };

static bool is_view(const clv__plan_node *node) {
    return node->work == CLV__COMPUTE && node->node->io.op->view;
}

/** A forward node that changes nothing, whose results nobody fetches. */
static bool repeatable(const clv__plan_node *node) {
    if (node->work != CLV__COMPUTE || node->node->phase != CLV__FORWARD || node->node->io.op->mutates)
        return false;
    for (int i = 0; i < node->node->io.n_out; i++) {
        if (node->node->out[i]->is_output) return false;
    }
    return node->node->io.n_out > 0;
}

/** Statistics that come with a large result stay: dropped, they would ask for the whole result again. */
static bool is_worth(const clv_plan *plan, const clv__plan_node *node, int output) {
    size_t largest = 0, bytes = plan->values[node->out[output]].bytes;
    for (int i = 0; i < node->node->io.n_out; i++) {
        size_t other = plan->values[node->out[i]].bytes;
        if (other > largest) largest = other;
    }
    return bytes >= largest / 16;
}

bool clv__remake_can(const clv__remake *remake, int base) {
    return repeatable(&remake->base[base]) && !is_view(&remake->base[base]);
}

// ---- begin and end ----------------------------------------------------------------------------------------------------

static void release(clv__remake *remake) {
    clv__arena_reset(&remake->arena);
    *remake = (clv__remake){0};
}

clv_status clv__remake_init(clv__remake *remake, clv_plan *plan) {
    const size_t n = plan->n_nodes, n_values = plan->n_values;
    *remake = (clv__remake){.plan = plan, .n_base = n, .n_values = n_values};
    clv__arena *arena = &remake->arena;
    if (!CLV__NEW(arena, remake->base, n) || !CLV__NEW(arena, remake->fate, n) ||
        !CLV__NEW(arena, remake->resolved, n) || !CLV__NEW(arena, remake->maker, n_values) ||
        !CLV__NEW(arena, remake->latest, n_values) || !CLV__NEW(arena, remake->asked, n) ||
        !CLV__NEW(arena, remake->made, n) || !CLV__NEW(arena, remake->pending, n) ||
        !CLV__NEW(arena, remake->work, n)) {
        clv_status status = clv__plan_no_memory(remake->plan);
        release(remake);
        return status;
    }
    memcpy(remake->base, plan->nodes, n * sizeof *remake->base);
    for (size_t i = 0; i < remake->n_values; i++) remake->maker[i] = -1;
    for (size_t i = 0; i < n; i++) {
        const clv__plan_node *node = &remake->base[i];
        remake->work[i] = clv__node_seconds(node);
        remake->base_work += remake->work[i];
        for (int k = 0; repeatable(node) && k < node->node->io.n_out; k++) {
            if (is_worth(plan, node, k)) remake->maker[node->out[k]] = (int)i;
        }
    }
    return CLV_OK;
}

void clv__remake_undo(clv__remake *remake) {
    clv_plan *plan = remake->plan;
    for (size_t i = 0; i < plan->n_nodes; i++) {
        if (plan->nodes[i].again) clv__launches_reset(&plan->nodes[i].launches);
    }
    // there is room: the plan had so many nodes when the base was taken
    memcpy(plan->nodes, remake->base, remake->n_base * sizeof *remake->base);
    plan->n_nodes = remake->n_base;
    plan->n_values = remake->n_values;
    release(remake);
}

clv_status clv__remake_finish(clv__remake *remake) {
    clv_plan *plan = remake->plan;
    for (size_t i = 0; i < plan->n_nodes; i++) {
        clv_status status = plan->nodes[i].again ? clv__variant_write(plan, &plan->nodes[i]) : CLV_OK;
        if (status == CLV_OK) continue;
        clv__remake_undo(remake);
        return status;
    }
    release(remake);
    return CLV_OK;
}

// ---- rewriting --------------------------------------------------------------------------------------------------------

/** Must this base node be computed again for the base node `reader`? */
static bool is_missing(const clv__remake *remake, int base, int reader) {
    if (base < 0 || remake->resolved[base] == CLV__KEEP) return false;
    return remake->resolved[base] == CLV__AGAIN_ONCE ? remake->made[base] < 0 : remake->made[base] != reader;
}

/** The value to read in place of a base value, for the base node `reader`. */
static int current(const clv__remake *remake, int value, int reader) {
    int base = value < 0 ? -1 : remake->maker[value];
    if (base < 0 || remake->resolved[base] == CLV__KEEP || remake->made[base] < 0) return value;
    return remake->resolved[base] == CLV__AGAIN_ONCE || remake->made[base] == reader ? remake->latest[value]
                                                                                     : value;
}

static clv_status compute_again(clv__remake *remake, int base, int reader) {
    clv_plan *plan = remake->plan;
    clv__plan_node node = remake->base[base];
    node.again = true;
    node.launches = (clv__launches){.workspace_bytes = node.launches.workspace_bytes};
    for (int i = 0; i < node.node->io.n_in; i++) node.in[i] = current(remake, node.in[i], reader);
    for (int i = 0; i < node.node->io.n_out; i++) {
        const int first = node.out[i];
        clv__value value = plan->values[first];
        value.of = first;
        CLV_TRY(clv__plan_append_value(plan, &value, &node.out[i]));
        remake->latest[first] = node.out[i];
    }
    remake->made[base] = reader;
    remake->extra_work += remake->work[base];
    return clv__plan_append(plan, &node);
}

static int ascending(const void *a, const void *b) {
    return *(const int *)a - *(const int *)b;
}

/** Compute again whatever the base node `reader` reads and is not there. */
static clv_status provide(clv__remake *remake, int reader) {
    int n = 0;
    for (int looked_at = -1; looked_at < n; looked_at++) { // pending nodes ask for others in turn
        const clv__plan_node *node = &remake->base[looked_at < 0 ? reader : remake->pending[looked_at]];
        for (int i = 0; i < node->node->io.n_in; i++) {
            int base = node->in[i] < 0 ? -1 : remake->maker[node->in[i]];
            if (!is_missing(remake, base, reader) || remake->asked[base] == reader) continue;
            remake->asked[base] = reader;
            remake->pending[n++] = base;
        }
    }
    qsort(remake->pending, (size_t)n, sizeof *remake->pending, ascending);
    for (int i = 0; i < n; i++) CLV_TRY(compute_again(remake, remake->pending[i], reader));
    return CLV_OK;
}

static void resolve(clv__remake *remake) {
    for (size_t i = 0; i < remake->n_base; i++) {
        const clv__plan_node *node = &remake->base[i];
        int viewed = is_view(node) && repeatable(node) ? remake->maker[node->in[0]] : -1;
        remake->resolved[i] = viewed >= 0                       ? remake->resolved[viewed]
                              : clv__remake_can(remake, (int)i) ? remake->fate[i]
                                                                : CLV__KEEP;
        remake->asked[i] = remake->made[i] = -1;
    }
    for (size_t i = 0; i < remake->n_values; i++) remake->latest[i] = -1;
}

clv_status clv__remake_apply(clv__remake *remake) {
    clv_plan *plan = remake->plan;
    plan->n_nodes = 0;
    plan->n_values = remake->n_values;
    remake->extra_work = 0;
    resolve(remake);
    for (int i = 0; i < (int)remake->n_base; i++) {
        clv__plan_node node = remake->base[i];
        if (node.work == CLV__COMPUTE && node.node->phase == CLV__BACKWARD) {
            CLV_TRY(provide(remake, i));
            for (int k = 0; k < node.node->io.n_in; k++) node.in[k] = current(remake, node.in[k], i);
        }
        remake->too_many = plan->n_nodes > MOST_AGAIN * remake->n_base + 64;
        if (remake->too_many) return CLV_OK;
        CLV_TRY(clv__plan_append(plan, &node));
    }
    return CLV_OK;
}
