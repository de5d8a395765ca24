// SPDX-License-Identifier: Apache-2.0
// Softmax and its logarithm along one axis of D elements: x is [outer, D, inner], a row is (outer, :, inner). The largest element is subtracted first; -infinity is a legal element and gives 0 (log: -infinity).
//
// For devices with wide vectors (rows.cl does it for the others):
//   softmax_rows       inner == 1: each work-item does `rows` rows, sixteen elements at a time
//   softmax_rows_backward   the same;  dx = y * (dy - sum(dy * y));  log: dx = dy - exp(y) * sum(dy)
//   softmax_columns    inner >= 1: one work-item per (outer, sixteen neighbours of inner), a row in each lane
//   softmax_columns_backward
//
// log_form  0 softmax, 1 log_softmax
// T_X, T_DX how x and dx are stored: float (default), f16 or bf16; y and dy are floats
#define T_X float
#define T_DX float

__kernel void KERNEL(softmax_rows)(__global float *restrict y, __global const T_X *restrict x, int n_rows,
                                   int rows, int D, int log_form) {
    int first = (int)get_global_id(0) * rows, last = min(first + rows, n_rows);
    for (int r = first; r < last; r++) {
        __global const T_X *from = x + r * D;
        __global float *to = y + r * D;
        int d;
        float16 most = (float16)(-INFINITY), sums = (float16)(0.0f);
        for (d = 0; d + 16 <= D; d += 16) most = fmax(most, VLOAD(T_X, 16, from + d));
        float largest = clv_largest16(most), sum = 0.0f;
        for (; d < D; d++) largest = fmax(largest, LOAD(T_X, from + d));
        if (log_form) {
            for (d = 0; d + 16 <= D; d += 16) sums += exp(VLOAD(T_X, 16, from + d) - largest);
            for (; d < D; d++) sum += exp(LOAD(T_X, from + d) - largest);
            float log_sum = log(sum + clv_sum16(sums));
            for (d = 0; d + 16 <= D; d += 16)
                vstore16(VLOAD(T_X, 16, from + d) - largest - log_sum, 0, to + d);
            for (; d < D; d++) to[d] = LOAD(T_X, from + d) - largest - log_sum;
        } else {
            for (d = 0; d + 16 <= D; d += 16) {
                float16 e = exp(VLOAD(T_X, 16, from + d) - largest);
                vstore16(e, 0, to + d);
                sums += e;
            }
            for (; d < D; d++) {
                float e = exp(LOAD(T_X, from + d) - largest);
                to[d] = e;
                sum += e;
            }
            float scale = 1.0f / (sum + clv_sum16(sums));
            for (d = 0; d + 16 <= D; d += 16) vstore16(vload16(0, to + d) * scale, 0, to + d);
            for (; d < D; d++) to[d] *= scale;
        }
    }
}

__kernel void KERNEL(softmax_rows_backward)(__global T_DX *restrict dx, __global const float *restrict dy,
                                            __global const float *restrict y, int n_rows, int rows, int D,
                                            int log_form) {
    int first = (int)get_global_id(0) * rows, last = min(first + rows, n_rows);
    for (int r = first; r < last; r++) {
        __global const float *g = dy + r * D, *from = y + r * D;
        __global T_DX *to = dx + r * D;
        int d;
        float sum = 0.0f;
        float16 sums = (float16)(0.0f);
        if (log_form) {
            for (d = 0; d + 16 <= D; d += 16) sums += vload16(0, g + d);
            for (; d < D; d++) sum += g[d];
            sum += clv_sum16(sums);
            for (d = 0; d + 16 <= D; d += 16)
                VSTORE(T_DX, 16, vload16(0, g + d) - exp(vload16(0, from + d)) * sum, to + d);
            for (; d < D; d++) STORE(T_DX, g[d] - exp(from[d]) * sum, to + d);
        } else {
            for (d = 0; d + 16 <= D; d += 16) sums += vload16(0, g + d) * vload16(0, from + d);
            for (; d < D; d++) sum += g[d] * from[d];
            sum += clv_sum16(sums);
            for (d = 0; d + 16 <= D; d += 16)
                VSTORE(T_DX, 16, vload16(0, from + d) * (vload16(0, g + d) - sum), to + d);
            for (; d < D; d++) STORE(T_DX, from[d] * (g[d] - sum), to + d);
        }
    }
}

// v to sixteen neighbours from `at`, or the `lanes` that there are.
void KERNEL(softmax_store)(float16 v, __global T_DX *at, int lanes) {
    if (lanes == 16) {
        VSTORE(T_DX, 16, v, at);
        return;
    }
    float few[16];
    vstore16(v, 0, few);
    for (int l = 0; l < lanes; l++) STORE(T_DX, few[l], at + l);
}

__kernel void KERNEL(softmax_columns)(__global float *restrict y, __global const T_X *restrict x, int n_items,
                                      int D, int inner, int log_form) {
    int item = (int)get_global_id(0);
    if (item >= n_items) return;
    int blocks = (inner + 15) / 16, column = item % blocks * 16, base = item / blocks * D * inner + column;
    int lanes = min(16, inner - column);
    float16 largest = (float16)(-INFINITY), sum = (float16)(0.0f);
    for (int d = 0; d < D; d++) largest = fmax(largest, LOAD_FEW(T_X, x + base + d * inner, lanes));
    for (int d = 0; d < D; d++) sum += exp(LOAD_FEW(T_X, x + base + d * inner, lanes) - largest);
    float16 log_sum = log(sum), scale = 1.0f / sum;
    for (int d = 0; d < D; d++) {
        float16 v = LOAD_FEW(T_X, x + base + d * inner, lanes) - largest;
        KERNEL(softmax_store)(log_form ? v - log_sum : exp(v) * scale, y + base + d * inner, lanes);
    }
}

__kernel void KERNEL(softmax_columns_backward)(__global T_DX *restrict dx, __global const float *restrict dy,
                                               __global const float *restrict y, int n_items, int D,
                                               int inner, int log_form) {
    int item = (int)get_global_id(0);
    if (item >= n_items) return;
    int blocks = (inner + 15) / 16, column = item % blocks * 16, base = item / blocks * D * inner + column;
    int lanes = min(16, inner - column);
    float16 sum = (float16)(0.0f);
    for (int d = 0; d < D; d++) {
        float16 g = LOAD_FEW(float, dy + base + d * inner, lanes);
        sum += log_form ? g : g * LOAD_FEW(float, y + base + d * inner, lanes);
    }
    for (int d = 0; d < D; d++) {
        float16 g = LOAD_FEW(float, dy + base + d * inner, lanes),
                v = LOAD_FEW(float, y + base + d * inner, lanes);
        KERNEL(softmax_store)(log_form ? g - exp(v) * sum : v * (g - sum), dx + base + d * inner, lanes);
    }
}
