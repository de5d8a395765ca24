// SPDX-License-Identifier: Apache-2.0
// torchvision's transforms of PIL images: Resize, CenterCrop, RandomResizedCrop, RandomHorizontalFlip, ColorJitter, ToTensor and
// Normalize. Source: torchvision 0.14's documentation; what PIL computes is pinned by values that were made with it.
#include "data/transforms.h"

#include <math.h>
#include <string.h>

void clv__transforms_init(clv__transforms *t, int64_t size, int64_t resize, const clv_image_augment *augment,
                          const float mean[3], const float std[3]) {
    *t = (clv__transforms){.size = size, .resize = resize, .augment = *augment};
    for (int c = 0; c < 3; c++)
        for (int i = 0; i < 256; i++) t->values[c][i] = ((float)i / 255.0f - mean[c]) / std[c];
}

// ---- what is drawn ----------------------------------------------------------------------------------------

/** Resize(resize), then CenterCrop(size). */
static void place_center(const clv__transforms *t, int64_t width, int64_t height, clv__drawn *out) {
    const bool upright = width <= height;
    const int64_t shorter = upright ? width : height, longer = upright ? height : width;
    const int64_t resized = (int64_t)((double)(t->resize * longer) / (double)shorter);
    out->height = height;
    out->width = width;
    out->resized_height = upright ? resized : t->resize;
    out->resized_width = upright ? t->resize : resized;
    out->window_top = (int64_t)nearbyint((double)(out->resized_height - t->size) / 2);
    out->window_left = (int64_t)nearbyint((double)(out->resized_width - t->size) / 2);
}

/** Where ten boxes did not fit: the largest in the middle whose ratio is allowed. */
static void middle_box(const clv_image_augment *a, int64_t width, int64_t height, clv__drawn *out) {
    const double ratio = (double)width / (double)height;
    out->width = width;
    out->height = height;
    if (ratio < a->ratio[0]) out->height = (int64_t)nearbyint((double)width / a->ratio[0]);
    if (ratio > a->ratio[1]) out->width = (int64_t)nearbyint((double)height * a->ratio[1]);
    if (out->height < 1) out->height = 1; // of a picture one pixel wide
    if (out->width < 1) out->width = 1;
    out->top = (height - out->height) / 2;
    out->left = (width - out->width) / 2;
}

static double between(clv__random *random, double low, double high) {
    return low + (high - low) * (double)clv__random_uniform(random);
}

/** RandomResizedCrop(size, scale, ratio). */
static void draw_box(const clv__transforms *t, clv__random *random, int64_t width, int64_t height,
                     clv__drawn *out) {
    const clv_image_augment *a = &t->augment;
    bool found = false;
    for (int i = 0; i < 10 && !found; i++) {
        const double area = (double)width * (double)height * between(random, a->scale[0], a->scale[1]);
        const double ratio = exp(between(random, log(a->ratio[0]), log(a->ratio[1])));
        out->width = (int64_t)nearbyint(sqrt(area * ratio));
        out->height = (int64_t)nearbyint(sqrt(area / ratio));
        found = out->width >= 1 && out->width <= width && out->height >= 1 && out->height <= height;
    }
    if (found) {
        out->top = clv__random_below(random, (uint32_t)(height - out->height + 1));
        out->left = clv__random_below(random, (uint32_t)(width - out->width + 1));
    } else {
        middle_box(a, width, height, out);
    }
    out->resized_height = out->resized_width = t->size;
}

void clv__transforms_draw(const clv__transforms *t, clv__random *random, int64_t width, int64_t height,
                          clv__drawn *out) {
    const clv_image_augment *a = &t->augment;
    *out = (clv__drawn){.jitters = {0, 1, 2}};
    if (a->crop)
        draw_box(t, random, width, height, out);
    else
        place_center(t, width, height, out);
    out->flip = (double)clv__random_uniform(random) < a->flip;
    const double strengths[3] = {a->brightness, a->contrast, a->saturation};
    for (int i = 0; i < 3; i++) {
        const double low = strengths[i] < 1 ? 1 - strengths[i] : 0;
        out->factors[i] = strengths[i] > 0 ? (float)between(random, low, 1 + strengths[i]) : 1;
    }
    for (int i = 2; i > 0; i--) {
        const int k = (int)clv__random_below(random, (uint32_t)i + 1), kept = out->jitters[i];
        out->jitters[i] = out->jitters[k];
        out->jitters[k] = kept;
    }
}

/** A stretch of a side, divided: at least a pixel, and within the side. */
static void divide(int64_t *begin, int64_t *length, int64_t side, int by) {
    const int64_t most = (side + by - 1) / by;
    int64_t first = *begin / by, n = (*length + by / 2) / by;
    if (first + n > most) n = most - first;
    *begin = first;
    *length = n;
}

int clv__transforms_draft(clv__drawn *drawn, int64_t width, int64_t height) {
    int by = 8;
    while (by > 1 && (drawn->height / by < drawn->resized_height || drawn->width / by < drawn->resized_width))
        by /= 2;
    if (by > 1) {
        divide(&drawn->top, &drawn->height, height, by);
        divide(&drawn->left, &drawn->width, width, by);
    }
    return by;
}

int64_t clv__transforms_rows(const clv__drawn *drawn) {
    return drawn->top + drawn->height;
}

// ---- what is done -----------------------------------------------------------------------------------------

bool clv__transforms_window(const clv__transforms *t, const clv__drawn *drawn, const clv__image *image,
                            uint8_t *window) {
    const size_t stride = (size_t)image->width * 3;
    const clv__resize resize = {.from = image->pixels + (size_t)drawn->top * stride + drawn->left * 3,
                                .stride = stride,
                                .height = drawn->height,
                                .width = drawn->width,
                                .resized_height = drawn->resized_height,
                                .resized_width = drawn->resized_width,
                                .top = drawn->window_top,
                                .left = drawn->window_left,
                                .rows = t->size,
                                .columns = t->size};
    return clv__resize_window(&resize, window);
}

/** PIL's luma of a pixel. */
static inline int grey_of(const uint8_t *pixel) {
    return (pixel[0] * 19595 + pixel[1] * 38470 + pixel[2] * 7471 + 0x8000) >> 16;
}

/** PIL's blend: from `base` to `value`, or beyond. */
static inline uint8_t blend(int base, int value, float factor) {
    const float sum = (float)base + factor * (float)(value - base);
    return sum <= 0 ? 0 : sum >= 255 ? 255 : (uint8_t)sum;
}

/** ColorJitter's three, each as PIL's ImageEnhance: away from black, from the mean of its grey, from each pixel's grey. */
static void jitter(int what, float factor, uint8_t *window, int64_t pixels) {
    int base = 0;
    if (what == 1) {
        int64_t sum = 0;
        for (int64_t i = 0; i < pixels; i++) sum += grey_of(window + 3 * i);
        base = (int)((double)sum / (double)pixels + 0.5);
    }
    for (int64_t i = 0; i < pixels; i++, window += 3) {
        if (what == 2) base = grey_of(window);
        for (int c = 0; c < 3; c++) window[c] = blend(base, window[c], factor);
    }
}

static void jitter_all(const clv__transforms *t, const clv__drawn *drawn, uint8_t *window) {
    for (int i = 0; i < 3; i++) {
        const int what = drawn->jitters[i];
        if (drawn->factors[what] != 1) jitter(what, drawn->factors[what], window, t->size * t->size);
    }
}

void clv__transforms_finish(const clv__transforms *t, const clv__drawn *drawn, uint8_t *window, float *out) {
    const int64_t size = t->size, pixels = size * size;
    jitter_all(t, drawn, window);
    for (int64_t y = 0; y < size; y++) {
        const uint8_t *row = window + y * size * 3;
        float *to = out + y * size;
        for (int64_t x = 0; x < size; x++) {
            const uint8_t *pixel = row + 3 * (drawn->flip ? size - 1 - x : x);
            to[x] = t->values[0][pixel[0]];
            to[x + pixels] = t->values[1][pixel[1]];
            to[x + 2 * pixels] = t->values[2][pixel[2]];
        }
    }
}

void clv__transforms_bytes(const clv__transforms *t, const clv__drawn *drawn, uint8_t *window, uint8_t *out) {
    const int64_t size = t->size, pixels = size * size;
    jitter_all(t, drawn, window);
    for (int64_t y = 0; y < size; y++) {
        const uint8_t *row = window + y * size * 3;
        uint8_t *to = out + y * size;
        for (int64_t x = 0; x < size; x++) {
            const uint8_t *pixel = row + 3 * (drawn->flip ? size - 1 - x : x);
            for (int c = 0; c < 3; c++) to[x + c * pixels] = pixel[c];
        }
    }
}
