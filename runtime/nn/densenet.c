// SPDX-License-Identifier: Apache-2.0
// DenseNet: each layer reads what all before it in its block have made, and adds 32 channels.
// Source: Huang et al. 2016, arXiv:1608.06993, table 1; torchvision.models.densenet121.
#include <math.h>
#include <stdio.h>

#include "nn/models.h"

enum { GROWTH = 32 };

/** A convolution without bias; weights normal with variance 2 / fan_in. */
static clv_tensor *conv(clv_tensor *x, const char *name, int64_t out_channels, int kernel, int stride,
                        int padding) {
    const clv_shape shape = clv_tensor_shape(x);
    if (shape.rank != 4) return NULL; // after a mistake
    const clv_init init = {CLV_INIT_NORMAL, 0, (float)sqrt(2.0 / ((double)shape.dims[1] * kernel * kernel))};
    return clv_nn_conv2d(x, name, out_channels,
                         &(clv_nn_conv2d_config){.kernel = {kernel},
                                                 .stride = {stride},
                                                 .padding = {padding, padding},
                                                 .no_bias = true,
                                                 .weight_init = &init});
}

static clv_tensor *norm(clv_tensor *x, const char *name) {
    return clv_relu(clv_nn_batch_norm(x, name, NULL));
}

static clv_tensor *block(clv_tensor *x, int index, int layers) {
    clv_graph *graph = clv_tensor_graph(x);
    char name[32];
    snprintf(name, sizeof name, "denseblock%d", index);
    clv_scope_push(graph, name);
    for (int i = 1; i <= layers; i++) {
        snprintf(name, sizeof name, "denselayer%d", i);
        clv_scope_push(graph, name);
        clv_tensor *y = conv(norm(x, "norm1"), "conv1", 4 * GROWTH, 1, 1, 0);
        y = conv(norm(y, "norm2"), "conv2", GROWTH, 3, 1, 1);
        clv_scope_pop(graph);
        x = clv_concat((clv_tensor *[]){x, y}, 2, 1);
    }
    clv_scope_pop(graph);
    return x;
}

/** Half the channels, half the size. */
static clv_tensor *transition(clv_tensor *x, int index) {
    clv_graph *graph = clv_tensor_graph(x);
    const clv_shape shape = clv_tensor_shape(x);
    char name[32];
    snprintf(name, sizeof name, "transition%d", index);
    clv_scope_push(graph, name);
    x = conv(norm(x, "norm"), "conv", shape.rank == 4 ? shape.dims[1] / 2 : 1, 1, 1, 0);
    clv_scope_pop(graph);
    return clv_avg_pool2d(x, &(clv_pool2d_config){.kernel = {2, 2}});
}

clv_tensor *clv__build_densenet121(clv_tensor *x, const clv_model *model) {
    static const int layers[4] = {6, 12, 24, 16};
    clv_graph *graph = clv_tensor_graph(x);
    const clv_init bias_init = {.kind = CLV_INIT_ZEROS};
    clv_scope_push(graph, "features");
    x = norm(conv(x, "conv0", 64, 7, 2, 3), "norm0");
    x = clv_max_pool2d(x, &(clv_pool2d_config){.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}});
    for (int i = 0; i < 4; i++) {
        x = block(x, i + 1, layers[i]);
        if (i < 3) x = transition(x, i + 1);
    }
    x = norm(x, "norm5");
    clv_scope_pop(graph);
    return clv_nn_linear(clv_flatten(clv_adaptive_avg_pool2d(x, 1, 1), 1), "classifier",
                         clv__model_outputs(model), &(clv_nn_linear_config){.bias_init = &bias_init});
}
