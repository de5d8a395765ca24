// SPDX-License-Identifier: Apache-2.0
// Any bytes as a picture: refused with a sentence, or all pixels that its header tells of, turned, of which a sample can be made. PNGs are tried
// again with right checksums, without which little would get past them.
#include "fuzz/fuzz.h"

#include <zlib.h>

#include "data/transforms.h"

enum { PIXELS = 1 << 20, SIZE = 7, RESIZE = 8 }; // larger ones are decoded by the same code, more slowly

static void use(const clv__image *image, clv__random *random) {
    static const float mean[3] = {0.5f, 0.5f, 0.5f}, std[3] = {0.25f, 0.25f, 0.25f};
    static const clv_image_augment augments[] = {
        {0}, {.crop = true, .scale = {0.08, 1}, .ratio = {0.75, 1.25}, .flip = 0.5, .contrast = 0.5}};
    for (size_t i = 0; i < 2; i++) {
        clv__transforms t;
        clv__drawn drawn;
        uint8_t window[3 * SIZE * SIZE];
        float out[3 * SIZE * SIZE];
        clv__transforms_init(&t, SIZE, RESIZE, &augments[i], mean, std);
        clv__transforms_draw(&t, random, image->width, image->height, &drawn);
        REQUIRE(clv__transforms_rows(&drawn) <= image->height);
        REQUIRE(clv__transforms_window(&t, &drawn, image, window));
        clv__transforms_finish(&t, &drawn, window, out);
        for (int k = 0; k < 3 * SIZE * SIZE; k++) REQUIRE(out[k] >= -2 && out[k] <= 2);
    }
}

static void read_bytes(const uint8_t *data, size_t size) {
    clv__error error;
    clv__error_init(&error);
    clv__input input;
    clv__image_info info;
    clv__image image = {0};
    clv__input_memory(&error, "x", data, size, &input);
    clv_status status = clv__image_probe(&input, &info);
    if (status == CLV_OK) {
        REQUIRE(info.width >= 1 && info.height >= 1 && info.width * info.height <= CLV__IMAGE_PIXELS);
        if (info.width * info.height <= PIXELS) {
            const clv__image_wish wishes[] = {{0}, {.rows = 3}, {.scale = 4}};
            clv__random random;
            clv__random_init(&random, size, CLV__STREAM_TEST, 0);
            for (size_t i = 0; i < 3; i++) {
                status = clv__image_read(&input, &info, &wishes[i], &image);
                REQUIRE((status == CLV_OK) == (image.pixels != NULL));
                if (status == CLV_OK) use(&image, &random);
                REQUIRE(info.orientation >= 1 && info.orientation <= 8);
                if (status == CLV_OK) REQUIRE(clv__image_turn(&image, info.orientation));
                if (status == CLV_OK && i == 0)
                    REQUIRE(image.width * image.height == info.width * info.height);
                clv__image_reset(&image);
                if (status != CLV_OK) break;
            }
        }
    }
    if (status != CLV_OK) require_sentence(&error, status);
    clv__error_destroy(&error);
}

/** Give each chunk of a PNG its checksum. false: it has none. */
static bool mend(uint8_t *data, size_t size) {
    if (size < 20 || data[0] != 0x89) return false;
    for (size_t at = 8; size - at >= 12;) {
        const size_t length =
            (size_t)data[at] << 24 | (size_t)data[at + 1] << 16 | (size_t)data[at + 2] << 8 | data[at + 3];
        if (length > size - at - 12) break;
        const uLong sum = crc32(0, data + at + 4, (uInt)length + 4);
        for (int i = 0; i < 4; i++) data[at + 8 + length + (size_t)i] = (uint8_t)(sum >> (24 - 8 * i));
        at += 12 + length;
    }
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    read_bytes(data, size);
    uint8_t *copy = malloc(size ? size : 1);
    REQUIRE(copy);
    if (size) memcpy(copy, data, size);
    if (mend(copy, size)) read_bytes(copy, size);
    free(copy);
    return 0;
}
