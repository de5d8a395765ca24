// SPDX-License-Identifier: Apache-2.0
// For tests that lose a device or make one slow: lost_layer.c under the loader of this process, and a runtime of two equal parts
// of a CPU over it.
#ifndef CLV_TESTS_DEVICE_LOST_H
#define CLV_TESTS_DEVICE_LOST_H

#include "harness/harness.h"

#include <dlfcn.h>

// See the end of lost_layer.c.
static void (*lost_arm)(int device, long enqueue, int code, int late);
static long (*lost_calls)(void);
static void (*lost_slow)(int device, long ns_per_item);

/** The runtime of cpu:0 and cpu:1, or, where there is none, NULL and the exit status of the test. */
static inline clv_runtime *lost_runtime(void (*log)(void *user, clv_log_level level, const char *sentence),
                                        int *status) {
    setenv("OPENCL_LAYERS", CLV_TEST_LOST_LAYER, 1); // before the loader wakes up
    void *library = dlopen(CLV_TEST_LOST_LAYER, RTLD_NOW);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        *status = 1;
        return NULL;
    }
    *(void **)&lost_arm = dlsym(library, "lost_arm");
    *(void **)&lost_calls = dlsym(library, "lost_calls");
    *(void **)&lost_slow = dlsym(library, "lost_slow");
    clv_runtime *runtime = NULL;
    const clv_runtime_config config = {.partition = "cpu:0=2", .visible_devices = "cpu:0,cpu:1", .log = log};
    if (clv_runtime_create(&config, &runtime) == CLV_OK) return runtime;
    printf("skipped: %s\n", clv_runtime_error(runtime));
    clv_runtime_destroy(runtime);
    *status = 77;
    return NULL;
}

#endif
