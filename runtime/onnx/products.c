// SPDX-License-Identifier: Apache-2.0
// Nodes of products and windows: MatMul, Gemm, convolutions, pools.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "onnx/import.h"

static void build_matmul(clv__onnx_use *use) {
    clv_tensor *y = clv_matmul(clv__onnx_float(use, 0), clv__onnx_float(use, 1));
    clv__onnx_give(use, 0, clv__onnx_as_given(use, y));
}

static void build_gemm(clv__onnx_use *use) {
    const bool a = clv__onnx_int(use, "transA", 0), b = clv__onnx_int(use, "transB", 0);
    const float alpha = (float)clv__onnx_real(use, "alpha", 1), beta = (float)clv__onnx_real(use, "beta", 1);
    const clv_shape weight = clv__onnx_shape(use, 1), bias = clv__onnx_shape(use, 2);
    clv_tensor *x = clv__onnx_float(use, 0), *w = clv__onnx_float(use, 1), *c = clv__onnx_float(use, 2), *y;
    if (!a && b && alpha == 1 && beta == 1 && (!c || (bias.rank == 1 && bias.dims[0] == weight.dims[0]))) {
        y = clv_linear(x, w, c);
    } else {
        y = clv_matmul_t(x, a, w, b);
        if (alpha != 1) y = clv_mul_scalar(y, alpha);
        if (c) y = clv_add(y, beta != 1 ? clv_mul_scalar(c, beta) : c);
    }
    clv__onnx_give(use, 0, clv__onnx_as_given(use, y));
}

// ---- windows --------------------------------------------------------------------------------------------------------

/** What a node says of its windows, along 1 to 3 dimensions. */
typedef struct window {
    int n;
    int64_t kernel[3], stride[3], dilation[3], before[3], after[3], in[3];
} window;

/** How many places a window has along a dimension. */
static int64_t places(const window *w, int d, bool ceil_mode) {
    const int64_t room = w->in[d] + w->before[d] + w->after[d] - w->dilation[d] * (w->kernel[d] - 1) - 1;
    int64_t n = (ceil_mode ? room + w->stride[d] - 1 : room) / w->stride[d] + 1;
    if (ceil_mode && (n - 1) * w->stride[d] >= w->in[d] + w->before[d])
        n--; // the last one would begin behind the end
    return n;
}

/** Padding so that there is a window for each stride; the odd one stands behind, or before. */
static void same_padding(window *w, int d, bool upper) {
    const int64_t n = (w->in[d] + w->stride[d] - 1) / w->stride[d];
    int64_t all = (n - 1) * w->stride[d] + w->dilation[d] * (w->kernel[d] - 1) + 1 - w->in[d];
    if (all < 0) all = 0;
    w->before[d] = upper ? all / 2 : all - all / 2;
    w->after[d] = all - w->before[d];
}

static bool read_window(clv__onnx_use *use, const int64_t *kernel, window *w) {
    const clv_shape x = clv__onnx_shape(use, 0);
    int64_t pads[6] = {0};
    *w = (window){.n = x.rank - 2};
    if (w->n < 1 || w->n > 3) {
        clv__onnx_fail(use, CLV_E_UNSUPPORTED, "windows along %d dimensions; 1 to 3 are known", w->n);
        return false;
    }
    const int strides = clv__onnx_ints(use, "strides", w->stride, 3),
              dilations = clv__onnx_ints(use, "dilations", w->dilation, 3);
    const int padded = clv__onnx_ints(use, "pads", pads, 6);
    if ((strides && strides != w->n) || (dilations && dilations != w->n) || (padded && padded != 2 * w->n)) {
        clv__onnx_fail(use, CLV_E_VALUE, "strides, dilations and pads are not of %d dimensions", w->n);
        return false;
    }
    for (int d = 0; d < w->n; d++) {
        w->kernel[d] = kernel[d];
        w->in[d] = x.dims[2 + d];
        if (!strides) w->stride[d] = 1;
        if (!dilations) w->dilation[d] = 1;
        w->before[d] = pads[d];
        w->after[d] = pads[w->n + d];
        const bool upper = clv__onnx_word(use, "auto_pad", "SAME_UPPER", false);
        if (w->stride[d] < 1 || w->dilation[d] < 1 || w->kernel[d] < 1) {
            clv__onnx_fail(use, CLV_E_VALUE, "a kernel, stride or dilation below 1");
            return false;
        }
        if (upper || clv__onnx_word(use, "auto_pad", "SAME_LOWER", false)) same_padding(w, d, upper);
    }
    return true;
}

static bool even(const window *w) {
    for (int d = 0; d < w->n; d++)
        if (w->before[d] != w->after[d] || w->before[d] < 0) return false;
    return true;
}

/** The picture with its padding written out, and a window without. */
static clv_tensor *padded(clv__onnx_use *use, clv_tensor *x, window *w, double value) {
    int64_t before[5] = {0}, after[5] = {0};
    for (int d = 0; d < w->n; d++) {
        before[2 + d] = w->before[d];
        after[2 + d] = w->after[d];
        w->in[d] += w->before[d] + w->after[d];
        w->before[d] = w->after[d] = 0;
    }
    return clv__onnx_pad(use, x, before, after, value);
}

static clv_op_argument number(const char *name, int64_t value) {
    return (clv_op_argument){name, (double)value, NULL, 0, NULL};
}

/** Numbers of a window as an op of ours has them: one, or a list. */
static clv_op_argument along(const window *w, const char *name, const int64_t *numbers) {
    return (clv_op_argument){name, (double)numbers[0], w->n > 1 ? numbers : NULL, w->n > 1 ? w->n : 0, NULL};
}

/** An op of ours for windows along so many dimensions: `conv` is conv1d, conv2d or conv3d. */
static clv_tensor *call(const window *w, const char *op, clv_tensor *const in[3],
                        const clv_op_argument *arguments, int n) {
    char name[32];
    snprintf(name, sizeof name, "%s%dd", op, w->n);
    return clv_op_call(NULL, name, in, in[1] ? 3 : 1, arguments, n);
}

static clv_tensor *conv(clv__onnx_use *use, clv_tensor *x, clv_tensor *weight, clv_tensor *bias, window w,
                        int64_t groups) {
    if (!even(&w)) x = padded(use, x, &w, 0);
    const clv_op_argument arguments[] = {along(&w, "stride", w.stride), along(&w, "padding", w.before),
                                         along(&w, "dilation", w.dilation), number("groups", groups)};
    return call(&w, "conv", (clv_tensor *[]){x, weight, bias}, arguments, 4);
}

static void build_conv(clv__onnx_use *use) {
    const clv_shape kernel = clv__onnx_shape(use, 1);
    window w;
    if (kernel.rank != clv__onnx_shape(use, 0).rank)
        clv__onnx_fail(use, CLV_E_SHAPE, "x and weight differ in rank");
    if (clv__onnx_failed(use) || !read_window(use, kernel.dims + 2, &w)) return;
    clv__onnx_give(use, 0,
                   conv(use, clv__onnx_float(use, 0), clv__onnx_float(use, 1), clv__onnx_float(use, 2), w,
                        clv__onnx_int(use, "group", 1)));
}

/** Padding of a node's own, for a result of the size that it wants. */
static void read_transposed(clv__onnx_use *use, window *w, int64_t more[3]) {
    const clv_shape s = clv__onnx_shape(use, 0);
    int64_t wanted[5] = {0};
    clv__onnx_ints(use, "output_padding", more, 3);
    const int sizes = clv__onnx_ints(use, "output_shape", wanted, 5);
    const bool upper = clv__onnx_word(use, "auto_pad", "SAME_UPPER", false),
               lower = clv__onnx_word(use, "auto_pad", "SAME_LOWER", false);
    for (int d = 0; d < w->n && (sizes || upper || lower); d++) {
        const int64_t size = sizes ? wanted[sizes - w->n + d] : s.dims[2 + d] * w->stride[d];
        const int64_t all =
            w->stride[d] * (s.dims[2 + d] - 1) + more[d] + (w->kernel[d] - 1) * w->dilation[d] + 1 - size;
        const int64_t half = all >= 0 ? all / 2 : -((1 - all) / 2); // rounded down
        w->before[d] = upper ? half : all - half;
        w->after[d] = all - w->before[d];
    }
}

/** Does our op take this padding? Else the whole is made, then cut or filled up. */
static bool is_usual(const window *w, const int64_t more[3]) {
    for (int d = 0; d < w->n; d++)
        if (more[d] < 0 || (more[d] >= w->stride[d] && more[d] >= w->dilation[d])) return false;
    return even(w);
}

static clv_tensor *transposed(clv_tensor *x, clv_tensor *weight, clv_tensor *bias, const window *w,
                              const int64_t more[3], int64_t groups) {
    const clv_op_argument arguments[] = {along(w, "stride", w->stride), along(w, "padding", w->before),
                                         along(w, "dilation", w->dilation), along(w, "output_padding", more),
                                         number("groups", groups)};
    return call(w, "conv_transpose", (clv_tensor *[]){x, weight, bias}, arguments, 5);
}

static void build_conv_transpose(clv__onnx_use *use) {
    const clv_shape kernel = clv__onnx_shape(use, 1);
    const int64_t groups = clv__onnx_int(use, "group", 1), none[3] = {0};
    int64_t more[3] = {0}, before[5] = {0}, after[5] = {0};
    window w;
    if (kernel.rank != clv__onnx_shape(use, 0).rank)
        clv__onnx_fail(use, CLV_E_SHAPE, "x and weight differ in rank");
    if (groups < 1 || groups > INT32_MAX)
        clv__onnx_fail(use, CLV_E_VALUE, "group is %lld", (long long)groups);
    if (clv__onnx_failed(use) || !read_window(use, kernel.dims + 2, &w)) return;
    read_transposed(use, &w, more);
    clv_tensor *x = clv__onnx_float(use, 0), *weight = clv__onnx_float(use, 1),
               *bias = clv__onnx_float(use, 2);
    if (is_usual(&w, more)) {
        clv__onnx_give(use, 0, transposed(x, weight, bias, &w, more, groups));
        return;
    }
    window whole = w;
    for (int d = 0; d < w.n; d++) {
        whole.before[d] = whole.after[d] = 0;
        before[2 + d] = -w.before[d];
        after[2 + d] = more[d] - w.after[d];
    }
    clv_tensor *y = clv__onnx_pad(use, transposed(x, weight, NULL, &whole, none, groups), before, after, 0);
    int64_t channels[5] = {clv_tensor_shape(bias).dims[0], 1, 1, 1};
    clv__onnx_give(use, 0, bias ? clv_add(y, clv__onnx_reshape(bias, channels, 1 + w.n)) : y);
}

// ---- pools ----------------------------------------------------------------------------------------------------------

static clv_tensor *pooled(clv_tensor *x, const window *w, bool ceil_mode, bool means, bool exclude_padding) {
    const clv_op_argument arguments[] = {along(w, "kernel", w->kernel), along(w, "stride", w->stride),
                                         along(w, "padding", w->before), number("ceil_mode", ceil_mode),
                                         means ? number("exclude_padding", exclude_padding)
                                               : along(w, "dilation", w->dilation)};
    return call(w, means ? "avg_pool" : "max_pool", (clv_tensor *[]){x, NULL, NULL}, arguments, 5);
}

/** Padding that ops of ours do not take: another one on each side, or of more than half the kernel. */
static bool unusual(const window *w) {
    for (int d = 0; d < w->n; d++)
        if (2 * w->before[d] > w->kernel[d]) return true;
    return !even(w);
}

/** Means of windows of any kind: sums by a convolution with ones, times a table of how many count. */
static clv_tensor *mean_by_counts(clv__onnx_use *use, clv_tensor *x, window w, bool ceil_mode,
                                  bool include_padding) {
    const clv_shape s = clv_tensor_shape(x);
    int64_t n[3] = {1, 1, 1}, grown[3];
    const window of = w;
    for (int d = 0; d < w.n; d++) {
        n[d] = places(&w, d, ceil_mode);
        const int64_t needed = (n[d] - 1) * w.stride[d] + w.dilation[d] * (w.kernel[d] - 1) + 1;
        grown[d] = needed - w.in[d] - w.before[d];
        if (grown[d] < w.after[d]) grown[d] = w.after[d];
        w.after[d] = grown[d];
    }
    clv_shape table = {.rank = w.n}, ones = {.rank = 2 + w.n, .dims = {1, 1}};
    int64_t rows[5] = {s.dims[0] * s.dims[1], 1}, back[5] = {s.dims[0], s.dims[1]};
    for (int d = 0; d < w.n; d++) {
        table.dims[d] = back[2 + d] = n[d];
        ones.dims[2 + d] = w.kernel[d];
        rows[2 + d] = s.dims[2 + d];
    }
    clv__known *weight = clv__onnx_new_known(use, CLV__ONNX_FLOAT, table);
    for (int64_t i = 0, all = weight ? clv_shape_numel(&table) : 0; i < all; i++) {
        double count = 1;
        int64_t rest = i;
        for (int d = w.n - 1; d >= 0; d--) {
            const int64_t from = rest % n[d] * w.stride[d] - of.before[d];
            int64_t inside = 0;
            rest /= n[d];
            for (int64_t r = 0; r < w.kernel[d]; r++) {
                const int64_t at = from + r * w.dilation[d];
                inside += include_padding ? at < of.in[d] + of.after[d] : at >= 0 && at < of.in[d];
            }
            count *= (double)inside;
        }
        weight->v[i] = count > 0 ? 1 / count : 0;
    }
    if (!weight) return NULL;
    x = padded(use, clv__onnx_reshape(x, rows, 2 + w.n), &w, 0);
    clv_tensor *y = conv(use, x, clv_full(use->graph, CLV_DTYPE_F32, ones, 1), NULL, w, 1);
    return clv_mul(clv__onnx_reshape(y, back, 2 + w.n), clv__onnx_constant(use, weight));
}

static clv_tensor *mean(clv__onnx_use *use, clv_tensor *x, window w, bool ceil_mode, bool include_padding) {
    bool dilated = false;
    for (int d = 0; d < w.n; d++) dilated = dilated || w.dilation[d] != 1;
    if (dilated || unusual(&w)) return mean_by_counts(use, x, w, ceil_mode, include_padding);
    return pooled(x, &w, ceil_mode, true, !include_padding);
}

/** Of each place of the result and each of its window, [K,O], which of a channel's numbers it is, or how many there are where that is padding;
 *  columns first, if the node says so. `from`: the same with rows first, [O,K]. */
static bool window_places(clv__onnx_use *use, const window *w, const int64_t *out, clv__known **to,
                          clv__known **from) {
    const bool by_columns = clv__onnx_int(use, "storage_order", 0) != 0;
    int64_t n_out = 1, n_kernel = 1, all = 1;
    for (int d = 0; d < w->n; d++)
        n_out *= out[d], n_kernel = clv__onnx_times(n_kernel, w->kernel[d]), all *= w->in[d];
    *to = clv__onnx_new_known(use, CLV__ONNX_INT32, CLV_SHAPE(n_kernel, n_out));
    *from = clv__onnx_new_known(use, CLV__ONNX_INT32, CLV_SHAPE(clv__onnx_times(n_out, n_kernel)));
    for (int64_t i = 0; *to && *from && i < n_out * n_kernel; i++) {
        int64_t o = i / n_kernel, k = i % n_kernel, row = 0, column = 0, rows = 1, columns = all;
        bool inside = true;
        for (int d = w->n - 1; d >= 0; d--) {
            const int64_t at = o % out[d] * w->stride[d] - w->before[d] + k % w->kernel[d] * w->dilation[d];
            o /= out[d], k /= w->kernel[d], columns /= w->in[d];
            inside = inside && at >= 0 && at < w->in[d];
            row += at * rows, rows *= w->in[d];
            column += at * columns;
        }
        (*from)->v[i] = (double)(inside ? row : all);
        (*to)->v[i % n_kernel * n_out + i / n_kernel] = (double)(inside ? (by_columns ? column : row) : all);
    }
    return *to && *from;
}

/** Where in all of x the largest of each window is: the windows are taken out and asked. */
static clv_tensor *places_of_largest(clv__onnx_use *use, clv_tensor *x, const window *w) {
    const clv_shape s = clv_tensor_shape(x);
    int64_t out[3], back[5] = {s.dims[0], s.dims[1]}, n_out = 1, n_in = 1;
    for (int d = 0; d < w->n; d++) {
        out[d] = back[2 + d] = places(w, d, clv__onnx_int(use, "ceil_mode", 0));
        n_out = out[d] > 0 ? clv__onnx_times(n_out, out[d]) : 0;
        n_in *= w->in[d];
    }
    const int64_t rows = s.dims[0] * s.dims[1];
    clv__known *to, *from;
    if (n_out < 1 || n_in < 1 || clv__onnx_failed(use) || !window_places(use, w, out, &to, &from))
        return NULL;
    clv_tensor *none = clv_full(use->graph, CLV_DTYPE_F32, CLV_SHAPE(rows, 1), -INFINITY);
    x = clv_concat((clv_tensor *[]){clv_reshape(x, CLV_SHAPE(rows, n_in)), none}, 2, 1);
    x = clv_index_select(x, 1, clv__onnx_constant(use, from));
    x = clv_argmax(clv_reshape(x, CLV_SHAPE(rows, n_out, from->shape.dims[0] / n_out)), 2, false);
    x = clv_gather(clv__onnx_constant(use, to), 0, x);
    clv_tensor *before = clv__onnx_with(use, clv_mul, clv__onnx_places(use, rows, 0, 2), (double)n_in);
    return clv__onnx_reshape(clv_add(x, before), back, s.rank);
}

static void build_max_pool(clv__onnx_use *use) {
    int64_t kernel[3];
    window w;
    if (!clv__onnx_ints(use, "kernel_shape", kernel, 3)) clv__onnx_fail(use, CLV_E_VALUE, "no kernel_shape");
    if (clv__onnx_failed(use) || !read_window(use, kernel, &w)) return;
    clv_tensor *x = clv__onnx_float(use, 0);
    if (use->n_out > 1 && use->out[1])
        clv__onnx_give_type(use, 1, places_of_largest(use, x, &w), CLV__ONNX_INT64);
    if (unusual(&w)) x = padded(use, x, &w, -INFINITY);
    x = pooled(x, &w, clv__onnx_int(use, "ceil_mode", 0), false, false);
    clv__onnx_give(use, 0, clv__onnx_as_given(use, x));
}

/** Each number at the place that MaxPool told, among zeros; a shape that is wanted may be larger. */
static void build_max_unpool(clv__onnx_use *use) {
    const clv_shape s = clv__onnx_shape(use, 0), index = clv__onnx_shape(use, 1);
    int64_t kernel[3], wanted[CLV_MAX_RANK], before[CLV_MAX_RANK] = {0}, after[CLV_MAX_RANK] = {0};
    clv_shape shape = s;
    window w;
    if (!clv__onnx_ints(use, "kernel_shape", kernel, 3)) clv__onnx_fail(use, CLV_E_VALUE, "no kernel_shape");
    if (!clv_shape_equal(&s, &index)) clv__onnx_fail(use, CLV_E_SHAPE, "it has not a place for each number");
    if (clv__onnx_failed(use) || !read_window(use, kernel, &w)) return;
    for (int d = 0; d < w.n; d++)
        shape.dims[2 + d] = (s.dims[2 + d] - 1) * w.stride[d] + w.kernel[d] - w.before[d] - w.after[d];
    const int n = clv__onnx_has(use, 2) ? clv__onnx_numbers(use, 2, wanted, CLV_MAX_RANK) : 0;
    for (int d = 0; d < n && n == shape.rank; d++) after[d] = wanted[d] - shape.dims[d];
    const int64_t all = clv_shape_numel(&shape);
    if (clv__onnx_failed(use)) return;
    if (all < 0 || (n && n != shape.rank)) {
        clv__onnx_fail(use, CLV_E_SHAPE, "a result of another rank, or without a size");
        return;
    }
    clv_tensor *y = clv_full(use->graph, CLV_DTYPE_F32, CLV_SHAPE(all), 0);
    y = clv_scatter(y, 0, clv__onnx_flat(clv__onnx_i32(use, 1)), clv__onnx_flat(clv__onnx_float(use, 0)));
    clv__onnx_give(use, 0,
                   clv__onnx_pad(use, clv__onnx_reshape(y, shape.dims, shape.rank), before, after, 0));
}

static void build_average_pool(clv__onnx_use *use) {
    int64_t kernel[3];
    window w;
    if (!clv__onnx_ints(use, "kernel_shape", kernel, 3)) clv__onnx_fail(use, CLV_E_VALUE, "no kernel_shape");
    if (clv__onnx_failed(use) || !read_window(use, kernel, &w)) return;
    const bool ceil_mode = clv__onnx_int(use, "ceil_mode", 0),
               include = clv__onnx_int(use, "count_include_pad", 0);
    clv__onnx_give(use, 0, mean(use, clv__onnx_float(use, 0), w, ceil_mode, include));
}

static void build_global_pool(clv__onnx_use *use) {
    clv_tensor *x = clv__onnx_float(use, 0);
    int axes[CLV_MAX_RANK], n = 0;
    for (int d = 2; d < clv__onnx_shape(use, 0).rank; d++) axes[n++] = d;
    clv__onnx_give(use, 0, n ? (use->row->which ? clv_max : clv_mean)(x, axes, n, true) : x);
}

const clv__onnx_row clv__onnx_products[] = {
    {"AveragePool", .build = build_average_pool},
    {"Conv", .build = build_conv},
    {"ConvTranspose", .build = build_conv_transpose},
    {"Gemm", .build = build_gemm},
    {"GlobalAveragePool", .build = build_global_pool},
    {"GlobalMaxPool", build_global_pool, .which = 1},
    {"MatMul", .build = build_matmul},
    {"MaxPool", .build = build_max_pool},
    {"MaxUnpool", .build = build_max_unpool},
    {0},
};

clv_tensor *clv__onnx_by(clv__onnx_use *use, const char *op, clv_tensor *const *in, int n) {
    clv__made given[4], made = {0};
    clv__made *inputs[4] = {0}, *output = &made;
    clv__onnx_use inner = *use;
    for (int i = 0; i < n; i++) {
        given[i] = (clv__made){.type = CLV__ONNX_FLOAT, .tensor = in[i]};
        inputs[i] = in[i] ? &given[i] : NULL;
    }
    inner.in = inputs, inner.n_in = n;
    inner.out = &output, inner.n_out = 1;
    for (const clv__onnx_row *row = clv__onnx_products; row->op && !clv__onnx_failed(use); row++)
        if (!strcmp(row->op, op)) inner.row = row, row->build(&inner);
    return made.tensor;
}
