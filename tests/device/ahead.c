// SPDX-License-Identifier: Apache-2.0
// Kernels compiled ahead by helpers, seen in the driver's cache on disk: nobody here launches anything. This program is its own
// helper, and a bad one if CLV_TEST_HELPER says so. The kernel source is this test's own.
#define _GNU_SOURCE // nftw
#include "harness/harness.h"

#include <ftw.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "device/helpers/internal.h"
#include "device/kernel_sources.h"

static const char number_text[] = "__kernel void KERNEL(number)(__global int *y, int n) {\n"
                                  "    for (int i = 0; i < n; i++) y[i] = i + NUMBER;\n"
                                  "}\n";
const clv__kernel_source clv__kernel_sources[] = {{"number", number_text, sizeof number_text - 1, 0},
                                                  {0, 0, 0, 0}};

enum { KERNELS = 8, MANY = 100, ELEMENTS = 1000, GIVE_UP = 60 };

// ---- launches, and what the driver has on disk --------------------------------------------------------------------------

static clv__launch launches[MANY];

static void write_launches(int first) {
    for (int i = 0; i < MANY; i++) {
        launches[i] = (clv__launch){.kind = CLV__LAUNCH_KERNEL,
                                    .source = "number",
                                    .entry = "number",
                                    .slots = {{.kind = CLV__SLOT_OUT, .bytes = ELEMENTS * sizeof(int)},
                                              {.kind = CLV__SLOT_I32, .i32 = ELEMENTS}},
                                    .n_slots = 2,
                                    .grid = {.dims = 1, .global = {64}, .local = {1}}};
        snprintf(launches[i].defines, sizeof launches[i].defines, "NUMBER %d\n", first + i);
    }
}

static const clv__launch *const *list(void) {
    static const clv__launch *pointers[MANY];
    for (int i = 0; i < MANY; i++) pointers[i] = &launches[i];
    return pointers;
}

static const char *wanted; // file names begin so
static int found;

static int look(const char *path, const struct stat *about, int kind, struct FTW *where) {
    size_t n = strlen(path);
    if (kind == FTW_F && !strncmp(path + where->base, wanted, strlen(wanted)) && !strcmp(path + n - 3, ".so"))
        found++;
    return 0;
}

/** Has the driver compiled this kernel? */
static bool is_compiled(clv_device *device, const clv__launch *launch) {
    clv__kernel_ref kernel;
    assert_status(clv__programs_find(device, launch, &kernel), CLV_OK, device->runtime);
    wanted = kernel.name;
    found = 0;
    nftw(getenv("POCL_CACHE_DIR"), look, 8, FTW_PHYS);
    return found > 0;
}

static int count_compiled(clv_device *device) {
    int n = 0;
    for (int i = 0; i < KERNELS; i++) n += is_compiled(device, &launches[i]);
    return n;
}

static char self[4096];

static clv_runtime *make(const char *command, clv_device **device) {
    clv_runtime *runtime = clv__test_runtime(&(clv_runtime_config){.compile_helper = command});
    for (int i = -1; (*device = clv__test_next_device(runtime, &i));) {
        if ((*device)->traits.compiles_at_launch) return runtime;
    }
    clv_runtime_destroy(runtime);
    print_message("skipped: no device that compiles a kernel when it is launched\n");
    skip();
    return NULL;
}

/** Build the launches' programs with help from `command`; how many helpers were started. */
static int build(clv_device *device, size_t n) {
    clv__ahead *ahead = clv__ahead_begin(device, list(), n, n);
    assert_status(clv__programs_build(device, list(), n), CLV_OK, device->runtime);
    clv__ahead_tell(ahead, true);
    return clv_runtime_info_get(device->runtime).programs.helpers;
}

// ---- who asks -----------------------------------------------------------------------------------------------------------

TEST(helpers_compile_what_is_not_launched) {
    clv_device *device;
    clv_runtime *runtime = make(self, &device);
    write_launches(100);
    int helpers = build(device, KERNELS);
    long most = sysconf(_SC_NPROCESSORS_ONLN) - 1;
    assert_int_equal(helpers, most < KERNELS / 4 ? most : KERNELS / 4);
    double begin = clv__seconds();
    while (helpers && count_compiled(device) < KERNELS && clv__seconds() - begin < GIVE_UP) usleep(20000);
    assert_int_equal(count_compiled(device), helpers ? KERNELS : 0);
    clv_runtime_destroy(runtime);

    // Now the program is in the driver's cache, and no helper is started. On a busy machine loading may take so long that one is.
    helpers = 1;
    for (int tries = 0; helpers && tries < 20; tries++) {
        runtime = make(self, &device);
        helpers = build(device, KERNELS);
        clv_runtime_destroy(runtime);
    }
    assert_int_equal(helpers, 0);
}

TEST(nobody_helps_unasked) {
    clv_device *device;
    clv_runtime *runtime = make("", &device);
    write_launches(200);
    assert_int_equal(build(device, KERNELS), 0);
    assert_int_equal(count_compiled(device), 0);
    clv_runtime_destroy(runtime);
}

/** A helper that is not there, ends at once, or never does, costs nothing but time. One that hangs does not even read: MANY launches
 *  are more than a socket holds. */
TEST(bad_helpers_do_no_harm) {
    static const struct {
        const char *command, *how;
        size_t n;
    } bad[] = {{"/no/such/program", "", KERNELS},
               {"/bin/false", "", KERNELS},
               {self, "die", KERNELS},
               {self, "hang", MANY}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        clv_device *device;
        setenv("CLV_TEST_HELPER", bad[i].how, 1);
        clv_runtime *runtime = make(bad[i].command, &device);
        write_launches(1000 + MANY * (int)i);
        int helpers = build(device, bad[i].n);
        if (i == 0) assert_int_equal(helpers, 0);
        assert_int_equal(count_compiled(device), 0);
        double begin = clv__seconds();
        clv_runtime_destroy(runtime);
        assert_true(clv__seconds() - begin < 30);
    }
    unsetenv("CLV_TEST_HELPER");
}

/** A runtime that ends before its programs are built, or whose programs do not build, sends everybody home. */
TEST(helpers_go_when_nothing_comes) {
    for (int told = 0; told < 2; told++) {
        clv_device *device;
        clv_runtime *runtime = make(self, &device);
        write_launches(400);
        clv__ahead *ahead = clv__ahead_begin(device, list(), KERNELS, KERNELS);
        assert_non_null(ahead);
        assert_null(clv__ahead_begin(device, list(), KERNELS, KERNELS)); // a device asks once
        usleep(400000);                                                  // until helpers are there, and wait
        if (told) clv__ahead_tell(ahead, false);
        clv_runtime_destroy(runtime);
    }
}

/** A program that is no helper but was named as one does not ask in its turn. */
TEST(helpers_ask_nobody) {
    clv_device *device;
    clv_runtime *runtime = make(self, &device);
    write_launches(500);
    setenv("CLEAVE_IS_HELPER", "1", 1);
    assert_null(clv__ahead_begin(device, list(), KERNELS, KERNELS));
    unsetenv("CLEAVE_IS_HELPER");
    clv_runtime_destroy(runtime);
}

// ---- who is asked -------------------------------------------------------------------------------------------------------

static clv__handshake handshake_of(const char *device) {
    clv__handshake w = {.launch_bytes = sizeof(clv__sent_launch),
                        .n = KERNELS,
                        .n_first = KERNELS,
                        .n_helpers = 1,
                        .text_bytes = {1, 1, 1, 1}};
    memcpy(w.magic, clv__handshake_magic, sizeof w.magic);
    snprintf(w.version, sizeof w.version, "%s", CLEAVE_VERSION);
    snprintf(w.device, sizeof w.device, "%s", device);
    return w;
}

/** What a helper says that is told so and then left alone. */
static clv_status answer(const clv__handshake *w, size_t bytes) {
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    assert_int_equal(write(ends[1], w, bytes), bytes);
    assert_int_equal(write(ends[1], "\0\0\0", 4), 4); // no visible_devices, partition, left_out, cache_dir
    close(ends[1]);
    clv_status status = clv_compile_helper(ends[0]);
    close(ends[0]);
    return status;
}

TEST(a_helper_believes_little) {
    clv_device *device;
    clv_runtime *runtime = make("", &device);
    char name[24];
    snprintf(name, sizeof name, "%s", device->name);
    clv_runtime_destroy(runtime);
    const clv__handshake good = handshake_of(name);
    assert_int_equal(answer(&good, sizeof good), CLV_OK); // no launches: help is not needed after all
    assert_int_equal(answer(&good, sizeof good / 2), CLV_E_IO);
    clv__handshake bad = good;
    bad.magic[0] ^= 1;
    assert_int_equal(answer(&bad, sizeof bad), CLV_E_VALUE);
    bad = good;
    bad.version[0] = 'x';
    assert_int_equal(answer(&bad, sizeof bad), CLV_E_VALUE);
    bad = good;
    bad.launch_bytes++;
    assert_int_equal(answer(&bad, sizeof bad), CLV_E_VALUE);
    bad = good;
    bad.n = SIZE_MAX;
    assert_int_equal(answer(&bad, sizeof bad), CLV_E_VALUE);
    bad = good;
    bad.number = 1;
    assert_int_equal(answer(&bad, sizeof bad), CLV_E_VALUE);
    bad = good;
    bad.n_first = KERNELS + 1;
    assert_int_equal(answer(&bad, sizeof bad), CLV_E_VALUE);
    bad = good;
    bad.text_bytes[2] = SIZE_MAX;
    assert_int_equal(answer(&bad, sizeof bad), CLV_E_IO);
    bad = handshake_of("accelerator:7");
    assert_int_equal(answer(&bad, sizeof bad), CLV_E_NOT_FOUND);
    bad = handshake_of("host");
    assert_int_equal(answer(&bad, sizeof bad), CLV_E_UNSUPPORTED);
}

int main(int argc, char **argv) {
    if (argc == 2 && !strcmp(argv[1], "compile-helper")) {
        const char *how = getenv("CLV_TEST_HELPER");
        if (how && !strcmp(how, "die")) abort();
        if (how && !strcmp(how, "hang")) pause();
        return clv_compile_helper(STDIN_FILENO) != CLV_OK;
    }
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = 0;
    char *folder = clv__test_folder(); // an empty cache, before the driver is loaded
    setenv("POCL_CACHE_DIR", folder, 1);
    int failed = clv__tests_run(NULL, NULL);
    free(folder);
    return failed;
}
