// SPDX-License-Identifier: Apache-2.0
// What every kind of vocabulary has: bytes and characters (vocabulary.c), a tokenizer's (tokenizer.c).
#ifndef CLV_DATA_VOCABULARY_H
#define CLV_DATA_VOCABULARY_H

#include "base/error.h"
#include "cleave/data.h"

/** Stands at the beginning of what a kind knows. */
struct clv_vocabulary {
    clv__error *error;
    const char *kind; // "bytes", "characters" or "tokenizer"
    int count;        // tokens
    const char *text; // from which the same is made again; NULL of bytes
    clv_status (*encode)(const clv_vocabulary *vocabulary, const char *text, size_t bytes, int32_t *tokens,
                         size_t *n);
    const char *(*token)(const clv_vocabulary *vocabulary, int32_t token,
                         size_t *bytes); // there is such a one
    void (*destroy)(clv_vocabulary *vocabulary);
};

/** The text is not UTF-8 from this byte on; says so. */
clv_status clv__vocabulary_not_text(clv__error *error, size_t at);

#endif
