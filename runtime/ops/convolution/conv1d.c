// SPDX-License-Identifier: Apache-2.0
// Convolutions along one dimension: those of images of one row.
#include "graph/signature.h"
#include "ops/convolution/conv2d.h"

/** [N,C,L] as [N,C,1,L], and back. */
static clv_tensor *to_rows(clv_tensor *x) {
    const clv_shape s = clv_tensor_shape(x);
    return clv_reshape(x, CLV_SHAPE(s.dims[0], s.dims[1], 1, s.dims[2]));
}

static clv_tensor *from_rows(clv_tensor *y) {
    const clv_shape s = clv_tensor_shape(y);
    return y ? clv_reshape(y, CLV_SHAPE(s.dims[0], s.dims[1], s.dims[3])) : NULL;
}

typedef struct conv1d_call {
    int stride, padding, dilation, groups, output_padding;
} conv1d_call;

static clv_tensor *build_conv1d(const clv__call *call) {
    const conv1d_call *a = call->attrs;
    const clv_conv2d_config rows = {.stride = {1, a->stride},
                                    .padding = {0, a->padding},
                                    .dilation = {1, a->dilation},
                                    .groups = a->groups};
    return from_rows(clv_conv2d(to_rows(call->in[0]), to_rows(call->in[1]), call->in[2], &rows));
}

static clv_tensor *build_conv_transpose1d(const clv__call *call) {
    const conv1d_call *a = call->attrs;
    const clv_conv_transpose2d_config rows = {.stride = {1, a->stride},
                                              .padding = {0, a->padding},
                                              .output_padding = {0, a->output_padding},
                                              .dilation = {1, a->dilation},
                                              .groups = a->groups};
    return from_rows(clv_conv_transpose2d(to_rows(call->in[0]), to_rows(call->in[1]), call->in[2], &rows));
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
CLV__COMPOSITE(conv1d) = {
    .name = "conv1d",
    .inputs = CLV__INPUTS({"x", "f32[N,C,L]"}, {"weight", "f32[O,_,K]"}, {"bias", "f32[O]?"}),
    .attributes = CLV__ATTRIBUTES({NUMBER(stride, "1"), CLV__POSITIVE_SIZE},
                                  {NUMBER(padding, "0"), CLV__AT_LEAST(0)},
                                  {NUMBER(dilation, "1"), CLV__POSITIVE_SIZE},
                                  {NUMBER(groups, "1"), CLV__AT_LEAST(1)}),
    .samples = CLV__TRAINS(conv1d_samples),
    .build = build_conv1d,
    COMMON};

CLV__COMPOSITE(conv_transpose1d) = {
    .name = "conv_transpose1d",
    .inputs = CLV__INPUTS({"x", "f32[N,C,L]"}, {"weight", "f32[C,_,K]"}, {"bias", "f32[_]?"}),
    .attributes = CLV__ATTRIBUTES({NUMBER(stride, "1"), CLV__POSITIVE_SIZE},
                                  {NUMBER(padding, "0"), CLV__AT_LEAST(0)},
                                  {NUMBER(output_padding, "0"), CLV__AT_LEAST(0)},
                                  {NUMBER(dilation, "1"), CLV__POSITIVE_SIZE},
                                  {NUMBER(groups, "1"), CLV__AT_LEAST(1)}),
    .samples = CLV__TRAINS(conv_transpose1d_samples),
    .build = build_conv_transpose1d,
    COMMON};
