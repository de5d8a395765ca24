// SPDX-License-Identifier: Apache-2.0
// Softmax of attention scores whose future is hidden. x is [n_rows / T, T, S]; row r has the query t = r % T, which sees the
// first min(S, t + 1 + S - T) of its S keys (none, if that is below 1). What it does not see is never read and gives 0.
//
//     y = softmax(scale * x) of what is seen            dx = scale * y * (dy - sum(dy * y))
//
//   causal_softmax           one work-item per row, any work-group
//   causal_softmax_backward
//   causal_softmax_rows      for wide vectors: each work-item does `rows` rows, sixteen elements at a time. The last vector of
//   causal_softmax_rows_backward   what is seen has lanes of what is not, as long as the row reaches so far.
//   causal_softmax_group            for lanes: a group of GROUP items a row, r = get_group_id(0). An item holds the
//   causal_softmax_group_backward   EACH elements of its row that are GROUP apart, so that x, or dy and y, are read
//                                   once. S is at most GROUP*EACH
//
// GROUP, EACH   powers of two; default 64, 1
// T_X, T_DX  how x and dx are stored: float (default), f16 or bf16; y and dy are floats
#define T_X float
#define T_DX float
#define GROUP 64
#define EACH 1

#define SEEN(r) clamp((r) % T + 1 + S - T, 0, S)

__kernel void KERNEL(causal_softmax)(__global float *restrict y, __global const T_X *restrict x, int n_rows,
                                     int T, int S, float scale) {
    int r = (int)get_global_id(0);
    if (r >= n_rows) return;
    int base = r * S, seen = SEEN(r);
    float largest = -INFINITY, sum = 0.0f;
    for (int s = 0; s < seen; s++) largest = fmax(largest, LOAD(T_X, x + base + s) * scale);
    for (int s = 0; s < seen; s++) sum += exp(LOAD(T_X, x + base + s) * scale - largest);
    float part = 1.0f / sum;
    for (int s = 0; s < S; s++)
        y[base + s] = s < seen ? exp(LOAD(T_X, x + base + s) * scale - largest) * part : 0.0f;
}

__kernel void KERNEL(causal_softmax_backward)(__global T_DX *restrict dx, __global const float *restrict dy,
                                              __global const float *restrict y, int n_rows, int T, int S,
                                              float scale) {
    int r = (int)get_global_id(0);
    if (r >= n_rows) return;
    int base = r * S, seen = SEEN(r);
    float sum = 0.0f;
    for (int s = 0; s < seen; s++) sum += dy[base + s] * y[base + s];
    for (int s = 0; s < S; s++)
        STORE(T_DX, s < seen ? scale * y[base + s] * (dy[base + s] - sum) : 0.0f, dx + base + s);
}

// ---- for devices with lanes ----

#define PLUS(a, b) ((a) + (b))
// `value` of all items by op, as a tree.
#define TOGETHER(value, op)                                                                                  \
    GROUP_TREE(id, GROUP, parts[id] = value, parts[id] = op(parts[id], parts[id + apart])) value = parts[0];
#define EACH_ELEMENT _Pragma("unroll") for (int j = 0, s = id; j < EACH; j++, s += GROUP)

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
KERNEL(causal_softmax_group)(__global float *restrict y, __global const T_X *restrict x, int T, int S,
                             float scale) {
    __local float parts[GROUP];
    const int id = (int)get_local_id(0), r = (int)get_group_id(0), base = r * S, seen = SEEN(r);
    float v[EACH], largest = -INFINITY, sum = 0.0f;
    EACH_ELEMENT {
        v[j] = s < seen ? LOAD(T_X, x + base + s) * scale : -INFINITY;
        largest = fmax(largest, v[j]);
    }
    TOGETHER(largest, fmax)
    barrier(CLK_LOCAL_MEM_FENCE);
    EACH_ELEMENT {
        v[j] = s < seen ? exp(v[j] - largest) : 0.0f;
        sum += v[j];
    }
    TOGETHER(sum, PLUS)
    const float part = 1.0f / sum;
    EACH_ELEMENT if (s < S) y[base + s] = s < seen ? v[j] * part : 0.0f;
}

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
KERNEL(causal_softmax_group_backward)(__global T_DX *restrict dx, __global const float *restrict dy,
                                      __global const float *restrict y, int T, int S, float scale) {
    __local float parts[GROUP];
    const int id = (int)get_local_id(0), r = (int)get_group_id(0), base = r * S, seen = SEEN(r);
    float g[EACH], v[EACH], sum = 0.0f;
    EACH_ELEMENT {
        g[j] = s < seen ? dy[base + s] : 0.0f;
        v[j] = s < seen ? y[base + s] : 0.0f;
        sum = fma(g[j], v[j], sum);
    }
    TOGETHER(sum, PLUS)
    EACH_ELEMENT if (s < S) STORE(T_DX, s < seen ? scale * v[j] * (g[j] - sum) : 0.0f, dx + base + s);
}

// ---- for devices with wide vectors ----

// Lanes whose key is below `seen` keep v, the others get `other`.
float16 KERNEL(attention_keep)(float16 v, int first, int seen, float other) {
    return select((float16)(other), v, LANES_16 + first < (int16)(seen));
}

__kernel void KERNEL(causal_softmax_rows)(__global float *restrict y, __global const T_X *restrict x,
                                          int n_rows, int rows, int T, int S, float scale) {
    int first = (int)get_global_id(0) * rows, last = min(first + rows, n_rows);
    for (int r = first; r < last; r++) {
        __global const T_X *from = x + r * S;
        __global float *to = y + r * S;
        int seen = SEEN(r), s;
        float16 most = (float16)(-INFINITY), sums = (float16)(0.0f);
        for (s = 0; s < seen && s + 16 <= S; s += 16)
            most = fmax(most, KERNEL(attention_keep)(VLOAD(T_X, 16, from + s) * scale, s, seen, -INFINITY));
        float largest = clv_largest16(most), sum = 0.0f;
        for (; s < seen; s++) largest = fmax(largest, LOAD(T_X, from + s) * scale);
        for (s = 0; s < seen && s + 16 <= S; s += 16) {
            float16 e =
                KERNEL(attention_keep)(exp(VLOAD(T_X, 16, from + s) * scale - largest), s, seen, 0.0f);
            vstore16(e, 0, to + s);
            sums += e;
        }
        for (; s < seen; s++) {
            float e = exp(LOAD(T_X, from + s) * scale - largest);
            to[s] = e;
            sum += e;
        }
        float part = 1.0f / (sum + clv_sum16(sums));
        for (s = 0; s < seen && s + 16 <= S; s += 16) // a part that is no number is not for lanes beyond
            vstore16(KERNEL(attention_keep)(vload16(0, to + s) * part, s, seen, 0.0f), 0, to + s);
        for (; s < seen; s++) to[s] *= part;
        for (; s + 16 <= S; s += 16) vstore16((float16)(0.0f), 0, to + s);
        for (; s < S; s++) to[s] = 0.0f;
    }
}

__kernel void KERNEL(causal_softmax_rows_backward)(__global T_DX *restrict dx,
                                                   __global const float *restrict dy,
                                                   __global const float *restrict y, int n_rows, int rows,
                                                   int T, int S, float scale) {
    int first = (int)get_global_id(0) * rows, last = min(first + rows, n_rows);
    for (int r = first; r < last; r++) {
        __global const float *g = dy + r * S, *from = y + r * S;
        __global T_DX *to = dx + r * S;
        int seen = SEEN(r), s;
        float16 sums = (float16)(0.0f);
        float sum = 0.0f;
        for (s = 0; s < seen && s + 16 <= S; s += 16)
            sums += KERNEL(attention_keep)(vload16(0, g + s) * vload16(0, from + s), s, seen, 0.0f);
        for (; s < seen; s++) sum += g[s] * from[s];
        sum += clv_sum16(sums);
        for (s = 0; s < seen && s + 16 <= S; s += 16) {
            float16 v = scale * vload16(0, from + s) * (vload16(0, g + s) - sum);
            VSTORE(T_DX, 16, KERNEL(attention_keep)(v, s, seen, 0.0f), to + s);
        }
        for (; s < seen; s++) STORE(T_DX, scale * from[s] * (g[s] - sum), to + s);
        for (; s + 16 <= S; s += 16) VSTORE(T_DX, 16, (float16)(0.0f), to + s);
        for (; s < S; s++) STORE(T_DX, 0.0f, to + s);
    }
}
