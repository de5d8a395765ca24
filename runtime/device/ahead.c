// SPDX-License-Identifier: Apache-2.0
// The process that wants kernels compiled ahead: one thread starts helpers, tells them what to compile, and sees them off. It may
// wait for long, in send or poll; who wants to end it shuts the sockets, and no wait outlives that.
#define _GNU_SOURCE // posix_spawn_file_actions_addclosefrom_np
#include "device/ahead.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/processors.h"

extern char **environ;

enum {
    MOST_HELPERS = 3,   // each loads the driver's compiler for itself, half a second of work
    FEWEST_KERNELS = 4, // for each helper
    LOADING_MS = 150,   // programs from a cache are there by then
    PATIENCE_S = 2,     // with helpers that are to end: a kernel takes half a second at most
};

const char clv__welcome_magic[8] = "cleave1";

/** In the environment of helpers (which wants char *, so it is not const): a program that is not made to be one would else ask for helpers in its turn, without end. */
static char is_helper[] = "CLEAVE_IS_HELPER=1";

typedef struct helper {
    pid_t process;
    int socket; // shut, not closed, while the thread may use it
} helper;

struct clv__ahead {
    clv_device *device;
    clv__letter *letters; // each kernel once for each size of groups
    size_t n, n_first;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    // under the lock; what was told is final
    bool told, built, ending;
    helper helpers[MOST_HELPERS];
    int n_helpers;
};

// ---- starting -----------------------------------------------------------------------------------------------------------

/** The environment with is_helper; free it, not its texts. */
static char **helper_environment(void) {
    size_t n = 0;
    while (environ && environ[n]) n++;
    char **copy = clv__alloc(n + 2, sizeof *copy);
    if (!copy) return NULL;
    if (n) memcpy(copy, environ, n * sizeof *copy);
    copy[n] = is_helper;
    return copy;
}

/** Start `command compile-helper` with this socket as its input; 0 or an errno. It is in our process group: an interrupt from
 *  the terminal ends it, and what it compiled until then is kept. */
static int spawn(const char *command, int input, pid_t *process) {
    char *arguments[] = {(char *)(uintptr_t)command, (char *)(uintptr_t) "compile-helper", NULL};
    char **environment = helper_environment();
    posix_spawn_file_actions_t actions;
    int failed = environment ? posix_spawn_file_actions_init(&actions) : ENOMEM;
    if (!failed) {
        failed = posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
        if (!failed)
            failed = posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
        if (!failed) failed = posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
#ifdef __GLIBC_PREREQ // musl has neither this question nor the call
#if __GLIBC_PREREQ(2, 34)
        if (!failed) failed = posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
#endif
#endif
        if (!failed) failed = posix_spawnp(process, command, &actions, NULL, arguments, environment);
        posix_spawn_file_actions_destroy(&actions);
    }
    free(environment);
    return failed;
}

static bool send_all(int socket, const void *data, size_t bytes) {
    for (size_t done = 0; done < bytes;) {
        ssize_t n = send(socket, (const char *)data + done, bytes - done, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false; // it is gone, and does not help
        done += (size_t)n;
    }
    return true;
}

static bool welcome(const clv__ahead *ahead, int socket, int number, int n_helpers) {
    const clv_runtime_config *config = &ahead->device->runtime->config;
    const char *const texts[CLV__WELCOME_TEXTS] = {config->visible_devices, config->partition,
                                                   config->left_out, config->cache_dir};
    clv__welcome w = {.letter_bytes = sizeof(clv__letter),
                      .n = ahead->n,
                      .n_first = ahead->n_first,
                      .number = number,
                      .n_helpers = n_helpers,
                      .no_cache = config->no_cache};
    memcpy(w.magic, clv__welcome_magic, sizeof w.magic);
    snprintf(w.version, sizeof w.version, "%s", CLEAVE_VERSION);
    snprintf(w.device, sizeof w.device, "%s", ahead->device->name);
    for (int i = 0; i < CLV__WELCOME_TEXTS; i++) w.text_bytes[i] = strlen(texts[i]) + 1;
    bool sent = send_all(socket, &w, sizeof w);
    for (int i = 0; i < CLV__WELCOME_TEXTS && sent; i++) sent = send_all(socket, texts[i], w.text_bytes[i]);
    return sent;
}

/** Start a helper and welcome it; false if there will be no more. */
static bool start_helper(clv__ahead *ahead, int n_helpers) {
    clv_runtime *runtime = ahead->device->runtime;
    const char *command = runtime->config.compile_helper;
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) return false;
    helper started = {.socket = ends[0]};
    int failed = spawn(command, ends[1], &started.process);
    close(ends[1]);
    if (failed) {
        close(ends[0]);
        clv__log(runtime, CLV_LOG_WARNING,
                 "the compile helper '%s' cannot be started (%s): kernels are compiled one after another",
                 command, strerror(failed));
        return false;
    }
    pthread_mutex_lock(&ahead->lock);
    bool ending = ahead->ending;
    int number = ahead->n_helpers++;
    ahead->helpers[number] = started;
    if (ending) shutdown(started.socket, SHUT_RDWR);
    pthread_mutex_unlock(&ahead->lock);
    return !ending && welcome(ahead, started.socket, number, n_helpers);
}

/** As many as there are further processors, and work for. */
static void start_helpers(clv__ahead *ahead) {
    long n = clv__processors() - 1;
    if (n > MOST_HELPERS) n = MOST_HELPERS;
    if (n > (long)ahead->n / FEWEST_KERNELS) n = (long)ahead->n / FEWEST_KERNELS;
    for (int i = 0; i < n && start_helper(ahead, (int)n); i++)
        ;
    clv_runtime *runtime = ahead->device->runtime;
    pthread_mutex_lock(&runtime->report_lock);
    runtime->report.helpers += ahead->n_helpers;
    pthread_mutex_unlock(&runtime->report_lock);
}

// ---- ending -------------------------------------------------------------------------------------------------------------

/** Wait for a process that knows by its socket that it should end; at a time, make it. */
static void see_off(const helper *gone, double patience_ends) {
    while (clv__seconds() < patience_ends) {
        pid_t ended = waitpid(gone->process, NULL, WNOHANG);
        if (ended == gone->process || (ended < 0 && errno != EINTR)) return;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    kill(gone->process, SIGKILL);
    while (waitpid(gone->process, NULL, 0) < 0 && errno == EINTR)
        ;
}

/** Tell every helper that it is not wanted any more. Any thread. */
static void shut_all(clv__ahead *ahead) {
    pthread_mutex_lock(&ahead->lock);
    ahead->ending = true;
    for (int i = 0; i < ahead->n_helpers; i++) shutdown(ahead->helpers[i].socket, SHUT_RDWR);
    pthread_cond_broadcast(&ahead->changed);
    pthread_mutex_unlock(&ahead->lock);
}

/** Wait until each helper has shut its end, or somebody this one, and see them off. */
static void await_helpers(clv__ahead *ahead) {
    for (int i = 0; i < ahead->n_helpers; i++) {
        struct pollfd end = {.fd = ahead->helpers[i].socket, .events = POLLIN};
        while (poll(&end, 1, -1) < 0 && errno == EINTR)
            ;
    }
    const double patience_ends = clv__seconds() + PATIENCE_S;
    for (int i = 0; i < ahead->n_helpers; i++) see_off(&ahead->helpers[i], patience_ends);
}

// ---- the thread ---------------------------------------------------------------------------------------------------------

/** Wait until it is told whether the programs are built, or all ends; at most `milliseconds` (0: for as long as it takes). */
static bool await_told(clv__ahead *ahead, long milliseconds) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += milliseconds % 1000 * 1000000;
    until.tv_sec += milliseconds / 1000 + until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    bool late = false;
    pthread_mutex_lock(&ahead->lock);
    while (!ahead->told && !ahead->ending && !late) {
        if (milliseconds)
            late = pthread_cond_timedwait(&ahead->changed, &ahead->lock, &until) == ETIMEDOUT;
        else
            pthread_cond_wait(&ahead->changed, &ahead->lock);
    }
    bool told = ahead->told || ahead->ending;
    pthread_mutex_unlock(&ahead->lock);
    return told;
}

static bool is_built(clv__ahead *ahead) {
    pthread_mutex_lock(&ahead->lock);
    bool built = ahead->built;
    pthread_mutex_unlock(&ahead->lock);
    return built;
}

static void *help(void *context) {
    clv__ahead *ahead = context;
    if (!await_told(ahead, LOADING_MS)) { // else programs came from a cache, and so will the kernels
        start_helpers(ahead);
        await_told(ahead, 0);
        if (!is_built(ahead)) shut_all(ahead);
        for (int i = 0; i < ahead->n_helpers; i++)
            send_all(ahead->helpers[i].socket, ahead->letters, ahead->n * sizeof *ahead->letters);
        await_helpers(ahead);
    }
    free(ahead->letters);
    ahead->letters = NULL;
    return NULL;
}

// ---- asking -------------------------------------------------------------------------------------------------------------

static bool same_kernel(const clv__launch *a, const clv__launch *b) {
    return !strcmp(a->source, b->source) && !strcmp(a->entry, b->entry) && !strcmp(a->defines, b->defines) &&
           a->grid.dims == b->grid.dims && !memcmp(a->grid.local, b->grid.local, sizeof a->grid.local) &&
           clv__grid_is_large(&a->grid) == clv__grid_is_large(&b->grid);
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
    for (int i = 0; i < ahead->n_helpers; i++) close(ahead->helpers[i].socket);
    pthread_cond_destroy(&ahead->changed);
    pthread_mutex_destroy(&ahead->lock);
    free(ahead->letters);
    free(ahead);
}

static clv__ahead *create(clv_device *device, const clv__launch *const *launches, size_t n, size_t n_first) {
    clv__ahead *ahead = clv__alloc(1, sizeof *ahead);
    if (!ahead) return NULL;
    ahead->device = device;
    pthread_mutex_init(&ahead->lock, NULL);
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&ahead->changed, &clock);
    pthread_condattr_destroy(&clock);
    if (write_letters(ahead, launches, n, n_first) && pthread_create(&ahead->thread, NULL, help, ahead) == 0)
        return ahead;
    destroy(ahead);
    return NULL;
}

clv__ahead *clv__ahead_begin(clv_device *device, const clv__launch *const *launches, size_t n,
                             size_t n_first) {
    if (!*device->runtime->config.compile_helper || !device->traits.compiles_at_launch ||
        getenv("CLEAVE_IS_HELPER"))
        return NULL;
    pthread_mutex_lock(&device->open_lock);
    bool first = !device->programs && !device->ahead;
    clv__ahead *ahead = first ? create(device, launches, n, n_first) : NULL;
    if (ahead) device->ahead = ahead;
    pthread_mutex_unlock(&device->open_lock);
    return ahead;
}

void clv__ahead_tell(clv__ahead *ahead, bool built) {
    if (!ahead) return;
    pthread_mutex_lock(&ahead->lock);
    ahead->told = true;
    ahead->built = built;
    pthread_cond_broadcast(&ahead->changed);
    pthread_mutex_unlock(&ahead->lock);
}

void clv__ahead_end(clv_device *device) {
    clv__ahead *ahead = device->ahead;
    if (!ahead) return;
    shut_all(ahead);
    pthread_join(ahead->thread, NULL);
    destroy(ahead);
    device->ahead = NULL;
}
