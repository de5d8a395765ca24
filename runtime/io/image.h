// SPDX-License-Identifier: Apache-2.0
// Pictures in files of six formats, as rows of RGB bytes. What is made of them is the reader's affair.
#ifndef CLV_IO_IMAGE_H
#define CLV_IO_IMAGE_H

#include <stdio.h>

#include "io/file.h"

enum {
    CLV__IMAGE_PIXELS = 89478485,      // of a picture at most: 256 MiB as RGB; beyond it PIL warns of a bomb
    CLV__IMAGE_FILE_BYTES = 256 << 20, // of a file at most
};

typedef enum clv__image_format {
    CLV__JPEG,
    CLV__PNG,
    CLV__WEBP,
    CLV__BMP,
    CLV__TIFF,
    CLV__GIF,
    CLV__IMAGE_FORMATS
} clv__image_format;

/** What a file's header says. */
typedef struct clv__image_info {
    clv__image_format format;
    int64_t width, height;
    bool interlaced; // rows are not one after the other: all are read, or none
    bool closed;     // the file ends as its format wants it; if not, it may be cut off
    int orientation; // as Exif has it, 1 to 8: 1 is upright; width and height are those of before it is turned
} clv__image_info;

/** What is wanted of a picture. All zero: all of it. */
typedef struct clv__image_wish {
    int64_t rows; // from the top: those below need not be read; 0: all
    int scale;    // 2, 4, 8: a JPEG of a half, a quarter, an eighth of its sides, rounded up; 0: as it is
} clv__image_wish;

/** A picture. All zero is none. */
typedef struct clv__image {
    int64_t width, height; // that are there
    uint8_t *pixels;       // [height, width, 3]
} clv__image;

/**
 * What kind of picture, and how large, without decoding it: some small reads. The first bytes tell the kind, not the name.
 *
 * Errors  CLV_E_FORMAT  no picture, damaged, without pixels, or more of them than the limit
 */
clv_status clv__image_probe(const clv__input *input, clv__image_info *out);
/**
 * Decode a picture; the first, if there are several in the file. Grey ones and those with a palette become RGB, 16 bits the upper 8,
 * and transparency is dropped, as PIL's `convert("RGB")` does; CMYK becomes RGB in PIL's way. It is not turned.
 *
 * input  in memory
 *
 * Errors  CLV_E_FORMAT  damaged or cut off: what the decoder says of it;  CLV_E_HOST_MEMORY;
 *         CLV_E_UNSUPPORTED  this library was built without the library that the format wants; the sentence names its package
 */
clv_status clv__image_read(const clv__input *input, const clv__image_info *info, const clv__image_wish *wish,
                           clv__image *out);
/** Turn a picture upright, as PIL's exif_transpose does. false: no memory; then it is as it was. */
bool clv__image_turn(clv__image *image, int orientation);
void clv__image_reset(clv__image *image);

/** Was this library built with what decodes such? */
bool clv__image_can_read(clv__image_format format);
/** CLV_E_UNSUPPORTED where pictures cannot be decoded. */
clv_status clv__image_built(clv__error *error);

/** Endings of names that pictures have, `.jpg` and so on; NULL past the end. */
const char *clv__image_ending(int i);

// What follows is for the files of the formats.

enum { CLV__IMAGE_REASON = 256 };

// What a header tells: sizes, and the rest of an info. false: what is wrong stands in `room`.
bool clv__jpeg_probe(const clv__input *input, clv__image_info *out, char room[CLV__IMAGE_REASON]);
bool clv__png_probe(const clv__input *input, clv__image_info *out, char room[CLV__IMAGE_REASON]);
bool clv__webp_probe(const clv__input *input, clv__image_info *out, char room[CLV__IMAGE_REASON]);
bool clv__bmp_probe(const clv__input *input, clv__image_info *out, char room[CLV__IMAGE_REASON]);
bool clv__tiff_probe(const clv__input *input, clv__image_info *out, char room[CLV__IMAGE_REASON]);
bool clv__gif_probe(const clv__input *input, clv__image_info *out, char room[CLV__IMAGE_REASON]);

// The decoders; `out` has the size that is wanted, and room for it. false: what is wrong stands in `room`.
bool clv__jpeg_read(const clv__input *input, int scale, clv__image *out, char room[CLV__IMAGE_REASON]);
bool clv__png_read(const clv__input *input, const clv__image_info *info, clv__image *out,
                   char room[CLV__IMAGE_REASON]);
bool clv__webp_read(const clv__input *input, clv__image *out, char room[CLV__IMAGE_REASON]);
bool clv__bmp_read(const clv__input *input, clv__image *out, char room[CLV__IMAGE_REASON]);
bool clv__tiff_read(const clv__input *input, clv__image *out, char room[CLV__IMAGE_REASON]);
bool clv__gif_read(const clv__input *input, clv__image *out, char room[CLV__IMAGE_REASON]);

/** What is wrong, into `room`. Always false. */
static inline bool clv__image_says(char room[CLV__IMAGE_REASON], const char *text) {
    snprintf(room, CLV__IMAGE_REASON, "%s", text);
    return false;
}

/** A number of so many bytes, the lowest first. */
static inline uint32_t clv__image_little(const uint8_t *at, int bytes) {
    uint32_t value = 0;
    for (int i = bytes; i-- > 0;) value = value << 8 | at[i];
    return value;
}

/** Bytes of the file; false: it does not reach so far. */
static inline bool clv__image_bytes(const clv__input *input, uint64_t at, void *to, size_t bytes) {
    return at <= input->bytes && bytes <= input->bytes - at &&
           clv__input_read(input, at, to, bytes) == CLV_OK;
}

/** A pixel of CMYK to RGB, in PIL's way. */
static inline void clv__image_cmyk(const uint8_t from[4], uint8_t to[3]) {
    const int light = 255 - from[3];
    for (int c = 0; c < 3; c++) to[c] = (uint8_t)(light - (from[c] * light + 127) / 255);
}

#endif
