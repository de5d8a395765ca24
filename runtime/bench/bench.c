// SPDX-License-Identifier: Apache-2.0
// clv_bench: the peak, then case by case a graph, its time, and what that is in parts of the peak.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/cases.h"
#include "bench/measure.h"
#include "device/device.h"

static void rate(const clv__bench_graph *graph, const clv_bench_peak *peak, clv_bench_result *result) {
    if (!(result->median_ms > 0)) return;
    result->gflops = graph->flops / result->median_ms * 1e-6;
    result->gbps = graph->bytes / result->median_ms * 1e-6;
    result->peak_fraction = clv_bench_peak_part(peak, result->gflops, result->gbps, NULL);
}

/** One case. A failure of the case is kept in its result: the others still run. */
static void run_case(clv_runtime *runtime, clv_device *device, const clv_bench_config *config,
                     const clv__bench_case *c, clv_bench_report *report) {
    clv_bench_result *result = &report->results[report->n_results++];
    result->suite = c->suite;
    result->mode = c->mode;
    memcpy(result->name, c->name, sizeof result->name);
    if (config->list) return;
    clv__bench_graph graph;
    clv_status status = clv__bench_build(runtime, c, config->precision, &graph);
    if (status == CLV_OK) status = clv__bench_measure(device, config, &graph, result);
    if (status == CLV_OK) {
        rate(&graph, &report->peak, result);
    } else {
        snprintf(result->failure, sizeof result->failure, "%s", clv_runtime_error(runtime));
        report->n_failed++;
    }
    clv_graph_destroy(graph.graph);
}

static clv_status run_all(clv_runtime *runtime, clv_device *device, const clv_bench_config *config,
                          const clv__bench_cases *cases, clv_bench_report *report) {
    clv__error *error = clv__runtime_error_of(runtime);
    report->results = clv__alloc(cases->n, sizeof *report->results);
    if (!report->results)
        CLV_FAIL(error, CLV_E_HOST_MEMORY, "no memory for the results of %zu cases", cases->n);
    clv_status peak = config->list ? CLV_OK : clv_bench_peak_get(device, config->measure_peak, &report->peak);
    bool no_room =
        peak == CLV_E_BUDGET || peak == CLV_E_DEVICE_MEMORY; // for the copy; the cases may be smaller
    if (!no_room) CLV_TRY(peak);
    for (size_t i = 0; i < cases->n; i++) {
        const char *name = cases->items[i].name;
        if (config->progress && !config->progress(config->user, (int)i, (int)cases->n, name))
            CLV_FAIL(error, CLV_E_INTERRUPTED, "interrupted before case '%s'", name);
        run_case(runtime, device, config, &cases->items[i], report);
    }
    return CLV_OK;
}

static void report_end(void *what) {
    clv_bench_report *report = what;
    free(report->results);
}

clv_status clv_bench(clv_runtime *runtime, clv_device *device, const clv_bench_config *config,
                     clv_bench_report **out) {
    CLV_TRY(CLV__GIVEN(NULL, runtime));
    CLV_TRY(CLV__USABLE(clv__runtime_error_of(runtime), device));
    CLV_TRY(CLV__USABLE(clv__runtime_error_of(runtime), out));
    static const clv_bench_config all;
    clv__error *error = clv__runtime_error_of(runtime);
    clv__bench_cases cases;
    *out = NULL;
    if (!config) config = &all;
    if (!device->info.usable)
        CLV_FAIL(error, CLV_E_UNSUPPORTED, "%s cannot be used: %s", device->name, device->info.reason);
    if (!strcmp(device->info.backend, "null"))
        CLV_FAIL(error, CLV_E_UNSUPPORTED, "%s computes nothing", device->name);
    CLV_TRY(clv__bench_cases_init(runtime, config, &cases));
    clv_bench_report *report = clv__owned(sizeof *report, report_end);
    clv_status status = report ? run_all(runtime, device, config, &cases, report)
                               : clv__error_set(error, CLV_E_HOST_MEMORY, "no memory for a report");
    clv__bench_cases_reset(&cases);
    if (status == CLV_OK)
        *out = report;
    else
        clv_free(report);
    return status;
}
