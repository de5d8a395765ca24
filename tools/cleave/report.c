// SPDX-License-Identifier: Apache-2.0
// What a person or a script reads: sentences on stderr, JSON and tables on stdout, a progress bar on a
// terminal.
#include "cli.h"

#include <math.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/** Every line for people goes through here. */
static int show(FILE *out, const char *format, va_list args) {
    const unsigned flags = CLV__SHOWN_COLOURS | (out == stderr ? CLV__SHOWN_NAMES : 0);
    char small[1024];
    int n = clv__format_shown(small, sizeof small, flags, format, args);
    char *big = (size_t)n >= sizeof small ? malloc((size_t)n + 1) : NULL;
    if (big) clv__format_shown(big, (size_t)n + 1, flags, format, args);
    const char *text = big ? big : small;
    size_t bytes = strlen(text);
    bool written = fwrite(text, 1, bytes, out) == bytes;
    free(big);
    return written ? n : -1;
}

int cli_fprintf(FILE *out, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = out == stdout || out == stderr ? show(out, format, args) : vfprintf(out, format, args);
    va_end(args);
    return n;
}

static struct {
    bool on;
    char text[4096];
} held;

void cli_hold_failures(void) {
    held.on = true;
}

char *cli_held(void) {
    return held.on ? held.text : NULL;
}

void cli_release_failures(void) {
    held.on = false;
    if (!*held.text) return;
    screen_clear();
    fprintf(stderr, "cleave: %s\n", held.text);
    *held.text = 0;
}

int cli_fail(int code, const char *format, ...) {
    va_list args;
    va_start(args, format);
    if (held.on) {
        size_t at = strlen(held.text);
        if (at) at += (size_t)snprintf(held.text + at, sizeof held.text - at, "\ncleave: ");
        if (at < sizeof held.text)
            clv__format_shown(held.text + at, sizeof held.text - at, CLV__SHOWN_COLOURS | CLV__SHOWN_NAMES,
                              format, args);
    } else {
        screen_clear();
        fputs("cleave: ", stderr);
        show(stderr, format, args);
        fputc('\n', stderr);
    }
    va_end(args);
    return code;
}

int cli_fail_status(clv_runtime *runtime, clv_status status) {
    const char *sentence = runtime ? cli_sentence(runtime) : "";
    return cli_fail(status == CLV_E_INTERRUPTED ? EXIT_INTERRUPTED : EXIT_FAILED, "%s",
                    *sentence ? sentence : clv_status_text(status));
}

const char *cli_bytes(uint64_t bytes) {
    static _Thread_local char texts[8][24];
    static _Thread_local unsigned next;
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    char *text = texts[next++ % 8];
    double number = (double)bytes;
    int unit = 0;
    while (number >= 1024 && unit < 6) number /= 1024, unit++;
    snprintf(text, sizeof texts[0], unit ? "%.1f %s" : "%.0f %s", number, units[unit]);
    return text;
}

const char *cli_figure(double value) {
    static _Thread_local char texts[8][24];
    static _Thread_local unsigned next;
    char *text = texts[next++ % 8];
    const double size = value < 0 ? -value : value;
    snprintf(text, sizeof texts[0], size < 1e3 ? "%.4f" : size < 1e6 ? "%.1f" : "%.3g", value);
    return text;
}

/** Has who reads our stdout gone, as `head` does when it has seen enough? */
static bool reader_is_gone(void) {
    struct pollfd out = {.fd = STDOUT_FILENO};
    return poll(&out, 1, 0) == 1 && out.revents & (POLLERR | POLLHUP);
}

int cli_finish_output(void) {
    if (fflush(stdout) == 0 && !ferror(stdout)) return EXIT_DONE;
    if (reader_is_gone()) return EXIT_NO_READER;
    return cli_fail(EXIT_FAILED, "the results could not be written to stdout");
}

int cli_print_json(json_t *object) {
    if (!object) return cli_fail(EXIT_FAILED, "out of host memory for the JSON");
    char *text = json_dumps(object, JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(15));
    json_decref(object);
    if (!text) return cli_fail(EXIT_FAILED, "out of host memory for the JSON");
    for (const unsigned char *at = (unsigned char *)text; *at;
         at++) { // jansson leaves two kinds of control characters
        const bool c1 = at[0] == 0xC2 && at[1] >= 0x80 && at[1] < 0xA0;
        if (c1 || *at == 0x7F)
            printf("\\u%04x", c1 ? *++at : *at);
        else
            putchar(*at);
    }
    free(text);
    putchar('\n');
    return cli_finish_output();
}

json_t *cli_real(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

/** What chooses kernels for a device beyond its limits; null for what is not told, and for devices that run
 *  no kernels. */
static json_t *traits_json(const clv_device_info *info) {
    static const struct {
        uint32_t bit;
        const char *word;
    } words[] = {{CLV_FLOATS_DENORMALS, "denormals"},
                 {CLV_FLOATS_INF_NAN, "inf_nan"},
                 {CLV_FLOATS_ROUND_NEAREST, "round_to_nearest"},
                 {CLV_FLOATS_ROUND_ZERO, "round_to_zero"},
                 {CLV_FLOATS_FMA, "fma"}};
    if (!*info->opencl_c) return json_null();
    json_t *floats = json_array(), *sizes = json_array();
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (info->floats & words[i].bit) json_array_append_new(floats, json_string(words[i].word));
    for (int i = 0; i < CLV_SUB_GROUP_SIZES && info->sub_group_sizes[i]; i++)
        json_array_append_new(sizes, json_integer(info->sub_group_sizes[i]));
    return json_pack("{s:s, s:o, s:I, s:I, s:I, s:o, s:b, s:s, s:b, s:I}", "execution", info->execution_name,
                     "floats", floats, "address_bits", (json_int_t)info->address_bits, "argument_bytes",
                     (json_int_t)info->argument_bytes, "preferred_multiple",
                     (json_int_t)info->preferred_multiple, "sub_group_sizes", sizes, "compiler",
                     info->compiler, "local_memory_kind", info->local_memory ? "local" : "global",
                     "local_doubled", info->local_doubled, "loop_turns", (json_int_t)info->loop_turns);
}

json_t *cli_device_json(const clv_device_info *info) {
    json_t *object =
        json_pack("{s:s, s:i, s:i, s:i, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:b, s:s}", "name", info->name,
                  "index", info->index, "platform", info->platform, "device", info->device, "label",
                  info->label, "type", info->type_name, "backend", info->backend, "platform_name",
                  info->platform_name, "vendor", info->vendor, "driver", info->driver, "opencl_c",
                  info->opencl_c, "usable", info->usable, "reason", info->reason);
    json_t *limits = json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:b, s:b, s:b, s:s, s:b, s:o}", "memory_bytes",
        (json_int_t)info->memory_bytes, "max_alloc_bytes", (json_int_t)info->max_alloc_bytes, "local_bytes",
        (json_int_t)info->local_bytes, "max_work_group", (json_int_t)info->max_work_group, "compute_units",
        (json_int_t)info->compute_units, "alignment_bytes", (json_int_t)info->alignment_bytes, "vector_width",
        (json_int_t)info->vector_width, "fp16", info->fp16, "fp64", info->fp64, "sub_groups",
        info->sub_groups, "unified_memory", info->unified_memory, "profile",
        info->embedded    ? "embedded"
        : *info->opencl_c ? "full"
                          : "",
        "int64", !info->no_int64, "traits", traits_json(info));
    if (object && limits) json_object_update(object, limits);
    json_decref(limits);
    return object;
}

json_t *cli_memory_json(const clv_device *device, uint64_t predicted) {
    clv_memory_info memory = clv_device_memory(device);
    json_t *categories = json_object();
    for (int i = 0; i < CLV_CATEGORIES; i++)
        json_object_set_new(categories, clv_category_name((clv_category)i),
                            json_integer((json_int_t)memory.category[i].peak));
    return json_pack("{s:s, s:I, s:I, s:I, s:o}", "device", clv_device_info_get(device)->name,
                     "predicted_peak_bytes", (json_int_t)predicted, "peak_bytes", (json_int_t)memory.all.peak,
                     "budget_bytes", (json_int_t)memory.budget, "categories", categories);
}

void cli_memory_table(FILE *out, const clv_device *device, uint64_t predicted) {
    clv_memory_info memory = clv_device_memory(device);
    fprintf(out, "memory on %s\n", clv_device_info_get(device)->name);
    for (int i = 0; i < CLV_CATEGORIES; i++)
        if (memory.category[i].peak)
            fprintf(out, "  %-12s %12s\n", clv_category_name((clv_category)i),
                    cli_bytes(memory.category[i].peak));
    char text[160];
    int n = snprintf(text, sizeof text, "predicted %s%s", cli_bytes(predicted),
                     memory.all.peak == predicted ? ", to the byte" : "");
    if (memory.budget) snprintf(text + n, sizeof text - (size_t)n, ", budget %s", cli_bytes(memory.budget));
    int at = fprintf(out, "  %-12s %12s   ", "peak", cli_bytes(memory.all.peak));
    screen_wrap(out, text, at, at, screen_width(out));
    fputc('\n', out);
}

// ---- the line on a terminal -------------------------------------------------------------------------------

void cli_progress_init(cli_progress *progress, bool quiet) {
    *progress = (cli_progress){.last = cli_seconds(), .lines = !quiet && !screen_is_terminal(stderr)};
    pthread_mutex_init(&progress->lock, NULL);
    screen_area_init(&progress->area, stderr, !quiet && screen_is_terminal(stderr));
}

void cli_progress_draw(cli_progress *progress, const char *label, double done, double total,
                       const char *text) {
    enum { SHORT_BAR = 6, LONG_BAR = 30, FIRST_FIELD = 99, BAR = 96 }; // fields count down by two
    const double now = cli_seconds(), every = progress->lines ? 60 : done < total ? 0.1 : 0;
    if (!progress->area.terminal && !progress->lines) return;
    pthread_mutex_lock(&progress->lock);
    const bool soon = now - progress->last < every;
    if (!soon) progress->last = now;
    if (!soon && progress->lines) fprintf(stderr, "%s %s\n", label, text);
    if (soon || progress->lines) {
        pthread_mutex_unlock(&progress->lock);
        return;
    }
    screen_line line = {.colour = progress->area.colour};
    screen_line_add(&line, SCREEN_KEEP, NULL, "%s ", label);
    screen_line_bar(&line, BAR, "\033[32m", SHORT_BAR, LONG_BAR, total > 0 ? done / total : 0);
    const char *gap = " ";
    for (int i = 0; *text && i < SCREEN_PIECES - 2; i++) {
        const char *end = strstr(text, "  ");
        int length = end ? (int)(end - text) : (int)strlen(text);
        screen_line_add(&line, FIRST_FIELD - 2 * i, NULL, "%s%.*s", gap, length, text);
        text += length + (end ? 2 : 0);
        gap = "  ";
    }
    screen_area_draw(&progress->area, &line, 1);
    pthread_mutex_unlock(&progress->lock);
}

bool cli_steps_draw(void *user, int done, int total, const char *next) {
    const cli_steps *steps = user;
    char text[128];
    snprintf(text, sizeof text, "%d/%d  %s", done, total, next);
    cli_progress_draw(steps->progress, steps->label, done, total, text);
    return !*steps->interrupt;
}

void cli_progress_clear(cli_progress *progress) {
    pthread_mutex_lock(&progress->lock);
    screen_area_clear(&progress->area);
    pthread_mutex_unlock(&progress->lock);
}
