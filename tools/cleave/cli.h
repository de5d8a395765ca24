// SPDX-License-Identifier: Apache-2.0
// What the files of the command line share. The library is used through its public headers only.
#ifndef CLEAVE_CLI_H
#define CLEAVE_CLI_H

#include "drivers/drivers.h"
#include "screen.h"

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

enum { CLI_MAX_BUDGETS = 16, CLI_MAX_WORDS = 2, CLI_MAX_TEXTS = 256 };

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
#include "options.def"
#undef X
    struct {
#define X(commands, group, name, kind, field, ...) bool field;
#include "options.def"
#undef X
    } given;
    bool help_all;       // --help all
    char **command_line; // all words, as main got them
    const char **more;   // n_more words behind those, of a command that takes any number; to be freed
    int n_more;
    clv_weights_info *told; // what --weights tells (weights.c); NULL: nothing was read
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

/** A line that is drawn over on a terminal, and not at all elsewhere. */
typedef struct cli_progress {
    screen_area area;
    double last;
    pthread_mutex_t lock; // programs are built, and kernels compiled, on several threads
} cli_progress;
void cli_progress_init(cli_progress *progress, bool quiet);
/** Draw a bar, `done` of `total`, and after it a text: fields with two blanks between them, the most
 *  important first, of which those at the end are left out where there is no room. At most ten times a second
 *  unless the bar is full. */
void cli_progress_draw(cli_progress *progress, const char *label, double done, double total,
                       const char *text);
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

// ---- baseline.c: earlier runs of `check` ------------------------------------------------------------------

/** What `cleave check --json` printed, from a file. Prints what fails. */
int cli_read_check(const char *path, json_t **out);
/** matrix.c: the page of `report --results`. */
int cli_matrix_page(const cli_args *args);

// ---- quarantine.c: variants that plans pass over ----------------------------------------------------------

/** [{"op", "variant", "why"}] of a device. */
json_t *cli_quarantine_json(clv_device *device);
/** A line for each, indented; nothing if there is none. */
void cli_quarantine_print(FILE *out, clv_device *device, int indent);

// ---- env.c: where this runs -------------------------------------------------------------------------------

/** All that a report of a fault needs: build, system, drivers, devices, cache, variables. Home folders are
 *  told as ~. */
json_t *cli_env_json(const cli_session *session);
/** One of its keys, and what stands there, as a person reads them: `memory limit`, `1.5 GiB`. */
void cli_env_name(const char *key, char *out, size_t bytes);
void cli_env_value(const char *key, const json_t *value, char *out, size_t bytes);

// ---- arrays.c: named arrays as dataset -------------------------------------------------------------------

/** Inputs and targets by name, and a model that has such ports. Points into itself: not to be copied. */
typedef struct cli_fields {
    int n_inputs, n_targets;
    char name[2 * CLV_MAX_PORTS][64];                 // of inputs, then of targets
    clv_port port[2 * CLV_MAX_PORTS];                 // the same
    clv_train_loss loss[CLV_MAX_PORTS];               // of each target
    double mean[CLV_MAX_PORTS], scale[CLV_MAX_PORTS]; // of targets that are numbers; scale 0: as they stand
    clv_train_loss trained[CLV_MAX_PORTS];            // `loss`, of deviations where there is a scale
    clv_model inner; // of one input and one output, which the named ones are made with
} cli_fields;

/** Are --inputs and --target as they can be? Prints and returns EXIT_USAGE if not. */
int cli_check_arrays(const cli_args *args, const clv_model *model);
/** --inputs and --target read. Prints what is wrong. */
int cli_read_fields(const cli_args *args, cli_fields *out);
/** Why an array of that name was not read from an archive; NULL: it was, or there is none. Borrowed. */
const char *cli_unread(const clv_archive *archive, const char *name);
/** An .npz, or a folder of .npy. */
clv_status cli_read_arrays(clv_runtime *runtime, const char *path, clv_archive **out);
/** The model for such fields: one that names ports itself as it is. Prints what does not fit. */
int cli_model_of_fields(clv_runtime *runtime, const cli_args *args, const clv_model *model,
                        cli_fields *fields, clv_model *out);
/** The ports of a model that names them. Prints what is wrong with their names. */
int cli_ports_of_model(const clv_model *model, cli_fields *fields);
/** Mean and scale of a target in the record of weights; none: 0. False: they are no numbers. */
bool cli_field_scale(const json_t *target, double *mean, double *scale);
/** What weights keep of them, to be freed; NULL: no memory. */
char *cli_fields_record(const cli_fields *fields);
/** The way back, and *model, unless it is NULL or set already. Prints what is wrong. */
int cli_fields_of_weights(clv_runtime *runtime, const char *path, cli_fields *out, const clv_model **model);

// ---- source.c: samples and targets from a dataset, arrays, a text, a folder -----------------------------

/** Samples and targets, read by a thread while drivers are probed and the runtime starts. */
typedef struct cli_source {
    const cli_args *args;
    const clv_model *model;
    bool with_train;
    clv_runtime *runtime; // holds the sentence of what fails; no devices
    clv_status status;
    pthread_t thread;
    bool running;
    clv_dataset *train,
        *test; // arrays are trained on, or tested without `with_train`; the other stays NULL then
    clv_vocabulary *vocabulary; // of a text; else NULL
    clv_gpt_config gpt;         // of a text: the model's sizes
    clv_array text;             // while it is read
    clv_archive *archive;       // of named arrays; the datasets read from it
    cli_fields fields;          // of it
    bool told_rest;             // of what is beside the pictures
    int64_t told_broken;        // pictures that are broken: so many were told of
    int64_t left_out;           // samples of a text that each evaluation in a training leaves out
} cli_source;

/** Named arrays are read: datasets of them. */
int cli_make_arrays(cli_source *source);
/** arrays_scale.c: mean and scale of each target, by the rows that are trained on or as weights say, and the
 *  losses by that. */
void cli_scale_targets(cli_source *source, int64_t known);
/** Begin to read what the options ask for, for a model; with_train: also what is trained on. */
void cli_source_begin(cli_source *source, const cli_args *args, const clv_model *model, bool with_train);
/** Wait for it; prints what failed. */
int cli_source_wait(cli_source *source);
/** Free the datasets. A zeroed source is fine. */
void cli_source_end(cli_source *source);
/** Are dataset and arrays given as they can be? Prints and returns EXIT_USAGE if not. Reads no file. */
int cli_check_source(const cli_args *args);
/** Are options that are of some data alone given with these? Prints and returns EXIT_USAGE if not. */
int cli_check_data(const cli_args *args);
/** The model for what was read: of a text of its vocabulary and context, else as cli_size_model. */
int cli_model_of_source(clv_runtime *runtime, cli_source *source, clv_model *out);
/** What data are counted in, and how many of these a sample is: `images`, `rows` of a table, `tokens`, or
 *  `samples` of others. */
typedef struct cli_unit {
    const char *name;
    int64_t each;
} cli_unit;
cli_unit cli_unit_of(const cli_args *args, const clv_model *model);
/** Words behind a loss that is not in the units of the data; "": it is. */
const char *cli_loss_units(const cli_source *source);

// ---- weights.c: what --weights tells ---------------------------------------------------------------------

/** Read it, take from it what options leave open (--model, --classes, --image-size), and refuse
 *  options that say something else. No weights, a text, weights of other programs: nothing. Prints what
 *  fails; the caller forgets it in any case. */
int cli_tell_weights(cli_args *args);
void cli_forget_weights(cli_args *args);
/** Is what --resume names a file of weights? Prints that. Its header alone is read; what else is wrong with
 *  it the training tells. NULL is fine. */
int cli_check_resume(const char *path);
/** weights_kind.c: are they weights of what the command is given, of a table for a table? Prints what they
 *  are of, and what takes them, if not. */
int cli_check_kind(const cli_args *args);
/** foreign_model.c: are the weights of a model that is neither built in nor registered? */
bool cli_is_foreign(const clv_weights_info *told);
/** Then a model must be said: prints which options do, and returns EXIT_USAGE, if none is. */
int cli_check_foreign(const cli_args *args);
/** What a command that takes such weights needs besides; "" for others. */
const char *cli_foreign_option(const cli_args *args, char *text, size_t bytes);
/** Words for a sentence on weights that tell nothing of themselves: why, and how to keep it. "": they do
 *  tell. */
const char *cli_lost_record(const cli_args *args);
/** A table could not be read: the sentence. Of weights that do not tell its columns that is said in place of
 *  remedies, which are of the training. */
int cli_fail_csv(const cli_source *source);
/** The sentence of what failed; where weights do not fit a model that was built for samples of another size
 *  than its own, that too. */
int cli_fail_sized(clv_runtime *runtime, const cli_args *args, clv_status status, const clv_model *sized);
/** The same where a model was made: if pictures are too small for it, the option that makes them larger. */
int cli_fail_made(clv_runtime *runtime, const cli_args *args, clv_status status);
/** Which of a file's weights is not finite, or where else to look where none is (false): words for a sentence
 *  about results that are not. */
bool cli_blame_weights(clv_runtime *runtime, const char *path, char *text, size_t bytes);

// ---- models.c: models by name ----------------------------------------------------------------------------

/** The model for these options (--classes), of its own size. */
clv_model cli_model_for(const cli_args *args, const clv_model *model);
/** The model for these options and samples, [C,H,W] or [H,W] of one channel: arrays may have other sizes than
 *  the model's own. Prints and returns EXIT_FAILED for others, channels last for example. */
int cli_size_model(clv_runtime *runtime, const cli_args *args, const clv_model *model,
                   const clv_shape *sample, clv_model *out);
/** The model of that name; prints and returns NULL if there is none. */
const clv_model *cli_model(const char *name);
enum { CLI_NAMES_BYTES = 256 };
/** The names of all, with commas. */
const char *cli_model_names(char names[CLI_NAMES_BYTES]);

// ---- text.c: a text as dataset ----------------------------------------------------------------------------

/** Does the model take what is given, and do options of texts have one? Prints and returns EXIT_USAGE
 *  if not. */
int cli_check_text(const cli_args *args, const clv_model *model);
/** Read it, in the source's thread. */
clv_status cli_read_text(cli_source *source);
/** What may be wrong with a text, and which samples are left out. */
void cli_tell_text(const cli_source *source);

// ---- csv.c: a table as dataset ----------------------------------------------------------------------------

/** Does the model take rows, and do options of tables have one? Prints and returns EXIT_USAGE if not. */
int cli_check_csv(const cli_args *args, const clv_model *model);
/** Read it, in the source's thread. */
clv_status cli_read_csv(cli_source *source);
/** What became of a table's rows, on stderr: left out, filled in, unknown words. Quiet: nothing. */
void cli_tell_table(const cli_args *args, const clv_table_report *report, const char *record);
/** Are there classes of a table of which each has few rows? On stderr. Quiet: nothing. */
void cli_tell_few_rows(const cli_args *args, const clv_dataset *dataset);
json_t *cli_table_json(const clv_table_report *report);
/** The model for a table's columns and targets. */
void cli_model_of_rows(const clv_model *model, const clv_dataset *dataset, clv_model *out);

// ---- folder.c: a folder of pictures as dataset ------------------------------------------------------------

/** Does the model take pictures, and do options of folders have one? Prints and returns EXIT_USAGE if not. */
int cli_check_folder(const cli_args *args, const clv_model *model);
/** Of a folder that holds PARENT/train, train on that, and test on PARENT/val (valid, validation, test)
 *  unless --val says otherwise, and tell so. parts: what args then point to, to be freed. */
void cli_find_parts(cli_args *args, char *parts[2]);
/** Read it, in the source's thread. */
clv_status cli_read_folder(cli_source *source);
/** Does a training begin with only some of the weights? Then what it learns may differ. */
bool cli_begins_anew(const cli_args *args);
/** The weights whose names of classes or labels must be kept to; NULL: they tell none, or a new last layer is
 *  to learn others. */
const clv_weights_info *cli_told_classes(const cli_args *args);
/** The weights, if they tell how samples were normalised: (x - mean) / std of each channel, bytes as 0..1.
 *  NULL: they were not, or it is not known. */
const clv_weights_info *cli_told_scale(const cli_args *args);
/** Say so of a file of samples, if it is known. */
void cli_tell_scale(const cli_args *args, const char *path);
/** Bytes as such floats, the caller's; told: cli_told_scale, and where it is NULL they become 0 to 1.
 *  `floats` stays empty of what is no bytes. Channels last, or others, are refused. */
int cli_normalise(clv_runtime *runtime, const clv_weights_info *told, const char *what,
                  const clv_array *bytes, clv_array *floats);
/** Size and normalisation of pictures as the weights know them. */
void cli_pictures_of_weights(const cli_args *args, clv_image_folder_config *config);
/** The loss of what is to be learnt, NULL for the model's usual one: several labels each have another. */
const clv_loss *cli_loss(const cli_args *args);
/** The model for a folder's size of pictures, its classes or its labels. */
void cli_model_of_folder(const cli_args *args, const clv_model *model, const clv_dataset *dataset,
                         clv_model *out);
/** How many broken pictures were found so far, and what is wrong with the first. */
int64_t cli_broken(const cli_source *source, const char **first);
/** Tell of those that have not been told of, on stderr. Quiet, or another dataset: nothing. */
void cli_tell_broken(cli_source *source);
/** The same of a dataset, where `told` were told of; how many there are. */
int64_t cli_tell_broken_of(const cli_args *args, const clv_dataset *dataset, int64_t told);

// ---- placement.c: layers and batches on several devices ---------------------------------------------------

enum { CLI_MAX_REPLICAS = 16 };

/** What --place, --devices, --transfers, --replicas and --shares ask for. */
typedef struct cli_placement {
    clv_placement placement; // points into this structure
    char text[1024];         // names of devices; or --place behind --device
    char replicas[1024];     // names of them
    const char *devices[CLI_MAX_REPLICAS];
    double shares[CLI_MAX_REPLICAS];
} cli_placement;

/** Read the options, that one too; prints and returns EXIT_USAGE if they make no sense. */
int cli_read_placement(const cli_args *args, cli_placement *out);
/** Do the devices and layers it names exist? Prints and returns EXIT_USAGE if not. Takes no device memory. */
int cli_check_place(clv_runtime *runtime, const clv_model *model, const clv_placement *placement);
/** Are there parameters that --freeze names, and others? Prints and returns EXIT_USAGE if not. */
int cli_check_freeze(clv_runtime *runtime, const clv_model *model, const char *freeze);
/** What --place auto and the like chose, as a note on stderr that can be pasted, and as JSON. NULL: nothing,
 *  null. */
void cli_print_place(const cli_args *args, const clv_place_choice *choice);
json_t *cli_place_json(const clv_place_choice *choice);
/** The part of each replica, as JSON and as lines on stdout; no replicas: an empty object, nothing. */
json_t *cli_shares_json(const clv_placement *placement, const double *shares);
void cli_shares_print(const clv_placement *placement, const double *shares);
/** The memory of each device of a plan that has its session for itself, as JSON and as tables. */
json_t *cli_plan_memory_json(clv_plan *plan);
void cli_plan_memory_tables(FILE *out, clv_plan *plan);
/** Tell on stderr which devices of --place have nothing to do, because the last match wins, and which of
 *  --budget have no part. */
void cli_tell_idle(const cli_session *session, const clv_plan *plan);

// ---- summary.c: a training in words -----------------------------------------------------------------------

/** What is about to be trained, and how, on stderr. Quiet: nothing. */
void cli_tell_training(const cli_args *args, const clv_train_config *config, const clv_trainer *trainer);
/** What came of it: accuracy, time, where the weights are. */
void cli_tell_result(FILE *out, const cli_source *source, const clv_train_result *result, bool interrupted);

// ---- epochs.c: a training's epochs as lines ---------------------------------------------------------------

/** What is kept of them; zero: none was seen. */
typedef struct cli_epochs {
    int64_t seen, best_epoch; // best_epoch 0: none was tested
    double best, last;        // of --monitor, or the loss of the test set
    bool larger;              // is better
    char untold[1024];        // the last one's line; "": it is written
    bool best_untold;         // the best one's line was left out
} cli_epochs;
/** One has ended: its line on stderr, where that is no terminal only some of many. Quiet: nothing. */
void cli_epochs_see(cli_epochs *epochs, const cli_args *args, const clv_placement *placement,
                    const clv_train_epoch *epoch);
/** None follows: write the last line, if it was left out. */
void cli_epochs_end(cli_epochs *epochs);
/** One sentence, if an earlier one was better by more than a twentieth and --save-best did not keep it. */
void cli_epochs_say_worse(FILE *out, const cli_epochs *epochs, const cli_source *source);

// ---- baseline_told.c: is it better than always the same? --------------------------------------------------

/** What always the commonest class, or the mean, would get, beside what a model got. */
typedef struct cli_least {
    char target[64]; // the first that is no better, where there are several; else ""
    clv_baseline baseline;
    double accuracy, loss; // the model's; NaN: not told
    bool known, no_better; // by accuracy of classes, by loss of numbers
    bool are_large;        // numbers of arrays, far from what a model begins with
    char sorted[600];      // what is tested on differs from what was trained on; "": it does not
} cli_least;
/** Of an evaluation on `tested`; NULL: of `trained` and the loss of the training. */
cli_least cli_least_of(clv_runtime *runtime, const cli_args *args, const clv_dataset *tested,
                       const clv_metrics *metrics, const clv_dataset *trained, double train_loss,
                       const clv_train_loss *losses, int n_losses, const clv_loss *loss);
/** sorted.c: a sentence, if what is tested on differs in a target from what was trained on (NULL: not known)
 *  in a way that no training mends. */
void cli_tell_sorted(const cli_args *args, const clv_dataset *tested, const clv_dataset *trained, int target,
                     char *out, size_t bytes);
/** One sentence, if it is no better, or was tested on something else than it learnt. */
void cli_least_say(FILE *out, const cli_least *least);
json_t *cli_least_json(const cli_least *least);

// ---- baseline_metrics.c: the same in the metrics of a model -----------------------------------------------

/** What always the commonest class, or the mean, gets in what `metrics` has: accuracy, mae, rmse. Nothing
 *  where it has none of them. */
void cli_baseline_say(FILE *out, clv_runtime *runtime, const clv_dataset *tested,
                      const clv_metrics *metrics);

// ---- own.c: ops, optimizers, models and losses of a shared library ----------------------------------------

/** Load it and let it register what it has. Prints what fails. */
int cli_load_library(clv_runtime *runtime, const char *file);
/** The one of --ops, before models and losses are looked for; nothing if none is given. */
int cli_load_own(const cli_args *args);

// ---- recipes.c: how a model is trained unless the options say otherwise -----------------------------------

/** Is there such an optimizer? Prints and returns EXIT_USAGE if not. */
int cli_check_optimizer(const cli_args *args);
/** Do the options for optimizer and schedule belong to those that are used? Prints and returns EXIT_USAGE if
 *  not. */
int cli_check_recipe(const cli_args *args, const clv_model *model);
/** What options set; and optimizer, rate, schedule, batch and, where samples are known, epochs, of options
 *  and recipe. */
void cli_recipe(const cli_args *args, const clv_model *model, clv_train_config *config);

// ---- param_groups.c: --param-group and --weight-decay-skip ------------------------------------------------

enum { CLI_GROUP_BYTES = 512 };
typedef struct cli_groups {
    clv_param_group group[CLI_MAX_TEXTS];
    char text[CLI_MAX_TEXTS][CLI_GROUP_BYTES]; // that the groups' patterns lie in
    int n;
} cli_groups;
/** Prints what is wrong and returns EXIT_USAGE. */
int cli_read_groups(const cli_args *args, cli_groups *out);
/** Do names of --freeze and of groups fit the model? Prints and returns EXIT_USAGE if not. */
int cli_check_groups(clv_runtime *runtime, const clv_model *model, const cli_groups *groups);

// ---- class_weights.c: --class-weights, --ignore-index -----------------------------------------------------

/** The losses of a training with weights of classes. */
typedef struct cli_class_weights_of {
    clv_train_loss loss[CLV_MAX_PORTS];
    float *own[CLV_MAX_PORTS]; // n of them, to be freed
    int n;
} cli_class_weights_of;

/** Are they what they can be? Prints and returns EXIT_USAGE if not. */
int cli_check_labels(const cli_args *args);
/** The label that counts nothing; false: none is named. */
bool cli_ignored_label(const cli_args *args, int32_t *out);
/** Give a training, which has its model and its samples, the weights of its classes; without the option
 *  nothing changes. Prints what is wrong. */
int cli_class_weights(clv_runtime *runtime, const cli_args *args, clv_train_config *config,
                      cli_class_weights_of *out);
void cli_class_weights_end(cli_class_weights_of *of);

// ---- metrics.c: --metric, --monitor -----------------------------------------------------------------------

typedef struct cli_metrics {
    const clv_metric *metric[CLV_MOST_METRICS]; // point to `own`
    clv_metric own[CLV_MOST_METRICS];
    char target[CLV_MOST_METRICS][64]; // of `target:metric`
    int n;
} cli_metrics;
enum { CLI_METRIC_BYTES = 96 }; // of `target:metric`
/** `metric`, or `target:metric` where it names its target. */
const char *cli_metric_name(const clv_metric_value *value, char name[CLI_METRIC_BYTES]);
/** Those of --metric, and the one of --monitor. Prints what is wrong and returns EXIT_USAGE. */
int cli_read_metrics(const cli_args *args, cli_metrics *out);
/** For a model: mae and rmse of one target of a table or of arrays that is numbers, unless --metric says it.
 *  A metric of several numbers or targets that names none becomes one of each: their units differ. Prints
 *  what is wrong and returns EXIT_USAGE. */
int cli_model_metrics(const cli_args *args, const clv_model *model, cli_metrics *out);
/** Is what goes with --patience and --save-best given without them? Prints and returns EXIT_USAGE. */
int cli_check_stopping(const cli_args *args);
/** Are there data to test on, where an option needs some? Prints and returns EXIT_USAGE if not. */
int cli_check_tested(const cli_args *args, bool tested);
/** How many tokens a model of texts wavers between: e to the power of its loss, which is the mean cross
 *  entropy of a token. NaN of other data. */
double cli_perplexity(const cli_args *args, const clv_metrics *metrics);
/** per_class.c: what was counted of classes, with their names, as JSON (null for NULL) and as tables. */
json_t *cli_classes_json(const cli_source *source, const clv_confusion *confusion);
void cli_classes_print(FILE *out, const cli_source *source, const clv_confusion *confusion);
/** What an evaluation told: as an object by name; in an epoch's line; a line each. */
json_t *cli_metrics_json(const clv_metrics *metrics);
void cli_metrics_line(screen_line *line, const clv_metrics *metrics);
void cli_metrics_say(FILE *out, const clv_metrics *metrics);

// ---- precision.c: --precision -----------------------------------------------------------------------------

clv_precision cli_precision(const cli_args *args);
/** What mixed precision saves; `in_f32` is the same plan without it, NULL without --precision. */
json_t *cli_precision_json(const cli_args *args, clv_plan *plan, clv_plan *plain);
/** What mixed precision and micro-batches save, or cost, beside the same plan without them, as text and as
 *  JSON; `plain` NULL: nothing, null. only_more: a note, and only if they take more. */
json_t *cli_without_json(const clv_plan *plan, clv_plan *plain);
void cli_without_print(FILE *out, const cli_args *args, const clv_plan *plan, clv_plan *plain,
                       bool only_more);

// ---- parts.c: what is larger than a device's largest allocation -------------------------------------------

json_t *cli_parts_json(const clv_plan *plan);
/** A line; nothing where all is done whole. */
void cli_parts_print(FILE *out, const clv_plan *plan);

// ---- recomputed.c: what a plan drops and computes again ---------------------------------------------------

json_t *cli_recomputed_json(const clv_plan *plan);
/** A table of it. Nothing if nothing is, unless it was asked for. */
void cli_recomputed_print(FILE *out, const cli_args *args, const clv_plan *plan);

// ---- profile.c: --profile and --trace ---------------------------------------------------------------------

typedef struct cli_peak {
    clv_device *device;
    clv_bench_peak peak; // zeros: not known
    bool again;          // it was beaten and measured once more
} cli_peak;

/** What is measured beside a command's work. All zero: nothing is. */
typedef struct cli_profile {
    cli_session *session;
    clv_profile *profile; // NULL: neither option was given
    cli_peak peaks[CLI_MAX_REPLICAS];
    int n_peaks;
} cli_profile;

/** Profile the steps of a session from now on, if an option asks for it. device: the i-th that takes part,
 *  NULL past the last. Prints what fails. End it after the session's runs. */
int cli_profile_begin(cli_session *session, clv_session *of, clv_device *(*device)(const void *owner, int i),
                      const void *owner, cli_profile *out);
/** What it says of the run with the most steps; JSON null without --profile. */
void cli_profile_print(FILE *out, const cli_profile *profile);
json_t *cli_profile_json(const cli_profile *profile);
/** Write the trace, if one is wanted. Prints what fails. */
int cli_profile_trace(const cli_profile *profile);
void cli_profile_end(cli_profile *profile);

/** Of a plan: how little time it could take at its devices' peaks, which are measured unless they are
 *  known. */
int cli_profile_plan(cli_session *session, const clv_plan *plan, cli_profile *out);
void cli_profile_plan_print(FILE *out, const cli_profile *profile, const clv_plan *plan);
json_t *cli_profile_plan_json(const cli_profile *profile, const clv_plan *plan);

// ---- commands, one file each ------------------------------------------------------------------------------

#define X(id, name, function, ...) int function(const cli_args *args);
#include "commands.def"
#undef X
/** run_images.c: `run images`. */
int cli_run_images(const cli_args *args);

#endif
