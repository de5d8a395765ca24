// SPDX-License-Identifier: Apache-2.0
// Windows over the last one to three dimensions of [N,C,...], as convolutions and pools have them.
#ifndef CLV_OPS_WINDOW_H
#define CLV_OPS_WINDOW_H

#include "graph/signature.h"
#include "ops/lower.h"

enum { CLV__WINDOW_DIMS = 3 };

/** The windows of a use: [0] is the outermost of its dimensions, so H of an image. */
#define CLV__WINDOWS                                                                                         \
    int dims;                                                                                                \
    int64_t in[CLV__WINDOW_DIMS], out[CLV__WINDOW_DIMS], kernel[CLV__WINDOW_DIMS], stride[CLV__WINDOW_DIMS], \
        padding[CLV__WINDOW_DIMS], dilation[CLV__WINDOW_DIMS]
typedef struct clv__windows {
    CLV__WINDOWS;
} clv__windows;

/** Windows that make y of x. */
clv__windows clv__windows_of(const clv_shape *x, const clv_shape *y, const int64_t *kernel,
                             const int32_t *stride, const int32_t *padding, const int32_t *dilation);
/** The name of dimension d of so many: D, H or W. */
const char *clv__window_axis(int dims, int d);
/** The sizes of all dimensions multiplied. */
int64_t clv__window_product(const clv__windows *w, const int64_t *sizes);

/** Of an attribute that is one number for D, H and W or three make three; false, and the graph has the mistake, of others. */
bool clv__dhw(const clv__call *call, const char *name, clv__ints *list);

// For references: windows as of three dimensions, those that are not there of one element.
clv__windows clv__windows_solid(const clv__windows *w);
/** Where the window at output position o begins, and its taps that lie inside, from `from` to before `to`. */
void clv__window_inside(const clv__windows *solid, const int64_t *o, int64_t *start, int64_t *from,
                        int64_t *to);
/** The output position after o; after the last one of a plane comes the first. */
void clv__window_next(const clv__windows *solid, int64_t *o);

#endif
