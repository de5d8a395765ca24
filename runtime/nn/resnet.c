// SPDX-License-Identifier: Apache-2.0
// Residual networks: blocks whose input is added to their result. In the bottleneck the 3x3 convolution has the stride,
// not the first 1x1 ("v1.5"), as in torchvision.
// Source: He, Zhang, Ren, Sun 2015, arXiv:1512.03385, table 1; torchvision.models.resnet18, resnet34, resnet50, resnet101. resnet20 is that
// of section 4.2, for pictures of 32 x 32, with the 1x1 convolutions of the others where shapes change.
#include <stdio.h>

#include "nn/models.h"

/** A block's layers on x; `width` channels inside. */
typedef clv_tensor *(*branch)(clv_tensor *x, int64_t width, int stride);

static clv_tensor *basic(clv_tensor *x, int64_t width, int stride) {
    x = clv__conv_fan_out(x, "conv1", width, 3, stride, 1, 1, false);
    x = clv_relu(clv_nn_batch_norm(x, "bn1", NULL));
    x = clv__conv_fan_out(x, "conv2", width, 3, 1, 1, 1, false);
    return clv_nn_batch_norm(x, "bn2", NULL);
}

static clv_tensor *bottleneck(clv_tensor *x, int64_t width, int stride) {
    x = clv__conv_fan_out(x, "conv1", width, 1, 1, 0, 1, false);
    x = clv_relu(clv_nn_batch_norm(x, "bn1", NULL));
    x = clv__conv_fan_out(x, "conv2", width, 3, stride, 1, 1, false);
    x = clv_relu(clv_nn_batch_norm(x, "bn2", NULL));
    x = clv__conv_fan_out(x, "conv3", 4 * width, 1, 1, 0, 1, false);
    return clv_nn_batch_norm(x, "bn3", NULL);
}

/** relu(layers(x) + x), with a 1x1 convolution on x where its shape is not the layers'. */
static clv_tensor *block(clv_graph *graph, clv_tensor *x, branch layers, int64_t width, int64_t out_channels,
                         int stride) {
    clv_tensor *y = layers(x, width, stride);
    clv_shape shape = clv_tensor_shape(x);
    if (stride != 1 || (shape.rank == 4 && shape.dims[1] != out_channels)) {
        clv_scope_push(graph, "downsample");
        x = clv_nn_batch_norm(clv__conv_fan_out(x, "0", out_channels, 1, stride, 0, 1, false), "1", NULL);
        clv_scope_pop(graph);
    }
    return clv_relu(clv_add(y, x));
}

/** Stages of blocks, each twice as wide as the one before. */
static clv_tensor *stages(clv_tensor *x, branch layers, int64_t width, int expansion, const int *blocks) {
    clv_graph *graph = clv_tensor_graph(x);
    for (int stage = 0; blocks[stage]; stage++, width *= 2) {
        char name[16];
        snprintf(name, sizeof name, "layer%d", stage + 1);
        clv_scope_push(graph, name);
        for (int i = 0; i < blocks[stage]; i++) {
            clv__scope_push_index(graph, i);
            x = block(graph, x, layers, width, width * expansion, stage > 0 && i == 0 ? 2 : 1);
            clv_scope_pop(graph);
        }
        clv_scope_pop(graph);
    }
    return x;
}

static clv_tensor *head(clv_tensor *x, const clv_model *model) {
    return clv_nn_linear(clv_flatten(clv_adaptive_avg_pool2d(x, 1, 1), 1), "fc", clv__model_outputs(model),
                         NULL);
}

static clv_tensor *build(clv_tensor *x, const clv_model *model, branch layers, int expansion,
                         const int *blocks) {
    x = clv__conv_fan_out(x, "conv1", 64, 7, 2, 3, 1, false);
    x = clv_relu(clv_nn_batch_norm(x, "bn1", NULL));
    x = clv_max_pool2d(x, &(clv_pool2d_config){.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}});
    return head(stages(x, layers, 64, expansion, blocks), model);
}

clv_tensor *clv__build_resnet20(clv_tensor *x, const clv_model *model) {
    x = clv__conv_fan_out(x, "conv1", 16, 3, 1, 1, 1, false);
    x = clv_relu(clv_nn_batch_norm(x, "bn1", NULL));
    return head(stages(x, basic, 16, 1, (const int[]){3, 3, 3, 0}), model);
}

clv_tensor *clv__build_resnet18(clv_tensor *x, const clv_model *model) {
    return build(x, model, basic, 1, (const int[]){2, 2, 2, 2, 0});
}

clv_tensor *clv__build_resnet34(clv_tensor *x, const clv_model *model) {
    return build(x, model, basic, 1, (const int[]){3, 4, 6, 3, 0});
}

clv_tensor *clv__build_resnet50(clv_tensor *x, const clv_model *model) {
    return build(x, model, bottleneck, 4, (const int[]){3, 4, 6, 3, 0});
}

clv_tensor *clv__build_resnet101(clv_tensor *x, const clv_model *model) {
    return build(x, model, bottleneck, 4, (const int[]){3, 4, 23, 3, 0});
}
