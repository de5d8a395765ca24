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

#define SCALE "const float scale = 1.0f / sqrt(s0 * share + eps);"
static void scalars(const clv__op_io *io, clv__rows *use) {
    use->n_floats = 2;
    use->floats[0] = 1.0f / (float)use->walk.count;
    use->floats[1] = ((const rms_attrs *)io->attrs)->eps;
}

/** x over its root mean square; of a gradient dx. */
static void reference_of(const clv__row_ref *row, const double *x, const double *dy) {
    double squares = 0, products = 0;
    for (int64_t d = 0; d < row->D; d++) {
        squares += x[d] * x[d];
        products += x[d] * (dy ? dy : x)[d];
    }
    const double scale = 1 / sqrt(squares / (double)row->D + (double)((const rms_attrs *)row->attrs)->eps);
    const double slope = dy ? products / (double)row->D * scale * scale : 0;
    for (int64_t d = 0; d < row->D; d++) row->out[0][d] = ((dy ? dy : x)[d] - x[d] * slope) * scale;
}

static void reference(const clv__row_ref *row) {
    reference_of(row, row->in[0], NULL);
}

static void backward_reference(const clv__row_ref *row) {
    reference_of(row, row->in[1], row->in[0]);
}

static const clv__row_op forward = {
    .program = {.params = "global T_Y *restrict y, global const T_X *restrict x, float share, float eps",
                .tensors = "o0=T_Y i0=T_X",
                .planes = 1,
                .load = "a[k] = GET(T_X, x + at);",
                .gather = "EACH(s0 += a[k] * a[k];)",
                .join = "s0 += t0;",
                .finish = SCALE,
                .store = "PUT(T_Y, a[k] * scale, y + at);",
                .vectors = true},
    .scalars = scalars,
    .flops = 4,
    .reference = reference};
static const clv__row_op backward = {
    .program = {.params = "global T_DX *restrict dx, global const T_T *restrict dy, "
                          "global const T_X *restrict x, float share, float eps",
                .tensors = "o0=T_DX i0=T_T i1=T_X",
                .planes = 2,
                .load = "a[k] = GET(T_X, x + at); b[k] = GET(T_T, dy + at);",
                .gather = "EACH(s0 += a[k] * a[k]; s1 += a[k] * b[k];)",
                .join = "s0 += t0; s1 += t1;",
                .finish = SCALE "const float slope = s1 * share * scale * scale;",
                .store = "PUT(T_DX, (b[k] - a[k] * slope) * scale, dx + at);",
                .vectors = true},
    .scalars = scalars,
    .flops = 8,
    .reference = backward_reference};

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

extern const clv__op clv__op_rms_norm;
#define COMMON(row) .attrs_bytes = sizeof(rms_attrs), .half_out = 1, CLV__ROW_OP(row)
CLV__TRAIN_OP(rms_norm_backward) = {CLV__GRADIENT_OF(rms_norm, "d0 i0 g0"), .half_in = 3, COMMON(&backward)};

/** The weight is a product of its own. */
static clv_tensor *build(const clv__call *call) {
    clv_tensor *y = clv__node_add(call->op, call->attrs, call->in, 1, 0);
    return call->in[1] ? clv_mul(y, call->in[1]) : y;
}

CLV__OP(rms_norm) = {
    .name = "rms_norm",
    .inputs = CLV__INPUTS({"x", "f32[*,D]"}, {"weight", "f32[D]?"}),
    .attributes = CLV__ATTRIBUTES({CLV__ATTRIBUTE(NUMBER, rms_attrs, eps, "1.1920929e-7"), CLV__AT_LEAST(0)}),
    .outputs = CLV__OUTPUTS({"y", "like x"}),
    .build = build,
    .half_in = 1,
    .autocast = CLV__CAST_HALF,
    .samples = CLV__TRAINS(samples),
    .split = clv__row_op_split,
    CLV__GRADIENT(rms_norm),
    COMMON(&forward)};
