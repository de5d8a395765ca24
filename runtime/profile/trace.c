// SPDX-License-Identifier: Apache-2.0
// A profile's slices as a Chrome trace: JSON that Perfetto and chrome://tracing read. A process for the host and one for each
// device, in it a thread for what is computed and one for what is carried; a counter says which bytes live on the device.
// Source: "Trace Event Format", the Chromium project: phases X (complete), C (counter), M (metadata); times in microseconds.
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "exec/profile.h"
#include "io/file.h"
#include "io/shown.h"

enum { HOST_PROCESS = 1, FIRST_DEVICE_PROCESS = 2, COMPUTE_THREAD = 1, TRANSFER_THREAD = 2, PIECE = 1 << 16 };

typedef struct writer {
    const clv_profile *profile;
    clv__output output;
    clv__text text;  // what was not written yet
    uint64_t begin;  // of the earliest slice
    bool any;        // an event was written
    uint64_t *shown; // by device of the runtime: gradients and activations that the counter tells, plus 1
} writer;

// ---- JSON -----------------------------------------------------------------------------------------------------------

static void put_string(clv__text *text, const char *string) {
    bool valid = clv__utf8_valid(string);
    clv__text_add_bytes(text, "\"", 1);
    for (; *string; string++) {
        unsigned char c = (unsigned char)*string;
        if (c < 0x20 || c == '"' || c == '\\')
            clv__text_add(text, "\\u%04x", (unsigned)c);
        else
            clv__text_add_bytes(text, c >= 0x80 && !valid ? "?" : string, 1);
    }
    clv__text_add_bytes(text, "\"", 1);
}

static clv_status write_out(writer *w) {
    if (w->text.failed)
        CLV_FAIL(w->output.error, CLV_E_HOST_MEMORY, "no host memory to write the trace '%s'",
                 w->output.path);
    CLV_TRY(clv__output_write(&w->output, w->text.data, w->text.n));
    w->text.n = 0;
    return CLV_OK;
}

/** Begin an event: a comma before all but the first. */
static void begin_event(writer *w, const char *phase, int process, int thread) {
    clv__text_add(&w->text, "%s{\"ph\":\"%s\",\"pid\":%d,\"tid\":%d", w->any ? ",\n" : "", phase, process,
                  thread);
    w->any = true;
}

static void put_time(writer *w, const char *name, uint64_t ns) {
    clv__text_add(&w->text, ",\"%s\":%llu.%03u", name, (unsigned long long)(ns / 1000),
                  (unsigned)(ns % 1000));
}

static void put_name(writer *w, const char *name) {
    clv__text_add(&w->text, ",\"name\":");
    put_string(&w->text, name);
}

// ---- who did it -----------------------------------------------------------------------------------------------------

static int process_of(const clv_device *device) {
    return FIRST_DEVICE_PROCESS + device->info.index;
}

static void name_process(writer *w, int process, const char *name, const char *label) {
    begin_event(w, "M", process, 0);
    clv__text_add(&w->text, ",\"name\":\"process_name\",\"args\":{\"name\":");
    put_string(&w->text, name);
    clv__text_add(&w->text, "}}");
    begin_event(w, "M", process, 0);
    clv__text_add(&w->text, ",\"name\":\"process_labels\",\"args\":{\"labels\":");
    put_string(&w->text, label);
    clv__text_add(&w->text, "}}");
}

static void name_thread(writer *w, int process, int thread, const char *name) {
    begin_event(w, "M", process, thread);
    clv__text_add(&w->text, ",\"name\":\"thread_name\",\"args\":{\"name\":\"%s\"}}", name);
}

static void name_devices(writer *w) {
    const clv_runtime *runtime = w->profile->runtime;
    name_process(w, HOST_PROCESS, "host program", "feeds, hands steps over, fetches");
    for (size_t d = 0; d < runtime->n_devices; d++) {
        const clv_device *device = runtime->devices[d];
        bool used = false;
        for (size_t r = 0; r < w->profile->n_runs; r++)
            for (int p = 0; p < w->profile->runs[r]->n_places; p++)
                used |= w->profile->runs[r]->places[p].device == device;
        if (!used) continue;
        name_process(w, process_of(device), device->info.name, device->info.label);
        name_thread(w, process_of(device), COMPUTE_THREAD, "compute");
        name_thread(w, process_of(device), TRANSFER_THREAD, "transfers");
    }
}

// ---- slices ---------------------------------------------------------------------------------------------------------

/** Bytes on the device by category; of the arenas what lives in them now, and what does not as `free`. */
static void put_memory(writer *w, const clv__profiled *run, const clv__profiled_row *row, uint64_t at) {
    const clv__profiled_place *place = &run->places[row->place];
    const uint64_t *held = place->held;
    uint64_t arenas = held[CLV_GRADIENTS] + held[CLV_ACTIVATIONS] + held[CLV_WORKSPACE],
             live = row->gradients + row->activations, *shown = &w->shown[place->device->info.index];
    if (*shown == live + 1) return;
    *shown = live + 1;
    begin_event(w, "C", process_of(place->device), 0);
    put_time(w, "ts", at - w->begin);
    clv__text_add(&w->text,
                  ",\"name\":\"memory (bytes)\",\"args\":{\"parameters\":%llu,\"optimizer\":%llu,\"io and "
                  "staging\":%llu,\"gradients\":%llu,\"activations\":%llu,\"free in arenas\":%llu}}",
                  (unsigned long long)held[CLV_PARAMETERS], (unsigned long long)held[CLV_OPTIMIZER],
                  (unsigned long long)(held[CLV_IO] + held[CLV_STAGING]), (unsigned long long)row->gradients,
                  (unsigned long long)row->activations,
                  (unsigned long long)(arenas > live ? arenas - live : 0));
}

/** Which run's step it is, for each run counts its own, and whether that run trains. */
static void put_step(writer *w, const clv__slice *slice) {
    clv__text_add(&w->text, ",\"args\":{\"run\":%d,\"trains\":%s,\"step\":%lld", slice->run + 1,
                  w->profile->runs[slice->run]->trains ? "true" : "false", (long long)slice->step + 1);
}

static void put_device_slice(writer *w, const clv__slice *slice) {
    const clv__profiled *run = w->profile->runs[slice->run];
    const clv__profiled_row *row = &run->rows[slice->row];
    const clv_plan_node *node = &row->node.node;
    uint64_t ns = slice->end - slice->start;
    char shape[96], name[256];
    if (!row->transfer) put_memory(w, run, row, slice->start);
    begin_event(w, "X", process_of(run->places[row->place].device),
                row->transfer ? TRANSFER_THREAD : COMPUTE_THREAD);
    put_time(w, "ts", slice->start - w->begin);
    put_time(w, "dur", ns);
    snprintf(name, sizeof name, "%s%s%s", node->op, *node->layer ? " " : "", node->layer);
    put_name(w, name);
    clv__text_add(&w->text, ",\"cat\":\"%s\"", node->phase);
    put_step(w, slice);
    clv__text_add(&w->text, ",\"layer\":");
    put_string(&w->text, node->layer);
    clv__text_add(&w->text, ",\"op\":");
    put_string(&w->text, node->op);
    clv__text_add(&w->text, ",\"variant\":");
    put_string(&w->text, node->variant);
    clv__text_add(&w->text, ",\"bytes\":%.0f", node->traffic);
    if (!row->transfer)
        clv__text_add(&w->text, ",\"flops\":%.0f,\"launches\":%d,\"output\":\"%s\"", node->flops,
                      node->launches, clv_shape_text(&node->output_shape, shape, sizeof shape));
    if (node->micro_batch >= 0) clv__text_add(&w->text, ",\"micro_batch\":%d", node->micro_batch);
    // several launches of a node are as many slices, and share its flops
    if (node->launches <= 1 && ns)
        clv__text_add(&w->text, ",\"GFLOP/s\":%.3f,\"GB/s\":%.3f", node->flops / (double)ns,
                      node->traffic / (double)ns);
    clv__text_add(&w->text, "}}");
}

static void put_host_slice(writer *w, const clv__slice *slice) {
    static const char *const names[] = {"", "feed", "hand over a step", "fetch"};
    begin_event(w, "X", HOST_PROCESS, 1);
    put_time(w, "ts", slice->start - w->begin);
    put_time(w, "dur", slice->end - slice->start);
    put_name(w, names[-slice->row]);
    clv__text_add(&w->text, ",\"cat\":\"host\"");
    put_step(w, slice);
    clv__text_add(&w->text, ",\"bytes\":%llu}}", (unsigned long long)slice->bytes);
}

static clv_status write_all(writer *w) {
    const clv_profile *profile = w->profile;
    clv__text_add(&w->text,
                  "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"version\":\"cleave %s\",\"steps\":%lld,"
                  "\"steps_left_out\":%lld},\n\"traceEvents\":[\n",
                  clv_version(), (long long)profile->n_kept, (long long)profile->n_left_out);
    name_devices(w);
    for (size_t i = 0; i < profile->n_slices; i++) {
        if (profile->slices[i].row < 0)
            put_host_slice(w, &profile->slices[i]);
        else
            put_device_slice(w, &profile->slices[i]);
        if (w->text.n >= PIECE) CLV_TRY(write_out(w));
    }
    clv__text_add(&w->text, "\n]}\n");
    CLV_TRY(write_out(w));
    return clv__output_commit(&w->output, false);
}

clv_status clv_profile_trace(const clv_profile *profile, const char *path) {
    CLV_TRY(CLV__GIVEN(NULL, profile));
    CLV_TRY(CLV__USABLE(clv__runtime_error_of(profile->runtime), path));
    clv__error *error = clv__runtime_error_of(profile->runtime);
    if (!profile->n_slices)
        CLV_FAIL(error, CLV_E_STATE, "nothing was kept for a trace: %s",
                 profile->config.slices ? "no step was done, or its slices were more than there is room for"
                                        : "the profile has room for no slices");
    writer w = {.profile = profile, .begin = UINT64_MAX};
    for (size_t i = 0; i < profile->n_slices; i++)
        if (profile->slices[i].start < w.begin) w.begin = profile->slices[i].start;
    w.shown = clv__alloc(profile->runtime->n_devices, sizeof *w.shown);
    clv_status status = w.shown ? clv__output_open(error, path, &w.output)
                                : clv__error_set(error, CLV_E_HOST_MEMORY, "no host memory for a trace");
    if (status == CLV_OK) status = write_all(&w);
    clv__output_abort(&w.output);
    clv__text_reset(&w.text);
    free(w.shown);
    return status;
}
