// SPDX-License-Identifier: Apache-2.0
// Batches whose samples are mixed: the numbers of the formula, the distribution of lambda, the same bits from any position, and what
// cannot be mixed.
#include "io/support.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "cleave/data.h"
#include "data/mixup.h"

enum { N = 9, NUMEL = 1500, CLASSES = 4, OUT = 2 }; // more than is mixed at a time

static float samples[N * NUMEL], numbers[N * OUT];
static int32_t labels[N];

static clv_dataset *make_dataset(bool of_numbers) {
    clv_dataset *dataset = NULL;
    for (int i = 0; i < N; i++) {
        labels[i] = i * 3 % CLASSES;
        for (int k = 0; k < NUMEL; k++) samples[i * NUMEL + k] = (float)((i * 37 + k * 11) % 101) / 25 - 2;
        for (int k = 0; k < OUT; k++) numbers[i * OUT + k] = (float)(i - 4 * k) / 3;
    }
    clv_array x = {
        .type = CLV_DTYPE_F32, .shape = *SHAPE(N, 3, NUMEL / 3), .data = samples, .borrowed = true};
    clv_array y = {.type = CLV_DTYPE_I32, .shape = *SHAPE(N), .data = labels, .borrowed = true};
    if (of_numbers)
        y = (clv_array){.type = CLV_DTYPE_F32, .shape = *SHAPE(N, OUT), .data = numbers, .borrowed = true};
    expect_ok(clv_dataset_from_arrays(support_runtime, &x, &y, NULL, &dataset));
    return dataset;
}

static clv_loader *make_loader(const clv_dataset *dataset, clv_loader_config config) {
    clv_loader *loader = NULL;
    expect_ok(clv_loader_create(support_runtime, dataset, &config, &loader));
    return loader;
}

/** Rows are those of `plain`, each with the one before it. */
static void expect_mixed(const float *mixed, const float *plain, int64_t n, int64_t numel, double lambda) {
    const float own = (float)lambda, other = (float)(1 - lambda);
    for (int64_t i = 0; i < n; i++) {
        const float *row = plain + i * numel, *before = plain + (i + n - 1) % n * numel;
        for (int64_t k = 0; k < numel; k++)
            assert_true(mixed[i * numel + k] == row[k] * own + before[k] * other);
    }
}

/** Three epochs, shuffled, with a last batch of one sample. `classes`: of targets; 0: they are numbers. */
static void expect_mixed_loader(const clv_dataset *dataset, int classes, int64_t width) {
    const clv_loader_config plain = {.batch = 4, .shuffle = true, .seed = 5};
    clv_loader_config config = plain;
    config.mixup = 0.7;
    config.classes = classes > CLASSES ? classes : 0;
    clv_loader *mixed = make_loader(dataset, config), *whole = make_loader(dataset, plain);
    for (int i = 0; i < 9; i++) {
        clv_batch a, b;
        float rows[4 * 8] = {0};
        expect_ok(clv_loader_next(mixed, &a));
        expect_ok(clv_loader_next(whole, &b));
        const clv__draw draw = {.seed = 5, .epoch = a.epoch};
        const double lambda = clv__mixup_lambda(&draw, a.index, 0.7);
        assert_int_equal(a.n, b.n);
        expect_mixed(a.samples, b.samples, a.n, NUMEL, lambda);
        for (int64_t k = 0; classes && k < b.n; k++) rows[k * classes + ((const int32_t *)b.targets)[k]] = 1;
        expect_mixed(a.targets, classes ? rows : b.targets, a.n, width, lambda);
        clv_loader_release(mixed, &a);
        clv_loader_release(whole, &b);
    }
    clv_loader_destroy(mixed);
    clv_loader_destroy(whole);
}

TEST(mixes_as_the_formula) {
    clv_dataset *of_classes = make_dataset(false), *of_numbers = make_dataset(true);
    expect_mixed_loader(of_classes, CLASSES, CLASSES);
    expect_mixed_loader(of_classes, CLASSES + 3, CLASSES + 3); // a model may have more
    expect_mixed_loader(of_numbers, 0, OUT);
    const clv_loader_config config = {.batch = 4, .mixup = 1, .classes = 7};
    clv_loader *loader;
    expect_ok(clv_loader_create(support_runtime, of_classes, &config, &loader));
    assert_int_equal(clv_loader_info_get(loader).bytes, 3 * (4 * NUMEL * 4 + 128)); // 4 * 7 floats
    clv_loader_destroy(loader);
    clv_dataset_destroy(of_classes);
    clv_dataset_destroy(of_numbers);
}

/** Mean 1/2 and variance 1 / (4 (2 alpha + 1)); of alpha 1 all values are as frequent. */
TEST(lambdas_are_of_beta) {
    static const double alphas[] = {0.05, 0.2, 0.4, 1, 2.5, 20};
    enum { TIMES = 20000 };
    for (size_t a = 0; a < sizeof alphas / sizeof *alphas; a++) {
        double sum = 0, squares = 0;
        int tenths[10] = {0};
        for (int i = 0; i < TIMES; i++) {
            const clv__draw draw = {.seed = 11, .epoch = i / 100};
            const double lambda = clv__mixup_lambda(&draw, i % 100, alphas[a]);
            assert_true(lambda >= 0 && lambda <= 1);
            sum += lambda;
            squares += (lambda - 0.5) * (lambda - 0.5);
            tenths[lambda < 1 ? (int)(lambda * 10) : 9]++;
        }
        const double variance = 1 / (4 * (2 * alphas[a] + 1));
        assert_true(fabs(sum / TIMES - 0.5) < 5 * sqrt(variance / TIMES));
        assert_true(fabs(squares / TIMES / variance - 1) < 0.05);
        for (int k = 0; alphas[a] == 1 && k < 10; k++)
            assert_true(abs(tenths[k] - TIMES / 10) < 220); // 5 sigma
    }
    const clv__draw draw = {.seed = 11};
    for (int i = 0; i < 100; i++) { // so small that it is one of the two, so large that it is the half
        const double least = clv__mixup_lambda(&draw, i, 1e-9), most = clv__mixup_lambda(&draw, i, 1e12);
        assert_true(least == 0 || least == 1 || least < 1e-12 || least > 1 - 1e-12);
        assert_true(fabs(most - 0.5) < 1e-5);
        assert_true(isfinite(clv__mixup_lambda(&draw, i, 1e-320)));
    }
}

TEST(lambdas_depend_on_seed_epoch_and_batch) {
    const clv__draw draws[] = {{.seed = 1}, {.seed = 1}, {.seed = 2}, {.seed = 1, .epoch = 1}};
    const double first = clv__mixup_lambda(&draws[0], 0, 0.4);
    assert_true(clv__mixup_lambda(&draws[1], 0, 0.4) == first);
    assert_true(clv__mixup_lambda(&draws[2], 0, 0.4) != first);
    assert_true(clv__mixup_lambda(&draws[3], 0, 0.4) != first);
    assert_true(clv__mixup_lambda(&draws[0], 1, 0.4) != first);
}

/** From any position the same bits, also while batches are being mixed, which takes a while here; and no buffer is lost. */
TEST(goes_on_anywhere) {
    enum { LARGE = 100000, BATCHES = 2, SIZE = 3, EPOCHS = 2 };
    static float whole[EPOCHS * BATCHES][SIZE * LARGE];
    clv_array images, of_images;
    clv_dataset *dataset = NULL;
    expect_ok(clv_array_init(support_runtime, CLV_DTYPE_U8, SHAPE(BATCHES * SIZE, LARGE), &images));
    expect_ok(clv_array_init(support_runtime, CLV_DTYPE_U8, SHAPE(BATCHES * SIZE), &of_images));
    for (int i = 0; i < BATCHES * SIZE * LARGE; i++)
        ((uint8_t *)images.data)[i] = (uint8_t)(i * 31 + i / LARGE);
    expect_ok(clv_dataset_from_arrays(support_runtime, &images, &of_images, NULL, &dataset));
    clv_array_reset(&of_images);
    clv_loader *loader = make_loader(
        dataset, (clv_loader_config){.batch = SIZE, .shuffle = true, .seed = 9, .mixup = 0.3, .buffers = 2});
    clv_batch batch, other;
    for (int i = 0; i < EPOCHS * BATCHES; i++) {
        expect_ok(clv_loader_next(loader, &batch));
        memcpy(whole[i], batch.samples, sizeof whole[i]);
        clv_loader_release(loader, &batch);
    }
    for (int i = 0; i < 200; i++) {
        const int at = i % (EPOCHS * BATCHES - 1);
        nanosleep(&(struct timespec){.tv_nsec = 37000 * (i % 20)}, NULL);
        expect_ok(clv__loader_seek(loader, at / BATCHES, at % BATCHES));
        if (i % 3) continue;
        expect_ok(clv_loader_next(loader, &batch));
        expect_ok(clv_loader_next(loader, &other)); // both buffers are there
        assert_memory_equal(batch.samples, whole[at], sizeof whole[at]);
        assert_memory_equal(other.samples, whole[at + 1], sizeof whole[at]);
        clv_loader_release(loader, &batch);
        clv_loader_release(loader, &other);
    }
    clv_loader_destroy(loader);
    clv_dataset_destroy(dataset);
}

TEST(what_is_refused) {
    static const char letters[] = "to be or not to be, that is the question";
    clv_dataset *dataset = make_dataset(false), *text = NULL;
    clv_vocabulary *vocabulary = NULL;
    clv_loader *loader = NULL;
    const struct {
        clv_loader_config config;
        const char *sentence;
    } cases[] = {
        {{.batch = 4, .mixup = -1}, "mixup with alpha -1: it must be above 0, and finite; 0 means no mixup"},
        {{.batch = 4, .mixup = (double)NAN}, "mixup with alpha nan: it must be above 0"},
        {{.batch = 4, .mixup = (double)INFINITY}, "mixup with alpha inf: it must be above 0"},
        {{.batch = 4, .mixup = 1, .classes = 3}, "mixup with 3 classes, of a dataset that has 4"},
        {{.batch = 4, .mixup = 1, .classes = -3}, "mixup with -3 classes, of a dataset that has 4"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        expect_failure(clv_loader_create(support_runtime, dataset, &cases[i].config, &loader), CLV_E_VALUE,
                       cases[i].sentence);
        assert_null(loader);
    }
    expect_ok(clv_vocabulary_create(support_runtime, CLV_VOCABULARY_BYTES, NULL, 0, &vocabulary));
    const clv_text_config config = {.vocabulary = vocabulary, .context = 4};
    expect_ok(clv_dataset_text(support_runtime, letters, sizeof letters - 1, &config, &text));
    expect_failure(
        clv_loader_create(support_runtime, text, &(clv_loader_config){.batch = 2, .mixup = 1}, &loader),
        CLV_E_VALUE, "mixup needs samples that are numbers; these are tokens");
    clv_vocabulary_destroy(vocabulary);
    clv_dataset_destroy(text);
    clv_dataset_destroy(dataset);
}

TEST_MAIN(support_begin, support_end)
