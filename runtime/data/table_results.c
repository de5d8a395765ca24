// SPDX-License-Identifier: Apache-2.0
// What a model of a table told, in the table's units: put there in place, or written as a file of values.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "data/table.h"
#include "io/array.h"

/** A target's number in its units. */
static double unscaled(const clv__table_column *target, float value) {
    return (double)value * target->scale.scale + target->scale.mean;
}

clv_status clv__table_results_unscale(clv_runtime *runtime, const char *record, float *results, int64_t n) {
    clv__error *error = clv__io_error(runtime);
    clv__table_form form;
    void *owner;
    CLV_TRY(CLV__GIVEN(error, record));
    CLV_TRY(CLV__GIVEN(error, results));
    CLV_TRY(clv__table_record_read(error, record, &form, &owner));
    for (int64_t i = 0; !form.targets->is_words && i < n; i++)
        for (size_t k = 0; k < form.n_targets; k++, results++)
            *results = (float)unscaled(&form.targets[k], *results);
    clv__table_record_free(&form, owner);
    return CLV_OK;
}

// ---- written ------------------------------------------------------------------------------------------------

/** A value, in quotes where it needs them (RFC 4180); `begin` and `end` stand around it. */
static void add_value(clv__text *line, const char *begin, const char *value, const char *end) {
    const bool quoted = strpbrk(value, ",;\t\"\r\n") != NULL;
    if (quoted) clv__text_add(line, "\"");
    clv__text_add(line, "%s", begin);
    for (const char *at = value; *at;) {
        const size_t n = strcspn(at, "\"");
        clv__text_add_bytes(line, at, n);
        if (at[n]) clv__text_add(line, "\"\"");
        at += n + (at[n] == '"');
    }
    clv__text_add(line, "%s%s", end, quoted ? "\"" : "");
}

static void add_head(const clv__table_form *form, const char *const *classes, clv__text *line) {
    for (size_t i = 0; i < form->n_targets; i++) {
        if (i) clv__text_add(line, ",");
        add_value(line, "", form->targets[i].name, "");
    }
    for (size_t i = 0; classes && i < form->targets->words.n; i++) {
        clv__text_add(line, ",");
        add_value(line, "p(", classes[i], ")");
    }
    clv__text_add(line, "\n");
}

/** The class of the largest score, and the softmax of all; no class where one is no number. */
static void add_class(const char *const *classes, const float *scores, size_t n, clv__text *line) {
    size_t best = 0;
    double sum = 0;
    bool numbers = true;
    for (size_t i = 0; i < n; i++) {
        numbers = numbers && !isnan(scores[i]);
        if (scores[i] > scores[best]) best = i;
    }
    for (size_t i = 0; i < n; i++) sum += exp((double)scores[i] - (double)scores[best]);
    if (numbers) add_value(line, "", classes[best], "");
    for (size_t i = 0; i < n; i++)
        clv__text_add(line, ",%.9g",
                      numbers ? exp((double)scores[i] - (double)scores[best]) / sum : (double)NAN);
}

static clv_status write_lines(const clv__table_form *form, const char *const *classes, const float *results,
                              int64_t n, clv__output *output) {
    const size_t each = classes ? form->targets->words.n : form->n_targets;
    clv__text text = {0};
    clv_status status = CLV_OK;
    add_head(form, classes, &text);
    for (int64_t row = 0; row <= n && status == CLV_OK; row++) {
        const float *values = results + (size_t)row * each;
        if (row == n || text.n > 1 << 16) {
            if (text.failed)
                status = clv__error_set(output->error, CLV_E_HOST_MEMORY, "'%s': no host memory for a line",
                                        output->path);
            else
                status = clv__output_write(output, text.data, text.n);
            text.n = 0;
        }
        if (row == n || status != CLV_OK) break;
        if (classes) add_class(classes, values, each, &text);
        for (size_t i = 0; !classes && i < each; i++)
            clv__text_add(&text, "%s%.9g", i ? "," : "", unscaled(&form->targets[i], values[i]));
        clv__text_add(&text, "\n");
    }
    clv__text_reset(&text);
    return status;
}

static clv_status write_file(clv__error *error, const clv__table_form *form, const char *const *classes,
                             const float *results, int64_t n, const char *path) {
    clv__output output;
    CLV_TRY(clv__output_open(error, path, &output));
    const clv_status status = write_lines(form, classes, results, n, &output);
    if (status == CLV_OK) return clv__output_commit(&output, false);
    clv__output_abort(&output);
    return status;
}

clv_status clv_table_results_write(clv_runtime *runtime, const char *record, const float *results, int64_t n,
                                   const char *path) {
    clv__error *error = clv__io_error(runtime);
    clv__table_form form;
    void *owner;
    CLV_TRY(CLV__GIVEN(error, record));
    CLV_TRY(CLV__GIVEN(error, results));
    CLV_TRY(CLV__GIVEN(error, path));
    if (n < 0) CLV_FAIL(error, CLV_E_VALUE, "'%s': %" PRId64 " rows of predictions", path, n);
    CLV_TRY(clv__table_record_read(error, record, &form, &owner));
    const clv__table_words *words = form.targets->is_words ? &form.targets->words : NULL;
    const char **classes = words ? clv__alloc(words->n, sizeof *classes) : NULL; // by their numbers
    for (size_t i = 0; classes && i < words->n; i++) classes[words->all[i].number] = words->all[i].word;
    clv_status status = words && !classes
                            ? clv__error_set(error, CLV_E_HOST_MEMORY, "'%s': no host memory", path)
                            : write_file(error, &form, classes, results, n, path);
    free(classes);
    clv__table_record_free(&form, owner);
    return status;
}
