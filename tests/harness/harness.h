// SPDX-License-Identifier: Apache-2.0
// What every test needs beyond cmocka: runtimes that must come up, statuses told with their sentence, devices
// to loop over.
#ifndef CLV_TESTS_HARNESS_H
#define CLV_TESTS_HARNESS_H

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <cmocka.h>

#include "cleave/device.h"
#include "cleave/runtime.h"

/** A program of people who write 1,5: with CLEAVE_TEST_LOCALE=de_DE.UTF-8 any test runs in their locale. */
__attribute__((constructor)) static void clv__test_locale(void) {
    const char *wanted = getenv("CLEAVE_TEST_LOCALE");
    if (!wanted || !*wanted || setlocale(LC_ALL, wanted)) return;
    printf("skipped: there is no locale %s (package locales)\n", wanted);
    exit(77);
}

// ---- tests ----------------------------------------------------------------------------------------------------------------

/** A test: TEST(its_name) { ... }. It says itself that it is there; tests run in the order in which they stand. */
#define TEST(name) TEST_WITHIN(name, NULL, NULL)

/** A test between two functions of its own, `int before(void **state)`. */
#define TEST_WITHIN(name, before, after)                                                                     \
    static void name(void **state);                                                                          \
    __attribute__((constructor)) static void clv__add_##name(void) {                                         \
        clv__test_add((struct CMUnitTest){#name, name, before, after, NULL});                                \
    }                                                                                                        \
    static void name(__attribute__((unused)) void **state)

/** A test of a function on the host, and on the first device of OpenCL. */
#define TEST_ON_DEVICES(function)                                                                            \
    TEST(on_the_host) {                                                                                      \
        function("host");                                                                                    \
    }                                                                                                        \
    TEST(on_opencl) {                                                                                        \
        function("gpu|accelerator|cpu");                                                                     \
    }

/** What is done before or after tests, for TEST_WITHIN and TEST_MAIN. */
#define FIXTURE(name)                                                                                        \
    static void clv__do_##name(void **state);                                                                \
    static int name(void **state) {                                                                          \
        clv__do_##name(state);                                                                               \
        return 0;                                                                                            \
    }                                                                                                        \
    static void clv__do_##name(__attribute__((unused)) void **state)

/** A runtime of all tests of a file, and what ends it. */
#define TEST_RUNTIME                                                                                         \
    static clv_runtime *runtime;                                                                             \
    FIXTURE(end_runtime) {                                                                                   \
        clv_runtime_destroy(runtime);                                                                        \
    }
/** And what begins it with a config, or NULL. */
#define TEST_RUNTIME_OF(...)                                                                                 \
    TEST_RUNTIME                                                                                             \
    FIXTURE(begin_runtime) {                                                                                 \
        runtime = clv__test_runtime(__VA_ARGS__);                                                            \
    }

/** The end of a file of tests: a main that runs them between two functions for all of them, or NULLs. */
#define TEST_MAIN(before, after)                                                                             \
    int main(void) {                                                                                         \
        return clv__tests_run(before, after);                                                                \
    }

static struct CMUnitTest clv__tests[64];
static size_t clv__n_tests;

static inline void clv__test_add(struct CMUnitTest test) {
    if (clv__n_tests == sizeof clv__tests / sizeof *clv__tests) abort();
    clv__tests[clv__n_tests++] = test;
}

/** How many of the file's tests have failed. */
static inline int clv__tests_run(CMFixtureFunction before, CMFixtureFunction after) {
    return _cmocka_run_group_tests("tests", clv__tests, clv__n_tests, before, after);
}

/** Fail unless a status is the expected one; says what came instead, with the runtime's sentence (it may be
 * NULL). */
#define assert_status(expression, expected, runtime)                                                         \
    do {                                                                                                     \
        clv_status assert_status_ = (expression); /* first: it may be what makes the runtime */              \
        clv__assert_status(assert_status_, (expected), (runtime), #expression, __FILE__, __LINE__);          \
    } while (0)

static inline void clv__assert_status(clv_status status, clv_status expected, const clv_runtime *runtime,
                                      const char *text, const char *file, int line) {
    if (status == expected) return;
    print_error("%s\n    is %s, not %s: %s\n", text, clv_status_name(status), clv_status_name(expected),
                status == CLV_OK ? "" : clv_runtime_error(runtime));
    _fail(file, line);
}

/** Fail unless `part` stands in `text`. */
#define assert_holds(text, part) clv__assert_holds((text), (part), __FILE__, __LINE__)

static inline void clv__assert_holds(const char *text, const char *part, const char *file, int line) {
    if (text && strstr(text, part)) return;
    print_error("'%s' does not hold '%s'\n", text ? text : "(null)", part);
    _fail(file, line);
}

/** A runtime that must come up; NULL config is the default. */
static inline clv_runtime *clv__test_runtime(const clv_runtime_config *config) {
    clv_runtime *runtime = NULL;
    clv_status status = clv_runtime_create(config, &runtime);
    assert_status(status, CLV_OK, runtime);
    return runtime;
}

/** What `create` makes in its last argument; it must succeed. Below, one for each kind of object. */
#define CLV__TEST_MADE(type, create, runtime, ...)                                                           \
    __extension__({                                                                                          \
        type *made_ = NULL;                                                                                  \
        assert_status(create(__VA_ARGS__, &made_), CLV_OK, runtime);                                         \
        made_;                                                                                               \
    })
#define clv__test_device(runtime, spec)                                                                      \
    CLV__TEST_MADE(clv_device, clv_device_find, (runtime), (runtime), (spec))
#define clv__test_graph(runtime) CLV__TEST_MADE(clv_graph, clv_graph_create, (runtime), (runtime))
#define clv__test_plan(runtime, ...) CLV__TEST_MADE(clv_plan, clv_plan_create, (runtime), __VA_ARGS__)
#define clv__test_run(runtime, ...) CLV__TEST_MADE(clv_run, clv_run_create, (runtime), __VA_ARGS__)
#define clv__test_session(runtime, ...)                                                                      \
    CLV__TEST_MADE(clv_session, clv_session_create, (runtime), (runtime), __VA_ARGS__)
#define clv__test_trainer(runtime, ...)                                                                      \
    CLV__TEST_MADE(clv_trainer, clv_trainer_create, (runtime), (runtime), __VA_ARGS__)
#define clv__test_predictor(runtime, ...)                                                                    \
    CLV__TEST_MADE(clv_predictor, clv_predictor_create, (runtime), (runtime), __VA_ARGS__)
#define clv__test_profile(runtime, ...)                                                                      \
    CLV__TEST_MADE(clv_profile, clv_profile_create, (runtime), (runtime), __VA_ARGS__)
#define clv__test_archive(runtime) CLV__TEST_MADE(clv_archive, clv_archive_create, (runtime), (runtime))

/** The end of what a test ran; NULLs are fine. */
#define clv__test_end(run, session, plan, graph)                                                             \
    (clv_run_destroy(run), clv_session_destroy(session), clv_plan_destroy(plan), clv_graph_destroy(graph))

/** A device, or, where there is none, the test is skipped. */
static inline clv_device *clv__test_device_or_skip(clv_runtime *runtime, const char *spec) {
    clv_device *device = NULL;
    if (clv_device_find(runtime, spec, &device) == CLV_OK) return device;
    print_message("skipped: %s\n", clv_runtime_error(runtime));
    skip();
    return NULL;
}

/** The next usable device after *i (start with -1), of any backend but null; NULL at the end. */
static inline clv_device *clv__test_next_device(clv_runtime *runtime, int *i) {
    while (++*i < clv_runtime_info_get(runtime).n_devices) {
        clv_device *device = clv_device_get(runtime, *i);
        const clv_device_info *info = clv_device_info_get(device);
        if (info->usable && strcmp(info->backend, "null") != 0) return device;
    }
    return NULL;
}

/** Tiles that a group makes, as GPUs have them. A device that runs threads could check them, after its compiler has
 *  optimized them for minutes; ops_samples_tiles and ops_random_lanes do so with lanes. Patterns of cases for
 *  `exclude`, after those by differences. */
static const char *const clv__test_tiles[] = {"*/differences/*", "*/gemm/*", "*/gemm:1*", "*/gemm:*6*", NULL};

/** The seed of random tests: CLV_TEST_SEED, else the time. Printed, so that a failure can be replayed. */
static inline uint64_t clv__test_seed(void) {
    const char *given = getenv("CLV_TEST_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
    print_message("CLV_TEST_SEED=%llu\n", (unsigned long long)seed);
    return seed;
}

/** A folder of its own for a test, made afresh in the build folder, so that nothing piles up elsewhere; free() the name. */
static inline char *clv__test_folder(void) {
    mkdir(CLV_TEST_BINARY_DIR "/test-folders", 0755);
    char *name = strdup(CLV_TEST_BINARY_DIR "/test-folders/XXXXXX");
    assert_non_null(name);
    assert_non_null(mkdtemp(name));
    return name;
}

#endif
