// SPDX-License-Identifier: Apache-2.0
// Counting cases: passed, failed, skipped with a reason, the worst of each op and variant.
#ifndef CLV_CHECK_REPORT_H
#define CLV_CHECK_REPORT_H

#include "check/tolerance.h"
#include "cleave/check.h"

/** Names a case: none of it is owned except what static op tables own. */
typedef struct clv__case {
    const char *op, *variant, *sample;
} clv__case;

/** A report with the room its lists have. */
typedef struct clv__tally {
    clv_check_report *report;
    size_t skipped_room, worst_room, failures_room;
    bool failed; // memory ran out
} clv__tally;

/** A case that ran: `what` and `worst` tell its element nearest to, or furthest past, the tolerance. */
void clv__tally_ran(clv__tally *tally, clv__case where, const char *what, const clv__distance *worst);
/** A case that could not run: counts as failed, `why` is its sentence. */
void clv__tally_broken(clv__tally *tally, clv__case where, const char *why);
void clv__tally_skip(clv__tally *tally, const char *op, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
