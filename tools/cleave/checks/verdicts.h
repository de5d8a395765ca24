// SPDX-License-Identifier: Apache-2.0
// What `check` reads and writes beside its table: known failures and baselines, TAP and JUnit.
#ifndef CLEAVE_VERDICTS_H
#define CLEAVE_VERDICTS_H

#include "cli.h"

/** Names of cases, or patterns; `item` ends with NULL. All zero is empty. */
typedef struct names {
    char **item;
    size_t n, room;
} names;

void names_drop(names *list);
/** A file of known failures: a name or a pattern a line, `#` and what follows is a comment. Prints what
 *  fails. */
int names_read(const char *path, names *list);

/** An earlier run's `check --json`. */
typedef struct baseline {
    const char *path;
    json_t *run;   // the object of the file; NULL: there is no baseline
    json_t *cases; // name -> case
} baseline;

/** Read it, and append what failed there to the known failures. Prints what fails. */
int baseline_read(const char *path, baseline *out, names *known);
void baseline_drop(baseline *of);
/** What became of cases since: {"worse", "less_exact", "gone", "better"}, each a list of {"name", "then",
 *  "now", ...}. With `filtered`, cases that are not in the report are not gone: they were not asked for.
 *  NULL: no memory. */
json_t *baseline_compare(const baseline *of, const clv_check_report *report, bool filtered);
void baseline_print(FILE *out, const json_t *comparison, const char *path);

/** The lines of one case; its number is counted from 1. */
void tap_case(FILE *out, int number, const clv_check_case *one);
/** Write the file. Prints what fails. */
int junit_write(const char *path, const clv_device_info *device, const clv_check_report *report);

#endif
