// SPDX-License-Identifier: Apache-2.0
// Convolution and its gradients as implicit products on devices with lanes: which digits of the product's numbers are channels, images,
// rows and columns. Launches: runtime/ops/gemm.c. Kernels: kernels_cl/gemm.cl.
#include "ops/conv2d.h"
#include "ops/gemm.h"

enum { H, W, PHASES = 64 }; // most products of a gradient by the input: strides up to 8 both ways

/** Rows are output channels, columns pixels of the results, terms the taps of all input channels. */
static clv__gemm forward_of(const clv__conv2d *c) {
    const int64_t taps = c->kernel[H] * c->kernel[W], in = c->in[H] * c->in[W], out = c->out[H] * c->out[W];
    const bool one = taps == 1 && c->padding[H] == 0 && c->padding[W] == 0; // a term is a channel
    return (clv__gemm){.batches = c->groups,
                       .m = c->out_channels,
                       .n = c->n * out,
                       .k = c->in_channels * taps,
                       .k_1 = c->kernel[H],
                       .k_0 = c->kernel[W],
                       .n_1 = c->out[H],
                       .n_0 = c->out[W],
                       .a_z = c->out_channels * c->in_channels * taps,
                       .a_m = c->in_channels * taps,
                       .a_k2 = taps,
                       .a_k1 = c->kernel[W],
                       .a_k0 = 1,
                       .b_z = c->in_channels * in,
                       .b_k2 = in,
                       .b_n2 = c->groups * c->in_channels * in,
                       .c_z = c->out_channels * out,
                       .c_m = out,
                       .c_n2 = c->groups * c->out_channels * out,
                       .c_n1 = c->out[W],
                       .c_n0 = 1,
                       .h_0 = -c->padding[H],
                       .h_n1 = c->stride[H],
                       .h_k1 = c->dilation[H],
                       .h_size = c->in[H],
                       .w_0 = -c->padding[W],
                       .w_n0 = c->stride[W],
                       .w_k0 = c->dilation[W],
                       .w_size = c->in[W],
                       .taps = !one,
                       .a_rows = true,
                       .by_row = true,
                       .channels = c->out_channels};
}

/** Rows are output channels, columns the taps of all input channels, terms pixels of dy. */
static clv__gemm weight_of(const clv__conv2d *c) {
    const int64_t taps = c->kernel[H] * c->kernel[W], in = c->in[H] * c->in[W], out = c->out[H] * c->out[W];
    return (clv__gemm){.batches = c->groups,
                       .m = c->out_channels,
                       .n = c->in_channels * taps,
                       .k = c->n * out,
                       .k_1 = c->out[H],
                       .k_0 = c->out[W],
                       .n_1 = c->kernel[H],
                       .n_0 = c->kernel[W],
                       .a_z = c->out_channels * out,
                       .a_m = out,
                       .a_k2 = c->groups * c->out_channels * out,
                       .a_k1 = c->out[W],
                       .a_k0 = 1,
                       .b_z = c->in_channels * in,
                       .b_k2 = c->groups * c->in_channels * in,
                       .b_n2 = in,
                       .c_z = c->out_channels * c->in_channels * taps,
                       .c_m = c->in_channels * taps,
                       .c_n2 = taps,
                       .c_n1 = c->kernel[W],
                       .c_n0 = 1,
                       .h_0 = -c->padding[H],
                       .h_n1 = c->dilation[H],
                       .h_k1 = c->stride[H],
                       .h_size = c->in[H],
                       .w_0 = -c->padding[W],
                       .w_n0 = c->dilation[W],
                       .w_k0 = c->stride[W],
                       .w_size = c->in[W],
                       .taps = true,
                       .a_rows = true,
                       .b_rows = true,
                       .by_row = true,
                       .channels = c->out_channels};
}

/** Along one dimension: the pixels of x at phase, phase + stride, .. meet the taps first, first + step, .. of the kernel, and the tap
 *  `first` of pixel `phase` meets row (or column) `at` of y; each further tap one that lies `back` before it. */
typedef struct phase {
    int64_t pixels, taps, first, step, at, back;
} phase;

static phase phase_of(const clv__conv2d *c, int d, int64_t at) {
    const int64_t stride = c->stride[d];
    phase p = {.pixels = clv__div_up(c->in[d] - at, stride), .step = 1};
    while (p.step * c->dilation[d] % stride != 0) p.step++;
    while (p.first < p.step && (at + c->padding[d] - p.first * c->dilation[d]) % stride != 0) p.first++;
    if (p.first == p.step || p.first >= c->kernel[d])
        return (phase){.pixels = p.pixels, .step = 1}; // nothing meets it
    p.taps = clv__div_up(c->kernel[d] - p.first, p.step);
    p.at = (at + c->padding[d] - p.first * c->dilation[d]) / stride;
    p.back = p.step * c->dilation[d] / stride;
    return p;
}

/** Rows are input channels, columns the pixels of x of one phase of the stride, terms the taps of all output channels that they meet. */
static clv__gemm input_of(const clv__conv2d *c, int64_t y, int64_t x) {
    const phase h = phase_of(c, H, y), w = phase_of(c, W, x);
    const int64_t taps = c->kernel[H] * c->kernel[W], in = c->in[H] * c->in[W], out = c->out[H] * c->out[W];
    const bool one = taps == 1 && c->padding[H] == 0 && c->padding[W] == 0;
    return (clv__gemm){.batches = c->groups,
                       .m = c->in_channels,
                       .n = c->n * h.pixels * w.pixels,
                       .k = c->out_channels * h.taps * w.taps,
                       .k_1 = clv__max64(h.taps, 1),
                       .k_0 = clv__max64(w.taps, 1),
                       .n_1 = clv__max64(h.pixels, 1),
                       .n_0 = clv__max64(w.pixels, 1),
                       .a_0 = h.first * c->kernel[W] + w.first,
                       .a_z = c->out_channels * c->in_channels * taps,
                       .a_m = taps,
                       .a_k2 = c->in_channels * taps,
                       .a_k1 = h.step * c->kernel[W],
                       .a_k0 = w.step,
                       .b_z = c->out_channels * out,
                       .b_k2 = out,
                       .b_n2 = c->groups * c->out_channels * out,
                       .c_0 = y * c->in[W] + x,
                       .c_z = c->in_channels * in,
                       .c_m = in,
                       .c_n2 = c->groups * c->in_channels * in,
                       .c_n1 = c->stride[H] * c->in[W],
                       .c_n0 = c->stride[W],
                       .h_0 = h.at,
                       .h_n1 = 1,
                       .h_k1 = -h.back,
                       .h_size = c->out[H],
                       .w_0 = w.at,
                       .w_n0 = 1,
                       .w_k0 = -w.back,
                       .w_size = c->out[W],
                       .taps = !one,
                       .a_rows = !one,
                       .by_row = true,
                       .channels = c->in_channels};
}

/** The products of an op, in `items`. */
static clv__gemms forward_gemms(const clv__conv2d *c, clv__gemm *items) {
    items[0] = forward_of(c);
    return (clv__gemms){.a = 1,
                        .bias = c->bias ? 2 : -1,
                        .inner = c->out[H] * c->out[W],
                        .n_channels = c->groups * c->out_channels,
                        .n = 1,
                        .items = items};
}

static clv__gemms weight_gemms(const clv__conv2d *c, clv__gemm *items) {
    items[0] = weight_of(c);
    return (clv__gemms){.b = 1, .bias = -1, .inner = 1, .n_channels = 1, .n = 1, .items = items};
}

static clv__gemms input_gemms(const clv__conv2d *c, clv__gemm *items) {
    int n = 0;
    for (int64_t y = 0; y < clv__min64(c->stride[H], c->in[H]); y++)
        for (int64_t x = 0; x < clv__min64(c->stride[W], c->in[W]); x++) items[n++] = input_of(c, y, x);
    return (clv__gemms){.a = 1,
                        .bias = -1,
                        .inner = c->in[H] * c->in[W],
                        .n_channels = c->groups * c->in_channels,
                        .n = n,
                        .items = items};
}

bool clv__conv2d_gemm_supports(const clv_device_info *device, const clv__op_io *io) {
    const clv__conv2d c = clv__conv2d_of(io);
    return clv__conv2d_sums(&c) && clv__gemm_supports(device, io);
}

bool clv__conv2d_gemm_supports_input(const clv_device_info *device, const clv__op_io *io) {
    const clv__conv2d c = clv__conv2d_of(io);
    return clv__min64(c.stride[H], c.in[H]) * clv__min64(c.stride[W], c.in[W]) <= PHASES &&
           clv__conv2d_gemm_supports(device, io);
}

#define GEMM_FUNCTIONS(name)                                                                                 \
    double clv__conv2d_gemm_rank_##name(const clv_device_info *device, const clv__op_io *io) {               \
        clv__gemm items[PHASES];                                                                             \
        const clv__conv2d c = clv__conv2d_of(io);                                                            \
        const clv__gemms gemms = name##_gemms(&c, items);                                                    \
        return clv__gemm_rank(device, io, &gemms);                                                           \
    }                                                                                                        \
    void clv__conv2d_gemm_##name(clv__launches *list, const clv__op_io *io) {                                \
        clv__gemm items[PHASES];                                                                             \
        const clv__conv2d c = clv__conv2d_of(io);                                                            \
        const clv__gemms gemms = name##_gemms(&c, items);                                                    \
        clv__gemm_lower(list, io, &gemms);                                                                   \
    }
GEMM_FUNCTIONS(forward)
GEMM_FUNCTIONS(input)
GEMM_FUNCTIONS(weight)
