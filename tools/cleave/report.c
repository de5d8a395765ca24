// SPDX-License-Identifier: Apache-2.0
// What a person or a script reads: sentences on stderr, JSON and tables on stdout, a progress bar on a terminal.
#include "cli.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int cli_fail(int code, const char *format, ...) {
    va_list args;
    va_start(args, format);
    fputs("cleave: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    return code;
}

int cli_fail_status(clv_runtime *runtime, clv_status status) {
    const char *sentence = runtime ? clv_runtime_error(runtime) : "";
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

int cli_check_target(const char *path) {
    if (!path) return EXIT_DONE;
    char folder[4096] = ".";
    const char *slash = strrchr(path, '/');
    struct stat what;
    if (slash) snprintf(folder, sizeof folder, "%.*s", slash > path ? (int)(slash - path) : 1, path);
    if (access(folder, W_OK | X_OK))
        return cli_fail(EXIT_FAILED, "'%s' cannot be written: folder '%s': %s", path, folder,
                        strerror(errno));
    if (!stat(path, &what) && S_ISDIR(what.st_mode))
        return cli_fail(EXIT_FAILED, "'%s' cannot be written: it is a folder", path);
    return EXIT_DONE;
}

int cli_finish_output(void) {
    if (fflush(stdout) || ferror(stdout))
        return cli_fail(EXIT_FAILED, "the results could not be written to stdout");
    return EXIT_DONE;
}

int cli_print_json(json_t *object) {
    if (!object) return cli_fail(EXIT_FAILED, "out of host memory for the JSON");
    int failed = json_dumpf(object, stdout, JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(15));
    json_decref(object);
    if (failed || putchar('\n') == EOF)
        return cli_fail(EXIT_FAILED, "the JSON could not be written to stdout");
    return cli_finish_output();
}

json_t *cli_real(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *cli_device_json(const clv_device_info *info) {
    json_t *object =
        json_pack("{s:s, s:i, s:i, s:i, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:b, s:s}", "name", info->name,
                  "index", info->index, "platform", info->platform, "device", info->device, "label",
                  info->label, "type", clv_device_type_name(info->type), "backend", info->backend,
                  "platform_name", info->platform_name, "vendor", info->vendor, "driver", info->driver,
                  "opencl_c", info->opencl_c, "usable", info->usable, "reason", info->reason);
    json_t *limits = json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:b, s:b, s:b}", "memory_bytes",
        (json_int_t)info->memory_bytes, "max_alloc_bytes", (json_int_t)info->max_alloc_bytes, "local_bytes",
        (json_int_t)info->local_bytes, "max_work_group", (json_int_t)info->max_work_group, "compute_units",
        (json_int_t)info->compute_units, "alignment_bytes", (json_int_t)info->alignment_bytes, "vector_width",
        (json_int_t)info->vector_width, "fp16", info->fp16, "fp64", info->fp64, "sub_groups",
        info->sub_groups, "unified_memory", info->unified_memory);
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
    return json_pack("{s:s, s:I, s:I, s:I, s:o}", "device", clv_device_get_info(device)->name,
                     "predicted_peak_bytes", (json_int_t)predicted, "peak_bytes", (json_int_t)memory.all.peak,
                     "budget_bytes", (json_int_t)memory.budget, "categories", categories);
}

void cli_memory_table(FILE *out, const clv_device *device, uint64_t predicted) {
    clv_memory_info memory = clv_device_memory(device);
    fprintf(out, "memory on %s\n", clv_device_get_info(device)->name);
    for (int i = 0; i < CLV_CATEGORIES; i++)
        if (memory.category[i].peak)
            fprintf(out, "  %-12s %12s\n", clv_category_name((clv_category)i),
                    cli_bytes(memory.category[i].peak));
    fprintf(out, "  %-12s %12s   predicted %s%s", "peak", cli_bytes(memory.all.peak), cli_bytes(predicted),
            memory.all.peak == predicted ? ", to the byte" : "");
    if (memory.budget) fprintf(out, ", budget %s", cli_bytes(memory.budget));
    fputc('\n', out);
}

// ---- the line on a terminal ---------------------------------------------------------------------------------------

bool cli_is_terminal(FILE *out) {
    const char *term = getenv("TERM");
    return isatty(fileno(out)) && term && strcmp(term, "dumb");
}

bool cli_has_colour(FILE *out) {
    const char *no_color = getenv("NO_COLOR");
    return cli_is_terminal(out) && !(no_color && *no_color);
}

void cli_progress_init(cli_progress *progress, bool quiet) {
    *progress = (cli_progress){.terminal = !quiet && cli_is_terminal(stderr)};
    progress->colour = progress->terminal && cli_has_colour(stderr);
}

void cli_progress_draw(cli_progress *progress, const char *label, double done, double total,
                       const char *text) {
    enum { WIDTH = 24 };
    double now = cli_seconds();
    if (!progress->terminal || (done < total && now - progress->last < 0.1)) return;
    progress->last = now;
    progress->drawn = true;
    int full = total > 0 ? (int)(WIDTH * done / total) : 0;
    if (full > WIDTH) full = WIDTH;
    fprintf(stderr, "\r\033[K%s %s", label, progress->colour ? "\033[32m" : "");
    for (int i = 0; i < WIDTH; i++)
        fputs(i < full ? "━" : i == full && progress->colour ? "\033[2m─" : "─", stderr);
    fprintf(stderr, "%s %s", progress->colour ? "\033[0m" : "", text);
    fflush(stderr);
}

void cli_progress_clear(cli_progress *progress) {
    if (progress->drawn) fputs("\r\033[K", stderr);
    progress->drawn = false;
}
