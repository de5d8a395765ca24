// SPDX-License-Identifier: Apache-2.0
// Vocabularies and the dataset of a text: what tokens stand for, which samples there are, and what is refused, with its sentence.
#include "cleave/data.h"

#include <string.h>

#include "data/dataset.h"
#include "data/vocabulary.h"
#include "harness/tokens.h"
#include "io/support.h"

static clv_vocabulary *characters(const char *text) {
    clv_vocabulary *vocabulary = NULL;
    expect_ok(
        clv_vocabulary_create(support_runtime, CLV_VOCABULARY_CHARACTERS, text, strlen(text), &vocabulary));
    return vocabulary;
}

/** Tokens of a text and back. */
static void expect_round(const clv_vocabulary *vocabulary, const char *text, size_t bytes, size_t tokens) {
    int32_t token[64];
    char again[64];
    size_t n = 0, used = 0;
    assert_true(bytes <= sizeof again);
    expect_ok(encode_into(vocabulary, text, bytes, token, &n));
    assert_int_equal(n, tokens);
    for (size_t i = 0; i < n; i++) {
        size_t length;
        const char *one = clv_vocabulary_token(vocabulary, token[i], &length);
        assert_non_null(one);
        memcpy(again + used, one, length);
        used += length;
    }
    assert_int_equal(used, bytes);
    assert_memory_equal(again, text, bytes);
}

/** What tokens of bytes and characters are together: bytes that are no UTF-8 become U+FFFD, as in Rust's from_utf8_lossy. */
TEST(tokens_as_text) {
    static const struct {
        const char *bytes, *text;
    } cases[] = {{"", ""},
                 {"abc", "abc"},
                 {"\xe6\x97\xa5", "\xe6\x97\xa5"},
                 {"\xe6\x97", "\xef\xbf\xbd"}, // a beginning is one
                 {"\xe6\x97"
                  "a",
                  "\xef\xbf\xbd"
                  "a"},
                 {"\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd"}, // bytes that begin nothing are one each
                 {"\xf0\x9f\x98", "\xef\xbf\xbd"},
                 {"\xe0\x80", "\xef\xbf\xbd\xef\xbf\xbd"},                 // overlong
                 {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, // a surrogate
                 {"\xf5x", "\xef\xbf\xbdx"}};
    clv_vocabulary *bytes = NULL, *letters = characters("ab\xe6\x97\xa5");
    expect_ok(clv_vocabulary_create(support_runtime, CLV_VOCABULARY_BYTES, NULL, 0, &bytes));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        clv_array tokens, text;
        const size_t n = strlen(cases[i].bytes), want = strlen(cases[i].text);
        expect_ok(clv_vocabulary_encode(bytes, cases[i].bytes, n, &tokens));
        assert_int_equal(tokens.shape.dims[0], n);
        expect_ok(clv_vocabulary_decode(bytes, tokens.data, n, false, &text));
        assert_int_equal(clv_array_bytes(&text), want);
        assert_memory_equal(text.data, cases[i].text, want);
        clv_array_reset(&tokens);
        clv_array_reset(&text);
    }
    const int32_t some[] = {2, 0}, strange[] = {0, 3};
    clv_array text;
    expect_ok(clv_vocabulary_decode(letters, some, 2, true, &text));
    assert_int_equal(clv_array_bytes(&text), 4);
    assert_memory_equal(text.data,
                        "\xe6\x97\xa5"
                        "a",
                        4);
    clv_array_reset(&text);
    expect_failure(clv_vocabulary_decode(letters, strange, 2, true, &text), CLV_E_VALUE,
                   "token 1 is 3, and the vocabulary has 0 to 2");
    clv_vocabulary_destroy(bytes);
    clv_vocabulary_destroy(letters);
}

TEST(characters_in_order) {
    // one to four bytes long; each once, by code point
    static const char text[] = "b\xc3\xa4\n\xe2\x82\xac"
                               "a\xf0\x9f\x98\x80"
                               "a\xc3\xa4";
    static const char sorted[] = "\nab\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80";
    clv_vocabulary *vocabulary = characters(text);
    assert_int_equal(clv_vocabulary_count(vocabulary), 6);
    assert_string_equal(clv__vocabulary_text(vocabulary), sorted);
    expect_round(vocabulary, text, strlen(text), 8);
    size_t bytes;
    assert_null(clv_vocabulary_token(vocabulary, 6, &bytes));
    assert_int_equal(bytes, 0);
    assert_null(clv_vocabulary_token(vocabulary, -1, &bytes));
    clv_vocabulary *again = characters(clv__vocabulary_text(vocabulary)); // what is kept makes the same one
    assert_string_equal(clv__vocabulary_text(again), sorted);
    int32_t token[8];
    size_t n;
    expect_failure(encode_into(vocabulary, "ab\xc3\xb6", 4, token, &n), CLV_E_NOT_FOUND, "byte 2 of the text",
                   "not in the vocabulary, which has 6");
    expect_failure(encode_into(vocabulary, "ab\xff", 3, token, &n), CLV_E_FORMAT, "not UTF-8 (byte 2)");
    expect_failure(encode_into(vocabulary, "a\xe2\x82", 3, token, &n), CLV_E_FORMAT, "byte 1");
    clv_vocabulary_destroy(vocabulary);
    clv_vocabulary_destroy(again);
    expect_failure(clv_vocabulary_create(support_runtime, CLV_VOCABULARY_CHARACTERS, "", 0, &vocabulary),
                   CLV_E_VALUE, "empty");
    expect_failure(
        clv_vocabulary_create(support_runtime, CLV_VOCABULARY_CHARACTERS, "x\x80y", 3, &vocabulary),
        CLV_E_FORMAT, "byte 1", "(CLV_VOCABULARY_BYTES)");
    assert_null(vocabulary);
    clv_vocabulary_destroy(NULL);
}

TEST(bytes_of_any_kind) {
    clv_vocabulary *vocabulary = NULL;
    expect_ok(clv_vocabulary_create(support_runtime, CLV_VOCABULARY_BYTES, NULL, 0, &vocabulary));
    assert_int_equal(clv_vocabulary_count(vocabulary), 256);
    assert_null(clv__vocabulary_text(vocabulary));
    expect_round(vocabulary, "\0\xff\x80z", 4, 4);
    clv_vocabulary_destroy(vocabulary);
}

/** The i-th sample of a text of the letters from a on, and its target, which is one token further on. */
static void expect_stretch(const clv_dataset *dataset, int64_t i, int first, int n) {
    int32_t sample[16], target[16];
    clv__dataset_sample(dataset, i, sample);
    clv__dataset_target(dataset, i, target);
    for (int k = 0; k < n; k++) {
        assert_int_equal(sample[k], first + k);
        assert_int_equal(target[k], first + k + 1);
    }
}

TEST(stretches_of_a_text) {
    static const char text[] = "abcdefghijklmnopqrstuvwxyz";
    clv_vocabulary *vocabulary = characters(text);
    clv_dataset *dataset = NULL;
    clv_text_config config = {.vocabulary = vocabulary, .context = 5};
    const struct {
        int64_t stride;
        double begin, end;
        int64_t limit, count, first, last; // tokens that the first and the last sample begin with
    } cases[] = {
        {0, 0, 0, 0, 5, 0, 20},    // five fives, and z follows the last
        {1, 0, 0, 0, 21, 0, 20},   // each that has a token behind it
        {3, 0, 0, 4, 4, 0, 9},     //
        {0, 0.5, 1, 0, 2, 13, 18}, // from n on
        {5, 0, 0.5, 0, 2, 0, 5},   // to m
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        config.stride = cases[i].stride;
        config.begin = cases[i].begin;
        config.end = cases[i].end;
        config.limit = cases[i].limit;
        expect_ok(clv_dataset_text(support_runtime, text, 26, &config, &dataset));
        assert_int_equal(clv_dataset_info_get(dataset).count, cases[i].count);
        assert_int_equal(clv_dataset_info_get(dataset).classes, 26);
        assert_int_equal(clv_dataset_info_get(dataset).dtype, CLV_DTYPE_I32);
        assert_int_equal(clv__dataset_label(dataset, 0), -1);
        const clv_shape five = CLV_SHAPE(5), sample = clv_dataset_info_get(dataset).sample,
                        target = clv_dataset_info_get(dataset).target;
        assert_true(clv_shape_equal(&sample, &five) && clv_shape_equal(&target, &five));
        expect_stretch(dataset, 0, (int)cases[i].first, 5);
        expect_stretch(dataset, cases[i].count - 1, (int)cases[i].last, 5);
        clv_dataset_destroy(dataset);
    }
    config = (clv_text_config){.vocabulary = vocabulary, .context = 26};
    expect_failure(clv_dataset_text(support_runtime, text, 26, &config, &dataset), CLV_E_VALUE,
                   "the text has 26 tokens; a sample takes 26 and", "(clv_text_config.context)");
    config.context = 25;
    expect_ok(clv_dataset_text(support_runtime, text, 26, &config, &dataset));
    assert_int_equal(clv_dataset_info_get(dataset).count, 1);
    clv_dataset_destroy(dataset);
    config.end = 0.3;
    config.begin = 0.5;
    expect_failure(clv_dataset_text(support_runtime, text, 26, &config, &dataset), CLV_E_VALUE,
                   "from 0.5 to 0.3");
    config = (clv_text_config){.vocabulary = vocabulary, .context = -1};
    expect_failure(clv_dataset_text(support_runtime, text, 26, &config, &dataset), CLV_E_VALUE, "-1 tokens");
    config = (clv_text_config){.context = 5};
    expect_failure(clv_dataset_text(support_runtime, text, 26, &config, &dataset), CLV_E_VALUE, "vocabulary");
    config = (clv_text_config){.vocabulary = vocabulary, .context = 2};
    expect_failure(clv_dataset_text(support_runtime, "abc!", 4, &config, &dataset), CLV_E_NOT_FOUND, "'!'");
    clv_vocabulary_destroy(vocabulary);
}

/** Batches of them: tokens, not floats, in the loader's memory. */
TEST(batches_of_a_text) {
    static const char text[] = "abcdefghijklmnopqrstuvwxyz";
    clv_vocabulary *vocabulary = characters(text);
    clv_dataset *dataset = NULL;
    clv_loader *loader = NULL;
    const clv_text_config config = {.vocabulary = vocabulary, .context = 5};
    expect_ok(clv_dataset_text(support_runtime, text, 26, &config, &dataset));
    expect_ok(clv_loader_create(support_runtime, dataset, &(clv_loader_config){.batch = 2}, &loader));
    for (int i = 0; i < 3; i++) {
        clv_batch batch;
        expect_ok(clv_loader_next(loader, &batch));
        assert_int_equal(batch.n, i < 2 ? 2 : 1);
        const int32_t *samples = batch.samples, *targets = batch.targets;
        for (int64_t k = 0; k < batch.n * 5; k++) {
            assert_int_equal(samples[k], i * 10 + k);
            assert_int_equal(targets[k], i * 10 + k + 1);
        }
        clv_loader_release(loader, &batch);
    }
    clv_loader_destroy(loader);
    clv_dataset_destroy(dataset);
    clv_vocabulary_destroy(vocabulary);
}

TEST(files) {
    clv_array text;
    FILE *file = fopen("text", "wb");
    assert_non_null(file);
    assert_true(fputs("one\ntwo", file) >= 0 && fclose(file) == 0);
    expect_ok(clv_text_read(support_runtime, "text", &text));
    assert_int_equal(clv_array_bytes(&text), 7);
    assert_memory_equal(text.data, "one\ntwo", 7);
    clv_array_reset(&text);
    file = fopen("text", "wb");
    assert_true(file && fclose(file) == 0);
    expect_failure(clv_text_read(support_runtime, "text", &text), CLV_E_FORMAT, "'text' is empty");
    expect_failure(clv_text_read(support_runtime, "no text", &text), CLV_E_IO, "'no text'");
    assert_null(text.data);
    remove("text");
}

TEST_MAIN(support_begin, support_end)
