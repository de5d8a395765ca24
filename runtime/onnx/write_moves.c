// SPDX-License-Identifier: Apache-2.0
// Rows: ops of ours as nodes of ONNX, those that move elements. Shapes among their attributes may follow the batch.
#include "graph/graph.h"
#include "onnx/writer.h"

#include <stdlib.h>
#include <string.h>

#define NODE clv__writer_node_of

static const char *y_of(clv__onnx_writer *w) {
    return clv__writer_result(w);
}

/** A value as another type; NULL: it is not there. */
static const char *i64_of(clv__onnx_writer *w, int input) {
    return clv__writer_cast(w, clv__writer_in(w, input), CLV__ONNX_INT64, NULL);
}

static void write_full(clv__onnx_writer *w) {
    clv__onnx_size sizes[CLV_MAX_RANK];
    const int n = clv__writer_sizes_of(w, "shape", sizes);
    const float value = (float)clv__writer_number(w, "value");
    const char *one = clv__writer_scalar(w, value);
    const clv_dtype dtype = w->node.outputs[0]->desc.dtype;
    if (dtype != CLV_DTYPE_F32) one = clv__writer_cast(w, one, clv__writer_dtype_of(dtype), NULL);
    NODE(w, "Expand", y_of(w), one, clv__writer_sizes(w, sizes, n, false));
}

/** As many random numbers as a shape has, which may follow the batch. */
static void drawn(clv__onnx_writer *w) {
    const bool normal = !strcmp(w->row->op, "random_normal");
    const char *a = normal ? "mean" : "low", *b = normal ? "scale" : "high";
    clv__onnx_size sizes[CLV_MAX_RANK];
    const int n = clv__writer_sizes_of(w, "shape", sizes);
    const char *zeros =
        NODE(w, "Expand", NULL, clv__writer_scalar(w, 0), clv__writer_sizes(w, sizes, n, false));
    clv__writer_begin(w, w->row->onnx, (const char *const[]){zeros, NULL});
    clv__writer_put_float(w, a, (float)clv__writer_number(w, a));
    clv__writer_put_float(w, b, (float)clv__writer_number(w, normal ? "std" : b));
    clv__writer_end(w, y_of(w));
}

/** To a shape that may follow the batch. */
static void to_shape(clv__onnx_writer *w) {
    clv__onnx_size sizes[CLV_MAX_RANK];
    const int n = clv__writer_sizes_of(w, "shape", sizes);
    NODE(w, w->row->onnx, y_of(w), clv__writer_in(w, 0),
         clv__writer_sizes(w, sizes, n, !strcmp(w->row->op, "reshape")));
}

static void write_permute(clv__onnx_writer *w) {
    int64_t axes[CLV_MAX_RANK];
    const int n = clv__writer_numbers(w, "axes", axes);
    clv__writer_begin(w, "Transpose", (const char *const[]){clv__writer_in(w, 0), NULL});
    clv__writer_put_ints(w, "perm", axes, n);
    clv__writer_end(w, y_of(w));
}

/** The end of a slice. */
static int64_t end_of(const clv_node_info *node) {
    return (int64_t)(clv__writer_argument(node, "start")->number +
                     clv__writer_argument(node, "length")->number);
}

static void write_slice(clv__onnx_writer *w) {
    const clv__onnx_size from =
        clv__writer_size_of(w, (int64_t)clv__writer_argument(&w->node, "start")->number,
                            (int64_t)clv__writer_argument(&w->other, "start")->number);
    const clv__onnx_size to = clv__writer_size_of(w, end_of(&w->node), end_of(&w->other));
    const int64_t axis = (int64_t)clv__writer_number(w, "axis");
    NODE(w, "Slice", y_of(w), clv__writer_in(w, 0), clv__writer_sizes(w, &from, 1, false),
         clv__writer_sizes(w, &to, 1, false), clv__writer_list(w, &axis, 1));
}

static void write_concat(clv__onnx_writer *w) {
    clv__writer_begin(w, "Concat", (const char *const[]){NULL});
    for (int i = 0; i < w->node.n_inputs; i++) clv__writer_put_input(w, clv__writer_in(w, i));
    clv__writer_put_int(w, "axis", (int64_t)clv__writer_number(w, "axis"));
    clv__writer_end(w, y_of(w));
}

/** Does it add updates, or put them? */
static bool adds(const clv__onnx_writer *w) {
    const char *last = strrchr(w->row->op, '_');
    return last && !strcmp(last, "_add");
}

/** Along an axis, of inputs in an order. */
static void along(clv__onnx_writer *w, const char *op, const char *const *inputs) {
    clv__writer_begin(w, op, inputs);
    clv__writer_put_int(w, "axis", (int64_t)clv__writer_number(w, "axis"));
    if (adds(w)) clv__writer_put_text(w, "reduction", "add");
    clv__writer_end(w, y_of(w));
}

static void write_embedding(clv__onnx_writer *w) {
    clv__writer_begin(w, "Gather", (const char *const[]){clv__writer_in(w, 0), clv__writer_in(w, 1), NULL});
    clv__writer_put_int(w, "axis", 0);
    clv__writer_end(w, y_of(w));
}

static void take(clv__onnx_writer *w) {
    along(w, w->row->onnx, (const char *const[]){clv__writer_in(w, 0), clv__writer_in(w, 1), NULL});
}

static void scatter(clv__onnx_writer *w) {
    const char *inputs[] = {clv__writer_in(w, 0), clv__writer_in(w, 1), clv__writer_in(w, 2), NULL};
    along(w, w->row->onnx, inputs);
}

/** Slices along an axis: the index goes to all elements of the slice that it is of. */
static void put_slices(clv__onnx_writer *w) {
    const clv_shape *x = clv__writer_in_shape(w, 0);
    int64_t apart[CLV_MAX_RANK], axis = (int64_t)clv__writer_number(w, "axis");
    if (axis < 0) axis += x->rank;
    for (int i = 0; i < x->rank; i++) apart[i] = i == axis ? -1 : 1;
    if (clv__writer_in_shape(w, 1)->rank != 1) {
        clv__writer_cannot(w, "its index has several dimensions");
        return;
    }
    const char *index = NODE(w, "Reshape", NULL, clv__writer_in(w, 1), clv__writer_list(w, apart, x->rank));
    const char *all = NODE(w, "Expand", NULL, index, NODE(w, "Shape", NULL, clv__writer_in(w, 2)));
    along(w, "ScatterElements", (const char *const[]){clv__writer_in(w, 0), all, clv__writer_in(w, 2), NULL});
}

static void write_gather_nd(clv__onnx_writer *w) {
    const int64_t dims = (int64_t)clv__writer_number(w, "batch_dims");
    clv__writer_begin(w, "GatherND", (const char *const[]){clv__writer_in(w, 0), i64_of(w, 1), NULL});
    clv__writer_put_int(w, "batch_dims", dims);
    clv__writer_end(w, y_of(w));
}

static void scatter_nd(clv__onnx_writer *w) {
    if (clv__writer_number(w, "batch_dims") != 0) {
        clv__writer_cannot(w, "ScatterND has no batch_dims");
        return;
    }
    const char *inputs[] = {clv__writer_in(w, 0), i64_of(w, 1), clv__writer_in(w, 2), NULL};
    clv__writer_begin(w, "ScatterND", inputs);
    if (adds(w)) clv__writer_put_text(w, "reduction", "add");
    clv__writer_end(w, y_of(w));
}

static void write_cumsum(clv__onnx_writer *w) {
    const int64_t axis = (int64_t)clv__writer_number(w, "axis");
    const clv_shape one = {0};
    const char *at = clv__writer_constant(w, CLV_DTYPE_I64, &one, &axis);
    clv__writer_begin(w, "CumSum", (const char *const[]){clv__writer_in(w, 0), at, NULL});
    clv__writer_put_int(w, "exclusive", clv__writer_number(w, "exclusive") != 0);
    clv__writer_put_int(w, "reverse", clv__writer_number(w, "reverse") != 0);
    clv__writer_end(w, y_of(w));
}

/** Rows of what is up to each element, ones beside it, and their products: CumProd is of opset 26. */
static void write_cumprod(clv__onnx_writer *w) {
    const clv_shape *x = clv__writer_in_shape(w, 0);
    const int64_t axis = (int64_t)clv__writer_number(w, "axis"), at = axis < 0 ? axis + x->rank : axis,
                  V = x->dims[at];
    const bool exclusive = clv__writer_number(w, "exclusive") != 0,
               reverse = clv__writer_number(w, "reverse") != 0;
    clv_shape mask = {.rank = x->rank + 1 - (int)at};
    uint8_t *factors = clv__alloc((size_t)(V * V) + 1, 1);
    if (!factors || mask.rank > CLV_MAX_RANK) {
        free(factors);
        clv__writer_out_of_memory(w);
        return;
    }
    for (int d = 0; d < mask.rank; d++) mask.dims[d] = d < 2 ? V : 1;
    for (int64_t i = 0; i < V * V; i++) {
        const int64_t of = reverse ? V - 1 - i / V : i / V, k = reverse ? V - 1 - i % V : i % V;
        factors[i] = exclusive ? k < of : k <= of;
    }
    const int64_t behind = at + 1;
    const char *rows = NODE(w, "Unsqueeze", NULL, clv__writer_in(w, 0), clv__writer_list(w, &at, 1));
    rows = NODE(w, "Where", NULL, clv__writer_constant(w, CLV_DTYPE_BOOL, &mask, factors), rows,
                clv__writer_scalar(w, 1));
    free(factors);
    clv__writer_begin(w, "ReduceProd", (const char *const[]){rows, NULL});
    clv__writer_put_ints(w, "axes", &behind, 1);
    clv__writer_put_int(w, "keepdims", 0);
    clv__writer_end(w, y_of(w));
}

/** Places are i64 there. */
static void write_topk(clv__onnx_writer *w) {
    const int64_t k = (int64_t)clv__writer_number(w, "k");
    const char *many = clv__writer_list(w, &k, 1);
    clv__writer_begin(w, "TopK", (const char *const[]){clv__writer_in(w, 0), many, NULL});
    clv__writer_put_int(w, "axis", (int64_t)clv__writer_number(w, "axis"));
    clv__writer_put_int(w, "largest", clv__writer_number(w, "largest") != 0);
    const char *const results[] = {y_of(w), clv__writer_also(w), NULL};
    clv__writer_end_with(w, results);
    clv__writer_cast(w, results[1], CLV__ONNX_INT32, clv__writer_result_of(w, 1));
}

/** The table has a row for each channel, or one for all. */
static void write_lookup(clv__onnx_writer *w) {
    const clv_shape *x = clv__writer_in_shape(w, 0), *table = clv__writer_in_shape(w, 1);
    const int64_t channels = table->dims[0];
    const char *index = i64_of(w, 0);
    if (channels > 1) {
        int64_t dims[CLV_MAX_RANK], *starts = clv__alloc((size_t)channels, sizeof *starts);
        for (int i = 0; i < x->rank; i++) dims[i] = i == 1 ? channels : 1;
        for (int64_t i = 0; starts && i < channels; i++) starts[i] = 256 * i;
        const clv_shape shape = clv_shape_make(x->rank, dims);
        if (!starts) clv__writer_out_of_memory(w);
        if (starts)
            index = NODE(w, "Add", NULL, index, clv__writer_constant(w, CLV_DTYPE_I64, &shape, starts));
        free(starts);
    }
    const char *flat =
        NODE(w, "Reshape", NULL, clv__writer_in(w, 1), clv__writer_list(w, (const int64_t[]){-1}, 1));
    clv__writer_begin(w, "Gather", (const char *const[]){flat, index, NULL});
    clv__writer_put_int(w, "axis", 0);
    clv__writer_end(w, y_of(w));
}

/** Element by element, or a product with the table as a matrix [D, E]. */
static void write_resample(clv__onnx_writer *w) {
    const clv_shape *x = clv__writer_in_shape(w, 0), *table = clv__writer_in_shape(w, 2);
    const int64_t axis = (int64_t)clv__writer_number(w, "axis"), at = axis < 0 ? axis + x->rank : axis,
                  D = x->dims[at], E = table->dims[0], K = table->dims[1];
    const int32_t *start = w->node.inputs[1]->values;
    const float *weight = w->node.inputs[2]->values;
    bool ones = K == 1;
    if (!start || !weight) {
        clv__writer_cannot(w, "its table is computed");
        return;
    }
    for (int64_t e = 0; ones && e < E; e++) ones = weight[e] == 1 && start[e] >= 0 && start[e] < D;
    if (ones) {
        along(w, "Gather", (const char *const[]){clv__writer_in(w, 0), clv__writer_in(w, 1), NULL});
        return;
    }
    const clv_shape shape = CLV_SHAPE(D, E);
    int64_t order[CLV_MAX_RANK];
    float *matrix = clv__alloc((size_t)(D * E) + 1, sizeof *matrix);
    if (!matrix) {
        clv__writer_out_of_memory(w);
        return;
    }
    for (int64_t i = 0; i < D * E; i++) matrix[i] = 0;
    for (int64_t i = 0; i < E * K; i++) {
        const int64_t d = start[i / K] + i % K;
        if (d >= 0 && d < D) matrix[d * E + i / K] = weight[i];
    }
    for (int d = 0; d < x->rank; d++) order[d] = d;
    order[at] = x->rank - 1, order[x->rank - 1] = at; // its own inverse
    const char *by = clv__writer_constant(w, CLV_DTYPE_F32, &shape, matrix), *in = clv__writer_in(w, 0);
    free(matrix);
    if (at == x->rank - 1) {
        NODE(w, "MatMul", y_of(w), in, by);
        return;
    }
    clv__writer_begin(w, "Transpose", (const char *const[]){in, NULL});
    clv__writer_put_ints(w, "perm", order, x->rank);
    const char *product = NODE(w, "MatMul", NULL, clv__writer_end(w, NULL), by);
    clv__writer_begin(w, "Transpose", (const char *const[]){product, NULL});
    clv__writer_put_ints(w, "perm", order, x->rank);
    clv__writer_end(w, y_of(w));
}

static void write_grid_sample(clv__onnx_writer *w) {
    static const char *const modes[] = {"bilinear", "nearest", "bicubic"}, *const edges[] = {"zeros",
                                                                                             "border",
                                                                                             "reflection"};
    if (clv__writer_in_shape(w, 0)->rank != 4) {
        clv__writer_cannot(w, "before opset 20 GridSample has two dimensions");
        return;
    }
    clv__writer_begin(w, "GridSample",
                      (const char *const[]){clv__writer_in(w, 0), clv__writer_in(w, 1), NULL});
    clv__writer_put_text(w, "mode", modes[(int)clv__writer_number(w, "mode")]);
    clv__writer_put_text(w, "padding_mode", edges[(int)clv__writer_number(w, "padding_mode")]);
    clv__writer_put_int(w, "align_corners", clv__writer_number(w, "align_corners") != 0);
    clv__writer_end(w, y_of(w));
}

const clv__onnx_write_row clv__onnx_write_moves[] = {
    {"full", NULL, write_full},
    {"random_uniform", "RandomUniformLike", drawn},
    {"random_normal", "RandomNormalLike", drawn},
    {"reshape", "Reshape", to_shape},
    {"permute", NULL, write_permute},
    {"broadcast_to", "Expand", to_shape},
    {"slice", NULL, write_slice},
    {"concat", NULL, write_concat},
    {"embedding", NULL, write_embedding},
    {"gather", "GatherElements", take},
    {"index_select", "Gather", take},
    {"scatter", "ScatterElements", scatter},
    {"scatter_add", "ScatterElements", scatter},
    {"index_copy", "ScatterElements", put_slices},
    {"index_add", "ScatterElements", put_slices},
    {"gather_nd", NULL, write_gather_nd},
    {"scatter_nd", "ScatterND", scatter_nd},
    {"scatter_nd_add", "ScatterND", scatter_nd},
    {"cumsum", NULL, write_cumsum},
    {"cumprod", NULL, write_cumprod},
    {"topk", NULL, write_topk},
    {"lookup", NULL, write_lookup},
    {"resample", NULL, write_resample},
    {"grid_sample", NULL, write_grid_sample},
    {NULL, NULL, NULL},
};
