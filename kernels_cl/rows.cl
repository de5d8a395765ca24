// SPDX-License-Identifier: Apache-2.0
// Programs over rows: load the elements of a row, reduce them to a state, finish, store a result of the row, or elements, or both.
// Softmax, losses, norms, sums and argmax are such programs (runtime/ops/rows.h); what is theirs comes as text in macros.
//
// Element j of row r is at r / inner * major + r % inner * minor + j / length * far + j % length * near, j < count.
// A row is cut into parts of `chunk` elements, `chunks` of them. A group does GROUP / lanes rows by `lanes` items each, a power of two,
// which join what they have in local memory (common/tree.cl), and that `turns` times. GROUP 1 is an item by itself: no barriers, no
// local memory, and lanes and turns are 1.
//
//   row        PHASE WHOLE   rows of one part, from the load to the store
//              PHASE PART    the state of each part, to parts[plane][part][row]
//              PHASE GIVEN   the store alone; ROW_PLANES planes of `parts` have a state for each row
//   row_join   n such states of each row to one for each `per` of them. LAST 1: there is one, the row's result is made of it
//   row_vector, row_columns   the same as `row` for devices with wide vectors, of a program whose text allows it. PART or WHOLE.
//              Where a row's elements are neighbours, an item does `rows` rows, sixteen elements at a time; where rows are, a result of
//              theirs is all that is stored, and an item does sixteen rows, `rows` of such sixteens lying side by side
//
// The text of a program: parameters, and statements that end in `;`. In scope are r, base (where the row begins), count and n_rows;
// the state s0, s1, s2; within EACH(statement) an element's j, its place `at`, and values a[k], b[k].
//
// ROW_PARAMS                tensors and scalars (default: of a sum)
// ROW_BEGIN                 what all elements of a row need (default: nothing)
// ROW_ONCE                  c[k], d[k], which follow from j alone and serve all rows of an item (default: nothing); ROW_AGAIN 1: there are
//                           some, and turns may be more than 1 (default 0)
// ROW_LOAD                  a[k], b[k] of an element. ROW_X(at) is element `at` of x
//                           A text that is for vectors, too, has REAL for float, and GET(T, p) and PUT(T, v, p) for LOAD and STORE, where a vector
//                           may stand; and no `if` that asks one
// ROW_GATHER                the state of all elements that an item has, from the start
// ROW_JOIN                  the state t0, t1, t2 joined to s0, s1, s2, in any order
// ROW_START0, ROW_START1    the state of nothing; s2 starts at 0 (default 0)
// ROW_T1                    the type of s1: float (default) or int
// ROW_PLANES                how many of s0, s1, s2 there are, 0 to 3 (default 1)
// ROW_FINISH                what store and result need (default: nothing)
// ROW_RESULT                once for each row (default: nothing)
// ROW_STORE                 once for each element; ROW_STORES 1: there is one (default 0). ROW_Y(v, at) stores v to y
// ROW_AFTER                 at the end, with what ROW_STORE added to e[k], f[k], in groups; `partial` says whose sums
//                           over rows these are (default: nothing)
// T_X, T_Y, T_T, T_DX       how tensors are stored: float (default), f16 or bf16
// PHASE                     default WHOLE, 0; PART is 1, GIVEN 2
// GROUP                     items of a group; 1, the default: each is one by itself. A power of two
// PER                       elements that an item has in registers, `lanes` apart (default 16). In a group that is all of a part,
//                           chunk = lanes * PER
// COLUMNS                   1: neighbouring items take neighbouring rows; 0: neighbouring elements of a row (default)
// FLAT                      1: length is at least count (default 0)
// RUN                       how many elements of x a group brings to local memory, as one run from its first row to its last, for ROW_X
//                           and ROW_Y: rows of a length that is no multiple of a sector begin anywhere. They lie one after
//                           the other, in one part. 0: each row by itself; default
// LAST                      default 1
#ifndef ROW_PARAMS
#define ROW_PARAMS global T_Y *restrict y, global const T_X *restrict x
#define ROW_LOAD a[k] = ROW_X(at);
#define ROW_GATHER EACH(s0 += a[k];)
#define ROW_JOIN s0 += t0;
#define ROW_RESULT PUT(T_Y, s0, y + r);
#endif
#define ROW_BEGIN
#ifndef ROW_GATHER
#define ROW_GATHER
#endif
#ifndef ROW_JOIN
#define ROW_JOIN
#endif
#define ROW_START0 0.0f
#define ROW_START1 0.0f
#define ROW_T1 float
#define ROW_PLANES 1
#define ROW_FINISH
#ifndef ROW_RESULT
#define ROW_RESULT
#endif
#define ROW_STORE
#define ROW_STORES 0
#define ROW_ONCE
#define ROW_AGAIN 0
#define ROW_AFTER
#define T_X float
#define T_Y float
#define T_T float
#define T_DX float
#define PHASE 0
#define GROUP 1
#define PER 16
#define COLUMNS 0
#define FLAT 0
#define RUN 0
#define LAST 1

#define WHOLE 0
#define PART 1
#define GIVEN 2
#define ROW_WALK int count, int inner, int major, int minor, int length, int far, int near
#if FLAT
#define ROW_PLACE(j) (base + (j)*near)
#else
#define ROW_PLACE(j) (base + (j) / length * far + (j) % length * near)
#endif

#if RUN
#define ROW_X(at) run[(at)-run_at]
#define ROW_Y(v, at)                                                                                         \
    if (wanted < n_rows) run[(at)-run_at] = (v)
#else
#define ROW_X(at) GET(T_X, x + (at))
#define ROW_Y(v, at) PUT(T_Y, v, y + (at))
#endif

// What an element is: one here, sixteen in row_vector and row_columns, which define V anew.
#define V
#define REAL PASTE(float, V)
#define GET(T, p) PASTE(LOAD, V)(T, p)
#define PUT(T, v, p) PASTE(STORE, V)(T, v, p)

// Item k of PER of an item's elements from `first` on.
#define EACH(body)                                                                                           \
    _Pragma("unroll") for (int k = 0; k < PER; k++) {                                                        \
        const int j = first + lane + k * lanes;                                                              \
        if (j < end) {                                                                                       \
            const int at = ROW_PLACE(j);                                                                     \
            (void)at;                                                                                        \
            body                                                                                             \
        }                                                                                                    \
    }

// Which of its row's items this is, which of the group's rows that is, and the group's number.
#if GROUP > 1
#define ROW_SIZE __attribute__((reqd_work_group_size(GROUP, 1, 1)))
#define ROW_IDS                                                                                              \
    const int id = (int)get_local_id(0), unit = (int)get_group_id(0), side = GROUP / lanes;                  \
    const int lane = COLUMNS ? id / side : id % lanes, row = COLUMNS ? id % side : id / lanes;
#define ROW_STEP (COLUMNS ? side : 1)
#else
#define ROW_SIZE
#define ROW_IDS const int unit = (int)get_global_id(0), side = 1, lane = 0, row = 0;
#endif

// The state of a row, from those of its lanes. Items' places are apart, so that the first lanes of rows lie in different banks.
#define ROW_APART(i) ((i) + (i) / 32)
#if ROW_PLANES > 2
#define ROW_THIRD(statement) statement
#else
#define ROW_THIRD(statement)
#endif
#if ROW_PLANES > 1
#define ROW_SECOND(statement) statement
#else
#define ROW_SECOND(statement)
#endif
#if GROUP > 1 && ROW_PLANES > 0
#define ROW_LOCAL                                                                                            \
    local float tree0[ROW_APART(GROUP)];                                                                                \
    ROW_SECOND(local ROW_T1 tree1[ROW_APART(GROUP)];)                                                                   \
    ROW_THIRD(local float tree2[ROW_APART(GROUP)];)                                                                     \
    const int place = ROW_APART(id), first_lane = ROW_APART(id - lane * ROW_STEP);
#define ROW_PUT                                                                                              \
    tree0[place] = s0;                                                                                          \
    ROW_SECOND(tree1[place] = s1;)                                                                              \
    ROW_THIRD(tree2[place] = s2;)
#define ROW_TAKE                                                                                             \
    const int other = ROW_APART(id + apart * ROW_STEP);                                                                 \
    const float t0 = tree0[other];                                                                           \
    ROW_SECOND(const ROW_T1 t1 = tree1[other];)                                                              \
    ROW_THIRD(const float t2 = tree2[other];)                                                                \
    ROW_JOIN                                                                                                 \
    ROW_PUT
#define ROW_TREE                                                                                             \
    GROUP_TREE_OF(lane, lanes, ROW_STEP, ROW_PUT, ROW_TAKE)                                                  \
    s0 = tree0[first_lane];                                                                                  \
    ROW_SECOND(s1 = tree1[first_lane];)                                                                      \
    ROW_THIRD(s2 = tree2[first_lane];)
#else
#define ROW_LOCAL
#define ROW_TREE
#endif
// Results are stored by neighbouring items, one for each row of the group.
#if GROUP > 1 && ROW_PLANES > 0 && PHASE != GIVEN
#define ROW_STATE_OF(n)                                                                                      \
    const int its = ROW_APART(COLUMNS ? (n) : (n)*lanes);                                                           \
    const float s0 = tree0[its];                                                                             \
    ROW_SECOND(const ROW_T1 s1 = tree1[its];)                                                                \
    ROW_THIRD(const float s2 = tree2[its];)
#define ROW_RESULT_BY(condition, first_row)                                                                  \
    if ((condition) && id < side && (first_row) + id < n_rows) {         \
        const int r = (first_row) + id, base = r / inner * major + r % inner * minor;      \
        ROW_STATE_OF(id)                                                                   \
        ROW_FINISH                                                                                           \
        ROW_RESULT                                                                                           \
    }
#else
#define ROW_RESULT_BY(condition, first_row)                                                                  \
    if ((condition) && wanted < n_rows) {                                                                    \
        if (lane == 0) {                                                                                     \
            ROW_FINISH                                                                                       \
            ROW_RESULT                                                                                       \
        }                                                                                                    \
    }
#endif
#if GROUP > 1 && ROW_AGAIN
#define ROW_NEXT barrier(CLK_LOCAL_MEM_FENCE); // all have read the state of the row before
#else
#define ROW_NEXT
#endif
#if GROUP > 1
#define ROW_ONCE_AN_ITEM EACH(ROW_ONCE)
#define ROW_ONCE_A_BLOCK
#else
#define ROW_ONCE_AN_ITEM
#define ROW_ONCE_A_BLOCK EACH(ROW_ONCE)
#endif

// A state in planes of n floats each, number i of them.
void KERNEL(row_put)(global float *parts, int n, int i, float s0, ROW_T1 s1, float s2) {
    parts[i] = s0;
    if (ROW_PLANES > 1) ((global ROW_T1 *)parts)[n + i] = s1;
    if (ROW_PLANES > 2) parts[2 * n + i] = s2;
}
ROW_T1 KERNEL(row_get1)(global const float *parts, int n, int i) {
    return ROW_PLANES > 1 ? ((global const ROW_T1 *)parts)[n + i] : 0;
}
float KERNEL(row_get2)(global const float *parts, int n, int i) {
    return ROW_PLANES > 2 ? parts[2 * n + i] : 0.0f;
}

kernel ROW_SIZE void KERNEL(row)(ROW_PARAMS,
#if PHASE == GIVEN && ROW_PLANES > 0
                                 global const float *restrict parts,
#elif PHASE == PART
                                 global float *restrict parts,
#endif
                                 int n_rows, int lanes, int turns, int chunk, int chunks, ROW_WALK) {
    ROW_IDS
    const int blocks = (n_rows + side * turns - 1) / (side * turns);
    if (GROUP == 1 && unit >= blocks * chunks) return;
    const int part = COLUMNS ? unit / blocks : unit % chunks;
    const int block = COLUMNS ? unit % blocks : unit / chunks;
    const int begin = part * chunk, end = count - begin > chunk ? begin + chunk : count;
    int first = begin, base = 0;
    float a[PER], b[PER], c[PER], d[PER], e[PER], f[PER];
    for (int k = 0; k < PER; k++) b[k] = c[k] = d[k] = e[k] = f[k] = 0.0f;
    ROW_LOCAL
#if RUN
    local float run[RUN];
#endif
    ROW_ONCE_AN_ITEM
    for (int turn = 0; turn < (ROW_AGAIN ? turns : 1); turn++) {
        ROW_NEXT
        const int wanted = (block * turns + turn) * side + row;
        const int r = min(wanted, n_rows - 1); // items of a row too many come to the barriers, and store nothing
        base = r / inner * major + r % inner * minor;
#if RUN
        const int run_at = (block * turns + turn) * side * count, in_run = min(side, n_rows - (block * turns + turn) * side) * count;
        for (int i = id; i < in_run; i += GROUP) run[i] = LOAD(T_X, x + run_at + i);
        barrier(CLK_LOCAL_MEM_FENCE);
#endif
        float s0 = ROW_START0, s2 = 0.0f;
        ROW_T1 s1 = ROW_START1;
        (void)s1;
        (void)s2;
        ROW_BEGIN
#if PHASE == GIVEN
#if ROW_PLANES > 0
        s0 = parts[r];
        s1 = KERNEL(row_get1)(parts, n_rows, r);
        s2 = KERNEL(row_get2)(parts, n_rows, r);
#endif
        ROW_ONCE_A_BLOCK
        EACH(ROW_LOAD)
#elif GROUP > 1
        EACH(ROW_LOAD)
        ROW_GATHER
#else
        for (; first < end; first += PER) {
            const float t0 = s0;
            ROW_SECOND(const ROW_T1 t1 = s1;)
            ROW_THIRD(const float t2 = s2;)
            s0 = ROW_START0;
            s1 = ROW_START1;
            s2 = 0.0f;
            ROW_ONCE_A_BLOCK
            EACH(ROW_LOAD)
            ROW_GATHER
            ROW_JOIN
        }
#endif
#if PHASE != GIVEN
        ROW_TREE
#endif
#if PHASE == PART
        if (wanted < n_rows) {
            if (lane == 0) KERNEL(row_put)(parts, n_rows * chunks, part * n_rows + r, s0, s1, s2);
        }
#else
        ROW_RESULT_BY(part == 0, (block * turns + turn) * side)
        if (!RUN && wanted >= n_rows) continue;
        ROW_FINISH
#if ROW_STORES && RUN
#if ROW_PLANES == 0
        barrier(CLK_LOCAL_MEM_FENCE); // items of a row too many have read the last row
#endif
        EACH(ROW_STORE)
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = id; i < in_run; i += GROUP) STORE(T_Y, run[i], y + run_at + i);
#elif ROW_STORES && (GROUP > 1 || PHASE == GIVEN)
        EACH(ROW_STORE)
#elif ROW_STORES
        for (first = begin; first < end; first += PER) {
            ROW_ONCE_A_BLOCK
            EACH(ROW_LOAD)
            EACH(ROW_STORE)
        }
#endif
#endif
    }
    const int partial = unit * side + row;
    (void)partial;
    ROW_AFTER
}

kernel ROW_SIZE void KERNEL(row_join)(ROW_PARAMS,
#if !LAST
                                      global float *restrict joined,
#endif
                                      global const float *restrict parts, int n_rows, int lanes, int n, int per,
                                      int n_out, ROW_WALK) {
    ROW_IDS
    if (unit >= n_rows * n_out) return;
    const int r = unit % n_rows, part = unit / n_rows, base = r / inner * major + r % inner * minor;
    const int begin = part * per, end = n - begin > per ? begin + per : n;
    float s0 = ROW_START0, s2 = 0.0f;
    ROW_T1 s1 = ROW_START1;
    (void)s1;
    (void)s2;
    (void)base;
    (void)side;
    (void)row;
    ROW_LOCAL
    for (int i = begin + lane; i < end; i += lanes) {
        const float t0 = parts[i * n_rows + r];
        ROW_SECOND(const ROW_T1 t1 = KERNEL(row_get1)(parts, n_rows * n, i * n_rows + r);)
        ROW_THIRD(const float t2 = KERNEL(row_get2)(parts, n_rows * n, i * n_rows + r);)
        ROW_JOIN
    }
    ROW_TREE
    if (lane) return;
#if LAST
    ROW_FINISH
    ROW_RESULT
#else
    KERNEL(row_put)(joined, n_rows * n_out, unit, s0, s1, s2);
#endif
}

// ---- vectors ----------------------------------------------------------------------------------------------------------

// N elements, or vectors of them, from j = first on, `step` apart.
#undef EACH
#define EACH(body)                                                                                           \
    _Pragma("unroll") for (int k = 0; k < N; k++) {                                                          \
        const int j = first + k * step;                                                                      \
        const int at = base + j * near;                                                                      \
        (void)at;                                                                                            \
        body                                                                                                 \
    }
#define ROW_STATE REAL s0 = ROW_START0, s1 = ROW_START1, s2 = 0.0f;
#define ROW_OLD_STATE const REAL t0 = s0, t1 = s1, t2 = s2;
// What N more elements add to the state s0, s1, s2.
#define ROW_MORE                                                                                             \
    {                                                                                                        \
        REAL a[N], b[N], c[N], d[N];                                                                         \
        ROW_OLD_STATE                                                                                        \
        s0 = ROW_START0, s1 = ROW_START1, s2 = 0.0f;                                                         \
        EACH(ROW_ONCE)                                                                                       \
        EACH(ROW_LOAD)                                                                                       \
        ROW_GATHER                                                                                           \
        ROW_JOIN                                                                                             \
        (void)a, (void)b, (void)c, (void)d, (void)t1, (void)t2;                                                                                  \
    }
#define ROW_MORE_STORED                                                                                      \
    {                                                                                                        \
        REAL a[N], b[N], c[N], d[N], e[N], f[N];                                                             \
        EACH(ROW_ONCE)                                                                                       \
        EACH(ROW_LOAD)                                                                                       \
        EACH(ROW_STORE)                                                                                      \
        (void)a, (void)b, (void)c, (void)d, (void)e, (void)f;                                                \
    }
#define MANY 4
// The halves of the state wa, wb, wc, joined.
#define ROW_HALVES(to, w)                                                                                    \
    REAL to##a, to##b, to##c;                                                                                \
    {                                                                                                        \
        REAL s0 = w##a.lo, s1 = w##b.lo, s2 = w##c.lo;                                                       \
        const REAL t0 = w##a.hi, t1 = w##b.hi, t2 = w##c.hi;                                                 \
        ROW_JOIN                                                                                             \
        to##a = s0, to##b = s1, to##c = s2;                                                                  \
        (void)t1, (void)t2;                                                                                  \
    }

__kernel void KERNEL(row_vector)(ROW_PARAMS,
#if PHASE == PART
                                 global float *restrict parts,
#endif
                                 int n_rows, int rows, int chunk, int chunks, ROW_WALK) {
    const int unit = (int)get_global_id(0), part = unit % chunks;
    const int begin = part * chunk, end = count - begin > chunk ? begin + chunk : count;
    for (int r = unit / chunks * rows; r < min(unit / chunks * rows + rows, n_rows); r++) {
        const int base = r / inner * major + r % inner * minor, near = 1;
        ROW_BEGIN
        int first = begin, step = 16;
#undef V
#define V 16
        REAL wa = ROW_START0, wb = ROW_START1, wc = 0.0f;
        {
            ROW_STATE
#define N MANY
            for (; first + 16 * N <= end; first += 16 * N) ROW_MORE
#undef N
#define N 1
            for (; first + 16 <= end; first += 16) ROW_MORE
            wa = s0, wb = s1, wc = s2;
        }
#undef V
#define V 8
        ROW_HALVES(v, w)
#undef V
#define V 4
        ROW_HALVES(u, v)
#undef V
#define V 2
        ROW_HALVES(q, u)
#undef V
#define V
        ROW_HALVES(p, q)
        float s0 = pa, s1 = pb, s2 = pc;
        step = 1;
        for (; first < end; first++) ROW_MORE
#if PHASE == PART
        KERNEL(row_put)(parts, n_rows * chunks, part * n_rows + r, s0, s1, s2);
#else
        ROW_FINISH
        ROW_RESULT
#if ROW_STORES
        step = 16;
#undef V
#define V 16
#undef N
#define N 1
        for (first = begin; first + 16 <= end; first += 16) ROW_MORE_STORED
#undef V
#define V
        for (step = 1; first < end; first++) ROW_MORE_STORED
#endif
#endif
    }
}

#if PHASE == PART
#define ROW_COLUMNS_END                                                                                      \
    const int to = part * n_rows + r, plane = n_rows * chunks;                                               \
    PUT(float, s0, parts + to);                                                                              \
    if (ROW_PLANES > 1) PUT(float, s1, parts + plane + to);                                                  \
    if (ROW_PLANES > 2) PUT(float, s2, parts + 2 * plane + to);
#else
#define ROW_COLUMNS_END ROW_FINISH ROW_RESULT
#endif
#define ROW_COLUMN                                                                                           \
    const int base = r;                                                                                      \
    ROW_BEGIN                                                                                                \
    ROW_STATE                                                                                                \
    for (int first = begin; first < end; first++) ROW_MORE                                                   \
    ROW_COLUMNS_END
#undef N
#define N 1
__kernel void KERNEL(row_columns)(ROW_PARAMS,
#if PHASE == PART
                                  global float *restrict parts,
#endif
                                  int n_rows, int rows, int chunk, int chunks, ROW_WALK) {
    const int unit = (int)get_global_id(0), part = unit / rows, step = 1;
    const int begin = part * chunk, end = count - begin > chunk ? begin + chunk : count;
    int r = unit % rows * 16;
    if (part >= chunks) return;
    if (r + 16 <= n_rows) {
#undef V
#define V 16
        ROW_COLUMN
    } else {
#undef V
#define V
        for (; r < n_rows; r++) {
            ROW_COLUMN
        }
    }
}
#undef EACH
#undef V
#undef N
