// SPDX-License-Identifier: Apache-2.0
// Rows of a file for a model that learnt another table: columns found by their names, values as the record says.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/nearest.h"
#include "data/table.h"
#include "io/array.h"
#include "io/shown.h"

/** The file's column of that name, looked for from `from` on, round and round; -1: none. */
static int column_from(const clv__csv *csv, size_t from, const char *name) {
    for (size_t k = 0; k < csv->columns; k++) {
        const size_t at = (from + k) % csv->columns;
        if (!strcmp(clv__csv_field(csv, -1, at), name)) return (int)at;
    }
    return -1;
}

/** Is a name in a list with commas? Blanks around its names are nothing. */
static bool is_listed(const char *list, const char *name) {
    const size_t n = strlen(name);
    for (const char *at = list; at && *at;) {
        at += strspn(at, " ");
        const size_t length = strcspn(at, ",");
        size_t own = length;
        while (own && at[own - 1] == ' ') own--;
        if (own == n && !memcmp(at, name, n)) return true;
        at += length + (at[length] == ',');
    }
    return false;
}

static bool is_known(const clv__table_form *form, const char *name) {
    for (size_t i = 0; i < form->n_targets; i++)
        if (!strcmp(form->targets[i].name, name)) return true;
    for (size_t i = 0; i < form->n_ignored; i++)
        if (!strcmp(form->ignored[i], name)) return true;
    return !*name; // an index
}

/** Columns that the model does not know may be what it predicts, and what was, or is, passed over. */
static clv_status check_others(const clv__table_file *file, const clv__table_form *form, const bool *used,
                               const char *ignore) {
    clv__shown_text shown;
    for (size_t c = 0; c < file->csv.columns; c++) {
        const char *name = clv__csv_field(&file->csv, -1, c);
        if (used[c] || is_known(form, name) || is_listed(ignore, name)) continue;
        CLV_FAIL(file->error, CLV_E_VALUE,
                 "'%s' has a column '%s', which the model was not trained on: leave it out, or ignore it "
                 "(`ignore` of clv_table_rows_read)",
                 file->path, clv__shown(name, &shown));
    }
    return CLV_OK;
}

/** Columns that a file lacks, as words. */
typedef struct lacking {
    char names[1024];
    const char *first;
    size_t n, at;
    bool targets; // are among them
} lacking;

static void lacks(lacking *all, const char *name) {
    enum { MOST_NAMED = 8 };
    clv__shown_text shown;
    if (!all->n++) all->first = name;
    if (all->n <= MOST_NAMED)
        all->at += (size_t)snprintf(all->names + all->at, sizeof all->names - all->at, "%s'%.100s'",
                                    all->n > 1 ? ", " : "", clv__shown(name, &shown));
    else if (all->n == MOST_NAMED + 1)
        snprintf(all->names + all->at, sizeof all->names - all->at, ", ...");
}

/** A column that the model does not know may be the one that is lacking, mistyped. */
static clv_status no_columns(const clv__table_file *file, const clv__table_form *form, const bool *used,
                             const lacking *all) {
    clv__nearest nearest = {.word = all->first};
    for (size_t c = 0; all->n == 1 && c < file->csv.columns; c++) {
        const char *name = clv__csv_field(&file->csv, -1, c);
        if (!used[c] && !is_known(form, name)) clv__nearest_offer(&nearest, name);
    }
    const char *meant = all->n > 1 ? "" : clv__nearest_text(&nearest);
    const char *row = clv__table_row_hint(file);
    const char *without = *meant         ? ""
                          : *row         ? row
                          : all->targets ? ""
                          : all->n > 1   ? "; to do without them train again and leave them out "
                                           "(clv_table_config.ignore)"
                                         : "; to do without it train again and leave it out "
                                           "(clv_table_config.ignore)";
    CLV_FAIL(file->error, CLV_E_NOT_FOUND, "'%s' has no column%s %s, which the model was trained on%s%s",
             file->path, all->n > 1 ? "s" : "", all->names, meant, without);
}

static clv_status find(const clv__table_file *file, clv__table_form *form, bool *used, bool targets,
                       const char *ignore) {
    lacking all = {.n = 0};
    for (size_t i = 0, from = 0; i < form->n; i++, from++) {
        clv__table_column *column = &form->columns[i];
        column->at = column_from(&file->csv, from, column->name);
        if (column->at < 0) {
            lacks(&all, column->name);
            continue;
        }
        from = (size_t)column->at;
        used[from] = true;
    }
    for (size_t i = 0; targets && i < form->n_targets; i++) {
        clv__table_column *target = &form->targets[i];
        target->at = clv__csv_column(&file->csv, target->name, strlen(target->name));
        if (target->at < 0) lacks(&all, target->name), all.targets = true;
    }
    return all.n ? no_columns(file, form, used, &all) : check_others(file, form, used, ignore);
}

clv_status clv__table_find(const clv__table_file *file, clv__table_form *form, bool targets,
                           const char *ignore) {
    bool *used = clv__alloc(file->csv.columns, sizeof *used);
    const clv_status status = used ? find(file, form, used, targets, ignore) : clv__table_no_memory(file);
    free(used);
    return status;
}

void clv__table_expand(const clv__table_form *form, const clv__table_value *values, float *out) {
    memset(out, 0, (size_t)form->width * sizeof *out);
    for (size_t i = 0; i < form->n; i++) {
        if (!form->columns[i].is_words)
            out[form->columns[i].place] = values[i].number;
        else if (values[i].place >= 0)
            out[values[i].place] = 1;
    }
}

static clv_status fill(const clv__table_file *file, const clv__table_form *form, float *out,
                       clv_table_report *report) {
    clv__table_value *values = clv__alloc(form->n, sizeof *values);
    clv_status status = values ? CLV_OK : clv__table_no_memory(file);
    for (size_t row = 0; row < file->csv.rows && status == CLV_OK; row++) {
        status = clv__table_row(file, form, row, values, report);
        if (status == CLV_OK) clv__table_expand(form, values, out + row * (size_t)form->width);
    }
    free(values);
    return status;
}

static clv_status read_rows(clv__table_file *file, clv__table_form *form, const clv_table_rows_config *config,
                            clv_array *out, clv_table_report *report) {
    const clv_shape shape = CLV_SHAPE((int64_t)file->csv.rows, form->width);
    file->decimal_comma = form->decimal_comma || config->decimal_comma;
    CLV_TRY(clv__table_find(file, form, false, config->ignore));
    CLV_TRY(clv__table_form_survey(file, form->columns, form->n));
    CLV_TRY(clv__array_init(file->error, CLV_DTYPE_F32, &shape, out));
    report->columns = form->width;
    for (size_t i = 0; i < form->n; i++) report->word_columns += form->columns[i].is_words;
    return fill(file, form, out->data, report);
}

clv_status clv_table_rows_read(clv_runtime *runtime, const char *path, const char *record,
                               const clv_table_rows_config *config, clv_array *out,
                               clv_table_report *report) {
    static const clv_table_rows_config none;
    clv__error *error = clv__io_error(runtime);
    clv_table_report unasked;
    clv__table_form form;
    clv__table_file file = {0};
    void *owner;
    CLV_TRY(CLV__GIVEN(error, path));
    CLV_TRY(CLV__GIVEN(error, record));
    CLV_TRY(CLV__GIVEN(error, out));
    *out = (clv_array){0};
    if (!report) report = &unasked;
    *report = (clv_table_report){0};
    CLV_TRY(clv__table_record_read(error, record, &form, &owner)); // one that is none is told before the file
    clv_status status = clv__table_open(error, path, &file);
    if (status == CLV_OK) status = read_rows(&file, &form, config ? config : &none, out, report);
    if (status != CLV_OK) {
        clv_array_reset(out);
        *report = (clv_table_report){0};
    }
    clv__table_close(&file);
    clv__table_record_free(&form, owner);
    return status;
}
