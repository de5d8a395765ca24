// SPDX-License-Identifier: Apache-2.0
// Folders of pictures: what torchvision makes of the same files (tests/golden/make_images.py), the same batches from any number of
// threads, and pictures that are none.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleave/data.h"
#include "data/dataset.h"
#include "data/transforms.h"
#include "io/support.h"

#define GOLDEN CLV_TEST_SOURCE_DIR "/tests/golden/"
enum { SIZE = 24, RESIZE = 28, N = 3 * SIZE * SIZE, JPEGS = 5, PNGS = 8 };

static clv_archive *expected;

static int begin(void **state) {
    int code = support_begin(state);
    if (code == 0) code = clv_safetensors_read(support_runtime, GOLDEN "images.safetensors", &expected);
    return code;
}

static int end(void **state) {
    clv_archive_destroy(expected);
    return support_end(state);
}

static const void *values(const char *name) {
    const clv_array *array = clv_archive_find(expected, name);
    assert_non_null(array);
    return array->data;
}

static clv_dataset *open_folder(const char *path, clv_image_folder_config config) {
    clv_dataset *dataset = NULL;
    if (!config.size) config.size = SIZE;
    if (!config.resize) config.resize = RESIZE;
    expect_ok(clv_dataset_image_folder(support_runtime, path, &config, &dataset));
    return dataset;
}

static clv_status refused(const char *path, clv_image_folder_config config) {
    clv_dataset *dataset = (clv_dataset *)&config;
    const clv_status status = clv_dataset_image_folder(support_runtime, path, &config, &dataset);
    assert_null(dataset);
    return status;
}

static const clv_image_folder_config plain = {.std = {1, 1, 1}};

// ---- against torchvision ------------------------------------------------------------------------------------

TEST(as_torchvision_resizes) {
    clv_dataset *dataset = open_folder(GOLDEN "images", plain);
    const uint8_t *want = values("resize");
    float sample[N];
    int largest = 0;
    assert_int_equal(clv_dataset_info_get(dataset).count, JPEGS + PNGS);
    assert_int_equal(clv_dataset_info_get(dataset).classes, 2);
    assert_string_equal(clv_dataset_class_name(dataset, 0), "jpeg");
    assert_string_equal(clv_dataset_class_name(dataset, 1), "png");
    assert_null(clv_dataset_class_name(dataset, 2));
    assert_string_equal(clv_image_folder_file(dataset, 0, NULL), "jpeg/color.jpg");
    assert_string_equal(clv_image_folder_file(dataset, JPEGS, NULL), "png/color.png");
    assert_null(clv_image_folder_file(dataset, JPEGS + PNGS, NULL));
    for (int i = 0; i < JPEGS + PNGS; i++) {
        clv__dataset_sample(dataset, i, sample);
        assert_int_equal(clv__dataset_label(dataset, i), i >= JPEGS);
        for (int k = 0; k < N; k++) {
            const int off = abs((int)lrintf(sample[k] * 255) - want[i * N + k]);
            if (off > (i < JPEGS ? 2 : 0)) // other versions of libjpeg may round otherwise
                fail_msg("%s: element %d is %g, not %d", clv_image_folder_file(dataset, i, NULL), k,
                         (double)sample[k] * 255, want[i * N + k]);
            if (off > largest) largest = off;
        }
    }
    printf("JPEGs differ by %d at most, PNGs not at all\n", largest);
    clv_dataset_destroy(dataset);
}

TEST(as_torchvision_normalizes) {
    clv_dataset *dataset = open_folder(GOLDEN "images", (clv_image_folder_config){0});
    const float *want = values("normalize");
    float sample[N];
    for (int i = 0; i < PNGS; i++) {
        clv__dataset_sample(dataset, JPEGS + i, sample);
        assert_memory_equal(sample, want + i * N, sizeof sample);
    }
    clv_dataset_destroy(dataset);
}

/** A picture, decoded: so many rows from the top, or all. */
static clv__image read_picture(const char *path, int64_t rows) {
    clv__error error;
    clv__error_init(&error);
    size_t size;
    uint8_t *bytes = read_file(path, &size);
    clv__input input;
    clv__image_info info;
    clv__image image;
    clv__input_memory(&error, path, bytes, size, &input);
    assert_int_equal(clv__image_probe(&input, &info), CLV_OK);
    assert_int_equal(clv__image_read(&input, &info, &(clv__image_wish){.rows = rows}, &image), CLV_OK);
    assert_true(info.width == image.width && (rows || info.height == image.height));
    free(bytes);
    clv__error_destroy(&error);
    return image;
}

static clv__transforms make_transforms(clv_image_augment augment) {
    clv__transforms t;
    const float mean[3] = {0}, std[3] = {1, 1, 1};
    clv__transforms_init(&t, SIZE, RESIZE, &augment, mean, std);
    return t;
}

/** What becomes of a picture with these draws is the golden one. */
static void expect_drawn(const clv__image *image, const clv__drawn *drawn, const uint8_t *want,
                         const char *what) {
    const clv__transforms t = make_transforms((clv_image_augment){0});
    uint8_t window[N];
    float out[N];
    assert_true(clv__transforms_window(&t, drawn, image, window));
    clv__transforms_finish(&t, drawn, window, out);
    for (int k = 0; k < N; k++)
        if (lrintf(out[k] * 255) != want[k])
            fail_msg("%s: element %d is %g, not %d", what, k, (double)out[k] * 255, want[k]);
}

static clv__drawn draw_nothing(const clv__image *image) {
    const clv__transforms t = make_transforms((clv_image_augment){0});
    clv__random random;
    clv__drawn drawn;
    clv__random_init(&random, 1, CLV__STREAM_AUGMENT, 0);
    clv__transforms_draw(&t, &random, image->width, image->height, &drawn);
    return drawn;
}

TEST(as_torchvision_crops_and_flips) {
    clv__image image = read_picture(GOLDEN "images/png/color.png", 0);
    const clv_array *boxes = clv_archive_find(expected, "boxes");
    const uint8_t *want = values("crops");
    for (int64_t i = 0; i < boxes->shape.dims[0]; i++) {
        const int32_t *box = (const int32_t *)boxes->data + 4 * i;
        const clv__drawn drawn = {.top = box[0],
                                  .left = box[1],
                                  .height = box[2],
                                  .width = box[3],
                                  .resized_height = SIZE,
                                  .resized_width = SIZE,
                                  .factors = {1, 1, 1}};
        expect_drawn(&image, &drawn, want + i * N, "a box");
        assert_int_equal(clv__transforms_rows(&drawn), box[0] + box[2]);
    }
    clv__drawn flipped = draw_nothing(&image);
    flipped.flip = true;
    expect_drawn(&image, &flipped, values("flipped"), "the flipped one");
    clv__image_reset(&image);
}

TEST(as_torchvision_changes_colors) {
    clv__image image = read_picture(GOLDEN "images/png/color.png", 0);
    const clv_array *factors = clv_archive_find(expected, "factors"),
                    *orders = clv_archive_find(expected, "orders");
    const uint8_t *want = values("jitters");
    for (int64_t i = 0; i < factors->shape.dims[0]; i++) {
        clv__drawn drawn = draw_nothing(&image);
        char what[64];
        for (int k = 0; k < 3; k++) {
            drawn.factors[k] = ((const float *)factors->data)[3 * i + k];
            drawn.jitters[k] = ((const int32_t *)orders->data)[3 * i + k];
        }
        snprintf(what, sizeof what, "jitter %d", (int)i);
        expect_drawn(&image, &drawn, want + i * N, what);
    }
    clv__image_reset(&image);
}

/** JPEGs decoded smaller: near to the whole ones; what is no JPEG, or not large enough, stays as it is. */
TEST(drafts_are_near) {
    enum { SMALL = 8, M = 3 * SMALL * SMALL };
    clv_image_folder_config config = plain;
    float whole[M], draft[M];
    config.size = SMALL;
    config.resize = SMALL + 1;
    clv_dataset *as_is = open_folder(GOLDEN "images", config);
    config.draft = true;
    clv_dataset *smaller = open_folder(GOLDEN "images", config);
    for (int i = 0; i < JPEGS + PNGS; i++) {
        clv__dataset_sample(as_is, i, whole);
        clv__dataset_sample(smaller, i, draft);
        double off = 0;
        for (int k = 0; k < M; k++) off += fabs((double)(whole[k] - draft[k])) * 255 / M;
        if (i < JPEGS ? off == 0 || off > 10 : off != 0)
            fail_msg("%s is off by %g", clv_image_folder_file(as_is, i, NULL), off);
    }
    clv_dataset_destroy(as_is);
    clv_dataset_destroy(smaller);
    clv__drawn drawn = {
        .top = 17, .left = 3, .height = 400, .width = 797, .resized_height = 100, .resized_width = 100};
    assert_int_equal(clv__transforms_draft(&drawn, 800, 417), 4);
    assert_true(drawn.top == 4 && drawn.height == 100 && drawn.left == 0 && drawn.width == 199);
    drawn = (clv__drawn){.height = 199, .width = 400, .resized_height = 100, .resized_width = 100};
    assert_int_equal(clv__transforms_draft(&drawn, 400, 199), 1);
    assert_true(drawn.height == 199 && drawn.width == 400);
}

// ---- what is drawn ------------------------------------------------------------------------------------------

TEST(draws_within_the_ranges) {
    const clv__transforms t = make_transforms((clv_image_augment){.crop = true,
                                                                  .scale = {0.25, 0.5},
                                                                  .ratio = {0.5, 2},
                                                                  .flip = 0.25,
                                                                  .brightness = 0.5,
                                                                  .saturation = 2});
    enum { TIMES = 4000, W = 400, H = 300 };
    int flips = 0, first[3] = {0};
    for (int i = 0; i < TIMES; i++) {
        clv__random random;
        clv__drawn d;
        clv__random_init(&random, 7, CLV__STREAM_AUGMENT, (uint64_t)i);
        clv__transforms_draw(&t, &random, W, H, &d);
        const double area = (double)(d.width * d.height) / (W * H),
                     ratio = (double)d.width / (double)d.height;
        assert_true(d.top >= 0 && d.left >= 0 && d.top + d.height <= H && d.left + d.width <= W);
        assert_true(area > 0.24 && area < 0.51 && ratio > 0.49 && ratio < 2.02);
        assert_true(d.factors[0] >= 0.5f && d.factors[0] <= 1.5f && d.factors[1] == 1);
        assert_true(d.factors[2] >= 0 && d.factors[2] <= 3);
        flips += d.flip;
        first[d.jitters[0]]++;
    }
    assert_true(abs(flips - TIMES / 4) < 130); // 5 sigma
    for (int k = 0; k < 3; k++) assert_true(abs(first[k] - TIMES / 3) < 150);
    // No box of that kind fits in a strip: the middle of it, whose ratio is allowed.
    clv__random random;
    clv__drawn d;
    clv__random_init(&random, 7, CLV__STREAM_AUGMENT, 0);
    clv__transforms_draw(&t, &random, 1000, 10, &d);
    assert_true(d.height == 10 && d.width == 20 && d.left == 490 && d.top == 0);
}

/** Pictures as bytes: cut, jittered and flipped alike, and not normalised. */
TEST(bytes_are_not_normalised) {
    static const float mean[3] = {0.1f, 0.2f, 0.3f}, std[3] = {0.5f, 0.6f, 0.7f};
    clv_image_folder_config how = {.limit = 2, .augment = {.crop = true, .flip = 0.5, .brightness = 0.4}};
    memcpy(how.mean, mean, sizeof mean);
    memcpy(how.std, std, sizeof std);
    clv_dataset *dataset = open_folder(GOLDEN "images", how);
    clv_loader *loaders[2];
    clv_batch batches[2];
    for (int i = 0; i < 2; i++) {
        const clv_loader_config config = {.batch = 2, .seed = 5, .bytes = i == 1};
        expect_ok(clv_loader_create(support_runtime, dataset, &config, &loaders[i]));
        expect_ok(clv_loader_next(loaders[i], &batches[i]));
    }
    for (int i = 0; i < 2 * N; i++) {
        const int c = i % N / (N / 3);
        const float want = ((float)((const uint8_t *)batches[1].samples)[i] / 255.0f - mean[c]) / std[c];
        assert_true(((const float *)batches[0].samples)[i] == want);
    }
    for (int i = 0; i < 2; i++) {
        clv_loader_release(loaders[i], &batches[i]);
        clv_loader_destroy(loaders[i]);
    }
    clv_dataset_destroy(dataset);
}

/** A checksum of the batches of two epochs, in their order. */
static uint64_t sum_of_batches(const clv_dataset *dataset, uint64_t seed, int64_t epoch, int batches,
                               clv_status *status) {
    clv_loader *loader = NULL;
    clv_loader_config config = {.batch = 4, .shuffle = true, .seed = seed, .epoch = epoch};
    uint64_t sum = 14695981039346656037u;
    expect_ok(clv_loader_create(support_runtime, dataset, &config, &loader));
    *status = CLV_OK;
    for (int i = 0; i < batches && *status == CLV_OK; i++) {
        clv_batch batch;
        *status = clv_loader_next(loader, &batch);
        if (*status != CLV_OK) break;
        const uint8_t *bytes[] = {batch.samples, batch.targets};
        const size_t n[] = {(size_t)batch.n * N * sizeof(float), (size_t)batch.n * sizeof(int32_t)};
        for (int part = 0; part < 2; part++)
            for (size_t k = 0; k < n[part]; k++) sum = (sum ^ bytes[part][k]) * 1099511628211u;
        clv_loader_release(loader, &batch);
    }
    clv_loader_destroy(loader);
    return sum;
}

/** Without shuffling, what differs between two epochs, seeds or copies of a picture is what is drawn. */
TEST(draws_depend_on_seed_epoch_and_sample) {
    static const struct {
        uint64_t seed;
        int64_t epoch;
    } cases[] = {{1, 0}, {1, 0}, {1, 1}, {2, 0}};
    float seen[4][2 * N];
    clv_dataset *dataset =
        open_folder(GOLDEN "images", (clv_image_folder_config){.limit = 2, .augment = {.crop = true}});
    for (int i = 0; i < 4; i++) {
        clv_loader *loader = NULL;
        clv_batch batch;
        const clv_loader_config config = {.batch = 2, .seed = cases[i].seed, .epoch = cases[i].epoch};
        expect_ok(clv_loader_create(support_runtime, dataset, &config, &loader));
        expect_ok(clv_loader_next(loader, &batch));
        memcpy(seen[i], batch.samples, sizeof seen[i]);
        clv_loader_release(loader, &batch);
        clv_loader_destroy(loader);
    }
    clv_dataset_destroy(dataset);
    assert_memory_equal(seen[0], seen[1], sizeof seen[0]);
    for (int sample = 0; sample < 2; sample++)
        for (int i = 2; i < 4; i++)
            assert_memory_not_equal(seen[0] + sample * N, seen[i] + sample * N, N * sizeof(float));
}

/** Rows that are not wanted need not be read; the others stay what they are, of interlaced pictures too. */
TEST(rows_from_the_top) {
    static const char *const paths[] = {"golden/images/jpeg/color.jpg", "golden/images/jpeg/steps.jpeg",
                                        "golden/images/png/color.png", "fuzz/corpus/image/interlaced.png"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        char path[512];
        snprintf(path, sizeof path, CLV_TEST_SOURCE_DIR "/tests/%s", paths[i]);
        clv__image whole = read_picture(path, 0), top = read_picture(path, 3);
        assert_true(top.height >= 3 && top.height <= whole.height && top.width == whole.width);
        assert_memory_equal(top.pixels, whole.pixels, (size_t)(3 * 3 * top.width));
        clv__image_reset(&whole);
        clv__image_reset(&top);
    }
}

TEST(the_same_from_any_number_of_threads) {
    static const int workers[] = {1, 2, 3, 16, 64};
    uint64_t first = 0;
    clv_status status;
    for (size_t i = 0; i < sizeof workers / sizeof *workers; i++) {
        clv_dataset *dataset =
            open_folder(GOLDEN "images",
                        (clv_image_folder_config){.workers = workers[i],
                                                  .augment = {.crop = true, .flip = 0.5, .contrast = 0.4}});
        const uint64_t sum = sum_of_batches(dataset, 5, 3, 9, &status);
        assert_int_equal(status, CLV_OK);
        if (i == 0) first = sum;
        assert_true(sum == first);
        assert_true(sum_of_batches(dataset, 6, 3, 9, &status) != first);
        assert_true(sum_of_batches(dataset, 5, 4, 9, &status) != first);
        clv_dataset_destroy(dataset);
    }
}

/** Mixed pictures are mixed by whoever makes the last of a batch. */
TEST(mixed_the_same_from_any_number_of_threads) {
    static const int workers[] = {1, 4};
    static float first[3][4 * (N + 2)];
    for (size_t i = 0; i < sizeof workers / sizeof *workers; i++) {
        clv_dataset *dataset = open_folder(
            GOLDEN "images", (clv_image_folder_config){.workers = workers[i], .augment = {.crop = true}});
        clv_loader *loader = NULL;
        clv_loader_config config = {.batch = 4, .shuffle = true, .seed = 8, .mixup = 0.5};
        expect_ok(clv_loader_create(support_runtime, dataset, &config, &loader));
        for (int k = 0; k < 3; k++) {
            clv_batch batch;
            expect_ok(clv_loader_next(loader, &batch));
            const float *targets = batch.targets;
            for (int row = 0; row < 4; row++)
                assert_true(fabsf(targets[2 * row] + targets[2 * row + 1] - 1) < 1e-6f);
            if (i == 0) {
                memcpy(first[k], batch.samples, sizeof(float) * 4 * N);
                memcpy(first[k] + 4 * N, targets, sizeof(float) * 4 * 2);
            }
            assert_memory_equal(batch.samples, first[k], sizeof(float) * 4 * N);
            assert_memory_equal(targets, first[k] + 4 * N, sizeof(float) * 4 * 2);
            clv_loader_release(loader, &batch);
        }
        clv_loader_destroy(loader);
        clv_dataset_destroy(dataset);
    }
}

TEST(a_seek_gives_the_same_again) {
    clv_dataset *dataset =
        open_folder(GOLDEN "images", (clv_image_folder_config){.workers = 4, .augment = {.crop = true}});
    clv_loader *loader = NULL;
    expect_ok(clv_loader_create(support_runtime, dataset, &(clv_loader_config){.batch = 5, .shuffle = true},
                                &loader));
    float first[5 * N];
    for (int i = 0; i < 30; i++) {
        clv_batch batch;
        expect_ok(clv_loader_next(loader, &batch));
        assert_true(batch.epoch == 0 && batch.index == 0 && batch.n == 5);
        if (i == 0) memcpy(first, batch.samples, sizeof first);
        assert_memory_equal(batch.samples, first, sizeof first);
        clv_loader_release(loader, &batch);
        expect_ok(clv__loader_seek(loader, 0, 0)); // while others are being made
    }
    clv_loader_destroy(loader);
    clv_dataset_destroy(dataset);
}

// ---- folders ------------------------------------------------------------------------------------------------

static void copy_picture(const char *from, const char *to, size_t without) {
    char path[512];
    size_t size;
    snprintf(path, sizeof path, GOLDEN "images/%s", from);
    uint8_t *bytes = read_file(path, &size);
    write_file(to, bytes, size - without);
    free(bytes);
}

static void remove_files(const char *const *names, size_t n) {
    for (size_t i = 0; i < n; i++) remove(names[i]);
}

TEST(folders_that_are_none) {
    expect_failure(refused("nowhere", plain), CLV_E_IO, "cannot read the folder 'nowhere': No such file");
    mkdir("f", 0777);
    expect_failure(refused("f", plain), CLV_E_FORMAT,
                   "'f' has no folders of classes: pictures belong in f/CLASS/PICTURE.jpg");
    write_file("f/a.jpg", "x", 1); // beside the classes: it is none
    expect_failure(refused("f", plain), CLV_E_FORMAT, "'f' has no folders of classes");
    mkdir("f/cat", 0777);
    mkdir("f/.git", 0777);
    expect_failure(refused("f", plain), CLV_E_FORMAT,
                   "the class 'cat' of 'f' has no pictures: a file of it ends in .jpg, .jpeg, .png, .webp, "
                   ".bmp, .tif, .tiff or .gif");
    write_file("f/cat/notes.txt", "x", 1);
    expect_failure(refused("f", plain), CLV_E_FORMAT, "the class 'cat' of 'f' has no pictures");
    write_file("f/cat/a.jpg", "some text", 9);
    expect_failure(refused("f", plain), CLV_E_FORMAT,
                   "the one picture of 'f' cannot be read: 'f/cat/a.jpg' is no picture: "
                   "neither a JPEG nor a PNG, WebP, BMP, TIFF or GIF");
    static const char *const names[] = {"f/cat/a.jpg", "f/cat/notes.txt", "f/cat", "f/.git", "f/a.jpg", "f"};
    remove_files(names, sizeof names / sizeof *names);
}

/** A black BMP of 24 bits. */
static void write_black(const char *path, int width, int height) {
    const uint32_t row = ((uint32_t)width * 3 + 3) / 4 * 4, data = row * (uint32_t)height, all = 54 + data;
    const uint32_t words[] = {all, 0, 54, 40, (uint32_t)width, (uint32_t)height, 1 | 24u << 16, 0, data};
    uint8_t *bytes = calloc(all, 1);
    memcpy(bytes, "BM", 2);
    for (size_t i = 0; i < 4 * sizeof words / sizeof *words; i++)
        bytes[2 + i] = (uint8_t)(words[i / 4] >> 8 * (i % 4));
    write_file(path, bytes, all);
    free(bytes);
}

/** Sizes of three pictures, and the side that a model gets where none is asked for. */
TEST(small_pictures_keep_their_size) {
    static const struct {
        int sizes[3][2];
        int64_t side;
    } cases[] = {{{{90, 200}, {100, 100}, {300, 40}}, 96}, {{{64, 64}, {64, 64}, {64, 64}}, 64},
                 {{{10, 10}, {65, 65}, {10, 10}}, 64},     {{{65, 70}, {70, 65}, {10, 10}}, 96},
                 {{{223, 300}, {300, 223}, {5, 5}}, 224},  {{{300, 400}, {400, 300}, {500, 500}}, 224}};
    static const char *const files[] = {"s/one/a.bmp", "s/one/b.bmp", "s/one/c.bmp", "s/one", "s"};
    mkdir("s", 0777);
    mkdir("s/one", 0777);
    clv_dataset *first = NULL;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        clv_dataset *dataset = NULL, *test = NULL;
        for (int i = 0; i < 3; i++) write_black(files[i], cases[k].sizes[i][0], cases[k].sizes[i][1]);
        expect_ok(clv_dataset_image_folder(support_runtime, "s", NULL, &dataset));
        assert_int_equal(clv_dataset_info_get(dataset).sample.dims[1], cases[k].side);
        assert_int_equal(dataset->resize, (cases[k].side * 8 + 3) / 7);
        const clv_image_folder_config like = {.like = first};
        if (first) expect_ok(clv_dataset_image_folder(support_runtime, "s", &like, &test));
        if (first) assert_int_equal(clv_dataset_info_get(test).sample.dims[2], cases[0].side);
        clv_dataset_destroy(test);
        if (!first)
            first = dataset;
        else
            clv_dataset_destroy(dataset);
    }
    clv_dataset_destroy(first);
    remove_files(files, sizeof files / sizeof *files);
}

TEST(classes_of_another_folder) {
    mkdir("v", 0777);
    mkdir("v/png", 0777);
    copy_picture("png/tiny.png", "v/png/a.png", 0);
    clv_dataset *train = open_folder(GOLDEN "images", plain), *alone = open_folder("v", plain);
    assert_int_equal(clv__dataset_label(alone, 0), 0);
    assert_int_equal(clv_dataset_info_get(alone).classes, 1);
    clv_image_folder_config like = plain;
    like.like = train;
    clv_dataset *test = open_folder("v", like);
    assert_int_equal(clv__dataset_label(test, 0), 1);
    assert_int_equal(clv_dataset_info_get(test).classes, 2);
    like.like = alone;
    expect_failure(refused(GOLDEN "images", like), CLV_E_NOT_FOUND,
                   "has a class 'jpeg', which 'v' does not have");
    clv_dataset_destroy(test);
    clv_dataset_destroy(alone);
    clv_dataset_destroy(train);
    static const char *const names[] = {"v/png/a.png", "v/png", "v"};
    remove_files(names, 3);
}

/** Classes and their order are given, as weights know them; of some there may be no pictures. */
TEST(classes_that_are_known) {
    static const char *const names[] = {"png", "gif", "jpeg"}, *const others[] = {"png", "gif"};
    clv_image_folder_config config = plain;
    config.classes = names;
    config.n_classes = 3;
    clv_dataset *dataset = open_folder(GOLDEN "images", config);
    assert_int_equal(clv_dataset_info_get(dataset).classes, 3);
    assert_int_equal(clv__dataset_label(dataset, 0), 2);
    assert_int_equal(clv__dataset_label(dataset, JPEGS), 0);
    assert_string_equal(clv_dataset_class_name(dataset, 1), "gif");
    assert_null(clv_dataset_class_name(dataset, 3));
    assert_null(clv_dataset_class_name(dataset, -1));
    config.like = dataset;
    expect_failure(refused(GOLDEN "images", config), CLV_E_VALUE,
                   "`like` and `classes` both say which classes there are: give one");
    config.like = NULL;
    config.classes = others;
    config.n_classes = 2;
    expect_failure(refused(GOLDEN "images", config), CLV_E_NOT_FOUND,
                   "has a class 'jpeg', which the model was not trained on; its classes are png, gif");
    config.n_classes = 0;
    expect_failure(refused(GOLDEN "images", config), CLV_E_VALUE, "`classes` has 0 names");
    clv_dataset_destroy(dataset);
}

static clv_status open_files(const char *const *paths, int n, bool strict, clv_dataset **out) {
    clv_image_folder_config config = plain;
    config.size = SIZE;
    config.resize = RESIZE;
    config.strict = strict;
    return clv_dataset_image_files(support_runtime, paths, n, &config, out);
}

/** Pictures alone: files and folders, in order, with the pixels that a folder of classes has. */
static bool is_broken(const clv_dataset *files, int64_t i) {
    bool broken;
    clv_image_folder_file(files, i, &broken);
    return broken;
}

TEST(files_alone) {
    static const char *const paths[] = {GOLDEN "images/png/tiny.png", GOLDEN "images"};
    static const char *const none[] = {"none.png"};
    clv_dataset *files = NULL, *folder = open_folder(GOLDEN "images", plain);
    float a[N], b[N];
    expect_ok(open_files(paths, 2, true, &files));
    assert_int_equal(clv_dataset_info_get(files).count, 1 + JPEGS + PNGS);
    assert_int_equal(clv_dataset_info_get(files).classes, 0);
    assert_string_equal(clv_image_folder_file(files, 0, NULL), paths[0]);
    assert_string_equal(clv_image_folder_file(files, 1, NULL), GOLDEN "images/jpeg/color.jpg");
    for (int i = 0; i < JPEGS + PNGS; i++) {
        clv__dataset_sample(files, i + 1, a);
        clv__dataset_sample(folder, i, b);
        assert_memory_equal(a, b, sizeof a);
        assert_false(is_broken(files, i));
    }
    clv_dataset_destroy(files);
    clv_dataset_destroy(folder);
    files = (clv_dataset *)&paths;
    expect_failure(open_files(none, 1, false, &files), CLV_E_IO, "cannot read 'none.png': No such file");
    assert_null(files);
    expect_failure(open_files(none, 0, false, &files), CLV_E_VALUE, "clv_dataset_image_files: 0 paths");
    mkdir("v", 0777);
    const char *const empty[] = {"v"};
    expect_failure(open_files(empty, 1, false, &files), CLV_E_FORMAT, "'v' has no pictures");
    remove("v");
}

/** One that shows to be broken when it is decoded keeps its place, as zeros. */
TEST(broken_files_alone) {
    static const char *const paths[] = {"a.png", GOLDEN "images/png/tiny.png"};
    static const char *const cut[] = {"cut.png"};
    clv_dataset *files = NULL;
    float sample[N];
    copy_picture("png/color.png", "a.png", 0);
    FILE *file = fopen("a.png", "r+b");
    assert_non_null(file);
    fseek(file, 60, SEEK_SET);
    for (int i = 0; i < 40; i++) fputc(0, file);
    fclose(file);
    expect_ok(open_files(paths, 2, false, &files));
    assert_int_equal(clv_dataset_info_get(files).count, 2);
    clv__dataset_sample(files, 0, sample);
    for (int i = 0; i < N; i++) assert_true(sample[i] == 0);
    clv__dataset_sample(files, 1, sample);
    assert_true(is_broken(files, 0));
    assert_false(is_broken(files, 1));
    assert_false(is_broken(files, 2));
    assert_int_equal(clv_dataset_info_get(files).folder.broken, 1);
    clv_dataset_destroy(files);
    copy_picture("png/color.png", "cut.png", 50);
    expect_failure(open_files(cut, 1, false, &files), CLV_E_FORMAT, "the one picture cannot be read: ");
    expect_failure(open_files(cut, 1, true, &files), CLV_E_FORMAT, "'cut.png' is a broken PNG");
    remove("a.png");
    remove("cut.png");
}

TEST(several_labels_each) {
    static const char table[] = "file,red,round,big\npng/tiny.png,0,1,1\njpeg/color.jpg,1,0,0\n";
    const float want[2][3] = {{0, 1, 1}, {1, 0, 0}};
    float target[3];
    clv_image_folder_config config = plain;
    config.labels = "t.csv";
    write_file("t.csv", table, sizeof table - 1);
    clv_dataset *dataset = open_folder(GOLDEN "images", config);
    const clv_shape shape = clv_dataset_info_get(dataset).target, three = CLV_SHAPE(3);
    assert_true(clv_shape_equal(&shape, &three));
    assert_int_equal(clv_dataset_info_get(dataset).classes, 0);
    assert_int_equal(clv__dataset_label(dataset, 0), -1);
    assert_string_equal(clv_dataset_class_name(dataset, 2), "big");
    for (int i = 0; i < 2; i++) {
        clv__dataset_target(dataset, i, target);
        assert_memory_equal(target, want[i], sizeof target);
    }
    clv_dataset_destroy(dataset);
    write_file("t.csv", "file,red\npng/tiny.png,0.5\n", 26);
    expect_failure(refused(GOLDEN "images", config), CLV_E_FORMAT,
                   "'t.csv', line 2: '0.5' in column 'red'; 0 or 1 is wanted");
    write_file("t.csv", "file,red\npng/none.png,1\n", 24);
    expect_failure(refused(GOLDEN "images", config), CLV_E_NOT_FOUND,
                   "'t.csv', line 2: there is no file 'png/none.png' in '");
    write_file("t.csv", "file,red\npng/../../x.png,1\n", 27);
    expect_failure(refused(GOLDEN "images", config), CLV_E_FORMAT,
                   "'t.csv', line 2: 'png/../../x.png' is not within '");
    write_file("t.csv", "file,red\n/x.png,1\n", 18);
    expect_failure(refused(GOLDEN "images", config), CLV_E_FORMAT,
                   "'t.csv', line 2: '/x.png' is not within '");
    write_file("t.csv", "file\npng/tiny.png\n", 18);
    expect_failure(refused(GOLDEN "images", config), CLV_E_FORMAT,
                   "'t.csv' has names of pictures, but no column with a label");
    write_file("t.csv", "file,red,big\npng/tiny.png,1,\n", 29);
    expect_failure(refused(GOLDEN "images", config), CLV_E_FORMAT,
                   "'t.csv', line 2: nothing stands in column 'big'; 0 or 1 is wanted");
    remove("t.csv");
}

/** The columns of a table are those of another: what a model's results stand for. */
TEST(labels_of_another_table) {
    clv_image_folder_config config = plain;
    config.labels = "t.csv";
    write_file("t.csv", "file,red,big\npng/tiny.png,1,0\n", 30);
    clv_dataset *train = open_folder(GOLDEN "images", config), *classes = open_folder(GOLDEN "images", plain);
    config.like = train;
    clv_dataset_destroy(open_folder(GOLDEN "images", config));
    write_file("t.csv", "file,big,red\npng/tiny.png,1,0\n", 30);
    const float want[2] = {0, 1}; // red, big
    float target[2];
    clv_dataset *turned = open_folder(GOLDEN "images", config);
    clv__dataset_target(turned, 0, target);
    assert_memory_equal(target, want, sizeof target);
    assert_string_equal(clv_dataset_class_name(turned, 0), "red");
    clv_dataset_destroy(turned);
    write_file("t.csv", "file,red\npng/tiny.png,1\n", 24);
    expect_failure(refused(GOLDEN "images", config), CLV_E_FORMAT,
                   "'t.csv' has no column 'big'; the labels are red, big");
    write_file("t.csv", "file,red,big,old\npng/tiny.png,1,0,1\n", 36);
    expect_failure(refused(GOLDEN "images", config), CLV_E_FORMAT,
                   "'t.csv' has a column 'old' that is none of the labels wanted; the labels are red, big");
    static const char sentence[] = "`like` is a folder of pictures: with classes for another such folder, or "
                                   "with a table of labels for another table";
    config.like = classes;
    expect_failure(refused(GOLDEN "images", config), CLV_E_VALUE, sentence);
    config.like = train;
    config.labels = NULL;
    expect_failure(refused(GOLDEN "images", config), CLV_E_VALUE, sentence);
    clv_dataset_destroy(train);
    clv_dataset_destroy(classes);
    remove("t.csv");
}

TEST(a_limit_spreads) {
    clv_image_folder_config config = plain;
    config.limit = 4;
    clv_dataset *dataset = open_folder(GOLDEN "images", config);
    assert_int_equal(clv_dataset_info_get(dataset).count, 4);
    assert_string_equal(clv_image_folder_file(dataset, 0, NULL), "jpeg/color.jpg");
    assert_string_equal(clv_image_folder_file(dataset, 3, NULL), "png/mask_grey.PNG");
    clv_dataset_destroy(dataset);
    config.limit = 1000;
    dataset = open_folder(GOLDEN "images", config);
    assert_int_equal(clv_dataset_info_get(dataset).count, JPEGS + PNGS);
    clv_dataset_destroy(dataset);
}

TEST(what_is_refused) {
    static const struct {
        clv_image_folder_config config;
        const char *sentence;
    } cases[] = {
        {{.size = -1}, "pictures of -1 pixels a side: 1 to 4096 are possible"},
        {{.size = 5000}, "pictures of 5000 pixels a side: 1 to 4096 are possible"},
        {{.size = 224, .resize = 200}, "cannot be cut out of pictures whose shorter side is resized to 200"},
        {{.limit = -1}, "a limit of -1 pictures"},
        {{.workers = 65}, "65 threads to decode pictures: 1 to 64 are possible, or 0 for all cores"},
        {{.mean = {0.5f, 0, 0}}, "normalisation with mean 0.5 and std 0: std must be above 0, both finite"},
        {{.augment = {.scale = {0.5, 0.25}}}, "RandomResizedCrop with scale from 0.5 to 0.25"},
        {{.augment = {.scale = {0.5, 1.25}}}, "RandomResizedCrop with scale from 0.5 to 1.25"},
        {{.augment = {.ratio = {0, 1}}}, "RandomResizedCrop with ratio from 0 to 1"},
        {{.augment = {.flip = 1.5}}, "RandomHorizontalFlip with p 1.5: it must lie within 0 and 1"},
        {{.augment = {.contrast = -1}}, "ColorJitter by -1: it must lie within 0 and 100"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_failure(refused(GOLDEN "images", cases[i].config), CLV_E_VALUE, cases[i].sentence);
    clv_image_folder_config like = {.like = (const clv_dataset *)NULL, .labels = "none.csv"};
    expect_failure(refused(GOLDEN "images", like), CLV_E_IO, "none.csv");
}

// ---- broken pictures ------------------------------------------------------------------------------------------

/** A PNG of 100,000 x 100,000 pixels in 60 bytes, as its header says. */
static void write_bomb(const char *path) {
    static const uint8_t bytes[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n', 0,   0, 0,    13,
                                    'I',  'H', 'D', 'R', 0,    1,    0x86, 0xa0, 0,   1, 0x86, 0xa0,
                                    8,    2,   0,   0,   0,    0,    0,    0,    0,   0, 0,    0,
                                    0,    'I', 'E', 'N', 'D',  0xae, 0x42, 0x60, 0x82};
    write_file(path, bytes, sizeof bytes);
}

TEST(broken_pictures_are_left_out) {
    static const struct {
        const char *file, *sentence;
        clv_status status;
    } cases[] = {
        {"b/one/bomb.png",
         "'b/one/bomb.png' is too large: 100000 x 100000 pixels; a picture has 89478485 at most",
         CLV_E_FORMAT},
        {"b/one/cut.jpg", "'b/one/cut.jpg' is a broken JPEG: it is cut off", CLV_E_FORMAT},
        {"b/one/cut.png", "'b/one/cut.png' is a broken PNG: it is cut off", CLV_E_FORMAT},
        {"b/one/empty.jpg", "'b/one/empty.jpg' is empty", CLV_E_FORMAT},
        {"b/one/head.jpg", "'b/one/head.jpg' is a broken JPEG: its header tells no size", CLV_E_FORMAT},
        {"b/one/pipe.jpg", "cannot read 'b/one/pipe.jpg': it is a device or pipe, and a file is wanted",
         CLV_E_IO},
        {"b/one/text.jpg", "'b/one/text.jpg' is no picture: neither a JPEG nor a PNG, WebP, BMP, TIFF or GIF",
         CLV_E_FORMAT},
    };
    enum { CASES = sizeof cases / sizeof *cases };
    mkdir("b", 0777);
    mkdir("b/one", 0777);
    copy_picture("png/tiny.png", "b/one/whole.png", 0);
    write_bomb(cases[0].file);
    copy_picture("jpeg/color.jpg", cases[1].file, 300);
    copy_picture("png/color.png", cases[2].file, 300);
    write_file(cases[3].file, "", 0);
    write_file(cases[4].file, "\xff\xd8\xff\xe0\0\x10JFIF\0 and no more", 23);
    assert_int_equal(mkfifo(cases[5].file, 0666), 0);
    write_file(cases[6].file, "this is no picture", 18);
    const char *first = NULL;
    clv_dataset *dataset = open_folder("b", plain);
    assert_int_equal(clv_dataset_info_get(dataset).count, 1);
    assert_string_equal(clv_image_folder_file(dataset, 0, NULL), "one/whole.png");
    assert_int_equal((first = clv_dataset_info_get(dataset).folder.first_broken,
                      clv_dataset_info_get(dataset).folder.broken),
                     CASES);
    assert_string_equal(first, cases[0].sentence);
    clv_dataset_destroy(dataset);
    clv_image_folder_config strict = plain;
    strict.strict = true;
    for (int i = 0; i < CASES; i++) { // each is the first in turn
        expect_failure(refused("b", strict), cases[i].status, cases[i].sentence);
        remove(cases[i].file);
    }
    dataset = open_folder("b", strict);
    assert_int_equal((first = clv_dataset_info_get(dataset).folder.first_broken,
                      clv_dataset_info_get(dataset).folder.broken),
                     0);
    assert_null(first);
    clv_dataset_destroy(dataset);
    static const char *const names[] = {"b/one/whole.png", "b/one", "b"};
    remove_files(names, 3);
}

/** What a folder has beside pictures is counted, each kind by itself; with `strict` it is refused. */
TEST(what_is_passed_over) {
    static const char *const folders[] = {"p", "p/one", "p/one/within", "p/one/within.png", "p/.git"};
    static const char *const files[] = {"p/one/.hidden.png", "p/one/notes.txt", "p/one/raw.cr2",
                                        "p/one/noend",       "p/loose.png",     "p/labels.csv"};
    enum { FOLDERS = sizeof folders / sizeof *folders, FILES = sizeof files / sizeof *files };
    for (int i = 0; i < FOLDERS; i++) mkdir(folders[i], 0777);
    for (int i = 0; i < FILES; i++) write_file(files[i], "x", 1);
    copy_picture("png/tiny.png", "p/one/whole.PNG", 0);
    clv_dataset *dataset = open_folder("p", plain);
    assert_int_equal(clv_dataset_info_get(dataset).count, 1);
    assert_int_equal(clv_dataset_info_get(dataset).folder.broken, 0);
    clv_image_folder_info rest = clv_dataset_info_get(dataset).folder;
    assert_int_equal(rest.passed_over, FILES + 3);
    assert_true(rest.endings == 3 && rest.folders == 2 && rest.hidden == 2 && rest.loose == 2);
    assert_string_equal(rest.first_passed_over, "one/notes.txt");
    clv_dataset_destroy(dataset);
    clv_image_folder_config strict = plain;
    strict.strict = true;
    expect_failure(
        refused("p", strict), CLV_E_FORMAT,
        "'p' has other things than folders of classes with pictures, and `strict` refuses them: with another "
        "ending "
        "than .jpg, .jpeg, .png, .webp, .bmp, .tif, .tiff or .gif 3, folders within classes 2, hidden 2, "
        "beside the classes 2; the first: 'one/notes.txt'");
    remove_files(files, FILES);
    for (int i = FOLDERS; i-- > 2;) remove(folders[i]);
    dataset = open_folder("p", strict);
    rest = clv_dataset_info_get(dataset).folder;
    assert_true(rest.passed_over == 0 && !rest.first_passed_over);
    clv_dataset_destroy(dataset);
    static const char *const names[] = {"p/one/whole.PNG", "p/one", "p"};
    remove_files(names, 3);
}

/** Turned before all else: a sample of a picture that lies on its side is that of the upright one, also of a draft and of few rows. */
TEST(exif_turns_pictures) {
    float upright[N], sample[N];
    mkdir("e", 0777);
    mkdir("e/one", 0777);
    copy_picture("../pictures/turned1.jpg", "e/one/1.jpg", 0);
    copy_picture("../pictures/turned6.jpg", "e/one/6.jpg", 0);
    clv_image_folder_config config = plain;
    clv_dataset *as_is = open_folder("e", config);
    config.exif_transpose = true;
    clv_dataset *turned = open_folder("e", config);
    clv__dataset_sample(as_is, 0, upright);
    clv__dataset_sample(as_is, 1, sample);
    assert_memory_equal(upright, sample, sizeof sample);
    clv__dataset_sample(turned, 0, sample);
    assert_memory_equal(upright, sample, sizeof sample);
    clv__dataset_sample(turned, 1, sample);
    for (int c = 0; c < 3; c++) // a quarter clockwise; where the window of an odd size lies may differ by one
        for (int i = 0; i < SIZE; i++)
            for (int k = 0; k < SIZE; k++)
                assert_true(fabsf(sample[(c * SIZE + i) * SIZE + k] -
                                  upright[(c * SIZE + SIZE - 1 - k) * SIZE + i]) < 3.0f / 255);
    assert_memory_not_equal(upright, sample, sizeof sample);
    clv_dataset_destroy(as_is);
    clv_dataset_destroy(turned);
    static const char *const names[] = {"e/one/1.jpg", "e/one/6.jpg", "e/one", "e"};
    remove_files(names, 4);
}

/** Damage within a picture, which its ends do not show. */
TEST(damage_within_is_replaced) {
    mkdir("d", 0777);
    mkdir("d/one", 0777);
    mkdir("d/two", 0777);
    size_t size;
    uint8_t *bytes = read_file(GOLDEN "images/png/color.png", &size);
    bytes[size / 2] ^= 0xff;
    write_file("d/one/a.png", bytes, size);
    free(bytes);
    copy_picture("png/tiny.png", "d/two/b.png", 0);
    float samples[2][N];
    const char *first = NULL;
    clv_status status;
    clv_dataset *dataset = open_folder("d", plain);
    assert_int_equal(clv_dataset_info_get(dataset).count, 2);
    assert_int_equal(clv_dataset_info_get(dataset).folder.broken, 0);
    clv__dataset_sample(dataset, 0, samples[0]);
    clv__dataset_sample(dataset, 1, samples[1]);
    assert_memory_equal(samples[0], samples[1], sizeof samples[0]);
    assert_int_equal((first = clv_dataset_info_get(dataset).folder.first_broken,
                      clv_dataset_info_get(dataset).folder.broken),
                     1);
    assert_non_null(strstr(first, "'d/one/a.png' is a broken PNG: "));
    sum_of_batches(dataset, 1, 0, 4, &status);
    assert_int_equal(status, CLV_OK);
    assert_int_equal((first = clv_dataset_info_get(dataset).folder.first_broken,
                      clv_dataset_info_get(dataset).folder.broken),
                     1); // it counts once
    clv_dataset_destroy(dataset);
    clv_image_folder_config strict = plain;
    strict.strict = true;
    strict.workers = 3;
    dataset = open_folder("d", strict);
    sum_of_batches(dataset, 1, 0, 4, &status);
    expect_failure(status, CLV_E_FORMAT, "'d/one/a.png' is a broken PNG: ");
    clv_dataset_destroy(dataset);
    static const char *const names[] = {"d/one/a.png", "d/two/b.png", "d/one", "d/two", "d"};
    remove_files(names, 5);
}

/** Where nothing decodes pictures there is one sentence. */
static void without_decoders(void **state) {
    expect_failure(refused(GOLDEN "images", plain), CLV_E_UNSUPPORTED,
                   "Cleave was built without libjpeg and libpng; install both");
}

int main(void) {
    const struct CMUnitTest without[] = {cmocka_unit_test(without_decoders)};
    if (clv__image_built(NULL) != CLV_OK) return cmocka_run_group_tests(without, support_begin, support_end);
    return clv__tests_run(begin, end);
}
