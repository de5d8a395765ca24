// SPDX-License-Identifier: Apache-2.0
// WordPiece: from a word's beginning on, the longest token that it goes on with; a word that cannot be parted so is unknown as a whole.
#include <string.h>

#include "data/tokenizer/tokenizer.h"
#include "data/tokenizer/unicode.h"

/** The longest token at a place of the word, and its bytes; -1: there is none. */
static int32_t longest(const clv__model *model, clv__text *room, const char *word, size_t begin, size_t bytes,
                       size_t *n) {
    room->n = 0;
    if (begin > 0) clv__text_add_bytes(room, model->prefix, model->prefix_bytes);
    const size_t before = room->n;
    clv__text_add_bytes(room, word + begin, bytes - begin);
    if (room->failed) return -1;
    for (size_t end = bytes - begin; end > 0;) {
        const int32_t token = clv__token_names_find(&model->names, room->data, before + end);
        *n = end;
        if (token >= 0) return token;
        do end--;
        while (end > 0 && ((unsigned char)word[begin + end] & 0xc0) == 0x80);
    }
    return -1;
}

clv_status clv__wordpiece_run(const clv__model *model, clv__error *error, clv__model_work *work,
                              const char *word, size_t bytes, clv__tokens *out) {
    const size_t before = out->n;
    int64_t characters = 0;
    for (size_t i = 0; i < bytes; i++) characters += ((unsigned char)word[i] & 0xc0) != 0x80;
    bool known = characters <= model->most_characters, there = true;
    for (size_t begin = 0, n; begin < bytes && known && there; begin += n) {
        const int32_t token = longest(model, &work->text, word, begin, bytes, &n);
        known = token >= 0;
        if (known) there = clv__tokens_add(out, token);
    }
    if (work->text.failed || !there) return clv__tokenizer_no_memory(error);
    if (known) return CLV_OK;
    out->n = before;
    if (model->unknown < 0) return clv__tokenizer_unknown(error, word, bytes);
    return clv__tokens_add(out, model->unknown) ? CLV_OK : clv__tokenizer_no_memory(error);
}
