// SPDX-License-Identifier: Apache-2.0
// cleave report: is this device right, how fast is it, where does it stand, and how did trainings go, as one page.
#include "page.h"
#include "watch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_POINTS = 800 }; // of a curve: the page is for the eye

/** A training that a log tells of. */
typedef struct run {
    const char *name;
    plot_point *points;
    size_t n, room;
    bool failed; // no memory
    watch_moment last;
} run;

/** Everything that the page is made of. */
typedef struct report {
    cli_session *session;
    const volatile int *interrupt;
    const char *doing;
    clv_check_report *check;
    clv_bench_report *bench[2];
    int n_bench;
    run runs[CLI_MAX_TEXTS];
    int n_runs;
} report;

// ---- gathering ------------------------------------------------------------------------------------------------------

static bool on_progress(void *user, int done, int total, const char *what) {
    report *r = user;
    char text[128];
    snprintf(text, sizeof text, "%d/%d  %s", done, total, what);
    cli_progress_draw(&r->session->progress, r->doing, done, total, text);
    return !*r->interrupt;
}

/** One case more of the benchmark. A device that cannot be measured so has its sentence in the results. */
static clv_status bench(report *r, clv_bench_config config) {
    r->doing = "measuring";
    config.progress = on_progress;
    config.user = r;
    clv_status status = clv_bench(r->session->runtime, r->session->device, &config, &r->bench[r->n_bench]);
    r->n_bench += status == CLV_OK;
    return status;
}

static int measure(report *r) {
    const cli_args *args = r->session->args;
    clv_check_config check = {.quick = !args->full, .progress = on_progress, .user = r};
    r->doing = "checking";
    clv_status status = clv_check(r->session->runtime, r->session->device, &check, &r->check);
    bool host = clv_device_get_info(r->session->device)->type == CLV_DEVICE_HOST;
    if (args->full) {
        if (status == CLV_OK) status = bench(r, (clv_bench_config){.suite = NULL});
    } else if (status == CLV_OK) {
        // The host computes references: a small model says all there is to say of its speed.
        clv_bench_config products = {.suite = "gemm", .seconds = 0.15, .runs = 3},
                         model = {
                             .suite = "models", .model = host ? "linear" : "cnn", .seconds = 0.3, .runs = 3};
        if (!host) status = bench(r, products);
        if (status == CLV_OK) status = bench(r, model);
    }
    cli_progress_clear(&r->session->progress);
    return status == CLV_OK ? EXIT_DONE : cli_fail_status(r->session->runtime, status);
}

/** Keep a step of a log. A resumed training tells some steps again: the newer ones count. */
static void on_step(void *user, const watch_moment *now) {
    run *r = user;
    while (r->n && r->points[r->n - 1].x >= (double)now->step) r->n--;
    if (r->n == r->room) {
        size_t room = r->room ? 2 * r->room : 1024;
        plot_point *points = realloc(r->points, room * sizeof *points);
        if (!points) {
            r->failed = true;
            return;
        }
        r->points = points;
        r->room = room;
    }
    r->points[r->n++] = (plot_point){(double)now->step, now->loss};
}

/** Means of neighbours, so that a long training draws a curve and not a stain. */
static void thin(run *r) {
    size_t group = (r->n + MOST_POINTS - 1) / MOST_POINTS, kept = 0;
    for (size_t i = 0; group > 1 && i < r->n; i += group) {
        plot_point sum = {0, 0};
        size_t n = i + group < r->n ? group : r->n - i;
        for (size_t j = i; j < i + n; j++) sum.x += r->points[j].x, sum.y += r->points[j].y;
        r->points[kept++] = (plot_point){sum.x / (double)n, sum.y / (double)n};
    }
    if (group > 1) r->n = kept;
}

static int read_logs(report *r) {
    const cli_texts *logs = &r->session->args->logs;
    for (int i = 0; i < logs->n; i++) {
        run *one = &r->runs[r->n_runs++];
        one->name = logs->item[i];
        watch_reader reader = {.on_step = on_step, .user = one};
        int code = watch_reader_open(&reader, logs->item[i]);
        if (code == EXIT_DONE) code = watch_reader_poll(&reader);
        one->last = reader.now;
        watch_reader_close(&reader);
        if (code == EXIT_DONE && one->failed)
            code = cli_fail(EXIT_FAILED, "no memory for the steps of '%s'", one->name);
        if (code != EXIT_DONE) return code;
        thin(one);
    }
    return EXIT_DONE;
}

static void drop(report *r) {
    clv_check_report_destroy(r->check);
    for (int i = 0; i < r->n_bench; i++) clv_bench_report_destroy(r->bench[i]);
    for (int i = 0; i < r->n_runs; i++) free(r->runs[i].points);
}

// ---- cells ----------------------------------------------------------------------------------------------------------

static void tile(cli_page *page, const char *class, const char *value, const char *what) {
    page_add(page, "<div class=\"tile\"><b class=\"%s\">", class);
    page_text(page, value);
    page_add(page, "</b><span>");
    page_text(page, what);
    page_add(page, "</span></div>\n");
}

static void cell(cli_page *page, const char *class, const char *text) {
    page_add(page, "<td class=\"%s\">", class);
    page_text(page, text);
    page_add(page, "</td>");
}

/** A number with as many digits as say something; a dash for none. */
static void number_cell(cli_page *page, double number) {
    char text[48] = "–";
    if (isfinite(number) && number != 0)
        snprintf(text, sizeof text, number >= 100 ? "%.0f" : number >= 0.01 ? "%.3g" : "%.1e", number);
    cell(page, "n", text);
}

static const char *count_text(int count, const char *what, char text[64]) {
    snprintf(text, 64, "%d %s%s", count, what, count == 1 ? "" : "s");
    return text;
}

static const char *ways_text(int count, char text[64]) {
    snprintf(text, 64, "%d way%s to compute ops", count, count == 1 ? "" : "s");
    return text;
}

// ---- the parts ------------------------------------------------------------------------------------------------------

static clv_bench_peak peak_of(const report *r) {
    return r->n_bench ? r->bench[0]->peak : (clv_bench_peak){0};
}

static void put_head(cli_page *page, const report *r) {
    const clv_device_info *info = clv_device_get_info(r->session->device);
    char date[64], text[64], what[96];
    time_t now = time(NULL);
    struct tm utc;
    strftime(date, sizeof date, "%Y-%m-%d %H:%M UTC", gmtime_r(&now, &utc));
    page_add(page, "<header><p>Cleave ");
    page_text(page, clv_version());
    page_add(page, " · %s</p>\n<h1>", date);
    page_text(page, info->label);
    page_add(page, "</h1>\n<p>");
    page_text(page, info->name);
    if (*info->platform_name) page_add(page, " · "), page_text(page, info->platform_name);
    if (*info->driver) page_add(page, " · "), page_text(page, info->driver);
    page_add(page, "</p>\n<div class=\"tiles\">\n");
    const clv_check_report *check = r->check;
    snprintf(text, sizeof text, "%d of %d", check->passed, check->cases);
    snprintf(what, sizeof what, "cases are right%s", r->session->args->full ? "" : " (quick check)");
    tile(page, check->failed ? "bad" : "good", text, what);
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
    page_add(page, "</div></header>\n");
}

static void put_check(cli_page *page, const report *r) {
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
    page_add(page,
             "<details%s><summary>%s</summary><div class=\"card\"><table><tr><th>op</th><th>variant</th><th "
             "class=\"n\">cases</th><th class=\"n\">failed</th><th class=\"n\">largest error</th><th "
             "class=\"n\">allowed there</th><th>part of it</th></tr>\n",
             check->failed ? " open" : "", ways_text(check->n_worst, text));
    for (int i = 0; i < check->n_worst; i++) {
        const clv_check_worst *worst = &check->worst[i];
        page_add(page, "<tr>");
        cell(page, "", worst->op);
        cell(page, "", worst->variant);
        page_add(page, "<td class=\"n\">%d</td><td class=\"n%s\">%d</td>", worst->cases,
                 worst->failed ? " bad" : "", worst->failed);
        number_cell(page, worst->error);
        number_cell(page, worst->tolerance);
        page_add(page, "<td>");
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
    page_add(page, "<tr>");
    cell(page, "", result->suite);
    cell(page, "", result->name);
    cell(page, "", result->mode);
    if (*result->failure) {
        page_add(page, "<td class=\"wide bad\" colspan=\"5\">");
        page_text(page, result->failure);
        page_add(page, "</td></tr>\n");
        return;
    }
    number_cell(page, result->median_ms);
    number_cell(page, result->gflops);
    number_cell(page, result->gbps);
    page_add(page, "<td>");
    if (result->peak_fraction > 0) {
        plot_bar(page, result->peak_fraction, "");
        page_add(page, "</td><td class=\"n\">%.0f&nbsp;%%</td></tr>\n", 100 * result->peak_fraction);
    } else {
        page_add(page, "</td><td class=\"n\">–</td></tr>\n");
    }
}

static void put_bench(cli_page *page, const report *r) {
    page_add(
        page,
        "<h2>How fast is it?</h2>\n<div "
        "class=\"card\"><table><tr><th>suite</th><th>case</th><th>mode</th><th "
        "class=\"n\">ms</th><th class=\"n\">GFLOP/s</th><th class=\"n\">GB/s</th><th colspan=\"2\">of the "
        "measured peak</th></tr>\n");
    for (int b = 0; b < r->n_bench; b++)
        for (int i = 0; i < r->bench[b]->n_results; i++) put_result(page, &r->bench[b]->results[i]);
    page_add(page, "</table></div>\n");
    if (!r->session->args->full)
        page_add(page, "<p class=\"faint\">A quick measurement of a few cases: a look, not a claim.</p>\n");
}

static void put_runs(cli_page *page, const report *r) {
    plot_curve curves[CLI_MAX_TEXTS];
    if (!r->n_runs) return;
    for (int i = 0; i < r->n_runs; i++)
        curves[i] = (plot_curve){r->runs[i].name, r->runs[i].points, r->runs[i].n};
    page_add(page, "<h2>Trainings</h2>\n<div class=\"card\">\n");
    plot_curves(page, curves, r->n_runs, "step", "loss");
    page_add(page, "</div>\n<div class=\"card\" "
                   "style=\"margin-top:.7rem\"><table><tr><th>log</th><th>model</th><th>state</th><th "
                   "class=\"n\">steps</th><th class=\"n\">loss</th><th class=\"n\">test accuracy</th><th "
                   "class=\"n\">images/s"
                   "</th><th class=\"n\">seconds</th><th>devices</th></tr>\n");
    for (int i = 0; i < r->n_runs; i++) {
        const watch_moment *last = &r->runs[i].last;
        char devices[512] = "";
        for (int d = 0; d < last->n_devices; d++)
            snprintf(devices + strlen(devices), sizeof devices - strlen(devices), "%s%s", d ? ", " : "",
                     last->devices[d].name);
        page_add(page, "<tr>");
        cell(page, "", r->runs[i].name);
        cell(page, "", last->model);
        cell(page, last->state == WATCH_FAILED ? "bad" : "", watch_state_name(last->state));
        page_add(page, "<td class=\"n\">%lld</td>", (long long)last->step);
        number_cell(page, last->loss);
        number_cell(page, last->test_accuracy);
        number_cell(page, last->images_per_second);
        number_cell(page, last->seconds);
        cell(page, "", devices);
        page_add(page, "</tr>\n");
    }
    page_add(page, "</table></div>\n");
}

/** A value of the environment as a person reads it. */
static void put_value(cli_page *page, const char *key, const json_t *value) {
    size_t n = strlen(key);
    if (json_is_string(value))
        page_text(page, json_string_value(value));
    else if (json_is_integer(value) && n >= 5 && !strcmp(key + n - 5, "bytes"))
        page_text(page, cli_bytes((uint64_t)json_integer_value(value)));
    else if (json_is_integer(value))
        page_add(page, "%lld", (long long)json_integer_value(value));
    else
        page_add(page, "%s", json_is_true(value) ? "yes" : json_is_false(value) ? "no" : "–");
}

static void put_facts(cli_page *page, const char *title, json_t *object) {
    const char *key;
    json_t *value;
    page_add(page, "<div class=\"card\"><h3>");
    page_text(page, title);
    page_add(page, "</h3><table>\n");
    json_object_foreach(object, key, value) {
        if (json_is_string(value) && !json_string_length(value)) continue;
        page_add(page, "<tr><th>");
        page_text(page, key);
        page_add(page, "</th><td class=\"wide\">");
        put_value(page, key, value);
        page_add(page, "</td></tr>\n");
    }
    page_add(page, "</table>%s</div>\n", json_object_size(object) ? "" : "<p class=\"faint\">none</p>");
}

static void put_env(cli_page *page, json_t *env) {
    const char *key;
    json_t *part, *item;
    size_t i;
    page_add(page, "<h2>Where it ran</h2>\n<div class=\"facts\">\n");
    json_object_foreach(env, key, part) if (json_is_object(part)) put_facts(page, key, part);
    json_array_foreach(json_object_get(env, "devices"), i, item) {
        char title[128];
        snprintf(title, sizeof title, "device %s", json_string_value(json_object_get(item, "name")));
        put_facts(page, title, item);
    }
    page_add(page, "</div>\n<details><summary>libraries</summary><div class=\"card\"><ul>\n");
    json_array_foreach(json_object_get(env, "libraries"), i, item) {
        page_add(page, "<li>");
        page_text(page, json_string_value(item));
        page_add(page, "</li>\n");
    }
    page_add(page, "</ul></div></details>\n");
}

// ---- the command ------------------------------------------------------------------------------------------------------

static int write_page(const report *r, const char *path) {
    cli_page page;
    char title[128];
    snprintf(title, sizeof title, "Cleave on %s", clv_device_get_info(r->session->device)->label);
    json_t *env = cli_env_json(r->session->runtime);
    int code = env ? page_begin(&page, title) : cli_fail(EXIT_FAILED, "no memory for the page");
    if (code == EXIT_DONE) {
        put_head(&page, r);
        put_runs(&page, r);
        put_check(&page, r);
        put_bench(&page, r);
        put_env(&page, env);
        code = page_write(&page, path);
        page_drop(&page);
    }
    json_decref(env);
    return code;
}

static int tell(const report *r, const char *path) {
    int measured = 0, not_measured = 0;
    for (int i = 0; i < r->n_bench; i++) {
        measured += r->bench[i]->n_results;
        not_measured += r->bench[i]->n_failed;
    }
    if (r->session->args->json)
        return cli_print_json(json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:i}", "file", path, "device",
                                        clv_device_get_info(r->session->device)->name, "cases",
                                        r->check->cases, "failed", r->check->failed, "measured", measured,
                                        "not_measured", not_measured, "logs", r->n_runs));
    printf("%s: %d of %d cases on %s are right, %d figures, %d training%s\n", path, r->check->passed,
           r->check->cases, clv_device_get_info(r->session->device)->name, measured - not_measured, r->n_runs,
           r->n_runs == 1 ? "" : "s");
    return cli_finish_output();
}

static int make(report *r, const char *path) {
    int code = read_logs(r); // what is quick and may fail comes first
    if (code == EXIT_DONE) code = measure(r);
    if (code == EXIT_DONE) code = write_page(r, path);
    if (code == EXIT_DONE) code = tell(r, path);
    return code == EXIT_DONE && r->check->failed ? EXIT_FAILED : code;
}

int cmd_report(const cli_args *args) {
    if (!args->page) return cli_fail(EXIT_USAGE, "where to? --output FILE.html (or -o) wants to be given");
    int code = cli_check_target(args->page);
    if (code != EXIT_DONE) return code;
    cli_session session;
    cli_start_early(args, true, &session);
    code = cli_start(&session);
    if (code != EXIT_DONE) return code;
    report r = {.session = &session, .interrupt = cli_catch_interrupts()};
    code = make(&r, args->page);
    drop(&r);
    cli_stop(&session);
    return code;
}
