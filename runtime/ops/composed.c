// SPDX-License-Identifier: Apache-2.0
// Ops made of a few elementwise ones.
#include "cleave/ops.h"
#include "graph/signature.h"

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
