// SPDX-License-Identifier: Apache-2.0
// The process that wants kernels compiled ahead: starts helpers, tells them what to compile, sends them home.
#include "device/ahead.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum {
    MOST_HELPERS = 3,   // each loads the driver's compiler for itself, half a second of work
    FEWEST_KERNELS = 4, // for each helper
    LOADING_MS = 150,   // programs from a cache are there by then
    PATIENCE_MS = 2000, // with a helper that is to end: a kernel takes half a second at most
};

const char clv__welcome_magic[8] = "cleave1";

typedef struct helper {
    pid_t process;
    int socket;
} helper;

typedef struct clv__ahead {
    clv_device *device;
    clv__letter *letters; // each kernel once for each size of groups
    size_t n, n_first;
    helper helpers[MOST_HELPERS];
    int n_helpers;
    pthread_t thread; // starts helpers when loading has taken too long, and hands them the letters
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool told, built; // under the lock
} clv__ahead;

// ---- helpers ------------------------------------------------------------------------------------------------------------

static bool send_all(int socket, const void *data, size_t bytes) {
    for (size_t done = 0; done < bytes;) {
        ssize_t n = send(socket, (const char *)data + done, bytes - done, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false; // it is gone, and does not help
        done += (size_t)n;
    }
    return true;
}

/** Start `command compile-helper` with one end of a socket as its input; the other end, or -1. */
static int start_process(const char *command, pid_t *process) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) return -1;
    char *arguments[] = {(char *)(uintptr_t)command, (char *)(uintptr_t) "compile-helper", NULL};
    posix_spawn_file_actions_t actions;
    bool started = false;
    if (posix_spawn_file_actions_init(&actions) == 0) {
        started = !posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO) &&
                  !posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0) &&
                  !posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0) &&
                  !posix_spawnp(process, command, &actions, NULL, arguments, environ);
        posix_spawn_file_actions_destroy(&actions);
    }
    close(ends[1]);
    if (started) return ends[0];
    close(ends[0]);
    return -1;
}

static bool welcome(const clv__ahead *ahead, int number, int n_helpers) {
    const clv_runtime_config *config = &ahead->device->runtime->config;
    clv__welcome w = {.letter_bytes = sizeof(clv__letter),
                      .n = ahead->n,
                      .n_first = ahead->n_first,
                      .number = number,
                      .n_helpers = n_helpers,
                      .visible_bytes = strlen(config->visible_devices) + 1,
                      .partition_bytes = strlen(config->partition) + 1};
    memcpy(w.magic, clv__welcome_magic, sizeof w.magic);
    snprintf(w.version, sizeof w.version, "%s", CLEAVE_VERSION);
    snprintf(w.device, sizeof w.device, "%s", ahead->device->name);
    int to = ahead->helpers[number].socket;
    return send_all(to, &w, sizeof w) && send_all(to, config->visible_devices, w.visible_bytes) &&
           send_all(to, config->partition, w.partition_bytes);
}

/** As many as there are further processors, and work for. */
static void start_helpers(clv__ahead *ahead) {
    long n = sysconf(_SC_NPROCESSORS_ONLN) - 1;
    if (n > MOST_HELPERS) n = MOST_HELPERS;
    if (n > (long)ahead->n / FEWEST_KERNELS) n = (long)ahead->n / FEWEST_KERNELS;
    clv_runtime *runtime = ahead->device->runtime;
    for (int i = 0; i < n; i++) {
        helper *new = &ahead->helpers[ahead->n_helpers];
        new->socket = start_process(runtime->config.compile_helper, &new->process);
        if (new->socket < 0) break;
        if (!welcome(ahead, ahead->n_helpers++, (int)n)) break;
    }
    pthread_mutex_lock(&runtime->report_lock);
    runtime->report.helpers += ahead->n_helpers;
    pthread_mutex_unlock(&runtime->report_lock);
}

/** Wait for a process that knows by its socket that it should end; one that does not is made to. */
static void see_off(const helper *gone) {
    close(gone->socket);
    for (int waited = 0; waited < PATIENCE_MS; waited++) {
        pid_t ended = waitpid(gone->process, NULL, WNOHANG);
        if (ended == gone->process || (ended < 0 && errno != EINTR)) return;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    kill(gone->process, SIGKILL);
    while (waitpid(gone->process, NULL, 0) < 0 && errno == EINTR)
        ;
}

// ---- when ---------------------------------------------------------------------------------------------------------------

/** Wait until it is told whether the programs are built, at most `milliseconds` (0: for as long as it takes). */
static bool await_told(clv__ahead *ahead, long milliseconds) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += milliseconds % 1000 * 1000000;
    until.tv_sec += milliseconds / 1000 + until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    bool late = false;
    pthread_mutex_lock(&ahead->lock);
    while (!ahead->told && !late) {
        if (milliseconds)
            late = pthread_cond_timedwait(&ahead->changed, &ahead->lock, &until) == ETIMEDOUT;
        else
            pthread_cond_wait(&ahead->changed, &ahead->lock);
    }
    bool told = ahead->told;
    pthread_mutex_unlock(&ahead->lock);
    return told;
}

static void *help(void *context) {
    clv__ahead *ahead = context;
    if (await_told(ahead, LOADING_MS)) return NULL; // programs came from a cache, and so will the kernels
    start_helpers(ahead);
    await_told(ahead, 0);
    for (int i = 0; i < ahead->n_helpers && ahead->built; i++)
        send_all(ahead->helpers[i].socket, ahead->letters, ahead->n * sizeof *ahead->letters);
    return NULL;
}

// ---- what ---------------------------------------------------------------------------------------------------------------

static bool same_kernel(const clv__launch *a, const clv__launch *b) {
    return !strcmp(a->source, b->source) && !strcmp(a->entry, b->entry) && !strcmp(a->defines, b->defines) &&
           a->grid.dims == b->grid.dims && !memcmp(a->grid.local, b->grid.local, sizeof a->grid.local);
}

static bool has_letter(const clv__ahead *ahead, const clv__launch *launch) {
    for (size_t i = 0; i < ahead->n; i++) {
        if (same_kernel(&ahead->letters[i].launch, launch)) return true;
    }
    return false;
}

/** Each kernel once, in order: of these a helper assembles the same programs as this process does of all launches. */
static bool write_letters(clv__ahead *ahead, const clv__launch *const *launches, size_t n, size_t n_first) {
    ahead->letters = clv__alloc(n, sizeof *ahead->letters);
    if (!ahead->letters) return false;
    for (size_t i = 0; i < n; i++) {
        if (i == n_first) ahead->n_first = ahead->n;
        if (launches[i]->kind != CLV__LAUNCH_KERNEL || has_letter(ahead, launches[i])) continue;
        clv__letter *letter = &ahead->letters[ahead->n++];
        letter->launch = *launches[i];
        if ((size_t)snprintf(letter->source, sizeof letter->source, "%s", launches[i]->source) >=
                sizeof letter->source ||
            (size_t)snprintf(letter->entry, sizeof letter->entry, "%s", launches[i]->entry) >=
                sizeof letter->entry)
            return false;
    }
    if (n_first >= n) ahead->n_first = ahead->n;
    return ahead->n >= FEWEST_KERNELS;
}

static void destroy(clv__ahead *ahead) {
    for (int i = 0; i < ahead->n_helpers; i++) see_off(&ahead->helpers[i]);
    pthread_cond_destroy(&ahead->changed);
    pthread_mutex_destroy(&ahead->lock);
    free(ahead->letters);
    free(ahead);
}

void clv__ahead_begin(clv_device *device, const clv__launch *const *launches, size_t n, size_t n_first) {
    const char *command = device->runtime->config.compile_helper;
    if (!*command || !device->traits.compiles_at_launch || device->programs) return;
    clv__ahead *ahead = clv__alloc(1, sizeof *ahead);
    if (!ahead) return;
    ahead->device = device;
    pthread_mutex_init(&ahead->lock, NULL);
    pthread_cond_init(&ahead->changed, NULL);
    if (write_letters(ahead, launches, n, n_first) && pthread_create(&ahead->thread, NULL, help, ahead) == 0)
        device->ahead = ahead;
    else
        destroy(ahead);
}

void clv__ahead_built(clv_device *device, bool built) {
    clv__ahead *ahead = device->ahead;
    if (!ahead) return;
    pthread_mutex_lock(&ahead->lock);
    if (!ahead->told) ahead->built = built;
    ahead->told = true;
    pthread_cond_broadcast(&ahead->changed);
    pthread_mutex_unlock(&ahead->lock);
}

void clv__ahead_end(clv_device *device) {
    clv__ahead *ahead = device->ahead;
    if (!ahead) return;
    clv__ahead_built(device, false);
    pthread_join(ahead->thread, NULL);
    destroy(ahead);
    device->ahead = NULL;
}
