// SPDX-License-Identifier: Apache-2.0
// clv_tune: the programs of all candidates first, in few builds; then use by use a race, until time is over; then the file.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "check/findings.h"
#include "device/cache.h"
#include "device/program.h"
#include "graph/quarantine.h"
#include "plan/plan.h"
#include "tuning/tuning.h"
#include "tune/uses.h"

static const double default_seconds = 60;
/** A winner by less than this part is the noise of another day: what ranks choose stays. */
static const double least_gain = 0.05;

typedef struct job {
    clv_runtime *runtime;
    clv_device *device;
    clv__error *error;
    const clv_tune_config *config;
    clv__uses uses;
    const clv__op **vouched; // ops whose samples have been looked at
    size_t n_vouched, vouched_room;
    clv__tuning tuning; // the file to be
    clv_tune_report *report;
    size_t results_room, failures_room;
    double seconds, end; // to spend; until when, by clv__seconds()
} job;

static clv_status no_memory(const job *j) {
    CLV_FAIL(j->error, CLV_E_HOST_MEMORY, "no memory for the report");
}

// ---- variants that fail -----------------------------------------------------------------------------------------------

/** Into quarantine, into the report, and into the file. */
static clv_status fail_variant(job *j, const clv__op *op, const clv__variant *variant, const char *why) {
    clv_tune_report *report = j->report;
    if (clv__quarantined(j->device, op, variant)) return CLV_OK;
    CLV_TRY(clv__quarantine_add(j->device, op, variant, why));
    if (!clv__grow(&report->failures, &j->failures_room, (size_t)report->n_failures + 1,
                   sizeof *report->failures))
        return no_memory(j);
    clv_tune_failure *failure = &report->failures[report->n_failures++];
    *failure = (clv_tune_failure){.op = op->name, .variant = variant->name};
    snprintf(failure->sentence, sizeof failure->sentence, "%s", why);
    char note[512]; // one line of it: compilers' logs are long
    snprintf(note, sizeof note, "%.*s", (int)strcspn(failure->sentence, "\n"), failure->sentence);
    clv__tuned row = {.op = op, .variant = variant, .note = note};
    return clv__tuning_put(&j->tuning, &row) ? CLV_OK : no_memory(j);
}

static clv_status fail_candidates(job *j, const clv__trial *trial) {
    for (int k = 0; k < trial->n_candidates; k++)
        if (trial->candidates[k].failure)
            CLV_TRY(
                fail_variant(j, trial->io.op, trial->candidates[k].variant, trial->candidates[k].failure));
    return CLV_OK;
}

// ---- programs -------------------------------------------------------------------------------------------------------

/** Find who does not build, candidate by candidate; what builds is in the store already, or is now. */
static clv_status find_broken(job *j, clv__trial *trial) {
    for (int k = 0; k < trial->n_candidates; k++) {
        clv__candidate *c = &trial->candidates[k];
        for (size_t l = 0; l < c->launches.n && !c->failure; l++) {
            const clv__launch *launch = &c->launches.items[l];
            clv_status status = clv__programs_build(j->device, &launch, 1);
            if (status == CLV_OK) continue;
            if (status != CLV_E_BUILD) return status;
            char text[CLV__ERROR_BYTES];
            clv__error_read(j->error, text);
            if (!(c->failure = clv__strdup(text))) return no_memory(j);
        }
    }
    return fail_candidates(j, trial);
}

static clv_status build(job *j, clv__trial *const *trials, size_t n) {
    size_t launches = 0;
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < trials[i]->n_candidates; k++) launches += trials[i]->candidates[k].launches.n;
    const clv__launch **list = clv__alloc(launches + 1, sizeof *list);
    if (!list) return no_memory(j);
    launches = 0;
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < trials[i]->n_candidates; k++)
            for (size_t l = 0; l < trials[i]->candidates[k].launches.n; l++)
                list[launches++] = &trials[i]->candidates[k].launches.items[l];
    clv_status status = clv__programs_build(j->device, list, launches);
    free(list);
    for (size_t i = 0; status == CLV_E_BUILD && i < n; i++) CLV_TRY(find_broken(j, trials[i]));
    return status == CLV_E_BUILD ? CLV_OK : status;
}

// ---- racing ---------------------------------------------------------------------------------------------------------

/** Before variants race on shapes that are too large for the reference: the op's quick samples, against the reference. */
static clv_status vouch(job *j, const clv__op *op) {
    clv__sample sample = {0};
    for (size_t i = 0; i < j->n_vouched; i++)
        if (j->vouched[i] == op) return CLV_OK;
    if (!clv__grow(&j->vouched, &j->vouched_room, j->n_vouched + 1, sizeof *j->vouched)) return no_memory(j);
    j->vouched[j->n_vouched++] = op;
    for (int i = 0; clv__op_sample(op, i, &sample); i++) {
        clv__trial *trial;
        if (!sample.quick) continue;
        CLV_TRY(clv__trial_of_sample(j->device, op, &sample, &trial));
        clv_status status = build(j, &trial, 1);
        if (status == CLV_OK) status = clv__trial_run(trial, 0);
        if (status == CLV_OK) status = fail_candidates(j, trial);
        clv__trial_destroy(trial);
        CLV_TRY(status);
    }
    return CLV_OK;
}

/** Candidates that have failed on another use do not run again. */
static clv_status pass_over_failed(job *j, clv__trial *trial) {
    for (int k = 0; k < trial->n_candidates; k++) {
        clv__candidate *c = &trial->candidates[k];
        if (!c->failure && clv__quarantined(j->device, trial->io.op, c->variant) &&
            !(c->failure = clv__strdup("in quarantine")))
            return no_memory(j);
    }
    return CLV_OK;
}

/** What everybody else took, for the reader of the file: `plain 9210.40, local 5140.93`. */
static void note_others(const clv__trial *trial, const clv__candidate *winner, clv__text *note) {
    for (int k = 0; k < trial->n_candidates; k++) {
        const clv__candidate *c = &trial->candidates[k];
        const char *comma = note->n ? ", " : "";
        if (c == winner) continue;
        if (c->median_us > 0)
            clv__text_add(note, "%s%s %.2f", comma, c->variant->name, c->median_us);
        else
            clv__text_add(note, "%s%s not timed", comma, c->variant->name);
    }
}

static clv_status keep_result(job *j, const clv__trial *trial, const char *key) {
    const clv__candidate *ranked = NULL, *winner = NULL;
    clv_tune_report *report = j->report;
    for (int k = 0; k < trial->n_candidates; k++) {
        const clv__candidate *c = &trial->candidates[k];
        if (c->failure || c->median_us <= 0) continue;
        if (!ranked) ranked = c;
        if (!winner || c->median_us < winner->median_us) winner = c;
    }
    if (!winner) return CLV_OK;
    if (winner->median_us > (1 - least_gain) * ranked->median_us) winner = ranked;
    if (!clv__grow(&report->results, &j->results_room, (size_t)report->n_results + 1,
                   sizeof *report->results))
        return no_memory(j);
    clv_tune_result *result = &report->results[report->n_results];
    *result =
        (clv_tune_result){.op = trial->io.op->name,
                          .key = clv__strdup(key),
                          .nodes = trial->nodes,
                          .variant = winner->variant->name,
                          .ranked = ranked->variant->name,
                          .median_us = winner->median_us,
                          .ranked_us = ranked->median_us,
                          .n_candidates = trial->n_candidates < CLV_TUNE_CANDIDATES ? trial->n_candidates
                                                                                    : CLV_TUNE_CANDIDATES};
    if (!result->key) return no_memory(j);
    report->n_results++;
    for (int k = 0; k < result->n_candidates; k++)
        result->candidates[k] =
            (clv_tune_candidate){trial->candidates[k].variant->name, trial->candidates[k].median_us};
    clv__text note = {0};
    note_others(trial, winner, &note);
    clv__tuned row = {.op = trial->io.op,
                      .key = result->key,
                      .variant = winner->variant,
                      .median_us = winner->median_us,
                      .note = note.data};
    bool kept = !note.failed && clv__tuning_put(&j->tuning, &row);
    clv__text_reset(&note);
    return kept ? CLV_OK : no_memory(j);
}

static clv_status race(job *j, size_t at) {
    clv__trial *trial = j->uses.items[at];
    size_t left = j->uses.n - at;
    if (clv__trial_is_large(trial)) CLV_TRY(vouch(j, trial->io.op));
    CLV_TRY(pass_over_failed(j, trial));
    // Half of what is left, for the timing proper: checking takes its part too.
    double share = (j->end - clv__seconds()) / (double)left / trial->n_candidates / 2;
    if (share > 0.25) share = 0.25;
    if (share < 0.002) share = 0.002;
    CLV_TRY(clv__trial_run(trial, share));
    CLV_TRY(fail_candidates(j, trial));
    return keep_result(j, trial, j->uses.keys[at]);
}

static clv_status race_all(job *j) {
    const clv_tune_config *config = j->config;
    clv_tune_report *report = j->report;
    double start = clv__seconds();
    j->end = start + j->seconds;
    for (size_t i = 0; i < j->uses.n; i++) {
        const char *op = j->uses.items[i]->io.op->name;
        report->interrupted = config->progress && !config->progress(config->user, (int)i, (int)j->uses.n, op);
        if (report->interrupted || (i > 0 && clv__seconds() > j->end)) {
            report->left = (int)(j->uses.n - i);
            break;
        }
        CLV_TRY(race(j, i));
    }
    report->seconds = clv__seconds() - start;
    return CLV_OK;
}

// ---- the file -------------------------------------------------------------------------------------------------------

/** What an earlier tuning has found on this device with these kernels stays, unless it was measured again. Anything else that
 *  is in the file's place is replaced. */
static clv_status keep_earlier(job *j) {
    clv__tuning earlier;
    clv__error unread; // what is wrong with the file is told when it is used
    clv__error_init(&unread);
    clv_status status = clv__tuning_load(j->device, j->report->file, &unread, &earlier);
    clv__error_destroy(&unread);
    if (status == CLV_E_HOST_MEMORY) return no_memory(j);
    if (status != CLV_OK) return CLV_OK;
    bool kept = true;
    for (size_t i = 0; i < earlier.n && kept; i++) {
        const clv__tuned *row = &earlier.rows[i];
        // A variant that has failed before, and did not fail now where it was looked at, is right again.
        bool looked_at = false, now_avoided = clv__quarantined(j->device, row->op, row->variant);
        for (size_t k = 0; k < j->n_vouched; k++) looked_at |= j->vouched[k] == row->op;
        if (row->key ? now_avoided || clv__tuning_find(&j->tuning, row->op, row->key) : looked_at) continue;
        kept = clv__tuning_put(&j->tuning, row);
        j->report->kept += row->key != NULL;
    }
    clv__tuning_reset(&earlier);
    return kept ? CLV_OK : no_memory(j);
}

/** What a check found to be wrong is no candidate, and stays in the file: a check has looked at more than a race does. */
static clv_status keep_findings(job *j) {
    clv__tuning earlier;
    clv__error unread;
    clv__error_init(&unread);
    clv_status status = clv__tuning_load(j->device, j->report->file, &unread, &earlier);
    clv__error_destroy(&unread);
    status = status == CLV_E_HOST_MEMORY ? no_memory(j) : CLV_OK;
    for (size_t i = 0; i < earlier.n && status == CLV_OK; i++) {
        const clv__tuned *row = &earlier.rows[i];
        if (!clv__found_by_check(row)) continue;
        if (!clv__quarantined(j->device, row->op, row->variant))
            status = clv__quarantine_add(j->device, row->op, row->variant, row->note);
        if (status == CLV_OK && !clv__tuning_put(&j->tuning, row)) status = no_memory(j);
    }
    clv__tuning_reset(&earlier);
    return status;
}

static clv_status choose_file(job *j) {
    const char *file = j->config->file;
    if (!file && !clv__cache_make_folder(j->runtime))
        CLV_FAIL(j->error, CLV_E_IO,
                 "there is no folder for the tuning file: name the file, or a folder by CLEAVE_CACHE_DIR");
    j->report->file =
        file ? clv__strdup(file) : clv__tuning_path(j->device, clv_runtime_info_get(j->runtime).cache_folder);
    return j->report->file ? CLV_OK : no_memory(j);
}

static clv_status write_file(job *j) {
    CLV_TRY(keep_earlier(j));
    return clv__tuning_save(j->device, &j->tuning, j->report->file, j->error);
}

// ---- all of it ------------------------------------------------------------------------------------------------------

static clv_status run(job *j) {
    const clv_device_info *info = &j->device->info;
    if (!info->usable) CLV_FAIL(j->error, CLV_E_UNSUPPORTED, "cannot tune %s: %s", info->name, info->reason);
    if (info->type == CLV_DEVICE_HOST || !strcmp(info->backend, "null"))
        CLV_FAIL(j->error, CLV_E_UNSUPPORTED,
                 "cannot tune %s: it runs no kernels, so there is nothing to choose", info->name);
    if (!(j->config->seconds >= 0)) CLV_FAIL(j->error, CLV_E_VALUE, "seconds cannot be negative");
    j->seconds = j->config->seconds > 0 ? j->config->seconds : default_seconds;
    CLV_TRY(choose_file(j));
    CLV_TRY(keep_findings(j));
    CLV_TRY(clv__uses_init(j->device, j->config, &j->uses));
    CLV_TRY(clv__device_open(j->device));
    CLV_TRY(build(j, j->uses.items, j->uses.n));
    CLV_TRY(race_all(j));
    CLV_TRY(write_file(j));
    clv__tuning_forget(j->device); // plans from now on read the new file
    return CLV_OK;
}

static void report_end(void *what) {
    clv_tune_report *report = what;
    for (int i = 0; i < report->n_results; i++) free(report->results[i].key);
    free(report->results);
    free(report->failures);
    free(report->file);
}

clv_status clv_tune(clv_runtime *runtime, clv_device *device, const clv_tune_config *config,
                    clv_tune_report **out) {
    CLV_TRY(CLV__GIVEN(NULL, runtime));
    CLV_TRY(CLV__USABLE(clv__runtime_error_of(runtime), device));
    CLV_TRY(CLV__USABLE(clv__runtime_error_of(runtime), out));
    static const clv_tune_config defaults;
    job j = {.runtime = runtime,
             .device = device,
             .error = clv__runtime_error_of(runtime),
             .config = config ? config : &defaults};
    *out = NULL;
    j.report = clv__owned(sizeof *j.report, report_end);
    if (!j.report) return no_memory(&j);
    clv_status status = run(&j);
    clv__uses_reset(&j.uses);
    clv__tuning_reset(&j.tuning);
    free(j.vouched);
    if (status == CLV_OK)
        *out = j.report;
    else
        clv_free(j.report);
    return status;
}
