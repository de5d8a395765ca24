// SPDX-License-Identifier: Apache-2.0
// Pass between place and select: several nodes become one, so that a step has fewer launches.
//
// Epilogues: an elementwise op, or a batch norm with running statistics, is done to the result that it reads last made, before that
// is stored, if nobody else wants to see it as it was (clv__epilogue): no launch, and one pass over memory less. It takes the
// place of the op that makes the result, all else that it reads being there already. What decides about the op's variant decides
// without it: an op gives no faster variant away for an epilogue. An op whose variant is pinned by name stays a launch of its own.
//
// Sums: sums.c.
//
// Groups: uses of one op that differ in groups of their inputs only (clv__groups: the parameters of an optimizer) and follow each
// other at a place. The node that stands for them has all their groups; it is done where the last of them stood, when the
// inputs of all are there.
//
// The graph stays as it is: what stands for several nodes is the plan's own (clv__fused), and the nodes that were placed are kept,
// so that the pass can be done afresh when a variant is put into quarantine. The host device runs references, node by node.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/epilogue.h"
#include "plan/plan.h"

static clv_status out_of_memory(const clv_plan *plan) {
    return clv__error_set(clv__plan_error(plan), CLV_E_HOST_MEMORY, "no host memory for the plan");
}

void clv__fuse_forget(clv_plan *plan) {
    while (plan->fused) {
        clv__fused *fused = plan->fused;
        plan->fused = fused->next;
        free(fused);
    }
    if (!plan->placed) return;
    for (size_t i = 0; i < plan->n_nodes; i++) clv__launches_reset(&plan->nodes[i].launches);
    // there is room: the plan had so many nodes when they were placed
    memcpy(plan->nodes, plan->placed, plan->n_placed * sizeof *plan->nodes);
    plan->n_nodes = plan->n_placed;
    free(plan->placed);
    plan->placed = NULL;
}

static clv_status keep_placed(clv_plan *plan) {
    plan->placed = clv__alloc(plan->n_nodes, sizeof *plan->placed);
    if (!plan->placed) return out_of_memory(plan);
    plan->n_placed = plan->n_nodes;
    memcpy(plan->placed, plan->nodes, plan->n_nodes * sizeof *plan->placed);
    return CLV_OK;
}

clv_status clv__fuse_begin(clv_plan *plan, clv__plan_node *at, clv__fused **out) {
    clv__fused *fused = clv__alloc(1, sizeof *fused);
    if (!fused) return out_of_memory(plan);
    *fused = (clv__fused){.node = *at->node, .base = at->node, .n = 1, .next = plan->fused};
    plan->fused = *out = fused;
    at->fused = fused;
    at->node = &fused->node;
    return CLV_OK;
}

bool clv__by_kernels(const clv_plan *plan, const clv__plan_node *at) {
    return at->work == CLV__COMPUTE && plan->places[at->place].device->info.type != CLV_DEVICE_HOST;
}

// ---- epilogues --------------------------------------------------------------------------------------------------------

typedef struct threading {
    clv_plan *plan;
    int *made_at; // by value: position of the node that makes it; -1: fed, or kept in the session
    int *readers; // by value: how many nodes read it
    bool *gone;   // by position: done with another node
} threading;

static bool reads_before(const clv__plan_node *at, int i) {
    for (int j = 0; j < i; j++) {
        if (at->in[j] == at->in[i]) return true;
    }
    return false;
}

static void find_makers(const threading *t) {
    for (size_t i = 0; i < t->plan->n_values; i++) t->made_at[i] = -1;
    for (int at = 0; at < (int)t->plan->n_nodes; at++) {
        const clv__plan_node *node = &t->plan->nodes[at];
        for (int i = 0; i < CLV__MAX_OUT; i++) {
            if (node->out[i] >= 0) t->made_at[node->out[i]] = at;
        }
        for (int i = 0; i < CLV__MAX_IN; i++) {
            if (node->in[i] >= 0 && !reads_before(node, i)) t->readers[node->in[i]]++;
        }
    }
}

/** The value that a node reads and that was made last; -1: none was made. */
static int newest_input(const threading *t, const clv__plan_node *at) {
    int newest = -1;
    for (int i = 0; i < CLV__MAX_IN; i++) {
        int value = at->in[i];
        if (value >= 0 && t->made_at[value] >= 0 && (newest < 0 || t->made_at[value] > t->made_at[newest]))
            newest = value;
    }
    return newest;
}

/** Does the step read another result of the node that makes the value? */
static bool reads_sibling(const threading *t, const clv__plan_node *step, int value) {
    for (int i = 0; i < CLV__MAX_IN; i++) {
        if (step->in[i] >= 0 && step->in[i] != value && t->made_at[step->in[i]] == t->made_at[value])
            return true;
    }
    return false;
}

/** Is the value nothing but an intermediate result of a node that can have an epilogue, for this step? Sums of gradients are
 *  left alone: they are made in place, whatever adds to them. */
static bool can_follow(const threading *t, const clv__plan_node *step, int value) {
    const clv__plan_node *base = &t->plan->nodes[t->made_at[value]];
    const clv_tensor *before = t->plan->values[value].tensor, *after = step->node->out[0];
    return clv__by_kernels(t->plan, base) && base->place == step->place && base->node->io.op->epilogue &&
           base->out[0] == value && base->node->phase == step->node->phase && t->readers[value] == 1 &&
           !reads_sibling(t, step, value) && !before->is_output && before->category != CLV_GRADIENTS &&
           after->category != CLV_GRADIENTS && clv_shape_equal(&before->desc.shape, &after->desc.shape) &&
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
    CLV_TRY(clv__plan_choose(plan, &alone));
    *does = clv__variant_supports(alone.variant, &plan->places[base->place].device->info, use);
    return CLV_OK;
}

/** What a node is with this epilogue, whose last step makes `out`. */
static void put_epilogue(clv__node *node, const clv_plan *plan, const clv__epilogue *epilogue,
                         const int *further, clv_tensor *out) {
    for (int k = 0; k < epilogue->n_in; k++) {
        node->in[epilogue->first + k] = (clv_tensor *)plan->values[further[k]].tensor;
        node->io.in[epilogue->first + k] = plan->values[further[k]].tensor->desc;
    }
    node->io.n_in = epilogue->first + epilogue->n_in;
    node->io.epilogue = epilogue;
    node->io.out[0] = out->desc;
    node->out[0] = out;
}

/** Do a step with the node before it, if that can be. */
static clv_status try_step(const threading *t, int position) {
    clv_plan *plan = t->plan;
    clv__plan_node *step = &plan->nodes[position];
    int value = newest_input(t, step);
    if (value < 0 || !can_follow(t, step, value)) return CLV_OK;
    clv__plan_node *base = &plan->nodes[t->made_at[value]];
    clv__epilogue epilogue = {.first = base->node->io.n_in};
    int further[CLV__EPILOGUE_INPUTS];
    if (base->fused) epilogue = base->fused->epilogue;
    for (int k = 0; k < epilogue.n_in; k++) further[k] = base->in[epilogue.first + k];
    if (!add_step(base->node->io.op, &epilogue, further, step, value)) return CLV_OK;

    bool does;
    clv__node with = *base->node;
    put_epilogue(&with, plan, &epilogue, further, step->node->out[0]);
    CLV_TRY(ask_variant(plan, base, &with.io, &does));
    if (!does) return CLV_OK;
    clv__fused *fused = base->fused;
    if (!fused) CLV_TRY(clv__fuse_begin(plan, base, &fused));
    fused->epilogue = epilogue;
    fused->n++;
    size_t used = strlen(fused->also);
    snprintf(fused->also + used, sizeof fused->also - used, "%s%s", used ? "+" : "", step->node->io.op->name);
    put_epilogue(&fused->node, plan, &fused->epilogue, further, step->node->out[0]);
    for (int k = 0; k < epilogue.n_in; k++) base->in[epilogue.first + k] = further[k];
    base->out[0] = step->out[0];
    t->made_at[step->out[0]] = t->made_at[value];
    t->gone[position] = true;
    return CLV_OK;
}

static bool can_be_step(const clv_plan *plan, const clv__plan_node *at) {
    return clv__by_kernels(plan, at) && at->node->phase != CLV__UPDATE &&
           clv__epilogue_takes(&at->node->io) && !clv__plan_pins(plan, at->node->io.op);
}

static clv_status string_all(const threading *t) {
    clv_plan *plan = t->plan;
    find_makers(t);
    for (int at = 0; at < (int)plan->n_nodes; at++) {
        if (can_be_step(plan, &plan->nodes[at])) CLV_TRY(try_step(t, at));
    }
    size_t n = 0;
    for (size_t at = 0; at < plan->n_nodes; at++) {
        if (!t->gone[at]) plan->nodes[n++] = plan->nodes[at];
    }
    plan->n_nodes = n;
    return CLV_OK;
}

static clv_status make_epilogues(clv_plan *plan) {
    threading t = {.plan = plan,
                   .made_at = clv__alloc(plan->n_values, sizeof *t.made_at),
                   .readers = clv__alloc(plan->n_values, sizeof *t.readers),
                   .gone = clv__alloc(plan->n_nodes, sizeof *t.gone)};
    clv_status status = t.made_at && t.readers && t.gone ? string_all(&t) : out_of_memory(plan);
    free(t.made_at);
    free(t.readers);
    free(t.gone);
    return status;
}

// ---- groups -----------------------------------------------------------------------------------------------------------

static bool has_groups(const clv_plan *plan, const clv__plan_node *at) {
    return clv__by_kernels(plan, at) && at->node->io.op->groups.size > 0;
}

/** May these be groups of one use? */
static bool belong_together(const clv__plan_node *a, const clv__plan_node *b) {
    const clv__op_io *io = &a->node->io, *other = &b->node->io;
    if (b->work != CLV__COMPUTE || a->place != b->place || io->op != other->op) return false;
    for (int i = 0; i < io->op->groups.first; i++) {
        if (a->in[i] != b->in[i]) return false;
    }
    for (int i = io->op->groups.first; i < io->op->groups.first + io->op->groups.size; i++) {
        if (clv__has_in(io, i) != clv__has_in(other, i)) return false;
    }
    return io->op->attrs_bytes == 0 || memcmp(io->attrs, other->attrs, io->op->attrs_bytes) == 0;
}

/** The groups of `from` become further groups of `at`, which stands for more than its own node. */
static void add_groups(clv__plan_node *at, const clv__plan_node *from) {
    clv__node *node = &at->fused->node;
    for (int i = node->io.op->groups.first; i < from->node->io.n_in; i++) {
        at->in[node->io.n_in] = from->in[i];
        node->in[node->io.n_in] = from->node->in[i];
        node->io.in[node->io.n_in++] = from->node->io.in[i];
    }
    if (strcmp(node->layer, from->node->layer) != 0) node->layer = "";
    at->fused->n += from->fused ? from->fused->n : 1;
}

/** A launch counts the elements of all its groups together in an int. */
static bool can_be_counted(const clv__op_io *io, const clv__op_io *other) {
    int64_t n = 0;
    for (int i = io->op->groups.first; i < io->n_in; i += io->op->groups.size)
        n += clv_shape_numel(&io->in[i].shape);
    for (int i = io->op->groups.first; i < other->n_in; i += io->op->groups.size)
        n += clv_shape_numel(&other->in[i].shape);
    return n <= INT32_MAX;
}

/** Neighbours become one node. Those that will be moved away (early.c) stand before it, and do not part it. */
static clv_status join_groups(clv_plan *plan) {
    size_t n = 0;
    for (size_t i = 0; i < plan->n_nodes;) {
        clv__plan_node node = plan->nodes[i++];
        clv__fused *fused = node.fused;
        const bool joins = has_groups(plan, &node) && !clv__plan_updates_early(plan, &node);
        while (joins && i < plan->n_nodes && belong_together(&node, &plan->nodes[i])) {
            const clv__plan_node *next = &plan->nodes[i];
            if (clv__plan_updates_early(plan, next)) {
                plan->nodes[n++] = plan->nodes[i++];
                continue;
            }
            if (clv__groups_of(&node.node->io) == node.node->io.op->groups.most ||
                !can_be_counted(&node.node->io, &next->node->io))
                break;
            if (!fused) CLV_TRY(clv__fuse_begin(plan, &node, &fused));
            add_groups(&node, next);
            i++;
        }
        plan->nodes[n++] = node;
    }
    plan->n_nodes = n;
    return CLV_OK;
}

// ---- the pass ---------------------------------------------------------------------------------------------------------

clv_status clv__plan_fuse(clv_plan *plan) {
    if (plan->no_fuse) return CLV_OK;
    CLV_TRY(keep_placed(plan));
    CLV_TRY(make_epilogues(plan));
    CLV_TRY(clv__plan_take_sums(plan));
    return join_groups(plan);
}
