// SPDX-License-Identifier: Apache-2.0
// Vocabularies: which token stands for what. Bytes, or the characters of a text in the order of their code points.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/shown.h"
#include "cleave/data.h"
#include "io/array.h"
#include "io/shown.h"

enum { BYTES = 256, CODES = 0x110000 };

struct clv_vocabulary {
    clv__error *error;
    char *characters;  // all of them, one after the other, UTF-8; NULL: bytes
    int count;         // tokens
    uint32_t *begin;   // [count + 1]: where each lies in `characters`
    uint32_t *codes;   // [count]: of each, ascending
    char bytes[BYTES]; // what tokens of bytes stand for
};

/** The code point of a character of n bytes, which is UTF-8. */
static uint32_t code_of(const uint8_t *at, size_t n) {
    static const uint8_t mask[5] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t code = at[0] & mask[n];
    for (size_t i = 1; i < n; i++) code = code << 6 | (at[i] & 0x3f);
    return code;
}

static clv_status not_text(clv__error *error, size_t at) {
    CLV_FAIL(error, CLV_E_FORMAT,
             "the text is not UTF-8 (byte %zu); tokens that are bytes (--vocabulary bytes) take any file", at);
}

static clv_status no_memory(clv__error *error) {
    CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for a vocabulary");
}

static clv_vocabulary *new_vocabulary(clv__error *error) {
    clv_vocabulary *vocabulary = clv__alloc(1, sizeof *vocabulary);
    if (!vocabulary) return NULL;
    vocabulary->error = error;
    for (int i = 0; i < BYTES; i++) vocabulary->bytes[i] = (char)i;
    return vocabulary;
}

clv_status clv_vocabulary_bytes(clv_runtime *runtime, clv_vocabulary **out) {
    clv__error *error = clv__io_error(runtime);
    CLV_TRY(CLV__GIVEN(error, out));
    *out = new_vocabulary(error);
    if (!*out) return no_memory(error);
    (*out)->count = BYTES;
    return CLV_OK;
}

/** Put a mark at each code point of the text; *bytes: of all that are marked, once each. */
static clv_status mark(clv__error *error, const char *text, size_t n, uint8_t *marks, size_t *bytes,
                       int *count) {
    const uint8_t *at = (const uint8_t *)text;
    for (size_t i = 0; i < n;) {
        const size_t length = clv__utf8_length(at + i, n - i);
        if (!length) return not_text(error, i);
        const uint32_t code = code_of(at + i, length);
        if (!(marks[code / 8] >> code % 8 & 1)) {
            marks[code / 8] |= (uint8_t)(1 << code % 8);
            *bytes += length;
            ++*count;
        }
        i += length;
    }
    return CLV_OK;
}

/** Append the character of a code point, and return its bytes. */
static size_t put(uint32_t code, char *to) {
    const int more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const uint8_t lead[4] = {0, 0xc0, 0xe0, 0xf0};
    to[0] = (char)(lead[more] | code >> 6 * more);
    for (int i = 1; i <= more; i++) to[i] = (char)(0x80 | (code >> 6 * (more - i) & 0x3f));
    return (size_t)more + 1;
}

static clv_status fill(clv_vocabulary *vocabulary, const uint8_t *marks, size_t bytes) {
    vocabulary->characters = clv__alloc(bytes + 1, 1);
    vocabulary->begin = clv__alloc((size_t)vocabulary->count + 1, sizeof *vocabulary->begin);
    vocabulary->codes = clv__alloc((size_t)vocabulary->count, sizeof *vocabulary->codes);
    if (!vocabulary->characters || !vocabulary->begin || !vocabulary->codes)
        return no_memory(vocabulary->error);
    uint32_t n = 0, token = 0;
    for (uint32_t code = 0; code < CODES; code++) {
        if (!(marks[code / 8] >> code % 8 & 1)) continue;
        vocabulary->codes[token] = code;
        vocabulary->begin[token++] = n;
        n += (uint32_t)put(code, vocabulary->characters + n);
    }
    vocabulary->begin[token] = n;
    return CLV_OK;
}

clv_status clv_vocabulary_characters(clv_runtime *runtime, const char *text, size_t bytes,
                                     clv_vocabulary **out) {
    clv__error *error = clv__io_error(runtime);
    CLV_TRY(CLV__GIVEN(error, text));
    CLV_TRY(CLV__GIVEN(error, out));
    *out = NULL;
    uint8_t *marks = clv__alloc(CODES / 8, 1);
    clv_vocabulary *vocabulary = new_vocabulary(error);
    size_t used = 0;
    clv_status status = marks && vocabulary ? CLV_OK : no_memory(error);
    if (status == CLV_OK) status = mark(error, text, bytes, marks, &used, &vocabulary->count);
    if (status == CLV_OK && !vocabulary->count)
        status = clv__error_set(error, CLV_E_VALUE, "a vocabulary of an empty text");
    if (status == CLV_OK) status = fill(vocabulary, marks, used);
    free(marks);
    if (status == CLV_OK)
        *out = vocabulary;
    else
        clv_vocabulary_destroy(vocabulary);
    return status;
}

void clv_vocabulary_destroy(clv_vocabulary *vocabulary) {
    if (!vocabulary) return;
    free(vocabulary->characters);
    free(vocabulary->begin);
    free(vocabulary->codes);
    free(vocabulary);
}

int clv_vocabulary_count(const clv_vocabulary *vocabulary) {
    return vocabulary->count;
}

const char *clv_vocabulary_text(const clv_vocabulary *vocabulary) {
    return vocabulary->characters;
}

/** The token of a code point; -1: there is none. */
static int32_t token_of(const clv_vocabulary *vocabulary, uint32_t code) {
    int low = 0, high = vocabulary->count - 1;
    while (low <= high) {
        const int middle = (low + high) / 2;
        if (vocabulary->codes[middle] == code) return middle;
        if (vocabulary->codes[middle] < code)
            low = middle + 1;
        else
            high = middle - 1;
    }
    return -1;
}

clv_status clv_vocabulary_encode(const clv_vocabulary *vocabulary, const char *text, size_t bytes,
                                 int32_t *tokens, size_t *n) {
    CLV_TRY(CLV__GIVEN(NULL, vocabulary));
    CLV_TRY(CLV__GIVEN(vocabulary->error, text));
    CLV_TRY(CLV__GIVEN(vocabulary->error, tokens));
    CLV_TRY(CLV__GIVEN(vocabulary->error, n));
    const uint8_t *at = (const uint8_t *)text;
    *n = 0;
    for (size_t i = 0, length = 1; i < bytes; i += length) {
        if (!vocabulary->characters) {
            tokens[(*n)++] = at[i];
            continue;
        }
        length = clv__utf8_length(at + i, bytes - i);
        if (!length) return not_text(vocabulary->error, i);
        const int32_t token = token_of(vocabulary, code_of(at + i, length));
        clv__shown_text shown;
        if (token < 0)
            CLV_FAIL(vocabulary->error, CLV_E_NOT_FOUND,
                     "the character '%s' (byte %zu of the text) is not in the vocabulary, which has %d",
                     clv__shown_bytes(text + i, length, &shown), i, vocabulary->count);
        tokens[(*n)++] = token;
    }
    return CLV_OK;
}

const char *clv_vocabulary_token(const clv_vocabulary *vocabulary, int32_t token, size_t *bytes) {
    *bytes = 0;
    if (token < 0 || token >= vocabulary->count) return NULL;
    if (!vocabulary->characters) {
        *bytes = 1;
        return vocabulary->bytes + token;
    }
    *bytes = vocabulary->begin[token + 1] - vocabulary->begin[token];
    return vocabulary->characters + vocabulary->begin[token];
}
