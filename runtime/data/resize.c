// SPDX-License-Identifier: Apache-2.0
// Resizing pictures of bytes by a triangle filter in two passes, to the bits of PIL: weights of 22 bits after the point, sums in
// 32 bits, columns first. Only the window that is wanted is computed.
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "data/transforms.h"

enum { BITS = 22, ROWS = 4, BLOCK = 96 }; // 8 bits of a byte, 22 behind the point, a sign, and one to spare

/** Where each result of one direction comes from. */
typedef struct taps {
    int64_t n, most;  // results, and weights of each at most
    int64_t *first;   // [n]: the first pixel
    int64_t *count;   // [n]: how many
    int32_t *weights; // [n, most]
} taps;

static void reset_taps(taps *t) {
    free(t->first);
    free(t->count);
    free(t->weights);
}

static double triangle(double x) {
    x = fabs(x);
    return x < 1 ? 1 - x : 0;
}

/** Weights for results `begin` to begin + n of `out`, of `in` pixels. */
static bool make_taps(int64_t in, int64_t out, int64_t begin, int64_t n, taps *t) {
    const double scale = (double)in / (double)out, wide = scale > 1 ? scale : 1;
    *t = (taps){.n = n, .most = (int64_t)ceil(wide) * 2 + 1};
    t->first = clv__alloc((size_t)n, sizeof *t->first);
    t->count = clv__alloc((size_t)n, sizeof *t->count);
    t->weights = clv__alloc((size_t)n * (size_t)t->most, sizeof *t->weights);
    double *real = clv__alloc((size_t)t->most, sizeof *real);
    const bool room = t->first && t->count && t->weights && real;
    for (int64_t i = 0; room && i < n; i++) {
        const double center = ((double)(begin + i) + 0.5) * scale;
        int64_t first = (int64_t)(center - wide + 0.5), last = (int64_t)(center + wide + 0.5);
        if (first < 0) first = 0;
        if (last > in) last = in;
        double sum = 0;
        for (int64_t k = 0; k < last - first; k++) {
            real[k] = triangle(((double)(k + first) - center + 0.5) * (1 / wide));
            sum += real[k];
        }
        for (int64_t k = 0; k < last - first; k++)
            t->weights[i * t->most + k] = (int32_t)(0.5 + (sum != 0 ? real[k] / sum : real[k]) * (1 << BITS));
        while (last - first > 1 && t->weights[i * t->most + last - first - 1] == 0) last--;
        t->first[i] = first;
        t->count[i] = last - first;
    }
    free(real);
    return room;
}

/** Weights are not negative, so no sum is. */
static inline uint8_t byte_of(int32_t sum) {
    sum >>= BITS;
    return (uint8_t)(sum > 255 ? 255 : sum);
}

/** Some rows, `stride` bytes apart: each result is a sum over pixels beside each other, with the same weights in all of them. */
static inline void resize_rows(const taps *t, int rows, const uint8_t *from, size_t stride, uint8_t *to) {
    for (int64_t i = 0; i < t->n; i++) {
        const uint8_t *pixel = from + t->first[i] * 3;
        const int32_t *weights = t->weights + i * t->most;
        int32_t sums[3 * ROWS];
        for (int j = 0; j < 3 * rows; j++) sums[j] = 1 << (BITS - 1);
        for (int64_t k = 0; k < t->count[i]; k++, pixel += 3)
            for (int y = 0; y < rows; y++)
                for (int c = 0; c < 3; c++)
                    sums[3 * y + c] += pixel[(size_t)y * stride + (size_t)c] * weights[k];
        for (int y = 0; y < rows; y++)
            for (int c = 0; c < 3; c++) to[((int64_t)y * t->n + i) * 3 + c] = byte_of(sums[3 * y + c]);
    }
}

/** Rows of the result of the first pass. */
static void resize_across(const taps *t, int64_t rows, const uint8_t *from, size_t stride, uint8_t *to) {
    const size_t bytes = (size_t)t->n * 3;
    int64_t y = 0;
    for (; y + ROWS <= rows; y += ROWS)
        resize_rows(t, ROWS, from + (size_t)y * stride, stride, to + (size_t)y * bytes);
    for (; y < rows; y++) resize_rows(t, 1, from + (size_t)y * stride, stride, to + (size_t)y * bytes);
}

/** Up to BLOCK bytes of a row of the result, from rows above each other: what compilers make vectors of. */
static inline void add_block(const uint8_t *restrict rows, size_t stride, size_t n, const int32_t *weights,
                             int64_t count, uint8_t *restrict to) {
    int32_t sums[BLOCK];
    for (size_t x = 0; x < n; x++) sums[x] = 1 << (BITS - 1);
    for (int64_t k = 0; k < count; k++)
        for (size_t x = 0; x < n; x++) sums[x] += rows[(size_t)k * stride + x] * weights[k];
    for (size_t x = 0; x < n; x++) to[x] = byte_of(sums[x]);
}

static void add_rows(const uint8_t *rows, size_t bytes, const int32_t *weights, int64_t count, uint8_t *to) {
    size_t x = 0;
    for (; x + BLOCK <= bytes; x += BLOCK) add_block(rows + x, bytes, BLOCK, weights, count, to + x);
    if (x < bytes) add_block(rows + x, bytes, bytes - x, weights, count, to + x);
}

bool clv__resize_window(const clv__resize *r, uint8_t *to) {
    taps across = {0}, down = {0};
    uint8_t *between = NULL;
    const size_t bytes = (size_t)r->columns * 3;
    bool done = make_taps(r->width, r->resized_width, r->left, r->columns, &across) &&
                make_taps(r->height, r->resized_height, r->top, r->rows, &down);
    if (done) {
        const int64_t first = down.first[0], last = down.first[r->rows - 1] + down.count[r->rows - 1];
        between = malloc((size_t)(last - first) * bytes);
        done = between != NULL;
        if (done)
            resize_across(&across, last - first, r->from + (size_t)first * r->stride, r->stride, between);
        for (int64_t y = 0; done && y < r->rows; y++)
            add_rows(between + (size_t)(down.first[y] - first) * bytes, bytes, down.weights + y * down.most,
                     down.count[y], to + (size_t)y * bytes);
    }
    free(between);
    reset_taps(&across);
    reset_taps(&down);
    return done;
}
