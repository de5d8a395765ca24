// SPDX-License-Identifier: Apache-2.0
// Vocabularies from a tokenizer.json: the tokens that Hugging Face's tokenizers give, and what is refused, with its sentence.
#include "cleave/data.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "data/vocabulary.h"
#include "harness/tokens.h"
#include "io/support.h"

#define FOLDER CLV_TEST_SOURCE_DIR "/tests/golden/tokenizers/"

static clv_vocabulary *vocabulary_of(const char *path) {
    clv_array json;
    clv_vocabulary *vocabulary = NULL;
    expect_ok(clv_text_read(support_runtime, path, &json));
    expect_ok(clv_vocabulary_create(support_runtime, CLV_VOCABULARY_TOKENIZER, json.data,
                                    clv_array_bytes(&json), &vocabulary));
    clv_array_reset(&json);
    return vocabulary;
}

/** The tokens' bytes make the text again. */
static void expect_back(const clv_vocabulary *vocabulary, const int32_t *tokens, size_t n, const char *text,
                        size_t bytes) {
    for (size_t i = 0; i < n; i++) {
        size_t length;
        const char *one = clv_vocabulary_token(vocabulary, tokens[i], &length);
        assert_non_null(one);
        assert_true(length <= bytes && !memcmp(one, text, length));
        text += length, bytes -= length;
    }
    assert_int_equal(bytes, 0);
}

/** Tokens as a text: what a case says it is. */
static void expect_text(const clv_vocabulary *vocabulary, const json_t *want, const int32_t *tokens, size_t n,
                        bool skip, const char *name, size_t at) {
    clv_array text;
    expect_ok(clv_vocabulary_decode(vocabulary, tokens, n, skip, &text));
    const size_t bytes = clv_array_bytes(&text);
    if (bytes != json_string_length(want) || memcmp(text.data, json_string_value(want), bytes) != 0)
        fail_msg("%s, case %zu: the text is '%.*s', not '%s'", name, at, (int)bytes, (const char *)text.data,
                 json_string_value(want));
    clv_array_reset(&text);
}

/** The tokens of each text, and the texts of these tokens: [text, tokens, decoded, decoded without special ones]. */
static void expect_cases(const char *name) {
    char path[512];
    snprintf(path, sizeof path, FOLDER "%s.json", name);
    clv_vocabulary *vocabulary = vocabulary_of(path);
    snprintf(path, sizeof path, FOLDER "%s.cases.json", name);
    json_t *all = json_load_file(path, JSON_ALLOW_NUL, NULL), *one;
    assert_true(json_array_size(all) > 150);
    size_t i;
    json_array_foreach(all, i, one) {
        const json_t *text = json_array_get(one, 0), *want = json_array_get(one, 1);
        clv_array tokens;
        expect_ok(
            clv_vocabulary_encode(vocabulary, json_string_value(text), json_string_length(text), &tokens));
        const size_t n = (size_t)tokens.shape.dims[0];
        const int32_t *token = tokens.data;
        if (n != json_array_size(want))
            fail_msg("%s, case %zu: %zu tokens, not %zu: %s", name, i, n, json_array_size(want),
                     json_string_value(text));
        for (size_t t = 0; t < n; t++)
            if (token[t] != json_integer_value(json_array_get(want, t)))
                fail_msg("%s, case %zu: token %zu is %d, not %d", name, i, t, token[t],
                         (int)json_integer_value(json_array_get(want, t)));
        expect_text(vocabulary, json_array_get(one, 2), token, n, false, name, i);
        expect_text(vocabulary, json_array_get(one, 3), token, n, true, name, i);
        if (!strcmp(name, "words") || !strcmp(name, "split"))
            expect_back(vocabulary, token, n, json_string_value(text), json_string_length(text));
        clv_array_reset(&tokens);
    }
    json_decref(all);
    clv_vocabulary_destroy(vocabulary);
}

TEST(words_of_gpt2) {
    expect_cases("words");
}

TEST(words_by_an_expression) {
    expect_cases("split");
}

TEST(without_utf8proc) {
    static const char *const names[] = {"roberta", "deepseek", "lacking",  "llama2",
                                        "phi3",    "mistral",  "wordlevel"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) expect_cases(names[i]);
}

/** What needs normal forms: the same, or where utf8proc is not there a sentence that says so. */
TEST(with_utf8proc) {
    static const char *const names[] = {"qwen", "bert", "t5", "unigram", "suffixes", "prefixes"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
#ifdef CLEAVE_UTF8PROC
        expect_cases(names[i]);
#else
        char path[512];
        clv_vocabulary *vocabulary = NULL;
        snprintf(path, sizeof path, FOLDER "%s.json", names[i]);
        json_t *root = json_load_file(path, JSON_ALLOW_NUL, NULL);
        char *json = json_dumps(root, 0);
        expect_failure(
            clv_vocabulary_create(support_runtime, CLV_VOCABULARY_TOKENIZER, json, strlen(json), &vocabulary),
            CLV_E_UNSUPPORTED, "needs utf8proc");
        json_decref(root);
        free(json);
#endif
    }
}

/** A tokenizer with the value at a path (keys with points) set, or gone where `value` is NULL. Owns root. */
static char *changed_of(json_t *root, const char *path, const char *value) {
    json_t *at = root;
    assert_non_null(root);
    char key[64];
    const char *end;
    for (; (end = strchr(path, '.')); path = end + 1) {
        snprintf(key, sizeof key, "%.*s", (int)(end - path), path);
        at = json_is_array(at) ? json_array_get(at, (size_t)atoi(key)) : json_object_get(at, key);
    }
    if (value)
        json_object_set_new(at, path, json_loads(value, JSON_DECODE_ANY, NULL));
    else
        json_object_del(at, path);
    char *text = json_dumps(root, 0);
    json_decref(root);
    return text;
}

/** The same of the tokenizer of words. */
static char *changed(const char *path, const char *value) {
    return changed_of(json_load_file(FOLDER "words.json", JSON_ALLOW_NUL, NULL), path, value);
}

/** A file that would make a text larger without end is stopped. */
TEST(growth_is_bounded) {
    clv__text steps = {0};
    for (int i = 0; i < 20; i++)
        clv__text_add(
            &steps,
            "%s{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},\"content\":\"aaaaaaaaaaaaaaaa\"}",
            i ? "," : "");
    for (int decodes = 0; decodes < 2; decodes++) {
        clv__text value = {0};
        clv_vocabulary *vocabulary = NULL;
        clv_array out;
        clv__text_add(&value, "{\"type\":\"Sequence\",\"%s\":[%s]}", decodes ? "decoders" : "normalizers",
                      clv__text_get(&steps));
        char *json = changed(decodes ? "decoder" : "normalizer", clv__text_get(&value));
        char *bare = changed_of(json_loads(json, JSON_ALLOW_NUL, NULL), "added_tokens", "[]");
        expect_ok(clv_vocabulary_create(support_runtime, CLV_VOCABULARY_TOKENIZER, bare, strlen(bare),
                                        &vocabulary));
        int32_t token = 0;
        size_t bytes;
        while (*clv_vocabulary_token(vocabulary, token, &bytes) != 'a' || bytes != 1) token++;
        const clv_status status = decodes ? clv_vocabulary_decode(vocabulary, &token, 1, false, &out)
                                          : clv_vocabulary_encode(vocabulary, "a", 1, &out);
        expect_failure(status, CLV_E_FORMAT, "more than 100 times as large");
        clv_vocabulary_destroy(vocabulary);
        clv__text_reset(&value);
        free(json);
        free(bare);
    }
    clv__text_reset(&steps);
}

/** A tokenizer that normalizes may make more tokens of a text than it has bytes. */
TEST(more_tokens_than_bytes) {
    clv_vocabulary *vocabulary = vocabulary_of(FOLDER "llama2.json");
    clv_array tokens;
    expect_ok(clv_vocabulary_encode(vocabulary, "\x01", 1, &tokens));
    assert_int_equal(tokens.shape.dims[0], 2);
    clv_array_reset(&tokens);
    clv_vocabulary_destroy(vocabulary);
}

/** A vocabulary says from which text it is made again. */
TEST(says_its_text) {
    clv_vocabulary *vocabulary = vocabulary_of(FOLDER "words.json"), *again = NULL;
    assert_string_equal(clv__vocabulary_kind(vocabulary), "tokenizer");
    const char *text = clv__vocabulary_text(vocabulary);
    expect_ok(clv_vocabulary_create(support_runtime, CLV_VOCABULARY_TOKENIZER, text, strlen(text), &again));
    assert_int_equal(clv_vocabulary_count(again), clv_vocabulary_count(vocabulary));
    size_t bytes;
    assert_null(clv_vocabulary_token(again, clv_vocabulary_count(again), &bytes));
    clv_vocabulary_destroy(again);
    clv_vocabulary_destroy(vocabulary);
}

TEST(text_must_be_utf8) {
    clv_vocabulary *vocabulary = vocabulary_of(FOLDER "words.json");
    int32_t tokens[8];
    size_t n;
    expect_failure(encode_into(vocabulary, "ab\xff", 3, tokens, &n), CLV_E_FORMAT,
                   "the text is not UTF-8 (byte 2)");
    clv_vocabulary_destroy(vocabulary);
}

/** An expression that matches an empty text splits there, between all characters here. */
TEST(an_empty_match_splits) {
    char *json =
        changed("pre_tokenizer", "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":"
                                 "{\"Regex\":\"x*\"},\"behavior\":\"Isolated\",\"invert\":false},{\"type\":"
                                 "\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}]}");
    clv_vocabulary *vocabulary = NULL;
    int32_t tokens[8], whole[8];
    size_t n, n_whole, bytes;
    expect_ok(
        clv_vocabulary_create(support_runtime, CLV_VOCABULARY_TOKENIZER, json, strlen(json), &vocabulary));
    expect_ok(encode_into(vocabulary, "the", 3, tokens, &n));
    assert_int_equal(n, 3); // a token for each byte, although "the" is one
    assert_memory_equal(clv_vocabulary_token(vocabulary, tokens[1], &bytes), "h", 1);
    clv_vocabulary_destroy(vocabulary);
    free(json);
    vocabulary = vocabulary_of(FOLDER "words.json");
    expect_ok(encode_into(vocabulary, "the", 3, whole, &n_whole));
    assert_true(n_whole < 3);
    clv_vocabulary_destroy(vocabulary);
}

/** Of added tokens that begin alike the longest one is found. */
TEST(longest_added_token) {
    char *json =
        changed("added_tokens", "[{\"id\":500,\"content\":\"<e>\"},{\"id\":501,\"content\":\"<e>!\"},"
                                "{\"id\":502,\"content\":\"<e\"}]");
    clv_vocabulary *vocabulary = NULL;
    int32_t tokens[16];
    size_t n = 0;
    expect_ok(
        clv_vocabulary_create(support_runtime, CLV_VOCABULARY_TOKENIZER, json, strlen(json), &vocabulary));
    expect_ok(encode_into(vocabulary, "<e>!<e><e<e>", 12, tokens, &n));
    const int32_t want[] = {501, 500, 502, 500};
    assert_int_equal(n, 4);
    assert_memory_equal(tokens, want, sizeof want);
    clv_vocabulary_destroy(vocabulary);
    free(json);
}

/** Numbers without a token, below 500 here, are none that a merge could name by an empty text. */
TEST(no_merge_of_nothing) {
    char *gap = changed("added_tokens", "[{\"id\":500,\"content\":\"<e>\"}]");
    char *json = changed_of(json_loads(gap, JSON_ALLOW_NUL, NULL), "model.merges", "[[\"\", \"e\"]]");
    clv_vocabulary *vocabulary = NULL;
    expect_failure(
        clv_vocabulary_create(support_runtime, CLV_VOCABULARY_TOKENIZER, json, strlen(json), &vocabulary),
        CLV_E_FORMAT, "merge 0 is not of two tokens that make a third");
    assert_null(vocabulary);
    free(json);
    free(gap);
}

TEST(refuses) {
    static const struct {
        const char *path, *value;
        clv_status status;
        const char *sentence;
    } cases[] = {
        {"model.type", "\"Neural\"", CLV_E_UNSUPPORTED,
         "model.type is 'Neural', and BPE, Unigram, WordPiece and WordLevel are read"},
        {"model.type", "\"Unigram\"", CLV_E_FORMAT, "the tokenizer has no model.vocab"},
        {"model", NULL, CLV_E_FORMAT, "the tokenizer has no model"},
        {"model.vocab", NULL, CLV_E_FORMAT, "the tokenizer has no model.vocab"},
        {"model.vocab.the", "-1", CLV_E_FORMAT, "token 'the' must have a number from 0 to 4194303"},
        {"model.vocab.the", "99999999999", CLV_E_FORMAT, "token 'the' must have a number from 0 to 4194303"},
        {"model.vocab.x y", "400", CLV_E_FORMAT, "two tokens have the number 400"},
        {"model.merges", NULL, CLV_E_FORMAT, "the tokenizer has no model.merges"},
        {"model.merges", "[\"h e\", \"zz q\"]", CLV_E_FORMAT,
         "merge 1 is not of two tokens that make a third"},
        {"model.merges", "[[\"t\"]]", CLV_E_FORMAT, "merge 0 is not of two tokens that make a third"},
        {"model.continuing_subword_prefix", "\"longer than any\"", CLV_E_FORMAT,
         "merge 0 is not of two tokens that make a third"},
        {"model.dropout", "0.1", CLV_E_UNSUPPORTED, "model.dropout is set, and is not supported"},
        {"normalizer", "{\"type\":\"Rot13\"}", CLV_E_UNSUPPORTED,
         "its normalizer is of type 'Rot13', which is not"},
        {"normalizer", "{\"type\":\"Replace\",\"content\":\"\",\"pattern\":{\"Regex\":\"[a-z&&[^e]]\"}}",
         CLV_E_UNSUPPORTED, "an expression has &&, which is not supported"},
        {"normalizer", "{\"type\":\"Replace\",\"pattern\":{\"String\":\"x\"}}", CLV_E_FORMAT,
         "has no content"},
        {"normalizer", "{\"type\":\"Replace\",\"content\":\"\",\"pattern\":{\"String\":\"\"}}", CLV_E_FORMAT,
         "a pattern of its normalizer is neither a String nor a Regex"},
        {"pre_tokenizer", "{\"type\":\"UnicodeScripts\"}", CLV_E_UNSUPPORTED,
         "its pre_tokenizer is of type 'UnicodeScripts', which is not supported"},
        {"pre_tokenizer", "[]", CLV_E_UNSUPPORTED, "its pre_tokenizer is of type '', which is not supported"},
        {"pre_tokenizer", "{\"type\":\"Metaspace\",\"replacement\":\"xy\"}", CLV_E_FORMAT,
         "the replacement of Metaspace is not one character"},
        {"pre_tokenizer", "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"a(\"},\"behavior\":\"Isolated\"}",
         CLV_E_FORMAT, "the tokenizer splits by an expression that is wrong at character 2"},
        {"pre_tokenizer",
         "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"a{1,3}+\"},\"behavior\":\"Isolated\"}",
         CLV_E_UNSUPPORTED, "an expression has }+, which is not supported"},
        {"pre_tokenizer", "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"a\"},\"behavior\":\"Twice\"}",
         CLV_E_UNSUPPORTED, "a behavior of its pre_tokenizer is 'Twice', which is not supported"},
        {"decoder", "{\"type\":\"CTC\"}", CLV_E_UNSUPPORTED,
         "its decoder is of type 'CTC', which is not supported"},
        {"added_tokens.0.content", "\"\"", CLV_E_FORMAT, "an added token has no content"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = changed(cases[i].path, cases[i].value);
        clv_vocabulary *vocabulary = NULL;
        expect_failure(
            clv_vocabulary_create(support_runtime, CLV_VOCABULARY_TOKENIZER, text, strlen(text), &vocabulary),
            cases[i].status, cases[i].sentence);
        assert_null(vocabulary);
        free(text);
    }
    static const char *const deep = "{\"type\":\"Sequence\",\"normalizers\":[";
    char nested[2048] = "";
    for (int i = 0; i < 20; i++) strcat(nested, deep);
    for (int i = 0; i < 20; i++) strcat(nested, "]}");
    char *text = changed("normalizer", nested);
    clv_vocabulary *vocabulary = NULL;
    expect_failure(
        clv_vocabulary_create(support_runtime, CLV_VOCABULARY_TOKENIZER, text, strlen(text), &vocabulary),
        CLV_E_FORMAT, "Sequences of its normalizer are nested more than 8 deep");
    free(text);
    expect_failure(clv_vocabulary_create(support_runtime, CLV_VOCABULARY_TOKENIZER, "{", 1, &vocabulary),
                   CLV_E_FORMAT, "the tokenizer is no JSON: line 1");
    expect_failure(clv_vocabulary_create(support_runtime, CLV_VOCABULARY_TOKENIZER, "{\0}", 3, &vocabulary),
                   CLV_E_FORMAT, "a tokenizer of 3 bytes: it is a text");
}

TEST_MAIN(support_begin, support_end)
