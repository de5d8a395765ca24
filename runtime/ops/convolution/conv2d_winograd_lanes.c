// SPDX-License-Identifier: Apache-2.0
// Convolutions 3x3 of stride 1 on devices with lanes by Winograd's F(4x4, 3x3): launches of kernels_cl/conv2d_winograd_lanes.cl, which
// says what they compute, around a product of gemm.cl with a batch of 36. The gradient by the weights is F(3x3, 4x4), the adjoint: it has
// the same tiles of x, and a quarter of the products where F(3x3, 2x2) would have four ninths.
#include "ops/convolution/conv2d.h"
#include "ops/epilogue.h"
#include "ops/product/gemm.h"
#include "ops/lower.h"

enum { POINTS = 36, TILE = 4, ITEMS = 128, AREA = 232, LEAST = 16 }; // ITEMS and AREA of the kernel file

/** Forward, backward by the input as a convolution of dy with the weights turned round, or by the weights. [0] is H, [1] is W. */
typedef struct work {
    int64_t n, in_channels, out_channels, in[2], out[2], first[2], tiles[2];
    int64_t planes, strips; // of a group of the transform, images and rows of tiles
    int64_t row;            // elements of a row of V and R
    bool flip, weight;
    clv__gemm product;
} work;

static work work_of(const clv__op_io *io, const clv__conv2d *c) {
    const bool flip = clv__conv2d_back(io);
    work w = {.n = c->n, .in_channels = c->in_channels, .out_channels = c->out_channels, .flip = flip};
    w.weight = io->op == &clv__op_conv2d_backward_weight;
    if (flip) w.in_channels = c->out_channels, w.out_channels = c->in_channels;
    for (int d = 0; d < 2; d++) {
        w.in[d] = flip ? c->out[d] : c->in[d];
        w.out[d] = flip ? c->in[d] : c->out[d];
        w.first[d] = flip ? c->padding[d] - 2 : -c->padding[d];
        w.tiles[d] = clv__div_up(w.out[d], TILE);
    }
    const int64_t tiles = w.n * w.tiles[0] * w.tiles[1], pitch = w.tiles[1] + 1;
    w.planes = clv__max64(1, clv__min64(w.n, AREA / ((w.tiles[0] + 1) * pitch)));
    w.strips = clv__max64(1, clv__min64(w.tiles[0], AREA / pitch - 1));
    w.row = clv__round_up(tiles, 8); // whole sectors
    clv__gemm g = {.batches = POINTS, .m = w.out_channels, .n = tiles, .k = w.in_channels};
    g.k_1 = g.k_0 = g.n_1 = g.n_0 = g.b_n2 = g.c_n2 = 1;
    g.a_z = w.in_channels * w.out_channels, g.a_m = flip ? 1 : w.in_channels;
    g.a_k2 = flip ? w.out_channels : 1, g.a_rows = !flip;
    g.b_k2 = g.c_m = w.row, g.b_z = w.in_channels * w.row, g.c_z = w.out_channels * w.row;
    if (w.weight) {
        g.n = w.in_channels, g.k = tiles;
        g.a_z = g.c_z, g.c_z = w.in_channels * w.out_channels, g.a_m = g.b_n2 = w.row, g.b_k2 = 1;
        g.c_m = w.in_channels, g.b_rows = true;
    }
    w.product = g;
    return w;
}

/** With few channels roundings, some ten times a plain sum's, show more; and in the gradient by the weights where a tap in the corner meets
 *  few of a tile's pixels. */
bool clv__conv2d_winograd_lanes_supports(const clv_device_info *device, const clv__op_io *io) {
    const clv__conv2d c = clv__conv2d_of(io);
    for (int d = 0; d < 2; d++)
        if (c.kernel[d] != 3 || c.stride[d] != 1 || c.dilation[d] != 1 || c.padding[d] > 2) return false;
    if (c.groups != 1 || !clv__conv2d_sums(&c) || c.in_channels < LEAST || c.out_channels < LEAST)
        return false;
    const work w = work_of(io, &c);
    if (w.weight && (w.out[0] < TILE || w.out[1] < TILE)) return false;
    return 2 * (w.tiles[1] + 1) <= AREA && device->max_work_group >= ITEMS &&
           clv__tile_local_bytes(device) >= 16 * (AREA + 4) * sizeof(float) &&
           clv__gemm_supports(device, io) &&
           POINTS * clv__max64(c.in_channels, c.out_channels) * w.row < INT32_MAX &&
           POINTS * c.in_channels * c.out_channels < INT32_MAX;
}

/** What is read and written around the product, and its further launches. */
double clv__conv2d_winograd_lanes_rank(const clv_device_info *device, const clv__op_io *io) {
    const clv__conv2d c = clv__conv2d_of(io);
    const work w = work_of(io, &c);
    const double channels = (double)(w.in_channels + w.out_channels), tiles = (double)w.row;
    const double weights = (double)(w.in_channels * w.out_channels),
                 rows = (double)(4 * w.strips + 2) / (double)(4 * w.strips);
    const double floats = 2 * POINTS * (channels * tiles + weights) + 9 * weights +
                          16 * tiles * (rows * (double)w.in_channels + (double)w.out_channels);
    const double cost = clv__gemm_cost(device, io, &w.product) + clv__lanes_bytes_cost(device, 4 * floats) +
                        clv__lanes_launches_cost(w.weight ? 3 : 2);
    return clv__lanes_rank(device, cost, (double)clv__numel(&io->out[0]), (double)clv__conv2d_reduction(io));
}

/** The launch that transforms input `index`, of `channels` of so many pixels, to v, and before it `kernels` groups' weights to u. */
static void lower_transform(clv__launches *list, const clv__op_io *io, int index, const work *w,
                            int64_t kernels, int64_t channels, const int64_t in[2], const int64_t first[2],
                            clv__part u, clv__part v, bool adjoint) {
    const int64_t chunks = clv__div_up(w->n, w->planes) * clv__div_up(w->tiles[0], w->strips);
    clv__launch *launch = clv__launch_kernel(list, "conv2d_winograd_lanes", "winograd_lanes_transform");
    clv__define_number(list, launch, "ADJOINT", adjoint, 0);
    clv__arg_part(list, launch, u);
    CLV__ARGS(list, launch, io, "w i1", .part = v);
    clv__arg_in_as(list, launch, io, index, "T_IN");
    CLV__ARGS_I32(list, launch, kernels, w->in_channels * w->out_channels, w->flip, w->n, channels,
                  CLV__HW(in), CLV__HW(w->tiles), w->row, CLV__HW(first), w->planes, w->strips);
    clv__launch_grid(launch, (size_t)((kernels + chunks * channels) * ITEMS), ITEMS);
}

/** c, a and b are the product's, in the workspace. */
static void lower_product(clv__launches *list, const clv__op_io *io, int bias, const work *w, clv__part c,
                          clv__part a, clv__part b) {
    const clv__part parts[3] = {c, a, b};
    clv__gemm_lower(
        list, io,
        &(clv__gemms){
            .a = bias, .bias = -1, .parts = parts, .inner = 1, .n_channels = 1, .product = &w->product});
}

void clv__conv2d_winograd_lanes_lower(clv__launches *list, const clv__op_io *io) {
    if (clv__numel(&io->out[0]) == 0) return;
    const clv__conv2d c = clv__conv2d_of(io);
    const work w = work_of(io, &c);
    const int64_t weights = c.in_channels * c.out_channels;
    const int64_t rows = AREA / w.tiles[1], all_rows = w.n * w.tiles[0]; // of the result
    const clv__part r = clv__floats(list, POINTS * w.out_channels * w.row),
                    u = clv__floats(list, POINTS * weights),
                    v = clv__floats(list, POINTS * w.in_channels * w.row);
    lower_transform(list, io, 0, &w, clv__div_up(weights, ITEMS), w.in_channels, w.in, w.first, u, v, false);
    lower_product(list, io, 1, &w, r, u, v);

    clv__launch *launch = clv__launch_kernel(list, "conv2d_winograd_lanes", "winograd_lanes_output");
    clv__arg_out_as(list, launch, io, 0, "T_OUT");
    CLV__ARGS(list, launch, io, "w b", .part = r, .bias = c.bias ? 2 : 1,
              CLV__INTS(w.n, w.out_channels, CLV__HW(w.out), CLV__HW(w.tiles), w.row, rows, c.bias));
    clv__arg_epilogue(list, launch, io);
    clv__launch_grid(launch, (size_t)(clv__div_up(all_rows, rows) * w.out_channels * ITEMS), ITEMS);
}

void clv__conv2d_winograd_lanes_weight(clv__launches *list, const clv__op_io *io) {
    if (clv__numel(&io->out[0]) == 0) return;
    const clv__conv2d c = clv__conv2d_of(io);
    const work w = work_of(io, &c);
    const int64_t weights = c.in_channels * c.out_channels, origin[2] = {0, 0};
    const clv__part s = clv__floats(list, POINTS * weights),
                    y = clv__floats(list, POINTS * w.out_channels * w.row),
                    v = clv__floats(list, POINTS * w.in_channels * w.row);
    lower_transform(list, io, 1, &w, 0, w.in_channels, w.in, w.first, s, v, false);
    lower_transform(list, io, 0, &w, 0, w.out_channels, w.out, origin, s, y, true);
    lower_product(list, io, 0, &w, s, y, v);
    clv__launch *launch = clv__launch_kernel(list, "conv2d_winograd_lanes", "winograd_lanes_weight");
    CLV__ARGS(list, launch, io, "o0 w", .part = s, CLV__INTS(weights));
    clv__launch_grid(launch, (size_t)(clv__div_up(weights, ITEMS) * ITEMS), ITEMS);
}
