// SPDX-License-Identifier: Apache-2.0
// What always the commonest class, or the mean of what is tested, would get in the metrics that `eval` tells
// of a model: a line beside them.
#include "training/training.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/** Numbers that a metric is of: those of a target from `first` on. */
typedef struct numbers {
    int which; // of the dataset's targets
    int64_t first, n;
    int64_t numel; // of the whole target
} numbers;

/** Those of a metric's target: a column of a table, or a named array; NULL: the first numbers there are. */
static bool find_numbers(const clv_dataset *dataset, const char *target, numbers *out) {
    const clv_dataset_info info = clv_dataset_info_get(dataset);
    for (int i = 0; i < info.n_targets; i++) {
        const clv_port port = clv_dataset_port_get(dataset, CLV_PORT_TARGET, i);
        const clv_shape one = clv_port_shape(&port, 1);
        const int64_t numel = clv_shape_numel(&one);
        if (port.classes) continue;
        *out = (numbers){.which = i, .n = numel, .numel = numel};
        for (int64_t k = 0; target && info.number_names && k < numel; k++)
            if (!strcmp(info.number_names[k], target)) return out->first = k, out->n = 1, true;
        if (!target || (port.name && !strcmp(port.name, target))) return true;
    }
    return false;
}

/** What one deviation of number k is in the table's units; 1 where targets are as they stand. */
static double scale_of(const json_t *record, int64_t k) {
    const json_t *scale = json_array_get(json_object_get(record, "target_scales"), (size_t)k);
    return scale ? json_number_value(scale) : 1;
}

/** The mean's error in these numbers: absolute, and squared. `row` and `means` are room for them. */
static void measure(const clv_dataset *dataset, const numbers *of, const json_t *record, float *row,
                    double *means, double *absolute, double *squared) {
    const clv_dataset_info info = clv_dataset_info_get(dataset);
    void *to[2 * CLV_MAX_PORTS] = {NULL};
    to[info.n_inputs + of->which] = row;
    *absolute = *squared = 0;
    for (int64_t i = 0; i < info.count; i++) {
        clv_dataset_read(dataset, i, to);
        for (int64_t k = 0; k < of->n; k++)
            means[k] += ((double)row[of->first + k] - means[k]) / (double)(i + 1);
    }
    for (int64_t i = 0; i < info.count; i++) {
        clv_dataset_read(dataset, i, to);
        for (int64_t k = 0; k < of->n; k++) {
            const double off = ((double)row[of->first + k] - means[k]) * scale_of(record, of->first + k);
            *absolute += fabs(off);
            *squared += off * off;
        }
    }
    *absolute /= (double)(info.count * of->n);
    *squared /= (double)(info.count * of->n);
}

/** The metric of always the mean; NaN: it is none of mae and rmse. */
static double mean_gets(const clv_dataset *dataset, const json_t *record, const clv_metric_value *value) {
    numbers of;
    double absolute = (double)NAN, squared = (double)NAN;
    const bool root = !strcmp(value->name, "rmse");
    if ((!root && strcmp(value->name, "mae") != 0) || !find_numbers(dataset, value->target, &of))
        return (double)NAN;
    float *row = calloc((size_t)of.numel, sizeof *row);
    double *means = calloc((size_t)of.n, sizeof *means);
    if (row && means) measure(dataset, &of, record, row, means, &absolute, &squared);
    free(row);
    free(means);
    return root ? sqrt(squared) : absolute;
}

static void say_mean(FILE *out, const clv_dataset *tested, const clv_metrics *metrics) {
    char text[CLV_MOST_METRICS * (CLI_METRIC_BYTES + 32)] = "", name[CLI_METRIC_BYTES];
    const char *table = clv_dataset_info_get(tested).table;
    json_t *record = table ? cli_json_read(table, strlen(table)) : NULL;
    for (int i = 0; i < metrics->n_values; i++) {
        const double error = mean_gets(tested, record, &metrics->values[i]);
        const size_t used = strlen(text);
        if (!isnan(error))
            snprintf(text + used, sizeof text - used, "%s%s %s", used ? ", " : "",
                     cli_metric_name(&metrics->values[i], name), cli_figure(error));
    }
    json_decref(record);
    if (*text) screen_say(out, "always the mean: %s", text);
}

/** Of all targets that are counted as right or wrong, as the accuracy of the test set is. */
static void say_commonest(FILE *out, clv_runtime *runtime, const clv_dataset *tested) {
    int64_t correct = 0, targets = 0;
    bool classes = false;
    char of[CLV_MAX_PORTS * 72] = ""; // of several targets, those that are counted
    const int n = clv_dataset_info_get(tested).n_targets;
    for (int i = 0; i < n; i++) classes |= clv_dataset_port_get(tested, CLV_PORT_TARGET, i).classes > 0;
    for (int i = 0; i < n; i++) {
        clv_baseline one;
        if (classes && !clv_dataset_port_get(tested, CLV_PORT_TARGET, i).classes) continue;
        if (clv_dataset_baseline(runtime, tested, i, &one) != CLV_OK) return;
        correct += one.correct;
        targets += one.targets;
        const size_t used = strlen(of);
        if (n > 1)
            snprintf(of + used, sizeof of - used, "%s%.64s", used ? ", " : " of ",
                     clv_dataset_port_get(tested, CLV_PORT_TARGET, i).name);
    }
    if (targets)
        screen_say(out, "always %s%s: accuracy %.4f",
                   !classes                                              ? "each label's commoner value"
                   : clv_dataset_info_get(tested).dtype == CLV_DTYPE_I32 ? "the commonest token"
                                                                         : "the commonest class",
                   of, (double)correct / (double)targets);
}

void cli_baseline_say(FILE *out, clv_runtime *runtime, const clv_dataset *tested,
                      const clv_metrics *metrics) {
    if (!isnan(metrics->accuracy)) say_commonest(out, runtime, tested);
    say_mean(out, tested, metrics);
}
