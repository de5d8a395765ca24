// SPDX-License-Identifier: Apache-2.0
// A session's tensors in archives and back: weights as safetensors, and the same for checkpoints.
#include "train/state.h"

#include <string.h>

#include "train/names.h"

clv_status clv__state_put(clv_session *session, clv_category category, const char *prefix,
                          clv_archive *archive) {
    for (int i = 0; i < clv_session_count(session); i++) {
        clv_session_tensor tensor = clv_session_get(session, i);
        if (tensor.category != category) continue;
        char name[640];
        snprintf(name, sizeof name, "%s%s", prefix, tensor.name);
        clv_array *array;
        CLV_TRY(clv_archive_add(archive, name, clv_array_type_of(tensor.dtype), &tensor.shape, &array));
        CLV_TRY(clv_session_read(session, i, array->data, tensor.bytes));
    }
    return CLV_OK;
}

/** Is it a name that PyTorch writes and nothing here needs? */
static bool passed_over(const char *name) {
    static const char counter[] = ".num_batches_tracked";
    size_t length = strlen(name), tail = sizeof counter - 1;
    return length >= tail && !strcmp(name + length - tail, counter);
}

/** Names must agree both ways; then dtypes and shapes. Nothing is changed before all of it does. */
static clv_status compare(clv_session *session, clv_category category, const char *prefix,
                          const clv_archive *archive, const char *path, clv__error *error) {
    clv__names missing = {0}, unexpected = {0};
    size_t prefix_bytes = strlen(prefix);
    for (int i = 0; i < clv_session_count(session); i++) {
        clv_session_tensor tensor = clv_session_get(session, i);
        char name[640];
        snprintf(name, sizeof name, "%s%s", prefix, tensor.name);
        if (tensor.category == category && !clv_archive_find(archive, name))
            clv__names_add(&missing, tensor.name);
    }
    for (size_t i = 0; i < clv_archive_count(archive); i++) {
        const char *name = clv_archive_get(archive, i)->name;
        if (strncmp(name, prefix, prefix_bytes)) continue; // another section of a checkpoint
        int at = clv_session_find(session, name + prefix_bytes);
        if ((at < 0 || clv_session_get(session, at).category != category) && !passed_over(name))
            clv__names_add(&unexpected, name + prefix_bytes);
    }
    if (missing.n || unexpected.n)
        CLV_FAIL(error, CLV_E_NOT_FOUND, "'%s' holds the tensors of another model:%s%s%s%s%s", path,
                 missing.n ? " missing " : "", missing.text, missing.n && unexpected.n ? ";" : "",
                 unexpected.n ? " unexpected " : "", unexpected.text);
    for (int i = 0; i < clv_session_count(session); i++) {
        clv_session_tensor tensor = clv_session_get(session, i);
        if (tensor.category != category) continue;
        char name[640];
        snprintf(name, sizeof name, "%s%s", prefix, tensor.name);
        const clv_array *array;
        CLV_TRY(clv_archive_require(archive, name, clv_array_type_of(tensor.dtype), &tensor.shape, &array));
    }
    return CLV_OK;
}

clv_status clv__state_take(clv_session *session, clv_category category, const char *prefix,
                           const clv_archive *archive, const char *path, clv__error *error) {
    CLV_TRY(compare(session, category, prefix, archive, path, error));
    for (int i = 0; i < clv_session_count(session); i++) {
        clv_session_tensor tensor = clv_session_get(session, i);
        if (tensor.category != category) continue;
        char name[640];
        snprintf(name, sizeof name, "%s%s", prefix, tensor.name);
        CLV_TRY(clv_session_write(session, i, clv_archive_find(archive, name)->data, tensor.bytes));
    }
    return CLV_OK;
}

clv_status clv_weights_save(clv_session *session, const char *path) {
    clv_archive *archive = NULL;
    clv_status status = clv_archive_create(clv_session_runtime(session), &archive);
    if (status == CLV_OK) status = clv__state_put(session, CLV_PARAMETERS, "", archive);
    if (status == CLV_OK) status = clv_safetensors_write(archive, path);
    clv_archive_destroy(archive);
    return status;
}

clv_status clv_weights_load(clv_session *session, const char *path) {
    clv_runtime *runtime = clv_session_runtime(session);
    clv_archive *archive = NULL;
    clv_status status = clv_safetensors_read(runtime, path, &archive);
    if (status == CLV_OK)
        status = clv__state_take(session, CLV_PARAMETERS, "", archive, path, clv__runtime_error_of(runtime));
    clv_archive_destroy(archive);
    return status;
}
