// SPDX-License-Identifier: Apache-2.0
// Numbers of a table: read from its text, and standardized.
#define _GNU_SOURCE // strtod_l: a point is a point in any locale
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "data/table.h"
#include "io/shown.h"

clv_status clv__table_no_memory(const clv__table_file *file) {
    CLV_FAIL(file->error, CLV_E_HOST_MEMORY, "'%s': no host memory for its table", file->path);
}

clv_status clv__table_number(const clv__table_file *m, size_t row, int column, float *out) {
    const char *field = clv__csv_field(m->csv, (int64_t)row, (size_t)column);
    const char *name = clv__csv_field(m->csv, -1, (size_t)column);
    clv__shown_text a, b;
    char *end;
    const double value = strtod_l(field, &end, m->locale);
    while (*end == ' ') end++;
    if (!*field)
        CLV_FAIL(m->error, CLV_E_FORMAT, "'%s', line %" PRIu64 ": nothing stands in column '%s'", m->path,
                 m->csv->lines[row + 1], clv__shown(name, &a));
    if (end == field || *end || !isfinite(value) || fabs(value) > 3.4028234e38)
        CLV_FAIL(m->error, CLV_E_FORMAT, "'%s', line %" PRIu64 ": '%s' in column '%s' is not a number of f32",
                 m->path, m->csv->lines[row + 1], clv__shown(field, &b), clv__shown(name, &a));
    *out = (float)value;
    return CLV_OK;
}

void clv__table_standardize(const clv__table_scale *scales, size_t n_columns, size_t rows, float *values) {
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < n_columns; c++) {
            float *value = &values[r * n_columns + c];
            *value = (float)(((double)*value - scales[c].mean) / scales[c].scale);
        }
}
