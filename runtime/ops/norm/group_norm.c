// SPDX-License-Identifier: Apache-2.0
// Normalisations made of other ops: over groups of channels, by layer_norm's kernels, and over neighbouring channels, by avg_pool2d's.
#include "cleave/ops.h"
#include "graph/signature.h"
#include "ops/lower.h"

typedef struct group_call {
    int64_t groups;
    float eps;
} group_call;

/** [C] as what broadcasts to x's channels. */
static clv_tensor *of_channels(clv_tensor *v, int rank) {
    clv_shape shape = {rank - 1, {clv_tensor_shape(v).dims[0]}};
    for (int d = 1; d < rank - 1; d++) shape.dims[d] = 1;
    return v ? clv_reshape(v, shape) : NULL;
}

static clv_tensor *normalised(const clv__call *call, int64_t groups) {
    clv_tensor *x = call->in[0], *weight = call->in[1], *bias = call->in[2];
    const float eps = ((const group_call *)call->attrs)->eps;
    const clv_shape shape = clv_tensor_shape(x);
    const int64_t N = shape.dims[0], rest = clv__dims_product(&shape, 1, shape.rank) / groups;
    clv_tensor *rows = clv_layer_norm(clv_reshape(x, CLV_SHAPE(N, groups, rest)), NULL, NULL, eps);
    clv_tensor *y = clv_reshape(rows, shape);
    if (weight) y = clv_mul(y, of_channels(weight, shape.rank));
    return bias ? clv_add(y, of_channels(bias, shape.rank)) : y;
}

static clv_tensor *build_group(const clv__call *call) {
    const int64_t groups = ((const group_call *)call->attrs)->groups,
                  C = clv_tensor_shape(call->in[0]).dims[1];
    if (C % groups)
        return clv__graph_fail(call->graph, CLV_E_VALUE,
                               "group_norm: %lld channels cannot be divided into %lld groups", (long long)C,
                               (long long)groups);
    return normalised(call, groups);
}

#define AFFINE                                                                                               \
    {"x", "f32[N,C,*]"}, {"weight", "f32[C]?"}, {                                                            \
        "bias", "f32[C]?"                                                                                    \
    }
#define EPS                                                                                                  \
    { CLV__ATTRIBUTE(NUMBER, group_call, eps, "1e-5"), CLV__ABOVE(0) }
CLV__COMPOSITE(group_norm) = {
    .name = "group_norm",
    .inputs = CLV__INPUTS(AFFINE),
    .attributes = CLV__ATTRIBUTES({CLV__ATTRIBUTE(INT, group_call, groups, NULL), CLV__AT_LEAST(1)}, EPS),
    .outputs = CLV__OUTPUTS({"y", "like x"}),
    CLV__SAMPLES({.label = "images",
                  .quick = true,
                  .in = {CLV__DIMS(2, 6, 3, 5), CLV__DIMS(6), CLV__DIMS(6)},
                  .n_in = 3,
                  .attrs = &(group_call){3, 1e-5F}},
                 {.label = "[N,C], no weight", .in = {CLV__DIMS(3, 8)}, .attrs = &(group_call){2, 1e-5F}}),
    CLV__CALL(group_call, build_group)};

static clv_tensor *build_instance(const clv__call *call) {
    const clv_shape shape = clv_tensor_shape(call->in[0]);
    if (shape.dims[1] < 1 || clv__dims_product(&shape, 2, shape.rank) < 2)
        return clv__graph_fail(call->graph, CLV_E_SHAPE,
                               "instance_norm: a channel of a sample needs more than one value");
    return normalised(call, shape.dims[1]);
}

CLV__COMPOSITE(instance_norm) = {.name = "instance_norm",
                                 .inputs = CLV__INPUTS(AFFINE),
                                 .attributes = CLV__ATTRIBUTES(EPS),
                                 .outputs = CLV__OUTPUTS({"y", "like x"}),
                                 CLV__SAMPLES({.label = "images",
                                               .quick = true,
                                               .in = {CLV__DIMS(2, 3, 4, 5), CLV__DIMS(3), CLV__DIMS(3)},
                                               .n_in = 3,
                                               .attrs = &(group_call){.eps = 1e-5F}}),
                                 CLV__CALL(group_call, build_instance)};

// ---- neighbouring channels ------------------------------------------------------------------------------------------

typedef struct response_call {
    int size;
    float alpha, beta, k;
} response_call;

static clv_tensor *build_response(const clv__call *call) {
    const response_call *a = call->attrs;
    const int size = a->size;
    clv_tensor *x = call->in[0];
    const clv_shape shape = clv_tensor_shape(x);
    const int64_t N = shape.dims[0], C = shape.dims[1], S = clv__dims_product(&shape, 2, shape.rank);
    clv_graph *graph = call->graph;
    const int64_t before = size / 2, after = (size - 1) / 2;
    clv_tensor *parts[] = {clv_full(graph, CLV_DTYPE_F32, CLV_SHAPE(N, 1, before, S), 0),
                           clv_reshape(clv_square(x), CLV_SHAPE(N, 1, C, S)),
                           clv_full(graph, CLV_DTYPE_F32, CLV_SHAPE(N, 1, after, S), 0)};
    clv_tensor *padded = size == 1 ? parts[1] : clv_concat(parts + !before, 3 - !before - !after, 2);
    clv_tensor *mean = clv_avg_pool2d(padded, &(clv_pool2d_config){.kernel = {size, 1}, .stride = {1, 1}});
    clv_tensor *scale = clv_add_scalar(clv_mul_scalar(clv_reshape(mean, shape), a->alpha), a->k);
    return clv_mul(x, clv_pow_scalar(scale, -a->beta));
}

CLV__COMPOSITE(local_response_norm) = {
    .name = "local_response_norm",
    .inputs = CLV__INPUTS({"x", "f32[N,C,*]"}),
    .attributes = CLV__ATTRIBUTES({CLV__ATTRIBUTE(INT, response_call, size, NULL), CLV__POSITIVE_SIZE},
                                  {CLV__ATTRIBUTE(NUMBER, response_call, alpha, "1e-4"), CLV__NOT_NAN},
                                  {CLV__ATTRIBUTE(NUMBER, response_call, beta, "0.75"), CLV__NOT_NAN},
                                  {CLV__ATTRIBUTE(NUMBER, response_call, k, "1"), CLV__NOT_NAN}),
    .outputs = CLV__OUTPUTS({"y", "like x"}),
    CLV__SAMPLES({.label = "5 of 7 channels",
                  .quick = true,
                  .in = {CLV__DIMS(2, 7, 3, 2)},
                  .attrs = &(response_call){5, 0.5F, 0.75F, 1}},
                 {.label = "2 of 3 channels",
                  .in = {CLV__DIMS(2, 3, 4)},
                  .attrs = &(response_call){2, 0.5F, 0.5F, 2}}),
    CLV__CALL(response_call, build_response)};
