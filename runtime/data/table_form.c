// SPDX-License-Identifier: Apache-2.0
// A table's rows as a model takes them: numbers standardized in double, words as places of a 1, and what is missing filled in.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/table.h"
#include "io/shown.h"

// ---- words --------------------------------------------------------------------------------------------------

static int compare_classes(const void *a, const void *b) {
    return strcmp(((const clv__table_class *)a)->word, ((const clv__table_class *)b)->word);
}

void clv__table_words_sort(clv__table_words *words) {
    if (words->n) qsort(words->all, words->n, sizeof *words->all, compare_classes);
}

int32_t clv__table_word_number(const clv__table_words *words, const char *word) {
    const clv__table_class wanted = {.word = word};
    const clv__table_class *at =
        words->n ? bsearch(&wanted, words->all, words->n, sizeof *words->all, compare_classes) : NULL;
    return at ? at->number : -1;
}

// ---- forms --------------------------------------------------------------------------------------------------

static void free_columns(clv__table_column *columns, size_t n) {
    for (size_t i = 0; columns && i < n; i++) {
        free(columns[i].words.all);
        clv__table_survey_free(&columns[i].survey);
    }
    free(columns);
}

void clv__table_form_free(clv__table_form *form) {
    free_columns(form->columns, form->n);
    free_columns(form->targets, form->n_targets);
    free(form->ignored);
    *form = (clv__table_form){0};
}

void clv__table_form_place(clv__table_form *form) {
    form->width = 0;
    for (size_t i = 0; i < form->n; i++) {
        clv__table_column *column = &form->columns[i];
        const bool also_missing = form->missing == CLV_MISSING_MEAN;
        column->place = form->width;
        column->width = column->is_words ? (int64_t)column->words.n + also_missing : 1;
        form->width += column->width;
    }
}

// ---- rows ---------------------------------------------------------------------------------------------------

/** Counts a word that the model does not know; keeps where the first is, and as much of it as there is room for. */
static void note_unknown(const clv__table_file *file, const clv__table_form *form,
                         const clv__table_column *column, size_t row, clv_table_report *report) {
    const char *word = clv__csv_field(&file->csv, (int64_t)row, (size_t)column->at);
    size_t n = strlen(word);
    if (report->unknown++) return;
    const bool fits = n < sizeof report->unknown_word;
    if (!fits) n = sizeof report->unknown_word - sizeof "...";
    while (n && ((unsigned char)word[n] & 0xc0) == 0x80) n--; // no part of a letter
    memcpy(report->unknown_word, word, n);
    snprintf(report->unknown_word + n, sizeof report->unknown_word - n, "%s", fits ? "" : "...");
    report->unknown_line = (int64_t)file->csv.lines[row + 1];
    report->unknown_column = (int32_t)(column - form->columns);
}

/** The place of a word's 1; of one that is missing the last. */
static clv__table_value word_value(const clv__table_file *file, const clv__table_form *form,
                                   const clv__table_column *column, size_t row, bool missing,
                                   clv_table_report *report) {
    const char *word = clv__csv_field(&file->csv, (int64_t)row, (size_t)column->at);
    const int64_t number = missing ? column->width - 1 : clv__table_word_number(&column->words, word);
    report->filled += missing;
    if (number < 0) note_unknown(file, form, column, row, report);
    return (clv__table_value){.place = number < 0 ? -1 : (int32_t)(column->place + number)};
}

clv_status clv__table_row(const clv__table_file *file, const clv__table_form *form, size_t row,
                          clv__table_value *out, clv_table_report *report) {
    clv__shown_text name;
    report->rows++;
    for (size_t i = 0; i < form->n; i++) {
        const clv__table_column *column = &form->columns[i];
        const bool missing = column->survey.kinds[row] == CLV__CELL_MISSING;
        if (missing && (form->missing != CLV_MISSING_MEAN || (!column->is_words && isnan(column->fill))))
            CLV_FAIL(file->error, CLV_E_FORMAT,
                     "'%s', line %" PRIu64
                     ": nothing stands in column '%s', and the model has no mean for it; "
                     "leave the row out, or train with clv_table_config.missing = CLV_MISSING_MEAN",
                     file->path, file->csv.lines[row + 1], clv__shown(column->name, &name));
        if (column->is_words) {
            out[i] = word_value(file, form, column, row, missing, report);
            continue;
        }
        const double value = missing ? column->fill : column->survey.values[row];
        report->filled += missing;
        out[i].number = (float)((value - column->scale.mean) / column->scale.scale);
        if (!isfinite(out[i].number))
            CLV_FAIL(file->error, CLV_E_FORMAT,
                     "'%s', line %" PRIu64 ": %g in column '%s' is too far from the mean, %g, for f32",
                     file->path, file->csv.lines[row + 1], value, clv__shown(column->name, &name),
                     column->scale.mean);
    }
    return CLV_OK;
}
