// SPDX-License-Identifier: Apache-2.0
// Adaptive average pooling along one axis: x is [outer, D, inner], y [outer, E, inner]; planes are pooled along H and then
// along W, which gives the mean of the window because all its rows are equally long. No macro but KERNEL.
//
// Output e looks at inputs floor(e*D/E) .. ceil((e+1)*D/E) - 1. The gradient gathers: input d is looked at by outputs
// floor(d*E/D) .. ceil((d+1)*E/D) - 1.
//
//   adaptive_pool_axis            one work-item per output
//   adaptive_pool_axis_backward   one per input
#ifndef KERNEL
#define KERNEL(name) name
#endif

// Where window i of `windows` over `size` elements begins, and where it ends (not included).
int KERNEL(adaptive_pool_first)(int i, int size, int windows) {
    return (int)((long)i * size / windows);
}

int KERNEL(adaptive_pool_end)(int i, int size, int windows) {
    return (int)(((long)(i + 1) * size + windows - 1) / windows);
}

__kernel void KERNEL(adaptive_pool_axis)(__global float *restrict y, __global const float *restrict x, int n, int D,
                                         int E, int inner) {
    int at = (int)get_global_id(0);
    if (at >= n) return;
    int i = at % inner, e = at / inner % E, outer = at / inner / E;
    int first = KERNEL(adaptive_pool_first)(e, D, E), end = KERNEL(adaptive_pool_end)(e, D, E);
    float sum = 0.0f;
    for (int d = first; d < end; d++) sum += x[(outer * D + d) * inner + i];
    y[at] = sum / (float)(end - first);
}

__kernel void KERNEL(adaptive_pool_axis_backward)(__global float *restrict dx, __global const float *restrict dy, int n,
                                                  int D, int E, int inner) {
    int at = (int)get_global_id(0);
    if (at >= n) return;
    int i = at % inner, d = at / inner % D, outer = at / inner / D;
    int first = KERNEL(adaptive_pool_first)(d, E, D), end = KERNEL(adaptive_pool_end)(d, E, D);
    float sum = 0.0f;
    for (int e = first; e < end; e++) {
        int length = KERNEL(adaptive_pool_end)(e, D, E) - KERNEL(adaptive_pool_first)(e, D, E);
        sum += dy[(outer * E + e) * inner + i] / (float)length;
    }
    dx[at] = sum;
}
