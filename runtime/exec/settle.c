// SPDX-License-Identifier: Apache-2.0
// After a failure: wait until nothing of the run is under way on any device, and find out which steps are
// done.
#include "exec/run.h"

/** The failure itself has been told: what this says of it is not to take the place of that sentence. */
static clv_status drain(void *device) {
    clv_status told = clv__device_settle(device, NULL);
    (void)told;
    return CLV_OK;
}

/** What the devices that keep or change tensors of the session did of a step. */
typedef struct progress {
    bool all, some; // each has done its part; one has begun to update
} progress;

static progress look_at_step(const clv_run *run, int64_t ticket) {
    progress found = {.all = true};
    bool any = false;
    for (int s = 0; s < run->n_executors; s++) {
        const clv__place *place = run->executors[s].place;
        const clv__executor_step *step = &run->executors[s].steps[ticket % CLV__SLOTS];
        const bool here = step->ticket == ticket;
        found.some |= here && step->updating;
        if (!place->n_persistents && !place->updates) continue;
        any = true;
        found.all &= here && step->complete;
    }
    found.all &= any;
    return found;
}

/** The failed step may have been done all the same, and so may the one after it, which was on its way when
 *  the failure was seen: the host asks for an older step, and it is only the asking that fails. */
static void look_at_updates(clv_run *run) {
    clv__failure *failure = &run->failure;
    progress last = {.all = true};
    for (int64_t ticket = failure->ticket; ticket < run->next_ticket && last.all; ticket++) {
        last = look_at_step(run, ticket);
        failure->updated += last.all;
    }
    failure->partial = last.some && !last.all;
}

void clv__run_settle(clv_run *run) {
    clv__run_wait(run);
    if (run->failure.status == CLV_OK || run->failure.settled) return;
    for (int s = 0; s < run->n_executors; s++) {
        // a step that broke off has no event at its end, but its transfers use staging memory
        clv_device *device = run->executors[s].device;
        clv_status silent = clv__worker_call(device, drain, device);
        (void)silent;
    }
    look_at_updates(run);
    run->failure.settled = true;
}

clv_run_failure clv_run_failed(clv_run *run) {
    clv_status status = clv__usable(clv__plan_error(run->plan), "clv_run_failed", "run", run);
    if (status != CLV_OK) return (clv_run_failure){.status = status, .sentence = "a fork of its process"};
    clv__run_settle(run);
    const clv__failure *failure = &run->failure;
    if (failure->status == CLV_OK) return (clv_run_failure){.done = run->next_ticket};
    return (clv_run_failure){.status = failure->status,
                             .device = failure->device,
                             .sentence = failure->sentence,
                             .done = failure->ticket + failure->updated,
                             .partial = failure->partial};
}
