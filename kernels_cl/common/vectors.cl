// SPDX-License-Identifier: Apache-2.0
// Vectors for kernels of CPU-class devices, of as many floats as a file's macro VW says, 4, 8 or 16, at any multiple of 4 bytes:
//
//     FV                           VW floats                LANES    the numbers of its lanes, ints
//     GLOAD(p), GSTORE(v, p)       of global memory         LLOAD(p), LSTORE(v, p)                of local memory
//     TLOAD(T, p), TSTORE(T, v, p) of a tensor stored as T  LLOAD_AS(T, p), LSTORE_AS(T, v, p)    of a type of vectors T
//
// Where the compiler is known to keep a typedef's lower alignment, these are plain accesses: a long body of vloadN and vstoreN doubles
// PoCL's compile time, and of local memory PoCL takes them apart, so that what is stored in parts waits before it is loaded whole.
#define FV PASTE(float, VW)
#ifdef __clang__
typedef float4 __attribute__((aligned(4))) unaligned_float4;
typedef float8 __attribute__((aligned(4))) unaligned_float8;
typedef float16 __attribute__((aligned(4))) unaligned_float16;
typedef int16 __attribute__((aligned(4))) unaligned_int16;
#define GLOAD(p) (*(__global const PASTE(unaligned_, FV) *)(p))
#define GSTORE(v, p) (*(__global PASTE(unaligned_, FV) *)(p) = (v))
#define LLOAD_AS(T, p) (*(__local const PASTE(unaligned_, T) *)(p))
#define LSTORE_AS(T, v, p) (*(__local PASTE(unaligned_, T) *)(p) = (v))
#else
#define GLOAD(p) PASTE(vload, VW)(0, p)
#define GSTORE(v, p) PASTE(vstore, VW)(v, 0, p)
#define LLOAD_AS(T, p) PASTE(vload_as_, T)(0, p)
#define LSTORE_AS(T, v, p) PASTE(vstore_as_, T)(v, 0, p)
#define vload_as_float4 vload4
#define vload_as_float8 vload8
#define vload_as_float16 vload16
#define vload_as_int16 vload16
#define vstore_as_float4 vstore4
#define vstore_as_float8 vstore8
#define vstore_as_float16 vstore16
#define vstore_as_int16 vstore16
#endif
#define LLOAD(p) LLOAD_AS(FV, p)
#define LSTORE(v, p) LSTORE_AS(FV, v, p)
#define TLOAD(T, p) PASTE(tload_, T)(p)
#define tload_float(p) GLOAD(p)
#define tload_f16(p) VLOAD(f16, VW, p)
#define tload_bf16(p) VLOAD(bf16, VW, p)
#define TSTORE(T, v, p) PASTE(tstore_, T)(v, p)
#define tstore_float(v, p) GSTORE(v, p)
#define tstore_f16(v, p) VSTORE(f16, VW, v, p)
#define tstore_bf16(v, p) VSTORE(bf16, VW, v, p)
#define LANES PASTE(LANES_, VW)
#define LANES_4 (int4)(0, 1, 2, 3)
#define LANES_8 (int8)(0, 1, 2, 3, 4, 5, 6, 7)
#define LANES_16 (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)

// On a loop that runs seldom or over tails: an optimiser's unrolled copies would only cost compile time.
#define LOOP _Pragma("clang loop vectorize(disable) unroll(disable)")

// Rows of a register tile: X(0) X(1) ... X(n - 1).
#define TILE_ROWS(n, X) PASTE(TILE_ROWS_, n)(X)
#define TILE_ROWS_4(X) X(0) X(1) X(2) X(3)
#define TILE_ROWS_6(X) TILE_ROWS_4(X) X(4) X(5)
#define TILE_ROWS_8(X) TILE_ROWS_6(X) X(6) X(7)
#define TILE_ROWS_9(X) TILE_ROWS_8(X) X(8)
#define TILE_ROWS_10(X) TILE_ROWS_9(X) X(9)
#define TILE_ROWS_12(X) TILE_ROWS_10(X) X(10) X(11)
#define TILE_ROWS_14(X) TILE_ROWS_12(X) X(12) X(13)

// A row of a register tile of two vectors: zeros; from memory, local (L) or global (G); those added; a times b0 and b1 added; to memory.
#define TILE2_ZERO(i) FV x##i = (FV)(0.0f), y##i = (FV)(0.0f);
#define TILE2_GET(i, L, from) x##i = L##LOAD(from), y##i = L##LOAD((from) + VW);
#define TILE2_FORMER(i, L, from) x##i += L##LOAD(from), y##i += L##LOAD((from) + VW);
#define TILE2_ADD(i, a, b0, b1)                                                                              \
    {                                                                                                        \
        const FV a_ = (FV)(a);                                                                               \
        x##i = fma(a_, b0, x##i);                                                                            \
        y##i = fma(a_, b1, y##i);                                                                            \
    }
#define TILE2_PUT(i, L, to) L##STORE(x##i, to), L##STORE(y##i, (to) + VW);

// The even and the odd elements of two vectors.
#define EVEN_ODD(even_, odd_, a, b)                                                                          \
    FV even_, odd_;                                                                                          \
    even_.lo = (a).even;                                                                                     \
    even_.hi = (b).even;                                                                                     \
    odd_.lo = (a).odd;                                                                                       \
    odd_.hi = (b).odd;

// body(16), then body(), for sixteen elements and for one from i on, as long as there are so many below `end`. In it LOAD##n and STORE##n
// are accesses to all of them, and float##n is what they are.
#define LOAD16(T, p) VLOAD(T, 16, p)
#define STORE16(T, v, p) VSTORE(T, 16, v, p)
#define BY_SIXTEEN(i, end, body)                                                                             \
    for (i = 0; i + 16 <= end; i += 16) body(16) for (; i < end; i++) body()

// What the lanes of sixteen have together: the largest, and the sum, by halves to the end, or by pairs of the last four.
static float clv_largest16(float16 v) {
    const float8 a = fmax(v.lo, v.hi);
    const float4 b = fmax(a.lo, a.hi);
    return fmax(fmax(b.x, b.y), fmax(b.z, b.w));
}
static float clv_sum16(float16 v) {
    const float8 a = v.lo + v.hi;
    const float4 b = a.lo + a.hi;
    const float2 c = b.lo + b.hi;
    return c.x + c.y;
}
static float clv_sum16_pairs(float16 v) {
    const float8 a = v.lo + v.hi;
    const float4 b = a.lo + a.hi;
    return (b.x + b.y) + (b.z + b.w);
}

// Sixteen neighbours from `at`, or the `lanes` that there are (the rest 0), of a tensor that is stored as T.
#define LOAD_FEW(T, at, lanes) PASTE(load_few_, T)(at, lanes)
#define LOAD_FEW_OF(T)                                                                                       \
    static float16 load_few_##T(__global const T *at, int lanes) {                                           \
        if (lanes == 16) return VLOAD(T, 16, at);                                                            \
        float few[16];                                                                                       \
        for (int l = 0; l < 16; l++) few[l] = l < lanes ? LOAD(T, at + l) : 0.0f;                            \
        return vload16(0, few);                                                                              \
    }
LOAD_FEW_OF(float)
LOAD_FEW_OF(f16)
LOAD_FEW_OF(bf16)
