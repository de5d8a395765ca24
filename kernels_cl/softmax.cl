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

#define LARGEST(n) largest##n = fmax(largest##n, LOAD##n(T_X, from + d));
#define ADD_EXP(n) sum##n += exp(LOAD##n(T_X, from + d) - largest);
#define PUT_LOG(n) STORE##n(float, LOAD##n(T_X, from + d) - largest - log_sum, to + d);
#define PUT_EXP(n)                                                                                           \
    {                                                                                                        \
        const float##n e = exp(LOAD##n(T_X, from + d) - largest);                                            \
        STORE##n(float, e, to + d);                                                                          \
        sum##n += e;                                                                                         \
    }
#define SCALE(n) STORE##n(float, LOAD##n(float, to + d) * scale, to + d);
__kernel void KERNEL(softmax_rows)(__global float *restrict y, __global const T_X *restrict x, int n_rows,
                                   int rows, int D, int log_form) {
    int first = (int)get_global_id(0) * rows, last = min(first + rows, n_rows);
    for (int r = first; r < last; r++) {
        __global const T_X *from = x + r * D;
        __global float *to = y + r * D;
        int d;
        float16 largest16 = (float16)(-INFINITY), sum16 = (float16)(0.0f);
        for (d = 0; d + 16 <= D; d += 16) LARGEST(16)
        float largest = clv_largest16(largest16), sum = 0.0f;
        for (; d < D; d++) LARGEST()
        if (log_form) {
            BY_SIXTEEN(d, D, ADD_EXP)
            float log_sum = log(sum + clv_sum16(sum16));
            BY_SIXTEEN(d, D, PUT_LOG)
        } else {
            BY_SIXTEEN(d, D, PUT_EXP)
            float scale = 1.0f / (sum + clv_sum16(sum16));
            BY_SIXTEEN(d, D, SCALE)
        }
    }
}

#define ADD_DY(n) sum##n += LOAD##n(float, g + d);
#define ADD_PRODUCT(n) sum##n += LOAD##n(float, g + d) * LOAD##n(float, from + d);
#define PUT_LOG_DX(n) STORE##n(T_DX, LOAD##n(float, g + d) - exp(LOAD##n(float, from + d)) * sum, to + d);
#define PUT_DX(n) STORE##n(T_DX, LOAD##n(float, from + d) * (LOAD##n(float, g + d) - sum), to + d);
__kernel void KERNEL(softmax_rows_backward)(__global T_DX *restrict dx, __global const float *restrict dy,
                                            __global const float *restrict y, int n_rows, int rows, int D,
                                            int log_form) {
    int first = (int)get_global_id(0) * rows, last = min(first + rows, n_rows);
    for (int r = first; r < last; r++) {
        __global const float *g = dy + r * D, *from = y + r * D;
        __global T_DX *to = dx + r * D;
        int d;
        float sum = 0.0f;
        float16 sum16 = (float16)(0.0f);
        if (log_form) {
            BY_SIXTEEN(d, D, ADD_DY)
            sum += clv_sum16(sum16);
            BY_SIXTEEN(d, D, PUT_LOG_DX)
        } else {
            BY_SIXTEEN(d, D, ADD_PRODUCT)
            sum += clv_sum16(sum16);
            BY_SIXTEEN(d, D, PUT_DX)
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
