// SPDX-License-Identifier: Apache-2.0
// What this process keeps in its file for `cleave top` (presence.c). A thread of every command that works on
// devices tells twice a second what it holds there, while somebody looks. A training tells of itself, after
// its steps, as soon as it is made. Devices are asked for times, which cost something on some drivers, only
// while somebody looks, and not at all by commands that measure.
#include "watching/presence.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TELL_SECONDS 0.5 // between two looks at whether somebody asks, and two writes
enum { MOST_DEVICES = 64 };

struct cli_presence {
    const cli_session *session;
    presence_file file;
    double told; // when a training wrote it last
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock;
    pthread_cond_t changed; // `over`
    bool over;              // the thread has to end
    // of the thread
    watch_moment now;
    double since; // when busy_at was taken
    uint64_t busy_at[MOST_DEVICES], steps_at[MOST_DEVICES];
};

// ---- a command without steps ------------------------------------------------------------------------------

/** Commands that measure, or look for what is wrong, are left alone. */
static bool may_keep_times(const cli_session *session) {
    const cli_command command = session->args->command;
    return command == CLI_EVAL || command == CLI_RUN || command == CLI_GENERATE;
}

/** Of the time since it was taken last; NAN: nobody knows. */
static double busy_part(cli_presence *presence, int i, const clv_device *device, double time) {
    const clv_activity activity = clv_device_activity(device);
    const double busy = (double)(activity.busy_ns - presence->busy_at[i]) * 1e-9,
                 seconds = time - presence->since;
    const bool known = presence->since > 0 && seconds > 0 && activity.steps != presence->steps_at[i];
    presence->busy_at[i] = activity.busy_ns;
    presence->steps_at[i] = activity.steps;
    if (!known) return NAN;
    return busy < seconds ? busy / seconds : 1;
}

static void add_device(watch_moment *now, const clv_device *device, double busy) {
    const clv_device_info *info = clv_device_info_get(device);
    const clv_memory_info memory = clv_device_memory(device);
    if (now->n_devices == WATCH_DEVICES) return;
    watch_device *shown = &now->devices[now->n_devices++];
    *shown = (watch_device){.used_bytes = memory.all.current,
                            .peak_bytes = memory.all.peak,
                            .memory_bytes = info->memory_bytes,
                            .budget_bytes = memory.budget,
                            .busy = busy,
                            .share = NAN,
                            .images_per_second = NAN,
                            .layers = -1};
    snprintf(shown->name, sizeof shown->name, "%s", info->name);
    snprintf(shown->label, sizeof shown->label, "%s", info->label);
}

/** Devices that hold something; and the one of --device, where nothing is placed elsewhere. */
static void take(cli_presence *presence, bool keep_times) {
    const cli_session *session = presence->session;
    const bool placed = session->args->place || session->args->replicas;
    const double time = cli_seconds();
    presence->now.seconds = time;
    presence->now.n_devices = 0;
    for (int i = 0; i < clv_runtime_info_get(session->runtime).n_devices && i < MOST_DEVICES; i++) {
        clv_device *device = clv_device_get(session->runtime, i);
        const double busy = busy_part(presence, i, device, time);
        if (!clv_device_memory(device).all.current && (placed || device != session->device)) continue;
        add_device(&presence->now, device, busy);
        if (keep_times && clv_device_activity_start(device) != CLV_OK)
            keep_times = false; // then nobody knows; the command will say what is wrong
    }
    presence->since = time;
}

/** False: the thread has to end. */
static bool wait_a_little(cli_presence *presence) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += (long)(TELL_SECONDS * 1e9);
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    pthread_mutex_lock(&presence->lock);
    while (!presence->over && !pthread_cond_timedwait(&presence->changed, &presence->lock, &until)) {
    }
    const bool over = presence->over;
    pthread_mutex_unlock(&presence->lock);
    return !over;
}

static void *tell(void *user) {
    cli_presence *presence = user;
    bool before = false; // somebody looked the last time
    while (wait_a_little(presence)) {
        const bool asked = presence_is_asked(&presence->file);
        if (asked || before) {
            presence->now.asked = asked && before; // times are of the last half second then
            take(presence, asked && may_keep_times(presence->session));
            presence_write(&presence->file, &presence->now);
        }
        before = asked;
    }
    return NULL;
}

/** Signals are for the command. */
static void start_thread(cli_presence *presence) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    presence->has_thread = !pthread_create(&presence->thread, NULL, tell, presence);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void end_thread(cli_presence *presence) {
    pthread_mutex_lock(&presence->lock);
    presence->over = true;
    pthread_cond_signal(&presence->changed);
    pthread_mutex_unlock(&presence->lock);
    if (presence->has_thread) pthread_join(presence->thread, NULL);
    presence->has_thread = false;
}

static const char *command_name(cli_command command) {
    static const char *const names[] = {
#define X(id, name, ...) name,
#include "commands.def"
#undef X
    };
    return names[command];
}

void cli_presence_begin(cli_session *session) {
    const cli_args *args = session->args;
    cli_presence *presence = args->no_cache ? NULL : calloc(1, sizeof *presence);
    if (!presence || !presence_open(&presence->file, session->runtime)) {
        free(presence);
        return;
    }
    watch_moment *now = &presence->now;
    *now = (watch_moment){.process = getpid(), .started = cli_process_started(getpid())};
    now->loss = now->images_per_second = now->left_seconds = now->test_loss = now->test_accuracy = NAN;
    snprintf(now->version, sizeof now->version, "%s", clv_version());
    snprintf(now->command, sizeof now->command, "%s", command_name(args->command));
    if (args->model) snprintf(now->model, sizeof now->model, "%s", args->model);
    presence->session = session;
    pthread_mutex_init(&presence->lock, NULL);
    pthread_cond_init(&presence->changed, NULL);
    take(presence, false);
    presence_write(&presence->file, now);
    start_thread(presence);
    session->presence = presence;
}

void cli_presence_end(cli_session *session) {
    cli_presence *presence = session->presence;
    if (!presence) return;
    session->presence = NULL;
    const bool stuck = clv_runtime_info_get(session->runtime).is_stuck; // the thread may be in the driver too
    if (!stuck) end_thread(presence);
    presence_close(&presence->file);
    if (stuck) return;
    pthread_cond_destroy(&presence->changed);
    pthread_mutex_destroy(&presence->lock);
    free(presence);
}

// ---- a training -------------------------------------------------------------------------------------------

void presence_take_over(cli_presence *presence, watch_moment *now, const char *log) {
    if (!presence) return;
    end_thread(presence);
    now->started = presence->now.started;
    memcpy(now->command, presence->now.command, sizeof now->command);
    if (!log || !realpath(log, now->log)) *now->log = 0;
    presence_write(&presence->file, now);
}

bool presence_tell(cli_presence *presence, watch_moment *now, double time) {
    if (!presence || (presence->told > 0 && time - presence->told < TELL_SECONDS)) return false;
    presence->told = time;
    now->asked = presence_is_asked(&presence->file);
    presence_write(&presence->file, now);
    return now->asked;
}
