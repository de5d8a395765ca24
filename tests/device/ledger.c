// SPDX-License-Identifier: Apache-2.0
// The account of bytes: exact against a model of it, refusals that speak, and nothing booked that the driver refused.
// Null devices take no memory, so gigabytes can be asked for.
#include "harness/harness.h"

#include <pthread.h>

#include "base/text.h"
#include "device/device.h"

static clv_runtime *make_runtime(void) {
    clv_runtime_config config = {.no_opencl = true, .null_devices = true};
    return clv__test_runtime(&config);
}

static clv_device *find(clv_runtime *runtime, const char *spec) {
    return clv__test_device(runtime, spec);
}

static clv__memory take(clv_device *device, size_t bytes, clv_category category, const char *layer) {
    clv__memory memory;
    assert_status(clv__memory_create(device, bytes, category, layer, &memory), CLV_OK, device->runtime);
    return memory;
}

TEST(bytes_are_readable) {
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {
        {0, "0 B"},
        {1023, "1023 B"},
        {1024, "1.0 KiB"},
        {1536, "1.5 KiB"},
        {(1 << 20) - 1, "1.0 MiB"}, // never "1024.0 KiB"
        {1 << 20, "1.0 MiB"},
        {536870912, "512.0 MiB"},
        {80ull << 30, "80.0 GiB"},
        {UINT64_MAX, "16.0 EiB"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(clv__bytes_text(cases[i].bytes).text, cases[i].text);
}

TEST(peaks_are_of_sums) {
    clv_runtime *runtime = make_runtime();
    clv_device *device = find(runtime, "null:0");
    clv__memory a = take(device, 100, CLV_PARAMETERS, "fc1");
    clv__memory b = take(device, 50, CLV_ACTIVATIONS, "fc1");
    clv__memory_destroy(&b);
    clv__memory c = take(device, 30, CLV_GRADIENTS, "fc1");
    clv_memory_info info = clv_device_memory(device);
    assert_int_equal(info.all.current, 130);
    assert_int_equal(info.all.peak, 150); // not 180, the sum of the categories' peaks
    assert_int_equal(info.all.total_allocated, 180);
    assert_int_equal(info.all.total_freed, 50);
    assert_int_equal(info.category[CLV_ACTIVATIONS].current, 0);
    assert_int_equal(info.category[CLV_ACTIVATIONS].peak, 50);
    assert_int_equal(info.category[CLV_PARAMETERS].peak, 100);
    clv_device_memory_reset_peak(device);
    info = clv_device_memory(device);
    assert_int_equal(info.all.peak, 130);
    assert_int_equal(info.category[CLV_ACTIVATIONS].peak, 0);
    clv__memory none = take(device, 0, CLV_WORKSPACE, "nothing");
    assert_null(none.buffer);
    clv__memory_destroy(&none);
    clv__memory_destroy(&none);
    clv__memory_destroy(&a);
    clv__memory_destroy(&a); // it is zeroed: nothing is freed twice
    clv__memory_destroy(&c);
    info = clv_device_memory(device);
    assert_int_equal(info.all.current, 0);
    assert_int_equal(info.all.total_allocated, info.all.total_freed);
    assert_int_equal(clv_device_memory_entries(device, NULL, 0), 0);
    clv_runtime_destroy(runtime);
}

/** Thousands of random steps against the same account kept in the simplest way. */
TEST(account_follows_a_model) {
    enum { HELD = 40, STEPS = 20000 };
    clv_runtime *runtime = make_runtime();
    clv_device *device = find(runtime, "host");
    uint64_t seed = clv__test_seed();
    clv__memory held[HELD] = {{0}};
    uint64_t peak = 0, allocated = 0, freed = 0, category_peak[CLV_CATEGORIES] = {0};
    for (int step = 0; step < STEPS; step++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        clv__memory *memory = &held[(seed >> 33) % HELD];
        if (memory->bytes) {
            freed += memory->bytes;
            clv__memory_destroy(memory);
        } else {
            size_t bytes = (seed >> 40) % 5000;
            char layer[16];
            snprintf(layer, sizeof layer, "l%d", step % 7);
            *memory = take(device, bytes, (clv_category)((seed >> 20) % CLV_CATEGORIES), layer);
            allocated += bytes;
        }
        uint64_t sum = 0, category[CLV_CATEGORIES] = {0};
        for (int i = 0; i < HELD; i++) {
            sum += held[i].bytes;
            category[held[i].category] += held[i].bytes;
        }
        if (sum > peak) peak = sum;
        clv_memory_info info = clv_device_memory(device);
        assert_int_equal(info.all.current, sum);
        assert_int_equal(info.all.peak, peak);
        assert_int_equal(info.all.total_allocated, allocated);
        assert_int_equal(info.all.total_freed, freed);
        for (int c = 0; c < CLV_CATEGORIES; c++) {
            if (category[c] > category_peak[c]) category_peak[c] = category[c];
            assert_int_equal(info.category[c].current, category[c]);
            assert_int_equal(info.category[c].peak, category_peak[c]);
        }
    }
    clv_memory_entry entries[HELD];
    int n = clv_device_memory_entries(device, entries, HELD);
    uint64_t sum = 0;
    for (int i = 0; i < n; i++) {
        sum += entries[i].bytes;
        assert_true(i == 0 || entries[i - 1].bytes >= entries[i].bytes);
        assert_int_equal(entries[i].layer[0], 'l');
    }
    assert_int_equal(sum, clv_device_memory(device).all.current);
    clv_memory_entry top[3];
    assert_int_equal(clv_device_memory_entries(device, top, 3), n);
    for (int i = 0; i < 3 && i < n; i++) assert_int_equal(top[i].bytes, entries[i].bytes);
    for (int i = 0; i < HELD; i++) clv__memory_destroy(&held[i]);
    assert_int_equal(clv_device_memory(device).all.current, 0);
    clv_runtime_destroy(runtime);
}

static void refused(clv_device *device, size_t bytes, clv_category category, clv_status want) {
    clv_memory_info before = clv_device_memory(device);
    clv__memory memory = {.bytes = 1};
    assert_status(clv__memory_create(device, bytes, category, "features.3", &memory), want, device->runtime);
    assert_null(memory.device);
    assert_int_equal(memory.bytes, 0);
    clv__memory_destroy(&memory);
    clv_memory_info after = clv_device_memory(device);
    assert_memory_equal(&before, &after, sizeof before); // not even a peak
}

TEST(budgets_refuse_and_say_why) {
    clv_runtime *runtime = make_runtime();
    clv_device *device = find(runtime, "null:0");
    clv_device_set_budget(device, 1 << 20);
    assert_int_equal(clv_device_memory(device).budget, 1 << 20);
    clv__memory held[5];
    static const char *const layers[] = {"tiny", "conv1", "conv2", "small", "fc"};
    static const size_t sizes[] = {1000, 300000, 200000, 2000, 100000};
    for (int i = 0; i < 5; i++)
        held[i] = take(device, sizes[i], i % 2 ? CLV_PARAMETERS : CLV_OPTIMIZER, layers[i]);
    refused(device, 500000, CLV_ACTIVATIONS, CLV_E_BUDGET);
    const char *sentence = clv_runtime_error(runtime);
    static const char *const parts[] = {
        "'features.3' wants 488.3 KiB (500000 bytes) for activations on null:0",
        "holds 588.9 KiB (603000 bytes) of a budget of 1.0 MiB (1048576 bytes)",
        "the largest held: 'conv1' 293.0 KiB for parameters, ",
        "'conv2' 195.3 KiB for optimizer, 'fc' 97.7 KiB for optimizer",
        "smaller batch",
        "clv_device_set_budget: null:0=1078KiB",
        "null:1 (16.0 GiB)"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) assert_holds(sentence, parts[i]);
    assert_null(strstr(sentence, "tiny"));
    // To the byte.
    refused(device, (1 << 20) - 603000 + 1, CLV_WORKSPACE, CLV_E_BUDGET);
    clv__memory last = take(device, (1 << 20) - 603000, CLV_WORKSPACE, "last");
    refused(device, 1, CLV_STAGING, CLV_E_BUDGET); // staging counts
    refused(device, SIZE_MAX, CLV_IO, CLV_E_DEVICE_MEMORY);
    clv_device_set_budget(device, 100); // below what is held: it stays, and nothing more comes
    refused(device, 1, CLV_IO, CLV_E_BUDGET);
    clv_device_set_budget(device, 0);
    clv__memory more = take(device, 1 << 21, CLV_IO, "more");
    clv__memory_destroy(&more);
    clv__memory_destroy(&last);
    for (int i = 0; i < 5; i++) clv__memory_destroy(&held[i]);
    clv_runtime_destroy(runtime);
}

TEST(devices_refuse_and_say_why) {
    clv_runtime *runtime = make_runtime();
    clv_device *device = find(runtime, "null:0"); // 8 GiB, 2 GiB in a piece
    refused(device, (2ull << 30) + 1, CLV_ACTIVATIONS, CLV_E_DEVICE_MEMORY);
    assert_holds(clv_runtime_error(runtime), "largest single allocation is 2.0 GiB (2147483648 bytes)");
    assert_holds(clv_runtime_error(runtime), "null:1"); // which takes 4 GiB in a piece
    clv__memory held[4];
    for (int i = 0; i < 4; i++) held[i] = take(device, 2ull << 30, CLV_PARAMETERS, "embedding");
    refused(device, 1, CLV_GRADIENTS, CLV_E_DEVICE_MEMORY);
    assert_holds(clv_runtime_error(runtime), "its memory of 8.0 GiB");
    clv__memory staging =
        take(device, 4096, CLV_STAGING, "loader"); // host memory: the device is full, the host is not
    assert_non_null(staging.pointer);
    memset(staging.pointer, 1, 4096);
    clv__memory_destroy(&staging);
    // The same question without taking anything.
    assert_status(clv__memory_check(device, 1, 1, "plan", "", true), CLV_E_DEVICE_MEMORY, runtime);
    for (int i = 0; i < 4; i++) clv__memory_destroy(&held[i]);
    assert_status(clv__memory_check(device, 8ull << 30, 2ull << 30, "plan", "", true), CLV_OK, runtime);
    assert_status(clv__memory_check(device, 8ull << 30, (2ull << 30) + 1, "plan", "", true),
                  CLV_E_DEVICE_MEMORY, runtime);
    clv_device_set_budget(device, 5000);
    assert_status(clv__memory_check(device, 5000, 5000, "plan", "", true), CLV_OK, runtime);
    assert_status(clv__memory_check(device, 5001, 1, "plan", "", true), CLV_E_BUDGET, runtime);
    assert_holds(clv_runtime_error(runtime), "'plan' wants 4.9 KiB (5001 bytes) on null:0");
    clv_runtime_destroy(runtime);
}

static clv_status no_memory(clv__bdevice *device, size_t bytes, clv__error *error, clv__bbuffer **out) {
    *out = NULL;
    CLV_FAIL(error, CLV_E_DEVICE_MEMORY, "CL_MEM_OBJECT_ALLOCATION_FAILURE");
}

TEST(what_the_driver_refuses_is_not_booked) {
    clv_runtime *runtime = make_runtime();
    clv_device *device = find(runtime, "null:0");
    clv__memory held = take(device, 5000, CLV_PARAMETERS, "conv1");
    clv__backend stingy = *device->backend;
    stingy.buffer_create = no_memory;
    const clv__backend *kind = device->backend;
    device->backend = &stingy;
    refused(device, 7000, CLV_ACTIVATIONS, CLV_E_DEVICE_MEMORY);
    device->backend = kind;
    assert_holds(clv_runtime_error(runtime),
                 "'features.3' wants 6.8 KiB (7000 bytes) for activations on null:0");
    assert_holds(clv_runtime_error(runtime), "'conv1' 4.9 KiB for parameters");
    assert_holds(clv_runtime_error(runtime), "CL_MEM_OBJECT_ALLOCATION_FAILURE");
    assert_int_equal(clv_device_memory(device).all.peak, 5000);
    clv__memory_destroy(&held);
    clv_runtime_destroy(runtime);
}

TEST(unusable_devices_take_nothing) {
    clv_runtime *runtime = make_runtime();
    clv_device *device = find(runtime, "null:0");
    device->info.usable = false;
    device->info.reason = "a test says so";
    refused(device, 10, CLV_IO, CLV_E_UNSUPPORTED);
    assert_holds(clv_runtime_error(runtime), "a test says so");
    clv_runtime_destroy(runtime);
}

static void *take_and_free(void *context) {
    clv_device *device = context;
    for (int i = 0; i < 2000; i++) {
        clv__memory a, b;
        if (clv__memory_create(device, 1000, CLV_IO, "a", &a) != CLV_OK)
            continue; // the budget is too small for all
        if (clv__memory_create(device, 500, CLV_STAGING, "b", &b) == CLV_OK) clv__memory_destroy(&b);
        clv__memory_destroy(&a);
    }
    return NULL;
}

TEST(threads_keep_within_the_budget) {
    enum { THREADS = 4, BUDGET = 3000 };
    clv_runtime *runtime = make_runtime();
    clv_device *device = find(runtime, "host");
    clv_device_set_budget(device, BUDGET);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_free, device), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    clv_memory_info info = clv_device_memory(device);
    assert_int_equal(info.all.current, 0);
    assert_int_equal(info.all.total_allocated, info.all.total_freed);
    assert_true(info.all.peak <= BUDGET);
    clv_runtime_destroy(runtime);
}

TEST(categories_have_names) {
    static const char *const names[] = {"parameters", "gradients", "optimizer", "activations",
                                        "workspace",  "io",        "staging"};
    for (int c = 0; c < CLV_CATEGORIES; c++)
        assert_string_equal(clv_category_name((clv_category)c), names[c]);
    assert_string_equal(clv_category_name((clv_category)99), "unknown");
}

TEST_MAIN(NULL, NULL)
