// SPDX-License-Identifier: Apache-2.0
// In which float type each tensor is stored. Arithmetic is f32 everywhere: an op's kernels load and store f16 and bf16 where
// its descriptor says so (half_in, half_out), and get an f32 copy where it does not.
//
// In a graph of mixed precision, ops of the forward pass store by their `autocast`: what goes into products in two bytes, what
// loses digits in f32, the rest as its inputs are. Gradients are stored as the tensors they belong to (autodiff.c), so weights
// and their gradients stay f32. Source of the lists: torch.autocast, "CUDA Op-Specific Behavior"; Micikevicius et al. 2017,
// arXiv:1710.03740.
#include "graph/graph.h"
#include "graph/signature.h"
#include "tensor/dtype.h"

#include "cleave/ops.h"

/** The f32 copy of a half tensor, made once in each pass: one that outlived the forward pass would cost more than it saves. */
static clv_tensor *as_float(clv_tensor *x) {
    if (!x->as_float || x->as_float->node->phase != x->graph->phase) x->as_float = clv_cast(x, CLV_DTYPE_F32);
    return x->as_float;
}

/** Is it another integer where the op wants i32? A cast keeps what is beyond i32 at its ends, where no index is. */
static bool is_cast(const clv__op *op, int i, clv_dtype dtype) {
    for (int k = 0; k <= i; k++)
        if (!op->inputs || !op->inputs[k].name) return false;
    return clv__type_casts(op->inputs[i].type, dtype);
}

bool clv__node_cast_inputs(clv__node *node) {
    const clv__op *op = node->io.op;
    for (int i = 0; i < node->io.n_in; i++) {
        if (node->in[i] && is_cast(op, i, node->in[i]->desc.dtype)) {
            node->in[i] = clv_cast(node->in[i], CLV_DTYPE_I32);
            if (!node->in[i]) return false;
        }
        if (!node->in[i] || !clv__is_half(node->in[i]->desc.dtype) || op->half_in >> i & 1) continue;
        node->in[i] = as_float(node->in[i]);
        if (!node->in[i]) return false;
    }
    return true;
}

/** The type that inputs share if they are all stored in two bytes alike; else f32. Inputs that can only be f32 have no say. */
static clv_dtype shared_type(const clv__node *node) {
    clv_dtype shared = CLV_DTYPE_NONE;
    for (int i = 0; i < node->io.n_in; i++) {
        clv_dtype dtype = node->in[i] ? node->in[i]->desc.dtype : CLV_DTYPE_NONE;
        if (!(node->io.op->half_in >> i & 1) || !clv__is_float(dtype)) continue;
        if (shared != CLV_DTYPE_NONE && shared != dtype) return CLV_DTYPE_F32;
        shared = dtype;
    }
    return shared == CLV_DTYPE_NONE ? CLV_DTYPE_F32 : shared;
}

void clv__node_store(clv__node *node) {
    static const clv_dtype halves[] = {
        [CLV_PRECISION_MIXED] = CLV_DTYPE_F16, [CLV_PRECISION_MIXED_BF16] = CLV_DTYPE_BF16};
    const clv__op *op = node->io.op;
    clv_dtype dtype = shared_type(node);
    if (node->graph->precision != CLV_PRECISION_F32 && node->phase == CLV__FORWARD) {
        if (op->autocast == CLV__CAST_HALF) dtype = halves[node->graph->precision];
        if (op->autocast == CLV__CAST_FLOAT) dtype = CLV_DTYPE_F32;
    }
    for (int i = 0; i < node->io.n_out; i++) {
        if (op->half_out >> i & 1 && node->io.out[i].dtype == CLV_DTYPE_F32) node->io.out[i].dtype = dtype;
    }
}

/** Does a node after the one that made it read a tensor? `but`: one that does not count; NULL for none. */
static bool is_read(const clv_tensor *tensor, const clv__node *but) {
    const clv_graph *graph = tensor->graph;
    for (size_t id = (size_t)tensor->node->id + 1; id < graph->n_nodes; id++) {
        for (int i = 0; i < graph->nodes[id]->io.n_in; i++) {
            if (graph->nodes[id]->in[i] == tensor && graph->nodes[id] != but) return true;
        }
    }
    return false;
}

static bool can_store(const clv_tensor *tensor, clv_dtype dtype, size_t since, const clv__node *reader) {
    if (tensor->kind != CLV__VALUE || (size_t)tensor->node->id < since || is_read(tensor, reader))
        return false;
    const clv__op *op = tensor->node->io.op;
    if (op->view) return can_store(tensor->node->in[0], dtype, since, tensor->node);
    return dtype == CLV_DTYPE_F32 || op->half_out >> tensor->output_index & 1;
}

static void store(clv_tensor *tensor, clv_dtype dtype) {
    clv__node *node = tensor->node;
    if (node->io.op->view) {
        store(node->in[0], dtype);
        node->in_desc[0].dtype = dtype;
    }
    tensor->desc.dtype = node->io.out[tensor->output_index].dtype = dtype;
}

clv_tensor *clv__stored_as(clv_tensor *tensor, clv_dtype dtype, size_t since) {
    if (!tensor || tensor->desc.dtype == dtype || !clv__is_float(tensor->desc.dtype)) return tensor;
    if (!can_store(tensor, dtype, since, NULL)) return clv_cast(tensor, dtype);
    store(tensor, dtype);
    return tensor;
}
