// SPDX-License-Identifier: Apache-2.0
#include "base/names.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static uint32_t hash_of(const char *name) { // FNV-1a
    uint64_t hash = UINT64_C(14695981039346656037);
    for (; *name; name++) hash = (hash ^ (unsigned char)*name) * UINT64_C(1099511628211);
    return (uint32_t)(hash ^ hash >> 32);
}

static void put(clv__named *places, size_t room, clv__named named) {
    size_t at = named.hash & (room - 1);
    while (places[at].number_and_one) at = (at + 1) & (room - 1);
    places[at] = named;
}

/** In the order of their places, which keeps that of equal hashes: a run of them that goes round the end
 *  begins at its first. */
static void put_all(const clv__names *names, clv__named *places, size_t room) {
    size_t first = 0;
    while (first < names->room && names->places[first].number_and_one) first++;
    for (size_t i = 0; i < names->room; i++) {
        const clv__named named = names->places[(first + i) & (names->room - 1)];
        if (named.number_and_one) put(places, room, named);
    }
}

bool clv__names_add(clv__names *names, const char *name, size_t number) {
    if (number >= UINT32_MAX) return false;
    if (2 * (names->n + 1) > names->room) {
        size_t room = names->room ? 2 * names->room : 64;
        clv__named *places = clv__alloc(room, sizeof *places);
        if (!places) return false;
        put_all(names, places, room);
        free(names->places);
        names->places = places;
        names->room = room;
    }
    put(names->places, names->room, (clv__named){hash_of(name), (uint32_t)number + 1});
    names->n++;
    return true;
}

bool clv__names_next(const clv__names *names, const char *name, size_t *at, size_t *number) {
    if (!names->room) return false;
    const uint32_t hash = hash_of(name);
    for (;; ++*at) {
        const clv__named *named = &names->places[(hash + *at) & (names->room - 1)];
        if (!named->number_and_one) return false;
        if (named->hash != hash) continue;
        *number = named->number_and_one - 1;
        ++*at;
        return true;
    }
}

void clv__names_empty(clv__names *names) {
    if (names->places) memset(names->places, 0, names->room * sizeof *names->places);
    names->n = 0;
}

void clv__names_reset(clv__names *names) {
    free(names->places);
    *names = (clv__names){0};
}
