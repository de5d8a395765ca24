// SPDX-License-Identifier: Apache-2.0
// Which transfers need no copy. Where two devices compute in the host's memory (clv__traits.host_memory) the receiver is
// given a buffer over the sender's memory: the sender lends the value instead of sending it.
//
// What is lent must neither die nor change until the borrower is done with it. The lender knows that it is when it has
// received something that the borrower sent after its last use: queues are in order, so what stands before in the
// borrower's queue is done by then. So a lent value lives, at the lender, until the first such receive. If none follows in
// the step, it lives to the step's end, and in the next step the lender writes nothing over it before the borrower has
// finished this one (await.c). What changes within the step (a parameter, by its update) is lent only if it is given back before,
// and copied otherwise, as between any two devices.
//
// This brings no standstill: within a step nobody waits for anything new, and a device that awaits the end of a step is
// past that step itself, so whoever waits for it there can go on.
#include <limits.h>
#include <stdlib.h>

#include "plan/plan.h"

enum {
    MOST_ALIGNMENT = 4096, // where buffers begin: see buffer_pointer in device/backend.h
    MOST_PLACES = 64       // bits in clv__plan_node.awaits
};

typedef struct lending {
    clv_plan *plan;
    int *sent_at, *received_at; // by transfer: positions of its ends
    int *written_at;            // by root: position of the first node that changes it; INT_MAX: none does
} lending;

static void find_positions(const lending *l) {
    const clv_plan *plan = l->plan;
    for (size_t i = 0; i < plan->n_values; i++) l->written_at[i] = INT_MAX;
    for (int at = 0; at < (int)plan->n_nodes; at++) {
        const clv__plan_node *node = &plan->nodes[at];
        if (node->work == CLV__SEND) l->sent_at[node->transfer] = at;
        if (node->work == CLV__RECEIVE) l->received_at[node->transfer] = at;
        for (int i = 0; i < CLV__MAX_IN; i++) {
            if (node->in[i] < 0) continue;
            const bool writes = node->work == CLV__COMPUTE && node->node->io.op->mutates & (1u << i);
            const int root = plan->values[node->in[i]].root;
            if (writes && l->written_at[root] > at) l->written_at[root] = at;
        }
    }
}

bool clv__plan_may_lend(const clv_plan *plan, int from, int to) {
    for (int i = 0; i < plan->n_places; i++) { // tensors of all are aligned alike
        if (plan->places[i].device->info.alignment_bytes > MOST_ALIGNMENT) return false;
    }
    return plan->n_places <= MOST_PLACES && plan->places[from].device->traits.host_memory &&
           plan->places[to].device->traits.host_memory;
}

static bool is_possible(const lending *l, const clv__transfer *transfer) {
    const clv_plan *plan = l->plan;
    const clv__value *from = &plan->values[plan->values[transfer->from].root],
                     *to = &plan->values[transfer->to];
    return clv__plan_may_lend(plan, from->place, to->place) && transfer->bytes > 0 &&
           from->segment != CLV__IN_INPUTS &&  // of which there are two
           !from->copy &&                      // what is borrowed is not lent on
           to->segment == CLV__IN_ACTIVATIONS; // nothing but a copy for the borrower's own use
}

/** The first receive at `to` of something sent from place `from` after position `after`; INT_MAX if there is none. */
static int first_receive(const lending *l, int from, int to, int after) {
    const clv_plan *plan = l->plan;
    int first = INT_MAX;
    for (size_t i = 0; i < plan->n_transfers; i++) {
        const clv__transfer *t = &plan->transfers[i];
        if (plan->values[t->from].place == from && plan->values[t->to].place == to && t->bytes > 0 &&
            l->sent_at[i] > after && l->received_at[i] < first)
            first = l->received_at[i];
    }
    return first;
}

static void try_to_lend(const lending *l, size_t number) {
    clv_plan *plan = l->plan;
    clv__transfer *transfer = &plan->transfers[number];
    if (!is_possible(l, transfer) || l->written_at[transfer->to] != INT_MAX) return;
    int root = plan->values[transfer->from].root, written = l->written_at[root];
    clv__value *from = &plan->values[root], *to = &plan->values[transfer->to];
    if (written < l->sent_at[number]) return; // it changes, and may change again
    int released = first_receive(l, to->place, from->place, to->last);
    if (written != INT_MAX && released >= written) return;
    if (released != INT_MAX) {
        if (from->last < released) from->last = released;
    } else if (from->segment != CLV__IN_SESSION) { // what is in the session stays as it is
        from->last = (int)plan->n_nodes;
        transfer->until_end = true;
    }
    transfer->lent = true;
    to->segment = CLV__IN_LENDER;
    to->lender = transfer->from;
}

static void lend_all(const lending *l) {
    clv_plan *plan = l->plan;
    find_positions(l);
    for (size_t i = 0; i < plan->n_transfers; i++) {
        plan->transfers[i].lent = plan->transfers[i].until_end = false;
        try_to_lend(l, i);
    }
}

clv_status clv__plan_lend(clv_plan *plan) {
    lending l = {.plan = plan,
                 .sent_at = clv__alloc(plan->n_transfers, sizeof *l.sent_at),
                 .received_at = clv__alloc(plan->n_transfers, sizeof *l.received_at),
                 .written_at = clv__alloc(plan->n_values, sizeof *l.written_at)};
    clv_status status = CLV_OK;
    if (l.sent_at && l.received_at && l.written_at)
        lend_all(&l);
    else
        status = clv__error_set(clv__plan_error(plan), CLV_E_HOST_MEMORY, "no host memory for the plan");
    free(l.sent_at);
    free(l.received_at);
    free(l.written_at);
    return status;
}
