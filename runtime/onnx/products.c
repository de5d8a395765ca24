// SPDX-License-Identifier: Apache-2.0
// Nodes of products and windows: MatMul, Gemm, convolutions, pools.
#include <math.h>
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

/** A dimension of 1 before the only one, and away again. */
static clv_tensor *to_2d(clv_tensor *x) {
    const clv_shape s = clv_tensor_shape(x);
    return x ? clv__onnx_reshape(x, (int64_t[]){s.dims[0], s.dims[1], 1, s.dims[2]}, 4) : NULL;
}

static clv_tensor *to_1d(clv_tensor *x) {
    const clv_shape s = clv_tensor_shape(x);
    return x ? clv__onnx_reshape(x, (int64_t[]){s.dims[0], s.dims[1], s.dims[3]}, 3) : NULL;
}

static void widen(window *w) {
    w->n = 2;
    w->kernel[1] = w->kernel[0], w->stride[1] = w->stride[0], w->dilation[1] = w->dilation[0];
    w->before[1] = w->before[0], w->after[1] = w->after[0], w->in[1] = w->in[0];
    w->kernel[0] = w->stride[0] = w->dilation[0] = w->in[0] = 1;
    w->before[0] = w->after[0] = 0;
}

static int none_is_negative(int64_t padding) { // (ops.h: a second number of 0 is as the first)
    return padding ? (int)padding : -1;
}

static clv_tensor *conv_2d(clv__onnx_use *use, clv_tensor *x, clv_tensor *weight, clv_tensor *bias, window w,
                           int groups) {
    if (!even(&w)) x = padded(use, x, &w, 0);
    const clv_conv2d_config config = {.stride = {(int)w.stride[0], (int)w.stride[1]},
                                      .padding = {(int)w.before[0], none_is_negative(w.before[1])},
                                      .dilation = {(int)w.dilation[0], (int)w.dilation[1]},
                                      .groups = groups};
    return clv_conv2d(x, weight, bias, &config);
}

/** Along three dimensions: the sum over the kernel's depth of convolutions of pictures, whose depth is in the batch. */
static clv_tensor *conv_3d(clv__onnx_use *use, clv_tensor *x, clv_tensor *weight, clv_tensor *bias, window w,
                           int groups) {
    x = padded(use, x, &w, 0);
    const clv_shape s = clv_tensor_shape(x), k = clv_tensor_shape(weight);
    const int64_t depth = places(&w, 0, false);
    const window flat = {.n = 2,
                         .kernel = {w.kernel[1], w.kernel[2]},
                         .stride = {w.stride[1], w.stride[2]},
                         .dilation = {w.dilation[1], w.dilation[2]},
                         .in = {w.in[1], w.in[2]}};
    clv_tensor *y = NULL;
    for (int64_t r = 0; x && weight && r < w.kernel[0]; r++) {
        clv_tensor *slice = clv__onnx_part(x, 2, r * w.dilation[0], (depth - 1) * w.stride[0] + 1);
        if (w.stride[0] > 1) {
            int64_t index[4096];
            if (depth > 4096) return NULL;
            for (int64_t i = 0; i < depth; i++) index[i] = i * w.stride[0];
            slice = clv__onnx_pick(use, slice, 2, index, depth);
        }
        slice = clv__onnx_permute(slice, (int[]){0, 2, 1, 3, 4}, 5);
        slice = clv__onnx_reshape(slice, (int64_t[]){s.dims[0] * depth, s.dims[1], s.dims[3], s.dims[4]}, 4);
        clv_tensor *part = clv__onnx_part(weight, 2, r, 1);
        part = clv__onnx_reshape(part, (int64_t[]){k.dims[0], k.dims[1], k.dims[3], k.dims[4]}, 4);
        clv_tensor *one = conv_2d(use, slice, part, r ? NULL : bias, flat, groups);
        y = y ? clv_add(y, one) : one;
    }
    const clv_shape o = clv_tensor_shape(y);
    y = y ? clv__onnx_reshape(y, (int64_t[]){s.dims[0], depth, o.dims[1], o.dims[2], o.dims[3]}, 5) : NULL;
    return clv__onnx_permute(y, (int[]){0, 2, 1, 3, 4}, 5);
}

static clv_tensor *conv(clv__onnx_use *use, clv_tensor *x, clv_tensor *weight, clv_tensor *bias, window w,
                        int groups) {
    if (w.n == 3) return conv_3d(use, x, weight, bias, w, groups);
    if (w.n == 2) return conv_2d(use, x, weight, bias, w, groups);
    widen(&w);
    return to_1d(conv_2d(use, to_2d(x), to_2d(weight), bias, w, groups));
}

static void build_conv(clv__onnx_use *use) {
    const clv_shape kernel = clv__onnx_shape(use, 1);
    window w;
    if (kernel.rank != clv__onnx_shape(use, 0).rank)
        clv__onnx_fail(use, CLV_E_SHAPE, "x and weight have other ranks");
    if (clv__onnx_failed(use) || !read_window(use, kernel.dims + 2, &w)) return;
    clv__onnx_give(use, 0,
                   conv(use, clv__onnx_float(use, 0), clv__onnx_float(use, 1), clv__onnx_float(use, 2), w,
                        (int)clv__onnx_int(use, "group", 1)));
}

/** n - 1 zeros between two numbers along a dimension. */
static clv_tensor *spread(clv__onnx_use *use, clv_tensor *x, int axis, int64_t n) {
    clv_shape s = clv_tensor_shape(x), wide = s;
    if (n == 1 || !x) return x;
    wide.rank++;
    for (int d = s.rank; d > axis + 1; d--) wide.dims[d] = s.dims[d - 1];
    wide.dims[axis + 1] = 1;
    clv_tensor *parts[2] = {clv_reshape(x, wide), NULL};
    wide.dims[axis + 1] = n - 1;
    parts[1] = clv_full(use->graph, CLV_DTYPE_F32, wide, 0);
    const int64_t size = s.dims[axis];
    s.dims[axis] = size * n;
    return clv__onnx_part(clv_reshape(clv_concat(parts, 2, axis + 1), s), axis, 0, (size - 1) * n + 1);
}

static clv_tensor *flipped(clv__onnx_use *use, clv_tensor *x, int axis, int64_t n) {
    int64_t index[1024];
    if (n == 1) return x;
    if (n > 1024) return NULL;
    for (int64_t i = 0; i < n; i++) index[i] = n - 1 - i;
    return clv__onnx_pick(use, x, axis, index, n);
}

/** Zeros between the numbers, then a convolution with the kernel turned round and its channels exchanged. */
static void build_conv_transpose(clv__onnx_use *use) {
    const clv_shape kernel = clv__onnx_shape(use, 1), s = clv__onnx_shape(use, 0);
    const int64_t groups = clv__onnx_int(use, "group", 1);
    int64_t more[3] = {0}, wanted[5] = {0};
    window w;
    if (kernel.rank != s.rank) clv__onnx_fail(use, CLV_E_SHAPE, "x and weight have other ranks");
    if (clv__onnx_failed(use) || !read_window(use, kernel.dims + 2, &w)) return;
    clv__onnx_ints(use, "output_padding", more, 3);
    const int sizes = clv__onnx_ints(use, "output_shape", wanted, 5);
    const bool upper = clv__onnx_word(use, "auto_pad", "SAME_UPPER", false),
               lower = clv__onnx_word(use, "auto_pad", "SAME_LOWER", false);
    clv_tensor *x = clv__onnx_float(use, 0), *weight = clv__onnx_float(use, 1);
    window inner = {.n = w.n};
    int64_t before[5] = {0}, after[5] = {0},
            dims[6] = {groups, kernel.dims[0] / (groups > 0 ? groups : 1), kernel.dims[1]};
    int axes[6] = {0, 2, 1, 3, 4, 5};
    for (int d = 0; d < w.n; d++) {
        if (sizes || upper || lower) {
            const int64_t size = sizes ? wanted[sizes - w.n + d] : s.dims[2 + d] * w.stride[d];
            const int64_t all =
                w.stride[d] * (s.dims[2 + d] - 1) + more[d] + (w.kernel[d] - 1) * w.dilation[d] + 1 - size;
            const int64_t half = all >= 0 ? all / 2 : -((1 - all) / 2); // rounded down
            w.before[d] = upper ? half : all - half;
            w.after[d] = all - w.before[d];
        }
        const int64_t reach = w.dilation[d] * (w.kernel[d] - 1);
        x = spread(use, x, 2 + d, w.stride[d]);
        weight = flipped(use, weight, 2 + d, w.kernel[d]);
        before[2 + d] = reach - w.before[d];
        after[2 + d] = reach - w.after[d] + more[d];
        dims[3 + d] = w.kernel[d];
        inner.kernel[d] = w.kernel[d], inner.stride[d] = 1, inner.dilation[d] = w.dilation[d];
    }
    if (groups < 1 || kernel.dims[0] % groups || !weight) {
        clv__onnx_fail(use, CLV_E_UNSUPPORTED, "a kernel of this size or these groups");
        return;
    }
    weight = clv__onnx_permute(clv__onnx_reshape(weight, dims, 3 + w.n), axes, 3 + w.n);
    int64_t turned[5] = {groups * kernel.dims[1], kernel.dims[0] / groups, w.kernel[0], w.kernel[1],
                         w.kernel[2]};
    weight = clv__onnx_reshape(weight, turned, 2 + w.n);
    x = clv__onnx_pad(use, x, before, after, 0);
    const clv_shape grown = clv_tensor_shape(x);
    for (int d = 0; d < w.n; d++) inner.in[d] = grown.dims[2 + d];
    clv__onnx_give(use, 0, conv(use, x, weight, clv__onnx_float(use, 2), inner, (int)groups));
}

// ---- pools ----------------------------------------------------------------------------------------------------------

static clv_pool2d_config pool_config(const window *w) {
    return (clv_pool2d_config){.kernel = {(int)w->kernel[0], (int)w->kernel[1]},
                               .stride = {(int)w->stride[0], (int)w->stride[1]},
                               .padding = {(int)w->before[0], none_is_negative(w->before[1])},
                               .dilation = {(int)w->dilation[0], (int)w->dilation[1]}};
}

/** Padding that ops of ours do not take: another one on each side, or of more than half the kernel. */
static bool unusual(const window *w) {
    for (int d = 0; d < w->n; d++)
        if (2 * w->before[d] > w->kernel[d]) return true;
    return !even(w);
}

static clv_tensor *max_2d(clv__onnx_use *use, clv_tensor *x, window w, bool ceil_mode) {
    if (unusual(&w)) x = padded(use, x, &w, -INFINITY);
    clv_pool2d_config config = pool_config(&w);
    config.ceil_mode = ceil_mode;
    return clv_max_pool2d(x, &config);
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

static clv_tensor *mean_2d(clv__onnx_use *use, clv_tensor *x, window w, bool ceil_mode,
                           bool include_padding) {
    bool dilated = false;
    for (int d = 0; d < w.n; d++) dilated = dilated || w.dilation[d] != 1;
    if (dilated || unusual(&w)) return mean_by_counts(use, x, w, ceil_mode, include_padding);
    clv_pool2d_config config = pool_config(&w);
    config.ceil_mode = ceil_mode;
    config.exclude_padding = !include_padding;
    return clv_avg_pool2d(x, &config);
}

static void build_max_pool(clv__onnx_use *use) {
    int64_t kernel[3];
    window w;
    if (use->n_out > 1 && use->out[1])
        clv__onnx_fail(use, CLV_E_UNSUPPORTED, "the places of the largest are not told");
    if (!clv__onnx_ints(use, "kernel_shape", kernel, 3)) clv__onnx_fail(use, CLV_E_VALUE, "no kernel_shape");
    if (clv__onnx_failed(use) || !read_window(use, kernel, &w)) return;
    const bool ceil_mode = clv__onnx_int(use, "ceil_mode", 0);
    const clv_shape s = clv__onnx_shape(use, 0);
    clv_tensor *x = clv__onnx_float(use, 0);
    if (w.n == 1) {
        widen(&w);
        x = to_1d(max_2d(use, to_2d(x), w, ceil_mode));
    } else if (w.n == 2) {
        x = max_2d(use, x, w, ceil_mode);
    } else { // pictures, then their depth
        const window flat = {2,
                             {w.kernel[1], w.kernel[2]},
                             {w.stride[1], w.stride[2]},
                             {w.dilation[1], w.dilation[2]},
                             {w.before[1], w.before[2]},
                             {w.after[1], w.after[2]},
                             {w.in[1], w.in[2]}};
        x = max_2d(
            use, clv__onnx_reshape(x, (int64_t[]){s.dims[0], s.dims[1] * s.dims[2], s.dims[3], s.dims[4]}, 4),
            flat, ceil_mode);
        const clv_shape o = clv_tensor_shape(x);
        const window deep = {2,
                             {w.kernel[0], 1},
                             {w.stride[0], 1},
                             {w.dilation[0], 1},
                             {w.before[0], 0},
                             {w.after[0], 0},
                             {w.in[0], o.dims[2] * o.dims[3]}};
        x = x ? clv__onnx_reshape(x, (int64_t[]){s.dims[0], s.dims[1], s.dims[2], o.dims[2] * o.dims[3]}, 4)
              : NULL;
        x = max_2d(use, x, deep, ceil_mode);
        const clv_shape p = clv_tensor_shape(x);
        x = x ? clv__onnx_reshape(x, (int64_t[]){s.dims[0], s.dims[1], p.dims[2], o.dims[2], o.dims[3]}, 5)
              : NULL;
    }
    clv__onnx_give(use, 0, clv__onnx_as_given(use, x));
}

static void build_average_pool(clv__onnx_use *use) {
    int64_t kernel[3];
    window w;
    if (!clv__onnx_ints(use, "kernel_shape", kernel, 3)) clv__onnx_fail(use, CLV_E_VALUE, "no kernel_shape");
    if (clv__onnx_failed(use) || !read_window(use, kernel, &w)) return;
    const bool ceil_mode = clv__onnx_int(use, "ceil_mode", 0),
               include = clv__onnx_int(use, "count_include_pad", 0);
    clv_tensor *x = clv__onnx_float(use, 0);
    if (w.n == 1) {
        widen(&w);
        x = to_1d(mean_2d(use, to_2d(x), w, ceil_mode, include));
    } else {
        x = w.n == 2 ? mean_2d(use, x, w, ceil_mode, include) : mean_by_counts(use, x, w, ceil_mode, include);
    }
    clv__onnx_give(use, 0, x);
}

static int spatial_axes(const clv__onnx_use *use, int axes[CLV_MAX_RANK]) {
    const int rank = clv__onnx_shape((clv__onnx_use *)use, 0).rank;
    for (int d = 2; d < rank; d++) axes[d - 2] = d;
    return rank > 2 ? rank - 2 : 0;
}

static void build_global_average_pool(clv__onnx_use *use) {
    int axes[CLV_MAX_RANK];
    const int n = spatial_axes(use, axes);
    clv_tensor *x = clv__onnx_float(use, 0);
    clv__onnx_give(use, 0, n ? clv_mean(x, axes, n, true) : x);
}

static void build_global_max_pool(clv__onnx_use *use) {
    int axes[CLV_MAX_RANK];
    const int n = spatial_axes(use, axes);
    clv_tensor *x = clv__onnx_float(use, 0);
    clv__onnx_give(use, 0, n ? clv_max(x, axes, n, true) : x);
}

const clv__onnx_row clv__onnx_products[] = {
    {"AveragePool", build_average_pool},
    {"Conv", build_conv},
    {"ConvTranspose", build_conv_transpose},
    {"Gemm", build_gemm},
    {"GlobalAveragePool", build_global_average_pool},
    {"GlobalMaxPool", build_global_max_pool},
    {"MatMul", build_matmul},
    {"MaxPool", build_max_pool},
    {NULL, NULL},
};

clv_tensor *clv__onnx_by(clv__onnx_use *use, const char *op, clv_tensor *const *in, int n) {
    clv__made given[4], made = {0};
    clv__made *inputs[4] = {NULL}, *output = &made;
    clv__onnx_use inner = *use;
    for (int i = 0; i < n; i++) {
        given[i] = (clv__made){.type = CLV__ONNX_FLOAT, .tensor = in[i]};
        inputs[i] = in[i] ? &given[i] : NULL;
    }
    inner.in = inputs, inner.n_in = n;
    inner.out = &output, inner.n_out = 1;
    for (const clv__onnx_row *row = clv__onnx_products; row->op && !clv__onnx_failed(use); row++)
        if (!strcmp(row->op, op)) row->build(&inner);
    return made.tensor;
}
