// SPDX-License-Identifier: Apache-2.0
// All gradients together: sums over them, and the numbers that come of these.
//
//   sum_squares       of SLICES gradients, COUNT elements of one to a group of ITEMS work-items, neighbours to neighbours, WIDE at a
//                     time: parts[k] = sum(g^2) of group k. Gradient j has n<j> elements, and its groups follow those of the
//                     gradients before it; n_parts groups in all
//   count_nonfinite   the same: how many are NaN or infinite
//   sum_parts         the same once more, an item for COUNT parts: gradient j has n<j> of them in `in`, behind those before it
//   sum_slices        one work-item: the sum so far and `n` sums, in order
//   sum_all           one group: sum_parts, an item for all n<j> parts of a gradient, and sum_slices
//   sum_squares_table, count_nonfinite_table
//                     as sum_squares and count_nonfinite, of gradients that lie at any place in one of four buffers. A row of the
//                     table for each: which buffer, where in it in units of 16 bytes, elements, groups of the gradients before it
//   sum_table         sum_all of theirs: one group, an item for each gradient's parts
//   clip_scale        one work-item: min(1, max_norm / (sqrt(total) / scale + 1e-6))
//   scaler_step       one work-item: the factor of all gradients, the step values without skipped steps, and the next scale
//
// SLICES    1 to 35, default 1
// ITEMS     a power of two, in sum_all at least SLICES; 1 (default): groups are of any size
// COUNT     a multiple of ITEMS * WIDE; default 1024
// WIDE      floats that are loaded at once: 16, 4 or 1 (default)
//
// previous  [1], the sum so far; has_previous 0: not there
// scale     [1], what gradients are too large by; has_scale 0: not there, 1
// hyper     as in optimizer.cl; 4 the step, from 1
#define SLICES 1
#define ITEMS 1
#define COUNT 1024
#define WIDE 1

// By their bits: compilers that reckon without infinities leave these alone.
#define SQUARE(v, T, I) ((v) * (v))
#define NONFINITE(v, T, I) select((T)(0.0f), (T)(1.0f), (PASTE(as_, I)(v) & 0x7f800000) == (I)(0x7f800000))

// The sum of a vector's floats.
#define SUM_1(v) (v)
#define SUM_4(v) (((v).x + (v).y) + ((v).z + (v).w))
#define SUM_16(v)                                                                                            \
    (SUM_4((v).lo.lo) + SUM_4((v).lo.hi)) + (SUM_4((v).hi.lo) + SUM_4((v).hi.hi))
#define GET_1(p) *(p)
#define GET_4(p) *(__global const float4 *)(p)
#define GET_16(p) vload16(0, p)
#define FLOATS_1 float
#define FLOATS_4 float4
#define FLOATS_16 float16
#define INTS_1 int
#define INTS_4 int4
#define INTS_16 int16
#define SUM PASTE(SUM_, WIDE)
#define GET PASTE(GET_, WIDE)
#define FLOATS PASTE(FLOATS_, WIDE)
#define INTS PASTE(INTS_, WIDE)

#if ITEMS == 1
#define GROUP
#define BEGIN const int k = (int)get_global_id(0), id = 0
#define TREE(sum)
#else
#define GROUP __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
#define BEGIN                                                                                                \
    __local float tree[ITEMS];                                                                               \
    const int k = (int)get_group_id(0), id = (int)get_local_id(0)
#define TREE(sum)                                                                                            \
    tree[id] = sum;                                                                                          \
    for (int apart = ITEMS / 2; apart > 0; apart /= 2) {                                                     \
        TREE_MEET(2 * apart)                                                                                 \
        if (id < apart) tree[id] += tree[id + apart];                                                        \
    }                                                                                                        \
    sum = tree[0];
#endif
#define GRADIENT(j) __global const float *restrict g##j,
#define SIZE(j) int n##j,
// Group k is of the gradient that it sets: `left` counts from the gradient's first, and is below 0 when that is found.
#define FIND(j, take)                                                                                        \
    if (left >= 0) {                                                                                         \
        const int groups = n##j / COUNT + (n##j % COUNT != 0);                                               \
        if (left < groups) {                                                                                 \
            take i = left * COUNT;                                                                           \
            n = n##j;                                                                                        \
        }                                                                                                    \
        left -= groups;                                                                                      \
    }
#define FIND_GRADIENT(j) FIND(j, g = g##j;)
#define FIND_PARTS(j) FIND(j, from = in + before;) before += n##j;

// A sum in the order of its elements, in blocks of 32: rounding grows with their number and not with that of all.
float KERNEL(sum_blocks)(__global const float *from, int n) {
    float sum = 0.0f;
    for (int block = 0; block < n; block += 32) {
        float part = 0.0f;
        for (int i = block; i < min(block + 32, n); i++) part += from[i];
        sum += part;
    }
    return sum;
}

#define SUMS(TERM)                                                                                           \
    BEGIN;                                                                                                   \
    int left = k, i = 0, n = 0;                                                                              \
    if (k >= n_parts) return;                                                                                \
    __global const float *g = 0;                                                                             \
    EACH_SLICE(FIND_GRADIENT)                                                                                \
    SUM_PART(TERM)
// Group k's sum: of elements i up to i + COUNT of the n at g.
#define SUM_PART(TERM)                                                                                       \
    const int end = n - i > COUNT ? i + COUNT : n, single = end - (end - i) % WIDE;                          \
    FLOATS sums = (FLOATS)(0.0f);                                                                            \
    for (i += id * WIDE; i < single;) {                                                                      \
        FLOATS block = (FLOATS)(0.0f);                                                                       \
        for (int stop = i + min(single - i, 32 * ITEMS * WIDE); i < stop; i += ITEMS * WIDE) {               \
            const FLOATS v = GET(g + i);                                                                     \
            block += TERM(v, FLOATS, INTS);                                                                  \
        }                                                                                                    \
        sums += block;                                                                                       \
    }                                                                                                        \
    float sum = SUM(sums);                                                                                   \
    for (i = single + id; i < end; i += ITEMS) sum += TERM(g[i], float, int);                                \
    TREE(sum)                                                                                                \
    if (id == 0) parts[k] = sum;
__kernel GROUP void KERNEL(sum_squares)(__global float *restrict parts, EACH_SLICE(GRADIENT) EACH_SLICE(SIZE) int n_parts) {
    SUMS(SQUARE)
}
__kernel GROUP void KERNEL(count_nonfinite)(__global float *restrict parts, EACH_SLICE(GRADIENT) EACH_SLICE(SIZE) int n_parts) {
    SUMS(NONFINITE)
}

// The last row that has no more than k groups before it: rows without groups have as many as the next.
#define SUMS_OF_TABLE(TERM)                                                                                  \
    BEGIN;                                                                                                   \
    if (k >= n_parts) return;                                                                                \
    int first = 0, last = rows - 1;                                                                          \
    while (first < last) {                                                                                   \
        const int middle = (first + last + 1) / 2;                                                           \
        if (table[middle].w <= k)                                                                            \
            first = middle;                                                                                  \
        else                                                                                                 \
            last = middle - 1;                                                                               \
    }                                                                                                        \
    const int4 row = table[first];                                                                           \
    __global const float *g = (row.x == 0 ? g0 : row.x == 1 ? g1 : row.x == 2 ? g2 : g3) + (clv_offset)row.y * 4; \
    const int n = row.z;                                                                                     \
    int i = (k - row.w) * COUNT;                                                                             \
    SUM_PART(TERM)
#define TABLE_PARAMS                                                                                         \
    __global float *restrict parts, __global const float *restrict g0, __global const float *restrict g1,    \
        __global const float *restrict g2, __global const float *restrict g3,                                \
        __global const int4 *restrict table, int rows, int n_parts
__kernel GROUP void KERNEL(sum_squares_table)(TABLE_PARAMS) {
    SUMS_OF_TABLE(SQUARE)
}
__kernel GROUP void KERNEL(count_nonfinite_table)(TABLE_PARAMS) {
    SUMS_OF_TABLE(NONFINITE)
}
__kernel GROUP void KERNEL(sum_table)(__global float *restrict out, __global const float *restrict in,
                                      __global const int4 *restrict table, int rows, int n_parts) {
    __local float sums[ITEMS];
    const int id = (int)get_local_id(0);
    float sum = 0.0f;
    for (int first = 0; first < rows; first += ITEMS) {
        const int row = first + id, from = row < rows ? table[row].w : n_parts;
        sums[id] = KERNEL(sum_blocks)(in + from, (row + 1 < rows ? table[row + 1].w : n_parts) - from);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (id == 0) {
            for (int j = 0; j < ITEMS; j++) sum += sums[j];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (id == 0) out[0] = sum;
}

__kernel void KERNEL(sum_parts)(__global float *restrict parts, __global const float *restrict in,
                                EACH_SLICE(SIZE) int n_parts) {
    const int k = (int)get_global_id(0);
    int left = k, i = 0, n = 0, before = 0;
    if (k >= n_parts) return;
    __global const float *from = in;
    EACH_SLICE(FIND_PARTS)
    parts[k] = KERNEL(sum_blocks)(from + i, min(n - i, COUNT));
}

__kernel void KERNEL(sum_slices)(__global float *restrict out, __global const float *restrict in,
                                 __global const float *restrict previous, int n, int has_previous) {
    if (get_global_id(0) > 0) return;
    float sum = has_previous ? previous[0] : 0.0f;
    for (int i = 0; i < n; i++) sum += in[i];
    out[0] = sum;
}

#define MINE(j)                                                                                              \
    if (j == id) {                                                                                           \
        from = before;                                                                                       \
        mine = n##j;                                                                                         \
    }                                                                                                        \
    before += n##j;
__kernel GROUP void KERNEL(sum_all)(__global float *restrict out, __global const float *restrict in,
                                    __global const float *restrict previous, EACH_SLICE(SIZE) int n,
                                    int has_previous) {
    __local float sums[ITEMS];
    const int id = (int)get_local_id(0);
    int from = 0, mine = 0, before = 0;
    EACH_SLICE(MINE)
    sums[id] = KERNEL(sum_blocks)(in + from, mine);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (id > 0) return;
    float sum = has_previous ? previous[0] : 0.0f;
    for (int j = 0; j < SLICES; j++) sum += sums[j];
    out[0] = sum;
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
