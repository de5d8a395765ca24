// SPDX-License-Identifier: Apache-2.0
// A large parameter is updated as soon as its gradient is there and the parameter has been read for the last time, instead of
// after the backward pass. So its gradient dies at once and the next one is written where it was, while a plan with all updates last
// holds all gradients at its end. Small parameters stay together in few launches at the end (groups.c says which are which).
//
// Only the order changes, so the bits are the same. Where updates depend on all gradients (clipping by their norm, a search for
// values that are not finite), they stay last, in groups. A parameter that is read late is updated late. A gradient that is
// fetched lives to the end in any case.
#include "plan/passes.h"
#include "plan/updates.h"

typedef struct moving {
    clv_plan *plan;
    int *used_at, *made_at; // by root: the last node so far that uses it, and that writes it; -1: none
    bool *moved;            // by position
    int *first, *next;      // of moved nodes, position + 1: first[i + 1] goes behind i, then next[]; 0 ends
} moving;

static int later(int a, int b) {
    return a > b ? a : b;
}

/** The last of the nodes so far that this one must come after. */
static int last_needed(const moving *m, const clv__plan_node *node) {
    int last = -1;
    for (int i = 0; i < node->node->io.n_in; i++) {
        if (node->in[i] < 0) continue;
        const int root = m->plan->values[node->in[i]].root;
        last = later(last, node->node->io.op->mutates >> i & 1 ? m->used_at[root] : m->made_at[root]);
    }
    return last;
}

static void note(const moving *m, const clv__plan_node *node, int at) {
    const uint64_t mutates = node->work == CLV__COMPUTE ? node->node->io.op->mutates : 0;
    for (int i = 0; i < CLV__MAX_IN; i++) {
        if (node->in[i] < 0) continue;
        const int root = m->plan->values[node->in[i]].root;
        m->used_at[root] = at;
        if (mutates >> i & 1) m->made_at[root] = at;
    }
    for (int i = 0; i < CLV__MAX_OUT; i++) {
        if (node->out[i] < 0) continue;
        const int root = m->plan->values[node->out[i]].root;
        m->used_at[root] = m->made_at[root] = at;
    }
}

/** Where each large update goes, for now in `next`; is any moved? */
static bool find_moves(const moving *m) {
    const clv_plan *plan = m->plan;
    bool any = false;
    int other = -1; // the last node so far that is none of these updates
    for (size_t i = 0; i < plan->n_values; i++) m->used_at[i] = m->made_at[i] = -1;
    for (int at = 0; at < (int)plan->n_nodes; at++) {
        const clv__plan_node *node = &plan->nodes[at];
        if (clv__update_is_early(plan, node)) {
            m->next[at] = last_needed(m, node);
            m->moved[at] = m->next[at] < other;
            any |= m->moved[at];
        } else {
            other = at;
        }
        note(m, node, at);
    }
    return any;
}

/** Of several that go behind one node, the first stays the first. */
static void string_moves(const moving *m) {
    for (int at = (int)m->plan->n_nodes - 1; at >= 0; at--) {
        if (!m->moved[at]) continue;
        int *first = &m->first[m->next[at] + 1];
        m->next[at] = *first;
        *first = at + 1;
    }
}

static clv_status move(const moving *m, const clv__rewrite *before) {
    for (int at = -1; at < (int)before->n; at++) {
        if (at >= 0 && !m->moved[at]) CLV_TRY(clv__plan_append(m->plan, &before->nodes[at]));
        for (int also = m->first[at + 1]; also; also = m->next[also - 1])
            CLV_TRY(clv__plan_append(m->plan, &before->nodes[also - 1]));
    }
    return CLV_OK;
}

static clv_status find_and_move(moving *m, clv__arena *scratch) {
    clv_plan *plan = m->plan;
    const size_t values = plan->n_values + 1, nodes = plan->n_nodes + 1;
    if (!CLV__NEW(scratch, m->used_at, values) || !CLV__NEW(scratch, m->made_at, values) ||
        !CLV__NEW(scratch, m->moved, nodes) || !CLV__NEW(scratch, m->first, nodes) ||
        !CLV__NEW(scratch, m->next, nodes))
        return clv__plan_no_memory(plan);
    if (!find_moves(m)) return CLV_OK;
    string_moves(m);
    clv__rewrite before;
    CLV_TRY(clv__rewrite_begin(plan, &before));
    const clv_status status = move(m, &before);
    clv__rewrite_end(&before);
    return status;
}

static clv_status run(clv_plan *plan) {
    moving m = {.plan = plan};
    clv__arena scratch = {0};
    bool any = false;
    for (size_t i = 0; i < plan->n_nodes; i++) any |= clv__update_is_early(plan, &plan->nodes[i]);
    if (!any) return CLV_OK;
    const clv_status status = find_and_move(&m, &scratch);
    clv__arena_reset(&scratch);
    return status;
}

const clv__pass clv__pass_early = {.run = run};
