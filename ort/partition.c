// SPDX-License-Identifier: Apache-2.0
// Which nodes of a graph Cleave computes. At first all whose tensors are of types that it has. These are divided into parts that no other
// node stands between, each part is built as it would be for a run, with sizes that are open taken as some number, and a node that
// cannot be built is left to others; so again, until all parts can be. What is left over is ONNX Runtime's.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "provider.h"

typedef struct partition {
    const provider *provider;
    const view *view;
    bool *taken;   // by node
    int *segment;  // by node: of its part, where it is taken
    bool *marked;  // nodes of the part that is looked at
    int *lost;     // by node: of its op so many could not be built, at the first node of that op
    char why[512]; // of the first that could not
    const char *why_op;
} partition;

enum { MOST_LOST = 3 }; // of an op; then none of it is tried any more

// ---- nodes that may be taken ------------------------------------------------------------------------------------------

clv_dtype dtype_of(int element) {
    switch (element) {
    case ELEMENT_FLOAT: return CLV_DTYPE_F32;
    case ELEMENT_UINT8: return CLV_DTYPE_U8;
    case ELEMENT_INT8: return CLV_DTYPE_I8;
    case ELEMENT_INT32: return CLV_DTYPE_I32;
    case ELEMENT_INT64: return CLV_DTYPE_I64;
    case ELEMENT_BOOL: return CLV_DTYPE_BOOL;
    case ELEMENT_FLOAT16: return CLV_DTYPE_F16;
    case ELEMENT_BFLOAT16: return CLV_DTYPE_BF16;
    default: return CLV_DTYPE_NONE;
    }
}

static bool has_types(const view *v, const int *values, int n) {
    for (int i = 0; i < n; i++)
        if (values[i] >= 0 &&
            (v->values[values[i]].rank < 0 || dtype_of(v->values[values[i]].type) == CLV_DTYPE_NONE))
            return false;
    return true;
}

static bool may_be_taken(const view *v, const view_node *node) {
    return !node->has_graphs && node->n_out > 0 && has_types(v, node->in, node->n_in) &&
           has_types(v, node->out, node->n_out);
}

/** Ops that are worth carrying values to a device and back. A graph that is taken as a whole may be without. */
static bool is_work(const view_node *node) {
    static const char *const ops[] = {"Attention",   "Conv",          "ConvInteger",   "ConvTranspose",
                                      "DeformConv",  "Einsum",        "GRU",           "Gemm",
                                      "LSTM",        "MatMul",        "MatMulInteger", "MultiHeadAttention",
                                      "QLinearConv", "QLinearMatMul", "QGemm",         "RNN"};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (strcmp(node->op, ops[i]) == 0) return true;
    return false;
}

// ---- parts -------------------------------------------------------------------------------------------------------------

static void after(const partition *p, int node, const int *values, int n) {
    for (int i = 0; i < n; i++) {
        const int before = values[i] < 0 ? -1 : p->view->values[values[i]].maker;
        if (before < 0) continue;
        const int least = p->segment[before] + (p->taken[before] != p->taken[node]);
        if (p->segment[node] < least) p->segment[node] = least;
    }
}

/** Numbers that grow along every path where it enters or leaves what is taken: nodes of one number have no other node between them. */
static int divide(partition *p) {
    int n = 0;
    for (int i = 0; i < p->view->n_nodes; i++) {
        const view_node *node = &p->view->nodes[i];
        p->segment[i] = 0;
        after(p, i, node->in, node->n_in);
        after(p, i, node->inner, node->n_inner);
        if (n <= p->segment[i]) n = p->segment[i] + 1;
    }
    return n;
}

/** Mark the nodes of a part; how many. */
static int mark(partition *p, int segment) {
    int n = 0;
    for (int i = 0; i < p->view->n_nodes; i++) {
        p->marked[i] = p->taken[i] && p->segment[i] == segment;
        n += p->marked[i];
    }
    return n;
}

static bool is_worth(const partition *p, int n) {
    if (n == p->view->n_nodes) return true;
    for (int i = 0; i < p->view->n_nodes; i++)
        if (p->marked[i] && is_work(&p->view->nodes[i])) return true;
    return false;
}

// ---- can it be built? ------------------------------------------------------------------------------------------------------

/** A number for an open dimension, the same for one name: few samples, and a size that strides and kernels divide. */
static int64_t some_size(const view *v, const char *symbol, int d) {
    enum { SAMPLES = 2, SIZE = 64 };
    if (!symbol || !*symbol) return d ? SIZE : SAMPLES;
    for (int i = 0; i < v->n_values; i++)
        if (v->values[i].rank > 0 && v->values[i].dims[0] < 0 && v->values[i].symbols[0] &&
            strcmp(v->values[i].symbols[0], symbol) == 0)
            return SAMPLES;
    return SIZE;
}

static clv_tensor *some_input(const view *v, clv_graph *graph, const view_value *value) {
    clv_shape shape = {.rank = value->rank};
    for (int d = 0; d < value->rank; d++)
        shape.dims[d] = value->dims[d] >= 0 ? value->dims[d] : some_size(v, value->symbols[d], d);
    return clv_input(graph, value->name, dtype_of(value->type), shape);
}

/** Build the marked nodes. node: which of them could not be; -1: none, or another reason. */
static clv_status build(const partition *p, const model *m, int64_t *node) {
    clv_runtime *runtime = p->provider->factory->runtime;
    const clv_onnx_config config = {.any_shape = true};
    clv_onnx *onnx = NULL;
    clv_graph *graph = NULL;
    *node = -1;
    clv_tensor **inputs = calloc((size_t)m->n_inputs + 1, sizeof(clv_tensor *)),
               **outputs = calloc((size_t)m->n_outputs + 1, sizeof(clv_tensor *));
    clv_status status = inputs && outputs ? CLV_OK : CLV_E_HOST_MEMORY;
    if (status == CLV_OK) status = clv_onnx_read_bytes(runtime, "a graph", m->bytes, m->n, &config, &onnx);
    if (status == CLV_OK) status = clv_graph_create(runtime, &graph);
    for (int i = 0; status == CLV_OK && i < m->n_inputs; i++)
        inputs[i] = some_input(p->view, graph, &p->view->values[m->inputs[i]]);
    if (status == CLV_OK)
        status = clv_onnx_append(onnx, graph, inputs, m->n_inputs, outputs, m->n_outputs, node);
    clv_graph_destroy(graph);
    clv_onnx_destroy(onnx);
    free(inputs);
    free(outputs);
    return status;
}

/** The n-th of the marked nodes. */
static int marked_at(const partition *p, int64_t n) {
    for (int i = 0; i < p->view->n_nodes; i++)
        if (p->marked[i] && n-- == 0) return i;
    return -1;
}

static bool same_op(const view_node *a, const view_node *b) {
    return strcmp(a->op, b->op) == 0 && strcmp(a->domain, b->domain) == 0;
}

/** Leave a node to others; of an op that has failed before all nodes. */
static void leave(partition *p, int node) {
    const view_node *nodes = p->view->nodes;
    int first = 0;
    while (!same_op(&nodes[first], &nodes[node])) first++;
    p->taken[node] = false;
    if (!*p->why) {
        snprintf(p->why, sizeof p->why, "%s", clv_runtime_error(p->provider->factory->runtime));
        p->why_op = nodes[node].op;
    }
    if (++p->lost[first] < MOST_LOST) return;
    for (int i = 0; i < p->view->n_nodes; i++)
        if (same_op(&nodes[i], &nodes[node])) p->taken[i] = false;
}

/** Build the marked nodes; those that cannot be are taken no longer. all: all of them can. */
static OrtStatus *try_part(partition *p, bool *all) {
    model m;
    int64_t at;
    ORT_TRY(model_write(p->view, p->marked, &m));
    const clv_status status = build(p, &m, &at);
    model_reset(&m);
    *all = status == CLV_OK;
    if (*all) return NULL;
    if (status == CLV_E_HOST_MEMORY) return failure(p->provider->factory, status);
    const int node = at < 0 ? -1 : marked_at(p, at);
    if (node >= 0) leave(p, node);
    for (int i = 0; node < 0 && i < p->view->n_nodes; i++) // a reason of none of them
        if (p->marked[i]) leave(p, i);
    return NULL;
}

/** Until all parts can be built. What was built once need not be again, if its part is the same. */
static OrtStatus *try_all(partition *p) {
    for (bool again = true; again;) {
        const int n = divide(p);
        again = false;
        for (int segment = 0; segment < n; segment++) {
            bool all = true;
            const int marked = mark(p, segment);
            if (marked && is_worth(p, marked)) ORT_TRY(try_part(p, &all));
            again = again || !all;
            if (!all) break;
        }
    }
    return NULL;
}

// ---- the answer ------------------------------------------------------------------------------------------------------------

static OrtStatus *fuse(const partition *p, OrtEpGraphSupportInfo *info, int *n_nodes) {
    const factory *f = p->provider->factory;
    const ort_fusion_options options = {.version = ORT_VERSION, .drop_constant_initializers = true};
    const OrtNode **nodes = calloc((size_t)p->view->n_nodes + 1, sizeof *nodes);
    size_t n = 0;
    if (!nodes) return no_memory(f);
    for (int i = 0; i < p->view->n_nodes; i++)
        if (p->marked[i]) nodes[n++] = p->view->nodes[i].node;
    OrtStatus *status = f->ep.AddNodesToFuse(info, nodes, n, &options);
    *n_nodes += (int)n;
    free(nodes);
    return status;
}

static void tell(const partition *p, int n_nodes, int n_parts) {
    const provider *self = p->provider;
    char text[1024];
    snprintf(text, sizeof text, "Cleave computes %d of %d nodes, in %d part%s, on %s%s%s%s%s", n_nodes,
             p->view->n_nodes, n_parts, n_parts == 1 ? "" : "s", clv_device_info_get(self->device)->name,
             *p->why ? "; not the first " : "", *p->why ? p->why_op : "", *p->why ? ": " : "", p->why);
    passed(self->factory, self->factory->ort.Logger_LogMessage(self->logger, LEVEL_INFO, text, "cleave", 0,
                                                               "get_capability"));
}

static OrtStatus *answer(partition *p, OrtEpGraphSupportInfo *info) {
    int n_nodes = 0, n_parts = 0;
    ORT_TRY(try_all(p));
    const int n = divide(p);
    for (int segment = 0; segment < n; segment++) {
        const int marked = mark(p, segment);
        if (!marked || !is_worth(p, marked)) continue;
        ORT_TRY(fuse(p, info, &n_nodes));
        n_parts++;
    }
    tell(p, n_nodes, n_parts);
    return NULL;
}

OrtStatus *get_capability(OrtEp *self, const OrtGraph *graph, OrtEpGraphSupportInfo *info) {
    const provider *me = (const provider *)self;
    const OrtNode *around = NULL;
    view v;
    ORT_TRY(me->factory->ort.Graph_GetParentNode(graph, &around));
    if (around) return NULL; // ONNX Runtime refuses nodes of ours in the graph of a node of a function
    ORT_TRY(view_read(me->factory, graph, &v));
    const size_t n = (size_t)v.n_nodes + 1;
    partition p = {.provider = me,
                   .view = &v,
                   .taken = calloc(n, sizeof(bool)),
                   .marked = calloc(n, sizeof(bool)),
                   .segment = calloc(n, sizeof(int)),
                   .lost = calloc(n, sizeof(int))};
    const bool room = p.taken && p.marked && p.segment && p.lost;
    for (int i = 0; room && i < v.n_nodes; i++) p.taken[i] = may_be_taken(&v, &v.nodes[i]);
    OrtStatus *status = !room ? no_memory(me->factory) : v.n_nodes ? answer(&p, info) : NULL;
    free(p.taken);
    free(p.marked);
    free(p.segment);
    free(p.lost);
    view_reset(&v);
    return status;
}
