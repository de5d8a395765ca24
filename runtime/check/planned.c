// SPDX-License-Identifier: Apache-2.0
// Feeds, steps and fetches a subject; see planned.h.
#include "check/planned.h"

#include <stdlib.h>
#include <string.h>

#include "exec/session.h"
#include "plan/plan.h"

/** Host memory for one tensor at a time. */
typedef struct bytes {
    void *data;
    size_t room;
} bytes;

static clv_status need(bytes *scratch, size_t n, clv__error *error) {
    if (!clv__grow(&scratch->data, &scratch->room, n + 1, 1))
        CLV_FAIL(error, CLV_E_HOST_MEMORY, "no memory for a tensor of %zu bytes", n);
    return CLV_OK;
}

static clv_status give_inputs(const clv__subject *subject, const clv_plan *plan, clv_run *run,
                              bytes *scratch) {
    const clv__place *place = &plan->places[0];
    for (int i = 0; i < place->n_inputs; i++) {
        const clv_tensor *input = plan->values[place->inputs[i]].tensor;
        if (input == subject->graph->random) continue; // the run feeds it from the session's seed and step
        CLV_TRY(need(scratch, clv_tensor_bytes(input), clv__runtime_error_of(subject->graph->runtime)));
        clv__values_get(&subject->start, input, scratch->data);
        CLV_TRY(clv_run_feed(run, input, scratch->data, clv_tensor_bytes(input)));
    }
    return CLV_OK;
}

static clv_status give_persistents(const clv__subject *subject, clv_session *session, bytes *scratch) {
    clv__error *error = clv__runtime_error_of(subject->graph->runtime);
    for (size_t i = 0; i < subject->graph->n_tensors; i++) {
        const clv_tensor *tensor = subject->graph->tensors[i];
        if (tensor->kind != CLV__PERSISTENT) continue;
        int index = clv_session_find(session, tensor->name);
        if (index < 0) continue; // nothing that is computed needs it
        CLV_TRY(need(scratch, clv_tensor_bytes(tensor), error));
        clv__values_get(&subject->start, tensor, scratch->data);
        CLV_TRY(clv_session_write(session, index, scratch->data, clv_tensor_bytes(tensor)));
    }
    return CLV_OK;
}

static clv_status take(const clv__subject *subject, clv_session *session, clv_run *run, int64_t ticket,
                       int target, void *to) {
    const clv_tensor *tensor = subject->targets[target];
    if (tensor->kind == CLV__VALUE) return clv_run_fetch(run, ticket, tensor, to, clv_tensor_bytes(tensor));
    int index = clv_session_find(session, tensor->name);
    if (index < 0)
        CLV_FAIL(clv__runtime_error_of(subject->graph->runtime), CLV_E_INTERNAL,
                 "the session does not hold '%s'", tensor->name);
    return clv_session_read(session, index, to, clv_tensor_bytes(tensor));
}

static clv_status step(const clv__subject *subject, clv_plan *plan, clv_session *session, clv_run *run,
                       bytes *scratch, int64_t *ticket) {
    session->step = CLV__SUBJECT_STEP;
    CLV_TRY(give_persistents(subject, session, scratch));
    CLV_TRY(give_inputs(subject, plan, run, scratch));
    CLV_TRY(clv_run_step(run, ticket));
    return clv_run_finish(run);
}

static clv_status run_both(const clv__subject *subject, clv_plan *plan, clv_session *session, clv_run **run,
                           bytes *scratch, void *const *results) {
    clv__error *error = clv__runtime_error_of(subject->graph->runtime);
    int64_t ticket = 0;
    CLV_TRY(clv_run_create(session, plan, run));
    CLV_TRY(step(subject, plan, session, *run, scratch, &ticket));
    for (int i = 0; i < subject->n_targets; i++) CLV_TRY(take(subject, session, *run, ticket, i, results[i]));
    CLV_TRY(step(subject, plan, session, *run, scratch, &ticket));
    for (int i = 0; i < subject->n_targets; i++) {
        size_t n = clv_tensor_bytes(subject->targets[i]);
        CLV_TRY(need(scratch, n, error));
        CLV_TRY(take(subject, session, *run, ticket, i, scratch->data));
        for (size_t b = 0; b < n; b++)
            if (((char *)scratch->data)[b] != ((char *)results[i])[b])
                CLV_FAIL(error, CLV_E_DEVICE, "two steps gave different bits at byte %zu of %s", b,
                         subject->what[i]);
    }
    return CLV_OK;
}

clv_status clv__planned_run(const clv__subject *subject, clv_plan *plan, uint64_t seed,
                            void *const *results) {
    bytes scratch = {0};
    clv_session *session = NULL;
    clv_run *run = NULL;
    clv_status status =
        clv_session_create(subject->graph->runtime, &(clv_session_config){.seed = seed}, &session);
    if (status == CLV_OK) status = run_both(subject, plan, session, &run, &scratch, results);
    clv_run_destroy(run);
    clv_session_destroy(session);
    free(scratch.data);
    return status;
}
