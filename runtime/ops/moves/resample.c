// SPDX-License-Identifier: Apache-2.0
// An axis times a matrix whose columns have few neighbouring numbers, and what is made of that: pictures of another size. The gradient
// is the same op by the table of the other direction. Kernels: kernels_cl/resample.cl. Source: torch.nn.functional.interpolate;
// Keys 1981, "Cubic convolution interpolation" (of its a).
#include "ops/moves/resample.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "graph/graph.h"
#include "graph/signature.h"
#include "ops/lower.h"

typedef struct resample_attrs {
    int axis;
} resample_attrs;

/** x as [outer, D, inner], y as [outer, E, inner]; K numbers in each row of the table. */
typedef struct sizes {
    int64_t outer, D, inner, E, K;
} sizes;

static int axis_of(const clv__op_io *io) {
    const int axis = ((const resample_attrs *)io->attrs)->axis;
    return axis < 0 ? axis + io->in[0].shape.rank : axis;
}

static sizes sizes_of(const clv__op_io *io) {
    const clv_shape *x = &io->in[0].shape, *table = &io->in[2].shape;
    const int axis = axis_of(io);
    return (sizes){clv__dims_product(x, 0, axis), x->dims[axis], clv__dims_product(x, axis + 1, x->rank),
                   table->dims[0], table->dims[1]};
}

static clv_status infer(clv__op_io *io, clv__error *error) {
    int axis;
    CLV_TRY(clv__want_axis(((const resample_attrs *)io->attrs)->axis, io->in[0].shape.rank, &axis, error));
    clv__desc y = io->in[0];
    y.shape.dims[axis] = io->in[2].shape.dims[0];
    return clv__one_out(io, y);
}

static void reference(const clv__ref *ref) {
    const sizes s = sizes_of(ref->io);
    for (int64_t at = 0; at < s.outer * s.E * s.inner; at++) {
        const int64_t i = at % s.inner, e = at / s.inner % s.E, outer = at / s.inner / s.E;
        double sum = 0;
        for (int64_t k = 0; k < s.K; k++) {
            const int64_t d = (int64_t)ref->in[1][e] + k;
            if (d >= 0 && d < s.D)
                sum += ref->in[2][e * s.K + k] * ref->in[0][(outer * s.D + d) * s.inner + i];
        }
        ref->out[0][at] = sum;
    }
}

static void cost(const clv__op_io *io, clv__cost *cost) {
    *cost = (clv__cost){2 * (double)clv__numel(&io->out[0]) * (double)sizes_of(io).K, clv__float_bytes(io)};
}

static int64_t reduction(const clv__op_io *io) {
    return sizes_of(io).K;
}

static bool split(const clv__op_io *io, int i, clv__split *out) {
    if (i != axis_of(io)) {
        out->length = clv__split_length(&io->in[0].shape, i);
        out->in[0] = out->out[0] = (int8_t)i;
    }
    return i < io->in[0].shape.rank;
}

// ---- launches ---------------------------------------------------------------------------------------------

enum { PLAIN, ROWS, LINES }; // numbers of variants

static void lower(clv__launches *list, const clv__op_io *io) {
    const sizes s = sizes_of(io);
    const int kind = io->variant->number;
    const int64_t all = s.outer * s.E, each = kind == ROWS    ? clv__rows_for(s.inner)
                                              : kind == LINES ? clv__rows_for(s.E * s.inner)
                                                              : 1;
    const int64_t n = kind == ROWS ? clv__div_up(all, each) : clv__div_up(s.outer, each);
    if (all * s.inner == 0) return;
    clv__launch *launch =
        kind == PLAIN ? clv__launch_items(list, "resample", "resample", CLV__ELEMENTS, all * s.inner)
                      : clv__launch_items(list, "resample", kind == ROWS ? "resample_rows" : "resample_lines",
                                          CLV__TASKS, n);
    if (s.K <= 16) clv__define_number(list, launch, "TAPS", s.K, 0);
    if (kind == ROWS) clv__define_number(list, launch, "VW", clv__vector_width(list->device), 16);
    CLV__ARGS(list, launch, io, "o0=T_Y i0=T_X i1 i2");
    CLV__ARGS_I32(list, launch,
                  kind == PLAIN  ? all * s.inner
                  : kind == ROWS ? all
                                 : s.outer,
                  s.D, s.E, s.inner, s.K);
    if (kind != PLAIN) clv__arg_i32(list, launch, each);
}

static bool rows_support(const clv_device_info *device, const clv__op_io *io) {
    const sizes s = sizes_of(io);
    return clv__threads(device) && s.inner >= clv__vector_width(device) &&
           clv__loops_fit(device, clv__rows_for(s.inner) * s.inner * s.K);
}

static bool lines_support(const clv_device_info *device, const clv__op_io *io) {
    const sizes s = sizes_of(io);
    return clv__threads(device) && clv__loops_fit(device, clv__rows_for(s.E * s.inner) * s.E * s.inner * s.K);
}

static const clv__variant variants[] = {
    {"plain", .lower = lower},
    {"rows", rows_support, .lower = lower, .relative = 0.2, .number = ROWS},
    {"lines", lines_support, .lower = lower, .relative = 0.6, .number = LINES},
    {0}};

// ---- the table of the other direction -----------------------------------------------------------------------

/** A node by a table that is known here. */
static clv_tensor *by_table(clv_tensor *x, int axis, int64_t E, int64_t K, const int32_t *start,
                            const float *weight) {
    clv_graph *graph = clv__tensor_graph(x);
    return clv_resample(x, axis, clv_constant(graph, CLV_DTYPE_I32, CLV_SHAPE(E), start),
                        clv_constant(graph, CLV_DTYPE_F32, CLV_SHAPE(E, K), weight));
}

static clv_tensor *no_memory(clv_graph *graph) {
    return clv__graph_fail(graph, CLV_E_HOST_MEMORY, "resample: no host memory for a table");
}

/** Each of D places takes what it has given to E places, the first to the last of which lie in one row of the table. */
static clv_tensor *turned(clv_tensor *dy, int axis, const sizes *s, const int32_t *start,
                          const float *weight) {
    int32_t *first = clv__alloc((size_t)s->D + 1, sizeof *first),
            *last = clv__alloc((size_t)s->D + 1, sizeof *last);
    float *table = NULL;
    clv_tensor *dx = NULL;
    int64_t K = 1;
    for (int64_t d = 0; first && last && d < s->D; d++) first[d] = 0, last[d] = -1;
    for (int64_t i = 0; first && last && i < s->E * s->K; i++) {
        const int64_t d = start[i / s->K] + i % s->K;
        if (d < 0 || d >= s->D || weight[i] == 0) continue;
        if (last[d] < 0) first[d] = (int32_t)(i / s->K);
        last[d] = (int32_t)(i / s->K);
        K = clv__max64(K, last[d] - first[d] + 1);
    }
    if (first && last) table = clv__alloc((size_t)(s->D * K) + 1, sizeof *table);
    for (int64_t i = 0; table && i < s->D * K; i++) table[i] = 0;
    for (int64_t i = 0; table && i < s->E * s->K; i++) {
        const int64_t d = start[i / s->K] + i % s->K;
        if (d >= 0 && d < s->D && weight[i] != 0) table[d * K + i / s->K - first[d]] = weight[i];
    }
    dx = table ? by_table(dy, axis, s->D, K, first, table) : no_memory(clv__tensor_graph(dy));
    free(first), free(last), free(table);
    return dx;
}

/** By a table that is computed: row by row of its columns. */
static clv_tensor *added(clv_tensor *dy, const clv__node *node, const sizes *s) {
    clv_tensor *x = clv__node_in(node, 0), *start = clv__node_in(node, 1), *weight = clv__node_in(node, 2);
    clv_graph *graph = clv__tensor_graph(dy);
    const int axis = axis_of(clv__node_io(node));
    clv_shape column = {.rank = clv_tensor_shape(x).rank - axis, .dims = {s->E}};
    for (int d = 1; d < column.rank; d++) column.dims[d] = 1;
    clv_tensor *dx = clv_full(graph, CLV_DTYPE_F32, clv_tensor_shape(x), 0);
    for (int64_t k = 0; k < s->K; k++) {
        clv_tensor *at = clv_add(start, clv_full(graph, CLV_DTYPE_I32, (clv_shape){0}, (float)k));
        dx = clv_index_add(dx, axis, at, clv_mul(dy, clv_reshape(clv_slice(weight, 1, k, 1), column)));
    }
    return dx;
}

static void grad(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx) {
    const clv_tensor *start = clv__node_in(node, 1), *weight = clv__node_in(node, 2);
    const sizes s = sizes_of(clv__node_io(node));
    if (!clv__wants_grad(node, 0)) return;
    if (start->values && weight->values)
        dx[0] = turned(dy[0], axis_of(clv__node_io(node)), &s, start->values, weight->values);
    else
        dx[0] = added(dy[0], node, &s);
}

// ---- the op -----------------------------------------------------------------------------------------------

#define ROW(text, axis, E, K, lowest, highest, ...)                                                          \
    .label = text, .in = {CLV__DIMS(__VA_ARGS__), CLV__DIMS(E), CLV__DIMS(E, K)}, .n_in = 3, .i32 = 2,       \
    .no_gradient = true, .fill = {{0}, {CLV__FILL_INTEGER, lowest, highest}}, .attrs = &(resample_attrs) {   \
        axis                                                                                                 \
    }
static const clv__sample_row samples[] = {
    {ROW("rows of 7 to 12, of 2", -1, 12, 2, 0, 5, 3, 7), .quick = true},
    {ROW("columns of 5 to 9, of 4", 0, 9, 4, 0, 1, 5, 33), .quick = true},
    {ROW("middle of 17, beyond both ends", 1, 8, 3, -4, 18, 2, 17, 2), .quick = true},
    {ROW("one element", 0, 1, 1, 0, 0, 1)},
    {ROW("one of each", -1, 31, 1, 0, 15, 7, 16)},
    {ROW("a long row of the table", 1, 3, 21, -10, 10, 5, 30, 16)},
    {ROW("wide rows", 1, 5, 2, 0, 2, 3, 4, 1027)},
    {ROW("many lines", -1, 6, 3, 0, 1, 4099, 4)},
    {ROW("no places", -1, 0, 2, 0, 1, 3, 4)},
    {ROW("nothing to take", -1, 4, 2, 0, 1, 3, 0)},
    {0}};
#undef ROW

CLV__OP(resample) = {
    .name = "resample",
    .inputs = CLV__INPUTS({"x", "f32"}, {"start", "int[E]"}, {"weight", "f32[E,K]"}),
    .attributes = CLV__ATTRIBUTES({CLV__ATTRIBUTE(INT, resample_attrs, axis, "-1")}),
    .outputs = CLV__OUTPUTS({"y", "f32"}),
    .attrs_bytes = sizeof(resample_attrs),
    .half_in = 1,
    .half_out = 1,
    .infer = infer,
    .grad = CLV__TRAINS(grad),
    .variants = variants,
    .reference = reference,
    .samples = CLV__TRAINS(samples),
    .cost = cost,
    .reduction = reduction,
    .split = split,
};

// ---- places between -----------------------------------------------------------------------------------------

/** The weight of a neighbour so far away. */
static double weight_of(const clv__resampling *how, double distance) {
    const double d = fabs(distance), a = how->a;
    if (!how->cubic) return d < 1 ? 1 - d : 0;
    if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
    return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

static int64_t within(double at, int64_t size) {
    return !(at > 0) ? 0 : at >= (double)size ? size - 1 : (int64_t)at;
}

/** A row of the table, which begins at `first`: what lies past an end is given to that end. */
static void weigh(const clv__resampling *how, double place, double reach, int64_t D, int64_t first, int64_t K,
                  double *row) {
    const double narrow = how->narrow > 0 ? how->narrow : 1;
    double sum = 0;
    for (int64_t k = 0; k < K; k++) row[k] = 0;
    for (double j = floor(place - reach); j <= ceil(place + reach); j++) {
        const double w = weight_of(how, narrow * (j - place));
        const int64_t k = within(j, D) - first;
        if (w == 0 || k < 0 || k >= K || (how->exclude_outside && (j < 0 || j >= (double)D))) continue;
        row[k] += w;
        sum += w;
    }
    for (int64_t k = 0; k < K && sum != 0; k++) row[k] /= sum;
}

clv_tensor *clv__resampled(clv_tensor *x, int axis, const clv__resampling *how, const double *places,
                           int64_t n) {
    if (!x) return NULL;
    clv_graph *graph = clv__tensor_graph(x);
    const int64_t D = clv_tensor_shape(x).dims[axis];
    const double reach = how->nearest ? 0 : (how->cubic ? 2 : 1) / (how->narrow > 0 ? how->narrow : 1);
    const int64_t K = (int64_t)fmin((double)D, how->nearest ? 1 : ceil(2 * reach)); // within reach of a place
    int32_t *start = clv__alloc((size_t)n + 1, sizeof *start);
    float *weight = clv__alloc((size_t)(n * K) + 1, sizeof *weight);
    double *row = clv__alloc((size_t)K + 1, sizeof *row);
    clv_tensor *y = NULL;
    for (int64_t i = 0; start && weight && row && i < n; i++) {
        start[i] =
            (int32_t)clv__min64(within(how->nearest ? places[i] : floor(places[i] - reach) + 1, D), D - K);
        if (how->nearest)
            row[0] = 1;
        else
            weigh(how, places[i], reach, D, start[i], K, row);
        for (int64_t k = 0; k < K; k++) weight[i * K + k] = (float)row[k];
    }
    if (!start || !weight || !row)
        y = no_memory(graph);
    else if (how->nearest && !clv__is_float(clv_tensor_dtype(x)))
        y = clv_index_select(x, axis, clv_constant(graph, CLV_DTYPE_I32, CLV_SHAPE(n), start));
    else
        y = by_table(x, axis, n, K, start, weight);
    free(start), free(weight), free(row);
    return y;
}
