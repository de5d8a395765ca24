// SPDX-License-Identifier: Apache-2.0
// Pre-tokenizers: a normalized text in words. Each step parts what the ones before have left; Sequences are one list.
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/tokenizer/tokenizer.h"
#include "data/tokenizer/unicode.h"
#include "io/shown.h"

/** The words of GPT-2: ByteLevel with use_regex. */
#define WORDS_OF_GPT2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

typedef enum step_kind {
    STEP_BYTE_LEVEL,
    STEP_METASPACE,
    STEP_EXPRESSION, // Split, CharDelimiterSplit
    STEP_CHARACTERS, // Digits, Punctuation, WhitespaceSplit, and both of BertPreTokenizer
    STEP_WORDS       // Whitespace
} step_kind;

typedef enum behavior { ISOLATED, REMOVED, CONTIGUOUS, WITH_PREVIOUS, WITH_NEXT } behavior;
typedef enum prepending { SCHEME_NEVER, SCHEME_FIRST, SCHEME_ALWAYS } prepending;

typedef struct clv__pretokenizer_step {
    step_kind kind;
    behavior behavior;
    bool invert;
    bool prefix;       // of ByteLevel
    prepending scheme; // of Metaspace
    const char *replacement;
    size_t replacement_bytes;
    bool split;
    bool (*is)(uint32_t code); // of STEP_CHARACTERS
    clv__expression *expression;
} step;

// ---- bytes as characters --------------------------------------------------------------------------------------------

/** Does a byte stand for itself? The others are the characters from 256 on, in order. */
static bool stands_for_itself(int byte) {
    return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

static uint32_t code_of_byte(int byte) {
    if (stands_for_itself(byte)) return (uint32_t)byte;
    return byte <= ' '    ? 0x100u + (uint32_t)byte                // 0 to 32
           : byte <= 0xa0 ? 0x100u + (uint32_t)(byte - 0x7f) + 33u // 127 to 160
                          : 0x100u + 67u;                          // 173
}

static int byte_of_code(uint32_t code) {
    if (code < 256) return stands_for_itself((int)code) ? (int)code : -1;
    const uint32_t place = code - 256;
    return place < 33 ? (int)place : place < 67 ? (int)(place - 33 + 0x7f) : place == 67 ? 0xad : -1;
}

void clv__byte_level_put(clv__text *out, const char *bytes, size_t n) {
    for (size_t i = 0; i < n; i++) clv__utf8_put(out, code_of_byte((uint8_t)bytes[i]));
}

bool clv__byte_level_get(clv__text *out, const char *text, size_t n) {
    const size_t kept = out->n;
    for (size_t i = 0, length; i < n; i += length) {
        const int byte = byte_of_code(clv__utf8_code(text + i, &length));
        const char one = (char)byte;
        if (byte < 0) {
            out->n = kept;
            if (out->data) out->data[kept] = 0;
            return false;
        }
        clv__text_add_bytes(out, &one, 1);
    }
    return true;
}

// ---- stretches ------------------------------------------------------------------------------------------------------

static bool is_digit(uint32_t code) {
    return clv__unicode_in(CLV__UNICODE_NUMERIC, code);
}

static bool is_punctuation(uint32_t code) {
    return clv__unicode_in(CLV__UNICODE_PUNCTUATION, code);
}

static bool find_characters(bool (*is)(uint32_t), const char *text, size_t bytes, clv__segments *out) {
    size_t done = 0;
    for (size_t i = 0, length; i < bytes; i += length) {
        if (!is(clv__utf8_code(text + i, &length))) continue;
        if (i > done && !clv__segments_add(out, done, i, false)) return false;
        if (!clv__segments_add(out, i, i + length, true)) return false;
        done = i + length;
    }
    return done == bytes || clv__segments_add(out, done, bytes, false);
}

/** Runs of letters and the like, and of what is neither such nor a blank; blanks are what is taken away. */
static bool find_words(const char *text, size_t bytes, clv__segments *out) {
    int before = -1;
    for (size_t i = 0, length; i < bytes; i += length) {
        const uint32_t code = clv__utf8_code(text + i, &length);
        const int now = clv__unicode_in(CLV__UNICODE_WORD, code) ? 1 : clv__unicode_is_space(code) ? 0 : 2;
        if (now != before && !clv__segments_add(out, i, i, now == 0)) return false;
        out->all[out->n - 1].end = i + length;
        before = now;
    }
    return true;
}

/** Matches and what lies between become words, in place. */
static void apply(behavior how, clv__segments *s) {
    size_t n = 0;
    bool before = false;
    switch (how) {
    case ISOLATED: break;
    case REMOVED:
        for (size_t i = 0; i < s->n; i++)
            if (!s->all[i].match) s->all[n++] = s->all[i];
        s->n = n;
        break;
    case CONTIGUOUS:
    case WITH_PREVIOUS:
        for (size_t i = 0; i < s->n; i++) {
            const clv__segment one = s->all[i];
            const bool joins = how == CONTIGUOUS ? one.match == before : one.match && !before;
            if (joins && n)
                s->all[n - 1].end = one.end;
            else
                s->all[n++] = one;
            before = one.match;
        }
        s->n = n;
        break;
    case WITH_NEXT:
        n = s->n;
        for (size_t i = s->n; i-- > 0;) {
            const clv__segment one = s->all[i];
            if (one.match && !before && n < s->n)
                s->all[n].begin = one.begin;
            else
                s->all[--n] = one;
            before = one.match;
        }
        memmove(s->all, s->all + n, (s->n - n) * sizeof *s->all);
        s->n -= n;
        break;
    }
}

// ---- a walk ---------------------------------------------------------------------------------------------------------

typedef struct walk {
    const clv__pretokenizer *pretokenizer;
    clv__error *error;
    clv__on_piece *on_piece;
    void *user;
} walk;

static clv_status walk_from(const walk *w, int level, clv__piece piece);

/** Go on with each stretch of a text; as_bytes: as the characters that stand for its bytes. */
static clv_status walk_all(const walk *w, int level, clv__piece piece, const clv__segments *found,
                           bool as_bytes) {
    clv__text room = {0};
    clv_status status = CLV_OK;
    for (size_t i = 0; i < found->n && status == CLV_OK; i++) {
        const clv__segment *one = &found->all[i];
        clv__piece next = {piece.text + one->begin, one->end - one->begin, piece.first && one->begin == 0};
        if (as_bytes) {
            room.n = 0;
            clv__byte_level_put(&room, next.text, next.bytes);
            next.text = clv__text_get(&room), next.bytes = room.n;
            if (room.failed) status = clv__tokenizer_no_memory(w->error);
        }
        if (status == CLV_OK) status = walk_from(w, level, next);
    }
    clv__text_reset(&room);
    return status;
}

static clv_status run_byte_level(const walk *w, int level, const step *s, clv__piece piece) {
    clv__text prefixed = {0};
    clv__segments found = {0};
    clv_status status = CLV_OK;
    if (s->prefix && piece.text[0] != ' ') {
        clv__text_add_bytes(&prefixed, " ", 1);
        clv__text_add_bytes(&prefixed, piece.text, piece.bytes);
        if (prefixed.failed) status = clv__tokenizer_no_memory(w->error);
        piece.text = clv__text_get(&prefixed), piece.bytes = prefixed.n;
    }
    if (status == CLV_OK && s->expression)
        status = clv__expression_find(s->expression, w->error, piece.text, piece.bytes, &found);
    else if (status == CLV_OK && !clv__segments_add(&found, 0, piece.bytes, false))
        status = clv__tokenizer_no_memory(w->error);
    if (status == CLV_OK) status = walk_all(w, level + 1, piece, &found, true);
    clv__text_reset(&prefixed);
    free(found.all);
    return status;
}

static bool begins_with(const char *text, size_t bytes, const char *with, size_t n) {
    return bytes >= n && !memcmp(text, with, n);
}

static clv_status run_metaspace(const walk *w, int level, const step *s, clv__piece piece) {
    clv__text room = {0};
    clv__segments found = {0};
    const char *mark = s->replacement;
    const size_t n = s->replacement_bytes;
    const bool marked = piece.text[0] == ' ' || begins_with(piece.text, piece.bytes, mark, n);
    if (!marked && (s->scheme == SCHEME_ALWAYS || (s->scheme == SCHEME_FIRST && piece.first)))
        clv__text_add_bytes(&room, mark, n);
    for (size_t i = 0; i < piece.bytes; i++)
        clv__text_add_bytes(&room, piece.text[i] == ' ' ? mark : piece.text + i,
                            piece.text[i] == ' ' ? n : 1);
    const char *text = clv__text_get(&room);
    bool there = !room.failed;
    for (size_t i = 0, begin = 0; there && i < room.n;) { // each mark begins a word
        i += begins_with(text + i, room.n - i, mark, n) ? n : 1;
        while (i < room.n && !(s->split && begins_with(text + i, room.n - i, mark, n))) i++;
        there = clv__segments_add(&found, begin, i, false);
        begin = i;
    }
    const clv__piece whole = {text, room.n, piece.first};
    const clv_status status =
        there ? walk_all(w, level + 1, whole, &found, false) : clv__tokenizer_no_memory(w->error);
    clv__text_reset(&room);
    free(found.all);
    return status;
}

static clv_status run_split(const walk *w, int level, const step *s, clv__piece piece) {
    clv__segments found = {0};
    clv_status status = CLV_OK;
    if (s->kind == STEP_EXPRESSION)
        status = clv__expression_find(s->expression, w->error, piece.text, piece.bytes, &found);
    else if (!(s->kind == STEP_WORDS ? find_words(piece.text, piece.bytes, &found)
                                     : find_characters(s->is, piece.text, piece.bytes, &found)))
        status = clv__tokenizer_no_memory(w->error);
    for (size_t i = 0; s->invert && i < found.n; i++) found.all[i].match = !found.all[i].match;
    if (status == CLV_OK) {
        apply(s->behavior, &found);
        status = walk_all(w, level + 1, piece, &found, false);
    }
    free(found.all);
    return status;
}

static clv_status walk_from(const walk *w, int level, clv__piece piece) {
    if (piece.bytes == 0) return CLV_OK;
    if (level == w->pretokenizer->n) return w->on_piece(w->user, piece);
    const step *s = &w->pretokenizer->steps[level];
    return s->kind == STEP_BYTE_LEVEL  ? run_byte_level(w, level, s, piece)
           : s->kind == STEP_METASPACE ? run_metaspace(w, level, s, piece)
                                       : run_split(w, level, s, piece);
}

clv_status clv__pretokenizer_run(const clv__pretokenizer *pretokenizer, clv__error *error, clv__piece text,
                                 clv__on_piece *on_piece, void *user) {
    const walk w = {pretokenizer, error, on_piece, user};
    return walk_from(&w, 0, text);
}

// ---- read -----------------------------------------------------------------------------------------------------------

static clv_status read_behavior(clv__error *error, const json_t *json, const char *otherwise, behavior *out) {
    static const char *const names[] = {[ISOLATED] = "Isolated",
                                        [REMOVED] = "Removed",
                                        [CONTIGUOUS] = "Contiguous",
                                        [WITH_PREVIOUS] = "MergedWithPrevious",
                                        [WITH_NEXT] = "MergedWithNext"};
    size_t bytes;
    const char *said = clv__json_text(json, "behavior", &bytes);
    if (!said) said = otherwise;
    for (size_t i = 0; said && i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i], said) != 0) continue;
        *out = (behavior)i;
        return CLV_OK;
    }
    clv__shown_text shown;
    CLV_FAIL(error, CLV_E_UNSUPPORTED,
             "the tokenizer: a behavior of its pre_tokenizer is '%s', which is not supported",
             said ? clv__shown(said, &shown) : "");
}

static clv_status read_metaspace(clv__error *error, const json_t *json, step *s) {
    size_t bytes = 0, length = 0;
    s->replacement = clv__json_text(json, "replacement", &s->replacement_bytes);
    if (s->replacement_bytes) (void)clv__utf8_code(s->replacement, &length);
    if (!s->replacement || length != s->replacement_bytes)
        CLV_FAIL(error, CLV_E_FORMAT, "the tokenizer: the replacement of Metaspace is not one character");
    const char *scheme = clv__json_text(json, "prepend_scheme", &bytes);
    s->scheme =
        clv__json_flag(json, "add_prefix_space", true) ? SCHEME_ALWAYS : SCHEME_NEVER; // the older form
    if (scheme)
        s->scheme = !strcmp(scheme, "never")   ? SCHEME_NEVER
                    : !strcmp(scheme, "first") ? SCHEME_FIRST
                                               : SCHEME_ALWAYS;
    s->split = clv__json_flag(json, "split", true);
    return CLV_OK;
}

static clv_status read_step(clv__error *error, const json_t *json, step *s) {
    size_t bytes = 0;
    if (clv__json_is(json, "ByteLevel")) {
        s->kind = STEP_BYTE_LEVEL;
        s->prefix = clv__json_flag(json, "add_prefix_space", true);
        if (!clv__json_flag(json, "use_regex", true)) return CLV_OK;
        return clv__expression_make(error, WORDS_OF_GPT2, strlen(WORDS_OF_GPT2), false, &s->expression);
    }
    if (clv__json_is(json, "Metaspace")) {
        s->kind = STEP_METASPACE;
        return read_metaspace(error, json, s);
    }
    if (clv__json_is(json, "Split")) {
        s->kind = STEP_EXPRESSION;
        s->invert = clv__json_flag(json, "invert", false);
        CLV_TRY(read_behavior(error, json, NULL, &s->behavior));
        return clv__expression_read(error, "pre_tokenizer", json_object_get(json, "pattern"), &s->expression);
    }
    if (clv__json_is(json, "CharDelimiterSplit")) {
        s->kind = STEP_EXPRESSION;
        s->behavior = REMOVED;
        const char *delimiter = clv__json_text(json, "delimiter", &bytes);
        if (!delimiter || !bytes)
            CLV_FAIL(error, CLV_E_FORMAT,
                     "the tokenizer: CharDelimiterSplit of its pre_tokenizer has no delimiter");
        return clv__expression_make(error, delimiter, bytes, true, &s->expression);
    }
    s->kind = STEP_CHARACTERS;
    if (clv__json_is(json, "Digits")) {
        s->is = is_digit;
        s->behavior = clv__json_flag(json, "individual_digits", false) ? ISOLATED : CONTIGUOUS;
    } else if (clv__json_is(json, "Punctuation")) {
        s->is = is_punctuation;
        return read_behavior(error, json, "Isolated", &s->behavior);
    } else if (clv__json_is(json, "WhitespaceSplit") || clv__json_is(json, "BertPreTokenizer")) {
        s->is = clv__unicode_is_space;
        s->behavior = REMOVED;
    } else if (clv__json_is(json, "Whitespace")) {
        s->kind = STEP_WORDS;
        s->behavior = REMOVED;
    } else {
        return clv__json_unknown(error, "pre_tokenizer", json);
    }
    return CLV_OK;
}

static clv_status add_step(clv__error *error, const json_t *json, void *to) {
    clv__pretokenizer *out = to;
    if (out->n + 2 > CLV__MOST_STEPS)
        CLV_FAIL(error, CLV_E_FORMAT, "the tokenizer: its pre_tokenizer has more than %d steps",
                 CLV__MOST_STEPS - 1);
    int levels = clv__json_is(json, "ByteLevel");
    for (int i = 0; i < out->n; i++) levels += out->steps[i].kind == STEP_BYTE_LEVEL;
    if (levels > 2) // each may double a text
        CLV_FAIL(error, CLV_E_FORMAT, "the tokenizer: its pre_tokenizer has ByteLevel more than twice");
    CLV_TRY(read_step(error, json, &out->steps[out->n++]));
    if (clv__json_is(json, "BertPreTokenizer"))
        out->steps[out->n++] = (step){.kind = STEP_CHARACTERS, .is = is_punctuation, .behavior = ISOLATED};
    return CLV_OK;
}

clv_status clv__pretokenizer_read(clv__error *error, const json_t *json, clv__pretokenizer *out) {
    out->steps = clv__alloc(CLV__MOST_STEPS, sizeof *out->steps);
    if (!out->steps) return clv__tokenizer_no_memory(error);
    return clv__json_steps(error, "pre_tokenizer", "pretokenizers", json, out, add_step);
}

void clv__pretokenizer_reset(clv__pretokenizer *pretokenizer) {
    for (int i = 0; i < pretokenizer->n; i++) clv__expression_destroy(pretokenizer->steps[i].expression);
    free(pretokenizer->steps);
    *pretokenizer = (clv__pretokenizer){0};
}
