// SPDX-License-Identifier: Apache-2.0
//
// flash_attention.cl on matrix units (common/matrix.cl): the same walks, with both products of a tile by fragments. What is multiplied is
// rounded to MATRIX_TYPE: queries, keys, values, dy, and what is made of scores; sums, maxima and exponentials are floats.
//
// A group owns BQ rows of one head's queries (of its keys in attend_matrix_keys), and walks over the rows that meet them, BK at a time. Its
// sub-groups stand SUB_ROWS below and SUB_COLUMNS beside each other, each with FM fragments of rows. Tiles lie in local memory as planes of
// MATRIX_WIDTH words of all rows, beyond T and E zeros. Two forms: `rows`, terms along the head, and `columns`, a row for each element of
// the head and terms along the walk. Group g has head g / tiles of all, and tile g % tiles, tiles = ceil(T / BQ), counted from the last
// where queries are owned.
//
// Entries
//   attend_matrix          y, in one walk over keys and values
//   attend_matrix_queries  dq, in two walks over keys and values, as what is made of scores is rounded: the first leaves of each row the
//                          logarithm of its sum, as scores are, in stats, and N*H*T further on delta, the mean of dy v^T
//   attend_matrix_keys     dk and dv, with stats, in a walk over queries and dy
//
// Macros
//   T_X, T_DY, T_Y  how x, dy and the result are stored: float, f16 or bf16; default float. E is a multiple of 8
//   MATRIX_TYPE     tf32, f16 or bf16; default tf32
//   EP              head size, rounded up: 32, 64 or 128; default 64
//   BQ, BK          rows of a tile, multiples of 32, BQ of BK, too; default 64, 32
//   ITEMS           of a group; default 128. EP*BK terms are 1, 2 or 4 chunks of four words for each item
//   MASKED, SHARED  as there; default 0
// Local memory: words of BQ*EP + 2*BK*EP + BQ*BK terms, and SUB_COLUMNS*BQ floats; in the gradients of 2*BQ*EP + 3*BK*EP + BQ*BK terms
// and as many floats, or of 2*BQ*EP + 2*BK*EP + 2*BQ*BK terms
//
// Source: Dao et al. 2022, "FlashAttention", arXiv:2205.14135, algorithms 1 and 4.

#define T_X float
#define T_DY float
#define T_Y float
#define MATRIX_TYPE tf32
#define MATRIX_WIDTH 16
#define EP 64
#define BQ 64
#define BK 32
#define ITEMS 128
#define MASKED 0
#define SHARED 0

#define INVERSE(l) ((l) > 0.0f ? 1.0f / (l) : 0.0f) // of a query that sees nothing 0

#define UNROLLED _Pragma("unroll")
#define MEET barrier(CLK_LOCAL_MEM_FENCE)
#define GROUP MATRIX_ATTRIBUTES __attribute__((reqd_work_group_size(ITEMS, 1, 1)))

#define SUBS (ITEMS / MATRIX_LANES)
#define SUB_ROWS (SUBS < BQ / MATRIX_M ? SUBS : BQ / MATRIX_M)
#define SUB_COLUMNS (SUBS / SUB_ROWS)
#define FM (BQ / SUB_ROWS / MATRIX_M)
#define FS (BK / SUB_COLUMNS / MATRIX_N) // fragments of scores beside each other
#define FR (EP / SUB_COLUMNS / MATRIX_N) // of results

#define CT (4 * MATRIX_TERMS)            // terms of a chunk
#define WT (MATRIX_WIDTH * MATRIX_TERMS) // of a plane
#define TILE(rows, terms) ((rows) * (terms) / MATRIX_TERMS)
#define CHUNKS(rows) ((rows)*EP / CT / ITEMS) // of an item
#define WIDE (CHUNKS(BK) < 4 ? 2 : 4)
#define PT (CHUNKS(BK) > 1 ? CT : CT / 2)
#define RAW(type) ((int)sizeof(type) * CT / 4) // registers of a chunk on the way

// Chunk j of an item, in a tile of rows: its row, and which of the row's chunks it is.
#define CHUNK_ROW(n_rows, j) ((id + (j)*ITEMS) / MATRIX_CHUNKS % (n_rows))
#define CHUNK(n_rows, j) ((id + (j)*ITEMS) / MATRIX_CHUNKS / (n_rows)*MATRIX_CHUNKS + id % MATRIX_CHUNKS)
#define PUT(tile, n_rows, row, chunk, x)                                                                     \
    MATRIX_PUT((tile) + (chunk) / MATRIX_CHUNKS * ((n_rows)*MATRIX_WIDTH), row, (chunk) % MATRIX_CHUNKS, x)
#define FETCH_CHUNK(type, r, from, stride, t, e, bytes)                                                      \
    MATRIX_FETCH(bytes, r, (from) + (t) * (stride) + (e), (t) < T && (e) < E)
// Of what lies in r, n words, of elements that are `step` apart.
#define WORDS(type, word, r, first, step, n)                                                                 \
    UNROLLED for (int e = 0; e < (n); e++) {                                                                 \
        MATRIX_PACKED(type, word[e], r, e *MATRIX_TERMS *(step) + (first),                                   \
                      (e * MATRIX_TERMS + MATRIX_TERMS - 1) * (step) + (first))                              \
    }

// Rows first .. of a matrix [T][E], `stride` apart: n_rows of them as rows, on the way in r; into the tile.
#define FETCH_ROWS(type, r, n_rows, j, from, stride, first)                                                  \
    FETCH_CHUNK(type, r, from, stride, (first) + CHUNK_ROW(n_rows, j), CHUNK(n_rows, j) * CT, 4 * RAW(type))
#define KEEP_ROWS(type, r, n_rows, j, tile)                                                                  \
    {                                                                                                        \
        uint word[4];                                                                                        \
        WORDS(type, word, r, 0, 1, 4)                                                                        \
        PUT(tile, n_rows, CHUNK_ROW(n_rows, j), CHUNK(n_rows, j),                                            \
            (uint4)(word[0], word[1], word[2], word[3]))                                                     \
    }
#define EACH_CHUNK UNROLLED for (int j = 0; j < CHUNKS(BK); j++)
#define FETCH_ALL(type, r, from, stride, first)                                                              \
    EACH_CHUNK {                                                                                             \
        FETCH_ROWS(type, (r) + j * RAW(type), BK, j, from, stride, first)                                    \
    }
#define KEEP_ALL(type, r, tile)                                                                              \
    EACH_CHUNK {                                                                                             \
        KEEP_ROWS(type, (r) + j * RAW(type), BK, j, tile)                                                    \
    }
// The group's own.
#define BRING(type, tile, from, stride)                                                                      \
    _Pragma("nounroll") for (int j = 0; j < CHUNKS(BQ); j++) {                                               \
        uint own_[RAW(type)];                                                                                \
        FETCH_ROWS(type, own_, BQ, j, from, stride, first)                                                   \
        KEEP_ROWS(type, own_, BQ, j, tile)                                                                   \
    }

// The same as columns: of PT rows, half a chunk where there is one for each item, an item has WIDE neighbouring elements.
#define BLOCK_E(b) ((id + (b)*ITEMS) % (EP / WIDE) * WIDE)
#define BLOCK_T(b) ((id + (b)*ITEMS) / (EP / WIDE) * PT)
#define EACH_BLOCK UNROLLED for (int b = 0; b < CHUNKS(BK) * CT / PT / WIDE; b++)
#define FETCH_COLUMNS(type, r, from, stride, first)                                                          \
    EACH_BLOCK {                                                                                             \
        UNROLLED for (int k = 0; k < PT; k++) {                                                              \
            FETCH_CHUNK(type, (r) + (b * PT + k) * (WIDE * (int)sizeof(type) / 4), from, stride,             \
                        (first) + BLOCK_T(b) + k, BLOCK_E(b), WIDE * (int)sizeof(type))                      \
        }                                                                                                    \
    }
#define KEEP_COLUMNS(type, r, tile)                                                                          \
    EACH_BLOCK {                                                                                             \
        UNROLLED for (int i = 0; i < WIDE; i++) {                                                            \
            uint word[4];                                                                                    \
            WORDS(type, word, (r) + b * PT * WIDE * (int)sizeof(type) / 4, i, WIDE, PT / MATRIX_TERMS)       \
            if (PT == CT)                                                                                    \
                PUT(tile, EP, BLOCK_E(b) + i, BLOCK_T(b) / CT, (uint4)(word[0], word[1], word[2], word[3]))  \
            else                                                                                             \
                MATRIX_PUT_HALF((tile) + BLOCK_T(b) / WT * (EP * MATRIX_WIDTH), BLOCK_E(b) + i,              \
                                BLOCK_T(b) / PT % (2 * MATRIX_CHUNKS), (uint2)(word[0], word[1]))            \
        }                                                                                                    \
    }

// c[i*n + j] += the sub-group's rows of a [BQ][terms] times its n fragments of columns of b [terms][columns]
#define PRODUCT(c, n, a, b, columns, terms)                                                                  \
    {                                                                                                        \
        MATRIX_FROM(pa, (a) + sub_m * MATRIX_WIDTH)                                                          \
        MATRIX_FROM(pb, (b) + sub_n * (n) * (MATRIX_N * MATRIX_WIDTH))                                       \
        MATRIX_STEPS for (int s_ = 0; s_ < (terms) / MATRIX_TERMS / 8; s_++) {                               \
            const int plane_ = s_ / (MATRIX_WIDTH / 8), step_ = s_ % (MATRIX_WIDTH / 8);                     \
            uint va[FM][MATRIX_A_WORDS], vb[MATRIX_B_WORDS];                                                 \
            MATRIX_UNROLLED for (int i = 0; i < FM; i++) {                                                   \
                MATRIX_LOAD_A(va[i], pa, plane_ * BQ + i * MATRIX_M, step_);                                 \
            }                                                                                                \
            MATRIX_UNROLLED for (int j = 0; j < (n); j++) {                                                  \
                MATRIX_LOAD_B(vb, pb, plane_ * (columns) + j * MATRIX_N, step_);                             \
                MATRIX_UNROLLED for (int i = 0; i < FM; i++) {                                               \
                    MATRIX_MULTIPLY((c)[i * (n) + j], va[i], vb);                                            \
                }                                                                                            \
            }                                                                                                \
        }                                                                                                    \
    }
#define ZEROS(c, n)                                                                                          \
    UNROLLED for (int i = 0; i < FM * (n); i++) UNROLLED for (int e = 0; e < MATRIX_SUMS; e++)(c)[i][e] =    \
        0.0f;

// An item's rows, its scores, its results. Row r is `row` of the tile; c[f][e] is of that row, and of `column`.
#define EACH_ROW UNROLLED for (int r = 0; r < FM * MATRIX_ROWS; r++)
#define ROW(r) (sub_m + (r) / MATRIX_ROWS * MATRIX_M + MATRIX_ROW(lane, MATRIX_IN_ROW((r) % MATRIX_ROWS)))
#define EACH(n) UNROLLED for (int f = 0; f < FM * (n); f++) UNROLLED for (int e = 0; e < MATRIX_SUMS; e++)
#define ROW_OF(n, f, e) ((f) / (n)*MATRIX_ROWS + MATRIX_ITS_ROW(e))
#define EACH_OF(r, n) EACH(n) if (ROW_OF(n, f, e) == (r))
#define COLUMN(n, f, e) ((sub_n * (n) + (f) % (n)) * MATRIX_N + MATRIX_COLUMN(lane, e))
// Scores as a tile of A.
#define KEEP_SCORES(s, tile)                                                                                 \
    UNROLLED for (int f = 0; f < FM * FS; f++) UNROLLED for (int e = 0; e < MATRIX_SUMS; e += MATRIX_PAIR)   \
        MATRIX_SET((tile) + COLUMN(FS, f, e) / WT * (BQ * MATRIX_WIDTH), ROW(ROW_OF(FS, f, e)),              \
                   COLUMN(FS, f, e) % WT, (s)[f], e)

// Results, each row r times `factor`, into such a matrix.
#define LEAVE(sums, factor, to, stride)                                                                      \
    EACH(FR) {                                                                                               \
        const int r = ROW_OF(FR, f, e), t = first + ROW(r), column = COLUMN(FR, f, e);                       \
        if (t < T && column < E) STORE(T_Y, sums[f][e] * (factor), (to) + t * (stride) + column);            \
    }

// v[r] of all items of a row, together by op: first within a sub-group, then, behind a barrier, `value` with those of all beside it.
#define SHARE(v, op)                                                                                         \
    EACH_ROW {                                                                                               \
        MATRIX_OVER_ROW((v)[r], op)                                                                          \
        SHARE_BESIDE((v)[r])                                                                                 \
    }
#if SUB_COLUMNS > 1
#define RED __local float red[SUB_COLUMNS * BQ];
#define SHARE_BESIDE(v)                                                                                      \
    if (lane % MATRIX_SHARERS == 0) red[sub_n * BQ + ROW(r)] = v;
#define TOGETHER(value, v, op)                                                                               \
    UNROLLED for (int w_ = 0; w_ < SUB_COLUMNS; w_++) value = op(value, red[w_ * BQ + ROW(r)]);
#else
#define RED
#define SHARE_BESIDE(v)
#define TOGETHER(value, v, op) value = op(value, (v)[r]);
#endif
#define PLUS(a, b) ((a) + (b))
// The score of query t and key u from a product; its power, where a larger one is taken off; what a sum of these is as a score. Without a
// mask scores are logarithms to the base of 2.
#if MASKED
#define SCORED(v, t, u) ((v)*scale MASK_ADDED(t, min(u, T - 1)))
#define EXP(x) MATRIX_EXP2((x)*M_LOG2E_F)
#define LOG(x) log(x)
#else
#define SCORED(v, t, u) ((v) * (scale * M_LOG2E_F))
#define EXP(x) MATRIX_EXP2(x)
#define LOG(x) log2(x)
#endif

// Does query t see key u? A query beyond the last sees something: its sums, which nobody wants, are numbers.
#define SEES(t, u) ((u) < T && (!causal || (u) <= (t)))
// Products become scores, or -INFINITY where nothing is seen, which is asked where not all queries see all keys; most[r] is the
// largest.
#define HIDE                                                                                                 \
    EACH_ROW most[r] = LEAST_SCORE;                                                                          \
    EACH(FS)                                                                                                 \
    s[f][e] = SCORED(s[f][e], first + ROW(ROW_OF(FS, f, e)), u + COLUMN(FS, f, e));                          \
    if (!EVERY_KEY)                                                                                          \
        EACH(FS) {                                                                                           \
            const int t_ = first + ROW(ROW_OF(FS, f, e)), u_ = u + COLUMN(FS, f, e);                         \
            if (!SEES(t_, u_)) s[f][e] = -INFINITY;                                                          \
        }                                                                                                    \
    EACH(FS) most[ROW_OF(FS, f, e)] = fmax(most[ROW_OF(FS, f, e)], s[f][e]);
#define EVERY_KEY (u + BK <= T && (!causal || u + BK - 1 <= first))

// A group's head, of `heads`; where its keys lie, those of values being KEY_HEADS*E behind.
#define HEAD(heads)                                                                                          \
    const int id = (int)get_local_id(0), lane = id % MATRIX_LANES, sub = id / MATRIX_LANES;                  \
    const int sub_m = sub % SUB_ROWS * (FM * MATRIX_M), sub_n = sub / SUB_ROWS;                              \
    const int D = H * E, W = D + 2 * KEY_HEADS * E, tiles = (T + BQ - 1) / BQ;                                       \
    const int z = (int)get_group_id(0) / tiles, n_ = z / (heads), head = z % (heads);
#define HEAD_OF_QUERIES                                                                                      \
    HEAD(H)                                                                                                  \
    const int h_ = head, k_ = D + KEY_HEAD(h_) * E;                                                          \
    MASK_BEGIN
#define TILE_OF(name, rows, terms) __local uint name[TILE(rows, terms)] __attribute__((aligned(128)));

__kernel GROUP void KERNEL(attend_matrix)(__global T_Y *restrict y, __global const T_X *restrict x, int T,
                                          int H, int G, int E, int causal, float scale MASK_PARAMS) {
    TILE_OF(own, BQ, EP)
    TILE_OF(keys, BK, EP)
    TILE_OF(values, EP, BK)
    TILE_OF(p, BQ, BK)
    RED MATRIX_SCRATCH(ITEMS) HEAD_OF_QUERIES const int first = (tiles - 1 - (int)get_group_id(0) % tiles) * BQ,
                                             end = causal ? min(T, first + BQ) : T;
    float sums[FM * FR][MATRIX_SUMS], m[FM * MATRIX_ROWS], l[FM * MATRIX_ROWS];
    uint raw[CHUNKS(BK) * RAW(T_X)];
    x += n_ * T * W;
    BRING(T_X, own, x + h_ * E, W)
    x += k_;
    FETCH_ALL(T_X, raw, x, W, 0)
    KEEP_ALL(T_X, raw, keys)
    ZEROS(sums, FR)
    EACH_ROW m[r] = -INFINITY, l[r] = 0.0f;
    MEET;
    for (int u = 0; u < end; u += BK) {
        float s[FM * FS][MATRIX_SUMS], most[FM * MATRIX_ROWS];
        FETCH_COLUMNS(T_X, raw, x + KEY_HEADS * E, W, u)
        ZEROS(s, FS)
        PRODUCT(s, FS, own, keys, BK, EP)
        HIDE SHARE(most, fmax) MEET;
        KEEP_COLUMNS(T_X, raw, values)
        FETCH_ALL(T_X, raw, x, W, u + BK)
        EACH_ROW {
            float largest = m[r];
            TOGETHER(largest, most, fmax)
            const float less = EXP(m[r] - largest);
            m[r] = largest;
            l[r] *= less;
            EACH_OF(r, FS) {
                s[f][e] = EXP(s[f][e] - largest);
                l[r] += s[f][e];
            }
            EACH_OF(r, FR) sums[f][e] *= less;
        }
        KEEP_SCORES(s, p)
        KEEP_ALL(T_X, raw, keys)
        MEET;
        PRODUCT(sums, FR, p, values, EP, BK)
    }
    SHARE(l, PLUS)
    MEET;
    EACH_ROW {
        float all = 0.0f;
        TOGETHER(all, l, PLUS)
        l[r] = INVERSE(all);
    }
    LEAVE(sums, l[r], y + n_ * T * D + h_ * E, D)
}

__kernel GROUP void KERNEL(attend_matrix_queries)(__global T_Y *restrict dx, __global const T_DY *restrict dy,
                                                  __global const T_X *restrict x,
                                                  __global float *restrict stats, int N, int T, int H, int G, int E,
                                                  int causal, float scale MASK_PARAMS) {
    TILE_OF(own, BQ, EP)
    TILE_OF(own_dy, BQ, EP)
    TILE_OF(keys, BK, EP)
    TILE_OF(values, BK, EP)
    TILE_OF(columns, EP, BK)
    TILE_OF(p, BQ, BK)
    RED MATRIX_SCRATCH(ITEMS) HEAD_OF_QUERIES const int first = (tiles - 1 - (int)get_group_id(0) % tiles) * BQ,
                                             end = causal ? min(T, first + BQ) : T;
    float sums[FM * FR][MATRIX_SUMS], s[FM * FS][MATRIX_SUMS], d[FM * FS][MATRIX_SUMS];
    float m[FM * MATRIX_ROWS], l[FM * MATRIX_ROWS], delta[FM * MATRIX_ROWS];
    uint raw[CHUNKS(BK) * RAW(T_X)], raw_values[CHUNKS(BK) * RAW(T_X)];
    x += n_ * T * W;
    dy += n_ * T * D + h_ * E;
    BRING(T_X, own, x + h_ * E, W)
    BRING(T_DY, own_dy, dy, D)
    x += k_;
    FETCH_ALL(T_X, raw, x, W, 0)
    FETCH_ALL(T_X, raw_values, x + KEY_HEADS * E, W, 0)
    KEEP_ALL(T_X, raw, keys)
    KEEP_ALL(T_X, raw_values, values)
    EACH_ROW m[r] = -INFINITY, l[r] = delta[r] = 0.0f;
    MEET;
    for (int u = 0; u < end; u += BK) {
        float most[FM * MATRIX_ROWS];
        const int next = u + BK < end ? u + BK : 0; // at last what the second walk begins with
        FETCH_ALL(T_X, raw, x, W, next)
        FETCH_ALL(T_X, raw_values, x + KEY_HEADS * E, W, next)
        ZEROS(s, FS)
        ZEROS(d, FS)
        PRODUCT(s, FS, own, keys, BK, EP)
        PRODUCT(d, FS, own_dy, values, BK, EP)
        HIDE SHARE(most, fmax) MEET;
        KEEP_ALL(T_X, raw, keys)
        KEEP_ALL(T_X, raw_values, values)
        EACH_ROW {
            float largest = m[r];
            TOGETHER(largest, most, fmax)
            const float less = EXP(m[r] - largest);
            m[r] = largest;
            l[r] *= less;
            delta[r] *= less;
        }
        EACH(FS) {
            const int r = ROW_OF(FS, f, e);
            s[f][e] = EXP(s[f][e] - m[r]);
            l[r] += s[f][e];
            delta[r] += s[f][e] * d[f][e];
        }
        MEET;
    }
    SHARE(l, PLUS)
    MEET;
    EACH_ROW {
        float all = 0.0f;
        TOGETHER(all, l, PLUS)
        l[r] = all;
    }
    MEET;
    SHARE(delta, PLUS)
    MEET;
    EACH_ROW {
        const int t = first + ROW(r);
        float all = 0.0f;
        TOGETHER(all, delta, PLUS)
        delta[r] = all * INVERSE(l[r]);
        m[r] = MASKED && l[r] == 0.0f ? INFINITY : m[r] + LOG(l[r]);
        if (lane % MATRIX_SHARERS + sub_n == 0 && t < T)
            stats[z * T + t] = m[r], stats[(N * H + z) * T + t] = delta[r];
    }
    ZEROS(sums, FR)
    for (int u = 0; u < end; u += BK) {
        FETCH_COLUMNS(T_X, raw, x, W, u)
        ZEROS(s, FS)
        ZEROS(d, FS)
        PRODUCT(s, FS, own, keys, BK, EP)
        PRODUCT(d, FS, own_dy, values, BK, EP)
        EACH(FS) {
            const int r = ROW_OF(FS, f, e);
            const float weight = EXP(SCORED(s[f][e], first + ROW(r), u + COLUMN(FS, f, e)) - m[r]);
            s[f][e] = weight * (d[f][e] - delta[r]);
        }
        if (!EVERY_KEY)
            EACH(FS) {
                const int t_ = first + ROW(ROW_OF(FS, f, e)), u_ = u + COLUMN(FS, f, e);
                if (!SEES(t_, u_)) s[f][e] = 0.0f;
            }
        MEET;
        KEEP_COLUMNS(T_X, raw, columns)
        KEEP_SCORES(s, p)
        FETCH_ALL(T_X, raw, x, W, u + BK)
        FETCH_ALL(T_X, raw_values, x + KEY_HEADS * E, W, u + BK)
        MEET;
        PRODUCT(sums, FR, p, columns, EP, BK)
        KEEP_ALL(T_X, raw, keys)
        KEEP_ALL(T_X, raw_values, values)
        MEET;
    }
    LEAVE(sums, scale, dx + n_ * T * W + h_ * E, W)
}

__kernel GROUP void KERNEL(attend_matrix_keys)(__global T_Y *restrict dx, __global const T_DY *restrict dy,
                                               __global const T_X *restrict x,
                                               __global const float *restrict stats, int N, int T, int H,
                                               int G, int E, int causal, float scale MASK_PARAMS) {
    TILE_OF(own, BQ, EP)
    TILE_OF(own_values, BQ, EP)
    TILE_OF(queries, BK, EP) // or, as the next one, the same as columns
    TILE_OF(moving_dy, BK, EP)
    TILE_OF(p, BQ, BK)
    TILE_OF(ds, BQ, BK)
    MATRIX_SCRATCH(ITEMS)
    HEAD(KEY_HEADS) const int first = (int)get_group_id(0) % tiles * BQ;
    float keys[FM * FR][MATRIX_SUMS], values[FM * FR][MATRIX_SUMS];
    uint raw[CHUNKS(BK) * RAW(T_X)], raw_dy[CHUNKS(BK) * RAW(T_DY)];
    x += n_ * T * W;
    dy += n_ * T * D;
    stats += n_ * H * T;
    BRING(T_X, own, x + D + head * E, W)
    BRING(T_X, own_values, x + D + (KEY_HEADS + head) * E, W)
    ZEROS(keys, FR)
    ZEROS(values, FR)
    EACH_SHARER { // of the queries that see them
        MASK_BEGIN
        __global const T_X *q = x + h_ * E;
        __global const T_DY *g = dy + h_ * E;
        int t = causal ? first : 0;
        FETCH_ALL(T_X, raw, q, W, t)
        FETCH_ALL(T_DY, raw_dy, g, D, t)
        for (; t < T; t += BK) {
            float s[FM * FS][MATRIX_SUMS], d[FM * FS][MATRIX_SUMS];
            KEEP_ALL(T_X, raw, queries)
            KEEP_ALL(T_DY, raw_dy, moving_dy)
            MEET;
            FETCH_COLUMNS(T_X, raw, q, W, t)
            FETCH_COLUMNS(T_DY, raw_dy, g, D, t)
            ZEROS(s, FS)
            ZEROS(d, FS)
            PRODUCT(s, FS, own, queries, BK, EP)
            PRODUCT(d, FS, own_values, moving_dy, BK, EP)
            EACH(FS) {
                const int known = min(t + COLUMN(FS, f, e), T - 1);
                s[f][e] = EXP(SCORED(s[f][e], known, first + ROW(ROW_OF(FS, f, e))) - stats[h_ * T + known]);
                d[f][e] = s[f][e] * (d[f][e] - stats[(N * H + h_) * T + known]);
            }
            if (t + BK > T || (causal && first + BQ - 1 > t))
                EACH(FS) {
                    const int key = first + ROW(ROW_OF(FS, f, e)), query = t + COLUMN(FS, f, e);
                    if (query >= T || !SEES(query, key)) s[f][e] = d[f][e] = 0.0f;
                }
            MEET;
            KEEP_COLUMNS(T_X, raw, queries)
            KEEP_COLUMNS(T_DY, raw_dy, moving_dy)
            KEEP_SCORES(s, p)
            KEEP_SCORES(d, ds)
            FETCH_ALL(T_X, raw, q, W, t + BK)
            FETCH_ALL(T_DY, raw_dy, g, D, t + BK)
            MEET;
            PRODUCT(values, FR, p, moving_dy, EP, BK)
            PRODUCT(keys, FR, ds, queries, EP, BK)
            MEET;
        }
    }
    dx += n_ * T * W + D + head * E;
    LEAVE(keys, scale, dx, W)
    LEAVE(values, 1.0f, dx + KEY_HEADS * E, W)
}
