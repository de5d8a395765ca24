// SPDX-License-Identifier: Apache-2.0
// Does the unit that common/matrix.cl uses multiply rightly? runtime/device/matrix.c asks, no op uses this.
//
//   matrix_faults   a group is a sub-group, and makes a fragment, first of whole numbers, whose sums have to be exact, then of others,
//                   which are rounded, and whose sums a unit may cut off.
//                   out[i]: 0 if item i's sums are as they should be. Where there is only the emulation, 1
//
// MATRIX_TYPE     what the unit multiplies: tf32, f16 or bf16; default tf32
// MATRIX_ANY      1: ask the emulation, too, for tests; default 0
#ifndef MATRIX_TYPE
#define MATRIX_TYPE tf32
#endif
#ifndef MATRIX_ANY
#define MATRIX_ANY 0
#endif
#define MATRIX_WIDTH 16

#define TERMS (MATRIX_WIDTH * MATRIX_TERMS)

// The element of `row` and term k, of A (0) or B (1): whole numbers up to 8 that no shift or exchange leaves as they are, and others,
// which lie half-way between two that a unit has only where they are small.
float KERNEL(matrix_element)(int matrix, int row, int k, int whole) {
    const int v = (row * 37 + k * (matrix ? 29 : 11) + row * k * 5 + matrix * 3) % 17 - 8;
    return whole ? (float)v
                 : (float)v * 0.0625f + (float)((row * 13 + k * 7) % 23) * 0x1p-10f +
                       (float)((row * 7 + k * 3) % 29 * 2 + 1) * 0x1p-18f;
}
// What a word's term is, by integers.
#define ROUNDED_tf32(v) as_float((as_uint(v) + 0x1000u) & 0xffffe000u)
#define ROUNDED_f16(v) float_of_f16(f16_of_float(v))
#define ROUNDED_bf16(v) float_of_bf16(bf16_of_float(v))
float KERNEL(matrix_rounded)(float v) {
    return PASTE(ROUNDED_, MATRIX_TYPE)(v);
}

#define MATRIX_FILL(tile, matrix, rows)                                                                      \
    for (int i = lane; i < rows * MATRIX_CHUNKS; i += MATRIX_LANES) {                                        \
        const int row = i / MATRIX_CHUNKS, chunk = i % MATRIX_CHUNKS;                                        \
        uint x[4];                                                                                           \
        for (int e = 0; e < 4; e++) {                                                                        \
            const int k = (4 * chunk + e) * MATRIX_TERMS;                                                    \
            const float v = KERNEL(matrix_element)(matrix, row, k, whole);                                   \
            const float w = KERNEL(matrix_element)(matrix, row, k + 1, whole);                               \
            MATRIX_WORD(float, x[e], v, w)                                                                   \
        }                                                                                                    \
        MATRIX_PUT(tile, row, chunk, (uint4)(x[0], x[1], x[2], x[3]))                                        \
    }

__kernel MATRIX_ATTRIBUTES __attribute__((reqd_work_group_size(MATRIX_LANES, 1, 1))) void
KERNEL(matrix_faults)(__global int *restrict out) {
#if MATRIX_UNIT + MATRIX_ANY == 0
    out[get_global_id(0)] = 1;
#else
    __local uint ta[MATRIX_M * MATRIX_WIDTH] __attribute__((aligned(128)));
    __local uint tb[MATRIX_N * MATRIX_WIDTH] __attribute__((aligned(128)));
    MATRIX_SCRATCH(MATRIX_LANES)
    const int lane = (int)get_local_id(0);
    int faults = 0;
    for (int whole = 1; whole >= 0; whole--) {
        float sums[MATRIX_SUMS];
        for (int e = 0; e < MATRIX_SUMS; e++) sums[e] = 1.0f;
        barrier(CLK_LOCAL_MEM_FENCE);
        MATRIX_FILL(ta, 0, MATRIX_M)
        MATRIX_FILL(tb, 1, MATRIX_N)
        barrier(CLK_LOCAL_MEM_FENCE);
        MATRIX_FROM(from_a, ta)
        MATRIX_FROM(from_b, tb)
        MATRIX_UNROLLED for (int s = 0; s < MATRIX_WIDTH / 8; s++) {
            uint a[MATRIX_A_WORDS], b[MATRIX_B_WORDS];
            MATRIX_LOAD_A(a, from_a, 0, s)
            MATRIX_LOAD_B(b, from_b, 0, s)
            MATRIX_MULTIPLY(sums, a, b)
        }
        for (int e = 0; e < MATRIX_SUMS; e++) {
            float want = 1.0f;
            for (int k = 0; k < TERMS; k++)
                want =
                    fma(KERNEL(matrix_rounded)(KERNEL(matrix_element)(0, MATRIX_ROW(lane, e), k, whole)),
                        KERNEL(matrix_rounded)(KERNEL(matrix_element)(1, MATRIX_COLUMN(lane, e), k, whole)),
                        want);
            if (!(fabs(sums[e] - want) <= (whole ? 0.0f : 0x1p-14f))) faults++;
        }
    }
    out[get_global_id(0)] = faults;
#endif
}
