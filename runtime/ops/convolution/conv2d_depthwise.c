// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions on CPU-class devices, every channel by itself: how images are cut into tasks for
// kernels_cl/conv2d_depthwise.cl, and the launches. Cuts depend on the sizes and on the device's local memory, never on
// the number of threads, so the sums are the same on any number of them.
#include "ops/convolution/conv2d.h"
#include "ops/epilogue.h"
#include "ops/lower.h"

/** What the kernels are compiled for on a device: lanes, and elements of the local arrays (XL, YL, KL of the kernel file). */
typedef struct limits {
    int lanes;
    int64_t window, result, taps;
} limits;

enum { WINDOW = 6144, RESULT = 4096, TAPS = 128 }; // the kernel file's defaults

static uint64_t local_bytes(const limits *l) {
    return (uint64_t)(l->window + l->result + l->taps * (l->lanes + 1)) * 4;
}

static limits limits_of(const clv_device_info *device) {
    limits l = {clv__tile_lanes(device), WINDOW, RESULT, TAPS};
    while (local_bytes(&l) > clv__tile_local_bytes(device) && l.taps > 16) {
        l.window /= 2;
        l.result /= 2;
        l.taps /= 2;
    }
    return l;
}

/** Only what differs from the kernel file's own defaults, so that all uses share one compiled instance. */
static void add_defines(clv__launches *list, clv__launch *launch, const limits *l) {
    if (l->lanes != 16) clv__launch_define(list, launch, "VW", "%d", l->lanes);
    if (l->window == WINDOW) return;
    clv__launch_define(list, launch, "XL", "%d", (int)l->window);
    clv__launch_define(list, launch, "YL", "%d", (int)l->result);
    clv__launch_define(list, launch, "KL", "%d", (int)l->taps);
}

/** A correlation of planes: forward, or backward by the input as a correlation of dy spread out. [0] is H, [1] is W. */
typedef struct planes {
    int64_t in[2], out[2], step[2], first[2], spread[2];
} planes;

static planes planes_of(const clv__conv2d *c, bool back) {
    planes p;
    for (int d = 0; d < 2; d++) {
        p.in[d] = back ? c->out[d] : c->in[d];
        p.out[d] = back ? c->in[d] : c->out[d];
        p.step[d] = back ? 1 : c->stride[d];
        p.first[d] = back ? c->padding[d] - (c->kernel[d] - 1) * c->dilation[d] : -c->padding[d];
        p.spread[d] = back ? c->stride[d] : 1;
    }
    return p;
}

/** Rows of results in a block: as many as fit, in blocks of one height; 0: not even one does. */
static int64_t block_of(const limits *l, const clv__conv2d *c, const planes *p) {
    const int64_t slack = 4 * l->lanes;
    int64_t reach[2], width;
    for (int d = 0; d < 2; d++) reach[d] = (c->kernel[d] - 1) * c->dilation[d];
    width = clv__div_up((p->out[1] - 1) * p->step[1] + reach[1] + 1, p->step[1]);
    if (width > l->result || c->kernel[0] * c->kernel[1] > l->taps) return 0;
    int64_t rows = clv__min64(p->out[0], (l->result - slack) / width);
    for (; rows > 0; rows--) {
        int64_t height = ((rows - 1) * p->step[0] + reach[0] + p->step[0]) / p->step[0];
        if (height * width <= (l->window - slack) / (p->step[0] * p->step[1])) break;
    }
    return rows > 0 ? clv__div_up(p->out[0], clv__div_up(p->out[0], rows)) : 0;
}

/** Things of `size` elements, `n` of them, in tasks of some thousand elements, but in some tasks. */
static int64_t per_task(int64_t n, int64_t size) {
    enum { ELEMENTS = 16384, TASKS = 16 };
    return clv__max64(1, clv__min64(ELEMENTS / clv__max64(1, size), clv__div_up(n, TASKS)));
}

void clv__conv2d_depthwise_lower(clv__launches *list, const clv__op_io *io) {
    if (clv__numel(&io->out[0]) == 0) return;
    const bool flip = clv__conv2d_back(io);
    const clv__conv2d conv = clv__conv2d_of(io), *c = &conv;
    const planes of = planes_of(c, flip), *p = &of;
    limits l = limits_of(list->device);
    int64_t images = c->n * c->groups, per = per_task(images, p->out[0] * p->out[1]);
    clv__launch *launch = clv__launch_kernel(list, "conv2d_depthwise", "conv2d_depthwise");
    add_defines(list, launch, &l);
    CLV__ARGS(list, launch, io, "o0=T_OUT i0=T_IN i1 b", .bias = c->bias ? 2 : 1,
              CLV__INTS(images, c->groups, CLV__HW(p->in), CLV__HW(p->out), CLV__HW(c->kernel),
                        CLV__HW(p->step), CLV__HW(p->first), CLV__HW(c->dilation), CLV__HW(p->spread), flip,
                        c->bias, per, block_of(&l, c, p)));
    clv__arg_epilogue(list, launch, io);
    clv__launch_over(list, launch, CLV__TASKS, clv__div_up(images, per));
}

void clv__conv2d_depthwise_weight(clv__launches *list, const clv__op_io *io) {
    enum { TASKS = 32 };
    int64_t size = clv__numel(&io->out[0]);
    if (size == 0) return;
    clv__conv2d c = clv__conv2d_of(io);
    limits l = limits_of(list->device);
    planes p = planes_of(&c, false);
    int64_t images = clv__div_up(c.n, clv__min64(c.n, clv__div_up(TASKS, c.groups))),
            splits = clv__div_up(c.n, images), per = per_task(c.groups, images * c.out[0] * c.out[1]);
    const clv__part parts = clv__floats(list, splits > 1 ? splits * size : 0);
    clv__launch *launch = clv__launch_kernel(list, "conv2d_depthwise", "conv2d_depthwise_weight");
    add_defines(list, launch, &l);
    clv__conv2d_weight_tensors(list, launch, io, parts);
    CLV__ARGS_I32(list, launch, c.n, c.groups, CLV__HW(c.in), CLV__HW(c.out), CLV__HW(c.kernel),
                  CLV__HW(c.stride), CLV__HW(p.first), CLV__HW(c.dilation), splits, images, per,
                  block_of(&l, &c, &p));
    clv__launch_over(list, launch, CLV__TASKS, splits * clv__div_up(c.groups, per));
    if (parts.bytes) clv__conv2d_add_parts(list, parts, size, splits);
}

// ---- where they can run -----------------------------------------------------------------------------------

bool clv__conv2d_depthwise_supports(const clv_device_info *device, const clv__op_io *io) {
    const clv__conv2d c = clv__conv2d_of(io);
    const limits l = limits_of(device);
    const planes p = planes_of(&c, clv__conv2d_back(io));
    return clv__threads(device) && device->loop_turns == 0 && c.in_channels == 1 && c.out_channels == 1 &&
           clv__conv2d_sums(&c) && local_bytes(&l) <= clv__tile_local_bytes(device) &&
           block_of(&l, &c, &p) > 0;
}
