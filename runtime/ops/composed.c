// SPDX-License-Identifier: Apache-2.0
// Ops made of a few elementwise ones.
#include <stdlib.h>

#include "base/memory.h"
#include "cleave/ops.h"
#include "graph/signature.h"
#include "tensor/dtype.h"

clv_tensor *clv_bitwise_not(clv_tensor *x) {
    const clv_dtype dtype = clv_tensor_dtype(x);
    const float all = dtype == CLV_DTYPE_U8 ? 255 : dtype == CLV_DTYPE_BOOL ? 1 : -1; // every bit
    if (!x) return NULL;
    if (dtype != CLV_DTYPE_I32 && dtype != CLV_DTYPE_I8 && all < 0)
        return clv__graph_fail(clv__tensor_graph(x), CLV_E_DTYPE,
                               "bitwise_not: x is %s, it must be i32, i8, u8 or bool", clv_dtype_name(dtype));
    return clv_bitwise_xor(x, clv_full(clv__tensor_graph(x), dtype, (clv_shape){0}, all));
}

static clv_tensor *build_bitwise_not(const clv__call *call) {
    return clv_bitwise_not(call->in[0]);
}

#define INTEGERS(text, type)                                                                                 \
    .label = text, .in = {CLV__DIMS(3, 7)}, .i32 = 1, .whole = type, .no_gradient = true,                    \
    .fill = {{CLV__FILL_INTEGER, 0, 1}}
const clv__op clv__op_bitwise_not = {
    .name = "bitwise_not",
    .inputs = CLV__INPUTS({"x", "i32|i8|u8|bool"}),
    .outputs = CLV__OUTPUTS({"y", "like x"}),
    .samples = CLV__TRAINS(((const clv__sample_row[]){{INTEGERS("i32", CLV_DTYPE_NONE), .quick = true},
                                                      {INTEGERS("u8", CLV_DTYPE_U8)},
                                                      {INTEGERS("bool", CLV_DTYPE_BOOL)},
                                                      {0}})),
    .build = build_bitwise_not};

typedef struct glu_call {
    int axis;
} glu_call;

clv_tensor *clv_glu(clv_tensor *x, int axis) {
    const clv_shape shape = clv_tensor_shape(x);
    const int at = axis < 0 ? axis + shape.rank : axis;
    if (!x) return NULL;
    if (at < 0 || at >= shape.rank)
        return clv__graph_fail(clv__tensor_graph(x), CLV_E_VALUE, "glu: axis %d is outside of rank %d", axis,
                               shape.rank);
    if (shape.dims[at] % 2)
        return clv__graph_fail(clv__tensor_graph(x), CLV_E_SHAPE,
                               "glu: the axis has %lld elements, which is odd", (long long)shape.dims[at]);
    const int64_t half = shape.dims[at] / 2;
    return clv_mul(clv_slice(x, at, 0, half), clv_sigmoid(clv_slice(x, at, half, half)));
}

static clv_tensor *build_glu(const clv__call *call) {
    return clv_glu(call->in[0], ((const glu_call *)call->attrs)->axis);
}

const clv__op clv__op_glu = {
    .name = "glu",
    .inputs = CLV__INPUTS({"x", "f32"}),
    .attributes = CLV__ATTRIBUTES({CLV__ATTRIBUTE(INT, glu_call, axis, "-1")}),
    .outputs = CLV__OUTPUTS({"y", "f32"}),
    .attributes_of_call = true,
    .attrs_bytes = sizeof(glu_call),
    .samples = CLV__TRAINS(((const clv__sample_row[]){
        {.label = "rows", .quick = true, .in = {CLV__DIMS(3, 8)}, .attrs = &(glu_call){-1}},
        {.label = "channels", .in = {CLV__DIMS(2, 6, 3)}, .attrs = &(glu_call){1}},
        {0}})),
    .build = build_glu};

typedef struct triangle_call {
    int diagonal;
} triangle_call;

/** Keep what lies on the diagonal, and below or above it. */
static clv_tensor *triangle(clv_tensor *x, int diagonal, bool upper, const char *name) {
    const clv_shape shape = clv_tensor_shape(x);
    clv_graph *graph = clv__tensor_graph(x);
    if (!x) return NULL;
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

clv_tensor *clv_tril(clv_tensor *x, int diagonal) {
    return triangle(x, diagonal, false, "tril");
}
clv_tensor *clv_triu(clv_tensor *x, int diagonal) {
    return triangle(x, diagonal, true, "triu");
}

static clv_tensor *build_tril(const clv__call *call) {
    return clv_tril(call->in[0], ((const triangle_call *)call->attrs)->diagonal);
}
static clv_tensor *build_triu(const clv__call *call) {
    return clv_triu(call->in[0], ((const triangle_call *)call->attrs)->diagonal);
}

#define TRIANGLE(name_)                                                                                      \
    const clv__op clv__op_##name_ = {                                                                        \
        .name = #name_,                                                                                      \
        .inputs = CLV__INPUTS({"x", "f32|i32"}),                                                             \
        .attributes = CLV__ATTRIBUTES({CLV__ATTRIBUTE(INT, triangle_call, diagonal, "0")}),                  \
        .outputs = CLV__OUTPUTS({"y", "like x"}),                                                            \
        .attributes_of_call = true,                                                                          \
        .attrs_bytes = sizeof(triangle_call),                                                                \
        .samples = CLV__TRAINS(((const clv__sample_row[]){                                                   \
            {.label = "square", .quick = true, .in = {CLV__DIMS(7, 7)}},                                     \
            {.label = "matrices", .in = {CLV__DIMS(2, 3, 5, 9)}, .attrs = &(triangle_call){2}},              \
            {.label = "high", .in = {CLV__DIMS(3, 17, 4)}, .attrs = &(triangle_call){-3}},                   \
            {.label = "one element", .in = {CLV__DIMS(1, 1)}},                                               \
            {.label = "integers", .in = {CLV__DIMS(3, 5)}, .i32 = 1, .no_gradient = true},                   \
            {0}})),                                                                                          \
        .build = build_##name_}
TRIANGLE(tril);
TRIANGLE(triu);

typedef struct one_hot_call {
    int64_t classes;
} one_hot_call;

clv_tensor *clv_one_hot(clv_tensor *x, int64_t classes) {
    clv_graph *graph = clv__tensor_graph(x);
    clv_shape shape = clv_tensor_shape(x);
    if (!x) return NULL;
    if (clv__is_float(clv_tensor_dtype(x)))
        return clv__graph_fail(graph, CLV_E_DTYPE, "one_hot: x is %s, it must be integers",
                               clv_dtype_name(clv_tensor_dtype(x)));
    if (classes < 1 || classes > INT32_MAX || shape.rank == CLV_MAX_RANK)
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

static clv_tensor *build_one_hot(const clv__call *call) {
    return clv_one_hot(call->in[0], ((const one_hot_call *)call->attrs)->classes);
}

#define CLASSES(text, ...)                                                                                   \
    .label = text, .in = {CLV__DIMS(__VA_ARGS__)}, .i32 = 1, .no_gradient = true,                            \
    .fill = {{CLV__FILL_INTEGER, -1, 5}}, .attrs = &(one_hot_call) {                                         \
        5                                                                                                    \
    }
const clv__op clv__op_one_hot = {
    .name = "one_hot",
    .inputs = CLV__INPUTS({"x", "int[*]"}),
    .attributes = CLV__ATTRIBUTES({CLV__ATTRIBUTE(INT, one_hot_call, classes, NULL), CLV__AT_LEAST(1)}),
    .outputs = CLV__OUTPUTS({"y", "f32"}),
    .attributes_of_call = true,
    .attrs_bytes = sizeof(one_hot_call),
    .samples = CLV__TRAINS(((const clv__sample_row[]){{CLASSES("row", 9), .quick = true},
                                                      {CLASSES("three dimensions", 2, 3, 4)},
                                                      {CLASSES("bytes", 33), .whole = CLV_DTYPE_U8},
                                                      {CLASSES("none", 0)},
                                                      {0}})),
    .build = build_one_hot};
