// SPDX-License-Identifier: Apache-2.0
// Pictures, lines and solids of another size, axis by axis (resample.h). Source: torch.nn.functional.interpolate.
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "graph/graph.h"
#include "graph/signature.h"
#include "ops/moves/resample.h"
#include "ops/tiles.h"

typedef struct interpolate_call {
    clv_shape size;
    int mode;
    bool align_corners, antialias;
    double scale[3];
} interpolate_call;

/** Of one axis: its length, and how much longer it becomes; 0: as the lengths say. */
typedef struct along {
    int64_t in, out;
    double scale;
} along;

/** Where place i of the result lies. */
static double place_of(const interpolate_call *a, const along *l, int64_t i) {
    const double step = l->scale > 0 ? 1 / l->scale : (double)l->in / (double)l->out;
    if (a->mode <= CLV_INTERPOLATE_NEAREST_EXACT) // PyTorch's is a float, too, and so are its roundings
        return floor((double)(float)(((double)i + 0.5 * a->mode) * (double)(float)step));
    if (a->align_corners) return l->out > 1 ? (double)i * (double)(l->in - 1) / (double)(l->out - 1) : 0;
    return ((double)i + 0.5) * step - 0.5;
}

static clv_tensor *axis_of(clv_tensor *x, const interpolate_call *a, const along *l, int axis) {
    const double step = l->scale > 0 ? 1 / l->scale : (double)l->in / (double)l->out;
    const bool antialias = a->antialias && a->mode >= CLV_INTERPOLATE_LINEAR;
    const clv__resampling how = {.nearest = a->mode <= CLV_INTERPOLATE_NEAREST_EXACT,
                                 .cubic = a->mode == CLV_INTERPOLATE_CUBIC,
                                 .exclude_outside = antialias,
                                 .a = antialias ? -0.5 : -0.75,
                                 .narrow = antialias && step > 1 ? 1 / step : 1};
    double *places = clv__alloc((size_t)l->out, sizeof *places);
    if (!places)
        return clv__graph_fail(clv__tensor_graph(x), CLV_E_HOST_MEMORY, "interpolate: no host memory");
    for (int64_t i = 0; i < l->out; i++) places[i] = place_of(a, l, i);
    clv_tensor *y = clv__resampled(x, axis, &how, places, l->out);
    free(places);
    return y;
}

static clv_tensor *build(const clv__call *call) {
    const interpolate_call *a = call->attrs;
    clv_tensor *x = call->in[0];
    clv_graph *graph = call->graph;
    const clv_shape shape = clv_tensor_shape(x);
    const int n = shape.rank - 2;
    along l[3];
    if (n < 1 || n > 3 || (a->size.rank && a->size.rank != n))
        return clv__graph_fail(graph, CLV_E_SHAPE, "interpolate: %d sizes for x of %d dimensions",
                               a->size.rank, shape.rank);
    for (int d = 0; d < n; d++) {
        l[d] = (along){shape.dims[2 + d], 0, a->scale[d] > 0 ? a->scale[d] : a->scale[0]};
        const double out = a->size.rank ? (double)a->size.dims[d] : floor((double)l[d].in * l[d].scale);
        if (l[d].in < 1 || !(out >= 1 && out <= 1 << 24))
            return clv__graph_fail(graph, CLV_E_VALUE, "interpolate: %lld places cannot become %g",
                                   (long long)l[d].in, out);
        l[d].out = (int64_t)out;
    }
    // The last axis, whose rows are single elements, while there are fewest of them.
    for (int pass = 0; pass < 2; pass++)
        for (int k = 0; k < n; k++) {
            const int d = pass ? n - 1 - k : k;
            if ((l[d].out >= l[d].in) == (pass == 1) &&
                (l[d].out != l[d].in || (l[d].scale > 0 && l[d].scale != 1)))
                x = axis_of(x, a, &l[d], 2 + d);
        }
    return x;
}

#define SCALE(d)                                                                                             \
    {                                                                                                        \
        .name = "scale" #d, .kind = CLV_ATTRIBUTE_NUMBER, .fallback = "0",                                   \
        .at = offsetof(interpolate_call, scale) + d * sizeof(double), .bytes = sizeof(double),               \
        CLV__AT_LEAST(0), CLV__AT_MOST(1 << 24)                                                              \
    }
#define ROW(text, MODE, ALIGN, ANTIALIAS, SIZE, ...)                                                         \
    .label = text, .in = {CLV__DIMS(__VA_ARGS__)}, .attrs = &(interpolate_call) {                            \
        .size = {SIZE}, .mode = MODE, .align_corners = ALIGN, .antialias = ANTIALIAS                         \
    }
#define SIZE1(a)                                                                                             \
    1, {                                                                                                     \
        a                                                                                                    \
    }
#define SIZE2(a, b)                                                                                          \
    2, {                                                                                                     \
        a, b                                                                                                 \
    }
#define SIZE3(a, b, c)                                                                                       \
    3, {                                                                                                     \
        a, b, c                                                                                              \
    }
CLV__COMPOSITE(interpolate) = {
    .name = "interpolate",
    .inputs = CLV__INPUTS({"x", "f32|i32|u8|i8|bool"}),
    .attributes = CLV__ATTRIBUTES({CLV__ATTRIBUTE(LIST, interpolate_call, size, "")},
                                  {CLV__ATTRIBUTE(INT, interpolate_call, mode, "0"), CLV__AT_LEAST(0),
                                   CLV__AT_MOST(CLV_INTERPOLATE_CUBIC)},
                                  {CLV__ATTRIBUTE(BOOL, interpolate_call, align_corners, "0")},
                                  {CLV__ATTRIBUTE(BOOL, interpolate_call, antialias, "0")}, SCALE(0),
                                  SCALE(1), SCALE(2)),
    .outputs = CLV__OUTPUTS({"y", "any"}),
    CLV__SAMPLES({ROW("4x5 to 9x7, nearest", 0, 0, 0, SIZE2(9, 7), 2, 3, 4, 5), .quick = true},
                 {ROW("6 to 4, nearest-exact", 1, 0, 0, SIZE1(4), 2, 3, 6)},
                 {ROW("4x5 to 9x7, linear", 2, 0, 0, SIZE2(9, 7), 2, 3, 4, 5), .quick = true},
                 {ROW("9x7 to 4x17, linear, corners", 2, 1, 0, SIZE2(4, 17), 1, 2, 9, 7)},
                 {ROW("2x3x4 to 3x2x7, linear", 2, 0, 0, SIZE3(3, 2, 7), 1, 2, 2, 3, 4)},
                 {ROW("5x3 to 8x8, cubic", 3, 0, 0, SIZE2(8, 8), 2, 2, 5, 3), .quick = true},
                 {ROW("5x3 to 1x1, cubic, corners", 3, 1, 0, SIZE2(1, 1), 2, 2, 5, 3)},
                 {ROW("9x11 to 4x3, linear, antialias", 2, 0, 1, SIZE2(4, 3), 2, 2, 9, 11)},
                 {ROW("9x11 to 4x17, cubic, antialias", 3, 0, 1, SIZE2(4, 17), 2, 2, 9, 11)},
                 {ROW("integers, nearest", 0, 0, 0, SIZE1(7), 1, 2, 3), .i32 = 1, .no_gradient = true},
                 {.label = "scales",
                  .in = {CLV__DIMS(1, 2, 7, 5)},
                  .attrs = &(interpolate_call){.mode = 2, .scale = {1.7, 0.6}}}),
    CLV__CALL(interpolate_call, build),
};
