// SPDX-License-Identifier: Apache-2.0
// Pools of one and of three dimensions, made of those of images: a row is an image of one row. A window of three dimensions is one of H and W
// in each plane, and then one of D over planes as rows. That is exact for the largest, whose first in this order is the first in memory,
// and for what a mean is divided by, which is a product of one number for each dimension.
#include "graph/signature.h"
#include "ops/pool/pool.h"

typedef clv_tensor *pool2d(clv_tensor *x, const clv_pool2d_config *config);

static int none_is_negative(int padding) {
    return padding ? padding : -1;
}

static clv_tensor *reshaped(clv_tensor *x, int64_t N, int64_t C, int64_t H, int64_t W) {
    return clv_reshape(x, CLV_SHAPE(N, C, H, W));
}

typedef struct pool1d_call {
    int kernel, stride, padding, dilation, ceil_mode, exclude_padding;
} pool1d_call;

static clv_tensor *pool1d(const clv__call *call, pool2d *pool) {
    const pool1d_call *a = call->attrs;
    const clv_shape s = clv_tensor_shape(call->in[0]);
    const clv_pool2d_config rows = {.kernel = {1, a->kernel},
                                    .stride = {1, a->stride},
                                    .padding = {0, a->padding},
                                    .dilation = {1, a->dilation},
                                    .ceil_mode = a->ceil_mode,
                                    .exclude_padding = a->exclude_padding};
    clv_tensor *y = pool(reshaped(call->in[0], s.dims[0], s.dims[1], 1, s.dims[2]), &rows);
    return clv_reshape(y, CLV_SHAPE(s.dims[0], s.dims[1], clv_tensor_shape(y).dims[3]));
}

static clv_tensor *build_max_pool1d(const clv__call *call) {
    return pool1d(call, clv_max_pool2d);
}

static clv_tensor *build_avg_pool1d(const clv__call *call) {
    return pool1d(call, clv_avg_pool2d);
}

typedef struct pool3d_call {
    clv__ints kernel, stride, padding, dilation;
    int ceil_mode, exclude_padding;
} pool3d_call;

static clv_tensor *pool3d(const clv__call *call, pool2d *pool) {
    pool3d_call a = *(const pool3d_call *)call->attrs;
    const clv_shape s = clv_tensor_shape(call->in[0]);
    if (!clv__dhw(call, "kernel", &a.kernel) || !clv__dhw(call, "stride", &a.stride) ||
        !clv__dhw(call, "padding", &a.padding) || (a.dilation.n && !clv__dhw(call, "dilation", &a.dilation)))
        return NULL;
    const clv_pool2d_config planes = {.kernel = {a.kernel.at[1], a.kernel.at[2]},
                                      .stride = {a.stride.at[1], a.stride.at[2]},
                                      .padding = {a.padding.at[1], none_is_negative(a.padding.at[2])},
                                      .dilation = {a.dilation.at[1], a.dilation.at[2]},
                                      .ceil_mode = a.ceil_mode,
                                      .exclude_padding = a.exclude_padding};
    const clv_pool2d_config depth = {.kernel = {a.kernel.at[0], 1},
                                     .stride = {a.stride.at[0], 1},
                                     .padding = {a.padding.at[0], -1},
                                     .dilation = {a.dilation.at[0], 1},
                                     .ceil_mode = a.ceil_mode,
                                     .exclude_padding = a.exclude_padding};
    clv_tensor *y =
        pool(reshaped(call->in[0], s.dims[0], s.dims[1] * s.dims[2], s.dims[3], s.dims[4]), &planes);
    const int64_t H = clv_tensor_shape(y).dims[2], W = clv_tensor_shape(y).dims[3];
    y = pool(reshaped(y, s.dims[0], s.dims[1], s.dims[2], H * W), &depth);
    return clv_reshape(y, CLV_SHAPE(s.dims[0], s.dims[1], clv_tensor_shape(y).dims[2], H, W));
}

static clv_tensor *build_max_pool3d(const clv__call *call) {
    return pool3d(call, clv_max_pool2d);
}

static clv_tensor *build_avg_pool3d(const clv__call *call) {
    return pool3d(call, clv_avg_pool2d);
}

#define SAME(k)                                                                                              \
    {                                                                                                        \
        3, {                                                                                                 \
            k, k, k                                                                                          \
        }                                                                                                    \
    }
static const clv__sample_row samples1d[] = {
    {.label = "kernel 3, stride 2",
     .quick = true,
     .in = {CLV__DIMS(2, 3, 11)},
     .attrs = &(pool1d_call){3, 2, 1, 1, 0, 0}},
    {.label = "kernel 2, ceil", .in = {CLV__DIMS(1, 2, 7)}, .attrs = &(pool1d_call){2, 2, 0, 1, 1, 1}},
    {0}};
static const clv__sample_row samples3d[] = {
    {.label = "2x2x2",
     .quick = true,
     .in = {CLV__DIMS(2, 3, 4, 6, 5)},
     .attrs = &(pool3d_call){SAME(2), SAME(2), SAME(0), SAME(1), 0, 0}},
    {.label = "3x3x3, stride 2, padding 1, ceil",
     .in = {CLV__DIMS(1, 2, 5, 6, 8)},
     .attrs = &(pool3d_call){SAME(3), SAME(2), SAME(1), SAME(1), 1, 1}},
    {0}};

#define COMMON(type, n) .attributes_of_call = true, .attrs_bytes = sizeof(type), .samples = CLV__TRAINS(n)
#define NUMBER(member, text, least) CLV__ATTRIBUTE(INT, pool1d_call, member, text), CLV__AT_LEAST(least)
#define NUMBERS(member, text, least) CLV__ATTRIBUTE(LIST, pool3d_call, member, text), CLV__AT_LEAST(least)
#define YES(type, member) CLV__ATTRIBUTE(BOOL, type, member, "0")
#define FIRST_1D                                                                                             \
    {NUMBER(kernel, NULL, 1)}, {NUMBER(stride, "kernel", 1)}, {                                              \
        NUMBER(padding, "0", 0)                                                                              \
    }
#define FIRST_3D                                                                                             \
    {NUMBERS(kernel, NULL, 1)}, {NUMBERS(stride, "kernel", 1)}, {                                            \
        NUMBERS(padding, "0", 0)                                                                             \
    }
CLV__COMPOSITE(max_pool1d) = {
    .name = "max_pool1d",
    .inputs = CLV__INPUTS({"x", "f32[N,C,L]"}),
    .outputs = CLV__OUTPUTS({"y", "f32[N,C,_]"}),
    .attributes = CLV__ATTRIBUTES(FIRST_1D, {NUMBER(dilation, "1", 1)}, {YES(pool1d_call, ceil_mode)}),
    .build = build_max_pool1d,
    COMMON(pool1d_call, samples1d)};
CLV__COMPOSITE(avg_pool1d) = {.name = "avg_pool1d",
                              .inputs = CLV__INPUTS({"x", "f32[N,C,L]"}),
                              .outputs = CLV__OUTPUTS({"y", "f32[N,C,_]"}),
                              .attributes = CLV__ATTRIBUTES(FIRST_1D, {YES(pool1d_call, ceil_mode)},
                                                            {YES(pool1d_call, exclude_padding)}),
                              .build = build_avg_pool1d,
                              COMMON(pool1d_call, samples1d)};
CLV__COMPOSITE(max_pool3d) = {
    .name = "max_pool3d",
    .inputs = CLV__INPUTS({"x", "f32[N,C,D,H,W]"}),
    .outputs = CLV__OUTPUTS({"y", "f32[N,C,_,_,_]"}),
    .attributes = CLV__ATTRIBUTES(FIRST_3D, {NUMBERS(dilation, "1", 1)}, {YES(pool3d_call, ceil_mode)}),
    .build = build_max_pool3d,
    COMMON(pool3d_call, samples3d)};
CLV__COMPOSITE(avg_pool3d) = {.name = "avg_pool3d",
                              .inputs = CLV__INPUTS({"x", "f32[N,C,D,H,W]"}),
                              .outputs = CLV__OUTPUTS({"y", "f32[N,C,_,_,_]"}),
                              .attributes = CLV__ATTRIBUTES(FIRST_3D, {YES(pool3d_call, ceil_mode)},
                                                            {YES(pool3d_call, exclude_padding)}),
                              .build = build_avg_pool3d,
                              COMMON(pool3d_call, samples3d)};
