// SPDX-License-Identifier: Apache-2.0
// A model as Hugging Face keeps it: config.json beside the weights tells what they are of, and names differ a little by who wrote
// them. Source: transformers, GPT2Config, LlamaConfig, MistralConfig, Qwen2Config and BertConfig.
#include "infer/hugging_face.h"

#include <inttypes.h>
#include <jansson.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "io/array.h"
#include "io/file.h"
#include "io/shown.h"
#include "nn/decoders.h"

enum { MOST_BYTES = 1 << 20, MOST_SIZE = 1 << 24, MOST_CONTEXT = 4096 };

const char *clv__beside(const char *weights, const char *name, char *path, size_t bytes) {
    const char *slash = strrchr(weights, '/');
    const int folder = slash ? (int)(slash - weights) + 1 : 0;
    const int n = snprintf(path, bytes, "%.*s%s", folder, weights, name);
    return n > 0 && (size_t)n < bytes && access(path, F_OK) == 0 ? path : NULL;
}

/** A number of config.json and where it goes. */
typedef struct size_row {
    const char *key;
    size_t field;
    bool may_lack;
} size_row;

static const size_row gpt2_sizes[] = {{"vocab_size", offsetof(clv_gpt_config, vocabulary), false},
                                      {"n_positions", offsetof(clv_gpt_config, context), false},
                                      {"n_embd", offsetof(clv_gpt_config, width), false},
                                      {"n_head", offsetof(clv_gpt_config, heads), false},
                                      {"n_layer", offsetof(clv_gpt_config, layers), false},
                                      {"n_inner", offsetof(clv_gpt_config, hidden), true},
                                      {NULL, 0, false}};
static const size_row llama_sizes[] = {{"vocab_size", offsetof(clv_gpt_config, vocabulary), false},
                                       {"max_position_embeddings", offsetof(clv_gpt_config, context), false},
                                       {"hidden_size", offsetof(clv_gpt_config, width), false},
                                       {"num_attention_heads", offsetof(clv_gpt_config, heads), false},
                                       {"num_hidden_layers", offsetof(clv_gpt_config, layers), false},
                                       {"intermediate_size", offsetof(clv_gpt_config, hidden), false},
                                       {"num_key_value_heads", offsetof(clv_gpt_config, kv_heads), true},
                                       {"head_dim", offsetof(clv_gpt_config, head_dim), true},
                                       {NULL, 0, false}};
static const size_row bert_sizes[] = {{"vocab_size", offsetof(clv_gpt_config, vocabulary), false},
                                      {"max_position_embeddings", offsetof(clv_gpt_config, context), false},
                                      {"hidden_size", offsetof(clv_gpt_config, width), false},
                                      {"num_attention_heads", offsetof(clv_gpt_config, heads), false},
                                      {"num_hidden_layers", offsetof(clv_gpt_config, layers), false},
                                      {"intermediate_size", offsetof(clv_gpt_config, hidden), false},
                                      {NULL, 0, false}};

/** What must not be otherwise: the value that a setting has where it is there. */
typedef struct setting_row {
    const char *key, *value;
} setting_row;

static const setting_row gpt2_settings[] = {{"activation_function", "\"gelu_new\""},
                                            {"scale_attn_weights", "true"},
                                            {"scale_attn_by_inverse_layer_idx", "false"},
                                            {"add_cross_attention", "false"},
                                            {NULL, NULL}};
static const setting_row llama_settings[] = {
    {"hidden_act", "\"silu\""}, {"attention_bias", "false"}, {"mlp_bias", "false"}, {NULL, NULL}};
static const setting_row qwen2_settings[] = {
    {"hidden_act", "\"silu\""}, {"use_sliding_window", "false"}, {"use_mrope", "false"}, {NULL, NULL}};
static const setting_row bert_settings[] = {{"hidden_act", "\"gelu\""},
                                            {"position_embedding_type", "\"absolute\""},
                                            {"type_vocab_size", "2"},
                                            {"is_decoder", "false"},
                                            {NULL, NULL}};

/** A kind of model: its name there, and here. */
static const struct {
    const char *type, *model;
    const size_row *sizes;
    const setting_row *settings;
    const char *eps;
    bool tied; // where the file does not say
} kinds[] = {{"gpt2", "gpt2", gpt2_sizes, gpt2_settings, "layer_norm_epsilon", true},
             {"llama", "llama", llama_sizes, llama_settings, "rms_norm_eps", false},
             {"mistral", "llama", llama_sizes, llama_settings, "rms_norm_eps", false},
             {"qwen2", "llama", llama_sizes, qwen2_settings, "rms_norm_eps", false},
             {"bert", "bert_base", bert_sizes, bert_settings, "layer_norm_eps", false}};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

typedef struct config {
    clv__error *error;
    const char *path;
    json_t *root;
} config;

static clv_status read_json(config *c) {
    clv__input input;
    json_error_t why;
    clv__shown_text shown;
    CLV_TRY(clv__input_open(c->error, c->path, &input));
    const size_t n = (size_t)input.bytes;
    char *text = n <= MOST_BYTES ? clv__alloc(n + 1, 1) : NULL;
    clv_status status = text ? clv__input_read(&input, 0, text, n)
                             : clv__error_set(c->error, CLV_E_FORMAT,
                                              "'%s' is no config.json of a model: %zu bytes", c->path, n);
    if (status == CLV_OK) {
        c->root = json_loadb(text, n, JSON_REJECT_DUPLICATES, &why);
        if (!c->root)
            status =
                clv__error_set(c->error, CLV_E_FORMAT, "'%s': %s", c->path, clv__shown(why.text, &shown));
    }
    free(text);
    clv__input_close(&input);
    return status;
}

static clv_status read_sizes(const config *c, const size_row *rows, clv_gpt_config *out) {
    for (; rows->key; rows++) {
        const json_t *value = json_object_get(c->root, rows->key);
        const json_int_t n = json_integer_value(value);
        if (rows->may_lack && (!value || json_is_null(value))) continue;
        if (!json_is_integer(value) || n < 1 || n > MOST_SIZE)
            CLV_FAIL(c->error, CLV_E_FORMAT, "'%s': %s must be a number of 1 to %d", c->path, rows->key,
                     MOST_SIZE);
        *(int64_t *)((char *)out + rows->field) = n;
    }
    return CLV_OK;
}

static clv_status check_settings(const config *c, const setting_row *rows) {
    for (; rows->key; rows++) {
        const json_t *value = json_object_get(c->root, rows->key);
        clv__shown_text shown;
        if (!value) continue;
        char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS);
        const bool is = text && !strcmp(text, rows->value);
        if (!is)
            clv__error_set(c->error, CLV_E_UNSUPPORTED, "'%s': %s is %s, and only %s is supported", c->path,
                           rows->key, clv__shown(text ? text : "", &shown), rows->value);
        free(text);
        if (!is) return CLV_E_UNSUPPORTED;
    }
    return CLV_OK;
}

/** Of rotary positions: theta, and how they are stretched, under their names of now or of before. */
static clv_status read_rope(const config *c, clv_gpt_config *out) {
    static const char *const numbers[] = {"factor", "low_freq_factor", "high_freq_factor",
                                          "original_max_position_embeddings"};
    const json_t *rope = json_object_get(c->root, "rope_parameters");
    const json_t *theta = json_object_get(rope ? rope : c->root, "rope_theta");
    if (!rope) rope = json_object_get(c->root, "rope_scaling");
    const json_t *told = json_object_get(rope, "rope_type");
    const char *type = json_string_value(told ? told : json_object_get(rope, "type"));
    const bool stretched = type && !strcmp(type, "llama3");
    clv__shown_text shown;
    if (type && !stretched && strcmp(type, "default") != 0)
        CLV_FAIL(c->error, CLV_E_UNSUPPORTED,
                 "'%s': rope_type is '%s', and only \"default\" and \"llama3\" are supported", c->path,
                 clv__shown(type, &shown));
    for (int i = 0; stretched && i < 4; i++)
        out->rope_scaling[i] = (float)json_number_value(json_object_get(rope, numbers[i]));
    if (stretched && !clv__rope_scaling_can_be(out->rope_scaling))
        CLV_FAIL(c->error, CLV_E_FORMAT,
                 "'%s': rope_type \"llama3\" wants a factor of at least 1, low_freq_factor below "
                 "high_freq_factor, and original_max_position_embeddings",
                 c->path);
    if (theta && !(json_number_value(theta) > 1))
        CLV_FAIL(c->error, CLV_E_FORMAT, "'%s': rope_theta must be a number above 1", c->path);
    out->rope_theta = theta ? json_number_value(theta) : 10000;
    return CLV_OK;
}

static clv_status read_llama(const config *c, clv_gpt_config *out) {
    if (!out->kv_heads) out->kv_heads = out->heads;
    if (!out->head_dim) out->head_dim = out->width / out->heads;
    if (out->context > MOST_CONTEXT) out->context = MOST_CONTEXT; // no weights depend on it, and a cache does
    const json_int_t window = json_integer_value(json_object_get(c->root, "sliding_window"));
    if (window > 0 && out->context > window && !out->qkv_bias) // within it all is seen
        out->context = window;
    return read_rope(c, out);
}

static clv_status read_config(const config *c, clv_gpt_config *out) {
    const char *type = json_string_value(json_object_get(c->root, "model_type"));
    size_t i = 0;
    while (i < N_KINDS && (!type || strcmp(kinds[i].type, type) != 0)) i++;
    if (i == N_KINDS) return CLV_OK;
    const json_t *eps = json_object_get(c->root, kinds[i].eps),
                 *tied = json_object_get(c->root, "tie_word_embeddings");
    if (eps && !(json_number_value(eps) > 0 && json_number_value(eps) < 1))
        CLV_FAIL(c->error, CLV_E_FORMAT, "'%s': %s must be a number between 0 and 1", c->path, kinds[i].eps);
    CLV_TRY(read_sizes(c, kinds[i].sizes, out));
    CLV_TRY(check_settings(c, kinds[i].settings));
    const json_t *dropout = json_object_get(c->root, "hidden_dropout_prob");
    if (dropout && !(json_number_value(dropout) >= 0 && json_number_value(dropout) < 1))
        CLV_FAIL(c->error, CLV_E_FORMAT, "'%s': hidden_dropout_prob must be a number from 0, below 1",
                 c->path);
    out->dropout = (float)json_number_value(dropout);
    out->qkv_bias = type && !strcmp(type, "qwen2");
    out->model = kinds[i].model;
    out->eps = (float)json_number_value(eps);
    out->tied = (tied ? json_is_true(tied) : kinds[i].tied) ? 1 : -1;
    return kinds[i].sizes == llama_sizes ? read_llama(c, out) : CLV_OK;
}

clv_status clv__hugging_face_read(clv_runtime *runtime, const char *weights, clv_gpt_config *out) {
    char path[4096];
    config c = {.error = clv__io_error(runtime)};
    *out = (clv_gpt_config){0};
    c.path = clv__beside(weights, "config.json", path, sizeof path);
    if (!c.path) return CLV_OK;
    CLV_TRY(read_json(&c));
    clv_gpt_config found = {0};
    const clv_status status = read_config(&c, &found);
    json_decref(c.root);
    if (status == CLV_OK) *out = found;
    return status;
}

// ---- names ----------------------------------------------------------------------------------------------------------

/** Give an array the name `prefix` + name, its last `cut` bytes replaced by `tail`. */
static clv_status rename_array(clv_archive *archive, clv_array *array, const char *prefix, size_t cut,
                               const char *tail) {
    const size_t n = strlen(array->name) - cut, before = strlen(prefix), behind = strlen(tail);
    char *name = clv__alloc(before + n + behind + 1, 1);
    if (!name) CLV_FAIL(archive->error, CLV_E_HOST_MEMORY, "no host memory for the name of an array");
    memcpy(name, prefix, before);
    memcpy(name + before, array->name, n);
    memcpy(name + before + n, tail, behind);
    free((char *)(uintptr_t)array->name);
    array->name = name;
    return CLV_OK;
}

static bool ends(const char *name, const char *tail) {
    const size_t n = strlen(name), m = strlen(tail);
    return n >= m && !strcmp(name + n - m, tail);
}

clv_status clv__hugging_face_names(clv_archive *archive, bool (*has)(const void *of, const char *name),
                                   const void *of) {
    static const char *const bases[] = {"transformer.", "model.", "bert."};
    static const char *const tails[][2] = {{".LayerNorm.gamma", "weight"}, {".LayerNorm.beta", "bias"}};
    for (size_t i = 0; i < archive->n_arrays; i++) {
        clv_array *array = archive->arrays[i];
        char name[640];
        if (has(of, array->name)) continue;
        for (size_t t = 0; t < 2; t++)
            if (ends(array->name, tails[t][0]))
                CLV_TRY(rename_array(archive, array, "", t ? 4 : 5, tails[t][1]));
        for (size_t b = 0; b < sizeof bases / sizeof *bases; b++) {
            const int n = snprintf(name, sizeof name, "%s%s", bases[b], array->name);
            if (n >= (int)sizeof name || !has(of, name) || clv_archive_find(archive, name)) continue;
            CLV_TRY(rename_array(archive, array, bases[b], 0, ""));
            break;
        }
    }
    return CLV_OK;
}
