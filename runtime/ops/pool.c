// SPDX-License-Identifier: Apache-2.0
// Pooling over windows of [N,C,H,W]: largest and mean value, and their gradients.
// Sizes, padding and the rule for windows that stick out follow torch.nn.MaxPool2d and torch.nn.AvgPool2d.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cleave/ops.h"
#include "ops/lower.h"

typedef struct pool_attrs {
    int kernel[2], stride[2], padding[2], dilation[2];
    int ceil_mode, exclude_padding;
    int size[2]; // avg_pool2d_backward: H and W of x, which it does not read
} pool_attrs;

/** All sizes of one use, as kernels and references want them. */
typedef struct pool_sizes {
    int64_t planes, H, W, OH, OW, kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w, dilation_h,
        dilation_w;
} pool_sizes;

static pool_sizes sizes_between(const pool_attrs *a, const clv_shape *x, const clv_shape *y) {
    return (pool_sizes){.planes = x->dims[0] * x->dims[1],
                        .H = x->dims[2],
                        .W = x->dims[3],
                        .OH = y->dims[2],
                        .OW = y->dims[3],
                        .kernel_h = a->kernel[0],
                        .kernel_w = a->kernel[1],
                        .stride_h = a->stride[0],
                        .stride_w = a->stride[1],
                        .pad_h = a->padding[0],
                        .pad_w = a->padding[1],
                        .dilation_h = a->dilation[0],
                        .dilation_w = a->dilation[1]};
}

// ---- shape rule
// -----------------------------------------------------------------------------------------------------

static const char *const axis_names[2] = {"H", "W"};

/** A work-item's loops may turn so often (kernels_cl/README.md), with some room. */
enum { MOST_TURNS = 65000 };

/** Shape of y for x [N,C,H,W]; the sentence names the axis. */
static clv_status output_shape(const pool_attrs *a, bool dilates, const clv_shape *x, clv_shape *y,
                               clv__error *error) {
    int64_t most[2];
    *y = *x;
    for (int i = 0; i < 2; i++) {
        int64_t size = x->dims[2 + i], k = a->kernel[i], s = a->stride[i], p = a->padding[i],
                d = a->dilation[i];
        if (k < 1 || s < 1 || p < 0 || d < 1) {
            CLV_FAIL(error, CLV_E_VALUE,
                     "kernel, stride and dilation must be at least 1 and padding at least 0; along %s they "
                     "are %lld, %lld, "
                     "%lld and %lld",
                     axis_names[i], (long long)k, (long long)s, (long long)d, (long long)p);
        }
        if (d != 1 && !dilates) CLV_FAIL(error, CLV_E_VALUE, "dilation is for max_pool2d only");
        if (p > k / 2) {
            CLV_FAIL(error, CLV_E_VALUE, "padding %lld is more than half of the kernel %lld along %s",
                     (long long)p, (long long)k, axis_names[i]);
        }
        int64_t window = d * (k - 1) + 1, room = size + 2 * p - window;
        if (window > INT32_MAX / 4 || s > INT32_MAX / 4) {
            CLV_FAIL(error, CLV_E_VALUE, "a window of %lld elements with stride %lld along %s is too large",
                     (long long)window, (long long)s, axis_names[i]);
        }
        if (a->ceil_mode) room += s - 1;
        int64_t out = room < 0 ? 0 : room / s + 1;
        if (a->ceil_mode && (out - 1) * s >= size + p)
            out--; // every window begins inside x or the padding before it
        if (out < 1 || size < 1) {
            CLV_FAIL(error, CLV_E_SHAPE,
                     "a window of %lld elements does not fit into %s = %lld with padding %lld",
                     (long long)window, axis_names[i], (long long)size, (long long)p);
        }
        y->dims[2 + i] = out;
        // Windows that look at one element, and elements in a window: what one work-item loops over.
        int64_t shared = (k - 1) * d / s + 1;
        most[i] = shared > out ? out : shared;
        if (most[i] < k) most[i] = k;
    }
    if (most[0] * (most[1] + 1) > MOST_TURNS / 2) {
        CLV_FAIL(
            error, CLV_E_VALUE,
            "windows of %d x %d with stride %d x %d and dilation %d x %d are too large to pool; reduce whole "
            "images by clv_mean and clv_max",
            a->kernel[0], a->kernel[1], a->stride[0], a->stride[1], a->dilation[0], a->dilation[1]);
    }
    return CLV_OK;
}

static clv_status infer(clv__op_io *io, bool dilates, clv__error *error) {
    CLV_TRY(clv__want_dtype(io, 0, "x", CLV_DTYPE_F32, error));
    CLV_TRY(clv__want_rank(io, 0, "x", 4, error));
    io->n_out = 1;
    io->out[0].dtype = CLV_DTYPE_F32;
    return output_shape(io->attrs, dilates, &io->in[0].shape, &io->out[0].shape, error);
}

static clv_status max_infer(clv__op_io *io, clv__error *error) {
    return infer(io, true, error);
}
static clv_status avg_infer(clv__op_io *io, clv__error *error) {
    return infer(io, false, error);
}

/** dx has the shape of x; dy must have that of y. */
static clv_status backward_infer(clv__op_io *io, const clv_shape *x, bool dilates, clv__error *error) {
    clv_shape y;
    char want[128];
    CLV_TRY(clv__want_dtype(io, 0, "dy", CLV_DTYPE_F32, error));
    CLV_TRY(output_shape(io->attrs, dilates, x, &y, error));
    if (!clv_shape_equal(&y, &io->in[0].shape)) {
        CLV_FAIL(error, CLV_E_SHAPE, "dy must be %s", clv_shape_text(&y, want, sizeof want));
    }
    io->n_out = 1;
    io->out[0] = clv__f32(*x);
    return CLV_OK;
}

static clv_status max_backward_infer(clv__op_io *io, clv__error *error) {
    CLV_TRY(clv__want_dtype(io, 1, "x", CLV_DTYPE_F32, error));
    CLV_TRY(clv__want_rank(io, 1, "x", 4, error));
    return backward_infer(io, &io->in[1].shape, true, error);
}

static clv_status avg_backward_infer(clv__op_io *io, clv__error *error) {
    const pool_attrs *a = io->attrs;
    CLV_TRY(clv__want_rank(io, 0, "dy", 4, error));
    clv_shape x = io->in[0].shape;
    x.dims[2] = a->size[0];
    x.dims[3] = a->size[1];
    return backward_infer(io, &x, false, error);
}

// ---- kernels
// --------------------------------------------------------------------------------------------------------

static pool_sizes forward_sizes(const clv__op_io *io) {
    return sizes_between(io->attrs, &io->in[0].shape, &io->out[0].shape);
}

static pool_sizes backward_sizes(const clv__op_io *io) {
    return sizes_between(io->attrs, &io->out[0].shape, &io->in[0].shape);
}

static void window_args(clv__launches *list, clv__launch *launch, int64_t n, const pool_sizes *s,
                        bool dilates) {
    CLV__ARGS_I32(list, launch, n, s->H, s->W, s->OH, s->OW, s->kernel_h, s->kernel_w, s->stride_h,
                  s->stride_w, s->pad_h, s->pad_w);
    if (dilates) CLV__ARGS_I32(list, launch, s->dilation_h, s->dilation_w);
}

/** x to y. */
static void forward_tensors(clv__launches *list, clv__launch *launch, const clv__op_io *io) {
    clv__arg_out_as(list, launch, io, 0, "T_Y");
    clv__arg_in_as(list, launch, io, 0, "T_X");
}

/** The first two arguments of gradients, dx and dy. Kernels take dx for stored as x, which is a float where they have none. */
static void dx_dy(clv__launches *list, clv__launch *launch, const clv__op_io *io, clv_dtype x) {
    if (io->out[0].dtype != x) clv__launch_define(list, launch, "T_DX", "%s", clv__storage(io->out[0].dtype));
    clv__arg_out(list, launch, 0);
    clv__arg_in_as(list, launch, io, 0, "T_Y");
}

static void backward_tensors(clv__launches *list, clv__launch *launch, const clv__op_io *io) {
    dx_dy(list, launch, io, io->n_in > 1 ? io->in[1].dtype : CLV_DTYPE_F32);
    if (io->n_in > 1) clv__arg_in_as(list, launch, io, 1, "T_X");
}

static void max_plain(clv__launches *list, const clv__op_io *io) {
    pool_sizes s = forward_sizes(io);
    int64_t n = s.planes * s.OH * s.OW;
    if (n == 0) return;
    clv__launch *launch = clv__launch_kernel(list, "pool", "max_pool2d");
    forward_tensors(list, launch, io);
    window_args(list, launch, n, &s, true);
    clv__launch_items(launch, n);
}

/** Turns of loops over the elements of one window. */
static int64_t window_turns(const pool_sizes *s) {
    return s->kernel_h * (s->kernel_w + 1) + 1;
}

static void max_backward_winner(clv__launches *list, const clv__op_io *io);

static void max_backward_plain(clv__launches *list, const clv__op_io *io) {
    pool_sizes s = backward_sizes(io);
    int64_t n = s.planes * s.H * s.W;
    int64_t windows_h = (s.kernel_h - 1) * s.dilation_h / s.stride_h + 1,
            windows_w = (s.kernel_w - 1) * s.dilation_w / s.stride_w + 1;
    if (n == 0) return;
    if (windows_h * (windows_w * window_turns(&s) + 1) > MOST_TURNS) { // windows of windows
        max_backward_winner(list, io);
        return;
    }
    clv__launch *launch = clv__launch_kernel(list, "pool", "max_pool2d_backward");
    backward_tensors(list, launch, io);
    window_args(list, launch, n, &s, true);
    clv__launch_items(launch, n);
}

static void max_backward_winner(clv__launches *list, const clv__op_io *io) {
    pool_sizes s = backward_sizes(io);
    int64_t outputs = s.planes * s.OH * s.OW, inputs = s.planes * s.H * s.W;
    if (inputs == 0) return;
    size_t bytes = (size_t)outputs * sizeof(int32_t), winner = clv__launch_workspace(list, bytes);
    clv__launch *launch = clv__launch_kernel(list, "pool", "max_pool2d_winner");
    clv__arg_workspace(list, launch, winner, bytes);
    clv__arg_in_as(list, launch, io, 1, "T_X");
    window_args(list, launch, outputs, &s, true);
    clv__launch_items(launch, outputs);
    launch = clv__launch_kernel(list, "pool", "max_pool2d_gather");
    dx_dy(list, launch, io, CLV_DTYPE_F32);
    clv__arg_workspace(list, launch, winner, bytes);
    window_args(list, launch, inputs, &s, true);
    clv__launch_items(launch, inputs);
}

/** Windows that tile x: each input is in one window at most. */
static bool apart(const pool_attrs *a) {
    for (int i = 0; i < 2; i++) {
        if (a->stride[i] != a->kernel[i] || a->padding[i] != 0 || a->dilation[i] != 1) return false;
    }
    return true;
}

static bool apart_supports(const clv_device_info *device, const clv__op_io *io) {
    (void)device;
    return apart(io->attrs);
}

static void max_backward_apart(clv__launches *list, const clv__op_io *io) {
    pool_sizes s = backward_sizes(io);
    int64_t n = s.planes * clv__ceil_div(s.H, s.kernel_h) * clv__ceil_div(s.W, s.kernel_w);
    if (n == 0) return;
    clv__launch *launch = clv__launch_kernel(list, "pool", "max_pool2d_backward_apart");
    backward_tensors(list, launch, io);
    CLV__ARGS_I32(list, launch, n, s.H, s.W, s.OH, s.OW, s.kernel_h, s.kernel_w);
    clv__launch_items(launch, n);
}

/** Kernel 2, stride 2, no window sticks out. */
static bool is_2x2(const clv_device_info *device, const pool_attrs *a, const pool_sizes *s) {
    return clv__cpu_class(device) && apart(a) && s->kernel_h == 2 && s->kernel_w == 2 && s->OH == s->H / 2 &&
           s->OW == s->W / 2;
}

static bool max_2x2_supports(const clv_device_info *device, const clv__op_io *io) {
    pool_sizes s = forward_sizes(io);
    return is_2x2(device, io->attrs, &s);
}

static bool max_2x2_backward_supports(const clv_device_info *device, const clv__op_io *io) {
    pool_sizes s = backward_sizes(io);
    return is_2x2(device, io->attrs, &s);
}

static void rows_2x2(clv__launches *list, clv__launch *launch, const pool_sizes *s, int64_t n_rows) {
    int64_t rows = clv__rows_for(2 * s->W);
    CLV__ARGS_I32(list, launch, n_rows, rows, s->H, s->W, s->OH, s->OW);
    clv__launch_chunks(launch, clv__ceil_div(n_rows, rows));
}

static void max_2x2(clv__launches *list, const clv__op_io *io) {
    pool_sizes s = forward_sizes(io);
    if (s.planes == 0) return;
    clv__launch *launch = clv__launch_kernel(list, "pool", "max_pool2d_2x2");
    forward_tensors(list, launch, io);
    rows_2x2(list, launch, &s, s.planes * s.OH);
}

static void max_2x2_backward(clv__launches *list, const clv__op_io *io) {
    pool_sizes s = backward_sizes(io);
    if (s.planes == 0) return;
    clv__launch *launch = clv__launch_kernel(list, "pool", "max_pool2d_2x2_backward");
    backward_tensors(list, launch, io);
    rows_2x2(list, launch, &s, s.planes * clv__ceil_div(s.H, 2));
}

// Any window on devices with few, wide cores: by rows of outputs, or by planes of inputs.

static bool rows_support(const clv_device_info *device, const clv__op_io *io) {
    pool_sizes s = forward_sizes(io);
    return clv__cpu_class(device) &&
           clv__loops_fit(device, clv__rows_for(s.W * s.stride_h) * (s.OW * window_turns(&s) + 2));
}

/** Adds up in dx itself, which must not round. */
static bool planes_support(const clv_device_info *device, const clv__op_io *io) {
    pool_sizes s = backward_sizes(io);
    return clv__cpu_class(device) && io->out[0].dtype == CLV_DTYPE_F32 &&
           clv__loops_fit(device,
                          clv__rows_for(s.W * s.H) * (s.H * s.W + s.OH * (s.OW * window_turns(&s) + 1)));
}

static double wide_rank(const clv_device_info *device, const clv__op_io *io) {
    (void)device;
    (void)io;
    return 0.08;
}

/** The arguments of one of those kernels: inputs, then as in window_args with a number of rows in place of elements. */
static void wide(clv__launches *list, const clv__op_io *io, const char *entry, const pool_sizes *s, int64_t n,
                 int64_t width, bool dilates, bool backward) {
    int64_t rows = clv__rows_for(width);
    if (n == 0) return;
    clv__launch *launch = clv__launch_kernel(list, "pool", entry);
    if (backward)
        backward_tensors(list, launch, io);
    else
        forward_tensors(list, launch, io);
    clv__arg_i32(list, launch, n);
    window_args(list, launch, rows, s, dilates);
    if (!dilates) clv__arg_i32(list, launch, ((const pool_attrs *)io->attrs)->exclude_padding);
    clv__launch_chunks(launch, clv__ceil_div(n, rows));
}

static void max_rows(clv__launches *list, const clv__op_io *io) {
    pool_sizes s = forward_sizes(io);
    wide(list, io, "max_pool2d_rows", &s, s.planes * s.OH, s.W * s.stride_h, true, false);
}

static void max_backward_planes(clv__launches *list, const clv__op_io *io) {
    pool_sizes s = backward_sizes(io);
    wide(list, io, "max_pool2d_planes_backward", &s, s.planes, s.W * s.H, true, true);
}

static void avg_rows(clv__launches *list, const clv__op_io *io) {
    pool_sizes s = forward_sizes(io);
    wide(list, io, "avg_pool2d_rows", &s, s.planes * s.OH, s.W * s.stride_h, false, false);
}

static void avg_backward_planes(clv__launches *list, const clv__op_io *io) {
    pool_sizes s = backward_sizes(io);
    wide(list, io, "avg_pool2d_planes_backward", &s, s.planes, s.W * s.H, false, true);
}

static double fast_rank(const clv_device_info *device, const clv__op_io *io) {
    (void)device;
    (void)io;
    return 0.05;
}

/** Plain looks at kernel^2 elements for every window an input is in; this one twice at every input in all. */
static double winner_rank(const clv_device_info *device, const clv__op_io *io) {
    (void)device;
    const pool_attrs *a = io->attrs;
    return 2.0 / ((double)a->kernel[0] * a->kernel[1]) + 0.1;
}

static double apart_rank(const clv_device_info *device, const clv__op_io *io) {
    (void)device;
    const pool_attrs *a = io->attrs;
    return 1.0 / ((double)a->kernel[0] * a->kernel[1]);
}

static void avg_plain(clv__launches *list, const clv__op_io *io) {
    pool_sizes s = forward_sizes(io);
    int64_t n = s.planes * s.OH * s.OW;
    if (n == 0) return;
    clv__launch *launch = clv__launch_kernel(list, "pool", "avg_pool2d");
    forward_tensors(list, launch, io);
    window_args(list, launch, n, &s, false);
    clv__arg_i32(list, launch, ((const pool_attrs *)io->attrs)->exclude_padding);
    clv__launch_items(launch, n);
}

static void avg_backward_plain(clv__launches *list, const clv__op_io *io) {
    pool_sizes s = backward_sizes(io);
    int64_t n = s.planes * s.H * s.W;
    if (n == 0) return;
    clv__launch *launch = clv__launch_kernel(list, "pool", "avg_pool2d_backward");
    backward_tensors(list, launch, io);
    window_args(list, launch, n, &s, false);
    clv__arg_i32(list, launch, ((const pool_attrs *)io->attrs)->exclude_padding);
    clv__launch_items(launch, n);
}

static const clv__variant max_variants[] = {{"plain", NULL, NULL, max_plain},
                                            {"rows", rows_support, wide_rank, max_rows},
                                            {"vector_2x2", max_2x2_supports, fast_rank, max_2x2},
                                            {0}};
static const clv__variant max_backward_variants[] = {
    {"plain", NULL, NULL, max_backward_plain},
    {"winner", NULL, winner_rank, max_backward_winner},
    {"apart", apart_supports, apart_rank, max_backward_apart},
    {"planes", planes_support, wide_rank, max_backward_planes},
    {"vector_2x2", max_2x2_backward_supports, fast_rank, max_2x2_backward},
    {0}};
static const clv__variant avg_variants[] = {
    {"plain", NULL, NULL, avg_plain}, {"rows", rows_support, wide_rank, avg_rows}, {0}};
static const clv__variant avg_backward_variants[] = {
    {"plain", NULL, NULL, avg_backward_plain},
    {"planes", planes_support, wide_rank, avg_backward_planes},
    {0}};

// ---- references
// -----------------------------------------------------------------------------------------------------

/** Position h*W + w of the first maximum that output (oh, ow) looks at; -1 if it looks at nothing. A NaN
 * wins. */
static int64_t winner_of(const double *plane, const pool_sizes *s, int64_t oh, int64_t ow) {
    int64_t at = -1;
    for (int64_t i = 0; i < s->kernel_h; i++) {
        for (int64_t j = 0; j < s->kernel_w; j++) {
            int64_t h = oh * s->stride_h - s->pad_h + i * s->dilation_h,
                    w = ow * s->stride_w - s->pad_w + j * s->dilation_w;
            if (h < 0 || h >= s->H || w < 0 || w >= s->W) continue;
            double v = plane[h * s->W + w];
            if (at < 0 || v > plane[at] || isnan(v)) at = h * s->W + w;
        }
    }
    return at;
}

static void max_reference(const clv__ref *ref) {
    pool_sizes s = forward_sizes(ref->io);
    double *y = ref->out[0];
    for (int64_t p = 0; p < s.planes; p++) {
        const double *plane = ref->in[0] + p * s.H * s.W;
        for (int64_t oh = 0; oh < s.OH; oh++) {
            for (int64_t ow = 0; ow < s.OW; ow++) {
                int64_t at = winner_of(plane, &s, oh, ow);
                *y++ = at < 0 ? -INFINITY : plane[at];
            }
        }
    }
}

static void max_backward_reference(const clv__ref *ref) {
    pool_sizes s = backward_sizes(ref->io);
    const double *dy = ref->in[0];
    for (int64_t i = 0; i < s.planes * s.H * s.W; i++) ref->out[0][i] = 0;
    for (int64_t p = 0; p < s.planes; p++) {
        const double *plane = ref->in[1] + p * s.H * s.W;
        double *to = ref->out[0] + p * s.H * s.W;
        for (int64_t oh = 0; oh < s.OH; oh++) {
            for (int64_t ow = 0; ow < s.OW; ow++, dy++) {
                int64_t at = winner_of(plane, &s, oh, ow);
                if (at >= 0) to[at] += *dy;
            }
        }
    }
}

/** What an average window covers along one axis, and how long it counts. */
typedef struct pool_span {
    int64_t first, end, length;
} pool_span;

static pool_span span_of(int64_t o, int64_t stride, int64_t pad, int64_t kernel, int64_t size, bool exclude) {
    int64_t first = o * stride - pad, end = first + kernel;
    if (end > size + pad) end = size + pad;
    pool_span span = {first < 0 ? 0 : first, end > size ? size : end, end - first};
    if (exclude) span.length = span.end - span.first;
    return span;
}

/** y from x, or dx from dy: the same windows, each element with weight 1 / (elements counted). */
static void avg_walk(const pool_sizes *s, bool exclude, double *x, double *y, bool backward) {
    for (int64_t p = 0; p < s->planes; p++) {
        double *plane = x + p * s->H * s->W;
        for (int64_t oh = 0; oh < s->OH; oh++) {
            for (int64_t ow = 0; ow < s->OW; ow++, y++) {
                pool_span h = span_of(oh, s->stride_h, s->pad_h, s->kernel_h, s->H, exclude);
                pool_span w = span_of(ow, s->stride_w, s->pad_w, s->kernel_w, s->W, exclude);
                double count = (double)(h.length * w.length), sum = 0;
                for (int64_t i = h.first; i < h.end; i++) {
                    for (int64_t j = w.first; j < w.end; j++) {
                        if (backward)
                            plane[i * s->W + j] += *y / count;
                        else
                            sum += plane[i * s->W + j];
                    }
                }
                if (!backward) *y = sum / count;
            }
        }
    }
}

static void avg_reference(const clv__ref *ref) {
    pool_sizes s = forward_sizes(ref->io);
    avg_walk(&s, ((const pool_attrs *)ref->io->attrs)->exclude_padding, ref->in[0], ref->out[0], false);
}

static void avg_backward_reference(const clv__ref *ref) {
    pool_sizes s = backward_sizes(ref->io);
    for (int64_t i = 0; i < s.planes * s.H * s.W; i++) ref->out[0][i] = 0;
    avg_walk(&s, ((const pool_attrs *)ref->io->attrs)->exclude_padding, ref->out[0], ref->in[0], true);
}

static double io_bytes(const clv__op_io *io) {
    double n = (double)clv__numel(&io->out[0]);
    for (int i = 0; i < io->n_in; i++) n += (double)clv__numel(&io->in[i]);
    return 4 * n;
}

static void cost(const clv__op_io *io, clv__cost *cost) {
    const pool_attrs *a = io->attrs;
    *cost = (clv__cost){(double)clv__numel(&io->out[0]) * a->kernel[0] * a->kernel[1], io_bytes(io)};
}

static void backward_cost(const clv__op_io *io, clv__cost *cost) {
    const pool_attrs *a = io->attrs;
    *cost = (clv__cost){(double)clv__numel(&io->in[0]) * a->kernel[0] * a->kernel[1], io_bytes(io)};
}

static int64_t window_elements(const clv__op_io *io) {
    const pool_attrs *a = io->attrs;
    return (int64_t)a->kernel[0] * a->kernel[1];
}

// ---- samples
// --------------------------------------------------------------------------------------------------------

static const struct pool_case {
    const char *label;
    int64_t x[4];
    pool_attrs attrs;
    enum { LONG, QUICK, NO_GRADIENT } kind; // NO_GRADIENT: the result is infinite
} cases[] = {
    // More turns of loops than one work-item may take, if it takes whole planes, or windows of windows.
    {"many windows of a plane", {9, 1, 30, 30}, {{3, 3}, {1, 1}, {0, 0}, {1, 1}, 0, 0, {0}}, LONG},
    {"large windows, close together", {1, 1, 36, 37}, {{16, 17}, {1, 1}, {0, 0}, {1, 1}, 0, 0, {0}}, LONG},
    {"2x2, even sizes", {2, 3, 8, 24}, {{2, 2}, {2, 2}, {0, 0}, {1, 1}, 0, 0, {0}}, QUICK},
    {"2x2, odd sizes", {2, 3, 7, 25}, {{2, 2}, {2, 2}, {0, 0}, {1, 1}, 0, 0, {0}}, QUICK},
    {"2x2, odd sizes, ceil", {1, 3, 7, 9}, {{2, 2}, {2, 2}, {0, 0}, {1, 1}, 1, 0, {0}}, QUICK},
    {"3x3, stride 2, padding 1", {2, 3, 9, 10}, {{3, 3}, {2, 2}, {1, 1}, {1, 1}, 0, 0, {0}}, QUICK},
    {"2x2, smallest", {1, 1, 2, 2}, {{2, 2}, {2, 2}, {0, 0}, {1, 1}, 0, 0, {0}}, LONG},
    {"2x2, smallest with a rest", {1, 1, 3, 3}, {{2, 2}, {2, 2}, {0, 0}, {1, 1}, 0, 0, {0}}, LONG},
    {"2x2, rows of 7 outputs", {3, 5, 4, 14}, {{2, 2}, {2, 2}, {0, 0}, {1, 1}, 0, 0, {0}}, LONG},
    {"2x2, rows of 4 outputs and a rest", {1, 2, 5, 9}, {{2, 2}, {2, 2}, {0, 0}, {1, 1}, 0, 0, {0}}, LONG},
    {"2x2, rows of 33 outputs", {1, 2, 6, 67}, {{2, 2}, {2, 2}, {0, 0}, {1, 1}, 0, 0, {0}}, LONG},
    {"2x2, many planes", {5, 41, 4, 16}, {{2, 2}, {2, 2}, {0, 0}, {1, 1}, 0, 0, {0}}, LONG},
    {"1x1, stride 1", {2, 2, 3, 5}, {{1, 1}, {1, 1}, {0, 0}, {1, 1}, 0, 0, {0}}, LONG},
    {"1x1, stride 2: some inputs in no window",
     {1, 2, 5, 6},
     {{1, 1}, {2, 2}, {0, 0}, {1, 1}, 0, 0, {0}},
     LONG},
    {"3x3 apart, a rest", {2, 2, 7, 8}, {{3, 3}, {3, 3}, {0, 0}, {1, 1}, 0, 0, {0}}, LONG},
    {"3x2 apart, ceil", {2, 2, 7, 7}, {{3, 2}, {3, 2}, {0, 0}, {1, 1}, 1, 0, {0}}, LONG},
    {"3x3, stride 1, padding 1", {1, 2, 5, 5}, {{3, 3}, {1, 1}, {1, 1}, {1, 1}, 0, 0, {0}}, LONG},
    {"3x3, stride 2, padding 1, ceil", {1, 2, 8, 8}, {{3, 3}, {2, 2}, {1, 1}, {1, 1}, 1, 0, {0}}, LONG},
    {"2x3, stride 3 1, padding 1 0", {2, 1, 11, 7}, {{2, 3}, {3, 1}, {1, 0}, {1, 1}, 0, 0, {0}}, LONG},
    {"3x3, stride 1, padding 1, rows of 21",
     {1, 3, 5, 21},
     {{3, 3}, {1, 1}, {1, 1}, {1, 1}, 0, 0, {0}},
     LONG},
    {"3x3, stride 2, padding 1, rows of 19",
     {2, 2, 7, 37},
     {{3, 3}, {2, 2}, {1, 1}, {1, 1}, 0, 0, {0}},
     QUICK},
    {"5x2, stride 3, padding 2 1, rows of 12",
     {1, 2, 9, 35},
     {{5, 2}, {3, 3}, {2, 1}, {1, 1}, 1, 1, {0}},
     LONG},
    {"2x2, stride 2, padding 1, rows of 8 within",
     {1, 2, 5, 18},
     {{2, 2}, {2, 2}, {1, 1}, {1, 1}, 0, 0, {0}},
     LONG},
    {"window as large as x", {2, 3, 5, 7}, {{5, 7}, {5, 7}, {0, 0}, {1, 1}, 0, 0, {0}}, LONG},
    {"window larger than x, padding", {1, 2, 1, 2}, {{3, 4}, {1, 1}, {1, 2}, {1, 1}, 0, 0, {0}}, LONG},
    {"5x5, stride 2, padding 2, exclude padding",
     {1, 2, 9, 8},
     {{5, 5}, {2, 2}, {2, 2}, {1, 1}, 0, 1, {0}},
     LONG},
    {"3x3, stride 2, padding 1, ceil, exclude padding",
     {1, 2, 8, 7},
     {{3, 3}, {2, 2}, {1, 1}, {1, 1}, 1, 1, {0}},
     LONG},
    {"no images", {0, 3, 8, 8}, {{2, 2}, {2, 2}, {0, 0}, {1, 1}, 0, 0, {0}}, LONG},
    // Only max_pool2d from here on.
    {"2x2, dilation 2", {1, 2, 6, 7}, {{2, 2}, {1, 1}, {0, 0}, {2, 2}, 0, 0, {0}}, QUICK},
    {"3x2, stride 2, padding 1, dilation 2 3",
     {2, 2, 11, 9},
     {{3, 2}, {2, 2}, {1, 1}, {2, 3}, 0, 0, {0}},
     LONG},
    {"3x3, padding 1, dilation 2, rows of 20",
     {1, 2, 7, 22},
     {{3, 3}, {1, 1}, {1, 1}, {2, 2}, 0, 0, {0}},
     LONG},
    {"window between rows: -infinity",
     {1, 1, 1, 12},
     {{2, 2}, {1, 1}, {1, 0}, {2, 1}, 0, 0, {0}},
     NO_GRADIENT},
    {"2x2, stride 2, dilation 2, ceil", {1, 1, 8, 9}, {{2, 2}, {2, 2}, {1, 0}, {2, 2}, 1, 0, {0}}, LONG},
};

static bool sample(int i, clv__sample *sample, bool dilates, bool backward) {
    if (i < 0 || (size_t)i >= sizeof cases / sizeof *cases) return false;
    const struct pool_case *c = &cases[i];
    pool_attrs attrs = c->attrs;
    if (!dilates && (attrs.dilation[0] != 1 || attrs.dilation[1] != 1)) return false; // the last ones
    clv_shape x = clv_shape_make(4, c->x), y;
    snprintf(sample->label, sizeof sample->label, "%s", c->label);
    sample->quick = c->kind == QUICK;
    sample->no_gradient = c->kind == NO_GRADIENT;
    sample->n_in = 1;
    sample->in[0] = clv__f32(x);
    sample->fill[0] = (clv__fill){CLV__FILL_DISTINCT, -2, 2};
    if (backward) {
        if (output_shape(&attrs, dilates, &x, &y, NULL) != CLV_OK) return false;
        sample->in[0] = clv__f32(y);
        if (dilates) {
            sample->n_in = 2;
            sample->in[1] = clv__f32(x);
            sample->fill[1] = (clv__fill){CLV__FILL_INTEGER, -2, 2}; // ties: the first maximum takes all
        } else {
            attrs.size[0] = (int)x.dims[2];
            attrs.size[1] = (int)x.dims[3];
        }
    }
    memcpy(sample->attrs, &attrs, sizeof attrs);
    return true;
}

static bool max_sample(int i, clv__sample *out) {
    return sample(i, out, true, false);
}
static bool max_backward_sample(int i, clv__sample *out) {
    return sample(i, out, true, true);
}
static bool avg_sample(int i, clv__sample *out) {
    return sample(i, out, false, false);
}
static bool avg_backward_sample(int i, clv__sample *out) {
    return sample(i, out, false, true);
}

// ---- descriptors
// ----------------------------------------------------------------------------------------------------

const clv__op clv__op_max_pool2d_backward = {
    .name = "max_pool2d_backward",
    .attrs_bytes = sizeof(pool_attrs),
    .half_in = 3,
    .half_out = 1,
    .infer = max_backward_infer,
    .variants = max_backward_variants,
    .reference = max_backward_reference,
    .sample = max_backward_sample,
    .cost = backward_cost,
    .reduction = window_elements,
};

static void max_grad(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx) {
    dx[0] = clv__node_add(&clv__op_max_pool2d_backward, clv__node_attrs(node),
                          (clv_tensor *[]){dy[0], clv__node_in(node, 0)}, 2, 0);
}

const clv__op clv__op_max_pool2d = {
    .name = "max_pool2d",
    .attrs_bytes = sizeof(pool_attrs),
    .half_in = 1,
    .half_out = 1,
    .infer = max_infer,
    .grad = max_grad,
    .variants = max_variants,
    .reference = max_reference,
    .sample = max_sample,
    .cost = cost,
};

const clv__op clv__op_avg_pool2d_backward = {
    .name = "avg_pool2d_backward",
    .attrs_bytes = sizeof(pool_attrs),
    .half_in = 1,
    .half_out = 1,
    .infer = avg_backward_infer,
    .variants = avg_backward_variants,
    .reference = avg_backward_reference,
    .sample = avg_backward_sample,
    .cost = backward_cost,
    .reduction = window_elements,
};

static void avg_grad(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx) {
    pool_attrs attrs = *(const pool_attrs *)clv__node_attrs(node);
    const clv_shape *x = &clv__node_io(node)->in[0].shape;
    attrs.size[0] = (int)x->dims[2];
    attrs.size[1] = (int)x->dims[3];
    dx[0] = clv__node_add(&clv__op_avg_pool2d_backward, &attrs, dy, 1, 0);
}

const clv__op clv__op_avg_pool2d = {
    .name = "avg_pool2d",
    .attrs_bytes = sizeof(pool_attrs),
    .half_in = 1,
    .half_out = 1,
    .infer = avg_infer,
    .grad = avg_grad,
    .variants = avg_variants,
    .reference = avg_reference,
    .sample = avg_sample,
    .cost = cost,
    .reduction = window_elements,
};

// ---- builders
// -------------------------------------------------------------------------------------------------------

static clv_tensor *build(const clv__op *op, clv_tensor *x, const clv_pool2d_config *config) {
    if (!x) return NULL;
    if (!config) return clv__graph_fail(clv__tensor_graph(x), CLV_E_VALUE, "%s: config is NULL", op->name);
    pool_attrs attrs = {.ceil_mode = config->ceil_mode, .exclude_padding = config->exclude_padding};
    clv__hw(attrs.kernel, config->kernel);
    clv__hw(attrs.stride, config->stride);
    clv__hw(attrs.dilation, config->dilation);
    clv__hw_padding(attrs.padding, config->padding);
    for (int i = 0; i < 2; i++) {
        if (!attrs.stride[i]) attrs.stride[i] = attrs.kernel[i];
        if (!attrs.dilation[i]) attrs.dilation[i] = 1;
    }
    return clv__node_add(op, &attrs, &x, 1, 0);
}

clv_tensor *clv_max_pool2d(clv_tensor *x, const clv_pool2d_config *config) {
    return build(&clv__op_max_pool2d, x, config);
}

clv_tensor *clv_avg_pool2d(clv_tensor *x, const clv_pool2d_config *config) {
    return build(&clv__op_avg_pool2d, x, config);
}

clv_tensor *clv_global_avg_pool2d(clv_tensor *x) {
    if (!x) return NULL;
    clv_shape shape = clv_tensor_shape(x);
    char text[128];
    if (shape.rank != 4) {
        return clv__graph_fail(clv__tensor_graph(x), CLV_E_SHAPE,
                               "global_avg_pool2d: x has %d dimensions, it must have 4 (x %s)", shape.rank,
                               clv_shape_text(&shape, text, sizeof text));
    }
    return clv_mean(x, (int[]){2, 3}, 2, true);
}
