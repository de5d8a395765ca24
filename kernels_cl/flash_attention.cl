// SPDX-License-Identifier: Apache-2.0
//
// Attention of H heads to themselves on devices with lanes, by tiles: no score leaves a group. What x, y, dy
// and dx hold, and what the gradients are, is told at the head of self_attention.cl.
//
// A group of WX x WY items owns BQ = 4*WY rows of one head's queries (of its keys in attend_flash_keys), and
// walks over the rows that meet them, BK = WX*KN at a time, as `moving`. Item (i % WX, i / WX) has rows 4*(i
// / WX) + r, r < 4: of scores [BQ][BK] the columns i % WX + WX*n, of results [BQ][EP] the columns 4*WX*c +
// 4*(i % WX) + 0..3. Tiles lie in local memory as rows of EP + 4 floats, zero beyond T and E. Group g has
// head g / tiles of all, and tile g % tiles, tiles = ceil(T / BQ), counted from the last where queries are
// owned: if causal, the longest walks come first. Of H heads of queries H/G share one of keys and values, whose
// gradients are sums over the walks of all of these.
//
// Entries
//   attend_flash          y. Of each row the largest score m, the sum l of exp(score - m) and the sum of
//                         exp(score - m) * v are kept as the walk goes, and scaled where m grows.
//   attend_flash_queries  dq, in one walk over the keys. With p = exp(score - m) and dp = dy v^T it keeps l
//                         and the sums of p*dp, p*k and p*dp*k: then delta = sum(p*dp) / l and dq = scale *
//                         (sum(p*dp*k) - delta * sum(p*k)) / l. For each row it leaves log(l) + m in stats,
//                         and delta N*H*T further on.
//   attend_flash_keys     dk and dv, with what attend_flash_queries left in stats
//
// Macros
//   T_X, T_DY, T_Y  how x, dy and the result (y or dx) are stored: float, f16 or bf16; default float
//   EP              head size, rounded up: a multiple of 4*WX; default 32
//   WX, WY          items of a group along columns and along rows, powers of two; default 8, 16
//   MASKED          1: what is added to scores, mask [m_first + n*m_n + h*m_h + t*m_t + u], are the last arguments; default 0. -INFINITY
//                   hides; a query that sees nothing has zeros
//   SHARED          1: several heads of queries share one of keys and values, G is below H; default 0
//   KN              columns of scores of an item, WX*KN is a multiple of 4; default 2
// Local memory, in floats: (BQ + BK)*(EP + 4) + BQ*(BK + 4) + WX*(BQ + 4); in the gradients
// (2*BQ + BK)*(EP + 4), and BQ*(BK + 4) or 2*WX*(BQ + 4), whichever is more.
//
// Source: Dao et al. 2022, "FlashAttention", arXiv:2205.14135, algorithms 1 and 4.

#define T_X float
#define T_DY float
#define T_Y float
#define EP 32
#define WX 8
#define WY 16
#define KN 2
#define MASKED 0
#define SHARED 0

#define INVERSE(l) select((float4)(0.0f), 1.0f / (l), (l) > 0.0f) // of a query that sees nothing 0

#define ITEMS (WX * WY)
#define BQ (4 * WY)
#define BK (WX * KN)
#define CN (EP / WX)       // columns of results of an item
#define PITCH (EP / 4 + 1) // of a row in local memory, in float4
#define P_PITCH (BK / 4 + 1)
#define UNROLLED _Pragma("unroll")
#define EACH_ROW UNROLLED for (int r = 0; r < 4; r++)
#define EACH_SCORE EACH_ROW UNROLLED for (int n = 0; n < KN; n++)
#define EACH_RESULT EACH_ROW UNROLLED for (int c = 0; c < CN; c++)
#define MEET barrier(CLK_LOCAL_MEM_FENCE)

// Rows first .. of a matrix [T][E], `stride` apart, as a tile of n_rows. Neighbouring items read neighbours.
#define FETCH(type, tile, n_rows, from, stride, first)                                                       \
    _Pragma("unroll 2") for (int i_ = id; i_ < (n_rows)*EP; i_ += ITEMS) {                                   \
        const int t_ = (first) + i_ / EP, e_ = i_ % EP;                                                      \
        const float v_ = LOAD(type, (from) + min(t_, T - 1) * (stride) + min(e_, E - 1));                    \
        ((__local float *)(tile))[i_ / EP * (4 * PITCH) + e_] = t_ < T && e_ < E ? v_ : 0.0f;                \
    }
// The group's own tile into such a matrix.
#define LEAVE(tile, to, stride)                                                                              \
    _Pragma("unroll 2") for (int i_ = id; i_ < BQ * EP; i_ += ITEMS) {                                       \
        const int t_ = first + i_ / EP, e_ = i_ % EP;                                                        \
        if (t_ < T && e_ < E)                                                                                \
            STORE(T_Y, ((__local const float *)(tile))[i_ / EP * (4 * PITCH) + e_],                          \
                  (to) + t_ * (stride) + e_);                                                                \
    }
// An item's results, each row's times `factor`, into the own tile.
#define GATHER(tile, sums, factor)                                                                           \
    EACH_ROW UNROLLED for (int c = 0; c < CN; c += 4)(tile)[(4 * y_ + r) * PITCH + c / 4 * WX + x_] =        \
        vload4(0, sums[r] + c) * (factor);
// An item's scores into p.
#define KEEP(scores)                                                                                         \
    EACH_SCORE((__local float *)p)[(4 * y_ + r) * (4 * P_PITCH) + x_ + n * WX] = scores[r][n];

// s[r][n] = sum_e a[row r][e] * b[row n][e]
void KERNEL(flash_scores)(float s[4][KN], __local const float4 *a, __local const float4 *b) {
    EACH_SCORE s[r][n] = 0.0f;
    _Pragma("nounroll") for (int e = 0; e < EP / 4; e++) {
        float4 va[4], vb[KN];
        EACH_ROW va[r] = a[r * PITCH + e];
        UNROLLED for (int n = 0; n < KN; n++) vb[n] = b[n * WX * PITCH + e];
        EACH_SCORE s[r][n] = fma(va[r].x, vb[n].x, s[r][n]);
        EACH_SCORE s[r][n] = fma(va[r].y, vb[n].y, s[r][n]);
        EACH_SCORE s[r][n] = fma(va[r].z, vb[n].z, s[r][n]);
        EACH_SCORE s[r][n] = fma(va[r].w, vb[n].w, s[r][n]);
    }
}

// sums[r][c] += sum_k p[row r][k] * b[row k][column c]
void KERNEL(flash_add)(float sums[4][CN], __local const float4 *p, __local const float4 *b) {
    _Pragma("nounroll") for (int k = 0; k < BK / 4; k++) {
        float vp[4][4];
        EACH_ROW vstore4(p[r * P_PITCH + k], 0, vp[r]);
        UNROLLED for (int l = 0; l < 4; l++, b += PITCH) {
            float vb[CN];
            UNROLLED for (int c = 0; c < CN / 4; c++) vstore4(b[c * WX], c, vb);
            EACH_RESULT sums[r][c] = fma(vp[r][l], vb[c], sums[r][c]);
        }
    }
}

#define SCORES(s, own) KERNEL(flash_scores)(s, (own) + 4 * y_ * PITCH, moving + x_ * PITCH)
#define ADD(sums) KERNEL(flash_add)(sums, p + 4 * y_ * P_PITCH, moving + x_)

// Does query t see key u? A query beyond the last sees something: its sums, which nobody wants, are numbers.
#define SEES(t, u) ((u) < T && (!causal || (u) <= (t)))
// For all items of a row: `value` and each item's v[r] together by op, in order. red [SUMS] is local.
#define SUMS (WX * (WY + 1))
#define SHARE(red, v) (red)[x_ * (WY + 1) + y_] = vload4(0, v);
#define TOGETHER(red, value, op)                                                                             \
    _Pragma("unroll 2") for (int w_ = 0; w_ < WX; w_++) value = op(value, (red)[w_ * (WY + 1) + y_]);
#define PLUS(a, b) ((a) + (b))
// Scores become scale * score, or -INFINITY where nothing is seen; most[r] is the largest.
#define HIDE                                                                                                 \
    EACH_ROW most[r] = LEAST_SCORE;                                                                          \
    EACH_SCORE {                                                                                             \
        const int t_ = first + 4 * y_ + r, u_ = u + x_ + n * WX;                                             \
        s[r][n] = SEES(t_, u_) ? s[r][n] * scale MASK_ADDED(t_, u_) : -INFINITY;                             \
        most[r] = fmax(most[r], s[r][n]);                                                                    \
    }

// A group's head, of `heads`, and where its keys lie; those of values are KEY_HEADS*E behind.
#define HEAD(heads)                                                                                          \
    const int id = (int)get_local_id(0), x_ = id % WX, y_ = id / WX, D = H * E, tiles = (T + BQ - 1) / BQ;   \
    const int W = D + 2 * KEY_HEADS * E, z = (int)get_group_id(0) / tiles, n_ = z / (heads), head = z % (heads);
#define HEAD_OF_QUERIES                                                                                      \
    HEAD(H)                                                                                                  \
    const int h_ = head, k_ = D + KEY_HEAD(h_) * E;                                                          \
    MASK_BEGIN
#define GROUP __attribute__((reqd_work_group_size(ITEMS, 1, 1)))

__kernel GROUP void KERNEL(attend_flash)(__global T_Y *restrict y, __global const T_X *restrict x, int T,
                                         int H, int G, int E, int causal, float scale MASK_PARAMS) {
    __local float4 own[BQ * PITCH], moving[BK * PITCH], p[BQ * P_PITCH], red[SUMS];
    HEAD_OF_QUERIES
    const int first = (tiles - 1 - (int)get_group_id(0) % tiles) * BQ, end = causal ? min(T, first + BQ) : T;
    float sums[4][CN], m[4], l[4];
    x += n_ * T * W;
    FETCH(T_X, own, BQ, x + h_ * E, W, first)
    x += k_;
    EACH_RESULT sums[r][c] = 0.0f;
    EACH_ROW m[r] = -INFINITY, l[r] = 0.0f;
    for (int u = 0; u < end; u += BK) {
        float s[4][KN], most[4];
        FETCH(T_X, moving, BK, x, W, u)
        MEET;
        SCORES(s, own);
        HIDE
        SHARE(red, most)
        MEET;
        FETCH(T_X, moving, BK, x + KEY_HEADS * E, W, u)
        float4 largest = vload4(0, m);
        TOGETHER(red, largest, fmax)
        vstore4(largest, 0, most);
        EACH_ROW {
            const float less = exp(m[r] - most[r]);
            m[r] = most[r];
            l[r] *= less;
            UNROLLED for (int n = 0; n < KN; n++) {
                s[r][n] = exp(s[r][n] - most[r]);
                l[r] += s[r][n];
            }
            UNROLLED for (int c = 0; c < CN; c++) sums[r][c] *= less;
        }
        KEEP(s)
        MEET;
        ADD(sums);
        MEET;
    }
    SHARE(red, l)
    MEET;
    float4 all = (float4)(0.0f);
    TOGETHER(red, all, PLUS)
    vstore4(INVERSE(all), 0, l);
    GATHER(own, sums, l[r])
    MEET;
    LEAVE(own, y + n_ * T * D + h_ * E, D)
}

__kernel GROUP void KERNEL(attend_flash_queries)(__global T_Y *restrict dx, __global const T_DY *restrict dy,
                                                 __global const T_X *restrict x,
                                                 __global float *restrict stats, int N, int T, int H, int G,
                                                 int E, int causal, float scale MASK_PARAMS) {
    __local float4 own[2][BQ * PITCH], moving[BK * PITCH];
    __local float4 p[BQ * P_PITCH > 2 * SUMS ? BQ * P_PITCH : 2 * SUMS]; // and sums of rows
    HEAD_OF_QUERIES
    const int first = (tiles - 1 - (int)get_group_id(0) % tiles) * BQ, end = causal ? min(T, first + BQ) : T;
    float sums[4][CN], means[4][CN], m[4], l[4], delta[4];
    x += n_ * T * W;
    FETCH(T_X, own[0], BQ, x + h_ * E, W, first)
    FETCH(T_DY, own[1], BQ, dy + n_ * T * D + h_ * E, D, first)
    x += k_;
    EACH_RESULT sums[r][c] = means[r][c] = 0.0f;
    EACH_ROW m[r] = -INFINITY, l[r] = delta[r] = 0.0f;
    for (int u = 0; u < end; u += BK) {
        float s[4][KN], d[4][KN], most[4];
        FETCH(T_X, moving, BK, x + KEY_HEADS * E, W, u)
        MEET;
        SCORES(d, own[1]);
        MEET;
        FETCH(T_X, moving, BK, x, W, u)
        MEET;
        SCORES(s, own[0]);
        HIDE
        SHARE(p, most)
        MEET;
        float4 largest = vload4(0, m);
        TOGETHER(p, largest, fmax)
        vstore4(largest, 0, most);
        MEET;
        EACH_ROW {
            const float less = exp(m[r] - most[r]);
            m[r] = most[r];
            l[r] *= less;
            delta[r] *= less;
            UNROLLED for (int n = 0; n < KN; n++) {
                s[r][n] = exp(s[r][n] - most[r]);
                d[r][n] *= s[r][n];
                l[r] += s[r][n];
                delta[r] += d[r][n];
            }
            UNROLLED for (int c = 0; c < CN; c++) {
                means[r][c] *= less;
                sums[r][c] *= less;
            }
        }
        KEEP(s)
        MEET;
        ADD(means);
        MEET;
        KEEP(d)
        MEET;
        ADD(sums);
        MEET;
    }
    SHARE(p, l)
    SHARE(p + SUMS, delta)
    MEET;
    float4 all = (float4)(0.0f), all_delta = (float4)(0.0f);
    TOGETHER(p, all, PLUS)
    TOGETHER(p + SUMS, all_delta, PLUS)
    vstore4(all, 0, l);
    vstore4(MASKED ? all_delta * INVERSE(all) : all_delta / all, 0, delta);
    EACH_RESULT sums[r][c] -= delta[r] * means[r][c];
    GATHER(own[0], sums, MASKED && l[r] == 0.0f ? 0.0f : scale / l[r])
    MEET;
    if (x_ == 0) {
        EACH_ROW {
            const int t = 4 * y_ + r;
            ((__local float *)p)[t] = MASKED && l[r] == 0.0f ? INFINITY : m[r] + log(l[r]);
            ((__local float *)p)[BQ + t] = delta[r];
        }
    }
    MEET;
    for (int i = id; i < 2 * BQ; i += ITEMS) {
        const int t = first + i % BQ;
        if (t < T) stats[(i / BQ * N * H + z) * T + t] = ((__local const float *)p)[i];
    }
    LEAVE(own[0], dx + n_ * T * W + h_ * E, W)
}

__kernel GROUP void KERNEL(attend_flash_keys)(__global T_Y *restrict dx, __global const T_DY *restrict dy,
                                              __global const T_X *restrict x,
                                              __global const float *restrict stats, int N, int T, int H,
                                              int G, int E, int causal, float scale MASK_PARAMS) {
    __local float4 own[2][BQ * PITCH], moving[BK * PITCH], p[BQ * P_PITCH];
    HEAD(KEY_HEADS)
    const int first = (int)get_group_id(0) % tiles * BQ;
    float keys[4][CN], values[4][CN];
    x += n_ * T * W;
    dy += n_ * T * D;
    stats += n_ * H * T;
    FETCH(T_X, own[0], BQ, x + D + head * E, W, first)
    FETCH(T_X, own[1], BQ, x + D + (KEY_HEADS + head) * E, W, first)
    EACH_RESULT keys[r][c] = values[r][c] = 0.0f;
    EACH_SHARER { // of the queries that see them
        MASK_BEGIN
        for (int t = causal ? first : 0; t < T; t += BK) {
            float s[4][KN], d[4][KN];
            FETCH(T_X, moving, BK, x + h_ * E, W, t)
            MEET;
            SCORES(s, own[0]);
            UNROLLED for (int n = 0; n < KN; n++) {
                const int query = t + x_ + n * WX;
                const float log_sum = stats[h_ * T + min(query, T - 1)];
                EACH_ROW {
                    const int key = first + 4 * y_ + r;
                    const bool sees = query < T && SEES(query, key);
                    s[r][n] = sees ? exp(s[r][n] * scale MASK_ADDED(query, key) - log_sum) : 0.0f;
                }
            }
            KEEP(s)
            MEET;
            FETCH(T_DY, moving, BK, dy + h_ * E, D, t)
            MEET;
            SCORES(d, own[1]);
            ADD(values);
            UNROLLED for (int n = 0; n < KN; n++) {
                const float delta = stats[(N * H + h_) * T + min(t + x_ + n * WX, T - 1)];
                EACH_ROW s[r][n] *= d[r][n] - delta;
            }
            MEET;
            KEEP(s)
            FETCH(T_X, moving, BK, x + h_ * E, W, t)
            MEET;
            ADD(keys);
            MEET;
        }
    }
    GATHER(own[0], keys, scale)
    GATHER(own[1], values, 1.0f)
    MEET;
    dx += n_ * T * W + D + head * E;
    LEAVE(own[0], dx, W)
    LEAVE(own[1], dx + KEY_HEADS * E, W)
}
