// SPDX-License-Identifier: Apache-2.0
// Convolutions 3x3 of stride 1 on devices with lanes by Winograd's F(2x2, 3x3) in one launch, for large images of few channels: kernels
// and formulas in kernels_cl/conv2d_winograd_fused.cl.
#include "ops/convolution/conv2d.h"
#include "ops/epilogue.h"
#include "ops/lower.h"

enum {
    ITEMS = 256,
    BLOCK = 32,
    CHANNELS = 8,
    POINTS = 16,
    FEW = 8,
    FLOATS = POINTS * CHANNELS * BLOCK
}; // of the kernel file

/** Forward, or backward by the input as a convolution of dy with the weights turned round. [0] is H, [1] is W. */
typedef struct work {
    int64_t in_channels, out_channels, in[2], out[2], first[2], tiles[2];
    int64_t columns, rows, blocks; // groups along tiles and along channels, and turns of each
    bool flip;
} work;

static work work_of(const clv__op_io *io, const clv__conv2d *c) {
    const bool flip = clv__conv2d_back(io);
    work w = {.in_channels = c->in_channels, .out_channels = c->out_channels, .flip = flip};
    if (flip) w.in_channels = c->out_channels, w.out_channels = c->in_channels;
    for (int d = 0; d < 2; d++) {
        w.in[d] = flip ? c->out[d] : c->in[d];
        w.out[d] = flip ? c->in[d] : c->out[d];
        w.first[d] = flip ? c->padding[d] - 2 : -c->padding[d];
        w.tiles[d] = clv__div_up(w.out[d], 2);
    }
    w.columns = clv__div_up(c->n * w.tiles[0] * w.tiles[1], BLOCK);
    w.rows = clv__div_up(w.out_channels, BLOCK);
    w.blocks = clv__div_up(w.in_channels, CHANNELS);
    return w;
}

/** An item takes 126 registers and more: too many where lanes are few (dg2). */
bool clv__conv2d_winograd_fused_supports(const clv_device_info *device, const clv__op_io *io) {
    const clv__conv2d c = clv__conv2d_of(io);
    for (int d = 0; d < 2; d++)
        if (c.kernel[d] != 3 || c.stride[d] != 1 || c.dilation[d] != 1 || c.padding[d] > 2) return false;
    const work w = work_of(io, &c);
    return c.groups == 1 && clv__conv2d_sums(&c) && device->loop_turns == 0 &&
           device->sub_group_sizes[0] != FEW && device->max_work_group >= ITEMS &&
           clv__tile_local_bytes(device) >= 2 * FLOATS * sizeof(float) &&
           w.rows * w.blocks * FLOATS < INT32_MAX;
}

void clv__conv2d_winograd_fused_lower(clv__launches *list, const clv__op_io *io) {
    if (clv__numel(&io->out[0]) == 0) return;
    const clv__conv2d c = clv__conv2d_of(io);
    const work w = work_of(io, &c);
    const int64_t kernels = w.rows * BLOCK * w.blocks * CHANNELS;
    const clv__part u = clv__floats(list, w.rows * w.blocks * FLOATS);
    CLV__LAUNCH(list, io, "conv2d_winograd_fused", "winograd_fused_weight", CLV__ELEMENTS, kernels, "w i1",
                .part = u, CLV__INTS(kernels, w.out_channels, w.in_channels, w.blocks, w.flip));
    clv__launch *launch = clv__launch_kernel(list, "conv2d_winograd_fused", "winograd_fused");
    CLV__ARGS(list, launch, io, "o0=T_OUT w i0=T_IN b", .part = u, .bias = c.bias ? 2 : 1,
              CLV__INTS(c.n, w.in_channels, CLV__HW(w.in), w.out_channels, CLV__HW(w.out), CLV__HW(w.tiles),
                        CLV__HW(w.first), c.bias));
    clv__arg_epilogue(list, launch, io);
    clv__launch_grid2(launch, (size_t)w.columns * ITEMS, (size_t)w.rows, ITEMS, 1);
}
