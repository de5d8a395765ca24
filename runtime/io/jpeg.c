// SPDX-License-Identifier: Apache-2.0
// JPEG by libjpeg: its errors come back as a sentence, its warnings are passed over as PIL does, but for the end of the file.
#include <stdio.h> // libjpeg's header wants FILE

#include <jerror.h>
#include <jpeglib.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "io/image.h"

/** A progressive picture may have any number of scans, each of which goes over all of it; real ones have a dozen. */
enum { SCANS = 500 };

typedef struct reading {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    jmp_buf escape;
    char *room;
    uint8_t *cmyk; // a row
} reading;

static void on_error(j_common_ptr jpeg) {
    reading *r = jpeg->client_data;
    char text[JMSG_LENGTH_MAX];
    jpeg->err->format_message(jpeg, text);
    snprintf(r->room, CLV__IMAGE_REASON, "%s", text);
    longjmp(r->escape, 1);
}

static void on_message(j_common_ptr jpeg, int level) {
    if (level < 0 && jpeg->err->msg_code == JWRN_JPEG_EOF) {
        reading *r = jpeg->client_data;
        snprintf(r->room, CLV__IMAGE_REASON, "it is cut off");
        longjmp(r->escape, 1);
    }
}

static void on_progress(j_common_ptr jpeg) {
    reading *r = jpeg->client_data;
    if (jpeg->is_decompressor && ((j_decompress_ptr)jpeg)->input_scan_number > SCANS) {
        snprintf(r->room, CLV__IMAGE_REASON, "it has more than %d scans", SCANS);
        longjmp(r->escape, 1);
    }
}

/** Such pictures are inverted, as Adobe's programs write them. */
static void convert_cmyk(const uint8_t *from, int64_t n, uint8_t *to) {
    for (int64_t i = 0; i < n; i++, from += 4, to += 3) {
        const uint8_t ink[] = {(uint8_t)~from[0], (uint8_t)~from[1], (uint8_t)~from[2], (uint8_t)~from[3]};
        clv__image_cmyk(ink, to);
    }
}

static void decode(reading *r, const clv__input *input, int scale, clv__image *out) {
    struct jpeg_decompress_struct *jpeg = &r->jpeg;
    jpeg_create_decompress(jpeg);
    jpeg->progress = &r->progress;
    jpeg_mem_src(jpeg, (unsigned char *)input->memory, (unsigned long)input->bytes);
    jpeg_read_header(jpeg, TRUE);
    const bool cmyk = jpeg->jpeg_color_space == JCS_CMYK || jpeg->jpeg_color_space == JCS_YCCK;
    jpeg->out_color_space = cmyk ? JCS_CMYK : JCS_RGB;
    jpeg->scale_num = 1;
    jpeg->scale_denom = (unsigned)scale;
    jpeg_start_decompress(jpeg);
    if (jpeg->output_width != out->width || jpeg->output_height < out->height ||
        jpeg->output_components != (cmyk ? 4 : 3)) {
        snprintf(r->room, CLV__IMAGE_REASON, "its header contradicts itself");
        longjmp(r->escape, 1);
    }
    if (cmyk) r->cmyk = malloc((size_t)out->width * 4);
    while (jpeg->output_scanline < out->height) {
        uint8_t *to = out->pixels + (size_t)jpeg->output_scanline * (size_t)out->width * 3;
        JSAMPROW row = cmyk ? r->cmyk : to;
        if (!row) {
            snprintf(r->room, CLV__IMAGE_REASON, "no host memory for a row of it");
            longjmp(r->escape, 1);
        }
        if (jpeg_read_scanlines(jpeg, &row, 1) == 1 && cmyk) convert_cmyk(r->cmyk, out->width, to);
    }
}

bool clv__jpeg_read(const clv__input *input, int scale, clv__image *out, char room[CLV__IMAGE_REASON]) {
    reading *r = calloc(1, sizeof *r); // not on the stack: what setjmp leaves undefined are local variables
    if (!r) {
        snprintf(room, CLV__IMAGE_REASON, "no host memory to read it");
        return false;
    }
    r->room = room;
    r->jpeg.err = jpeg_std_error(&r->errors);
    r->jpeg.client_data = r;
    r->errors.error_exit = on_error;
    r->errors.emit_message = on_message;
    r->progress.progress_monitor = on_progress;
    bool whole = false;
    if (!setjmp(r->escape)) {
        decode(r, input, scale, out);
        whole = true;
    }
    jpeg_destroy_decompress(&r->jpeg);
    free(r->cmyk);
    free(r);
    return whole;
}
