// SPDX-License-Identifier: Apache-2.0
// Every OpenCL call of a small program is made to fail, one at a time, for n = 1, 2, ... until the program runs untouched:
// nothing crashes, nothing leaks, and each failure has a sentence that names the call and the error. See fault_layer.c.
// Then the same with every allocation of host memory that is ours. At last the waits fail while a command runs.
#include "harness/harness.h"

#include <dlfcn.h>
#include <pthread.h>

#include "device/device.h"
#include "device/fault_layer.h"
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
static void (*fault_arm_call)(const char *call, long n, int code, fault_kind kind);
static const char *(*fault_fired)(void);
static long (*fault_calls)(void);
static int (*fault_live)(void);

enum { N = 64 };

// ---- Allocations of ours: the linker sends them here (--wrap) -----------------------------------------------------

static struct {
    pthread_mutex_t lock;
    long n, fail_at, live, at_rest; // at_rest: before anything is tested
    bool fired;
} allocations = {.lock = PTHREAD_MUTEX_INITIALIZER};

/** Count one; false if it is the one that fails. */
static bool may_allocate(void) {
    pthread_mutex_lock(&allocations.lock);
    bool fails = ++allocations.n == allocations.fail_at;
    allocations.fired |= fails;
    allocations.live += !fails;
    pthread_mutex_unlock(&allocations.lock);
    return !fails;
}

/** How many live once as many do as should. A driver's thread may hold a buffer for a moment after clFinish and the last release, so
 *  its memory (clSetMemObjectDestructorCallback) goes late; what leaks never goes. */
static long live_at_last(long wanted) {
    for (int i = 0;; i++) {
        pthread_mutex_lock(&allocations.lock);
        long live = allocations.live;
        pthread_mutex_unlock(&allocations.lock);
        if (live == wanted || i == 10000) return live;
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
}

static void arm_allocations(long n) {
    pthread_mutex_lock(&allocations.lock);
    allocations.n = 0;
    allocations.fail_at = n;
    allocations.fired = false;
    pthread_mutex_unlock(&allocations.lock);
}

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
char *__real_strdup(const char *text);
void __real_free(void *memory);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
char *__wrap_strdup(const char *text);
void __wrap_free(void *memory);

void *__wrap_malloc(size_t bytes) {
    return may_allocate() ? __real_malloc(bytes) : NULL;
}

void *__wrap_calloc(size_t n, size_t bytes) {
    return may_allocate() ? __real_calloc(n, bytes) : NULL;
}

void *__wrap_realloc(void *old, size_t bytes) {
    if (!may_allocate()) return NULL;
    if (old) { // it moves, no new one lives
        pthread_mutex_lock(&allocations.lock);
        allocations.live--;
        pthread_mutex_unlock(&allocations.lock);
    }
    return __real_realloc(old, bytes);
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes) {
    return may_allocate() ? __real_aligned_alloc(alignment, bytes) : NULL;
}

char *__wrap_strdup(const char *text) {
    return may_allocate() ? __real_strdup(text) : NULL;
}

void __wrap_free(void *memory) {
    if (memory) {
        pthread_mutex_lock(&allocations.lock);
        allocations.live--;
        pthread_mutex_unlock(&allocations.lock);
    }
    __real_free(memory);
}

// ---- The program ------------------------------------------------------------------------------------------------

/** All that the program holds, so that one place frees it whatever happened. */
typedef struct held {
    clv_runtime *runtime;
    clv_device *device;
    clv__memory x, y, staging, pinned;
    clv__bbuffer *part, *lent;
    clv__bkernel *kernel;
    clv__bevent *written, *launched, *recorded, *read;
    float in[N], out[N];
} held;

static clv_status use_device(held *h) {
    clv_device *device = h->device;
    const clv__backend *b = device->backend;
    clv__error *error = clv__runtime_error_of(h->runtime);
    size_t align = clv_device_info_get(device)->alignment_bytes;
    CLV_TRY(clv__memory_create(device, sizeof h->in + align, CLV_PARAMETERS, "x", &h->x));
    CLV_TRY(clv__memory_create(device, sizeof h->out, CLV_ACTIVATIONS, "y", &h->y));
    CLV_TRY(clv__memory_create(device, 100, CLV_STAGING, "staging", &h->staging));
    const bool host_memory =
        device->traits.host_memory; // what a device with memory of its own stages in, on any
    device->traits.host_memory = false;
    const clv_status pinned = clv__memory_create(device, sizeof h->out, CLV_STAGING, "pinned", &h->pinned);
    device->traits.host_memory = host_memory;
    CLV_TRY(pinned);
    CLV_TRY(b->buffer_part(h->x.buffer, align, sizeof h->in, error, &h->part));
    if (device->traits.host_memory)
        CLV_TRY(b->buffer_over(device->open, b->buffer_block(h->part), b->buffer_pointer(h->part),
                               sizeof h->in, error, &h->lent));
    clv__launch launch = {.kind = CLV__LAUNCH_KERNEL, .source = "twice", .entry = "twice"};
    const clv__launch *list[] = {&launch};
    CLV_TRY(clv__programs_build(device, list, 1));
    clv__kernel_ref ref;
    CLV_TRY(clv__programs_find(device, &launch, &ref));
    const clv__barg args[] = {{.kind = CLV__BARG_BUFFER, .buffer = h->y.buffer},
                              {.kind = CLV__BARG_BUFFER, .buffer = h->lent ? h->lent : h->part},
                              {.kind = CLV__BARG_I32, .i32 = N},
                              {.kind = CLV__BARG_F32, .f32 = 2},
                              {.kind = CLV__BARG_LOCAL, .bytes = 16}};
    const clv__grid grid = {.dims = 1, .global = {N}, .local = {1}};
    CLV_TRY(b->kernel_create(ref.program, ref.name, args, 5, &grid, error, &h->kernel));
    for (int i = 0; i < N; i++) h->in[i] = (float)i;
    if (b->keep_times) CLV_TRY(b->keep_times(device->open, error));
    CLV_TRY(b->fill(device->open, h->y.buffer, 0, sizeof h->out, 0, error));
    CLV_TRY(
        b->write(device->open, CLV__QUEUE_UPLOAD, h->part, 0, sizeof h->in, h->in, NULL, &h->written, error));
    CLV_TRY(b->wait_on_queue(device->open, CLV__QUEUE_COMPUTE, h->written, error));
    CLV_TRY(b->launch(device->open, h->kernel, &h->launched, error));
    CLV_TRY(b->copy(device->open, h->y.buffer, 0, h->y.buffer, sizeof h->out / 2, 4, error));
    CLV_TRY(b->record(device->open, CLV__QUEUE_COMPUTE, &h->recorded, error));
    CLV_TRY(b->read(device->open, CLV__QUEUE_DOWNLOAD, h->y.buffer, 0, sizeof h->out, h->pinned.pointer,
                    h->recorded, &h->read, error));
    CLV_TRY(b->flush(device->open, error));
    CLV_TRY(b->event_wait(h->read, error));
    uint64_t start, end;
    CLV_TRY(b->elapsed(h->launched, &start, &end, error));
    CLV_TRY(b->synchronize(device->open, error));
    memcpy(h->out, h->pinned.pointer, sizeof h->out);
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
        b->buffer_destroy(h->lent);
        b->buffer_destroy(h->part);
        clv__memory_destroy(&h->pinned);
        clv__memory_destroy(&h->staging);
        clv__memory_destroy(&h->y);
        clv__memory_destroy(&h->x);
        assert_int_equal(clv_device_memory(h->device).all.current, 0);
    }
    clv_runtime_destroy(h->runtime);
}

/** The program, from nothing to nothing. What the runtime said last goes to `sentence`; `used`: a device did the work. */
static clv_status run(const clv_runtime_config *config, char *sentence, size_t bytes, bool *used) {
    held *h = __real_calloc(1, sizeof *h);
    assert_non_null(h);
    *used = false;
    clv_status status = clv_runtime_create(config, &h->runtime);
    for (int i = 0; status == CLV_OK && i < clv_runtime_info_get(h->runtime).n_devices; i++) {
        clv_device *device = clv_device_get(h->runtime, i);
        const clv_device_info *info = clv_device_info_get(device);
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
        snprintf(sentence, bytes, "%s", clv_runtime_error(h->runtime)); // "" if there is not even a runtime
    }
    free_all(h);
    __real_free(h);
    assert_int_equal(fault_live(), 0);
    return status;
}

static void every_call_may_fail(const clv_runtime_config *config, int code, const char *of_code,
                                clv_status of_status) {
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
        const bool no_code = strcmp(call, "clSVMAlloc") == 0; // it gives none
        const char *name = no_code ? "CL_MEM_OBJECT_ALLOCATION_FAILURE" : of_code;
        const clv_status want = no_code ? CLV_E_DEVICE_MEMORY : of_status;
        if (status != CLV_OK) {
            // Building goes another way when a binary does not load; what is left is told with the error's own status. A driver
            // that would not say which devices it has has failed too.
            bool missing = status == CLV_E_DEVICE && strstr(sentence, "there is no device");
            if (status != want && status != CLV_E_BUILD && status != CLV_E_UNSUPPORTED && !missing) {
                print_error("call %ld, %s: %s, %s\n", n, call, clv_status_name(status), sentence);
                fail();
            }
            if (!strstr(sentence, name)) print_error("call %ld, %s: '%s'\n", n, call, sentence);
            assert_holds(sentence, name);
            assert_holds(sentence, call);
            told++;
        }
    }
    print_message("%s: %ld calls, %ld of them end the program, each with its sentence\n", of_code, n - 1,
                  told);
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

static void no_host_memory(void **state) {
    const clv_runtime_config *config = *state;
    bool used;
    char sentence[2048];
    fault_arm(0, 0);
    arm_allocations(0);
    const long before = live_at_last(allocations.at_rest);
    long n = 1, told = 0;
    assert_int_equal(before, allocations.at_rest);
    for (;; n++) {
        sentence[0] = 0;
        arm_allocations(n);
        clv_status status = run(config, sentence, sizeof sentence, &used);
        long live = live_at_last(before);
        if (live != before) print_error("allocation %ld leaks: %s\n", n, sentence);
        assert_int_equal(live, before);
        if (!allocations.fired) {
            assert_int_equal(status, CLV_OK);
            break;
        }
        bool told_so = strstr(sentence, "CL_OUT_OF_HOST_MEMORY") && // of a device, or of a platform
                       (status == CLV_E_UNSUPPORTED ||
                        (status == CLV_E_DEVICE && strstr(sentence, "there is no device")));
        if (status != CLV_OK && status != CLV_E_HOST_MEMORY && !told_so) {
            print_error("allocation %ld: %s, %s\n", n, clv_status_name(status), sentence);
            fail();
        }
        if (status == CLV_OK) continue; // done without: the cache, mostly
        if (*sentence && !told_so) assert_holds(sentence, "memory");
        told++;
    }
    arm_allocations(0); // whoever allocates after us is not meant
    print_message("%ld allocations, %ld of them end the program\n", n - 1, told);
    assert_true(n > 30 && told > 20);
}

/** Every wait fails, and the command goes on: what it uses stays, then and when the runtime is gone. */
static void a_command_that_still_runs(void **state) {
    static const float in[N] = {1};
    clv_runtime *runtime;
    clv__memory memory = {0};
    clv_device *device = NULL;
    clv__bevent *written = NULL;
    fault_arm(0, 0);
    assert_int_equal(clv_runtime_create(*state, &runtime), CLV_OK);
    for (int i = 0; i < clv_runtime_info_get(runtime).n_devices && !device; i++) {
        const clv_device_info *info = clv_device_info_get(clv_device_get(runtime, i));
        if (info->usable && strcmp(info->backend, "opencl") == 0) device = clv_device_get(runtime, i);
    }
    assert_non_null(device);
    const clv__backend *b = device->backend;
    clv__error *error = clv__runtime_error_of(runtime);
    assert_int_equal(clv__memory_create(device, sizeof in, CLV_PARAMETERS, "x", &memory), CLV_OK);
    fault_arm_call("", 0, -9999, FAULT_RUNS_ON);
    assert_int_equal(
        b->write(device->open, CLV__QUEUE_UPLOAD, memory.buffer, 0, sizeof in, in, NULL, &written, error),
        CLV_OK);
    void *used = __real_malloc(sizeof in);
    assert_int_equal(clv__device_settle(device, error), CLV_E_DEVICE_LOST);
    assert_holds(clv_runtime_error(runtime), "NV_ILLEGAL_MEMORY_ACCESS");
    assert_true(b->still_runs(device->open));
    clv__device_free(device, used);
    assert_non_null(device->kept);
    b->event_destroy(written);
    clv__memory_destroy(&memory);
    clv_runtime_destroy(runtime);
    fault_arm(0, 0); // now it is done
}

int main(void) {
    const char *layer = getenv("CLV_FAULT_LAYER");
    if (!layer) layer = CLV_TEST_BINARY_DIR "/tests/device/libclv_fault_layer.so";
    const char *first = getenv("CLV_TEST_BELOW"); // a layer between this one and the drivers
    char layers[4096];
    snprintf(layers, sizeof layers, "%s%s%s", first ? first : "", first ? ":" : "", layer);
    setenv("OPENCL_LAYERS", layers, 1); // before the loader wakes up
    void *library = dlopen(layer, RTLD_NOW);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    *(void **)&fault_arm = dlsym(library, "fault_arm");
    *(void **)&fault_arm_call = dlsym(library, "fault_arm_call");
    *(void **)&fault_fired = dlsym(library, "fault_fired");
    *(void **)&fault_calls = dlsym(library, "fault_calls");
    *(void **)&fault_live = dlsym(library, "fault_live");
    char *folder = clv__test_folder();
    clv_runtime_config config = {.cache_dir = folder};
    clv_runtime *runtime = NULL;
    clv_device *device = NULL;
    if (clv_runtime_create(&config, &runtime) != CLV_OK) return 1;
    static char partition[64];
    bool there = false;
    for (int i = -1; (device = clv__test_next_device(runtime, &i));) {
        const clv_device_info *info = clv_device_info_get(device);
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
        cmocka_unit_test_prestate(no_host_memory, &config),
        cmocka_unit_test_prestate(a_command_that_still_runs, &config), // last: it leaves what it must
    };
    allocations.at_rest = allocations.live;
    int failed = cmocka_run_group_tests_name("faults", tests, NULL, NULL);
    __real_free(folder);
    return failed;
}
