// SPDX-License-Identifier: Apache-2.0
// Added tokens: found in a text before all else, the leftmost and longest first; those that are `normalized` in what the normalizer has made
// of the text, the others in the text as it is.
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/tokenizer/tokenizer.h"
#include "data/tokenizer/unicode.h"
#include "io/shown.h"

// ---- read -----------------------------------------------------------------------------------------------------------

static clv_status read_token(clv__error *error, const json_t *json, clv__added_token *out) {
    const json_t *id = json_object_get(json, "id");
    clv__shown_text shown;
    out->content = clv__json_text(json, "content", &out->bytes);
    if (!out->content || !out->bytes)
        CLV_FAIL(error, CLV_E_FORMAT, "the tokenizer: an added token has no content");
    if (out->bytes > CLV__MOST_NAME)
        CLV_FAIL(error, CLV_E_FORMAT, "the tokenizer: an added token of %zu bytes; %d is the most",
                 out->bytes, CLV__MOST_NAME);
    if (!json_is_integer(id) || json_integer_value(id) < 0 || json_integer_value(id) >= CLV__MOST_TOKENS)
        CLV_FAIL(error, CLV_E_FORMAT, "the tokenizer: token '%s' must have a number from 0 to %d",
                 clv__shown_bytes(out->content, out->bytes, &shown), CLV__MOST_TOKENS - 1);
    out->token = (int32_t)json_integer_value(id);
    out->single_word = clv__json_flag(json, "single_word", false);
    out->left = clv__json_flag(json, "lstrip", false);
    out->right = clv__json_flag(json, "rstrip", false);
    out->special = clv__json_flag(json, "special", false);
    out->normalized = clv__json_flag(json, "normalized", !out->special);
    return CLV_OK;
}

/** Keep what is to be looked for. */
static clv_status list_token(clv__error *error, const clv__normalizer *normalizer, clv__added *out,
                             size_t i) {
    clv__added_token *token = &out->all[i];
    if (!token->normalized)
        return clv__token_names_add(&out->raw, token->content, token->bytes, (int32_t)i)
                   ? CLV_OK
                   : clv__tokenizer_no_memory(error);
    clv__text text = {0};
    bool first = true;
    clv__shown_text shown;
    clv_status status = clv__normalizer_run(normalizer, error, token->content, token->bytes, &text, &first);
    if (status == CLV_OK && text.n == 0)
        status = clv__error_set(error, CLV_E_FORMAT,
                                "the tokenizer: its normalizer leaves nothing of the added token '%s'",
                                clv__shown_bytes(token->content, token->bytes, &shown));
    char *kept = status == CLV_OK ? clv__arena_alloc(&out->texts, text.n, 1) : NULL;
    if (kept) memcpy(kept, text.data, text.n);
    if (status == CLV_OK && (!kept || !clv__token_names_add(&out->normalized, kept, text.n, (int32_t)i)))
        status = clv__tokenizer_no_memory(error);
    if (status == CLV_OK) { // so it is decoded, too, and is special no more where that is another text
        token->special &= text.n == token->bytes && !memcmp(kept, token->content, text.n);
        token->content = kept, token->bytes = text.n;
    }
    clv__text_reset(&text);
    return status;
}

clv_status clv__added_read(clv__error *error, const json_t *json, const clv__normalizer *normalizer,
                           clv__added *out) {
    const json_t *one;
    size_t i;
    out->all = clv__alloc(json_array_size(json) + 1, sizeof *out->all);
    if (!out->all) return clv__tokenizer_no_memory(error);
    json_array_foreach((json_t *)(uintptr_t)json, i, one) {
        CLV_TRY(read_token(error, one, &out->all[i]));
        out->n = i + 1;
    }
    for (int special = 1; special >= 0; special--) // of equal ones a special one is found
        for (i = 0; i < out->n; i++)
            if (clv__json_flag(json_array_get(json, i), "special", false) == (special == 1))
                CLV_TRY(list_token(error, normalizer, out, i));
    clv__token_names_sort(&out->raw, false);
    clv__token_names_sort(&out->normalized, false);
    return CLV_OK;
}

// ---- found ----------------------------------------------------------------------------------------------------------

/** A character of a word, as `\w` of regular expressions. */
static bool is_word(uint32_t code) {
    return clv__unicode_in(CLV__UNICODE_WORD, code);
}

static bool ends_with_word(const char *text, size_t bytes) {
    size_t at = bytes, length;
    if (!bytes) return false;
    do at--;
    while (at > 0 && ((unsigned char)text[at] & 0xc0) == 0x80);
    return is_word(clv__utf8_code(text + at, &length));
}

static bool begins_with_word(const char *text, size_t bytes) {
    size_t length;
    return bytes > 0 && is_word(clv__utf8_code(text, &length));
}

/** Where the blanks at the end of a text begin, not before `from`. */
static size_t without_blanks(const char *text, size_t from, size_t end) {
    while (end > from) {
        size_t at = end, length;
        do at--;
        while (at > from && ((unsigned char)text[at] & 0xc0) == 0x80);
        if (!clv__unicode_is_space(clv__utf8_code(text + at, &length))) break;
        end = at;
    }
    return end;
}

static size_t behind_blanks(const char *text, size_t at, size_t bytes) {
    for (size_t length; at < bytes && clv__unicode_is_space(clv__utf8_code(text + at, &length));
         at += length) {
    }
    return at;
}

/** The longest token that a text begins with, and its bytes; -1: none. */
static int32_t longest(const clv__token_names *names, const char *text, size_t bytes, size_t *length) {
    clv__token_names_walk walk = clv__token_names_begin(names);
    int32_t best = -1, number;
    for (size_t i = 0; i < bytes && clv__token_names_step(names, &walk, text[i], &number); i++)
        if (number >= 0) best = number, *length = i + 1;
    return best;
}

clv_status clv__added_find(const clv__added *added, bool normalized, clv__piece piece, clv__on_piece *on_text,
                           clv_status (*on_token)(void *user, int32_t token), void *user) {
    const clv__token_names *names = normalized ? &added->normalized : &added->raw;
    const char *text = piece.text;
    size_t done = 0, length = 0;
    for (size_t at = 0; names->n && at < piece.bytes;) {
        const int32_t place = longest(names, text + at, piece.bytes - at, &length);
        if (place < 0) {
            at++;
            continue;
        }
        const clv__added_token *token = &added->all[place];
        size_t begin = at, end = at + length;
        at = end;
        if (token->single_word &&
            (ends_with_word(text, begin) || begins_with_word(text + end, piece.bytes - end)))
            continue;
        if (token->left) begin = without_blanks(text, done < begin ? done : begin, begin);
        if (token->left && begin < done) begin = done;
        if (token->right) end = behind_blanks(text, end, piece.bytes);
        if (done < begin)
            CLV_TRY(on_text(user, (clv__piece){text + done, begin - done, piece.first && done == 0}));
        CLV_TRY(on_token(user, token->token));
        done = end;
    }
    if (done >= piece.bytes) return CLV_OK;
    return on_text(user, (clv__piece){text + done, piece.bytes - done, piece.first && done == 0});
}

void clv__added_reset(clv__added *added) {
    clv__arena_reset(&added->texts);
    clv__token_names_reset(&added->raw);
    clv__token_names_reset(&added->normalized);
    free(added->all);
    *added = (clv__added){0};
}
