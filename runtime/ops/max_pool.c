// SPDX-License-Identifier: Apache-2.0
// max_pool2d: the largest value of each window, and its gradient. Source of what happens to ties, NaN and windows that stick
// out: torch.nn.MaxPool2d.
#include <math.h>

#include "cleave/ops.h"
#include "graph/signature.h"
#include "ops/pool.h"
#include "ops/tiles.h"

// ---- kernels --------------------------------------------------------------------------------------------------------

static void max_plain(clv__launches *list, const clv__op_io *io) {
    clv__pool_each(list, io, "max_pool2d");
}

static void max_backward_winner(clv__launches *list, const clv__op_io *io) {
    const clv__pool_sizes s = clv__pool_sizes_of(io);
    const int64_t outputs = s.planes * s.OH * s.OW, inputs = s.planes * s.H * s.W;
    if (inputs == 0) return;
    const clv__part winner = clv__floats(list, outputs); // or ints
    clv__launch *launch = clv__launch_items(list, "pool", "max_pool2d_winner", CLV__ELEMENTS, outputs);
    clv__arg_part(list, launch, winner);
    clv__arg_tensors(list, launch, io, "i1=T_X");
    clv__pool_window_args(list, launch, io, outputs);
    launch = clv__launch_items(list, "pool", "max_pool2d_gather", CLV__ELEMENTS, inputs);
    clv__arg_tensors(list, launch, io, "o0=T_DX i0=T_Y");
    clv__arg_part(list, launch, winner);
    clv__pool_window_args(list, launch, io, inputs);
}

static void max_backward_plain(clv__launches *list, const clv__op_io *io) {
    const clv__pool_sizes s = clv__pool_sizes_of(io);
    const int64_t windows_h = (s.kernel_h - 1) * s.dilation_h / s.stride_h + 1,
                  windows_w = (s.kernel_w - 1) * s.dilation_w / s.stride_w + 1;
    if (windows_h * (windows_w * clv__pool_window_turns(&s) + 1) > CLV__POOL_TURNS) // windows of windows
        max_backward_winner(list, io);
    else
        clv__pool_each(list, io, "max_pool2d_backward");
}

/** Windows that tile x: each input is in one window at most. */
static bool apart(const clv__pool *a) {
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
    const clv__pool_sizes s = clv__pool_sizes_of(io);
    const int64_t n = s.planes * clv__div_up(s.H, s.kernel_h) * clv__div_up(s.W, s.kernel_w);
    if (s.kernel_h == 2 && s.kernel_w == 2 && s.H % 2 == 0 && s.W % 2 == 0) {
        clv__launch *launch = clv__launch_items(list, "pool", "max_pool2d_backward_pairs", CLV__ELEMENTS, n);
        clv__arg_tensors(list, launch, io, "o0=T_DX i0=T_Y i1=T_X");
        CLV__ARGS_I32(list, launch, n, s.OW);
        return;
    }
    clv__launch *launch = clv__launch_items(list, "pool", "max_pool2d_backward_apart", CLV__ELEMENTS, n);
    clv__arg_tensors(list, launch, io, "o0=T_DX i0=T_Y i1=T_X");
    CLV__ARGS_I32(list, launch, n, s.H, s.W, s.OH, s.OW, s.kernel_h, s.kernel_w);
}

/** Kernel 2, stride 2, no window sticks out. */
static bool two_supports(const clv_device_info *device, const clv__op_io *io) {
    const clv__pool_sizes s = clv__pool_sizes_of(io);
    return clv__threads(device) && apart(io->attrs) && s.kernel_h == 2 && s.kernel_w == 2 &&
           s.OH == s.H / 2 && s.OW == s.W / 2;
}

static void two_lower(clv__launches *list, const clv__op_io *io) {
    const clv__pool_sizes s = clv__pool_sizes_of(io);
    const bool backward = clv__is_gradient(io);
    const int64_t n = s.planes * (backward ? clv__div_up(s.H, 2) : s.OH), rows = clv__rows_for(2 * s.W);
    clv__launch *launch =
        clv__launch_items(list, "pool", backward ? "max_pool2d_2x2_backward" : "max_pool2d_2x2", CLV__TASKS,
                          clv__div_up(n, rows));
    clv__arg_tensors(list, launch, io, backward ? "o0=T_DX i0=T_Y i1=T_X" : "o0=T_Y i0=T_X");
    CLV__ARGS_I32(list, launch, n, rows, s.H, s.W, s.OH, s.OW);
}

/** Elements of a local array of max_pool2d_planes_backward on a device; 0: too few. It has five, and two a sixteenth as long. */
static int64_t planes_room(const clv_device_info *device) {
    enum { LEAST = 256 };
    int64_t room = CLV__POOL_ROOM;
    while (room >= LEAST && (uint64_t)(5 * room + 2 * (room / 16)) * 4 > clv__tile_local_bytes(device))
        room /= 2;
    return room >= LEAST ? room : 0;
}

static bool max_planes_backward_supports(const clv_device_info *device, const clv__op_io *io) {
    clv__pool_sizes s = clv__pool_sizes_of(io);
    if (!clv__threads(device) || device->loop_turns != 0) return false;
    int64_t room = planes_room(device), span = (s.kernel_h - 1) * s.dilation_h + 1;
    int64_t reach = (s.kernel_w - 1) * s.dilation_w / s.stride_w;
    int64_t columns = clv__max64((s.W - 1 + s.pad_w) / s.stride_w + 1, s.OW);
    int64_t pitch = clv__round_up(columns, 16) + reach; // as the kernel has it
    return s.kernel_w <= room / 16 && s.stride_w <= room && pitch <= room && span <= room &&
           span * s.stride_w * pitch <= room;
}

static void max_backward_planes(clv__launches *list, const clv__op_io *io) {
    int64_t room = planes_room(list->device);
    clv__launch *launch = clv__pool_wide(list, io, "max_pool2d_planes_backward");
    if (launch && room != CLV__POOL_ROOM) clv__launch_define(list, launch, "ROOM", "%d", (int)room);
}

/** Plain looks at kernel^2 elements for every window an input is in; this one twice at every input in all. */
static double winner_rank(const clv_device_info *device, const clv__op_io *io) {
    (void)device;
    return 2.0 / (double)clv__pool_window_elements(io) + 0.1;
}

static double apart_rank(const clv_device_info *device, const clv__op_io *io) {
    (void)device;
    return 1.0 / (double)clv__pool_window_elements(io);
}

static const clv__variant max_variants[] = {
    {"plain", .lower = max_plain},
    {"rows", clv__pool_rows_support, .lower = clv__pool_rows, .relative = 0.08},
    {"vector_2x2", two_supports, .lower = two_lower, .relative = 0.05},
    CLV__POOL_TILE,
    {0}};
static const clv__variant max_backward_variants[] = {
    {"plain", .lower = max_backward_plain},
    {"winner", NULL, winner_rank, .lower = max_backward_winner},
    {"apart", apart_supports, apart_rank, .lower = max_backward_apart},
    {"planes", max_planes_backward_supports, .lower = max_backward_planes, .relative = 0.08},
    {"vector_2x2", two_supports, .lower = two_lower, .relative = 0.05},
    CLV__POOL_TILE,
    {0}};

// ---- references -----------------------------------------------------------------------------------------------------

/** Position h*W + w of the first maximum that output (oh, ow) looks at; -1 if it looks at nothing. A NaN
 * wins. */
static int64_t winner_of(const double *plane, const clv__pool_sizes *s, int64_t oh, int64_t ow) {
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

/** y from x, or dx from dy: the same windows. */
static void max_walk(const clv__pool_sizes *s, const double *x, double *y, double *dx, const double *dy) {
    for (int64_t o = 0; o < s->planes * s->OH * s->OW; o++) {
        const int64_t plane = o / (s->OH * s->OW) * s->H * s->W;
        const int64_t at = winner_of(x + plane, s, o / s->OW % s->OH, o % s->OW);
        if (y) y[o] = at < 0 ? -INFINITY : x[plane + at];
        if (dx && at >= 0) dx[plane + at] += dy[o];
    }
}

static void max_reference(const clv__ref *ref) {
    const clv__pool_sizes s = clv__pool_sizes_of(ref->io);
    max_walk(&s, ref->in[0], ref->out[0], NULL, NULL);
}

static void max_backward_reference(const clv__ref *ref) {
    const clv__pool_sizes s = clv__pool_sizes_of(ref->io);
    clv__ref_zero(ref);
    max_walk(&s, ref->in[1], NULL, ref->out[0], ref->in[0]);
}

// ---- descriptors ----------------------------------------------------------------------------------------------------

static void make_ties(clv__sample *sample) { // the first maximum takes all
    sample->fill[1] = (clv__fill){CLV__FILL_INTEGER, -2, 2};
}

extern const clv__op clv__op_max_pool2d;
const clv__op clv__op_max_pool2d_backward = {
    CLV__GRADIENT_OF(max_pool2d, "d0 i0 g0"), .half_in = 3,
    .variants = max_backward_variants,        .reference = max_backward_reference,
    .adapt = CLV__TRAINS(make_ties),          .reduction = clv__pool_window_elements,
    .attrs_bytes = sizeof(clv__pool),         CLV__POOL_OP};

const clv__op clv__op_max_pool2d = {
    .name = "max_pool2d",
    .inputs = CLV__INPUTS({"x", "f32[N,C,H,W]"}),
    .attributes = CLV__ATTRIBUTES({CLV__ATTRIBUTE(PAIR, clv__pool, kernel, NULL), CLV__AT_LEAST(1)},
                                  {CLV__ATTRIBUTE(PAIR, clv__pool, stride, "kernel"), CLV__AT_LEAST(1)},
                                  {CLV__ATTRIBUTE(PAIR, clv__pool, padding, "0"), CLV__AT_LEAST(0)},
                                  {CLV__ATTRIBUTE(PAIR, clv__pool, dilation, "1"), CLV__AT_LEAST(1)},
                                  {CLV__ATTRIBUTE(BOOL, clv__pool, ceil_mode, "0")}),
    .outputs = CLV__OUTPUTS({"y", "f32[N,C,_,_]"}),
    .attrs_bytes = sizeof(clv__pool),
    .half_in = 1,
    .infer = clv__pool_infer,
    .split = clv__pool_split,
    CLV__GRADIENT(max_pool2d),
    .variants = max_variants,
    .reference = max_reference,
    .samples = CLV__TRAINS(clv__pool_samples),
    CLV__POOL_OP};

clv_tensor *clv_max_pool2d(clv_tensor *x, const clv_pool2d_config *config) {
    return clv__pool_build(&clv__op_max_pool2d, x, config);
}
