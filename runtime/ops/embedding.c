// SPDX-License-Identifier: Apache-2.0
// Embedding: rows of a table by index. The gradient is gathered: each row of the table adds up what came to it, in the
// order of the indices, so that no atomics are needed and the bits are the same every time.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cleave/ops.h"
#include "ops/lower.h"

typedef struct embedding_attrs {
    int64_t V; // embedding_backward: rows of the table
} embedding_attrs;

enum { CHUNK = 16384 }; // indices that one launch of the gradient looks at: a work-item's loops stay short

static clv_status infer(clv__op_io *io, clv__error *error) {
    CLV_TRY(clv__want_dtype(io, 0, "weight", CLV_DTYPE_F32, error));
    CLV_TRY(clv__want_rank(io, 0, "weight", 2, error));
    CLV_TRY(clv__want_dtype(io, 1, "indices", CLV_DTYPE_I32, error));
    clv_shape shape = io->in[1].shape;
    if (shape.rank >= CLV_MAX_RANK)
        CLV_FAIL(error, CLV_E_SHAPE, "indices have %d dimensions, one too many", shape.rank);
    shape.dims[shape.rank++] = io->in[0].shape.dims[1];
    io->n_out = 1;
    io->out[0] = clv__f32(shape);
    return CLV_OK;
}

static clv_status backward_infer(clv__op_io *io, clv__error *error) {
    int64_t V = ((const embedding_attrs *)io->attrs)->V;
    CLV_TRY(clv__want_dtype(io, 0, "dy", CLV_DTYPE_F32, error));
    CLV_TRY(clv__want_dtype(io, 1, "indices", CLV_DTYPE_I32, error));
    const clv_shape *dy = &io->in[0].shape, *indices = &io->in[1].shape;
    clv_shape rows = clv_shape_make(dy->rank > 0 ? dy->rank - 1 : 0, dy->dims);
    if (dy->rank < 1 || !clv_shape_equal(&rows, indices))
        CLV_FAIL(error, CLV_E_SHAPE, "dy must have the dimensions of indices and one more");
    if (V < 0) CLV_FAIL(error, CLV_E_VALUE, "a table of %lld rows", (long long)V);
    io->n_out = 1;
    io->out[0] = clv__f32(CLV_SHAPE(V, dy->dims[dy->rank - 1]));
    return CLV_OK;
}

// ---- kernels --------------------------------------------------------------------------------------------------------

static void forward(clv__launches *list, const clv__op_io *io, bool wide) {
    int64_t V = io->in[0].shape.dims[0], D = io->in[0].shape.dims[1], n_rows = clv__numel(&io->in[1]);
    int64_t rows = clv__rows_for(D);
    if (n_rows * D == 0) return;
    clv__launch *launch = clv__launch_kernel(list, "embedding", wide ? "embedding_rows" : "embedding");
    clv__arg_out(list, launch, 0);
    clv__arg_in(list, launch, 0);
    clv__arg_in(list, launch, 1);
    if (wide) {
        CLV__ARGS_I32(list, launch, n_rows, rows, V, D);
        clv__launch_over(list, launch, CLV__TASKS, clv__div_up(n_rows, rows));
    } else {
        CLV__ARGS_I32(list, launch, n_rows * D, V, D);
        clv__launch_over(list, launch, CLV__ELEMENTS, n_rows * D);
    }
}

static void backward(clv__launches *list, const clv__op_io *io, bool wide) {
    int64_t V = io->out[0].shape.dims[0], D = io->out[0].shape.dims[1], n_rows = clv__numel(&io->in[1]);
    if (V * D == 0) return;
    if (n_rows == 0) {
        clv__launch_fill(list, 0, (size_t)(V * D) * sizeof(float), 0);
        return;
    }
    for (int64_t first = 0; first < n_rows; first += CHUNK) {
        int64_t last = first + CHUNK < n_rows ? first + CHUNK : n_rows;
        clv__launch *launch =
            clv__launch_kernel(list, "embedding", wide ? "embedding_rows_backward" : "embedding_backward");
        clv__arg_out(list, launch, 0);
        clv__arg_in(list, launch, 0);
        clv__arg_in(list, launch, 1);
        CLV__ARGS_I32(list, launch, wide ? V : V * D, D, first, last, first == 0);
        if (wide)
            clv__launch_over(list, launch, CLV__TASKS, V);
        else
            clv__launch_over(list, launch, CLV__ELEMENTS, V * D);
    }
}

static void plain(clv__launches *list, const clv__op_io *io) {
    forward(list, io, false);
}
static void rows(clv__launches *list, const clv__op_io *io) {
    forward(list, io, true);
}
static void backward_plain(clv__launches *list, const clv__op_io *io) {
    backward(list, io, false);
}
static void backward_rows(clv__launches *list, const clv__op_io *io) {
    backward(list, io, true);
}

static bool rows_support(const clv_device_info *device, const clv__op_io *io) {
    return clv__threads(device) && io->out[0].shape.dims[io->out[0].shape.rank - 1] >= 16;
}

static const clv__variant variants[] = {
    {"plain", .lower = plain}, {"rows", rows_support, .lower = rows, .relative = 0.2}, {0}};
static const clv__variant backward_variants[] = {
    {"plain", .lower = backward_plain}, {"rows", rows_support, .lower = backward_rows, .relative = 0.2}, {0}};

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
    for (int64_t i = 0; i < V * D; i++) ref->out[0][i] = 0;
    for (int64_t r = 0; r < n; r++) {
        int64_t v = (int64_t)ref->in[1][r];
        for (int64_t d = 0; d < D && v >= 0 && v < V; d++) ref->out[0][v * D + d] += ref->in[0][r * D + d];
    }
}

static void cost(const clv__op_io *io, clv__cost *cost) {
    double in = (double)clv__numel(&io->in[0]), out = (double)clv__numel(&io->out[0]);
    *cost = (clv__cost){in < out ? in : out, 8 * (io->op->data ? in : out)};
}

static int64_t reduction(const clv__op_io *io) {
    int64_t n = clv__numel(&io->in[1]);
    return io->op->data && n > 1 ? n : 1;
}

// ---- samples --------------------------------------------------------------------------------------------------------

static const struct embedding_case {
    const char *label;
    int64_t V, D;
    int rank;
    int64_t indices[3];
    bool quick;
} cases[] = {
    {"13 rows of 48, sentences", 13, 48, 2, {4, 9}, true},
    {"5 rows of 7", 5, 7, 1, {33}, true},
    {"65 rows of 19", 65, 19, 2, {3, 40}, false},
    {"one row of one", 1, 1, 1, {1}, false},
    {"one index, rank 0", 6, 17, 0, {0}, false},
    {"more rows than indices", 300, 16, 1, {5}, false},
    {"more indices than a chunk", 3, 2, 1, {CHUNK + 7}, false},
    {"no indices", 4, 8, 2, {0, 3}, false},
};

static bool sample(int i, clv__sample *out) {
    if (i < 0 || (size_t)i >= sizeof cases / sizeof *cases) return false;
    const struct embedding_case *c = &cases[i];
    snprintf(out->label, sizeof out->label, "%s", c->label);
    out->n_in = 2;
    out->in[0] = clv__f32(CLV_SHAPE(c->V, c->D));
    out->in[1] = clv__i32(clv_shape_make(c->rank, c->indices));
    out->fill[1] = (clv__fill){CLV__FILL_INTEGER, 0, (double)(c->V - 1)};
    if (c->V == 1) out->fill[1] = (clv__fill){CLV__FILL_INTEGER, 0, 0.5}; // 0 and 0 would be -1 to 1
    out->quick = c->quick;
    return true;
}

static bool backward_sample(int i, clv__sample *out) {
    if (!sample(i, out)) return false;
    memcpy(out->attrs, &(embedding_attrs){cases[i].V}, sizeof(embedding_attrs));
    clv_shape dy = out->in[1].shape;
    dy.dims[dy.rank++] = cases[i].D;
    out->in[0] = clv__f32(dy);
    return true;
}

// ---- descriptors ----------------------------------------------------------------------------------------------------

static const int is_backward; // .data of the gradient points here

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

static bool backward_split(const clv__op_io *io, int i, clv__split *out) {
    const int rank = io->in[1].shape.rank;
    out->length = clv__split_length(&io->in[0].shape, i);
    out->in[0] = (int8_t)i;
    if (i < rank) out->in[1] = (int8_t)i;
    out->out[0] = i < rank ? CLV__SPLIT_SUM : 1;
    return i <= rank;
}

const clv__op clv__op_embedding_backward = {
    .name = "embedding_backward",
    .attrs_bytes = sizeof(embedding_attrs),
    .data = &is_backward,
    .infer = backward_infer,
    .variants = backward_variants,
    .reference = backward_reference,
    .sample = CLV__TRAINS(backward_sample),
    .cost = cost,
    .reduction = reduction,
    .split = backward_split,
};

static void grad(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx) {
    if (!clv__wants_grad(node, 0)) return;
    dx[0] = clv__node_add(&clv__op_embedding_backward,
                          &(embedding_attrs){clv__node_io(node)->in[0].shape.dims[0]},
                          (clv_tensor *[]){dy[0], clv__node_in(node, 1)}, 2, 0);
}

const clv__op clv__op_embedding = {
    .name = "embedding",
    .infer = infer,
    .grad = CLV__TRAINS(grad),
    .variants = variants,
    .reference = reference,
    .sample = CLV__TRAINS(sample),
    .cost = cost,
    .reduction = reduction,
    .split = split,
};

clv_tensor *clv_embedding(clv_tensor *weight, clv_tensor *indices) {
    return clv__node_add(&clv__op_embedding, NULL, (clv_tensor *[]){weight, indices}, 2, 0);
}
