// SPDX-License-Identifier: Apache-2.0
// Fills a clv_check_report; see report.h.
#include "check/report.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

// ---- names ----------------------------------------------------------------------------------------------------------

void clv__case_name(char name[CLV__CASE_BYTES], const char *op, const char *variant, const char *sample) {
    snprintf(name, CLV__CASE_BYTES, "%s%s%s%s%s", op, *variant ? "/" : "", variant, *sample ? "/" : "",
             sample);
}

bool clv__name_matches(const char *pattern, const char *name) {
    const char *star = NULL,
               *again = NULL; // where to go on if what follows the last star does not match here
    while (*name) {
        if (*pattern == '*') {
            star = ++pattern;
            again = name;
        } else if (*pattern == '?' || *pattern == *name) {
            pattern++, name++;
        } else if (star) {
            pattern = star;
            name = ++again;
        } else {
            return false;
        }
    }
    while (*pattern == '*') pattern++;
    return !*pattern;
}

bool clv__names_hold(const char *const *names, const char *name) {
    for (; names && *names; names++)
        if (strcmp(*names, name) == 0 || clv__name_matches(*names, name)) return true;
    return false;
}

static const char *verdict_name(clv_check_verdict verdict) {
    static const char *const names[] = {"passed",        "failed",  "known failure",
                                        "could not run", "skipped", "listed"};
    return names[verdict];
}

// ---- counting -------------------------------------------------------------------------------------------------------

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

/** The case at the end of the list; its numbers are filled in by who adds it. NULL: no memory. */
static clv_check_case *add_case(clv__tally *tally, clv__case where, clv_check_verdict verdict,
                                const char *sentence) {
    clv_check_report *report = tally->report;
    char *kept = clv__strdup(sentence);
    if ((sentence && !kept) ||
        !clv__grow(&report->list, &tally->list_room, (size_t)report->n_list + 1, sizeof *report->list)) {
        free(kept);
        tally->failed = true;
        return NULL;
    }
    clv_check_case *one = &report->list[report->n_list++];
    *one = (clv_check_case){.op = where.op,
                            .variant = where.variant,
                            .verdict = verdict,
                            .verdict_name = verdict_name(verdict),
                            .seconds = where.seconds,
                            .index = -1,
                            .error = NAN,
                            .tolerance = NAN,
                            .ulp = NAN,
                            .got = NAN,
                            .want = NAN,
                            .sentence = kept};
    snprintf(one->sample, sizeof one->sample, "%s", where.sample);
    clv__case_name(one->name, where.op, where.variant, where.sample);
    return one;
}

static void tell(const clv__tally *tally, const clv_check_case *one) {
    if (one && tally->config->on_case) tally->config->on_case(tally->config->user, one);
}

/** A failure, or one that is known. */
static clv_check_verdict failed_verdict(clv__tally *tally, clv__case where) {
    char name[CLV__CASE_BYTES];
    clv__case_name(name, where.op, where.variant, where.sample);
    bool known = clv__names_hold(tally->config->known, name);
    tally->report->known += known;
    tally->report->failed += !known;
    return known ? CLV_CHECK_KNOWN : CLV_CHECK_FAILED;
}

void clv__tally_ran(clv__tally *tally, clv__case where, const char *what, const clv__distance *worst) {
    bool passed = worst->ratio <= 1; // a ratio that is not a number fails
    clv_check_verdict verdict = passed ? CLV_CHECK_PASSED : failed_verdict(tally, where);
    char sentence[sizeof tally->report->failures->sentence];
    clv__format(sentence, sizeof sentence,
                "%s, %s, sample '%s': %s[%lld] is %.9g, should be %.9g within %.3g", where.op, where.variant,
                where.sample, what, (long long)worst->index, worst->got, worst->want, worst->tolerance);
    tally->report->cases++;
    tally->report->passed += passed;
    clv_check_worst *line = line_of(tally, where);
    if (line) {
        line->cases++;
        line->failed += !passed;
        if (line->cases == 1 || !(worst->ratio <= ratio(line->error, line->tolerance))) {
            line->error = worst->error;
            line->tolerance = worst->tolerance;
        }
    }
    clv_check_case *one = add_case(tally, where, verdict, passed ? NULL : sentence);
    if (one) {
        snprintf(one->what, sizeof one->what, "%s", what);
        one->index = worst->index;
        one->got = worst->got;
        one->want = worst->want;
        one->error = worst->error;
        one->tolerance = worst->tolerance;
        one->ulp = worst->ulp > 0 ? worst->error / worst->ulp : NAN;
    }
    clv_check_failure *failure = verdict == CLV_CHECK_FAILED ? add_failure(tally, where) : NULL;
    if (failure) {
        snprintf(failure->what, sizeof failure->what, "%s", what);
        failure->index = worst->index;
        failure->got = worst->got;
        failure->want = worst->want;
        failure->tolerance = worst->tolerance;
        memcpy(failure->sentence, sentence, sizeof sentence);
    }
    tell(tally, one);
}

void clv__tally_broken(clv__tally *tally, clv__case where, const char *why) {
    clv_check_verdict verdict = failed_verdict(tally, where);
    char sentence[sizeof tally->report->failures->sentence];
    clv__format(sentence, sizeof sentence, "%s, %s, sample '%s': %s", where.op, where.variant, where.sample,
                why);
    tally->report->cases++;
    clv_check_worst *line = line_of(tally, where);
    if (line) {
        line->cases++;
        line->failed++;
        line->error = INFINITY;
        line->tolerance = 0;
    }
    clv_check_failure *failure = verdict == CLV_CHECK_FAILED ? add_failure(tally, where) : NULL;
    if (failure) memcpy(failure->sentence, sentence, sizeof sentence);
    tell(tally, add_case(tally, where, verdict, sentence));
}

void clv__tally_not_run(clv__tally *tally, clv__case where, const char *why) {
    char sentence[sizeof tally->report->failures->sentence];
    clv__format(sentence, sizeof sentence, "%s, %s, sample '%s': %s", where.op, where.variant, where.sample,
                why);
    tally->report->cases++;
    tally->report->not_run++;
    tell(tally, add_case(tally, where, CLV_CHECK_NOT_RUN, sentence));
}

void clv__tally_listed(clv__tally *tally, clv__case where) {
    tally->report->cases++;
    tell(tally, add_case(tally, where, CLV_CHECK_LISTED, NULL));
}

void clv__tally_skip(clv__tally *tally, clv__case where, const char *format, ...) {
    clv_check_report *report = tally->report;
    char reason[sizeof report->skipped->reason];
    va_list args;
    va_start(args, format);
    clv__format_list(reason, sizeof reason, format, args);
    va_end(args);
    report->skipped_cases++;
    tell(tally, add_case(tally, where, CLV_CHECK_SKIPPED, reason));
    for (int i = 0; i < report->n_skipped; i++) {
        if (strcmp(report->skipped[i].op, where.op) == 0 && strcmp(report->skipped[i].reason, reason) == 0) {
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
    *skip = (clv_check_skip){.op = where.op, .cases = 1};
    memcpy(skip->reason, reason, sizeof reason);
}

static void report_end(void *what) {
    clv_check_report *report = what;
    for (int i = 0; i < report->n_list; i++) free(report->list[i].sentence);
    free(report->list);
    free(report->skipped);
    free(report->worst);
    free(report->failures);
    free(report->avoided);
    free(report->restored);
    free(report->file);
    free(report->record_fault);
}

clv_check_report *clv__check_report_create(void) {
    return clv__owned(sizeof(clv_check_report), report_end);
}
