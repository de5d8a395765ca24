// SPDX-License-Identifier: Apache-2.0
// An elementwise op, or a batch norm with running statistics, is applied to the newest of the results that it reads, before that
// is stored, if nothing else reads that result (clv__epilogue): no launch, and one pass over memory less. It runs where that
// result is made: everything else that it reads is there by then. The variant of the op that makes it is chosen as without an
// epilogue, so no faster variant is lost. An op whose variant is pinned by name stays a launch of its own.
//
// The graph stays as it is: what stands for several nodes is the plan's own (clv__fused). The host device runs references, node
// by node.
#include <stdio.h>
#include <string.h>

#include "graph/signature.h"
#include "ops/epilogue.h"
#include "plan/index.h"
#include "plan/passes.h"
#include "plan/variants.h"

typedef struct threading {
    clv_plan *plan;
    clv__index index;
    int *moved_to; // by value: position of the node that makes it since, plus one
    bool *gone;    // by position: done with another node
} threading;

/** Where the value is made, now that steps are done with nodes before them. */
static int made_at(const threading *t, int value) {
    return t->moved_to[value] ? t->moved_to[value] - 1 : t->index.made_at[value];
}

/** The value that a node reads and that was made last; -1: none was made. */
static int newest_input(const threading *t, const clv__plan_node *at) {
    int newest = -1;
    for (int i = 0; i < CLV__MAX_IN; i++) {
        int value = at->in[i];
        if (value >= 0 && made_at(t, value) >= 0 && (newest < 0 || made_at(t, value) > made_at(t, newest)))
            newest = value;
    }
    return newest;
}

/** Does the step read another result of the node that makes the value? */
static bool reads_sibling(const threading *t, const clv__plan_node *step, int value) {
    for (int i = 0; i < CLV__MAX_IN; i++) {
        if (step->in[i] >= 0 && step->in[i] != value && made_at(t, step->in[i]) == made_at(t, value))
            return true;
    }
    return false;
}

/** Is the value nothing but an intermediate result of a node that can have an epilogue, for this step? Sums of gradients are
 *  left alone: they are made in place, whatever adds to them. */
static bool can_follow(const threading *t, const clv__plan_node *step, int value) {
    const clv__plan_node *base = &t->plan->nodes[made_at(t, value)];
    const clv__value *before = &t->plan->values[value], *after = &t->plan->values[step->out[0]];
    return clv__by_kernels(t->plan, base) && base->place == step->place && base->node->io.op->epilogue &&
           base->out[0] == value && base->node->phase == step->node->phase && t->index.readers[value] == 1 &&
           !reads_sibling(t, step, value) && !before->tensor->is_output &&
           before->tensor->category != CLV_GRADIENTS && after->tensor->category != CLV_GRADIENTS &&
           clv_shape_equal(&before->desc.shape, &after->desc.shape) &&
           (after->desc.dtype == CLV_DTYPE_F32 || base->node->io.op->half_out & 1);
}

/** Which of the further inputs a value is; a new one if it was none yet. -1: there is no room for it. */
static int further_input(clv__epilogue *epilogue, int further[CLV__EPILOGUE_INPUTS], int value,
                         bool by_channel) {
    int alike = 0;
    for (int k = 0; k < epilogue->n_in; k++) {
        if (epilogue->by_channel[k] != by_channel) continue;
        if (further[k] == value) return k;
        alike++;
    }
    if (alike == (by_channel ? CLV__EPILOGUE_CHANNELS : CLV__EPILOGUE_ELEMENTS) ||
        epilogue->first + epilogue->n_in == CLV__MAX_IN)
        return -1;
    epilogue->by_channel[epilogue->n_in] = by_channel;
    further[epilogue->n_in] = value;
    return epilogue->n_in++;
}

/** The epilogue with one step more, and a value for each of its further inputs; false if the op that it is done to does not give
 *  the step what it reads, or has no room for it. */
static bool add_step(const clv__op *base, clv__epilogue *epilogue, int further[CLV__EPILOGUE_INPUTS],
                     const clv__plan_node *at, int so_far) {
    const clv__op_io *io = &at->node->io;
    if (epilogue->n_steps == CLV__EPILOGUE_STEPS) return false;
    clv__epilogue_step *step = &epilogue->steps[epilogue->n_steps++];
    *step = (clv__epilogue_step){.op = io->op, .attrs = io->attrs};
    for (int i = 0; i < io->n_in; i++) {
        if (!clv__has_in(io, i)) {
            step->from[i] = CLV__ABSENT;
        } else if (at->in[i] == so_far) {
            step->from[i] = CLV__SO_FAR;
        } else {
            clv__step_input kind = clv__epilogue_input(base, io, i);
            if (kind == CLV__STEP_OTHER) return false;
            step->from[i] = further_input(epilogue, further, at->in[i], kind == CLV__STEP_CHANNEL);
            if (step->from[i] < 0) return false;
        }
    }
    return clv__epilogue_fits(epilogue);
}

/** Does the variant that the op has without it do the epilogue? `use`: the op's with it. */
static clv_status ask_variant(const clv_plan *plan, const clv__plan_node *base, const clv__op_io *use,
                              bool *does) {
    clv__plan_node alone = *base;
    if (base->fused) alone.node = base->fused->base;
    alone.fused = NULL;
    CLV_TRY(clv__variant_choose(plan, &alone, 0));
    *does = clv__variant_supports(alone.variant, &plan->places[base->place].device->info, use);
    return CLV_OK;
}

/** What a node is with this epilogue, whose last step makes `out`. */
static void put_epilogue(clv__node *node, const clv_plan *plan, const clv__epilogue *epilogue,
                         const int *further, int out) {
    for (int k = 0; k < epilogue->n_in; k++) {
        node->in[epilogue->first + k] = (clv_tensor *)plan->values[further[k]].tensor;
        node->in_desc[epilogue->first + k] = plan->values[further[k]].desc;
    }
    node->io.n_in = epilogue->first + epilogue->n_in;
    node->io.epilogue = epilogue;
    node->io.out[0] = plan->values[out].desc;
    node->out[0] = (clv_tensor *)plan->values[out].tensor;
}

/** Do a step with the node before it, if that can be. */
static clv_status try_step(const threading *t, int position) {
    clv_plan *plan = t->plan;
    clv__plan_node *step = &plan->nodes[position];
    int value = newest_input(t, step);
    if (value < 0 || !can_follow(t, step, value)) return CLV_OK;
    clv__plan_node *base = &plan->nodes[made_at(t, value)];
    clv__epilogue epilogue = {.first = clv__epilogue_first(&base->node->io)};
    int further[CLV__EPILOGUE_INPUTS];
    if (base->fused) epilogue = base->fused->epilogue;
    for (int k = 0; k < epilogue.n_in; k++) further[k] = base->in[epilogue.first + k];
    if (!add_step(base->node->io.op, &epilogue, further, step, value)) return CLV_OK;

    bool does;
    clv_tensor *in[CLV__MAX_IN] = {NULL};
    clv__desc in_desc[CLV__MAX_IN] = {{0}};
    clv__node with = *base->node;
    memcpy(in, base->node->in, (size_t)with.io.n_in * sizeof *in);
    memcpy(in_desc, base->node->in_desc, (size_t)with.io.n_in * sizeof *in_desc);
    with.in = in;
    with.io.in = with.in_desc = in_desc;
    put_epilogue(&with, plan, &epilogue, further, step->out[0]);
    CLV_TRY(ask_variant(plan, base, &with.io, &does));
    if (!does) return CLV_OK;
    if (!base->fused) CLV_TRY(clv__fuse_begin(plan, base));
    clv__fused *fused = base->fused;
    fused->epilogue = epilogue;
    fused->n++;
    size_t used = strlen(fused->also);
    snprintf(fused->also + used, sizeof fused->also - used, "%s%s", used ? "+" : "", step->node->io.op->name);
    put_epilogue(&fused->node, plan, &fused->epilogue, further, step->out[0]);
    for (int k = 0; k < epilogue.n_in; k++) base->in[epilogue.first + k] = further[k];
    base->out[0] = step->out[0];
    t->moved_to[step->out[0]] = made_at(t, value) + 1;
    t->gone[position] = true;
    return CLV_OK;
}

static bool can_be_step(const clv_plan *plan, const clv__plan_node *at) {
    return clv__by_kernels(plan, at) && at->node->phase != CLV__UPDATE &&
           clv__epilogue_takes(&at->node->io) && !clv__variant_pinned(plan, at->node->io.op);
}

static clv_status string_all(threading *t, clv__arena *scratch) {
    clv_plan *plan = t->plan;
    if (!CLV__NEW(scratch, t->moved_to, plan->n_values + 1) || !CLV__NEW(scratch, t->gone, plan->n_nodes + 1))
        return clv__plan_no_memory(plan);
    for (int at = 0; at < (int)plan->n_nodes; at++) {
        if (can_be_step(plan, &plan->nodes[at])) CLV_TRY(try_step(t, at));
    }
    clv__plan_leave_out(plan, t->gone);
    return CLV_OK;
}

static clv_status run(clv_plan *plan) {
    if (plan->no_fuse) return CLV_OK;
    threading t = {.plan = plan};
    clv__arena scratch = {0};
    CLV_TRY(clv__index_make(plan, CLV__BY_VALUE, &t.index));
    const clv_status status = string_all(&t, &scratch);
    clv__index_reset(&t.index);
    clv__arena_reset(&scratch);
    return status;
}

const clv__pass clv__pass_epilogues = {.run = run};
