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

// ---- elementwise (runtime/ops/elementwise.def) ------------------------------------------------------------------
// Two inputs broadcast as in NumPy: shapes are aligned at the end, a dimension of 1 is repeated.

CLV_API clv_tensor *clv_add(clv_tensor *a, clv_tensor *b);
CLV_API clv_tensor *clv_sub(clv_tensor *a, clv_tensor *b);
CLV_API clv_tensor *clv_mul(clv_tensor *a, clv_tensor *b);
CLV_API clv_tensor *clv_div(clv_tensor *a, clv_tensor *b);
CLV_API clv_tensor *clv_neg(clv_tensor *x);
CLV_API clv_tensor *clv_exp(clv_tensor *x);
CLV_API clv_tensor *clv_log(clv_tensor *x);
CLV_API clv_tensor *clv_sqrt(clv_tensor *x);
CLV_API clv_tensor *clv_square(clv_tensor *x);
CLV_API clv_tensor *clv_abs(clv_tensor *x);
CLV_API clv_tensor *clv_relu(clv_tensor *x);
CLV_API clv_tensor *clv_leaky_relu(clv_tensor *x, float negative_slope);
CLV_API clv_tensor *clv_sigmoid(clv_tensor *x);
CLV_API clv_tensor *clv_tanh(clv_tensor *x);
CLV_API clv_tensor *clv_gelu(clv_tensor *x);
CLV_API clv_tensor *clv_gelu_tanh(clv_tensor *x);
CLV_API clv_tensor *clv_silu(clv_tensor *x);
CLV_API clv_tensor *clv_clamp(clv_tensor *x, float min, float max);
CLV_API clv_tensor *clv_pow_scalar(clv_tensor *x, float exponent);
CLV_API clv_tensor *clv_add_scalar(clv_tensor *x, float value);
CLV_API clv_tensor *clv_mul_scalar(clv_tensor *x, float value);
CLV_API clv_tensor *clv_eq(clv_tensor *a, clv_tensor *b);
CLV_API clv_tensor *clv_ne(clv_tensor *a, clv_tensor *b);
CLV_API clv_tensor *clv_lt(clv_tensor *a, clv_tensor *b);
CLV_API clv_tensor *clv_le(clv_tensor *a, clv_tensor *b);
CLV_API clv_tensor *clv_gt(clv_tensor *a, clv_tensor *b);
CLV_API clv_tensor *clv_ge(clv_tensor *a, clv_tensor *b);
CLV_API clv_tensor *clv_where(clv_tensor *condition, clv_tensor *a, clv_tensor *b);
CLV_API clv_tensor *clv_cast(clv_tensor *x, clv_dtype dtype);
CLV_API clv_tensor *clv_full(clv_graph *graph, clv_dtype dtype, clv_shape shape, float value);

// ---- reductions: over `axes` (n_axes of them, negative counts from the end; n_axes 0: all) ----------------------

CLV_API clv_tensor *clv_sum(clv_tensor *x, const int *axes, int n_axes, bool keepdim);
CLV_API clv_tensor *clv_mean(clv_tensor *x, const int *axes, int n_axes, bool keepdim);
CLV_API clv_tensor *clv_max(clv_tensor *x, const int *axes, int n_axes, bool keepdim);
CLV_API clv_tensor *clv_argmax(clv_tensor *x, int axis, bool keepdim);
CLV_API clv_tensor *clv_sum_to(clv_tensor *x, clv_shape shape);

// ---- shape ------------------------------------------------------------------------------------------------------

CLV_API clv_tensor *clv_reshape(clv_tensor *x, clv_shape shape);
CLV_API clv_tensor *clv_flatten(clv_tensor *x, int start_axis);
CLV_API clv_tensor *clv_transpose(clv_tensor *x, int axis0, int axis1);
CLV_API clv_tensor *clv_permute(clv_tensor *x, const int *axes, int n_axes);
CLV_API clv_tensor *clv_broadcast_to(clv_tensor *x, clv_shape shape);
CLV_API clv_tensor *clv_slice(clv_tensor *x, int axis, int64_t start, int64_t length);
CLV_API clv_tensor *clv_concat(clv_tensor *const *inputs, int n, int axis);

// ---- matmul -----------------------------------------------------------------------------------------------------

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
/** The same with the last two dimensions of a or of b exchanged first, without a copy. Vectors are not transposed. */
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

// ---- convolution and pooling, NCHW ------------------------------------------------------------------------------

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
 *     y[n][o][i][j] = bias[o] + sum_{c,r,s} x[n][c][i*stride - padding + r*dilation][...] * weight[o][c][r][s]
 *
 * x       [N, C, H, W]           f32     0 outside the image
 * weight  [O, C/groups, KH, KW]  f32     output channels of group g see the input channels of group g
 * bias    [O]                    f32     NULL means none
 * result  [N, O, OH, OW]         f32     OH = (H + 2*padding - dilation*(KH - 1) - 1) / stride + 1, OW likewise
 *
 * Gradient   x, weight, bias.
 * Errors     CLV_E_SHAPE  channels differ, groups does not divide them, or the kernel is larger than the padded image;
 *            CLV_E_VALUE  a negative padding, stride, dilation or groups;  CLV_E_DTYPE
 * Numerics   sums in f32, their order depends on the shapes and the device only.
 * Source     torch.nn.functional.conv2d.
 */
CLV_API clv_tensor *clv_conv2d(clv_tensor *x, clv_tensor *weight, clv_tensor *bias, const clv_conv2d_config *config);
CLV_API clv_tensor *clv_max_pool2d(clv_tensor *x, const clv_pool2d_config *config);
CLV_API clv_tensor *clv_avg_pool2d(clv_tensor *x, const clv_pool2d_config *config);
CLV_API clv_tensor *clv_global_avg_pool2d(clv_tensor *x);

// ---- normalisation, probability, loss ---------------------------------------------------------------------------

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
