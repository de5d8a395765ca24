// SPDX-License-Identifier: Apache-2.0
// Byte-pair encoding: a word's bytes are tokens at first, and of two neighbours that have a merge, those of the lowest rank become
// one token, until none are left.
#ifndef CLV_DATA_BPE_H
#define CLV_DATA_BPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/** Two tokens, and what they become. */
typedef struct clv__merge {
    int32_t left, right, rank, token;
} clv__merge;

/** All zero is empty. Does not change once made. */
typedef struct clv__bpe {
    clv__merge *merges; // [room]: a hash table; rank -1 is free
    size_t room;        // a power of two
} clv__bpe;

/** Room for the work on one word after another. All zero is empty. */
typedef struct clv__bpe_work {
    struct clv__bpe_node *nodes;
    struct clv__bpe_pair *heap;
    size_t room; // tokens of a word
} clv__bpe_work;

/** Room for so many merges, all free; false: no memory. */
bool clv__bpe_reserve(clv__bpe *bpe, size_t n);
/** Add a merge; the last of a pair stays. There is room. */
void clv__bpe_add(clv__bpe *bpe, clv__merge merge);
/** Merge a word's tokens, in place. False: no memory. */
bool clv__bpe_merge(const clv__bpe *bpe, clv__bpe_work *work, int32_t *tokens, size_t *n);
void clv__bpe_work_reset(clv__bpe_work *work);
void clv__bpe_reset(clv__bpe *bpe);

#endif
