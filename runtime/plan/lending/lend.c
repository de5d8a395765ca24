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

#include "plan/index.h"
#include "plan/lending/lending.h"
#include "plan/passes.h"

enum {
    MOST_ALIGNMENT = 4096, // where buffers begin: see buffer_pointer in device/backend.h
    MOST_PLACES = 64       // bits in clv__plan_node.awaits
};

typedef struct lending {
    clv_plan *plan;
    clv__index index; // by root
} lending;

bool clv__may_lend(const clv_plan *plan, int from, int to) {
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
    return clv__may_lend(plan, from->place, to->place) && transfer->bytes > 0 &&
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
            l->index.sent_at[i] > after && l->index.received_at[i] < first)
            first = l->index.received_at[i];
    }
    return first;
}

/** Position of the first node that changes it; INT_MAX: none does. */
static int written_at(const lending *l, int root) {
    return l->index.written_at[root] < 0 ? INT_MAX : l->index.written_at[root];
}

static void try_to_lend(const lending *l, size_t number) {
    clv_plan *plan = l->plan;
    clv__transfer *transfer = &plan->transfers[number];
    if (!is_possible(l, transfer) || written_at(l, transfer->to) != INT_MAX) return;
    const int root = plan->values[transfer->from].root, written = written_at(l, root);
    clv__value *from = &plan->values[root], *to = &plan->values[transfer->to];
    if (written < l->index.sent_at[number]) return; // it changes, and may change again
    const int released = first_receive(l, to->place, from->place, to->last);
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

clv_status clv__pass_lend(clv_plan *plan) {
    lending l = {.plan = plan};
    if (plan->n_places == 1) return CLV_OK;
    CLV_TRY(clv__index_make(plan, CLV__BY_ROOT, &l.index));
    for (size_t i = 0; i < plan->n_transfers; i++) {
        plan->transfers[i].lent = plan->transfers[i].until_end = false;
        try_to_lend(&l, i);
    }
    clv__index_reset(&l.index);
    return CLV_OK;
}
