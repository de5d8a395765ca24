// SPDX-License-Identifier: Apache-2.0
// Part of fuse: a gradient that is the sum of one made here and one that another device made (data parallel training) is
// added up by the update that reads it, so that it is never written and read again. In memory that both devices see (lend.c)
// that is a quarter of the bytes that the first replica moves while the others wait.
//
// Not where the other's gradient would be copied here: it would have to be kept until the updates, where now it is dropped
// as soon as it is added. And not where somebody else wants the sum, to fetch it, clip it or look for what is not finite.
//
// Such terms are sent and received just before the updates, all together. Until then the two devices need not wait for each other.
#include <stdlib.h>
#include <string.h>

#include "ops/elementwise.h"
#include "plan/plan.h"

typedef struct summing {
    clv_plan *plan;
    int *sum_at;     // by value: position of the sum that makes it, -1: none does
    int *receive_at; // by value: position of its receive, -1: it is not received
    int *readers;    // by value
    bool *gone;      // by position: sums that updates do
    bool *late;      // by position: sends and receives of their terms
    int *send_at;    // by transfer: position of its send
} summing;

static clv_status out_of_memory(const clv_plan *plan) {
    return clv__error_set(clv__plan_error(plan), CLV_E_HOST_MEMORY, "no host memory for the plan");
}

static void look(const summing *s) {
    const clv_plan *plan = s->plan;
    for (size_t i = 0; i < plan->n_values; i++) s->sum_at[i] = s->receive_at[i] = -1;
    for (int at = 0; at < (int)plan->n_nodes; at++) {
        const clv__plan_node *node = &plan->nodes[at];
        for (int i = 0; i < CLV__MAX_IN; i++)
            if (node->in[i] >= 0) s->readers[node->in[i]]++;
        if (node->work == CLV__RECEIVE) s->receive_at[node->out[0]] = at;
        if (node->work == CLV__SEND) s->send_at[node->transfer] = at;
        if (clv__by_kernels(plan, node) && !node->fused && clv__elementwise_adds(&node->node->io))
            s->sum_at[node->out[0]] = at;
    }
}

/** Is the value in memory of another device, to be read there by this update alone? */
static bool is_lent(const summing *s, int value) {
    const clv_plan *plan = s->plan;
    if (s->receive_at[value] < 0 || s->readers[value] != 1) return false;
    const clv__transfer *transfer = &plan->transfers[plan->nodes[s->receive_at[value]].transfer];
    return clv__plan_may_lend(plan, plan->values[transfer->from].place, plan->values[value].place);
}

/** Does the update do its gradient's sum? `grad`: which input that is. */
static bool takes(const summing *s, const clv__plan_node *update, int grad) {
    int value = update->in[grad], at = value < 0 ? -1 : s->sum_at[value];
    if (at < 0 || s->readers[value] != 1 || s->plan->values[value].tensor->is_output) return false;
    const clv__plan_node *sum = &s->plan->nodes[at];
    return sum->place == update->place && sum->node->phase == CLV__BACKWARD &&
           is_lent(s, sum->in[0]) != is_lent(s, sum->in[1]);
}

static clv_status take(const summing *s, clv__plan_node *update, int grad) {
    const int at = s->sum_at[update->in[grad]];
    const clv__plan_node *sum = &s->plan->nodes[at];
    clv__fused *fused;
    CLV_TRY(clv__fuse_begin(s->plan, update, &fused));
    for (int i = 0; i < 2; i++) {
        update->in[grad + i] = sum->in[i];
        fused->node.in[grad + i] = sum->node->in[i];
        fused->node.io.in[grad + i] = sum->node->io.in[i];
        if (!is_lent(s, sum->in[i])) continue;
        const int receive = s->receive_at[sum->in[i]];
        s->late[receive] = s->late[s->send_at[s->plan->nodes[receive].transfer]] = true;
    }
    memcpy(fused->also, sum->node->io.op->name, strlen(sum->node->io.op->name) + 1);
    fused->n++;
    s->gone[at] = true;
    return CLV_OK;
}

/** Of late ones: append the sends, or the receives. */
static void append_late(const summing *s, const clv__plan_node *before, size_t n, clv__work work) {
    for (size_t i = 0; i < n; i++)
        if (s->late[i] && before[i].work == work) s->plan->nodes[s->plan->n_nodes++] = before[i];
}

/** Leave out what is gone, and put what is late before the first update: all sends before all receives, so that no place
 *  waits for another's updates. */
static clv_status reorder(const summing *s) {
    clv_plan *plan = s->plan;
    clv__plan_node *before = clv__alloc(plan->n_nodes, sizeof *before);
    if (!before) return out_of_memory(plan);
    const size_t n = plan->n_nodes;
    memcpy(before, plan->nodes, n * sizeof *before);
    plan->n_nodes = 0;
    bool updating = false;
    for (size_t at = 0; at < n; at++) {
        const clv__plan_node *node = &before[at];
        if (!updating && node->work == CLV__COMPUTE && node->node->phase == CLV__UPDATE) {
            append_late(s, before, n, CLV__SEND);
            append_late(s, before, n, CLV__RECEIVE);
            updating = true;
        }
        if (!s->gone[at] && !s->late[at]) plan->nodes[plan->n_nodes++] = *node;
    }
    free(before);
    return CLV_OK;
}

static clv_status take_all(const summing *s) {
    clv_plan *plan = s->plan;
    look(s);
    for (size_t at = 0; at < plan->n_nodes; at++) {
        clv__plan_node *update = &plan->nodes[at];
        if (!clv__by_kernels(plan, update) || update->node->phase != CLV__UPDATE) continue;
        const clv__groups *groups = &update->node->io.op->groups;
        if (groups->sum && takes(s, update, groups->first + groups->sum))
            CLV_TRY(take(s, update, groups->first + groups->sum));
    }
    return reorder(s);
}

clv_status clv__plan_take_sums(clv_plan *plan) {
    if (plan->n_places == 1) return CLV_OK;
    summing s = {.plan = plan,
                 .sum_at = clv__alloc(plan->n_values, sizeof *s.sum_at),
                 .receive_at = clv__alloc(plan->n_values, sizeof *s.receive_at),
                 .readers = clv__alloc(plan->n_values, sizeof *s.readers),
                 .gone = clv__alloc(plan->n_nodes, sizeof *s.gone),
                 .late = clv__alloc(plan->n_nodes, sizeof *s.late),
                 .send_at = clv__alloc(plan->n_transfers, sizeof *s.send_at)};
    bool room = s.sum_at && s.receive_at && s.readers && s.gone && s.late && s.send_at;
    clv_status status = room ? take_all(&s) : out_of_memory(plan);
    free(s.sum_at);
    free(s.receive_at);
    free(s.readers);
    free(s.gone);
    free(s.late);
    free(s.send_at);
    return status;
}
