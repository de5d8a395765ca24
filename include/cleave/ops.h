// SPDX-License-Identifier: Apache-2.0
// Ops: builder calls that append one node to the graph of their inputs and return its result.
// Every one returns NULL after a mistake, its own or an earlier one (see graph.h), and takes such NULLs.
// f32 unless it says otherwise; indices are i32. "Gradient" lists the inputs that get one.
#ifndef CLEAVE_OPS_H
#define CLEAVE_OPS_H

#include "graph.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- elementwise (runtime/ops/elementwise.def) ------------------------------------------------------------
// Inputs broadcast as in NumPy: shapes are aligned at the end, a dimension of 1 is repeated; the result has
// the common shape. The gradient of an input that was repeated is summed over the repetitions.
// Errors of all of them: CLV_E_SHAPE shapes do not broadcast; CLV_E_DTYPE; CLV_E_VALUE a parameter is not a
// number. Numerics: one rounding of each operation; functions as accurate as the device's (OpenCL: exp and
// log 3 ULP, tanh 5, erf and pow 16). NaN passes through, where PyTorch lets it pass.

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
CLV_API clv_tensor *clv_add(clv_tensor *a, clv_tensor *b);
/** Difference `a - b`; everything else as clv_add. */
CLV_API clv_tensor *clv_sub(clv_tensor *a, clv_tensor *b);
/** Product `a * b`; everything else as clv_add. The gradient keeps a and b. */
CLV_API clv_tensor *clv_mul(clv_tensor *a, clv_tensor *b);
/** Quotient `a / b`, f32 only; everything else as clv_add. The gradient keeps b, and the result if b wants
 *  one. */
CLV_API clv_tensor *clv_div(clv_tensor *a, clv_tensor *b);

/** `-x`, f32 or i32. Gradient x. */
CLV_API clv_tensor *clv_neg(clv_tensor *x);
/** e^x. Gradient x; keeps the result. */
CLV_API clv_tensor *clv_exp(clv_tensor *x);
/** Natural logarithm: -infinity at 0, NaN below. Gradient x; keeps x. */
CLV_API clv_tensor *clv_log(clv_tensor *x);
/** Square root: NaN below 0. Gradient x (infinite at 0); keeps the result. */
CLV_API clv_tensor *clv_sqrt(clv_tensor *x);
/** `x * x`. Gradient x; keeps x. */
CLV_API clv_tensor *clv_square(clv_tensor *x);
/** |x|. Gradient x (0 at 0); keeps x. */
CLV_API clv_tensor *clv_abs(clv_tensor *x);

/**
 * Rectifier.
 *
 *     y = x if x > 0, else 0             NaN stays NaN
 *
 * x       any shape  f32
 * result  shape of x f32
 *
 * Gradient   x: dy where y > 0, else 0. Keeps the result.
 * Source     torch.nn.functional.relu.
 */
CLV_API clv_tensor *clv_relu(clv_tensor *x);
/** `x if x > 0, else x * negative_slope`. Gradient x; keeps x. Source: torch.nn.functional.leaky_relu. */
CLV_API clv_tensor *clv_leaky_relu(clv_tensor *x, float negative_slope);
/** 1 / (1 + e^-x). Gradient x; keeps the result. */
CLV_API clv_tensor *clv_sigmoid(clv_tensor *x);
/** Hyperbolic tangent. Gradient x; keeps the result. */
CLV_API clv_tensor *clv_tanh(clv_tensor *x);

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
CLV_API clv_tensor *clv_gelu(clv_tensor *x);
/** gelu by tanh: `x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3)))`. Gradient x; keeps x. Source: as
 *  clv_gelu, approximate='tanh'. */
CLV_API clv_tensor *clv_gelu_tanh(clv_tensor *x);
/** `x / (1 + e^-x)`. Gradient x; keeps x. Source: torch.nn.functional.silu. */
CLV_API clv_tensor *clv_silu(clv_tensor *x);

/**
 * Keep values within limits.
 *
 *     y = smaller of max and (larger of x and min)          NaN stays NaN; min > max gives max
 *
 * x         any shape  f32
 * min, max  may be infinite
 * result    shape of x f32
 *
 * Gradient   x: dy where min <= x <= max, else 0. Keeps x.
 * Errors     CLV_E_VALUE  a limit is not a number
 * Source     torch.clamp.
 */
CLV_API clv_tensor *clv_clamp(clv_tensor *x, float min, float max);
/** x to a power; NaN for x < 0 unless the exponent is whole. Gradient x (0 for exponent 0); keeps x.
 *  Exponents 2 and 0.5 are clv_square and clv_sqrt. Source: torch.pow. */
CLV_API clv_tensor *clv_pow_scalar(clv_tensor *x, float exponent);
/** `x + value`. Gradient x. */
CLV_API clv_tensor *clv_add_scalar(clv_tensor *x, float value);
/** `x * value`. Gradient x. */
CLV_API clv_tensor *clv_mul_scalar(clv_tensor *x, float value);

/**
 * Comparison: is a equal to b?
 *
 *     y = 1 if a == b, else 0            with NaN: 0
 *
 * a, b    any shapes  f32 | i32          of one dtype
 * result  broadcast   i32
 *
 * Errors     CLV_E_SHAPE  the shapes do not broadcast;  CLV_E_DTYPE  the types differ
 */
CLV_API clv_tensor *clv_eq(clv_tensor *a, clv_tensor *b);
/** `a != b` (with NaN: 1); everything else as clv_eq. */
CLV_API clv_tensor *clv_ne(clv_tensor *a, clv_tensor *b);
/** `a < b`; everything else as clv_eq. */
CLV_API clv_tensor *clv_lt(clv_tensor *a, clv_tensor *b);
/** `a <= b`; everything else as clv_eq. */
CLV_API clv_tensor *clv_le(clv_tensor *a, clv_tensor *b);
/** `a > b`; everything else as clv_eq. */
CLV_API clv_tensor *clv_gt(clv_tensor *a, clv_tensor *b);
/** `a >= b`; everything else as clv_eq. */
CLV_API clv_tensor *clv_ge(clv_tensor *a, clv_tensor *b);

/**
 * Choose element by element.
 *
 *     y = a if condition != 0, else b
 *
 * condition  any shape  i32
 * a, b       any shapes f32 | i32        of one dtype
 * result     broadcast  dtype of a
 *
 * Gradient   a, b: what was not chosen gets 0, even where it is NaN.
 * Errors     CLV_E_SHAPE  the shapes do not broadcast;  CLV_E_DTYPE  condition is not i32, or a and b differ
 */
CLV_API clv_tensor *clv_where(clv_tensor *condition, clv_tensor *a, clv_tensor *b);

/**
 * Change the type. The same type gives x itself.
 *
 * x       any shape  f32 | i32
 * dtype   f32: rounded to nearest;  i32: the fraction is cut off, too large values become the largest, NaN
 * becomes 0 result  shape of x, dtype
 *
 * Errors     CLV_E_DTYPE  dtype is neither
 */
CLV_API clv_tensor *clv_cast(clv_tensor *x, clv_dtype dtype);

/**
 * A tensor of one value.
 *
 * dtype   f32 | i32
 * shape   any
 * value   for i32 a whole number in its range
 * result  shape, dtype
 *
 * Errors     CLV_E_DTYPE, CLV_E_SHAPE  not possible;  CLV_E_VALUE  value is not an i32
 */
CLV_API clv_tensor *clv_full(clv_graph *graph, clv_dtype dtype, clv_shape shape, float value);

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
 * about 1e-6 of
 *            the sum of their magnitudes; same bits on repeat, whatever the number of threads.
 * Source     torch.sum.
 */
CLV_API clv_tensor *clv_sum(clv_tensor *x, const int *axes, int n_axes, bool keepdim);
/** Mean over axes: the sum divided by the number of elements, NaN for none; everything else as clv_sum. */
CLV_API clv_tensor *clv_mean(clv_tensor *x, const int *axes, int n_axes, bool keepdim);

/**
 * Largest element over axes.
 *
 *     y[kept] = largest over the axes of x                  NaN if there is one
 *
 * x, axes, keepdim, result  as clv_sum
 *
 * Gradient   x: shared evenly among the elements that are largest. Keeps x and the result.
 * Errors     CLV_E_SHAPE  of no elements;  CLV_E_VALUE  an axis is outside the rank, or named twice; 
 * CLV_E_DTYPE Source     torch.amax.
 */
CLV_API clv_tensor *clv_max(clv_tensor *x, const int *axes, int n_axes, bool keepdim);

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
CLV_API clv_tensor *clv_argmax(clv_tensor *x, int axis, bool keepdim);

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
CLV_API clv_tensor *clv_sum_to(clv_tensor *x, clv_shape shape);

// ---- shape: f32 and i32 alike -----------------------------------------------------------------------------

/**
 * The same elements in the same order under another shape. Costs nothing: the result is the same memory.
 *
 * x       any shape
 * shape   as many elements
 * result  shape, dtype of x
 *
 * Gradient   x.
 * Errors     CLV_E_SHAPE  the number of elements differs
 */
CLV_API clv_tensor *clv_reshape(clv_tensor *x, clv_shape shape);
/** Join the axes from start_axis on to one, as torch.flatten; a reshape. Errors: CLV_E_VALUE outside the
 *  rank. */
CLV_API clv_tensor *clv_flatten(clv_tensor *x, int start_axis);

/** Exchange two axes; a permute. Errors: CLV_E_VALUE outside the rank. */
CLV_API clv_tensor *clv_transpose(clv_tensor *x, int axis0, int axis1);
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
CLV_API clv_tensor *clv_permute(clv_tensor *x, const int *axes, int n_axes);

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
CLV_API clv_tensor *clv_broadcast_to(clv_tensor *x, clv_shape shape);

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
CLV_API clv_tensor *clv_slice(clv_tensor *x, int axis, int64_t start, int64_t length);

/**
 * Tensors one after another along an axis.
 *
 * inputs  n >= 1 of them, of one dtype and equal shapes but for the axis; n < 1 gives NULL
 * axis    negative counts from the end
 * result  the lengths along the axis added, dtype of the inputs
 *
 * Gradient   all inputs.
 * Errors     CLV_E_SHAPE  shapes differ elsewhere;  CLV_E_DTYPE  types differ;  CLV_E_VALUE  axis outside the
 * rank Source     torch.cat.
 */
CLV_API clv_tensor *clv_concat(clv_tensor *const *inputs, int n, int axis);

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
CLV_API clv_tensor *clv_matmul(clv_tensor *a, clv_tensor *b);
/** The same with the last two dimensions of a or of b exchanged first, without a copy. Vectors are not
 *  transposed. */
CLV_API clv_tensor *clv_matmul_t(clv_tensor *a, bool transpose_a, clv_tensor *b, bool transpose_b);
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
CLV_API clv_tensor *clv_linear(clv_tensor *x, clv_tensor *weight, clv_tensor *bias);

// ---- convolution and pooling, NCHW ------------------------------------------------------------------------

/** Zero means the default: stride 1, padding 0, dilation 1, groups 1. [0] is H, [1] is W. */
typedef struct clv_conv2d_config {
    int stride[2], padding[2], dilation[2], groups;
} clv_conv2d_config;

/** Zero means the default: stride = kernel, padding 0, dilation 1. [0] is H, [1] is W. */
typedef struct clv_pool2d_config {
    int kernel[2], stride[2], padding[2], dilation[2];
    bool ceil_mode;
    bool exclude_padding; /**< avg_pool2d: divide by the elements inside only (PyTorch: count_include_pad=False) */
} clv_pool2d_config;

/**
 * Two-dimensional convolution (a cross-correlation: the kernel is not flipped).
 *
 *     y[n][o][i][j] = bias[o] + sum_{c,r,s} x[n][c][i*stride - padding + r*dilation][...] *
 *     weight[o][c][r][s]
 *
 * x       [N, C, H, W]           f32     0 outside the image
 * weight  [O, C/groups, KH, KW]  f32     output channels of group g see the input channels of group g
 * bias    [O]                    f32     NULL means none
 * result  [N, O, OH, OW]         f32     OH = (H + 2*padding - dilation*(KH - 1) - 1) / stride + 1, OW
 * likewise
 *
 * Gradient   x, weight, bias.
 * Errors     CLV_E_SHAPE  channels differ, groups does not divide them, or the kernel is larger than the
 * padded image;
 *            CLV_E_VALUE  a negative padding, stride, dilation or groups;  CLV_E_DTYPE
 * Numerics   sums in f32, their order depends on the shapes and the device only.
 * Source     torch.nn.functional.conv2d.
 */
CLV_API clv_tensor *clv_conv2d(clv_tensor *x, clv_tensor *weight, clv_tensor *bias, const clv_conv2d_config *config);
CLV_API clv_tensor *clv_max_pool2d(clv_tensor *x, const clv_pool2d_config *config);
CLV_API clv_tensor *clv_avg_pool2d(clv_tensor *x, const clv_pool2d_config *config);
CLV_API clv_tensor *clv_global_avg_pool2d(clv_tensor *x);

// ---- normalisation, probability, loss ---------------------------------------------------------------------

CLV_API clv_tensor *clv_softmax(clv_tensor *x, int axis);
CLV_API clv_tensor *clv_log_softmax(clv_tensor *x, int axis);
CLV_API clv_tensor *clv_cross_entropy(clv_tensor *logits, clv_tensor *labels);
CLV_API clv_tensor *clv_mse_loss(clv_tensor *x, clv_tensor *target);
CLV_API clv_tensor *clv_batch_norm(clv_tensor *x, clv_tensor *weight, clv_tensor *bias, clv_tensor *running_mean,
                                   clv_tensor *running_var, bool training, float momentum, float eps);
CLV_API clv_tensor *clv_dropout(clv_tensor *x, float p);

#ifdef __cplusplus
}
#endif
#endif
