// SPDX-License-Identifier: Apache-2.0
// A GPT's weights with what is needed to use them: sizes and vocabulary, as texts of the safetensors file. Where a file has no such
// texts, config.json and tokenizer.json beside it tell them.
#include "cleave/generate.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "cleave/train.h"
#include "data/vocabulary.h"
#include "device/device.h"
#include "io/formats.h"
#include "nn/decoders.h"
#include "nn/models.h"
#include "infer/hugging_face.h"
#include "infer/weights.h"

enum { MOST = 1 << 24 }; // of any size

/** The sizes, by the names they have in the file. */
typedef struct size_row {
    const char *key;
    size_t field;
} size_row;
static const size_row sizes[] = {{"cleave.context", offsetof(clv_gpt_config, context)},
                                 {"cleave.width", offsetof(clv_gpt_config, width)},
                                 {"cleave.heads", offsetof(clv_gpt_config, heads)},
                                 {"cleave.layers", offsetof(clv_gpt_config, layers)},
                                 // of models other than `gpt`, and of some of these
                                 {"cleave.hidden", offsetof(clv_gpt_config, hidden)},
                                 {"cleave.kv_heads", offsetof(clv_gpt_config, kv_heads)},
                                 {"cleave.head_dim", offsetof(clv_gpt_config, head_dim)},
                                 {"cleave.vocabulary", offsetof(clv_gpt_config, vocabulary)}};
enum { N_SIZES = sizeof sizes / sizeof *sizes, N_NEEDED = 4, N_WRITTEN = N_SIZES - 1 };

static const char *const scaling[] = {"cleave.rope_factor", "cleave.rope_low", "cleave.rope_high",
                                      "cleave.rope_places"};

static int64_t *size_of(clv_gpt_config *config, int i) {
    return (int64_t *)((char *)config + sizes[i].field);
}

static clv_status describe(clv_archive *archive, clv_gpt_config config, const clv_vocabulary *vocabulary) {
    clv__gpt_defaults(&config);
    CLV_TRY(clv_archive_set_text(archive, "cleave.model", config.model ? config.model : "gpt"));
    for (int i = 0; i < N_WRITTEN; i++)
        if (i < N_NEEDED || *size_of(&config, i))
            CLV_TRY(clv__archive_set_int(archive, sizes[i].key, *size_of(&config, i)));
    if (config.eps > 0) CLV_TRY(clv__archive_set_real(archive, "cleave.eps", (double)config.eps));
    if (config.rope_theta > 0)
        CLV_TRY(clv__archive_set_real(archive, "cleave.rope_theta", config.rope_theta));
    for (int i = 0; i < 4 && config.rope_scaling[0] > 0; i++)
        CLV_TRY(clv__archive_set_real(archive, scaling[i], (double)config.rope_scaling[i]));
    if (config.tied) CLV_TRY(clv__archive_set_int(archive, "cleave.tied", config.tied));
    if (config.qkv_bias) CLV_TRY(clv__archive_set_int(archive, "cleave.qkv_bias", 1));
    if (config.vocabulary > clv_vocabulary_count(vocabulary) && config.model) // rows that no token has
        CLV_TRY(clv__archive_set_int(archive, "cleave.vocabulary", config.vocabulary));
    const char *kind = clv__vocabulary_kind(vocabulary), *text = clv__vocabulary_text(vocabulary);
    char key[64];
    snprintf(key, sizeof key, "cleave.%s", kind);
    CLV_TRY(clv_archive_set_text(archive, "cleave.tokens", kind));
    return text ? clv_archive_set_text(archive, key, text) : CLV_OK;
}

clv_status clv_gpt_weights_save(clv_session *session, const clv_gpt_config *config,
                                const clv_vocabulary *vocabulary, const char *path) {
    CLV_TRY(CLV__GIVEN(NULL, session));
    clv_runtime *runtime = clv_session_info_get(session).runtime;
    clv__error *error = clv__runtime_error_of(runtime);
    CLV_TRY(CLV__USABLE(error, vocabulary));
    CLV_TRY(CLV__USABLE(error, path));
    static const clv_gpt_config defaults = {0};
    const char *characters = clv__vocabulary_text(vocabulary);
    if (characters && !*characters) // the first in the order of codes; a text of a file cannot hold it
        CLV_FAIL(error, CLV_E_VALUE,
                 "the text has characters of code 0: train on bytes (CLV_VOCABULARY_BYTES)");
    clv_archive *archive = NULL;
    clv_status status = clv_archive_create(runtime, &archive);
    if (status == CLV_OK) status = clv__weights_put(session, archive);
    if (status == CLV_OK) status = describe(archive, config ? *config : defaults, vocabulary);
    if (status == CLV_OK) status = clv_safetensors_write(archive, path);
    clv_archive_destroy(archive);
    return status;
}

/** tokenizer.json, which lies beside weights of Hugging Face. */
static clv_status read_tokenizer(clv_runtime *runtime, const char *weights, clv_vocabulary **out) {
    char path[4096];
    clv_array json = {0};
    if (!clv__beside(weights, "tokenizer.json", path, sizeof path))
        CLV_FAIL(clv__runtime_error_of(runtime), CLV_E_NOT_FOUND,
                 "'%s' does not tell its vocabulary, and there is no tokenizer.json beside it", weights);
    clv_status status = clv_text_read(runtime, path, &json);
    if (status == CLV_OK) status = clv__vocabulary_tokenizer(runtime, json.data, clv_array_bytes(&json), out);
    clv_array_reset(&json);
    return status;
}

static clv_status read_vocabulary(clv_runtime *runtime, const clv_archive *archive, const char *path,
                                  clv_vocabulary **out) {
    const char *tokens = clv_archive_text(archive, "cleave.tokens");
    const char *characters = clv_archive_text(archive, "cleave.characters");
    if (tokens && !strcmp(tokens, "bytes")) return clv__vocabulary_bytes(runtime, out);
    if (tokens && !strcmp(tokens, "characters") && characters && *characters)
        return clv__vocabulary_characters(runtime, characters, strlen(characters), out);
    const char *tokenizer = clv_archive_text(archive, "cleave.tokenizer");
    if (tokens && !strcmp(tokens, "tokenizer") && tokenizer)
        return clv__vocabulary_tokenizer(runtime, tokenizer, strlen(tokenizer), out);
    CLV_FAIL(clv__runtime_error_of(runtime), CLV_E_FORMAT, "'%s' does not tell its vocabulary", path);
}

/** What is no size, where it is told. */
static clv_status read_numbers(clv_runtime *runtime, const clv_archive *archive, const char *path,
                               clv_gpt_config *config) {
    double eps = 0, theta = 0;
    int64_t tied = 0, bias = 0;
    if (clv_archive_text(archive, "cleave.eps")) CLV_TRY(clv__archive_get_real(archive, "cleave.eps", &eps));
    if (clv_archive_text(archive, "cleave.rope_theta"))
        CLV_TRY(clv__archive_get_real(archive, "cleave.rope_theta", &theta));
    if (clv_archive_text(archive, "cleave.tied"))
        CLV_TRY(clv__archive_get_int(archive, "cleave.tied", &tied));
    if (clv_archive_text(archive, "cleave.qkv_bias"))
        CLV_TRY(clv__archive_get_int(archive, "cleave.qkv_bias", &bias));
    for (int i = 0; i < 4 && clv_archive_text(archive, scaling[0]); i++) {
        double value;
        CLV_TRY(clv__archive_get_real(archive, scaling[i], &value));
        config->rope_scaling[i] = (float)value;
    }
    if (!(eps >= 0 && eps < 1) || !(theta >= 0 && theta < 1e12) || tied < -1 || tied > 1 ||
        (clv_archive_text(archive, scaling[0]) && !clv__rope_scaling_can_be(config->rope_scaling)))
        CLV_FAIL(clv__runtime_error_of(runtime), CLV_E_FORMAT,
                 "'%s': cleave.eps, cleave.rope_theta, one of the numbers of cleave.rope_factor, or "
                 "cleave.tied is not possible",
                 path);
    config->eps = (float)eps;
    config->rope_theta = theta;
    config->tied = (int)tied;
    config->qkv_bias = bias == 1;
    return CLV_OK;
}

static clv_status read_sizes(clv_runtime *runtime, const clv_archive *archive, const char *path,
                             clv_gpt_config *config) {
    const char *model = clv_archive_text(archive, "cleave.model");
    const clv__decoder *decoder = model ? clv__decoder_find(model) : NULL;
    if (!decoder)
        CLV_FAIL(clv__runtime_error_of(runtime), CLV_E_NOT_FOUND,
                 "'%s' holds weights that do not say which GPT they are of; clv_gpt_weights_save writes "
                 "weights that do, and a program that rewrites them must keep their metadata",
                 path);
    config->model = decoder == clv__decoder_find(NULL) ? NULL : decoder->name;
    for (int i = 0; i < N_SIZES; i++) {
        int64_t *size = size_of(config, i);
        if (i >= N_NEEDED && !clv_archive_text(archive, sizes[i].key)) continue;
        if (!clv_archive_text(archive, sizes[i].key))
            CLV_FAIL(clv__runtime_error_of(runtime), CLV_E_NOT_FOUND,
                     "'%s' does not tell the model's sizes and tokens (a checkpoint never does): go on from "
                     "it and save the weights, which do",
                     path);
        CLV_TRY(clv__archive_get_int(archive, sizes[i].key, size));
        if (*size < 1 || *size > MOST)
            CLV_FAIL(clv__runtime_error_of(runtime), CLV_E_FORMAT,
                     "'%s': %s is %" PRId64 ", and must be 1 to %d", path, sizes[i].key, *size, MOST);
    }
    return read_numbers(runtime, archive, path, config);
}

/** A tensor's name in the file, which may lack what stands before all names of the model. */
static const char *name_in(const clv_archive *archive, const clv__decoder *decoder, const char *name) {
    const size_t n = decoder->base ? strlen(decoder->base) : 0;
    return n && !clv_archive_find(archive, name) && clv_archive_find(archive, name + n) ? name + n : name;
}

/** Do the tensors agree? After that no size is larger than what the file holds. */
static clv_status check_tensors(clv_runtime *runtime, const clv_archive *archive, const char *path,
                                clv_gpt_config *config) {
    const clv_array *array;
    const clv__decoder *decoder = clv__decoder_find(config->model);
    const clv_shape tokens = CLV_SHAPE(config->vocabulary, config->width);
    const clv_shape places = CLV_SHAPE(config->context, config->width);
    char last[96];
    CLV_TRY(clv__archive_require(archive, name_in(archive, decoder, decoder->tokens), CLV_DTYPE_F32, &tokens,
                                 &array));
    if (decoder->places)
        CLV_TRY(clv__archive_require(archive, name_in(archive, decoder, decoder->places), CLV_DTYPE_F32,
                                     &places, &array));
    snprintf(last, sizeof last, "%s%" PRId64 "%s", decoder->last[0], config->layers - 1, decoder->last[1]);
    if (!clv_archive_find(archive, name_in(archive, decoder, last)))
        CLV_FAIL(clv__runtime_error_of(runtime), CLV_E_FORMAT,
                 "'%s': cleave.layers is %" PRId64 ", and there is no '%s'", path, config->layers, last);
    if (config->width % config->heads && !config->head_dim)
        CLV_FAIL(clv__runtime_error_of(runtime), CLV_E_FORMAT,
                 "'%s': a width of %" PRId64 " cannot be divided into %" PRId64 " heads", path, config->width,
                 config->heads);
    array = clv_archive_find(archive, "classifier.weight");
    if (!decoder->layers && array && array->shape.rank == 2 && array->shape.dims[0] <= MOST)
        config->classes = (int32_t)array->shape.dims[0];
    return CLV_OK;
}

/** By what the file says itself, or what lies beside it. */
static clv_status read_all(clv_runtime *runtime, const clv_archive *archive, const char *path,
                           clv_gpt_config *config, clv_vocabulary **vocabulary) {
    clv_gpt_config beside = {0};
    if (!clv_archive_text(archive, "cleave.model")) CLV_TRY(clv__hugging_face_read(runtime, path, &beside));
    if (!beside.model) {
        CLV_TRY(read_sizes(runtime, archive, path, config));
        if (!vocabulary) return CLV_OK;
        CLV_TRY(read_vocabulary(runtime, archive, path, vocabulary));
        if (config->vocabulary < clv_vocabulary_count(*vocabulary))
            config->vocabulary = clv_vocabulary_count(*vocabulary);
        return CLV_OK;
    }
    *config = beside;
    if (!vocabulary) return CLV_OK;
    CLV_TRY(read_tokenizer(runtime, path, vocabulary));
    if (clv_vocabulary_count(*vocabulary) > config->vocabulary)
        CLV_FAIL(clv__runtime_error_of(runtime), CLV_E_FORMAT,
                 "'%s': tokenizer.json beside it has %" PRId64 " tokens, and config.json %" PRId64, path,
                 (int64_t)clv_vocabulary_count(*vocabulary), config->vocabulary);
    return CLV_OK;
}

clv_status clv_gpt_weights_read(clv_runtime *runtime, const char *path, clv_gpt_config *config,
                                clv_vocabulary **vocabulary) {
    CLV_TRY(CLV__GIVEN(NULL, runtime));
    clv__error *error = clv__runtime_error_of(runtime);
    CLV_TRY(CLV__USABLE(error, path));
    CLV_TRY(CLV__USABLE(error, config));
    clv_archive *archive = NULL;
    clv_gpt_config found = {0};
    if (vocabulary) *vocabulary = NULL;
    clv_status status = clv__safetensors_read_part(runtime, path, CLV__MAPPED, &archive);
    if (status == CLV_OK) status = read_all(runtime, archive, path, &found, vocabulary);
    if (status == CLV_OK) status = check_tensors(runtime, archive, path, &found);
    clv_archive_destroy(archive);
    if (status == CLV_OK) {
        *config = found;
    } else if (vocabulary) {
        clv_vocabulary_destroy(*vocabulary);
        *vocabulary = NULL;
    }
    return status;
}
