// SPDX-License-Identifier: Apache-2.0
// Reductions made of sum, mean, max, argmax and cumprod.
#include <math.h>

#include "cleave/ops.h"
#include "graph/signature.h"

typedef struct moments_call {
    clv__ints axes;
    int keepdim, correction;
    float p;
} moments_call;

static const moments_call *call_of(const clv__call *call) {
    return call->attrs;
}

#define AXES                                                                                                 \
    { CLV__ATTRIBUTE(LIST, moments_call, axes, "") }
#define KEEPDIM                                                                                              \
    { CLV__ATTRIBUTE(BOOL, moments_call, keepdim, "0") }
#define CALL(...)                                                                                            \
    .attrs = &(moments_call) {                                                                               \
        __VA_ARGS__                                                                                          \
    }
#define DISTINCT .fill = {{CLV__FILL_DISTINCT, -2, 2}}

static clv_tensor *build_min(const clv__call *call) {
    const moments_call *a = call_of(call);
    return clv_neg(clv_max(clv_neg(call->in[0]), a->axes.at, a->axes.n, a->keepdim));
}

CLV__COMPOSITE(min) = {
    .name = "min",
    .inputs = CLV__INPUTS({"x", "f32"}),
    .attributes = CLV__ATTRIBUTES(AXES, KEEPDIM),
    .outputs = CLV__OUTPUTS({"y", "f32"}),
    CLV__SAMPLES({.label = "rows", .quick = true, .in = {CLV__DIMS(5, 7)}, CALL(.axes = {1, {-1}}), DISTINCT},
                 {.label = "all", .in = {CLV__DIMS(5, 7)}, DISTINCT}),
    CLV__CALL(moments_call, build_min)};

typedef struct argmin_call {
    int axis, keepdim;
} argmin_call;

static clv_tensor *build_argmin(const clv__call *call) {
    const argmin_call *a = call->attrs;
    return clv_argmax(clv_neg(call->in[0]), a->axis, a->keepdim);
}

CLV__COMPOSITE(argmin) = {.name = "argmin",
                          .inputs = CLV__INPUTS({"x", "f32"}),
                          .attributes = CLV__ATTRIBUTES({CLV__ATTRIBUTE(INT, argmin_call, axis, NULL)},
                                                        {CLV__ATTRIBUTE(BOOL, argmin_call, keepdim, "0")}),
                          .outputs = CLV__OUTPUTS({"y", "i32"}),
                          CLV__SAMPLES({.label = "rows",
                                        .quick = true,
                                        .in = {CLV__DIMS(5, 7)},
                                        .attrs = &(argmin_call){1, 0},
                                        DISTINCT,
                                        .no_gradient = true}),
                          CLV__CALL(argmin_call, build_argmin)};

static clv_tensor *build_var(const clv__call *call) {
    const moments_call *a = call_of(call);
    clv_tensor *x = call->in[0], *mean = clv_mean(x, a->axes.at, a->axes.n, true);
    const int64_t all = clv_tensor_numel(x), results = clv_tensor_numel(mean);
    const int64_t count = results ? all / results : 0;
    clv_tensor *sum = clv_sum(clv_square(clv_sub(x, mean)), a->axes.at, a->axes.n, a->keepdim);
    const int64_t over = count - a->correction; // of none PyTorch has NaN or infinity, as a division by 0
    return clv_mul_scalar(sum, over > 0 ? (float)(1.0 / (double)over) : INFINITY);
}

#define CORRECTION                                                                                           \
    { CLV__ATTRIBUTE(INT, moments_call, correction, "1") }
CLV__COMPOSITE(var) = {
    .name = "var",
    .inputs = CLV__INPUTS({"x", "f32"}),
    .attributes = CLV__ATTRIBUTES(AXES, CORRECTION, KEEPDIM),
    .outputs = CLV__OUTPUTS({"y", "f32"}),
    CLV__SAMPLES(
        {.label = "rows", .quick = true, .in = {CLV__DIMS(5, 7)}, CALL(.axes = {1, {-1}}, .correction = 1)},
        {.label = "of all, biased", .in = {CLV__DIMS(2, 3, 4)}, CALL(.keepdim = true)}),
    CLV__CALL(moments_call, build_var)};

static clv_tensor *build_std(const clv__call *call) {
    const moments_call *a = call_of(call);
    return clv_sqrt(clv_var(call->in[0], a->axes.at, a->axes.n, a->correction, a->keepdim));
}

CLV__COMPOSITE(std) = {
    .name = "std",
    .inputs = CLV__INPUTS({"x", "f32"}),
    .attributes = CLV__ATTRIBUTES(AXES, CORRECTION, KEEPDIM),
    .outputs = CLV__OUTPUTS({"y", "f32"}),
    CLV__SAMPLES(
        {.label = "rows", .quick = true, .in = {CLV__DIMS(5, 7)}, CALL(.axes = {1, {-1}}, .correction = 1)}),
    CLV__CALL(moments_call, build_std)};

/** sums^(1/p); of none 0, with a gradient of 0. */
static clv_tensor *root(clv_tensor *sums, float p) {
    clv_graph *graph = clv__tensor_graph(sums);
    clv_tensor *zero = clv_full(graph, CLV_DTYPE_F32, (clv_shape){0}, 0),
               *one = clv_full(graph, CLV_DTYPE_F32, (clv_shape){0}, 1), *none = clv_eq(sums, zero);
    sums = clv_where(none, one, sums); // before the root, which has no gradient at 0
    return clv_where(none, zero, p == 2 ? clv_sqrt(sums) : clv_pow_scalar(sums, 1 / p));
}

static clv_tensor *build_vector_norm(const clv__call *call) {
    const moments_call *a = call_of(call);
    clv_tensor *x = call->in[0];
    const float p = a->p;
    const int *axes = a->axes.at, n_axes = a->axes.n;
    const bool keepdim = a->keepdim;
    if (p == 2) return root(clv_sum(clv_square(x), axes, n_axes, keepdim), p);
    clv_tensor *size = clv_abs(x);
    if (isinf(p)) return (p > 0 ? clv_max : clv_min)(size, axes, n_axes, keepdim);
    if (p == 1) return clv_sum(size, axes, n_axes, keepdim);
    if (p == 0) {
        clv_tensor *zero = clv_full(clv__tensor_graph(x), CLV_DTYPE_F32, (clv_shape){0}, 0);
        return clv_sum(clv_cast(clv_ne(size, zero), CLV_DTYPE_F32), axes, n_axes, keepdim);
    }
    clv_tensor *sums = clv_sum(clv_pow_scalar(size, p), axes, n_axes, keepdim);
    return p > 0 ? root(sums, p) : clv_pow_scalar(sums, 1 / p);
}

CLV__COMPOSITE(vector_norm) = {
    .name = "vector_norm",
    .inputs = CLV__INPUTS({"x", "f32"}),
    .attributes = CLV__ATTRIBUTES({CLV__ATTRIBUTE(NUMBER, moments_call, p, "2"), CLV__NOT_NAN}, AXES,
                                  KEEPDIM),
    .outputs = CLV__OUTPUTS({"y", "f32"}),
    CLV__SAMPLES(
        {.label = "rows", .quick = true, .in = {CLV__DIMS(5, 7)}, CALL(.p = 2, .axes = {1, {-1}})},
        {.label = "p 3", .in = {CLV__DIMS(5, 7)}, CALL(.p = 3), DISTINCT},
        {.label = "the largest", .in = {CLV__DIMS(5, 7)}, CALL(.p = INFINITY, .axes = {1, {0}}), DISTINCT}),
    CLV__CALL(moments_call, build_vector_norm)};

static clv_tensor *build_prod(const clv__call *call) {
    const moments_call *a = call_of(call);
    clv_tensor *x = call->in[0];
    const int *axes = a->axes.at, n_axes = a->axes.n;
    const clv_shape shape = clv_tensor_shape(x);
    int order[CLV_MAX_RANK], n = 0;
    bool reduced[CLV_MAX_RANK] = {false};
    clv_shape lines = {0}, result = {0};
    int64_t count = 1;
    for (int i = 0; i < (n_axes ? n_axes : shape.rank); i++) {
        const int axis = !n_axes ? i : axes[i] < 0 ? axes[i] + shape.rank : axes[i];
        if (axis < 0 || axis >= shape.rank || reduced[axis])
            return clv__graph_fail(clv__tensor_graph(x), CLV_E_VALUE,
                                   "prod: axis %d is outside of rank %d, or named twice", axes[i],
                                   shape.rank);
        reduced[axis] = true;
    }
    for (int last = 0; last < 2; last++)
        for (int d = 0; d < shape.rank; d++) {
            if (reduced[d] != last) continue;
            order[n++] = d;
            if (last)
                count *= shape.dims[d];
            else
                lines.dims[lines.rank++] = shape.dims[d];
        }
    for (int d = 0; d < shape.rank; d++)
        if (!reduced[d] || a->keepdim) result.dims[result.rank++] = reduced[d] ? 1 : shape.dims[d];
    if (count == 0) return clv_full(clv__tensor_graph(x), CLV_DTYPE_F32, result, 1);
    if (lines.rank == CLV_MAX_RANK) return x; // nothing is reduced
    lines.dims[lines.rank++] = count;
    x = clv_reshape(clv_permute(x, order, n), lines);
    return clv_reshape(clv_slice(clv_cumprod(x, -1, false, false), -1, count - 1, 1), result);
}

CLV__COMPOSITE(prod) = {
    .name = "prod",
    .inputs = CLV__INPUTS({"x", "f32"}),
    .attributes = CLV__ATTRIBUTES(AXES, KEEPDIM),
    .outputs = CLV__OUTPUTS({"y", "f32"}),
    CLV__SAMPLES({.label = "rows", .quick = true, .in = {CLV__DIMS(5, 7)}, CALL(.axes = {1, {-1}})},
                 {.label = "two axes, with zeros",
                  .in = {CLV__DIMS(2, 3, 4)},
                  CALL(.axes = {2, {0, 2}}, .keepdim = true),
                  .fill = {{CLV__FILL_INTEGER, -2, 2}}},
                 {.label = "of all", .in = {CLV__DIMS(3, 4)}}, {.label = "a scalar", .in = {{0}}},
                 {.label = "of none", .in = {CLV__DIMS(3, 0)}, CALL(.axes = {1, {1}}), .no_gradient = true}),
    CLV__CALL(moments_call, build_prod)};
