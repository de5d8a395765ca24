// SPDX-License-Identifier: Apache-2.0
// Windows over [N,C,H,W], for max_pool.c and avg_pool.c: where they lie and how many there are, what kernels are told of them, and
// sample cases. Sizes, padding and the rule for windows that stick out follow torch.nn.MaxPool2d and torch.nn.AvgPool2d.
#include <stdio.h>
#include <string.h>

#include "ops/pool.h"

// ---- shape rule -----------------------------------------------------------------------------------------------------

static clv__pool_sizes sizes_between(const clv__pool *a, const clv_shape *x, const clv_shape *y) {
    return (clv__pool_sizes){.planes = x->dims[0] * x->dims[1],
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

clv__pool_sizes clv__pool_forward_sizes(const clv__op_io *io) {
    return sizes_between(io->attrs, &io->in[0].shape, &io->out[0].shape);
}

clv__pool_sizes clv__pool_backward_sizes(const clv__op_io *io) {
    return sizes_between(io->attrs, &io->out[0].shape, &io->in[0].shape);
}

static const char *const axis_names[2] = {"H", "W"};

/** Shape of y for x [N,C,H,W]; the sentence names the axis. */
static clv_status output_shape(const clv__pool *a, bool dilates, const clv_shape *x, clv_shape *y,
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
    if (most[0] * (most[1] + 1) > CLV__POOL_TURNS / 2) {
        CLV_FAIL(
            error, CLV_E_VALUE,
            "windows of %d x %d with stride %d x %d and dilation %d x %d are too large to pool; reduce whole "
            "images by clv_mean and clv_max",
            a->kernel[0], a->kernel[1], a->stride[0], a->stride[1], a->dilation[0], a->dilation[1]);
    }
    return CLV_OK;
}

clv_status clv__pool_infer(clv__op_io *io, bool dilates, clv__error *error) {
    CLV_TRY(clv__want_dtype(io, 0, "x", CLV_DTYPE_F32, error));
    CLV_TRY(clv__want_rank(io, 0, "x", 4, error));
    io->n_out = 1;
    io->out[0].dtype = CLV_DTYPE_F32;
    return output_shape(io->attrs, dilates, &io->in[0].shape, &io->out[0].shape, error);
}

clv_status clv__pool_backward_infer(clv__op_io *io, const clv_shape *x, bool dilates, clv__error *error) {
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

bool clv__pool_split(const clv__op_io *io, int i, clv__split *out) {
    if (i < 2) clv__split_all(io, i, out);
    return i < 2;
}

// ---- kernels --------------------------------------------------------------------------------------------------------

void clv__pool_window_args(clv__launches *list, clv__launch *launch, int64_t n, const clv__pool_sizes *s,
                           bool dilates) {
    CLV__ARGS_I32(list, launch, n, s->H, s->W, s->OH, s->OW, s->kernel_h, s->kernel_w, s->stride_h,
                  s->stride_w, s->pad_h, s->pad_w);
    if (dilates) CLV__ARGS_I32(list, launch, s->dilation_h, s->dilation_w);
}

void clv__pool_x_y(clv__launches *list, clv__launch *launch, const clv__op_io *io) {
    clv__arg_out_as(list, launch, io, 0, "T_Y");
    clv__arg_in_as(list, launch, io, 0, "T_X");
}

void clv__pool_dx_dy(clv__launches *list, clv__launch *launch, const clv__op_io *io, clv_dtype x) {
    if (io->out[0].dtype != x) clv__launch_define(list, launch, "T_DX", "%s", clv__storage(io->out[0].dtype));
    clv__arg_out(list, launch, 0);
    clv__arg_in_as(list, launch, io, 0, "T_Y");
}

void clv__pool_dx_dy_x(clv__launches *list, clv__launch *launch, const clv__op_io *io) {
    clv__pool_dx_dy(list, launch, io, io->n_in > 1 ? io->in[1].dtype : CLV_DTYPE_F32);
    if (io->n_in > 1) clv__arg_in_as(list, launch, io, 1, "T_X");
}

int64_t clv__pool_window_turns(const clv__pool_sizes *s) {
    return s->kernel_h * (s->kernel_w + 1) + 1;
}

bool clv__pool_rows_support(const clv_device_info *device, const clv__op_io *io) {
    clv__pool_sizes s = clv__pool_forward_sizes(io);
    return clv__threads(device) &&
           clv__loops_fit(device, clv__rows_for(s.W * s.stride_h) * (s.OW * clv__pool_window_turns(&s) + 2));
}

bool clv__pool_planes_support(const clv_device_info *device, const clv__op_io *io) {
    clv__pool_sizes s = clv__pool_backward_sizes(io);
    return clv__threads(device) && io->out[0].dtype == CLV_DTYPE_F32 &&
           clv__loops_fit(device, clv__rows_for(s.W * s.H) *
                                      (s.H * s.W + s.OH * (s.OW * clv__pool_window_turns(&s) + 1)));
}

double clv__pool_wide_rank(const clv_device_info *device, const clv__op_io *io) {
    (void)device;
    (void)io;
    return 0.08;
}

clv__launch *clv__pool_wide(clv__launches *list, const clv__op_io *io, const char *entry,
                            const clv__pool_sizes *s, int64_t n, int64_t width, bool dilates, bool backward) {
    int64_t rows = clv__rows_for(width);
    if (n == 0) return NULL;
    clv__launch *launch = clv__launch_kernel(list, "pool", entry);
    if (backward)
        clv__pool_dx_dy_x(list, launch, io);
    else
        clv__pool_x_y(list, launch, io);
    clv__arg_i32(list, launch, n);
    clv__pool_window_args(list, launch, rows, s, dilates);
    if (!dilates) clv__arg_i32(list, launch, ((const clv__pool *)io->attrs)->exclude_padding);
    clv__launch_over(list, launch, CLV__TASKS, clv__div_up(n, rows));
    return launch;
}

// ---- cost -----------------------------------------------------------------------------------------------------------

static double io_bytes(const clv__op_io *io) {
    double n = (double)clv__numel(&io->out[0]);
    for (int i = 0; i < io->n_in; i++) n += (double)clv__numel(&io->in[i]);
    return 4 * n;
}

void clv__pool_cost(const clv__op_io *io, clv__cost *out) {
    const clv__pool *a = io->attrs;
    *out = (clv__cost){(double)clv__numel(&io->out[0]) * a->kernel[0] * a->kernel[1], io_bytes(io)};
}

void clv__pool_backward_cost(const clv__op_io *io, clv__cost *out) {
    const clv__pool *a = io->attrs;
    *out = (clv__cost){(double)clv__numel(&io->in[0]) * a->kernel[0] * a->kernel[1], io_bytes(io)};
}

int64_t clv__pool_window_elements(const clv__op_io *io) {
    const clv__pool *a = io->attrs;
    return (int64_t)a->kernel[0] * a->kernel[1];
}

// ---- samples --------------------------------------------------------------------------------------------------------

static const struct pool_case {
    const char *label;
    int64_t x[4];
    clv__pool attrs;
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
    {"3x3, stride 2, rows of 17", {1, 2, 7, 36}, {{3, 3}, {2, 2}, {0, 0}, {1, 1}, 0, 0, {0}}, LONG},
    {"5x5, stride 2, padding 2, rows of 20",
     {2, 1, 6, 40},
     {{5, 5}, {2, 2}, {2, 2}, {1, 1}, 0, 0, {0}},
     LONG},
    {"2x2, stride 3, rows of 16 and a rest",
     {1, 2, 6, 49},
     {{2, 2}, {3, 3}, {0, 0}, {1, 1}, 0, 0, {0}},
     LONG},
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
    {"2x4, stride 1 2, padding 0 1, dilation 1 3, rows of 19",
     {1, 2, 4, 44},
     {{2, 4}, {1, 2}, {0, 1}, {1, 3}, 0, 0, {0}},
     LONG},
    {"window between rows: -infinity",
     {1, 1, 1, 12},
     {{2, 2}, {1, 1}, {1, 0}, {2, 1}, 0, 0, {0}},
     NO_GRADIENT},
    {"2x2, stride 2, dilation 2, ceil", {1, 1, 8, 9}, {{2, 2}, {2, 2}, {1, 0}, {2, 2}, 1, 0, {0}}, LONG},
};

bool clv__pool_sample(int i, clv__sample *out, bool dilates, bool backward) {
    if (i < 0 || (size_t)i >= sizeof cases / sizeof *cases) return false;
    const struct pool_case *c = &cases[i];
    clv__pool attrs = c->attrs;
    if (!dilates && (attrs.dilation[0] != 1 || attrs.dilation[1] != 1)) return false; // the last ones
    clv_shape x = clv_shape_make(4, c->x), y;
    snprintf(out->label, sizeof out->label, "%s", c->label);
    out->quick = c->kind == QUICK;
    out->no_gradient = c->kind == NO_GRADIENT;
    out->n_in = 1;
    out->in[0] = clv__f32(x);
    out->fill[0] = (clv__fill){CLV__FILL_DISTINCT, -2, 2};
    if (backward) {
        if (output_shape(&attrs, dilates, &x, &y, NULL) != CLV_OK) return false;
        out->in[0] = clv__f32(y);
        if (dilates) {
            out->n_in = 2;
            out->in[1] = clv__f32(x);
            out->fill[1] = (clv__fill){CLV__FILL_INTEGER, -2, 2}; // ties: the first maximum takes all
        } else {
            attrs.size[0] = (int)x.dims[2];
            attrs.size[1] = (int)x.dims[3];
        }
    }
    memcpy(out->attrs, &attrs, sizeof attrs);
    return true;
}

// ---- builder --------------------------------------------------------------------------------------------------------

clv_tensor *clv__pool_build(const clv__op *op, clv_tensor *x, const clv_pool2d_config *config) {
    if (!x) return NULL;
    if (!config) return clv__graph_fail(clv__tensor_graph(x), CLV_E_VALUE, "%s: config is NULL", op->name);
    clv__pool attrs = {.ceil_mode = config->ceil_mode, .exclude_padding = config->exclude_padding};
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
