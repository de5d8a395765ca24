// SPDX-License-Identifier: Apache-2.0
// Convolution and its gradients as implicit products on devices with lanes: which digits of the product's numbers are channels, images,
// rows and columns. Launches: runtime/ops/product/gemm.c. Kernels: kernels_cl/gemm.cl.
#include "ops/convolution/conv2d.h"
#include "ops/product/gemm.h"

#include <math.h>

enum { H, W };

/** Rows are output channels, columns pixels of the results, terms the taps of all input channels. */
/** Has a pixel several taps, or an edge? Else a term is a channel. */
static bool taps_of(const clv__conv2d *c) {
    return c->kernel[H] * c->kernel[W] > 1 || c->padding[H] || c->padding[W];
}

static clv__gemm forward_of(const clv__conv2d *c) {
    const int64_t taps = c->kernel[H] * c->kernel[W], in = c->in[H] * c->in[W], out = c->out[H] * c->out[W];
    const int64_t ic = c->in_channels, oc = c->out_channels;
    clv__gemm g = {.batches = c->groups, .m = oc, .n = c->n * out, .k = ic * taps, .channels = oc};
    g.k_1 = c->kernel[H], g.k_0 = c->kernel[W], g.n_1 = c->out[H], g.n_0 = c->out[W];
    g.a_z = oc * ic * taps, g.a_m = ic * taps, g.a_k2 = taps, g.a_k1 = c->kernel[W], g.a_k0 = 1;
    g.b_z = ic * in, g.b_k2 = in, g.b_n2 = c->groups * ic * in;
    g.c_z = oc * out, g.c_m = out, g.c_n2 = c->groups * oc * out, g.c_n1 = c->out[W], g.c_n0 = 1;
    g.h_0 = -c->padding[H], g.h_n1 = c->stride[H], g.h_k1 = c->dilation[H], g.h_size = c->in[H];
    g.w_0 = -c->padding[W], g.w_n0 = c->stride[W], g.w_k0 = c->dilation[W], g.w_size = c->in[W];
    g.taps = taps_of(c);
    g.a_rows = g.by_row = true;
    return g;
}

/** Rows are output channels, columns the taps of all input channels, terms pixels of dy: what are weights and y there is dy and
 *  the result here, and terms and columns change places. */
static clv__gemm weight_of(const clv__conv2d *c) {
    const clv__gemm f = forward_of(c);
    clv__gemm g = f;
    g.n = f.k, g.n_1 = f.k_1, g.n_0 = f.k_0, g.k = f.n, g.k_1 = f.n_1, g.k_0 = f.n_0;
    g.a_z = f.c_z, g.a_m = f.c_m, g.a_k2 = f.c_n2, g.a_k1 = f.c_n1, g.a_k0 = f.c_n0;
    g.c_z = f.a_z, g.c_m = f.a_m, g.c_n2 = f.a_k2, g.c_n1 = f.a_k1, g.c_n0 = f.a_k0;
    g.b_k2 = f.b_n2, g.b_n2 = f.b_k2;
    g.h_n1 = f.h_k1, g.h_k1 = f.h_n1, g.w_n0 = f.w_k0, g.w_k0 = f.w_n0;
    g.taps = g.b_rows = true;
    return g;
}

/** Taps of the kernel that meet a pixel, at most. */
static int64_t meeting(const clv__conv2d *c, int d) {
    int64_t step = 1;
    while (step * c->dilation[d] % c->stride[d] != 0) step++;
    return clv__div_up(c->kernel[d], step);
}

/** Rows are input channels, columns pixels of x, terms the taps of all output channels that they meet. The pixels of each phase of a
 *  stride meet taps of their own: the kernel tells which. */
static clv__gemm input_of(const clv__conv2d *c) {
    const clv__gemm f = forward_of(c);
    const int64_t stride[2] = {clv__min64(c->stride[H], c->in[H]), clv__min64(c->stride[W], c->in[W])};
    clv__gemm g = f;
    g.m = g.channels = c->in_channels, g.n_1 = c->in[H], g.n_0 = c->in[W];
    g.a_m = f.a_k2, g.a_k2 = f.a_m;
    g.b_z = f.c_z, g.b_k2 = f.c_m, g.b_n2 = f.c_n2;
    g.c_z = f.b_z, g.c_m = f.b_k2, g.c_n2 = f.b_n2, g.c_n1 = c->in[W];
    g.h_0 = c->padding[H], g.h_size = c->out[H], g.w_0 = c->padding[W], g.w_size = c->out[W];
    g.a_rows = f.taps;
    if (c->stride[H] == 1 && c->stride[W] == 1) {
        g.n = c->n * f.b_k2, g.k = c->out_channels * f.k_1 * f.k_0;
        g.h_k1 = -f.h_k1, g.w_k0 = -f.w_k0;
    } else {
        g.phases = stride[H] * stride[W], g.n_2 = c->n, g.k_2 = c->out_channels;
        g.n = c->n * clv__div_up(c->in[H], c->stride[H]) * clv__div_up(c->in[W], c->stride[W]);
        g.k = c->out_channels * meeting(c, H) * meeting(c, W);
    }
    return g;
}

static clv__gemms gemms_of(const clv__op_io *io, clv__gemm *g) {
    const bool weight = io->op == &clv__op_conv2d_backward_weight;
    const clv__conv2d c = clv__conv2d_of(io);
    *g = weight ? weight_of(&c) : clv__conv2d_back(io) ? input_of(&c) : forward_of(&c);
    return (clv__gemms){.a = !weight,
                        .b = weight,
                        .bias = c.bias ? 2 : -1,
                        .inner = g->c_m,
                        .n_channels = g->batches * g->m,
                        .product = g};
}

bool clv__conv2d_gemm_supports(const clv_device_info *device, const clv__op_io *io) {
    const clv__conv2d c = clv__conv2d_of(io);
    // Tiles that take 128 registers without taps spill with them where an item has no more (dg2), and with phases leave room for one
    // group on a unit (145 registers on sm_80, when terms were divided for).
    const bool phases = clv__conv2d_back(io) && (c.stride[H] > 1 || c.stride[W] > 1);
    const bool full = clv__gemm_registers(io) == 128 && (phases || device->sub_group_sizes[0] == 8);
    clv__gemm g;
    const clv__gemms gemms = gemms_of(io, &g);
    return clv__conv2d_sums(&c) && !full && clv__gemm_supports(device, io) && !clv__gemm_spills(io, &gemms);
}

/** Of one channel a group a tile has one row or column in use. It is worse than `channels` wherever that is, however much plain waits for
 *  its few results: an H200 reached 0.03 of the memory's rate. */
double clv__conv2d_gemm_rank(const clv_device_info *device, const clv__op_io *io) {
    const double one_channel = 0.5;
    clv__gemm g;
    const clv__gemms gemms = gemms_of(io, &g);
    const double rank = clv__gemm_rank(device, io, &gemms);
    const clv__conv2d c = clv__conv2d_of(io);
    return c.groups > 1 && c.in_channels == 1 && c.out_channels == 1 ? fmax(rank, one_channel) : rank;
}

void clv__conv2d_gemm_lower(clv__launches *list, const clv__op_io *io) {
    clv__gemm g;
    const clv__gemms gemms = gemms_of(io, &g);
    clv__gemm_lower(list, io, &gemms);
}
