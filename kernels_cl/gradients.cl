// SPDX-License-Identifier: Apache-2.0
// All gradients together: sums over them, and the numbers that come of these. No macro but KERNEL.
//
//   sum_squares       one work-item per `chunk` elements: sum(g^2); whole sixteens go by vectors if `wide`
//   count_nonfinite   the same: how many are NaN or infinite
//   sum_parts         one work-item per `chunk` elements: their sum; repeated, a tree of fixed shape
//   clip_scale        one work-item: min(1, max_norm / (sqrt(total) / scale + 1e-6))
//   scaler_step       one work-item: the factor of all gradients, the step values without skipped steps, and the next scale
//
// previous  [1], a sum to add to the last one; has_previous 0: not there
// scale     [1], what gradients are too large by; has_scale 0: not there, 1
// hyper     as in optimizer.cl; 4 the step, from 1
#ifndef KERNEL
#define KERNEL(name) name
#endif

// By their bits: compilers that reckon without infinities leave these alone.
#define SQUARE(v) ((v) * (v))
#define SQUARE16(v) ((v) * (v))
#define NONFINITE(v) ((as_int(v) & 0x7f800000) == 0x7f800000 ? 1.0f : 0.0f)
#define NONFINITE16(v)                                                                                       \
    select((float16)(0.0f), (float16)(1.0f), (as_int16(v) & 0x7f800000) == (int16)(0x7f800000))

#define TREE(name, TERM, TERM16)                                                                             \
    __kernel void KERNEL(name)(__global float *restrict out, __global const float *restrict g,               \
                               __global const float *restrict previous, int n, int chunk, int wide,          \
                               int has_previous) {                                                           \
        int item = (int)get_global_id(0), i = item * chunk, end = min(i + chunk, n);                         \
        if (item > 0 && i >= n) return;                                                                      \
        float sum = 0.0f;                                                                                    \
        if (wide) {                                                                                          \
            float16 sums = (float16)(0.0f);                                                                  \
            for (; i + 16 <= end; i += 16) {                                                                 \
                float16 v = vload16(0, g + i);                                                               \
                sums += TERM16(v);                                                                           \
            }                                                                                                \
            float8 a = sums.lo + sums.hi;                                                                    \
            float4 b = a.lo + a.hi;                                                                          \
            sum = (b.x + b.y) + (b.z + b.w);                                                                 \
        }                                                                                                    \
        for (int block = i; block < end; block += 32) {                                                      \
            float part = 0.0f;                                                                               \
            for (i = block; i < min(block + 32, end); i++) part += TERM(g[i]);                               \
            sum += part;                                                                                     \
        }                                                                                                    \
        out[item] = has_previous ? sum + previous[0] : sum;                                                  \
    }
TREE(sum_squares, SQUARE, SQUARE16)
TREE(count_nonfinite, NONFINITE, NONFINITE16)

__kernel void KERNEL(sum_parts)(__global float *restrict out, __global const float *restrict in,
                                __global const float *restrict previous, int n, int chunk, int has_previous) {
    int item = (int)get_global_id(0), first = item * chunk, last = min(first + chunk, n);
    if (item > 0 && first >= n) return;
    float sum = 0.0f;
    for (int block = first; block < last; block += 32) {
        float part = 0.0f;
        for (int i = block; i < min(block + 32, last); i++) part += in[i];
        sum += part;
    }
    out[item] = has_previous ? sum + previous[0] : sum;
}

__kernel void KERNEL(clip_scale)(__global float *restrict factor, __global const float *restrict total,
                                 __global const float *restrict scale, int has_scale, float max_norm) {
    if (get_global_id(0) > 0) return;
    float norm = sqrt(total[0]) / (has_scale ? scale[0] : 1.0f);
    float wanted = max_norm / (norm + 1e-6f);
    // a NaN stays one: gradients that are not numbers must not pass unseen
    factor[0] = wanted > 1.0f ? 1.0f : wanted;
}

// Source: torch.amp.GradScaler. A skipped step is none for the optimizer: what depends on the step (Adam's corrections, the
// first step of a momentum) is made again from the steps that were not skipped; log_beta 0: not Adam.
__kernel void KERNEL(scaler_step)(__global float *restrict factor, __global float *restrict fed,
                                  __global float *restrict scale, __global float *restrict growth_tracker,
                                  __global float *restrict skipped, __global const float *restrict nonfinite,
                                  __global const float *restrict hyper, __global const float *restrict clip,
                                  int has_clip, int interval, float growth, float backoff, float log_beta1,
                                  float log_beta2) {
    if (get_global_id(0) > 0) return;
    float step = hyper[4] - skipped[0];
    for (int i = 0; i < 5; i++) fed[i] = hyper[i];
    if (skipped[0] > 0.0f) {
        fed[1] = step <= 1.0f ? 1.0f : 0.0f;
        if (log_beta1 < 0.0f) fed[2] = hyper[0] / -expm1(step * log_beta1);
        if (log_beta2 < 0.0f) fed[3] = sqrt(-expm1(step * log_beta2));
        fed[4] = step;
    }
    if (nonfinite[0] > 0.0f) {
        factor[0] = -1.0f;
        scale[0] *= backoff;
        growth_tracker[0] = 0.0f;
        skipped[0] += 1.0f;
    } else {
        factor[0] = (has_clip ? clip[0] : 1.0f) / scale[0];
        float steps = growth_tracker[0] + 1.0f, larger = scale[0] * growth;
        int grows = steps >= (float)interval;
        if (grows && larger < 3e38f) scale[0] = larger;
        growth_tracker[0] = grows ? 0.0f : steps;
    }
}
