// SPDX-License-Identifier: Apache-2.0
// What an op or a layer must refuse, a line each: MISTAKE(call, status, part of the sentence).
#ifndef CLV_TESTS_HARNESS_MISTAKE_H
#define CLV_TESTS_HARNESS_MISTAKE_H

#include "cleave/cleave.h"
#include "harness/harness.h"

static clv_runtime *runtime;
static clv_graph *graph; // of this mistake

/** The file's: inputs in `graph`; calls on the NULL of a mistake, which are quiet. */
static void make_inputs(void);
static void pass_on(void);

/** A call whose result is NULL, in a graph of its own. */
#define MISTAKE(call, status, says)                                                                          \
    do {                                                                                                     \
        assert_status(clv_graph_create(runtime, &graph), CLV_OK, runtime);                                   \
        make_inputs();                                                                                       \
        expect_mistake((call) == NULL, status, says, #call, __FILE__, __LINE__);                             \
    } while (0)

static inline void expect_mistake(bool refused, clv_status status, const char *says, const char *call,
                                  const char *file, int line) {
    if (!refused) print_error("%s is taken\n", call);
    _assert_true(refused, "refused", file, line);
    clv__assert_status(clv_graph_status(graph), status, runtime, call, file, line);
    clv__assert_holds(clv_runtime_error(runtime), says, file, line);
    pass_on(); // the first mistake stays
    clv__assert_status(clv_graph_status(graph), status, runtime, call, file, line);
    clv_graph_destroy(graph);
}

FIXTURE(setup) {
    runtime = clv__test_runtime(&(clv_runtime_config){.no_opencl = true});
}

FIXTURE(teardown) {
    clv_runtime_destroy(runtime);
}

#endif
