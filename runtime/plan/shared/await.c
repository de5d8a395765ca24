// SPDX-License-Identifier: Apache-2.0
// Before which of its nodes a device waits until another has finished the last step. share.c says which
// devices have to; this pass finds how late they can. A shared value must not be written over, so the first
// node that writes where it lies waits: mostly the one that computes it again. A device that has received
// something from another in this step knows that the other has finished the last one. Until then the two are
// in two steps at once, which hides the updates of one behind the forward pass of the other.
#include "plan/passes.h"

/** Does [offset, offset + bytes) of a segment meet the memory of a value? */
static bool meets(const clv_plan *plan, int value, clv__segment segment, size_t offset, size_t bytes) {
    if (value < 0 || plan->values[value].segment != segment) return false;
    const clv__value *root = &plan->values[plan->values[value].root];
    return offset < root->offset + root->bytes && root->offset < offset + bytes;
}

/** Does the node, on the same device, write where the value lies? */
static bool writes_over(const clv_plan *plan, const clv__plan_node *node, const clv__value *value) {
    const bool computes = node->work == CLV__COMPUTE;
    const uint64_t mutates = computes ? node->node->io.op->mutates : 0;
    if (node->work == CLV__SEND || (computes && node->node->io.op->view)) return false;
    for (int i = 0; i < CLV__MAX_OUT; i++) {
        if (meets(plan, node->out[i], value->segment, value->offset, value->bytes)) return true;
    }
    for (int i = 0; i < CLV__MAX_IN; i++) {
        if (mutates >> i & 1 && meets(plan, node->in[i], value->segment, value->offset, value->bytes))
            return true;
    }
    const size_t workspace = node->launches.workspace_bytes;
    return workspace && node->workspace_in == value->segment &&
           value->offset < node->workspace_at + workspace &&
           node->workspace_at < value->offset + value->bytes;
}

/** The node of the sender that has to wait; NULL: none writes there. */
static clv__plan_node *first_that_waits(const clv_plan *plan, const clv__transfer *transfer) {
    const clv__value *value = &plan->values[plan->values[transfer->from].root];
    for (size_t at = 0; at < plan->n_nodes; at++) {
        clv__plan_node *node = &plan->nodes[at];
        if (node->place == value->place && writes_over(plan, node, value)) return node;
    }
    return NULL;
}

/** A device waits for another once, and not at all after it has received something from it. */
static void leave_out_needless(clv_plan *plan, int place) {
    uint64_t awaited = 0, past = 0;
    for (size_t at = 0; at < plan->n_nodes; at++) {
        clv__plan_node *node = &plan->nodes[at];
        if (node->place != place) continue;
        const clv__transfer *transfer = node->work == CLV__RECEIVE ? &plan->transfers[node->transfer] : NULL;
        if (transfer && transfer->bytes) past |= UINT64_C(1) << plan->values[transfer->from].place;
        node->awaits &= ~(awaited | past);
        awaited |= node->awaits;
    }
    plan->places[place].awaits = awaited;
}

static clv_status run(clv_plan *plan) {
    bool any = false; // then there are no more places than bits
    for (size_t at = 0; at < plan->n_nodes; at++) plan->nodes[at].awaits = 0;
    for (size_t i = 0; i < plan->n_transfers; i++) {
        const clv__transfer *transfer = &plan->transfers[i];
        if (!transfer->until_end) continue;
        clv__plan_node *node = first_that_waits(plan, transfer);
        any |= node != NULL;
        if (node) node->awaits |= UINT64_C(1) << plan->values[transfer->to].place;
    }
    for (int i = 0; i < plan->n_places; i++) {
        plan->places[i].awaits = 0;
        if (any) leave_out_needless(plan, i);
    }
    return CLV_OK;
}

const clv__pass clv__pass_await = {.run = run};
