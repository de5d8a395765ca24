// SPDX-License-Identifier: Apache-2.0
// Ops made of a few elementwise ones.
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "cleave/ops.h"
#include "graph/signature.h"
#include "tensor/dtype.h"

static clv_tensor *build_bitwise_not(const clv__call *call) {
    clv_tensor *x = call->in[0];
    const clv_dtype dtype = clv_tensor_dtype(x);
    const float all = dtype == CLV_DTYPE_U8 ? 255 : dtype == CLV_DTYPE_BOOL ? 1 : -1; // every bit
    return clv_bitwise_xor(x, clv_full(clv__tensor_graph(x), dtype, (clv_shape){0}, all));
}

#define INTEGERS(text, type)                                                                                 \
    .label = text, .in = {CLV__DIMS(3, 7)}, .i32 = 1, .whole = type, .no_gradient = true,                    \
    .fill = {{CLV__FILL_INTEGER, 0, 1}}
CLV__COMPOSITE(bitwise_not) = {.name = "bitwise_not",
                               .inputs = CLV__INPUTS({"x", "i32|i8|u8|bool"}),
                               .outputs = CLV__OUTPUTS({"y", "like x"}),
                               CLV__SAMPLES({INTEGERS("i32", CLV_DTYPE_NONE), .quick = true},
                                            {INTEGERS("u8", CLV_DTYPE_U8)},
                                            {INTEGERS("bool", CLV_DTYPE_BOOL)}),
                               .build = build_bitwise_not};

typedef struct glu_call {
    int axis;
} glu_call;

static clv_tensor *build_glu(const clv__call *call) {
    clv_tensor *x = call->in[0];
    const int axis = ((const glu_call *)call->attrs)->axis;
    const clv_shape shape = clv_tensor_shape(x);
    const int at = axis < 0 ? axis + shape.rank : axis;
    if (at < 0 || at >= shape.rank)
        return clv__graph_fail(clv__tensor_graph(x), CLV_E_VALUE, "glu: axis %d is outside of rank %d", axis,
                               shape.rank);
    if (shape.dims[at] % 2)
        return clv__graph_fail(clv__tensor_graph(x), CLV_E_SHAPE,
                               "glu: the axis has %lld elements, which is odd", (long long)shape.dims[at]);
    const int64_t half = shape.dims[at] / 2;
    return clv_mul(clv_slice(x, at, 0, half), clv_sigmoid(clv_slice(x, at, half, half)));
}

CLV__COMPOSITE(glu) = {
    .name = "glu",
    .inputs = CLV__INPUTS({"x", "f32"}),
    .attributes = CLV__ATTRIBUTES({CLV__ATTRIBUTE(INT, glu_call, axis, "-1")}),
    .outputs = CLV__OUTPUTS({"y", "f32"}),
    CLV__SAMPLES({.label = "rows", .quick = true, .in = {CLV__DIMS(3, 8)}, .attrs = &(glu_call){-1}},
                 {.label = "channels", .in = {CLV__DIMS(2, 6, 3)}, .attrs = &(glu_call){1}}),
    CLV__CALL(glu_call, build_glu)};

typedef struct triangle_call {
    int diagonal;
} triangle_call;

/** Keep what lies on the diagonal, and below or above it. */
static clv_tensor *triangle(const clv__call *call, bool upper) {
    clv_tensor *x = call->in[0];
    const int diagonal = ((const triangle_call *)call->attrs)->diagonal;
    const clv_shape shape = clv_tensor_shape(x);
    clv_graph *graph = call->graph;
    const char *name = call->op->name;
    if (shape.rank < 2)
        return clv__graph_fail(graph, CLV_E_SHAPE, "%s: x has %d dimensions, a matrix has two", name,
                               shape.rank);
    const int64_t m = shape.dims[shape.rank - 2], n = shape.dims[shape.rank - 1];
    uint8_t *mask = clv__alloc((size_t)(m * n) + 1, 1);
    if (!mask) return clv__graph_fail(graph, CLV_E_HOST_MEMORY, "%s: no host memory for a mask", name);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) mask[i * n + j] = upper ? j - i >= diagonal : j - i <= diagonal;
    clv_tensor *kept = clv_constant(graph, CLV_DTYPE_BOOL, CLV_SHAPE(m, n), mask);
    free(mask);
    const clv_dtype dtype = clv_tensor_dtype(x) == CLV_DTYPE_I32 ? CLV_DTYPE_I32 : CLV_DTYPE_F32;
    return clv_where(kept, x, clv_full(graph, dtype, (clv_shape){0}, 0));
}

static clv_tensor *build_tril(const clv__call *call) {
    return triangle(call, false);
}
static clv_tensor *build_triu(const clv__call *call) {
    return triangle(call, true);
}

static const clv__sample_row triangle_samples[] = {
    {.label = "square", .quick = true, .in = {CLV__DIMS(7, 7)}},
    {.label = "matrices", .in = {CLV__DIMS(2, 3, 5, 9)}, .attrs = &(triangle_call){2}},
    {.label = "high", .in = {CLV__DIMS(3, 17, 4)}, .attrs = &(triangle_call){-3}},
    {.label = "one element", .in = {CLV__DIMS(1, 1)}},
    {.label = "integers", .in = {CLV__DIMS(3, 5)}, .i32 = 1, .no_gradient = true},
    {0}};
#define TRIANGLE                                                                                             \
    .inputs = CLV__INPUTS({"x", "f32|i32"}), .outputs = CLV__OUTPUTS({"y", "like x"}),                       \
    .attributes = CLV__ATTRIBUTES({CLV__ATTRIBUTE(INT, triangle_call, diagonal, "0")}),                      \
    .attributes_of_call = true, .attrs_bytes = sizeof(triangle_call),                                        \
    .samples = CLV__TRAINS(triangle_samples)
CLV__COMPOSITE(tril) = {.name = "tril", TRIANGLE, .build = build_tril};
CLV__COMPOSITE(triu) = {.name = "triu", TRIANGLE, .build = build_triu};

typedef struct one_hot_call {
    int64_t classes;
} one_hot_call;

static clv_tensor *build_one_hot(const clv__call *call) {
    clv_tensor *x = call->in[0];
    const int64_t classes = ((const one_hot_call *)call->attrs)->classes;
    clv_graph *graph = call->graph;
    clv_shape shape = clv_tensor_shape(x);
    if (classes > INT32_MAX || shape.rank == CLV_MAX_RANK)
        return clv__graph_fail(graph, CLV_E_VALUE, "one_hot: %lld classes of a tensor of rank %d",
                               (long long)classes, shape.rank);
    int32_t *numbers = clv__alloc((size_t)classes, sizeof *numbers);
    if (!numbers) return clv__graph_fail(graph, CLV_E_HOST_MEMORY, "one_hot: no host memory for the classes");
    for (int64_t i = 0; i < classes; i++) numbers[i] = (int32_t)i;
    clv_tensor *all = clv_constant(graph, CLV_DTYPE_I32, CLV_SHAPE(classes), numbers);
    free(numbers);
    shape.dims[shape.rank++] = 1;
    if (clv_tensor_dtype(x) != CLV_DTYPE_I32) x = clv_cast(x, CLV_DTYPE_I32);
    return clv_cast(clv_eq(clv_reshape(x, shape), all), CLV_DTYPE_F32);
}

#define CLASSES(text, ...)                                                                                   \
    .label = text, .in = {CLV__DIMS(__VA_ARGS__)}, .i32 = 1, .no_gradient = true,                            \
    .fill = {{CLV__FILL_INTEGER, -1, 5}}, .attrs = &(one_hot_call) {                                         \
        5                                                                                                    \
    }
CLV__COMPOSITE(one_hot) = {
    .name = "one_hot",
    .inputs = CLV__INPUTS({"x", "int|bool[*]"}),
    .attributes = CLV__ATTRIBUTES({CLV__ATTRIBUTE(INT, one_hot_call, classes, NULL), CLV__AT_LEAST(1)}),
    .outputs = CLV__OUTPUTS({"y", "f32"}),
    CLV__SAMPLES({CLASSES("row", 9), .quick = true}, {CLASSES("three dimensions", 2, 3, 4)},
                 {CLASSES("bytes", 33), .whole = CLV_DTYPE_U8}, {CLASSES("none", 0)}),
    CLV__CALL(one_hot_call, build_one_hot)};

typedef struct nan_call {
    float nan, posinf, neginf;
} nan_call;

/** Of what is x too, where it is `infinite`. */
static clv_tensor *without(clv_tensor *y, clv_tensor *x, float infinite, float instead) {
    clv_graph *graph = clv__tensor_graph(x);
    return clv_where(clv_eq(x, clv_full(graph, CLV_DTYPE_F32, (clv_shape){0}, infinite)),
                     clv_full(graph, CLV_DTYPE_F32, (clv_shape){0}, instead), y);
}

static clv_tensor *build_nan_to_num(const clv__call *call) {
    const nan_call *a = call->attrs;
    clv_tensor *x = call->in[0], *y = clv_clamp(x, -FLT_MAX, FLT_MAX);
    if (!isinf(a->posinf)) y = without(y, x, INFINITY, a->posinf);
    if (!isinf(a->neginf)) y = without(y, x, -INFINITY, a->neginf);
    return clv_where(clv_eq(x, x), y, clv_full(call->graph, CLV_DTYPE_F32, (clv_shape){0}, a->nan));
}

CLV__COMPOSITE(nan_to_num) = {
    .name = "nan_to_num",
    .inputs = CLV__INPUTS({"x", "f32"}),
    .attributes = CLV__ATTRIBUTES({CLV__ATTRIBUTE(NUMBER, nan_call, nan, "0")},
                                  {CLV__ATTRIBUTE(NUMBER, nan_call, posinf, "inf"), CLV__NOT_NAN},
                                  {CLV__ATTRIBUTE(NUMBER, nan_call, neginf, "-inf"), CLV__NOT_NAN}),
    .outputs = CLV__OUTPUTS({"y", "f32"}),
    CLV__SAMPLES({.label = "rows",
                  .quick = true,
                  .in = {CLV__DIMS(3, 8)},
                  .attrs = &(nan_call){0, INFINITY, -INFINITY}},
                 {.label = "an infinity",
                  .in = {CLV__DIMS(7)},
                  .fill = {{CLV__FILL_LAST_INFINITE, 0, 0}},
                  .no_gradient = true,
                  .attrs = &(nan_call){0, 5, -5}}),
    CLV__CALL(nan_call, build_nan_to_num)};

typedef struct arange_call {
    double start, end, step;
    clv_dtype dtype;
} arange_call;

static clv_tensor *build_arange(const clv__call *call) {
    enum { MOST = 1 << 24 };
    const arange_call *a = call->attrs;
    const double n = ceil((a->end - a->start) / a->step);
    const bool whole = a->dtype == CLV_DTYPE_I32;
    if (a->dtype != CLV_DTYPE_F32 && !whole)
        return clv__graph_fail(call->graph, CLV_E_DTYPE, "arange: %s is not possible, f32 and i32 are",
                               clv_dtype_name(a->dtype));
    if (!(n >= 0 && n <= MOST) || (whole && (a->start != rint(a->start) || a->step != rint(a->step))))
        return clv__graph_fail(call->graph, CLV_E_VALUE, "arange: from %g to %g by %g is not possible",
                               a->start, a->end, a->step);
    union {
        float as_float;
        int32_t as_int;
    } *numbers = clv__alloc((size_t)n + 1, sizeof *numbers);
    if (!numbers) return clv__graph_fail(call->graph, CLV_E_HOST_MEMORY, "arange: no host memory");
    for (int64_t i = 0; i < (int64_t)n; i++) {
        const double value = a->start + (double)i * a->step;
        if (whole)
            numbers[i].as_int = (int32_t)fmin(fmax(value, INT32_MIN), INT32_MAX);
        else
            numbers[i].as_float = (float)value;
    }
    clv_tensor *y = clv_constant(call->graph, a->dtype, CLV_SHAPE((int64_t)n), numbers);
    free(numbers);
    return clv_detach(y); // what a constant is not: a result
}

static bool arange_sample(const clv__op *op, int i, clv__sample *sample) {
    static const arange_call cases[] = {
        {0, 7, 1, CLV_DTYPE_F32}, {5, -4, -2, CLV_DTYPE_I32}, {1, 1, 3, CLV_DTYPE_F32}};
    (void)op;
    if (i < 0 || (size_t)i >= sizeof cases / sizeof *cases) return false;
    clv__format(sample->label, sizeof sample->label, "%g to %g by %g", cases[i].start, cases[i].end,
                cases[i].step);
    memcpy(sample->attrs, &cases[i], sizeof cases[i]);
    sample->quick = sample->no_gradient = true;
    return true;
}

CLV__COMPOSITE(arange) = {.name = "arange",
                          .inputs = CLV__NO_INPUTS,
                          .attributes = CLV__ATTRIBUTES({CLV__ATTRIBUTE(NUMBER, arange_call, start, "0")},
                                                        {CLV__ATTRIBUTE(NUMBER, arange_call, end, NULL)},
                                                        {CLV__ATTRIBUTE(NUMBER, arange_call, step, "1")},
                                                        {CLV__ATTRIBUTE(DTYPE, arange_call, dtype, "1")}),
                          .outputs = CLV__OUTPUTS({"y", "f32|i32"}),
                          .sample = CLV__TRAINS(arange_sample),
                          CLV__CALL(arange_call, build_arange)};
