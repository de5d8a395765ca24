// SPDX-License-Identifier: Apache-2.0
// Headers of pictures, read without a library and held against the limits before one is asked to decode them.
// Sources: ISO/IEC 10918-1, annex B (JPEG's markers); W3C PNG (second edition), chapters 5 and 11.
#include "io/image.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "io/shown.h"

enum { SEGMENTS = 4096, TAIL = 1024, PNG_HEAD = 33, PNG_END = 12 };

static const uint8_t png_signature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

static uint32_t big32(const uint8_t *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/** Walk over the segments to the one with the sizes. */
static clv_status probe_jpeg(const clv__input *input, clv__image_info *out) {
    uint64_t at = 2;
    for (int i = 0; i < SEGMENTS && input->bytes - at >= 9; i++) {
        uint8_t head[9]; // FF, marker, length (2), precision, height (2), width (2)
        CLV_TRY(clv__input_read(input, at, head, sizeof head));
        const uint8_t marker = head[1];
        if (head[0] == 0xff && marker == 0xff) { // filling
            at++;
            continue;
        }
        const uint64_t length = (uint64_t)head[2] << 8 | head[3];
        if (head[0] != 0xff || marker == 0xd8 || marker == 0xd9 || marker == 0xda || length < 2) break;
        if (marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc) {
            out->height = (int64_t)head[5] << 8 | head[6];
            out->width = (int64_t)head[7] << 8 | head[8];
            return CLV_OK;
        }
        if (length + 2 > input->bytes - at) break;
        at += 2 + length;
    }
    CLV_FAIL(input->error, CLV_E_FORMAT, "'%s' is a broken JPEG: its header tells no size", input->path);
}

static clv_status probe_png(const clv__input *input, clv__image_info *out) {
    uint8_t head[PNG_HEAD];
    if (input->bytes >= sizeof head) {
        CLV_TRY(clv__input_read(input, 0, head, sizeof head));
        if (big32(head + 8) == 13 && !memcmp(head + 12, "IHDR", 4)) {
            out->width = big32(head + 16);
            out->height = big32(head + 20);
            out->interlaced = head[28] != 0;
            return CLV_OK;
        }
    }
    CLV_FAIL(input->error, CLV_E_FORMAT, "'%s' is a broken PNG: it does not begin with its header",
             input->path);
}

/** Does the file end as it should? What comes after a JPEG's end does not matter, if it is short. */
static clv_status probe_end(const clv__input *input, clv__image_info *out) {
    uint8_t tail[TAIL];
    const size_t n = input->bytes < sizeof tail ? (size_t)input->bytes : sizeof tail;
    CLV_TRY(clv__input_read(input, input->bytes - n, tail, n));
    if (out->format == CLV__PNG) {
        out->closed = n >= PNG_END && !memcmp(tail + n - PNG_END + 4, "IEND", 4);
        return CLV_OK;
    }
    for (size_t i = 0; i + 1 < n; i++)
        if (tail[i] == 0xff && tail[i + 1] == 0xd9) out->closed = true;
    return CLV_OK;
}

clv_status clv__image_probe(const clv__input *input, clv__image_info *out) {
    *out = (clv__image_info){0};
    uint8_t head[8] = {0};
    if (input->bytes > CLV__IMAGE_FILE_BYTES)
        CLV_FAIL(input->error, CLV_E_FORMAT, "'%s' has %" PRIu64 " bytes; a picture has %d at most",
                 input->path, input->bytes, CLV__IMAGE_FILE_BYTES);
    CLV_TRY(clv__input_read(input, 0, head, input->bytes < sizeof head ? (size_t)input->bytes : sizeof head));
    const bool jpeg = head[0] == 0xff && head[1] == 0xd8;
    if (!jpeg && memcmp(head, png_signature, sizeof head) != 0)
        CLV_FAIL(input->error, CLV_E_FORMAT, "'%s' is %s", input->path,
                 input->bytes == 0 ? "empty" : "neither a JPEG nor a PNG");
    out->format = jpeg ? CLV__JPEG : CLV__PNG;
    CLV_TRY(jpeg ? probe_jpeg(input, out) : probe_png(input, out));
    if (out->width < 1 || out->height < 1)
        CLV_FAIL(input->error, CLV_E_FORMAT, "'%s' has no pixels: %" PRId64 " x %" PRId64, input->path,
                 out->width, out->height);
    if (out->width > CLV__IMAGE_PIXELS / out->height)
        CLV_FAIL(input->error, CLV_E_FORMAT,
                 "'%s' is too large: %" PRId64 " x %" PRId64 " pixels; a picture has %d at most", input->path,
                 out->width, out->height, CLV__IMAGE_PIXELS);
    return probe_end(input, out);
}

clv_status clv__image_built(clv__error *error) {
#ifdef CLEAVE_IMAGES
    (void)error;
    return CLV_OK;
#else
    CLV_FAIL(error, CLV_E_UNSUPPORTED,
             "pictures cannot be decoded: Cleave was built without libjpeg and libpng; install both "
             "(Debian: libjpeg-dev libpng-dev) and build it again");
#endif
}

clv_status clv__image_read(const clv__input *input, const clv__image_info *info, const clv__image_wish *wish,
                           clv__image *out) {
    *out = (clv__image){0};
    CLV_TRY(clv__image_built(input->error));
#ifdef CLEAVE_IMAGES
    const bool jpeg = info->format == CLV__JPEG;
    const int scale = jpeg && wish->scale ? wish->scale : 1;
    const int64_t height = (info->height + scale - 1) / scale;
    out->width = (info->width + scale - 1) / scale;
    out->height = wish->rows && wish->rows < height && !info->interlaced ? wish->rows : height;
    out->pixels = malloc((size_t)(out->width * out->height) * 3);
    if (!out->pixels)
        CLV_FAIL(input->error, CLV_E_HOST_MEMORY, "'%s': no host memory for %" PRId64 " x %" PRId64 " pixels",
                 input->path, out->width, out->height);
    char reason[CLV__IMAGE_REASON] = "";
    if (jpeg ? clv__jpeg_read(input, scale, out, reason) : clv__png_read(input, info, out, reason))
        return CLV_OK;
    clv__image_reset(out);
    clv__shown_text shown;
    CLV_FAIL(input->error, CLV_E_FORMAT, "'%s' is a broken %s: %s", input->path, jpeg ? "JPEG" : "PNG",
             clv__shown(reason, &shown));
#else
    (void)info, (void)wish;
    return CLV_E_UNSUPPORTED;
#endif
}

void clv__image_reset(clv__image *image) {
    free(image->pixels);
    *image = (clv__image){0};
}
