// SPDX-License-Identifier: Apache-2.0
// A training as lines on a terminal: one for the whole and one for each device, with bars. Each picture is
// drawn over the one before, so nothing scrolls. Where a terminal is narrow the least important figures are
// left out.
#include "watching/watch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BAR = 14, SHORT_BAR = 10, LEAST_BAR = 4, LINE_BYTES = 4096 };

const char *watch_time_text(double seconds, char text[32]) {
    if (!isfinite(seconds) || seconds > 1e9)
        snprintf(text, 32, "?");
    else if (seconds < 100)
        snprintf(text, 32, "%.0f s", seconds);
    else if (seconds < 3600)
        snprintf(text, 32, "%d min %d s", (int)seconds / 60, (int)seconds % 60);
    else
        snprintf(text, 32, "%d h %d min", (int)(seconds / 3600), (int)(seconds / 60) % 60);
    return text;
}

/** A rate with three digits where it is small. */
static const char *rate_text(double rate, char text[32]) {
    if (isfinite(rate))
        snprintf(text, 32, "%.*f", rate < 10 ? 2 : rate < 100 ? 1 : 0, rate);
    else
        snprintf(text, 32, "-");
    return text;
}

static const char *percent_text(double part, int digits, char text[32]) {
    if (isfinite(part))
        snprintf(text, 32, "%.*f %%", digits, 100 * part);
    else
        snprintf(text, 32, "-");
    return text;
}

static double done_of(const watch_moment *now) {
    return now->steps > 0 ? (double)now->step / (double)now->steps : 0;
}

void watch_training(screen_line *line, const watch_moment *now, bool bars, bool sentence) {
    char rate[32], left[32];
    screen_line_add(line, SCREEN_KEEP, "\033[1m", "%s", *now->model ? now->model : "training");
    if (now->ranks) screen_line_add(line, 75, NULL, "  rank %d of %d", now->rank, now->ranks);
    if (now->state == WATCH_NOTHING) {
        screen_line_add(line, SCREEN_KEEP, NULL, "  waiting for the first step");
        return;
    }
    screen_line_add(line, 70, NULL, "  epoch %lld%s%.0lld", (long long)now->epoch, now->epochs ? "/" : "",
                    (long long)now->epochs);
    screen_line_add(line, SCREEN_KEEP, NULL, "  step %lld/%lld", (long long)now->step, (long long)now->steps);
    if (bars) {
        screen_line_add(line, 20, NULL, "  ");
        screen_line_bar(line, 20, "\033[32m", LEAST_BAR, BAR, done_of(now));
    }
    screen_line_add(line, 30, NULL, "  %.0f %%", 100 * done_of(now));
    screen_line_add(line, 90, NULL, "  %sloss %s", now->mean_loss ? "train " : "", cli_figure(now->loss));
    if (isfinite(now->test_accuracy)) screen_line_add(line, 60, NULL, "  accuracy %.4f", now->test_accuracy);
    for (int i = 0; i < now->n_metrics; i++)
        if (isfinite(now->metrics[i].value) && strcmp(now->metrics[i].name, "accuracy"))
            screen_line_add(line, 55, NULL, "  %s %s", now->metrics[i].name,
                            cli_figure(now->metrics[i].value));
    screen_line_add(line, 50, NULL, "  %s %s/s",
                    rate_text(now->images_per_second * (double)now->unit_each, rate), now->unit);
    if (now->state == WATCH_RUNS)
        screen_line_add(line, 80, NULL, "  %s left", watch_time_text(now->left_seconds, left));
    else
        screen_line_add(line, SCREEN_KEEP, NULL, "  %s%s%s", watch_state_name(now->state),
                        sentence && *now->sentence ? ": " : "", sentence ? now->sentence : "");
}

/** The part of the work that a device has, or "" if it has all of it. */
static const char *part_text(const watch_device *device, char text[48]) {
    if (device->lost)
        snprintf(text, 48, "lost");
    else if (isfinite(device->share))
        snprintf(text, 48, "%.1f %% of the batch", 100 * device->share);
    else if (device->layers >= 0)
        snprintf(text, 48, "%d layer%s", device->layers, device->layers == 1 ? "" : "s");
    else
        *text = 0;
    return text;
}

static void device_line(screen_line *line, const watch_moment *now, int i, bool bars) {
    const watch_device *device = &now->devices[i];
    char busy[32], part[48], rate[32];
    uint64_t room = device->budget_bytes ? device->budget_bytes : device->memory_bytes;
    double full = room ? (double)device->used_bytes / (double)room : NAN;
    const char *colour = device->lost ? "\033[31m" : NULL;
    screen_line_add(line, SCREEN_KEEP, colour, "  %-8s ", device->name);
    if (bars) screen_line_bar(line, 20, full > 0.9 ? "\033[33m" : "\033[36m", LEAST_BAR, BAR, full);
    screen_line_add(line, 90, colour, " %9s of %9s", cli_bytes(device->used_bytes), cli_bytes(room));
    if (device->budget_bytes) screen_line_add(line, 40, colour, " (budget)");
    screen_line_add(line, 60, colour, ", peak %9s", cli_bytes(device->peak_bytes));
    if (bars) {
        screen_line_add(line, 10, NULL, "  ");
        screen_line_bar(line, 10, "\033[32m", LEAST_BAR, SHORT_BAR, device->busy);
    }
    screen_line_add(line, 80, colour, "  busy %5s", percent_text(device->busy, 0, busy));
    screen_line_add(line, 50, colour, "  %s %s/s",
                    rate_text(device->images_per_second * (double)now->unit_each, rate), now->unit);
    if (*part_text(device, part)) screen_line_add(line, device->lost ? 95 : 70, colour, "  %s", part);
}

enum { PICTURE_LINES = 1 + WATCH_DEVICES };

/** A line for the training and one for each device; how many. */
static int picture(const watch_moment *now, bool colour, bool bars, bool sentence, screen_line *lines) {
    memset(lines, 0, PICTURE_LINES * sizeof *lines);
    for (int i = 0; i <= now->n_devices; i++) lines[i].colour = colour;
    watch_training(&lines[0], now, bars, sentence);
    for (int i = 0; i < now->n_devices; i++) device_line(&lines[i + 1], now, i, bars);
    return now->n_devices + 1;
}

void watch_draw(screen_area *area, const watch_moment *now) {
    screen_line lines[PICTURE_LINES];
    int n = picture(now, area->colour, true, true, lines);
    screen_area_draw(area, lines, n);
}

void watch_print(FILE *out, const watch_moment *now) {
    screen_line lines[PICTURE_LINES];
    const bool terminal = screen_is_terminal(out);
    const int width = screen_width(out);
    int n = picture(now, screen_has_colour(out), terminal, !width, lines);
    for (int i = 0; i < n; i++) {
        char text[LINE_BYTES];
        screen_line_text(&lines[i], width, text, sizeof text);
        fprintf(out, "%s\n", text);
    }
    if (!width || !*now->sentence) return;
    screen_wrap(out, now->sentence, 0, 0, width);
    fputc('\n', out);
}

// ---- several ----------------------------------------------------------------------------------------------

screen_line *watch_lines_add(watch_lines *lines) {
    if (lines->n == lines->room) {
        const int room = lines->room ? 2 * lines->room : 16;
        screen_line *more = realloc(lines->line, (size_t)room * sizeof *more);
        if (!more) return NULL;
        lines->line = more;
        lines->room = room;
    }
    screen_line *line = &lines->line[lines->n++];
    memset(line, 0, sizeof *line);
    line->colour = lines->colour;
    return line;
}

void watch_lines_training(watch_lines *lines, const char *name, const watch_moment *now) {
    screen_line *line = watch_lines_add(lines);
    if (line) screen_line_add(line, SCREEN_KEEP, "\033[36m", "%s", name);
    if ((line = watch_lines_add(lines))) watch_training(line, now, lines->bars, true);
    for (int i = 0; i < now->n_devices; i++)
        if ((line = watch_lines_add(lines))) device_line(line, now, i, lines->bars);
}

void watch_load(screen_line *line, const char *name, uint64_t used, uint64_t room, double busy, bool bars) {
    char text[32];
    const double full = room ? (double)used / (double)room : NAN;
    screen_line_add(line, SCREEN_KEEP, "\033[1m", "%-8s ", name);
    if (bars) screen_line_bar(line, 20, full > 0.9 ? "\033[33m" : "\033[36m", LEAST_BAR, BAR, full);
    screen_line_add(line, 90, NULL, " %9s of %9s", cli_bytes(used), cli_bytes(room));
    if (bars) {
        screen_line_add(line, 10, NULL, "  ");
        screen_line_bar(line, 10, "\033[32m", LEAST_BAR, SHORT_BAR, busy);
    }
    screen_line_add(line, 80, NULL, "  busy %5s", percent_text(busy, 0, text));
}

void watch_lines_draw(const watch_lines *lines, screen_area *area) {
    screen_area_draw(area, lines->line, lines->n);
}

void watch_lines_print(const watch_lines *lines, FILE *out) {
    char text[LINE_BYTES];
    for (int i = 0; i < lines->n; i++) {
        screen_line_text(&lines->line[i], screen_width(out), text, sizeof text);
        fprintf(out, "%s\n", text);
    }
}
