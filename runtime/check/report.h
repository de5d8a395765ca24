// SPDX-License-Identifier: Apache-2.0
// Counting cases: passed, failed, skipped with a reason, the worst of each op and variant.
#ifndef CLV_CHECK_REPORT_H
#define CLV_CHECK_REPORT_H

#include "check/tolerance.h"
#include "cleave/check.h"

/** Names a case: none of it is owned except what static op tables own. */
typedef struct clv__case {
    const char *op, *variant, *sample;
    double seconds; // how long it took
} clv__case;

enum { CLV__CASE_BYTES = sizeof((clv_check_case *)0)->name };

/** `op/variant/sample`. */
void clv__case_name(char name[CLV__CASE_BYTES], const char *op, const char *variant, const char *sample);

/** An empty report, for clv_free; NULL: no memory. */
clv_check_report *clv__check_report_create(void);

/** A report with the room its lists have. */
typedef struct clv__tally {
    clv_check_report *report;
    const clv_check_config *config;
    size_t list_room, skipped_room, worst_room, failures_room;
    bool failed; // memory ran out
} clv__tally;

/** A case that ran: `what` and `worst` tell its element nearest to, or furthest past, the tolerance. */
void clv__tally_ran(clv__tally *tally, clv__case where, const char *what, const clv__distance *worst);
/** A case that did not come to its end because the device, or the op, is at fault: counts as failed, `why` is its sentence. */
void clv__tally_broken(clv__tally *tally, clv__case where, const char *why);
/** A case of which nothing is known, because memory was out. */
void clv__tally_not_run(clv__tally *tally, clv__case where, const char *why);
/** A case that is only named. */
void clv__tally_listed(clv__tally *tally, clv__case where);
void clv__tally_skip(clv__tally *tally, clv__case where, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** Does the list hold the name, or a pattern that it matches? An empty list holds nothing. */
bool clv__names_hold(const char *const *names, const char *name);
/** `*` in a pattern stands for any text, `?` for one character, all others for themselves. */
bool clv__name_matches(const char *pattern, const char *name);

#endif
