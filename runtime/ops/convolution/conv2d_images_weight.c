// SPDX-License-Identifier: Apache-2.0
// The gradient by the weights of convolutions of small images on CPU-class devices: the launches of
// kernels_cl/conv2d_images_weight.cl, which says what they compute. Its vectors run over input channels, so taps outside of an image cost
// nothing, and as much of the batch as there is goes into each sum: few pixels or a small batch make them cheaper, not shorter.
#include "ops/convolution/conv2d.h"
#include "ops/lower.h"

enum { DY = 20480, TAPS = 25, PAIRS = 2048 }; // AL, KL and PAIRS of the kernel file

/** How it is cut: lanes of a vector, MR of the kernel file, channels of a block, blocks, blocks of a task, tasks for each MR rows. */
typedef struct cut {
    int64_t lanes, rows, block, blocks, per, splits;
} cut;

static cut cut_of(const clv_device_info *device, const clv__conv2d *c) {
    enum { TASKS = 4 }; // for each unit, so that none waits long for another
    cut w = {.lanes = clv__tile_lanes(device)};
    w.rows = w.lanes == 16 ? 8 : 4;
    w.block = clv__lane_block(c->in_channels, w.lanes);
    w.blocks = clv__div_up(c->in_channels, w.block);
    int64_t panels = clv__div_up(c->out_channels, w.rows);
    int64_t wanted = TASKS * clv__max64(1, device->compute_units); // a backend may leave them out
    w.splits = clv__min64(w.blocks, clv__div_up(wanted, panels));
    w.per = clv__div_up(w.blocks, w.splits);
    w.splits = clv__div_up(w.blocks, w.per);
    return w;
}

static int64_t channel_floats(const cut *w, const clv__conv2d *c) {
    return w->blocks * w->block * c->n * c->in[0] * c->in[1];
}

void clv__conv2d_images_weight(clv__launches *list, const clv__op_io *io) {
    if (clv__numel(&io->out[0]) == 0) return;
    clv__conv2d c = clv__conv2d_of(io);
    cut w = cut_of(list->device, &c);
    const clv__part channels = clv__floats(list, channel_floats(&w, &c));
    clv__launch *launch = clv__launch_kernel(list, "conv2d_images_weight", "images_channels");
    if (w.lanes != 16) clv__launch_define(list, launch, "VW", "%d", (int)w.lanes);
    CLV__ARGS(list, launch, io, "w i1=T_X", .part = channels,
              CLV__INTS(c.n, c.in_channels, c.in[0] * c.in[1], w.block));
    clv__launch_over(list, launch, CLV__TASKS, w.blocks * c.n);

    launch = clv__launch_kernel(list, "conv2d_images_weight", "images_weight");
    if (w.lanes != 16) clv__launch_define(list, launch, "VW", "%d", (int)w.lanes);
    CLV__ARGS(list, launch, io, "o0 i0=T_DY w", .part = channels,
              CLV__INTS(c.n, c.in_channels, CLV__HW(c.in), c.out_channels, CLV__HW(c.out), CLV__HW(c.kernel),
                        CLV__HW(c.stride), CLV__HW(c.padding), CLV__HW(c.dilation), w.block, w.per));
    clv__launch_over(list, launch, CLV__TASKS, clv__div_up(c.out_channels, w.rows) * w.splits);
}

// ---- where it can run, and where it should ----------------------------------------------------------------------------

static int64_t pairs_of(const clv__conv2d *c) {
    return clv__conv2d_meetings(c, 0) * clv__conv2d_meetings(c, 1);
}

bool clv__conv2d_images_supports_weight(const clv_device_info *device, const clv__op_io *io) {
    clv__conv2d c = clv__conv2d_of(io);
    if (!clv__conv2d_sums(&c)) return false; // no channels cannot be cut
    cut w = cut_of(device, &c);
    const int64_t taps = c.kernel[0] * c.kernel[1], pixels = c.out[0] * c.out[1];
    uint64_t local = (uint64_t)(DY + 2 * w.lanes * w.rows * TAPS + 2 * PAIRS + TAPS + 1) * 4;
    return clv__threads(device) && device->loop_turns == 0 && local <= clv__tile_local_bytes(device) &&
           c.groups == 1 && taps <= TAPS && pixels <= DY && c.n <= DY / w.rows / pixels &&
           pairs_of(&c) <= PAIRS && channel_floats(&w, &c) < INT32_MAX;
}

/** Of tile's time, in the time of a vector's product, for a row m and a vector of channels: the pairs' products, storing, and the
 *  row's share of turning x round. Measured with AVX-512 on images of 2x2 to 14x14. */
double clv__conv2d_images_rank_weight(const clv_device_info *device, const clv__op_io *io) {
    const double direct = 1.17, product = 1.1, store = 100, store_plain = 8, turn = 2, turn_plain = 12;
    clv__conv2d c = clv__conv2d_of(io);
    cut w = cut_of(device, &c);
    const double images = (double)c.n, pixels = (double)(c.in[0] * c.in[1]), lanes = (double)w.lanes;
    const int64_t taps = c.kernel[0] * c.kernel[1];
    double cycles =
        product * images * (double)pairs_of(&c) * clv__lane_cost(c.in_channels, w.block, w.lanes) +
        (taps == 9   ? store
         : taps == 1 ? 0
                     : store_plain * lanes * (double)taps) +
        (pixels < lanes ? turn_plain : turn) * lanes * images * pixels / (double)c.out_channels;
    return 0.02 * cycles / (direct * images * (double)(c.out[0] * c.out[1] * taps));
}
