// SPDX-License-Identifier: Apache-2.0
// Columns of numbers that only count the rows, as ids do: they are trained on, for a day counted so may tell
// much, but rows to predict then need them, too. That is said before the training.
#include "datasets/datasets.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_ROWS = 20, MOST_ROWS = 1000000 }; // fewer differ by chance; f32 does not tell more apart

/** Rows of a dataset, one after the other, in room for one. */
typedef struct rows {
    const clv_dataset *dataset;
    int64_t n, columns;
    float *row;
    void *to[2 * CLV_MAX_PORTS];
} rows;

static void read_row(rows *of, int64_t i) {
    memset(of->to, 0, sizeof of->to);
    of->to[0] = of->row;
    clv_dataset_read(of->dataset, i, of->to);
}

static void find_ranges(rows *of, float *least, float *most) {
    for (int64_t i = 0; i < of->n; i++) {
        read_row(of, i);
        for (int64_t c = 0; c < of->columns; c++) {
            if (!i || of->row[c] < least[c]) least[c] = of->row[c];
            if (!i || of->row[c] > most[c]) most[c] = of->row[c];
        }
    }
}

/** Is each value another whole number of units above the least? So many there can be. */
static bool are_different(rows *of, int64_t column, double least, double unit, int64_t most) {
    bool *seen = calloc((size_t)most + 1, sizeof *seen), good = seen != NULL;
    for (int64_t i = 0; good && i < of->n; i++) {
        read_row(of, i);
        const double units = ((double)of->row[column] - least) * unit;
        const int64_t k = llround(units);
        good = fabs(units - (double)k) < 0.1 && k >= 0 && k <= most && !seen[k];
        if (good) seen[k] = true;
    }
    free(seen);
    return good;
}

/** A column's number is unit times what the dataset holds; where rows are in random order, those that are
 *  tested on are missing, and a few may be left out. */
static bool is_id(rows *of, int64_t column, double least, double most, double unit) {
    const double range = (most - least) * unit;
    return range > (double)of->n - 1.5 && range < 1.3 * (double)of->n &&
           are_different(of, column, least, unit, llround(range));
}

static void look(const cli_args *args, rows *of, const json_t *record, const float *least,
                 const float *most) {
    const json_t *columns = json_object_get(record, "columns"), *words = json_object_get(record, "words"),
                 *scales = json_object_get(record, "scales");
    int64_t at = 0;
    for (size_t i = 0; i < json_array_size(columns) && at < of->columns; i++) {
        const char *name = json_string_value(json_array_get(columns, i));
        const json_t *own = name ? json_object_get(words, name) : NULL, *scale = json_array_get(scales, i);
        const double unit = json_is_number(scale) ? json_number_value(scale) : 1;
        if (name && !own && is_id(of, at, (double)least[at], (double)most[at], unit > 0 ? unit : 1))
            fprintf(stderr,
                    "%s: column '%.60s' has another whole number in each row, as ids do, and rows to predict "
                    "will need it; --ignore %.60s leaves it out\n",
                    args->words[1], name, name);
        at += own ? (int64_t)json_array_size(own) : 1;
    }
}

void cli_tell_ids(const cli_args *args, const clv_dataset *dataset) {
    const clv_dataset_info info = clv_dataset_info_get(dataset);
    if (args->quiet || !cli_data_is(args, "csv") || !info.table || info.count < LEAST_ROWS ||
        info.count > MOST_ROWS)
        return;
    rows of = {.dataset = dataset, .n = info.count, .columns = info.sample.dims[0]};
    json_t *record = cli_json_read(info.table, strlen(info.table));
    float *room = calloc((size_t)of.columns, 3 * sizeof *room);
    if (record && room) {
        of.row = room;
        find_ranges(&of, room + of.columns, room + 2 * of.columns);
        look(args, &of, record, room + of.columns, room + 2 * of.columns);
    }
    free(room);
    json_decref(record);
}
