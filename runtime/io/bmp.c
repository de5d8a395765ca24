// SPDX-License-Identifier: Apache-2.0
// BMP without a library: the kinds that Windows and OS/2 write, also packed by runs. What runs leave out has the first colour.
// Source: Microsoft, "Bitmap Storage" (BITMAPFILEHEADER, BITMAPCOREHEADER to BITMAPV5HEADER, "Bitmap Compression").
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "io/image.h"

enum { FILE_HEADER = 14, CORE_HEADER = 12, INFO_HEADER = 40, MOST_HEADER = 124 };
enum { PLAIN, RUNS_OF_8, RUNS_OF_4, MASKS, MASKS_AND_ALPHA = 6 };

typedef struct bmp {
    int64_t width, height;
    bool top_down;
    int bits, packing, colors;
    uint64_t palette, pixels; // where they begin
    int color_bytes;          // of a colour in the palette
    uint32_t masks[3];        // red, green, blue, of pixels of 16 and 32 bits
} bmp;

static uint64_t row_bytes(const bmp *b) {
    return ((uint64_t)b->width * (uint64_t)b->bits + 31) / 32 * 4;
}

/** Do the bits of a pixel and its packing go together? */
static bool is_known(const bmp *b) {
    switch (b->packing) {
    case PLAIN:
        return b->bits == 1 || b->bits == 4 || b->bits == 8 || b->bits == 16 || b->bits == 24 ||
               b->bits == 32;
    case RUNS_OF_8: return b->bits == 8 && !b->top_down;
    case RUNS_OF_4: return b->bits == 4 && !b->top_down;
    case MASKS:
    case MASKS_AND_ALPHA: return b->bits == 16 || b->bits == 32;
    default: return false;
    }
}

/** The bits of each colour in a pixel: as Windows has them, or as the file says. */
static bool read_masks(const clv__input *input, uint32_t header, bmp *b) {
    static const uint32_t of_16[] = {0x7c00, 0x3e0, 0x1f}, of_32[] = {0xff0000, 0xff00, 0xff};
    memcpy(b->masks, b->bits == 16 ? of_16 : of_32, sizeof of_16);
    if (b->packing != MASKS && b->packing != MASKS_AND_ALPHA) return true;
    uint8_t masks[12]; // behind a header of 40 bytes, or within a longer one
    if (!clv__image_bytes(input, FILE_HEADER + INFO_HEADER, masks, sizeof masks)) return false;
    for (int c = 0; c < 3; c++) b->masks[c] = clv__image_little(masks + 4 * c, 4);
    if (header == INFO_HEADER) b->palette += sizeof masks;
    return b->masks[0] && b->masks[1] && b->masks[2];
}

static bool read_header(const clv__input *input, bmp *b, char room[CLV__IMAGE_REASON]) {
    uint8_t head[FILE_HEADER + INFO_HEADER] = {0};
    *b = (bmp){.color_bytes = 4};
    if (!clv__image_bytes(input, 0, head, FILE_HEADER + CORE_HEADER))
        return clv__image_says(room, "it is cut off");
    const uint32_t header = clv__image_little(head + 14, 4);
    const bool core = header == CORE_HEADER;
    if (!core && (header < INFO_HEADER || header > MOST_HEADER))
        return clv__image_says(room, "its header is of an unknown kind");
    if (!core && !clv__image_bytes(input, 0, head, sizeof head))
        return clv__image_says(room, "it is cut off");
    b->pixels = clv__image_little(head + 10, 4);
    b->palette = FILE_HEADER + (uint64_t)header;
    if (core) {
        b->width = clv__image_little(head + 18, 2);
        b->height = clv__image_little(head + 20, 2);
        b->bits = (int)clv__image_little(head + 24, 2);
        b->color_bytes = 3;
    } else {
        b->width = (int32_t)clv__image_little(head + 18, 4);
        b->height = (int32_t)clv__image_little(head + 22, 4);
        b->bits = (int)clv__image_little(head + 28, 2);
        b->packing = (int)clv__image_little(head + 30, 4);
    }
    b->top_down = b->height < 0;
    if (b->top_down) b->height = -b->height;
    if (!is_known(b)) return clv__image_says(room, "its pixels are packed in a way that is not known");
    if (!read_masks(input, header, b)) return clv__image_says(room, "its masks of colours are damaged");
    if (b->bits > 8) return true;
    const uint32_t colors = core ? 0 : clv__image_little(head + 46, 4);
    b->colors = colors && colors < 1u << b->bits ? (int)colors : 1 << b->bits;
    return true;
}

bool clv__bmp_probe(const clv__input *input, clv__image_info *out, char room[CLV__IMAGE_REASON]) {
    bmp b;
    if (!read_header(input, &b, room)) return false;
    out->width = b.width;
    out->height = b.height;
    out->interlaced = true;
    if (b.width < 1 || b.height < 1) return true; // whoever asks says so
    const uint64_t there = b.pixels < input->bytes ? input->bytes - b.pixels : 0;
    out->closed = b.packing == RUNS_OF_8 || b.packing == RUNS_OF_4
                      ? false
                      : row_bytes(&b) <= there / (uint64_t)b.height;
    return true;
}

// ---- pixels -----------------------------------------------------------------------------------------------

/** Palette: red, green, blue of each colour; black beyond the last. */
static bool read_palette(const clv__input *input, const bmp *b, uint8_t colors[256][3]) {
    memset(colors, 0, 256 * sizeof *colors);
    for (int i = 0; i < b->colors; i++) {
        uint8_t color[4]; // blue first
        const uint64_t at = b->palette + (uint64_t)i * (uint64_t)b->color_bytes;
        if (at + (uint64_t)b->color_bytes > b->pixels) break; // some tell more colours than they have
        if (!clv__image_bytes(input, at, color, (size_t)b->color_bytes)) return false;
        for (int c = 0; c < 3; c++) colors[i][c] = color[2 - c];
    }
    return true;
}

/** A colour of a pixel, from as many bits as its mask has to 8. */
static uint8_t part_of(uint32_t pixel, uint32_t mask) {
    const int shift = __builtin_ctz(mask);
    const uint64_t most = mask >> shift;
    return (uint8_t)((uint64_t)((pixel & mask) >> shift) * 255 / most);
}

static void convert_row(const bmp *b, const uint8_t *row, const uint8_t colors[256][3], uint8_t *to) {
    for (int64_t x = 0; x < b->width; x++, to += 3) {
        const int64_t bit = x * b->bits;
        if (b->bits <= 8) {
            const int index = row[bit / 8] >> (8 - b->bits - bit % 8) & ((1 << b->bits) - 1);
            memcpy(to, colors[index], 3);
        } else if (b->bits == 24) {
            for (int c = 0; c < 3; c++) to[c] = row[3 * x + 2 - c];
        } else {
            const uint32_t pixel = clv__image_little(row + bit / 8, b->bits / 8);
            for (int c = 0; c < 3; c++) to[c] = part_of(pixel, b->masks[c]);
        }
    }
}

/** A row of the file, counted from its first, is which of the picture? */
static uint8_t *row_of(const bmp *b, const clv__image *out, int64_t y) {
    return out->pixels + (b->top_down ? y : b->height - 1 - y) * b->width * 3;
}

static bool read_rows(const clv__input *input, const bmp *b, const uint8_t colors[256][3], clv__image *out,
                      char room[CLV__IMAGE_REASON]) {
    const uint64_t bytes = row_bytes(b);
    if (b->pixels > input->bytes || bytes > (input->bytes - b->pixels) / (uint64_t)b->height)
        return clv__image_says(room, "it is cut off");
    for (int64_t y = 0; y < b->height; y++)
        convert_row(b, (const uint8_t *)input->memory + b->pixels + (uint64_t)y * bytes, colors,
                    row_of(b, out, y));
    return true;
}

/** Runs: a count and a value; or 0 and: an end of row, the end, a step aside, or a count of values that follow. */
typedef struct runs {
    const bmp *b;
    const uint8_t *at, *end;
    const uint8_t (*colors)[3];
    clv__image *out;
    int64_t x, y;
} runs;

/** n pixels to the right, whose indices alternate; what lies beyond the row is dropped. */
static void put(runs *r, int n, int first, int second) {
    for (int i = 0; i < n; i++, r->x++)
        if (r->x < r->b->width && r->y < r->b->height)
            memcpy(row_of(r->b, r->out, r->y) + r->x * 3, r->colors[i & 1 ? second : first], 3);
}

static bool put_values(runs *r, int n) {
    const bool nibbles = r->b->packing == RUNS_OF_4;
    const int bytes = nibbles ? (n + 1) / 2 : n, padded = bytes + (bytes & 1);
    if (r->end - r->at < bytes) return false;
    for (int i = 0; i < bytes; i++) {
        if (nibbles)
            put(r, 2 * i + 1 < n ? 2 : 1, r->at[i] >> 4, r->at[i] & 15);
        else
            put(r, 1, r->at[i], 0);
    }
    r->at += r->end - r->at < padded ? bytes : padded;
    return true;
}

static bool read_runs(const clv__input *input, const bmp *b, const uint8_t colors[256][3], clv__image *out,
                      char room[CLV__IMAGE_REASON]) {
    const uint8_t *file = (const uint8_t *)input->memory;
    if (b->pixels > input->bytes) return clv__image_says(room, "it is cut off");
    runs r = {b, file + b->pixels, file + input->bytes, colors, out, 0, 0};
    for (int64_t i = 0; i < out->width * out->height; i++) memcpy(out->pixels + i * 3, colors[0], 3);
    while (r.y < b->height) {
        if (r.end - r.at < 2) return clv__image_says(room, "it is cut off");
        const int n = r.at[0], value = r.at[1];
        r.at += 2;
        if (n && b->packing == RUNS_OF_4) {
            put(&r, n, value >> 4, value & 15);
        } else if (n) {
            put(&r, n, value, value);
        } else if (value == 0) {
            r.x = 0;
            r.y++;
        } else if (value == 1) {
            return true;
        } else if (value == 2) {
            if (r.end - r.at < 2) return clv__image_says(room, "it is cut off");
            r.x += r.at[0];
            r.y += r.at[1];
            r.at += 2;
        } else if (!put_values(&r, value)) {
            return clv__image_says(room, "it is cut off");
        }
    }
    return true;
}

bool clv__bmp_read(const clv__input *input, clv__image *out, char room[CLV__IMAGE_REASON]) {
    bmp b;
    uint8_t colors[256][3];
    if (!read_header(input, &b, room)) return false;
    if (b.width != out->width || b.height != out->height)
        return clv__image_says(room, "its header contradicts itself");
    if (!read_palette(input, &b, colors)) return clv__image_says(room, "it is cut off");
    return b.packing == RUNS_OF_8 || b.packing == RUNS_OF_4 ? read_runs(input, &b, colors, out, room)
                                                            : read_rows(input, &b, colors, out, room);
}
