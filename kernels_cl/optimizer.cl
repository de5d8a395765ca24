// SPDX-License-Identifier: Apache-2.0
// Updates of a parameter p from its gradient, in place, and the norm of all gradients. No macro but KERNEL.
//
//   sgd_update, adam_update    one work-item per `count` elements from count * id; whole sixteens go by vectors
//   sum_squares                one work-item per `chunk` elements: sum(g^2); whole sixteens go by vectors if `wide`
//   sum_parts                  one work-item per `chunk` elements: their sum; repeated, a tree of fixed shape
//   clip_scale                 one work-item: min(1, max_norm / (sqrt(total) + 1e-6))
//
// hyper     0 learning rate, 1 one in the first step and else zero, 2 learning rate / (1 - beta1^t), 3 sqrt(1 - beta2^t)
// clip      [1], the gradients' factor; has_clip 0: not there
// previous  [1], a sum to add to the last one; has_previous 0: not there
#ifndef KERNEL
#define KERNEL(name) name
#endif

// The formulas, for float and float16 alike. Source: torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW.
#define SGD(p, b, g)                                                                                         \
    {                                                                                                        \
        g = g * factor + weight_decay * p;                                                                   \
        if (has_buffer) {                                                                                    \
            b = first ? g : momentum * b + undamped * g;                                                     \
            g = nesterov ? g + momentum * b : b;                                                             \
        }                                                                                                    \
        p -= lr * g;                                                                                         \
    }
#define ADAM(p, m, v, g)                                                                                     \
    {                                                                                                        \
        g = g * factor + coupled_decay * p;                                                                  \
        p *= keep;                                                                                           \
        m = beta1 * m + rest1 * g;                                                                           \
        v = beta2 * v + rest2 * (g * g);                                                                     \
        p -= step_size * (m / (sqrt(v) / correction + eps));                                                 \
    }

__kernel void KERNEL(sgd_update)(__global float *restrict param, __global float *restrict buffer,
                                 __global const float *restrict grad, __global const float *restrict hyper,
                                 __global const float *restrict clip, int n, int count, int has_buffer,
                                 int has_clip, int nesterov, float momentum, float undamped,
                                 float weight_decay) {
    int i = (int)get_global_id(0) * count, end = min(i + count, n);
    float lr = hyper[0], factor = has_clip ? clip[0] : 1.0f;
    int first = hyper[1] > 0.5f;
    for (; i + 16 <= end; i += 16) {
        float16 p = vload16(0, param + i), g = vload16(0, grad + i), b = (float16)(0.0f);
        if (has_buffer) b = vload16(0, buffer + i);
        SGD(p, b, g);
        vstore16(p, 0, param + i);
        if (has_buffer) vstore16(b, 0, buffer + i);
    }
    for (; i < end; i++) {
        float p = param[i], g = grad[i], b = has_buffer ? buffer[i] : 0.0f;
        SGD(p, b, g);
        param[i] = p;
        if (has_buffer) buffer[i] = b;
    }
}

__kernel void KERNEL(adam_update)(__global float *restrict param, __global float *restrict exp_avg,
                                  __global float *restrict exp_avg_sq, __global const float *restrict grad,
                                  __global const float *restrict hyper, __global const float *restrict clip,
                                  int n, int count, int has_clip, float beta1, float rest1, float beta2,
                                  float rest2, float eps, float coupled_decay, float decoupled_decay) {
    int i = (int)get_global_id(0) * count, end = min(i + count, n);
    float keep = 1.0f - hyper[0] * decoupled_decay, step_size = hyper[2], correction = hyper[3];
    float factor = has_clip ? clip[0] : 1.0f;
    for (; i + 16 <= end; i += 16) {
        float16 p = vload16(0, param + i), g = vload16(0, grad + i);
        float16 m = vload16(0, exp_avg + i), v = vload16(0, exp_avg_sq + i);
        ADAM(p, m, v, g);
        vstore16(p, 0, param + i);
        vstore16(m, 0, exp_avg + i);
        vstore16(v, 0, exp_avg_sq + i);
    }
    for (; i < end; i++) {
        float p = param[i], g = grad[i], m = exp_avg[i], v = exp_avg_sq[i];
        ADAM(p, m, v, g);
        param[i] = p;
        exp_avg[i] = m;
        exp_avg_sq[i] = v;
    }
}

__kernel void KERNEL(sum_squares)(__global float *restrict out, __global const float *restrict g,
                                  __global const float *restrict previous, int n, int chunk, int wide,
                                  int has_previous) {
    int item = (int)get_global_id(0), i = item * chunk, end = min(i + chunk, n);
    float sum = 0.0f;
    if (wide) {
        float16 sums = (float16)(0.0f);
        for (; i + 16 <= end; i += 16) {
            float16 v = vload16(0, g + i);
            sums += v * v;
        }
        float8 a = sums.lo + sums.hi;
        float4 b = a.lo + a.hi;
        sum = (b.x + b.y) + (b.z + b.w);
    }
    for (int block = i; block < end; block += 32) {
        float part = 0.0f;
        for (i = block; i < min(block + 32, end); i++) part += g[i] * g[i];
        sum += part;
    }
    out[item] = has_previous ? sum + previous[0] : sum;
}

__kernel void KERNEL(sum_parts)(__global float *restrict out, __global const float *restrict in,
                                __global const float *restrict previous, int n, int chunk, int has_previous) {
    int item = (int)get_global_id(0), first = item * chunk, last = min(first + chunk, n);
    float sum = 0.0f;
    for (int block = first; block < last; block += 32) {
        float part = 0.0f;
        for (int i = block; i < min(block + 32, last); i++) part += in[i];
        sum += part;
    }
    out[item] = has_previous ? sum + previous[0] : sum;
}

__kernel void KERNEL(clip_scale)(__global float *restrict scale, __global const float *restrict total,
                                 float max_norm) {
    float factor = max_norm / (sqrt(total[0]) + 1e-6f);
    scale[0] =
        factor > 1.0f ? 1.0f : factor; // a NaN stays one: gradients that are not numbers must not pass unseen
}

#undef SGD
#undef ADAM
