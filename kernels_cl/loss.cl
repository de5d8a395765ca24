// SPDX-License-Identifier: Apache-2.0
// Losses: cross entropy over classes and the mean squared error.
// T_X, T_T, T_DX: how x, the target t and dx are stored: float (default), f16 or bf16.
//
// Cross entropy: x is [outer, C, inner], row r = (outer, :, inner) has label[r]; n_rows = outer * inner.
//   cross_entropy_stats     one work-item per row: stats[r] = largest element, stats[n_rows + r] = log(sum(exp(x - largest)))
//   cross_entropy_stats_rows       inner == 1, each work-item `rows` rows, sixteen elements at a time
//   cross_entropy_sum       one work-item per `chunk` rows: sum of their losses / divisor. A label outside [0, C) gives NaN
//   cross_entropy_backward  one work-item per element: (softmax - one at the label) * dy / n_rows
//   cross_entropy_backward_rows    inner == 1, each work-item `rows` rows, sixteen elements at a time
// Mean squared error:
//   mse_sum, mse_sum_vector   one work-item per `chunk` elements (vector: a multiple of 16): sum((x - t)^2) / divisor
//   mse_backward              one work-item per sixteen elements: 2 (x - t) * dy / n
// Both:
//   sum_chunks              one work-item per `chunk` elements: their sum / divisor. Repeated, a tree of fixed shape
//
// Sums run over blocks of 32, then over the blocks: the error grows with 32 + chunk / 32 instead of chunk.
#ifndef KERNEL
#define KERNEL(name) name
#endif
#ifndef T_X
#define T_X float
#endif
#ifndef T_T
#define T_T float
#endif
#ifndef T_DX
#define T_DX float
#endif

__kernel void KERNEL(cross_entropy_stats)(__global float *restrict stats, __global const T_X *restrict x,
                                          int n_rows, int C, int inner) {
    int r = (int)get_global_id(0);
    if (r >= n_rows) return;
    int base = r / inner * C * inner + r % inner;
    float largest = -INFINITY, sum = 0.0f;
    for (int c = 0; c < C; c++) largest = fmax(largest, LOAD(T_X, x + base + c * inner));
    for (int c = 0; c < C; c++) sum += exp(LOAD(T_X, x + base + c * inner) - largest);
    stats[r] = largest;
    stats[n_rows + r] = log(sum);
}

__kernel void KERNEL(cross_entropy_stats_rows)(__global float *restrict stats, __global const T_X *restrict x,
                                               int n_rows, int rows, int C) {
    int first = (int)get_global_id(0) * rows, last = min(first + rows, n_rows);
    for (int r = first; r < last; r++) {
        __global const T_X *from = x + r * C;
        int c;
        float16 most = (float16)(-INFINITY), sums = (float16)(0.0f);
        for (c = 0; c + 16 <= C; c += 16) most = fmax(most, VLOAD(T_X, 16, from + c));
        float8 m8 = fmax(most.lo, most.hi);
        float4 m4 = fmax(m8.lo, m8.hi);
        float largest = fmax(fmax(m4.x, m4.y), fmax(m4.z, m4.w)), sum = 0.0f;
        for (; c < C; c++) largest = fmax(largest, LOAD(T_X, from + c));
        for (c = 0; c + 16 <= C; c += 16) sums += exp(VLOAD(T_X, 16, from + c) - largest);
        for (; c < C; c++) sum += exp(LOAD(T_X, from + c) - largest);
        float8 s8 = sums.lo + sums.hi;
        float4 s4 = s8.lo + s8.hi;
        stats[r] = largest;
        stats[n_rows + r] = log(sum + ((s4.x + s4.y) + (s4.z + s4.w)));
    }
}

__kernel void KERNEL(cross_entropy_sum)(__global float *restrict out, __global const float *restrict stats,
                                        __global const T_X *restrict x, __global const int *restrict labels,
                                        int n_rows, int C, int inner, int chunk, float divisor) {
    int item = (int)get_global_id(0), first = item * chunk, last = min(first + chunk, n_rows);
    if (item > 0 && first >= n_rows) return;
    float sum = 0.0f;
    for (int block = first; block < last; block += 32) {
        float part = 0.0f;
        for (int r = block; r < min(block + 32, last); r++) {
            int label = labels[r];
            if (label < 0 || label >= C) {
                part = NAN;
            } else {
                part += stats[n_rows + r] -
                        (LOAD(T_X, x + r / inner * C * inner + r % inner + label * inner) - stats[r]);
            }
        }
        sum += part;
    }
    out[item] = sum / divisor;
}

__kernel void KERNEL(cross_entropy_backward)(__global T_DX *restrict dx, __global const float *restrict dy,
                                             __global const T_X *restrict x,
                                             __global const int *restrict labels,
                                             __global const float *restrict stats, int n, int n_rows, int C,
                                             int inner) {
    int i = (int)get_global_id(0);
    if (i >= n) return;
    int c = i / inner % C, r = i / inner / C * inner + i % inner, label = labels[r];
    float p = exp(LOAD(T_X, x + i) - stats[r] - stats[n_rows + r]);
    if (c == label) p -= 1.0f;
    if (label < 0 || label >= C) p = NAN;
    STORE(T_DX, p * (dy[0] / (float)n_rows), dx + i);
}

__kernel void
KERNEL(cross_entropy_backward_rows)(__global T_DX *restrict dx, __global const float *restrict dy,
                                    __global const T_X *restrict x, __global const int *restrict labels,
                                    __global const float *restrict stats, int n_rows, int rows, int C) {
    int first = (int)get_global_id(0) * rows, last = min(first + rows, n_rows);
    float share = dy[0] / (float)n_rows;
    for (int r = first; r < last; r++) {
        __global const T_X *from = x + r * C;
        __global T_DX *to = dx + r * C;
        int label = labels[r], c;
        bool known = label >= 0 && label < C;
        float scale = known ? share : NAN, largest = stats[r], log_sum = stats[n_rows + r];
        for (c = 0; c + 16 <= C; c += 16)
            VSTORE(T_DX, 16, exp(VLOAD(T_X, 16, from + c) - largest - log_sum) * scale, to + c);
        for (; c < C; c++) STORE(T_DX, exp(LOAD(T_X, from + c) - largest - log_sum) * scale, to + c);
        if (known) STORE(T_DX, (exp(LOAD(T_X, from + label) - largest - log_sum) - 1.0f) * scale, to + label);
    }
}

__kernel void KERNEL(mse_sum)(__global float *restrict out, __global const T_X *restrict x,
                              __global const T_T *restrict t, int n, int chunk, float divisor) {
    int item = (int)get_global_id(0), first = item * chunk, last = min(first + chunk, n);
    if (item > 0 && first >= n) return;
    float sum = 0.0f;
    for (int block = first; block < last; block += 32) {
        float part = 0.0f;
        for (int i = block; i < min(block + 32, last); i++)
            part += (LOAD(T_X, x + i) - LOAD(T_T, t + i)) * (LOAD(T_X, x + i) - LOAD(T_T, t + i));
        sum += part;
    }
    out[item] = sum / divisor;
}

__kernel void KERNEL(mse_sum_vector)(__global float *restrict out, __global const T_X *restrict x,
                                     __global const T_T *restrict t, int n, int chunk, float divisor) {
    int item = (int)get_global_id(0), first = item * chunk, last = min(first + chunk, n), i;
    if (item > 0 && first >= n) return;
    float16 sums = (float16)(0.0f);
    for (i = first; i + 16 <= last; i += 16) {
        float16 d = VLOAD(T_X, 16, x + i) - VLOAD(T_T, 16, t + i);
        sums += d * d;
    }
    float8 a = sums.lo + sums.hi;
    float4 b = a.lo + a.hi;
    float sum = (b.x + b.y) + (b.z + b.w);
    for (; i < last; i++)
        sum += (LOAD(T_X, x + i) - LOAD(T_T, t + i)) * (LOAD(T_X, x + i) - LOAD(T_T, t + i));
    out[item] = sum / divisor;
}

__kernel void KERNEL(mse_backward)(__global T_DX *restrict dx, __global const float *restrict dy,
                                   __global const T_X *restrict x, __global const T_T *restrict t, int n) {
    int first = (int)get_global_id(0) * 16;
    float scale = dy[0] * (2.0f / (float)n);
    if (first + 16 <= n) {
        VSTORE(T_DX, 16, (VLOAD(T_X, 16, x + first) - VLOAD(T_T, 16, t + first)) * scale, dx + first);
    } else {
        for (int i = first; i < n; i++) STORE(T_DX, (LOAD(T_X, x + i) - LOAD(T_T, t + i)) * scale, dx + i);
    }
}

__kernel void KERNEL(sum_chunks)(__global float *restrict out, __global const float *restrict in, int n,
                                 int chunk, float divisor) {
    int item = (int)get_global_id(0), first = item * chunk, last = min(first + chunk, n);
    if (item > 0 && first >= n) return;
    float sum = 0.0f;
    for (int block = first; block < last; block += 32) {
        float part = 0.0f;
        for (int i = block; i < min(block + 32, last); i++) part += in[i];
        sum += part;
    }
    out[item] = sum / divisor;
}
