// SPDX-License-Identifier: Apache-2.0
// Profiles: the sums of a run's recordings, and what a trace needs of them. The thread that waits for a step
// calls this, never a worker. A profile outlives runs, plans and graphs, so it has copies of their strings.
#include "exec/profile.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "exec/run.h"
#include "exec/session.h"

enum { WARM_UP = 2, CLOCK_LOOKS = 5 };

clv_status clv_profile_create(clv_runtime *runtime, const clv_profile_config *config, clv_profile **out) {
    CLV_TRY(CLV__GIVEN(NULL, runtime));
    CLV_TRY(CLV__USABLE(clv__runtime_error_of(runtime), out));
    clv__error *error = clv__runtime_error_of(runtime);
    clv_profile_config wanted = config ? *config : (clv_profile_config){0};
    *out = NULL;
    if (wanted.warm_up < 0 || wanted.slices < 0)
        CLV_FAIL(error, CLV_E_VALUE, "a profile of %lld warm-up steps and %lld slices",
                 (long long)wanted.warm_up, (long long)wanted.slices);
    if (!wanted.warm_up) wanted.warm_up = WARM_UP;
    clv_profile *profile = clv__alloc(1, sizeof *profile);
    if (profile) profile->slices = clv__alloc((size_t)wanted.slices, sizeof *profile->slices);
    if (!profile || !profile->slices) {
        free(profile);
        CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for a profile of %lld slices",
                 (long long)wanted.slices);
    }
    profile->runtime = runtime;
    profile->config = wanted;
    *out = profile;
    return CLV_OK;
}

void clv_profile_destroy(clv_profile *profile) {
    if (!profile) return;
    clv__arena_reset(&profile->arena);
    free(profile->runs);
    free(profile->slices);
    free(profile);
}

void clv_session_set_profile(clv_session *session, clv_profile *profile) {
    session->profile = profile;
}

// ---- a run begins -----------------------------------------------------------------------------------------

/** Room that stays as long as the profile. */
static void *keep(clv_profile *profile, size_t n, size_t size) {
    return clv__arena_alloc(&profile->arena, n ? n : 1, size);
}

/** The plan's node of that number as a row, with strings of its own; false if memory is out. */
static bool describe(clv_profile *profile, const clv_plan *plan, int number, clv__profiled_row *row) {
    clv_plan_node node = clv_plan_node_get(plan, number);
    row->place = plan->nodes[number].place;
    row->transfer = plan->nodes[number].work != CLV__COMPUTE;
    if (row->transfer) node.phase = "transfer";
    node.layer = clv__arena_strdup(&profile->arena, node.layer);
    node.op = clv__arena_strdup(&profile->arena, node.op);
    node.variant = clv__arena_strdup(&profile->arena, node.variant);
    node.also = clv__arena_strdup(&profile->arena, node.also); // others are constants
    row->node.node = node;
    return node.layer && node.op && node.variant && node.also;
}

/** Bytes that live in the arenas of the node's place while it is computed. */
static void find_live_bytes(const clv_plan *plan, int number, clv__profiled_row *row) {
    for (size_t i = 0; i < plan->n_values; i++) {
        const clv__value *value = &plan->values[i];
        if (value->root != (int)i || value->place != row->place || value->first > number ||
            value->last < number)
            continue;
        if (value->segment == CLV__IN_GRADIENTS) row->gradients += value->bytes;
        if (value->segment == CLV__IN_ACTIVATIONS) row->activations += value->bytes;
    }
    row->activations += plan->nodes[number].launches.workspace_bytes;
}

/** What moves between the host and a place around its commands. */
static void describe_io(const clv_plan *plan, int place, const char *op, uint64_t bytes,
                        clv__profiled_row *row) {
    *row = (clv__profiled_row){.place = place, .transfer = true};
    row->node.node = (clv_plan_node){.layer = "",
                                     .op = op,
                                     .variant = "transfer",
                                     .phase = "transfer",
                                     .chosen = "",
                                     .device = plan->places[place].device,
                                     .bytes = bytes,
                                     .traffic = (double)bytes,
                                     .micro_batch = -1};
}

static bool describe_all(clv__profiled *profiled, const clv_plan *plan) {
    for (int i = 0; i < profiled->n_nodes; i++) {
        if (!describe(profiled->profile, plan, i, &profiled->rows[i])) return false;
        find_live_bytes(plan, i, &profiled->rows[i]);
    }
    for (int p = 0; p < plan->n_places; p++) {
        clv__profiled_row *rows = &profiled->rows[profiled->n_nodes + 2 * p];
        uint64_t fetched = 0;
        for (int i = 0; i < plan->places[p].n_outputs; i++)
            fetched += plan->values[plan->places[p].outputs[i]].bytes;
        describe_io(plan, p, "upload", plan->places[p].input_bytes, &rows[0]);
        describe_io(plan, p, "read", fetched, &rows[1]);
    }
    return true;
}

/** How far the device's clock is behind the host's: a marker that has just ended ended now, or a little
 *  earlier. */
static clv_status compare_clocks(void *context) {
    clv__profiled_place *place = context;
    const clv__backend *backend = place->device->backend;
    clv__error *error = clv__runtime_error_of(place->device->runtime);
    for (int i = 0; i < CLOCK_LOOKS; i++) {
        clv__bevent *event;
        uint64_t start = 0, end = 0;
        CLV_TRY(backend->record(place->device->open, CLV__QUEUE_COMPUTE, &event, error));
        clv_status status = clv__device_wait(place->device, event, error);
        int64_t now = (int64_t)clv__nanoseconds();
        bool told = status == CLV_OK && backend->elapsed(event, &start, &end, NULL) == CLV_OK;
        backend->event_destroy(event);
        CLV_TRY(status);
        if (!told || end < 1000) return CLV_OK; // no clock: see exec/activity.c
        if (!place->known || now - (int64_t)end < place->clock_ns) place->clock_ns = now - (int64_t)end;
        place->known = true;
    }
    return CLV_OK;
}

static clv_status look_at_places(clv__profiled *profiled, const clv_plan *plan) {
    for (int p = 0; p < plan->n_places; p++) {
        clv__profiled_place *place = &profiled->places[p];
        place->device = plan->places[p].device;
        clv_memory_info memory = clv_device_memory(place->device);
        for (int c = 0; c < CLV_CATEGORIES; c++) place->held[c] = memory.category[c].current;
        CLV_TRY(clv_device_activity_start(place->device));
        CLV_TRY(clv__worker_call(place->device, compare_clocks, place));
    }
    return CLV_OK;
}

/** Room for the marks of a step on each place and slot. */
static clv_status make_recordings(clv_run *run, clv__profiled *profiled) {
    for (int s = 0; s < run->n_executors; s++) {
        clv__executor *executor = &run->executors[s];
        size_t n = executor->n_commands + 2 + (size_t)executor->place->n_outputs; // and uploads, and reads
        profiled->most_marks += (int)n;
        for (int slot = 0; slot < CLV__SLOTS; slot++) {
            executor->recording[slot].marks = clv__alloc(n, sizeof(clv__mark));
            if (!executor->recording[slot].marks)
                CLV_FAIL(clv__plan_error(run->plan), CLV_E_HOST_MEMORY, "no host memory for a profile");
        }
    }
    return CLV_OK;
}

static clv_status begin(clv_run *run, clv__profiled *profiled) {
    const clv_plan *plan = run->plan;
    clv_profile *profile = profiled->profile;
    profiled->trains = plan->trains;
    profiled->n_nodes = (int)plan->n_nodes;
    profiled->n_places = plan->n_places;
    profiled->n_rows = profiled->n_nodes + 2 * plan->n_places;
    profiled->rows = keep(profile, (size_t)profiled->n_rows, sizeof *profiled->rows);
    profiled->places = keep(profile, (size_t)plan->n_places, sizeof *profiled->places);
    if (!profiled->rows || !profiled->places || !describe_all(profiled, plan) ||
        !clv__grow(&profile->runs, &profile->room, profile->n_runs + 1, sizeof *profile->runs))
        CLV_FAIL(clv__plan_error(plan), CLV_E_HOST_MEMORY, "no host memory for a profile");
    CLV_TRY(look_at_places(profiled, plan));
    CLV_TRY(make_recordings(run, profiled));
    profiled->number = (int)profile->n_runs;
    profile->runs[profile->n_runs++] = profiled;
    run->profiled = profiled;
    return CLV_OK;
}

clv_status clv__profile_begin(clv_run *run) {
    clv_profile *profile = run->session->profile;
    if (!profile) return CLV_OK;
    clv__profiled *profiled = keep(profile, 1, sizeof *profiled);
    if (!profiled) CLV_FAIL(clv__plan_error(run->plan), CLV_E_HOST_MEMORY, "no host memory for a profile");
    profiled->profile = profile;
    return begin(run, profiled);
}

void clv__profile_end(clv_run *run) {
    for (int s = 0; s < run->n_executors; s++) {
        for (int slot = 0; slot < CLV__SLOTS; slot++) free(run->executors[s].recording[slot].marks);
    }
}

// ---- a step -----------------------------------------------------------------------------------------------

void clv__profile_posted(clv_run *run, int slot, int64_t ticket) {
    clv__profiled *profiled = run->profiled;
    clv_profile *profile = profiled->profile;
    size_t room = (size_t)profile->config.slices - profile->n_slices;
    // of the steps under way, the other one may need room as well; the host has a few slices in each
    if (room < 2 * ((size_t)profiled->most_marks + 16)) profile->full = true;
    bool kept = !profile->full;
    profiled->steps[slot] = (clv__profiled_step){.ticket = ticket,
                                                 .posted = clv__nanoseconds(),
                                                 .begin = UINT64_MAX,
                                                 .n_settled = clv__run_pauses(run) ? -run->n_executors : 0,
                                                 .after_pause = profiled->paused,
                                                 .kept = kept};
    profiled->paused = false;
    if (kept)
        profile->n_kept++;
    else
        profile->n_left_out++;
}

static void keep_slice(clv__profiled *profiled, clv__slice slice) {
    clv_profile *profile = profiled->profile;
    if (profile->n_slices >= (size_t)profile->config.slices) return;
    slice.run = profiled->number;
    profile->slices[profile->n_slices++] = slice;
}

/** When a mark began and ended, on the host's clock; false if the driver cannot tell. */
static bool times_of(const clv__profiled_place *place, const clv__mark *mark, uint64_t *start,
                     uint64_t *end) {
    const clv__backend *backend = place->device->backend;
    uint64_t unused;
    if (!place->known || !mark->begin || backend->elapsed(mark->begin, start, end, NULL) != CLV_OK)
        return false;
    if (mark->end) {
        *start = *end; // a marker ends when all before it has ended
        if (backend->elapsed(mark->end, &unused, end, NULL) != CLV_OK) return false;
    }
    if (*end < *start) return false;
    *start += (uint64_t)place->clock_ns;
    *end += (uint64_t)place->clock_ns;
    return true;
}

static void add_mark(clv__profiled *profiled, clv__profiled_place *place, clv__profiled_step *step,
                     const clv__mark *mark) {
    clv__profiled_row *row = &profiled->rows[mark->row];
    uint64_t start, end;
    if (!times_of(place, mark, &start, &end)) return;
    row->node.ns += (double)(end - start);
    if (row->transfer)
        place->transfer_ns += end - start;
    else
        place->busy_ns += end - start;
    if (start < step->begin) step->begin = start;
    if (end > step->end) step->end = end;
    if (step->kept)
        keep_slice(profiled,
                   (clv__slice){.start = start, .end = end, .step = step->ticket, .row = mark->row});
}

/** What was added up so far was the warm-up. */
static void forget_sums(clv__profiled *profiled) {
    for (int i = 0; i < profiled->n_rows; i++) profiled->rows[i].node.ns = 0;
    for (int p = 0; p < profiled->n_places; p++)
        profiled->places[p].busy_ns = profiled->places[p].transfer_ns = 0;
    profiled->n_steps = 0;
    profiled->step_ns = profiled->host_ns = 0;
}

/** Every place has done the step. */
static void add_step(clv__profiled *profiled, const clv__profiled_step *step) {
    uint64_t since = step->posted, end = step->end;
    if (!step->after_pause && profiled->last_end) {
        if (step->posted > profiled->last_end)
            profiled->host_ns += step->posted - profiled->last_end;
        else
            since = profiled->last_end;
    }
    if (end > since) profiled->step_ns += end - since;
    if (end) profiled->last_end = end;
    profiled->n_steps++;
    profiled->n_done++;
}

void clv__profile_settle(clv_run *run, int place, int slot, bool done) {
    clv__profiled *profiled = run->profiled;
    clv__recording *recording = &run->executors[place].recording[slot];
    clv__profiled_step *step = &profiled->steps[slot];
    if (done) {
        // the first of the averaged steps begins: what there is comes from the steps before
        bool warm = step->ticket == profiled->profile->config.warm_up;
        if (warm && step->n_settled <= 0 && step->end == 0) forget_sums(profiled);
        for (int i = 0; i < recording->n; i++)
            add_mark(profiled, &profiled->places[place], step, &recording->marks[i]);
        if (++step->n_settled == run->n_executors) add_step(profiled, step);
    }
    clv__recording_reset(recording, run->executors[place].device);
}

void clv__profile_host(clv_run *run, clv__host_slice what, int64_t ticket, uint64_t bytes, uint64_t since) {
    clv__profiled *profiled = run->profiled;
    if (profiled->profile->full) return;
    keep_slice(
        profiled,
        (clv__slice){.start = since, .end = clv__nanoseconds(), .bytes = bytes, .step = ticket, .row = what});
}
