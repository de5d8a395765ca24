// SPDX-License-Identifier: Apache-2.0
// Gathering kernels into programs, building and finding them, and the cache on disk with every fault it must survive.
// The kernel sources are this test's own: it defines the table that the library otherwise brings along.
#include "harness/harness.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device/cache.h"
#include "device/device.h"
#include "device/kernel_sources.h"
#include "device/program.h"

static const char shared_text[] =
    "#define SHARED 1000\nint shared_twice(int x);\nint shared_twice(int x) { return 2 * x; }\n";
static const char number_text[] =
    "  #  define NUMBER 5\n"
    "#define PLUS(a) ((a) + SHARED)\n"
    "int KERNEL(helper)(int x);\n"
    "int KERNEL(helper)(int x) { return PLUS(x) + NUMBER; }\n"
    "__kernel void KERNEL(number)(__global int *restrict y) {\n"
    "    y[get_global_id(0)] = KERNEL(helper)(shared_twice((int)get_global_id(0)));\n"
    "}\n";
static const char other_text[] =
    "__kernel void KERNEL(other)(__global int *restrict y) { y[get_global_id(0)] = -1; }\n";
static const char broken_text[] =
    "__kernel void KERNEL(broken)(__global int *restrict y) { y[0] = no_such_word; }\n";
// A function that is not the instance's own: compilers take one instance in a program, and no second.
static const char crowd_text[] =
    "int crowd_one(void);\nint crowd_one(void) { return 1; }\n"
    "__kernel void KERNEL(crowd)(__global int *restrict y) { y[get_global_id(0)] = NUMBER + crowd_one(); }\n";
// Kernels in every form that can stand in a file, and one that no compiler takes.
static const char several_text[] =
    "#define MAKE(name, number) \\\n"
    "kernel void KERNEL(name)(__global int *restrict y) { y[get_global_id(0)] = (number); \\\n"
    "}\n"
    "MAKE(made, 20)\n"
    "__kernel void KERNEL(inside)(__global int *restrict y) {\n"
    "#if NUMBER > 3\n"
    "    y[get_global_id(0)] = 1;\n"
    "#else\n"
    "    y[get_global_id(0)] = 2;\n"
    "#endif\n"
    "}\n"
    "#if NUMBER > 3\n"
    "kernel __attribute__((reqd_work_group_size(1, 1, 1))) void\n"
    "KERNEL(twice)(__global int *restrict y) {\n"
    "    y[get_global_id(0)] = 3;\n"
    "}\n"
    "#else\n"
    "kernel void KERNEL(twice)(__global int *restrict y) {\n"
    "    y[get_global_id(0)] = 4;\n"
    "}\n"
    "#endif\n"
    "__kernel void KERNEL(broken_too)(__global int *restrict y) {\n"
    "    y[0] = no_such_word;\n"
    "}\n"
    "#if NUMBER > 3\n"
    "__kernel void KERNEL(halves)(__global int *restrict y) {\n"
    "#else\n"
    "__kernel void KERNEL(halves)(__global int *restrict y) {\n"
    "#endif\n"
    "    y[get_global_id(0)] = 5;\n"
    "}\n";

const clv__kernel_source clv__kernel_sources[] = {
    {"shared", shared_text, sizeof shared_text - 1, 1},
    {"number", number_text, sizeof number_text - 1, 0},
    {"other", other_text, sizeof other_text - 1, 0},
    {"broken", broken_text, sizeof broken_text - 1, 0},
    {"several", several_text, sizeof several_text - 1, 0},
    {"crowd", crowd_text, sizeof crowd_text - 1, 0},
    {0, 0, 0, 0},
};

static clv__launch launch_of(const char *source, const char *entry, int number) {
    clv__launch launch = {.kind = CLV__LAUNCH_KERNEL, .source = source, .entry = entry};
    if (number) snprintf(launch.defines, sizeof launch.defines, "NUMBER %d\n", number);
    return launch;
}

typedef struct listener {
    int warnings, notes, built, total;
    size_t longest;
    char last[1024];
} listener;

static void hear(void *user, clv_log_level level, const char *sentence) {
    listener *to = user;
    to->notes++;
    if (strlen(sentence) > to->longest) to->longest = strlen(sentence);
    if (level != CLV_LOG_WARNING) return;
    to->warnings++;
    snprintf(to->last, sizeof to->last, "%s", sentence);
}

static void hear_progress(void *user, int done, int total) {
    listener *to = user;
    to->built = done;
    to->total = total;
}

/** A runtime whose cache is the folder, and its first usable OpenCL device, which does not keep programs itself. */
static clv_runtime *make(const char *folder, listener *heard, clv_device **device) {
    clv_runtime_config config = {.cache_dir = folder,
                                 .log = hear,
                                 .log_user = heard,
                                 .build_progress = hear_progress,
                                 .build_progress_user = heard};
    clv_runtime *runtime = clv__test_runtime(&config);
    *device = NULL;
    for (int i = -1; (*device = clv__test_next_device(runtime, &i));) {
        if (strcmp(clv_device_info_get(*device)->backend, "opencl") == 0) break;
    }
    if (!*device) {
        clv_runtime_destroy(runtime);
        print_message("skipped: no usable OpenCL device\n");
        skip();
    }
    (*device)->traits.caches_programs = false;
    (*device)->traits.compiler = CLV__COMPILER_MAY_DIE; // what is found out about it is kept
    return runtime;
}

/** Run a built launch over four work-items and compare with first + step * i. */
static void assert_runs(clv_device *device, const clv__launch *launch, int first, int step) {
    clv_runtime *runtime = device->runtime;
    const clv__backend *backend = device->backend;
    clv__error *error = clv__runtime_error_of(runtime);
    clv__kernel_ref ref;
    assert_status(clv__programs_find(device, launch, &ref), CLV_OK, runtime);
    clv__memory memory;
    assert_status(clv__memory_create(device, 16, CLV_IO, "test", &memory), CLV_OK, runtime);
    const clv__barg arg = {.kind = CLV__BARG_BUFFER, .buffer = memory.buffer};
    const clv__grid grid = {.dims = 1, .global = {4}, .local = {1}};
    clv__bkernel *kernel = NULL;
    clv__bevent *event = NULL;
    int out[4] = {0};
    assert_status(backend->kernel_create(ref.program, ref.name, &arg, 1, &grid, error, &kernel), CLV_OK,
                  runtime);
    assert_status(backend->launch(device->open, kernel, NULL, error), CLV_OK, runtime);
    assert_status(
        backend->read(device->open, CLV__QUEUE_COMPUTE, memory.buffer, 0, 16, out, NULL, &event, error),
        CLV_OK, runtime);
    assert_status(backend->event_wait(event, error), CLV_OK, runtime);
    for (int i = 0; i < 4; i++) assert_int_equal(out[i], first + step * i);
    backend->event_destroy(event);
    backend->kernel_destroy(kernel);
    clv__memory_destroy(&memory);
}

static void build(clv_device *device, const clv__launch *launches, size_t n) {
    const clv__launch *list[8];
    for (size_t i = 0; i < n; i++) list[i] = &launches[i];
    assert_status(clv__programs_build(device, list, n), CLV_OK, device->runtime);
}

// ---- Sources ----------------------------------------------------------------------------------------------------------

TEST(sources_hold_instances_once) {
    clv__launch a = launch_of("number", "number", 0), b = launch_of("number", "number", 7);
    clv__launch again = b, copy = {.kind = CLV__LAUNCH_COPY};
    const clv__launch *list[] = {&a, &copy, &b, &again};
    char *source = clv__programs_source(NULL, list, 4);
    assert_non_null(source);
    int instances = 0;
    for (const char *at = source; (at = strstr(at, "#line 1 \"number.cl\"")); at++) instances++;
    assert_int_equal(instances, 2);
    assert_int_equal(strncmp(source, "#line 1 \"common/shared.cl\"\n#define SHARED", 40), 0);
    assert_holds(source, "#define NUMBER 7\n#line 1");
    assert_holds(source, "#undef PLUS\n");
    assert_holds(source, "#undef NUMBER\n"); // its default is written with blanks, and is found all the same
    assert_null(strstr(source, "#undef SHARED"));
    free(source);
    clv__launch missing = launch_of("missing", "missing", 0);
    const clv__launch *bad[] = {&missing};
    assert_null(clv__programs_source(NULL, bad, 1));
}

static int count(const char *text, const char *part) {
    int n = 0;
    for (const char *at = text; (at = strstr(at, part)); at++) n++;
    return n;
}

TEST(sources_leave_out_what_nobody_asks_for) {
    static const char *const entries[] = {"made", "inside", "twice", "halves", "broken_too"};
    clv__launch all[5];
    const clv__launch *list[5];
    for (int i = 0; i < 5; i++) {
        all[i] = launch_of("several", entries[i], 0);
        list[i] = &all[i];
    }
    char *whole = clv__programs_source(NULL, list, 5);
    assert_non_null(whole);
    assert_non_null(strstr(whole, several_text)); // to the letter
    // How often the file writes each, and whether it is there unasked.
    static const struct {
        const char *text;
        int times, always;
    } kernels[] = {{"MAKE(made", 1, 1},
                   {"KERNEL(inside)", 1, 0},
                   {"KERNEL(twice)", 2, 0},
                   {"KERNEL(halves)", 2, 1},
                   {"KERNEL(broken_too)", 1, 0}};
    for (int i = 0; i < 5; i++) {
        char *source = clv__programs_source(NULL, &list[i], 1);
        assert_non_null(source);
        for (int k = 0; k < 5; k++)
            assert_int_equal(count(source, kernels[k].text),
                             k == i || kernels[k].always ? kernels[k].times : 0);
        assert_int_equal(count(source, "\n"), count(whole, "\n"));
        free(source);
    }
    free(whole);
}

TEST(what_nobody_asks_for_is_not_compiled) {
    char *folder = clv__test_folder();
    listener heard = {0};
    clv_device *device;
    clv_runtime *runtime = make(folder, &heard, &device);
    clv__launch launches[] = {launch_of("several", "inside", 0), launch_of("several", "twice", 7),
                              launch_of("several", "inside", 7), launch_of("several", "halves", 7)};
    build(device, launches, 4); // though the file has a kernel that does not compile
    assert_runs(device, &launches[0], 2, 0);
    assert_runs(device, &launches[1], 3, 0);
    assert_runs(device, &launches[2], 1, 0);
    assert_runs(device, &launches[3], 5, 0);
    int programs = clv_runtime_info_get(runtime).programs.programs;
    clv__launch made = launch_of("several", "made", 0), twice = launch_of("several", "twice", 0);
    build(device, &made, 1); // a macro made it with the others
    assert_int_equal(clv_runtime_info_get(runtime).programs.programs, programs);
    assert_runs(device, &made, 20, 0);
    clv__kernel_ref ref;
    assert_status(clv__programs_find(device, &twice, &ref), CLV_E_STATE, runtime);
    build(device, &twice, 1); // a later plan wants more of the same instance
    assert_int_equal(clv_runtime_info_get(runtime).programs.programs, programs + 1);
    assert_runs(device, &twice, 4, 0);
    assert_runs(device, &launches[0], 2, 0);
    // What the compiler says of the one that is broken names the line that the file has it on.
    clv__launch broken = launch_of("several", "broken_too", 0);
    const clv__launch *bad[] = {&broken};
    assert_status(clv__programs_build(device, bad, 1), CLV_E_BUILD, runtime);
    const char *word = strstr(several_text, "no_such_word");
    int line = 1;
    for (const char *c = several_text; c < word; c++) line += *c == '\n';
    char where[32];
    snprintf(where, sizeof where, "several.cl:%d:", line);
    assert_holds(clv_runtime_error(runtime), where);
    clv_runtime_destroy(runtime);
    free(folder);
}

TEST(instances_do_not_meet) {
    char *folder = clv__test_folder();
    listener heard = {0};
    clv_device *device;
    clv_runtime *runtime = make(folder, &heard, &device);
    clv__launch launches[] = {launch_of("number", "number", 0),
                              launch_of("number", "number", 7),
                              launch_of("other", "other", 0),
                              launch_of("number", "number", 9),
                              {.kind = CLV__LAUNCH_FILL}};
    build(device, launches, 5);
    assert_runs(device, &launches[0], 1005, 2);
    assert_runs(device, &launches[1], 1007, 2);
    assert_runs(device, &launches[2], -1, 0);
    assert_runs(device, &launches[3], 1009, 2);
    clv_program_report report = clv_runtime_info_get(runtime).programs;
    assert_true(report.programs >= 1 && report.programs <= 4);
    assert_int_equal(heard.total, report.programs);
    assert_int_equal(heard.built, heard.total);
    assert_true(report.seconds > 0);
    build(device, launches, 5); // everything is there
    assert_int_equal(clv_runtime_info_get(runtime).programs.programs, report.programs);
    clv__launch more = launch_of("number", "number", 11);
    build(device, &more, 1); // and what was there stays
    assert_int_equal(clv_runtime_info_get(runtime).programs.programs, report.programs + 1);
    assert_runs(device, &more, 1011, 2);
    assert_runs(device, &launches[0], 1005, 2);
    clv__kernel_ref ref;
    clv__launch unbuilt = launch_of("number", "number", 12);
    assert_status(clv__programs_find(device, &unbuilt, &ref), CLV_E_STATE, runtime);
    assert_holds(clv_runtime_error(runtime), "'number' of number.cl was not built");
    clv__launch missing = launch_of("missing", "missing", 0);
    const clv__launch *bad[] = {&missing};
    assert_status(clv__programs_build(device, bad, 1), CLV_E_INTERNAL, runtime);
    clv_runtime_destroy(runtime);
    free(folder);
}

TEST(one_bad_kernel_leaves_the_rest) {
    char *folder = clv__test_folder();
    listener heard = {0};
    clv_device *device;
    clv_runtime *runtime = make(folder, &heard, &device);
    clv__launch launches[] = {launch_of("number", "number", 0), launch_of("broken", "broken", 3),
                              launch_of("other", "other", 0)};
    const clv__launch *list[] = {&launches[0], &launches[1], &launches[2]};
    assert_status(clv__programs_build(device, list, 3), CLV_E_BUILD, runtime);
    assert_holds(clv_runtime_error(runtime), "broken.cl (NUMBER 3;)");
    assert_holds(clv_runtime_error(runtime), "no_such_word");
    assert_runs(device, &launches[0], 1005, 2);
    assert_runs(device, &launches[2], -1, 0);
    clv__kernel_ref ref;
    assert_status(clv__programs_find(device, &launches[1], &ref), CLV_E_STATE, runtime);
    clv_runtime_destroy(runtime);
    free(folder);
}

/** A compiler that takes no large programs gets small ones, and is not asked for large ones again. */
TEST(what_is_too_large_is_built_in_parts) {
    char *folder = clv__test_folder();
    for (int round = 0; round < 2; round++) {
        listener heard = {0};
        clv_device *device;
        clv_runtime *runtime = make(folder, &heard, &device);
        clv__launch launches[7];
        for (int i = 0; i < 7; i++) launches[i] = launch_of("crowd", "crowd", 10 * i + 10 + round);
        build(device, launches, 7);
        for (int i = 0; i < 7; i++) assert_runs(device, &launches[i], 10 * i + 11 + round, 0);
        assert_int_equal(heard.warnings, round == 0);
        if (round == 0) assert_holds(heard.last, "they have at most 1 kernel");
        clv_program_report report = clv_runtime_info_get(runtime).programs;
        if (round == 0) assert_true(report.programs < 7);
        if (round == 1) assert_int_equal(report.programs, 7); // and other programs than before
        clv_runtime_destroy(runtime);
    }
    free(folder);
}

/** The kernels of one instance are parts too, and what does not build alone is not asked for again. */
TEST(kernels_of_one_instance_are_parts) {
    char *folder = clv__test_folder();
    listener heard = {0};
    clv_device *device;
    clv_runtime *runtime = make(folder, &heard, &device);
    clv__launch launches[] = {launch_of("several", "inside", 7), launch_of("several", "broken_too", 7),
                              launch_of("several", "twice", 7)};
    const clv__launch *list[] = {&launches[0], &launches[1], &launches[2]};
    assert_status(clv__programs_build(device, list, 3), CLV_E_BUILD, runtime);
    assert_runs(device, &launches[0], 1, 0);
    assert_runs(device, &launches[2], 3, 0);
    int programs = clv_runtime_info_get(runtime).programs.programs;
    assert_status(clv__programs_build(device, list, 3), CLV_E_BUILD, runtime);
    assert_holds(clv_runtime_error(runtime), "no_such_word");
    assert_int_equal(clv_runtime_info_get(runtime).programs.programs, programs);
    assert_int_equal(heard.warnings, 0); // it is not their size
    clv_runtime_destroy(runtime);
    free(folder);
}

// ---- The cache --------------------------------------------------------------------------------------------------------

/** Build the one launch in a fresh runtime; tells hits and warnings. */
static void build_afresh(const char *folder, bool want_hit, int want_warnings, const char *warning) {
    listener heard = {0};
    clv_device *device;
    clv_runtime *runtime = make(folder, &heard, &device);
    clv__launch launch = launch_of("number", "number", 7);
    build(device, &launch, 1);
    assert_runs(device, &launch, 1007, 2);
    clv_program_report report = clv_runtime_info_get(runtime).programs;
    assert_int_equal(report.programs, 1);
    assert_int_equal(report.cache_hits, want_hit ? 1 : 0);
    assert_int_equal(report.cache_misses, want_hit ? 0 : 1);
    assert_int_equal(heard.warnings, want_warnings);
    if (warning) assert_holds(heard.last, warning);
    clv_runtime_destroy(runtime);
}

static void count_entry(void *user, const clv_cache_entry *entry) {
    int *counts = user;
    counts[entry->valid ? 0 : 1]++;
    assert_true(strlen(entry->file) == 37);
    assert_true(entry->modified > 1000000000);
    assert_int_equal(*entry->made_for != 0, entry->valid);
}

static void assert_listed(const char *folder, int valid, int invalid) {
    clv_runtime_config config = {.cache_dir = folder, .no_opencl = true};
    clv_runtime *runtime = clv__test_runtime(&config);
    assert_string_equal(clv_runtime_info_get(runtime).cache_folder, folder);
    int counts[2] = {0};
    assert_status(clv_cache_list(runtime, count_entry, counts), CLV_OK, runtime);
    assert_int_equal(counts[0], valid);
    assert_int_equal(counts[1], invalid);
    clv_runtime_destroy(runtime);
}

static int clear(const char *folder) {
    clv_runtime_config config = {.cache_dir = folder, .no_opencl = true};
    clv_runtime *runtime = clv__test_runtime(&config);
    int files = -1;
    uint64_t bytes = 1;
    assert_status(clv_cache_clear(runtime, &files, &bytes), CLV_OK, runtime);
    assert_int_equal(bytes > 0, files > 0);
    assert_status(clv_cache_clear(runtime, NULL, NULL), CLV_OK, runtime);
    clv_runtime_destroy(runtime);
    return files;
}

/** The path of the one program in the folder. */
static char *only_file(const char *folder) {
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    char *path = NULL;
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (!strstr(entry->d_name, ".prog")) continue;
        assert_null(path);
        path = malloc(strlen(folder) + strlen(entry->d_name) + 2);
        assert_non_null(path);
        sprintf(path, "%s/%s", folder, entry->d_name);
    }
    closedir(dir);
    assert_non_null(path);
    return path;
}

static char *read_file(const char *path, size_t *bytes) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    *bytes = (size_t)ftell(file);
    rewind(file);
    char *data = malloc(*bytes);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, *bytes, file), *bytes);
    fclose(file);
    return data;
}

static void write_file(const char *path, const char *data, size_t bytes) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    if (bytes) assert_int_equal(fwrite(data, 1, bytes, file), bytes);
    fclose(file);
}

/** Can the key of the one file be read back? Asks the cache itself: no driver is needed. */
static bool readable(const clv_device *device, clv__cache_key key) {
    void *binary = NULL;
    size_t bytes = 0;
    bool there = clv__cache_read(device, key, &binary, &bytes);
    assert_int_equal(there, binary != NULL);
    free(binary);
    return there;
}

TEST(programs_come_back_from_disk) {
    char *parent = clv__test_folder(), folder[1000];
    snprintf(folder, sizeof folder, "%s/a/b", parent); // made when needed
    assert_listed(folder, 0, 0);
    assert_int_equal(clear(folder), 0);
    build_afresh(folder, false, 0, NULL);
    struct stat stat_;
    assert_int_equal(stat(folder, &stat_), 0);
    assert_int_equal(stat_.st_mode & 0777, 0700);
    char *path = only_file(folder);
    assert_int_equal(stat(path, &stat_), 0);
    assert_int_equal(stat_.st_mode & 0777, 0600);
    assert_listed(folder, 1, 0);
    build_afresh(folder, true, 0, NULL);
    // Somebody else's files stay; a file left half-written goes with the rest.
    char other[1100], half[1100];
    snprintf(other, sizeof other, "%s/notes.txt", folder);
    snprintf(half, sizeof half, "%s/tmp-1-2-0123456789abcdef0123456789abcdef.prog", folder);
    write_file(other, "x", 1);
    write_file(half, "x", 1);
    assert_listed(folder, 1, 0);
    assert_int_equal(clear(folder), 1);
    assert_int_equal(access(other, F_OK), 0);
    assert_int_not_equal(access(half, F_OK), 0);
    assert_listed(folder, 0, 0);
    build_afresh(folder, false, 0, NULL);
    free(path);
    free(parent);
}

TEST(damaged_files_are_built_again) {
    char *folder = clv__test_folder();
    listener heard = {0};
    clv_device *device;
    clv_runtime *runtime = make(folder, &heard, &device);
    // The cache alone, with a binary that is none: nothing of a driver is in the way of trying every byte.
    clv__cache_key key = {{1, 2}};
    clv__cache_write(device, key, "the binary of a program", 23);
    assert_true(readable(device, key));
    assert_false(readable(device, (clv__cache_key){{1, 3}}));
    char *path = only_file(folder);
    size_t bytes;
    char *good = read_file(path, &bytes), *bad = malloc(bytes + 1);
    assert_non_null(bad);
    for (size_t i = 0; i < bytes; i++) { // every byte changed
        memcpy(bad, good, bytes);
        bad[i] ^= 0x10;
        write_file(path, bad, bytes);
        assert_false(readable(device, key));
    }
    for (size_t n = 0; n < bytes; n++) { // every length
        write_file(path, good, n);
        assert_false(readable(device, key));
    }
    memcpy(bad, good, bytes);
    bad[bytes] = 0;
    write_file(path, bad, bytes + 1);
    assert_false(readable(device, key));
    assert_listed(folder, 0, 1);
    // A header that promises more than there is, by far.
    memcpy(bad, good, bytes);
    memset(bad + 32, 0xff, 8);
    write_file(path, bad, bytes);
    assert_false(readable(device, key));
    // A good file under another's name.
    write_file(path, good, bytes);
    assert_true(readable(device, key));
    char other[1100];
    snprintf(other, sizeof other, "%s/%016x%016x.prog", folder, 2, 9);
    assert_int_equal(rename(path, other), 0);
    assert_false(readable(device, (clv__cache_key){{9, 2}}));
    // A link, a folder and a pipe in its place.
    assert_int_equal(symlink(other, path), 0);
    assert_false(readable(device, key));
    unlink(path);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_false(readable(device, key));
    clv__cache_write(device, key, "x", 1); // cannot be renamed over a folder: a warning, no more
    assert_int_equal(heard.warnings, 1);
    rmdir(path);
    clv_runtime_destroy(runtime);
    free(good);
    free(bad);
    free(path);
    // Through the driver: a damaged file costs a build, and is whole again after it.
    clear(folder);
    build_afresh(folder, false, 0, NULL);
    path = only_file(folder);
    good = read_file(path, &bytes);
    write_file(path, good, bytes / 2);
    build_afresh(folder, false, 0, NULL);
    build_afresh(folder, true, 0, NULL);
    free(good);
    free(path);
    free(folder);
}

TEST(unsafe_folders_are_not_used) {
    char *folder = clv__test_folder(), path[1000];
    assert_int_equal(chmod(folder, 0777), 0);
    build_afresh(folder, false, 1, "other users can write to it");
    clv_runtime_config config = {.cache_dir = folder, .no_opencl = true};
    clv_runtime *runtime = clv__test_runtime(&config);
    assert_status(clv_cache_clear(runtime, NULL, NULL), CLV_E_IO, runtime);
    assert_status(clv_cache_list(runtime, count_entry, NULL), CLV_E_IO, runtime);
    assert_holds(clv_runtime_error(runtime), "other users can write to it");
    clv_runtime_destroy(runtime);
    if (geteuid() == 0) { // only root can give a folder away
        assert_int_equal(chmod(folder, 0700), 0);
        assert_int_equal(chown(folder, 12345, 12345), 0);
        build_afresh(folder, false, 1, "belongs to another user");
        assert_int_equal(chown(folder, 0, 0), 0);
    }
    snprintf(path, sizeof path, "%s/file", folder);
    write_file(path, "x", 1);
    build_afresh(path, false, 1, "cannot be"); // a file where the folder should be
    strcat(path, "/below");
    build_afresh(path, false, 1, "cannot be");
    build_afresh("/proc/none/such", false, 1, "cannot be");
    free(folder);
}

TEST(keys_tell_everything_apart) {
    char *folder = clv__test_folder();
    listener heard = {0};
    clv_device *device;
    clv_runtime *runtime = make(folder, &heard, &device);
    clv__cache_key key = clv__cache_key_of(device, "source", "-opt"), other;
    other = clv__cache_key_of(device, "source", "-opt");
    assert_memory_equal(&key, &other, sizeof key);
    clv_device twin = {.runtime = device->runtime};
    const char **fields[] = {&twin.info.label, &twin.info.vendor, &twin.info.driver,
                             &twin.info.platform_name};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        twin.info = device->info;
        *fields[i] = "another";
        other = clv__cache_key_of(&twin, "source", "-opt");
        assert_memory_not_equal(&key, &other, sizeof key);
    }
    twin.info = device->info;
    static const char *const sources[][2] = {
        {"source2", "-opt"}, {"source", "-opt2"}, {"source-", "opt"}, {"", "source-opt"}};
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        other = clv__cache_key_of(&twin, sources[i][0], sources[i][1]);
        assert_memory_not_equal(&key, &other, sizeof key);
    }
    clv_runtime_destroy(runtime);
    free(folder);
}

TEST(drivers_that_keep_programs_get_no_cache) {
    char *folder = clv__test_folder();
    listener heard = {0};
    clv_device *device;
    clv_runtime *runtime = make(folder, &heard, &device);
    device->traits.caches_programs = true;
    clv__launch launch = launch_of("other", "other", 0);
    build(device, &launch, 1);
    clv_runtime_destroy(runtime);
    assert_listed(folder, 0, 0);
    clv_runtime_config config = {.cache_dir = folder, .no_cache = true};
    runtime = clv__test_runtime(&config);
    int i = -1;
    device = clv__test_next_device(runtime, &i);
    device->traits.caches_programs = false;
    build(device, &launch, 1);
    clv_runtime_destroy(runtime);
    assert_listed(folder, 0, 0);
    free(folder);
}

TEST(the_folder_follows_the_environment) {
    char *old = getenv("CLEAVE_CACHE_DIR") ? strdup(getenv("CLEAVE_CACHE_DIR")) : NULL;
    static const char *const cases[][4] = {
        // CLEAVE_CACHE_DIR, XDG_CACHE_HOME, HOME, the folder
        {"/c", "/x", "/h", "/c"},
        {"", "/x", "/h", "/x/cleave"},
        {"", "relative", "/h", "/h/.cache/cleave"},
        {"", "", "/h", "/h/.cache/cleave"},
        {"", "", "", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        setenv("CLEAVE_CACHE_DIR", cases[i][0], 1);
        setenv("XDG_CACHE_HOME", cases[i][1], 1);
        setenv("HOME", cases[i][2], 1);
        clv_runtime_config config = {.no_opencl = true};
        clv_runtime *runtime = clv__test_runtime(&config);
        assert_string_equal(clv_runtime_info_get(runtime).cache_folder, cases[i][3]);
        int counts[2] = {0};
        if (!*cases[i][3]) assert_status(clv_cache_list(runtime, count_entry, counts), CLV_OK, runtime);
        clv_runtime_destroy(runtime);
    }
    if (old) setenv("CLEAVE_CACHE_DIR", old, 1);
    free(old);
}

TEST(debug_levels_tell_more) {
    char *folder = clv__test_folder();
    setenv("CLEAVE_DEBUG", "4", 1);
    listener heard = {0};
    clv_device *device;
    clv_runtime *runtime = make(folder, &heard, &device);
    device->traits.build_threads = 1; // one program, however many processors there are
    int devices = heard.notes;
    assert_true(devices >= clv_runtime_info_get(runtime).n_devices); // a line each
    clv__launch launches[8];
    for (int i = 0; i < 8; i++) launches[i] = launch_of("number", "number", 100 + i);
    build(device, launches, 8);
    assert_true(heard.longest > 1100); // the source, whole: longer than other sentences get
    setenv("CLEAVE_DEBUG", "0", 1);
    clv_runtime_destroy(runtime);
    heard = (listener){0};
    runtime = make(folder, &heard, &device);
    build(device, launches, 8);
    assert_int_equal(heard.notes, 0);
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", CLV_VERSION_MAJOR, CLV_VERSION_MINOR, CLV_VERSION_PATCH);
    assert_string_equal(clv_version(), version);
    clv_runtime_destroy(runtime);
    free(folder);
}

TEST_MAIN(NULL, NULL)
