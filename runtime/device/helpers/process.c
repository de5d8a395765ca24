// SPDX-License-Identifier: Apache-2.0
// Helper processes: start one, talk to it, wait for its end.
#define _GNU_SOURCE // posix_spawn_file_actions_addclosefrom_np
#include "device/helpers/internal.h"

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

extern char **environ;

const char clv__handshake_magic[8] = "cleave2";

/** In the environment of helpers (which wants char *, so it is not const): a program that is not made to be
 *  one would else ask for helpers in its turn, without end. */
static char is_helper[] = "CLEAVE_IS_HELPER=1";

bool clv__helper_wanted(const clv_device *device) {
    return *device->runtime->config.compile_helper && !getenv("CLEAVE_IS_HELPER");
}

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

/** Start `command compile-helper` with this socket as its input; 0 or an errno. */
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

int clv__helper_start(const clv_device *device, clv__helper *out) {
    int ends[2];
    *out = (clv__helper){.socket = -1};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) return errno;
    int failed = spawn(device->runtime->config.compile_helper, ends[1], &out->process);
    close(ends[1]);
    if (failed)
        close(ends[0]);
    else
        out->socket = ends[0];
    return failed;
}

bool clv__helper_send(int socket, const void *data, size_t bytes) {
    for (size_t done = 0; done < bytes;) {
        ssize_t n = send(socket, (const char *)data + done, bytes - done, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        done += (size_t)n;
    }
    return true;
}

/** Wait until there is something to read, or an end; false: not in time. */
static bool wait_for_data(int socket, double until) {
    struct pollfd look = {.fd = socket, .events = POLLIN};
    for (;;) {
        double left = until - clv__seconds();
        if (left <= 0) return false;
        int ready = poll(&look, 1, left < 1000 ? (int)(left * 1000) + 1 : 1000000);
        if (ready > 0) return true;
        if (ready < 0 && errno != EINTR) return false;
    }
}

bool clv__helper_receive(int socket, void *data, size_t bytes, double until) {
    for (size_t done = 0; done < bytes;) {
        if (until > 0 && !wait_for_data(socket, until)) return false;
        ssize_t n = read(socket, (char *)data + done, bytes - done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        done += (size_t)n;
    }
    return true;
}

bool clv__helper_handshake(const clv_device *device, int socket, clv__handshake own) {
    const clv_runtime_config *config = &device->runtime->config;
    const char *const texts[CLV__HANDSHAKE_TEXTS] = {config->visible_devices, config->partition,
                                                     config->left_out, config->cache_dir};
    own.no_cache = config->no_cache;
    memcpy(own.magic, clv__handshake_magic, sizeof own.magic);
    snprintf(own.version, sizeof own.version, "%s", CLEAVE_VERSION);
    snprintf(own.device, sizeof own.device, "%s", device->name);
    for (int i = 0; i < CLV__HANDSHAKE_TEXTS; i++) own.text_bytes[i] = strlen(texts[i]) + 1;
    bool sent = clv__helper_send(socket, &own, sizeof own);
    for (int i = 0; i < CLV__HANDSHAKE_TEXTS && sent; i++)
        sent = clv__helper_send(socket, texts[i], own.text_bytes[i]);
    return sent;
}

int clv__helper_wait(const clv__helper *gone, double until) {
    int how = -1;
    while (clv__seconds() < until) {
        pid_t ended = waitpid(gone->process, &how, WNOHANG);
        if (ended == gone->process) return how;
        if (ended < 0 && errno != EINTR) return -1;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    kill(gone->process, SIGKILL);
    while (waitpid(gone->process, &how, 0) < 0) {
        if (errno != EINTR) return -1;
    }
    return how;
}
