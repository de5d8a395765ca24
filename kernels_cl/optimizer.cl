// SPDX-License-Identifier: Apache-2.0
// Updates of parameters p from their gradients, in place: of SLICES parameters, each a slice of the launch.
//
//   sgd_update, adam_update, rmsprop_update, adagrad_update, lion_update
//                              COUNT elements of one slice to a group of ITEMS work-items, neighbours to neighbours, WIDE at a time;
//                              what is left at the slice's end one by one. Slice j has n<j> elements, and its groups follow those
//                              of the slices before it
//
//   lamb_moments, lamb_trust, lamb_update
//                              LAMB in three launches: averages, and of each group the squares of p and of its step, as two parts of
//                              norms; of each slice, by a group or an item, the ratio of the norms; the step times that
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

// The formulas, for a float and vectors alike. Source: torch.optim.SGD, Adam, AdamW, RMSprop, Adagrad; arXiv:2302.06675 (Lion);
// arXiv:1904.00962 (LAMB).
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

#define RMSPROP(T, p, s, m, b, g)                                                                            \
    {                                                                                                        \
        g = g * factor + weight_decay * p;                                                                   \
        s = alpha * s + rest * (g * g);                                                                      \
        m += rest * (g - m);                                                                                 \
        g = g / (sqrt(has_means ? fmax(s - m * m, (T)(0.0f)) : s) + eps);                                    \
        b = momentum * b + g;                                                                                \
        p -= lr * (has_buffer ? b : g);                                                                      \
    }
#define ADAGRAD(T, p, s, g)                                                                                  \
    {                                                                                                        \
        g = g * factor + weight_decay * p;                                                                   \
        s += g * g;                                                                                          \
        p -= lr * (g / (sqrt(s) + eps));                                                                     \
    }
// The sign of what is no number is no number, so that it shows.
#define SIGN(T, x) ((x) > (T)(0.0f) ? (T)(1.0f) : (x) < (T)(0.0f) ? (T)(-1.0f) : (x))
#define LION(T, p, m, g)                                                                                     \
    {                                                                                                        \
        g = g * factor;                                                                                      \
        T u = beta1 * m + rest1 * g;                                                                         \
        u = SIGN(T, u);                                                                                      \
        p -= lr * (u + weight_decay * p);                                                                    \
        m = beta2 * m + rest2 * g;                                                                           \
    }
#define LAMB(p, m, v) (m / bias / (sqrt(v) / correction + eps) + weight_decay * p)

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

#define RMSPROP_SLICE(j)                                                                                     \
    __global float *restrict param##j, __global float *restrict square_avg##j,                               \
        __global float *restrict grad_avg##j, __global float *restrict buffer##j,                            \
        __global const float *restrict grad##j, __global const float *restrict term##j,
#define RMSPROP_FIND(j)                                                                                      \
    FIND(j, param = param##j; square_avg = square_avg##j; grad_avg = grad_avg##j; buffer = buffer##j;        \
         grad = grad##j; term = term##j;)
#define RMSPROP_STEP(width) RMSPROP_OF(PASTE(FLOATS_, width), PASTE(GET_, width), PASTE(PUT_, width))
#define RMSPROP_OF(T, GET, PUT)                                                                              \
    {                                                                                                        \
        T p = GET(param + i), g = GET(grad + i), s = GET(square_avg + i), m = (T)(0.0f), b = (T)(0.0f);      \
        if (has_means) m = GET(grad_avg + i);                                                                \
        if (has_buffer) b = GET(buffer + i);                                                                 \
        if (has_terms) g += GET(term + i);                                                                   \
        RMSPROP(T, p, s, m, b, g)                                                                            \
        PUT(p, param + i);                                                                                   \
        PUT(s, square_avg + i);                                                                              \
        if (has_means) PUT(m, grad_avg + i);                                                                 \
        if (has_buffer) PUT(b, buffer + i);                                                                  \
    }
__kernel GROUP void KERNEL(rmsprop_update)(EACH_SLICE(RMSPROP_SLICE) __global const float *restrict hyper,
                                           __global const float *restrict clip, EACH_SLICE(SIZE) int has_clip,
                                           int has_terms, int has_means, int has_buffer, float alpha, float rest,
                                           float momentum, float eps, float weight_decay, float lr_factor) {
    BEGIN;
    __global float *param = 0, *square_avg = 0, *grad_avg = 0, *buffer = 0;
    __global const float *grad = 0, *term = 0;
    EACH_SLICE(RMSPROP_FIND)
    const float lr = hyper[0] * lr_factor, factor = has_clip ? clip[0] : 1.0f;
    if (factor < 0.0f) return;
    WALK(RMSPROP_STEP)
}

// Updates with one state.
#define ONE_OF(T, GET, PUT, FORMULA)                                                                         \
    {                                                                                                        \
        T p = GET(param + i), g = GET(grad + i), b = GET(buffer + i);                                        \
        if (has_terms) g += GET(term + i);                                                                   \
        FORMULA(T, p, b, g)                                                                                  \
        PUT(p, param + i);                                                                                   \
        PUT(b, buffer + i);                                                                                  \
    }
#define ADAGRAD_STEP(width) ONE_OF(PASTE(FLOATS_, width), PASTE(GET_, width), PASTE(PUT_, width), ADAGRAD)
__kernel GROUP void KERNEL(adagrad_update)(EACH_SLICE(SGD_SLICE) __global const float *restrict hyper,
                                           __global const float *restrict clip, EACH_SLICE(SIZE) int has_clip,
                                           int has_terms, float eps, float weight_decay, float lr_factor) {
    BEGIN;
    __global float *param = 0, *buffer = 0;
    __global const float *grad = 0, *term = 0;
    EACH_SLICE(SGD_FIND)
    const float lr = hyper[0] * lr_factor, factor = has_clip ? clip[0] : 1.0f;
    if (factor < 0.0f) return;
    WALK(ADAGRAD_STEP)
}

#define LION_STEP(width) ONE_OF(PASTE(FLOATS_, width), PASTE(GET_, width), PASTE(PUT_, width), LION)
__kernel GROUP void KERNEL(lion_update)(EACH_SLICE(SGD_SLICE) __global const float *restrict hyper,
                                        __global const float *restrict clip, EACH_SLICE(SIZE) int has_clip,
                                        int has_terms, float beta1, float rest1, float beta2, float rest2,
                                        float weight_decay, float lr_factor) {
    BEGIN;
    __global float *param = 0, *buffer = 0;
    __global const float *grad = 0, *term = 0;
    EACH_SLICE(SGD_FIND)
    const float lr = hyper[0] * lr_factor, factor = has_clip ? clip[0] : 1.0f;
    if (factor < 0.0f) return;
    WALK(LION_STEP)
}

// The sum of a vector's floats, and of all items of a group.
#define SUM_1(v) (v)
#define SUM_4(v) (((v).x + (v).y) + ((v).z + (v).w))
#define SUM_16(v) (SUM_4((v).lo.lo) + SUM_4((v).lo.hi)) + (SUM_4((v).hi.lo) + SUM_4((v).hi.hi))
#if ITEMS == 1
#define TREES
#define TREE(sum)
#else
#define TREES __local float tree[ITEMS]
#define TREE(sum)                                                                                            \
    tree[id] = sum;                                                                                          \
    for (int apart = ITEMS / 2; apart > 0; apart /= 2) {                                                     \
        TREE_MEET(2 * apart)                                                                                 \
        if (id < apart) tree[id] += tree[id + apart];                                                        \
    }                                                                                                        \
    sum = tree[0];                                                                                           \
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
#define LAMB_SCALARS                                                                                         \
    const float bias = hyper[2] != 0.0f ? hyper[0] / hyper[2] : 1.0f, correction = hyper[3],                 \
                factor = has_clip ? clip[0] : 1.0f
#define MOMENTS_STEP(width)                                                                                  \
    MOMENTS_OF(PASTE(FLOATS_, width), PASTE(GET_, width), PASTE(PUT_, width), PASTE(SUM_, width))
#define MOMENTS_OF(T, GET, PUT, SUM)                                                                         \
    {                                                                                                        \
        T p = GET(param + i), g = GET(grad + i), m = GET(exp_avg + i), v = GET(exp_avg_sq + i);              \
        if (has_terms) g += GET(term + i);                                                                   \
        g = g * factor;                                                                                      \
        m = beta1 * m + rest1 * g;                                                                           \
        v = beta2 * v + rest2 * (g * g);                                                                     \
        PUT(m, exp_avg + i);                                                                                 \
        PUT(v, exp_avg_sq + i);                                                                              \
        g = LAMB(p, m, v);                                                                                   \
        p = p * p;                                                                                           \
        g = g * g;                                                                                           \
        norm += SUM(p);                                                                                      \
        length += SUM(g);                                                                                    \
    }
__kernel GROUP void KERNEL(lamb_moments)(EACH_SLICE(ADAM_SLICE) __global const float *restrict hyper,
                                         __global const float *restrict clip, EACH_SLICE(SIZE) int has_clip,
                                         int has_terms, __global float *restrict norms, float beta1, float rest1,
                                         float beta2, float rest2, float eps, float weight_decay) {
    BEGIN;
    TREES;
    const int part = slice;
    float norm = 0.0f, length = 0.0f;
    __global float *param = 0, *exp_avg = 0, *exp_avg_sq = 0;
    __global const float *grad = 0, *term = 0;
    EACH_SLICE(ADAM_FIND)
    LAMB_SCALARS;
    if (factor < 0.0f || slice >= 0) return;
    WALK(MOMENTS_STEP)
    TREE(norm)
    TREE(length)
    if (id == 0) {
        norms[2 * part] = norm;
        norms[2 * part + 1] = length;
    }
}

#define TRUST_SLICE(j)                                                                                       \
    {                                                                                                        \
        const int groups = n##j / COUNT + (n##j % COUNT != 0);                                               \
        if (j < slice) i += groups;                                                                          \
        if (j == slice) n = groups;                                                                          \
    }
__kernel GROUP void KERNEL(lamb_trust)(__global const float *restrict norms, __global float *restrict trust,
                                       EACH_SLICE(SIZE) int slices) {
    BEGIN;
    TREES;
    float norm = 0.0f, length = 0.0f;
    if (slice >= slices) return;
    EACH_SLICE(TRUST_SLICE)
    for (int k = i + id; k < i + n; k += ITEMS) {
        norm += norms[2 * k];
        length += norms[2 * k + 1];
    }
    TREE(norm)
    TREE(length)
    if (id == 0) trust[slice] = norm > 0.0f && length > 0.0f ? sqrt(norm) / sqrt(length) : 1.0f;
}

#define LAMB_SLICE(j)                                                                                        \
    __global float *restrict param##j, __global const float *restrict exp_avg##j,                            \
        __global const float *restrict exp_avg_sq##j,
#define LAMB_FIND(j) FIND(j, param = param##j; exp_avg = exp_avg##j; exp_avg_sq = exp_avg_sq##j; which = j;)
#define LAMB_STEP(width) LAMB_OF(PASTE(FLOATS_, width), PASTE(GET_, width), PASTE(PUT_, width))
#define LAMB_OF(T, GET, PUT)                                                                                 \
    {                                                                                                        \
        T p = GET(param + i), m = GET(exp_avg + i), v = GET(exp_avg_sq + i);                                 \
        p -= rate * LAMB(p, m, v);                                                                           \
        PUT(p, param + i);                                                                                   \
    }
__kernel GROUP void KERNEL(lamb_update)(EACH_SLICE(LAMB_SLICE) __global const float *restrict hyper,
                                        __global const float *restrict clip, EACH_SLICE(SIZE) int has_clip,
                                        __global const float *restrict trust, float eps, float weight_decay,
                                        float lr_factor) {
    BEGIN;
    int which = 0;
    __global float *param = 0;
    __global const float *exp_avg = 0, *exp_avg_sq = 0;
    EACH_SLICE(LAMB_FIND)
    LAMB_SCALARS;
    if (factor < 0.0f) return;
    const float rate = hyper[0] * lr_factor * trust[which];
    WALK(LAMB_STEP)
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
