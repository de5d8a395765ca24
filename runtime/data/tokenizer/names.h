// SPDX-License-Identifier: Apache-2.0
// Strings with a number each, in the order of their bytes: found whole, or byte by byte by those that others begin with. Sorted rather than
// hashed, so that no file can make them slow.
#ifndef CLV_DATA_TOKENIZER_NAMES_H
#define CLV_DATA_TOKENIZER_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CLV__SHORT_TOKEN_NAMES = 0x800 }; // characters of one and two bytes

typedef struct clv__token_name {
    const char *text; // somebody else's
    uint32_t bytes;
    int32_t number, order;
} clv__token_name;

/** All zero is empty. Does not change once sorted. */
typedef struct clv__token_names {
    clv__token_name *all;
    size_t n, room;
    size_t first[257];                      // where those of a first byte begin
    int32_t shorts[CLV__SHORT_TOKEN_NAMES]; // numbers of characters of one and two bytes; -1: there is none
} clv__token_names;

/** False: no memory. `text` stays as long as they are used. */
bool clv__token_names_add(clv__token_names *names, const char *text, size_t bytes, int32_t number);
/** Bring them in order; of equal ones the first stays, or the last one. */
void clv__token_names_sort(clv__token_names *names, bool last);
/** The number of a name; -1: there is no such one. */
int32_t clv__token_names_find(const clv__token_names *names, const char *text, size_t bytes);

/** A walk along a text. */
typedef struct clv__token_names_walk {
    size_t low, high, depth;
} clv__token_names_walk;

clv__token_names_walk clv__token_names_begin(const clv__token_names *names);
/** One byte more: false where no name goes on so. *number: of the name that ends here, or -1. */
bool clv__token_names_step(const clv__token_names *names, clv__token_names_walk *walk, char byte,
                           int32_t *number);
void clv__token_names_reset(clv__token_names *names);

#endif
