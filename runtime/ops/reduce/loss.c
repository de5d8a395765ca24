// SPDX-License-Identifier: Apache-2.0
// Losses, mean over all: cross entropy with class indices, mean squared error.
#include <math.h>
#include <string.h>

#include "cleave/ops.h"
#include "graph/signature.h"
#include "ops/lower.h"
#include "ops/rows.h"

/** Logits seen from the class axis: [outer, C, inner]; rows = outer * inner. */
typedef struct class_sizes {
    int64_t outer, C, inner, rows;
} class_sizes;

static class_sizes sizes_of(const clv_shape *logits) {
    class_sizes s = {logits->dims[0], logits->dims[1], clv__dims_product(logits, 2, logits->rank), 0};
    s.rows = s.outer * s.inner;
    return s;
}

// ---- cross entropy ----------------------------------------------------------------------------------------
// Outputs: the loss, and for the gradient stats [2, rows]: the largest logit of each row, and log(sum(exp(x - largest))). A weight for
// each row is the last input, if there is one: rows of weight 0 count nothing, whatever their label.

/** The input with the weights; -1: there are none. */
static int weights_of(const clv__op_io *io) {
    const int i = clv__is_gradient(io) ? 4 : 2;
    return clv__has_in(io, i) ? i : -1;
}

static clv_status ce_infer(clv__op_io *io, clv__error *error) {
    if (io->in[0].shape.dims[1] < 1) CLV_FAIL(error, CLV_E_SHAPE, "logits have no classes");
    io->n_out = 2;
    io->out[0] = clv__f32((clv_shape){0});
    io->out[1] = clv__f32(CLV_SHAPE(2, sizes_of(&io->in[0].shape).rows));
    return CLV_OK;
}

static class_sizes ce_sizes(const clv__op_io *io) {
    return sizes_of(&io->in[clv__is_gradient(io)].shape);
}

static bool rows_support(const clv_device_info *device, const clv__op_io *io) {
    const class_sizes s = ce_sizes(io);
    return clv__threads(device) && s.inner == 1 && s.C >= 32 && clv__loops_fit(device, s.C / 16 * 2 + 64);
}

/** Statistics and losses of all rows; a label outside [0, C) gives NaN. */
static const clv__row_program ce_row = {
    .params =
        "global float *restrict stats, global const T_X *restrict x, global const int *restrict labels, "
        "global float *restrict losses",
    .tensors = "o1 i0=T_X i1",
    CLV__ROW_LOG_SUM_EXP,
    .load = "a[k] = ROW_X(at);",
    .run = true,
    .result = "const float log_sum = s0 == -INFINITY ? NAN : log(s1); const int label = labels[r]; "
              "stats[r] = s0; stats[n_rows + r] = log_sum; losses[r] = label < 0 || label >= count ? NAN "
              ": log_sum - (ROW_X(ROW_PLACE(label)) - s0);"};
static const clv__row_program ce_weighted_row = {
    .params =
        "global float *restrict stats, global const T_X *restrict x, global const int *restrict labels, "
        "global const float *restrict weights, global float *restrict losses",
    .tensors = "o1 i0=T_X i1 i2",
    CLV__ROW_LOG_SUM_EXP,
    .load = "a[k] = ROW_X(at);",
    .run = true,
    .result = "const float log_sum = s0 == -INFINITY ? NAN : log(s1); const int label = labels[r]; "
              "const float weight = weights[r]; stats[r] = s0; stats[n_rows + r] = log_sum; "
              "losses[r] = weight == 0.0f ? 0.0f : label < 0 || label >= count ? NAN "
              ": weight * (log_sum - (ROW_X(ROW_PLACE(label)) - s0));"};
static const clv__row_program ce_weighted_backward_row = {
    .params = "global T_Y *restrict y, global const float *restrict dy, global const T_X *restrict x, "
              "global const int *restrict labels, global const float *restrict stats, "
              "global const float *restrict weights",
    .tensors = "o0=T_Y i0 i1=T_X i2 i3 i4",
    .begin = "const int label = labels[r]; const float largest = stats[r]; const float log_sum = "
             "stats[n_rows + r]; const float weight = weights[r]; "
             "const float share = label < 0 || label >= count ? NAN : weight * (dy[0] / (float)n_rows);",
    .load = "a[k] = ROW_X(at);",
    .run = true,
    .store =
        "ROW_Y(weight == 0.0f ? 0.0f : (exp(a[k] - largest - log_sum) - (j == label ? 1.0f : 0.0f)) * share, "
        "at);"};
static const clv__row_program ce_backward_row = {
    .params = "global T_Y *restrict y, global const float *restrict dy, global const T_X *restrict x, "
              "global const int *restrict labels, global const float *restrict stats",
    .tensors = "o0=T_Y i0 i1=T_X i2 i3",
    .begin = "const int label = labels[r]; const float largest = stats[r]; const float log_sum = "
             "stats[n_rows + r]; "
             "const float share = label < 0 || label >= count ? NAN : dy[0] / (float)n_rows;",
    .load = "a[k] = ROW_X(at);",
    .run = true,
    .store = "ROW_Y((exp(a[k] - largest - log_sum) - (j == label ? 1.0f : 0.0f)) * share, at);"};

static void ce_lower(clv__launches *list, const clv__op_io *io) {
    const class_sizes s = ce_sizes(io);
    const bool weighted = weights_of(io) >= 0, forward = !clv__is_gradient(io);
    clv__rows use = {.program = weighted ? &ce_weighted_backward_row : &ce_backward_row,
                     .walk = clv__row_middle(s.outer, s.C, s.inner)};
    if (forward) {
        use.program = weighted ? &ce_weighted_row : &ce_row;
        use.scratch = clv__floats(list, clv__max64(s.rows, 1));
    }
    clv__rows_lower(list, io, &use);
    if (forward) clv__rows_total(list, io, use.scratch, s.rows, (float)s.rows);
}

static void ce_rows(clv__launches *list, const clv__op_io *io) {
    const class_sizes s = ce_sizes(io);
    const int64_t rows = clv__rows_for(s.C);
    const bool forward = !clv__is_gradient(io), weighted = weights_of(io) >= 0;
    static const struct {
        const char *entry, *tensors;
    } uses[2][2] = {
        {{"cross_entropy_backward_rows", "o0=T_DX i0 i1=T_X i2 i3"},
         {"cross_entropy_weighted_backward_rows", "o0=T_DX i0 i1=T_X i2 i3 i4"}},
        {{"cross_entropy_rows", "o1 i0=T_X i1"}, {"cross_entropy_weighted_rows", "o1 i0=T_X i1 i2"}}};
    clv__launch *launch = CLV__LAUNCH(list, io, "loss", uses[forward][weighted].entry, CLV__TASKS,
                                      clv__div_up(s.rows, rows), uses[forward][weighted].tensors);
    const clv__part losses = forward ? clv__floats(list, clv__max64(s.rows, 1)) : (clv__part){0};
    if (forward) clv__arg_part(list, launch, losses);
    CLV__ARGS_I32(list, launch, s.rows, rows, s.C);
    if (forward) clv__rows_total(list, io, losses, s.rows, (float)s.rows);
}

static const clv__variant ce_variants[] = {{"plain", .lower = ce_lower},
                                           {"rows", rows_support, .lower = ce_rows, .relative = 0.2},
                                           CLV__ROWS_GROUPS(clv__rows_groups, ce_lower),
                                           {0}};

static void ce_reference(const clv__ref *ref) {
    class_sizes s = sizes_of(&ref->io->in[0].shape);
    double total = 0;
    for (int64_t r = 0; r < s.rows; r++) {
        const double *x = ref->in[0] + r / s.inner * s.C * s.inner + r % s.inner;
        double largest = -INFINITY, sum = 0, label = ref->in[1][r];
        for (int64_t c = 0; c < s.C; c++) largest = fmax(largest, x[c * s.inner]);
        for (int64_t c = 0; c < s.C; c++) sum += exp(x[c * s.inner] - largest);
        ref->out[1][r] = largest;
        ref->out[1][s.rows + r] = log(sum);
        const double weight = weights_of(ref->io) < 0 ? 1 : ref->in[2][r];
        bool known = label >= 0 && label < (double)s.C;
        if (weight != 0) total += known ? weight * (log(sum) - (x[(int64_t)label * s.inner] - largest)) : NAN;
    }
    ref->out[0][0] = total / (double)s.rows;
}

static void ce_backward_reference(const clv__ref *ref) {
    class_sizes s = sizes_of(&ref->io->in[1].shape);
    const double *stats = ref->in[3];
    for (int64_t r = 0; r < s.rows; r++) {
        int64_t base = r / s.inner * s.C * s.inner + r % s.inner;
        double label = ref->in[2][r], weight = weights_of(ref->io) < 0 ? 1 : ref->in[4][r];
        bool known = label >= 0 && label < (double)s.C;
        for (int64_t c = 0; c < s.C; c++) {
            double p = exp(ref->in[1][base + c * s.inner] - stats[r] - stats[s.rows + r]);
            ref->out[0][base + c * s.inner] =
                weight == 0 ? 0
                : known     ? (p - (label == (double)c)) * weight * ref->in[0][0] / (double)s.rows
                            : NAN;
        }
    }
}

static void ce_cost(const clv__op_io *io, clv__cost *cost) {
    const int gradient = clv__is_gradient(io);
    double n = (double)clv__numel(&io->in[gradient]);
    *cost = (clv__cost){5 * n, 4 * n * (1 + gradient)};
}

static int64_t ce_reduction(const clv__op_io *io) {
    class_sizes s = sizes_of(&io->in[0].shape);
    return s.C + s.rows;
}

// What it is about, how far logits reach, the least and the largest label, the dimensions of both.
#define ROW(what, reach, least, most, logits, labels)                                                        \
    .label = what, .in = {CLV__DIMS logits, CLV__DIMS labels}, .n_in = 2, .i32 = 2,                          \
    .fill = {{CLV__FILL_UNIFORM, -(reach), reach}, {CLV__FILL_INTEGER, least, most}}
// Weights of 0, 1 and 2; no gradient goes to them.
#define WEIGHTED(what, reach, least, most, logits, labels)                                                   \
    .label = what, .in = {CLV__DIMS logits, CLV__DIMS labels, CLV__DIMS labels}, .n_in = 3, .i32 = 2,        \
    .fill = {{CLV__FILL_UNIFORM, -(reach), reach},                                                           \
             {CLV__FILL_INTEGER, least, most},                                                               \
             {CLV__FILL_INTEGER, 0, 2}},                                                                     \
    .no_gradient = true
static const clv__sample_row ce_samples[] = {
    {ROW("batch 64, 10 classes", 3, 0, 9, (64, 10), (64)), .quick = true},
    {ROW("41 classes", 3, 0, 40, (7, 41), (7)), .quick = true},
    {ROW("classes of pixels", 3, 0, 4, (2, 5, 6), (2, 6)), .quick = true},
    {ROW("one row, one class", 3, -0.25, 0.25, (1, 1), (1))}, // of 0 and 0 would come -1 to 1
    {ROW("one row, two classes", 3, 0, 1, (1, 2), (1))},
    {ROW("32 classes", 3, 0, 31, (3, 32), (3))},
    {ROW("large logits", 300, 0, 32, (5, 33), (5))},
    {ROW("1000 classes", 3, 0, 999, (3, 1000), (3))},
    {ROW("2053 rows", 3, 0, 2, (2053, 3), (2053))},
    {ROW("images", 3, 0, 2, (2, 3, 5, 7), (2, 5, 7))},
    {ROW("a label outside the classes, long rows", 3, -1, 37, (4, 37), (4)), .no_gradient = true},
    {ROW("a label outside the classes", 3, -1, 3, (40, 3), (40)), .no_gradient = true},
    {ROW("no rows", 3, 0, 3, (0, 4), (0)), .no_gradient = true}, // NaN, as of those
    {WEIGHTED("batch 64, 10 classes, weighted", 3, 0, 9, (64, 10), (64)), .quick = true},
    {WEIGHTED("41 classes, weighted", 3, 0, 40, (7, 41), (7)), .quick = true},
    {WEIGHTED("classes of pixels, weighted", 3, 0, 4, (2, 5, 6), (2, 6)), .quick = true},
    {WEIGHTED("one row, weighted", 3, 0, 1, (1, 2), (1))},
    {WEIGHTED("1000 classes, weighted", 3, 0, 999, (3, 1000), (3))},
    {WEIGHTED("2053 rows, weighted", 3, 0, 2, (2053, 3), (2053))},
    {WEIGHTED("a label outside the classes, weighted", 3, -1, 37, (4, 37), (4))},
    {WEIGHTED("very many classes, weighted", 3, 0, 66000, (2, 66001), (2))},
    {ROW("very many classes", 3, 0, 66000, (1, 66001), (1))}, // more than loops may turn
    {ROW("very many classes of pixels", 3, 0, 33330, (1, 33331, 2), (1, 2))},
    {0},
};
#undef ROW
#undef WEIGHTED

static void ce_adapt_backward(clv__sample *out) {
    const double reach = out->fill[1].hi;
    out->fill[0] = (clv__fill){CLV__FILL_UNIFORM, 0.5, 2};
    out->fill[3] = (clv__fill){CLV__FILL_UNIFORM, reach, reach + 1}; // any values do that keep exp small
}

/** Along the rows. The loss is the mean of the parts' losses, and the gradient a part's share of dy. */
static bool ce_split(const clv__op_io *io, int i, clv__split *out) {
    out->length = clv__split_length(&io->in[0].shape, 0);
    out->in[0] = out->in[1] = 0;
    if (weights_of(io) >= 0) out->in[2] = 0;
    out->out[0] = CLV__SPLIT_MEAN;
    out->out[1] = 1;
    return i == 0;
}

extern const clv__op clv__op_cross_entropy, clv__op_mse_loss;
CLV__TRAIN_OP(cross_entropy_backward) = {
    CLV__GRADIENT_OF(cross_entropy,
                     "d0 i0 i1 o1 i2 g0"), // stats are for this alone: no gradient comes through them
    .half_in = 1u << 1,
    .half_out = 1,
    .variants = ce_variants,
    .reference = ce_backward_reference,
    .adapt = CLV__TRAINS(ce_adapt_backward),
    .cost = ce_cost,
};

static clv_tensor *build(const clv__call *call) {
    clv_tensor *in[] = {call->in[0], call->in[1], call->in[2]};
    if (clv_tensor_info_get(in[2]).requires_grad) in[2] = clv_detach(in[2]);
    return clv__node_add(&clv__op_cross_entropy, NULL, in, in[2] ? 3 : 2, 0);
}

CLV__COMPOSITE(cross_entropy_weighted) = {
    .name = "cross_entropy_weighted", // as cross_entropy is by name
    .inputs = CLV__INPUTS({"logits", "f32[N,C,*]"}, {"labels", "int[N,*]"}, {"weight", "f32[N,*]?"}),
    .outputs = CLV__OUTPUTS({"loss", "f32[]"}),
    CLV__SAMPLES({.label = "rows of 5",
                  .quick = true,
                  .in = {CLV__DIMS(4, 5), CLV__DIMS(4)},
                  .n_in = 2,
                  .i32 = 2,
                  .fill = {{0}, {CLV__FILL_INTEGER, 0, 4}}},
                 {.label = "weights",
                  .in = {CLV__DIMS(4, 5), CLV__DIMS(4), CLV__DIMS(4)},
                  .n_in = 3,
                  .no_gradient = true, // weights have none; logits' is cross_entropy's
                  .i32 = 2,
                  .fill = {{0}, {CLV__FILL_INTEGER, 0, 4}, {CLV__FILL_UNIFORM, 0.5, 1}}}),
    .build = build};

CLV__OP(cross_entropy) = {
    .name = "cross_entropy",
    .inputs = CLV__INPUTS({"logits", "f32[N,C,*]"}, {"labels", "int[N,*]"}, {"weight", "f32[N,*]?"}),
    .outputs = CLV__OUTPUTS({"loss", "f32[]"}, {"stats", "f32[2,_]"}),
    .build = build,
    .half_in = 1,
    .autocast = CLV__CAST_FLOAT,
    .infer = ce_infer,
    CLV__GRADIENT(cross_entropy),
    .variants = ce_variants,
    .reference = ce_reference,
    .samples = CLV__TRAINS(ce_samples),
    .cost = ce_cost,
    .reduction = ce_reduction,
    .split = ce_split,
};

// ---- mean squared error -----------------------------------------------------------------------------------

static const clv__row_program mse_row = {.params = "global float *restrict out, global const T_X *restrict "
                                                   "x, global const T_T *restrict t, float divisor",
                                         .tensors = "o0 i0=T_X i1=T_T",
                                         CLV__ROW_SUM,
                                         .load = "a[k] = GET(T_X, x + at) - GET(T_T, t + at); a[k] *= a[k];",
                                         .result = "out[r] = s0 / divisor;",
                                         .vectors = true};

static void mse_lower(clv__launches *list, const clv__op_io *io) {
    const int64_t n = clv__numel(&io->in[0]);
    CLV__ROWS(list, io, .program = &mse_row, .walk = clv__row_middle(1, n, 1), .n_floats = 1,
              .floats = {(float)n});
}

static bool mse_vectors(const clv_device_info *device, const clv__op_io *io) {
    return clv__rows_vectors(
        device, &(clv__rows){.program = &mse_row, .walk = clv__row_middle(1, clv__numel(&io->in[0]), 1)});
}

static void mse_backward_plain(clv__launches *list, const clv__op_io *io) {
    const int64_t n = clv__numel(&io->out[0]);
    CLV__LAUNCH(list, io, "loss", "mse_backward", CLV__ELEMENTS, clv__div_up(n, 16),
                "o0=T_DX i0 i1=T_X i2=T_T", CLV__INTS(n));
}

static void mse_backward_groups(clv__launches *list, const clv__op_io *io) {
    static const clv__row_program program = {
        .params = "global T_DX *restrict dx, global const float *restrict dy, global const T_X *restrict x, "
                  "global const T_T *restrict t",
        .tensors = "o0=T_DX i0 i1=T_X i2=T_T",
        .begin = "const float scale = dy[0] * (2.0f / (float)count);",
        .load = "a[k] = LOAD(T_X, x + at) - LOAD(T_T, t + at);",
        .store = "STORE(T_DX, a[k] * scale, dx + at);"};
    CLV__ROWS(list, io, .program = &program, .walk = clv__row_middle(1, clv__numel(&io->out[0]), 1));
}

static const clv__variant mse_variants[] = {{"plain", .lower = mse_lower},
                                            CLV__ROWS_VECTORS(mse_vectors, mse_lower),
                                            CLV__ROWS_GROUPS(clv__rows_groups, mse_lower),
                                            {0}};
static const clv__variant mse_backward_variants[] = {
    {"plain", .lower = mse_backward_plain}, CLV__ROWS_GROUPS(clv__rows_groups, mse_backward_groups), {0}};

static void mse_reference(const clv__ref *ref) {
    int64_t n = clv__numel(&ref->io->in[0]);
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (ref->in[0][i] - ref->in[1][i]) * (ref->in[0][i] - ref->in[1][i]);
    ref->out[0][0] = sum / (double)n;
}

static void mse_backward_reference(const clv__ref *ref) {
    int64_t n = clv__numel(&ref->io->out[0]);
    for (int64_t i = 0; i < n; i++)
        ref->out[0][i] = 2 * (ref->in[1][i] - ref->in[2][i]) * ref->in[0][0] / (double)n;
}

static void mse_cost(const clv__op_io *io, clv__cost *cost) {
    double n = (double)clv__numel(&io->in[1]);
    *cost = (clv__cost){3 * n, 4 * n * io->n_in};
}

static int64_t mse_reduction(const clv__op_io *io) {
    return clv__numel(&io->in[0]);
}

#define ROW(what, ...) .label = what, .in = {__VA_ARGS__, __VA_ARGS__}, .n_in = 2
static const clv__sample_row mse_samples[] = {
    {ROW("640 elements", CLV__DIMS(64, 10)), .quick = true},
    {ROW("17 elements", CLV__DIMS(17)), .quick = true},
    {ROW("1 elements", {0}), .quick = true},
    {ROW("1 elements", CLV__DIMS(1))},
    {ROW("2 elements", CLV__DIMS(2))},
    {ROW("256 elements", CLV__DIMS(256))},
    {ROW("1023 elements", CLV__DIMS(1023))},
    {ROW("1025 elements", CLV__DIMS(1025))},
    {ROW("1023 elements", CLV__DIMS(31, 33))},
    {ROW("8191 elements", CLV__DIMS(8191))},
    {ROW("8193 elements", CLV__DIMS(8193))},
    {ROW("9879 elements", CLV__DIMS(3, 37, 89))},
    {ROW("20011 elements", CLV__DIMS(20011))},
    {ROW("0 elements", CLV__DIMS(0, 3)), .no_gradient = true}, // NaN
    {0},
};
#undef ROW

static bool mse_split(const clv__op_io *io, int i, clv__split *out) {
    clv__split_all(io, i, out);
    out->out[0] = CLV__SPLIT_MEAN;
    return i < io->in[0].shape.rank;
}

CLV__TRAIN_OP(mse_loss_backward) = {
    CLV__GRADIENT_OF(mse_loss, "d0 i0 i1 g0 n1"),
    .half_in = 6,
    .half_out = 1,
    .variants = mse_backward_variants,
    .reference = mse_backward_reference,
    .cost = mse_cost,
};

CLV__OP(mse_loss) = {
    .name = "mse_loss",
    .inputs = CLV__INPUTS({"x", "f32"}, {"target", "like x"}),
    .outputs = CLV__OUTPUTS({"loss", "f32[]"}),
    .half_in = 3,
    .autocast = CLV__CAST_FLOAT,
    CLV__GRADIENT(mse_loss),
    .variants = mse_variants,
    .reference = mse_reference,
    .samples = CLV__TRAINS(mse_samples),
    .cost = mse_cost,
    .reduction = mse_reduction,
    .split = mse_split,
};
