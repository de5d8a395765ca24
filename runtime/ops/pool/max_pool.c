// SPDX-License-Identifier: Apache-2.0
// max_pool2d: the largest value of each window, and its gradient. Source of what happens to ties, NaN and windows that stick
// out: torch.nn.MaxPool2d.
#include <math.h>

#include "cleave/ops.h"
#include "graph/signature.h"
#include "ops/pool/pool.h"
#include "ops/tiles.h"

// ---- kernels --------------------------------------------------------------------------------------------------------

static void max_plain(clv__launches *list, const clv__op_io *io) {
    clv__pool_each(list, io, "max_pool2d");
}

static void max_backward_winner(clv__launches *list, const clv__op_io *io) {
    const clv__pool_sizes s = clv__pool_sizes_of(io);
    const int64_t outputs = s.planes * s.out[0] * s.out[1], inputs = s.planes * s.in[0] * s.in[1];
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
    const int64_t windows_h = (s.kernel[0] - 1) * s.dilation[0] / s.stride[0] + 1,
                  windows_w = (s.kernel[1] - 1) * s.dilation[1] / s.stride[1] + 1;
    if (windows_h * (windows_w * clv__pool_window_turns(&s) + 1) > CLV__POOL_TURNS) // windows of windows
        max_backward_winner(list, io);
    else
        clv__pool_each(list, io, "max_pool2d_backward");
}

/** Windows that tile x: each input is in one window at most. */
static bool apart(const clv__pool *a) {
    for (int i = 0; i < CLV__WINDOW_DIMS; i++)
        if (a->stride[i] != a->kernel[i] || a->padding[i] != 0 || a->dilation[i] > 1) return false;
    return true;
}

static bool apart_supports(const clv_device_info *device, const clv__op_io *io) {
    (void)device;
    return apart(io->attrs);
}

static void max_backward_apart(clv__launches *list, const clv__op_io *io) {
    const clv__pool_sizes s = clv__pool_sizes_of(io);
    const int64_t n = s.planes * clv__div_up(s.in[0], s.kernel[0]) * clv__div_up(s.in[1], s.kernel[1]);
    clv__launch *launch = clv__launch_items(list, "pool", "max_pool2d_backward_apart", CLV__ELEMENTS, n);
    clv__arg_tensors(list, launch, io, "o0=T_DX i0=T_Y i1=T_X");
    CLV__ARGS_I32(list, launch, n, s.in[0], s.in[1], s.out[0], s.out[1], s.kernel[0], s.kernel[1]);
}

/** Kernel 2, stride 2, no window sticks out. */
static bool two_supports(const clv_device_info *device, const clv__op_io *io) {
    const clv__pool_sizes s = clv__pool_sizes_of(io);
    return clv__threads(device) && apart(io->attrs) && s.kernel[0] == 2 && s.kernel[1] == 2 &&
           s.out[0] == s.in[0] / 2 && s.out[1] == s.in[1] / 2;
}

static void two_lower(clv__launches *list, const clv__op_io *io) {
    const clv__pool_sizes s = clv__pool_sizes_of(io);
    const bool backward = clv__is_gradient(io);
    const int64_t n = s.planes * (backward ? clv__div_up(s.in[0], 2) : s.out[0]),
                  rows = clv__rows_for(2 * s.in[1]);
    clv__launch *launch =
        clv__launch_items(list, "pool", backward ? "max_pool2d_2x2_backward" : "max_pool2d_2x2", CLV__TASKS,
                          clv__div_up(n, rows));
    clv__arg_tensors(list, launch, io, backward ? "o0=T_DX i0=T_Y i1=T_X" : "o0=T_Y i0=T_X");
    CLV__ARGS_I32(list, launch, n, rows, s.in[0], s.in[1], s.out[0], s.out[1]);
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
    int64_t room = planes_room(device), span = (s.kernel[0] - 1) * s.dilation[0] + 1;
    int64_t reach = (s.kernel[1] - 1) * s.dilation[1] / s.stride[1];
    int64_t columns = clv__max64((s.in[1] - 1 + s.padding[1]) / s.stride[1] + 1, s.out[1]);
    int64_t pitch = clv__round_up(columns, 16) + reach; // as the kernel has it
    return s.kernel[1] <= room / 16 && s.stride[1] <= room && pitch <= room && span <= room &&
           span * s.stride[1] * pitch <= room;
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
    CLV__POOL_DIRECT,
    {0}};
static const clv__variant max_backward_variants[] = {
    {"plain", .lower = max_backward_plain},
    {"winner", NULL, winner_rank, .lower = max_backward_winner},
    {"apart", apart_supports, apart_rank, .lower = max_backward_apart},
    {"planes", max_planes_backward_supports, .lower = max_backward_planes, .relative = 0.08},
    {"vector_2x2", two_supports, .lower = two_lower, .relative = 0.05},
    CLV__POOL_DIRECT,
    {0}};

// ---- references -----------------------------------------------------------------------------------------------------

/** Position in a plane of the first maximum that the window at o looks at; -1 if it looks at nothing. A NaN wins. */
static int64_t winner_of(const double *plane, const clv__windows *s, const int64_t *o) {
    int64_t at = -1, start[CLV__WINDOW_DIMS], from[CLV__WINDOW_DIMS], to[CLV__WINDOW_DIMS];
    clv__window_inside(s, o, start, from, to);
    for (int64_t q = from[0]; q < to[0]; q++)
        for (int64_t i = from[1]; i < to[1]; i++)
            for (int64_t j = from[2]; j < to[2]; j++) {
                const int64_t row =
                    (start[0] + q * s->dilation[0]) * s->in[1] + start[1] + i * s->dilation[1];
                const int64_t here = row * s->in[2] + start[2] + j * s->dilation[2];
                if (at < 0 || plane[here] > plane[at] || isnan(plane[here])) at = here;
            }
    return at;
}

/** y from x, or dx from dy: the same windows. */
static void max_walk(const clv__op_io *io, const double *x, double *y, double *dx, const double *dy) {
    const clv__pool_sizes sizes = clv__pool_sizes_of(io);
    const clv__windows s = clv__windows_solid(&sizes.windows);
    const int64_t outputs = clv__window_product(&s, s.out), inputs = clv__window_product(&s, s.in);
    int64_t o[CLV__WINDOW_DIMS] = {0};
    for (int64_t i = 0; i < sizes.planes * outputs; i++, clv__window_next(&s, o)) {
        const int64_t plane = i / outputs * inputs, at = winner_of(x + plane, &s, o);
        if (y) y[i] = at < 0 ? -INFINITY : x[plane + at];
        if (dx && at >= 0) dx[plane + at] += dy[i];
    }
}

static void max_reference(const clv__ref *ref) {
    max_walk(ref->io, ref->in[0], ref->out[0], NULL, NULL);
}

static void max_backward_reference(const clv__ref *ref) {
    clv__ref_zero(ref);
    max_walk(ref->io, ref->in[1], NULL, ref->out[0], ref->in[0]);
}

// ---- descriptors ----------------------------------------------------------------------------------------------------

static void make_ties(clv__sample *sample) { // the first maximum takes all
    sample->fill[1] = (clv__fill){CLV__FILL_INTEGER, -2, 2};
}

extern const clv__op clv__op_max_pool2d;
CLV__TRAIN_OP(max_pool2d_backward) = {
    CLV__GRADIENT_OF(max_pool2d, "d0 i0 g0"), .half_in = 3,
    .variants = max_backward_variants,        .reference = max_backward_reference,
    .adapt = CLV__TRAINS(make_ties),          .reduction = clv__pool_window_elements,
    .attrs_bytes = sizeof(clv__pool),         CLV__POOL_OP};

CLV__OP(max_pool2d) = {
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
