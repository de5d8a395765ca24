// SPDX-License-Identifier: Apache-2.0
// Two-dimensional convolution and its two gradients, each an op of its own, so that the planner sees three
// pieces of work. Each is bilinear, and each one's gradients are the other two: the family is closed under
// differentiation.
//
//     conv2d                  x, weight (, bias) -> y
//     conv2d_backward_input   dy, weight         -> dx
//     conv2d_backward_weight  dy, x              -> dweight
//
// conv_transpose2d is the second with a bias (conv_transpose.c).
//
// Kernels: kernels_cl/conv2d.cl. How the CPU-class kernels cut the work is decided in runtime/ops/convolution/conv2d_tile.c; where
// every channel is by itself in conv2d_depthwise.c, for 3x3 kernels of stride 1 in conv2d_winograd.c, and for many small images
// in conv2d_images.c and conv2d_images_weight.c, each with a kernel file of its name. For devices with lanes:
// conv2d_gemm.c, conv2d_winograd_lanes.c and conv2d_winograd_fused.c for 3x3 kernels of stride 1, and conv2d_channels.c where every channel is by itself.
#include "graph/signature.h"
#include "ops/convolution/conv2d.h"
#include "ops/epilogue.h"
#include "ops/product/gemm.h"
#include "ops/lower.h"

typedef clv__conv2d_attrs conv2d_attrs;

// ---- shapes -----------------------------------------------------------------------------------------------

clv__conv2d clv__conv2d_of(const clv__op_io *io) {
    const conv2d_attrs *attrs = io->attrs;
    const bool weight = io->op == &clv__op_conv2d_backward_weight, input = clv__conv2d_back(io);
    const clv_shape *x = input ? &io->out[0].shape : weight ? &io->in[1].shape : &io->in[0].shape;
    const clv_shape *w = weight ? &io->out[0].shape : &io->in[1].shape;
    const clv_shape *y = input || weight ? &io->in[0].shape : &io->out[0].shape;
    clv__conv2d c = {
        .n = x->dims[0], .groups = attrs->groups, .bias = !clv__is_gradient(io) && clv__has_in(io, 2)};
    c.in_channels = x->dims[1] / c.groups;
    c.out_channels = w->dims[0] / c.groups;
    c.windows = clv__windows_of(x, y, w->dims + 2, attrs->stride, attrs->padding, attrs->dilation);
    return c;
}

/** y's H or W; fails where the kernel does not fit in the padded image. */
static clv_status output_size(const conv2d_attrs *a, int d, int64_t in, int64_t kernel, int64_t *out,
                              clv__error *error) {
    int64_t reach = (int64_t)a->dilation[d] * (kernel - 1) + 1, padded = in + 2 * (int64_t)a->padding[d];
    if (kernel < 1) CLV_FAIL(error, CLV_E_SHAPE, "the kernel has no elements");
    if (reach > padded) {
        CLV_FAIL(error, CLV_E_SHAPE, "the kernel covers %lld %s, x has only %lld with its padding",
                 (long long)reach, d == 0 ? "rows" : "columns", (long long)padded);
    }
    *out = (padded - reach) / a->stride[d] + 1;
    return CLV_OK;
}

/** Channels of x and weight against each other and against groups. */
static clv_status check_channels(const conv2d_attrs *a, int64_t x_channels, int64_t out_channels,
                                 int64_t weight_channels, clv__error *error) {
    if (x_channels % a->groups != 0 || out_channels % a->groups != 0) {
        CLV_FAIL(error, CLV_E_SHAPE, "groups %d does not divide %lld input and %lld output channels",
                 (int)a->groups, (long long)x_channels, (long long)out_channels);
    }
    if (x_channels != weight_channels * a->groups) {
        CLV_FAIL(error, CLV_E_SHAPE, "weight wants %lld input channels, x has %lld",
                 (long long)(weight_channels * a->groups), (long long)x_channels);
    }
    return CLV_OK;
}

static clv_status conv2d_infer(clv__op_io *io, clv__error *error) {
    const conv2d_attrs *attrs = io->attrs;
    const int64_t *x = io->in[0].shape.dims, *weight = io->in[1].shape.dims;
    CLV_TRY(check_channels(attrs, x[1], weight[0], weight[1], error));
    clv__desc out = clv__f32(io->in[0].shape);
    out.shape.dims[1] = weight[0];
    for (int d = 2; d < out.shape.rank; d++)
        CLV_TRY(output_size(attrs, d - 2, x[d], weight[d], &out.shape.dims[d], error));
    return clv__one_out(io, out);
}

// ---- gradients --------------------------------------------------------------------------------------------

/** A node of a gradient: `in` are x and weight, or what has their shapes. */
static clv_tensor *gradient(const clv__op *op, const clv__node *node, clv_tensor *dy, clv_tensor *x,
                            clv_tensor *weight) {
    return clv__pair_node(op, clv__node_attrs(node), &dy, (clv_tensor *[]){x, weight}, NULL);
}

static void conv2d_grad(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx) {
    clv_tensor *x = clv__node_in(node, 0), *weight = clv__node_in(node, 1);
    if (clv__wants_grad(node, 0)) dx[0] = gradient(&clv__op_conv2d_backward_input, node, dy[0], x, weight);
    if (clv__wants_grad(node, 1)) dx[1] = gradient(&clv__op_conv2d_backward_weight, node, dy[0], x, weight);
    if (clv__wants_grad(node, 2)) dx[2] = clv_sum(dy[0], (int[]){0, 2, 3}, 3, false);
}

/** Of a gradient: what comes to it has the shape of x or of weight, and the other one is input 1. */
static void backward_grad(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx) {
    const bool of_x = clv__node_io(node)->op == &clv__op_conv2d_backward_input;
    clv_tensor *y = clv__node_in(node, 0), *other = clv__node_in(node, 1);
    clv_tensor *x = of_x ? dy[0] : other, *weight = of_x ? other : dy[0];
    if (clv__wants_grad(node, 0))
        dx[0] = clv__node_add(&clv__op_conv2d, clv__node_attrs(node), (clv_tensor *[]){x, weight, NULL}, 3,
                              1u << 2);
    if (clv__wants_grad(node, 1))
        dx[1] = gradient(of_x ? &clv__op_conv2d_backward_weight : &clv__op_conv2d_backward_input, node, y, x,
                         weight);
}

// ---- references: reference.c ------------------------------------------------------------------------------

static void conv2d_reference(const clv__ref *ref) {
    const clv__conv2d c = clv__conv2d_of(ref->io);
    clv__conv_forward(ref, &c);
}

void clv__conv2d_reference_back(const clv__ref *ref) {
    const clv__conv2d c = clv__conv2d_of(ref->io);
    clv__conv_back(ref, &c);
}

static void backward_weight_reference(const clv__ref *ref) {
    const clv__conv2d c = clv__conv2d_of(ref->io);
    clv__conv_weight(ref, &c);
}

// ---- cost -------------------------------------------------------------------------------------------------

void clv__conv2d_cost(const clv__op_io *io, clv__cost *cost) {
    clv__conv2d c = clv__conv2d_of(io);
    cost->flops = 2.0 * (double)c.n * (double)c.groups * (double)c.out_channels * (double)c.in_channels;
    for (int d = 0; d < c.dims; d++) cost->flops *= (double)c.out[d] * (double)c.kernel[d];
    cost->bytes = clv__float_bytes(io);
}

int64_t clv__conv2d_reduction(const clv__op_io *io) {
    const clv__conv2d c = clv__conv2d_of(io);
    if (io->op == &clv__op_conv2d_backward_weight) return c.n * clv__window_product(&c.windows, c.out);
    return (io->op == &clv__op_conv2d ? c.in_channels : c.out_channels) *
           clv__window_product(&c.windows, c.kernel);
}

int64_t clv__conv2d_meetings(const clv__conv2d *c, int d) {
    int64_t n = 0;
    for (int64_t at = 0; at < c->out[d]; at++) {
        for (int64_t r = 0; r < c->kernel[d]; r++) {
            int64_t in = at * c->stride[d] - c->padding[d] + r * c->dilation[d];
            n += in >= 0 && in < c->in[d];
        }
    }
    return n;
}

// ---- plain ------------------------------------------------------------------------------------------------

void clv__conv2d_sizes(clv__launches *list, clv__launch *launch, const clv__conv2d *c) {
    CLV__ARGS_I32(list, launch, c->n, c->groups, c->in_channels, CLV__HW(c->in), c->out_channels,
                  CLV__HW(c->out), CLV__HW(c->kernel), CLV__HW(c->stride), CLV__HW(c->padding),
                  CLV__HW(c->dilation));
}

static void plain_lower(clv__launches *list, const clv__op_io *io) {
    if (clv__numel(&io->out[0]) == 0) return;
    clv__conv2d c = clv__conv2d_of(io);
    clv__launch *launch = clv__launch_kernel(
        list, "conv2d", clv__conv2d_back(io) ? "conv2d_backward_input_plain" : "conv2d_plain");
    clv__tile_define(list, launch);
    CLV__ARGS(list, launch, io, "o0=T_OUT i0=T_IN i1 b", .bias = c.bias ? 2 : 1);
    clv__conv2d_sizes(list, launch, &c);
    clv__arg_i32(list, launch, c.bias);
    clv__arg_epilogue(list, launch, io);
    clv__launch_over(list, launch, CLV__ELEMENTS, clv__numel(&io->out[0]));
}

void clv__conv2d_add_parts(clv__launches *list, clv__part parts, int64_t size, int64_t n) {
    clv__launch *launch = clv__launch_kernel(list, "conv2d", "conv2d_backward_weight_add");
    clv__tile_define(list, launch);
    CLV__ARGS(list, launch, NULL, "o0 w", .part = parts, CLV__INTS(size, n));
    clv__launch_over(list, launch, CLV__ELEMENTS, size);
}

void clv__conv2d_weight_tensors(clv__launches *list, clv__launch *launch, const clv__op_io *io,
                                clv__part parts) {
    if (parts.bytes)
        clv__arg_part(list, launch, parts);
    else
        clv__arg_out(list, launch, 0);
    clv__arg_tensors(list, launch, io, "i0=T_OUT i1=T_IN");
}

/** Weights are few, their sums long: rows of dy are dealt to chunks, for more work-items and shorter loops. */
static void plain_lower_weight(clv__launches *list, const clv__op_io *io) {
    enum { TURNS = 32768, WORK_ITEMS = 16384, CHUNKS = 64 };
    if (clv__numel(&io->out[0]) == 0) return;
    clv__conv2d c = clv__conv2d_of(io);
    int64_t size = clv__numel(&io->out[0]), all = c.n * c.out[0];
    int64_t chunks = clv__min64(clv__min64(all, CHUNKS), clv__div_up(WORK_ITEMS, size));
    chunks = clv__max64(clv__max64(chunks, 1), clv__div_up(all * (c.out[1] + 1), TURNS));
    int64_t rows = clv__max64(clv__div_up(all, chunks), 1);
    chunks = clv__max64(clv__div_up(all, rows), 1);
    const clv__part parts = clv__floats(list, chunks > 1 ? chunks * size : 0);
    clv__launch *launch = clv__launch_kernel(list, "conv2d", "conv2d_backward_weight_plain");
    clv__tile_define(list, launch);
    clv__conv2d_weight_tensors(list, launch, io, parts);
    clv__conv2d_sizes(list, launch, &c);
    CLV__ARGS_I32(list, launch, chunks, rows);
    clv__launch_over(list, launch, CLV__ELEMENTS, chunks * size);
    if (parts.bytes) clv__conv2d_add_parts(list, parts, size, chunks);
}

// ---- samples ----------------------------------------------------------------------------------------------

// N, groups, channels of x in a group, H, W, channels of y in a group, the kernel, stride, padding and dilation of H and of W, bias, quick
#define CASE(text, n, g, ic, h, w, oc, kh, kw, sh, sw, ph, pw, dh, dw, bias, is_quick)                       \
    {                                                                                                        \
        .label = text,                                                                                       \
        .in = {CLV__DIMS(n, (g) * (ic), h, w), CLV__DIMS((g) * (oc), ic, kh, kw), CLV__DIMS((g) * (oc))},    \
        .n_in = 3, .left_out = (bias) ? 0 : 1u << 2,                                                         \
        .attrs = &(conv2d_attrs){{sh, sw}, {ph, pw}, {dh, dw}, g}, .quick = is_quick                         \
    }
static const clv__sample_row samples[] = {
    CASE("one element", 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, true, true),
    CASE("3x3", 2, 1, 3, 7, 5, 4, 3, 3, 1, 1, 0, 0, 1, 1, true, true),
    CASE("3x3, padding 1, no bias", 2, 1, 2, 5, 7, 3, 3, 3, 1, 1, 1, 1, 1, 1, false, true),
    CASE("3x3, padding 1, stride 2", 1, 1, 3, 9, 8, 5, 3, 3, 2, 2, 1, 1, 1, 1, true, true),
    CASE("1x1", 2, 1, 5, 4, 3, 7, 1, 1, 1, 1, 0, 0, 1, 1, true, true),
    CASE("1x1, whole vectors", 2, 1, 16, 4, 6, 24, 1, 1, 1, 1, 0, 0, 1, 1, true, true),
    CASE("3x3, padding 1, images of whole vectors", 2, 1, 8, 4, 10, 8, 3, 3, 1, 1, 1, 1, 1, 1, false, true),
    CASE("1x1, stride 2: pixels nobody reads", 1, 1, 3, 5, 6, 2, 1, 1, 2, 2, 0, 0, 1, 1, true, false),
    CASE("groups", 1, 3, 2, 6, 5, 4, 3, 3, 1, 1, 1, 1, 1, 1, true, true),
    CASE("depthwise, stride 2", 2, 5, 1, 7, 7, 1, 3, 3, 2, 2, 1, 1, 1, 1, true, false),
    CASE("depthwise", 2, 17, 1, 7, 7, 1, 3, 3, 1, 1, 1, 1, 1, 1, false, true),
    CASE("depthwise, stride 2, columns in vectors", 1, 2, 1, 9, 71, 1, 3, 3, 2, 2, 1, 1, 1, 1, true, false),
    CASE("depthwise, rows in blocks", 1, 1, 1, 75, 70, 1, 5, 5, 1, 1, 2, 2, 1, 1, true, false),
    CASE("depthwise, unlike in height and width", 2, 3, 1, 13, 40, 1, 4, 3, 3, 1, 0, 2, 1, 2, true, false),
    CASE("depthwise, dilation 2, stride 3", 1, 2, 1, 17, 23, 1, 3, 2, 3, 3, 4, 1, 2, 2, true, false),
    CASE("depthwise, 5x5, stride 2, columns in parts", 1, 2, 1, 11, 239, 1, 5, 5, 2, 2, 2, 2, 1, 1, false,
         false),
    CASE("depthwise, images in turns and parts", 131, 2, 1, 7, 5, 1, 3, 3, 1, 1, 1, 1, 1, 1, false, false),
    CASE("dilation 2", 1, 1, 2, 9, 8, 3, 3, 3, 1, 1, 2, 2, 2, 2, true, true),
    CASE("dilation 2, stride 2: phases without taps", 1, 1, 2, 9, 9, 3, 2, 3, 2, 2, 0, 1, 2, 2, true, false),
    CASE("dilation 3, stride 2", 1, 1, 2, 11, 13, 3, 3, 2, 2, 2, 3, 1, 3, 3, true, false),
    CASE("unlike in height and width", 2, 1, 3, 8, 11, 2, 2, 5, 3, 1, 1, 2, 1, 2, true, false),
    CASE("stride 2, groups, rows of 37", 2, 2, 5, 9, 37, 9, 3, 3, 2, 2, 1, 1, 1, 1, true, true),
    CASE("stride 3 2, rows of 52", 1, 1, 3, 10, 52, 4, 4, 5, 3, 2, 2, 2, 1, 1, false, false),
    CASE("1x1, stride 2, rows of 34", 1, 1, 2, 5, 34, 3, 1, 1, 2, 2, 0, 0, 1, 1, false, false),
    CASE("stride 1 2, dilation 1 2, rows of 41", 1, 1, 3, 4, 41, 3, 2, 3, 1, 2, 0, 2, 1, 2, true, false),
    CASE("7x7, stride 2, padding 3", 1, 1, 3, 17, 15, 9, 7, 7, 2, 2, 3, 3, 1, 1, false, false),
    CASE("stride 2, rows of vectors", 2, 1, 3, 9, 83, 9, 3, 3, 2, 2, 1, 1, 1, 1, true, false),
    CASE("1x1, stride 2, rows of vectors", 1, 1, 5, 5, 71, 7, 1, 1, 2, 2, 0, 0, 1, 1, false, false),
    CASE("kernel larger than x", 1, 1, 2, 2, 3, 3, 5, 5, 1, 1, 2, 2, 1, 1, true, false),
    CASE("padding larger than the kernel", 1, 1, 1, 3, 3, 2, 2, 2, 1, 1, 3, 3, 1, 1, true, false),
    CASE("one row", 3, 1, 4, 1, 33, 5, 1, 3, 1, 1, 0, 1, 1, 1, true, false),
    CASE("stride larger than the kernel", 1, 1, 2, 10, 10, 2, 2, 2, 4, 3, 0, 0, 1, 1, true, false),
    CASE("channels past the tiles", 2, 1, 17, 6, 9, 33, 3, 3, 1, 1, 1, 1, 1, 1, true, false),
    CASE("many output channels", 1, 1, 3, 5, 5, 131, 3, 3, 1, 1, 1, 1, 1, 1, true, false),
    CASE("many input channels, in chunks", 1, 1, 131, 5, 5, 7, 3, 3, 1, 1, 1, 1, 1, 1, true, false),
    CASE("channels in blocks, stride 2, groups", 2, 2, 32, 7, 9, 64, 3, 3, 2, 2, 1, 1, 1, 1, true, true),
    CASE("channels in blocks, dilation 2", 1, 1, 128, 6, 5, 32, 3, 2, 1, 1, 2, 1, 2, 2, false, false),
    CASE("channels in blocks, stride 3 2, dilation 2 1", 3, 1, 32, 9, 10, 32, 3, 2, 3, 2, 2, 1, 2, 1, true,
         false),
    CASE("channels in fours, stride 2 3, dilation 1 2", 3, 2, 8, 7, 11, 24, 4, 3, 2, 3, 3, 0, 1, 2, false,
         false),
    CASE("1x1, pixels in eights", 5, 1, 20, 4, 6, 12, 1, 1, 1, 1, 0, 0, 1, 1, false, false),
    CASE("winograd", 1, 1, 16, 6, 5, 17, 3, 3, 1, 1, 1, 1, 1, 1, true, true),
    CASE("winograd, rows over blocks", 1, 1, 17, 5, 139, 16, 3, 3, 1, 1, 0, 2, 1, 1, false, false),
    CASE("winograd, rows of two vectors", 2, 1, 16, 9, 27, 18, 3, 3, 1, 1, 2, 0, 1, 1, true, false),
    CASE("winograd, small images", 9, 1, 16, 7, 7, 18, 3, 3, 1, 1, 1, 1, 1, 1, true, false),
    CASE("winograd, blocks in turn", 40, 1, 512, 1, 1, 16, 3, 3, 1, 1, 1, 1, 1, 1, true, false),
    CASE("winograd, weights by panels", 1, 1, 33, 6, 5, 35, 3, 3, 1, 1, 1, 1, 1, 1, true, true),
    CASE("winograd, panels in chunks", 1, 1, 259, 5, 3, 20, 3, 3, 1, 1, 0, 1, 1, 1, false, false),
    CASE("winograd, panels in chunks, two vectors", 20, 1, 131, 2, 2, 67, 3, 3, 1, 1, 1, 1, 1, 1, true,
         false),
    CASE("winograd, panels by blocks", 33, 1, 96, 2, 2, 96, 3, 3, 1, 1, 1, 1, 1, 1, true, false),
    CASE("small images, two vectors of them", 37, 1, 5, 2, 3, 9, 3, 3, 1, 1, 1, 1, 1, 1, true, true),
    CASE("small images, stride 2", 11, 1, 6, 4, 5, 17, 3, 3, 2, 2, 1, 1, 1, 1, true, false),
    CASE("small images, blocks of channels", 5, 1, 83, 3, 2, 11, 3, 3, 1, 1, 1, 1, 1, 1, true, false),
    CASE("small images, dilation 2 1, stride 2 3", 17, 1, 19, 5, 8, 21, 3, 3, 2, 3, 1, 2, 2, 1, true, false),
    CASE("small images, groups of them in turn", 33, 1, 67, 7, 8, 9, 3, 3, 1, 1, 1, 1, 1, 1, true, false),
    CASE("small images, few taps for many pixels", 3, 1, 9, 7, 6, 12, 2, 1, 1, 1, 0, 0, 1, 1, false, false),
    CASE("images in registers, stride 2", 17, 1, 35, 4, 4, 19, 3, 3, 2, 2, 1, 1, 1, 1, true, true),
    CASE("images in registers, one each", 1, 1, 29, 4, 4, 6, 3, 3, 1, 1, 1, 1, 1, 1, true, false),
    CASE("images in registers, dilation 2 1, no padding", 3, 1, 13, 6, 4, 21, 3, 3, 1, 1, 0, 0, 2, 1, true,
         false),
    CASE("images in registers, one pixel", 33, 1, 70, 3, 1, 9, 3, 3, 2, 1, 0, 2, 1, 2, true, false),
    CASE("one pixel, stride 2", 9, 1, 16, 1, 1, 16, 3, 3, 2, 2, 1, 1, 1, 1, true, true),
    CASE("one column, stride 1 2", 2, 1, 9, 5, 1, 8, 2, 2, 1, 2, 0, 1, 1, 1, true, false),
    CASE("one column, 1x1, stride 1 3", 1, 1, 8, 33, 1, 1, 1, 1, 1, 3, 0, 1, 2, 1, true, false),
    CASE("small images in one task", 9, 1, 7, 3, 5, 18, 1, 1, 1, 1, 0, 0, 1, 1, true, false),
    CASE("small images in one task, stride 2", 9, 2, 7, 7, 5, 9, 3, 1, 2, 2, 1, 0, 1, 1, true, false),
    CASE("whole images, taps beyond the edge", 21, 1, 23, 4, 5, 40, 3, 3, 2, 2, 1, 1, 1, 1, true, false),
    CASE("whole images in blocks", 171, 1, 10, 2, 4, 1024, 3, 1, 1, 1, 1, 0, 1, 1, false, false),
    CASE("a batch in parts", 37, 1, 2, 4, 4, 3, 3, 3, 1, 1, 1, 1, 1, 1, true, false),
    CASE("a large image in blocks", 1, 1, 3, 61, 67, 4, 3, 3, 1, 1, 1, 1, 1, 1, true, false),
    CASE("a sum of more than 65,535 pixels", 1, 1, 1, 263, 262, 2, 1, 2, 1, 1, 0, 0, 1, 1, true, false),
    CASE("no rows, all padding", 1, 1, 1, 0, 4, 1, 1, 1, 1, 1, 1, 0, 1, 1, true, true),
    CASE("no images", 0, 1, 2, 4, 4, 3, 3, 3, 1, 1, 1, 1, 1, 1, true, false),
    CASE("a kernel as large as the image", 2, 1, 2, 29, 28, 3, 28, 28, 1, 1, 0, 0, 1, 1, true, false),
    CASE("no input channels", 2, 1, 0, 4, 4, 3, 3, 3, 1, 1, 1, 1, 1, 1, true, false),
    CASE("no output channels", 2, 1, 3, 4, 4, 0, 3, 3, 1, 1, 1, 1, 1, 1, true, false),
    {0},
};
#undef CASE

// ---- the descriptors --------------------------------------------------------------------------------------

// Where a rank is a number: tile was measured 1/50 to 1/200 of plain with 16 lanes; before it comes depthwise, as it computes a register
// tile of channels for the one there is. Of channels plain divides by sizes for each tap, and reads far apart for the weights.
#define VARIANT(stem, supports_, lower_, ...)                                                                \
    {                                                                                                        \
        .name = #stem, .supports = clv__conv2d_##stem##supports_, .lower = clv__conv2d_##stem##lower_,       \
        __VA_ARGS__                                                                                          \
    }
#define TILE .relative = 0.02
#define DEPTHWISE .relative = 0.01
#define CHANNELS .relative = 0.2, .lanes = true
#define UNTIMED .relative = 1000 // no card has been asked: for those who tune or pin it
#define RANK(function) .rank = clv__conv2d_##function
const clv__variant clv__conv2d_variants[] = {
    {.name = "plain", .lower = plain_lower},
    VARIANT(tile, _supports, _lower, TILE),
    VARIANT(depthwise, _supports, _lower, DEPTHWISE),
    VARIANT(winograd, _supports, _lower, RANK(winograd_rank), .work = 0.25),
    VARIANT(images, _supports, _lower, RANK(images_rank)),
    VARIANT(channels, _supports, _lower, CHANNELS),
    VARIANT(winograd_lanes, _supports, _lower, RANK(winograd_lanes_rank), .work = 0.25),
    VARIANT(winograd_fused, _supports, _lower, UNTIMED, .work = 4.0 / 9),
    CLV__GEMM_VARIANTS(clv__conv2d_gemm_supports, clv__conv2d_gemm_rank, clv__conv2d_gemm_lower),
    CLV__GEMM_HALVES(clv__conv2d_gemm_supports, clv__conv2d_gemm_rank, clv__conv2d_gemm_lower),
    CLV__GEMM_MATRIX(clv__conv2d_gemm_supports, clv__conv2d_gemm_rank, clv__conv2d_gemm_lower),
    CLV__GEMM_HALF_SUMS(clv__conv2d_gemm_supports, clv__conv2d_gemm_rank, clv__conv2d_gemm_lower),
    {0},
};
static const clv__variant weight_variants[] = {
    {.name = "plain", .lower = plain_lower_weight},
    VARIANT(tile, _supports_weight, _weight, TILE),
    VARIANT(depthwise, _supports, _weight, DEPTHWISE),
    VARIANT(winograd, _supports_weight, _weight, RANK(winograd_rank_weight), .work = 0.25),
    VARIANT(images, _supports_weight, _weight, RANK(images_rank_weight)),
    VARIANT(channels, _supports_weight, _weight, CHANNELS),
    VARIANT(winograd_lanes, _supports, _weight, RANK(winograd_lanes_rank), .work = 0.25),
    CLV__GEMM_VARIANTS(clv__conv2d_gemm_supports, clv__conv2d_gemm_rank, clv__conv2d_gemm_lower),
    CLV__GEMM_HALVES(clv__conv2d_gemm_supports, clv__conv2d_gemm_rank, clv__conv2d_gemm_lower),
    CLV__GEMM_MATRIX(clv__conv2d_gemm_supports, clv__conv2d_gemm_rank, clv__conv2d_gemm_lower),
    {0},
};

// ---- in parts ---------------------------------------------------------------------------------------------

/** Along the images, or, where channels are in one group, along the output channels. */
static bool conv2d_split(const clv__op_io *io, int i, clv__split *out) {
    if (i == 0) {
        out->in[0] = out->out[0] = 0;
        out->length = io->in[0].shape.dims[0];
    } else if (i == 1 && ((const conv2d_attrs *)io->attrs)->groups == 1) {
        out->in[1] = 0;
        if (clv__has_in(io, 2)) out->in[2] = 0;
        out->out[0] = 1;
        out->length = io->in[1].shape.dims[0];
    }
    return i < 2;
}

CLV__OP(conv2d) = {
    .name = "conv2d", // weight and bias are parameters: f32
    .inputs = CLV__INPUTS({"x", "f32[N,C,H,W]"}, {"weight", "f32[O,_,KH,KW]"}, {"bias", "f32[O]?"}),
    .attributes = CLV__ATTRIBUTES({CLV__ATTRIBUTE(PAIR, conv2d_attrs, stride, "1"), CLV__POSITIVE_SIZE},
                                  {CLV__ATTRIBUTE(PAIR, conv2d_attrs, padding, "0"), CLV__AT_LEAST(0),
                                   CLV__AT_MOST(1 << 20)},
                                  {CLV__ATTRIBUTE(PAIR, conv2d_attrs, dilation, "1"), CLV__POSITIVE_SIZE},
                                  {CLV__ATTRIBUTE(INT, conv2d_attrs, groups, "1"), CLV__AT_LEAST(1)}),
    .outputs = CLV__OUTPUTS({"y", "f32[N,O,_,_]"}),
    .autocast = CLV__CAST_HALF,
    .infer = conv2d_infer,
    .grad = CLV__TRAINS(conv2d_grad),
    .attrs_bytes = sizeof(conv2d_attrs),
    .samples = CLV__TRAINS(samples),
    .split = conv2d_split,
    .reference = conv2d_reference,
    CLV__CONV2D_OF_IMAGES};

#define GRADIENT(what, takes_)                                                                               \
    .name = "conv2d_backward_" what, .gradient_of = &clv__op_conv2d, CLV__PAIR(takes_),                      \
    .attrs_bytes = CLV__ATTRS_AND_SHAPE(conv2d_attrs), .grad = CLV__TRAINS(backward_grad)
CLV__TRAIN_OP(conv2d_backward_input) = {GRADIENT("input", "d0 i1 s0 g0"),
                                        .reference = clv__conv2d_reference_back, CLV__CONV2D_OF_IMAGES};

CLV__TRAIN_OP(conv2d_backward_weight) = {GRADIENT("weight", "d0 i0 s1 g1"),
                                         .half_in = 3, // the gradient is a parameter's: f32
                                         .variants = weight_variants, .reference = backward_weight_reference,
                                         CLV__CONV2D_SUMS};
