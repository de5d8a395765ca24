// SPDX-License-Identifier: Apache-2.0
// cleave report: how did trainings go, and is this device right, how fast is it, where does it stand, as one
// page. Of trainings alone it looks at no device: what is drawn may have run elsewhere.
#include "checks/checks.h"
#include "pages/page.h"
#include "pages/trainings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/** Everything that the page is made of. */
typedef struct report {
    cli_session *session;
    cli_steps steps;
    bool checks, measures;   // what is done on the device
    clv_check_report *check; // NULL: not checked
    clv_bench_report *bench[2];
    int n_bench;
    trainings trainings;
} report;

// ---- gathering --------------------------------------------------------------------------------------------

/** One case more of the benchmark. A device that cannot be measured so has its sentence in the results. */
static clv_status bench(report *r, clv_bench_config config) {
    r->steps.label = "measuring";
    config.progress = cli_steps_draw;
    config.user = &r->steps;
    clv_status status = clv_bench(r->session->runtime, r->session->device, &config, &r->bench[r->n_bench]);
    r->n_bench += status == CLV_OK;
    return status;
}

static clv_status bench_few(report *r) {
    // The host computes references: a small model says all there is to say of its speed.
    const bool host = clv_device_info_get(r->session->device)->type == CLV_DEVICE_HOST;
    const clv_bench_config products = {.suite = "gemm", .seconds = 0.15, .runs = 3},
                           model = {.suite = "models",
                                    .model = host ? "linear" : "cnn",
                                    .seconds = 0.3,
                                    .runs = 3};
    const clv_status status = host ? CLV_OK : bench(r, products);
    return status == CLV_OK ? bench(r, model) : status;
}

static int measure(report *r) {
    const bool full = r->session->args->full;
    clv_check_config check = {.quick = !full, .progress = cli_steps_draw, .user = &r->steps};
    clv_status status = CLV_OK;
    r->steps.label = "checking";
    if (r->checks) status = clv_check(r->session->runtime, r->session->device, &check, &r->check);
    if (r->measures && status == CLV_OK)
        status = full ? bench(r, (clv_bench_config){.suite = NULL}) : bench_few(r);
    cli_progress_clear(&r->session->progress);
    return status == CLV_OK ? EXIT_DONE : cli_fail_status(r->session->runtime, status);
}

static void drop(report *r) {
    clv_free(r->check);
    for (int i = 0; i < r->n_bench; i++) clv_free(r->bench[i]);
    trainings_drop(&r->trainings);
}

// ---- cells ------------------------------------------------------------------------------------------------

static void tile(cli_page *page, const char *class, const char *value, const char *what) {
    page_add(page, "<div class=\"tile\"><b class=\"%s\">", class);
    page_text(page, value);
    page_add(page, "</b><span>");
    page_text(page, what);
    page_add(page, "</span></div>\n");
}

static const char *count_text(int count, const char *what, char text[64]) {
    snprintf(text, 64, "%d %s%s", count, what, count == 1 ? "" : "s");
    return text;
}

static const char *ways_text(int count, char text[64]) {
    snprintf(text, 64, "%d way%s to compute ops", count, count == 1 ? "" : "s");
    return text;
}

// ---- the parts --------------------------------------------------------------------------------------------

static clv_bench_peak peak_of(const report *r) {
    return r->n_bench ? r->bench[0]->peak : (clv_bench_peak){0};
}

/** What the page is of: the trainings, or else the device. */
static void title_of(const report *r, char *title, size_t bytes) {
    const trainings *all = &r->trainings;
    if (!all->n)
        snprintf(title, bytes, "%s", clv_device_info_get(r->session->device)->label);
    else if (all->n == 1)
        snprintf(title, bytes, "Training%s%s: %s", *all->item[0].last.model ? " of " : "",
                 all->item[0].last.model, all->item[0].name);
    else
        snprintf(title, bytes, "%d trainings: %s and others", all->n, all->item[0].name);
}

static void put_device(cli_page *page, const report *r) {
    const clv_device_info *info = clv_device_info_get(r->session->device);
    const clv_check_report *check = r->check;
    char text[64], what[96];
    page_add(page, "<p>");
    if (r->trainings.n) page_text(page, info->label), page_add(page, " · ");
    page_text(page, info->name);
    if (*info->platform_name) page_add(page, " · "), page_text(page, info->platform_name);
    if (*info->driver) page_add(page, " · "), page_text(page, info->driver);
    page_add(page, "</p>\n<div class=\"tiles\">\n");
    if (check) {
        snprintf(text, sizeof text, "%d of %d", check->passed, check->cases);
        snprintf(what, sizeof what, "cases are right%s", r->session->args->full ? "" : " (quick check)");
        tile(page, check->failed ? "bad" : "good", text, what);
    }
    clv_bench_peak peak = peak_of(r);
    if (peak.gflops > 0) {
        snprintf(text, sizeof text, "%.0f GFLOP/s", peak.gflops);
        tile(page, "", text, "measured peak, f32");
    }
    if (peak.gbps > 0) {
        snprintf(text, sizeof text, "%.1f GB/s", peak.gbps);
        tile(page, "", text, "measured copy of memory");
    }
    tile(page, "", cli_bytes(info->memory_bytes), "memory");
    snprintf(text, sizeof text, "%u", info->compute_units);
    tile(page, "", text, info->compute_units == 1 ? "compute unit" : "compute units");
    page_add(page, "</div>\n");
}

static void put_head(cli_page *page, const report *r, const char *title) {
    char date[64];
    time_t now = time(NULL);
    struct tm utc;
    strftime(date, sizeof date, "%Y-%m-%d %H:%M UTC", gmtime_r(&now, &utc));
    page_add(page, "<header><p>Cleave ");
    page_text(page, clv_version());
    page_add(page, " · %s</p>\n<h1>", date);
    page_text(page, title);
    page_add(page, "</h1>\n");
    if (r->session->device) put_device(page, r);
    page_add(page, "</header>\n");
}

static void put_check(cli_page *page, const report *r) {
    static const page_head heads[] = {{.text = "op"},
                                      {.text = "variant"},
                                      {.text = "cases", .number = true},
                                      {.text = "failed", .number = true},
                                      {.text = "largest error", .number = true},
                                      {.text = "allowed there", .number = true},
                                      {.text = "part of it"},
                                      {0}};
    const clv_check_report *check = r->check;
    char text[64];
    page_add(page, "<h2>Is it right?</h2>\n");
    if (check->failed) {
        page_add(page, "<div class=\"card\"><p class=\"bad\">%s</p><ul>\n",
                 count_text(check->failed, "failed case", text));
        for (int i = 0; i < check->n_failures; i++) {
            page_add(page, "<li>");
            page_text(page, check->failures[i].sentence);
            page_add(page, "</li>\n");
        }
        page_add(page, "</ul></div>\n");
    } else {
        page_add(page, "<p class=\"good\">Every case agrees with its double-precision reference.</p>\n");
    }
    page_add(page, "<details%s><summary>%s</summary><div class=\"card\">", check->failed ? " open" : "",
             ways_text(check->n_worst, text));
    page_table(page, heads);
    for (int i = 0; i < check->n_worst; i++) {
        const clv_check_worst *worst = &check->worst[i];
        page_row(page);
        page_cell(page, "", worst->op);
        page_cell(page, "", worst->variant);
        page_cell_number(page, worst->cases);
        page_cell_begin(page, worst->failed ? "bad" : "");
        page_add(page, "%d</td>", worst->failed);
        page_cell_number(page, worst->error);
        page_cell_number(page, worst->tolerance);
        page_cell_begin(page, "");
        plot_bar(page,
                 worst->tolerance > 0 ? worst->error / worst->tolerance
                 : worst->failed      ? 1
                                      : 0,
                 worst->failed ? "bad" : "good");
        page_add(page, "</td></tr>\n");
    }
    page_add(page, "</table></div></details>\n");
    if (!check->n_skipped) return;
    page_add(page, "<details><summary>%s skipped, each with a reason</summary><ul class=\"faint\">\n",
             count_text(check->skipped_cases, "case", text));
    for (int i = 0; i < check->n_skipped; i++) {
        page_add(page, "<li>%d of ", check->skipped[i].cases);
        page_text(page, check->skipped[i].op);
        page_add(page, ": ");
        page_text(page, check->skipped[i].reason);
        page_add(page, "</li>\n");
    }
    page_add(page, "</ul></details>\n");
}

static void put_result(cli_page *page, const clv_bench_result *result) {
    page_row(page);
    page_cell(page, "", result->suite);
    page_cell(page, "", result->name);
    page_cell(page, "", result->mode);
    if (*result->failure) {
        page_add(page, "<td class=\"wide bad\" colspan=\"4\">");
        page_text(page, result->failure);
        page_add(page, "</td></tr>\n");
        return;
    }
    page_cell_number(page, result->median_ms);
    page_cell_number(page, result->gflops);
    page_cell_number(page, result->gbps);
    page_cell_begin(page, "");
    if (result->peak_fraction > 0) {
        page_add(page, "<span class=\"part\">%.0f&nbsp;%%</span> ", 100 * result->peak_fraction);
        plot_bar(page, result->peak_fraction, "");
    } else {
        page_add(page, "–");
    }
    page_add(page, "</td></tr>\n");
}

static void put_bench(cli_page *page, const report *r) {
    static const page_head heads[] = {{.text = "suite"},
                                      {.text = "case"},
                                      {.text = "mode"},
                                      {.text = "ms", .number = true},
                                      {.text = "GFLOP/s", .number = true},
                                      {.text = "GB/s", .number = true},
                                      {.text = "of the measured peak"},
                                      {0}};
    page_add(page, "<h2>How fast is it?</h2>\n<div class=\"card\">");
    page_table(page, heads);
    for (int b = 0; b < r->n_bench; b++)
        for (int i = 0; i < r->bench[b]->n_results; i++) put_result(page, &r->bench[b]->results[i]);
    page_add(page, "</table></div>\n");
    if (!r->session->args->full)
        page_add(page, "<p class=\"faint\">A quick measurement of a few cases: a look, not a claim.</p>\n");
}

/** Fields with their values; `named`: by words, not by names of variables or files. */
static void put_facts(cli_page *page, const char *title, json_t *object, bool named) {
    const char *key;
    json_t *value;
    char name[48], text[4096];
    page_add(page, "<div class=\"card\"><h3>");
    page_text(page, title);
    page_add(page, "</h3><table>\n");
    json_object_foreach(object, key, value) {
        if (json_is_string(value) && !json_string_length(value)) continue;
        page_add(page, "<tr><th>");
        cli_env_name(key, name, sizeof name);
        page_text(page, named ? name : key);
        page_add(page, "</th><td class=\"wide\">");
        cli_env_value(named ? key : "", value, text, sizeof text);
        page_text(page, text);
        page_add(page, "</td></tr>\n");
    }
    page_add(page, "</table>%s</div>\n", json_object_size(object) ? "" : "<p class=\"faint\">none</p>");
}

static void put_env(cli_page *page, json_t *env) {
    const char *key;
    json_t *part, *item;
    size_t i;
    page_add(page, "<h2>Where it ran</h2>\n");
    json_array_foreach(json_object_get(env, "faults"), i, item) {
        page_add(page, "<p>");
        page_text(page, json_string_value(item));
        page_add(page, "</p>\n");
    }
    page_add(page, "<div class=\"facts\">\n");
    json_object_foreach(env, key, part) if (json_is_object(part))
        put_facts(page, key, part, strcmp(key, "environment") && strcmp(key, "drivers"));
    json_array_foreach(json_object_get(env, "devices"), i, item) {
        char title[128];
        snprintf(title, sizeof title, "device %s", json_string_value(json_object_get(item, "name")));
        put_facts(page, title, item, true);
    }
    page_add(page, "</div>\n<details><summary>libraries</summary><div class=\"card\"><ul>\n");
    json_array_foreach(json_object_get(env, "libraries"), i, item) {
        page_add(page, "<li>");
        page_text(page, json_string_value(item));
        page_add(page, "</li>\n");
    }
    page_add(page, "</ul></div></details>\n");
}

// ---- the command ------------------------------------------------------------------------------------------

static int write_page(const report *r, const char *path) {
    cli_page page;
    char title[256], head[288];
    const bool device = r->session->device != NULL;
    title_of(r, title, sizeof title);
    snprintf(head, sizeof head, r->trainings.n ? "%s" : "Cleave on %s", title);
    json_t *env = device ? cli_env_json(r->session) : NULL;
    int code = env || !device ? page_begin(&page, head) : cli_fail(EXIT_FAILED, "no memory for the page");
    if (code == EXIT_DONE) {
        put_head(&page, r, title);
        trainings_put(&page, &r->trainings);
        if (r->check) put_check(&page, r);
        if (r->n_bench) put_bench(&page, r);
        if (env) put_env(&page, env);
        code = page_write(&page, path);
        page_drop(&page);
    }
    json_decref(env);
    return code;
}

static int tell(const report *r, const char *path) {
    int measured = 0, not_measured = 0;
    const char *device = r->session->device ? clv_device_info_get(r->session->device)->name : NULL;
    for (int i = 0; i < r->n_bench; i++) {
        measured += r->bench[i]->n_results;
        not_measured += r->bench[i]->n_failed;
    }
    if (r->session->args->json)
        return cli_print_json(json_pack("{s:s, s:s?, s:i, s:i, s:i, s:i, s:i}", "file", path, "device",
                                        device, "cases", r->check ? r->check->cases : 0, "failed",
                                        r->check ? r->check->failed : 0, "measured", measured, "not_measured",
                                        not_measured, "logs", r->trainings.n));
    printf("%s: ", path);
    if (r->check) printf("%d of %d cases on %s are right, ", r->check->passed, r->check->cases, device);
    if (r->n_bench) printf("%d figures, ", measured - not_measured);
    printf("%d training%s\n", r->trainings.n, r->trainings.n == 1 ? "" : "s");
    return cli_finish_output();
}

/** What is quick and may fail comes first. */
static int make(report *r, const char *path) {
    int code = trainings_read(&r->trainings, &r->session->args->logs);
    if (code == EXIT_DONE && r->session->device) code = measure(r);
    if (code == EXIT_DONE) code = write_page(r, path);
    if (code == EXIT_DONE && !cli_is_stdout(path)) code = tell(r, path);
    return code == EXIT_DONE && r->check && r->check->failed ? EXIT_FAILED : code;
}

int cmd_report(const cli_args *args) {
    if (!args->page) return cli_fail(EXIT_USAGE, "where to? Give --output FILE.html (or -o)");
    int code = cli_check_output(args, args->page);
    if (code != EXIT_DONE) return code;
    if (args->results.n) return cli_matrix_page(args);
    const bool all = !args->check && !args->bench && (args->full || !args->logs.n);
    if (args->device && !all && !args->check && !args->bench)
        return cli_fail(EXIT_USAGE, "--device is for --check and --bench; add one of them");
    cli_session session = {.args = args};
    report r = {.session = &session, .checks = args->check || all, .measures = args->bench || all};
    if (r.checks || r.measures) {
        cli_start_early(args, true, &session);
        session.whatever = true;
        code = cli_start(&session);
        if (code != EXIT_DONE) return code;
    }
    r.steps = (cli_steps){.progress = &r.session->progress, .interrupt = cli_catch_interrupts()};
    code = make(&r, args->page);
    drop(&r);
    cli_stop(&session);
    return code;
}
