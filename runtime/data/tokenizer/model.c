// SPDX-License-Identifier: Apache-2.0
// Models: the tokens of a word. What all have, byte-pair encoding and words as they stand; Unigram and WordPiece are files of their own.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/tokenizer/tokenizer.h"
#include "data/tokenizer/unicode.h"
#include "io/shown.h"

enum { NO_UNKNOWN = -1, UNKNOWN_MISSING = -2 }; // none is wanted, or the one that is named is no token

// ---- read -----------------------------------------------------------------------------------------------------------

static clv_status read_names(clv__error *error, const json_t *vocab, clv__model *out) {
    const char *name;
    size_t bytes;
    json_t *value;
    clv__shown_text shown;
    if (!json_is_object(vocab)) CLV_FAIL(error, CLV_E_FORMAT, "the tokenizer has no model.vocab");
    json_object_keylen_foreach((json_t *)(uintptr_t)vocab, name, bytes, value) {
        if (!json_is_integer(value) || json_integer_value(value) < 0 ||
            json_integer_value(value) >= CLV__MOST_TOKENS)
            CLV_FAIL(error, CLV_E_FORMAT, "the tokenizer: token '%s' must have a number from 0 to %d",
                     clv__shown_bytes(name, bytes, &shown), CLV__MOST_TOKENS - 1);
        if (!clv__token_names_add(&out->names, name, bytes, (int32_t)json_integer_value(value)))
            return clv__tokenizer_no_memory(error);
    }
    clv__token_names_sort(&out->names, true);
    return CLV_OK;
}

/** The two names of a merge: "a b", or ["a", "b"]. */
static bool parts_of(const json_t *merge, const char *part[2], size_t n[2]) {
    if (json_is_array(merge)) {
        for (size_t i = 0; i < 2; i++) {
            const json_t *name = json_array_get(merge, i);
            if (!json_is_string(name)) return false;
            part[i] = json_string_value(name), n[i] = json_string_length(name);
        }
        return json_array_size(merge) == 2;
    }
    if (!json_is_string(merge)) return false;
    const char *text = json_string_value(merge), *space = memchr(text, ' ', json_string_length(merge));
    if (!space) return false;
    part[0] = text, n[0] = (size_t)(space - text);
    part[1] = space + 1, n[1] = json_string_length(merge) - n[0] - 1;
    return true;
}

static clv_status read_merges(clv__error *error, const json_t *json, clv__model *out) {
    const json_t *merges = json_object_get(json, "merges");
    if (!json_is_array(merges)) CLV_FAIL(error, CLV_E_FORMAT, "the tokenizer has no model.merges");
    const size_t count = json_array_size(merges);
    if (!clv__bpe_reserve(&out->bpe, count)) return clv__tokenizer_no_memory(error);
    clv__text room = {0};
    clv_status status = CLV_OK;
    for (size_t i = 0; i < count && status == CLV_OK; i++) {
        const char *part[2];
        size_t n[2];
        clv__merge merge = {.rank = (int32_t)i, .left = -1};
        if (parts_of(json_array_get(merges, i), part, n) && n[1] >= out->prefix_bytes) {
            room.n = 0;
            clv__text_add_bytes(&room, part[0], n[0]);
            clv__text_add_bytes(&room, part[1] + out->prefix_bytes, n[1] - out->prefix_bytes);
            merge.left = clv__token_names_find(&out->names, part[0], n[0]);
            merge.right = clv__token_names_find(&out->names, part[1], n[1]);
            merge.token = clv__token_names_find(&out->names, clv__text_get(&room), room.n);
        }
        if (merge.left < 0 || merge.right < 0 || merge.token < 0)
            status = clv__error_set(error, CLV_E_FORMAT,
                                    "the tokenizer: merge %zu is not of two tokens that make a third", i);
        else
            clv__bpe_add(&out->bpe, merge);
    }
    if (status == CLV_OK && room.failed) status = clv__tokenizer_no_memory(error);
    clv__text_reset(&room);
    return status;
}

static void read_unknown(const json_t *json, clv__model *out) {
    size_t bytes;
    const char *name = clv__json_text(json, "unk_token", &bytes);
    out->unknown = NO_UNKNOWN;
    if (!name) return;
    out->unknown = clv__token_names_find(&out->names, name, bytes);
    if (out->unknown < 0) out->unknown = UNKNOWN_MISSING;
}

static void find_bytes(clv__model *out) {
    char name[8];
    for (int i = 0; i < 256; i++) {
        snprintf(name, sizeof name, "<0x%02X>", (unsigned)i);
        out->bytes[i] = clv__token_names_find(&out->names, name, 6);
    }
}

static clv_status read_bpe(clv__error *error, const json_t *json, clv__model *out) {
    const json_t *dropout = json_object_get(json, "dropout");
    if (json_is_number(dropout) && json_number_value(dropout) > 0)
        CLV_FAIL(error, CLV_E_UNSUPPORTED, "the tokenizer: model.dropout is set, and is not supported");
    out->fuse_unknown = clv__json_flag(json, "fuse_unk", false);
    out->whole_words = clv__json_flag(json, "ignore_merges", false);
    out->prefix = clv__json_text(json, "continuing_subword_prefix", &out->prefix_bytes);
    out->suffix = clv__json_text(json, "end_of_word_suffix", &out->suffix_bytes);
    return read_merges(error, json, out);
}

static clv_status read_wordpiece(clv__error *error, const json_t *json, clv__model *out) {
    const json_t *most = json_object_get(json, "max_input_chars_per_word");
    out->most_characters = json_is_integer(most) ? json_integer_value(most) : 100;
    out->prefix = clv__json_text(json, "continuing_subword_prefix", &out->prefix_bytes);
    if (!out->prefix) out->prefix = "##", out->prefix_bytes = 2;
    if (out->most_characters < 0 || out->most_characters > 1000)
        CLV_FAIL(error, CLV_E_UNSUPPORTED,
                 "the tokenizer: model.max_input_chars_per_word is %" PRId64 ", and can be 0 to 1000",
                 out->most_characters);
    return CLV_OK;
}

/** Older files do not say which model it is. */
static const char *type_of(const json_t *json) {
    const char *type = json_string_value(json_object_get(json, "type"));
    if (type) return type;
    return json_is_array(json_object_get(json, "merges"))      ? "BPE"
           : json_is_array(json_object_get(json, "vocab"))     ? "Unigram"
           : json_object_get(json, "max_input_chars_per_word") ? "WordPiece"
                                                               : "WordLevel";
}

clv_status clv__model_read(clv__error *error, const json_t *json, clv__model *out) {
    static const char *const kinds[] = {"BPE", "Unigram", "WordPiece", "WordLevel"};
    const char *type = json_is_object(json) ? type_of(json) : "";
    size_t kind = 0;
    clv__shown_text shown;
    while (kind < 4 && strcmp(kinds[kind], type) != 0) kind++;
    if (!json_is_object(json)) CLV_FAIL(error, CLV_E_FORMAT, "the tokenizer has no model");
    if (kind == 4)
        CLV_FAIL(error, CLV_E_UNSUPPORTED,
                 "the tokenizer: model.type is '%s', and BPE, Unigram, WordPiece and WordLevel are read",
                 clv__shown(type, &shown));
    out->kind = (clv__model_kind)kind;
    out->byte_fallback = clv__json_flag(json, "byte_fallback", false);
    if (out->kind == CLV__UNIGRAM) {
        CLV_TRY(clv__unigram_read(error, json, out));
    } else {
        CLV_TRY(read_names(error, json_object_get(json, "vocab"), out));
        read_unknown(json, out);
    }
    find_bytes(out);
    return out->kind == CLV__BPE         ? read_bpe(error, json, out)
           : out->kind == CLV__WORDPIECE ? read_wordpiece(error, json, out)
                                         : CLV_OK;
}

// ---- byte-pair encoding ---------------------------------------------------------------------------------------------

/** A word's characters as tokens, and what is unknown of them. */
typedef struct splitting {
    const clv__model *model;
    clv__tokens *out;
    bool pending, failed,
        missing; // an unknown one that is not appended yet; no memory; no token for what is unknown
} splitting;

static void put(splitting *s, int32_t token) {
    s->failed |= !clv__tokens_add(s->out, token);
}

static void put_unknown(splitting *s) {
    const int32_t unknown = s->model->unknown;
    if (unknown == NO_UNKNOWN) return; // it is dropped
    if (s->pending && !s->model->fuse_unknown) put(s, unknown);
    s->pending = true;
    s->missing |= unknown < 0;
}

/** The bytes of a character are tokens; false: not all. An unknown one before them stays behind them, as there. */
static bool put_bytes(splitting *s, const char *text, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (s->model->bytes[(uint8_t)text[i]] < 0) return false;
    for (size_t i = 0; i < n; i++) put(s, s->model->bytes[(uint8_t)text[i]]);
    return true;
}

static void put_character(splitting *s, const char *text, size_t n) {
    const int32_t token = clv__token_names_find(&s->model->names, text, n);
    if (token >= 0) {
        if (s->pending) put(s, s->model->unknown);
        s->pending = false;
        put(s, token);
    } else if (!s->model->byte_fallback || !put_bytes(s, text, n)) {
        put_unknown(s);
    }
}

static clv_status run_bpe(const clv__model *model, clv__error *error, clv__model_work *work, const char *word,
                          size_t bytes, clv__tokens *out) {
    const int32_t whole = model->whole_words ? clv__token_names_find(&model->names, word, bytes) : -1;
    if (whole >= 0) return clv__tokens_add(out, whole) ? CLV_OK : clv__tokenizer_no_memory(error);
    const size_t before = out->n;
    splitting s = {.model = model, .out = out};
    for (size_t i = 0, length; i < bytes && !s.failed; i += length) {
        (void)clv__utf8_code(word + i, &length);
        const bool prefixed = i > 0 && model->prefix_bytes,
                   suffixed = i + length == bytes && model->suffix_bytes;
        if (!prefixed && !suffixed) {
            put_character(&s, word + i, length);
            continue;
        }
        work->text.n = 0;
        if (prefixed) clv__text_add_bytes(&work->text, model->prefix, model->prefix_bytes);
        clv__text_add_bytes(&work->text, word + i, length);
        if (suffixed) clv__text_add_bytes(&work->text, model->suffix, model->suffix_bytes);
        s.failed |= work->text.failed;
        put_character(&s, clv__text_get(&work->text), work->text.n);
    }
    if (s.missing) return clv__tokenizer_unknown(error, word, bytes);
    if (s.pending) put(&s, model->unknown);
    size_t n = out->n - before;
    if (s.failed || !clv__bpe_merge(&model->bpe, &work->bpe, out->at + before, &n))
        return clv__tokenizer_no_memory(error);
    out->n = before + n;
    return CLV_OK;
}

static clv_status run_words(const clv__model *model, clv__error *error, const char *word, size_t bytes,
                            clv__tokens *out) {
    int32_t token = clv__token_names_find(&model->names, word, bytes);
    if (token < 0) token = model->unknown;
    if (token < 0) return clv__tokenizer_unknown(error, word, bytes);
    return clv__tokens_add(out, token) ? CLV_OK : clv__tokenizer_no_memory(error);
}

clv_status clv__model_run(const clv__model *model, clv__error *error, clv__model_work *work, const char *word,
                          size_t bytes, clv__tokens *out) {
    switch (model->kind) {
    case CLV__BPE: return run_bpe(model, error, work, word, bytes, out);
    case CLV__UNIGRAM: return clv__unigram_run(model, error, work, word, bytes, out);
    case CLV__WORDPIECE: return clv__wordpiece_run(model, error, work, word, bytes, out);
    default: return run_words(model, error, word, bytes, out);
    }
}

void clv__model_work_reset(clv__model_work *work) {
    clv__bpe_work_reset(&work->bpe);
    clv__text_reset(&work->text);
    free(work->tokens.at);
    free(work->best);
    *work = (clv__model_work){0};
}

void clv__model_reset(clv__model *model) {
    clv__token_names_reset(&model->names);
    clv__bpe_reset(&model->bpe);
    free(model->scores);
    *model = (clv__model){0};
}
