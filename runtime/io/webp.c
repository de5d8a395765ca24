// SPDX-License-Identifier: Apache-2.0
// WebP by libwebp; of an animation the first frame, where it lies on its black ground.
#include <string.h>
#include <webp/decode.h>
#include <webp/demux.h>

#include "io/image.h"

/** The frame's pixels to its place in the picture. */
static bool decode(const WebPIterator *frame, clv__image *out, char room[CLV__IMAGE_REASON]) {
    const int64_t w = frame->width, h = frame->height, x = frame->x_offset, y = frame->y_offset;
    int width = 0, height = 0;
    if (!WebPGetInfo(frame->fragment.bytes, frame->fragment.size, &width, &height) || width != w ||
        height != h || x < 0 || y < 0 || w > out->width - x || h > out->height - y)
        return clv__image_says(room, "its header contradicts itself");
    uint8_t *to = out->pixels + (y * out->width + x) * 3;
    const size_t room_bytes = (size_t)((h - 1) * out->width + w) * 3;
    if (!WebPDecodeRGBInto(frame->fragment.bytes, frame->fragment.size, to, room_bytes, (int)out->width * 3))
        return clv__image_says(room, "its pixels are damaged, or it is cut off");
    return true;
}

bool clv__webp_read(const clv__input *input, clv__image *out, char room[CLV__IMAGE_REASON]) {
    const WebPData data = {(const uint8_t *)input->memory, (size_t)input->bytes};
    WebPIterator frame;
    WebPDemuxer *demuxer = WebPDemux(&data);
    if (!demuxer) return clv__image_says(room, "it is damaged, or cut off");
    bool whole = WebPDemuxGetI(demuxer, WEBP_FF_CANVAS_WIDTH) == out->width &&
                 WebPDemuxGetI(demuxer, WEBP_FF_CANVAS_HEIGHT) == out->height;
    if (!whole) clv__image_says(room, "its header contradicts itself");
    if (whole && WebPDemuxGetFrame(demuxer, 1, &frame)) {
        memset(out->pixels, 0, (size_t)(out->width * out->height) * 3);
        whole = decode(&frame, out, room);
        WebPDemuxReleaseIterator(&frame);
    } else if (whole) {
        whole = clv__image_says(room, "it has no picture");
    }
    WebPDemuxDelete(demuxer);
    return whole;
}
