// SPDX-License-Identifier: Apache-2.0
#include "exec/worker.h"

#include <stdlib.h>

#include "base/patience.h"

typedef struct clv__worker {
    clv_device *device;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t work;
    clv__job *first, *last;
    bool stop;
} clv__worker;

static void *work(void *user) {
    clv__worker *worker = user;
    clv__device_serve(worker->device);
    pthread_mutex_lock(&worker->lock);
    for (;;) {
        while (!worker->first && !worker->stop) pthread_cond_wait(&worker->work, &worker->lock);
        clv__job *job = worker->first;
        if (!job) break; // stopped, and nothing left
        worker->first = job->next;
        if (!worker->first) worker->last = NULL;
        pthread_mutex_unlock(&worker->lock);
        job->run(job);
        atomic_fetch_add(&worker->device->beats, 1);
        pthread_mutex_lock(&worker->lock);
    }
    pthread_mutex_unlock(&worker->lock);
    return NULL;
}

static void worker_destroy(clv__worker *worker) {
    pthread_mutex_lock(&worker->lock);
    worker->stop = true;
    pthread_cond_signal(&worker->work);
    pthread_mutex_unlock(&worker->lock);
    pthread_join(worker->thread, NULL);
    pthread_cond_destroy(&worker->work);
    pthread_mutex_destroy(&worker->lock);
    free(worker);
}

/** The thread does not come back: what it may look at when it does stays. */
static void worker_leave(clv__worker *worker) {
    pthread_detach(worker->thread);
    clv__leave(worker);
}

clv_status clv__worker_start(clv_device *device) {
    CLV_TRY(clv__device_open(device));
    pthread_mutex_lock(&device->open_lock);
    clv_status status = CLV_OK;
    if (!device->worker) {
        clv__worker *worker = clv__alloc(1, sizeof *worker);
        if (worker) {
            worker->device = device;
            pthread_mutex_init(&worker->lock, NULL);
            pthread_cond_init(&worker->work, NULL);
            if (pthread_create(&worker->thread, NULL, work, worker) != 0) {
                pthread_cond_destroy(&worker->work);
                pthread_mutex_destroy(&worker->lock);
                free(worker);
                worker = NULL;
            }
        }
        if (worker) {
            device->worker = worker;
            device->worker_destroy = worker_destroy;
            device->worker_leave = worker_leave;
        } else {
            status = clv__error_set(clv__runtime_error_of(device->runtime), CLV_E_HOST_MEMORY,
                                    "no thread could be started for device %s", device->info.name);
        }
    }
    pthread_mutex_unlock(&device->open_lock);
    return status;
}

void clv__worker_post(clv_device *device, clv__job *job) {
    clv__worker *worker = device->worker;
    job->next = NULL;
    pthread_mutex_lock(&worker->lock);
    if (worker->last) {
        worker->last->next = job;
    } else {
        worker->first = job;
    }
    worker->last = job;
    pthread_mutex_unlock(&worker->lock);
    pthread_cond_signal(&worker->work); // under the lock, the thread that wakes up would wait for that
}

typedef struct call_job {
    clv__job job;
    clv_device *device;
    clv_status (*function)(void *context);
    void *context;
    clv_status status;
    char sentence[CLV__ERROR_BYTES]; // of a failure: the caller's from then on
    bool done;
    pthread_mutex_t lock;
    pthread_cond_t finished;
} call_job;

static void run_call(clv__job *job) {
    call_job *call = (call_job *)job;
    clv__device_come_back(call->device);
    clv_status status = call->function(call->context);
    if (status != CLV_OK) clv__error_read(clv__runtime_error_of(call->device->runtime), call->sentence);
    pthread_mutex_lock(&call->lock);
    call->status = status;
    call->done = true;
    pthread_cond_signal(&call->finished);
    pthread_mutex_unlock(&call->lock);
}

/** No beat since. The caller goes, unless the worker comes back this very moment: of a beat after the
 *  mark and a mark after the beat one is seen. */
static bool leave(clv_device *device, unsigned long beats) {
    atomic_store(&device->call_left, true);
    const bool still = atomic_load(&device->beats) == beats;
    if (!still) atomic_store(&device->call_left, false);
    return still;
}

/** Wait for a job while the worker gets on with anything; false: it did not for as long as a device may be
 *  silent. */
static bool wait_for_call(call_job *call) {
    clv_device *device = call->device;
    clv__patience patience = {.limit = device->runtime->config.device_timeout};
    unsigned long beats = atomic_load(&device->beats);
    pthread_mutex_lock(&call->lock);
    while (!call->done) {
        if (clv__patience_wait(&patience, &call->finished, &call->lock)) continue;
        if (leave(device, beats)) break;
        beats = atomic_load(&device->beats);
        patience.spent = 0;
    }
    bool done = call->done;
    pthread_mutex_unlock(&call->lock);
    return done;
}

clv_status clv__worker_call(clv_device *device, clv_status (*function)(void *context), void *context) {
    clv__error *error = clv__runtime_error_of(device->runtime);
    CLV_TRY(clv__worker_start(device));
    if (atomic_load(&device->silent)) return clv__device_silent(device, error);
    call_job *call = clv__alloc(1, sizeof *call);
    if (!call) CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for a job of device %s", device->info.name);
    call->device = device;
    call->job.run = run_call;
    call->function = function;
    call->context = context;
    pthread_mutex_init(&call->lock, NULL);
    clv__cond_init(&call->finished);
    clv__worker_post(device, &call->job);
    if (!wait_for_call(call)) { // the worker has it at hand
        clv__leave(call);
        clv__device_silence(device);
        return clv__device_silent(device, error);
    }
    clv_status status = call->status;
    if (status != CLV_OK) clv__error_set(error, status, "%s", call->sentence);
    pthread_cond_destroy(&call->finished);
    pthread_mutex_destroy(&call->lock);
    free(call);
    return status;
}

void clv__workers_lock(clv_runtime *runtime) {
    pthread_mutex_lock(&runtime->post_lock);
}

void clv__workers_unlock(clv_runtime *runtime) {
    pthread_mutex_unlock(&runtime->post_lock);
}
