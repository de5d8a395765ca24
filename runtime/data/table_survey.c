// SPDX-License-Identifier: Apache-2.0
// What a column of a table holds, told by all its rows: numbers, words, dates, nothing; or refused, with the cell and the remedy.
#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/table.h"
#include "io/shown.h"

/** How a sentence begins that is about a cell: file, line, what stands there, column. */
#define CELL "'%s', line %" PRIu64 ": '%s' in column '%s'"
#define OF_CELL(file, row, column)                                                                           \
    (file)->path, (file)->csv.lines[(row) + 1],                                                              \
        clv__shown(clv__csv_field(&(file)->csv, (int64_t)(row), (size_t)(column)), &(clv__shown_text){{0}}), \
        clv__shown(clv__csv_field(&(file)->csv, -1, (size_t)(column)), &(clv__shown_text){{0}})

/** A price in a currency that writes 1,234.50: a comma and three digits are thousands, for it has no thousandths. */
static bool is_price(const clv__cell *cell) {
    return !strcmp(cell->unit, "$") || !strcmp(cell->unit, "£");
}

static void count(clv__table_survey *s, size_t row, const clv__cell *cell) {
    if (!s->n[cell->kind]++) s->first[cell->kind] = row;
    if (cell->kind == CLV__CELL_ODD && s->n[CLV__CELL_ODD] == 1) s->odd = cell->odd;
    if (cell->kind != CLV__CELL_NUMBER) return;
    if (!*cell->unit && s->first_without == SIZE_MAX) s->first_without = row;
    if (*cell->unit && s->first_unit == SIZE_MAX) {
        s->first_unit = row;
        s->unit = cell->unit;
    } else if (*cell->unit && strcmp(cell->unit, s->unit) != 0 && s->first_other == SIZE_MAX) {
        s->first_other = row;
    }
    const bool surely = cell->is_surely || is_price(cell);
    if (cell->is_grouped && !surely && s->first_grouped == SIZE_MAX) s->first_grouped = row;
    s->is_surely_grouped |= (cell->is_grouped && surely) || cell->is_pointed;
}

clv_status clv__table_survey_make(const clv__table_file *file, int column, clv__table_survey *out) {
    const size_t rows = file->csv.rows;
    *out = (clv__table_survey){.values = clv__alloc(rows, sizeof *out->values),
                               .kinds = clv__alloc(rows, 1),
                               .unit = "",
                               .first_unit = SIZE_MAX,
                               .first_other = SIZE_MAX,
                               .first_without = SIZE_MAX,
                               .first_grouped = SIZE_MAX};
    if (!out->values || !out->kinds) return clv__table_no_memory(file);
    for (size_t row = 0; row < rows; row++) {
        const char *text = clv__csv_field(&file->csv, (int64_t)row, (size_t)column);
        const clv__cell cell = clv__cell_read(text, file->decimal_comma);
        out->values[row] = cell.kind == CLV__CELL_NUMBER ? cell.number : (double)NAN;
        out->kinds[row] = (uint8_t)cell.kind;
        count(out, row, &cell);
    }
    return CLV_OK;
}

void clv__table_survey_free(clv__table_survey *survey) {
    free(survey->values);
    free(survey->kinds);
    *survey = (clv__table_survey){0};
}

// ---- numbers ------------------------------------------------------------------------------------------------

static clv_status refuse_odd(const clv__table_file *file, int column, const clv__table_survey *s) {
    const size_t row = s->first[CLV__CELL_ODD];
    if (s->odd == CLV__ODD_LARGE)
        CLV_FAIL(file->error, CLV_E_FORMAT, CELL " is not a number of f32; leave it empty, or the row out",
                 OF_CELL(file, row, column));
    if (s->odd == CLV__ODD_POINT)
        CLV_FAIL(file->error, CLV_E_FORMAT,
                 CELL " has a decimal point, and numbers of this table have a decimal comma; write all of "
                      "them in one way",
                 OF_CELL(file, row, column));
    CLV_FAIL(file->error, CLV_E_FORMAT,
             CELL " is a number if commas are decimal; clv_table_config.decimal_comma reads numbers so",
             OF_CELL(file, row, column));
}

static clv_status refuse_units(const clv__table_file *file, int column, const clv__table_survey *s) {
    const bool percent = !strcmp(s->unit, "%");
    if (s->first_other != SIZE_MAX)
        CLV_FAIL(file->error, CLV_E_FORMAT,
                 CELL " has another sign than '%s' in line %" PRIu64
                      "; write all numbers of the column in one unit",
                 OF_CELL(file, s->first_other, column), s->unit, file->csv.lines[s->first_unit + 1]);
    if (percent && s->first_without != SIZE_MAX)
        CLV_FAIL(file->error, CLV_E_FORMAT,
                 CELL " has no percent sign, and the value in line %" PRIu64
                      " has one; write all numbers of the column in one way",
                 OF_CELL(file, s->first_without, column), file->csv.lines[s->first_unit + 1]);
    return CLV_OK;
}

/** Are its numbers all of one unit, and is it plain what commas are? CLV_E_FORMAT: where not, and what mends it. */
static clv_status check_numbers(const clv__table_file *file, int column, const clv__table_survey *s) {
    if (s->n[CLV__CELL_ODD]) return refuse_odd(file, column, s);
    if (s->first_grouped != SIZE_MAX && !s->is_surely_grouped)
        CLV_FAIL(file->error, CLV_E_FORMAT,
                 CELL " may be a thousand and more, or have a decimal comma; take the comma out, or "
                      "clv_table_config.decimal_comma reads it as one",
                 OF_CELL(file, s->first_grouped, column));
    return refuse_units(file, column, s);
}

// ---- words or numbers ---------------------------------------------------------------------------------------

static clv_status refuse_empty(const clv__table_file *file, int column, clv__table_role role) {
    clv__shown_text name;
    CLV_FAIL(file->error, CLV_E_FORMAT, "'%s': column '%s' has no values%s", file->path,
             clv__shown(clv__csv_field(&file->csv, -1, (size_t)column), &name),
             role == CLV__ROLE_FEATURE ? "; leave it out (clv_table_config.ignore)" : "");
}

static clv_status refuse_dates(const clv__table_file *file, int column, const clv__table_survey *s,
                               clv__table_role role) {
    CLV_FAIL(file->error, CLV_E_FORMAT,
             CELL " is a date, and a model takes numbers: write one in its place, such as the days since "
                  "the first%s",
             OF_CELL(file, s->first[CLV__CELL_DATE], column),
             role == CLV__ROLE_FEATURE ? ", or leave the column out (clv_table_config.ignore)"
                                       : ", or learn another column");
}

/** Numbers, and what is none, in one column. */
static clv_status refuse_mixture(const clv__table_file *file, int column, const clv__table_survey *s,
                                 clv__table_role role) {
    const bool words = s->n[CLV__CELL_WORD] > 0;
    const size_t row = s->first[words ? CLV__CELL_WORD : CLV__CELL_DATE];
    const size_t others = s->n[CLV__CELL_NUMBER] + s->n[CLV__CELL_ODD];
    CLV_FAIL(file->error, CLV_E_FORMAT, CELL " is not a number, and %zu other%s of the column %s; mend it%s",
             OF_CELL(file, row, column), others, others == 1 ? "" : "s", others == 1 ? "is one" : "are",
             role == CLV__ROLE_FEATURE ? ", take all of them as words (clv_table_config.words), or leave the "
                                         "column out (clv_table_config.ignore)"
             : role == CLV__ROLE_TARGET ? ", or take each value as a class (clv_table_config.classes)"
                                        : "");
}

clv_status clv__table_tell_kind(const clv__table_file *file, int column, const clv__table_survey *s,
                                clv__table_role role, bool *is_words) {
    const size_t numbers = s->n[CLV__CELL_NUMBER] + s->n[CLV__CELL_ODD];
    const size_t words = s->n[CLV__CELL_WORD], dates = s->n[CLV__CELL_DATE];
    *is_words = false;
    if (!numbers && !words && !dates) return refuse_empty(file, column, role);
    if (numbers && (words || dates)) return refuse_mixture(file, column, s, role);
    if (numbers) return check_numbers(file, column, s);
    if (dates > words) return refuse_dates(file, column, s, role);
    if (role == CLV__ROLE_TARGETS)
        CLV_FAIL(file->error, CLV_E_FORMAT,
                 CELL " is a word, and columns that are learnt together must hold numbers; learn it alone",
                 OF_CELL(file, s->first[CLV__CELL_WORD], column));
    *is_words = true;
    return CLV_OK;
}

const char *clv__table_row_hint(const clv__table_file *file) {
    size_t numbers = 0;
    for (size_t c = 0; c < file->csv.columns; c++)
        numbers +=
            clv__cell_read(clv__csv_field(&file->csv, -1, c), file->decimal_comma).kind == CLV__CELL_NUMBER;
    return 2 * numbers >= file->csv.columns ? "; the first line must name the columns, and looks like a row"
                                            : "";
}

/** Of new rows: what the model knows as numbers must be numbers. */
static clv_status check_known(const clv__table_file *file, const clv__table_column *column) {
    const clv__table_survey *s = &column->survey;
    const bool words = s->n[CLV__CELL_WORD] > 0;
    if (words || s->n[CLV__CELL_DATE])
        CLV_FAIL(file->error, CLV_E_FORMAT,
                 CELL " is not a number, and the model was trained on numbers there",
                 OF_CELL(file, s->first[words ? CLV__CELL_WORD : CLV__CELL_DATE], column->at));
    if (s->n[CLV__CELL_ODD] || !column->is_grouped) CLV_TRY(check_numbers(file, column->at, s));
    CLV_TRY(refuse_units(file, column->at, s));
    const bool percent = !strcmp(column->unit, "%");
    if (s->first_unit != SIZE_MAX && strcmp(s->unit, column->unit) != 0 &&
        (percent || *column->unit || !strcmp(s->unit, "%")))
        CLV_FAIL(file->error, CLV_E_FORMAT, CELL " has a sign, and the model was trained on %s%s%s",
                 OF_CELL(file, s->first_unit, column->at), *column->unit ? "'" : "numbers without one",
                 column->unit, *column->unit ? "'" : "");
    if (percent && s->first_without != SIZE_MAX)
        CLV_FAIL(file->error, CLV_E_FORMAT,
                 CELL " has no percent sign, and the model was trained on percents",
                 OF_CELL(file, s->first_without, column->at));
    return CLV_OK;
}

clv_status clv__table_form_survey(const clv__table_file *file, clv__table_column *columns, size_t n) {
    for (size_t i = 0; i < n; i++) {
        clv__table_column *column = &columns[i];
        if (column->at < 0) continue;
        CLV_TRY(clv__table_survey_make(file, column->at, &column->survey));
        if (!column->is_words) CLV_TRY(check_known(file, column));
    }
    return CLV_OK;
}
