// SPDX-License-Identifier: Apache-2.0
// What the files of the command line share. The library is used through its public headers, and two of base/,
// which make words for people.
#ifndef CLEAVE_CLI_H
#define CLEAVE_CLI_H

#include "drivers/drivers.h"
#include "screen.h"

#include "base/nearest.h"
#include "base/shown.h"
#include <cleave/cleave.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

/** Exit codes, the same for every command; NOT_RUN is of `check` alone: nothing was found wrong, and not
 *  everything was looked at. NO_READER: who read stdout has gone, as `head` does; it is SIGPIPE's code. */
enum {
    EXIT_DONE = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    EXIT_NOT_RUN = 3,
    EXIT_INTERRUPTED = 130,
    EXIT_NO_READER = 141
};

// ---- options.c: options.def made into a parser and help ---------------------------------------------------

typedef enum cli_command {
#define X(id, ...) CLI_##id,
#include "commands.def"
#undef X
    CLI_COMMANDS,
#ifdef CLEAVE_INFERENCE // names for what is not there, for the tables
#define X(...)
#define T(id, ...) CLI_##id,
#include "commands.def"
#undef X
#endif
} cli_command;

enum { CLI_MAX_BUDGETS = 16, CLI_MAX_WORDS = 2, CLI_MAX_TEXTS = 512 };

typedef struct cli_budget {
    char device[64];
    uint64_t bytes;
} cli_budget;

typedef struct cli_budgets {
    int n;
    cli_budget item[CLI_MAX_BUDGETS];
} cli_budgets;

typedef struct cli_texts {
    int n;
    const char *item[CLI_MAX_TEXTS];
} cli_texts;

/** Everything that was given. Zero or NULL: not given; where zero is a value, see `given`. */
typedef struct cli_args {
    cli_command command;
    int n_words;
    const char *words[CLI_MAX_WORDS]; // what is not an option: dataset, model, `list`
#define CLI_FLAG bool
#define CLI_TEXT const char *
#define CLI_CHOICE const char *
#define CLI_COUNT int64_t
#define CLI_SEED uint64_t
#define CLI_RATE double
#define CLI_NUMBER double
#define CLI_BUDGET cli_budgets
#define CLI_TEXTS cli_texts
#define X(commands, group, name, kind, field, ...) CLI_##kind field;
#include "options/options.def"
#undef X
    struct {
#define X(commands, group, name, kind, field, ...) bool field;
#include "options/options.def"
#undef X
    } given;
    bool help_all;       // --help all
    char **command_line; // all words, as main got them
    const char **more;   // n_more words behind those, of a command that takes any number; to be freed
    int n_more;
    clv_weights_info *told; // what --weights tells (weights.c); NULL: nothing was read
    char *told_by;          // by the file of --lora-weights; NULL: by --weights
    const clv_onnx *onnx;   // the file of --model, if it is one of ONNX; NULL: none was read
} cli_args;

/** Fill args from the words after the command. On a mistake prints the sentence and returns EXIT_USAGE. */
int cli_parse(int argc, char **argv, cli_command command, cli_args *args);
/** A command's help: of one with many options those that matter most, or `all`. */
void cli_help(FILE *out, cli_command command, bool all);
void cli_overview(FILE *out);
/** `trains and runs`, or what this build does. */
extern const char *const cli_what_it_does;
/** --fuse off? */
static inline bool cli_no_fuse(const cli_args *args) {
    return args->fuse && !strcmp(args->fuse, "off");
}
/** The command of that name, CLI_COMMANDS if there is none. */
cli_command cli_command_find(const char *name);
/** Say that there is none, and which is near; EXIT_USAGE. */
int cli_unknown_command(const char *name);
/** `512MiB`, `2GB`, `1048576` into bytes; false if it is none of these, or too large. */
bool cli_parse_bytes(const char *text, uint64_t *bytes);
/** Is the dataset of this kind, as it is named: "csv", "arrays", "images" or "text"? */
bool cli_data_is(const cli_args *args, const char *kind);
/** `MxNxK` into three numbers of at least 1; false if it is none of that. */
bool cli_parse_size(const char *text, int64_t size[3]);
/** The manual page of a command, or of CLI_COMMANDS the one of all; the page docs/command-line.md. */
void cli_manual(FILE *out, cli_command command);
void cli_markdown(FILE *out);
/** The script that makes a shell ask; what it asks: the words that could stand for the last of these. Both
 *  return an exit code. */
int cli_completion(FILE *out, const char *shell);
int cli_complete(int n_words, char **words);

// ---- report.c: what a person or a script reads ------------------------------------------------------------

/** printf for everything that people read: no control characters get out of texts, and names ('%s') are short
 *  on stderr. Other files take what they are given. */
int cli_fprintf(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define fprintf(...) cli_fprintf(__VA_ARGS__)
#define printf(...) cli_fprintf(stdout, __VA_ARGS__)
/** Print `cleave: sentence` to stderr and return `code`. */
int cli_fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
/** From here on such sentences are kept: of several processes that meet one mistake one tells it. */
void cli_hold_failures(void);
/** What is kept, which may be changed: empty, nothing failed; NULL: nothing is kept any more. */
char *cli_held(void);
/** Print what was kept, and what comes at once. */
void cli_release_failures(void);
/** A sentence of the library with options where it names fields of its interface; good until this thread's
 *  next call. */
const char *cli_option_words(const char *sentence);
/** The sentence of the runtime's last failure, in these words. */
const char *cli_sentence(const clv_runtime *runtime);
/** Print it, and return its exit code. */
int cli_fail_status(clv_runtime *runtime, clv_status status);
/** A loss or another figure as people read it: 0.1234, 12345.7, 1.95e+11. As cli_bytes. */
const char *cli_figure(double value);
/** Bytes as `1.5 MiB`; static text of this thread, good for eight calls. */
const char *cli_bytes(uint64_t bytes);
/** Print the object and a line end to stdout, and take it. EXIT_FAILED if stdout cannot be written. */
int cli_print_json(json_t *object);
/** Flush stdout. Where it cannot be written: EXIT_FAILED and a sentence, or EXIT_NO_READER and none if its
 *  reader has gone. */
int cli_finish_output(void);
/** A JSON number, or null for what JSON has no number for. */
json_t *cli_real(double value);
/** A device as the JSON of `devices`. */
json_t *cli_device_json(const clv_device_info *info);
/** The memory of a device as the JSON of `train`, and as a table on `out`. */
json_t *cli_memory_json(const clv_device *device, uint64_t predicted);
void cli_memory_table(FILE *out, const clv_device *device, uint64_t predicted);

/** A line that is drawn over on a terminal, and elsewhere one a minute. */
typedef struct cli_progress {
    screen_area area;
    bool lines; // not drawn over: stderr is no terminal
    double last;
    pthread_mutex_t lock; // programs are built, and kernels compiled, on several threads
} cli_progress;
void cli_progress_init(cli_progress *progress, bool quiet);
/** Draw a bar, `done` of `total`, and after it a text: fields with two blanks between them, the most
 *  important first, of which those at the end are left out where there is no room. At most ten times a second
 *  unless the bar is full. */
void cli_progress_draw(cli_progress *progress, const char *label, double done, double total,
                       const char *text);
/** What configs of the library take as `user`, with cli_steps_draw as `progress`: the bar of what is done,
 *  until somebody interrupts. */
typedef struct cli_steps {
    cli_progress *progress;
    const char *label;
    const volatile int *interrupt; // cli_catch_interrupts
} cli_steps;
bool cli_steps_draw(void *steps, int done, int total, const char *next);
/** Wipe the line, before something else is printed to stderr. */
void cli_progress_clear(cli_progress *progress);

// ---- files.c: files that are written ----------------------------------------------------------------------

/** Better before the work than after it: can the file be written? Prints and returns EXIT_FAILED if not. NULL
 *  is fine. */
int cli_check_target(const char *path);
/** The same where the file that is there will be kept as PATH.prev. */
int cli_check_kept(const char *path);
/** The same of a result that may go to stdout, which `-` is. */
int cli_check_output(const cli_args *args, const char *path);
bool cli_is_stdout(const char *path);
/** A file that the library writes, where it is stdout: a pipe with a name, and the thread that empties it. */
typedef struct cli_outlet {
    int from, to; // from -1: there is none
    FILE *kept;   // where it goes instead of stdout; NULL: there
    pthread_t thread;
    int error;
    char path[32];
} cli_outlet;
/** `-` becomes a name to be written to; others stay. Prints what fails. */
int cli_outlet_begin(const char **path, cli_outlet *outlet);
/** What is written goes to a stream of the caller's instead. */
int cli_outlet_keep(const char **path, FILE *kept, cli_outlet *outlet);
/** predictions.c: what clv_table_results_write wrote, as JSON: an object for each row. */
json_t *cli_predictions_json(const char *csv, size_t bytes, const char *record);
/** All has been written; prints what failed. */
int cli_outlet_end(cli_outlet *outlet);
/** The same for all files of a training. */
int cli_check_train_files(const cli_args *args);
/** same_files.c: would a file that the command writes take the place of another, or of one that it reads?
 *  Prints and returns EXIT_USAGE then. */
int cli_check_same_files(const cli_args *args);
/** Make a folder and those it is in, for their owner. Is it this user's then, and closed to others? Elsewhere
 *  a name in it could be a link to another file of theirs. */
bool cli_private_folder(const char *path);
bool cli_is_pipe(const char *path);
/** Open a pipe for writing, without waiting for a reader for long. Prints what fails and returns -1. */
int cli_open_pipe(const char *path, const char *what);
/** Write a file: the one that is there is replaced when all of the new one is on the disk. `-` is stdout.
 *  Prints what fails. */
int cli_write_whole(const char *path, const char *text, size_t n);

// ---- start.c: the runtime, its devices, interruption ------------------------------------------------------

typedef struct cli_presence cli_presence;

/** Everything a command works with. */
typedef struct cli_session {
    const cli_args *args;
    bool with_device, no_opencl;
    clv_runtime *runtime;
    clv_device *device; // NULL where the command has none
    cli_progress progress;
    cli_drivers drivers;
    cli_presence *presence; // NULL: no file is kept
    bool whatever;          // faults in CLEAVE_* are told in `faults`, and the runtime is made without them
    char faults[3][600];
} cli_session;

/** Begin what needs a process without threads: to probe drivers in a child, where one has died. */
void cli_start_early(const cli_args *args, bool with_device, cli_session *session);
/** Make the runtime, find the device, set budgets. Prints what fails. */
int cli_start(cli_session *session);
/** Tell on stderr which budgets are for other devices than these: nothing will be held there. A command that
 *  works on its device alone has been told of by cli_start. */
void cli_tell_unused_budgets(const cli_session *session, clv_device *const *used, int n);
void cli_stop(cli_session *session);
/** at_work.c: for `cleave top`, keep a small file of this command while it works on devices; cli_start and
 *  cli_stop do. Where there is no folder for it, none is kept, and nothing said. */
void cli_presence_begin(cli_session *session);
void cli_presence_end(cli_session *session);
/** Seconds since this process started, or since main began if the system does not tell. */
double cli_seconds(void);
/** When a process started, in seconds since the machine did; 0 if the system does not tell; -1: it has
 *  ended, and nobody has asked how. */
double cli_process_started(int64_t process);
/** Before anything is read or written as JSON: what jansson gets when the system has no memory. */
void cli_json_memory(void);
/** JSON as a new reference; NULL: it is none, or there is no memory. No key twice. */
json_t *cli_json_read(const char *text, size_t bytes);
json_t *cli_json_read_file(FILE *file);
/** First of all: closed standard files become /dev/null, so that none of ours takes their place; a file that
 *  is too large, and a reader that has gone, are errors of a write instead of the process's end. */
void cli_begin_process(void);
/** Becomes 1 on SIGINT, SIGTERM or SIGHUP, once caught; a second SIGINT or SIGTERM ends the process at
 *  once. */
const volatile int *cli_catch_interrupts(void);
/** From here on a signal ends the process again: nothing is done any more that it would lose. */
void cli_release_interrupts(void);
/** What is written to stderr at the first of them; NULL: nothing. Static text with a line's end. */
void cli_answer_interrupts(const char *words);
/** While nothing is done that could be lost, the first signal ends the process, with EXIT_INTERRUPTED. */
void cli_nothing_done(bool yes);
/** The process's exit code; where a driver hangs the process ends here, without what drivers do at its
 *  end. */
int cli_end(int code);

// ---- env.c: where this runs -------------------------------------------------------------------------------

/** All that a bug report needs: build, system, drivers, devices, cache, variables. Home folders are
 *  told as ~. */
json_t *cli_env_json(const cli_session *session);
/** One of its keys, and what stands there, as a person reads them: `memory limit`, `1.5 GiB`. */
void cli_env_name(const char *key, char *out, size_t bytes);
void cli_env_value(const char *key, const json_t *value, char *out, size_t bytes);

// ---- custom.c: ops, optimizers, models and losses of a shared library ------------------------------------

/** Load it and let it register what it has. Prints what fails. */
int cli_load_library(clv_runtime *runtime, const char *file);
/** The one of --ops, before models and losses are looked for; nothing if none is given. */
int cli_load_own(const cli_args *args);

// ---- commands, one file each ------------------------------------------------------------------------------

#define X(id, name, function, ...) int function(const cli_args *args);
#include "commands.def"
#undef X
/** run_images.c: `run images`. */
int cli_run_images(const cli_args *args);

#endif
