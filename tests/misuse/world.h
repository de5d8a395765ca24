// SPDX-License-Identifier: Apache-2.0
// One object of each kind, on the host: what the tests here misuse.
#ifndef CLV_TESTS_MISUSE_WORLD_H
#define CLV_TESTS_MISUSE_WORLD_H

#include "cleave/cleave.h"
#include "harness/harness.h"

enum { ROWS = 4, SAMPLES = 16 };

typedef struct world {
    clv_runtime *runtime;
    clv_device *host;
    clv_graph *graph;
    clv_tensor *x, *labels, *loss;
    clv_plan *plan;
    clv_session *session;
    clv_run *run;
    clv_archive *archive;
    clv_dataset *dataset;
    clv_loader *loader;
    clv_predictor *predictor;
    clv_trainer *trainer;
    clv_profile *profile;
} world;

static clv_tensor *net(clv_tensor *x, const clv_model *model) {
    x = clv_relu(clv_nn_linear(clv_flatten(x, 1), "fc1", 8, NULL));
    return clv_nn_linear(clv_dropout(x, 0.1f), "fc2", model->classes, NULL);
}

static const clv_model model = {.name = "net", .build = net, .input = {1, 2, 3}, .classes = 3};

/** Graph, plan, session and run of a training step of the model. */
static inline void world_train(world *w) {
    w->graph = clv__test_graph(w->runtime);
    clv_graph_set_training(w->graph, true);
    w->x = clv_input(w->graph, "x", CLV_DTYPE_F32, CLV_SHAPE(ROWS, 1, 2, 3));
    w->labels = clv_input(w->graph, "labels", CLV_DTYPE_I32, CLV_SHAPE(ROWS));
    w->loss = clv_cross_entropy(net(w->x, &model), w->labels);
    clv_output(w->loss, "loss");
    clv_backward(w->loss);
    clv_optimizer_add(w->graph, &(clv_optimizer_config){.momentum = 0.9f});
    w->plan = clv__test_plan(w->runtime, w->graph, &(clv_plan_config){.device = w->host});
    w->session = clv__test_session(w->runtime, &(clv_session_config){.seed = 1});
    w->run = clv__test_run(w->runtime, w->session, w->plan);
}

/** One step over numbers that `at` chooses; its loss. */
static inline float world_step(world *w, int at) {
    float x[ROWS * 6], loss = 0;
    int32_t labels[ROWS];
    for (int i = 0; i < ROWS * 6; i++) x[i] = (float)((i * 7 + at) % 13) / 13;
    for (int i = 0; i < ROWS; i++) labels[i] = (i + at) % 3;
    clv_feed feeds[] = {{w->x, x, sizeof x}, {w->labels, labels, sizeof labels}};
    clv_fetch fetches[] = {{w->loss, &loss, sizeof loss}};
    assert_status(clv_run_do(w->run, &(clv_step){feeds, 2, 0.05, fetches, 1}), CLV_OK, w->runtime);
    return loss;
}

static inline void world_untrain(world *w) {
    clv__test_end(w->run, w->session, w->plan, w->graph);
}

static inline void world_begin(world *w) {
    *w = (world){.runtime = clv__test_runtime(&(clv_runtime_config){.no_opencl = true})};
    w->host = clv__test_device(w->runtime, "host");
    world_train(w);
    w->archive = clv__test_archive(w->runtime);
    clv_shape shape = CLV_SHAPE(SAMPLES, 1, 2, 3), rows = CLV_SHAPE(SAMPLES);
    clv_array images, labels;
    assert_status(clv_array_init(w->runtime, CLV_DTYPE_F32, &shape, &images), CLV_OK, w->runtime);
    assert_status(clv_array_init(w->runtime, CLV_DTYPE_I32, &rows, &labels), CLV_OK, w->runtime);
    clv_dataset_config three = {.classes = 3};
    assert_status(clv_dataset_from_arrays(w->runtime, &images, &labels, &three, &w->dataset), CLV_OK,
                  w->runtime);
    clv_array_reset(&images), clv_array_reset(&labels);
    assert_status(clv_loader_create(w->runtime, w->dataset, &(clv_loader_config){.batch = ROWS}, &w->loader),
                  CLV_OK, w->runtime);
    w->profile = clv__test_profile(w->runtime, NULL);
    clv_predictor_config predict = {.model = &model, .device = w->host, .batch = ROWS};
    w->predictor = clv__test_predictor(w->runtime, &predict);
    clv_train_config train = {
        .model = &model, .train = w->dataset, .device = w->host, .batch = ROWS, .steps = 3, .lr = 0.1};
    w->trainer = clv__test_trainer(w->runtime, &train);
}

static inline void world_end(world *w) {
    clv_trainer_destroy(w->trainer);
    clv_predictor_destroy(w->predictor);
    clv_profile_destroy(w->profile);
    clv_loader_destroy(w->loader);
    clv_dataset_destroy(w->dataset);
    clv_archive_destroy(w->archive);
    world_untrain(w);
    clv_runtime_destroy(w->runtime);
}

#endif
