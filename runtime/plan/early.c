// SPDX-License-Identifier: Apache-2.0
// Part of memory: a large parameter is updated as soon as its gradient is there and the parameter has been read for the last
// time, instead of after the backward pass. So its gradient dies at once and the next one is written where it was, while a
// plan with all updates last holds all gradients at its end. Small parameters stay together in few launches at the end.
//
// Only the order changes, so the bits are the same. What hangs on all gradients (clipping by their norm, a look for what is
// not finite) keeps the updates where they were, in groups, and what reads a parameter late keeps its update there. A gradient
// that is fetched lives to the end in any case. Where several devices compute, updates stay last, because there they wait for
// others. And where nothing is fused, because that keeps the nodes as they were placed, in the order that a plan made anew
// begins with.
#include <stdlib.h>
#include <string.h>

#include "plan/plan.h"

enum { LARGE = 1 << 20 }; // bytes of a gradient, from which on a launch of its own costs next to nothing

bool clv__plan_updates_early(const clv_plan *plan, const clv__plan_node *at) {
    if (plan->no_fuse || plan->n_places != 1 || !clv__by_kernels(plan, at)) return false;
    const clv__op *op = at->node->io.op;
    if (at->node->phase != CLV__UPDATE || op->groups.size == 0 || clv__groups_of(&at->node->io) != 1)
        return false;
    for (int i = 0; i < op->groups.first; i++) {
        const clv_tensor *shared = at->node->in[i]; // by all updates; if it is made, then of all gradients
        if (shared && shared->node) return false;
    }
    size_t most = 0; // of what it reads and does not change
    for (int i = op->groups.first; i < at->node->io.n_in; i++) {
        if (at->in[i] < 0 || op->mutates & (1u << i)) continue;
        const size_t bytes = clv_tensor_bytes(plan->values[at->in[i]].tensor);
        if (bytes > most) most = bytes;
    }
    return most >= LARGE;
}

typedef struct moving {
    clv_plan *plan;
    int *used_at, *made_at; // by root: the last node so far that uses it, and that writes it; -1: none
    bool *moved;            // by position
    int *first, *next;      // of moved nodes, position + 1: first[i + 1] goes behind i, then next[]; 0 ends
    clv__plan_node *before; // the nodes as they were
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
        last = later(last, node->node->io.op->mutates & (1u << i) ? m->used_at[root] : m->made_at[root]);
    }
    return last;
}

static void note(const moving *m, const clv__plan_node *node, int at) {
    const uint32_t mutates = node->work == CLV__COMPUTE ? node->node->io.op->mutates : 0;
    for (int i = 0; i < CLV__MAX_IN; i++) {
        if (node->in[i] < 0) continue;
        const int root = m->plan->values[node->in[i]].root;
        m->used_at[root] = at;
        if (mutates & (1u << i)) m->made_at[root] = at;
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
        if (clv__plan_updates_early(plan, node)) {
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

static void move(const moving *m) {
    clv_plan *plan = m->plan;
    const int n = (int)plan->n_nodes;
    memcpy(m->before, plan->nodes, plan->n_nodes * sizeof *m->before);
    plan->n_nodes = 0;
    for (int at = -1; at < n; at++) {
        if (at >= 0 && !m->moved[at]) plan->nodes[plan->n_nodes++] = m->before[at];
        for (int also = m->first[at + 1]; also; also = m->next[also - 1])
            plan->nodes[plan->n_nodes++] = m->before[also - 1];
    }
}

clv_status clv__plan_early(clv_plan *plan, bool *moved) {
    *moved = false;
    if (plan->no_fuse || !plan->trains || plan->n_places > 1) return CLV_OK;
    moving m = {.plan = plan,
                .used_at = clv__alloc(plan->n_values, sizeof *m.used_at),
                .made_at = clv__alloc(plan->n_values, sizeof *m.made_at),
                .moved = clv__alloc(plan->n_nodes, sizeof *m.moved),
                .first = clv__alloc(plan->n_nodes + 1, sizeof *m.first),
                .next = clv__alloc(plan->n_nodes, sizeof *m.next),
                .before = clv__alloc(plan->n_nodes, sizeof *m.before)};
    clv_status status = CLV_OK;
    if (m.used_at && m.made_at && m.moved && m.first && m.next && m.before) {
        *moved = find_moves(&m);
        if (*moved) {
            string_moves(&m);
            move(&m);
        }
    } else {
        status = clv__error_set(clv__plan_error(plan), CLV_E_HOST_MEMORY, "no host memory for the plan");
    }
    free(m.used_at);
    free(m.made_at);
    free(m.moved);
    free(m.first);
    free(m.next);
    free(m.before);
    return status;
}
