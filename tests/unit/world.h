// SPDX-License-Identifier: Apache-2.0
// A runtime with null devices beside the real ones, for tests that look at plans on the former and run them on the latter.
#ifndef CLV_TESTS_UNIT_WORLD_H
#define CLV_TESTS_UNIT_WORLD_H

#include <stdlib.h>

#include "cleave/plan.h"
#include "harness/harness.h"

static clv_runtime *runtime;

FIXTURE(setup) {
    runtime = clv__test_runtime(&(clv_runtime_config){.null_devices = true});
}

FIXTURE(teardown) {
    clv_runtime_destroy(runtime);
}

static inline clv_device *find(const char *name) {
    return clv__test_device(runtime, name);
}

static inline clv_graph *new_graph(void) {
    return clv__test_graph(runtime);
}

/** All that a session keeps, one after the other; to be freed. n: floats. */
static inline float *session_values(clv_session *session, size_t *n) {
    *n = 0;
    for (int i = 0; i < clv_session_info_get(session).n_tensors; i++)
        *n += clv_session_get(session, i).bytes / sizeof(float);
    float *all = calloc(*n, sizeof *all), *to = all;
    for (int i = 0; i < clv_session_info_get(session).n_tensors; i++) {
        const size_t bytes = clv_session_get(session, i).bytes;
        assert_status(clv_session_read(session, i, to, bytes), CLV_OK, runtime);
        to += bytes / sizeof(float);
    }
    return all;
}

#endif
