// SPDX-License-Identifier: Apache-2.0
// Rows: ops of ours as nodes of ONNX, those that compute. Those that move are in write_moves.c.
#include "onnx/writer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NODE clv__writer_node_of

static const char *x_of(clv__onnx_writer *w) {
    return clv__writer_in(w, 0);
}

static const char *y_of(clv__onnx_writer *w) {
    return clv__writer_result(w);
}

/** `of` times a number. */
static const char *times(clv__onnx_writer *w, const char *of, double by, const char *as) {
    return NODE(w, "Mul", as, of, clv__writer_scalar(w, (float)by));
}

// ---- elementwise ----------------------------------------------------------------------------------------------------

static void write_add_scalar(clv__onnx_writer *w) {
    NODE(w, "Add", y_of(w), x_of(w), clv__writer_scalar(w, (float)clv__writer_number(w, "value")));
}

static void write_mul_scalar(clv__onnx_writer *w) {
    times(w, x_of(w), clv__writer_number(w, "value"), y_of(w));
}

static void write_pow_scalar(clv__onnx_writer *w) {
    NODE(w, "Pow", y_of(w), x_of(w), clv__writer_scalar(w, (float)clv__writer_number(w, "exponent")));
}

static void write_square(clv__onnx_writer *w) {
    NODE(w, "Mul", y_of(w), x_of(w), x_of(w));
}

/** Clip; what is infinite bounds nothing. */
static void clip(clv__onnx_writer *w, double low, double high) {
    const char *inputs[4] = {x_of(w), isinf(low) ? "" : clv__writer_scalar(w, (float)low), NULL};
    if (!isinf(high)) inputs[2] = clv__writer_scalar(w, (float)high);
    clv__writer_begin(w, "Clip", inputs);
    clv__writer_end(w, y_of(w));
}

static void write_clamp(clv__onnx_writer *w) {
    clip(w, clv__writer_number(w, "min"), clv__writer_number(w, "max"));
}

static void write_relu6(clv__onnx_writer *w) {
    clip(w, 0, 6);
}

/** A node with one attribute that is a number of ours. */
static void with_number(clv__onnx_writer *w, const char *op, const char *attribute, double value) {
    clv__writer_begin(w, op, (const char *const[]){x_of(w), NULL});
    clv__writer_put_float(w, attribute, (float)value);
}

static void write_leaky_relu(clv__onnx_writer *w) {
    with_number(w, "LeakyRelu", "alpha", clv__writer_number(w, "negative_slope"));
    clv__writer_end(w, y_of(w));
}

static void write_elu(clv__onnx_writer *w) {
    with_number(w, "Elu", "alpha", clv__writer_number(w, "alpha"));
    clv__writer_end(w, y_of(w));
}

static void write_hardsigmoid(clv__onnx_writer *w) {
    with_number(w, "HardSigmoid", "alpha", 1.0 / 6);
    clv__writer_put_float(w, "beta", 0.5F);
    clv__writer_end(w, y_of(w));
}

static void write_logsigmoid(clv__onnx_writer *w) {
    const char *minus = NODE(w, "Neg", NULL, x_of(w));
    NODE(w, "Neg", y_of(w), NODE(w, "Softplus", NULL, minus));
}

static void write_silu(clv__onnx_writer *w) {
    NODE(w, "Mul", y_of(w), x_of(w), NODE(w, "Sigmoid", NULL, x_of(w)));
}

/** x * (1 + f(u)) / 2 */
static void half_of(clv__onnx_writer *w, const char *f, const char *u) {
    const char *bounded = NODE(w, "Add", NULL, NODE(w, f, NULL, u), clv__writer_scalar(w, 1));
    times(w, NODE(w, "Mul", NULL, x_of(w), bounded), 0.5, y_of(w));
}

static void write_gelu(clv__onnx_writer *w) {
    half_of(w, "Erf", times(w, x_of(w), sqrt(0.5), NULL));
}

static void write_gelu_tanh(clv__onnx_writer *w) {
    const char *square = NODE(w, "Mul", NULL, x_of(w), x_of(w));
    const char *cube = NODE(w, "Mul", NULL, square, x_of(w));
    const char *sum = NODE(w, "Add", NULL, x_of(w), times(w, cube, 0.044715, NULL));
    half_of(w, "Tanh", times(w, sum, sqrt(2 / acos(-1.0)), NULL));
}

/** Truth is an i32 here, and a bool there. */
static void compare(clv__onnx_writer *w) {
    const char *truth = NODE(w, w->row->onnx, NULL, x_of(w), clv__writer_in(w, 1));
    if (!strcmp(w->row->op, "ne")) truth = NODE(w, "Not", NULL, truth);
    clv__writer_cast(w, truth, CLV__ONNX_INT32, y_of(w));
}

static void write_expm1(clv__onnx_writer *w) {
    NODE(w, "Sub", y_of(w), NODE(w, "Exp", NULL, x_of(w)), clv__writer_scalar(w, 1));
}

static void write_log1p(clv__onnx_writer *w) {
    NODE(w, "Log", y_of(w), NODE(w, "Add", NULL, x_of(w), clv__writer_scalar(w, 1)));
}

static void write_fmod(clv__onnx_writer *w) {
    clv__writer_begin(w, "Mod", (const char *const[]){x_of(w), clv__writer_in(w, 1), NULL});
    clv__writer_put_int(w, "fmod", 1);
    clv__writer_end(w, y_of(w));
}

static void write_remainder(clv__onnx_writer *w) {
    if (w->node.inputs[0]->desc.dtype == CLV_DTYPE_I32) {
        NODE(w, "Mod", y_of(w), x_of(w), clv__writer_in(w, 1));
        return;
    }
    const char *b = clv__writer_in(w, 1), *often = NODE(w, "Floor", NULL, NODE(w, "Div", NULL, x_of(w), b));
    NODE(w, "Sub", y_of(w), x_of(w), NODE(w, "Mul", NULL, often, b));
}

/** Half a turn further where b is below 0, on the side of a. */
static void write_atan2(clv__onnx_writer *w) {
    const double half = acos(-1.0);
    const char *b = clv__writer_in(w, 1), *zero = clv__writer_scalar(w, 0);
    const char *turn = NODE(w, "Where", NULL, NODE(w, "Less", NULL, x_of(w), zero),
                            clv__writer_scalar(w, (float)-half), clv__writer_scalar(w, (float)half));
    turn = NODE(w, "Where", NULL, NODE(w, "Less", NULL, b, zero), turn, zero);
    NODE(w, "Add", y_of(w), NODE(w, "Atan", NULL, NODE(w, "Div", NULL, x_of(w), b)), turn);
}

static void write_where(clv__onnx_writer *w) {
    const char *condition = clv__writer_cast(w, x_of(w), CLV__ONNX_BOOL, NULL);
    NODE(w, "Where", y_of(w), condition, clv__writer_in(w, 1), clv__writer_in(w, 2));
}

static void write_cast(clv__onnx_writer *w) {
    clv__writer_cast(w, x_of(w), clv__writer_dtype_of(w->node.outputs[0]->desc.dtype), y_of(w));
}

static const char *truth_of(clv__onnx_writer *w, int input) {
    return clv__writer_cast(w, clv__writer_in(w, input), CLV__ONNX_BOOL, NULL);
}

static void logical(clv__onnx_writer *w) {
    const char *a = truth_of(w, 0), *b = w->node.n_inputs > 1 ? truth_of(w, 1) : NULL;
    clv__writer_cast(w, NODE(w, w->row->onnx, NULL, a, b), CLV__ONNX_INT32, y_of(w));
}

/** Of bool the bits are truths. */
static void bitwise(clv__onnx_writer *w) {
    const bool truths = w->node.outputs[0]->desc.dtype == CLV_DTYPE_BOOL;
    NODE(w, truths ? w->row->onnx + strlen("Bitwise") : w->row->onnx, y_of(w), x_of(w), clv__writer_in(w, 1));
}

// ---- sums, rows -----------------------------------------------------------------------------------------------------

static void reduce(clv__onnx_writer *w) {
    int64_t axes[CLV_MAX_RANK];
    const int n = clv__writer_numbers(w, "axes", axes);
    const char *inputs[3] = {x_of(w), n ? clv__writer_list(w, axes, n) : NULL, NULL};
    clv__writer_begin(w, w->row->onnx, inputs);
    clv__writer_put_int(w, "keepdims", clv__writer_number(w, "keepdim") != 0);
    clv__writer_end(w, y_of(w));
}

static void write_argmax(clv__onnx_writer *w) {
    const int64_t axis = (int64_t)clv__writer_number(w, "axis");
    const bool keeps = clv__writer_number(w, "keepdim") != 0;
    clv__writer_begin(w, "ArgMax", (const char *const[]){x_of(w), NULL});
    clv__writer_put_int(w, "axis", axis);
    clv__writer_put_int(w, "keepdims", keeps);
    clv__writer_cast(w, clv__writer_end(w, NULL), CLV__ONNX_INT32, y_of(w));
}

static void over_axis(clv__onnx_writer *w) {
    clv__writer_begin(w, w->row->onnx, (const char *const[]){x_of(w), NULL});
    clv__writer_put_int(w, "axis", (int64_t)clv__writer_number(w, "axis"));
    clv__writer_end(w, y_of(w));
}

// ---- norms ----------------------------------------------------------------------------------------------------------

/** An input that is not there: n times a value. */
static const char *or_filled(clv__onnx_writer *w, int input, int64_t n, float value) {
    if (clv__writer_in(w, input)) return clv__writer_in(w, input);
    float *filled = clv__alloc((size_t)n + 1, sizeof *filled);
    for (int64_t i = 0; filled && i < n; i++) filled[i] = value;
    if (!filled) clv__writer_out_of_memory(w);
    const clv_shape shape = {1, {n}};
    const char *name = filled ? clv__writer_constant(w, CLV_DTYPE_F32, &shape, filled) : "";
    free(filled);
    return name;
}

static void write_batch_norm(clv__onnx_writer *w) {
    const int64_t channels = clv__writer_in_shape(w, 0)->dims[1];
    if (clv__writer_number(w, "training") != 0 || !clv__writer_in(w, 3) || !clv__writer_in(w, 4)) {
        clv__writer_cannot(w, "it has no running statistics, and would normalise by each batch");
        return;
    }
    const char *const inputs[] = {x_of(w),
                                  or_filled(w, 1, channels, 1),
                                  or_filled(w, 2, channels, 0),
                                  clv__writer_in(w, 3),
                                  clv__writer_in(w, 4),
                                  NULL};
    clv__writer_begin(w, "BatchNormalization", inputs);
    clv__writer_put_float(w, "epsilon", (float)clv__writer_number(w, "eps"));
    clv__writer_end(w, y_of(w));
}

static int64_t last_of(const clv_shape *shape) {
    return shape->dims[shape->rank - 1];
}

static void write_layer_norm(clv__onnx_writer *w) {
    const char *const inputs[] = {x_of(w), or_filled(w, 1, last_of(clv__writer_in_shape(w, 0)), 1),
                                  clv__writer_in(w, 2), NULL};
    clv__writer_begin(w, "LayerNormalization", inputs);
    clv__writer_put_int(w, "axis", -1);
    clv__writer_put_float(w, "epsilon", (float)clv__writer_number(w, "eps"));
    clv__writer_end(w, y_of(w));
}

static void write_rms_norm(clv__onnx_writer *w) {
    const char *square = NODE(w, "Mul", NULL, x_of(w), x_of(w));
    clv__writer_begin(w, "ReduceMean",
                      (const char *const[]){square, clv__writer_list(w, (const int64_t[]){-1}, 1), NULL});
    const char *mean = clv__writer_end(w, NULL);
    const char *above =
        NODE(w, "Add", NULL, mean, clv__writer_scalar(w, (float)clv__writer_number(w, "eps")));
    const char *root = NODE(w, "Sqrt", NULL, above);
    const char *weight = clv__writer_in(w, 1);
    const char *y = NODE(w, "Div", weight ? NULL : y_of(w), x_of(w), root);
    if (weight) NODE(w, "Mul", y_of(w), y, weight);
}

// ---- products -------------------------------------------------------------------------------------------------------

/** Its last two dimensions turned. */
static const char *turned(clv__onnx_writer *w, const char *matrix, int rank) {
    int64_t order[CLV_MAX_RANK];
    for (int i = 0; i < rank; i++) order[i] = i;
    order[rank - 2] = rank - 1;
    order[rank - 1] = rank - 2;
    clv__writer_begin(w, "Transpose", (const char *const[]){matrix, NULL});
    clv__writer_put_ints(w, "perm", order, rank);
    return clv__writer_end(w, NULL);
}

static void write_matmul(clv__onnx_writer *w) {
    const char *a = x_of(w), *b = clv__writer_in(w, 1);
    if (clv__writer_number(w, "transpose_a") != 0) a = turned(w, a, clv__writer_in_shape(w, 0)->rank);
    if (clv__writer_number(w, "transpose_b") != 0) b = turned(w, b, clv__writer_in_shape(w, 1)->rank);
    NODE(w, "MatMul", y_of(w), a, b);
}

static void write_linear(clv__onnx_writer *w) {
    const char *weight = clv__writer_in(w, 1), *bias = clv__writer_in(w, 2);
    if (clv__writer_in_shape(w, 0)->rank == 2) {
        clv__writer_begin(w, "Gemm", (const char *const[]){x_of(w), weight, bias, NULL});
        clv__writer_put_int(w, "transB", 1);
        clv__writer_end(w, y_of(w));
        return;
    }
    const char *y = NODE(w, "MatMul", bias ? NULL : y_of(w), x_of(w), turned(w, weight, 2));
    if (bias) NODE(w, "Add", y_of(w), y, bias);
}

// ---- attention ------------------------------------------------------------------------------------------------------

/** Scores whose future is `fill`. */
static const char *hide_future(clv__onnx_writer *w, const char *scores, int64_t queries, int64_t keys,
                               float fill, const char *as) {
    uint8_t *seen = clv__alloc((size_t)(queries * keys) + 1, 1);
    for (int64_t t = 0; seen && t < queries; t++)
        for (int64_t s = 0; s < keys; s++) seen[t * keys + s] = s <= t + keys - queries;
    if (!seen) clv__writer_out_of_memory(w);
    const clv_shape shape = {2, {queries, keys}};
    const char *mask = seen ? clv__writer_constant(w, CLV_DTYPE_BOOL, &shape, seen) : "";
    free(seen);
    return NODE(w, "Where", as, mask, scores, clv__writer_scalar(w, fill));
}

static const char *softmax_last(clv__onnx_writer *w, const char *of, const char *as) {
    clv__writer_begin(w, "Softmax", (const char *const[]){of, NULL});
    clv__writer_put_int(w, "axis", -1);
    return clv__writer_end(w, as);
}

static void write_causal_mask(clv__onnx_writer *w) {
    const clv_shape *x = clv__writer_in_shape(w, 0);
    hide_future(w, x_of(w), x->dims[x->rank - 2], last_of(x), (float)clv__writer_number(w, "fill"), y_of(w));
}

static void write_causal_softmax(clv__onnx_writer *w) {
    const clv_shape *x = clv__writer_in_shape(w, 0);
    if (x->dims[x->rank - 2] > last_of(x)) {
        clv__writer_cannot(w, "it has more queries than keys");
        return;
    }
    const char *scores = times(w, x_of(w), clv__writer_number(w, "scale"), NULL);
    const char *seen = hide_future(w, scores, x->dims[x->rank - 2], last_of(x), -INFINITY, NULL);
    softmax_last(w, seen, y_of(w));
}

static const char *ordered(clv__onnx_writer *w, const char *of, const int64_t *order, int rank) {
    clv__writer_begin(w, "Transpose", (const char *const[]){of, NULL});
    clv__writer_put_ints(w, "perm", order, rank);
    return clv__writer_end(w, NULL);
}

/** Columns `from` ... as [N, heads, T, d], each head of them `times` as often. */
static const char *heads_at(clv__onnx_writer *w, int64_t from, int64_t heads, int64_t t, int64_t d,
                            int64_t often) {
    const int64_t to = from + heads * d, axis = 2;
    const char *part = NODE(w, "Slice", NULL, x_of(w), clv__writer_list(w, &from, 1),
                            clv__writer_list(w, &to, 1), clv__writer_list(w, &axis, 1));
    part = NODE(w, "Reshape", NULL, part, clv__writer_list(w, (const int64_t[]){-1, t, heads, d}, 4));
    part = ordered(w, part, (const int64_t[]){0, 2, 1, 3}, 4);
    if (often == 1) return part;
    part = NODE(w, "Reshape", NULL, part, clv__writer_list(w, (const int64_t[]){-1, heads, 1, t, d}, 5));
    part = NODE(w, "Expand", NULL, part, clv__writer_list(w, (const int64_t[]){1, 1, often, 1, 1}, 5));
    return NODE(w, "Reshape", NULL, part, clv__writer_list(w, (const int64_t[]){-1, heads * often, t, d}, 4));
}

/** Queries, keys and values of each head; scores, weights, and [N, T, D] again. */
static void write_self_attention(clv__onnx_writer *w) {
    const clv_shape *x = clv__writer_in_shape(w, 0);
    const int64_t heads = (int64_t)clv__writer_number(w, "heads"),
                  told = (int64_t)clv__writer_number(w, "kv_heads"), keys = told ? told : heads,
                  t = x->dims[1], d = x->dims[2] / (heads + 2 * keys);
    double scale = clv__writer_number(w, "scale");
    if (scale == 0) scale = 1 / sqrt((double)d);
    const char *sides[3] = {heads_at(w, 0, heads, t, d, 1), heads_at(w, heads * d, keys, t, d, heads / keys),
                            heads_at(w, (heads + keys) * d, keys, t, d, heads / keys)};
    const char *scores = NODE(w, "MatMul", NULL, times(w, sides[0], scale, NULL), turned(w, sides[1], 4));
    if (clv__writer_in(w, 1)) scores = NODE(w, "Add", NULL, scores, clv__writer_in(w, 1)); // the mask
    if (clv__writer_number(w, "causal") != 0) scores = hide_future(w, scores, t, t, -INFINITY, NULL);
    const char *y = NODE(w, "MatMul", NULL, softmax_last(w, scores, NULL), sides[2]);
    y = ordered(w, y, (const int64_t[]){0, 2, 1, 3}, 4);
    NODE(w, "Reshape", y_of(w), y, clv__writer_list(w, (const int64_t[]){-1, t, heads * d}, 3));
}

/** Features by their numbers, start, start + step and so on. */
static const char *features(clv__onnx_writer *w, int64_t start, int64_t step, int64_t n) {
    int64_t *numbers = clv__alloc((size_t)n + 1, sizeof *numbers);
    for (int64_t i = 0; numbers && i < n; i++) numbers[i] = start + i * step;
    if (!numbers) clv__writer_out_of_memory(w);
    clv__writer_begin(
        w, "Gather",
        (const char *const[]){x_of(w), numbers ? clv__writer_list(w, numbers, (int)n) : "", NULL});
    free(numbers);
    clv__writer_put_int(w, "axis", -1);
    return clv__writer_end(w, NULL);
}

/** RotaryEmbedding is of opset 23. Pairs of neighbours are stacked behind each other, and become one dimension. */
static void write_rotary(clv__onnx_writer *w) {
    const clv_shape *x = clv__writer_in_shape(w, 0);
    const int64_t R = last_of(clv__writer_in_shape(w, 1)), E = last_of(x), last = x->rank;
    const bool neighbours = clv__writer_number(w, "interleaved") != 0;
    const char *cosines = clv__writer_in(w, 1), *sines = clv__writer_in(w, 2), *parts[4] = {0};
    const char *a = features(w, 0, neighbours ? 2 : 1, R),
               *b = features(w, neighbours ? 1 : R, neighbours ? 2 : 1, R);
    parts[0] = NODE(w, "Sub", NULL, NODE(w, "Mul", NULL, a, cosines), NODE(w, "Mul", NULL, b, sines));
    parts[1] = NODE(w, "Add", NULL, NODE(w, "Mul", NULL, b, cosines), NODE(w, "Mul", NULL, a, sines));
    if (neighbours) {
        int64_t flat[CLV_MAX_RANK];
        for (int i = 0; i < x->rank; i++) flat[i] = i + 1 < x->rank ? 0 : 2 * R; // 0: as it is
        for (int i = 0; i < 2; i++)
            parts[i] = NODE(w, "Unsqueeze", NULL, parts[i], clv__writer_list(w, &last, 1));
        clv__writer_begin(w, "Concat", parts);
        clv__writer_put_int(w, "axis", -1);
        parts[0] = NODE(w, "Reshape", NULL, clv__writer_end(w, NULL), clv__writer_list(w, flat, x->rank));
        parts[1] = NULL;
    }
    if (2 * R < E) parts[neighbours ? 1 : 2] = features(w, 2 * R, 1, E - 2 * R);
    clv__writer_begin(w, "Concat", parts);
    clv__writer_put_int(w, "axis", -1);
    clv__writer_end(w, y_of(w));
}

// ---- the table ------------------------------------------------------------------------------------------------------

// Of elementwise.def: nodes that compute what an op of ours does.
#define WRITE_FLOATS NULL
#define WRITE_NUMBERS NULL
#define WRITE_COMPARES compare
#define WRITE_TRUTHS logical
#define ONNX(id, node, how) {#id, #node, WRITE_##how},
const clv__onnx_write_row clv__onnx_write_rows[] = {
#include "ops/elementwise.def"
    {"div", "Div", NULL},
    {"abs", "Abs", NULL},
    {"pow", "Pow", NULL},
    {"sign", "Sign", NULL},
    {"atan2", NULL, write_atan2},
    {"expm1", NULL, write_expm1},
    {"log1p", NULL, write_log1p},
    {"fmod", NULL, write_fmod},
    {"remainder", NULL, write_remainder},
    {"relu", "Relu", NULL},
    {"selu", "Selu", NULL},
    {"add_scalar", NULL, write_add_scalar},
    {"mul_scalar", NULL, write_mul_scalar},
    {"pow_scalar", NULL, write_pow_scalar},
    {"square", NULL, write_square},
    {"clamp", NULL, write_clamp},
    {"relu6", NULL, write_relu6},
    {"leaky_relu", NULL, write_leaky_relu},
    {"elu", NULL, write_elu},
    {"hardsigmoid", NULL, write_hardsigmoid},
    {"logsigmoid", NULL, write_logsigmoid},
    {"silu", NULL, write_silu},
    {"gelu", NULL, write_gelu},
    {"gelu_tanh", NULL, write_gelu_tanh},
    {"ne", "Equal", compare},
    {"where", NULL, write_where},
    {"cast", NULL, write_cast},
    {"prelu", "PRelu", NULL},
    {"bitwise_and", "BitwiseAnd", bitwise},
    {"bitwise_or", "BitwiseOr", bitwise},
    {"bitwise_xor", "BitwiseXor", bitwise},
    {"sum", "ReduceSum", reduce},
    {"mean", "ReduceMean", reduce},
    {"max", "ReduceMax", reduce},
    {"argmax", NULL, write_argmax},
    {"softmax", "Softmax", over_axis},
    {"log_softmax", "LogSoftmax", over_axis},
    {"batch_norm", NULL, write_batch_norm},
    {"layer_norm", NULL, write_layer_norm},
    {"rms_norm", NULL, write_rms_norm},
    {"matmul", NULL, write_matmul},
    {"linear", NULL, write_linear},
    {"causal_mask", NULL, write_causal_mask},
    {"causal_softmax", NULL, write_causal_softmax},
    {"self_attention", NULL, write_self_attention},
    {"rotary_embedding", NULL, write_rotary},
    {NULL, NULL, NULL},
};
