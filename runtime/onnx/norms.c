// SPDX-License-Identifier: Apache-2.0
// Nodes that normalise, softmax, and attention.
#include <math.h>
#include <string.h>

#include "graph/graph.h"
#include "onnx/import.h"

/** Dimensions before an axis, and what is from it on as one. */
static int rows_of(const clv_shape *shape, int axis, int64_t out[CLV_MAX_RANK]) {
    int rank = 0;
    int64_t width = 1;
    for (int d = 0; d < axis; d++) out[rank++] = shape->dims[d];
    for (int d = axis; d < shape->rank; d++) width *= shape->dims[d];
    out[rank++] = width;
    return rank;
}

// ---- softmax --------------------------------------------------------------------------------------------------------

static void build_softmax(clv__onnx_use *use) {
    clv_tensor *(*const of)(clv_tensor *, int) = use->row->which ? clv_log_softmax : clv_softmax;
    const clv_shape shape = clv__onnx_shape(use, 0);
    clv_tensor *x = clv__onnx_float(use, 0);
    if (use->opset >= 13) {
        clv__onnx_give(use, 0, of(x, clv__onnx_axis(use, clv__onnx_int(use, "axis", -1), shape.rank)));
        return;
    }
    int64_t dims[2] = {1, 1}; // older ones join what is from the axis on
    const int axis = clv__onnx_axis(use, clv__onnx_int(use, "axis", 1), shape.rank);
    for (int d = 0; d < shape.rank; d++) dims[d >= axis] *= shape.dims[d];
    clv_tensor *y = of(clv__onnx_reshape(x, dims, 2), 1);
    clv__onnx_give(use, 0, clv__onnx_reshape(y, shape.dims, shape.rank));
}

// ---- normalisation --------------------------------------------------------------------------------------------------

/** In a training graph the batch's own statistics, and running ones follow. */
static void build_batch_norm(clv__onnx_use *use) {
    const bool training = clv__graph_training(use->graph);
    if (clv__onnx_int(use, "training_mode", 0) && !training) {
        clv__onnx_fail(use, CLV_E_UNSUPPORTED,
                       "training_mode in a forward pass: export the model for evaluation");
        return;
    }
    clv_tensor *y = clv_batch_norm(clv__onnx_float(use, 0), clv__onnx_float(use, 1), clv__onnx_float(use, 2),
                                   clv__onnx_buffer(use, 3), clv__onnx_buffer(use, 4), training,
                                   (float)(1 - clv__onnx_real(use, "momentum", 0.9)),
                                   (float)clv__onnx_real(use, "epsilon", 1e-5));
    clv__onnx_give(use, 0, y);
}

static int64_t numel_of(clv__onnx_use *use, int i) {
    const clv_shape shape = clv__onnx_shape(use, i);
    return clv_shape_numel(&shape);
}

static void build_layer_norm(clv__onnx_use *use) {
    const clv_shape shape = clv__onnx_shape(use, 0);
    const int axis = clv__onnx_axis(use, clv__onnx_int(use, "axis", -1), shape.rank);
    const float eps = (float)clv__onnx_real(use, "epsilon", 1e-5);
    int64_t dims[CLV_MAX_RANK], width;
    const int rank = rows_of(&shape, axis, dims);
    width = dims[rank - 1];
    clv_tensor *x = clv__onnx_reshape(clv__onnx_float(use, 0), dims, rank), *scale = clv__onnx_float(use, 1),
               *bias = clv__onnx_float(use, 2), *y;
    if (numel_of(use, 1) == width && (!bias || numel_of(use, 2) == width)) {
        y = clv_layer_norm(x, clv__onnx_reshape(scale, &width, 1),
                           bias ? clv__onnx_reshape(bias, &width, 1) : NULL, eps);
        y = clv__onnx_reshape(y, shape.dims, shape.rank);
    } else {
        y = clv__onnx_reshape(clv_layer_norm(x, NULL, NULL, eps), shape.dims, shape.rank);
        y = clv_mul(y, scale);
        if (bias) y = clv_add(y, bias);
    }
    clv__onnx_give(use, 0, y);
    if (use->n_out < 2) return;
    const int last = rank - 1;
    int64_t told[CLV_MAX_RANK];
    for (int d = 0; d < shape.rank; d++) told[d] = d < axis ? shape.dims[d] : 1;
    clv_tensor *mean = clv_mean(x, &last, 1, true),
               *var = clv_mean(clv_square(clv_sub(x, mean)), &last, 1, true);
    clv_tensor *inverse = clv_div(clv__onnx_scalar(use, 1, true), clv_sqrt(clv_add_scalar(var, eps)));
    clv__onnx_give(use, 1, clv__onnx_reshape(mean, told, shape.rank));
    clv__onnx_give(use, 2, clv__onnx_reshape(inverse, told, shape.rank));
}

static void build_rms_norm(clv__onnx_use *use) {
    const clv_shape shape = clv__onnx_shape(use, 0);
    const int axis = clv__onnx_axis(use, clv__onnx_int(use, "axis", -1), shape.rank);
    const float eps = (float)clv__onnx_real(use, "epsilon", 1e-5);
    int64_t dims[CLV_MAX_RANK];
    const int rank = rows_of(&shape, axis, dims);
    clv_tensor *x = clv__onnx_reshape(clv__onnx_float(use, 0), dims, rank), *scale = clv__onnx_float(use, 1);
    const bool fits = numel_of(use, 1) == dims[rank - 1];
    clv_tensor *y = clv_rms_norm(x, fits ? clv__onnx_reshape(scale, &dims[rank - 1], 1) : NULL, eps);
    y = clv__onnx_reshape(y, shape.dims, shape.rank);
    clv__onnx_give(use, 0, fits ? y : clv_mul(y, scale));
}

/** Channels in groups, each normalised with its pictures; then a scale and a shift for each channel, or each group. */
static void group_norm(clv__onnx_use *use, int64_t groups) {
    const clv_shape shape = clv__onnx_shape(use, 0);
    if (shape.rank < 2 || groups < 1 || shape.dims[1] % groups) {
        clv__onnx_fail(use, CLV_E_SHAPE, "channels that %lld groups do not divide", (long long)groups);
        return;
    }
    const int64_t n = shape.dims[0], channels = shape.dims[1], all = clv_shape_numel(&shape);
    const int64_t rows[2] = {n * groups, n > 0 ? all / (n * groups) : 0};
    clv_tensor *y = clv_layer_norm(clv__onnx_reshape(clv__onnx_float(use, 0), rows, 2), NULL, NULL,
                                   (float)clv__onnx_real(use, "epsilon", 1e-5));
    const int64_t count = numel_of(use, 1);
    int64_t dims[CLV_MAX_RANK + 1] = {n, count, channels / count,
                                      n > 0 && channels > 0 ? all / n / channels : 0};
    int64_t each[3] = {count, 1, 1};
    y = clv__onnx_reshape(y, dims, 4);
    y = clv_mul(y, clv__onnx_reshape(clv__onnx_float(use, 1), each, 3));
    y = clv_add(y, clv__onnx_reshape(clv__onnx_float(use, 2), each, 3));
    clv__onnx_give(use, 0, clv__onnx_reshape(y, shape.dims, shape.rank));
}

static void build_instance_norm(clv__onnx_use *use) {
    group_norm(use, clv__onnx_shape(use, 0).dims[1]);
}

static void build_group_norm(clv__onnx_use *use) {
    group_norm(use, clv__onnx_int(use, "num_groups", 1));
}

static int axes_of(clv__onnx_use *use, int rank, int out[CLV_MAX_RANK]) {
    int64_t axes[CLV_MAX_RANK];
    const int n = clv__onnx_ints(use, "axes", axes, CLV_MAX_RANK);
    for (int i = 0; i < n; i++) out[i] = clv__onnx_axis(use, axes[i], rank);
    return n;
}

static void build_mean_variance(clv__onnx_use *use) {
    int axes[CLV_MAX_RANK] = {0, 2, 3};
    const int given = axes_of(use, clv__onnx_shape(use, 0).rank, axes), n = given ? given : 3;
    clv_tensor *x = clv__onnx_float(use, 0), *d = clv_sub(x, clv_mean(x, axes, n, true));
    clv__onnx_give(use, 0,
                   clv_div(d, clv_add_scalar(clv_sqrt(clv_mean(clv_square(d), axes, n, true)), 1e-9f)));
}

static void build_lp_norm(clv__onnx_use *use) {
    const int axis = clv__onnx_axis(use, clv__onnx_int(use, "axis", -1), clv__onnx_shape(use, 0).rank);
    clv_tensor *x = clv__onnx_float(use, 0), *zero = clv__onnx_scalar(use, 0, true),
               *one = clv__onnx_scalar(use, 1, true);
    const bool sizes = clv__onnx_int(use, "p", 2) == 1;
    clv_tensor *size = clv_sum(sizes ? clv_abs(x) : clv_square(x), &axis, 1, true),
               *none = clv_eq(size, zero);
    size = clv_where(none, one, size); // before the root, which has no gradient at 0
    clv__onnx_give(use, 0, clv_where(none, zero, clv_div(x, sizes ? size : clv_sqrt(size))));
}

/** Squares of neighbouring channels by a mean along them. */
static void build_lrn(clv__onnx_use *use) {
    const clv_shape s = clv__onnx_shape(use, 0);
    const int64_t size = clv__onnx_int(use, "size", 1), n = s.dims[0], c = s.dims[1];
    const int64_t inner = n > 0 && c > 0 ? clv_shape_numel(&s) / (n * c) : 0, low = (size - 1) / 2;
    clv_tensor *x = clv__onnx_float(use, 0);
    clv_tensor *sums = clv__onnx_reshape(clv_square(x), (int64_t[]){n, 1, c, inner}, 4);
    sums = clv__onnx_pad(use, sums, (int64_t[]){0, 0, low, 0}, (int64_t[]){0, 0, size - 1 - low, 0}, 0);
    sums = clv_avg_pool2d(sums, &(clv_pool2d_config){.kernel = {(int)size, 1}, .stride = {1, 1}});
    sums = clv__onnx_reshape(sums, s.dims, s.rank);
    sums = clv_add_scalar(clv_mul_scalar(sums, (float)clv__onnx_real(use, "alpha", 1e-4)),
                          (float)clv__onnx_real(use, "bias", 1));
    clv__onnx_give(use, 0, clv_div(x, clv_pow_scalar(sums, (float)clv__onnx_real(use, "beta", 0.75))));
}

const clv__onnx_row clv__onnx_norms[] = {
    {"BatchNormalization", .build = build_batch_norm},
    {"GroupNormalization", .build = build_group_norm},
    {"InstanceNormalization", .build = build_instance_norm},
    {"LRN", .build = build_lrn},
    {"LayerNormalization", .build = build_layer_norm},
    {"LogSoftmax", build_softmax, .which = 1},
    {"LpNormalization", .build = build_lp_norm},
    {"MeanVarianceNormalization", .build = build_mean_variance},
    {"RMSNormalization", .build = build_rms_norm},
    {"Softmax", .build = build_softmax},
    {0},
};
