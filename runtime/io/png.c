// SPDX-License-Identifier: Apache-2.0
// PNG by libpng: its errors come back as a sentence, its warnings are passed over. What follows the pixels is not read: a file
// without an end is whole if they are.
#include <inttypes.h>
#include <png.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "io/image.h"

enum { CHUNK_BYTES = 8 << 20, CHUNKS = 1000 }; // of what is beside the pixels: texts, profiles

typedef struct reading {
    const clv__input *input;
    uint64_t at;
    png_structp png;
    png_infop info;
    char *room;
} reading;

static void on_error(png_structp png, png_const_charp text) {
    reading *r = png_get_error_ptr(png);
    snprintf(r->room, CLV__IMAGE_REASON, "%s", text);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp text) {
    (void)png, (void)text;
}

static void on_read(png_structp png, png_bytep to, size_t bytes) {
    reading *r = png_get_io_ptr(png);
    if (bytes > r->input->bytes - r->at) png_error(png, "it is cut off");
    memcpy(to, r->input->memory + r->at, bytes);
    r->at += bytes;
}

/** The transforms after which a row is RGB, 8 bits each. */
static void ask_for_rgb(reading *r) {
    const int color = png_get_color_type(r->png, r->info), depth = png_get_bit_depth(r->png, r->info);
    if (depth == 16) png_set_strip_16(r->png);
    if (color == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(r->png);
    if (!(color & PNG_COLOR_MASK_COLOR)) {
        if (depth < 8) png_set_expand_gray_1_2_4_to_8(r->png);
        png_set_gray_to_rgb(r->png);
    }
    if (color & PNG_COLOR_MASK_ALPHA || color == PNG_COLOR_TYPE_PALETTE) png_set_strip_alpha(r->png);
}

static void decode(reading *r, const clv__image_info *info, clv__image *out) {
    png_set_read_fn(r->png, r, on_read);
    png_set_user_limits(r->png, (png_uint_32)info->width, (png_uint_32)info->height);
    png_set_chunk_malloc_max(r->png, CHUNK_BYTES);
    png_set_chunk_cache_max(r->png, CHUNKS);
    png_read_info(r->png, r->info);
    // Deflate packs at most 1032 bytes in one: a file that claims more pixels than it can hold is not begun.
    const uint64_t bits = (uint64_t)png_get_bit_depth(r->png, r->info) * png_get_channels(r->png, r->info);
    if ((uint64_t)(info->width * info->height) * bits / 8 / 1032 > r->input->bytes)
        png_error(r->png, "it is too short for its pixels");
    ask_for_rgb(r);
    const int passes = png_set_interlace_handling(r->png);
    png_read_update_info(r->png, r->info);
    const size_t row_bytes = (size_t)out->width * 3;
    if (png_get_rowbytes(r->png, r->info) != row_bytes) png_error(r->png, "its header contradicts itself");
    for (int pass = 0; pass < passes; pass++)
        for (int64_t y = 0; y < out->height; y++)
            png_read_row(r->png, out->pixels + (size_t)y * row_bytes, NULL);
}

static bool read_rows(reading *r, const clv__image_info *info, clv__image *out) {
    if (setjmp(png_jmpbuf(r->png))) return false;
    decode(r, info, out);
    return true;
}

bool clv__png_read(const clv__input *input, const clv__image_info *info, clv__image *out,
                   char room[CLV__IMAGE_REASON]) {
    reading r = {.input = input, .room = room};
    snprintf(room, CLV__IMAGE_REASON, "no host memory to read it");
    r.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &r, on_error, on_warning);
    if (r.png) r.info = png_create_info_struct(r.png);
    const bool whole = r.info && read_rows(&r, info, out);
    png_destroy_read_struct(r.png ? &r.png : NULL, r.info ? &r.info : NULL, NULL);
    return whole;
}
