// SPDX-License-Identifier: Apache-2.0
// How fast is this device? Products, convolutions, ops and models, beside the device's own measured peak.
//
//     clv_bench_report *report;
//     clv_bench(runtime, device, &(clv_bench_config){.suite = "gemm"}, &report);
//     for (int i = 0; i < report->n_results; i++) puts(report->results[i].name);
//     clv_free(report);
#ifndef CLEAVE_BENCH_H
#define CLEAVE_BENCH_H

#include "device.h"
#include "graph.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifndef CLEAVE_STABLE_ONLY // experimental

/** What to measure. All zero: every case of every suite, nine runs of each in about a second. */
typedef struct clv_bench_config {
    const char *suite; /**< `gemm`, `conv`, `ops` or `models`; NULL: all */
    const char *name;  /**< only the case of this name; NULL: all */
    /** only this mode: `forward`, `backward_data`, `backward_weight`, `train`, `infer`; NULL: all */
    const char *mode;
    int64_t size[3];      /**< M, N, K: one product instead of the cases of `gemm`; all zero: those */
    const char *model;    /**< one model (clv_model_find, or `gpt`); NULL: all */
    int64_t batch;        /**< of models; 0: 64, for inputs of more than 10,000 numbers 8, gpt 16 */
    int runs;             /**< of each case; 0: 9 */
    double seconds;       /**< that the runs of a case take together, about, and three runs at least; 0: 1 */
    bool list;            /**< measure nothing: the results only name the cases */
    bool measure_peak;    /**< measure the device's peak again, even if it is known */
    const char *variants; /**< as in clv_plan_config */
    bool no_fuse;         /**< as in clv_plan_config */
    /** Called before each case: `done` of `total`. Return false to stop with CLV_E_INTERRUPTED. NULL: nobody listens. */
    bool (*progress)(void *user, int done, int total, const char *name);
    void *user;
    clv_precision precision; /**< of models; of others what ops read, but weights, and write is stored so */
    CLV_RESERVED(7);
} clv_bench_config;

/** What the device can do at most, as measured: by a loop of fused multiply-adds, and by a copy (read and written bytes
 *  both count). Zero where it cannot be measured: the host device runs no kernels, or the budget leaves no room. */
typedef struct clv_bench_peak {
    double gflops, gbps;
    double cache_gbps; /**< of data that stays in caches */
    CLV_RESERVED(4);
} clv_bench_peak;

/**
 * Which part of the peak work reaches that does so much a second; 0 if the peak is not known, never above 1: work with more flops
 * than the device can do was done by an algorithm that needs fewer.
 *
 * bound  may be NULL: "compute", "memory", or "cache" where bytes moved faster than a copy of memory; static
 */
CLV_API double clv_bench_peak_part(const clv_bench_peak *peak, double gflops, double gbps,
                                   CLV_OUT CLV_OR_NULL const char **bound);

/**
 * Measure the peak again because something beat it, for the machine may have been busy when it was measured. The larger of both
 * counts for each figure, and is kept.
 *
 * Errors  as clv_bench_peak_get
 */
CLV_API CLV_MUST_CHECK clv_status clv_bench_peak_raise(clv_device *device, CLV_INOUT clv_bench_peak *peak);

/**
 * The device's peak: measured, which takes a second and for that time up to an eighth of the device's memory, and kept in the program
 * cache's folder; from there if it is known.
 *
 * again   measure it even if it is known
 * out     of a device that is not here its maker's figures, 0 where there are none; zeros for the host, and after an error
 *
 * Errors  CLV_E_BUDGET, CLV_E_DEVICE_MEMORY no room for the copy; the device's
 */
CLV_API CLV_MUST_CHECK clv_status clv_bench_peak_get(clv_device *device, bool again,
                                                     CLV_OUT clv_bench_peak *out);

/** One case. A run enqueues many steps without waiting, and waits at the end; times are of one step. */
typedef struct clv_bench_result {
    const char *suite, *mode; /**< static */
    char name[96];
    double median_ms, min_ms, max_ms; /**< over the runs */
    int runs, steps;                  /**< steps in each run */
    double gflops, gbps; /**< at the median; bytes are what the ops must read and write, caches or not */
    /** of the peak that binds: the larger of the two parts; 0 if the peak is not known */
    double peak_fraction;
    char failure[512]; /**< why it did not run; "" if it did */
    CLV_RESERVED(4);
} clv_bench_result;

typedef struct clv_bench_report {
    clv_bench_peak peak;
    CLV_COUNT(n_results) clv_bench_result *results;
    int n_results, n_failed;
} clv_bench_report;

/**
 * Measure cases on a device, one after another. The peak is measured first, unless the program cache's folder has it.
 *
 * out  the report, even when cases failed; give it up with clv_free. NULL after an error.
 *
 * Errors  CLV_E_UNSUPPORTED the device is not usable or computes nothing (null); CLV_E_NOT_FOUND no such suite, model or
 *         case; CLV_E_VALUE a negative size, batch or number of runs; CLV_E_INTERRUPTED by the callback; memory
 */
CLV_TRAIN_API CLV_MUST_CHECK clv_status clv_bench(clv_runtime *runtime, clv_device *device,
                                                  CLV_OR_NULL const clv_bench_config *config,
                                                  clv_bench_report **out);

#endif // CLEAVE_STABLE_ONLY

#ifdef __cplusplus
}
#endif
#endif
