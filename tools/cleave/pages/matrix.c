// SPDX-License-Identifier: Apache-2.0
// The page of `report --results`: ops beside drivers, from what `check --json` printed on each. Nothing is
// run here, and the files are anybody's: all of them is text.
#include <stdlib.h>
#include <string.h>

#include "checks/checks.h"
#include "pages/page.h"

/** How the cases of one op went on one driver. */
typedef struct cell {
    int passed, failed, known, not_run, skipped;
    double ulp; // the largest of those that passed
} cell;

typedef struct matrix {
    int n_runs;
    const char *files[CLI_MAX_TEXTS];
    json_t *runs[CLI_MAX_TEXTS];
    json_t *ops;              // op -> its row's number, in the order in which they were met
    cell *cells;              // [op][run]
    cell sums[CLI_MAX_TEXTS]; // of a run, those without an op too; what the file says of them is not asked
} matrix;

static const char *text_of(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static json_int_t number_of(const json_t *object, const char *key) {
    return json_integer_value(json_object_get(object, key));
}

// ---- counting ---------------------------------------------------------------------------------------------

static int read_runs(matrix *m, const cli_texts *files) {
    size_t i;
    json_t *one;
    m->ops = json_object();
    for (int r = 0; r < files->n; r++) {
        m->files[r] = files->item[r];
        int code = cli_read_check(files->item[r], &m->runs[r]);
        if (code != EXIT_DONE) return code;
        m->n_runs++;
        json_array_foreach(json_object_get(m->runs[r], "results"), i, one) {
            const char *op = text_of(one, "op");
            if (*op && !json_object_get(m->ops, op))
                json_object_set_new(m->ops, op, json_integer((json_int_t)json_object_size(m->ops)));
        }
    }
    m->cells = calloc(json_object_size(m->ops) * (size_t)m->n_runs + 1, sizeof *m->cells);
    return m->cells ? EXIT_DONE : cli_fail(EXIT_FAILED, "no memory for the page");
}

static void add(cell *to, const json_t *one) {
    const char *verdict = text_of(one, "verdict");
    const double ulp = json_number_value(json_object_get(one, "ulp"));
    if (!strcmp(verdict, "passed")) {
        to->passed++;
        if (ulp > to->ulp) to->ulp = ulp;
    }
    to->failed += !strcmp(verdict, "failed");
    to->known += !strcmp(verdict, "known failure");
    to->not_run += !strcmp(verdict, "could not run");
    to->skipped += !strcmp(verdict, "skipped");
}

static void count(matrix *m) {
    size_t i;
    json_t *one;
    for (int r = 0; r < m->n_runs; r++) json_array_foreach(json_object_get(m->runs[r], "results"), i, one) {
            const json_t *row = json_object_get(m->ops, text_of(one, "op"));
            add(&m->sums[r], one);
            if (row) add(&m->cells[(size_t)json_integer_value(row) * (size_t)m->n_runs + (size_t)r], one);
        }
}

/** What a file says of its own cases, where that is something else: it was cut or changed. */
static void tell_differences(const matrix *m) {
    for (int r = 0; r < m->n_runs; r++) {
        const json_int_t passed = number_of(m->runs[r], "passed"), failed = number_of(m->runs[r], "failed");
        const cell *sum = &m->sums[r];
        if (passed == sum->passed && failed == sum->failed) continue;
        fprintf(stderr,
                "'%s' says that %lld cases passed and %lld failed; of its cases %d passed and %d failed, and "
                "these count\n",
                m->files[r], (long long)passed, (long long)failed, sum->passed, sum->failed);
    }
}

static void drop(matrix *m) {
    for (int r = 0; r < CLI_MAX_TEXTS; r++) json_decref(m->runs[r]);
    json_decref(m->ops);
    free(m->cells);
}

// ---- the page ---------------------------------------------------------------------------------------------

static void put_runs(cli_page *page, const matrix *m) {
    static const page_head heads[] = {{.text = "run"},
                                      {.text = "device"},
                                      {.text = "platform"},
                                      {.text = "driver"},
                                      {.text = "Cleave"},
                                      {.text = "passed", .number = true},
                                      {.text = "failed", .number = true},
                                      {.text = "known", .number = true},
                                      {.text = "could not run", .number = true},
                                      {.text = "skipped", .number = true},
                                      {.text = "seed", .number = true},
                                      {.text = "file"},
                                      {0}};
    page_add(page, "<h2>Drivers</h2>\n<div class=\"card\">");
    page_table(page, heads);
    for (int r = 0; r < m->n_runs; r++) {
        const json_t *run = m->runs[r];
        static const char *const columns[] = {"label", "platform_name", "driver", "version"};
        const cell *sum = &m->sums[r];
        const long long numbers[] = {sum->passed,  sum->failed,  sum->known,
                                     sum->not_run, sum->skipped, number_of(run, "seed")};
        page_row(page);
        page_cell_begin(page, "");
        page_add(page, "%d</td>", r + 1);
        for (size_t k = 0; k < sizeof columns / sizeof *columns; k++)
            page_cell(page, "", text_of(run, columns[k]));
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
            page_cell_begin(page, k == 1 && numbers[k] ? "bad" : "");
            page_add(page, "%lld</td>", numbers[k]);
        }
        page_cell(page, "wide", m->files[r]);
        page_add(page, "</tr>\n");
    }
    page_add(page, "</table></div>\n");
}

/** How many are right of those that ran; what else there is stands behind it. */
static void put_cell(cli_page *page, const cell *at) {
    int ran = at->passed + at->failed + at->known + at->not_run;
    if (!ran) {
        page_cell(page, "", at->skipped ? "skipped" : "–");
        return;
    }
    page_cell_begin(page, at->failed || at->known ? "bad" : at->not_run ? "" : "good");
    page_add(page, "<span>%d/%d", at->passed, ran);
    if (at->failed) page_add(page, ", %d wrong", at->failed);
    if (at->known) page_add(page, ", %d known", at->known);
    if (at->not_run) page_add(page, ", %d not run", at->not_run);
    if (at->ulp > 0) page_add(page, "<br><span style=\"color:var(--faint)\">%.2g ULP</span>", at->ulp);
    page_add(page, "</span></td>");
}

static void put_ops(cli_page *page, const matrix *m) {
    page_head heads[CLI_MAX_TEXTS + 2] = {{.text = "op"}};
    char names[CLI_MAX_TEXTS][256];
    const char *op;
    json_t *row;
    for (int r = 0; r < m->n_runs; r++) {
        const char *label = text_of(m->runs[r], "label");
        snprintf(names[r], sizeof names[r], "%d: %s, %s", r + 1,
                 *label ? label : text_of(m->runs[r], "device"), text_of(m->runs[r], "driver"));
        heads[r + 1] = (page_head){.text = names[r], .number = true};
    }
    page_add(page,
             "<h2>Ops</h2>\n<p class=\"faint\">Cases that are right, of those that ran, and the largest "
             "error of them in units in the last place.</p>\n<div class=\"card\">");
    page_table(page, heads);
    json_object_foreach(m->ops, op, row) {
        page_row(page);
        page_cell(page, "", op);
        for (int r = 0; r < m->n_runs; r++)
            put_cell(page, &m->cells[(size_t)json_integer_value(row) * (size_t)m->n_runs + (size_t)r]);
        page_add(page, "</tr>\n");
    }
    page_add(page, "</table></div>\n");
}

static void put_failures(cli_page *page, const matrix *m) {
    size_t i;
    json_t *one;
    for (int r = 0; r < m->n_runs; r++) {
        bool any = false;
        json_array_foreach(json_object_get(m->runs[r], "results"), i, one) {
            const char *verdict = text_of(one, "verdict");
            if (!strcmp(verdict, "passed") || !strcmp(verdict, "skipped")) continue;
            if (!any) {
                page_add(page, "<h2>%d: ", r + 1);
                page_text(page, text_of(m->runs[r], "label"));
                page_add(page, "</h2>\n<div class=\"card\"><ul>\n");
            }
            any = true;
            page_add(page, "<li><b class=\"bad\">");
            page_text(page, verdict);
            page_add(page, "</b> ");
            page_text(page, text_of(one, "sentence"));
            page_add(page, "</li>\n");
        }
        if (any) page_add(page, "</ul></div>\n");
    }
}

static int tell(const cli_args *args, const matrix *m) {
    json_int_t failed = 0;
    for (int r = 0; r < m->n_runs; r++) failed += m->sums[r].failed;
    if (args->json)
        return cli_print_json(json_pack("{s:s, s:i, s:I, s:I}", "file", args->page, "drivers", m->n_runs,
                                        "ops", (json_int_t)json_object_size(m->ops), "failed", failed));
    printf("%s: %zu ops on %d drivers, %lld failed cases\n", args->page, json_object_size(m->ops), m->n_runs,
           (long long)failed);
    return cli_finish_output();
}

int cli_matrix_page(const cli_args *args) {
    matrix m = {0};
    cli_page page = {0};
    if (args->device || args->full || args->logs.n)
        return cli_fail(
            EXIT_USAGE,
            "--results makes a page of what was run before: --device, --full and --log do not go with it");
    int code = read_runs(&m, &args->results);
    if (code == EXIT_DONE) code = page_begin(&page, "Cleave: ops on drivers");
    if (code == EXIT_DONE) {
        count(&m);
        if (!args->quiet) tell_differences(&m);
        page_add(&page, "<header><p>Cleave ");
        page_text(&page, clv_version());
        page_add(&page, "</p>\n<h1>Ops on drivers</h1></header>\n");
        put_runs(&page, &m);
        put_ops(&page, &m);
        put_failures(&page, &m);
        code = page_write(&page, args->page);
        page_drop(&page);
    }
    if (code == EXIT_DONE && !cli_is_stdout(args->page)) code = tell(args, &m);
    drop(&m);
    return code;
}
