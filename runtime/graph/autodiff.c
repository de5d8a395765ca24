// SPDX-License-Identifier: Apache-2.0
// Reverse-mode differentiation, graph to graph: gradients are nodes like any others, so the plan sees them.
#include <string.h>

#include "cleave/ops.h"
#include "graph/graph.h"
#include "tensor/dtype.h"

/** Is there a path from something that wants a gradient? Set when the node was made; ops without grad stop it. */
static bool leads_to_gradient(const clv__node *node) {
    for (int i = 0; i < node->io.n_in; i++) {
        if (clv__wants_grad(node, i)) return true;
    }
    return false;
}

/** Nodes before `end` that the loss depends on. */
static void mark_needed(const clv__node *node, bool *needed) {
    // Nodes are in order of execution: one sweep from the end reaches everything.
    needed[node->id] = true;
    for (int id = node->id; id >= 0; id--) {
        if (!needed[id]) continue;
        const clv__node *at = node->graph->nodes[id];
        for (int i = 0; i < at->io.n_in; i++) {
            if (at->in[i] && at->in[i]->node) needed[at->in[i]->node->id] = true;
        }
    }
}

/** Of a parameter that replicas use in micro-batches, or more than once: what the replica at hand has summed up so far, which stays with it until it is
 *  done, so that a replica hands on one gradient and not one of each micro-batch. */
typedef struct part_sum {
    clv_tensor *sum;       // NULL: nothing
    const clv__node *node; // that the newest term is of
    const char *place;     // of the newest node that reads it, while uses are counted
    bool twice;            // a replica reads it more than once
} part_sum;

/** Which parameters does a replica read more than once? Replicas are built one after the other. */
static void find_twice(const clv_graph *graph, size_t n_nodes, const bool *needed, part_sum *parts) {
    for (size_t id = 0; id < n_nodes; id++) {
        const clv__node *node = graph->nodes[id];
        for (int i = 0; i < node->io.n_in && needed[id] && node->place_hint; i++) {
            if (!node->in[i] || !node->in[i]->trainable) continue;
            part_sum *part = &parts[node->in[i]->id];
            part->twice |= part->place && strcmp(part->place, node->place_hint) == 0;
            part->place = node->place_hint;
        }
    }
}

/** A replica has summed up its micro-batches: add that to the sum over replicas. */
static void fold(part_sum *part, clv_tensor **sum) {
    if (!part->sum) return;
    clv_graph *graph = part->node->graph;
    const clv__node *of = graph->gradient_of;
    const char *layer = graph->layer_override;
    graph->gradient_of = part->node;
    graph->layer_override = part->node->layer;
    if (part->sum->kind == CLV__VALUE) part->sum->category = CLV_GRADIENTS;
    *sum = *sum ? clv_add(*sum, part->sum) : part->sum;
    graph->gradient_of = of;
    graph->layer_override = layer;
    part->sum = NULL;
}

/** Add what a node's gradient function made to the sums, stored as the tensors it is the gradient of. */
static void add_gradients(const clv__node *node, clv_tensor *const *dx, size_t since, clv_tensor **sums,
                          part_sum *parts) {
    for (int i = 0; i < node->io.n_in; i++) {
        if (!dx[i] || !clv__wants_grad(node, i)) continue;
        int in = node->in[i]->id;
        bool taken = false; // by an input before, and stored as that one is
        for (int k = 0; k < i; k++) taken |= dx[k] == dx[i];
        clv_tensor *gradient =
            clv__stored_as(dx[i], node->in[i]->desc.dtype, taken ? node->graph->n_nodes : since);
        // of replicas, whose places the builder asked for: each has its term of the gradient until the updates
        if (node->in[i]->trainable && node->place_hint && node->micro_batch < 0 &&
            gradient->kind == CLV__VALUE)
            gradient->category = CLV_GRADIENTS;
        // of micro-batches: the sum so far stays in the gradient's memory and is added to in place
        if (sums[in] && node->micro_batch >= 0 && node->in[i]->trainable) sums[in]->category = CLV_GRADIENTS;
        clv_tensor **sum = &sums[in];
        if (node->in[i]->trainable && node->place_hint && (node->micro_batch >= 0 || parts[in].twice)) {
            part_sum *part = &parts[in];
            if (part->sum && strcmp(part->node->place_hint, node->place_hint) != 0) fold(part, sum);
            if (part->sum) part->sum->category = CLV_GRADIENTS;
            part->node = node;
            sum = &part->sum;
        }
        *sum = *sum ? clv_add(*sum, gradient) : gradient;
    }
}

/** The gradients of a node: by a row of the table of rewrites, or as its op says. */
static void make_gradients(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx) {
    for (const clv__gradient_rewrite *r = clv__gradient_rewrites; r->of && dy[0] && dy[0]->node && !dx[0];
         r++)
        if (r->of == node->io.op && r->before == dy[0]->node->io.op) dx[0] = r->build(node, dy[0]->node);
    if (!dx[0]) node->io.op->grad(node, dy, dx);
}

/** The node nearest to the loss that reads something with a gradient and passes none on; NULL if there is none. */
static const clv__node *find_stop(const clv_graph *graph, const clv_tensor *loss, const bool *needed) {
    for (int id = loss->node->id; id >= 0; id--) {
        if (needed[id] && leads_to_gradient(graph->nodes[id])) return graph->nodes[id];
    }
    return NULL;
}

/** No gradient can flow from the loss: say which op or call stopped it, if a parameter leads to it at all. */
static void tell_where_it_stops(clv_graph *graph, const clv_tensor *loss) {
    bool *needed = clv__arena_alloc(&graph->arena, graph->n_nodes + 1, sizeof *needed);
    if (needed && loss->node) mark_needed(loss->node, needed);
    const clv__node *stop = needed && loss->node ? find_stop(graph, loss, needed) : NULL;
    clv__node_title title;
    if (!stop)
        clv__graph_fail(graph, CLV_E_STATE,
                        "clv_backward: no parameter leads to the loss '%s', and nothing else that "
                        "requires a gradient (clv_requires_grad)",
                        loss->name);
    else if (!clv__is_float(stop->out[0]->desc.dtype))
        clv__graph_fail(graph, CLV_E_STATE,
                        "clv_backward: no parameter leads to the loss '%s': the gradient stops at %s, whose "
                        "result is %s",
                        loss->name, clv__title_of(stop, &title), clv_dtype_name(stop->out[0]->desc.dtype));
    else
        clv__graph_fail(graph, CLV_E_STATE,
                        "clv_backward: no parameter leads to the loss '%s': the gradient stops at %s, whose "
                        "result was detached (clv_detach, clv_requires_grad)",
                        loss->name, clv__title_of(stop, &title));
}

void clv_backward(clv_tensor *loss) {
    clv_graph *graph = clv__tensor_graph(loss);
    if (!graph || graph->error.status != CLV_OK) return;
    char text[128];
    if (clv_tensor_numel(loss) != 1 || loss->desc.dtype != CLV_DTYPE_F32) {
        clv__graph_fail(graph, CLV_E_SHAPE,
                        "clv_backward: the loss '%s' must be one f32 element, it is %s %s", loss->name,
                        clv_dtype_name(loss->desc.dtype),
                        clv_shape_text(&loss->desc.shape, text, sizeof text));
        return;
    }
    if (!loss->node || !loss->requires_grad) {
        tell_where_it_stops(graph, loss);
        return;
    }
    if (loss->gradient) {
        clv__graph_fail(graph, CLV_E_STATE, "clv_backward was called for '%s' before", loss->name);
        return;
    }
    size_t n_forward = graph->n_nodes, n_tensors = graph->n_tensors;
    bool *needed = clv__arena_alloc(&graph->arena, n_forward, sizeof *needed);
    clv_tensor **sums =
        clv__arena_alloc(&graph->arena, n_tensors, sizeof *sums); // gradient so far, by tensor id
    part_sum *parts = clv__arena_alloc(&graph->arena, n_tensors, sizeof *parts);
    if (!needed || !sums || !parts) {
        clv__graph_fail(graph, CLV_E_HOST_MEMORY, "no host memory for the backward graph");
        return;
    }
    mark_needed(loss->node, needed);
    find_twice(graph, n_forward, needed, parts);

    graph->phase = CLV__BACKWARD;
    graph->layer_override = loss->layer;
    graph->gradient_of = loss->node;
    sums[loss->id] = graph->scale ? clv_reshape(graph->scale, loss->desc.shape)
                                  : clv_full(graph, CLV_DTYPE_F32, loss->desc.shape, 1.0f);
    for (int id = loss->node->id; id >= 0 && graph->error.status == CLV_OK; id--) {
        const clv__node *node = graph->nodes[id];
        if (!needed[id] || !leads_to_gradient(node)) continue;
        clv_tensor *dy[CLV__MAX_OUT] = {0}, *dx[CLV__MAX_IN] = {0};
        bool any = false;
        for (int i = 0; i < node->io.n_out; i++) {
            dy[i] = sums[node->out[i]->id];
            any |= dy[i] != NULL;
        }
        if (!any) continue;
        if (!node->io.op->grad) {
            clv__node_title title;
            clv__graph_fail(
                graph, CLV_E_UNSUPPORTED,
                "clv_backward: the gradient stops at %s, an op without one, and a parameter leads to "
                "it; clv_detach its input if that is meant",
                clv__title_of(node, &title));
            break;
        }
        graph->layer_override = node->layer;
        graph->gradient_of = node;
        size_t since = graph->n_nodes;
        make_gradients(node, dy, dx);
        add_gradients(node, dx, since, sums, parts);
    }
    for (size_t i = 0; i < n_tensors && graph->error.status == CLV_OK; i++) fold(&parts[i], &sums[i]);
    graph->layer_override = NULL;
    graph->gradient_of = NULL;
    graph->phase = CLV__FORWARD;

    for (size_t i = 0; i < n_tensors; i++) {
        clv_tensor *tensor = graph->tensors[i];
        tensor->gradient = sums[i];
        if (sums[i] && tensor->trainable && sums[i]->kind == CLV__VALUE) sums[i]->category = CLV_GRADIENTS;
    }
}
