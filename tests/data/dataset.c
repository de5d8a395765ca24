// SPDX-License-Identifier: Apache-2.0
// Datasets: from arrays, from .npy files, Fashion-MNIST; labels, limits, normalisation, and what is refused.
#include "data/dataset.h"
#include "io/support.h"

#include <math.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "cleave/data.h"

static float pixels[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
static int64_t classes64[4] = {2, 0, 1, 2};

static clv_array images_of(clv_shape shape) {
    return (clv_array){.type = CLV_DTYPE_F32, .shape = shape, .data = pixels, .borrowed = true};
}

static clv_array labels_of(int64_t n) {
    return (clv_array){.type = CLV_DTYPE_I64, .shape = CLV_SHAPE(n), .data = classes64, .borrowed = true};
}

static clv_dataset *make(const clv_dataset_config *config) {
    clv_array images = images_of(CLV_SHAPE(4, 1, 3)), labels = labels_of(4);
    clv_dataset *dataset = NULL;
    expect_ok(clv_dataset_from_arrays(support_runtime, &images, &labels, config, &dataset));
    return dataset;
}

TEST(floats_stay_as_they_are) {
    clv_dataset *dataset = make(NULL);
    assert_int_equal(clv_dataset_info_get(dataset).count, 4);
    assert_int_equal(clv_dataset_info_get(dataset).classes, 3);
    clv_shape sample = clv_dataset_info_get(dataset).sample;
    assert_true(clv_shape_equal(&sample, SHAPE(1, 3)));
    float x[3];
    for (int i = 0; i < 4; i++) {
        clv__dataset_sample(dataset, i, x);
        assert_memory_equal(x, pixels + 3 * i, sizeof x);
        assert_int_equal(clv__dataset_label(dataset, i), classes64[i]);
    }
    clv_dataset_destroy(dataset);
    clv_dataset_destroy(NULL);
}

TEST(configs_are_kept) {
    clv_dataset *dataset = make(&(clv_dataset_config){.limit = 2, .mean = 1, .std = 2, .classes = 10});
    assert_int_equal(clv_dataset_info_get(dataset).count, 2);
    assert_int_equal(clv_dataset_info_get(dataset).classes, 10);
    float x[3];
    clv__dataset_sample(dataset, 1, x);
    assert_true(x[0] == 1 && x[1] == 1.5f && x[2] == 2);
    clv_dataset_destroy(dataset);
    dataset = make(&(clv_dataset_config){.limit = 100});
    assert_int_equal(clv_dataset_info_get(dataset).count, 4);
    clv_dataset_destroy(dataset);
}

TEST(ownership_is_as_told) {
    clv_array images, labels = labels_of(2);
    expect_ok(clv_array_init(support_runtime, CLV_DTYPE_U8, SHAPE(2, 3), &images));
    clv_dataset *dataset = NULL;
    labels.shape.dims[0] = 3; // refused: the array stays the caller's
    expect_failure(clv_dataset_from_arrays(support_runtime, &images, &labels, NULL, &dataset), CLV_E_SHAPE,
                   "labels");
    assert_null(dataset);
    assert_non_null(images.data);
    labels.shape.dims[0] = 2;
    expect_ok(clv_dataset_from_arrays(support_runtime, &images, &labels, NULL, &dataset));
    assert_null(images.data);
    clv_dataset_destroy(dataset);
}

TEST(bytes_become_what_torchvision_makes) {
    clv_array wanted, images,
        labels = {.type = CLV_DTYPE_U8, .shape = CLV_SHAPE(1), .data = "\3", .borrowed = true};
    expect_ok(clv_npy_read(support_runtime, golden("normalised.npy"), &wanted));
    float x[256];
    for (int plain = 0; plain < 2; plain++) {
        expect_ok(clv_array_init(support_runtime, CLV_DTYPE_U8, SHAPE(1, 256), &images));
        for (int i = 0; i < 256; i++) ((uint8_t *)images.data)[i] = (uint8_t)i;
        clv_dataset_config config = {.mean = plain ? 0 : 0.2860f, .std = plain ? 0 : 0.3530f};
        clv_dataset *dataset = NULL;
        expect_ok(clv_dataset_from_arrays(support_runtime, &images, &labels, &config, &dataset));
        clv__dataset_sample(dataset, 0, x);
        if (plain) {
            for (int i = 0; i < 256; i++) assert_true(x[i] == (float)i / 255.0f);
        } else {
            assert_memory_equal(x, wanted.data, sizeof x);
        }
        clv_dataset_destroy(dataset);
    }
    clv_array_reset(&wanted);
}

static clv_status from(clv_array images, clv_array labels, clv_dataset_config config) {
    clv_dataset *dataset = (clv_dataset *)1;
    clv_status status = clv_dataset_from_arrays(support_runtime, &images, &labels, &config, &dataset);
    assert_true((status == CLV_OK) == (dataset != NULL));
    clv_dataset_destroy(dataset);
    return status;
}

/** Bytes and numbers of three channels, each with a mean and std of its own. */
TEST(channels_have_their_own_scales) {
    const float means[3] = {0, 0.5f, 0.25f}, stds[3] = {1, 0.5f, 0.25f};
    uint8_t bytes[12] = {0, 255, 0, 255, 0, 255, 255, 0, 51, 0, 255, 0};
    float floats[12] = {0, 1, 0, 1, 0, 1, 1, 0, 0.2f, 0, 1, 0}, x[6];
    const float wanted[12] = {0, 1, -1, 1, -1, 3, 1, 0, -0.6f, -1, 3, -1};
    clv_array labels = labels_of(2);
    for (int numbers = 0; numbers < 2; numbers++) {
        clv_array images = {.type = numbers ? CLV_DTYPE_F32 : CLV_DTYPE_U8,
                            .shape = CLV_SHAPE(2, 3, 2, 1),
                            .data = numbers ? (void *)floats : (void *)bytes,
                            .borrowed = true};
        clv_dataset_config config = {.channels = 3, .means = means, .stds = stds};
        for (int only = 0; only <= numbers; only++) {
            clv_dataset *dataset = NULL;
            config.only_bytes = only;
            expect_ok(clv_dataset_from_arrays(support_runtime, &images, &labels, &config, &dataset));
            for (int i = 0; i < 2; i++) {
                clv__dataset_sample(dataset, i, x);
                for (int k = 0; k < 6; k++)
                    assert_true(fabsf(x[k] - (only ? floats : wanted)[6 * i + k]) < 1e-6f);
            }
            clv_dataset_destroy(dataset);
        }
        images.shape = CLV_SHAPE(2, 2, 1, 3);
        config.only_bytes = false;
        expect_failure(from(images, labels, config), CLV_E_SHAPE, "x.transpose(0, 3, 1, 2)");
        config.channels = 2;
        expect_failure(from(images, labels, config), CLV_E_VALUE, "1 or 3 are possible");
        config.channels = 3;
        config.stds = NULL;
        expect_failure(from(images, labels, config), CLV_E_VALUE, "without stds");
    }
}

/** Numbers instead of classes, several for each sample. */
/** What RandomCrop and RandomHorizontalFlip of an image of 2 channels of 2 x 3 give for one shift; what is outside is `zero`. */
static void moved(const float *from, int top, int left, bool flip, const float *zero, float *to) {
    for (int c = 0; c < 2; c++)
        for (int y = 0; y < 2; y++)
            for (int k = 0; k < 3; k++, to++) {
                const int row = y + top, column = (flip ? 2 - k : k) + left;
                const bool inside = row >= 0 && row < 2 && column >= 0 && column < 3;
                *to = inside ? from[(c * 2 + row) * 3 + column] : zero[c];
            }
}

TEST(images_are_moved_and_flipped_anew_in_each_epoch) {
    uint8_t bytes[12] = {10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120};
    int64_t label = 0;
    clv_array images = {.type = CLV_DTYPE_U8,
                        .shape = CLV_SHAPE(1, 2, 2, 3),
                        .data = bytes,
                        .borrowed = true},
              labels = {.type = CLV_DTYPE_I64, .shape = CLV_SHAPE(1), .data = &label, .borrowed = true};
    const clv_dataset_config config = {.mean = 0.25f, .std = 0.5f, .crop_padding = 1, .flip = 0.5};
    clv_dataset *dataset = NULL;
    expect_ok(clv_dataset_from_arrays(support_runtime, &images, &labels, &config, &dataset));
    float plain[12], as_bytes[12], zero[2] = {(0 - 0.25f) / 0.5f, (0 - 0.25f) / 0.5f}, none[2] = {0, 0};
    clv__dataset_sample(dataset, 0, plain); // as it stands
    for (int i = 0; i < 12; i++) {
        as_bytes[i] = bytes[i];
        assert_true(plain[i] == ((float)bytes[i] / 255.0f - 0.25f) / 0.5f);
    }
    int seen[3][3][2] = {{{0}}};
    for (int64_t epoch = 0; epoch < 400; epoch++) {
        float x[12], want[12];
        uint8_t drawn[12];
        int32_t target = -1;
        clv__error error = {0};
        expect_ok(dataset->draw(dataset, 0, &(clv__draw){7, epoch, false}, &error, x, &target));
        expect_ok(dataset->draw(dataset, 0, &(clv__draw){7, epoch, true}, &error, drawn, NULL));
        assert_int_equal(target, 0);
        int found = 0;
        for (int at = 0; at < 18; at++) {
            const int top = at / 6 - 1, left = at / 2 % 3 - 1, flip = at % 2;
            moved(plain, top, left, flip, zero, want);
            if (memcmp(x, want, sizeof x) != 0) continue;
            moved(as_bytes, top, left, flip, none, want);
            for (int i = 0; i < 12; i++) assert_true(want[i] == drawn[i]);
            seen[top + 1][left + 1][flip]++;
            found++;
        }
        assert_int_equal(found, 1);
    }
    for (int at = 0; at < 18; at++) assert_in_range(seen[at / 6][at / 2 % 3][at % 2], 7, 50);
    clv_dataset_destroy(dataset);
    expect_failure(clv_dataset_from_arrays(support_runtime, &images, &labels,
                                           &(clv_dataset_config){.flip = 2}, &dataset),
                   CLV_E_VALUE, "flip of 2: it is a probability, 0 to 1");
    expect_failure(clv_dataset_from_arrays(support_runtime, &images, &labels,
                                           &(clv_dataset_config){.crop_padding = -1}, &dataset),
                   CLV_E_VALUE, "a crop_padding of -1 pixels: 0 to 536870911 are possible");
    images.shape = CLV_SHAPE(1, 12);
    expect_failure(clv_dataset_from_arrays(support_runtime, &images, &labels,
                                           &(clv_dataset_config){.flip = 1}, &dataset),
                   CLV_E_SHAPE,
                   "images of shape [1,12]: crop_padding and flip are of images, [N,...,height,width]");
}

TEST(targets_that_are_numbers) {
    float values[8] = {0, -1, 2.5f, 3, 4, 5, 6, 1e30f}, read[2];
    clv_array images = images_of(CLV_SHAPE(4, 3)),
              targets = {.type = CLV_DTYPE_F32, .shape = CLV_SHAPE(4, 2), .data = values, .borrowed = true};
    clv_dataset *dataset = NULL;
    expect_ok(clv_dataset_from_arrays(support_runtime, &images, &targets, &(clv_dataset_config){.limit = 3},
                                      &dataset));
    values[2] = 0; // they were copied
    assert_int_equal(clv_dataset_info_get(dataset).classes, 0);
    assert_int_equal(clv__dataset_label(dataset, 1), -1);
    assert_int_equal(clv_dataset_info_get(dataset).count, 3);
    const clv_shape shape = clv_dataset_info_get(dataset).target, two = CLV_SHAPE(2);
    assert_true(clv_shape_equal(&shape, &two));
    clv__dataset_target(dataset, 1, read);
    assert_true(read[0] == 2.5f && read[1] == 3);
    clv_dataset_destroy(dataset);
}

TEST(refuses_what_is_no_dataset) {
    const clv_dataset_config none = {0};
    clv_array images = images_of(CLV_SHAPE(4, 3)), labels = labels_of(4), other;
    expect_ok(from(images, labels, none));
    other = images;
    other.type = CLV_DTYPE_I32;
    expect_failure(from(other, labels, none), CLV_E_DTYPE, "images: the type is i32");
    other = labels;
    other.type = CLV_DTYPE_F32;
    other.shape = CLV_SHAPE(3);
    expect_failure(from(images, other, none), CLV_E_SHAPE, "[4,...] is wanted, a target for each");
    expect_failure(from((clv_array){0}, labels, none), CLV_E_DTYPE, "none");
    other = images;
    other.shape = (clv_shape){0};
    expect_failure(from(other, labels, none), CLV_E_SHAPE, "images: one number");
    other.shape = CLV_SHAPE(0, 3);
    expect_failure(from(other, labels_of(0), none), CLV_E_SHAPE, "[0,3] holds no samples");
    other.shape = CLV_SHAPE(4, 0);
    expect_failure(from(other, labels, none), CLV_E_SHAPE, "[4,0] holds no samples");
    expect_failure(from(images, labels_of(3), none), CLV_E_SHAPE, "the shape is [3], but [4] is wanted",
                   "images [4,3]");
    other = labels;
    other.shape = CLV_SHAPE(4, 1);
    expect_failure(from(images, other, none), CLV_E_SHAPE, "[4,1], but [4]");
    expect_failure(from(images, labels, (clv_dataset_config){.limit = -1}), CLV_E_VALUE, "limit of -1");
    expect_failure(from(images, labels, (clv_dataset_config){.classes = -1}), CLV_E_VALUE, "-1 classes");
    static const float bad[][2] = {{0.5f, 0}, {0, -1}, {0, INFINITY}, {NAN, 1}, {0, NAN}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        expect_failure(from(images, labels, (clv_dataset_config){.mean = bad[i][0], .std = bad[i][1]}),
                       CLV_E_VALUE, "std");
    }
}

TEST(labels_out_of_range_are_named) {
    static const struct {
        int64_t label;
        int classes;
        const char *part;
    } cases[] = {
        {-1, 0, "labels: row 2 is -1, but labels are 0 to 16777215"},
        {INT64_MAX, 0, "row 2 is 9223372036854775807"},
        {4294967296, 3, "row 2 is 4294967296, but labels are 0 to 2"}, // 0, where someone cuts to 32 bits
        {3, 3, "row 2 is 3, but labels are 0 to 2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t values[4] = {0, 1, cases[i].label, -7};
        clv_array images = images_of(CLV_SHAPE(4, 3)), labels = labels_of(4);
        labels.data = values;
        expect_failure(from(images, labels, (clv_dataset_config){.classes = cases[i].classes}), CLV_E_VALUE,
                       cases[i].part);
        expect_ok(
            from(images, labels, (clv_dataset_config){.classes = 3, .limit = 2})); // the others are not read
    }
}

TEST(npy_files_become_datasets) {
    clv_array images = images_of(CLV_SHAPE(3, 4)), labels = {.type = CLV_DTYPE_I32, .shape = CLV_SHAPE(3)};
    int32_t values[3] = {4, 0, 2};
    labels.data = values;
    expect_ok(clv_npy_write(support_runtime, &images, "x.npy"));
    expect_ok(clv_npy_write(support_runtime, &labels, "y.npy"));
    clv_dataset *dataset = NULL;
    expect_ok(clv_dataset_npy(support_runtime, "x.npy", "y.npy", NULL, &dataset));
    assert_int_equal(clv_dataset_info_get(dataset).classes, 5);
    assert_int_equal(clv__dataset_label(dataset, 2), 2);
    clv_dataset_destroy(dataset);
    expect_failure(clv_dataset_npy(support_runtime, "x.npy", "z.npy", NULL, &dataset), CLV_E_IO, "'z.npy'");
    assert_null(dataset);
    expect_failure(clv_dataset_npy(support_runtime, "z.npy", "y.npy", NULL, &dataset), CLV_E_IO, "'z.npy'");
    expect_failure(
        clv_dataset_npy(support_runtime, "x.npy", "y.npy", &(clv_dataset_config){.classes = 3}, &dataset),
        CLV_E_VALUE, "labels 'y.npy': row 0 is 4, but labels are 0 to 2");
    expect_failure(clv_dataset_npy(support_runtime, "y.npy", "x.npy", NULL, &dataset), CLV_E_DTYPE,
                   "images 'y.npy'", "i32");
    // values that are not finite, among the samples that are kept
    float rows[] = {1, 2, 3, 4, 5, INFINITY}, targets[] = {1, 2, NAN};
    clv_array x = {.type = CLV_DTYPE_F32, .shape = CLV_SHAPE(3, 2), .data = rows},
              y = {.type = CLV_DTYPE_F32, .shape = CLV_SHAPE(3), .data = targets};
    expect_ok(clv_npy_write(support_runtime, &x, "x.npy"));
    expect_ok(clv_npy_write(support_runtime, &y, "y.npy"));
    expect_failure(clv_dataset_npy(support_runtime, "x.npy", "y.npy", NULL, &dataset), CLV_E_VALUE,
                   "images 'x.npy': element [2,1] is inf in f32, and data must be finite; numpy leaves such "
                   "rows out with x[numpy.isfinite(x.reshape(len(x), -1)).all(1)]");
    assert_null(dataset);
    rows[5] = 6;
    expect_ok(clv_npy_write(support_runtime, &x, "x.npy"));
    expect_failure(clv_dataset_npy(support_runtime, "x.npy", "y.npy", NULL, &dataset), CLV_E_VALUE,
                   "labels 'y.npy': element [2] is nan in f32");
    expect_ok(
        clv_dataset_npy(support_runtime, "x.npy", "y.npy", &(clv_dataset_config){.limit = 2}, &dataset));
    clv_dataset_destroy(dataset);
    remove("x.npy");
    remove("y.npy");
}

static void write_idx(const char *path, int gzipped, const char *header, size_t header_bytes, size_t n,
                      int value) {
    gzFile file = gzopen(path, gzipped ? "wb" : "wbT");
    assert_non_null(file);
    assert_int_equal(gzwrite(file, header, (unsigned)header_bytes), header_bytes);
    for (size_t i = 0; i < n; i++) gzputc(file, value < 0 ? (int)(i % 256) : value);
    assert_int_equal(gzclose(file), Z_OK);
}

#define HEADER(text) (text), sizeof(text) - 1
#define IMAGES_2 HEADER("\0\0\x08\3\0\0\0\2\0\0\0\x1c\0\0\0\x1c")
#define LABELS_2 HEADER("\0\0\x08\1\0\0\0\2")

TEST(fashion_mnist_is_found_and_checked) {
    clv_dataset *dataset = NULL;
    const char *data = "CLEAVE_DATA_DIR";
    expect_failure(clv_dataset_fashion_mnist(support_runtime, "nowhere", CLV_SPLIT_TRAIN, NULL, &dataset),
                   CLV_E_IO, "not in 'nowhere'", "train-labels-idx1-ubyte.gz",
                   "apt-get install dataset-fashion-mnist", "`folder` of clv_dataset_fashion_mnist", data);
    assert_int_equal(mkdir("fashion-mnist", 0777), 0);
    write_idx("fashion-mnist/t10k-labels-idx1-ubyte.gz", 1, LABELS_2, 2, 9);
    expect_failure(clv_dataset_fashion_mnist(support_runtime, ".", CLV_SPLIT_TEST, NULL, &dataset), CLV_E_IO,
                   "t10k-images-idx3-ubyte.gz");
    write_idx("fashion-mnist/t10k-images-idx3-ubyte", 0, IMAGES_2, 2 * 784, -1);
    setenv(data, ".", 1);
    expect_ok(clv_dataset_fashion_mnist(support_runtime, NULL, CLV_SPLIT_TEST, NULL, &dataset));
    unsetenv(data);
    assert_int_equal(clv_dataset_info_get(dataset).count, 2);
    assert_int_equal(clv_dataset_info_get(dataset).classes, 10);
    assert_int_equal(clv__dataset_label(dataset, 1), 9);
    clv_shape sample = clv_dataset_info_get(dataset).sample;
    assert_true(clv_shape_equal(&sample, SHAPE(1, 28, 28)));
    float x[784];
    clv__dataset_sample(dataset, 1, x);
    assert_true(x[0] == ((784 % 256) / 255.0f - 0.2860f) / 0.3530f);
    clv_dataset_destroy(dataset);
    expect_failure(clv_dataset_fashion_mnist(support_runtime, ".", (clv_split)2, NULL, &dataset), CLV_E_VALUE,
                   "splits");

    write_idx("fashion-mnist/t10k-labels-idx1-ubyte.gz", 1, LABELS_2, 2, 10);
    expect_failure(clv_dataset_fashion_mnist(support_runtime, ".", CLV_SPLIT_TEST, NULL, &dataset),
                   CLV_E_VALUE, "t10k-labels-idx1-ubyte: row 0 is 10, but labels are 0 to 9");
    write_idx("fashion-mnist/t10k-labels-idx1-ubyte.gz", 1, HEADER("\0\0\x08\1\0\0\0\3"), 3, 1);
    expect_failure(clv_dataset_fashion_mnist(support_runtime, ".", CLV_SPLIT_TEST, NULL, &dataset),
                   CLV_E_SHAPE, "[3]");
    write_idx("fashion-mnist/t10k-images-idx3-ubyte", 0, HEADER("\0\0\x08\2\0\0\0\2\0\0\0\1"), 2, 0);
    expect_failure(clv_dataset_fashion_mnist(support_runtime, ".", CLV_SPLIT_TEST, NULL, &dataset),
                   CLV_E_FORMAT, "[2,1] of u8", "[N,28,28]");
    write_idx("fashion-mnist/t10k-images-idx3-ubyte", 0, IMAGES_2, 784, 0);
    expect_failure(clv_dataset_fashion_mnist(support_runtime, ".", CLV_SPLIT_TEST, NULL, &dataset),
                   CLV_E_FORMAT, "t10k-images-idx3-ubyte' is cut short");
    assert_null(dataset);
    remove("fashion-mnist/t10k-labels-idx1-ubyte.gz");
    remove("fashion-mnist/t10k-images-idx3-ubyte");
    rmdir("fashion-mnist");
}

TEST(the_package_s_files_are_whole) {
    clv_dataset *dataset = NULL;
    if (access("/usr/share/datasets/fashion-mnist", F_OK) != 0) {
        print_message("skipped: the package dataset-fashion-mnist is not installed\n");
        skip();
    }
    unsetenv("CLEAVE_DATA_DIR");
    static const int64_t counts[] = {60000, 10000};
    for (int split = 0; split < 2; split++) {
        expect_ok(clv_dataset_fashion_mnist(support_runtime, NULL, (clv_split)split, NULL, &dataset));
        assert_int_equal(clv_dataset_info_get(dataset).count, counts[split]);
        int64_t of_class[10] = {0};
        double sum = 0, squares = 0;
        float x[784];
        for (int64_t i = 0; i < counts[split]; i++) {
            of_class[clv__dataset_label(dataset, i)]++;
            clv__dataset_sample(dataset, i, x);
            for (int k = 0; k < 784; k++) {
                sum += (double)x[k];
                squares += (double)x[k] * (double)x[k];
            }
        }
        for (int c = 0; c < 10; c++) assert_int_equal(of_class[c], counts[split] / 10);
        if (split ==
            CLV_SPLIT_TRAIN) { // its mean and std are what it is normalised with, to the digits given
            double n = 784.0 * (double)counts[split];
            assert_true(fabs(sum / n) < 3e-4 && fabs(sqrt(squares / n) - 1) < 3e-4);
        }
        clv_dataset_destroy(dataset);
    }
}

TEST(correct_answers_are_counted) {
    static const float logits[] = {0,        1, 2, /**/ 5, 5,   1, /**/ -1, -2, -3,
                                   /**/ NAN, 0, 1, /**/ 0, NAN, 1, /**/ 1,  0,  0};
    static const int32_t labels[] = {2, 0, 0, 0, 2, 1};
    assert_int_equal(clv__count_correct(logits, labels, 6, 3), 3);
    assert_int_equal(clv__count_correct(logits, labels, 0, 3), 0);
}

TEST_MAIN(support_begin, support_end)
