// SPDX-License-Identifier: Apache-2.0
// GIF by giflib: the first picture of the file. What it does not cover has the transparent colour, or the first, as PIL has it.
#include <gif_lib.h>
#include <stdlib.h>
#include <string.h>

#include "io/image.h"

typedef struct reading {
    const clv__input *input;
    uint64_t at;
    GifFileType *gif;
    int transparent; // -1: no colour is
    uint8_t *row;    // of indices
} reading;

static int on_read(GifFileType *gif, GifByteType *to, int bytes) {
    reading *r = gif->UserData;
    const uint64_t there = r->input->bytes - r->at;
    const int n = (uint64_t)bytes < there ? bytes : (int)there;
    memcpy(to, r->input->memory + r->at, (size_t)n);
    r->at += (uint64_t)n;
    return n;
}

/** A colour of the picture; of none at all a grey, and black beyond the last. */
static void color_of(const ColorMapObject *map, int index, uint8_t to[3]) {
    if (!map) {
        memset(to, index, 3);
        return;
    }
    const GifColorType color = index < map->ColorCount ? map->Colors[index] : (GifColorType){0};
    to[0] = color.Red, to[1] = color.Green, to[2] = color.Blue;
}

static bool read_extension(reading *r) {
    int code;
    GifByteType *block;
    GraphicsControlBlock control;
    if (DGifGetExtension(r->gif, &code, &block) == GIF_ERROR) return false;
    if (block && code == GRAPHICS_EXT_FUNC_CODE &&
        DGifExtensionToGCB(block[0], block + 1, &control) == GIF_OK)
        r->transparent = control.TransparentColor;
    while (block)
        if (DGifGetExtensionNext(r->gif, &block) == GIF_ERROR) return false;
    return true;
}

static bool read_picture(reading *r, clv__image *out, char room[CLV__IMAGE_REASON]) {
    static const int first[] = {0, 4, 2, 1}, step[] = {8, 8, 4, 2}; // rows of an interlaced one
    if (DGifGetImageDesc(r->gif) == GIF_ERROR) return clv__image_says(room, "it is damaged, or cut off");
    const GifImageDesc *at = &r->gif->Image;
    if (at->Left < 0 || at->Top < 0 || at->Width < 1 || at->Height < 1 || at->Width > out->width - at->Left ||
        at->Height > out->height - at->Top)
        return clv__image_says(room, "its header contradicts itself");
    // LZW has codes of 12 bits at most, each of 4096 pixels at most.
    if ((uint64_t)at->Width * (uint64_t)at->Height / 4096 * 3 / 2 > r->input->bytes)
        return clv__image_says(room, "it is too short for its pixels");
    const ColorMapObject *map = at->ColorMap ? at->ColorMap : r->gif->SColorMap;
    for (int64_t i = 0; i < out->width * out->height; i++)
        color_of(map, r->transparent < 0 ? 0 : r->transparent, out->pixels + i * 3);
    r->row = malloc((size_t)at->Width);
    if (!r->row) return clv__image_says(room, "no host memory for a row of it");
    for (int pass = 0; pass < (at->Interlace ? 4 : 1); pass++) {
        for (int y = at->Interlace ? first[pass] : 0; y < at->Height; y += at->Interlace ? step[pass] : 1) {
            if (DGifGetLine(r->gif, r->row, at->Width) == GIF_ERROR)
                return clv__image_says(room, "its pixels are damaged, or it is cut off");
            uint8_t *to = out->pixels + ((at->Top + y) * out->width + at->Left) * 3;
            for (int x = 0; x < at->Width; x++, to += 3) color_of(map, r->row[x], to);
        }
    }
    return true;
}

static bool read_records(reading *r, clv__image *out, char room[CLV__IMAGE_REASON]) {
    GifRecordType type;
    for (;;) { // each turn takes bytes of the file
        if (DGifGetRecordType(r->gif, &type) == GIF_ERROR)
            return clv__image_says(room, "it is damaged, or cut off");
        if (type == IMAGE_DESC_RECORD_TYPE) return read_picture(r, out, room);
        if (type != EXTENSION_RECORD_TYPE) return clv__image_says(room, "it has no picture");
        if (!read_extension(r)) return clv__image_says(room, "it is damaged, or cut off");
    }
}

bool clv__gif_read(const clv__input *input, clv__image *out, char room[CLV__IMAGE_REASON]) {
    reading r = {.input = input, .transparent = -1};
    int reason;
    r.gif = DGifOpen(&r, on_read, &reason);
    if (!r.gif) return clv__image_says(room, "its header is damaged");
    const bool whole = read_records(&r, out, room);
    DGifCloseFile(r.gif, &reason);
    free(r.row);
    return whole;
}
