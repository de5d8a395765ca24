// SPDX-License-Identifier: Apache-2.0
// Where every tensor lies. Blocks that never live at the same time share bytes of an arena. Large blocks are placed first, each at
// the lowest place that is free during its life (greedy by size: Pisarchyk and Lee 2020, arXiv:2001.03288, section 5.2). Workspaces
// come after them, into what is free while their node runs. It depends on the order of the nodes alone, and moves none.
#include <stdlib.h>

#include "plan/passes.h"
#include "plan/room.h"

enum { PLACED = -2 };

/** A node's position as the id of its workspace, which is below 0; and back. */
static int workspace_id(int at) {
    return -1 - at;
}

static int larger_first(const void *a, const void *b) {
    const clv__block *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    return x->id - y->id; // the same layout every time
}

/** Place blocks, the largest first; `room` has them in the end. */
static clv_status place(clv_plan *plan, clv__block *blocks, int n, clv__room *room, clv__layout *layout) {
    qsort(blocks, (size_t)n, sizeof *blocks, larger_first);
    for (int b = 0; b < n; b++) {
        clv__block *now = &blocks[b];
        now->offset = clv__room_find(room, now);
        if (now->offset + now->bytes > layout->bytes) layout->bytes = now->offset + now->bytes;
        if (!clv__room_add(room, now)) return clv__plan_no_memory(plan);
    }
    return CLV_OK;
}

/** Blocks for a place's values in a segment; returns how many. */
static int gather_values(const clv_plan *plan, int place_index, clv__segment segment, clv__block *blocks) {
    int n = 0;
    for (size_t i = 0; i < plan->n_values; i++) {
        const clv__value *value = &plan->values[i];
        if (value->place != place_index || value->root != (int)i || value->segment != segment ||
            value->bytes == 0)
            continue;
        blocks[n++] =
            (clv__block){.id = (int)i,
                         .bytes = clv__size_align(value->bytes, plan->places[place_index].alignment),
                         .first = value->first,
                         .last = value->last};
    }
    return n;
}

/** Blocks for the workspaces of a place's nodes, which live as long as their node runs. */
static int gather_workspaces(const clv_plan *plan, int place_index, clv__block *blocks) {
    int n = 0;
    for (int at = 0; at < (int)plan->n_nodes; at++) {
        const clv__plan_node *node = &plan->nodes[at];
        if (node->place != place_index || node->launches.workspace_bytes == 0) continue;
        blocks[n++] = (clv__block){
            .id = workspace_id(at),
            .bytes = clv__size_align(node->launches.workspace_bytes, plan->places[place_index].alignment),
            .first = at,
            .last = at};
    }
    return n;
}

/** Values and workspaces get the offsets of their blocks. */
static void take_offsets(clv_plan *plan, const clv__block *blocks, int n) {
    for (int i = 0; i < n; i++) {
        if (blocks[i].id >= 0) {
            plan->values[blocks[i].id].offset = blocks[i].offset;
        } else {
            clv__plan_node *node = &plan->nodes[workspace_id(blocks[i].id)];
            node->workspace_in = CLV__IN_ACTIVATIONS;
            node->workspace_at = blocks[i].offset;
        }
    }
}

/** An arena's blocks, and how far a workspace may reach in it. */
typedef struct arena {
    clv__segment segment;
    const clv__room *blocks;
    size_t room;
} arena;

/** Does a workspace find room in an arena while its node runs? Then it lies there. */
static bool finds_room(const arena *in, clv__plan_node *node, const clv__block *now) {
    if (now->bytes > in->blocks->chunk) return false;
    const size_t at = clv__room_find(in->blocks, now);
    if (at + now->bytes > in->room) return false;
    node->workspace_in = in->segment;
    node->workspace_at = at;
    return true;
}

/** Workspaces go between the activations that live while their node runs, or behind them where the session has activations of
 *  another plan, or between the gradients. Those that find no room there share memory of their own, or, of a plan alone in its session
 *  and if that takes less, stick out of the activations: then the arena ends where the last of them does. */
static void fill_in_workspaces(clv_plan *plan, int place_index, const arena *activations,
                               const arena *gradients) {
    clv__place *place = &plan->places[place_index];
    clv__layout *layout = &place->activations;
    // of those without room: the largest, where the last would end among activations, is none larger than an allocation may be
    size_t apart = 0, end = 0;
    bool whole = true;
    for (int at = 0; at < (int)plan->n_nodes; at++) {
        clv__plan_node *node = &plan->nodes[at];
        clv__block now = {.bytes = clv__size_align(node->launches.workspace_bytes, place->alignment),
                          .first = at,
                          .last = at};
        if (node->place != place_index) continue;
        node->workspace_in = CLV__NOWHERE;
        if (now.bytes == 0) continue;
        if (finds_room(activations, node, &now)) {
            if (node->workspace_at + now.bytes > layout->bytes)
                layout->bytes = node->workspace_at + now.bytes;
            continue;
        }
        if (finds_room(gradients, node, &now)) continue;
        node->workspace_at = clv__room_find(activations->blocks, &now);
        if (node->workspace_at + now.bytes > end) end = node->workspace_at + now.bytes;
        whole &= now.bytes <= layout->chunk;
        if (now.bytes > apart) apart = now.bytes;
    }
    place->workspace_bytes = apart;
    if (!plan->own_session || !whole || end >= layout->bytes + apart) return;
    for (int at = 0; at < (int)plan->n_nodes; at++) {
        clv__plan_node *node = &plan->nodes[at];
        if (node->place == place_index && node->launches.workspace_bytes &&
            node->workspace_in == CLV__NOWHERE)
            node->workspace_in = CLV__IN_ACTIVATIONS;
    }
    if (end > layout->bytes) layout->bytes = end;
    place->workspace_bytes = 0;
}

/** A plan that is to save memory gives workspaces equal rank with activations, if less is needed so. */
static clv_status lay_out_together(clv_plan *plan, int place_index, clv__block *blocks) {
    clv__place *at = &plan->places[place_index];
    clv__layout together = {.chunk = at->activations.chunk};
    clv__room room = {.chunk = together.chunk};
    int n = gather_values(plan, place_index, CLV__IN_ACTIVATIONS, blocks);
    n += gather_workspaces(plan, place_index, blocks + n);
    clv_status status = place(plan, blocks, n, &room, &together);
    clv__room_reset(&room);
    if (status != CLV_OK || together.bytes >= at->activations.bytes + at->workspace_bytes) return status;
    take_offsets(plan, blocks, n);
    at->activations = together;
    at->workspace_bytes = 0;
    return CLV_OK;
}

/** The arenas of a place, in the order in which they are laid out. */
static clv_status lay_out_arenas(clv_plan *plan, int index, clv__block *blocks) {
    clv__place *at = &plan->places[index];
    const size_t chunk = (size_t)at->device->info.max_alloc_bytes & ~(at->alignment - 1);
    clv__room gradients = {.chunk = chunk}, activations = {.chunk = chunk}, once = {.chunk = chunk};
    at->gradients = at->activations = at->once = (clv__layout){.chunk = chunk};
    int n = gather_values(plan, index, CLV__IN_ONCE, blocks);
    clv_status status = place(plan, blocks, n, &once, &at->once);
    if (status == CLV_OK) {
        take_offsets(plan, blocks, n);
        n = gather_values(plan, index, CLV__IN_GRADIENTS, blocks);
        status = place(plan, blocks, n, &gradients, &at->gradients);
    }
    if (status == CLV_OK) {
        take_offsets(plan, blocks, n);
        n = gather_values(plan, index, CLV__IN_ACTIVATIONS, blocks);
        status = place(plan, blocks, n, &activations, &at->activations);
    }
    if (status == CLV_OK) {
        take_offsets(plan, blocks, n);
        size_t room =
            at->activations.bytes > at->same_session_bytes ? at->activations.bytes : at->same_session_bytes;
        fill_in_workspaces(plan, index, &(arena){CLV__IN_ACTIVATIONS, &activations, room},
                           &(arena){CLV__IN_GRADIENTS, &gradients, at->gradients.bytes});
        if (plan->tight) status = lay_out_together(plan, index, blocks);
    }
    clv__room_reset(&once);
    clv__room_reset(&gradients);
    clv__room_reset(&activations);
    return status;
}

static clv_status lay_out(clv_plan *plan, int index) {
    clv__block *blocks = clv__alloc(plan->n_values + plan->n_nodes, sizeof *blocks);
    if (!blocks) return clv__plan_no_memory(plan);
    clv_status status = lay_out_arenas(plan, index, blocks);
    free(blocks);
    return status;
}

/** The next place of so many bytes in a layout in which tensors lie one after the other. */
static size_t next_in(clv__layout *layout, size_t bytes) {
    size_t at = layout->bytes;
    if (bytes && layout->chunk && bytes <= layout->chunk &&
        at / layout->chunk != (at + bytes - 1) / layout->chunk)
        at = (at / layout->chunk + 1) * layout->chunk;
    layout->bytes = at + bytes;
    return at;
}

/** A slot's inputs, late ones or the others. */
static void line_up_inputs(clv_plan *plan, clv__place *place, int slot, bool late) {
    const int *pieces;
    for (int i = 0; i < place->n_inputs; i++) {
        const int n = clv__value_pieces(plan, &place->inputs[i], &pieces);
        for (int k = 0; k < n; k++) {
            clv__value *value = &plan->values[pieces[k]];
            const size_t bytes = clv__size_align(value->bytes, place->alignment);
            if (value->segment != CLV__IN_INPUTS || value->tensor->late != late) continue;
            *(slot ? &value->second : &value->offset) = next_in(&place->io, bytes);
            if (slot) continue;
            value->staged = place->input_bytes;
            place->input_bytes += bytes;
        }
    }
}

/** Inputs and outputs live through the step, one after the other: two slots of inputs, then outputs. */
static void line_up(clv_plan *plan, clv__place *place) {
    const int *pieces;
    place->io = (clv__layout){.chunk = place->activations.chunk};
    place->input_bytes = 0;
    for (int slot = 0; slot < 2; slot++) {
        line_up_inputs(plan, place, slot, false);
        if (slot == 0) place->early_bytes = place->input_bytes;
        line_up_inputs(plan, place, slot, true);
    }
    for (int i = 0; i < place->n_outputs; i++) {
        const int n = clv__value_pieces(plan, &place->outputs[i], &pieces);
        for (int k = 0; k < n; k++) {
            clv__value *value = &plan->values[plan->values[pieces[k]].root];
            if (value->segment != CLV__IN_OUTPUTS || value->first == PLACED) continue;
            value->offset = next_in(&place->io, clv__size_align(value->bytes, place->alignment));
            value->first = PLACED; // two outputs may be views of one tensor
        }
    }
}

static clv_status lay_out_place(clv_plan *plan, int index) {
    clv__place *place = &plan->places[index];
    size_t alignment = place->alignment;
    CLV_TRY(lay_out(plan, index));
    line_up(plan, place);
    place->staged_bytes = 0;
    for (int i = 0; i < place->n_outputs; i++)
        place->staged_bytes += clv__size_align(plan->values[place->outputs[i]].bytes, alignment);
    for (size_t i = 0; i < plan->n_transfers; i++) {
        clv__transfer *transfer = &plan->transfers[i];
        if (plan->values[transfer->from].place != index || transfer->shared) continue;
        transfer->staged_at = place->staged_bytes;
        place->staged_bytes += clv__size_align(transfer->bytes, alignment);
    }
    return CLV_OK;
}

static clv_status run(clv_plan *plan) {
    for (int i = 0; i < plan->n_places; i++) CLV_TRY(lay_out_place(plan, i));
    for (size_t i = 0; i < plan->n_values; i++) { // what shares memory is where its root is
        clv__value *value = &plan->values[i];
        const clv__value *root = &plan->values[value->root];
        value->segment = root->last < 0 ? CLV__NOWHERE : root->segment;
        value->offset = root->offset + value->within;
        value->second = root->second + value->within;
        value->owner = root->owner;
    }
    return CLV_OK;
}

const clv__pass clv__pass_layout = {.run = run};
