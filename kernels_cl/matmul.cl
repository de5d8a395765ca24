// SPDX-License-Identifier: Apache-2.0
//
// Matrix product, batched, with an epilogue:
//
//     C[b][m][n] = epilogue( sum_k A[b][m][k] * B[b][k][n]  + bias[n] )       b < batch, m < M, n < N, k < K
//
// A and B are read through strides, so one kernel serves the four transpose combinations and broadcasting:
//     A[b][m][k] = a[b*a_batch + m*a_m + k*a_k]        B[b][k][n] = b[b*b_batch + k*b_k + n*b_n]
// One of a_m and a_k is 1, and one of b_k and b_n. C is contiguous. has_bias = 0 leaves the bias out (any
// valid buffer may then stand for it); accumulate = 1 adds the former C before the epilogue. Sums run in f32; the
// order of a sum depends on the sizes only, never on the number of threads.
//
// Entries
//   matmul_plain  one work-item an element, i = (b*M + m)*N + n = get_global_id(0); any work-group; no local
//                 memory.
//   matmul_tile   CPU-class. Work-group 1, one work-item a task: task = ((b*splits + s)*m_tasks + i)*n_tasks
//                 + j computes rows [i*mt, (i+1)*mt), columns [j*nc, (j+1)*nc) over k in [s*ks, (s+1)*ks).
//                 Panels of kc terms of all its columns of B are packed in local memory, and stay in a core's
//                 second-level cache. Beside them go mc rows of A at a time, once through for each kc terms. A panel
//                 of A meets all those of B in turn: it stays in the first-level cache, and what is read and written
//                 lies in rows, of A as of C. MR rows by NV vectors of C stay in registers. With splits > 1 C is a
//                 workspace [batch][splits][M][N], and neither bias, C's former value nor the epilogue is used:
//                 matmul_sum finishes. K > 0; mt and mc multiples of MR, mc <= MC; nc of NV*VW; kc <= KC, kc * nc <=
//                 BC; with SUMS mt <= MT, nc <= NC.
//   matmul_bias   after a library's product: c[i] = c[i] + bias[i % N], i = get_global_id(0) < size.
//   matmul_sum    one work-item VW elements, s in order: C[b][m][n] = epilogue(sum_s part[b][s][m][n] + bias[n]).
//
// Macros
//   T_A, T_B, T_C  how a, b and c are stored: float, f16 or bf16; default float. Bias and parts of sums are floats
//   APART          1: a and b are stored differently; default 0
//   SUMS           1: matmul_tile keeps sums in local memory until they are whole, because T_C would round them
//                  after each block of K; default 0. 4 * MT * NC bytes more
//   EPI_*          the epilogue, common/epilogue.cl; default none. In plain, tile without splits, and sum
//   VW             lanes of a vector: 4, 8 or 16; default 16
//   MR, NV         register tile, rows and vectors: MR in 4, 6, 8, 12, 14, NV 2; default 14 x 2 for VW 16,
//                  else 6 x 2
//                  Of what is left of A, LR rows at once: 8 where MR is larger, else 4
//   MC, KC, BC     rows of A packed at a time, depth, floats of packed B: default 4*MR, 256, 114240. Local memory:
//                  4 * (MC/MR * max(PA*KC, MR*(KC+VW)) + BC + MR*NV*VW) bytes, where PA is MR rounded up to a
//                  multiple of VW
//   MT, NC         with SUMS, the largest task, rows and columns: default 16*MR, 256
//   TILE           1: with the CPU-class entries, the default; 0: without, for devices that never run them and
//                  would compile them all the same
//
// Source: the block structure is that of Goto, van de Geijn 2008, "Anatomy of high-performance matrix
// multiplication", ACM Transactions on Mathematical Software 34(3).

#define T_A float
#define T_B float
#define T_C float
#define APART 0
#define SUMS 0
#define TILE 1
#define VW 16
#if VW == 16
#define MR 14
#else
#define MR 6
#endif
#define NV 2
#define MC (4 * MR)
#define KC 256
#define BC 114240
#define MT (16 * MR)
#define NC 256

EPILOGUE_FUNCTION(KERNEL(epilogue), float)
EPILOGUE_FUNCTION(KERNEL(epilogue_vector), FV)
#define NR (NV * VW)
#if MR > 8
#define LR 8
#else
#define LR 4
#endif
#define PA ((MR + VW - 1) / VW * VW)
#define AP (KC + VW)
#define A_FLOATS (MC / MR * (PA * KC > MR * AP ? PA * KC : MR * AP))

// ---------------------------------------------------------------- plain

#define TERM(j) sum = fma(LOAD(T_A, pa + (k + j) * a_k), LOAD(T_B, pb + (k + j) * b_k), sum);
__kernel void KERNEL(matmul_plain)(__global T_C *restrict c, __global const T_A *restrict a,
                                   __global const T_B *restrict b, __global const float *restrict bias,
                                   int batch, int M, int N, int K, int a_batch, int a_m, int a_k, int b_batch,
                                   int b_k, int b_n, int has_bias, int accumulate EPILOGUE_PARAMS) {
    int i = (int)get_global_id(0);
    if (i >= batch * M * N) return;
    int n = i % N, m = i / N % M, z = i / N / M;
    __global const T_A *pa = a + z * a_batch + m * a_m;
    __global const T_B *pb = b + z * b_batch + n * b_n;
    float sum = 0.0f;
    int k = 0;
    for (; k + 8 <= K; k += 8) { // eight terms a turn: see the limit on turns in README.md
        TERM(0) TERM(1) TERM(2) TERM(3) TERM(4) TERM(5) TERM(6) TERM(7)
    }
    for (; k < K; k++) {
        TERM(0)
    }
    if (accumulate) sum += LOAD(T_C, c + i);
    if (has_bias) sum += bias[n];
    EPILOGUE_CHANNEL(n);
    STORE(T_C, KERNEL(epilogue)(sum EPILOGUE_AT(i)), c + i);
}

__kernel void KERNEL(matmul_bias)(__global T_C *restrict c, __global const float *restrict bias, int size,
                                  int N) {
    int i = (int)get_global_id(0);
    if (i < size) STORE(T_C, LOAD(T_C, c + i) + bias[i % N], c + i);
}

// ---------------------------------------------------------------- CPU-class

#if TILE

// The register tile reads vectors of B: its columns become lanes of panels of NR, whichever way B lies. Of A it reads
// single elements, so A is copied as it lies: a_m = 1, into panels of MR lanes; a_k = 1, row by row.
// Behind the last lanes and rows come zeros or copies of the last one. Their results are never stored.

// What is contiguous along the lanes, into panels of `width` lanes, `pitch` apart, a multiple of VW. Behind a panel's
// lanes comes what the next begins with.
//     dst[(l / width * depth + k) * pitch + l % width] = src[l + k*sk]        l < lanes, k < kn
#define PACK_LANES(name, T)                                                                                  \
    static void KERNEL(name)(__local float *dst, int width, int pitch, int depth, __global const T *src,     \
                             int sk, int lanes, int kn) {                                                    \
        int whole = lanes < pitch ? 0 : (lanes - pitch) / width + 1, panels = (lanes + width - 1) / width;   \
        for (int k = 0; k < kn; k++, src += sk, dst += pitch) {                                              \
            __global const T *from = src;                                                                    \
            __local float *to = dst;                                                                         \
            for (int i = 0; i < whole; i++, from += width, to += depth * pitch)                              \
                LOOP for (int l = 0; l < pitch; l += VW) LSTORE(TLOAD(T, from + l), to + l);                 \
            for (int i = whole; i < panels; i++, from += width, to += depth * pitch) {                       \
                int l = 0, n = min(pitch, lanes - i * width);                                                \
                LOOP for (; l + VW <= n; l += VW) LSTORE(TLOAD(T, from + l), to + l);                        \
                LOOP for (; l < n; l++) to[l] = LOAD(T, from + l);                                           \
                LOOP for (; l < pitch; l++) to[l] = 0.0f;                                                    \
            }                                                                                                \
        }                                                                                                    \
    }
// Columns of B that are contiguous, transposed: dst[(l / NR * depth + k) * NR + l % NR] = src[l*sl + k].
#define PACK_COLUMNS(name, T)                                                                                \
    static void KERNEL(name)(__local float *dst, int depth, __global const T *src, int sl, int lanes,        \
                             int kn) {                                                                       \
        LOOP for (int first = 0; first < (lanes + NR - 1) / NR * NR; first += TRANSPOSE_ROWS(VW)) {          \
            __local float *to = dst + first / NR * depth * NR + first % NR;                                  \
            int k = 0;                                                                                       \
            LOOP for (; k + VW <= kn; k += VW, to += VW * NR) {                                              \
                FV r[TRANSPOSE_ROWS(VW)], t[TRANSPOSE_ROWS(VW)];                                             \
                UNROLL for (int l = 0; l < TRANSPOSE_ROWS(VW); l++) r[l] =                                   \
                    TLOAD(T, src + min(first + l, lanes - 1) * sl + k);                                      \
                TRANSPOSE(TRANSPOSE_ROWS(VW), r, t)                                                          \
                PUT_COLUMNS(VW, r, to, NR)                                                                   \
            }                                                                                                \
            LOOP for (; k < kn; k++, to += NR)                                                               \
                LOOP for (int l = 0; l < TRANSPOSE_ROWS(VW); l++) to[l] =                                    \
                    LOAD(T, src + min(first + l, lanes - 1) * sl + k);                                       \
        }                                                                                                    \
    }
// Rows of A that are contiguous, AP apart: dst[m*AP + k] = src[m*sm + k].
#define PACK_ROWS(name, T)                                                                                   \
    static void KERNEL(name)(__local float *dst, __global const T *src, int sm, int rows, int kn) {          \
        int whole = (rows + MR - 1) / MR * MR;                                                               \
        for (int m = 0; m < whole; m++, dst += AP) {                                                         \
            __global const T *from = src + min(m, rows - 1) * sm;                                            \
            int k = 0;                                                                                       \
            for (; k + VW <= kn; k += VW) LSTORE(TLOAD(T, from + k), dst + k);                               \
            LOOP for (; k < kn; k++) dst[k] = LOAD(T, from + k);                                             \
        }                                                                                                    \
    }
PACK_ROWS(matmul_pack_rows, T_A)
PACK_LANES(matmul_pack_a, T_A)
PACK_LANES(matmul_pack_b, T_B)
PACK_COLUMNS(matmul_pack_columns, T_B)

// A[MR][kn] * pb[kn][NR], where A[m][k] is pa[k*PA + m] (lanes) or pa[m*AP + k] (rows); `less` has LR rows instead, for
// what is left of a matrix. The product goes to c, whose rows are N apart, straight from the registers: by a way through
// memory it would take a twentieth of all time. add: keep what C holds; all of it is asked for before any is stored, as
// rows that lie a multiple of 4 KiB apart look alike to a core. has_bias: add bias[NR]. Without c the product goes to
// t[MR][NR].
#define STEP_LANES(i) TILE2_ADD(i, pa[i], b0, b1)
#define STEP_ROWS(i) TILE2_ADD(i, pa[(i) * AP], b0, b1)
#define PUT(i) TILE2_PUT(i, L, t + i * NR)
#define FORMER(i)                                                                                            \
    x##i += TLOAD(T_C, c + i * N);                                                                           \
    y##i += TLOAD(T_C, c + i * N + VW);
#define BIAS(i)                                                                                              \
    x##i += bias0;                                                                                           \
    y##i += bias1;
#define RESULT(i)                                                                                            \
    TSTORE(T_C, x##i, c + i * N);                                                                            \
    TSTORE(T_C, y##i, c + i * N + VW);
#define MICRO(name, rows, step, next)                                                                        \
    static void KERNEL(name)(__local float *t, __local const float *pa, __local const float *pb, int kn,     \
                             __global T_C *c, int N, int add, int has_bias, __global const float *bias) {    \
        TILE_ROWS(rows, TILE2_ZERO);                                                                               \
        for (int k = 0; k < kn; k++) {                                                                       \
            FV b0 = LLOAD(pb), b1 = LLOAD(pb + VW);                                                          \
            TILE_ROWS(rows, step);                                                                           \
            pa += next;                                                                                      \
            pb += NR;                                                                                        \
        }                                                                                                    \
        if (!c) {                                                                                            \
            TILE_ROWS(rows, PUT);                                                                            \
            return;                                                                                          \
        }                                                                                                    \
        if (add) {                                                                                           \
            TILE_ROWS(rows, FORMER);                                                                         \
        }                                                                                                    \
        if (has_bias) {                                                                                      \
            FV bias0 = GLOAD(bias), bias1 = GLOAD(bias + VW);                                                \
            TILE_ROWS(rows, BIAS);                                                                           \
        }                                                                                                    \
        TILE_ROWS(rows, RESULT);                                                                             \
    }
MICRO(matmul_micro_lanes, MR, STEP_LANES, PA)
MICRO(matmul_micro_rows, MR, STEP_ROWS, 1)
MICRO(matmul_less_lanes, LR, STEP_LANES, PA)
MICRO(matmul_less_rows, LR, STEP_ROWS, 1)

// A tile's results, from t: C[at + r*N + n], r < rows, n < cols, those of columns column + n. add: keep what C holds.
// last: bias and the epilogue. With SUMS, sums[r*NC + n] holds earlier ones, if any, and keeps these unless they are last.
static void KERNEL(matmul_put)(__global T_C *c, __local float *t, __local float *sums,
                               __global const float *bias, int at, int N, int column, int rows, int cols,
                               int has_bias, int earlier, int add, int last EPILOGUE_PARAMS) {
    for (int r = 0; r < rows; r++, at += N, t += NR, sums += NC) {
        int n = 0;
        for (; n + VW <= cols; n += VW) {
            FV v = LLOAD(t + n);
#if SUMS
            if (earlier) v += LLOAD(sums + n);
            if (!last) {
                LSTORE(v, sums + n);
                continue;
            }
#endif
            if (add) v += TLOAD(T_C, c + at + n);
            if (last) {
                if (has_bias) v += GLOAD(bias + column + n);
                EPILOGUE_VECTOR_CHANNEL(VW, column + n);
                v = KERNEL(epilogue_vector)(v EPILOGUE_VECTOR_AT(VW, at + n));
            }
            TSTORE(T_C, v, c + at + n);
        }
        LOOP for (; n < cols; n++) {
            float v = t[n];
#if SUMS
            if (earlier) v += sums[n];
            if (!last) {
                sums[n] = v;
                continue;
            }
#endif
            if (add) v += LOAD(T_C, c + at + n);
            if (last) {
                if (has_bias) v += bias[column + n];
                EPILOGUE_CHANNEL(column + n);
                v = KERNEL(epilogue)(v EPILOGUE_AT(at + n));
            }
            STORE(T_C, v, c + at + n);
        }
    }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
KERNEL(matmul_tile)(__global T_C *restrict c, __global const T_A *restrict a, __global const T_B *restrict b,
                    __global const float *restrict bias, int batch, int M, int N, int K, int a_batch, int a_m,
                    int a_k, int b_batch, int b_k, int b_n, int has_bias, int accumulate, int mt, int mc,
                    int nc, int kc, int splits, int ks EPILOGUE_PARAMS) {
    __local float la[A_FLOATS];
    __local float lb[BC];
    __local float lt[MR * NR];
#if SUMS
    __local float sums[MT * NC];
#else
    __local float *sums = lt; // not used
#endif
    int m_tasks = (M + mt - 1) / mt, n_tasks = (N + nc - 1) / nc;
    int task = (int)get_group_id(0);
    int j = task % n_tasks, i = task / n_tasks % m_tasks, s = task / n_tasks / m_tasks % splits;
    int z = task / n_tasks / m_tasks / splits;
    if (z >= batch) return;
    int m_end = min(M, (i + 1) * mt), n0 = j * nc, nn = min(nc, N - n0);
    int k_begin = s * ks, k_end = min(K, k_begin + ks);
    a += z * a_batch;
    b += z * b_batch + n0 * b_n;
    for (int k0 = k_begin; k0 < k_end; k0 += kc) {
        int kn = min(kc, k_end - k0), earlier = k0 > k_begin, last = k0 + kc >= k_end && splits == 1;
        int add = SUMS ? accumulate : earlier || (accumulate && splits == 1);
        if (b_n == 1)
            KERNEL(matmul_pack_b)(lb, NR, NR, kc, b + k0 * b_k, b_k, nn, kn);
        else
            KERNEL(matmul_pack_columns)(lb, kc, b + k0, b_n, nn, kn);
        for (int m0 = i * mt; m0 < m_end; m0 += mc) {
            int mn = min(mc, m_end - m0);
            if (a_k == 1)
                KERNEL(matmul_pack_rows)(la, a + m0 * a_m + k0, a_m, mn, kn);
            else
                KERNEL(matmul_pack_a)(la, MR, PA, kc, a + m0 + k0 * a_k, a_k, mn, kn);
            for (int p = 0; p < mn; p += MR)
                for (int q = 0; q < nn; q += NR) {
                    int rows = min(MR, mn - p), cols = min(NR, nn - q), is_bias = last && has_bias;
                    int at = ((z * splits + s) * M + m0 + p) * N + n0 + q;
                    int more = SUMS | (EPILOGUE_STEPS & last); // to do with results than micro and less can
                    int whole = (rows == MR || rows == LR) && cols == NR && !more;
                    __global T_C *to = whole ? c + at : 0;
                    __local const float *pb = lb + q * kc;
                    if (a_k == 1) {
                        __local const float *pa = la + p * AP;
                        if (rows > LR)
                            KERNEL(matmul_micro_rows)(lt, pa, pb, kn, to, N, add, is_bias, bias + n0 + q);
                        else
                            KERNEL(matmul_less_rows)(lt, pa, pb, kn, to, N, add, is_bias, bias + n0 + q);
                    } else {
                        __local const float *pa = la + p / MR * (PA * kc);
                        if (rows > LR)
                            KERNEL(matmul_micro_lanes)(lt, pa, pb, kn, to, N, add, is_bias, bias + n0 + q);
                        else
                            KERNEL(matmul_less_lanes)(lt, pa, pb, kn, to, N, add, is_bias, bias + n0 + q);
                    }
                    if (whole) continue;
                    KERNEL(matmul_put)(c, lt, sums + (m0 - i * mt + p) * NC + q, bias, at, N, n0 + q, rows, cols,
                                       has_bias, earlier, add, last EPILOGUE_ARGS);
                }
        }
    }
}

__kernel void KERNEL(matmul_sum)(__global T_C *restrict c, __global const float *restrict part,
                                 __global const float *restrict bias, int batch, int M, int N, int splits,
                                 int has_bias, int accumulate EPILOGUE_PARAMS) {
    int per_batch = (M * N + VW - 1) / VW, g = (int)get_global_id(0);
    int z = g / per_batch, i0 = g % per_batch * VW, end = min(M * N, i0 + VW);
    if (z >= batch) return;
    part += z * splits * M * N;
    c += z * M * N;
    int by_column = has_bias | EPILOGUE_CHANNELS; // then a vector may not run over the end of a row
    if (i0 + VW <= M * N && (!by_column || N % VW == 0)) {
        FV v = accumulate ? TLOAD(T_C, c + i0) : (FV)(0.0f);
        LOOP for (int s = 0; s < splits; s++) v += GLOAD(part + s * M * N + i0);
        if (has_bias) v += GLOAD(bias + i0 % N);
        EPILOGUE_VECTOR_CHANNEL(VW, i0 % N);
        TSTORE(T_C, KERNEL(epilogue_vector)(v EPILOGUE_VECTOR_AT(VW, z * M * N + i0)), c + i0);
        return;
    }
    for (int i = i0; i < end; i++) {
        float v = accumulate ? LOAD(T_C, c + i) : 0.0f;
        LOOP for (int s = 0; s < splits; s++) v += part[s * M * N + i];
        if (has_bias) v += bias[i % N];
        EPILOGUE_CHANNEL(i % N);
        STORE(T_C, KERNEL(epilogue)(v EPILOGUE_AT(z * M * N + i)), c + i);
    }
}
#endif // TILE
