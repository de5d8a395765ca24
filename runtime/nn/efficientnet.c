// SPDX-License-Identifier: Apache-2.0
// Inverted residuals with squeeze and excitation: MobileNetV3 and EfficientNet.
// Source: Howard et al. 2019, arXiv:1905.02244, tables 1 and 2; Tan, Le 2019, arXiv:1905.11946, table 1; Huang et al. 2016,
// arXiv:1603.09382 (stochastic depth); torchvision.models.mobilenet_v3_large, mobilenet_v3_small, efficientnet_b0.
#include <math.h>

#include "nn/models.h"

typedef clv_tensor *(*activation)(clv_tensor *x);

/** What all blocks of a model have in common. */
typedef struct style {
    float eps, momentum; // of batch norms
    activation squeeze, excite;
    int dilation; // of kernels larger than 1x1; 0: 1
} style;

/** A convolution, a batch norm and, unless it is NULL, an activation, in the Sequential `index`. */
static clv_tensor *conv_norm(clv_tensor *x, const style *s, int index, int64_t out_channels, int kernel,
                             int stride, int groups, activation act) {
    clv_graph *graph = clv_tensor_graph(x);
    const int dilation = kernel > 1 && s->dilation ? s->dilation : 1;
    clv__scope_push_index(graph, index);
    x = clv__conv_dilated(x, "0", out_channels, kernel, stride, (kernel - 1) / 2 * dilation, dilation, groups,
                          false);
    x = clv_nn_batch_norm(x, "1", &(clv_nn_batch_norm_config){.eps = s->eps, .momentum = s->momentum});
    clv_scope_pop(graph);
    return act ? act(x) : x;
}

clv_tensor *clv__squeeze_excitation(clv_tensor *x, const char *name, int64_t squeezed,
                                    clv_tensor *(*squeeze)(clv_tensor *),
                                    clv_tensor *(*excite)(clv_tensor *)) {
    clv_graph *graph = clv_tensor_graph(x);
    const clv_shape shape = clv_tensor_shape(x);
    if (shape.rank != 4) return NULL; // after a mistake
    clv_scope_push(graph, name);
    clv_tensor *scale = clv_adaptive_avg_pool2d(x, 1, 1);
    scale = squeeze(clv__conv_fan_out(scale, "fc1", squeezed, 1, 1, 0, 1, true));
    scale = excite(clv__conv_fan_out(scale, "fc2", shape.dims[1], 1, 1, 0, 1, true));
    clv_scope_pop(graph);
    return clv_mul(scale, x);
}

clv_tensor *clv__stochastic_depth(clv_tensor *x, float p) {
    clv_graph *graph = clv_tensor_graph(x);
    clv_shape shape = clv_tensor_shape(x);
    if (!graph || !clv_graph_modes_get(graph).training || !(p > 0)) return x;
    for (int i = 1; i < shape.rank; i++) shape.dims[i] = 1;
    return clv_mul(x, clv_nn_dropout(clv_full(graph, CLV_DTYPE_F32, shape, 1), p));
}

/** Widen to `hidden` (unless that is what there is), convolve each channel by itself, weigh channels, narrow to `out_channels`. */
static clv_tensor *residual(clv_tensor *x, const style *s, int64_t hidden, int64_t out_channels, int kernel,
                            int stride, int64_t squeezed, activation act, float drop) {
    clv_graph *graph = clv_tensor_graph(x);
    const clv_shape shape = clv_tensor_shape(x);
    static const char *const names[] = {"0", "1", "2", "3"};
    if (shape.rank != 4) return NULL; // after a mistake
    int index = 0;
    clv_tensor *y = x;
    clv_scope_push(graph, "block");
    if (hidden != shape.dims[1]) y = conv_norm(y, s, index++, hidden, 1, 1, 1, act);
    y = conv_norm(y, s, index++, hidden, kernel, stride, (int)hidden, act);
    if (squeezed) y = clv__squeeze_excitation(y, names[index++], squeezed, s->squeeze, s->excite);
    y = conv_norm(y, s, index, out_channels, 1, 1, 1, NULL);
    clv_scope_pop(graph);
    return stride == 1 && shape.dims[1] == out_channels ? clv_add(clv__stochastic_depth(y, drop), x) : y;
}

// ---- MobileNetV3 ----------------------------------------------------------------------------------------------------

typedef struct v3_row {
    int kernel, hidden, channels;
    bool squeezes, hard; // hard: hardswish, else relu
    int stride;
} v3_row;

/** The multiple of 8 next to a quarter, and no less than nine tenths of it. */
static int64_t quarter(int hidden) {
    const int near = (hidden / 4 + 4) / 8 * 8, least = near < 8 ? 8 : near;
    return 10 * least < 9 * (hidden / 4) ? least + 8 : least;
}

/** `dilated`: so many of the last rows keep the size, and look twice as far. */
static clv_tensor *v3_features(clv_tensor *x, const char *name, const v3_row *rows, int n, int dilated) {
    static const style s = {0.001f, 0.01f, clv_relu, clv_hardsigmoid, 1},
                       far = {0.001f, 0.01f, clv_relu, clv_hardsigmoid, 2};
    clv_graph *graph = clv_tensor_graph(x);
    clv_scope_push(graph, name);
    x = conv_norm(x, &s, 0, 16, 3, 2, 1, clv_hardswish);
    for (int i = 0; i < n; i++) {
        const v3_row *row = &rows[i];
        const bool looks_far = i >= n - dilated;
        clv__scope_push_index(graph, i + 1);
        x = residual(x, looks_far ? &far : &s, row->hidden, row->channels, row->kernel,
                     looks_far ? 1 : row->stride, row->squeezes ? quarter(row->hidden) : 0,
                     row->hard ? clv_hardswish : clv_relu, 0);
        clv_scope_pop(graph);
    }
    x = conv_norm(x, &s, n + 1, 6 * rows[n - 1].channels, 1, 1, 1, clv_hardswish);
    clv_scope_pop(graph);
    return x;
}

static clv_tensor *build_v3(clv_tensor *x, const clv_model *model, int64_t last) {
    clv_graph *graph = clv_tensor_graph(x);
    x = clv_flatten(clv_adaptive_avg_pool2d(x, 1, 1), 1);
    clv_scope_push(graph, "classifier");
    x = clv_nn_dropout(clv_hardswish(clv__linear_small(x, "0", last)), 0.2f);
    x = clv__linear_small(x, "3", clv__model_outputs(model));
    clv_scope_pop(graph);
    return x;
}

clv_tensor *clv__mobilenet_v3_large_features(clv_tensor *x, const char *name, bool dilated) {
    static const v3_row rows[] = {
        {3, 16, 16, false, false, 1}, {3, 64, 24, false, false, 2}, {3, 72, 24, false, false, 1},
        {5, 72, 40, true, false, 2},  {5, 120, 40, true, false, 1}, {5, 120, 40, true, false, 1},
        {3, 240, 80, false, true, 2}, {3, 200, 80, false, true, 1}, {3, 184, 80, false, true, 1},
        {3, 184, 80, false, true, 1}, {3, 480, 112, true, true, 1}, {3, 672, 112, true, true, 1},
        {5, 672, 160, true, true, 2}, {5, 960, 160, true, true, 1}, {5, 960, 160, true, true, 1}};
    return v3_features(x, name, rows, sizeof rows / sizeof *rows, dilated ? 3 : 0);
}

clv_tensor *clv__build_mobilenet_v3_large(clv_tensor *x, const clv_model *model) {
    return build_v3(clv__mobilenet_v3_large_features(x, "features", false), model, 1280);
}

clv_tensor *clv__build_mobilenet_v3_small(clv_tensor *x, const clv_model *model) {
    static const v3_row rows[] = {
        {3, 16, 16, true, false, 2}, {3, 72, 24, false, false, 2}, {3, 88, 24, false, false, 1},
        {5, 96, 40, true, true, 2},  {5, 240, 40, true, true, 1},  {5, 240, 40, true, true, 1},
        {5, 120, 48, true, true, 1}, {5, 144, 48, true, true, 1},  {5, 288, 96, true, true, 2},
        {5, 576, 96, true, true, 1}, {5, 576, 96, true, true, 1}};
    return build_v3(v3_features(x, "features", rows, sizeof rows / sizeof *rows, 0), model, 1024);
}

// ---- EfficientNet ---------------------------------------------------------------------------------------------------

clv_tensor *clv__build_efficientnet_b0(clv_tensor *x, const clv_model *model) {
    static const struct {
        int expand, kernel, stride, channels, layers;
    } stages[] = {{1, 3, 1, 16, 1},  {6, 3, 2, 24, 2},  {6, 5, 2, 40, 2}, {6, 3, 2, 80, 3},
                  {6, 5, 1, 112, 3}, {6, 5, 2, 192, 4}, {6, 3, 1, 320, 1}};
    static const style s = {1e-5f, 0.1f, clv_silu, clv_sigmoid, 1};
    enum { BLOCKS = 16 };
    clv_graph *graph = clv_tensor_graph(x);
    int n = 0, channels = 32;
    clv_scope_push(graph, "features");
    x = conv_norm(x, &s, 0, channels, 3, 2, 1, clv_silu);
    for (int stage = 0; stage < 7; stage++) {
        clv__scope_push_index(graph, stage + 1);
        for (int i = 0; i < stages[stage].layers; i++, n++) {
            clv__scope_push_index(graph, i);
            x = residual(x, &s, channels * stages[stage].expand, stages[stage].channels, stages[stage].kernel,
                         i ? 1 : stages[stage].stride, channels / 4, clv_silu, 0.2f * (float)n / BLOCKS);
            channels = stages[stage].channels;
            clv_scope_pop(graph);
        }
        clv_scope_pop(graph);
    }
    x = conv_norm(x, &s, 8, 1280, 1, 1, 1, clv_silu);
    clv_scope_pop(graph);
    x = clv_nn_dropout(clv_flatten(clv_adaptive_avg_pool2d(x, 1, 1), 1), 0.2f);
    const int64_t outputs = clv__model_outputs(model);
    const float bound = (float)(1 / sqrt((double)outputs));
    const clv_init weight_init = {CLV_INIT_UNIFORM, -bound, bound}, bias_init = {.kind = CLV_INIT_ZEROS};
    clv_scope_push(graph, "classifier");
    x = clv_nn_linear(x, "1", outputs,
                      &(clv_nn_linear_config){.weight_init = &weight_init, .bias_init = &bias_init});
    clv_scope_pop(graph);
    return x;
}
