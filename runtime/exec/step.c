// SPDX-License-Identifier: Apache-2.0
// A whole step in one call, for programs that want no pipeline: feed, the optimizer's values, run, fetch.
#include <math.h>

#include "exec/run.h"

#ifndef CLEAVE_INFERENCE
/** The values of the graph's optimizer for the step that comes. */
static clv_status feed_hyper(clv_run *run, double lr) {
    const clv_graph *graph = run->plan->graph;
    if (!graph->hyper) return CLV_OK;
    if (!(lr >= 0) || isinf(lr))
        CLV_FAIL(clv__plan_error(run->plan), CLV_E_VALUE,
                 "clv_run_do: the learning rate is %g, it must be a number of at least 0", lr);
    float values[CLV_HYPER_VALUES];
    clv_optimizer_hyper_values(graph, clv_session_info_get(run->session).step + 1, lr, values);
    return clv_run_feed(run, graph->hyper, values, sizeof values);
}
#endif

clv_status clv_run_do(clv_run *run, const clv_step *step) {
    CLV_TRY(CLV__GIVEN(NULL, run));
    clv__error *error = clv__plan_error(run->plan);
    int64_t ticket;
    CLV_TRY(CLV__USABLE(error, step));
    if (step->n_feeds > 0) CLV_TRY(CLV__USABLE(error, step->feeds));
    if (step->n_fetches > 0) CLV_TRY(CLV__USABLE(error, step->fetches));
    for (int i = 0; i < step->n_feeds; i++)
        CLV_TRY(clv_run_feed(run, step->feeds[i].input, step->feeds[i].data, step->feeds[i].bytes));
#ifndef CLEAVE_INFERENCE
    CLV_TRY(feed_hyper(run, step->lr));
#endif
    CLV_TRY(clv_run_step(run, &ticket));
    for (int i = 0; i < step->n_fetches; i++)
        CLV_TRY(clv_run_fetch(run, ticket, step->fetches[i].output, step->fetches[i].data,
                              step->fetches[i].bytes));
    return CLV_OK;
}
