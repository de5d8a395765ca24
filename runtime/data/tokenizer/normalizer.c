// SPDX-License-Identifier: Apache-2.0
// Normalizers: what is done to a text before it is parted into words. Sequences are one list of steps.
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/tokenizer/tokenizer.h"
#include "data/tokenizer/unicode.h"

typedef enum step_kind {
    STEP_NORMAL_FORM,
    STEP_LOWERCASE,
    STEP_STRIP_ACCENTS,
    STEP_STRIP,
    STEP_REPLACE,
    STEP_PREPEND,
    STEP_NMT,
    STEP_BYTE_LEVEL,
    STEP_BERT,
    STEP_CHARSMAP
} step_kind;

typedef struct clv__normalizer_step {
    step_kind kind;
    clv__unicode_form form;
    bool left, right;                        // of Strip
    bool clean, spaced_chinese, bare, lower; // of BertNormalizer
    const char *content;                     // of Replace and Prepend
    size_t content_bytes;
    clv__expression *expression;
    clv__charsmap *map;
} step;

// ---- each on its own ------------------------------------------------------------------------------------------------

/** What becomes of a character: itself, nothing, or a blank. */
typedef enum fate { KEPT, DROPPED, BLANK } fate;

static fate of_mark(uint32_t code) {
    return clv__unicode_in(CLV__UNICODE_MARK, code) ? DROPPED : KEPT;
}

static fate of_accent(uint32_t code) {
    return clv__unicode_in(CLV__UNICODE_NONSPACING, code) ? DROPPED : KEPT;
}

static fate of_bert_clean(uint32_t code) {
    if (code == 0 || code == 0xfffd || clv__unicode_in(CLV__UNICODE_REMOVED, code)) return DROPPED;
    return clv__unicode_is_space(code) ? BLANK : KEPT;
}

static fate of_nmt(uint32_t code) { // Source: SentencePiece's rules nmt
    if ((code >= 1 && code <= 8) || code == 0xb || (code >= 0xe && code <= 0x1f) || code == 0x7f ||
        code == 0x8f || code == 0x9f)
        return DROPPED;
    const bool blank = code == 9 || code == 0xa || code == 0xc || code == 0xd || code == 0x1680 ||
                       (code >= 0x200b && code <= 0x200f) || code == 0x2028 || code == 0x2029 ||
                       code == 0x2581 || code == 0xfeff || code == 0xfffd;
    return blank ? BLANK : KEPT;
}

static void filter(const char *text, size_t bytes, fate (*of)(uint32_t), clv__text *out, bool *first) {
    for (size_t i = 0, length; i < bytes; i += length) {
        const fate what = of(clv__utf8_code(text + i, &length));
        if (what == KEPT) clv__text_add_bytes(out, text + i, length);
        if (what == BLANK) clv__text_add_bytes(out, " ", 1);
        if (what == DROPPED && i == 0) *first = false;
    }
}

static bool is_chinese(uint32_t c) { // Source: BERT's tokenization.py
    return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) || (c >= 0x20000 && c <= 0x2a6df) ||
           (c >= 0x2a700 && c <= 0x2b81f) || (c >= 0x2b920 && c <= 0x2ceaf) || (c >= 0xf900 && c <= 0xfaff) ||
           (c >= 0x2f800 && c <= 0x2fa1f);
}

static void space_chinese(const char *text, size_t bytes, clv__text *out) {
    for (size_t i = 0, length; i < bytes; i += length) {
        const bool chinese = is_chinese(clv__utf8_code(text + i, &length));
        if (chinese) clv__text_add_bytes(out, " ", 1);
        clv__text_add_bytes(out, text + i, length);
        if (chinese) clv__text_add_bytes(out, " ", 1);
    }
}

static void lowercase(const char *text, size_t bytes, clv__text *out) {
    for (size_t i = 0, length; i < bytes; i += length)
        clv__unicode_lower(clv__utf8_code(text + i, &length), out);
}

static void strip(const step *s, const char *text, size_t bytes, clv__text *out, bool *first) {
    size_t begin = 0, end = 0;
    bool leading = true;
    for (size_t i = 0, length; i < bytes; i += length) {
        const bool space = clv__unicode_is_space(clv__utf8_code(text + i, &length));
        if (leading && space) begin = i + length;
        leading &= space;
        if (!space) end = i + length;
    }
    if (!s->left) begin = 0;
    if (!s->right || end < begin) end = s->right ? begin : bytes;
    if (begin) *first = false;
    clv__text_add_bytes(out, text + begin, end - begin);
}

static clv_status replace(const step *s, clv__error *error, const char *text, size_t bytes, clv__text *out,
                          bool *first) {
    clv__segments found = {0};
    clv_status status = clv__expression_find(s->expression, error, text, bytes, &found);
    for (size_t i = 0; status == CLV_OK && i < found.n; i++) {
        const clv__segment *one = &found.all[i];
        if (one->match)
            clv__text_add_bytes(out, s->content, s->content_bytes);
        else
            clv__text_add_bytes(out, text + one->begin, one->end - one->begin);
        if (one->match && one->begin == 0 && one->end > 0 && s->content_bytes == 0) *first = false;
        status = clv__tokenizer_check_growth(error, "normalizer", out, bytes);
    }
    free(found.all);
    return status;
}

/** BertNormalizer: up to four passes. */
static clv_status bert(const step *s, clv__error *error, const char *text, size_t bytes, clv__text *out,
                       bool *first) {
    clv__text room[3] = {{0}};
    const char *at = text;
    size_t n = bytes;
    bool there = true;
    if (s->clean) filter(at, n, of_bert_clean, &room[0], first), at = clv__text_get(&room[0]), n = room[0].n;
    if (s->spaced_chinese) space_chinese(at, n, &room[1]), at = clv__text_get(&room[1]), n = room[1].n;
    if (s->bare) {
        clv__text parted = {0};
        there = clv__unicode_normalize(CLV__NFD, at, n, &parted);
        filter(clv__text_get(&parted), parted.n, of_accent, &room[2], first);
        there &= !parted.failed;
        clv__text_reset(&parted);
        at = clv__text_get(&room[2]), n = room[2].n;
    }
    if (s->lower)
        lowercase(at, n, out);
    else
        clv__text_add_bytes(out, at, n);
    for (int i = 0; i < 3; i++) there &= !room[i].failed, clv__text_reset(&room[i]);
    return there ? CLV_OK : clv__tokenizer_no_memory(error);
}

static clv_status run_step(const step *s, clv__error *error, const char *text, size_t bytes, clv__text *out,
                           bool *first) {
    switch (s->kind) {
    case STEP_NORMAL_FORM:
        return clv__unicode_normalize(s->form, text, bytes, out) ? CLV_OK : clv__tokenizer_no_memory(error);
    case STEP_LOWERCASE: lowercase(text, bytes, out); break;
    case STEP_STRIP_ACCENTS: filter(text, bytes, of_mark, out, first); break;
    case STEP_NMT: filter(text, bytes, of_nmt, out, first); break;
    case STEP_STRIP: strip(s, text, bytes, out, first); break;
    case STEP_REPLACE: return replace(s, error, text, bytes, out, first);
    case STEP_BERT: return bert(s, error, text, bytes, out, first);
    case STEP_CHARSMAP: return clv__charsmap_run(s->map, error, text, bytes, out, first);
    case STEP_BYTE_LEVEL: clv__byte_level_put(out, text, bytes); break;
    case STEP_PREPEND:
        clv__text_add_bytes(out, s->content, s->content_bytes);
        clv__text_add_bytes(out, text, bytes);
        break;
    }
    return out->failed ? clv__tokenizer_no_memory(error) : CLV_OK;
}

clv_status clv__normalizer_run(const clv__normalizer *normalizer, clv__error *error, const char *text,
                               size_t bytes, clv__text *out, bool *first) {
    clv__text room[2] = {{0}};
    const size_t given = bytes;
    clv_status status = CLV_OK;
    for (int i = 0; i < normalizer->n && bytes > 0 && status == CLV_OK; i++) {
        clv__text *to = &room[i & 1];
        clv__text_reset(to);
        status = run_step(&normalizer->steps[i], error, text, bytes, to, first);
        text = clv__text_get(to), bytes = to->n;
        if (status == CLV_OK) status = clv__tokenizer_check_growth(error, "normalizer", to, given);
    }
    if (status == CLV_OK) clv__text_add_bytes(out, text, bytes);
    clv__text_reset(&room[0]);
    clv__text_reset(&room[1]);
    return status == CLV_OK && out->failed ? clv__tokenizer_no_memory(error) : status;
}

// ---- read -----------------------------------------------------------------------------------------------------------

static clv_status read_replace(clv__error *error, const json_t *json, step *s) {
    s->content = clv__json_text(json, "content", &s->content_bytes);
    if (!s->content || s->content_bytes > CLV__MOST_NAME)
        CLV_FAIL(error, CLV_E_FORMAT,
                 "the tokenizer: a Replace of its normalizer has no content of at most %d bytes",
                 CLV__MOST_NAME);
    return clv__expression_read(error, "normalizer", json_object_get(json, "pattern"), &s->expression);
}

static void read_bert(const json_t *json, step *s) {
    s->clean = clv__json_flag(json, "clean_text", true);
    s->spaced_chinese = clv__json_flag(json, "handle_chinese_chars", true);
    s->lower = clv__json_flag(json, "lowercase", true);
    s->bare = clv__json_flag(json, "strip_accents", s->lower);
}

static clv_status read_kind(clv__error *error, const json_t *json, step *s) {
    static const struct {
        const char *type;
        step_kind kind;
        clv__unicode_form form;
    } kinds[] = {{"NFC", STEP_NORMAL_FORM, CLV__NFC},
                 {"NFD", STEP_NORMAL_FORM, CLV__NFD},
                 {"NFKC", STEP_NORMAL_FORM, CLV__NFKC},
                 {"NFKD", STEP_NORMAL_FORM, CLV__NFKD},
                 {"Lowercase", STEP_LOWERCASE, 0},
                 {"StripAccents", STEP_STRIP_ACCENTS, 0},
                 {"Strip", STEP_STRIP, 0},
                 {"Replace", STEP_REPLACE, 0},
                 {"Prepend", STEP_PREPEND, 0},
                 {"Nmt", STEP_NMT, 0},
                 {"ByteLevel", STEP_BYTE_LEVEL, 0},
                 {"BertNormalizer", STEP_BERT, 0},
                 {"Precompiled", STEP_CHARSMAP, 0}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (!clv__json_is(json, kinds[i].type)) continue;
        s->kind = kinds[i].kind;
        s->form = kinds[i].form;
        return CLV_OK;
    }
    return clv__json_unknown(error, "normalizer", json);
}

static clv_status add_step(clv__error *error, const json_t *json, void *to) {
    clv__normalizer *out = to;
    if (out->n == CLV__MOST_STEPS)
        CLV_FAIL(error, CLV_E_FORMAT, "the tokenizer: its normalizer has more than %d steps",
                 CLV__MOST_STEPS);
    step *s = &out->steps[out->n];
    CLV_TRY(read_kind(error, json, s));
    out->n++;
    const bool needs = s->kind == STEP_NORMAL_FORM || s->kind == STEP_LOWERCASE || s->kind == STEP_BERT ||
                       s->kind == STEP_CHARSMAP;
    if (needs && !clv__unicode_there())
        CLV_FAIL(error, CLV_E_UNSUPPORTED,
                 "the tokenizer: its normalizer %s needs utf8proc, and this build is without (Debian: "
                 "libutf8proc-dev)",
                 json_string_value(json_object_get(json, "type")));
    size_t bytes = 0;
    switch (s->kind) {
    case STEP_REPLACE: return read_replace(error, json, s);
    case STEP_BERT: read_bert(json, s); return CLV_OK;
    case STEP_STRIP:
        s->left = clv__json_flag(json, "strip_left", true);
        s->right = clv__json_flag(json, "strip_right", true);
        return CLV_OK;
    case STEP_PREPEND:
        s->content = clv__json_text(json, "prepend", &s->content_bytes);
        if (!s->content || s->content_bytes > CLV__MOST_NAME)
            CLV_FAIL(error, CLV_E_FORMAT,
                     "the tokenizer: a Prepend of its normalizer has no text of at most %d bytes",
                     CLV__MOST_NAME);
        return CLV_OK;
    case STEP_CHARSMAP: {
        const char *map = clv__json_text(json, "precompiled_charsmap", &bytes);
        if (!map)
            CLV_FAIL(error, CLV_E_FORMAT,
                     "the tokenizer: a Precompiled normalizer has no precompiled_charsmap");
        return clv__charsmap_make(error, map, bytes, &s->map);
    }
    default: return CLV_OK;
    }
}

clv_status clv__normalizer_read(clv__error *error, const json_t *json, clv__normalizer *out) {
    out->steps = clv__alloc(CLV__MOST_STEPS, sizeof *out->steps);
    if (!out->steps) return clv__tokenizer_no_memory(error);
    return clv__json_steps(error, "normalizer", "normalizers", json, out, add_step);
}

void clv__normalizer_reset(clv__normalizer *normalizer) {
    for (int i = 0; i < normalizer->n; i++) {
        clv__expression_destroy(normalizer->steps[i].expression);
        clv__charsmap_destroy(normalizer->steps[i].map);
    }
    free(normalizer->steps);
    *normalizer = (clv__normalizer){0};
}
