// SPDX-License-Identifier: Apache-2.0
// One thread per device owns its queues: every enqueueing verb is called there. Some drivers run a kernel
// inside the enqueue call, so this is also what makes devices truly concurrent.
#ifndef CLV_EXEC_WORKER_H
#define CLV_EXEC_WORKER_H

#include "device/device.h"

/** Something for the worker to do. Owned by the caller; not touched by the worker after `run` returns. */
typedef struct clv__job {
    void (*run)(struct clv__job *job);
    struct clv__job *next;
} clv__job;

/** Open the device and start its worker, if that has not been done. */
clv_status clv__worker_start(clv_device *device);
/** Put a job at the end of the device's line. The worker is started. */
void clv__worker_post(clv_device *device, clv__job *job);
/** Run a function on the worker after what was posted before, and wait for it. Returns what it returns. */
clv_status clv__worker_call(clv_device *device, clv_status (*function)(void *context), void *context);

/** While it is held nobody else posts to several workers: devices that wait for each other must get their
 *  jobs in one order. */
void clv__workers_lock(clv_runtime *runtime);
void clv__workers_unlock(clv_runtime *runtime);

#endif
