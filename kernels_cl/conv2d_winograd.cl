// SPDX-License-Identifier: Apache-2.0
//
// Convolution with a 3x3 kernel, stride 1, dilation 1, one group, by Winograd's F(4x4, 3x3): an output tile of 4x4 takes
// 36 products an input channel instead of 144. For CPU-class devices. With in [N][C][H][W], out [N][M][OH][OW]:
//
//   out[n][m][a][b] = epilogue(bias[m] + sum_{c,i,j<3} in[n][c][a + y0 + i][b + x0 + j] * w[m][c][i][j])
//   w[m][c][i][j]   = weight[m*m_stride + c*c_stride + 3*i + j], or of 8 - (3*i + j) if flip
//
// where in is 0 outside: the forward pass, and with flip and the channels' strides exchanged the gradient by the input.
//
// Tiles are counted t = (n*TH + ty)*TW + tx, TH = ceil(OH/4), TW = ceil(OW/4), and go in blocks of nr, an argument: 2*VW, or VW
// where that leaves fewer lanes empty. What a tile reads is d [6][6], at row 4*ty + y0, column 4*tx + x0. For each e = 6*i + j
// of the 36:
//
//   U[e][m][c] = (G w G')[i][j]     V[e][c][t] = (B' d B)[i][j]     R[e][m][t] = sum_c U[e][m][c] * V[e][c][t]
//   out tile   = A' R[.][m][t] A
//
// The gradient by the weights is the adjoint of that, with x [N][C][H][W], dy [N][M][OH][OW] and tiles cut from dy:
//
//   Y[e][m][t] = (A dy_t A')[i][j]      S[e][m][c] = sum_t Y[e][m][t] * V[e][c][t]      dw[m][c] = G' S[.][m][c] G
//
// where matmul.cl makes S.
//
// Lavin, Gray 2015, "Fast Algorithms for Convolutional Neural Networks", arXiv:1509.09308, section 4; the algorithm is
// Winograd's 1980, "Arithmetic Complexity of Computations". Made from points p as Toom and Cook do: the row of p is
// 1, p, p^2, p^3 in A; the coefficients of prod_{q != p} (x - q) in B'; and 1, p, p^2 over prod_{q != p} (p - q) in G. The
// row of infinity is the highest power alone, and in B' the product over all. The points here are 0, P, -P, 1/P, -1/P with
// P = 2/3, and infinity. The usual 0, 1, -1, 2, -2 have errors 4 times as large: what a rounding in R becomes in a result
// goes as sum_e A[e][i]^2 |G[e]|^2 |B'[e]|^2, in each direction, which is 94 for those and i = 3, and at most 21 for these,
// about the least there is (Barabasz et al. 2020, "Error Analysis and Improving the Accuracy of Winograd Convolution for
// Deep Neural Networks", ACM Transactions on Mathematical Software 46(4), choose points in the same way).
//
// Sums of c run in f32, KC terms added to those before, and a tile's result depends on no other tile.
//
// Entries: work-group 1, one work-item a task. Work on some blocks at a time, [b0, b0+bn), keeps V and R in a cache.
//   winograd_weight   task = p: U of the MR rows of panel p: u[e*us + (p*C + c)*MR + l] of m = p*MR + l
//   winograd_input    task = b*ceil(C/per) + s: v[e*vs + b*v_block + c*v_channel + l] of tile (b0+b)*nr + l, 0 past the last
//                     tile, for per channels c
//   winograd_product  task = e*ceil(bn/per) + s, per blocks b: r[e*rs + ((b*MP + p)*MR + i)*nr + l], MP = ceil(M/MR)
//   winograd_panel    task = p*ceil(bn/per) + s: winograd_weight of panel p, to local memory, and its part of winograd_product
//                     for per blocks b: U never reaches memory, but all of V is read for each panel
//   winograd_output   task = b*ceil(M/per) + s: out from r, for per channels m
//   winograd_gradient task = b*ceil(M/per) + s: Y from dy as winograd_input makes V, y[e*ys + b*y_block + m*y_channel + l]
//   winograd_dweight  task = m: dw[m] from S, [36][M][C]
//
// us, vs and rs are MP*C*MR, bn*C*nr and bn*MP*MR*nr, and a vector more: else, where they are powers of two, the 36 would
// fall on one line of a cache. Products take v_block C*nr and v_channel nr.
//
// Macros
//   T_IN, T_OUT   how in (or x, or dy) and out are stored, float, f16 or bf16; default float
//   EPI_*         the epilogue of winograd_output, common/epilogue.cl; default none
//   VW            lanes of a vector: 4, 8 or 16; default 16
//   MR            rows of the products' register tile, up to two vectors wide: 4 or 8; default 8 for VW 16, else 4
//   KC            channels of a panel in local memory at once, even; default 128: 184 KB

#define T_IN float
#define T_OUT float
#define VW 16
#if VW == 16
#define MR 8
#else
#define MR 4
#endif
#define KC 128

#define HALF PASTE(HALF_, VW)
#define HALF_4 2
#define HALF_8 4
#define HALF_16 8
#define HV PASTE(float, HALF)
EPILOGUE_FUNCTION(KERNEL(epilogue), float)
EPILOGUE_FUNCTION(KERNEL(epilogue_vector), FV)
EPILOGUE_FUNCTION(KERNEL(epilogue_half), HV)
#define NR (2 * VW) // the most tiles of a block
#define POINT (2.0f / 3.0f)

// y = G x: six of three.
#define TRANSFORM_G(y0, y1, y2, y3, y4, y5, x0, x1, x2)                                                      \
    {                                                                                                        \
        FV a_ = x0 * (-81.0f / 130.0f) - x2 * (36.0f / 130.0f), b_ = x1 * (54.0f / 130.0f);                  \
        FV c_ = x0 * (8.0f / 65.0f) + x2 * (18.0f / 65.0f), d_ = x1 * (12.0f / 65.0f);                       \
        y0 = x0;                                                                                             \
        y1 = a_ - b_;                                                                                        \
        y2 = a_ + b_;                                                                                        \
        y3 = c_ + d_;                                                                                        \
        y4 = c_ - d_;                                                                                        \
        y5 = x2;                                                                                             \
    }

// w[k][l]: weight k of row l % MR, channel l / MR, `next` after the first: as many channels as fill a vector.
static void KERNEL(winograd_kernels)(FV *w, __local float *lw, __local const float *weight, int m_stride,
                                     int next) {
#if VW == 16 && MR == 8
    UNROLL for (int l = 0; l < 8; l++) {
        w[l].even = vload8(0, weight + l * m_stride);
        w[l].odd = vload8(0, weight + l * m_stride + next);
        lw[l] = weight[l * m_stride + 8];
        lw[8 + l] = weight[l * m_stride + next + 8];
    }
    FV t[8];
    TRANSPOSE(8, w, t)
    w[8] = LLOAD(lw);
#else
    for (int l = 0; l < VW; l++)
        for (int k = 0; k < 9; k++) lw[k * VW + l] = weight[l % MR * m_stride + l / MR * next + k];
    for (int k = 0; k < 9; k++) w[k] = LLOAD(lw + k * VW);
#endif
}

#define US (KC * MR + VW) // us, in local memory

// u[e*US + c*MR + l] = U of row l of panel p, 0 past the last row, and of channel c0 + c, c < n; where n is odd, of one more.
// given holds 9 * KC * MR: what is far apart in weight is first brought together.
static void KERNEL(winograd_chunk)(__local float *u, __local float *given, __local float *lw,
                                   __global const float *weight, int M, int m_stride, int c_stride, int flip,
                                   int p, int c0, int n) {
    int rows = min(MR, M - p * MR), by_row = c_stride == 9; // else by channel
    int runs = by_row ? rows : n, run = 9 * (by_row ? n : rows), pitch = 9 * (by_row ? KC : MR);
    int m_pitch = by_row ? pitch : 9, c_pitch = by_row ? 9 : pitch;
    weight += p * MR * m_stride + c0 * c_stride;
    LOOP for (int i = 0; i < (rows < MR ? 9 * KC * MR : 0); i++) given[i] = 0.0f;
    for (int i = 0; i < runs; i++) {
        __global const float *src = weight + i * (by_row ? m_stride : c_stride);
        int k = 0, ahead = by_row ? 512 : 4 * c_stride;
        for (; k + VW <= run; k += VW) {
            PREFETCH(src + ahead + k);
            LSTORE(GLOAD(src + k), given + i * pitch + k);
        }
        LOOP for (; k < run; k++) given[i * pitch + k] = src[k];
    }
    for (int c = 0; c < n; c += VW / MR) {
        FV wanted[9], w[9], y[18];
        KERNEL(winograd_kernels)(wanted, lw, given + c * c_pitch, m_pitch, c + 1 < n ? c_pitch : 0);
        for (int k = 0; k < 9; k++) w[k] = flip ? wanted[8 - k] : wanted[k];
        for (int j = 0; j < 3; j++)
            TRANSFORM_G(y[j], y[3 + j], y[6 + j], y[9 + j], y[12 + j], y[15 + j], w[j], w[3 + j], w[6 + j])
        for (int i = 0; i < 6; i++) {
            FV z[6];
            TRANSFORM_G(z[0], z[1], z[2], z[3], z[4], z[5], y[3 * i], y[3 * i + 1], y[3 * i + 2])
            for (int j = 0; j < 6; j++) LSTORE(z[j], u + (6 * i + j) * US + c * MR);
        }
    }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
KERNEL(winograd_weight)(__global float *restrict u, __global const float *restrict weight, int M, int C,
                        int m_stride, int c_stride, int flip, int us) {
    __local float lw[9 * VW], given[9 * KC * MR], lu[36 * US];
    int p = (int)get_group_id(0);
    if (p * MR >= M) return;
    for (int c0 = 0; c0 < C; c0 += KC) {
        int n = min(KC, C - c0);
        KERNEL(winograd_chunk)(lu, given, lw, weight, M, m_stride, c_stride, flip, p, c0, n);
        for (int e = 0; e < 36; e++) {
            __global float *dst = u + e * us + (p * C + c0) * MR;
            int i = 0;
            for (; i + VW <= n * MR; i += VW) GSTORE(LLOAD(lu + e * US + i), dst + i);
            LOOP for (; i < n * MR; i++) dst[i] = lu[e * US + i];
        }
    }
}

// Powers of the points.
#define POWERS                                                                                               \
    const FV p_ = (FV)(POINT), q_ = (FV)(1.0f / POINT), p2_ = (FV)(POINT * POINT),                           \
             q2_ = (FV)(1.0f / (POINT * POINT));

// y = B' x: six of six.
#define TRANSFORM_B(y0, y1, y2, y3, y4, y5, x0, x1, x2, x3, x4, x5)                                          \
    {                                                                                                        \
        POWERS                                                                                               \
        const FV s_ = p2_ + q2_;                                                                             \
        FV a_ = fma(-q2_, x2, x4), b_ = fma(p_, x3, -q_ * x1);                                               \
        FV c_ = fma(-p2_, x2, x4), d_ = fma(q_, x3, -p_ * x1);                                               \
        y0 = fma(-s_, x2, x0 + x4);                                                                          \
        y1 = a_ + b_;                                                                                        \
        y2 = a_ - b_;                                                                                        \
        y3 = c_ + d_;                                                                                        \
        y4 = c_ - d_;                                                                                        \
        y5 = fma(-s_, x3, x1 + x5);                                                                          \
    }

// y = A x: six of four.
#define TRANSFORM_ADJOINT_A(y0, y1, y2, y3, y4, y5, x0, x1, x2, x3)                                          \
    {                                                                                                        \
        POWERS                                                                                               \
        FV a_ = fma(p2_, x2, x0), b_ = fma(p_ * p2_, x3, p_ * x1);                                           \
        FV c_ = fma(q2_, x2, x0), d_ = fma(q_ * q2_, x3, q_ * x1);                                           \
        y0 = x0;                                                                                             \
        y1 = a_ + b_;                                                                                        \
        y2 = a_ - b_;                                                                                        \
        y3 = c_ + d_;                                                                                        \
        y4 = c_ - d_;                                                                                        \
        y5 = x3;                                                                                             \
    }

// in[at + l] for lo <= l < hi, else 0. Of the total elements of in any may be read.
static FV KERNEL(winograd_window)(__local float *scratch, __global const T_IN *in, int at, int total, int lo,
                                  int hi) {
    if (at >= 0 && at <= total - VW) return (LANES >= lo & LANES < hi) ? TLOAD(T_IN, in + at) : (FV)(0.0f);
    LOOP for (int l = 0; l < VW; l++) scratch[l] = l >= lo && l < hi ? LOAD(T_IN, in + at + l) : 0.0f;
    return LLOAD(scratch);
}

// Columns of a row of tiles, of VW pixels from in[at] on in `rows` rows, [lo, hi) of them live: B' or A of each.
static void KERNEL(winograd_columns)(FV *y, __local float *scratch, __global const T_IN *in, int at,
                                     int total, int H, int W, int top, int lo, int hi, int rows) {
    FV x[6];
    UNROLL for (int i = 0; i < 6; i++) {
        x[i] = (FV)(0.0f);
        if (i >= rows || top + i < 0 || top + i >= H || hi <= 0) continue;
        PREFETCH(in + at + i * W + H * W); // the next channel's
        x[i] = KERNEL(winograd_window)(scratch, in, at + i * W, total, lo, hi);
    }
    if (rows == 6)
        TRANSFORM_B(y[0], y[1], y[2], y[3], y[4], y[5], x[0], x[1], x[2], x[3], x[4], x[5])
    else
        TRANSFORM_ADJOINT_A(y[0], y[1], y[2], y[3], y[4], y[5], x[0], x[1], x[2], x[3])
}

// The elements 4 to VW + 3 of two vectors.
#if VW == 4
#define SHIFTED(a, b) (b)
#elif VW == 8
#define SHIFTED(a, b) (FV)((a).hi, (b).lo)
#else
#define SHIFTED(a, b) (FV)((a).s4567, (a).hi, (b).s0123)
#endif
#define PITCH (4 * NR + VW) // of a row of all tiles of a block, four elements each

// For one channel of in [.][C][H][W] and the tiles block*nr + l, l < nr, the rows B'd (of `rows` 6) or A dy (4) of each:
// near[i*PITCH + 4*l + j] is element (i, j), and unless far is 0, far[i*PITCH + 4*l + j] element (i, 4 + j), j < 2; 0 past
// the last tile. Tiles that stand beside each other share pixels, and with them this first half of the transform.
static void KERNEL(winograd_gather)(__local float *near, __local float *far, __local float *scratch,
                                    __global const T_IN *in, int N, int C, int H, int W, int TH, int TW,
                                    int y0, int x0, int c, int block, int nr, int rows) {
    int t = block * nr, tx = t % TW, ty = t / TW % TH, image = t / TW / TH, total = N * C * H * W;
    for (int l = 0, n; l < nr; l += n) {
        int left = 4 * tx + x0, top = 4 * ty + y0, live = image < N;
        n = live ? min(TW - tx, nr - l) : nr - l; // tiles of one row
        int at = live ? ((image * C + c) * H + top) * W + left : 0, hi = live ? W - left : 0;
        FV last[6];
        for (int k = 0;; k += VW) {
            FV y[6];
            int needed = k < 4 * n + (far ? 2 : 0);
            KERNEL(winograd_columns)
            (y, scratch, in, at + k, total, H, W, top, -left - k, needed ? hi - k : 0, rows);
            if (k > 0) UNROLL for (int i = 0; i < 6; i++) {
                    __local float *to = near + i * PITCH + 4 * l + k - VW;
                    LSTORE(last[i], to);
                    if (far) LSTORE(SHIFTED(last[i], y[i]), far + (to - near));
                }
            if (k >= 4 * n) break;
            UNROLL for (int i = 0; i < 6; i++) last[i] = y[i];
        }
        tx = 0;
        if (++ty == TH) ty = 0, image++;
    }
}

// The task's block, and which `per` of n channels.
#define TASK(n)                                                                                              \
    int tasks = (n + per - 1) / per, block = (int)get_group_id(0) / tasks, s = (int)get_group_id(0) % tasks; \
    if (block >= bn) return;

// d0 to d3 of VW tiles, from four elements of each.
#define SPREAD(d0, d1, d2, d3, from)                                                                         \
    EVEN_ODD(PASTE(d0, e), PASTE(d0, o), LLOAD(from), LLOAD((from) + VW))                                    \
    EVEN_ODD(PASTE(d2, e), PASTE(d2, o), LLOAD((from) + 2 * VW), LLOAD((from) + 3 * VW))                     \
    EVEN_ODD(d0, d2, PASTE(d0, e), PASTE(d2, e))                                                             \
    EVEN_ODD(d1, d3, PASTE(d0, o), PASTE(d2, o))

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
KERNEL(winograd_input)(__global float *restrict v, __global const T_IN *restrict in, int N, int C, int H,
                       int W, int TH, int TW, int y0, int x0, int nr, int b0, int bn, int vs, int v_block,
                       int v_channel, int per) {
    __local float near[6 * PITCH], far[6 * PITCH], scratch[VW];
    TASK(C)
    for (int c = s * per; c < min(C, (s + 1) * per); c++) {
        KERNEL(winograd_gather)(near, far, scratch, in, N, C, H, W, TH, TW, y0, x0, c, b0 + block, nr, 6);
        __global float *dst = v + block * v_block + c * v_channel;
        for (int l = 0; l < nr; l += VW)
            for (int i = 0; i < 6; i++) {
                FV y[6];
                SPREAD(d0, d1, d2, d3, near + i * PITCH + 4 * l)
                SPREAD(d4, d5, d6, d7, far + i * PITCH + 4 * l)
                TRANSFORM_B(y[0], y[1], y[2], y[3], y[4], y[5], d0, d1, d2, d3, d4, d5)
                UNROLL for (int j = 0; j < 6; j++) {
                    PREFETCH_STORE(dst + (6 * i + j) * vs + 2 * v_channel + l);
                    GSTORE(y[j], dst + (6 * i + j) * vs + l);
                }
            }
    }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
KERNEL(winograd_gradient)(__global float *restrict y, __global const T_IN *restrict dy, int N, int M, int OH,
                          int OW, int TH, int TW, int nr, int b0, int bn, int ys, int y_block, int y_channel,
                          int per) {
    __local float near[6 * PITCH], scratch[VW];
    TASK(M)
    for (int m = s * per; m < min(M, (s + 1) * per); m++) {
        KERNEL(winograd_gather)(near, 0, scratch, dy, N, M, OH, OW, TH, TW, 0, 0, m, b0 + block, nr, 4);
        __global float *dst = y + block * y_block + m * y_channel;
        for (int l = 0; l < nr; l += VW)
            for (int i = 0; i < 6; i++) {
                FV x[6];
                SPREAD(d0, d1, d2, d3, near + i * PITCH + 4 * l)
                TRANSFORM_ADJOINT_A(x[0], x[1], x[2], x[3], x[4], x[5], d0, d1, d2, d3)
                UNROLL for (int j = 0; j < 6; j++) {
                    PREFETCH_STORE(dst + (6 * i + j) * ys + 2 * y_channel + l);
                    GSTORE(x[j], dst + (6 * i + j) * ys + l);
                }
            }
    }
}

// y = G' x: three of six.
#define TRANSFORM_ADJOINT_G(y0, y1, y2, x0, x1, x2, x3, x4, x5)                                              \
    {                                                                                                        \
        FV a_ = x1 + x2, b_ = x3 + x4;                                                                       \
        y0 = x0 - a_ * (81.0f / 130.0f) + b_ * (8.0f / 65.0f);                                               \
        y1 = (x2 - x1) * (54.0f / 130.0f) + (x3 - x4) * (12.0f / 65.0f);                                     \
        y2 = x5 - a_ * (36.0f / 130.0f) + b_ * (18.0f / 65.0f);                                              \
    }

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
KERNEL(winograd_dweight)(__global float *restrict dw, __global const float *restrict sums, int M, int C) {
    __local float lw[9 * VW];
    int m = (int)get_group_id(0);
    if (m >= M) return;
    for (int c = 0; c < C; c += VW) {
        int at = min(c, C - VW); // the last vector may begin early: C >= VW
        __global const float *src = sums + m * C + at;
        __global float *dst = dw + (m * C + at) * 9;
        FV y[18]; // three rows of six
        UNROLL for (int j = 0; j < 6; j++) {
            FV x[6];
            UNROLL for (int i = 0; i < 6; i++) {
                PREFETCH(src + (6 * i + j) * M * C + 4 * VW);
                x[i] = GLOAD(src + (6 * i + j) * M * C);
            }
            TRANSFORM_ADJOINT_G(y[j], y[6 + j], y[12 + j], x[0], x[1], x[2], x[3], x[4], x[5])
        }
        FV z[9];
        UNROLL for (int i = 0; i < 3; i++)
            TRANSFORM_ADJOINT_G(z[3 * i], z[3 * i + 1], z[3 * i + 2], y[6 * i], y[6 * i + 1], y[6 * i + 2],
                                y[6 * i + 3], y[6 * i + 4], y[6 * i + 5]) UNROLL for (int k = 0; k < 9; k++)
                LSTORE(z[k], lw + k * VW);
#if VW == 16
        FV t[8];
        TRANSPOSE(8, z, t)
        UNROLL for (int l = 0; l < 8; l++) {
            vstore8(z[l].lo, 0, dst + 18 * l);
            vstore8(z[l].hi, 0, dst + 18 * l + 9);
        }
        for (int l = 0; l < VW; l++) dst[9 * l + 8] = lw[8 * VW + l];
#else
        for (int l = 0; l < VW; l++) LOOP for (int k = 0; k < 9; k++) dst[9 * l + k] = lw[k * VW + l];
#endif
    }
}

#define FORMER(i) TILE2_FORMER(i, G, dst_ + i * NR)
#define STEP(i) TILE2_ADD(i, pu_[i], v0, v1)
#define PUT(i) TILE2_PUT(i, G, dst_ + i * NR)
#define DECL_NARROW(i) FV x##i = (FV)(0.0f);
#define FORMER_NARROW(i) x##i += GLOAD(dst_ + i * VW);
#define STEP_NARROW(i) x##i = fma((FV)(pu_[i]), v0, x##i);
#define PUT_NARROW(i) GSTORE(x##i, dst_ + i * VW);

// dst[i*nr + l] = (more ? dst[i*nr + l] : 0) + sum_{c < n} pu[c*MR + i] * pv[c*nr + l], i < MR, l < nr. U is the space of pu.
#define PRODUCT(U, dst, pu, pv, n, more)                                                                     \
    {                                                                                                        \
        __global float *dst_ = dst;                                                                          \
        U const float *pu_ = pu;                                                                             \
        __global const float *pv_ = pv;                                                                      \
        if (nr == VW) {                                                                                      \
            TILE_ROWS(MR, DECL_NARROW)                                                                       \
            for (int c = 0; c < n; c++, pu_ += MR, pv_ += VW) {                                              \
                FV v0 = GLOAD(pv_);                                                                          \
                TILE_ROWS(MR, STEP_NARROW)                                                                   \
            }                                                                                                \
            if (more) {                                                                                      \
                TILE_ROWS(MR, FORMER_NARROW)                                                                 \
            }                                                                                                \
            TILE_ROWS(MR, PUT_NARROW)                                                                        \
        } else {                                                                                             \
            TILE_ROWS(MR, TILE2_ZERO)                                                                        \
            for (int c = 0; c < n; c++, pu_ += MR, pv_ += NR) {                                              \
                FV v0 = GLOAD(pv_), v1 = GLOAD(pv_ + VW);                                                    \
                TILE_ROWS(MR, STEP)                                                                          \
            }                                                                                                \
            if (more) {                                                                                      \
                TILE_ROWS(MR, FORMER)                                                                        \
            }                                                                                                \
            TILE_ROWS(MR, PUT)                                                                               \
        }                                                                                                    \
    }

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
KERNEL(winograd_product)(__global float *restrict r, __global const float *restrict u,
                         __global const float *restrict v, int C, int MP, int us, int vs, int rs, int nr,
                         int bn, int per) {
    int tasks = (bn + per - 1) / per, e = (int)get_group_id(0) / tasks, s = (int)get_group_id(0) % tasks;
    if (e >= 36) return;
    // A panel of u stays in the first cache while the blocks of v go by.
    for (int p = 0; p < MP; p++)
        for (int b = s * per; b < min(bn, (s + 1) * per); b++)
            for (int c0 = 0; c0 < C; c0 += KC)
                PRODUCT(__global, r + e * rs + (b * MP + p) * MR * nr, u + e * us + (p * C + c0) * MR,
                        v + e * vs + (b * C + c0) * nr, min(KC, C - c0), c0)
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
KERNEL(winograd_panel)(__global float *restrict r, __global const float *restrict weight,
                       __global const float *restrict v, int M, int C, int m_stride, int c_stride, int flip,
                       int vs, int rs, int nr, int bn, int per) {
    __local float lw[9 * VW], given[9 * KC * MR], lu[36 * US];
    int MP = (M + MR - 1) / MR, tasks = (bn + per - 1) / per, p = (int)get_group_id(0) / tasks,
        s = (int)get_group_id(0) % tasks;
    if (p >= MP) return;
    for (int c0 = 0; c0 < C; c0 += KC) {
        int n = min(KC, C - c0);
        KERNEL(winograd_chunk)(lu, given, lw, weight, M, m_stride, c_stride, flip, p, c0, n);
        for (int e = 0; e < 36; e++)
            for (int b = s * per; b < min(bn, (s + 1) * per); b++)
                PRODUCT(__local, r + e * rs + (b * MP + p) * MR * nr, lu + e * US,
                        v + e * vs + (b * C + c0) * nr, n, c0)
    }
}

// y = A' x: four of six.
#define TRANSFORM_A(y0, y1, y2, y3, x0, x1, x2, x3, x4, x5)                                                  \
    {                                                                                                        \
        POWERS                                                                                               \
        FV a_ = x1 + x2, b_ = x1 - x2, c_ = x3 + x4, d_ = x3 - x4;                                           \
        y0 = x0 + a_ + c_;                                                                                   \
        y1 = fma(p_, b_, q_ * d_);                                                                           \
        y2 = fma(p2_, a_, q2_ * c_);                                                                         \
        y3 = fma(p_ * p2_, b_, fma(q_ * q2_, d_, x5));                                                       \
    }

// The halves of two vectors, element by element in turn.
#define JOIN(low, high, a, b)                                                                                \
    FV low, high;                                                                                            \
    low.even = a.lo;                                                                                         \
    low.odd = b.lo;                                                                                          \
    high.even = a.hi;                                                                                        \
    high.odd = b.hi;

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
KERNEL(winograd_output)(__global T_OUT *restrict out, __global const float *restrict r,
                        __global const float *restrict bias, int N, int M, int OH, int OW, int TH, int TW,
                        int nr, int b0, int bn, int MP, int rs, int has_bias, int per EPILOGUE_PARAMS) {
    __local float rows[4 * 4 * NR]; // rows of the tiles' results, beside each other
    TASK(M)
    for (int m = s * per; m < min(M, (s + 1) * per); m++) {
        __global const float *src = r + (block * MP * MR + m) * nr;
        float add = has_bias ? bias[m] : 0.0f;
        EPILOGUE_CHANNEL(m);
        for (int l = 0; l < nr; l += VW) {
            FV y[24]; // four rows of six
            for (int j = 0; j < 6; j++) {
                FV x[6];
                for (int i = 0; i < 6; i++) {
                    PREFETCH(src + (6 * i + j) * rs + nr + l); // the next channel's
                    x[i] = GLOAD(src + (6 * i + j) * rs + l);
                }
                TRANSFORM_A(y[j], y[6 + j], y[12 + j], y[18 + j], x[0], x[1], x[2], x[3], x[4], x[5])
            }
            for (int a = 0; a < 4; a++) {
                FV z0, z1, z2, z3;
                TRANSFORM_A(z0, z1, z2, z3, y[6 * a], y[6 * a + 1], y[6 * a + 2], y[6 * a + 3], y[6 * a + 4],
                            y[6 * a + 5])
                JOIN(e0, e1, z0, z2)
                JOIN(o0, o1, z1, z3)
                JOIN(q0, q1, e0, o0)
                JOIN(q2, q3, e1, o1)
                __local float *dst = rows + a * 4 * NR + 4 * l;
                LSTORE(q0, dst);
                LSTORE(q1, dst + VW);
                LSTORE(q2, dst + 2 * VW);
                LSTORE(q3, dst + 3 * VW);
            }
        }
        for (int l = 0, t = (b0 + block) * nr, n = 0; l < nr && t < N * TH * TW; l += n, t += n) {
            int tx = t % TW, ty = t / TW % TH, image = t / TW / TH;
            n = min(TW - tx, nr - l);
            int width = min(4 * n, OW - 4 * tx);
            for (int a = 0; a < min(4, OH - 4 * ty); a++) {
                __local const float *row = rows + a * 4 * NR + 4 * l;
                __global T_OUT *dst = out + ((image * M + m) * OH + 4 * ty + a) * OW + 4 * tx;
                int b = 0;
                LOOP for (int k = 0; k < width; k += 16) { // the next channel's
                    EPILOGUE_PREFETCH(dst - out + OH * OW + k);
                    PREFETCH_STORE(dst + OH * OW + k);
                }
                for (; b + VW <= width; b += VW) {
                    FV value = LLOAD(row + b) + add;
                    TSTORE(T_OUT, KERNEL(epilogue_vector)(value EPILOGUE_VECTOR_AT(VW, dst - out + b)),
                           dst + b);
                }
                for (; b + HALF <= width; b += HALF) {
                    HV value = PASTE(vload, HALF)(0, row + b) + add;
                    VSTORE(T_OUT, HALF, KERNEL(epilogue_half)(value EPILOGUE_VECTOR_AT(HALF, dst - out + b)),
                           dst + b);
                }
                LOOP for (; b < width; b++) {
                    float value = row[b] + add;
                    STORE(T_OUT, KERNEL(epilogue)(value EPILOGUE_AT(dst - out + b)), dst + b);
                }
            }
        }
    }
}
