// SPDX-License-Identifier: Apache-2.0
// The caller's side of a run: feed, step, fetch. Copies to and from staging memory and posts steps to the devices' workers.
// Nothing is allocated in a step, and devices are not waited for: a slot is waited for when it is needed again, two
// steps later.
#include "exec/run.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/patience.h"
#include "exec/session.h"
#include "graph/quarantine.h"

static clv__error *error_of(const clv_run *run) {
    return clv__plan_error(run->plan);
}

/** The worker's job. */
static void run_step(clv__job *job) {
    clv__station_step *step = (clv__station_step *)job;
    clv_run *run = step->station->run;
    clv__bevent *done = NULL;
    // after a failure only steps before it go on: whatever one device completes, all do
    if (clv__run_goes_on(run, step->ticket)) {
        clv_status status = clv__station_enqueue(step->station, step->slot, &done);
        if (status != CLV_OK) clv__run_fail(run, step->ticket, step->station->device, status);
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
    if (run->profiled) run->profiled->paused = true;
    for (int s = 0; s < run->n_stations; s++) { // staging was another's
        clv__station *station = &run->stations[s];
        memset(station->ever_fed, 0, (size_t)station->place->n_inputs * sizeof *station->ever_fed);
        memset(station->fed, 0, (size_t)station->place->n_inputs * sizeof *station->fed);
    }
    return CLV_OK;
}

// ---- feeding, stepping, fetching ------------------------------------------------------------------------------------------

static int index_of(const clv_run *run, const int *values, int n, const clv_tensor *tensor) {
    for (int i = 0; i < n; i++) {
        if (run->plan->values[values[i]].tensor == tensor) return i;
    }
    return -1;
}

/** Copy an input to staging memory, piece by piece; a piece that nobody reads has no place there. */
static void stage(const clv__station *station, int slot, int at, const void *data) {
    const clv_plan *plan = station->run->plan;
    const int *pieces, n = clv__value_pieces(plan, &station->place->inputs[at], &pieces);
    const char *from = data;
    for (int k = 0; k < n; from += plan->values[pieces[k++]].bytes) {
        const clv__value *value = &plan->values[pieces[k]];
        if (value->segment == CLV__IN_INPUTS)
            memcpy(clv__staged_inputs(station, slot) + value->staged, from, value->bytes);
    }
}

clv_status clv_run_feed(clv_run *run, const clv_tensor *input, const void *data, size_t bytes) {
    CLV_TRY(CLV__GIVEN(NULL, run));
    CLV_TRY(CLV__USABLE(error_of(run), run));
    const clv_plan *plan = run->plan;
    if (!input || input->graph != plan->graph || input->kind != CLV__INPUT)
        CLV_FAIL(error_of(run), CLV_E_VALUE, "'%s' is not an input of this run's graph",
                 clv_tensor_name(input));
    if (bytes != clv_tensor_bytes(input)) {
        CLV_FAIL(error_of(run), CLV_E_SHAPE, "input '%s' has %zu bytes, %zu were given", input->name,
                 clv_tensor_bytes(input), bytes);
    }
    if (bytes) CLV_TRY(CLV__USABLE(error_of(run), data));
    CLV_TRY(take_turn(run));
    const uint64_t since = run->profiled ? clv__nanoseconds() : 0;
    int slot = (int)(run->next_ticket % CLV__SLOTS);
    CLV_TRY(clv__run_wait_for_slot(run, slot, run->next_ticket));
    for (int s = 0; s < run->n_stations; s++) { // wherever it is used; nowhere is fine
        clv__station *station = &run->stations[s];
        int at = index_of(run, station->place->inputs, station->place->n_inputs, input);
        if (at < 0) continue;
        if (bytes) stage(station, slot, at, data);
        station->fed[at] = station->ever_fed[at] = true;
    }
    if (run->profiled) clv__profile_host(run, CLV__HOST_FEED, run->next_ticket, bytes, since);
    return CLV_OK;
}

/** Has every input been fed? Asked of all of them before anything is taken as fed for the step: a step that is refused may be
 *  tried again with what was missing. */
static clv_status check_fed(const clv_run *run) {
    for (int s = 0; s < run->n_stations; s++) {
        const clv__station *station = &run->stations[s];
        for (int i = 0; i < station->place->n_inputs; i++) {
            const clv_tensor *input = run->plan->values[station->place->inputs[i]].tensor;
            if (!station->ever_fed[i] && input != run->plan->graph->random)
                CLV_FAIL(error_of(run), CLV_E_STATE, "input '%s' was not fed before the step", input->name);
        }
    }
    return CLV_OK;
}

/** Inputs that were not fed for this step keep the last step's values; the random state is fed here. */
static void complete_inputs(clv__station *station, int slot) {
    const clv_plan *plan = station->run->plan;
    const clv_session *session = station->run->session;
    for (int i = 0; i < station->place->n_inputs; i++) {
        const clv__value *value = &plan->values[station->place->inputs[i]];
        const int *pieces, n = clv__value_pieces(plan, &station->place->inputs[i], &pieces);
        if (value->tensor == plan->graph->random) {
            uint32_t words[4] = {(uint32_t)session->seed, (uint32_t)(session->seed >> 32),
                                 (uint32_t)session->step, 0};
            memcpy(clv__staged_inputs(station, slot) + value->staged, words, sizeof words);
        }
        for (int k = 0; k < n && !station->fed[i] && value->tensor != plan->graph->random; k++) {
            const clv__value *piece = &plan->values[pieces[k]];
            if (piece->bytes && piece->segment == CLV__IN_INPUTS)
                memcpy(clv__staged_inputs(station, slot) + piece->staged,
                       clv__staged_inputs(station, !slot) + piece->staged, piece->bytes);
        }
        station->fed[i] = false;
    }
}

clv_status clv_run_step(clv_run *run, int64_t *ticket) {
    CLV_TRY(CLV__GIVEN(NULL, run));
    CLV_TRY(CLV__USABLE(error_of(run), run));
    CLV_TRY(take_turn(run));
    CLV_TRY(check_fed(run));
    const uint64_t since = run->profiled ? clv__nanoseconds() : 0;
    int slot = (int)(run->next_ticket % CLV__SLOTS);
    CLV_TRY(clv__run_wait_for_slot(run, slot, run->next_ticket));
    if (run->profiled) clv__profile_posted(run, slot, run->next_ticket);
    for (int s = 0; s < run->n_stations; s++) complete_inputs(&run->stations[s], slot);
    clv__workers_lock(run->session->runtime); // every device gets the steps of all runs in one order
    for (int s = 0; s < run->n_stations; s++) {
        clv__station_step *step = &run->stations[s].steps[slot];
        step->state = CLV__SLOT_POSTED;
        step->ticket = run->next_ticket;
        step->updating = step->complete = false;
        clv__worker_post(run->stations[s].device, &step->job);
    }
    clv__workers_unlock(run->session->runtime);
    if (run->profiled) clv__profile_host(run, CLV__HOST_STEP, run->next_ticket, 0, since);
    if (ticket) *ticket = run->next_ticket;
    run->next_ticket++;
    if (run->plan->trains) run->session->step++;
    return CLV_OK;
}

clv_status clv_run_fetch(clv_run *run, int64_t ticket, const clv_tensor *output, void *data, size_t bytes) {
    CLV_TRY(CLV__GIVEN(NULL, run));
    CLV_TRY(CLV__USABLE(error_of(run), run));
    const clv__station *station = NULL;
    int at = -1;
    for (int s = 0; s < run->n_stations && at < 0 && output; s++) {
        station = &run->stations[s];
        at = index_of(run, station->place->outputs, station->place->n_outputs, output);
    }
    if (at < 0)
        CLV_FAIL(error_of(run), CLV_E_VALUE, "'%s' is not an output of this run's graph",
                 clv_tensor_name(output));
    if (bytes != clv_tensor_bytes(output)) {
        CLV_FAIL(error_of(run), CLV_E_SHAPE, "output '%s' has %zu bytes, %zu were asked for", output->name,
                 clv_tensor_bytes(output), bytes);
    }
    if (bytes) CLV_TRY(CLV__USABLE(error_of(run), data));
    if (ticket < 0 || ticket >= run->next_ticket || ticket < run->next_ticket - CLV__SLOTS ||
        run->session->active != run) {
        CLV_FAIL(error_of(run), CLV_E_STATE,
                 "step %lld is not kept: only the last %d steps of the run used last are", (long long)ticket,
                 CLV__SLOTS);
    }
    const uint64_t since = run->profiled ? clv__nanoseconds() : 0;
    int slot = (int)(ticket % CLV__SLOTS);
    CLV_TRY(clv__run_wait_for_slot(run, slot, ticket));
    if (bytes) memcpy(data, clv__staged_outputs(station, slot) + station->staged_at[at], bytes);
    if (run->profiled) clv__profile_host(run, CLV__HOST_FETCH, ticket, bytes, since);
    return CLV_OK;
}

clv_status clv_run_finish(clv_run *run) {
    CLV_TRY(CLV__GIVEN(NULL, run));
    CLV_TRY(CLV__USABLE(error_of(run), run));
    clv__run_wait(run);
    return clv__run_status(run, run->next_ticket);
}

// ---- making and unmaking ----------------------------------------------------------------------------------------------------

/** Where the session has what the commands work on. */
static clv_status find_memory(clv_run *run) {
    const clv_plan *plan = run->plan;
    for (int s = 0; s < run->n_stations; s++)
        run->stations[s].home = clv__session_home(run->session, run->stations[s].device);
    run->holdings = clv__alloc(plan->n_values, sizeof *run->holdings);
    if (!run->holdings) CLV_FAIL(error_of(run), CLV_E_HOST_MEMORY, "no host memory for a run");
    for (size_t id = 0; id < plan->n_values; id++) {
        const clv__value *value = &plan->values[id];
        if (value->segment != CLV__IN_SESSION) continue;
        const clv_tensor *tensor = plan->values[value->root].tensor;
        run->holdings[id] =
            &clv__session_kept(run->session, tensor->name, run->stations[value->place].device)->memory;
    }
    return CLV_OK;
}

/** Bind the commands. A variant whose kernel the device will not run as planned goes into quarantine, and the plan is made
 *  again without it; pinned choices are not replaced. */
static clv_status bind_or_replan(clv_run *run) {
    for (;;) {
        CLV_TRY(clv_session_reserve(run->session, &run->plan, 1));
        const clv__plan_node *failed = NULL;
        clv_status status = find_memory(run);
        if (status == CLV_OK) status = clv__run_bind(run, &failed);
        free(run->holdings);
        run->holdings = NULL;
        if (status != CLV_E_UNSUPPORTED || !failed || !failed->variant || run->plan->pins) return status;
        clv__run_unbind(run);
        CLV_TRY(clv__quarantine_add(run->plan->places[failed->place].device, failed->node->io.op,
                                    failed->variant->name, error_of(run)->text));
        CLV_TRY(clv__plan_again(run->plan));
    }
}

static clv_status station_start(clv_run *run, int index) {
    clv__station *station = &run->stations[index];
    const clv__place *place = &run->plan->places[index];
    *station =
        (clv__station){.run = run, .index = index, .place = place, .device = place->device, .waited_in = -1};
    station->fed = clv__alloc((size_t)place->n_inputs, sizeof *station->fed);
    station->ever_fed = clv__alloc((size_t)place->n_inputs, sizeof *station->ever_fed);
    station->staged_at = clv__alloc((size_t)place->n_outputs, sizeof *station->staged_at);
    if (!station->fed || !station->ever_fed || !station->staged_at)
        CLV_FAIL(error_of(run), CLV_E_HOST_MEMORY, "no host memory for a run");
    size_t offset = 0;
    for (int i = 0; i < place->n_outputs; i++) {
        station->staged_at[i] = offset;
        offset += clv__size_align(run->plan->values[place->outputs[i]].bytes, place->alignment);
    }
    // of work: one, and one more after each receive, and each wait, of which a plan that is made anew may have others
    size_t stretches = 1 + (size_t)run->plan->n_places;
    for (size_t i = 0; i < run->plan->n_nodes; i++)
        stretches += run->plan->nodes[i].place == index && run->plan->nodes[i].work == CLV__RECEIVE;
    for (int slot = 0; slot < CLV__SLOTS; slot++) {
        station->finished[slot].ticket = -1;
        station->steps[slot] = (clv__station_step){.job.run = run_step, .station = station, .slot = slot};
        station->activity[slot].stretches = clv__alloc(stretches, sizeof *station->activity[slot].stretches);
        if (!station->activity[slot].stretches)
            CLV_FAIL(error_of(run), CLV_E_HOST_MEMORY, "no host memory for a run");
    }
    return clv__worker_start(place->device);
}

static clv_status run_start(clv_run *run) {
    run->stations = clv__alloc((size_t)run->plan->n_places, sizeof *run->stations);
    if (!run->stations) CLV_FAIL(error_of(run), CLV_E_HOST_MEMORY, "no host memory for a run");
    for (int i = 0; i < run->plan->n_places; i++) {
        run->n_stations++;
        CLV_TRY(station_start(run, i));
    }
    CLV_TRY(bind_or_replan(run));
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
        for (int s = 0; s < run->n_stations; s++)
            run->stations[s].device->backend->event_destroy(run->stations[s].finished[slot].event);
        for (size_t i = 0; run->passages[slot] && i < run->plan->n_transfers; i++) {
            clv__station *sender = &run->stations[run->plan->values[run->plan->transfers[i].from].place];
            sender->device->backend->event_destroy(run->passages[slot][i].event);
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
    drop_events(run);
    clv__run_unbind(run);
    clv__profile_end(run);
    for (int s = 0; s < run->n_stations; s++) {
        free(run->stations[s].fed);
        free(run->stations[s].ever_fed);
        free(run->stations[s].staged_at);
        for (int slot = 0; slot < CLV__SLOTS; slot++) free(run->stations[s].activity[slot].stretches);
    }
    free(run->stations);
    pthread_cond_destroy(&run->changed);
    pthread_cond_destroy(&run->enqueued);
    pthread_mutex_destroy(&run->lock);
    free(run);
}
