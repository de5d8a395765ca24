// SPDX-License-Identifier: Apache-2.0
// Is what is tested on of the same kind as what is trained on? Of a table whose rows are sorted the last part
// is not: it has one class alone, a class that was never trained on, or larger numbers than all others.
#include "training/training.h"

#include <stdlib.h>
#include <string.h>

enum { LEAST_TESTED = 5 }; // numbers of fewer samples lie outside by chance

typedef struct sorted_text {
    const cli_args *args;
    const char *unit; // of samples, several
    char *out;
    size_t bytes;
} sorted_text;

/** Reads one target of the i-th sample, a class or numbers. */
static void read_target(const clv_dataset *dataset, int target, int64_t i, void *out) {
    void *to[2 * CLV_MAX_PORTS] = {NULL};
    to[clv_dataset_info_get(dataset).n_inputs + target] = out;
    clv_dataset_read(dataset, i, to);
}

/** What mends it, where the last part of a file is tested on. */
static void add_remedy(const sorted_text *text) {
    const size_t n = strlen(text->out);
    const char *file = text->args->n_words > 1 ? text->args->words[1] : "";
    if (cli_data_is(text->args, "csv"))
        snprintf(text->out + n, text->bytes - n,
                 "; the last rows of a table are tested on: put them in random order, `(head -n 1 %.100s; "
                 "tail -n +2 %.100s | shuf) >mixed.csv`",
                 file, file);
    else if (cli_data_is(text->args, "arrays"))
        snprintf(text->out + n, text->bytes - n,
                 "; the last samples are tested on: put them in random order, all arrays in the same "
                 "(numpy.random.permutation)");
}

// ---- classes ----------------------------------------------------------------------------------------------

/** Samples of each class; false: no memory. */
static bool count(const clv_dataset *dataset, int target, int64_t classes, int64_t **out) {
    const int64_t n = clv_dataset_info_get(dataset).count;
    *out = calloc((size_t)classes, sizeof **out);
    for (int64_t i = 0; *out && i < n; i++) {
        int32_t label = -1;
        read_target(dataset, target, i, &label);
        if (label >= 0 && label < classes) ++(*out)[label];
    }
    return *out != NULL;
}

/** As the data, their table or the weights call it; else its number. */
static void name_class(const sorted_text *text, const clv_dataset *dataset, int64_t i, char name[96]) {
    const clv_weights_info *told = text->args->told;
    const char *record = clv_dataset_info_get(dataset).table,
               *known = clv_dataset_class_name(dataset, (int)i);
    json_t *table = record ? cli_json_read(record, strlen(record)) : NULL;
    if (!known) known = json_string_value(json_array_get(json_object_get(table, "classes"), (size_t)i));
    if (!known && told && i < told->n_names) known = told->names[i];
    if (known)
        snprintf(name, 96, "'%.90s'", known);
    else
        snprintf(name, 96, "%lld", (long long)i);
    json_decref(table);
}

static void look_at_counts(const sorted_text *text, const clv_dataset *tested, int64_t classes,
                           const int64_t *in_test, const int64_t *in_train) {
    int64_t all = 0, unseen = -1, most = 0;
    char name[96];
    for (int64_t c = 0; c < classes; c++) {
        all += in_test[c];
        if (in_test[c] > in_test[most]) most = c;
        if (in_train && in_test[c] && !in_train[c] && (unseen < 0 || in_test[c] > in_test[unseen]))
            unseen = c;
    }
    name_class(text, tested, unseen >= 0 ? unseen : most, name);
    if (unseen >= 0)
        snprintf(text->out, text->bytes,
                 "class %s is in %lld of the %lld %s tested on and in none that was trained on: it cannot be "
                 "learnt",
                 name, (long long)in_test[unseen], (long long)all, text->unit);
    else if (all && in_test[most] == all && classes > 1)
        snprintf(
            text->out, text->bytes,
            "all %lld %s tested on are of class %s: that tells nothing of how well classes are told apart",
            (long long)all, text->unit, name);
    if (*text->out) add_remedy(text);
}

static void look_at_classes(const sorted_text *text, const clv_dataset *tested, const clv_dataset *trained,
                            int target, int64_t classes) {
    int64_t *in_test = NULL, *in_train = NULL;
    if (count(tested, target, classes, &in_test) && (!trained || count(trained, target, classes, &in_train)))
        look_at_counts(text, tested, classes, in_test, in_train);
    free(in_test);
    free(in_train);
}

// ---- numbers ----------------------------------------------------------------------------------------------

static void range_of(const clv_dataset *dataset, int target, float *least, float *most) {
    const int64_t n = clv_dataset_info_get(dataset).count;
    for (int64_t i = 0; i < n; i++) {
        float value = 0;
        read_target(dataset, target, i, &value);
        if (!i || value < *least) *least = value;
        if (!i || value > *most) *most = value;
    }
}

static void look_at_numbers(const sorted_text *text, const clv_dataset *tested, const clv_dataset *trained,
                            int target) {
    float least = 0, most = 0, trained_least = 0, trained_most = 0;
    const int64_t n = clv_dataset_info_get(tested).count;
    if (!trained || n < LEAST_TESTED) return;
    range_of(tested, target, &least, &most);
    range_of(trained, target, &trained_least, &trained_most);
    if (least < trained_most && most > trained_least) return;
    snprintf(text->out, text->bytes,
             "all %lld %s tested on have %s numbers to be learnt than any that was trained on", (long long)n,
             text->unit, least >= trained_most ? "larger" : "smaller");
    add_remedy(text);
}

void cli_tell_sorted(const cli_args *args, const clv_dataset *tested, const clv_dataset *trained, int target,
                     char *out, size_t bytes) {
    const sorted_text text = {args, cli_data_is(args, "csv") ? "rows" : "samples", out, bytes};
    *out = 0;
    if (!tested) return;
    const clv_port port = clv_dataset_port_get(tested, CLV_PORT_TARGET, target);
    const clv_shape one = clv_port_shape(&port, 1);
    if (clv_shape_numel(&one) != 1) return;
    if (port.classes)
        look_at_classes(&text, tested, trained, target, port.classes);
    else
        look_at_numbers(&text, tested, trained, target);
}
