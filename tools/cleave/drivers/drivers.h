// SPDX-License-Identifier: Apache-2.0
// A driver may end the process that looks at it, or never answer. Here a command makes its runtime in spite
// of that; start.c calls nothing else of this folder.
#ifndef CLEAVE_CLI_DRIVERS_H
#define CLEAVE_CLI_DRIVERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <cleave/cleave.h>

/** known.c: the environment, and the file that says that all drivers answered in it. */
typedef struct cli_known {
    char path[4096]; // "" for none
    uint64_t environment;
} cli_known;

/** probe.c: a child process that makes a runtime, so that a driver that dies takes the child along. */
typedef struct cli_probe {
    pid_t child; // 0: none
    int pipe;
} cli_probe;

typedef struct cli_drivers {
    cli_known known;
    cli_probe probe;
    bool trusted;        // no child was sent ahead
    char left_out[2048]; // as clv_runtime_config.left_out wants it
} cli_drivers;

/** Start the child that looks at the drivers, unless all of them answered before in this environment. The
 *  process has no threads yet. */
void cli_drivers_begin(cli_drivers *drivers, bool no_cache);
/** Wait for the child, and for others while drivers end them. */
void cli_drivers_wait(cli_drivers *drivers);
/** clv_runtime_create. If drivers are trusted and one ends this process all the same, the process begins
 *  again with these words (argv), and with a child. Sets left_out and before_platform of the config, which
 *  points into `drivers` from then on. */
clv_status cli_drivers_create(cli_drivers *drivers, char **command_line, clv_runtime_config *config,
                              clv_runtime **out);

#endif
