// SPDX-License-Identifier: Apache-2.0
// cleave top without a log: every device of this machine, what trainings and other commands of this user hold
// there and how busy they keep it, and these. OpenCL does not tell what other programs hold.
#include "watching/presence.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { REFRESH_MS = 500, MOST_DEVICES = 64, WAITS = 5 };

/** A device as the machine has it, or as a command names it that sees others. */
typedef struct shown_device {
    const char *name, *label;
    uint64_t used_bytes, memory_bytes;
    double busy; // the sum over those that use it; NAN: nobody knows
    int n_trainings, n_commands;
} shown_device;

typedef struct machine {
    cli_session *session;
    presence_list all; // trainings and other commands
    shown_device device[MOST_DEVICES];
    int n_devices;
} machine;

static shown_device *find(machine *m, const char *name, const char *label) {
    for (int i = 0; i < m->n_devices; i++)
        if (!strcmp(m->device[i].name, name) && !strcmp(m->device[i].label, label)) return &m->device[i];
    if (m->n_devices == MOST_DEVICES) return NULL;
    m->device[m->n_devices] = (shown_device){.name = name, .label = label, .busy = NAN};
    return &m->device[m->n_devices++];
}

static void add_process(machine *m, const watch_moment *now) {
    for (int i = 0; i < now->n_devices; i++) {
        const watch_device *used = &now->devices[i];
        shown_device *device = find(m, used->name, used->label);
        if (!device) continue;
        device->used_bytes += used->used_bytes;
        if (!device->memory_bytes) device->memory_bytes = used->memory_bytes;
        if (isfinite(used->busy)) device->busy = (isfinite(device->busy) ? device->busy : 0) + used->busy;
        *(presence_trains(now) ? &device->n_trainings : &device->n_commands) += 1;
    }
}

/** Prints what fails. */
static int look(machine *m) {
    clv_runtime *runtime = m->session->runtime;
    m->n_devices = 0;
    presence_drop(&m->all);
    if (!presence_read(runtime, &m->all))
        return cli_fail(EXIT_FAILED, "no memory for what runs on this machine");
    for (int i = 0; i < clv_runtime_info_get(runtime).n_devices && m->n_devices < MOST_DEVICES; i++) {
        const clv_device_info *info = clv_device_info_get(clv_device_get(runtime, i));
        if (info->usable)
            m->device[m->n_devices++] = (shown_device){
                .name = info->name, .label = info->label, .memory_bytes = info->memory_bytes, .busy = NAN};
    }
    for (int i = 0; i < m->all.n; i++) add_process(m, &m->all.item[i]);
    for (int i = 0; i < m->n_devices; i++) {
        shown_device *device = &m->device[i];
        if (!device->n_trainings && !device->n_commands) device->busy = 0;
        if (device->busy > 1) device->busy = 1; // each counts what it waits for the others
    }
    return EXIT_DONE;
}

/** Is there one that has not told yet what it holds now, and how busy its devices are? It was asked just
 *  now. */
static bool waits_for_times(const machine *m) {
    for (int i = 0; i < m->all.n; i++) {
        const watch_moment *now = &m->all.item[i];
        if (!presence_trains(now) && !now->asked) return true;
        if (presence_trains(now) && now->state == WATCH_RUNS && now->n_devices &&
            !isfinite(now->devices[0].busy))
            return true;
    }
    return false;
}

static json_t *devices_json(const machine *m) {
    json_t *devices = json_array();
    for (int i = 0; i < m->n_devices; i++) {
        const shown_device *device = &m->device[i];
        json_t *processes = json_array();
        for (int k = 0; k < m->all.n; k++)
            for (int d = 0; d < m->all.item[k].n_devices; d++) {
                const watch_device *used = &m->all.item[k].devices[d];
                if (!strcmp(used->name, device->name) && !strcmp(used->label, device->label))
                    json_array_append_new(processes, json_integer((json_int_t)m->all.item[k].process));
            }
        json_array_append_new(devices,
                              json_pack("{s:s, s:s, s:I, s:I, s:o, s:o}", "name", device->name, "label",
                                        device->label, "used_bytes", (json_int_t)device->used_bytes,
                                        "memory_bytes", (json_int_t)device->memory_bytes, "busy",
                                        cli_real(device->busy), "processes", processes));
    }
    return devices;
}

static json_t *command_json(const watch_moment *now) {
    json_t *devices = json_object();
    for (int i = 0; i < now->n_devices; i++) {
        const watch_device *used = &now->devices[i];
        json_object_set_new(devices, used->name,
                            json_pack("{s:I, s:I, s:I, s:o}", "used_bytes", (json_int_t)used->used_bytes,
                                      "peak_bytes", (json_int_t)used->peak_bytes, "memory_bytes",
                                      (json_int_t)used->memory_bytes, "busy", cli_real(used->busy)));
    }
    return json_pack("{s:s, s:I, s:s, s:s, s:o, s:o}", "command", now->command, "process",
                     (json_int_t)now->process, "version", now->version, "model", now->model, "seconds",
                     cli_real(now->seconds), "devices", devices);
}

static int print_json(const machine *m) {
    json_t *trainings = json_array(), *commands = json_array();
    for (int i = 0; i < m->all.n; i++) {
        if (!presence_trains(&m->all.item[i])) {
            json_array_append_new(commands, command_json(&m->all.item[i]));
            continue;
        }
        const watch_reader one = {.now = m->all.item[i]};
        json_t *object = watch_moment_json(&one, 0);
        json_object_del(object, "age_seconds");
        json_object_del(object, "damaged_lines");
        json_object_set_new(object, "log", *one.now.log ? json_string(one.now.log) : json_null());
        json_array_append_new(trainings, object);
    }
    return cli_print_json(json_pack("{s:o, s:o, s:o}", "devices", devices_json(m), "trainings", trainings,
                                    "commands", commands));
}

static void put_count(screen_line *line, int n, const char *what, bool first) {
    if (n) screen_line_add(line, 70, NULL, "%s%d %s%s", first ? "  " : ", ", n, what, n == 1 ? "" : "s");
}

static void put_device(watch_lines *lines, const shown_device *device) {
    screen_line *line = watch_lines_add(lines);
    if (!line) return;
    watch_load(line, device->name, device->used_bytes, device->memory_bytes, device->busy, lines->bars);
    put_count(line, device->n_trainings, "training", true);
    put_count(line, device->n_commands, "command", !device->n_trainings);
    screen_line_add(line, 60, NULL, "  %s", device->label);
}

/** What it is at; then where it is, with what it holds there. */
static void put_process(watch_lines *lines, const watch_moment *now) {
    screen_line *line = watch_lines_add(lines);
    if (!line) return;
    screen_line_add(line, SCREEN_KEEP, NULL, "%-8lld ", (long long)now->process);
    if (presence_trains(now)) {
        watch_training(line, now, lines->bars, false);
    } else {
        char seconds[32];
        screen_line_add(line, SCREEN_KEEP, "\033[1m", "%s", now->command);
        screen_line_add(line, 90, NULL, "%s%s", *now->model ? " " : "", now->model);
        screen_line_add(line, 80, NULL, "  %s", watch_time_text(now->seconds, seconds));
    }
    for (int i = 0; i < now->n_devices && line->n < SCREEN_PIECES - 1; i++)
        screen_line_add(line, 85, NULL, "%s%s on %s", i ? ", " : "  ", cli_bytes(now->devices[i].used_bytes),
                        now->devices[i].name);
    if (*now->log && line->n < SCREEN_PIECES) screen_line_add(line, 15, NULL, "  %s", now->log);
}

static int show(const machine *m, screen_area *area, bool last) {
    watch_lines lines = {.colour = area->colour, .bars = area->terminal};
    for (int i = 0; i < m->n_devices; i++) put_device(&lines, &m->device[i]);
    for (int i = 0; i < m->all.n; i++) put_process(&lines, &m->all.item[i]);
    if (!m->all.n) {
        screen_line *line = watch_lines_add(&lines);
        if (line) screen_line_add(line, SCREEN_KEEP, NULL, "nothing of yours runs here");
    }
    if (last) {
        screen_area_clear(area);
        watch_lines_print(&lines, stdout);
    } else {
        watch_lines_draw(&lines, area);
    }
    free(lines.line);
    return cli_finish_output();
}

static void wait_a_little(void) {
    nanosleep(&(struct timespec){0, REFRESH_MS * 1000000L}, NULL);
}

int cli_top_machine(const cli_args *args) {
    cli_session session;
    machine m = {.session = &session};
    screen_area area;
    cli_start_early(args, false, &session);
    int code = cli_start(&session);
    if (code != EXIT_DONE) return code;
    screen_area_init(&area, stdout, screen_is_terminal(stdout));
    const bool once = args->once || args->json || !area.terminal;
    const volatile int *interrupt = cli_catch_interrupts();
    code = look(&m);
    for (int i = 0; once && i < WAITS && code == EXIT_DONE && !*interrupt && waits_for_times(&m); i++) {
        wait_a_little();
        code = look(&m);
    }
    while (code == EXIT_DONE) {
        const bool last = once || *interrupt;
        code = args->json ? print_json(&m) : show(&m, &area, last);
        if (last || code != EXIT_DONE) break;
        wait_a_little();
        code = look(&m);
    }
    presence_drop(&m.all);
    cli_stop(&session);
    return code;
}
