// SPDX-License-Identifier: Apache-2.0
// Layer normalisation over the last dimension. Source: Ba, Kiros, Hinton 2016, arXiv:1607.06450, section 3;
// torch.nn.LayerNorm.
#include <math.h>

#include "cleave/ops.h"
#include "graph/signature.h"
#include "ops/lower.h"
#include "ops/rows.h"

typedef struct layer_attrs {
    float eps;
} layer_attrs;

enum { X, WEIGHT, BIAS };                     // inputs of layer_norm
enum { Y, MEAN, RSTD };                       // its outputs
enum { B_DY, B_X, B_WEIGHT, B_MEAN, B_RSTD }; // inputs of layer_norm_backward
enum { B_DX, B_DWEIGHT, B_DBIAS };            // its outputs

/** x as rows of D. */
typedef struct layer_sizes {
    int64_t rows, D;
} layer_sizes;

static layer_sizes sizes_of(const clv_shape *x) {
    return (layer_sizes){clv__dims_product(x, 0, x->rank - 1), x->dims[x->rank - 1]};
}

// ---- kernels --------------------------------------------------------------------------------------------------------

static const clv__row_program forward_row = {
    .params = "global T_Y *restrict y, global float *restrict means, global float *restrict rstds, "
              "global const T_X *restrict x, global const float *restrict weight, "
              "global const float *restrict bias, int has_weight, int has_bias, float eps",
    .tensors = "o0=T_Y o1 o2 i0=T_X i1 i2",
    .once = "c[k] = has_weight ? GET(float, weight + j) : (REAL)(1.0f); "
            "d[k] = has_bias ? GET(float, bias + j) : (REAL)(0.0f);",
    .load = "a[k] = GET(T_X, x + at);",
    CLV__ROW_MOMENTS,
    .finish = "const float rstd = 1.0f / sqrt(s1 / (float)count + eps);",
    .result = "means[r] = s0; rstds[r] = rstd;",
    .store = "PUT(T_Y, (a[k] - s0) * rstd * c[k] + d[k], y + at);",
    .vectors = true};

// a: dy * weight, b: x_hat. dx = rstd * (a - mean(a) - b * mean(a * b)).
#define BACKWARD                                                                                             \
    .tensors = "o0=T_DX i0=T_Y i1=T_X i2 i3 i4",                                                             \
    .begin = "const float mean = means[r]; const float rstd = rstds[r];",                                    \
    .once = "c[k] = has_weight ? GET(float, weight + j) : (REAL)(1.0f);", .planes = 2, .vectors = true,      \
    .gather = "EACH(s0 += a[k]; s1 += a[k] * b[k];)", .join = "s0 += t0; s1 += t1;",                         \
    .finish = "const float mean_a = s0 / (float)count; const float mean_ab = s1 / (float)count;"
#define BACKWARD_PARAMS(more)                                                                                \
    .params = "global T_DX *restrict dx, global const T_Y *restrict dy, global const T_X *restrict x, "      \
              "global const float *restrict weight, global const float *restrict means, "                    \
              "global const float *restrict rstds, " more "int has_weight"
static const clv__row_program backward_row = {
    BACKWARD_PARAMS(""), BACKWARD,
    .load = "a[k] = GET(T_Y, dy + at) * c[k]; b[k] = (GET(T_X, x + at) - mean) * rstd;",
    .store = "PUT(T_DX, rstd * (a[k] - mean_a - b[k] * mean_ab), dx + at);"};
// The same, and on the way partial sums for dweight and dbias; c: dy, d: weight.
static const clv__row_program backward_with_sums_row = {
    BACKWARD_PARAMS("global float *restrict sums, "), BACKWARD,
    .load = "d[k] = LOAD(T_Y, dy + at); a[k] = d[k] * c[k]; b[k] = (LOAD(T_X, x + at) - mean) * rstd;",
    .store =
        "STORE(T_DX, rstd * (a[k] - mean_a - b[k] * mean_ab), dx + at); e[k] += d[k]; f[k] += d[k] * b[k];",
    .after = "EACH(sums[2 * partial * count + j] = e[k]; sums[(2 * partial + 1) * count + j] = f[k];)"};

/** dbias and dweight, columns of dy and dy * x_hat added up. */
static const clv__row_program sums_row = {
    .params = "global float *restrict dbias, global float *restrict dweight, global const T_Y *restrict dy, "
              "global const T_X *restrict x, global const float *restrict means, global const float "
              "*restrict rstds",
    .tensors = "o2 o1 i0=T_Y i1=T_X i3 i4",
    CLV__ROW_SUMS,
    .load = "a[k] = GET(T_Y, dy + at); b[k] = a[k] * ((GET(T_X, x + at) - means[j]) * rstds[j]);",
    .result = "PUT(float, s0, dbias + r); PUT(float, s1, dweight + r);",
    .vectors = true};
/** The same of partial sums of both, in turns. */
static const clv__row_program join_row = {
    .params =
        "global float *restrict dbias, global float *restrict dweight, global const float *restrict sums",
    .tensors = "o2 o1",
    CLV__ROW_SUMS,
    .load = "a[k] = sums[at]; b[k] = sums[at + near / 2];",
    .result = "dbias[r] = s0; dweight[r] = s1;"};

static void forward(clv__launches *list, const clv__op_io *io) {
    const layer_sizes s = sizes_of(&io->in[X].shape);
    CLV__ROWS(list, io, .program = &forward_row, .walk = clv__row_middle(s.rows, s.D, 1), .n_ints = 2,
              .ints = {clv__has_in(io, WEIGHT), clv__has_in(io, BIAS)}, .n_floats = 1,
              .floats = {((const layer_attrs *)io->attrs)->eps});
}

/** No rows: the sums are zeros. */
static bool no_rows(clv__launches *list, const layer_sizes *s) {
    for (int i = B_DWEIGHT; i <= B_DBIAS && s->rows == 0 && s->D > 0; i++)
        clv__launch_fill(list, i, (size_t)s->D * sizeof(float), 0);
    return s->rows == 0 || s->D == 0;
}

static void backward(clv__launches *list, const clv__op_io *io) {
    const layer_sizes s = sizes_of(&io->in[B_X].shape);
    clv__rows use = {.program = &backward_with_sums_row,
                     .walk = clv__row_middle(s.rows, s.D, 1),
                     .n_ints = 1,
                     .ints = {clv__has_in(io, B_WEIGHT)}};
    clv__rows sums = {.program = &sums_row, .walk = clv__row_middle(1, s.rows, s.D)};
    if (no_rows(list, &s)) return;
    const int64_t partials = clv__rows_partials(list, io, &use);
    if (partials) {
        use.scratch = clv__floats(list, 2 * partials * s.D);
        sums = (clv__rows){
            .program = &join_row, .walk = clv__row_middle(1, partials, s.D), .scratch = use.scratch};
        sums.walk.near = 2 * s.D;
    } else {
        use.program = &backward_row;
    }
    clv__rows_lower(list, io, &use);
    clv__rows_lower(list, io, &sums);
}

static bool vectors_support(const clv_device_info *device, const clv__op_io *io) {
    const layer_sizes s = sizes_of(&io->in[0].shape);
    return clv__rows_vectors(device,
                             &(clv__rows){.program = &forward_row, .walk = clv__row_middle(s.rows, s.D, 1)});
}

static const clv__variant variants[] = {{"plain", .lower = forward},
                                        CLV__ROWS_VECTORS(vectors_support, forward),
                                        CLV__ROWS_GROUPS(clv__rows_groups, forward),
                                        {0}};
static const clv__variant backward_variants[] = {{"plain", .lower = backward},
                                                 CLV__ROWS_VECTORS(vectors_support, backward),
                                                 CLV__ROWS_GROUPS(clv__rows_groups, backward),
                                                 {0}};

// ---- references -----------------------------------------------------------------------------------------------------

static void reference(const clv__ref *ref) {
    layer_sizes s = sizes_of(&ref->io->in[X].shape);
    double eps = (double)((const layer_attrs *)ref->io->attrs)->eps, D = (double)s.D;
    for (int64_t r = 0; r < s.rows; r++) {
        const double *x = ref->in[X] + r * s.D;
        double mean = 0, var = 0;
        for (int64_t d = 0; d < s.D; d++) mean += x[d] / D;
        for (int64_t d = 0; d < s.D; d++) var += (x[d] - mean) * (x[d] - mean) / D;
        double rstd = 1 / sqrt(var + eps);
        for (int64_t d = 0; d < s.D; d++)
            ref->out[Y][r * s.D + d] = (x[d] - mean) * rstd * (ref->in[WEIGHT] ? ref->in[WEIGHT][d] : 1) +
                                       (ref->in[BIAS] ? ref->in[BIAS][d] : 0);
        ref->out[MEAN][r] = mean;
        ref->out[RSTD][r] = rstd;
    }
}

static void backward_reference(const clv__ref *ref) {
    layer_sizes s = sizes_of(&ref->io->in[B_X].shape);
    clv__ref_zero(ref);
    for (int64_t r = 0; r < s.rows; r++) {
        const double *x = ref->in[B_X] + r * s.D, *dy = ref->in[B_DY] + r * s.D;
        double mean = ref->in[B_MEAN][r], rstd = ref->in[B_RSTD][r], sum = 0, product = 0;
        for (int64_t d = 0; d < s.D; d++) {
            double x_hat = (x[d] - mean) * rstd, g = dy[d] * (ref->in[B_WEIGHT] ? ref->in[B_WEIGHT][d] : 1);
            sum += g / (double)s.D;
            product += g * x_hat / (double)s.D;
            ref->out[B_DWEIGHT][d] += dy[d] * x_hat;
            ref->out[B_DBIAS][d] += dy[d];
        }
        for (int64_t d = 0; d < s.D; d++) {
            double x_hat = (x[d] - mean) * rstd, g = dy[d] * (ref->in[B_WEIGHT] ? ref->in[B_WEIGHT][d] : 1);
            ref->out[B_DX][r * s.D + d] = rstd * (g - sum - x_hat * product);
        }
    }
}

static void cost(const clv__op_io *io, clv__cost *cost) {
    double n = (double)clv__numel(&io->out[0]);
    bool is_backward = clv__is_gradient(io);
    *cost = (clv__cost){(is_backward ? 16 : 8) * n, 4 * n * (is_backward ? 3 : 2)};
}

static int64_t reduction(const clv__op_io *io) {
    layer_sizes s = sizes_of(&io->in[0].shape);
    return clv__is_gradient(io) && s.rows > s.D ? s.rows : s.D;
}

// ---- samples --------------------------------------------------------------------------------------------------------

#define CASE(text, missing, D, ...)                                                                          \
    .label = text, .in = {CLV__DIMS(__VA_ARGS__), CLV__DIMS(D), CLV__DIMS(D)}, .n_in = 3,                    \
    .attrs = &(layer_attrs){1e-5f}, .fill = {{CLV__FILL_UNIFORM, -1, 3}, {CLV__FILL_UNIFORM, 0.5, 1.5}},     \
    .left_out = missing
static const clv__sample_row samples[] = {
    {CASE("rows of 48", 0, 48, 6, 48), .quick = true},
    {CASE("rows of 33, no bias", 1u << BIAS, 33, 2, 3, 33), .quick = true},
    {CASE("rows of 7, neither", 1u << WEIGHT | 1u << BIAS, 7, 5, 7), .quick = true},
    {CASE("two elements", 0, 2, 2)},
    {CASE("rows of 16", 0, 16, 3, 16)},
    {CASE("rows of 17, no weight", 1u << WEIGHT, 17, 4, 17)},
    {CASE("rows of 300", 0, 300, 3, 300)},
    {CASE("one row of 1025", 0, 1025, 1, 1025)},
    {CASE("rows of 768", 0, 768, 5, 768)},
    {CASE("rows of 2,049", 0, 2049, 3, 2049)},
    {CASE("rows of 16,001", 0, 16001, 2, 16001)},
    {CASE("a row of 70,001", 1u << BIAS, 70001, 1, 70001)},
    {CASE("129 rows of 31", 0, 31, 129, 31)},
    {CASE("131 rows of 65", 0, 65, 131, 65)},
    {CASE("4 dimensions", 0, 20, 2, 3, 2, 20)},
    {CASE("300 rows of 5", 0, 5, 3, 100, 5)},
    {CASE("no rows", 0, 8, 0, 8)},
    {0},
};
#undef CASE

// ---- in parts -----------------------------------------------------------------------------------------------------

/** Along every dimension but the last. */
static bool split(const clv__op_io *io, int i, clv__split *out) {
    const clv_shape *x = &io->in[X].shape;
    out->length = clv__split_length(x, i);
    out->in[X] = out->out[Y] = out->out[MEAN] = out->out[RSTD] = (int8_t)i;
    return i + 1 < x->rank;
}

extern const clv__op clv__op_layer_norm;
#define COMMON .attrs_bytes = sizeof(layer_attrs), .cost = cost, .reduction = reduction
CLV__TRAIN_OP(layer_norm_backward) = {
    CLV__GRADIENT_OF(layer_norm, "d0 i0 i1 o1 o2 g0 g1 g2"), // B_DY and so on
    .half_in = 1u << B_DY | 1u << B_X,
    .half_out = 1u << B_DX,
    .variants = backward_variants,
    .reference = backward_reference,
    COMMON};

CLV__OP(layer_norm) = {
    .name = "layer_norm",
    .inputs = CLV__INPUTS({"x", "f32[*,D]"}, {"weight", "f32[D]?"}, {"bias", "f32[D]?"}),
    .attributes = CLV__ATTRIBUTES({CLV__ATTRIBUTE(NUMBER, layer_attrs, eps, "1e-5"), CLV__ABOVE(0)}),
    .outputs = CLV__OUTPUTS({"y", "like x"}, {"mean", "f32[*]"}, {"rstd", "f32[*]"}),
    .half_in = 1u << X,
    .half_out = 1u << Y,
    .autocast = CLV__CAST_HALF, // graph.h says why
    .variants = variants,
    .reference = reference,
    .samples = CLV__TRAINS(samples),
    .split = split,
    CLV__GRADIENT(layer_norm),
    COMMON};
