// SPDX-License-Identifier: Apache-2.0
// The loader: the orders of the golden file, positions, buffers, and threads.
#include "io/support.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "cleave/data.h"
#include "data/dataset.h"

enum { N = 101 }; // samples; sample i holds (i, -i) and has the class i % 7

static clv_dataset *make_dataset(void) {
    clv_array images, labels;
    expect_ok(clv_array_init(support_runtime, CLV_DTYPE_F32, SHAPE(N, 2), &images));
    expect_ok(clv_array_init(support_runtime, CLV_DTYPE_I32, SHAPE(N), &labels));
    for (int i = 0; i < N; i++) {
        ((float *)images.data)[2 * i] = (float)i;
        ((float *)images.data)[2 * i + 1] = (float)-i;
        ((int32_t *)labels.data)[i] = i % 7;
    }
    clv_dataset *dataset = NULL;
    expect_ok(clv_dataset_from_arrays(support_runtime, &images, &labels, NULL, &dataset));
    clv_array_reset(&labels);
    return dataset;
}

static clv_loader *make_loader(const clv_dataset *dataset, clv_loader_config config) {
    clv_loader *loader = NULL;
    expect_ok(clv_loader_create(support_runtime, dataset, &config, &loader));
    return loader;
}

/** Append a batch's samples to `seen`, checking that images and labels belong together. Returns the batch, released. */
static clv_batch take(clv_loader *loader, int *seen) {
    clv_batch batch;
    expect_ok(clv_loader_next(loader, &batch));
    for (int64_t i = 0; i < batch.n; i++) {
        int sample = (int)((const float *)batch.samples)[2 * i];
        assert_true(((const float *)batch.samples)[2 * i + 1] == (float)-sample);
        assert_int_equal(((const int32_t *)batch.targets)[i], sample % 7);
        if (seen) seen[i] = sample;
    }
    clv_loader_release(loader, &batch);
    assert_null(batch.samples);
    clv_loader_release(loader, &batch); // again: nothing happens
    return batch;
}

TEST(in_order_without_shuffling) {
    clv_dataset *dataset = make_dataset();
    static const int64_t sizes[] = {1, 2, 7, 50, 100, 101, 102, 1ll << 40};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        for (int drop = 0; drop < (sizes[k] <= N ? 2 : 1); drop++) {
            clv_loader *loader =
                make_loader(dataset, (clv_loader_config){.batch = sizes[k], .drop_last = drop});
            int64_t n_batches = drop ? N / sizes[k] : sizes[k] > N ? 1 : (N + sizes[k] - 1) / sizes[k];
            assert_int_equal(clv_loader_info_get(loader).batches, n_batches);
            for (int epoch = 0; epoch < 3; epoch++) {
                int next = 0;
                for (int64_t index = 0; index < n_batches; index++) {
                    int seen[N];
                    clv_batch batch = take(loader, seen);
                    assert_true(batch.epoch == epoch && batch.index == index);
                    assert_true(batch.last == (index == n_batches - 1));
                    if (!batch.last || drop) assert_int_equal(batch.n, sizes[k]);
                    for (int64_t i = 0; i < batch.n; i++) assert_int_equal(seen[i], next++);
                }
                assert_int_equal(next, drop ? n_batches * sizes[k] : N);
            }
            clv_loader_destroy(loader);
        }
    }
    clv_dataset_destroy(dataset);
}

TEST(shuffled_as_the_golden_file_says) {
    clv_array orders;
    expect_ok(clv_npy_read(support_runtime, golden("orders.npy"), &orders));
    assert_true(clv_shape_equal(&orders.shape, SHAPE(4, N)));
    const int32_t *wanted = orders.data;
    static const uint64_t seeds[] = {1, 0x123456789ABCDEF0};
    clv_dataset *dataset = make_dataset();
    for (int s = 0; s < 2; s++) {
        for (int64_t size = 1; size <= N; size += 33) {
            clv_loader *loader =
                make_loader(dataset, (clv_loader_config){.batch = size, .shuffle = true, .seed = seeds[s]});
            for (int epoch = 0; epoch < 2; epoch++) {
                int seen[N], at = 0;
                while (at < N) at += (int)take(loader, seen + at).n;
                for (int i = 0; i < N; i++) assert_int_equal(seen[i], wanted[(2 * s + epoch) * N + i]);
            }
            clv_loader_destroy(loader);
        }
    }
    clv_array_reset(&orders);
    clv_dataset_destroy(dataset);
}

TEST(goes_on_anywhere_with_the_same_bits) {
    enum { SIZE = 10, BATCHES = 11, EPOCHS = 3 };
    clv_dataset *dataset = make_dataset();
    clv_loader_config config = {.batch = SIZE, .shuffle = true, .seed = 5};
    clv_loader *loader = make_loader(dataset, config), *other;
    int whole[EPOCHS * BATCHES][SIZE] = {0};
    for (int i = 0; i < EPOCHS * BATCHES; i++) take(loader, whole[i]);
    for (int i = 0; i < EPOCHS * BATCHES - 1; i += 4) {
        int seen[SIZE] = {0};
        expect_ok(clv__loader_seek(loader, i / BATCHES, i % BATCHES));
        const clv_loader_info at = clv_loader_info_get(loader);
        assert_true(at.epoch == i / BATCHES && at.index == i % BATCHES);
        config.epoch = at.epoch;
        config.index = at.index;
        other = make_loader(dataset, config);
        for (int k = i; k < i + 2; k++) {
            clv_batch batch = take(loader, seen);
            assert_memory_equal(seen, whole[k], sizeof(int) * (size_t)batch.n);
            take(other, seen);
            assert_memory_equal(seen, whole[k], sizeof(int) * (size_t)batch.n);
        }
        clv_loader_destroy(other);
    }
    expect_ok(clv__loader_seek(loader, 1, BATCHES)); // the end of an epoch is the start of the next
    assert_true(clv_loader_info_get(loader).epoch == 2 && clv_loader_info_get(loader).index == 0);
    assert_int_equal(take(loader, NULL).epoch, 2);
    expect_ok(clv__loader_seek(loader, 1ll << 40, 3)); // far away is as near
    assert_true(take(loader, NULL).epoch == 1ll << 40);
    clv_loader_destroy(loader);
    clv_dataset_destroy(dataset);
}

/** A batch that is being made while the position changes must not keep its buffer: both can be held afterwards. */
TEST(seeks_lose_no_buffer) {
    clv_array images, labels; // large enough that making a batch takes longer than a seek
    expect_ok(clv_array_init(support_runtime, CLV_DTYPE_U8, SHAPE(1000, 400), &images));
    expect_ok(clv_array_init(support_runtime, CLV_DTYPE_U8, SHAPE(1000), &labels));
    clv_dataset *dataset = NULL;
    expect_ok(clv_dataset_from_arrays(support_runtime, &images, &labels, NULL, &dataset));
    clv_array_reset(&labels);
    clv_loader *loader =
        make_loader(dataset, (clv_loader_config){.batch = 1000, .shuffle = true, .buffers = 2});
    for (int i = 0; i < 100; i++) {
        clv_batch a, b;
        for (int k = 0; k <= i % 5; k++) {
            nanosleep(&(struct timespec){.tv_nsec = 20000 * (i % 10)}, NULL); // the thread is at work by then
            expect_ok(clv__loader_seek(loader, 10 * i + k, 0));
        }
        expect_ok(clv_loader_next(loader, &a));
        expect_ok(clv_loader_next(loader, &b));
        assert_true(a.epoch == 10 * i + i % 5 && b.epoch == a.epoch + 1);
        clv_loader_release(loader, &a);
        clv_loader_release(loader, &b);
    }
    clv_loader_destroy(loader);
    clv_dataset_destroy(dataset);
}

TEST(buffers_are_held_and_given_back) {
    clv_dataset *dataset = make_dataset();
    clv_loader *loader = make_loader(dataset, (clv_loader_config){.batch = 10, .buffers = 2});
    clv_batch a, b, c;
    expect_ok(clv_loader_next(loader, &a));
    expect_ok(clv_loader_next(loader, &b));
    expect_failure(clv_loader_next(loader, &c), CLV_E_STATE, "all 2 buffers", "release");
    assert_null(c.samples);
    expect_failure(clv__loader_seek(loader, 0, 0), CLV_E_STATE, "release it first");
    assert_true(((const float *)a.samples)[0] == 0 && ((const float *)b.samples)[0] == 10 &&
                a.buffer != b.buffer);
    clv_loader_release(loader, &b); // not the first one first
    expect_ok(clv_loader_next(loader, &c));
    assert_true(((const float *)c.samples)[0] == 20 && ((const float *)a.samples)[0] == 0);
    clv_loader_destroy(loader); // with batches held
    clv_loader_destroy(NULL);
    clv_dataset_destroy(dataset);
}

static size_t bytes_of(const clv_dataset *dataset, const clv_loader_config *config) {
    clv_loader *loader = make_loader(dataset, *config);
    const size_t bytes = clv_loader_info_get(loader).bytes;
    clv_loader_destroy(loader);
    return bytes;
}

TEST(batches_are_aligned) {
    clv_dataset *dataset = make_dataset();
    clv_loader *loader = make_loader(dataset, (clv_loader_config){.batch = 7, .shuffle = true, .buffers = 4});
    const uint8_t *lowest = NULL;
    clv_batch batch;
    // 7 * 2 floats and 7 labels, each rounded up to 64
    assert_int_equal(clv_loader_info_get(loader).bytes, 4 * (64 + 64));
    for (int i = 0; i < 40; i++) {
        expect_ok(clv_loader_next(loader, &batch));
        const uint8_t *begin = (const uint8_t *)batch.samples - batch.buffer * 128;
        if (!lowest) lowest = begin;
        assert_true((uintptr_t)batch.samples % 64 == 0 && (uintptr_t)batch.targets % 64 == 0);
        assert_ptr_equal(begin, lowest);
        clv_loader_release(loader, &batch);
    }
    clv_loader_destroy(loader);
    clv_dataset_destroy(dataset);
}

TEST(refuses_bad_configs) {
    clv_dataset *dataset = make_dataset();
    clv_loader *loader = (clv_loader *)1;
    const struct {
        clv_loader_config config;
        const char *part;
    } cases[] = {
        {{.batch = 0}, "at least 1 sample, not 0"},
        {{.batch = -5}, "not -5"},
        {{.batch = 5, .buffers = 1}, "2 to 64 buffers, not 1"},
        {{.batch = 5, .buffers = -1}, "2 to 64 buffers, not -1"},
        {{.batch = 5, .buffers = 65}, "2 to 64 buffers, not 65"},
        {{.batch = N + 1, .drop_last = true}, "batch of 102 from 101 samples"},
        {{.batch = 10, .index = 12}, "11 batches in an epoch cannot begin at epoch 0, batch 12"},
        {{.batch = 10, .index = -1}, "batch -1"},
        {{.batch = 10, .epoch = -1}, "epoch -1"},
        {{.batch = 10, .epoch = INT64_MAX}, "cannot begin"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        expect_failure(clv_loader_create(support_runtime, dataset, &cases[i].config, &loader), CLV_E_VALUE,
                       cases[i].part);
        assert_null(loader);
    }
    loader = make_loader(dataset, (clv_loader_config){.batch = 10});
    expect_failure(clv__loader_seek(loader, 0, 12), CLV_E_VALUE, "batch 12", "another batch size");
    assert_int_equal(take(loader, NULL).index, 0); // nothing happened
    clv_loader_destroy(loader);
    clv_dataset_destroy(dataset);
}

static void *read_epochs(void *argument) {
    const clv_dataset *dataset = argument;
    clv_loader_config config = {.batch = 8, .shuffle = true, .seed = 3};
    clv_loader *loader = NULL;
    uintptr_t sum = 0;
    if (clv_loader_create(support_runtime, dataset, &config, &loader) != CLV_OK) return NULL;
    for (int i = 0; i < 400; i++) {
        clv_batch batch;
        if (clv_loader_next(loader, &batch) != CLV_OK) return NULL;
        for (int64_t k = 0; k < batch.n; k++)
            sum = sum * 31 + (uintptr_t)((const float *)batch.samples)[2 * k];
        clv_loader_release(loader, &batch);
        if (i % 50 == 49 && clv__loader_seek(loader, i, i % 13) != CLV_OK) return NULL;
    }
    clv_loader_destroy(loader);
    return (void *)(sum | 1);
}

TEST(loaders_share_a_dataset) {
    clv_dataset *dataset = make_dataset();
    pthread_t threads[3];
    void *sums[3];
    for (int i = 0; i < 3; i++) assert_int_equal(pthread_create(&threads[i], NULL, read_epochs, dataset), 0);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], &sums[i]);
    assert_non_null(sums[0]);
    assert_ptr_equal(sums[0], sums[1]);
    assert_ptr_equal(sums[0], sums[2]);
    clv_dataset_destroy(dataset);
}

static volatile sig_atomic_t handled;

static void handle(int signal_number) {
    handled++;
}

/** A signal that the program's thread has blocked waits for it; the loader's thread does not take it. */
TEST(the_thread_handles_no_signals) {
    clv_dataset *dataset = make_dataset();
    clv_loader *loader = make_loader(dataset, (clv_loader_config){.batch = 8});
    sigset_t one, before, waiting;
    sigemptyset(&one);
    sigaddset(&one, SIGUSR1);
    signal(SIGUSR1, handle);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, &one, &before), 0);
    kill(getpid(), SIGUSR1);
    for (int i = 0; i < 50; i++) take(loader, NULL);
    assert_int_equal(sigpending(&waiting), 0);
    assert_true(sigismember(&waiting, SIGUSR1));
    assert_int_equal(handled, 0);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
    assert_int_equal(handled, 1);
    signal(SIGUSR1, SIG_DFL);
    clv_loader_destroy(loader);
    clv_dataset_destroy(dataset);
}

/** Bytes that are asked for as bytes are those that are normalised elsewhere, in a quarter of the memory. */
TEST(bytes_stay_bytes) {
    enum { SAMPLES = 9, EACH = 29, BATCH = 4 };
    clv_array images, labels;
    expect_ok(clv_array_init(support_runtime, CLV_DTYPE_U8, SHAPE(SAMPLES, EACH), &images));
    expect_ok(clv_array_init(support_runtime, CLV_DTYPE_I32, SHAPE(SAMPLES), &labels));
    for (int i = 0; i < SAMPLES * EACH; i++) ((uint8_t *)images.data)[i] = (uint8_t)(i * 71);
    clv_dataset *dataset = NULL, *floats = make_dataset();
    const clv_dataset_config normalised = {.mean = 0.3f, .std = 0.7f};
    expect_ok(clv_dataset_from_arrays(support_runtime, &images, &labels, &normalised, &dataset));
    clv_array_reset(&labels);
    clv_loader_config config = {.batch = BATCH, .shuffle = true, .seed = 3}, bytes = config;
    bytes.bytes = true;
    clv_loader *as_floats = make_loader(dataset, config), *as_bytes = make_loader(dataset, bytes);
    for (int k = 0; k < 6; k++) {
        clv_batch f, b;
        expect_ok(clv_loader_next(as_floats, &f));
        expect_ok(clv_loader_next(as_bytes, &b));
        assert_int_equal(f.n, b.n);
        assert_memory_equal(f.targets, b.targets, (size_t)f.n * sizeof(int32_t));
        for (int64_t i = 0; i < f.n * EACH; i++)
            assert_true(((const float *)f.samples)[i] ==
                        ((float)((const uint8_t *)b.samples)[i] / 255.0f - 0.3f) / 0.7f);
        clv_loader_release(as_floats, &f);
        clv_loader_release(as_bytes, &b);
    }
    clv_loader_destroy(as_floats);
    clv_loader_destroy(as_bytes);
    // fields begin at multiples of 64 bytes; the labels are four bytes each
    assert_int_equal(bytes_of(dataset, &config), 3 * (512 + 64));
    assert_int_equal(bytes_of(dataset, &bytes), 3 * (128 + 64));
    bytes.mixup = config.mixup = 0.5; // what is mixed is numbers
    assert_int_equal(bytes_of(dataset, &bytes), bytes_of(dataset, &config));
    bytes.mixup = config.mixup = 0; // what is numbers stays so
    assert_int_equal(bytes_of(floats, &bytes), bytes_of(floats, &config));
    clv_dataset_destroy(dataset);
    clv_dataset_destroy(floats);
}

/** Made in memory that is given, by several threads as the batch is large: the same batches as without, in the same order. */
TEST(batches_are_made_where_they_are_wanted) {
    enum { SAMPLES = 75, EACH = 40000, BATCH = 30, BATCHES = 3, CALLS = 24, AHEAD = 3 };
    clv_array images, labels;
    expect_ok(clv_array_init(support_runtime, CLV_DTYPE_U8, SHAPE(SAMPLES, EACH), &images));
    expect_ok(clv_array_init(support_runtime, CLV_DTYPE_I32, SHAPE(SAMPLES), &labels));
    for (int i = 0; i < SAMPLES * EACH; i++) ((uint8_t *)images.data)[i] = (uint8_t)(i * 71 >> 3);
    for (int i = 0; i < SAMPLES; i++) ((int32_t *)labels.data)[i] = i;
    clv_dataset *dataset = NULL;
    expect_ok(clv_dataset_from_arrays(support_runtime, &images, &labels, NULL, &dataset));
    clv_array_reset(&labels);
    const clv_loader_config config = {.batch = BATCH, .shuffle = true, .seed = 3, .bytes = true};
    clv_loader *plain = make_loader(dataset, config), *loader = make_loader(dataset, config);
    uint8_t *memory = malloc((size_t)BATCH * EACH);
    assert_non_null(memory);
    for (int k = 0; k < CALLS; k++) {
        clv_batch wanted, batch;
        const bool asked = k % 7 != 6; // now and then by those who give no memory
        if (k == CALLS / 2) {
            expect_ok(clv__loader_seek(plain, 1, 0));
            expect_ok(clv__loader_seek(loader, 1, 0));
        }
        memset(memory, 0, (size_t)BATCH * EACH);
        void *const to[] = {memory, NULL};
        expect_ok(clv_loader_next(plain, &wanted));
        expect_ok(asked ? clv__loader_next_into(loader, to, BATCH, &batch) : clv_loader_next(loader, &batch));
        assert_true(batch.n == wanted.n && batch.epoch == wanted.epoch && batch.index == wanted.index);
        assert_memory_equal(batch.samples, wanted.samples, (size_t)batch.n * EACH);
        assert_memory_equal(batch.targets, wanted.targets, (size_t)batch.n * sizeof(int32_t));
        if (!asked || batch.n < BATCH) assert_ptr_not_equal(batch.samples, memory);
        if (k >= AHEAD && k < 6 && batch.n == BATCH) assert_ptr_equal(batch.samples, memory);
        clv_loader_release(plain, &wanted);
        clv_loader_release(loader, &batch);
    }
    free(memory);
    clv_loader_destroy(plain);
    clv_loader_destroy(loader);
    clv_dataset_destroy(dataset);
}

TEST_MAIN(support_begin, support_end)
