// SPDX-License-Identifier: Apache-2.0
// Targets of named arrays that are numbers are standardized by their mean and deviation, so that prices of
// hundreds of thousands are learnt as well as numbers near 0. Results are in the targets' own units; the loss
// is of standardized numbers.
#include "datasets/datasets.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

/** Is it numbers, with the loss that deviations are for? */
static bool is_scaled(const cli_source *source, int i) {
    const cli_fields *fields = &source->fields;
    const int at = fields->n_inputs + i;
    const clv_array *array = clv_archive_find(source->archive, fields->name[at]);
    const clv_loss *loss = fields->loss[i].loss;
    return array && array->type == CLV_DTYPE_F32 && !fields->port[at].classes &&
           (!loss || loss == clv_loss_find("mse"));
}

/** Of the rows that are trained on, all numbers of an array together. */
static void measure(const clv_array *array, int64_t rows, double *mean, double *scale) {
    const int64_t n = rows * (int64_t)(clv_array_bytes(array) / sizeof(float)) / array->shape.dims[0];
    const float *values = array->data;
    double squares = 0;
    *mean = *scale = 0;
    for (int64_t k = 0; k < n; k++) {
        const double off = (double)values[k] - *mean;
        *mean += off / (double)(k + 1);
        squares += off * ((double)values[k] - *mean);
    }
    *scale = n ? sqrt(squares / (double)n) : 0;
    if (!(*scale > 0 && isfinite(*scale))) *mean = *scale = 0;
}

/** As weights say that are begun with, or tested; those that say nothing tell numbers as they stand. */
static void take(cli_source *source) {
    clv_archive *archive = NULL;
    cli_fields *fields = &source->fields;
    if (clv_safetensors_read(source->runtime, cli_telling(source->args), &archive) != CLV_OK) return;
    const char *text = clv_archive_text(archive, "cleave.fields");
    json_t *root = text ? cli_json_read(text, strlen(text)) : NULL, *one;
    size_t k;
    json_array_foreach(json_object_get(root, "targets"), k, one) {
        const char *name = json_string_value(json_object_get(one, "name"));
        for (int i = 0; name && i < fields->n_targets; i++)
            if (!strcmp(name, fields->name[fields->n_inputs + i]))
                cli_field_scale(one, &fields->mean[i], &fields->scale[i]);
    }
    json_decref(root);
    clv_archive_destroy(archive);
}

/** How far the numbers of an input go, of a column of [N,D] or of all of another shape. */
typedef struct reach {
    double most;
    char what[128];
} reach;

static double most_of(const float *values, int64_t n, int64_t step) {
    double most = 0;
    for (int64_t i = 0; i < n; i++) most = fmax(most, fabs((double)values[i * step]));
    return most;
}

/** The nearest and the farthest of an input's columns; what is 0 throughout has no size. */
static void see_input(const clv_array *array, const char *name, int64_t rows, reach *low, reach *high) {
    const bool flat = array->shape.rank == 2 && array->shape.dims[1] > 1;
    const int64_t columns = flat ? array->shape.dims[1] : 1,
                  n = flat ? rows : rows * clv_shape_numel(&array->shape) / array->shape.dims[0];
    for (int64_t c = 0; c < columns; c++) {
        const double most = most_of((const float *)array->data + c, n, columns);
        reach one = {.most = most};
        if (flat)
            snprintf(one.what, sizeof one.what, "column %lld of '%s'", (long long)c, name);
        else
            snprintf(one.what, sizeof one.what, "'%s'", name);
        if (most > 0 && most < low->most) *low = one;
        if (most > high->most && isfinite(most)) *high = one;
    }
}

void cli_tell_unlike(const cli_source *source) {
    enum { UNLIKE = 1000 }; // times as far
    const cli_fields *fields = &source->fields;
    reach low = {.most = INFINITY}, high = {.most = 0};
    if (source->args->quiet || !source->archive || !source->train || source->model->build_all ||
        source->model->dtype == CLV_DTYPE_I32)
        return;
    for (int i = 0; i < fields->n_inputs; i++) {
        const clv_array *array = clv_archive_find(source->archive, fields->name[i]);
        if (array && array->type == CLV_DTYPE_F32)
            see_input(array, fields->name[i], clv_dataset_info_get(source->train).count, &low, &high);
    }
    if (high.most < UNLIKE * low.most) return;
    fprintf(stderr,
            "inputs of very unlike sizes: %s goes up to %.4g, %s to %.4g, and inputs of arrays are not "
            "standardized: let numpy do it, x = (x - mean) / std of each column%s\n",
            high.what, high.most, low.what, low.most,
            source->args->inputs ? "" : ", or name the inputs with --inputs");
}

bool cli_field_scale(const json_t *target, double *mean, double *scale) {
    const json_t *m = json_object_get(target, "mean"), *s = json_object_get(target, "scale");
    *mean = *scale = 0;
    if (!m && !s) return true;
    if (!json_is_number(m) || !json_is_number(s)) return false;
    if (!isfinite(json_number_value(m)) || !isfinite(json_number_value(s)) || json_number_value(s) < 0)
        return false;
    *mean = json_number_value(m);
    *scale = json_number_value(s);
    return true;
}

void cli_scale_targets(cli_source *source, int64_t known) {
    cli_fields *fields = &source->fields;
    const cli_args *args = source->args;
    const bool own = source->model->build_all != NULL; // its outputs are what it makes of them
    if (args->weights && !own) take(source);
    for (int i = 0; i < fields->n_targets; i++) {
        const clv_array *array = clv_archive_find(source->archive, fields->name[fields->n_inputs + i]);
        if (!own && !args->weights && source->with_train && !args->no_standardize && is_scaled(source, i))
            measure(array, known, &fields->mean[i], &fields->scale[i]);
        clv_train_loss *loss = &fields->trained[i];
        *loss = fields->loss[i];
        const double scale = fields->scale[i] > 0 ? fields->scale[i] : 1;
        loss->weight = (loss->weight > 0 ? loss->weight : 1) / (scale * scale);
    }
}
