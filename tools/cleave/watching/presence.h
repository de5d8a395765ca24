// SPDX-License-Identifier: Apache-2.0
// Which commands work on devices of this machine: each keeps a small file of itself in the cache's folder,
// for `cleave top`. presence.c has the files, at_work.c what this process tells in its own.
#ifndef CLEAVE_PRESENCE_H
#define CLEAVE_PRESENCE_H

#include "watching/watch.h"

// ---- at_work.c: this process ------------------------------------------------------------------------------

/** A training tells of itself from here on, with its log, or NULL. Where no file is kept (NULL), nothing is
 *  said: a training does not need it. */
void presence_take_over(cli_presence *presence, watch_moment *now, const char *log);
/** Write it again, if that was not done just now. True: somebody looks. */
bool presence_tell(cli_presence *presence, watch_moment *now, double time);

// ---- presence.c: the files --------------------------------------------------------------------------------

/** The file of this process. */
typedef struct presence_file {
    int folder;
    char name[48], beside[56];
} presence_file;

/** False: there is no folder for it. */
bool presence_open(presence_file *file, const clv_runtime *runtime);
void presence_write(const presence_file *file, const watch_moment *now);
/** Somebody looked in the last seconds. */
bool presence_is_asked(const presence_file *file);
/** Remove it. */
void presence_close(presence_file *file);

/** Is it a training? */
static inline bool presence_trains(const watch_moment *now) {
    return !*now->command || !strcmp(now->command, "train");
}

enum { PRESENCE_MOST = 64 };

/** Commands that run, by the number of their process; what is left of those that were killed goes. */
typedef struct presence_list {
    int n;
    watch_moment *item;
} presence_list;
/** False without memory. */
bool presence_read(const clv_runtime *runtime, presence_list *out);
void presence_drop(presence_list *list);

#endif
