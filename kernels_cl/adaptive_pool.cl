// SPDX-License-Identifier: Apache-2.0
// Adaptive average pooling along one axis: x is [outer, D, inner], y [outer, E, inner]; planes are pooled along H and then
// along W, which gives the mean of the window because all its rows are equally long. T_IN, T_OUT: how the
// entries' input and output are stored, float (default), f16 or bf16; between the axes there are floats.
//
// Output e looks at inputs floor(e*D/E) .. ceil((e+1)*D/E) - 1. The gradient gathers: input d is looked at by outputs
// floor(d*E/D) .. ceil((d+1)*E/D) - 1.
//
//   adaptive_pool_axis            one work-item per output
//   adaptive_pool_axis_backward   one per input
#define T_IN float
#define T_OUT float

// a * b / c, rounded down or up, where b < c < 2^30: the product may have more than 32 bits.
int KERNEL(adaptive_pool_part)(int a, int b, int c, int up) {
#ifdef CLV_NO_INT64
    uint quotient = 0, rest = 0;
    for (int bit = 30; bit >= 0; bit--) { // long division, a bit of a at a time: rest stays below c
        quotient *= 2;
        rest = 2 * rest + (a >> bit & 1 ? (uint)b : 0);
        for (; rest >= (uint)c; rest -= (uint)c) quotient++;
    }
    return (int)quotient + (up && rest > 0);
#else
    return (int)(((long)a * b + (up ? c - 1 : 0)) / c);
#endif
}

// Where window i of `windows` over `size` elements begins, and where it ends (not included).
int KERNEL(adaptive_pool_first)(int i, int size, int windows) {
    return i * (size / windows) + KERNEL(adaptive_pool_part)(i, size % windows, windows, 0);
}

int KERNEL(adaptive_pool_end)(int i, int size, int windows) {
    return (i + 1) * (size / windows) + KERNEL(adaptive_pool_part)(i + 1, size % windows, windows, 1);
}

__kernel void KERNEL(adaptive_pool_axis)(__global T_OUT *restrict y, __global const T_IN *restrict x, int n, int D,
                                         int E, int inner) {
    int at = (int)get_global_id(0);
    if (at >= n) return;
    int i = at % inner, e = at / inner % E, outer = at / inner / E;
    int first = KERNEL(adaptive_pool_first)(e, D, E), end = KERNEL(adaptive_pool_end)(e, D, E);
    float sum = 0.0f;
    for (int d = first; d < end; d++) sum += LOAD(T_IN, x + (outer * D + d) * inner + i);
    STORE(T_OUT, sum / (float)(end - first), y + at);
}

__kernel void KERNEL(adaptive_pool_axis_backward)(__global T_OUT *restrict dx, __global const T_IN *restrict dy, int n,
                                                  int D, int E, int inner) {
    int at = (int)get_global_id(0);
    if (at >= n) return;
    int i = at % inner, d = at / inner % D, outer = at / inner / D;
    int first = KERNEL(adaptive_pool_first)(d, E, D), end = KERNEL(adaptive_pool_end)(d, E, D);
    float sum = 0.0f;
    for (int e = first; e < end; e++) {
        int length = KERNEL(adaptive_pool_end)(e, D, E) - KERNEL(adaptive_pool_first)(e, D, E);
        sum += LOAD(T_IN, dy + (outer * E + e) * inner + i) / (float)length;
    }
    STORE(T_OUT, sum, dx + at);
}
