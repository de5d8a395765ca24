// SPDX-License-Identifier: Apache-2.0
// How fast each replica, or rank, trains alone: a few steps of the model on each, for shares to begin with.
// What follows is adapt.c's.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/rows.h"
#include "device/device.h"
#include "exec/ranks.h"
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

clv_status clv__measure_shares(clv_runtime *runtime, const clv_train_config *config, double *shares,
                               double *single) {
    const clv__timing t = {.runtime = runtime, .config = config, .seconds = time_training};
    return clv__measure(&t, &config->placement, config->batch, shares, single);
}

// ---- ranks ------------------------------------------------------------------------------------------------

/** Shares in proportion to speed: rank 0 hears how long each takes, and tells. */
static clv_status measure_ranks(const clv_trainer *trainer, const clv_train_config *config, double *shares) {
    clv_ranks *ranks = config->ranks;
    const int size = ranks->place.size;
    const clv__timing t = {.runtime = trainer->runtime, .config = config, .seconds = time_training};
    double seconds = 0, sum = 0;
    CLV_TRY(time_training(&t, clv_device_info_get(config->device)->name, (config->batch + size - 1) / size,
                          &seconds));
    const double speed = 1 / (seconds > 1e-9 ? seconds : 1e-9);
    CLV_TRY(clv__ranks_collect(ranks, &speed, sizeof speed, shares));
    CLV_TRY(clv__ranks_agree(ranks, shares, (size_t)size * sizeof *shares));
    for (int i = 0; i < size; i++) sum += shares[i];
    for (int i = 0; i < size; i++) shares[i] /= sum;
    return CLV_OK;
}

/** Whoever takes part gets a sample of a whole batch. */
static clv_status check_shares(clv__error *error, const clv_train_config *config, const double *shares) {
    const int size = config->ranks->place.size;
    double sum = 0;
    for (int i = 0; i < size; i++) sum += shares[i];
    if (fabs(sum - 1) > 1e-6)
        CLV_FAIL(error, CLV_E_VALUE, "the shares of %d ranks sum to %g, they must sum to 1", size, sum);
    for (int i = 0; i < size; i++)
        if (!(shares[i] > 0) || !clv__rows_by_shares(config->batch, i, size, shares).counted)
            CLV_FAIL(error, CLV_E_VALUE,
                     "rank %d has a share of %g of %" PRId64 " samples: each needs at least one", i,
                     shares[i], config->batch);
    return CLV_OK;
}

clv_status clv__ranks_share(const clv_trainer *trainer, const clv_train_config *config) {
    clv__error *error = clv__runtime_error_of(trainer->runtime);
    const bool measures = config->placement.measure_shares && !config->placement.n_replicas;
    if (!clv__trainer_shares_out(config) || !config->ranks->engine || trainer->replay) return CLV_OK;
    free(config->ranks->shares);
    config->ranks->shares = NULL;
    if (!config->rank_shares && !measures) return CLV_OK;
    const size_t size = (size_t)config->ranks->place.size;
    double *shares = clv__alloc(size, sizeof *shares);
    if (!shares) CLV_FAIL(error, CLV_E_HOST_MEMORY, "no memory for a trainer");
    clv_status status = CLV_OK;
    if (config->rank_shares)
        memcpy(shares, config->rank_shares, size * sizeof *shares);
    else
        status = measure_ranks(trainer, config, shares);
    if (status == CLV_OK) status = check_shares(error, config, shares);
    if (status == CLV_OK)
        config->ranks->shares = shares;
    else
        free(shares);
    return status;
}
