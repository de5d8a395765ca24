// SPDX-License-Identifier: Apache-2.0
// Batch normalisation: x is [N, C, S], S = H*W or 1; channel c has N*S elements. T_X, T_Y,
// T_DX: how x, y and dy, dx are stored, float (default), f16 or bf16. EPI_*: what is done to y besides, common/epilogue.cl.
//
// Plain, right on every device:
//   batch_norm_stats            one work-item per channel: mean, rstd = 1 / sqrt(biased var + eps), unbiased var
//   batch_norm_update           one per channel of SLICES layers: the running statistics moved towards the batch's mean and
//                               unbiased var. Layer j has C<j> channels
//   batch_norm_apply            one per element: (x - mean) * rstd * weight + bias
//   batch_norm_backward_sums    one per channel: dweight = sum(dy * x_hat), dbias = sum(dy)
//   batch_norm_backward_apply   one per element
// For devices with wide vectors, S long: a plane is the S elements of one (n, c), `rows` planes to a work-item
//   batch_norm_planes           parts[plane] = mean, parts[N*C + plane] = sum of squared differences from it
//   batch_norm_join             one work-item per channel: as _stats, from its planes
//   batch_norm_planes_apply
//   batch_norm_planes_backward  parts[plane] = sum(dy), parts[N*C + plane] = sum(dy * (x - mean))
//   batch_norm_backward_join    one work-item per channel
//   batch_norm_planes_backward_apply
// For devices with wide vectors, S == 1: sixteen channels to a work-item
//   batch_norm_columns          as _stats
//   batch_norm_columns_backward as _backward_sums
// For devices with lanes, S long: a group of ITEMS
//   batch_norm_group            does a channel: _stats and _apply. The first KEPT*ITEMS elements stay in registers,
//                               2*KEPT_LOCAL*ITEMS more in local memory, the others are read twice
//   batch_norm_group_backward   does a channel: _backward_sums and _backward_apply; of each tensor 16*ITEMS elements stay in registers
//                               and KEPT_LOCAL*ITEMS in local memory
//   batch_norm_slabs            does a slab, up to 16*ITEMS elements of a channel, of n_slabs: parts[c*n_slabs + slab] = mean,
//                               parts[(C + c)*n_slabs + slab] = sum of squared differences from it
//   batch_norm_slabs_apply      does a slab, after it joined the channel's: _stats and _apply
//   batch_norm_slabs_backward   parts alike: sum(dy), sum(dy * (x - mean))
//   batch_norm_slabs_backward_apply   _backward_sums and _backward_apply
// For devices with lanes, S at least 4: four elements to a work-item, of one channel or two
//   batch_norm_fours_apply
// ITEMS     of a group, a power of two; default 256. Local memory: 8*ITEMS*(1 + KEPT_LOCAL) bytes
// KEPT      elements of a channel that an item keeps; default 16
// KEPT_LOCAL   pairs of elements that an item keeps in local memory; default 0
// SLICES    1 to 14; default 1
//
// spread    the running variance where is_var is 1, else rstd = 1 / sqrt(var + eps)
// has_*     0: the pointer before is not there
// Sums run over planes, then over N, and the variance takes a second pass about the mean, corrected by the sum that
// rounding left there (Chan, Golub, LeVeque 1983, "Algorithms for computing the sample variance", the corrected two-pass
// formula).
#define T_X float
#define T_Y float
#define T_DX float

#define ITEMS 256
#define KEPT 16
#define KEPT_LOCAL 0
#define SLICES 1

EPILOGUE_FUNCTION(KERNEL(epilogue), float)
EPILOGUE_FUNCTION(KERNEL(epilogue4), float4)
EPILOGUE_FUNCTION(KERNEL(epilogue16), float16)

float KERNEL(batch_norm_rstd)(float spread, int is_var, float eps) {
    return is_var ? 1.0f / sqrt(spread + eps) : spread;
}

void KERNEL(batch_norm_keep)(int c, float mean, float square, float count, __global float *means,
                             __global float *rstds, __global float *vars, float eps) {
    means[c] = mean;
    rstds[c] = 1.0f / sqrt(square / count + eps);
    vars[c] = square / (count - 1.0f);
}

// Arguments of several kernels.
#define STATISTICS                                                                                           \
    __global float *restrict means, __global float *restrict rstds, __global float *restrict vars
#define AFFINE                                                                                               \
    __global const float *restrict weight, __global const float *restrict bias,                              \
        __global const float *restrict mean, __global const float *restrict spread
#define GRADIENTS                                                                                            \
    __global T_DX *dx, __global const T_Y *dy, __global const T_X *x, __global const float *restrict weight, \
        __global const float *restrict mean, __global const float *restrict spread,                          \
        __global const float *restrict dweight, __global const float *restrict dbias

#define LAYER(j)                                                                                             \
    __global float *restrict running_mean##j, __global float *restrict running_var##j,                       \
        __global const float *restrict mean##j, __global const float *restrict var##j,
#define CHANNELS(j) int C##j,
#define UPDATE(j)                                                                                            \
    if (c >= 0 && c < C##j) {                                                                                \
        if (has_mean) running_mean##j[c] = (1.0f - momentum) * running_mean##j[c] + momentum * mean##j[c];   \
        if (has_var) running_var##j[c] = (1.0f - momentum) * running_var##j[c] + momentum * var##j[c];       \
    }                                                                                                        \
    c -= C##j;
__kernel void KERNEL(batch_norm_update)(EACH_SLICE(LAYER) EACH_SLICE(CHANNELS) int has_mean, int has_var, float momentum) {
    int c = (int)get_global_id(0);
    EACH_SLICE(UPDATE)
}

__kernel void KERNEL(batch_norm_stats)(STATISTICS, __global const T_X *restrict x, int N, int C, int S,
                                       float eps) {
    int c = (int)get_global_id(0);
    if (c >= C) return;
    float count = (float)N * (float)S, sum = 0.0f, left = 0.0f, square = 0.0f;
    for (int n = 0; n < N; n++) {
        float part = 0.0f;
        for (int s = 0; s < S; s++) part += LOAD(T_X, x + (n * C + c) * S + s);
        sum += part;
    }
    float mean = sum / count;
    for (int n = 0; n < N; n++) {
        float part_left = 0.0f, part_square = 0.0f;
        for (int s = 0; s < S; s++) {
            float d = LOAD(T_X, x + (n * C + c) * S + s) - mean;
            part_left += d;
            part_square += d * d;
        }
        left += part_left;
        square += part_square;
    }
    square = fmax(square - left * (left / count), 0.0f);
    KERNEL(batch_norm_keep)
    (c, mean + left / count, square, count, means, rstds, vars, eps);
}

__kernel void KERNEL(batch_norm_apply)(__global T_Y *restrict y, __global const T_X *restrict x, AFFINE,
                                       int n, int C, int S, int has_weight, int has_bias, int is_var,
                                       float eps EPILOGUE_PARAMS) {
    int i = (int)get_global_id(0);
    if (i >= n) return;
    int c = i / S % C;
    float scale = KERNEL(batch_norm_rstd)(spread[c], is_var, eps);
    if (has_weight) scale *= weight[c];
    float v = (LOAD(T_X, x + i) - mean[c]) * scale + (has_bias ? bias[c] : 0.0f);
    STORE(T_Y, KERNEL(epilogue)(v EPILOGUE_AT(i)), y + i);
}

__kernel void KERNEL(batch_norm_fours_apply)(__global T_Y *restrict y, __global const T_X *restrict x, AFFINE,
                                             int n, int C, int S, int has_weight, int has_bias, int is_var,
                                             float eps EPILOGUE_PARAMS) {
    const int i = (int)get_global_id(0) * 4;
    if (i >= n) return;
    const int plane = i / S, c = plane % C, next = c + 1 == C ? 0 : c + 1, left = (plane + 1) * S - i;
    float2 scales = (float2)(KERNEL(batch_norm_rstd)(spread[c], is_var, eps),
                             KERNEL(batch_norm_rstd)(spread[next], is_var, eps));
    float2 shifts = (float2)(0.0f);
    if (has_weight) scales *= (float2)(weight[c], weight[next]);
    if (has_bias) shifts = (float2)(bias[c], bias[next]);
    const int4 in_next = (int4)(0, 1, 2, 3) >= left;
    const float4 m = select((float4)(mean[c]), (float4)(mean[next]), in_next);
    const float4 scale = select((float4)(scales.x), (float4)(scales.y), in_next);
    const float4 shift = select((float4)(shifts.x), (float4)(shifts.y), in_next);
    if (i + 4 <= n) {
        const float4 v = (ALOAD(T_X, 4, x + i) - m) * scale + shift;
        ASTORE(T_Y, 4, KERNEL(epilogue4)(v EPILOGUE_VECTOR_AT(4, i)), y + i);
        return;
    }
    for (int k = i; k < n; k++) {
        const float v = (LOAD(T_X, x + k) - m.x) * scale.x + shift.x; // the last elements are of one plane
        STORE(T_Y, KERNEL(epilogue)(v EPILOGUE_AT(k)), y + k);
    }
}

__kernel void
KERNEL(batch_norm_backward_sums)(__global float *restrict dweight, __global float *restrict dbias,
                                 __global const T_Y *restrict dy, __global const T_X *restrict x,
                                 __global const float *restrict mean, __global const float *restrict spread,
                                 int N, int C, int S, int is_var, float eps) {
    int c = (int)get_global_id(0);
    if (c >= C) return;
    float m = mean[c], sum = 0.0f, product = 0.0f;
    for (int n = 0; n < N; n++) {
        float part_sum = 0.0f, part_product = 0.0f;
        for (int s = 0; s < S; s++) {
            int i = (n * C + c) * S + s;
            part_sum += LOAD(T_Y, dy + i);
            part_product += LOAD(T_Y, dy + i) * (LOAD(T_X, x + i) - m);
        }
        sum += part_sum;
        product += part_product;
    }
    dbias[c] = sum;
    dweight[c] = product * KERNEL(batch_norm_rstd)(spread[c], is_var, eps);
}

// dx may lie over dy or x.
// count  N*S in training: the batch's mean and variance depend on x. 0 in evaluation: they are constants
__kernel void KERNEL(batch_norm_backward_apply)(GRADIENTS, int n, int C, int S, int has_weight, int is_var,
                                                float eps, float count) {
    int i = (int)get_global_id(0);
    if (i >= n) return;
    int c = i / S % C;
    float rstd = KERNEL(batch_norm_rstd)(spread[c], is_var, eps),
          scale = has_weight ? rstd * weight[c] : rstd;
    float g = LOAD(T_Y, dy + i);
    if (count > 0.0f) g -= (dbias[c] + (LOAD(T_X, x + i) - mean[c]) * rstd * dweight[c]) / count;
    STORE(T_DX, g * scale, dx + i);
}

// ---- planes ----

#define ADD(n) sum##n += LOAD##n(T_X, from + s);
#define ADD_DIFFERENCE(n)                                                                                    \
    {                                                                                                        \
        const float##n d = LOAD##n(T_X, from + s) - mean;                                                    \
        left##n += d;                                                                                        \
        square##n += d * d;                                                                                  \
    }
__kernel void KERNEL(batch_norm_planes)(__global float *restrict parts, __global const T_X *restrict x,
                                        int n_planes, int rows, int S) {
    int first = (int)get_global_id(0) * rows, last = min(first + rows, n_planes);
    for (int p = first; p < last; p++) {
        __global const T_X *from = x + p * S;
        int s;
        float16 sum16 = (float16)(0.0f), left16 = (float16)(0.0f), square16 = (float16)(0.0f);
        float sum = 0.0f, left = 0.0f, square = 0.0f;
        BY_SIXTEEN(s, S, ADD)
        float mean = (sum + clv_sum16_pairs(sum16)) / (float)S;
        BY_SIXTEEN(s, S, ADD_DIFFERENCE)
        left += clv_sum16_pairs(left16);
        square += clv_sum16_pairs(square16);
        parts[p] = mean + left / (float)S;
        parts[n_planes + p] = fmax(square - left * (left / (float)S), 0.0f);
    }
}

__kernel void KERNEL(batch_norm_join)(STATISTICS, __global const float *restrict parts, int N, int C, int S,
                                      float eps) {
    int c = (int)get_global_id(0);
    if (c >= C) return;
    float sum = 0.0f, left = 0.0f, apart = 0.0f, square = 0.0f, count = (float)N * (float)S;
    for (int n = 0; n < N; n++) sum += parts[n * C + c];
    float mean = sum / (float)N;
    for (int n = 0; n < N; n++) {
        float d = parts[n * C + c] - mean;
        left += d;
        apart += d * d;
        square += parts[(N + n) * C + c];
    }
    square += (float)S * fmax(apart - left * (left / (float)N), 0.0f);
    KERNEL(batch_norm_keep)
    (c, mean + left / (float)N, square, count, means, rstds, vars, eps);
}

__kernel void KERNEL(batch_norm_planes_apply)(__global T_Y *restrict y, __global const T_X *restrict x,
                                              AFFINE, int n_planes, int rows, int C, int S, int has_weight,
                                              int has_bias, int is_var, float eps EPILOGUE_PARAMS) {
    int first = (int)get_global_id(0) * rows, last = min(first + rows, n_planes);
    for (int p = first; p < last; p++) {
        int c = p % C, s;
        float scale = KERNEL(batch_norm_rstd)(spread[c], is_var, eps), m = mean[c],
              shift = has_bias ? bias[c] : 0.0f;
        if (has_weight) scale *= weight[c];
        __global const T_X *from = x + p * S;
        __global T_Y *to = y + p * S;
        for (s = 0; s + 16 <= S; s += 16) {
            float16 v = (VLOAD(T_X, 16, from + s) - m) * scale + shift;
            VSTORE(T_Y, 16, KERNEL(epilogue16)(v EPILOGUE_VECTOR_AT(16, p * S + s)), to + s);
        }
        for (; s < S; s++) {
            float v = (LOAD(T_X, from + s) - m) * scale + shift;
            STORE(T_Y, KERNEL(epilogue)(v EPILOGUE_AT(p * S + s)), to + s);
        }
    }
}

#define ADD_BOTH(n)                                                                                          \
    {                                                                                                        \
        const float##n v = LOAD##n(T_Y, g + s);                                                              \
        sum##n += v;                                                                                         \
        product##n += v * (LOAD##n(T_X, from + s) - m);                                                      \
    }
__kernel void KERNEL(batch_norm_planes_backward)(__global float *restrict parts,
                                                 __global const T_Y *restrict dy,
                                                 __global const T_X *restrict x,
                                                 __global const float *restrict mean, int n_planes, int rows,
                                                 int C, int S) {
    int first = (int)get_global_id(0) * rows, last = min(first + rows, n_planes);
    for (int p = first; p < last; p++) {
        __global const T_X *from = x + p * S;
        __global const T_Y *g = dy + p * S;
        int s;
        float m = mean[p % C], sum = 0.0f, product = 0.0f;
        float16 sum16 = (float16)(0.0f), product16 = (float16)(0.0f);
        BY_SIXTEEN(s, S, ADD_BOTH)
        parts[p] = sum + clv_sum16_pairs(sum16);
        parts[n_planes + p] = product + clv_sum16_pairs(product16);
    }
}

__kernel void KERNEL(batch_norm_backward_join)(__global float *restrict dweight,
                                               __global float *restrict dbias,
                                               __global const float *restrict parts,
                                               __global const float *restrict spread, int N, int C,
                                               int is_var, float eps) {
    int c = (int)get_global_id(0);
    if (c >= C) return;
    float sum = 0.0f, product = 0.0f;
    for (int n = 0; n < N; n++) {
        sum += parts[n * C + c];
        product += parts[(N + n) * C + c];
    }
    dbias[c] = sum;
    dweight[c] = product * KERNEL(batch_norm_rstd)(spread[c], is_var, eps);
}

#define PUT_DX(n)                                                                                            \
    STORE##n(T_DX, (LOAD##n(T_Y, g + s) - (LOAD##n(T_X, from + s) - m) * slope - level) * scale, to + s);
__kernel void KERNEL(batch_norm_planes_backward_apply)(GRADIENTS, int n_planes, int rows, int C, int S,
                                                       int has_weight, int is_var, float eps, float count) {
    int first = (int)get_global_id(0) * rows, last = min(first + rows, n_planes);
    for (int p = first; p < last; p++) {
        int c = p % C, s;
        float rstd = KERNEL(batch_norm_rstd)(spread[c], is_var, eps),
              scale = has_weight ? rstd * weight[c] : rstd;
        float m = mean[c], level = count > 0.0f ? dbias[c] / count : 0.0f;
        float slope = count > 0.0f ? rstd * dweight[c] / count : 0.0f;
        __global const T_X *from = x + p * S;
        __global const T_Y *g = dy + p * S;
        __global T_DX *to = dx + p * S;
        BY_SIXTEEN(s, S, PUT_DX)
    }
}

// ---- columns, S == 1 ----

__kernel void KERNEL(batch_norm_columns)(STATISTICS, __global const T_X *restrict x, int N, int C,
                                         float eps) {
    int c = (int)get_global_id(0) * 16, lanes = min(16, C - c);
    if (lanes <= 0) return;
    float count = (float)N;
    float16 sum = (float16)(0.0f), left = (float16)(0.0f), square = (float16)(0.0f);
    for (int n = 0; n < N; n++) sum += LOAD_FEW(T_X, x + n * C + c, lanes);
    float16 mean = sum / count;
    for (int n = 0; n < N; n++) {
        float16 d = LOAD_FEW(T_X, x + n * C + c, lanes) - mean;
        left += d;
        square += d * d;
    }
    square = fmax(square - left * (left / count), (float16)(0.0f));
    mean += left / count;
    float one_mean[16], one_square[16];
    vstore16(mean, 0, one_mean);
    vstore16(square, 0, one_square);
    for (int l = 0; l < lanes; l++) {
        KERNEL(batch_norm_keep)
        (c + l, one_mean[l], one_square[l], count, means, rstds, vars, eps);
    }
}

__kernel void KERNEL(batch_norm_columns_backward)(
    __global float *restrict dweight, __global float *restrict dbias, __global const T_Y *restrict dy,
    __global const T_X *restrict x, __global const float *restrict mean,
    __global const float *restrict spread, int N, int C, int is_var, float eps) {
    int c = (int)get_global_id(0) * 16, lanes = min(16, C - c);
    if (lanes <= 0) return;
    float16 m = LOAD_FEW(float, mean + c, lanes), sum = (float16)(0.0f), product = (float16)(0.0f);
    for (int n = 0; n < N; n++) {
        float16 g = LOAD_FEW(T_Y, dy + n * C + c, lanes);
        sum += g;
        product += g * (LOAD_FEW(T_X, x + n * C + c, lanes) - m);
    }
    float one_sum[16], one_product[16];
    vstore16(sum, 0, one_sum);
    vstore16(product, 0, one_product);
    for (int l = 0; l < lanes; l++) {
        dbias[c + l] = one_sum[l];
        dweight[c + l] = one_product[l] * KERNEL(batch_norm_rstd)(spread[c + l], is_var, eps);
    }
}

// ---- slabs ----

// The sums of what all items of a group have, by a tree.
float2 KERNEL(batch_norm_tree)(__local float2 *tree, int id, float2 v) {
    GROUP_TREE(id, ITEMS, tree[id] = v, tree[id] += tree[id + apart])
    v = tree[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    return v;
}

// An item walks the N*S elements of channel c from `first` + id on, ITEMS apart: element j is at `at`, in its plane at s. EACH does
// n of them; those with `valid` are there.
#define WALK(first)                                                                                          \
    j = first + id;                                                                                          \
    s = j % S;                                                                                               \
    at = (j / S * C + c) * S + s
#define EACH(n, body)                                                                                        \
    _Pragma("unroll") for (int k = 0; k < n; k++) {                                                          \
        const bool valid = j < N * S;                                                                        \
        body;                                                                                                \
        j += ITEMS;                                                                                          \
        s += ITEMS % S;                                                                                      \
        at += ITEMS / S * C * S + ITEMS % S;                                                                 \
        if (s >= S) {                                                                                        \
            s -= S;                                                                                          \
            at += (C - 1) * S;                                                                               \
        }                                                                                                    \
    }

// In local memory they go by sevens: loops of all of them would take more registers.
#define IN_TURN(n) _Pragma("unroll 1") for (int r = 0; r < n; r += 7)

// Sum and squares of differences from the mean of the first `n` elements, which are in registers.
#define DIFFERENCES(n)                                                                                       \
    _Pragma("unroll") for (int k = 0; k < n; k++) {                                                          \
        const float d = first + id + k * ITEMS < N * S ? values[k] - mean : 0.0f;                            \
        left += d;                                                                                           \
        square += d * d;                                                                                     \
    }

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void
KERNEL(batch_norm_group)(__global T_Y *restrict y, STATISTICS, __global const T_X *restrict x,
                         __global const float *restrict weight, __global const float *restrict bias, int N,
                         int C, int S, int has_weight, int has_bias, float eps EPILOGUE_PARAMS) {
    __local float2 tree[ITEMS * (1 + KEPT_LOCAL)];
    __local float *kept = (__local float *)(tree + ITEMS);
    const int id = (int)get_local_id(0), c = (int)get_group_id(0), first = 0;
    float values[KEPT], sum = 0.0f, left = 0.0f, square = 0.0f;
    int j, s, at;
    WALK(0);
    EACH(KEPT, values[k] = valid ? LOAD(T_X, x + at) : 0.0f; sum += values[k])
    // of the first elements: all differences are from a number that is near the mean
    float mean = KERNEL(batch_norm_tree)(tree, id, (float2)(sum, 0.0f)).x / (float)min(KEPT * ITEMS, N * S);
    DIFFERENCES(KEPT)
    IN_TURN(2 * KEPT_LOCAL) EACH(7, if (valid) {
        const float v = LOAD(T_X, x + at);
        const float d = v - mean;
        left += d;
        square += d * d;
        kept[(r + k) * ITEMS + id] = v;
    })
    while (j - id < N * S) {
        EACH(16, if (valid) {
            const float d = LOAD(T_X, x + at) - mean;
            left += d;
            square += d * d;
        })
    }
    const float2 all = KERNEL(batch_norm_tree)(tree, id, (float2)(left, square));
    const float count = (float)N * (float)S;
    mean += all.x / count;
    square = fmax(all.y - all.x * (all.x / count), 0.0f);
    if (id == 0) KERNEL(batch_norm_keep)(c, mean, square, count, means, rstds, vars, eps);
    const float scale = 1.0f / sqrt(square / count + eps) * (has_weight ? weight[c] : 1.0f);
    const float shift = has_bias ? bias[c] : 0.0f;
    WALK(0);
    EACH(KEPT, if (valid) {
        const float v = (values[k] - mean) * scale + shift;
        STORE(T_Y, KERNEL(epilogue)(v EPILOGUE_AT(at)), y + at);
    })
    IN_TURN(2 * KEPT_LOCAL) EACH(7, if (valid) {
        const float v = (kept[(r + k) * ITEMS + id] - mean) * scale + shift;
        STORE(T_Y, KERNEL(epilogue)(v EPILOGUE_AT(at)), y + at);
    })
    while (j - id < N * S) {
        EACH(16, if (valid) {
            const float v = (LOAD(T_X, x + at) - mean) * scale + shift;
            STORE(T_Y, KERNEL(epilogue)(v EPILOGUE_AT(at)), y + at);
        })
    }
}

// dx may lie over dy or x: what an item writes, it alone reads, and before that. count as in batch_norm_backward_apply.
#define FETCH                                                                                                \
    EACH(16, g[k] = valid ? LOAD(T_Y, dy + at) : 0.0f; d[k] = valid ? LOAD(T_X, x + at) - m : 0.0f;          \
         v += (float2)(g[k], g[k] * d[k]))
#define SEND EACH(16, if (valid) STORE(T_DX, (g[k] - d[k] * slope - level) * scale, dx + at))
__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void
KERNEL(batch_norm_group_backward)(__global T_DX *dx, __global float *restrict dweight, __global float *restrict dbias,
                                  __global const T_Y *dy, __global const T_X *x, __global const float *restrict weight,
                                  __global const float *restrict mean, __global const float *restrict spread, int N,
                                  int C, int S, int has_weight, int is_var, float eps, float count) {
    __local float2 tree[ITEMS * (1 + KEPT_LOCAL)], *kept = tree + ITEMS;
    const int id = (int)get_local_id(0), c = (int)get_group_id(0);
    const float m = mean[c], rstd = KERNEL(batch_norm_rstd)(spread[c], is_var, eps);
    float g[16], d[16]; // more, and gfx1100 spills
    float2 v = (float2)(0.0f);
    int j, s, at;
    WALK(0);
    FETCH
    IN_TURN(KEPT_LOCAL) EACH(7, if (valid) {
        const float2 both = (float2)(LOAD(T_Y, dy + at), LOAD(T_X, x + at) - m);
        v += (float2)(both.x, both.x * both.y);
        kept[(r + k) * ITEMS + id] = both;
    })
    while (j - id < N * S) {
        EACH(16, if (valid) {
            const float e = LOAD(T_Y, dy + at);
            v += (float2)(e, e * (LOAD(T_X, x + at) - m));
        })
    }
    v = KERNEL(batch_norm_tree)(tree, id, v);
    if (id == 0) {
        dbias[c] = v.x;
        dweight[c] = v.y * rstd;
    }
    const float scale = has_weight ? rstd * weight[c] : rstd, level = count > 0.0f ? v.x / count : 0.0f;
    const float slope = count > 0.0f ? rstd * (v.y * rstd) / count : 0.0f;
    WALK(0);
    SEND
    IN_TURN(KEPT_LOCAL) EACH(7, if (valid) {
        const float2 both = kept[(r + k) * ITEMS + id];
        STORE(T_DX, (both.x - both.y * slope - level) * scale, dx + at);
    })
    while (j - id < N * S) {
        const int from_j = j, from_s = s, from_at = at;
        FETCH
        j = from_j;
        s = from_s;
        at = from_at;
        SEND
    }
}

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void
KERNEL(batch_norm_slabs)(__global float *restrict parts, __global const T_X *restrict x, int N, int C, int S,
                         int n_slabs) {
    __local float2 tree[ITEMS];
    const int id = (int)get_local_id(0), c = (int)get_group_id(0) % C, slab = (int)get_group_id(0) / C;
    const int first = slab * 16 * ITEMS;
    const float count = (float)min(16 * ITEMS, N * S - first);
    float values[16], sum = 0.0f, left = 0.0f, square = 0.0f;
    int j, s, at;
    WALK(first);
    EACH(16, values[k] = valid ? LOAD(T_X, x + at) : 0.0f; sum += values[k])
    const float mean = KERNEL(batch_norm_tree)(tree, id, (float2)(sum, 0.0f)).x / count;
    DIFFERENCES(16)
    const float2 all = KERNEL(batch_norm_tree)(tree, id, (float2)(left, square));
    if (id) return;
    parts[c * n_slabs + slab] = mean + all.x / count;
    parts[(C + c) * n_slabs + slab] = fmax(all.y - all.x * (all.x / count), 0.0f);
}

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void
KERNEL(batch_norm_slabs_apply)(__global T_Y *restrict y, STATISTICS, __global const T_X *restrict x,
                               __global const float *restrict weight, __global const float *restrict bias,
                               __global const float *restrict parts, int N, int C, int S, int n_slabs,
                               int has_weight, int has_bias, float eps EPILOGUE_PARAMS) {
    __local float2 tree[ITEMS];
    const int id = (int)get_local_id(0), c = (int)get_group_id(0) % C, slab = (int)get_group_id(0) / C;
    const float count = (float)N * (float)S;
    float values[16];
    float2 v = (float2)(0.0f), apart = (float2)(0.0f);
    int j, s, at;
    WALK(slab * 16 * ITEMS);
    EACH(16, values[k] = valid ? LOAD(T_X, x + at) : 0.0f)
#define SLAB_ELEMENTS(i) (float)min(16 * ITEMS, N * S - (i) * 16 * ITEMS)
    for (int i = id; i < n_slabs; i += ITEMS)
        v += (float2)(parts[c * n_slabs + i] * (SLAB_ELEMENTS(i) / count), parts[(C + c) * n_slabs + i]);
    v = KERNEL(batch_norm_tree)(tree, id, v);
    for (int i = id; i < n_slabs; i += ITEMS) {
        const float d = parts[c * n_slabs + i] - v.x, n = SLAB_ELEMENTS(i);
        apart += (float2)(d * n, d * d * n);
    }
    apart = KERNEL(batch_norm_tree)(tree, id, apart);
    const float mean = v.x + apart.x / count;
    const float square = v.y + fmax(apart.y - apart.x * (apart.x / count), 0.0f);
    if (id == 0 && slab == 0) KERNEL(batch_norm_keep)(c, mean, square, count, means, rstds, vars, eps);
    const float scale = 1.0f / sqrt(square / count + eps) * (has_weight ? weight[c] : 1.0f);
    const float shift = has_bias ? bias[c] : 0.0f;
    WALK(slab * 16 * ITEMS);
    EACH(16, if (valid) {
        const float r = (values[k] - mean) * scale + shift;
        STORE(T_Y, KERNEL(epilogue)(r EPILOGUE_AT(at)), y + at);
    })
}

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void
KERNEL(batch_norm_slabs_backward)(__global float *restrict parts, __global const T_Y *restrict dy,
                                  __global const T_X *restrict x, __global const float *restrict mean, int N, int C,
                                  int S, int n_slabs) {
    __local float2 tree[ITEMS];
    const int id = (int)get_local_id(0), c = (int)get_group_id(0) % C, slab = (int)get_group_id(0) / C;
    const float m = mean[c];
    float2 v = (float2)(0.0f);
    int j, s, at;
    WALK(slab * 16 * ITEMS);
    EACH(16, if (valid) {
        const float g = LOAD(T_Y, dy + at);
        v += (float2)(g, g * (LOAD(T_X, x + at) - m));
    })
    v = KERNEL(batch_norm_tree)(tree, id, v);
    if (id) return;
    parts[c * n_slabs + slab] = v.x;
    parts[(C + c) * n_slabs + slab] = v.y;
}

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void
KERNEL(batch_norm_slabs_backward_apply)(__global T_DX *dx, __global float *restrict dweight, __global float *restrict dbias,
                                        __global const T_Y *dy, __global const T_X *x, __global const float *restrict weight,
                                        __global const float *restrict mean, __global const float *restrict spread,
                                        __global const float *restrict parts, int N, int C, int S, int n_slabs,
                                        int has_weight, int is_var, float eps, float count) {
    __local float2 tree[ITEMS];
    const int id = (int)get_local_id(0), c = (int)get_group_id(0) % C, slab = (int)get_group_id(0) / C;
    const float m = mean[c], rstd = KERNEL(batch_norm_rstd)(spread[c], is_var, eps);
    float g[16], d[16];
    float2 v = (float2)(0.0f);
    int j, s, at;
    WALK(slab * 16 * ITEMS);
    FETCH
    v = (float2)(0.0f);
    for (int i = id; i < n_slabs; i += ITEMS)
        v += (float2)(parts[c * n_slabs + i], parts[(C + c) * n_slabs + i]);
    v = KERNEL(batch_norm_tree)(tree, id, v);
    if (id == 0 && slab == 0) {
        dbias[c] = v.x;
        dweight[c] = v.y * rstd;
    }
    const float scale = has_weight ? rstd * weight[c] : rstd, level = count > 0.0f ? v.x / count : 0.0f;
    const float slope = count > 0.0f ? rstd * (v.y * rstd) / count : 0.0f;
    WALK(slab * 16 * ITEMS);
    SEND
}
