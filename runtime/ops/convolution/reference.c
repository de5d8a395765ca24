// SPDX-License-Identifier: Apache-2.0
// References of convolutions of up to three dimensions: plain loops over all pairs of a pixel of y and a tap of the kernel. Which of the
// three tensors is the sum makes the op.
#include <math.h>

#include "ops/convolution/conv2d.h"

/** Which of the three tensors is the sum; the other two are multiplied. */
typedef enum sum_of { SUM_Y, SUM_X, SUM_WEIGHT } sum_of;

/** The tensors, and the dimensions that say which elements of them meet. */
typedef struct terms {
    sum_of sum;
    const clv__conv2d *c;
    clv__windows s; // of three dimensions
    double *y, *x, *weight;
    bool endless; // a weight is not finite: then it matters that padding is a 0 that is multiplied
} terms;

/** Of a pixel of y, the sum of what lies in the padding: 0, or NaN. */
static double padding_of_pixel(const terms *t, const int64_t *from, const int64_t *to, const double *weight) {
    const int64_t *kernel = t->s.kernel;
    double sum = 0;
    for (int64_t c = 0; c < t->c->in_channels; c++)
        for (int64_t q = 0; q < kernel[0]; q++)
            for (int64_t r = 0; r < kernel[1]; r++)
                for (int64_t s = 0; s < kernel[2]; s++, weight++)
                    if (q < from[0] || q >= to[0] || r < from[1] || r >= to[1] || s < from[2] || s >= to[2])
                        sum += 0 * *weight;
    return sum;
}

/** All terms of the pixel of y at o: x begins at its image and group, weight at its output channel. */
static void terms_of_pixel(const terms *t, const int64_t *o, double *y, double *x, double *weight) {
    const clv__windows *w = &t->s;
    int64_t start[CLV__WINDOW_DIMS], from[CLV__WINDOW_DIMS], to[CLV__WINDOW_DIMS];
    clv__window_inside(w, o, start, from, to);
    double pixel = *y;
    if (t->endless) pixel += padding_of_pixel(t, from, to, weight);
    for (int64_t c = 0; c < t->c->in_channels; c++)
        for (int64_t q = from[0]; q < to[0]; q++)
            for (int64_t r = from[1]; r < to[1]; r++) {
                double *taps = weight + ((c * w->kernel[0] + q) * w->kernel[1] + r) * w->kernel[2];
                const int64_t plane = c * w->in[0] + start[0] + q * w->dilation[0];
                double *row = x + (plane * w->in[1] + start[1] + r * w->dilation[1]) * w->in[2];
                const int64_t left = start[2], step = w->dilation[2];
                if (t->sum == SUM_Y)
                    for (int64_t s = from[2]; s < to[2]; s++) pixel += row[left + s * step] * taps[s];
                else if (t->sum == SUM_X)
                    for (int64_t s = from[2]; s < to[2]; s++) row[left + s * step] += pixel * taps[s];
                else
                    for (int64_t s = from[2]; s < to[2]; s++) taps[s] += pixel * row[left + s * step];
            }
    if (t->sum == SUM_Y) *y = pixel;
}

static void each_term(const terms *t) {
    const clv__conv2d *c = t->c;
    const int64_t image = c->in_channels * clv__window_product(&t->s, t->s.in),
                  channel = c->in_channels * clv__window_product(&t->s, t->s.kernel),
                  pixels = clv__window_product(&t->s, t->s.out);
    double *y = t->y;
    int64_t o[CLV__WINDOW_DIMS] = {0};
    for (int64_t n = 0; n < c->n; n++)
        for (int64_t g = 0; g < c->groups; g++)
            for (int64_t co = 0; co < c->out_channels; co++)
                for (int64_t i = 0; i < pixels; i++, clv__window_next(&t->s, o))
                    terms_of_pixel(t, o, y++, t->x + (n * c->groups + g) * image,
                                   t->weight + (g * c->out_channels + co) * channel);
}

/** Of each pixel of the result the bias of its channel, or 0. */
static void begin_with_bias(const clv__ref *ref, const clv__conv2d *c) {
    const clv_shape *shape = &ref->io->out[0].shape;
    const int64_t channels = shape->dims[1], pixels = clv__dims_product(shape, 2, shape->rank);
    for (int64_t i = 0, n = clv__numel(&ref->io->out[0]); i < n; i++)
        ref->out[0][i] = c->bias ? ref->in[2][i / pixels % channels] : 0;
}

void clv__conv_forward(const clv__ref *ref, const clv__conv2d *c) {
    terms t = {SUM_Y, c, clv__windows_solid(&c->windows), ref->out[0], ref->in[0], ref->in[1], false};
    for (int64_t i = 0; i < clv__numel(&ref->io->in[1]); i++) t.endless |= !isfinite(ref->in[1][i]);
    begin_with_bias(ref, c);
    each_term(&t);
}

void clv__conv_back(const clv__ref *ref, const clv__conv2d *c) {
    begin_with_bias(ref, c);
    each_term(
        &(terms){SUM_X, c, clv__windows_solid(&c->windows), ref->in[0], ref->out[0], ref->in[1], false});
}

void clv__conv_weight(const clv__ref *ref, const clv__conv2d *c) {
    clv__ref_zero(ref);
    each_term(
        &(terms){SUM_WEIGHT, c, clv__windows_solid(&c->windows), ref->in[0], ref->in[1], ref->out[0], false});
}
