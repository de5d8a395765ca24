// SPDX-License-Identifier: Apache-2.0
// Matrix units: the items of a sub-group multiply small matrices together. What is here is all that knows vendors' instructions; kernels that
// use it are the same for all, and emulated everything but the instruction can be checked on any device.
//
// A word is a term in tf32 or two neighbouring terms in f16 or bf16, the first in the low half. A tile of A in local memory has rows of
// MATRIX_WIDTH words, one of B columns of as many; where they lie is the unit's affair. A fragment of the result has MATRIX_M rows and
// MATRIX_N columns; the MATRIX_LANES items of a sub-group make it together, each MATRIX_SUMS of its elements, eight words at a time.
//
//     MATRIX_PUT_A(tile, row, word, x)   x: a uint4, words `word` and `word` + 1 of `row`, and those of `row` + 1; both are even
//     MATRIX_PUT_B(tile, column, word, x)
//     MATRIX_LOAD_A(a, tile, row, s)     an item's words a[MATRIX_A_WORDS] of the fragment that begins at `row`: words 8*s to 8*s + 7
//     MATRIX_LOAD_B(b, tile, column, s)
//     MATRIX_MULTIPLY(c, a, b)           c[MATRIX_SUMS] += A * B. All items of the group come here
//     MATRIX_ROW(lane, e), MATRIX_COLUMN(lane, e)      where c[e] lies in the fragment
//     MATRIX_SCRATCH(items)              declares local memory that an emulation wants
//     MATRIX_WORD(T, word, x, y)         word = that of the elements x and y (tf32: of x), which are stored as T, rounded to nearest
//
// MATRIX_UNIT   which unit: 0 none, emulated with the fragments of 1; 1 NVIDIA's mma.sync (sm_80 up). Default: what the compiler has.
//               runtime/device/matrix.c asks the device whether it computes rightly, and sets 0 where it does not
// An instance that uses it defines
// MATRIX_TYPE   tf32, f16 or bf16: what the unit multiplies. Sums are f32
// MATRIX_WIDTH  words of a row: 16 or 8
#ifndef MATRIX_UNIT
#if defined(__NVPTX__) || defined(__NV_CL_C_VERSION) || defined(cl_nv_pragma_unroll)
#define MATRIX_UNIT 1
#else
#define MATRIX_UNIT 0
#endif
#endif

#define MATRIX_TERMS_tf32 1 // in a word
#define MATRIX_TERMS_f16 2
#define MATRIX_TERMS_bf16 2
#define MATRIX_TERMS PASTE(MATRIX_TERMS_, MATRIX_TYPE)
#define MATRIX_WORD(T, word, x, y) PASTE(PASTE(MATRIX_WORD_, MATRIX_TYPE), PASTE(_of_, T))(T, word, x, y)
#define MATRIX_WORD_tf32_of_float(T, word, x, y) MATRIX_WORD_tf32(word, x, y)(void)(y);
#define MATRIX_WORD_f16_of_float(T, word, x, y) MATRIX_WORD_f16(word, x, y)
#define MATRIX_WORD_f16_of_f16(T, word, x, y) word = (uint)(x) | (uint)(y) << 16;
#define MATRIX_WORD_f16_of_bf16(T, word, x, y) MATRIX_WORD_f16(word, LOAD(T, &(x)), LOAD(T, &(y)))
#define MATRIX_WORD_bf16_of_float(T, word, x, y) MATRIX_WORD_bf16(word, x, y)
#define MATRIX_WORD_bf16_of_f16(T, word, x, y) MATRIX_WORD_bf16(word, LOAD(T, &(x)), LOAD(T, &(y)))
#define MATRIX_WORD_bf16_of_bf16(T, word, x, y) word = (uint)(x) | (uint)(y) << 16;

// ---- mma.sync, and its emulation: fragments of 16 x 16, by two instructions ---------------------------------------------
//
// For eight words of rows the instruction wants from item 4*g + t, in registers side by side, words t and t + 4 of rows g and g + 8 of A, and
// of column g of B. Which of a tile's rows, columns and words these are is free, as long as A and B agree on the words. So an item has
// words 2*t and 2*t + 1 of rows 2*g and 2*g + 1, and of columns 2*g (of the first instruction) and 2*g + 1 (of the second): sixteen bytes of
// local memory, in one access. It is also what an item that fills the tile has at once. These four words lie at
//     ((block*S + s)*8 + (g ^ s))*4 + (t ^ g/2)        block: sixteen rows; s: eight words of the S of a row
// so eight items meet all banks, whether they are neighbours in t, as those that fill the tile along rows, in g, as those that do so across,
// or in both, as those that multiply.
#define MATRIX_LANES 32
#define MATRIX_M 16
#define MATRIX_N 16
#define MATRIX_SUMS 8
#define MATRIX_A_WORDS 4
#define MATRIX_B_WORDS 4
#define MATRIX_PLACE(block, s, g, t)                                                                         \
    ((((block) * (MATRIX_WIDTH / 8) + (s)) * 8 + ((g) ^ (s))) * 4 + ((t) ^ ((g) / 2)))
#define MATRIX_PUT(tile, row, word, x)                                                                       \
    ((__local uint4 *)(tile))[MATRIX_PLACE((row) / 16, (word) / 8, (row) / 2 % 8, (word) / 2 % 4)] = x;
#define MATRIX_PUT_A(tile, row, word, x) MATRIX_PUT(tile, row, word, (x).xzyw)
#define MATRIX_PUT_B(tile, column, word, x) MATRIX_PUT(tile, column, word, x)
#define MATRIX_ROW(lane, e) ((lane) / 4 * 2 + (e) / 2 % 2)
#define MATRIX_COLUMN(lane, e) ((lane) % 4 * 4 + (e) % 2 * 2 + (e) / 4)
#define MATRIX_LOAD(to, tile, row, s)                                                                        \
    {                                                                                                        \
        const int lane_ = (int)get_local_id(0) % 32;                                                         \
        const uint4 x_ = ((__local const uint4 *)(tile))[(row) / 16 * (MATRIX_WIDTH * 4) +                   \
                                                         MATRIX_PLACE(0, s, lane_ / 4, lane_ % 4)];          \
        (to)[0] = x_.x, (to)[1] = x_.y, (to)[2] = x_.z, (to)[3] = x_.w;                                      \
    }
#define MATRIX_LOAD_A(a, tile, row, s) MATRIX_LOAD(a, tile, row, s)
#define MATRIX_LOAD_B(b, tile, column, s) MATRIX_LOAD(b, tile, column, s)
#define MATRIX_MULTIPLY(c, a, b)                                                                             \
    MATRIX_STEP(c, 0, a, (b)[0], (b)[1])                                                                     \
    MATRIX_STEP(c, 4, a, (b)[2], (b)[3])

#if MATRIX_UNIT == 1
#define MATRIX_UNROLLED _Pragma("unroll")
#define MATRIX_SCRATCH(items)
#define MATRIX_WORD_tf32(word, v, w) __asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(word) : "f"(v));
#define MATRIX_WORD_f16(word, v, w) __asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(w), "f"(v));
#define MATRIX_WORD_bf16(word, v, w) __asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(w), "f"(v));
#define MATRIX_MMA_tf32 "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
#define MATRIX_MMA_f16 "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
#define MATRIX_MMA_bf16 "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
#define MATRIX_STEP(c, n, a, b0, b1)                                                                         \
    __asm volatile(PASTE(MATRIX_MMA_, MATRIX_TYPE) "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "          \
                                                   "{%0, %1, %2, %3};"                                       \
                   : "+f"((c)[n]), "+f"((c)[n + 1]), "+f"((c)[n + 2]), "+f"((c)[n + 3])                      \
                   : "r"((a)[0]), "r"((a)[1]), "r"((a)[2]), "r"((a)[3]), "r"(b0), "r"(b1));
#else
// Each item leaves its words in local memory, and takes those of its sums from there. Nothing is unrolled, for the compilers' sake.
#define MATRIX_UNROLLED
#define MATRIX_SCRATCH(items) __local uint matrix_scratch[(items)*6];
#define MATRIX_WORD_tf32(word, v, w)                                                                         \
    word = (as_uint(v) & 0x7f800000u) == 0x7f800000u ? as_uint(v) : (as_uint(v) + 0x1000u) & 0xffffe000u;
#define MATRIX_WORD_f16(word, v, w) word = (uint)STORAGE_TO_F16(v) | (uint)STORAGE_TO_F16(w) << 16;
#define MATRIX_WORD_bf16(word, v, w) word = (uint)bf16_of_float(v) | (uint)bf16_of_float(w) << 16;
#define MATRIX_DOT_tf32(a, b, sum) fma(as_float(a), as_float(b), sum)
#define MATRIX_DOT_f16(a, b, sum)                                                                            \
    fma(STORAGE_OF_F16((ushort)((a) >> 16)), STORAGE_OF_F16((ushort)((b) >> 16)),                            \
        fma(STORAGE_OF_F16((ushort)(a)), STORAGE_OF_F16((ushort)(b)), sum))
#define MATRIX_DOT_bf16(a, b, sum)                                                                           \
    fma(as_float((a)&0xffff0000u), as_float((b)&0xffff0000u),                                                \
        fma(as_float((a) << 16), as_float((b) << 16), sum))
#define MATRIX_STEP(c, n, a, b0, b1)                                                                         \
    {                                                                                                        \
        const int lane_ = (int)get_local_id(0) % 32, at_ = lane_ / 4 * 8 + lane_ % 4;                        \
        __local uint *own_ = matrix_scratch + get_local_id(0) / 32 * 192;                                    \
        own_[at_] = (a)[0], own_[at_ + 64] = (a)[1], own_[at_ + 4] = (a)[2], own_[at_ + 68] = (a)[3];        \
        own_[at_ + 128] = b0, own_[at_ + 132] = b1;                                                          \
        barrier(CLK_LOCAL_MEM_FENCE);                                                                        \
        for (int e_ = 0; e_ < 4; e_++)                                                                       \
            for (int k_ = 0; k_ < 8; k_++)                                                                   \
                (c)[n + e_] = PASTE(MATRIX_DOT_, MATRIX_TYPE)(own_[(lane_ / 4 + e_ / 2 * 8) * 8 + k_],       \
                                                              own_[128 + (lane_ % 4 * 2 + e_ % 2) * 8 + k_], \
                                                              (c)[n + e_]);                                  \
        barrier(CLK_LOCAL_MEM_FENCE);                                                                        \
    }
#endif
