// SPDX-License-Identifier: Apache-2.0
// What reading a table (table.c) and reading more rows of its columns (table_record.c) share.
#ifndef CLV_DATA_TABLE_H
#define CLV_DATA_TABLE_H

#include <locale.h>

#include "data/dataset.h"
#include "io/csv.h"

/** A file that is read, its text and the locale for numbers. */
typedef struct clv__table_file {
    clv__error *error;
    const char *path;
    const clv__csv *csv;
    locale_t locale;
} clv__table_file;

clv_status clv__table_no_memory(const clv__table_file *file);
/** The number of a row and column. CLV_E_FORMAT: which line, which column, why not. */
clv_status clv__table_number(const clv__table_file *file, size_t row, int column, float *out);

/** How a column is standardized: (x - mean) / scale. */
typedef struct clv__table_scale {
    double mean, scale;
} clv__table_scale;

/** Standardize rows in place. */
void clv__table_standardize(const clv__table_scale *scales, size_t n_columns, size_t rows, float *values);

/** Names of a table that was read. */
typedef struct clv__table_names {
    const char *const *columns, *const *targets, *const *ignored, *const *classes; // classes NULL: numbers
    size_t n_columns, n_targets, n_ignored, n_classes;
} clv__table_names;

/** The record of them, to be freed; scales NULL: columns are as they stand. NULL: no memory. */
char *clv__table_record(const clv__table_names *names, const clv__table_scale *scales);

/** clv_table_rows of a file that has been read. */
clv_status clv__table_rows(const clv__table_file *file, const char *record, const char *ignore,
                           clv_array *out);

/** The classes of a record, in the order of their words, with their numbers. None: the targets are numbers. */
typedef struct clv__table_class {
    const char *word;
    int32_t number;
} clv__table_class;
typedef struct clv__table_classes {
    clv__table_class *all;
    size_t n;
    void *owner; // of the words
} clv__table_classes;
clv_status clv__table_classes_of(clv__error *error, const char *record, clv__table_classes *out);
void clv__table_classes_free(clv__table_classes *classes);
/** The number of a word, -1: there is no such class. */
int32_t clv__table_class_number(const clv__table_classes *classes, const char *word);

#endif
