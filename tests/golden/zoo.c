// SPDX-License-Identifier: Apache-2.0
// The models of torchvision against torchvision: names, shapes and order of everything saved, logits, some gradients.
// See make_zoo.py.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleave/nn.h"
#include "cleave/train.h"
#include "golden/golden.h"

GOLDEN_OPEN(zoo)

/** The k-th tensor's values by the formula of make_zoo.py. */
static void fill(int k, const clv_tensor *tensor, float *values) {
    const clv_shape *shape = &tensor->desc.shape;
    const int64_t n = clv_tensor_numel(tensor);
    const char *last = strrchr(tensor->name, '.');
    const bool kernel = shape->rank > 1,
               one = !kernel && (strcmp(last, ".weight") == 0 || strcmp(last, ".running_var") == 0);
    const double scale = kernel ? sqrt(24.0 / (double)(n / shape->dims[0])) : 0.2;
    for (int64_t i = 0; i < n; i++) {
        double u = (double)((i * 7919 + (k + 1) * (int64_t)104729) % 2003) / 2003 - 0.5;
        values[i] = (float)(scale * u + one);
    }
}

static void like_torchvision(void **state, const char *name, bool gradients, bool devices) {
    golden *g = golden_begin(state, name);
    clv_tensor *x = golden_input(g, "x");
    const clv_model ten = clv_model_for(clv_model_find(name), 0, 0, 0, 10);
    clv_tensor *logits = clv_model_build(&ten, x);
    const clv_loss *loss = clv_loss_find("cross_entropy");
    if (gradients) golden_expect(g, loss->build(logits, golden_input(g, "labels"), loss), "loss");
    golden_expect(g, logits, "logits");
    golden_prepare(g);
    int k = 0;
    for (size_t t = 0; t < g->graph->n_tensors; t++) {
        clv_tensor *tensor = g->graph->tensors[t];
        if (tensor->kind != CLV__PERSISTENT || tensor->values) continue; // a constant has its own
        float *values = malloc(clv_tensor_bytes(tensor));
        assert_non_null(values);
        fill(k, tensor, values);
        golden_set(g, tensor, values);
        free(values);
        k++;
    }
    assert_int_equal(g->subject.n_targets > 2, gradients);
    if (devices) golden_on_devices(g);
    golden_end(g);
}

TEST(resnet20) {
    like_torchvision(state, "resnet20", true, true);
}

TEST(resnet18) {
    like_torchvision(state, "resnet18", true, true);
}

TEST(mobilenet_v2) {
    like_torchvision(state, "mobilenet_v2", true, true);
}

// 1x1 pixels are left before the classifier: adaptive pooling widens them to 7x7. A gigabyte of doubles: once is enough.
TEST(vgg11) {
    like_torchvision(state, "vgg11", false, false);
}

/** Programs of a model take a driver many seconds: with a number in CLEAVE_TURN one of eight runs on devices, and all on the host. */
static bool in_turn(long i) {
    const char *turn = getenv("CLEAVE_TURN");
    return !turn || !*turn || strtol(turn, NULL, 10) % 8 == i;
}

TEST(mobilenet_v3_small) {
    like_torchvision(state, "mobilenet_v3_small", true, in_turn(0));
}

TEST(efficientnet_b0) {
    like_torchvision(state, "efficientnet_b0", true, in_turn(1));
}

TEST(squeezenet1_1) {
    like_torchvision(state, "squeezenet1_1", true, in_turn(2));
}

TEST(shufflenet_v2_x1_0) {
    like_torchvision(state, "shufflenet_v2_x1_0", true, in_turn(3));
}

TEST(densenet121) {
    like_torchvision(state, "densenet121", true, in_turn(4));
}

TEST(regnet_y_400mf) {
    like_torchvision(state, "regnet_y_400mf", true, in_turn(5));
}

TEST(convnext_tiny) {
    like_torchvision(state, "convnext_tiny", true, in_turn(6));
}

TEST(vit_b_16) {
    like_torchvision(state, "vit_b_16", true, in_turn(7));
}

TEST(swin_t) {
    like_torchvision(state, "swin_t", true, in_turn(0));
}

TEST(deeplabv3_mobilenet_v3_large) {
    like_torchvision(state, "deeplabv3_mobilenet_v3_large", true, in_turn(1));
}

TEST(unet) {
    like_torchvision(state, "unet", true, in_turn(2));
}

/** The next parameter or buffer from *at on, in the order they were made; constants are none. */
static const clv_tensor *next_saved(const clv_graph *graph, size_t *at) {
    while (*at < graph->n_tensors) {
        const clv_tensor *tensor = graph->tensors[(*at)++];
        if (tensor->kind == CLV__PERSISTENT && !tensor->values) return tensor;
    }
    return NULL;
}

/** Every line of zoo.txt is `model name dims...`, models one after another, in the order of their state_dict. */
TEST(names_and_shapes) {
    golden *g = *state;
    char line[256], model[64] = "";
    clv_graph *graph = NULL;
    size_t at = 0;
    int n_models = 0;
    FILE *file = fopen(CLV_TEST_SOURCE_DIR "/tests/golden/zoo.txt", "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        char *rest, *of = strtok_r(line, " \n", &rest), *name = strtok_r(NULL, " \n", &rest), *dim;
        assert_non_null(name);
        if (strcmp(of, model) != 0) {
            const clv_model *found = clv_model_find(of);
            if (!found) fail_msg("there is no model %s", of);
            if (graph) assert_null(next_saved(graph, &at));
            clv_graph_destroy(graph);
            graph = clv__test_graph(g->runtime);
            clv_tensor *x = clv_model_input(graph, found, 1);
            if (!clv_model_build(found, x)) {
                (void)!clv_graph_status(graph);
                fail_msg("%s: %s", of, clv_runtime_error(g->runtime));
            }
            snprintf(model, sizeof model, "%s", of);
            at = 0;
            n_models++;
        }
        const clv_tensor *tensor = next_saved(graph, &at);
        if (!tensor) fail_msg("%s has no %s", of, name);
        assert_string_equal(tensor->name, name);
        clv_shape want = {0};
        while ((dim = strtok_r(NULL, " \n", &rest)) && want.rank < CLV_MAX_RANK)
            want.dims[want.rank++] = atoll(dim);
        if (!clv_shape_equal(&want, &tensor->desc.shape)) fail_msg("%s: %s has another shape", of, name);
    }
    assert_null(next_saved(graph, &at));
    assert_int_equal(n_models, 21);
    clv_graph_destroy(graph);
    fclose(file);
}

TEST_MAIN(golden_open_zoo, golden_close)
