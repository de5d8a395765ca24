// SPDX-License-Identifier: Apache-2.0
// Pictures of every format and kind, pixel by pixel as PIL reads them, upright and as they lie in their files
// (tests/golden/make_pictures.py); and what is cut off or damaged.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/image.h"
#include "io/support.h"

#define GOLDEN CLV_TEST_SOURCE_DIR "/tests/golden/"

static clv_archive *expected;

static int begin(void **state) {
    int code = support_begin(state);
    if (code == 0) code = clv_safetensors_read(support_runtime, GOLDEN "pictures.safetensors", &expected);
    return code;
}

static int end(void **state) {
    clv_archive_destroy(expected);
    return support_end(state);
}

static bool ends_in(const char *name, const char *ending) {
    const size_t a = strlen(name), b = strlen(ending);
    return a >= b && !strcmp(name + a - b, ending);
}

/** Decoders of other versions round JPEGs otherwise. */
static int tolerance(const char *name) {
    return ends_in(name, ".jpg") || ends_in(name, "jpeg.tif") || ends_in(name, "lossy.webp") ? 2 : 0;
}

static bool is_built(clv__image_format format, const char *name) {
    if (clv__image_can_read(format)) return true;
    printf("%s: built without what reads it\n", name);
    return false;
}

static void compare(const char *name, const clv_array *want, const clv__image *image) {
    const uint8_t *pixels = want->data;
    if (image->height != want->shape.dims[0] || image->width != want->shape.dims[1])
        fail_msg("%s: %lld x %lld, not %lld x %lld", name, (long long)image->width, (long long)image->height,
                 (long long)want->shape.dims[1], (long long)want->shape.dims[0]);
    for (int64_t i = 0; i < image->width * image->height * 3; i++)
        if (abs(image->pixels[i] - pixels[i]) > tolerance(name))
            fail_msg("%s: pixel %lld, %lld of channel %d is %d, not %d", name,
                     (long long)(i / 3 % image->width), (long long)(i / 3 / image->width), (int)(i % 3),
                     image->pixels[i], pixels[i]);
}

/** The bytes of a golden picture; to be freed. */
static uint8_t *bytes_of(const char *name, size_t *size) {
    char path[512];
    snprintf(path, sizeof path, GOLDEN "pictures/%s", name);
    return read_file(path, size);
}

TEST(every_kind_is_as_pil_reads_it) {
    clv__error error;
    clv__error_init(&error);
    for (size_t i = 0; clv_archive_get(expected, i); i++) {
        const clv_array *want = clv_archive_get(expected, i);
        const bool turned = !strncmp(want->name, "turned ", 7);
        const char *name = turned ? want->name + 7 : want->name;
        size_t size;
        uint8_t *bytes = bytes_of(name, &size);
        clv__input input;
        clv__image_info info;
        clv__image image;
        clv__input_memory(&error, name, bytes, size, &input);
        if (clv__image_probe(&input, &info) != CLV_OK) fail_msg("%s", clv__error_text(&error));
        if (is_built(info.format, name)) {
            if (clv__image_read(&input, &info, &(clv__image_wish){0}, &image) != CLV_OK)
                fail_msg("%s", clv__error_text(&error));
            assert_true(image.width == info.width && image.height == info.height);
            if (turned) assert_true(clv__image_turn(&image, info.orientation));
            if (turned) assert_true(info.orientation >= 1 && info.orientation <= 8);
            compare(name, want, &image);
            clv__image_reset(&image);
            const bool may_be_cut =
                ends_in(name, "endless.png") || !strncmp(name, "runs", 4); // to be decoded to be sure
            assert_true(info.closed || may_be_cut);
        }
        free(bytes);
    }
    clv__error_destroy(&error);
}

/** Of each file the first so many bytes, and all with one byte turned round: read, or refused with its name. */
TEST(damage_is_told) {
    clv__error error;
    clv__error_init(&error);
    int cut = 0, refused = 0;
    for (size_t i = 0; clv_archive_get(expected, i); i++) {
        const char *name = clv_archive_get(expected, i)->name;
        if (!strncmp(name, "turned ", 7)) continue;
        size_t size;
        uint8_t *bytes = bytes_of(name, &size);
        for (size_t n = 0; n < 2 * size; n += 1 + size / 40) {
            uint8_t *copy = malloc(size);
            assert_non_null(copy);
            const size_t length = n < size ? n : size;
            memcpy(copy, bytes, length);
            if (n >= size) copy[n - size] ^= 0xff;
            clv__input input;
            clv__image_info info;
            clv__image image = {0};
            clv__input_memory(&error, name, copy, length, &input);
            clv_status status = clv__image_probe(&input, &info);
            if (status == CLV_OK && clv__image_can_read(info.format) && info.width * info.height < 1 << 20)
                status = clv__image_read(&input, &info, &(clv__image_wish){0}, &image);
            if (status != CLV_OK) assert_non_null(strstr(clv__error_text(&error), name));
            cut += n < size;
            refused += n < size && status != CLV_OK;
            clv__image_reset(&image);
            free(copy);
        }
        free(bytes);
    }
    printf("%d of %d that are cut off are refused\n", refused, cut);
    assert_true(refused > cut * 8 / 10); // the others lack what is behind the pixels
    clv__error_destroy(&error);
}

TEST_MAIN(begin, end)
