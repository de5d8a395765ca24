// SPDX-License-Identifier: Apache-2.0
// A dataset from a table of separated values: numbers of some columns are the samples, other columns the targets: numbers, or words
// or whole numbers that tell classes apart.
#define _GNU_SOURCE // strtod_l: a point is a point in any locale
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cleave/nearest.h"
#include "data/table.h"
#include "io/array.h"
#include "io/shown.h"

/** What is made of a table. */
typedef struct making {
    clv__error *error;
    const char *path;
    const clv_table_config *config;
    const clv__csv *csv;
    clv__table_file file;              // the same, for what is shared
    int *targets, *features, *ignored; // columns
    size_t n_targets, n_features, n_ignored;
    clv__table_scale *scales;  // of the features; NULL: they stay as they stand
    clv__table_classes learnt; // of config->record
} making;

static clv_status no_memory(const making *m) {
    return clv__table_no_memory(&m->file);
}

// ---- which columns ----------------------------------------------------------------------------------------

static clv_status no_column(const making *m, const char *name, size_t length) {
    char word[128];
    snprintf(word, sizeof word, "%.*s", (int)(length < 100 ? length : 100), name);
    clv_nearest nearest = {.word = word};
    for (size_t i = 0; i < m->csv->columns; i++) clv_nearest_offer(&nearest, clv__csv_field(m->csv, -1, i));
    clv__shown_text shown;
    CLV_FAIL(m->error, CLV_E_NOT_FOUND, "'%s' has no column '%s'%s", m->path, clv__shown(word, &shown),
             clv_nearest_text(&nearest));
}

/** Names with commas between them, as columns, each once. */
static clv_status find_columns(const making *m, const char *names, int *out, size_t *n) {
    clv__shown_text shown;
    *n = 0;
    for (const char *at = names; at;) {
        const size_t length = strcspn(at, ",");
        const int column = clv__csv_column(m->csv, at, length);
        if (column < 0) return no_column(m, at, length);
        for (size_t i = 0; i < *n; i++)
            if (out[i] == column)
                CLV_FAIL(m->error, CLV_E_VALUE, "the column '%s' is named twice",
                         clv__shown(clv__csv_field(m->csv, -1, (size_t)column), &shown));
        out[(*n)++] = column;
        at = at[length] ? at + length + 1 : NULL;
    }
    return CLV_OK;
}

/** What is learnt cannot be left out. */
static clv_status check_ignored(const making *m, const bool *taken) {
    clv__shown_text shown;
    for (size_t i = 0; i < m->n_ignored; i++)
        if (taken[m->ignored[i]])
            CLV_FAIL(m->error, CLV_E_VALUE,
                     "the column '%s' is named among the targets and among those to ignore; name it in one "
                     "of the lists",
                     clv__shown(clv__csv_field(m->csv, -1, (size_t)m->ignored[i]), &shown));
    return CLV_OK;
}

static clv_status choose_columns(making *m) {
    const size_t columns = m->csv->columns;
    m->targets = clv__alloc(columns, sizeof(int));
    m->features = clv__alloc(columns, sizeof(int));
    m->ignored = clv__alloc(columns, sizeof(int));
    bool *taken = clv__alloc(columns, sizeof *taken);
    clv_status status = m->targets && m->features && m->ignored && taken ? CLV_OK : no_memory(m);
    if (status == CLV_OK) status = find_columns(m, m->config->targets, m->targets, &m->n_targets);
    if (status == CLV_OK) status = find_columns(m, m->config->ignore, m->ignored, &m->n_ignored);
    for (size_t i = 0; status == CLV_OK && i < m->n_targets; i++) taken[m->targets[i]] = true;
    if (status == CLV_OK) status = check_ignored(m, taken);
    for (size_t i = 0; status == CLV_OK && i < m->n_ignored; i++) taken[m->ignored[i]] = true;
    for (size_t i = 0; status == CLV_OK && i < columns; i++)
        if (!taken[i]) m->features[m->n_features++] = (int)i;
    if (status == CLV_OK && !m->n_features)
        status = clv__error_set(m->error, CLV_E_VALUE, "'%s': no column is left to learn from", m->path);
    free(taken);
    return status;
}

// ---- numbers and words --------------------------------------------------------------------------------------

/** Rows first to first + n of some columns. */
static clv_status read_numbers(const making *m, const int *columns, size_t n_columns, size_t first, size_t n,
                               float *out) {
    for (size_t row = 0; row < n; row++)
        for (size_t c = 0; c < n_columns; c++)
            CLV_TRY(clv__table_number(&m->file, first + row, columns[c], &out[row * n_columns + c]));
    return CLV_OK;
}

/** What makes each feature's mean 0 and its deviation 1, by the rows that are trained on. */
static void measure(size_t n_columns, size_t rows, const float *by, clv__table_scale *out) {
    for (size_t c = 0; c < n_columns; c++) {
        double mean = 0, squares = 0;
        for (size_t r = 0; r < rows; r++) mean += (double)by[r * n_columns + c];
        mean /= (double)rows;
        for (size_t r = 0; r < rows; r++) {
            const double off = (double)by[r * n_columns + c] - mean;
            squares += off * off;
        }
        const double deviation = sqrt(squares / (double)rows);
        out[c] = (clv__table_scale){mean, deviation > 0 ? deviation : 1};
    }
}

/** By the rows that are known when it is trained. */
static clv_status standardize(making *m, size_t known, size_t n, float *values) {
    float *rows = clv__alloc(known * m->n_features, sizeof *rows);
    m->scales = clv__alloc(m->n_features, sizeof *m->scales);
    clv_status status =
        rows && m->scales ? read_numbers(m, m->features, m->n_features, 0, known, rows) : no_memory(m);
    if (status == CLV_OK) {
        measure(m->n_features, known, rows, m->scales);
        clv__table_standardize(m->scales, m->n_features, n, values);
    }
    free(rows);
    return status;
}

static int compare_words(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/** The words of a column, each once, in order; the caller frees the list. */
static clv_status list_words(const making *m, int column, const char ***out, size_t *n) {
    const size_t rows = m->csv->rows;
    const char **words = clv__alloc(rows, sizeof *words);
    if (!words) return no_memory(m);
    for (size_t r = 0; r < rows; r++) {
        clv__shown_text a;
        words[r] = clv__csv_field(m->csv, (int64_t)r, (size_t)column);
        if (*words[r]) continue;
        free(words);
        CLV_FAIL(m->error, CLV_E_FORMAT, "'%s', line %" PRIu64 ": nothing stands in column '%s'", m->path,
                 m->csv->lines[r + 1], clv__shown(clv__csv_field(m->csv, -1, (size_t)column), &a));
    }
    qsort(words, rows, sizeof *words, compare_words);
    *n = 0;
    for (size_t r = 0; r < rows; r++)
        if (!*n || strcmp(words[*n - 1], words[r]) != 0) words[(*n)++] = words[r];
    *out = words;
    return CLV_OK;
}

/** A class for each row: the position of its word among all there are. */
static clv_status read_classes(const making *m, size_t first, size_t n, int32_t *out, int *classes) {
    const char **words = NULL;
    size_t n_words = 0;
    CLV_TRY(list_words(m, m->targets[0], &words, &n_words));
    for (size_t r = 0; r < n; r++) {
        const char *word = clv__csv_field(m->csv, (int64_t)(first + r), (size_t)m->targets[0]);
        const char **at = bsearch(&word, words, n_words, sizeof *words, compare_words);
        out[r] = (int32_t)(at - words);
    }
    *classes = (int)n_words;
    free(words);
    return CLV_OK;
}

// ---- for a model that learnt another table ------------------------------------------------------------------

/** Rows first to first + n. */
static clv_status read_learnt_rows(const making *m, size_t first, size_t n, clv_array *x) {
    clv_array all;
    CLV_TRY(clv__table_rows(&m->file, m->config->record, m->config->ignore, &all));
    const clv_shape shape = CLV_SHAPE((int64_t)n, all.shape.dims[1]);
    const size_t row = (size_t)shape.dims[1] * sizeof(float);
    const clv_status status = clv__array_init(m->error, CLV_ARRAY_F32, &shape, x);
    if (status == CLV_OK) memcpy(x->data, (const char *)all.data + first * row, n * row);
    clv_array_reset(&all);
    return status;
}

static clv_status read_learnt_classes(const making *m, size_t first, size_t n, int32_t *out) {
    for (size_t r = 0; r < n; r++) {
        const char *word = clv__csv_field(m->csv, (int64_t)(first + r), (size_t)m->targets[0]);
        clv__shown_text a;
        out[r] = clv__table_class_number(&m->learnt, word);
        if (out[r] < 0)
            CLV_FAIL(m->error, CLV_E_VALUE,
                     "'%s', line %" PRIu64 ": '%s' is no class that the model was trained on", m->path,
                     m->csv->lines[first + r + 1], clv__shown(word, &a));
    }
    return CLV_OK;
}

static clv_status find_learnt(making *m) {
    clv__shown_text a;
    CLV_TRY(clv__table_classes_of(m->error, m->config->record, &m->learnt));
    if (m->learnt.n && m->n_targets != 1)
        CLV_FAIL(m->error, CLV_E_VALUE,
                 "%zu targets of '%s', and the model was trained on classes of one column", m->n_targets,
                 clv__shown(m->path, &a));
    return CLV_OK;
}

// ---- the dataset --------------------------------------------------------------------------------------------

/** Are the targets classes: asked for, or words instead of numbers in the first row? */
static bool tells_classes(const making *m) {
    const char *field = clv__csv_field(m->csv, 0, (size_t)m->targets[0]);
    char *end;
    strtod_l(field, &end, m->file.locale);
    if (m->config->record) return m->learnt.n > 0;
    return m->config->classes || (m->n_targets == 1 && *field && (end == field || *end));
}

/** Names of columns; the caller frees the list. NULL: no memory. */
static const char **names_of(const making *m, const int *columns, size_t n) {
    const char **names = clv__alloc(n + 1, sizeof *names);
    for (size_t i = 0; names && i < n; i++) names[i] = clv__csv_field(m->csv, -1, (size_t)columns[i]);
    return names;
}

/** What the dataset knows of its columns, for those who read more rows (table_record.c). */
static clv_status keep_record(const making *m, bool classes, clv_dataset *dataset) {
    if (m->config->record) return (dataset->table = strdup(m->config->record)) ? CLV_OK : no_memory(m);
    const char **columns = names_of(m, m->features, m->n_features),
               **targets = names_of(m, m->targets, m->n_targets),
               **ignored = names_of(m, m->ignored, m->n_ignored), **words = NULL;
    clv__table_names names = {columns, targets, ignored, NULL, m->n_features, m->n_targets, m->n_ignored, 0};
    clv_status status = columns && targets && ignored ? CLV_OK : no_memory(m);
    if (status == CLV_OK && classes) status = list_words(m, m->targets[0], &words, &names.n_classes);
    names.classes = words;
    if (status == CLV_OK && !(dataset->table = clv__table_record(&names, m->scales))) status = no_memory(m);
    free(columns);
    free(targets);
    free(ignored);
    free(words);
    return status;
}

static clv_status read_targets(const making *m, bool classes, size_t first, size_t n, clv_array *y,
                               int *n_classes) {
    if (!classes) return read_numbers(m, m->targets, m->n_targets, first, n, y->data);
    if (!m->config->record) return read_classes(m, first, n, y->data, n_classes);
    *n_classes = (int)m->learnt.n;
    return read_learnt_classes(m, first, n, y->data);
}

/** The rows from `begin` to `end` of the whole. */
static clv_status make(making *m, clv_dataset **out) {
    const clv_table_config *config = m->config;
    const size_t rows = m->csv->rows, last = (size_t)((config->end > 0 ? config->end : 1) * (double)rows);
    const size_t first = (size_t)(config->begin * (double)rows), n = last - first;
    const size_t known = config->begin > 0 ? first : last; // trained on: what the others are measured by
    const char *record = config->record;
    if (record) CLV_TRY(find_learnt(m));
    const bool classes = tells_classes(m);
    clv_array x = {0}, y = {0};
    clv_dataset_config how = {.limit = config->limit};
    if (n < 1)
        CLV_FAIL(m->error, CLV_E_VALUE, "'%s': of %zu rows none lies from %g to %g of the whole", m->path,
                 rows, config->begin, config->end);
    const clv_shape of_x = CLV_SHAPE((int64_t)n, (int64_t)m->n_features);
    const clv_shape of_y = classes ? CLV_SHAPE((int64_t)n) : CLV_SHAPE((int64_t)n, (int64_t)m->n_targets);
    clv_status status =
        record ? read_learnt_rows(m, first, n, &x) : clv__array_init(m->error, CLV_ARRAY_F32, &of_x, &x);
    if (status == CLV_OK)
        status = clv__array_init(m->error, classes ? CLV_ARRAY_I32 : CLV_ARRAY_F32, &of_y, &y);
    if (status == CLV_OK && !record) status = read_numbers(m, m->features, m->n_features, first, n, x.data);
    if (status == CLV_OK && !record && config->standardize) status = standardize(m, known, n, x.data);
    if (status == CLV_OK) status = read_targets(m, classes, first, n, &y, &how.classes);
    const clv__dataset_defaults defaults = {.std = 1, .images = "the table", .labels = "its targets"};
    if (status == CLV_OK) status = clv__dataset_create(m->error, &x, &y, &how, &defaults, out);
    if (status == CLV_OK && (status = keep_record(m, classes, *out)) != CLV_OK) {
        clv_dataset_destroy(*out);
        *out = NULL;
    }
    clv_array_reset(&x);
    clv_array_reset(&y);
    return status;
}

static clv_status check_config(clv__error *error, const clv_table_config *config) {
    if (!config->targets || !*config->targets)
        CLV_FAIL(error, CLV_E_VALUE, "which columns of the table are to be learnt? `targets` names them");
    if (!(config->begin >= 0 && config->begin < 1 &&
          (config->end == 0 || (config->end > config->begin && config->end <= 1))))
        CLV_FAIL(error, CLV_E_VALUE, "the part of a table from %g to %g: it must lie within 0 and 1",
                 config->begin, config->end);
    if (config->limit < 0) CLV_FAIL(error, CLV_E_VALUE, "a limit of %" PRId64 " rows", config->limit);
    return CLV_OK;
}

clv_status clv_dataset_table(clv_runtime *runtime, const char *path, const clv_table_config *config,
                             clv_dataset **out) {
    clv__error *error = clv__io_error(runtime);
    CLV_TRY(CLV__GIVEN(error, path));
    CLV_TRY(CLV__GIVEN(error, config));
    CLV_TRY(CLV__GIVEN(error, out));
    *out = NULL;
    CLV_TRY(check_config(error, config));
    clv__input input;
    CLV_TRY(clv__input_open(error, path, &input));
    clv__csv csv = {0};
    making m = {.error = error,
                .path = path,
                .config = config,
                .csv = &csv,
                .file = {error, path, &csv, newlocale(LC_ALL_MASK, "C", 0)}};
    clv_status status = m.file.locale ? clv__csv_read(&input, &csv) : no_memory(&m);
    clv__input_close(&input);
    if (status == CLV_OK) status = choose_columns(&m);
    if (status == CLV_OK) status = make(&m, out);
    free(m.targets);
    free(m.features);
    free(m.ignored);
    free(m.scales);
    clv__table_classes_free(&m.learnt);
    clv__csv_reset(&csv);
    if (m.file.locale) freelocale(m.file.locale);
    return status;
}
