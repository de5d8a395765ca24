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
    int32_t count;      // tokens
    char *text;         // their bytes, one after the other
    uint32_t *begin;    // [count + 1]: where each lies in `text`
    int32_t *ordered;   // [n_ordered]: those that have bytes, by them
    int32_t n_ordered;  // numbers may have gaps
    int32_t bytes[256]; // the token of each byte
    clv__merge *merges; // [room]: a hash table; rank -1 is free
    size_t room;        // a power of two
    bool whole_words;   // a word that is a token is that token, whatever its merges say
} clv__bpe;

/** Room for the work on one word after another. All zero is empty. */
typedef struct clv__bpe_work {
    struct clv__bpe_node *nodes;
    struct clv__bpe_pair *heap;
    size_t room; // bytes of a word
} clv__bpe_work;

/** The token of these bytes; -1: there is none. */
int32_t clv__bpe_find(const clv__bpe *bpe, const char *bytes, size_t n);
/** Put `ordered` and `bytes` right, once `text` and `begin` are; the first byte without a token, or -1. */
int clv__bpe_order(clv__bpe *bpe);
/** Room for so many merges, all free; false: no memory. */
bool clv__bpe_reserve(clv__bpe *bpe, size_t n);
/** Add a merge; the first of a pair stays. There is room. */
void clv__bpe_add(clv__bpe *bpe, clv__merge merge);
/** Append a word's tokens; there is room for as many as it has bytes. False: no memory. */
bool clv__bpe_encode(const clv__bpe *bpe, clv__bpe_work *work, const char *word, size_t bytes,
                     int32_t *tokens, size_t *n);
void clv__bpe_work_reset(clv__bpe_work *work);
void clv__bpe_reset(clv__bpe *bpe);

#endif
