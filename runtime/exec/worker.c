// SPDX-License-Identifier: Apache-2.0
#include "exec/worker.h"

#include <stdlib.h>

typedef struct clv__worker {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t work;
    clv__job *first, *last;
    bool stop;
} clv__worker;

static void *work(void *user) {
    clv__worker *worker = user;
    pthread_mutex_lock(&worker->lock);
    for (;;) {
        while (!worker->first && !worker->stop) pthread_cond_wait(&worker->work, &worker->lock);
        clv__job *job = worker->first;
        if (!job) break; // stopped, and nothing left
        worker->first = job->next;
        if (!worker->first) worker->last = NULL;
        pthread_mutex_unlock(&worker->lock);
        job->run(job);
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

clv_status clv__worker_start(clv_device *device) {
    CLV_TRY(clv__device_open(device));
    pthread_mutex_lock(&device->open_lock);
    clv_status status = CLV_OK;
    if (!device->worker) {
        clv__worker *worker = clv__alloc(1, sizeof *worker);
        if (worker) {
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
    pthread_cond_signal(&worker->work);
    pthread_mutex_unlock(&worker->lock);
}

typedef struct call_job {
    clv__job job;
    clv_status (*function)(void *context);
    void *context;
    clv_status status;
    bool done;
    pthread_mutex_t lock;
    pthread_cond_t finished;
} call_job;

static void run_call(clv__job *job) {
    call_job *call = (call_job *)job;
    clv_status status = call->function(call->context);
    pthread_mutex_lock(&call->lock);
    call->status = status;
    call->done = true;
    pthread_cond_signal(&call->finished);
    pthread_mutex_unlock(&call->lock);
}

clv_status clv__worker_call(clv_device *device, clv_status (*function)(void *context), void *context) {
    CLV_TRY(clv__worker_start(device));
    call_job call = {.job.run = run_call, .function = function, .context = context};
    pthread_mutex_init(&call.lock, NULL);
    pthread_cond_init(&call.finished, NULL);
    clv__worker_post(device, &call.job);
    pthread_mutex_lock(&call.lock);
    while (!call.done) pthread_cond_wait(&call.finished, &call.lock);
    pthread_mutex_unlock(&call.lock);
    pthread_cond_destroy(&call.finished);
    pthread_mutex_destroy(&call.lock);
    return call.status;
}

void clv__workers_lock(clv_runtime *runtime) {
    pthread_mutex_lock(&runtime->post_lock);
}

void clv__workers_unlock(clv_runtime *runtime) {
    pthread_mutex_unlock(&runtime->post_lock);
}
