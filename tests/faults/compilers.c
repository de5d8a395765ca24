// SPDX-License-Identifier: Apache-2.0
// Trainings whose compiler refuses programs, or ends the process that has them built (tests/device/dies_layer.c): at the k-th build,
// for every k; for all that is large; for one kernel. Training goes on, here, with the same bits, and a later process has learned.
// This program is its own compile helper.
#include "harness/harness.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cleave/nn.h"
#include "cleave/ops.h"
#include "cleave/optim.h"
#include "cleave/plan.h"
#include "device/device.h"
#include "device/helpers/notes.h"

#define DEADLY "conv2d_tile"
#define DEADLY_OP "conv2d"
#define DEADLY_VARIANT "tile"

enum { N = 4, STEPS = 2, MOST_BYTES = 1 << 16 };

static char self[4096];
static char *driver_cache, *counter;
static int warnings;
static char last_warning[2000];

static void hear(void *user, clv_log_level level, const char *sentence) {
    if (level != CLV_LOG_WARNING) return;
    warnings++;
    snprintf(last_warning, sizeof last_warning, "%s", sentence);
}

// ---- one training -------------------------------------------------------------------------------------------------------

typedef struct training {
    const char *folder; // of the program cache
    const char *how;    // CLV_TEST_DIES
    const char *helper; // NULL: this program
    double timeout;     // of the device; 0: the usual
    int largest;        // kernels in a program, as noted before; 0: any number
    bool no_cache;
} training;

typedef struct result {
    uint64_t bits; // a hash of all that the session holds
    int begun, died, warnings;
    char avoided[4096]; // quarantine, when the training was over
    char before[4096];  // and before it
} result;

static void add_avoided(void *user, const char *op, const char *variant, const char *why) {
    char *text = user;
    size_t n = strlen(text);
    snprintf(text + n, 4096 - n, "%s %s: %s\n", op, variant, why);
}

static uint64_t hash_session(clv_runtime *runtime, clv_session *session) {
    static unsigned char bytes[MOST_BYTES];
    uint64_t hash = UINT64_C(14695981039346656037); // FNV-1a
    assert_true(clv_session_info_get(session).n_tensors > 5);
    for (int i = 0; i < clv_session_info_get(session).n_tensors; i++) {
        clv_session_tensor tensor = clv_session_get(session, i);
        assert_in_range(tensor.bytes, 1, sizeof bytes);
        assert_status(clv_session_read(session, i, bytes, tensor.bytes), CLV_OK, runtime);
        for (size_t b = 0; b < tensor.bytes; b++) hash = (hash ^ bytes[b]) * UINT64_C(1099511628211);
    }
    return hash;
}

static clv_tensor *layers(clv_tensor *x) {
    x = clv_nn_conv2d(x, "conv", 3, &(clv_nn_conv2d_config){.kernel = {3, 3}});
    x = clv_flatten(clv_relu(clv_nn_batch_norm(x, "norm", NULL)), 1);
    return clv_nn_linear(x, "fc", 3, NULL);
}

static uint64_t train(clv_runtime *runtime, clv_device *device) {
    static const clv_optimizer_config momentum = {.kind = CLV_SGD, .momentum = 0.9f};
    clv_graph *graph = clv__test_graph(runtime);
    clv_graph_set_training(graph, true);
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(N, 1, 5, 5));
    clv_tensor *labels = clv_input(graph, "labels", CLV_DTYPE_I32, CLV_SHAPE(N));
    clv_tensor *loss = clv_cross_entropy(layers(x), labels);
    clv_output(loss, "loss");
    clv_backward(loss);
    clv_optimizer_add(graph, &momentum);
    clv_plan *plan = clv__test_plan(runtime, graph, &(clv_plan_config){.device = device});
    clv_session *session = clv__test_session(runtime, &(clv_session_config){.seed = 5});
    clv_run *run = clv__test_run(runtime, session, plan);
    for (int step = 0; step < STEPS; step++) {
        float values[N * 25], hyper[CLV_HYPER_VALUES];
        int32_t classes[N];
        for (int i = 0; i < N * 25; i++) values[i] = (float)((i * 7 + step * 3) % 11) / 5 - 1;
        for (int i = 0; i < N; i++) classes[i] = (i + step) % 3;
        clv_optimizer_hyper_values(graph, step + 1, 0.05, hyper);
        assert_status(clv_run_feed(run, x, values, sizeof values), CLV_OK, runtime);
        assert_status(clv_run_feed(run, labels, classes, sizeof classes), CLV_OK, runtime);
        assert_status(clv_run_feed(run, clv_optimizer_hyper(graph), hyper, sizeof hyper), CLV_OK, runtime);
        assert_status(clv_run_step(run, NULL), CLV_OK, runtime);
    }
    assert_status(clv_run_finish(run), CLV_OK, runtime);
    uint64_t bits = hash_session(runtime, session);
    clv__test_end(run, session, plan, graph);
    return bits;
}

static clv_runtime *make(const training *t, clv_device **device) {
    const clv_runtime_config config = {.cache_dir = t->folder,
                                       .compile_helper = t->helper ? t->helper : self,
                                       .device_timeout = t->timeout,
                                       .no_cache = t->no_cache,
                                       .log = hear};
    clv_runtime *runtime = clv__test_runtime(&config);
    if (clv_device_find(runtime, "cpu", device) == CLV_OK) return runtime;
    clv_runtime_destroy(runtime);
    return NULL;
}

static int lines_of(const char *word) {
    char line[64];
    int n = 0;
    FILE *file = fopen(counter, "r");
    while (file && fgets(line, sizeof line, file)) n += !strncmp(line, word, strlen(word));
    if (file) fclose(file);
    return n;
}

static result run(const training *t) {
    result r = {0};
    clv_device *device;
    remove(counter);
    setenv("CLV_TEST_DIES", t->how, 1);
    warnings = 0;
    clv_runtime *runtime = make(t, &device);
    assert_non_null(runtime);
    char number[20];
    snprintf(number, sizeof number, "%d", t->largest);
    if (t->largest) clv__notes_keep(device, "largest", number);
    assert_status(clv_device_quarantine(device, add_avoided, r.before), CLV_OK, runtime);
    r.bits = train(runtime, device);
    assert_status(clv_device_quarantine(device, add_avoided, r.avoided), CLV_OK, runtime);
    clv_runtime_destroy(runtime);
    r.begun = lines_of("begun");
    r.died = r.begun - lines_of("built");
    r.warnings = warnings;
    return r;
}

/** A training in an empty cache. */
static result run_afresh(training t) {
    static char *folder;
    if (!folder) folder = clv__test_folder();
    clv_runtime *runtime = clv__test_runtime(&(clv_runtime_config){.cache_dir = folder, .no_opencl = true});
    assert_status(clv_cache_clear(runtime, NULL, NULL), CLV_OK, runtime);
    clv_runtime_destroy(runtime);
    t.folder = folder;
    return run(&t);
}

static uint64_t right; // the bits of a training that nothing befell

// ---- at the k-th build ------------------------------------------------------------------------------------------------------

/** With a number in CLEAVE_TURN (.ci/run draws it by the commit) every second of these trainings: one half or the other. */
static bool has_its_turn(void) {
    static int asked;
    const char *turn = getenv("CLEAVE_TURN");
    return !turn || !*turn || (atoi(turn) + asked++) % 2 == 0;
}

static void at_every_build(const char *how, int largest, const char *helper) {
    char words[64];
    if (!has_its_turn()) return;
    result whole = run_afresh((training){.how = how, .largest = largest, .helper = helper});
    assert_int_equal(whole.bits, right);
    assert_int_equal(whole.died, 0);
    assert_true(largest ? whole.begun > 8 : whole.begun >= 1);
    for (int k = 1; k <= whole.begun; k++) {
        snprintf(words, sizeof words, "%s at=%d", how, k);
        result r = run_afresh((training){.how = words, .largest = largest, .helper = helper});
        if (r.bits != right) fail_msg("%s: other bits", words);
        if (r.died != 1) fail_msg("%s: %d builds ended badly", words, r.died);
        assert_string_equal(r.avoided, "");
    }
    print_message("%s: %d builds\n", how, whole.begun);
}

static void a_build_fails(void **state) {
    at_every_build("fail", 0, NULL);
    at_every_build("fail", 0, "");
    at_every_build("fail", 1, "");
}

static void a_build_ends_the_process(void **state) {
    at_every_build("exit", 0, NULL);
    at_every_build("abort", 0, NULL);
}

static void a_build_raises_a_signal(void **state) {
    at_every_build("segv", 1, NULL); // many builds, and the other with so many has the other turn
    at_every_build("segv", 0, NULL);
}

static void a_driver_gives_no_binaries(void **state) {
    at_every_build("segv binaries=0", 0, NULL);
    at_every_build("fail binaries=0", 0, NULL);
}

// ---- what is learned ----------------------------------------------------------------------------------------------------------

static void what_is_large_is_not_tried_again(void **state) {
    static const char *const all[] = {"segv large=3", "fail large=3", "exit large=1 binaries=0"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        training t = {.how = all[i], .folder = clv__test_folder()};
        result first = run(&t), again = run(&t);
        assert_int_equal(first.bits, right);
        assert_int_equal(again.bits, right);
        assert_true(first.died > 0);
        assert_int_equal(again.died, 0);
        assert_string_equal(again.avoided, "");
        free((char *)(uintptr_t)t.folder);
    }
}

static void what_never_builds_is_avoided(void **state) {
    static const char *const all[] = {"segv kernel=" DEADLY, "fail kernel=" DEADLY};
    for (size_t i = 0; i < 2; i++) {
        training t = {.how = all[i], .folder = clv__test_folder()};
        result first = run(&t), again = run(&t);
        assert_string_equal(first.before, "");
        assert_true(first.died > 0);
        assert_holds(first.avoided, DEADLY_OP " " DEADLY_VARIANT ": kernel source");
        assert_holds(first.avoided,
                     i == 0 ? "crashed in a helper process: signal 11" : "CL_BUILD_PROGRAM_FAILURE");
        assert_holds(again.before, DEADLY_OP " " DEADLY_VARIANT ": ");
        assert_int_equal(again.died, 0);
        assert_int_equal(again.bits, first.bits);
        free((char *)(uintptr_t)t.folder);
    }
}

/** A compiler that is trusted ends the process; the next one has a helper try what that one was at. */
static void a_trusted_compiler_kills_once(void **state) {
    extern char **environ;
    training t = {.how = "name=0", .folder = clv__test_folder()};
    char *const words[] = {self, (char[]){"train"}, (char *)(uintptr_t)t.folder, NULL};
    pid_t child;
    int how = 0;
    remove(counter);
    setenv("CLV_TEST_DIES", "name=0 segv large=1", 1);
    assert_int_equal(posix_spawn(&child, self, NULL, NULL, words, environ), 0);
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how));
    t.how = "name=0 segv large=1";
    result r = run(&t), again = run(&t);
    assert_int_equal(r.bits, right);
    assert_true(r.died > 0);
    assert_int_equal(again.bits, right);
    assert_int_equal(again.died, 0);
    free((char *)(uintptr_t)t.folder);
}

// ---- bad endings ----------------------------------------------------------------------------------------------------------------

static void helpers_may_be_bad(void **state) {
    static const struct {
        const char *helper, *how, *says;
    } all[] = {{"/no/such/program", "", "cannot be used (No such file or directory)"},
               {"/bin/false", "", "cannot be used (it does not open the device)"},
               {self, "hang", "cannot be used (it does not answer)"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        setenv("CLV_TEST_HELPER", all[i].how, 1);
        result r = run_afresh((training){.how = "fail", .helper = all[i].helper, .timeout = i == 2 ? 2 : 0});
        assert_int_equal(r.bits, right);
        assert_int_equal(r.warnings, 1);
        assert_holds(last_warning, all[i].says);
    }
    unsetenv("CLV_TEST_HELPER");
    assert_int_equal(run_afresh((training){.how = "fail", .no_cache = true}).bits, right);
    assert_int_equal(run_afresh((training){.how = "segv at=1", .no_cache = true}).bits, right);
}

static void a_compiler_hangs(void **state) {
    result r = run_afresh((training){.how = "hang at=1", .timeout = 8});
    assert_int_equal(r.bits, right);
    assert_int_equal(r.died, 1);
}

// ---- all of them ------------------------------------------------------------------------------------------------------------------

/** Train once, in a process that may not outlive it. */
static int train_once(const char *folder) {
    clv_device *device;
    clv_runtime *runtime = make(&(training){.folder = folder}, &device);
    if (runtime) train(runtime, device);
    clv_runtime_destroy(runtime);
    return runtime ? 0 : 77;
}

static void set_environment(void) {
    setenv("POCL_CACHE_DIR", driver_cache, 1); // before the driver is loaded
    setenv("CLV_TEST_DIES_FILE", counter, 1);
    setenv("CLV_TEST_DIES", "fail", 1);
    setenv("OPENCL_LAYERS", CLV_TEST_DIES_LAYER, 1);
}

int main(int argc, char **argv) {
    if (argc == 2 && !strcmp(argv[1], "compile-helper")) {
        const char *how = getenv("CLV_TEST_HELPER");
        while (how && !strcmp(how, "hang")) pause();
        return clv_compile_helper(STDIN_FILENO) != CLV_OK;
    }
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = 0;
    if (argc == 3 && !strcmp(argv[1], "train")) {
        counter = getenv("CLV_TEST_DIES_FILE");
        return train_once(argv[2]);
    }
    if (argc != 2) {
        fprintf(stderr, "usage: faults_compilers each|others\n");
        return 2;
    }
    driver_cache = clv__test_folder();
    counter = malloc(strlen(driver_cache) + 20);
    if (!counter) return 1;
    sprintf(counter, "%s/builds", driver_cache);
    set_environment();
    clv_device *device;
    clv_runtime *runtime = make(&(training){.folder = driver_cache}, &device);
    clv_runtime_destroy(runtime);
    if (!runtime) {
        printf("skipped: no OpenCL device of type CPU\n");
        return 77;
    }
    right = run_afresh((training){.how = "name=0", .helper = ""}).bits;
    const struct CMUnitTest each[] = {
        cmocka_unit_test(a_build_fails),
        cmocka_unit_test(a_build_raises_a_signal),
    };
    const struct CMUnitTest others[] = {
        cmocka_unit_test(a_build_ends_the_process),
        cmocka_unit_test(a_driver_gives_no_binaries),
        cmocka_unit_test(what_is_large_is_not_tried_again),
        cmocka_unit_test(what_never_builds_is_avoided),
        cmocka_unit_test(a_trusted_compiler_kills_once),
        cmocka_unit_test(helpers_may_be_bad),
        cmocka_unit_test(a_compiler_hangs),
    };
    int failed = 0;
    if (strcmp(argv[1], "others"))
        failed = cmocka_run_group_tests_name("compilers, each", each, NULL, NULL);
    else
        failed = cmocka_run_group_tests_name("compilers, others", others, NULL, NULL);
    free(driver_cache);
    free(counter);
    return failed;
}
