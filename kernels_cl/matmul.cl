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
//   matmul_local  GPU-class. Work-group WG x WG; item (x, y) of group (gx, gy, b) computes TN columns and TM
//                 rows of the tile at row gy*WG*TM, column gx*WG*TN. Tiles of K travel through local memory.
//   matmul_tile   CPU-class. Work-group 1, one work-item a task: task = ((b*splits + s)*m_tasks + i)*n_tasks
//                 + j computes rows [i*mc, (i+1)*mc), columns [j*nc, (j+1)*nc) over k in [s*ks, (s+1)*ks).
//                 Panels of both matrices are packed in local memory, MR rows by NV vectors of C stay in
//                 registers. With splits > 1 C is a workspace [batch][splits][M][N], and neither bias, C's
//                 former value nor the epilogue is used: matmul_sum finishes. K > 0; mc <= MC, a multiple of MR; nc <=
//                 NC, of NV*VW; kc <= KC.
//   matmul_bias   after a library's product: c[i] = c[i] + bias[i % N], i = get_global_id(0) < size.
//   matmul_sum    one work-item VW elements, s in order: C[b][m][n] = epilogue(sum_s part[b][s][m][n] + bias[n]).
//
// Macros
//   KERNEL(name)   how entries and helpers are named; default name
//   T_A, T_B, T_C  how a, b and c are stored: float, f16 or bf16; default float. Bias and parts of sums are floats
//   APART          1: a and b are stored differently; default 0
//   SUMS           1: matmul_tile keeps sums in local memory until they are whole, because T_C would round them
//                  after each block of K; default 0. 4 * MC * NC bytes more
//   EPI_*          the epilogue, common/epilogue.cl; default none. In plain, local, tile without splits, and sum
//   VW             lanes of a vector: 4, 8 or 16; default 16
//   MR, NV         register tile, rows and vectors: MR in 4, 6, 8, 12, 14, NV 2; default 14 x 2 for VW 16,
//                  else 6 x 2
//   MC, NC, KC     largest block a task packs: default 16*MR, 384, 256. Local memory: 4 * (MC/MR*PA*KC + KC*NC
//                  + MR*NV*VW) bytes, where PA is MR rounded up to a multiple of VW
//   TILE           1: with the CPU-class entries, the default; 0: without, for devices that never run them and
//                  would compile them all the same
//   WG, TM, TN, TK work-group edge, rows and columns an item, depth of a tile: default 16, 4, 4, 16.
//                  Local memory: 4 * TK * (WG*TM + 1 + WG*TN + 1) bytes
//
// Source: the block structure is that of Goto, van de Geijn 2008, "Anatomy of high-performance matrix
// multiplication", ACM Transactions on Mathematical Software 34(3).

#ifndef KERNEL
#define KERNEL(name) name
#endif
#ifndef T_A
#define T_A float
#endif
#ifndef T_B
#define T_B float
#endif
#ifndef T_C
#define T_C float
#endif
#ifndef APART
#define APART 0
#endif
#ifndef SUMS
#define SUMS 0
#endif
#ifndef TILE
#define TILE 1
#endif
#ifndef VW
#define VW 16
#endif
#ifndef MR
#if VW == 16
#define MR 14
#else
#define MR 6
#endif
#endif
#ifndef NV
#define NV 2
#endif
#ifndef MC
#define MC (16 * MR)
#endif
#ifndef NC
#define NC 384
#endif
#ifndef KC
#define KC 256
#endif
#ifndef WG
#define WG 16
#endif
#ifndef TM
#define TM 4
#endif
#ifndef TN
#define TN 4
#endif
#ifndef TK
#define TK 16
#endif

#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
#define FV CAT(float, VW)
// Vectors at any multiple of 4 bytes. Where the compiler is known to keep a typedef's lower alignment, plain
// accesses: a long body of vloadN and vstoreN doubles PoCL's compile time.
#ifdef __clang__
typedef FV __attribute__((aligned(4))) KERNEL(matmul_vector);
#define GLOAD(p) (*(__global const KERNEL(matmul_vector) *)(p))
#define LLOAD(p) (*(__local const KERNEL(matmul_vector) *)(p))
#define GSTORE(v, p) (*(__global KERNEL(matmul_vector) *)(p) = (v))
#define LSTORE(v, p) (*(__local KERNEL(matmul_vector) *)(p) = (v))
#else
#define GLOAD(p) CAT(vload, VW)(0, p)
#define LLOAD(p) CAT(vload, VW)(0, p)
#define GSTORE(v, p) CAT(vstore, VW)(v, 0, p)
#define LSTORE(v, p) CAT(vstore, VW)(v, 0, p)
#endif
// Vectors of a tensor that is stored as T.
#define TLOAD(T, p) CAT(tload_, T)(p)
#define tload_float(p) GLOAD(p)
#define tload_f16(p) VLOAD(f16, VW, p)
#define tload_bf16(p) VLOAD(bf16, VW, p)
#define TSTORE(T, v, p) CAT(tstore_, T)(v, p)
#define tstore_float(v, p) GSTORE(v, p)
#define tstore_f16(v, p) VSTORE(f16, VW, v, p)
#define tstore_bf16(v, p) VSTORE(bf16, VW, v, p)
EPILOGUE_FUNCTION(KERNEL(epilogue), float)
EPILOGUE_FUNCTION(KERNEL(epilogue_vector), FV)
#define NR (NV * VW)
#define PA ((MR + VW - 1) / VW * VW)

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

// ---------------------------------------------------------------- GPU-class

__kernel __attribute__((reqd_work_group_size(WG, WG, 1))) void
KERNEL(matmul_local)(__global T_C *restrict c, __global const T_A *restrict a, __global const T_B *restrict b,
                     __global const float *restrict bias, int batch, int M, int N, int K, int a_batch,
                     int a_m, int a_k, int b_batch, int b_k, int b_n, int has_bias,
                     int accumulate EPILOGUE_PARAMS) {
    __local float la[TK][WG * TM + 1];
    __local float lb[TK][WG * TN + 1];
    int x = (int)get_local_id(0), y = (int)get_local_id(1), id = y * WG + x, z = (int)get_group_id(2);
    int m0 = (int)get_group_id(1) * (WG * TM), n0 = (int)get_group_id(0) * (WG * TN);
    a += z * a_batch;
    b += z * b_batch;
    float acc[TM][TN];
    for (int i = 0; i < TM; i++)
        for (int j = 0; j < TN; j++) acc[i][j] = 0.0f;
    for (int k0 = 0; k0 < K; k0 += TK) {
        // Neighbouring items read neighbouring addresses whichever stride is 1.
        for (int t = id; t < TK * WG * TM; t += WG * WG) {
            int k = a_k == 1 ? t % TK : t / (WG * TM), m = a_k == 1 ? t / TK : t % (WG * TM);
            la[k][m] = k0 + k < K && m0 + m < M ? LOAD(T_A, a + (m0 + m) * a_m + (k0 + k) * a_k) : 0.0f;
        }
        for (int t = id; t < TK * WG * TN; t += WG * WG) {
            int k = b_n == 1 ? t / (WG * TN) : t % TK, n = b_n == 1 ? t % (WG * TN) : t / TK;
            lb[k][n] = k0 + k < K && n0 + n < N ? LOAD(T_B, b + (n0 + n) * b_n + (k0 + k) * b_k) : 0.0f;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < TK; k++) {
            float ra[TM], rb[TN];
            for (int i = 0; i < TM; i++) ra[i] = la[k][y + i * WG];
            for (int j = 0; j < TN; j++) rb[j] = lb[k][x + j * WG];
            for (int i = 0; i < TM; i++)
                for (int j = 0; j < TN; j++) acc[i][j] = fma(ra[i], rb[j], acc[i][j]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int i = 0; i < TM; i++) {
        int m = m0 + y + i * WG;
        if (m >= M) continue;
        for (int j = 0; j < TN; j++) {
            int n = n0 + x + j * WG;
            if (n >= N) continue;
            int at = (z * M + m) * N + n;
            __global T_C *p = c + at;
            float sum = acc[i][j];
            if (accumulate) sum += LOAD(T_C, p);
            if (has_bias) sum += bias[n];
            EPILOGUE_CHANNEL(n);
            STORE(T_C, KERNEL(epilogue)(sum EPILOGUE_AT(at)), p);
        }
    }
}

// ---------------------------------------------------------------- CPU-class

#if TILE

#define LOOP _Pragma("clang loop vectorize(disable) unroll(disable)")
// Pack the lanes (rows of A, columns of B) of a block into panels of `width` lanes, `pitch` apart, a multiple of VW:
//     dst[(l / width * depth + k) * pitch + l % width] = src[l*sl + k*sk]        l < lanes, k < kn; sl or sk is 1
// Behind a panel's lanes comes what the next begins with; behind the last ones zeros or copies of the last one. Their results
// are never stored. What is contiguous along the lanes is read row by row, the rest in strips of VW lanes.
#define PACK(name, T)                                                                                        \
    static void KERNEL(name##_strip)(__local float *dst, int pitch, __global const T *src, int sl, int sk,   \
                                     int lanes, int kn) {                                                    \
        int k = 0;                                                                                           \
        if (lanes <= 0) {                                                                                    \
            for (; k < kn; k++) LSTORE((FV)(0.0f), dst + k * pitch);                                         \
        } else if (sl == 1 && lanes >= VW) {                                                                 \
            for (; k < kn; k++) LSTORE(TLOAD(T, src + k * sk), dst + k * pitch);                             \
        } else if (sk == 1) {                                                                                \
            for (; k + VW <= kn; k += VW) {                                                                  \
                FV r[VW], t[VW];                                                                             \
                UNROLL for (int l = 0; l < VW; l++) r[l] = TLOAD(T, src + min(l, lanes - 1) * sl + k);       \
                TRANSPOSE(VW, r, t)                                                                          \
                UNROLL for (int l = 0; l < VW; l++) LSTORE(r[l], dst + (k + l) * pitch);                     \
            }                                                                                                \
        }                                                                                                    \
        for (; k < kn; k++)                                                                                  \
            LOOP for (int l = 0; l < VW; l++) dst[k * pitch + l] =                                           \
                l < lanes ? LOAD(T, src + l * sl + k * sk) : 0.0f;                                           \
    }                                                                                                        \
    static void KERNEL(name)(__local float *dst, int width, int pitch, int depth, __global const T *src,     \
                             int sl, int sk, int lanes, int kn) {                                            \
        int p = 0, panels = (lanes + width - 1) / width;                                                     \
        if (sl == 1 && lanes >= pitch) {                                                                     \
            p = (lanes - pitch) / width + 1;                                                                 \
            for (int k = 0; k < kn; k++) {                                                                   \
                __global const T *from = src + k * sk;                                                       \
                __local float *to = dst + k * pitch;                                                         \
                for (int i = 0; i < p; i++, from += width, to += depth * pitch)                              \
                    LOOP for (int l = 0; l < pitch; l += VW) LSTORE(TLOAD(T, from + l), to + l);             \
            }                                                                                                \
        }                                                                                                    \
        for (; p < panels; p++)                                                                              \
            LOOP for (int l = 0; l < pitch; l += VW) {                                                       \
                int first = p * width + l;                                                                   \
                KERNEL(name##_strip)                                                                         \
                (dst + p * depth * pitch + l, pitch, src + first * sl, sl, sk, lanes - first, kn);           \
            }                                                                                                \
    }
PACK(matmul_pack, T_A)
#if APART
PACK(matmul_pack_b, T_B)
#endif

#define ROWS4(X) X(0) X(1) X(2) X(3)
#define ROWS6(X) ROWS4(X) X(4) X(5)
#define ROWS8(X) ROWS6(X) X(6) X(7)
#define ROWS12(X) ROWS8(X) X(8) X(9) X(10) X(11)
#define ROWS14(X) ROWS12(X) X(12) X(13)
#define ROWS CAT(ROWS, MR)

// c[MR][NR] (+)= pa[kn][MR] * pb[kn][NR], all of it; edges are the caller's business. ldc counts elements.
// add: keep what c holds. last: bias (may be 0) and the epilogue.
#define DECL(i) FV x##i = (FV)(0.0f), y##i = (FV)(0.0f);
#define STEP(i)                                                                                              \
    {                                                                                                        \
        FV v = (FV)(pa[i]);                                                                                  \
        x##i = fma(v, b0, x##i);                                                                             \
        y##i = fma(v, b1, y##i);                                                                             \
    }
#define PUT(i)                                                                                               \
    LSTORE(x##i, t + i * NR);                                                                                \
    LSTORE(y##i, t + i * NR + VW);
static void KERNEL(matmul_micro)(__local float *t, __local const float *pa, __local const float *pb, int kn) {
    ROWS(DECL);
    for (int k = 0; k < kn; k++) {
        FV b0 = LLOAD(pb), b1 = LLOAD(pb + VW);
        ROWS(STEP);
        pa += PA;
        pb += NR;
    }
    ROWS(PUT);
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
KERNEL(matmul_tile)(__global T_C *restrict c, __global const T_A *restrict a, __global const T_B *restrict b,
                    __global const float *restrict bias, int batch, int M, int N, int K, int a_batch, int a_m,
                    int a_k, int b_batch, int b_k, int b_n, int has_bias, int accumulate, int mc, int nc,
                    int kc, int splits, int ks EPILOGUE_PARAMS) {
    __local float la[MC / MR * PA * KC];
    __local float lb[KC * NC];
    __local float lt[MR * NR];
#if SUMS
    __local float lc[MC * NC];
#endif
    int m_tasks = (M + mc - 1) / mc, n_tasks = (N + nc - 1) / nc;
    int task = (int)get_group_id(0);
    int j = task % n_tasks, i = task / n_tasks % m_tasks, s = task / n_tasks / m_tasks % splits;
    int z = task / n_tasks / m_tasks / splits;
    if (z >= batch) return;
    int m0 = i * mc, mn = min(mc, M - m0), n0 = j * nc, nn = min(nc, N - n0);
    int k_begin = s * ks, k_end = min(K, k_begin + ks);
    a += z * a_batch + m0 * a_m;
    b += z * b_batch + n0 * b_n;
    c += ((z * splits + s) * M + m0) * N + n0;
    for (int k0 = k_begin; k0 < k_end; k0 += kc) {
        int kn = min(kc, k_end - k0);
#if !SUMS
        int add = k0 > k_begin || (accumulate && splits == 1);
#endif
        int last = k0 + kc >= k_end && splits == 1;
#if APART
        KERNEL(matmul_pack)(la, MR, PA, kc, a + k0 * a_k, a_m, a_k, mn, kn);
        KERNEL(matmul_pack_b)(lb, NR, NR, kc, b + k0 * b_k, b_n, b_k, nn, kn);
#else
        LOOP for (int side = 0; side < 2; side++) // one call, so that it is compiled once
            KERNEL(matmul_pack)(side ? lb : la, side ? NR : MR, side ? NR : PA, kc, side ? b + k0 * b_k : a + k0 * a_k,
                                side ? b_n : a_m, side ? b_k : a_k, side ? nn : mn, kn);
#endif
        for (int q = 0; q < nn; q += NR)
            for (int p = 0; p < mn; p += MR) {
                KERNEL(matmul_micro)(lt, la + p / MR * (PA * kc), lb + q * kc, kn);
                int rows = min(MR, mn - p), cols = min(NR, nn - q);
                for (int r = 0; r < rows; r++) {
                    __global T_C *pc = c + (p + r) * N + q;
                    int n = 0;
                    for (; n + VW <= cols; n += VW) {
                        FV v = LLOAD(lt + r * NR + n);
#if SUMS
                        __local float *sum = lc + (p + r) * NC + q + n;
                        if (k0 > k_begin) v += LLOAD(sum);
                        if (!last) {
                            LSTORE(v, sum);
                            continue;
                        }
                        if (accumulate) v += TLOAD(T_C, pc + n);
#else
                        if (add) v += TLOAD(T_C, pc + n);
#endif
                        if (last) {
                            if (has_bias) v += GLOAD(bias + n0 + q + n);
                            EPILOGUE_VECTOR_CHANNEL(VW, n0 + q + n);
                            v = KERNEL(epilogue_vector)(v EPILOGUE_VECTOR_AT(VW, (z * M + m0 + p + r) * N + n0 + q + n));
                        }
                        TSTORE(T_C, v, pc + n);
                    }
                    LOOP for (; n < cols; n++) {
                        float v = lt[r * NR + n];
#if SUMS
                        __local float *sum = lc + (p + r) * NC + q + n;
                        if (k0 > k_begin) v += *sum;
                        if (!last) {
                            *sum = v;
                            continue;
                        }
                        if (accumulate) v += LOAD(T_C, pc + n);
#else
                        if (add) v += LOAD(T_C, pc + n);
#endif
                        if (last) {
                            if (has_bias) v += bias[n0 + q + n];
                            EPILOGUE_CHANNEL(n0 + q + n);
                            v = KERNEL(epilogue)(v EPILOGUE_AT((z * M + m0 + p + r) * N + n0 + q + n));
                        }
                        STORE(T_C, v, pc + n);
                    }
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

#undef CAT_
#undef CAT
#undef FV
#undef GLOAD
#undef LLOAD
#undef GSTORE
#undef LSTORE
#undef TLOAD
#undef tload_float
#undef tload_f16
#undef tload_bf16
#undef TSTORE
#undef tstore_float
#undef tstore_f16
#undef tstore_bf16
#undef PACK
#undef NR
#undef PA
#undef TERM
#undef ROWS4
#undef ROWS6
#undef ROWS8
#undef ROWS12
#undef ROWS14
#undef ROWS
#undef DECL
#undef STEP
#undef PUT
