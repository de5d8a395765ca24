// SPDX-License-Identifier: Apache-2.0
// Which transfers need no copy. Where both devices compute in the host's memory (clv__traits.host_memory),
// the receiver is given a buffer over the sender's memory: the value is shared instead of sent.
//
// A shared value must neither be freed nor changed before the receiver is done with it. The sender knows that
// the receiver is done when it has received something that the receiver sent after its last use: queues are
// in order, so everything before it in the receiver's queue is done by then. So a shared value lives until
// the first such receive. If none follows in the step, it lives to the step's end, and in the next step the
// sender does not write over it before the receiver has finished this one (await.c). A value that changes
// within the step, as a parameter does by its update, is shared only if the receiver is done with it before
// the change. Otherwise it is copied, as between any two devices.
//
// What is exchanged with other ranks is sent from the device's memory, and comes into it, if nothing else
// uses it between the sending and the receiving: the host writes there meanwhile.
//
// This cannot deadlock. Within a step nobody waits for anything new. A device that waits for the end of a
// step has left that step itself, so whoever waits for it there can go on.
#include <limits.h>

#include "plan/index.h"
#include "plan/shared/shared.h"
#include "plan/passes.h"

enum {
    MOST_ALIGNMENT = 4096, // where buffers begin: see buffer_pointer in device/backend.h
    MOST_PLACES = 64       // bits in clv__plan_node.awaits
};

typedef struct sharing {
    clv_plan *plan;
    clv__index index; // by root
} sharing;

bool clv__may_share(const clv_plan *plan, int from, int to) {
    for (int i = 0; i < plan->n_places; i++) { // tensors of all are aligned alike
        if (plan->places[i].device->info.alignment_bytes > MOST_ALIGNMENT) return false;
    }
    return plan->n_places <= MOST_PLACES && plan->places[from].device->traits.host_memory &&
           plan->places[to].device->traits.host_memory;
}

static bool is_possible(const sharing *s, const clv__transfer *transfer) {
    const clv_plan *plan = s->plan;
    const clv__value *from = &plan->values[plan->values[transfer->from].root],
                     *to = &plan->values[transfer->to];
    return clv__may_share(plan, from->place, to->place) && transfer->bytes > 0 &&
           from->segment != CLV__IN_INPUTS &&  // of which there are two
           !from->copy &&                      // not a copy of a copy
           to->segment == CLV__IN_ACTIVATIONS; // used by the receiver alone
}

/** The first receive at `to` of something sent from place `from` after position `after`; INT_MAX if there is
 *  none. */
static int first_receive(const sharing *s, int from, int to, int after) {
    const clv_plan *plan = s->plan;
    int first = INT_MAX;
    for (size_t i = 0; i < plan->n_transfers; i++) {
        const clv__transfer *t = &plan->transfers[i];
        if (plan->values[t->from].place == from && plan->values[t->to].place == to && t->bytes > 0 &&
            s->index.sent_at[i] > after && s->index.received_at[i] < first)
            first = s->index.received_at[i];
    }
    return first;
}

/** Position of the first node that changes it; INT_MAX: none does. */
static int written_at(const sharing *s, int root) {
    return s->index.written_at[root] < 0 ? INT_MAX : s->index.written_at[root];
}

static void try_to_share(const sharing *s, size_t number) {
    clv_plan *plan = s->plan;
    clv__transfer *transfer = &plan->transfers[number];
    if (!is_possible(s, transfer) || written_at(s, transfer->to) != INT_MAX) return;
    const int root = plan->values[transfer->from].root, written = written_at(s, root);
    clv__value *from = &plan->values[root], *to = &plan->values[transfer->to];
    if (written < s->index.sent_at[number]) return; // it changes, and may change again
    const int released = first_receive(s, to->place, from->place, to->last);
    if (written != INT_MAX && released >= written) return;
    if (released != INT_MAX) {
        if (from->last < released) from->last = released;
    } else if (from->segment != CLV__IN_SESSION) { // what is in the session stays as it is
        from->last = (int)plan->n_nodes;
        transfer->until_end = true;
    }
    transfer->shared = true;
    to->segment = CLV__IN_SHARED;
    to->owner = transfer->from;
}

/** Is the memory that ranks exchange used by nothing else meanwhile? */
static bool is_left_alone(const sharing *s, size_t number) {
    const clv_plan *plan = s->plan;
    const clv__transfer *transfer = &plan->transfers[number];
    const int root = plan->values[transfer->into].root;
    for (int at = s->index.sent_at[number] + 1; at < s->index.received_at[number]; at++)
        for (int i = 0; i < CLV__MAX_IN + CLV__MAX_OUT; i++) {
            const int *in = plan->nodes[at].in, *out = plan->nodes[at].out;
            const int value = i < CLV__MAX_IN ? in[i] : out[i - CLV__MAX_IN];
            if (value >= 0 && plan->values[value].root == root) return false;
        }
    for (size_t i = 0; i < plan->n_transfers; i++) // a device that was sent a gradient may read it still
        if (i != number && clv__exchanged_of(transfer)->kind != CLV__EXCHANGE_GATHER &&
            plan->values[plan->transfers[i].from].root == root &&
            s->index.sent_at[i] < s->index.sent_at[number])
            return false;
    return true;
}

static void try_to_exchange_there(const sharing *s, size_t number) {
    clv_plan *plan = s->plan;
    clv__transfer *transfer = &plan->transfers[number];
    if (transfer->into < 0 || !transfer->bytes) return;
    const clv__value *root = &plan->values[plan->values[transfer->into].root];
    transfer->shared = plan->places[root->place].device->traits.host_memory && !root->copy &&
                       root->segment != CLV__IN_INPUTS && is_left_alone(s, number);
}

static clv_status run(clv_plan *plan) {
    sharing s = {.plan = plan};
    if (plan->n_transfers == 0) return CLV_OK;
    const bool elsewhere = clv__plan_elsewhere(plan); // all ranks have the same plan then
    CLV_TRY(clv__index_make(plan, CLV__BY_ROOT, &s.index));
    for (size_t i = 0; i < plan->n_transfers; i++) {
        plan->transfers[i].shared = plan->transfers[i].until_end = false;
        if (!plan->transfers[i].exchanged)
            try_to_share(&s, i);
        else if (!elsewhere)
            try_to_exchange_there(&s, i);
    }
    clv__index_reset(&s.index);
    return CLV_OK;
}

const clv__pass clv__pass_share = {.run = run};
