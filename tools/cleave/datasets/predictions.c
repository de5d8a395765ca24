// SPDX-License-Identifier: Apache-2.0
// Predictions of a table's rows as JSON: what `run csv -o` writes as a table, an object for each row.
#include "cli.h"

#include <stdlib.h>

/** The next cell as text, to be freed; moves on behind it. *last: it ends its line. NULL: no memory. */
static char *next_cell(const char **at, const char *end, bool *last) {
    char *text = malloc((size_t)(end - *at) + 1), *to = text;
    const bool quoted = *at < end && **at == '"';
    const char *from = *at + quoted;
    while (text && from < end) {
        if (quoted && *from == '"' && (from + 1 == end || from[1] != '"')) break;
        if (!quoted && (*from == ',' || *from == '\n' || *from == '\r')) break;
        from += quoted && *from == '"';
        *to++ = *from++;
    }
    if (text) *to = 0;
    from += quoted && from < end;
    while (from < end && *from == '\r') from++;
    *last = from >= end || *from == '\n';
    *at = from < end ? from + 1 : end;
    return text;
}

/** A word as it stands, anything else as a number. */
static json_t *value_of(const char *text, bool word) {
    return word ? json_string(text) : cli_real(strtod(text, NULL));
}

/** One row; the first column of classes is a word. */
static json_t *row_of(const char **at, const char *end, const json_t *names, bool classes) {
    json_t *row = json_object();
    bool last = false;
    for (size_t i = 0; !last; i++) {
        char *text = next_cell(at, end, &last);
        const char *name = json_string_value(json_array_get(names, i));
        if (text && name) json_object_set_new(row, name, value_of(text, classes && !i));
        last |= !text;
        free(text);
    }
    return row;
}

json_t *cli_predictions_json(const char *csv, size_t bytes, const char *record) {
    json_t *rows = json_array(), *names = json_array(), *table = cli_json_read(record, strlen(record));
    const bool classes = json_array_size(json_object_get(table, "classes")) > 0;
    const char *at = csv, *end = csv + bytes;
    for (bool last = false; !last;) {
        char *name = next_cell(&at, end, &last);
        json_array_append_new(names, json_string(name ? name : ""));
        last |= !name;
        free(name);
    }
    while (at < end) json_array_append_new(rows, row_of(&at, end, names, classes));
    json_decref(names);
    json_decref(table);
    return rows;
}
