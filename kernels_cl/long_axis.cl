// SPDX-License-Identifier: Apache-2.0
// Walks that are too long for the loops of one work-item (README.md): each does a chunk, its partial results are joined
// by chunks again until one is left for each row. T_X, T_DY,
// T_DX: how x, dy and dx are stored, float (default), f16 or bf16.
//
// Element j of row r is at r / inner * major + r % inner * minor + j / length * far + j % length * near, j < count.
// Work-item (row, chunk) of n_items; plane p of its results at p * n_items + item.
//
//   long_softmax_part       largest element, sum(exp(x - largest))
//   long_softmax_join       n such pairs of each row to one, or to one for each chunk; the last (finish) leaves the sum
//                           (1) or its logarithm (2), NaN for rows of nothing but -infinity
//   long_softmax            one per element of [outer, D, inner]: softmax (log_form 1: its logarithm) from those
//   long_sums_part          sum(dy), sum(dy * (x - mean)); has_mean 0: mean is 0
//   long_sums_join          the same of n; finish is not looked at
//   long_softmax_backward   one per element: as softmax_backward, from those sums
//   long_moments_part       mean, sum of squared differences from it, number of elements
//   long_moments_join       the same of n (Chan, Golub, LeVeque 1983, the pairwise formula); finish is not looked at
//
// Sums run over blocks of 64, then over the blocks.
#ifndef KERNEL
#define KERNEL(name) name
#endif
#ifndef T_X
#define T_X float
#endif
#ifndef T_DY
#define T_DY float
#endif
#ifndef T_DX
#define T_DX float
#endif

#define LONG_WALK int inner, int major, int minor, int length, int far, int near
#define LONG_BEGIN                                                                                           \
    const int id = get_global_id(0);                                                                         \
    if (id >= n_items) return;                                                                               \
    const int row = id / chunks, begin = id % chunks * chunk, n = min(chunk, count - begin);                 \
    const int start =                                                                                        \
        row / inner * major + row % inner * minor + begin / length * far + begin % length * near;
#define LONG_NEXT                                                                                            \
    at += near;                                                                                              \
    if (++s == length) {                                                                                     \
        s = 0;                                                                                               \
        at += far - length * near;                                                                           \
    }
#define LONG_BLOCK(total, block)                                                                             \
    if (j % 64 == 63) {                                                                                      \
        total += block;                                                                                      \
        block = 0.0f;                                                                                        \
    }
#define LONG_JOIN_BEGIN                                                                                      \
    const int id = get_global_id(0);                                                                         \
    if (id >= n_items) return;                                                                               \
    const int begin = id % chunks * chunk, end = min(begin + chunk, count);                                  \
    const global float *first = in + id / chunks * count, *second = first + n_in;

kernel void KERNEL(long_softmax_part)(global float *restrict out, const global T_X *restrict x, int n_items,
                                      int count, int chunk, int chunks, LONG_WALK) {
    LONG_BEGIN
    float largest = -INFINITY, block = 0.0f, total = 0.0f;
    int at = start, s = begin % length;
    for (int j = 0; j < n; j++) {
        largest = fmax(largest, LOAD(T_X, x + at));
        LONG_NEXT
    }
    at = start;
    s = begin % length;
    for (int j = 0; j < n; j++) {
        const float v = LOAD(T_X, x + at);
        block += v == -INFINITY ? 0.0f : exp(v - largest); // a chunk may have nothing else
        LONG_BLOCK(total, block)
        LONG_NEXT
    }
    out[id] = largest;
    out[n_items + id] = total + block;
}

kernel void KERNEL(long_softmax_join)(global float *restrict out, const global float *restrict in,
                                      int n_items, int n_in, int count, int chunk, int chunks, int finish) {
    LONG_JOIN_BEGIN
    float largest = -INFINITY, sum = 0.0f;
    for (int j = begin; j < end; j++) largest = fmax(largest, first[j]);
    for (int j = begin; j < end; j++)
        sum += first[j] == -INFINITY ? second[j] : second[j] * exp(first[j] - largest);
    if (finish && largest == -INFINITY) sum = NAN;
    out[id] = largest;
    out[n_items + id] = finish == 2 ? log(sum) : sum;
}

kernel void KERNEL(long_softmax)(global float *restrict y, const global T_X *restrict x,
                                 const global float *restrict stats, int n, int n_rows, int D, int inner,
                                 int log_form) {
    const int i = get_global_id(0);
    if (i >= n) return;
    const int r = i / inner / D * inner + i % inner;
    const float v = LOAD(T_X, x + i) - stats[r], sum = stats[n_rows + r];
    y[i] = log_form ? v - log(sum) : exp(v) / sum;
}

kernel void KERNEL(long_sums_part)(global float *restrict out, const global T_DY *restrict dy,
                                   const global T_X *restrict x, const global float *restrict mean,
                                   int has_mean, int n_items, int count, int chunk, int chunks, LONG_WALK) {
    LONG_BEGIN
    const float m = has_mean ? mean[row] : 0.0f;
    float block = 0.0f, total = 0.0f, product = 0.0f, products = 0.0f;
    int at = start, s = begin % length;
    for (int j = 0; j < n; j++) {
        block += LOAD(T_DY, dy + at);
        product += LOAD(T_DY, dy + at) * (LOAD(T_X, x + at) - m);
        LONG_BLOCK(total, block)
        LONG_BLOCK(products, product)
        LONG_NEXT
    }
    out[id] = total + block;
    out[n_items + id] = products + product;
}

kernel void KERNEL(long_sums_join)(global float *restrict out, const global float *restrict in, int n_items,
                                   int n_in, int count, int chunk, int chunks, int finish) {
    LONG_JOIN_BEGIN
    float block = 0.0f, total = 0.0f, product = 0.0f, products = 0.0f;
    for (int j = begin; j < end; j++) {
        block += first[j];
        product += second[j];
        LONG_BLOCK(total, block)
        LONG_BLOCK(products, product)
    }
    out[id] = total + block;
    out[n_items + id] = products + product;
}

kernel void KERNEL(long_softmax_backward)(global T_DX *restrict dx, const global float *restrict dy,
                                          const global float *restrict y, const global float *restrict sums,
                                          int n, int n_rows, int D, int inner, int log_form) {
    const int i = get_global_id(0);
    if (i >= n) return;
    const int r = i / inner / D * inner + i % inner;
    STORE(T_DX, log_form ? dy[i] - exp(y[i]) * sums[r] : y[i] * (dy[i] - sums[n_rows + r]), dx + i);
}

kernel void KERNEL(long_moments_part)(global float *restrict out, const global T_X *restrict x, int n_items,
                                      int count, int chunk, int chunks, LONG_WALK) {
    LONG_BEGIN
    float block = 0.0f, total = 0.0f, square = 0.0f, squares = 0.0f;
    int at = start, s = begin % length;
    for (int j = 0; j < n; j++) {
        block += LOAD(T_X, x + at);
        LONG_BLOCK(total, block)
        LONG_NEXT
    }
    const float mean = (total + block) / (float)n;
    block = total = 0.0f; // what rounding left of the differences
    at = start;
    s = begin % length;
    for (int j = 0; j < n; j++) {
        const float d = LOAD(T_X, x + at) - mean;
        block += d;
        square += d * d;
        LONG_BLOCK(total, block)
        LONG_BLOCK(squares, square)
        LONG_NEXT
    }
    const float left = total + block;
    out[id] = mean + left / (float)n;
    out[n_items + id] = fmax(squares + square - left * (left / (float)n), 0.0f);
    out[2 * n_items + id] = (float)n;
}

kernel void KERNEL(long_moments_join)(global float *restrict out, const global float *restrict in,
                                      int n_items, int n_in, int count, int chunk, int chunks, int finish) {
    LONG_JOIN_BEGIN
    const global float *third = second + n_in;
    float elements = 0.0f, sum = 0.0f, left = 0.0f, apart = 0.0f, squares = 0.0f;
    for (int j = begin; j < end; j++) elements += third[j];
    for (int j = begin; j < end; j++) sum += first[j] * (third[j] / elements);
    for (int j = begin; j < end; j++) {
        const float d = first[j] - sum;
        left += d * third[j];
        apart += d * d * third[j];
        squares += second[j];
    }
    out[id] = sum + left / elements;
    out[n_items + id] = squares + fmax(apart - left * (left / elements), 0.0f);
    out[2 * n_items + id] = elements;
}
