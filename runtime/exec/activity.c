// SPDX-License-Identifier: Apache-2.0
#include "exec/activity.h"

#include "exec/worker.h"

static clv_status keep_times(void *context) {
    clv_device *device = context;
    return device->backend->keep_times(device->open, clv__runtime_error_of(device->runtime));
}

clv_status clv_device_activity_start(clv_device *device) {
    CLV_TRY(CLV__GIVEN(NULL, device));
    if (atomic_load(&device->timed)) return CLV_OK;
    CLV_TRY(clv__device_open(device));
    if (device->backend->keep_times) CLV_TRY(clv__worker_call(device, keep_times, device));
    atomic_store(&device->timed, true);
    return CLV_OK;
}

clv__bevent **clv__activity_begin(clv__activity *activity, const clv_device *device) {
    if (activity->working || !atomic_load(&device->timed)) return NULL;
    activity->working = true;
    clv__stretch *stretch = &activity->stretches[activity->n++];
    *stretch = (clv__stretch){0};
    return &stretch->begin;
}

clv_status clv__activity_mark(clv__activity *activity, clv_device *device, clv__error *error) {
    clv__bevent **begin = clv__activity_begin(activity, device);
    return begin ? device->backend->record(device->open, CLV__QUEUE_COMPUTE, begin, error) : CLV_OK;
}

clv_status clv__activity_pause(clv__activity *activity, clv_device *device, clv__error *error) {
    if (!activity->working) return CLV_OK;
    activity->working = false;
    return device->backend->record(device->open, CLV__QUEUE_COMPUTE,
                                   &activity->stretches[activity->n - 1].end, error);
}

/** Nanoseconds from the start of one event to the end of another; false if the driver cannot tell. A driver
 *  without a clock may always answer small numbers such as 2 and 3; no device begins a command within a
 *  microsecond of its clock's zero. */
static bool between(const clv__backend *backend, clv__bevent *begin, clv__bevent *end, uint64_t *ns) {
    uint64_t start, stop, unused;
    if (!begin || !end || backend->elapsed(begin, &start, &unused, NULL) != CLV_OK ||
        backend->elapsed(end, &unused, &stop, NULL) != CLV_OK || stop < start || start < 1000)
        return false;
    *ns = stop - start;
    return true;
}

void clv__activity_settle(clv__activity *activity, clv_device *device, clv__bevent *done) {
    const clv__backend *backend = device->backend;
    uint64_t busy = 0;
    bool known = done && activity->n > 0;
    for (int i = 0; i < activity->n; i++) {
        clv__stretch *stretch = &activity->stretches[i];
        uint64_t ns = 0;
        if (done) known &= between(backend, stretch->begin, stretch->end ? stretch->end : done, &ns);
        busy += ns;
        backend->event_destroy(stretch->begin);
        backend->event_destroy(stretch->end);
        *stretch = (clv__stretch){0};
    }
    activity->n = 0;
    activity->working = false;
    if (!known) return;
    atomic_fetch_add(&device->busy_ns, busy);
    atomic_fetch_add(&device->busy_steps, 1);
}
