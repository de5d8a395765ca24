// SPDX-License-Identifier: Apache-2.0
// What a model that learnt a table must know of it to read more rows: names of columns, standardization, classes. It is a text, JSON,
// that weights carry; here it is made of a table, and rows are read and predictions written by it.
#define _GNU_SOURCE // uselocale: a point is a point in any locale
#include <inttypes.h>
#include <jansson.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "data/table.h"
#include "io/array.h"
#include "io/shown.h"

// ---- made ---------------------------------------------------------------------------------------------------

static json_t *list_of(const char *const *names, size_t n) {
    json_t *list = json_array();
    for (size_t i = 0; list && i < n; i++)
        if (json_array_append_new(list, json_string(names[i])) != 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

static int add_bytes(const char *bytes, size_t n, void *text) {
    clv__text_add_bytes(text, bytes, n);
    return ((clv__text *)text)->failed ? -1 : 0;
}

/** Add a list under a key; false: no memory. Takes the list. */
static bool set(json_t *root, const char *key, json_t *list) {
    return root && list && json_object_set_new(root, key, list) == 0;
}

static bool set_scales(json_t *root, const clv__table_scale *scales, size_t n) {
    json_t *means = json_array(), *divisors = json_array();
    bool good = means && divisors;
    for (size_t i = 0; good && i < n; i++)
        good = json_array_append_new(means, json_real(scales[i].mean)) == 0 &&
               json_array_append_new(divisors, json_real(scales[i].scale)) == 0;
    good = set(root, "means", means) && good;
    return set(root, "scales", divisors) && good;
}

char *clv__table_record(const clv__table_names *names, const clv__table_scale *scales) {
    json_t *root = json_object();
    clv__text text = {0};
    bool good = set(root, "columns", list_of(names->columns, names->n_columns)) &&
                set(root, "targets", list_of(names->targets, names->n_targets)) &&
                set(root, "ignored", list_of(names->ignored, names->n_ignored));
    if (good && names->classes) good = set(root, "classes", list_of(names->classes, names->n_classes));
    if (good && scales) good = set_scales(root, scales, names->n_columns);
    good = good && json_dump_callback(root, add_bytes, &text, JSON_COMPACT | JSON_REAL_PRECISION(17)) == 0 &&
           !text.failed;
    json_decref(root);
    char *record = good ? clv__strdup(clv__text_get(&text)) : NULL;
    clv__text_reset(&text);
    return record;
}

const char *clv_table_record(const clv_dataset *dataset) {
    return dataset ? dataset->table : NULL;
}

// ---- read ---------------------------------------------------------------------------------------------------

typedef struct record {
    json_t *root;
    const json_t *columns, *targets, *ignored, *classes, *means, *scales; // the last four NULL: none
} record;

/** A list of names, each not empty. */
static bool are_names(const json_t *list) {
    const json_t *name;
    size_t i;
    if (!json_is_array(list)) return false;
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

static const char *mistake_of(const record *r) {
    if (!are_names(r->columns) || !json_array_size(r->columns)) return "'columns' is no list of names";
    if (json_array_size(r->columns) > CLV__CSV_COLUMNS) return "'columns' has too many names";
    if (!are_names(r->targets) || !json_array_size(r->targets)) return "'targets' is no list of names";
    if (json_array_size(r->targets) > CLV__CSV_COLUMNS) return "'targets' has too many names";
    if (r->ignored && !are_names(r->ignored)) return "'ignored' is no list of names";
    if (r->classes && (!are_names(r->classes) || !json_array_size(r->classes)))
        return "'classes' is no list of names";
    if (r->classes && json_array_size(r->targets) != 1) return "there are 'classes' of several targets";
    const size_t n = json_array_size(r->columns);
    if (r->means && !are_numbers(r->means, n, false)) return "'means' has not a number for each column";
    if (r->scales && !are_numbers(r->scales, n, true))
        return "'scales' has not a number above 0 for each column";
    if (!r->means != !r->scales) return "of 'means' and 'scales' one is missing";
    return NULL;
}

static clv_status read_record(clv__error *error, const char *text, record *out) {
    json_error_t why;
    *out = (record){.root = json_loads(text, JSON_REJECT_DUPLICATES, &why)};
    if (!out->root) CLV_FAIL(error, CLV_E_FORMAT, "the record of a table's columns is no JSON: %s", why.text);
    out->columns = json_object_get(out->root, "columns");
    out->targets = json_object_get(out->root, "targets");
    out->ignored = json_object_get(out->root, "ignored");
    out->classes = json_object_get(out->root, "classes");
    out->means = json_object_get(out->root, "means");
    out->scales = json_object_get(out->root, "scales");
    const char *wrong = mistake_of(out);
    if (!wrong) return CLV_OK;
    json_decref(out->root);
    *out = (record){0};
    CLV_FAIL(error, CLV_E_FORMAT, "the record of a table's columns is damaged: %s", wrong);
}

static const char *name_at(const json_t *list, size_t i) {
    return json_string_value(json_array_get(list, i));
}

static bool has_name(const json_t *list, const char *name) {
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!strcmp(name_at(list, i), name)) return true;
    return false;
}

clv_status clv_table_info_get(clv_runtime *runtime, const char *text, clv_table_info *out) {
    clv__error *error = clv__io_error(runtime);
    record r;
    CLV_TRY(CLV__GIVEN(error, text));
    CLV_TRY(CLV__GIVEN(error, out));
    *out = (clv_table_info){0};
    CLV_TRY(read_record(error, text, &r));
    *out = (clv_table_info){.columns = (int64_t)json_array_size(r.columns),
                            .targets = (int64_t)json_array_size(r.targets),
                            .classes = (int)json_array_size(r.classes)};
    json_decref(r.root);
    return CLV_OK;
}

// ---- rows ---------------------------------------------------------------------------------------------------

/** Rows of a file while they are read. */
typedef struct reading {
    clv__table_file file;
    record record;
    int *columns;  // the file's, of each that the record has
    bool *is_used; // by the file's columns
} reading;

/** The file's column of that name, looked for from `from` on, round and round; -1: none. */
static int column_from(const clv__csv *csv, size_t from, const char *name) {
    for (size_t k = 0; k < csv->columns; k++) {
        const size_t at = (from + k) % csv->columns;
        if (!strcmp(clv__csv_field(csv, -1, at), name)) return (int)at;
    }
    return -1;
}

static clv_status find_columns(reading *r) {
    const size_t n = json_array_size(r->record.columns);
    clv__shown_text shown;
    for (size_t i = 0, from = 0; i < n; i++, from++) {
        const char *name = name_at(r->record.columns, i);
        r->columns[i] = column_from(r->file.csv, from, name);
        if (r->columns[i] < 0)
            CLV_FAIL(r->file.error, CLV_E_NOT_FOUND,
                     "'%s' has no column '%s', which the model was trained on", r->file.path,
                     clv__shown(name, &shown));
        from = (size_t)r->columns[i];
        r->is_used[from] = true;
    }
    return CLV_OK;
}

/** Is a name in a list with commas? */
static bool is_listed(const char *list, const char *name) {
    const size_t n = strlen(name);
    for (const char *at = list; at && *at;) {
        const size_t length = strcspn(at, ",");
        if (length == n && !memcmp(at, name, n)) return true;
        at += length + (at[length] == ',');
    }
    return false;
}

/** Columns that the model does not know may be what it predicts, and what was, or is, passed over. */
static clv_status check_others(const reading *r, const char *ignore) {
    clv__shown_text shown;
    for (size_t c = 0; c < r->file.csv->columns; c++) {
        const char *name = clv__csv_field(r->file.csv, -1, c);
        if (r->is_used[c] || has_name(r->record.targets, name) || has_name(r->record.ignored, name) ||
            is_listed(ignore, name))
            continue;
        CLV_FAIL(r->file.error, CLV_E_VALUE,
                 "'%s' has a column '%s', which the model was not trained on: leave it out, or ignore it "
                 "(`ignore` of clv_table_rows)",
                 r->file.path, clv__shown(name, &shown));
    }
    return CLV_OK;
}

static clv_status fill(const reading *r, float *out) {
    const record *by = &r->record;
    const size_t n = json_array_size(by->columns);
    clv__table_scale *scales = by->means ? clv__alloc(n, sizeof *scales) : NULL;
    clv_status status = CLV_OK;
    if (by->means && !scales) return clv__table_no_memory(&r->file);
    for (size_t i = 0; scales && i < n; i++)
        scales[i] = (clv__table_scale){json_number_value(json_array_get(by->means, i)),
                                       json_number_value(json_array_get(by->scales, i))};
    for (size_t row = 0; row < r->file.csv->rows && status == CLV_OK; row++)
        for (size_t i = 0; i < n && status == CLV_OK; i++)
            status = clv__table_number(&r->file, row, r->columns[i], &out[row * n + i]);
    if (status == CLV_OK && scales) clv__table_standardize(scales, n, r->file.csv->rows, out);
    free(scales);
    return status;
}

static clv_status read_rows(reading *r, const char *ignore, clv_array *out) {
    const clv__csv *csv = r->file.csv;
    const size_t n = json_array_size(r->record.columns);
    const clv_shape shape = CLV_SHAPE((int64_t)csv->rows, (int64_t)n);
    r->columns = clv__alloc(n, sizeof *r->columns);
    r->is_used = clv__alloc(csv->columns, sizeof *r->is_used);
    if (!r->columns || !r->is_used) return clv__table_no_memory(&r->file);
    CLV_TRY(find_columns(r));
    CLV_TRY(check_others(r, ignore));
    CLV_TRY(clv__array_init(r->file.error, CLV_ARRAY_F32, &shape, out));
    return fill(r, out->data);
}

clv_status clv__table_rows(const clv__table_file *file, const char *text, const char *ignore,
                           clv_array *out) {
    reading r = {.file = *file};
    *out = (clv_array){0};
    CLV_TRY(read_record(file->error, text, &r.record));
    const clv_status status = read_rows(&r, ignore, out);
    if (status != CLV_OK) clv_array_reset(out);
    json_decref(r.record.root);
    free(r.columns);
    free(r.is_used);
    return status;
}

clv_status clv_table_rows(clv_runtime *runtime, const char *path, const char *text, const char *ignore,
                          clv_array *out) {
    clv__error *error = clv__io_error(runtime);
    CLV_TRY(CLV__GIVEN(error, path));
    CLV_TRY(CLV__GIVEN(error, text));
    CLV_TRY(CLV__GIVEN(error, out));
    *out = (clv_array){0};
    clv__input input;
    clv__csv csv = {0};
    clv__table_file file = {.error = error, .path = path, .csv = &csv};
    record known; // a record that is none is told before a file that is none
    CLV_TRY(read_record(error, text, &known));
    json_decref(known.root);
    clv_status status = clv__input_open(error, path, &input);
    if (status == CLV_OK) {
        file.locale = newlocale(LC_ALL_MASK, "C", 0);
        status = file.locale ? clv__csv_read(&input, &csv) : clv__table_no_memory(&file);
        clv__input_close(&input);
    }
    if (status == CLV_OK) status = clv__table_rows(&file, text, ignore, out);
    clv__csv_reset(&csv);
    if (file.locale) freelocale(file.locale);
    return status;
}

// ---- classes ------------------------------------------------------------------------------------------------

static int compare_classes(const void *a, const void *b) {
    return strcmp(((const clv__table_class *)a)->word, ((const clv__table_class *)b)->word);
}

clv_status clv__table_classes_of(clv__error *error, const char *text, clv__table_classes *out) {
    record r;
    *out = (clv__table_classes){0};
    CLV_TRY(read_record(error, text, &r));
    const size_t n = json_array_size(r.classes);
    *out = (clv__table_classes){clv__alloc(n + 1, sizeof *out->all), n, r.root};
    if (!out->all) {
        clv__table_classes_free(out);
        CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for the classes of a table");
    }
    for (size_t i = 0; i < n; i++) out->all[i] = (clv__table_class){name_at(r.classes, i), (int32_t)i};
    qsort(out->all, n, sizeof *out->all, compare_classes);
    return CLV_OK;
}

void clv__table_classes_free(clv__table_classes *classes) {
    free(classes->all);
    json_decref(classes->owner);
    *classes = (clv__table_classes){0};
}

int32_t clv__table_class_number(const clv__table_classes *classes, const char *word) {
    const clv__table_class wanted = {.word = word};
    const clv__table_class *at =
        bsearch(&wanted, classes->all, classes->n, sizeof *classes->all, compare_classes);
    return at ? at->number : -1;
}

// ---- predictions ----------------------------------------------------------------------------------------------

/** A value, in quotes where it needs them (RFC 4180); `begin` and `end` stand around it. */
static void add_value(clv__text *line, const char *begin, const char *value, const char *end) {
    const bool quoted = strpbrk(value, ",;\t\"\r\n") != NULL;
    if (quoted) clv__text_add(line, "\"");
    clv__text_add(line, "%s", begin);
    for (const char *at = value; *at;) {
        const size_t n = strcspn(at, "\"");
        clv__text_add_bytes(line, at, n);
        if (at[n]) clv__text_add(line, "\"\"");
        at += n + (at[n] == '"');
    }
    clv__text_add(line, "%s%s", end, quoted ? "\"" : "");
}

static void add_head(const record *r, clv__text *line) {
    for (size_t i = 0; i < json_array_size(r->targets); i++) {
        if (i) clv__text_add(line, ",");
        add_value(line, "", name_at(r->targets, i), "");
    }
    for (size_t i = 0; i < json_array_size(r->classes); i++) {
        clv__text_add(line, ",");
        add_value(line, "p(", name_at(r->classes, i), ")");
    }
    clv__text_add(line, "\n");
}

/** The class of the largest score, and the softmax of all; no class where one is no number. */
static void add_class(const record *r, const float *scores, size_t n, clv__text *line) {
    size_t best = 0;
    double sum = 0;
    bool numbers = true;
    for (size_t i = 0; i < n; i++) {
        numbers = numbers && !isnan(scores[i]);
        if (scores[i] > scores[best]) best = i;
    }
    for (size_t i = 0; i < n; i++) sum += exp((double)scores[i] - (double)scores[best]);
    if (numbers) add_value(line, "", name_at(r->classes, best), "");
    for (size_t i = 0; i < n; i++)
        clv__text_add(line, ",%.9g",
                      numbers ? exp((double)scores[i] - (double)scores[best]) / sum : (double)NAN);
}

static clv_status write_lines(const record *r, const float *results, int64_t n, clv__output *output) {
    const size_t classes = json_array_size(r->classes),
                 each = classes ? classes : json_array_size(r->targets);
    clv__text text = {0};
    clv_status status = CLV_OK;
    add_head(r, &text);
    for (int64_t row = 0; row <= n && status == CLV_OK; row++) {
        const float *values = results + (size_t)row * each;
        if (row == n || text.n > 1 << 16) {
            if (text.failed)
                status = clv__error_set(output->error, CLV_E_HOST_MEMORY, "'%s': no host memory for a line",
                                        output->path);
            else
                status = clv__output_write(output, text.data, text.n);
            text.n = 0;
        }
        if (row == n || status != CLV_OK) break;
        if (classes) add_class(r, values, classes, &text);
        for (size_t i = 0; !classes && i < each; i++)
            clv__text_add(&text, "%s%.9g", i ? "," : "", (double)values[i]);
        clv__text_add(&text, "\n");
    }
    clv__text_reset(&text);
    return status;
}

clv_status clv_table_results_write(clv_runtime *runtime, const char *text, const float *results, int64_t n,
                                   const char *path) {
    clv__error *error = clv__io_error(runtime);
    record r;
    clv__output output;
    CLV_TRY(CLV__GIVEN(error, text));
    CLV_TRY(CLV__GIVEN(error, results));
    CLV_TRY(CLV__GIVEN(error, path));
    if (n < 0) CLV_FAIL(error, CLV_E_VALUE, "'%s': %" PRId64 " rows of predictions", path, n);
    CLV_TRY(read_record(error, text, &r));
    locale_t plain = newlocale(LC_ALL_MASK, "C", 0);
    clv_status status = plain ? clv__output_open(error, path, &output)
                              : clv__error_set(error, CLV_E_HOST_MEMORY, "'%s': no host memory", path);
    if (status == CLV_OK) {
        const locale_t before = uselocale(plain);
        status = write_lines(&r, results, n, &output);
        uselocale(before);
        if (status == CLV_OK)
            status = clv__output_commit(&output, false);
        else
            clv__output_abort(&output);
    }
    if (plain) freelocale(plain);
    json_decref(r.root);
    return status;
}
