// SPDX-License-Identifier: Apache-2.0
// Source: TIFF 6.0, section 2; Exif 2.32 (CIPA DC-008), 4.6.2: Exif data are a TIFF header and such lists.
#include "io/ifd.h"

#include <string.h>

enum { ENTRY = 12, MOST_FIELDS = 4096, ORIENTATION = 274 };

static uint32_t number(const uint8_t *at, int width, bool big) {
    uint32_t value = 0;
    for (int i = 0; i < width; i++) value = value << 8 | at[big ? i : width - 1 - i];
    return value;
}

/** Bytes from base on; false: they are not within. */
static bool read(const clv__ifd *ifd, uint64_t at, void *to, size_t bytes) {
    return at <= ifd->bytes && bytes <= ifd->bytes - at &&
           clv__input_read(ifd->input, ifd->base + at, to, bytes) == CLV_OK;
}

bool clv__ifd_open(const clv__input *input, uint64_t base, uint64_t bytes, clv__ifd *out) {
    uint8_t head[8], count[2];
    if (base > input->bytes) return false;
    if (bytes > input->bytes - base) bytes = input->bytes - base;
    *out = (clv__ifd){.input = input, .base = base, .bytes = bytes};
    if (!read(out, 0, head, sizeof head)) return false;
    out->big = head[0] == 'M';
    if (memcmp(head, "II*\0", 4) != 0 && memcmp(head, "MM\0*", 4) != 0) return false;
    const uint64_t at = number(head + 4, 4, out->big);
    if (!read(out, at, count, sizeof count)) return false;
    out->at = at + sizeof count;
    out->n = (int)number(count, 2, out->big);
    return out->n <= MOST_FIELDS && (uint64_t)out->n * ENTRY <= bytes - out->at;
}

bool clv__ifd_find(const clv__ifd *ifd, int tag, clv__ifd_field *out) {
    static const int widths[] = {[1] = 1, [3] = 2, [4] = 4}; // BYTE, SHORT, LONG
    for (int i = 0; i < ifd->n; i++) {
        const uint64_t at = ifd->at + (uint64_t)i * ENTRY;
        uint8_t entry[ENTRY];
        if (!read(ifd, at, entry, sizeof entry)) return false;
        if ((int)number(entry, 2, ifd->big) != tag) continue;
        const uint32_t type = number(entry + 2, 2, ifd->big), n = number(entry + 4, 4, ifd->big);
        const int width = type < sizeof widths / sizeof *widths ? widths[type] : 0;
        if (!width || !n) return false;
        const uint64_t size = (uint64_t)width * n, from = size <= 4 ? at + 8 : number(entry + 8, 4, ifd->big);
        if (from > ifd->bytes || size > ifd->bytes - from) return false;
        *out = (clv__ifd_field){from, n, width};
        return true;
    }
    return false;
}

uint32_t clv__ifd_number(const clv__ifd *ifd, const clv__ifd_field *field, uint32_t i) {
    uint8_t bytes[4];
    if (i >= field->n) return 0;
    const uint64_t at = field->at + (uint64_t)i * (uint64_t)field->width;
    return read(ifd, at, bytes, (size_t)field->width) ? number(bytes, field->width, ifd->big) : 0;
}

int clv__ifd_orientation(const clv__input *input, uint64_t base, uint64_t bytes) {
    clv__ifd ifd;
    clv__ifd_field field;
    if (!clv__ifd_open(input, base, bytes, &ifd) || !clv__ifd_find(&ifd, ORIENTATION, &field)) return 1;
    const uint32_t value = clv__ifd_number(&ifd, &field, 0);
    return value >= 1 && value <= 8 ? (int)value : 1;
}
