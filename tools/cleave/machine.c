// SPDX-License-Identifier: Apache-2.0
// cleave top without a log: every device of this machine, what trainings of this user hold there and how busy
// they keep it, and these trainings. OpenCL does not tell what other programs hold.
#include "presence.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { REFRESH_MS = 500, MOST_DEVICES = 64, WAITS = 5 };

/** A device as the machine has it, or as a training names it that sees others. */
typedef struct shown_device {
    const char *name, *label;
    uint64_t used_bytes, memory_bytes;
    double busy; // the sum over trainings; NAN: nobody knows
    int n_trainings;
} shown_device;

typedef struct machine {
    cli_session *session;
    presence_list trainings;
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

static void add_training(machine *m, const watch_moment *now) {
    for (int i = 0; i < now->n_devices; i++) {
        const watch_device *used = &now->devices[i];
        shown_device *device = find(m, used->name, used->label);
        if (!device) continue;
        device->used_bytes += used->used_bytes;
        if (!device->memory_bytes) device->memory_bytes = used->memory_bytes;
        if (isfinite(used->busy)) device->busy = (isfinite(device->busy) ? device->busy : 0) + used->busy;
        device->n_trainings++;
    }
}

/** Prints what fails. */
static int look(machine *m) {
    clv_runtime *runtime = m->session->runtime;
    m->n_devices = 0;
    presence_drop(&m->trainings);
    if (!presence_read(runtime, &m->trainings))
        return cli_fail(EXIT_FAILED, "no memory for what runs on this machine");
    for (int i = 0; i < clv_device_count(runtime) && m->n_devices < MOST_DEVICES; i++) {
        const clv_device_info *info = clv_device_info_get(clv_device_get(runtime, i));
        if (info->usable)
            m->device[m->n_devices++] = (shown_device){
                .name = info->name, .label = info->label, .memory_bytes = info->memory_bytes, .busy = NAN};
    }
    for (int i = 0; i < m->trainings.n; i++) add_training(m, &m->trainings.item[i]);
    for (int i = 0; i < m->n_devices; i++) {
        shown_device *device = &m->device[i];
        if (!device->n_trainings) device->busy = 0;
        if (device->busy > 1) device->busy = 1; // each counts what it waits for the others
    }
    return EXIT_DONE;
}

/** Is there a training that computes and has not told yet how busy its devices are? It was asked just now. */
static bool waits_for_times(const machine *m) {
    for (int i = 0; i < m->trainings.n; i++) {
        const watch_moment *now = &m->trainings.item[i];
        if (now->state == WATCH_RUNS && now->n_devices && !isfinite(now->devices[0].busy)) return true;
    }
    return false;
}

static json_t *devices_json(const machine *m) {
    json_t *devices = json_array();
    for (int i = 0; i < m->n_devices; i++) {
        const shown_device *device = &m->device[i];
        json_t *processes = json_array();
        for (int k = 0; k < m->trainings.n; k++)
            for (int d = 0; d < m->trainings.item[k].n_devices; d++) {
                const watch_device *used = &m->trainings.item[k].devices[d];
                if (!strcmp(used->name, device->name) && !strcmp(used->label, device->label))
                    json_array_append_new(processes, json_integer((json_int_t)m->trainings.item[k].process));
            }
        json_array_append_new(devices,
                              json_pack("{s:s, s:s, s:I, s:I, s:o, s:o}", "name", device->name, "label",
                                        device->label, "used_bytes", (json_int_t)device->used_bytes,
                                        "memory_bytes", (json_int_t)device->memory_bytes, "busy",
                                        cli_real(device->busy), "processes", processes));
    }
    return devices;
}

static int print_json(const machine *m) {
    json_t *trainings = json_array();
    for (int i = 0; i < m->trainings.n; i++) {
        const watch_reader one = {.now = m->trainings.item[i]};
        json_t *object = watch_moment_json(&one, 0);
        json_object_del(object, "age_seconds");
        json_object_del(object, "damaged_lines");
        json_object_set_new(object, "log", *one.now.log ? json_string(one.now.log) : json_null());
        json_array_append_new(trainings, object);
    }
    return cli_print_json(json_pack("{s:o, s:o}", "devices", devices_json(m), "trainings", trainings));
}

static void put_device(watch_lines *lines, const shown_device *device) {
    screen_line *line = watch_lines_add(lines);
    if (!line) return;
    watch_load(line, device->name, device->used_bytes, device->memory_bytes, device->busy, lines->bars);
    if (device->n_trainings)
        screen_line_add(line, 70, NULL, "  %d training%s", device->n_trainings,
                        device->n_trainings == 1 ? "" : "s");
    screen_line_add(line, 60, NULL, "  %s", device->label);
}

/** Where it is, with what it holds there; then what it is at. */
static void put_training(watch_lines *lines, const watch_moment *now) {
    screen_line *line = watch_lines_add(lines);
    if (!line) return;
    screen_line_add(line, SCREEN_KEEP, NULL, "%-8lld ", (long long)now->process);
    watch_training(line, now, lines->bars, false);
    for (int i = 0; i < now->n_devices && line->n < SCREEN_PIECES - 1; i++)
        screen_line_add(line, 85, NULL, "%s%s on %s", i ? ", " : "  ", cli_bytes(now->devices[i].used_bytes),
                        now->devices[i].name);
    if (*now->log && line->n < SCREEN_PIECES) screen_line_add(line, 15, NULL, "  %s", now->log);
}

static int show(const machine *m, screen_area *area, bool last) {
    watch_lines lines = {.colour = area->colour, .bars = area->terminal};
    for (int i = 0; i < m->n_devices; i++) put_device(&lines, &m->device[i]);
    for (int i = 0; i < m->trainings.n; i++) put_training(&lines, &m->trainings.item[i]);
    if (!m->trainings.n) {
        screen_line *line = watch_lines_add(&lines);
        if (line) screen_line_add(line, SCREEN_KEEP, NULL, "no training of yours runs here");
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
    presence_drop(&m.trainings);
    cli_stop(&session);
    return code;
}
