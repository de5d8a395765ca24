// SPDX-License-Identifier: Apache-2.0
//
// The first k of each line of x [outer, V, inner] in order, and their places. Line l is (l / inner, l % inner). An element is a pair (key,
// place): keys are compared as whole numbers without a sign, then places, so no two are equal and any way of sorting is stable. Pairs lie in
// [lines][V]. A run of `length` places holds its first min(length, k) pairs in order, and what is behind them does not count.
//
//   sort_runs     item (line*runs + run): the pairs of a run of RUN elements, by insertion
//   sort_groups   the same by a group for each run of CHUNK elements, in local memory (Batcher 1968, bitonic sort)
//   sort_chunks   the same by an item for each run of `length` elements: if k is small, by keeping the first k so far, else runs of 16 by
//                 insertion, and then merged; `spare` is as long as the pairs
//   sort_merge    item (line, place of a run's pair): to its place in the run that it and its neighbour become. That is by how many pairs of
//                 the other come before it, found by halving
//   sort_store    item (line*k + j): y[j] and at[j] of the line's j-th pair
//
// Macros
//   T_X, T_Y   how x and y are stored: float, f16, bf16 or int; default float
//   WHOLE      1: elements are ints, 0: floats; default 0
//   CHUNK      elements of a group's run, a power of two, two for each item; default 1024

#define T_X float
#define T_Y float
#define WHOLE 0
#define CHUNK 1024
#define RUN 8

// Smaller numbers have smaller keys; a NaN has the largest, and both zeros the same. `largest`: the other way round.
#if WHOLE
uint KERNEL(sort_key)(int v, int largest) {
    const uint key = as_uint(v) ^ 0x80000000u;
    return largest ? ~key : key;
}
#else
uint KERNEL(sort_key)(float v, int largest) {
    const uint u = as_uint(v);
    uint key = u >> 31 ? ~u : u | 0x80000000u;
    if (v == 0.0f) key = 0x80000000u;
    if (isnan(v)) key = 0xffffffffu;
    return largest ? ~key : key;
}
#endif
#define PAIR(t)                                                                                              \
    (uint2)(KERNEL(sort_key)(LOAD(T_X, x + (((clv_offset)(line / inner) * V + (t)) * inner + line % inner)), \
                             largest),                                                                       \
            (uint)(t))
#define BEFORE(a, b) ((a).x < (b).x || ((a).x == (b).x && (a).y < (b).y))

__kernel void KERNEL(sort_runs)(__global uint2 *restrict pairs, __global const T_X *restrict x, int lines,
                                int V, int inner, int runs, int largest) {
    const int id = (int)get_global_id(0), line = id / runs, first = id % runs * RUN;
    const int n = min(RUN, V - first);
    if (line >= lines) return;
    __global uint2 *to = pairs + (clv_offset)line * V + first;
    for (int i = 0; i < n; i++) {
        const uint2 one = PAIR(first + i);
        int j = i;
        for (; j > 0 && BEFORE(one, to[j - 1]); j--) to[j] = to[j - 1];
        to[j] = one;
    }
}

__kernel __attribute__((reqd_work_group_size(CHUNK / 2, 1, 1))) void
KERNEL(sort_groups)(__global uint2 *restrict pairs, __global const T_X *restrict x, int V, int inner,
                    int runs, int largest, int k) {
    __local uint2 own[CHUNK];
    const int group = (int)get_group_id(0), id = (int)get_local_id(0), line = group / runs;
    const int first = group % runs * CHUNK, n = min(CHUNK, V - first);
    for (int i = id; i < CHUNK; i += CHUNK / 2) // what is beyond the line comes last
        own[i] = i < n ? PAIR(first + i) : (uint2)(0xffffffffu, 0xffffffffu);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int size = 2; size <= CHUNK; size *= 2)
        for (int apart = size / 2; apart > 0; apart /= 2) {
            const int low = id / apart * (2 * apart) + id % apart, high = low + apart;
            const uint2 a = own[low], b = own[high];
            if (BEFORE(b, a) == ((low & size) == 0)) {
                own[low] = b;
                own[high] = a;
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
    for (int i = id; i < min(n, k); i += CHUNK / 2) pairs[(clv_offset)line * V + first + i] = own[i];
}

__kernel void KERNEL(sort_chunks)(__global uint2 *restrict pairs, __global uint2 *restrict spare,
                                  __global const T_X *restrict x, int lines, int V, int inner, int runs,
                                  int length, int largest, int k, int keep) {
    const int id = (int)get_global_id(0), line = id / runs, first = id % runs * length;
    const int n = min(length, V - first);
    if (line >= lines) return;
    __global uint2 *to = pairs + (clv_offset)line * V + first, *from = spare + (clv_offset)line * V + first;
    if (keep) {
        int kept = 0;
        for (int i = 0; i < n; i++) {
            const uint2 one = PAIR(first + i);
            if (kept == k && !BEFORE(one, to[k - 1])) continue;
            int j = kept < k ? kept++ : k - 1;
            for (; j > 0 && BEFORE(one, to[j - 1]); j--) to[j] = to[j - 1];
            to[j] = one;
        }
        return;
    }
    // As many merges as there are, each from one buffer to the other, so that the last one ends in `pairs`.
    int merges = 0;
    for (int run = 16; run < n; run *= 2) merges++;
    __global uint2 *a = merges % 2 ? from : to, *b = merges % 2 ? to : from;
    for (int i = 0; i < n; i++) {
        const uint2 one = PAIR(first + i);
        int j = i;
        for (; j % 16 > 0 && BEFORE(one, a[j - 1]); j--) a[j] = a[j - 1];
        a[j] = one;
    }
    for (int run = 16; run < n; run *= 2) {
        for (int begin = 0; begin < n; begin += 2 * run) {
            const int middle = min(begin + run, n), end = min(begin + 2 * run, n);
            int i = begin, j = middle;
            for (int at = begin; at < end; at++) {
                const int left = j >= end || (i < middle && BEFORE(a[i], a[j]));
                b[at] = left ? a[i] : a[j];
                i += left;
                j += !left;
            }
        }
        __global uint2 *other = a;
        a = b;
        b = other;
    }
}

__kernel void KERNEL(sort_merge)(__global uint2 *restrict out, __global const uint2 *restrict in, int lines,
                                 int V, int runs, int length, int k) {
    const int most = min(length, k), id = (int)get_global_id(0), j = id % most, run = id / most % runs;
    const int line = id / most / runs, first = run * length;
    if (line >= lines || first + j >= V) return;
    in += (clv_offset)line * V;
    out += (clv_offset)line * V;
    const uint2 own = in[first + j];
    const int other = (run ^ 1) * length;
    int low = 0, high = min(most, max(V - other, 0));
    while (low < high) {
        const int middle = (low + high) / 2;
        const uint2 one = in[other + middle];
        if (BEFORE(one, own))
            low = middle + 1;
        else
            high = middle;
    }
    if (j + low < k) out[(run & ~1) * length + j + low] = own;
}

__kernel void KERNEL(sort_store)(__global T_Y *restrict y, __global int *restrict at,
                                 __global const T_X *restrict x, __global const uint2 *restrict pairs, int n,
                                 int V, int inner, int k) {
    const int id = (int)get_global_id(0), i = id % inner, j = id / inner % k, o = id / inner / k;
    if (id >= n) return;
    const int place = (int)pairs[((clv_offset)o * inner + i) * V + j].y;
    STORE(T_Y, LOAD(T_X, x + (((clv_offset)o * V + place) * inner + i)), y + id);
    at[id] = place;
}
