// SPDX-License-Identifier: Apache-2.0
// What weights know of themselves: model, classes, pictures, columns. A session keeps it as texts, files of
// weights and checkpoints carry them, and whoever uses weights reads it back. `cleave.model` is the model's
// name, as older files have it, `cleave.table` the record of a table (data/table_record.c); all else is JSON
// in `cleave.record`. A file may come from anyone: each value is checked.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "data/dataset.h"
#include "exec/session.h"
#include "infer/hugging_face.h"
#include "infer/losses.h"
#include "infer/weights.h"
#include "io/formats.h"
#include "io/json.h"
#include "io/shown.h"
#include "nn/graph_file.h"
#include "nn/ports.h"
#include "onnx/weights.h"
#include "ops/product/lora.h"

#define MODEL_KEY "cleave.model"
#define TABLE_KEY "cleave.table"
#define RECORD_KEY "cleave.record"

enum { MOST_CLASSES = 1 << 24 };

// ---- written ----------------------------------------------------------------------------------------------

static json_t *dim_item(const void *from, size_t i) {
    return json_integer((json_int_t)((const int64_t *)from)[i]);
}
static json_t *float_item(const void *from, size_t i) {
    return json_real((double)((const float *)from)[i]);
}
static json_t *name_item(const void *from, size_t i) {
    return json_string(clv_dataset_class_name(from, (int)i));
}
static json_t *loss_item(const void *from, size_t i) {
    const char *name = ((const clv__target_loss *)from)[i].loss->name;
    return json_string(name ? name : "");
}

static json_t *dims_json(const int64_t *dims) {
    size_t n = 0;
    while (n < CLV_MAX_RANK - 1 && dims[n]) n++;
    return clv__json_list(dims, n, dim_item);
}

static json_t *norm_json(const clv_dataset *dataset, const float *each) {
    return clv__json_list(each, (size_t)dataset->norm.channels, float_item);
}

static bool set_data(json_t *root, const clv_dataset *dataset) {
    size_t n = 0;
    while (clv_dataset_class_name(dataset, (int)n)) n++;
    return (!n || clv__json_set(root, "names", clv__json_list(dataset, n, name_item))) &&
           (!dataset->norm.channels || (clv__json_set(root, "mean", norm_json(dataset, dataset->norm.mean)) &&
                                        clv__json_set(root, "std", norm_json(dataset, dataset->norm.std)))) &&
           (!dataset->resize || clv__json_set(root, "resize", json_integer((json_int_t)dataset->resize))) &&
           (!dataset->exif_transpose || clv__json_set(root, "exif_transpose", json_true()));
}

static bool set_model(json_t *root, const clv_model *model) {
    return !model->build || (clv__json_set(root, "input", dims_json(model->input)) &&
                             clv__json_set(root, "target", dims_json(model->target)) &&
                             clv__json_set(root, "classes", json_integer((json_int_t)model->classes)));
}

/** A list for each target: what labels of its classes count. Without weights of any, nothing. */
static bool set_class_weights(json_t *root, const clv_model *model, const clv__target_loss *losses) {
    json_t *list = json_array();
    bool any = false, good = list;
    for (int i = 0; good && i < clv_model_port_count(model, CLV_PORT_TARGET); i++) {
        const float *weights = losses[i].class_weights;
        const int64_t classes = weights ? clv_model_port_get(model, CLV_PORT_TARGET, i).classes : 0;
        good = json_array_append_new(list, clv__json_list(weights, (size_t)classes, float_item)) == 0;
        any = any || weights;
    }
    if (good && any) return clv__json_set(root, "class_weights", list);
    json_decref(list);
    return good;
}

/** The record of a training's weights, to be freed; NULL: no memory. */
static char *record_of(const clv_train_config *config, const clv__target_loss *losses) {
    const clv_model *model = config->model;
    const size_t n = (size_t)clv_model_port_count(model, CLV_PORT_TARGET);
    json_t *root = json_object();
    clv__text text = {0};
    const bool good =
        clv__json_set(root, "version", json_string(clv_version())) && set_model(root, model) &&
        (!config->train || set_data(root, config->train)) &&
        clv__json_set(root, "losses", clv__json_list(losses, n, loss_item)) &&
        set_class_weights(root, model, losses) &&
        clv__json_set(root, "precision", json_string(clv__precision_words[config->precision])) &&
        clv__json_write(root, JSON_COMPACT | JSON_REAL_PRECISION(9), &text);
    json_decref(root);
    char *record = good ? clv__strdup(clv__text_get(&text)) : NULL;
    clv__text_reset(&text);
    return record;
}

/** JSON is UTF-8; of a folder's name that is not, there is nothing to keep. */
static clv_status check_names(clv__error *error, const clv_dataset *dataset) {
    const char *name;
    for (int i = 0; dataset && (name = clv_dataset_class_name(dataset, i)); i++) {
        clv__shown_text shown;
        if (!clv__utf8_valid(name))
            CLV_FAIL(error, CLV_E_VALUE,
                     "class '%s': its name is not UTF-8, and weights keep the names of classes; "
                     "rename its folder",
                     clv__shown(name, &shown));
    }
    return CLV_OK;
}

clv_status clv_weights_describe(clv_session *session, const clv_train_config *config) {
    CLV_TRY(CLV__GIVEN(NULL, session));
    clv__error *error = clv__runtime_error_of(session->runtime);
    CLV_TRY(CLV__USABLE(error, config));
    if (!config->model) CLV_FAIL(error, CLV_E_VALUE, "clv_weights_describe: model is NULL");
    if (config->precision < 0 || config->precision > CLV_PRECISION_MIXED_BF16)
        CLV_FAIL(error, CLV_E_VALUE, "clv_weights_describe: there is no precision %d",
                 (int)config->precision);
    clv__target_loss losses[CLV_MAX_PORTS];
    CLV_TRY(clv__model_check(error, config->model));
    CLV_TRY(clv__losses_find(session->runtime, config, losses));
    CLV_TRY(check_names(error, config->train));
    const char *table = config->train ? clv_dataset_info_get(config->train).table : NULL;
    clv__session_about about = {.model = clv__strdup(config->model->name),
                                .table = clv__strdup(table),
                                .record = record_of(config, losses),
                                .lora = clv__strdup(config->lora.layers),
                                .whole = clv__strdup(config->weights_except),
                                .lora_rank = clv__lora_rank(config->lora.rank),
                                .lora_alpha = config->lora.alpha};
    const bool whole = about.record && !about.table == !table && !about.model == !config->model->name &&
                       !about.lora == !config->lora.layers && !about.whole == !config->weights_except;
    if (whole) {
        clv__session_about_reset(&session->about);
        session->about = about;
        return CLV_OK;
    }
    clv__session_about_reset(&about);
    CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for what weights tell of themselves");
}

clv_status clv__weights_tell(const clv_session *session, clv_archive *archive) {
    const clv__session_about *about = &session->about;
    if (about->model) CLV_TRY(clv_archive_set_text(archive, MODEL_KEY, about->model));
    if (about->table) CLV_TRY(clv_archive_set_text(archive, TABLE_KEY, about->table));
    return about->record ? clv_archive_set_text(archive, RECORD_KEY, about->record) : CLV_OK;
}

clv_status clv__weights_keep(clv_session *session, const clv_archive *archive) {
    const char *model = clv_archive_text(archive, MODEL_KEY), *table = clv_archive_text(archive, TABLE_KEY),
               *record = clv_archive_text(archive, RECORD_KEY);
    if (session->about.model || !model) return CLV_OK;
    clv__session_about about = {
        .model = clv__strdup(model), .table = clv__strdup(table), .record = clv__strdup(record)};
    const bool whole = about.model && !about.table == !table && !about.record == !record;
    if (whole) {
        session->about = about;
        return CLV_OK;
    }
    clv__session_about_reset(&about);
    CLV_FAIL(clv__runtime_error_of(clv_session_info_get(session).runtime), CLV_E_HOST_MEMORY,
             "no host memory for what weights tell of themselves");
}

// ---- read -------------------------------------------------------------------------------------------------

/** What is handed out, and its memory. */
typedef struct told {
    clv_weights_info info; // first
    clv__arena arena;
} told;

static void told_end(void *what) {
    clv__arena_reset(&((told *)what)->arena);
}

static bool read_text(told *own, const char *text, const char **out) {
    *out = text ? clv__arena_strdup(&own->arena, text) : NULL;
    return !text || *out;
}

/** A list of dimensions; none where it is not there. NULL: it is one, else what is wrong. */
static const char *read_dims(const json_t *list, int64_t *dims) {
    int64_t numel = 1;
    if (list && (!json_is_array(list) || json_array_size(list) > CLV_MAX_RANK - 1))
        return "a shape is no list of dimensions";
    for (size_t i = 0; i < json_array_size(list); i++) {
        dims[i] = json_integer_value(json_array_get(list, i));
        if (dims[i] < 1 || dims[i] > INT32_MAX || (numel *= dims[i]) > INT32_MAX)
            return "a dimension is no number that a shape can have";
    }
    return NULL;
}

static const char *read_classes(const json_t *root, int64_t *out) {
    const json_t *classes = json_object_get(root, "classes");
    *out = json_integer_value(classes);
    return classes && (!json_is_integer(classes) || *out < 0 || *out > MOST_CLASSES)
               ? "'classes' is no number of classes"
               : NULL;
}

static const char *read_names(told *own, const json_t *list) {
    const size_t n = json_array_size(list);
    if (list && (!json_is_array(list) || !n || n > MOST_CLASSES)) return "'names' is no list of names";
    if (!list) return NULL;
    const char **names = clv__arena_alloc(&own->arena, n, sizeof *names);
    if (!names) return "";
    for (size_t i = 0; i < n; i++) {
        const char *name = json_string_value(json_array_get(list, i));
        if (!name) return "'names' is no list of names";
        if (!read_text(own, name, &names[i])) return "";
    }
    own->info.names = names;
    own->info.n_names = (int)n;
    return NULL;
}

static const char *read_scales(told *own, const json_t *mean, const json_t *std) {
    const size_t n = json_array_size(mean);
    if (!mean && !std) return NULL;
    if ((n != 1 && n != 3) || json_array_size(std) != n) return "'mean' and 'std' are not of 1 or 3 channels";
    for (size_t i = 0; i < n; i++) {
        const float m = (float)json_number_value(json_array_get(mean, i)),
                    s = (float)json_number_value(json_array_get(std, i));
        if (!isfinite(m) || !isfinite(s) || !(s > 0)) return "'mean' or 'std' is no number that can be used";
        own->info.mean[i] = m;
        own->info.std[i] = s;
    }
    own->info.channels = (int)n;
    return NULL;
}

/** NULL: it is read; "": no memory; else what is wrong. */
static const char *read_record(told *own, const json_t *root) {
    clv_weights_info *info = &own->info;
    const json_t *resize = json_object_get(root, "resize");
    const char *wrong = json_is_object(root) ? NULL : "it is no JSON object";
    if (!wrong) wrong = read_dims(json_object_get(root, "input"), info->input);
    if (!wrong) wrong = read_dims(json_object_get(root, "target"), info->target);
    if (!wrong) wrong = read_classes(root, &info->classes);
    if (!wrong) wrong = read_names(own, json_object_get(root, "names"));
    if (!wrong) wrong = read_scales(own, json_object_get(root, "mean"), json_object_get(root, "std"));
    if (!wrong && resize && (json_integer_value(resize) < 1 || json_integer_value(resize) > INT32_MAX))
        wrong = "'resize' is no size of a picture";
    if (wrong) return wrong;
    info->resize = json_integer_value(resize);
    info->exif_transpose = json_is_true(json_object_get(root, "exif_transpose"));
    const json_t *losses = json_object_get(root, "losses");
    return read_text(own, json_string_value(json_array_get(losses, 0)), &info->loss) &&
                   read_text(own, json_string_value(json_object_get(root, "precision")), &info->precision) &&
                   read_text(own, json_string_value(json_object_get(root, "version")), &info->version)
               ? NULL
               : "";
}

/** The classes of a table have their names in its record. */
static const char *read_table_names(told *own) {
    json_t *root = own->info.table ? json_loads(own->info.table, JSON_REJECT_DUPLICATES, NULL) : NULL;
    const json_t *classes = json_object_get(root, "classes");
    const char *wrong = json_array_size(classes) ? read_names(own, classes) : NULL;
    json_decref(root);
    return wrong;
}

bool clv__checkpoint_is(const clv_archive *archive) {
    return clv_archive_text(archive, "position.step") != NULL;
}

static clv_status read_texts(const clv_archive *archive, const char *path, clv__error *error, told *own) {
    const char *text = clv_archive_text(archive, RECORD_KEY), *wrong = NULL;
    json_error_t why;
    json_t *root = text ? json_loads(text, JSON_REJECT_DUPLICATES, &why) : NULL;
    if (text) wrong = read_record(own, root);
    json_decref(root);
    bool whole = read_text(own, clv_archive_text(archive, MODEL_KEY), &own->info.model) &&
                 read_text(own, clv_archive_text(archive, TABLE_KEY), &own->info.table);
    if (whole && !wrong && !own->info.names) wrong = read_table_names(own);
    own->info.checkpoint = clv__checkpoint_is(archive);
    if (!whole || (wrong && !*wrong))
        CLV_FAIL(error, CLV_E_HOST_MEMORY, "'%s': no host memory for what it tells of its weights", path);
    if (wrong)
        CLV_FAIL(error, CLV_E_FORMAT, "'%s' is damaged: of what it tells of its weights (" RECORD_KEY "), %s",
                 path, wrong);
    return CLV_OK;
}

clv_status clv_weights_info_read(clv_runtime *runtime, const char *path, clv_weights_info **out) {
    CLV_TRY(CLV__GIVEN(NULL, runtime));
    clv__error *error = clv__runtime_error_of(runtime);
    CLV_TRY(CLV__USABLE(error, path));
    CLV_TRY(CLV__USABLE(error, out));
    clv_archive *archive = NULL;
    *out = NULL;
    if (clv__onnx_is_file(path)) // which is the model, too
        CLV_TRY(clv_archive_create(runtime, &archive));
    else
        CLV_TRY(clv__safetensors_read_part(runtime, path, CLV__TEXTS_ALONE, &archive));
    clv_gpt_config hugging_face = {0};
    if (clv__onnx_is_file(path)) CLV_TRY(clv_archive_set_text(archive, MODEL_KEY, path));
    if (!clv_archive_text(archive, MODEL_KEY) && !clv__checkpoint_is(archive)) {
        // what is wrong with it is told by who reads sizes of it
        if (clv__hugging_face_read(runtime, path, &hugging_face) == CLV_OK && hugging_face.model &&
            clv_archive_set_text(archive, MODEL_KEY, hugging_face.model) != CLV_OK)
            return clv_archive_destroy(archive), CLV_E_HOST_MEMORY;
    }
    told *own = clv__owned(sizeof *own, told_end);
    clv_status status = own ? read_texts(archive, path, error, own)
                            : clv__error_set(error, CLV_E_HOST_MEMORY, "'%s': no host memory", path);
    clv_archive_destroy(archive);
    if (status == CLV_OK)
        *out = &own->info;
    else
        clv_free(own);
    return status;
}
