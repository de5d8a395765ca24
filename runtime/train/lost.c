// SPDX-License-Identifier: Apache-2.0
// What happens when a device fails in a training. The run says which steps are done all the same
// (clv_run_failed). Their losses are read, and the other steps are given up. If the device is a replica that
// alone keeps nothing, the others share its part of the batch, and the step is done again with the same
// samples. Otherwise, or if that was not asked for, a checkpoint is written if the parameters can still be
// read, and the sentence says what is lost.
//
// No error of OpenCL says that a device is gone, so any failure of a driver within a step counts.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/dataset.h"
#include "exec/session.h"
#include "train/loop.h"

static bool of_a_device(clv_status status) {
    return status == CLV_E_DEVICE || status == CLV_E_DEVICE_LOST || status == CLV_E_DEVICE_MEMORY;
}

/** Ask the runs which of them failed; CLV_OK if none did. */
static clv_run_failure find_failure(const clv_trainer *trainer) {
    for (int i = 0; i < CLV__STEPS; i++) {
        clv_run_failure failure = {0};
        if (trainer->step[i].run) failure = clv_run_failed(trainer->step[i].run);
        if (failure.status != CLV_OK) return failure;
    }
    return (clv_run_failure){0};
}

/** Count the steps that are done although nobody has read their losses; forget those that are not. */
static clv_status read_what_is_done(clv__training *loop, const clv_run_failure *failure) {
    while (loop->n_handed && loop->handed[0].ticket < failure->done) CLV_TRY(clv__training_read(loop));
    loop->n_handed = 0;
    loop->last_time = 0;
    return CLV_OK;
}

/** Is that device of no more use: the one that failed, or another of which nobody knows what still runs on
 *  it? */
static bool is_gone(const clv_run_failure *failure, const clv_device *device) {
    return device == failure->device || device->lost;
}

/** The device that is gone with something the session keeps there and nowhere else; NULL: there is none. */
static const clv_device *gone_keeper(clv_session *session, const clv_run_failure *failure) {
    for (int i = 0; i < clv_session_info_get(session).n_tensors; i++) {
        const clv_device *device = clv_session_get(session, i).device;
        if (is_gone(failure, device)) return device;
    }
    return NULL;
}

static clv_status remember(clv_trainer *trainer, clv_device *device, int64_t step, const char *reason) {
    char *copy = clv__strdup(reason);
    if (!copy ||
        !clv__grow(&trainer->lost, &trainer->lost_room, trainer->n_lost + 1, sizeof *trainer->lost)) {
        free(copy);
        CLV_FAIL(clv__runtime_error_of(trainer->runtime), CLV_E_HOST_MEMORY, "no memory for a lost device");
    }
    trainer->lost[trainer->n_lost++] = (clv_lost_device){.device = device, .step = step, .reason = copy};
    return CLV_OK;
}

// ---- stopping ---------------------------------------------------------------------------------------------

/** Can the training go on? If not, `why` says what keeps it from that, where that needs words. */
static bool can_go_on(const clv_trainer *trainer, const clv_run_failure *failure, char *why, size_t bytes) {
    const clv_placement *placement = &trainer->config->placement;
    *why = 0;
    if (trainer->config->on_device_failure != CLV_DEVICE_FAILURE_CONTINUE || !placement->n_replicas)
        return false;
    int n_left = 0;
    bool replica = false;
    for (int i = 0; i < placement->n_replicas; i++) {
        n_left += trainer->shares[i] > 0 && !is_gone(failure, trainer->replicas[i]);
        replica |= trainer->replicas[i] == failure->device;
    }
    const clv_device *keeper = gone_keeper(trainer->session, failure);
    if (!n_left)
        snprintf(why, bytes, "; no other device is left");
    else if (keeper == failure->device)
        snprintf(why, bytes, "; the others cannot go on without the parameters it kept");
    else if (keeper)
        snprintf(why, bytes, "; %s failed too, and the others cannot go on without the parameters it kept",
                 clv_device_info_get(keeper)->name);
    else if (failure->partial)
        snprintf(why, bytes, "; it left the parameters half updated");
    else if (!replica)
        snprintf(why, bytes, "; layers are placed on it");
    return !*why;
}

/** Where the steps are that are done, `saved` being what came of writing a checkpoint. */
static void tell_fate(const clv__training *loop, clv_status saved, char *out, size_t bytes) {
    const int64_t done = loop->trainer->position.step;
    if (saved != CLV_OK)
        snprintf(out, bytes, "the checkpoint could not be written either: %s",
                 clv_runtime_error(loop->trainer->runtime));
    else if (loop->saved_path && loop->saved_step == done)
        snprintf(out, bytes,
                 "all %" PRId64
                 " steps before it are in checkpoint '%s': go on with clv_train_config.resume %s",
                 done, loop->saved_path, loop->saved_path);
    else if (loop->saved_path)
        snprintf(out, bytes,
                 "%" PRId64 " steps before it are lost, the last checkpoint is '%s' of step %" PRId64
                 ": go on with clv_train_config.resume %s",
                 done - loop->saved_step, loop->saved_path, loop->saved_step, loop->saved_path);
    else if (loop->trainer->config->checkpoint)
        snprintf(out, bytes,
                 "no checkpoint was written to '%s' yet: all %" PRId64 " steps before it are lost",
                 loop->trainer->config->checkpoint, done);
    else
        snprintf(out, bytes,
                 "there is no checkpoint (clv_train_config.checkpoint): all %" PRId64
                 " steps before it are lost",
                 done);
}

static clv_status stop(clv__training *loop, const clv_run_failure *failure, const char *said,
                       const char *why) {
    const clv_trainer *trainer = loop->trainer;
    char fate[CLV__ERROR_BYTES / 2];
    bool intact = !failure->partial && !gone_keeper(trainer->session, failure);
    tell_fate(loop, intact ? clv__training_save(loop) : CLV_OK, fate, sizeof fate);
    loop->told = true;
    CLV_FAIL(loop->error, CLV_E_DEVICE_LOST, "%s failed in step %" PRId64 " of %" PRId64 ": %s%s; %s",
             clv_device_info_get(failure->device)->name, trainer->position.step + 1, trainer->steps, said,
             why, fate);
}

clv_status clv__training_failed(clv__training *loop, clv_status status) {
    if (loop->told || !of_a_device(status) || loop->trainer->position.step == 0) return status;
    char said[CLV__ERROR_BYTES], fate[CLV__ERROR_BYTES / 2];
    clv__error_read(loop->error, said);
    tell_fate(loop, CLV_OK, fate, sizeof fate);
    CLV_FAIL(loop->error, status, "after step %" PRId64 " of %" PRId64 ": %.*s; %s",
             loop->trainer->position.step, loop->trainer->steps, CLV__ERROR_BYTES / 3, said, fate);
}

// ---- going on ---------------------------------------------------------------------------------------------

/** What a lost replica computed is shared out among the others, in proportion to their shares. */
static double *shares_without(const clv_trainer *trainer, const clv_run_failure *failure) {
    const int n = trainer->config->placement.n_replicas;
    double *shares = clv__alloc((size_t)n, sizeof *shares), sum = 0;
    for (int i = 0; shares && i < n; i++) {
        shares[i] = is_gone(failure, trainer->replicas[i]) ? 0 : trainer->shares[i];
        sum += shares[i];
    }
    for (int i = 0; shares && i < n; i++) shares[i] /= sum; // not 0: see can_go_on
    return shares;
}

static clv_status go_on(clv__training *loop, const clv_run_failure *failure, const char *said) {
    clv_trainer *trainer = loop->trainer;
    const clv__position *position = &trainer->position;
    double *shares = shares_without(trainer, failure);
    if (!shares) CLV_FAIL(loop->error, CLV_E_HOST_MEMORY, "no memory to go on without a device");
    clv__log(trainer->runtime, CLV_LOG_WARNING,
             "%s failed in step %" PRId64 " of %" PRId64 ": %s; going on without it",
             clv_device_info_get(failure->device)->name, position->step + 1, trainer->steps, said);
    clv_status status = CLV_OK;
    for (int i = 0; i < trainer->config->placement.n_replicas && status == CLV_OK; i++) {
        if (shares[i] > 0 || trainer->shares[i] == 0) continue;
        clv__session_forget(trainer->session, trainer->replicas[i]);
        status = remember(trainer, trainer->replicas[i], position->step + 1, said);
    }
    if (status == CLV_OK) status = clv__trainer_share(trainer, shares);
    loop->balance = (clv__balance){0};
    loop->watch.broken = true;
    free(shares);
    if (status == CLV_OK) status = clv__loader_seek(loop->loader, position->epoch, position->index);
    return status;
}

clv_status clv__training_lost(clv__training *loop, clv_status status) {
    clv_trainer *trainer = loop->trainer;
    clv_run_failure failure = of_a_device(status) ? find_failure(trainer) : (clv_run_failure){0};
    if (!of_a_device(failure.status)) return status;   // files, memory of the host, an interruption
    if (trainer->config->ranks) return failure.status; // the others cannot go on without this one
    char said[CLV__ERROR_BYTES];
    snprintf(said, sizeof said, "%.*s", CLV__ERROR_BYTES / 3, failure.sentence);
    CLV_TRY(read_what_is_done(loop, &failure));
    clv__trainer_rest(trainer); // what is kept can be read again
    trainer->session->step = trainer->position.step;
    char also[CLV__ERROR_BYTES / 3];
    if (!can_go_on(trainer, &failure, also, sizeof also)) return stop(loop, &failure, said, also);
    clv_status went_on = go_on(loop, &failure, said);
    if (went_on == CLV_OK) return CLV_OK;
    snprintf(also, sizeof also, "; going on without it failed: %.*s", CLV__ERROR_BYTES / 4,
             clv_runtime_error(trainer->runtime));
    return stop(loop, &failure, said, also);
}
