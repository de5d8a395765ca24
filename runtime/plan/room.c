// SPDX-License-Identifier: Apache-2.0
// A list of groups of blocks. A search skips a whole group when none of its blocks lives together with the new one, or
// when all do and no gap between them is large enough; in deep networks nearly every group is one or the other, so that placing
// n blocks takes far less than n * n looks. What is found is the same as by looking at each block.
#include "plan/room.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { MOST = 64 }; // blocks in a group

typedef struct spot {
    size_t offset, end;
    int first, last;
} spot;

typedef struct clv__room_group {
    spot spots[MOST];
    int n;
    int first_min, first_max, last_min, last_max;
    size_t end, gap; // the largest end, and the largest gap between blocks
} clv__room_group;

void clv__room_reset(clv__room *room) {
    for (size_t i = 0; i < room->n; i++) free(room->groups[i]);
    free(room->groups);
    *room = (clv__room){.chunk = room->chunk};
}

/** `start` moved to the next chunk if `bytes` from it would cross a chunk's end. It grows with `start`, so it may be done once
 *  after several blocks were passed. */
static size_t inside_chunk(size_t start, size_t bytes, size_t chunk) {
    size_t end_of_chunk = (start / chunk + 1) * chunk;
    return bytes <= chunk && start + bytes > end_of_chunk ? end_of_chunk : start;
}

/** Look at each block of a group; true if `now` fits before one of them, at *start. */
static bool fits_in_group(const clv__room_group *group, const clv__block *now, size_t chunk, size_t *start) {
    for (int i = 0; i < group->n; i++) {
        const spot *other = &group->spots[i];
        if (other->last < now->first || other->first > now->last) continue;
        *start = inside_chunk(*start, now->bytes, chunk);
        if (*start + now->bytes <= other->offset) return true;
        if (other->end > *start) *start = other->end;
    }
    return false;
}

size_t clv__room_find(const clv__room *room, const clv__block *now) {
    size_t start = 0;
    for (size_t g = 0; g < room->n; g++) {
        const clv__room_group *group = room->groups[g];
        if (group->last_max < now->first || group->first_min > now->last) continue;
        const bool all = group->last_min >= now->first && group->first_max <= now->last;
        if (all && group->gap < now->bytes && start + now->bytes > group->spots[0].offset) {
            if (group->end > start) start = group->end;
        } else if (fits_in_group(group, now, room->chunk, &start)) {
            return start;
        }
    }
    return inside_chunk(start, now->bytes, room->chunk);
}

static void sum_up(clv__room_group *group) {
    const spot *spots = group->spots;
    group->first_min = group->first_max = spots[0].first;
    group->last_min = group->last_max = spots[0].last;
    group->end = spots[0].end;
    group->gap = 0;
    for (int i = 1; i < group->n; i++) {
        if (spots[i].offset > group->end && spots[i].offset - group->end > group->gap)
            group->gap = spots[i].offset - group->end;
        if (spots[i].first < group->first_min) group->first_min = spots[i].first;
        if (spots[i].first > group->first_max) group->first_max = spots[i].first;
        if (spots[i].last < group->last_min) group->last_min = spots[i].last;
        if (spots[i].last > group->last_max) group->last_max = spots[i].last;
        if (spots[i].end > group->end) group->end = spots[i].end;
    }
}

/** A group behind number `at`, with the second half of its blocks; behind none it is empty. */
static bool open_group(clv__room *room, size_t at) {
    clv__room_group *fresh = clv__alloc(1, sizeof *fresh);
    if (!fresh || !clv__grow(&room->groups, &room->room, room->n + 1, sizeof *room->groups)) {
        free(fresh);
        return false;
    }
    if (room->n) {
        clv__room_group *full = room->groups[at++];
        fresh->n = full->n / 2;
        full->n -= fresh->n;
        memcpy(fresh->spots, full->spots + full->n, (size_t)fresh->n * sizeof *fresh->spots);
        sum_up(full);
        sum_up(fresh);
    }
    memmove(room->groups + at + 1, room->groups + at, (room->n - at) * sizeof(clv__room_group *));
    room->groups[at] = fresh;
    room->n++;
    return true;
}

bool clv__room_add(clv__room *room, const clv__block *block) {
    if (!room->n && !open_group(room, 0)) return false;
    // the last group that begins at or before the block, so that of equal offsets the newer comes later
    size_t low = 0, high = room->n;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (room->groups[middle]->spots[0].offset <= block->offset)
            low = middle;
        else
            high = middle;
    }
    if (room->groups[low]->n == MOST) {
        if (!open_group(room, low)) return false;
        if (room->groups[low + 1]->spots[0].offset <= block->offset) low++;
    }
    clv__room_group *group = room->groups[low];
    int at = group->n++;
    for (; at > 0 && group->spots[at - 1].offset > block->offset; at--)
        group->spots[at] = group->spots[at - 1];
    group->spots[at] = (spot){block->offset, block->offset + block->bytes, block->first, block->last};
    sum_up(group);
    return true;
}
