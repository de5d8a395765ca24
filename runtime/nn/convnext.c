// SPDX-License-Identifier: Apache-2.0
// ConvNeXt: depthwise 7x7 convolutions, and a linear layer over the channels of each place, wide and narrow again.
// Source: Liu et al. 2022, arXiv:2201.03545; torchvision.models.convnext_tiny.
#include "nn/models.h"

static const float eps = 1e-6f;
static const clv_init narrow = {CLV_INIT_NORMAL, 0, 0.02f}, zeros = {.kind = CLV_INIT_ZEROS};

static clv_tensor *conv(clv_tensor *x, const char *name, int64_t out_channels, int kernel, int stride,
                        int padding, int groups) {
    return clv_nn_conv2d(x, name, out_channels,
                         &(clv_nn_conv2d_config){.kernel = {kernel},
                                                 .stride = {stride},
                                                 .padding = {padding, padding},
                                                 .groups = groups,
                                                 .weight_init = &narrow,
                                                 .bias_init = &zeros});
}

static clv_tensor *linear(clv_tensor *x, const char *name, int64_t out_features) {
    return clv_nn_linear(x, name, out_features,
                         &(clv_nn_linear_config){.weight_init = &narrow, .bias_init = &zeros});
}

static clv_tensor *channels_last(clv_tensor *x) {
    return clv_permute(x, (int[]){0, 2, 3, 1}, 4);
}

static clv_tensor *channels_first(clv_tensor *x) {
    return clv_permute(x, (int[]){0, 3, 1, 2}, 4);
}

/** Over the channels of each place. */
static clv_tensor *norm(clv_tensor *x, const char *name) {
    return channels_first(clv_nn_layer_norm(channels_last(x), name, eps));
}

static clv_tensor *block(clv_tensor *x, int64_t channels, float drop) {
    clv_graph *graph = clv_tensor_graph(x);
    if (!graph) return NULL;
    clv_tensor *scale = clv_parameter(graph, "layer_scale", CLV_SHAPE(channels, 1, 1),
                                      (clv_init){CLV_INIT_UNIFORM, 1e-6f, 1e-6f});
    clv_scope_push(graph, "block");
    clv_tensor *y =
        clv_nn_layer_norm(channels_last(conv(x, "0", channels, 7, 1, 3, (int)channels)), "2", eps);
    y = linear(clv_gelu(linear(y, "3", 4 * channels)), "5", channels);
    clv_scope_pop(graph);
    y = clv_mul(scale, channels_first(y));
    return clv_add(clv__stochastic_depth(y, drop), x);
}

clv_tensor *clv__build_convnext_tiny(clv_tensor *x, const clv_model *model) {
    static const struct {
        int64_t channels;
        int blocks;
    } stages[] = {{96, 3}, {192, 3}, {384, 9}, {768, 3}};
    enum { BLOCKS = 18 };
    clv_graph *graph = clv_tensor_graph(x);
    int n = 0;
    clv_scope_push(graph, "features");
    for (int s = 0; s < 4; s++) {
        clv__scope_push_index(graph, 2 * s);
        x = s ? conv(norm(x, "0"), "1", stages[s].channels, 2, 2, 0, 1)
              : norm(conv(x, "0", stages[s].channels, 4, 4, 0, 1), "1");
        clv_scope_pop(graph);
        clv__scope_push_index(graph, 2 * s + 1);
        for (int i = 0; i < stages[s].blocks; i++, n++) {
            clv__scope_push_index(graph, i);
            x = block(x, stages[s].channels, 0.1f * (float)n / (BLOCKS - 1));
            clv_scope_pop(graph);
        }
        clv_scope_pop(graph);
    }
    clv_scope_pop(graph);
    clv_scope_push(graph, "classifier");
    x = clv_flatten(norm(clv_adaptive_avg_pool2d(x, 1, 1), "0"), 1);
    x = linear(x, "2", clv__model_outputs(model));
    clv_scope_pop(graph);
    return x;
}
