// SPDX-License-Identifier: Apache-2.0
// A run is many steps handed to the device without waiting between them, then one wait: so launches overlap as in training,
// and what a wait costs is spread thin. Inputs are fed again in each step, as a training does.
#include "bench/measure.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/random.h"
#include "cleave/optim.h"
#include "cleave/plan.h"
#include "device/device.h"
#include "tensor/dtype.h"

enum { DEFAULT_RUNS = 9, LEAST_RUNS = 3, MOST_RUNS = 1000, MOST_STEPS = 100000 };
static const double default_seconds = 1.0;

/** An input of the graph and the values it is fed. */
typedef struct feed {
    const clv_tensor *tensor;
    void *data;
    size_t bytes;
} feed;

typedef struct subject {
    clv__error *error;
    clv_plan *plan;
    clv_session *session;
    clv_run *run;
    feed *feeds;
    size_t n_feeds, room;
} subject;

/** Uniform values from -1 to 1; whole numbers below 10 for labels and tokens; the optimizer's values of an early step. */
static clv_status make_feed(subject *s, const clv_tensor *tensor, const clv_tensor *hyper) {
    if (!clv__grow(&s->feeds, &s->room, s->n_feeds + 1, sizeof *s->feeds))
        CLV_FAIL(s->error, CLV_E_HOST_MEMORY, "no memory for inputs");
    int64_t n = clv_tensor_numel(tensor);
    feed *f = &s->feeds[s->n_feeds];
    const clv_dtype dtype = clv_tensor_dtype(tensor);
    const size_t each = clv_dtype_bytes(dtype);
    *f = (feed){tensor, clv__alloc((size_t)n + 1, each), clv_tensor_bytes(tensor)};
    if (!f->data) CLV_FAIL(s->error, CLV_E_HOST_MEMORY, "no memory for an input of %zu bytes", f->bytes);
    s->n_feeds++;
    if (tensor == hyper) {
        clv_optimizer_hyper_values(clv__tensor_graph(hyper), 2, 0.001, f->data);
        return CLV_OK;
    }
    clv__random random;
    clv__random_init(&random, 1, CLV__STREAM_TEST, s->n_feeds);
    for (int64_t i = 0; i < n; i++) {
        const double value = clv__is_float(dtype) ? (double)(2 * clv__random_uniform(&random) - 1)
                                                  : clv__random_below(&random, 10);
        clv__elements_narrow(dtype, &value, 1, (char *)f->data + (size_t)i * each);
    }
    return CLV_OK;
}

static clv_status prepare(subject *s, clv_device *device, const clv_bench_config *config,
                          const clv__bench_graph *g) {
    clv_plan_config plan = {.device = device, .variants = config->variants, .no_fuse = config->no_fuse};
    CLV_TRY(clv_plan_create(g->graph, &plan, &s->plan));
    CLV_TRY(clv_session_create(g->graph->runtime, &(clv_session_config){.seed = 1}, &s->session));
    CLV_TRY(clv_run_create(s->session, s->plan, &s->run));
    for (size_t i = 0; i < g->graph->n_tensors; i++) {
        const clv_tensor *tensor = g->graph->tensors[i];
        if (tensor->kind != CLV__INPUT || tensor == g->graph->random)
            continue; // the run feeds that one itself
        CLV_TRY(make_feed(s, tensor, g->graph->hyper));
    }
    return CLV_OK;
}

/** Seconds of a run of so many steps. */
static clv_status time_run(subject *s, int steps, double *seconds) {
    double start = clv__seconds();
    for (int i = 0; i < steps; i++) {
        for (size_t k = 0; k < s->n_feeds; k++)
            CLV_TRY(clv_run_feed(s->run, s->feeds[k].tensor, s->feeds[k].data, s->feeds[k].bytes));
        CLV_TRY(clv_run_step(s->run, NULL));
    }
    CLV_TRY(clv_run_finish(s->run));
    *seconds = clv__seconds() - start;
    return CLV_OK;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static clv_status time_all(subject *s, const clv_bench_config *config, clv_bench_result *result) {
    double total = config->seconds > 0 ? config->seconds : default_seconds, one, spent = 0, times[MOST_RUNS];
    int wanted = config->runs ? config->runs : DEFAULT_RUNS, runs = 0;
    if (wanted > MOST_RUNS) wanted = MOST_RUNS;
    // Warm up: kernels are compiled at their first launch, memory is touched, both slots are fed.
    CLV_TRY(time_run(s, 2, &one));
    // Then double the steps until a run is near its share of the time; that warms up as well.
    for (int steps = 1;; steps *= 2) {
        CLV_TRY(time_run(s, steps, &one));
        one /= steps;
        result->steps = one * MOST_STEPS > total / wanted ? (int)(total / wanted / one) : MOST_STEPS;
        if (result->steps < 1) result->steps = 1;
        if (steps * 2 > result->steps) break;
    }
    while (runs < wanted && (runs < LEAST_RUNS || spent < total)) {
        CLV_TRY(time_run(s, result->steps, &times[runs]));
        spent += times[runs];
        times[runs++] /= result->steps;
    }
    qsort(times, (size_t)runs, sizeof *times, compare);
    result->runs = runs;
    result->median_ms = 1e3 * (times[(runs - 1) / 2] + times[runs / 2]) / 2;
    result->min_ms = 1e3 * times[0];
    result->max_ms = 1e3 * times[runs - 1];
    return CLV_OK;
}

clv_status clv__bench_measure(clv_device *device, const clv_bench_config *config,
                              const clv__bench_graph *graph, clv_bench_result *result) {
    subject s = {.error = clv__runtime_error_of(graph->graph->runtime)};
    clv_status status = prepare(&s, device, config, graph);
    if (status == CLV_OK) status = time_all(&s, config, result);
    clv_run_destroy(s.run);
    clv_session_destroy(s.session);
    clv_plan_destroy(s.plan);
    for (size_t i = 0; i < s.n_feeds; i++) free(s.feeds[i].data);
    free(s.feeds);
    return status;
}
