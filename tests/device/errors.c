// SPDX-License-Identifier: Apache-2.0
// The sentence of a failure stays as it was read while other threads fail.
#include <pthread.h>

#include "device/device.h"
#include "harness/harness.h"

TEST(stays_as_it_was_read) {
    clv_runtime *runtime = clv__test_runtime(&(clv_runtime_config){.no_opencl = true});
    clv__error *error = clv__runtime_error_of(runtime);
    clv__error_set(error, CLV_E_VALUE, "the first");
    const char *read = clv_runtime_error(runtime);
    clv__error_set(error, CLV_E_VALUE, "the second");
    assert_string_equal(read, "the first");
    assert_string_equal(clv_runtime_error(runtime), "the second");
    clv_runtime_destroy(runtime);
}

static void *fail_often(void *user) {
    char text[2][CLV__ERROR_BYTES];
    for (int k = 0; k < 2; k++) {
        memset(text[k], 'a' + k, sizeof text[k]);
        text[k][sizeof text[k] - 1] = 0;
    }
    for (int i = 0; i < 20000; i++) clv__error_set(user, CLV_E_VALUE, "%s", text[i % 2]);
    return NULL;
}

TEST(is_never_torn) {
    clv_runtime *runtime = clv__test_runtime(&(clv_runtime_config){.no_opencl = true});
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, fail_often, clv__runtime_error_of(runtime)), 0);
    for (int i = 0; i < 20000; i++) {
        const char *text = clv_runtime_error(runtime);
        assert_int_equal(strspn(text, (const char[]){text[0], 0}), strlen(text));
    }
    pthread_join(thread, NULL);
    clv_runtime_destroy(runtime);
}

TEST_MAIN(NULL, NULL)
