// SPDX-License-Identifier: Apache-2.0
// Unigram: of all ways to part a word, the one whose tokens are the most probable together (Viterbi). Kudo 2018, arXiv:1804.10959.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/tokenizer/tokenizer.h"
#include "data/tokenizer/unicode.h"
#include "io/shown.h"

static const double unknown_penalty = 10; // SentencePiece's

/** The best way to a place in the word. */
typedef struct clv__best {
    double score;
    size_t begin; // of its last token
    int32_t token;
    bool there;
} best;

clv_status clv__unigram_read(clv__error *error, const json_t *json, clv__model *out) {
    const json_t *vocab = json_object_get(json, "vocab"), *unknown = json_object_get(json, "unk_id"), *one;
    const size_t n = json_array_size(vocab);
    size_t i;
    if (!json_is_array(vocab) || n == 0) CLV_FAIL(error, CLV_E_FORMAT, "the tokenizer has no model.vocab");
    if (n > CLV__MOST_TOKENS)
        CLV_FAIL(error, CLV_E_FORMAT, "the tokenizer has more than %d tokens", CLV__MOST_TOKENS);
    out->scores = clv__alloc(n, sizeof *out->scores);
    if (!out->scores) return clv__tokenizer_no_memory(error);
    double least = INFINITY;
    json_array_foreach((json_t *)(uintptr_t)vocab, i, one) {
        const json_t *name = json_array_get(one, 0), *score = json_array_get(one, 1);
        if (!json_is_string(name) || !json_is_number(score) || json_string_length(name) > CLV__MOST_NAME)
            CLV_FAIL(error, CLV_E_FORMAT,
                     "the tokenizer: entry %zu of model.vocab is no token of at most %d bytes with its score",
                     i, CLV__MOST_NAME);
        out->scores[i] = json_number_value(score);
        if (out->scores[i] < least) least = out->scores[i];
        if (!clv__token_names_add(&out->names, json_string_value(name), json_string_length(name), (int32_t)i))
            return clv__tokenizer_no_memory(error);
    }
    clv__token_names_sort(&out->names, true);
    out->unknown_score = least - unknown_penalty;
    out->unknown = -1;
    if (!unknown || json_is_null(unknown)) return CLV_OK;
    if (!json_is_integer(unknown) || json_integer_value(unknown) < 0 ||
        json_integer_value(unknown) >= (json_int_t)n)
        CLV_FAIL(error, CLV_E_FORMAT, "the tokenizer: model.unk_id is no token");
    out->unknown = (int32_t)json_integer_value(unknown);
    return CLV_OK;
}

static void offer(best *at, double score, size_t begin, int32_t token) {
    if (!at->there || score > at->score) *at = (best){score, begin, token, true};
}

/** The best ways to each place; false: one needs what is unknown, and there is no token for it. */
static bool look(const clv__model *model, const char *word, size_t bytes, best *ways) {
    for (size_t begin = 0, length; begin < bytes; begin += length) {
        const double score = ways[begin].score;
        bool single = false;
        (void)clv__utf8_code(word + begin, &length);
        clv__token_names_walk walk = clv__token_names_begin(&model->names);
        int32_t token;
        for (size_t end = begin;
             end < bytes && clv__token_names_step(&model->names, &walk, word[end], &token); end++) {
            if (token < 0) continue;
            offer(&ways[end + 1], score + model->scores[token], begin, token);
            single |= end + 1 - begin == length;
        }
        if (single) continue;
        if (model->unknown < 0) return false;
        offer(&ways[begin + length], score + model->unknown_score, begin, model->unknown);
    }
    return true;
}

/** A stretch of the word that is unknown, or the token that it is after all. */
static bool put_stretch(const clv__model *model, const char *text, size_t n, clv__tokens *out) {
    const int32_t token = clv__token_names_find(&model->names, text, n);
    if (token >= 0) return clv__tokens_add(out, token);
    bool all = model->byte_fallback, there = true;
    for (size_t i = 0; i < n && all; i++) all = model->bytes[(uint8_t)text[i]] >= 0;
    for (size_t i = 0; i < n && all; i++) there &= clv__tokens_add(out, model->bytes[(uint8_t)text[i]]);
    return all ? there : clv__tokens_add(out, model->unknown);
}

clv_status clv__unigram_run(const clv__model *model, clv__error *error, clv__model_work *work,
                            const char *word, size_t bytes, clv__tokens *out) {
    if (bytes + 1 > work->room && !clv__grow(&work->best, &work->room, bytes + 1, sizeof *work->best))
        return clv__tokenizer_no_memory(error);
    best *ways = work->best;
    for (size_t i = 0; i <= bytes; i++) ways[i] = (best){0};
    if (!look(model, word, bytes, ways)) return clv__tokenizer_unknown(error, word, bytes);
    size_t n = 0; // ways from the end become ways from the beginning, where each says its end
    for (size_t end = bytes, begin; end > 0; end = begin, n++) {
        begin = ways[end].begin;
        ways[begin].score = (double)end;
    }
    bool there = true;
    for (size_t begin = 0, end; begin < bytes && there; begin = end) {
        end = (size_t)ways[begin].score;
        const int32_t token = ways[end].token;
        while (token == model->unknown && end < bytes && ways[(size_t)ways[end].score].token == token)
            end = (size_t)ways[end].score; // unknown ones become one
        there = token == model->unknown ? put_stretch(model, word + begin, end - begin, out)
                                        : clv__tokens_add(out, token);
    }
    return there ? CLV_OK : clv__tokenizer_no_memory(error);
}
