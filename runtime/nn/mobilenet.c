// SPDX-License-Identifier: Apache-2.0
// MobileNetV2: inverted residuals, which widen by 1x1, convolve each channel by itself, and narrow again.
// Source: Sandler et al. 2018, arXiv:1801.04381, table 2; torchvision.models.mobilenet_v2.
#include "nn/models.h"

/** Convolution, batch norm, relu6 as the Sequential `index`. */
static clv_tensor *conv_norm(clv_graph *graph, clv_tensor *x, int index, int64_t out_channels, int kernel,
                             int stride, int groups) {
    clv__scope_push_index(graph, index);
    x = clv_nn_batch_norm(
        clv__conv_fan_out(x, "0", out_channels, kernel, stride, (kernel - 1) / 2, groups, false), "1", NULL);
    clv_scope_pop(graph);
    return clv_relu6(x);
}

static clv_tensor *inverted_residual(clv_graph *graph, clv_tensor *x, int64_t out_channels, int stride,
                                     int expand) {
    clv_shape shape = clv_tensor_shape(x);
    if (shape.rank != 4) return NULL; // after a mistake
    int64_t channels = shape.dims[1], hidden = channels * expand;
    int index = 0;
    clv_tensor *y = x;
    clv_scope_push(graph, "conv");
    if (expand != 1) y = conv_norm(graph, y, index++, hidden, 1, 1, 1);
    y = conv_norm(graph, y, index++, hidden, 3, stride, (int)hidden);
    const char *const names[] = {"0", "1", "2", "3"};
    y = clv__conv_fan_out(y, names[index], out_channels, 1, 1, 0, 1, false);
    y = clv_nn_batch_norm(y, names[index + 1], NULL);
    clv_scope_pop(graph);
    return stride == 1 && channels == out_channels ? clv_add(x, y) : y;
}

clv_tensor *clv__build_mobilenet_v2(clv_tensor *x, const clv_model *model) {
    clv_graph *graph = clv_tensor_graph(x);
    static const struct {
        int expand, out_channels, repeat, stride;
    } stages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                  {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
    int index = 1;
    clv_scope_push(graph, "features");
    x = conv_norm(graph, x, 0, 32, 3, 2, 1);
    for (size_t s = 0; s < sizeof stages / sizeof *stages; s++) {
        for (int i = 0; i < stages[s].repeat; i++) {
            clv__scope_push_index(graph, index++);
            x = inverted_residual(graph, x, stages[s].out_channels, i ? 1 : stages[s].stride,
                                  stages[s].expand);
            clv_scope_pop(graph);
        }
    }
    x = conv_norm(graph, x, index, 1280, 1, 1, 1);
    clv_scope_pop(graph);
    x = clv_nn_dropout(clv_flatten(clv_adaptive_avg_pool2d(x, 1, 1), 1), 0.2f);
    clv_scope_push(graph, "classifier");
    x = clv__linear_small(x, "1", clv__model_outputs(model));
    clv_scope_pop(graph);
    return x;
}
