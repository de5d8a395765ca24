// SPDX-License-Identifier: Apache-2.0
// Products of few results for devices with lanes, where tiles of gemm.cl would leave most units idle: groups of small tiles, whose
// items share the terms of a sum as well.
//
//     C[z][m][n] = epilogue( sum_k A[z*a_z + m*a_m + k*a_k] * B[z*b_z + k*b_k + n*b_n]  + bias[n] )      m < M, n < N, k < K
//
// C is contiguous. has_bias = 0 leaves the bias out (any valid buffer may then stand for it). The order of a sum depends on K,
// SLICES and nothing else.
//
// Entries
//   matmul_small  A group makes SIDE x SIDE results, from row gy*SIDE and column gx*SIDE on, z = gz. TERMS = 8*SLICES terms of both matrices
//                 at a time come to local memory. An item adds eight of them to 2 x 2 results, and as many items as there are slices have
//                 the same results. At last an item adds the slices of a result, in their order.
//
// Macros
//   T_A, T_B, T_C   how a, b and c are stored: float, f16 or bf16; default float. Bias is floats
//   EPI_*           the epilogue, common/epilogue.cl; default none
//   SIDE            rows and columns of a tile; 8
//   SLICES          4. A group has SIDE*SIDE/4*SLICES items
//   A_ROWS, B_ROWS  1: neighbouring items fetch neighbouring terms of A, of B; 0: neighbouring rows, columns; default 1, 0
// Local memory: 64*SLICES*(SIDE + 2) + 4*SLICES*(SIDE*SIDE + 8) bytes

#define T_A float
#define T_B float
#define T_C float
#define SIDE 8
#define SLICES 4
#define A_ROWS 1
#define B_ROWS 0

EPILOGUE_FUNCTION(KERNEL(epilogue), float)

#define EACH_TERMS 8
#define TERMS (EACH_TERMS * SLICES)
#define PLACES (SIDE * SIDE / 4)
#define ITEMS (PLACES * SLICES)
#define PITCH (SIDE + 2) // a column of terms lies in every second bank
#define PART (SIDE * SIDE + 8)
#define UNROLLED _Pragma("unroll")

// TERMS terms from `from` on of SIDE rows or columns from `first` on, `along` of which there are, to local memory; zeros beyond.
#define FETCH(T, to, source, ROWS, first, along, stride, stride_k)                                           \
    UNROLLED for (int i = id; i < TERMS * SIDE; i += ITEMS) {                                                \
        const int t = ROWS ? i % TERMS : i / SIDE, s = ROWS ? i / TERMS : i % SIDE;                          \
        const bool valid = (first) + s < (along) && from + t < K;                                            \
        to[t * PITCH + s] = valid ? LOAD(T, source + ((first) + s) * (stride) + (from + t) * (stride_k)) : 0.0f; \
    }

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void
KERNEL(matmul_small)(__global T_C *restrict c, __global const T_A *restrict a, __global const T_B *restrict b,
                     __global const float *restrict bias, int M, int N, int K, int a_z, int a_m, int a_k, int b_z, int b_k,
                     int b_n, int has_bias EPILOGUE_PARAMS) {
    __local float2 la[TERMS * PITCH / 2], lb[TERMS * PITCH / 2];
    __local float parts[SLICES * PART];
    const int id = (int)get_local_id(0), place = id % PLACES, slice = id / PLACES, z = (int)get_group_id(2);
    const int m0 = (int)get_group_id(1) * SIDE, n0 = (int)get_group_id(0) * SIDE;
    const int row = place / (SIDE / 2), column = place % (SIDE / 2);
    __local float *to_a = (__local float *)la, *to_b = (__local float *)lb;
    float2 above = 0.0f, below = 0.0f;
    a += z * a_z;
    b += z * b_z;
    for (int from = 0; from < K; from += TERMS) {
        FETCH(T_A, to_a, a, A_ROWS, m0, M, a_m, a_k)
        FETCH(T_B, to_b, b, B_ROWS, n0, N, b_n, b_k)
        barrier(CLK_LOCAL_MEM_FENCE);
        UNROLLED for (int k = 0; k < EACH_TERMS; k++) {
            const float2 x = la[(slice * EACH_TERMS + k) * (PITCH / 2) + row];
            const float2 y = lb[(slice * EACH_TERMS + k) * (PITCH / 2) + column];
            above = fma((float2)(x.s0), y, above);
            below = fma((float2)(x.s1), y, below);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    __local float *part = parts + slice * PART + 2 * row * SIDE + 2 * column;
    part[0] = above.s0;
    part[1] = above.s1;
    part[SIDE] = below.s0;
    part[SIDE + 1] = below.s1;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = id; i < SIDE * SIDE; i += ITEMS) {
        const int m = m0 + i / SIDE, n = n0 + i % SIDE;
        float v = 0.0f;
        for (int s = 0; s < SLICES; s++) v += parts[s * PART + i];
        if (m >= M || n >= N) continue;
        if (has_bias) v += bias[n];
        const int at = (z * M + m) * N + n;
        EPILOGUE_CHANNEL(n);
        STORE(T_C, KERNEL(epilogue)(v EPILOGUE_AT(at)), c + at);
    }
}
