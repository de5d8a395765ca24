// SPDX-License-Identifier: Apache-2.0
// How fast each replica is alone: a few steps of the model on each, with its part of the batch, for shares to begin with. What
// follows in the training is adapt.c's.
#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "device/device.h"
#include "nn/replicas.h"
#include "train/trainer.h"

enum { WARM_STEPS = 2, TIMED_STEPS = 3, FEWEST_ROUNDS = 3, MOST_ROUNDS = 12 };
static const double LONG_ENOUGH = 0.2; // seconds of rounds

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
static clv_status time_steps(clv_runtime *runtime, const clv__step *step, double *seconds) {
    size_t images = clv_tensor_bytes(step->x), labels = clv_tensor_bytes(step->labels);
    float *zeros = clv__alloc(1, images > labels ? images : labels);
    if (!zeros) CLV_FAIL(clv__runtime_error_of(runtime), CLV_E_HOST_MEMORY, "no memory to time a step");
    clv_status status = do_steps(step, zeros, WARM_STEPS);
    double all = 0;
    for (int round = 0;
         round < MOST_ROUNDS && (round < FEWEST_ROUNDS || all < LONG_ENOUGH) && status == CLV_OK; round++) {
        double start = clv__seconds();
        status = do_steps(step, zeros, TIMED_STEPS);
        double one = (clv__seconds() - start) / TIMED_STEPS;
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
    if (status == CLV_OK) status = time_steps(runtime, &step, seconds);
    clv__step_destroy(&step);
    clv_session_destroy(session);
    if (status == CLV_OK) clv_device_memory_reset_peak(alone.device);
    if (status != CLV_OK)
        clv__error_prefix(clv__runtime_error_of(runtime),
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

clv_status clv__measure_shares(clv_runtime *runtime, const clv_train_config *config, double *shares,
                               double *alone) {
    int n = config->placement.n_replicas;
    int64_t batch = (config->batch + n - 1) / n;
    double sum = 0;
    for (int i = 0; i < n; i++) {
        double seconds = 0;
        clv_status status = time_replica(runtime, config, config->placement.replicas[i], batch, &seconds);
        if (status == CLV_E_BUDGET || status == CLV_E_DEVICE_MEMORY)
            return share_equally(runtime, n, shares, alone);
        CLV_TRY(status);
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
