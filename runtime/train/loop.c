// SPDX-License-Identifier: Apache-2.0
// The trainer's loop: steps, epochs, interruption. Two steps are under way at once: the loss of a step is
// read after the next one was handed to the devices, so no device waits for the host. A step counts as done
// when its loss was read.
#include "train/loop.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "device/device.h"
#include "graph/graph.h"
#include "io/file.h"
#include "exec/ranks.h"
#include "exec/session.h"
#include "infer/averages.h"
#include "infer/units.h"

/** Ranks stop after the same step: who is asked to says so in a step, and all stop when that was done. */
static bool interrupted(const clv__training *loop) {
    const volatile int *flag = loop->trainer->config->interrupt;
    struct clv_ranks *ranks = loop->trainer->config->ranks;
    const bool here = loop->stop || (flag && *flag);
    if (!ranks) return here;
    if (here) atomic_store(&ranks->wants_stop, true);
    return atomic_load(&ranks->agreed_stop);
}

// ---- one step ---------------------------------------------------------------------------------------------

/** Read losses until at most n steps are left that were handed over and not read. */
static clv_status read_down_to(clv__training *loop, int n) {
    while (loop->n_handed > n) CLV_TRY(clv__training_read(loop));
    return CLV_OK;
}

/** Feed a batch to the run for batches of its size and hand the step over; then read the loss of the step
 *  before. */
static clv_status do_step(clv__training *loop, const clv_batch *batch) {
    clv_trainer *trainer = loop->trainer;
    const clv_train_config *config = trainer->config;
    clv__step *step = &trainer->step[batch->whole == config->batch ? CLV__FULL : CLV__LAST];
    clv__handed next = {.step = step, .n = batch->whole, .since = clv__seconds(), .first = !step->run};
    const int64_t before =
        clv_session_info_get(trainer->session).step; // handed over, also those not read yet
    next.lr = clv__trainer_lr(trainer, trainer->position.epoch, before);
    float hyper[CLV_HYPER_VALUES];
    clv_optimizer_hyper_values(step->graph, before + 1, next.lr, hyper);
    if (loop->n_handed && loop->handed[0].step != step)
        CLV_TRY(read_down_to(loop, 0)); // both runs use the same memory: the one before ends first
    if (!step->run) CLV_TRY(clv_run_create(trainer->session, step->plan, &step->run));
    CLV_TRY(clv__step_feed(step, &trainer->match, batch));
    CLV_TRY(clv_run_feed(step->run, step->hyper, hyper, sizeof hyper));
    CLV_TRY(clv_run_step(step->run, &next.ticket));
    loop->handed[loop->n_handed++] = next;
    return read_down_to(loop, 1);
}

/** Has this epoch a step that was not handed over yet? */
static bool has_next(const clv__training *loop) {
    const clv_trainer *trainer = loop->trainer;
    return clv_session_info_get(trainer->session).step < trainer->steps &&
           trainer->position.index + loop->n_handed < trainer->batches;
}

/** Every checkpoint_every steps, but not at the end of an epoch, where one is written anyway. */
static clv_status save_between(clv__training *loop) {
    const clv_trainer *trainer = loop->trainer;
    const clv_train_config *config = trainer->config;
    if (!config->checkpoint || !config->checkpoint_every ||
        clv_session_info_get(trainer->session).step % config->checkpoint_every != 0 ||
        trainer->position.index + loop->n_handed >= trainer->batches)
        return CLV_OK;
    CLV_TRY(read_down_to(loop, 0));
    CLV_TRY(clv__training_save(loop));
    loop->last_time = 0; // the pause is not counted as a step's time
    return CLV_OK;
}

/** Steps until the epoch ends, the training ends, somebody interrupts, or a device fails. */
static clv_status do_steps(clv__training *loop) {
    while (has_next(loop) && !interrupted(loop)) {
        clv_batch batch;
        CLV_TRY(clv__step_next(&loop->trainer->step[CLV__FULL], &loop->trainer->match, loop->loader, &batch));
        clv_status status = do_step(loop, &batch);
        clv_loader_release(loop->loader, &batch);
        CLV_TRY(status);
        if (!loop->first_read) {
            CLV_TRY(
                read_down_to(loop, 0)); // the first loss is read at once: it ends the start-up that is timed
            loop->startup_seconds += clv__seconds();
            clv__watch_begin(loop); // again: start-up is no part of what replicas are measured by
        }
        CLV_TRY(save_between(loop));
    }
    CLV_TRY(read_down_to(loop, 0));
    loop->last_time = 0;
    return CLV_OK;
}

/** The rest of an epoch. After the loss of a device that can be done without, the steps that are left go on
 *  without it. */
static clv_status do_epoch(clv__training *loop) {
    clv_status status = do_steps(loop);
    while (status != CLV_OK) {
        CLV_TRY(clv__training_lost(loop, status));
        status = do_steps(loop);
    }
    return CLV_OK;
}

// ---- the end of an epoch ----------------------------------------------------------------------------------

static clv_status save_gradients(clv__training *loop) {
    clv_archive *archive = NULL;
    clv_status status = clv_archive_create(loop->trainer->runtime, &archive);
    const clv__step *step = loop->last_step;
    for (int i = 0; status == CLV_OK && step && i < clv_graph_info_get(step->graph).n_parameters; i++) {
        clv_tensor *parameter = clv_parameter_get(step->graph, i),
                   *gradient = clv__step_gradient(step, parameter);
        if (!gradient) continue;
        clv_shape shape = clv_tensor_shape(gradient);
        clv_array *array;
        status = clv_archive_add(archive, clv_tensor_name(parameter), CLV_DTYPE_F32, &shape, NULL, &array);
        if (status == CLV_OK)
            status = clv_run_fetch(step->run, loop->last_ticket, gradient, array->data,
                                   clv_tensor_bytes(gradient));
    }
    if (status == CLV_OK) status = clv_safetensors_write(archive, loop->trainer->config->gradients);
    clv_archive_destroy(archive);
    return status;
}

static bool on_evaluate(void *user, int64_t done, int64_t total) {
    clv__training *loop = user;
    const clv_train_config *config = loop->trainer->config;
    if (config->on_evaluate && !config->on_evaluate(config->user, done, total)) loop->stop = true;
    return !interrupted(loop);
}

/** Read the loss scaler's state, which changes on the device in each step, into the result. */
static clv_status read_scaler(clv_trainer *trainer) {
    int scale = clv_session_find(trainer->session, "scaler.scale"),
        skipped = clv_session_find(trainer->session, "scaler.skipped");
    float value;
    if (scale < 0 || skipped < 0) return CLV_OK;
    CLV_TRY(clv_session_read(trainer->session, scale, &value, sizeof value));
    trainer->result.loss_scale = (double)value;
    CLV_TRY(clv_session_read(trainer->session, skipped, &value, sizeof value));
    trainer->result.skipped_steps = (int64_t)value;
    return CLV_OK;
}

/** Of ranks each tests a part, with the first one's running statistics. */
static clv_status evaluate(clv__training *loop) {
    clv_trainer *trainer = loop->trainer;
    const clv_train_config *config = trainer->config;
    const bool together = config->ranks && config->ranks->layered; // none can leave the others there
    if (config->ranks && interrupted(loop)) // all know it: none waits for another's part
        CLV_FAIL(loop->error, CLV_E_INTERRUPTED, "the evaluation was interrupted");
    if (config->ranks && !together) CLV_TRY(clv__ranks_take_buffers(trainer));
    return clv__evaluate(trainer->predictor, config->test, together ? NULL : config->ranks,
                         together ? NULL : on_evaluate, loop, &trainer->result.test);
}

/** Evaluate, see whether it is the best so far, and call on_epoch. */
static clv_status end_epoch(clv__training *loop) {
    clv_trainer *trainer = loop->trainer;
    const clv_train_config *config = trainer->config;
    const int64_t epoch = trainer->position.epoch + (trainer->position.index > 0); // a part counts as one
    const int64_t last = trainer->position.step > 0 ? trainer->position.step - 1 : 0;
    const double lr = clv__trainer_lr(trainer, last / trainer->batches, last);
    bool best = false;
    CLV_TRY(read_scaler(trainer));
    if (clv__trainer_tests(trainer)) {
        CLV_TRY(evaluate(loop));
        trainer->result.evaluated = true;
        trainer->result.tested_step = trainer->position.step;
        CLV_TRY(clv__training_judge(loop, &trainer->result.test, epoch, &best));
    }
    clv__training_see_plateau(trainer);
    if (!config->on_epoch) return CLV_OK;
    clv_train_epoch told = {
        .epoch = epoch,
        .epochs = config->epochs,
        .train_loss = trainer->position.train_loss * clv__units_trained(config),
        .evaluated = trainer->result.evaluated,
        .test = trainer->result.test,
        .best = best,
        .seconds = loop->epoch_seconds,
        .lr = lr,
        .shares = trainer->shares,
    };
    if (!config->on_epoch(config->user, &told)) loop->stop = true;
    return CLV_OK;
}

/** Was a callback, or a signal, on any rank the end of it? Between steps rank 0 says. */
static clv_status agree_on_stop(clv__training *loop) {
    struct clv_ranks *ranks = loop->trainer->config->ranks;
    if (!ranks) return CLV_OK;
    bool stop = atomic_load(&ranks->agreed_stop) || atomic_load(&ranks->wants_stop);
    CLV_TRY(clv__ranks_agree(ranks, &stop, sizeof stop));
    if (stop) atomic_store(&ranks->agreed_stop, true);
    return CLV_OK;
}

static clv_status stop_here(clv__training *loop) {
    CLV_TRY(clv__training_check(loop)); // only finite parameters are saved
    CLV_TRY(clv__training_save(loop));
    CLV_TRY(clv__ranks_gather(loop->trainer));
    CLV_TRY(read_scaler(loop->trainer));
    const clv_train_config *config = loop->trainer->config;
    CLV_FAIL(loop->error, CLV_E_INTERRUPTED, "interrupted after step %lld of %lld%s%s",
             (long long)loop->trainer->position.step, (long long)loop->trainer->steps,
             config->checkpoint ? "; go on with clv_train_config.resume "
                                : "; no checkpoint was asked for (clv_train_config.checkpoint)",
             config->checkpoint ? config->checkpoint : "");
}

/** Is nothing left to train? */
static bool is_done(const clv__training *loop) {
    return loop->trainer->position.step >= loop->trainer->steps || clv__training_exhausted(loop, 0);
}

/** The end of an epoch, which may be the end of the training. */
static clv_status end_or_stop(clv__training *loop) {
    clv_status status = end_epoch(loop);
    if (status == CLV_OK) status = agree_on_stop(loop);
    if (status == CLV_E_INTERRUPTED || (status == CLV_OK && interrupted(loop) && !is_done(loop)))
        return stop_here(loop);
    return status;
}

/** If the checkpoint was written before its epoch was tested, test it now. */
static clv_status test_first(clv__training *loop) {
    return clv__training_untested(loop) ? end_or_stop(loop) : CLV_OK;
}

/** The whole training, from the position. The last step's gradients are read before evaluation or anything
 *  else uses the memory they lie in. `over`: the epoch is done; `done`: no step is left, or patience ends
 *  unless this epoch, which is not tested yet, is the best. */
static clv_status train(clv__training *loop) {
    clv_trainer *trainer = loop->trainer;
    const clv_train_config *config = trainer->config;
    clv__position *position = &trainer->position;
    CLV_TRY(test_first(loop));
    while (!is_done(loop)) {
        loop->epoch_seconds = 0;
        clv__watch_begin(loop);
        CLV_TRY(do_epoch(loop));
        clv__watch_end(loop);
        const bool over = position->index == trainer->batches;
        const bool done = position->step == trainer->steps || (over && clv__training_exhausted(loop, 1));
        if (over) {
            position->epoch++;
            position->index = position->loss_count = 0;
            position->loss_sum = 0;
        }
        if (done && config->gradients && clv__trainer_writes(trainer)) CLV_TRY(save_gradients(loop));
        if (!over && !done) return stop_here(loop);
        if (done) CLV_TRY(clv__training_check(loop));
        if (done) CLV_TRY(clv__training_check_loss(loop));
        CLV_TRY(clv__training_save(loop));
        CLV_TRY(end_or_stop(loop));
        if (!is_done(loop)) CLV_TRY(clv__training_adapt(loop));
    }
    // Resumed at the very end: nothing is left to train, but the result is wanted.
    if (clv__trainer_tests(trainer) && !trainer->result.evaluated) CLV_TRY(end_epoch(loop));
    trainer->result.end = position->step < trainer->steps ? CLV_END_PATIENCE : CLV_END_STEPS;
    return clv__ranks_gather(trainer);
}

/** A checkpoint from beyond the end of what is asked for is a mistake; from the very end it is not. */
static clv_status check_position(const clv__training *loop) {
    const clv_trainer *trainer = loop->trainer;
    const clv__position *position = &trainer->position;
    const char *path = trainer->config->resume;
    if (position->index >= trainer->batches ||
        (position->step - position->index) / trainer->batches != position->epoch ||
        (position->step - position->index) % trainer->batches)
        CLV_FAIL(loop->error, CLV_E_FORMAT,
                 "checkpoint '%s' stands at step %lld, which is not batch %lld of epoch %llu with %lld "
                 "batches each",
                 path, (long long)position->step, (long long)position->index,
                 (unsigned long long)position->epoch + 1, (long long)trainer->batches);
    if (position->loss_count > position->index * trainer->config->batch)
        CLV_FAIL(loop->error, CLV_E_FORMAT,
                 "checkpoint '%s' has the losses of %lld samples of an epoch of which %lld batches of %lld "
                 "are done",
                 path, (long long)position->loss_count, (long long)position->index,
                 (long long)trainer->config->batch);
    if (position->step > trainer->steps)
        CLV_FAIL(loop->error, CLV_E_VALUE,
                 "checkpoint '%s' stands after step %lld, but only %lld steps are asked for: ask for more "
                 "(clv_train_config.epochs, clv_train_config.steps), "
                 "or take an earlier one",
                 path, (long long)position->step, (long long)trainer->steps);
    return CLV_OK;
}

/** What is written at the end, or when something fails: better told before the first step. */
static clv_status try_files(const clv__training *loop) {
    const clv_train_config *config = loop->trainer->config;
    if (!clv__trainer_writes(loop->trainer)) return CLV_OK;
    if (config->checkpoint) CLV_TRY(clv__output_try(loop->error, config->checkpoint, true));
    if (config->best) CLV_TRY(clv__output_try(loop->error, config->best, false));
    return config->gradients ? clv__output_try(loop->error, config->gradients, false) : CLV_OK;
}

/** Parameters and position are those that the training begins with. */
static clv_status prepare(clv__training *loop) {
    clv_trainer *trainer = loop->trainer;
    const clv_train_config *config = trainer->config;
    loop->startup_seconds = -clv__seconds();
    CLV_TRY(try_files(loop));
    clv_status status = clv__trainer_reserve(trainer);
    if (status != CLV_OK) return clv__trainer_refused(trainer, status);
    if (config->weights)
        CLV_TRY(clv_weights_load_lora(trainer->session, config->weights, config->weights_except,
                                      config->lora.weights));
    if (config->ema_decay != 0 && trainer->position.step == 0) // when it is run again they are there already
        CLV_TRY(clv__averages_begin(trainer->session));
    if (config->resume) {
        CLV_TRY(clv__checkpoint_load(config, trainer->period_follows, trainer->session, &trainer->position));
        CLV_TRY(check_position(loop));
        loop->saved_step = trainer->position.step;
        loop->saved_path = config->resume;
        if (config->ranks && config->checkpoint && !strcmp(config->checkpoint, config->resume))
            config->ranks->saving = config->ranks->saved = loop->saved_step;
    }
    trainer->session->step = trainer->position.step;
    return CLV_OK;
}

static clv_status start(clv__training *loop) {
    const clv_trainer *trainer = loop->trainer;
    const clv_train_config *config = trainer->config;
    const clv_status status = prepare(loop);
    if (status != CLV_OK && config->ranks) return clv__ranks_told(trainer->runtime, config->ranks, status);
    CLV_TRY(status);
    if (config->ranks) {
        CLV_TRY(clv__ranks_ready(config->ranks, NULL));
        atomic_store(&config->ranks->agreed_stop, false);
        CLV_TRY(clv__ranks_compare(config, trainer));
    }
    const clv__position *position = &trainer->position;
    const clv_loader_config loader = clv__labels_loader(config, position->epoch, position->index);
    return clv_loader_create(trainer->runtime, config->train, &loader, &loop->loader);
}

/** This rank cannot go on, and so none can: the others are told why, and how to go on is said here. */
static clv_status end_ranks(clv_trainer *trainer, clv_status status) {
    const clv_train_config *config = trainer->config;
    char said[CLV__ERROR_BYTES];
    clv__error *error = clv__runtime_error_of(trainer->runtime);
    clv__error_read(error, said);
    clv__ranks_fail(config->ranks, said);
    if (status != CLV_E_RANK_LOST) {
        clv__error_set(error, status, "rank %d of %d: %s", config->ranks->place.rank,
                       config->ranks->place.size, said);
        return status;
    }
    CLV_FAIL(error, status, "%s; %s%s", said,
             config->checkpoint ? "go on, with any number of ranks, with clv_train_config.resume "
                                : "no checkpoint was asked for (clv_train_config.checkpoint)",
             config->checkpoint ? config->checkpoint : "");
}

clv_status clv_trainer_run(clv_trainer *trainer) {
    CLV_TRY(CLV__GIVEN(NULL, trainer));
    CLV_TRY(CLV__USABLE(clv__runtime_error_of(trainer->runtime), trainer));
    clv__training loop = {
        .trainer = trainer, .error = clv__runtime_error_of(trainer->runtime), .saved_step = -1};
    clv_status status = start(&loop);
    if (status == CLV_OK) status = train(&loop);
    if (status != CLV_OK) status = clv__training_failed(&loop, status);
    // what all ranks find at once they need not be told
    const struct clv_ranks *ranks = trainer->config->ranks;
    if (ranks && !ranks->refused && status != CLV_OK && status != CLV_E_INTERRUPTED &&
        (status != CLV_E_NOT_FINITE || ranks->layered))
        status = end_ranks(trainer, status);
    clv_loader_destroy(loop.loader);
    return status;
}
