// SPDX-License-Identifier: Apache-2.0
// Shares that follow measurement: how long each replica's device, or each rank's, had work in the steps of an
// epoch decides the shares of the next epoch (balance.c). Of ranks the first one decides. Steps with other
// shares have other shapes, so they are planned again and kernels are built for them. So a change is made
// only if it saves more time in the rest of the training than the start took.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/rows.h"
#include "device/device.h"
#include "exec/ranks.h"
#include "train/loop.h"

enum { FEWEST_STEPS = 8 };        // to learn something from
static const double SLOWER = 1.2; // times; less may be noise

static bool adapts(const clv_trainer *trainer) {
    const clv_placement *placement = &trainer->config->placement;
    return placement->n_replicas > 1 && placement->measure_shares && !placement->shares;
}

/** Do ranks, each of one device? */
static bool ranks_adapt(const clv_trainer *trainer) {
    const clv_train_config *config = trainer->config;
    return clv__trainer_shares_out(config) && config->placement.measure_shares && !config->rank_shares &&
           trainer->n_devices == 1 && config->ranks->place.size <= CLV__MOST_REPLICAS;
}

void clv__watch_begin(clv__training *loop) {
    const clv_trainer *trainer = loop->trainer;
    loop->watch = (clv__watch){.steps = trainer->n_times, .seconds = trainer->timed_seconds};
    for (int i = 0; adapts(trainer) && i < trainer->config->placement.n_replicas; i++)
        loop->watch.activity[i] = clv_device_activity(trainer->replicas[i]);
    if (ranks_adapt(trainer)) loop->watch.activity[0] = clv_device_activity(trainer->devices[0]);
}

/** Seconds of a step in which a device had work since then; 0: its driver tells no times. */
static double busy_since(const clv_activity *then, const clv_device *device) {
    const clv_activity now = clv_device_activity(device);
    const uint64_t counted = now.steps - then->steps;
    return counted ? 1e-9 * (double)(now.busy_ns - then->busy_ns) / (double)counted : 0;
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
        if (!seen->rows[i]) continue;
        seen->busy[i] = busy_since(&watch->activity[i], trainer->replicas[i]);
        if (seen->busy[i] == 0) return false;
    }
    return true;
}

/** The same of this rank, for the first one. */
static void see_own(clv__training *loop) {
    const clv_trainer *trainer = loop->trainer;
    const double steps = (double)(trainer->n_times - loop->watch.steps);
    loop->pace = (clv__rank_pace){.startup = loop->startup_seconds};
    if (steps < FEWEST_STEPS || !trainer->step[CLV__FULL].plan) return;
    loop->pace.step = (trainer->timed_seconds - loop->watch.seconds) / steps;
    loop->pace.busy = busy_since(&loop->watch.activity[0], trainer->devices[0]);
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

/** Are other shares worth a start of so many seconds? */
static void look(clv__training *loop, const clv__seen *seen, double startup) {
    const clv_trainer *trainer = loop->trainer;
    double saved;
    loop->wants_rows = clv__balance_look(&loop->balance, seen, loop->rows, &saved);
    const double left = (double)(trainer->steps - trainer->position.step) * saved;
    if (left < startup) loop->wants_rows = false;
    loop->saved_part = saved / seen->step;
}

void clv__watch_end(clv__training *loop) {
    const clv_trainer *trainer = loop->trainer;
    clv__seen seen;
    loop->wants_rows = false;
    if (ranks_adapt(trainer)) see_own(loop);
    if (!adapts(trainer) || !trainer->step[CLV__FULL].plan || !see(loop, &seen)) return;
    tell_of_loss(loop, &seen);
    look(loop, &seen, loop->startup_seconds);
}

static void tell_rows(const clv__training *loop, const int64_t *before, int n) {
    const clv_trainer *trainer = loop->trainer;
    char text[512];
    size_t used = 0;
    for (int i = 0; i < n && used < sizeof text; i++) {
        char rank[24];
        snprintf(rank, sizeof rank, "rank %d", i);
        const char *name = trainer->replicas ? clv_device_info_get(trainer->replicas[i])->name : rank;
        const int more = snprintf(text + used, sizeof text - used, "%s%s %" PRId64 " instead of %" PRId64,
                                  i ? ", " : "", name, loop->rows[i], before[i]);
        used += more > 0 ? (size_t)more : 0;
    }
    clv__log(trainer->runtime, CLV_LOG_INFO,
             "of %" PRId64 " samples %s: a step should take %.0f %% less time (epoch %" PRId64 ")",
             trainer->config->batch, text, 100 * loop->saved_part, trainer->position.epoch + 1);
}

// ---- ranks ------------------------------------------------------------------------------------------------

/** What rank 0 decides. */
typedef struct decision {
    int64_t wanted, rows[CLV__MOST_REPLICAS];
} decision;

static void rows_of_ranks(const clv_trainer *trainer, int64_t *rows) {
    const struct clv_ranks *ranks = trainer->config->ranks;
    for (int i = 0; i < ranks->place.size; i++)
        rows[i] = clv__rows_of_rank(trainer->config->batch, i, ranks->place.size, ranks->shares).counted;
}

/** Rank 0 hears how each was, and tells what shares there will be. */
static clv_status decide(clv__training *loop) {
    struct clv_ranks *ranks = loop->trainer->config->ranks;
    clv__seen seen = {.n = ranks->place.size};
    clv__rank_pace all[CLV__MOST_REPLICAS] = {0};
    decision next = {0};
    double startup = 0;
    bool known = true;
    CLV_TRY(clv__ranks_collect(ranks, &loop->pace, sizeof loop->pace, all));
    rows_of_ranks(loop->trainer, seen.rows);
    for (int i = 0; i < seen.n; i++) {
        seen.busy[i] = all[i].busy;
        if (all[i].step > seen.step) seen.step = all[i].step;
        if (all[i].startup > startup) startup = all[i].startup;
        known &= all[i].busy > 0;
    }
    if (ranks->place.rank == 0 && known) {
        loop->balance.lag_known = true; // none of them waits for what another does alone
        look(loop, &seen, startup);
        memcpy(next.rows, loop->rows, sizeof next.rows);
        next.wanted = loop->wants_rows;
        for (int i = 0; i < seen.n; i++) next.wanted &= next.rows[i] > 0;
    }
    CLV_TRY(clv__ranks_agree(ranks, &next, sizeof next));
    memcpy(loop->rows, next.rows, sizeof next.rows);
    loop->wants_rows = next.wanted != 0;
    return CLV_OK;
}

/** Does each have the memory for its new share? If one has not, all keep what they had. *shares: the new
 *  ones, then those that are not used. */
static clv_status try_shares(clv__training *loop, double **shares) {
    clv_trainer *trainer = loop->trainer;
    struct clv_ranks *ranks = trainer->config->ranks;
    double *old = ranks->shares;
    int64_t refused, all[CLV__MOST_REPLICAS] = {0};
    ranks->shares = *shares;
    *shares = old;
    const clv_status status = clv__trainer_share(trainer, trainer->shares);
    if (status != CLV_OK && status != CLV_E_BUDGET && status != CLV_E_DEVICE_MEMORY) return status;
    refused = status != CLV_OK;
    CLV_TRY(clv__ranks_collect(ranks, &refused, sizeof refused, all));
    for (int i = 0; ranks->place.rank == 0 && i < ranks->place.size; i++) refused |= all[i];
    CLV_TRY(clv__ranks_agree(ranks, &refused, sizeof refused));
    if (!refused) return CLV_OK;
    *shares = ranks->shares;
    ranks->shares = old;
    loop->balance.settled = true;
    loop->wants_rows = false;
    return status == CLV_OK ? clv__trainer_share(trainer, trainer->shares) : clv__trainer_reserve(trainer);
}

static clv_status adapt_ranks(clv__training *loop) {
    clv_trainer *trainer = loop->trainer;
    struct clv_ranks *ranks = trainer->config->ranks;
    const clv__position *position = &trainer->position;
    int64_t before[CLV__MOST_REPLICAS];
    CLV_TRY(decide(loop));
    if (!loop->wants_rows) return CLV_OK;
    double *shares = clv__alloc((size_t)ranks->place.size, sizeof *shares);
    if (!shares) CLV_FAIL(loop->error, CLV_E_HOST_MEMORY, "no memory for shares");
    for (int i = 0; i < ranks->place.size; i++)
        shares[i] = (double)loop->rows[i] / (double)trainer->config->batch;
    rows_of_ranks(trainer, before);
    clv_loader_destroy(loop->loader); // it reads shares ahead
    loop->loader = NULL;
    const clv_status status = try_shares(loop, &shares);
    free(shares); // the old ones, or those that were refused
    CLV_TRY(status);
    if (loop->wants_rows && clv__trainer_writes(trainer)) tell_rows(loop, before, ranks->place.size);
    loop->wants_rows = false;
    const clv_loader_config loader = clv__labels_loader(trainer->config, position->epoch, position->index);
    return clv_loader_create(trainer->runtime, trainer->config->train, &loader, &loop->loader);
}

clv_status clv__training_adapt(clv__training *loop) {
    clv_trainer *trainer = loop->trainer;
    if (ranks_adapt(trainer)) return adapt_ranks(loop);
    if (!loop->wants_rows) return CLV_OK;
    loop->wants_rows = false;
    double shares[CLV__MOST_REPLICAS];
    int64_t before[CLV__MOST_REPLICAS];
    for (int i = 0; i < trainer->config->placement.n_replicas; i++)
        shares[i] = (double)loop->rows[i] / (double)trainer->config->batch;
    clv__trainer_rows(trainer, trainer->config->batch, before);
    clv_status status = clv__trainer_share(trainer, shares);
    if (status == CLV_OK) {
        tell_rows(loop, before, trainer->config->placement.n_replicas);
        return CLV_OK;
    }
    if (status != CLV_E_BUDGET && status != CLV_E_DEVICE_MEMORY) return status;
    clv__log(trainer->runtime, CLV_LOG_INFO, "shares stay as they are: %s",
             clv_runtime_error(trainer->runtime));
    loop->balance.settled = true;
    return clv__trainer_reserve(trainer);
}
