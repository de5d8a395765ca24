// SPDX-License-Identifier: Apache-2.0
// A driver may end the process that looks at it, or never answer (PoCL aborts without /sys). So a child
// process looks first, and says through a pipe which platform it is at. If it dies, that platform is left out
// of this run, with the reason on the device list, and a new child looks at the others. No child is sent
// where these drivers answered before (known.c), as it takes as long as the look itself.
#define _GNU_SOURCE // pipe2
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROBE_SECONDS = 30, MOST_PLATFORMS = 16 };

enum { NOWHERE = -1, THROUGH = -2 }; // no platform was reached; all were, and none ended the child

/** A platform, as the child tells it: fixed size, so that one write is one message. */
typedef struct place {
    int platform; // or one of these
    char name[60];
} place;

static void tell_parent(void *user, int platform, const char *name) {
    place here = {.platform = platform};
    snprintf(here.name, sizeof here.name, "%s", name);
    ssize_t written = write(*(int *)user, &here, sizeof here);
    (void)written; // a parent that is gone needs no answer
}

static _Noreturn void probe_and_exit(int pipe, const char *left_out) {
    int nowhere =
        open("/dev/null", O_WRONLY); // what a dying driver prints is told by the parent, in its words
    if (nowhere >= 0) dup2(nowhere, STDERR_FILENO), dup2(nowhere, STDOUT_FILENO);
    alarm(PROBE_SECONDS);
    clv_runtime *runtime = NULL;
    clv_runtime_config config = {.visible_devices = "",
                                 .partition = "",
                                 .left_out = left_out,
                                 .before_platform = tell_parent,
                                 .before_platform_user = &pipe};
    clv_status status = clv_runtime_create(&config, &runtime);
    (void)status;                    // the parent will meet the same failure, and report it
    tell_parent(&pipe, THROUGH, ""); // a driver may end the child with a 0 too
    _exit(0);
}

/** Read what the child tells until it is gone: the last platform it was at. */
static place last_place(int pipe) {
    place last = {.platform = NOWHERE}, next;
    // Not to the end of the file: a process that a driver leaves behind may keep that away for ever.
    while (last.platform != THROUGH && read(pipe, &next, sizeof next) == (ssize_t)sizeof next) last = next;
    return last;
}

void cli_probe_begin(cli_probe *probe, const char *left_out) {
    int ends[2];
    *probe = (cli_probe){0};
    if (pipe2(ends, O_CLOEXEC)) return;
    fflush(stdout);
    fflush(stderr);
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        probe_and_exit(ends[1], left_out);
    }
    close(ends[1]);
    if (child > 0)
        *probe = (cli_probe){child, ends[0]};
    else
        close(ends[0]); // no child: then the drivers are trusted
}

/** True if the child came through; else where it was, and the signal that ended it (0: it ended by
 *  itself). */
static bool came_through(cli_probe *probe, place *at, int *signal_number) {
    if (!probe->child) return true;
    int how = 0;
    *at = last_place(probe->pipe);
    while (waitpid(probe->child, &how, 0) < 0 && errno == EINTR)
        ;
    close(probe->pipe);
    *probe = (cli_probe){0};
    *signal_number = WIFSIGNALED(how) ? WTERMSIG(how) : 0;
    return at->platform == THROUGH;
}

void cli_probe_wait(cli_probe *probe, char *left_out, size_t bytes) {
    *left_out = 0;
    place at = {.platform = NOWHERE};
    int signal_number;
    for (int i = 0; i < MOST_PLATFORMS && !came_through(probe, &at, &signal_number); i++) {
        const char *why = signal_number == SIGALRM ? "it did not answer"
                          : signal_number          ? strsignal(signal_number)
                                                   : "it ended the process";
        size_t used = strlen(left_out);
        if (at.platform == NOWHERE) { // in the loader, or while drivers load: nobody can say which one
            snprintf(left_out, bytes, "*=a driver died while it was loaded: %s", why);
            return;
        }
        snprintf(left_out + used, bytes - used, "%s%d=the driver of %s died while it was probed: %s",
                 used ? "\n" : "", at.platform, at.name, why);
        cli_probe_begin(probe, left_out);
    }
}
