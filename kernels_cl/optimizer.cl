// SPDX-License-Identifier: Apache-2.0
// Updates of parameters p from their gradients, in place: of SLICES parameters, each a slice of the launch.
//
//   sgd_update, adam_update    COUNT elements of one slice to a group of ITEMS work-items, neighbours to neighbours, WIDE at a time;
//                              what is left at the slice's end one by one. Slice j has n<j> elements, and its groups follow those
//                              of the slices before it
//
//   assign_update              the same for values v that targets t take: t = v, or with keep above 0 and not in the first step
//                              t = keep * t + rest * v
//
// SLICES    1 to 16, default 1
// ITEMS     work-items that share COUNT elements: those of a group, or 1 (default): in groups of any size
// COUNT     a power of two, a multiple of ITEMS * WIDE; default 1
// WIDE      floats that are loaded at once: 16, 4 (tensors are aligned to more) or 1 (default)
//
// hyper     0 learning rate, 1 one in the first step and else zero, 2 learning rate / (1 - beta1^t), 3 sqrt(1 - beta2^t)
// lr_factor of the learning rate, for the parameters of this launch
// clip      [1], the gradients' factor, negative: nothing is updated; has_clip 0: not there
// grad<j>   the gradient; with has_terms its first term, and the gradient is grad<j> + term<j>
#define SLICES 1
#define ITEMS 1
#define COUNT 1
#define WIDE 1

// The formulas, for a float and vectors alike. Source: torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW.
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

#define GET_1(p) *(p)
#define PUT_1(v, p) *(p) = v
#define GET_4(p) *(__global const float4 *)(p)
#define PUT_4(v, p) *(__global float4 *)(p) = v
#define GET_16(p) vload16(0, p)
#define PUT_16(v, p) vstore16(v, 0, p)
#define FLOATS_1 float
#define FLOATS_4 float4
#define FLOATS_16 float16

#if ITEMS == 1
#define GROUP
#define BEGIN int slice = (int)get_global_id(0), id = 0, i = 0, n = 0
#else
#define GROUP __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
#define BEGIN int slice = (int)get_group_id(0), id = (int)get_local_id(0), i = 0, n = 0
#endif
#define SIZE(j) int n##j,
// `slice` counts groups from the slice's first; the slice that it lies in sets i, its first element, and n, where the slice ends.
// Below 0: it is found.
#define FIND(j, take)                                                                                        \
    if (slice >= 0) {                                                                                        \
        const int groups = n##j / COUNT + (n##j % COUNT != 0);                                               \
        if (slice < groups) {                                                                                \
            take i = slice * COUNT;                                                                          \
            n = n##j;                                                                                        \
        }                                                                                                    \
        slice -= groups;                                                                                     \
    }
// What an item does: STEP(width) does elements from i on.
#define WALK(STEP)                                                                                           \
    const int end = n - i > COUNT ? i + COUNT : n, single = end - (end - i) % WIDE;                          \
    for (i += id * WIDE; i < single; i += ITEMS * WIDE) STEP(WIDE)                                           \
    for (i = single + id; i < end; i += ITEMS) STEP(1)

#define SGD_SLICE(j)                                                                                         \
    __global float *restrict param##j, __global float *restrict buffer##j,                                   \
        __global const float *restrict grad##j, __global const float *restrict term##j,
#define SGD_FIND(j) FIND(j, param = param##j; buffer = buffer##j; grad = grad##j; term = term##j;)
#define SGD_STEP(width) SGD_OF(PASTE(FLOATS_, width), PASTE(GET_, width), PASTE(PUT_, width))
#define SGD_OF(T, GET, PUT)                                                                                  \
    {                                                                                                        \
        T p = GET(param + i), g = GET(grad + i), b = (T)(0.0f);                                              \
        if (has_buffer) b = GET(buffer + i);                                                                 \
        if (has_terms) g += GET(term + i);                                                                   \
        SGD(p, b, g)                                                                                         \
        PUT(p, param + i);                                                                                   \
        if (has_buffer) PUT(b, buffer + i);                                                                  \
    }
__kernel GROUP void KERNEL(sgd_update)(EACH_SLICE(SGD_SLICE) __global const float *restrict hyper,
                                       __global const float *restrict clip, EACH_SLICE(SIZE) int has_clip,
                                       int has_terms, int has_buffer, int nesterov, float momentum,
                                       float undamped, float weight_decay, float lr_factor) {
    BEGIN;
    __global float *param = 0, *buffer = 0;
    __global const float *grad = 0, *term = 0;
    EACH_SLICE(SGD_FIND)
    const float lr = hyper[0] * lr_factor, factor = has_clip ? clip[0] : 1.0f;
    const int first = hyper[1] > 0.5f;
    if (factor < 0.0f) return;
    WALK(SGD_STEP)
}

#define ADAM_SLICE(j)                                                                                        \
    __global float *restrict param##j, __global float *restrict exp_avg##j,                                  \
        __global float *restrict exp_avg_sq##j, __global const float *restrict grad##j,                      \
        __global const float *restrict term##j,
#define ADAM_FIND(j)                                                                                         \
    FIND(j, param = param##j; exp_avg = exp_avg##j; exp_avg_sq = exp_avg_sq##j; grad = grad##j;              \
         term = term##j;)
#define ADAM_STEP(width) ADAM_OF(PASTE(FLOATS_, width), PASTE(GET_, width), PASTE(PUT_, width))
#define ADAM_OF(T, GET, PUT)                                                                                 \
    {                                                                                                        \
        T p = GET(param + i), g = GET(grad + i), m = GET(exp_avg + i), v = GET(exp_avg_sq + i);              \
        if (has_terms) g += GET(term + i);                                                                   \
        ADAM(p, m, v, g)                                                                                     \
        PUT(p, param + i);                                                                                   \
        PUT(m, exp_avg + i);                                                                                 \
        PUT(v, exp_avg_sq + i);                                                                              \
    }
__kernel GROUP void KERNEL(adam_update)(EACH_SLICE(ADAM_SLICE) __global const float *restrict hyper,
                                        __global const float *restrict clip, EACH_SLICE(SIZE) int has_clip,
                                        int has_terms, float beta1, float rest1, float beta2, float rest2,
                                        float eps, float coupled_decay, float decoupled_decay,
                                        float lr_factor) {
    BEGIN;
    __global float *param = 0, *exp_avg = 0, *exp_avg_sq = 0;
    __global const float *grad = 0, *term = 0;
    EACH_SLICE(ADAM_FIND)
    const float keep = 1.0f - hyper[0] * lr_factor * decoupled_decay, step_size = hyper[2] * lr_factor, correction = hyper[3];
    const float factor = has_clip ? clip[0] : 1.0f;
    if (factor < 0.0f) return;
    WALK(ADAM_STEP)
}

#define ASSIGN_SLICE(j) __global float *restrict target##j, __global const float *restrict value##j,
#define ASSIGN_FIND(j) FIND(j, target = target##j; value = value##j;)
#define ASSIGN_STEP(width) ASSIGN_OF(PASTE(FLOATS_, width), PASTE(GET_, width), PASTE(PUT_, width))
#define ASSIGN_OF(T, GET, PUT)                                                                               \
    {                                                                                                        \
        T v = GET(value + i);                                                                                \
        if (mixes) v = keep * GET(target + i) + rest * v;                                                    \
        PUT(v, target + i);                                                                                  \
    }
__kernel GROUP void KERNEL(assign_update)(EACH_SLICE(ASSIGN_SLICE) __global const float *restrict hyper,
                                          __global const float *restrict clip, EACH_SLICE(SIZE) int has_clip,
                                          float keep, float rest) {
    BEGIN;
    __global float *target = 0;
    __global const float *value = 0;
    EACH_SLICE(ASSIGN_FIND)
    const int mixes = keep > 0.0f && hyper[1] <= 0.5f;
    if (has_clip && clip[0] < 0.0f) return;
    WALK(ASSIGN_STEP)
}
