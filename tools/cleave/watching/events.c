// SPDX-License-Identifier: Apache-2.0
// TensorBoard's event files, written by hand: records, each with checksums, that hold one Event message.
// Every record goes to the system at once. A training that is resumed writes another file into the folder, as
// TensorBoard has it.
//
// Sources: TFRecord, tensorflow/core/lib/io/record_writer.h; messages,
// tensorboard/compat/proto/{event,summary,histogram}.proto; encoding,
// protobuf.dev/programming-guides/encoding; CRC32C, RFC 3720 appendix B.4.
#include "training/training.h"
#include "watching/events.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

// ---- a message that grows ---------------------------------------------------------------------------------

typedef struct message {
    unsigned char *bytes;
    size_t n, room;
    bool failed; // no memory
} message;

static void put(message *m, const void *bytes, size_t n) {
    if (m->failed) return;
    if (m->n + n > m->room) {
        size_t room = 2 * (m->n + n) + 256;
        unsigned char *grown = realloc(m->bytes, room);
        if (!grown) {
            m->failed = true;
            return;
        }
        m->bytes = grown;
        m->room = room;
    }
    if (n) memcpy(m->bytes + m->n, bytes, n);
    m->n += n;
}

static void put_varint(message *m, uint64_t value) {
    unsigned char bytes[10];
    size_t n = 0;
    do {
        bytes[n++] = (unsigned char)((value & 127) | (value > 127 ? 128 : 0));
        value >>= 7;
    } while (value);
    put(m, bytes, n);
}

/** The wire types of the fields below. */
enum { VARINT = 0, EIGHT_BYTES = 1, LENGTH = 2, FOUR_BYTES = 5 };

static void put_key(message *m, unsigned field, unsigned wire) {
    put_varint(m, field << 3 | wire);
}

static void put_little(message *m, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++) put(m, &(unsigned char){(unsigned char)(value >> 8 * i)}, 1);
}

static void put_whole(message *m, unsigned field, int64_t value) {
    put_key(m, field, VARINT);
    put_varint(m, (uint64_t)value);
}

static void put_raw_double(message *m, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_little(m, bits, 8);
}

static void put_double(message *m, unsigned field, double value) {
    put_key(m, field, EIGHT_BYTES);
    put_raw_double(m, value);
}

static void put_float(message *m, unsigned field, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_key(m, field, FOUR_BYTES);
    put_little(m, bits, 4);
}

static void put_bytes(message *m, unsigned field, const void *bytes, size_t n) {
    put_key(m, field, LENGTH);
    put_varint(m, n);
    put(m, bytes, n);
}

static void put_doubles(message *m, unsigned field, const double *values, size_t n) {
    put_key(m, field, LENGTH);
    put_varint(m, 8 * n);
    for (size_t i = 0; i < n; i++) put_raw_double(m, values[i]);
}

/** Put a message into another one as a field, and take it. */
static void put_message(message *m, unsigned field, message *inner) {
    m->failed |= inner->failed;
    put_bytes(m, field, inner->bytes, inner->n);
    free(inner->bytes);
    *inner = (message){0};
}

// ---- a record ---------------------------------------------------------------------------------------------

static uint32_t masked_crc32c(const unsigned char *bytes, size_t n) {
    uint32_t crc = ~0u;
    for (size_t i = 0; i < n; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
    }
    crc = ~crc;
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static bool cannot_write(events_file *events) {
    events->failed =
        cli_fail(EXIT_FAILED, "the event file '%s' could not be written: %s", events->path, strerror(errno));
    return false;
}

/** Write an Event with a field of `what` (none if NULL), and take that. */
static bool write_event(events_file *events, int64_t step, unsigned field, message *what) {
    if (events->failed) {
        free(what->bytes);
        return false;
    }
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    message event = {0}, record = {0};
    put_double(&event, 1, (double)now.tv_sec + (double)now.tv_nsec / 1e9); // wall_time
    if (step) put_whole(&event, 2, step);
    put_message(&event, field, what);
    put_little(&record, event.n, 8);
    put_little(&record, record.failed ? 0 : masked_crc32c(record.bytes, 8), 4);
    put(&record, event.bytes, event.n);
    put_little(&record, masked_crc32c(event.bytes, event.n), 4);
    errno = ENOMEM;
    bool written = !event.failed && !record.failed &&
                   fwrite(record.bytes, 1, record.n, events->file) == record.n && !fflush(events->file);
    free(event.bytes);
    free(record.bytes);
    return written || cannot_write(events);
}

enum { FILE_VERSION = 3, SUMMARY = 5, SESSION_LOG = 7 }; // fields of Event

// ---- what is told -----------------------------------------------------------------------------------------

/** Begin a Value of a Summary. */
static message value_of(const char *tag) {
    message value = {0};
    put_bytes(&value, 1, tag, strlen(tag));
    return value;
}

static void add_scalar(message *summary, const char *tag, double number) {
    if (isnan(number) && strcmp(tag, "loss/train") != 0) return; // not known; a loss that is none is a fact
    message value = value_of(tag);
    put_float(&value, 2, (float)number);
    put_message(summary, 1, &value);
}

/** Thirty buckets of one width from the least to the largest, as tf.summary.histogram has it. Values that are
 *  not finite are in none of them. */
static void add_histogram(message *summary, const char *tag, const float *values, size_t n) {
    enum { BUCKETS = 30 };
    double least = INFINITY, most = -INFINITY, sum = 0, squares = 0, counts[BUCKETS] = {0}, limits[BUCKETS];
    size_t counted = 0;
    for (size_t i = 0; i < n; i++) {
        double v = (double)values[i];
        if (!isfinite(v)) continue;
        least = fmin(least, v), most = fmax(most, v);
        sum += v, squares += v * v;
        counted++;
    }
    if (!counted) return;
    int buckets = most > least ? BUCKETS : 1;
    for (size_t i = 0; i < n; i++) {
        double v = (double)values[i];
        if (!isfinite(v)) continue;
        int at = buckets > 1 ? (int)((v - least) / (most - least) * buckets) : 0;
        counts[at < buckets ? at : buckets - 1]++;
    }
    for (int i = 0; i < buckets; i++)
        limits[i] = i + 1 < buckets ? least + (most - least) * (i + 1) / buckets : most;
    message histogram = {0}, value = value_of(tag);
    put_double(&histogram, 1, least);
    put_double(&histogram, 2, most);
    put_double(&histogram, 3, (double)counted);
    put_double(&histogram, 4, sum);
    put_double(&histogram, 5, squares);
    put_doubles(&histogram, 6, limits, (size_t)buckets);
    put_doubles(&histogram, 7, counts, (size_t)buckets);
    put_message(&value, 5, &histogram);
    put_message(summary, 1, &value);
}

// ---- the file ---------------------------------------------------------------------------------------------

/** The folder, and those it is in. */
static bool make_folders(const char *folder) {
    char path[4096];
    size_t n = strlen(folder);
    for (size_t i = 1; i <= n && n < sizeof path; i++) {
        if (folder[i] != '/' && folder[i]) continue;
        memcpy(path, folder, i);
        path[i] = 0;
        if (mkdir(path, 0777) && errno != EEXIST) return false;
    }
    return true;
}

int events_open(events_file *events, const char *folder, bool histograms) {
    *events = (events_file){.histograms = histograms};
    if (!folder) return EXIT_DONE;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    // TensorBoard reads a folder's files in the order of their names: time first.
    int n = snprintf(events->path, sizeof events->path, "%s/events.out.tfevents.%010lld.%06ld.cleave.%ld",
                     folder, (long long)now.tv_sec, now.tv_nsec / 1000, (long)getpid());
    if (n < 0 || (size_t)n >= sizeof events->path)
        return cli_fail(EXIT_FAILED, "'%.64s...' is too long a name", folder);
    if (!make_folders(folder))
        return cli_fail(EXIT_FAILED, "the folder '%s' cannot be made: %s", folder, strerror(errno));
    int file = open(events->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    events->file = file < 0 ? NULL : fdopen(file, "wb");
    if (!events->file) {
        int why = errno;
        if (file >= 0) close(file);
        return cli_fail(EXIT_FAILED, "the event file '%s' cannot be made: %s", events->path, strerror(why));
    }
    message version = {0};
    put(&version, "brain.Event:2", 13);
    write_event(events, 0, FILE_VERSION, &version);
    return events->failed;
}

/** The training begins or goes on with this step: what older files say of it and of later ones is void. */
static bool begin_at(events_file *events, int64_t step) {
    message start = {0};
    if (events->begun) return true;
    events->begun = true;
    put_whole(&start, 1, 1); // SessionLog.START
    return write_event(events, step, SESSION_LOG, &start);
}

bool events_step(events_file *events, const watch_moment *now) {
    if (!events->file) return true;
    if (!begin_at(events, now->step)) return false;
    message summary = {0};
    add_scalar(&summary, "loss/train", now->loss);
    add_scalar(&summary, "learning_rate", now->lr);
    add_scalar(&summary, "images_per_second", now->images_per_second);
    for (int i = 0; i < now->n_devices; i++) {
        char tag[64];
        snprintf(tag, sizeof tag, "memory_MiB/%s", now->devices[i].name);
        add_scalar(&summary, tag, (double)now->devices[i].used_bytes / (1 << 20));
        snprintf(tag, sizeof tag, "busy/%s", now->devices[i].name);
        add_scalar(&summary, tag, now->devices[i].busy);
    }
    return write_event(events, now->step, SUMMARY, &summary);
}

/** A histogram of each trained parameter. */
static bool add_parameters(events_file *events, message *summary, clv_session *session) {
    for (int i = 0; i < clv_session_info_get(session).n_tensors; i++) {
        clv_session_tensor tensor = clv_session_get(session, i);
        if (!tensor.trainable || tensor.dtype != CLV_DTYPE_F32 || !tensor.bytes) continue;
        char tag[640];
        float *values = malloc(tensor.bytes);
        clv_status status = values ? clv_session_read(session, i, values, tensor.bytes) : CLV_E_HOST_MEMORY;
        snprintf(tag, sizeof tag, "parameters/%s", tensor.name);
        if (status == CLV_OK) add_histogram(summary, tag, values, tensor.bytes / sizeof *values);
        free(values);
        if (status == CLV_OK) continue;
        events->failed = values ? cli_fail_status(clv_session_info_get(session).runtime, status)
                                : cli_fail(EXIT_FAILED, "no memory for a histogram of '%s'", tensor.name);
        return false;
    }
    return true;
}

bool events_epoch(events_file *events, const watch_moment *now, const clv_train_epoch *epoch,
                  clv_session *session) {
    if (!events->file || !now->step) return true; // resumed at the very end: no step was told
    message summary = {0};
    add_scalar(&summary, "loss/epoch", epoch->train_loss);
    if (epoch->evaluated) {
        add_scalar(&summary, "loss/test", epoch->test.loss);
        add_scalar(&summary, "accuracy/test", epoch->test.accuracy);
        for (int i = 0; i < epoch->test.n_values; i++) {
            char name[CLI_METRIC_BYTES], tag[CLI_METRIC_BYTES + 8];
            const clv_metric_value *metric = &epoch->test.values[i];
            snprintf(tag, sizeof tag, "%s/test", cli_metric_name(metric, name));
            if (strcmp(name, "accuracy")) add_scalar(&summary, tag, metric->value);
        }
    }
    if (events->histograms) add_parameters(events, &summary, session);
    return write_event(events, now->step, SUMMARY, &summary);
}

int events_close(events_file *events) {
    bool closed = !events->file || !fclose(events->file);
    events->file = NULL;
    if (!closed && !events->failed) cannot_write(events);
    return events->failed;
}
