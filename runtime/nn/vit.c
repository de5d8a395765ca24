// SPDX-License-Identifier: Apache-2.0
// Vision transformer: patches of 16x16 as tokens, and one more, of which the classes are told.
// Source: Dosovitskiy et al. 2020, arXiv:2010.11929; torchvision.models.vit_b_16.
#include <math.h>
#include <stdio.h>

#include "nn/models.h"

enum { PATCH = 16, LAYERS = 12, HEADS = 12, WIDTH = 768, HIDDEN = 3072 };
static const float eps = 1e-6f;
static const clv_init zeros = {.kind = CLV_INIT_ZEROS};

/** Uniform with variance 2 / (fan_in + fan_out). */
static clv_init xavier(double in, double out) {
    const float bound = (float)sqrt(6 / (in + out));
    return (clv_init){CLV_INIT_UNIFORM, -bound, bound};
}

static clv_tensor *linear(clv_tensor *x, const char *name, int64_t in, int64_t out) {
    const clv_init weight_init = xavier((double)in, (double)out), bias_init = {CLV_INIT_NORMAL, 0, 1e-6f};
    return clv_nn_linear(x, name, out,
                         &(clv_nn_linear_config){.weight_init = &weight_init, .bias_init = &bias_init});
}

static clv_tensor *attention(clv_tensor *x) {
    clv_graph *graph = clv_tensor_graph(x);
    if (!graph) return NULL;
    clv_scope_push(graph, "self_attention");
    clv_tensor *weight =
        clv_parameter(graph, "in_proj_weight", CLV_SHAPE(3 * WIDTH, WIDTH), xavier(WIDTH, 3.0 * WIDTH));
    clv_tensor *bias = clv_parameter(graph, "in_proj_bias", CLV_SHAPE(3 * WIDTH), zeros);
    x = clv_self_attention(clv_linear(x, weight, bias), HEADS, NULL);
    x = clv_nn_linear(x, "out_proj", WIDTH, &(clv_nn_linear_config){.bias_init = &zeros});
    clv_scope_pop(graph);
    return x;
}

static clv_tensor *layer(clv_tensor *x) {
    clv_graph *graph = clv_tensor_graph(x);
    x = clv_add(attention(clv_nn_layer_norm(x, "ln_1", eps)), x);
    clv_tensor *y = clv_nn_layer_norm(x, "ln_2", eps);
    clv_scope_push(graph, "mlp");
    y = linear(clv_gelu(linear(y, "0", WIDTH, HIDDEN)), "3", HIDDEN, WIDTH);
    clv_scope_pop(graph);
    return clv_add(x, y);
}

/** [N, channels, height, width] to [N, patches, WIDTH] */
static clv_tensor *patches(clv_tensor *x) {
    const clv_shape shape = clv_tensor_shape(x);
    if (shape.rank != 4) return NULL; // after a mistake
    const clv_init init = {CLV_INIT_NORMAL, 0, (float)sqrt(1.0 / ((double)shape.dims[1] * PATCH * PATCH))};
    x = clv_nn_conv2d(x, "conv_proj", WIDTH,
                      &(clv_nn_conv2d_config){
                          .kernel = {PATCH}, .stride = {PATCH}, .weight_init = &init, .bias_init = &zeros});
    return clv_permute(clv_flatten(x, 2), (int[]){0, 2, 1}, 3);
}

clv_tensor *clv__build_vit_b_16(clv_tensor *x, const clv_model *model) {
    clv_graph *graph = clv_tensor_graph(x);
    if (!graph) return NULL;
    const int64_t n = clv_tensor_shape(x).dims[0];
    clv_tensor *token = clv_parameter(graph, "class_token", CLV_SHAPE(1, 1, WIDTH), zeros);
    token = clv_broadcast_to(token, CLV_SHAPE(n, 1, WIDTH));
    x = clv_concat((clv_tensor *[]){token, patches(x)}, 2, 1);
    const clv_shape shape = clv_tensor_shape(x);
    if (shape.rank != 3) return NULL; // after a mistake
    clv_scope_push(graph, "encoder");
    x = clv_add(x, clv_parameter(graph, "pos_embedding", CLV_SHAPE(1, shape.dims[1], WIDTH),
                                 (clv_init){CLV_INIT_NORMAL, 0, 0.02f}));
    clv_scope_push(graph, "layers");
    for (int i = 0; i < LAYERS; i++) {
        char name[32];
        snprintf(name, sizeof name, "encoder_layer_%d", i);
        clv_scope_push(graph, name);
        x = layer(x);
        clv_scope_pop(graph);
    }
    clv_scope_pop(graph);
    x = clv_nn_layer_norm(x, "ln", eps);
    clv_scope_pop(graph);
    clv_scope_push(graph, "heads");
    x = clv_nn_linear(clv_flatten(clv_slice(x, 1, 0, 1), 1), "head", clv__model_outputs(model),
                      &(clv_nn_linear_config){.weight_init = &zeros, .bias_init = &zeros});
    clv_scope_pop(graph);
    return x;
}
