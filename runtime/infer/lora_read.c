// SPDX-License-Identifier: Apache-2.0
// Files of adapters, of PEFT or of lora.c, read: into a session's adapters, or merged into its weights. Files may come from anyone:
// all names and shapes are checked before anything is changed.
// A weight that a matmul reads as [in, out] is merged transposed. Shapes tell which are; of square ones `cleave.in_out` in the
// metadata, or PEFT's fan_in_fan_out.
// Source: peft.LoraConfig, release 0.21.
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "device/device.h"
#include "infer/lora.h"
#include "infer/names.h"
#include "io/array.h"
#include "io/file.h"
#include "io/json.h"
#include "ops/product/lora.h"

enum { MOST_CONFIG = 1 << 20, NAME_BYTES = 1200 };

/** A name of the file, as the session has it. */
static const char *name_of(const clv_array *array) {
    const size_t n = strlen(CLV__LORA_PREFIX);
    return strncmp(array->name, CLV__LORA_PREFIX, n) ? array->name : array->name + n;
}

static const clv_array *find(const clv__lora *lora, const char *name) {
    char full[NAME_BYTES + 32];
    snprintf(full, sizeof full, CLV__LORA_PREFIX "%s", name);
    const clv_array *array = clv_archive_find(lora->archive, full);
    return array ? array : clv_archive_find(lora->archive, name);
}

bool clv__lora_has(const clv__lora *lora, const char *name) {
    return lora && !clv__lora_is(name) && find(lora, name);
}

/** What makes it another kind of adapter; NULL: nothing. */
static const char *stranger(const json_t *root) {
    const char *type = json_string_value(json_object_get(root, "peft_type"));
    if (!type || strcmp(type, "LORA")) return "is of another kind than LORA";
    if (json_is_true(json_object_get(root, "use_dora"))) return "is a DoRA";
    if (json_object_size(json_object_get(root, "alpha_pattern"))) return "has another alpha for some layers";
    return NULL;
}

static clv_status take_config(clv__error *error, const char *path, const json_t *root, clv__lora *out) {
    const json_t *rank = json_object_get(root, "r"), *alpha = json_object_get(root, "lora_alpha");
    const char *strange = root ? stranger(root) : NULL;
    if (!json_is_object(root))
        CLV_FAIL(error, CLV_E_FORMAT, "'%s' is no JSON object, as PEFT writes it", path);
    if (strange) CLV_FAIL(error, CLV_E_UNSUPPORTED, "'%s': the adapter %s", path, strange);
    if (!json_is_integer(rank) || json_integer_value(rank) < 1 || !json_is_number(alpha) ||
        !isfinite(json_number_value(alpha)))
        CLV_FAIL(error, CLV_E_FORMAT, "'%s' lacks a rank `r` of at least 1, or `lora_alpha`", path);
    out->alpha = json_number_value(alpha);
    out->root = json_is_true(json_object_get(root, "use_rslora"));
    out->in_out = json_is_true(json_object_get(root, "fan_in_fan_out"));
    return CLV_OK;
}

static clv_status read_config(clv__error *error, const char *path, clv__lora *out) {
    clv__input input;
    CLV_TRY(clv__input_open(error, path, &input));
    clv_status status = CLV_OK;
    char *text = input.bytes <= MOST_CONFIG ? clv__alloc(1, (size_t)input.bytes + 1) : NULL;
    if (!text)
        status = clv__error_set(error, CLV_E_FORMAT, "'%s' is too large for what PEFT writes there", path);
    if (status == CLV_OK) status = clv__input_read(&input, 0, text, (size_t)input.bytes);
    json_t *root = status == CLV_OK ? json_loadb(text, (size_t)input.bytes, 0, NULL) : NULL;
    if (status == CLV_OK) status = take_config(error, path, root, out);
    json_decref(root);
    free(text);
    clv__input_close(&input);
    return status;
}

clv_status clv__lora_open(clv_runtime *runtime, const char *path, clv__lora *out) {
    clv__error *error = clv__runtime_error_of(runtime);
    struct stat found;
    const bool folder = stat(path, &found) == 0 && S_ISDIR(found.st_mode);
    const char *slash = strrchr(path, '/');
    char tensors[4096], config[4096];
    *out = (clv__lora){.path = path};
    if (strlen(path) > 4000) CLV_FAIL(error, CLV_E_IO, "the name of a file of adapters is too long");
    snprintf(tensors, sizeof tensors, folder ? "%s/" CLV__LORA_TENSORS : "%s", path);
    if (folder)
        snprintf(config, sizeof config, "%s/" CLV__LORA_CONFIG, path);
    else
        snprintf(config, sizeof config, "%.*s" CLV__LORA_CONFIG, slash ? (int)(slash - path + 1) : 0, path);
    CLV_TRY(read_config(error, config, out));
    return clv_safetensors_read(runtime, tensors, &out->archive);
}

void clv__lora_close(clv__lora *lora) {
    clv_archive_destroy(lora->archive);
    *lora = (clv__lora){0};
}

/** The weight that an adapter of this name is of; -1: the session has none. */
static int weight_of(const clv_session *session, const char *adapter) {
    char name[NAME_BYTES];
    const size_t stem = strlen(adapter) - strlen("lora_A.weight");
    snprintf(name, sizeof name, "%.*sweight", (int)stem, adapter);
    int at = clv_session_find(session, name);
    if (at < 0 && stem) {
        name[stem - 1] = 0; // a weight of another name
        at = clv_session_find(session, name);
    }
    return at >= 0 && clv_session_get(session, at).category == CLV_PARAMETERS ? at : -1;
}

/** Is the weight [in, out]? */
static bool turned(const clv__lora *lora, const clv_session_tensor *weight, int64_t in, int64_t out) {
    if (in != out) return weight->shape.dims[0] == in;
    const char *text = clv_archive_text(lora->archive, CLV__LORA_IN_OUT);
    json_t *list = text ? json_loads(text, 0, NULL) : NULL, *item;
    size_t i;
    bool told = !list && lora->in_out;
    json_array_foreach(list, i, item) told |=
        json_is_string(item) && !strcmp(json_string_value(item), weight->name);
    json_decref(list);
    return told;
}

/** Do A and B fit the weight? */
static bool fits_weight(const clv_session_tensor *weight, const clv_array *a, const clv_array *b) {
    const clv_shape *w = &weight->shape;
    if (!a || !b || a->shape.rank != 2 || b->shape.rank != 2 || w->rank != 2) return false;
    const int64_t in = a->shape.dims[1], out = b->shape.dims[0];
    return a->shape.dims[0] == b->shape.dims[1] && a->shape.dims[0] > 0 && a->type == CLV_DTYPE_F32 &&
           b->type == CLV_DTYPE_F32 &&
           ((w->dims[0] == out && w->dims[1] == in) || (w->dims[0] == in && w->dims[1] == out));
}

/** The other half of a pair, and both. */
static void pair_of(const clv__lora *lora, const char *adapter, const clv_array **a, const clv_array **b) {
    char name[NAME_BYTES];
    const size_t letter = strlen(adapter) - strlen("A.weight");
    snprintf(name, sizeof name, "%s", adapter);
    name[letter] = 'A';
    *a = find(lora, name);
    name[letter] = 'B';
    *b = find(lora, name);
}

static bool passed_over(const char *name) {
    static const char counter[] = ".num_batches_tracked";
    const size_t length = strlen(name), tail = sizeof counter - 1;
    return length >= tail && !strcmp(name + length - tail, counter);
}

/** One tensor of the file: what does not fit goes to the lists. */
static void fit_one(const clv_session *session, const clv__lora *lora, const clv_array *array,
                    clv__told_names *strange, clv__told_names *shapes) {
    const char *name = name_of(array);
    const bool adapter = clv__lora_is(name), own = clv__lora_of(session).layers != NULL;
    const int at = adapter && !own ? weight_of(session, name) : clv_session_find(session, name);
    char is[96], wanted[96], text[512];
    if (passed_over(name)) return;
    if (strlen(name) >= NAME_BYTES - 32 || at < 0 ||
        clv_session_get(session, at).category != CLV_PARAMETERS) {
        clv__told_add(strange, name);
        return;
    }
    const clv_session_tensor tensor = clv_session_get(session, at);
    const clv_array *a, *b;
    if (adapter && !own) {
        pair_of(lora, name, &a, &b);
        if (fits_weight(&tensor, a, b)) return;
    } else if (clv_shape_equal(&tensor.shape, &array->shape) && tensor.dtype == array->type) {
        return;
    }
    snprintf(text, sizeof text, "'%.200s' is %s beside '%.200s' %s", name,
             clv_shape_text(&array->shape, is, sizeof is), tensor.name,
             clv_shape_text(&tensor.shape, wanted, sizeof wanted));
    clv__told_add_text(shapes, text);
}

clv_status clv__lora_fits(clv_session *session, const clv__lora *lora) {
    clv__error *error = clv__runtime_error_of(clv_session_info_get(session).runtime);
    clv__told_names strange = {0}, shapes = {0}, missing = {0};
    const clv_lora own = clv__lora_of(session);
    bool any = false;
    for (size_t i = 0; clv_archive_get(lora->archive, i); i++) {
        const clv_array *array = clv_archive_get(lora->archive, i);
        any |= clv__lora_is(name_of(array));
        fit_one(session, lora, array, &strange, &shapes);
    }
    for (int i = 0; own.layers && i < clv_session_info_get(session).n_tensors; i++) {
        const clv_session_tensor tensor = clv_session_get(session, i);
        if (tensor.category == CLV_PARAMETERS && clv__lora_is(tensor.name) && !find(lora, tensor.name))
            clv__told_add(&missing, tensor.name);
    }
    if (strange.n || shapes.n || missing.n)
        CLV_FAIL(error, shapes.n && !strange.n && !missing.n ? CLV_E_SHAPE : CLV_E_NOT_FOUND,
                 "'%s' is a LoRA of another model, or of other layers:%s%s%s%s%s%s", lora->path,
                 missing.n ? " missing " : "", missing.text, strange.n ? " unexpected " : "", strange.text,
                 shapes.n ? " " : "", shapes.text);
    if (!any) CLV_FAIL(error, CLV_E_FORMAT, "'%s' holds no adapters of a LoRA", lora->path);
    const double rank = (double)own.rank, theirs = lora->alpha / (lora->root ? sqrt(rank) : rank);
    if (own.layers && fabs(theirs - clv__lora_scale(own.rank, own.alpha)) > 1e-12 * theirs)
        CLV_FAIL(error, CLV_E_VALUE,
                 "'%s' was trained with an alpha of %g; go on with that (clv_train_config.lora.alpha %g)",
                 lora->path, theirs * rank, theirs * rank);
    return CLV_OK;
}

/** Add a pair of the file to the session's weight. */
static clv_status merge_pair(clv_session *session, const clv__lora *lora, const char *adapter) {
    const clv_array *a, *b;
    const int at = weight_of(session, adapter);
    const clv_session_tensor tensor = clv_session_get(session, at);
    pair_of(lora, adapter, &a, &b);
    const int64_t rank = a->shape.dims[0], in = a->shape.dims[1], out = b->shape.dims[0];
    const clv__adapted w = {.in = in,
                            .out = out,
                            .rank = rank,
                            .in_out = turned(lora, &tensor, in, out),
                            .scale = lora->alpha / (lora->root ? sqrt((double)rank) : (double)rank),
                            .a = a->data,
                            .b = b->data};
    float *values = clv__alloc(1, tensor.bytes ? tensor.bytes : 1);
    if (!values)
        CLV_FAIL(clv__runtime_error_of(clv_session_info_get(session).runtime), CLV_E_HOST_MEMORY,
                 "no host memory to merge '%s'", tensor.name);
    clv_status status = clv_session_read(session, at, values, tensor.bytes);
    if (status == CLV_OK && !clv__lora_add_product(&w, values))
        status = clv__error_set(clv__runtime_error_of(clv_session_info_get(session).runtime),
                                CLV_E_HOST_MEMORY, "no host memory to merge '%s'", tensor.name);
    if (status == CLV_OK) status = clv_session_write(session, at, values, tensor.bytes);
    free(values);
    return status;
}

/** One tensor of the file: a whole one or, where that is asked for, A of a pair that is merged. */
static clv_status take_one(clv_session *session, const clv__lora *lora, const clv_array *array, bool pairs) {
    const char *name = name_of(array);
    const bool merges = clv__lora_is(name) && !clv__lora_of(session).layers;
    if (passed_over(name) || merges != pairs) return CLV_OK;
    if (!merges)
        return clv_session_write(session, clv_session_find(session, name), array->data,
                                 clv_array_bytes(array));
    return name[strlen(name) - strlen("A.weight")] == 'A' ? merge_pair(session, lora, name) : CLV_OK;
}

clv_status clv__lora_take(clv_session *session, const clv__lora *lora) {
    for (int pairs = 0; pairs < 2; pairs++) // whole tensors first: a pair may be beside one
        for (size_t i = 0; clv_archive_get(lora->archive, i); i++)
            CLV_TRY(take_one(session, lora, clv_archive_get(lora->archive, i), pairs));
    return CLV_OK;
}
