// SPDX-License-Identifier: Apache-2.0
// causal_mask: matrices [T, S] keep what is not above the diagonal that ends in the lower right corner; the rest becomes
// `fill`. One work-item per element. May be done in place, so no restrict. No macro but KERNEL.
#ifndef KERNEL
#define KERNEL(name) name
#endif

__kernel void KERNEL(causal_mask)(__global float *y, __global const float *x, int n, int T, int S, float fill) {
    int i = (int)get_global_id(0);
    if (i >= n) return;
    int s = i % S, t = i / S % T;
    y[i] = s - t <= S - T ? x[i] : fill;
}
