// SPDX-License-Identifier: Apache-2.0
// Making the runtime: by a child first (probe.c), or under a guard (guard.c) where all drivers answered
// before (known.c).
#include "internal.h"

#include <stdlib.h>
#include <string.h>

#include "cli.h"

enum { QUICK_SECONDS = 2 }; // for all drivers to answer; the guard waits for 5

void cli_drivers_begin(cli_drivers *drivers, bool no_cache) {
    const char *how = getenv("CLEAVE_PROBE");
    const bool known = cli_known_take(&drivers->known, no_cache);
    const bool child = how && !strcmp(how, "child"), guard = how && !strcmp(how, "guard");
    drivers->trusted = guard || (known && !child);
    if (!drivers->trusted) cli_probe_begin(&drivers->probe, "");
}

void cli_drivers_wait(cli_drivers *drivers) {
    cli_probe_wait(&drivers->probe, drivers->left_out, sizeof drivers->left_out);
}

clv_status cli_drivers_create(cli_drivers *drivers, char **command_line, clv_runtime_config *config,
                              clv_runtime **out) {
    config->left_out = drivers->left_out;
    config->before_platform = drivers->trusted ? cli_guard_renew : NULL;
    if (drivers->trusted) cli_guard_begin(command_line);
    const double begun = cli_seconds();
    clv_status status = clv_runtime_create(config, out);
    cli_guard_end();
    // Drivers that take longer would use up the guard's patience: a child goes ahead each time.
    if (!*drivers->left_out && cli_seconds() - begun < QUICK_SECONDS) cli_known_keep(&drivers->known);
    return status;
}
