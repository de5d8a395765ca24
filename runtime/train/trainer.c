// SPDX-License-Identifier: Apache-2.0
// The trainer: what it plans, before any device memory is taken. Its loop is in loop.c.
#include "train/trainer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static clv_status check_config(const clv_trainer *trainer, clv__error *error) {
    const clv_train_config *config = &trainer->config;
    if (!config->model || !config->train) CLV_FAIL(error, CLV_E_VALUE, "a trainer needs a model and a dataset");
    if (config->batch < 1) CLV_FAIL(error, CLV_E_VALUE, "a batch of %" PRId64 " samples", config->batch);
    if (config->epochs < 1) CLV_FAIL(error, CLV_E_VALUE, "%" PRId64 " epochs", config->epochs);
    if (!(config->lr > 0)) CLV_FAIL(error, CLV_E_VALUE, "a learning rate of %g", config->lr);
    if (config->steps < 0 || config->checkpoint_every < 0 || config->schedule.period < 0)
        CLV_FAIL(error, CLV_E_VALUE, "steps, checkpoint_every and the schedule's period cannot be negative");
    const clv_model *model = config->model;
    clv_shape sample = clv_dataset_sample_shape(config->train);
    if (clv_shape_numel(&sample) != model->input[0] * model->input[1] * model->input[2]) {
        char text[96];
        CLV_FAIL(error, CLV_E_SHAPE, "samples of shape %s do not fit model '%s', which wants [%" PRId64 ",%" PRId64
                 ",%" PRId64 "]", clv_shape_text(&sample, text, sizeof text), model->name, model->input[0],
                 model->input[1], model->input[2]);
    }
    if (clv_dataset_classes(config->train) > model->classes)
        CLV_FAIL(error, CLV_E_VALUE, "labels of %d classes do not fit model '%s', which has %" PRId64,
                 clv_dataset_classes(config->train), model->name, model->classes);
    return CLV_OK;
}

/** The graph of a step: model, loss, gradients, updates; and its plan. */
static clv_status build_step(clv_trainer *trainer, clv__step *step, int64_t batch) {
    const clv_train_config *config = &trainer->config;
    step->batch = batch;
    CLV_TRY(clv_graph_create(trainer->runtime, &step->graph));
    clv_graph_set_training(step->graph, true);
    step->x = clv_input(step->graph, "x", CLV_DTYPE_F32, clv_model_input_shape(config->model, batch));
    step->labels = clv_input(step->graph, "labels", CLV_DTYPE_I32, CLV_SHAPE(batch));
    clv_tensor *logits = config->model->build(step->graph, step->x, config->model->classes);
    step->loss = clv_cross_entropy(logits, step->labels);
    clv_output(step->loss, "loss");
    clv_backward(step->loss);
    for (int i = 0; config->gradients && i < clv_parameter_count(step->graph); i++) {
        clv_tensor *parameter = clv_parameter_get(step->graph, i), *gradient = clv_gradient(parameter);
        char name[640];
        snprintf(name, sizeof name, "gradient.%s", clv_tensor_name(parameter));
        if (gradient) clv_output(gradient, name);
    }
    clv_optimizer_add(step->graph, &config->optimizer);
    step->hyper = clv_optimizer_hyper(step->graph);
    clv_plan_config plan = {.device = config->device, .variants = config->variants};
    return clv_plan_create(step->graph, &plan, &step->plan);
}

/** Evaluation takes turns with training in the same memory, in batches so small that it needs no more of it. */
static clv_status build_predictor(clv_trainer *trainer) {
    const clv_train_config *config = &trainer->config;
    int64_t count = clv_dataset_count(config->test);
    uint64_t training = clv_trainer_memory(trainer).predicted_peak_bytes;
    clv_predictor_config predictor = {
        .device = config->device, .model = config->model, .variants = config->variants, .session = trainer->session};
    for (predictor.batch = count < config->batch ? count : config->batch;; predictor.batch -= (predictor.batch + 15) / 16) {
        CLV_TRY(clv_predictor_create(trainer->runtime, &predictor, &trainer->predictor));
        if (predictor.batch == 1 || clv_trainer_memory(trainer).predicted_peak_bytes <= training) return CLV_OK;
        clv_predictor_destroy(trainer->predictor);
        trainer->predictor = NULL;
    }
}

static clv_status build(clv_trainer *trainer) {
    clv_train_config *config = &trainer->config;
    CLV_TRY(check_config(trainer, clv__runtime_error_of(trainer->runtime)));
    int64_t count = clv_dataset_count(config->train), rest = count % config->batch;
    trainer->batches = (count + config->batch - 1) / config->batch;
    trainer->steps = config->steps ? config->steps : config->epochs * trainer->batches;
    config->epochs = (trainer->steps + trainer->batches - 1) / trainer->batches;
    if (!config->schedule.period && config->schedule.kind != CLV_SCHEDULE_CONSTANT)
        config->schedule.period = config->schedule.per_step ? trainer->steps : config->epochs;
    if (!config->device) CLV_TRY(clv_device_find(trainer->runtime, NULL, &config->device));
    CLV_TRY(clv_session_create(trainer->runtime, &(clv_session_config){.seed = config->seed}, &trainer->session));
    if (count >= config->batch) CLV_TRY(build_step(trainer, &trainer->step[CLV__FULL], config->batch));
    // A training that ends before the first short batch needs no plan for it.
    if (rest && trainer->steps >= trainer->batches) CLV_TRY(build_step(trainer, &trainer->step[CLV__LAST], rest));
    return config->test ? build_predictor(trainer) : CLV_OK;
}

clv_status clv_trainer_create(clv_runtime *runtime, const clv_train_config *config, clv_trainer **out) {
    *out = NULL;
    clv_trainer *trainer = clv__alloc(1, sizeof *trainer);
    if (!trainer) CLV_FAIL(clv__runtime_error_of(runtime), CLV_E_HOST_MEMORY, "no memory for a trainer");
    trainer->runtime = runtime;
    trainer->config = *config;
    if (!config->batch) trainer->config.batch = 64;
    if (!config->epochs) trainer->config.epochs = 1;
    clv_status status = build(trainer);
    if (status == CLV_OK) *out = trainer;
    else clv_trainer_destroy(trainer);
    return status;
}

void clv_trainer_destroy(clv_trainer *trainer) {
    if (!trainer) return;
    clv_predictor_destroy(trainer->predictor);
    for (int i = 0; i < CLV__STEPS; i++) {
        clv_run_destroy(trainer->step[i].run);
        clv_plan_destroy(trainer->step[i].plan);
        clv_graph_destroy(trainer->step[i].graph);
    }
    clv_session_destroy(trainer->session);
    free(trainer->times);
    free(trainer);
}

int clv__trainer_plans(const clv_trainer *trainer, clv_plan *plans[CLV__STEPS + 1]) {
    int n = 0;
    for (int i = 0; i < CLV__STEPS; i++)
        if (trainer->step[i].plan) plans[n++] = trainer->step[i].plan;
    if (trainer->predictor) plans[n++] = clv_predictor_plan(trainer->predictor);
    return n;
}

clv_plan_memory clv_trainer_memory(const clv_trainer *trainer) {
    clv_plan *plans[CLV__STEPS + 1];
    return clv_plans_memory(plans, clv__trainer_plans(trainer, plans));
}

clv_session *clv_trainer_session(const clv_trainer *trainer) {
    return trainer->session;
}

static int compare_times(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

clv_train_result clv_trainer_result(const clv_trainer *trainer) {
    clv_train_result result = trainer->result;
    double *sorted = trainer->n_times ? malloc(trainer->n_times * sizeof *sorted) : NULL;
    if (sorted) {
        for (size_t i = 0; i < trainer->n_times; i++) sorted[i] = trainer->times[i];
        qsort(sorted, trainer->n_times, sizeof *sorted, compare_times);
        result.step_ms = 1e3 * (sorted[(trainer->n_times - 1) / 2] + sorted[trainer->n_times / 2]) / 2;
    }
    free(sorted);
    return result;
}
