// SPDX-License-Identifier: Apache-2.0
// Copies between two tensors walked with different strides: permute, slice, concat, broadcast. Elements of
// one type are moved as words, whatever they mean; between float types they are converted.
//
//   copy_plain   item i copies the walk's element i, of COPY_RANK dimensions
//   copy_rows    the innermost dimension is contiguous in the output, and in the input (or repeated there):
//                rows in three levels; an item copies some rows or a chunk of one, by vectors of COPY_VW
//   copy_fours   item i copies four elements of the walk from 4i on, as vectors on the side where the walk lies one after the other
//   copy_tile    the innermost dimension is contiguous in the output, another in the input: an item
//                transposes blocks of COPY_VW x COPY_VW along a chunk of one strip
//   copy_local   the same with groups, whose items are rows of 32: each takes a block of 32 x 32 through local memory
//
// T_IN, T_OUT elements: int for any of four bytes, ushort of two, uchar of one, i64 of eight (int2 alone: plain; default int); where input and output
//             differ, float, f16 or bf16
// COPY_RANK   plain: dimensions, 1..8 (default 1)
// COPY_TO, COPY_FROM  fours: 1 where that side's elements lie one after the other, from a multiple of four on (default 0)
// COPY_VW     vector width and side of a tile: 2, 4, 8 or 16 (default 16)
// COPY_U      rows: 1 if the input repeats one element along a row (default 0)
// COPY_ACCESS rows: A where every vector lies at a multiple of COPY_VW elements, else V (default; common/storage.cl)
#define T_IN int
#define T_OUT int
#define COPY_RANK 1
#define COPY_VW 16
#define COPY_ACCESS V
#define COPY_U 0
#define COPY_TO 0
#define COPY_FROM 0

#define COPY_V PASTE(VALUE(T_IN), COPY_VW)
#define COPY_LOAD(p) PASTE(COPY_ACCESS, LOAD)(T_IN, COPY_VW, p)
#define COPY_STORE(v, p) PASTE(COPY_ACCESS, STORE)(T_OUT, COPY_VW, v, p)

// All dimensions but the outermost, from the innermost out.
#define COPY_DIMS_1(M)
#define COPY_DIMS_2(M) M(1)
#define COPY_DIMS_3(M) M(2) M(1)
#define COPY_DIMS_4(M) M(3) COPY_DIMS_3(M)
#define COPY_DIMS_5(M) M(4) COPY_DIMS_4(M)
#define COPY_DIMS_6(M) M(5) COPY_DIMS_5(M)
#define COPY_DIMS_7(M) M(6) COPY_DIMS_6(M)
#define COPY_DIMS_8(M) M(7) COPY_DIMS_7(M)
#define COPY_DIMS(M) PASTE(COPY_DIMS_, COPY_RANK)(M)
#define COPY_PARAM_DIM(k) int d##k,
#define COPY_PARAM_TO(d) int to##d,
#define COPY_PARAM_FROM(d) int from##d,
#define COPY_SPLIT(k)                                                                                        \
    const int i##k = rest % d##k;                                                                            \
    rest /= d##k;
// clang-format off
#define COPY_STEP_TO(d) + i##d * to##d
#define COPY_STEP_FROM(d) + i##d * from##d
// clang-format on

kernel void KERNEL(copy_plain)(global T_OUT *restrict out, const global T_IN *restrict in, int n,
                               int to_offset, int from_offset,
                               COPY_DIMS(COPY_PARAM_DIM) COPY_DIMS(COPY_PARAM_TO)
                                   COPY_DIMS(COPY_PARAM_FROM) int to0,
                               int from0) {
    const int i = get_global_id(0);
    if (i >= n) return;
    int rest = i;
    COPY_DIMS(COPY_SPLIT)
    STORE(T_OUT, LOAD(T_IN, in + (from_offset + rest * from0 COPY_DIMS(COPY_STEP_FROM))),
          out + (to_offset + rest * to0 COPY_DIMS(COPY_STEP_TO)));
}

#define COPY_PLACES(e, to, from)                                                                             \
    int to, from;                                                                                            \
    {                                                                                                        \
        int rest = first + e;                                                                                \
        COPY_DIMS(COPY_SPLIT)                                                                                \
        to = to_offset + rest * to0 COPY_DIMS(COPY_STEP_TO);                                                 \
        from = from_offset + rest * from0 COPY_DIMS(COPY_STEP_FROM);                                         \
    }
kernel void KERNEL(copy_fours)(global T_OUT *restrict out, const global T_IN *restrict in, int n,
                               int to_offset, int from_offset,
                               COPY_DIMS(COPY_PARAM_DIM) COPY_DIMS(COPY_PARAM_TO)
                                   COPY_DIMS(COPY_PARAM_FROM) int to0,
                               int from0) {
    const int first = (int)get_global_id(0) * 4;
    if (first + 4 <= n) {
        COPY_PLACES(0, to_a, from_a)
        COPY_PLACES(1, to_b, from_b)
        COPY_PLACES(2, to_c, from_c)
        COPY_PLACES(3, to_d, from_d)
#if COPY_FROM
        const PASTE(VALUE(T_IN), 4) v = ALOAD(T_IN, 4, in + from_a);
#else
        const PASTE(VALUE(T_IN), 4)
        v = (PASTE(VALUE(T_IN), 4))(LOAD(T_IN, in + from_a), LOAD(T_IN, in + from_b), LOAD(T_IN, in + from_c),
                                    LOAD(T_IN, in + from_d));
#endif
#if COPY_TO
        ASTORE(T_OUT, 4, v, out + to_a);
#else
        STORE(T_OUT, v.x, out + to_a);
        STORE(T_OUT, v.y, out + to_b);
        STORE(T_OUT, v.z, out + to_c);
        STORE(T_OUT, v.w, out + to_d);
#endif
        return;
    }
    for (int e = 0; e < n - first; e++) {
        COPY_PLACES(e, to, from)
        STORE(T_OUT, LOAD(T_IN, in + from), out + to);
    }
}

kernel void KERNEL(copy_rows)(global T_OUT *restrict out, const global T_IN *restrict in, int to_offset,
                              int from_offset, int rows, int rows_per_item, int d1, int d2, int inner,
                              int chunk, int chunks, int to0, int to1, int to2, int from0, int from1,
                              int from2) {
    const int id = get_global_id(0);
    const int begin = (id % chunks) * chunk;
    const int end = inner - begin > chunk ? begin + chunk : inner;
    const int first = (id / chunks) * rows_per_item;
    if (first >= rows) return;
    const int last = rows - first > rows_per_item ? first + rows_per_item : rows;
    for (int r = first; r < last; r++) {
        const int i2 = r % d2, i1 = r / d2 % d1, i0 = r / d2 / d1;
        global T_OUT *to = out + to_offset + i0 * to0 + i1 * to1 + i2 * to2;
        const global T_IN *from = in + from_offset + i0 * from0 + i1 * from1 + i2 * from2;
        int j = begin;
#if COPY_U
        const COPY_V v = (COPY_V)(LOAD(T_IN, from));
        for (; end - j >= COPY_VW; j += COPY_VW) COPY_STORE(v, to + j);
        for (; j < end; j++) STORE(T_OUT, LOAD(T_IN, from), to + j);
#else
        for (; end - j >= COPY_VW; j += COPY_VW) COPY_STORE(COPY_LOAD(from + j), to + j);
        for (; j < end; j++) STORE(T_OUT, LOAD(T_IN, from + j), to + j);
#endif
    }
}

// Strip: COPY_VW rows of the output (`high` of them in all, contiguous in the input), `chunk` of `wide`
// columns (contiguous in the output). Outer dimensions in two levels.
kernel void KERNEL(copy_tile)(global T_OUT *restrict out, const global T_IN *restrict in, int to_offset,
                              int from_offset, int items, int strips, int chunk, int chunks, int d1, int high,
                              int wide, int to0, int to1, int to_row, int from0, int from1, int from_column) {
    const int id = get_global_id(0);
    if (id >= items) return;
    const int outer = id / chunks / strips, first = (id / chunks % strips) * COPY_VW,
              begin = (id % chunks) * chunk;
    const int end = wide - begin > chunk ? begin + chunk : wide;
    const int rows = high - first > COPY_VW ? COPY_VW : high - first;
    global T_OUT *to = out + to_offset + outer / d1 * to0 + outer % d1 * to1 + first * to_row;
    const global T_IN *from = in + from_offset + outer / d1 * from0 + outer % d1 * from1 + first;
    int c = begin;
    // A whole block is read by vectors into private memory and written by vectors: each line of either side
    // is touched once, however unfortunate the strides.
    if (rows == COPY_VW) {
        VALUE(T_IN) block[COPY_VW * COPY_VW], row[COPY_VW];
        for (; end - c >= COPY_VW; c += COPY_VW) {
            for (int k = 0; k < COPY_VW; k++)
                PASTE(vstore, COPY_VW)(COPY_LOAD(from + (c + k) * from_column), k, block);
            for (int r = 0; r < COPY_VW; r++) {
                for (int k = 0; k < COPY_VW; k++) row[k] = block[k * COPY_VW + r];
                COPY_STORE(PASTE(vload, COPY_VW)(0, row), to + r * to_row + c);
            }
        }
    }
    for (int r = 0; r < rows; r++) {
        for (int k = c; k < end; k++)
            STORE(T_OUT, LOAD(T_IN, from + k * from_column + r), to + r * to_row + k);
    }
}

// A block: 32 rows of the output, which lie side by side in the input, and 32 columns, which do in the output.
kernel void KERNEL(copy_local)(global T_OUT *restrict out, const global T_IN *restrict in, int to_offset,
                               int from_offset, int strips, int chunks, int d1, int high, int wide, int to0,
                               int to1, int to_row, int from0, int from1, int from_column) {
    local VALUE(T_IN) block[32][33]; // a column of it is in as many banks
    const int x = get_local_id(0) % 32, y = get_local_id(0) / 32, at_once = get_local_size(0) / 32;
    const int g = get_group_id(0), outer = g / chunks / strips, first = g / chunks % strips * 32,
              begin = g % chunks * 32;
    global T_OUT *to = out + to_offset + outer / d1 * to0 + outer % d1 * to1 + first * to_row + begin;
    const global T_IN *from =
        in + from_offset + outer / d1 * from0 + outer % d1 * from1 + first + begin * from_column;
    for (int k = y; k < 32; k += at_once)
        if (begin + k < wide && first + x < high) block[k][x] = LOAD(T_IN, from + k * from_column + x);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = y; k < 32; k += at_once)
        if (first + k < high && begin + x < wide) STORE(T_OUT, block[x][k], to + k * to_row + x);
}
