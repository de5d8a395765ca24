// SPDX-License-Identifier: Apache-2.0
// Trying programs in helpers: who asks, and at the end who is asked. See trial.h.
#include "device/trial.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "device/ahead.h"
#include "device/notes.h"
#include "device/program.h"
#include "device/select.h"

enum {
    MOST_IDLE = 8,
    MOST_LEAVING = 32,
    LONG_SERIES = 4, // builds, SOON_S apart at most: as `cleave check` has them; then a helper stays
    SOON_S = 1,
    READY_S = 60,         // until a driver is loaded and its device open, on a slow and busy machine
    PATIENCE_S = 2,       // with helpers that are to end
    MOST_SOURCE = 1 << 28 // bytes of a program that is believed
};

typedef struct request {
    size_t source_bytes; // with its zero byte
    bool want_binary;
} request;

typedef struct reply {
    clv_status status;
    size_t text_bytes, binary_bytes;
} reply;

struct clv__trial {
    pthread_mutex_t lock;
    clv__helper idle[MOST_IDLE], leaving[MOST_LEAVING];
    int n_idle, n_leaving;
    double rested; // when there was nothing to build last
    int series;    // how often there was soon something again
    bool off;      // helpers cannot be had, and that was told
};

bool clv__compiler_is_trusted(const clv_device *device) {
    return device->traits.compiler == CLV__NO_COMPILER ||
           (device->traits.compiler == CLV__COMPILER_SOUND && !clv__notes_number(device, "dies"));
}

// ---- helpers ------------------------------------------------------------------------------------------------------------

static struct clv__trial *trial_of(clv_device *device) {
    pthread_mutex_lock(&device->runtime->report_lock);
    if (!device->trial && (device->trial = clv__alloc(1, sizeof *device->trial)))
        pthread_mutex_init(&device->trial->lock, NULL);
    struct clv__trial *trial = device->trial;
    pthread_mutex_unlock(&device->runtime->report_lock);
    return trial;
}

/** How long a build may take, on clv__seconds; 0: for ever. */
static double deadline(const clv_device *device, double most) {
    double patience = device->runtime->config.device_timeout;
    if (most > 0 && (patience == 0 || patience > most)) patience = most;
    return patience == 0 ? 0 : clv__seconds() + patience;
}

static void close_helper(const clv__helper *gone, double until) {
    close(gone->socket);
    clv__helper_see_off(gone, until);
}

static void give_up(clv_device *device, struct clv__trial *trial, const char *why) {
    pthread_mutex_lock(&trial->lock);
    bool told = trial->off;
    trial->off = true;
    pthread_mutex_unlock(&trial->lock);
    if (!told)
        clv__log(
            device->runtime, CLV_LOG_WARNING,
            "the compile helper '%s' cannot be used (%s): programs for %s are built in this process, which a "
            "compiler that dies would end",
            device->runtime->config.compile_helper, why, device->name);
}

/** Start a helper that has the device open; false: there is none to be had. */
static bool start(clv_device *device, struct clv__trial *trial, clv__helper *out) {
    int failed = clv__helper_start(device, out);
    if (failed) {
        give_up(device, trial, strerror(failed));
        return false;
    }
    const clv__welcome own = {.kind = CLV__HELP_TRIAL, .letter_bytes = sizeof(clv__letter), .n_helpers = 1};
    const double until = deadline(device, READY_S);
    reply ready;
    if (clv__helper_welcome(device, out->socket, own) &&
        clv__helper_receive(out->socket, &ready, sizeof ready, until) && ready.status == CLV_OK)
        return true;
    const bool late = until > 0 && clv__seconds() >= until;
    close_helper(out, late ? 0 : clv__seconds() + PATIENCE_S);
    give_up(device, trial, late ? "it does not answer" : "it does not open the device");
    return false;
}

static bool take(clv_device *device, struct clv__trial *trial, clv__helper *out) {
    pthread_mutex_lock(&trial->lock);
    const bool off = trial->off, idle = trial->n_idle > 0;
    if (idle) *out = trial->idle[--trial->n_idle];
    pthread_mutex_unlock(&trial->lock);
    return idle || (!off && start(device, trial, out));
}

static void give_back(struct clv__trial *trial, const clv__helper *helper) {
    pthread_mutex_lock(&trial->lock);
    const bool room = trial->n_idle < MOST_IDLE;
    if (room) trial->idle[trial->n_idle++] = *helper;
    pthread_mutex_unlock(&trial->lock);
    if (!room) close_helper(helper, clv__seconds() + PATIENCE_S);
}

/** All but so many, without waiting; and see off those that are gone, which would stay as zombies. Under the lock. */
static void send_home(struct clv__trial *trial, int but) {
    while (trial->n_idle > but) {
        const clv__helper home = trial->idle[--trial->n_idle];
        close(home.socket);
        if (trial->n_leaving < MOST_LEAVING)
            trial->leaving[trial->n_leaving++] = home;
        else
            clv__helper_see_off(&home, clv__seconds() + PATIENCE_S);
    }
    for (int i = trial->n_leaving; i-- > 0;) {
        int how;
        if (waitpid(trial->leaving[i].process, &how, WNOHANG) != 0)
            trial->leaving[i] = trial->leaving[--trial->n_leaving];
    }
}

void clv__trial_rest(clv_device *device) {
    struct clv__trial *trial = device->trial;
    if (!trial) return;
    pthread_mutex_lock(&trial->lock);
    const double now = clv__seconds();
    trial->series = now - trial->rested < SOON_S ? trial->series + 1 : 0;
    trial->rested = now;
    send_home(trial, trial->series >= LONG_SERIES ? 1 : 0);
    pthread_mutex_unlock(&trial->lock);
}

void clv__trial_end(clv_device *device) {
    struct clv__trial *trial = device->trial;
    if (!trial) return;
    send_home(trial, 0);
    const double until = clv__seconds() + PATIENCE_S;
    for (int i = 0; i < trial->n_leaving; i++) clv__helper_see_off(&trial->leaving[i], until);
    pthread_mutex_destroy(&trial->lock);
    free(trial);
    device->trial = NULL;
}

// ---- who asks -----------------------------------------------------------------------------------------------------------

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
    const request wanted = {.source_bytes = strlen(source) + 1, .want_binary = want_binary};
    reply how;
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

/** A helper is gone in the middle of a program. *tried: that was the compiler's doing, and no interrupt of ours. */
static clv_status tell_death(clv_device *device, const clv__helper *gone, bool late, clv__error *error,
                             bool *tried) {
    char why[100] = "it ended the process";
    int how = clv__helper_see_off(gone, late ? 0 : clv__seconds() + PATIENCE_S);
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
    CLV_FAIL(error, CLV_E_BUILD, "the compiler of '%s' died of it in a helper process: %s",
             device->info.label, why);
}

clv_status clv__trial_build(clv_device *device, const char *source, bool want_binary, clv__error *error,
                            bool *tried, void **binary, size_t *bytes) {
    *tried = false;
    *binary = NULL;
    *bytes = 0;
    struct clv__trial *trial = clv__helper_wanted(device) ? trial_of(device) : NULL;
    clv__helper helper;
    if (!trial || !take(device, trial, &helper)) return CLV_OK;
    const double until = deadline(device, 0);
    clv_status status = CLV_OK;
    if (!ask(helper.socket, source, want_binary, until, &status, error, binary, bytes))
        return tell_death(device, &helper, until > 0 && clv__seconds() >= until, error, tried);
    give_back(trial, &helper);
    *tried = status == CLV_OK || status == CLV_E_BUILD; // a helper without memory says nothing of the program
    return *tried ? status : CLV_OK;
}

// ---- who is asked ---------------------------------------------------------------------------------------------------------

/** Build a program and say how it went; false: nobody wants to know. */
static bool serve_one(clv_device *device, const request *wanted, const char *source, int socket) {
    const clv__backend *backend = device->backend;
    clv__error error;
    clv__bprogram *program = NULL;
    void *binary = NULL;
    size_t bytes = 0;
    clv__error_init(&error);
    clv_status status = backend->program_build(device->open, source, clv__program_options, &error, &program);
    // Asked for even if nobody wants it: some compile no earlier than this.
    if (status == CLV_OK && backend->program_binary &&
        backend->program_binary(program, &binary, &bytes, &error) != CLV_OK)
        binary = NULL;
    const bool sends = binary && wanted->want_binary;
    const char *text = status == CLV_OK ? "" : error.text;
    const reply how = {status, strlen(text), sends ? bytes : 0};
    bool sent = clv__helper_send(socket, &how, sizeof how) &&
                clv__helper_send(socket, text, how.text_bytes) &&
                (!sends || clv__helper_send(socket, binary, bytes));
    backend->program_destroy(program);
    free(binary);
    clv__error_destroy(&error);
    return sent;
}

clv_status clv__trial_serve(clv_device *device, int socket) {
    clv_runtime *runtime = device->runtime;
    if (device->traits.compiler == CLV__NO_COMPILER) return CLV_E_UNSUPPORTED;
    // Not clv__device_open: that builds a program of its own (f16.h), which is asked for like any other.
    CLV_TRY(device->backend->open(clv__backend_state(runtime, device->backend), device->handle,
                                  &runtime->error, &device->open));
    const reply ready = {.status = CLV_OK};
    bool wanted = clv__helper_send(socket, &ready, sizeof ready);
    request next;
    while (wanted && clv__helper_receive(socket, &next, sizeof next, 0)) {
        char *source =
            next.source_bytes && next.source_bytes <= MOST_SOURCE ? malloc(next.source_bytes) : NULL;
        wanted = source && clv__helper_receive(socket, source, next.source_bytes, 0) &&
                 source[next.source_bytes - 1] == 0 && serve_one(device, &next, source, socket);
        free(source);
    }
    return CLV_OK;
}
