// SPDX-License-Identifier: Apache-2.0
// Layer normalisation: x is n_rows rows of D elements, each normalised by itself. T_X, T_Y,
// T_DX: how x, y and dy, dx are stored, float (default), f16 or bf16.
//
//   layer_norm                one work-item per row: mean, rstd = 1 / sqrt(var + eps), y = (x - mean) * rstd * weight + bias
//   layer_norm_backward       one per row: with g = dy * weight and x_hat = (x - mean) * rstd,
//                             dx = rstd * (g - mean(g) - x_hat * mean(g * x_hat))
//   layer_norm_sums           one per (block of `block` rows, column): parts[block][0] = sum(dy * x_hat), [1] = sum(dy)
//   layer_norm_join           one per column: dweight and dbias from all blocks' parts, in their order
// For rows that are too long for one work-item (long_axis.cl makes their moments, and joins sums):
//   layer_norm_long           one work-item per element; stats: mean of each row, then the sum of squared differences from it
//   layer_norm_long_sums      one per (row, part of `chunk` elements): parts[row][part] = sum(g), then all of sum(g * x_hat)
//   layer_norm_long_backward  one per element; sums: of g for each row, then of g * x_hat
// For devices with wide vectors, each work-item doing `rows` rows, sixteen elements at a time:
//   layer_norm_rows, layer_norm_rows_backward
// and sixteen columns at a time:
//   layer_norm_columns        as layer_norm_sums
// For devices with lanes, a group of ITEMS a row, which stays in registers, PER elements an item, D <= ITEMS*PER:
//   layer_norm_groups, layer_norm_groups_backward
//
// has_*   0: the pointer before is not there
// ITEMS, PER  a power of two, and any number; default 64, 4. Local memory: 8*ITEMS bytes
// The variance takes a second pass about the mean.
#ifndef KERNEL
#define KERNEL(name) name
#endif
#ifndef T_X
#define T_X float
#endif
#ifndef T_Y
#define T_Y float
#endif
#ifndef T_DX
#define T_DX float
#endif

#ifndef ITEMS
#define ITEMS 64
#endif
#ifndef PER
#define PER 4
#endif

__kernel void KERNEL(layer_norm)(__global T_Y *restrict y, __global float *restrict means,
                                 __global float *restrict rstds, __global const T_X *restrict x,
                                 __global const float *restrict weight, __global const float *restrict bias, int n_rows,
                                 int D, int has_weight, int has_bias, float eps) {
    int r = (int)get_global_id(0);
    if (r >= n_rows) return;
    __global const T_X *from = x + r * D;
    float sum = 0.0f, square = 0.0f;
    for (int d = 0; d < D; d++) sum += LOAD(T_X, from + d);
    float mean = sum / (float)D;
    for (int d = 0; d < D; d++) square += (LOAD(T_X, from + d) - mean) * (LOAD(T_X, from + d) - mean);
    float rstd = 1.0f / sqrt(square / (float)D + eps);
    means[r] = mean;
    rstds[r] = rstd;
    for (int d = 0; d < D; d++) {
        float v = (LOAD(T_X, from + d) - mean) * rstd;
        if (has_weight) v *= weight[d];
        if (has_bias) v += bias[d];
        STORE(T_Y, v, y + r * D + d);
    }
}

__kernel void KERNEL(layer_norm_backward)(__global T_DX *restrict dx, __global const T_Y *restrict dy,
                                          __global const T_X *restrict x, __global const float *restrict weight,
                                          __global const float *restrict means, __global const float *restrict rstds,
                                          int n_rows, int D, int has_weight) {
    int r = (int)get_global_id(0);
    if (r >= n_rows) return;
    float mean = means[r], rstd = rstds[r], sum = 0.0f, product = 0.0f;
    for (int d = 0; d < D; d++) {
        float g = has_weight ? LOAD(T_Y, dy + r * D + d) * weight[d] : LOAD(T_Y, dy + r * D + d);
        sum += g;
        product += g * ((LOAD(T_X, x + r * D + d) - mean) * rstd);
    }
    sum /= (float)D;
    product /= (float)D;
    for (int d = 0; d < D; d++) {
        float g = has_weight ? LOAD(T_Y, dy + r * D + d) * weight[d] : LOAD(T_Y, dy + r * D + d);
        STORE(T_DX, rstd * (g - sum - (LOAD(T_X, x + r * D + d) - mean) * rstd * product), dx + r * D + d);
    }
}

__kernel void KERNEL(layer_norm_sums)(__global float *restrict parts, __global const T_Y *restrict dy,
                                      __global const T_X *restrict x, __global const float *restrict means,
                                      __global const float *restrict rstds, int n_rows, int block, int D) {
    int item = (int)get_global_id(0), d = item % D, b = item / D;
    if (b * block >= n_rows) return;
    float product = 0.0f, sum = 0.0f;
    for (int r = b * block; r < min((b + 1) * block, n_rows); r++) {
        product += LOAD(T_Y, dy + r * D + d) * ((LOAD(T_X, x + r * D + d) - means[r]) * rstds[r]);
        sum += LOAD(T_Y, dy + r * D + d);
    }
    parts[b * 2 * D + d] = product;
    parts[(b * 2 + 1) * D + d] = sum;
}

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

// ---- rows too long for one work-item ----

__kernel void KERNEL(layer_norm_long)(__global T_Y *restrict y, __global float *restrict means,
                                      __global float *restrict rstds, __global const T_X *restrict x,
                                      __global const float *restrict weight, __global const float *restrict bias,
                                      __global const float *restrict stats, int n_rows, int D, int has_weight,
                                      int has_bias, float eps) {
    int i = (int)get_global_id(0), r = i / D, d = i % D;
    if (r >= n_rows) return;
    float mean = stats[r], rstd = 1.0f / sqrt(stats[n_rows + r] / (float)D + eps);
    if (d == 0) {
        means[r] = mean;
        rstds[r] = rstd;
    }
    float v = (LOAD(T_X, x + i) - mean) * rstd;
    if (has_weight) v *= weight[d];
    if (has_bias) v += bias[d];
    STORE(T_Y, v, y + i);
}

__kernel void KERNEL(layer_norm_long_sums)(__global float *restrict parts, __global const T_Y *restrict dy,
                                           __global const T_X *restrict x, __global const float *restrict weight,
                                           __global const float *restrict means, __global const float *restrict rstds,
                                           int n_rows, int D, int has_weight, int chunk, int chunks) {
    int item = (int)get_global_id(0), r = item / chunks, first = item % chunks * chunk;
    if (r >= n_rows) return;
    float sum = 0.0f, product = 0.0f;
    for (int block = first; block < min(first + chunk, D); block += 64) {
        float some = 0.0f, products = 0.0f;
        for (int d = block; d < min(min(block + 64, first + chunk), D); d++) {
            float g = LOAD(T_Y, dy + r * D + d);
            if (has_weight) g *= weight[d];
            some += g;
            products += g * ((LOAD(T_X, x + r * D + d) - means[r]) * rstds[r]);
        }
        sum += some;
        product += products;
    }
    parts[item] = sum;
    parts[n_rows * chunks + item] = product;
}

__kernel void KERNEL(layer_norm_long_backward)(__global T_DX *restrict dx, __global const T_Y *restrict dy,
                                               __global const T_X *restrict x, __global const float *restrict weight,
                                               __global const float *restrict means,
                                               __global const float *restrict rstds,
                                               __global const float *restrict sums, int n_rows, int D, int has_weight) {
    int i = (int)get_global_id(0), r = i / D, d = i % D;
    if (r >= n_rows) return;
    float x_hat = (LOAD(T_X, x + i) - means[r]) * rstds[r];
    float g = has_weight ? LOAD(T_Y, dy + i) * weight[d] : LOAD(T_Y, dy + i);
    float v = g - sums[r] / (float)D - x_hat * (sums[n_rows + r] / (float)D);
    STORE(T_DX, rstds[r] * v, dx + i);
}

// ---- for devices with wide vectors ----

float KERNEL(layer_norm_total)(float16 v) {
    float8 a = v.lo + v.hi;
    float4 b = a.lo + a.hi;
    float2 c = b.lo + b.hi;
    return c.x + c.y;
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
        float16 sums = (float16)(0.0f), squares = (float16)(0.0f);
        int d;
        for (d = 0; d + 16 <= D; d += 16) sums += VLOAD(T_X, 16, from + d);
        for (; d < D; d++) sum += LOAD(T_X, from + d);
        float mean = (sum + KERNEL(layer_norm_total)(sums)) / (float)D;
        for (d = 0; d + 16 <= D; d += 16) {
            float16 v = VLOAD(T_X, 16, from + d) - mean;
            squares += v * v;
        }
        for (; d < D; d++) square += (LOAD(T_X, from + d) - mean) * (LOAD(T_X, from + d) - mean);
        float rstd = 1.0f / sqrt((square + KERNEL(layer_norm_total)(squares)) / (float)D + eps);
        means[r] = mean;
        rstds[r] = rstd;
        for (d = 0; d + 16 <= D; d += 16) {
            float16 v = (VLOAD(T_X, 16, from + d) - mean) * rstd;
            if (has_weight) v *= vload16(0, weight + d);
            if (has_bias) v += vload16(0, bias + d);
            VSTORE(T_Y, 16, v, to + d);
        }
        for (; d < D; d++) {
            float v = (LOAD(T_X, from + d) - mean) * rstd;
            if (has_weight) v *= weight[d];
            if (has_bias) v += bias[d];
            STORE(T_Y, v, to + d);
        }
    }
}

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
        float16 sums = (float16)(0.0f), products = (float16)(0.0f);
        int d;
        for (d = 0; d + 16 <= D; d += 16) {
            float16 g = VLOAD(T_Y, 16, up + d);
            if (has_weight) g *= vload16(0, weight + d);
            sums += g;
            products += g * ((VLOAD(T_X, 16, from + d) - mean) * rstd);
        }
        for (; d < D; d++) {
            float g = has_weight ? LOAD(T_Y, up + d) * weight[d] : LOAD(T_Y, up + d);
            sum += g;
            product += g * ((LOAD(T_X, from + d) - mean) * rstd);
        }
        sum = (sum + KERNEL(layer_norm_total)(sums)) / (float)D;
        product = (product + KERNEL(layer_norm_total)(products)) / (float)D;
        for (d = 0; d + 16 <= D; d += 16) {
            float16 g = VLOAD(T_Y, 16, up + d);
            if (has_weight) g *= vload16(0, weight + d);
            VSTORE(T_DX, 16, rstd * (g - sum - (VLOAD(T_X, 16, from + d) - mean) * rstd * product), to + d);
        }
        for (; d < D; d++) {
            float g = has_weight ? LOAD(T_Y, up + d) * weight[d] : LOAD(T_Y, up + d);
            STORE(T_DX, rstd * (g - sum - (LOAD(T_X, from + d) - mean) * rstd * product), to + d);
        }
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

// ---- groups ----

// The sums of what all items of a group have, by a tree.
float2 KERNEL(layer_norm_tree)(__local float2 *tree, int id, float2 v) {
    tree[id] = v;
    for (int apart = ITEMS / 2; apart > 0; apart /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (id < apart) tree[id] += tree[id + apart];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    v = tree[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    return v;
}

// An item's elements of a row, ITEMS apart: number k is d, if that is below D.
#define EACH_OF_ROW(body)                                                                                    \
    _Pragma("unroll") for (int k = 0; k < PER; k++) {                                                        \
        const int d = id + k * ITEMS;                                                                        \
        if (d < D) {                                                                                         \
            body;                                                                                            \
        }                                                                                                    \
    }

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void
KERNEL(layer_norm_groups)(__global T_Y *restrict y, __global float *restrict means, __global float *restrict rstds,
                          __global const T_X *restrict x, __global const float *restrict weight,
                          __global const float *restrict bias, int D, int has_weight, int has_bias, float eps) {
    __local float2 tree[ITEMS];
    const int id = (int)get_local_id(0), r = (int)get_group_id(0);
    float values[PER], sum = 0.0f, square = 0.0f;
    x += (clv_offset)r * D;
    y += (clv_offset)r * D;
    EACH_OF_ROW(values[k] = LOAD(T_X, x + d); sum += values[k])
    const float mean = KERNEL(layer_norm_tree)(tree, id, (float2)(sum, 0.0f)).x / (float)D;
    EACH_OF_ROW(values[k] -= mean; square += values[k] * values[k])
    const float rstd = 1.0f / sqrt(KERNEL(layer_norm_tree)(tree, id, (float2)(square, 0.0f)).x / (float)D + eps);
    if (id == 0) {
        means[r] = mean;
        rstds[r] = rstd;
    }
    EACH_OF_ROW(float v = values[k] * rstd; if (has_weight) v *= weight[d]; if (has_bias) v += bias[d]; STORE(T_Y, v, y + d))
}

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void
KERNEL(layer_norm_groups_backward)(__global T_DX *restrict dx, __global const T_Y *restrict dy,
                                   __global const T_X *restrict x, __global const float *restrict weight,
                                   __global const float *restrict means, __global const float *restrict rstds, int D,
                                   int has_weight) {
    __local float2 tree[ITEMS];
    const int id = (int)get_local_id(0), r = (int)get_group_id(0);
    const float mean = means[r], rstd = rstds[r];
    float gs[PER], hats[PER];
    float2 sums = (float2)(0.0f);
    dy += (clv_offset)r * D;
    x += (clv_offset)r * D;
    dx += (clv_offset)r * D;
    EACH_OF_ROW(gs[k] = LOAD(T_Y, dy + d); if (has_weight) gs[k] *= weight[d]; hats[k] = (LOAD(T_X, x + d) - mean) * rstd;
                sums += (float2)(gs[k], gs[k] * hats[k]))
    sums = KERNEL(layer_norm_tree)(tree, id, sums) / (float)D;
    EACH_OF_ROW(STORE(T_DX, rstd * (gs[k] - sums.x - hats[k] * sums.y), dx + d))
}
