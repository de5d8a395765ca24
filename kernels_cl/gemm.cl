// SPDX-License-Identifier: Apache-2.0
//
// Products by tiles for devices with lanes: matrix products, and convolution and its gradients as implicit products.
//
//     C[z][m][n] = epilogue( sum_k A[z][m][k] * B[z][k][n]  + bias )        z < batches, m < M, n < N, k < K
//
// k and n are numbers of three digits, and where elements lie follows from the digits, so that one kernel serves all:
//     k = (k2*k_1 + k1)*k_0 + k0                     n = (n2*n_1 + n1)*n_0 + n0
//     A[z][m][k] = a[a_0 + z*a_z + m*a_m + k2*a_k2 + k1*a_k1 + k0*a_k0]
//     B[z][k][n] = b[z*b_z + k2*b_k2 + n2*b_n2 + h*w_size + w]
//                  h = h_0 + n1*h_n1 + k1*h_k1,  w = w_0 + n0*w_n0 + k0*w_k0
//     C[z][m][n] = c[c_0 + z*c_z + m*c_m + n2*c_n2 + n1*c_n1 + n0*c_n0]
// With TAPS B is 0 where h or w is outside of 0 .. h_size, w_size: beyond an image's edge. Bias is bias[channel], where channel is
// z*channels + m (by_row = 1) or n (by_row = 0); has_bias = 0 leaves it out, and any valid buffer may stand for it. Sums run in f32;
// their order depends on the sizes only. Pixels of several phases of a stride (PHASES) are as many products, each with digits of its own.
//
// Entries
//   gemm      A group of WX x WY items makes the tile of WY*TM rows from gy*WY*TM on, of WX*TN columns from gx*WX*TN on. Item (x, y)
//             has rows 4*y + 4*WY*i + r and columns x + WX*j (WIDE: 4*x + 4*WX*j + r), r < 4. TK terms at a time travel through local
//             memory; the next ones are fetched into registers while these are multiplied. gz = (split*phases + phase)*batches + z
//             sums the terms from split*depth up to (split+1)*depth. With several splits c is a workspace of parts, c_split apart, without bias and epilogue.
//   gemm_sum  Finishes several splits, an item an element, i < size: c[i] = epilogue( part[i] + part[size + i] + .. + bias ), where
//             the channel is i / inner % channels.
//
// Macros
//   T_A, T_B, T_C   how a, b and c are stored: float, f16 or bf16; default float
//   EPI_*           the epilogue, common/epilogue.cl; default none
//   WX, WY          items of a group along columns and along rows, powers of two; default 16, 16
//   TM, TN          rows and columns of an item: multiples of 4, powers of two; default 4, 8. A tile has at most as many rows,
//                   and as many columns, as a group has items, or a group is one item
//   TK              terms of a tile, a power of two; default 8. TK*TM >= WX, TK*TN >= WY. As many items at least, or
//                   one. WY*TN <= 2*TK*(TN + 4/WX), as the epilogue's rows lie where B's tiles did
//   PHASES          1: the gradient by the input of a convolution with strides. n_1, n_0, k_1, k_0, c_n1, c_n0, a_k1 and a_k0 are
//                   those of all pixels and taps, N is the number of images, K of channels; h_0, h_n1 and h_k1 (w alike) are
//                   padding, stride and dilation. A phase has every h_n1-th row, and the taps that meet it; default 0
//   A_ROWS, B_ROWS  1: neighbouring items fetch neighbouring terms of A, of B; 0: neighbouring rows, columns; default 1, 0
//                   With B_ROWS and several items ITEMS / TK is a multiple of 4, and a divisor of 4*WX
//   TAPS            1: k has three digits, B has an edge. 0: k is k2; default 0. 2 and 3, with a matrix unit: A and B are what
//                   gemm_pack.cl made, fetched wide: an image's pixel has b_k2 channels side by side, a row w_size pixels, and the
//                   edge is there, as zeros, so nobody asks for it. 2: K / k_1 / k_0 and depth are multiples of TK, and TK
//                   neighbouring k2 of one tap make a tile. The tiles of all taps follow each other, so b's are in the cache:
//                       B[z][k][n] = b[z*b_z + n2*b_n2 + (h_size + h*w_size + w)*b_k2 + k2]
//                   and a_k2 is the step from one block of TK k2 to the next. 3: columns are taps, and k is one number, of a pixel:
//                       n = (n1*n_0 + n0)*N/n_1/n_0 + n2,  h = n1*h_n1,  w = n0*w_n0
//                       B[z][k][n] = b[z*b_z + (h % h_k1 * planes + w % w_k0)*h_size + (k + h / h_k1 * w_size + w / w_k0)*b_k2 + n2]
//                   of so many planes in a row, h_size apart, which have every h_k1-th row and w_k0-th column: 1 or w_k0
//   STORED          1: tiles lie in local memory as T_A and T_B are stored, and become floats where they are
//                   multiplied: the same bits from half the traffic. 0: as floats; default 0
//   HALF_SUMS       1: f16 arithmetic, for inference. Both tiles lie in local memory as f16, floats rounded to it; TK terms are summed
//                   in f16, two columns at a time, and that is added to a sum in f32. TK terms that come to more than 65,504 are
//                   infinite. Where F16_NATIVE is 0 the tiles are such, and sums f32; default 0
//   MATRIX_TYPE     what a matrix unit multiplies (common/matrix.cl); floats are rounded to it. Default none: items multiply floats.
//                   With it a sub-group's part of the tile is whole fragments, its rows and columns multiples of 16, and TK is
//                   MATRIX_WIDTH words. ITEMS is a multiple of BM, BN and MATRIX_WIDTH / 4, and an item fills chunks of four words.
//                   Of a split's terms the first tile has what is not a multiple of TK, behind zeros
//   A_WIDE, B_WIDE  1: A, B is fetched by 8 or 16 bytes that are aligned: with A_ROWS all terms of a chunk lie
//                   side by side, K being a multiple of them (TAPS 1: and those of an image, of which B has all, with one tap);
//                   else, with no TAPS or 3, the rows (columns) of an item's chunks, of which there are two or four, M (N) being a multiple of them; default 0. Without a matrix unit both or none (WIDE), of
//                   floats, without TAPS, by 16 bytes: TK is 16, an item fetches chunks of four, ITEMS is a multiple of BM / 4 and
//                   of BN / 4, WX of 8 and WY of 4. The first tile has what is not a multiple of TK then, as with a unit
//   PARTS           of bf16: 1, or each float is the sum of 2 or 3 parts, and 3 or 6 products of them are added: nearly, or as
//                   exactly as products of floats. Sums of parts are added to those of floats TK terms at a time; default 1
//   STAGES          tiles in local memory: 2, or 1 with a barrier more; default 2
// Local memory: 8*TK*(WY*TM + WX*TN + 8) bytes, 4*WY*TM and 12*WX*TN (without TAPS 4*WX*TN); with TAPS 32*TK more, with PHASES 48 more.

#define T_A float
#define T_B float
#define T_C float
#define WX 16
#define WY 16
#define TM 4
#define TN 8
#define TK 8
#define A_ROWS 1
#define B_ROWS 0
#define TAPS 0
#define STORED 0
#define PHASES 0
#define HALF_SUMS 0
#define MATRIX_TYPE none
#define MATRIX_WIDTH 16
#define PARTS 1
#define STAGES 2
#define A_WIDE 0
#define B_WIDE 0

EPILOGUE_FUNCTION(KERNEL(epilogue), float)

#define ITEMS (WX * WY)
#define BM (WY * TM)
#define BN (WX * TN)
#define A_LOADS (BM * TK / ITEMS) // elements that an item fetches for a tile
#define B_LOADS (BN * TK / ITEMS)
#define UNROLLED _Pragma("unroll")
#define MATRIX_UNITS_none 0
#define MATRIX_UNITS_tf32 1
#define MATRIX_UNITS_f16 1
#define MATRIX_UNITS_bf16 1
#define MATRIX PASTE(MATRIX_UNITS_, MATRIX_TYPE)
#define WIDE (A_WIDE && !MATRIX) // and so is B
// Terms in a turn of the innermost loop. If it held a whole tile that is fetched one by one, compilers would take twice the registers.
#define STEP (WIDE ? 16 : 4)
#define TILES (WIDE ? 1 : 2) // in local memory

// How tiles are kept: an element, four of them, an element as it comes from global memory, four as floats. FETCHED: what it is on
// the way, a register of its own: of two in one each would have to wait for the other.
#if HALF_SUMS
#define KEPT(T) ushort
#define KEPT4(T) ushort4
#define READ_float(v) STORAGE_TO_F16(v)
#define READ_f16(v) (v)
#define READ_bf16(v) STORAGE_TO_F16(float_of_bf16(v))
#define READ(T, v) PASTE(READ_, T)(v)
#define FLOATS(T, v) PASTE(STORAGE_OF_F16, 4)(v)
#elif STORED
#define KEPT_float float
#define KEPT_f16 ushort
#define KEPT_bf16 ushort
#define KEPT4_float float4
#define KEPT4_f16 ushort4
#define KEPT4_bf16 ushort4
#define FLOATS_float(v) (v)
#if F16_NATIVE // by casts, which compilers make a part of the FMA where a device can
#define FLOATS_f16(v)                                                                                        \
    (float4)((float)as_half((v).x), (float)as_half((v).y), (float)as_half((v).z), (float)as_half((v).w))
#else
#define FLOATS_f16(v) PASTE(STORAGE_OF_F16, 4)(v)
#endif
#define FLOATS_bf16(v) float_of_bf164(v)
#define KEPT(T) PASTE(KEPT_, T)
#define KEPT4(T) PASTE(KEPT4_, T)
#define READ(T, v) (v)
#define FLOATS(T, v) PASTE(FLOATS_, T)(v)
#else
#define KEPT(T) float
#define KEPT4(T) float4
#define READ(T, v) LOAD(T, &(v))
#define FLOATS(T, v) (v)
#endif
#define FETCHED_float float
#define FETCHED_f16 uint
#define FETCHED_bf16 uint
#define FETCHED(T) PASTE(FETCHED_, T)

// An item's i-th element of a tile: its term, and its row of A, or the place of its column of B. Columns x, x + WX, x + 2*WX and
// x + 3*WX lie together, so that an item reads four at once, and neighbours store neighbours.
#define PLACE(n) ((n) / (4 * WX) * (4 * WX) + (n) % WX * 4 + (n) / WX % 4)
#define COLUMN(place) ((place) / (4 * WX) * (4 * WX) + (place) % 4 * WX + (place) % (4 * WX) / 4)
#if MATRIX // by chunks, of one row each
#define CHUNK_TERMS (4 * MATRIX_TERMS)
#define A_CHUNKS (A_LOADS / CHUNK_TERMS)
#define B_CHUNKS (B_LOADS / CHUNK_TERMS)
// An item's chunk j of a tile of so many rows: its row, and which of the row's chunks it is.
#define CHUNK_ROW(ROWS, WIDE, rows, chunks, j)                                                               \
    (ROWS   ? id / MATRIX_CHUNKS + (j) * (ITEMS / MATRIX_CHUNKS)                                             \
     : WIDE ? id % ((rows) / (chunks)) * (chunks) + (j)                                                      \
            : id % (rows))
#define CHUNK_OF_ROW(ROWS, WIDE, rows, chunks, j)                                                            \
    (ROWS ? id % MATRIX_CHUNKS : WIDE ? id / ((rows) / (chunks)) : id / (rows) + (j) * (ITEMS / (rows)))
#define A_CHUNK_ROW(j) CHUNK_ROW(A_ROWS, A_WIDE, BM, A_CHUNKS, j)
#define B_CHUNK_ROW(j) CHUNK_ROW(B_ROWS, B_WIDE, BN, B_CHUNKS, j)
#define A_CHUNK(j) CHUNK_OF_ROW(A_ROWS, A_WIDE, BM, A_CHUNKS, j)
#define B_CHUNK(j) CHUNK_OF_ROW(B_ROWS, B_WIDE, BN, B_CHUNKS, j)
#define A_TERM(i) (A_CHUNK((i) / CHUNK_TERMS) * CHUNK_TERMS + (i) % CHUNK_TERMS)
#define B_TERM(i) (B_CHUNK((i) / CHUNK_TERMS) * CHUNK_TERMS + (i) % CHUNK_TERMS)
#define A_ROW(i) A_CHUNK_ROW((i) / CHUNK_TERMS)
#define B_COLUMN(i) B_CHUNK_ROW((i) / CHUNK_TERMS)
#elif WIDE
// Chunk j of an item, of four terms or of four of n rows (columns): its first term, its first row. All have so many terms at a time.
#define TERMS_OF(n) (ITEMS * 4 / (n))
#define CHUNK_TERM(ROWS, n, j) (((ROWS) ? id % (TERMS_OF(n) / 4) * 4 : id / ((n) / 4)) + (j) * TERMS_OF(n))
#define CHUNK_ROW(ROWS, n) ((ROWS) ? id / (TERMS_OF(n) / 4) : id % ((n) / 4) * 4)
#elif A_ROWS && ITEMS == 1
#define A_TERM(i) ((i) % TK)
#define A_ROW(i) ((i) / TK)
#elif A_ROWS
#define A_TERM(i) (id % TK)
#define A_ROW(i) (id / TK + (i) * (ITEMS / TK))
#elif ITEMS == 1
#define A_TERM(i) ((i) / BM)
#define A_ROW(i) ((i) % BM)
#else
#define A_TERM(i) (id / BM + (i) * (ITEMS / BM))
#define A_ROW(i) (id % BM)
#endif
#if MATRIX || WIDE
#elif B_ROWS && ITEMS == 1
#define B_TERM(i) ((i) % TK)
#define B_PLACE(i) ((i) / TK)
#define B_COLUMN(i) COLUMN(B_PLACE(i))
#elif B_ROWS
#define B_TERM(i) (id % TK)
#define B_PLACE(i) (id / TK + (i) * (ITEMS / TK))
#define B_COLUMN(i) (COLUMN(id / TK) + COLUMN((i) * (ITEMS / TK)))
#elif ITEMS == 1
#define B_TERM(i) ((i) / BN)
#define B_PLACE(i) PLACE((i) % BN)
#define B_COLUMN(i) ((i) % BN)
#else
#define B_TERM(i) (id / BN + (i) * (ITEMS / BN))
#define B_PLACE(i) PLACE(id % BN)
#define B_COLUMN(i) (id % BN)
#endif

// The digits of a column, and its part of (B's index, h, w), without an edge to ask for of the index alone. Beyond the last column
// it is the last one's: its sums are not stored.
#if TAPS == 3
#define N2(n) ((n) % (N / n_1 / n_0))
#define N1(n) ((n) / (N / n_1 / n_0) / n_0)
#define N0(n) ((n) / (N / n_1 / n_0) % n_0)
#else
#define N2(n) ((n) / n_0 / n_1)
#define N1(n) ((n) / n_0 % n_1)
#define N0(n) ((n) % n_0)
#endif
int4 KERNEL(gemm_column)(int n, int n_1, int n_0, int b_n2, int h_0, int h_n1, int w_0, int w_n0,
                         int w_size) {
    int h = h_0 + n / n_0 % n_1 * h_n1, w = w_0 + n % n_0 * w_n0;
    return (int4)(n / n_0 / n_1 * b_n2 + h * w_size + w, h, w, 0);
}
#if TAPS == 1 // BN apart. (If they lay together, neighbours would meet in banks.)
#define COLUMN_WORDS 3
#define PUT_COLUMN(n)                                                                                        \
    const int4 part = COLUMN_OF(n);                                                                          \
    columns[n] = part.s0, columns[BN + (n)] = part.s1, columns[2 * BN + (n)] = part.s2;
#elif TAPS == 3
#define COLUMN_WORDS 1
#define PUT_COLUMN(n)                                                                                        \
    const int own = min(n0 + (n), N - 1), h = N1(own) * h_n1, w = N0(own) * w_n0;                            \
    columns[n] = (h % h_k1 * (n_0 > 1 ? w_k0 : 1) + w % w_k0) * h_size +                                     \
                 (h / h_k1 * w_size + w / w_k0) * b_k2 + N2(own);
#else
#define COLUMN_WORDS 1
#define PUT_COLUMN(n) columns[n] = COLUMN_OF(n).s0;
#endif
#define COLUMN_OF(n) KERNEL(gemm_column)(min(n0 + (n), N - 1), n_1, n_0, b_n2, h_0, h_n1, w_0, w_n0, w_size)

#if PHASES
// Along one dimension: the pixels at, at + stride, .. meet the taps first, first + step, .. of the kernel. The first of these meets
// pixel `back` of dy with the first of those. (first, number of taps, step, back)
int4 KERNEL(gemm_phase)(int at, int stride, int padding, int dilation, int kernel_) {
    int first = 0, step = 1;
    while (step * dilation % stride != 0) step++;
    while (first < step && (at + padding - first * dilation) % stride != 0) first++;
    const bool meets = first < step && first < kernel_;
    return meets ? (int4)(first, (kernel_ - first + step - 1) / step, step,
                          (at + padding - first * dilation) / stride)
                 : (int4)(0, 0, step, 0);
}
#endif

#if TAPS == 1
// A term's part of (B's index, h, w), and A's index, of its digits. It is linear in them.
int4 KERNEL(gemm_term)(int k2, int k1, int k0, int a_k2, int a_k1, int a_k0, int b_k2, int h_k1, int w_k0,
                       int w_size) {
    const int h = k1 * h_k1, w = k0 * w_k0;
    return (int4)(k2 * b_k2 + h * w_size + w, h, w, k2 * a_k2 + k1 * a_k1 + k0 * a_k0);
}
#define TERM_OF(k2, k1, k0) KERNEL(gemm_term)(k2, k1, k0, a_k2, a_k1, a_k0, b_k2, h_k1, w_k0, w_size)
#define BEYOND (int4)(0, -(1 << 30), 0, 0) // the last term: outside of any image
#if ITEMS == 1
#define EACH_TERM for (int i = 0; i < TK; i++)
#define OWN_TERM i
#else // each by an item
#define EACH_TERM if (id < TK)
#define OWN_TERM id
#endif
#if MATRIX // of the first two tiles: a term before the first cannot be carried on
#define PUT_FIRST_TERMS                                                                                      \
    if (id < 2 * TK) {                                                                                       \
        const int k = max(first - skip + id, first);                                                         \
        terms[id / TK][id % TK] = id < skip ? BEYOND : TERM_OF(k / k_0 / k_1, k / k_0 % k_1, k % k_0);       \
    }
#define IS_TERM(k) 1
#else
#define PUT_FIRST_TERMS                                                                                      \
    EACH_TERM {                                                                                              \
        const int k = min(first + OWN_TERM, last);                                                           \
        terms[0][OWN_TERM] =                                                                                 \
            first + OWN_TERM > last ? BEYOND : TERM_OF(k / k_0 / k_1, k / k_0 % k_1, k % k_0);               \
    }
#define IS_TERM(k) (first + (k) <= last)
#endif
// The terms of the next tile from those of this one, TK before them, by carrying: a division takes longer than all else.
#define PUT_NEXT_TERMS                                                                                       \
    EACH_TERM {                                                                                              \
        int4 term = terms[turn & 1][OWN_TERM] + moves[0];                                                    \
        if (abs(term.s2) >= abs(k_0 * w_k0)) term += moves[1];                                               \
        if (abs(term.s1) >= abs(k_1 * h_k1)) term += moves[2];                                               \
        terms[(turn + 1) & 1][OWN_TERM] = IS_TERM((turn + 1) * TK + OWN_TERM) ? term : BEYOND;               \
    }
#define FETCH_A(k) a[row + terms[turn & 1][k].s3]
#define FETCH_B(i)                                                                                           \
    const int4 term = terms[turn & 1][B_TERM(i)];                                                            \
    const uint h = columns[BN + B_COLUMN(i)] + term.s1, w = columns[2 * BN + B_COLUMN(i)] + term.s2;         \
    rb[i] = 0;                                                                                               \
    if ((h < (uint)h_size) & (w < (uint)w_size)) rb[i] = b[column + term.s0];
#define HAS_B(i) 1 // or it is 0 already
#else
#define PUT_NEXT_TERMS
#define FETCH_A(k) a[row + min(from + k, last) * a_k2]
#define FETCH_B(i) rb[i] = b[column + min(from + B_TERM(i), last) * b_k2];
#define HAS_B(i) HAS_TERM(B_TERM, i)
#endif

// Row m times columns 4 * j .. 4 * j + 3, in f16.
#define RUN(m, a_, j, b_)                                                                                    \
    run[m][2 * (j)] = fma((half2)(a_), (b_).lo, run[m][2 * (j)]);                                            \
    run[m][2 * (j) + 1] = fma((half2)(a_), (b_).hi, run[m][2 * (j) + 1]);

// Is the i-th term that an item fetches one of the sum? So written that all but the item's first term is the same for all items.
#define HAS_TERM(TERM, i) (TERM(0) <= last - first - turn * TK - (TERM(i) - TERM(0)))

// Tile `turn` of both matrices into the registers ra and rb; from there into local memory. They are to be on their way while the tile
// before them is multiplied, so nothing may look at them sooner: what is beyond the last term becomes 0 on the second way. (Beyond an
// image's edge nothing is fetched, so it costs no sector. Done so for all, AMD's compiler would wait for one load before the next.)
#if MATRIX
// Registers on the way: elements, or words as they lie in memory.
#define REGISTERS(T, WIDE, loads, name)                                                                      \
    PASTE(REGISTERS_, WIDE)(T, (loads) * (int)sizeof(T) / (int)sizeof(uint), loads, name)
#define REGISTERS_0(T, words, loads, name) FETCHED(T) name[loads];
#define REGISTERS_1(T, words, loads, name) uint name[words];
// The chunks of an item. x and at: where each begins, or, where rows lie side by side, each term. there(k): is the tile's term k one of
// the sum?
#define FETCH_CHUNKS_1(T, n, r, x, at, k2, first_term, there)                                                \
    UNROLLED for (int j = 0; j < (n); j++) {                                                                 \
        MATRIX_KEEP(at[j])                                                                                   \
        MATRIX_FETCH(CHUNK_TERMS * (int)sizeof(T), r + j * (CHUNK_TERMS * (int)sizeof(T) / 4),               \
                     MATRIX_FROM_INDEX(T, x, at[j]), there(first_term))                                      \
    }
#define FETCH_CHUNKS_0(T, n, r, x, at, k2, first_term, there)                                                \
    UNROLLED for (int e = 0; e < CHUNK_TERMS; e++) {                                                         \
        MATRIX_KEEP(at[e])                                                                                   \
        MATRIX_FETCH((n) * (int)sizeof(T), r + e * ((n) * (int)sizeof(T) / 4),                               \
                     MATRIX_FROM_INDEX(T, x, MATRIX_AT_TERM(at, e, MATRIX_AT(T, k2))),                       \
                     there((first_term) + e))                                                                \
    }
#define FETCH_WIDE(ROWS, T, n, r, x, at, k2, first_term, there)                                              \
    PASTE(FETCH_CHUNKS_, ROWS)(T, n, r, x, at, k2, first_term, there)
#define THERE(k) 1
#define THERE_FIRST(k) ((k) >= skip)
#if TAPS == 1
#define A_FROM (a + terms[turn & 1][A_TERM(0)].s3)
#define A_ELEMENT(k, there) FETCH_A(k)
#define B_FROM (b + terms[turn & 1][B_TERM(0)].s0)
#define B_ELEMENT(i, there) FETCH_B(i)
#else
#define A_FROM a
#define B_FROM b
#define A_ELEMENT(k, there) a[row + (there(k) ? (k) : skip) * a_k2]
#define B_ELEMENT(i, there) rb[i] = b[column + (there(B_TERM(i)) ? B_TERM(i) : skip) * b_k2];
#endif
// Where a chunk lies as the unit wants it, to local memory by itself.
#define COPIES(T, WIDE, ROWS)                                                                                \
    (WIDE && ROWS && PARTS == 1 && STAGES == 2 && PASTE(PASTE(MATRIX_COPIES_, T), PASTE(_, MATRIX_TYPE)))
#define A_COPIED COPIES(T_A, A_WIDE, A_ROWS)
#define B_COPIED COPIES(T_B, B_WIDE, B_ROWS)
#define COPY_CHUNKS(T, n, to, n_rows, x, at, ROW, first_term, there)                                         \
    MATRIX_FURTHER(in_stage_, to, turn % STAGES * (n_rows))                                                  \
    UNROLLED for (int j = 0; j < (n); j++) {                                                                 \
        MATRIX_KEEP(at[j])                                                                                   \
        MATRIX_COPY(in_stage_, ROW(j) - ROW(0), MATRIX_FROM_INDEX(T, x, at[j]), there(first_term))           \
    }
#if A_COPIED
#define FETCH_TILE_A(there)                                                                                  \
    COPY_CHUNKS(T_A, A_CHUNKS, to_a, BM, A_FROM, at_a, A_CHUNK_ROW, A_TERM(0), there)
#define KEEP_TILE_A(there)
#elif A_WIDE
#define FETCH_TILE_A(there) FETCH_WIDE(A_ROWS, T_A, A_CHUNKS, ra, A_FROM, at_a, a_k2, A_TERM(0), there)
#define A_WORD(word, j, e, there) WIDE_WORD(T_A, word, ra, A_ROWS, A_CHUNKS, j, (e)*MATRIX_TERMS)
#else
#define FETCH_TILE_A(there)                                                                                  \
    UNROLLED for (int i = 0; i < A_LOADS; i++) {                                                             \
        const int row = rows[A_ROW(i)];                                                                      \
        ra[i] = A_ELEMENT(A_TERM(i), there);                                                                 \
    }
#define A_WORD(word, j, e, there) KEEP_WORD(T_A, word, ra, A_TERM, (j)*CHUNK_TERMS + (e)*MATRIX_TERMS, there)
#endif
#if B_COPIED
#define FETCH_TILE_B(there)                                                                                  \
    COPY_CHUNKS(T_B, B_CHUNKS, to_b, BN, B_FROM, at_b, B_CHUNK_ROW, B_TERM(0), there)
#define KEEP_TILE_B(there)
#elif B_WIDE
#define FETCH_TILE_B(there) FETCH_WIDE(B_ROWS, T_B, B_CHUNKS, rb, B_FROM, at_b, b_k2, B_TERM(0), there)
#define B_WORD(word, j, e, there) WIDE_WORD(T_B, word, rb, B_ROWS, B_CHUNKS, j, (e)*MATRIX_TERMS)
#else
#define FETCH_TILE_B(there)                                                                                  \
    UNROLLED for (int i = 0; i < B_LOADS; i++) {                                                             \
        const int column = columns[B_COLUMN(i)];                                                             \
        B_ELEMENT(i, there)                                                                                  \
    }
#define B_WORD(word, j, e, there) KEEP_WORD(T_B, word, rb, B_TERM, (j)*CHUNK_TERMS + (e)*MATRIX_TERMS, there)
#endif
#define FETCH_TILE(there)                                                                                    \
    {                                                                                                        \
        FETCH_TILE_B(there)                                                                                  \
    }                                                                                                        \
    {                                                                                                        \
        FETCH_TILE_A(there)                                                                                  \
    }
#define FETCH                                                                                                \
    {                                                                                                        \
        NEXT_TILE                                                                                            \
        FETCH_TILE(THERE)                                                                                    \
    }
#if TAPS == 1
#define NEXT_TILE
#elif TAPS == 2
#define NEXT_TILE                                                                                            \
    int move_a = a_k0, move_b = b_k0;                                                                        \
    if (++tap_0 == k_0) {                                                                                    \
        tap_0 = 0, move_a += a_k1 - k_0 * a_k0, move_b += b_k1 - k_0 * b_k0;                                 \
        if (++tap_1 == k_1) tap_1 = 0, move_a += a_k2 - k_1 * a_k1, move_b += TK - k_1 * b_k1;               \
    }                                                                                                        \
    a += move_a;                                                                                             \
    b += move_b;
#else
#define NEXT_TILE                                                                                            \
    a += TK * (A_WIDE && A_ROWS ? 1 : a_k2);                                                                 \
    b += TK * (B_WIDE && B_ROWS ? 1 : b_k2);
#endif
// What an item fetched, as words. Of several parts each has a plane; all but the last are cut off, the last is rounded.
#define KEEP_CHUNKS(chunks, tile, rows, ROW, CHUNK, WORD, there)                                             \
    UNROLLED for (int j = 0; j < (chunks); j++) {                                                            \
        uint word[PARTS][4];                                                                                 \
        UNROLLED for (int e = 0; e < 4; e++) {                                                               \
            WORD(word, j, e, there)                                                                          \
        }                                                                                                    \
        UNROLLED for (int p = 0; p < PARTS; p++)                                                             \
            MATRIX_PUT((tile) + (turn % STAGES * PARTS + p) * ((rows)*MATRIX_WIDTH), ROW(j), CHUNK(j),       \
                       (uint4)(word[p][0], word[p][1], word[p][2], word[p][3]))                              \
    }
// The word of element i and the next one, and that of element k of a chunk and the next one.
#define KEEP_WORD(T, word, r, TERM, i, there)                                                                \
    const T x = there(TERM(i)) ? (T)r[i] : (T)0;                                                             \
    const T y = there(TERM((i) + MATRIX_TERMS - 1)) ? (T)r[(i) + MATRIX_TERMS - 1] : (T)0;                   \
    KEEP_PARTS(T, x, y)
#define WIDE_WORD(T, word, r, ROWS, chunks, j, k)                                                            \
    WIDE_PARTS(T, word, r, (ROWS) ? (j)*CHUNK_TERMS + (k) : (k) * (chunks) + (j),                            \
               MATRIX_TERMS == 1 ? 0 : (ROWS) ? (j)*CHUNK_TERMS + (k) + 1 : ((k) + 1) * (chunks) + (j))
#if PARTS == 1
#define KEEP_PARTS(T, x, y) MATRIX_WORD(T, word[0][e], x, y)
#define WIDE_PARTS(T, word, r, i, k) MATRIX_PACKED(T, word[0][e], r, i, k)
#else
#define WIDE_PARTS(T, word, r, i, k)                                                                         \
    const float x = as_float(r[i]), y = as_float(r[k]);                                                      \
    KEEP_PARTS(T, x, y)
#define KEEP_PARTS(T, x, y)                                                                                  \
    float v = LOAD(T, &x), w = LOAD(T, &y);                                                                  \
    UNROLLED for (int p = 0; p < PARTS - 1; p++) {                                                           \
        const uint high_v = as_uint(v) & 0xffff0000u, high_w = as_uint(w) & 0xffff0000u;                     \
        word[p][e] = high_v >> 16 | high_w;                                                                  \
        v = fabs(v) < INFINITY ? v - as_float(high_v) : 0.0f;                                                \
        w = fabs(w) < INFINITY ? w - as_float(high_w) : 0.0f;                                                \
    }                                                                                                        \
    MATRIX_WORD(float, word[PARTS - 1][e], v, w)
#endif
#ifndef KEEP_TILE_A
#define KEEP_TILE_A(there) KEEP_CHUNKS(A_CHUNKS, la, BM, A_CHUNK_ROW, A_CHUNK, A_WORD, there)
#endif
#ifndef KEEP_TILE_B
#define KEEP_TILE_B(there) KEEP_CHUNKS(B_CHUNKS, lb, BN, B_CHUNK_ROW, B_CHUNK, B_WORD, there)
#endif
#define KEEP_TILE(there)                                                                                     \
    KEEP_TILE_A(there)                                                                                       \
    KEEP_TILE_B(there)                                                                                       \
    COPIED
#if A_COPIED || B_COPIED
#define COPIED MATRIX_COPIED
#else
#define COPIED
#endif
#define KEEP KEEP_TILE(THERE)

// A sub-group's part of the tile, in fragments. It begins at a multiple of 16 rows and columns, as places are counted from there.
#define SUBS (ITEMS / MATRIX_LANES)
#define SUB_ROWS (MATRIX_SUB_ROWS(SUBS) * 16 > BM ? BM / 16 : MATRIX_SUB_ROWS(SUBS))
#define FM (BM / SUB_ROWS / MATRIX_M)
#define FN (BN * SUB_ROWS / SUBS / MATRIX_N)
#elif WIDE
// from_a, from_b: where an item's first chunk begins.
#define FETCH_CHUNKS(r, from, loads, ROWS, n, k2, there)                                                     \
    UNROLLED for (int j = 0; j < (loads) / 4; j++) {                                                         \
        r[j] = (float4)0.0f;                                                                                 \
        if (there(CHUNK_TERM(ROWS, n, j)))                                                                   \
            r[j] = *(__global const float4 *)((from) + j * TERMS_OF(n) * ((ROWS) ? 1 : (k2)));               \
    }
#define FETCH_TILE(there)                                                                                    \
    FETCH_CHUNKS(rb, from_b, B_LOADS, B_ROWS, BN, b_k2, there)                                               \
    FETCH_CHUNKS(ra, from_a, A_LOADS, A_ROWS, BM, a_k2, there)
#define THERE(k) 1
#define THERE_FIRST(k) ((k) >= skip)
#define FETCH                                                                                                \
    {                                                                                                        \
        from_a += TK * a_k2;                                                                                 \
        from_b += TK * b_k2;                                                                                 \
        FETCH_TILE(THERE)                                                                                    \
    }
// Of four terms each has a row of the tile.
#define KEEP_CHUNKS(r, tile, loads, ROWS, n)                                                                 \
    UNROLLED for (int j = 0; j < (loads) / 4; j++) {                                                         \
        __local float *to = (__local float *)tile[0][CHUNK_TERM(ROWS, n, j)] + CHUNK_ROW(ROWS, n);        \
        if (ROWS) {                                                                                          \
            to[0] = r[j].x, to[(n) + 4] = r[j].y, to[2 * ((n) + 4)] = r[j].z, to[3 * ((n) + 4)] = r[j].w;    \
        } else {                                                                                             \
            *(__local float4 *)to = r[j];                                                                    \
        }                                                                                                    \
    }
#define KEEP                                                                                                 \
    KEEP_CHUNKS(ra, la, A_LOADS, A_ROWS, BM)                                                                 \
    KEEP_CHUNKS(rb, lb, B_LOADS, B_ROWS, BN)
#else
#define FETCH                                                                                                \
    {                                                                                                        \
        const int from = first + turn * TK;                                                                  \
        UNROLLED for (int i = 0; i < B_LOADS; i++) {                                                         \
            const int column = columns[B_COLUMN(i)];                                                         \
            FETCH_B(i)                                                                                       \
        }                                                                                                    \
        UNROLLED for (int i = 0; i < A_LOADS; i++) {                                                         \
            const int row = rows[A_ROW(i)];                                                                  \
            ra[i] = FETCH_A(A_TERM(i));                                                                      \
        }                                                                                                    \
    }
#define KEEP                                                                                                 \
    {                                                                                                        \
        UNROLLED for (int i = 0; i < A_LOADS; i++) {                                                         \
            const T_A v = (T_A)ra[i];                                                                        \
            ((__local KEPT(T_A) *)la[turn & 1][A_TERM(i)])[A_ROW(i)] =                                       \
                HAS_TERM(A_TERM, i) ? READ(T_A, v) : (KEPT(T_A))0;                                           \
        }                                                                                                    \
        UNROLLED for (int i = 0; i < B_LOADS; i++) {                                                         \
            const T_B v = (T_B)rb[i];                                                                        \
            ((__local KEPT(T_B) *)lb[turn & 1][B_TERM(i)])[B_PLACE(i)] =                                     \
                HAS_B(i) ? READ(T_B, v) : (KEPT(T_B))0;                                                      \
        }                                                                                                    \
    }
#endif

#if MATRIX
#define GROUP_ATTRIBUTES MATRIX_ATTRIBUTES
#define COLUMN_AT(column) columns[column]
#else
#define GROUP_ATTRIBUTES
#define COLUMN_AT(column) (N2(n) * c_n2 + N1(n) * c_n1 + N0(n) * c_n0)
#endif
// An item's j-th of so many results in row ROW(j) and column n0 + COLUMN(j). The loop stays one: unrolled, the epilogue would stand there
// for each. Where an epilogue reads other tensors four are done together, so that it waits for all their loads at once.
#if EPI_N
#define TOGETHER 4
#else
#define TOGETHER 1
#endif
#define STORE_SUMS(many, ROW, COLUMN, SUM)                                                                   \
    _Pragma("nounroll") for (int j = 0; j < (many); j += TOGETHER) {                                         \
        float results[TOGETHER];                                                                             \
        int places[TOGETHER];                                                                                \
        EPILOGUE_AHEAD(TOGETHER)                                                                             \
        UNROLLED for (int r = 0; r < TOGETHER; r++) {                                                        \
            const int row = ROW(j + r), column = COLUMN(j + r), n = n0 + column;                             \
            places[r] = -1;                                                                                  \
            if (row < M && n < N) {                                                                          \
                places[r] = row * c_m + COLUMN_AT(column);                                                   \
                EPILOGUE_READ(r, c_0 + z * c_z + places[r])                                                  \
            }                                                                                                \
        }                                                                                                    \
        UNROLLED for (int r = 0; r < TOGETHER; r++) {                                                        \
            if (places[r] >= 0) {                                                                            \
                const int channel = z * channels + (by_row ? ROW(j + r) : n0 + COLUMN(j + r));               \
                float v = SUM(j + r);                                                                        \
                if (has_bias) v += bias[channel];                                                            \
                EPILOGUE_CHANNEL(channel);                                                                   \
                results[r] = KERNEL(epilogue)(v EPILOGUE_AS_READ(r));                                        \
            }                                                                                                \
        }                                                                                                    \
        UNROLLED for (int r = 0; r < TOGETHER; r++) {                                                        \
            if (places[r] >= 0) STORE(T_C, results[r], c + places[r]);                                       \
        }                                                                                                    \
    }
#define OWN_ROW(j) m
#define OWN_COLUMN(j) ((j)*WX + x)
#define ROW_SUM(j) own[OWN_COLUMN(j)]
#define ITEM_SUM(j) own[(j)*ITEMS]
#define FRAGMENT_ROW(j) (m0 + sub_m + f / FN * MATRIX_M + ((j)*MATRIX_LANES + lane) / MATRIX_N)
#define FRAGMENT_COLUMN(j) (sub_n + f % FN * MATRIX_N + ((j)*MATRIX_LANES + lane) % MATRIX_N)
#define FRAGMENT_SUM(j) own[(j)*MATRIX_LANES + lane]

__kernel GROUP_ATTRIBUTES __attribute__((reqd_work_group_size(WX * WY, 1, 1))) void
KERNEL(gemm)(__global T_C *restrict c, __global const T_A *restrict a, __global const T_B *restrict b,
             __global const float *restrict bias, int batches, int M, int N, int K, int depth, int k_1,
             int k_0, int n_1, int n_0, int a_0, int a_z, int a_m, int a_k2, int a_k1, int a_k0, int b_z,
             int b_k2, int b_n2, int c_0, int c_z, int c_m, int c_n2, int c_n1, int c_n0, int c_split,
             int h_0, int h_n1, int h_k1, int h_size, int w_0, int w_n0, int w_k0, int w_size, int channels,
             int by_row, int has_bias EPILOGUE_PARAMS) {
#if MATRIX
    __local uint la[STAGES * PARTS * BM * MATRIX_WIDTH] __attribute__((aligned(128)));
    __local uint lb[STAGES * PARTS * BN * MATRIX_WIDTH] __attribute__((aligned(128)));
    MATRIX_SCRATCH(ITEMS)
#else
    __local KEPT4(T_A) la[TILES][TK][BM / 4 + 1];
    __local KEPT4(T_B) lb[4 * TILES / sizeof(KEPT(T_B))][TK][BN / 4 + 1]; // tiles, and at last as many floats
#endif
    __local int rows[BM];
    __local int columns[COLUMN_WORDS * BN];
    const int id = (int)get_local_id(0);
#if WIDE // 32 items have 4 x 8 places, which read fewer words of a term than 2 x 16
    const int x = id / 32 % (WX / 8) * 8 + id % 8, y = id / (4 * WX) * 4 + id / 8 % 4;
#else
    const int x = id % WX, y = id / WX;
#endif
#if MATRIX
    const int sub = MATRIX_SUB, lane = MATRIX_LANE;
    const int sub_m = sub % SUB_ROWS * (FM * MATRIX_M), sub_n = sub / SUB_ROWS * (FN * MATRIX_N);
#endif
    const int m0 = (int)get_group_id(1) * BM, n0 = (int)get_group_id(0) * BN;
    const int z = (int)get_group_id(2) % batches;
    int split = (int)get_group_id(2) / batches;
#if PHASES
    const int wide = min(w_n0, n_0), phase = split % (min(h_n1, n_1) * wide);
    split /= min(h_n1, n_1) * wide;
    const int4 p = KERNEL(gemm_phase)(phase / wide, h_n1, h_0, h_k1, k_1);
    const int4 q = KERNEL(gemm_phase)(phase % wide, w_n0, w_0, w_k0, k_0);
    c_0 += phase / wide * c_n1 + phase % wide * c_n0;
    c_n1 *= h_n1;
    c_n0 *= w_n0;
    a_0 += p.s0 * a_k1 + q.s0 * a_k0;
    a_k1 *= p.s2;
    a_k0 *= q.s2;
    n_1 = (n_1 - phase / wide + h_n1 - 1) / h_n1;
    n_0 = (n_0 - phase % wide + w_n0 - 1) / w_n0;
    N *= n_1 * n_0;
    K *= p.s1 * q.s1;
    k_1 = max(p.s1, 1);
    k_0 = max(q.s1, 1);
    h_k1 = -p.s2 * h_k1 / h_n1;
    w_k0 = -q.s2 * w_k0 / w_n0;
    h_0 = p.s3;
    w_0 = q.s3;
    h_n1 = w_n0 = 1;
    if (n0 >= N) return; // all of the group: phases differ in size
#endif
#if TAPS == 2 // pixels as elements
    b += (h_size + h_0 * w_size + w_0) * b_k2;
    h_n1 *= w_size * b_k2, w_n0 *= b_k2;
    const int b_k1 = h_k1 * w_size * b_k2, b_k0 = w_k0 * b_k2;
    h_0 = w_0 = 0, w_size = 1;
#endif
    const int first = split * depth, last = min(K, first + depth) - 1, turns = max(last - first + TK, 0) / TK;
#if MATRIX || WIDE
    const int skip = turns * TK - (last + 1 - first);
#endif
#if MATRIX
    REGISTERS(T_A, A_WIDE, A_LOADS, ra)
    REGISTERS(T_B, B_WIDE, B_LOADS, rb)
    float sums[FM * FN][MATRIX_SUMS];
#elif WIDE
    float4 ra[A_LOADS / 4], rb[B_LOADS / 4];
    float sums[TM][TN];
#else
    FETCHED(T_A) ra[A_LOADS];
    FETCHED(T_B) rb[B_LOADS];
    float sums[TM][TN];
#endif
    int turn = 0;
    a += a_0 + z * a_z;
    b += z * b_z;
    for (int i = id; i < BM; i += ITEMS) rows[i] = min(m0 + i, M - 1) * a_m;
    for (int i = id; i < BN; i += ITEMS) {
        PUT_COLUMN(i)
    }
#if TAPS == 1
    __local int4 terms[2][TK];
    int s0 = TK, s1 = 0, s2 = 0; // the digits of TK. By loops: a division takes registers of all items on AMD
    while (s0 >= k_0) s0 -= k_0, s1++;
    while (s1 >= k_1) s1 -= k_1, s2++;
#if PHASES // made by divisions
    __local int4 moves[3];
    if (id == 0)
        moves[0] = TERM_OF(s2, s1, s0), moves[1] = TERM_OF(0, 1, -k_0), moves[2] = TERM_OF(1, -k_1, 0);
#else
    const int4 moves[3] = {TERM_OF(s2, s1, s0), TERM_OF(0, 1, -k_0), TERM_OF(1, -k_1, 0)};
#endif
    PUT_FIRST_TERMS
#endif
    barrier(CLK_LOCAL_MEM_FENCE);
#if MATRIX
    UNROLLED for (int i = 0; i < FM * FN; i++) UNROLLED for (int e = 0; e < MATRIX_SUMS; e++) sums[i][e] =
        0.0f;
#else
    UNROLLED for (int i = 0; i < TM; i++) UNROLLED for (int j = 0; j < TN; j++) sums[i][j] = 0.0f;
#endif
#if MATRIX
#if A_WIDE
    MATRIX_INDEX at_a[A_ROWS ? A_CHUNKS : CHUNK_TERMS];
#if A_ROWS
    UNROLLED for (int j = 0; j < A_CHUNKS; j++) at_a[j] = MATRIX_AT(T_A, rows[A_CHUNK_ROW(j)]);
    MATRIX_OWN(T_A, a, at_a, A_CHUNKS, TAPS == 1 ? 0 : A_TERM(0))
#else
    UNROLLED for (int e = 0; e < CHUNK_TERMS; e++) at_a[e] = MATRIX_AT(T_A, A_TERM(e) * a_k2);
    MATRIX_OWN(T_A, a, at_a, CHUNK_TERMS, min(m0 + A_CHUNK_ROW(0), M - A_CHUNKS))
#endif
#endif
#if B_WIDE
    MATRIX_INDEX at_b[B_ROWS ? B_CHUNKS : CHUNK_TERMS];
#if B_ROWS
    UNROLLED for (int j = 0; j < B_CHUNKS; j++) at_b[j] = MATRIX_AT(T_B, columns[B_CHUNK_ROW(j)]);
    MATRIX_OWN(T_B, b, at_b, B_CHUNKS, TAPS == 1 ? 0 : B_TERM(0))
#else
    UNROLLED for (int e = 0; e < CHUNK_TERMS; e++) at_b[e] = MATRIX_AT(T_B, B_TERM(e) * b_k2);
    MATRIX_OWN(T_B, b, at_b, CHUNK_TERMS, columns[min(B_CHUNK_ROW(0), N - B_CHUNKS - n0)])
#endif
#endif
#if A_COPIED
    MATRIX_TO(to_a, la, A_CHUNK_ROW(0), A_CHUNK(0))
#endif
#if B_COPIED
    MATRIX_TO(to_b, lb, B_CHUNK_ROW(0), B_CHUNK(0))
#endif
#if TAPS == 2
    int block = first / TK / k_0 / k_1, tap_1 = first / TK / k_0 % k_1, tap_0 = first / TK % k_0;
    a += block * a_k2 + tap_1 * a_k1 + tap_0 * a_k0;
    b += block * TK + tap_1 * b_k1 + tap_0 * b_k0;
#elif TAPS != 1
    a += (first - skip) * a_k2;
    b += (first - skip) * b_k2;
#endif
    if (turns) {
        FETCH_TILE(THERE_FIRST)
        KEEP_TILE(THERE_FIRST)
    }
#elif WIDE
    const int own_m = CHUNK_ROW(A_ROWS, BM), own_n = CHUNK_ROW(B_ROWS, BN);
    __global const float *from_a = a + ((A_ROWS ? rows[own_m] : min(m0 + own_m, M - 4)) +
                                        (first - skip + CHUNK_TERM(A_ROWS, BM, 0)) * a_k2);
    __global const float *from_b = b + (columns[B_ROWS ? own_n : min(own_n, N - 4 - n0)] +
                                        (first - skip + CHUNK_TERM(B_ROWS, BN, 0)) * b_k2);
    if (turns) {
        FETCH_TILE(THERE_FIRST)
        KEEP
    }
#else
    if (turns) {
        PUT_NEXT_TERMS
        FETCH
        KEEP
    }
#endif
    barrier(CLK_LOCAL_MEM_FENCE);
    for (turn = 1; turn <= turns; turn++) {
        if (turn < turns) {
            FETCH
            PUT_NEXT_TERMS
        }
#if MATRIX
        MATRIX_FROM(pa, la + (turn - 1) % STAGES * PARTS * BM * MATRIX_WIDTH + sub_m * MATRIX_WIDTH)
        MATRIX_FROM(pb, lb + (turn - 1) % STAGES * PARTS * BN * MATRIX_WIDTH + sub_n * MATRIX_WIDTH)
        MATRIX_EACH_STEP for (int s = 0; s < MATRIX_WIDTH / 8; s++) {
            uint va[PARTS][FM][MATRIX_A_WORDS], vb[PARTS][MATRIX_B_WORDS];
            MATRIX_UNROLLED for (int p = 0; p < PARTS; p++) {
                MATRIX_UNROLLED for (int i = 0; i < FM; i++) {
                    MATRIX_LOAD_A(va[p][i], pa, p * BM + i * MATRIX_M, s);
                }
            }
            MATRIX_UNROLLED for (int j = 0; j < FN; j++) {
                MATRIX_UNROLLED for (int p = 0; p < PARTS; p++) {
                    MATRIX_LOAD_B(vb[p], pb, p * BN + j * MATRIX_N, s);
                }
                MATRIX_UNROLLED for (int i = 0; i < FM; i++) {
#if PARTS == 1
                    MATRIX_MULTIPLY(sums[i * FN + j], va[0][i], vb[0]);
#else // the smallest products first; and the unit's own sums, which may be cut off, are short ones
                    float low[MATRIX_SUMS], high[MATRIX_SUMS];
                    UNROLLED for (int e = 0; e < MATRIX_SUMS; e++) low[e] = high[e] = 0.0f;
                    MATRIX_UNROLLED for (int q = PARTS - 1; q > 0; q--) {
                        MATRIX_UNROLLED for (int p = q; p >= 0; p--) {
                            MATRIX_MULTIPLY(low, va[p][i], vb[q - p]);
                        }
                    }
                    MATRIX_MULTIPLY(high, va[0][i], vb[0]);
                    // An infinite factor is infinite in its first part; with a second part that is 0 it would be NaN.
                    UNROLLED for (int e = 0; e < MATRIX_SUMS; e++) {
                        sums[i * FN + j][e] += fabs(high[e]) < INFINITY ? high[e] + low[e] : high[e];
                    }
#endif
                }
            }
        }
#else
        __local const KEPT4(T_A) *pa = la[(turn - 1) % TILES][0] + y;
        __local const KEPT4(T_B) *pb = lb[(turn - 1) % TILES][0] + x;
#if HALF_SUMS && F16_NATIVE
        half2 run[TM][TN / 2];
        UNROLLED for (int i = 0; i < TM; i++) UNROLLED for (int j = 0; j < TN / 2; j++) run[i][j] =
            (half2)((half)0);
#endif
        _Pragma("nounroll") for (int k = 0; k < TK; k += STEP) {
            UNROLLED for (int s = 0; s < STEP; s++) {
#if HALF_SUMS && F16_NATIVE
                half4 va[TM / 4], vb[TN / 4];
                UNROLLED for (int i = 0; i < TM / 4; i++) va[i] = as_half4(pa[s * (BM / 4 + 1) + i * WY]);
                UNROLLED for (int j = 0; j < TN / 4; j++) vb[j] = as_half4(pb[s * (BN / 4 + 1) + j * WX]);
                UNROLLED for (int i = 0; i < TM / 4; i++) UNROLLED for (int j = 0; j < TN / 4; j++) {
                    RUN(4 * i, va[i].x, j, vb[j])
                    RUN(4 * i + 1, va[i].y, j, vb[j])
                    RUN(4 * i + 2, va[i].z, j, vb[j])
                    RUN(4 * i + 3, va[i].w, j, vb[j])
                }
#else
                float va[TM], vb[TN];
                UNROLLED for (int i = 0; i < TM / 4; i++)
                    vstore4(FLOATS(T_A, pa[s * (BM / 4 + 1) + i * WY]), i, va);
                UNROLLED for (int j = 0; j < TN / 4; j++)
                    vstore4(FLOATS(T_B, pb[s * (BN / 4 + 1) + j * WX]), j, vb);
                UNROLLED for (int i = 0; i < TM; i++) UNROLLED for (int j = 0; j < TN; j++) sums[i][j] =
                    fma(va[i], vb[j], sums[i][j]);
#endif
            }
            pa += STEP * (BM / 4 + 1);
            pb += STEP * (BN / 4 + 1);
        }
#if HALF_SUMS && F16_NATIVE
        UNROLLED for (int i = 0; i < TM; i++) UNROLLED for (int j = 0; j < TN / 2; j++) {
            sums[i][2 * j] += (float)run[i][j].x;
            sums[i][2 * j + 1] += (float)run[i][j].y;
        }
#endif
#endif
#if (MATRIX && STAGES == 1) || WIDE
        barrier(CLK_LOCAL_MEM_FENCE);
#endif
        if (turn < turns) {
            KEEP
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    c += c_0 + z * c_z + split * c_split;
#if MATRIX // where a column's elements lie, once for all rows
    for (int i = id; i < BN; i += ITEMS) {
        const int n = n0 + i;
        columns[i] = N2(n) * c_n2 + N1(n) * c_n1 + N0(n) * c_n0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
    // Some sums at a time by way of local memory, where the loop over them can stay one.
#if MATRIX // a fragment, so that neighbours store neighbours
    __local float *own = (__local float *)lb + sub * (MATRIX_M * MATRIX_N);
    UNROLLED for (int f = 0; f < FM * FN; f++) {
        UNROLLED for (int e = 0; e < MATRIX_SUMS; e++)
            own[MATRIX_ROW(lane, e) * MATRIX_N + MATRIX_COLUMN(lane, e)] = sums[f][e];
        barrier(CLK_LOCAL_MEM_FENCE);
        STORE_SUMS(MATRIX_SUMS, FRAGMENT_ROW, FRAGMENT_COLUMN, FRAGMENT_SUM)
        barrier(CLK_LOCAL_MEM_FENCE);
    }
#elif WIDE // a row of all items beside each other, so that neighbours store neighbours
    __local float *own = (__local float *)lb + y * (WX * TN);
    UNROLLED for (int i = 0; i < TM; i++) {
        const int m = m0 + i / 4 * (4 * WY) + y * 4 + i % 4;
        UNROLLED for (int j = 0; j < TN / 4; j++) vstore4(vload4(j, sums[i]), j * WX + x, own);
        barrier(CLK_LOCAL_MEM_FENCE);
        STORE_SUMS(TN, OWN_ROW, OWN_COLUMN, ROW_SUM)
        barrier(CLK_LOCAL_MEM_FENCE);
    }
#else
    __local float *own = (__local float *)lb + id;
    UNROLLED for (int i = 0; i < TM; i++) {
        const int m = m0 + i / 4 * (4 * WY) + y * 4 + i % 4;
        UNROLLED for (int j = 0; j < TN; j++) own[j * ITEMS] = sums[i][j];
        STORE_SUMS(TN, OWN_ROW, OWN_COLUMN, ITEM_SUM)
    }
#endif
}

__kernel void KERNEL(gemm_sum)(__global T_C *restrict c, __global const float *restrict part,
                               __global const float *restrict bias, int size, int splits, int inner,
                               int channels, int has_bias EPILOGUE_PARAMS) {
    const int i = (int)get_global_id(0);
    if (i >= size) return;
    const int channel = i / inner % channels;
    float v = 0.0f;
    for (int split = 0; split < splits; split++) v += part[split * size + i];
    if (has_bias) v += bias[channel];
    EPILOGUE_CHANNEL(channel);
    STORE(T_C, KERNEL(epilogue)(v EPILOGUE_AT(i)), c + i);
}
