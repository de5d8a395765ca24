// SPDX-License-Identifier: Apache-2.0
// The caller's side of a run: feed, step, fetch. It copies to and from staging memory and posts steps to the
// devices' workers. Within a step nothing is allocated, and no device is waited for: a slot is waited for
// when it is needed again, two steps later.
#include "exec/elsewhere.h"
#include "exec/exchange.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/patience.h"
#include "exec/session.h"
#include "graph/quarantine.h"
#include "plan/passes.h"

static clv__error *error_of(const clv_run *run) {
    return clv__plan_error(run->plan);
}

/** The worker's job. */
static void run_step(clv__job *job) {
    clv__executor_step *step = (clv__executor_step *)job;
    clv_run *run = step->executor->run;
    clv__bevent *done = NULL;
    // after a failure only steps before it go on: whatever one device completes, all do
    if (clv__run_goes_on(run, step->ticket)) {
        clv_status status = clv__executor_enqueue(step->executor, step->slot, &done);
        if (status != CLV_OK) clv__run_fail(run, step->ticket, step->executor->device, status);
    }
    pthread_mutex_lock(&run->lock);
    step->done = done;
    step->state = CLV__SLOT_ENQUEUED;
    pthread_cond_broadcast(&run->enqueued);
    pthread_mutex_unlock(&run->lock);
}

/** Take the session's memory over from another run, whose steps are waited for. */
static clv_status take_turn(clv_run *run) {
    clv_session *session = run->session;
    if (session->active == run) return CLV_OK;
    if (session->active) CLV_TRY(clv_run_finish(session->active));
    session->active = run;
    run->once = false; // another may have written parameters, and where this one keeps what it made of them
    run->paused = -1;
    if (run->profiled) run->profiled->paused = true;
    for (int s = 0; s < run->n_executors; s++) { // staging was another's
        clv__executor *executor = &run->executors[s];
        memset(executor->ever_fed, 0, (size_t)executor->place->n_inputs * sizeof *executor->ever_fed);
        memset(executor->fed, 0, (size_t)executor->place->n_inputs * sizeof *executor->fed);
    }
    return CLV_OK;
}

// ---- feeding, stepping, fetching --------------------------------------------------------------------------

static int index_of(const clv_run *run, const int *values, int n, const clv_tensor *tensor) {
    for (int i = 0; i < n; i++) {
        if (run->plan->values[values[i]].tensor == tensor) return i;
    }
    return -1;
}

/** The value of a fed tensor where it is used first; NULL: nowhere. */
static const clv__value *fed_value(const clv_run *run, const clv_tensor *input) {
    for (int s = 0; s < run->n_executors; s++) {
        const clv__place *place = run->executors[s].place;
        const int at = index_of(run, place->inputs, place->n_inputs, input);
        if (at >= 0) return &run->plan->values[place->inputs[at]];
    }
    return NULL;
}

/** What was made there (clv__run_lend) is there. */
static void copy_to(char *to, const char *from, size_t bytes) {
    if (to != from) memcpy(to, from, bytes);
}

/** Is there a step to be resumed? */
static bool is_paused(const clv_run *run) {
    return run->paused >= 0 && run->session->active == run;
}

/** Copy an input to staging memory, piece by piece; a piece that nobody reads has no place there. */
static void stage(const clv__executor *executor, int slot, int at, const void *data) {
    const clv_plan *plan = executor->run->plan;
    const int *pieces, n = clv__value_pieces(plan, &executor->place->inputs[at], &pieces);
    const char *from = data;
    for (int k = 0; k < n; from += plan->values[pieces[k++]].bytes) {
        const clv__value *value = &plan->values[pieces[k]];
        if (value->segment == CLV__IN_INPUTS)
            copy_to(clv__staged_inputs(executor, slot) + value->staged, from, value->bytes);
    }
}

clv_status clv__run_lend(clv_run *run, const clv_tensor *input, void **out) {
    const clv_plan *plan = run->plan;
    const int *pieces, slot = (int)(run->next_ticket % CLV__SLOTS);
    int n = 0;
    *out = NULL;
    CLV_TRY(take_turn(run));
    CLV_TRY(clv__run_wait_for_slot(run, slot, run->next_ticket));
    for (int s = 0; s < run->n_executors; s++) {
        const clv__executor *executor = &run->executors[s];
        const int at = index_of(run, executor->place->inputs, executor->place->n_inputs, input);
        if (at < 0) continue;
        const clv__value *value = &plan->values[executor->place->inputs[at]];
        n += clv__value_pieces(plan, &executor->place->inputs[at], &pieces);
        if (value->segment == CLV__IN_INPUTS) *out = clv__staged_inputs(executor, slot) + value->staged;
    }
    if (n != 1) *out = NULL;
    return CLV_OK;
}

clv_status clv_run_feed(clv_run *run, const clv_tensor *input, const void *data, size_t bytes) {
    CLV_TRY(CLV__GIVEN(NULL, run));
    CLV_TRY(CLV__USABLE(error_of(run), run));
    const clv_plan *plan = run->plan;
    CLV_TRY(CLV__USABLE(error_of(run), input));
    if (bytes) CLV_TRY(CLV__USABLE(error_of(run), data));
    if (input->graph != plan->graph || input->kind != CLV__INPUT)
        CLV_FAIL(error_of(run), CLV_E_VALUE, "'%s' is not an input of this run's graph",
                 clv_tensor_name(input));
    const clv__value *value = fed_value(run, input);
    if (value && bytes != value->bytes) {
        CLV_FAIL(error_of(run), CLV_E_SHAPE, "input '%s' has %zu bytes, %zu were given", input->name,
                 value->bytes, bytes);
    }
    if (value && input->late && !is_paused(run))
        CLV_FAIL(error_of(run), CLV_E_STATE,
                 "input '%s' is late: it is fed between clv_run_step and clv_run_resume", input->name);
    CLV_TRY(take_turn(run));
    const uint64_t since = run->profiled ? clv__nanoseconds() : 0;
    const int64_t ticket = value && input->late ? run->paused : run->next_ticket;
    int slot = (int)(ticket % CLV__SLOTS);
    CLV_TRY(clv__run_wait_for_slot(run, slot, ticket));
    for (int s = 0; s < run->n_executors; s++) { // wherever it is used; nowhere is fine
        clv__executor *executor = &run->executors[s];
        int at = index_of(run, executor->place->inputs, executor->place->n_inputs, input);
        if (at < 0) continue;
        if (bytes) stage(executor, slot, at, data);
        executor->fed[at] = executor->ever_fed[at] = true;
    }
    if (run->profiled) clv__profile_host(run, CLV__HOST_FEED, ticket, bytes, since);
    return CLV_OK;
}

/** Is it written here, and not fed? */
static bool is_own_input(const clv_plan *plan, const clv__value *value) {
    return value->writer || value->tensor == plan->graph->random;
}

/** Has every input been fed, late ones or the others? Asked of all of them before anything is taken as fed
 *  for the step: a step that is refused may be tried again with what was missing. */
static clv_status check_fed(const clv_run *run, bool late) {
    for (int s = 0; s < run->n_executors; s++) {
        const clv__executor *executor = &run->executors[s];
        for (int i = 0; i < executor->place->n_inputs; i++) {
            const clv__value *input = &run->plan->values[executor->place->inputs[i]];
            if (!executor->ever_fed[i] && input->tensor->late == late && !is_own_input(run->plan, input))
                CLV_FAIL(error_of(run), CLV_E_STATE, "input '%s' was not fed before the step",
                         input->tensor->name);
        }
    }
    return CLV_OK;
}

/** Inputs that were not fed for this step keep the last step's values; the random state is
 *  written here, and inputs of the plan's own by their passes. */
static void complete_inputs(clv__executor *executor, int slot, bool late) {
    const clv_plan *plan = executor->run->plan;
    const clv_session *session = executor->run->session;
    for (int i = 0; i < executor->place->n_inputs; i++) {
        const clv__value *value = &plan->values[executor->place->inputs[i]];
        const int *pieces, n = clv__value_pieces(plan, &executor->place->inputs[i], &pieces);
        if (value->tensor->late != late) continue;
        if (value->tensor == plan->graph->random) {
            uint32_t words[4] = {(uint32_t)session->seed, (uint32_t)(session->seed >> 32),
                                 (uint32_t)session->step, 0};
            memcpy(clv__staged_inputs(executor, slot) + value->staged, words, sizeof words);
        }
        if (value->writer && value->segment == CLV__IN_INPUTS)
            value->writer->write(plan, executor->place->inputs[i], executor->arenas->gradients.layout.chunk,
                                 clv__staged_inputs(executor, slot) + value->staged);
        for (int k = 0; k < n && !executor->fed[i] && !is_own_input(plan, value); k++) {
            const clv__value *piece = &plan->values[pieces[k]];
            if (piece->bytes && piece->segment == CLV__IN_INPUTS)
                memcpy(clv__staged_inputs(executor, slot) + piece->staged,
                       clv__staged_inputs(executor, !slot) + piece->staged, piece->bytes);
        }
        executor->fed[i] = false;
    }
}

static clv_status check_averages(const clv_run *run) {
    if (run->session->swapped && run->plan->trains)
        CLV_FAIL(error_of(run), CLV_E_STATE,
                 "clv_run_step: the parameters hold their averages, and the step would train those; swap "
                 "them back first (clv_averages_swap)");
    return CLV_OK;
}

/** Hand a step, or the rest of one, to the workers. */
static void post(clv_run *run, int64_t ticket, bool rest) {
    clv__workers_lock(run->session->runtime); // every device gets the steps of all runs in one order
    for (int s = 0; s < run->n_executors; s++) {
        clv__executor_step *step = &run->executors[s].steps[ticket % CLV__SLOTS];
        step->state = CLV__SLOT_POSTED;
        step->ticket = ticket;
        step->resumed = rest;
        step->once = !rest && (!run->once || run->each_step);
        step->updating = step->complete = false;
        clv__worker_post(run->executors[s].device, &step->job);
    }
    clv__workers_unlock(run->session->runtime);
    run->once = true; // if it fails, no step follows
}

clv_status clv_run_step(clv_run *run, int64_t *ticket) {
    CLV_TRY(CLV__GIVEN(NULL, run));
    CLV_TRY(CLV__USABLE(error_of(run), run));
    CLV_TRY(take_turn(run));
    CLV_TRY(check_averages(run));
    CLV_TRY(check_fed(run, false));
    const uint64_t since = run->profiled ? clv__nanoseconds() : 0;
    int slot = (int)(run->next_ticket % CLV__SLOTS);
    CLV_TRY(clv__run_wait_for_slot(run, slot, run->next_ticket));
    if (run->profiled) clv__profile_posted(run, slot, run->next_ticket);
    for (int s = 0; s < run->n_executors; s++) complete_inputs(&run->executors[s], slot, false);
    post(run, run->next_ticket, false);
    if (run->profiled) clv__profile_host(run, CLV__HOST_STEP, run->next_ticket, 0, since);
    if (ticket) *ticket = run->next_ticket;
    run->paused = clv__run_pauses(run) ? run->next_ticket : -1;
    run->next_ticket++;
    if (run->plan->trains) run->session->step++;
    return CLV_OK;
}

clv_status clv_run_resume(clv_run *run, int64_t ticket) {
    CLV_TRY(CLV__GIVEN(NULL, run));
    CLV_TRY(CLV__USABLE(error_of(run), run));
    if (!is_paused(run) || ticket != run->paused)
        CLV_FAIL(error_of(run), CLV_E_STATE,
                 "step %lld cannot be resumed: it was already, or its graph has no late inputs, or a later "
                 "step took its place",
                 (long long)ticket);
    CLV_TRY(check_averages(run));
    CLV_TRY(check_fed(run, true));
    const uint64_t since = run->profiled ? clv__nanoseconds() : 0;
    const int slot = (int)(ticket % CLV__SLOTS);
    CLV_TRY(clv__run_wait_for_slot(run, slot, ticket));
    for (int s = 0; s < run->n_executors; s++) complete_inputs(&run->executors[s], slot, true);
    post(run, ticket, true);
    run->paused = -1;
    if (run->profiled) clv__profile_host(run, CLV__HOST_STEP, ticket, 0, since);
    return CLV_OK;
}

/** Where an output lies in a slot's staging memory. On a device of another rank nothing is read back: it is
 *  there as far as ranks exchange it. */
static size_t staged_output(const clv__executor *executor, int at) {
    const clv_plan *plan = executor->run->plan;
    for (size_t i = 0; executor->device->elsewhere && i < plan->n_transfers; i++)
        if (plan->transfers[i].exchanged && plan->transfers[i].to == executor->place->outputs[at])
            return plan->transfers[i].staged_at;
    return executor->staged_at[at];
}

static clv_status find_output(clv_run *run, const clv_tensor *output, clv__executor **executor, int *at) {
    *at = -1;
    for (int s = 0; s < run->n_executors && *at < 0; s++) {
        *executor = &run->executors[s];
        *at = index_of(run, (*executor)->place->outputs, (*executor)->place->n_outputs, output);
    }
    if (*at < 0)
        CLV_FAIL(error_of(run), CLV_E_VALUE, "'%s' is not an output of this run's graph",
                 clv_tensor_name(output));
    return CLV_OK;
}

clv_status clv_run_see(clv_run *run, const clv_tensor *output, void **data) {
    CLV_TRY(CLV__GIVEN(NULL, run));
    CLV_TRY(CLV__USABLE(error_of(run), run));
    CLV_TRY(CLV__USABLE(error_of(run), data));
    CLV_TRY(CLV__USABLE(error_of(run), output));
    clv__executor *executor;
    int at;
    CLV_TRY(find_output(run, output, &executor, &at));
    const int id = executor->place->outputs[at];
    const clv__value *value = &run->plan->values[id];
    *data = NULL;
    if (value->bytes == 0) return CLV_OK;
    if (run->next_ticket)
        CLV_FAIL(error_of(run), CLV_E_STATE, "output '%s' can be seen from the run's first step on alone",
                 output->name);
    if (!executor->device->traits.host_memory || value->segment != CLV__IN_OUTPUTS ||
        (clv__run_pauses(run) && !executor->early[at] &&
         clv__executor_touches(executor, value, executor->pause)))
        CLV_FAIL(error_of(run), CLV_E_UNSUPPORTED, "output '%s' cannot be seen where it lies: %s",
                 output->name,
                 executor->device->traits.host_memory ? "its memory is used for other values, too"
                                                      : "its device has memory of its own");
    const clv__chunks *io = &executor->arenas->io;
    char *chunk =
        executor->device->backend->buffer_pointer(io->items[value->offset / io->layout.chunk].buffer);
    executor->seen[at] = *data = chunk + value->offset % io->layout.chunk;
    return CLV_OK;
}

clv_status clv_run_fetch(clv_run *run, int64_t ticket, const clv_tensor *output, void *data, size_t bytes) {
    CLV_TRY(CLV__GIVEN(NULL, run));
    CLV_TRY(CLV__USABLE(error_of(run), run));
    CLV_TRY(CLV__USABLE(error_of(run), output));
    if (bytes) CLV_TRY(CLV__USABLE(error_of(run), data));
    clv__executor *executor;
    int at;
    CLV_TRY(find_output(run, output, &executor, &at));
    const clv__value *value = &run->plan->values[executor->place->outputs[at]];
    if (bytes != value->bytes) {
        CLV_FAIL(error_of(run), CLV_E_SHAPE, "output '%s' has %zu bytes, %zu were asked for", output->name,
                 value->bytes, bytes);
    }
    if (ticket < 0 || ticket >= run->next_ticket || ticket < run->next_ticket - CLV__SLOTS ||
        run->session->active != run) {
        CLV_FAIL(error_of(run), CLV_E_STATE,
                 "step %lld is not kept: only the last %d steps of the run used last are", (long long)ticket,
                 CLV__SLOTS);
    }
    const uint64_t since = run->profiled ? clv__nanoseconds() : 0;
    int slot = (int)(ticket % CLV__SLOTS);
    if (clv__run_pauses(run) && !executor->steps[slot].resumed && !executor->early[at])
        CLV_FAIL(error_of(run), CLV_E_STATE,
                 "output '%s' is made of late inputs, and step %lld was not resumed (clv_run_resume)",
                 output->name, (long long)ticket);
    CLV_TRY(clv__run_wait_for_slot(run, slot, ticket));
    if (executor->seen[at] && ticket != run->next_ticket - 1)
        CLV_FAIL(error_of(run), CLV_E_STATE,
                 "of output '%s', which is seen (clv_run_see), step %lld is not kept", output->name,
                 (long long)ticket);
    const void *from = executor->seen[at];
    if (!from) from = clv__staged_outputs(executor, slot) + staged_output(executor, at);
    if (bytes) memcpy(data, from, bytes);
    if (run->profiled) clv__profile_host(run, CLV__HOST_FETCH, ticket, bytes, since);
    return CLV_OK;
}

clv_status clv_run_finish(clv_run *run) {
    CLV_TRY(CLV__GIVEN(NULL, run));
    CLV_TRY(CLV__USABLE(error_of(run), run));
    clv__run_wait(run);
    clv__between_settle(run->between);
    return clv__run_status(run, run->next_ticket);
}

// ---- making and unmaking ----------------------------------------------------------------------------------

/** Where the session has what the commands work on. */
static clv_status find_memory(clv_run *run) {
    const clv_plan *plan = run->plan;
    for (int s = 0; s < run->n_executors; s++)
        run->executors[s].arenas = clv__session_arenas(run->session, run->executors[s].device);
    run->holdings = clv__alloc(plan->n_values, sizeof *run->holdings);
    if (!run->holdings) CLV_FAIL(error_of(run), CLV_E_HOST_MEMORY, "no host memory for a run");
    for (size_t id = 0; id < plan->n_values; id++) {
        const clv__value *value = &plan->values[id];
        if (value->segment != CLV__IN_SESSION) continue;
        const clv_tensor *tensor = plan->values[value->root].tensor;
        const clv__kept *kept =
            clv__session_kept(run->session, tensor->name, run->executors[value->place].device);
        run->holdings[id] = &kept->memory;
        run->each_step |= kept->used && tensor->category != CLV_ACTIVATIONS;
    }
    return CLV_OK;
}

/** The plan that was made again without what a device refused cannot be had either: both are told. */
static clv_status fail_without(const clv_run *run, const char *refused, clv_status status) {
    if (*refused) clv__error_prefix(error_of(run), "%.240s; without that kernel: ", refused);
    return status;
}

/** Bind the commands. A variant whose kernel the device will not run as planned goes into quarantine, and the
 *  plan is made again without it; pinned choices are not replaced. */
static clv_status bind_or_replan(clv_run *run) {
    char refused[CLV__ERROR_BYTES] = "";
    for (;;) {
        clv_status room = clv_session_reserve(run->session, &run->plan, 1);
        if (room != CLV_OK) return fail_without(run, refused, room);
        const clv__plan_node *failed = NULL;
        clv_status status = find_memory(run);
        if (status == CLV_OK) status = clv__run_bind(run, &failed);
        free(run->holdings);
        run->holdings = NULL;
        if (status != CLV_E_UNSUPPORTED || !failed || !failed->variant || run->plan->pins) return status;
        clv__run_unbind(run);
        clv__error_read(error_of(run), refused);
        CLV_TRY(clv__quarantine_add(run->plan->places[failed->place].device, failed->node->io.op,
                                    failed->variant, refused));
        status = clv__plan_again(run->plan);
        if (status != CLV_OK) return fail_without(run, refused, status);
    }
}

static clv_status executor_start(clv_run *run, int index) {
    clv__executor *executor = &run->executors[index];
    const clv__place *place = &run->plan->places[index];
    *executor =
        (clv__executor){.run = run, .index = index, .place = place, .device = place->device, .waited_in = -1};
    executor->fed = clv__alloc((size_t)place->n_inputs, sizeof *executor->fed);
    executor->ever_fed = clv__alloc((size_t)place->n_inputs, sizeof *executor->ever_fed);
    executor->staged_at = clv__alloc((size_t)place->n_outputs, sizeof *executor->staged_at);
    executor->early = clv__alloc((size_t)place->n_outputs, sizeof *executor->early);
    executor->seen = clv__alloc((size_t)place->n_outputs, sizeof *executor->seen);
    if (!executor->fed || !executor->ever_fed || !executor->staged_at || !executor->early || !executor->seen)
        CLV_FAIL(error_of(run), CLV_E_HOST_MEMORY, "no host memory for a run");
    size_t offset = 0;
    for (int i = 0; i < place->n_outputs; i++) {
        executor->staged_at[i] = offset;
        offset += clv__size_align(run->plan->values[place->outputs[i]].bytes, place->alignment);
    }
    // of work: one, and one more after each receive, and each wait, of which a plan that is made anew may
    // have others
    size_t stretches = 1 + (size_t)run->plan->n_places;
    for (size_t i = 0; i < run->plan->n_nodes; i++)
        stretches += run->plan->nodes[i].place == index && run->plan->nodes[i].work == CLV__RECEIVE;
    for (int slot = 0; slot < CLV__SLOTS; slot++) {
        executor->finished[slot].ticket = -1;
        executor->steps[slot] = (clv__executor_step){.job.run = run_step, .executor = executor, .slot = slot};
        executor->activity[slot].stretches =
            clv__alloc(stretches, sizeof *executor->activity[slot].stretches);
        if (!executor->activity[slot].stretches)
            CLV_FAIL(error_of(run), CLV_E_HOST_MEMORY, "no host memory for a run");
    }
    return clv__worker_start(place->device);
}

static clv_status run_start(clv_run *run) {
    run->executors = clv__alloc((size_t)run->plan->n_places, sizeof *run->executors);
    if (!run->executors) CLV_FAIL(error_of(run), CLV_E_HOST_MEMORY, "no host memory for a run");
    for (int i = 0; i < run->plan->n_places; i++) {
        run->n_executors++;
        CLV_TRY(executor_start(run, i));
    }
    CLV_TRY(bind_or_replan(run));
    CLV_TRY(clv__exchange_create(run, &run->exchange));
    CLV_TRY(clv__between_create(run, &run->between));
    return clv__profile_begin(run);
}

clv_status clv_run_create(clv_session *session, clv_plan *plan, clv_run **out) {
    CLV_TRY(CLV__GIVEN(NULL, session));
    CLV_TRY(CLV__USABLE(clv__runtime_error_of(session->runtime), out));
    CLV_TRY(CLV__USABLE(clv__runtime_error_of(session->runtime), plan));
    *out = NULL;
    clv_run *run = clv__alloc(1, sizeof *run);
    if (!run)
        CLV_FAIL(clv__runtime_error_of(session->runtime), CLV_E_HOST_MEMORY, "no host memory for a run");
    run->session = session;
    run->plan = plan;
    run->paused = -1;
    pthread_mutex_init(&run->lock, NULL);
    pthread_cond_init(&run->changed, NULL);
    clv__cond_init(&run->enqueued);
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

/** Events of values that were sent and, after a failure, never received; and of the last steps' ends. */
static void drop_events(clv_run *run) {
    for (int slot = 0; slot < CLV__SLOTS; slot++) {
        for (int s = 0; s < run->n_executors; s++)
            run->executors[s].device->backend->event_destroy(run->executors[s].finished[slot].event);
        for (size_t i = 0; run->in_flight[slot] && i < run->plan->n_transfers; i++) {
            clv__executor *sender = &run->executors[run->plan->values[run->plan->transfers[i].from].place];
            sender->device->backend->event_destroy(run->in_flight[slot][i].event);
        }
    }
}

void clv_run_destroy(clv_run *run) {
    if (!run || !clv__error_at_home(error_of(run))) return;
    clv__run_settle(run);
    if (run->session->active == run) run->session->active = NULL;
    if (run->counted) run->session->n_runs--;
    if (run->stuck) {
        clv__profile_end(run);
        clv__leave(run);
        return;
    }
    clv__exchange_destroy(run->exchange);
    clv__between_destroy(run->between);
    drop_events(run);
    clv__run_unbind(run);
    clv__profile_end(run);
    for (int s = 0; s < run->n_executors; s++) {
        free(run->executors[s].fed);
        free(run->executors[s].ever_fed);
        free(run->executors[s].staged_at);
        free(run->executors[s].early);
        free(run->executors[s].seen);
        for (int slot = 0; slot < CLV__SLOTS; slot++) free(run->executors[s].activity[slot].stretches);
    }
    free(run->executors);
    pthread_cond_destroy(&run->changed);
    pthread_cond_destroy(&run->enqueued);
    pthread_mutex_destroy(&run->lock);
    free(run);
}
