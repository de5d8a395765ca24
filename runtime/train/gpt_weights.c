// SPDX-License-Identifier: Apache-2.0
// A GPT's weights with what is needed to use them: sizes and vocabulary, as texts of the safetensors file.
#include "cleave/generate.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "cleave/train.h"
#include "nn/models.h"
#include "train/state.h"

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
        CLV_TRY(clv_archive_set_int(archive, sizes[i].key, *size_of(&config, i)));
    const char *characters = clv_vocabulary_text(vocabulary);
    CLV_TRY(clv_archive_set_text(archive, "cleave.tokens", characters ? "characters" : "bytes"));
    return characters ? clv_archive_set_text(archive, "cleave.characters", characters) : CLV_OK;
}

clv_status clv_gpt_weights_save(clv_session *session, const clv_gpt_config *config,
                                const clv_vocabulary *vocabulary, const char *path) {
    CLV_TRY(CLV__GIVEN(NULL, session));
    clv_runtime *runtime = clv_session_runtime(session);
    clv__error *error = clv__runtime_error_of(runtime);
    CLV_TRY(CLV__USABLE(error, vocabulary));
    CLV_TRY(CLV__USABLE(error, path));
    static const clv_gpt_config defaults = {0};
    clv_archive *archive = NULL;
    clv_status status = clv_archive_create(runtime, &archive);
    if (status == CLV_OK) status = clv__state_put(session, CLV_PARAMETERS, "", archive);
    if (status == CLV_OK) status = describe(archive, config ? *config : defaults, vocabulary);
    if (status == CLV_OK) status = clv_safetensors_write(archive, path);
    clv_archive_destroy(archive);
    return status;
}

static clv_status read_vocabulary(clv_runtime *runtime, const clv_archive *archive, const char *path,
                                  clv_vocabulary **out) {
    const char *tokens = clv_archive_text(archive, "cleave.tokens");
    const char *characters = clv_archive_text(archive, "cleave.characters");
    if (tokens && !strcmp(tokens, "bytes")) return clv_vocabulary_bytes(runtime, out);
    if (tokens && !strcmp(tokens, "characters") && characters && *characters)
        return clv_vocabulary_characters(runtime, characters, strlen(characters), out);
    CLV_FAIL(clv__runtime_error_of(runtime), CLV_E_FORMAT, "'%s' does not tell its vocabulary", path);
}

static clv_status read_sizes(clv_runtime *runtime, const clv_archive *archive, const char *path,
                             clv_gpt_config *config) {
    const char *model = clv_archive_text(archive, "cleave.model");
    if (!model || strcmp(model, "gpt"))
        CLV_FAIL(clv__runtime_error_of(runtime), CLV_E_NOT_FOUND,
                 "'%s' holds weights that do not say which GPT they are of; `cleave train text FILE --save` "
                 "writes such",
                 path);
    for (int i = 0; i < N_SIZES; i++) {
        int64_t *size = size_of(config, i);
        CLV_TRY(clv_archive_get_int(archive, sizes[i].key, size));
        if (*size < 1 || *size > MOST)
            CLV_FAIL(clv__runtime_error_of(runtime), CLV_E_FORMAT,
                     "'%s': %s is %" PRId64 ", and must be 1 to %d", path, sizes[i].key, *size, MOST);
    }
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
    clv_archive_destroy(archive);
    if (status != CLV_OK) return status;
    found.vocabulary = clv_vocabulary_count(*vocabulary);
    *config = found;
    return CLV_OK;
}
