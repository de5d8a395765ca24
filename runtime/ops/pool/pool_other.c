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

/** Has x so many dimensions, and is there a configuration? Else the graph has the mistake. */
static bool is_possible(const char *op, clv_tensor *x, const void *config, int rank) {
    if (!x) return false;
    const int is = clv_tensor_shape(x).rank;
    if (!config) clv__graph_fail(clv__tensor_graph(x), CLV_E_VALUE, "%s: config is NULL", op);
    if (config && is != rank)
        clv__graph_fail(clv__tensor_graph(x), CLV_E_SHAPE, "%s: x has %d dimensions, it must have %d", op, is,
                        rank);
    return config && is == rank;
}

static clv_tensor *reshaped(clv_tensor *x, int64_t N, int64_t C, int64_t H, int64_t W) {
    return x ? clv_reshape(x, CLV_SHAPE(N, C, H, W)) : NULL;
}

static clv_tensor *pool1d(const char *op, pool2d *pool, clv_tensor *x, const clv_pool1d_config *config) {
    if (!is_possible(op, x, config, 3)) return NULL;
    const clv_shape s = clv_tensor_shape(x);
    const clv_pool2d_config rows = {.kernel = {1, config->kernel},
                                    .stride = {1, config->stride ? config->stride : config->kernel},
                                    .padding = {0, config->padding},
                                    .dilation = {1, config->dilation ? config->dilation : 1},
                                    .ceil_mode = config->ceil_mode,
                                    .exclude_padding = config->exclude_padding};
    if (config->kernel < 1 || config->padding < 0)
        return clv__graph_fail(clv__tensor_graph(x), CLV_E_VALUE,
                               "%s: kernel is %d and padding %d, they must be at least 1 and 0", op,
                               config->kernel, config->padding);
    clv_tensor *y = pool(reshaped(x, s.dims[0], s.dims[1], 1, s.dims[2]), &rows);
    return y ? clv_reshape(y, CLV_SHAPE(s.dims[0], s.dims[1], clv_tensor_shape(y).dims[3])) : NULL;
}

static clv_tensor *pool3d(const char *op, pool2d *pool, clv_tensor *x, const clv_pool3d_config *config) {
    if (!is_possible(op, x, config, 5)) return NULL;
    const clv_shape s = clv_tensor_shape(x);
    const clv__ints kernel = clv__dhw(config->kernel, 0), padding = clv__dhw_padding(config->padding),
                    dilation = clv__dhw(config->dilation, 1);
    clv__ints stride = clv__dhw(config->stride, 0);
    for (int d = 0; d < 3; d++)
        if (!stride.at[d]) stride.at[d] = kernel.at[d];
    const clv_pool2d_config planes = {.kernel = {kernel.at[1], kernel.at[2]},
                                      .stride = {stride.at[1], stride.at[2]},
                                      .padding = {padding.at[1], none_is_negative(padding.at[2])},
                                      .dilation = {dilation.at[1], dilation.at[2]},
                                      .ceil_mode = config->ceil_mode,
                                      .exclude_padding = config->exclude_padding};
    const clv_pool2d_config depth = {.kernel = {kernel.at[0], 1},
                                     .stride = {stride.at[0], 1},
                                     .padding = {padding.at[0], -1},
                                     .dilation = {dilation.at[0], 1},
                                     .ceil_mode = config->ceil_mode,
                                     .exclude_padding = config->exclude_padding};
    clv_tensor *y = pool(reshaped(x, s.dims[0], s.dims[1] * s.dims[2], s.dims[3], s.dims[4]), &planes);
    const int64_t H = clv_tensor_shape(y).dims[2], W = clv_tensor_shape(y).dims[3];
    y = y ? pool(reshaped(y, s.dims[0], s.dims[1], s.dims[2], H * W), &depth) : NULL;
    return y ? clv_reshape(y, CLV_SHAPE(s.dims[0], s.dims[1], clv_tensor_shape(y).dims[2], H, W)) : NULL;
}

clv_tensor *clv_max_pool1d(clv_tensor *x, const clv_pool1d_config *config) {
    return pool1d("max_pool1d", clv_max_pool2d, x, config);
}

clv_tensor *clv_avg_pool1d(clv_tensor *x, const clv_pool1d_config *config) {
    return pool1d("avg_pool1d", clv_avg_pool2d, x, config);
}

clv_tensor *clv_max_pool3d(clv_tensor *x, const clv_pool3d_config *config) {
    return pool3d("max_pool3d", clv_max_pool2d, x, config);
}

clv_tensor *clv_avg_pool3d(clv_tensor *x, const clv_pool3d_config *config) {
    return pool3d("avg_pool3d", clv_avg_pool2d, x, config);
}

// ---- by name --------------------------------------------------------------------------------------------------------

typedef struct pool1d_call {
    int kernel, stride, padding, dilation, ceil_mode, exclude_padding;
} pool1d_call;

static clv_pool1d_config config1d(const clv__call *call) {
    const pool1d_call *a = call->attrs;
    return (clv_pool1d_config){.kernel = a->kernel,
                               .stride = a->stride,
                               .padding = a->padding,
                               .dilation = a->dilation,
                               .ceil_mode = a->ceil_mode,
                               .exclude_padding = a->exclude_padding};
}

static clv_tensor *build_max_pool1d(const clv__call *call) {
    const clv_pool1d_config config = config1d(call);
    return clv_max_pool1d(call->in[0], &config);
}

static clv_tensor *build_avg_pool1d(const clv__call *call) {
    const clv_pool1d_config config = config1d(call);
    return clv_avg_pool1d(call->in[0], &config);
}

typedef struct pool3d_call {
    clv__ints kernel, stride, padding, dilation;
    int ceil_mode, exclude_padding;
} pool3d_call;

static clv_tensor *build_pool3d(const clv__call *call,
                                clv_tensor *(*pool)(clv_tensor *, const clv_pool3d_config *), bool dilates) {
    const pool3d_call *a = call->attrs;
    clv_pool3d_config config = {.ceil_mode = a->ceil_mode, .exclude_padding = a->exclude_padding};
    if (!clv__dhw_of_call(call, "kernel", &a->kernel, false, config.kernel) ||
        !clv__dhw_of_call(call, "stride", &a->stride, false, config.stride) ||
        !clv__dhw_of_call(call, "padding", &a->padding, true, config.padding) ||
        (dilates && !clv__dhw_of_call(call, "dilation", &a->dilation, false, config.dilation)))
        return NULL;
    return pool(call->in[0], &config);
}

static clv_tensor *build_max_pool3d(const clv__call *call) {
    return build_pool3d(call, clv_max_pool3d, true);
}

static clv_tensor *build_avg_pool3d(const clv__call *call) {
    return build_pool3d(call, clv_avg_pool3d, false);
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
const clv__op clv__op_max_pool1d = {
    .name = "max_pool1d",
    .inputs = CLV__INPUTS({"x", "f32[N,C,L]"}),
    .outputs = CLV__OUTPUTS({"y", "f32[N,C,_]"}),
    .attributes = CLV__ATTRIBUTES(FIRST_1D, {NUMBER(dilation, "1", 1)}, {YES(pool1d_call, ceil_mode)}),
    .build = build_max_pool1d,
    COMMON(pool1d_call, samples1d)};
const clv__op clv__op_avg_pool1d = {.name = "avg_pool1d",
                                    .inputs = CLV__INPUTS({"x", "f32[N,C,L]"}),
                                    .outputs = CLV__OUTPUTS({"y", "f32[N,C,_]"}),
                                    .attributes = CLV__ATTRIBUTES(FIRST_1D, {YES(pool1d_call, ceil_mode)},
                                                                  {YES(pool1d_call, exclude_padding)}),
                                    .build = build_avg_pool1d,
                                    COMMON(pool1d_call, samples1d)};
const clv__op clv__op_max_pool3d = {
    .name = "max_pool3d",
    .inputs = CLV__INPUTS({"x", "f32[N,C,D,H,W]"}),
    .outputs = CLV__OUTPUTS({"y", "f32[N,C,_,_,_]"}),
    .attributes = CLV__ATTRIBUTES(FIRST_3D, {NUMBERS(dilation, "1", 1)}, {YES(pool3d_call, ceil_mode)}),
    .build = build_max_pool3d,
    COMMON(pool3d_call, samples3d)};
const clv__op clv__op_avg_pool3d = {.name = "avg_pool3d",
                                    .inputs = CLV__INPUTS({"x", "f32[N,C,D,H,W]"}),
                                    .outputs = CLV__OUTPUTS({"y", "f32[N,C,_,_,_]"}),
                                    .attributes = CLV__ATTRIBUTES(FIRST_3D, {YES(pool3d_call, ceil_mode)},
                                                                  {YES(pool3d_call, exclude_padding)}),
                                    .build = build_avg_pool3d,
                                    COMMON(pool3d_call, samples3d)};
