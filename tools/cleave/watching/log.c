// SPDX-License-Identifier: Apache-2.0
// The log of a training, written and read. A line is one JSON object; tools/README.md says what the lines
// hold. A line is written in one piece as soon as it is known, so a killed process leaves at most one
// incomplete line. A reader may follow while the log is written, begin in the middle, and survives a file
// that is cut short or replaced.
#include "training/training.h"
#include "watching/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_LINE_BYTES = 1 << 20 }; // a longer line is none of ours

static const char *const state_names[] = {"waiting", "running", "done", "interrupted", "failed", "gone"};

const char *watch_state_name(watch_state state) {
    return state_names[state];
}

// ---- writing ----------------------------------------------------------------------------------------------

static bool cannot_write(watch_log *log) {
    log->failed = cli_fail(EXIT_FAILED, "the log '%s' could not be written: %s", log->path, strerror(errno));
    return false;
}

/** The file does not end with a line's end. Half a line of ours, which a killed process may have left, goes;
 *  what else is there is ended, so that the next line is not glued to it. */
static bool end_last_line(watch_log *log) {
    char *text = malloc(MOST_LINE_BYTES);
    if (!text) return false;
    bool good = !fseek(log->file, 0, SEEK_END);
    const off_t size = ftello(log->file), from = size > MOST_LINE_BYTES ? size - MOST_LINE_BYTES : 0;
    good = good && !fseeko(log->file, from, SEEK_SET);
    const size_t n = good ? fread(text, 1, (size_t)(size - from), log->file) : 0;
    size_t at = n;
    while (at && text[at - 1] != '\n') at--;
    json_t *line = cli_json_read(text + at, n - at);
    const bool half = !line && n > at && text[at] == '{' && (at || !from);
    json_decref(line);
    free(text);
    good = good && !ferror(log->file) && !fseek(log->file, 0, SEEK_END);
    if (good && half) return !ftruncate(fileno(log->file), from + (off_t)at);
    return good && fputc('\n', log->file) != EOF && !fflush(log->file);
}

static int in_use(const char *path) {
    return cli_fail(EXIT_FAILED,
                    "the log '%s' is being written by another training; give this one a --log of its own",
                    path);
}

/** Keep other trainings out of the file, as long as it is open; where there are no locks, go on without. */
static bool hold(int file, const char *path) {
    if (flock(file, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return true;
    close(file);
    in_use(path);
    return false;
}

/** The bytes of the next line with its end, 0 past the last. Up to MOST_LINE_BYTES of them are kept. */
static size_t next_line(FILE *file, char *text) {
    size_t n = 0;
    for (int c; (c = getc_unlocked(file)) != EOF;) {
        if (n < MOST_LINE_BYTES) text[n] = (char)c;
        n++;
        if (c == '\n') break;
    }
    return n;
}

/** Is a line one of a log? The last may be a half. */
static bool is_line(const char *text, size_t n) {
    static const char *const begins[] = {"{\"event\":", "{\"step\":"};
    bool is = false;
    if (n > MOST_LINE_BYTES) return false;
    for (int i = 0; i < 2; i++) {
        const size_t length = n < strlen(begins[i]) ? n : strlen(begins[i]);
        is |= length && text[n - 1] != '\n' && !memcmp(text, begins[i], length);
    }
    json_t *line = cli_json_read(text, n);
    is |= json_is_string(json_object_get(line, "event")) || json_is_integer(json_object_get(line, "step"));
    json_decref(line);
    return is;
}

/** A file that holds something else is no place for a log: it would be lost, or mixed up. One that nobody may
 *  read, or that is empty, is taken. */
static int check_log(const char *path) {
    enum { MOST_LINES = 1000 }; // a log that was begun by something else is one all the same
    FILE *file = fopen(path, "re");
    char *text = malloc(MOST_LINE_BYTES);
    bool is = !file || !text, empty = true;
    for (int i = 0; !is && i < MOST_LINES; i++) {
        const size_t n = next_line(file, text);
        if (!n) break;
        empty = false;
        is = is_line(text, n);
    }
    free(text);
    if (file) fclose(file);
    if (is || empty) return EXIT_DONE;
    return cli_fail(EXIT_FAILED,
                    "'%s' holds something that is no log of a training, and --log would write into it: give "
                    "the log a name of its own",
                    path);
}

/** Is that still the file of this name, and not one that another training has put aside since? */
static bool is_named(int file, const char *path) {
    struct stat held, named;
    return fstat(file, &held) == 0 && stat(path, &named) == 0 && held.st_dev == named.st_dev &&
           held.st_ino == named.st_ino;
}

/** What PATH.prev was goes; a log that is being written, or something else, stays. */
static int check_previous(const char *previous) {
    struct stat what;
    if (stat(previous, &what) != 0 || !S_ISREG(what.st_mode)) return EXIT_DONE;
    const int code = check_log(previous),
              file = code == EXIT_DONE ? open(previous, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return code;
    if (!hold(file, previous)) return EXIT_FAILED;
    close(file);
    return EXIT_DONE;
}

/** Errno's sentence, for a log that cannot become PATH.prev. */
static int cannot_keep(const char *path) {
    return cli_fail(EXIT_FAILED,
                    "'%s' holds the log of an earlier training, which cannot be kept as '%s.prev': %s; give "
                    "this training a --log of its own",
                    path, path, strerror(errno));
}

/** Rename the log that is held, and make a new file in its place: -1: it was told. */
static int replace(int former, const char *path, const char *previous) {
    if (cli_check_kept(path) != EXIT_DONE || check_previous(previous) != EXIT_DONE) return -1;
    if (!is_named(former, path)) {
        in_use(path);
        return -1;
    }
    if (rename(path, previous) != 0) {
        cannot_keep(path);
        return -1;
    }
    const int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOCTTY, 0666);
    if (file < 0) cannot_keep(path);
    return file >= 0 && hold(file, path) ? file : -1;
}

/** The log of an earlier training, which is held, becomes PATH.prev, as checkpoints do. Takes the file, and
 *  returns the new one, or -1: it was told. */
static int put_aside(int former, const char *path, bool quiet) {
    struct stat what;
    const bool link = lstat(path, &what) == 0 && S_ISLNK(what.st_mode);
    char *target = link ? realpath(path, NULL) : NULL; // it stays, and points to the new file
    const char *from = target ? target : path;
    const size_t n = strlen(from) + sizeof ".prev";
    char *previous = malloc(n);
    int file = -1;
    if (previous) {
        snprintf(previous, n, "%s.prev", from);
        file = replace(former, from, previous);
    } else {
        cannot_keep(path);
    }
    if (file >= 0 && !quiet)
        fprintf(stderr, "'%s' holds the log of an earlier training: it is kept as '%s'\n", path, previous);
    free(previous);
    free(target);
    close(former);
    return file;
}

int watch_log_open(watch_log *log, const char *path, bool go_on, bool quiet) {
    *log = (watch_log){.path = path};
    if (!path) return EXIT_DONE;
    struct stat what;
    const bool there = stat(path, &what) == 0, kept = !there || S_ISREG(what.st_mode);
    log->goes_on = go_on && kept;
    const int code = there && kept ? check_log(path) : EXIT_DONE;
    if (code != EXIT_DONE) return code;
    const int how = (log->goes_on ? O_RDWR : O_WRONLY) | (kept ? O_CREAT | O_APPEND : 0);
    int file = there && S_ISFIFO(what.st_mode) ? cli_open_pipe(path, "the log")
                                               : open(path, how | O_CLOEXEC | O_NOCTTY, 0666);
    if (file < 0 && cli_is_pipe(path)) return EXIT_FAILED; // it was told
    if (file >= 0 && kept && !hold(file, path)) return EXIT_FAILED;
    if (file >= 0 && kept && !go_on && fstat(file, &what) == 0 && what.st_size > 0 &&
        (file = put_aside(file, path, quiet)) < 0)
        return EXIT_FAILED;
    if (file >= 0) log->file = fdopen(file, log->goes_on ? "a+" : "w");
    if (!log->file) {
        cli_fail(EXIT_FAILED, "the log '%s' cannot be opened: %s", path, strerror(errno));
        if (file >= 0) close(file);
        return EXIT_FAILED;
    }
    if (log->goes_on && !fseek(log->file, -1, SEEK_END) && fgetc(log->file) != '\n' && !end_last_line(log))
        cannot_write(log);
    return log->failed;
}

/** An object as text in one piece, to be freed; NULL if memory is out. (json_dumps passes over that within a
 *  name.) */
static char *line_text(const json_t *line) {
    char *text = NULL;
    size_t n;
    FILE *memory = line ? open_memstream(&text, &n) : NULL;
    if (!memory) return NULL;
    bool good = json_dumpf(line, memory, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(15)) == 0;
    good = !ferror(memory) && good;
    if (fclose(memory) == 0 && good) return text;
    free(text);
    return NULL;
}

/** Write an object as a line, and take it. */
static bool write_line(watch_log *log, json_t *line) {
    bool written = true;
    if (log->file && !log->failed) {
        errno = ENOMEM; // what it is if there is no text
        char *text = line_text(line);
        written = text && fprintf(log->file, "%s\n", text) > 0 && !fflush(log->file);
        free(text);
        if (!written) cannot_write(log);
    }
    json_decref(line);
    return written && !log->failed;
}

/** The step that a line is of; 0: none. */
static int64_t step_of(const char *text, size_t n) {
    json_t *line = cli_json_read(text, n);
    const json_t *step = json_object_get(line, "step");
    int64_t number = json_object_get(line, "event") || !json_is_integer(step) ? 0 : json_integer_value(step);
    json_decref(line);
    return number;
}

/** A training goes on from before where its log ends: cut off the steps that are done again, with all behind
 *  them. */
static bool cut_back(watch_log *log, int64_t step) {
    char *text = malloc(MOST_LINE_BYTES);
    off_t at = 0;
    bool good = text != NULL;
    rewind(log->file);
    for (size_t n; good && (n = next_line(log->file, text)) > 0; at += (off_t)n) {
        if (n > MOST_LINE_BYTES || step_of(text, n) < step) continue;
        good = !ftruncate(fileno(log->file), at);
        break;
    }
    good = good && !ferror(log->file) && !fseek(log->file, 0, SEEK_END);
    free(text);
    return good || cannot_write(log);
}

/** Takes the settings. */
static json_t *begin_json(const watch_moment *now, json_t *settings) {
    json_t *devices = json_object();
    for (int i = 0; i < now->n_devices; i++) {
        const watch_device *device = &now->devices[i];
        json_object_set_new(devices, device->name,
                            json_pack("{s:s, s:I}", "label", device->label, "predicted_peak_bytes",
                                      (json_int_t)device->predicted_bytes));
    }
    json_t *line = json_pack(
        "{s:s, s:s, s:s, s:I, s:I, s:s, s:I, s:I, s:I, s:I, s:o, s:o}", "event", "begin", "version",
        now->version, "model", now->model, "process", (json_int_t)now->process, "batch_size",
        (json_int_t)now->batch_size, "unit", now->unit, "unit_each", (json_int_t)now->unit_each, "steps",
        (json_int_t)now->steps, "epochs", (json_int_t)now->epochs, "batches", (json_int_t)now->batches,
        "devices", devices, "settings", settings ? settings : json_null());
    if (line && now->ranks) {
        json_object_set_new(line, "rank", json_integer(now->rank));
        json_object_set_new(line, "ranks", json_integer(now->ranks));
    }
    return line;
}

bool watch_log_begin(watch_log *log, const watch_moment *now, json_t *settings) {
    if (!log->file) {
        json_decref(settings);
        return true;
    }
    if (log->goes_on && !cut_back(log, now->step)) {
        json_decref(settings);
        return false;
    }
    return write_line(log, begin_json(now, settings));
}

static json_t *device_json(const watch_device *device) {
    json_t *object =
        json_pack("{s:I, s:I, s:o, s:I, s:o, s:o, s:o}", "used_bytes", (json_int_t)device->used_bytes,
                  "peak_bytes", (json_int_t)device->peak_bytes, "budget_bytes",
                  device->budget_bytes ? json_integer((json_int_t)device->budget_bytes) : json_null(),
                  "memory_bytes", (json_int_t)device->memory_bytes, "busy", cli_real(device->busy), "share",
                  cli_real(device->share), "images_per_second", cli_real(device->images_per_second));
    if (device->layers >= 0) json_object_set_new(object, "layers", json_integer(device->layers));
    if (device->lost) json_object_set_new(object, "lost", json_true());
    return object;
}

static json_t *devices_json(const watch_moment *now) {
    json_t *devices = json_object();
    for (int i = 0; i < now->n_devices; i++)
        json_object_set_new(devices, now->devices[i].name, device_json(&now->devices[i]));
    return devices;
}

static json_t *step_json(const watch_moment *now) {
    return json_pack("{s:I, s:I, s:I, s:I, s:o, s:f, s:f, s:o, s:o, s:o}", "step", (json_int_t)now->step,
                     "steps", (json_int_t)now->steps, "epoch", (json_int_t)now->epoch, "batch",
                     (json_int_t)now->batch, "loss", cli_real(now->loss), "lr", now->lr, "seconds",
                     now->seconds, "left_seconds", cli_real(now->left_seconds), "images_per_second",
                     cli_real(now->images_per_second), "devices", devices_json(now));
}

bool watch_log_step(watch_log *log, const watch_moment *now) {
    return !log->file || write_line(log, step_json(now));
}

char *watch_text(const watch_moment *now) {
    json_t *begin = begin_json(now, NULL), *step = step_json(now);
    json_object_set_new(begin, "started", json_real(now->started));
    if (*now->command) json_object_set_new(begin, "command", json_string(now->command));
    if (now->asked) json_object_set_new(begin, "asked", json_true());
    if (*now->log) json_object_set_new(begin, "log", json_string(now->log));
    char *first = line_text(begin), *second = line_text(step);
    const size_t n = first && second ? strlen(first) + strlen(second) + 3 : 0;
    char *text = n ? malloc(n) : NULL;
    if (text) snprintf(text, n, "%s\n%s\n", first, second);
    free(first);
    free(second);
    json_decref(begin);
    json_decref(step);
    return text;
}

bool watch_log_epoch(watch_log *log, const clv_train_epoch *epoch) {
    if (!log->file) return true;
    double loss = epoch->evaluated ? epoch->test.loss : NAN,
           accuracy = epoch->evaluated ? epoch->test.accuracy : NAN;
    json_t *line = json_pack("{s:s, s:I, s:o, s:o, s:o, s:f}", "event", "epoch", "epoch",
                             (json_int_t)epoch->epoch, "train_loss", cli_real(epoch->train_loss), "test_loss",
                             cli_real(loss), "test_accuracy", cli_real(accuracy), "seconds", epoch->seconds);
    if (line && epoch->evaluated && epoch->test.n_values)
        json_object_set_new(line, "metrics", cli_metrics_json(&epoch->test));
    if (line && epoch->best) json_object_set_new(line, "best", json_true());
    return write_line(log, line);
}

bool watch_log_end(watch_log *log, const watch_moment *now) {
    if (!log->file) return true;
    return write_line(log, json_pack("{s:s, s:s, s:s, s:f, s:o, s:o}", "event", "end", "state",
                                     watch_state_name(now->state), "sentence", now->sentence, "seconds",
                                     now->seconds, "train_loss", cli_real(now->loss), "images_per_second",
                                     cli_real(now->images_per_second)));
}

int watch_log_close(watch_log *log) {
    bool closed = !log->file || !fclose(log->file);
    log->file = NULL;
    if (!closed && !log->failed) cannot_write(log);
    return log->failed;
}

// ---- reading ----------------------------------------------------------------------------------------------

static int64_t whole_at(const json_t *object, const char *key, int64_t otherwise) {
    const json_t *value = json_object_get(object, key);
    return json_is_integer(value) ? json_integer_value(value) : otherwise;
}

static uint64_t bytes_at(const json_t *object, const char *key) {
    int64_t value = whole_at(object, key, 0);
    return value > 0 ? (uint64_t)value : 0;
}

static double real_at(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

/** A log may come from anywhere: what would move a terminal's cursor is not kept. */
static void clean(char *text) {
    for (unsigned char *at = (unsigned char *)text; *at; at++) {
        bool control = *at < 0x20 || *at == 0x7f;
        if (*at == 0xC2 && at[1] >= 0x80 && at[1] < 0xA0) control = true, at[1] = ' '; // the same in UTF-8
        if (control) *at = ' ';
    }
}

/** NULL: an empty text. */
static void copy_text(const char *value, char *text, size_t bytes) {
    size_t n = value ? strlen(value) : 0;
    if (n >= bytes) // cut before a letter, not within: half of one is not UTF-8, and no JSON can hold it
        for (n = bytes - 1; n && ((unsigned char)value[n] & 0xC0) == 0x80;) n--;
    if (n) memcpy(text, value, n);
    text[n] = 0;
    clean(text);
}

static void text_at(const json_t *object, const char *key, char *text, size_t bytes) {
    copy_text(json_string_value(json_object_get(object, key)), text, bytes);
}

static watch_device *device_named(watch_moment *now, const char *name) {
    for (int i = 0; i < now->n_devices; i++)
        if (!strcmp(now->devices[i].name, name)) return &now->devices[i];
    if (now->n_devices == WATCH_DEVICES || strlen(name) >= sizeof now->devices[0].name) return NULL;
    watch_device *device = &now->devices[now->n_devices++];
    *device = (watch_device){.busy = NAN, .share = NAN, .images_per_second = NAN, .layers = -1};
    memcpy(device->name, name, strlen(name));
    clean(device->name);
    return device;
}

static void read_devices(watch_moment *now, json_t *devices, bool begin) {
    const char *name;
    json_t *object;
    json_object_foreach(devices, name, object) {
        watch_device *device = device_named(now, name);
        if (!device) continue;
        if (begin) {
            text_at(object, "label", device->label, sizeof device->label);
            device->predicted_bytes = bytes_at(object, "predicted_peak_bytes");
            continue;
        }
        device->used_bytes = bytes_at(object, "used_bytes");
        device->peak_bytes = bytes_at(object, "peak_bytes");
        device->memory_bytes = bytes_at(object, "memory_bytes");
        device->budget_bytes = bytes_at(object, "budget_bytes");
        device->busy = real_at(object, "busy");
        device->share = real_at(object, "share");
        device->images_per_second = real_at(object, "images_per_second");
        int64_t layers = whole_at(object, "layers", -1);
        device->layers = layers >= 0 && layers <= INT32_MAX ? (int)layers : -1;
        device->lost = json_is_true(json_object_get(object, "lost"));
    }
}

static void read_begin(watch_moment *now, const json_t *line) {
    *now = (watch_moment){.loss = NAN,
                          .lr = NAN,
                          .images_per_second = NAN,
                          .left_seconds = NAN,
                          .test_loss = NAN,
                          .test_accuracy = NAN};
    text_at(line, "version", now->version, sizeof now->version);
    text_at(line, "command", now->command, sizeof now->command);
    text_at(line, "model", now->model, sizeof now->model);
    now->asked = json_is_true(json_object_get(line, "asked"));
    now->process = whole_at(line, "process", 0);
    now->started = json_number_value(json_object_get(line, "started"));
    text_at(line, "log", now->log, sizeof now->log);
    now->batch_size = whole_at(line, "batch_size", 0);
    const int64_t ranks = whole_at(line, "ranks", 0), rank = whole_at(line, "rank", 0);
    if (ranks > 0 && ranks <= INT32_MAX && rank >= 0 && rank < ranks) {
        now->ranks = (int)ranks;
        now->rank = (int)rank;
    }
    text_at(line, "unit", now->unit, sizeof now->unit);
    if (!*now->unit) snprintf(now->unit, sizeof now->unit, "images"); // of an older version
    now->unit_each = whole_at(line, "unit_each", 1);
    now->steps = whole_at(line, "steps", 0);
    now->epochs = whole_at(line, "epochs", 0);
    now->batches = whole_at(line, "batches", 0);
    read_devices(now, json_object_get(line, "devices"), true);
}

static void read_metrics(watch_moment *now, json_t *metrics) {
    const char *name;
    json_t *value;
    now->n_metrics = 0;
    json_object_foreach(metrics, name, value) {
        if (now->n_metrics == CLV_MOST_METRICS) break;
        watch_metric *metric = &now->metrics[now->n_metrics++];
        copy_text(name, metric->name, sizeof metric->name);
        metric->value = json_is_number(value) ? json_number_value(value) : NAN;
    }
}

static void read_step(watch_moment *now, const json_t *line) {
    now->state = WATCH_RUNS;
    now->mean_loss = false;
    now->step = whole_at(line, "step", 0);
    now->steps = whole_at(line, "steps", now->steps);
    now->epoch = whole_at(line, "epoch", 0);
    now->batch = whole_at(line, "batch", 0);
    now->loss = real_at(line, "loss");
    now->lr = real_at(line, "lr");
    now->seconds = real_at(line, "seconds");
    now->left_seconds = real_at(line, "left_seconds");
    now->images_per_second = real_at(line, "images_per_second");
    read_devices(now, json_object_get(line, "devices"), false);
}

static void read_end(watch_moment *now, const json_t *line) {
    char state[24];
    text_at(line, "state", state, sizeof state);
    now->state = !strcmp(state, "done")          ? WATCH_DONE
                 : !strcmp(state, "interrupted") ? WATCH_INTERRUPTED
                                                 : WATCH_FAILED;
    text_at(line, "sentence", now->sentence, sizeof now->sentence);
    const double seconds = real_at(line, "seconds"), loss = real_at(line, "train_loss"),
                 rate = real_at(line, "images_per_second");
    if (isfinite(seconds)) now->seconds = seconds;
    if (isfinite(rate)) now->images_per_second = rate;
    for (int i = 0; isfinite(rate) && i < now->n_devices; i++)
        now->devices[i].images_per_second = rate * (isnan(now->devices[i].share) ? 1 : now->devices[i].share);
    now->mean_loss = isfinite(loss);
    if (now->mean_loss) now->loss = loss;
}

/** A training that goes on: what earlier processes took is not forgotten. */
static void read_begin_again(watch_moment *now, const json_t *line) {
    const double before = now->seconds_before + (isfinite(now->seconds) ? now->seconds : 0);
    read_begin(now, line);
    now->seconds_before = before;
}

/** One whole line. */
static void read_line(watch_reader *reader, const char *text, size_t bytes) {
    if (!bytes) return; // where a half line was ended
    json_t *line = cli_json_read(text, bytes);
    const char *event = json_string_value(json_object_get(line, "event"));
    watch_moment *now = &reader->now;
    reader->lines++;
    if (event && !strcmp(event, "begin")) {
        read_begin_again(now, line);
        json_t *settings = json_object_get(line, "settings");
        json_decref(reader->settings);
        reader->settings = json_is_object(settings) ? json_incref(settings) : NULL;
    } else if (event && !strcmp(event, "epoch")) {
        now->epoch = whole_at(line, "epoch", now->epoch);
        now->test_loss = real_at(line, "test_loss");
        now->test_accuracy = real_at(line, "test_accuracy");
        read_metrics(now, json_object_get(line, "metrics"));
        if (reader->on_epoch) reader->on_epoch(reader->user, now);
    } else if (event && !strcmp(event, "end")) {
        read_end(now, line);
    } else if (!event && json_is_integer(json_object_get(line, "step"))) {
        read_step(now, line);
        if (reader->on_step) reader->on_step(reader->user, now);
    } else if (!event) {
        reader->damaged++; // an unknown event is of a newer version
    }
    json_decref(line);
}

/** Take bytes that came, line by line; what has no end yet is kept. */
static int take_bytes(watch_reader *reader, const char *bytes, size_t n) {
    while (n) {
        const char *end = memchr(bytes, '\n', n);
        size_t part = end ? (size_t)(end - bytes) : n, all = reader->n_text + part;
        if (!reader->passing && all > MOST_LINE_BYTES) {
            reader->passing = true;
            reader->damaged++, reader->lines++;
        }
        if (!reader->passing) {
            if (all > reader->text_room) {
                char *room = realloc(reader->text, 2 * all);
                if (!room) return cli_fail(EXIT_FAILED, "no memory for a line of '%s'", reader->path);
                reader->text = room;
                reader->text_room = 2 * all;
            }
            if (part) memcpy(reader->text + reader->n_text, bytes, part);
            reader->n_text = all;
            if (end) read_line(reader, reader->text, reader->n_text);
        }
        if (end) {
            reader->n_text = 0;
            reader->passing = false;
            part++;
        }
        bytes += part;
        n -= part;
    }
    return EXIT_DONE;
}

bool watch_of_text(const char *text, size_t bytes, watch_moment *out) {
    watch_reader reader = {.file = -1};
    read_begin(&reader.now, NULL);
    const int code = take_bytes(&reader, text, bytes);
    *out = reader.now;
    const bool good =
        code == EXIT_DONE && reader.lines > reader.damaged && !reader.damaged && out->process > 0;
    watch_reader_close(&reader);
    return good;
}

/** Begin at the beginning of the file of that name. */
static int reopen(watch_reader *reader) {
    if (reader->file >= 0) close(reader->file);
    json_decref(reader->settings);
    reader->settings = NULL;
    reader->offset = reader->lines = reader->damaged = 0;
    reader->n_text = 0;
    reader->passing = false;
    read_begin(&reader->now, NULL);
    struct stat what;
    reader->file =
        open(reader->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); // a pipe would wait for a writer
    if (reader->file < 0 || fstat(reader->file, &what)) {
        const int code = errno;
        clv__nearest nearest;
        return cli_fail(EXIT_FAILED, "the log '%s' cannot be opened: %s%s", reader->path, strerror(code),
                        code == ENOENT ? clv__nearest_file(&nearest, reader->path) : "");
    }
    if (!S_ISREG(what.st_mode)) return cli_fail(EXIT_FAILED, "the log '%s' is no file", reader->path);
    reader->device = (uint64_t)what.st_dev;
    reader->inode = (uint64_t)what.st_ino;
    return EXIT_DONE;
}

int watch_reader_open(watch_reader *reader, const char *path) {
    reader->path = path;
    reader->file = -1;
    return reopen(reader);
}

int watch_reader_poll(watch_reader *reader) {
    struct stat what;
    // While a file is being replaced there may be none for a moment: go on with the one that is open.
    if (!stat(reader->path, &what) &&
        ((uint64_t)what.st_ino != reader->inode || (uint64_t)what.st_dev != reader->device ||
         what.st_size < reader->offset)) {
        int code = reopen(reader);
        if (code != EXIT_DONE) return code;
    }
    char bytes[65536];
    ssize_t n;
    while ((n = pread(reader->file, bytes, sizeof bytes, reader->offset)) > 0) {
        reader->offset += n;
        int code = take_bytes(reader, bytes, (size_t)n);
        if (code != EXIT_DONE) return code;
    }
    if (n < 0) return cli_fail(EXIT_FAILED, "the log '%s' cannot be read: %s", reader->path, strerror(errno));
    if (reader->lines && reader->damaged == reader->lines)
        return cli_fail(EXIT_FAILED, "'%s' is no log of a training: none of its %lld lines is a step",
                        reader->path, (long long)reader->lines);
    return EXIT_DONE;
}

void watch_reader_close(watch_reader *reader) {
    if (reader->file >= 0) close(reader->file);
    free(reader->text);
    json_decref(reader->settings);
    *reader = (watch_reader){.file = -1};
}

json_t *watch_moment_json(const watch_reader *reader, double age_seconds) {
    const watch_moment *now = &reader->now;
    json_t *object = json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:o, s:o}", "model", now->model,
                               "state", watch_state_name(now->state), "unit", now->unit, "unit_each",
                               (json_int_t)now->unit_each, "step", (json_int_t)now->step, "steps",
                               (json_int_t)now->steps, "epoch", (json_int_t)now->epoch, "epochs",
                               (json_int_t)now->epochs, "loss", cli_real(now->loss), "lr", cli_real(now->lr));
    json_t *rest = json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:f, s:s, s:I, s:I, s:o}", "images_per_second",
        cli_real(now->images_per_second), "seconds", cli_real(now->seconds), "left_seconds",
        cli_real(now->left_seconds), "test_loss", cli_real(now->test_loss), "test_accuracy",
        cli_real(now->test_accuracy), "age_seconds", age_seconds, "sentence", now->sentence, "process",
        (json_int_t)now->process, "damaged_lines", (json_int_t)reader->damaged, "devices", devices_json(now));
    if (rest && now->ranks) {
        json_object_set_new(rest, "rank", json_integer(now->rank));
        json_object_set_new(rest, "ranks", json_integer(now->ranks));
    }
    json_t *metrics = json_object();
    for (int i = 0; i < now->n_metrics; i++)
        json_object_set_new(metrics, now->metrics[i].name, cli_real(now->metrics[i].value));
    if (rest) json_object_set(rest, "metrics", metrics);
    json_decref(metrics);
    if (object && rest) json_object_update(object, rest);
    json_decref(rest);
    return object;
}
