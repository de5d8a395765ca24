// SPDX-License-Identifier: Apache-2.0
// A training drawn for a person: a line for the whole of it and one for each device, with bars on a terminal. A picture is
// drawn over the one before, so nothing scrolls; rows are counted as the terminal breaks them.
#include "watch.h"

#include <math.h>
#include <string.h>
#include <sys/ioctl.h>

enum { LINE_BYTES = 1024, BAR = 14, SHORT_BAR = 10, WIDE = 118, USUAL_WIDTH = 80 };

/** A line that is being put together. */
typedef struct row {
    char text[LINE_BYTES];
    size_t n;
    int columns; // that it takes on a terminal
    bool colour;
} row;

/** Add text; `columns` of it are seen, -1: as many as it has characters. */
static void add(row *line, int columns, const char *text) {
    size_t bytes = strlen(text);
    if (line->n + bytes >= sizeof line->text) return;
    memcpy(line->text + line->n, text, bytes + 1);
    line->n += bytes;
    int seen = 0;
    for (const char *at = text; *at; at++) seen += ((unsigned char)*at & 0xC0) != 0x80; // UTF-8
    line->columns += columns < 0 ? seen : columns;
}

static void add_colour(row *line, const char *code) {
    if (line->colour) add(line, 0, code);
}

static void add_bar(row *line, int width, double part, const char *colour) {
    int full = isfinite(part) ? (int)lround(width * (part < 0 ? 0 : part > 1 ? 1 : part)) : 0;
    add_colour(line, colour);
    for (int i = 0; i < full; i++) add(line, 1, "━");
    add_colour(line, "\033[0m\033[2m");
    for (int i = full; i < width; i++) add(line, 1, "─");
    add_colour(line, "\033[0m");
}

/** Seconds as a person says them: `42 s`, `3 min 20 s`, `5 h 10 min`. */
static const char *time_text(double seconds, char text[32]) {
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

/** What follows the number of the step. */
static void tell_rest(const watch_moment *now, char *text, size_t bytes) {
    char rate[32], left[32], accuracy[48] = "", how[600] = "";
    if (isfinite(now->test_accuracy))
        snprintf(accuracy, sizeof accuracy, "  accuracy %.4f", now->test_accuracy);
    if (now->state == WATCH_RUNS)
        snprintf(how, sizeof how, "%s left", time_text(now->left_seconds, left));
    else
        snprintf(how, sizeof how, "%s%s%s", watch_state_name(now->state), *now->sentence ? ": " : "",
                 now->sentence);
    snprintf(text, bytes, "loss %.4f%s  %s images/s  %s", now->loss, accuracy,
             rate_text(now->images_per_second, rate), how);
}

static void training_line(row *line, const watch_moment *now, bool bars) {
    char text[LINE_BYTES], rest[800];
    add_colour(line, "\033[1m");
    add(line, -1, *now->model ? now->model : "training");
    add_colour(line, "\033[0m");
    if (now->state == WATCH_NOTHING) {
        add(line, -1, "  waiting for the first step");
        return;
    }
    snprintf(text, sizeof text, "  epoch %lld%s%.0lld  step %lld/%lld ", (long long)now->epoch,
             now->epochs ? "/" : "", (long long)now->epochs, (long long)now->step, (long long)now->steps);
    add(line, -1, text);
    if (bars) {
        add(line, 1, " ");
        add_bar(line, BAR, done_of(now), "\033[32m");
    }
    tell_rest(now, rest, sizeof rest);
    snprintf(text, sizeof text, " %.0f %%  %s", 100 * done_of(now), rest);
    add(line, -1, text);
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

static void device_line(row *line, const watch_device *device, bool bars) {
    char text[LINE_BYTES], busy[32], part[48], rate[32];
    uint64_t room = device->budget_bytes ? device->budget_bytes : device->memory_bytes;
    double full = room ? (double)device->used_bytes / (double)room : NAN;
    snprintf(text, sizeof text, "  %-8s ", device->name);
    add(line, -1, text);
    if (bars) add_bar(line, BAR, full, full > 0.9 ? "\033[33m" : "\033[36m");
    snprintf(text, sizeof text, " %9s of %9s%s, peak %9s ", cli_bytes(device->used_bytes), cli_bytes(room),
             device->budget_bytes ? " (budget)" : "", cli_bytes(device->peak_bytes));
    add(line, -1, text);
    if (bars) {
        add(line, 1, " ");
        add_bar(line, SHORT_BAR, device->busy, "\033[32m");
    }
    snprintf(text, sizeof text, " busy %5s  %s images/s  %s", percent_text(device->busy, 0, busy),
             rate_text(device->images_per_second, rate), part_text(device, part));
    if (device->lost) add_colour(line, "\033[31m");
    add(line, -1, text);
    if (device->lost) add_colour(line, "\033[0m");
}

// ---- on a terminal --------------------------------------------------------------------------------------------------

void watch_canvas_init(watch_canvas *canvas, FILE *out, bool terminal, bool colour) {
    *canvas = (watch_canvas){.out = out, .terminal = terminal, .colour = colour};
}

static int width_of(const watch_canvas *canvas) {
    struct winsize size;
    if (!canvas->terminal) return WIDE;
    return !ioctl(fileno(canvas->out), TIOCGWINSZ, &size) && size.ws_col ? size.ws_col : USUAL_WIDTH;
}

void watch_wipe(watch_canvas *canvas) {
    if (canvas->rows) fprintf(canvas->out, "\033[%dA\r\033[J", canvas->rows);
    canvas->rows = 0;
}

static void put_line(watch_canvas *canvas, const row *line, int width) {
    fprintf(canvas->out, "%s\n", line->text);
    if (canvas->terminal) canvas->rows += line->columns > width ? (line->columns + width - 1) / width : 1;
}

void watch_draw(watch_canvas *canvas, const watch_moment *now) {
    const int width = width_of(canvas);
    const bool bars = width >= WIDE;
    watch_wipe(canvas);
    row all = {.colour = canvas->colour};
    training_line(&all, now, bars);
    put_line(canvas, &all, width);
    for (int i = 0; i < now->n_devices; i++) {
        row one = {.colour = canvas->colour};
        device_line(&one, &now->devices[i], bars);
        put_line(canvas, &one, width);
    }
    fflush(canvas->out);
}

// ---- in a file ------------------------------------------------------------------------------------------------------

void watch_print(FILE *out, const watch_moment *now) {
    row all = {0};
    training_line(&all, now, false);
    fprintf(out, "%s\n", all.text);
    for (int i = 0; i < now->n_devices; i++) {
        row one = {0};
        device_line(&one, &now->devices[i], false);
        fprintf(out, "%s\n", one.text);
    }
}
