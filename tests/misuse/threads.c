// SPDX-License-Identifier: Apache-2.0
// Threads that share a runtime and a device, each with objects of its own, some of them making mistakes all the time: every one gets
// the same losses as alone, bit by bit, and its own statuses and sentences.
#include <pthread.h>

#include "misuse/world.h"

enum { THREADS = 6, STEPS = 20 };

typedef struct worker {
    pthread_t thread;
    world w;
    float losses[STEPS];
    int number, wrong; // statuses and sentences that were not as they should be
} worker;

static void *train(void *user) {
    worker *me = user;
    char shape[32];
    snprintf(shape, sizeof shape, "[%d]", 7 + me->number);
    world_train(&me->w);
    for (int i = 0; i < STEPS; i++) {
        me->losses[i] = world_step(&me->w, i);
        clv_graph *graph = NULL; // a mistake beside it, told to this thread alone
        me->wrong += clv_graph_create(me->w.runtime, &graph) != CLV_OK;
        clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(2, 3));
        clv_output(clv_reshape(x, CLV_SHAPE(7 + me->number)), "y");
        clv_plan *plan;
        me->wrong += clv_plan_create(graph, NULL, &plan) != CLV_E_SHAPE;
        me->wrong += clv_run_step(NULL, NULL) != CLV_E_VALUE;
        me->wrong += strstr(clv_runtime_error(me->w.runtime), shape) == NULL;
        clv_graph_destroy(graph);
    }
    world_untrain(&me->w);
    return NULL;
}

TEST(each_gets_what_it_gets_alone) {
    static worker alone, workers[THREADS];
    clv_runtime *runtime = clv__test_runtime(&(clv_runtime_config){.no_opencl = true});
    clv_device *host = clv__test_device(runtime, "host");
    alone.w = (world){.runtime = runtime, .host = host};
    train(&alone);
    for (int i = 0; i < THREADS; i++) {
        workers[i].number = i;
        workers[i].w = (world){.runtime = runtime, .host = host};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, train, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(workers[i].thread, NULL);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(workers[i].wrong, 0);
        assert_memory_equal(workers[i].losses, alone.losses, sizeof alone.losses);
    }
    clv_runtime_destroy(runtime);
}

static void *ask(void *user) {
    return (void *)(uintptr_t)clv_runtime_error(user);
}

/** What failed in one thread is told to another that had no failure; each has its own afterwards, and ends without a trace. */
TEST(a_thread_without_failure_is_told_the_newest) {
    clv_runtime *runtime = clv__test_runtime(&(clv_runtime_config){.no_opencl = true});
    clv_device *device;
    void *told = NULL;
    pthread_t thread;
    assert_string_equal(clv_runtime_error(runtime), "");
    assert_int_equal(clv_device_find(runtime, "none:3", &device), CLV_E_NOT_FOUND);
    const char *own = clv_runtime_error(runtime);
    assert_holds(own, "none:3");
    assert_int_equal(pthread_create(&thread, NULL, ask, runtime), 0);
    pthread_join(thread, &told);
    assert_ptr_not_equal(told, own);
    assert_ptr_equal(clv_runtime_error(runtime), own); // the same copy
    clv_runtime_destroy(runtime);
}

TEST_MAIN(NULL, NULL)
