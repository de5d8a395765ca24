// SPDX-License-Identifier: Apache-2.0
// What is done of a training: the loss of a step is read, the step is counted and told, the position is
// written to disk. The loop (loop.c) and what comes after a failure (lost.c) call this; it calls neither.
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "device/device.h"
#include "exec/exchange.h"
#include "exec/ranks.h"
#include "exec/run.h"
#include "train/loop.h"
#include "infer/units.h"

/** Keep how long a step took. Pauses are no steps, and the first step of a run is not counted: kernels are
 *  compiled and caches are filled in it. */
static clv_status keep_time(clv__training *loop, double seconds, int64_t images) {
    clv_trainer *trainer = loop->trainer;
    if (trainer->n_times == trainer->times_room &&
        !clv__grow(&trainer->times, &trainer->times_room, trainer->n_times + 1, sizeof *trainer->times))
        CLV_FAIL(loop->error, CLV_E_HOST_MEMORY, "no memory for the times of steps");
    trainer->times[trainer->n_times++] = seconds;
    trainer->timed_images += images;
    trainer->timed_seconds += seconds;
    trainer->result.images_per_second = (double)trainer->timed_images / trainer->timed_seconds;
    return CLV_OK;
}

/** A loss that is not finite is told of once. With a loss scaler it costs no more than the step, unless
 *  parameters are not finite either: that would show in the losses to come. */
static void tell_not_finite(clv__training *loop, double loss) {
    const clv_trainer *trainer = loop->trainer;
    bool scaled = trainer->config->precision == CLV_PRECISION_MIXED;
    if (loop->diverged || (!scaled && trainer->config->on_nan == CLV_NAN_STOP)) return;
    loop->diverged = true;
    clv__log(trainer->runtime, CLV_LOG_WARNING, "the loss of step %lld is %s: %s",
             (long long)trainer->position.step + 1, isnan(loss) ? "not a number" : "infinite",
             scaled ? "values went past what f16 holds, and the step updates nothing; if losses stay so, a "
                      "smaller learning rate, clip_norm, smaller inputs or precision mixed-bf16 may help"
                    : "the training goes on, but learns nothing more; a smaller learning rate, clip_norm or "
                      "other data may help");
}

clv_status clv__training_read(clv__training *loop) {
    clv_trainer *trainer = loop->trainer;
    const clv_train_config *config = trainer->config;
    clv__handed waiting = loop->handed[0];
    float loss;
    CLV_TRY(clv_run_fetch(waiting.step->run, waiting.ticket, waiting.step->loss, &loss, sizeof loss));
    for (int i = 1; i < loop->n_handed; i++) loop->handed[i - 1] = loop->handed[i];
    loop->n_handed--;
    loop->last_step = waiting.step;
    loop->last_ticket = waiting.ticket;

    double now = clv__seconds(), seconds = now - (loop->last_time != 0 ? loop->last_time : waiting.since);
    if (loop->first_read && !waiting.first) CLV_TRY(keep_time(loop, seconds, waiting.n));
    CLV_TRY(clv__trainer_see_busy(trainer, loop->first_read && loop->last_time != 0 ? seconds : 0));
    loop->first_read = true;
    loop->last_time = now;
    loop->epoch_seconds += seconds;

    clv__position *position = &trainer->position;
    if (!isfinite(loss)) tell_not_finite(loop, (double)loss);
    // The loss scaler skips a step whose values overflow: that is no part of what the epoch has learnt.
    bool counts = isfinite(loss) || config->precision != CLV_PRECISION_MIXED;
    if (counts) {
        position->loss_sum += (double)loss * (double)waiting.n;
        position->loss_count += waiting.n;
    }
    position->step++;
    position->index++;
    if (config->ranks) {
        // of the step that was read, not of one under way: so all ranks have handed over the same steps
        if (clv__exchange_stops(waiting.step->run->exchange, waiting.ticket))
            atomic_store(&config->ranks->agreed_stop, true);
        atomic_store(&config->ranks->step, position->step);
        config->ranks->saved = config->ranks->saving; // else rank 0 would not have come to this step
    }
    position->train_loss =
        position->loss_count ? position->loss_sum / (double)position->loss_count : (double)loss;
    if (!config->on_step) return clv__training_see_loss(loop, (double)loss);
    clv_memory_info memory = clv_device_memory(config->device);
    clv_train_step told = {
        .step = position->step,
        .steps = trainer->steps,
        .epoch = position->epoch + 1,
        .batch = position->index,
        .batches = trainer->batches,
        .loss = (double)loss * clv__units_trained(config),
        .lr = waiting.lr,
        .images_per_second = (double)waiting.n / seconds,
        .used_bytes = memory.all.current,
        .peak_bytes = memory.all.peak,
    };
    if (!config->on_step(config->user, &told)) loop->stop = true;
    return clv__training_see_loss(loop, (double)loss);
}

clv_status clv__training_save(clv__training *loop) {
    clv_trainer *trainer = loop->trainer;
    const char *path = trainer->config->checkpoint;
    bool there = loop->saved_step == trainer->position.step;
    if (!path || (there && !strcmp(path, loop->saved_path))) return CLV_OK;
    CLV_TRY(clv__training_check(loop));
    CLV_TRY(clv__ranks_gather(trainer));
    if (!clv__trainer_writes(trainer))
        CLV_TRY(clv__state_hand_over(trainer->session));
    else
        CLV_TRY(clv__checkpoint_save(trainer->config, trainer->session, &trainer->position));
    loop->saved_step = trainer->position.step;
    loop->saved_path = path;
    if (trainer->config->ranks) trainer->config->ranks->saving = loop->saved_step;
    if (trainer->config->ranks && clv__trainer_writes(trainer))
        trainer->config->ranks->saved = loop->saved_step;
    return CLV_OK;
}
