// SPDX-License-Identifier: Apache-2.0
// Pictures of any format: what a file is, held against the limits before a decoder is asked, and what is done with one of any kind.
#include "io/image.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "io/shown.h"

#ifdef CLEAVE_IMAGES
#define HAS(decoder) decoder
#else
#define HAS(decoder) NULL
#endif
#ifdef CLEAVE_IMAGES_WEBP
#define HAS_WEBP clv__webp_read
#else
#define HAS_WEBP NULL
#endif
#ifdef CLEAVE_IMAGES_TIFF
#define HAS_TIFF clv__tiff_read
#else
#define HAS_TIFF NULL
#endif
#ifdef CLEAVE_IMAGES_GIF
#define HAS_GIF clv__gif_read
#else
#define HAS_GIF NULL
#endif

/** The formats: how a sentence names a file of one, the library that decodes it, and its package in Debian. */
static const struct {
    const char *name, *library, *package;
    bool (*probe)(const clv__input *input, clv__image_info *out, char room[CLV__IMAGE_REASON]);
    bool (*read)(const clv__input *input, clv__image *out, char room[CLV__IMAGE_REASON]);
} formats[CLV__IMAGE_FORMATS] = {
    [CLV__JPEG] = {"JPEG", "libjpeg", "libjpeg-dev", clv__jpeg_probe, NULL}, // it has a scale
    [CLV__PNG] = {"PNG", "libpng", "libpng-dev", clv__png_probe, NULL},      // it has rows
    [CLV__WEBP] = {"WebP", "libwebp", "libwebp-dev", clv__webp_probe, HAS_WEBP},
    [CLV__BMP] = {"BMP", "", "", clv__bmp_probe, HAS(clv__bmp_read)},
    [CLV__TIFF] = {"TIFF", "libtiff", "libtiff-dev", clv__tiff_probe, HAS_TIFF},
    [CLV__GIF] = {"GIF", "giflib", "libgif-dev", clv__gif_probe, HAS_GIF},
};

/** -1: none of them. */
static int format_of(const uint8_t head[12]) {
    if (head[0] == 0xff && head[1] == 0xd8) return CLV__JPEG;
    if (!memcmp(head, "\x89PNG\r\n\x1a\n", 8)) return CLV__PNG;
    if (!memcmp(head, "RIFF", 4) && !memcmp(head + 8, "WEBP", 4)) return CLV__WEBP;
    if (!memcmp(head, "II*\0", 4) || !memcmp(head, "MM\0*", 4)) return CLV__TIFF;
    if (!memcmp(head, "GIF87a", 6) || !memcmp(head, "GIF89a", 6)) return CLV__GIF;
    return head[0] == 'B' && head[1] == 'M' ? CLV__BMP : -1;
}

clv_status clv__image_probe(const clv__input *input, clv__image_info *out) {
    *out = (clv__image_info){.orientation = 1};
    uint8_t head[12] = {0};
    char reason[CLV__IMAGE_REASON] = "";
    if (input->bytes > CLV__IMAGE_FILE_BYTES)
        CLV_FAIL(input->error, CLV_E_FORMAT, "'%s' has %" PRIu64 " bytes; a picture has %d at most",
                 input->path, input->bytes, CLV__IMAGE_FILE_BYTES);
    CLV_TRY(clv__input_read(input, 0, head, input->bytes < sizeof head ? (size_t)input->bytes : sizeof head));
    const int format = format_of(head);
    if (format < 0)
        CLV_FAIL(input->error, CLV_E_FORMAT, "'%s' is %s", input->path,
                 input->bytes == 0 ? "empty"
                                   : "no picture: neither a JPEG nor a PNG, WebP, BMP, TIFF or GIF");
    out->format = (clv__image_format)format;
    if (!formats[format].probe(input, out, reason))
        CLV_FAIL(input->error, CLV_E_FORMAT, "'%s' is a broken %s: %s", input->path, formats[format].name,
                 reason);
    if (out->width < 1 || out->height < 1)
        CLV_FAIL(input->error, CLV_E_FORMAT, "'%s' has no pixels: %" PRId64 " x %" PRId64, input->path,
                 out->width, out->height);
    if (out->width > CLV__IMAGE_PIXELS / out->height)
        CLV_FAIL(input->error, CLV_E_FORMAT,
                 "'%s' is too large: %" PRId64 " x %" PRId64 " pixels; a picture has %d at most", input->path,
                 out->width, out->height, CLV__IMAGE_PIXELS);
    return CLV_OK;
}

bool clv__image_can_read(clv__image_format format) {
    return format == CLV__JPEG || format == CLV__PNG ? clv__image_built(NULL) == CLV_OK
                                                     : formats[format].read != NULL;
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

static bool read_one(const clv__input *input, const clv__image_info *info, int scale, clv__image *out,
                     char room[CLV__IMAGE_REASON]) {
#ifdef CLEAVE_IMAGES
    if (info->format == CLV__JPEG) return clv__jpeg_read(input, scale, out, room);
    if (info->format == CLV__PNG) return clv__png_read(input, info, out, room);
#endif
    (void)scale;
    return formats[info->format].read(input, out, room);
}

clv_status clv__image_read(const clv__input *input, const clv__image_info *info, const clv__image_wish *wish,
                           clv__image *out) {
    *out = (clv__image){0};
    CLV_TRY(clv__image_built(input->error));
    const bool jpeg = info->format == CLV__JPEG;
    if (!clv__image_can_read(info->format))
        CLV_FAIL(input->error, CLV_E_UNSUPPORTED,
                 "'%s' is a %s, and Cleave was built without %s; install it (Debian: %s) and build it again",
                 input->path, formats[info->format].name, formats[info->format].library,
                 formats[info->format].package);
    const int scale = jpeg && wish->scale ? wish->scale : 1;
    const int64_t height = (info->height + scale - 1) / scale;
    out->width = (info->width + scale - 1) / scale;
    out->height = wish->rows && wish->rows < height && !info->interlaced ? wish->rows : height;
    out->pixels = malloc((size_t)(out->width * out->height) * 3);
    if (!out->pixels)
        CLV_FAIL(input->error, CLV_E_HOST_MEMORY, "'%s': no host memory for %" PRId64 " x %" PRId64 " pixels",
                 input->path, out->width, out->height);
    char reason[CLV__IMAGE_REASON] = "";
    if (read_one(input, info, scale, out, reason)) return CLV_OK;
    clv__image_reset(out);
    clv__shown_text shown;
    CLV_FAIL(input->error, CLV_E_FORMAT, "'%s' is a broken %s: %s", input->path, formats[info->format].name,
             clv__shown(reason, &shown));
}

bool clv__image_turn(clv__image *image, int orientation) {
    const bool across = orientation >= 5,
               columns = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8,
               rows = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
    if (orientation < 2 || orientation > 8) return true;
    const int64_t w = image->width, h = image->height, width = across ? h : w, height = across ? w : h;
    uint8_t *turned = malloc((size_t)(w * h) * 3), *to = turned;
    if (!turned) return false;
    for (int64_t y = 0; y < height; y++) {
        for (int64_t x = 0; x < width; x++, to += 3) {
            const int64_t column = across ? y : x, row = across ? x : y;
            memcpy(to,
                   image->pixels + ((rows ? h - 1 - row : row) * w + (columns ? w - 1 - column : column)) * 3,
                   3);
        }
    }
    free(image->pixels);
    *image = (clv__image){width, height, turned};
    return true;
}

const char *clv__image_ending(int i) {
    static const char *const endings[] = {".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff", ".gif"};
    return i >= 0 && i < (int)(sizeof endings / sizeof *endings) ? endings[i] : NULL;
}

void clv__image_reset(clv__image *image) {
    free(image->pixels);
    *image = (clv__image){0};
}
