// SPDX-License-Identifier: Apache-2.0
// AlexNet in its second form, one tower of convolutions; first values are PyTorch's defaults.
// Source: Krizhevsky 2014, arXiv:1404.5997; torchvision.models.alexnet.
#include "nn/models.h"

static clv_tensor *conv(clv_tensor *x, const char *name, int64_t out_channels, int kernel, int stride,
                        int padding) {
    return clv_relu(clv_nn_conv2d(
        x, name, out_channels,
        &(clv_nn_conv2d_config){.kernel = {kernel}, .stride = {stride}, .padding = {padding, padding}}));
}

clv_tensor *clv__build_alexnet(clv_tensor *x, const clv_model *model) {
    clv_graph *graph = clv_tensor_graph(x);
    const clv_pool2d_config pool = {.kernel = {3, 3}, .stride = {2, 2}};
    clv_scope_push(graph, "features");
    x = clv_max_pool2d(conv(x, "0", 64, 11, 4, 2), &pool);
    x = clv_max_pool2d(conv(x, "3", 192, 5, 1, 2), &pool);
    x = conv(x, "6", 384, 3, 1, 1);
    x = conv(x, "8", 256, 3, 1, 1);
    x = clv_max_pool2d(conv(x, "10", 256, 3, 1, 1), &pool);
    clv_scope_pop(graph);
    x = clv_flatten(clv_adaptive_avg_pool2d(x, 6, 6), 1);
    clv_scope_push(graph, "classifier");
    x = clv_relu(clv_nn_linear(clv_nn_dropout(x, 0.5f), "1", 4096, NULL));
    x = clv_relu(clv_nn_linear(clv_nn_dropout(x, 0.5f), "4", 4096, NULL));
    x = clv_nn_linear(x, "6", clv__model_outputs(model), NULL);
    clv_scope_pop(graph);
    return x;
}
