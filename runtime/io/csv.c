// SPDX-License-Identifier: Apache-2.0
// Separated values: the whole file is read, its quotes are taken away in place, and fields are counted row by row.
#include "io/csv.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "io/array.h"
#include "io/shown.h"

/** Where the parser is: bytes are read from `at` and written to `to`, which is never behind `at`. */
typedef struct parser {
    const clv__input *input;
    clv__csv *csv;
    const char *at, *end;
    char *to, separator;
    char stop; // what ended the last value: the separator, or a line's end
    uint64_t line;
    size_t n_fields, fields_room, n_rows, rows_room;
    size_t columns; // of this row so far
} parser;

#define BAD(p, ...) CLV_FAIL((p)->input->error, CLV_E_FORMAT, __VA_ARGS__)

static clv_status no_memory(const parser *p) {
    CLV_FAIL(p->input->error, CLV_E_HOST_MEMORY, "'%s': no host memory for its table", p->input->path);
}

/** The first comma, semicolon or tab of the first line that is not in quotes; a comma if there is none. */
static char find_separator(const char *at, const char *end) {
    for (bool quoted = false; at < end && (quoted || (*at != '\n' && *at != '\r')); at++) {
        if (*at == '"') quoted = !quoted;
        if (!quoted && (*at == ',' || *at == ';' || *at == '\t')) return *at;
    }
    return ',';
}

static bool ends_line(const parser *p) {
    return p->at == p->end || *p->at == '\n' || *p->at == '\r';
}

/** Read what ends a value or an empty line. Behind it there is room for the zero byte that ends the value. */
static void pass_stop(parser *p) {
    p->stop = p->at == p->end ? '\n' : *p->at++;
    if (p->stop == p->separator) return;
    if (p->stop == '\r' && p->at < p->end && *p->at == '\n') p->at++;
    p->stop = '\n';
    p->line++;
}

/** A value in quotes; `at` is behind the first of them. */
static clv_status read_quoted(parser *p) {
    const uint64_t begun = p->line;
    for (;; p->at++) {
        if (p->at == p->end) BAD(p, "'%s', line %" PRIu64 ": a quote is not closed", p->input->path, begun);
        if (*p->at == '"') {
            p->at++;
            if (p->at == p->end || *p->at != '"') break; // else a quote that is meant
        }
        if (*p->at == '\n') p->line++;
        *p->to++ = *p->at;
    }
    if (!ends_line(p) && *p->at != p->separator)
        BAD(p, "'%s', line %" PRIu64 ": a value goes on behind its closing quote", p->input->path, p->line);
    return CLV_OK;
}

static clv_status read_field(parser *p) {
    if (!clv__grow(&p->csv->fields, &p->fields_room, p->n_fields + 1, sizeof *p->csv->fields))
        return no_memory(p);
    char *begin = p->to;
    p->csv->fields[p->n_fields++] = (size_t)(begin - p->csv->text);
    if (++p->columns > CLV__CSV_COLUMNS)
        BAD(p, "'%s', line %" PRIu64 ": more than %d columns", p->input->path, p->line, CLV__CSV_COLUMNS);
    if (p->at < p->end && *p->at == '"') {
        p->at++;
        CLV_TRY(read_quoted(p));
    } else {
        while (!ends_line(p) && *p->at != p->separator) *p->to++ = *p->at++;
    }
    if (memchr(begin, 0, (size_t)(p->to - begin)))
        BAD(p, "'%s', line %" PRIu64 ": a zero byte in a value; is it a table?", p->input->path, p->line);
    const uint64_t line = p->line;
    pass_stop(p);
    *p->to++ = 0;
    if (!clv__utf8_valid(begin))
        BAD(p, "'%s', line %" PRIu64 ": a value that is not UTF-8", p->input->path, line);
    return CLV_OK;
}

static clv_status read_row(parser *p) {
    if (!clv__grow(&p->csv->lines, &p->rows_room, p->n_rows + 1, sizeof *p->csv->lines)) return no_memory(p);
    p->csv->lines[p->n_rows++] = p->line;
    p->columns = 0;
    do CLV_TRY(read_field(p));
    while (p->stop == p->separator);
    if (p->n_rows == 1) p->csv->columns = p->columns;
    if (p->columns != p->csv->columns)
        BAD(p, "'%s', line %" PRIu64 ": %zu values, and the first line names %zu columns", p->input->path,
            p->csv->lines[p->n_rows - 1], p->columns, p->csv->columns);
    return CLV_OK;
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static clv_status check_names(const parser *p) {
    const size_t n = p->csv->columns;
    const char **names = clv__alloc(n, sizeof *names);
    clv__shown_text shown;
    if (!names) return no_memory(p);
    for (size_t i = 0; i < n; i++) names[i] = clv__csv_field(p->csv, -1, i);
    qsort(names, n, sizeof *names, compare_names);
    clv_status status = CLV_OK;
    if (!**names)
        status = clv__error_set(p->input->error, CLV_E_FORMAT, "'%s': a column has no name in the first line",
                                p->input->path);
    for (size_t i = 1; i < n && status == CLV_OK; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            status = clv__error_set(p->input->error, CLV_E_FORMAT, "'%s': two columns are called '%s'",
                                    p->input->path, clv__shown(names[i], &shown));
    free(names);
    return status;
}

static clv_status parse(parser *p) {
    static const char mark[] = "\xef\xbb\xbf"; // spreadsheets put it before UTF-8
    if (p->end - p->at >= 3 && memcmp(p->at, mark, 3) == 0) p->at += 3;
    p->separator = find_separator(p->at, p->end);
    while (p->at < p->end) {
        if (ends_line(p))
            pass_stop(p);
        else
            CLV_TRY(read_row(p));
    }
    if (p->n_rows < 2)
        BAD(p, "'%s': a table needs a line with the names of its columns and rows behind it", p->input->path);
    p->csv->rows = p->n_rows - 1;
    return check_names(p);
}

clv_status clv__csv_read(clv__input *input, clv__csv *out) {
    *out = (clv__csv){0};
    if (input->bytes > PTRDIFF_MAX / 2)
        CLV_FAIL(input->error, CLV_E_FORMAT, "'%s' is too large", input->path);
    parser p = {.input = input, .csv = out, .line = 1};
    const size_t bytes = (size_t)input->bytes;
    char *text = clv__alloc(bytes + 1, 1);
    if (!text) return no_memory(&p);
    out->text = p.to = text;
    p.at = text;
    p.end = text + bytes;
    clv_status status = clv__input_read(input, 0, text, bytes);
    if (status == CLV_OK) status = parse(&p);
    if (status != CLV_OK) clv__csv_reset(out);
    return status;
}

void clv__csv_reset(clv__csv *csv) {
    free(csv->text);
    free(csv->fields);
    free(csv->lines);
    *csv = (clv__csv){0};
}

int clv__csv_column(const clv__csv *csv, const char *name, size_t length) {
    for (size_t i = 0; i < csv->columns; i++) {
        const char *own = clv__csv_field(csv, -1, i);
        if (strlen(own) == length && memcmp(own, name, length) == 0) return (int)i;
    }
    return -1;
}
