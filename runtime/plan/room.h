// SPDX-License-Identifier: Apache-2.0
// Blocks of memory in an arena, sorted by where they lie, each with the positions between which it lives; and the lowest place
// that is free for another one.
#ifndef CLV_PLAN_ROOM_H
#define CLV_PLAN_ROOM_H

#include <stdbool.h>
#include <stddef.h>

typedef struct clv__block {
    int id; // root value, or a node's workspace (memory.c)
    size_t bytes;
    int first, last;
    size_t offset;
} clv__block;

/** Zero-initialised is empty. */
typedef struct clv__room {
    size_t chunk; // no block crosses a multiple of this
    struct clv__room_group **groups;
    size_t n, room;
} clv__room;

void clv__room_reset(clv__room *room);
/** The lowest offset that is free for the whole life of `now`. */
size_t clv__room_find(const clv__room *room, const clv__block *now);
/** Put a block at its offset. False: host memory is out. */
bool clv__room_add(clv__room *room, const clv__block *block);

#endif
