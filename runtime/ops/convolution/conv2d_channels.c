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
static int64_t width_of(const clv__conv2d *c, int64_t columns) {
    return (columns - 1) * c->stride[1] + (c->kernel[1] - 1) * c->dilation[1] + 1;
}

/** Of images of dy what a group of the gradient by the weights takes at a time: of several whole ones, or of one so many rows and columns. */
typedef struct block {
    int64_t planes, rows, columns;
} block;

/** How far runs are apart in local memory. What items bring there is of two or more of them at once: with this rest few meet in a
 *  bank, of images of 7 to 112 columns at most two. */
static int64_t pitch_of(int64_t floats) {
    enum { BANKS = 32, ON = 20 };
    return clv__round_up(clv__max64(floats - ON, 0), BANKS) + ON;
}
static int64_t x_pitch_of(const clv__conv2d *c, block b) {
    return pitch_of(b.planes * clv__div_up(height_of(c, b.rows), ROWS * c->stride[0]) *
                    clv__div_up(width_of(c, b.columns), c->stride[1]));
}
static int64_t dy_pitch_of(block b) {
    return pitch_of(b.planes * b.rows / ROWS * b.columns);
}

/** Do its floats fit in local memory? */
static bool fits(const clv__conv2d *c, block b) {
    return ROWS * (c->stride[0] * c->stride[1] * x_pitch_of(c, b) + dy_pitch_of(b)) <= FLOATS;
}

/** Items along a row, as many as it has or more. */
static int64_t lanes_of(int64_t width) {
    int64_t lanes = 8;
    while (lanes < ITEMS && lanes < width) lanes *= 2;
    return lanes;
}

/** As much of up to `images` images as fits. */
static block block_of(const clv__conv2d *c, int64_t images) {
    block b = {1, clv__round_up(c->out[0], ROWS), c->out[1]};
    while (b.rows > ROWS && !fits(c, b)) b.rows = clv__round_up(clv__div_up(b.rows, 2), ROWS);
    while (b.columns > 1 && !fits(c, b)) b.columns = clv__div_up(b.columns, 2);
    if (b.rows < c->out[0] || b.columns < c->out[1]) return b;
    while (b.planes < images && fits(c, (block){b.planes + 1, b.rows, b.columns})) b.planes++;
    return b;
}

bool clv__conv2d_channels_supports_weight(const clv_device_info *device, const clv__op_io *io) {
    clv__conv2d c = clv__conv2d_of(io);
    return possible(device, &c) && device->max_work_group >= ITEMS && fits(&c, (block){1, ROWS, 1}) &&
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
    CLV__ARGS(list, launch, io, "o0=T_OUT i0=T_IN i1 b", .bias = c.bias ? 2 : 1,
              CLV__INTS(c.n * c.groups, c.groups, CLV__HW(c.in), CLV__HW(c.out), c.bias));
    clv__arg_epilogue(list, launch, io);
    clv__launch_over(list, launch, CLV__ELEMENTS, c.n * c.groups * clv__div_up(made[0], rows) * made[1]);
}

/** A group for each channel, and for parts of the images: so many groups hide that each waits for what it brings to local memory. A part
 *  has pixels enough for the tree at its end. How many there are follows from the sizes alone. */
void clv__conv2d_channels_weight(clv__launches *list, const clv__op_io *io) {
    enum { GROUPS = 2048, PIXELS = 2048 };
    const int64_t size = clv__numel(&io->out[0]);
    if (size == 0) return;
    clv__conv2d c = clv__conv2d_of(io);
    const int64_t least = clv__div_up(PIXELS, c.out[0] * c.out[1]);
    const int64_t images = clv__min64(clv__max64(c.n * c.groups / GROUPS, least), c.n);
    const int64_t splits = clv__div_up(c.n, images);
    const clv__part parts = clv__floats(list, splits > 1 ? splits * size : 0);
    clv__launch *launch = launch_of(list, &c, "channels_weight");
    clv__conv2d_weight_tensors(list, launch, io, parts);
    const block b = block_of(&c, images);
    CLV__ARGS_I32(list, launch, c.n, c.groups, CLV__HW(c.in), CLV__HW(c.out), images, b.planes, b.rows,
                  b.columns, height_of(&c, b.rows), width_of(&c, b.columns), x_pitch_of(&c, b),
                  dy_pitch_of(b), lanes_of(width_of(&c, b.columns)), lanes_of(b.columns));
    clv__launch_grid(launch, (size_t)(splits * c.groups * ITEMS), ITEMS);
    if (parts.bytes) clv__conv2d_add_parts(list, parts, size, splits);
}
