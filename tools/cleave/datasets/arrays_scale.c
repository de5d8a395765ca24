// SPDX-License-Identifier: Apache-2.0
// Numbers that named arrays are to be learnt as: the model tells them by their mean and deviation, so that
// prices of hundreds of thousands are learnt as well as numbers near 0. What it tells is in their units; the
// loss counts squares of deviations.
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
