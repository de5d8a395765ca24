// SPDX-License-Identifier: Apache-2.0
// The graph of a training step and its plan: on one device, with layers placed, or replicated; and how fast replicas are.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "cleave/ops.h"
#include "device/device.h"
#include "graph/graph.h"
#include "nn/replicas.h"
#include "train/trainer.h"

static clv_tensor *model_layers(clv_tensor *x, void *user) {
    const clv_model *model = user;
    return model->build(clv_tensor_graph(x), x, model->classes);
}

static clv_tensor *model_loss(clv_tensor *x, clv_tensor *labels, void *user) {
    return clv_cross_entropy(model_layers(x, user), labels);
}

/** Micro-batches of a batch: as many as make them no larger than those of a full one. */
static int64_t micro_batches_of(const clv_train_config *config, int64_t batch) {
    int64_t n = config->micro_batches > 1 ? config->micro_batches : 1;
    int64_t largest = (config->batch + n - 1) / n;
    return batch == config->batch ? n : (batch + largest - 1) / largest;
}

static clv_tensor *loss_of(const clv_train_config *config, const double *shares, clv__step *step) {
    const clv_placement *placement = &config->placement;
    void *model = (void *)config->model;
    if (!placement->n_replicas)
        return clv_micro_batches(step->x, step->labels, micro_batches_of(config, step->batch), model_loss,
                                 model);
    const char *replicas[CLV__MOST_REPLICAS]; // those that take part
    double parts[CLV__MOST_REPLICAS];
    int n = 0;
    for (int i = 0; i < placement->n_replicas; i++) {
        if (!(shares[i] > 0)) continue;
        replicas[n] = placement->replicas[i];
        parts[n++] = shares[i];
    }
    clv_tensor *logits = clv_data_parallel(step->x, replicas, parts, n, model_layers, model);
    return clv_cross_entropy(logits, step->labels);
}

static void gradient_name(const clv_tensor *parameter, char *name, size_t bytes) {
    snprintf(name, bytes, "gradient.%s", clv_tensor_name(parameter));
}

clv_tensor *clv__step_gradient(const clv__step *step, const clv_tensor *parameter) {
    char name[640];
    gradient_name(parameter, name, sizeof name);
    return clv_graph_find(step->graph, name);
}

/** A gradient as without a scaler. */
static clv_tensor *unscaled(clv_graph *graph, clv_tensor *gradient) {
    return graph->scale ? clv_div(gradient, graph->scale) : gradient;
}

clv_status clv__step_graph(clv_runtime *runtime, const clv_train_config *config, const double *shares,
                           int64_t batch, clv__step *step) {
    step->batch = batch;
    CLV_TRY(clv_graph_create(runtime, &step->graph));
    clv_graph_set_training(step->graph, true);
    clv_graph_set_precision(step->graph, config->precision);
    step->x = clv_input(step->graph, "x", CLV_DTYPE_F32, clv_model_input_shape(config->model, batch));
    step->labels = clv_input(step->graph, "labels", CLV_DTYPE_I32, CLV_SHAPE(batch));
    step->loss = loss_of(config, shares, step);
    clv_output(step->loss, "loss");
    if (config->precision == CLV_PRECISION_MIXED) clv_scaler_add(step->graph, NULL);
    clv_backward(step->loss);
    for (int i = 0; config->gradients && i < clv_parameter_count(step->graph); i++) {
        clv_tensor *parameter = clv_parameter_get(step->graph, i), *gradient = clv_gradient(parameter);
        char name[640];
        gradient_name(parameter, name, sizeof name);
        if (gradient) clv_output(unscaled(step->graph, gradient), name);
    }
    clv_optimizer_add(step->graph, &config->optimizer);
    step->hyper = clv_optimizer_hyper(step->graph);
    return clv_graph_status(step->graph);
}

clv_plan_config clv__step_plan_config(const clv_train_config *config) {
    return (clv_plan_config){.device = config->device,
                             .place = config->placement.place,
                             .explicit_transfers = config->placement.explicit_transfers,
                             .variants = config->variants,
                             .recompute = config->recompute};
}

clv_status clv__step_build(clv_runtime *runtime, const clv_train_config *config, const double *shares,
                           int64_t batch, const clv_plan *beside, clv__step *step) {
    CLV_TRY(clv__step_graph(runtime, config, shares, batch, step));
    clv_plan_config plan = clv__step_plan_config(config);
    plan.beside = beside;
    return clv_plan_create(step->graph, &plan, &step->plan);
}

void clv__step_destroy(clv__step *step) {
    clv_run_destroy(step->run);
    clv_plan_destroy(step->plan);
    clv_graph_destroy(step->graph);
    *step = (clv__step){0};
}

// ---- shares by measured speed ---------------------------------------------------------------------------------------------

enum { WARM_STEPS = 2, TIMED_STEPS = 3, FEWEST_ROUNDS = 3, MOST_ROUNDS = 12 };
static const double LONG_ENOUGH = 0.2; // seconds of rounds

static double seconds_now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static clv_status do_steps(const clv__step *step, const float *zeros, int n) {
    const float hyper[CLV_HYPER_VALUES] = {0};
    for (int i = 0; i < n; i++) {
        CLV_TRY(clv_run_feed(step->run, step->x, zeros, clv_tensor_bytes(step->x)));
        CLV_TRY(clv_run_feed(step->run, step->labels, zeros, clv_tensor_bytes(step->labels)));
        CLV_TRY(clv_run_feed(step->run, step->hyper, hyper, sizeof hyper));
        CLV_TRY(clv_run_step(step->run, NULL));
    }
    return clv_run_finish(step->run);
}

/** Seconds of a step: of the quickest round, because whatever else happens on the machine only makes it longer. One round
 *  alone may have been disturbed throughout, however long it was. */
static clv_status time_steps(const clv__step *step, double *seconds) {
    size_t images = clv_tensor_bytes(step->x), labels = clv_tensor_bytes(step->labels);
    float *zeros = clv__alloc(1, images > labels ? images : labels);
    if (!zeros) return CLV_E_HOST_MEMORY;
    clv_status status = do_steps(step, zeros, WARM_STEPS);
    double all = 0;
    for (int round = 0;
         round < MOST_ROUNDS && (round < FEWEST_ROUNDS || all < LONG_ENOUGH) && status == CLV_OK; round++) {
        double start = seconds_now();
        status = do_steps(step, zeros, TIMED_STEPS);
        double one = (seconds_now() - start) / TIMED_STEPS;
        if (round == 0 || one < *seconds) *seconds = one;
        all += one * TIMED_STEPS;
    }
    free(zeros);
    return status;
}

/** Seconds of a step of `batch` samples on one device alone. */
static clv_status time_replica(clv_runtime *runtime, const clv_train_config *config, const char *spec,
                               int64_t batch, double *seconds) {
    clv_train_config alone = *config;
    alone.placement = (clv_placement){0};
    alone.gradients = NULL;
    clv__step step = {0};
    clv_session *session = NULL;
    clv_status status = clv_device_find(runtime, spec, &alone.device);
    if (status == CLV_OK) status = clv__step_build(runtime, &alone, NULL, batch, NULL, &step);
    if (status == CLV_OK) status = clv_session_create(runtime, NULL, &session);
    if (status == CLV_OK) status = clv_run_create(session, step.plan, &step.run);
    if (status == CLV_OK) status = time_steps(&step, seconds);
    clv__step_destroy(&step);
    clv_session_destroy(session);
    if (status == CLV_OK) clv_device_memory_reset_peak(alone.device);
    return status;
}

clv_status clv__measure_shares(clv_runtime *runtime, const clv_train_config *config, double *shares,
                               double *alone) {
    int n = config->placement.n_replicas;
    int64_t batch = (config->batch + n - 1) / n;
    double sum = 0;
    for (int i = 0; i < n; i++) {
        double seconds = 0;
        CLV_TRY(time_replica(runtime, config, config->placement.replicas[i], batch, &seconds));
        if (i == 0) *alone = seconds * (double)config->batch / (double)batch;
        shares[i] = 1 / (seconds > 1e-9 ? seconds : 1e-9);
        sum += shares[i];
    }
    int64_t rows[CLV__MOST_REPLICAS];
    for (int i = 0; i < n; i++) shares[i] /= sum;
    clv__replica_rows(config->batch, shares, n, rows);
    for (int i = 0; i < n; i++) { // nobody is left out, however slow
        int most = 0;
        for (int j = 1; j < n; j++)
            if (rows[j] > rows[most]) most = j;
        if (rows[i] == 0) rows[i]++, rows[most]--;
    }
    for (int i = 0; i < n; i++) shares[i] = (double)rows[i] / (double)config->batch;
    return CLV_OK;
}
