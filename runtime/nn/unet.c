// SPDX-License-Identifier: Apache-2.0
// U-Net: semantic segmentation. Convolutions in pairs, four times on half the size; then up again, each time beside what was there before.
// With batch norm behind each convolution, and images that keep their size.
// Source: Ronneberger et al. 2015, arXiv:1505.04597, figure 1; names as usual: inc, down1, up1, outc.
#include <stdio.h>

#include "nn/models.h"

/** Two 3x3 convolutions, each with a batch norm and a relu, as the Sequential `double_conv`. */
static clv_tensor *pair(clv_tensor *x, int64_t channels) {
    static const char *const names[] = {"0", "1", "3", "4"};
    clv_graph *graph = clv_tensor_graph(x);
    clv_scope_push(graph, "double_conv");
    for (int i = 0; i < 4; i += 2) {
        x = clv_nn_conv2d(x, names[i], channels,
                          &(clv_nn_conv2d_config){.kernel = {3}, .padding = {1, 1}, .no_bias = true});
        x = clv_relu(clv_nn_batch_norm(x, names[i + 1], NULL));
    }
    clv_scope_pop(graph);
    return x;
}

static clv_tensor *down(clv_tensor *x, int level, int64_t channels) {
    clv_graph *graph = clv_tensor_graph(x);
    char name[16];
    snprintf(name, sizeof name, "down%d", level);
    clv_scope_push(graph, name);
    clv_scope_push(graph, "maxpool_conv");
    clv_scope_push(graph, "1");
    x = pair(clv_max_pool2d(x, &(clv_pool2d_config){.kernel = {2}}), channels);
    for (int i = 0; i < 3; i++) clv_scope_pop(graph);
    return x;
}

/** Twice the size, beside `before`, whose size may be odd. */
static clv_tensor *up(clv_tensor *x, clv_tensor *before, int level, int64_t channels) {
    clv_graph *graph = clv_tensor_graph(x);
    char name[16];
    snprintf(name, sizeof name, "up%d", level);
    clv_scope_push(graph, name);
    x = clv_nn_conv_transpose2d(x, "up", channels,
                                &(clv_nn_conv_transpose2d_config){.kernel = {2}, .stride = {2}});
    const clv_shape is = clv_tensor_shape(x), wanted = clv_tensor_shape(before);
    for (int d = 2; d < 4 && x && before; d++) {
        const int64_t lacks = wanted.dims[d] - is.dims[d];
        x = clv__pad_zeros(x, d, lacks / 2, lacks - lacks / 2);
    }
    x = clv_concat((clv_tensor *[]){before, x}, 2, 1);
    clv_scope_push(graph, "conv");
    x = pair(x, channels);
    clv_scope_pop(graph);
    clv_scope_pop(graph);
    return x;
}

clv_tensor *clv__build_unet(clv_tensor *x, const clv_model *model) {
    enum { LEVELS = 4, CHANNELS = 64 };
    clv_graph *graph = clv_tensor_graph(x);
    clv_tensor *before[LEVELS];
    clv_scope_push(graph, "inc");
    x = pair(x, CHANNELS);
    clv_scope_pop(graph);
    for (int i = 0; i < LEVELS; i++) {
        before[i] = x;
        x = down(x, i + 1, CHANNELS << (i + 1));
    }
    for (int i = LEVELS; i-- > 0;) x = up(x, before[i], LEVELS - i, CHANNELS << i);
    clv_scope_push(graph, "outc");
    x = clv_nn_conv2d(x, "conv", model->classes, &(clv_nn_conv2d_config){.kernel = {1}});
    clv_scope_pop(graph);
    return clv_permute(x, (int[]){0, 2, 3, 1}, 4);
}
