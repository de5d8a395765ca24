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
 * Read a file: values separated by commas, semicolons, tabs or |, whichever its first lines have or `sep=X` before them says, one row a
 * line; a value with a separator, a quote or a line's end in it stands in double quotes, with its own quotes doubled. Empty lines are
 * skipped, and so are columns without a name and a value. Blanks around names are taken away. The first column alone may
 * have the name "": an index, as pandas writes it. UTF-8, or UTF-16 with its mark.
 *
 * Errors  CLV_E_FORMAT  what is wrong, in which line: rows of other lengths, names that are empty or twice, bytes that are not
 *         UTF-8, a quote that is not closed, no rows; or what the file is instead of a table;  CLV_E_HOST_MEMORY
 * Source  RFC 4180
 */
clv_status clv__csv_read(clv__input *input, clv__csv *out);
void clv__csv_reset(clv__csv *csv);
/** csv_bytes.c: the file's text as UTF-8 without a mark, to be freed, with room for a byte behind it; *text NULL on failure. */
clv_status clv__csv_bytes(clv__input *input, char **text, size_t *bytes);

/** A field: of row -1 the names. */
static inline const char *clv__csv_field(const clv__csv *csv, int64_t row, size_t column) {
    return csv->text + csv->fields[(size_t)(row + 1) * csv->columns + column];
}
/** The column of that name; -1: there is none. */
int clv__csv_column(const clv__csv *csv, const char *name, size_t length);

#endif
