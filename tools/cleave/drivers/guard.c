// SPDX-License-Identifier: Apache-2.0
// Making the runtime without a child, where the drivers answered before (known.c). If a driver raises a
// signal, calls exit or does not answer, the process begins again: execve with the same program, arguments
// and process number, as nothing was read or written by then. CLEAVE_PROBE=child makes it send a child first
// this time. Some ends cannot be caught and still end the command: _exit, SIGKILL, and an abort where a
// driver has replaced our handler (LLVM does). The next command then sends a child.
#define _GNU_SOURCE // memfd_create
#include "internal.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { GUARD_SECONDS = 5 };

static const char careful[] = "CLEAVE_PROBE=child";

/** Signals that a dying driver raises, and the one of the timer. */
static const int deadly[] = {SIGSEGV, SIGABRT, SIGBUS, SIGILL, SIGFPE, SIGALRM};
enum { N_DEADLY = sizeof deadly / sizeof *deadly };

/** A signal handler and atexit can reach nothing but file scope. */
static struct guard {
    volatile sig_atomic_t on;
    pid_t process;               // a process that a driver forks may end as it likes
    char **words, **environment; // to start again with
    int real[2];                 // the real stdout and stderr while drivers are at work; -1: untouched
    int told;                    // what is printed meanwhile; -1: not caught
    sigset_t mask;
    struct sigaction action, before[N_DEADLY];
    timer_t timer;
    bool timed;
    stack_t stack_before;
    char stack[32 << 10]; // a driver may have used up the thread's own
} guard;

/** Begin again. Calls only what a signal handler may. Returns if it is not to be, or cannot be done. */
static void begin_anew(void) {
    if (!guard.on || getpid() != guard.process) return;
    guard.on = 0;
    for (int i = 0; i < 2; i++)
        if (guard.real[i] >= 0) dup2(guard.real[i], STDOUT_FILENO + i);
    sigprocmask(SIG_SETMASK, &guard.mask,
                NULL); // a mask outlives execve, and the signal is blocked in its handler
    execve("/proc/self/exe", guard.words, guard.environment);
}

static void on_death(int number) {
    begin_anew();
    signal(number, SIG_DFL); // a driver may have kept our handler, to call it later
    raise(number);
}

/** The word that makes the next process careful, and the environment: of two such words the first counts. */
static char **careful_environment(void) {
    extern char **environ;
    size_t n = 0;
    while (environ && environ[n]) n++;
    char **copy = malloc((n + 2) * sizeof *copy);
    if (!copy) return NULL;
    copy[0] = (char *)(uintptr_t)careful;
    if (n) memcpy(copy + 1, environ, n * sizeof *copy);
    copy[n + 1] = NULL;
    return copy;
}

/** From here on what is printed goes into memory. */
static void catch_output(void) {
    fflush(stdout);
    fflush(stderr);
    if (isatty(STDOUT_FILENO)) setvbuf(stdout, NULL, _IOLBF, 0); // what else the first write would decide
    guard.real[0] = guard.real[1] = -1;
    int memory = memfd_create("drivers", MFD_CLOEXEC);
    guard.told = memory >= 0 ? fcntl(memory, F_DUPFD_CLOEXEC, 3) : -1; // not where a closed output was
    if (memory >= 0) close(memory);
    for (int i = 0; i < 2 && guard.told >= 0; i++) {
        guard.real[i] = fcntl(STDOUT_FILENO + i, F_DUPFD_CLOEXEC, 3);
        if (guard.real[i] >= 0) dup2(guard.told, STDOUT_FILENO + i);
    }
}

/** Give the outputs back, and pass what was printed on to stderr: nothing of it belongs between our
 *  results. */
static void release_output(void) {
    fflush(stdout);
    fflush(stderr);
    for (int i = 0; i < 2; i++) {
        if (guard.real[i] < 0) continue;
        dup2(guard.real[i], STDOUT_FILENO + i);
        close(guard.real[i]);
    }
    if (guard.told < 0) return;
    char text[4096];
    off_t at = 0;
    for (ssize_t n; (n = pread(guard.told, text, sizeof text, at)) > 0; at += n)
        fprintf(stderr, "%.*s", (int)n, text);
    close(guard.told);
}

static void set_timer(void) {
    // Not alarm(): who started us may have set that one, and it outlives execve.
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    const struct itimerspec patience = {.it_value.tv_sec = GUARD_SECONDS};
    guard.timed = timer_create(CLOCK_MONOTONIC, &event, &guard.timer) == 0 &&
                  timer_settime(guard.timer, 0, &patience, NULL) == 0;
}

void cli_guard_begin(char **command_line) {
    guard.words = command_line;
    guard.environment = careful_environment();
    if (!guard.environment || atexit(begin_anew)) return; // then the drivers are trusted
    const stack_t stack = {.ss_sp = guard.stack, .ss_size = sizeof guard.stack};
    sigaltstack(&stack, &guard.stack_before);
    pthread_sigmask(SIG_SETMASK, NULL, &guard.mask);
    guard.action = (struct sigaction){.sa_handler = on_death, .sa_flags = SA_ONSTACK};
    for (int i = 0; i < N_DEADLY; i++) sigaction(deadly[i], &guard.action, &guard.before[i]);
    catch_output();
    guard.process = getpid();
    guard.on = 1;
    set_timer();
}

void cli_guard_renew(void *unused, int platform, const char *name) {
    (void)unused, (void)platform, (void)name;
    for (int i = 0; i < N_DEADLY && guard.on; i++) {
        struct sigaction now;
        if (sigaction(deadly[i], &guard.action, &now) || now.sa_handler == on_death) continue;
        guard.before[i] = now;
    }
}

void cli_guard_end(void) {
    if (!guard.on) return;
    if (guard.timed) timer_delete(guard.timer);
    guard.on = 0;
    for (int i = 0; i < N_DEADLY; i++) { // a driver's own handler stays
        struct sigaction now;
        if (!sigaction(deadly[i], NULL, &now) && now.sa_handler == on_death)
            sigaction(deadly[i], &guard.before[i], NULL);
    }
    sigaltstack(&guard.stack_before, NULL);
    release_output();
    free(guard.environment);
}
