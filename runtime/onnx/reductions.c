// SPDX-License-Identifier: Apache-2.0
// Nodes that reduce axes.
#include <math.h>

#include "onnx/import.h"
#include "onnx/shapes.h"

typedef clv_tensor *reduction(clv_tensor *x, const int *axes, int n, bool keep);

static clv_tensor *smallest(clv_tensor *x, const int *axes, int n, bool keep) {
    return clv_neg(clv_max(clv_neg(x), axes, n, keep));
}

static clv_tensor *sum_of_squares(clv_tensor *x, const int *axes, int n, bool keep) {
    return clv_sum(clv_square(x), axes, n, keep);
}

static clv_tensor *sum_of_sizes(clv_tensor *x, const int *axes, int n, bool keep) {
    return clv_sum(clv_abs(x), axes, n, keep);
}

static clv_tensor *length(clv_tensor *x, const int *axes, int n, bool keep) {
    return clv_vector_norm(x, 2, axes, n, keep);
}

static clv_tensor *log_of_sum(clv_tensor *x, const int *axes, int n, bool keep) {
    return clv_log(clv_sum(x, axes, n, keep));
}

/** The largest is taken away before the exponential. */
static clv_tensor *log_sum_exp(clv_tensor *x, const int *axes, int n, bool keep) {
    clv_tensor *most = clv_detach(clv_max(x, axes, n, true));
    clv_tensor *y = clv_log(clv_sum(clv_exp(clv_sub(x, most)), axes, n, keep));
    const clv_shape shape = clv_tensor_shape(y);
    return clv_add(y, clv__onnx_reshape(most, shape.dims, shape.rank));
}

/** Which they are, by use->row->which. */
static reduction *const reductions[] = {clv_sum,        clv_mean,     clv_max, smallest,   clv_prod,
                                        sum_of_squares, sum_of_sizes, length,  log_of_sum, log_sum_exp};

static void build_reduce(clv__onnx_use *use) {
    reduction *of = reductions[use->row->which];
    const int rank = clv__onnx_shape(use, 0).rank;
    bool reduced[CLV_MAX_RANK];
    int axes[CLV_MAX_RANK], n = 0;
    if (!clv__onnx_reduced(use, rank, reduced)) return;
    for (int d = 0; d < rank; d++)
        if (reduced[d]) axes[n++] = d;
    clv_tensor *x = clv__onnx_float(use, 0);
    const bool keep = clv__onnx_int(use, "keepdims", 1) != 0;
    if (!n) { // of no axes an op of ours reduces all: one of a number alone instead
        const clv_shape shape = clv_tensor_shape(x);
        int64_t dims[CLV_MAX_RANK];
        if (rank == CLV_MAX_RANK || !x) return;
        for (int d = 0; d < rank; d++) dims[d] = shape.dims[d];
        dims[rank] = 1;
        clv_tensor *y = of(clv__onnx_reshape(x, dims, rank + 1), &rank, 1, false);
        clv__onnx_give(use, 0, clv__onnx_as_given(use, y));
        return;
    }
    clv__onnx_give(use, 0, clv__onnx_as_given(use, of(x, axes, n, keep)));
}

/** The place of the largest, the last of equals by turning the axis round; of the smallest that of -x. */
static void build_argmax(clv__onnx_use *use) {
    const clv_shape shape = clv__onnx_shape(use, 0);
    const int axis = clv__onnx_axis(use, clv__onnx_int(use, "axis", 0), shape.rank);
    const bool keep = clv__onnx_int(use, "keepdims", 1) != 0,
               last = clv__onnx_int(use, "select_last_index", 0) != 0;
    clv_tensor *x = clv__onnx_float(use, 0);
    if (use->row->which) x = clv_neg(x);
    if (last) {
        const int64_t n = shape.dims[axis];
        clv__known *back = clv__onnx_new_known(use, CLV__ONNX_INT64, CLV_SHAPE(n));
        for (int64_t i = 0; back && i < n; i++) back->v[i] = (double)(n - 1 - i);
        x = back ? clv__onnx_rows(x, axis, clv__onnx_constant(use, back)) : NULL;
    }
    clv_tensor *y = clv_argmax(x, axis, keep);
    if (last) y = clv_sub(clv__onnx_scalar(use, (double)shape.dims[axis] - 1, false), y);
    clv__onnx_give_type(use, 0, y, CLV__ONNX_INT64);
}

const clv__onnx_row clv__onnx_reductions[] = {
    {"ArgMax", .build = build_argmax},
    {"ArgMin", build_argmax, .which = 1},
    {"ReduceL1", build_reduce, .which = 6},
    {"ReduceL2", build_reduce, .which = 7},
    {"ReduceLogSum", build_reduce, .which = 8},
    {"ReduceLogSumExp", build_reduce, .which = 9},
    {"ReduceMax", build_reduce, .which = 2},
    {"ReduceMean", build_reduce, .which = 1},
    {"ReduceMin", build_reduce, .which = 3},
    {"ReduceProd", build_reduce, .which = 4},
    {"ReduceSum", build_reduce, .which = 0},
    {"ReduceSumSquare", build_reduce, .which = 5},
    {0},
};
