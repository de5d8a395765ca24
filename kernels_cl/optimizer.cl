// SPDX-License-Identifier: Apache-2.0
// Updates of parameters p from their gradients, in place: of up to seven (sgd_update) or six (adam_update), each a slice of the
// launch. No macro but KERNEL.
//
//   sgd_update, adam_update    one work-item per `count` elements; whole sixteens go by vectors. Slice j has n<j> elements, of
//                              which this launch does those from CUT(n<j>, part) to CUT(n<j>, part + 1), by as few items
//                              as can, which follow those of the slices before it
//
// part, parts   which of how many launches, each on a device of its own, do the update together
// hyper     0 learning rate, 1 one in the first step and else zero, 2 learning rate / (1 - beta1^t), 3 sqrt(1 - beta2^t)
// clip      [1], the gradients' factor, negative: nothing is updated; has_clip 0: not there
// grad<j>   the gradient; with has_terms its first term, and the gradient is grad<j> + term<j>
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

#define EACH6(M) M(0) M(1) M(2) M(3) M(4) M(5)
#define EACH7(M) EACH6(M) M(6)
#define SIZE(j) int n##j,
// `item` counts from the slice's first; the one that it lies in sets i, its first element, and n, where the slice ends. Below 0:
// it is found.
#define FIND(j, take)                                                                                        \
    if (item >= 0) {                                                                                         \
        int items = n##j / count + (n##j % count != 0);                                                      \
        if (item < items) {                                                                                  \
            take i = item * count;                                                                           \
            n = n##j;                                                                                        \
        }                                                                                                    \
        item -= items;                                                                                       \
    }

#define SGD_SLICE(j)                                                                                         \
    __global float *restrict param##j, __global float *restrict buffer##j,                                   \
        __global const float *restrict grad##j, __global const float *restrict term##j,
#define SGD_FIND(j) FIND(j, param = param##j; buffer = buffer##j; grad = grad##j; term = term##j;)
__kernel void KERNEL(sgd_update)(EACH7(SGD_SLICE) __global const float *restrict hyper,
                                 __global const float *restrict clip, EACH7(SIZE) int count, int has_clip, int has_terms, int has_buffer, int nesterov,
                                 float momentum, float undamped, float weight_decay) {
    int item = (int)get_global_id(0), i = 0, n = 0;
    __global float *param = 0, *buffer = 0;
    __global const float *grad = 0, *term = 0;
    EACH7(SGD_FIND)
    int end = n - i > count ? i + count : n;
    float lr = hyper[0], factor = has_clip ? clip[0] : 1.0f;
    int first = hyper[1] > 0.5f;
    if (factor < 0.0f) return;
    for (; i + 16 <= end; i += 16) {
        float16 p = vload16(0, param + i), g = vload16(0, grad + i), b = (float16)(0.0f);
        if (has_buffer) b = vload16(0, buffer + i);
        if (has_terms) g += vload16(0, term + i);
        SGD(p, b, g);
        vstore16(p, 0, param + i);
        if (has_buffer) vstore16(b, 0, buffer + i);
    }
    for (; i < end; i++) {
        float p = param[i], g = grad[i], b = has_buffer ? buffer[i] : 0.0f;
        if (has_terms) g += term[i];
        SGD(p, b, g);
        param[i] = p;
        if (has_buffer) buffer[i] = b;
    }
}

#define ADAM_SLICE(j)                                                                                        \
    __global float *restrict param##j, __global float *restrict exp_avg##j,                                  \
        __global float *restrict exp_avg_sq##j, __global const float *restrict grad##j,                      \
        __global const float *restrict term##j,
#define ADAM_FIND(j)                                                                                         \
    FIND(j, param = param##j; exp_avg = exp_avg##j; exp_avg_sq = exp_avg_sq##j; grad = grad##j;              \
         term = term##j;)
__kernel void KERNEL(adam_update)(EACH6(ADAM_SLICE) __global const float *restrict hyper,
                                  __global const float *restrict clip, EACH6(SIZE) int count, int has_clip, int has_terms, float beta1, float rest1,
                                  float beta2, float rest2, float eps, float coupled_decay,
                                  float decoupled_decay) {
    int item = (int)get_global_id(0), i = 0, n = 0;
    __global float *param = 0, *exp_avg = 0, *exp_avg_sq = 0;
    __global const float *grad = 0, *term = 0;
    EACH6(ADAM_FIND)
    int end = n - i > count ? i + count : n;
    float keep = 1.0f - hyper[0] * decoupled_decay, step_size = hyper[2], correction = hyper[3];
    float factor = has_clip ? clip[0] : 1.0f;
    if (factor < 0.0f) return;
    for (; i + 16 <= end; i += 16) {
        float16 p = vload16(0, param + i), g = vload16(0, grad + i);
        float16 m = vload16(0, exp_avg + i), v = vload16(0, exp_avg_sq + i);
        if (has_terms) g += vload16(0, term + i);
        ADAM(p, m, v, g);
        vstore16(p, 0, param + i);
        vstore16(m, 0, exp_avg + i);
        vstore16(v, 0, exp_avg_sq + i);
    }
    for (; i < end; i++) {
        float p = param[i], g = grad[i], m = exp_avg[i], v = exp_avg_sq[i];
        if (has_terms) g += term[i];
        ADAM(p, m, v, g);
        param[i] = p;
        exp_avg[i] = m;
        exp_avg_sq[i] = v;
    }
}
