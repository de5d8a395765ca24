// SPDX-License-Identifier: Apache-2.0
// Uses of one op that differ in groups of their inputs only (clv__groups: the parameters of an optimizer) and follow each other at
// a place become one node. It has all their groups, and is done where the last of them stood, when the inputs of all are there. So do
// those of a chain (sums over all gradients), each of which adds to the result of the one before, if nothing else reads that.
// A group is of inputs that belong together: a parameter, its gradient, its momentum. It has nothing to do with work-groups.
//
// Updates of large parameters stay by themselves: early.c puts each where its gradient is made.
#include <string.h>

#include "plan/index.h"
#include "plan/passes.h"
#include "plan/updates.h"

static bool has_groups(const clv_plan *plan, const clv__plan_node *at) {
    return clv__by_kernels(plan, at) && at->node->io.op->groups.size > 0;
}

/** Is output 0 of a input 0 of b, and does nobody else read it? */
static bool is_chained(const clv_plan *plan, const clv__index *index, const clv__plan_node *a,
                       const clv__plan_node *b) {
    const int value = a->out[0];
    return a->node->io.op->groups.chain && value >= 0 && b->in[0] == value && index->readers[value] == 1 &&
           !plan->values[value].tensor->is_output;
}

/** May these be groups of one use? */
static bool belong_together(const clv_plan *plan, const clv__index *index, const clv__plan_node *a,
                            const clv__plan_node *b) {
    const clv__op_io *io = &a->node->io, *other = &b->node->io;
    if (b->work != CLV__COMPUTE || a->place != b->place || io->op != other->op) return false;
    if (io->op->groups.chain && !is_chained(plan, index, a, b)) return false;
    // In a chain input 0 is what the use before left.
    for (int i = io->op->groups.chain; i < io->op->groups.first; i++) {
        if (a->in[i] != b->in[i]) return false;
    }
    for (int i = io->op->groups.first; i < io->op->groups.first + io->op->groups.size; i++) {
        if (clv__has_in(io, i) != clv__has_in(other, i)) return false;
    }
    return io->op->attrs_bytes == 0 || memcmp(io->attrs, other->attrs, io->op->attrs_bytes) == 0;
}

/** The groups of `from` become further groups of `at`, whose `fused` is set. */
static void add_groups(clv__plan_node *at, const clv__plan_node *from) {
    clv__node *node = &at->fused->node;
    for (int i = node->io.op->groups.first; i < from->node->io.n_in; i++) {
        at->in[node->io.n_in] = from->in[i];
        node->in[node->io.n_in] = from->node->in[i];
        node->in_desc[node->io.n_in++] = from->node->io.in[i];
    }
    for (int i = 0; i < CLV__MAX_OUT; i++) { // updates have none, and of a chain only the last sum is read
        at->out[i] = from->out[i];
        node->out[i] = from->node->out[i];
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

/** Neighbours become one node. Early updates between them, which early.c will move away, are put before that node. */
static clv_status join(clv_plan *plan, const clv__index *index, const clv__rewrite *before) {
    for (size_t i = 0; i < before->n;) {
        clv__plan_node node = before->nodes[i++];
        const bool joins = has_groups(plan, &node) && !clv__update_is_early(plan, &node);
        while (joins && i < before->n && belong_together(plan, index, &node, &before->nodes[i])) {
            const clv__plan_node *next = &before->nodes[i];
            if (clv__update_is_early(plan, next)) {
                CLV_TRY(clv__plan_append(plan, &before->nodes[i++]));
                continue;
            }
            const clv_device_info *device = &plan->places[node.place].device->info;
            if (clv__groups_of(&node.node->io) == clv__groups_most(node.node->io.op, device) ||
                !can_be_counted(&node.node->io, &next->node->io))
                break;
            if (!node.fused) CLV_TRY(clv__fuse_begin(plan, &node));
            add_groups(&node, next);
            i++;
        }
        CLV_TRY(clv__plan_append(plan, &node));
    }
    return CLV_OK;
}

static clv_status run(clv_plan *plan) {
    clv__rewrite before;
    clv__index index;
    if (plan->no_fuse) return CLV_OK; // nor is any update early: each stays where the graph has it
    CLV_TRY(clv__index_make(plan, CLV__BY_VALUE, &index));
    clv_status status = clv__rewrite_begin(plan, &before);
    if (status == CLV_OK) {
        status = join(plan, &index, &before);
        clv__rewrite_end(&before);
    }
    clv__index_reset(&index);
    return status;
}

const clv__pass clv__pass_groups = {.run = run};
