// SPDX-License-Identifier: Apache-2.0
// Losses of classes, and the largest as one. Source: the operators of ONNX 1.23.
#include "onnx/import.h"

/** Is the label of x's class that of the row? [N, C, ...], i32. */
static clv_tensor *hot_of(clv__onnx_use *use, const clv_shape *x, clv_tensor *labels) {
    clv_shape one = *x;
    one.dims[1] = 1;
    return clv_eq(clv__onnx_reshape(labels, one.dims, one.rank),
                  clv__onnx_places(use, x->dims[1], 1, x->rank));
}

/** What each row counts: its class's weight, 0 where it is ignored. NULL: all count 1. */
static clv_tensor *weight_of(clv__onnx_use *use, const clv_shape *x, clv_tensor *hot, clv_tensor *labels) {
    const clv__onnx_attribute *ignored = clv__onnx_attribute_find(use->node, "ignore_index");
    clv_tensor *weight = clv__onnx_float(use, 2), *zero = clv__onnx_scalar(use, 0, true);
    const int axis = 1;
    if (weight) {
        clv_shape each = {.rank = x->rank - 1, .dims = {x->dims[1], 1, 1, 1, 1, 1, 1, 1}};
        weight = clv_where(hot, clv__onnx_reshape(weight, each.dims, each.rank), zero);
        weight = clv_sum(weight, &axis, 1, false);
    }
    if (!ignored) return weight;
    clv_tensor *out = clv__onnx_with(use, clv_eq, labels, (double)ignored->i);
    return clv_where(out, zero, weight ? weight : clv__onnx_scalar(use, 1, true));
}

/** The loss of logarithms of probabilities. */
static clv_tensor *nll(clv__onnx_use *use, clv_tensor *x) {
    const clv_shape shape = clv_tensor_shape(x), given = clv__onnx_shape(use, 1);
    const int axis = 1;
    if (shape.rank < 2 || given.rank != shape.rank - 1) {
        clv__onnx_fail(use, CLV_E_SHAPE, "labels of rank %d for scores of rank %d", given.rank, shape.rank);
        return NULL;
    }
    clv_tensor *labels = clv__onnx_i32(use, 1), *hot = hot_of(use, &shape, labels);
    clv_tensor *zero = clv__onnx_scalar(use, 0, true), *weight = weight_of(use, &shape, hot, labels);
    clv_tensor *loss = clv_neg(clv_sum(clv_where(hot, x, zero), &axis, 1, false));
    if (weight) loss = clv_mul(loss, weight);
    if (clv__onnx_word(use, "reduction", "none", false)) return loss;
    if (clv__onnx_word(use, "reduction", "sum", false)) return clv_sum(loss, NULL, 0, false);
    if (!weight) return clv_mean(loss, NULL, 0, false);
    weight = clv_broadcast_to(weight, clv_tensor_shape(loss));
    return clv_div(clv_sum(loss, NULL, 0, false), clv_sum(weight, NULL, 0, false));
}

static void build_nll(clv__onnx_use *use) {
    clv__onnx_give(use, 0, nll(use, clv__onnx_float(use, 0)));
}

static void build_softmax_cross_entropy(clv__onnx_use *use) {
    clv_tensor *x = clv__onnx_float(use, 0);
    const bool told = use->n_out > 1 && use->out[1];
    if (!told && !clv__onnx_has(use, 2) && !clv__onnx_attribute_find(use->node, "ignore_index") &&
        clv__onnx_word(use, "reduction", "mean", true)) {
        clv__onnx_give(use, 0, clv_cross_entropy(x, clv__onnx_i32(use, 1)));
        return;
    }
    clv_tensor *logs = clv_log_softmax(x, 1);
    clv__onnx_give(use, 0, nll(use, logs));
    clv__onnx_give(use, 1, logs);
}

/** 1 at the first of the largest, 0 elsewhere. */
static void build_hardmax(clv__onnx_use *use) {
    clv_shape given = clv__onnx_shape(use, 0), shape = given;
    int axis = clv__onnx_axis(use, clv__onnx_int(use, "axis", use->opset < 13 ? 1 : -1), given.rank);
    if (clv__onnx_failed(use)) return;
    if (use->opset < 13) { // older ones join what is from the axis on
        shape = (clv_shape){.rank = 2, .dims = {1, 1}};
        for (int d = 0; d < given.rank; d++) shape.dims[d >= axis] *= given.dims[d];
        axis = 1;
    }
    clv_tensor *most =
        clv_argmax(clv__onnx_reshape(clv__onnx_float(use, 0), shape.dims, shape.rank), axis, true);
    clv_tensor *y = clv_eq(most, clv__onnx_places(use, shape.dims[axis], axis, shape.rank));
    clv__onnx_give(use, 0, clv__onnx_reshape(clv__onnx_as_float(y), given.dims, given.rank));
}

const clv__onnx_row clv__onnx_losses[] = {
    {"Hardmax", .build = build_hardmax},
    {"NegativeLogLikelihoodLoss", .build = build_nll},
    {"SoftmaxCrossEntropyLoss", .build = build_softmax_cross_entropy},
    {0},
};
