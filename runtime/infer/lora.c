// SPDX-License-Identifier: Apache-2.0
// A session's adapters: merged into its weights, and written as PEFT writes them, adapter_model.safetensors, whose names are
// `base_model.model.` and the session's, and adapter_config.json beside it. Read they are in lora_read.c.
// Source: peft.LoraConfig, peft.PeftModel.save_pretrained, release 0.21.
#include "infer/lora.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/modules.h"
#include "exec/session.h"
#include "infer/averages.h"
#include "infer/weights.h"
#include "io/json.h"
#include "ops/product/lora.h"

enum { NAME_BYTES = 1200 };

clv_lora clv__lora_of(const clv_session *session) {
    if (!session) return (clv_lora){0};
    return (clv_lora){
        .layers = session->about.lora, .rank = session->about.lora_rank, .alpha = session->about.lora_alpha};
}

// ---- products -------------------------------------------------------------------------------------------------------

bool clv__lora_add_product(const clv__adapted *w, float *values) {
    double *row = clv__alloc((size_t)w->in, sizeof *row);
    if (!row) return false;
    for (int64_t o = 0; o < w->out; o++) {
        memset(row, 0, (size_t)w->in * sizeof *row);
        for (int64_t r = 0; r < w->rank; r++)
            for (int64_t i = 0; i < w->in; i++)
                row[i] += (double)w->b[o * w->rank + r] * (double)w->a[r * w->in + i];
        for (int64_t i = 0; i < w->in; i++) {
            float *value = &values[w->in_out ? i * w->out + o : o * w->in + i];
            *value = (float)((double)*value + w->scale * row[i]);
        }
    }
    free(row);
    return true;
}

/** What is used of a session's tensor: its running average, where these are used. To be freed. */
static clv_status read_used(clv_session *session, int i, float **out) {
    const clv_session_tensor tensor = clv_session_get(session, i);
    const int average = clv__average_find(session, &tensor);
    *out = clv__alloc(1, tensor.bytes ? tensor.bytes : 1);
    if (!*out)
        CLV_FAIL(clv__runtime_error_of(session->runtime), CLV_E_HOST_MEMORY, "no host memory for '%s'",
                 tensor.name);
    return clv_session_read(session, average < 0 ? i : average, *out, tensor.bytes);
}

/** The session's adapter of a weight; -1: it has none. */
static int part_of(const clv_session *session, const char *weight, char which) {
    char name[NAME_BYTES];
    return clv__lora_name(weight, which, name, sizeof name) ? clv_session_find(session, name) : -1;
}

clv_status clv__lora_merge(clv_session *session, int i, float *values) {
    const clv__session_about *about = &session->about;
    const clv_session_tensor tensor = clv_session_get(session, i);
    const int at = about->lora ? part_of(session, tensor.name, 'A') : -1,
              bt = about->lora ? part_of(session, tensor.name, 'B') : -1;
    if (at < 0 || bt < 0) return CLV_OK;
    const bool in_out = session->kept[i].in_out;
    float *a = NULL, *b = NULL;
    clv_status status = read_used(session, at, &a);
    if (status == CLV_OK) status = read_used(session, bt, &b);
    const clv__adapted w = {.in = tensor.shape.dims[!in_out],
                            .out = tensor.shape.dims[in_out],
                            .rank = about->lora_rank,
                            .in_out = in_out,
                            .scale = clv__lora_scale(about->lora_rank, about->lora_alpha),
                            .a = a,
                            .b = b};
    if (status == CLV_OK && !clv__lora_add_product(&w, values))
        status = clv__error_set(clv__runtime_error_of(session->runtime), CLV_E_HOST_MEMORY,
                                "no host memory to merge '%s'", tensor.name);
    free(a);
    free(b);
    return status;
}

// ---- written --------------------------------------------------------------------------------------------------------

/** The module that a tensor lies in, as PEFT calls it. */
static json_t *module_json(const char *name, const char *tail) {
    const size_t n = strlen(name) - strlen(tail);
    return n ? json_stringn(name, n - 1) : json_string("");
}

/** A module, once. */
static bool add_module(json_t *list, json_t *module) {
    size_t i;
    json_t *item;
    bool there = !module;
    json_array_foreach(list, i, item) there |= json_equal(item, module);
    if (!there) return json_array_append_new(list, module) == 0;
    json_decref(module);
    return module != NULL;
}

/** Is it trained beside adapters, or changed by a training without gradients? */
static bool is_whole(const clv_session *session, const clv_session_tensor *tensor) {
    return !tensor->trainable || clv__patterns_cover(session->about.whole, tensor->name);
}

static clv_status put_tensor(clv_session *session, int i, clv_archive *archive) {
    const clv_session_tensor tensor = clv_session_get(session, i);
    const int average = clv__average_find(session, &tensor);
    char name[NAME_BYTES];
    clv_array *array;
    snprintf(name, sizeof name, CLV__LORA_PREFIX "%s", tensor.name);
    CLV_TRY(clv_archive_add(archive, name, tensor.dtype, &tensor.shape, NULL, &array));
    return clv_session_read(session, average < 0 ? i : average, array->data, tensor.bytes);
}

/** What the files say of the layers; each a list. */
typedef struct layers {
    json_t *targets, *whole, *in_out;
    bool good;
} layers;

static clv_status put_tensors(clv_session *session, clv_archive *archive, layers *of) {
    for (int i = 0; i < clv_session_info_get(session).n_tensors; i++) {
        const clv_session_tensor tensor = clv_session_get(session, i);
        const bool adapter = clv__lora_is(tensor.name);
        if (tensor.category != CLV_PARAMETERS) continue;
        if (session->kept[i].in_out && part_of(session, tensor.name, 'A') >= 0)
            of->good &= json_array_append_new(of->in_out, json_string(tensor.name)) == 0;
        if (!adapter && !is_whole(session, &tensor)) continue;
        CLV_TRY(put_tensor(session, i, archive));
        if (adapter) of->good &= add_module(of->targets, module_json(tensor.name, "lora_A.weight"));
        if (!adapter && tensor.trainable) {
            const char *dot = strrchr(tensor.name, '.');
            of->good &= add_module(of->whole, module_json(tensor.name, dot ? dot + 1 : tensor.name));
        }
    }
    return CLV_OK;
}

/** adapter_config.json, to be freed; NULL: no memory. All weights are [out, in], or all are not: PEFT knows no mixture. */
static char *config_of(const clv_session *session, const layers *of, const char *base) {
    const double alpha =
        session->about.lora_alpha == 0 ? (double)session->about.lora_rank : session->about.lora_alpha;
    const bool turned =
        json_array_size(of->in_out) && json_array_size(of->in_out) == json_array_size(of->targets);
    json_t *root = json_pack(
        "{s:s, s:n, s:s?, s:s, s:b, s:b, s:b, s:o, s:f, s:O, s:I, s:O, s:n}", "peft_type", "LORA",
        "auto_mapping", "base_model_name_or_path", base, "bias", "none", "fan_in_fan_out", turned,
        "inference_mode", 1, "init_lora_weights", 1, "lora_alpha",
        alpha == floor(alpha) && alpha < 1e15 ? json_integer((json_int_t)alpha) : json_real(alpha),
        "lora_dropout", 0.0, "modules_to_save", json_array_size(of->whole) ? of->whole : json_null(), "r",
        (json_int_t)session->about.lora_rank, "target_modules", of->targets, "task_type");
    char *text = root ? json_dumps(root, JSON_INDENT(2)) : NULL;
    json_decref(root);
    return text;
}

static clv_status write_files(clv_session *session, clv_archive *archive, const layers *of,
                              const char *folder, const char *base) {
    clv__error *error = clv__runtime_error_of(session->runtime);
    char path[4096];
    char *config = config_of(session, of, base), *in_out = json_dumps(of->in_out, JSON_COMPACT);
    clv_status status = CLV_OK;
    if (!config || !in_out || !of->good)
        status = clv__error_set(error, CLV_E_HOST_MEMORY, "no host memory for the adapters' names");
    if (status == CLV_OK && json_array_size(of->in_out))
        status = clv_archive_set_text(archive, CLV__LORA_IN_OUT, in_out);
    if (status == CLV_OK && mkdir(folder, 0777) != 0 && errno != EEXIST)
        status =
            clv__error_set(error, CLV_E_IO, "the folder '%s' cannot be made: %s", folder, strerror(errno));
    snprintf(path, sizeof path, "%s/" CLV__LORA_TENSORS, folder);
    if (status == CLV_OK) status = clv_safetensors_write(archive, path);
    snprintf(path, sizeof path, "%s/" CLV__LORA_CONFIG, folder);
    if (status == CLV_OK) status = clv_file_write(session->runtime, path, config, strlen(config));
    free(config);
    free(in_out);
    return status;
}

clv_status clv_lora_save(clv_session *session, const clv_weights_text *texts, int n, const char *folder,
                         const char *base) {
    CLV_TRY(CLV__GIVEN(NULL, session));
    clv__error *error = clv__runtime_error_of(session->runtime);
    CLV_TRY(CLV__USABLE(error, folder));
    if (n < 0) CLV_FAIL(error, CLV_E_VALUE, "clv_lora_save: %d texts", n);
    if (n > 0) CLV_TRY(CLV__USABLE(error, texts));
    if (!session->about.lora)
        CLV_FAIL(error, CLV_E_STATE, "'%s': the session has no adapters (clv_train_config.lora)", folder);
    if (strlen(folder) > 4000) CLV_FAIL(error, CLV_E_IO, "the name of a folder for adapters is too long");
    layers of = {json_array(), json_array(), json_array(), true};
    clv_archive *archive = NULL;
    clv_status status = clv_archive_create(session->runtime, &archive);
    of.good = of.targets && of.whole && of.in_out;
    if (status == CLV_OK) status = put_tensors(session, archive, &of);
    if (status == CLV_OK) status = clv__weights_tell(session, archive);
    for (int i = 0; status == CLV_OK && i < n; i++)
        status = clv_archive_set_text(archive, texts[i].key, texts[i].text);
    if (status == CLV_OK) status = write_files(session, archive, &of, folder, base);
    clv_archive_destroy(archive);
    json_decref(of.targets);
    json_decref(of.whole);
    json_decref(of.in_out);
    return status;
}
