// SPDX-License-Identifier: Apache-2.0
// A session's tensors in archives and back: weights as safetensors, and the same for checkpoints.
#include "cleave/onnx.h"
#include "device/device.h"
#include "exec/session.h"
#include "io/array.h"
#include "io/formats.h"
#include "onnx/weights.h"
#include "infer/hugging_face.h"
#include "infer/weights.h"

#include <inttypes.h>
#include <string.h>

#include "base/modules.h"
#include "base/text.h"
#include "infer/averages.h"
#include "infer/lora.h"
#include "infer/names.h"
#include "ops/product/lora.h"

/** A session's tensor as files have it: whole, where this rank keeps a part of it. */
static clv_session_tensor whole_of(const clv_session *session, int i) {
    clv_session_tensor tensor = clv_session_get(session, i);
    const clv__kept *kept = &session->kept[i];
    if (!kept->part_of) return tensor;
    tensor.shape = kept->whole;
    tensor.bytes = (size_t)kept->part_of * clv_dtype_bytes(tensor.dtype);
    return tensor;
}

clv_status clv__state_hand_over(clv_session *session) {
    for (int i = 0; i < clv_session_info_get(session).n_tensors; i++)
        if (session->kept[i].part_of) CLV_TRY(clv__session_read_whole(session, i, NULL));
    return CLV_OK;
}

clv_status clv__state_put(clv_session *session, clv_category category, const char *prefix,
                          clv_archive *archive) {
    for (int i = 0; i < clv_session_info_get(session).n_tensors; i++) {
        clv_session_tensor tensor = whole_of(session, i);
        if (tensor.category != category) continue;
        char name[640];
        snprintf(name, sizeof name, "%s%s", prefix, tensor.name);
        clv_array *array;
        CLV_TRY(clv_archive_add(archive, name, tensor.dtype, &tensor.shape, NULL, &array));
        CLV_TRY(session->kept[i].part_of ? clv__session_read_whole(session, i, array->data)
                                         : clv_session_read(session, i, array->data, tensor.bytes));
    }
    return CLV_OK;
}

clv_status clv__weights_put(clv_session *session, clv_archive *archive) {
    const bool adapted = clv__lora_of(session).layers != NULL;
    for (int i = 0; i < clv_session_info_get(session).n_tensors; i++) {
        clv_session_tensor tensor = clv_session_get(session, i);
        if (tensor.category != CLV_PARAMETERS || (adapted && clv__lora_is(tensor.name))) continue;
        const int average = clv__average_find(session, &tensor);
        clv_array *array;
        CLV_TRY(clv_archive_add(archive, tensor.name, tensor.dtype, &tensor.shape, NULL, &array));
        CLV_TRY(clv_session_read(session, average < 0 ? i : average, array->data, tensor.bytes));
        if (adapted) CLV_TRY(clv__lora_merge(session, i, array->data));
    }
    return clv__weights_tell(session, archive);
}

/** Is it a name that PyTorch writes and nothing here needs? */
static bool passed_over(const char *name) {
    // counters of batch norm, masks and tables of Hugging Face, and a last layer that is the embedding
    static const char *const tails[] = {
        ".num_batches_tracked",     ".attn.bias",    ".attn.masked_bias", ".rotary_emb.inv_freq",
        ".relative_position_index", ".position_ids", "lm_head.weight"};
    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
        const size_t length = strlen(name), tail = strlen(tails[i]);
        if (length >= tail && !strcmp(name + length - tail, tails[i])) return true;
    }
    return false;
}

/** The name of a session's tensor in an archive. */
typedef struct full_name {
    char text[1200];
} full_name;

static const char *name_in(const clv__section *section, const char *name, full_name *out) {
    snprintf(out->text, sizeof out->text, "%s%s", section->prefix, name);
    return out->text;
}

/** Is it one of those that are read? */
static bool is_read(const clv__section *section, const clv_session_tensor *tensor) {
    return tensor->category == section->category && !clv__patterns_cover(section->except, tensor->name) &&
           (section->whole || !clv__lora_is(tensor->name)) && !clv__lora_has(section->lora, tensor->name);
}

/** What does not agree between a session and an archive. */
typedef struct mismatch {
    clv__told_names missing, unexpected, shapes;
    char layer[256];      // of all tensors whose shapes differ; "" if they are of several
    int64_t theirs, ours; // their first dimensions, if all differ in these alone and alike; 0: they do not
} mismatch;

/** Note a tensor whose shape differs, and whether it only has rows for another number of classes. */
static void add_shape(mismatch *all, const clv_session_tensor *tensor, const clv_array *array) {
    char theirs[96], ours[96], text[512];
    snprintf(text, sizeof text, "'%.300s' is %s and must be %s", tensor->name,
             clv_shape_text(&array->shape, theirs, sizeof theirs),
             clv_shape_text(&tensor->shape, ours, sizeof ours));
    const char *dot = strrchr(tensor->name, '.');
    size_t length =
        dot && (size_t)(dot - tensor->name) < sizeof all->layer ? (size_t)(dot - tensor->name) : 0;
    clv_shape a = array->shape, b = tensor->shape;
    bool alike = a.rank > 0 && a.rank == b.rank;
    if (alike && all->shapes.n) alike = all->theirs == a.dims[0] && all->ours == b.dims[0];
    if (alike && all->shapes.n)
        alike = strlen(all->layer) == length && !memcmp(all->layer, tensor->name, length);
    if (!all->shapes.n) snprintf(all->layer, sizeof all->layer, "%.*s", (int)length, tensor->name);
    all->theirs = alike ? a.dims[0] : 0;
    all->ours = alike ? b.dims[0] : 0;
    if (alike) {
        a.dims[0] = b.dims[0];
        if (!clv_shape_equal(&a, &b)) all->theirs = all->ours = 0;
    }
    clv__told_add_text(&all->shapes, text);
}

static void find_mismatches(const clv_session *session, const clv__section *section,
                            const clv_archive *archive, mismatch *out) {
    size_t prefix_bytes = strlen(section->prefix);
    full_name full;
    for (int i = 0; i < clv_session_info_get(session).n_tensors; i++) {
        clv_session_tensor tensor = whole_of(session, i);
        if (!is_read(section, &tensor)) continue;
        const clv_array *array = clv_archive_find(archive, name_in(section, tensor.name, &full));
        if (!array)
            clv__told_add(&out->missing, tensor.name);
        else if (!clv_shape_equal(&array->shape, &tensor.shape))
            add_shape(out, &tensor, array);
    }
    for (size_t i = 0; clv_archive_get(archive, i); i++) {
        const char *name = clv_archive_get(archive, i)->name;
        if (strncmp(name, section->prefix, prefix_bytes)) continue; // another section of a checkpoint
        name += prefix_bytes;
        int at = clv_session_find(session, name);
        bool known = at >= 0 && clv_session_get(session, at).category == section->category;
        if (!known && !passed_over(name) && !clv__patterns_cover(section->except, name))
            clv__told_add(&out->unexpected, name);
    }
}

static clv_status tell_mismatch(const mismatch *all, const clv__section *section, const char *path,
                                clv__error *error) {
    clv__text text = {0};
    if (all->missing.n) clv__text_add(&text, " missing %s", all->missing.text);
    if (all->unexpected.n) clv__text_add(&text, "%s unexpected %s", text.n ? ";" : "", all->unexpected.text);
    if (all->shapes.n) clv__text_add(&text, "%s %s", text.n ? ";" : "", all->shapes.text);
    clv_status status = all->missing.n || all->unexpected.n ? CLV_E_NOT_FOUND : CLV_E_SHAPE;
    if (status == CLV_E_SHAPE && all->theirs && *all->layer) {
        char anew[600] = "";
        if (!section->whole)
            snprintf(
                anew, sizeof anew,
                ", or leave '%s.*' out (clv_train_config.weights_except '%s.*') and train it from the start",
                all->layer, all->layer);
        clv__error_set(error, status,
                       "'%s' is of a model with %" PRId64 " classes, this one has %" PRId64
                       ":%s; build the model for %" PRId64 " classes (clv_model.classes %" PRId64 ")%s",
                       path, all->theirs, all->ours, clv__text_get(&text), all->theirs, all->theirs, anew);
    } else {
        clv__error_set(error, status, "'%s' holds the tensors of another model:%s", path,
                       clv__text_get(&text));
    }
    clv__text_reset(&text);
    return status;
}

/** A pattern that names nothing, here or there, is mistyped. */
static clv_status check_except(const clv_session *session, const clv__section *section,
                               const clv_archive *archive, const char *path, clv__error *error) {
    char pattern[CLV__PATTERN_BYTES];
    size_t prefix_bytes = strlen(section->prefix);
    for (const char *rest = section->except; clv__patterns_take(&rest, pattern);) {
        clv__nearest nearest = {.word = pattern};
        bool found = false;
        for (int i = 0; i < clv_session_info_get(session).n_tensors; i++) {
            clv_session_tensor tensor = clv_session_get(session, i);
            if (tensor.category != section->category) continue;
            found |= clv__pattern_covers(pattern, tensor.name);
            clv__nearest_offer_modules(&nearest, tensor.name);
        }
        for (size_t i = 0; clv_archive_get(archive, i); i++) {
            const char *name = clv_archive_get(archive, i)->name;
            if (strncmp(name, section->prefix, prefix_bytes) == 0)
                found |= clv__pattern_covers(pattern, name + prefix_bytes);
        }
        if (!found)
            CLV_FAIL(error, CLV_E_NOT_FOUND,
                     "weights without '%s': neither the model nor '%s' has such a tensor%s", pattern, path,
                     clv__nearest_text(&nearest));
    }
    return CLV_OK;
}

/** Names and shapes must agree both ways, then dtypes. Nothing is changed before all of it does. */
static clv_status compare(const clv_session *session, const clv__section *section, const clv_archive *archive,
                          const char *path, clv__error *error) {
    mismatch found = {0};
    full_name full;
    CLV_TRY(check_except(session, section, archive, path, error));
    find_mismatches(session, section, archive, &found);
    if (found.missing.n || found.unexpected.n || found.shapes.n)
        return tell_mismatch(&found, section, path, error);
    bool any = false;
    for (int i = 0; i < clv_session_info_get(session).n_tensors; i++) {
        clv_session_tensor tensor = whole_of(session, i);
        const clv_array *array;
        if (!is_read(section, &tensor)) continue;
        any = true;
        CLV_TRY(clv__archive_require(archive, name_in(section, tensor.name, &full), tensor.dtype,
                                     &tensor.shape, &array));
    }
    if (!any && section->except)
        CLV_FAIL(error, CLV_E_VALUE, "weights without '%s': nothing is left to read from '%s'",
                 section->except, path);
    return CLV_OK;
}

clv_status clv__state_take(clv_session *session, const clv__section *section, clv_archive *archive,
                           const char *path, clv__error *error) {
    full_name full;
    CLV_TRY(compare(session, section, archive, path, error));
    for (int i = 0; i < clv_session_info_get(session).n_tensors; i++) {
        clv_session_tensor tensor = clv_session_get(session, i);
        if (!is_read(section, &tensor)) continue;
        const clv_array *array = clv_archive_find(archive, name_in(section, tensor.name, &full));
        const void *data;
        CLV_TRY(clv__archive_data(archive, array, &data));
        CLV_TRY(session->kept[i].part_of ? clv__session_write_part(session, i, data)
                                         : clv_session_write(session, i, data, tensor.bytes));
    }
    return CLV_OK;
}

static clv_status save(clv_session *session, const clv_weights_text *texts, int n, const char *path) {
    clv_archive *archive = NULL;
    clv_status status = clv_archive_create(clv_session_info_get(session).runtime, &archive);
    if (status == CLV_OK) status = clv__weights_put(session, archive);
    for (int i = 0; status == CLV_OK && i < n; i++)
        status = clv_archive_set_text(archive, texts[i].key, texts[i].text);
    if (status == CLV_OK) status = clv_safetensors_write(archive, path);
    clv_archive_destroy(archive);
    return status;
}

clv_status clv_weights_save_texts(clv_session *session, const clv_weights_text *texts, int n,
                                  const char *path) {
    CLV_TRY(CLV__GIVEN(NULL, session));
    clv__error *error = clv__runtime_error_of(clv_session_info_get(session).runtime);
    CLV_TRY(CLV__USABLE(error, path));
    if (n < 0) CLV_FAIL(error, CLV_E_VALUE, "clv_weights_save_texts: %d texts", n);
    if (n > 0) CLV_TRY(CLV__USABLE(error, texts));
    return save(session, texts, n, path);
}

/** Do all names of the archive begin so? */
static bool all_begin(const clv_archive *archive, const char *prefix) {
    for (size_t i = 0; clv_archive_get(archive, i); i++)
        if (strncmp(clv_archive_get(archive, i)->name, prefix, strlen(prefix))) return false;
    return clv_archive_count(archive) > 0;
}

/** What wrappers put before all names: `module.` and the like, one inside the other perhaps. */
static void find_wrappers(const clv_session *session, const clv_archive *archive, char *prefix,
                          size_t bytes) {
    static const char *const wrappers[] = {"module.", "_orig_mod."}; // DataParallel, torch.compile
    bool own = false;                                                // a model may have such a module itself
    for (int i = 0; i < clv_session_info_get(session).n_tensors; i++)
        for (size_t w = 0; w < sizeof wrappers / sizeof *wrappers; w++)
            own |= !strncmp(clv_session_get(session, i).name, wrappers[w], strlen(wrappers[w]));
    for (size_t w = 0, used = 0; !own && w < sizeof wrappers / sizeof *wrappers; w++) {
        if (used + strlen(wrappers[w]) >= bytes) return;
        strcpy(prefix + used, wrappers[w]);
        if (all_begin(archive, prefix)) {
            used += strlen(wrappers[w]);
            w = (size_t)-1; // once more from the first
        } else {
            prefix[used] = 0;
        }
    }
}

/** From the file's mapping to the device, without a copy of all. */
static clv_status take_onnx(clv_session *session, clv__onnx_weights *weights, const char *path,
                            const char *patterns, const clv__lora *lora) {
    const clv__section section = {.category = CLV_PARAMETERS, .prefix = "", .except = patterns, .lora = lora};
    const clv_status status = clv__state_take(session, &section, weights->archive, path, weights->error);
    clv__onnx_weights_close(weights);
    return status;
}

static clv_status load_onnx(clv_session *session, const char *path, const char *patterns,
                            const clv__lora *lora) {
    clv__onnx_weights weights;
    CLV_TRY(clv__onnx_weights_open(session, path, &weights));
    return take_onnx(session, &weights, path, patterns, lora);
}

clv_status clv_onnx_weights_load(clv_session *session, const clv_onnx *onnx) {
    clv__onnx_weights weights;
    CLV_TRY(CLV__GIVEN(NULL, session));
    CLV_TRY(CLV__USABLE(clv__runtime_error_of(clv_session_info_get(session).runtime), onnx));
    const clv__onnx_model *model = clv__onnx_model_of(onnx);
    CLV_TRY(clv__onnx_weights_of(session, model, &weights));
    return take_onnx(session, &weights, model->path, NULL, NULL);
}

static bool has_tensor(const void *session, const char *name) {
    return clv_session_find(session, name) >= 0;
}

/** lora: whose whole tensors are not read; NULL: none. */
static clv_status load(clv_session *session, const char *path, const char *patterns, const clv__lora *lora) {
    if (clv__onnx_is_file(path)) return load_onnx(session, path, patterns, lora);
    clv_runtime *runtime = clv_session_info_get(session).runtime;
    clv_archive *archive = NULL;
    char prefix[64] = "";
    clv_status status = clv__safetensors_read_part(runtime, path, CLV__MAPPED, &archive);
    if (status == CLV_OK && clv__checkpoint_is(archive)) {
        clv_archive_destroy(archive); // again, against its checksum
        status = clv__checkpoint_read_file(runtime, path, &archive);
        strcpy(prefix, CLV__MODEL_SECTION);
    } else if (status == CLV_OK) {
        find_wrappers(session, archive, prefix, sizeof prefix);
        if (!*prefix) status = clv__hugging_face_names(archive, has_tensor, session);
    }
    const clv__section section = {
        .category = CLV_PARAMETERS, .prefix = prefix, .except = patterns, .lora = lora};
    if (status == CLV_OK)
        status = clv__state_take(session, &section, archive, path, clv__runtime_error_of(runtime));
    if (status == CLV_OK && !patterns) status = clv__weights_keep(session, archive);
    clv_archive_destroy(archive);
    return status;
}

static clv_status load_lora(clv_session *session, const char *path, const char *patterns, const char *lora) {
    clv_runtime *runtime = clv_session_info_get(session).runtime;
    clv__lora file;
    if (!lora) return load(session, path, patterns, NULL);
    clv_status status = clv__lora_open(runtime, lora, &file);
    if (status == CLV_OK) status = clv__lora_fits(session, &file);
    if (status == CLV_OK) status = load(session, path, patterns, &file);
    if (status == CLV_OK) status = clv__lora_take(session, &file);
    clv__lora_close(&file);
    return status;
}

clv_status clv_weights_load_lora(clv_session *session, const char *path, const char *patterns,
                                 const char *lora) {
    CLV_TRY(CLV__GIVEN(NULL, session));
    CLV_TRY(CLV__USABLE(clv__runtime_error_of(clv_session_info_get(session).runtime), path));
    return load_lora(session, path, patterns, lora);
}

clv_status clv_weights_load_except(clv_session *session, const char *path, const char *patterns) {
    CLV_TRY(CLV__GIVEN(NULL, session));
    CLV_TRY(CLV__USABLE(clv__runtime_error_of(clv_session_info_get(session).runtime), path));
    return load(session, path, patterns, NULL);
}
