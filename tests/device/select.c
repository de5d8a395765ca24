// SPDX-License-Identifier: Apache-2.0
// Names, specs, CLEAVE_VISIBLE_DEVICES, CLEAVE_PARTITION and CLEAVE_EXECUTION, over a machine that is made up: a fake backend tells devices
// that no test machine has together.
#include "harness/harness.h"

#include "device/device.h"
#include "device/select.h"

// ---- A made-up machine ----------------------------------------------------------------------------------------------

typedef struct made_up {
    const char *label, *platform_name;
    clv_device_type type;
    int platform, device, parts; // parts: how many it can be split into
    const char *reason;
} made_up;

static const made_up machine[] = {
    {"Ravine X1", "Vendor A OpenCL", CLV_DEVICE_GPU, 0, 0, 0, ""},
    {"Ravine X1", "Vendor A OpenCL", CLV_DEVICE_GPU, 0, 1, 0, ""},
    {"Broken GPU", "Vendor B OpenCL", CLV_DEVICE_GPU, 2, 0, 0, "its driver has no compiler"},
    {"core-sky with GPU in its name", "Portable", CLV_DEVICE_CPU, 3, 0, 4, ""},
    {"llvmpipe (8 bits)", "rusty", CLV_DEVICE_CPU, 4, 0, 0, ""},
    {"Signal board", "Boards", CLV_DEVICE_ACCELERATOR, 5, 0, 0, ""},
    {"Vendor C", "Vendor C", CLV_DEVICE_OTHER, 6, -1, 0, "clGetDeviceIDs failed"},
};

static clv_status tell_model(const made_up *model, int number,
                             clv_status (*tell)(void *user, const clv__found *found), void *user) {
    char label[64]; // strings are copied: this one is gone after the call
    snprintf(label, sizeof label, "%s", model->label);
    clv__found found = {.info = {.label = label,
                                 .type = model->type,
                                 .max_work_group = 256,
                                 .platform = model->platform,
                                 .device = model->device,
                                 .platform_name = model->platform_name,
                                 .reason = model->reason,
                                 .usable = !*model->reason},
                        .handle = (void *)(uintptr_t)model};
    return tell(user, &found);
}

static clv_status enumerate(void *state, clv_status (*tell)(void *user, const clv__found *found), void *user,
                            clv__error *error) {
    for (size_t i = 0; i < sizeof machine / sizeof *machine; i++)
        CLV_TRY(tell_model(&machine[i], -1, tell, user));
    return CLV_OK;
}

static clv_status partition(void *state, void *handle, int parts,
                            clv_status (*tell)(void *user, const clv__found *found), void *user,
                            clv__error *error) {
    const made_up *model = handle;
    if (parts > model->parts) CLV_FAIL(error, CLV_E_UNSUPPORTED, "it has %d compute units", model->parts);
    for (int i = 0; i < parts; i++) CLV_TRY(tell_model(model, i, tell, user));
    return CLV_OK;
}

static void shutdown_nothing(void *state) {}

static const clv__backend fake = {
    .name = "fake", .shutdown = shutdown_nothing, .enumerate = enumerate, .partition = partition};

/** A runtime over the made-up machine, and host, and null devices if asked for. */
static clv_status make(const char *visible, const char *parts, bool nulls, clv_runtime **out) {
    clv_runtime *runtime = calloc(1, sizeof *runtime);
    assert_non_null(runtime);
    clv__error_init(&runtime->error);
    pthread_mutex_init(&runtime->report_lock, NULL);
    runtime->config.visible_devices = visible;
    runtime->config.partition = parts;
    runtime->config.left_out = runtime->config.cache_dir = runtime->config.execution = "";
    runtime->backends[0].backend = &fake;
    runtime->backends[1].backend = &clv__backend_host;
    runtime->backends[2].backend = &clv__backend_null;
    runtime->n_backends = nulls ? 3 : 2;
    *out = runtime;
    return clv__devices_list(runtime);
}

/** `gpu:0 gpu:1 ...` */
static const char *names_of(clv_runtime *runtime, char *text, size_t bytes) {
    size_t n = 0;
    text[0] = 0;
    for (int i = 0; i < clv_runtime_info_get(runtime).n_devices; i++) {
        const clv_device_info *info = clv_device_info_get(clv_device_get(runtime, i));
        assert_int_equal(info->index, i);
        n += (size_t)snprintf(text + n, bytes - n, "%s%s", i ? " " : "", info->name);
    }
    return text;
}

#define assert_names(runtime, want)                                                                          \
    do {                                                                                                     \
        char text_[512];                                                                                     \
        assert_string_equal(names_of(runtime, text_, sizeof text_), want);                                   \
    } while (0)

// ---- Names ----------------------------------------------------------------------------------------------------------

TEST(names_count_by_type) {
    clv_runtime *runtime;
    assert_status(make("", "", false, &runtime), CLV_OK, runtime);
    assert_names(runtime, "gpu:0 gpu:1 gpu:2 cpu:0 cpu:1 accelerator:0 other:0 host");
    assert_null(clv_device_get(runtime, -1));
    assert_null(clv_device_get(runtime, 8));
    assert_null(clv_device_get(NULL, 0));
    assert_int_equal(clv_runtime_info_get(NULL).n_devices, 0);
    const clv_device_info *broken = clv_device_info_get(clv_device_get(runtime, 2));
    assert_false(broken->usable);
    assert_string_equal(broken->reason, "its driver has no compiler");
    assert_string_equal(broken->label, "Broken GPU");
    assert_true(broken->vector_width >= 1 && broken->alignment_bytes >= 1); // a backend may leave them out
    clv_runtime_destroy(runtime);
    assert_status(make("", "", true, &runtime), CLV_OK, runtime);
    assert_names(runtime, "gpu:0 gpu:1 gpu:2 cpu:0 cpu:1 accelerator:0 other:0 host null:0 null:1");
    clv_runtime_destroy(runtime);
}

// ---- Specs ----------------------------------------------------------------------------------------------------------

TEST(specs_find_devices) {
    static const struct {
        const char *spec,
            *want; // want NULL: not found; "?": nor, but a driver failed; "!": there, but not usable
    } specs[] = {
        {"gpu:0", "gpu:0"},
        {"GPU:1", "gpu:1"},
        {" gpu:1 ", "gpu:1"},
        {"gpu", "gpu:0"},
        {"cpu", "cpu:0"},
        {"accelerator", "accelerator:0"},
        {"host", "host"},
        {"HOST", "host"},
        {NULL, "gpu:0"},
        {"", "gpu:0"},
        {"0:1", "gpu:1"},
        {"4:0", "cpu:1"},
        {"5:0", "accelerator:0"},
        {"0", "gpu:0"},
        {"5", "accelerator:0"},
        {"llvmpipe", "cpu:1"},
        {"LLVM", "cpu:1"},
        {"ravine", "gpu:0"},
        {"rusty", "cpu:1"}, // a platform's name
        {"portable", "cpu:0"},
        {"gpu:7|llvmpipe", "cpu:1"},
        {"gpu:2|cpu:1", "cpu:1"}, // the first is not usable
        {"nothing|gpu:2", "!"},
        {"accelerator:3|nothing|host", "host"},
        {"gpu:2", "!"},
        {"broken", "!"},
        {"other", "!"},
        {"2:0", "!"},
        {"gpu:3", "?"},
        {"gpu:", NULL},
        {"gpu:-1", NULL},
        {"gpu:00", "?"},
        {"tpu", NULL},
        {"7:0", NULL},
        {"0:9", NULL},
        {"9", NULL},
        {"-1", NULL},
        {"99999999999999999999", NULL},
        {"null", NULL},
        {"null:0", NULL},
        {"|", NULL},
        {"||", NULL},
        {" ", NULL},
        {":", NULL},
        {"0:", NULL},
        {":0", NULL},
        {"gpu:0,cpu:0", NULL},
    };
    clv_runtime *runtime;
    assert_status(make("", "", false, &runtime), CLV_OK, runtime);
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        clv_device *device = clv_device_get(runtime, 0);
        clv_status status = clv_device_find(runtime, specs[i].spec, &device);
        clv_status want = !specs[i].want            ? CLV_E_NOT_FOUND
                          : specs[i].want[0] == '?' ? CLV_E_DEVICE
                          : specs[i].want[0] == '!' ? CLV_E_UNSUPPORTED
                                                    : CLV_OK;
        if (status != want) print_error("spec '%s'\n", specs[i].spec ? specs[i].spec : "(null)");
        assert_status(status, want, runtime);
        if (want == CLV_OK) {
            assert_string_equal(clv_device_info_get(device)->name, specs[i].want);
        } else {
            assert_null(device);
            assert_true(*clv_runtime_error(runtime));
        }
        if (want == CLV_E_NOT_FOUND || want == CLV_E_DEVICE)
            assert_holds(clv_runtime_error(runtime), "accelerator:0 (Signal board)");
    }
    clv_device *device;
    assert_status(clv_device_find(runtime, "gpu:2", &device), CLV_E_UNSUPPORTED, runtime);
    assert_holds(clv_runtime_error(runtime), "its driver has no compiler");
    clv_runtime_destroy(runtime);
}

TEST(null_devices_are_only_found_by_name) {
    clv_runtime *runtime;
    clv_device *device;
    assert_status(make("host", "", true, &runtime), CLV_OK, runtime); // no other device is visible
    assert_names(runtime, "host null:0 null:1");
    device = clv__test_device(runtime, NULL);
    assert_string_equal(clv_device_info_get(device)->name, "host");
    assert_status(clv_device_find(runtime, "gpu", &device), CLV_E_NOT_FOUND, runtime);
    device = clv__test_device(runtime, "null:1");
    assert_int_equal(clv_device_info_get(device)->type, CLV_DEVICE_CPU);
    device = clv__test_device(runtime, "null");
    assert_int_equal(clv_device_info_get(device)->type, CLV_DEVICE_GPU);
    clv_runtime_destroy(runtime);
}

/** Any text at all gives a device or a sentence. */
TEST(any_text_is_answered) {
    clv_runtime *runtime;
    assert_status(make("", "", true, &runtime), CLV_OK, runtime);
    uint64_t seed = clv__test_seed();
    static const char letters[] = "gpucahost:|,=0129 \t\nRX\xff%s";
    for (int round = 0; round < 20000; round++) {
        char spec[40];
        size_t n = (size_t)(seed >> 33) % (sizeof spec - 1);
        for (size_t i = 0; i < n; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            spec[i] = letters[(seed >> 33) % (sizeof letters - 1)];
        }
        spec[n] = 0;
        clv_device *device;
        clv_status status = clv_device_find(runtime, spec, &device);
        assert_true(status == CLV_OK ? device != NULL : device == NULL && *clv_runtime_error(runtime));
        seed = seed * 6364136223846793005u + 1442695040888963407u;
    }
    char *huge = malloc(100001);
    assert_non_null(huge);
    memset(huge, 'x', 100000);
    huge[100000] = 0;
    clv_device *device;
    assert_status(clv_device_find(runtime, huge, &device), CLV_E_NOT_FOUND, runtime);
    free(huge);
    clv_runtime_destroy(runtime);
}

// ---- Visible devices ------------------------------------------------------------------------------------------------

TEST(visible_devices_are_renumbered) {
    static const struct {
        const char *visible, *names, *second; // second: label of the device with index 1
    } settings[] = {
        {"0,4", "gpu:0 cpu:0 host", "llvmpipe (8 bits)"},
        {"4,0", "cpu:0 gpu:0 host", "Ravine X1"},
        {"1", "gpu:0 host", NULL},
        {" cpu:1 , gpu:1 ", "cpu:0 gpu:0 host", "Ravine X1"},
        {"llvmpipe,llvmpipe,4,cpu:1", "cpu:0 host", NULL}, // one device, named four times
        {"nothing|cpu:0,5:0", "cpu:0 accelerator:0 host", "Signal board"},
        {"host", "host", NULL},
        {"7", "host", NULL}, // host's index
        {"host,0", "gpu:0 host", NULL},
        {"2", "gpu:0 host", NULL}, // not usable, but it may be looked at
    };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        clv_runtime *runtime;
        assert_status(make(settings[i].visible, "", false, &runtime), CLV_OK, runtime);
        assert_names(runtime, settings[i].names);
        if (settings[i].second)
            assert_string_equal(clv_device_info_get(clv_device_get(runtime, 1))->label, settings[i].second);
        clv_runtime_destroy(runtime);
    }
}

TEST(bad_visible_devices_speak) {
    static const struct {
        const char *visible;
        clv_status want;
        const char *part;
    } settings[] = {
        {"9", CLV_E_NOT_FOUND, "'9'"},         {"0,gpu:5", CLV_E_DEVICE, "'gpu:5'"},
        {"-1", CLV_E_NOT_FOUND, "'-1'"},       {",", CLV_E_VALUE, "empty item"},
        {"0,", CLV_E_VALUE, "empty item"},     {",0", CLV_E_VALUE, "empty item"},
        {" ", CLV_E_VALUE, "empty item"},      {"0;1", CLV_E_NOT_FOUND, "'0;1'"},
        {"null:0", CLV_E_NOT_FOUND, "null:0"}, {"gpu:3", CLV_E_DEVICE, "gpu:0 (Ravine X1), gpu:1"},
    };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        clv_runtime *runtime;
        assert_status(make(settings[i].visible, "", false, &runtime), settings[i].want, runtime);
        assert_holds(clv_runtime_error(runtime), settings[i].part);
        assert_int_equal(clv_runtime_info_get(runtime).n_devices, 0);
        clv_runtime_destroy(runtime);
    }
}

// ---- Partition ------------------------------------------------------------------------------------------------------

TEST(parts_replace_their_device) {
    clv_runtime *runtime;
    assert_status(make("", "cpu:0=2", false, &runtime), CLV_OK, runtime);
    assert_names(runtime, "gpu:0 gpu:1 gpu:2 cpu:0 cpu:1 cpu:2 accelerator:0 other:0 host");
    const clv_device_info *part = clv_device_info_get(clv_device_get(runtime, 4));
    assert_int_equal(part->platform, 3);
    assert_int_equal(part->device, 0);
    clv_device *device = clv__test_device(runtime, "cpu:2");
    assert_string_equal(clv_device_info_get(device)->label, "llvmpipe (8 bits)");
    clv_runtime_destroy(runtime);
    // Parts come first, then what is visible of them.
    assert_status(make("4,3", "portable=4", false, &runtime), CLV_OK, runtime);
    assert_names(runtime, "cpu:0 cpu:1 host");
    clv_runtime_destroy(runtime);
}

TEST(bad_partitions_speak) {
    static const struct {
        const char *partition;
        clv_status want;
        const char *part;
    } settings[] = {
        {"cpu:0", CLV_E_VALUE, "cpu:0=2"},
        {"cpu:0=", CLV_E_VALUE, "DEVICE=PARTS"},
        {"cpu:0=0", CLV_E_VALUE, "DEVICE=PARTS"},
        {"cpu:0=-2", CLV_E_VALUE, "DEVICE=PARTS"},
        {"cpu:0=two", CLV_E_VALUE, "DEVICE=PARTS"},
        {"cpu:0=99999999999", CLV_E_VALUE, "DEVICE=PARTS"},
        {"cpu:0=2,", CLV_E_VALUE, "DEVICE=PARTS"},
        {"=2", CLV_E_NOT_FOUND, "there is no device"},
        {"cpu:9=2", CLV_E_DEVICE, "'cpu:9'"},
        {"host=2", CLV_E_UNSUPPORTED, "'host' cannot be partitioned"},
        {"cpu:0=5", CLV_E_UNSUPPORTED, "it has 4 compute units"},
        {"gpu:0=2", CLV_E_UNSUPPORTED, "gpu:0 (Ravine X1) cannot be split into 2 parts"},
        {"gpu:2=2", CLV_E_UNSUPPORTED, "no compiler"},
        {"cpu:0=2,gpu:0=2", CLV_E_UNSUPPORTED, "gpu:0"},
    };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        clv_runtime *runtime;
        assert_status(make("", settings[i].partition, false, &runtime), settings[i].want, runtime);
        assert_holds(clv_runtime_error(runtime), settings[i].part);
        assert_int_equal(clv_runtime_info_get(runtime).n_devices, 0);
        clv_runtime_destroy(runtime);
    }
}

// ---- Lanes and threads ----------------------------------------------------------------------------------------------

TEST(traits_make_the_class) {
    static const struct {
        clv_device_type type;
        uint32_t groups, multiple;
        bool sub_groups;
        int quirk;
        clv_execution want;
    } cases[] = {
        {CLV_DEVICE_GPU, 256, 64, true, CLV__BY_TRAITS, CLV_EXECUTION_LANES},
        {CLV_DEVICE_GPU, 1024, 0, false, CLV__BY_TRAITS, CLV_EXECUTION_LANES},
        {CLV_DEVICE_GPU, 12, 0, false, CLV__BY_TRAITS, CLV_EXECUTION_THREADS}, // no lanes to fill
        {CLV_DEVICE_GPU, 256, 1, false, CLV__BY_TRAITS, CLV_EXECUTION_LANES},
        {CLV_DEVICE_GPU, 256, 64, true, CLV__AS_THREADS, CLV_EXECUTION_THREADS},
        {CLV_DEVICE_CPU, 4096, 8, false, CLV__BY_TRAITS, CLV_EXECUTION_THREADS},
        {CLV_DEVICE_CPU, 8192, 128, true, CLV__BY_TRAITS, CLV_EXECUTION_THREADS},
        {CLV_DEVICE_CPU, 1, 1, false, CLV__AS_LANES, CLV_EXECUTION_LANES},
        {CLV_DEVICE_ACCELERATOR, 1024, 0, false, CLV__BY_TRAITS, CLV_EXECUTION_THREADS}, // a DSP
        {CLV_DEVICE_ACCELERATOR, 1024, 32, false, CLV__BY_TRAITS, CLV_EXECUTION_LANES},
        {CLV_DEVICE_ACCELERATOR, 1024, 0, true, CLV__BY_TRAITS, CLV_EXECUTION_LANES},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const clv_device_info info = {.type = cases[i].type,
                                      .max_work_group = cases[i].groups,
                                      .preferred_multiple = cases[i].multiple,
                                      .sub_groups = cases[i].sub_groups};
        clv__traits traits = {0};
        if (cases[i].quirk == CLV__AS_LANES) traits.execution = CLV__AS_LANES;
        if (cases[i].quirk == CLV__AS_THREADS) traits.execution = CLV__AS_THREADS;
        if (clv__execution_of(&info, &traits) != cases[i].want) fail_msg("case %zu", i);
    }
}

static clv_status make_executed(const char *execution, clv_runtime **out) {
    clv_runtime *runtime;
    assert_status(make("", "", true, &runtime), CLV_OK, runtime);
    clv__devices_forget(runtime);
    runtime->config.execution = execution;
    *out = runtime;
    return clv__devices_list(runtime);
}

TEST(a_setting_overrules_the_class) {
    clv_runtime *runtime;
    clv_device *cpu, *gpu, *null;
    assert_status(make_executed("cpu:0=lanes, gpu:1=THREADS,null:0=threads,cpu:1=threads", &runtime), CLV_OK,
                  runtime);
    cpu = clv__test_device(runtime, "cpu:0");
    assert_int_equal(clv_device_info_get(cpu)->execution, CLV_EXECUTION_LANES);
    assert_string_equal(clv_device_info_get(cpu)->label, "core-sky with GPU in its name as lanes");
    cpu = clv__test_device(runtime, "cpu:1"); // as it is: its name stays
    assert_string_equal(clv_device_info_get(cpu)->label, "llvmpipe (8 bits)");
    gpu = clv__test_device(runtime, "gpu:1");
    assert_int_equal(clv_device_info_get(gpu)->execution, CLV_EXECUTION_THREADS);
    gpu = clv__test_device(runtime, "gpu:0");
    assert_int_equal(clv_device_info_get(gpu)->execution, CLV_EXECUTION_LANES);
    null = clv__test_device(runtime, "null:0");
    assert_int_equal(clv_device_info_get(null)->execution, CLV_EXECUTION_THREADS);
    clv_runtime_destroy(runtime);
    static const struct {
        const char *execution;
        clv_status want;
        const char *part;
    } bad[] = {{"cpu:0", CLV_E_VALUE, "cpu:0=lanes"},
               {"cpu:0=gpu", CLV_E_VALUE, "DEVICE=threads"},
               {"cpu:0=", CLV_E_VALUE, "DEVICE=lanes"},
               {"cpu:9=lanes", CLV_E_DEVICE, "execution: there is no device 'cpu:9'"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_status(make_executed(bad[i].execution, &runtime), bad[i].want, runtime);
        assert_holds(clv_runtime_error(runtime), bad[i].part);
        assert_int_equal(clv_runtime_info_get(runtime).n_devices, 0);
        clv_runtime_destroy(runtime);
    }
}

// ---- The real machine -----------------------------------------------------------------------------------------------

TEST(host_is_always_there) {
    clv_runtime_config config = {.no_opencl = true, .visible_devices = "", .partition = ""};
    clv_runtime *runtime = clv__test_runtime(&config);
    assert_names(runtime, "host");
    assert_true(clv_device_info_get(clv_device_get(runtime, 0))->memory_bytes > 0);
    clv_runtime_destroy(runtime);
    clv_runtime_destroy(NULL);
    config = (clv_runtime_config){.visible_devices = "host"};
    runtime = clv__test_runtime(&config);
    assert_names(runtime, "host");
    clv_runtime_destroy(runtime);
    assert_string_equal(clv_runtime_error(NULL), "");
}

static void count_platform(void *user, int platform, const char *name) {
    int *next = user;
    assert_int_equal(platform, *next);
    assert_non_null(name);
    ++*next;
}

TEST(platforms_can_be_left_out) {
#ifndef CLEAVE_OPENCL
    skip();
#endif
    int platforms = 0;
    clv_runtime_config config = {.before_platform = count_platform, .before_platform_user = &platforms};
    clv_runtime *runtime = clv__test_runtime(&config);
    clv_runtime_destroy(runtime);
    config = (clv_runtime_config){.left_out = "*=the driver died of signal 6"};
    runtime = clv__test_runtime(&config);
    assert_names(runtime, "other:0 host");
    assert_string_equal(clv_device_info_get(clv_device_get(runtime, 0))->reason,
                        "the driver died of signal 6");
    clv_runtime_destroy(runtime);
    if (platforms > 0) {
        config.left_out = "0=first line\n77=a platform that is not there";
        runtime = clv__test_runtime(&config);
        clv_device *device;
        assert_status(clv_device_find(runtime, "other:0", &device), CLV_E_UNSUPPORTED, runtime);
        assert_holds(clv_runtime_error(runtime), "first line");
        clv_runtime_destroy(runtime);
    }
    static const char *const malformed[] = {"x", "=why", "0", "1 =why", "0=a\n\nb"};
    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++) {
        config.left_out = malformed[i];
        assert_status(clv_runtime_create(&config, &runtime), CLV_E_VALUE, runtime);
        assert_holds(clv_runtime_error(runtime), "PLATFORM=reason");
        clv_runtime_destroy(runtime);
    }
    for (int products = -1; products <= 3; products += 4) {
        config = (clv_runtime_config){.float32_products = (clv_float32_products)products};
        assert_status(clv_runtime_create(&config, &runtime), CLV_E_VALUE, runtime);
        assert_holds(clv_runtime_error(runtime), "clv_float32_products");
        clv_runtime_destroy(runtime);
    }
}

TEST_MAIN(NULL, NULL)
