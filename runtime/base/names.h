// SPDX-License-Identifier: Apache-2.0
// Numbers found by name, in a table of hashes. It keeps no names: who asks compares those of the numbers that
// are offered.
//
//     size_t at = 0, number;
//     while (clv__names_next(&names, name, &at, &number))
//         if (strcmp(items[number].name, name) == 0) ...
#ifndef CLV_BASE_NAMES_H
#define CLV_BASE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct clv__named {
    uint32_t hash, number_and_one; // 0: this place is free
} clv__named;

/** Zero-initialised is empty. */
typedef struct clv__names {
    clv__named *places; // a power of two of them, at least half of them free
    size_t n, room;
} clv__names;

/** Several numbers may have one name, and a number several. False: host memory is out. */
bool clv__names_add(clv__names *names, const char *name, size_t number);
/** The next number that may have that name; *at is 0 at first. They come in the order in which they were
 *  added. */
bool clv__names_next(const clv__names *names, const char *name, size_t *at, size_t *number);
/** Forget all names; there is room for as many again. */
void clv__names_empty(clv__names *names);
void clv__names_reset(clv__names *names);

#endif
