// SPDX-License-Identifier: Apache-2.0
// A row by a matrix that lies transposed, on CPU-class devices, as a model is run token by token. Nothing is packed; each row of B is
// read once, along its elements.
//
//     C[n] = epilogue( sum_k A[k] * B[n][k]  + bias[n] )       n < N, k < K; all contiguous
//
// has_bias = 0 leaves the bias out (any valid buffer may then stand for it). The order of a sum depends on K and VW only.
//
// Entries
//   matmul_dots   work-group 1, one work-item a task: columns [j*nc, (j+1)*nc), j = get_group_id(0); nc a multiple of R. R columns
//                 at a time have a vector of partial sums each, which are transposed and added up
//
// Macros
//   T_A, T_B, T_C  how a, b and c are stored: float, f16 or bf16; default float. Bias is floats
//   EPI_*          the epilogue, common/epilogue.cl; default none
//   VW             lanes of a vector: 4, 8 or 16; default 16. R is 8, or 4 for VW 4

#define T_A float
#define T_B float
#define T_C float
#define VW 16

#if VW == 4
#define R 4
#else
#define R 8
#endif
#define RV PASTE(float, R)
EPILOGUE_FUNCTION(KERNEL(epilogue), float)
EPILOGUE_FUNCTION(KERNEL(epilogue_vector), RV)

// Results n ... n + R - 1, those from N on copies of the last.
static RV KERNEL(matmul_dots_of)(__global const T_A *a, __global const T_B *b, int n, int N, int K) {
    FV r[R], t[R];
    __global const T_B *rows[R];
    UNROLL for (int l = 0; l < R; l++) {
        r[l] = (FV)(0.0f);
        rows[l] = b + min(n + l, N - 1) * K;
    }
    int k = 0;
    for (; k + VW <= K; k += VW) {
        const FV x = VLOAD(T_A, VW, a + k);
        UNROLL for (int l = 0; l < R; l++) r[l] = fma(x, VLOAD(T_B, VW, rows[l] + k), r[l]);
    }
    TRANSPOSE(R, r, t)
    UNROLL for (int l = 1; l < R; l++) r[0] += r[l];
#if VW == 16
    RV sums = r[0].lo + r[0].hi;
#else
    RV sums = r[0];
#endif
    if (k == K) return sums;
    float rest[R];
    UNROLL for (int l = 0; l < R; l++) rest[l] = 0.0f;
    for (; k < K; k++) {
        const float x = LOAD(T_A, a + k);
        UNROLL for (int l = 0; l < R; l++) rest[l] = fma(x, LOAD(T_B, rows[l] + k), rest[l]);
    }
    return sums + VLOAD(float, R, rest);
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
KERNEL(matmul_dots)(__global T_C *restrict c, __global const T_A *restrict a, __global const T_B *restrict b,
                    __global const float *restrict bias, int N, int K, int has_bias, int nc EPILOGUE_PARAMS) {
    const int begin = (int)get_group_id(0) * nc, end = min(N, begin + nc);
    for (int n = begin; n < end; n += R) {
        RV v = KERNEL(matmul_dots_of)(a, b, n, N, K);
        if (n + R <= N) {
            if (has_bias) v += VLOAD(float, R, bias + n);
            EPILOGUE_VECTOR_CHANNEL(R, n);
            VSTORE(T_C, R, KERNEL(epilogue_vector)(v EPILOGUE_VECTOR_AT(R, n)), c + n);
            continue;
        }
        float sums[R];
        VSTORE(float, R, v, sums);
        for (int l = 0; l < N - n; l++) {
            float s = sums[l];
            if (has_bias) s += bias[n + l];
            EPILOGUE_CHANNEL(n + l);
            STORE(T_C, KERNEL(epilogue)(s EPILOGUE_AT(n + l)), c + n + l);
        }
    }
}
