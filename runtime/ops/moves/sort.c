// SPDX-License-Identifier: Apache-2.0
// The first elements along an axis in order, and where they are. All variants make runs that are in order, merge neighbours until a line is
// one run, and store what is found; they differ in how runs are made. Kernels: kernels_cl/sort.cl.
#include <math.h>
#include <stdlib.h>

#include "cleave/ops.h"
#include "graph/signature.h"
#include "ops/indexed.h"
#include "ops/lower.h"

extern const clv__op clv__op_gather_backward;

typedef struct topk_attrs {
    int64_t k;
    int axis, largest;
} topk_attrs;

/** x as [outer, V, inner]. */
typedef struct lines {
    int64_t outer, V, inner, k, n; // n of them
    int largest;
} lines;

static int axis_of(const clv__op_io *io) {
    const int axis = ((const topk_attrs *)io->attrs)->axis;
    return axis < 0 ? axis + io->in[0].shape.rank : axis;
}

static lines lines_of(const clv__op_io *io) {
    const topk_attrs *a = io->attrs;
    const clv_shape *shape = &io->in[0].shape;
    const int axis = axis_of(io);
    lines l = {.outer = clv__dims_product(shape, 0, axis),
               .V = shape->dims[axis],
               .inner = clv__dims_product(shape, axis + 1, shape->rank),
               .k = a->k,
               .largest = a->largest};
    l.n = l.outer * l.inner;
    return l;
}

static clv_status infer(clv__op_io *io, clv__error *error) {
    const topk_attrs *a = io->attrs;
    int axis;
    CLV_TRY(clv__want_axis(a->axis, io->in[0].shape.rank, &axis, error));
    if (a->k > io->in[0].shape.dims[axis])
        CLV_FAIL(error, CLV_E_VALUE, "k is %lld, the axis has %lld elements", (long long)a->k,
                 (long long)io->in[0].shape.dims[axis]);
    io->n_out = 2;
    io->out[0] = io->in[0];
    io->out[0].shape.dims[axis] = a->k;
    io->out[1] = clv__i32(io->out[0].shape);
    return CLV_OK;
}

static void grad(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx) {
    const clv__indexed_attrs attrs = {axis_of(clv__node_io(node))};
    clv_tensor *in[] = {clv__node_in(node, 0), clv__node_out(node, 1)};
    if (dy[0] && clv__wants_grad(node, 0))
        dx[0] = clv__pair_node(&clv__op_gather_backward, &attrs, dy, in, NULL);
}

static bool split(const clv__op_io *io, int i, clv__split *out) {
    if (i != axis_of(io)) clv__split_all(io, i, out);
    return i < io->in[0].shape.rank;
}

// ---- reference --------------------------------------------------------------------------------------------

typedef struct element {
    double v;
    int64_t at;
    int largest;
} element;

/** A NaN is the largest; equals by place. */
static int compare(const void *left, const void *right) {
    const element *a = left, *b = right;
    const int none = isnan(a->v) - isnan(b->v);
    const int order = none ? none : (a->v > b->v) - (a->v < b->v);
    if (order) return a->largest ? -order : order;
    return (a->at > b->at) - (a->at < b->at);
}

static void reference(const clv__ref *ref) {
    const lines l = lines_of(ref->io);
    element *line = malloc((size_t)(l.V + 1) * sizeof *line);
    for (int64_t i = 0; line && i < l.n; i++) {
        for (int64_t t = 0; t < l.V; t++)
            line[t] = (element){ref->in[0][(i / l.inner * l.V + t) * l.inner + i % l.inner], t, l.largest};
        qsort(line, (size_t)l.V, sizeof *line, compare);
        for (int64_t j = 0; j < l.k; j++) {
            const int64_t at = (i / l.inner * l.k + j) * l.inner + i % l.inner;
            ref->out[0][at] = line[j].v;
            ref->out[1][at] = (double)line[j].at;
        }
    }
    free(line);
}

static void cost(const clv__op_io *io, clv__cost *out) {
    const lines l = lines_of(io);
    *out = (clv__cost){(double)l.n * (double)l.V * log2((double)l.V + 1),
                       4.0 * (double)l.n * (double)(l.V + 2 * l.k)};
}

// ---- launches ---------------------------------------------------------------------------------------------

enum { RUN = 8, CHUNK = 1024, KEEP = 32, PAIR_BYTES = 8 };

static void define_types(clv__launches *list, clv__launch *launch, const clv__op_io *io) {
    if (io->in[0].dtype != CLV_DTYPE_I32) return;
    clv__launch_define(list, launch, "T_X", "int");
    clv__launch_define(list, launch, "T_Y", "int");
    clv__launch_define(list, launch, "WHOLE", "1");
}

static clv__part pairs_of(clv__launches *list, const lines *l) {
    clv__part part = {.bytes = (size_t)(l->n * l->V) * PAIR_BYTES};
    part.offset = clv__launch_workspace(list, part.bytes);
    return part;
}

/** Runs of `length` become lines, and these the result. */
static void finish(clv__launches *list, const clv__op_io *io, const lines *l, clv__part pairs,
                   clv__part spare, int64_t length) {
    for (; length < l->V; length *= 2) {
        const int64_t runs = clv__div_up(l->V, length), each = clv__min64(length, l->k);
        clv__launch *launch =
            clv__launch_items(list, "sort", "sort_merge", CLV__ELEMENTS, l->n * runs * each);
        clv__arg_part(list, launch, spare);
        clv__arg_part(list, launch, pairs);
        CLV__ARGS_I32(list, launch, l->n, l->V, runs, length, l->k);
        const clv__part merged = spare;
        spare = pairs;
        pairs = merged;
    }
    clv__launch *launch = clv__launch_items(list, "sort", "sort_store", CLV__ELEMENTS, l->n * l->k);
    define_types(list, launch, io);
    CLV__ARGS(list, launch, io, "o0=T_Y o1 i0=T_X w", .part = pairs,
              CLV__INTS(l->n * l->k, l->V, l->inner, l->k));
}

/** A pair's place is counted in int, and so are all of a launch. */
static bool plain_supports(const clv_device_info *device, const clv__op_io *io) {
    (void)device;
    const lines l = lines_of(io);
    return l.n * l.V < INT32_MAX / 2;
}

static void plain(clv__launches *list, const clv__op_io *io) {
    const lines l = lines_of(io);
    if (l.n * l.k == 0) return;
    const clv__part pairs = pairs_of(list, &l), spare = pairs_of(list, &l);
    const int64_t runs = clv__div_up(l.V, RUN);
    clv__launch *launch = clv__launch_items(list, "sort", "sort_runs", CLV__ELEMENTS, l.n * runs);
    define_types(list, launch, io);
    CLV__ARGS(list, launch, io, "w i0=T_X", .part = pairs, CLV__INTS(l.n, l.V, l.inner, runs, l.largest));
    finish(list, io, &l, pairs, spare, RUN);
}

/** Elements of a run, for enough of them to keep some threads at work. */
static int64_t length_of(const lines *l) {
    enum { TASKS = 16, LEAST = 1024 };
    if (l->n >= TASKS || l->V <= LEAST) return clv__max64(l->V, 1);
    return clv__max64(LEAST, clv__div_up(l->V, TASKS / clv__max64(l->n, 1)));
}

static bool keeps(const lines *l, int64_t length) {
    return l->k <= KEEP && l->k < length / 4;
}

static bool chunks_support(const clv_device_info *device, const clv__op_io *io) {
    const lines l = lines_of(io);
    const int64_t length = length_of(&l);
    return plain_supports(device, io) && clv__threads(device) && clv__loops_fit(device, length * 64);
}

static void chunks(clv__launches *list, const clv__op_io *io) {
    const lines l = lines_of(io);
    if (l.n * l.k == 0) return;
    const clv__part pairs = pairs_of(list, &l), spare = pairs_of(list, &l);
    const int64_t length = length_of(&l), runs = clv__div_up(l.V, length);
    clv__launch *launch = clv__launch_items(list, "sort", "sort_chunks", CLV__TASKS, l.n * runs);
    define_types(list, launch, io);
    clv__arg_part(list, launch, pairs);
    clv__arg_part(list, launch, spare);
    clv__arg_in_as(list, launch, io, 0, "T_X");
    CLV__ARGS_I32(list, launch, l.n, l.V, l.inner, runs, length, l.largest, l.k, keeps(&l, length));
    finish(list, io, &l, pairs, spare, length);
}

static int64_t chunk_of(const lines *l) {
    int64_t chunk = 128; // whole groups of 64
    while (chunk < l->V && chunk < CHUNK) chunk *= 2;
    return chunk;
}

static bool groups_support(const clv_device_info *device, const clv__op_io *io) {
    const lines l = lines_of(io);
    return plain_supports(device, io) && device->loop_turns == 0 && device->max_work_group >= CHUNK / 2 &&
           clv__tile_local_bytes(device) >= CHUNK * PAIR_BYTES && l.V > RUN;
}

static void groups(clv__launches *list, const clv__op_io *io) {
    const lines l = lines_of(io);
    if (l.n * l.k == 0) return;
    const clv__part pairs = pairs_of(list, &l);
    const int64_t chunk = chunk_of(&l), runs = clv__div_up(l.V, chunk);
    const clv__part spare = runs > 1 ? pairs_of(list, &l) : pairs;
    clv__launch *launch = clv__launch_kernel(list, "sort", "sort_groups");
    define_types(list, launch, io);
    clv__define_number(list, launch, "CHUNK", chunk, CHUNK);
    CLV__ARGS(list, launch, io, "w i0=T_X", .part = pairs, CLV__INTS(l.V, l.inner, runs, l.largest, l.k));
    clv__launch_grid(launch, (size_t)(l.n * runs * chunk / 2), (size_t)chunk / 2);
    finish(list, io, &l, pairs, spare, chunk);
}

static const clv__variant variants[] = {
    {"plain", plain_supports, .lower = plain},
    {"chunks", chunks_support, .lower = chunks, .relative = 0.2},
    {"groups", groups_support, .lower = groups, .relative = 0.3, .lanes = true},
    {0}};

// ---- samples ----------------------------------------------------------------------------------------------

#define ROW(text, k, axis, largest, ...)                                                                     \
    .label = text, .in = {CLV__DIMS(__VA_ARGS__)}, .attrs = &(topk_attrs){k, axis, largest},                 \
    .fill = {{CLV__FILL_DISTINCT, -2, 2}}
#define TIES(text, k, axis, largest, ...)                                                                    \
    .label = text, .in = {CLV__DIMS(__VA_ARGS__)}, .attrs = &(topk_attrs){k, axis, largest},                 \
    .fill = {{CLV__FILL_INTEGER, -3, 3}}, .no_gradient = true
static const clv__sample_row samples[] = {
    {ROW("3 of rows of 33", 3, 1, 1, 7, 33), .quick = true},
    {ROW("all of rows of 17, the smallest first", 17, -1, 0, 3, 17), .quick = true},
    {TIES("ties, first axis", 9, 0, 1, 9, 19), .quick = true},
    {ROW("2 of a middle axis", 2, 1, 0, 2, 5, 6), .quick = true},
    {ROW("one element", 1, 0, 1, 1)},
    {ROW("none of 5", 0, 1, 1, 3, 5)},
    {ROW("5 of a long row", 5, 0, 1, 5003)},
    {TIES("40 of rows of 300, ties", 40, 1, 0, 5, 300)},
    {TIES("all of 2049, ties", 2049, 1, 1, 3, 2049)},
    {TIES("many rows", 4, 1, 1, 131, 65)},
    {TIES("all of a long row", 9001, 0, 0, 9001)},
    {ROW("rows of 64", 64, 1, 1, 2, 64)},
    {ROW("rows of 1024", 1000, 1, 1, 2, 1024), .no_gradient = true},
    {ROW("no rows", 2, 1, 1, 0, 5)},
    {TIES("integers", 6, 1, 1, 5, 40), .i32 = 1},
    {TIES("integers, the smallest first", 20, 0, 0, 20, 3), .i32 = 1},
    {0}};
#undef ROW
#undef TIES

// ---- the ops ----------------------------------------------------------------------------------------------

CLV__OP(topk) = {.name = "topk",
                 .inputs = CLV__INPUTS({"x", "f32|i32"}),
                 .attributes = CLV__ATTRIBUTES({CLV__ATTRIBUTE(INT, topk_attrs, k, NULL), CLV__AT_LEAST(0)},
                                               {CLV__ATTRIBUTE(INT, topk_attrs, axis, "-1")},
                                               {CLV__ATTRIBUTE(BOOL, topk_attrs, largest, "1")}),
                 .outputs = CLV__OUTPUTS({"y", "any"}, {"indices", "i32"}),
                 .attrs_bytes = sizeof(topk_attrs),
                 .half_in = 1,
                 .half_out = 1,
                 .infer = infer,
                 .grad = CLV__TRAINS(grad),
                 .variants = variants,
                 .reference = reference,
                 .cost = cost,
                 .split = split,
                 .samples = CLV__TRAINS(samples)};

typedef struct sort_call {
    int axis, descending;
} sort_call;

static clv_tensor *build_sort(const clv__call *call) {
    const sort_call *a = call->attrs;
    const clv_shape shape = clv_tensor_shape(call->in[0]);
    const int at = a->axis < 0 ? a->axis + shape.rank : a->axis;
    return clv_topk(call->in[0], at >= 0 && at < shape.rank ? shape.dims[at] : 0, a->axis, a->descending,
                    NULL);
}

static clv_tensor *build_argsort(const clv__call *call) {
    return clv__sibling(build_sort(call), 1);
}

static const clv__sample_row sort_samples[] = {{.label = "rows",
                                                .quick = true,
                                                .in = {CLV__DIMS(3, 11)},
                                                .attrs = &(sort_call){-1, 0},
                                                .fill = {{CLV__FILL_DISTINCT, -2, 2}}},
                                               {.label = "columns, descending",
                                                .in = {CLV__DIMS(6, 5)},
                                                .attrs = &(sort_call){0, 1},
                                                .fill = {{CLV__FILL_DISTINCT, -2, 2}}},
                                               {0}};
static const clv__sample_row argsort_samples[] = {{.label = "rows",
                                                   .quick = true,
                                                   .in = {CLV__DIMS(3, 11)},
                                                   .attrs = &(sort_call){-1, 0},
                                                   .no_gradient = true},
                                                  {.label = "columns, descending",
                                                   .in = {CLV__DIMS(6, 5)},
                                                   .attrs = &(sort_call){0, 1},
                                                   .no_gradient = true},
                                                  {0}};

#define SORT(rows)                                                                                           \
    .inputs = CLV__INPUTS({"x", "f32|i32"}), .attributes_of_call = true, .attrs_bytes = sizeof(sort_call),   \
    .samples = CLV__TRAINS(rows),                                                                            \
    .attributes = CLV__ATTRIBUTES({CLV__ATTRIBUTE(INT, sort_call, axis, "-1")},                              \
                                  {CLV__ATTRIBUTE(BOOL, sort_call, descending, "0")})
CLV__COMPOSITE(sort) = {
    .name = "sort", .outputs = CLV__OUTPUTS({"y", "like x"}), .build = build_sort, SORT(sort_samples)};
CLV__COMPOSITE(argsort) = {
    .name = "argsort", .outputs = CLV__OUTPUTS({"y", "i32"}), .build = build_argsort, SORT(argsort_samples)};
