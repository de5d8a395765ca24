// SPDX-License-Identifier: Apache-2.0
// A text in pieces, by regular expressions: the words of byte-pair encoding. PCRE2 does the matching (CLEAVE_TOKENIZERS).
#ifndef CLV_DATA_SPLIT_H
#define CLV_DATA_SPLIT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum { CLV__MOST_SPLITS = 8 };

/** Expressions, one after the other: each parts what the ones before have left. Does not change once made. */
typedef struct clv__split {
    void *expressions[CLV__MOST_SPLITS];
    int n;
} clv__split;

/** Called for each piece in order; false: go no further. */
typedef bool clv__on_piece(void *user, const char *piece, size_t bytes);

/** Is there what matches expressions? */
bool clv__split_there(void);
/**
 * Append an expression, UTF-8, of so many bytes. \p{...}, \s and the like are Unicode's.
 *
 * Errors  CLV_E_FORMAT  what is wrong with it, and where;  CLV_E_UNSUPPORTED  a build without PCRE2
 */
clv_status clv__split_add(clv__split *split, clv__error *error, const char *expression, size_t bytes);
/**
 * The pieces of a text, which is UTF-8: each match, and what lies between them.
 *
 * Errors  CLV_E_FORMAT  an expression that takes too long or too much memory on this text;  CLV_E_HOST_MEMORY
 */
clv_status clv__split_run(const clv__split *split, clv__error *error, const char *text, size_t bytes,
                          clv__on_piece *on_piece, void *user);
void clv__split_reset(clv__split *split);

#endif
