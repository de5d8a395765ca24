// SPDX-License-Identifier: Apache-2.0
// A block of n vectors, n 4, 8 or 16, transposed in registers, for the kernels of CPU-class devices:
//
//     FV r[VW], t[VW];
//     UNROLL for (int i = 0; i < VW; i++) r[i] = ...;      row i
//     TRANSPOSE(VW, r, t)                                   r[i] is column i; t is scratch
//     UNROLL for (int i = 0; i < VW; i++) ... = r[i];
//
// The vectors may have more lanes than there are vectors: then each holds several columns of n afterwards. UNROLL matters: an
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
#define TRANSPOSE_16(r, t)                                                                                   \
    TRANSPOSE_ROUND(16, t, r) TRANSPOSE_ROUND(16, r, t) TRANSPOSE_ROUND(16, t, r) TRANSPOSE_ROUND(16, r, t)
#define TRANSPOSE_OF(n, r, t) TRANSPOSE_##n(r, t)
#define TRANSPOSE(n, r, t) TRANSPOSE_OF(n, r, t)
