// SPDX-License-Identifier: Apache-2.0
// Causal attention of one more token of N sequences, with a cache of the keys and values of those before it. x is [N, (H+2*K)*E]: the
// token's query, H heads of E columns each, and its key and value, K heads of them. keys and values are [N, T, K*E]; their row position[0]
// is written by the first of the H/K heads of queries that share it; all read that row where it is in x. Of each head,
//
//     y = softmax(scale * q . keys[t]) values[t]     over t <= position[0]
//
// A position outside of 0 ... T - 1 makes NaNs, and the caches stay.
//
// Softmax is done in one pass: of the rows so far there are the largest score, and sums relative to it (Milakov, Gimelshein 2018,
// arXiv:1805.02867, algorithm 3). A head reads no row that another one writes.
//
//   attention_step           one work-item per head, n of them, any work-group; sums stay in y
//   attention_step_vectors   the same for wide vectors: a head is VECTORS vectors of W, and sums stay in registers
//   attention_step_group     for lanes: a group of GROUP items a head, get_group_id(0). GROUP rows at a time: an item makes the
//                            score of a row, and then sums EACH columns that are GROUP apart. E is at most GROUP*EACH
//
// W, VECTORS   4 (default), 8 or 16; E / W, default 1
// GROUP, EACH  GROUP a power of two; default 64, 1
// T_X          how x is stored: float (default), f16 or bf16
#define T_X float
#define W 4
#define VECTORS 1
#define GROUP 64
#define EACH 1

#define FLOATS PASTE(float, W)
#define VREAD(from) PASTE(vload, W)(0, from)
#define VWRITE(v, to) PASTE(vstore, W)(v, 0, to)

// Where head i of queries begins in x, how far behind are its key and its value, and where its head of keys begins in both caches.
#define HEAD_OF_X(i) ((i) / H * (H + 2 * K) * E + (i) % H * E)
#define TO_KEY(i) ((H - (i) % H + (i) % H / (H / K)) * E)
#define TO_VALUE(i) (TO_KEY(i) + K * E)
#define HEAD_OF_CACHE(i) ((i) / H * T * K * E + (i) % H / (H / K) * E)
#define WRITES(i) ((i) % H % (H / K) == 0)

__kernel void KERNEL(attention_step)(__global float *restrict y, __global const T_X *restrict x,
                                     __global float *restrict keys, __global float *restrict values,
                                     __global const int *restrict position, int n, int H, int K, int T,
                                     int E, float scale) {
    const int i = (int)get_global_id(0), D = K * E, last = position[0];
    if (i >= n) return;
    __global const T_X *q = x + HEAD_OF_X(i);
    __global float *k = keys + HEAD_OF_CACHE(i), *v = values + HEAD_OF_CACHE(i), *to = y + i * E;
    float largest = -INFINITY, sum = 0.0f;
    if (last < 0 || last >= T) {
        for (int e = 0; e < E; e++) to[e] = NAN;
        return;
    }
    for (int e = 0; e < E; e++) {
        if (WRITES(i)) {
            k[last * D + e] = LOAD(T_X, q + TO_KEY(i) + e);
            v[last * D + e] = LOAD(T_X, q + TO_VALUE(i) + e);
        }
        to[e] = 0.0f;
    }
    for (int t = 0; t <= last; t++) {
        float score = 0.0f;
        for (int e = 0; e < E; e++)
            score = fma(LOAD(T_X, q + e), t < last ? k[t * D + e] : LOAD(T_X, q + TO_KEY(i) + e), score);
        score *= scale;
        const float next = fmax(largest, score), keep = exp(largest - next), weight = exp(score - next);
        sum = fma(sum, keep, weight);
        for (int e = 0; e < E; e++)
            to[e] = fma(to[e], keep, weight * (t < last ? v[t * D + e] : LOAD(T_X, q + TO_VALUE(i) + e)));
        largest = next;
    }
    for (int e = 0; e < E; e++) to[e] /= sum;
}

float KERNEL(attention_step_sum)(FLOATS v) {
#if W == 16
    const float8 h = v.lo + v.hi;
    const float4 f = h.lo + h.hi;
#elif W == 8
    const float4 f = v.lo + v.hi;
#else
    const float4 f = v;
#endif
    return (f.x + f.z) + (f.y + f.w);
}

__kernel void KERNEL(attention_step_vectors)(__global float *restrict y, __global const T_X *restrict x,
                                             __global float *restrict keys, __global float *restrict values,
                                             __global const int *restrict position, int n, int H, int K,
                                             int T, int E, float scale) {
    const int i = (int)get_global_id(0), D = K * E, last = position[0];
    if (i >= n) return;
    __global const T_X *from = x + HEAD_OF_X(i);
    __global float *k = keys + HEAD_OF_CACHE(i), *v = values + HEAD_OF_CACHE(i), *to = y + i * E;
    FLOATS q[VECTORS], sums[VECTORS];
    float largest = -INFINITY, sum = 0.0f;
    if (last < 0 || last >= T) {
        for (int e = 0; e < E; e++) to[e] = NAN;
        return;
    }
    for (int j = 0; j < VECTORS; j++) {
        q[j] = VLOAD(T_X, W, from + j * W) * scale;
        sums[j] = (FLOATS)(0.0f);
        if (WRITES(i)) {
            VWRITE(VLOAD(T_X, W, from + TO_KEY(i) + j * W), k + last * D + j * W);
            VWRITE(VLOAD(T_X, W, from + TO_VALUE(i) + j * W), v + last * D + j * W);
        }
    }
    for (int t = 0; t <= last; t++) {
        FLOATS products = (FLOATS)(0.0f);
        for (int j = 0; j < VECTORS; j++)
            products = fma(q[j],
                           t < last ? VREAD(k + t * D + j * W) : VLOAD(T_X, W, from + TO_KEY(i) + j * W),
                           products);
        const float score = KERNEL(attention_step_sum)(products);
        const float next = fmax(largest, score), keep = exp(largest - next), weight = exp(score - next);
        sum = fma(sum, keep, weight);
        for (int j = 0; j < VECTORS; j++)
            sums[j] = fma(sums[j], keep,
                          weight * (t < last ? VREAD(v + t * D + j * W)
                                             : VLOAD(T_X, W, from + TO_VALUE(i) + j * W)));
        largest = next;
    }
    for (int j = 0; j < VECTORS; j++) VWRITE(sums[j] / sum, to + j * W);
}

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
KERNEL(attention_step_group)(__global float *restrict y, __global const T_X *restrict x,
                             __global float *restrict keys, __global float *restrict values,
                             __global const int *restrict position, int H, int K, int T, int E,
                             float scale) {
    __local float q[GROUP * EACH], weights[GROUP], tree[GROUP];
    const int id = (int)get_local_id(0), i = (int)get_group_id(0), D = K * E, last = position[0];
    __global const T_X *from = x + HEAD_OF_X(i);
    __global float *k = keys + HEAD_OF_CACHE(i), *v = values + HEAD_OF_CACHE(i), *to = y + i * E;
    const bool inside = last >= 0 && last < T;
    float sums[EACH], largest = -INFINITY, sum = 0.0f;
    for (int j = 0, e = id; j < EACH; j++, e += GROUP) {
        sums[j] = inside ? 0.0f : NAN;
        if (e < E && inside) {
            q[e] = LOAD(T_X, from + e) * scale;
            if (WRITES(i)) {
                k[last * D + e] = LOAD(T_X, from + TO_KEY(i) + e);
                v[last * D + e] = LOAD(T_X, from + TO_VALUE(i) + e);
            }
        }
    }
    for (int first = 0; inside && first <= last; first += GROUP) {
        const int t = first + id, rows = min(GROUP, last + 1 - first);
        float score = t <= last ? 0.0f : -INFINITY;
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE); // what the group wrote, and read, before
        for (int e = 0; e < E && t <= last; e++)
            score = fma(q[e], t < last ? k[t * D + e] : LOAD(T_X, from + TO_KEY(i) + e), score);
        GROUP_TREE(id, GROUP, tree[id] = score, tree[id] = fmax(tree[id], tree[id + apart]))
        const float next = fmax(largest, tree[0]), keep = exp(largest - next);
        weights[id] = t <= last ? exp(score - next) : 0.0f;
        barrier(CLK_LOCAL_MEM_FENCE);
        GROUP_TREE(id, GROUP, tree[id] = weights[id], tree[id] += tree[id + apart])
        sum = fma(sum, keep, tree[0]);
        largest = next;
        for (int j = 0, e = id; j < EACH; j++, e += GROUP) {
            float total = 0.0f;
            for (int s = 0; s < rows && e < E; s++)
                total = fma(weights[s],
                            first + s < last ? v[(first + s) * D + e] : LOAD(T_X, from + TO_VALUE(i) + e),
                            total);
            sums[j] = fma(sums[j], keep, total);
        }
    }
    for (int j = 0, e = id; j < EACH; j++, e += GROUP)
        if (e < E) to[e] = sums[j] / sum;
}
