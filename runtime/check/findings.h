// SPDX-License-Identifier: Apache-2.0
// What follows from a check for plans: variants that failed go into quarantine and into the device's tuning file, as ones to
// avoid; those that an earlier check wrote there, and that now pass all there is to check of them, are used again.
#ifndef CLV_CHECK_FINDINGS_H
#define CLV_CHECK_FINDINGS_H

#include "check/report.h"
#include "tuning/tuning.h"

/** What begins the note of a row that a check wrote: only a check takes it back. */
#define CLV__FOUND_BY_CHECK "check: "

typedef struct clv__finding {
    const clv__op *op;
    const clv__variant *variant;
    bool failed, not_run; // some case of it
    const char *why;      // the first failure's sentence, borrowed; NULL: none
} clv__finding;

typedef struct clv__findings {
    bool whole; // everything there is to check of the ops was asked for
    clv__finding *items;
    size_t n, room;
} clv__findings;

/** A case of a variant was run. */
clv_status clv__findings_add(clv__findings *findings, const clv__op *op, const clv__variant *variant,
                             bool failed, clv__error *error);
/** The sentence of one that failed, or could not run; `op` is the descriptor's own name. Sentences of what is no variant are passed over. */
void clv__findings_explain(clv__findings *findings, const char *op, const char *variant, const char *sentence,
                           bool not_run);
/** Quarantine and file; fills the report's lists. That the file cannot be written is told there, and is no failure. */
clv_status clv__findings_record(const clv__findings *findings, clv_device *device, clv_check_report *report,
                                clv__error *error);
/** Tell of a use which variant a plan takes now instead of the op's avoided ones, if it could have taken one of them. `known`:
 *  the use without an epilogue, by which variants are ranked. */
void clv__findings_instead(clv_check_report *report, const clv_device *device, const clv__op_io *use,
                           const clv__op_io *known);
void clv__findings_reset(clv__findings *findings);

/** Is it a row that a check wrote? */
bool clv__found_by_check(const clv__tuned *row);
/** Write a tuning file of the device: beside the one that is there, and in its place when it is whole. */
clv_status clv__tuning_save(const clv_device *device, const clv__tuning *tuning, const char *path,
                            clv__error *error);

#endif
