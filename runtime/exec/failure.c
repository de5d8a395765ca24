// SPDX-License-Identifier: Apache-2.0
// A step that a device could not do. Every device completes the steps before it, and none begins a step after
// it. So a step whose updates come after everything that it receives is done on all devices or on none.
#include "exec/run.h"

void clv__run_fail(clv_run *run, int64_t ticket, clv_device *device, clv_status status) {
    clv__failure *failure = &run->failure;
    pthread_mutex_lock(&run->lock);
    if (failure->status == CLV_OK || ticket < failure->ticket) {
        failure->status = status;
        failure->ticket = ticket;
        failure->device = device;
        clv__error_read(clv__plan_error(run->plan), failure->sentence);
    }
    pthread_cond_broadcast(&run->changed);
    pthread_mutex_unlock(&run->lock);
}

/** Is this step told as failed? The failed step itself may have been done in spite of it; that is known when
 *  all is settled. */
static bool failed_by(const clv__failure *failure, int64_t ticket) {
    return failure->status != CLV_OK && ticket >= failure->ticket + failure->updated;
}

bool clv__run_goes_on(clv_run *run, int64_t ticket) {
    pthread_mutex_lock(&run->lock);
    bool goes_on = !failed_by(&run->failure, ticket);
    pthread_mutex_unlock(&run->lock);
    return goes_on;
}

clv_status clv__run_status(clv_run *run, int64_t ticket) {
    pthread_mutex_lock(&run->lock);
    clv_status status = failed_by(&run->failure, ticket) ? run->failure.status : CLV_OK;
    if (status != CLV_OK) clv__error_set(clv__plan_error(run->plan), status, "%s", run->failure.sentence);
    pthread_mutex_unlock(&run->lock);
    return status;
}
