// SPDX-License-Identifier: Apache-2.0
// Ops: calls that append nodes to the graph of their inputs and return the result. Each is the call of its op by its name
// (clv_op_call). Every one returns NULL after a mistake, its own or an earlier one (see graph.h), and takes such NULLs.
// f32 unless it says otherwise; int: i32, and other integers, which are cast to it (what is beyond
// i32 becomes its nearest end, and is no index either). "Gradient" lists the inputs that get one.
#ifndef CLEAVE_OPS_H
#define CLEAVE_OPS_H

#include "custom_op.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __GNUC__ // a program may have something that is called as a parameter here
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#endif

// What the functions below are made of: an op of so many inputs and no attributes, attributes, and an op with some.
static inline clv_tensor *clv__op1(const char *name, clv_tensor *a) {
    return clv_op_call(NULL, name, &a, 1, NULL, 0);
}
static inline clv_tensor *clv__op2(const char *name, clv_tensor *a, clv_tensor *b) {
    clv_tensor *const in[] = {a, b};
    return clv_op_call(NULL, name, in, 2, NULL, 0);
}
static inline clv_tensor *clv__op3(const char *name, clv_tensor *a, clv_tensor *b, clv_tensor *c) {
    clv_tensor *const in[] = {a, b, c};
    return clv_op_call(NULL, name, in, 3, NULL, 0);
}
enum { CLV__MOST_NUMBERS = 2 * CLV_MAX_RANK };
/** A list of int. */
static inline const int64_t *clv__wide(const int *from, int n, int64_t *to) {
    for (int i = n < CLV__MOST_NUMBERS ? n : CLV__MOST_NUMBERS; from && i-- > 0;) to[i] = from[i];
    return from ? to : NULL;
}
/** Numbers of a configuration. A zero behind the first is as the first; the first is then as `kernel` has it, or `least`. Of padding a
 *  negative one behind the first is none. */
static inline clv_op_argument clv__sizes(const char *name, const int *from, int n, int least,
                                         const int *kernel, int64_t *to) {
    const clv_op_argument argument = {name, 0, to, n, NULL};
    for (int i = 0; i < n; i++) {
        const int one = i && !from[i] ? from[0] : from[i];
        to[i] = one ? one : kernel ? kernel[i && kernel[i] ? i : 0] : least;
        if (i && one < 0 && !least && !kernel) to[i] = 0;
    }
    return argument;
}
#define CLV__ARG(name, value)                                                                                \
    { name, (double)(value), NULL, 0, NULL }
#define CLV__NUMBER(parameter) CLV__ARG(#parameter, parameter)
#define CLV__LIST(name, list, n)                                                                             \
    { name, 0, list, n, NULL }
#define CLV__SHAPE(shape) CLV__LIST("shape", (shape).dims, (shape).rank)
#define CLV__THOSE(...) __VA_ARGS__
#define CLV__RETURN_OP(name, inputs, ...)                                                                    \
    do {                                                                                                     \
        clv_tensor *const in_[] = {CLV__THOSE inputs};                                                       \
        const clv_op_argument with_[] = {__VA_ARGS__};                                                       \
        return clv_op_call(NULL, name, in_, (int)(sizeof in_ / sizeof *in_), with_,                          \
                           (int)(sizeof with_ / sizeof *with_));                                             \
    } while (0)

// ---- elementwise (runtime/ops/elementwise.def) ------------------------------------------------------------
// Inputs broadcast as in NumPy: shapes are aligned at the end, a dimension of 1 is repeated; the result has
// the common shape. The gradient of an input that was repeated is summed over the repetitions.
// Errors of all of them: CLV_E_SHAPE shapes do not broadcast; CLV_E_DTYPE; CLV_E_VALUE a parameter is not a
// number. Numerics: one rounding of each operation; functions as accurate as the device's (OpenCL: exp and
// log 3 ULP; sin, cos, asin, acos, sinh, cosh, asinh, acosh 4; tan, atan, tanh, atanh 5; erf and pow 16). NaN passes through, where
// PyTorch lets it pass.

/**
 * Sum, element by element.
 *
 *     y = a + b
 *
 * a, b    any shapes  f32 | i32      of one dtype; i32 wraps around
 * result  broadcast   dtype of a
 *
 * Gradient   a, b.
 * Errors     CLV_E_SHAPE  the shapes do not broadcast;  CLV_E_DTYPE  the types differ
 */
static inline clv_tensor *clv_add(clv_tensor *a, clv_tensor *b) { return clv__op2("add", a, b); }
/** Difference `a - b`; everything else as clv_add. */
static inline clv_tensor *clv_sub(clv_tensor *a, clv_tensor *b) { return clv__op2("sub", a, b); }
/** Product `a * b`; everything else as clv_add. The gradient keeps a and b. */
static inline clv_tensor *clv_mul(clv_tensor *a, clv_tensor *b) { return clv__op2("mul", a, b); }
/** Quotient `a / b`, f32 only; everything else as clv_add. The gradient keeps b, and the result if b wants
 *  one. */
static inline clv_tensor *clv_div(clv_tensor *a, clv_tensor *b) { return clv__op2("div", a, b); }
/** What a leaves of whole times b, with the sign of a; of b 0 NaN, or 0 of i32, which is exact. Everything else as clv_add. Gradient a,
 *  and b: -dy times how often it went. Keeps a, b and the result. Source: torch.fmod. */
static inline clv_tensor *clv_fmod(clv_tensor *a, clv_tensor *b) { return clv__op2("fmod", a, b); }
/** The same with the sign of b: `a - b * floor(a / b)`. Source: torch.remainder. */
static inline clv_tensor *clv_remainder(clv_tensor *a, clv_tensor *b) { return clv__op2("remainder", a, b); }

/** `-x`, f32 or i32. Gradient x. */
static inline clv_tensor *clv_neg(clv_tensor *x) { return clv__op1("neg", x); }
/** e^x. Gradient x; keeps the result. */
static inline clv_tensor *clv_exp(clv_tensor *x) { return clv__op1("exp", x); }
/** Natural logarithm: -infinity at 0, NaN below. Gradient x; keeps x. */
static inline clv_tensor *clv_log(clv_tensor *x) { return clv__op1("log", x); }
/** e^x - 1, with the digits of a small x. Gradient x; keeps the result. */
static inline clv_tensor *clv_expm1(clv_tensor *x) { return clv__op1("expm1", x); }
/** log(1 + x), with the digits of a small x: -infinity at -1, NaN below. Gradient x; keeps x. */
static inline clv_tensor *clv_log1p(clv_tensor *x) { return clv__op1("log1p", x); }
/** Square root: NaN below 0. Gradient x (infinite at 0); keeps the result. */
static inline clv_tensor *clv_sqrt(clv_tensor *x) { return clv__op1("sqrt", x); }
/** `x * x`. Gradient x; keeps x. */
static inline clv_tensor *clv_square(clv_tensor *x) { return clv__op1("square", x); }
/** |x|. Gradient x (0 at 0); keeps x. */
static inline clv_tensor *clv_abs(clv_tensor *x) { return clv__op1("abs", x); }

/**
 * Rectifier.
 *
 *     y = x if x > 0, else 0             NaN stays NaN
 *
 * x       any shape  f32
 * result  shape of x f32
 *
 * Gradient   x: 0 where y <= 0, else dy, for NaN too. Keeps the result.
 * Source     torch.nn.functional.relu.
 */
static inline clv_tensor *clv_relu(clv_tensor *x) { return clv__op1("relu", x); }
/** Rectifier that stops at 6. Gradient x: 0 where y <= 0 or y >= 6, else dy, for NaN too (PyTorch's depends on where in a
 *  vector it stands); keeps the result. Source: torch.nn.functional.relu6. */
static inline clv_tensor *clv_relu6(clv_tensor *x) { return clv__op1("relu6", x); }
/** `x if x > 0, else x * negative_slope`. Gradient x; keeps x. Source: torch.nn.functional.leaky_relu. */
static inline clv_tensor *clv_leaky_relu(clv_tensor *x, float negative_slope) {
    CLV__RETURN_OP("leaky_relu", (x), CLV__NUMBER(negative_slope));
}
/** 1 / (1 + e^-x). Gradient x; keeps the result. */
static inline clv_tensor *clv_sigmoid(clv_tensor *x) { return clv__op1("sigmoid", x); }
/** The logarithm of sigmoid, without its loss of digits: `min(x, 0) - log(1 + e^-|x|)`. Gradient x: dy / (1 + e^x); keeps x.
 *  Source: torch.nn.functional.logsigmoid. */
static inline clv_tensor *clv_logsigmoid(clv_tensor *x) { return clv__op1("logsigmoid", x); }
/** Hyperbolic tangent. Gradient x; keeps the result. */
static inline clv_tensor *clv_tanh(clv_tensor *x) { return clv__op1("tanh", x); }

/**
 * Gaussian error linear unit.
 *
 *     y = x * P(x)                       P: probability that a standard normal number is below x, by erf
 *
 * x       any shape  f32
 * result  shape of x f32
 *
 * Gradient   x. Keeps x.
 * Source     Hendrycks, Gimpel 2016, arXiv:1606.08415, section 2; torch.nn.functional.gelu.
 */
static inline clv_tensor *clv_gelu(clv_tensor *x) { return clv__op1("gelu", x); }
/** gelu by tanh: `x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3)))`. Gradient x; keeps x. Source: as
 *  clv_gelu, approximate='tanh'. */
static inline clv_tensor *clv_gelu_tanh(clv_tensor *x) { return clv__op1("gelu_tanh", x); }
/** `x / (1 + e^-x)`. Gradient x; keeps x. Source: torch.nn.functional.silu. */
static inline clv_tensor *clv_silu(clv_tensor *x) { return clv__op1("silu", x); }
/** `x if x > 0, else alpha * (e^x - 1)`. Gradient x; keeps x. Source: torch.nn.functional.elu. */
static inline clv_tensor *clv_elu(clv_tensor *x, float alpha) {
    CLV__RETURN_OP("elu", (x), CLV__NUMBER(alpha));
}
/** elu with alpha 1.6732632, times 1.0507010. Gradient x; keeps x. Source: Klambauer et al. 2017, arXiv:1706.02515; torch.nn.functional.selu. */
static inline clv_tensor *clv_selu(clv_tensor *x) { return clv__op1("selu", x); }
/** `log(1 + e^x)`, for large x too. Gradient x; keeps x. Source: torch.nn.functional.softplus. */
static inline clv_tensor *clv_softplus(clv_tensor *x) { return clv__op1("softplus", x); }
/** `x / 6 + 1/2`, kept from 0 to 1. Gradient x: dy / 6 between -3 and 3, else 0; keeps x. Source: torch.nn.functional.hardsigmoid. */
static inline clv_tensor *clv_hardsigmoid(clv_tensor *x) { return clv__op1("hardsigmoid", x); }
/** `x * hardsigmoid(x)`. Gradient x; keeps x. Source: torch.nn.functional.hardswish. */
static inline clv_tensor *clv_hardswish(clv_tensor *x) { return clv__op1("hardswish", x); }
/** `x * tanh(softplus(x))`. Gradient x; keeps x. Source: Misra 2019, arXiv:1908.08681; torch.nn.functional.mish. */
static inline clv_tensor *clv_mish(clv_tensor *x) { return clv__op1("mish", x); }
/**
 * x where it is positive, else weight times x.
 *
 * x       [N, C, *]     f32
 * weight  [C] or [1]    f32    the slope of each channel, or of all; or any shape that broadcasts with x
 * result  as x          f32
 *
 * Gradient   x, weight. At 0 it is that of the negative side.
 * Errors     CLV_E_SHAPE;  CLV_E_DTYPE
 * Source     torch.nn.functional.prelu.
 */
static inline clv_tensor *clv_prelu(clv_tensor *x, clv_tensor *weight) {
    return clv__op2("prelu", x, weight);
}
/**
 * The first half of an axis, times the sigmoid of the second.
 *
 * x       any         f32    an even length along the axis
 * result  half of it  f32
 *
 * Gradient   x.
 * Errors     CLV_E_SHAPE  an odd length;  CLV_E_VALUE  axis;  CLV_E_DTYPE
 * Source     Dauphin et al. 2017, arXiv:1612.08083; torch.nn.functional.glu.
 */
static inline clv_tensor *clv_glu(clv_tensor *x, int axis) { CLV__RETURN_OP("glu", (x), CLV__NUMBER(axis)); }

/**
 * Keep values within limits.
 *
 *     y = smaller of max and (larger of x and min)          NaN stays NaN; min > max gives max
 *
 * x         any shape  f32
 * min, max  may be infinite
 * result    shape of x f32
 *
 * Gradient   x: dy where min <= x <= max, else 0, as PyTorch 1.13 has it; 2.15 gives 0 at the limits too. Keeps x.
 * Errors     CLV_E_VALUE  a limit is not a number
 * Source     torch.clamp.
 */
static inline clv_tensor *clv_clamp(clv_tensor *x, float min, float max) {
    CLV__RETURN_OP("clamp", (x), CLV__NUMBER(min), CLV__NUMBER(max));
}
/** nan, posinf and neginf where x is NaN or infinite; infinite themselves, posinf and neginf stand for the largest f32 and the smallest.
 *  Gradient x: 0 there. Errors: CLV_E_VALUE one of the last two is not a number. Source: torch.nan_to_num. */
static inline clv_tensor *clv_nan_to_num(clv_tensor *x, float nan, float posinf, float neginf) {
    CLV__RETURN_OP("nan_to_num", (x), CLV__NUMBER(nan), CLV__NUMBER(posinf), CLV__NUMBER(neginf));
}
/** x to a power; NaN for x < 0 unless the exponent is whole. Gradient x (0 for exponent 0); keeps x.
 *  Exponents 2 and 0.5 are clv_square and clv_sqrt. Source: torch.pow. */
static inline clv_tensor *clv_pow_scalar(clv_tensor *x, float exponent) {
    CLV__RETURN_OP("pow_scalar", (x), CLV__NUMBER(exponent));
}
/** a to the power b; NaN for a < 0 unless b is whole. Gradient a (0 where b is 0) and b (0 where a is 0); keeps a, b and the result.
 *  f32 only; everything else as clv_add. Source: torch.pow. */
static inline clv_tensor *clv_pow(clv_tensor *a, clv_tensor *b) { return clv__op2("pow", a, b); }
/** `1 / x`. Gradient x; keeps the result. */
static inline clv_tensor *clv_reciprocal(clv_tensor *x) { return clv__op1("reciprocal", x); }
/** The error function. Gradient x; keeps x. */
static inline clv_tensor *clv_erf(clv_tensor *x) { return clv__op1("erf", x); }
/** The largest whole number that is no larger than x. Gradient x: 0 everywhere. */
static inline clv_tensor *clv_floor(clv_tensor *x) { return clv__op1("floor", x); }
/** The smallest whole number that is no smaller than x. Gradient x: 0 everywhere. */
static inline clv_tensor *clv_ceil(clv_tensor *x) { return clv__op1("ceil", x); }
/** The nearest whole number, of two the even one. Gradient x: 0 everywhere. Source: torch.round. */
static inline clv_tensor *clv_round(clv_tensor *x) { return clv__op1("round", x); }
/** 1 above 0, -1 below, else 0, of NaN too. Gradient x: 0 everywhere. Source: torch.sign. */
static inline clv_tensor *clv_sign(clv_tensor *x) { return clv__op1("sign", x); }

/** Sine of an angle in radians, of any size. Gradient x; keeps x. */
static inline clv_tensor *clv_sin(clv_tensor *x) { return clv__op1("sin", x); }
/** Cosine; everything else as clv_sin. */
static inline clv_tensor *clv_cos(clv_tensor *x) { return clv__op1("cos", x); }
/** Tangent. Gradient x; keeps the result. */
static inline clv_tensor *clv_tan(clv_tensor *x) { return clv__op1("tan", x); }
/** The angle from -pi/2 to pi/2 whose sine is x; NaN outside of -1 to 1. Gradient x (infinite at the ends); keeps x. */
static inline clv_tensor *clv_asin(clv_tensor *x) { return clv__op1("asin", x); }
/** The angle from 0 to pi whose cosine is x; everything else as clv_asin. */
static inline clv_tensor *clv_acos(clv_tensor *x) { return clv__op1("acos", x); }
/** The angle from -pi/2 to pi/2 whose tangent is x. Gradient x; keeps x. */
static inline clv_tensor *clv_atan(clv_tensor *x) { return clv__op1("atan", x); }
/** The angle from -pi to pi of the point (b, a): that whose tangent is a / b. f32 only; everything else as clv_add. Gradient a, b; keeps
 *  both. Source: torch.atan2. */
static inline clv_tensor *clv_atan2(clv_tensor *a, clv_tensor *b) { return clv__op2("atan2", a, b); }
/** Hyperbolic sine, cosine, and the inverses of both and of clv_tanh: NaN where there is none, below 1 of acosh, and outside of -1 to 1
 *  of atanh. Gradient x; each keeps x. */
static inline clv_tensor *clv_sinh(clv_tensor *x) { return clv__op1("sinh", x); }
static inline clv_tensor *clv_cosh(clv_tensor *x) { return clv__op1("cosh", x); }
static inline clv_tensor *clv_asinh(clv_tensor *x) { return clv__op1("asinh", x); }
static inline clv_tensor *clv_acosh(clv_tensor *x) { return clv__op1("acosh", x); }
static inline clv_tensor *clv_atanh(clv_tensor *x) { return clv__op1("atanh", x); }
/** `x + value`. Gradient x. */
static inline clv_tensor *clv_add_scalar(clv_tensor *x, float value) {
    CLV__RETURN_OP("add_scalar", (x), CLV__NUMBER(value));
}
/** `x * value`. Gradient x. */
static inline clv_tensor *clv_mul_scalar(clv_tensor *x, float value) {
    CLV__RETURN_OP("mul_scalar", (x), CLV__NUMBER(value));
}

/**
 * Comparison: is a equal to b?
 *
 *     y = 1 if a == b, else 0            with NaN: 0
 *
 * a, b    any shapes  any dtype          the same for both
 * result  broadcast   i32
 *
 * Errors     CLV_E_SHAPE  the shapes do not broadcast;  CLV_E_DTYPE  the types differ
 */
static inline clv_tensor *clv_eq(clv_tensor *a, clv_tensor *b) { return clv__op2("eq", a, b); }
/** `a != b` (with NaN: 1); everything else as clv_eq. */
static inline clv_tensor *clv_ne(clv_tensor *a, clv_tensor *b) { return clv__op2("ne", a, b); }
/** `a < b`; everything else as clv_eq. */
static inline clv_tensor *clv_lt(clv_tensor *a, clv_tensor *b) { return clv__op2("lt", a, b); }
/** `a <= b`; everything else as clv_eq. */
static inline clv_tensor *clv_le(clv_tensor *a, clv_tensor *b) { return clv__op2("le", a, b); }
/** `a > b`; everything else as clv_eq. */
static inline clv_tensor *clv_gt(clv_tensor *a, clv_tensor *b) { return clv__op2("gt", a, b); }
/** `a >= b`; everything else as clv_eq. */
static inline clv_tensor *clv_ge(clv_tensor *a, clv_tensor *b) { return clv__op2("ge", a, b); }
/**
 * Truths: a number is true where it is not 0, as NaN is.
 *
 * a, b    any     one dtype; shapes broadcast
 * result  i32     1 or 0
 *
 * Gradient   none.
 * Errors     CLV_E_SHAPE;  CLV_E_DTYPE  the dtypes differ
 * Source     torch.logical_and, logical_or, logical_xor, logical_not.
 */
static inline clv_tensor *clv_logical_and(clv_tensor *a, clv_tensor *b) {
    return clv__op2("logical_and", a, b);
}
/** a or b. */
static inline clv_tensor *clv_logical_or(clv_tensor *a, clv_tensor *b) {
    return clv__op2("logical_or", a, b);
}
/** One of a and b. */
static inline clv_tensor *clv_logical_xor(clv_tensor *a, clv_tensor *b) {
    return clv__op2("logical_xor", a, b);
}
/** x is 0. */
static inline clv_tensor *clv_logical_not(clv_tensor *x) { return clv__op1("logical_not", x); }
/**
 * Bits of whole numbers, in two's complement.
 *
 * a, b    i32 | i8 | u8 | bool     one dtype; shapes broadcast
 * result  the same
 *
 * Gradient   none.
 * Errors     CLV_E_SHAPE;  CLV_E_DTYPE  the dtypes differ, or are of other numbers
 * Source     torch.bitwise_and, bitwise_or, bitwise_xor, bitwise_not; of bool they are those of logic.
 */
static inline clv_tensor *clv_bitwise_and(clv_tensor *a, clv_tensor *b) {
    return clv__op2("bitwise_and", a, b);
}
/** Bits of a or b. */
static inline clv_tensor *clv_bitwise_or(clv_tensor *a, clv_tensor *b) {
    return clv__op2("bitwise_or", a, b);
}
/** Bits of one of a and b. */
static inline clv_tensor *clv_bitwise_xor(clv_tensor *a, clv_tensor *b) {
    return clv__op2("bitwise_xor", a, b);
}
/** Bits that x has not. */
static inline clv_tensor *clv_bitwise_not(clv_tensor *x) { return clv__op1("bitwise_not", x); }

/**
 * The lower or the upper triangle of each matrix, zeros beside it.
 *
 *     tril: y[.., i, j] = x[.., i, j] where j - i <= diagonal, else 0         triu: where j - i >= diagonal
 *
 * x         [.., M, N]  f32 | i32
 * diagonal  0: the main one; above 0 above it
 * result    as x
 *
 * Gradient   x. Keeps M * N bytes in the session, a mask for all matrices of this size.
 * Errors     CLV_E_SHAPE  x has less than two dimensions;  CLV_E_DTYPE
 * Source     torch.tril, torch.triu
 */
static inline clv_tensor *clv_tril(clv_tensor *x, int diagonal) {
    CLV__RETURN_OP("tril", (x), CLV__NUMBER(diagonal));
}
static inline clv_tensor *clv_triu(clv_tensor *x, int diagonal) {
    CLV__RETURN_OP("triu", (x), CLV__NUMBER(diagonal));
}
/**
 * 1 at each index, 0 beside it.
 *
 *     y[.., c] = 1 where x[..] = c, else 0
 *
 * x        [..]           int
 * classes  at least 1
 * result   [.., classes]  f32       of an index that is no class: zeros
 *
 * Gradient   none
 * Errors     CLV_E_DTYPE  x is no integer;  CLV_E_VALUE  classes
 * Source     torch.nn.functional.one_hot, in f32
 */
static inline clv_tensor *clv_one_hot(clv_tensor *x, int64_t classes) {
    CLV__RETURN_OP("one_hot", (x), CLV__NUMBER(classes));
}

/**
 * Choose element by element.
 *
 *     y = a if condition != 0, else b
 *
 * condition  any shape  int | bool
 * a, b       any shapes f32 | i32        of one dtype
 * result     broadcast  dtype of a
 *
 * Gradient   a, b: what was not chosen gets 0, even where it is NaN.
 * Errors     CLV_E_SHAPE  the shapes do not broadcast;  CLV_E_DTYPE  condition is neither, or a and b differ
 */
static inline clv_tensor *clv_where(clv_tensor *condition, clv_tensor *a, clv_tensor *b) {
    return clv__op3("where", condition, a, b);
}

/**
 * Change the type. The same type gives x itself.
 *
 * x       any shape and type
 * dtype   f32, f16, bf16: rounded to nearest, infinite where too large;  integers: the fraction is cut off, values outside of
 *         the range become its nearest end (in PyTorch floats are undefined then, and integers wrap), NaN becomes 0;
 *         bool: 1 for what is not 0, NaN too
 * result  shape of x, dtype
 *
 * Gradient   x, between floats
 * Errors     CLV_E_DTYPE  dtype is NONE
 */
static inline clv_tensor *clv_cast(clv_tensor *x, clv_dtype dtype) {
    CLV__RETURN_OP("cast", (x), CLV__NUMBER(dtype));
}

/**
 * A tensor of one value.
 *
 * dtype   f32 | i32 | u8 | i8 | bool
 * shape   any
 * value   for integers a whole number in their range, for bool 0 or 1
 * result  shape, dtype
 *
 * Errors     CLV_E_DTYPE, CLV_E_SHAPE  not possible;  CLV_E_VALUE  value is not one
 */
static inline clv_tensor *clv_full(clv_graph *graph, clv_dtype dtype, clv_shape shape, float value) {
    const clv_op_argument with[] = {CLV__NUMBER(dtype), CLV__SHAPE(shape), CLV__NUMBER(value)};
    return clv_op_call(graph, "full", NULL, 0, with, 3);
}

/**
 * Numbers with equal steps: start, start + step, and so on, before end.
 *
 * dtype   f32 | i32; of i32 start and step are whole
 * result  [n]  dtype     n = ceil((end - start) / step)
 *
 * Errors  CLV_E_VALUE  step is 0 or leads away from end, or there are more than 2^24 numbers;  CLV_E_DTYPE
 * Source  torch.arange
 */
static inline clv_tensor *clv_arange(clv_graph *graph, double start, double end, double step,
                                     clv_dtype dtype) {
    const clv_op_argument with[] = {CLV__NUMBER(start), CLV__NUMBER(end), CLV__NUMBER(step),
                                    CLV__NUMBER(dtype)};
    return clv_op_call(graph, "arange", NULL, 0, with, 4);
}

// ---- random numbers (runtime/ops/random.c) ------------------------------------------------------------------
// Drawn again in each step, from the session's seed and the step, as clv_dropout's: the same numbers on every device, after a resume, and for
// a part of a batch those of its rows, if the first dimension is the batch's. Neither has a gradient.

/**
 * Numbers from `low` to below `high`, each as likely as any other.
 *
 *     y[i] = low + (high - low) * u[i]
 *
 * u[i] is word i % 4 of Philox4x32-10 with key (seed low, seed high ^ 8) and counter (i / 4, step, number of this op in the graph, 0), its
 * upper 24 bits times 2^-24.
 *
 * shape   any
 * result  shape  f32
 *
 * Errors     CLV_E_VALUE  a limit is infinite or no number;  CLV_E_SHAPE
 * Source     torch.rand, torch.Tensor.uniform_; Salmon et al. 2011 (Philox).
 */
static inline clv_tensor *clv_random_uniform(clv_graph *graph, clv_shape shape, float low, float high) {
    const clv_op_argument with[] = {CLV__SHAPE(shape), CLV__NUMBER(low), CLV__NUMBER(high)};
    return clv_op_call(graph, "random_uniform", NULL, 0, with, 3);
}
/** Normal numbers of that mean and standard deviation, at least 0: from two words each two, by Box and Muller. Good to some 1e-6, by the
 *  device's log, sin and cos. Everything else as clv_random_uniform. Source: torch.randn, torch.normal. */
static inline clv_tensor *clv_random_normal(clv_graph *graph, clv_shape shape, float mean, float std) {
    const clv_op_argument with[] = {CLV__SHAPE(shape), CLV__NUMBER(mean), CLV__NUMBER(std)};
    return clv_op_call(graph, "random_normal", NULL, 0, with, 3);
}
/** 1 with probability p, else 0: p any shape, f32, and so is the result. Errors: CLV_E_DTYPE. Source: torch.bernoulli. */
static inline clv_tensor *clv_bernoulli(clv_tensor *p) { return clv__op1("bernoulli", p); }
/**
 * Classes, each as likely as its weight says.
 *
 * weights      [C] or [N, C]  f32   at least 0, of a row not all 0; their sum is free
 * n            draws of each row
 * replacement  a class may come again; else n <= C, and of classes without weight one comes only when no other is left
 * result       [n] or [N, n]  i32
 *
 * Errors     CLV_E_SHAPE  weights has another number of dimensions, or no classes;  CLV_E_VALUE  n;  CLV_E_DTYPE
 * Source     torch.multinomial.
 */
static inline clv_tensor *clv_multinomial(clv_tensor *weights, int64_t n, bool replacement) {
    CLV__RETURN_OP("multinomial", (weights), CLV__NUMBER(n), CLV__NUMBER(replacement));
}

// ---- reductions: over `axes` (n_axes of them, negative counts from the end; n_axes 0: all) ----------------

/**
 * Sum over axes.
 *
 *     y[kept] = sum over the axes of x   0 for no elements
 *
 * x        any shape  f32
 * axes     each once, in any order
 * keepdim  the axes stay, with length 1; else they go
 * result   the other axes  f32
 *
 * Gradient   x.
 * Errors     CLV_E_VALUE  an axis is outside the rank, or named twice;  CLV_E_DTYPE
 * Numerics   sums in f32, in chunks of a fixed length joined in a fixed order: 10^6 elements are good to
 *            about 1e-6 of the sum of their magnitudes; same bits on repeat, whatever the number of threads.
 * Source     torch.sum.
 */
static inline clv_tensor *clv_sum(clv_tensor *x, CLV_COUNT(n_axes) const int *axes, int n_axes,
                                  bool keepdim) {
    int64_t wide[CLV__MOST_NUMBERS];
    CLV__RETURN_OP("sum", (x), CLV__LIST("axes", clv__wide(axes, n_axes, wide), n_axes),
                   CLV__NUMBER(keepdim));
}
/** Mean over axes: the sum divided by the number of elements, NaN for none; everything else as clv_sum. */
static inline clv_tensor *clv_mean(clv_tensor *x, CLV_COUNT(n_axes) const int *axes, int n_axes,
                                   bool keepdim) {
    int64_t wide[CLV__MOST_NUMBERS];
    CLV__RETURN_OP("mean", (x), CLV__LIST("axes", clv__wide(axes, n_axes, wide), n_axes),
                   CLV__NUMBER(keepdim));
}

/**
 * Product over axes: of no elements 1; everything else as clv_sum.
 *
 * Gradient   x: dy times the product of the others, of zeros too. Keeps x.
 * Numerics   one rounding of each product, in a fixed order.
 * Source     torch.prod.
 */
static inline clv_tensor *clv_prod(clv_tensor *x, CLV_COUNT(n_axes) const int *axes, int n_axes,
                                   bool keepdim) {
    int64_t wide[CLV__MOST_NUMBERS];
    CLV__RETURN_OP("prod", (x), CLV__LIST("axes", clv__wide(axes, n_axes, wide), n_axes),
                   CLV__NUMBER(keepdim));
}

/**
 * Largest element over axes.
 *
 *     y[kept] = largest over the axes of x                  NaN if there is one
 *
 * x, axes, keepdim, result  as clv_sum
 *
 * Gradient   x: shared evenly among the elements that are largest. Keeps x and the result.
 * Errors     CLV_E_SHAPE  of no elements;  CLV_E_VALUE  an axis is outside the rank, or named twice;
 *            CLV_E_DTYPE
 * Source     torch.amax.
 */
static inline clv_tensor *clv_max(clv_tensor *x, CLV_COUNT(n_axes) const int *axes, int n_axes,
                                  bool keepdim) {
    int64_t wide[CLV__MOST_NUMBERS];
    CLV__RETURN_OP("max", (x), CLV__LIST("axes", clv__wide(axes, n_axes, wide), n_axes),
                   CLV__NUMBER(keepdim));
}

/**
 * Position of the largest element along an axis; the first of equals, the first NaN if there is one.
 *
 * x        rank >= 1  f32
 * axis     negative counts from the end
 * keepdim  the axis stays, with length 1; else it goes
 * result   the other axes  i32
 *
 * Errors     CLV_E_SHAPE  the axis has no elements;  CLV_E_VALUE  the axis is outside the rank;  CLV_E_DTYPE
 * Source     torch.argmax.
 */
static inline clv_tensor *clv_argmax(clv_tensor *x, int axis, bool keepdim) {
    CLV__RETURN_OP("argmax", (x), CLV__NUMBER(axis), CLV__NUMBER(keepdim));
}
/** The smallest element, as clv_max of -x. Gradient x. Source: torch.amin. */
static inline clv_tensor *clv_min(clv_tensor *x, CLV_COUNT(n_axes) const int *axes, int n_axes,
                                  bool keepdim) {
    int64_t wide[CLV__MOST_NUMBERS];
    CLV__RETURN_OP("min", (x), CLV__LIST("axes", clv__wide(axes, n_axes, wide), n_axes),
                   CLV__NUMBER(keepdim));
}
/** Where it is, the first of several; as clv_argmax. No gradient. Source: torch.argmin. */
static inline clv_tensor *clv_argmin(clv_tensor *x, int axis, bool keepdim) {
    CLV__RETURN_OP("argmin", (x), CLV__NUMBER(axis), CLV__NUMBER(keepdim));
}
/**
 * Variance over axes, as clv_mean has them.
 *
 *     y = sum((x - mean)^2) / (count - correction)
 *
 * correction  1: unbiased, as PyTorch's default; 0: the mean of the squares
 *
 * Gradient   x.
 * Errors     as clv_mean
 * Numerics   in two passes, about the mean. Of no more elements than `correction` NaN or infinite.
 * Source     torch.var.
 */
static inline clv_tensor *clv_var(clv_tensor *x, CLV_COUNT(n_axes) const int *axes, int n_axes,
                                  int correction, bool keepdim) {
    int64_t wide[CLV__MOST_NUMBERS];
    CLV__RETURN_OP("var", (x), CLV__LIST("axes", clv__wide(axes, n_axes, wide), n_axes),
                   CLV__NUMBER(correction), CLV__NUMBER(keepdim));
}
/** The square root of that; its gradient where all elements are equal is no number. Source: torch.std. */
static inline clv_tensor *clv_std(clv_tensor *x, CLV_COUNT(n_axes) const int *axes, int n_axes,
                                  int correction, bool keepdim) {
    int64_t wide[CLV__MOST_NUMBERS];
    CLV__RETURN_OP("std", (x), CLV__LIST("axes", clv__wide(axes, n_axes, wide), n_axes),
                   CLV__NUMBER(correction), CLV__NUMBER(keepdim));
}
/** (sum |x|^p)^(1/p) over axes; p INFINITY or -INFINITY: the largest or smallest |x|; 0: how many are not 0. Gradient x; 0
 *  where the norm is 0, if p is above 1. Source: torch.linalg.vector_norm. */
static inline clv_tensor *clv_vector_norm(clv_tensor *x, float p, CLV_COUNT(n_axes) const int *axes,
                                          int n_axes, bool keepdim) {
    int64_t wide[CLV__MOST_NUMBERS];
    CLV__RETURN_OP("vector_norm", (x), CLV__NUMBER(p),
                   CLV__LIST("axes", clv__wide(axes, n_axes, wide), n_axes), CLV__NUMBER(keepdim));
}
/**
 * Sums along an axis of all elements up to each.
 *
 *     y[i] = x[0] + ... + x[i]        exclusive: without x[i];  reverse: from the end on, x[i] + ... + x[last]
 *
 * x       any    f32 | i32
 * axis    from -rank to rank - 1
 * result  as x
 *
 * Gradient   x: the same sum of dy from the other end; keeps nothing.
 * Errors     CLV_E_VALUE  axis;  CLV_E_DTYPE
 * Numerics   sums in f32, in an order that depends on the shape and the device only.
 * Source     torch.cumsum; exclusive and reverse as in ONNX's CumSum.
 */
static inline clv_tensor *clv_cumsum(clv_tensor *x, int axis, bool exclusive, bool reverse) {
    CLV__RETURN_OP("cumsum", (x), CLV__NUMBER(axis), CLV__NUMBER(exclusive), CLV__NUMBER(reverse));
}
/** Products along an axis of all elements up to each, everything else as clv_cumsum. Gradient x, right for zeros too; keeps x. Source:
 *  torch.cumprod; exclusive and reverse as in ONNX's CumProd. */
static inline clv_tensor *clv_cumprod(clv_tensor *x, int axis, bool exclusive, bool reverse) {
    CLV__RETURN_OP("cumprod", (x), CLV__NUMBER(axis), CLV__NUMBER(exclusive), CLV__NUMBER(reverse));
}
/**
 * The k largest elements along an axis, or the smallest, in order, and where they are.
 *
 * x        any                     f32 | i32     A NaN is larger than all else; of equal elements the first comes first
 * k        0 to the axis's length
 * axis     from -rank to rank - 1
 * largest  the largest first, else the smallest first
 * indices  not NULL: *indices gets their positions, i32, NULL if x is NULL or the op fails
 * result   as x, with k for the axis's length
 *
 * Gradient   x: each element's goes where it was.
 * Errors     CLV_E_VALUE  axis, or k outside its range;  CLV_E_DTYPE
 * Numerics   exact.
 * Source     torch.topk with sorted=True, which leaves the order of equal elements open.
 */
static inline clv_tensor *clv_topk(clv_tensor *x, int64_t k, int axis, bool largest,
                                   CLV_OR_NULL CLV_BORROWED clv_tensor **indices) {
    const clv_op_argument with[] = {CLV__NUMBER(k), CLV__NUMBER(axis), CLV__NUMBER(largest)};
    clv_tensor *y = clv_op_call(NULL, "topk", &x, 1, with, 3);
    if (indices) *indices = clv_op_output(y, 1);
    return y;
}
/**
 * All elements along an axis in order: topk of the whole axis.
 *
 * x           any     f32 | i32
 * axis        from -rank to rank - 1
 * descending  the largest first, else the smallest first
 * indices     as topk's
 * result      as x
 *
 * Gradient   x.
 * Errors     CLV_E_VALUE  axis;  CLV_E_DTYPE
 * Numerics   exact, and stable: equal elements stay in their order.
 * Source     torch.sort with stable=True.
 */
static inline clv_tensor *clv_sort(clv_tensor *x, int axis, bool descending,
                                   CLV_OR_NULL CLV_BORROWED clv_tensor **indices) {
    const clv_op_argument with[] = {CLV__NUMBER(axis), CLV__NUMBER(descending)};
    clv_tensor *y = clv_op_call(NULL, "sort", &x, 1, with, 2);
    if (indices) *indices = clv_op_output(y, 1);
    return y;
}
/**
 * The indices of clv_sort.
 *
 * x       any     f32 | i32
 * result  as x    i32
 *
 * Gradient   none.
 * Errors     as sort
 * Source     torch.argsort with stable=True.
 */
static inline clv_tensor *clv_argsort(clv_tensor *x, int axis, bool descending) {
    CLV__RETURN_OP("argsort", (x), CLV__NUMBER(axis), CLV__NUMBER(descending));
}

/**
 * Undo a broadcast: sum x over what clv_broadcast_to(y, x's shape) would repeat. The same shape gives x
 * itself.
 *
 * x       any shape  f32
 * shape   broadcasts to the shape of x
 * result  shape      f32
 *
 * Gradient   x.
 * Errors     CLV_E_SHAPE  shape does not broadcast to that of x;  CLV_E_DTYPE
 */
static inline clv_tensor *clv_sum_to(clv_tensor *x, clv_shape shape) {
    CLV__RETURN_OP("sum_to", (x), CLV__SHAPE(shape));
}

// ---- shape: f32 and i32 alike -----------------------------------------------------------------------------

/**
 * The same elements in the same order under another shape. Costs nothing: the result is the same memory.
 *
 * x       any shape
 * shape   as many elements; one dimension may be -1: as long as it must be, if the others are at least 1
 * result  shape, dtype of x
 *
 * Gradient   x.
 * Errors     CLV_E_SHAPE  the number of elements differs, two dimensions are -1, or none fits
 * Source     torch.reshape.
 */
static inline clv_tensor *clv_reshape(clv_tensor *x, clv_shape shape) {
    CLV__RETURN_OP("reshape", (x), CLV__SHAPE(shape));
}
/** The same values, through which no gradient flows back; x itself keeps its own. Costs nothing, as clv_reshape. See also
 *  clv_requires_grad. Source: torch.Tensor.detach. */
static inline clv_tensor *clv_detach(clv_tensor *x) { return clv__op1("detach", x); }
/** Join the axes from start_axis on to one, as torch.flatten; a reshape. Errors: CLV_E_VALUE outside the
 *  rank. */
static inline clv_tensor *clv_flatten(clv_tensor *x, int start_axis) {
    CLV__RETURN_OP("flatten", (x), CLV__NUMBER(start_axis));
}

/** Exchange two axes; a permute. Errors: CLV_E_VALUE outside the rank. */
static inline clv_tensor *clv_transpose(clv_tensor *x, int axis0, int axis1) {
    CLV__RETURN_OP("transpose", (x), CLV__NUMBER(axis0), CLV__NUMBER(axis1));
}
/**
 * Put the axes into another order; the elements are copied.
 *
 *     result's axis d is x's axis axes[d]
 *
 * x       any shape
 * axes    each axis of x once, negative counts from the end; n_axes is the rank
 * result  dtype of x
 *
 * Gradient   x.
 * Errors     CLV_E_VALUE  an axis is outside the rank, missing, or named twice
 * Source     torch.permute.
 */
static inline clv_tensor *clv_permute(clv_tensor *x, CLV_COUNT(n_axes) const int *axes, int n_axes) {
    int64_t wide[CLV__MOST_NUMBERS];
    CLV__RETURN_OP("permute", (x), CLV__LIST("axes", clv__wide(axes, n_axes, wide), n_axes));
}

/**
 * Repeat x to a shape: aligned at the end, dimensions of 1 or none are repeated. The same shape gives x
 * itself. Ops of two inputs broadcast by themselves, without the copy that this makes.
 *
 * x       broadcasts to shape
 * result  shape, dtype of x
 *
 * Gradient   x.
 * Errors     CLV_E_SHAPE  x does not broadcast to shape
 */
static inline clv_tensor *clv_broadcast_to(clv_tensor *x, clv_shape shape) {
    CLV__RETURN_OP("broadcast_to", (x), CLV__SHAPE(shape));
}

/**
 * Part of an axis.
 *
 *     result[..., i, ...] = x[..., start + i, ...]          0 <= i < length
 *
 * x              rank >= 1
 * axis           negative counts from the end
 * start, length  inside the axis; length 0 is fine
 * result         x's shape with `length` there, dtype of x
 *
 * Gradient   x: 0 outside the part.
 * Errors     CLV_E_VALUE  the part is not inside, or the axis is outside the rank
 * Source     torch.narrow.
 */
static inline clv_tensor *clv_slice(clv_tensor *x, int axis, int64_t start, int64_t length) {
    CLV__RETURN_OP("slice", (x), CLV__NUMBER(axis), CLV__NUMBER(start), CLV__NUMBER(length));
}

/**
 * Tensors one after another along an axis.
 *
 * inputs  n >= 1 of them, of one dtype and equal shapes but for the axis; n < 1 gives NULL
 * axis    negative counts from the end
 * result  the lengths along the axis added, dtype of the inputs
 *
 * Gradient   all inputs.
 * Errors     CLV_E_SHAPE  shapes differ elsewhere;  CLV_E_DTYPE  types differ;  CLV_E_VALUE  axis outside the
 *            rank
 * Source     torch.cat.
 */
static inline clv_tensor *clv_concat(CLV_COUNT(n) clv_tensor *const *inputs, int n, int axis) {
    const clv_op_argument with[] = {CLV__NUMBER(axis)};
    return clv_op_call(NULL, "concat", inputs, n, with, 1);
}
/** What stands where clv_pad puts elements. */
typedef enum clv_pad_mode {
    CLV_PAD_CONSTANT, /**< a value */
    CLV_PAD_REFLECT, /**< x from the second on, as in a mirror that stands on the first; less than x is long */
    CLV_PAD_REPLICATE, /**< the first, the last */
    CLV_PAD_CIRCULAR   /**< x again; at most as long as x */
} clv_pad_mode;

/**
 * Elements around x.
 *
 * x        any shape, any type
 * padding  how many before and behind the last dimension, then those of the one before it, as PyTorch has it; below 0 elements of x
 *          are taken away
 * n        numbers of padding: two for each of the last dimensions
 * value    of CLV_PAD_CONSTANT
 *
 * Gradient   x.
 * Errors     CLV_E_VALUE  n is odd or for too many dimensions, or the mode has no room;  CLV_E_DTYPE
 * Source     torch.nn.functional.pad.
 */
static inline clv_tensor *clv_pad(clv_tensor *x, CLV_COUNT(n) const int *padding, int n, clv_pad_mode mode,
                                  float value) {
    int64_t wide[CLV__MOST_NUMBERS];
    CLV__RETURN_OP("pad", (x), CLV__LIST("padding", clv__wide(padding, n, wide), n), CLV__NUMBER(mode),
                   CLV__NUMBER(value));
}
/** x again and again along its last n dimensions, repeats[i] times; with more numbers than it has, dimensions of 1 come before. Gradient x.
 *  Errors: CLV_E_VALUE below 0, or too many. Source: torch.tile. */
static inline clv_tensor *clv_tile(clv_tensor *x, CLV_COUNT(n) const int *repeats, int n) {
    int64_t wide[CLV__MOST_NUMBERS];
    CLV__RETURN_OP("tile", (x), CLV__LIST("repeats", clv__wide(repeats, n, wide), n));
}
/** Join tensors of one shape along a new axis, -1: behind the others. Gradient all. Errors: as clv_concat, or another shape. Source:
 *  torch.stack. */
static inline clv_tensor *clv_stack(CLV_COUNT(n) clv_tensor *const *inputs, int n, int axis) {
    const clv_op_argument with[] = {CLV__NUMBER(axis)};
    return clv_op_call(NULL, "stack", inputs, n, with, 1);
}
/** The elements along an axis from the last to the first. Gradient x. Errors: CLV_E_VALUE outside the rank. Source: torch.flip. */
static inline clv_tensor *clv_flip(clv_tensor *x, int axis) {
    CLV__RETURN_OP("flip", (x), CLV__NUMBER(axis));
}
/** The elements along an axis `shift` places further; what is moved past the end comes first. Gradient x. Errors: CLV_E_VALUE outside the
 *  rank. Source: torch.roll. */
static inline clv_tensor *clv_roll(clv_tensor *x, int64_t shift, int axis) {
    CLV__RETURN_OP("roll", (x), CLV__NUMBER(shift), CLV__NUMBER(axis));
}
/** [N, C r r, H, W] as [N, C, H r, W r], r being `factor`. Gradient x. Errors: CLV_E_SHAPE no such x; CLV_E_VALUE factor. Source:
 *  torch.nn.functional.pixel_shuffle; Shi et al. 2016, arXiv:1609.05158. */
static inline clv_tensor *clv_pixel_shuffle(clv_tensor *x, int64_t factor) {
    CLV__RETURN_OP("pixel_shuffle", (x), CLV__NUMBER(factor));
}
/** [N, C, H r, W r] as [N, C r r, H, W]: the other way round. Source: torch.nn.functional.pixel_unshuffle. */
static inline clv_tensor *clv_pixel_unshuffle(clv_tensor *x, int64_t factor) {
    CLV__RETURN_OP("pixel_unshuffle", (x), CLV__NUMBER(factor));
}

/**
 * The same values on a device, as PyTorch's tensor.to(device): a copy between devices if x is elsewhere, nothing if not.
 *
 * x       any shape, f32 | i32
 * device  a device spec, `cpu:1`
 * result  shape and dtype of x      what follows from it is computed there too, unless it is placed otherwise
 *
 * Gradient   x, carried back.
 * Errors     (when planned) CLV_E_NOT_FOUND no such device; CLV_E_UNSUPPORTED it cannot be used
 * Source     torch.Tensor.to
 */
static inline clv_tensor *clv_to(clv_tensor *x, const char *device) {
    const clv_op_argument with[] = {{"device", 0, NULL, 0, device}};
    return clv_op_call(NULL, "to", &x, 1, with, 1);
}

// ---- matmul -----------------------------------------------------------------------------------------------

/**
 * Matrix product over the last two dimensions, the others being a batch.
 *
 *     c[...][m][n] = sum_k a[...][m][k] * b[...][k][n]
 *
 * a       [..., M, K] f32     a vector [K] is taken as one row, and the result loses that dimension
 * b       [..., K, N] f32     a vector [K] is taken as one column, likewise
 * result  [..., M, N] f32     batch dimensions broadcast as in NumPy
 *
 * Gradient   a, b.
 * Errors     CLV_E_SHAPE  K differs, the batches do not broadcast, or a tensor has no dimension;  CLV_E_DTYPE
 * Numerics   sums in f32, their order depends on the shapes and the device only.
 * Source     torch.matmul.
 */
static inline clv_tensor *clv_matmul(clv_tensor *a, clv_tensor *b) { return clv__op2("matmul", a, b); }
/** The same with the last two dimensions of a or of b exchanged first, without a copy. Vectors are not
 *  transposed. */
static inline clv_tensor *clv_matmul_t(clv_tensor *a, bool transpose_a, clv_tensor *b, bool transpose_b) {
    CLV__RETURN_OP("matmul_t", (a, b), CLV__NUMBER(transpose_a), CLV__NUMBER(transpose_b));
}
/**
 * A fully connected layer.
 *
 *     y = x weight^T + bias
 *
 * x       [..., K] f32
 * weight  [N, K]   f32
 * bias    [N]      f32        NULL means none
 * result  [..., N] f32
 *
 * Gradient   x, weight, bias.
 * Errors     CLV_E_SHAPE  K or N differs;  CLV_E_DTYPE
 * Source     torch.nn.functional.linear.
 */
static inline clv_tensor *clv_linear(clv_tensor *x, clv_tensor *weight, CLV_OR_NULL clv_tensor *bias) {
    return clv__op3("linear", x, weight, bias);
}

// ---- convolution and pooling, NCHW ------------------------------------------------------------------------

// Pairs of numbers, here and in nn.h: [0] is H, [1] is W; one number is for both: [1] zero means the same as [0]. Padding
// along H alone is {p, -1}: a negative [1] means none. Three numbers are of D, H and W, and those behind [0] likewise.

/** Zero means the default: stride 1, padding 0, dilation 1, groups 1. */
typedef struct clv_conv2d_config {
    int stride[2], padding[2], dilation[2], groups;
    CLV_RESERVED(4);
} clv_conv2d_config;

/** The same along one dimension. */
typedef struct clv_conv1d_config {
    int stride, padding, dilation, groups;
    CLV_RESERVED(4);
} clv_conv1d_config;

/** The same along three. */
typedef struct clv_conv3d_config {
    int stride[3], padding[3], dilation[3], groups;
    CLV_RESERVED(4);
} clv_conv3d_config;

/** Zero means the default: stride 1, padding 0, output_padding 0, dilation 1, groups 1. */
typedef struct clv_conv_transpose2d_config {
    int stride[2], padding[2];
    int output_padding[2]; /**< further rows and columns behind; a pair as padding is */
    int dilation[2], groups;
    CLV_RESERVED(4);
} clv_conv_transpose2d_config;

/** The same along one dimension. */
typedef struct clv_conv_transpose1d_config {
    int stride, padding, output_padding, dilation, groups;
    CLV_RESERVED(4);
} clv_conv_transpose1d_config;

/** The same along three. */
typedef struct clv_conv_transpose3d_config {
    int stride[3], padding[3], output_padding[3], dilation[3], groups;
    CLV_RESERVED(4);
} clv_conv_transpose3d_config;

/** Zero means the default: stride = kernel, padding 0, dilation 1. */
typedef struct clv_pool2d_config {
    int kernel[2], stride[2], padding[2], dilation[2];
    bool ceil_mode;
    /** avg_pool2d: divide by the elements inside only (PyTorch: count_include_pad=False) */
    bool exclude_padding;
    CLV_RESERVED(4);
} clv_pool2d_config;

/** The same along one dimension. */
typedef struct clv_pool1d_config {
    int kernel, stride, padding, dilation;
    bool ceil_mode;
    bool exclude_padding; /**< as in clv_pool2d_config */
    CLV_RESERVED(4);
} clv_pool1d_config;

/** The same along three. */
typedef struct clv_pool3d_config {
    int kernel[3], stride[3], padding[3], dilation[3];
    bool ceil_mode;
    bool exclude_padding; /**< as in clv_pool2d_config */
    CLV_RESERVED(4);
} clv_pool3d_config;

/**
 * Two-dimensional convolution (a cross-correlation: the kernel is not flipped).
 *
 *     y[n][o][i][j] = bias[o] + sum_{c,r,s} x[n][c][i*stride - padding + r*dilation][...] * weight[o][c][r][s]
 *
 * x       [N, C, H, W]           f32     0 outside the image
 * weight  [O, C/groups, KH, KW]  f32     output channels of group g see the input channels of group g
 * bias    [O]                    f32     NULL means none
 * result  [N, O, OH, OW]         f32     OH = (H + 2*padding - dilation*(KH - 1) - 1) / stride + 1, OW likewise
 *
 * Gradient   x, weight, bias.
 * Errors     CLV_E_SHAPE  channels differ, groups does not divide them, or the kernel is larger than the
 *            padded image;  CLV_E_VALUE  a negative padding [0], stride, dilation or groups;  CLV_E_DTYPE
 * Numerics   sums in f32, their order depends on the shapes and the device only. Padding is zeros that are multiplied: where it
 *            meets an infinite weight the result is NaN. Two kinds of variants are free there: `images` leaves padding out and
 *            gives the sum without it, and `winograd`, `winograd_lanes` and `winograd_fused` NaN in the whole channel. So are gradients.
 *            (PyTorch's differ likewise: NaN with its own kernels, the sum without padding with oneDNN's.)
 * Source     torch.nn.functional.conv2d.
 */
static inline clv_tensor *clv_conv2d(clv_tensor *x, clv_tensor *weight, CLV_OR_NULL clv_tensor *bias,
                                     CLV_OR_NULL const clv_conv2d_config *config) {
    int64_t at[3][2];
    if (!config) return clv__op3("conv2d", x, weight, bias);
    CLV__RETURN_OP("conv2d", (x, weight, bias), clv__sizes("stride", config->stride, 2, 1, NULL, at[0]),
                   clv__sizes("padding", config->padding, 2, 0, NULL, at[1]),
                   clv__sizes("dilation", config->dilation, 2, 1, NULL, at[2]),
                   CLV__ARG("groups", config->groups ? config->groups : 1));
}
/**
 * Convolution along one dimension: conv2d of images of one row.
 *
 * x       [N, C, L]         f32
 * weight  [O, C/groups, K]  f32
 * bias    [O]               f32     NULL means none
 * result  [N, O, OL]        f32     OL = (L + 2*padding - dilation*(K - 1) - 1) / stride + 1
 *
 * Gradient   x, weight, bias.
 * Errors     CLV_E_SHAPE  x or weight has not three dimensions;  as conv2d
 * Source     torch.nn.functional.conv1d.
 */
static inline clv_tensor *clv_conv1d(clv_tensor *x, clv_tensor *weight, CLV_OR_NULL clv_tensor *bias,
                                     CLV_OR_NULL const clv_conv1d_config *config) {
    if (!config) return clv__op3("conv1d", x, weight, bias);
    CLV__RETURN_OP("conv1d", (x, weight, bias), CLV__ARG("stride", config->stride ? config->stride : 1),
                   CLV__ARG("padding", config->padding),
                   CLV__ARG("dilation", config->dilation ? config->dilation : 1),
                   CLV__ARG("groups", config->groups ? config->groups : 1));
}
/**
 * Transposed convolution: what conv2d's gradient makes of its result's, so its sizes turned round.
 *
 *     y[n][o][i*stride - padding + r*dilation][...] = bias[o] + sum of x[n][c][i][...] * weight[c][o][r][s] over c, and over all
 *                                                     i and r (likewise of columns) that meet there
 *
 * x       [N, C, H, W]           f32
 * weight  [C, O/groups, KH, KW]  f32     output channels of group g see the input channels of group g
 * bias    [O]                    f32     NULL means none
 * result  [N, O, OH, OW]         f32     OH = (H - 1)*stride - 2*padding + dilation*(KH - 1) + output_padding + 1, OW likewise
 *
 * Gradient   x, weight, bias.
 * Errors     CLV_E_SHAPE  channels differ, groups does not divide them, x or the kernel has no rows, or padding leaves none;
 *            CLV_E_VALUE  a negative padding [0], stride, dilation or groups, or an output_padding that is below neither stride nor
 *            dilation;  CLV_E_DTYPE
 * Numerics   sums in f32, their order depends on the shapes and the device only.
 * Source     torch.nn.functional.conv_transpose2d.
 */
static inline clv_tensor *clv_conv_transpose2d(clv_tensor *x, clv_tensor *weight,
                                               CLV_OR_NULL clv_tensor *bias,
                                               CLV_OR_NULL const clv_conv_transpose2d_config *config) {
    int64_t at[4][2];
    if (!config) return clv__op3("conv_transpose2d", x, weight, bias);
    CLV__RETURN_OP("conv_transpose2d", (x, weight, bias),
                   clv__sizes("stride", config->stride, 2, 1, NULL, at[0]),
                   clv__sizes("padding", config->padding, 2, 0, NULL, at[1]),
                   clv__sizes("output_padding", config->output_padding, 2, 0, NULL, at[2]),
                   clv__sizes("dilation", config->dilation, 2, 1, NULL, at[3]),
                   CLV__ARG("groups", config->groups ? config->groups : 1));
}
/**
 * The same along one dimension.
 *
 * x       [N, C, L]         f32
 * weight  [C, O/groups, K]  f32
 * bias    [O]               f32     NULL means none
 * result  [N, O, OL]        f32     OL = (L - 1)*stride - 2*padding + dilation*(K - 1) + output_padding + 1
 *
 * Gradient   x, weight, bias.
 * Errors     CLV_E_SHAPE  x or weight has not three dimensions;  as conv_transpose2d
 * Source     torch.nn.functional.conv_transpose1d.
 */
static inline clv_tensor *clv_conv_transpose1d(clv_tensor *x, clv_tensor *weight,
                                               CLV_OR_NULL clv_tensor *bias,
                                               CLV_OR_NULL const clv_conv_transpose1d_config *config) {
    if (!config) return clv__op3("conv_transpose1d", x, weight, bias);
    CLV__RETURN_OP("conv_transpose1d", (x, weight, bias),
                   CLV__ARG("stride", config->stride ? config->stride : 1),
                   CLV__ARG("padding", config->padding), CLV__ARG("output_padding", config->output_padding),
                   CLV__ARG("dilation", config->dilation ? config->dilation : 1),
                   CLV__ARG("groups", config->groups ? config->groups : 1));
}
/**
 * Three-dimensional convolution (a cross-correlation).
 *
 * x       [N, C, D, H, W]            f32     0 outside
 * weight  [O, C/groups, KD, KH, KW]  f32     output channels of group g see the input channels of group g
 * bias    [O]                        f32     NULL means none
 * result  [N, O, OD, OH, OW]         f32     OD = (D + 2*padding - dilation*(KD - 1) - 1) / stride + 1, OH and OW likewise
 *
 * Gradient   x, weight, bias.
 * Errors     as conv2d
 * Numerics   as conv2d
 * Source     torch.nn.functional.conv3d.
 */
static inline clv_tensor *clv_conv3d(clv_tensor *x, clv_tensor *weight, CLV_OR_NULL clv_tensor *bias,
                                     CLV_OR_NULL const clv_conv3d_config *config) {
    int64_t at[3][3];
    if (!config) return clv__op3("conv3d", x, weight, bias);
    CLV__RETURN_OP("conv3d", (x, weight, bias), clv__sizes("stride", config->stride, 3, 1, NULL, at[0]),
                   clv__sizes("padding", config->padding, 3, 0, NULL, at[1]),
                   clv__sizes("dilation", config->dilation, 3, 1, NULL, at[2]),
                   CLV__ARG("groups", config->groups ? config->groups : 1));
}
/**
 * Transposed convolution along three dimensions.
 *
 * x       [N, C, D, H, W]            f32
 * weight  [C, O/groups, KD, KH, KW]  f32     output channels of group g see the input channels of group g
 * bias    [O]                        f32     NULL means none
 * result  [N, O, OD, OH, OW]         f32     sizes as conv_transpose2d
 *
 * Gradient   x, weight, bias.
 * Errors     as conv_transpose2d
 * Source     torch.nn.functional.conv_transpose3d.
 */
static inline clv_tensor *clv_conv_transpose3d(clv_tensor *x, clv_tensor *weight,
                                               CLV_OR_NULL clv_tensor *bias,
                                               CLV_OR_NULL const clv_conv_transpose3d_config *config) {
    int64_t at[4][3];
    if (!config) return clv__op3("conv_transpose3d", x, weight, bias);
    CLV__RETURN_OP("conv_transpose3d", (x, weight, bias),
                   clv__sizes("stride", config->stride, 3, 1, NULL, at[0]),
                   clv__sizes("padding", config->padding, 3, 0, NULL, at[1]),
                   clv__sizes("output_padding", config->output_padding, 3, 0, NULL, at[2]),
                   clv__sizes("dilation", config->dilation, 3, 1, NULL, at[3]),
                   CLV__ARG("groups", config->groups ? config->groups : 1));
}
/**
 * Largest element of each window.
 *
 *     y[n][c][i][j] = max_{r,s} x[n][c][i*stride - padding + r*dilation][j*stride - padding + s*dilation]
 *
 * x       [N, C, H, W]    f32     outside the image there is nothing (-infinity)
 * config  kernel >= 1, at most about 32,000 elements (178 x 178), padding at most half of it; exclude_padding is not
 *         looked at
 * result  [N, C, OH, OW]  f32     OH = (H + 2*padding - dilation*(kernel - 1) - 1) / stride + 1, OW likewise;
 *                                 rounded down, or up in ceil_mode, where a window must still begin inside the
 *                                 image or the padding before it
 *
 * Gradient   x: all of a window's goes to its first largest element. Finds it again in x; keeps no indices.
 * Errors     CLV_E_SHAPE  x is not [N,C,H,W], or no window fits;  CLV_E_VALUE  a kernel, stride, padding or
 *            dilation outside its range, or no config;  CLV_E_DTYPE
 * Numerics   exact. A NaN in a window is its largest element.
 * Source     torch.nn.MaxPool2d.
 */
static inline clv_tensor *clv_max_pool2d(clv_tensor *x, const clv_pool2d_config *config) {
    int64_t at[4][2];
    if (!config) return clv__op1("max_pool2d", x); // which misses a kernel
    CLV__RETURN_OP("max_pool2d", (x), clv__sizes("kernel", config->kernel, 2, 0, NULL, at[0]),
                   clv__sizes("stride", config->stride, 2, 0, config->kernel, at[1]),
                   clv__sizes("padding", config->padding, 2, 0, NULL, at[2]),
                   clv__sizes("dilation", config->dilation, 2, 1, NULL, at[3]),
                   CLV__ARG("ceil_mode", config->ceil_mode));
}
/**
 * Mean of each window.
 *
 *     y[n][c][i][j] = sum_{r,s} x[n][c][i*stride - padding + r][j*stride - padding + s] / count
 *
 * x       [N, C, H, W]    f32     0 in the padding
 * config  as max_pool2d; dilation must be 1 (or 0, the default)
 * result  [N, C, OH, OW]  f32     sizes as max_pool2d
 *
 * count is the number of the window's elements inside the padded image, or with exclude_padding inside the image;
 * what sticks out of the padding in ceil_mode never counts.
 *
 * Gradient   x; keeps nothing.
 * Errors     as max_pool2d;  CLV_E_NOT_FOUND  another dilation
 * Numerics   sums in f32, in a fixed order.
 * Source     torch.nn.AvgPool2d.
 */
static inline clv_tensor *clv_avg_pool2d(clv_tensor *x, const clv_pool2d_config *config) {
    int64_t at[3][2];
    if (!config) return clv__op1("avg_pool2d", x); // which misses a kernel
    if (config->dilation[0] / 2 || config->dilation[1] / 2)
        CLV__RETURN_OP("avg_pool2d", (x), clv__sizes("kernel", config->kernel, 2, 0, NULL, at[0]),
                       CLV__ARG("dilation", 2)); // it has none
    CLV__RETURN_OP("avg_pool2d", (x), clv__sizes("kernel", config->kernel, 2, 0, NULL, at[0]),
                   clv__sizes("stride", config->stride, 2, 0, config->kernel, at[1]),
                   clv__sizes("padding", config->padding, 2, 0, NULL, at[2]),
                   CLV__ARG("ceil_mode", config->ceil_mode),
                   CLV__ARG("exclude_padding", config->exclude_padding));
}
/**
 * Largest element, and mean, of each window along one dimension or three: by max_pool2d and avg_pool2d, of three dimensions along H and W and
 * then along D.
 *
 * x       [N, C, L], [N, C, D, H, W]  f32
 * config  as max_pool2d, and avg_pool2d
 * result  as many dimensions, sizes as there
 *
 * Gradient   x: as there. Of several equal largest elements the first one has it all.
 * Errors     CLV_E_SHAPE  x has not as many dimensions;  as there
 * Numerics   a mean in three dimensions is the mean of rounded means.
 * Source     torch.nn.MaxPool1d, AvgPool1d, MaxPool3d, AvgPool3d.
 */
static inline clv_tensor *clv_max_pool1d(clv_tensor *x, const clv_pool1d_config *config) {
    if (!config) return clv__op1("max_pool1d", x); // which misses a kernel
    CLV__RETURN_OP("max_pool1d", (x), CLV__ARG("kernel", config->kernel),
                   CLV__ARG("stride", config->stride ? config->stride : config->kernel),
                   CLV__ARG("padding", config->padding),
                   CLV__ARG("dilation", config->dilation ? config->dilation : 1),
                   CLV__ARG("ceil_mode", config->ceil_mode));
}
/** The mean along one. */
static inline clv_tensor *clv_avg_pool1d(clv_tensor *x, const clv_pool1d_config *config) {
    if (!config) return clv__op1("avg_pool1d", x); // which misses a kernel
    if (config->dilation / 2)
        CLV__RETURN_OP("avg_pool1d", (x), CLV__ARG("kernel", config->kernel),
                       CLV__ARG("dilation", 2)); // it has none
    CLV__RETURN_OP("avg_pool1d", (x), CLV__ARG("kernel", config->kernel),
                   CLV__ARG("stride", config->stride ? config->stride : config->kernel),
                   CLV__ARG("padding", config->padding), CLV__ARG("ceil_mode", config->ceil_mode),
                   CLV__ARG("exclude_padding", config->exclude_padding));
}
/** The largest along three. */
static inline clv_tensor *clv_max_pool3d(clv_tensor *x, const clv_pool3d_config *config) {
    int64_t at[4][3];
    if (!config) return clv__op1("max_pool3d", x); // which misses a kernel
    CLV__RETURN_OP("max_pool3d", (x), clv__sizes("kernel", config->kernel, 3, 0, NULL, at[0]),
                   clv__sizes("stride", config->stride, 3, 0, config->kernel, at[1]),
                   clv__sizes("padding", config->padding, 3, 0, NULL, at[2]),
                   clv__sizes("dilation", config->dilation, 3, 1, NULL, at[3]),
                   CLV__ARG("ceil_mode", config->ceil_mode));
}
/** The mean along three. */
static inline clv_tensor *clv_avg_pool3d(clv_tensor *x, const clv_pool3d_config *config) {
    int64_t at[3][3];
    if (!config) return clv__op1("avg_pool3d", x); // which misses a kernel
    if (config->dilation[0] / 2 || config->dilation[1] / 2 || config->dilation[2] / 2)
        CLV__RETURN_OP("avg_pool3d", (x), clv__sizes("kernel", config->kernel, 3, 0, NULL, at[0]),
                       CLV__ARG("dilation", 2)); // it has none
    CLV__RETURN_OP("avg_pool3d", (x), clv__sizes("kernel", config->kernel, 3, 0, NULL, at[0]),
                   clv__sizes("stride", config->stride, 3, 0, config->kernel, at[1]),
                   clv__sizes("padding", config->padding, 3, 0, NULL, at[2]),
                   CLV__ARG("ceil_mode", config->ceil_mode),
                   CLV__ARG("exclude_padding", config->exclude_padding));
}
/**
 * Mean over H and W: clv_mean(x, {2, 3}, 2, true).
 *
 * x       [N, C, H, W]  f32
 * result  [N, C, 1, 1]  f32
 *
 * Gradient   x; keeps nothing.
 * Errors     CLV_E_SHAPE  x is not [N,C,H,W]
 * Source     torch.nn.AdaptiveAvgPool2d(1).
 */
static inline clv_tensor *clv_global_avg_pool2d(clv_tensor *x) { return clv__op1("global_avg_pool2d", x); }

/**
 * Mean of windows that are chosen so that the result has the wanted size; they may overlap, or be repeated.
 *
 *     y[n][c][i][j] = mean of x[n][c][floor(i*H/OH) .. ceil((i+1)*H/OH) - 1][likewise]
 *
 * x       [N, C, H, W]    f32
 * OH, OW  >= 1
 * result  [N, C, OH, OW]  f32     x itself if it has that size; avg_pool2d where OH divides H and OW divides W
 *
 * Gradient   x; keeps nothing.
 * Errors     CLV_E_SHAPE  x is not [N,C,H,W], or H or W is 0;  CLV_E_VALUE  OH or OW below 1;  CLV_E_DTYPE
 * Numerics   sums in f32, along H and then along W, in a fixed order.
 * Source     torch.nn.AdaptiveAvgPool2d.
 */
static inline clv_tensor *clv_adaptive_avg_pool2d(clv_tensor *x, int64_t OH, int64_t OW) {
    CLV__RETURN_OP("adaptive_avg_pool2d", (x), CLV__NUMBER(OH), CLV__NUMBER(OW));
}
/** The largest element of such windows, [N, C, H, W] to [N, C, OH, OW]: max_pool2d, with each element repeated in every window it is in.
 *  Gradient x: to the first largest one. Errors: as clv_adaptive_avg_pool2d. Source: torch.nn.AdaptiveMaxPool2d. */
static inline clv_tensor *clv_adaptive_max_pool2d(clv_tensor *x, int64_t OH, int64_t OW) {
    CLV__RETURN_OP("adaptive_max_pool2d", (x), CLV__NUMBER(OH), CLV__NUMBER(OW));
}
/** The same along one dimension, [N, C, L] to [N, C, OL]. Source: torch.nn.AdaptiveMaxPool1d. */
static inline clv_tensor *clv_adaptive_max_pool1d(clv_tensor *x, int64_t OL) {
    CLV__RETURN_OP("adaptive_max_pool1d", (x), CLV__NUMBER(OL));
}

// ---- normalisation, probability, loss ---------------------------------------------------------------------

/**
 * Exponentials along an axis, scaled to a sum of one.
 *
 *     y[d] = exp(x[d] - max(x)) / sum_e exp(x[e] - max(x))
 *
 * x       any shape of rank >= 1  f32     -infinity is legal and gives 0; +infinity, and a row of nothing but
 *                                         -infinity, give NaN
 * axis    counts from the end if negative
 * result  shape of x              f32
 *
 * Gradient   x: y * (dy - sum(dy * y)); keeps y, not x.
 * Errors     CLV_E_VALUE  axis outside the rank;  CLV_E_DTYPE
 * Numerics   the maximum is subtracted first; sums in f32, in a fixed order.
 * Source     torch.softmax.
 */
static inline clv_tensor *clv_softmax(clv_tensor *x, int axis) {
    CLV__RETURN_OP("softmax", (x), CLV__NUMBER(axis));
}
/**
 * The logarithm of softmax, without its loss of digits.
 *
 *     y[d] = x[d] - max(x) - log(sum_e exp(x[e] - max(x)))
 *
 * x, axis, result, errors and infinities as clv_softmax; -infinity gives -infinity.
 *
 * Gradient   x: dy - exp(y) * sum(dy); keeps y, not x.
 * Source     torch.log_softmax.
 */
static inline clv_tensor *clv_log_softmax(clv_tensor *x, int axis) {
    CLV__RETURN_OP("log_softmax", (x), CLV__NUMBER(axis));
}
/**
 * Mean cross entropy between softmax(logits) and the classes that are right.
 *
 *     loss = mean_r -log_softmax(logits[r])[labels[r]]
 *
 * logits  [N, C] or [N, C, ...]  f32
 * labels  [N] or [N, ...]        int     0 <= label < C. Values are not known when building: a label outside
 *                                        gives a loss of NaN and NaN for its row of the gradient, and reads
 *                                        nothing it should not
 * result  []                     f32     of no rows: NaN
 *
 * Gradient   logits: (softmax(logits) - one_hot(labels)) * dy / rows. Keeps logits, labels and two f32 for each row.
 * Errors     CLV_E_SHAPE  logits of rank below 2 or without classes, labels of another shape;  CLV_E_DTYPE
 * Numerics   the maximum is subtracted first; the mean is a tree of fixed shape.
 * Source     torch.nn.CrossEntropyLoss.
 */
static inline clv_tensor *clv_cross_entropy(clv_tensor *logits, clv_tensor *labels) {
    return clv__op2("cross_entropy", logits, labels);
}
/**
 * The same with a weight for each row, over the number of rows: mean_r weight[r] * -log_softmax(logits[r])[labels[r]]. A row of weight 0
 * counts nothing, in loss and gradient, whatever its label. clv_nn_label_weights makes weights of those of classes.
 *
 * weight  of the shape of labels  f32     NULL: clv_cross_entropy
 *
 * Gradient   logits; none to the weight.
 * Errors     CLV_E_SHAPE  weight has another shape than labels;  as clv_cross_entropy
 */
static inline clv_tensor *clv_cross_entropy_weighted(clv_tensor *logits, clv_tensor *labels,
                                                     CLV_OR_NULL clv_tensor *weight) {
    return clv__op3("cross_entropy_weighted", logits, labels, weight);
}
/**
 * Mean squared error.
 *
 *     loss = mean_i (x[i] - target[i])^2
 *
 * x       any shape   f32
 * target  shape of x  f32     nothing is broadcast
 * result  []          f32     of nothing: NaN
 *
 * Gradient   x, target: +-2 * (x - target) * dy / numel(x). Keeps both.
 * Errors     CLV_E_SHAPE  the shapes differ;  CLV_E_DTYPE
 * Numerics   the mean is a tree of fixed shape.
 * Source     torch.nn.MSELoss.
 */
static inline clv_tensor *clv_mse_loss(clv_tensor *x, clv_tensor *target) {
    return clv__op2("mse_loss", x, target);
}

/** What becomes of a loss's elements. */
typedef enum clv_reduction {
    CLV_REDUCTION_MEAN,
    CLV_REDUCTION_SUM,
    CLV_REDUCTION_NONE,     /**< the result is all of them */
    CLV_REDUCTION_BATCHMEAN /**< the sum, over the length of the first dimension */
} clv_reduction;

// ---- losses of pairs (runtime/ops/reduce/losses.c) --------------------------------------------------------
// x and target have one shape, nothing is broadcast. Computed in f32. The result is [], or with
// CLV_REDUCTION_NONE the shape of the elements. Errors of all of them: CLV_E_SHAPE the shapes differ;
// CLV_E_VALUE a parameter, or a reduction that is none; CLV_E_DTYPE. They are made of other ops.

/** |x - target|. Gradient x, target: 0 where they are equal. Source: torch.nn.functional.l1_loss. */
static inline clv_tensor *clv_l1_loss(clv_tensor *x, clv_tensor *target, clv_reduction reduction) {
    CLV__RETURN_OP("l1_loss", (x, target), CLV__NUMBER(reduction));
}
/**
 * Squares of small differences, and of large ones a line.
 *
 *     d = |x - target|;  d <= delta ? d^2 / 2 : delta * (d - delta / 2)
 *
 * delta  above 0; 1 is PyTorch's
 *
 * Gradient   x, target.
 * Source     Huber 1964; torch.nn.functional.huber_loss.
 */
static inline clv_tensor *clv_huber_loss(clv_tensor *x, clv_tensor *target, float delta,
                                         clv_reduction reduction) {
    CLV__RETURN_OP("huber_loss", (x, target), CLV__NUMBER(delta), CLV__NUMBER(reduction));
}
/** The same over beta, at least 0; of 0 it is clv_l1_loss. Source: torch.nn.functional.smooth_l1_loss; Girshick 2015, arXiv:1504.08083. */
static inline clv_tensor *clv_smooth_l1_loss(clv_tensor *x, clv_tensor *target, float beta,
                                             clv_reduction reduction) {
    CLV__RETURN_OP("smooth_l1_loss", (x, target), CLV__NUMBER(beta), CLV__NUMBER(reduction));
}
/**
 * Cross entropy of sigmoid(x): -pos_weight * target * log(p) - (1 - target) * log(1 - p), times weight.
 *
 * target      0 or 1, or between
 * weight      broadcasts to x; NULL: 1
 * pos_weight  the same; 1 counts positive targets as negative ones. NULL: 1
 *
 * Gradient   x, target, weight, pos_weight.
 * Numerics   no large x makes it infinite.
 * Source     torch.nn.functional.binary_cross_entropy_with_logits.
 */
static inline clv_tensor *clv_binary_cross_entropy_with_logits(clv_tensor *x, clv_tensor *target,
                                                               CLV_OR_NULL clv_tensor *weight,
                                                               CLV_OR_NULL clv_tensor *pos_weight,
                                                               clv_reduction reduction) {
    CLV__RETURN_OP("binary_cross_entropy_with_logits", (x, target, weight, pos_weight),
                   CLV__NUMBER(reduction));
}
/**
 * Divergence of Kullback and Leibler: how far probabilities are from those of the target.
 *
 *     target * (log(target) - x), 0 where target is 0;  with log_target  exp(target) * (target - x)
 *
 * x           logarithms of probabilities
 * log_target  target is such, too
 * reduction   CLV_REDUCTION_BATCHMEAN is what the name means
 *
 * Gradient   x, target.
 * Source     torch.nn.functional.kl_div.
 */
static inline clv_tensor *clv_kl_div(clv_tensor *x, clv_tensor *target, bool log_target,
                                     clv_reduction reduction) {
    CLV__RETURN_OP("kl_div", (x, target), CLV__NUMBER(log_target), CLV__NUMBER(reduction));
}
/**
 * -x[r][labels[r]] * weight[r]: clv_cross_entropy of what is a logarithm of probabilities already.
 *
 * x       [N, C] or [N, C, ...]  f32
 * labels  [N] or [N, ...]        int    as clv_gather's index
 * weight  shape of labels        f32    as clv_cross_entropy_weighted's; NULL: 1
 *
 * Gradient   x; none to the weight.
 * Source     torch.nn.functional.nll_loss; its `weight` and `ignore_index` by clv_nn_label_weights.
 */
static inline clv_tensor *clv_nll_loss(clv_tensor *x, clv_tensor *labels, CLV_OR_NULL clv_tensor *weight,
                                       clv_reduction reduction) {
    CLV__RETURN_OP("nll_loss", (x, labels, weight), CLV__NUMBER(reduction));
}
/**
 * Cross entropy of sigmoid(x) in which what is right already counts little.
 *
 *     p = sigmoid(x), q = p * (1 - target) + (1 - p) * target;  a * q^gamma * cross entropy
 *     a = alpha * target + (1 - alpha) * (1 - target), or 1 where alpha is below 0
 *
 * target  0 or 1
 * alpha   0.25 in torchvision
 * gamma   at least 0; 2 in torchvision
 *
 * Gradient   x.
 * Source     Lin et al. 2017, arXiv:1708.02002; torchvision.ops.sigmoid_focal_loss.
 */
static inline clv_tensor *clv_sigmoid_focal_loss(clv_tensor *x, clv_tensor *target, float alpha, float gamma,
                                                 clv_reduction reduction) {
    CLV__RETURN_OP("sigmoid_focal_loss", (x, target), CLV__NUMBER(alpha), CLV__NUMBER(gamma),
                   CLV__NUMBER(reduction));
}
/** x where target is 1, else max(0, margin - x); PyTorch's other target is -1. Gradient x. Source: torch.nn.functional.hinge_embedding_loss */
static inline clv_tensor *clv_hinge_embedding_loss(clv_tensor *x, clv_tensor *target, float margin,
                                                   clv_reduction reduction) {
    CLV__RETURN_OP("hinge_embedding_loss", (x, target), CLV__NUMBER(margin), CLV__NUMBER(reduction));
}
/** max(0, -target * (a - b) + margin). Gradient a, b, target. Source: torch.nn.functional.margin_ranking_loss. */
static inline clv_tensor *clv_margin_ranking_loss(clv_tensor *a, clv_tensor *b, clv_tensor *target,
                                                  float margin, clv_reduction reduction) {
    CLV__RETURN_OP("margin_ranking_loss", (a, b, target), CLV__NUMBER(margin), CLV__NUMBER(reduction));
}
/** Of rows a and b [N, D], target [N]: 1 - cos where target is 1, else max(0, cos - margin). Gradient a, b. Source:
 *  torch.nn.functional.cosine_embedding_loss. */
static inline clv_tensor *clv_cosine_embedding_loss(clv_tensor *a, clv_tensor *b, clv_tensor *target,
                                                    float margin, clv_reduction reduction) {
    CLV__RETURN_OP("cosine_embedding_loss", (a, b, target), CLV__NUMBER(margin), CLV__NUMBER(reduction));
}

/** Zero means the default. */
typedef struct clv_triplet_config {
    float margin; /**< 1 */
    float p;      /**< 2; of the distance (sum |a - b + 1e-6|^p)^(1/p) */
    bool swap;    /**< the negative's distance from the positive counts where it is the smaller one */
    CLV_RESERVED(8);
} clv_triplet_config;

/** max(0, |anchor - positive| - |anchor - negative| + margin), of rows [N, D]. Gradient all three. Source:
 *  torch.nn.functional.triplet_margin_loss. */
static inline clv_tensor *clv_triplet_margin_loss(clv_tensor *anchor, clv_tensor *positive,
                                                  clv_tensor *negative,
                                                  CLV_OR_NULL const clv_triplet_config *config,
                                                  clv_reduction reduction) {
    if (!config) CLV__RETURN_OP("triplet_margin_loss", (anchor, positive, negative), CLV__NUMBER(reduction));
    CLV__RETURN_OP("triplet_margin_loss", (anchor, positive, negative),
                   CLV__ARG("margin", config->margin != 0 ? config->margin : 1),
                   CLV__ARG("p", config->p != 0 ? config->p : 2), CLV__ARG("swap", config->swap),
                   CLV__NUMBER(reduction));
}

/**
 * Connectionist temporal classification: how unlikely a sequence of labels is, over all ways to place it in the steps, with blanks
 * between.
 *
 *     loss[n] = -log sum over all ways w that read as the labels: prod_t exp(x[t][n][w[t]])
 *     mean: of loss[n] / max(1, target_lengths[n])
 *
 * x               [T, N, C]  f32 | f16  logarithms of probabilities, as of clv_log_softmax; T at least 1
 * targets         [N, S]     int        labels, past a sample's own whatever is there; or one sample's after the other's, [sum of lengths],
 *                                       which takes N times the memory
 * input_lengths   [N]        int        steps of each sample, at most T
 * target_lengths  [N]        int        labels of each, at most S
 * blank                                 the class that is no label
 * zero_infinity                         labels that do not fit into the steps have a loss and a gradient of 0, not an infinite loss
 * reduction                             mean, sum or none
 * result          [], or [N] f32        a length or a label from outside: NaN for that sample
 *
 * Gradient   x: -P(class c at step t, given the labels), of x as it is. PyTorch's is larger by exp(x), which the gradient of log_softmax
 *            takes away again. Keeps x and a lattice: 4*N*T*(2S+1) bytes.
 * Errors     CLV_E_SHAPE  x is not [T,N,C], or targets or lengths do not fit;  CLV_E_VALUE  blank is no class;  CLV_E_DTYPE
 * Numerics   in logarithms, in a fixed order.
 * Source     Graves, Fernandez, Gomez, Schmidhuber 2006; torch.nn.functional.ctc_loss.
 */
static inline clv_tensor *clv_ctc_loss(clv_tensor *x, clv_tensor *targets, clv_tensor *input_lengths,
                                       clv_tensor *target_lengths, int blank, bool zero_infinity,
                                       clv_reduction reduction) {
    CLV__RETURN_OP("ctc_loss", (x, targets, input_lengths, target_lengths), CLV__NUMBER(blank),
                   CLV__NUMBER(zero_infinity), CLV__NUMBER(reduction));
}
/**
 * Normalise each channel, then scale and shift.
 *
 *     y = (x - mean) / sqrt(var + eps) * weight + bias
 *
 * x             [N, C] or [N, C, ...]  f32
 * weight, bias  [C]  f32     NULL means ones and zeros
 * running_mean  [C]  f32     buffers (clv_buffer). Evaluation reads them as mean and var. Training takes mean and
 * running_var   [C]  f32     var of the batch (var biased, divided by M = numel(x)/C) and moves these in place, if
 *                            they are not NULL: r = (1 - momentum) * r + momentum * batch's (there var is
 *                            unbiased, divided by M - 1). They move at the end of the step, with the parameters; of
 *                            several replicas the first one's batch moves them
 * training      usually clv_graph_modes_get(graph).training
 * momentum      0 to 1; PyTorch's default is 0.1
 * eps           > 0; PyTorch's default is 1e-5
 * result        shape of x  f32
 *
 * Gradient   x, weight, bias; in evaluation the running statistics too, if they ask. Training keeps x, mean,
 *            1/sqrt(var + eps) and the unbiased var: 3 * C * 4 bytes.
 * Errors     CLV_E_SHAPE  x of rank below 2, one of the others is not [C];  CLV_E_VALUE  eps or momentum outside
 *            its range, fewer than two values for each channel in training, no running statistics in evaluation;
 *            CLV_E_DTYPE
 * Numerics   variance in two passes about the mean, with a correction; sums in f32, in a fixed order.
 * Source     Ioffe, Szegedy 2015, arXiv:1502.03167; torch.nn.BatchNorm2d.
 */
static inline clv_tensor *clv_batch_norm(clv_tensor *x, CLV_OR_NULL clv_tensor *weight,
                                         CLV_OR_NULL clv_tensor *bias, CLV_OR_NULL clv_tensor *running_mean,
                                         CLV_OR_NULL clv_tensor *running_var, bool training, float momentum,
                                         float eps) {
    CLV__RETURN_OP("batch_norm", (x, weight, bias, running_mean, running_var), CLV__NUMBER(training),
                   CLV__NUMBER(momentum), CLV__NUMBER(eps));
}
/**
 * Normalise over the last dimension, then scale and shift.
 *
 *     y = (x - mean) / sqrt(var + eps) * weight + bias        var is biased (divides by D)
 *
 * x             [..., D]  f32
 * weight, bias  [D]       f32     NULL means ones and zeros
 * eps           > 0
 * result        [..., D]  f32
 *
 * Gradient   x, weight, bias. Keeps x, and mean and rstd: 2 * numel(x)/D * 4 bytes.
 * Errors     CLV_E_SHAPE  D differs, or x has rank 0;  CLV_E_VALUE  eps <= 0;  CLV_E_DTYPE
 * Numerics   sums in f32, in a fixed order; the variance takes a second pass about the mean, in long rows about
 *            each part's.
 * Source     Ba, Kiros, Hinton 2016, arXiv:1607.06450, section 3; torch.nn.LayerNorm.
 */
static inline clv_tensor *clv_layer_norm(clv_tensor *x, CLV_OR_NULL clv_tensor *weight,
                                         CLV_OR_NULL clv_tensor *bias, float eps) {
    CLV__RETURN_OP("layer_norm", (x, weight, bias), CLV__NUMBER(eps));
}
/**
 * Divide by the root of the mean square over the last dimension, then scale.
 *
 *     y = x / sqrt(mean(x^2) + eps) * weight
 *
 * x       [..., D]  f32
 * weight  [D]       f32     NULL means ones
 * eps     >= 0
 * result  [..., D]  f32
 *
 * Gradient   x, weight. Keeps x, and with a weight the quotient.
 * Errors     CLV_E_SHAPE  x has rank 0, or weight does not fit it;  CLV_E_VALUE  eps < 0;  CLV_E_DTYPE
 * Numerics   sums in f32, in a fixed order; a row of zeros with eps 0 becomes NaN.
 * Source     Zhang, Sennrich 2019, arXiv:1910.07467; torch.nn.functional.rms_norm.
 */
static inline clv_tensor *clv_rms_norm(clv_tensor *x, CLV_OR_NULL clv_tensor *weight, float eps) {
    CLV__RETURN_OP("rms_norm", (x, weight), CLV__NUMBER(eps));
}
/**
 * Normalise over groups of channels of each sample, then scale and shift each channel.
 *
 * x             [N, C, ...]  f32
 * groups        C is a multiple of it
 * weight, bias  [C]          f32     NULL: ones, zeros
 * eps           1e-5 in PyTorch
 *
 * Gradient   x, weight, bias.
 * Errors     CLV_E_SHAPE;  CLV_E_VALUE  groups or eps;  CLV_E_DTYPE
 * Numerics   as clv_layer_norm, of which it is made.
 * Source     Wu, He 2018, arXiv:1803.08494; torch.nn.GroupNorm.
 */
static inline clv_tensor *clv_group_norm(clv_tensor *x, int64_t groups, CLV_OR_NULL clv_tensor *weight,
                                         CLV_OR_NULL clv_tensor *bias, float eps) {
    CLV__RETURN_OP("group_norm", (x, weight, bias), CLV__NUMBER(groups), CLV__NUMBER(eps));
}
/** The same over each channel of each sample alone, without running statistics. Source: torch.nn.InstanceNorm2d. */
static inline clv_tensor *clv_instance_norm(clv_tensor *x, CLV_OR_NULL clv_tensor *weight,
                                            CLV_OR_NULL clv_tensor *bias, float eps) {
    CLV__RETURN_OP("instance_norm", (x, weight, bias), CLV__NUMBER(eps));
}
/** x / (k + alpha * m)^beta, m the mean of the squares of `size` neighbouring channels, those outside being 0. x [N, C, ...]. Gradient x.
 *  Errors: CLV_E_SHAPE, CLV_E_VALUE a parameter. Source: torch.nn.LocalResponseNorm; Krizhevsky, Sutskever, Hinton 2012. */
static inline clv_tensor *clv_local_response_norm(clv_tensor *x, int size, float alpha, float beta, float k) {
    CLV__RETURN_OP("local_response_norm", (x), CLV__NUMBER(size), CLV__NUMBER(alpha), CLV__NUMBER(beta),
                   CLV__NUMBER(k));
}

/**
 * Rows of a table by index.
 *
 *     y[...][d] = weight[indices[...]][d]                     an index outside 0 .. V-1 gives NaN
 *
 * weight   [V, D]    f32
 * indices  [...]     int
 * result   [..., D]  f32
 *
 * Gradient   weight: the sum of dy's rows of the same index (0 for rows that no index names).
 * Errors     CLV_E_SHAPE  weight is not [V,D], or indices have the highest rank already;  CLV_E_DTYPE
 * Numerics   exact; the gradient adds in the order of the indices, without atomics.
 * Source     torch.nn.functional.embedding.
 */
static inline clv_tensor *clv_embedding(clv_tensor *weight, clv_tensor *indices) {
    return clv__op2("embedding", weight, indices);
}

// An index is i32 (other integers are cast), from 0 to V-1, where V is the length of x's axis. A device cannot
// refuse others, negative ones too: what is taken there is NaN, of whole numbers 0; what is put there is lost.
// Neither has a gradient.

/**
 * An element of x for each element of the index.
 *
 *     y[i][j][k] = x[index[i][j][k]][j][k]        axis 0; along others alike
 *
 * x       any shape of rank >= 1, any type
 * axis    negative counts from the end
 * index   i32    x's rank; as long as it likes along the axis, elsewhere at most as long as x
 * result  shape of index, dtype of x
 *
 * Gradient   x: what comes to equal indices is added.
 * Errors     CLV_E_SHAPE  the index does not fit;  CLV_E_VALUE  axis outside the rank;  CLV_E_DTYPE
 * Numerics   exact; the gradient adds in the order of the axis, without atomics: the same bits on repeat.
 * Source     torch.gather; ONNX's GatherElements.
 */
static inline clv_tensor *clv_gather(clv_tensor *x, int axis, clv_tensor *index) {
    CLV__RETURN_OP("gather", (x, index), CLV__NUMBER(axis));
}

/**
 * Slices of x by index.
 *
 *     y[i][n][j] = x[i][index[n]][j]              axis 1
 *
 * x       any shape of rank >= 1, any type
 * axis    negative counts from the end
 * index   i32    any shape
 * result  x's shape with the index's dimensions in place of the axis, dtype of x
 *
 * Gradient   x: what comes to equal indices is added.
 * Errors     CLV_E_SHAPE  too many dimensions;  CLV_E_VALUE  axis outside the rank;  CLV_E_DTYPE
 * Numerics   as clv_gather.
 * Source     torch.index_select, for an index of one dimension; ONNX's Gather.
 */
static inline clv_tensor *clv_index_select(clv_tensor *x, int axis, clv_tensor *index) {
    CLV__RETURN_OP("index_select", (x, index), CLV__NUMBER(axis));
}

/**
 * x with elements of src copied to where the index says.
 *
 *     y = x, then y[index[i][j][k]][j][k] = src[i][j][k]      axis 0, in the order of i: the last one stays
 *
 * x       any shape of rank >= 1, any type
 * axis    negative counts from the end
 * index   i32    x's rank; as long as it likes along the axis, elsewhere at most as long as x
 * src     shape of index, dtype of x      for a larger one take its part first (clv_slice)
 * result  shape and dtype of x
 *
 * Gradient   x: 0 where something is copied. src: what comes to its place, also if another was copied there
 *            later, as in PyTorch.
 * Errors     CLV_E_SHAPE  index or src do not fit;  CLV_E_VALUE  axis outside the rank;  CLV_E_DTYPE
 * Numerics   exact.
 * Source     torch.scatter; ONNX's ScatterElements.
 */
static inline clv_tensor *clv_scatter(clv_tensor *x, int axis, clv_tensor *index, clv_tensor *src) {
    CLV__RETURN_OP("scatter", (x, index, src), CLV__NUMBER(axis));
}
/** The same, but src is added: `y[index[i][j][k]][j][k] += src[i][j][k]`, f32 or i32, in the order of i.
 *  Gradient x, and src: what comes to its place. Source: torch.scatter_add. */
static inline clv_tensor *clv_scatter_add(clv_tensor *x, int axis, clv_tensor *index, clv_tensor *src) {
    CLV__RETURN_OP("scatter_add", (x, index, src), CLV__NUMBER(axis));
}

/**
 * x with slices of source added where the index says.
 *
 *     y = x, then y[i][index[n]][j] += source[i][n][j]        axis 1, in the order of n
 *
 * x       any shape of rank >= 1, f32 | i32
 * axis    negative counts from the end
 * index   i32    any shape
 * source  x's shape with the index's dimensions in place of the axis, dtype of x
 * result  shape and dtype of x
 *
 * Gradient   x, source.
 * Errors     CLV_E_SHAPE  source does not fit;  CLV_E_VALUE  axis outside the rank;  CLV_E_DTYPE
 * Numerics   as clv_gather's gradient.
 * Source     torch.index_add.
 */
static inline clv_tensor *clv_index_add(clv_tensor *x, int axis, clv_tensor *index, clv_tensor *source) {
    CLV__RETURN_OP("index_add", (x, index, source), CLV__NUMBER(axis));
}
/** The same, but slices are copied, of any type: `y[i][index[n]][j] = source[i][n][j]`; of several for one
 *  place the last stays. Gradient as clv_scatter. Source: torch.index_copy. */
static inline clv_tensor *clv_index_copy(clv_tensor *x, int axis, clv_tensor *index, clv_tensor *source) {
    CLV__RETURN_OP("index_copy", (x, index, source), CLV__NUMBER(axis));
}

/**
 * Slices of x by tuples of indices, which stand along the last dimension of `indices`. Here a negative index
 * counts from the end.
 *
 *     y[n][j] = x[indices[n][0]][indices[n][1]][j]                    tuples of two, batch_dims 0
 *     y[b][n][j] = x[b][indices[b][n][0]][j]                          tuples of one, batch_dims 1
 *
 * x           rank >= 1, any type
 * batch_dims  0 or more: how many first dimensions x and indices have in common
 * indices     i32    [..., M]      M from 1 to x's rank less batch_dims
 * result      indices' dimensions but the last, then x's from batch_dims + M on; dtype of x
 *
 * Gradient   x: what comes to equal tuples is added.
 * Errors     CLV_E_SHAPE  the tuples do not fit;  CLV_E_VALUE  batch_dims is not below both ranks;
 *            CLV_E_DTYPE
 * Numerics   as clv_gather.
 * Source     ONNX's GatherND, version 13.
 */
static inline clv_tensor *clv_gather_nd(clv_tensor *x, int batch_dims, clv_tensor *indices) {
    CLV__RETURN_OP("gather_nd", (x, indices), CLV__NUMBER(batch_dims));
}

/**
 * x with slices of updates copied to where tuples of indices say: where clv_gather_nd takes from, this puts.
 *
 *     y = x, then y[indices[n][0]][indices[n][1]][j] = updates[n][j]      in the order of n: the last one stays
 *
 * x           rank >= 1, any type
 * batch_dims  as clv_gather_nd; ONNX's is 0
 * indices     i32    [..., M]      a negative one counts from the end
 * updates     the shape of clv_gather_nd's result, dtype of x
 * result      shape and dtype of x
 *
 * Gradient   x: 0 where something is copied. updates: as clv_scatter's src.
 * Errors     as clv_gather_nd, or updates do not fit
 * Numerics   exact.
 * Source     ONNX's ScatterND, version 11; clv_scatter_nd_add is its reduction `add`. There is no `mul`, `min`
 *            or `max`.
 */
static inline clv_tensor *clv_scatter_nd(clv_tensor *x, int batch_dims, clv_tensor *indices,
                                         clv_tensor *updates) {
    CLV__RETURN_OP("scatter_nd", (x, indices, updates), CLV__NUMBER(batch_dims));
}
/** The same, but updates are added, f32 or i32, in their order. Gradient x, updates. */
static inline clv_tensor *clv_scatter_nd_add(clv_tensor *x, int batch_dims, clv_tensor *indices,
                                             clv_tensor *updates) {
    CLV__RETURN_OP("scatter_nd_add", (x, indices, updates), CLV__NUMBER(batch_dims));
}

/**
 * Bytes as a table says: y[n,c,...] = table[c][x[n,c,...]]. clv_nn_normalize makes the table that normalises pictures.
 *
 * x       [N, C, ...]  u8       or any shape, with a table of one row
 * table   [C, 256]     f32      or [1, 256]: for all channels
 * result  shape of x, f32
 *
 * Gradient   none
 * Errors     CLV_E_SHAPE  the table is neither;  CLV_E_DTYPE
 * Numerics   exact.
 */
static inline clv_tensor *clv_lookup(clv_tensor *x, clv_tensor *table) {
    return clv__op2("lookup", x, table);
}

/**
 * An axis of another length, each of whose places takes a few neighbours of x by weights.
 *
 *     y[...][e][...] = sum_k weight[e][k] * x[...][start[e] + k][...]        places that x has not count nothing
 *
 * x       rank >= 1  f32
 * axis    negative counts from the end
 * start   [E]        int
 * weight  [E, K]     f32
 * result  x's shape with E along the axis  f32
 *
 * Gradient   x; none to weight. Of a start and a weight that are constants (clv_constant) it is the same op by the table of the other
 *            direction, of others it is made of K clv_index_add.
 * Errors     CLV_E_VALUE  axis outside the rank;  CLV_E_DTYPE
 * Numerics   sums in f32, in the order of k.
 */
static inline clv_tensor *clv_resample(clv_tensor *x, int axis, clv_tensor *start, clv_tensor *weight) {
    CLV__RETURN_OP("resample", (x, start, weight), CLV__NUMBER(axis));
}

/** Which elements a place between elements takes. */
typedef enum clv_interpolate_mode {
    CLV_INTERPOLATE_NEAREST,       /**< the one at floor(i / scale), as PyTorch's `nearest` */
    CLV_INTERPOLATE_NEAREST_EXACT, /**< the one at floor((i + 1/2) / scale) */
    CLV_INTERPOLATE_LINEAR,        /**< two along each dimension: linear, bilinear, trilinear */
    CLV_INTERPOLATE_CUBIC          /**< four, of a = -0.75; with antialias of a = -0.5 */
} clv_interpolate_mode;

/** Zero means the default. */
typedef struct clv_interpolate_config {
    clv_interpolate_mode mode;
    bool align_corners; /**< the first and the last element stay where they are */
    bool antialias;     /**< a smaller picture's elements take all that they stand for */
    double scale[3];    /**< of each dimension, [1] and [2] zero: as [0]; of none: as the sizes say */
    CLV_RESERVED(8);
} clv_interpolate_config;

/**
 * Pictures, lines and solids of another size.
 *
 *     y[n][c][i][j] = x[n][c] at ((i + 1/2) * H/OH - 1/2, (j + 1/2) * W/OW - 1/2); align_corners: at (i * (H-1)/(OH-1), ...)
 *
 * x       [N, C, L], [N, C, H, W] or [N, C, D, H, W]  f32; by the nearest any integers too
 * size    [OL], [OH, OW] or [OD, OH, OW]; no dimensions: floor(length * scale)
 * config  NULL: its zero
 * result  x's shape of that size, dtype of x; x itself if it has that
 *
 * A node for each dimension that changes: clv_resample by a table that the host makes.
 *
 * Gradient   x; keeps nothing.
 * Errors     CLV_E_SHAPE  another number of dimensions;  CLV_E_VALUE  a size or scale below 1 element;  CLV_E_DTYPE
 * Source     torch.nn.functional.interpolate, whose `area` is clv_adaptive_avg_pool2d.
 */
static inline clv_tensor *clv_interpolate(clv_tensor *x, clv_shape size,
                                          CLV_OR_NULL const clv_interpolate_config *config) {
    if (!config) CLV__RETURN_OP("interpolate", (x), CLV__LIST("size", size.dims, size.rank));
    CLV__RETURN_OP("interpolate", (x), CLV__LIST("size", size.dims, size.rank),
                   CLV__ARG("mode", config->mode), CLV__ARG("align_corners", config->align_corners),
                   CLV__ARG("antialias", config->antialias), CLV__ARG("scale0", config->scale[0]),
                   CLV__ARG("scale1", config->scale[1]), CLV__ARG("scale2", config->scale[2]));
}

/** Which elements a place of grid_sample takes: four, the nearest, or sixteen. */
typedef enum clv_grid_mode { CLV_GRID_BILINEAR, CLV_GRID_NEAREST, CLV_GRID_BICUBIC } clv_grid_mode;
/** What lies outside: zeros, the nearest element within, or x as in mirrors. */
typedef enum clv_grid_padding { CLV_GRID_ZEROS, CLV_GRID_BORDER, CLV_GRID_REFLECTION } clv_grid_padding;

/**
 * x at places that are computed.
 *
 *     y[n][c][i][j] = x[n][c] at grid[n][i][j], whose numbers are (column, row), from -1 to 1
 *
 * x              [N, C, H, W]    f32     or [N, C, L], [N, C, D, H, W]: grids of one and of three numbers, column first
 * grid           [N, OH, OW, 2]  f32
 * align_corners  -1 and 1 are the middles of the first and last element, not their outer ends
 * result         [N, C, OH, OW]  f32
 *
 * Gradient   x, grid: 0 to what is nearest, and to places that an edge holds. Adds to x in the order of the places, without atomics.
 * Errors     CLV_E_SHAPE  grid does not fit x, or x has an empty dimension;  CLV_E_VALUE  a mode that is none;  CLV_E_DTYPE
 * Numerics   places in f32: of W columns they are good to about W * 1e-7.
 * Source     Jaderberg et al. 2015, arXiv:1506.02025; torch.nn.functional.grid_sample.
 */
static inline clv_tensor *clv_grid_sample(clv_tensor *x, clv_tensor *grid, clv_grid_mode mode,
                                          clv_grid_padding padding_mode, bool align_corners) {
    CLV__RETURN_OP("grid_sample", (x, grid), CLV__NUMBER(mode), CLV__NUMBER(padding_mode),
                   CLV__NUMBER(align_corners));
}

/**
 * Hide the future from attention: what comes after a row's own position becomes `fill`.
 *
 *     y[...][t][s] = x[...][t][s] if s <= t + S - T, else fill
 *
 * x       [..., T, S]  f32    scores of T queries for S keys; the last query sees all keys
 * fill    -INFINITY before a softmax
 * result  shape of x   f32
 *
 * Gradient   x: 0 where it was hidden.
 * Errors     CLV_E_SHAPE  the rank is below 2;  CLV_E_DTYPE
 * Source     Vaswani et al. 2017, arXiv:1706.03762, section 3.2.3; torch.tril.
 */
static inline clv_tensor *clv_causal_mask(clv_tensor *x, float fill) {
    CLV__RETURN_OP("causal_mask", (x), CLV__NUMBER(fill));
}

/**
 * Softmax of attention scores whose future is hidden.
 *
 *     y[...][t][s] = exp(scale * x[...][t][s]) / sum_{u <= t+S-T} exp(scale * x[...][t][u]) if s <= t + S - T, else 0
 *
 * x       [..., T, S]  f32    scores of T queries for S keys; the last query sees all keys
 * scale   of the scores; 1 leaves them
 * result  shape of x   f32    a query that sees no key (T > S) has zeros
 *
 * The same as clv_softmax of clv_causal_mask of scale * x, but that what is hidden is not read.
 *
 * Gradient   x: scale * y * (dy - sum(dy * y)); keeps y, not x.
 * Errors     CLV_E_SHAPE  the rank is below 2;  CLV_E_DTYPE
 * Numerics   the maximum is subtracted first; sums in f32, in a fixed order.
 * Source     Vaswani et al. 2017, arXiv:1706.03762, section 3.2.3.
 */
static inline clv_tensor *clv_causal_softmax(clv_tensor *x, float scale) {
    CLV__RETURN_OP("causal_softmax", (x), CLV__NUMBER(scale));
}

/**
 * Pairs of features turned by the angle of their place.
 *
 *     y[t][i] = x[t][i] * cos[t][i] - x[t][i + R] * sin[t][i];  y[t][i + R] = x[t][i + R] * cos[t][i] + x[t][i] * sin[t][i]     i < R
 *
 * x            [..., T, E]  f32 | f16   E at least 2R: features from 2R on stay
 * cos, sin     [..., T, R]  f32         broadcast to x's other dimensions: [T, R] serves all heads; of x [N, T, heads, E] they are [T, 1, R]
 * interleaved  pairs are neighbours, 2i and 2i + 1, not i and i + R
 * result       shape of x               dtype of x
 *
 * Gradient   x, cos, sin.
 * Errors     CLV_E_SHAPE  2R is more than E, or cos and sin do not fit;  CLV_E_DTYPE
 * Source     Su et al. 2021, arXiv:2104.09864; ONNX's RotaryEmbedding.
 */
static inline clv_tensor *clv_rotary_embedding(clv_tensor *x, clv_tensor *cos, clv_tensor *sin,
                                               bool interleaved) {
    CLV__RETURN_OP("rotary_embedding", (x, cos, sin), CLV__NUMBER(interleaved));
}

/** Zero: every query sees every key. */
typedef struct clv_attention_config {
    bool causal;   /**< query t sees the first t + 1 + S - T keys */
    float scale;   /**< of the scores; 0: 1 / sqrt(E) */
    float dropout; /**< of the weights, in a training graph: see clv_dropout */
    bool
        enable_gqa; /**< key and value have fewer heads, [..., heads / n, S, E]: each serves n neighbouring heads of query */
    /** Of clv_scaled_dot_product_attention: broadcasts to [..., T, S]. bool, and other integers: false hides; f32: added to the scores. A
     *  query that sees nothing has zeros. NULL: none. */
    CLV_OR_NULL clv_tensor *attn_mask;
    int64_t
        kv_heads; /**< of clv_self_attention: heads of keys and values, each serves heads / kv_heads of queries; 0: heads */
    CLV_RESERVED(7);
} clv_attention_config;

/**
 * Values mixed by how well their keys fit each query.
 *
 *     result = dropout(softmax(scale * query key^T)) value        softmax over the keys that a query sees
 *
 * query   [..., T, E]  f32
 * key     [..., S, E]  f32    leading dimensions as clv_matmul's
 * value   [..., S, V]  f32
 * config  NULL: its zero
 * result  [..., T, V]  f32
 *
 * Of four dimensions, and as many places of queries, keys and values, and features, clv_self_attention does it, which keeps no weights: unless
 * some are dropped, or the mask wants a gradient.
 *
 * Gradient   query, key, value, attn_mask; keeps them and the weights.
 * Errors     CLV_E_SHAPE  query is not [...,T,E], heads of keys do not divide those of queries, or the products' shapes or the mask do
 *            not fit;  CLV_E_VALUE  dropout outside 0 to 1;  CLV_E_DTYPE
 * Source     Vaswani et al. 2017, arXiv:1706.03762; torch.nn.functional.scaled_dot_product_attention, whose `is_causal`
 *            hides the same only where T = S: there the first query sees one key, here the last one sees all.
 */
static inline clv_tensor *clv_scaled_dot_product_attention(clv_tensor *query, clv_tensor *key,
                                                           clv_tensor *value,
                                                           CLV_OR_NULL const clv_attention_config *config) {
    if (!config) return clv__op3("scaled_dot_product_attention", query, key, value);
    CLV__RETURN_OP("scaled_dot_product_attention", (query, key, value, config->attn_mask),
                   CLV__ARG("causal", config->causal), CLV__ARG("scale", config->scale),
                   CLV__ARG("dropout", config->dropout), CLV__ARG("enable_gqa", config->enable_gqa));
}

/**
 * Attention of a sequence to itself by several heads, whose queries, keys and values lie side by side, as a linear layer to 3D
 * features makes them; with fewer heads of keys and values these are so much narrower, and nothing is repeated.
 *
 *     result[..., head] = clv_scaled_dot_product_attention(q[..., head], k[..., head], v[..., head])
 *
 * x       [N, T, 3D]  f32 | f16  q, k and v are D columns each, of which a head has D/heads; with kv_heads D of q, and D/heads*kv_heads of
 *                                k and of v
 * heads   D is a multiple of it, and it of kv_heads
 * config  NULL: its zero. Its attn_mask broadcasts to [N, heads, T, T]
 * result  [N, T, D]   dtype of x
 *
 * One op, unless weights are dropped; else slices, permutes and clv_scaled_dot_product_attention. Where a head has no room in local
 * memory, a CPU takes a workspace for two heads of each unit. A GPU keeps tiles of scores in local memory. Where it has too little of
 * that, and for heads of more than 128 columns, it takes a workspace of heads*T*T floats of a sequence, no more than 2,147,483,647,
 * twice that for the gradient.
 *
 * Gradient   x; keeps x and makes the scores again. In nodes, also where attn_mask wants a gradient: keeps q, k, v and the weights.
 * Errors     CLV_E_SHAPE  x is not [N,T,3D];  CLV_E_VALUE  D is 0 or no multiple of heads, heads none of kv_heads, or dropout outside
 *            0 to 1;  CLV_E_DTYPE
 * Numerics   the maximum is subtracted first; sums in f32, in a fixed order. Matrix units round what they multiply, weights too.
 * Source     Vaswani et al. 2017, arXiv:1706.03762, section 3.2.2; Dao et al. 2022, arXiv:2205.14135 (not to keep scores).
 */
static inline clv_tensor *clv_self_attention(clv_tensor *x, int64_t heads,
                                             CLV_OR_NULL const clv_attention_config *config) {
    if (!config) CLV__RETURN_OP("self_attention", (x), CLV__NUMBER(heads));
    if (config->enable_gqa)
        CLV__RETURN_OP("self_attention", (x), CLV__NUMBER(heads), CLV__ARG("enable_gqa", 1)); // it has none
    CLV__RETURN_OP("self_attention", (x, config->attn_mask), CLV__NUMBER(heads),
                   CLV__ARG("causal", config->causal), CLV__ARG("scale", config->scale),
                   CLV__ARG("dropout", config->dropout), CLV__ARG("kv_heads", config->kv_heads));
}

/** The state of an LSTM, GRU or RNN: its h, and of an LSTM its c. NULL: zeros. A call reads the first state here and writes the last one. */
typedef struct clv_recurrent_state {
    clv_tensor *h, *c;
} clv_recurrent_state;

/** What a step makes of its gates. */
typedef enum clv_cell { CLV_CELL_LSTM, CLV_CELL_GRU, CLV_CELL_TANH, CLV_CELL_RELU } clv_cell;

/**
 * All steps of one layer of an LSTM, a GRU or an RNN in one direction, after the product with the input weights. One op, whatever T is.
 *
 *     p[t] = h weight_hh^T + bias_hh                                      h is that of the step before
 *     LSTM  i, f, o = sigmoid(z[t] + p[t])  g = tanh(z[t] + p[t])         c = f * c + i * g    h = o * tanh(c)
 *     GRU   r, u = sigmoid(z[t] + p[t])     n = tanh(z[t] + r * p[t])     h = (1 - u) * n + u * h
 *     RNN   h = tanh(z[t] + p[t]), or relu
 *
 * z          [T, N, G*H]  f32 | f16   gates in this order: LSTM i, f, g, o; GRU r, u, n; T at least 1
 * weight_hh  [G*H, H]     f32
 * bias_hh    [G*H]        f32         NULL: none
 * lengths    [N]          int         steps of each row; the others leave its state alone and give 0. NULL: all steps
 * reverse                             the last step first; of a row with a length its own last one
 * state                               h [N, H] and c [N, H]; NULL: zeros, and the last state is not asked for
 * result     [T, N, H]    dtype of z
 *
 * Gradient   z, weight_hh, bias_hh, both states. In a training graph keeps activated gates and states: (G + 1) * T*N*H * 4 bytes, of a GRU
 *            as many as of an LSTM; one that was built for no training computes them again.
 * Errors     CLV_E_SHAPE  no steps, or weight_hh is not [G*H,H];  CLV_E_VALUE  a state c that only an LSTM has;  CLV_E_DTYPE
 * Numerics   the state is f32 between steps; sums in f32, in a fixed order.
 * Source     torch.nn.LSTM, GRU, RNN: Hochreiter, Schmidhuber 1997; Cho et al. 2014, arXiv:1406.1078.
 */
static inline clv_tensor *clv_recurrence(clv_tensor *z, clv_tensor *weight_hh,
                                         CLV_OR_NULL clv_tensor *bias_hh, CLV_OR_NULL clv_tensor *lengths,
                                         clv_cell cell, bool reverse,
                                         CLV_OR_NULL CLV_INOUT clv_recurrent_state *state) {
    clv_tensor *const in[] = {z,      weight_hh, bias_hh, state ? state->h : NULL, state ? state->c : NULL,
                              lengths};
    const clv_op_argument with[] = {CLV__NUMBER(cell), CLV__NUMBER(reverse),
                                    CLV__ARG("keep", clv_graph_modes_get(clv_tensor_graph(z)).training)};
    clv_tensor *y = clv_op_call(NULL, "recurrence", in, 6, with, 3);
    if (state) state->h = clv_op_output(y, 1), state->c = cell == CLV_CELL_LSTM ? clv_op_output(y, 2) : NULL;
    return y;
}

/** Zero means the default. */
typedef struct clv_recurrent_config {
    int64_t layers;     /**< 1; each takes what the one before gives */
    bool bidirectional; /**< each layer goes both ways; results lie side by side */
    bool reverse;       /**< the last step first, as ONNX has it */
    bool batch_first;   /**< x and the result are [N, T, ...] */
    bool relu;          /**< of an RNN: relu instead of tanh */
    bool no_bias;       /**< of the layers in nn.h: no biases */
    float dropout;      /**< of what a layer takes from another, in a training graph: see clv_dropout */
    CLV_RESERVED(8);
} clv_recurrent_config;

/**
 * LSTM of one or more layers.
 *
 * x        [T, N, F]  f32 | f16
 * lengths  [N]  int   steps of each row, as pack_padded_sequence's; NULL: T of each
 * weights  of each layer, and within it of each direction: weight_ih [4*H, F], weight_hh [4*H, H], and, of all or of none, bias_ih [4*H],
 *          bias_hh [4*H]; later layers take the H or 2*H of the one before. Gates are i, f, g, o
 * config   NULL: its zero
 * state    h, c [layers * directions, N, H]; NULL: zeros, and the last state is not asked for
 * result   [T, N, H], or of both directions [T, N, 2*H]: 0 past a row's length
 *
 * For each layer and direction two nodes, a product over all steps and clv_recurrence, and one that adds the biases.
 *
 * Gradient   x, weights, both states.
 * Errors     CLV_E_SHAPE  x is not [T,N,F], or weights or states are too few, too many or of other shapes;  as clv_recurrence
 * Source     torch.nn.LSTM
 */
CLV_API clv_tensor *clv_lstm(clv_tensor *x, CLV_OR_NULL clv_tensor *lengths,
                             CLV_COUNT(n_weights) clv_tensor *const *weights, int n_weights,
                             CLV_OR_NULL const clv_recurrent_config *config,
                             CLV_OR_NULL CLV_INOUT clv_recurrent_state *state);
/** GRU: three gates, r, u (PyTorch's z) and n, and no c; everything else as clv_lstm. Source: torch.nn.GRU, whose reset gate stands behind
 *  the product, as ONNX's with linear_before_reset. */
CLV_API clv_tensor *clv_gru(clv_tensor *x, CLV_OR_NULL clv_tensor *lengths,
                            CLV_COUNT(n_weights) clv_tensor *const *weights, int n_weights,
                            CLV_OR_NULL const clv_recurrent_config *config,
                            CLV_OR_NULL CLV_INOUT clv_recurrent_state *state);
/** RNN: tanh, or relu, of one gate, and no c; everything else as clv_lstm. Source: torch.nn.RNN. */
CLV_API clv_tensor *clv_rnn(clv_tensor *x, CLV_OR_NULL clv_tensor *lengths,
                            CLV_COUNT(n_weights) clv_tensor *const *weights, int n_weights,
                            CLV_OR_NULL const clv_recurrent_config *config,
                            CLV_OR_NULL CLV_INOUT clv_recurrent_state *state);

/**
 * In a training graph: set each element to zero with probability p, and scale the others.
 *
 *     y[i] = u[i] >= p ? x[i] / (1 - p) : 0        u[i] uniform in [0, 1)
 *
 * Otherwise, and for p = 0, the result is x itself and no node is made.
 *
 * x       any shape   f32
 * p       0 to 1; 1 gives zeros
 * result  shape of x  f32
 *
 * u[i] is word i % 4 of Philox4x32-10 with key (seed low, seed high ^ 3) and counter (i / 4, step, number of this
 * dropout in the graph, 0): the same for a seed and step on every device, after a resume, and for any number of
 * threads.
 *
 * Gradient   x: the same mask on dy. Draws it again; keeps nothing.
 * Errors     CLV_E_VALUE  p outside its range;  CLV_E_DTYPE
 * Numerics   the mask is exact.
 * Source     Hinton et al. 2012, arXiv:1207.0580; torch.nn.Dropout. Salmon et al. 2011 (Philox).
 */
static inline clv_tensor *clv_dropout(clv_tensor *x, float p) {
    CLV__RETURN_OP("dropout", (x), CLV__NUMBER(p));
}

#ifdef __GNUC__
#pragma GCC diagnostic pop
#endif
#undef CLV__ARG
#undef CLV__NUMBER
#undef CLV__LIST
#undef CLV__SHAPE
#undef CLV__THOSE
#undef CLV__RETURN_OP
#ifdef __cplusplus
}
#endif
#endif
