// SPDX-License-Identifier: Apache-2.0
// Folders that code is loaded from: made for their owner only, and looked at before they are used. Who can
// write to one, or to one above it, decides what this process runs.
#ifndef CLV_BASE_FOLDER_H
#define CLV_BASE_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

/** Make the folder and those above it that are missing, for the owner only; false and errno if it is not
 *  there then. */
bool clv__folder_make(const char *path);

/** Why what is open, a folder or a file, may hold what others wrote: its owner or its mode. NULL if only this
 *  user can have written it. */
const char *clv__distrust(int descriptor);

/**
 * Is the folder safe against other users: is it this user's alone, and is each one above it this user's or
 * root's, and closed to others (or sticky, as /tmp is)? One that does not exist is safe if it can be made.
 * Symbolic links count too. false: `why` has a reason that names the folder at fault.
 */
bool clv__folder_is_private(const char *path, char *why, size_t bytes);

#endif
