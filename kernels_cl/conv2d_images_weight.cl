// SPDX-License-Identifier: Apache-2.0
//
// The gradient of a convolution by its weights where images are small, one group: the lanes of a vector are input channels. So a
// tap that lies outside of the image costs nothing, where most do (of 3x3 on 2x2 images 20 of 36), and no sum is shorter than
// a result's channel of the whole batch. For CPU-class devices. With x [N][C][H][W] and dy [N][M][OH][OW]:
//
//   dw[m][c][k] = sum_{n,o} dy[n][m][o] * x[n][c][i(o,k)]        k = r*KW + s < K, o = oy*OW + ox < P
//
// over the pixels o for which i(o,k) is inside of the image: iy = oy*sh - ph + r*dh, and ix likewise. Such o and i are a pair.
//
// Channels go in blocks of nr, an argument: VW or 2*VW. For one tap after the other a register tile holds MR rows m by a block of
// channels; images n are added to it in order, and the pairs of the tap in the order of o. Sums run in f32.
//
// Entries: work-group 1, one work-item a task
//   images_channels  task = b*N + n: xt[((b*N + n)*H*W + i)*nr + l] = x[n][b*nr + l][i], 0 past the last channel
//   images_weight    task = p*ceil(B/per) + s: dw of rows [p*MR, (p+1)*MR) and per of the B blocks of channels. It lists the pairs of
//                    all taps, at most PAIRS; puts dy of its rows together, N*P*MR <= AL; and keeps sums of all taps of a block
//                    until they can be stored side by side: K <= KL
//
// Macros
//   T_X, T_DY      how x and dy are stored, float, f16 or bf16; default float
//   VW             lanes of a vector: 4, 8 or 16; default 16
//   MR             rows of the register tile, two vectors wide: 4 or 8; default 8 for VW 16, else 4
//   AL, KL, PAIRS  local arrays: elements of dy, taps, pairs; default 20480, 25, 2048
#define T_X float
#define T_DY float
#define VW 16
#if VW == 16
#define MR 8
#else
#define MR 4
#endif
#define AL 20480
#define KL 25
#define PAIRS 2048

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
KERNEL(images_channels)(__global float *restrict xt, __global const T_X *restrict x, int N, int C, int P,
                        int nr) {
    int b = (int)get_group_id(0) / N, n = (int)get_group_id(0) % N;
    if (b * nr >= C) return;
    int live = min(nr, C - b * nr);
    xt += (b * N + n) * P * nr;
    x += (n * C + b * nr) * P;
    int i = 0;
    for (; live == nr && i + VW <= P; i += VW) {
        LOOP for (int l = 0; l < nr; l += TRANSPOSE_ROWS(VW)) {
            FV r[TRANSPOSE_ROWS(VW)], t[TRANSPOSE_ROWS(VW)];
            UNROLL for (int j = 0; j < TRANSPOSE_ROWS(VW); j++) r[j] = VLOAD(T_X, VW, x + (l + j) * P + i);
            TRANSPOSE(TRANSPOSE_ROWS(VW), r, t)
            PUT_COLUMNS(VW, r, xt + i * nr + l, nr)
        }
    }
    for (; i < P; i++) {
        LOOP for (int l = 0; l < live; l++) xt[i * nr + l] = LOAD(T_X, x + l * P + i);
        LOOP for (int l = live; l < nr; l++) xt[i * nr + l] = 0.0f;
    }
}

#define STEP(i) TILE2_ADD(i, pa[i], b0, b1)
#define PUT(i) TILE2_PUT(i, L, sums + i * row)
#define DECL_NARROW(i) FV x##i = (FV)(0.0f);
#define STEP_NARROW(i) x##i = fma((FV)(pa[i]), b0, x##i);
#define PUT_NARROW(i) LSTORE(x##i, sums + i * row);

// Of one tap and a block of nr channels: the sums of row i at sums + i*row. Pair j is of dy at a + ps[2*j] and x at xt + ps[2*j + 1],
// the next image a_step and x_step further on.
static void KERNEL(images_weight_sums)(__local float *sums, int row, __local const float *a,
                                       __global const float *xt, __local const int *ps, int n_pairs, int N,
                                       int a_step, int x_step, int nr) {
    if (nr == VW) {
        TILE_ROWS(MR, DECL_NARROW) for (int n = 0; n < N; n++) {
            for (int j = 0; j < n_pairs; j++) {
                __local const float *pa = a + ps[2 * j];
                FV b0 = GLOAD(xt + ps[2 * j + 1]);
                TILE_ROWS(MR, STEP_NARROW)
            }
            a += a_step;
            xt += x_step;
        }
        TILE_ROWS(MR, PUT_NARROW) return;
    }
    TILE_ROWS(MR, TILE2_ZERO) for (int n = 0; n < N; n++) {
        for (int j = 0; j < n_pairs; j++) {
            __local const float *pa = a + ps[2 * j];
            FV b0 = GLOAD(xt + ps[2 * j + 1]), b1 = GLOAD(xt + ps[2 * j + 1] + VW);
            TILE_ROWS(MR, STEP)
        }
        a += a_step;
        xt += x_step;
    }
    TILE_ROWS(MR, PUT)
}

// The nine taps of two channels.
#define PUT_PAIR(i, first, second)                                                                           \
    vstore16((FV)(r[i].lo, last.s##first, r[i].s89ab, r[i].scde), 0, dst + (c + 2 * i) * 9);                 \
    vstore2((float2)(r[i].sf, last.s##second), 0, dst + (c + 2 * i) * 9 + 16);

// dst[c*K + k] = sums[k*nr + c] for c < channels.
static void KERNEL(images_weight_store)(__global float *dst, __local const float *sums, int K, int nr,
                                        int channels) {
    int c = 0;
    for (; K == 1 && c + VW <= channels; c += VW) PASTE(vstore, VW)(LLOAD(sums + c), 0, dst + c);
#if VW == 16
    for (; K == 9 && c + VW <= channels; c += VW) { // eight of nine taps as a square, and the last
        FV r[8], t[8], last = LLOAD(sums + 8 * nr + c);
        UNROLL for (int k = 0; k < 8; k++) r[k] = LLOAD(sums + k * nr + c);
        TRANSPOSE(8, r, t)
        PUT_PAIR(0, 0, 1) PUT_PAIR(1, 2, 3) PUT_PAIR(2, 4, 5) PUT_PAIR(3, 6, 7)
        PUT_PAIR(4, 8, 9) PUT_PAIR(5, a, b) PUT_PAIR(6, c, d) PUT_PAIR(7, e, f)
    }
#endif
    for (; c < channels; c++) LOOP for (int k = 0; k < K; k++) dst[c * K + k] = sums[k * nr + c];
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
KERNEL(images_weight)(__global float *restrict dw, __global const T_DY *restrict dy,
                      __global const float *restrict xt, int N, int C, int H, int W, int M, int OH, int OW,
                      int KH, int KW, int sh, int sw, int ph, int pw, int dh, int dilation_w, int nr,
                      int per) {
    __local float a[AL], sums[2 * VW * MR * KL];
    __local int pairs[2 * PAIRS], first[KL + 1];
    int blocks = (C + nr - 1) / nr, splits = (blocks + per - 1) / per, K = KH * KW, P = OH * OW;
    int m0 = (int)get_group_id(0) / splits * MR, from = (int)get_group_id(0) % splits * per;
    if (m0 >= M) return;
    int rows = min(MR, M - m0), found = 0;
    for (int k = 0; k < K; k++) {
        first[k] = found;
        for (int o = 0; o < P; o++) {
            int iy = o / OW * sh - ph + k / KW * dh, ix = o % OW * sw - pw + k % KW * dilation_w;
            if (iy < 0 || iy >= H || ix < 0 || ix >= W) continue;
            pairs[2 * found] = o * MR;
            pairs[2 * found + 1] = (iy * W + ix) * nr;
            found++;
        }
    }
    first[K] = found;
    for (int n = 0; n < N; n++) {
        __global const T_DY *src = dy + (n * M + m0) * P;
        __local float *dst = a + n * P * MR;
        for (int l = 0; l < rows; l++)
            LOOP for (int o = 0; o < P; o++) dst[o * MR + l] = LOAD(T_DY, src + l * P + o);
        for (int l = rows; l < MR; l++) LOOP for (int o = 0; o < P; o++) dst[o * MR + l] = 0.0f;
    }
    for (int b = from; b < min(blocks, from + per); b++) {
        for (int k = 0; k < K; k++) {
            // While sums are made, lines come that they will be stored to: a K-th of each row's.
            for (int l = 0; l < rows; l++)
                for (int i = 0; i < nr; i += 16)
                    PREFETCH_STORE(dw + ((m0 + l) * C + b * nr) * K + k * nr + i);
            KERNEL(images_weight_sums)
            (sums + k * nr, K * nr, a, xt + b * N * H * W * nr, pairs + 2 * first[k], first[k + 1] - first[k],
             N, P * MR, H * W * nr, nr);
        }
        for (int l = 0; l < rows; l++) KERNEL(images_weight_store)
        (dw + ((m0 + l) * C + b * nr) * K, sums + l * K * nr, K, nr, min(nr, C - b * nr));
    }
}
