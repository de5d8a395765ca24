// SPDX-License-Identifier: Apache-2.0
// cleave top: look at a training from another terminal, through its log.
#include "watch.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { REFRESH_MS = 500, SILENT_SECONDS = 5 };

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
    if (kill(process, 0) && errno == ESRCH) {
        reader->now.state = WATCH_GONE;
        snprintf(reader->now.sentence, sizeof reader->now.sentence, "process %lld ended without a word",
                 (long long)process);
    }
}

static int picture(const cli_args *args, screen_area *area, watch_reader *reader, double age, bool last) {
    if (args->json) return cli_print_json(watch_moment_json(reader, age));
    if (last) {
        screen_area_clear(area);
        watch_print(stdout, &reader->now);
    } else {
        watch_draw(area, &reader->now);
    }
    if (reader->damaged && last && !args->quiet)
        fprintf(stderr, "cleave: %lld damaged line%s of the log %s passed over\n", (long long)reader->damaged,
                reader->damaged == 1 ? "" : "s", reader->damaged == 1 ? "was" : "were");
    return cli_finish_output();
}

int cmd_top(const cli_args *args) {
    if (!args->n_words)
        return cli_fail(EXIT_USAGE, "which log? cleave top FILE, as written by train --log FILE");
    watch_reader reader = {0};
    screen_area area;
    screen_area_init(&area, stdout, screen_is_terminal(stdout));
    bool once = args->once || args->json || !area.terminal;
    const volatile int *interrupt = cli_catch_interrupts();
    int code = watch_reader_open(&reader, args->words[0]);
    bool over = false;
    while (code == EXIT_DONE && !over) {
        code = watch_reader_poll(&reader);
        if (code != EXIT_DONE) break;
        double age = age_of(&reader);
        look_for_process(&reader, age);
        over = once || *interrupt || reader.now.state > WATCH_RUNS;
        code = picture(args, &area, &reader, age, over);
        if (!over) nanosleep(&(struct timespec){0, REFRESH_MS * 1000000L}, NULL);
    }
    watch_reader_close(&reader);
    return code;
}
