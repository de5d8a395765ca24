// SPDX-License-Identifier: Apache-2.0
// The start of a command: the runtime and its device, budgets, and interruption by a signal.
#include "cli.h"
#include "options/options.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

// ---- interruption -----------------------------------------------------------------------------------------

static volatile int interrupted; // a signal handler can reach nothing but file scope

static const char *interrupt_words;
static volatile int nothing_done; // so nothing is lost by ending at once

static void say_at_once(const char *words) {
    ssize_t written = write(STDERR_FILENO, words, strlen(words));
    (void)written;
}

static void on_signal(int number) {
    if (interrupted && number == SIGHUP) return; // shell and system each send one when a terminal is lost
    if (interrupted) {
        signal(number, SIG_DFL);
        raise(number);
    }
    if (nothing_done) { // kernels may be built for many seconds yet
        say_at_once("\ncleave: interrupted before the first step was done\n");
        _exit(EXIT_INTERRUPTED);
    }
    interrupted = 1;
    if (interrupt_words) say_at_once(interrupt_words);
}

void cli_nothing_done(bool yes) {
    nothing_done = yes;
}

void cli_answer_interrupts(const char *words) {
    interrupt_words = words;
}

static const int caught[] = {SIGINT, SIGTERM, SIGHUP};
enum { N_CAUGHT = sizeof caught / sizeof *caught };

const volatile int *cli_catch_interrupts(void) {
    const struct sigaction action = {.sa_handler = on_signal};
    for (int i = 0; i < N_CAUGHT; i++) {
        struct sigaction before;
        // Under nohup the loss of a terminal is ignored, and stays so.
        if (caught[i] == SIGHUP && !sigaction(SIGHUP, NULL, &before) && before.sa_handler == SIG_IGN)
            continue;
        sigaction(caught[i], &action, NULL);
    }
    return &interrupted;
}

void cli_release_interrupts(void) {
    for (int i = 0; i < N_CAUGHT; i++) {
        struct sigaction now;
        if (!sigaction(caught[i], NULL, &now) && now.sa_handler == on_signal) signal(caught[i], SIG_DFL);
    }
}

void cli_begin_process(void) {
    for (int file = STDIN_FILENO; file <= STDERR_FILENO; file++)
        if (fcntl(file, F_GETFD) < 0 && errno == EBADF && open("/dev/null", O_RDWR) != file)
            _exit(EXIT_FAILED); // no /dev/null, and nowhere to say so
    signal(SIGXFSZ, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
}

// ---- the runtime ------------------------------------------------------------------------------------------

/** Warnings; and what CLEAVE_DEBUG asks for, which nothing hides. */
static void on_log(void *user, clv_log_level level, const char *sentence) {
    cli_session *session = user;
    if (level == CLV_LOG_INFO || (level == CLV_LOG_WARNING && session->args->quiet)) return;
    cli_progress_clear(&session->progress);
    screen_say(stderr, "cleave: %s", cli_option_words(sentence));
}

static void on_build(void *user, int done, int total) {
    cli_session *session = user;
    char text[64];
    snprintf(text, sizeof text, "%d of %d", done, total);
    cli_progress_draw(&session->progress, "compiling kernels", done, total, text);
    if (done == total) cli_progress_clear(&session->progress);
}

void cli_start_early(const cli_args *args, bool with_device, cli_session *session) {
    *session = (cli_session){.args = args, .with_device = with_device};
    cli_progress_init(&session->progress, args->quiet);
    // Someone who asks for the host alone need not wait for drivers, nor for their faults.
    session->no_opencl =
        args->cards || (with_device && args->device && !strcasecmp(args->device, "host") && !args->budgets.n);
    if (session->no_opencl) return;
    cli_drivers_begin(&session->drivers, args->no_cache);
}

/** Devices that nobody has are listed for those who plan for them. */
static bool names_null(const cli_args *args) {
    const char *const texts[] = {args->device, args->place, args->devices, args->replicas};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (const char *at = texts[i]; at && *at; at++)
            if (!strncasecmp(at, "null", 4)) return true;
    return false;
}

/** This program: it is its own helper (main.c) unless the variable names another, or none. */
static const char *compile_helper(void) {
    static char path[4096];
    if (getenv("CLEAVE_COMPILE_HELPER")) return NULL;
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    path[n > 0 ? n : 0] = 0;
    return path;
}

/** --device-timeout as clv_runtime_config wants it; prints what is wrong with it. */
static int read_timeout(const cli_args *args, double *seconds) {
    const char *text = args->device_timeout;
    *seconds = 0;
    if (!text) return EXIT_DONE;
    if (!strcmp(text, "off")) {
        *seconds = -1;
        return EXIT_DONE;
    }
    char *end;
    *seconds = strtod(text, &end);
    if (*end || end == text || !(*seconds > 0) || *seconds > 1e9)
        return cli_fail(EXIT_USAGE, "--device-timeout wants seconds, or off, not '%.80s'", text);
    return EXIT_DONE;
}

/** For a command that comes out whatever is wrong with the environment. */
static void keep_fault(cli_session *session, const char *sentence) {
    enum { N = sizeof session->faults / sizeof *session->faults };
    int i = 0;
    while (i < N && *session->faults[i]) i++;
    if (i < N) snprintf(session->faults[i], sizeof session->faults[i], "%s", sentence);
    if (!session->args->quiet) screen_say(stderr, "cleave: %s", sentence);
}

int cli_start(cli_session *session) {
    const cli_args *args = session->args;
    if (!session->no_opencl) cli_drivers_wait(&session->drivers);
    double timeout;
    int read = read_timeout(args, &timeout);
    if (read != EXIT_DONE) return read;
    clv_runtime_config config = {
        .device_timeout = timeout,
        .float32_products = args->float32_products ? (clv_float32_products)option_choice(
                                                         "highest|high|medium", args->float32_products)
                                                   : 0,
        .no_cache = args->no_cache,
        .no_opencl = session->no_opencl,
        // What is tuned starts again: nothing is chosen, and no variant avoided, because of an earlier file.
        .tuning = args->command == CLI_TUNE ? "none" : args->tuning,
        .null_cards = true, // where null devices are
        .null_devices = args->cards || (args->command == CLI_PLAN && names_null(args)),
        .compile_helper = compile_helper(),
        .log = on_log,
        .log_user = session,
        .build_progress = on_build,
        .build_progress_user = session,
    };
    clv_status status = cli_drivers_create(&session->drivers, args->command_line, &config, &session->runtime);
    if (status != CLV_OK && session->whatever &&
        session->runtime) { // first without what is wrong, then without OpenCL
        keep_fault(session, clv_runtime_error(session->runtime));
        for (int i = 0; i < 2 && status != CLV_OK; i++) {
            clv_runtime_destroy(session->runtime);
            config.visible_devices = config.partition = "";
            config.no_opencl = i > 0;
            status = clv_runtime_create(&config, &session->runtime);
        }
    }
    if (status != CLV_OK) goto failed;
    if (session->whatever && !args->variants && clv_variants_check(session->runtime, NULL) != CLV_OK) {
        keep_fault(session, clv_runtime_error(session->runtime));
        unsetenv("CLEAVE_VARIANTS"); // a runtime reads it when it is made
        clv_runtime_destroy(session->runtime);
        status = clv_runtime_create(&config, &session->runtime);
        if (status != CLV_OK) goto failed;
    }
    if (session->with_device) {
        status = clv_variants_check(session->runtime, args->variants);
        if (status != CLV_OK) goto failed;
        status = clv_device_find(session->runtime, args->device, &session->device);
        if (status != CLV_OK) goto failed;
    }
    for (int i = 0; i < args->budgets.n; i++) {
        clv_device *device;
        status = clv_device_find(session->runtime, args->budgets.item[i].device, &device);
        if (status != CLV_OK) goto failed;
        clv_device_set_budget(device, args->budgets.item[i].bytes);
    }
    if (session->device && !args->place && !args->replicas)
        cli_tell_unused_budgets(session, &session->device, 1);
    // `compare` finds its devices itself; ones that nobody has do no work.
    if ((session->with_device || args->command == CLI_COMPARE) && !config.null_devices)
        cli_presence_begin(session);
    return EXIT_DONE;
failed:;
    // A device that does not exist is a wrong word on the command line; one that fails is a failure.
    int code = status == CLV_E_NOT_FOUND && !config.null_devices && names_null(args)
                   ? cli_fail(EXIT_USAGE, "%s; devices that are not here are for `cleave plan` alone",
                              cli_sentence(session->runtime))
                   : cli_fail_status(session->runtime, status);
    cli_stop(session);
    return status == CLV_E_NOT_FOUND || status == CLV_E_VALUE ? EXIT_USAGE : code;
}

void cli_tell_unused_budgets(const cli_session *session, clv_device *const *used, int n) {
    const cli_args *args = session->args;
    for (int i = 0; i < args->budgets.n && !args->quiet; i++) {
        clv_device *device = NULL;
        clv_status status = clv_device_find(session->runtime, args->budgets.item[i].device, &device);
        bool found = status != CLV_OK; // cli_start has refused it
        for (int k = 0; k < n; k++) found |= used[k] == device;
        if (!found)
            fprintf(stderr, "cleave: --budget %s is for a device that is not used here\n",
                    args->budgets.item[i].device);
    }
}

static bool stuck; // a driver did not answer, and may not let go of the process either

int cli_end(int code) {
    if (!stuck) return code;
    fflush(NULL);
    _exit(code);
}

void cli_stop(cli_session *session) {
    cli_progress_clear(&session->progress);
    cli_presence_end(session);
    stuck |= session->runtime && clv_runtime_info_get(session->runtime).is_stuck;
    clv_runtime_destroy(session->runtime);
    session->runtime = NULL;
    session->device = NULL;
}
