// SPDX-License-Identifier: Apache-2.0
// What is done with a picture between its file and a batch: torchvision's transforms of PIL images, to the bit where nothing is
// drawn. What is drawn for a sample is kept apart from what is done with it.
#ifndef CLV_DATA_TRANSFORMS_H
#define CLV_DATA_TRANSFORMS_H

#include "base/random.h"
#include "cleave/data.h"
#include "io/image.h"

/** What is done with each picture of a folder. */
typedef struct clv__transforms {
    int64_t size;   // of what comes out, square
    int64_t resize; // Resize of the shorter side, then CenterCrop(size); unused where a crop is drawn
    clv_image_augment augment;
    float values[3][256]; // what a byte of a channel becomes: ToTensor, Normalize
} clv__transforms;

/** What was drawn for one picture: a box of it is resized, and a window of the result kept. */
typedef struct clv__drawn {
    int64_t top, left, height, width;      // the box
    int64_t resized_height, resized_width; // of the box, resized
    int64_t window_top, window_left;       // of the window: size x size
    bool flip;                             // left and right
    int jitters[3];                        // the order of brightness 0, contrast 1, saturation 2
    float factors[3];                      // of each; 1: it stays
} clv__drawn;

void clv__transforms_init(clv__transforms *t, int64_t size, int64_t resize, const clv_image_augment *augment,
                          const float mean[3], const float std[3]);
/** Draw for a picture of this size. The same numbers are drawn whatever is augmented. */
void clv__transforms_draw(const clv__transforms *t, clv__random *random, int64_t width, int64_t height,
                          clv__drawn *out);
/** By what the sides of a JPEG may be divided when it is decoded, so that the box is no smaller than what becomes of it: 1, 2, 4, 8. The
 *  box becomes that of the smaller picture. */
int clv__transforms_draft(clv__drawn *drawn, int64_t width, int64_t height);
/** The rows of the picture, from the top, that are looked at. */
int64_t clv__transforms_rows(const clv__drawn *drawn);
/** Take the window out of the picture: [size, size, 3] bytes. false: no host memory. */
bool clv__transforms_window(const clv__transforms *t, const clv__drawn *drawn, const clv__image *image,
                            uint8_t *window);
/** Jitter, flip and normalise the window: [3, size, size]. The window is changed. */
void clv__transforms_finish(const clv__transforms *t, const clv__drawn *drawn, uint8_t *window, float *out);
/** The same as bytes, not normalised. */
void clv__transforms_bytes(const clv__transforms *t, const clv__drawn *drawn, uint8_t *window, uint8_t *out);

/**
 * A window of a resized picture, as PIL's `resize(..., BILINEAR, box)`: a triangle that is as wide as the step between pixels where
 * the picture gets smaller, columns first, each pass rounded to bytes.
 *
 * from   the box's first pixel; its rows are `stride` bytes apart
 * to     [rows, columns, 3]: those of the resized picture from `top` and `left`
 */
typedef struct clv__resize {
    const uint8_t *from;
    size_t stride;
    int64_t height, width;                 // of the box
    int64_t resized_height, resized_width; // of the whole result
    int64_t top, left, rows, columns;      // the window
} clv__resize;
bool clv__resize_window(const clv__resize *r, uint8_t *to);

#endif
