// SPDX-License-Identifier: Apache-2.0
// --per-class: precision, recall and F1 of each class or label, and which classes were confused.
#include "datasets/datasets.h"
#include "training/training.h"
#include "table.h"

#include <stdlib.h>

enum {
    MOST_SQUARE = 12, // classes whose confusions fit a table of their own; of more, the most frequent:
    MOST_PAIRS = 20,
    MOST_JSON = 200 // classes whose whole table stands in the JSON
};

/** By the weights, else by the data; a number where neither has one. */
static const char *name_of(const cli_source *source, int64_t i, char text[24]) {
    const clv_weights_info *told = source->args->told;
    const char *name = told && i < told->n_names ? told->names[i] : NULL;
    if (!name) name = clv_dataset_class_name(source->test, (int)i);
    snprintf(text, 24, "%lld", (long long)i);
    return name ? name : text;
}

// ---- JSON -----------------------------------------------------------------------------------------------

static json_t *metrics_json(const clv_class_metrics *one) {
    return json_pack("{s:I, s:I, s:I, s:f, s:f, s:f}", "targets", (json_int_t)one->targets, "told",
                     (json_int_t)one->told, "right", (json_int_t)one->right, "precision", one->precision,
                     "recall", one->recall, "f1", one->f1);
}

/** A row for each class, in it how often it was predicted as which; null: not kept, or too many. */
static json_t *confusion_json(const clv_confusion *confusion) {
    const int64_t n = clv_confusion_info_get(confusion).classes;
    if (clv_confusion_count(confusion, 0, 0) < 0 || n > MOST_JSON) return json_null();
    json_t *rows = json_array();
    for (int64_t of = 0; of < n; of++) {
        json_t *row = json_array();
        for (int64_t told = 0; told < n; told++)
            json_array_append_new(row, json_integer((json_int_t)clv_confusion_count(confusion, of, told)));
        json_array_append_new(rows, row);
    }
    return rows;
}

json_t *cli_classes_json(const cli_source *source, const clv_confusion *confusion) {
    if (!confusion) return json_null();
    const clv_confusion_info told = clv_confusion_info_get(confusion);
    json_t *list = json_array();
    for (int64_t i = 0; i < told.classes; i++) {
        char text[24];
        const char *name = name_of(source, i, text);
        const clv_class_metrics one = clv_confusion_get(confusion, i);
        json_t *object = metrics_json(&one), *word = json_string(name);
        json_object_set_new(object, "name", word ? word : json_null());
        json_array_append_new(list, object);
    }
    return json_pack("{s:o, s:o, s:o}", "classes", list, "macro", metrics_json(&told.mean), "confusion",
                     confusion_json(confusion));
}

// ---- tables ---------------------------------------------------------------------------------------------

/** What the model tells apart. */
static const char *kind_of(const cli_source *source) {
    return cli_data_is(source->args, "text") ? "token" : "class";
}

static void add_row(table *t, const char *name, const clv_class_metrics *one) {
    table_add(t, "%s", name);
    table_add(t, "%.4f", one->precision);
    table_add(t, "%.4f", one->recall);
    table_add(t, "%.4f", one->f1);
    table_add(t, "%lld", (long long)one->targets);
    table_add(t, "%lld", (long long)one->told);
    table_add(t, "%lld", (long long)one->right);
}

static void print_metrics(FILE *out, const cli_source *source, const clv_confusion *confusion) {
    const clv_confusion_info told = clv_confusion_info_get(confusion);
    const table_column columns[] = {
        {told.of_labels ? "label" : kind_of(source), TABLE_TEXT, TABLE_KEEP, 8, NULL},
        {"precision", TABLE_NUMBER, 95, 0, NULL},
        {"recall", TABLE_NUMBER, 95, 0, NULL},
        {"F1", TABLE_NUMBER, TABLE_KEEP, 0, NULL},
        {"targets", TABLE_NUMBER, 80, 0, NULL},
        {"predicted", TABLE_NUMBER, 60, 0, NULL},
        {"right", TABLE_NUMBER, 70, 0, NULL}};
    table *t = table_create(columns, sizeof columns / sizeof *columns);
    for (int64_t i = 0; i < told.classes; i++) {
        char text[24];
        const clv_class_metrics one = clv_confusion_get(confusion, i);
        add_row(t, name_of(source, i, text), &one);
    }
    add_row(t, "mean (macro)", &told.mean);
    table_print(t, out);
}

/** All of them: a row for each class, a column for what it was predicted as. */
static void print_square(FILE *out, const cli_source *source, const clv_confusion *confusion) {
    const int64_t n = clv_confusion_info_get(confusion).classes;
    char text[MOST_SQUARE][24];
    table_column columns[MOST_SQUARE + 1] = {{kind_of(source), TABLE_TEXT, TABLE_KEEP, 8, NULL}};
    for (int64_t i = 0; i < n; i++)
        columns[i + 1] =
            (table_column){name_of(source, i, text[i]), TABLE_NUMBER, (int)(90 - i), 0, "predicted as"};
    table *t = table_create(columns, (int)n + 1);
    for (int64_t of = 0; of < n; of++) {
        char name[24];
        table_add(t, "%s", name_of(source, of, name));
        for (int64_t told = 0; told < n; told++)
            table_add(t, "%lld", (long long)clv_confusion_count(confusion, of, told));
    }
    table_print(t, out);
}

typedef struct pair {
    int64_t of, told, count;
} pair;

/** The largest first, in their order where they are equal. */
static int find_pairs(const clv_confusion *confusion, pair pairs[MOST_PAIRS]) {
    const int64_t classes = clv_confusion_info_get(confusion).classes;
    int n = 0;
    for (int64_t i = 0; i < classes * classes; i++) {
        const pair one = {i / classes, i % classes, clv_confusion_count(confusion, i / classes, i % classes)};
        if (one.of == one.told || one.count < 1) continue;
        int at = n;
        while (at > 0 && pairs[at - 1].count < one.count) at--;
        if (at == MOST_PAIRS) continue;
        if (n < MOST_PAIRS) n++;
        for (int k = n - 1; k > at; k--) pairs[k] = pairs[k - 1];
        pairs[at] = one;
    }
    return n;
}

static void print_pairs(FILE *out, const cli_source *source, const clv_confusion *confusion) {
    const table_column columns[] = {{kind_of(source), TABLE_TEXT, TABLE_KEEP, 8, NULL},
                                    {"predicted as", TABLE_TEXT, TABLE_KEEP, 8, NULL},
                                    {"times", TABLE_NUMBER, TABLE_KEEP, 0, NULL}};
    pair pairs[MOST_PAIRS];
    const int n = find_pairs(confusion, pairs);
    if (!n) return;
    table *t = table_create(columns, sizeof columns / sizeof *columns);
    for (int i = 0; i < n; i++) {
        char text[24];
        table_add(t, "%s", name_of(source, pairs[i].of, text));
        table_add(t, "%s", name_of(source, pairs[i].told, text));
        table_add(t, "%lld", (long long)pairs[i].count);
    }
    screen_say(out, "the most frequent confusions");
    table_print(t, out);
}

void cli_classes_print(FILE *out, const cli_source *source, const clv_confusion *confusion) {
    print_metrics(out, source, confusion);
    if (clv_confusion_count(confusion, 0, 0) < 0) return;
    if (clv_confusion_info_get(confusion).classes <= MOST_SQUARE)
        print_square(out, source, confusion);
    else
        print_pairs(out, source, confusion);
}
