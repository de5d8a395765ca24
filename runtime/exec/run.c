// SPDX-License-Identifier: Apache-2.0
// Runs: feed, step, fetch. The caller's thread copies to and from staging memory and posts a step; the device's worker
// uploads, enqueues the commands and reads the outputs back. Nothing is allocated in a step, and the device is not
// waited for: a slot is waited for when it is needed again, two steps later.
#include "exec/run.h"

#include <stdlib.h>
#include <string.h>

#include "exec/reference.h"

static clv__error *error_of(const clv_run *run) {
    return clv__runtime_error_of(run->device->runtime);
}

// ---- staging ----------------------------------------------------------------------------------------------------------

static char *staged_inputs(const clv_run *run, int slot) {
    return (char *)run->session->staging.pointer + (size_t)slot * run->plan->input_bytes;
}

static char *staged_outputs(const clv_run *run, int slot) {
    return (char *)run->session->staging.pointer + CLV__SLOTS * run->plan->input_bytes + (size_t)slot * run->plan->staged_bytes;
}

static int index_of(const int *ids, int n, int id) {
    for (int i = 0; i < n; i++) {
        if (ids[i] == id) return i;
    }
    return -1;
}

// ---- the worker's side ------------------------------------------------------------------------------------------------

static clv_status enqueue(clv_run *run, const clv__command *command) {
    const clv__backend *backend = run->device->backend;
    clv__bdevice *open = run->device->open;
    clv__error *error = error_of(run);
    const clv__launch *launch = command->launch;
    clv__bbuffer *const *b = command->buffers;
    switch (command->kind) {
    case CLV__LAUNCH_KERNEL: return backend->launch(open, command->kernel, NULL, error);
    case CLV__LAUNCH_COPY: return backend->copy(open, b[1], 0, b[0], 0, launch->bytes, error);
    case CLV__LAUNCH_FILL: return backend->fill(open, b[0], 0, launch->bytes, launch->pattern, error);
    case CLV__LAUNCH_GEMM:
        return backend->gemm(open, launch->gemm.transpose_a, launch->gemm.transpose_b, launch->gemm.m, launch->gemm.n,
                             launch->gemm.k, launch->gemm.alpha, b[1], launch->gemm.lda, launch->gemm.stride_a, b[2],
                             launch->gemm.ldb, launch->gemm.stride_b, launch->gemm.beta, b[0], launch->gemm.ldc,
                             launch->gemm.stride_c, launch->gemm.n_batch, error);
    case CLV__LAUNCH_REFERENCE:
        return backend->call(open, clv__reference_call, (void *)&command->node->io, b, launch->n_slots, error);
    }
    return CLV_E_INTERNAL;
}

static clv_status upload(clv_run *run, int slot) {
    const clv__backend *backend = run->device->backend;
    clv__bdevice *open = run->device->open;
    size_t bytes = run->plan->input_bytes;
    if (bytes == 0) return CLV_OK;
    clv__bevent *arrived = NULL;
    CLV_TRY(backend->write(open, CLV__QUEUE_TRANSFER, run->session->io.buffer, (size_t)slot * bytes, bytes,
                           staged_inputs(run, slot), NULL, &arrived, error_of(run)));
    clv_status status = backend->wait_on_queue(open, CLV__QUEUE_COMPUTE, arrived, error_of(run));
    backend->event_destroy(arrived);
    return status;
}

static clv_status read_outputs(clv_run *run, int slot) {
    const clv_plan *plan = run->plan;
    for (int i = 0; i < plan->n_outputs; i++) {
        int id = plan->outputs[i];
        size_t bytes = plan->tensors[id].bytes;
        if (bytes == 0) continue;
        CLV_TRY(run->device->backend->read(run->device->open, CLV__QUEUE_COMPUTE, run->parts[slot][id].buffer, 0, bytes,
                                           staged_outputs(run, slot) + run->staged_at[i], NULL, NULL, error_of(run)));
    }
    return CLV_OK;
}

static clv_status enqueue_step(clv_run *run, int slot, clv__bevent **done) {
    const clv__backend *backend = run->device->backend;
    CLV_TRY(upload(run, slot));
    for (size_t i = 0; i < run->n_commands; i++) {
        const clv__command *command = &run->commands[slot][i];
        clv_status status = enqueue(run, command);
        if (status != CLV_OK) {
            clv__error_prefix(error_of(run), "%s '%s' on %s: ", command->node->io.op->name, command->node->layer,
                              run->device->info.name);
            return status;
        }
    }
    CLV_TRY(read_outputs(run, slot));
    CLV_TRY(backend->record(run->device->open, CLV__QUEUE_COMPUTE, done, error_of(run)));
    return backend->flush(run->device->open, error_of(run));
}

static void run_step(clv__job *job) {
    clv__step *step = (clv__step *)job;
    clv_run *run = step->run;
    clv__bevent *done = NULL;
    pthread_mutex_lock(&run->lock);
    clv_status status = run->status; // after a failure nothing more is enqueued
    pthread_mutex_unlock(&run->lock);
    if (status == CLV_OK) status = enqueue_step(run, step->index, &done);
    pthread_mutex_lock(&run->lock);
    step->done = done;
    step->status = status;
    step->state = CLV__SLOT_ENQUEUED;
    pthread_cond_broadcast(&run->changed);
    pthread_mutex_unlock(&run->lock);
}

// ---- the caller's side ------------------------------------------------------------------------------------------------

/** Wait until the slot's step, if any, is done on the device. */
static clv_status wait_for_slot(clv_run *run, int slot) {
    clv__step *step = &run->steps[slot];
    pthread_mutex_lock(&run->lock);
    while (step->state == CLV__SLOT_POSTED) pthread_cond_wait(&run->changed, &run->lock);
    bool enqueued = step->state == CLV__SLOT_ENQUEUED;
    step->state = CLV__SLOT_FREE;
    pthread_mutex_unlock(&run->lock);
    if (!enqueued) return run->status;
    clv_status status = step->status;
    if (step->done) {
        clv_status waited = run->device->backend->event_wait(step->done, error_of(run));
        if (status == CLV_OK) status = waited;
        run->device->backend->event_destroy(step->done);
        step->done = NULL;
    }
    if (status != CLV_OK) {
        pthread_mutex_lock(&run->lock);
        if (run->status == CLV_OK) run->status = status;
        pthread_mutex_unlock(&run->lock);
    }
    return run->status;
}

/** Take the session's memory over from another run, whose steps are waited for. */
static clv_status take_turn(clv_run *run) {
    clv_session *session = run->session;
    if (session->active == run) return CLV_OK;
    if (session->active) CLV_TRY(clv_run_finish(session->active));
    session->active = run;
    memset(run->ever_fed, 0, (size_t)run->plan->n_inputs * sizeof *run->ever_fed); // staging was another's
    memset(run->fed, 0, (size_t)run->plan->n_inputs * sizeof *run->fed);
    return CLV_OK;
}

clv_status clv_run_feed(clv_run *run, const clv_tensor *input, const void *data, size_t bytes) {
    const clv_plan *plan = run->plan;
    if (!input || input->graph != plan->graph || input->kind != CLV__INPUT)
        CLV_FAIL(error_of(run), CLV_E_VALUE, "'%s' is not an input of this run's graph", clv_tensor_name(input));
    if (bytes != clv_tensor_bytes(input)) {
        CLV_FAIL(error_of(run), CLV_E_SHAPE, "input '%s' has %zu bytes, %zu were given", input->name, clv_tensor_bytes(input), bytes);
    }
    CLV_TRY(take_turn(run));
    int slot = (int)(run->next_ticket % CLV__SLOTS);
    CLV_TRY(wait_for_slot(run, slot));
    int at = index_of(plan->inputs, plan->n_inputs, input->id);
    if (at < 0) return CLV_OK; // nothing that is computed needs it
    memcpy(staged_inputs(run, slot) + plan->tensors[input->id].offset, data, bytes);
    run->fed[at] = run->ever_fed[at] = true;
    return CLV_OK;
}

/** Inputs that were not fed for this step keep the last step's values; the random state is fed here. */
static clv_status complete_inputs(clv_run *run, int slot) {
    const clv_plan *plan = run->plan;
    clv_session *session = run->session;
    for (int i = 0; i < plan->n_inputs; i++) {
        const clv_tensor *input = plan->graph->tensors[plan->inputs[i]];
        size_t offset = plan->tensors[input->id].offset, bytes = plan->tensors[input->id].bytes;
        if (input == plan->graph->random) {
            uint32_t words[4] = {(uint32_t)session->seed, (uint32_t)(session->seed >> 32), (uint32_t)session->step, 0};
            memcpy(staged_inputs(run, slot) + offset, words, sizeof words);
        } else if (!run->ever_fed[i]) {
            CLV_FAIL(error_of(run), CLV_E_STATE, "input '%s' was not fed before the step", input->name);
        } else if (!run->fed[i]) {
            memcpy(staged_inputs(run, slot) + offset, staged_inputs(run, !slot) + offset, bytes);
        }
        run->fed[i] = false;
    }
    return CLV_OK;
}

clv_status clv_run_step(clv_run *run, int64_t *ticket) {
    CLV_TRY(take_turn(run));
    int slot = (int)(run->next_ticket % CLV__SLOTS);
    clv__step *step = &run->steps[slot];
    CLV_TRY(wait_for_slot(run, slot));
    CLV_TRY(complete_inputs(run, slot));
    step->state = CLV__SLOT_POSTED;
    clv__worker_post(run->device, &step->job);
    if (ticket) *ticket = run->next_ticket;
    run->next_ticket++;
    if (run->plan->trains) run->session->step++;
    return CLV_OK;
}

clv_status clv_run_fetch(clv_run *run, int64_t ticket, const clv_tensor *output, void *data, size_t bytes) {
    const clv_plan *plan = run->plan;
    int at = output && output->graph == plan->graph ? index_of(plan->outputs, plan->n_outputs, output->id) : -1;
    if (at < 0) CLV_FAIL(error_of(run), CLV_E_VALUE, "'%s' is not an output of this run's graph", clv_tensor_name(output));
    if (bytes != clv_tensor_bytes(output)) {
        CLV_FAIL(error_of(run), CLV_E_SHAPE, "output '%s' has %zu bytes, %zu were asked for", output->name,
                 clv_tensor_bytes(output), bytes);
    }
    if (ticket < 0 || ticket >= run->next_ticket || ticket < run->next_ticket - CLV__SLOTS || run->session->active != run) {
        CLV_FAIL(error_of(run), CLV_E_STATE, "step %lld is not kept: only the last %d steps of the run used last are",
                 (long long)ticket, CLV__SLOTS);
    }
    int slot = (int)(ticket % CLV__SLOTS);
    CLV_TRY(wait_for_slot(run, slot));
    memcpy(data, staged_outputs(run, slot) + run->staged_at[at], bytes);
    return CLV_OK;
}

clv_status clv_run_finish(clv_run *run) {
    clv_status status = CLV_OK;
    for (int64_t t = run->next_ticket; t < run->next_ticket + CLV__SLOTS; t++) { // the older step first
        clv_status waited = wait_for_slot(run, (int)(t % CLV__SLOTS));
        if (status == CLV_OK) status = waited;
    }
    return status;
}

// ---- making and unmaking ------------------------------------------------------------------------------------------------

/** Bind the commands. A variant whose kernel the device will not run as planned goes into quarantine, and the plan is made
 *  again without it; pinned choices are not replaced. */
static clv_status bind_or_replan(clv_run *run) {
    for (;;) {
        CLV_TRY(clv_session_reserve(run->session, &run->plan, 1));
        const clv__plan_node *failed;
        clv_status status = clv__run_bind(run, &failed);
        if (status != CLV_E_UNSUPPORTED || !failed || !failed->variant || run->plan->pins) return status;
        clv__run_unbind(run);
        CLV_TRY(clv__quarantine_add(run->device, failed->node->io.op, failed->variant->name, error_of(run)->text));
        run->plan->prepared = false;
        CLV_TRY(clv__plan_again(run->plan));
    }
}

static clv_status run_start(clv_run *run) {
    clv_plan *plan = run->plan;
    run->fed = clv__alloc((size_t)plan->n_inputs, sizeof *run->fed);
    run->ever_fed = clv__alloc((size_t)plan->n_inputs, sizeof *run->ever_fed);
    run->staged_at = clv__alloc((size_t)plan->n_outputs, sizeof *run->staged_at);
    if (!run->fed || !run->ever_fed || !run->staged_at)
        CLV_FAIL(error_of(run), CLV_E_HOST_MEMORY, "no host memory for a run");
    size_t offset = 0;
    for (int i = 0; i < plan->n_outputs; i++) {
        run->staged_at[i] = offset;
        offset += clv__size_align(plan->tensors[plan->outputs[i]].bytes, plan->device->info.alignment_bytes);
    }
    for (int slot = 0; slot < CLV__SLOTS; slot++)
        run->steps[slot] = (clv__step){.job.run = run_step, .run = run, .index = slot};
    CLV_TRY(clv__worker_start(run->device));
    return bind_or_replan(run);
}

clv_status clv_run_create(clv_session *session, clv_plan *plan, clv_run **out) {
    *out = NULL;
    clv_run *run = clv__alloc(1, sizeof *run);
    if (!run) CLV_FAIL(clv__runtime_error_of(session->runtime), CLV_E_HOST_MEMORY, "no host memory for a run");
    run->session = session;
    run->plan = plan;
    run->device = plan->device;
    pthread_mutex_init(&run->lock, NULL);
    pthread_cond_init(&run->changed, NULL);
    clv_status status = run_start(run);
    if (status != CLV_OK) {
        clv_run_destroy(run);
        return status;
    }
    session->n_runs++;
    run->counted = true;
    *out = run;
    return CLV_OK;
}

void clv_run_destroy(clv_run *run) {
    if (!run) return;
    clv_status status = clv_run_finish(run);
    (void)status; // whoever cares has fetched or finished before
    if (run->session->active == run) run->session->active = NULL;
    if (run->counted) run->session->n_runs--;
    clv__run_unbind(run);
    pthread_cond_destroy(&run->changed);
    pthread_mutex_destroy(&run->lock);
    free(run->fed);
    free(run->ever_fed);
    free(run->staged_at);
    free(run);
}
