// SPDX-License-Identifier: Apache-2.0
//
// Attention of H heads whose queries, keys and values lie side by side: x [N,T,(H+2*G)*E] -> y [N,T,H*E]. H/G heads of queries share one
// of keys and values. With q, k and v the columns h*E, (H+g)*E and (H+G+g)*E of x[n], E wide, g = h / (H/G):
//
//     p = softmax(scale * q k^T)    y = p v                     query t sees all T keys, or, causal, the first t + 1
//     dv = p^T dy    dp = dy v^T    ds = scale * p * (dp - sum(dp * p))    dq = ds k    dk = ds^T q    dv and dk sums of a g's heads
//
// Entries of the plain variant, which keeps p and dp whole, [N,H,T,T], in workspaces:
//   attend_product      any of the products. c[z][i][j] = sum_k a[z][i][k] * b[z][k][j], one work-item an element,
//                       ((z*I + i)*J + j) = get_global_id(0), any work-group. Matrix z is head z % H of z / H: it begins at
//                       offset + z/H * n + z%H * h, of b z%H/share * h, and i, k, j step by the strides given; a sum of `sums` such products
//                       of matrices a_s and b_s apart. What a causal product leaves out:
//                       LEAVES_RESULTS c where j > i (not written), LEAVES_LATER terms k > i, LEAVES_EARLIER terms k < i.
//   attend_softmax      p in place of q k^T; one work-item a row
//   attend_softmax_backward   ds in place of dp, the same
// Entries of the local variant, for GPUs, which does the same in groups that share local memory, and leaves out whole tiles that a
// causal product has no use for:
//   attend_product_local  as attend_product; group 8 x 8, item (x, y) of group (gx, gy, z) has the elements y + 8*m, x + 8*n of the
//                         tile [32][32] at row 32*gy, column 32*gx of matrix z. One of a_i and a_k is 1, and one of b_k and b_j.
//   attend_softmax_local, attend_softmax_backward_local   a group of 64 a row, r = get_group_id(0)
// Entries for CPU-class devices, work-group 1, a group for each groups-th head, n*H + h, or for one; nothing of [T,T] is kept whole:
//   attend_tile           MR queries at a time, and of their keys and values those that one of them sees
//   attend_tile_backward  `block` queries at a time, a multiple of MR: their p and ds, made as above, stay until both have been
//                         added to dk and dv
//   With IN_GLOBAL, for heads that local memory has no room for, the same in a workspace, of which each group has a part.
//   Floats, as the C file counts them, with TP and EP for T and E rounded up to whole register tiles of NR columns: all
//   matrices have EP or TP columns, those transposed EP rows, the others TP; what is beyond T and E is zero.
//
// Macros
//   T_A, T_B, T_C  attend_product: how a, b and c are stored: float, f16 or bf16; default float
//   T_X, T_DY, T_Y tile: how x, dy and the result (y or dx) are stored; default float
//   VW             lanes of a vector: 4, 8 or 16; default 16. A register tile is MR rows, 8 for VW 16, else 4, by 2 vectors
//   IN_GLOBAL      tile: 1: `floats` are global memory; default 0: local
//   MASKED         1: what is added to scores, mask [m_first + n*m_n + h*m_h + t*m_t + s], are the last arguments, of attend_softmax with H
//                  before them; default 0. -INFINITY hides; a query that sees nothing has zeros
//   TILE           1: with the CPU-class entries, the default; 0: without, as in matmul.cl
//
// Source: the recomputation of p backward is that of Dao et al. 2022, "FlashAttention", arXiv:2205.14135, section 3.1.

#define T_A float
#define T_B float
#define T_C float
#define T_X float
#define T_DY float
#define T_Y float
#define VW 16
#define IN_GLOBAL 0
#define TILE 1
#define MASKED 0

#if MASKED
#define SOFTMAX_PARAMS , int H MASK_PARAMS
#define MASK_ROW mask += m_first + r / T / H * m_n + r / T % H * m_h + r % T * m_t;
#define ADDED(s) + mask[s]
#else
#define SOFTMAX_PARAMS
#define MASK_ROW
#define ADDED(s)
#endif
#define INVERSE(sum) (MASKED && (sum) == 0.0f ? 0.0f : 1.0f / (sum))

#define LEAVES_RESULTS 1
#define LEAVES_LATER 2
#define LEAVES_EARLIER 3

__kernel void KERNEL(attend_product)(__global T_C *restrict c, __global const T_A *restrict a,
                                     __global const T_B *restrict b, int matrices, int H, int I, int J, int K,
                                     int c_offset, int c_n, int c_h, int c_i, int a_offset, int a_n, int a_h,
                                     int a_i, int a_k, int b_offset, int b_n, int b_h, int b_k, int b_j, int leaves,
                                     int share, int sums, int a_s, int b_s) {
    int item = (int)get_global_id(0), j = item % J, i = item / J % I, z = item / J / I;
    if (z >= matrices || (leaves == LEAVES_RESULTS && j > i)) return;
    int first = leaves == LEAVES_EARLIER ? i : 0, end = leaves == LEAVES_LATER ? i + 1 : K, n = z / H, h = z % H;
    float sum = 0.0f;
    a += a_offset + n * a_n + h * a_h + i * a_i;
    b += b_offset + n * b_n + h / share * b_h + j * b_j;
    for (int m = 0; m < sums; m++, a += a_s, b += b_s)
        for (int k = first; k < end; k++) sum = fma(LOAD(T_A, a + k * a_k), LOAD(T_B, b + k * b_k), sum);
    STORE(T_C, sum, c + c_offset + n * c_n + h * c_h + i * c_i + j);
}

// Row r by items `apart` each other, of which this one is the first, x = 0, or the x-th. `together` joins what all of them have.
#define SOFTMAX(x, apart, together)                                                                          \
    int seen = causal ? r % T + 1 : T;                                                                       \
    float largest = LEAST_SCORE, sum = 0.0f;                                                                 \
    p += r * T;                                                                                              \
    MASK_ROW                                                                                                 \
    for (int s = x; s < seen; s += apart) largest = fmax(largest, p[s] * scale ADDED(s));                    \
    together(largest, fmax) for (int s = x; s < seen; s += apart) {                                          \
        p[s] = exp(p[s] * scale ADDED(s) - largest);                                                         \
        sum += p[s];                                                                                         \
    }                                                                                                        \
    together(sum, ADD) float part = INVERSE(sum);                                                             \
    for (int s = x; s < seen; s += apart) p[s] *= part;
#define SOFTMAX_BACKWARD(x, apart, together)                                                                 \
    int seen = causal ? r % T + 1 : T;                                                                       \
    float sum = 0.0f;                                                                                        \
    d += r * T;                                                                                              \
    p += r * T;                                                                                              \
    for (int s = x; s < seen; s += apart) sum = fma(d[s], p[s], sum);                                        \
    together(sum, ADD) for (int s = x; s < seen; s += apart) d[s] = scale * p[s] * (d[s] - sum);
#define ALONE(value, op)
#define ADD(a, b) ((a) + (b))

__kernel void KERNEL(attend_softmax)(__global float *p, int rows, int T, int causal, float scale SOFTMAX_PARAMS) {
    int r = (int)get_global_id(0);
    if (r >= rows) return;
    SOFTMAX(0, 1, ALONE)
}

__kernel void KERNEL(attend_softmax_backward)(__global float *d, __global const float *p, int rows, int T, int causal,
                                              float scale) {
    int r = (int)get_global_id(0);
    if (r >= rows) return;
    SOFTMAX_BACKWARD(0, 1, ALONE)
}

// ---------------------------------------------------------------- GPU-class

#define EDGE 32 // of a tile, in each of its three directions
#define EACH 4  // rows and columns of a work-item
#define SIDE (EDGE / EACH)

__kernel __attribute__((reqd_work_group_size(SIDE, SIDE, 1))) void
KERNEL(attend_product_local)(__global T_C *restrict c, __global const T_A *restrict a,
                             __global const T_B *restrict b, int H, int I, int J, int K, int c_offset, int c_n,
                             int c_h, int c_i, int a_offset, int a_n, int a_h, int a_i, int a_k, int b_offset,
                             int b_n, int b_h, int b_k, int b_j, int leaves, int share, int sums, int a_s, int b_s) {
    __local float la[EDGE][EDGE + 1]; // [k][i]
    __local float lb[EDGE][EDGE + 1]; // [k][j]
    int x = (int)get_local_id(0), y = (int)get_local_id(1), z = (int)get_group_id(2);
    int i0 = (int)get_group_id(1) * EDGE, j0 = (int)get_group_id(0) * EDGE;
    if (leaves == LEAVES_RESULTS && j0 >= i0 + EDGE) return; // all of the group
    int first = leaves == LEAVES_EARLIER ? i0 : 0, end = leaves == LEAVES_LATER ? min(K, i0 + EDGE) : K;
    a += a_offset + z / H * a_n + z % H * a_h;
    b += b_offset + z / H * b_n + z % H / share * b_h;
    float sum[EACH][EACH];
    for (int m = 0; m < EACH; m++)
        for (int n = 0; n < EACH; n++) sum[m][n] = 0.0f;
    for (int matrix = 0; matrix < sums; matrix++, a += a_s, b += b_s) {
        for (int k0 = first; k0 < end; k0 += EDGE) {
            // Neighbouring items read neighbouring addresses whichever stride is 1.
            for (int t = y * SIDE + x; t < EDGE * EDGE; t += SIDE * SIDE) {
                int l = a_k == 1 ? t % EDGE : t / EDGE, r = a_k == 1 ? t / EDGE : t % EDGE, k = k0 + l, i = i0 + r;
                int left_out = (leaves == LEAVES_LATER && k > i) || (leaves == LEAVES_EARLIER && k < i);
                la[l][r] = k < K && i < I && !left_out ? LOAD(T_A, a + i * a_i + k * a_k) : 0.0f;
            }
            for (int t = y * SIDE + x; t < EDGE * EDGE; t += SIDE * SIDE) {
                int l = b_j == 1 ? t / EDGE : t % EDGE, r = b_j == 1 ? t % EDGE : t / EDGE, k = k0 + l, j = j0 + r;
                lb[l][r] = k < K && j < J ? LOAD(T_B, b + k * b_k + j * b_j) : 0.0f;
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int l = 0; l < EDGE; l++) {
                float ra[EACH], rb[EACH];
                for (int m = 0; m < EACH; m++) ra[m] = la[l][y + m * SIDE];
                for (int n = 0; n < EACH; n++) rb[n] = lb[l][x + n * SIDE];
                for (int m = 0; m < EACH; m++)
                    for (int n = 0; n < EACH; n++) sum[m][n] = fma(ra[m], rb[n], sum[m][n]);
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
    }
    c += c_offset + z / H * c_n + z % H * c_h;
    for (int m = 0; m < EACH; m++) {
        int i = i0 + y + m * SIDE;
        for (int n = 0; n < EACH; n++) {
            int j = j0 + x + n * SIDE;
            if (i < I && j < J && !(leaves == LEAVES_RESULTS && j > i)) STORE(T_C, sum[m][n], c + i * c_i + j);
        }
    }
}

#define ITEMS 64 // of a row
// `value` of all items of a row's group, taken together by op in an order of its own; parts has a place for each.
#define TOGETHER(value, op)                                                                                  \
    GROUP_TREE(x, ITEMS, parts[x] = value, parts[x] = op(parts[x], parts[x + apart])) value = parts[0];      \
    barrier(CLK_LOCAL_MEM_FENCE);

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void
KERNEL(attend_softmax_local)(__global float *p, int T, int causal, float scale SOFTMAX_PARAMS) {
    __local float parts[ITEMS];
    int x = (int)get_local_id(0), r = (int)get_group_id(0);
    SOFTMAX(x, ITEMS, TOGETHER)
}

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void
KERNEL(attend_softmax_backward_local)(__global float *d, __global const float *p, int T, int causal, float scale) {
    __local float parts[ITEMS];
    int x = (int)get_local_id(0), r = (int)get_group_id(0);
    SOFTMAX_BACKWARD(x, ITEMS, TOGETHER)
}

// ---------------------------------------------------------------- CPU-class

#if TILE

#define IV PASTE(int, VW)

#if IN_GLOBAL
#define MEMORY __global
#define MLOAD(p) GLOAD(p)
#define MSTORE(v, p) GSTORE(v, p)
#define FLOATS_OF_GROUP(n) (floats + group * (n))
#else
#define MEMORY __local
#define MLOAD(p) LLOAD(p)
#define MSTORE(v, p) LSTORE(v, p)
#define FLOATS_OF_GROUP(n) floats
#endif

#if VW == 16
#define MR 8
#else
#define MR 4
#endif
#define NR (2 * VW)

#if VW == 16
#define FOLD4(v, op) op(op((v).lo.lo, (v).lo.hi), op((v).hi.lo, (v).hi.hi))
#elif VW == 8
#define FOLD4(v, op) op((v).lo, (v).hi)
#else
#define FOLD4(v, op) (v)
#endif

static float KERNEL(attend_sum)(FV v) {
    float4 w = FOLD4(v, ADD);
    return (w.x + w.y) + (w.z + w.w);
}

static float KERNEL(attend_largest)(FV v) {
    float4 w = FOLD4(v, fmax);
    return fmax(fmax(w.x, w.y), fmax(w.z, w.w));
}

// Lanes whose key is below `seen` keep v, the others get `other`.
static FV KERNEL(attend_keep)(FV v, int first, int seen, float other) {
    return select((FV)(other), v, LANES + first < (IV)(seen));
}

// to[r][0..pitch) = row r of a tensor, `width` elements and zeros behind; rows n..all are zeros.
#define COPY(name, T)                                                                                        \
    static void KERNEL(name)(MEMORY float *to, int pitch, __global const T *from, int stride, int n, int all, \
                             int width) {                                                                    \
        for (int r = 0; r < all; r++, to += pitch, from += stride) {                                         \
            int e = 0;                                                                                       \
            if (r < n) {                                                                                     \
                for (; e + VW <= width; e += VW) MSTORE(VLOAD(T, VW, from + e), to + e);                     \
                for (; e < width; e++) to[e] = LOAD(T, from + e);                                            \
            }                                                                                                \
            for (; e < pitch; e++) to[e] = 0.0f;                                                             \
        }                                                                                                    \
    }
COPY(attend_copy, T_X)
COPY(attend_copy_dy, T_DY)

static void KERNEL(attend_store)(__global T_Y *to, int stride, MEMORY const float *from, int pitch, int n, int width) {
    for (int r = 0; r < n; r++, to += stride, from += pitch) {
        int e = 0;
        for (; e + VW <= width; e += VW) VSTORE(T_Y, VW, MLOAD(from + e), to + e);
        for (; e < width; e++) STORE(T_Y, from[e], to + e);
    }
}

// to [EP][TP] = from [TP][EP] with rows and columns exchanged.
static void KERNEL(attend_transpose)(MEMORY float *to, MEMORY const float *from, int TP, int EP) {
    for (int s = 0; s < TP; s += VW)
        for (int e = 0; e < EP; e += VW) {
            FV r[VW], t[VW];
            UNROLL for (int l = 0; l < VW; l++) r[l] = MLOAD(from + (s + l) * EP + e);
            TRANSPOSE(VW, r, t)
            UNROLL for (int l = 0; l < VW; l++) MSTORE(r[l], to + (e + l) * TP + s);
        }
}

// The register tile: c[MR][NR] (+)= sum_{k < n} a[r * a_r + k * a_k] * b[k * b_k ... + NR]. add: keep what c holds.
#define GET(r) TILE2_GET(r, M, c + r * c_r)
#define STEP(r) TILE2_ADD(r, a[r * a_r], b0, b1)
#define PUT(r) TILE2_PUT(r, M, c + r * c_r)
static void KERNEL(attend_micro)(MEMORY float *c, int c_r, MEMORY const float *a, int a_r, int a_k,
                                 MEMORY const float *b, int b_k, int n, int add) {
    TILE_ROWS(MR, TILE2_ZERO)
    if (add) {
        TILE_ROWS(MR, GET)
    }
    for (int k = 0; k < n; k++, a += a_k, b += b_k) {
        FV b0 = MLOAD(b), b1 = MLOAD(b + VW);
        TILE_ROWS(MR, STEP)
    }
    TILE_ROWS(MR, PUT)
}

#if MASKED
// VW of a mask's row of T from s on; what is behind it counts nothing.
static FV KERNEL(attend_added)(__global const float *mask, int s, int T) {
    if (s + VW <= T) return GLOAD(mask + s);
    float each[VW];
    for (int l = 0; l < VW; l++) each[l] = s + l < T ? mask[s + l] : 0.0f;
    return PASTE(vload, VW)(0, each);
}
#define WEIGH_PARAMS , __global const float *mask, int T
#define HEAD_PARAMS , __global const float *mask, int m_t
#define ADDED_VECTOR(s) + KERNEL(attend_added)(mask, s, T)
#define MASK_AT(t) , mask + min(t, T - 1) * m_t, T
#define MASK_OF(z) , mask + m_first + (z) / H * m_n + (z) % H * m_h, m_t
#else
#define WEIGH_PARAMS
#define HEAD_PARAMS
#define ADDED_VECTOR(s)
#define MASK_AT(t)
#define MASK_OF(z)
#endif

// p[0..seen) becomes its softmax, p[seen..end) zero; end is a multiple of VW.
static void KERNEL(attend_weigh)(MEMORY float *p, int seen, int end, float scale WEIGH_PARAMS) {
    FV most = (FV)(LEAST_SCORE), sums = (FV)(0.0f);
    int s;
    for (s = 0; s < seen; s += VW)
        most = fmax(most, KERNEL(attend_keep)(MLOAD(p + s) * scale ADDED_VECTOR(s), s, seen, -INFINITY));
    float largest = KERNEL(attend_largest)(most);
    for (s = 0; s < seen; s += VW) {
        FV e = KERNEL(attend_keep)(exp(MLOAD(p + s) * scale ADDED_VECTOR(s) - largest), s, seen, 0.0f);
        sums += e;
        MSTORE(e, p + s);
    }
    float sum = KERNEL(attend_sum)(sums), part = INVERSE(sum);
    for (s = 0; s < seen; s += VW) MSTORE(MLOAD(p + s) * part, p + s);
    for (; s < end; s += VW) MSTORE((FV)(0.0f), p + s);
}

// d[0..seen) becomes scale * p * (d - sum(d * p)), d[seen..end) zero.
static void KERNEL(attend_weigh_backward)(MEMORY float *d, MEMORY const float *p, int seen, int end, float scale) {
    FV sums = (FV)(0.0f);
    int s;
    for (s = 0; s < seen; s += VW) sums += KERNEL(attend_keep)(MLOAD(d + s) * MLOAD(p + s), s, seen, 0.0f);
    float sum = KERNEL(attend_sum)(sums);
    for (s = 0; s < seen; s += VW) {
        FV v = scale * MLOAD(p + s) * (MLOAD(d + s) - sum);
        MSTORE(KERNEL(attend_keep)(v, s, seen, 0.0f), d + s);
    }
    for (; s < end; s += VW) MSTORE((FV)(0.0f), d + s);
}

// Whole multiples of a register tile's columns.
#define WHOLE(n) (((n) + NR - 1) / NR * NR)

// Rows of x are W apart, and values lie `values` behind keys.
static void KERNEL(attend_head)(__global T_Y *y, __global const T_X *x, __global const T_X *keys, MEMORY float *k, int T, int D,
                                int W, int values, int E, int causal, float scale HEAD_PARAMS) {
    int TP = WHOLE(T), EP = WHOLE(E);
    MEMORY float *kt = k + TP * EP, *v = kt + EP * TP, *q = v + TP * EP, *p = q + MR * EP, *o = p + MR * TP;
    KERNEL(attend_copy)(k, EP, keys, W, T, TP, E);
    KERNEL(attend_copy)(v, EP, keys + values, W, T, TP, E);
    KERNEL(attend_transpose)(kt, k, TP, EP);
    for (int t = 0; t < T; t += MR) {
        int rows = min(MR, T - t), seen = causal ? t + rows : T;
        KERNEL(attend_copy)(q, EP, x + t * W, W, rows, MR, E);
        for (int s = 0; s < seen; s += NR) KERNEL(attend_micro)(p + s, TP, q, EP, 1, kt + s, TP, E, 0);
        for (int r = 0; r < MR; r++)
            KERNEL(attend_weigh)(p + r * TP, causal ? min(t + r + 1, seen) : T, WHOLE(seen), scale MASK_AT(t + r));
        for (int e = 0; e < E; e += NR) {
            KERNEL(attend_micro)(o, NR, p, TP, 1, v + e, EP, seen, 0);
            KERNEL(attend_store)(y + t * D + e, D, o, NR, rows, min(NR, E - e));
        }
    }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
KERNEL(attend_tile)(__global T_Y *restrict y, __global const T_X *restrict x, MEMORY float *floats, int N, int T, int H, int G,
                    int E, int causal, int groups, float scale MASK_PARAMS) {
    int group = (int)get_group_id(0), D = H * E, W = D + 2 * G * E;
    if (group >= groups) return;
    for (int z = group; z < N * H; z += groups) {
        __global const T_X *own = x + z / H * T * W;
        KERNEL(attend_head)(y + z / H * T * D + z % H * E, own + z % H * E, own + D + z % H / (H / G) * E,
                            FLOATS_OF_GROUP(3 * WHOLE(T) * WHOLE(E) + MR * (WHOLE(E) + WHOLE(T) + NR)), T, D, W, G * E, E, causal,
                            scale MASK_OF(z));
    }
}

// more: a head before has the same keys and values, and its sums are here.
static void KERNEL(attend_head_backward)(__global T_Y *dx, __global const T_DY *dy, __global const T_X *x, __global const T_X *keys,
                                         MEMORY float *q, int T, int D, int W, int values, int E, int causal, int block, int more,
                                         float scale HEAD_PARAMS) {
    int TP = WHOLE(T), EP = WHOLE(E);
    MEMORY float *k = q + TP * EP, *kt = k + TP * EP, *vt = kt + EP * TP, *g = vt + EP * TP,
                  *dk = g + TP * EP, *dv = dk + TP * EP, *p = dv + TP * EP, *d = p + block * TP, *o = d + block * TP;
    KERNEL(attend_copy)(q, EP, x, W, T, TP, E);
    if (!more) {
        KERNEL(attend_copy)(k, EP, keys, W, T, TP, E);
        KERNEL(attend_transpose)(kt, k, TP, EP);
        KERNEL(attend_copy)(dv, EP, keys + values, W, T, TP, E); // v, until it is transposed
        KERNEL(attend_transpose)(vt, dv, TP, EP);
    }
    KERNEL(attend_copy_dy)(g, EP, dy, D, T, TP, E);
    for (int first = 0; first < T; first += block) {
        int end = min(first + block, T);
        for (int t = first; t < end; t += MR) {
            MEMORY float *pt = p + (t - first) * TP, *dt = d + (t - first) * TP;
            int seen = causal ? min(t + MR, T) : T;
            for (int s = 0; s < seen; s += NR) {
                KERNEL(attend_micro)(pt + s, TP, q + t * EP, EP, 1, kt + s, TP, E, 0);
                KERNEL(attend_micro)(dt + s, TP, g + t * EP, EP, 1, vt + s, TP, E, 0);
            }
            for (int r = 0; r < MR; r++) {
                int sees = causal ? min(t + r + 1, T) : T;
                KERNEL(attend_weigh)(pt + r * TP, sees, WHOLE(seen), scale MASK_AT(t + r));
                KERNEL(attend_weigh_backward)(dt + r * TP, pt + r * TP, sees, WHOLE(seen), scale);
            }
            for (int e = 0; e < E; e += NR) {
                KERNEL(attend_micro)(o, NR, dt, TP, 1, k + e, EP, seen, 0);
                KERNEL(attend_store)(dx + t * W + e, W, o, NR, min(MR, T - t), min(NR, E - e));
            }
        }
        for (int s = 0; s < (causal ? end : T); s += MR) {
            int t = causal ? max(first, s) : first, add = more || (first > 0 && (!causal || s < first));
            int row = (t - first) * TP + s;
            for (int e = 0; e < E; e += NR) {
                KERNEL(attend_micro)(dv + s * EP + e, EP, p + row, 1, TP, g + t * EP + e, EP, end - t, add);
                KERNEL(attend_micro)(dk + s * EP + e, EP, d + row, 1, TP, q + t * EP + e, EP, end - t, add);
            }
        }
    }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
KERNEL(attend_tile_backward)(__global T_Y *restrict dx, __global const T_DY *restrict dy, __global const T_X *restrict x,
                             MEMORY float *floats, int N, int T, int H, int G, int E, int causal, int groups, int block,
                             float scale MASK_PARAMS) {
    int group = (int)get_group_id(0), D = H * E, W = D + 2 * G * E, TP = WHOLE(T), EP = WHOLE(E);
    if (group >= groups) return;
    for (int z = group; z < N * G; z += groups) {
        int from = z / G * T * W, first = z % G * (H / G);
        MEMORY float *own = FLOATS_OF_GROUP(7 * TP * EP + 2 * block * TP + MR * NR), *dk = own + 5 * TP * EP;
        for (int h = first; h < first + H / G; h++)
            KERNEL(attend_head_backward)(dx + from + h * E, dy + z / G * T * D + h * E, x + from + h * E, x + from + D + z % G * E, own,
                                         T, D, W, G * E, E, causal, block, h > first, scale MASK_OF(z / G * H + h));
        KERNEL(attend_store)(dx + from + D + z % G * E, W, dk, EP, T, E);
        KERNEL(attend_store)(dx + from + D + (G + z % G) * E, W, dk + TP * EP, EP, T, E);
    }
}
#endif // TILE
