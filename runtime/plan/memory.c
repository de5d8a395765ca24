// SPDX-License-Identifier: Apache-2.0
// Third pass: where every tensor lies. Tensors that are the same memory (views, in place) become one block; blocks that
// never live at the same time share bytes of an arena. Large blocks are placed first, each at the lowest place that is
// free during its life (greedy by size: Pisarchyk and Lee 2020, arXiv:2001.03288, section 5.2).
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "plan/plan.h"

size_t clv__layout_chunk(const clv__layout *layout, int i) {
    size_t start = (size_t)i * layout->chunk;
    if (layout->chunk == 0 || start >= layout->bytes) return 0;
    size_t rest = layout->bytes - start;
    return rest < layout->chunk ? rest : layout->chunk;
}

static clv_tensor *tensor_of(const clv_plan *plan, int id) {
    return plan->graph->tensors[id];
}

static int root_of(const clv_plan *plan, const clv_tensor *tensor) {
    return plan->tensors[tensor->id].root;
}

/** Make `tensor` share the memory of `with`. Nodes are visited in order, so chains stay one step long. */
static void share(clv_plan *plan, const clv_tensor *tensor, const clv_tensor *with) {
    plan->tensors[tensor->id].root = root_of(plan, with);
}

/** Roots, and first and last use, without what sharing in place will add. */
static void find_lives(clv_plan *plan) {
    for (int id = 0; id < plan->n_tensors; id++) {
        plan->tensors[id] = (clv__plan_tensor){.root = id, .first = INT_MAX, .last = -1,
                                               .bytes = clv_tensor_bytes(tensor_of(plan, id))};
    }
    for (int at = 0; at < plan->n_nodes; at++) {
        const clv__node *node = plan->nodes[at].node;
        if (node->io.op->view) share(plan, node->out[0], node->in[0]);
        for (int i = 0; i < node->io.n_in + node->io.n_out; i++) {
            const clv_tensor *tensor = i < node->io.n_in ? node->in[i] : node->out[i - node->io.n_in];
            if (!tensor) continue;
            clv__plan_tensor *root = &plan->tensors[root_of(plan, tensor)];
            if (root->first > at) root->first = at;
            if (root->last < at) root->last = at;
        }
    }
}

/** The segment of each root, from everything that shares it. */
static void find_segments(clv_plan *plan) {
    for (int id = 0; id < plan->n_tensors; id++) {
        const clv_tensor *tensor = tensor_of(plan, id);
        clv__plan_tensor *root = &plan->tensors[plan->tensors[id].root];
        const clv_tensor *owner = tensor_of(plan, plan->tensors[id].root);
        if (root->last < 0) continue;
        if (owner->kind == CLV__PERSISTENT) {
            root->segment = CLV__IN_SESSION;
        } else if (owner->kind == CLV__INPUT) {
            root->segment = CLV__IN_INPUTS;
        } else if (tensor->category == CLV_GRADIENTS || root->segment == CLV__IN_GRADIENTS) {
            root->segment = CLV__IN_GRADIENTS;
        } else if (tensor->is_output || root->segment == CLV__IN_OUTPUTS) {
            root->segment = CLV__IN_OUTPUTS;
        } else {
            root->segment = CLV__IN_ACTIVATIONS;
        }
        if (tensor->is_output) root->last = plan->n_nodes; // read after the last node
    }
}

/** Let outputs be written over inputs that die there, where the op allows it. */
static void share_in_place(clv_plan *plan) {
    for (int at = 0; at < plan->n_nodes; at++) {
        const clv__node *node = plan->nodes[at].node;
        uint32_t allowed = node->io.op->inplace;
        if (!allowed || plan->device->info.type == CLV_DEVICE_HOST) continue;
        int out = root_of(plan, node->out[0]);
        if (plan->tensors[out].segment != CLV__IN_ACTIVATIONS || out != node->out[0]->id) continue;
        for (int i = 0; i < node->io.n_in; i++) {
            if (!(allowed & (1u << i)) || !node->in[i]) continue;
            int in = root_of(plan, node->in[i]);
            const clv__plan_tensor *from = &plan->tensors[in];
            if (from->segment != CLV__IN_ACTIVATIONS || from->last != at || from->bytes != plan->tensors[out].bytes) continue;
            bool alone = true;
            for (int j = 0; j < node->io.n_in; j++) alone &= j == i || !node->in[j] || root_of(plan, node->in[j]) != in;
            if (!alone) continue;
            // everything that is the output's memory (itself and views of it) moves over to the input's
            if (plan->tensors[in].last < plan->tensors[out].last) plan->tensors[in].last = plan->tensors[out].last;
            for (int id = 0; id < plan->n_tensors; id++) {
                if (plan->tensors[id].root == out) plan->tensors[id].root = in;
            }
            break;
        }
    }
}

// ---- placing blocks in an arena --------------------------------------------------------------------------------------

typedef struct block {
    int id; // root tensor
    size_t bytes;
    int first, last;
    size_t offset;
} block;

static int larger_first(const void *a, const void *b) {
    const block *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    return x->id - y->id; // the same layout every time
}

/** `start` moved to the next chunk if `bytes` from it would cross a chunk's end. */
static size_t inside_chunk(size_t start, size_t bytes, size_t chunk) {
    size_t end_of_chunk = (start / chunk + 1) * chunk;
    return bytes <= chunk && start + bytes > end_of_chunk ? end_of_chunk : start;
}

/** Place blocks; `placed` is scratch of n, kept sorted by offset. */
static void place(block *blocks, int n, block **placed, clv__layout *layout) {
    qsort(blocks, (size_t)n, sizeof *blocks, larger_first);
    int n_placed = 0;
    for (int b = 0; b < n; b++) {
        block *now = &blocks[b];
        size_t start = 0;
        for (int i = 0; i < n_placed; i++) {
            const block *other = placed[i];
            if (other->last < now->first || other->first > now->last) continue;
            start = inside_chunk(start, now->bytes, layout->chunk);
            if (start + now->bytes <= other->offset) break; // fits before it
            size_t end = other->offset + other->bytes;
            if (end > start) start = end;
        }
        now->offset = inside_chunk(start, now->bytes, layout->chunk);
        if (now->offset + now->bytes > layout->bytes) layout->bytes = now->offset + now->bytes;
        int at = n_placed++;
        for (; at > 0 && placed[at - 1]->offset > now->offset; at--) placed[at] = placed[at - 1];
        placed[at] = now;
    }
}

static clv_status lay_out(clv_plan *plan, clv__segment segment, clv__layout *layout) {
    size_t alignment = plan->device->info.alignment_bytes;
    *layout = (clv__layout){.chunk = (size_t)plan->device->info.max_alloc_bytes & ~(alignment - 1)};
    block *blocks = clv__alloc((size_t)plan->n_tensors, sizeof *blocks);
    block **placed = clv__alloc((size_t)plan->n_tensors, sizeof *placed);
    clv_status status = CLV_OK;
    if (!blocks || !placed) {
        status = clv__error_set(clv__runtime_error_of(plan->graph->runtime), CLV_E_HOST_MEMORY, "no host memory for the plan");
        goto done;
    }
    int n = 0;
    for (int id = 0; id < plan->n_tensors; id++) {
        const clv__plan_tensor *tensor = &plan->tensors[id];
        if (tensor->root != id || tensor->segment != segment || tensor->last < 0 || tensor->bytes == 0) continue;
        blocks[n++] = (block){.id = id, .bytes = clv__size_align(tensor->bytes, alignment), .first = tensor->first,
                              .last = tensor->last};
    }
    place(blocks, n, placed, layout);
    for (int i = 0; i < n; i++) plan->tensors[blocks[i].id].offset = blocks[i].offset;
done:
    free(blocks);
    free(placed);
    return status;
}

/** Offsets one after another, for tensors that all live through the step. */
static size_t line_up(clv_plan *plan, const int *ids, int n, clv__segment segment) {
    size_t bytes = 0;
    for (int i = 0; i < n; i++) {
        clv__plan_tensor *tensor = &plan->tensors[plan->tensors[ids[i]].root];
        if (tensor->segment != segment || tensor->first == -2) continue;
        tensor->offset = bytes;
        tensor->first = -2; // placed: two outputs may be views of one tensor
        bytes += clv__size_align(tensor->bytes, plan->device->info.alignment_bytes);
    }
    return bytes;
}

clv_status clv__plan_memory(clv_plan *plan) {
    find_lives(plan);
    find_segments(plan);
    share_in_place(plan);
    CLV_TRY(lay_out(plan, CLV__IN_GRADIENTS, &plan->gradients));
    CLV_TRY(lay_out(plan, CLV__IN_ACTIVATIONS, &plan->activations));
    plan->input_bytes = line_up(plan, plan->inputs, plan->n_inputs, CLV__IN_INPUTS);
    plan->output_bytes = line_up(plan, plan->outputs, plan->n_outputs, CLV__IN_OUTPUTS);
    plan->staged_bytes = 0;
    for (int i = 0; i < plan->n_outputs; i++) {
        plan->staged_bytes += clv__size_align(plan->tensors[plan->outputs[i]].bytes, plan->device->info.alignment_bytes);
    }
    plan->workspace_bytes = 0;
    for (int i = 0; i < plan->n_nodes; i++) {
        size_t bytes = plan->nodes[i].launches.workspace_bytes;
        if (bytes > plan->workspace_bytes) plan->workspace_bytes = bytes;
    }
    for (int id = 0; id < plan->n_tensors; id++) { // what shares memory is where its root is
        clv__plan_tensor *tensor = &plan->tensors[id], *root = &plan->tensors[tensor->root];
        tensor->segment = root->last < 0 ? CLV__NOWHERE : root->segment;
        tensor->offset = root->offset;
    }
    return CLV_OK;
}
