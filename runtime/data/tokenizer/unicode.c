// SPDX-License-Identifier: Apache-2.0
#include "data/tokenizer/unicode.h"

#include <stdlib.h>

#ifdef CLEAVE_UTF8PROC
#include <utf8proc.h>
#endif

enum { LOWERED = CLV__UNICODE_WORD + 1, STAND_IN }; // sets whose characters become others

/** A row of unicode.def, where sets and the characters in them are in order. */
typedef struct row {
    int set;
    uint32_t first, last;
    int32_t to; // a character, or how far
} row;

static const row rows[] = {
#define UNKNOWN(from, until) {CLV__UNICODE_UNKNOWN, from, until, 0},
#define MARK(from, until) {CLV__UNICODE_MARK, from, until, 0},
#define NONSPACING(from, until) {CLV__UNICODE_NONSPACING, from, until, 0},
#define REMOVED(from, until) {CLV__UNICODE_REMOVED, from, until, 0},
#define PUNCTUATION(from, until) {CLV__UNICODE_PUNCTUATION, from, until, 0},
#define NUMERIC(from, until) {CLV__UNICODE_NUMERIC, from, until, 0},
#define WORD(from, until) {CLV__UNICODE_WORD, from, until, 0},
#define LOWER(from, until, distance) {LOWERED, from, until, distance},
#define NEWER(from, until, stand_in) {STAND_IN, from, until, stand_in},
#include "data/tokenizer/unicode.def"
};

/** The row of a set that a character is in; NULL: none. */
static const row *find(int set, uint32_t code) {
    size_t low = 0, high = sizeof rows / sizeof *rows;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const row *at = &rows[middle];
        if (set < at->set || (set == at->set && code < at->first))
            high = middle;
        else if (set > at->set || code > at->last)
            low = middle + 1;
        else
            return at;
    }
    return NULL;
}

uint32_t clv__utf8_code(const char *text, size_t *bytes) {
    const uint8_t *at = (const uint8_t *)text;
    static const uint8_t mask[5] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    const size_t n = at[0] < 0x80 ? 1 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;
    uint32_t code = at[0] & mask[n];
    for (size_t i = 1; i < n; i++) code = code << 6 | (at[i] & 0x3f);
    *bytes = n;
    return code;
}

void clv__utf8_put(clv__text *out, uint32_t code) {
    const int more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const uint8_t lead[4] = {0, 0xc0, 0xe0, 0xf0};
    char to[4] = {(char)(lead[more] | code >> 6 * more)};
    for (int i = 1; i <= more; i++) to[i] = (char)(0x80 | (code >> 6 * (more - i) & 0x3f));
    clv__text_add_bytes(out, to, (size_t)more + 1);
}

bool clv__unicode_in(clv__unicode_set set, uint32_t code) {
    return find((int)set, code) != NULL;
}

bool clv__unicode_is_space(uint32_t code) { // White_Space
    return (code >= 9 && code <= 13) || code == ' ' || code == 0x85 || code == 0xa0 || code == 0x1680 ||
           (code >= 0x2000 && code <= 0x200a) || code == 0x2028 || code == 0x2029 || code == 0x202f ||
           code == 0x205f || code == 0x3000;
}

uint32_t clv__unicode_stand_in(uint32_t code) {
    const row *older = find(STAND_IN, code);
    return older ? (uint32_t)older->to : code;
}

#ifdef CLEAVE_UTF8PROC
bool clv__unicode_there(void) {
    return true;
}

/** A stretch without characters that the normal forms do not know. */
static bool normalize_known(clv__unicode_form form, const char *text, size_t bytes, clv__text *out) {
    static const int options[] = {[CLV__NFC] = UTF8PROC_STABLE | UTF8PROC_COMPOSE,
                                  [CLV__NFD] = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE,
                                  [CLV__NFKC] = UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT,
                                  [CLV__NFKD] = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT};
    if (!bytes) return true;
    utf8proc_uint8_t *made = NULL;
    const utf8proc_ssize_t n = utf8proc_map((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)bytes, &made,
                                            (utf8proc_option_t)options[form]);
    if (n >= 0) clv__text_add_bytes(out, (const char *)made, (size_t)n);
    free(made);
    return n >= 0 && !out->failed;
}

bool clv__unicode_normalize(clv__unicode_form form, const char *text, size_t bytes, clv__text *out) {
    size_t done = 0; // an unknown character neither takes part in a composition nor lets anything pass
    for (size_t i = 0, length; i < bytes; i += length) {
        const uint32_t code = clv__utf8_code(text + i, &length);
        if (code < 0x300 || !clv__unicode_in(CLV__UNICODE_UNKNOWN, code)) continue;
        if (!normalize_known(form, text + done, i - done, out)) return false;
        clv__text_add_bytes(out, text + i, length);
        done = i + length;
    }
    return normalize_known(form, text + done, bytes - done, out);
}

void clv__unicode_lower(uint32_t code, clv__text *out) {
    const row *small = find(LOWERED, code);
    if (code == 0x130) { // the one that becomes two
        clv__text_add_bytes(out, "i\xcc\x87", 3);
        return;
    }
    clv__utf8_put(out, small ? (uint32_t)((int32_t)code + small->to)
                             : (uint32_t)utf8proc_tolower((utf8proc_int32_t)code));
}

size_t clv__unicode_grapheme(const char *text, size_t bytes) {
    utf8proc_int32_t state = 0;
    size_t at, length;
    uint32_t before = clv__utf8_code(text, &at);
    while (at < bytes) {
        const uint32_t code = clv__utf8_code(text + at, &length);
        if (utf8proc_grapheme_break_stateful((utf8proc_int32_t)before, (utf8proc_int32_t)code, &state)) break;
        before = code;
        at += length;
    }
    return at;
}
#else
bool clv__unicode_there(void) {
    return false;
}

bool clv__unicode_normalize(clv__unicode_form form, const char *text, size_t bytes, clv__text *out) {
    (void)form;
    clv__text_add_bytes(out, text, bytes);
    return !out->failed;
}

void clv__unicode_lower(uint32_t code, clv__text *out) {
    clv__utf8_put(out, code);
}

size_t clv__unicode_grapheme(const char *text, size_t bytes) {
    size_t length;
    (void)bytes;
    (void)clv__utf8_code(text, &length);
    return length;
}
#endif
