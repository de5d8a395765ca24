// SPDX-License-Identifier: Apache-2.0
// Vocabularies: which token stands for what. Bytes, or the characters of a text in the order of their code points.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/shown.h"
#include "data/vocabulary.h"
#include "io/array.h"
#include "io/formats.h"
#include "io/shown.h"

enum { BYTES = 256, CODES = 0x110000 };

/** Bytes, or characters. */
typedef struct symbols {
    clv_vocabulary common;
    char *characters;  // all of them, one after the other, UTF-8; NULL: bytes
    uint32_t *begin;   // [count + 1]: where each lies in `characters`
    uint32_t *codes;   // [count]: of each, ascending
    char bytes[BYTES]; // what tokens of bytes stand for
} symbols;

/** The code point of a character of n bytes, which is UTF-8. */
static uint32_t code_of(const uint8_t *at, size_t n) {
    static const uint8_t mask[5] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t code = at[0] & mask[n];
    for (size_t i = 1; i < n; i++) code = code << 6 | (at[i] & 0x3f);
    return code;
}

clv_status clv__vocabulary_not_text(clv__error *error, const void *text, size_t n, size_t at) {
    const char *what = clv__foreign_name(text, n);
    CLV_FAIL(
        error, CLV_E_FORMAT,
        "the text is not UTF-8 (byte %zu)%s%s; tokens that are bytes (CLV_VOCABULARY_BYTES) take any file",
        at, what ? ": it is " : "", what ? what : "");
}

static clv_status no_memory(clv__error *error) {
    CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for a vocabulary");
}

static void destroy_symbols(clv_vocabulary *vocabulary) {
    symbols *own = (symbols *)vocabulary;
    free(own->characters);
    free(own->begin);
    free(own->codes);
    free(own);
}

/** The token of a code point; -1: there is none. */
static int32_t token_of(const symbols *own, uint32_t code) {
    int low = 0, high = own->common.count - 1;
    while (low <= high) {
        const int middle = (low + high) / 2;
        if (own->codes[middle] == code) return middle;
        if (own->codes[middle] < code)
            low = middle + 1;
        else
            high = middle - 1;
    }
    return -1;
}

static clv_status encode_bytes(const clv_vocabulary *vocabulary, const char *text, size_t bytes,
                               clv__tokens *out) {
    for (size_t i = 0; i < bytes; i++)
        if (!clv__tokens_add(out, (uint8_t)text[i])) return no_memory(vocabulary->error);
    return CLV_OK;
}

static clv_status encode_characters(const clv_vocabulary *vocabulary, const char *text, size_t bytes,
                                    clv__tokens *out) {
    const uint8_t *at = (const uint8_t *)text;
    for (size_t i = 0, length; i < bytes; i += length) {
        length = clv__utf8_length(at + i, bytes - i);
        if (!length) return clv__vocabulary_not_text(vocabulary->error, text, bytes, i);
        const int32_t token = token_of((const symbols *)vocabulary, code_of(at + i, length));
        clv__shown_text shown;
        if (token < 0)
            CLV_FAIL(vocabulary->error, CLV_E_NOT_FOUND,
                     "the character '%s' (byte %zu of the text) is not in the vocabulary, which has %d",
                     clv__shown_bytes(text + i, length, &shown), i, vocabulary->count);
        if (!clv__tokens_add(out, token)) return no_memory(vocabulary->error);
    }
    return CLV_OK;
}

static const char *byte_of(const clv_vocabulary *vocabulary, int32_t token, size_t *bytes) {
    *bytes = 1;
    return ((const symbols *)vocabulary)->bytes + token;
}

static const char *character_of(const clv_vocabulary *vocabulary, int32_t token, size_t *bytes) {
    const symbols *own = (const symbols *)vocabulary;
    *bytes = own->begin[token + 1] - own->begin[token];
    return own->characters + own->begin[token];
}

static symbols *new_symbols(clv__error *error, bool characters) {
    symbols *own = clv__alloc(1, sizeof *own);
    if (!own) return NULL;
    own->common = (clv_vocabulary){.error = error,
                                   .kind = characters ? "characters" : "bytes",
                                   .encode = characters ? encode_characters : encode_bytes,
                                   .token = characters ? character_of : byte_of,
                                   .destroy = destroy_symbols};
    for (int i = 0; i < BYTES; i++) own->bytes[i] = (char)i;
    return own;
}

clv_status clv__vocabulary_bytes(clv_runtime *runtime, clv_vocabulary **out) {
    clv__error *error = clv__io_error(runtime);
    symbols *own = new_symbols(error, false);
    *out = own ? &own->common : NULL;
    if (!own) return no_memory(error);
    own->common.count = BYTES;
    return CLV_OK;
}

/** Put a mark at each code point of the text; *bytes: of all that are marked, once each. */
static clv_status mark(clv__error *error, const char *text, size_t n, uint8_t *marks, size_t *bytes,
                       int *count) {
    const uint8_t *at = (const uint8_t *)text;
    for (size_t i = 0; i < n;) {
        const size_t length = clv__utf8_length(at + i, n - i);
        if (!length) return clv__vocabulary_not_text(error, text, n, i);
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

static clv_status fill(symbols *own, const uint8_t *marks, size_t bytes) {
    const size_t count = (size_t)own->common.count;
    own->common.text = own->characters = clv__alloc(bytes + 1, 1);
    own->begin = clv__alloc(count + 1, sizeof *own->begin);
    own->codes = clv__alloc(count, sizeof *own->codes);
    if (!own->characters || !own->begin || !own->codes) return no_memory(own->common.error);
    uint32_t n = 0, token = 0;
    for (uint32_t code = 0; code < CODES; code++) {
        if (!(marks[code / 8] >> code % 8 & 1)) continue;
        own->codes[token] = code;
        own->begin[token++] = n;
        n += (uint32_t)put(code, own->characters + n);
    }
    own->begin[token] = n;
    return CLV_OK;
}

clv_status clv__vocabulary_characters(clv_runtime *runtime, const char *text, size_t bytes,
                                      clv_vocabulary **out) {
    clv__error *error = clv__io_error(runtime);
    CLV_TRY(CLV__GIVEN(error, text));
    CLV_TRY(CLV__GIVEN(error, out));
    *out = NULL;
    uint8_t *marks = clv__alloc(CODES / 8, 1);
    symbols *own = new_symbols(error, true);
    size_t used = 0;
    clv_status status = marks && own ? CLV_OK : no_memory(error);
    if (status == CLV_OK) status = mark(error, text, bytes, marks, &used, &own->common.count);
    if (status == CLV_OK && !own->common.count)
        status = clv__error_set(error, CLV_E_VALUE, "a vocabulary of an empty text");
    if (status == CLV_OK) status = fill(own, marks, used);
    free(marks);
    if (status == CLV_OK)
        *out = &own->common;
    else if (own)
        destroy_symbols(&own->common);
    return status;
}

// ---- of every kind --------------------------------------------------------------------------------------------

void clv_vocabulary_destroy(clv_vocabulary *vocabulary) {
    if (vocabulary) vocabulary->destroy(vocabulary);
}

int clv_vocabulary_count(const clv_vocabulary *vocabulary) {
    return vocabulary->count;
}

const char *clv__vocabulary_kind(const clv_vocabulary *vocabulary) {
    return vocabulary->kind;
}

const char *clv__vocabulary_text(const clv_vocabulary *vocabulary) {
    return vocabulary->text;
}

bool clv__tokens_add(clv__tokens *tokens, int32_t token) {
    if (tokens->n == tokens->room &&
        !clv__grow(&tokens->at, &tokens->room, tokens->n + 1, sizeof *tokens->at))
        return false;
    tokens->at[tokens->n++] = token;
    return true;
}

clv_status clv_vocabulary_encode(const clv_vocabulary *vocabulary, const char *text, size_t bytes,
                                 clv_array *out) {
    CLV_TRY(CLV__GIVEN(NULL, vocabulary));
    CLV_TRY(CLV__GIVEN(vocabulary->error, text));
    CLV_TRY(CLV__GIVEN(vocabulary->error, out));
    *out = (clv_array){0};
    clv__tokens all = {0};
    clv_status status = vocabulary->encode(vocabulary, text, bytes, &all);
    if (status == CLV_OK && !clv__grow(&all.at, &all.room, all.n + 1, sizeof *all.at))
        status = no_memory(vocabulary->error);
    if (status == CLV_OK)
        *out = (clv_array){.type = CLV_DTYPE_I32, .shape = CLV_SHAPE((int64_t)all.n), .data = all.at};
    else
        free(all.at);
    return status;
}

/** Bytes of the longest beginning of a character that `s` has, at least 1; it is no whole one. */
static size_t broken_length(const uint8_t *s, size_t left) {
    static const uint8_t end[3] = {0x80, 0x80, 0x80};
    for (size_t n = left < 3 ? left : 3; n > 1; n--) { // a beginning is what some bytes make whole
        uint8_t whole[6];
        memcpy(whole, s, n);
        memcpy(whole + n, end, sizeof end);
        if (clv__utf8_length(whole, n + sizeof end) > n) return n;
    }
    return 1;
}

void clv__utf8_repair(clv__text *out, const char *bytes, size_t n) {
    const uint8_t *s = (const uint8_t *)bytes;
    size_t done = 0;
    for (size_t i = 0, length; i < n; i += length) {
        length = clv__utf8_length(s + i, n - i);
        if (length) continue;
        length = broken_length(s + i, n - i);
        clv__text_add_bytes(out, bytes + done, i - done);
        clv__text_add_bytes(out, "\xef\xbf\xbd", 3);
        done = i + length;
    }
    if (n > done) clv__text_add_bytes(out, bytes + done, n - done);
}

static clv_status decode_bytes(const clv_vocabulary *vocabulary, const int32_t *tokens, size_t n,
                               clv__text *out) {
    clv__text all = {0};
    for (size_t i = 0, bytes; i < n; i++) {
        const char *one = vocabulary->token(vocabulary, tokens[i], &bytes);
        clv__text_add_bytes(&all, one, bytes);
    }
    clv__utf8_repair(out, clv__text_get(&all), all.n);
    const bool failed = all.failed;
    clv__text_reset(&all);
    return failed ? no_memory(vocabulary->error) : CLV_OK;
}

clv_status clv_vocabulary_decode(const clv_vocabulary *vocabulary, const int32_t *tokens, size_t n,
                                 bool skip_special, clv_array *out) {
    CLV_TRY(CLV__GIVEN(NULL, vocabulary));
    CLV_TRY(CLV__GIVEN(vocabulary->error, tokens));
    CLV_TRY(CLV__GIVEN(vocabulary->error, out));
    *out = (clv_array){0};
    for (size_t i = 0; i < n; i++)
        if (tokens[i] < 0 || tokens[i] >= vocabulary->count)
            CLV_FAIL(vocabulary->error, CLV_E_VALUE,
                     "token %zu is %" PRId32 ", and the vocabulary has 0 to %d", i, tokens[i],
                     vocabulary->count - 1);
    clv__text text = {0};
    clv_status status = vocabulary->decode ? vocabulary->decode(vocabulary, tokens, n, skip_special, &text)
                                           : decode_bytes(vocabulary, tokens, n, &text);
    if (status == CLV_OK && (text.failed || !clv__grow(&text.data, &text.room, text.n + 1, 1)))
        status = no_memory(vocabulary->error);
    if (status == CLV_OK)
        *out = (clv_array){.type = CLV_DTYPE_U8, .shape = CLV_SHAPE((int64_t)text.n), .data = text.data};
    else
        clv__text_reset(&text);
    return status;
}

const char *clv_vocabulary_token(const clv_vocabulary *vocabulary, int32_t token, size_t *bytes) {
    *bytes = 0;
    return token < 0 || token >= vocabulary->count ? NULL : vocabulary->token(vocabulary, token, bytes);
}
