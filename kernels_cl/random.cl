// SPDX-License-Identifier: Apache-2.0
// Random numbers by counter. Needs common/philox.cl. Element i, counted from the first of the whole batch's tensor, belongs to word i % 4 of
// the counter (i / 4, step, id, 0) under the key (seed low, seed high ^ 8); 8 is CLV__STREAM_RANDOM. y begins at element 4 * first + skip.
//
//   random   one work-item per counter: four elements, fewer at the ends. a + b * what was drawn
//
// state   seed low, seed high, step, 0 (the graph's random state)
// NORMAL  1: normal numbers, of two words each two (Box and Muller 1958); 0 (default): uniform ones, from 0 to below 1
// T_Y     how y is stored: float (default), f16, bf16
#define NORMAL 0
#define T_Y float

__kernel void KERNEL(random)(__global T_Y *restrict y, __global const int *restrict state, int n, int items, int first,
                             int skip, int id, float a, float b) {
    const int group = (int)get_global_id(0), i = group * 4 - skip;
    if (group >= items) return;
    const uint4 words =
        clv_philox((uint)state[0], (uint)state[1] ^ 8u, (uint4)((uint)first + (uint)group, (uint)state[2], (uint)id, 0u));
    float4 u = convert_float4(words >> 8) * 0x1p-24f;
#if NORMAL
    const float2 away = sqrt(-2.0f * log(u.even + 0x1p-24f)), turn = 2.0f * u.odd;
    u = (float4)(away.x * cospi(turn.x), away.x * sinpi(turn.x), away.y * cospi(turn.y), away.y * sinpi(turn.y));
#endif
#define ONE(k, v)                                                                                            \
    if (i + k >= 0 && i + k < n) STORE(T_Y, a + b * v, y + i + k);
    ONE(0, u.x) ONE(1, u.y) ONE(2, u.z) ONE(3, u.w)
}
