// SPDX-License-Identifier: Apache-2.0
// Dropout: y = x / (1 - p) where a uniform number is at least p, else 0. Needs common/philox.cl.
// Element i, counted from the first of the whole batch's tensor, belongs to word i % 4 of the counter (i / 4, step, id, 0)
// under the key (seed low, seed high ^ 3); 3 is CLV__STREAM_DROPOUT. x begins at element 4 * first + skip. The same call
// on dy is the gradient: the mask is drawn again, not kept.
//
//   dropout          one work-item per counter: four elements, fewer at the ends
//   dropout_aligned  the same, as one access to memory; skip is 0
//   dropout_vector   one work-item per `blocks` blocks of 64 elements, for devices with wide vectors; skip is 0
//
// y may be x.
// state  seed low, seed high, step, 0 (the graph's random state)
// scale  1 / (1 - p), 0 for p = 1
// T_X, T_Y  how x and y are stored: float (default), f16, bf16
#define T_X float
#define T_Y float

/** The elements i to i + 3, as far as they are in 0 to n - 1. */
void KERNEL(dropout_four)(__global T_Y *y, __global const T_X *x, uint k0, uint k1, uint step, uint counter,
                          int i, int n, int id, float p, float scale) {
    uint4 words = clv_philox(k0, k1, (uint4)(counter, step, (uint)id, 0u));
#define ONE(k, word)                                                                                         \
    if (i + k >= 0 && i + k < n)                                                                             \
        STORE(T_Y, clv_uniform(word) >= p ? LOAD(T_X, x + i + k) * scale : 0.0f, y + i + k);
    ONE(0, words.x) ONE(1, words.y) ONE(2, words.z) ONE(3, words.w)
}

__kernel void KERNEL(dropout)(__global T_Y *y, __global const T_X *x, __global const int *restrict state,
                              int n, int first, int skip, int id, float p, float scale) {
    int group = (int)get_global_id(0), i = group * 4 - skip;
    uint k0 = (uint)state[0], k1 = (uint)state[1] ^ 3u, counter = (uint)first + (uint)group;
    KERNEL(dropout_four)(y, x, k0, k1, (uint)state[2], counter, i, n, id, p, scale);
}

__kernel void KERNEL(dropout_aligned)(__global T_Y *y, __global const T_X *x, __global const int *restrict state,
                                      int n, int first, int id, float p, float scale) {
    int group = (int)get_global_id(0), i = group * 4;
    uint k0 = (uint)state[0], k1 = (uint)state[1] ^ 3u, step = (uint)state[2], counter = (uint)first + (uint)group;
    if (i + 4 > n) {
        KERNEL(dropout_four)(y, x, k0, k1, step, counter, i, n, id, p, scale);
        return;
    }
    uint4 words = clv_philox(k0, k1, (uint4)(counter, step, (uint)id, 0u));
    float4 v = ALOAD(T_X, 4, x + i) * scale;
    ASTORE(T_Y, 4, select((float4)(0.0f), v, convert_float4(words >> 8) * 0x1p-24f >= p), y + i);
}

float16 KERNEL(dropout_choose)(uint16 words, float16 v, float p, float scale) {
    return select((float16)(0.0f), v * scale, convert_float16(words >> 8) * 0x1p-24f >= p);
}

__kernel void KERNEL(dropout_vector)(__global T_Y *y, __global const T_X *x,
                                     __global const int *restrict state, int n, int blocks, int first, int id,
                                     float p, float scale) {
    uint k0 = (uint)state[0], k1 = (uint)state[1] ^ 3u, step = (uint)state[2];
    int begin = (int)get_global_id(0) * blocks, last = min(begin + blocks, (n + 63) / 64);
    for (int block = begin; block < last; block++) {
        int i = block * 64;
        if (i + 64 > n) {
            for (int group = i / 4; group * 4 < n; group++)
                KERNEL(dropout_four)
                (y, x, k0, k1, step, (uint)first + (uint)group, group * 4, n, id, p, scale);
            return;
        }
        uint16 word[4], even_low, even_high, odd_low, odd_high, out;
        word[0] =
            (uint)first + (uint)(i / 4) + (uint16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        word[1] = (uint16)(step);
        word[2] = (uint16)((uint)id);
        word[3] = (uint16)(0u);
        clv_philox16(k0, k1, word);
        even_low.even = word[0].lo; // words 0 and 2 of counters 0 to 7, then 1 and 3, then those of 8 to 15
        even_low.odd = word[2].lo;
        odd_low.even = word[1].lo;
        odd_low.odd = word[3].lo;
        even_high.even = word[0].hi;
        even_high.odd = word[2].hi;
        odd_high.even = word[1].hi;
        odd_high.odd = word[3].hi;
#define PUT(at, even_, odd_)                                                                                 \
    out.even = even_;                                                                                        \
    out.odd = odd_;                                                                                          \
    VSTORE(T_Y, 16, KERNEL(dropout_choose)(out, VLOAD(T_X, 16, x + i + at), p, scale), y + i + at);
        PUT(0, even_low.lo, odd_low.lo)
        PUT(16, even_low.hi, odd_low.hi)
        PUT(32, even_high.lo, odd_high.lo)
        PUT(48, even_high.hi, odd_high.hi)
    }
}
