// SPDX-License-Identifier: Apache-2.0
// Convolutions along one dimension: those of images of one row.
#include "graph/signature.h"
#include "ops/convolution/conv2d.h"

/** [N,C,L] as [N,C,1,L], and back. What is no such tensor stays, and conv2d says so. */
static clv_tensor *to_rows(clv_tensor *x) {
    const clv_shape s = clv_tensor_shape(x);
    return s.rank == 3 ? clv_reshape(x, CLV_SHAPE(s.dims[0], s.dims[1], 1, s.dims[2])) : x;
}

static clv_tensor *from_rows(clv_tensor *y) {
    const clv_shape s = clv_tensor_shape(y);
    return y ? clv_reshape(y, CLV_SHAPE(s.dims[0], s.dims[1], s.dims[3])) : NULL;
}

/** Both tensors have three dimensions, or the graph has the mistake. */
static bool are_rows(const char *op, clv_tensor *x, clv_tensor *weight) {
    const int ranks[] = {clv_tensor_shape(x).rank, clv_tensor_shape(weight).rank};
    if (!x || !weight) return false;
    for (int i = 0; i < 2; i++)
        if (ranks[i] != 3) {
            clv__graph_fail(clv__tensor_graph(x), CLV_E_SHAPE, "%s: %s has %d dimensions, it must have 3", op,
                            i ? "weight" : "x", ranks[i]);
            return false;
        }
    return true;
}

clv_tensor *clv_conv1d(clv_tensor *x, clv_tensor *weight, clv_tensor *bias, const clv_conv1d_config *config) {
    static const clv_conv1d_config defaults;
    if (!config) config = &defaults;
    if (!are_rows("conv1d", x, weight)) return NULL;
    const clv_conv2d_config rows = {.stride = {1, config->stride ? config->stride : 1},
                                    .padding = {0, config->padding},
                                    .dilation = {1, config->dilation ? config->dilation : 1},
                                    .groups = config->groups};
    if (config->padding < 0)
        return clv__graph_fail(clv__tensor_graph(x), CLV_E_VALUE,
                               "conv1d: padding is %d, it must be at least 0", config->padding);
    return from_rows(clv_conv2d(to_rows(x), to_rows(weight), bias, &rows));
}

clv_tensor *clv_conv_transpose1d(clv_tensor *x, clv_tensor *weight, clv_tensor *bias,
                                 const clv_conv_transpose1d_config *config) {
    static const clv_conv_transpose1d_config defaults;
    if (!config) config = &defaults;
    if (!are_rows("conv_transpose1d", x, weight)) return NULL;
    const clv_conv_transpose2d_config rows = {.stride = {1, config->stride ? config->stride : 1},
                                              .padding = {0, config->padding},
                                              .output_padding = {0, config->output_padding},
                                              .dilation = {1, config->dilation ? config->dilation : 1},
                                              .groups = config->groups};
    if (config->padding < 0 || config->output_padding < 0)
        return clv__graph_fail(
            clv__tensor_graph(x), CLV_E_VALUE,
            "conv_transpose1d: padding is %d and output_padding %d, they must be at least 0", config->padding,
            config->output_padding);
    return from_rows(clv_conv_transpose2d(to_rows(x), to_rows(weight), bias, &rows));
}

// ---- composites, by name ----------------------------------------------------------------------------------

typedef struct conv1d_call {
    int stride, padding, dilation, groups, output_padding;
} conv1d_call;

static clv_tensor *build_conv1d(const clv__call *call) {
    const conv1d_call *a = call->attrs;
    const clv_conv1d_config config = {
        .stride = a->stride, .padding = a->padding, .dilation = a->dilation, .groups = a->groups};
    return clv_conv1d(call->in[0], call->in[1], call->in[2], &config);
}

static clv_tensor *build_conv_transpose1d(const clv__call *call) {
    const conv1d_call *a = call->attrs;
    const clv_conv_transpose1d_config config = {.stride = a->stride,
                                                .padding = a->padding,
                                                .output_padding = a->output_padding,
                                                .dilation = a->dilation,
                                                .groups = a->groups};
    return clv_conv_transpose1d(call->in[0], call->in[1], call->in[2], &config);
}

// N, groups, channels of x in a group, L, channels of y in a group, K, stride, padding, dilation, output padding. All weights are [4,3,K]
#define CASE(text, n, g, ic, l, oc, k, s, p, d, m)                                                           \
    .label = text, .attrs = &(conv1d_call){s, p, d, g, m}, .n_in = 3,                                        \
    .in = {CLV__DIMS(n, (g) * (ic), l), CLV__DIMS(4, 3, k), CLV__DIMS((g) * (oc))}
static const clv__sample_row conv1d_samples[] = {
    {CASE("kernel 3", 2, 1, 3, 9, 4, 3, 1, 1, 1, 0), .quick = true},
    {CASE("stride 2, dilation 2, groups", 1, 2, 3, 19, 2, 2, 2, 1, 2, 0)},
    {0}};
static const clv__sample_row conv_transpose1d_samples[] = {
    {CASE("kernel 3", 2, 1, 4, 9, 3, 3, 1, 1, 1, 0), .quick = true},
    {CASE("stride 2, output padding 1, groups", 1, 2, 2, 9, 3, 3, 2, 1, 1, 1)},
    {0}};
#undef CASE

#define NUMBER(member, text) CLV__ATTRIBUTE(INT, conv1d_call, member, text)
#define COMMON                                                                                               \
    .outputs = CLV__OUTPUTS({"y", "f32[N,_,_]"}), .attributes_of_call = true,                                \
    .attrs_bytes = sizeof(conv1d_call)
const clv__op clv__op_conv1d = {
    .name = "conv1d",
    .inputs = CLV__INPUTS({"x", "f32[N,C,L]"}, {"weight", "f32[O,_,K]"}, {"bias", "f32[O]?"}),
    .attributes =
        CLV__ATTRIBUTES({NUMBER(stride, "1"), CLV__POSITIVE_SIZE}, {NUMBER(padding, "0"), CLV__AT_LEAST(0)},
                        {NUMBER(dilation, "1"), CLV__POSITIVE_SIZE}, {NUMBER(groups, "1"), CLV__AT_LEAST(1)}),
    .samples = CLV__TRAINS(conv1d_samples),
    .build = build_conv1d,
    COMMON};

const clv__op clv__op_conv_transpose1d = {
    .name = "conv_transpose1d",
    .inputs = CLV__INPUTS({"x", "f32[N,C,L]"}, {"weight", "f32[C,_,K]"}, {"bias", "f32[_]?"}),
    .attributes =
        CLV__ATTRIBUTES({NUMBER(stride, "1"), CLV__POSITIVE_SIZE}, {NUMBER(padding, "0"), CLV__AT_LEAST(0)},
                        {NUMBER(output_padding, "0"), CLV__AT_LEAST(0)},
                        {NUMBER(dilation, "1"), CLV__POSITIVE_SIZE}, {NUMBER(groups, "1"), CLV__AT_LEAST(1)}),
    .samples = CLV__TRAINS(conv_transpose1d_samples),
    .build = build_conv_transpose1d,
    COMMON};
