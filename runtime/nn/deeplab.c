// SPDX-License-Identifier: Apache-2.0
// DeepLabV3: semantic segmentation. A MobileNetV3 whose last blocks are dilated instead of strided, convolutions of several
// dilations side by side, and their scores for every eighth or sixteenth pixel, enlarged.
// Source: Chen et al. 2017, arXiv:1706.05587; torchvision.models.segmentation.deeplabv3_mobilenet_v3_large.
#include <stdlib.h>

#include "graph/graph.h"
#include "nn/models.h"

enum { CHANNELS = 256 };

/** A convolution, a batch norm and a relu under these names. */
static clv_tensor *conv_norm(clv_tensor *x, const char *conv, const char *norm, int kernel, int dilation) {
    const int padding = (kernel - 1) / 2 * dilation;
    x = clv_nn_conv2d(
        x, conv, CHANNELS,
        &(clv_nn_conv2d_config){
            .kernel = {kernel}, .dilation = {dilation}, .padding = {padding, padding}, .no_bias = true});
    return clv_relu(clv_nn_batch_norm(x, norm, NULL));
}

/** Atrous spatial pyramid pooling: what lies at several distances, and the mean of all, side by side. */
static clv_tensor *pyramid(clv_tensor *x) {
    static const int dilations[] = {1, 12, 24, 36};
    clv_graph *graph = clv_tensor_graph(x);
    clv_shape shape = clv_tensor_shape(x);
    clv_tensor *views[5];
    if (shape.rank != 4) return NULL; // after a mistake
    clv_scope_push(graph, "convs");
    for (int i = 0; i < 4; i++) {
        clv__scope_push_index(graph, i);
        views[i] = conv_norm(x, "0", "1", i ? 3 : 1, dilations[i]);
        clv_scope_pop(graph);
    }
    clv_scope_push(graph, "4");
    shape.dims[1] = CHANNELS;
    views[4] = clv_broadcast_to(conv_norm(clv_adaptive_avg_pool2d(x, 1, 1), "1", "2", 1, 1), shape);
    clv_scope_pop(graph);
    clv_scope_pop(graph);
    clv_scope_push(graph, "project");
    x = clv_nn_dropout(conv_norm(clv_concat(views, 5, 1), "0", "1", 1, 1), 0.5f);
    clv_scope_pop(graph);
    return x;
}

/** What each of `to` places takes of `from`, linearly between two: [to, from]. Pixels are areas, as with align_corners=False. */
static clv_tensor *between(clv_graph *graph, int64_t from, int64_t to) {
    float *values = clv__alloc((size_t)(from * to), sizeof *values);
    if (!values) return clv__graph_fail(graph, CLV_E_HOST_MEMORY, "no host memory to enlarge images");
    for (int64_t i = 0; i < from * to; i++) values[i] = 0;
    for (int64_t i = 0; i < to; i++) {
        const double middle = ((double)i + 0.5) * (double)from / (double)to - 0.5,
                     at = middle > 0 ? middle : 0;
        const int64_t first = (int64_t)at, second = first + 1 < from ? first + 1 : first;
        values[i * from + first] += (float)(1 - (at - (double)first));
        values[i * from + second] += (float)(at - (double)first);
    }
    clv_tensor *out = clv_constant(graph, CLV_DTYPE_F32, CLV_SHAPE(to, from), values);
    free(values);
    return out;
}

/** [N, C, h, w] to [N, height, width, C], bilinearly. */
static clv_tensor *enlarge(clv_tensor *x, int64_t height, int64_t width) {
    clv_graph *graph = clv_tensor_graph(x);
    const clv_shape s = clv_tensor_shape(x);
    if (s.rank != 4) return NULL; // after a mistake
    x = clv_permute(x, (int[]){0, 2, 3, 1}, 4);
    x = clv_reshape(x, CLV_SHAPE(s.dims[0], s.dims[2], s.dims[3] * s.dims[1]));
    x = clv_matmul(between(graph, s.dims[2], height), x);
    x = clv_reshape(x, CLV_SHAPE(s.dims[0] * height, s.dims[3], s.dims[1]));
    x = clv_matmul(between(graph, s.dims[3], width), x);
    return clv_reshape(x, CLV_SHAPE(s.dims[0], height, width, s.dims[1]));
}

clv_tensor *clv__build_deeplabv3_mobilenet_v3_large(clv_tensor *x, const clv_model *model) {
    clv_graph *graph = clv_tensor_graph(x);
    const clv_shape shape = clv_tensor_shape(x);
    x = clv__mobilenet_v3_large_features(x, "backbone", true);
    clv_scope_push(graph, "classifier");
    clv_scope_push(graph, "0");
    x = pyramid(x);
    clv_scope_pop(graph);
    x = conv_norm(x, "1", "2", 3, 1);
    x = clv_nn_conv2d(x, "4", model->classes, &(clv_nn_conv2d_config){.kernel = {1}});
    clv_scope_pop(graph);
    return enlarge(x, shape.dims[2], shape.dims[3]);
}
