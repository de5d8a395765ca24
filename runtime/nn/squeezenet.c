// SPDX-License-Identifier: Apache-2.0
// SqueezeNet 1.1: fire modules, which squeeze by 1x1 and widen by 1x1 and 3x3 side by side.
// Source: Iandola et al. 2016, arXiv:1602.07360; torchvision.models.squeezenet1_1.
#include <math.h>

#include "nn/models.h"

/** A convolution with relu; weights uniform with variance 2 / fan_in, bias 0. */
static clv_tensor *conv(clv_tensor *x, const char *name, int64_t out_channels, int kernel, int stride,
                        int padding) {
    const clv_shape shape = clv_tensor_shape(x);
    if (shape.rank != 4) return NULL; // after a mistake
    const float bound = (float)sqrt(6.0 / ((double)shape.dims[1] * kernel * kernel));
    const clv_init weight_init = {CLV_INIT_UNIFORM, -bound, bound}, bias_init = {.kind = CLV_INIT_ZEROS};
    return clv_relu(clv_nn_conv2d(x, name, out_channels,
                                  &(clv_nn_conv2d_config){.kernel = {kernel},
                                                          .stride = {stride},
                                                          .padding = {padding, padding},
                                                          .weight_init = &weight_init,
                                                          .bias_init = &bias_init}));
}

static clv_tensor *fire(clv_tensor *x, int index, int64_t squeeze, int64_t expand) {
    clv_graph *graph = clv_tensor_graph(x);
    clv__scope_push_index(graph, index);
    x = conv(x, "squeeze", squeeze, 1, 1, 0);
    clv_tensor *sides[2] = {conv(x, "expand1x1", expand, 1, 1, 0), conv(x, "expand3x3", expand, 3, 1, 1)};
    x = clv_concat(sides, 2, 1);
    clv_scope_pop(graph);
    return x;
}

clv_tensor *clv__build_squeezenet1_1(clv_tensor *x, const clv_model *model) {
    clv_graph *graph = clv_tensor_graph(x);
    const clv_pool2d_config pool = {.kernel = {3, 3}, .stride = {2, 2}, .ceil_mode = true};
    const clv_init small = {CLV_INIT_NORMAL, 0, 0.01f}, zeros = {.kind = CLV_INIT_ZEROS};
    clv_scope_push(graph, "features");
    x = clv_max_pool2d(conv(x, "0", 64, 3, 2, 0), &pool);
    x = clv_max_pool2d(fire(fire(x, 3, 16, 64), 4, 16, 64), &pool);
    x = clv_max_pool2d(fire(fire(x, 6, 32, 128), 7, 32, 128), &pool);
    x = fire(fire(fire(fire(x, 9, 48, 192), 10, 48, 192), 11, 64, 256), 12, 64, 256);
    clv_scope_pop(graph);
    clv_scope_push(graph, "classifier");
    x = clv_relu(
        clv_nn_conv2d(clv_nn_dropout(x, 0.5f), "1", clv__model_outputs(model),
                      &(clv_nn_conv2d_config){.kernel = {1}, .weight_init = &small, .bias_init = &zeros}));
    clv_scope_pop(graph);
    return clv_flatten(clv_adaptive_avg_pool2d(x, 1, 1), 1);
}
