// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions on devices with lanes: launches of kernels_cl/conv2d_channels.cl.
#include "ops/convolution/conv2d.h"
#include "ops/epilogue.h"
#include "ops/lower.h"

enum { ROWS = 4, ITEMS = 128, FLOATS = 3072 }; // as in the kernel file
enum { MOST_TAPS = 64, MANY_TAPS = 16 };

static bool possible(const clv_device_info *device, const clv__conv2d *c) {
    return c->in_channels == 1 && c->out_channels == 1 && clv__conv2d_sums(c) &&
           c->kernel[0] * c->kernel[1] <= MOST_TAPS && device->loop_turns == 0;
}

bool clv__conv2d_channels_supports(const clv_device_info *device, const clv__op_io *io) {
    clv__conv2d c = clv__conv2d_of(io);
    return possible(device, &c) && c.stride[0] <= ROWS;
}

/** Rows and columns of x behind `rows` rows of dy. */
static int64_t height_of(const clv__conv2d *c, int64_t rows) {
    return (rows - 1) * c->stride[0] + (c->kernel[0] - 1) * c->dilation[0] + 1;
}
static int64_t width_of(const clv__conv2d *c) {
    return (c->out[1] - 1) * c->stride[1] + (c->kernel[1] - 1) * c->dilation[1] + 1;
}

/** How far runs are apart in local memory. What items bring there is of two or more of them at once: with this rest few meet in a
 *  bank, of images of 7 to 112 columns at most two. */
static int64_t pitch_of(int64_t floats) {
    enum { BANKS = 32, ON = 20 };
    return clv__round_up(clv__max64(floats - ON, 0), BANKS) + ON;
}
static int64_t x_pitch_of(const clv__conv2d *c, int64_t planes, int64_t rows) {
    return pitch_of(planes * clv__div_up(height_of(c, rows), ROWS * c->stride[0]) *
                    clv__div_up(width_of(c), c->stride[1]));
}
static int64_t dy_pitch_of(const clv__conv2d *c, int64_t planes, int64_t rows) {
    return pitch_of(planes * rows / ROWS * c->out[1]);
}

/** Floats in local memory for `rows` rows of dy of so many images. */
static int64_t floats_of(const clv__conv2d *c, int64_t planes, int64_t rows) {
    return ROWS * (c->stride[0] * c->stride[1] * x_pitch_of(c, planes, rows) + dy_pitch_of(c, planes, rows));
}

bool clv__conv2d_channels_supports_weight(const clv_device_info *device, const clv__op_io *io) {
    clv__conv2d c = clv__conv2d_of(io);
    return possible(device, &c) && device->max_work_group >= ITEMS && floats_of(&c, 1, ROWS) <= FLOATS &&
           clv__tile_local_bytes(device) >= (ITEMS + FLOATS) * sizeof(float);
}

static clv__launch *launch_of(clv__launches *list, const clv__conv2d *c, const char *entry) {
    clv__launch *launch = clv__launch_kernel(list, "conv2d_channels", entry);
    clv__define_number(list, launch, "KH", c->kernel[0], 3);
    clv__define_number(list, launch, "KW", c->kernel[1], 3);
    clv__define_number(list, launch, "SH", c->stride[0], 1);
    clv__define_number(list, launch, "SW", c->stride[1], 1);
    clv__define_number(list, launch, "DH", c->dilation[0], 1);
    clv__define_number(list, launch, "DW", c->dilation[1], 1);
    clv__define_number(list, launch, "PH", c->padding[0], 1);
    clv__define_number(list, launch, "PW", c->padding[1], 1);
    return launch;
}

void clv__conv2d_channels_lower(clv__launches *list, const clv__op_io *io) {
    if (clv__numel(&io->out[0]) == 0) return;
    const bool back = clv__conv2d_back(io);
    const clv__conv2d c = clv__conv2d_of(io);
    const int64_t *made = back ? c.in : c.out;
    int64_t rows = ROWS;
    // Compilers fetch what all taps of all rows want before they add, and of many taps that is more than there are registers.
    if (back && c.kernel[0] * c.kernel[1] > MANY_TAPS) rows = clv__max64(ROWS / 2, c.stride[0]);
    if (back) rows = rows / c.stride[0] * c.stride[0];
    clv__launch *launch = launch_of(list, &c, back ? "channels_input" : "channels_forward");
    clv__define_number(list, launch, "ROWS", rows, ROWS);
    clv__arg_tensors(list, launch, io, "o0=T_OUT i0=T_IN i1");
    if (!back) clv__arg_in(list, launch, c.bias ? 2 : 1); // without a bias, anything
    CLV__ARGS_I32(list, launch, c.n * c.groups, c.groups, CLV__HW(c.in), CLV__HW(c.out));
    if (!back) clv__arg_i32(list, launch, c.bias);
    clv__arg_epilogue(list, launch, io);
    clv__launch_over(list, launch, CLV__ELEMENTS, c.n * c.groups * clv__div_up(made[0], rows) * made[1]);
}

/** A group for each channel, and for parts of the images where channels are few. How many there are follows from the sizes alone. */
void clv__conv2d_channels_weight(clv__launches *list, const clv__op_io *io) {
    enum { GROUPS = 256 };
    const int64_t size = clv__numel(&io->out[0]);
    if (size == 0) return;
    clv__conv2d c = clv__conv2d_of(io);
    const int64_t images = clv__div_up(c.n, clv__min64(c.n, clv__div_up(GROUPS, c.groups)));
    const int64_t splits = clv__div_up(c.n, images);
    const clv__part parts = clv__floats(list, splits > 1 ? splits * size : 0);
    clv__launch *launch = launch_of(list, &c, "channels_weight");
    clv__conv2d_weight_tensors(list, launch, io, parts);
    int64_t rows = clv__round_up(c.out[0], ROWS); // at a time: whole images, or as many rows as fit
    while (floats_of(&c, 1, rows) > FLOATS) rows = clv__round_up(clv__div_up(rows, 2), ROWS);
    int64_t planes = rows >= c.out[0] ? images : 1;
    while (planes > 1 && floats_of(&c, planes, rows) > FLOATS)
        planes = clv__min64(planes - 1, planes * FLOATS / floats_of(&c, planes, rows) + 1);
    CLV__ARGS_I32(list, launch, c.n, c.groups, CLV__HW(c.in), CLV__HW(c.out), images, planes, rows,
                  height_of(&c, rows), width_of(&c), x_pitch_of(&c, planes, rows),
                  dy_pitch_of(&c, planes, rows));
    clv__launch_grid(launch, (size_t)(splits * c.groups * ITEMS), ITEMS);
    if (parts.bytes) clv__conv2d_add_parts(list, parts, size, splits);
}
