// SPDX-License-Identifier: Apache-2.0
// ShuffleNet V2: half of the channels pass by each unit, and then the halves are shuffled.
// Source: Ma et al. 2018, arXiv:1807.11164, table 5; torchvision.models.shufflenet_v2_x1_0.
#include <stdio.h>

#include "nn/models.h"

/** A convolution without bias and a batch norm, which are numbered `index` and the next. */
static clv_tensor *conv_norm(clv_tensor *x, int index, int64_t out_channels, int kernel, int stride,
                             int groups) {
    char name[16], next[16];
    snprintf(name, sizeof name, "%d", index);
    snprintf(next, sizeof next, "%d", index + 1);
    return clv_nn_batch_norm(clv_nn_conv2d(x, name, out_channels,
                                           &(clv_nn_conv2d_config){.kernel = {kernel},
                                                                   .stride = {stride},
                                                                   .padding = {kernel / 2, kernel / 2},
                                                                   .groups = groups,
                                                                   .no_bias = true}),
                             next, NULL);
}

/** [a0 a1 ... b0 b1 ...] to [a0 b0 a1 b1 ...] */
static clv_tensor *shuffle(clv_tensor *x) {
    const clv_shape s = clv_tensor_shape(x);
    if (s.rank != 4) return NULL; // after a mistake
    x = clv_reshape(x, CLV_SHAPE(s.dims[0], 2, s.dims[1] / 2, s.dims[2], s.dims[3]));
    return clv_reshape(clv_permute(x, (int[]){0, 2, 1, 3, 4}, 5), s);
}

/** The side that is computed; `half` channels come of it. */
static clv_tensor *side(clv_tensor *x, int64_t half, int stride) {
    clv_graph *graph = clv_tensor_graph(x);
    clv_scope_push(graph, "branch2");
    x = clv_relu(conv_norm(x, 0, half, 1, 1, 1));
    x = conv_norm(x, 3, half, 3, stride, (int)half);
    x = clv_relu(conv_norm(x, 5, half, 1, 1, 1));
    clv_scope_pop(graph);
    return x;
}

static clv_tensor *unit(clv_tensor *x, int64_t out_channels, int stride) {
    clv_graph *graph = clv_tensor_graph(x);
    const clv_shape shape = clv_tensor_shape(x);
    const int64_t half = out_channels / 2;
    if (shape.rank != 4) return NULL; // after a mistake
    if (stride == 1)
        return shuffle(clv_concat(
            (clv_tensor *[]){clv_slice(x, 1, 0, half), side(clv_slice(x, 1, half, half), half, 1)}, 2, 1));
    clv_scope_push(graph, "branch1");
    clv_tensor *other = conv_norm(x, 0, shape.dims[1], 3, stride, (int)shape.dims[1]);
    other = clv_relu(conv_norm(other, 2, half, 1, 1, 1));
    clv_scope_pop(graph);
    return shuffle(clv_concat((clv_tensor *[]){other, side(x, half, stride)}, 2, 1));
}

static clv_tensor *conv_relu(clv_tensor *x, const char *name, int64_t out_channels, int kernel, int stride) {
    clv_graph *graph = clv_tensor_graph(x);
    clv_scope_push(graph, name);
    x = clv_relu(conv_norm(x, 0, out_channels, kernel, stride, 1));
    clv_scope_pop(graph);
    return x;
}

clv_tensor *clv__build_shufflenet_v2_x1_0(clv_tensor *x, const clv_model *model) {
    static const struct {
        int64_t channels;
        int units;
    } stages[] = {{116, 4}, {232, 8}, {464, 4}};
    clv_graph *graph = clv_tensor_graph(x);
    x = conv_relu(x, "conv1", 24, 3, 2);
    x = clv_max_pool2d(x, &(clv_pool2d_config){.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}});
    for (int s = 0; s < 3; s++) {
        char name[16];
        snprintf(name, sizeof name, "stage%d", s + 2);
        clv_scope_push(graph, name);
        for (int i = 0; i < stages[s].units; i++) {
            clv__scope_push_index(graph, i);
            x = unit(x, stages[s].channels, i ? 1 : 2);
            clv_scope_pop(graph);
        }
        clv_scope_pop(graph);
    }
    x = clv_mean(conv_relu(x, "conv5", 1024, 1, 1), (int[]){2, 3}, 2, false);
    return clv_nn_linear(x, "fc", clv__model_outputs(model), NULL);
}
