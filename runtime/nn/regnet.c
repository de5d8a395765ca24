// SPDX-License-Identifier: Apache-2.0
// RegNetY: bottlenecks of grouped convolutions with squeeze and excitation, whose widths follow a line.
// Source: Radosavovic et al. 2020, arXiv:2003.13678; torchvision.models.regnet_y_400mf.
#include <math.h>
#include <stdio.h>

#include "nn/models.h"

/** A convolution and a batch norm, in the Sequential `name`. */
static clv_tensor *conv_norm(clv_tensor *x, const char *name, int64_t out_channels, int kernel, int stride,
                             int groups) {
    clv_graph *graph = clv_tensor_graph(x);
    clv_scope_push(graph, name);
    x = clv__conv_fan_out(x, "0", out_channels, kernel, stride, kernel / 2, groups, false);
    x = clv_nn_batch_norm(x, "1", NULL);
    clv_scope_pop(graph);
    return x;
}

static clv_tensor *block(clv_tensor *x, int64_t width, int stride, int64_t group_width) {
    clv_graph *graph = clv_tensor_graph(x);
    const clv_shape shape = clv_tensor_shape(x);
    if (shape.rank != 4) return NULL; // after a mistake
    clv_tensor *past = x;
    if (stride != 1 || shape.dims[1] != width) past = conv_norm(x, "proj", width, 1, stride, 1);
    clv_scope_push(graph, "f");
    x = clv_relu(conv_norm(x, "a", width, 1, 1, 1));
    x = clv_relu(conv_norm(x, "b", width, 3, stride, (int)(width / group_width)));
    x = clv__squeeze_excitation(x, "se", lround(0.25 * (double)shape.dims[1]), clv_relu, clv_sigmoid);
    x = conv_norm(x, "c", width, 1, 1, 1);
    clv_scope_pop(graph);
    return clv_relu(clv_add(past, x));
}

clv_tensor *clv__build_regnet_y_400mf(clv_tensor *x, const clv_model *model) {
    static const struct {
        int64_t width;
        int blocks;
    } stages[] = {{48, 1}, {104, 3}, {208, 6}, {440, 6}};
    clv_graph *graph = clv_tensor_graph(x);
    x = clv_relu(conv_norm(x, "stem", 32, 3, 2, 1));
    clv_scope_push(graph, "trunk_output");
    for (int s = 0; s < 4; s++) {
        char name[32];
        snprintf(name, sizeof name, "block%d", s + 1);
        clv_scope_push(graph, name);
        for (int i = 0; i < stages[s].blocks; i++) {
            snprintf(name, sizeof name, "block%d-%d", s + 1, i);
            clv_scope_push(graph, name);
            x = block(x, stages[s].width, i ? 1 : 2, 8);
            clv_scope_pop(graph);
        }
        clv_scope_pop(graph);
    }
    clv_scope_pop(graph);
    return clv__linear_small(clv_flatten(clv_adaptive_avg_pool2d(x, 1, 1), 1), "fc",
                             clv__model_outputs(model));
}
