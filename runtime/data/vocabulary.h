// SPDX-License-Identifier: Apache-2.0
// What every kind of vocabulary has: bytes and characters (vocabulary.c), a tokenizer's (tokenizer.c).
#ifndef CLV_DATA_VOCABULARY_H
#define CLV_DATA_VOCABULARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "cleave/data.h"

/** Tokens that are appended. Zero-initialised is empty. */
typedef struct clv__tokens {
    int32_t *at;
    size_t n, room;
} clv__tokens;

/** False: no memory. */
bool clv__tokens_add(clv__tokens *tokens, int32_t token);

/** Stands at the beginning of what a kind knows. */
struct clv_vocabulary {
    clv__error *error;
    const char *kind; // "bytes", "characters" or "tokenizer"
    int count;        // tokens
    const char *text; // from which the same is made again; NULL of bytes
    clv_status (*encode)(const clv_vocabulary *vocabulary, const char *text, size_t bytes, clv__tokens *out);
    const char *(*token)(const clv_vocabulary *vocabulary, int32_t token,
                         size_t *bytes); // there is such a one
    /** The text of tokens, all of which there are; NULL: what they stand for, one after the other. */
    clv_status (*decode)(const clv_vocabulary *vocabulary, const int32_t *tokens, size_t n, bool skip_special,
                         clv__text *out);
    void (*destroy)(clv_vocabulary *vocabulary);
};

/** Append bytes as UTF-8: each longest beginning of a character that is none becomes U+FFFD, as in Unicode 16, section 3.9. */
void clv__utf8_repair(clv__text *out, const char *bytes, size_t n);

/** The text, of n bytes, is not UTF-8 from byte `at` on; says so, and what it is. */
clv_status clv__vocabulary_not_text(clv__error *error, const void *text, size_t n, size_t at);

/** "bytes", "characters" or "tokenizer". */
const char *clv__vocabulary_kind(const clv_vocabulary *vocabulary);
/** From which the same is made again: all characters one after the other, or a tokenizer's JSON; NULL of bytes. Borrowed. */
const char *clv__vocabulary_text(const clv_vocabulary *vocabulary);

/** clv_vocabulary_create of each kind. */
clv_status clv__vocabulary_bytes(clv_runtime *runtime, clv_vocabulary **out);
clv_status clv__vocabulary_characters(clv_runtime *runtime, const char *text, size_t bytes,
                                      clv_vocabulary **out);
clv_status clv__vocabulary_tokenizer(clv_runtime *runtime, const char *json, size_t bytes,
                                     clv_vocabulary **out);

#endif
