// SPDX-License-Identifier: Apache-2.0
// Every OpenCL call of a small program is made to fail, one at a time, for n = 1, 2, ... until the program runs untouched:
// nothing crashes, nothing leaks, and each failure has a sentence that names the call and the error. See fault_layer.c.
#include "harness/harness.h"

#include <dlfcn.h>
#include <pthread.h>

#include "device/device.h"
#include "device/kernel_sources.h"
#include "device/program.h"

static const char twice_text[] =
    "__kernel void KERNEL(twice)(__global float *restrict y, __global const float *restrict x, "
    "int n, float a, __local float *unused) {\n"
    "    int i = (int)get_global_id(0);\n"
    "    if (i < n) y[i] = a * x[i];\n"
    "}\n";

const clv__kernel_source clv__kernel_sources[] = {{"twice", twice_text, sizeof twice_text - 1, 0},
                                                  {0, 0, 0, 0}};

static void (*fault_arm)(long n, int code);
static const char *(*fault_fired)(void);
static long (*fault_calls)(void);
static int (*fault_live)(void);

enum { N = 64 };

/** All that the program holds, so that one place frees it whatever happened. */
typedef struct held {
    clv_runtime *runtime;
    clv_device *device;
    clv__memory x, y, staging;
    clv__bbuffer *part;
    clv__bkernel *kernel;
    clv__bevent *written, *launched, *recorded, *read;
    float in[N], out[N];
} held;

static clv_status use_device(held *h) {
    clv_device *device = h->device;
    const clv__backend *b = device->backend;
    clv__error *error = clv__runtime_error_of(h->runtime);
    size_t align = clv_device_get_info(device)->alignment_bytes;
    CLV_TRY(clv__memory_create(device, sizeof h->in + align, CLV_PARAMETERS, "x", &h->x));
    CLV_TRY(clv__memory_create(device, sizeof h->out, CLV_ACTIVATIONS, "y", &h->y));
    CLV_TRY(clv__memory_create(device, 100, CLV_STAGING, "staging", &h->staging));
    CLV_TRY(b->buffer_part(h->x.buffer, align, sizeof h->in, error, &h->part));
    clv__launch launch = {.kind = CLV__LAUNCH_KERNEL, .source = "twice", .entry = "twice"};
    const clv__launch *list[] = {&launch};
    CLV_TRY(clv__programs_build(device, list, 1));
    clv__kernel_ref ref;
    CLV_TRY(clv__programs_find(device, &launch, &ref));
    const clv__barg args[] = {{.kind = CLV__BARG_BUFFER, .buffer = h->y.buffer},
                              {.kind = CLV__BARG_BUFFER, .buffer = h->part},
                              {.kind = CLV__BARG_I32, .i32 = N},
                              {.kind = CLV__BARG_F32, .f32 = 2},
                              {.kind = CLV__BARG_LOCAL, .bytes = 16}};
    const clv__grid grid = {1, {N}, {1}};
    CLV_TRY(b->kernel_create(ref.program, ref.name, args, 5, &grid, error, &h->kernel));
    for (int i = 0; i < N; i++) h->in[i] = (float)i;
    CLV_TRY(b->fill(device->open, h->y.buffer, 0, sizeof h->out, 0, error));
    CLV_TRY(b->write(device->open, CLV__QUEUE_TRANSFER, h->part, 0, sizeof h->in, h->in, NULL, &h->written,
                     error));
    CLV_TRY(b->wait_on_queue(device->open, CLV__QUEUE_COMPUTE, h->written, error));
    CLV_TRY(b->launch(device->open, h->kernel, &h->launched, error));
    CLV_TRY(b->copy(device->open, h->y.buffer, 0, h->y.buffer, sizeof h->out / 2, 4, error));
    CLV_TRY(b->record(device->open, CLV__QUEUE_COMPUTE, &h->recorded, error));
    CLV_TRY(b->read(device->open, CLV__QUEUE_TRANSFER, h->y.buffer, 0, sizeof h->out, h->out, h->recorded,
                    &h->read, error));
    CLV_TRY(b->flush(device->open, error));
    CLV_TRY(b->event_wait(h->read, error));
    uint64_t start, end;
    CLV_TRY(b->elapsed(h->launched, &start, &end, error));
    CLV_TRY(b->synchronize(device->open, error));
    for (int i = 0; i < N; i++) assert_true(h->out[i] == (i == N / 2 ? 0.0f : 2.0f * (float)i));
    return CLV_OK;
}

static void free_all(held *h) {
    if (h->device) {
        const clv__backend *b = h->device->backend;
        clv_status ignored =
            h->device->open ? b->synchronize(h->device->open, NULL) : CLV_OK; // transfers use `held`
        (void)ignored;
        b->event_destroy(h->written);
        b->event_destroy(h->launched);
        b->event_destroy(h->recorded);
        b->event_destroy(h->read);
        b->kernel_destroy(h->kernel);
        b->buffer_destroy(h->part);
        clv__memory_destroy(&h->staging);
        clv__memory_destroy(&h->y);
        clv__memory_destroy(&h->x);
        assert_int_equal(clv_device_memory(h->device).all.current, 0);
    }
    clv_runtime_destroy(h->runtime);
}

/** The program, from nothing to nothing. What the runtime said last goes to `sentence`; `used`: a device did the work. */
static clv_status run(const clv_runtime_config *config, char *sentence, size_t bytes, bool *used) {
    held *h = calloc(1, sizeof *h);
    assert_non_null(h);
    *used = false;
    clv_status status = clv_runtime_create(config, &h->runtime);
    for (int i = 0; status == CLV_OK && i < clv_device_count(h->runtime); i++) {
        clv_device *device = clv_device_get(h->runtime, i);
        const clv_device_info *info = clv_device_get_info(device);
        if (!info->usable) { // a row with its reason: this too is an answer
            assert_true(*info->reason);
            snprintf(sentence, bytes, "%s", info->reason);
        } else if (!h->device && strcmp(info->backend, "opencl") == 0) {
            h->device = device;
            device->traits.caches_programs = false; // so that the cache's calls are made too
        }
    }
    if (h->device) {
        *used = true;
        status = use_device(h);
    }
    if (status != CLV_OK) {
        assert_non_null(h->runtime);
        snprintf(sentence, bytes, "%s", clv_runtime_error(h->runtime));
    }
    free_all(h);
    free(h);
    assert_int_equal(fault_live(), 0);
    return status;
}

static void every_call_may_fail(const clv_runtime_config *config, int code, const char *name,
                                clv_status want) {
    bool used;
    char sentence[2048];
    fault_arm(0, 0);
    assert_int_equal(run(config, sentence, sizeof sentence, &used), CLV_OK);
    assert_true(used);
    long n = 1, told = 0;
    for (;; n++) {
        sentence[0] = 0;
        fault_arm(n, code);
        clv_status status = run(config, sentence, sizeof sentence, &used);
        const char *call = fault_fired();
        if (!call) {
            assert_int_equal(status, CLV_OK);
            break;
        }
        if (status != CLV_OK) {
            // Building goes another way when a binary does not load; what is left is told with the error's own status.
            if (status != want && status != CLV_E_BUILD && status != CLV_E_UNSUPPORTED &&
                status != CLV_E_NOT_FOUND) {
                print_error("call %ld, %s: %s, %s\n", n, call, clv_status_name(status), sentence);
                fail();
            }
            if (!strstr(sentence, name)) print_error("call %ld, %s: '%s'\n", n, call, sentence);
            assert_holds(sentence, name);
            assert_holds(sentence, call);
            told++;
        }
    }
    print_message("%s: %ld calls, %ld of them end the program, each with its sentence\n", name, n - 1, told);
    assert_true(n > 60 && told > 30);
}

static void out_of_resources(void **state) {
    const clv_runtime_config *config = *state;
    every_call_may_fail(config, -5, "CL_OUT_OF_RESOURCES", CLV_E_DEVICE_MEMORY);
}

static void broken_context(void **state) {
    const clv_runtime_config *config = *state;
    every_call_may_fail(config, -9999, "NV_ILLEGAL_MEMORY_ACCESS", CLV_E_DEVICE_LOST);
}

static void an_unknown_error(void **state) {
    const clv_runtime_config *config = *state;
    every_call_may_fail(config, -12345, "-12345", CLV_E_DEVICE);
}

int main(void) {
    const char *layer = getenv("CLV_FAULT_LAYER");
    if (!layer) layer = CLV_TEST_BINARY_DIR "/tests/device/libclv_fault_layer.so";
    setenv("OPENCL_LAYERS", layer, 1); // before the loader wakes up
    void *library = dlopen(layer, RTLD_NOW);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    *(void **)&fault_arm = dlsym(library, "fault_arm");
    *(void **)&fault_fired = dlsym(library, "fault_fired");
    *(void **)&fault_calls = dlsym(library, "fault_calls");
    *(void **)&fault_live = dlsym(library, "fault_live");
    static char folder[] = "/tmp/clv-test-XXXXXX";
    if (!mkdtemp(folder)) return 1;
    clv_runtime_config config = {.cache_dir = folder};
    clv_runtime *runtime = NULL;
    clv_device *device = NULL;
    if (clv_runtime_create(&config, &runtime) != CLV_OK) return 1;
    static char partition[64];
    bool there = false;
    for (int i = -1; (device = clv__test_next_device(runtime, &i));) {
        const clv_device_info *info = clv_device_get_info(device);
        if (strcmp(info->backend, "opencl") != 0) continue;
        there = true;
        if (getenv("CLV_TEST_PARTITION")) { // splitting makes calls of its own
            snprintf(partition, sizeof partition, "%s=2", info->name);
            config.partition = partition;
        }
        break;
    }
    clv_runtime_destroy(runtime);
    if (!there || fault_calls() == 0) {
        printf("skipped: %s\n", there ? "this OpenCL loader knows no layers" : "no usable OpenCL device");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(out_of_resources, &config),
        cmocka_unit_test_prestate(broken_context, &config),
        cmocka_unit_test_prestate(an_unknown_error, &config),
    };
    return cmocka_run_group_tests_name("faults", tests, NULL, NULL);
}
