// SPDX-License-Identifier: Apache-2.0
// Tables: the data set `csv FILE`, and a model of the right size for its columns.
#include "datasets/datasets.h"
#include "models/models.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** A name that stands in two lists with commas: where it begins, and its length; NULL: none does. */
static const char *name_in_both(const char *a, const char *b, size_t *length) {
    for (; a; a = a[*length] ? a + *length + 1 : NULL) {
        *length = strcspn(a, ",");
        for (const char *at = b; at;) {
            const size_t n = strcspn(at, ",");
            if (n == *length && !memcmp(a, at, n)) return a;
            at = at[n] ? at + n + 1 : NULL;
        }
    }
    return NULL;
}

int cli_check_csv(const cli_args *args, const clv_model *model) {
    if (!cli_data_is(args, "csv")) return EXIT_DONE;
    if (args->n_words < 2) return cli_fail(EXIT_USAGE, "which table? `csv FILE` wants the name of a file");
    const bool told = args->told && args->told->table && !args->except;
    if (!args->target && args->command == CLI_TRAIN && !told)
        return cli_fail(EXIT_USAGE,
                        "which column is to be learnt? --target wants its name, or several with commas");
    if (args->standardize && args->no_standardize)
        return cli_fail(EXIT_USAGE,
                        "--standardize and --no-standardize contradict each other; give one of them");
    size_t length = 0;
    const char *both = name_in_both(args->target, args->ignore, &length);
    if (both)
        return cli_fail(EXIT_USAGE,
                        "--target and --ignore both name the column '%.*s'; name it in one of them",
                        (int)length, both);
    return cli_check_rows(model);
}

clv_status cli_read_csv(cli_source *source) {
    const cli_args *args = source->args;
    const double kept = 1 - (args->given.validation ? args->validation : 0.1);
    clv_table_config config = {.targets = args->target,
                               .ignore = args->ignore,
                               .classes = args->classes > 0,
                               .standardize = source->with_train ? !args->no_standardize : args->standardize,
                               .words = args->word_columns,
                               .missing = !args->missing                   ? CLV_MISSING_REFUSE
                                          : !strcmp(args->missing, "mean") ? CLV_MISSING_MEAN
                                                                           : CLV_MISSING_DROP,
                               .decimal_comma = args->decimal_comma,
                               .record = args->told && !args->except ? args->told->table : NULL,
                               .end = kept,
                               .limit = args->limit};
    clv_status status = CLV_OK;
    if (source->with_train)
        status = clv_dataset_table(source->runtime, args->words[1], &config, &source->train);
    config.begin = kept;
    config.end = 1;
    if (status == CLV_OK && kept < 1)
        status = clv_dataset_table(source->runtime, args->words[1], &config, &source->test);
    return status;
}

int cli_model_of_rows(const cli_source *source, const clv_dataset *dataset, clv_model *out) {
    const clv_shape sample = clv_dataset_info_get(dataset).sample,
                    target = clv_dataset_info_get(dataset).target;
    const int code = cli_size_rows(source->args, source->model, sample.dims[0], out);
    if (code != EXIT_DONE) return code;
    memset(out->target, 0, sizeof out->target);
    out->target[0] = target.rank ? target.dims[0] : 0;
    out->classes = clv_dataset_info_get(dataset).classes;
    out->number_names = clv_dataset_info_get(dataset).number_names;
    return EXIT_DONE;
}

/** A number and what it is of, one or several, behind what stands there. */
static void add_count(char *text, size_t bytes, int64_t n, const char *one, const char *several) {
    const size_t used = strlen(text);
    if (n)
        snprintf(text + used, bytes - used, "%s %lld %s", *text ? ";" : "", (long long)n,
                 n == 1 ? one : several);
}

/** The first word that the model does not know, behind their count. */
static void add_first(char *text, size_t bytes, const clv_table_report *report, const char *record) {
    json_t *table = record ? cli_json_read(record, strlen(record)) : NULL;
    const char *column =
        json_string_value(json_array_get(json_object_get(table, "columns"), (size_t)report->unknown_column));
    const size_t used = strlen(text);
    if (report->unknown && column)
        snprintf(text + used, bytes - used, "%s '%s' in line %lld, column '%.60s'",
                 report->unknown > 1 ? ", the first" : ":", report->unknown_word,
                 (long long)report->unknown_line, column);
    json_decref(table);
}

void cli_tell_table(const cli_args *args, const clv_table_report *report, const char *record) {
    char text[800] = "", part[400] = "";
    add_count(text, sizeof text, report->dropped, "row is left out, because a value is missing",
              "rows are left out, because values are missing");
    add_count(part, sizeof part, report->filled, "missing value is filled in",
              "missing values are filled in");
    add_count(part, sizeof part, report->unknown, "word that the rows trained on do not have counts as none",
              "words that the rows trained on do not have count as none");
    add_first(part, sizeof part, report, record);
    const size_t n = strlen(text);
    if (*part && args->command == CLI_EVAL) // what is left out is counted in the whole file
        snprintf(text + n, sizeof text - n, "%s of the %lld rows tested on:%s", n ? ";" : "",
                 (long long)report->rows, part);
    else if (*part)
        snprintf(text + n, sizeof text - n, "%s%s", n ? ";" : "", part);
    if (*text && !args->quiet) fprintf(stderr, "%s:%s\n", args->words[1], text);
}

void cli_tell_few_rows(const cli_args *args, const clv_dataset *dataset) {
    enum { CLASSES = 50, ROWS = 10 }; // fewer classes may have few rows, and so many rows are not few
    const int classes = clv_dataset_info_get(dataset).classes;
    const int64_t rows = clv_dataset_info_get(dataset).count;
    if (args->quiet || !cli_data_is(args, "csv") || classes <= CLASSES || rows >= (int64_t)ROWS * classes)
        return;
    fprintf(stderr,
            "%s: column '%s' has %d classes in %lld rows, %.1f rows each: few to learn a class from; is "
            "another column meant?\n",
            args->words[1], args->target, classes, (long long)rows, (double)rows / classes);
}

json_t *cli_table_json(const clv_table_report *report) {
    return json_pack("{s:I, s:I, s:I, s:I, s:I}", "rows", (json_int_t)report->rows, "dropped",
                     (json_int_t)report->dropped, "filled", (json_int_t)report->filled, "unknown",
                     (json_int_t)report->unknown, "columns", (json_int_t)report->columns);
}
