// SPDX-License-Identifier: Apache-2.0
// In data parallel training a gradient is the sum of one computed here and one from another device. The
// update that reads the sum adds the terms itself, so the sum is never written and read again. In memory that
// both devices see (share.c) this saves a quarter of the bytes that the first replica moves while the others
// wait.
//
// The pass leaves a sum alone where the other's gradient would be copied: the copy would have to stay until
// the updates, and now it is dropped as soon as it is added. It leaves a sum alone, too, where somebody else
// reads it, to fetch it, to clip it, or to look for values that are not finite.
//
// Such terms are sent and received just before the updates, all together, so the two devices need not wait
// for each other before.
#include <stdio.h>

#include "ops/elementwise.h"
#include "plan/index.h"
#include "plan/shared/shared.h"
#include "plan/passes.h"

typedef struct summing {
    clv_plan *plan;
    clv__index index;
    bool *gone; // by position: sums that updates do
    bool *late; // by position: sends and receives of their terms
} summing;

static const clv__plan_node *maker_of(const summing *s, int value) {
    return clv__index_maker(&s->index, s->plan, value);
}

/** Is the value in memory of another device, to be read there by this update alone? */
static bool is_shared(const summing *s, int value) {
    const clv_plan *plan = s->plan;
    const clv__plan_node *receive = maker_of(s, value);
    if (!receive || receive->work != CLV__RECEIVE || s->index.readers[value] != 1) return false;
    const clv__transfer *transfer = &plan->transfers[receive->transfer];
    return clv__may_share(plan, plan->values[transfer->from].place, plan->values[value].place);
}

/** The sum that an update does itself, of its input `grad`; NULL: it does none. */
static const clv__plan_node *sum_of(const summing *s, const clv__plan_node *update, int grad) {
    const int value = update->in[grad];
    const clv__plan_node *sum = maker_of(s, value);
    if (!sum || !clv__by_kernels(s->plan, sum) || sum->fused || !clv__elementwise_adds(&sum->node->io))
        return NULL;
    if (s->index.readers[value] != 1 || s->plan->values[value].tensor->is_output) return NULL;
    const bool fits = sum->place == update->place && sum->node->phase == CLV__BACKWARD &&
                      is_shared(s, sum->in[0]) != is_shared(s, sum->in[1]);
    return fits ? sum : NULL;
}

static clv_status take(const summing *s, clv__plan_node *update, const clv__plan_node *sum, int grad) {
    s->gone[s->index.made_at[update->in[grad]]] = true;
    CLV_TRY(clv__fuse_begin(s->plan, update));
    clv__fused *fused = update->fused;
    for (int i = 0; i < 2; i++) {
        update->in[grad + i] = sum->in[i];
        fused->node.in[grad + i] = sum->node->in[i];
        fused->node.in_desc[grad + i] = sum->node->io.in[i];
        if (!is_shared(s, sum->in[i])) continue;
        const int transfer = maker_of(s, sum->in[i])->transfer;
        s->late[s->index.received_at[transfer]] = s->late[s->index.sent_at[transfer]] = true;
    }
    snprintf(fused->also, sizeof fused->also, "%s", sum->node->io.op->name);
    fused->n++;
    return CLV_OK;
}

static clv_status take_all(const summing *s) {
    clv_plan *plan = s->plan;
    for (size_t at = 0; at < plan->n_nodes; at++) {
        clv__plan_node *update = &plan->nodes[at];
        if (!clv__by_kernels(plan, update) || update->node->phase != CLV__UPDATE) continue;
        const clv__groups *groups = &update->node->io.op->groups;
        const int grad = groups->first + groups->sum;
        const clv__plan_node *sum = groups->sum ? sum_of(s, update, grad) : NULL;
        if (sum) CLV_TRY(take(s, update, sum, grad));
    }
    return CLV_OK;
}

/** Of late ones: append the sends, or the receives. */
static clv_status append_late(const summing *s, const clv__rewrite *before, clv__work work) {
    for (size_t i = 0; i < before->n; i++)
        if (s->late[i] && before->nodes[i].work == work)
            CLV_TRY(clv__plan_append(s->plan, &before->nodes[i]));
    return CLV_OK;
}

/** Leave out what is gone, and put what is late before the first update: all sends before all receives, so
 *  that no place waits for another's updates. */
static clv_status reorder(const summing *s, const clv__rewrite *before) {
    bool updating = false;
    for (size_t at = 0; at < before->n; at++) {
        const clv__plan_node *node = &before->nodes[at];
        if (!updating && node->work == CLV__COMPUTE && node->node->phase == CLV__UPDATE) {
            CLV_TRY(append_late(s, before, CLV__SEND));
            CLV_TRY(append_late(s, before, CLV__RECEIVE));
            updating = true;
        }
        if (!s->gone[at] && !s->late[at]) CLV_TRY(clv__plan_append(s->plan, node));
    }
    return CLV_OK;
}

static clv_status add_up(summing *s, clv__arena *scratch) {
    clv__rewrite before;
    s->gone = clv__arena_alloc(scratch, s->plan->n_nodes + 1, sizeof *s->gone);
    s->late = clv__arena_alloc(scratch, s->plan->n_nodes + 1, sizeof *s->late);
    if (!s->gone || !s->late) return clv__plan_no_memory(s->plan);
    CLV_TRY(take_all(s));
    CLV_TRY(clv__rewrite_begin(s->plan, &before));
    const clv_status status = reorder(s, &before);
    clv__rewrite_end(&before);
    return status;
}

static clv_status run(clv_plan *plan) {
    summing s = {.plan = plan};
    clv__arena scratch = {0};
    if (plan->n_places == 1 || plan->no_fuse) return CLV_OK;
    CLV_TRY(clv__index_make(plan, CLV__BY_VALUE, &s.index));
    const clv_status status = add_up(&s, &scratch);
    clv__index_reset(&s.index);
    clv__arena_reset(&scratch);
    return status;
}

const clv__pass clv__pass_sums = {.run = run};
