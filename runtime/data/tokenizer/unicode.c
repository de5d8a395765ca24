// SPDX-License-Identifier: Apache-2.0
#include "data/tokenizer/unicode.h"

#include <stdlib.h>

#ifdef CLEAVE_UTF8PROC
#include <utf8proc.h>
#endif

typedef struct range {
    uint32_t first, last;
} range;

typedef struct mapped {
    uint32_t first, last;
    int32_t to; // a character, or how far
} mapped;

#define NONE(...)
#define RANGE(from, until) {from, until},

#define UNKNOWN NONE
#define MARK NONE
#define NONSPACING NONE
#define REMOVED NONE
#define PUNCTUATION NONE
#define NUMERIC NONE
#define WORD NONE
#define LOWER NONE
#define NEWER NONE
// Each table takes its rows of the one file.
#undef UNKNOWN
#define UNKNOWN RANGE
static const range unknowns[] = {
#include "data/tokenizer/unicode.def"
};
#undef UNKNOWN
#define UNKNOWN NONE
#undef MARK
#define MARK RANGE
static const range marks[] = {
#include "data/tokenizer/unicode.def"
};
#undef MARK
#define MARK NONE
#undef NONSPACING
#define NONSPACING RANGE
static const range accents[] = {
#include "data/tokenizer/unicode.def"
};
#undef NONSPACING
#define NONSPACING NONE
#undef REMOVED
#define REMOVED RANGE
static const range removed[] = {
#include "data/tokenizer/unicode.def"
};
#undef REMOVED
#define REMOVED NONE
#undef PUNCTUATION
#define PUNCTUATION RANGE
static const range punctuation[] = {
#include "data/tokenizer/unicode.def"
};
#undef PUNCTUATION
#define PUNCTUATION NONE
#undef NUMERIC
#define NUMERIC RANGE
static const range numbers[] = {
#include "data/tokenizer/unicode.def"
};
#undef NUMERIC
#define NUMERIC NONE
#undef WORD
#define WORD RANGE
static const range words[] = {
#include "data/tokenizer/unicode.def"
};
#undef WORD
#define WORD NONE
#undef NEWER
#define NEWER(from, until, stand_in) {from, until, stand_in},
static const mapped newer[] = {
#include "data/tokenizer/unicode.def"
};
#undef NEWER
#define NEWER NONE

static const struct {
    const range *ranges;
    size_t n;
} sets[] = {[CLV__UNICODE_UNKNOWN] = {unknowns, sizeof unknowns / sizeof *unknowns},
            [CLV__UNICODE_MARK] = {marks, sizeof marks / sizeof *marks},
            [CLV__UNICODE_NONSPACING] = {accents, sizeof accents / sizeof *accents},
            [CLV__UNICODE_REMOVED] = {removed, sizeof removed / sizeof *removed},
            [CLV__UNICODE_PUNCTUATION] = {punctuation, sizeof punctuation / sizeof *punctuation},
            [CLV__UNICODE_NUMERIC] = {numbers, sizeof numbers / sizeof *numbers},
            [CLV__UNICODE_WORD] = {words, sizeof words / sizeof *words}};

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
    const range *ranges = sets[set].ranges;
    size_t low = 0, high = sets[set].n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (code < ranges[middle].first)
            high = middle;
        else if (code > ranges[middle].last)
            low = middle + 1;
        else
            return true;
    }
    return false;
}

bool clv__unicode_is_space(uint32_t code) { // White_Space
    return (code >= 9 && code <= 13) || code == ' ' || code == 0x85 || code == 0xa0 || code == 0x1680 ||
           (code >= 0x2000 && code <= 0x200a) || code == 0x2028 || code == 0x2029 || code == 0x202f ||
           code == 0x205f || code == 0x3000;
}

static const mapped *find_mapped(const mapped *rows, size_t n, uint32_t code) {
    size_t low = 0, high = n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (code < rows[middle].first)
            high = middle;
        else if (code > rows[middle].last)
            low = middle + 1;
        else
            return &rows[middle];
    }
    return NULL;
}

uint32_t clv__unicode_stand_in(uint32_t code) {
    const mapped *row = find_mapped(newer, sizeof newer / sizeof *newer, code);
    return row ? (uint32_t)row->to : code;
}

#ifdef CLEAVE_UTF8PROC
#undef LOWER
#define LOWER(from, until, distance) {from, until, distance},
static const mapped capitals[] = {
#include "data/tokenizer/unicode.def"
};

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
    const mapped *row = find_mapped(capitals, sizeof capitals / sizeof *capitals, code);
    if (code == 0x130) { // the one that becomes two
        clv__text_add_bytes(out, "i\xcc\x87", 3);
        return;
    }
    clv__utf8_put(out, row ? (uint32_t)((int32_t)code + row->to)
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
