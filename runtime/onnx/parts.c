// SPDX-License-Identifier: Apache-2.0
// What rows are made of.
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"
#include "onnx/import.h"

clv_tensor *clv__onnx_as_float(clv_tensor *x) {
    return x && !clv__onnx_tensor_is_float(x) ? clv_cast(x, CLV_DTYPE_F32) : x;
}

clv_tensor *clv__onnx_as_i32(clv_tensor *x) {
    return x && clv__onnx_tensor_is_float(x) ? clv_cast(x, CLV_DTYPE_I32) : x;
}

clv_tensor *clv__onnx_as_given(const clv__onnx_use *use, clv_tensor *x) {
    return clv__onnx_of_floats(use) ? x : clv__onnx_as_i32(x);
}

clv_tensor *clv__onnx_scalar(clv__onnx_use *use, double value, bool is_float) {
    return clv_full(use->graph, is_float ? CLV_DTYPE_F32 : CLV_DTYPE_I32, (clv_shape){0}, (float)value);
}

clv_tensor *clv__onnx_constant(clv__onnx_use *use, const clv__known *known) {
    const int64_t n = clv_shape_numel(&known->shape);
    const bool is_float = clv__onnx_is_float(known->type);
    void *data = clv__arena_alloc(&use->graph->arena, (size_t)n + 1, 4);
    if (!data) {
        clv__onnx_fail(use, CLV_E_HOST_MEMORY, "no memory for %lld numbers", (long long)n);
        return NULL;
    }
    for (int64_t i = 0; i < n; i++) {
        const double value = known->v[i];
        if (is_float)
            ((float *)data)[i] = (float)value;
        else // what is past the ends of i32 stands for an end
            ((int32_t *)data)[i] = value >= 2147483647.0    ? INT32_MAX
                                   : value <= -2147483648.0 ? INT32_MIN
                                                            : (int32_t)value;
    }
    return clv_constant(use->graph, is_float ? CLV_DTYPE_F32 : CLV_DTYPE_I32, known->shape, data);
}

clv_tensor *clv__onnx_reshape(clv_tensor *x, const int64_t *dims, int rank) {
    if (!x) return NULL;
    clv_shape shape = {.rank = rank}, now = clv_tensor_shape(x);
    memcpy(shape.dims, dims, (size_t)rank * sizeof *dims);
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
