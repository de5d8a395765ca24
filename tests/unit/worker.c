// SPDX-License-Identifier: Apache-2.0
// A worker whose driver answers when its caller has given up: it touches nothing that the caller gave it. One that answers in time goes on.
#include "harness/harness.h"

#include <poll.h>

#include "device/device.h"
#include "exec/worker.h"

enum { LATE = 300 }; // ms

static clv__backend slow; // the host's, whose events are over when `answers` says so
static atomic_bool answers;
static atomic_int waits;

static clv_status wait_for_answer(clv__bevent *event, clv__error *error) {
    atomic_fetch_add(&waits, 1);
    while (!atomic_load(&answers)) poll(NULL, 0, 5);
    return CLV_OK;
}

typedef struct given {
    clv_device *device;
    atomic_int written;
} given;

static clv_status write_when_over(void *context) {
    given *g = context;
    clv_status status = clv__device_wait(g->device, NULL, NULL);
    atomic_fetch_add(&g->written, 1);
    return status;
}

static void *answer_late(void *after) {
    poll(NULL, 0, *(int *)after);
    atomic_store(&answers, true);
    return NULL;
}

static clv_runtime *begin(given *g) {
    clv_runtime *runtime = NULL;
    const clv_runtime_config config = {.no_opencl = true, .device_timeout = 1};
    assert_int_equal(clv_runtime_create(&config, &runtime), CLV_OK);
    g->device = clv__test_device(runtime, "host");
    assert_status(clv__worker_start(g->device), CLV_OK, runtime);
    slow = *g->device->backend;
    slow.event_wait = wait_for_answer;
    g->device->backend = &slow;
    atomic_store(&answers, false);
    return runtime;
}

TEST(test_an_answer_in_time) {
    given g = {0};
    clv_runtime *runtime = begin(&g);
    pthread_t thread;
    int after = LATE;
    assert_int_equal(pthread_create(&thread, NULL, answer_late, &after), 0);
    assert_status(clv__worker_call(g.device, write_when_over, &g), CLV_OK, runtime);
    pthread_join(thread, NULL);
    assert_int_equal(atomic_load(&g.written), 1);
    clv_runtime_destroy(runtime);
}

static void *call_behind(void *context) {
    given *g = context;
    return clv__worker_call(g->device, write_when_over, g) == CLV_E_DEVICE_LOST ? context : NULL;
}

// Static, because the worker may look at them for as long as the process lives if this test is red.
static given first, second;

TEST(test_an_answer_too_late) {
    clv_runtime *runtime = begin(&first);
    second.device = first.device;
    pthread_t thread;
    void *lost;
    const int before = atomic_load(&waits);
    assert_int_equal(pthread_create(&thread, NULL, call_behind, &first), 0);
    while (atomic_load(&waits) == before)
        poll(NULL, 0, 5); // the worker waits in its driver, and this stands behind
    assert_int_equal(clv__worker_call(second.device, write_when_over, &second), CLV_E_DEVICE_LOST);
    pthread_join(thread, &lost);
    assert_non_null(lost);
    atomic_store(&answers, true);
    poll(NULL, 0, LATE);
    assert_int_equal(atomic_load(&first.written), 0);
    assert_int_equal(atomic_load(&second.written), 0);
    assert_int_equal(atomic_load(&waits), before + 1); // the second was not even begun
    assert_int_equal(clv__worker_call(second.device, write_when_over, &second), CLV_E_DEVICE_LOST); // at once
    clv_runtime_destroy(runtime);
}

TEST_MAIN(NULL, NULL)
