// SPDX-License-Identifier: Apache-2.0
// Layers: each makes its parameters under its name and calls the op. Public API, but for the names.
// First values follow PyTorch's reset_parameters: kaiming_uniform(a = sqrt(5)) is uniform within 1/sqrt(fan_in), and
// the bias has the same bound (torch.nn.Linear, torch.nn.modules.conv, release 2.0).
#include "cleave/nn.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "cleave/ops.h"
#include "data/dataset.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "tensor/dtype.h"

static clv_init bounded_by_fan_in(int64_t fan_in) {
    float bound = fan_in > 0 ? (float)(1.0 / sqrt((double)fan_in)) : 0.0f;
    return (clv_init){CLV_INIT_UNIFORM, -bound, bound};
}

/** A dimension, or 1 where x has no such dimension: the op then reports the rank with layer and shapes. */
static int64_t dim_or_1(const clv_shape *shape, int axis) {
    return axis >= 0 && axis < shape->rank ? shape->dims[axis] : 1;
}

/** What a layer makes or takes so many of: at least one. Else the graph has the mistake, and false. */
static bool enough(clv_graph *graph, const char *layer, const char *name, const char *what, int64_t n) {
    if (n < 1)
        clv__graph_fail(graph, CLV_E_VALUE, "%s '%s': %s is %lld, it must be at least 1", layer,
                        name ? name : "", what, (long long)n);
    return n >= 1;
}

clv_tensor *clv_nn_linear(clv_tensor *x, const char *name, int64_t out_features,
                          const clv_nn_linear_config *config) {
    clv_graph *graph = clv_tensor_graph(x);
    if (!graph) return NULL;
    clv_shape shape = clv_tensor_shape(x);
    int64_t in_features = dim_or_1(&shape, shape.rank - 1);
    static const clv_nn_linear_config defaults;
    if (!config) config = &defaults;
    clv_init init = bounded_by_fan_in(in_features);
    if (!enough(graph, "linear", name, "out_features", out_features)) return NULL;
    if (!clv__layer_push(graph, name, "weight")) return NULL;
    clv_tensor *weight = clv_parameter(graph, "weight", CLV_SHAPE(out_features, in_features),
                                       config->weight_init ? *config->weight_init : init);
    clv_tensor *bias = config->no_bias ? NULL
                                       : clv_parameter(graph, "bias", CLV_SHAPE(out_features),
                                                       config->bias_init ? *config->bias_init : init);
    clv_tensor *y = clv_linear(x, weight, bias);
    clv_scope_pop(graph);
    return y;
}

/** Copy a pair; a second value of zero means the same as the first. */
static void pair(int out[2], const int in[2]) {
    out[0] = in[0];
    out[1] = in[1] ? in[1] : in[0];
}

clv_tensor *clv_nn_conv2d(clv_tensor *x, const char *name, int64_t out_channels,
                          const clv_nn_conv2d_config *config) {
    clv_graph *graph = clv_tensor_graph(x);
    if (!graph) return NULL;
    static const clv_nn_conv2d_config defaults;
    if (!config) config = &defaults;
    clv_shape shape = clv_tensor_shape(x);
    if (!enough(graph, "conv2d", name, "out_channels", out_channels) ||
        !enough(graph, "conv2d", name, "groups", config->groups ? config->groups : 1) ||
        !enough(graph, "conv2d", name, "kernel", config->kernel[0]))
        return NULL;
    clv_conv2d_config conv = {.groups = config->groups ? config->groups : 1,
                              .padding = {config->padding[0], config->padding[1]}};
    int kernel[2];
    pair(kernel, config->kernel);
    pair(conv.stride, config->stride);
    pair(conv.dilation, config->dilation);
    int64_t channels = dim_or_1(&shape, 1) / conv.groups;
    clv_init init = bounded_by_fan_in(channels * kernel[0] * kernel[1]);
    if (!clv__layer_push(graph, name, "weight")) return NULL;
    clv_tensor *weight =
        clv_parameter(graph, "weight", CLV_SHAPE(out_channels, channels, kernel[0], kernel[1]),
                      config->weight_init ? *config->weight_init : init);
    clv_tensor *bias = config->no_bias ? NULL
                                       : clv_parameter(graph, "bias", CLV_SHAPE(out_channels),
                                                       config->bias_init ? *config->bias_init : init);
    clv_tensor *y = clv_conv2d(x, weight, bias, &conv);
    clv_scope_pop(graph);
    return y;
}

clv_tensor *clv_nn_conv_transpose2d(clv_tensor *x, const char *name, int64_t out_channels,
                                    const clv_nn_conv_transpose2d_config *config) {
    clv_graph *graph = clv_tensor_graph(x);
    if (!graph) return NULL;
    static const clv_nn_conv_transpose2d_config defaults;
    if (!config) config = &defaults;
    const clv_shape shape = clv_tensor_shape(x);
    const int groups = config->groups ? config->groups : 1;
    if (!enough(graph, "conv_transpose2d", name, "out_channels", out_channels) ||
        !enough(graph, "conv_transpose2d", name, "groups", groups) ||
        !enough(graph, "conv_transpose2d", name, "kernel", config->kernel[0]))
        return NULL;
    if (out_channels % groups != 0)
        return clv__graph_fail(graph, CLV_E_VALUE,
                               "conv_transpose2d '%s': groups %d does not divide %lld output channels",
                               name ? name : "", groups, (long long)out_channels);
    clv_conv_transpose2d_config conv = {.groups = groups};
    int kernel[2];
    pair(kernel, config->kernel);
    pair(conv.stride, config->stride);
    pair(conv.dilation, config->dilation);
    for (int d = 0; d < 2; d++) {
        conv.padding[d] = config->padding[d];
        conv.output_padding[d] = config->output_padding[d];
    }
    const int64_t each = out_channels / groups;
    const clv_init init = bounded_by_fan_in(each * kernel[0] * kernel[1]);
    if (!clv__layer_push(graph, name, "weight")) return NULL;
    clv_tensor *weight =
        clv_parameter(graph, "weight", CLV_SHAPE(dim_or_1(&shape, 1), each, kernel[0], kernel[1]),
                      config->weight_init ? *config->weight_init : init);
    clv_tensor *bias = config->no_bias ? NULL
                                       : clv_parameter(graph, "bias", CLV_SHAPE(out_channels),
                                                       config->bias_init ? *config->bias_init : init);
    clv_tensor *y = clv_conv_transpose2d(x, weight, bias, &conv);
    clv_scope_pop(graph);
    return y;
}

clv_tensor *clv_nn_batch_norm(clv_tensor *x, const char *name, const clv_nn_batch_norm_config *config) {
    clv_graph *graph = clv_tensor_graph(x);
    if (!graph) return NULL;
    static const clv_nn_batch_norm_config defaults;
    if (!config) config = &defaults;
    clv_shape shape = clv_tensor_shape(x);
    clv_shape channels = CLV_SHAPE(dim_or_1(&shape, 1));
    clv_init zeros = {.kind = CLV_INIT_ZEROS}, ones = {.kind = CLV_INIT_ONES};
    if (!clv__layer_push(graph, name, "running_mean")) return NULL;
    clv_tensor *weight = config->no_affine ? NULL : clv_parameter(graph, "weight", channels, ones);
    clv_tensor *bias = config->no_affine ? NULL : clv_parameter(graph, "bias", channels, zeros);
    clv_tensor *mean = clv_buffer(graph, "running_mean", CLV_DTYPE_F32, channels, zeros);
    clv_tensor *var = clv_buffer(graph, "running_var", CLV_DTYPE_F32, channels, ones);
    clv_tensor *y = clv_batch_norm(x, weight, bias, mean, var, clv__graph_training(graph),
                                   config->momentum != 0 ? config->momentum : 0.1f,
                                   config->eps != 0 ? config->eps : 1e-5f);
    clv_scope_pop(graph);
    return y;
}

clv_tensor *clv_nn_layer_norm(clv_tensor *x, const char *name, float eps) {
    clv_graph *graph = clv_tensor_graph(x);
    if (!graph) return NULL;
    clv_shape shape = clv_tensor_shape(x);
    clv_shape features = CLV_SHAPE(dim_or_1(&shape, shape.rank - 1));
    if (!clv__layer_push(graph, name, "weight")) return NULL;
    clv_tensor *weight = clv_parameter(graph, "weight", features, (clv_init){.kind = CLV_INIT_ONES});
    clv_tensor *bias = clv_parameter(graph, "bias", features, (clv_init){.kind = CLV_INIT_ZEROS});
    clv_tensor *y = clv_layer_norm(x, weight, bias, eps != 0 ? eps : 1e-5f);
    clv_scope_pop(graph);
    return y;
}

clv_tensor *clv_nn_rms_norm(clv_tensor *x, const char *name, float eps) {
    clv_graph *graph = clv_tensor_graph(x);
    if (!graph) return NULL;
    clv_shape shape = clv_tensor_shape(x);
    clv_shape features = CLV_SHAPE(dim_or_1(&shape, shape.rank - 1));
    if (!clv__layer_push(graph, name, "weight")) return NULL;
    clv_tensor *weight = clv_parameter(graph, "weight", features, (clv_init){.kind = CLV_INIT_ONES});
    clv_tensor *y = clv_rms_norm(x, weight, eps != 0 ? eps : 0x1p-23f);
    clv_scope_pop(graph);
    return y;
}

clv_tensor *clv_nn_embedding(clv_tensor *indices, const char *name, int64_t rows, int64_t features,
                             const clv_init *init) {
    clv_graph *graph = clv_tensor_graph(indices);
    if (!graph) return NULL;
    if (!enough(graph, "embedding", name, "rows", rows) ||
        !enough(graph, "embedding", name, "features", features) || !clv__layer_push(graph, name, "weight"))
        return NULL;
    clv_tensor *weight = clv_parameter(graph, "weight", CLV_SHAPE(rows, features),
                                       init ? *init : (clv_init){CLV_INIT_NORMAL, 0, 1});
    clv_tensor *y = clv_embedding(weight, indices);
    clv_scope_pop(graph);
    return y;
}

typedef clv_tensor *recurrent_op(clv_tensor *x, clv_tensor *lengths, clv_tensor *const *weights,
                                 int n_weights, const clv_recurrent_config *config,
                                 clv_recurrent_state *state);

/** The weights of all layers and directions, each with so many gates; how many there are. */
static int recurrent_weights(clv_graph *graph, int64_t features, int64_t rows, int64_t hidden,
                             const clv_recurrent_config *config, clv_tensor **weights) {
    static const char *const parts[] = {"weight_ih", "weight_hh", "bias_ih", "bias_hh"};
    const int directions = config->bidirectional ? 2 : 1, each = config->no_bias ? 2 : 4;
    const clv_init init = bounded_by_fan_in(hidden);
    int n = 0;
    for (int64_t layer = 0; layer < config->layers; layer++) {
        for (int d = 0; d < directions; d++) {
            for (int k = 0; k < each; k++) {
                char name[64];
                snprintf(name, sizeof name, "%s_l%lld%s", parts[k], (long long)layer, d ? "_reverse" : "");
                const int64_t columns = k == 1 ? hidden : layer ? directions * hidden : features;
                weights[n++] =
                    clv_parameter(graph, name, k < 2 ? CLV_SHAPE(rows, columns) : CLV_SHAPE(rows), init);
            }
        }
    }
    return n;
}

static clv_tensor *recurrent(const char *layer, recurrent_op *op, int gates, clv_tensor *x,
                             clv_tensor *lengths, const char *name, int64_t hidden,
                             const clv_recurrent_config *config, clv_recurrent_state *state) {
    enum { MOST_LAYERS = 64 };
    clv_tensor *weights[MOST_LAYERS * 2 * 4];
    clv_graph *graph = clv_tensor_graph(x);
    clv_recurrent_config own = config ? *config : (clv_recurrent_config){0};
    if (!graph) {
        if (state) *state = (clv_recurrent_state){0};
        return NULL;
    }
    const clv_shape shape = clv_tensor_shape(x);
    own.layers = own.layers ? own.layers : 1;
    own.dropout = clv__graph_dropout(graph, own.dropout);
    if (!enough(graph, layer, name, "hidden", hidden) || !clv__layer_push(graph, name, "weight_ih_l0")) {
        if (state) *state = (clv_recurrent_state){0};
        return NULL;
    }
    const bool fits =
        shape.rank == 3 && own.layers > 0 && own.layers <= MOST_LAYERS; // else the op says what is wrong
    const int n = fits ? recurrent_weights(graph, shape.dims[2], gates * hidden, hidden, &own, weights) : 0;
    clv_tensor *y = op(x, lengths, weights, n, &own, state);
    clv_scope_pop(graph);
    return y;
}

clv_tensor *clv_nn_lstm(clv_tensor *x, clv_tensor *lengths, const char *name, int64_t hidden,
                        const clv_recurrent_config *config, clv_recurrent_state *state) {
    return recurrent("lstm", clv_lstm, 4, x, lengths, name, hidden, config, state);
}

clv_tensor *clv_nn_gru(clv_tensor *x, clv_tensor *lengths, const char *name, int64_t hidden,
                       const clv_recurrent_config *config, clv_recurrent_state *state) {
    return recurrent("gru", clv_gru, 3, x, lengths, name, hidden, config, state);
}

clv_tensor *clv_nn_rnn(clv_tensor *x, clv_tensor *lengths, const char *name, int64_t hidden,
                       const clv_recurrent_config *config, clv_recurrent_state *state) {
    return recurrent("rnn", clv_rnn, 1, x, lengths, name, hidden, config, state);
}

clv_tensor *clv_nn_normalize(clv_tensor *x, const float *mean, const float *std, int channels) {
    enum { MOST = 4096, BYTES = 256 };
    clv_graph *graph = clv_tensor_graph(x);
    if (!graph) return NULL;
    if (channels < 1 || channels > MOST)
        return clv__graph_fail(graph, CLV_E_VALUE, "normalize '%s': %d channels; 1 to %d are possible",
                               clv_tensor_name(x), channels, MOST);
    for (int c = 0; c < channels; c++)
        if ((std && !(std[c] > 0 && std[c] <= FLT_MAX)) || (mean && !(fabsf(mean[c]) <= FLT_MAX)))
            return clv__graph_fail(
                graph, CLV_E_VALUE,
                "normalize '%s': channel %d has mean %g and std %g: std must be above 0, both finite",
                clv_tensor_name(x), c, mean ? (double)mean[c] : 0, std ? (double)std[c] : 1);
    float *values = clv__alloc((size_t)channels * BYTES, sizeof *values);
    if (!values)
        return clv__graph_fail(graph, CLV_E_HOST_MEMORY, "no host memory to normalize '%s'",
                               clv_tensor_name(x));
    for (int c = 0; c < channels; c++)
        clv__scale_bytes(mean ? mean[c] : 0, std ? std[c] : 1, values + (size_t)c * BYTES);
    clv_tensor *table = clv_constant(graph, CLV_DTYPE_F32, CLV_SHAPE(channels, BYTES), values);
    free(values);
    return clv_lookup(x, table);
}

clv_tensor *clv_nn_label_weights(clv_tensor *labels, const float *class_weights, int64_t classes,
                                 int32_t ignore_index) {
    clv_graph *graph = clv_tensor_graph(labels);
    if (!graph) return NULL;
    const clv_shape shape = clv_tensor_shape(labels), none = clv_shape_make(0, NULL);
    for (int64_t c = 0; class_weights && c < classes; c++)
        if (!(class_weights[c] >= 0 && class_weights[c] <= FLT_MAX))
            return clv__graph_fail(graph, CLV_E_VALUE,
                                   "the weight of class %lld is %g: it must be finite, and at least 0",
                                   (long long)c, (double)class_weights[c]);
    const int32_t ignored = ignore_index;
    if (!clv__is_float(clv_tensor_dtype(labels))) labels = clv_cast(labels, CLV_DTYPE_I32);
    clv_tensor *zero = clv_full(graph, CLV_DTYPE_F32, none, 0),
               *one = clv_full(graph, CLV_DTYPE_F32, none, 1);
    clv_tensor *is_ignored = clv_eq(labels, clv_full(graph, CLV_DTYPE_I32, none, (float)ignored)),
               *weight = one;
    if (class_weights) {
        clv_tensor *known = clv_where(is_ignored, clv_full(graph, CLV_DTYPE_I32, none, 0), labels);
        clv_tensor *table = clv_constant(graph, CLV_DTYPE_F32, CLV_SHAPE(classes, 1), class_weights);
        weight = clv_reshape(clv_embedding(table, known), shape);
    }
    weight = clv_where(is_ignored, zero, weight);
    clv_tensor *sum = clv_sum(weight, NULL, 0, false);
    sum = clv_where(clv_eq(sum, zero), one, sum);
    return clv_div(clv_mul_scalar(weight, (float)clv_shape_numel(&shape)), sum);
}

clv_tensor *clv_nn_dropout(clv_tensor *x, float p) {
    clv_graph *graph = clv_tensor_graph(x);
    p = clv__graph_dropout(graph, p);
    return graph && clv__graph_training(graph) ? clv_dropout(x, p) : x;
}
