// SPDX-License-Identifier: Apache-2.0
// Writing with a GPT: the same tokens with the cache of keys and values and without, also where the context is full; memory as
// predicted; how tokens are drawn; what is refused.
#include <math.h>
#include <string.h>

#include "cleave/generate.h"
#include "cleave/train.h"
#include "data/vocabulary.h"
#include "harness/harness.h"
#include "infer/sampling.h"

TEST_RUNTIME
static clv_device *devices[2]; // the host, and the best device for kernels, if there is one
static int n_devices;

FIXTURE(setup) {
    runtime = clv__test_runtime(NULL);
    if (clv_device_find(runtime, "host", &devices[n_devices]) == CLV_OK) n_devices++;
    if (clv_device_find(runtime, "gpu|cpu", &devices[n_devices]) == CLV_OK) n_devices++;
    assert_true(n_devices > 0);
}

static const clv_gpt_config sizes = {.vocabulary = 11, .context = 13, .width = 24, .heads = 3, .layers = 3};

static clv_generator *generator_on(clv_device *device, bool no_cache) {
    clv_generator *generator = NULL;
    const clv_generator_config config = {.device = device, .gpt = &sizes, .no_cache = no_cache};
    assert_status(clv_generator_create(runtime, &config, &generator), CLV_OK, runtime);
    return generator;
}

/** Larger weights than first values are, so that tokens differ in what they make probable; the same for all. */
static void set_weights(clv_generator *generator) {
    static float values[24 * 96];
    clv_session *session = clv_generator_info_get(generator).session;
    for (int i = 0; i < clv_session_info_get(session).n_tensors; i++) {
        const clv_session_tensor tensor = clv_session_get(session, i);
        const int64_t n = clv_shape_numel(&tensor.shape);
        unsigned state = 7;
        for (const char *c = tensor.name; *c; c++)
            state = state * 31 + (unsigned char)*c; // by name: the order may differ
        assert_true(n <= 24 * 96);
        for (int64_t k = 0; k < n; k++) {
            state = state * 1664525u + 1013904223u;
            values[k] = ((float)(state >> 16) / 32768 - 1) * (tensor.shape.rank > 1 ? 0.6f : 0.3f) +
                        (strstr(tensor.name, "ln_") && strstr(tensor.name, ".weight") ? 1 : 0);
        }
        assert_status(clv_session_write(session, i, values, tensor.bytes), CLV_OK, runtime);
    }
}

typedef struct text {
    int32_t token[64];
    int n, most;
} text;

static bool add(void *user, int32_t token) {
    text *to = user;
    to->token[to->n++] = token;
    return to->n < to->most;
}

static const int32_t prompt[] = {3, 1, 4, 1, 5};

static text write_text(clv_generator *generator, const clv_sampling *sampling, int most) {
    text out = {.most = 64};
    assert_status(clv_generate(generator, prompt, 5, sampling, most, add, &out), CLV_OK, runtime);
    assert_int_equal(out.n, most);
    return out;
}

/** Greedy and drawn, on every device, three times the context long. */
TEST(the_cache_changes_nothing) {
    const clv_sampling drawn = {.temperature = 1.5, .seed = 5};
    text first = {.n = 0}, first_drawn = {.n = 0};
    for (int d = 0; d < n_devices; d++) {
        for (int no_cache = 0; no_cache < 2; no_cache++) {
            clv_generator *generator = generator_on(devices[d], no_cache);
            set_weights(generator);
            const text greedy = write_text(generator, NULL, 40), other = write_text(generator, &drawn, 40);
            const text again = write_text(generator, &drawn, 40); // each call starts again
            assert_memory_equal(again.token, other.token, sizeof other.token);
            if (!first.n) first = greedy, first_drawn = other;
            assert_memory_equal(greedy.token, first.token, sizeof first.token);
            assert_memory_equal(other.token, first_drawn.token, sizeof other.token);
            clv_generator_destroy(generator);
        }
    }
    int kinds = 0;
    for (int t = 0; t < 11; t++)
        for (int i = 0; i < 40; i++)
            if (first_drawn.token[i] == t) {
                kinds++;
                break;
            }
    assert_true(kinds > 4); // else they would be equal whatever went wrong
    assert_memory_not_equal(first.token, first_drawn.token, sizeof first.token);
}

TEST(memory_is_as_predicted) {
    for (int d = 0; d < n_devices; d++) {
        for (int no_cache = 0; no_cache < 2; no_cache++) {
            const uint64_t before = clv_device_memory(devices[d]).all.current;
            clv_generator *generator = generator_on(devices[d], no_cache);
            clv_plan *plan = clv_generator_info_get(generator).plan;
            // keys and values of all layers are on the device, as activations
            const uint64_t caches = 2u * 3 * 13 * 24 * sizeof(float);
            const uint64_t activations = clv_device_memory(devices[d]).category[CLV_ACTIVATIONS].current;
            assert_true(no_cache || activations >= caches);
            assert_int_equal(clv_plans_memory(&plan, 1, NULL).category[CLV_ACTIVATIONS], activations);
            clv_device_memory_reset_peak(devices[d]);
            write_text(generator, NULL, 20);
            assert_int_equal(clv_device_memory(devices[d]).all.peak - before,
                             clv_plans_memory(&plan, 1, NULL).predicted_peak_bytes);
            clv_generator_destroy(generator);
            assert_int_equal(clv_device_memory(devices[d]).all.current, before);
        }
    }
}

TEST(told_until_it_is_enough) {
    clv_generator *generator = generator_on(devices[0], false);
    text out = {.most = 3};
    assert_status(clv_generate(generator, prompt, 5, NULL, 50, add, &out), CLV_OK, runtime);
    assert_int_equal(out.n, 3);
    assert_status(clv_generate(generator, prompt, 5, NULL, 0, add, &out), CLV_OK, runtime);
    assert_int_equal(out.n, 3);
    clv_generator_destroy(generator);
}

// ---- sampling -----------------------------------------------------------------------------------------------------

static int32_t sample(const float *logits, int n, clv_sampling how, uint64_t number) {
    int32_t token = -1;
    assert_status(clv__sample_token(runtime, logits, n, &how, number, &token), CLV_OK, runtime);
    assert_in_range(token, 0, n - 1);
    return token;
}

/** How often each of four is drawn, of 40,000. */
static void draw(const float logits[4], clv_sampling how, int counts[4]) {
    memset(counts, 0, 4 * sizeof *counts);
    for (int i = 0; i < 40000; i++) counts[sample(logits, 4, how, (uint64_t)i)]++;
}

/** Within six standard deviations of what is expected. */
static void expect_share(int count, double share) {
    assert_true(fabs(count - 40000 * share) <= 6 * sqrt(40000 * share * (1 - share)));
}

TEST(tokens_are_drawn_by_their_probability) {
    const float logits[4] = {logf(0.1f), logf(0.5f), logf(0.15f), logf(0.25f)};
    const float p[4] = {0.1f, 0.5f, 0.15f, 0.25f};
    int counts[4];
    draw(logits, (clv_sampling){.temperature = 1, .seed = 3}, counts);
    for (int i = 0; i < 4; i++) expect_share(counts[i], (double)p[i]);
    draw(logits, (clv_sampling){.temperature = 0.5, .seed = 3}, counts); // squares of them
    for (int i = 0; i < 4; i++)
        expect_share(counts[i], (double)(p[i] * p[i]) / (0.01 + 0.25 + 0.0225 + 0.0625));
    draw(logits, (clv_sampling){.temperature = 1, .top_k = 2}, counts);
    expect_share(counts[1], 2.0 / 3);
    assert_int_equal(counts[1] + counts[3], 40000);
    draw(logits, (clv_sampling){.temperature = 1, .top_p = 0.8}, counts); // 0.5, 0.25 and, to get there, 0.15
    expect_share(counts[2], 1.0 / 6);
    assert_int_equal(counts[0], 0);
    draw(logits, (clv_sampling){.temperature = 1, .top_k = 3, .top_p = 0.5},
         counts); // of what top_k has left
    assert_int_equal(counts[1], 40000);
    draw(logits, (clv_sampling){.temperature = 1, .top_p = 1, .top_k = 9}, counts);
    assert_true(counts[0] > 0);
}

TEST(the_most_probable) {
    const float ties[4] = {1, 3, 3, 2}, infinite[3] = {-INFINITY, -INFINITY, 0};
    assert_int_equal(sample(ties, 4, (clv_sampling){0}, 9), 1);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(sample(infinite, 3, (clv_sampling){.temperature = 2}, (uint64_t)i), 2);
        assert_int_equal(sample(ties, 4, (clv_sampling){.temperature = 2, .top_k = 1}, (uint64_t)i), 1);
    }
    int32_t token;
    assert_status(clv__sample_token(runtime, ties, 4, NULL, 0, &token), CLV_OK, runtime);
    assert_int_equal(token, 1);
}

TEST(what_is_refused) {
    const float logits[2] = {0, 1};
    int32_t token;
    const float with_nan[3] = {2, -1, NAN}, infinite[2] = {0, INFINITY},
                none_left[2] = {-INFINITY, -INFINITY};
    for (int t = 0; t < 2; t++) { // the most probable, and drawn
        const clv_sampling how = {.temperature = t};
        assert_status(clv__sample_token(runtime, with_nan, 3, &how, 0, &token), CLV_E_VALUE, runtime);
        assert_holds(clv_runtime_error(runtime), "the logit of token 2 is NaN");
        assert_status(clv__sample_token(runtime, infinite, 2, &how, 0, &token), CLV_E_VALUE, runtime);
        assert_status(clv__sample_token(runtime, none_left, 2, &how, 0, &token), CLV_E_VALUE, runtime);
    }
    const clv_sampling bad[] = {{.temperature = -1},
                                {.temperature = (double)NAN},
                                {.temperature = (double)INFINITY},
                                {.top_k = -1},
                                {.top_p = 1.5},
                                {.top_p = -0.1}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_status(clv__sample_token(runtime, logits, 2, &bad[i], 0, &token), CLV_E_VALUE, runtime);
    assert_status(clv__sample_token(runtime, logits, 0, NULL, 0, &token), CLV_E_VALUE, runtime);
    text told = {.most = 1};
    clv_generator *generator = generator_on(devices[0], false), *none = NULL;
    const int32_t strange[] = {3, 11};
    assert_status(clv_generate(generator, prompt, 0, NULL, 5, add, &told), CLV_E_VALUE, runtime);
    assert_status(clv_generate(generator, prompt, 5, NULL, -1, add, &told), CLV_E_VALUE, runtime);
    assert_status(clv_generate(generator, strange, 2, NULL, 5, add, &told), CLV_E_VALUE, runtime);
    assert_holds(clv_runtime_error(runtime), "token 1 of the prompt is 11, and the model knows 0 to 10");
    clv_generator_destroy(generator);
    clv_gpt_config odd = sizes;
    odd.heads = 5;
    clv_generator_config config = {.device = devices[0], .gpt = &odd};
    assert_status(clv_generator_create(runtime, &config, &none), CLV_E_VALUE, runtime);
    assert_holds(clv_runtime_error(runtime), "a width of 24 cannot be divided into 5 heads");
    odd = sizes;
    odd.layers = -1;
    assert_status(clv_generator_create(runtime, &config, &none), CLV_E_VALUE, runtime);
    assert_null(none);
    clv_generator_destroy(NULL);
}

// ---- what weights say of themselves -----------------------------------------------------------------------------

static const char path[] = "train_generate.safetensors";

/** The file with one text changed is read with this status and sentence. */
static void expect_told(const char *key, const char *value, clv_status status, const char *sentence) {
    clv_archive *archive = NULL;
    clv_vocabulary *vocabulary = (clv_vocabulary *)1;
    clv_gpt_config found;
    assert_status(clv_safetensors_read(runtime, path, &archive), CLV_OK, runtime);
    assert_status(clv_archive_set_text(archive, key, value), CLV_OK, runtime);
    assert_status(clv_safetensors_write(archive, "train_generate_other.safetensors"), CLV_OK, runtime);
    clv_archive_destroy(archive);
    assert_status(clv_gpt_weights_read(runtime, "train_generate_other.safetensors", &found, &vocabulary),
                  status, runtime);
    if (status != CLV_OK) assert_null(vocabulary);
    if (status != CLV_OK) assert_holds(clv_runtime_error(runtime), sentence);
    clv_vocabulary_destroy(vocabulary);
    remove("train_generate_other.safetensors");
}

TEST(weights_tell_their_model) {
    clv_vocabulary *vocabulary = NULL, *with_zero = NULL;
    clv_gpt_config found;
    clv_generator *generator = generator_on(devices[0], false);
    clv_session *session = clv_generator_info_get(generator).session;
    assert_status(clv_vocabulary_create(runtime, CLV_VOCABULARY_CHARACTERS, "abcdefghijk", 11, &vocabulary),
                  CLV_OK, runtime);
    assert_status(clv_gpt_weights_save(session, &sizes, vocabulary, path), CLV_OK, runtime);
    clv_vocabulary_destroy(vocabulary);
    assert_status(clv_gpt_weights_read(runtime, path, &found, &vocabulary), CLV_OK, runtime);
    assert_memory_equal(&found, &sizes, sizeof found);
    assert_string_equal(clv__vocabulary_text(vocabulary), "abcdefghijk");
    clv_vocabulary_destroy(vocabulary);
    expect_told("cleave.heads", "4", CLV_OK, "");
    expect_told("cleave.heads", "7", CLV_E_FORMAT, "a width of 24 cannot be divided into 7 heads");
    expect_told("cleave.heads", "0", CLV_E_FORMAT, "cleave.heads is 0, and must be 1 to");
    expect_told("cleave.layers", "4", CLV_E_FORMAT, "there is no 'transformer.h.3.ln_1.weight'");
    expect_told("cleave.layers", "16000000", CLV_E_FORMAT, "there is no");
    expect_told("cleave.width", "48", CLV_E_SHAPE, "transformer.wte.weight");
    expect_told("cleave.context", "14", CLV_E_SHAPE, "transformer.wpe.weight");
    expect_told("cleave.context", "many", CLV_E_FORMAT, "cleave.context");
    expect_told("cleave.model", "cnn", CLV_E_NOT_FOUND, "do not say which GPT they are of");
    expect_told("cleave.tokens", "words", CLV_E_FORMAT, "does not tell its vocabulary");
    expect_told("cleave.tokens", "bytes", CLV_E_SHAPE, "transformer.wte.weight");
    expect_told("cleave.characters", "", CLV_E_FORMAT, "does not tell its vocabulary");
    expect_told("cleave.characters", "abc", CLV_E_SHAPE, "transformer.wte.weight");
    assert_status(clv_vocabulary_create(runtime, CLV_VOCABULARY_CHARACTERS, "a\0b", 3, &with_zero), CLV_OK,
                  runtime);
    assert_status(clv_gpt_weights_save(session, &sizes, with_zero, path), CLV_E_VALUE, runtime);
    clv_vocabulary_destroy(with_zero);
    clv_generator_destroy(generator);
    remove(path);
}

TEST_MAIN(setup, end_runtime)
