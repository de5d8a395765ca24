// SPDX-License-Identifier: Apache-2.0
// Models as Hugging Face keeps them, in a folder: weights in one file or in several with an index, config.json, tokenizer.json. They
// are read, write the same with the cache as without, and come back from a file of Cleave's own. What is wrong is one sentence.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cleave/generate.h"
#include "cleave/train.h"
#include "harness/harness.h"

TEST_RUNTIME
static clv_device *device;
enum { V = 80, MOST = 40 };

static const char gpt2_config[] =
    "{\"model_type\":\"gpt2\",\"vocab_size\":80,\"n_positions\":13,\"n_embd\":24,\"n_head\":3,"
    "\"n_layer\":2,\"n_inner\":null,\"layer_norm_epsilon\":1e-05,\"activation_function\":\"gelu_new\"}";
static const char llama_config[] =
    "{\"model_type\":\"llama\",\"vocab_size\":80,\"max_position_embeddings\":13,\"hidden_size\":24,\"num_"
    "attention_heads\":6,"
    "\"num_key_value_heads\":2,\"num_hidden_layers\":2,\"intermediate_size\":20,\"rms_norm_eps\":1e-06,"
    "\"hidden_act\":\"silu\","
    "\"rope_parameters\":{\"rope_theta\":500.0,\"rope_type\":\"default\"},\"tie_word_embeddings\":false}";
static const clv_gpt_config gpt2 = {.model = "gpt2",
                                    .vocabulary = V,
                                    .context = 13,
                                    .width = 24,
                                    .heads = 3,
                                    .layers = 2,
                                    .eps = 1e-5f,
                                    .tied = 1};
static const clv_gpt_config llama = {.model = "llama",
                                     .vocabulary = V,
                                     .context = 13,
                                     .width = 24,
                                     .heads = 6,
                                     .kv_heads = 2,
                                     .layers = 2,
                                     .hidden = 20,
                                     .eps = 1e-6f,
                                     .rope_theta = 500,
                                     .tied = -1,
                                     .head_dim = 4};
static const char stretched_parts[] =
    "\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8.0,\"low_freq_factor\":1.0,\"high_freq_factor\":"
    "4.0,"
    "\"original_max_position_embeddings\":40},\"rope_theta\":500.0,\"head_dim\":6";

FIXTURE(setup) {
    char *folder = clv__test_folder();
    assert_int_equal(chdir(folder), 0);
    free(folder);
    runtime = clv__test_runtime(NULL);
    device = clv__test_device(runtime, "gpu|cpu|host");
}

static void write_text(const char *path, const char *text) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0 && fclose(file) == 0);
}

static void copy_tokenizer(void) {
    clv_array text = {0};
    assert_status(
        clv_text_read(runtime, CLV_TEST_SOURCE_DIR "/tests/golden/tokenizers/wordlevel.json", &text), CLV_OK,
        runtime);
    FILE *file = fopen("tokenizer.json", "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text.data, clv_array_bytes(&text), 1, file), 1);
    assert_int_equal(fclose(file), 0);
    clv_array_reset(&text);
}

static clv_generator *generator_of(const clv_gpt_config *sizes, bool no_cache) {
    clv_generator *generator = NULL;
    const clv_generator_config config = {.device = device, .gpt = sizes, .no_cache = no_cache};
    assert_status(clv_generator_create(runtime, &config, &generator), CLV_OK, runtime);
    return generator;
}

typedef struct text {
    int32_t token[MOST];
    int n;
} text;

static bool add(void *user, int32_t token) {
    text *to = user;
    to->token[to->n++] = token;
    return true;
}

static text written(clv_generator *generator) {
    static const int32_t prompt[] = {3, 1, 4, 1, 5};
    const clv_sampling drawn = {.temperature = 1.5, .seed = 5};
    text out = {.n = 0};
    assert_status(clv_generate(generator, prompt, 5, &drawn, MOST, add, &out), CLV_OK, runtime);
    return out;
}

/** Numbers by the name, so that the order does not count. */
static float *values_of(const clv_session_tensor *tensor) {
    const int64_t n = clv_shape_numel(&tensor->shape);
    float *values = malloc((size_t)n * sizeof *values);
    unsigned seed = 7;
    assert_non_null(values);
    for (const char *c = tensor->name; *c; c++) seed = seed * 31 + (unsigned char)*c;
    for (int64_t k = 0; k < n; k++) {
        seed = seed * 1664525u + 1013904223u;
        values[k] = ((float)(seed >> 16) / 32768 - 1) * 0.5f +
                    (tensor->shape.rank == 1 && strstr(tensor->name, ".weight"));
    }
    return values;
}

/** Weights as transformers writes them: in `files` files and their index, or without the prefix of all names. Returns what a model
 *  with these weights writes. */
static text keep(const clv_gpt_config *sizes, int files, const char *cut) {
    clv_generator *generator = generator_of(sizes, false);
    clv_session *session = clv_generator_info_get(generator).session;
    clv_archive *parts[2] = {NULL, NULL};
    FILE *index = fopen("model.safetensors.index.json", "wb");
    assert_non_null(index);
    fputs("{\"metadata\":{\"total_size\":1},\"weight_map\":{", index);
    for (int i = 0; i < files; i++) parts[i] = clv__test_archive(runtime);
    for (int i = 0, n = 0; i < clv_session_info_get(session).n_tensors; i++) {
        const clv_session_tensor tensor = clv_session_get(session, i);
        if (tensor.category != CLV_PARAMETERS) continue;
        float *values = values_of(&tensor);
        const size_t before = cut && !strncmp(tensor.name, cut, strlen(cut)) ? strlen(cut) : 0;
        clv_array *array;
        assert_status(clv_session_write(session, i, values, tensor.bytes), CLV_OK, runtime);
        assert_status(clv_archive_add(parts[n % files], tensor.name + before, CLV_DTYPE_F32, &tensor.shape,
                                      NULL, &array),
                      CLV_OK, runtime);
        memcpy(array->data, values, tensor.bytes);
        fprintf(index, "%s\"%s\":\"part-%d.safetensors\"", n ? "," : "", tensor.name + before, n % files);
        free(values);
        n++;
    }
    fputs("}}", index);
    assert_int_equal(fclose(index), 0);
    if (files == 1) assert_status(clv_safetensors_write(parts[0], "model.safetensors"), CLV_OK, runtime);
    for (int i = 0; i < files; i++) {
        char path[32];
        snprintf(path, sizeof path, "part-%d.safetensors", i);
        assert_status(clv_safetensors_write(parts[i], path), CLV_OK, runtime);
        clv_archive_destroy(parts[i]);
    }
    const text out = written(generator);
    clv_generator_destroy(generator);
    return out;
}

static text read_and_write(const char *path, bool no_cache, const clv_gpt_config *want) {
    clv_gpt_config found;
    clv_vocabulary *vocabulary = NULL;
    assert_status(clv_gpt_weights_read(runtime, path, &found, &vocabulary), CLV_OK, runtime);
    assert_string_equal(found.model, want->model);
    found.model = want->model;
    found.hidden = want->hidden; // the default, from a file of Cleave's own
    assert_memory_equal(&found, want, sizeof found);
    clv_generator *generator = generator_of(&found, no_cache);
    assert_status(clv_weights_load(clv_generator_info_get(generator).session, path), CLV_OK, runtime);
    const text out = written(generator);
    if (!no_cache)
        assert_status(clv_gpt_weights_save(clv_generator_info_get(generator).session, &found, vocabulary,
                                           "own.safetensors"),
                      CLV_OK, runtime);
    clv_vocabulary_destroy(vocabulary);
    clv_generator_destroy(generator);
    return out;
}

static void same(const text *a, const text *b) {
    assert_int_equal(a->n, MOST);
    assert_memory_equal(a, b, sizeof *a);
}

static void check_kind(const clv_gpt_config *sizes, const char *config, const char *base) {
    write_text("config.json", config);
    copy_tokenizer();
    for (int files = 1; files <= 2; files++) {
        const char *path = files == 1 ? "model.safetensors" : "model.safetensors.index.json";
        const text want = keep(sizes, files, NULL);
        for (int no_cache = 0; no_cache < 2; no_cache++) {
            const text got = read_and_write(path, no_cache, sizes);
            same(&got, &want);
        }
        const text own = read_and_write("own.safetensors", true, sizes); // which needs nothing beside it
        same(&own, &want);
    }
    const text want = keep(sizes, 1, base), got = read_and_write("model.safetensors", false, sizes);
    same(&got, &want);
    int kinds = 0;
    for (int t = 0; t < V; t++)
        for (int i = 0; i < MOST; i++)
            if (want.token[i] == t) {
                kinds++;
                break;
            }
    assert_true(kinds > 4); // else they would be equal whatever went wrong
}

/** A Llama whose queries see a window: the context is no longer than that. */
TEST(mistral_is_a_llama) {
    clv_gpt_config sizes = llama;
    char config[1024];
    sizes.context = 9;
    snprintf(config, sizeof config, "{\"model_type\":\"mistral\",\"sliding_window\":9%s",
             strchr(llama_config, ','));
    check_kind(&sizes, config, "model.");
}

TEST(of_gpt2) {
    check_kind(&gpt2, gpt2_config, "transformer.");
}

TEST(of_llama) {
    check_kind(&llama, llama_config, "model.");
}

static void write_changed(const char *path, const char *whole, const char *part, const char *by);

/** A Llama whose queries, keys and values have biases. */
TEST(of_qwen2) {
    clv_gpt_config sizes = llama;
    char config[1024];
    sizes.qkv_bias = 1;
    snprintf(config, sizeof config,
             "{\"model_type\":\"qwen2\",\"use_sliding_window\":false,\"sliding_window\":9%s",
             strchr(llama_config, ','));
    check_kind(&sizes, config, "model.");
}

/** As Llama 3.1's: rotary positions are stretched, and heads have a size of their own. */
TEST(of_stretched_llama) {
    static const float scaling[] = {8, 1, 4, 40};
    clv_gpt_config sizes = llama;
    clv_array changed = {0};
    char config[1024];
    sizes.head_dim = 6;
    memcpy(sizes.rope_scaling, scaling, sizeof scaling);
    write_changed("config.json", llama_config,
                  "\"rope_parameters\":{\"rope_theta\":500.0,\"rope_type\":\"default\"}", stretched_parts);
    assert_status(clv_text_read(runtime, "config.json", &changed), CLV_OK, runtime);
    snprintf(config, sizeof config, "%.*s", (int)clv_array_bytes(&changed), (const char *)changed.data);
    clv_array_reset(&changed);
    check_kind(&sizes, config, "model.");
    const text stretched = keep(&sizes, 1, NULL);
    sizes.rope_scaling[0] = 0;
    const text plain = keep(&sizes, 1, NULL);
    assert_memory_not_equal(&stretched, &plain, sizeof plain);
}

// ---- what is wrong ------------------------------------------------------------------------------------------------

static void refused(const char *path, clv_status status, const char *sentence) {
    clv_gpt_config found;
    clv_vocabulary *vocabulary = (clv_vocabulary *)1;
    assert_status(clv_gpt_weights_read(runtime, path, &found, &vocabulary), status, runtime);
    assert_holds(clv_runtime_error(runtime), sentence);
    assert_null(vocabulary);
}

/** The text with the first of its parts replaced. */
static void write_changed(const char *path, const char *whole, const char *part, const char *by) {
    const char *at = strstr(whole, part);
    char changed[1024];
    assert_non_null(at);
    snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - whole), whole, by, at + strlen(part));
    write_text(path, changed);
}

TEST(configs_of_others) {
    static const struct {
        const char *part, *by;
        clv_status status;
        const char *sentence;
    } cases[] = {
        {"gpt2", "mobilenet_v2", CLV_E_NOT_FOUND, "do not say which GPT they are of"},
        {"\"n_embd\":24", "\"n_embd\":36", CLV_E_SHAPE,
         "'transformer.wte.weight' is [80,24], but [80,36] is wanted"},
        {"\"n_embd\":24", "\"n_embd\":0", CLV_E_FORMAT, "n_embd must be a number of 1 to"},
        {"\"n_layer\":2", "\"n_layer\":3", CLV_E_FORMAT, "there is no 'transformer.h.2.ln_1.weight'"},
        {"\"n_layer\":2", "\"layers\":2", CLV_E_FORMAT, "n_layer must be a number"},
        {"\"n_head\":3", "\"n_head\":5", CLV_E_FORMAT, "a width of 24 cannot be divided into 5 heads"},
        {"gelu_new", "relu", CLV_E_UNSUPPORTED,
         "activation_function is \"relu\", and only \"gelu_new\" is supported"},
        {"1e-05", "\"small\"", CLV_E_FORMAT, "layer_norm_epsilon must be a number between 0 and 1"},
        {"\"n_embd\"", "n_embd", CLV_E_FORMAT, "config.json"},
        {"\"vocab_size\":80", "\"vocab_size\":8", CLV_E_FORMAT, "tokens, and config.json 8"},
    };
    keep(&gpt2, 1, NULL);
    copy_tokenizer();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_changed("config.json", gpt2_config, cases[i].part, cases[i].by);
        refused("model.safetensors", cases[i].status, cases[i].sentence);
    }
    write_text("config.json", gpt2_config);
    remove("tokenizer.json");
    refused("model.safetensors", CLV_E_NOT_FOUND, "there is no tokenizer.json beside it");
    copy_tokenizer();
    keep(&llama, 1, NULL);
    write_changed("config.json", llama_config, "\"default\"", "\"yarn\"");
    refused("model.safetensors", CLV_E_UNSUPPORTED, "rope_type is 'yarn'");
    write_changed("config.json", llama_config, "\"default\"", "\"llama3\",\"factor\":8");
    refused("model.safetensors", CLV_E_FORMAT, "wants a factor of at least 1, low_freq_factor below");
    write_text("config.json", gpt2_config);
    refused("model.safetensors", CLV_E_NOT_FOUND, "there is no tensor 'transformer.wte.weight'");
}

TEST(indexes_that_are_none) {
    static const struct {
        const char *index, *sentence;
        clv_status status;
    } cases[] = {
        {"{\"weight_map\":{\"a\":\"part-0.safetensors\",\"a\":\"part-1.safetensors\"}}",
         "duplicate object key", CLV_E_FORMAT},
        {"{\"weight_map\":{\"a\":\"../part-0.safetensors\"}}",
         "tensor 'a' is in '../part-0.safetensors', which is no name of a .safetensors file beside it",
         CLV_E_FORMAT},
        {"{\"weight_map\":{\"a\":\"/etc/passwd\"}}", "which is no name of a .safetensors file", CLV_E_FORMAT},
        {"{\"weight_map\":{\"a\":7}}", "which is no name of a .safetensors file", CLV_E_FORMAT},
        {"{\"weight_map\":{}}", "no weight_map that names tensors", CLV_E_FORMAT},
        {"[1]", "no weight_map that names tensors", CLV_E_FORMAT},
        {"{\"weight_map\":", "is no index of weights", CLV_E_FORMAT},
        {"", "is no index of weights", CLV_E_FORMAT},
        {"{\"weight_map\":{\"a\":\"part-7.safetensors\"}}",
         "'model.safetensors.index.json': cannot read 'part-7.safetensors'", CLV_E_IO},
        {"{\"weight_map\":{\"a\":\"part-0.safetensors\"}}", "does not name tensor", CLV_E_FORMAT},
    };
    write_text("config.json", gpt2_config);
    copy_tokenizer();
    keep(&gpt2, 2, NULL);
    clv_array good = {0};
    assert_status(clv_text_read(runtime, "model.safetensors.index.json", &good), CLV_OK, runtime);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_text("model.safetensors.index.json", cases[i].index);
        refused("model.safetensors.index.json", cases[i].status, cases[i].sentence);
    }
    char whole[8192];
    snprintf(whole, sizeof whole, "%.*s", (int)clv_array_bytes(&good), (const char *)good.data);
    clv_array_reset(&good);
    char *at = strstr(whole, "part-0"); // a tensor in the other file
    at[5] = '1';
    write_text("model.safetensors.index.json", whole);
    refused("model.safetensors.index.json", CLV_E_FORMAT,
            "is in 'part-0.safetensors' and not in 'part-1.safetensors'");
    at[5] = '0';
    snprintf(strrchr(whole, '}') - 1, 64, ",\"none\":\"part-0.safetensors\"}}");
    write_text("model.safetensors.index.json", whole);
    refused("model.safetensors.index.json", CLV_E_FORMAT, "tensor 'none' is not in 'part-0.safetensors'");
}

TEST_MAIN(setup, end_runtime)
