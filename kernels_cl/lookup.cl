// SPDX-License-Identifier: Apache-2.0
// lookup: y[i] = table[c][x[i]], where x is runs of `inner` bytes, each of one channel c, the channels in turn.
//
//   lookup          item i makes element i
//   lookup_chunks   an item makes `chunk` elements of one run, which has `chunks` of them
//   lookup_vector   item i makes elements 4i to 4i + 3, of one run: its length is a multiple of 4. n and inner count fours
//
// T_Y   how y is stored: float (default), f16 or bf16
#define T_Y float

__kernel void KERNEL(lookup)(__global T_Y *restrict y, __global const uchar *restrict x,
                             __global const float *restrict table, int n, int inner, int channels) {
    const int i = (int)get_global_id(0);
    if (i >= n) return;
    STORE(T_Y, table[i / inner % channels * 256 + x[i]], y + i);
}

__kernel void KERNEL(lookup_chunks)(__global T_Y *restrict y, __global const uchar *restrict x,
                                    __global const float *restrict table, int items, int inner, int channels,
                                    int chunk, int chunks) {
    const int item = (int)get_global_id(0);
    if (item >= items) return;
    const int run = item / chunks, begin = item % chunks * chunk;
    const int n = inner - begin > chunk ? chunk : inner - begin, at = run * inner + begin;
    __global const float *row = table + run % channels * 256;
    for (int j = 0; j < n; j++) STORE(T_Y, row[x[at + j]], y + at + j);
}

__kernel void KERNEL(lookup_vector)(__global T_Y *restrict y, __global const uchar *restrict x,
                                    __global const float *restrict table, int n, int inner, int channels) {
    const int i = (int)get_global_id(0);
    if (i >= n) return;
    const uchar4 b = ALOAD(uchar, 4, x + 4 * i);
    __global const float *row = table + i / inner % channels * 256;
    ASTORE(T_Y, 4, (float4)(row[b.s0], row[b.s1], row[b.s2], row[b.s3]), y + 4 * i);
}
