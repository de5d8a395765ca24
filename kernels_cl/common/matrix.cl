// SPDX-License-Identifier: Apache-2.0
// Matrix units: the items of a sub-group multiply small matrices together. What is here is all that knows vendors' instructions; kernels that
// use it are the same for all, and emulated everything but the instruction can be checked on any device.
//
// A word is a term in tf32 or two neighbouring terms in f16 or bf16, the first in the low half. A tile of A in local memory has rows of
// MATRIX_WIDTH words, one of B columns of as many; where they lie is the unit's affair. A fragment of the result has MATRIX_M rows and
// MATRIX_N columns; the MATRIX_LANES items of a sub-group make it together, each MATRIX_SUMS of its elements, eight words at a time.
//
//     MATRIX_SUB, MATRIX_LANE            which sub-group of the group, and which item of it
//     MATRIX_PUT(tile, row, chunk, x)    x: a uint4, words 4*chunk to 4*chunk + 3 of a row of A, or a column of B
//     MATRIX_PUT_HALF(tile, row, half, x)              the same of two words: a uint2, of half / 2 its first or second half
//     MATRIX_FROM(from, tile)            declares `from`, for loads of a tile, or of one from a multiple of 16 rows on
//     MATRIX_LOAD_A(a, from, row, s)     an item's words a[MATRIX_A_WORDS] of the fragment that begins at `row`, a multiple of 16:
//                                        of words 8*s to 8*s + 7
//     MATRIX_LOAD_B(b, from, column, s)
//     MATRIX_MULTIPLY(c, a, b)           c[MATRIX_SUMS] += A * B. All items of the group come here
//     MATRIX_ROW(lane, e), MATRIX_COLUMN(lane, e)      where c[e] lies in the fragment
//     MATRIX_ROWS, MATRIX_ITS_ROW(e), MATRIX_IN_ROW(r) an item's c are of so many rows; which of them c[e] is of; an e of the r-th
//     MATRIX_SHARERS, MATRIX_OVER_ROW(v, op)           neighbouring items that have sums of the same rows; v = op(v of all of them, ..)
//     MATRIX_EXP2(x)                     2^x, to 2 ulp; a number that is no normal one may be 0
//     MATRIX_SET(tile, row, term, c, e)  c[e], and where MATRIX_PAIR is 2 c[e + 1], too, as what a row of A has as `term`, as the next
//     MATRIX_UNROLLED, MATRIX_STEPS      before loops over fragments, and over many steps of eight words
//     MATRIX_EACH_STEP                   before one over the few steps of a tile
//     MATRIX_SCRATCH(items)              declares local memory that an emulation wants
//     MATRIX_PACKED(T, word, r, i, k)    the same of elements i and k of the words r, in which they lie as they are stored
//     MATRIX_STORE(v, p)                 *p = the float v as the unit multiplies it, p: __global MATRIX_TYPE *
//     MATRIX_INDEX                       type of an index beside a pointer that all items have: up to 4 GiB behind it
//     MATRIX_AT(T, i)                    that of element i
//     MATRIX_OWN(T, x, at, n, i)         begins i elements further, an item's own, in x or in the indices at[n]
//     MATRIX_KEEP(i)                     an index that is to stay one: compilers keep sums with pointers, of twice the registers
//     MATRIX_AT_TERM(at, e, step)        at[e], which is at[0] + e*step: what takes fewer registers
//     MATRIX_FROM_INDEX(T, x, i)         the pointer
//     MATRIX_FETCH(bytes, r, p, there)   words r[bytes / 4], in which bytes lie as they are stored, from p, or zeros
//     MATRIX_TO(to, tile, row, chunk)    declares `to`, where that chunk lies
//     MATRIX_FURTHER(name, to, rows)     and `name`, where that of so many rows further lies, a multiple of 16
//     MATRIX_COPY(to, rows, p, there)    that of so many rows further, a constant, from p, where words lie as the unit wants them, or
//                                        zeros. It may be on its way until MATRIX_COPIED. MATRIX_COPIES_T_TYPE: 1 where there is that
//     MATRIX_WORD(T, word, x, y)         word = that of the elements x and y (tf32: of x), which are stored as T, rounded to nearest
//
// MATRIX_UNIT   which unit: 0 none, emulated; 1 NVIDIA's mma.sync (sm_80 up); 2 the same with one instruction that rounds to tf32 (sm_90
//               up); 3 AMD's WMMA (gfx11); 4 AMD's MFMA (gfx90a up), for tf32 that of f32; 5 Intel's DPAS with eight lanes (DG2); 6 WMMA of
//               gfx12. 3, 5 and 6 have no tf32. Default: what the compiler has, of 1 and 2 the first.
//               runtime/device/matrix.c asks the device whether it computes rightly, and sets 0 where it does not
// MATRIX_LAYOUT whose fragments: a unit's number; default MATRIX_UNIT, where that is 0 those of 1
// An instance that uses it defines
// MATRIX_TYPE   tf32, f16 or bf16: what the unit multiplies. Sums are f32
// MATRIX_WIDTH  words of a row: 32, 16 or 8
#ifndef MATRIX_UNIT
#if defined(__NVPTX__) || defined(__NV_CL_C_VERSION) || defined(cl_nv_pragma_unroll)
#define MATRIX_UNIT 1
#else
#define MATRIX_UNIT 0
#endif
#endif
#ifndef MATRIX_LAYOUT
#define MATRIX_LAYOUT (MATRIX_UNIT ? MATRIX_UNIT : 1)
#endif

typedef uint tf32; // a word
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
#define MATRIX_PACKED(T, word, r, i, k) PASTE(PASTE(MATRIX_PACKED_, MATRIX_TYPE), PASTE(_of_, T))(word, r, i, k)
#define MATRIX_PACKED_tf32_of_tf32(word, r, i, k) word = (r)[i];
#define MATRIX_PACKED_tf32_of_float(word, r, i, k) MATRIX_WORD_tf32(word, as_float((r)[i]), 0)
#define MATRIX_PACKED_f16_of_float(word, r, i, k) MATRIX_WORD_f16(word, as_float((r)[i]), as_float((r)[k]))
#define MATRIX_PACKED_bf16_of_float(word, r, i, k) MATRIX_WORD_bf16(word, as_float((r)[i]), as_float((r)[k]))
#define MATRIX_PACKED_f16_of_f16(word, r, i, k)                                                              \
    if ((i) / 2 == (k) / 2)                                                                                  \
        word = (r)[(i) / 2];                                                                                 \
    else                                                                                                     \
        MATRIX_HALVES(word, (r)[(i) / 2], (i) % 2, (r)[(k) / 2], (k) % 2)
#define MATRIX_PACKED_bf16_of_bf16(word, r, i, k) MATRIX_PACKED_f16_of_f16(word, r, i, k)
#define MATRIX_STORE(v, p) PASTE(MATRIX_STORE_, MATRIX_TYPE)(v, p)
#define MATRIX_STORE_tf32(v, p)                                                                              \
    uint word;                                                                                               \
    MATRIX_WORD_tf32(word, v, 0)(void)0;                                                                     \
    *(p) = word;
#define MATRIX_STORE_f16(v, p) *(p) = STORAGE_TO_F16(v);
#define MATRIX_STORE_bf16(v, p) *(p) = bf16_of_float(v);
// An int, which is added to an item's own pointer by one instruction on NVIDIA's machines; bytes, which loads of AMD's add to a pointer, and
// Intel's compiler by fewer instructions.
#if MATRIX_UNIT == 1 || MATRIX_UNIT == 2
#define MATRIX_INDEX int
#define MATRIX_AT(T, i) (i)
#define MATRIX_OWN(T, x, at, n, i) x += i;
#define MATRIX_FROM_INDEX(T, x, i) ((x) + (i))
#else
#define MATRIX_INDEX uint
#define MATRIX_AT(T, i) ((uint)(i) * (uint)sizeof(T))
#define MATRIX_OWN(T, x, at, n, i)                                                                           \
    MATRIX_UNROLLED for (int i_ = 0; i_ < (n); i_++)(at)[i_] += MATRIX_AT(T, i);
#define MATRIX_FROM_INDEX(T, x, i) ((__global const T *)((__global const uchar *)(x) + (i)))
#endif
#if MATRIX_UNIT == 1 || MATRIX_UNIT == 2 || MATRIX_UNIT == 4
#define MATRIX_AT_TERM(at, e, step) (at)[e]
#else
#define MATRIX_AT_TERM(at, e, step) ((at)[0] + (e) * (step))
#endif
#define MATRIX_FETCH(bytes, r, p, there)                                                                     \
    {                                                                                                        \
        _Pragma("unroll") for (int w = 0; w < (bytes) / 4; w++) (r)[w] = 0;                                           \
        if (there) {                                                                                         \
            if ((bytes) == 4) (r)[0] = *(__global const uint *)(p);                                          \
            if ((bytes) == 8) vstore2(*(__global const uint2 *)(p), 0, r);                                   \
            _Pragma("unroll") for (int w = 0; w < (bytes) / 16; w++)                                         \
                vstore4(((__global const uint4 *)(p))[w], w, r);                                             \
        }                                                                                                    \
    }

// ---- fragments ------------------------------------------------------------------------------------------
//
// A tile's row is MATRIX_WIDTH words, chunks of four words, sixteen bytes, in which it is filled. Row r has its chunk c at
//     (r*CHUNKS + c) ^ f        f: the number of the 128 bytes that it lies in, of those of 16 rows
// so eight items meet all banks, whether they have neighbouring chunks of a row, the same of eight neighbouring rows, or of every second row.
// DPAS' fragments lie one after the other, as a message reads eight words of eight rows that do.
#define MATRIX_CHUNKS (MATRIX_WIDTH / 4)
#if MATRIX_LAYOUT == 5
#define MATRIX_PLACE(row, chunk) ((row) / 8 * 8 * MATRIX_CHUNKS + (chunk) / 2 * 16 + (row) % 8 * 2 + (chunk) % 2)
#else
#define MATRIX_PLACE(row, chunk)                                                                             \
    (((row)*MATRIX_CHUNKS + (chunk)) ^ ((row) % 16 / (8 / MATRIX_CHUNKS) % 8))
#endif
#define MATRIX_PUT(tile, row, chunk, x) ((__local uint4 *)(tile))[MATRIX_PLACE(row, chunk)] = x;
#if MATRIX_UNIT <= 2 // cp.async, and as a check of all around it
#define MATRIX_COPIES_tf32_tf32 1
#define MATRIX_COPIES_f16_f16 1
#define MATRIX_COPIES_bf16_bf16 1
#endif
#if MATRIX_UNIT == 1 || MATRIX_UNIT == 2
#define MATRIX_TO(name, tile, row, chunk)                                                                    \
    uint name = (uint)(size_t)(tile) + (uint)MATRIX_PLACE(row, chunk) * 16;                                  \
    MATRIX_KEEP(name)
#define MATRIX_FURTHER(name, to, rows)                                                                       \
    uint name = (to) + (uint)(rows) * (MATRIX_WIDTH * 4);                                                    \
    MATRIX_KEEP(name)
#define MATRIX_COPY(to, rows, p, there)                                                                      \
    __asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"                                           \
                   :                                                                                         \
                   : "r"((to) + (uint)(rows) * (MATRIX_WIDTH * 4)), "l"(p), "r"((there) ? 16 : 0)            \
                   : "memory");
#define MATRIX_COPIED __asm volatile("cp.async.wait_all;" : : : "memory");
#else
#define MATRIX_TO(name, tile, row, chunk)                                                                    \
    __local uint4 *name = (__local uint4 *)(tile) + MATRIX_PLACE(row, chunk);
#define MATRIX_FURTHER(name, to, rows) __local uint4 *name = (to) + (rows)*MATRIX_CHUNKS;
#define MATRIX_COPY(to, rows, p, there)                                                                      \
    (to)[(rows)*MATRIX_CHUNKS] = (uint4)(0);                                                                 \
    if (there) (to)[(rows)*MATRIX_CHUNKS] = *(__global const uint4 *)(p);
#define MATRIX_COPIED
#endif
#define MATRIX_PUT_HALF(tile, row, half, x)                                                                  \
    ((__local uint2 *)(tile))[MATRIX_PLACE(row, (half) / 2) * 2 + (half) % 2] = x;

// Of each layout: MATRIX_A_ROW(lane, i), MATRIX_A_WORD(lane, i), the row of A and the word, of eight, that an item has as its i-th; B alike;
// MATRIX_SUB_ROWS(subs): of a group's sub-groups so many stand above each other, at most.
#if MATRIX_LAYOUT <= 2
// mma.sync: two instructions, of eight columns each. Item 4*g + t has words t and t + 4 of rows g and g + 8 of A, and of columns g and g + 8
// of B.
#define MATRIX_LANES 32
#define MATRIX_SUB_ROWS(subs) 2
#define MATRIX_M 16
#define MATRIX_N 16
#define MATRIX_SUMS 8
#define MATRIX_A_WORDS 4
#define MATRIX_B_WORDS 4
#define MATRIX_A_ROW(lane, i) ((lane) / 4 + (i) % 2 * 8)
#define MATRIX_A_WORD(lane, i) ((lane) % 4 + (i) / 2 * 4)
#define MATRIX_B_COLUMN(lane, i) ((lane) / 4 + (i) / 2 * 8)
#define MATRIX_B_WORD(lane, i) ((lane) % 4 + (i) % 2 * 4)
#define MATRIX_ROW(lane, e) ((lane) / 4 + (e) / 2 % 2 * 8)
#define MATRIX_COLUMN(lane, e) ((lane) % 4 * 2 + (e) % 2 + (e) / 4 * 8)
#define MATRIX_ROWS 2
#define MATRIX_ITS_ROW(e) ((e) / 2 % 2)
#define MATRIX_IN_ROW(r) ((r)*2)
#define MATRIX_PAIR 2
#elif MATRIX_LAYOUT == 3
// WMMA: an item has all words of a row of A and of a column of B; two items have the same. Sums are of every second row.
#define MATRIX_LANES 32
#define MATRIX_SUB_ROWS(subs) 2
#define MATRIX_M 16
#define MATRIX_N 16
#define MATRIX_SUMS 8
#define MATRIX_A_WORDS 8
#define MATRIX_B_WORDS 8
#define MATRIX_A_ROW(lane, i) ((lane) % 16)
#define MATRIX_A_WORD(lane, i) (i)
#define MATRIX_B_COLUMN(lane, i) ((lane) % 16)
#define MATRIX_B_WORD(lane, i) (i)
#define MATRIX_ROW(lane, e) ((e)*2 + (lane) / 16)
#define MATRIX_COLUMN(lane, e) ((lane) % 16)
#define MATRIX_ROWS 8
#elif MATRIX_LAYOUT == 4
// MFMA: an item has two words of a row of A and of a column of B, and sums of four rows. (Those of f32 are two instructions, of a word each.)
#define MATRIX_LANES 64
#define MATRIX_SUB_ROWS(subs) 2
#define MATRIX_M 16
#define MATRIX_N 16
#define MATRIX_SUMS 4
#define MATRIX_A_WORDS 2
#define MATRIX_B_WORDS 2
#define MATRIX_A_ROW(lane, i) ((lane) % 16)
#define MATRIX_A_WORD(lane, i) ((lane) / 16 * 2 + (i))
#define MATRIX_B_COLUMN(lane, i) ((lane) % 16)
#define MATRIX_B_WORD(lane, i) ((lane) / 16 * 2 + (i))
#define MATRIX_ROW(lane, e) ((lane) / 16 * 4 + (e))
#define MATRIX_COLUMN(lane, e) ((lane) % 16)
#define MATRIX_ROWS 4
#elif MATRIX_LAYOUT == 5
// DPAS: an item has a word of each row of A, all words of a column of B, and that column's sums.
#define MATRIX_LANES 8
#define MATRIX_SUB_ROWS(subs) ((subs) / 4)
#define MATRIX_M 8
#define MATRIX_N 8
#define MATRIX_SUMS 8
#define MATRIX_A_WORDS 8
#define MATRIX_B_WORDS 8
#define MATRIX_A_ROW(lane, i) (i)
#define MATRIX_A_WORD(lane, i) (lane)
#define MATRIX_B_COLUMN(lane, i) (lane)
#define MATRIX_B_WORD(lane, i) (i)
#define MATRIX_ROW(lane, e) (e)
#define MATRIX_COLUMN(lane, e) (lane)
#define MATRIX_ROWS 8
#elif MATRIX_LAYOUT == 6
// WMMA of gfx12: an item has four words of a row of A and of a column of B, and sums of eight rows below each other.
#define MATRIX_LANES 32
#define MATRIX_SUB_ROWS(subs) 2
#define MATRIX_M 16
#define MATRIX_N 16
#define MATRIX_SUMS 8
#define MATRIX_A_WORDS 4
#define MATRIX_B_WORDS 4
#define MATRIX_A_ROW(lane, i) ((lane) % 16)
#define MATRIX_A_WORD(lane, i) ((lane) / 16 * 4 + (i))
#define MATRIX_B_COLUMN(lane, i) ((lane) % 16)
#define MATRIX_B_WORD(lane, i) ((lane) / 16 * 4 + (i))
#define MATRIX_ROW(lane, e) ((lane) / 16 * 8 + (e))
#define MATRIX_COLUMN(lane, e) ((lane) % 16)
#define MATRIX_ROWS 8
#endif
#ifndef MATRIX_PAIR // a sum for each row
#define MATRIX_PAIR 1
#define MATRIX_ITS_ROW(e) (e)
#define MATRIX_IN_ROW(r) (r)
#endif
#define MATRIX_SET(tile, row, term, c, e)                                                                    \
    {                                                                                                        \
        __local MATRIX_TYPE *to_ = (__local MATRIX_TYPE *)(tile) + (term) % (4 * MATRIX_TERMS) +             \
                                   MATRIX_PLACE(row, (term) / (4 * MATRIX_TERMS)) * (4 * MATRIX_TERMS);      \
        PASTE(MATRIX_SET_, MATRIX_PAIR)(to_, c, e)                                                           \
    }
#define MATRIX_SET_1(to, c, e) MATRIX_STORE((c)[e], to)
#define MATRIX_SET_2(to, c, e) PASTE(MATRIX_SET_2_, MATRIX_TYPE)(to, (c)[e], (c)[(e) + 1])
#define MATRIX_SET_2_tf32(to, v, w)                                                                          \
    uint x_, y_;                                                                                             \
    MATRIX_WORD_tf32(x_, v, 0) MATRIX_WORD_tf32(y_, w, 0)(void)0;                                            \
    *(__local uint2 *)(to) = (uint2)(x_, y_);
#define MATRIX_SET_2_f16(to, v, w)                                                                           \
    uint word_;                                                                                              \
    MATRIX_WORD_f16(word_, v, w)(void)0;                                                                     \
    *(__local uint *)(to) = word_;
#define MATRIX_SET_2_bf16(to, v, w)                                                                          \
    uint word_;                                                                                              \
    MATRIX_WORD_bf16(word_, v, w)(void)0;                                                                    \
    *(__local uint *)(to) = word_;

#define MATRIX_SHARERS (MATRIX_LANES * MATRIX_ROWS / MATRIX_M)
#if MATRIX_UNIT == 5 // so that the compiler knows what all items of a sub-group have alike
#define MATRIX_LANE ((int)get_sub_group_local_id())
#define MATRIX_SUB ((int)get_sub_group_id())
#else
#define MATRIX_LANE ((int)get_local_id(0) % MATRIX_LANES)
#define MATRIX_SUB ((int)get_local_id(0) / MATRIX_LANES)
#endif
#define MATRIX_ATTRIBUTES
#if MATRIX_UNIT == 3 || MATRIX_UNIT >= 5 // an item has many words: unrolled, there would be those of several steps
#define MATRIX_EACH_STEP _Pragma("nounroll")
#else
#define MATRIX_EACH_STEP MATRIX_UNROLLED
#endif
#if MATRIX_UNIT == 1 || MATRIX_UNIT == 2
#define MATRIX_UNROLLED _Pragma("unroll")
#define MATRIX_STEPS _Pragma("unroll 4")
#define MATRIX_KEEP(i) __asm volatile("" : "+r"(i));
#define MATRIX_SCRATCH(items)
#if MATRIX_UNIT == 2
#define MATRIX_WORD_tf32(word, v, w) __asm("cvt.rn.tf32.f32 %0, %1;" : "=r"(word) : "f"(v));
#else // the unit does not look at the last 13 bits
#define MATRIX_WORD_tf32(word, v, w)                                                                         \
    __asm("{.reg .pred p; .reg .f32 t; abs.f32 t, %1; setp.lt.f32 p, t, 0f7F800000; mov.b32 %0, %1; "        \
          "@p add.u32 %0, %0, 4096;}"                                                                        \
          : "=r"(word)                                                                                       \
          : "f"(v));
#endif
#define MATRIX_HALVES(word, x, x_high, y, y_high)                                                            \
    __asm("prmt.b32 %0, %1, %2, %3;"                                                                         \
          : "=r"(word)                                                                                       \
          : "r"(x), "r"(y), "r"(((x_high) ? 0x32 : 0x10) | ((y_high) ? 0x7600 : 0x5400)));
#define MATRIX_WORD_f16(word, v, w) __asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(w), "f"(v));
#define MATRIX_WORD_bf16(word, v, w) __asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(w), "f"(v));
#define MATRIX_MMA_tf32 "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
#define MATRIX_MMA_f16 "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
#define MATRIX_MMA_bf16 "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
#define MATRIX_LOAD(to, tile, row, place)                                                                    \
    __asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"                        \
                   : "=r"((to)[0]), "=r"((to)[1]), "=r"((to)[2]), "=r"((to)[3])                              \
                   : "r"((uint)(size_t)(tile) + (uint)((row) * (MATRIX_WIDTH * 4) + (place)*16))             \
                   : "memory");
#define MATRIX_LOAD_A(a, tile, row, s)                                                                       \
    MATRIX_LOAD(a, tile, row, MATRIX_PLACE(MATRIX_LANE % 16, MATRIX_LANE / 16) ^ (2 * (s)))
#define MATRIX_LOAD_B(b, tile, column, s)                                                                    \
    MATRIX_LOAD(b, tile, column,                                                                             \
                MATRIX_PLACE(MATRIX_LANE % 8 + MATRIX_LANE / 16 * 8, MATRIX_LANE / 8 % 2) ^ (2 * (s)))
#define MATRIX_MULTIPLY(c, a, b)                                                                             \
    MATRIX_STEP(c, 0, a, (b)[0], (b)[1])                                                                     \
    MATRIX_STEP(c, 4, a, (b)[2], (b)[3])
#define MATRIX_STEP(c, n, a, b0, b1)                                                                         \
    __asm volatile(PASTE(MATRIX_MMA_, MATRIX_TYPE) "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "          \
                                                   "{%0, %1, %2, %3};"                                       \
                   : "+f"((c)[n]), "+f"((c)[n + 1]), "+f"((c)[n + 2]), "+f"((c)[n + 3])                      \
                   : "r"((a)[0]), "r"((a)[1]), "r"((a)[2]), "r"((a)[3]), "r"(b0), "r"(b1));
#define MATRIX_EXP2(x)                                                                                       \
    ({                                                                                                       \
        float power_;                                                                                        \
        __asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power_) : "f"(x));                                         \
        power_;                                                                                              \
    })
#define MATRIX_OVER_ROW(v, op)                                                                               \
    MATRIX_WITH(v, op, 1)                                                                                    \
    MATRIX_WITH(v, op, 2)
#define MATRIX_WITH(v, op, n)                                                                                \
    {                                                                                                        \
        float other_;                                                                                        \
        __asm volatile("shfl.sync.bfly.b32 %0, %1, " #n ", 31, -1;" : "=f"(other_) : "f"(v));                \
        v = op(v, other_);                                                                                   \
    }
#else
#if MATRIX_UNIT == 3 || MATRIX_UNIT == 4 || MATRIX_UNIT == 6
#define MATRIX_KEEP(i) __asm volatile("" : "+v"(i));
#else
#define MATRIX_KEEP(i)
#endif
#define MATRIX_WORD_tf32(word, v, w)                                                                         \
    word = (as_uint(v) & 0x7f800000u) == 0x7f800000u ? as_uint(v) : (as_uint(v) + 0x1000u) & 0xffffe000u;
#if MATRIX_UNIT == 3 || MATRIX_UNIT == 4 || MATRIX_UNIT == 6
#define MATRIX_HALVES(word, x, x_high, y, y_high)                                                            \
    word = __builtin_amdgcn_perm(y, x, ((x_high) ? 0x302 : 0x100) | ((y_high) ? 0x7060000 : 0x5040000));
#else
#define MATRIX_HALVES(word, x, x_high, y, y_high)                                                            \
    word = ((x_high) ? (x) >> 16 : (x)&0xffffu) | ((y_high) ? (y)&0xffff0000u : (y) << 16);
#endif
#define MATRIX_WORD_f16(word, v, w) word = (uint)STORAGE_TO_F16(v) | (uint)STORAGE_TO_F16(w) << 16;
#define MATRIX_WORD_bf16(word, v, w) MATRIX_HALVES(word, MATRIX_ROUNDED(v), 1, MATRIX_ROUNDED(w), 1)
#define MATRIX_ROUNDED(v) /* to even, in the first half */                                                   \
    ((v) == (v) ? as_uint(v) + 0x7fffu + (as_uint(v) >> 16 & 1u) : 0x7fc00000u)
#define MATRIX_STEPS _Pragma("nounroll")
#if MATRIX_UNIT >= 3
#define MATRIX_UNROLLED _Pragma("unroll")
#define MATRIX_SCRATCH(items)
#endif
#if MATRIX_UNIT == 3 || MATRIX_UNIT == 4 || MATRIX_UNIT == 6
// The address of what an item has of a tile's first fragment, as a number of which the compiler knows nothing: so that those of the others
// are it and constants.
#define MATRIX_ADDRESS(tile, half)                                                                           \
    ({                                                                                                       \
        uint at_ = (uint)(size_t)(tile) + (half) % 2 * 8 + MATRIX_PLACE(MATRIX_LANE % 16, (half) / 2) * 16;  \
        __asm("" : "+v"(at_));                                                                               \
        at_;                                                                                                 \
    })
#define MATRIX_LOCAL(T, address, row, s)                                                                     \
    (*(__local const T *)(size_t)(((address) ^ (32 * (s))) + (row) * (MATRIX_WIDTH * 4)))
#endif
#if MATRIX_UNIT >= 3
#define MATRIX_MULTIPLY(c, a, b) PASTE(MATRIX_MULTIPLY_, MATRIX_TYPE)(c, a, b)
#endif
#if MATRIX_UNIT == 3 || MATRIX_UNIT == 4 || MATRIX_UNIT == 6 // within pairs, fours, eights and sixteens
#define MATRIX_OVER_ROW(v, op)                                                                               \
    v = op(v, MATRIX_OTHER(v, 0xb1));                                                                        \
    v = op(v, MATRIX_OTHER(v, 0x4e));                                                                        \
    v = op(v, MATRIX_OTHER(v, 0x141));                                                                       \
    v = op(v, MATRIX_OTHER(v, 0x140));
#ifdef __has_builtin
#if __has_builtin(__builtin_amdgcn_exp2f)
#define MATRIX_EXP2(x) __builtin_amdgcn_exp2f(x)
#endif
#endif
#ifndef MATRIX_EXP2 // older compilers know it by this name, newer ones scale numbers that are no normal ones
#define MATRIX_EXP2(x) __builtin_exp2f(x)
#endif
#define MATRIX_OTHER(v, way) as_float(__builtin_amdgcn_update_dpp(0, as_int(v), way, 15, 15, true))
#endif
#if MATRIX_UNIT == 3
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#define MATRIX_FROM(name, tile)                                                                              \
    const uint name##_0 = MATRIX_ADDRESS(tile, 0), name##_1 = MATRIX_ADDRESS(tile, 2);
#define MATRIX_EIGHT(to, tile, row, s)                                                                       \
    vstore4(MATRIX_LOCAL(uint4, tile##_0, row, s), 0, to);                                                   \
    vstore4(MATRIX_LOCAL(uint4, tile##_1, row, s), 1, to);
#define MATRIX_LOAD_A(a, tile, row, s) MATRIX_EIGHT(a, tile, row, s)
// Loads of B stay behind those before them: else all of a step's lie in registers at once.
#define MATRIX_LOAD_B(b, tile, column, s)                                                                    \
    __asm volatile("" : : : "memory");                                                                       \
    MATRIX_EIGHT(b, tile, column, s)
#define MATRIX_MULTIPLY_f16(c, a, b)                                                                         \
    vstore8(__builtin_amdgcn_wmma_f32_16x16x16_f16_w32(__builtin_astype(vload8(0, a), half16),               \
                                                       __builtin_astype(vload8(0, b), half16),               \
                                                       vload8(0, c)),                                        \
            0, c);
#define MATRIX_MULTIPLY_bf16(c, a, b)                                                                        \
    vstore8(__builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(as_short16(vload8(0, a)), as_short16(vload8(0, b)),  \
                                                        vload8(0, c)),                                       \
            0, c);
#elif MATRIX_UNIT == 4
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#define MATRIX_FROM(name, tile) const uint name = MATRIX_ADDRESS(tile, MATRIX_LANE / 16);
#define MATRIX_TWO(to, tile, row, s) vstore2(MATRIX_LOCAL(uint2, tile, row, s), 0, to);
#define MATRIX_LOAD_A(a, tile, row, s) MATRIX_TWO(a, tile, row, s)
#define MATRIX_LOAD_B(b, tile, column, s) MATRIX_TWO(b, tile, column, s)
#define MATRIX_MULTIPLY_f16(c, a, b)                                                                         \
    vstore4(__builtin_amdgcn_mfma_f32_16x16x16f16(__builtin_astype(vload2(0, a), half4),                     \
                                                  __builtin_astype(vload2(0, b), half4), vload4(0, c), 0, 0, \
                                                  0),                                                        \
            0, c);
#define MATRIX_MULTIPLY_bf16(c, a, b)                                                                        \
    vstore4(__builtin_amdgcn_mfma_f32_16x16x16bf16_1k(as_short4(vload2(0, a)), as_short4(vload2(0, b)),      \
                                                      vload4(0, c), 0, 0, 0),                                \
            0, c);
#define MATRIX_MULTIPLY_tf32(c, a, b)                                                                        \
    MATRIX_UNROLLED for (int i_ = 0; i_ < 2; i_++)                                                           \
        vstore4(__builtin_amdgcn_mfma_f32_16x16x4f32(as_float((a)[i_]), as_float((b)[i_]), vload4(0, c), 0,  \
                                                     0, 0),                                                  \
                0, c);
#elif MATRIX_UNIT == 6
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#define MATRIX_FROM(name, tile) const uint name = MATRIX_ADDRESS(tile, MATRIX_LANE / 16 * 2);
#define MATRIX_FOUR(to, tile, row, s) vstore4(MATRIX_LOCAL(uint4, tile, row, s), 0, to);
#define MATRIX_LOAD_A(a, tile, row, s) MATRIX_FOUR(a, tile, row, s)
#define MATRIX_LOAD_B(b, tile, column, s) MATRIX_FOUR(b, tile, column, s)
#define MATRIX_MULTIPLY_f16(c, a, b)                                                                         \
    vstore8(__builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(__builtin_astype(vload4(0, a), half8),          \
                                                             __builtin_astype(vload4(0, b), half8),          \
                                                             vload8(0, c)),                                  \
            0, c);
#define MATRIX_MULTIPLY_bf16(c, a, b)                                                                        \
    vstore8(__builtin_amdgcn_wmma_f32_16x16x16_bf16_w32_gfx12(as_short8(vload4(0, a)),                       \
                                                              as_short8(vload4(0, b)), vload8(0, c)),        \
            0, c);
#elif MATRIX_UNIT == 5
uint8 __attribute__((overloadable)) intel_sub_group_block_read8(const __local uint *p);
float8 __attribute__((overloadable)) intel_sub_group_f16_f16_matrix_mad_k16(int8 a, int8 b, float8 c);
float8 __attribute__((overloadable)) intel_sub_group_bf16_bf16_matrix_mad_k16(int8 a, int8 b, float8 c);
#define MATRIX_OVER_ROW(v, op)                                                                               \
    v = op(v, intel_sub_group_shuffle_xor(v, 1u));                                                           \
    v = op(v, intel_sub_group_shuffle_xor(v, 2u));                                                           \
    v = op(v, intel_sub_group_shuffle_xor(v, 4u));
#undef MATRIX_ATTRIBUTES
#define MATRIX_ATTRIBUTES __attribute__((intel_reqd_sub_group_size(8)))
#define MATRIX_LOAD_A(a, tile, row, s)                                                                       \
    vstore8(intel_sub_group_block_read8((tile) + (row)*MATRIX_WIDTH + 64 * (s)), 0, a);
#define MATRIX_LOAD_B(b, tile, column, s)                                                                    \
    vstore8(vload8(MATRIX_LANE, (tile) + (column)*MATRIX_WIDTH + 64 * (s)), 0, b);
#define MATRIX_MULTIPLY_f16(c, a, b)                                                                         \
    vstore8(intel_sub_group_f16_f16_matrix_mad_k16(as_int8(vload8(0, a)), as_int8(vload8(0, b)),             \
                                                   vload8(0, c)),                                            \
            0, c);
#define MATRIX_MULTIPLY_bf16(c, a, b)                                                                        \
    vstore8(intel_sub_group_bf16_bf16_matrix_mad_k16(as_int8(vload8(0, a)), as_int8(vload8(0, b)),           \
                                                     vload8(0, c)),                                          \
            0, c);
#else
// Each item leaves its words in local memory, and takes those of its sums from there. Nothing is unrolled, for the compilers' sake.
#define MATRIX_UNROLLED
#define MATRIX_SCRATCH(items)                                                                                \
    __local uint matrix_scratch[(items) / MATRIX_LANES * 8 * (MATRIX_M + MATRIX_N)];
#define MATRIX_OVER_ROW(v, op)                                                                               \
    {                                                                                                        \
        __local float *v_ = (__local float *)matrix_scratch + get_local_id(0) / MATRIX_SHARERS * MATRIX_SHARERS; \
        v_[get_local_id(0) % MATRIX_SHARERS] = v;                                                            \
        barrier(CLK_LOCAL_MEM_FENCE);                                                                        \
        v = v_[0];                                                                                           \
        for (int i_ = 1; i_ < MATRIX_SHARERS; i_++) v = op(v, v_[i_]);                                       \
        barrier(CLK_LOCAL_MEM_FENCE);                                                                        \
    }
#define MATRIX_DOT_tf32(a, b, sum) fma(as_float(a), as_float(b), sum)
#define MATRIX_DOT_f16(a, b, sum)                                                                            \
    fma(STORAGE_OF_F16((ushort)((a) >> 16)), STORAGE_OF_F16((ushort)((b) >> 16)),                            \
        fma(STORAGE_OF_F16((ushort)(a)), STORAGE_OF_F16((ushort)(b)), sum))
#define MATRIX_DOT_bf16(a, b, sum)                                                                           \
    fma(as_float((a)&0xffff0000u), as_float((b)&0xffff0000u),                                                \
        fma(as_float((a) << 16), as_float((b) << 16), sum))
#define MATRIX_LOAD(to, words, tile, row, s, ROW, WORD)                                                       \
    for (int i_ = 0; i_ < (words); i_++) {                                                                   \
        const int lane_ = (int)get_local_id(0) % MATRIX_LANES, word_ = WORD(lane_, i_);                      \
        (to)[i_] = (tile)[MATRIX_PLACE((row) + ROW(lane_, i_), 2 * (s) + word_ / 4) * 4 + word_ % 4];        \
    }
#define MATRIX_LOAD_A(a, tile, row, s)                                                                       \
    MATRIX_LOAD(a, MATRIX_A_WORDS, tile, row, s, MATRIX_A_ROW, MATRIX_A_WORD)
#define MATRIX_LOAD_B(b, tile, column, s)                                                                    \
    MATRIX_LOAD(b, MATRIX_B_WORDS, tile, column, s, MATRIX_B_COLUMN, MATRIX_B_WORD)
#define MATRIX_MULTIPLY(c, a, b)                                                                             \
    {                                                                                                        \
        const int lane_ = (int)get_local_id(0) % MATRIX_LANES;                                               \
        __local uint *a_ = matrix_scratch + get_local_id(0) / MATRIX_LANES * (8 * (MATRIX_M + MATRIX_N));    \
        __local uint *b_ = a_ + 8 * MATRIX_M;                                                                \
        for (int i_ = 0; i_ < MATRIX_A_WORDS; i_++)                                                          \
            a_[MATRIX_A_ROW(lane_, i_) * 8 + MATRIX_A_WORD(lane_, i_)] = (a)[i_];                            \
        for (int i_ = 0; i_ < MATRIX_B_WORDS; i_++)                                                          \
            b_[MATRIX_B_COLUMN(lane_, i_) * 8 + MATRIX_B_WORD(lane_, i_)] = (b)[i_];                         \
        barrier(CLK_LOCAL_MEM_FENCE);                                                                        \
        for (int e_ = 0; e_ < MATRIX_SUMS; e_++)                                                             \
            for (int k_ = 0; k_ < 8; k_++)                                                                   \
                (c)[e_] =                                                                                    \
                    PASTE(MATRIX_DOT_, MATRIX_TYPE)(a_[MATRIX_ROW(lane_, e_) * 8 + k_],                      \
                                                    b_[MATRIX_COLUMN(lane_, e_) * 8 + k_], (c)[e_]);         \
        barrier(CLK_LOCAL_MEM_FENCE);                                                                        \
    }
#endif
#endif
#ifndef MATRIX_EXP2
#define MATRIX_EXP2(x) exp2(x)
#endif
#ifndef MATRIX_FROM
#define MATRIX_FROM(name, tile) __local const uint *name = tile;
#endif
