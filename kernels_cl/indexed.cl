// SPDX-License-Identifier: Apache-2.0
// Moves by an index, between a table and a list (runtime/ops/indexed.h). An element of the list belongs to the
// table's element whose position on the table's axis the index says. An index outside 0 .. V-1 belongs to none.
//
//   flat         item r: tuple r of indices as the number of a row of a table whose dimensions are d0, d1, ...;
//                negative ones count from the end; -1: outside. Each `per` tuples the rows begin `rows` later
//   take         item i: element i of the list, from the table; OUTSIDE where there is none
//   take_rows    the same in runs of `length` neighbours with one index: an item does `rows` of them, or a
//                chunk of one
//   put          an item does an element of the table: it looks for its elements of the list at first .. last-1
//                along the axis, in order
//   put_rows     an item does a run of `length` neighbours of the table at one position. The index is one run
//   put_lines    an item does the elements of the list that differ in their place along the axis only, in order
//   put_order    groups of 256: the indices first .. first+n-1 of each list of indices, with where they stand,
//                by value and then by place
//   put_ordered  of those in order: an item for each element of the list. That of the first of each value adds
//                up all of them, in their order; ADD 0: that of the last stores its own. What has no index stays
//
// begin        of put, put_rows, put_ordered: the table's element begins as 0 what it is, 1 zero, 2 base's
//
// RANK      dimensions that are walked, 1..8 (default 1)
// ADD       1: elements are added to the table, 0: the last one is copied there (default 1)
// WIDE      take, put_ordered: 4: the innermost dimension counts vectors of four (default 1)
// T_IN      how what is moved is stored: float (default), int, f16, bf16, u8, i64, int2
// T_OUT     how the result is stored, likewise
// T_BASE    put, put_rows: how base is
// OUTSIDE   take, take_rows: the value of what is not there (default NAN)
#define RANK 1
#define ADD 1
#define WIDE 1
#define T_IN float
#define T_OUT float
#define T_BASE float
#define OUTSIDE NAN

// All dimensions but the outermost, from the innermost out. A walk's arguments: their lengths, then of each
// tensor the strides of those, at last each tensor's stride of the outermost.
#define WALK_1(M)
#define WALK_2(M) M(1)
#define WALK_3(M) M(2) M(1)
#define WALK_4(M) M(3) WALK_3(M)
#define WALK_5(M) M(4) WALK_4(M)
#define WALK_6(M) M(5) WALK_5(M)
#define WALK_7(M) M(6) WALK_6(M)
#define WALK_8(M) M(7) WALK_7(M)
#define WALK(M) PASTE(WALK_, RANK)(M)
#define PARAM_D(k) int d##k,
#define PARAM_A(k) int a##k,
#define PARAM_B(k) int b##k,
#define PARAM_C(k) int c##k,
#define PARAM_E(k) int e##k,
#define WALK_PARAMS_1 WALK(PARAM_D) WALK(PARAM_A) int a0
#define WALK_PARAMS_2 WALK(PARAM_D) WALK(PARAM_A) WALK(PARAM_B) int a0, int b0
#define WALK_PARAMS_3 WALK(PARAM_D) WALK(PARAM_A) WALK(PARAM_B) WALK(PARAM_C) int a0, int b0, int c0
#define WALK_PARAMS_4                                                                                        \
    WALK(PARAM_D) WALK(PARAM_A) WALK(PARAM_B) WALK(PARAM_C) WALK(PARAM_E) int a0, int b0, int c0, int e0
#define SPLIT(k)                                                                                             \
    const int i##k = rest % d##k;                                                                            \
    rest /= d##k;
// clang-format off
#define STEP_A(k) + i##k * a##k
#define STEP_B(k) + i##k * b##k
#define STEP_C(k) + i##k * c##k
#define STEP_E(k) + i##k * e##k
#define AT_A (rest * a0 WALK(STEP_A))
#define AT_B (rest * b0 WALK(STEP_B))
#define AT_C (rest * c0 WALK(STEP_C))
#define AT_E (rest * e0 WALK(STEP_E))
// clang-format on

#if WIDE == 4
#define VALUES PASTE(VALUE(T_OUT), 4)
#define GET(T, p) ALOAD(T, 4, p)
#define SET(T, v, p) ASTORE(T, 4, v, p)
#else
#define VALUES VALUE(T_OUT)
#define GET(T, p) LOAD(T, p)
#define SET(T, v, p) STORE(T, v, p)
#endif

kernel void KERNEL(flat)(global int *restrict out, const global int *restrict indices, int n, int m, int per,
                         int rows, int d0, int d1, int d2, int d3, int d4, int d5, int d6, int d7) {
    const int r = get_global_id(0);
    if (r >= n) return;
    const int sizes[8] = {d0, d1, d2, d3, d4, d5, d6, d7};
    int row = 0, outside = 0;
    for (int k = 0; k < m; k++) {
        int v = indices[r * m + k];
        if (v < 0) v += sizes[k];
        const int beyond = v < 0 || v >= sizes[k];
        outside |= beyond;
        row = row * sizes[k] + (beyond ? 0 : v);
    }
    out[r] = outside ? -1 : r / per * rows + row;
}

// a: table, b: index
kernel void KERNEL(take)(global T_OUT *restrict out, const global T_IN *restrict table,
                         const global int *restrict index, int n, int V, int step, WALK_PARAMS_2) {
    const int i = get_global_id(0);
    if (i >= n) return;
    int rest = i;
    WALK(SPLIT)
    const int v = index[AT_B];
    SET(T_OUT, v >= 0 && v < V ? GET(T_IN, table + (AT_A + v * step)) : (VALUES)(OUTSIDE), out + i * WIDE);
}

// a: table, b: index, of the dimensions outside of a run
kernel void KERNEL(take_rows)(global T_OUT *restrict out, const global T_IN *restrict table,
                              const global int *restrict index, int n_rows, int rows, int V, int step,
                              int length, int chunk, int chunks, WALK_PARAMS_2) {
    const int id = get_global_id(0), first = id / chunks * rows, begin = id % chunks * chunk;
    const int last = min(first + rows, n_rows), end = length - begin > chunk ? begin + chunk : length;
    for (int r = first; r < last; r++) {
        int rest = r, j = begin;
        WALK(SPLIT)
        const int v = index[AT_B], known = v >= 0 && v < V;
        const global T_IN *from = table + (AT_A + (known ? v * step : 0));
        global T_OUT *to = out + r * length;
        for (; j + 16 <= end; j += 16)
            VSTORE(T_OUT, 16, known ? VLOAD(T_IN, 16, from + j) : (PASTE(VALUE(T_OUT), 16))(OUTSIDE), to + j);
        for (; j < end; j++) STORE(T_OUT, known ? LOAD(T_IN, from + j) : (VALUE(T_OUT))(OUTSIDE), to + j);
    }
}

// a: table, b: list, c: index, e: position on the axis
kernel void KERNEL(put)(global T_OUT *restrict out, const global T_BASE *restrict base,
                        const global T_IN *restrict list, const global int *restrict index, int n, int first,
                        int last, int list_step, int index_step, int begin, WALK_PARAMS_4) {
    const int i = get_global_id(0);
    if (i >= n) return;
    int rest = i;
    WALK(SPLIT)
    const int at = AT_A, from = AT_B, where = AT_C, v = AT_E;
    VALUE(T_OUT) value = (VALUE(T_OUT))(0);
    if (begin == 0) value = LOAD(T_OUT, out + at);
    if (begin == 2) value = LOAD(T_BASE, base + at);
    for (int k = first; k < last; k++) {
        if (index[where + k * index_step] != v) continue;
        const VALUE(T_OUT) one = LOAD(T_IN, list + (from + k * list_step));
        value = ADD ? value + one : one;
    }
    STORE(T_OUT, value, out + at);
}

// a: table, b: list, e: position on the axis, of the dimensions outside of a run
kernel void KERNEL(put_rows)(global T_OUT *restrict out, const global T_BASE *restrict base,
                             const global T_IN *restrict list, const global int *restrict index, int n,
                             int first, int last, int list_step, int begin, int length, WALK_PARAMS_3) {
    const int i = get_global_id(0);
    if (i >= n) return;
    int rest = i;
    WALK(SPLIT)
    const int v = AT_C, at = AT_A;
    global T_OUT *to = out + at;
    for (int d = 0; begin && d < length; d++)
        STORE(T_OUT, begin == 1 ? (VALUE(T_OUT))(0) : LOAD(T_BASE, base + (at + d)), to + d);
    for (int k = first; k < last; k++) {
        if (k + 16 <= last && !any(vload16(0, index + k) == v)) {
            k += 15;
            continue;
        }
        if (index[k] != v) continue;
        const global T_IN *from = list + (AT_B + k * list_step);
        int d = 0;
#if ADD
        for (; d + 16 <= length; d += 16)
            VSTORE(T_OUT, 16, VLOAD(T_OUT, 16, to + d) + VLOAD(T_IN, 16, from + d), to + d);
        for (; d < length; d++) STORE(T_OUT, LOAD(T_OUT, to + d) + LOAD(T_IN, from + d), to + d);
#else
        for (; d + 16 <= length; d += 16) VSTORE(T_OUT, 16, VLOAD(T_IN, 16, from + d), to + d);
        for (; d < length; d++) STORE(T_OUT, LOAD(T_IN, from + d), to + d);
#endif
    }
}

// a: table, b: list, c: index
kernel void KERNEL(put_lines)(global T_OUT *restrict out, const global T_IN *restrict list,
                              const global int *restrict index, int n, int V, int first, int last, int step,
                              int list_step, int index_step, WALK_PARAMS_3) {
    const int i = get_global_id(0);
    if (i >= n) return;
    int rest = i;
    WALK(SPLIT)
    const int at = AT_A, from = AT_B, where = AT_C;
    for (int k = first; k < last; k++) {
        const int v = index[where + k * index_step];
        if (v < 0 || v >= V) continue;
        const VALUE(T_OUT) one = LOAD(T_IN, list + (from + k * list_step));
        global T_OUT *to = out + (at + v * step);
        STORE(T_OUT, ADD ? LOAD(T_OUT, to) + one : one, to);
    }
}

// a: index. An item counts who comes before its index.
kernel void KERNEL(put_order)(global int2 *restrict order, const global int *restrict index, int first, int n,
                              int index_step, int groups, WALK_PARAMS_1) {
    local int tile[256];
    const int id = get_local_id(0), a_list = get_group_id(0) / groups,
              r = get_group_id(0) % groups * 256 + id;
    int rest = a_list;
    WALK(SPLIT)
    const global int *at = index + (AT_A + first * index_step);
    const int v = r < n ? at[r * index_step] : 0;
    int before = 0;
    for (int from = 0; from < n; from += 256) {
        barrier(CLK_LOCAL_MEM_FENCE);
        tile[id] = from + id < n ? at[(from + id) * index_step] : INT_MAX;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < 256; k++) before += tile[k] < v || (tile[k] == v && from + k < r);
    }
    if (r < n) order[a_list * n + before] = (int2)(v, first + r);
}

// a: table, b: list. `each` is n where each line has an order of its own, else 0.
kernel void KERNEL(put_ordered)(global T_OUT *restrict out, const global T_IN *restrict list,
                                const global int2 *restrict order, int n, int V, int lines, int each,
                                int step, int list_step, int begin, WALK_PARAMS_2) {
    const int i = get_global_id(0), line = i % lines;
    int k = i / lines, rest = line;
    if (k >= n) return;
    order += line * each;
    int2 entry = order[k];
    const int v = entry.x;
    if (v < 0 || v >= V) return;
    WALK(SPLIT)
    const int from = AT_B, to = AT_A + v * step;
#if ADD
    if (k > 0 && order[k - 1].x == v) return;
    VALUES sum = begin ? (VALUES)(0) : GET(T_OUT, out + to);
    for (; k < n; k++) {
        entry = order[k];
        if (entry.x != v) break;
        sum += GET(T_IN, list + (from + entry.y * list_step));
    }
    SET(T_OUT, sum, out + to);
#else
    if (k + 1 < n && order[k + 1].x == v) return;
    SET(T_OUT, GET(T_IN, list + (from + entry.y * list_step)), out + to);
#endif
}
