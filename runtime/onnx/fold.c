// SPDX-License-Identifier: Apache-2.0
// Nodes whose inputs are known while the graph is built, computed on the host: shapes, and what is made of shapes. What a row builds of
// them is a graph of its own, which the ops' references compute in double; other rows are made of nothing else, and have no tensors to
// begin with. Source: the operators of ONNX 1.23.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cleave/runtime.h"
#include "graph/graph.h"
#include "onnx/import.h"
#include "onnx/known.h"
#include "tensor/dtype.h"

static bool small(const clv_shape *shape) {
    const int64_t n = clv_shape_numel(shape);
    return n >= 0 && n <= CLV__MOST_KNOWN;
}

// ---- by references ----------------------------------------------------------------------------------------------------

/** Room for a tensor's numbers, which goes with its graph; NULL: there are too many. */
static double *room_of(const clv_tensor *tensor) {
    return small(&tensor->desc.shape)
               ? clv__arena_alloc(&tensor->graph->arena, (size_t)clv__numel(&tensor->desc) + 1,
                                  sizeof(double))
               : NULL;
}

/** Are its numbers those of input 0? Whole numbers stay exact where they become floats: f32 would round them from 2^24 on. */
static bool copies(const clv__node *node) {
    return node->io.op->view ||
           (node->io.n_in == 1 && node->io.op->elementwise && !clv__is_float(node->in[0]->desc.dtype) &&
            clv__is_float(node->out[0]->desc.dtype));
}

static bool compute_node(const clv__node *node, double **values) {
    clv__ref ref = {.io = &node->io};
    for (int i = 0; i < node->io.n_in; i++) {
        clv_tensor *in = node->in[i];
        if (!in) continue;
        if (!values[in->id] && in->values && (values[in->id] = room_of(in)))
            clv__elements_widen(in->desc.dtype, in->values, clv__numel(&in->desc), values[in->id]);
        if (!(ref.in[i] = values[in->id])) return false;
    }
    for (int i = 0; i < node->io.n_out; i++)
        if (!(ref.out[i] = values[node->out[i]->id] = room_of(node->out[i]))) return false;
    if (copies(node))
        memcpy(ref.out[0], ref.in[0], (size_t)clv__numel(&node->out[0]->desc) * sizeof(double));
    else if (node->io.op->reference && !node->io.op->random)
        node->io.op->reference(&ref);
    else
        return false;
    return true;
}

/** A result as its type has it; false: its type has it not. */
static bool give_as(clv__onnx_use *use, int i, int type, clv_shape shape, const double *v) {
    const bool is_float = clv__onnx_is_float(type);
    clv__known *y = v && small(&shape) ? clv__onnx_new_known(use, type, shape) : NULL;
    for (int64_t k = 0, n = y ? clv_shape_numel(&shape) : 0; k < n; k++) {
        if (!is_float && type != CLV__ONNX_BOOL && !isfinite(v[k])) return false;
        y->v[k] = type == CLV__ONNX_BOOL     ? v[k] != 0
                  : type == CLV__ONNX_DOUBLE ? v[k]
                  : is_float                 ? (double)(float)v[k]
                                             : trunc(v[k]);
    }
    clv__onnx_give_known(use, i, y);
    return y != NULL;
}

bool clv__onnx_give_cast(clv__onnx_use *use, int type) {
    const clv__known *x = clv__onnx_may_look(use->in[0]) ? clv__onnx_if_known(use, 0) : NULL;
    return x && give_as(use, 0, type, x->shape, x->v);
}

/** The row's graph, of inputs whose numbers are `known`, and its results computed and given. */
static bool fold_in(clv__onnx_use *use, clv_graph *graph) {
    clv__onnx_use inner = *use;
    clv__made *made = clv__arena_alloc(&graph->arena, (size_t)(use->n_in + use->n_out), sizeof *made);
    inner.graph = graph;
    inner.in = clv__arena_alloc(&graph->arena, (size_t)use->n_in, sizeof(void *));
    inner.out = clv__arena_alloc(&graph->arena, (size_t)use->n_out + 1, sizeof(void *));
    if (!made || !inner.in || !inner.out) return false;
    for (int i = 0; i < use->n_in; i++) {
        char name[16];
        if (!use->in[i]) continue;
        const clv__known *known = use->in[i]->known;
        const clv_dtype dtype = clv__onnx_is_float(known->type) ? CLV_DTYPE_F32 : CLV_DTYPE_I32;
        snprintf(name, sizeof name, "in%d", i);
        inner.in[i] = &made[i];
        made[i] = *use->in[i];
        made[i].data = NULL;
        made[i].tensor = clv_input(graph, name, dtype, known->shape);
    }
    for (int i = 0; i < use->n_out; i++)
        if (use->out[i]) inner.out[i] = &made[use->n_in + i];
    use->row->build(&inner);
    double **values = clv__arena_alloc(&graph->arena, graph->n_tensors + 1, sizeof *values);
    if (clv__onnx_failed(&inner) || !values) return false;
    for (int i = 0; i < use->n_in; i++)
        if (inner.in[i]) values[made[i].tensor->id] = use->in[i]->known->v;
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (!compute_node(graph->nodes[i], values)) return false;
    for (int i = 0; i < use->n_out; i++) {
        const clv__made *y = inner.out[i];
        if (!y) continue;
        const clv_tensor *tensor = y->tensor;
        if (y->known ? !give_as(use, i, y->type, y->known->shape, y->known->v)
                     : !tensor || !give_as(use, i, y->type, tensor->desc.shape, values[tensor->id]))
            return false;
    }
    return true;
}

bool clv__onnx_fold(clv__onnx_use *use) {
    clv_graph *graph;
    if (!use->n_in || clv_graph_create(use->graph->runtime, &graph) != CLV_OK) return false;
    graph->training = use->graph->training;
    const bool folds = fold_in(use, graph);
    clv_graph_destroy(graph);
    return folds;
}

// ---- made of nothing ------------------------------------------------------------------------------------------------

static void build_constant(clv__onnx_use *use) {
    static const char *const numbers[] = {"value_int", "value_float", "value_ints", "value_floats"};
    const clv__onnx_attribute *tensor = clv__onnx_attribute_find(use->node, "value");
    if (tensor && tensor->t) {
        clv__onnx_give_known(use, 0, clv__known_of(use, tensor->t, INT64_MAX));
        return;
    }
    for (int i = 0; i < 4; i++) {
        const clv__onnx_attribute *one = clv__onnx_attribute_find(use->node, numbers[i]);
        if (!one) continue;
        clv_shape shape = {.rank = i / 2, .dims = {(int64_t)one->n}};
        clv__known *out = clv__onnx_new_known(use, i % 2 ? CLV__ONNX_FLOAT : CLV__ONNX_INT64, shape);
        if (!out) return;
        if (i < 2) out->v[0] = i ? (double)one->f : (double)one->i;
        for (size_t k = 0; i >= 2 && k < one->n; k++)
            out->v[k] = i == 2 ? (double)one->ints[k] : (double)one->floats[k];
        clv__onnx_give_known(use, 0, out);
        return;
    }
}

static void build_constant_of_shape(clv__onnx_use *use) {
    clv_shape shape = {0};
    shape.rank = clv__onnx_numbers(use, 0, shape.dims, CLV_MAX_RANK);
    const clv__onnx_attribute *value = clv__onnx_attribute_find(use->node, "value");
    double fill = 0;
    int type = CLV__ONNX_FLOAT;
    if (shape.rank < 0) return;
    if (value && value->t) {
        type = (int)value->t->dtype;
        if (value->t->numel < 1 || !clv__onnx_widen(value->t, 0, 1, &fill)) return;
    }
    if (!small(&shape)) { // the device makes it
        const clv_dtype dtype = clv__onnx_is_float(type) ? CLV_DTYPE_F32 : CLV_DTYPE_I32;
        clv__onnx_give_type(use, 0, clv_full(use->graph, dtype, shape, fill), type);
        return;
    }
    clv__known *out = clv__onnx_new_known(use, type, shape);
    for (int64_t i = 0, n = clv_shape_numel(&shape); out && i < n; i++) out->v[i] = fill;
    clv__onnx_give_known(use, 0, out);
}

static void build_range(clv__onnx_use *use) {
    const double start = clv__onnx_number(use, 0, 0), end = clv__onnx_number(use, 1, 0),
                 step = clv__onnx_number(use, 2, 1);
    const double n = fmax(ceil((end - start) / step), 0);
    if (!clv__onnx_known(use, 0) || clv__onnx_failed(use)) return;
    if (step == 0)
        clv__onnx_fail(use, CLV_E_VALUE, "steps of 0 never come from %g to %g", start, end);
    else if (!(n <= CLV__MOST_KNOWN))
        clv__onnx_fail(
            use, CLV_E_UNSUPPORTED,
            "from %g to %g in steps of %g are %g numbers, and %d are the most that a graph is built with",
            start, end, step, n, CLV__MOST_KNOWN);
    if (clv__onnx_failed(use)) return;
    clv__known *out = clv__onnx_new_known(use, use->in[0]->type, CLV_SHAPE((int64_t)n));
    for (int64_t i = 0; out && i < (int64_t)n; i++) out->v[i] = start + (double)i * step;
    clv__onnx_give_known(use, 0, out);
}

static void build_non_zero(clv__onnx_use *use) {
    const clv__known *x = clv__onnx_known(use, 0);
    int64_t n = 0, all = x ? clv_shape_numel(&x->shape) : 0;
    for (int64_t i = 0; i < all; i++) n += x->v[i] != 0;
    clv__known *out = x ? clv__onnx_new_known(use, CLV__ONNX_INT64, CLV_SHAPE(x->shape.rank, n)) : NULL;
    for (int64_t i = 0, at = 0; out && i < all; i++) {
        if (x->v[i] == 0) continue;
        for (int d = x->shape.rank - 1, rest = (int)i; d >= 0; d--) {
            out->v[d * n + at] = rest % (int)x->shape.dims[d];
            rest /= (int)x->shape.dims[d];
        }
        at++;
    }
    clv__onnx_give_known(use, 0, out);
}

const clv__onnx_row clv__onnx_known_rows[] = {
    {"Constant", .build = build_constant},
    {"ConstantOfShape", .build = build_constant_of_shape},
    {"NonZero", .build = build_non_zero},
    {"Range", .build = build_range},
    {0},
};
