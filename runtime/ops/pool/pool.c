// SPDX-License-Identifier: Apache-2.0
// Windows over [N,C,H,W], for max_pool.c and avg_pool.c: where they lie and how many there are, what kernels are told of them, and
// sample cases. Sizes, padding and the rule for windows that stick out follow torch.nn.MaxPool2d and torch.nn.AvgPool2d.
#include <stdio.h>
#include <string.h>

#include "ops/pool/pool.h"

// ---- shape rule -----------------------------------------------------------------------------------------------------

static clv__pool_sizes sizes_between(const clv__pool *a, const clv_shape *x, const clv_shape *y) {
    const int64_t kernel[] = {a->kernel[0], a->kernel[1], a->kernel[2]};
    return (clv__pool_sizes){.planes = x->dims[0] * x->dims[1],
                             .windows = clv__windows_of(x, y, kernel, a->stride, a->padding, a->dilation)};
}

clv__pool_sizes clv__pool_sizes_of(const clv__op_io *io) {
    const clv_shape *in = &io->in[0].shape, *out = &io->out[0].shape;
    return clv__is_gradient(io) ? sizes_between(io->attrs, out, in) : sizes_between(io->attrs, in, out);
}

static const char *times_text(const int32_t *sizes, int dims, char text[40]) {
    for (int d = 0, used = 0; d < dims; d++)
        used += snprintf(text + used, (size_t)(40 - used), d ? " x %d" : "%d", (int)sizes[d]);
    return text;
}

/** Shape of y for x [N,C,...]; the sentence names the axis. */
static clv_status output_shape(const clv__pool *a, bool dilates, const clv_shape *x, clv_shape *y,
                               clv__error *error) {
    const int dims = x->rank - 2;
    int64_t turns = 1;
    *y = *x;
    for (int i = 0; i < dims; i++) {
        const char *axis = clv__window_axis(dims, i);
        int64_t size = x->dims[2 + i], k = a->kernel[i], s = a->stride[i], p = a->padding[i],
                d = a->dilation[i];
        if (d != 1 && !dilates) CLV_FAIL(error, CLV_E_VALUE, "dilation is for max_pool2d only");
        if (p > k / 2) {
            CLV_FAIL(error, CLV_E_VALUE, "padding %lld is more than half of the kernel %lld along %s",
                     (long long)p, (long long)k, axis);
        }
        int64_t window = d * (k - 1) + 1, room = size + 2 * p - window;
        if (window > INT32_MAX / 4 || s > INT32_MAX / 4) {
            CLV_FAIL(error, CLV_E_VALUE, "a window of %lld elements with stride %lld along %s is too large",
                     (long long)window, (long long)s, axis);
        }
        if (a->ceil_mode) room += s - 1;
        int64_t out = room < 0 ? 0 : room / s + 1;
        if (a->ceil_mode && (out - 1) * s >= size + p)
            out--; // every window begins inside x or the padding before it
        if (out < 1 || size < 1) {
            CLV_FAIL(error, CLV_E_SHAPE,
                     "a window of %lld elements does not fit into %s = %lld with padding %lld",
                     (long long)window, axis, (long long)size, (long long)p);
        }
        y->dims[2 + i] = out;
        // Windows that look at one element, and elements in a window: what one work-item loops over.
        int64_t shared = (k - 1) * d / s + 1;
        turns *= clv__max64(clv__min64(shared, out), k) + (i > 0); // inner loops turn once more, to end
    }
    if (turns > CLV__POOL_TURNS / 2) {
        char kernel[40], stride[40], dilation[40];
        CLV_FAIL(error, CLV_E_VALUE,
                 "windows of %s with stride %s and dilation %s are too large to pool; reduce whole images by "
                 "clv_mean and clv_max",
                 times_text(a->kernel, dims, kernel), times_text(a->stride, dims, stride),
                 times_text(a->dilation, dims, dilation));
    }
    return CLV_OK;
}

clv_status clv__pool_infer(clv__op_io *io, clv__error *error) {
    io->n_out = 1;
    io->out[0].dtype = CLV_DTYPE_F32;
    return output_shape(io->attrs, !clv__pool_is_mean(io), &io->in[0].shape, &io->out[0].shape, error);
}

bool clv__pool_split(const clv__op_io *io, int i, clv__split *out) {
    if (i < 2) clv__split_all(io, i, out);
    return i < 2;
}

// ---- kernels --------------------------------------------------------------------------------------------------------

void clv__pool_window_args(clv__launches *list, clv__launch *launch, const clv__op_io *io, int64_t n) {
    const clv__pool_sizes s = clv__pool_sizes_of(io);
    CLV__ARGS_I32(list, launch, n, s.in[0], s.in[1], s.out[0], s.out[1], s.kernel[0], s.kernel[1],
                  s.stride[0], s.stride[1], s.padding[0], s.padding[1]);
    if (clv__pool_is_mean(io))
        clv__arg_i32(list, launch, clv__pool_excludes(io));
    else
        CLV__ARGS_I32(list, launch, s.dilation[0], s.dilation[1]);
}

/** The tensors of a launch that takes all of the op's. */
static void tensors(clv__launches *list, clv__launch *launch, const clv__op_io *io) {
    const bool backward = clv__is_gradient(io);
    clv__arg_tensors(list, launch, io,
                     !backward       ? "o0=T_Y i0=T_X"
                     : io->n_in == 1 ? "o0=T_DX i0=T_Y"
                                     : "o0=T_DX i0=T_Y i1=T_X");
}

void clv__pool_each(clv__launches *list, const clv__op_io *io, const char *entry) {
    const int64_t n = clv__numel(&io->out[0]);
    clv__launch *launch = clv__launch_items(list, "pool", entry, CLV__ELEMENTS, n);
    tensors(list, launch, io);
    clv__pool_window_args(list, launch, io, n);
}

int64_t clv__pool_window_turns(const clv__pool_sizes *s) {
    return s->kernel[0] * (s->kernel[1] + 1) + 2; // the turn over windows is one of them
}

bool clv__pool_rows_support(const clv_device_info *device, const clv__op_io *io) {
    clv__pool_sizes s = clv__pool_sizes_of(io);
    return clv__threads(device) && clv__loops_fit(device, clv__rows_for(s.in[1] * s.stride[0]) *
                                                              (s.out[1] * clv__pool_window_turns(&s) + 2));
}

bool clv__pool_planes_support(const clv_device_info *device, const clv__op_io *io) {
    clv__pool_sizes s = clv__pool_sizes_of(io);
    return clv__threads(device) && io->out[0].dtype == CLV_DTYPE_F32 &&
           clv__loops_fit(device,
                          clv__rows_for(s.in[1] * s.in[0]) *
                              (s.in[0] * s.in[1] + s.out[0] * (s.out[1] * clv__pool_window_turns(&s) + 1)));
}

clv__launch *clv__pool_wide(clv__launches *list, const clv__op_io *io, const char *entry) {
    const clv__pool_sizes s = clv__pool_sizes_of(io);
    const bool backward = clv__is_gradient(io);
    const int64_t n = s.planes * (backward ? 1 : s.out[0]);
    const int64_t rows = clv__rows_for(backward ? s.in[1] * s.in[0] : s.in[1] * s.stride[0]);
    clv__launch *launch = clv__launch_items(list, "pool", entry, CLV__TASKS, clv__div_up(n, rows));
    tensors(list, launch, io);
    clv__arg_i32(list, launch, n);
    clv__pool_window_args(list, launch, io, rows);
    return launch;
}

void clv__pool_rows(clv__launches *list, const clv__op_io *io) {
    clv__pool_wide(list, io, clv__pool_is_mean(io) ? "avg_pool2d_rows" : "max_pool2d_rows");
}

// ---- few taps, on devices with lanes --------------------------------------------------------------------------------

/** Rows that an item makes, of outputs or of blocks as large as a stride; and so many windows are there, of H or W, that it looks at in a
 *  gradient. */
enum { DIRECT_ROWS = 2 };
static int64_t windows_of(const clv__pool_sizes *s, int d, int64_t rows) {
    const int64_t after = s->padding[d] - (s->kernel[d] - 1) * s->dilation[d];
    const int64_t first = after > 0 ? clv__div_up(after, s->stride[d]) : after / s->stride[d];
    return rows + (s->stride[d] - 1 + s->padding[d]) / s->stride[d] - first;
}

/** Taps of a window, inputs of a block, and floats that an item looks at have to find room in registers: of 5x5 windows with stride 2 a
 *  gradient would take 139 on sm_90. MANY: taps of all windows of an item. */
bool clv__pool_direct_supports(const clv_device_info *device, const clv__op_io *io) {
    enum { MOST = 64, MANY = 200, BLOCK = 32 };
    const clv__pool_sizes s = clv__pool_sizes_of(io);
    int64_t taps = s.kernel[0] * s.kernel[1], high = DIRECT_ROWS, wide = 1;
    if (clv__is_gradient(io)) {
        high = windows_of(&s, 0, DIRECT_ROWS), wide = windows_of(&s, 1, 1);
        if (s.stride[0] * s.stride[1] > BLOCK) return false;
    }
    const int64_t floats = ((high - 1) * s.stride[0] + (s.kernel[0] - 1) * s.dilation[0] + 1) *
                           ((wide - 1) * s.stride[1] + (s.kernel[1] - 1) * s.dilation[1] + 1);
    return s.planes > 0 && taps <= MOST && floats <= 3 * MOST && taps * high * wide <= MANY &&
           clv__loops_fit(device, taps * high * wide * 3);
}

void clv__pool_direct_lower(clv__launches *list, const clv__op_io *io) {
    static const char *const names[] = {"KH", "KW", "SH", "SW", "PH", "PW", "DH", "DW"};
    const clv__pool_sizes s = clv__pool_sizes_of(io);
    const bool backward = clv__is_gradient(io);
    const int64_t values[] = {CLV__HW(s.kernel), CLV__HW(s.stride), CLV__HW(s.padding), CLV__HW(s.dilation)};
    const int64_t high =
        backward ? clv__div_up(s.in[0], DIRECT_ROWS * s.stride[0]) : clv__div_up(s.out[0], DIRECT_ROWS);
    const int64_t n = s.planes * high * (backward ? clv__div_up(s.in[1], s.stride[1]) : s.out[1]);
    clv__launch *launch = clv__launch_items(
        list, "pool", backward ? "pool2d_direct_backward" : "pool2d_direct", CLV__ELEMENTS, n);
    clv__define_number(list, launch, "MEAN", clv__pool_is_mean(io), 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        clv__define_number(list, launch, names[i], values[i], i < 4 ? 2 : i < 6 ? 0 : 1);
    clv__define_number(list, launch, "ACCESS", s.stride[1] % 2 == 0 && s.in[1] % 2 == 0 ? 2 : 1, 1);
    tensors(list, launch, io);
    CLV__ARGS_I32(list, launch, n, CLV__HW(s.in), CLV__HW(s.out), clv__pool_excludes(io));
}

// ---- cost -----------------------------------------------------------------------------------------------------------

void clv__pool_cost(const clv__op_io *io, clv__cost *out) {
    const clv__desc *y = clv__is_gradient(io) ? &io->in[0] : &io->out[0];
    *out = (clv__cost){(double)clv__numel(y) * (double)clv__pool_window_elements(io), clv__float_bytes(io)};
}

int64_t clv__pool_window_elements(const clv__op_io *io) {
    const clv__pool_sizes s = clv__pool_sizes_of(io);
    return clv__window_product(&s.windows, s.kernel);
}

void clv__pool_mean(double *plane, const int64_t *in, int64_t (*span)[2], double count, double *y,
                    bool backward) {
    double sum = 0;
    for (int64_t h = span[0][0]; h < span[0][1]; h++)
        for (int64_t i = span[1][0]; i < span[1][1]; i++)
            for (int64_t j = span[2][0]; j < span[2][1]; j++) {
                double *at = plane + (h * in[1] + i) * in[2] + j;
                sum += *at;
                if (backward) *at += *y / count;
            }
    if (!backward) *y = sum / count;
}

// ---- samples --------------------------------------------------------------------------------------------------------

// clang-format off
#define LIST(...) {__VA_ARGS__}
#define CASE(what, x, kernel, stride, padding, dilation, ceil_mode, exclude, kind)                          \
    {.label = (what), .in = {CLV__DIMS x},                                                                  \
     .attrs = &(clv__pool){LIST kernel, LIST stride, LIST padding, LIST dilation, ceil_mode, exclude},       \
     .fill = {{CLV__FILL_DISTINCT, -2, 2}}, .quick = (kind) == QUICK, .no_gradient = (kind) == NO_GRADIENT}
// clang-format on
enum { LONG, QUICK, NO_GRADIENT }; // the last: the result is infinite

const clv__sample_row clv__pool_samples[] = {
    // label, x, then of H and W kernel, stride, padding, dilation; ceil_mode, exclude_padding
    CASE("2x2, dilation 2", (1, 2, 6, 7), (2, 2), (1, 1), (0, 0), (2, 2), 0, 0, QUICK),
    CASE("3x2, stride 2, padding 1, dilation 2 3", (2, 2, 11, 9), (3, 2), (2, 2), (1, 1), (2, 3), 0, 0, LONG),
    CASE("3x3, padding 1, dilation 2, rows of 20", (1, 2, 7, 22), (3, 3), (1, 1), (1, 1), (2, 2), 0, 0, LONG),
    CASE("2x4, stride 1 2, padding 0 1, dilation 1 3, rows of 19", (1, 2, 4, 44), (2, 4), (1, 2), (0, 1),
         (1, 3), 0, 0, LONG),
    CASE("window between rows: -infinity", (1, 1, 1, 12), (2, 2), (1, 1), (1, 0), (2, 1), 0, 0, NO_GRADIENT),
    CASE("2x2, stride 2, dilation 2, ceil", (1, 1, 8, 9), (2, 2), (2, 2), (1, 0), (2, 2), 1, 0, LONG),
    // CLV__POOL_UNDILATED of them so far. The next two are too many turns of loops for one work-item with whole
    // planes, or windows of windows. Of the two after them a tile has a part of the rows, or of the columns.
    CASE("many windows of a plane", (9, 1, 30, 30), (3, 3), (1, 1), (0, 0), (1, 1), 0, 0, LONG),
    CASE("large windows, close together", (1, 1, 36, 37), (16, 17), (1, 1), (0, 0), (1, 1), 0, 0, LONG),
    CASE("3x3, stride 2, padding 1, several tiles down", (1, 2, 71, 75), (3, 3), (2, 2), (1, 1), (1, 1), 0, 0,
         LONG),
    CASE("3x3, padding 1, several tiles along a row", (1, 1, 3, 1500), (3, 3), (1, 1), (1, 1), (1, 1), 0, 0,
         LONG),
    CASE("2x2, even sizes", (2, 3, 8, 24), (2, 2), (2, 2), (0, 0), (1, 1), 0, 0, QUICK),
    CASE("2x2, odd sizes", (2, 3, 7, 25), (2, 2), (2, 2), (0, 0), (1, 1), 0, 0, QUICK),
    CASE("2x2, odd sizes, ceil", (1, 3, 7, 9), (2, 2), (2, 2), (0, 0), (1, 1), 1, 0, QUICK),
    CASE("3x3, stride 2, padding 1", (2, 3, 9, 10), (3, 3), (2, 2), (1, 1), (1, 1), 0, 0, QUICK),
    CASE("2x2, smallest", (1, 1, 2, 2), (2, 2), (2, 2), (0, 0), (1, 1), 0, 0, LONG),
    CASE("2x2, smallest with a rest", (1, 1, 3, 3), (2, 2), (2, 2), (0, 0), (1, 1), 0, 0, LONG),
    CASE("2x2, rows of 7 outputs", (3, 5, 4, 14), (2, 2), (2, 2), (0, 0), (1, 1), 0, 0, LONG),
    CASE("2x2, rows of 4 outputs and a rest", (1, 2, 5, 9), (2, 2), (2, 2), (0, 0), (1, 1), 0, 0, LONG),
    CASE("2x2, rows of 33 outputs", (1, 2, 6, 67), (2, 2), (2, 2), (0, 0), (1, 1), 0, 0, LONG),
    CASE("2x2, many planes", (5, 41, 4, 16), (2, 2), (2, 2), (0, 0), (1, 1), 0, 0, LONG),
    CASE("1x1, stride 1", (2, 2, 3, 5), (1, 1), (1, 1), (0, 0), (1, 1), 0, 0, LONG),
    CASE("1x1, stride 2: some inputs in no window", (1, 2, 5, 6), (1, 1), (2, 2), (0, 0), (1, 1), 0, 0, LONG),
    CASE("3x3 apart, a rest", (2, 2, 7, 8), (3, 3), (3, 3), (0, 0), (1, 1), 0, 0, LONG),
    CASE("3x2 apart, ceil", (2, 2, 7, 7), (3, 2), (3, 2), (0, 0), (1, 1), 1, 0, LONG),
    CASE("3x3, stride 1, padding 1", (1, 2, 5, 5), (3, 3), (1, 1), (1, 1), (1, 1), 0, 0, LONG),
    CASE("3x3, stride 2, padding 1, ceil", (1, 2, 8, 8), (3, 3), (2, 2), (1, 1), (1, 1), 1, 0, LONG),
    CASE("2x3, stride 3 1, padding 1 0", (2, 1, 11, 7), (2, 3), (3, 1), (1, 0), (1, 1), 0, 0, LONG),
    CASE("3x3, stride 1, padding 1, rows of 21", (1, 3, 5, 21), (3, 3), (1, 1), (1, 1), (1, 1), 0, 0, LONG),
    CASE("3x3, stride 2, padding 1, rows of 19", (2, 2, 7, 37), (3, 3), (2, 2), (1, 1), (1, 1), 0, 0, QUICK),
    CASE("3x3, stride 2, rows of 17", (1, 2, 7, 36), (3, 3), (2, 2), (0, 0), (1, 1), 0, 0, LONG),
    CASE("5x5, stride 2, padding 2, rows of 20", (2, 1, 6, 40), (5, 5), (2, 2), (2, 2), (1, 1), 0, 0, LONG),
    CASE("2x2, stride 3, rows of 16 and a rest", (1, 2, 6, 49), (2, 2), (3, 3), (0, 0), (1, 1), 0, 0, LONG),
    CASE("5x2, stride 3, padding 2 1, rows of 12", (1, 2, 9, 35), (5, 2), (3, 3), (2, 1), (1, 1), 1, 1, LONG),
    CASE("2x2, stride 2, padding 1, rows of 8 within", (1, 2, 5, 18), (2, 2), (2, 2), (1, 1), (1, 1), 0, 0,
         LONG),
    CASE("window as large as x", (2, 3, 5, 7), (5, 7), (5, 7), (0, 0), (1, 1), 0, 0, LONG),
    CASE("window larger than x, padding", (1, 2, 1, 2), (3, 4), (1, 1), (1, 2), (1, 1), 0, 0, LONG),
    CASE("5x5, stride 2, padding 2, exclude padding", (1, 2, 9, 8), (5, 5), (2, 2), (2, 2), (1, 1), 0, 1,
         LONG),
    CASE("3x3, stride 2, padding 1, ceil, exclude padding", (1, 2, 8, 7), (3, 3), (2, 2), (1, 1), (1, 1), 1,
         1, LONG),
    CASE("no images", (0, 3, 8, 8), (2, 2), (2, 2), (0, 0), (1, 1), 0, 0, LONG),
    {0}};
