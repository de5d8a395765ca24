// SPDX-License-Identifier: Apache-2.0
// The loader: a ring of buffers that threads of its own fill, one batch each, in the order of the epochs. One thread makes a batch
// at a time; several share the samples of the batches that are being made, so that more threads take no more memory.
// A batch depends on (dataset, seed, epoch, index) alone, so the loader can begin anywhere with the same
// bits. Source of the shuffle: Fisher, Yates 1938; Durstenfeld 1964 (CACM 7(7), algorithm 235).
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/random.h"
#include "data/dataset.h"
#include "data/mixup.h"
#include "io/array.h"
#include "io/shown.h"

enum { ALIGNMENT = 64, MAX_BUFFERS = 64, MAX_THREADS = 64 };

typedef enum buffer_state { FREE, FILLING, MIXING, READY, HELD } buffer_state;

typedef struct buffer {
    buffer_state state;
    clv_batch batch; // of all but FREE ones
    char *samples, *targets;
    uint32_t *indices;   // [batch]: which samples; NULL without shuffling: those that follow each other
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
    void *memory;      // own; NULL when the caller gave it
    uint32_t *indices; // of all buffers
    pthread_t threads[MAX_THREADS];
    int n_threads;

    pthread_mutex_t lock; // guards what follows, but not what FILLING, MIXING and HELD buffers point to
    pthread_cond_t changed;
    bool stop;
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

static size_t bytes_of(int64_t numel, clv_dtype dtype) {
    return (size_t)numel * clv_dtype_bytes(dtype);
}

static buffer *find_buffer(clv_loader *loader, buffer_state state) {
    for (int i = 0; i < loader->n_buffers; i++) {
        if (loader->buffers[i].state == state) return &loader->buffers[i];
    }
    return NULL;
}

/** The next batch to make, into a free buffer. Under the lock. */
static void begin_batch(clv_loader *loader, buffer *b) {
    const position at = loader->to_make;
    const int64_t first = at.index * loader->config.batch, left = loader->dataset->count - first;
    const int64_t n = left < loader->config.batch ? left : loader->config.batch;
    make_order(loader, at.epoch);
    if (loader->order) memcpy(b->indices, loader->order + first, (size_t)n * sizeof *b->indices);
    b->batch = (clv_batch){.samples = b->samples,
                           .targets = b->targets,
                           .n = n,
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
    const size_t sample_bytes = bytes_of(dataset->numel, dataset->dtype);
    const size_t target_bytes = bytes_of(loader->mixed.target_numel, loader->mixed.target_dtype);
    const clv__draw draw = {loader->config.seed, b->batch.epoch};
    for (int64_t i = first; i < first + n; i++) {
        const int64_t sample = loader->order ? b->indices[i] : b->batch.index * loader->config.batch + i;
        char *to = b->samples + (size_t)i * sample_bytes, *target = b->targets + (size_t)i * target_bytes;
        if (dataset->draw)
            CLV_TRY(dataset->draw(dataset, sample, &draw, error, to, target));
        else
            dataset->read(dataset, sample, to, target);
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
    if (!found && (found = find_buffer(loader, FREE))) begin_batch(loader, found);
    return found;
}

/** Mix a batch whose samples are made. Under the lock, but while it is mixed. */
static void mix(clv_loader *loader, buffer *b) {
    const clv__draw draw = {loader->config.seed, b->batch.epoch};
    b->state = MIXING;
    pthread_mutex_unlock(&loader->lock);
    const double lambda = clv__mixup_lambda(&draw, b->batch.index, loader->config.mixup);
    clv__mixup(&loader->mixed, lambda, b->batch.n, (float *)b->samples, b->targets);
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
        const int64_t first = b->taken, n = loader->dataset->workers ? 1 : b->batch.n;
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

/** Bytes of one buffer and of its samples, each rounded up so that what follows is aligned; false: not legal. */
static bool buffer_bytes(const clv_dataset *dataset, const clv_loader_config *config, size_t *samples,
                         size_t *all) {
    if (config->batch < 1 || buffers_of(config) < 2 || buffers_of(config) > MAX_BUFFERS) return false;
    // A batch is never larger than the dataset.
    size_t n = (size_t)(config->batch < dataset->count ? config->batch : dataset->count), targets;
    const clv__mixed mixed = clv__mixed_of(dataset, config);
    if (!clv__size_mul(n, (size_t)dataset->numel, samples) ||
        !clv__size_mul(*samples, clv_dtype_bytes(dataset->dtype), samples) ||
        !clv__size_mul(n, (size_t)mixed.target_numel, &targets) ||
        !clv__size_mul(targets, clv_dtype_bytes(mixed.target_dtype), &targets) ||
        *samples > PTRDIFF_MAX / 2 || targets > PTRDIFF_MAX / 4) {
        return false;
    }
    *samples = clv__size_align(*samples, ALIGNMENT);
    *all = *samples + clv__size_align(targets, ALIGNMENT);
    return *all <= PTRDIFF_MAX / MAX_BUFFERS;
}

size_t clv_loader_memory_bytes(const clv_dataset *dataset, const clv_loader_config *config) {
    size_t samples, all;
    return buffer_bytes(dataset, config, &samples, &all) ? all * (size_t)buffers_of(config) : 0;
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
    if ((uintptr_t)config->memory % ALIGNMENT) {
        CLV_FAIL(error, CLV_E_VALUE, "a loader's memory must be aligned to %d bytes", ALIGNMENT);
    }
    return clv__mixup_check(error, dataset, config);
}

/** Samples of a batch: never more than the dataset has. */
static size_t all_samples(const clv_loader *loader) {
    const int64_t batch = loader->config.batch, count = loader->dataset->count;
    return (size_t)(batch < count ? batch : count);
}

static clv_status take_memory(clv_loader *loader) {
    size_t samples, all;
    const clv_loader_config *config = &loader->config;
    loader->n_buffers = buffers_of(config);
    if (!buffer_bytes(loader->dataset, config, &samples, &all)) {
        CLV_FAIL(loader->error, CLV_E_VALUE, "a batch of %" PRId64 " samples is too large to count",
                 config->batch);
    }
    if (!config->memory) {
        loader->memory = aligned_alloc(ALIGNMENT, all * (size_t)loader->n_buffers);
        if (!loader->memory) {
            CLV_FAIL(loader->error, CLV_E_HOST_MEMORY,
                     "no host memory for %d batches of %zu bytes; make the batch smaller", loader->n_buffers,
                     all);
        }
    }
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
    char *at = config->memory ? config->memory : loader->memory;
    for (int i = 0; i < loader->n_buffers; i++, at += all) {
        loader->buffers[i].samples = at;
        loader->buffers[i].targets = at + samples;
    }
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

static clv_status start(clv_loader *loader) {
    const int wanted = loader->dataset->workers > 1 ? loader->dataset->workers : 1;
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

int64_t clv_loader_batches(const clv_loader *loader) {
    return loader->n_batches;
}

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

clv_status clv_loader_next(clv_loader *loader, clv_batch *out) {
    CLV_TRY(CLV__GIVEN(NULL, loader));
    CLV_TRY(CLV__USABLE(loader->error, out));
    *out = (clv_batch){0};
    pthread_mutex_lock(&loader->lock);
    int held = 0;
    for (int i = 0; i < loader->n_buffers; i++) held += loader->buffers[i].state == HELD;
    buffer *b = NULL;
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

void clv_loader_release(clv_loader *loader, clv_batch *batch) {
    if (!batch->samples || !clv__error_at_home(loader->error))
        return; // released already, or in another process
    pthread_mutex_lock(&loader->lock);
    loader->buffers[batch->buffer].state = FREE;
    pthread_cond_broadcast(&loader->changed);
    pthread_mutex_unlock(&loader->lock);
    batch->samples = NULL;
    batch->targets = NULL;
}

void clv_loader_position(const clv_loader *loader, int64_t *epoch, int64_t *index) {
    *epoch = loader->to_give.epoch; // changed by this thread only
    *index = loader->to_give.index;
}

clv_status clv_loader_seek(clv_loader *loader, int64_t epoch, int64_t index) {
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
