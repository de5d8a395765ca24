// SPDX-License-Identifier: Apache-2.0
// Rows: ops of ours as nodes of ONNX: windows but those of images, sums and order along an axis, truths and bits.
#include "onnx/writer.h"

#define NODE clv__writer_node_of

static const char *x_of(clv__onnx_writer *w) {
    return clv__writer_in(w, 0);
}

static const char *y_of(clv__onnx_writer *w) {
    return clv__writer_result(w);
}

// ---- windows --------------------------------------------------------------------------------------------------------

/** Numbers of ours, one for each dimension of the windows, under ONNX's name. */
static void numbers(clv__onnx_writer *w, const char *name, const char *onnx, int n) {
    int64_t values[CLV_MAX_RANK] = {0};
    clv__writer_numbers(w, name, values);
    clv__writer_put_ints(w, onnx, values, n);
}

static void convolution(clv__onnx_writer *w, const char *op, bool transposed) {
    const clv_shape *weight = clv__writer_in_shape(w, 1);
    const int n = weight->rank - 2;
    int64_t padding[CLV_MAX_RANK] = {0}, pads[2 * CLV_MAX_RANK];
    clv__writer_begin(w, op,
                      (const char *const[]){x_of(w), clv__writer_in(w, 1), clv__writer_in(w, 2), NULL});
    clv__writer_put_ints(w, "kernel_shape", weight->dims + 2, n);
    numbers(w, "stride", "strides", n);
    numbers(w, "dilation", "dilations", n);
    clv__writer_numbers(w, "padding", padding);
    for (int d = 0; d < n; d++) pads[d] = pads[n + d] = padding[d];
    clv__writer_put_ints(w, "pads", pads, 2 * n);
    if (transposed) numbers(w, "output_padding", "output_padding", n);
    clv__writer_put_int(w, "group", (int64_t)clv__writer_number(w, "groups"));
    clv__writer_end(w, y_of(w));
}

static void write_conv(clv__onnx_writer *w) {
    convolution(w, "Conv", false);
}

static void write_conv_transpose(clv__onnx_writer *w) {
    convolution(w, "ConvTranspose", true);
}

// ---- along an axis --------------------------------------------------------------------------------------------------

static void write_cumsum(clv__onnx_writer *w) {
    const int64_t axis = (int64_t)clv__writer_number(w, "axis");
    const clv_shape one = {0};
    const char *at = clv__writer_constant(w, CLV_DTYPE_I64, &one, &axis);
    clv__writer_begin(w, "CumSum", (const char *const[]){x_of(w), at, NULL});
    clv__writer_put_int(w, "exclusive", clv__writer_number(w, "exclusive") != 0);
    clv__writer_put_int(w, "reverse", clv__writer_number(w, "reverse") != 0);
    clv__writer_end(w, y_of(w));
}

/** Places are i64 there. */
static void write_topk(clv__onnx_writer *w) {
    const int64_t k = (int64_t)clv__writer_number(w, "k");
    const char *many = clv__writer_list(w, &k, 1);
    clv__writer_begin(w, "TopK", (const char *const[]){x_of(w), many, NULL});
    clv__writer_put_int(w, "axis", (int64_t)clv__writer_number(w, "axis"));
    clv__writer_put_int(w, "largest", clv__writer_number(w, "largest") != 0);
    const char *const results[] = {y_of(w), clv__writer_also(w), NULL};
    clv__writer_end_with(w, results);
    clv__writer_cast(w, results[1], CLV__ONNX_INT32, clv__writer_result_of(w, 1));
}

// ---- truths and bits ------------------------------------------------------------------------------------------------

static const char *truth_of(clv__onnx_writer *w, int input) {
    return clv__writer_cast(w, clv__writer_in(w, input), CLV__ONNX_BOOL, NULL);
}

static void logical(clv__onnx_writer *w, const char *op) {
    const char *a = truth_of(w, 0), *b = truth_of(w, 1);
    clv__writer_cast(w, NODE(w, op, NULL, a, b), CLV__ONNX_INT32, y_of(w));
}

static void write_and(clv__onnx_writer *w) {
    logical(w, "And");
}

static void write_or(clv__onnx_writer *w) {
    logical(w, "Or");
}

static void write_xor(clv__onnx_writer *w) {
    logical(w, "Xor");
}

static void write_not(clv__onnx_writer *w) {
    clv__writer_cast(w, NODE(w, "Not", NULL, truth_of(w, 0)), CLV__ONNX_INT32, y_of(w));
}

/** Of bool the bits are truths. */
static void bitwise(clv__onnx_writer *w, const char *op, const char *of_bool) {
    const bool truths = w->node.outputs[0]->desc.dtype == CLV_DTYPE_BOOL;
    NODE(w, truths ? of_bool : op, y_of(w), x_of(w), clv__writer_in(w, 1));
}

static void write_bitwise_and(clv__onnx_writer *w) {
    bitwise(w, "BitwiseAnd", "And");
}

static void write_bitwise_or(clv__onnx_writer *w) {
    bitwise(w, "BitwiseOr", "Or");
}

static void write_bitwise_xor(clv__onnx_writer *w) {
    bitwise(w, "BitwiseXor", "Xor");
}

// ---- the table ------------------------------------------------------------------------------------------------------

const clv__onnx_write_row clv__onnx_write_more[] = {
    {"prelu", "PRelu", NULL},
    {"conv3d", NULL, write_conv},
    {"conv_transpose2d", NULL, write_conv_transpose},
    {"conv_transpose3d", NULL, write_conv_transpose},
    {"cumsum", NULL, write_cumsum},
    {"topk", NULL, write_topk},
    {"logical_and", NULL, write_and},
    {"logical_or", NULL, write_or},
    {"logical_xor", NULL, write_xor},
    {"logical_not", NULL, write_not},
    {"bitwise_and", NULL, write_bitwise_and},
    {"bitwise_or", NULL, write_bitwise_or},
    {"bitwise_xor", NULL, write_bitwise_xor},
    {NULL, NULL, NULL},
};
