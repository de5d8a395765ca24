// SPDX-License-Identifier: Apache-2.0
// VGG: 3x3 convolutions with relu, halved by max pooling, and a classifier of three linear layers. A layer's number
// is its place in torchvision's Sequential, where relu, pooling and dropout count too.
// Source: Simonyan, Zisserman 2014, arXiv:1409.1556, table 1; torchvision.models.vgg11, vgg16.
#include <stdio.h>

#include "nn/models.h"

enum { POOL = -1, END = 0 };

static clv_tensor *features(clv_graph *graph, clv_tensor *x, const int *layers) {
    int index = 0;
    clv_scope_push(graph, "features");
    for (; *layers != END; layers++) {
        char name[16];
        snprintf(name, sizeof name, "%d", index);
        if (*layers == POOL) {
            x = clv_max_pool2d(x, &(clv_pool2d_config){.kernel = {2, 2}});
            index++;
        } else {
            x = clv_relu(clv__conv_fan_out(x, name, *layers, 3, 1, 1, 1, true));
            index += 2;
        }
    }
    clv_scope_pop(graph);
    return x;
}

static clv_tensor *build(clv_tensor *x, const clv_model *model, const int *layers) {
    clv_graph *graph = clv_tensor_graph(x);
    x = clv_adaptive_avg_pool2d(features(graph, x, layers), 7, 7);
    x = clv_flatten(x, 1);
    clv_scope_push(graph, "classifier");
    x = clv_nn_dropout(clv_relu(clv__linear_small(x, "0", 4096)), 0.5f);
    x = clv_nn_dropout(clv_relu(clv__linear_small(x, "3", 4096)), 0.5f);
    x = clv__linear_small(x, "6", clv__model_outputs(model));
    clv_scope_pop(graph);
    return x;
}

clv_tensor *clv__build_vgg11(clv_tensor *x, const clv_model *model) {
    static const int layers[] = {64, POOL, 128, POOL, 256, 256, POOL, 512, 512, POOL, 512, 512, POOL, END};
    return build(x, model, layers);
}

clv_tensor *clv__build_vgg16(clv_tensor *x, const clv_model *model) {
    static const int layers[] = {64,  64,  POOL, 128,  128, POOL, 256, 256,  256, POOL,
                                 512, 512, 512,  POOL, 512, 512,  512, POOL, END};
    return build(x, model, layers);
}
