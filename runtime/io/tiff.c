// SPDX-License-Identifier: Apache-2.0
// TIFF by libtiff: the first picture of the file, strip by strip or tile by tile. Its messages go no further than a sentence.
// Source: TIFF 6.0 (Adobe, 1992), and its extra samples for transparency.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tiffio.h>

#include "base/number.h"
#include "io/image.h"

enum { MOST_SAMPLES = 8, MOST_BLOCK = 256 << 20 };

typedef struct reading {
    const clv__input *input;
    uint64_t at;
    char *room;
    TIFF *tiff;
    uint32_t width, height;
    uint16_t bits, samples, photometric, planar;
    bool associated;              // colours are multiplied by the last of their samples, transparency
    int n;                        // samples that are looked at
    uint16_t *palette[3];         // libtiff's
    uint32_t block_w, block_h;    // of a strip or tile
    uint64_t row_bytes;           // of a block's row, in one plane
    uint8_t *block[MOST_SAMPLES]; // one, or one for each sample
} reading;

static bool says(reading *r, const char *text) {
    if (!*r->room) snprintf(r->room, CLV__IMAGE_REASON, "%s", text);
    return false;
}

// ---- the file, as libtiff wants it ------------------------------------------------------------------------

static tmsize_t on_read(thandle_t user, void *to, tmsize_t bytes) {
    reading *r = (reading *)user;
    const uint64_t there = r->at < r->input->bytes ? r->input->bytes - r->at : 0;
    const size_t n = (uint64_t)bytes < there ? (size_t)bytes : (size_t)there;
    memcpy(to, r->input->memory + (n ? r->at : 0), n);
    r->at += n;
    return (tmsize_t)n;
}

static tmsize_t on_write(thandle_t user, void *from, tmsize_t bytes) {
    (void)user, (void)from, (void)bytes;
    return -1;
}

static toff_t on_seek(thandle_t user, toff_t offset, int from) {
    reading *r = (reading *)user;
    r->at = from == SEEK_SET ? offset : from == SEEK_CUR ? r->at + offset : r->input->bytes + offset;
    return r->at;
}

static int on_close(thandle_t user) {
    (void)user;
    return 0;
}

static toff_t on_size(thandle_t user) {
    return ((reading *)user)->input->bytes;
}

static int on_error(TIFF *tiff, void *user, const char *module, const char *format, va_list list) {
    reading *r = user;
    (void)tiff, (void)module;
    if (!*r->room) clv__format_list(r->room, CLV__IMAGE_REASON, format, list);
    return 1; // no other handler is asked
}

static int on_warning(TIFF *tiff, void *user, const char *module, const char *format, va_list list) {
    (void)tiff, (void)user, (void)module, (void)format, (void)list;
    return 1;
}

static TIFF *open_memory(reading *r) {
    TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
    if (!options) return NULL;
    TIFFOpenOptionsSetErrorHandlerExtR(options, on_error, r);
    TIFFOpenOptionsSetWarningHandlerExtR(options, on_warning, r);
    TIFFOpenOptionsSetMaxSingleMemAlloc(options, MOST_BLOCK);
    TIFF *tiff = TIFFClientOpenExt("picture", "rm", r, on_read, on_write, on_seek, on_close, on_size, NULL,
                                   NULL, options);
    TIFFOpenOptionsFree(options);
    return tiff;
}

// ---- what it holds ----------------------------------------------------------------------------------------

/** Those that people use; others are code that is seldom run. */
static bool is_packing(uint16_t packing) {
    static const uint16_t known[] = {COMPRESSION_NONE,      COMPRESSION_CCITTRLE,      COMPRESSION_CCITTFAX3,
                                     COMPRESSION_CCITTFAX4, COMPRESSION_LZW,           COMPRESSION_JPEG,
                                     COMPRESSION_DEFLATE,   COMPRESSION_ADOBE_DEFLATE, COMPRESSION_PACKBITS,
                                     COMPRESSION_ZSTD};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i] == packing) return true;
    return false;
}

/** How many samples of a pixel tell its colour; 0: they are of a kind that is not read. */
static int color_samples(const reading *r) {
    switch (r->photometric) {
    case PHOTOMETRIC_MINISBLACK:
    case PHOTOMETRIC_MINISWHITE: return 1;
    case PHOTOMETRIC_PALETTE: return r->bits <= 8 ? 1 : 0;
    case PHOTOMETRIC_RGB: return r->bits >= 8 ? 3 : 0;
    case PHOTOMETRIC_SEPARATED: return r->bits >= 8 ? 4 : 0;
    default: return 0;
    }
}

static bool read_kind(reading *r) {
    uint16_t packing = COMPRESSION_NONE, format = SAMPLEFORMAT_UINT, extras = 0, *extra = NULL;
    TIFFGetFieldDefaulted(r->tiff, TIFFTAG_COMPRESSION, &packing);
    TIFFGetFieldDefaulted(r->tiff, TIFFTAG_SAMPLEFORMAT, &format);
    TIFFGetFieldDefaulted(r->tiff, TIFFTAG_BITSPERSAMPLE, &r->bits);
    TIFFGetFieldDefaulted(r->tiff, TIFFTAG_SAMPLESPERPIXEL, &r->samples);
    TIFFGetFieldDefaulted(r->tiff, TIFFTAG_PLANARCONFIG, &r->planar);
    TIFFGetFieldDefaulted(r->tiff, TIFFTAG_EXTRASAMPLES, &extras, &extra);
    if (!TIFFGetField(r->tiff, TIFFTAG_PHOTOMETRIC, &r->photometric)) r->photometric = PHOTOMETRIC_MINISBLACK;
    if (!is_packing(packing))
        return says(r, "it is packed in a way that is not read; save it with LZW or deflate");
    if (r->photometric == PHOTOMETRIC_YCBCR && packing == COMPRESSION_JPEG && r->samples == 3) {
        TIFFSetField(r->tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
        r->photometric = PHOTOMETRIC_RGB;
    }
    const int colors = color_samples(r);
    const bool whole = r->bits == 1 || r->bits == 2 || r->bits == 4 || r->bits == 8 || r->bits == 16;
    if (!whole || !colors || r->samples < colors || r->samples > MOST_SAMPLES ||
        format != SAMPLEFORMAT_UINT) {
        snprintf(r->room, CLV__IMAGE_REASON,
                 "it has %d samples of %d bits in colours of kind %d, which are not read; save it as RGB of "
                 "8 bits",
                 r->samples, r->bits, r->photometric);
        return false;
    }
    if (r->photometric == PHOTOMETRIC_PALETTE &&
        !TIFFGetField(r->tiff, TIFFTAG_COLORMAP, &r->palette[0], &r->palette[1], &r->palette[2]))
        return says(r, "it has no palette");
    r->associated =
        r->photometric == PHOTOMETRIC_RGB && extras && r->samples > 3 && extra[0] == EXTRASAMPLE_ASSOCALPHA;
    r->n = colors + r->associated;
    return true;
}

static bool read_sizes(reading *r, const clv__image *out) {
    if (!TIFFGetField(r->tiff, TIFFTAG_IMAGEWIDTH, &r->width) ||
        !TIFFGetField(r->tiff, TIFFTAG_IMAGELENGTH, &r->height) || r->width != out->width ||
        r->height != out->height)
        return says(r, "its header contradicts itself");
    const bool tiled = TIFFIsTiled(r->tiff);
    r->block_w = r->width;
    if (tiled) {
        TIFFGetField(r->tiff, TIFFTAG_TILEWIDTH, &r->block_w);
        TIFFGetField(r->tiff, TIFFTAG_TILELENGTH, &r->block_h);
    } else {
        TIFFGetFieldDefaulted(r->tiff, TIFFTAG_ROWSPERSTRIP, &r->block_h);
        if (r->block_h > r->height) r->block_h = r->height;
    }
    const tmsize_t row = tiled ? TIFFTileRowSize(r->tiff) : TIFFScanlineSize(r->tiff);
    const bool contig = r->planar == PLANARCONFIG_CONTIG;
    const uint64_t per_pixel = contig ? r->samples : 1, planes = contig ? 1 : (uint64_t)r->n;
    if (!r->block_w || !r->block_h || row < 1 || (uint64_t)row > MOST_BLOCK / planes / (uint64_t)r->block_h ||
        ((uint64_t)r->block_w * per_pixel * r->bits + 7) / 8 > (uint64_t)row)
        return says(r, "its strips or tiles are of a size that is not read");
    r->row_bytes = (uint64_t)row;
    return true;
}

// ---- pixels -----------------------------------------------------------------------------------------------

/** The upper 8 bits of a sample, or as many as it has. */
static int sample_at(const reading *r, const uint8_t *row, uint64_t i) {
    if (r->bits == 8) return row[i];
    if (r->bits == 16) {
        uint16_t value;
        memcpy(&value, row + 2 * i, sizeof value);
        return value >> 8;
    }
    const uint64_t bit = i * r->bits;
    return row[bit / 8] >> (8 - r->bits - (int)(bit % 8)) & ((1 << r->bits) - 1);
}

/** What PIL makes of a colour that was multiplied by its transparency. */
static uint8_t divided(int color, int by) {
    if (!by) return 0;
    const int value = color * 255 / by;
    return (uint8_t)(value > 255 ? 255 : value);
}

static void convert(const reading *r, const int s[MOST_SAMPLES], uint8_t to[3]) {
    const int most = r->bits < 8 ? (1 << r->bits) - 1 : 255;
    switch (r->photometric) {
    case PHOTOMETRIC_PALETTE:
        for (int c = 0; c < 3; c++) to[c] = (uint8_t)(r->palette[c][s[0]] >> 8);
        break;
    case PHOTOMETRIC_RGB:
        for (int c = 0; c < 3; c++) to[c] = r->associated ? divided(s[c], s[3]) : (uint8_t)s[c];
        break;
    case PHOTOMETRIC_SEPARATED:
        clv__image_cmyk((const uint8_t[4]){(uint8_t)s[0], (uint8_t)s[1], (uint8_t)s[2], (uint8_t)s[3]}, to);
        break;
    default: // grey
        memset(to, (r->photometric == PHOTOMETRIC_MINISWHITE ? most - s[0] : s[0]) * 255 / most, 3);
    }
}

/** A block's rows to their place; what reaches beyond the picture is dropped. */
static void place(const reading *r, uint32_t left, uint32_t top, clv__image *out) {
    const uint64_t w = r->width - left < r->block_w ? r->width - left : r->block_w,
                   h = r->height - top < r->block_h ? r->height - top : r->block_h;
    const bool contig = r->planar == PLANARCONFIG_CONTIG;
    for (uint64_t y = 0; y < h; y++) {
        uint8_t *to = out->pixels + ((uint64_t)(top + y) * r->width + left) * 3;
        for (uint64_t x = 0; x < w; x++, to += 3) {
            int s[MOST_SAMPLES];
            for (int i = 0; i < r->n; i++)
                s[i] = sample_at(r, r->block[contig ? 0 : i] + y * r->row_bytes,
                                 contig ? x * r->samples + (uint64_t)i : x);
            convert(r, s, to);
        }
    }
}

static bool read_block(reading *r, uint32_t left, uint32_t top, int plane) {
    const uint32_t rows = r->height - top < r->block_h ? r->height - top : r->block_h;
    const bool tiled = TIFFIsTiled(r->tiff);
    const tmsize_t wanted = (tmsize_t)(r->row_bytes * (tiled ? r->block_h : rows));
    const tmsize_t got =
        tiled ? TIFFReadEncodedTile(r->tiff, TIFFComputeTile(r->tiff, left, top, 0, (uint16_t)plane),
                                    r->block[plane], wanted)
              : TIFFReadEncodedStrip(r->tiff, TIFFComputeStrip(r->tiff, top, (uint16_t)plane),
                                     r->block[plane], wanted);
    return got == wanted || says(r, "it is cut off");
}

static bool read_blocks(reading *r, clv__image *out) {
    const int planes = r->planar == PLANARCONFIG_CONTIG ? 1 : r->n;
    for (int i = 0; i < planes; i++)
        if (!(r->block[i] = calloc(r->block_h, (size_t)r->row_bytes)))
            return says(r, "no host memory for a strip of it");
    for (uint64_t top = 0; top < r->height; top += r->block_h) {
        for (uint64_t left = 0; left < r->width; left += r->block_w) {
            for (int i = 0; i < planes; i++)
                if (!read_block(r, (uint32_t)left, (uint32_t)top, i)) return false;
            place(r, (uint32_t)left, (uint32_t)top, out);
        }
    }
    return true;
}

bool clv__tiff_read(const clv__input *input, clv__image *out, char room[CLV__IMAGE_REASON]) {
    reading *r = calloc(1, sizeof *r);
    if (!r) {
        snprintf(room, CLV__IMAGE_REASON, "no host memory to read it");
        return false;
    }
    r->input = input;
    r->room = room;
    r->tiff = open_memory(r);
    const bool whole = r->tiff ? read_kind(r) && read_sizes(r, out) && read_blocks(r, out)
                               : says(r, "it is damaged, or cut off");
    if (r->tiff) TIFFClose(r->tiff);
    for (int i = 0; i < MOST_SAMPLES; i++) free(r->block[i]);
    free(r);
    return whole;
}
