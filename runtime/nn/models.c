// SPDX-License-Identifier: Apache-2.0
// The models of models.def: what each is made of, and the table.
#include "cleave/nn.h"

#include <stddef.h>
#include <string.h>

static clv_tensor *build_linear(clv_graph *graph, clv_tensor *x, int64_t classes) {
    (void)graph;
    return clv_nn_linear(clv_flatten(x, 1), "fc", classes, NULL);
}

static clv_tensor *build_mlp(clv_graph *graph, clv_tensor *x, int64_t classes) {
    (void)graph;
    x = clv_relu(clv_nn_linear(clv_flatten(x, 1), "fc1", 128, NULL));
    return clv_nn_linear(x, "fc2", classes, NULL);
}

// The network of PyTorch's MNIST example (pytorch/examples, mnist/main.py), which gives logits here.
static clv_tensor *build_cnn(clv_graph *graph, clv_tensor *x, int64_t classes) {
    (void)graph;
    const clv_nn_conv2d_config conv3x3 = {.kernel = {3, 3}};
    const clv_pool2d_config pool2 = {.kernel = {2, 2}};
    x = clv_relu(clv_nn_conv2d(x, "conv1", 32, &conv3x3));
    x = clv_relu(clv_nn_conv2d(x, "conv2", 64, &conv3x3));
    x = clv_nn_dropout(clv_max_pool2d(x, &pool2), 0.25f);
    x = clv_relu(clv_nn_linear(clv_flatten(x, 1), "fc1", 128, NULL));
    return clv_nn_linear(clv_nn_dropout(x, 0.5f), "fc2", classes, NULL);
}

static const clv_model models[] = {
#define X(name, build, channels, height, width, classes, text)                                                       \
    {#name, text, build, {channels, height, width}, classes},
#include "models.def"
#undef X
};

int clv_model_count(void) {
    return (int)(sizeof models / sizeof *models);
}

const clv_model *clv_model_get(int index) {
    return index >= 0 && index < clv_model_count() ? &models[index] : NULL;
}

const clv_model *clv_model_find(const char *name) {
    for (int i = 0; name && i < clv_model_count(); i++)
        if (!strcmp(models[i].name, name)) return &models[i];
    return NULL;
}

clv_shape clv_model_input_shape(const clv_model *model, int64_t n) {
    return CLV_SHAPE(n, model->input[0], model->input[1], model->input[2]);
}
