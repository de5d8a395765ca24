// SPDX-License-Identifier: Apache-2.0
// Many steps, with runs, files and mistakes in between: memory, open files and threads do not grow.
//
// CLV_SOAK_STEPS   how many, default 2,000; soak.sh asks for 20,000
// CLV_SOAK_DEVICE  a device spec, default `host`
#include <dirent.h>
#include <malloc.h>
#include <unistd.h>

#include "misuse/world.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1 // allocators of their own, which keep what was freed
#else
#define SANITIZED 0
#endif

/** What a process holds. */
typedef struct held {
    long files, threads, resident_kib;
    size_t heap_bytes;     // in use; 0: not known
    uint64_t device_bytes; // by the account
} held;

static long count(const char *path) {
    DIR *folder = opendir(path);
    long n = 0;
    if (!folder) return 0;
    while (readdir(folder)) n++;
    closedir(folder);
    return n;
}

static held look(const clv_device *device) {
    held now = {.files = count("/proc/self/fd"),
                .threads = count("/proc/self/task"),
                .device_bytes = clv_device_memory(device).all.current};
    FILE *file = fopen("/proc/self/statm", "r");
    long pages = 0;
    if (file) {
        if (fscanf(file, "%*d %ld", &pages) != 1) pages = 0;
        fclose(file);
    }
    now.resident_kib = pages * (sysconf(_SC_PAGESIZE) / 1024);
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
    if (!SANITIZED) now.heap_bytes = mallinfo2().uordblks;
#endif
    return now;
}

/** What programs do besides stepping: another run, weights to a file and back, and mistakes. */
static void do_more(world *w, const char *path) {
    clv_run_destroy(w->run);
    w->run = clv__test_run(w->runtime, w->session, w->plan);
    assert_status(clv_weights_save(w->session, path), CLV_OK, w->runtime);
    assert_status(clv_weights_load(w->session, path), CLV_OK, w->runtime);
    clv_plan *plan;
    clv_graph *graph = clv__test_graph(w->runtime);
    clv_output(clv_reshape(clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(4)), CLV_SHAPE(3)), "y");
    assert_status(clv_plan_create(graph, NULL, &plan), CLV_E_SHAPE, w->runtime);
    assert_status(clv_safetensors_read(w->runtime, "/dev/null", &w->archive), CLV_E_IO, w->runtime);
    clv_graph_destroy(graph);
}

TEST(nothing_grows) {
    const char *steps_text = getenv("CLV_SOAK_STEPS"), *spec = getenv("CLV_SOAK_DEVICE");
    long steps = steps_text ? atol(steps_text) : 2000, warm = steps / 4;
    assert_true(steps >= 400);
    world w = {.runtime = clv__test_runtime(&(clv_runtime_config){.no_opencl = !spec})};
    w.host = clv__test_device(w.runtime, spec ? spec : "host");
    world_train(&w);
    char *folder = clv__test_folder(), path[512];
    snprintf(path, sizeof path, "%s/weights.safetensors", folder);
    held before = {0};
    for (long i = 1; i <= steps; i++) {
        world_step(&w, (int)(i % 1000));
        if (i % 100 == 0) do_more(&w, path);
        if (i == warm / 100 * 100 || i == warm) before = look(w.host);
    }
    if (steps % 100) do_more(&w, path); // the same was done last, then as now
    held after = look(w.host);
    print_message(
        "%ld steps on %s: files %ld to %ld, threads %ld to %ld, heap %zu to %zu bytes, resident %ld to "
        "%ld KiB\n",
        steps, spec ? spec : "host", before.files, after.files, before.threads, after.threads,
        before.heap_bytes, after.heap_bytes, before.resident_kib, after.resident_kib);
    assert_int_equal(after.files, before.files);
    assert_int_equal(after.threads, before.threads);
    assert_int_equal(after.device_bytes, before.device_bytes);
    if (!SANITIZED &&
        !spec) { // a driver's own heap is its affair. malloc counts what it keeps for a thread as in use: 16 KiB
        assert_true(after.heap_bytes <= before.heap_bytes + 16384); // are less than a chunk for each step
        assert_true(after.resident_kib <= before.resident_kib + 1024);
    }
    if (!SANITIZED && spec) assert_true(after.resident_kib <= before.resident_kib + 8192);
    world_untrain(&w);
    clv_runtime_destroy(w.runtime);
    unlink(path);
    rmdir(folder);
    free(folder);
}

TEST_MAIN(NULL, NULL)
