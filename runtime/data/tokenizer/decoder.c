// SPDX-License-Identifier: Apache-2.0
// Decoders: the names of tokens become a text. Each step makes strings of strings; without any, blanks lie between names.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/shown.h"
#include "data/tokenizer/tokenizer.h"
#include "data/tokenizer/unicode.h"

typedef enum step_kind {
    STEP_BYTE_LEVEL,
    STEP_METASPACE,
    STEP_BYTE_FALLBACK,
    STEP_WORDPIECE,
    STEP_BPE,
    STEP_REPLACE,
    STEP_FUSE,
    STEP_STRIP
} step_kind;

typedef struct clv__decoder_step {
    step_kind kind;
    const char *text; // replacement, prefix, suffix, content: as the kind has it
    size_t bytes;
    bool option; // of Metaspace: the first blank goes; of WordPiece: cleanup
    int64_t start, stop;
    clv__expression *expression;
} step;

void clv__strings_end(clv__strings *strings) {
    if (strings->n == strings->room &&
        !clv__grow(&strings->ends, &strings->room, strings->n + 1, sizeof *strings->ends))
        strings->text.failed = true;
    else
        strings->ends[strings->n++] = strings->text.n;
}

static void strings_reset(clv__strings *strings) {
    clv__text_reset(&strings->text);
    free(strings->ends);
    *strings = (clv__strings){0};
}

static const char *string_at(const clv__strings *strings, size_t i, size_t *bytes) {
    const size_t begin = i ? strings->ends[i - 1] : 0;
    *bytes = strings->ends[i] - begin;
    return clv__text_get(&strings->text) + begin;
}

// ---- steps ----------------------------------------------------------------------------------------------------------

/** All in one, each name the bytes that its characters stand for, or else its own. */
static void run_byte_level(const clv__strings *in, clv__strings *out) {
    clv__text all = {0};
    for (size_t i = 0, n; i < in->n; i++) {
        const char *text = string_at(in, i, &n);
        if (!clv__byte_level_get(&all, text, n)) clv__text_add_bytes(&all, text, n);
    }
    clv__utf8_repair(&out->text, clv__text_get(&all), all.n);
    out->text.failed |= all.failed;
    clv__text_reset(&all);
    clv__strings_end(out);
}

static bool begins_with(const char *text, size_t bytes, const char *with, size_t n) {
    return n > 0 && bytes >= n && !memcmp(text, with, n);
}

/** A text with `from` replaced by `to`. */
static void put_replaced(clv__text *out, const char *text, size_t bytes, const char *from, size_t n,
                         const char *to) {
    for (size_t i = 0; i < bytes;) {
        const bool here = begins_with(text + i, bytes - i, from, n);
        if (here)
            clv__text_add_bytes(out, to, strlen(to));
        else
            clv__text_add_bytes(out, text + i, 1);
        i += here ? n : 1;
    }
}

static void run_metaspace(const step *s, const clv__strings *in, clv__strings *out) {
    for (size_t i = 0, n; i < in->n; i++) {
        const char *text = string_at(in, i, &n);
        put_replaced(&out->text, text, n, s->text, s->bytes, i == 0 && s->option ? "" : " ");
        clv__strings_end(out);
    }
}

static int hexadecimal(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

/** The byte of a token <0x41>; -1: it is none. */
static int byte_of(const char *text, size_t n) {
    if (n != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>') return -1;
    if (text[3] == '+' && hexadecimal(text[4]) >= 0) return hexadecimal(text[4]); // as Rust reads a number
    return hexadecimal(text[3]) < 0 || hexadecimal(text[4]) < 0
               ? -1
               : hexadecimal(text[3]) * 16 + hexadecimal(text[4]);
}

static void end_bytes(clv__text *bytes, clv__strings *out) {
    bool whole = true;
    if (!bytes->n) return;
    for (size_t i = 0, n; i < bytes->n && whole; i += n) {
        n = clv__utf8_length((const uint8_t *)bytes->data + i, bytes->n - i);
        whole = n > 0;
    }
    for (size_t i = 0; !whole && i < bytes->n; i++) {
        clv__text_add_bytes(&out->text, "\xef\xbf\xbd", 3);
        clv__strings_end(out);
    }
    if (whole) clv__text_add_bytes(&out->text, bytes->data, bytes->n), clv__strings_end(out);
    bytes->n = 0;
}

static void run_byte_fallback(const clv__strings *in, clv__strings *out) {
    clv__text bytes = {0};
    for (size_t i = 0, n; i < in->n; i++) {
        const char *text = string_at(in, i, &n);
        const int byte = byte_of(text, n);
        const char one = (char)byte;
        if (byte >= 0) {
            clv__text_add_bytes(&bytes, &one, 1);
            continue;
        }
        end_bytes(&bytes, out);
        clv__text_add_bytes(&out->text, text, n);
        clv__strings_end(out);
    }
    end_bytes(&bytes, out);
    out->text.failed |= bytes.failed;
    clv__text_reset(&bytes);
}

/** What BERT's decoder makes of a word behind a blank. */
static void put_clean(clv__text *out, const char *text, size_t n) {
    static const char *const pairs[][2] = {
        {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
        {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
    clv__text room[2] = {{0}};
    clv__text_add_bytes(&room[0], text, n);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        const clv__text *from = &room[i & 1];
        clv__text *to = &room[~i & 1];
        to->n = 0;
        put_replaced(to, clv__text_get(from), from->n, pairs[i][0], strlen(pairs[i][0]), pairs[i][1]);
    }
    const clv__text *last = &room[sizeof pairs / sizeof *pairs & 1];
    clv__text_add_bytes(out, clv__text_get(last), last->n);
    out->failed |= room[0].failed || room[1].failed;
    clv__text_reset(&room[0]);
    clv__text_reset(&room[1]);
}

static void run_wordpiece(const step *s, const clv__strings *in, clv__strings *out) {
    clv__text one = {0};
    for (size_t i = 0, n; i < in->n; i++) {
        const char *text = string_at(in, i, &n);
        const bool goes_on = i > 0 && begins_with(text, n, s->text, s->bytes);
        one.n = 0;
        if (i > 0 && !goes_on) clv__text_add_bytes(&one, " ", 1);
        clv__text_add_bytes(&one, text + (goes_on ? s->bytes : 0), n - (goes_on ? s->bytes : 0));
        if (s->option)
            put_clean(&out->text, clv__text_get(&one), one.n);
        else
            clv__text_add_bytes(&out->text, clv__text_get(&one), one.n);
        clv__strings_end(out);
    }
    out->text.failed |= one.failed;
    clv__text_reset(&one);
}

static void run_bpe(const step *s, const clv__strings *in, clv__strings *out) {
    for (size_t i = 0, n; i < in->n; i++) {
        const char *text = string_at(in, i, &n);
        put_replaced(&out->text, text, n, s->text, s->bytes, i + 1 < in->n ? " " : "");
        clv__strings_end(out);
    }
}

static clv_status run_replace(const step *s, clv__error *error, const clv__strings *in, clv__strings *out) {
    clv_status status = CLV_OK;
    clv__segments found = {0};
    for (size_t i = 0, n; i < in->n && status == CLV_OK; i++) {
        const char *text = string_at(in, i, &n);
        found.n = 0;
        if (n) status = clv__expression_find(s->expression, error, text, n, &found);
        for (size_t k = 0; k < found.n; k++) {
            const clv__segment *one = &found.all[k];
            if (one->match)
                clv__text_add_bytes(&out->text, s->text, s->bytes);
            else
                clv__text_add_bytes(&out->text, text + one->begin, one->end - one->begin);
        }
        clv__strings_end(out);
        if (status == CLV_OK)
            status = clv__tokenizer_check_growth(error, "decoder", &out->text, in->text.n + in->n);
    }
    free(found.all);
    return status;
}

static void run_strip(const step *s, const clv__strings *in, clv__strings *out) {
    for (size_t i = 0, n; i < in->n; i++) {
        const char *text = string_at(in, i, &n);
        size_t begin = 0, end = n;
        for (int64_t k = 0; k < s->start && begins_with(text + begin, end - begin, s->text, s->bytes); k++)
            begin += s->bytes;
        for (int64_t k = 0;
             k < s->stop && end - begin >= s->bytes && !memcmp(text + end - s->bytes, s->text, s->bytes); k++)
            end -= s->bytes;
        clv__text_add_bytes(&out->text, text + begin, end - begin);
        clv__strings_end(out);
    }
}

static clv_status run_step(const step *s, clv__error *error, const clv__strings *in, clv__strings *out) {
    switch (s->kind) {
    case STEP_BYTE_LEVEL: run_byte_level(in, out); break;
    case STEP_METASPACE: run_metaspace(s, in, out); break;
    case STEP_BYTE_FALLBACK: run_byte_fallback(in, out); break;
    case STEP_WORDPIECE: run_wordpiece(s, in, out); break;
    case STEP_BPE: run_bpe(s, in, out); break;
    case STEP_REPLACE: return run_replace(s, error, in, out);
    case STEP_STRIP: run_strip(s, in, out); break;
    case STEP_FUSE:
        clv__text_add_bytes(&out->text, clv__text_get(&in->text), in->text.n);
        clv__strings_end(out);
        break;
    }
    return out->text.failed ? clv__tokenizer_no_memory(error) : CLV_OK;
}

clv_status clv__decoder_run(const clv__decoder *decoder, clv__error *error, clv__strings *names,
                            clv__text *out) {
    clv_status status = names->text.failed ? clv__tokenizer_no_memory(error) : CLV_OK;
    const size_t given = names->text.n + names->n;
    for (int i = 0; i < decoder->n && status == CLV_OK; i++) {
        clv__strings next = {0};
        status = run_step(&decoder->steps[i], error, names, &next);
        strings_reset(names);
        *names = next;
        if (status == CLV_OK) status = clv__tokenizer_check_growth(error, "decoder", &names->text, given);
    }
    for (size_t i = 0, n; i < names->n && status == CLV_OK; i++) {
        const char *text = string_at(names, i, &n);
        if (!decoder->n && i > 0) clv__text_add_bytes(out, " ", 1);
        clv__text_add_bytes(out, text, n);
    }
    strings_reset(names);
    return status == CLV_OK && out->failed ? clv__tokenizer_no_memory(error) : status;
}

// ---- read -----------------------------------------------------------------------------------------------------------

static clv_status read_text(clv__error *error, const json_t *json, const char *key, const char *otherwise,
                            step *s) {
    s->text = clv__json_text(json, key, &s->bytes);
    if (!s->text && otherwise) s->text = otherwise, s->bytes = strlen(otherwise);
    if (s->text && s->bytes <= CLV__MOST_NAME) return CLV_OK;
    CLV_FAIL(error, CLV_E_FORMAT, "the tokenizer: %s of its decoder has no %s of at most %d bytes",
             json_string_value(json_object_get(json, "type")), key, CLV__MOST_NAME);
}

static clv_status read_metaspace(clv__error *error, const json_t *json, step *s) {
    size_t bytes;
    s->kind = STEP_METASPACE;
    const char *scheme = clv__json_text(json, "prepend_scheme", &bytes);
    s->option = scheme ? strcmp(scheme, "never") != 0 : clv__json_flag(json, "add_prefix_space", true);
    return read_text(error, json, "replacement", NULL, s);
}

static clv_status read_strip(clv__error *error, const json_t *json, step *s) {
    const json_t *start = json_object_get(json, "start"), *stop = json_object_get(json, "stop");
    s->kind = STEP_STRIP;
    s->start = json_is_integer(start) ? json_integer_value(start) : 0;
    s->stop = json_is_integer(stop) ? json_integer_value(stop) : 0;
    CLV_TRY(read_text(error, json, "content", NULL, s));
    if (s->bytes == 0) CLV_FAIL(error, CLV_E_FORMAT, "the tokenizer: Strip of its decoder has no content");
    return CLV_OK;
}

static clv_status read_step(clv__error *error, const json_t *json, step *s) {
    if (clv__json_is(json, "ByteLevel")) {
        s->kind = STEP_BYTE_LEVEL;
    } else if (clv__json_is(json, "ByteFallback")) {
        s->kind = STEP_BYTE_FALLBACK;
    } else if (clv__json_is(json, "Fuse")) {
        s->kind = STEP_FUSE;
    } else if (clv__json_is(json, "Metaspace")) {
        return read_metaspace(error, json, s);
    } else if (clv__json_is(json, "WordPiece")) {
        s->kind = STEP_WORDPIECE;
        s->option = clv__json_flag(json, "cleanup", true);
        return read_text(error, json, "prefix", "##", s);
    } else if (clv__json_is(json, "BPEDecoder")) {
        s->kind = STEP_BPE;
        return read_text(error, json, "suffix", "</w>", s);
    } else if (clv__json_is(json, "Strip")) {
        return read_strip(error, json, s);
    } else if (clv__json_is(json, "Replace")) {
        s->kind = STEP_REPLACE;
        CLV_TRY(read_text(error, json, "content", NULL, s));
        return clv__expression_read(error, "decoder", json_object_get(json, "pattern"), &s->expression);
    } else {
        return clv__json_unknown(error, "decoder", json);
    }
    return CLV_OK;
}

static clv_status add_step(clv__error *error, const json_t *json, void *to) {
    clv__decoder *out = to;
    if (out->n == CLV__MOST_STEPS)
        CLV_FAIL(error, CLV_E_FORMAT, "the tokenizer: its decoder has more than %d steps", CLV__MOST_STEPS);
    return read_step(error, json, &out->steps[out->n++]);
}

clv_status clv__decoder_read(clv__error *error, const json_t *json, clv__decoder *out) {
    out->steps = clv__alloc(CLV__MOST_STEPS, sizeof *out->steps);
    if (!out->steps) return clv__tokenizer_no_memory(error);
    return clv__json_steps(error, "decoder", "decoders", json, out, add_step);
}

bool clv__decoder_of_bytes(const clv__decoder *decoder) {
    for (int i = 0; i < decoder->n; i++)
        if (decoder->steps[i].kind == STEP_BYTE_LEVEL) return true;
    return false;
}

void clv__decoder_reset(clv__decoder *decoder) {
    for (int i = 0; i < decoder->n; i++) clv__expression_destroy(decoder->steps[i].expression);
    free(decoder->steps);
    *decoder = (clv__decoder){0};
}
