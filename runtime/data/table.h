// SPDX-License-Identifier: Apache-2.0
// What reading a table (table.c) and reading more rows of its columns (table_rows.c) share: what each column holds, and rows by that.
#ifndef CLV_DATA_TABLE_H
#define CLV_DATA_TABLE_H

#include "data/dataset.h"
#include "data/table_cell.h"
#include "io/csv.h"

enum { CLV__TABLE_WIDTH = 65536 }; // numbers of a row, at most

/** A file that is read, and its text. */
typedef struct clv__table_file {
    clv__error *error;
    const char *path;
    clv__csv csv; // blanks around values are taken away
    bool decimal_comma;
} clv__table_file;

clv_status clv__table_open(clv__error *error, const char *path, clv__table_file *out);
void clv__table_close(clv__table_file *file);
clv_status clv__table_no_memory(const clv__table_file *file);

// ---- what a column holds (table_survey.c) -------------------------------------------------------------------

/** All cells of a column, looked at. */
typedef struct clv__table_survey {
    double *values;                                        // [rows]: NaN where no number stands
    uint8_t *kinds;                                        // [rows]: clv__cell_kind
    size_t n[CLV__N_CELL_KINDS], first[CLV__N_CELL_KINDS]; // how many rows, and the first of them
    const char *unit;                                      // of the first that has one; ""
    size_t first_unit, first_other, first_without;         // rows; SIZE_MAX: none. Other: of a second unit
    size_t first_grouped;                                  // 1,234 that may be 1.234; SIZE_MAX: none
    bool is_surely_grouped;                                // others tell that commas set thousands apart
    clv__cell_odd odd;                                     // of the first
} clv__table_survey;

clv_status clv__table_survey_make(const clv__table_file *file, int column, clv__table_survey *out);
void clv__table_survey_free(clv__table_survey *survey);

/** Of a column that is not there: where names of columns are numbers, that the first line is no row; else "". */
const char *clv__table_row_hint(const clv__table_file *file);

typedef enum clv__table_role { CLV__ROLE_FEATURE, CLV__ROLE_TARGET, CLV__ROLE_TARGETS } clv__table_role;
/** Does it hold words, or numbers? CLV_E_FORMAT: both, dates, or nothing, and what mends it. */
clv_status clv__table_tell_kind(const clv__table_file *file, int column, const clv__table_survey *survey,
                                clv__table_role role, bool *is_words);

// ---- columns as a model knows them --------------------------------------------------------------------------

/** Words of a column, in their order, with their numbers. */
typedef struct clv__table_class {
    const char *word;
    int32_t number;
} clv__table_class;
typedef struct clv__table_words {
    clv__table_class *all;
    size_t n;
} clv__table_words;
void clv__table_words_sort(clv__table_words *words);
/** The number of a word, -1: there is no such. */
int32_t clv__table_word_number(const clv__table_words *words, const char *word);

/** How a column is standardized: (x - mean) / scale. */
typedef struct clv__table_scale {
    double mean, scale;
} clv__table_scale;

typedef struct clv__table_column {
    const char *name;
    int at; // the file's column
    bool is_words, is_grouped;
    clv__table_words words;
    clv__table_scale scale; // of numbers
    double fill;            // for a number that is missing; NaN: none
    const char *unit;       // of numbers
    int64_t place, width;   // of a row
    clv__table_survey survey;
} clv__table_column;

/** What rows are made of, and what is learnt. Texts belong to a file or a record, which must outlive it. */
typedef struct clv__table_form {
    clv__table_column *columns, *targets; // a target that is words has the classes
    size_t n, n_targets;
    const char **ignored;
    size_t n_ignored;
    int64_t width;
    clv_missing missing;
    bool is_scaled, decimal_comma;
} clv__table_form;

void clv__table_form_free(clv__table_form *form);
/** Each column's place, and the width of all. */
void clv__table_form_place(clv__table_form *form);

/** One value of a row: a number, or the place of a word's 1; -1: none. */
typedef union clv__table_value {
    float number;
    int32_t place;
} clv__table_value;

/** A row of the file as values, one of each column; counts what was filled and what is unknown. CLV_E_FORMAT */
clv_status clv__table_row(const clv__table_file *file, const clv__table_form *form, size_t row,
                          clv__table_value *out, clv_table_report *report);
/** A row of values as the numbers that a model takes, [width] (table_rows.c). */
void clv__table_expand(const clv__table_form *form, const clv__table_value *values, float *out);
/** Columns of new rows hold what those hold that the model knows: numbers are numbers. */
clv_status clv__table_form_survey(const clv__table_file *file, clv__table_column *columns, size_t n);

// ---- records (table_record.c) -------------------------------------------------------------------------------

/** To be freed; NULL: no memory. */
char *clv__table_record_write(const clv__table_form *form);
/** The form of a record, whose texts belong to *owner. */
clv_status clv__table_record_read(clv__error *error, const char *record, clv__table_form *out, void **owner);
void clv__table_record_free(clv__table_form *form, void *owner);

/** The file's column of each of the form's, with `targets` of its targets, too (table_rows.c): all that it lacks are named;
 *  `ignore` with commas. */
clv_status clv__table_find(const clv__table_file *file, clv__table_form *form, bool targets,
                           const char *ignore);

/**
 * Convert such a model's results to the table's units, in place: target * scale + mean where targets were standardized.
 *
 * results  [n, targets]; of a model for classes nothing is done
 *
 * Errors   CLV_E_FORMAT  no record
 */
CLV_MUST_CHECK clv_status clv__table_results_unscale(clv_runtime *runtime, const char *record, float *results,
                                                     int64_t n);

#endif
