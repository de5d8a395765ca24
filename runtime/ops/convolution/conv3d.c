// SPDX-License-Identifier: Apache-2.0
// Convolution over three dimensions, its gradients, and the transposed one: shapes, the plain variant, the descriptors. The fast way is in
// conv3d_planes.c. Kernels: kernels_cl/conv3d.cl.
//
//     conv3d                  x, weight (, bias) -> y
//     conv3d_backward_input   dy, weight         -> dx      conv_transpose3d: the same, with a bias
//     conv3d_backward_weight  dy, x              -> dweight
#include "ops/convolution/conv3d.h"

#include "graph/signature.h"
#include "ops/epilogue.h"

// ---- shapes -----------------------------------------------------------------------------------------------

clv__conv2d clv__conv3d_of(const clv__op_io *io) {
    const clv__conv3d_attrs *attrs = io->attrs;
    const bool weight = io->op == &clv__op_conv3d_backward_weight, back = clv__conv3d_back(io);
    const clv_shape *x = back ? &io->out[0].shape : weight ? &io->in[1].shape : &io->in[0].shape;
    const clv_shape *w = weight ? &io->out[0].shape : &io->in[1].shape;
    const clv_shape *y = back || weight ? &io->in[0].shape : &io->out[0].shape;
    clv__conv2d c = {.n = x->dims[0], .groups = attrs->groups};
    c.bias = !clv__is_gradient(io) && clv__has_in(io, 2);
    c.in_channels = x->dims[1] / c.groups;
    c.out_channels = w->dims[0] / c.groups;
    c.windows = clv__windows_of(x, y, w->dims + 2, attrs->stride.at, attrs->padding.at, attrs->dilation.at);
    return c;
}

/** A list for each of three dimensions. */
static clv_status check_lists(const clv__conv3d_attrs *a, clv__error *error) {
    const struct {
        const char *name;
        int n;
    } lists[] = {{"stride", a->stride.n}, {"padding", a->padding.n}, {"dilation", a->dilation.n}};
    for (int i = 0; i < 3; i++)
        if (lists[i].n != CLV__WINDOW_DIMS)
            CLV_FAIL(error, CLV_E_VALUE, "%s has %d numbers, it must have 3", lists[i].name, lists[i].n);
    return CLV_OK;
}

static clv_status check_groups(int64_t channels, int groups, const char *whose, clv__error *error) {
    if (channels % groups == 0) return CLV_OK;
    CLV_FAIL(error, CLV_E_SHAPE, "groups %d does not divide %lld %s channels", groups, (long long)channels,
             whose);
}

static clv_status infer(clv__op_io *io, clv__error *error) {
    const clv__conv3d_attrs *a = io->attrs;
    const int64_t *x = io->in[0].shape.dims, *weight = io->in[1].shape.dims;
    CLV_TRY(check_lists(a, error));
    CLV_TRY(check_groups(x[1], a->groups, "input", error));
    CLV_TRY(check_groups(weight[0], a->groups, "output", error));
    if (x[1] != weight[1] * a->groups)
        CLV_FAIL(error, CLV_E_SHAPE, "weight wants %lld input channels, x has %lld",
                 (long long)(weight[1] * a->groups), (long long)x[1]);
    clv__desc out = clv__f32(io->in[0].shape);
    out.shape.dims[1] = weight[0];
    for (int d = 0; d < CLV__WINDOW_DIMS; d++) {
        const int64_t kernel = weight[2 + d], reach = (int64_t)a->dilation.at[d] * (kernel - 1) + 1,
                      room = x[2 + d] + 2 * (int64_t)a->padding.at[d];
        if (kernel < 1) CLV_FAIL(error, CLV_E_SHAPE, "the kernel has no elements");
        if (reach > room)
            CLV_FAIL(error, CLV_E_SHAPE, "the kernel covers %lld along %s, x has only %lld with its padding",
                     (long long)reach, clv__window_axis(CLV__WINDOW_DIMS, d), (long long)room);
        out.shape.dims[2 + d] = (room - reach) / a->stride.at[d] + 1;
    }
    return clv__one_out(io, out);
}

static clv_status transpose_infer(clv__op_io *io, clv__error *error) {
    const clv__conv3d_attrs *a = io->attrs;
    const clv__ints *more = &((const clv__transpose3d_attrs *)io->attrs)->output_padding;
    const int64_t *x = io->in[0].shape.dims, *weight = io->in[1].shape.dims;
    CLV_TRY(check_lists(a, error));
    if (more->n != CLV__WINDOW_DIMS)
        CLV_FAIL(error, CLV_E_VALUE, "output_padding has %d numbers, it must have 3", more->n);
    CLV_TRY(check_groups(x[1], a->groups, "input", error));
    clv__desc out = clv__f32(io->in[0].shape);
    out.shape.dims[1] = weight[1] * a->groups;
    if (clv__has_in(io, 2) && io->in[2].shape.dims[0] != out.shape.dims[1])
        CLV_FAIL(error, CLV_E_SHAPE, "bias has %lld elements, y has %lld channels",
                 (long long)io->in[2].shape.dims[0], (long long)out.shape.dims[1]);
    for (int d = 0; d < CLV__WINDOW_DIMS; d++) {
        const char *axis = clv__window_axis(CLV__WINDOW_DIMS, d);
        if (x[2 + d] < 1 || weight[2 + d] < 1)
            CLV_FAIL(error, CLV_E_SHAPE, "%s has nothing along %s", x[2 + d] < 1 ? "x" : "the kernel", axis);
        if (more->at[d] >= a->stride.at[d])
            CLV_FAIL(error, CLV_E_VALUE, "output_padding is %d, it must be below the stride %d", more->at[d],
                     a->stride.at[d]);
        const int64_t all = (x[2 + d] - 1) * a->stride.at[d] +
                            (int64_t)a->dilation.at[d] * (weight[2 + d] - 1) + 1 + more->at[d];
        out.shape.dims[2 + d] = all - 2 * (int64_t)a->padding.at[d];
        if (out.shape.dims[2 + d] < 1)
            CLV_FAIL(error, CLV_E_SHAPE, "padding %d leaves nothing of %lld along %s", a->padding.at[d],
                     (long long)all, axis);
    }
    return clv__one_out(io, out);
}

// ---- gradients --------------------------------------------------------------------------------------------

static void sum_of_pixels(const clv__node *node, clv_tensor *dy, clv_tensor **dx) {
    if (clv__wants_grad(node, 2)) dx[2] = clv_sum(dy, (int[]){0, 2, 3, 4}, 4, false);
}

static void conv3d_grad(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx) {
    clv_tensor *in[] = {clv__node_in(node, 0), clv__node_in(node, 1)};
    const void *attrs = clv__node_attrs(node);
    if (clv__wants_grad(node, 0)) dx[0] = clv__pair_node(&clv__op_conv3d_backward_input, attrs, dy, in, NULL);
    if (clv__wants_grad(node, 1))
        dx[1] = clv__pair_node(&clv__op_conv3d_backward_weight, attrs, dy, in, NULL);
    sum_of_pixels(node, dy[0], dx);
}

/** Of a gradient, as in conv2d.c, and of conv_transpose3d: what comes to it has the shape of x or of weight. */
static void backward_grad(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx) {
    const bool of_x = clv__conv3d_back(clv__node_io(node));
    clv_tensor *y = clv__node_in(node, 0), *other = clv__node_in(node, 1);
    clv_tensor *in[] = {of_x ? dy[0] : other, of_x ? other : dy[0], NULL};
    const void *attrs = clv__node_attrs(node);
    if (clv__wants_grad(node, 0)) dx[0] = clv__node_add(&clv__op_conv3d, attrs, in, 3, 1u << 2);
    if (clv__wants_grad(node, 1))
        dx[1] = clv__pair_node(of_x ? &clv__op_conv3d_backward_weight : &clv__op_conv3d_backward_input, attrs,
                               &y, in, NULL);
    sum_of_pixels(node, dy[0], dx);
}

// ---- references and cost ----------------------------------------------------------------------------------

static void conv3d_reference(const clv__ref *ref) {
    const clv__conv2d c = clv__conv3d_of(ref->io);
    clv__conv_forward(ref, &c);
}

static void back_reference(const clv__ref *ref) {
    const clv__conv2d c = clv__conv3d_of(ref->io);
    clv__conv_back(ref, &c);
}

static void weight_reference(const clv__ref *ref) {
    const clv__conv2d c = clv__conv3d_of(ref->io);
    clv__conv_weight(ref, &c);
}

static void cost(const clv__op_io *io, clv__cost *out) {
    const clv__conv2d c = clv__conv3d_of(io);
    *out = (clv__cost){2.0 * (double)c.n * (double)c.groups * (double)c.out_channels * (double)c.in_channels,
                       clv__float_bytes(io)};
    for (int d = 0; d < c.dims; d++) out->flops *= (double)c.out[d] * (double)c.kernel[d];
}

static int64_t reduction(const clv__op_io *io) {
    const clv__conv2d c = clv__conv3d_of(io);
    if (io->op == &clv__op_conv3d_backward_weight) return c.n * clv__window_product(&c.windows, c.out);
    return (clv__conv3d_back(io) ? c.out_channels : c.in_channels) *
           clv__window_product(&c.windows, c.kernel);
}

// ---- plain ------------------------------------------------------------------------------------------------

#define DHW(size) (size)[0], (size)[1], (size)[2]
static void sizes(clv__launches *list, clv__launch *launch, const clv__conv2d *c) {
    CLV__ARGS_I32(list, launch, c->n, c->groups, c->in_channels, DHW(c->in), c->out_channels, DHW(c->out),
                  DHW(c->kernel), DHW(c->stride), DHW(c->padding), DHW(c->dilation));
}

static void plain_lower(clv__launches *list, const clv__op_io *io) {
    const int64_t n = clv__numel(&io->out[0]);
    const clv__conv2d c = clv__conv3d_of(io);
    clv__launch *launch = clv__launch_items(
        list, "conv3d", clv__conv3d_back(io) ? "conv3d_backward_input_plain" : "conv3d_plain", CLV__ELEMENTS,
        n);
    CLV__ARGS(list, launch, io, "o0=T_OUT i0=T_IN i1 b", .bias = c.bias ? 2 : 1);
    sizes(list, launch, &c);
    clv__arg_i32(list, launch, c.bias);
    clv__arg_epilogue(list, launch, io);
}

/** Weights are few, their sums long: rows of dy are dealt to chunks, for more work-items and shorter loops. */
static void plain_lower_weight(clv__launches *list, const clv__op_io *io) {
    enum { TURNS = 32768, WORK_ITEMS = 16384, CHUNKS = 64 };
    const int64_t size = clv__numel(&io->out[0]);
    if (size == 0) return;
    const clv__conv2d c = clv__conv3d_of(io);
    const int64_t all = c.n * c.out[0] * c.out[1];
    int64_t chunks = clv__min64(clv__min64(all, CHUNKS), clv__div_up(WORK_ITEMS, size));
    chunks = clv__max64(clv__max64(chunks, 1), clv__div_up(all * (c.out[2] + 1), TURNS));
    const int64_t rows = clv__max64(clv__div_up(all, chunks), 1);
    chunks = clv__max64(clv__div_up(all, rows), 1);
    const clv__part parts = clv__floats(list, chunks > 1 ? chunks * size : 0);
    clv__launch *launch =
        clv__launch_items(list, "conv3d", "conv3d_backward_weight_plain", CLV__ELEMENTS, chunks * size);
    clv__conv2d_weight_tensors(list, launch, io, parts);
    sizes(list, launch, &c);
    CLV__ARGS_I32(list, launch, chunks, rows);
    if (parts.bytes) clv__conv2d_add_parts(list, parts, size, chunks);
}

// ---- samples ----------------------------------------------------------------------------------------------

// Label; x; weight; channels of y; groups; stride, padding, dilation, of conv_transpose3d output padding, too; bias.
#define THREE(...)                                                                                           \
    {                                                                                                        \
        3, {                                                                                                 \
            __VA_ARGS__                                                                                      \
        }                                                                                                    \
    }
#define CASE(text, x, weight, o, g, stride, padding, dilation, bias)                                         \
    .label = text, .in = {x, weight, CLV__DIMS(o)}, .n_in = 3, .left_out = (bias) ? 0 : 1u << 2,             \
    .attrs = &(clv__conv3d_attrs) {                                                                          \
        THREE stride, THREE padding, THREE dilation, g                                                       \
    }
#define D CLV__DIMS
static const clv__sample_row samples[] = {
    {CASE("one element", D(1, 1, 1, 1, 1), D(1, 1, 1, 1, 1), 1, 1, (1, 1, 1), (0, 0, 0), (1, 1, 1), true),
     .quick = true},
    {CASE("3x3x3, padding 1", D(2, 3, 4, 5, 7), D(4, 3, 3, 3, 3), 4, 1, (1, 1, 1), (1, 1, 1), (1, 1, 1),
          true),
     .quick = true},
    {CASE("2x3x2, no bias", D(1, 2, 3, 4, 4), D(3, 2, 2, 3, 2), 3, 1, (1, 1, 1), (0, 0, 0), (1, 1, 1), false),
     .quick = true},
    {CASE("stride 2, padding 1", D(2, 5, 5, 7, 9), D(6, 5, 3, 3, 3), 6, 1, (2, 2, 2), (1, 1, 1), (1, 1, 1),
          true),
     .quick = true},
    {CASE("groups, unlike along all", D(1, 6, 7, 8, 6), D(4, 3, 3, 2, 1), 4, 2, (2, 3, 1), (2, 0, 1),
          (1, 2, 1), true),
     .quick = true},
    {CASE("depthwise", D(2, 5, 4, 6, 17), D(5, 1, 3, 3, 3), 5, 5, (1, 1, 1), (1, 1, 1), (1, 1, 1), true)},
    {CASE("1x3x3", D(2, 4, 3, 6, 6), D(17, 4, 1, 3, 3), 17, 1, (1, 1, 1), (0, 1, 1), (1, 1, 1), true)},
    {CASE("3x1x1, dilation 2", D(2, 7, 9, 5, 5), D(6, 7, 3, 1, 1), 6, 1, (1, 1, 1), (2, 0, 0), (2, 1, 1),
          true)},
    {CASE("7x7x7, stride 2, padding 3", D(1, 3, 8, 13, 13), D(9, 3, 7, 7, 7), 9, 1, (2, 2, 2), (3, 3, 3),
          (1, 1, 1), false)},
    {CASE("channels past the tiles", D(1, 17, 5, 6, 9), D(33, 17, 3, 3, 3), 33, 1, (1, 1, 1), (1, 1, 1),
          (1, 1, 1), true)},
    {CASE("stride larger than the kernel", D(1, 2, 9, 10, 8), D(2, 2, 2, 2, 1), 2, 1, (4, 3, 2), (0, 0, 0),
          (1, 1, 1), true)},
    {CASE("all of D is padding for some", D(1, 2, 1, 4, 4), D(3, 2, 2, 3, 3), 3, 1, (1, 1, 1), (3, 1, 1),
          (1, 1, 1), true)},
    {CASE("no images", D(0, 2, 3, 3, 3), D(3, 2, 2, 2, 2), 3, 1, (1, 1, 1), (0, 0, 0), (1, 1, 1), true)},
    {CASE("no input channels", D(2, 0, 3, 3, 3), D(3, 0, 2, 2, 2), 3, 1, (1, 1, 1), (0, 0, 0), (1, 1, 1),
          true)},
    {0}};
#undef CASE
#define CASE(text, x, weight, o, g, stride, padding, dilation, more, bias)                                   \
    .label = text, .in = {x, weight, CLV__DIMS(o)}, .n_in = 3, .left_out = (bias) ? 0 : 1u << 2,             \
    .attrs = &(clv__transpose3d_attrs) {                                                                     \
        THREE stride, THREE padding, THREE dilation, g, THREE more                                           \
    }
static const clv__sample_row transpose_samples[] = {
    {CASE("2x2x2, stride 2, as in U-Net", D(2, 5, 3, 4, 5), D(5, 3, 2, 2, 2), 3, 1, (2, 2, 2), (0, 0, 0),
          (1, 1, 1), (0, 0, 0), true),
     .quick = true},
    {CASE("3x3x3, stride 2, padding 1, output padding 1", D(1, 4, 3, 4, 3), D(4, 6, 3, 3, 3), 6, 1, (2, 2, 2),
          (1, 1, 1), (1, 1, 1), (1, 1, 1), true),
     .quick = true},
    {CASE("groups, unlike along all, no bias", D(2, 4, 3, 4, 5), D(4, 3, 2, 1, 3), 6, 2, (3, 1, 2), (1, 0, 2),
          (1, 1, 2), (2, 0, 0), false),
     .quick = true},
    {CASE("channels past the tiles", D(1, 33, 4, 5, 6), D(33, 17, 3, 3, 3), 17, 1, (1, 1, 1), (1, 1, 1),
          (1, 1, 1), (0, 0, 0), true)},
    {CASE("stride larger than the kernel", D(1, 2, 2, 3, 3), D(2, 2, 1, 2, 1), 2, 1, (3, 3, 2), (0, 0, 0),
          (1, 1, 1), (2, 1, 0), true)},
    {CASE("no images", D(0, 2, 3, 3, 3), D(2, 3, 2, 2, 2), 3, 1, (1, 1, 1), (0, 0, 0), (1, 1, 1), (0, 0, 0),
          true)},
    {0}};
#undef CASE
#undef D

// ---- in parts ---------------------------------------------------------------------------------------------

/** Along the images, or, where channels are in one group, along the output channels. */
static bool split(const clv__op_io *io, int i, clv__split *out) {
    const int outputs = clv__conv3d_back(io) ? 1 : 0; // the dimension of weight
    if (i == 0) {
        out->in[0] = out->out[0] = 0;
        out->length = io->in[0].shape.dims[0];
    } else if (i == 1 && ((const clv__conv3d_attrs *)io->attrs)->groups == 1) {
        out->in[1] = (int8_t)outputs;
        if (clv__has_in(io, 2)) out->in[2] = 0;
        out->out[0] = 1;
        out->length = io->in[1].shape.dims[outputs];
    }
    return i < 2;
}

// ---- the descriptors --------------------------------------------------------------------------------------

static const clv__variant variants[] = {
    {.name = "plain", .lower = plain_lower},
    {.name = "planes",
     .supports = clv__conv3d_planes_supports,
     .rank = clv__conv3d_planes_rank,
     .lower = clv__conv3d_planes_lower},
    {0},
};
static const clv__variant weight_variants[] = {
    {.name = "plain", .lower = plain_lower_weight},
    {.name = "planes",
     .supports = clv__conv3d_planes_supports,
     .rank = clv__conv3d_planes_rank,
     .lower = clv__conv3d_planes_weight},
    {0},
};

static clv_tensor *build(const clv__call *call) {
    clv__conv3d_attrs attrs = *(const clv__conv3d_attrs *)call->attrs;
    if (!clv__dhw(call, "stride", &attrs.stride) || !clv__dhw(call, "padding", &attrs.padding) ||
        !clv__dhw(call, "dilation", &attrs.dilation))
        return NULL;
    return clv__node_add(call->op, &attrs, call->in, 3, 1u << 2);
}

static clv_tensor *build_transpose(const clv__call *call) {
    clv__transpose3d_attrs attrs = *(const clv__transpose3d_attrs *)call->attrs;
    clv_tensor *x = call->in[0];
    if (!clv__dhw(call, "stride", &attrs.stride) || !clv__dhw(call, "padding", &attrs.padding) ||
        !clv__dhw(call, "dilation", &attrs.dilation) ||
        !clv__dhw(call, "output_padding", &attrs.output_padding))
        return NULL;
    for (int d = 0; d < CLV__WINDOW_DIMS && clv_tensor_shape(x).rank == 5; d++)
        x = clv__conv_extended(x, 2 + d, attrs.stride.at[d], attrs.dilation.at[d],
                               &attrs.output_padding.at[d]);
    return clv__node_add(call->op, &attrs, (clv_tensor *[]){x, call->in[1], call->in[2]}, 3, 1u << 2);
}

#define SIZE(member) CLV__ATTRIBUTE(LIST, clv__conv3d_attrs, member, "1"), CLV__POSITIVE_SIZE
#define PADDING CLV__AT_LEAST(0), CLV__AT_MOST(1 << 20)
#define GROUPS                                                                                               \
    { CLV__ATTRIBUTE(INT, clv__conv3d_attrs, groups, "1"), CLV__AT_LEAST(1) }
#define COMMON .cost = cost, .reduction = reduction
#define OF_IMAGES .epilogue = true, .channels = 1, .half_in = 1, .half_out = 1, .variants = variants, COMMON
CLV__OP(conv3d) = {
    .name = "conv3d", // weight and bias are parameters: f32
    .inputs = CLV__INPUTS({"x", "f32[N,C,D,H,W]"}, {"weight", "f32[O,_,KD,KH,KW]"}, {"bias", "f32[O]?"}),
    .attributes = CLV__ATTRIBUTES({SIZE(stride)},
                                  {CLV__ATTRIBUTE(LIST, clv__conv3d_attrs, padding, "0"), PADDING},
                                  {SIZE(dilation)}, GROUPS),
    .outputs = CLV__OUTPUTS({"y", "f32[N,O,_,_,_]"}),
    .autocast = CLV__CAST_HALF,
    .build = build,
    .infer = infer,
    .grad = CLV__TRAINS(conv3d_grad),
    .attrs_bytes = sizeof(clv__conv3d_attrs),
    .samples = CLV__TRAINS(samples),
    .split = split,
    .reference = conv3d_reference,
    OF_IMAGES};

CLV__OP(conv_transpose3d) = {
    .name = "conv_transpose3d",
    .inputs = CLV__INPUTS({"x", "f32[N,C,D,H,W]"}, {"weight", "f32[C,_,KD,KH,KW]"}, {"bias", "f32[_]?"}),
    .attributes = CLV__ATTRIBUTES({SIZE(stride)},
                                  {CLV__ATTRIBUTE(LIST, clv__conv3d_attrs, padding, "0"), PADDING},
                                  {CLV__ATTRIBUTE(LIST, clv__transpose3d_attrs, output_padding, "0"),
                                   PADDING},
                                  {SIZE(dilation)}, GROUPS),
    .outputs = CLV__OUTPUTS({"y", "f32[N,_,_,_,_]"}),
    .autocast = CLV__CAST_HALF,
    .build = build_transpose,
    .infer = transpose_infer,
    .grad = CLV__TRAINS(backward_grad),
    .attrs_bytes = sizeof(clv__transpose3d_attrs),
    .samples = CLV__TRAINS(transpose_samples),
    .split = split,
    .reference = back_reference,
    OF_IMAGES};

#define GRADIENT(what, takes_)                                                                               \
    .name = "conv3d_backward_" what, .gradient_of = &clv__op_conv3d, CLV__PAIR(takes_),                      \
    .attrs_bytes = CLV__ATTRS_AND_SHAPE(clv__conv3d_attrs), .grad = CLV__TRAINS(backward_grad)
CLV__TRAIN_OP(conv3d_backward_input) = {GRADIENT("input", "d0 i1 s0 g0"), .reference = back_reference,
                                        OF_IMAGES};
CLV__TRAIN_OP(conv3d_backward_weight) = {GRADIENT("weight", "d0 i0 s1 g1"),
                                         .half_in = 3, // the gradient is a parameter's: f32
                                         .variants = weight_variants, .reference = weight_reference, COMMON};
