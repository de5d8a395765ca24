// SPDX-License-Identifier: Apache-2.0
// Fills a clv_check_report; see report.h.
#include "check/report.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** The line of an op's variant in the list of worst cases, made when new. */
static clv_check_worst *line_of(clv__tally *tally, clv__case where) {
    clv_check_report *report = tally->report;
    for (int i = 0; i < report->n_worst; i++)
        if (strcmp(report->worst[i].op, where.op) == 0 &&
            strcmp(report->worst[i].variant, where.variant) == 0)
            return &report->worst[i];
    if (!clv__grow(&report->worst, &tally->worst_room, (size_t)report->n_worst + 1, sizeof *report->worst)) {
        tally->failed = true;
        return NULL;
    }
    clv_check_worst *line = &report->worst[report->n_worst++];
    *line = (clv_check_worst){.op = where.op, .variant = where.variant};
    return line;
}

static double ratio(double error, double tolerance) {
    return error == 0 ? 0 : tolerance > 0 ? error / tolerance : INFINITY;
}

static clv_check_failure *add_failure(clv__tally *tally, clv__case where) {
    clv_check_report *report = tally->report;
    if (!clv__grow(&report->failures, &tally->failures_room, (size_t)report->n_failures + 1,
                   sizeof *report->failures)) {
        tally->failed = true;
        return NULL;
    }
    clv_check_failure *failure = &report->failures[report->n_failures++];
    *failure = (clv_check_failure){.op = where.op, .variant = where.variant, .index = -1};
    snprintf(failure->sample, sizeof failure->sample, "%s", where.sample);
    return failure;
}

void clv__tally_ran(clv__tally *tally, clv__case where, const char *what, const clv__distance *worst) {
    bool passed = worst->ratio <= 1; // a ratio that is not a number fails
    tally->report->cases++;
    if (passed)
        tally->report->passed++;
    else
        tally->report->failed++;
    clv_check_worst *line = line_of(tally, where);
    if (line) {
        line->cases++;
        line->failed += !passed;
        if (line->cases == 1 || !(worst->ratio <= ratio(line->error, line->tolerance))) {
            line->error = worst->error;
            line->tolerance = worst->tolerance;
        }
    }
    clv_check_failure *failure = passed ? NULL : add_failure(tally, where);
    if (!failure) return;
    snprintf(failure->what, sizeof failure->what, "%s", what);
    failure->index = worst->index;
    failure->got = worst->got;
    failure->want = worst->want;
    failure->tolerance = worst->tolerance;
    snprintf(failure->sentence, sizeof failure->sentence,
             "%s, %s, sample '%s': %s[%lld] is %.9g, should be %.9g within %.3g", where.op, where.variant,
             where.sample, what, (long long)worst->index, worst->got, worst->want, worst->tolerance);
}

void clv__tally_broken(clv__tally *tally, clv__case where, const char *why) {
    tally->report->cases++;
    tally->report->failed++;
    clv_check_worst *line = line_of(tally, where);
    if (line) {
        line->cases++;
        line->failed++;
        line->error = INFINITY;
        line->tolerance = 0;
    }
    clv_check_failure *failure = add_failure(tally, where);
    if (!failure) return;
    snprintf(failure->sentence, sizeof failure->sentence, "%s, %s, sample '%s': %s", where.op, where.variant,
             where.sample, why);
}

void clv__tally_skip(clv__tally *tally, const char *op, const char *format, ...) {
    clv_check_report *report = tally->report;
    char reason[sizeof report->skipped->reason];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    report->skipped_cases++;
    for (int i = 0; i < report->n_skipped; i++) {
        if (strcmp(report->skipped[i].op, op) == 0 && strcmp(report->skipped[i].reason, reason) == 0) {
            report->skipped[i].cases++;
            return;
        }
    }
    if (!clv__grow(&report->skipped, &tally->skipped_room, (size_t)report->n_skipped + 1,
                   sizeof *report->skipped)) {
        tally->failed = true;
        return;
    }
    clv_check_skip *skip = &report->skipped[report->n_skipped++];
    *skip = (clv_check_skip){.op = op, .cases = 1};
    memcpy(skip->reason, reason, sizeof reason);
}

void clv_check_report_destroy(clv_check_report *report) {
    if (!report) return;
    free(report->skipped);
    free(report->worst);
    free(report->failures);
    free(report);
}
