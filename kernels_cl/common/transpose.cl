// SPDX-License-Identifier: Apache-2.0
// A block of n vectors, n 4, 8 or 16, transposed in registers, for the kernels of CPU-class devices:
//
//     FV r[VW], t[VW];
//     UNROLL for (int i = 0; i < VW; i++) r[i] = ...;      row i
//     TRANSPOSE(VW, r, t)                                   r[i] is column i; t is scratch
//     UNROLL for (int i = 0; i < VW; i++) ... = r[i];
//
// The vectors may have more lanes than there are vectors: then each holds several columns of n afterwards, r[0] the first. UNROLL matters: an
// index that is not a constant puts the whole array into memory.
#define UNROLL _Pragma("clang loop unroll(full)")

// One round of the perfect shuffle of n vectors; log2(n) rounds make rows of n of columns of n.
#define TRANSPOSE_ROUND(n, d, s)                                                                             \
    UNROLL for (int i_ = 0; i_ < (n) / 2; i_++) {                                                            \
        d[2 * i_].even = s[i_].lo;                                                                           \
        d[2 * i_].odd = s[i_ + (n) / 2].lo;                                                                  \
        d[2 * i_ + 1].even = s[i_].hi;                                                                       \
        d[2 * i_ + 1].odd = s[i_ + (n) / 2].hi;                                                              \
    }
#define TRANSPOSE_4(r, t) TRANSPOSE_ROUND(4, t, r) TRANSPOSE_ROUND(4, r, t)
#define TRANSPOSE_8(r, t)                                                                                    \
    TRANSPOSE_ROUND(8, t, r) TRANSPOSE_ROUND(8, r, t) TRANSPOSE_ROUND(8, t, r)                               \
    UNROLL for (int i_ = 0; i_ < 8; i_++) r[i_] = t[i_];
// Two blocks of eight rows, then their halves put together: four rounds of sixteen take LLVM longer, 0.25 s.
#define TRANSPOSE_16(r, t)                                                                                   \
    TRANSPOSE_ROUND(8, t, r) TRANSPOSE_ROUND(8, r, t) TRANSPOSE_ROUND(8, t, r)                               \
    TRANSPOSE_ROUND(8, (t + 8), (r + 8)) TRANSPOSE_ROUND(8, (r + 8), (t + 8)) TRANSPOSE_ROUND(8, (t + 8), (r + 8)) \
    UNROLL for (int i_ = 0; i_ < 8; i_++) {                                                                  \
        r[2 * i_] = (float16)(t[i_].lo, t[i_ + 8].lo);                                                       \
        r[2 * i_ + 1] = (float16)(t[i_].hi, t[i_ + 8].hi);                                                   \
    }
#define TRANSPOSE_OF(n, r, t) TRANSPOSE_##n(r, t)

// Where start-up weighs more than the last percent, a block of vw x vw goes by TRANSPOSE_ROWS(vw) rows at a time: eight rows take
// LLVM a third of the time of sixteen to compile.
//
//     LOOP for (int l = 0; l < VW; l += TRANSPOSE_ROWS(VW)) {
//         FV r[TRANSPOSE_ROWS(VW)], t[TRANSPOSE_ROWS(VW)];
//         ...                                                 rows l, l + 1, ...
//         TRANSPOSE(TRANSPOSE_ROWS(VW), r, t)
//         PUT_COLUMNS(VW, r, dst + l, pitch)                  dst[c*pitch + l ...], c < VW
//     }
#define TRANSPOSE_ROWS_4 4
#define TRANSPOSE_ROWS_8 8
#define TRANSPOSE_ROWS_16 8
#define TRANSPOSE_ROWS_OF(vw) TRANSPOSE_ROWS_##vw
#define TRANSPOSE_ROWS(vw) TRANSPOSE_ROWS_OF(vw)
#define PUT_COLUMNS_4(r, dst, pitch)                                                                         \
    UNROLL for (int i_ = 0; i_ < 4; i_++) vstore4(r[i_], 0, (dst) + i_ * (pitch));
#define PUT_COLUMNS_8(r, dst, pitch)                                                                         \
    UNROLL for (int i_ = 0; i_ < 8; i_++) vstore8(r[i_], 0, (dst) + i_ * (pitch));
#define PUT_COLUMNS_16(r, dst, pitch)                                                                        \
    UNROLL for (int i_ = 0; i_ < 8; i_++) {                                                                  \
        vstore8(r[i_].lo, 0, (dst) + 2 * i_ * (pitch));                                                      \
        vstore8(r[i_].hi, 0, (dst) + (2 * i_ + 1) * (pitch));                                                \
    }
#define PUT_COLUMNS_OF(vw, r, dst, pitch) PUT_COLUMNS_##vw(r, dst, pitch)
#define PUT_COLUMNS(vw, r, dst, pitch) PUT_COLUMNS_OF(vw, r, dst, pitch)
#define TRANSPOSE(n, r, t) TRANSPOSE_OF(n, r, t)
