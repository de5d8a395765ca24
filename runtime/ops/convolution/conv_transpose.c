// SPDX-License-Identifier: Apache-2.0
// Transposed convolution. It is what conv2d's gradient by the input computes, so it has that op's kernels, and its gradients are conv2d
// and conv2d's gradient by the weights, with x and dy in each other's places.
//
//     conv_transpose2d   x, weight (, bias) -> y     y as conv2d's x, x as its y, weight as its own
#include "graph/signature.h"
#include "ops/convolution/conv2d.h"
#include "ops/lower.h"

extern const clv__op clv__op_conv_transpose2d;

/** Those of conv2d, and what comes behind. */
typedef struct transpose_attrs {
    CLV__CONV2D_ATTRS;
    int32_t output_padding[CLV__WINDOW_DIMS];
} transpose_attrs;

// ---- shapes -----------------------------------------------------------------------------------------------

static clv_status infer(clv__op_io *io, clv__error *error) {
    const transpose_attrs *a = io->attrs;
    const clv_shape *x = &io->in[0].shape, *weight = &io->in[1].shape;
    if (x->dims[1] % a->groups != 0)
        CLV_FAIL(error, CLV_E_SHAPE, "groups %d does not divide %lld input channels", (int)a->groups,
                 (long long)x->dims[1]);
    clv__desc out = clv__f32(*x);
    out.shape.dims[1] = weight->dims[1] * a->groups;
    if (clv__has_in(io, 2) && io->in[2].shape.dims[0] != out.shape.dims[1])
        CLV_FAIL(error, CLV_E_SHAPE, "bias has %lld elements, y has %lld channels",
                 (long long)io->in[2].shape.dims[0], (long long)out.shape.dims[1]);
    for (int d = 0; d < x->rank - 2; d++) {
        const char *what = d == 0 ? "rows" : "columns";
        const int64_t in = x->dims[2 + d], kernel = weight->dims[2 + d];
        if (in < 1 || kernel < 1)
            CLV_FAIL(error, CLV_E_SHAPE, "%s has no %s", in < 1 ? "x" : "the kernel", what);
        if (a->output_padding[d] >= a->stride[d])
            CLV_FAIL(error, CLV_E_VALUE, "output_padding is %d, it must be below the stride %d",
                     (int)a->output_padding[d], (int)a->stride[d]);
        const int64_t made = (in - 1) * a->stride[d] + (int64_t)a->dilation[d] * (kernel - 1) + 1 +
                             a->output_padding[d] - 2 * (int64_t)a->padding[d];
        if (made < 1)
            CLV_FAIL(error, CLV_E_SHAPE, "padding %d leaves none of the %lld %s", (int)a->padding[d],
                     (long long)(made + 2 * (int64_t)a->padding[d]), what);
        out.shape.dims[2 + d] = made;
    }
    return clv__one_out(io, out);
}

static void grad(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx) {
    clv_tensor *x = clv__node_in(node, 0), *weight = clv__node_in(node, 1);
    const void *attrs = clv__node_attrs(node);
    if (clv__wants_grad(node, 0))
        dx[0] = clv__node_add(&clv__op_conv2d, attrs, (clv_tensor *[]){dy[0], weight, NULL}, 3, 1u << 2);
    if (clv__wants_grad(node, 1))
        dx[1] =
            clv__pair_node(&clv__op_conv2d_backward_weight, attrs, &x, (clv_tensor *[]){dy[0], weight}, NULL);
    if (clv__wants_grad(node, 2)) dx[2] = clv_sum(dy[0], (int[]){0, 2, 3}, 3, false);
}

/** Along the images; where channels are in one group, along the output channels, or, as a sum, the input channels. */
static bool split(const clv__op_io *io, int i, clv__split *out) {
    const bool one_group = ((const transpose_attrs *)io->attrs)->groups == 1, bias = clv__has_in(io, 2);
    if (i == 0) {
        out->in[0] = out->out[0] = 0;
        out->length = io->in[0].shape.dims[0];
    } else if (i == 1 && one_group) {
        out->in[1] = 1;
        if (bias) out->in[2] = 0;
        out->out[0] = 1;
        out->length = io->in[1].shape.dims[1];
    } else if (i == 2 && one_group && !bias) {
        out->in[0] = 1;
        out->in[1] = 0;
        out->out[0] = CLV__SPLIT_SUM;
        out->length = io->in[1].shape.dims[0];
    }
    return i < 3;
}

// ---- samples ----------------------------------------------------------------------------------------------

// N, groups, channels of x in a group, H, W, channels of y in a group, the kernel, stride, padding, output padding and dilation of H and of
// W, bias, quick
#define CASE(text, n, g, ic, h, w, oc, kh, kw, sh, sw, ph, pw, mh, mw, dh, dw, bias, is_quick)               \
    {                                                                                                        \
        .label = text,                                                                                       \
        .in = {CLV__DIMS(n, (g) * (ic), h, w), CLV__DIMS((g) * (ic), oc, kh, kw), CLV__DIMS((g) * (oc))},    \
        .n_in = 3, .left_out = (bias) ? 0 : 1u << 2,                                                         \
        .attrs = &(transpose_attrs){{sh, sw}, {ph, pw}, {dh, dw}, g, {mh, mw}}, .quick = is_quick            \
    }
static const clv__sample_row samples[] = {
    CASE("one element", 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, true, true),
    CASE("2x2, stride 2, as in U-Net", 2, 1, 5, 6, 7, 3, 2, 2, 2, 2, 0, 0, 0, 0, 1, 1, true, true),
    CASE("4x4, stride 2, padding 1", 1, 1, 3, 5, 8, 9, 4, 4, 2, 2, 1, 1, 0, 0, 1, 1, true, true),
    CASE("3x3, stride 2, padding 1, output padding 1", 2, 1, 4, 5, 4, 6, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1, true,
         true),
    CASE("3x3, padding 1, no bias", 2, 1, 2, 5, 7, 3, 3, 3, 1, 1, 1, 1, 0, 0, 1, 1, false, true),
    CASE("groups", 1, 3, 2, 6, 5, 4, 3, 3, 1, 1, 1, 1, 0, 0, 1, 1, true, true),
    CASE("unlike in height and width", 2, 1, 3, 4, 6, 2, 2, 5, 3, 2, 1, 2, 2, 0, 2, 1, true, true),
    CASE("depthwise, stride 2", 2, 5, 1, 4, 7, 1, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1, true, false),
    CASE("depthwise", 2, 17, 1, 7, 7, 1, 3, 3, 1, 1, 1, 1, 0, 0, 1, 1, true, true),
    CASE("depthwise, rows of vectors", 1, 2, 1, 5, 41, 1, 3, 3, 2, 2, 1, 1, 0, 0, 1, 1, true, false),
    CASE("stride larger than the kernel: pixels of bias alone", 1, 1, 2, 3, 4, 2, 2, 2, 4, 3, 0, 0, 3, 1, 1,
         1, true, false),
    CASE("dilation 2, stride 2: phases without taps", 1, 1, 2, 4, 5, 3, 2, 3, 2, 2, 0, 1, 1, 0, 2, 2, true,
         false),
    CASE("padding larger than the kernel", 1, 1, 1, 7, 8, 2, 2, 2, 1, 1, 3, 3, 0, 0, 1, 1, true, false),
    CASE("channels past the tiles", 2, 1, 33, 6, 9, 17, 3, 3, 1, 1, 1, 1, 0, 0, 1, 1, true, false),
    CASE("2x2, stride 2, many channels", 1, 1, 67, 5, 19, 33, 2, 2, 2, 2, 0, 0, 0, 0, 1, 1, true, false),
    CASE("winograd", 1, 1, 17, 6, 5, 16, 3, 3, 1, 1, 1, 1, 0, 0, 1, 1, true, true),
    CASE("winograd, rows over blocks", 2, 1, 16, 5, 71, 18, 3, 3, 1, 1, 1, 0, 0, 0, 1, 1, true, false),
    CASE("small images", 9, 1, 7, 3, 5, 18, 3, 3, 1, 1, 1, 1, 0, 0, 1, 1, true, false),
    CASE("images in registers", 17, 1, 35, 4, 4, 19, 3, 3, 1, 1, 1, 1, 0, 0, 1, 1, true, false),
    CASE("one pixel to 4x4", 3, 1, 70, 1, 1, 9, 4, 4, 1, 1, 0, 0, 0, 0, 1, 1, true, false),
    CASE("no images", 0, 1, 2, 4, 4, 3, 3, 3, 1, 1, 1, 1, 0, 0, 1, 1, true, false),
    CASE("no input channels", 2, 1, 0, 4, 4, 3, 3, 3, 1, 1, 1, 1, 0, 0, 1, 1, true, false),
    {0},
};
#undef CASE

// ---- the op -----------------------------------------------------------------------------------------------

clv_tensor *clv__conv_extended(clv_tensor *x, int axis, int stride, int dilation, int *output_padding) {
    if (stride < 1 || *output_padding < stride || *output_padding >= dilation) return x;
    clv_shape zeros = clv_tensor_shape(x);
    zeros.dims[axis] = *output_padding / stride;
    *output_padding %= stride;
    clv_tensor *more = clv_full(clv__tensor_graph(x), CLV_DTYPE_F32, zeros, 0);
    return clv_concat((clv_tensor *[]){x, more}, 2, axis);
}

static clv_tensor *build(const clv__call *call) {
    transpose_attrs attrs = *(const transpose_attrs *)call->attrs;
    clv_tensor *x = call->in[0];
    for (int d = 0; d < 2 && clv_tensor_shape(x).rank == 4; d++)
        x = clv__conv_extended(x, 2 + d, attrs.stride[d], attrs.dilation[d], &attrs.output_padding[d]);
    return clv__node_add(call->op, &attrs, (clv_tensor *[]){x, call->in[1], call->in[2]}, 3, 1u << 2);
}

#define PAIR(member) CLV__ATTRIBUTE(PAIR, transpose_attrs, member, "1"), CLV__POSITIVE_SIZE
#define PADDING(member)                                                                                      \
    CLV__ATTRIBUTE(PAIR, transpose_attrs, member, "0"), CLV__AT_LEAST(0), CLV__AT_MOST(1 << 20)
CLV__OP(conv_transpose2d) = {
    .name = "conv_transpose2d", // weight and bias are parameters: f32
    .inputs = CLV__INPUTS({"x", "f32[N,C,H,W]"}, {"weight", "f32[C,_,KH,KW]"}, {"bias", "f32[_]?"}),
    .attributes = CLV__ATTRIBUTES({PAIR(stride)}, {PADDING(padding)}, {PADDING(output_padding)},
                                  {PAIR(dilation)},
                                  {CLV__ATTRIBUTE(INT, transpose_attrs, groups, "1"), CLV__AT_LEAST(1)}),
    .outputs = CLV__OUTPUTS({"y", "f32[N,_,_,_]"}),
    .autocast = CLV__CAST_HALF,
    .build = build,
    .infer = infer,
    .grad = CLV__TRAINS(grad),
    .attrs_bytes = sizeof(transpose_attrs),
    .samples = CLV__TRAINS(samples),
    .split = split,
    .reference = clv__conv2d_reference_back,
    CLV__CONV2D_OF_IMAGES};
