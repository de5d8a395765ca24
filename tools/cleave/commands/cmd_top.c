// SPDX-License-Identifier: Apache-2.0
// cleave top: look at trainings from another terminal, through their logs; or at the machine (machine.c).
#include "watching/watch.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { REFRESH_MS = 500, SILENT_SECONDS = 5, MOST_LOGS = 16 }; // so many words the command takes

/** Seconds since the log was written to. */
static double age_of(const watch_reader *reader) {
    struct stat what;
    struct timespec now;
    if (fstat(reader->file, &what)) return 0;
    clock_gettime(CLOCK_REALTIME, &now);
    double age =
        (double)(now.tv_sec - what.st_mtim.tv_sec) + (double)(now.tv_nsec - what.st_mtim.tv_nsec) * 1e-9;
    return age > 0 ? age : 0;
}

/** A training that says nothing any more, of a process that is not there, was killed. It may be on another
 *  machine, where numbers of processes mean nothing here: so only after some silence. */
static void look_for_process(watch_reader *reader, double age) {
    pid_t process = (pid_t)reader->now.process;
    if (reader->now.state != WATCH_RUNS || age < SILENT_SECONDS || process <= 0) return;
    if ((kill(process, 0) && errno == ESRCH) || cli_process_started(process) < 0) {
        reader->now.state = WATCH_GONE;
        snprintf(reader->now.sentence, sizeof reader->now.sentence, "process %lld ended without saying why",
                 (long long)process);
    }
}

/** Logs that are looked at together. */
typedef struct logs {
    int n;
    watch_reader *reader;
    double age[MOST_LOGS];
} logs;

static int read_all(logs *all) {
    for (int i = 0; i < all->n; i++) {
        watch_reader *reader = &all->reader[i];
        const int code = watch_reader_poll(reader);
        if (code != EXIT_DONE) return code;
        all->age[i] = age_of(reader);
        look_for_process(reader, all->age[i]);
    }
    return EXIT_DONE;
}

static bool all_over(const logs *all) {
    for (int i = 0; i < all->n; i++)
        if (all->reader[i].now.state <= WATCH_RUNS) return false;
    return true;
}

static int print_json(const logs *all) {
    if (all->n == 1) return cli_print_json(watch_moment_json(&all->reader[0], all->age[0]));
    json_t *list = json_array();
    for (int i = 0; i < all->n; i++) {
        json_t *one = watch_moment_json(&all->reader[i], all->age[i]);
        json_object_set_new(one, "log", json_string(all->reader[i].path));
        json_array_append_new(list, one);
    }
    return cli_print_json(json_pack("{s:o}", "trainings", list));
}

static void show_one(const watch_reader *reader, screen_area *area, bool last) {
    if (!last) {
        watch_draw(area, &reader->now);
        return;
    }
    screen_area_clear(area);
    watch_print(stdout, &reader->now);
}

static void show_several(const logs *all, screen_area *area, bool last) {
    watch_lines lines = {.colour = area->colour, .bars = area->terminal};
    for (int i = 0; i < all->n; i++) watch_lines_training(&lines, all->reader[i].path, &all->reader[i].now);
    if (last) {
        screen_area_clear(area);
        watch_lines_print(&lines, stdout);
    } else {
        watch_lines_draw(&lines, area);
    }
    free(lines.line);
}

static void tell_damage(const watch_reader *reader) {
    if (reader->damaged)
        fprintf(stderr, "cleave: %lld damaged line%s of the log %s skipped\n", (long long)reader->damaged,
                reader->damaged == 1 ? "" : "s", reader->damaged == 1 ? "was" : "were");
}

static int picture(const cli_args *args, screen_area *area, const logs *all, bool last) {
    if (args->json) return print_json(all);
    if (all->n == 1)
        show_one(&all->reader[0], area, last);
    else
        show_several(all, area, last);
    for (int i = 0; i < all->n && last && !args->quiet; i++) tell_damage(&all->reader[i]);
    return cli_finish_output();
}

static int open_all(const cli_args *args, logs *all) {
    int code = EXIT_DONE;
    const int n = args->n_words + args->n_more;
    all->reader = calloc((size_t)n, sizeof *all->reader);
    if (!all->reader) return cli_fail(EXIT_FAILED, "no memory to read %d logs", n);
    while (code == EXIT_DONE && all->n < n) {
        const int i = all->n++;
        code = watch_reader_open(&all->reader[i],
                                 i < args->n_words ? args->words[i] : args->more[i - args->n_words]);
    }
    return code;
}

int cmd_top(const cli_args *args) {
    if (!args->n_words) return cli_top_machine(args);
    logs all = {0};
    screen_area area;
    screen_area_init(&area, stdout, screen_is_terminal(stdout));
    bool once = args->once || args->json || !area.terminal;
    const volatile int *interrupt = cli_catch_interrupts();
    int code = open_all(args, &all);
    bool over = false;
    while (code == EXIT_DONE && !over) {
        code = read_all(&all);
        if (code != EXIT_DONE) break;
        over = once || *interrupt || all_over(&all);
        code = picture(args, &area, &all, over);
        if (!over) nanosleep(&(struct timespec){0, REFRESH_MS * 1000000L}, NULL);
    }
    for (int i = 0; i < all.n; i++) watch_reader_close(&all.reader[i]);
    free(all.reader);
    return code;
}
