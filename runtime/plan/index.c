// SPDX-License-Identifier: Apache-2.0
// The index of a plan's nodes.
#include "plan/index.h"

static int *none_of(clv__index *index, size_t n) {
    int *out = clv__arena_alloc(&index->arena, n + 1, sizeof *out);
    for (size_t i = 0; out && i < n; i++) out[i] = -1;
    return out;
}

static bool has_before(const clv__plan_node *node, int i) {
    for (int j = 0; j < i; j++) {
        if (node->in[j] == node->in[i]) return true;
    }
    return false;
}

static void note(const clv_plan *plan, clv__index_by by, int at, clv__index *index) {
    const clv__plan_node *node = &plan->nodes[at];
    const uint64_t mutates = node->work == CLV__COMPUTE ? node->node->io.op->mutates : 0;
    if (node->work == CLV__SEND) index->sent_at[node->transfer] = at;
    if (node->work == CLV__RECEIVE) index->received_at[node->transfer] = at;
    for (int i = 0; i < CLV__MAX_IN; i++) {
        if (node->in[i] < 0) continue;
        const int value = by == CLV__BY_ROOT ? plan->values[node->in[i]].root : node->in[i];
        index->read_at[value] = at;
        index->readers[value] += !has_before(node, i);
        if (mutates >> i & 1 && index->written_at[value] < 0) index->written_at[value] = at;
    }
    for (int i = 0; i < CLV__MAX_OUT; i++) {
        if (node->out[i] >= 0)
            index->made_at[by == CLV__BY_ROOT ? plan->values[node->out[i]].root : node->out[i]] = at;
    }
}

clv_status clv__index_make(const clv_plan *plan, clv__index_by by, clv__index *out) {
    *out = (clv__index){0};
    out->made_at = none_of(out, plan->n_values);
    out->read_at = none_of(out, plan->n_values);
    out->written_at = none_of(out, plan->n_values);
    out->readers = clv__arena_alloc(&out->arena, plan->n_values + 1, sizeof *out->readers);
    out->sent_at = none_of(out, plan->n_transfers);
    out->received_at = none_of(out, plan->n_transfers);
    if (!out->made_at || !out->read_at || !out->written_at || !out->readers || !out->sent_at || !out->received_at) {
        clv__index_reset(out);
        return clv__plan_no_memory(plan);
    }
    for (int at = 0; at < (int)plan->n_nodes; at++) note(plan, by, at, out);
    return CLV_OK;
}

void clv__index_reset(clv__index *index) {
    clv__arena_reset(&index->arena);
}
