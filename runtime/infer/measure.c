// SPDX-License-Identifier: Apache-2.0
// How fast each replica is alone, with its part of the batch, for shares to begin with: forward passes of a
// predictor, and what those have in common with steps of a training (measure_steps.c).
#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "device/device.h"
#include "nn/replicas.h"
#include "infer/placed.h"
#include "infer/predictor.h"

enum { WARM_STEPS = 2, TIMED_STEPS = 3, FEWEST_ROUNDS = 3, MOST_ROUNDS = 12 };
static const double LONG_ENOUGH = 0.2; // seconds of rounds

static clv_status do_forward(const clv__rounds *todo, int n) {
    for (int i = 0; i < n; i++)
        CLV_TRY(clv__predictor_time((clv_predictor *)(uintptr_t)todo->what, todo->zeros));
    return CLV_OK;
}

/** Seconds of one of them: of the quickest round, because whatever else happens on the machine only makes it
 *  longer. One round alone may have been disturbed throughout, however long it was. */
clv_status clv__time_rounds(clv_runtime *runtime, clv__rounds todo, size_t bytes, double *seconds) {
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

clv_status clv__measured_place(clv_runtime *runtime, clv_placement *placement, const char *spec,
                               char **place) {
    *place = NULL;
    if (placement->place && !(*place = clv__placement_beside(placement, spec)))
        CLV_FAIL(clv__runtime_error_of(runtime), CLV_E_HOST_MEMORY, "no memory to time a step");
    *placement = (clv_placement){.place = *place};
    return CLV_OK;
}

clv__measured_devices clv__measured_on(const clv_plan *plan) {
    clv__measured_devices used = {0};
    for (int i = 0; plan && i < clv_plan_info_get(plan).n_devices && used.n < CLV__MOST_MEASURED; i++)
        used.device[used.n++] = clv_plan_device_get(plan, i);
    return used;
}

void clv__measured_end(const clv__measured_devices *used) {
    for (int i = 0; i < used->n; i++) clv_device_memory_reset_peak(used->device[i]);
}

static clv_status time_forward(const clv__timing *t, const char *spec, int64_t batch, double *seconds) {
    clv_predictor_config one = *(const clv_predictor_config *)t->config;
    clv_predictor *predictor = NULL;
    char *place = NULL;
    CLV_TRY(clv__measured_place(t->runtime, &one.placement, spec, &place));
    one.session = NULL;
    one.same_session = NULL;
    one.batch = batch;
    clv_status status = clv_device_find(t->runtime, spec, &one.device);
    if (status == CLV_OK) status = clv_predictor_create(t->runtime, &one, &predictor);
    if (status == CLV_OK)
        status = clv__time_rounds(t->runtime, (clv__rounds){.run = do_forward, .what = predictor},
                                  clv__predictor_fed_bytes(predictor), seconds);
    clv__measured_devices used = clv__measured_on(predictor ? clv_predictor_info_get(predictor).plan : NULL);
    clv_predictor_destroy(predictor);
    if (status == CLV_OK) clv__measured_end(&used);
    free(place);
    return status;
}

static clv_status time_replica(const clv__timing *t, const char *spec, int64_t batch, double *seconds) {
    clv_status status = t->seconds(t, spec, batch, seconds);
    if (status != CLV_OK)
        clv__error_prefix(clv__runtime_error_of(t->runtime),
                          "measuring %s alone with %" PRId64 " sample%s: ", spec, batch,
                          batch == 1 ? "" : "s");
    return status;
}

/** A device that has room for its part of the work may have none for all of it, weights and their gradients
 *  included. */
static clv_status share_equally(clv_runtime *runtime, int n, double *shares, double *single) {
    clv__log(runtime, CLV_LOG_WARNING, "the batch is shared equally at first: %s",
             clv_runtime_error(runtime));
    for (int i = 0; i < n; i++) shares[i] = 1.0 / n;
    *single = 0;
    return CLV_OK;
}

clv_status clv__measure(const clv__timing *t, const clv_placement *placement, int64_t whole, double *shares,
                        double *single) {
    int n = placement->n_replicas;
    int64_t batch = (whole + n - 1) / n;
    double sum = 0;
    for (int i = 0; i < n; i++) {
        double seconds = 0;
        clv_status status = time_replica(t, placement->replicas[i], batch, &seconds);
        if (status == CLV_E_BUDGET || status == CLV_E_DEVICE_MEMORY)
            return share_equally(t->runtime, n, shares, single);
        CLV_TRY(status);
        if (i == 0) *single = seconds * (double)whole / (double)batch;
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

clv_status clv__measure_forward_shares(clv_runtime *runtime, const clv_predictor_config *config,
                                       int64_t batch, double *shares) {
    const clv__timing t = {.runtime = runtime, .config = config, .seconds = time_forward};
    double single;
    return clv__measure(&t, &config->placement, batch, shares, &single);
}
