// SPDX-License-Identifier: Apache-2.0
// Root mean square normalisation along the last axis, and its gradient. The weight is a product of its own, which follows.
#include <math.h>

#include "cleave/ops.h"
#include "graph/signature.h"
#include "ops/lower.h"
#include "ops/rows.h"

typedef struct rms_attrs {
    float eps;
} rms_attrs;

static int64_t count_of(const clv__op_io *io) { // elements of a row
    return io->out[0].shape.dims[io->out[0].shape.rank - 1];
}

static float eps_of(const clv__op_io *io) {
    return ((const rms_attrs *)io->attrs)->eps;
}

// ---- kernels ----------------------------------------------------------------------------------------------

#define SCALE "const float scale = 1.0f / sqrt(s0 * share + eps);"
static const clv__row_program forward_row = {
    .params = "global T_Y *restrict y, global const T_X *restrict x, float share, float eps",
    .tensors = "o0=T_Y i0=T_X",
    .planes = 1,
    .load = "a[k] = LOAD(T_X, x + at);",
    .gather = "EACH(s0 += a[k] * a[k];)",
    .join = "s0 += t0;",
    .finish = SCALE,
    .store = "STORE(T_Y, a[k] * scale, y + at);"};
static const clv__row_program backward_row = {
    .params = "global T_DX *restrict dx, global const T_T *restrict dy, global const T_X *restrict x, float "
              "share, float eps",
    .tensors = "o0=T_DX i0=T_T i1=T_X",
    .planes = 2,
    .load = "a[k] = LOAD(T_X, x + at); b[k] = LOAD(T_T, dy + at);",
    .gather = "EACH(s0 += a[k] * a[k]; s1 += a[k] * b[k];)",
    .join = "s0 += t0; s1 += t1;",
    .finish = SCALE "const float slope = s1 * share * scale * scale;",
    .store = "STORE(T_DX, (b[k] - a[k] * slope) * scale, dx + at);"};

static void lower(clv__launches *list, const clv__op_io *io) {
    const int64_t D = count_of(io);
    CLV__ROWS(list, io, .program = clv__is_gradient(io) ? &backward_row : &forward_row,
              .walk = clv__row_middle(clv__numel(&io->out[0]) / clv__max64(D, 1), D, 1), .n_floats = 2,
              .floats = {1.0f / (float)D, eps_of(io)});
}

static bool groups_support(const clv_device_info *device, const clv__op_io *io) {
    return count_of(io) > 1 && clv__rows_groups(device, io);
}

static const clv__variant variants[] = {
    {"plain", .lower = lower}, CLV__ROWS_GROUPS(groups_support, lower), {0}};

// ---- reference and samples --------------------------------------------------------------------------------

static void reference(const clv__ref *ref) {
    const int64_t D = count_of(ref->io), n = clv__numel(&ref->io->out[0]);
    for (int64_t at = 0; at < n; at += D) {
        const double *x = ref->in[ref->io->n_in - 1] + at, *dy = ref->in[0] + at;
        double squares = 0, products = 0;
        for (int64_t d = 0; d < D; d++) {
            squares += x[d] * x[d];
            products += x[d] * dy[d];
        }
        const double scale = 1 / sqrt(squares / (double)D + (double)eps_of(ref->io));
        const double slope = clv__is_gradient(ref->io) ? products / (double)D * scale * scale : 0;
        for (int64_t d = 0; d < D; d++) ref->out[0][at + d] = (dy[d] - x[d] * slope) * scale;
    }
}

static void cost(const clv__op_io *io, clv__cost *cost) {
    const double n = (double)clv__numel(&io->out[0]);
    *cost = (clv__cost){4 * n * io->n_in, 4 * n * (io->n_in + 1)};
}

#define ROW(what, eps, ...)                                                                                  \
    .label = what, .in = {CLV__DIMS(__VA_ARGS__)}, .attrs = &(rms_attrs){eps},                               \
    .fill = {{CLV__FILL_UNIFORM, -3, 3}}
static const clv__sample_row samples[] = {
    {ROW("rows of 33", 1e-5f, 7, 33), .quick = true},
    {ROW("one element", 1e-3f, 1), .quick = true},
    {ROW("rows of 192", 1e-6f, 2, 5, 192)},
    {ROW("rows of 257, a large eps", 4, 3, 257)},
    {ROW("many rows", 1e-5f, 1031, 20)},
    {ROW("a row of 2049", 1e-5f, 1, 2049)},
    {ROW("no rows", 1e-5f, 0, 5)},
    {ROW("a very long row", 1e-5f, 1, 66001)},
    {0},
};
#undef ROW

/** Along every dimension but the last. */
static bool split(const clv__op_io *io, int i, clv__split *out) {
    const int rank = io->in[0].shape.rank;
    if (i + 1 < rank) clv__split_all(io, i, out);
    return i < rank;
}

extern const clv__op clv__op_rms_norm;
#define COMMON                                                                                               \
    .attrs_bytes = sizeof(rms_attrs), .half_out = 1, .variants = variants, .reference = reference,           \
    .cost = cost, .reduction = count_of
const clv__op clv__op_rms_norm_backward = {CLV__GRADIENT_OF(rms_norm, "d0 i0 g0"), .half_in = 3, COMMON};

/** The weight is a product of its own. */
static clv_tensor *build(const clv__call *call) {
    return clv_rms_norm(call->in[0], call->in[1], ((const rms_attrs *)call->attrs)->eps);
}

const clv__op clv__op_rms_norm = {
    .name = "rms_norm",
    .inputs = CLV__INPUTS({"x", "f32[*,D]"}, {"weight", "f32[D]?"}),
    .attributes = CLV__ATTRIBUTES({CLV__ATTRIBUTE(NUMBER, rms_attrs, eps, "1.1920929e-7"), CLV__AT_LEAST(0)}),
    .outputs = CLV__OUTPUTS({"y", "like x"}),
    .build = build,
    .half_in = 1,
    .autocast = CLV__CAST_HALF,
    .samples = CLV__TRAINS(samples),
    .split = split,
    CLV__GRADIENT(rms_norm),
    COMMON};

clv_tensor *clv_rms_norm(clv_tensor *x, clv_tensor *weight, float eps) {
    clv_tensor *y = clv__node_add(&clv__op_rms_norm, &(rms_attrs){eps}, &x, 1, 0);
    return weight ? clv_mul(y, weight) : y;
}
