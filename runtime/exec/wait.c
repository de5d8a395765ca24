// SPDX-License-Identifier: Apache-2.0
// Waiting for a run's steps, also where a device does not answer.
#include "base/patience.h"
#include "exec/run.h"

static clv__error *error_of(const clv_run *run) {
    return clv__plan_error(run->plan);
}

enum { GRACE_SECONDS = 3 }; // for the worker of a device that was silenced, to give up what it has

/** The device does not answer while a step is handed to it. The run's lock is held, and let go of
 *  meanwhile. */
static void give_up(clv_run *run, clv__executor *executor, int64_t ticket) {
    run->stuck = true;
    pthread_mutex_unlock(&run->lock);
    clv__device_silence(executor->device);
    clv_status status = clv__device_silent(executor->device, error_of(run));
    clv__run_fail(run, ticket, executor->device, status);
    pthread_mutex_lock(&run->lock);
}

/** A executor that was in its driver at the last look and has not come out since; NULL: none. Looks at all:
 *  who waits for another is not the one that is stuck. */
static clv__executor *find_stuck(clv_run *run, int slot) {
    clv__executor *stuck = NULL;
    for (int s = 0; s < run->n_executors; s++) {
        clv__executor *executor = &run->executors[s];
        unsigned long beats = atomic_load(&executor->device->beats);
        if (beats == executor->seen_beats && !atomic_load(&executor->waits) &&
            executor->steps[slot].state == CLV__SLOT_POSTED && !stuck)
            stuck = executor;
        executor->seen_beats = beats;
    }
    return stuck;
}

/** Wait until a step is enqueued; the run's lock is held. False: its worker is stuck in its driver. */
static bool wait_until_enqueued(clv_run *run, clv__executor *executor, int slot) {
    const clv__executor_step *step = &executor->steps[slot];
    clv__patience patience = {.limit = executor->device->runtime->config.device_timeout};
    if (atomic_load(&executor->device->silent)) patience.limit = GRACE_SECONDS;
    for (int s = 0; s < run->n_executors; s++)
        run->executors[s].seen_beats = atomic_load(&run->executors[s].device->beats);
    while (step->state == CLV__SLOT_POSTED) {
        if (clv__patience_wait(&patience, &run->enqueued, &run->lock)) continue;
        patience.spent = 0;
        clv__executor *stuck = find_stuck(run, slot);
        if (stuck && !atomic_load(&stuck->device->silent)) give_up(run, stuck, stuck->steps[slot].ticket);
        if (stuck == executor) return step->state != CLV__SLOT_POSTED;
    }
    return true;
}

/** Wait until a executor's step in the slot, if any, is done on the device. */
static void wait_for_executor(clv_run *run, clv__executor *executor, int slot) {
    clv__executor_step *step = &executor->steps[slot];
    pthread_mutex_lock(&run->lock);
    if (!wait_until_enqueued(run, executor, slot)) run->stuck = true;
    bool enqueued = step->state == CLV__SLOT_ENQUEUED;
    step->state = CLV__SLOT_FREE;
    pthread_mutex_unlock(&run->lock);
    if (!enqueued) return;
    if (!step->done) {
        clv__activity_settle(&executor->activity[slot], executor->device, NULL);
        if (run->profiled) clv__profile_settle(run, executor->index, slot, false);
        return;
    }
    bool news = clv__run_goes_on(run, step->ticket); // a failure that was told already is not told again
    clv_status status = clv__device_wait(executor->device, step->done, news ? error_of(run) : NULL);
    clv__activity_settle(&executor->activity[slot], executor->device, status == CLV_OK ? step->done : NULL);
    if (run->profiled) clv__profile_settle(run, executor->index, slot, status == CLV_OK);
    executor->device->backend->event_destroy(step->done);
    step->done = NULL;
    step->complete = status == CLV_OK;
    if (status != CLV_OK) clv__run_fail(run, step->ticket, executor->device, status);
}

clv_status clv__run_wait_for_slot(clv_run *run, int slot, int64_t ticket) {
    if (clv__run_pauses(run) && ticket > 0 &&
        ticket == run->next_ticket - 1) // the older step first, for its profile
        wait_for_executor(run, &run->executors[0], !slot);
    for (int s = 0; s < run->n_executors; s++) wait_for_executor(run, &run->executors[s], slot);
    return clv__run_status(run, ticket);
}

void clv__run_wait(clv_run *run) {
    for (int64_t t = run->next_ticket; t < run->next_ticket + CLV__SLOTS; t++) { // the older step first
        for (int s = 0; s < run->n_executors; s++)
            wait_for_executor(run, &run->executors[s], (int)(t % CLV__SLOTS));
    }
}
