// SPDX-License-Identifier: Apache-2.0
// Signals and sampled pictures: Fourier transforms by tables, windows, grids, pools of powers. Source: the
// operators of ONNX 1.23.
#include <math.h>

#include "onnx/import.h"

static const double PI = 3.14159265358979323846;

// ---- Fourier -----------------------------------------------------------------------------------------

/** cos or sin of 2 pi k t / n, times `times`: [rows, columns]. */
static clv__known *circle(clv__onnx_use *use, int64_t rows, int64_t columns, int64_t n, double (*of)(double),
                          double times) {
    if ((double)rows * (double)columns > (1 << 24)) {
        clv__onnx_fail(use, CLV_E_UNSUPPORTED, "a transform of %lld places by a table", (long long)n);
        return NULL;
    }
    clv__known *table = clv__onnx_new_known(use, CLV__ONNX_FLOAT, CLV_SHAPE(rows, columns));
    for (int64_t i = 0; table && i < rows * columns; i++)
        table->v[i] = times * of(2 * PI * (double)(i / columns * (i % columns) % n) / (double)n);
    return table;
}

/** What a one-sided spectrum leaves out counts with what it has: twice, but the mean and the last of an
 *  even number. */
static void count_twice(clv__known *table, int64_t n) {
    const int64_t columns = table ? table->shape.dims[1] : 1;
    for (int64_t i = 0; table && i < table->shape.dims[0] * columns; i++)
        if (i / columns && 2 * (i / columns) != n) table->v[i] *= 2;
}

/** The real or the imaginary half of [..., 2]; of [..., 1] the only one, and NULL. */
static clv_tensor *half_of(clv_tensor *x, int64_t i) {
    const clv_shape s = clv_tensor_shape(x);
    if (!x || i >= s.dims[s.rank - 1]) return NULL;
    return clv__onnx_reshape(clv__onnx_part(x, s.rank - 1, i, 1), s.dims, s.rank - 1);
}

static clv_tensor *joined(clv_tensor *real, clv_tensor *imaginary) {
    clv_shape s = clv_tensor_shape(real);
    if (!real || s.rank >= CLV_MAX_RANK) return NULL;
    s.dims[s.rank++] = 1;
    clv_tensor *parts[2] = {clv_reshape(real, s), imaginary ? clv_reshape(imaginary, s) : NULL};
    return imaginary ? clv_concat(parts, 2, s.rank - 1) : parts[0];
}

/** x [..., 1 or 2] transformed along an axis to n places, or from the spectrum of n. */
static clv_tensor *transformed(clv__onnx_use *use, clv_tensor *x, int axis, int64_t n, bool inverse,
                               bool onesided) {
    const bool real_result = inverse && onesided;
    const int64_t most = real_result ? n / 2 + 1 : n, given = clv_tensor_shape(x).dims[axis],
                  rows = given < most ? given : most, columns = onesided && !inverse ? n / 2 + 1 : n;
    const double times = inverse ? 1 / (double)n : 1;
    if (n < 1) clv__onnx_fail(use, CLV_E_VALUE, "a transform of %lld places", (long long)n);
    if (clv__onnx_failed(use)) return NULL;
    x = clv__onnx_part(x, axis, 0, rows);
    clv__known *c = circle(use, rows, columns, n, cos, times),
               *s = circle(use, rows, columns, n, sin, inverse ? times : -times);
    if (real_result) count_twice(c, n), count_twice(s, n);
    clv_tensor *a = half_of(x, 0), *b = half_of(x, 1);
    clv_tensor *real = clv__onnx_along(use, a, axis, c);
    if (b) real = clv_sub(real, clv__onnx_along(use, b, axis, s));
    if (real_result) return joined(real, NULL);
    clv_tensor *imaginary = clv__onnx_along(use, a, axis, s);
    if (b) imaginary = clv_add(imaginary, clv__onnx_along(use, b, axis, c));
    return joined(real, imaginary);
}

static void build_dft(clv__onnx_use *use) {
    const clv_shape s = clv__onnx_shape(use, 0);
    const bool inverse = clv__onnx_int(use, "inverse", 0) != 0,
               onesided = clv__onnx_int(use, "onesided", 0) != 0;
    const int64_t wanted =
        use->opset < 20 ? clv__onnx_int(use, "axis", 1) : clv__onnx_whole(clv__onnx_number(use, 2, -2));
    const int axis = clv__onnx_axis(use, wanted, s.rank);
    if (clv__onnx_failed(use) || s.rank < 2) return;
    const double all = inverse && onesided ? 2 * ((double)s.dims[axis] - 1) : (double)s.dims[axis];
    const int64_t n = clv__onnx_whole(clv__onnx_number(use, 1, all));
    clv__onnx_give(use, 0, transformed(use, clv__onnx_float(use, 0), axis, n, inverse, onesided));
}

/** Frames of a signal [N, T, 1 or 2], each times the window, transformed. */
static void build_stft(clv__onnx_use *use) {
    const clv_shape s = clv__onnx_shape(use, 0), window = clv__onnx_shape(use, 2);
    const int64_t step = clv__onnx_whole(clv__onnx_number(use, 1, 1)),
                  n = clv__onnx_whole(
                      clv__onnx_number(use, 3, (double)(window.rank ? window.dims[0] : s.dims[1])));
    if (clv__onnx_failed(use)) return;
    if (s.rank < 2 || s.rank > 3 || step < 1 || n < 1 || n > s.dims[1]) {
        clv__onnx_fail(use, CLV_E_UNSUPPORTED, "frames of %lld every %lld", (long long)n, (long long)step);
        return;
    }
    const int64_t frames = (s.dims[1] - n) / step + 1, halves = s.rank == 3 ? s.dims[2] : 1;
    int64_t *index = clv__onnx_indices(use, frames * n);
    for (int64_t i = 0; index && i < frames * n; i++) index[i] = i / n * step + i % n;
    clv_tensor *x = clv__onnx_float(use, 0);
    x = index ? clv__onnx_pick(use, x, 1, index, frames * n) : NULL;
    x = clv__onnx_reshape(x, (int64_t[]){s.dims[0], frames, n, halves}, 4);
    if (window.rank) x = clv_mul(x, clv__onnx_reshape(clv__onnx_float(use, 2), (int64_t[]){n, 1}, 2));
    clv__onnx_give(use, 0, transformed(use, x, 2, n, false, clv__onnx_int(use, "onesided", 1) != 0));
}

// ---- tables that are known ---------------------------------------------------------------------------

/** a - b cos(x) + c cos(2x) over a period. */
static void build_window(clv__onnx_use *use) {
    static const double sums[][3] = {{0.5, 0.5, 0}, {25.0 / 46, 21.0 / 46, 0}, {0.42, 0.5, 0.08}};
    const double *sum = sums[use->row->which];
    const int64_t n = clv__onnx_whole(clv__onnx_number(use, 0, 0));
    const double period = (double)(clv__onnx_int(use, "periodic", 1) ? n : n - 1);
    if (clv__onnx_failed(use) || n < 0 || n > CLV__MOST_KNOWN) return;
    clv__known *y =
        clv__onnx_new_known(use, (int)clv__onnx_int(use, "output_datatype", CLV__ONNX_FLOAT), CLV_SHAPE(n));
    for (int64_t i = 0; y && i < n; i++) {
        const double x = period > 0 ? 2 * PI * (double)i / period : 0;
        y->v[i] = sum[0] - sum[1] * cos(x) + sum[2] * cos(2 * x);
    }
    clv__onnx_give_known(use, 0, y);
}

static double mel_of(double hertz) {
    return 2595 * log10(1 + hertz / 700);
}

/** Triangles of the mel scale: [places of the spectrum, triangles]. */
static void build_mel(clv__onnx_use *use) {
    const int64_t n = clv__onnx_whole(clv__onnx_number(use, 0, 0)),
                  length = clv__onnx_whole(clv__onnx_number(use, 1, 0)), rows = length / 2 + 1;
    const double rate = clv__onnx_number(use, 2, 1), low = mel_of(clv__onnx_number(use, 3, 0)),
                 step = (mel_of(clv__onnx_number(use, 4, 0)) - low) / (double)(n + 2);
    if (clv__onnx_failed(use) || n < 1 || length < 1 || n > CLV__MOST_KNOWN / rows) return;
    clv__known *y = clv__onnx_new_known(use, (int)clv__onnx_int(use, "output_datatype", CLV__ONNX_FLOAT),
                                        CLV_SHAPE(rows, n));
    for (int64_t i = 0; y && i < n; i++) {
        double bin[3];
        for (int k = 0; k < 3; k++)
            bin[k] = floor((double)(length + 1) * 700 * (pow(10, (low + step * (double)(i + k)) / 2595) - 1) /
                           rate);
        for (int64_t j = 0; j < rows; j++) {
            const double at = (double)j, up = bin[1] - bin[0], down = bin[2] - bin[1];
            if (at >= bin[0] && at <= bin[1]) y->v[j * n + i] = up > 0 ? (at - bin[0]) / up : 1;
            if (at >= bin[1] && at < bin[2] && down > 0) y->v[j * n + i] = (bin[2] - at) / down;
        }
    }
    clv__onnx_give_known(use, 0, y);
}

// ---- grids -------------------------------------------------------------------------------------------

/** The places of a picture of a known size, turned and moved by theta. */
static void build_affine_grid(clv__onnx_use *use) {
    int64_t size[5], dims[5], points = 1;
    const int rank = clv__onnx_numbers(use, 1, size, 5), n = rank - 2;
    const bool corners = clv__onnx_int(use, "align_corners", 0) != 0;
    if (clv__onnx_failed(use)) return;
    if (n < 2 || n > 3) {
        clv__onnx_fail(use, CLV_E_SHAPE, "a grid of %d dimensions", n);
        return;
    }
    for (int d = 0; d < n; d++) points = clv__onnx_times(points, size[2 + d]);
    clv__known *at = points > 0 && points <= CLV__MOST_KNOWN
                         ? clv__onnx_new_known(use, CLV__ONNX_FLOAT, CLV_SHAPE(n + 1, points))
                         : NULL;
    for (int64_t i = 0; at && i < points; i++) {
        int64_t rest = i;
        for (int d = n - 1; d >= 0; d--) { // the last dimension is x, which comes first
            const double w = (double)size[2 + d], k = (double)(rest % size[2 + d]);
            rest /= size[2 + d];
            at->v[(n - 1 - d) * points + i] =
                corners ? w > 1 ? 2 * k / (w - 1) - 1 : -1 : (2 * k + 1) / w - 1;
        }
        at->v[n * points + i] = 1;
    }
    if (!at) return;
    clv_tensor *y = clv_matmul(clv__onnx_float(use, 0), clv__onnx_constant(use, at));
    y = clv__onnx_permute(y, (int[]){0, 2, 1}, 3);
    dims[0] = size[0];
    for (int d = 0; d < n; d++) dims[1 + d] = size[2 + d];
    dims[1 + n] = n;
    clv__onnx_give(use, 0, clv__onnx_reshape(y, dims, n + 2));
}

static void build_grid_sample(clv__onnx_use *use) {
    const bool cubic =
        clv__onnx_word(use, "mode", "cubic", false) || clv__onnx_word(use, "mode", "bicubic", false);
    clv_tensor *y =
        clv_grid_sample(clv__onnx_float(use, 0), clv__onnx_float(use, 1),
                        cubic                                           ? CLV_GRID_BICUBIC
                        : clv__onnx_word(use, "mode", "nearest", false) ? CLV_GRID_NEAREST
                                                                        : CLV_GRID_BILINEAR,
                        clv__onnx_word(use, "padding_mode", "border", false)       ? CLV_GRID_BORDER
                        : clv__onnx_word(use, "padding_mode", "reflection", false) ? CLV_GRID_REFLECTION
                                                                                   : CLV_GRID_ZEROS,
                        clv__onnx_int(use, "align_corners", 0) != 0);
    clv__onnx_give(use, 0, clv__onnx_as_given(use, y));
}

// ---- pools of powers, and columns --------------------------------------------------------------------

static clv_tensor *power_of(clv_tensor *x, int64_t p) {
    return p == 1 ? clv_abs(x) : p == 2 ? clv_square(x) : clv_pow_scalar(clv_abs(x), (float)p);
}

static clv_tensor *root_of(clv_tensor *x, int64_t p) {
    return p == 1 ? x : p == 2 ? clv_sqrt(x) : clv_pow_scalar(x, 1 / (float)p);
}

/** Sums of windows by a convolution with ones, each channel a picture. */
static void build_lp_pool(clv__onnx_use *use) {
    const clv_shape s = clv__onnx_shape(use, 0);
    const int64_t p = clv__onnx_int(use, "p", 2);
    clv_shape one = {.rank = s.rank, .dims = {1, 1}}, flat = s, back = s;
    const int n = clv__onnx_ints(use, "kernel_shape", one.dims + 2, 3);
    if (clv__onnx_int(use, "ceil_mode", 0)) clv__onnx_fail(use, CLV_E_UNSUPPORTED, "ceil_mode");
    if (s.rank < 3 || n != s.rank - 2) clv__onnx_fail(use, CLV_E_SHAPE, "a kernel of %d dimensions", n);
    if (clv__onnx_failed(use)) return;
    flat.dims[0] = s.dims[0] * s.dims[1], flat.dims[1] = 1;
    clv_tensor *in[2] = {power_of(clv__onnx_reshape(clv__onnx_float(use, 0), flat.dims, s.rank), p),
                         clv_full(use->graph, CLV_DTYPE_F32, one, 1)};
    clv_tensor *y = clv__onnx_by(use, "Conv", in, 2);
    const clv_shape made = clv_tensor_shape(y);
    for (int d = 2; d < s.rank; d++) back.dims[d] = made.dims[d];
    clv__onnx_give(use, 0, root_of(clv__onnx_reshape(y, back.dims, s.rank), p));
}

static void build_global_lp_pool(clv__onnx_use *use) {
    const int64_t p = clv__onnx_int(use, "p", 2);
    int axes[CLV_MAX_RANK], n = 0;
    for (int d = 2; d < clv__onnx_shape(use, 0).rank; d++) axes[n++] = d;
    clv_tensor *x = power_of(clv__onnx_float(use, 0), p);
    clv__onnx_give(use, 0, root_of(n ? clv_sum(x, axes, n, true) : x, p));
}

/** Blocks put where they come from and added: a transposed convolution whose kernels each have one 1. */
static void build_col2im(clv__onnx_use *use) {
    const clv_shape s = clv__onnx_shape(use, 0);
    int64_t image[3], block[3], pads[6] = {0}, step[3] = {1, 1, 1}, apart[3] = {1, 1, 1}, all = 1;
    const int n = clv__onnx_numbers(use, 1, image, 3), m = clv__onnx_numbers(use, 2, block, 3);
    clv__onnx_ints(use, "pads", pads, 6), clv__onnx_ints(use, "strides", step, 3);
    clv__onnx_ints(use, "dilations", apart, 3);
    if (clv__onnx_failed(use)) return;
    for (int d = 0; d < n; d++) all = clv__onnx_times(all, block[d]);
    if (n < 1 || n != m || s.rank != 3 || all < 1 || all > 1024 || s.dims[1] % all) {
        clv__onnx_fail(use, CLV_E_SHAPE, "blocks of %d dimensions that do not fit the input", m);
        return;
    }
    const int64_t channels = s.dims[1] / all;
    clv_shape kernel = {.rank = 2 + n, .dims = {all, 1}},
              in = {.rank = 2 + n, .dims = {s.dims[0] * channels, all}};
    int64_t back[5] = {s.dims[0], channels}, before[5] = {0}, after[5] = {0};
    for (int d = 0; d < n; d++) {
        kernel.dims[2 + d] = block[d];
        in.dims[2 + d] = (image[d] + pads[d] + pads[n + d] - apart[d] * (block[d] - 1) - 1) / step[d] + 1;
        back[2 + d] = image[d];
    }
    clv__known *ones = clv__onnx_new_known(use, CLV__ONNX_FLOAT, kernel);
    for (int64_t i = 0; ones && i < all; i++) ones->v[i * all + i] = 1;
    if (!ones) return;
    clv_tensor *given[2] = {clv__onnx_reshape(clv__onnx_float(use, 0), in.dims, 2 + n),
                            clv__onnx_constant(use, ones)};
    clv_tensor *y = clv__onnx_by(use, "ConvTranspose", given, 2);
    const clv_shape made = clv_tensor_shape(y);
    for (int d = 0; d < n; d++) after[2 + d] = image[d] - made.dims[2 + d];
    clv__onnx_give(use, 0, clv__onnx_reshape(clv__onnx_pad(use, y, before, after, 0), back, 2 + n));
}

// ---- determinants ------------------------------------------------------------------------------------

/** Element [i, j] of each matrix. */
static clv_tensor *element(clv_tensor *x, int64_t i, int64_t j) {
    const clv_shape s = clv_tensor_shape(x);
    x = clv__onnx_part(clv__onnx_part(x, s.rank - 2, i, 1), s.rank - 1, j, 1);
    return clv__onnx_reshape(x, s.dims, s.rank - 2);
}

/** Of 2 x 2 out of rows a and b, columns c and d. */
static clv_tensor *minor_of(clv_tensor *x, int64_t a, int64_t b, int64_t c, int64_t d) {
    return clv_sub(clv_mul(element(x, a, c), element(x, b, d)), clv_mul(element(x, a, d), element(x, b, c)));
}

static void build_det(clv__onnx_use *use) {
    const clv_shape s = clv__onnx_shape(use, 0);
    const int64_t n = s.rank > 1 ? s.dims[s.rank - 1] : 0;
    clv_tensor *x = clv__onnx_float(use, 0), *y = NULL;
    if (s.rank < 2 || s.dims[s.rank - 2] != n || n < 2 || n > 3) {
        clv__onnx_fail(use, CLV_E_UNSUPPORTED, "matrices of %lld columns; 2 and 3 are known", (long long)n);
        return;
    }
    if (n == 2) y = minor_of(x, 0, 1, 0, 1);
    for (int64_t j = 0; n == 3 && j < 3; j++) {
        clv_tensor *one = clv_mul(element(x, 0, j), minor_of(x, 1, 2, (j + 1) % 3, (j + 2) % 3));
        y = y ? clv_add(y, one) : one;
    }
    clv__onnx_give(use, 0, y);
}

const clv__onnx_row clv__onnx_signal[] = {
    {"AffineGrid", .build = build_affine_grid},
    {"Col2Im", .build = build_col2im},
    {"DFT", .build = build_dft},
    {"Det", .build = build_det},
    {"GlobalLpPool", .build = build_global_lp_pool},
    {"GridSample", .build = build_grid_sample},
    {"LpPool", .build = build_lp_pool},
    {"STFT", .build = build_stft},
    {0},
};

const clv__onnx_row clv__onnx_windows[] = {
    {"HannWindow", build_window, .which = 0},
    {"HammingWindow", build_window, .which = 1},
    {"BlackmanWindow", build_window, .which = 2},
    {"MelWeightMatrix", .build = build_mel},
    {0},
};
