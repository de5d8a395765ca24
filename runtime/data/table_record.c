// SPDX-License-Identifier: Apache-2.0
// What a model that learnt a table must know of it to read more rows: names of columns, words, standardization, classes. It is a text,
// JSON, that weights carry; here a table's form becomes one, and one becomes a form. Rows are read by it in table_rows.c, predictions
// written in table_results.c.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "data/table.h"
#include "io/array.h"
#include "io/json.h"

// ---- made ---------------------------------------------------------------------------------------------------

static json_t *name_item(const void *from, size_t i) {
    return json_string(((const clv__table_column *)from)[i].name);
}
static json_t *text_item(const void *from, size_t i) {
    return json_string(((const char *const *)from)[i]);
}
static json_t *word_item(const void *from, size_t i) {
    return json_string(((const clv__table_class *)from)[i].word);
}
static json_t *mean_item(const void *from, size_t i) {
    return json_real(((const clv__table_column *)from)[i].scale.mean);
}
static json_t *scale_item(const void *from, size_t i) {
    return json_real(((const clv__table_column *)from)[i].scale.scale);
}
static json_t *fill_item(const void *from, size_t i) {
    const double fill = ((const clv__table_column *)from)[i].fill;
    return json_real(isnan(fill) ? 0 : fill);
}

static bool set_scales(json_t *root, const char *means, const char *scales, const clv__table_column *columns,
                       size_t n) {
    return clv__json_set(root, means, clv__json_list(columns, n, mean_item)) &&
           clv__json_set(root, scales, clv__json_list(columns, n, scale_item));
}

/** Words of feature columns, and units and thousands of all: where there are none, nothing. */
static bool set_kinds(json_t *root, const clv__table_form *form) {
    json_t *words = json_object(), *units = json_object(), *grouped = json_array();
    bool good = words && units && grouped;
    for (size_t i = 0; good && i < form->n + form->n_targets; i++) {
        const bool target = i >= form->n;
        const clv__table_column *column = target ? &form->targets[i - form->n] : &form->columns[i];
        if (column->is_words && !target)
            good = clv__json_set(words, column->name,
                                 clv__json_list(column->words.all, column->words.n, word_item));
        if (good && !column->is_words && *column->unit)
            good = clv__json_set(units, column->name, json_string(column->unit));
        if (good && column->is_grouped) good = json_array_append_new(grouped, json_string(column->name)) == 0;
    }
    if (good && json_object_size(words)) good = json_object_set(root, "words", words) == 0;
    if (good && json_object_size(units)) good = json_object_set(root, "units", units) == 0;
    if (good && json_array_size(grouped)) good = json_object_set(root, "thousands", grouped) == 0;
    json_decref(words);
    json_decref(units);
    json_decref(grouped);
    return good;
}

static bool set_missing(json_t *root, const clv__table_form *form) {
    if (form->missing == CLV_MISSING_REFUSE) return true;
    const bool mean = form->missing == CLV_MISSING_MEAN;
    return clv__json_set(root, "missing", json_string(mean ? "mean" : "drop")) &&
           (!mean || clv__json_set(root, "fills", clv__json_list(form->columns, form->n, fill_item)));
}

char *clv__table_record_write(const clv__table_form *form) {
    json_t *root = json_object();
    clv__text text = {0};
    const clv__table_column *first = form->targets;
    bool good = clv__json_set(root, "columns", clv__json_list(form->columns, form->n, name_item)) &&
                clv__json_set(root, "targets", clv__json_list(form->targets, form->n_targets, name_item)) &&
                clv__json_set(root, "ignored", clv__json_list(form->ignored, form->n_ignored, text_item));
    if (good && first->is_words)
        good = clv__json_set(root, "classes", clv__json_list(first->words.all, first->words.n, word_item));
    if (good && form->is_scaled) good = set_scales(root, "means", "scales", form->columns, form->n);
    if (good && form->is_scaled && !first->is_words)
        good = set_scales(root, "target_means", "target_scales", form->targets, form->n_targets);
    if (good && form->decimal_comma) good = clv__json_set(root, "decimal_comma", json_true());
    good = good && set_kinds(root, form) && set_missing(root, form) &&
           clv__json_write(root, JSON_COMPACT | JSON_REAL_PRECISION(17), &text);
    json_decref(root);
    char *record = good ? clv__strdup(clv__text_get(&text)) : NULL;
    clv__text_reset(&text);
    return record;
}

// ---- read ---------------------------------------------------------------------------------------------------

/** Names as tables are read today: without blanks around them. */
static bool trim_list(json_t *list) {
    json_t *text;
    size_t i;
    json_array_foreach(list, i, text) {
        char *copy = json_is_string(text) ? clv__strdup(json_string_value(text)) : NULL;
        if (json_is_string(text) && (!copy || json_string_set(text, clv__cell_trim(copy)) != 0)) {
            free(copy);
            return false;
        }
        free(copy);
    }
    return true;
}

/** A list of names, each not empty, and not too many. */
static bool are_names(const json_t *list) {
    const json_t *name;
    size_t i;
    if (!json_is_array(list) || json_array_size(list) > CLV__CSV_COLUMNS) return false;
    json_array_foreach(list, i, name) if (!json_is_string(name) || !*json_string_value(name)) return false;
    return true;
}

/** So many finite numbers, above 0 where they are scales. */
static bool are_numbers(const json_t *list, size_t n, bool positive) {
    const json_t *number;
    size_t i;
    if (json_array_size(list) != n) return false;
    json_array_foreach(list, i, number) {
        if (!json_is_number(number) || !isfinite(json_number_value(number))) return false;
        if (positive && !(json_number_value(number) > 0)) return false;
    }
    return true;
}

/** Means and scales of so many columns, both or none. NULL: they are; else what is wrong. */
static const char *mistake_of_scales(const json_t *means, const json_t *scales, size_t n) {
    if (means && !are_numbers(means, n, false)) return "'means' does not have a number for each column";
    if (scales && !are_numbers(scales, n, true))
        return "'scales' does not have a number above 0 for each column";
    return !means != !scales ? "one of 'means' and 'scales' is missing" : NULL;
}

static const char *mistake_of_kinds(json_t *root) {
    json_t *words = json_object_get(root, "words"), *units = json_object_get(root, "units"), *one;
    const json_t *missing = json_object_get(root, "missing"), *grouped = json_object_get(root, "thousands");
    const char *key;
    if (words && !json_is_object(words)) return "'words' is no list for each column";
    json_object_foreach(words, key, one) if (!are_names(one)) return "'words' is no list for each column";
    if (units && !json_is_object(units)) return "'units' does not have a sign for each column";
    json_object_foreach(units, key, one) if (!json_is_string(one) ||
                                             !clv__cell_unit(json_string_value(
                                                 one))) return "'units' does not have a sign for each column";
    if (grouped && !are_names(grouped)) return "'thousands' is no list of names";
    const char *how = json_string_value(missing);
    if (missing && (!how || (strcmp(how, "mean") && strcmp(how, "drop"))))
        return "'missing' is not mean or drop";
    return NULL;
}

static const char *mistake_of(json_t *root) {
    const json_t *columns = json_object_get(root, "columns"), *targets = json_object_get(root, "targets");
    const json_t *ignored = json_object_get(root, "ignored"), *classes = json_object_get(root, "classes");
    if (!are_names(columns) || !json_array_size(columns)) return "'columns' is no list of names";
    if (!are_names(targets) || !json_array_size(targets)) return "'targets' is no list of names";
    if (ignored && !are_names(ignored)) return "'ignored' is no list of names";
    if (classes && (!json_array_size(classes) || !json_is_array(classes)))
        return "'classes' is no list of names";
    for (size_t i = 0; i < json_array_size(classes); i++)
        if (!json_is_string(json_array_get(classes, i)) || !*json_string_value(json_array_get(classes, i)))
            return "'classes' is no list of names";
    if (classes && json_array_size(targets) != 1) return "there are 'classes' of several targets";
    const size_t n = json_array_size(columns);
    const json_t *fills = json_object_get(root, "fills");
    const char *wrong = mistake_of_scales(json_object_get(root, "means"), json_object_get(root, "scales"), n);
    if (!wrong)
        wrong = mistake_of_scales(json_object_get(root, "target_means"),
                                  json_object_get(root, "target_scales"), json_array_size(targets));
    if (!wrong && fills && !are_numbers(fills, n, false))
        wrong = "'fills' does not have a number for each column";
    return wrong ? wrong : mistake_of_kinds(root);
}

static bool has_name(const json_t *list, const char *name) {
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!strcmp(json_string_value(json_array_get(list, i)), name)) return true;
    return false;
}

static bool read_words(const json_t *list, clv__table_column *out) {
    const size_t n = json_array_size(list);
    out->is_words = true;
    out->words = (clv__table_words){clv__alloc(n + 1, sizeof *out->words.all), n};
    if (!out->words.all) return false;
    for (size_t i = 0; i < n; i++)
        out->words.all[i] = (clv__table_class){json_string_value(json_array_get(list, i)), (int32_t)i};
    clv__table_words_sort(&out->words);
    return true;
}

static double number_at(const json_t *list, size_t i, double without) {
    return list ? json_number_value(json_array_get(list, i)) : without;
}

/** Columns of a list of names. NULL: no memory. */
static clv__table_column *read_columns(const json_t *root, const char *key, const char *means,
                                       const char *scales) {
    const json_t *names = json_object_get(root, key), *fills = json_object_get(root, "fills");
    const json_t *mean = json_object_get(root, means), *scale = json_object_get(root, scales);
    clv__table_column *columns = clv__alloc(json_array_size(names), sizeof *columns);
    for (size_t i = 0; columns && i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));
        const char *unit = json_string_value(json_object_get(json_object_get(root, "units"), name));
        columns[i] = (clv__table_column){.name = name,
                                         .at = -1,
                                         .is_grouped = has_name(json_object_get(root, "thousands"), name),
                                         .scale = {number_at(mean, i, 0), number_at(scale, i, 1)},
                                         .fill = number_at(fills, i, (double)NAN),
                                         .unit = unit ? clv__cell_unit(unit) : ""};
    }
    return columns;
}

static bool fill_form(const json_t *root, clv__table_form *out) {
    const json_t *ignored = json_object_get(root, "ignored"), *classes = json_object_get(root, "classes");
    const char *missing = json_string_value(json_object_get(root, "missing"));
    *out = (clv__table_form){.columns = read_columns(root, "columns", "means", "scales"),
                             .targets = read_columns(root, "targets", "target_means", "target_scales"),
                             .n = json_array_size(json_object_get(root, "columns")),
                             .n_targets = json_array_size(json_object_get(root, "targets")),
                             .ignored = clv__alloc(json_array_size(ignored) + 1, sizeof *out->ignored),
                             .n_ignored = json_array_size(ignored),
                             .missing = !missing                   ? CLV_MISSING_REFUSE
                                        : !strcmp(missing, "mean") ? CLV_MISSING_MEAN
                                                                   : CLV_MISSING_DROP,
                             .is_scaled = json_object_get(root, "means") != NULL,
                             .decimal_comma = json_is_true(json_object_get(root, "decimal_comma"))};
    if (!out->columns || !out->targets || !out->ignored) return false;
    for (size_t i = 0; i < out->n_ignored; i++)
        out->ignored[i] = json_string_value(json_array_get(ignored, i));
    for (size_t i = 0; i < out->n; i++) {
        const json_t *words = json_object_get(json_object_get(root, "words"), out->columns[i].name);
        if (words && !read_words(words, &out->columns[i])) return false;
    }
    if (classes && !read_words(classes, out->targets)) return false;
    clv__table_form_place(out);
    return true;
}

clv_status clv__table_record_read(clv__error *error, const char *text, clv__table_form *out, void **owner) {
    json_error_t why;
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &why);
    *out = (clv__table_form){0};
    *owner = NULL;
    if (!root) CLV_FAIL(error, CLV_E_FORMAT, "the record of a table's columns is no JSON: %s", why.text);
    bool room = true;
    static const char *const lists[] = {"columns", "targets", "ignored", "classes"};
    for (size_t i = 0; room && i < sizeof lists / sizeof *lists; i++)
        room = trim_list(json_object_get(root, lists[i]));
    const char *wrong = room ? mistake_of(root) : NULL;
    if (room && !wrong) room = fill_form(root, out);
    if (room && !wrong && out->width > CLV__TABLE_WIDTH) wrong = "its rows have too many numbers";
    if (room && !wrong) {
        *owner = root;
        return CLV_OK;
    }
    clv__table_record_free(out, root);
    if (!room) CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for the record of a table's columns");
    CLV_FAIL(error, CLV_E_FORMAT, "the record of a table's columns is damaged: %s", wrong);
}

void clv__table_record_free(clv__table_form *form, void *owner) {
    clv__table_form_free(form);
    json_decref(owner);
}
