// SPDX-License-Identifier: Apache-2.0
// causal_mask: matrices [T, S] keep what is not above the diagonal that ends in the lower right corner; the rest becomes
// `fill`. One work-item per element. May be done in place, so no restrict. T_X, T_Y: how x and y are
// stored, float (default), f16 or bf16.
#define T_X float
#define T_Y float

__kernel void KERNEL(causal_mask)(__global T_Y *y, __global const T_X *x, int n, int T, int S, float fill) {
    int i = (int)get_global_id(0);
    if (i >= n) return;
    int s = i % S, t = i / S % T;
    STORE(T_Y, s - t <= S - T ? LOAD(T_X, x + i) : fill, y + i);
}
