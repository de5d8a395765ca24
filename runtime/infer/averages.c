// SPDX-License-Identifier: Apache-2.0
// Whoever uses a session's parameters may get their running averages: forward passes read these tensors in
// the place of the parameters, and files of weights hold their values under the parameters' names. Nothing is
// copied on a device. How averages come about is in ops/averages.c; frozen parameters and buffers have none.
#include "infer/averages.h"

#include <stdlib.h>

#include "exec/session.h"
#include "ops/update/averages.h"
#include "plan/plan.h"

int clv__average_of(const clv_session *session, const clv_session_tensor *parameter) {
    char name[1200];
    if (!parameter->trainable || !clv__average_name(parameter->name, name, sizeof name)) return -1;
    return clv_session_find(session, name);
}

int clv__average_find(const clv_session *session, const clv_session_tensor *parameter) {
    return session->averages ? clv__average_of(session, parameter) : -1;
}

/** Is it kept by the session, or will it be by a plan's graph? */
static bool is_kept(const clv_session *session, const clv_plan *plan, const char *name) {
    return clv_session_find(session, name) >= 0 || (plan && clv_graph_find(plan->graph, name));
}

clv_status clv__averages_use(clv_graph *graph, const clv_session *session, const clv_plan *plan) {
    if (!session || !session->averages) return CLV_OK;
    for (size_t i = 0; i < graph->n_tensors; i++) {
        clv_tensor *tensor = graph->tensors[i];
        char name[1200];
        if (!tensor->trainable || !clv__average_name(tensor->name, name, sizeof name) ||
            !is_kept(session, plan, name))
            continue;
        tensor->name = clv__arena_strdup(&graph->arena, name);
        if (!tensor->name || !clv__names_add(&graph->names, tensor->name, i))
            return clv__error_set(clv__runtime_error_of(graph->runtime), CLV_E_HOST_MEMORY,
                                  "no host memory for '%s'", name);
    }
    return CLV_OK;
}

clv_status clv__averages_begin(clv_session *session) {
    clv_status status = CLV_OK;
    for (int i = 0; i < clv_session_info_get(session).n_tensors && status == CLV_OK; i++) {
        const clv_session_tensor tensor = clv_session_get(session, i);
        const int average = clv__average_of(session, &tensor);
        if (average < 0) continue;
        void *values = clv__alloc(1, tensor.bytes);
        if (!values)
            CLV_FAIL(clv__runtime_error_of(session->runtime), CLV_E_HOST_MEMORY,
                     "no host memory for the average of '%s'", tensor.name);
        status = clv_session_read(session, i, values, tensor.bytes);
        if (status == CLV_OK) status = clv_session_write(session, average, values, tensor.bytes);
        free(values);
    }
    return status;
}
