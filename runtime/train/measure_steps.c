// SPDX-License-Identifier: Apache-2.0
// How fast each replica trains alone: a few steps of the model on each, for shares to begin with. What
// follows is adapt.c's.
#include <stdlib.h>

#include "device/device.h"
#include "train/trainer.h"

static clv_status do_steps(const clv__rounds *todo, int n) {
    const clv__step *step = todo->what;
    const void *zeros[CLV__MOST_FED];
    for (int i = 0; i < CLV__MOST_FED; i++) zeros[i] = todo->zeros;
    const float hyper[CLV_HYPER_VALUES] = {0};
    for (int i = 0; i < n; i++) {
        CLV_TRY(clv__step_feed_arrays(step, zeros));
        CLV_TRY(clv_run_feed(step->run, step->hyper, hyper, sizeof hyper));
        CLV_TRY(clv_run_step(step->run, NULL));
    }
    return clv_run_finish(step->run);
}

static clv_status time_steps(clv_runtime *runtime, const clv__step *step, double *seconds) {
    return clv__time_rounds(runtime, (clv__rounds){.run = do_steps, .what = step}, clv__step_fed_bytes(step),
                            seconds);
}

/** Seconds of a step of `batch` samples on one device alone, but for layers that are placed elsewhere. */
static clv_status time_training(const clv__timing *t, const char *spec, int64_t batch, double *seconds) {
    clv_runtime *runtime = t->runtime;
    clv_train_config one = *(const clv_train_config *)t->config;
    char *place = NULL;
    CLV_TRY(clv__measured_place(runtime, &one.placement, spec, &place));
    one.gradients = NULL;
    one.ranks = NULL;
    one.sync_batch_norm = one.bf16_compress = false;
    clv__step step = {0};
    clv_session *session = NULL;
    clv_status status = clv_device_find(runtime, spec, &one.device);
    if (status == CLV_OK) status = clv__step_build(runtime, &one, clv__step_graph, NULL, batch, NULL, &step);
    if (status == CLV_OK) status = clv_session_create(runtime, NULL, &session);
    if (status == CLV_OK) status = clv_run_create(session, step.plan, &step.run);
    if (status == CLV_OK) status = time_steps(runtime, &step, seconds);
    clv__measured_devices used = clv__measured_on(step.plan);
    clv__step_destroy(&step);
    clv_session_destroy(session);
    if (status == CLV_OK) clv__measured_end(&used);
    free(place);
    return status;
}

clv_status clv__measure_alone(clv_runtime *runtime, const clv_train_config *config, int64_t batch,
                              double *seconds) {
    const clv__timing t = {.runtime = runtime, .config = config, .seconds = time_training};
    return time_training(&t, clv_device_info_get(config->device)->name, batch, seconds);
}

clv_status clv__measure_shares(clv_runtime *runtime, const clv_train_config *config, double *shares,
                               double *single) {
    const clv__timing t = {.runtime = runtime, .config = config, .seconds = time_training};
    return clv__measure(&t, &config->placement, config->batch, shares, single);
}
