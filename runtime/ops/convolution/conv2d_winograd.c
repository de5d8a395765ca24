// SPDX-License-Identifier: Apache-2.0
// Convolutions 3x3 of stride 1 on CPU-class devices by Winograd's F(4x4, 3x3): the launches of
// kernels_cl/conv2d_winograd.cl, which says what they compute. Tiles are transformed and multiplied in runs of blocks that
// stay in a cache, and share one workspace; where there are few tiles and many weights it is these that never reach memory.
// Cuts depend on the sizes only, and a result on nothing but its own tile.
#include "ops/convolution/conv2d.h"
#include "ops/epilogue.h"
#include "ops/lower.h"

enum { TILE = 4, POINTS = 36, RUN_BYTES = 4 << 20, MOST_BYTES = 512 << 10 };
// KC of the kernel file: its default, and the least worth its sums' way to memory
enum { CHUNK = 128, LEAST_CHUNK = 8 };

/** Forward, or backward by the input as a correlation of dy with the weights turned round. [0] is H, [1] is W. */
typedef struct work {
    int64_t n, in_channels, out_channels, in[2], out[2], first[2];
    int64_t out_stride, in_stride; // of a channel in weight
    bool flip, bias;
    // How it is cut.
    int64_t lanes, rows, block, chunk;            // of vectors; MR, nr and KC of the kernel file
    int64_t tiles[2], panels, blocks, run;        // tiles in height and width; blocks in all and of a run
    bool fused;                                   // a task of the product transforms its panel's weights
    int64_t weight_step, input_step, result_step; // us, vs, rs
} work;

/** Bytes of local memory for a panel's weights of a chunk of channels, as given and transformed. */
static uint64_t chunk_bytes(const work *w) {
    return (uint64_t)((9 + POINTS) * (w->chunk * w->rows + w->lanes)) * sizeof(float);
}

/** What the kernels are compiled for on a device. */
static void fit(work *w, const clv_device_info *device) {
    w->lanes = clv__tile_lanes(device);
    w->rows = w->lanes == 16 ? 8 : 4;
    w->chunk = CHUNK;
    while (chunk_bytes(w) > clv__tile_local_bytes(device) && w->chunk > LEAST_CHUNK) w->chunk /= 2;
}

static void cut(work *w, const clv_device_info *device) {
    fit(w, device);
    for (int d = 0; d < 2; d++) w->tiles[d] = clv__div_up(w->out[d], TILE);
    const int64_t tiles = w->n * w->tiles[0] * w->tiles[1];
    w->block = clv__lane_block(tiles, w->lanes);
    w->panels = clv__div_up(w->out_channels, w->rows);
    w->blocks = clv__div_up(tiles, w->block);
    int64_t bytes = POINTS * w->block * (w->in_channels + w->panels * w->rows) * (int64_t)sizeof(float);
    w->run = clv__even_block(w->blocks, 1, clv__max64(1, RUN_BYTES / bytes));
}

/** Weights go to memory and back once, in U. Where they are fewer bytes than tiles in V and R, that is cheap, and a run of
 *  tiles that stays in a cache saves more. Else each panel's task transforms its own, and reads all of V: one run. */
static void cut_products(work *w) {
    const int64_t tiles = w->blocks * w->block;
    w->fused = w->in_channels * w->out_channels >= tiles * (w->in_channels + w->out_channels);
    if (w->fused) w->run = w->blocks;
    w->weight_step = w->panels * w->in_channels * w->rows + w->lanes;
    w->input_step = w->run * w->in_channels * w->block + w->lanes;
    w->result_step = w->run * w->panels * w->rows * w->block + w->lanes;
}

static work work_of(const clv_device_info *device, const clv__conv2d *c, bool back) {
    work w = {.n = c->n,
              .in_channels = back ? c->out_channels : c->in_channels,
              .out_channels = back ? c->in_channels : c->out_channels,
              .out_stride = back ? 9 : c->in_channels * 9,
              .in_stride = back ? c->in_channels * 9 : 9,
              .flip = back,
              .bias = c->bias};
    for (int d = 0; d < 2; d++) {
        w.in[d] = back ? c->out[d] : c->in[d];
        w.out[d] = back ? c->in[d] : c->out[d];
        w.first[d] = back ? c->padding[d] - 2 : -c->padding[d];
    }
    cut(&w, device);
    return w;
}

static clv__launch *launch_of(clv__launches *list, const work *w, const char *entry) {
    clv__launch *launch = clv__launch_kernel(list, "conv2d_winograd", entry);
    if (w->lanes != 16) clv__launch_define(list, launch, "VW", "%d", (int)w->lanes);
    return launch;
}

/** Channels in a task, where there are `others` times as many: enough to be worth one, few enough for many threads. */
static int64_t per_task(int64_t n, int64_t others) {
    enum { TASKS = 32, MOST = 16 };
    return clv__max64(1, clv__min64(MOST, n * others / TASKS));
}

static void lower_weights(clv__launches *list, const work *w, clv__part u) {
    clv__launch *launch = launch_of(list, w, "winograd_weight");
    clv__define_number(list, launch, "KC", w->chunk, CHUNK);
    CLV__ARGS(
        list, launch, NULL, "w i1", .part = u,
        CLV__INTS(w->out_channels, w->in_channels, w->out_stride, w->in_stride, w->flip, w->weight_step));
    clv__launch_over(list, launch, CLV__TASKS, w->panels);
}

static void lower_fused(clv__launches *list, const work *w, clv__part r, clv__part v) {
    enum { TASKS = 16 }; // where panels are fewer, each is transformed again for some of the blocks
    const int64_t per = clv__div_up(w->blocks, clv__min64(w->blocks, clv__div_up(TASKS, w->panels)));
    clv__launch *launch = launch_of(list, w, "winograd_panel");
    clv__define_number(list, launch, "KC", w->chunk, CHUNK);
    CLV__ARGS(list, launch, NULL, "w i1", .part = r);
    CLV__ARGS(list, launch, NULL, "w", .part = v,
              CLV__INTS(w->out_channels, w->in_channels, w->out_stride, w->in_stride, w->flip, w->input_step,
                        w->result_step, w->block, w->blocks, per));
    clv__launch_over(list, launch, CLV__TASKS, w->panels * clv__div_up(w->blocks, per));
}

static void lower_product(clv__launches *list, const work *w, int64_t run, clv__part r, clv__part u,
                          clv__part v) {
    // As many as the second cache of most keeps beside a panel of weights.
    const int64_t fit = clv__max64(1, MOST_BYTES / (w->in_channels * w->block * 4)),
                  per = clv__min64(clv__div_up(run, 2), fit);
    clv__launch *launch = launch_of(list, w, "winograd_product");
    clv__arg_part(list, launch, r);
    clv__arg_part(list, launch, u);
    CLV__ARGS(list, launch, NULL, "w", .part = v,
              CLV__INTS(w->in_channels, w->panels, w->weight_step, w->input_step, w->result_step, w->block,
                        run, per));
    clv__launch_over(list, launch, CLV__TASKS, POINTS * clv__div_up(run, per));
}

/** Input `index` transformed, of `run` blocks from `first` on, to v, in which points, blocks and channels are so far apart. */
static void lower_input(clv__launches *list, const clv__op_io *io, int index, const work *w, clv__part v,
                        int64_t first, int64_t run, int64_t step, int64_t block, int64_t channel) {
    const int64_t per = per_task(w->in_channels, run);
    clv__launch *launch = launch_of(list, w, "winograd_input");
    clv__arg_part(list, launch, v);
    clv__arg_in_as(list, launch, io, index, "T_IN");
    CLV__ARGS_I32(list, launch, w->n, w->in_channels, CLV__HW(w->in), CLV__HW(w->tiles), CLV__HW(w->first),
                  w->block, first, run, step, block, channel, per);
    clv__launch_over(list, launch, CLV__TASKS, run * clv__div_up(w->in_channels, per));
}

void clv__conv2d_winograd_lower(clv__launches *list, const clv__op_io *io) {
    if (clv__numel(&io->out[0]) == 0) return;
    const clv__conv2d c = clv__conv2d_of(io);
    work of = work_of(list->device, &c, clv__conv2d_back(io));
    const work *w = &of;
    cut_products(&of);
    clv__part v = clv__floats(list, POINTS * w->input_step), r = clv__floats(list, POINTS * w->result_step),
              u = {0};
    if (!w->fused) {
        u = clv__floats(list, POINTS * w->weight_step);
        lower_weights(list, w, u);
    }
    for (int64_t first = 0; first < w->blocks; first += w->run) {
        int64_t run = clv__min64(w->run, w->blocks - first);
        const int64_t per = per_task(w->out_channels, run);
        lower_input(list, io, 0, w, v, first, run, w->input_step, w->in_channels * w->block, w->block);
        if (w->fused)
            lower_fused(list, w, r, v);
        else
            lower_product(list, w, run, r, u, v);

        clv__launch *launch = launch_of(list, w, "winograd_output");
        CLV__ARGS(list, launch, io, "o0=T_OUT w b", .bias = w->bias ? 2 : 1, .part = r,
                  CLV__INTS(w->n, w->out_channels, CLV__HW(w->out), CLV__HW(w->tiles), w->block, first, run,
                            w->panels, w->result_step, w->bias, per));
        clv__arg_epilogue(list, launch, io);
        clv__launch_over(list, launch, CLV__TASKS, run * clv__div_up(w->out_channels, per));
    }
}

/** The weights' gradient: x and dy transformed, channels outermost in each point, a product for each point, turned back. */
void clv__conv2d_winograd_weight(clv__launches *list, const clv__op_io *io) {
    if (clv__numel(&io->out[0]) == 0) return;
    clv__conv2d c = clv__conv2d_of(io);
    work w = work_of(list->device, &c, false);
    int64_t row = w.run * w.block, input_step = w.in_channels * row + w.lanes,
            dy_step = w.out_channels * row + w.lanes;
    clv__part input = clv__floats(list, POINTS * input_step), dy = clv__floats(list, POINTS * dy_step),
              sums = clv__floats(list, POINTS * w.out_channels * w.in_channels);
    for (int64_t first = 0; first < w.blocks; first += w.run) {
        int64_t run = clv__min64(w.run, w.blocks - first);
        lower_input(list, io, 1, &w, input, first, run, input_step, w.block, row);
        const int64_t per = per_task(w.out_channels, run);
        clv__launch *launch = launch_of(list, &w, "winograd_gradient");
        CLV__ARGS(list, launch, io, "w i0=T_IN", .part = dy,
                  CLV__INTS(w.n, w.out_channels, CLV__HW(w.out), CLV__HW(w.tiles), w.block, first, run,
                            dy_step, w.block, row, per));
        clv__launch_over(list, launch, CLV__TASKS, run * clv__div_up(w.out_channels, per));

        clv__product_parts(list,
                           &(clv__product_rows){.batch = POINTS,
                                                .m = w.out_channels,
                                                .n = w.in_channels,
                                                .k = run * w.block,
                                                .a_batch = dy_step,
                                                .a_m = row,
                                                .b_batch = input_step,
                                                .b_n = row,
                                                .accumulate = first > 0},
                           sums, dy, input);
    }
    clv__launch *launch = launch_of(list, &w, "winograd_dweight");
    CLV__ARGS(list, launch, io, "o0 w", .part = sums, CLV__INTS(w.out_channels, w.in_channels));
    clv__launch_over(list, launch, CLV__TASKS, w.out_channels);
}

// ---- where it can run, and where it should ----------------------------------------------------------------------------

/** With a few channels the transforms cost more than is saved, and roundings, some ten times a plain sum's, show more. */
static bool possible(const clv_device_info *device, const clv__conv2d *c) {
    enum { LEAST = 16 };
    work w = {0};
    fit(&w, device);
    for (int d = 0; d < 2; d++)
        if (c->kernel[d] != 3 || c->stride[d] != 1 || c->dilation[d] != 1 || c->padding[d] > 2) return false;
    return clv__threads(device) && device->loop_turns == 0 && c->groups == 1 && clv__conv2d_sums(c) &&
           c->in_channels >= LEAST && c->out_channels >= LEAST &&
           POINTS * c->in_channels * (c->out_channels + 8) < INT32_MAX &&
           chunk_bytes(&w) <= clv__tile_local_bytes(device);
}

bool clv__conv2d_winograd_supports(const clv_device_info *device, const clv__op_io *io) {
    clv__conv2d c = clv__conv2d_of(io);
    return possible(device, &c);
}

bool clv__conv2d_winograd_supports_weight(const clv_device_info *device, const clv__op_io *io) {
    clv__conv2d c = clv__conv2d_of(io);
    return possible(device, &c) && clv__product_parts_supports(device);
}

/** Of tile's time, in cycles an input channel, output channel and tile, measured with AVX-512: 9 of them are 16 results of
 *  nine products there, and 2.25 the 36 here. `input` and `output` are for transforms of a tile, `weight` is for a kernel of an
 *  input and an output channel, all its tiles together. */
static double rank(const clv__conv2d *c, const work *w, double input, double output, double weight) {
    const double direct = 10.5, product = 2.4;
    double tiles = (double)(w->blocks * w->block),
           whole = (double)(c->n * c->out[0] * c->out[1]) / (TILE * TILE);
    double full = (double)(c->n * w->tiles[0] * w->tiles[1]);
    double cycles = full / whole * product * clv__lane_cost((int64_t)full, w->block, w->lanes) +
                    tiles / whole * (input / (double)c->out_channels + output / (double)c->in_channels);
    return 0.02 * (cycles + weight / whole) / direct;
}

double clv__conv2d_winograd_rank(const clv_device_info *device, const clv__op_io *io) {
    const double input = 90, output = 80, fused = 20, in_memory = 60;
    clv__conv2d c = clv__conv2d_of(io);
    work w = work_of(device, &c, false);
    cut_products(&w);
    return rank(&c, &w, input, output, w.fused ? fused : in_memory);
}

double clv__conv2d_winograd_rank_weight(const clv_device_info *device, const clv__op_io *io) {
    const double input = 120, gradient = 75, sums = 175;
    clv__conv2d c = clv__conv2d_of(io);
    work w = work_of(device, &c, false);
    return rank(&c, &w, input, gradient, sums);
}
