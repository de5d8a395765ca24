// SPDX-License-Identifier: Apache-2.0
// Separated values: the whole file is read, its quotes are taken away in place, and fields are counted row by row. What bytes there
// are before that, UTF-16 and files that are no tables, is in csv_bytes.c.
#include "io/csv.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "io/array.h"
#include "io/formats.h"
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

static const char separators[] = ",;\t|";
enum { N_SEPARATORS = sizeof separators - 1 };

/** Count each separator of a line that is not in quotes; where the line ends. */
static const char *count_separators(const char *at, const char *end, size_t n[N_SEPARATORS]) {
    memset(n, 0, N_SEPARATORS * sizeof *n);
    for (bool quoted = false; at < end && (quoted || (*at != '\n' && *at != '\r')); at++) {
        if (*at == '"') quoted = !quoted;
        const char *found = quoted || !*at ? NULL : strchr(separators, *at);
        if (found) n[found - separators]++;
    }
    return at;
}

/** The separator that the first line has most of, of those that the second one has as many of, if there is one: a name may hold a
 *  comma in a table of semicolons. A comma where there is none. */
static char find_separator(const char *at, const char *end) {
    size_t first[N_SEPARATORS], second[N_SEPARATORS];
    at = count_separators(at, end, first);
    while (at < end && (*at == '\n' || *at == '\r')) at++;
    count_separators(at, end, second);
    int best = -1;
    for (int pass = 0; pass < 2 && best < 0; pass++)
        for (int i = 0; i < N_SEPARATORS; i++)
            if (first[i] && (pass || first[i] == second[i]) && (best < 0 || first[i] > first[best])) best = i;
    return best < 0 ? ',' : separators[best];
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
        BAD(p,
            "'%s', line %" PRIu64 ": a zero byte in a value: no table has one; UTF-16 without its mark has, "
            "and is read once it is saved as UTF-8",
            p->input->path, p->line);
    const uint64_t line = p->line;
    pass_stop(p);
    *p->to++ = 0;
    if (!clv__utf8_valid(begin))
        BAD(p,
            "'%s', line %" PRIu64
            ": a value that is not UTF-8; save the table as UTF-8 (of Latin-1: iconv -f "
            "latin1 -t utf-8)",
            p->input->path, line);
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

// ---- names --------------------------------------------------------------------------------------------------

/** Blanks around a name are nobody's intention. */
static void trim_names(clv__csv *csv) {
    for (size_t c = 0; c < csv->columns; c++) {
        char *name = csv->text + csv->fields[c];
        size_t n = strlen(name);
        while (n && (name[n - 1] == ' ' || name[n - 1] == '\t')) name[--n] = 0;
        csv->fields[c] += strspn(name, " \t");
    }
}

static bool is_blank(const clv__csv *csv, size_t column) {
    for (size_t row = 0; row < csv->rows; row++) {
        const char *value = clv__csv_field(csv, (int64_t)row, column);
        if (value[strspn(value, " \t")]) return false;
    }
    return true;
}

/** Columns without a name and with nothing in them: what separators at the ends of lines make. */
static clv_status drop_empty(const parser *p) {
    clv__csv *csv = p->csv;
    bool *kept = clv__alloc(csv->columns, sizeof *kept);
    size_t n = 0, to = 0;
    if (!kept) return no_memory(p);
    for (size_t c = 0; c < csv->columns; c++) n += kept[c] = *clv__csv_field(csv, -1, c) || !is_blank(csv, c);
    for (size_t i = 0; n && n < csv->columns && i < (csv->rows + 1) * csv->columns; i++)
        if (kept[i % csv->columns]) csv->fields[to++] = csv->fields[i];
    if (n) csv->columns = n;
    free(kept);
    return CLV_OK;
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/** Each has a name of its own; the first may have none, as where pandas writes its index. */
static clv_status check_names(const parser *p) {
    const size_t n = p->csv->columns;
    const char **names = clv__alloc(n, sizeof *names);
    clv__shown_text shown;
    if (!names) return no_memory(p);
    clv_status status = CLV_OK;
    for (size_t i = 0; i < n; i++) {
        names[i] = clv__csv_field(p->csv, -1, i);
        if (!*names[i] && i && status == CLV_OK)
            status = clv__error_set(p->input->error, CLV_E_FORMAT,
                                    "'%s': column %zu has no name in the first line; write one there",
                                    p->input->path, i + 1);
    }
    qsort(names, n, sizeof *names, compare_names);
    for (size_t i = 1; i < n && status == CLV_OK; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            status = clv__error_set(p->input->error, CLV_E_FORMAT, "'%s': two columns are called '%s'",
                                    p->input->path, clv__shown(names[i], &shown));
    free(names);
    return status;
}

// ---- the file -----------------------------------------------------------------------------------------------

/** `sep=;` in a line of its own, as Excel writes and reads it, says the separator. */
static void read_separator(parser *p) {
    p->separator = find_separator(p->at, p->end);
    if (p->end - p->at < 6 || memcmp(p->at, "sep=", 4) != 0 || strchr("\"\r\n", p->at[4])) return;
    if (p->at[5] != '\n' && p->at[5] != '\r') return;
    p->separator = p->at[4];
    p->at += 5;
    pass_stop(p);
}

static clv_status parse(parser *p) {
    read_separator(p);
    while (p->at < p->end) {
        if (ends_line(p))
            pass_stop(p);
        else
            CLV_TRY(read_row(p));
    }
    if (p->n_rows < 2)
        BAD(p, "'%s': a table needs a line with the names of its columns and rows behind it", p->input->path);
    p->csv->rows = p->n_rows - 1;
    trim_names(p->csv);
    CLV_TRY(drop_empty(p));
    return check_names(p);
}

clv_status clv__csv_read(clv__input *input, clv__csv *out) {
    *out = (clv__csv){0};
    if (input->bytes > PTRDIFF_MAX / 2)
        CLV_FAIL(input->error, CLV_E_FORMAT, "'%s' is too large", input->path);
    CLV_TRY(clv__foreign_check(input, CLV__WANT_TABLE));
    parser p = {.input = input, .csv = out, .line = 1};
    char *text = NULL;
    size_t bytes = 0;
    clv_status status = clv__csv_bytes(input, &text, &bytes);
    out->text = p.to = text;
    p.at = text;
    p.end = text + bytes;
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
