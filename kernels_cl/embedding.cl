// SPDX-License-Identifier: Apache-2.0
// Rows of a table by index: weight is [V, D], n_rows indices. An index outside 0 .. V-1 gives NaN, and no gradient.
//
//   embedding                 one work-item per element of the result
//   embedding_backward        one per element of dweight: the sum of dy's rows first .. last-1 whose index is its row's, in
//                             their order; begin 0 adds to what is there
//   embedding_rows            each work-item copies `rows` rows
//   embedding_rows_backward   one work-item per row of dweight, sixteen elements at a time
//   embedding_order           groups of 256: the indices first .. first+n-1, with where they stand, by value and then by place
//   embedding_ordered         of those in order: one work-item per element of dy. That of the first of each value adds up dy's rows
//                             of all of them, in their order; rows of dweight without an index are left as they are
//
// T   of embedding and embedding_ordered: what tensors have D of, float (default) or float4
#define T float

__kernel void KERNEL(embedding)(__global T *restrict y, __global const T *restrict weight,
                                __global const int *restrict index, int n, int V, int D) {
    int i = (int)get_global_id(0);
    if (i >= n) return;
    int v = index[i / D];
    y[i] = v >= 0 && v < V ? weight[v * D + i % D] : (T)(NAN);
}

__kernel void KERNEL(embedding_backward)(__global float *restrict dweight, __global const float *restrict dy,
                                         __global const int *restrict index, int n, int D, int first, int last,
                                         int begin) {
    int i = (int)get_global_id(0);
    if (i >= n) return;
    int v = i / D, d = i % D;
    float sum = begin ? 0.0f : dweight[i];
    for (int r = first; r < last; r++)
        if (index[r] == v) sum += dy[r * D + d];
    dweight[i] = sum;
}

// ---- for devices with wide vectors ----

__kernel void KERNEL(embedding_rows)(__global float *restrict y, __global const float *restrict weight,
                                     __global const int *restrict index, int n_rows, int rows, int V, int D) {
    int first = (int)get_global_id(0) * rows, last = min(first + rows, n_rows);
    for (int r = first; r < last; r++) {
        int v = index[r], known = v >= 0 && v < V, d = 0;
        __global const float *from = weight + (known ? v * D : 0);
        __global float *to = y + r * D;
        for (; d + 16 <= D; d += 16) vstore16(known ? vload16(0, from + d) : (float16)(NAN), 0, to + d);
        for (; d < D; d++) to[d] = known ? from[d] : NAN;
    }
}

__kernel void KERNEL(embedding_rows_backward)(__global float *restrict dweight, __global const float *restrict dy,
                                              __global const int *restrict index, int V, int D, int first, int last,
                                              int begin) {
    int v = (int)get_global_id(0);
    if (v >= V) return;
    __global float *to = dweight + v * D;
    if (begin)
        for (int d = 0; d < D; d++) to[d] = 0.0f;
    for (int r = first; r < last; r++) {
        if (r + 16 <= last && !any(vload16(0, index + r) == v)) {
            r += 15;
            continue;
        }
        if (index[r] != v) continue;
        __global const float *from = dy + r * D;
        int d = 0;
        for (; d + 16 <= D; d += 16) vstore16(vload16(0, to + d) + vload16(0, from + d), 0, to + d);
        for (; d < D; d++) to[d] += from[d];
    }
}

// ---- for devices with lanes ----

// A work-item counts who comes before its index.
__kernel void KERNEL(embedding_order)(__global int2 *restrict order, __global const int *restrict index, int first,
                                      int n) {
    __local int tile[256];
    int id = (int)get_local_id(0), r = (int)get_global_id(0), v = r < n ? index[first + r] : 0;
    int before = 0;
    for (int from = 0; from < n; from += 256) {
        barrier(CLK_LOCAL_MEM_FENCE);
        tile[id] = from + id < n ? index[first + from + id] : INT_MAX;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < 256; k++) before += tile[k] < v || (tile[k] == v && from + k < r);
    }
    if (r < n) order[before] = (int2)(v, first + r);
}

__kernel void KERNEL(embedding_ordered)(__global T *restrict dweight, __global const T *restrict dy,
                                        __global const int2 *restrict order, int n, int V, int D, int begin) {
    int i = (int)get_global_id(0), k = i / D, d = i % D;
    if (k >= n) return;
    int2 at = order[k];
    int v = at.x;
    if (v < 0 || v >= V || (k > 0 && order[k - 1].x == v)) return;
    T sum = begin ? (T)(0.0f) : dweight[v * D + d];
    for (; k < n; k++) {
        at = order[k];
        if (at.x != v) break;
        sum += dy[at.y * D + d];
    }
    dweight[v * D + d] = sum;
}
