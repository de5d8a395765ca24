// SPDX-License-Identifier: Apache-2.0
// Updates of a parameter p from its gradient, in place. No macro but KERNEL.
//
//   sgd_update, adam_update    one work-item per `count` elements from count * id; whole sixteens go by vectors
//
// hyper     0 learning rate, 1 one in the first step and else zero, 2 learning rate / (1 - beta1^t), 3 sqrt(1 - beta2^t)
// clip      [1], the gradients' factor, negative: nothing is updated; has_clip 0: not there
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
    if (factor < 0.0f) return;
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
    if (factor < 0.0f) return;
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

#undef SGD
#undef ADAM
