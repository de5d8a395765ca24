// SPDX-License-Identifier: Apache-2.0
// A table from a file of separated values: names of columns, and fields as texts. What is in them is the reader's affair.
#ifndef CLV_IO_CSV_H
#define CLV_IO_CSV_H

#include "io/file.h"

enum { CLV__CSV_COLUMNS = 65536 };

/** Fields of rows one after the other, the first row being the names. All zero is empty. */
typedef struct clv__csv {
    char *text;           // of all fields, each with a zero byte at its end
    size_t *fields;       // [(rows + 1) * columns]: where each begins in `text`
    uint64_t *lines;      // [rows + 1]: the line of the file that each row begins in, from 1
    size_t rows, columns; // rows without the names
} clv__csv;

/**
 * Read a file: values separated by commas, semicolons or tabs (the first of them in its first line), one row a line; a value with
 * a separator, a quote or a line's end in it stands in double quotes, with its own quotes doubled. Empty lines are passed over.
 *
 * Errors  CLV_E_FORMAT  what is wrong, in which line: rows of other lengths, names that are empty or twice, bytes that are not
 *         UTF-8, a quote that is not closed, no rows;  CLV_E_HOST_MEMORY
 * Source  RFC 4180
 */
clv_status clv__csv_read(clv__input *input, clv__csv *out);
void clv__csv_reset(clv__csv *csv);

/** A field: of row -1 the names. */
static inline const char *clv__csv_field(const clv__csv *csv, int64_t row, size_t column) {
    return csv->text + csv->fields[(size_t)(row + 1) * csv->columns + column];
}
/** The column of that name; -1: there is none. */
int clv__csv_column(const clv__csv *csv, const char *name, size_t length);

#endif
