// SPDX-License-Identifier: Apache-2.0
// In inference, what is computed from parameters and constants alone is the same in each step until one of them is written: a weight
// that is cast, Winograd's transform of filters, operands packed for matrix units or vectors. Such nodes, and of other nodes such
// launches, stand first in the plan (clv__plan_node.once). What they write has memory of its own as long as the session (IN_ONCE);
// exec does them in a run's first step, and again after a parameter was written (clv_run.once).
//
// Of a node's launches, one is such if it reads parameters alone and writes workspace that only such launches touched before it. What
// it writes becomes a value, an input of the node behind the op's own. The others must only read it: whatever writes into a workspace
// that another launch filled has it as its first argument (device/launch.h).
//
// Left as they are: a plan that trains, or is made beside a larger one that does; a plan that is fed nothing, as that of a measurement;
// caches, and what is changed in place; what is fetched, joined or sent.
#include <stdlib.h>
#include <string.h>

#include "plan/passes.h"

enum {
    CHANGED = 1,  // in place, it or what is seen of it
    ELSEWHERE = 2 // its memory is another's to say: it is an output, joined, or sent
};

static bool applies(const clv_plan *plan) {
    int fed = 0;
    for (int i = 0; i < plan->n_places; i++) fed += plan->places[i].n_inputs;
    for (size_t i = 0; i < plan->n_nodes; i++)
        if (plan->nodes[i].node && plan->nodes[i].node->phase != CLV__FORWARD) return false;
    return fed && !plan->trains && !plan->graph->training && !plan->same_session && !plan->no_fuse &&
           !plan->no_once;
}

/** By value: what forbids that it is made once. */
static void find_bounds(const clv_plan *plan, unsigned char *bounds) {
    for (size_t i = 0; i < plan->n_values; i++)
        if (plan->values[i].tensor->is_output) bounds[i] |= ELSEWHERE;
    for (size_t at = plan->n_nodes; at-- > 0;) {
        const clv__plan_node *node = &plan->nodes[at];
        const clv__op *op = node->work == CLV__COMPUTE ? node->node->io.op : NULL;
        if (op && op->view) bounds[node->in[0]] |= bounds[node->out[0]];
        for (int i = 0; i < CLV__MAX_IN; i++) {
            if (node->in[i] < 0) continue;
            if (!op || op->joins) bounds[node->in[i]] |= ELSEWHERE;
            if (op && op->mutates >> i & 1) bounds[node->in[i]] |= CHANGED;
        }
    }
}

/** Which values are parameters or constants, or made of these alone; the nodes that make them are marked. */
static void find_constants(clv_plan *plan, const unsigned char *bounds, bool *constant) {
    for (size_t i = 0; i < plan->n_values; i++) {
        const clv__value *value = &plan->values[i];
        constant[i] = value->tensor->kind == CLV__PERSISTENT && value->tensor->category != CLV_ACTIVATIONS &&
                      !value->copy && !(bounds[i] & CHANGED);
    }
    for (size_t at = 0; at < plan->n_nodes; at++) {
        clv__plan_node *node = &plan->nodes[at];
        const clv__op *op = node->work == CLV__COMPUTE ? node->node->io.op : NULL;
        bool once = op && !op->mutates && !op->joins;
        for (int i = 0; i < CLV__MAX_IN; i++) once &= node->in[i] < 0 || constant[node->in[i]];
        for (int i = 0; i < CLV__MAX_OUT; i++) once &= node->out[i] < 0 || !bounds[node->out[i]];
        node->once = once;
        for (int i = 0; i < CLV__MAX_OUT && once; i++) {
            if (node->out[i] < 0) continue;
            constant[node->out[i]] = true;
            plan->values[node->out[i]].once = !op->view;
        }
    }
}

// ---- launches of a node ---------------------------------------------------------------------------------------------------------

/** A part of a node's workspace, as launches have it among their arguments. */
typedef struct part {
    size_t offset, bytes;
    bool once;    // a launch that is done once uses it first
    bool step;    // a launch of each step uses it
    bool spoiled; // and writes it
    int value;    // that it becomes, if it is both; -1: it stays workspace
    int in, out;  // the value as an input of the node, as an output of the one that is done once
} part;

enum { MOST_PARTS = 2 * CLV__MAX_OUT };
typedef struct parts {
    part items[MOST_PARTS];
    int n;
} parts;

static part *find_part(parts *all, const clv__slot *slot) {
    for (int i = 0; slot->kind == CLV__SLOT_WORKSPACE && slot->bytes && i < all->n; i++)
        if (all->items[i].offset == slot->offset) return &all->items[i];
    return NULL;
}

static bool overlap(const part *a, const clv__slot *b) {
    return b->offset < a->offset + a->bytes && a->offset < b->offset + b->bytes;
}

/** All parts; false if some overlap, or there are too many. */
static bool gather_parts(const clv__launches *list, parts *all) {
    for (size_t l = 0; l < list->n; l++) {
        for (int k = 0; k < list->items[l].n_slots; k++) {
            const clv__slot *slot = &list->items[l].slots[k];
            const part *same = find_part(all, slot);
            if (slot->kind != CLV__SLOT_WORKSPACE || !slot->bytes || (same && same->bytes == slot->bytes))
                continue;
            for (int i = 0; i < all->n; i++)
                if (overlap(&all->items[i], slot)) return false;
            if (all->n == MOST_PARTS) return false;
            all->items[all->n++] = (part){.offset = slot->offset, .bytes = slot->bytes};
        }
    }
    return all->n > 0;
}

/** Does a launch read constants, and nothing else but what such launches before it made of them? */
static bool reads_constants(const clv__plan_node *at, const clv__launch *launch, const bool *constant,
                            parts *all) {
    bool any = false;
    for (int k = 0; k < launch->n_slots; k++) {
        const clv__slot *slot = &launch->slots[k];
        const part *of = find_part(all, slot);
        if (slot->kind == CLV__SLOT_OUT || slot->kind == CLV__SLOT_GRADIENTS) return false;
        if (of && (of->step || of->spoiled)) return false;
        any |= of && of->once;
        if (slot->kind != CLV__SLOT_IN || at->in[slot->index] < 0) continue;
        if (!constant[at->in[slot->index]]) return false;
        any = true;
    }
    return any;
}

/** By launch: is it done once? Returns how many are. What a launch of each step writes is not made once: then all is looked at again. */
static size_t find_launches(const clv__plan_node *at, const bool *constant, parts *all, bool *once) {
    bool again = true;
    size_t n = 0;
    while (again) {
        again = false;
        n = 0;
        for (int i = 0; i < all->n; i++) all->items[i].once = all->items[i].step = false;
        for (size_t l = 0; l < at->launches.n; l++) {
            const clv__launch *launch = &at->launches.items[l];
            once[l] = reads_constants(at, launch, constant, all);
            n += once[l];
            for (int k = 0; k < launch->n_slots; k++) {
                part *of = find_part(all, &launch->slots[k]);
                if (!of) continue;
                if (!once[l] && of->once && k == 0) again = of->spoiled = true;
                *(once[l] ? &of->once : &of->step) = true;
            }
        }
    }
    return n;
}

/** The parts that are made once and read in each step become values. Returns how many; 0 if there is no room for all. */
static int number_values(const clv__plan_node *at, parts *all) {
    int in = at->node->io.n_in, out = 0;
    for (int i = 0; i < all->n; i++) {
        part *of = &all->items[i];
        of->value = -1;
        if (!of->once || !of->step) continue;
        while (in < CLV__MAX_IN && at->in[in] >= 0) in++;
        if (in == CLV__MAX_IN || out == CLV__MAX_OUT) return 0;
        of->in = in++;
        of->out = out++;
    }
    return out;
}

static clv_status make_values(clv_plan *plan, const clv__plan_node *at, parts *all) {
    const clv_tensor tensor = {.graph = plan->graph,
                               .id = -1,
                               .name = "packed",
                               .layer = at->node->layer,
                               .kind = CLV__VALUE,
                               .category = CLV_WORKSPACE};
    for (int i = 0; i < all->n; i++) {
        part *of = &all->items[i];
        if (!of->once || !of->step) continue;
        const clv__desc desc = {CLV_DTYPE_U8, CLV_SHAPE((int64_t)of->bytes)};
        CLV_TRY(clv__plan_append_own(plan, &tensor, &desc, at->place, &of->value));
        plan->values[of->value].once = true;
    }
    return CLV_OK;
}

/** What stays workspace lies one part behind the other. Returns the bytes. */
static size_t close_gaps(const clv__launches *list, parts *all, size_t moved[MOST_PARTS]) {
    size_t end = 0;
    for (int i = 0; i < all->n; i++) {
        if (all->items[i].value >= 0) continue;
        moved[i] = clv__size_align(end, list->device->alignment_bytes ? list->device->alignment_bytes : 1);
        end = moved[i] + all->items[i].bytes;
    }
    return end;
}

/** Move the launches that are done once to a node of their own, for which the plan has room. */
static clv_status take_launches(clv_plan *plan, clv__plan_node *at, size_t n, const bool *once, parts *all) {
    clv__launches *list = &at->launches;
    clv__plan_node first = clv__plan_node_of(CLV__COMPUTE, at->node, at->place);
    size_t moved[MOST_PARTS];
    first.once = true;
    first.variant = at->variant;
    first.chosen = at->chosen;
    first.launches =
        (clv__launches){.device = list->device, .items = clv__alloc(n, sizeof *list->items), .room = n};
    if (!first.launches.items) return clv__plan_no_memory(plan);
    list->workspace_bytes = close_gaps(list, all, moved);
    for (int i = 0; i < all->n; i++)
        if (all->items[i].value >= 0)
            at->in[all->items[i].in] = first.out[all->items[i].out] = all->items[i].value;
    const size_t n_launches = list->n;
    list->n = 0;
    for (size_t l = 0; l < n_launches; l++) {
        clv__launches *to = once[l] ? &first.launches : list;
        clv__launch *launch = &to->items[to->n++];
        *launch = list->items[l];
        for (int k = 0; k < launch->n_slots; k++) {
            clv__slot *slot = &launch->slots[k];
            const part *of = find_part(all, slot);
            if (slot->kind == CLV__SLOT_IN && once[l]) first.in[slot->index] = at->in[slot->index];
            if (of && of->value < 0) {
                slot->offset = moved[of - all->items];
                to->workspace_bytes = list->workspace_bytes;
            }
            if (of && of->value >= 0)
                *slot = (clv__slot){.kind = once[l] ? CLV__SLOT_OUT : CLV__SLOT_IN,
                                    .index = once[l] ? of->out : of->in,
                                    .bytes = of->bytes};
        }
    }
    plan->nodes[plan->n_nodes++] = first;
    return CLV_OK;
}

/** A CPU would read what is kept from memory, where what was just made lies in a cache, so there only what stays in one is kept:
 *  with all of it a resnet18 of one image took 5 % more time. */
static bool pays(const clv__plan_node *at, const parts *all) {
    enum { CACHED = 1 << 20 };
    size_t bytes = 0;
    for (int i = 0; i < all->n; i++)
        if (all->items[i].once && all->items[i].step) bytes += all->items[i].bytes;
    return !clv__threads(at->launches.device) || bytes <= CACHED;
}

static clv_status split(clv_plan *plan, clv__plan_node *at, const bool *constant) {
    parts all = {0};
    if (!clv__by_kernels(plan, at) || at->launches.n < 2 || at->node->io.op->mutates ||
        !gather_parts(&at->launches, &all))
        return CLV_OK;
    bool *once = clv__alloc(at->launches.n, sizeof *once);
    if (!once) return clv__plan_no_memory(plan);
    const size_t n = find_launches(at, constant, &all, once);
    clv_status status = CLV_OK;
    if (n && pays(at, &all) && number_values(at, &all)) {
        status = make_values(plan, at, &all);
        if (status == CLV_OK) status = take_launches(plan, at, n, once, &all);
    }
    free(once);
    return status;
}

/** Nodes that are done once, and those of launches that are, then the others. */
static clv_status write_anew(clv_plan *plan, const bool *constant) {
    clv__rewrite old;
    CLV_TRY(clv__rewrite_begin(plan, &old));
    clv_status status = CLV_OK;
    if (!clv__grow(&plan->nodes, &plan->nodes_room, 2 * old.n + 1, sizeof *plan->nodes))
        status = clv__plan_no_memory(plan);
    for (size_t i = 0; i < old.n; i++) {
        if (old.nodes[i].once)
            plan->nodes[plan->n_nodes++] = old.nodes[i];
        else if (status == CLV_OK)
            status = split(plan, &old.nodes[i], constant);
    }
    for (size_t i = 0; i < old.n; i++)
        if (!old.nodes[i].once) plan->nodes[plan->n_nodes++] = old.nodes[i];
    clv__rewrite_end(&old);
    return status;
}

static clv_status run(clv_plan *plan) {
    for (size_t i = 0; i < plan->n_values; i++) plan->values[i].once = false;
    if (!applies(plan)) return CLV_OK;
    unsigned char *bounds = clv__alloc(plan->n_values + 1, 1);
    bool *constant = clv__alloc(plan->n_values + 1, sizeof *constant);
    clv_status status = bounds && constant ? CLV_OK : clv__plan_no_memory(plan);
    if (status == CLV_OK) {
        find_bounds(plan, bounds);
        find_constants(plan, bounds, constant);
        status = write_anew(plan, constant);
    }
    free(bounds);
    free(constant);
    return status;
}

const clv__pass clv__pass_once = {.run = run};
