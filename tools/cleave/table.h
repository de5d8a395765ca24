// SPDX-License-Identifier: Apache-2.0
// Tables that fit where they are shown. Where a table is wider than the screen, texts are shortened and
// columns left out, the least important first, and a line below the table names those. Numbers are never
// shortened. Without a screen a table is as wide as it is.
#ifndef CLEAVE_TABLE_H
#define CLEAVE_TABLE_H

#include <stdio.h>

enum { TABLE_KEEP = 100, TABLE_COLUMNS = 32 };

typedef enum table_kind {
    TABLE_TEXT,  // to the left; its end may be cut
    TABLE_NAME,  // to the left; its middle may be cut, as ends of names tell them apart
    TABLE_NUMBER // to the right, never cut
} table_kind;

typedef struct table_column {
    const char *name;
    table_kind kind;
    int importance;   // the least important column is left out first; TABLE_KEEP: never
    int least;        // columns that a text needs at least; 0: it is never cut
    const char *over; // a second heading over neighbours that share it; NULL: none
} table_column;

typedef struct table table;

/** A table without rows. Columns are copied, names are borrowed. NULL without memory: then nothing below does
 *  anything, and table_print says so. */
table *table_create(const table_column *columns, int n);
/** The next cell of a row. A row ends with its last column. */
void table_add(table *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/** The rest of the row is a sentence, broken into lines where it does not fit. */
void table_rest(table *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/** The colour of the next cell or sentence, where there are colours: "\033[31m". */
void table_paint(table *t, const char *colour);
/** Leave a column out, if it says nothing. */
void table_hide(table *t, int column);
void table_destroy(table *t);
/** Print it and take it. */
void table_print(table *t, FILE *out);

#endif
