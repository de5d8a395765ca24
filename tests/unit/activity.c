// SPDX-License-Identifier: Apache-2.0
// How busy devices were, by a model whose times are known from below.
#include "device/kernel_sources.h"
#include "unit/slow_model.h"

enum { STEPS = 5 };
#define MS UINT64_C(1000000)

/** Do steps, each waited for; the host rests before each of them. */
static void steps(model *m, int n, long rest_ms) {
    float x[64] = {1, 2, 3}, y[64];
    int64_t ticket;
    for (int i = 0; i < n; i++) {
        if (i > 0) sleep_ms(rest_ms);
        assert_status(clv_run_feed(m->run, m->x, x, sizeof x), CLV_OK, runtime);
        assert_status(clv_run_step(m->run, &ticket), CLV_OK, runtime);
        assert_status(clv_run_fetch(m->run, ticket, m->y, y, sizeof y), CLV_OK, runtime);
    }
}

/** Devices that nobody has asked for times are not counted; this test comes first. */
TEST(test_nothing_is_counted_unasked) {
    int i = -1;
    clv_device *device = clv__test_next_device(runtime, &i);
    char place[128];
    const char *name = clv_device_info_get(device)->name;
    snprintf(place, sizeof place, "before=%s,middle=host,after=%s", name, name);
    model m = build(place, NULL);
    steps(&m, STEPS, 0);
    assert_int_equal(clv_device_activity(device).steps, 0);
    assert_int_equal(clv_device_activity(device).busy_ns, 0);
    assert_int_equal(clv_device_activity(host).steps, 0); // the host knows times all the same
    for (i = 0; i < clv_runtime_info_get(runtime).n_devices; i++) {
        device = clv_device_get(runtime, i);
        if (clv_device_info_get(device)->usable)
            assert_status(clv_device_activity_start(device), CLV_OK, runtime);
    }
    steps(&m, STEPS, 0); // the run's queues are others now
    assert_status(clv_run_finish(m.run), CLV_OK, runtime);
    destroy(&m);
}

/** Do the steps, and tell what they added to the accounts and how long they took. */
static double measure(model *m, int n, long rest_ms, clv_device **devices, int n_devices,
                      clv_activity *added) {
    struct timespec from, to;
    for (int i = 0; i < n_devices; i++) added[i] = clv_device_activity(devices[i]);
    clock_gettime(CLOCK_MONOTONIC, &from);
    steps(m, n, rest_ms);
    clock_gettime(CLOCK_MONOTONIC, &to);
    for (int i = 0; i < n_devices; i++) {
        clv_activity now = clv_device_activity(devices[i]);
        added[i] =
            (clv_activity){.busy_ns = now.busy_ns - added[i].busy_ns, .steps = now.steps - added[i].steps};
    }
    return (double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec);
}

TEST(test_a_device_without_a_step_is_not_busy) {
    clv_activity added;
    model m = build("*=host", NULL);
    double wall = measure(&m, STEPS, 3, &host, 1, &added);
    assert_int_equal(added.steps, STEPS);
    assert_true(added.busy_ns >= STEPS * SLEEP_MS * MS);
    assert_true((double)(added.busy_ns + (STEPS - 1) * 3 * MS) <= wall); // the caller rested in between
    destroy(&m);
}

/** Steps that nobody has waited for yet are not counted; those that are, only once, however often they are fetched. */
TEST(test_steps_count_when_they_are_waited_for) {
    model m = build("*=host", NULL);
    float x[64] = {0}, y[64];
    int64_t ticket;
    const uint64_t before = clv_device_activity(host).steps;
    assert_status(clv_run_feed(m.run, m.x, x, sizeof x), CLV_OK, runtime);
    for (int i = 0; i < 3; i++) assert_status(clv_run_step(m.run, &ticket), CLV_OK, runtime);
    assert_int_equal(clv_device_activity(host).steps - before, 1); // the third took the slot of the first
    for (int i = 0; i < 3; i++)
        assert_status(clv_run_fetch(m.run, ticket, m.y, y, sizeof y), CLV_OK, runtime);
    assert_int_equal(clv_device_activity(host).steps - before, 2);
    assert_status(clv_run_finish(m.run), CLV_OK, runtime);
    assert_int_equal(clv_device_activity(host).steps - before, 3);
    destroy(&m);
}

/** The first and the last layer are on a device that has nothing to do while the host sleeps between them. */
TEST(test_waiting_for_another_device_is_not_busy) {
    int i = -1;
    clv_device *device = clv__test_next_device(runtime, &i), *devices[2] = {device, host};
    if (device == host) skip(); // nothing but the host here
    char place[128];
    const char *name = clv_device_info_get(device)->name;
    snprintf(place, sizeof place, "before=%s,middle=host,after=%s", name, name);
    model m = build(place, NULL);
    clv_activity added[2];
    double wall = measure(&m, STEPS, 0, devices, 2, added);
    print_message("%s: %.3f ms busy in %d steps, host: %.3f, of %.3f\n", name, (double)added[0].busy_ns / 1e6,
                  (int)added[0].steps, (double)added[1].busy_ns / 1e6, wall / 1e6);
    assert_int_equal(added[1].steps, STEPS);
    assert_true(added[1].busy_ns >= STEPS * SLEEP_MS * MS);
    if (added[0].steps == 0) { // a driver without a clock, and it is known as that
        assert_int_equal(added[0].busy_ns, 0);
    } else {
        assert_int_equal(added[0].steps, STEPS);
        assert_true(added[0].busy_ns > 1000);
        // its waits are not in it, or most of what the host sleeps would be; some, where the end of its work is seen late
        assert_true((double)(added[0].busy_ns + STEPS * SLEEP_MS * MS / 2) <= wall);
    }
    destroy(&m);
}

TEST(test_a_null_device_has_no_clock) {
    if (!clv__kernel_sources[0].stem) skip(); // a null device is told of kernels, and this library has none
    clv_activity added;
    clv_device *null = clv__test_device(runtime, "null");
    model m = build("*=null", NULL);
    measure(&m, STEPS, 0, &null, 1, &added);
    assert_int_equal(added.steps, 0);
    assert_int_equal(added.busy_ns, 0);
    destroy(&m);
}

TEST_MAIN(setup, teardown)
