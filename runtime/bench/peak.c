// SPDX-License-Identifier: Apache-2.0
// Runs kernels_cl/peak.cl straight through the device seam, and keeps what it measured in the program cache's folder, where
// it is found by device and driver as programs are. Times are the host's clock around several launches and one wait, the
// best of a few rounds: a peak is what the device can do when nothing else is going on.
#include "cleave/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "device/cache.h"
#include "device/program.h"
#include "exec/worker.h"

enum {
    CHAINS = 12,       // in peak_fma
    FMA_TURNS = 32768, // below every known limit on a work-item's turns
    ROUNDS = 5,
    MAX_LAUNCHES = 4096,
};
static const double round_seconds = 0.04;

typedef struct peak_job {
    clv_device *device;
    clv__error *error;
    int width; // of a vector
    clv__launches fma, copy, cache;
    clv__launch spare;
    size_t items;      // of peak_fma
    size_t copy_bytes; // of one side
    clv__memory memory[2];
    clv__bkernel *kernels[3];
    double cache_bytes; // that one launch reads and writes
    clv_bench_peak peak;
} peak_job;

// ---- launches -------------------------------------------------------------------------------------------------------

static void write_down(peak_job *j) {
    const clv_device_info *info = &j->device->info;
    bool cpu = info->execution == CLV_EXECUTION_THREADS;
    size_t units = info->compute_units ? info->compute_units : 1;
    j->width = 1;
    while (j->width < 16 && (uint32_t)j->width * 2 <= info->vector_width) j->width *= 2;
    j->items = units * (cpu ? 8 : 2048);
    // Far more than any cache holds, and a small part of the device.
    uint64_t bytes = cpu ? UINT64_C(64) << 20 : UINT64_C(256) << 20;
    if (info->max_alloc_bytes && bytes > info->max_alloc_bytes / 4) bytes = info->max_alloc_bytes / 4;
    if (info->memory_bytes && bytes > info->memory_bytes / 16) bytes = info->memory_bytes / 16;
    j->copy_bytes = (size_t)bytes & ~(size_t)4095;

    const size_t vector_bytes = (size_t)j->width * sizeof(float);
    j->fma.device = j->copy.device = j->cache.device = info;
    j->fma.spare = j->copy.spare = j->cache.spare = &j->spare;
    clv__launch *fma = clv__launch_kernel(&j->fma, "peak", "peak_fma");
    clv__launch_define(&j->fma, fma, "PEAK_VW", "%d", j->width);
    clv__arg_out(&j->fma, fma, 0);
    clv__arg_i32(&j->fma, fma, (int64_t)j->items);
    clv__arg_i32(&j->fma, fma, FMA_TURNS);
    clv__arg_f32(&j->fma, fma, 0.9999f);
    clv__arg_f32(&j->fma, fma, 0.0001f); // towards 1: no denormals, no infinities
    clv__launch_over(&j->fma, fma, CLV__TASKS, (int64_t)j->items);

    // CPUs walk long runs of memory each; GPUs read side by side, 16 bytes an item at least: so more of it is under way.
    const int copy_width = cpu || j->width > 4 ? j->width : 4;
    const int64_t n = (int64_t)(j->copy_bytes / ((size_t)copy_width * sizeof(float)));
    const int64_t chunk = cpu ? 4096 : 1, items = (n + chunk - 1) / chunk;
    clv__launch *copy = clv__launch_kernel(&j->copy, "peak", "peak_copy");
    clv__launch_define(&j->copy, copy, "PEAK_VW", "%d", copy_width);
    clv__arg_out(&j->copy, copy, 0);
    clv__arg_in(&j->copy, copy, 0);
    clv__arg_i32(&j->copy, copy, n);
    clv__arg_i32(&j->copy, copy, chunk);
    clv__arg_i32(&j->copy, copy, 1);
    clv__arg_i32(&j->copy, copy, chunk);
    clv__launch_over(&j->copy, copy, CLV__TASKS, items);

    // 32 KiB in and out for each unit of a CPU: its own caches hold that. A GPU's units share theirs: 1 MiB.
    const int turns = 1024;
    size_t workers = cpu ? units : units * 256, bytes_each = cpu ? 16 << 10 : (1 << 19) / workers;
    int64_t run = (int64_t)(bytes_each / vector_bytes);
    if (run < 1) run = 1;
    while (workers > 1 && workers * (size_t)run * vector_bytes > j->copy_bytes) workers /= 2;
    clv__launch *cache = clv__launch_kernel(&j->cache, "peak", "peak_cache");
    clv__launch_define(&j->cache, cache, "PEAK_VW", "%d", j->width);
    clv__arg_out(&j->cache, cache, 0);
    clv__arg_in(&j->cache, cache, 0);
    clv__arg_i32(&j->cache, cache, (int64_t)workers);
    clv__arg_i32(&j->cache, cache, run);
    clv__arg_i32(&j->cache, cache, turns);
    clv__launch_over(&j->cache, cache, CLV__TASKS, (int64_t)workers);
    j->cache_bytes = 2.0 * (double)workers * (double)run * (double)vector_bytes * turns;
}

static clv_status make_kernel(peak_job *j, const clv__launch *launch, clv__bkernel **out) {
    clv__barg args[CLV__MAX_ARGS];
    clv__kernel_ref kernel;
    for (int i = 0; i < launch->n_slots; i++) {
        const clv__slot *slot = &launch->slots[i];
        switch (slot->kind) {
        case CLV__SLOT_I32: args[i] = (clv__barg){.kind = CLV__BARG_I32, .i32 = slot->i32}; break;
        case CLV__SLOT_F32: args[i] = (clv__barg){.kind = CLV__BARG_F32, .f32 = slot->f32}; break;
        default:
            args[i] =
                (clv__barg){.kind = CLV__BARG_BUFFER, .buffer = j->memory[slot->kind == CLV__SLOT_IN].buffer};
        }
    }
    CLV_TRY(clv__programs_find(j->device, launch, &kernel));
    return j->device->backend->kernel_create(kernel.program, kernel.name, args, launch->n_slots,
                                             &launch->grid, j->error, out);
}

// ---- timing ---------------------------------------------------------------------------------------------------------

/** Seconds of n launches and a wait. */
static clv_status time_launches(peak_job *j, clv__bkernel *kernel, int n, double *seconds) {
    const clv__backend *backend = j->device->backend;
    double start = clv__seconds();
    for (int i = 0; i < n; i++) CLV_TRY(backend->launch(j->device->open, kernel, NULL, j->error));
    CLV_TRY(clv__device_settle(j->device, j->error));
    *seconds = clv__seconds() - start;
    return CLV_OK;
}

/** The least seconds of one launch. */
static clv_status best_time(peak_job *j, clv__bkernel *kernel, double *best) {
    double seconds;
    CLV_TRY(time_launches(j, kernel, 1, &seconds)); // compiles, touches memory
    CLV_TRY(time_launches(j, kernel, 1, &seconds));
    int n =
        seconds > 0 && round_seconds / seconds < MAX_LAUNCHES ? (int)(round_seconds / seconds) : MAX_LAUNCHES;
    if (n < 1) n = 1;
    *best = seconds;
    for (int round = 0; round < ROUNDS; round++) {
        CLV_TRY(time_launches(j, kernel, n, &seconds));
        if (seconds / n < *best) *best = seconds / n;
    }
    return CLV_OK;
}

static clv_status measure(peak_job *j) {
    const clv__backend *backend = j->device->backend;
    if (j->fma.failed || j->copy.failed || j->cache.failed)
        CLV_FAIL(j->error, CLV_E_HOST_MEMORY, "no memory for the peak's launches");
    const clv__launch *launches[] = {&j->fma.items[0], &j->copy.items[0], &j->cache.items[0]};
    CLV_TRY(clv__programs_build(j->device, launches, 3));
    size_t sums = j->items * (size_t)j->width * sizeof(float),
           bytes = sums > j->copy_bytes ? sums : j->copy_bytes;
    for (int i = 0; i < 2; i++) {
        CLV_TRY(clv__memory_create(j->device, bytes, CLV_WORKSPACE, "bench", &j->memory[i]));
        CLV_TRY(backend->fill(j->device->open, j->memory[i].buffer, 0, bytes, 0, j->error));
    }
    double best;
    for (int i = 0; i < 3; i++) CLV_TRY(make_kernel(j, launches[i], &j->kernels[i]));
    CLV_TRY(best_time(j, j->kernels[0], &best));
    double flops = 2.0 * CHAINS * j->width * FMA_TURNS * (double)j->items;
    if (best > 0) j->peak.gflops = flops / best * 1e-9;
    CLV_TRY(best_time(j, j->kernels[1], &best));
    if (best > 0) j->peak.gbps = 2.0 * (double)j->copy_bytes / best * 1e-9;
    CLV_TRY(best_time(j, j->kernels[2], &best));
    if (best > 0) j->peak.cache_gbps = j->cache_bytes / best * 1e-9;
    if (j->peak.cache_gbps < j->peak.gbps) j->peak.cache_gbps = j->peak.gbps; // a device without caches
    return CLV_OK;
}

// On the worker: the device's queues belong to it.
static clv_status on_worker(void *context) {
    peak_job *j = context;
    const clv_memory_info before = clv_device_memory(j->device);
    clv_status status = measure(j);
    // Whatever happened, nothing may be under way when buffers go.
    clv_status settled = clv__device_settle(j->device, status == CLV_OK ? j->error : NULL);
    for (int i = 0; i < 3; i++) j->device->backend->kernel_destroy(j->kernels[i]);
    for (int i = 0; i < 2; i++) clv__memory_destroy(&j->memory[i]);
    clv__memory_forget(j->device, &before); // what is measured with is none of what is trained
    return status == CLV_OK ? settled : status;
}

// ---- kept -----------------------------------------------------------------------------------------------------------

static bool find(clv_device *device, clv__cache_key key, clv_bench_peak *out) {
    void *data;
    size_t bytes;
    if (device->runtime->config.no_cache || !clv__cache_read(device, key, &data, &bytes)) return false;
    clv_bench_peak kept = {0};
    bool good = bytes == sizeof kept;
    if (good) memcpy(&kept, data, sizeof kept);
    free(data);
    good = good && kept.gflops > 0 && kept.gbps > 0 && kept.cache_gbps > 0;
    if (good) *out = kept;
    return good;
}

static clv__cache_key key_of(const clv_device *device) {
    char units[32]; // a part of a device has the label of the whole
    snprintf(units, sizeof units, "3, %u units", (unsigned)device->info.compute_units);
    return clv__cache_key_of(device, "measured peak", units);
}

static void keep(clv_device *device, clv__cache_key key, const clv_bench_peak *peak) {
    if (!device->runtime->config.no_cache && peak->gflops > 0 && peak->gbps > 0)
        clv__cache_write(device, key, peak, sizeof *peak);
}

clv_status clv_bench_peak_get(clv_device *device, bool again, clv_bench_peak *out) {
    CLV_TRY(CLV__GIVEN(NULL, device));
    CLV_TRY(CLV__USABLE(clv__runtime_error_of(device->runtime), out));
    *out = (clv_bench_peak){0};
    if (device->info.type == CLV_DEVICE_HOST) return CLV_OK;
    if (!strcmp(device->info.backend, "null")) { // what its maker says
        out->gflops = device->info.peak_flops / 1e9;
        out->gbps = device->info.peak_bytes_per_second / 1e9;
        return CLV_OK;
    }
    clv__cache_key key = key_of(device);
    if (!again && find(device, key, out)) return CLV_OK;
    peak_job j = {.device = device, .error = clv__runtime_error_of(device->runtime)};
    j.fma.device = j.copy.device = j.cache.device = &device->info;
    write_down(&j);
    clv_status status = clv__worker_start(device);
    if (status == CLV_OK) status = clv__worker_call(device, on_worker, &j);
    clv__launches_reset(&j.fma);
    clv__launches_reset(&j.copy);
    clv__launches_reset(&j.cache);
    if (status != CLV_OK) return status;
    *out = j.peak;
    keep(device, key, out);
    return CLV_OK;
}

static void at_least(double *figure, double seen) {
    if (seen > *figure) *figure = seen;
}

clv_status clv_bench_peak_raise(clv_device *device, clv_bench_peak *peak) {
    CLV_TRY(CLV__GIVEN(NULL, device));
    CLV_TRY(CLV__GIVEN(clv__runtime_error_of(device->runtime), peak));
    const clv_bench_peak before = *peak;
    clv_status status = clv_bench_peak_get(device, true, peak);
    at_least(&peak->gflops, before.gflops);
    at_least(&peak->gbps, before.gbps);
    at_least(&peak->cache_gbps, before.cache_gbps);
    if (status == CLV_OK) keep(device, key_of(device), peak);
    return status;
}

double clv_bench_peak_part(const clv_bench_peak *peak, double gflops, double gbps, const char **bound) {
    if (bound) *bound = "";
    if (!(peak->gflops > 0 && peak->gbps > 0)) return 0;
    const bool cached = gbps > peak->gbps && peak->cache_gbps > 0;
    double compute = gflops / peak->gflops, move = gbps / (cached ? peak->cache_gbps : peak->gbps);
    double part = compute > move ? compute : move;
    if (bound) *bound = compute > move ? "compute" : cached ? "cache" : "memory";
    return part < 1 ? part : 1;
}
