// SPDX-License-Identifier: Apache-2.0
// How fast each replica is alone: a few steps of the model on each, or forward passes of a predictor, with its part of the batch, for
// shares to begin with. What follows in a training is adapt.c's.
#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "device/device.h"
#include "nn/replicas.h"
#include "train/trainer.h"

enum { WARM_STEPS = 2, TIMED_STEPS = 3, FEWEST_ROUNDS = 3, MOST_ROUNDS = 12 };
static const double LONG_ENOUGH = 0.2; // seconds of rounds

/** What is timed: n times what one replica does, on values of zero. */
typedef struct work {
    clv_status (*run)(const struct work *todo, int n);
    const void *what;
    const float *zeros;
} work;

static clv_status do_steps(const work *todo, int n) {
    const clv__step *step = todo->what;
    const float *zeros = todo->zeros;
    const float hyper[CLV_HYPER_VALUES] = {0};
    for (int i = 0; i < n; i++) {
        CLV_TRY(clv_run_feed(step->run, step->x, zeros, clv_tensor_bytes(step->x)));
        CLV_TRY(clv_run_feed(step->run, step->labels, zeros, clv_tensor_bytes(step->labels)));
        CLV_TRY(clv_run_feed(step->run, step->hyper, hyper, sizeof hyper));
        CLV_TRY(clv_run_step(step->run, NULL));
    }
    return clv_run_finish(step->run);
}

static clv_status do_forward(const work *todo, int n) {
    for (int i = 0; i < n; i++)
        CLV_TRY(clv__predictor_time((clv_predictor *)(uintptr_t)todo->what, todo->zeros));
    return CLV_OK;
}

/** Seconds of one of them: of the quickest round, because whatever else happens on the machine only makes it longer. One round
 *  alone may have been disturbed throughout, however long it was. */
static clv_status time_rounds(clv_runtime *runtime, work todo, size_t bytes, double *seconds) {
    float *zeros = clv__alloc(1, bytes);
    if (!zeros) CLV_FAIL(clv__runtime_error_of(runtime), CLV_E_HOST_MEMORY, "no memory to time a step");
    todo.zeros = zeros;
    clv_status status = todo.run(&todo, WARM_STEPS);
    double all = 0;
    for (int round = 0;
         round < MOST_ROUNDS && (round < FEWEST_ROUNDS || all < LONG_ENOUGH) && status == CLV_OK; round++) {
        double start = clv__seconds();
        status = todo.run(&todo, TIMED_STEPS);
        double one = (clv__seconds() - start) / TIMED_STEPS;
        if (round == 0 || one < *seconds) *seconds = one;
        all += one * TIMED_STEPS;
    }
    free(zeros);
    return status;
}

static clv_status time_steps(clv_runtime *runtime, const clv__step *step, double *seconds) {
    size_t images = clv_tensor_bytes(step->x), labels = clv_tensor_bytes(step->labels);
    return time_rounds(runtime, (work){.run = do_steps, .what = step}, images > labels ? images : labels,
                       seconds);
}

/** Which of both is timed, and how it is made. */
typedef struct timing {
    clv_runtime *runtime;
    const clv_train_config *train; // or:
    const clv_predictor_config *predict;
} timing;

static clv_status time_forward(const timing *t, const char *spec, int64_t batch, double *seconds) {
    clv_predictor_config alone = *t->predict;
    clv_predictor *predictor = NULL;
    alone.placement = (clv_placement){0};
    alone.session = NULL;
    alone.beside = NULL;
    alone.batch = batch;
    clv_status status = clv_device_find(t->runtime, spec, &alone.device);
    if (status == CLV_OK) status = clv_predictor_create(t->runtime, &alone, &predictor);
    clv_shape shape = clv_model_input_shape(alone.model, batch);
    if (status == CLV_OK)
        status = time_rounds(t->runtime, (work){.run = do_forward, .what = predictor},
                             (size_t)clv_shape_numel(&shape) * sizeof(float), seconds);
    clv_predictor_destroy(predictor);
    if (status == CLV_OK) clv_device_memory_reset_peak(alone.device);
    return status;
}

/** Seconds of a step of `batch` samples on one device alone. */
static clv_status time_training(const timing *t, const char *spec, int64_t batch, double *seconds) {
    clv_runtime *runtime = t->runtime;
    clv_train_config alone = *t->train;
    alone.placement = (clv_placement){0};
    alone.gradients = NULL;
    clv__step step = {0};
    clv_session *session = NULL;
    clv_status status = clv_device_find(runtime, spec, &alone.device);
    if (status == CLV_OK) status = clv__step_build(runtime, &alone, NULL, batch, NULL, &step);
    if (status == CLV_OK) status = clv_session_create(runtime, NULL, &session);
    if (status == CLV_OK) status = clv_run_create(session, step.plan, &step.run);
    if (status == CLV_OK) status = time_steps(runtime, &step, seconds);
    clv__step_destroy(&step);
    clv_session_destroy(session);
    if (status == CLV_OK) clv_device_memory_reset_peak(alone.device);
    return status;
}

static clv_status time_replica(const timing *t, const char *spec, int64_t batch, double *seconds) {
    clv_status status =
        t->train ? time_training(t, spec, batch, seconds) : time_forward(t, spec, batch, seconds);
    if (status != CLV_OK)
        clv__error_prefix(clv__runtime_error_of(t->runtime),
                          "measuring %s alone with %" PRId64 " sample%s: ", spec, batch,
                          batch == 1 ? "" : "s");
    return status;
}

/** A device that has room for its part of the work may have none for all of it, weights and their gradients included. */
static clv_status share_equally(clv_runtime *runtime, int n, double *shares, double *alone) {
    clv__log(runtime, CLV_LOG_WARNING, "the batch is shared equally at first: %s",
             clv_runtime_error(runtime));
    for (int i = 0; i < n; i++) shares[i] = 1.0 / n;
    *alone = 0;
    return CLV_OK;
}

static clv_status measure(const timing *t, const clv_placement *placement, int64_t whole, double *shares,
                          double *alone) {
    int n = placement->n_replicas;
    int64_t batch = (whole + n - 1) / n;
    double sum = 0;
    for (int i = 0; i < n; i++) {
        double seconds = 0;
        clv_status status = time_replica(t, placement->replicas[i], batch, &seconds);
        if (status == CLV_E_BUDGET || status == CLV_E_DEVICE_MEMORY)
            return share_equally(t->runtime, n, shares, alone);
        CLV_TRY(status);
        if (i == 0) *alone = seconds * (double)whole / (double)batch;
        shares[i] = 1 / (seconds > 1e-9 ? seconds : 1e-9);
        sum += shares[i];
    }
    int64_t rows[CLV__MOST_REPLICAS];
    for (int i = 0; i < n; i++) shares[i] /= sum;
    clv__replica_rows(whole, shares, n, rows);
    for (int i = 0; i < n; i++) { // nobody is left out, however slow
        int most = 0;
        for (int j = 1; j < n; j++)
            if (rows[j] > rows[most]) most = j;
        if (rows[i] == 0) rows[i]++, rows[most]--;
    }
    for (int i = 0; i < n; i++) shares[i] = (double)rows[i] / (double)whole;
    return CLV_OK;
}

clv_status clv__measure_shares(clv_runtime *runtime, const clv_train_config *config, double *shares,
                               double *alone) {
    const timing t = {.runtime = runtime, .train = config};
    return measure(&t, &config->placement, config->batch, shares, alone);
}

clv_status clv__measure_forward_shares(clv_runtime *runtime, const clv_predictor_config *config,
                                       int64_t batch, double *shares) {
    const timing t = {.runtime = runtime, .predict = config};
    double alone;
    return measure(&t, &config->placement, batch, shares, &alone);
}
