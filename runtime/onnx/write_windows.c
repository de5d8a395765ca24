// SPDX-License-Identifier: Apache-2.0
// Rows: convolutions and pools as nodes of ONNX.
#include "onnx/writer.h"

#include <stdlib.h>
#include <string.h>

#define NODE clv__writer_node_of

static const char *x_of(clv__onnx_writer *w) {
    return clv__writer_in(w, 0);
}

static const char *y_of(clv__onnx_writer *w) {
    return clv__writer_result(w);
}

/** Numbers of ours, one for each dimension of the windows, under ONNX's name. */
static void numbers(clv__onnx_writer *w, const char *name, const char *onnx, int n) {
    int64_t values[CLV_MAX_RANK] = {0};
    clv__writer_numbers(w, name, values);
    clv__writer_put_ints(w, onnx, values, n);
}

/** As much behind as before. */
static void pads(clv__onnx_writer *w, int n) {
    int64_t values[CLV_MAX_RANK] = {0}, both[2 * CLV_MAX_RANK];
    clv__writer_numbers(w, "padding", values);
    for (int d = 0; d < n; d++) both[d] = both[n + d] = values[d];
    clv__writer_put_ints(w, "pads", both, 2 * n);
}

static void convolution(clv__onnx_writer *w) {
    const clv_shape *weight = clv__writer_in_shape(w, 1);
    const int n = weight->rank - 2;
    clv__writer_begin(w, w->row->onnx,
                      (const char *const[]){x_of(w), clv__writer_in(w, 1), clv__writer_in(w, 2), NULL});
    clv__writer_put_ints(w, "kernel_shape", weight->dims + 2, n);
    numbers(w, "stride", "strides", n);
    pads(w, n);
    numbers(w, "dilation", "dilations", n);
    if (strcmp(w->row->onnx, "Conv") != 0) numbers(w, "output_padding", "output_padding", n);
    clv__writer_put_int(w, "group", (int64_t)clv__writer_number(w, "groups"));
    clv__writer_end(w, y_of(w));
}

static void pool(clv__onnx_writer *w, const char *op) {
    clv__writer_begin(w, op, (const char *const[]){x_of(w), NULL});
    numbers(w, "kernel", "kernel_shape", 2);
    numbers(w, "stride", "strides", 2);
    pads(w, 2);
    clv__writer_put_int(w, "ceil_mode", clv__writer_number(w, "ceil_mode") != 0);
}

static void write_max_pool2d(clv__onnx_writer *w) {
    pool(w, "MaxPool");
    numbers(w, "dilation", "dilations", 2);
    clv__writer_end(w, y_of(w));
}

static void write_avg_pool2d(clv__onnx_writer *w) {
    pool(w, "AveragePool");
    clv__writer_put_int(w, "count_include_pad", clv__writer_number(w, "exclude_padding") == 0);
    clv__writer_end(w, y_of(w));
}

static void write_global_avg_pool2d(clv__onnx_writer *w) {
    NODE(w, "GlobalAveragePool", y_of(w), x_of(w));
}

/** [out, in], or turned: the parts of a row that each mean takes. */
static const char *means(clv__onnx_writer *w, int64_t in, int64_t out, bool turned_round) {
    float *parts = clv__alloc((size_t)(in * out) + 1, sizeof *parts);
    for (int64_t o = 0; parts && o < out; o++) {
        const int64_t from = o * in / out, to = ((o + 1) * in + out - 1) / out;
        for (int64_t i = from; i < to; i++)
            parts[turned_round ? i * out + o : o * in + i] = 1.0F / (float)(to - from);
    }
    if (!parts) clv__writer_out_of_memory(w);
    const clv_shape shape = {2, {turned_round ? in : out, turned_round ? out : in}};
    const char *name = parts ? clv__writer_constant(w, CLV_DTYPE_F32, &shape, parts) : "";
    free(parts);
    return name;
}

/** One window: the mean of all; windows that divide the picture: a pool; else a product with a matrix on each side. */
static void write_adaptive_avg_pool2d(clv__onnx_writer *w) {
    const clv_shape *x = clv__writer_in_shape(w, 0), *y = &w->node.outputs[0]->desc.shape;
    const int64_t h = x->dims[2], width = x->dims[3], oh = y->dims[2], ow = y->dims[3];
    if (oh == 1 && ow == 1) {
        write_global_avg_pool2d(w);
    } else if (oh && ow && h % oh == 0 && width % ow == 0) {
        const int64_t window[2] = {h / oh, width / ow};
        clv__writer_begin(w, "AveragePool", (const char *const[]){x_of(w), NULL});
        clv__writer_put_ints(w, "kernel_shape", window, 2);
        clv__writer_put_ints(w, "strides", window, 2);
        clv__writer_end(w, y_of(w));
    } else {
        const char *rows = NODE(w, "MatMul", NULL, x_of(w), means(w, width, ow, true));
        NODE(w, "MatMul", y_of(w), means(w, h, oh, false), rows);
    }
}

const clv__onnx_write_row clv__onnx_write_windows[] = {
    {"conv2d", "Conv", convolution},
    {"conv3d", "Conv", convolution},
    {"conv_transpose2d", "ConvTranspose", convolution},
    {"conv_transpose3d", "ConvTranspose", convolution},
    {"max_pool2d", NULL, write_max_pool2d},
    {"avg_pool2d", NULL, write_avg_pool2d},
    {"global_avg_pool2d", NULL, write_global_avg_pool2d},
    {"adaptive_avg_pool2d", NULL, write_adaptive_avg_pool2d},
    {NULL, NULL, NULL},
};
