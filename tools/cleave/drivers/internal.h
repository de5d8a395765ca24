// SPDX-License-Identifier: Apache-2.0
// What the files of this folder share.
#ifndef CLEAVE_CLI_DRIVERS_INTERNAL_H
#define CLEAVE_CLI_DRIVERS_INTERNAL_H

#include "drivers.h"

/** known.c: did all drivers answer before, in this environment? The file is gone until it is written
 *  again. */
bool cli_known_take(cli_known *known, bool no_cache);
void cli_known_keep(cli_known *known);

/** guard.c: until the end of the guard, a driver that ends the process makes it begin again with these words
 *  and a child. What drivers print meanwhile comes out on stderr at the end. Nothing may have been read or
 *  written that would be missed. */
void cli_guard_begin(char **command_line);
/** Take back the signals that a driver took; a clv_runtime_config.before_platform. */
void cli_guard_renew(void *unused, int platform, const char *name);
void cli_guard_end(void);

void cli_probe_begin(cli_probe *probe, const char *left_out);
/** Wait for the child, and for others if it dies. Which platforms to leave alone, as
 *  clv_runtime_config.left_out wants it; "" for none. */
void cli_probe_wait(cli_probe *probe, char *left_out, size_t bytes);

#endif
