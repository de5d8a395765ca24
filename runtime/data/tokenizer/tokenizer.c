// SPDX-License-Identifier: Apache-2.0
// Vocabularies from the text of a tokenizer.json: its parts put together (tokenizer.h), and the way of a text through them.
#include "data/tokenizer/tokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/shown.h"
#include "io/array.h"
#include "io/formats.h"
#include "io/shown.h"

enum { MOST_BYTES = 64 << 20 };

/** What a token is called. */
typedef struct token_name {
    const char *text; // NULL: a number that no token has
    uint32_t bytes;
    bool added, special;
} token_name;

typedef struct tokenizer {
    clv_vocabulary common;
    char *json;
    json_t *root; // which the parts point into
    clv__normalizer normalizer;
    clv__pretokenizer pretokenizer;
    clv__model model;
    clv__added added;
    clv__decoder decoder;
    token_name *names; // [count]
    clv__text stands;  // what each token stands for, one after the other
    size_t *begin;     // [count + 1]
} tokenizer;

// ---- a text in tokens -------------------------------------------------------------------------------------------------

typedef struct encoding {
    const tokenizer *own;
    clv__error *error;
    clv__model_work work;
    clv__tokens *out;
} encoding;

static clv_status on_token(void *user, int32_t token) {
    encoding *e = user;
    return clv__tokens_add(e->out, token) ? CLV_OK : clv__tokenizer_no_memory(e->error);
}

static clv_status on_word(void *user, clv__piece word) {
    encoding *e = user;
    return clv__model_run(&e->own->model, e->error, &e->work, word.text, word.bytes, e->out);
}

static clv_status on_normalized(void *user, clv__piece text) {
    encoding *e = user;
    return clv__pretokenizer_run(&e->own->pretokenizer, e->error, text, on_word, e);
}

static clv_status on_text(void *user, clv__piece text) {
    encoding *e = user;
    clv__text room = {0};
    bool first = text.first;
    clv_status status = CLV_OK;
    if (e->own->normalizer.n) {
        status = clv__normalizer_run(&e->own->normalizer, e->error, text.text, text.bytes, &room, &first);
        text = (clv__piece){clv__text_get(&room), room.n, first};
    }
    if (status == CLV_OK) status = clv__added_find(&e->own->added, true, text, on_normalized, on_token, e);
    clv__text_reset(&room);
    return status;
}

static clv_status encode(const clv_vocabulary *vocabulary, const char *text, size_t bytes, clv__tokens *out) {
    const tokenizer *own = (const tokenizer *)vocabulary;
    for (size_t i = 0, length; i < bytes; i += length) {
        length = clv__utf8_length((const uint8_t *)text + i, bytes - i);
        if (!length) return clv__vocabulary_not_text(vocabulary->error, text, bytes, i);
    }
    encoding e = {.own = own, .error = vocabulary->error, .out = out};
    const clv_status status =
        clv__added_find(&own->added, false, (clv__piece){text, bytes, true}, on_text, on_token, &e);
    clv__model_work_reset(&e.work);
    return status;
}

// ---- tokens as a text -------------------------------------------------------------------------------------------------

static clv_status decode(const clv_vocabulary *vocabulary, const int32_t *tokens, size_t n, bool skip_special,
                         clv__text *out) {
    const tokenizer *own = (const tokenizer *)vocabulary;
    clv__strings names = {0};
    for (size_t i = 0; i < n; i++) {
        const token_name *name = &own->names[tokens[i]];
        if (!name->text || (skip_special && name->special)) continue;
        clv__text_add_bytes(&names.text, name->text, name->bytes);
        clv__strings_end(&names);
    }
    return clv__decoder_run(&own->decoder, vocabulary->error, &names, out);
}

static const char *bytes_of(const clv_vocabulary *vocabulary, int32_t token, size_t *bytes) {
    const tokenizer *own = (const tokenizer *)vocabulary;
    *bytes = own->begin[token + 1] - own->begin[token];
    return clv__text_get(&own->stands) + own->begin[token];
}

// ---- read -------------------------------------------------------------------------------------------------------------

static void destroy(clv_vocabulary *vocabulary) {
    tokenizer *own = (tokenizer *)vocabulary;
    clv__normalizer_reset(&own->normalizer);
    clv__pretokenizer_reset(&own->pretokenizer);
    clv__model_reset(&own->model);
    clv__added_reset(&own->added);
    clv__decoder_reset(&own->decoder);
    clv__text_reset(&own->stands);
    json_decref(own->root);
    free(own->names);
    free(own->begin);
    free(own->json);
    free(own);
}

static int32_t count_tokens(const tokenizer *own) {
    int32_t greatest = -1;
    for (size_t i = 0; i < own->model.names.n; i++)
        if (own->model.names.all[i].number > greatest) greatest = own->model.names.all[i].number;
    for (size_t i = 0; i < own->added.n; i++)
        if (own->added.all[i].token > greatest) greatest = own->added.all[i].token;
    return greatest + 1;
}

/** Each token's name; two of one number are a mistake, but where an added token is one of the model's. */
static clv_status name_tokens(clv__error *error, tokenizer *own) {
    clv__shown_text shown;
    own->common.count = count_tokens(own);
    if (own->model.kind == CLV__UNIGRAM) { // equal ones have numbers, too
        const size_t n = json_array_size(json_object_get(json_object_get(own->root, "model"), "vocab"));
        if ((size_t)own->common.count < n) own->common.count = (int)n;
    }
    if (!own->common.count) CLV_FAIL(error, CLV_E_FORMAT, "the tokenizer has no tokens");
    own->names = clv__alloc((size_t)own->common.count, sizeof *own->names);
    own->begin = clv__alloc((size_t)own->common.count + 1, sizeof *own->begin);
    if (!own->names || !own->begin) return clv__tokenizer_no_memory(error);
    for (size_t i = 0; i < own->model.names.n; i++) {
        const clv__token_name *one = &own->model.names.all[i];
        token_name *to = &own->names[one->number];
        if (to->text)
            CLV_FAIL(error, CLV_E_FORMAT, "the tokenizer: two tokens have the number %d, one of them '%s'",
                     (int)one->number, clv__shown_bytes(one->text, one->bytes, &shown));
        *to = (token_name){one->text, one->bytes, false, false};
    }
    for (size_t i = 0; i < own->added.n; i++) {
        const clv__added_token *one = &own->added.all[i];
        own->names[one->token] = (token_name){one->content, (uint32_t)one->bytes, true, one->special};
    }
    return CLV_OK;
}

/** What tokens stand for alone: bytes, of those that a decoder makes bytes of. */
static clv_status list_bytes(clv__error *error, tokenizer *own) {
    const bool of_bytes = clv__decoder_of_bytes(&own->decoder) ||
                          clv__json_is(json_object_get(own->root, "pre_tokenizer"), "ByteLevel");
    for (int32_t token = 0; token < own->common.count; token++) {
        const token_name *name = &own->names[token];
        own->begin[token] = own->stands.n;
        if (!name->text) continue;
        if (!of_bytes || name->added || !clv__byte_level_get(&own->stands, name->text, name->bytes))
            clv__text_add_bytes(&own->stands, name->text, name->bytes);
    }
    own->begin[own->common.count] = own->stands.n;
    return own->stands.failed ? clv__tokenizer_no_memory(error) : CLV_OK;
}

static clv_status read_all(clv__error *error, tokenizer *own) {
    json_t *model = json_object_get(own->root, "model");
    CLV_TRY(clv__model_read(error, model, &own->model));
    (void)json_object_del(model, "merges"); // they are kept in another form
    CLV_TRY(clv__normalizer_read(error, json_object_get(own->root, "normalizer"), &own->normalizer));
    CLV_TRY(clv__pretokenizer_read(error, json_object_get(own->root, "pre_tokenizer"), &own->pretokenizer));
    CLV_TRY(clv__decoder_read(error, json_object_get(own->root, "decoder"), &own->decoder));
    CLV_TRY(
        clv__added_read(error, json_object_get(own->root, "added_tokens"), &own->normalizer, &own->added));
    CLV_TRY(name_tokens(error, own));
    return list_bytes(error, own);
}

/** Parse a copy of the text. */
static clv_status parse(clv__error *error, const char *json, size_t bytes, tokenizer *own) {
    json_error_t why;
    clv__shown_text shown;
    own->common.text = own->json = clv__alloc(bytes + 1, 1);
    if (!own->json) return clv__tokenizer_no_memory(error);
    memcpy(own->json, json, bytes);
    own->root = json_loadb(json, bytes, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &why);
    if (own->root) return CLV_OK;
    CLV_FAIL(error, CLV_E_FORMAT, "the tokenizer is no JSON: line %d: %s", why.line,
             clv__shown_bytes(why.text, strlen(why.text), &shown));
}

clv_status clv__vocabulary_tokenizer(clv_runtime *runtime, const char *json, size_t bytes,
                                     clv_vocabulary **out) {
    clv__error *error = clv__io_error(runtime);
    CLV_TRY(CLV__GIVEN(error, json));
    CLV_TRY(CLV__GIVEN(error, out));
    *out = NULL;
    if (!clv__expression_there())
        CLV_FAIL(error, CLV_E_UNSUPPORTED,
                 "this build reads no tokenizers: it is without PCRE2 (CLEAVE_TOKENIZERS)");
    clv__input input;
    clv__input_memory(error, "tokenizer.json", json, bytes, &input);
    CLV_TRY(clv__foreign_check(&input, CLV__WANT_TOKENIZER));
    if (bytes > MOST_BYTES || memchr(json, 0, bytes))
        CLV_FAIL(error, CLV_E_FORMAT, "a tokenizer of %zu bytes: it is a text of %d at most", bytes,
                 MOST_BYTES);
    tokenizer *own = clv__alloc(1, sizeof *own);
    if (!own) return clv__tokenizer_no_memory(error);
    own->common = (clv_vocabulary){.error = error,
                                   .kind = "tokenizer",
                                   .encode = encode,
                                   .token = bytes_of,
                                   .decode = decode,
                                   .destroy = destroy};
    clv_status status = parse(error, json, bytes, own);
    if (status == CLV_OK) status = read_all(error, own);
    if (status == CLV_OK)
        *out = &own->common;
    else
        destroy(&own->common);
    return status;
}
