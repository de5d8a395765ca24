// SPDX-License-Identifier: Apache-2.0
// The trainer: what it plans, before any device memory is taken. Its loop is in loop.c.
#include "nn/ports.h"
#include "train/trainer.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "exec/ranks.h"
#include "exec/session.h"
#include "nn/replicas.h"
#include "train/stopping.h"
#include "infer/units.h"

static clv_status check_schedule(const clv_schedule *schedule, clv__error *error) {
    const bool one_cycle = schedule->kind == CLV_SCHEDULE_ONE_CYCLE,
               plateau = schedule->kind == CLV_SCHEDULE_PLATEAU;
    if (schedule->warmup < 0) CLV_FAIL(error, CLV_E_VALUE, "a warm-up of %" PRId64, schedule->warmup);
    if (one_cycle && schedule->warmup)
        CLV_FAIL(error, CLV_E_VALUE, "the schedule one-cycle rises by itself: it takes no warm-up");
    if (one_cycle && (!(schedule->turn >= 0 && schedule->turn < 1) || schedule->div_factor < 0 ||
                      schedule->final_factor < 0))
        CLV_FAIL(
            error, CLV_E_VALUE,
            "one-cycle with turn %g, div_factor %g and final_factor %g: turn must be below 1, none below 0",
            schedule->turn, schedule->div_factor, schedule->final_factor);
    if (plateau && (!(schedule->gamma >= 0 && schedule->gamma < 1) || schedule->per_step))
        CLV_FAIL(error, CLV_E_VALUE,
                 "the schedule plateau counts epochs, and its factor, %g, must be at least 0 and below 1",
                 schedule->gamma);
    return CLV_OK;
}

static clv_status check_config(const clv_trainer *trainer, clv__error *error) {
    const clv_train_config *config = trainer->config;
    if (!config->model || !config->train)
        CLV_FAIL(error, CLV_E_VALUE, "a trainer needs a model and a dataset");
    if (config->batch < 1) CLV_FAIL(error, CLV_E_VALUE, "a batch of %" PRId64 " samples", config->batch);
    if (config->micro_batches < 1 || config->micro_batches > config->batch)
        CLV_FAIL(error, CLV_E_VALUE,
                 "a batch of %" PRId64 " samples cannot be cut into %" PRId64
                 " micro-batches, each needs at least one",
                 config->batch, config->micro_batches);
    if (config->epochs < 1) CLV_FAIL(error, CLV_E_VALUE, "%" PRId64 " epochs", config->epochs);
    if (!(config->lr > 0)) CLV_FAIL(error, CLV_E_VALUE, "a learning rate of %g", config->lr);
    if (config->dropout && !(*config->dropout >= 0 && *config->dropout < 1))
        CLV_FAIL(error, CLV_E_VALUE, "dropout of %g: it must be at least 0, and below 1", *config->dropout);
    if (config->steps < 0 || config->checkpoint_every < 0 || config->schedule.period < 0)
        CLV_FAIL(error, CLV_E_VALUE, "steps, checkpoint_every and the schedule's period cannot be negative");
    const int kind = (int)config->schedule.kind;
    if (kind < 0 || kind > CLV_SCHEDULE_POLYNOMIAL)
        CLV_FAIL(error, CLV_E_VALUE, "schedule.kind is %d; it is one of clv_schedule_kind, 0 to %d", kind,
                 CLV_SCHEDULE_POLYNOMIAL);
    if (config->lora.weights && (!config->lora.layers || !config->weights))
        CLV_FAIL(error, CLV_E_VALUE, "lora.weights '%s': %s", config->lora.weights,
                 config->weights ? "which layers? (clv_train_config.lora.layers)"
                                 : "which weights do they belong to? (clv_train_config.weights)");
    CLV_TRY(check_schedule(&config->schedule, error));
    CLV_TRY(clv__model_check(error, config->model));
    CLV_TRY(clv__ranks_check(trainer->runtime, config));
    if (!trainer->replay) CLV_TRY(clv__stopping_check(config, error));
    return clv__labels_check(trainer->runtime, config);
}

static clv_status no_memory(const clv_trainer *trainer) {
    CLV_FAIL(clv__runtime_error_of(trainer->runtime), CLV_E_HOST_MEMORY, "no memory for a trainer");
}

/** What it will hold on a device at most. */
static clv_plan_memory memory_on(const clv_trainer *trainer, clv_device *device) {
    clv_plan *plans[CLV__STEPS + 1];
    clv_plan_memory memory = clv_plans_memory(plans, clv__trainer_plans(trainer, plans), device);
    for (int i = 0; i < trainer->n_devices; i++) {
        if (trainer->devices[i] != device) continue;
        memory.predicted_peak_bytes = 0;
        for (int c = 0; c < CLV_CATEGORIES; c++) {
            if (trainer->held[i].category[c] > memory.category[c])
                memory.category[c] = trainer->held[i].category[c];
            memory.predicted_peak_bytes += memory.category[c];
        }
    }
    return memory;
}

/** On all devices together. */
static uint64_t all_memory(const clv_trainer *trainer) {
    uint64_t bytes = 0;
    for (int i = 0; i < trainer->n_devices; i++)
        bytes += memory_on(trainer, trainer->devices[i]).predicted_peak_bytes;
    return bytes;
}

/** The device that training begins on, and each replica's share. */
static clv_status choose_devices(clv_trainer *trainer, clv_train_config *config) {
    const clv_placement *placement = &config->placement;
    CLV_TRY(clv__placement_check(trainer->runtime, &config->placement, config->batch));
    const char *first = placement->n_replicas ? placement->replicas[0] : NULL;
    if (first || !config->device) CLV_TRY(clv_device_find(trainer->runtime, first, &config->device));
    if (!placement->n_replicas) return CLV_OK;
    trainer->shares = clv__alloc((size_t)placement->n_replicas, sizeof *trainer->shares);
    trainer->replicas = clv__alloc((size_t)placement->n_replicas, sizeof(clv_device *));
    if (!trainer->shares || !trainer->replicas) return no_memory(trainer);
    for (int i = 0; i < placement->n_replicas; i++) {
        trainer->shares[i] = placement->shares ? placement->shares[i] : 1.0 / placement->n_replicas;
        CLV_TRY(clv_device_find(trainer->runtime, placement->replicas[i], &trainer->replicas[i]));
    }
    if (placement->shares || !placement->measure_shares) return CLV_OK;
    CLV_TRY(clv__measure_shares(trainer->runtime, config, trainer->shares, &trainer->single));
    return clv__shares_fit(trainer->runtime, config, clv__step_graph, trainer->shares);
}

/** Layers on devices, if they are to be chosen: for the largest step there will be. */
static clv_status choose_place(clv_trainer *trainer, clv_train_config *config) {
    if (config->placement.n_replicas || (!config->placement.place && !config->placement.n_devices))
        return CLV_OK;
    int64_t count = clv_dataset_info_get(config->train).count;
    clv__step step = {0};
    clv_status status =
        clv__step_graph(trainer->runtime, config, NULL, count < config->batch ? count : config->batch, &step);
    clv_plan_config plan = clv__step_plan_config(config, clv__step_graph);
    if (status == CLV_OK)
        status = clv__placement_choose(&config->placement, step.graph, &plan, &trainer->place);
    clv__step_destroy(&step);
    return status == CLV_OK ? CLV_OK : clv__trainer_refused(trainer, status);
}

/** The predictor again, in other batches. */
static clv_status make_predictor(clv_trainer *trainer, const clv_predictor_config *config) {
    clv_predictor_destroy(trainer->predictor);
    trainer->predictor = NULL;
    return clv_predictor_create(trainer->runtime, config, &trainer->predictor);
}

/** Do all plans fit on their devices, budgets included? */
static bool all_fit(const clv_trainer *trainer) {
    clv_plan *plans[CLV__STEPS + 1];
    return clv_plans_fit(plans, clv__trainer_plans(trainer, plans)) == CLV_OK;
}

/** Make the predictor in the largest batches, from `most` down to `least`, with which all of it needs so many
 *  bytes at most. */
static clv_status shrink_predictor(clv_trainer *trainer, clv_predictor_config *config, int64_t most,
                                   int64_t least, uint64_t bytes) {
    for (config->batch = most; config->batch > least; config->batch -= (config->batch + 15) / 16) {
        CLV_TRY(make_predictor(trainer, config));
        if (all_memory(trainer) <= bytes) return CLV_OK;
    }
    config->batch = least;
    return make_predictor(trainer, config);
}

/** Layers on devices of several ranks are tested by all, in the batches that rank 0 found. */
static clv_status agree_on_predictor(clv_trainer *trainer, clv_predictor_config *predictor) {
    struct clv_ranks *ranks = trainer->config->ranks;
    int64_t batch = predictor->batch;
    if (!ranks || !ranks->layered) return CLV_OK;
    CLV_TRY(clv__ranks_agree(ranks, &batch, sizeof batch));
    if (batch == predictor->batch) return CLV_OK;
    predictor->batch = batch;
    return make_predictor(trainer, predictor);
}

/**
 * Evaluation takes turns with training in the same memory: in the largest batches that need no more of it
 * than training, or than a single sample where even that needs more (a workspace larger than all of
 * training's activations). Where only small batches do, for the bytes of a few logits perhaps, a 64th more is
 * taken if it is there.
 */
static clv_status build_predictor(clv_trainer *trainer) {
    const clv_train_config *config = trainer->config;
    int64_t count = clv_dataset_info_get(config->test).count,
            most = count < config->batch ? count : config->batch;
    uint64_t allowed = all_memory(trainer);
    clv_placement placement = config->placement;
    placement.n_replicas = 0; // evaluation is on the first of them
    if (config->placement.n_replicas && placement.place) {
        trainer->evaluated_place = clv__placement_beside(&placement, config->placement.replicas[0]);
        if (!trainer->evaluated_place) return no_memory(trainer);
        placement.place = trainer->evaluated_place;
        placement.explicit_transfers = false; // it would be asked of the model, which knows nothing of it
    }
    clv_predictor_config predictor = {.device = config->device,
                                      .placement = placement,
                                      .model = config->model,
                                      .loss = config->loss,
                                      .losses = config->losses,
                                      .n_losses = config->n_losses,
                                      .metrics = config->metrics,
                                      .n_metrics = config->n_metrics,
                                      .batch = 1,
                                      .variants = config->variants,
                                      .precision = config->precision,
                                      .no_fuse = config->no_fuse,
                                      .session = trainer->session,
                                      .same_session = clv_trainer_info_get(trainer).plan,
                                      .samples = config->test};
    CLV_TRY(make_predictor(trainer, &predictor));
    if (all_memory(trainer) > allowed) allowed = all_memory(trainer);
    CLV_TRY(shrink_predictor(trainer, &predictor, most, 1, allowed));
    int64_t found = predictor.batch;
    if (found >= most / 4) return agree_on_predictor(trainer, &predictor);
    CLV_TRY(shrink_predictor(trainer, &predictor, most, found, allowed + allowed / 64));
    if (all_fit(trainer)) return agree_on_predictor(trainer, &predictor);
    predictor.batch = found;
    CLV_TRY(make_predictor(trainer, &predictor));
    return agree_on_predictor(trainer, &predictor);
}

/** Training devices are those of the first plan: the last batch and evaluation use no others. */
static clv_status list_devices(clv_trainer *trainer) {
    const clv_plan *plan =
        trainer->step[CLV__FULL].plan ? trainer->step[CLV__FULL].plan : trainer->step[CLV__LAST].plan;
    int n = clv_plan_info_get(plan).n_devices;
    trainer->devices = clv__alloc((size_t)n, sizeof(clv_device *));
    trainer->held = clv__alloc((size_t)n, sizeof *trainer->held);
    if (!trainer->devices || !trainer->held) return no_memory(trainer);
    for (; trainer->n_devices < n; trainer->n_devices++)
        trainer->devices[trainer->n_devices] = clv_plan_device_get(plan, trainer->n_devices);
    return CLV_OK;
}

/** What the settings leave open, as far as the data set tells. */
static void complete_config(clv_trainer *trainer, clv_train_config *config) {
    config->epochs = (trainer->steps + trainer->batches - 1) / trainer->batches;
    clv_schedule *schedule = &config->schedule;
    if (schedule->per_step && schedule->warmup_epochs) { // so that both count the same
        schedule->warmup *= trainer->batches;
        schedule->warmup_epochs = false;
    }
    if (schedule->period || schedule->kind == CLV_SCHEDULE_CONSTANT ||
        schedule->kind == CLV_SCHEDULE_PLATEAU || schedule->kind == CLV_SCHEDULE_EXPONENTIAL)
        return;
    trainer->period_follows = true;
    schedule->period = schedule->per_step ? trainer->steps : config->epochs;
    if (schedule->per_step != schedule->warmup_epochs && schedule->warmup < schedule->period)
        schedule->period -= schedule->warmup;
}

/** config: the trainer's own, which nobody changes after this. */
static clv_status build(clv_trainer *trainer, clv_train_config *config) {
    CLV_TRY(check_config(trainer, clv__runtime_error_of(trainer->runtime)));
    CLV_TRY(clv__match_data(trainer->runtime, config->model, config->train, &trainer->match));
    if (config->test) {
        clv__match of_test;
        CLV_TRY(clv__match_data(trainer->runtime, config->model, config->test, &of_test));
    }
    int64_t count = clv_dataset_info_get(config->train).count, rest = count % config->batch;
    trainer->batches = (count + config->batch - 1) / config->batch;
    trainer->steps = config->steps ? config->steps : config->epochs * trainer->batches;
    complete_config(trainer, config);
    CLV_TRY(clv__ranks_place(trainer, config));
    CLV_TRY(choose_devices(trainer, config));
    CLV_TRY(choose_place(trainer, config));
    CLV_TRY(clv__ranks_share(trainer, config));
    CLV_TRY(
        clv_session_create(trainer->runtime, &(clv_session_config){.seed = config->seed}, &trainer->session));
    trainer->session->ranks = config->ranks;
    trainer->session->averages = config->ema_decay != 0;
    CLV_TRY(clv_weights_describe(trainer->session, config));
    if (count >= config->batch) {
        CLV_TRY(clv__step_build(trainer->runtime, config, clv__step_graph, trainer->shares, config->batch,
                                NULL, &trainer->step[CLV__FULL]));
    }
    // A training that ends before the first short batch needs no plan for it.
    if (rest && trainer->steps >= trainer->batches)
        CLV_TRY(clv__step_build(trainer->runtime, config, clv__step_graph, trainer->shares, rest,
                                trainer->step[CLV__FULL].plan, &trainer->step[CLV__LAST]));
    CLV_TRY(list_devices(trainer));
    const bool ranks_measure = clv__trainer_shares_out(config) && config->placement.measure_shares;
    for (int i = 0; (trainer->n_devices > 1 || ranks_measure) && i < trainer->n_devices; i++)
        CLV_TRY(clv_device_activity_start(trainer->devices[i])); // shares, and who waits for whom
    config->device = trainer->devices[0];                        // a placement's first
    return config->test ? build_predictor(trainer) : CLV_OK;
}

static clv_status create(clv_runtime *runtime, const clv_train_config *config, bool replay,
                         clv_trainer **out) {
    *out = NULL;
    clv_trainer *trainer = clv__alloc(1, sizeof *trainer);
    clv_train_config *own = clv__alloc(1, sizeof *own);
    if (!trainer || !own) {
        free(trainer);
        free(own);
        CLV_FAIL(clv__runtime_error_of(runtime), CLV_E_HOST_MEMORY, "no memory for a trainer");
    }
    *own = *config;
    if (!own->batch) own->batch = 64;
    if (!own->epochs) own->epochs = 1;
    if (!own->micro_batches) own->micro_batches = 1;
    trainer->runtime = runtime;
    trainer->replay = replay;
    trainer->config = own;
    clv_status status = build(trainer, own);
    if (status == CLV_OK)
        *out = trainer;
    else
        clv_trainer_destroy(trainer);
    return status;
}

clv_status clv_trainer_create(clv_runtime *runtime, const clv_train_config *config, clv_trainer **out) {
    CLV_TRY(CLV__GIVEN(NULL, runtime));
    CLV_TRY(CLV__USABLE(clv__runtime_error_of(runtime), out));
    CLV_TRY(CLV__USABLE(clv__runtime_error_of(runtime), config));
    const clv_status status = create(runtime, config, false, out);
    return status == CLV_OK || !config->ranks ? status : clv__ranks_told(runtime, config->ranks, status);
}

clv_status clv__trainer_replay(const clv_trainer *trainer, const clv_train_config *config,
                               clv_trainer **out) {
    return create(trainer->runtime, config, true, out);
}

void clv_trainer_destroy(clv_trainer *trainer) {
    if (!trainer) return;
    clv_predictor_destroy(trainer->predictor);
    for (int i = 0; i < CLV__STEPS; i++) clv__step_destroy(&trainer->step[i]);
    clv_session_destroy(trainer->session);
    for (size_t i = 0; i < trainer->n_lost; i++) free((char *)(uintptr_t)trainer->lost[i].reason);
    free(trainer->lost);
    free(trainer->times);
    free(trainer->busy.last);
    free(trainer->busy.seconds);
    free(trainer->shares);
    free(trainer->replicas);
    free(trainer->evaluated_place);
    free(trainer->ranks_place);
    free(trainer->devices);
    free(trainer->held);
    clv_free(trainer->place);
    free((clv_train_config *)(uintptr_t)trainer->config);
    free(trainer);
}

int clv__trainer_plans(const clv_trainer *trainer, clv_plan *plans[CLV__STEPS + 1]) {
    int n = 0;
    for (int i = 0; i < CLV__STEPS; i++)
        if (trainer->step[i].plan) plans[n++] = trainer->step[i].plan;
    if (trainer->predictor) plans[n++] = clv_predictor_info_get(trainer->predictor).plan;
    return n;
}

// ---- other shares -----------------------------------------------------------------------------------------

void clv__trainer_rest(clv_trainer *trainer) {
    for (int i = 0; i < CLV__STEPS; i++) {
        clv_run_destroy(trainer->step[i].run);
        trainer->step[i].run = NULL;
    }
    clv__predictor_rest(trainer->predictor);
}

/** A session's arenas only grow: keep what the plans so far have asked for. */
static void keep_held(clv_trainer *trainer) {
    for (int i = 0; i < trainer->n_devices; i++) trainer->held[i] = memory_on(trainer, trainer->devices[i]);
}

clv_status clv__trainer_reserve(const clv_trainer *trainer) {
    clv_plan *plans[CLV__STEPS + 1];
    return clv_session_reserve(trainer->session, plans, clv__trainer_plans(trainer, plans));
}

void clv__trainer_rows(const clv_trainer *trainer, int64_t batch, int64_t *rows) {
    clv__replica_rows(batch, trainer->shares, trainer->config->placement.n_replicas, rows);
}

static void swap_steps(clv_trainer *trainer, clv__step *steps) {
    for (int i = 0; i < CLV__STEPS; i++) {
        clv__step step = trainer->step[i];
        trainer->step[i] = steps[i];
        steps[i] = step;
    }
}

clv_status clv__trainer_share(clv_trainer *trainer, const double *shares) {
    clv__step steps[CLV__STEPS] = {0};
    clv_status status = CLV_OK;
    clv__trainer_rest(trainer);
    for (int i = 0; i < CLV__STEPS && status == CLV_OK; i++) {
        if (trainer->step[i].plan)
            status = clv__step_build(trainer->runtime, trainer->config, clv__step_graph, shares,
                                     trainer->step[i].batch, steps[CLV__FULL].plan, &steps[i]);
    }
    if (status == CLV_OK) {
        keep_held(trainer);
        swap_steps(trainer, steps); // `steps` are the old ones now
        status = clv__trainer_reserve(trainer);
        if (status != CLV_OK) swap_steps(trainer, steps);
    }
    for (int i = 0; i < CLV__STEPS; i++) clv__step_destroy(&steps[i]);
    for (int i = 0; status == CLV_OK && i < trainer->config->placement.n_replicas; i++)
        trainer->shares[i] = shares[i];
    return status;
}

// ---- what can be asked of a trainer -----------------------------------------------------------------------

clv_trainer_info clv_trainer_info_get(const clv_trainer *trainer) {
    const clv_plan *whole = trainer->step[CLV__FULL].plan;
    return (clv_trainer_info){.session = trainer->session,
                              .plan = whole ? whole : trainer->step[CLV__LAST].plan,
                              .place = trainer->place,
                              .shares = trainer->shares,
                              .devices = trainer->devices,
                              .n_devices = trainer->n_devices,
                              .lost = trainer->lost,
                              .n_lost = (int)trainer->n_lost};
}

clv_trainer_device_info clv_trainer_device_info_get(const clv_trainer *trainer, clv_device *device) {
    if (!device) device = trainer->devices[0];
    return (clv_trainer_device_info){
        .memory = memory_on(trainer, device),
        .busy = clv__trainer_busy(trainer, device),
        .predicted_busy = clv_plan_device_info_get(clv_trainer_info_get(trainer).plan, device).busy};
}

static int compare_times(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

clv_train_result clv_trainer_result(const clv_trainer *trainer) {
    clv_train_result result = trainer->result;
    result.steps = trainer->position.step;
    result.epochs = trainer->position.epoch;
    result.train_loss = trainer->position.train_loss * clv__units_trained(trainer->config);
    const clv__best *best = &trainer->position.best;
    result.best_epoch = best->epoch;
    result.best_value = best->epoch ? best->value : (double)NAN;
    double *sorted = trainer->n_times ? malloc(trainer->n_times * sizeof *sorted) : NULL;
    if (sorted) {
        for (size_t i = 0; i < trainer->n_times; i++) sorted[i] = trainer->times[i];
        qsort(sorted, trainer->n_times, sizeof *sorted, compare_times);
        result.step_ms = 1e3 * (sorted[(trainer->n_times - 1) / 2] + sorted[trainer->n_times / 2]) / 2;
    }
    free(sorted);
    return result;
}
