// SPDX-License-Identifier: Apache-2.0
// An axis by a table with few numbers for each place: y[outer][e][i] = sum over k of weight[e][k] * x[outer][start[e] + k][i], of those
// places of x [outer, D, inner] that there are; y [outer, E, inner].
//
//   resample         an item an element of y
//   resample_rows    an item does `each` rows of `inner` elements, in vectors of VW
//   resample_lines   an item does `each` of `outer`: for rows that are shorter than a vector
//
// T_X, T_Y   how x and y are stored: float (default), f16, bf16
// TAPS       K, if the loop over k is to be unrolled: 1 to 16; 0 (default): any K
// VW         2, 4, 8 or 16 (default)
#define T_X float
#define T_Y float
#define TAPS 0
#define VW 16

#define COUNT (TAPS ? TAPS : K)

// The sum for one element; x is the first of its line.
float KERNEL(resample_one)(__global const T_X *x, __global const float *weight, int first, int D, int inner, int K) {
    float sum = 0.0f;
    if (first >= 0 && first <= D - COUNT) {
        for (int k = 0; k < COUNT; k++) sum += weight[k] * LOAD(T_X, x + (first + k) * inner);
    } else {
        for (int k = 0; k < COUNT; k++)
            if (first + k >= 0 && first + k < D) sum += weight[k] * LOAD(T_X, x + (first + k) * inner);
    }
    return sum;
}

__kernel void KERNEL(resample)(__global T_Y *restrict y, __global const T_X *restrict x,
                               __global const int *restrict start, __global const float *restrict weight, int n,
                               int D, int E, int inner, int K) {
    const int at = (int)get_global_id(0);
    if (at >= n) return;
    const int i = at % inner, e = at / inner % E, outer = at / inner / E;
    const int first = clamp(start[e], -K, D); // no sum of it runs over
    STORE(T_Y, KERNEL(resample_one)(x + outer * D * inner + i, weight + e * K, first, D, inner, K), y + at);
}

__kernel void KERNEL(resample_rows)(__global T_Y *restrict y, __global const T_X *restrict x,
                                    __global const int *restrict start, __global const float *restrict weight,
                                    int n, int D, int E, int inner, int K, int each) {
    const int begin = (int)get_global_id(0) * each;
    for (int row = begin; row < min(begin + each, n); row++) {
        const int e = row % E, first = clamp(start[e], -K, D);
        __global const T_X *line = x + row / E * D * inner;
        __global T_Y *to = y + row * inner;
        for (int at = 0; at < inner; at += VW) {
            const int i = min(at, inner - VW); // the last vector does again what the one before has done
            PASTE(float, VW) sum = (PASTE(float, VW))(0.0f);
            for (int k = 0; k < COUNT; k++)
                if (first + k >= 0 && first + k < D)
                    sum += weight[e * K + k] * VLOAD(T_X, VW, line + (first + k) * inner + i);
            VSTORE(T_Y, VW, sum, to + i);
        }
    }
}

__kernel void KERNEL(resample_lines)(__global T_Y *restrict y, __global const T_X *restrict x,
                                     __global const int *restrict start, __global const float *restrict weight,
                                     int n, int D, int E, int inner, int K, int each) {
    const int begin = (int)get_global_id(0) * each;
    for (int outer = begin; outer < min(begin + each, n); outer++) {
        __global const T_X *line = x + outer * D * inner;
        __global T_Y *to = y + outer * E * inner;
        for (int e = 0; e < E; e++) {
            const int first = clamp(start[e], -K, D);
            for (int i = 0; i < inner; i++)
                STORE(T_Y, KERNEL(resample_one)(line + i, weight + e * K, first, D, inner, K), to + e * inner + i);
        }
    }
}
