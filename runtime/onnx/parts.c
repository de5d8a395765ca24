// SPDX-License-Identifier: Apache-2.0
// What rows are made of.
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"
#include "onnx/import.h"

clv_tensor *clv__onnx_as_given(const clv__onnx_use *use, clv_tensor *x) {
    return clv__onnx_of_floats(use) ? x : clv__onnx_as_i32(x);
}

clv_tensor *clv__onnx_scalar(clv__onnx_use *use, double value, bool is_float) {
    return clv_full(use->graph, is_float ? CLV_DTYPE_F32 : CLV_DTYPE_I32, (clv_shape){0}, (float)value);
}

clv_tensor *clv__onnx_reshape(clv_tensor *x, const int64_t *dims, int rank) {
    if (!x) return NULL;
    clv_shape shape = {.rank = rank}, now = clv_tensor_shape(x);
    if (rank) memcpy(shape.dims, dims, (size_t)rank * sizeof *dims);
    return clv_shape_equal(&now, &shape) ? x : clv_reshape(x, shape);
}

clv_tensor *clv__onnx_permute(clv_tensor *x, const int *axes, int rank) {
    bool same = true;
    for (int i = 0; i < rank; i++) same = same && axes[i] == i;
    return same ? x : clv_permute(x, axes, rank);
}

clv_tensor *clv__onnx_part(clv_tensor *x, int axis, int64_t start, int64_t length) {
    const clv_shape shape = clv_tensor_shape(x);
    return !x || (start == 0 && length == shape.dims[axis]) ? x : clv_slice(x, axis, start, length);
}

/** As much of one value beside x along an axis. */
static clv_tensor *filled(clv__onnx_use *use, clv_tensor *x, int axis, int64_t length, double value) {
    clv_shape shape = clv_tensor_shape(x);
    shape.dims[axis] = length;
    return clv_full(use->graph, clv__onnx_tensor_is_float(x) ? CLV_DTYPE_F32 : CLV_DTYPE_I32, shape,
                    (float)value);
}

clv_tensor *clv__onnx_pad(clv__onnx_use *use, clv_tensor *x, const int64_t *before, const int64_t *after,
                          double value) {
    for (int d = 0; x && d < clv_tensor_shape(x).rank; d++) {
        const int64_t cut = (before[d] < 0 ? before[d] : 0) + (after[d] < 0 ? after[d] : 0);
        if (cut) x = clv__onnx_part(x, d, before[d] < 0 ? -before[d] : 0, clv_tensor_shape(x).dims[d] + cut);
        clv_tensor *parts[3];
        int n = 0;
        if (before[d] > 0) parts[n++] = filled(use, x, d, before[d], value);
        parts[n++] = x;
        if (after[d] > 0) parts[n++] = filled(use, x, d, after[d], value);
        if (n > 1) x = clv_concat(parts, n, d);
    }
    return x;
}

clv_tensor *clv__onnx_rows(clv_tensor *x, int axis, clv_tensor *index) {
    if (!x || !index) return NULL;
    const clv_shape from = clv_tensor_shape(x), at = clv_tensor_shape(index);
    const bool is_float = clv__onnx_tensor_is_float(x);
    int axes[CLV_MAX_RANK], n = 0;
    axes[n++] = axis;
    for (int d = 0; d < from.rank; d++)
        if (d != axis) axes[n++] = d;
    clv_tensor *rows = clv__onnx_permute(clv__onnx_as_float(x), axes, n);
    const int64_t numel = clv_shape_numel(&from), size = from.dims[axis], width = size ? numel / size : 0,
                  n_index = clv_shape_numel(&at);
    rows = clv__onnx_reshape(rows, (int64_t[]){size, width}, 2);
    rows = clv_embedding(rows, clv__onnx_reshape(index, &n_index, 1));
    int64_t dims[2 * CLV_MAX_RANK];
    int rank = 0, back[2 * CLV_MAX_RANK], to = 0;
    for (int d = 0; d < at.rank; d++) dims[rank++] = at.dims[d];
    for (int d = 0; d < from.rank; d++)
        if (d != axis) dims[rank++] = from.dims[d];
    for (int d = 0; d < axis; d++) back[to++] = at.rank + d;
    for (int d = 0; d < at.rank; d++) back[to++] = d;
    for (int d = axis; d < from.rank - 1; d++) back[to++] = at.rank + d;
    clv_tensor *y = clv__onnx_permute(clv__onnx_reshape(rows, dims, rank), back, rank);
    return is_float ? y : clv__onnx_as_i32(y);
}

clv_tensor *clv__onnx_pick(clv__onnx_use *use, clv_tensor *x, int axis, const int64_t *index, int64_t n) {
    clv__known *known = clv__onnx_new_known(use, CLV__ONNX_INT64, CLV_SHAPE(n));
    for (int64_t i = 0; known && i < n; i++) known->v[i] = (double)index[i];
    return known ? clv__onnx_rows(x, axis, clv__onnx_constant(use, known)) : NULL;
}

// ---- used by several families -----------------------------------------------------------------------------

clv_tensor *clv__onnx_with(clv__onnx_use *use, clv_tensor *(*of)(clv_tensor *, clv_tensor *), clv_tensor *x,
                           double value) {
    return x ? of(x, clv__onnx_scalar(use, value, clv__onnx_tensor_is_float(x))) : NULL;
}

clv_tensor *clv__onnx_along(clv__onnx_use *use, clv_tensor *x, int axis, const clv__known *table) {
    const clv_shape shape = clv_tensor_shape(x);
    int axes[CLV_MAX_RANK], back[CLV_MAX_RANK], n = 0;
    if (!x || !table) return NULL;
    for (int d = 0; d < shape.rank; d++)
        if (d != axis) axes[n++] = d;
    axes[n++] = axis;
    for (int i = 0; i < n; i++) back[axes[i]] = i;
    clv_tensor *y = clv__onnx_permute(clv__onnx_as_float(x), axes, n);
    return clv__onnx_permute(clv_matmul(y, clv__onnx_constant(use, table)), back, n);
}

clv_tensor *clv__onnx_places(clv__onnx_use *use, int64_t n, int axis, int rank) {
    clv_shape shape = {.rank = rank};
    for (int d = 0; d < rank; d++) shape.dims[d] = d == axis ? n : 1;
    clv__known *places = clv__onnx_new_known(use, CLV__ONNX_INT32, shape);
    for (int64_t i = 0; places && i < n; i++) places->v[i] = (double)i;
    return places ? clv__onnx_constant(use, places) : NULL;
}

clv_tensor *clv__onnx_wrapped(clv__onnx_use *use, clv_tensor *index, int64_t size) {
    clv_tensor *end = clv__onnx_scalar(use, (double)size, false);
    return index ? clv_where(clv__onnx_with(use, clv_lt, index, 0), clv_add(index, end), index) : NULL;
}

clv_tensor *clv__onnx_flat(clv_tensor *x) {
    const clv_shape shape = clv_tensor_shape(x);
    const int64_t n = clv_shape_numel(&shape);
    return clv__onnx_reshape(x, &n, 1);
}
