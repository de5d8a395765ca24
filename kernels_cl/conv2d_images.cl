// SPDX-License-Identifier: Apache-2.0
//
// Convolution of many small images, and its gradient by the input, one group: the lanes of a vector are images. So a tap that
// lies outside of the image costs nothing, where most do (of 3x3 on 2x2 images 20 of 36), and no lane is empty between rows.
// For CPU-class devices. With in [N][C][H][W], out [N][M][OH][OW]:
//
//   out[n][m][o] = epilogue( bias[m] + sum_{c,k} in[n][c][i(o,k)] * weight[m*m_stride + c*c_stride + k] )
//
// over the taps k = r*KW + s < K for which the pixel i(o,k) is inside of the image:
//
//   forward          iy = oy*sh - ph + r*dh                      the weights [M][C][KH][KW]
//   back = 1         iy = (oy + ph - r*dh) / sh, if that divides  the weights [C][M][KH][KW]
//
// and ix likewise. Images go in groups of nr, an argument: VW or 2*VW. Sums run in f32, over blocks of c, k in them, and c in these.
//
// Entries: work-group 1, one work-item a task
//   images_input    task = g*ceil(C/per) + s: t[((g*C + c)*H*W + i)*nr + l] = in[g*nr + l][c][i], 0 past the last image, for per
//                   channels c
//   images_product  task: out of the images of a group, channels of panel p, [p*MR, (p+1)*MR), panels of a group one after the
//                   other, for gb groups together. K <= KL, MR*K*cb <= WL
//   images_whole    task: all pixels out of the images of group g = task % groups, nr = VW, channels of panel p = task / groups,
//                   [p*WR, (p+1)*WR). Sums run over c, k in c. m_stride, c_stride as above
//
// A register tile of images_product is MR channels by two vectors, which are two of a group's images or, where a group is one, two
// pixels. Of these the taps that both have come first: a weight, broadcast, goes with both vectors. So pixels pair with the next one
// that meets the same taps, which backwards is a stride away. The input's channels come in blocks of cb, so that their weights and
// images stay in the nearest cache for all pixels and taps; the sums of up to OL tiles wait in local memory. A block's weights are
// copied there in runs as they lie in memory: put into the order in which they are read, they would cost about as much as the
// products of a group. Each copied line asks for that of the next panel, whose turn comes when this one's products are done.
//
// That of images_whole is WR channels by all pixels, for which all sizes are constants: which taps meet is known when it is compiled, so
// there are neither lists nor short loops. Each weight is read once, from where it lies, and each image once for a panel.
//
// Macros
//   T_IN, T_OUT   how in and out are stored, float, f16 or bf16; default float
//   EPI_*         the epilogue of what stores, common/epilogue.cl; default none
//   VW            lanes of a vector: 4, 8 or 16; default 16
//   MR            rows of the register tile: 4 or 8; default 8 for VW 16, else 4
//   OL, KL, WL    local arrays: tiles whose sums are kept, taps of a pixel, weights of a block; default 16, 64, 6144
// and of images_whole
//   WR            channels of the register tile; default 4
//   WIH, WIW      H and W; default 2
//   WOH, WOW      OH and OW; default 2
//   WKH, WKW      KH and KW; default 3
//   WSH, WSW, WPH, WPW, WDH, WDW  strides, padding, dilation; default 1
//   WBACK         back; default 0

#define T_IN float
#define T_OUT float
#define VW 16
#if VW == 16
#define MR 8
#else
#define MR 4
#endif
#define OL 16
#define KL 64
#define WL 6144

#define WR 4
#define WIH 2
#define WIW 2
#define WOH 2
#define WOW 2
#define WKH 3
#define WKW 3
#define WSH 1
#define WSW 1
#define WPH 1
#define WPW 1
#define WDH 1
#define WDW 1
#define WBACK 0

EPILOGUE_FUNCTION(KERNEL(epilogue), float)

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
KERNEL(images_input)(__global float *restrict t, __global const T_IN *restrict in, int N, int C, int P,
                     int nr, int per) {
    int c_tasks = (C + per - 1) / per, g = (int)get_group_id(0) / c_tasks, s = (int)get_group_id(0) % c_tasks;
    if (g * nr >= N) return;
    int first = s * per * P, end = min(C, (s + 1) * per) * P;
    t += g * C * P * nr;
    for (int l = 0; l < nr; l++) {
        __global const T_IN *src = in + (g * nr + l) * C * P;
        int live = g * nr + l < N;
        LOOP for (int i = first; i < end; i++) t[i * nr + l] = live ? LOAD(T_IN, src + i) : 0.0f;
    }
}

// dst[i] = src[i], i < n; src[i + next] will be wanted later.
static void KERNEL(images_copy)(__local float *dst, __global const float *src, int n, int next) {
    int i = 0;
    LOOP for (; i + VW <= n; i += VW) {
        PREFETCH(src + i + next);
        LSTORE(GLOAD(src + i), dst + i);
    }
    if (i < n && n >= VW)
        LSTORE(GLOAD(src + n - VW), dst + n - VW);
    else
        LOOP for (; i < n; i++) dst[i] = src[i];
}

// Which column is the i-th of W, those apart by whole strides d one after the other.
static int KERNEL(images_column)(int i, int W, int d) {
    int phase = 0;
    for (int n = (W + d - 1) / d; i >= n; n = (W - phase + d - 1) / d) {
        i -= n;
        phase++;
    }
    return i * d + phase;
}

// The pixel at distance from `at` that tap r reads, -1: none.
static int KERNEL(images_pixel)(int at, int r, int stride, int padding, int dilation, int size, int back) {
    int i = back ? at + padding - r * dilation : at * stride - padding + r * dilation;
    if (back && stride != 1) {
        if (i % stride != 0) return -1;
        i /= stride;
    }
    return i >= 0 && i < size ? i : -1;
}

#define GET(i)                                                                                               \
    FV x##i = first ? (FV)(0.0f) : LLOAD(sums + 2 * i * VW),                                                 \
       y##i = first ? (FV)(0.0f) : LLOAD(sums + (2 * i + 1) * VW);
#define BOTH(i) TILE2_ADD(i, p##i[0], v0, v1)
#define ONE_X(i) x##i = fma((FV)(p##i[0]), v0, x##i);
#define ONE_Y(i) y##i = fma((FV)(p##i[0]), v0, y##i);
#define FROM(i) __local const float *p##i = w + tap + i * m_stride;
#define NEXT(i) p##i += c_stride;
#define PUT(i) TILE2_PUT(i, L, sums + 2 * i * VW)

// sums[MR][2][VW] over C channels: of n[0] taps both, of n[1] the first, of n[2] the second. A tap is where its weight is, past w,
// and where the vectors are, past t.
static void KERNEL(images_sums)(__local float *sums, __local const float *w, __global const float *t,
                                __local const int *taps, __local const int *n, int C, clv_offset m_stride,
                                clv_offset c_stride, clv_offset t_step, int first) {
    TILE_ROWS(MR, GET) for (int j = 0; j < n[0]; j++) {
        int tap = taps[3 * j];
        __global const float *t0 = t + taps[3 * j + 1], *t1 = t + taps[3 * j + 2];
        TILE_ROWS(MR, FROM) LOOP for (int c = 0; c < C; c++) {
            FV v0 = GLOAD(t0), v1 = GLOAD(t1);
            TILE_ROWS(MR, BOTH) TILE_ROWS(MR, NEXT) t0 += t_step;
            t1 += t_step;
        }
    }
    for (int j = 0; j < n[1]; j++) {
        int tap = taps[3 * (KL + j)];
        __global const float *t0 = t + taps[3 * (KL + j) + 1];
        TILE_ROWS(MR, FROM) LOOP for (int c = 0; c < C; c++) {
            FV v0 = GLOAD(t0);
            TILE_ROWS(MR, ONE_X) TILE_ROWS(MR, NEXT) t0 += t_step;
        }
    }
    for (int j = 0; j < n[2]; j++) {
        int tap = taps[3 * (2 * KL + j)];
        __global const float *t0 = t + taps[3 * (2 * KL + j) + 2];
        TILE_ROWS(MR, FROM) LOOP for (int c = 0; c < C; c++) {
            FV v0 = GLOAD(t0);
            TILE_ROWS(MR, ONE_Y) TILE_ROWS(MR, NEXT) t0 += t_step;
        }
    }
    TILE_ROWS(MR, PUT)
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
KERNEL(images_product)(__global T_OUT *restrict out, __global const float *restrict t,
                       __global const float *restrict weight, __global const float *restrict bias, int N,
                       int C, int H, int W, int M, int OH, int OW, int KH, int KW, int sh, int sw, int ph,
                       int pw, int dh, int dw, int m_stride, int c_stride, int back, int nr, int gb, int cb,
                       int has_bias EPILOGUE_PARAMS) {
    __local float w[WL], sums[OL * MR * 2 * VW];
    __local int at[2 * OL], n[3 * OL], taps[3 * KL * 3 * OL];
    int groups = (N + nr - 1) / nr, panels = (M + MR - 1) / MR, K = KH * KW, P = OH * OW,
        first_group = (int)get_group_id(0) / (panels * gb) * gb, task = (int)get_group_id(0) % (panels * gb);
    if (first_group >= groups) return;
    int together = min(gb, groups - first_group), g = first_group + task % together,
        m0 = task / together * MR, rows = min(MR, M - m0), images = min(nr, N - g * nr);
    int each = nr == VW ? 2 : 1, tiles = (P + each - 1) / each; // pixels of a tile
    t += g * C * H * W * nr;
    weight += m0 * m_stride;
    for (int q0 = 0; q0 < tiles; q0 += OL) {
        int here = min(OL, tiles - q0), pixels = min(each * here, P - each * q0);
        for (int o = 0; o < pixels; o++) {
            int i = each * q0 + o, y = i / OW;
            at[o] = y * OW + KERNEL(images_column)(i - y * OW, OW, back ? sw : 1);
        }
        for (int q = 0; q < here; q++) {
            __local int *count = n + 3 * q;
            int o0 = at[each * q],
                o1 = each == 1               ? o0
                     : each * q + 1 < pixels ? at[each * q + 1]
                                             : -1,
                y0 = o0 / OW, y1 = o1 / OW, k = 0;
            count[0] = count[1] = count[2] = 0;
            for (int r = 0; r < KH; r++) {
                int iy0 = KERNEL(images_pixel)(y0, r, sh, ph, dh, H, back),
                    iy1 = o1 < 0 ? -1 : KERNEL(images_pixel)(y1, r, sh, ph, dh, H, back);
                for (int s = 0; s < KW; s++, k++) {
                    int ix0 = KERNEL(images_pixel)(o0 - y0 * OW, s, sw, pw, dw, W, back),
                        ix1 = KERNEL(images_pixel)(o1 - y1 * OW, s, sw, pw, dw, W, back);
                    int has0 = iy0 >= 0 && ix0 >= 0, has1 = iy1 >= 0 && ix1 >= 0;
                    if (!has0 && !has1) continue;
                    int which = has0 && has1 ? 0 : has0 ? 1 : 2;
                    __local int *tap = taps + 3 * ((3 * q + which) * KL + count[which]++);
                    tap[0] = k;
                    tap[1] = (iy0 * W + ix0) * nr;
                    tap[2] = (iy1 * W + ix1) * nr + (each == 1 ? VW : 0);
                }
            }
        }
        for (int c = 0; c < C; c += cb) {
            int channels = min(cb, C - c), w_row = back ? K : cb * K, w_channel = back ? MR * K : K;
            if (back)
                for (int i = 0; i < channels; i++)
                    KERNEL(images_copy)(w + i * MR * K, weight + (c + i) * c_stride, rows * K, MR * m_stride);
            else
                for (int i = 0; i < rows; i++)
                    KERNEL(images_copy)
                    (w + i * cb * K, weight + i * m_stride + c * c_stride, channels * K, MR * m_stride);
            for (int q = 0; q < here; q++) KERNEL(images_sums)
            (sums + q * MR * 2 * VW, w, t + c * H * W * nr, taps + 9 * q * KL, n + 3 * q, channels, w_row,
             w_channel, H * W * nr, c == 0);
        }
        for (int l = 0; l < images; l++)
            for (int i = 0; i < rows; i++) {
                float add = has_bias ? bias[m0 + i] : 0.0f;
                EPILOGUE_CHANNEL(m0 + i);
                LOOP for (int o = 0; o < pixels; o++) {
                    int to = ((g * nr + l) * M + m0 + i) * P + at[o];
                    float v = sums[(o / each * MR + i) * 2 * VW + o % each * VW + l] + add;
                    STORE(T_OUT, KERNEL(epilogue)(v EPILOGUE_AT(to)), out + to);
                }
            }
    }
}

#define WP (WOH * WOW)
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
KERNEL(images_whole)(__global T_OUT *restrict out, __global const float *restrict t,
                     __global const float *restrict weight, __global const float *restrict bias, int N, int C,
                     int M, int m_stride, int c_stride, int has_bias EPILOGUE_PARAMS) {
    enum { AHEAD = 24, TAPS = WKH * WKW }; // channels after which a weight is wanted that is asked for
    __local float sums[WR * WP * VW];
    int groups = (N + VW - 1) / VW, g = (int)get_group_id(0) % groups,
        m0 = (int)get_group_id(0) / groups * WR;
    if (m0 >= M) return;
    int rows = min(WR, M - m0), images = min(VW, N - g * VW);
    t += g * C * WIH * WIW * VW;
    __global const float *w[WR];
    UNROLL for (int m = 0; m < WR; m++) w[m] = weight + (m0 + min(m, rows - 1)) * m_stride;
    FV acc[WR * WP];
    UNROLL for (int i = 0; i < WR * WP; i++) acc[i] = (FV)(0.0f);
    clv_offset at = 0;
    LOOP for (int c = 0; c < C; c++) {
        // The first of the next panel's after the last of this one's.
        clv_offset later = (clv_offset)(c + AHEAD) * c_stride;
        if (c + AHEAD >= C) later += WR * m_stride - (clv_offset)C * c_stride;
        if (WBACK) {
            UNROLL for (int i = 0; i < WR * TAPS - 1; i += 16) PREFETCH(w[0] + later + i);
            PREFETCH(w[0] + later + WR * TAPS - 1);
        } else {
            UNROLL for (int m = 0; m < WR; m++) PREFETCH(w[m] + later);
        }
        UNROLL for (int k = 0; k < TAPS; k++) {
            FV v[WR];
            UNROLL for (int m = 0; m < WR; m++) v[m] = (FV)(w[m][at + k]);
            UNROLL for (int o = 0; o < WP; o++) {
                int iy = KERNEL(images_pixel)(o / WOW, k / WKW, WSH, WPH, WDH, WIH, WBACK),
                    ix = KERNEL(images_pixel)(o % WOW, k % WKW, WSW, WPW, WDW, WIW, WBACK);
                if (iy < 0 || ix < 0) continue;
                FV x = GLOAD(t + (iy * WIW + ix) * VW);
                UNROLL for (int m = 0; m < WR; m++) acc[m * WP + o] = fma(v[m], x, acc[m * WP + o]);
            }
        }
        at += c_stride;
        t += WIH * WIW * VW;
    }
    UNROLL for (int i = 0; i < WR * WP; i++) LSTORE(acc[i], sums + i * VW);
    for (int i = 0; i < rows; i++) {
        float add = has_bias ? bias[m0 + i] : 0.0f;
        EPILOGUE_CHANNEL(m0 + i);
        for (int l = 0; l < images; l++)
            LOOP for (int o = 0; o < WP; o++) {
                int to = ((g * VW + l) * M + m0 + i) * WP + o;
                float v = sums[(i * WP + o) * VW + l] + add;
                STORE(T_OUT, KERNEL(epilogue)(v EPILOGUE_AT(to)), out + to);
            }
    }
}
