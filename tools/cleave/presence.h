// SPDX-License-Identifier: Apache-2.0
// Which trainings run on this machine: each keeps a small file of itself in the cache's folder, for `cleave
// top`. presence.c says how.
#ifndef CLEAVE_PRESENCE_H
#define CLEAVE_PRESENCE_H

#include "watch.h"

/** Keep a file of this training; its log, or NULL. Where there is no folder for it, nothing is kept, and
 *  nothing said: a training does not need it. */
void presence_begin(watch_presence *presence, const clv_runtime *runtime, watch_moment *now, const char *log);
/** Write it anew, if that was not done just now. True: somebody looks. */
bool presence_tell(watch_presence *presence, const watch_moment *now, double time);
void presence_end(watch_presence *presence);

enum { PRESENCE_MOST = 64 };

/** Trainings that run, by the number of their process; what is left of those that were killed goes. */
typedef struct presence_list {
    int n;
    watch_moment *item;
} presence_list;
/** False without memory. */
bool presence_read(const clv_runtime *runtime, presence_list *out);
void presence_drop(presence_list *list);

#endif
