// SPDX-License-Identifier: Apache-2.0
// Trainings side by side. A resumed training tells some steps again: the newer ones count.
#include "pages/trainings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_POINTS = 600 }; // of a curve: the page is for the eye

// ---- reading ----------------------------------------------------------------------------------------------

/** Forget what is not before this step: it is told again. */
static void forget_from(training_curve *curve, double step) {
    while (curve->n && curve->points[curve->n - 1].x >= step) curve->n--;
}

static void keep(training *t, training_curve *curve, double step, double value) {
    forget_from(curve, step);
    size_t n = curve->n;
    if (n == curve->room) {
        size_t room = n ? 2 * n : 1024;
        plot_point *points = realloc(curve->points, room * sizeof *points);
        if (!points) {
            t->failed = true;
            return;
        }
        curve->points = points;
        curve->room = room;
    }
    curve->points[curve->n++] = (plot_point){step, value};
}

/** Which of the metrics that is; n_metrics: none of them. */
static int metric_at(const training *t, const char *name) {
    int i = 0;
    while (i < t->n_metrics && strcmp(t->metrics[i].name, name)) i++;
    return i;
}

static void keep_metric(training *t, double step, const watch_metric *metric) {
    if (!isfinite(metric->value) || !strcmp(metric->name, "accuracy")) return; // which has a curve
    const int at = metric_at(t, metric->name);
    if (at == CLV_MOST_METRICS) return;
    if (at == t->n_metrics) memcpy(t->metrics[t->n_metrics++].name, metric->name, sizeof metric->name);
    keep(t, &t->metrics[at].curve, step, metric->value);
}

static void on_step(void *user, const watch_moment *now) {
    training *t = user;
    double memory = 0, step = (double)now->step;
    for (int i = 0; i < now->n_devices; i++) memory += (double)now->devices[i].used_bytes / (1 << 20);
    forget_from(&t->curves[CURVE_TEST_LOSS], step);
    forget_from(&t->curves[CURVE_ACCURACY], step);
    for (int i = 0; i < t->n_metrics; i++) forget_from(&t->metrics[i].curve, step);
    keep(t, &t->curves[CURVE_LOSS], step, now->loss);
    keep(t, &t->curves[CURVE_LR], step, now->lr);
    keep(t, &t->curves[CURVE_RATE], step, now->images_per_second * (double)now->unit_each);
    if (memory > 0) keep(t, &t->curves[CURVE_MEMORY], step, memory);
}

static void on_epoch(void *user, const watch_moment *now) {
    training *t = user;
    if (!now->step) return; // resumed when nothing was left
    const double step = (double)now->step;
    if (isfinite(now->test_loss)) keep(t, &t->curves[CURVE_TEST_LOSS], step, now->test_loss);
    if (isfinite(now->test_accuracy)) keep(t, &t->curves[CURVE_ACCURACY], step, now->test_accuracy);
    for (int i = 0; i < now->n_metrics; i++) keep_metric(t, step, &now->metrics[i]);
}

/** Means of neighbours, so that a long training draws a curve and not a stain. */
static void thin(training_curve *curve) {
    plot_point *points = curve->points;
    size_t n = curve->n, group = (n + MOST_POINTS - 1) / MOST_POINTS, kept = 0;
    if (group < 2) return;
    for (size_t i = 0; i < n; i += group) {
        plot_point sum = {0, 0};
        size_t members = i + group < n ? group : n - i;
        for (size_t j = i; j < i + members; j++) sum.x += points[j].x, sum.y += points[j].y;
        points[kept++] = (plot_point){sum.x / (double)members, sum.y / (double)members};
    }
    curve->n = kept;
}

static int read_log(training *t) {
    watch_reader reader = {.on_step = on_step, .on_epoch = on_epoch, .user = t};
    int code = watch_reader_open(&reader, t->name);
    if (code == EXIT_DONE) code = watch_reader_poll(&reader);
    t->last = reader.now;
    t->settings = json_incref(reader.settings);
    watch_reader_close(&reader);
    if (code == EXIT_DONE && t->failed)
        code = cli_fail(EXIT_FAILED, "no memory for the steps of '%s'", t->name);
    for (int k = 0; k < CURVE_KINDS; k++) thin(&t->curves[k]);
    for (int i = 0; i < t->n_metrics; i++) thin(&t->metrics[i].curve);
    return code;
}

int trainings_read(trainings *all, const cli_texts *logs) {
    int code = EXIT_DONE;
    for (int i = 0; i < logs->n && code == EXIT_DONE; i++) {
        all->item[all->n].name = logs->item[i];
        code = read_log(&all->item[all->n++]);
    }
    return code;
}

void trainings_drop(trainings *all) {
    for (int i = 0; i < all->n; i++) {
        for (int k = 0; k < CURVE_KINDS; k++) free(all->item[i].curves[k].points);
        for (int k = 0; k < all->item[i].n_metrics; k++) free(all->item[i].metrics[k].curve.points);
        json_decref(all->item[i].settings);
    }
    all->n = 0;
}

// ---- the page ---------------------------------------------------------------------------------------------

/** What data are counted in, `images`; where trainings differ each counts its own. */
static const char *unit_of(const trainings *all) {
    for (int i = 1; i < all->n; i++)
        if (strcmp(all->item[i].last.unit, all->item[0].last.unit) != 0) return "data";
    return *all->item[0].last.unit ? all->item[0].last.unit : "images";
}

static void put_curves(cli_page *page, const trainings *all, curve_kind kind) {
    static const struct {
        const char *title, *format;
        bool smooth, dotted;
    } looks[CURVE_KINDS] = {
        [CURVE_LOSS] = {"train loss", "%.4g", true, false},
        [CURVE_TEST_LOSS] = {"test loss", "%.4g", false, true},
        [CURVE_ACCURACY] = {"test accuracy", "%.4f", false, true},
        [CURVE_LR] = {"learning rate", "%.4g", false, false},
        [CURVE_RATE] = {" per second", "%.0f", true, false},
        [CURVE_MEMORY] = {"device memory, MiB", "%.2f", false, false},
    };
    plot_curve curves[CLI_MAX_TEXTS];
    int n = 0;
    for (int i = 0; i < all->n; i++) {
        const training *t = &all->item[i];
        if (!t->curves[kind].n) continue;
        curves[n++] = (plot_curve){t->name, t->curves[kind].points, t->curves[kind].n,
                                   i,       looks[kind].dotted,     looks[kind].smooth};
    }
    char title[48];
    snprintf(title, sizeof title, "%s%s", kind == CURVE_RATE ? unit_of(all) : "", looks[kind].title);
    plot_curves(page, title, curves, n, "step", looks[kind].format);
}

/** The metrics of all trainings, each once, in the order in which they are told first. */
static int names_of_metrics(const trainings *all, const char *names[CLV_MOST_METRICS]) {
    int n = 0;
    for (int i = 0; i < all->n; i++) {
        for (int k = 0; k < all->item[i].n_metrics; k++) {
            int known = 0; // so many names are not this one
            while (known < n && strcmp(names[known], all->item[i].metrics[k].name)) known++;
            if (known == n && n < CLV_MOST_METRICS) names[n++] = all->item[i].metrics[k].name;
        }
    }
    return n;
}

static void put_metric(cli_page *page, const trainings *all, const char *name) {
    plot_curve curves[CLI_MAX_TEXTS];
    char title[48];
    int n = 0;
    for (int i = 0; i < all->n; i++) {
        const training *t = &all->item[i];
        const int at = metric_at(t, name);
        if (at < t->n_metrics && t->metrics[at].curve.n)
            curves[n++] =
                (plot_curve){t->name, t->metrics[at].curve.points, t->metrics[at].curve.n, i, true, false};
    }
    snprintf(title, sizeof title, "test %s", name);
    plot_curves(page, title, curves, n, "step", "%.4g");
}

/** A cell for each metric: as the newest test told it. */
static void put_metric_cells(cli_page *page, const watch_moment *last, const char *const *names, int n) {
    for (int i = 0; i < n; i++) {
        double value = NAN;
        for (int k = 0; k < last->n_metrics; k++)
            if (!strcmp(last->metrics[k].name, names[i])) value = last->metrics[k].value;
        page_cell_number(page, value);
    }
}

static void put_ends(cli_page *page, const trainings *all) {
    static const page_head first[] = {{.text = "log"},
                                      {.text = "model"},
                                      {.text = "state"},
                                      {.text = "steps", .number = true},
                                      {.text = "train loss", .number = true},
                                      {.text = "test loss", .number = true},
                                      {.text = "test accuracy", .number = true}};
    char rate[24];
    snprintf(rate, sizeof rate, "%s/s", unit_of(all));
    const page_head rest[] = {
        {.text = rate, .number = true}, {.text = "seconds", .number = true}, {.text = "devices"}, {0}};
    enum { FIRST = sizeof first / sizeof *first, REST = sizeof rest / sizeof *rest };
    page_head heads[FIRST + CLV_MOST_METRICS + REST];
    const char *names[CLV_MOST_METRICS];
    char titles[CLV_MOST_METRICS][48];
    const int n = names_of_metrics(all, names);
    memcpy(heads, first, sizeof first);
    for (int i = 0; i < n; i++) {
        snprintf(titles[i], sizeof titles[i], "test %s", names[i]);
        heads[FIRST + i] = (page_head){.text = titles[i], .number = true};
    }
    memcpy(heads + FIRST + n, rest, sizeof rest);
    page_add(page, "<div class=\"card\" style=\"margin-top:.7rem\">");
    page_table(page, heads);
    for (int i = 0; i < all->n; i++) {
        const watch_moment *last = &all->item[i].last;
        char devices[512] = "", steps[32];
        for (int d = 0; d < last->n_devices; d++)
            snprintf(devices + strlen(devices), sizeof devices - strlen(devices), "%s%s", d ? ", " : "",
                     last->devices[d].name);
        snprintf(steps, sizeof steps, "%lld", (long long)last->step);
        page_row(page);
        page_cell(page, "", all->item[i].name);
        page_cell(page, "", last->model);
        page_cell(page, last->state == WATCH_FAILED ? "bad" : "", watch_state_name(last->state));
        page_cell(page, "", steps);
        page_cell_number(page, last->loss);
        page_cell_number(page, last->test_loss);
        page_cell_number(page, last->test_accuracy);
        put_metric_cells(page, last, names, n);
        page_cell_number(page, last->images_per_second * (double)last->unit_each);
        page_cell_number(page, last->seconds_before + last->seconds);
        page_cell(page, "", devices);
        page_add(page, "</tr>\n");
    }
    page_add(page, "</table></div>\n");
}

/** A setting as a person reads it; a dash for one that was not given. */
static void setting_text(const json_t *value, char *text, size_t bytes) {
    if (json_is_string(value))
        snprintf(text, bytes, "%s", json_string_value(value));
    else if (json_is_integer(value))
        snprintf(text, bytes, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        snprintf(text, bytes, "%.7g", json_real_value(value));
    else
        snprintf(text, bytes, "%s", json_is_true(value) ? "yes" : json_is_false(value) ? "no" : "–");
}

static bool differs(const trainings *all, const char *key) {
    for (int i = 1; i < all->n; i++) {
        const json_t *first = json_object_get(all->item[0].settings, key),
                     *other = json_object_get(all->item[i].settings, key);
        if ((first || other) && !json_equal(first, other)) return true;
    }
    return false;
}

/** The settings of all trainings: a row each, in the order in which they are told first; rows in which they
 *  differ come first, marked. */
static void put_settings(cli_page *page, const trainings *all) {
    page_head heads[CLI_MAX_TEXTS + 2] = {{.text = "setting"}};
    json_t *keys = json_object();
    const char *key;
    json_t *value;
    for (int i = 0; i < all->n; i++) {
        heads[i + 1] = (page_head){.text = all->item[i].name};
        json_object_foreach(all->item[i].settings, key, value) json_object_set(keys, key, json_null());
    }
    if (json_object_size(keys)) {
        page_add(page, "<details open><summary>settings%s</summary><div class=\"card\">",
                 all->n > 1 ? ", what differs first" : "");
        page_table(page, heads);
        for (int pass = 0; pass < 2; pass++) {
            json_object_foreach(keys, key, value) {
                char text[512];
                bool marked = differs(all, key);
                if (marked != (pass == 0)) continue;
                page_row(page);
                page_cell(page, marked ? "differs" : "", key);
                for (int i = 0; i < all->n; i++) {
                    setting_text(json_object_get(all->item[i].settings, key), text, sizeof text);
                    page_cell(page, marked ? "wide differs" : "wide", text);
                }
                page_add(page, "</tr>\n");
            }
        }
        page_add(page, "</table></div></details>\n");
    }
    json_decref(keys);
}

void trainings_put(cli_page *page, const trainings *all) {
    plot_curve names[CLI_MAX_TEXTS];
    if (!all->n) return;
    page_add(page, "<h2>Trainings</h2>\n<div>");
    plot_switch(page);
    page_add(page, "<div class=\"plots\">\n");
    const char *metrics[CLV_MOST_METRICS];
    const int n = names_of_metrics(all, metrics);
    for (int kind = 0; kind < CURVE_KINDS; kind++) {
        put_curves(page, all, (curve_kind)kind);
        for (int i = 0; kind == CURVE_ACCURACY && i < n; i++) put_metric(page, all, metrics[i]);
    }
    page_add(page, "</div>\n");
    for (int i = 0; i < all->n; i++) names[i] = (plot_curve){.name = all->item[i].name, .colour = i};
    plot_legend(page, names, all->n);
    page_add(page, "</div>\n");
    put_ends(page, all);
    put_settings(page, all);
}
