// SPDX-License-Identifier: Apache-2.0
// Watching a training: what is known of it at one moment, taken from the trainer (watch.c), written to and
// read from a log (log.c), drawn for a person (picture.c).
#ifndef CLEAVE_WATCH_H
#define CLEAVE_WATCH_H

#include "plans/plans.h"
#include "training/training.h"

enum { WATCH_DEVICES = CLI_MAX_REPLICAS };

/** A device of a training. NAN: not known, or there is none. */
typedef struct watch_device {
    char name[24], label[80];
    uint64_t used_bytes, peak_bytes, predicted_bytes;
    uint64_t memory_bytes, budget_bytes; // budget 0: none
    double busy;                         // part of the time of the last second
    double share;                        // of each batch; NAN without replicas
    double images_per_second;
    int layers; // placed there; -1: layers are not placed
    bool lost;
} watch_device;

typedef enum watch_state {
    WATCH_NOTHING, // no step was told yet
    WATCH_RUNS,
    WATCH_DONE,
    WATCH_INTERRUPTED,
    WATCH_FAILED,
    WATCH_GONE // the process is not there any more, and did not say why
} watch_state;

/** What a test set told besides. */
typedef struct watch_metric {
    char name[CLI_METRIC_BYTES];
    double value;
} watch_metric;

/** A training at one moment; or another command, which has no steps. */
typedef struct watch_moment {
    char version[24], command[16], model[64]; // command "": train
    char sentence[512];                       // of WATCH_INTERRUPTED and WATCH_FAILED
    watch_state state;
    int64_t process, batch_size;
    int rank, ranks;   // of a training over several; ranks 0: alone
    char unit[16];     // what data are counted in, `images`
    int64_t unit_each; // so many are a sample
    double started;    // the process, in seconds since the machine did; 0: not known
    char log[4096];    // its file; "": none is known
    bool asked;        // it was told to somebody who looks, so devices were asked how busy they are
    int64_t step, steps, epoch, epochs, batch, batches;
    double loss, lr;
    bool mean_loss;           // of an ended training the loss is the mean of its last epoch
    double images_per_second; // of the last second; of an ended training on average
    double seconds, left_seconds;
    double seconds_before;           // what earlier processes took, where it goes on
    double test_loss, test_accuracy; // of the newest epoch that was tested; NAN
    int n_metrics;                   // of it too
    watch_metric metrics[CLV_MOST_METRICS];
    int n_devices;
    watch_device devices[WATCH_DEVICES];
} watch_moment;

/** `running`, `done`, ... */
const char *watch_state_name(watch_state state);

/** Seconds as a person says them: `42 s`, `3 min 20 s`, `5 h 10 min`. */
const char *watch_time_text(double seconds, char text[32]);

// ---- log.c ------------------------------------------------------------------------------------------------

/** A log that is being written. Each line is handed to the system at once, so that a killed process loses
 *  none. */
typedef struct watch_log {
    const char *path;
    FILE *file;   // NULL: no log, and everything below does nothing
    bool goes_on; // with what an earlier process wrote
    int failed;   // exit code of a write that failed, told once; nothing is written after it
} watch_log;

/** What a training was asked to do, to be shown beside other trainings: settings.c. NULL without memory. */
json_t *watch_settings(const cli_args *args, const clv_train_config *config);
/** Open for writing, or for going on. The log of an earlier training that is there becomes PATH.prev, and
 *  unless `quiet` stderr says so. Prints and returns EXIT_FAILED if that cannot be. path NULL: no log. */
int watch_log_open(watch_log *log, const char *path, bool go_on, bool quiet);
/** The lines: of the beginning (with the settings, which it takes; it cuts off what an earlier process wrote
 *  from this step on), of a step, of an epoch, of the end. False if the line could not be written; it was
 *  told. */
bool watch_log_begin(watch_log *log, const watch_moment *moment, json_t *settings);
bool watch_log_step(watch_log *log, const watch_moment *moment);
bool watch_log_epoch(watch_log *log, const clv_train_epoch *epoch);
bool watch_log_end(watch_log *log, const watch_moment *moment);
/** Prints what fails; the exit code. */
int watch_log_close(watch_log *log);

/** A log that is being read, perhaps while it is written, cut short or replaced. */
typedef struct watch_reader {
    const char *path;
    int file; // -1: none
    int64_t offset;
    uint64_t device, inode;
    char *text; // of a line that has no end yet
    size_t n_text, text_room;
    bool passing; // over the rest of a line that is too long
    int64_t lines, damaged;
    watch_moment now;
    json_t *settings; // of the newest beginning, an object; NULL: none was told
    /** Called for each step that is read; NULL: nobody listens. */
    void (*on_step)(void *user, const watch_moment *moment);
    void (*on_epoch)(void *user, const watch_moment *moment);
    void *user;
} watch_reader;

/** Begin to read; callbacks are set before. Prints and returns EXIT_FAILED if there is no such file. */
int watch_reader_open(watch_reader *reader, const char *path);
/** Read what there is by now. Prints and returns EXIT_FAILED if it cannot be read, or holds no line of a
 *  log. */
int watch_reader_poll(watch_reader *reader);
void watch_reader_close(watch_reader *reader);
/** The moment as one JSON object. */
json_t *watch_moment_json(const watch_reader *reader, double age_seconds);

/** The moment as a log would have it, begin and step, to be freed; NULL: no memory. And the way back; false:
 *  it is no such text. */
char *watch_text(const watch_moment *moment);
bool watch_of_text(const char *text, size_t bytes, watch_moment *out);

// ---- events.c (events.h) ----------------------------------------------------------------------------------

/** A file for TensorBoard that is being written. */
typedef struct events_file {
    char path[4096];
    FILE *file; // NULL: none
    int failed; // exit code of a write that failed, told once
    bool histograms, begun;
} events_file;

// ---- picture.c --------------------------------------------------------------------------------------------

/** Draw the moment over the one before. */
void watch_draw(screen_area *area, const watch_moment *moment);
/** A line for the training and one for each device, to stay; for a file or a pipe too. */
void watch_print(FILE *out, const watch_moment *moment);

/** The same put together of several: the caller frees `line`. */
typedef struct watch_lines {
    screen_line *line;
    int n, room;
    bool colour, bars;
} watch_lines;
/** A line more; NULL: no memory. */
screen_line *watch_lines_add(watch_lines *lines);
/** A training and its devices, with its name before it. */
void watch_lines_training(watch_lines *lines, const char *name, const watch_moment *moment);
/** What a training is at, without its devices. */
void watch_training(screen_line *line, const watch_moment *moment, bool bars, bool sentence);
/** What is held on a device of `room` bytes, and its load (NAN: nobody knows). */
void watch_load(screen_line *line, const char *name, uint64_t used_bytes, uint64_t room, double busy,
                bool bars);
/** Over those before, or to stay. */
void watch_lines_draw(const watch_lines *lines, screen_area *area);
void watch_lines_print(const watch_lines *lines, FILE *out);

// ---- machine.c --------------------------------------------------------------------------------------------

/** `top` without a log. */
int cli_top_machine(const cli_args *args);

// ---- watch.c ----------------------------------------------------------------------------------------------

/** The eye on a training of this process. */
typedef struct watch_eye {
    cli_session *session;
    const clv_train_config *config;
    clv_trainer *trainer;
    bool shown; // --watch
    watch_log log;
    events_file events;
    watch_moment now;
    double since;              // when the window began that rates are taken over
    bool short_seen;           // the first batch that is not full is done: kernels for it are compiled
    double told;               // when the last window ended; 0: none has
    double printed;            // when lines were printed last
    int64_t images, images_at; // trained on so far; and when the window began
    int64_t images_left;
    uint64_t busy_at[WATCH_DEVICES], steps_at[WATCH_DEVICES];
} watch_eye;

/** Begin to watch; the trainer is made. Devices keep times from here on if anyone will see how busy they
 *  are. */
CLV_MUST_CHECK clv_status watch_begin(watch_eye *watch, cli_session *session, const clv_train_config *config,
                                      clv_trainer *trainer);
/** A step is done: take its moment, log and show it. False if the log could not be written. */
bool watch_step(watch_eye *watch, const clv_train_step *step);
bool watch_epoch(watch_eye *watch, const clv_train_epoch *epoch);
/** The training is over; how. sentence: of what went wrong, or NULL. */
void watch_end(watch_eye *watch, watch_state state, const char *sentence);

#endif
