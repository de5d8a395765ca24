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
// and ix likewise. Images go in groups of nr, an argument: VW or 2*VW. Sums run in f32, over c and then k.
//
// Entries: work-group 1, one work-item a task
//   images_input    task = g*ceil(C/per) + s: t[((g*C + c)*H*W + i)*nr + l] = in[g*nr + l][c][i], 0 past the last image, for per
//                   channels c
//   images_product  task = g*ceil(M/MR) + p: out of the images of group g, channels of panel p, [p*MR, (p+1)*MR), whose weights it
//                   puts together in local memory: C*K*MR <= WL. K <= KL
//
// Macros
//   KERNEL(name)  how entries and helpers are named; default name
//   T_IN, T_OUT   how in and out are stored, float, f16 or bf16; default float
//   EPI_*         the epilogue of images_product, common/epilogue.cl; default none
//   VW            lanes of a vector: 4, 8 or 16; default 16
//   MR            rows of the register tile, up to two vectors wide: 4 or 8; default 8 for VW 16, else 4
//   WL, KL        local arrays, in elements of 4 bytes: a panel's weights, taps of a pixel; default 40960, 64

#ifndef KERNEL
#define KERNEL(name) name
#endif
#ifndef T_IN
#define T_IN float
#endif
#ifndef T_OUT
#define T_OUT float
#endif
#ifndef VW
#define VW 16
#endif
#ifndef MR
#if VW == 16
#define MR 8
#else
#define MR 4
#endif
#endif
#ifndef WL
#define WL 40960
#endif
#ifndef KL
#define KL 64
#endif

#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
#define FV CAT(float, VW)
// Vectors at any multiple of 4 bytes; as in conv2d.cl.
#ifdef __clang__
typedef FV __attribute__((aligned(4))) KERNEL(images_vector);
#define GLOAD(p) (*(__global const KERNEL(images_vector) *)(p))
#define LSTORE(v, p) (*(__local KERNEL(images_vector) *)(p) = (v))
#else
#define GLOAD(p) CAT(vload, VW)(0, p)
#define LSTORE(v, p) CAT(vstore, VW)(v, 0, p)
#endif
EPILOGUE_FUNCTION(KERNEL(epilogue), float)
#define LOOP _Pragma("clang loop vectorize(disable) unroll(disable)")

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

// w[(c*K + k)*MR + l] = weight[l*m_stride + c*c_stride + k] for l < rows, else 0.
static void KERNEL(images_panel)(__local float *w, __global const float *weight, int C, int K, int m_stride,
                                 int c_stride, int rows) {
    int c = 0;
#if VW == 16 && MR == 8
    if (rows == MR && c_stride == K) { // rows as they lie in memory: transpose
        int k = 0;
        for (; k + VW <= C * K; k += VW) {
            FV r[8], t[8];
            UNROLL for (int l = 0; l < 8; l++) r[l] = GLOAD(weight + l * m_stride + k);
            TRANSPOSE(8, r, t)
            UNROLL for (int l = 0; l < 8; l++) LSTORE(r[l], w + k * MR + l * VW);
        }
        for (; k < C * K; k++) LOOP for (int l = 0; l < MR; l++) w[k * MR + l] = weight[l * m_stride + k];
        return;
    }
    for (; rows == MR && K == 9 && c + 2 <= C;
         c += 2) { // two channels' squares of eight by eight, and a column
        FV r[8], t[8];
        __global const float *src = weight + c * c_stride;
        __local float *dst = w + c * 9 * MR;
        UNROLL for (int l = 0; l < 8; l++) {
            r[l].even = vload8(0, src + l * m_stride);
            r[l].odd = vload8(0, src + l * m_stride + c_stride);
            dst[8 * MR + l] = src[l * m_stride + 8];
            dst[17 * MR + l] = src[l * m_stride + c_stride + 8];
        }
        TRANSPOSE(8, r, t)
        UNROLL for (int k = 0; k < 8; k++) {
            vstore8(r[k].lo, 0, dst + k * MR);
            vstore8(r[k].hi, 0, dst + (9 + k) * MR);
        }
    }
#endif
    for (; c < C; c++)
        for (int k = 0; k < K; k++)
            LOOP for (int l = 0; l < MR; l++) w[(c * K + k) * MR + l] =
                l < rows ? weight[l * m_stride + c * c_stride + k] : 0.0f;
}

// The pixel at distance from `at` that tap r reads, -1: none.
static int KERNEL(images_pixel)(int at, int r, int stride, int padding, int dilation, int size, int back) {
    int i = back ? at + padding - r * dilation : at * stride - padding + r * dilation;
    if (back) {
        if (i % stride != 0) return -1;
        i /= stride;
    }
    return i >= 0 && i < size ? i : -1;
}

#define ROWS4(X) X(0) X(1) X(2) X(3)
#define ROWS8(X) ROWS4(X) X(4) X(5) X(6) X(7)
#define DECL(i) FV x##i = (FV)(0.0f), y##i = (FV)(0.0f);
#define STEP(i)                                                                                              \
    {                                                                                                        \
        FV v = (FV)(pw[i]);                                                                                  \
        x##i = fma(v, v0, x##i);                                                                             \
        y##i = fma(v, v1, y##i);                                                                             \
    }
#define PUT(i)                                                                                               \
    LSTORE(x##i, sums + 2 * i * VW);                                                                         \
    LSTORE(y##i, sums + (2 * i + 1) * VW);
#define DECL_NARROW(i) FV x##i = (FV)(0.0f);
#define STEP_NARROW(i) x##i = fma((FV)(pw[i]), v0, x##i);
#define PUT_NARROW(i) LSTORE(x##i, sums + 2 * i * VW);

// sums[MR][2*VW] over C channels and n taps: weights at w + taps[j], pixels at t + pixels[j].
static void KERNEL(images_sums)(__local float *sums, __local const float *w, __global const float *t,
                                __local const int *taps, __local const int *pixels, int n, int C, int w_step,
                                int t_step, int nr) {
    if (nr == VW) {
        CAT(ROWS, MR)(DECL_NARROW) for (int c = 0; c < C; c++) {
            for (int j = 0; j < n; j++) {
                __local const float *pw = w + taps[j];
                FV v0 = GLOAD(t + pixels[j]);
                CAT(ROWS, MR)(STEP_NARROW)
            }
            w += w_step;
            t += t_step;
        }
        CAT(ROWS, MR)(PUT_NARROW) return;
    }
    CAT(ROWS, MR)(DECL) for (int c = 0; c < C; c++) {
        for (int j = 0; j < n; j++) {
            __local const float *pw = w + taps[j];
            FV v0 = GLOAD(t + pixels[j]), v1 = GLOAD(t + pixels[j] + VW);
            CAT(ROWS, MR)(STEP)
        }
        w += w_step;
        t += t_step;
    }
    CAT(ROWS, MR)(PUT)
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
KERNEL(images_product)(__global T_OUT *restrict out, __global const float *restrict t,
                       __global const float *restrict weight, __global const float *restrict bias, int N,
                       int C, int H, int W, int M, int OH, int OW, int KH, int KW, int sh, int sw, int ph,
                       int pw, int dh, int dw, int m_stride, int c_stride, int back, int nr,
                       int has_bias EPILOGUE_PARAMS) {
    __local float w[WL];
    __local float sums[2 * MR * VW];
    __local int taps[KL], pixels[KL];
    int panels = (M + MR - 1) / MR, g = (int)get_group_id(0) / panels,
        m0 = (int)get_group_id(0) % panels * MR;
    if (g * nr >= N) return;
    int rows = min(MR, M - m0), images = min(nr, N - g * nr), P = OH * OW;
    KERNEL(images_panel)(w, weight + m0 * m_stride, C, KH * KW, m_stride, c_stride, rows);
    for (int o = 0; o < P; o++) {
        int n = 0;
        for (int k = 0; k < KH * KW; k++) {
            int iy = KERNEL(images_pixel)(o / OW, k / KW, sh, ph, dh, H, back),
                ix = KERNEL(images_pixel)(o % OW, k % KW, sw, pw, dw, W, back);
            if (iy < 0 || ix < 0) continue;
            taps[n] = k * MR;
            pixels[n++] = (iy * W + ix) * nr;
        }
        KERNEL(images_sums)
        (sums, w, t + g * C * H * W * nr, taps, pixels, n, C, KH * KW * MR, H * W * nr, nr);
        for (int i = 0; i < rows; i++) {
            float add = has_bias ? bias[m0 + i] : 0.0f;
            EPILOGUE_CHANNEL(m0 + i);
            LOOP for (int l = 0; l < images; l++) {
                int at = ((g * nr + l) * M + m0 + i) * P + o;
                float v = sums[2 * i * VW + l] + add;
                STORE(T_OUT, KERNEL(epilogue)(v EPILOGUE_AT(at)), out + at);
            }
        }
    }
}

#undef CAT_
#undef CAT
#undef FV
#undef GLOAD
#undef LSTORE
#undef LOOP
#undef ROWS4
#undef ROWS8
#undef DECL
#undef STEP
#undef PUT
#undef DECL_NARROW
#undef STEP_NARROW
#undef PUT_NARROW
