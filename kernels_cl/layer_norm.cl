// SPDX-License-Identifier: Apache-2.0
// Layer normalisation: x is n_rows rows of D elements, each normalised by itself. T_X, T_Y,
// T_DX: how x, y and dy, dx are stored, float (default), f16 or bf16.
//
// For devices with wide vectors (rows.cl does it for the others), each work-item doing `rows` rows, sixteen elements at a time:
//   layer_norm_rows           mean, rstd = 1 / sqrt(var + eps), y = (x - mean) * rstd * weight + bias
//   layer_norm_rows_backward  with g = dy * weight and x_hat = (x - mean) * rstd,
//                             dx = rstd * (g - mean(g) - x_hat * mean(g * x_hat))
// and sixteen columns at a time:
//   layer_norm_columns        one per (block of `block` rows, columns): parts[block][0] = sum(dy * x_hat), [1] = sum(dy)
//   layer_norm_join           one per column: dweight and dbias from all blocks' parts, in their order
//
// has_*   0: the pointer before is not there
// The variance takes a second pass about the mean.
#define T_X float
#define T_Y float
#define T_DX float

__kernel void KERNEL(layer_norm_join)(__global float *restrict dweight, __global float *restrict dbias,
                                      __global const float *restrict parts, int n_blocks, int D) {
    int d = (int)get_global_id(0);
    if (d >= D) return;
    float product = 0.0f, sum = 0.0f;
    for (int b = 0; b < n_blocks; b++) {
        product += parts[b * 2 * D + d];
        sum += parts[(b * 2 + 1) * D + d];
    }
    dweight[d] = product;
    dbias[d] = sum;
}

#define ADD(n) sum##n += LOAD##n(T_X, from + d);
#define ADD_SQUARE(n)                                                                                        \
    {                                                                                                        \
        const float##n v = LOAD##n(T_X, from + d) - mean;                                                    \
        square##n += v * v;                                                                                  \
    }
#define PUT_Y(n)                                                                                             \
    {                                                                                                        \
        float##n v = (LOAD##n(T_X, from + d) - mean) * rstd;                                                 \
        if (has_weight) v *= LOAD##n(float, weight + d);                                                     \
        if (has_bias) v += LOAD##n(float, bias + d);                                                         \
        STORE##n(T_Y, v, to + d);                                                                            \
    }
__kernel void KERNEL(layer_norm_rows)(__global T_Y *restrict y, __global float *restrict means,
                                      __global float *restrict rstds, __global const T_X *restrict x,
                                      __global const float *restrict weight, __global const float *restrict bias,
                                      int n_rows, int rows, int D, int has_weight, int has_bias, float eps) {
    int first = (int)get_global_id(0) * rows, last = min(first + rows, n_rows);
    for (int r = first; r < last; r++) {
        __global const T_X *from = x + r * D;
        __global T_Y *to = y + r * D;
        float sum = 0.0f, square = 0.0f;
        float16 sum16 = (float16)(0.0f), square16 = (float16)(0.0f);
        int d;
        BY_SIXTEEN(d, D, ADD)
        float mean = (sum + clv_sum16(sum16)) / (float)D;
        BY_SIXTEEN(d, D, ADD_SQUARE)
        float rstd = 1.0f / sqrt((square + clv_sum16(square16)) / (float)D + eps);
        means[r] = mean;
        rstds[r] = rstd;
        BY_SIXTEEN(d, D, PUT_Y)
    }
}

#define G(n) (has_weight ? LOAD##n(T_Y, up + d) * LOAD##n(float, weight + d) : LOAD##n(T_Y, up + d))
#define X_HAT(n) ((LOAD##n(T_X, from + d) - mean) * rstd)
#define ADD_BOTH(n)                                                                                          \
    {                                                                                                        \
        const float##n g = G(n);                                                                             \
        sum##n += g;                                                                                         \
        product##n += g * X_HAT(n);                                                                          \
    }
#define PUT_DX(n) STORE##n(T_DX, rstd * (G(n) - sum - X_HAT(n) * product), to + d);
__kernel void KERNEL(layer_norm_rows_backward)(__global T_DX *restrict dx, __global const T_Y *restrict dy,
                                               __global const T_X *restrict x, __global const float *restrict weight,
                                               __global const float *restrict means,
                                               __global const float *restrict rstds, int n_rows, int rows, int D,
                                               int has_weight) {
    int first = (int)get_global_id(0) * rows, last = min(first + rows, n_rows);
    for (int r = first; r < last; r++) {
        __global const T_X *from = x + r * D;
        __global const T_Y *up = dy + r * D;
        __global T_DX *to = dx + r * D;
        float mean = means[r], rstd = rstds[r], sum = 0.0f, product = 0.0f;
        float16 sum16 = (float16)(0.0f), product16 = (float16)(0.0f);
        int d;
        BY_SIXTEEN(d, D, ADD_BOTH)
        sum = (sum + clv_sum16(sum16)) / (float)D;
        product = (product + clv_sum16(product16)) / (float)D;
        BY_SIXTEEN(d, D, PUT_DX)
    }
}

__kernel void KERNEL(layer_norm_columns)(__global float *restrict parts, __global const T_Y *restrict dy,
                                         __global const T_X *restrict x, __global const float *restrict means,
                                         __global const float *restrict rstds, int n_rows, int block, int D) {
    int wide = (D + 15) / 16, item = (int)get_global_id(0), b = item / wide;
    if (b * block >= n_rows) return;
    int d = item % wide * 16;
    if (d + 16 > D) { // what is left of the columns, one by one
        for (; d < D; d++) {
            float one = 0.0f, all = 0.0f;
            for (int r = b * block; r < min((b + 1) * block, n_rows); r++) {
                one += LOAD(T_Y, dy + r * D + d) * ((LOAD(T_X, x + r * D + d) - means[r]) * rstds[r]);
                all += LOAD(T_Y, dy + r * D + d);
            }
            parts[b * 2 * D + d] = one;
            parts[(b * 2 + 1) * D + d] = all;
        }
        return;
    }
    float16 product = (float16)(0.0f), sum = (float16)(0.0f);
    for (int r = b * block; r < min((b + 1) * block, n_rows); r++) {
        float16 g = VLOAD(T_Y, 16, dy + r * D + d);
        product += g * ((VLOAD(T_X, 16, x + r * D + d) - means[r]) * rstds[r]);
        sum += g;
    }
    vstore16(product, 0, parts + b * 2 * D + d);
    vstore16(sum, 0, parts + (b * 2 + 1) * D + d);
}
