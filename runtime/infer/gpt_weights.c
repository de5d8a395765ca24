// SPDX-License-Identifier: Apache-2.0
// A GPT's weights with what is needed to use them: sizes and vocabulary, as texts of the safetensors file.
#include "cleave/generate.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "cleave/train.h"
#include "data/vocabulary.h"
#include "device/device.h"
#include "io/formats.h"
#include "nn/models.h"
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
                                 {"cleave.layers", offsetof(clv_gpt_config, layers)}};
enum { N_SIZES = sizeof sizes / sizeof *sizes };

static int64_t *size_of(clv_gpt_config *config, int i) {
    return (int64_t *)((char *)config + sizes[i].field);
}

static clv_status describe(clv_archive *archive, clv_gpt_config config, const clv_vocabulary *vocabulary) {
    clv__gpt_defaults(&config);
    CLV_TRY(clv_archive_set_text(archive, "cleave.model", "gpt"));
    for (int i = 0; i < N_SIZES; i++)
        CLV_TRY(clv__archive_set_int(archive, sizes[i].key, *size_of(&config, i)));
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

static clv_status read_sizes(clv_runtime *runtime, const clv_archive *archive, const char *path,
                             clv_gpt_config *config) {
    const char *model = clv_archive_text(archive, "cleave.model");
    if (!model || strcmp(model, "gpt"))
        CLV_FAIL(clv__runtime_error_of(runtime), CLV_E_NOT_FOUND,
                 "'%s' holds weights that do not say which GPT they are of; clv_gpt_weights_save writes such"
                 ", and a program that writes them anew must keep their metadata",
                 path);
    for (int i = 0; i < N_SIZES; i++) {
        int64_t *size = size_of(config, i);
        if (!clv_archive_text(archive, sizes[i].key))
            CLV_FAIL(clv__runtime_error_of(runtime), CLV_E_NOT_FOUND,
                     "'%s' does not tell the model's sizes and tokens, as a checkpoint does not: go on from "
                     "it and "
                     "save the weights, which do",
                     path);
        CLV_TRY(clv__archive_get_int(archive, sizes[i].key, size));
        if (*size < 1 || *size > MOST)
            CLV_FAIL(clv__runtime_error_of(runtime), CLV_E_FORMAT,
                     "'%s': %s is %" PRId64 ", and must be 1 to %d", path, sizes[i].key, *size, MOST);
    }
    return CLV_OK;
}

/** Do the tensors agree? After that no size is larger than what the file holds. */
static clv_status check_tensors(clv_runtime *runtime, const clv_archive *archive, const char *path,
                                const clv_gpt_config *config) {
    const clv_array *array;
    const clv_shape tokens = CLV_SHAPE(config->vocabulary, config->width);
    const clv_shape positions = CLV_SHAPE(config->context, config->width);
    char last[96];
    CLV_TRY(clv__archive_require(archive, "transformer.wte.weight", CLV_DTYPE_F32, &tokens, &array));
    CLV_TRY(clv__archive_require(archive, "transformer.wpe.weight", CLV_DTYPE_F32, &positions, &array));
    snprintf(last, sizeof last, "transformer.h.%" PRId64 ".ln_1.weight", config->layers - 1);
    if (!clv_archive_find(archive, last))
        CLV_FAIL(clv__runtime_error_of(runtime), CLV_E_FORMAT,
                 "'%s': cleave.layers is %" PRId64 ", and there is no '%s'", path, config->layers, last);
    if (config->width % config->heads)
        CLV_FAIL(clv__runtime_error_of(runtime), CLV_E_FORMAT,
                 "'%s': a width of %" PRId64 " does not part into %" PRId64 " heads", path, config->width,
                 config->heads);
    return CLV_OK;
}

clv_status clv_gpt_weights_read(clv_runtime *runtime, const char *path, clv_gpt_config *config,
                                clv_vocabulary **vocabulary) {
    CLV_TRY(CLV__GIVEN(NULL, runtime));
    clv__error *error = clv__runtime_error_of(runtime);
    CLV_TRY(CLV__USABLE(error, path));
    CLV_TRY(CLV__USABLE(error, config));
    CLV_TRY(CLV__USABLE(error, vocabulary));
    clv_archive *archive = NULL;
    clv_gpt_config found = {0};
    *vocabulary = NULL;
    clv_status status = clv_safetensors_read(runtime, path, &archive);
    if (status == CLV_OK) status = read_sizes(runtime, archive, path, &found);
    if (status == CLV_OK) status = read_vocabulary(runtime, archive, path, vocabulary);
    if (status == CLV_OK) {
        found.vocabulary = clv_vocabulary_count(*vocabulary);
        status = check_tensors(runtime, archive, path, &found);
    }
    clv_archive_destroy(archive);
    if (status == CLV_OK) {
        *config = found;
    } else {
        clv_vocabulary_destroy(*vocabulary);
        *vocabulary = NULL;
    }
    return status;
}
