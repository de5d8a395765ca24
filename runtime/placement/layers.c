// SPDX-License-Identifier: Apache-2.0
// Layers of a graph. A node belongs to its own layer, else to the layer of its data. A gradient belongs with
// its forward node and an update with its parameter, as in plan/place.c. Memory is estimated from the lives
// of values: a block lives in a run of layers from its first to its last use there. An arena holds at least
// as much as lives at once.
#include "placement/layers.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static clv_status out_of_memory(const clv_plan *plan) {
    return clv__error_set(clv__plan_error(plan), CLV_E_HOST_MEMORY, "no host memory for a placement");
}

void clv__layers_reset(clv__layers *layers) {
    free(layers->items);
    free(layers->blocks);
    free(layers->uses);
    free(layers->seconds);
    free(layers->workspace);
    free(layers->spans);
    *layers = (clv__layers){0};
}

// ---- layers -----------------------------------------------------------------------------------------------

static int find_layer(const clv__layers *layers, const char *name) {
    for (int i = 0; i < layers->n; i++) {
        if (strcmp(layers->items[i].name, name) == 0) return i;
    }
    return -1;
}

/** Does a node read parameters or buffers? *bytes: of those that it is the first to read; they are marked as
 *  seen. */
static bool reads_parameters(const clv__node *node, bool *seen, uint64_t *bytes) {
    bool reads = false;
    *bytes = 0;
    for (int i = 0; i < node->io.n_in; i++) {
        const clv_tensor *in = node->in[i];
        if (!in || in->kind != CLV__PERSISTENT) continue;
        reads = true;
        if (!seen[in->id]) *bytes += clv_tensor_bytes(in);
        seen[in->id] = true;
    }
    return reads;
}

static clv_status find_layers(const clv_plan *plan, bool *seen, clv__layers *out) {
    for (size_t i = 0; i < plan->n_nodes; i++) {
        const clv__node *node = plan->nodes[i].node;
        uint64_t bytes;
        if (plan->nodes[i].work != CLV__COMPUTE || node->phase != CLV__FORWARD || !*node->layer ||
            !reads_parameters(node, seen, &bytes))
            continue;
        int layer = find_layer(out, node->layer);
        if (layer < 0) {
            if (!clv__grow(&out->items, &out->room, (size_t)out->n + 1, sizeof *out->items))
                return out_of_memory(plan);
            layer = out->n++;
            out->items[layer].name = node->layer;
        }
        out->items[layer].parameter_bytes += bytes;
    }
    return CLV_OK;
}

clv_status clv__layers_find(const clv_plan *plan, clv__layers *out) {
    bool *seen = clv__alloc(plan->graph->n_tensors, sizeof *seen);
    clv_status status = seen ? find_layers(plan, seen, out) : out_of_memory(plan);
    free(seen);
    return status;
}

/** By node and tensor of the graph: the layer it goes with, -1 if it can go with any. */
typedef struct belonging {
    int *of_node, *of_tensor;
} belonging;

static int layer_of_update(const belonging *b, const clv__node *node) {
    for (int i = 0; i < node->io.n_in; i++) {
        if (node->in[i] && node->io.op->mutates >> i & 1 && b->of_tensor[node->in[i]->id] >= 0)
            return b->of_tensor[node->in[i]->id];
    }
    for (int i = 0; i < node->io.n_in && node->io.op->mutates; i++) { // state that nothing has used yet
        if (node->in[i] && node->in[i]->trainable && b->of_tensor[node->in[i]->id] >= 0)
            return b->of_tensor[node->in[i]->id];
    }
    return -1;
}

/** The layer of the input that was made last, among those that have one. */
static int layer_of_data(const belonging *b, const clv__node *node) {
    const clv_tensor *newest = NULL;
    for (int i = 0; i < node->io.n_in; i++) {
        const clv_tensor *in = node->in[i];
        if (in && in->node && b->of_tensor[in->id] >= 0 && (!newest || in->node->id > newest->node->id))
            newest = in;
    }
    return newest ? b->of_tensor[newest->id] : -1;
}

/** -1: all its data is fed, so it goes where its result is used. */
static int layer_of(const clv__layers *layers, const belonging *b, const clv__node *node) {
    int layer = -1;
    if (node->phase == CLV__FORWARD) layer = find_layer(layers, node->layer);
    if (node->phase == CLV__BACKWARD && node->of) layer = b->of_node[node->of->id];
    if (node->phase == CLV__UPDATE) layer = layer_of_update(b, node);
    return layer >= 0 ? layer : layer_of_data(b, node);
}

/** The node is of that layer, and so is what it makes, and parameters that it is the first to use. */
static void settle(const belonging *b, const clv__node *node, int layer) {
    b->of_node[node->id] = layer;
    for (int i = 0; i < node->io.n_out; i++) b->of_tensor[node->out[i]->id] = layer;
    for (int i = 0; i < node->io.n_in; i++) {
        const clv_tensor *in = node->in[i];
        if (in && in->kind == CLV__PERSISTENT && b->of_tensor[in->id] < 0) b->of_tensor[in->id] = layer;
    }
}

static void assign(const clv__layers *layers, const clv_plan *plan, const belonging *b) {
    for (size_t i = 0; i < plan->graph->n_tensors; i++) b->of_tensor[i] = -1;
    for (size_t i = 0; i < plan->n_nodes; i++) {
        const clv__node *node = plan->nodes[i].node;
        if (plan->nodes[i].work == CLV__COMPUTE) settle(b, node, layer_of(layers, b, node));
    }
    for (size_t i = plan->n_nodes; i-- > 0;) { // what is fed goes to its reader
        const clv__node *node = plan->nodes[i].node;
        if (plan->nodes[i].work != CLV__COMPUTE) continue;
        if (b->of_node[node->id] < 0) settle(b, node, 0);
        for (int k = 0; k < node->io.n_in; k++) {
            const clv_tensor *in = node->in[k];
            if (in && in->node && b->of_node[in->node->id] < 0) settle(b, in->node, b->of_node[node->id]);
        }
    }
}

// ---- what each layer takes --------------------------------------------------------------------------------

static void weigh_nodes(clv__layers *layers, const clv_plan *plan, int device, const belonging *b) {
    double *seconds = layers->seconds + (size_t)device * (size_t)layers->n;
    size_t *workspace = layers->workspace + (size_t)device * (size_t)layers->n;
    for (size_t i = 0; i < plan->n_nodes; i++) {
        const clv__plan_node *node = &plan->nodes[i];
        if (node->work != CLV__COMPUTE) continue;
        int layer = b->of_node[node->node->id];
        seconds[layer] += clv__speed_seconds(&layers->speeds[device], plan, node);
        if (node->launches.workspace_bytes > workspace[layer])
            workspace[layer] = node->launches.workspace_bytes;
    }
}

static void weigh_persistents(clv__layers *layers, const clv_plan *plan, const belonging *b) {
    for (size_t i = 0; i < plan->n_values; i++) {
        const clv_tensor *tensor = plan->values[i].tensor;
        if (tensor->kind != CLV__PERSISTENT || b->of_tensor[tensor->id] < 0) continue;
        layers->items[b->of_tensor[tensor->id]].persistent_bytes += clv_tensor_bytes(tensor);
    }
}

/** The i-th value that a node reads or writes, as the root whose memory it is; -1: there is none. */
static int root_used(const clv_plan *plan, const clv__plan_node *node, int i) {
    int value = i < CLV__MAX_IN ? node->in[i] : node->out[i - CLV__MAX_IN];
    return value >= 0 ? plan->values[value].root : -1;
}

/** Room in `uses` for each block's, after counting them into n_uses, which starts again. */
static clv_status make_room(clv__layers *layers, const clv_plan *plan) {
    size_t n_uses = 0;
    for (size_t at = 0; at < plan->n_nodes; at++) {
        for (int i = 0; i < CLV__MAX_IN + CLV__MAX_OUT; i++) {
            int root = root_used(plan, &plan->nodes[at], i);
            if (root >= 0) layers->blocks[root].n_uses++;
        }
    }
    for (size_t i = 0; i < layers->n_blocks; i++) {
        layers->blocks[i].first_use = n_uses;
        n_uses += layers->blocks[i].n_uses;
        layers->blocks[i].n_uses = 0;
    }
    layers->uses = clv__alloc(n_uses, sizeof *layers->uses);
    return layers->uses ? CLV_OK : out_of_memory(plan);
}

/** Each root value of the plan is a block, with the uses of all that share its memory. */
static clv_status find_blocks(clv__layers *layers, const clv_plan *plan, const belonging *b) {
    layers->blocks = clv__alloc(plan->n_values, sizeof *layers->blocks);
    if (!layers->blocks) return out_of_memory(plan);
    layers->n_blocks = plan->n_values;
    layers->n_positions = (int)plan->n_nodes;
    for (size_t i = 0; i < plan->n_values; i++) {
        const clv__value *value = &plan->values[i];
        bool fed = value->tensor->kind == CLV__INPUT;
        layers->blocks[i] = (clv__block){.segment = value->root == (int)i ? value->segment : CLV__NOWHERE,
                                         .bytes = value->bytes,
                                         .made_by = fed ? -1 : b->of_tensor[value->tensor->id]};
    }
    CLV_TRY(make_room(layers, plan));
    for (size_t at = 0; at < plan->n_nodes; at++) {
        const clv__plan_node *node = &plan->nodes[at];
        for (int i = 0; i < CLV__MAX_IN + CLV__MAX_OUT; i++) {
            int root = root_used(plan, node, i);
            if (root < 0) continue;
            clv__block *block = &layers->blocks[root];
            layers->uses[block->first_use + block->n_uses++] =
                (clv__use){b->of_node[node->node->id], (int)at};
        }
    }
    return CLV_OK;
}

// ---- what runs of layers take -----------------------------------------------------------------------------

/** What begins and ends to live at each position, in two arenas. */
typedef struct lives {
    int64_t *activations, *gradients; // [position]: bytes more than before
} lives;

/** A block as a run of layers sees it: from its first to its last use there; used elsewhere too? */
static void add_block(const clv__layers *layers, const clv__block *block, int first, int end,
                      const lives *live, clv__span *span) {
    int from = INT_MAX, to = -1;
    bool elsewhere = false, here = block->made_by >= first && block->made_by < end;
    for (size_t i = block->first_use; i < block->first_use + block->n_uses; i++) {
        const clv__use *use = &layers->uses[i];
        if (use->layer < first || use->layer >= end) {
            elsewhere = true;
        } else {
            if (use->at < from) from = use->at;
            if (use->at > to) to = use->at;
        }
    }
    if (to < 0) return;
    if (block->segment == CLV__IN_INPUTS) { // two slots, and their staging
        span->bytes += 4 * block->bytes;
        return;
    }
    if (here && elsewhere) {
        span->out++;
        span->out_bytes += block->bytes;
        if (!layers->shares_memory) span->bytes += 2 * block->bytes; // staged, in two slots
    }
    if (!here) {
        span->in++;
        span->in_bytes += block->bytes;
        if (layers->shares_memory) return;
    } else if (block->segment == CLV__IN_SESSION) {
        return; // counted by layer
    }
    if (here && block->segment == CLV__IN_OUTPUTS) {
        span->bytes += 3 * block->bytes; // itself, and staged in two slots
        return;
    }
    int64_t *bytes = here && block->segment == CLV__IN_GRADIENTS ? live->gradients : live->activations;
    bytes[from] += (int64_t)block->bytes;
    bytes[to + 1] -= (int64_t)block->bytes;
}

static uint64_t most_at_once(const int64_t *changes, int n) {
    int64_t now = 0, most = 0;
    for (int i = 0; i < n; i++) {
        now += changes[i];
        if (now > most) most = now;
    }
    return (uint64_t)most;
}

static clv_status weigh_spans(clv__layers *layers, const clv_plan *plan) {
    size_t n = (size_t)layers->n, positions = (size_t)layers->n_positions + 1;
    layers->spans = clv__alloc(n * (n + 1), sizeof *layers->spans);
    lives live = {clv__alloc(positions, sizeof(int64_t)), clv__alloc(positions, sizeof(int64_t))};
    clv_status status = CLV_OK;
    if (!layers->spans || !live.activations || !live.gradients) {
        status = out_of_memory(plan);
        goto done;
    }
    for (int first = 0; first < layers->n; first++) {
        for (int end = first + 1; end <= layers->n; end++) {
            clv__span *span = &layers->spans[(size_t)first * (n + 1) + (size_t)end];
            memset(live.activations, 0, positions * sizeof(int64_t));
            memset(live.gradients, 0, positions * sizeof(int64_t));
            for (size_t i = 0; i < layers->n_blocks; i++) {
                if (layers->blocks[i].segment != CLV__NOWHERE)
                    add_block(layers, &layers->blocks[i], first, end, &live, span);
            }
            for (int i = first; i < end; i++) span->bytes += layers->items[i].persistent_bytes;
            span->bytes += most_at_once(live.activations, layers->n_positions) +
                           most_at_once(live.gradients, layers->n_positions);
        }
    }
done:
    free(live.activations);
    free(live.gradients);
    return status;
}

clv_status clv__layers_weigh(clv__layers *layers, clv_plan *const *plans, const clv__speed *speeds, int n) {
    const clv_graph *graph = plans[0]->graph;
    belonging b = {clv__alloc(graph->n_nodes, sizeof(int)), clv__alloc(graph->n_tensors, sizeof(int))};
    layers->n_devices = n;
    layers->speeds = speeds;
    layers->shares_memory = true;
    for (int i = 0; i < n; i++) layers->shares_memory &= plans[i]->places[0].device->traits.host_memory;
    layers->seconds = clv__alloc((size_t)n * (size_t)layers->n, sizeof *layers->seconds);
    layers->workspace = clv__alloc((size_t)n * (size_t)layers->n, sizeof *layers->workspace);
    clv_status status = CLV_OK;
    if (!b.of_node || !b.of_tensor || !layers->seconds || !layers->workspace) {
        status = out_of_memory(plans[0]);
    } else {
        assign(layers, plans[0], &b);
        for (int device = 0; device < n; device++) weigh_nodes(layers, plans[device], device, &b);
        weigh_persistents(layers, plans[0], &b);
        status = find_blocks(layers, plans[0], &b);
    }
    if (status == CLV_OK) status = weigh_spans(layers, plans[0]);
    free(b.of_node);
    free(b.of_tensor);
    return status;
}

// ---- answers ----------------------------------------------------------------------------------------------

/** Layers first <= i < end, first < end. */
static const clv__span *span_of(const clv__layers *layers, int first, int end) {
    return &layers->spans[(size_t)first * ((size_t)layers->n + 1) + (size_t)end];
}

double clv__layers_seconds(const clv__layers *layers, int device, int first, int end) {
    if (first == end) return 0;
    const clv__span *span = span_of(layers, first, end);
    const clv__speed *speed = &layers->speeds[device];
    double seconds = (span->in + span->out) * speed->launch;
    if (!layers->shares_memory)
        seconds += (double)span->in_bytes / speed->write + (double)span->out_bytes / speed->read;
    for (int i = first; i < end; i++)
        seconds += layers->seconds[(size_t)device * (size_t)layers->n + (size_t)i];
    return seconds;
}

uint64_t clv__layers_bytes(const clv__layers *layers, int device, int first, int end) {
    if (first == end) return 0;
    size_t workspace = 0;
    for (int i = first; i < end; i++) {
        size_t bytes = layers->workspace[(size_t)device * (size_t)layers->n + (size_t)i];
        if (bytes > workspace) workspace = bytes;
    }
    return span_of(layers, first, end)->bytes + workspace;
}
