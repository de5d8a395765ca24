// SPDX-License-Identifier: Apache-2.0
// Vocabularies from a tokenizer.json: the tokens that Hugging Face's tokenizers give, and what is refused, with its sentence.
#include "cleave/data.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/bpe.h"
#include "io/support.h"

#define FOLDER CLV_TEST_SOURCE_DIR "/tests/golden/tokenizers/"

static clv_vocabulary *vocabulary_of(const char *path) {
    clv_array json;
    clv_vocabulary *vocabulary = NULL;
    expect_ok(clv_text_read(support_runtime, path, &json));
    expect_ok(clv_vocabulary_tokenizer(support_runtime, json.data, clv_array_bytes(&json), &vocabulary));
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

static void expect_cases(const char *json, const char *cases) {
    clv_vocabulary *vocabulary = vocabulary_of(json);
    json_t *all = json_load_file(cases, JSON_ALLOW_NUL, NULL), *one;
    assert_true(json_array_size(all) > 200);
    size_t i;
    json_array_foreach(all, i, one) {
        const json_t *text = json_array_get(one, 0), *want = json_array_get(one, 1);
        const size_t bytes = json_string_length(text);
        int32_t tokens[2048];
        size_t n = 0;
        assert_true(bytes <= 2048);
        expect_ok(clv_vocabulary_encode(vocabulary, json_string_value(text), bytes, tokens, &n));
        if (n != json_array_size(want))
            fail_msg("case %zu: %zu tokens, not %zu", i, n, json_array_size(want));
        for (size_t t = 0; t < n; t++)
            if (tokens[t] != json_integer_value(json_array_get(want, t)))
                fail_msg("case %zu: token %zu is %d, not %d", i, t, tokens[t],
                         (int)json_integer_value(json_array_get(want, t)));
        expect_back(vocabulary, tokens, n, json_string_value(text), bytes);
    }
    json_decref(all);
    clv_vocabulary_destroy(vocabulary);
}

static void words_of_gpt2(void **state) {
    (void)state;
    expect_cases(FOLDER "words.json", FOLDER "words.cases.json");
}

static void words_by_an_expression(void **state) {
    (void)state;
    expect_cases(FOLDER "split.json", FOLDER "split.cases.json");
}

/** A vocabulary says from which text it is made again. */
static void says_its_text(void **state) {
    (void)state;
    clv_vocabulary *vocabulary = vocabulary_of(FOLDER "words.json"), *again = NULL;
    assert_string_equal(clv_vocabulary_kind(vocabulary), "tokenizer");
    const char *text = clv_vocabulary_text(vocabulary);
    expect_ok(clv_vocabulary_tokenizer(support_runtime, text, strlen(text), &again));
    assert_int_equal(clv_vocabulary_count(again), clv_vocabulary_count(vocabulary));
    size_t bytes;
    assert_null(clv_vocabulary_token(again, clv_vocabulary_count(again), &bytes));
    clv_vocabulary_destroy(again);
    clv_vocabulary_destroy(vocabulary);
}

static void text_must_be_utf8(void **state) {
    (void)state;
    clv_vocabulary *vocabulary = vocabulary_of(FOLDER "words.json");
    int32_t tokens[8];
    size_t n;
    expect_failure(clv_vocabulary_encode(vocabulary, "ab\xff", 3, tokens, &n), CLV_E_FORMAT,
                   "the text is not UTF-8 (byte 2)");
    clv_vocabulary_destroy(vocabulary);
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

/** An expression that matches an empty text splits there, between all characters here. */
static void an_empty_match_splits(void **state) {
    (void)state;
    char *json =
        changed("pre_tokenizer", "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":"
                                 "{\"Regex\":\"x*\"},\"behavior\":\"Isolated\",\"invert\":false},{\"type\":"
                                 "\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}]}");
    clv_vocabulary *vocabulary = NULL;
    int32_t tokens[8], whole[8];
    size_t n, n_whole, bytes;
    expect_ok(clv_vocabulary_tokenizer(support_runtime, json, strlen(json), &vocabulary));
    expect_ok(clv_vocabulary_encode(vocabulary, "the", 3, tokens, &n));
    assert_int_equal(n, 3); // a token for each byte, although "the" is one
    assert_memory_equal(clv_vocabulary_token(vocabulary, tokens[1], &bytes), "h", 1);
    clv_vocabulary_destroy(vocabulary);
    free(json);
    vocabulary = vocabulary_of(FOLDER "words.json");
    expect_ok(clv_vocabulary_encode(vocabulary, "the", 3, whole, &n_whole));
    assert_true(n_whole < 3);
    clv_vocabulary_destroy(vocabulary);
}

/** Of added tokens that begin alike the longest one is found. */
static void longest_added_token(void **state) {
    (void)state;
    char *json =
        changed("added_tokens", "[{\"id\":500,\"content\":\"<e>\"},{\"id\":501,\"content\":\"<e>!\"},"
                                "{\"id\":502,\"content\":\"<e\"}]");
    clv_vocabulary *vocabulary = NULL;
    int32_t tokens[16];
    size_t n = 0;
    expect_ok(clv_vocabulary_tokenizer(support_runtime, json, strlen(json), &vocabulary));
    expect_ok(clv_vocabulary_encode(vocabulary, "<e>!<e><e<e>", 12, tokens, &n));
    const int32_t want[] = {501, 500, 502, 500};
    assert_int_equal(n, 4);
    assert_memory_equal(tokens, want, sizeof want);
    clv_vocabulary_destroy(vocabulary);
    free(json);
}

/** Numbers without a token, below 500 here, are none that a merge could name by an empty text. */
static void no_merge_of_nothing(void **state) {
    (void)state;
    char *gap = changed("added_tokens", "[{\"id\":500,\"content\":\"<e>\"}]");
    char *json = changed_of(json_loads(gap, JSON_ALLOW_NUL, NULL), "model.merges", "[[\"\", \"e\"]]");
    clv_vocabulary *vocabulary = NULL;
    expect_failure(clv_vocabulary_tokenizer(support_runtime, json, strlen(json), &vocabulary), CLV_E_FORMAT,
                   "merge 0 is not of two tokens that make a third");
    assert_null(vocabulary);
    free(json);
    free(gap);
}

/** Numbers without a token are not put in order: what that costs goes by the tokens, not by the greatest number. */
static void gaps_between_numbers(void **state) {
    (void)state;
    enum { COUNT = 1000 };
    char text[] = "ba"; // tokens 500 and 998
    uint32_t begin[COUNT + 1];
    int32_t ordered[COUNT];
    for (int i = 0; i <= COUNT; i++) begin[i] = (uint32_t)((i > 500) + (i > 998));
    clv__bpe bpe = {.count = COUNT, .text = text, .begin = begin, .ordered = ordered};
    assert_int_equal(clv__bpe_order(&bpe), 0); // the first byte that is no token
    assert_int_equal(bpe.n_ordered, 2);
    assert_int_equal(ordered[0], 998);
    assert_int_equal(ordered[1], 500);
    assert_int_equal(clv__bpe_find(&bpe, "a", 1), 998);
    assert_int_equal(clv__bpe_find(&bpe, "", 0), -1);
}

static void refuses(void **state) {
    (void)state;
    static const struct {
        const char *path, *value;
        clv_status status;
        const char *sentence;
    } cases[] = {
        {"model.type", "\"WordPiece\"", CLV_E_UNSUPPORTED,
         "model.type is 'WordPiece', and only 'BPE' is read"},
        {"model", NULL, CLV_E_UNSUPPORTED, "model.type is '', and only 'BPE' is read"},
        {"model.vocab", NULL, CLV_E_FORMAT, "the tokenizer has no model.vocab"},
        {"model.vocab", "{}", CLV_E_FORMAT, "the tokenizer has no token for the byte 0"},
        {"model.vocab.the", "-1", CLV_E_FORMAT, "token 'the' must have a number from 0 to 4194303"},
        {"model.vocab.the", "99999999999", CLV_E_FORMAT, "token 'the' must have a number from 0 to 4194303"},
        {"model.vocab.x y", "400", CLV_E_FORMAT, "two tokens have the number 400"},
        {"model.vocab.x y", "4000", CLV_E_FORMAT, "token 'x y' has a character that stands for no byte"},
        {"model.vocab.!", NULL, CLV_E_FORMAT, "the tokenizer has no token for the byte 33"},
        {"model.merges", NULL, CLV_E_FORMAT, "the tokenizer has no model.merges"},
        {"model.merges", "[\"h e\", \"zz q\"]", CLV_E_FORMAT,
         "merge 1 is not of two tokens that make a third"},
        {"model.merges", "[[\"t\"]]", CLV_E_FORMAT, "merge 0 is not of two tokens that make a third"},
        {"model.byte_fallback", "true", CLV_E_UNSUPPORTED,
         "model.byte_fallback is set, and is not supported"},
        {"model.dropout", "0.1", CLV_E_UNSUPPORTED, "model.dropout is set, and is not supported"},
        {"normalizer", "{\"type\":\"NFC\"}", CLV_E_UNSUPPORTED, "normalizer is set, and is not supported"},
        {"pre_tokenizer", "null", CLV_E_UNSUPPORTED, "its pre_tokenizer must be ByteLevel"},
        {"pre_tokenizer.add_prefix_space", "true", CLV_E_UNSUPPORTED,
         "pre_tokenizer.add_prefix_space is set, and is not supported"},
        {"pre_tokenizer",
         "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{\"Regex\":\"a(\"},"
         "\"behavior\":"
         "\"Isolated\"},{\"type\":\"ByteLevel\"}]}",
         CLV_E_FORMAT, "the tokenizer splits by an expression that is wrong at character 2"},
        {"pre_tokenizer",
         "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{\"Regex\":\"a\"},"
         "\"behavior\":"
         "\"Removed\"},{\"type\":\"ByteLevel\"}]}",
         CLV_E_UNSUPPORTED, "must have a pattern.Regex and the behavior 'Isolated'"},
        {"added_tokens.0.lstrip", "true", CLV_E_UNSUPPORTED,
         "an added token's lstrip is set, and is not supported"},
        {"added_tokens.0.content", "\"\"", CLV_E_FORMAT, "an added token has no content"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = changed(cases[i].path, cases[i].value);
        clv_vocabulary *vocabulary = NULL;
        expect_failure(clv_vocabulary_tokenizer(support_runtime, text, strlen(text), &vocabulary),
                       cases[i].status, cases[i].sentence);
        assert_null(vocabulary);
        free(text);
    }
    clv_vocabulary *vocabulary = NULL;
    expect_failure(clv_vocabulary_tokenizer(support_runtime, "{", 1, &vocabulary), CLV_E_FORMAT,
                   "the tokenizer is no JSON: line 1");
    expect_failure(clv_vocabulary_tokenizer(support_runtime, "{\0}", 3, &vocabulary), CLV_E_FORMAT,
                   "a tokenizer of 3 bytes: it is a text");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_of_gpt2),
        cmocka_unit_test(words_by_an_expression),
        cmocka_unit_test(says_its_text),
        cmocka_unit_test(text_must_be_utf8),
        cmocka_unit_test(an_empty_match_splits),
        cmocka_unit_test(longest_added_token),
        cmocka_unit_test(no_merge_of_nothing),
        cmocka_unit_test(gaps_between_numbers),
        cmocka_unit_test(refuses),
    };
    return cmocka_run_group_tests(tests, support_begin, support_end);
}
