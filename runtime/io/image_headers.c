// SPDX-License-Identifier: Apache-2.0
// Headers of JPEG, PNG, WebP, GIF and TIFF, read without a library (that of BMP is beside its decoder).
// Sources: ISO/IEC 10918-1, annex B (JPEG's markers); W3C PNG (second edition), chapters 5 and 11; RFC 9649 (WebP);
// CompuServe, "Graphics Interchange Format", version 89a.
#include <string.h>

#include "io/ifd.h"
#include "io/image.h"

enum { SEGMENTS = 4096, CHUNKS = 1000, TAIL = 1024, PNG_HEAD = 33, PNG_END = 12 };

static uint32_t big32(const uint8_t *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

// ---- JPEG -------------------------------------------------------------------------------------------------

/** The marker at or after `at`, past bytes that are none and filling, as libjpeg goes on: *at becomes where it begins. */
static bool next_marker(const clv__input *input, uint64_t *at, uint8_t *marker) {
    uint8_t piece[TAIL];
    bool filled = false;
    while (*at < input->bytes) {
        const size_t n = input->bytes - *at < sizeof piece ? (size_t)(input->bytes - *at) : sizeof piece;
        if (!clv__image_bytes(input, *at, piece, n)) return false;
        for (size_t i = 0; i < n; i++) {
            if (filled && piece[i] != 0xff && piece[i] != 0) {
                *marker = piece[i];
                *at += i;
                return true;
            }
            filled = piece[i] == 0xff;
        }
        *at += n;
    }
    return false;
}

/** What comes after a JPEG's end does not matter, if it is short. */
static bool ends_as_jpeg(const clv__input *input) {
    uint8_t tail[TAIL];
    const size_t n = input->bytes < sizeof tail ? (size_t)input->bytes : sizeof tail;
    if (!clv__image_bytes(input, input->bytes - n, tail, n)) return false;
    for (size_t i = 0; i + 1 < n; i++)
        if (tail[i] == 0xff && tail[i + 1] == 0xd9) return true;
    return false;
}

bool clv__jpeg_probe(const clv__input *input, clv__image_info *out, char room[CLV__IMAGE_REASON]) {
    uint64_t at = 2;
    uint8_t marker, head[8]; // length (2), precision, height (2), width (2); or length and "Exif\0\0"
    for (int i = 0; i < SEGMENTS && next_marker(input, &at, &marker); i++) {
        at++;
        if (marker == 0x01 || (marker >= 0xd0 && marker <= 0xd7)) continue; // these stand alone
        if (marker == 0xd8 || marker == 0xd9 || marker == 0xda || !clv__image_bytes(input, at, head, 2))
            break;
        const uint64_t length = (uint64_t)head[0] << 8 | head[1];
        if (length < 2 || length > input->bytes - at) break;
        if (marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc) {
            if (!clv__image_bytes(input, at, head, 7)) break;
            out->height = (int64_t)head[3] << 8 | head[4];
            out->width = (int64_t)head[5] << 8 | head[6];
            out->closed = ends_as_jpeg(input);
            return true;
        }
        if (marker == 0xe1 && length > 8 && clv__image_bytes(input, at, head, 8) &&
            !memcmp(head + 2, "Exif\0", 6))
            out->orientation = clv__ifd_orientation(input, at + 8, length - 8);
        at += length;
    }
    return clv__image_says(room, "its header tells no size");
}

// ---- PNG --------------------------------------------------------------------------------------------------

/** The orientation in a chunk of Exif data before the pixels. */
static int orientation_of_png(const clv__input *input) {
    uint64_t at = PNG_HEAD;
    uint8_t head[8];
    for (int i = 0;
         i < CHUNKS && clv__image_bytes(input, at, head, sizeof head) && memcmp(head + 4, "IDAT", 4) != 0;
         i++) {
        if (!memcmp(head + 4, "eXIf", 4)) return clv__ifd_orientation(input, at + 8, big32(head));
        at += (uint64_t)big32(head) + 12;
    }
    return 1;
}

bool clv__png_probe(const clv__input *input, clv__image_info *out, char room[CLV__IMAGE_REASON]) {
    uint8_t head[PNG_HEAD], end[PNG_END] = {0};
    if (!clv__image_bytes(input, 0, head, sizeof head) || big32(head + 8) != 13 ||
        memcmp(head + 12, "IHDR", 4) != 0)
        return clv__image_says(room, "it does not begin with its header");
    out->width = big32(head + 16);
    out->height = big32(head + 20);
    out->interlaced = head[28] != 0;
    out->closed =
        clv__image_bytes(input, input->bytes - sizeof end, end, sizeof end) && !memcmp(end + 4, "IEND", 4);
    out->orientation = orientation_of_png(input);
    return true;
}

// ---- WebP -------------------------------------------------------------------------------------------------

/** Exif data come after the pixels. */
static int orientation_of_webp(const clv__input *input) {
    uint64_t at = 12;
    uint8_t head[8], exif[6];
    for (int i = 0; i < CHUNKS && clv__image_bytes(input, at, head, sizeof head); i++) {
        const uint64_t length = clv__image_little(head + 4, 4);
        if (!memcmp(head, "EXIF", 4)) {
            const int named =
                length > 6 && clv__image_bytes(input, at + 8, exif, 6) && !memcmp(exif, "Exif\0", 6) ? 6 : 0;
            return clv__ifd_orientation(input, at + 8 + (uint64_t)named, length - (uint64_t)named);
        }
        at += 8 + length + (length & 1);
    }
    return 1;
}

bool clv__webp_probe(const clv__input *input, clv__image_info *out, char room[CLV__IMAGE_REASON]) {
    uint8_t head[30];
    if (!clv__image_bytes(input, 0, head, sizeof head)) return clv__image_says(room, "it is cut off");
    const uint8_t *body = head + 20;
    if (!memcmp(head + 12, "VP8 ", 4) && !memcmp(body + 3, "\x9d\x01\x2a", 3)) {
        out->width = clv__image_little(body + 6, 2) & 0x3fff;
        out->height = clv__image_little(body + 8, 2) & 0x3fff;
    } else if (!memcmp(head + 12, "VP8L", 4) && body[0] == 0x2f) {
        const uint32_t bits = clv__image_little(body + 1, 4);
        out->width = (bits & 0x3fff) + 1;
        out->height = (bits >> 14 & 0x3fff) + 1;
    } else if (!memcmp(head + 12, "VP8X", 4)) {
        out->width = clv__image_little(body + 4, 3) + 1;
        out->height = clv__image_little(body + 7, 3) + 1;
        if (body[0] & 8) out->orientation = orientation_of_webp(input);
    } else {
        return clv__image_says(room, "its header tells no size");
    }
    out->interlaced = true;
    out->closed = (uint64_t)clv__image_little(head + 4, 4) + 8 <= input->bytes;
    return true;
}

// ---- GIF --------------------------------------------------------------------------------------------------

/** Past blocks of up to 255 bytes, each with its length before it, to behind the empty one. */
static bool past_blocks(const clv__input *input, uint64_t *at) {
    uint8_t length;
    do {
        if (!clv__image_bytes(input, *at, &length, 1)) return false;
        *at += 1 + (uint64_t)length;
    } while (length);
    return true;
}

bool clv__gif_probe(const clv__input *input, clv__image_info *out, char room[CLV__IMAGE_REASON]) {
    uint8_t head[13], frame[9], kind, end = 0;
    if (!clv__image_bytes(input, 0, head, sizeof head)) return clv__image_says(room, "it is cut off");
    out->width = clv__image_little(head + 6, 2);
    out->height = clv__image_little(head + 8, 2);
    uint64_t at = sizeof head + (head[10] & 0x80 ? (uint64_t)3 << ((head[10] & 7) + 1) : 0);
    for (;;) { // each turn takes bytes of the file
        if (!clv__image_bytes(input, at, &kind, 1)) return clv__image_says(room, "it is cut off");
        if (kind == 0x2c) break;
        at += 2;
        if (kind != 0x21 || !past_blocks(input, &at)) return clv__image_says(room, "it has no picture");
    }
    if (!clv__image_bytes(input, at + 1, frame, sizeof frame)) return clv__image_says(room, "it is cut off");
    const int64_t right = (int64_t)clv__image_little(frame, 2) + clv__image_little(frame + 4, 2),
                  bottom = (int64_t)clv__image_little(frame + 2, 2) + clv__image_little(frame + 6, 2);
    if (right > out->width)
        out->width = right; // a picture that is larger than what it lies on makes that larger
    if (bottom > out->height) out->height = bottom;
    out->interlaced = true;
    out->closed = clv__image_bytes(input, input->bytes - 1, &end, 1) && end == 0x3b;
    return true;
}

// ---- TIFF -------------------------------------------------------------------------------------------------

enum {
    WIDTH = 256,
    HEIGHT = 257,
    STRIPS = 273,
    STRIP_BYTES = 279,
    TILES = 324,
    TILE_BYTES = 325,
    MOST_STRIPS = 65536
};

/** Do all strips, or tiles, lie within the file? */
static bool has_strips(const clv__ifd *ifd, int at_tag, int bytes_tag) {
    clv__ifd_field at, bytes;
    if (!clv__ifd_find(ifd, at_tag, &at) || !clv__ifd_find(ifd, bytes_tag, &bytes) || at.n != bytes.n ||
        at.n > MOST_STRIPS)
        return false;
    for (uint32_t i = 0; i < at.n; i++)
        if ((uint64_t)clv__ifd_number(ifd, &at, i) + clv__ifd_number(ifd, &bytes, i) > ifd->bytes)
            return false;
    return true;
}

bool clv__tiff_probe(const clv__input *input, clv__image_info *out, char room[CLV__IMAGE_REASON]) {
    clv__ifd ifd;
    clv__ifd_field width, height;
    if (!clv__ifd_open(input, 0, input->bytes, &ifd) || !clv__ifd_find(&ifd, WIDTH, &width) ||
        !clv__ifd_find(&ifd, HEIGHT, &height))
        return clv__image_says(room, "its header tells no size");
    out->width = clv__ifd_number(&ifd, &width, 0);
    out->height = clv__ifd_number(&ifd, &height, 0);
    out->interlaced = true;
    out->closed = has_strips(&ifd, STRIPS, STRIP_BYTES) || has_strips(&ifd, TILES, TILE_BYTES);
    out->orientation = clv__ifd_orientation(input, 0, input->bytes);
    return true;
}
