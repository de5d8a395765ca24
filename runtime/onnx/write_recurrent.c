// SPDX-License-Identifier: Apache-2.0
// Rows: recurrence as LSTM, GRU or RNN. Ours takes the product with the input weights as it is made, by a linear layer; ONNX's makes it
// itself. Where nobody else reads that product the layer is left out, and its weights become the node's; else they are the identity.
#include <stdlib.h>
#include <string.h>

#include "cleave/ops.h"
#include "onnx/writer.h"

#define NODE clv__writer_node_of

enum { Z, WEIGHT_HH, BIAS_HH, H0, C0, LENGTHS };

/** How a cell is named there, and which of our gates each of its gates is. */
static const struct kind {
    const char *onnx;
    int gates, order[4];
} kinds[] = {[CLV_CELL_LSTM] = {"LSTM", 4, {0, 3, 1, 2}},
             [CLV_CELL_GRU] = {"GRU", 3, {1, 0, 2}},
             [CLV_CELL_TANH] = {"RNN", 1, {0}},
             [CLV_CELL_RELU] = {"RNN", 1, {0}}};

bool clv__writer_feeds_recurrence(const clv_tensor *z) {
    const clv_graph *graph = z->graph;
    clv_node_info node;
    int readers = 0, recurrences = 0;
    if (!z->node || z->is_output || !clv_graph_node_get(graph, z->node->id, &node) ||
        strcmp(node.op, "linear") != 0)
        return false;
    for (int i = z->node->id + 1; clv_graph_node_get(graph, i, &node); i++)
        for (int k = 0; k < node.n_inputs; k++) {
            readers += node.inputs[k] == z;
            recurrences += k == Z && node.inputs[k] == z && !strcmp(node.op, "recurrence");
        }
    return readers == 1 && recurrences == 1;
}

/** [1, ...], for one direction. */
static const char *one_of(clv__onnx_writer *w, const char *value, const char *as) {
    return NODE(w, "Unsqueeze", as, value, clv__writer_list(w, (const int64_t[]){0}, 1));
}

/** Rows of gates in the order of ONNX. */
static const char *ordered(clv__onnx_writer *w, const struct kind *kind, const char *rows, int64_t H) {
    const char *parts[5] = {0};
    if (kind->gates == 1) return rows;
    for (int i = 0; i < kind->gates; i++) {
        const int64_t from = kind->order[i] * H, to = from + H, axis = 0;
        parts[i] = NODE(w, "Slice", NULL, rows, clv__writer_list(w, &from, 1), clv__writer_list(w, &to, 1),
                        clv__writer_list(w, &axis, 1));
    }
    clv__writer_begin(w, "Concat", parts);
    clv__writer_put_int(w, "axis", 0);
    return clv__writer_end(w, NULL);
}

/** n numbers that are 0, or, of a square, the identity. */
static const char *filled(clv__onnx_writer *w, int64_t n, bool identity) {
    const clv_shape shape = identity ? CLV_SHAPE(n, n) : CLV_SHAPE(n);
    float *values = clv__alloc((size_t)clv_shape_numel(&shape) + 1, sizeof *values);
    for (int64_t i = 0; values && identity && i < n; i++) values[i * n + i] = 1;
    if (!values) clv__writer_out_of_memory(w);
    const char *name = values ? clv__writer_constant(w, CLV_DTYPE_F32, &shape, values) : "";
    free(values);
    return name;
}

/** Both biases, one after the other; NULL: there is none. */
static const char *biases(clv__onnx_writer *w, const struct kind *kind, const char *ih, const char *hh,
                          int64_t H) {
    if (!ih && !hh) return "";
    const char *zeros = ih && hh ? NULL : filled(w, kind->gates * H, false);
    clv__writer_begin(w, "Concat",
                      (const char *const[]){ih ? ordered(w, kind, ih, H) : zeros,
                                            hh ? ordered(w, kind, hh, H) : zeros, NULL});
    clv__writer_put_int(w, "axis", 0);
    return one_of(w, clv__writer_end(w, NULL), NULL);
}

/** The node has put its values under names; the direction is taken off. */
static void take_result(clv__onnx_writer *w, int i, const char *value, int64_t axis) {
    NODE(w, "Squeeze", clv__writer_result_of(w, i), value, clv__writer_list(w, &axis, 1));
}

static void write_recurrence(clv__onnx_writer *w) {
    const clv_tensor *z = w->node.inputs[Z];
    const struct kind *kind = &kinds[(int)clv__writer_number(w, "cell")];
    const int64_t H = clv__writer_in_shape(w, WEIGHT_HH)->dims[1];
    const bool lstm = kind->gates == 4, reverse = clv__writer_number(w, "reverse") != 0;
    const char *x, *weight, *bias = NULL;
    if (clv__writer_feeds_recurrence(z)) {
        x = clv__writer_name_of(w, z->node->in[0]);
        weight = clv__writer_name_of(w, z->node->in[1]);
        if (z->node->io.n_in > 2) bias = clv__writer_name_of(w, z->node->in[2]);
    } else {
        x = clv__writer_in(w, Z);
        weight = filled(w, kind->gates * H, true);
    }
    const char *b = biases(w, kind, bias, clv__writer_in(w, BIAS_HH), H);
    const char *W = one_of(w, ordered(w, kind, weight, H), NULL);
    const char *R = one_of(w, ordered(w, kind, clv__writer_in(w, WEIGHT_HH), H), NULL);
    const char *lengths = clv__writer_in(w, LENGTHS), *h0 = clv__writer_in(w, H0),
               *c0 = clv__writer_in(w, C0);
    lengths = lengths ? clv__writer_cast(w, lengths, CLV__ONNX_INT32, NULL) : "";
    h0 = h0 ? one_of(w, h0, NULL) : "";
    c0 = c0 ? one_of(w, c0, NULL) : "";
    clv__writer_begin(w, kind->onnx, (const char *const[]){x, W, R, b, lengths, h0, lstm ? c0 : NULL, NULL});
    clv__writer_put_int(w, "hidden_size", H);
    clv__writer_put_text(w, "direction", reverse ? "reverse" : "forward");
    if (!strcmp(kind->onnx, "GRU")) clv__writer_put_int(w, "linear_before_reset", 1);
    if (clv__writer_number(w, "cell") == CLV_CELL_RELU) clv__writer_put_texts(w, "activations", "Relu");
    const char *y = clv__writer_also(w), *h = clv__writer_also(w), *c = lstm ? clv__writer_also(w) : NULL;
    clv__writer_end_with(w, (const char *const[]){y, h, c, NULL});
    take_result(w, 0, y, 1);
    take_result(w, 1, h, 0);
    if (lstm) take_result(w, 2, c, 0);
}

const clv__onnx_write_row clv__onnx_write_recurrent[] = {
    {"recurrence", NULL, write_recurrence},
    {NULL, NULL, NULL},
};
