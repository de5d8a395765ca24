// SPDX-License-Identifier: Apache-2.0
// Shares that nobody gave keep to budgets: where a replica's part of the batch does not fit its device, rows
// go to those with room.
#include "device/device.h"
#include "nn/replicas.h"
#include "infer/placed.h"

enum { MOST_PLANS = 64 };

/** Rows of the batch, and what they need of each replica's memory: below 1 they fit. */
typedef struct dealt {
    int n;
    int64_t rows[CLV__MOST_REPLICAS];
    double full[CLV__MOST_REPLICAS];
} dealt;

static double fullness(clv_plan *plan, clv_device *device) {
    uint64_t bytes = clv_plans_memory(&plan, 1, device).predicted_peak_bytes;
    uint64_t budget = clv_device_memory(device).budget, memory = device->info.memory_bytes;
    if (!budget || (memory && memory < budget)) budget = memory;
    return budget ? (double)bytes / (double)budget : 0;
}

static clv_status look(clv_runtime *runtime, const clv_train_config *config, clv__graph_maker *make, dealt *d,
                       bool *fits) {
    double shares[CLV__MOST_REPLICAS];
    clv__step step = {0};
    for (int i = 0; i < d->n; i++) shares[i] = (double)d->rows[i] / (double)config->batch;
    clv_status status = clv__step_build(runtime, config, make, shares, config->batch, NULL, &step);
    *fits = status == CLV_OK && clv_plans_fit(&step.plan, 1) == CLV_OK;
    for (int i = 0; i < d->n && status == CLV_OK; i++) {
        clv_device *device;
        status = clv_device_find(runtime, config->placement.replicas[i], &device);
        if (status == CLV_OK) d->full[i] = fullness(step.plan, device);
    }
    clv__step_destroy(&step);
    return status;
}

/** Take rows from the fullest replica and give them to the emptiest; false: there is nothing to move. */
static bool move_rows(dealt *d) {
    int from = 0, to = 0;
    for (int i = 1; i < d->n; i++) {
        if (d->full[i] > d->full[from]) from = i;
        if (d->full[i] < d->full[to]) to = i;
    }
    if (d->full[from] <= 1 || d->full[to] >= 1 || d->rows[from] < 2) return false;
    // what is too much of it, if all of its memory grew with its rows; less is moved each time than would be
    // needed
    int64_t n = (int64_t)((double)d->rows[from] * (1 - 1 / d->full[from]));
    if (n < 1) n = 1;
    if (n > d->rows[from] - 1) n = d->rows[from] - 1;
    d->rows[from] -= n;
    d->rows[to] += n;
    return true;
}

clv_status clv__shares_fit(clv_runtime *runtime, const clv_train_config *config, clv__graph_maker *make,
                           double *shares) {
    dealt d = {.n = config->placement.n_replicas};
    bool fits = false;
    clv__replica_rows(config->batch, shares, d.n, d.rows);
    for (int tried = 0; tried < MOST_PLANS; tried++) {
        CLV_TRY(look(runtime, config, make, &d, &fits));
        if (fits || !move_rows(&d)) break;
        if (tried ==
            0) // what does not fit is no reason to train in other shares than were measured, unless others do
            clv__log(runtime, CLV_LOG_INFO, "shares keep to budgets: %s", clv_runtime_error(runtime));
    }
    for (int i = 0; fits && i < d.n; i++) shares[i] = (double)d.rows[i] / (double)config->batch;
    return CLV_OK;
}

clv_status clv__shares_planned(clv_runtime *runtime, const clv_train_config *config, clv__graph_maker *make,
                               double *shares) {
    CLV_TRY(clv__placement_check(runtime, &config->placement, config->batch));
    const clv_placement *placement = &config->placement;
    for (int i = 0; i < placement->n_replicas; i++)
        shares[i] = placement->shares ? placement->shares[i] : 1.0 / placement->n_replicas;
    return placement->shares || !placement->measure_shares ? CLV_OK
                                                           : clv__shares_fit(runtime, config, make, shares);
}
