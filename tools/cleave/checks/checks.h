// SPDX-License-Identifier: Apache-2.0
// What an earlier `check` found.
#ifndef CLEAVE_CLI_CHECKS_H
#define CLEAVE_CLI_CHECKS_H

#include "cli.h"

// ---- baseline.c: earlier runs of `check` ------------------------------------------------------------------

/** What `cleave check --json` printed, from a file. Prints what fails. */
int cli_read_check(const char *path, json_t **out);
/** matrix.c: the page of `report --results`. */
int cli_matrix_page(const cli_args *args);

// ---- quarantine.c: variants that plans pass over ----------------------------------------------------------

/** [{"op", "variant", "why"}] of a device. */
json_t *cli_quarantine_json(clv_device *device);
/** A line for each, indented; nothing if there is none. */
void cli_quarantine_print(FILE *out, clv_device *device, int indent);

#endif
