// SPDX-License-Identifier: Apache-2.0
// Times the steps of a graph as users run it: plan, session, run.
#ifndef CLV_BENCH_MEASURE_H
#define CLV_BENCH_MEASURE_H

#include "bench/cases.h"

/** Fill times, runs and steps of the result. */
clv_status clv__bench_measure(clv_device *device, const clv_bench_config *config,
                              const clv__bench_graph *graph, clv_bench_result *result);

#endif
