// SPDX-License-Identifier: Apache-2.0
// The loader: a ring of buffers that threads of its own fill, one batch each, in the order of the epochs. One thread makes a batch
// at a time; several share the samples of the batches that are being made, so that more threads take no more memory.
// Who takes a batch may give the memory that it is made in: then it is made when it is asked for, and copied nowhere.
// A batch depends on (dataset, seed, epoch, index) alone, so the loader can begin anywhere with the same
// bits. Source of the shuffle: Fisher, Yates 1938; Durstenfeld 1964 (CACM 7(7), algorithm 235).
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/random.h"
#include "data/dataset.h"
#include "data/mixup.h"
#include "data/rows.h"
#include "io/array.h"
#include "io/shown.h"

enum { ALIGNMENT = 64, MAX_BUFFERS = 64, MAX_THREADS = 64, COPYING_THREADS = 4 };

typedef enum buffer_state { FREE, FILLING, MIXING, READY, HELD } buffer_state;

typedef struct buffer {
    buffer_state state;
    clv_batch batch;                      // of all but FREE ones
    const void *fields[CLV__MOST_FIELDS]; // inputs, then targets, where they are made:
    void *own[CLV__MOST_FIELDS];          // in its memory, or in that of who takes the batch
    uint32_t *indices;   // [batch]: which samples; NULL without shuffling: those that follow each other
    int64_t first;       // of the batch's samples, the first that is made here
    int64_t taken, done; // of FILLING ones: samples that threads have begun, and made
    bool stale;          // of FILLING and MIXING ones: a seek came between
    clv_status status;   // of the first sample that could not be read, and its sentence
    char *sentence;
} buffer;

/** Where in the sequence of batches. */
typedef struct position {
    int64_t epoch, index;
} position;

struct clv_loader {
    clv__error *error;
    const clv_dataset *dataset;
    clv_loader_config config;
    int64_t n_batches; // of an epoch
    clv__mixed mixed;  // targets of batches
    void *memory;      // of `bytes`
    size_t bytes;
    uint32_t *indices; // of all buffers
    int n_fields;
    size_t each[CLV__MOST_FIELDS]; // bytes of a sample's
    pthread_t threads[MAX_THREADS];
    int n_threads;
    int64_t share; // samples that a thread takes at a time

    pthread_mutex_t lock; // guards what follows, but not what FILLING, MIXING and HELD buffers point to
    pthread_cond_t changed;
    bool stop;
    bool on_demand; // batches are begun by who takes them
    buffer buffers[MAX_BUFFERS];
    int n_buffers;
    position to_make, to_give;
    uint32_t *order; // the epoch's order of samples; NULL without shuffling
    int64_t order_epoch;
};

/** The end of an epoch is the start of the next. */
static position normal(int64_t n_batches, position at) {
    return at.index == n_batches ? (position){at.epoch + 1, 0} : at;
}

static void advance(const clv_loader *loader, position *at) {
    *at = normal(loader->n_batches, (position){at->epoch, at->index + 1});
}

/** Do its batches hold bytes where samples are bytes? Not where they are mixed. */
static bool gives_bytes(const clv_loader_config *config) {
    return config->bytes && !(config->mixup > 0);
}

// ---------------------------------------------------------------------------------------------------------------
// The threads.

static void make_order(clv_loader *loader, int64_t epoch) {
    if (!loader->order || loader->order_epoch == epoch) return;
    uint32_t n = (uint32_t)loader->dataset->count;
    clv__random random;
    clv__random_init(&random, loader->config.seed, CLV__STREAM_SHUFFLE, (uint64_t)epoch);
    for (uint32_t i = 0; i < n; i++) loader->order[i] = i;
    for (uint32_t i = n - 1; i > 0; i--) {
        uint32_t k = clv__random_below(&random, i + 1), sample = loader->order[i];
        loader->order[i] = loader->order[k];
        loader->order[k] = sample;
    }
    loader->order_epoch = epoch;
}

static buffer *find_buffer(clv_loader *loader, buffer_state state) {
    for (int i = 0; i < loader->n_buffers; i++) {
        if (loader->buffers[i].state == state) return &loader->buffers[i];
    }
    return NULL;
}

/** The next batch to make, into a free buffer, or into `to` where that has room for `rows` samples of a field. Under the lock. */
static void begin_batch(clv_loader *loader, buffer *b, void *const *to, int64_t rows) {
    const position at = loader->to_make;
    const int64_t first = at.index * loader->config.batch, left = loader->dataset->count - first;
    const int64_t whole = left < loader->config.batch ? left : loader->config.batch;
    const clv__rank_rows own =
        clv__rows_of_rank(whole, loader->config.rank, loader->config.ranks, loader->config.rank_shares);
    make_order(loader, at.epoch);
    b->first = first + own.first;
    if (loader->order) memcpy(b->indices, loader->order + b->first, (size_t)own.rows * sizeof *b->indices);
    for (int k = 0; k < loader->n_fields; k++)
        b->fields[k] = to && to[k] && own.rows == rows ? to[k] : b->own[k];
    const int n_inputs = clv_dataset_info_get(loader->dataset).n_inputs;
    b->batch = (clv_batch){.samples = b->fields[0],
                           .targets = b->fields[n_inputs],
                           .each_input = b->fields,
                           .each_target = b->fields + n_inputs,
                           .n = own.rows,
                           .whole = whole,
                           .epoch = at.epoch,
                           .index = at.index,
                           .last = at.index == loader->n_batches - 1,
                           .buffer = (int)(b - loader->buffers)};
    b->state = FILLING;
    b->taken = b->done = 0;
    b->stale = false;
    b->status = CLV_OK;
    advance(loader, &loader->to_make);
}

/** Samples first to first + n of a batch. Without the lock: nobody else writes there. */
static clv_status fill(const clv_loader *loader, const buffer *b, int64_t first, int64_t n,
                       clv__error *error) {
    const clv_dataset *dataset = loader->dataset;
    const clv__draw draw = {loader->config.seed, b->batch.epoch, gives_bytes(&loader->config)};
    for (int64_t i = first; i < first + n; i++) {
        const int64_t sample = loader->order ? b->indices[i] : b->first + i;
        void *to[CLV__MOST_FIELDS];
        for (int k = 0; k < loader->n_fields; k++)
            to[k] = (char *)(uintptr_t)b->fields[k] + (size_t)i * loader->each[k];
        if (dataset->draw)
            CLV_TRY(dataset->draw(dataset, sample, &draw, error, to[0], to[1]));
        else if (draw.bytes && dataset->read_bytes)
            dataset->read_bytes(dataset, sample, to);
        else
            clv_dataset_read(dataset, sample, to);
    }
    return CLV_OK;
}

/** Of the batches that are being made, the first in which a sample is left, or the next one. NULL: there is nothing to do. */
static buffer *find_work(clv_loader *loader) {
    buffer *found = NULL;
    for (int i = 0; i < loader->n_buffers; i++) {
        buffer *b = &loader->buffers[i];
        if (b->state != FILLING || b->taken == b->batch.n) continue;
        if (!found || b->batch.epoch < found->batch.epoch ||
            (b->batch.epoch == found->batch.epoch && b->batch.index < found->batch.index))
            found = b;
    }
    if (!found && !loader->on_demand && (found = find_buffer(loader, FREE)))
        begin_batch(loader, found, NULL, 0);
    return found;
}

/** Mix a batch whose samples are made. Under the lock, but while it is mixed. */
static void mix(clv_loader *loader, buffer *b) {
    const clv__draw draw = {.seed = loader->config.seed, .epoch = b->batch.epoch};
    b->state = MIXING;
    pthread_mutex_unlock(&loader->lock);
    const double lambda = clv__mixup_lambda(&draw, b->batch.index, loader->config.mixup);
    clv__mixup(&loader->mixed, lambda, b->batch.n, (float *)(uintptr_t)b->fields[0],
               (void *)(uintptr_t)b->fields[1]);
    pthread_mutex_lock(&loader->lock);
}

/** So many samples are made, or given up. Under the lock. */
static void end_samples(clv_loader *loader, buffer *b, int64_t n) {
    b->done += n;
    if (b->done < b->batch.n) return;
    if (loader->config.mixup > 0 && !b->stale && b->status == CLV_OK) mix(loader, b);
    b->state = b->stale ? FREE : READY;
    pthread_cond_broadcast(&loader->changed);
}

static void keep_failure(buffer *b, clv_status status, clv__error *error) {
    if (status == CLV_OK || b->status != CLV_OK) return;
    b->status = status;
    free(b->sentence);
    b->sentence = clv__strdup(clv__error_text(error));
}

static void *work(void *argument) {
    clv_loader *loader = argument;
    clv__error error; // a thread's own
    clv__error_init(&error);
    pthread_mutex_lock(&loader->lock);
    while (!loader->stop) {
        buffer *b = find_work(loader);
        if (!b) {
            pthread_cond_wait(&loader->changed, &loader->lock);
            continue;
        }
        const int64_t first = b->taken, left = b->batch.n - first,
                      n = left < loader->share ? left : loader->share;
        b->taken += n;
        pthread_mutex_unlock(&loader->lock);
        const clv_status status = fill(loader, b, first, n, &error);
        pthread_mutex_lock(&loader->lock);
        keep_failure(b, status, &error);
        end_samples(loader, b, n);
    }
    pthread_mutex_unlock(&loader->lock);
    clv__error_destroy(&error);
    return NULL;
}

// ---------------------------------------------------------------------------------------------------------------
// Making one.

static int buffers_of(const clv_loader_config *config) {
    return config->buffers ? config->buffers : 3;
}

/** Bytes of a sample's k-th field, mixed or not; of that field of a buffer, rounded up so that what follows is aligned. false: too
 *  many. */
static bool field_bytes(const clv_dataset *dataset, const clv_loader_config *config, int k, size_t n,
                        size_t *each, size_t *all) {
    const clv_port port = clv__dataset_field(dataset, k);
    const clv_shape shape = clv_port_shape(&port, 1);
    const bool changed = k && config->mixup > 0; // classes become probabilities
    const clv__mixed mixed = clv__mixed_of(dataset, config);
    const int64_t numel = changed ? mixed.target_numel : clv_shape_numel(&shape);
    const bool bytes = gives_bytes(config) && clv__dataset_bytes(dataset, k).channels;
    const clv_dtype dtype = changed ? mixed.target_dtype : bytes ? CLV_DTYPE_U8 : port.dtype;
    if (numel < 0 || !clv__size_mul((size_t)numel, clv_dtype_bytes(dtype), each) ||
        !clv__size_mul(n, *each, all) || *all > PTRDIFF_MAX / 2)
        return false;
    *all = clv__size_align(*all, ALIGNMENT);
    return true;
}

/** Samples of a batch at most: never more than the dataset has; of ranks the first one's. */
static size_t most_samples(const clv_dataset *dataset, const clv_loader_config *config) {
    const int64_t batch = config->batch < dataset->count ? config->batch : dataset->count;
    if (config->ranks > 1 && config->rank_shares) // and what rounding may give it of another batch
        return (size_t)clv__rows_of_rank(batch, config->rank, config->ranks, config->rank_shares).rows + 1;
    return (size_t)clv__rows_of_rank(batch, 0, config->ranks, NULL).rows;
}

/** Bytes of one buffer; false: not legal. */
static bool buffer_bytes(const clv_dataset *dataset, const clv_loader_config *config, size_t *all) {
    if (config->batch < 1 || buffers_of(config) < 2 || buffers_of(config) > MAX_BUFFERS) return false;
    size_t n = most_samples(dataset, config), each, bytes;
    *all = 0;
    for (int k = 0; k < clv__dataset_fields(dataset); k++) {
        if (!field_bytes(dataset, config, k, n, &each, &bytes)) return false;
        *all += bytes;
        if (*all > PTRDIFF_MAX / MAX_BUFFERS) return false;
    }
    return true;
}

static clv_status check_position(clv__error *error, int64_t n_batches, int64_t epoch, int64_t index) {
    if (epoch < 0 || epoch == INT64_MAX || index < 0 || index > n_batches) {
        CLV_FAIL(error, CLV_E_VALUE,
                 "a loader of %" PRId64 " batches in an epoch cannot begin at epoch %" PRId64
                 ", batch %" PRId64 "; was the checkpoint made with other data or another batch size?",
                 n_batches, epoch, index);
    }
    return CLV_OK;
}

static clv_status check_config(clv__error *error, const clv_dataset *dataset,
                               const clv_loader_config *config) {
    if (config->batch < 1) {
        CLV_FAIL(error, CLV_E_VALUE, "a loader wants a batch of at least 1 sample, not %" PRId64,
                 config->batch);
    }
    if (buffers_of(config) < 2 || buffers_of(config) > MAX_BUFFERS) {
        CLV_FAIL(error, CLV_E_VALUE, "a loader wants 2 to %d buffers, not %d", MAX_BUFFERS, config->buffers);
    }
    if (dataset->count > UINT32_MAX) {
        CLV_FAIL(error, CLV_E_VALUE, "a loader takes %" PRIu32 " samples at most; the dataset has %" PRId64,
                 UINT32_MAX, dataset->count);
    }
    if (config->drop_last && config->batch > dataset->count) {
        CLV_FAIL(error, CLV_E_VALUE,
                 "a batch of %" PRId64 " from %" PRId64 " samples: with drop_last no batch is left",
                 config->batch, dataset->count);
    }
    if (config->ranks < 0 || config->rank < 0 || (config->rank && config->rank >= config->ranks))
        CLV_FAIL(error, CLV_E_VALUE, "a loader for rank %d of %d", config->rank, config->ranks);
    if (config->ranks > 1 && config->mixup > 0)
        CLV_FAIL(error, CLV_E_VALUE, "mixup mixes the samples of a whole batch: no rank has them all");
    return clv__mixup_check(error, dataset, config);
}

static size_t all_samples(const clv_loader *loader) {
    return most_samples(loader->dataset, &loader->config);
}

/** Each buffer's fields one after the other. */
static void place_fields(clv_loader *loader) {
    char *at = loader->memory;
    loader->n_fields = clv__dataset_fields(loader->dataset);
    for (int i = 0; i < loader->n_buffers; i++) {
        for (int k = 0; k < loader->n_fields; k++) {
            size_t bytes = 0;
            loader->buffers[i].own[k] = at;
            field_bytes(loader->dataset, &loader->config, k, all_samples(loader), &loader->each[k], &bytes);
            at += bytes;
        }
    }
}

static clv_status take_memory(clv_loader *loader) {
    size_t all;
    const clv_loader_config *config = &loader->config;
    loader->n_buffers = buffers_of(config);
    if (!buffer_bytes(loader->dataset, config, &all)) {
        CLV_FAIL(loader->error, CLV_E_VALUE, "a batch of %" PRId64 " samples is too large to count",
                 config->batch);
    }
    loader->bytes = all * (size_t)loader->n_buffers;
    loader->memory = aligned_alloc(ALIGNMENT, loader->bytes);
    if (!loader->memory)
        CLV_FAIL(loader->error, CLV_E_HOST_MEMORY,
                 "no host memory for %d batches of %zu bytes; make the batch smaller", loader->n_buffers,
                 all);
    if (config->shuffle) {
        loader->order = clv__alloc((size_t)loader->dataset->count, sizeof *loader->order);
        if (!loader->order) CLV_FAIL(loader->error, CLV_E_HOST_MEMORY, "no host memory to shuffle a dataset");
        loader->order_epoch = -1;
        const size_t n = all_samples(loader);
        loader->indices = clv__alloc(n * (size_t)loader->n_buffers, sizeof *loader->indices);
        if (!loader->indices)
            CLV_FAIL(loader->error, CLV_E_HOST_MEMORY, "no host memory to shuffle a dataset");
        for (int i = 0; i < loader->n_buffers; i++)
            loader->buffers[i].indices = loader->indices + (size_t)i * n;
    }
    place_fields(loader);
    return CLV_OK;
}

static void release_memory(clv_loader *loader) {
    for (int i = 0; i < loader->n_buffers; i++) free(loader->buffers[i].sentence);
    free(loader->indices);
    free(loader->memory);
    free(loader->order);
    free(loader);
}

static void stop(clv_loader *loader) {
    pthread_mutex_lock(&loader->lock);
    loader->stop = true;
    pthread_cond_broadcast(&loader->changed);
    pthread_mutex_unlock(&loader->lock);
    for (int i = 0; i < loader->n_threads; i++) pthread_join(loader->threads[i], NULL);
    pthread_cond_destroy(&loader->changed);
    pthread_mutex_destroy(&loader->lock);
}

/** Threads that copy samples: several if a batch is large. */
static int copying_threads(const clv_loader *loader) {
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (loader->bytes / (size_t)loader->n_buffers < CLV__LARGE_BATCH || cores < 2) return 1;
    return cores < COPYING_THREADS ? (int)cores : COPYING_THREADS;
}

static clv_status start(clv_loader *loader) {
    const int workers = loader->dataset->workers, wanted = workers > 1 ? workers : copying_threads(loader);
    loader->share = workers ? 1 : ((int64_t)all_samples(loader) + wanted - 1) / wanted;
    pthread_mutex_init(&loader->lock, NULL);
    pthread_cond_init(&loader->changed, NULL);
    sigset_t all, before; // signals are the program's: none is handled on these threads
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = 0;
    while (code == 0 && loader->n_threads < wanted && loader->n_threads < MAX_THREADS) {
        code = pthread_create(&loader->threads[loader->n_threads], NULL, work, loader);
        loader->n_threads += code == 0;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code == 0 || loader->n_threads > 0) return CLV_OK; // fewer threads do the same
    stop(loader);
    clv__shown_text reason;
    CLV_FAIL(loader->error, CLV_E_HOST_MEMORY, "the loader's thread could not be started: %s",
             clv__system_reason(code, &reason));
}

clv_status clv_loader_create(clv_runtime *runtime, const clv_dataset *dataset,
                             const clv_loader_config *config, clv_loader **out) {
    CLV_TRY(CLV__USABLE(clv__io_error(runtime), out));
    CLV_TRY(CLV__USABLE(clv__io_error(runtime), dataset));
    CLV_TRY(CLV__USABLE(clv__io_error(runtime), config));
    *out = NULL;
    clv__error *error = clv__io_error(runtime);
    CLV_TRY(check_config(error, dataset, config));
    int64_t n_batches =
        dataset->count / config->batch + (!config->drop_last && dataset->count % config->batch != 0);
    CLV_TRY(check_position(error, n_batches, config->epoch, config->index));
    clv_loader *loader = clv__alloc(1, sizeof *loader);
    if (!loader) CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for a loader");
    loader->error = error;
    loader->dataset = dataset;
    loader->config = *config;
    loader->mixed = clv__mixed_of(dataset, config);
    loader->n_batches = n_batches;
    loader->to_make = loader->to_give = normal(n_batches, (position){config->epoch, config->index});
    clv_status status = take_memory(loader);
    if (status == CLV_OK) status = start(loader);
    if (status != CLV_OK) {
        release_memory(loader);
        return status;
    }
    *out = loader;
    return CLV_OK;
}

void clv_loader_destroy(clv_loader *loader) {
    if (!loader || !clv__error_at_home(loader->error)) return;
    stop(loader);
    release_memory(loader);
}

// ---------------------------------------------------------------------------------------------------------------
// Using one.

/** The buffer that holds the next batch to give, if it is ready. */
static buffer *find_next(clv_loader *loader) {
    for (int i = 0; i < loader->n_buffers; i++) {
        buffer *b = &loader->buffers[i];
        if (b->state == READY && b->batch.epoch == loader->to_give.epoch &&
            b->batch.index == loader->to_give.index) {
            return b;
        }
    }
    return NULL;
}

static clv_status take(clv_loader *loader, void *const *to, int64_t rows, clv_batch *out) {
    *out = (clv_batch){0};
    pthread_mutex_lock(&loader->lock);
    const bool was = loader->on_demand;
    loader->on_demand = to && !loader->dataset->workers && !(loader->config.mixup > 0);
    int held = 0;
    for (int i = 0; i < loader->n_buffers; i++) held += loader->buffers[i].state == HELD;
    buffer *b = find_buffer(loader, FREE);
    const position make = loader->to_make, give = loader->to_give;
    const bool begins = loader->on_demand && b && make.epoch == give.epoch && make.index == give.index;
    if (begins) begin_batch(loader, b, to, rows);
    if (begins || was != loader->on_demand) pthread_cond_broadcast(&loader->changed);
    b = NULL;
    while (held < loader->n_buffers && !(b = find_next(loader)))
        pthread_cond_wait(&loader->changed, &loader->lock);
    const clv_status status = b ? b->status : CLV_OK;
    if (b && status == CLV_OK) {
        b->state = HELD;
        *out = b->batch;
        advance(loader, &loader->to_give);
    }
    pthread_mutex_unlock(&loader->lock);
    if (status != CLV_OK) CLV_FAIL(loader->error, status, "%s", b->sentence ? b->sentence : "no host memory");
    if (!b) {
        CLV_FAIL(loader->error, CLV_E_STATE, "all %d buffers of the loader are held; release a batch first",
                 loader->n_buffers);
    }
    return CLV_OK;
}

clv_status clv_loader_next(clv_loader *loader, clv_batch *out) {
    CLV_TRY(CLV__GIVEN(NULL, loader));
    CLV_TRY(CLV__USABLE(loader->error, out));
    return take(loader, NULL, 0, out);
}

clv_status clv__loader_next_into(clv_loader *loader, void *const *to, int64_t rows, clv_batch *out) {
    return take(loader, to, rows, out);
}

void clv_loader_release(clv_loader *loader, clv_batch *batch) {
    if (!batch->samples || !clv__error_at_home(loader->error))
        return; // released already, or in another process
    pthread_mutex_lock(&loader->lock);
    loader->buffers[batch->buffer].state = FREE;
    pthread_cond_broadcast(&loader->changed);
    pthread_mutex_unlock(&loader->lock);
    batch->samples = NULL;
    batch->targets = NULL;
    batch->each_input = NULL;
    batch->each_target = NULL;
}

clv_status clv__loader_seek(clv_loader *loader, int64_t epoch, int64_t index) {
    CLV_TRY(CLV__GIVEN(NULL, loader));
    CLV_TRY(CLV__USABLE(loader->error, loader));
    CLV_TRY(check_position(loader->error, loader->n_batches, epoch, index));
    pthread_mutex_lock(&loader->lock);
    bool held = find_buffer(loader, HELD) != NULL;
    if (!held) {
        for (int i = 0; i < loader->n_buffers; i++) {
            buffer *b = &loader->buffers[i];
            if (b->state == READY) b->state = FREE;
            if (b->state == MIXING) b->stale = true; // its thread ends it
            if (b->state != FILLING) continue;
            b->stale = true;
            const int64_t left = b->batch.n - b->taken; // nobody need make them
            b->taken = b->batch.n;
            end_samples(loader, b, left);
        }
        loader->to_make = loader->to_give = normal(loader->n_batches, (position){epoch, index});
        pthread_cond_broadcast(&loader->changed);
    }
    pthread_mutex_unlock(&loader->lock);
    if (held)
        CLV_FAIL(loader->error, CLV_E_STATE, "a loader cannot seek while a batch is held; release it first");
    return CLV_OK;
}

clv_loader_info clv_loader_info_get(const clv_loader *loader) {
    return (clv_loader_info){.batches = loader->n_batches,
                             .epoch = loader->to_give.epoch, // changed by this thread only
                             .index = loader->to_give.index,
                             .bytes = loader->bytes};
}
