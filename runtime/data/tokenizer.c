// SPDX-License-Identifier: Apache-2.0
// Vocabularies of byte-pair encoding over bytes, from the text of a tokenizer.json: what it may say, and what it says.
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/shown.h"
#include "data/bpe.h"
#include "data/split.h"
#include "data/vocabulary.h"
#include "io/array.h"
#include "io/formats.h"
#include "io/shown.h"

enum { MOST_BYTES = 64 << 20, MOST_TOKENS = 1 << 22, ALPHABET = 256 };

/** The words of GPT-2: ByteLevel with use_regex. */
#define WORDS_OF_GPT2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

typedef struct tokenizer {
    clv_vocabulary common;
    char *json;
    clv__bpe bpe;
    clv__split split;
    int32_t
        *added; // tokens that are found in a text before all else, by their first bytes, longer ones first
    int n_added;
    int32_t first_added[ALPHABET + 1]; // where in `added` those of a first byte begin
} tokenizer;

/** While a tokenizer is read. */
typedef struct reading {
    clv__error *error;
    json_t *root, *model;
    tokenizer *out;
    const json_t **names; // [count]: a string each, of tokens that there are
    bool *is_added;       // [count]
} reading;

static clv_status no_memory(clv__error *error) {
    CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for a tokenizer");
}

// ---- bytes as characters ------------------------------------------------------------------------------------------

/** Does a byte stand for itself in the names of tokens? The others are the characters from 256 on, in order. */
static bool stands_for_itself(int byte) {
    return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

/** The byte that a code point stands for; -1: none. */
static int byte_of_code(uint32_t code) {
    if (code < ALPHABET) return stands_for_itself((int)code) ? (int)code : -1;
    uint32_t next = ALPHABET;
    for (int byte = 0; byte < ALPHABET; byte++)
        if (!stands_for_itself(byte) && next++ == code) return byte;
    return -1;
}

/** Write the bytes that a name stands for, and how many: no more than it has; false: a character stands for none. */
static bool bytes_of_name(const char *name, size_t n, char *out, size_t *bytes) {
    *bytes = 0;
    for (size_t i = 0, length; i < n; i += length) {
        length = clv__utf8_length((const uint8_t *)name + i, n - i);
        const uint8_t *at = (const uint8_t *)name + i;
        const int byte = length == 1   ? byte_of_code(at[0])
                         : length == 2 ? byte_of_code((at[0] & 0x1fu) << 6 | (at[1] & 0x3fu))
                                       : -1;
        if (byte < 0) return false;
        out[(*bytes)++] = (char)byte;
    }
    return true;
}

// ---- what it may say ----------------------------------------------------------------------------------------------

/** A setting must be absent, null, false, or the empty string: what it asks for is not done. */
static clv_status must_be_off(const reading *r, const json_t *object, const char *where, const char *key) {
    const json_t *value = json_object_get(object, key);
    if (!value || json_is_null(value) || json_is_false(value)) return CLV_OK;
    if (json_is_string(value) && json_string_length(value) == 0) return CLV_OK;
    CLV_FAIL(r->error, CLV_E_UNSUPPORTED, "the tokenizer: %s%s is set, and is not supported", where, key);
}

static clv_status type_must_be(const reading *r, const json_t *object, const char *where, const char *type) {
    const char *found = json_string_value(json_object_get(object, "type"));
    clv__shown_text shown;
    if (found && !strcmp(found, type)) return CLV_OK;
    CLV_FAIL(r->error, CLV_E_UNSUPPORTED, "the tokenizer: %s.type is '%s', and only '%s' is read", where,
             found ? clv__shown_bytes(found, strlen(found), &shown) : "", type);
}

static clv_status read_splitter(const reading *r, const json_t *splitter) {
    const char *type = json_string_value(json_object_get(splitter, "type"));
    if (type && !strcmp(type, "ByteLevel")) {
        CLV_TRY(must_be_off(r, splitter, "pre_tokenizer.", "add_prefix_space"));
        const json_t *use = json_object_get(splitter, "use_regex");
        if (use && json_is_false(use)) return CLV_OK;
        return clv__split_add(&r->out->split, r->error, WORDS_OF_GPT2, strlen(WORDS_OF_GPT2));
    }
    CLV_TRY(type_must_be(r, splitter, "pre_tokenizer", "Split"));
    CLV_TRY(must_be_off(r, splitter, "pre_tokenizer.", "invert"));
    const char *behavior = json_string_value(json_object_get(splitter, "behavior"));
    const json_t *pattern = json_object_get(json_object_get(splitter, "pattern"), "Regex");
    if (!behavior || strcmp(behavior, "Isolated") != 0 || !json_is_string(pattern))
        CLV_FAIL(
            r->error, CLV_E_UNSUPPORTED,
            "the tokenizer: a Split in pre_tokenizer must have a pattern.Regex and the behavior 'Isolated'");
    return clv__split_add(&r->out->split, r->error, json_string_value(pattern), json_string_length(pattern));
}

static bool is_byte_level(const json_t *splitter) {
    const char *type = json_string_value(json_object_get(splitter, "type"));
    return type && !strcmp(type, "ByteLevel");
}

/** ByteLevel, or a sequence that ends with it. */
static clv_status read_splitters(const reading *r) {
    const json_t *splitter = json_object_get(r->root, "pre_tokenizer");
    const char *type = json_string_value(json_object_get(splitter, "type"));
    const json_t *all = type && !strcmp(type, "Sequence") ? json_object_get(splitter, "pretokenizers") : NULL;
    const size_t n = json_array_size(all);
    if (!is_byte_level(n ? json_array_get(all, n - 1) : splitter))
        CLV_FAIL(r->error, CLV_E_UNSUPPORTED,
                 "the tokenizer: its pre_tokenizer must be ByteLevel, or a Sequence that ends with it");
    if (!n) return read_splitter(r, splitter);
    for (size_t i = 0; i < n; i++) CLV_TRY(read_splitter(r, json_array_get(all, i)));
    return CLV_OK;
}

static clv_status check_settings(const reading *r) {
    static const char *const unsupported[] = {"dropout", "continuing_subword_prefix", "end_of_word_suffix",
                                              "byte_fallback"};
    CLV_TRY(type_must_be(r, r->model, "model", "BPE"));
    for (size_t i = 0; i < sizeof unsupported / sizeof *unsupported; i++)
        CLV_TRY(must_be_off(r, r->model, "model.", unsupported[i]));
    return must_be_off(r, r->root, "", "normalizer");
}

// ---- tokens -------------------------------------------------------------------------------------------------------

static clv_status check_id(const reading *r, const json_t *id, const char *name, size_t n) {
    clv__shown_text shown;
    if (json_is_integer(id) && json_integer_value(id) >= 0 && json_integer_value(id) < MOST_TOKENS)
        return CLV_OK;
    CLV_FAIL(r->error, CLV_E_FORMAT, "the tokenizer: token '%s' must have a number from 0 to %d",
             clv__shown_bytes(name, n, &shown), MOST_TOKENS - 1);
}

/** One more than the greatest number of a token; what all names take in bytes at most. */
static clv_status count_tokens(const reading *r, size_t *text) {
    json_t *vocab = json_object_get(r->model, "vocab"), *added = json_object_get(r->root, "added_tokens"),
           *value;
    json_int_t greatest = -1;
    const char *name;
    size_t i, n;
    if (!json_is_object(vocab)) CLV_FAIL(r->error, CLV_E_FORMAT, "the tokenizer has no model.vocab");
    *text = 0;
    json_object_keylen_foreach(vocab, name, n, value) {
        CLV_TRY(check_id(r, value, name, n));
        if (json_integer_value(value) > greatest) greatest = json_integer_value(value);
        *text += n;
    }
    json_array_foreach(added, i, value) {
        const json_t *content = json_object_get(value, "content"), *id = json_object_get(value, "id");
        if (!json_string_length(content))
            CLV_FAIL(r->error, CLV_E_FORMAT, "the tokenizer: an added token has no content");
        name = json_string_value(content), n = json_string_length(content);
        CLV_TRY(check_id(r, id, name, n));
        if (json_integer_value(id) > greatest) greatest = json_integer_value(id);
        *text += n;
        static const char *const unsupported[] = {"single_word", "lstrip", "rstrip"};
        for (size_t k = 0; k < sizeof unsupported / sizeof *unsupported; k++)
            CLV_TRY(must_be_off(r, value, "an added token's ", unsupported[k]));
    }
    if (greatest < 0) CLV_FAIL(r->error, CLV_E_FORMAT, "the tokenizer has no tokens");
    r->out->bpe.count = (int32_t)greatest + 1;
    return CLV_OK;
}

/** A token's name; two names of one number are a mistake, but where the same token is listed twice. */
static clv_status name_token(reading *r, const json_t *id, json_t *name, bool added) {
    const json_int_t token = json_integer_value(id);
    clv__shown_text shown;
    if (r->names[token] && !added)
        CLV_FAIL(r->error, CLV_E_FORMAT, "the tokenizer: two tokens have the number %d, one of them '%s'",
                 (int)token, clv__shown_bytes(json_string_value(name), json_string_length(name), &shown));
    r->names[token] = name;
    r->is_added[token] = added;
    return CLV_OK;
}

/** Names to bytes, one token after the other. */
static clv_status write_bytes(const reading *r) {
    clv__bpe *bpe = &r->out->bpe;
    size_t used = 0;
    for (int32_t token = 0; token < bpe->count; token++) {
        bpe->begin[token] = (uint32_t)used;
        const json_t *name = r->names[token];
        if (!name) continue; // a number that is not used
        const char *text = json_string_value(name);
        const size_t n = json_string_length(name);
        size_t bytes = n;
        clv__shown_text shown;
        if (r->is_added[token])
            memcpy(bpe->text + used, text, n);
        else if (!bytes_of_name(text, n, bpe->text + used, &bytes))
            CLV_FAIL(r->error, CLV_E_FORMAT,
                     "the tokenizer: token '%s' has a character that stands for no byte; only byte-level "
                     "vocabularies are read",
                     clv__shown_bytes(text, n, &shown));
        used += bytes;
    }
    bpe->begin[bpe->count] = (uint32_t)used;
    return CLV_OK;
}

static clv_status read_tokens(reading *r) {
    size_t text = 0;
    CLV_TRY(count_tokens(r, &text));
    clv__bpe *bpe = &r->out->bpe;
    const size_t count = (size_t)bpe->count;
    bpe->text = clv__alloc(text + 1, 1);
    bpe->begin = clv__alloc(count + 1, sizeof *bpe->begin);
    bpe->ordered = clv__alloc(count, sizeof *bpe->ordered);
    r->names = clv__alloc(count, sizeof *r->names);
    r->is_added = clv__alloc(count, sizeof *r->is_added);
    json_t *names = json_array(), *value; // own the names of the vocabulary as strings
    const char *name;
    size_t i, n;
    clv_status status = bpe->text && bpe->begin && bpe->ordered && r->names && r->is_added && names
                            ? CLV_OK
                            : no_memory(r->error);
    json_object_keylen_foreach(json_object_get(r->model, "vocab"), name, n, value) {
        json_t *string = status == CLV_OK ? json_stringn(name, n) : NULL;
        if (status == CLV_OK && (!string || json_array_append_new(names, string)))
            status = no_memory(r->error);
        if (status == CLV_OK) status = name_token(r, value, string, false);
    }
    json_array_foreach(json_object_get(r->root, "added_tokens"), i, value) {
        if (status == CLV_OK)
            status = name_token(r, json_object_get(value, "id"), json_object_get(value, "content"), true);
    }
    if (status == CLV_OK) status = write_bytes(r);
    json_decref(names);
    if (status != CLV_OK) return status;
    const int byte = clv__bpe_order(bpe);
    if (byte >= 0) CLV_FAIL(r->error, CLV_E_FORMAT, "the tokenizer has no token for the byte %d", byte);
    return CLV_OK;
}

// ---- merges -------------------------------------------------------------------------------------------------------

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

static clv_status read_merges(const reading *r) {
    const json_t *merges = json_object_get(r->model, "merges");
    clv__bpe *bpe = &r->out->bpe;
    if (!json_is_array(merges)) CLV_FAIL(r->error, CLV_E_FORMAT, "the tokenizer has no model.merges");
    const size_t count = json_array_size(merges);
    if (!clv__bpe_reserve(bpe, count)) return no_memory(r->error);
    char *room = clv__alloc(MOST_BYTES < strlen(r->out->json) ? MOST_BYTES : strlen(r->out->json) + 1, 1);
    clv_status status = room ? CLV_OK : no_memory(r->error);
    for (size_t i = 0; i < count && status == CLV_OK; i++) {
        const char *part[2];
        size_t n[2], left = 0, right = 0;
        clv__merge merge = {.rank = (int32_t)i, .left = -1};
        if (parts_of(json_array_get(merges, i), part, n) && bytes_of_name(part[0], n[0], room, &left) &&
            bytes_of_name(part[1], n[1], room + left, &right)) {
            merge.left = clv__bpe_find(bpe, room, left);
            merge.right = clv__bpe_find(bpe, room + left, right);
            merge.token = clv__bpe_find(bpe, room, left + right);
        }
        if (merge.left < 0 || merge.right < 0 || merge.token < 0)
            status = clv__error_set(r->error, CLV_E_FORMAT,
                                    "the tokenizer: merge %zu is not of two tokens that make a third", i);
        else
            clv__bpe_add(bpe, merge);
    }
    free(room);
    return status;
}

// ---- added tokens -------------------------------------------------------------------------------------------------

typedef struct added_token {
    uint8_t first; // byte
    uint32_t length;
    int32_t token;
} added_token;

/** By first byte, then by length, the longest first, then by number. */
static int compare_added(const void *a, const void *b) {
    const added_token *x = a, *y = b;
    if (x->first != y->first) return x->first < y->first ? -1 : 1;
    if (x->length != y->length) return x->length > y->length ? -1 : 1;
    return (x->token > y->token) - (x->token < y->token);
}

static clv_status order_added(const reading *r) {
    tokenizer *out = r->out;
    const clv__bpe *bpe = &out->bpe;
    const size_t room = json_array_size(json_object_get(r->root, "added_tokens")) + 1;
    added_token *all = clv__alloc(room, sizeof *all);
    size_t n = 0;
    out->added = clv__alloc(room, sizeof *out->added);
    if (!all || !out->added) {
        free(all);
        return no_memory(r->error);
    }
    for (int32_t token = 0; token < bpe->count; token++)
        if (r->is_added[token])
            all[n++] = (added_token){(uint8_t)bpe->text[bpe->begin[token]],
                                     bpe->begin[token + 1] - bpe->begin[token], token};
    qsort(all, n, sizeof *all, compare_added);
    for (int byte = 0; byte <= ALPHABET; byte++) {
        out->first_added[byte] = out->n_added;
        while ((size_t)out->n_added < n && all[out->n_added].first == byte) {
            out->added[out->n_added] = all[out->n_added].token;
            out->n_added++;
        }
    }
    free(all);
    return CLV_OK;
}

/** The longest added token that a text begins with; -1: none. */
static int32_t added_at(const tokenizer *own, const char *text, size_t bytes) {
    const uint8_t first = (uint8_t)*text;
    for (int i = own->first_added[first]; i < own->first_added[first + 1]; i++) {
        const int32_t token = own->added[i];
        const uint32_t begin = own->bpe.begin[token], length = own->bpe.begin[token + 1] - begin;
        if (length <= bytes && !memcmp(own->bpe.text + begin, text, length)) return token;
    }
    return -1;
}

// ---- a vocabulary -------------------------------------------------------------------------------------------------

typedef struct encoding {
    const tokenizer *own;
    clv__bpe_work work;
    clv__tokens *out;
    bool no_memory;
} encoding;

static bool on_piece(void *user, const char *piece, size_t bytes) {
    encoding *e = user;
    clv__tokens *out = e->out;
    e->no_memory = !clv__grow(&out->at, &out->room, out->n + bytes, sizeof *out->at) ||
                   !clv__bpe_encode(&e->own->bpe, &e->work, piece, bytes, out->at, &out->n);
    return !e->no_memory;
}

static clv_status encode_words(encoding *e, const char *text, size_t bytes) {
    clv__error *error = e->own->common.error;
    CLV_TRY(clv__split_run(&e->own->split, error, text, bytes, on_piece, e));
    return e->no_memory ? no_memory(error) : CLV_OK;
}

static clv_status encode(const clv_vocabulary *vocabulary, const char *text, size_t bytes, clv__tokens *out) {
    const tokenizer *own = (const tokenizer *)vocabulary;
    for (size_t i = 0, length; i < bytes; i += length) {
        length = clv__utf8_length((const uint8_t *)text + i, bytes - i);
        if (!length) return clv__vocabulary_not_text(vocabulary->error, i);
    }
    encoding e = {.own = own, .out = out};
    clv_status status = CLV_OK;
    size_t done = 0;
    for (size_t i = 0; i < bytes && status == CLV_OK;) {
        const int32_t token = own->n_added ? added_at(own, text + i, bytes - i) : -1;
        if (token < 0) {
            i++;
            continue;
        }
        status = encode_words(&e, text + done, i - done);
        if (status == CLV_OK && !clv__tokens_add(out, token)) status = no_memory(own->common.error);
        i += own->bpe.begin[token + 1] - own->bpe.begin[token];
        done = i;
    }
    if (status == CLV_OK) status = encode_words(&e, text + done, bytes - done);
    clv__bpe_work_reset(&e.work);
    return status;
}

static const char *bytes_of(const clv_vocabulary *vocabulary, int32_t token, size_t *bytes) {
    const clv__bpe *bpe = &((const tokenizer *)vocabulary)->bpe;
    *bytes = bpe->begin[token + 1] - bpe->begin[token];
    return bpe->text + bpe->begin[token];
}

static void destroy(clv_vocabulary *vocabulary) {
    tokenizer *own = (tokenizer *)vocabulary;
    clv__bpe_reset(&own->bpe);
    clv__split_reset(&own->split);
    free(own->added);
    free(own->json);
    free(own);
}

static clv_status read_all(reading *r) {
    CLV_TRY(check_settings(r));
    CLV_TRY(read_splitters(r));
    CLV_TRY(read_tokens(r));
    CLV_TRY(read_merges(r));
    r->out->bpe.whole_words = json_is_true(json_object_get(r->model, "ignore_merges"));
    r->out->common.count = r->out->bpe.count;
    return order_added(r);
}

clv_status clv_vocabulary_tokenizer(clv_runtime *runtime, const char *json, size_t bytes,
                                    clv_vocabulary **out) {
    clv__error *error = clv__io_error(runtime);
    CLV_TRY(CLV__GIVEN(error, json));
    CLV_TRY(CLV__GIVEN(error, out));
    *out = NULL;
    if (!clv__split_there())
        CLV_FAIL(error, CLV_E_UNSUPPORTED,
                 "this build reads no tokenizers: it is without PCRE2 (CLEAVE_TOKENIZERS)");
    clv__input input;
    clv__input_memory(error, "tokenizer.json", json, bytes, &input);
    CLV_TRY(clv__foreign_check(&input, CLV__WANT_TOKENIZER));
    if (bytes > MOST_BYTES || memchr(json, 0, bytes))
        CLV_FAIL(error, CLV_E_FORMAT, "a tokenizer of %zu bytes: it is a text of %d at most", bytes,
                 MOST_BYTES);
    reading r = {.error = error, .out = clv__alloc(1, sizeof *r.out)};
    if (!r.out) return no_memory(error);
    r.out->common = (clv_vocabulary){
        .error = error, .kind = "tokenizer", .encode = encode, .token = bytes_of, .destroy = destroy};
    r.out->common.text = r.out->json = clv__alloc(bytes + 1, 1);
    json_error_t why;
    clv_status status = r.out->json ? CLV_OK : no_memory(error);
    if (status == CLV_OK) {
        memcpy(r.out->json, json, bytes);
        r.root = json_loadb(json, bytes, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &why);
        clv__shown_text shown;
        if (!r.root)
            status = clv__error_set(error, CLV_E_FORMAT, "the tokenizer is no JSON: line %d: %s", why.line,
                                    clv__shown_bytes(why.text, strlen(why.text), &shown));
    }
    r.model = json_object_get(r.root, "model");
    if (status == CLV_OK) status = read_all(&r);
    json_decref(r.root);
    free(r.names);
    free(r.is_added);
    if (status == CLV_OK)
        *out = &r.out->common;
    else
        destroy(&r.out->common);
    return status;
}
