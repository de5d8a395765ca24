// SPDX-License-Identifier: Apache-2.0
// Losses: cross entropy over classes and the mean squared error.
// T_X, T_T, T_DX: how x, the target t and dx are stored: float (default), f16 or bf16.
//
// For devices with wide vectors, sixteen elements at a time (rows.cl does it for the others):
//   cross_entropy_rows            x is [n_rows, C], a work-item does `rows` rows: stats[r] = largest element,
//                                 stats[n_rows + r] = log(sum(exp(x - largest))), losses[r], NaN if label[r] is outside [0, C)
//   cross_entropy_backward_rows   dx = (softmax - one at the label) * dy / n_rows
//   cross_entropy_weighted_rows   the same with a weight for each row: losses[r] times that, 0 where it is 0
//   cross_entropy_weighted_backward_rows   and dx times that
// For all:
//   mse_backward                  one work-item per sixteen elements: 2 (x - t) * dy / n
#define T_X float
#define T_T float
#define T_DX float

#define LARGEST(n) largest##n = fmax(largest##n, LOAD##n(T_X, from + c));
#define ADD_EXP(n) sum##n += exp(LOAD##n(T_X, from + c) - largest);
/** The statistics of a row, and its loss. */
static float KERNEL(cross_entropy_row)(__global float *stats, __global const T_X *x, int label, int r,
                                       int n_rows, int C) {
    __global const T_X *from = x + r * C;
    int c;
    float16 largest16 = (float16)(-INFINITY), sum16 = (float16)(0.0f);
    float largest = -INFINITY, sum = 0.0f;
    BY_SIXTEEN(c, C, LARGEST)
    largest = fmax(clv_largest16(largest16), largest);
    BY_SIXTEEN(c, C, ADD_EXP)
    stats[r] = largest;
    const float log_sum = log(sum + clv_sum16_pairs(sum16));
    stats[n_rows + r] = log_sum;
    return label < 0 || label >= C ? NAN : log_sum - (LOAD(T_X, from + label) - largest);
}

__kernel void KERNEL(cross_entropy_rows)(__global float *restrict stats, __global const T_X *restrict x,
                                         __global const int *restrict labels, __global float *restrict losses,
                                         int n_rows, int rows, int C) {
    int first = (int)get_global_id(0) * rows, last = min(first + rows, n_rows);
    for (int r = first; r < last; r++)
        losses[r] = KERNEL(cross_entropy_row)(stats, x, labels[r], r, n_rows, C);
}

__kernel void KERNEL(cross_entropy_weighted_rows)(
    __global float *restrict stats, __global const T_X *restrict x, __global const int *restrict labels,
    __global const float *restrict weights, __global float *restrict losses, int n_rows, int rows, int C) {
    int first = (int)get_global_id(0) * rows, last = min(first + rows, n_rows);
    for (int r = first; r < last; r++) {
        const float loss = KERNEL(cross_entropy_row)(stats, x, labels[r], r, n_rows, C), weight = weights[r];
        losses[r] = weight == 0.0f ? 0.0f : weight * loss;
    }
}

#define PUT_DX(n) STORE##n(T_DX, exp(LOAD##n(T_X, from + c) - largest - log_sum) * scale, to + c);
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
        BY_SIXTEEN(c, C, PUT_DX)
        if (known) STORE(T_DX, (exp(LOAD(T_X, from + label) - largest - log_sum) - 1.0f) * scale, to + label);
    }
}

__kernel void KERNEL(cross_entropy_weighted_backward_rows)(
    __global T_DX *restrict dx, __global const float *restrict dy, __global const T_X *restrict x,
    __global const int *restrict labels, __global const float *restrict stats,
    __global const float *restrict weights, int n_rows, int rows, int C) {
    int first = (int)get_global_id(0) * rows, last = min(first + rows, n_rows);
    float share = dy[0] / (float)n_rows;
    for (int r = first; r < last; r++) {
        __global const T_X *from = x + r * C;
        __global T_DX *to = dx + r * C;
        int label = labels[r], c;
        if (weights[r] == 0.0f) {
            for (c = 0; c < C; c++) STORE(T_DX, 0.0f, to + c);
            continue;
        }
        bool known = label >= 0 && label < C;
        float scale = known ? weights[r] * share : NAN, largest = stats[r], log_sum = stats[n_rows + r];
        BY_SIXTEEN(c, C, PUT_DX)
        if (known) STORE(T_DX, (exp(LOAD(T_X, from + label) - largest - log_sum) - 1.0f) * scale, to + label);
    }
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
