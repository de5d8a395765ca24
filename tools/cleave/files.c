// SPDX-License-Identifier: Apache-2.0
// Files that a command writes: a trial of each before the work, so that its end does not fail; whole files.
// Which of them would take the place of another, or of what is read, is looked at in same_files.c.
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"

// ---- one file ---------------------------------------------------------------------------------------------

bool cli_private_folder(const char *path) {
    char at[4096];
    struct stat is;
    if ((size_t)snprintf(at, sizeof at, "%s", path) >= sizeof at) return false;
    for (char *slash = at + 1; *slash; slash++) { // what cannot be made shows below
        if (*slash != '/') continue;
        *slash = 0;
        mkdir(at, 0700);
        *slash = '/';
    }
    mkdir(at, 0700);
    return stat(at, &is) == 0 && S_ISDIR(is.st_mode) && is.st_uid == geteuid() &&
           !(is.st_mode & (S_IWGRP | S_IWOTH));
}

bool cli_is_pipe(const char *path) {
    struct stat what;
    return path && stat(path, &what) == 0 && S_ISFIFO(what.st_mode);
}

int cli_open_pipe(const char *path, const char *what) {
    enum { TRIES = 100, WAIT_MS = 20 }; // its reader may be about to start
    int file = -1;
    for (int i = 0; i < TRIES && (file = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC)) < 0; i++) {
        if (errno != ENXIO) break;
        nanosleep(&(struct timespec){0, WAIT_MS * 1000000L}, NULL);
    }
    if (file < 0 && errno == ENXIO)
        cli_fail(EXIT_FAILED, "%s '%s' is a pipe that nobody reads; start its reader first", what, path);
    else if (file < 0)
        cli_fail(EXIT_FAILED, "%s '%s' cannot be opened: %s", what, path, strerror(errno));
    else
        fcntl(file, F_SETFL, fcntl(file, F_GETFL) & ~O_NONBLOCK);
    return file;
}

/** Call with a runtime that has no devices, for its sentence. */
static int without_devices(clv_status (*call)(clv_runtime *, const void *), const void *what) {
    clv_runtime *runtime = NULL;
    const clv_runtime_config config = {.no_opencl = true, .visible_devices = "", .partition = ""};
    clv_status status = clv_runtime_create(&config, &runtime);
    if (status == CLV_OK) status = call(runtime, what);
    const int code = status == CLV_OK ? EXIT_DONE : cli_fail_status(runtime, status);
    clv_runtime_destroy(runtime);
    return code;
}

typedef struct target {
    const char *path;
    bool keep_previous;
} target;

static clv_status check(clv_runtime *runtime, const void *what) {
    const target *file = what;
    return clv_file_check(runtime, file->path, file->keep_previous);
}

bool cli_is_stdout(const char *path) {
    return path && !strcmp(path, "-");
}

static int check_target(const char *path, bool keep_previous) {
    if (!path) return EXIT_DONE;
    if (cli_is_stdout(path))
        return cli_fail(
            EXIT_USAGE,
            "'-' is stdout, where only the --output of run and report goes; './-' is a file of that name");
    if (cli_is_pipe(path)) // held open to the end of the process: its reader would take a close for the end
        return cli_open_pipe(path, "the file to write") < 0 ? EXIT_FAILED : EXIT_DONE;
    return without_devices(check, &(target){path, keep_previous});
}

int cli_check_target(const char *path) {
    return check_target(path, false);
}

int cli_check_kept(const char *path) {
    return check_target(path, true);
}

int cli_check_output(const cli_args *args, const char *path) {
    if (!cli_is_stdout(path)) return cli_check_target(path);
    return args->json ? cli_fail(EXIT_USAGE, "--output - and --json are both for stdout: choose one")
                      : EXIT_DONE;
}

typedef struct whole_file {
    const char *path, *text;
    size_t n;
} whole_file;

static clv_status write_file(clv_runtime *runtime, const void *what) {
    const whole_file *file = what;
    return clv_file_write(runtime, file->path, file->text, file->n);
}

int cli_write_whole(const char *path, const char *text, size_t n) {
    if (cli_is_stdout(path)) return fwrite(text, 1, n, stdout), cli_finish_output();
    return without_devices(write_file, &(whole_file){path, text, n});
}

// ---- stdout in the place of a file ------------------------------------------------------------------------

/** All that comes out of the pipe goes to stdout; once that fails, nowhere, so that its writer ends. */
static void *empty_pipe(void *user) {
    cli_outlet *outlet = user;
    char bytes[1 << 16];
    for (ssize_t n; (n = read(outlet->from, bytes, sizeof bytes)) != 0;) {
        if (n < 0 && errno != EINTR) break;
        if (outlet->kept && fwrite(bytes, 1, (size_t)n, outlet->kept) != (size_t)n) outlet->error = ENOMEM;
        for (ssize_t at = outlet->kept ? n : 0, put; at < n && !outlet->error; at += put > 0 ? put : 0)
            if ((put = write(fileno(stdout), bytes + at, (size_t)(n - at))) < 0 && errno != EINTR)
                outlet->error = errno;
    }
    return NULL;
}

int cli_outlet_begin(const char **path, cli_outlet *outlet) {
    *outlet = (cli_outlet){.from = -1};
    return cli_is_stdout(*path) ? cli_outlet_keep(path, NULL, outlet) : EXIT_DONE;
}

int cli_outlet_keep(const char **path, FILE *kept, cli_outlet *outlet) {
    int ends[2];
    *outlet = (cli_outlet){.from = -1, .kept = kept};
    if (pipe(ends) != 0) return cli_fail(EXIT_FAILED, "no pipe to stdout: %s", strerror(errno));
    outlet->from = ends[0];
    outlet->to = ends[1];
    if (pthread_create(&outlet->thread, NULL, empty_pipe, outlet) != 0) {
        close(ends[0]);
        close(ends[1]);
        outlet->from = -1;
        return cli_fail(EXIT_FAILED, "no thread that writes to stdout");
    }
    snprintf(outlet->path, sizeof outlet->path, "/dev/fd/%d", outlet->to);
    *path = outlet->path;
    return EXIT_DONE;
}

int cli_outlet_end(cli_outlet *outlet) {
    if (outlet->from < 0) return EXIT_DONE;
    close(outlet->to);
    pthread_join(outlet->thread, NULL);
    close(outlet->from);
    outlet->from = -1;
    if (outlet->error == EPIPE) return EXIT_NO_READER;
    return outlet->error ? cli_fail(EXIT_FAILED, "stdout could not be written: %s", strerror(outlet->error))
                         : EXIT_DONE;
}

// ---- those of a training -------------------------------------------------------------------------------

int cli_check_train_files(const cli_args *args) {
    const char *const written[] = {args->save, args->save_best, args->dump_gradients, args->trace};
    int code = cli_is_stdout(args->tensorboard) ? check_target(args->tensorboard, false) : EXIT_DONE;
    for (size_t i = 0; code == EXIT_DONE && i < sizeof written / sizeof *written; i++)
        code = check_target(written[i], false);
    if (code == EXIT_DONE) code = check_target(args->checkpoint, true);
    // A log is opened before the first step, and says so itself.
    return code == EXIT_DONE && cli_is_stdout(args->log) ? check_target(args->log, false) : code;
}
