// SPDX-License-Identifier: Apache-2.0
// The asking side of building first: a helper builds a program before this process does, if the compiler may
// end the process. If the helper crashes or does not answer, the program counts as not built. One helper
// builds until it dies; several build side by side.
#include "device/helpers/internal.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "device/cache.h"
#include "device/helpers/notes.h"

enum {
    MOST_IDLE = 8,
    MOST_LEAVING = 32,
    LONG_SERIES = 4, // builds, SOON_S apart at most: as `cleave check` has them; then a helper stays
    SOON_S = 1,
    READY_S = 60,   // until a driver is loaded and its device open, on a slow and busy machine
    PATIENCE_S = 2, // with helpers that are to end
};

struct clv__isolated {
    pthread_mutex_t lock;
    clv__helper idle[MOST_IDLE], leaving[MOST_LEAVING];
    int n_idle, n_leaving;
    double rested; // when there was nothing to build last
    int series;    // how often there was soon something again
    bool off;      // helpers cannot be had, and that was told
};

// ---- helpers ----------------------------------------------------------------------------------------------

static struct clv__isolated *state_of(clv_device *device) {
    pthread_mutex_lock(&device->runtime->report_lock);
    if (!device->helpers.isolated &&
        (device->helpers.isolated = clv__alloc(1, sizeof *device->helpers.isolated)))
        pthread_mutex_init(&device->helpers.isolated->lock, NULL);
    struct clv__isolated *state = device->helpers.isolated;
    pthread_mutex_unlock(&device->runtime->report_lock);
    return state;
}

/** How long a build may take, on clv__seconds; 0: for ever. */
static double deadline(const clv_device *device, double most) {
    double patience = device->runtime->config.device_timeout;
    if (most > 0 && (patience == 0 || patience > most)) patience = most;
    return patience == 0 ? 0 : clv__seconds() + patience;
}

static void close_helper(const clv__helper *gone, double until) {
    close(gone->socket);
    clv__helper_wait(gone, until);
}

static void give_up(clv_device *device, struct clv__isolated *state, const char *why) {
    pthread_mutex_lock(&state->lock);
    bool told = state->off;
    state->off = true;
    pthread_mutex_unlock(&state->lock);
    if (!told)
        clv__log(device->runtime, CLV_LOG_WARNING,
                 "the compile helper '%s' cannot be used (%s): programs for %s are built in this process, "
                 "which a crash of the compiler would end",
                 device->runtime->config.compile_helper, why, device->name);
}

/** Start a helper that has the device open; false: there is none to be had. */
static bool start(clv_device *device, struct clv__isolated *state, clv__helper *out) {
    int failed = clv__helper_start(device, out);
    if (failed) {
        give_up(device, state, strerror(failed));
        return false;
    }
    const clv__handshake own = {
        .kind = CLV__HELP_ISOLATED, .launch_bytes = sizeof(clv__sent_launch), .n_helpers = 1};
    const double until = deadline(device, READY_S);
    clv__build_reply ready;
    if (clv__helper_handshake(device, out->socket, own) &&
        clv__helper_receive(out->socket, &ready, sizeof ready, until) && ready.status == CLV_OK)
        return true;
    const bool late = until > 0 && clv__seconds() >= until;
    close_helper(out, late ? 0 : clv__seconds() + PATIENCE_S);
    give_up(device, state, late ? "it does not answer" : "it does not open the device");
    return false;
}

static bool take(clv_device *device, struct clv__isolated *state, clv__helper *out) {
    pthread_mutex_lock(&state->lock);
    const bool off = state->off, idle = state->n_idle > 0;
    if (idle) *out = state->idle[--state->n_idle];
    pthread_mutex_unlock(&state->lock);
    return idle || (!off && start(device, state, out));
}

static void keep_idle(struct clv__isolated *state, const clv__helper *helper) {
    pthread_mutex_lock(&state->lock);
    const bool room = state->n_idle < MOST_IDLE;
    if (room) state->idle[state->n_idle++] = *helper;
    pthread_mutex_unlock(&state->lock);
    if (!room) close_helper(helper, clv__seconds() + PATIENCE_S);
}

/** All but so many, without waiting; and see off those that are gone, which would stay as zombies. Under the
 *  lock. */
static void dismiss(struct clv__isolated *state, int but) {
    while (state->n_idle > but) {
        const clv__helper home = state->idle[--state->n_idle];
        close(home.socket);
        if (state->n_leaving < MOST_LEAVING)
            state->leaving[state->n_leaving++] = home;
        else
            clv__helper_wait(&home, clv__seconds() + PATIENCE_S);
    }
    for (int i = state->n_leaving; i-- > 0;) {
        int how;
        if (waitpid(state->leaving[i].process, &how, WNOHANG) != 0)
            state->leaving[i] = state->leaving[--state->n_leaving];
    }
}

void clv__helpers_rest(clv_device *device) {
    struct clv__isolated *state = device->helpers.isolated;
    if (!state) return;
    pthread_mutex_lock(&state->lock);
    const double now = clv__seconds();
    state->series = now - state->rested < SOON_S ? state->series + 1 : 0;
    state->rested = now;
    dismiss(state, state->series >= LONG_SERIES ? 1 : 0);
    pthread_mutex_unlock(&state->lock);
}

static void end_isolated(clv_device *device) {
    struct clv__isolated *state = device->helpers.isolated;
    if (!state) return;
    dismiss(state, 0);
    const double until = clv__seconds() + PATIENCE_S;
    for (int i = 0; i < state->n_leaving; i++) clv__helper_wait(&state->leaving[i], until);
    pthread_mutex_destroy(&state->lock);
    free(state);
    device->helpers.isolated = NULL;
}

void clv__helpers_end(clv_device *device) {
    clv__ahead_end(device);
    end_isolated(device);
}

// ---- one program ------------------------------------------------------------------------------------------

/** Text or binary of a reply, malloc'd with a zero byte behind it; NULL if it does not come. */
static char *receive_bytes(int socket, size_t bytes, double until) {
    char *data = bytes < SIZE_MAX ? malloc(bytes + 1) : NULL;
    if (data) data[bytes] = 0;
    if (data && clv__helper_receive(socket, data, bytes, until)) return data;
    free(data);
    return NULL;
}

/** Send the program and hear how it went; false: the helper is gone, or does not answer. */
static bool ask(int socket, const char *source, bool want_binary, double until, clv_status *status,
                clv__error *error, void **binary, size_t *bytes) {
    const clv__build_request wanted = {.source_bytes = strlen(source) + 1, .want_binary = want_binary};
    clv__build_reply how;
    if (!clv__helper_send(socket, &wanted, sizeof wanted) ||
        !clv__helper_send(socket, source, wanted.source_bytes) ||
        !clv__helper_receive(socket, &how, sizeof how, until))
        return false;
    char *text = receive_bytes(socket, how.text_bytes, until);
    char *data = text && how.binary_bytes ? receive_bytes(socket, how.binary_bytes, until) : NULL;
    const bool whole = text && (data || !how.binary_bytes);
    *status = how.status;
    if (whole && how.status != CLV_OK) clv__error_set(error, how.status, "%s", text);
    if (whole && how.status == CLV_OK) {
        *binary = data;
        *bytes = how.binary_bytes;
        data = NULL;
    }
    free(data);
    free(text);
    return whole;
}

/** A helper is gone in the middle of a program. *tried: that was the compiler's doing, and no interrupt of
 *  ours. */
static clv_status report_death(clv_device *device, const clv__helper *gone, bool late, clv__error *error,
                               bool *tried) {
    char why[100] = "it ended the process";
    int how = clv__helper_wait(gone, late ? 0 : clv__seconds() + PATIENCE_S);
    close(gone->socket);
    int number = how != -1 && WIFSIGNALED(how) ? WTERMSIG(how) : 0;
    if (late)
        snprintf(why, sizeof why, "it did not answer");
    else if (number)
        snprintf(why, sizeof why, "signal %d, %s", number, strsignal(number));
    else if (how != -1 && WIFEXITED(how))
        snprintf(why, sizeof why, "it ended the process, with code %d", WEXITSTATUS(how));
    *tried = late || (number != SIGINT && number != SIGTERM && number != SIGHUP);
    if (!*tried) return CLV_OK;
    if (device->traits.compiler == CLV__COMPILER_SOUND) clv__notes_keep(device, "dies", "1");
    CLV_FAIL(error, CLV_E_BUILD, "the compiler of '%s' crashed in a helper process: %s", device->info.label,
             why);
}

static clv_status build_isolated(clv_device *device, const char *source, bool want_binary, clv__error *error,
                                 bool *tried, void **binary, size_t *bytes) {
    *tried = false;
    *binary = NULL;
    *bytes = 0;
    struct clv__isolated *state = clv__helper_wanted(device) ? state_of(device) : NULL;
    clv__helper helper;
    if (!state || !take(device, state, &helper)) return CLV_OK;
    const double until = deadline(device, 0);
    clv_status status = CLV_OK;
    if (!ask(helper.socket, source, want_binary, until, &status, error, binary, bytes))
        return report_death(device, &helper, until > 0 && clv__seconds() >= until, error, tried);
    keep_idle(state, &helper);
    *tried = status == CLV_OK || status == CLV_E_BUILD; // a helper without memory says nothing of the program
    return *tried ? status : CLV_OK;
}

// ---- what is known of a text, on disk ---------------------------------------------------------------------

/** A text that a helper built, where the driver keeps its programs itself or gives none: it is not tried
 *  again. */
static clv__cache_key proof_key(const clv_device *device, const char *source) {
    return clv__cache_key_of(device, source, "it builds");
}

/** A text that a process builds without a helper: the number of the process. What it leaves behind says that
 *  it died. */
static clv__cache_key mark_key(const clv_device *device, const char *source) {
    return clv__cache_key_of(device, source, "being built");
}

static bool has_proof(const clv_device *device, const char *source) {
    void *proof = NULL;
    size_t bytes = 0;
    bool has = !device->runtime->config.no_cache &&
               clv__cache_read(device, proof_key(device, source), &proof, &bytes);
    free(proof);
    return has;
}

/** Did a process end while it built this? */
static bool left_behind(const clv_device *device, const char *source) {
    void *mark = NULL;
    size_t bytes = 0;
    long process = 0;
    if (!device->runtime->config.no_cache &&
        clv__cache_read(device, mark_key(device, source), &mark, &bytes) && bytes == sizeof process)
        memcpy(&process, mark, sizeof process);
    free(mark);
    return process > 0 && process != (long)getpid() && kill((pid_t)process, 0) != 0 && errno == ESRCH;
}

clv_status clv__helpers_build_here(clv_device *device, const char *source, clv__error *error,
                                   clv__bprogram **out) {
    const bool marks = !device->runtime->config.no_cache && clv__helper_wanted(device) &&
                       device->traits.compiler == CLV__COMPILER_SOUND;
    const long process = (long)getpid();
    if (marks) clv__cache_write(device, mark_key(device, source), &process, sizeof process);
    clv_status status =
        device->backend->program_build(device->open, source, clv__program_options(source), error, out);
    if (marks) clv__cache_remove(device, mark_key(device, source));
    return status;
}

clv_status clv__helpers_build(clv_device *device, const char *source, clv__error *error, clv__built *out) {
    *out = (clv__built){0};
    const bool trusted = clv__compiler_is_trusted(device), dead = trusted && left_behind(device, source);
    if (!clv__helper_wanted(device) || (trusted && !dead) || has_proof(device, source)) return CLV_OK;
    const bool loads =
        device->backend->program_load && device->backend->program_binary && !device->traits.caches_programs;
    bool tried;
    clv_status status = build_isolated(device, source, loads, error, &tried, &out->binary, &out->bytes);
    if (dead && tried) clv__cache_remove(device, mark_key(device, source));
    if (!tried || status != CLV_OK) return status;
    if (out->binary &&
        device->backend->program_load(device->open, out->binary, out->bytes, error, &out->program) != CLV_OK)
        out->program = NULL;
    if (!out->program && !device->runtime->config.no_cache)
        clv__cache_write(device, proof_key(device, source), "1", 1);
    return status;
}
