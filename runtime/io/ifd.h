// SPDX-License-Identifier: Apache-2.0
// The list of fields in which TIFF files and Exif data keep what they know (TIFF 6.0, section 2), read in place and within bounds.
#ifndef CLV_IO_IFD_H
#define CLV_IO_IFD_H

#include "io/file.h"

/** The first list of a TIFF header, which begins at `base` of the input and may reach `bytes` from there. */
typedef struct clv__ifd {
    const clv__input *input;
    uint64_t base, bytes;
    bool big;    // the highest byte comes first
    uint64_t at; // of the first field, from base
    int n;       // fields
} clv__ifd;

/** Numbers of a field: n of them, of 1, 2 or 4 bytes, from `at` of the input. */
typedef struct clv__ifd_field {
    uint64_t at;
    uint32_t n;
    int width;
} clv__ifd_field;

/** false: no TIFF header, or its list is not within the bytes. */
bool clv__ifd_open(const clv__input *input, uint64_t base, uint64_t bytes, clv__ifd *out);
/** false: no such field of whole numbers, or they are not within the bytes. */
bool clv__ifd_find(const clv__ifd *ifd, int tag, clv__ifd_field *out);
/** The i-th number of a field; 0 past the end. */
uint32_t clv__ifd_number(const clv__ifd *ifd, const clv__ifd_field *field, uint32_t i);
/** The orientation of Exif data, 1 to 8; 1 where they tell none. */
int clv__ifd_orientation(const clv__input *input, uint64_t base, uint64_t bytes);

#endif
