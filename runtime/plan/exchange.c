// SPDX-License-Identifier: Apache-2.0
// Part of memory: of two devices that share updates (share.c) each does its large ones during the backward pass instead of after
// it. Memory serves two devices together little faster than one: at the end both would wait for it at the same time, with
// nothing else to do, while before that the other one computes.
//
// A device sends its term of a gradient when it has made it and has read the parameter for the last time. The other receives
// it, and updates, when it could have for a twentieth of the step (by the nominal cost of ops), so that they wait for each other
// only if one is so far behind. Where the backward pass ends before that, an update stays with the small ones. Every device
// keeps the order of its other nodes; all together are put in one order again, in which what is received was sent before. Only
// the order changes, so the bits are the same.
#include <stdlib.h>
#include <string.h>

#include "plan/plan.h"

/** A large update. */
typedef struct early {
    int at, place;
    int ready; // position of the last node of its place that it comes after, whatever the other place does
} early;

typedef struct exchange {
    clv_plan *plan;
    int *used_at;    // by root: the last node before the updates that uses it; -1: none
    int *made_at;    // the same: that makes it
    int *receive_at; // by value: position of its receive; -1: it is not received
    int *send_at;    // by transfer: position of its send
    int *readers;    // by value: nodes that read it
    bool *updated;   // by value: one of these is an update
    bool *late;      // by root: something that is done with the updates, and is none of these, uses it
    early *updates;
    int n;
    int *behind;       // by position: the node that this one goes right behind; itself: it stays
    int *first, *next; // lists of nodes that go behind one, position + 1: first[i], then next[]; 0 ends
    int *line, *end;   // positions place by place, each place's in its new order, and where it ends, by place
    int *head;         // by place: its next one
    bool *sent;        // by transfer: its send is in the plan's new order
} exchange;

static int later(int a, int b) {
    return a > b ? a : b;
}

static bool is_late(const clv__plan_node *node) {
    return node->work == CLV__COMPUTE && node->node->phase == CLV__UPDATE;
}

static void note(const exchange *x, int at) {
    const clv__plan_node *node = &x->plan->nodes[at];
    for (int i = 0; i < CLV__MAX_IN + CLV__MAX_OUT; i++) {
        const int value = i < CLV__MAX_IN ? node->in[i] : node->out[i - CLV__MAX_IN];
        if (value < 0) continue;
        const int root = x->plan->values[value].root;
        x->readers[value] += i < CLV__MAX_IN;
        if (is_late(node)) {
            x->updated[value] = true;
            x->late[root] |= !clv__plan_updates_early(x->plan, node);
            continue;
        }
        x->used_at[root] = at;
        if (i >= CLV__MAX_IN) x->made_at[root] = at;
    }
    if (node->work == CLV__RECEIVE) x->receive_at[node->out[0]] = at;
    if (node->work == CLV__SEND) x->send_at[node->transfer] = at;
}

static void look(const exchange *x) {
    for (size_t i = 0; i < x->plan->n_values; i++) x->used_at[i] = x->made_at[i] = x->receive_at[i] = -1;
    for (int at = 0; at < (int)x->plan->n_nodes; at++) {
        x->behind[at] = at;
        note(x, at);
    }
}

/** Does the value come with an update, for it alone? Then its receive goes where the update goes. */
static bool comes_along(const exchange *x, int value) {
    return value >= 0 && x->receive_at[value] >= 0 && x->readers[value] == 1 && x->updated[value];
}

static bool is_written(const clv__plan_node *update, int i) {
    return update->node->io.op->mutates >> i & 1;
}

/** Not an update for which the other place sends nothing: it may still read the parameter, which the lender then has to leave alone. */
static bool can_move(const exchange *x, const clv__plan_node *update, early *found) {
    bool awaits = false;
    for (int i = update->node->io.op->groups.first; i < update->node->io.n_in; i++) {
        const int value = update->in[i];
        awaits |= comes_along(x, value);
        if (value < 0 || comes_along(x, value)) continue;
        const int root = x->plan->values[value].root;
        if (x->late[root]) return false;
        found->ready = later(found->ready, is_written(update, i) ? x->used_at[root] : x->made_at[root]);
    }
    return awaits && found->ready >= 0;
}

static void find_updates(exchange *x) {
    for (int at = 0; at < (int)x->plan->n_nodes; at++) {
        const clv__plan_node *node = &x->plan->nodes[at];
        early found = {.at = at, .place = node->place, .ready = -1};
        if (is_late(node) && clv__plan_updates_early(x->plan, node) && can_move(x, node, &found))
            x->updates[x->n++] = found;
    }
}

/** The node behind which the sender of a term of this update has made it, and no longer reads what the update changes. */
static int sent_behind(const exchange *x, const clv__plan_node *update, const clv__transfer *term) {
    const clv_plan *plan = x->plan;
    const int place = plan->values[term->from].place;
    int behind = x->made_at[plan->values[term->from].root];
    for (size_t v = 0; v < plan->n_values; v++) {
        const clv__value *value = &plan->values[v];
        if (value->place != place || comes_along(x, (int)v)) continue;
        for (int i = 0; i < update->node->io.n_in; i++)
            if (is_written(update, i) && update->in[i] >= 0 &&
                plan->values[update->in[i]].tensor == value->tensor)
                behind = later(behind, x->used_at[value->root]);
    }
    return behind;
}

/** The node behind which a device has done a twentieth of its step since the update was ready; -1: it has done all before. */
static int slot_of(const exchange *x, const early *update) {
    const clv_plan *plan = x->plan;
    double all = 0, since = 0;
    for (size_t at = 0; at < plan->n_nodes; at++)
        if (plan->nodes[at].place == update->place) all += clv__node_seconds(&plan->nodes[at]);
    for (int at = update->ready + 1; at < (int)plan->n_nodes; at++) {
        const clv__plan_node *node = &plan->nodes[at];
        if (node->place != update->place || node->work != CLV__COMPUTE || is_late(node)) continue;
        since += clv__node_seconds(node);
        if (since >= all / 20) return at;
    }
    return -1;
}

/** Say where each goes: its terms' sends behind what makes them, receives and update into its slot. */
static void find_slots(const exchange *x) {
    for (int i = 0; i < x->n; i++) {
        const clv__plan_node *update = &x->plan->nodes[x->updates[i].at];
        const int slot = slot_of(x, &x->updates[i]);
        if (slot >= 0) x->behind[x->updates[i].at] = slot;
        for (int j = 0; j < update->node->io.n_in; j++) {
            if (!comes_along(x, update->in[j])) continue;
            const int receive = x->receive_at[update->in[j]], number = x->plan->nodes[receive].transfer;
            const clv__transfer *transfer = &x->plan->transfers[number];
            if (slot >= 0) x->behind[receive] = slot;
            if (x->plan->values[transfer->from].tensor->kind == CLV__VALUE)
                x->behind[x->send_at[number]] = sent_behind(x, update, transfer);
        }
    }
}

/** The nodes of each place in their new order. Of several behind one node, the first stays the first. */
static void line_up(const exchange *x) {
    const clv_plan *plan = x->plan;
    for (int at = (int)plan->n_nodes - 1; at >= 0; at--) {
        if (x->behind[at] == at) continue;
        x->next[at] = x->first[x->behind[at]];
        x->first[x->behind[at]] = at + 1;
    }
    int n = 0;
    for (int place = 0; place < plan->n_places; place++) {
        x->head[place] = n;
        for (int at = 0; at < (int)plan->n_nodes; at++) {
            if (plan->nodes[at].place != place || x->behind[at] != at) continue;
            x->line[n++] = at;
            for (int also = x->first[at]; also; also = x->next[also - 1]) x->line[n++] = also - 1;
        }
        x->end[place] = n;
    }
}

/** Append what a place can do before it has to wait for a send; has it done anything? */
static bool go_on(const exchange *x, int place, const clv__plan_node *before) {
    clv_plan *plan = x->plan;
    const int from = x->head[place];
    for (; x->head[place] < x->end[place]; x->head[place]++) {
        const clv__plan_node *node = &before[x->line[x->head[place]]];
        if (node->work == CLV__RECEIVE && !x->sent[node->transfer]) break;
        if (node->work == CLV__SEND) x->sent[node->transfer] = true;
        plan->nodes[plan->n_nodes++] = *node;
    }
    return x->head[place] > from;
}

/** One order of all; as it was if each place would wait for another. */
static clv_status merge(const exchange *x, bool *moved) {
    clv_plan *plan = x->plan;
    const size_t n = plan->n_nodes;
    clv__plan_node *before = clv__alloc(n, sizeof *before);
    if (!before)
        return clv__error_set(clv__plan_error(plan), CLV_E_HOST_MEMORY, "no host memory for the plan");
    memcpy(before, plan->nodes, n * sizeof *before);
    plan->n_nodes = 0;
    for (bool any = true; any;) {
        any = false;
        for (int place = 0; place < plan->n_places; place++) any |= go_on(x, place, before);
    }
    *moved = plan->n_nodes == n;
    if (!*moved) memcpy(plan->nodes, before, n * sizeof *before);
    plan->n_nodes = n;
    free(before);
    return CLV_OK;
}

clv_status clv__plan_exchange(clv_plan *plan, bool *moved) {
    *moved = false;
    if (!plan->shares) return CLV_OK;
    const size_t values = plan->n_values, nodes = plan->n_nodes, places = (size_t)plan->n_places;
    exchange x = {.plan = plan,
                  .used_at = clv__alloc(values, sizeof *x.used_at),
                  .made_at = clv__alloc(values, sizeof *x.made_at),
                  .receive_at = clv__alloc(values, sizeof *x.receive_at),
                  .send_at = clv__alloc(plan->n_transfers, sizeof *x.send_at),
                  .readers = clv__alloc(values, sizeof *x.readers),
                  .updated = clv__alloc(values, sizeof *x.updated),
                  .late = clv__alloc(values, sizeof *x.late),
                  .updates = clv__alloc(nodes, sizeof *x.updates),
                  .behind = clv__alloc(nodes, sizeof *x.behind),
                  .first = clv__alloc(nodes, sizeof *x.first),
                  .next = clv__alloc(nodes, sizeof *x.next),
                  .line = clv__alloc(nodes, sizeof *x.line),
                  .end = clv__alloc(places, sizeof *x.end),
                  .head = clv__alloc(places, sizeof *x.head),
                  .sent = clv__alloc(plan->n_transfers, sizeof *x.sent)};
    clv_status status = CLV_OK;
    if (x.used_at && x.made_at && x.receive_at && x.send_at && x.readers && x.updated && x.late &&
        x.updates && x.behind && x.first && x.next && x.line && x.end && x.head && x.sent) {
        look(&x);
        find_updates(&x);
        if (x.n) {
            find_slots(&x);
            line_up(&x);
            status = merge(&x, moved);
        }
    } else {
        status = clv__error_set(clv__plan_error(plan), CLV_E_HOST_MEMORY, "no host memory for the plan");
    }
    free(x.used_at);
    free(x.made_at);
    free(x.receive_at);
    free(x.send_at);
    free(x.readers);
    free(x.updated);
    free(x.late);
    free(x.updates);
    free(x.behind);
    free(x.first);
    free(x.next);
    free(x.line);
    free(x.end);
    free(x.head);
    free(x.sent);
    return status;
}
