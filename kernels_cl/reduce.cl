// SPDX-License-Identifier: Apache-2.0
// Sums and maxima over dimensions. On devices with lanes rows.cl does what it can of them.
//
//   reduce_plain   item (i, p) reduces chunk p of output i to out[i * chunks + p]; up to four dimensions are
//                  reduced, the chunk counts through them, and up to four are kept
//   reduce_rows    [rows, length] to [rows, chunks]: an item reduces a chunk of a row, or some whole rows
//   reduce_cols    [outer, length, inner] to [outer, chunks, inner]: an item reduces RED_WIDE columns over a
//                  chunk of length
//
// RED_MAX   1: the largest, NaN if there is one; 0: the sum divided by `divisor` (default 0)
// T_IN, T_OUT  how input and output are stored: float (default), f16 or bf16; between stages there are floats
// RED_VW    vector width of rows and cols: 2, 4, 8 or 16 (default 16)
//
// Rounding: a float sum of n numbers one by one is off by about sqrt(n) roundings, n at worst. Plain adds
// blocks of 64, rows 4 * RED_VW lanes, all in chunks; the order depends on sizes only.
#define T_IN float
#define T_OUT float
#define RED_MAX 0
#define RED_VW 16

#define RED_V PASTE(float, RED_VW)
#define RED_LOAD(p) VLOAD(T_IN, RED_VW, p)
#define RED_STORE(v, p) VSTORE(T_OUT, RED_VW, v, p)
#define RED_WIDE (4 * RED_VW)

// Scalars and vectors alike. A NaN in a or b is kept.
#if RED_MAX
#define RED_START (-INFINITY)
#define RED_JOIN(a, b) select((a), (b), ((b) > (a)) | ((b) != (b)))
#define RED_END(v) (v)
#else
#define RED_START 0.0f
#define RED_JOIN(a, b) ((a) + (b))
#define RED_END(v) ((v) / divisor)
#endif

kernel void KERNEL(reduce_plain)(global T_OUT *restrict out, const global T_IN *restrict in, int items,
                                 int count, int chunk, int chunks, int k1, int k2, int k3, int ks0, int ks1,
                                 int ks2, int ks3, int r1, int r2, int r3, int rs0, int rs1, int rs2, int rs3,
                                 float divisor) {
    const int id = get_global_id(0);
    if (id >= items) return;
    const int i = id / chunks, begin = (id % chunks) * chunk;
    const int n = count - begin > chunk ? chunk : count - begin;
    const int i3 = i % k3, i2 = i / k3 % k2, i1 = i / k3 / k2 % k1, i0 = i / k3 / k2 / k1;
    const global T_IN *from = in + i0 * ks0 + i1 * ks1 + i2 * ks2 + i3 * ks3;
    // one loop that counts in four dimensions: loop turns are scarce on some drivers
    int d = begin % r3, c = begin / r3 % r2, b = begin / r3 / r2 % r1, a = begin / r3 / r2 / r1;
    float block = RED_START, total = RED_START;
    for (int j = 0; j < n; j++) {
        const float v = LOAD(T_IN, from + a * rs0 + b * rs1 + c * rs2 + d * rs3);
        block = RED_JOIN(block, v);
        if (j % 64 == 63) {
            total = RED_JOIN(total, block);
            block = RED_START;
        }
        d++;
        if (d == r3) {
            d = 0;
            c++;
        }
        if (c == r2) {
            c = 0;
            b++;
        }
        if (b == r1) {
            b = 0;
            a++;
        }
    }
    total = RED_JOIN(total, block);
    STORE(T_OUT, RED_END(total), out + id);
}

// The lanes of a vector joined by halves.
float KERNEL(red_lanes)(RED_V v) {
#if RED_VW == 16
    const float8 v8 = RED_JOIN(v.lo, v.hi);
#elif RED_VW == 8
    const float8 v8 = v;
#endif
#if RED_VW >= 8
    const float4 v4 = RED_JOIN(v8.lo, v8.hi);
#elif RED_VW == 4
    const float4 v4 = v;
#endif
#if RED_VW >= 4
    const float2 v2 = RED_JOIN(v4.lo, v4.hi);
#else
    const float2 v2 = v;
#endif
    return RED_JOIN(v2.x, v2.y);
}

// Four vectors from p on to s0, s1, s2 and s3.
#define JOIN_FOUR(p)                                                                                         \
    const RED_V a = RED_LOAD(p), b = RED_LOAD(p + RED_VW);                                                   \
    const RED_V c = RED_LOAD(p + 2 * RED_VW), d = RED_LOAD(p + 3 * RED_VW);                                  \
    s0 = RED_JOIN(s0, a);                                                                                    \
    s1 = RED_JOIN(s1, b);                                                                                    \
    s2 = RED_JOIN(s2, c);                                                                                    \
    s3 = RED_JOIN(s3, d);
float KERNEL(red_run)(const global T_IN *from, int n) {
    RED_V s0 = (RED_V)(RED_START), s1 = s0, s2 = s0, s3 = s0;
    int j = 0;
    for (; n - j >= RED_WIDE; j += RED_WIDE) {
        JOIN_FOUR(from + j)
    }
    for (; n - j >= RED_VW; j += RED_VW) {
        const RED_V a = RED_LOAD(from + j);
        s0 = RED_JOIN(s0, a);
    }
    float tail = RED_START;
    for (; j < n; j++) tail = RED_JOIN(tail, LOAD(T_IN, from + j));
    s0 = RED_JOIN(s0, s1);
    s2 = RED_JOIN(s2, s3);
    s0 = RED_JOIN(s0, s2);
    const float lanes = KERNEL(red_lanes)(s0);
    return RED_JOIN(lanes, tail);
}

kernel void KERNEL(reduce_rows)(global T_OUT *restrict out, const global T_IN *restrict in, int rows,
                                int rows_per_item, int length, int chunk, int chunks, float divisor) {
    const int id = get_global_id(0);
    const int begin = (id % chunks) * chunk;
    const int n = length - begin > chunk ? chunk : length - begin;
    const int first = (id / chunks) * rows_per_item;
    if (first >= rows) return;
    const int last = rows - first > rows_per_item ? first + rows_per_item : rows;
    for (int r = first; r < last; r++) {
        const float v = KERNEL(red_run)(in + r * length + begin, n);
        STORE(T_OUT, RED_END(v), out + r * chunks + id % chunks);
    }
}

kernel void KERNEL(reduce_cols)(global T_OUT *restrict out, const global T_IN *restrict in, int items,
                                int length, int inner, int blocks, int chunk, int chunks, float divisor) {
    const int id = get_global_id(0);
    if (id >= items) return;
    const int part = id / blocks; // outer * chunks + chunk
    const int begin = (part % chunks) * chunk;
    const int n = length - begin > chunk ? chunk : length - begin;
    int i = (id % blocks) * RED_WIDE;
    const int end = inner - i > RED_WIDE ? i + RED_WIDE : inner;
    const global T_IN *from = in + (part / chunks * length + begin) * inner;
    global T_OUT *to = out + part * inner;
    if (end - i == RED_WIDE) {
        RED_V s0 = (RED_V)(RED_START), s1 = s0, s2 = s0, s3 = s0;
        for (int r = 0; r < n; r++) {
            const global T_IN *row = from + r * inner + i;
            JOIN_FOUR(row)
        }
        RED_STORE(RED_END(s0), to + i);
        RED_STORE(RED_END(s1), to + i + RED_VW);
        RED_STORE(RED_END(s2), to + i + 2 * RED_VW);
        RED_STORE(RED_END(s3), to + i + 3 * RED_VW);
        return;
    }
    for (; end - i >= RED_VW; i += RED_VW) {
        RED_V s = (RED_V)(RED_START);
        for (int r = 0; r < n; r++) {
            const RED_V a = RED_LOAD(from + r * inner + i);
            s = RED_JOIN(s, a);
        }
        RED_STORE(RED_END(s), to + i);
    }
    for (; i < end; i++) {
        float s = RED_START;
        for (int r = 0; r < n; r++) s = RED_JOIN(s, LOAD(T_IN, from + r * inner + i));
        STORE(T_OUT, RED_END(s), to + i);
    }
}
