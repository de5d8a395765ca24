// SPDX-License-Identifier: Apache-2.0
// Embedding: rows of a table by index. The gradient is gathered: each row of the table adds up what came to it, in the
// order of the indices, so that no atomics are needed and the bits are the same every time.
#include <math.h>
#include <string.h>

#include "cleave/ops.h"
#include "graph/signature.h"
#include "ops/lower.h"

enum { ORDER_ITEMS = 256 }; // in a group of embedding_order
enum { CHUNK = 16384 }; // indices that one launch of the gradient looks at: a work-item's loops stay short

// ---- kernels --------------------------------------------------------------------------------------------------------

static bool is(const clv__op_io *io, const char *variant) {
    return !strcmp(io->variant->name, variant);
}

/** Elements of a vector that rows consist of: one or four. */
static int vector_of(clv__launches *list, clv__launch *launch, int64_t D, bool vectors) {
    if (!vectors || D % 4) return 1;
    clv__launch_define(list, launch, "T", "float4");
    return 4;
}

static void forward(clv__launches *list, const clv__op_io *io) {
    const int64_t V = io->in[0].shape.dims[0], D = io->in[0].shape.dims[1], n_rows = clv__numel(&io->in[1]);
    const int64_t rows = clv__rows_for(D), n = is(io, "vector") ? n_rows * D / 4 : n_rows * D;
    const bool wide = is(io, "rows");
    if (n_rows * D == 0) return;
    clv__launch *launch =
        wide ? clv__launch_items(list, "embedding", "embedding_rows", CLV__TASKS, clv__div_up(n_rows, rows))
             : clv__launch_items(list, "embedding", "embedding", CLV__ELEMENTS, n);
    clv__arg_tensors(list, launch, io, "o0 i0 i1");
    if (wide)
        CLV__ARGS_I32(list, launch, n_rows, rows, V, D);
    else
        CLV__ARGS_I32(list, launch, n, V, D / vector_of(list, launch, D, is(io, "vector")));
}

/** Indices in their order, so that each row is found and added up by who owns its first. */
static void backward_ordered(clv__launches *list, const clv__op_io *io, size_t order, size_t bytes,
                             int64_t first, int64_t last) {
    const int64_t V = io->out[0].shape.dims[0], D = io->out[0].shape.dims[1], n = last - first;
    clv__launch *launch = clv__launch_kernel(list, "embedding", "embedding_order");
    clv__arg_workspace(list, launch, order, bytes);
    clv__arg_tensors(list, launch, io, "i1");
    CLV__ARGS_I32(list, launch, first, n);
    clv__launch_grid(launch, (size_t)n, ORDER_ITEMS);
    launch = clv__launch_kernel(list, "embedding", "embedding_ordered");
    const int64_t units = D / vector_of(list, launch, D, true);
    clv__arg_tensors(list, launch, io, "o0 i0");
    clv__arg_workspace(list, launch, order, bytes);
    CLV__ARGS_I32(list, launch, n, V, units, first == 0);
    clv__launch_over(list, launch, CLV__ELEMENTS, n * units);
}

static void backward(clv__launches *list, const clv__op_io *io) {
    const int64_t V = io->out[0].shape.dims[0], D = io->out[0].shape.dims[1], n_rows = clv__numel(&io->in[1]);
    const bool wide = is(io, "rows"), ordered = is(io, "ordered");
    const size_t bytes = 2 * sizeof(int32_t) * (size_t)clv__min64(n_rows, CHUNK);
    if (V * D == 0) return;
    const size_t order = ordered ? clv__launch_workspace(list, bytes) : 0;
    if (n_rows == 0 || ordered) clv__launch_fill(list, 0, (size_t)(V * D) * sizeof(float), 0);
    for (int64_t first = 0; first < n_rows; first += CHUNK) {
        const int64_t last = clv__min64(first + CHUNK, n_rows);
        if (ordered) {
            backward_ordered(list, io, order, bytes, first, last);
            continue;
        }
        clv__launch *launch =
            wide ? clv__launch_items(list, "embedding", "embedding_rows_backward", CLV__TASKS, V)
                 : clv__launch_items(list, "embedding", "embedding_backward", CLV__ELEMENTS, V * D);
        clv__arg_tensors(list, launch, io, "o0 i0 i1");
        CLV__ARGS_I32(list, launch, wide ? V : V * D, D, first, last, first == 0);
    }
}

static bool rows_support(const clv_device_info *device, const clv__op_io *io) {
    return clv__threads(device) && io->out[0].shape.dims[io->out[0].shape.rank - 1] >= 16;
}

static bool vector_supports(const clv_device_info *device, const clv__op_io *io) {
    (void)device;
    return io->in[0].shape.dims[1] % 4 == 0;
}

static bool ordered_supports(const clv_device_info *device, const clv__op_io *io) {
    return device->max_work_group >= ORDER_ITEMS && clv__numel(&io->in[1]) > 0 &&
           clv__tile_local_bytes(device) >= ORDER_ITEMS * sizeof(int32_t) &&
           clv__loops_fit(device, CHUNK + CHUNK / ORDER_ITEMS);
}

static const clv__variant variants[] = {
    {"plain", .lower = forward},
    {"rows", rows_support, .lower = forward, .relative = 0.2},
    {"vector", vector_supports, .lower = forward, .relative = 0.2, .lanes = true},
    {0}};
static const clv__variant backward_variants[] = {
    {"plain", .lower = backward},
    {"rows", rows_support, .lower = backward, .relative = 0.2},
    {"ordered", ordered_supports, .lower = backward, .relative = 0.2, .lanes = true},
    {0}};

// ---- references -----------------------------------------------------------------------------------------------------

static void reference(const clv__ref *ref) {
    int64_t V = ref->io->in[0].shape.dims[0], D = ref->io->in[0].shape.dims[1],
            n = clv__numel(&ref->io->in[1]);
    for (int64_t r = 0; r < n; r++) {
        int64_t v = (int64_t)ref->in[1][r];
        for (int64_t d = 0; d < D; d++)
            ref->out[0][r * D + d] = v >= 0 && v < V ? ref->in[0][v * D + d] : (double)NAN;
    }
}

static void backward_reference(const clv__ref *ref) {
    int64_t V = ref->io->out[0].shape.dims[0], D = ref->io->out[0].shape.dims[1],
            n = clv__numel(&ref->io->in[1]);
    clv__ref_zero(ref);
    for (int64_t r = 0; r < n; r++) {
        int64_t v = (int64_t)ref->in[1][r];
        for (int64_t d = 0; d < D && v >= 0 && v < V; d++) ref->out[0][v * D + d] += ref->in[0][r * D + d];
    }
}

static void cost(const clv__op_io *io, clv__cost *cost) {
    double in = (double)clv__numel(&io->in[0]), out = (double)clv__numel(&io->out[0]);
    *cost = (clv__cost){in < out ? in : out, 8 * (clv__is_gradient(io) ? in : out)};
}

static int64_t reduction(const clv__op_io *io) {
    int64_t n = clv__numel(&io->in[1]);
    return clv__is_gradient(io) && n > 1 ? n : 1;
}

// ---- samples --------------------------------------------------------------------------------------------------------

// Integers from 0 to 0 would be from -1 to 1: hence 0.5.
#define ROW(what, V, D, indices, last)                                                                       \
    .label = what, .in = {CLV__DIMS(V, D), indices}, .fill = {{0}, {CLV__FILL_INTEGER, 0, last}}, .n_in = 2, \
    .i32 = 2
static const clv__sample_row samples[] = {
    {ROW("13 rows of 48, sentences", 13, 48, CLV__DIMS(4, 9), 12), .quick = true},
    {ROW("5 rows of 7", 5, 7, CLV__DIMS(33), 4), .quick = true},
    {ROW("65 rows of 19", 65, 19, CLV__DIMS(3, 40), 64)},
    {ROW("one row of one", 1, 1, CLV__DIMS(1), 0.5)},
    {ROW("one index, rank 0", 6, 17, {0}, 5)},
    {ROW("more rows than indices", 300, 16, CLV__DIMS(5), 299)},
    {ROW("more indices than a chunk", 3, 2, CLV__DIMS(CHUNK + 7), 2)},
    {ROW("no indices", 4, 8, CLV__DIMS(0, 3), 3)},
    {0}};
#undef ROW

// ---- in parts -----------------------------------------------------------------------------------------------------

/** Along every dimension of the indices, or along the features. */
static bool split(const clv__op_io *io, int i, clv__split *out) {
    const int rank = io->in[1].shape.rank;
    out->length = clv__split_length(&io->out[0].shape, i);
    out->out[0] = (int8_t)i;
    if (i < rank) out->in[1] = (int8_t)i;
    if (i == rank) out->in[0] = 1;
    return i <= rank;
}

extern const clv__op clv__op_embedding;
#define COMMON .cost = cost, .reduction = reduction
const clv__op clv__op_embedding_backward = {CLV__GRADIENT_OF(embedding, "d0 i1 s0 g0"),
                                            .attrs_bytes = sizeof(clv_shape), .variants = backward_variants,
                                            .reference = backward_reference, COMMON};

const clv__op clv__op_embedding = {.name = "embedding",
                                   .inputs = CLV__INPUTS({"weight", "f32[V,E]"}, {"indices", "int[*]"}),
                                   .outputs = CLV__OUTPUTS({"y", "f32[*,E]"}),
                                   CLV__GRADIENT(embedding),
                                   .samples = CLV__TRAINS(samples),
                                   .variants = variants,
                                   .reference = reference,
                                   .split = split,
                                   COMMON};

clv_tensor *clv_embedding(clv_tensor *weight, clv_tensor *indices) {
    return clv__node_add(&clv__op_embedding, NULL, (clv_tensor *[]){weight, indices}, 2, 0);
}
