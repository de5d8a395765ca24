// SPDX-License-Identifier: Apache-2.0
// Shares that follow measurement: how long each replica's device had work in the steps of an epoch decides
// the shares of the next epoch (balance.c). Steps with other shares have other shapes, so they are planned
// again and kernels are built for them. So a change is made only if it saves more time in the rest of the
// training than the start took.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "device/device.h"
#include "train/loop.h"

enum { FEWEST_STEPS = 8 };        // to learn something from
static const double SLOWER = 1.2; // times; less may be noise

static bool adapts(const clv_trainer *trainer) {
    const clv_placement *placement = &trainer->config->placement;
    return placement->n_replicas > 1 && placement->measure_shares && !placement->shares;
}

void clv__watch_begin(clv__training *loop) {
    const clv_trainer *trainer = loop->trainer;
    loop->watch = (clv__watch){.steps = trainer->n_times, .seconds = trainer->timed_seconds};
    for (int i = 0; adapts(trainer) && i < trainer->config->placement.n_replicas; i++)
        loop->watch.activity[i] = clv_device_activity(trainer->replicas[i]);
}

/** What the steps since the beginning were like; false if too little is known. */
static bool see(const clv__training *loop, clv__seen *seen) {
    const clv_trainer *trainer = loop->trainer;
    const clv__watch *watch = &loop->watch;
    double steps = (double)(trainer->n_times - watch->steps);
    *seen = (clv__seen){.n = trainer->config->placement.n_replicas};
    if (watch->broken || steps < FEWEST_STEPS) return false;
    seen->step = (trainer->timed_seconds - watch->seconds) / steps;
    clv__trainer_rows(trainer, trainer->config->batch, seen->rows);
    for (int i = 0; i < seen->n; i++) {
        clv_activity now = clv_device_activity(trainer->replicas[i]);
        uint64_t counted = now.steps - watch->activity[i].steps;
        if (!seen->rows[i]) continue;
        if (!counted) return false; // a driver that tells no times
        seen->busy[i] = 1e-9 * (double)(now.busy_ns - watch->activity[i].busy_ns) / (double)counted;
    }
    return true;
}

/** Others may be so slow that they only hold the first up. Nobody is left out unasked, but it is told,
 *  once. */
static void tell_of_loss(clv__training *loop, const clv__seen *seen) {
    const clv_trainer *trainer = loop->trainer;
    if (loop->told_of_loss || trainer->single == 0 || seen->step < SLOWER * trainer->single) return;
    loop->told_of_loss = true;
    clv__log(trainer->runtime, CLV_LOG_WARNING,
             "a step takes %.1f ms with these replicas, and %s alone would take about %.1f ms",
             1e3 * seen->step, clv_device_info_get(trainer->replicas[0])->name, 1e3 * trainer->single);
}

void clv__watch_end(clv__training *loop) {
    const clv_trainer *trainer = loop->trainer;
    clv__seen seen;
    double saved;
    loop->wants_rows = false;
    if (!adapts(trainer) || !trainer->step[CLV__FULL].plan || !see(loop, &seen)) return;
    tell_of_loss(loop, &seen);
    loop->wants_rows = clv__balance_look(&loop->balance, &seen, loop->rows, &saved);
    double left = (double)(trainer->steps - trainer->position.step) * saved;
    if (left < loop->startup_seconds) loop->wants_rows = false;
    loop->saved_part = saved / seen.step;
}

static void tell_rows(const clv__training *loop, const int64_t *before) {
    const clv_trainer *trainer = loop->trainer;
    char text[512];
    size_t used = 0;
    for (int i = 0; i < trainer->config->placement.n_replicas && used < sizeof text; i++) {
        int n =
            snprintf(text + used, sizeof text - used, "%s%s %" PRId64 " instead of %" PRId64, i ? ", " : "",
                     clv_device_info_get(trainer->replicas[i])->name, loop->rows[i], before[i]);
        used += n > 0 ? (size_t)n : 0;
    }
    clv__log(trainer->runtime, CLV_LOG_INFO,
             "of %" PRId64 " samples %s: a step should take %.0f %% less time (epoch %" PRId64 ")",
             trainer->config->batch, text, 100 * loop->saved_part, trainer->position.epoch + 1);
}

clv_status clv__training_adapt(clv__training *loop) {
    clv_trainer *trainer = loop->trainer;
    if (!loop->wants_rows) return CLV_OK;
    loop->wants_rows = false;
    double shares[CLV__MOST_REPLICAS];
    int64_t before[CLV__MOST_REPLICAS];
    for (int i = 0; i < trainer->config->placement.n_replicas; i++)
        shares[i] = (double)loop->rows[i] / (double)trainer->config->batch;
    clv__trainer_rows(trainer, trainer->config->batch, before);
    clv_status status = clv__trainer_share(trainer, shares);
    if (status == CLV_OK) {
        tell_rows(loop, before);
        return CLV_OK;
    }
    if (status != CLV_E_BUDGET && status != CLV_E_DEVICE_MEMORY) return status;
    clv__log(trainer->runtime, CLV_LOG_INFO, "shares stay as they are: %s",
             clv_runtime_error(trainer->runtime));
    loop->balance.settled = true;
    return clv__trainer_reserve(trainer);
}
