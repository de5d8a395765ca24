// SPDX-License-Identifier: Apache-2.0
// The models of models.def: what each is made of, and the table.
// Larger families have files of their own.
#include "nn/models.h"

#include "base/registry.h"
#include "device/device.h"
#include "nn/ports.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

clv_tensor *clv__conv_dilated(clv_tensor *x, const char *name, int64_t out_channels, int kernel, int stride,
                              int padding, int dilation, int groups, bool bias) {
    float std = (float)sqrt(2.0 / ((double)out_channels * kernel * kernel));
    const clv_init weight_init = {CLV_INIT_NORMAL, 0, std}, bias_init = {.kind = CLV_INIT_ZEROS};
    const clv_nn_conv2d_config config = {.kernel = {kernel},
                                         .stride = {stride},
                                         .padding = {padding, padding},
                                         .dilation = {dilation},
                                         .groups = groups,
                                         .no_bias = !bias,
                                         .weight_init = &weight_init,
                                         .bias_init = &bias_init};
    return clv_nn_conv2d(x, name, out_channels, &config);
}

clv_tensor *clv__conv_fan_out(clv_tensor *x, const char *name, int64_t out_channels, int kernel, int stride,
                              int padding, int groups, bool bias) {
    return clv__conv_dilated(x, name, out_channels, kernel, stride, padding, 1, groups, bias);
}

clv_tensor *clv__pad_zeros(clv_tensor *x, int axis, int64_t before, int64_t after) {
    clv_graph *graph = clv_tensor_graph(x);
    clv_shape shape = clv_tensor_shape(x);
    clv_tensor *parts[3];
    int n = 0;
    if (!graph || (before == 0 && after == 0)) return x;
    shape.dims[axis] = before;
    if (before) parts[n++] = clv_full(graph, clv_tensor_dtype(x), shape, 0);
    parts[n++] = x;
    shape.dims[axis] = after;
    if (after) parts[n++] = clv_full(graph, clv_tensor_dtype(x), shape, 0);
    return clv_concat(parts, n, axis);
}

clv_tensor *clv__linear_small(clv_tensor *x, const char *name, int64_t out_features) {
    const clv_init weight_init = {CLV_INIT_NORMAL, 0, 0.01f}, bias_init = {.kind = CLV_INIT_ZEROS};
    return clv_nn_linear(x, name, out_features,
                         &(clv_nn_linear_config){.weight_init = &weight_init, .bias_init = &bias_init});
}

int64_t clv__model_outputs(const clv_model *model) {
    const clv_shape targets = clv__model_target_shape(model, 1);
    return model->classes ? model->classes : clv_shape_numel(&targets);
}

void clv__scope_push_index(clv_graph *graph, int index) {
    char name[16];
    snprintf(name, sizeof name, "%d", index);
    clv_scope_push(graph, name);
}

clv_tensor *clv__build_linear(clv_tensor *x, const clv_model *model) {
    return clv_nn_linear(clv_flatten(x, 1), "fc", clv__model_outputs(model), NULL);
}

clv_tensor *clv__build_mlp(clv_tensor *x, const clv_model *model) {
    x = clv_relu(clv_nn_linear(clv_flatten(x, 1), "fc1", 128, NULL));
    return clv_nn_linear(x, "fc2", clv__model_outputs(model), NULL);
}

// The network of PyTorch's MNIST example (pytorch/examples, mnist/main.py), which gives logits here.
clv_tensor *clv__build_cnn(clv_tensor *x, const clv_model *model) {
    const clv_nn_conv2d_config conv3x3 = {.kernel = {3, 3}};
    const clv_pool2d_config pool2 = {.kernel = {2, 2}};
    x = clv_relu(clv_nn_conv2d(x, "conv1", 32, &conv3x3));
    x = clv_relu(clv_nn_conv2d(x, "conv2", 64, &conv3x3));
    x = clv_nn_dropout(clv_max_pool2d(x, &pool2), 0.25f);
    x = clv_relu(clv_nn_linear(clv_flatten(x, 1), "fc1", 128, NULL));
    return clv_nn_linear(clv_nn_dropout(x, 0.5f), "fc2", clv__model_outputs(model), NULL);
}

static const clv_port bert_inputs[] = {{.name = "input_ids", .dtype = CLV_DTYPE_I32, .dims = {128}},
                                       {.name = "attention_mask", .dtype = CLV_DTYPE_I32, .dims = {128}},
                                       {.name = "token_type_ids", .dtype = CLV_DTYPE_I32, .dims = {128}}};
static const clv_port bert_targets[] = {{.name = "labels", .classes = 2}};

static const clv_model models[] = {
#define PICTURES(id, function, channels, height, width, n_classes, about)                                    \
    .name = #id, .text = about, .build = clv__##function, .input = {channels, height, width},                \
    .classes = n_classes
#define X(id, ...) {PICTURES(id, __VA_ARGS__)},
#define A(id, ...) {PICTURES(id, __VA_ARGS__), .any_shape = true},
#define P(id, function, channels, height, width, n_classes, about)                                           \
    {PICTURES(id, function, channels, height, width, n_classes, about), .target = {height, width}},
#define T(id, function, tokens, vocabulary, about)                                                           \
    {.name = #id,                                                                                            \
     .text = about,                                                                                          \
     .build = clv__##function,                                                                               \
     .input = {tokens},                                                                                      \
     .classes = vocabulary,                                                                                  \
     .dtype = CLV_DTYPE_I32,                                                                                 \
     .target = {tokens},                                                                                     \
     .takes_sizes = true},
#define M(id, function, ports, about)                                                                        \
    {.name = #id,                                                                                            \
     .text = about,                                                                                          \
     .build_all = clv__##function,                                                                           \
     .inputs = ports##_inputs,                                                                               \
     .n_inputs = sizeof ports##_inputs / sizeof *ports##_inputs,                                             \
     .targets = ports##_targets,                                                                             \
     .n_targets = sizeof ports##_targets / sizeof *ports##_targets,                                          \
     .any_shape = true,                                                                                      \
     .takes_sizes = true},
#include "models.def"
#undef M
#undef T
#undef P
#undef A
#undef X
#undef PICTURES
};

const clv_model *clv_model_get(int index) {
    return index >= 0 && index < (int)(sizeof models / sizeof *models) ? &models[index] : NULL;
}

static clv__registry registered = CLV__REGISTRY("model");

const clv_model *clv_model_find(const char *name) {
    for (int i = 0; name && clv_model_get(i); i++)
        if (!strcmp(models[i].name, name)) return &models[i];
    return clv__registry_find(&registered, name);
}

clv_status clv_model_register(clv_runtime *runtime, const clv_model *model) {
    bool brought = false;
    CLV_TRY(CLV__GIVEN(NULL, runtime));
    clv__error *error = clv__runtime_error_of(runtime);
    CLV_TRY(CLV__GIVEN(error, model));
    CLV_TRY(clv__model_check(error, model));
    for (int i = 0; model->name && clv_model_get(i); i++) brought |= !strcmp(models[i].name, model->name);
    return clv__registry_add(&registered, error, model->name, brought, model);
}
