// SPDX-License-Identifier: Apache-2.0
// Nodes that compute element by element.
#include <math.h>

#include "graph/graph.h"
#include "onnx/import.h"

/** An op of ours, of floats. */
static void of_float(clv__onnx_use *use) {
    clv_tensor *x = clv__onnx_float(use, 0);
    clv__onnx_give(use, 0, clv__onnx_as_given(use, clv_op_call(NULL, use->row->ours, &x, 1, NULL, 0)));
}

/** Of inputs as they are. */
static clv_tensor *of_inputs(clv__onnx_use *use) {
    clv_tensor *in[] = {clv__onnx_in(use, 0), clv__onnx_in(use, 1)};
    return clv_op_call(NULL, use->row->ours, in, in[1] ? 2 : 1, NULL, 0);
}

static void same(clv__onnx_use *use) {
    clv__onnx_give(use, 0, of_inputs(use));
}

static void truth(clv__onnx_use *use) {
    clv__onnx_give_type(use, 0, of_inputs(use), CLV__ONNX_BOOL);
}

/** Of an initializer. Exporters write those of the same values once: a vector (ones of a normalisation) becomes one of its own under the
 *  result's name, as it was in the model; a matrix is shared, as the weights of an embedding are with the last layer. */
static void build_identity(clv__onnx_use *use) {
    if (clv__onnx_has(use, 0) && use->n_out &&
        (use->in[0]->parts || use->in[0]->none)) { // a sequence, or nothing
        *use->out[0] = *use->in[0];
        return;
    }
    if (!clv__onnx_has(use, 0) || !use->in[0]->data || !clv__onnx_of_floats(use) || !use->n_out) {
        clv__onnx_give(use, 0, clv__onnx_in(use, 0));
        return;
    }
    if (use->in[0]->data->rank > 1 || use->flow->graphs)
        use->out[0]->same_as = use->in[0]->same_as ? use->in[0]->same_as : use->in[0];
    use->out[0]->data = use->in[0]->data;
    use->out[0]->type = use->in[0]->type;
}

static clv_tensor *larger(clv_tensor *a, clv_tensor *b) {
    return clv_where(clv_gt(a, b), a, b);
}

static clv_tensor *smaller(clv_tensor *a, clv_tensor *b) {
    return clv_where(clv_lt(a, b), a, b);
}

static void build_abs(clv__onnx_use *use) {
    clv_tensor *x = clv__onnx_in(use, 0);
    clv__onnx_give(use, 0, x && !clv__onnx_tensor_is_float(x) ? larger(x, clv_neg(x)) : clv_abs(x));
}

static void build_relu(clv__onnx_use *use) {
    clv_tensor *x = clv__onnx_in(use, 0);
    if (x && !clv__onnx_tensor_is_float(x))
        clv__onnx_give(use, 0, larger(x, clv__onnx_scalar(use, 0, false)));
    else
        of_float(use);
}

// ---- two operands ---------------------------------------------------------------------------------------------------

/** Of whole numbers toward zero. Quotients of i32 beyond 2^24 are not exact. */
static void build_div(clv__onnx_use *use) {
    clv_tensor *y = clv_div(clv__onnx_float(use, 0), clv__onnx_float(use, 1));
    clv__onnx_give(use, 0, clv__onnx_as_given(use, y));
}

static void build_mod(clv__onnx_use *use) {
    clv_tensor *a = clv__onnx_in(use, 0), *b = clv__onnx_in(use, 1);
    clv__onnx_give(use, 0, clv__onnx_int(use, "fmod", 0) ? clv_fmod(a, b) : clv_remainder(a, b));
}

enum { MAX, MIN, SUM, MEAN };
/** Of several operands, one after the other. */
static void build_all(clv__onnx_use *use) {
    static clv_tensor *(*const ops[])(clv_tensor *, clv_tensor *) = {larger, smaller, clv_add, clv_add};
    clv_tensor *y = clv__onnx_in(use, 0);
    for (int i = 1; i < use->n_in; i++) y = ops[use->row->which](y, clv__onnx_in(use, i));
    if (use->row->which == MEAN && use->n_in > 1) y = clv_mul_scalar(y, 1.0f / (float)use->n_in);
    clv__onnx_give(use, 0, y);
}

static void build_pow(clv__onnx_use *use) {
    const clv__known *exponent = clv__onnx_if_known(use, 1);
    clv_tensor *x = clv__onnx_float(use, 0), *y;
    if (exponent && clv_shape_numel(&exponent->shape) == 1) {
        const double e = exponent->v[0];
        y = e == 2 ? clv_square(x) : e == 0.5 ? clv_sqrt(x) : e == 1 ? x : clv_pow_scalar(x, (float)e);
        const clv_shape shape = clv_tensor_shape(x);
        if (x && exponent->shape.rank > shape.rank)
            y = clv__onnx_reshape(y, exponent->shape.dims, exponent->shape.rank);
    } else {
        y = clv_pow(x, clv__onnx_float(use, 1));
    }
    clv__onnx_give(use, 0, clv__onnx_of_floats(use) ? y : clv__onnx_as_i32(clv_round(y)));
}

// ---- comparisons and truth ------------------------------------------------------------------------------------------

static void build_is_nan(clv__onnx_use *use) {
    clv_tensor *x = clv__onnx_float(use, 0);
    clv__onnx_give_type(use, 0, clv_ne(x, x), CLV__ONNX_BOOL);
}

static void build_is_inf(clv__onnx_use *use) {
    clv_tensor *x = clv__onnx_float(use, 0);
    const bool up = clv__onnx_int(use, "detect_positive", 1), down = clv__onnx_int(use, "detect_negative", 1);
    clv_tensor *y = up && down ? clv__onnx_with(use, clv_eq, clv_abs(x), INFINITY)
                    : up       ? clv__onnx_with(use, clv_eq, x, INFINITY)
                    : down     ? clv__onnx_with(use, clv_eq, x, -INFINITY)
                               : clv_ne(clv_eq(x, x), clv_eq(x, x));
    clv__onnx_give_type(use, 0, y, CLV__ONNX_BOOL);
}

static void build_where(clv__onnx_use *use) {
    clv_tensor *y = clv_where(clv__onnx_in(use, 0), clv__onnx_in(use, 1), clv__onnx_in(use, 2));
    clv__onnx_give_type(use, 0, y, use->n_in > 1 && use->in[1] ? use->in[1]->type : CLV__ONNX_FLOAT);
}

static void build_sign(clv__onnx_use *use) {
    clv_tensor *x = clv__onnx_in(use, 0);
    if (clv__onnx_of_floats(use))
        clv__onnx_give(use, 0, clv_sign(clv__onnx_as_float(x)));
    else
        clv__onnx_give(use, 0, clv_sub(clv__onnx_with(use, clv_gt, x, 0), clv__onnx_with(use, clv_lt, x, 0)));
}

// ---- types ----------------------------------------------------------------------------------------------------------

/** The tensor of another type of the file. Two-byte floats are rounded to, and kept in f32. */
static void cast_to(clv__onnx_use *use, int type) {
    if (clv__onnx_give_cast(use, type)) return;
    clv_tensor *x = clv__onnx_in(use, 0), *y = NULL;
    const bool is_float = x && clv__onnx_tensor_is_float(x);
    switch (type) {
    case CLV__ONNX_BOOL: y = clv__onnx_with(use, clv_ne, x, 0); break;
    case CLV__ONNX_FLOAT:
    case CLV__ONNX_DOUBLE: y = clv__onnx_as_float(x); break;
    case CLV__ONNX_FLOAT16:
        y = clv_cast(clv_cast(clv__onnx_as_float(x), CLV_DTYPE_F16), CLV_DTYPE_F32);
        break;
    case CLV__ONNX_BFLOAT16:
        y = clv_cast(clv_cast(clv__onnx_as_float(x), CLV_DTYPE_BF16), CLV_DTYPE_F32);
        break;
    case CLV__ONNX_INT32:
    case CLV__ONNX_INT64: y = is_float ? clv__onnx_as_i32(x) : x; break;
    case CLV__ONNX_UINT8: y = clv_cast(clv_cast(x, CLV_DTYPE_U8), CLV_DTYPE_I32); break;
    default:
        clv__onnx_fail(use, CLV_E_UNSUPPORTED, "a cast to %s", clv__onnx_dtype_name((clv__onnx_dtype)type));
        return;
    }
    clv__onnx_give_type(use, 0, y, type);
}

static void build_cast(clv__onnx_use *use) {
    cast_to(use, (int)clv__onnx_int(use, "to", CLV__ONNX_FLOAT));
}

static void build_cast_like(clv__onnx_use *use) {
    cast_to(use, clv__onnx_has(use, 1) ? use->in[1]->type : CLV__ONNX_FLOAT);
}

// ---- activations ----------------------------------------------------------------------------------------------------

static void build_leaky_relu(clv__onnx_use *use) {
    clv__onnx_give(use, 0,
                   clv_leaky_relu(clv__onnx_float(use, 0), (float)clv__onnx_real(use, "alpha", 0.01)));
}

static void build_gelu(clv__onnx_use *use) {
    clv_tensor *x = clv__onnx_float(use, 0);
    clv__onnx_give(use, 0,
                   clv__onnx_word(use, "approximate", "tanh", false) ? clv_gelu_tanh(x) : clv_gelu(x));
}

static void build_swish(clv__onnx_use *use) {
    clv_tensor *x = clv__onnx_float(use, 0);
    const float alpha = (float)clv__onnx_real(use, "alpha", 1);
    clv__onnx_give(use, 0, alpha == 1 ? clv_silu(x) : clv_mul(x, clv_sigmoid(clv_mul_scalar(x, alpha))));
}

static void build_softsign(clv__onnx_use *use) {
    clv_tensor *x = clv__onnx_float(use, 0);
    clv__onnx_give(use, 0, clv_div(x, clv_add_scalar(clv_abs(x), 1)));
}

static void build_hard_sigmoid(clv__onnx_use *use) {
    clv_tensor *x = clv_mul_scalar(clv__onnx_float(use, 0), (float)clv__onnx_real(use, "alpha", 0.2));
    clv__onnx_give(use, 0, clv_clamp(clv_add_scalar(x, (float)clv__onnx_real(use, "beta", 0.5)), 0, 1));
}

static void build_elu(clv__onnx_use *use) {
    clv__onnx_give(use, 0, clv_elu(clv__onnx_float(use, 0), (float)clv__onnx_real(use, "alpha", 1)));
}

static void build_selu(clv__onnx_use *use) {
    const double alpha = clv__onnx_real(use, "alpha", 1.67326319217681884765625),
                 gamma = clv__onnx_real(use, "gamma", 1.05070102214813232421875);
    clv__onnx_give(use, 0, clv_mul_scalar(clv_elu(clv__onnx_float(use, 0), (float)alpha), (float)gamma));
}

static void build_celu(clv__onnx_use *use) {
    const float alpha = (float)clv__onnx_real(use, "alpha", 1);
    clv_tensor *x = clv_mul_scalar(clv__onnx_float(use, 0), 1 / alpha);
    clv__onnx_give(use, 0, clv_mul_scalar(clv_elu(x, 1), alpha));
}

static void build_thresholded_relu(clv__onnx_use *use) {
    clv_tensor *x = clv__onnx_float(use, 0);
    clv_tensor *above = clv__onnx_with(use, clv_gt, x, clv__onnx_real(use, "alpha", 1));
    clv__onnx_give(use, 0, clv_where(above, x, clv__onnx_scalar(use, 0, true)));
}

static void build_prelu(clv__onnx_use *use) {
    const clv_shape s = clv__onnx_shape(use, 1);
    clv_tensor *x = clv__onnx_float(use, 0), *slope = clv__onnx_float(use, 1);
    if (s.rank == 1)
        slope = clv__onnx_reshape(slope, (int64_t[]){1, s.dims[0]}, 2); // along the last dimension
    clv__onnx_give(use, 0, clv__onnx_as_given(use, clv_prelu(x, slope)));
}

static void build_shrink(clv__onnx_use *use) {
    clv_tensor *x = clv__onnx_float(use, 0);
    const double lambda = clv__onnx_real(use, "lambd", 0.5);
    const float bias = (float)clv__onnx_real(use, "bias", 0);
    clv_tensor *high = clv_where(clv__onnx_with(use, clv_gt, x, lambda), clv_add_scalar(x, -bias),
                                 clv__onnx_scalar(use, 0, true));
    clv_tensor *y = clv_where(clv__onnx_with(use, clv_lt, x, -lambda), clv_add_scalar(x, bias), high);
    clv__onnx_give(use, 0, clv__onnx_as_given(use, y));
}

static void build_clip(clv__onnx_use *use) {
    const double low = clv__onnx_number(use, 1, clv__onnx_real(use, "min", -INFINITY)),
                 high = clv__onnx_number(use, 2, clv__onnx_real(use, "max", INFINITY));
    clv_tensor *y = clv_clamp(clv__onnx_float(use, 0), (float)(low < high ? low : high), (float)high);
    clv__onnx_give(use, 0, clv__onnx_as_given(use, y));
}

/** A training drops; elsewhere it is x, and its mask true. */
static void build_dropout(clv__onnx_use *use) {
    clv_tensor *x = clv__onnx_in(use, 0);
    const clv__known *training = clv__onnx_has(use, 2) ? clv__onnx_known(use, 2) : NULL,
                     *part = clv__onnx_if_known(use, 1);
    if (training && training->v[0] != 0 && !(part && part->v[0] == 0) && !clv__graph_training(use->graph)) {
        clv__onnx_fail(use, CLV_E_UNSUPPORTED,
                       "training_mode in a forward pass: export the model for evaluation");
        return;
    }
    const bool drops = clv__graph_training(use->graph) && clv__onnx_of_floats(use);
    const double ratio = drops ? clv__onnx_number(use, 1, clv__onnx_real(use, "ratio", 0.5)) : 0;
    clv__onnx_give(use, 0, drops ? clv_dropout(x, (float)ratio) : x);
    if (use->n_out > 1) clv__onnx_give_type(use, 1, clv_eq(x, x), CLV__ONNX_BOOL);
}

// Of elementwise.def: nodes that compute what an op of ours does.
#define READ_FLOATS of_float
#define READ_NUMBERS same
#define READ_COMPARES truth
#define READ_TRUTHS truth
#define ONNX(id, node, how) {#node, READ_##how, .ours = #id},
const clv__onnx_row clv__onnx_elementwise[] = {
#include "ops/elementwise.def"
    {"Abs", .build = build_abs},
    {"Cast", .build = build_cast},
    {"CastLike", .build = build_cast_like},
    {"Celu", .build = build_celu},
    {"Clip", .build = build_clip},
    {"Div", .build = build_div},
    {"Dropout", .build = build_dropout},
    {"Elu", .build = build_elu},
    {"Gelu", .build = build_gelu},
    {"HardSigmoid", .build = build_hard_sigmoid},
    {"Identity", .build = build_identity},
    {"IsInf", .build = build_is_inf},
    {"IsNaN", .build = build_is_nan},
    {"LeakyRelu", .build = build_leaky_relu},
    {"Max", build_all, .which = MAX},
    {"Mean", build_all, .which = MEAN},
    {"Min", build_all, .which = MIN},
    {"Mod", .build = build_mod},
    {"PRelu", .build = build_prelu},
    {"Pow", .build = build_pow},
    {"Relu", build_relu, .ours = "relu"},
    {"Selu", .build = build_selu},
    {"Shrink", .build = build_shrink},
    {"Sign", .build = build_sign},
    {"Softsign", .build = build_softsign},
    {"Sum", build_all, .which = SUM},
    {"Swish", .build = build_swish},
    {"ThresholdedRelu", .build = build_thresholded_relu},
    {"Where", .build = build_where},
    {0},
};
