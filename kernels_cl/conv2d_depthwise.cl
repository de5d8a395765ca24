// SPDX-License-Identifier: Apache-2.0
//
// Depthwise convolution and its gradients, for CPU-class devices: every group has one input and one output channel. Few
// flops an element, so what counts is to read and write each image once. A product (conv2d.cl's tiles) would compute a
// whole register tile of rows for the one that exists.
//
// An image is worked on in blocks of ab rows of results. The window of inputs behind a block is copied to local memory,
// padded with zeros, and each row's columns with the phases of the stride apart:
//
//   lx[((v%sh)*sw + u%sw)*plane + v/sh*PW + u/sw] = input row v, column u of the window
//
// so that the inputs which tap k = i*KW + j of neighbouring results meet are neighbours, off[k] on from each result's own
// place q = a*PW + b. A block is then one row of (ab-1)*PW + OW results, rows joined by PW - OW that nobody wants.
// PW = ceil(((OW-1)*sw + (KW-1)*dw + 1) / sw), PH the same of ab, KH, and plane = PH*PW.
//
// Entries: work-group 1, one work-item a task
//   conv2d_depthwise         task = get_group_id(0): images p of [task*per, (task+1)*per), p = n*G + g < P:
//                              out[p][a][b] = epilogue(bias[g] + sum_{i,j} in'[p][a*sh + y0 + i*dh][b*sw + x0 + j*dw] * w[g][i*KW + j])
//                            where in' is in with up-1 zeros between any two rows and columns, and zeros around. With up = 1
//                            the forward pass. With sh = sw = 1 and flip = 1, when tap k meets w[g][KH*KW - 1 - k], the gradient
//                            by the input: up is the forward stride then, a number for rows and one for columns.
//   conv2d_depthwise_weight  task = split*ceil(G/per) + t: channels g of [t*per, (t+1)*per), images n of [split*ns, (split+1)*ns):
//                              part[split][g][k] = sum_{n,a,b} dy[n][g][a][b] * x[n][g][a*sh + y0 + i*dh][b*sw + x0 + j*dw]
//                            dy lies in local memory as results do, with zeros in between. Vectors are added lane by lane
//                            within a block, then block by block, then lanes in order.
//
// Macros
//   T_IN, T_OUT   how tensors are stored, float, f16 or bf16; default float. IN: x, or dy of the gradient by the input; OUT:
//                 y, or its dx. The gradient by the weights reads x as IN and dy as OUT
//   EPI_*         the epilogue of conv2d_depthwise, common/epilogue.cl; default none
//   VW            lanes of a vector: 4, 8 or 16; default 16
//   XL, YL        local arrays in floats: sh*sw*plane + 4*VW <= XL, and ab*PW + 4*VW <= YL; default 6144, 4096
//   KL            most taps, default 128

#define T_IN float
#define T_OUT float
#define VW 16
#define XL 6144
#define YL 4096
#define KL 128

EPILOGUE_FUNCTION(KERNEL(epilogue), float)
EPILOGUE_FUNCTION(KERNEL(epilogue_vector), FV)

static void KERNEL(depthwise_zero)(__local float *dst, int n) {
    int i = 0;
    for (; i + VW <= n; i += VW) LSTORE((FV)(0.0f), dst + i);
    LOOP for (; i < n; i++) dst[i] = 0.0f;
}

// Columns u < n of a window's row: src[u] for lo <= u < hi, else 0. Column u goes to dst[u%sw*plane + u/sw].
static void KERNEL(depthwise_row)(__local float *dst, int plane, int sw, __global const T_IN *src, int lo,
                                  int hi, int n) {
    lo = min(lo, n);
    hi = max(min(hi, n), lo);
    int u = lo;
    if (sw == 1) {
        KERNEL(depthwise_zero)(dst, lo);
        for (; u + VW <= hi; u += VW) LSTORE(TLOAD(T_IN, src + u), dst + u);
        LOOP for (; u < hi; u++) dst[u] = LOAD(T_IN, src + u);
        KERNEL(depthwise_zero)(dst + hi, n - hi);
        return;
    }
    LOOP for (int z = 0; z < lo; z++) dst[z % sw * plane + z / sw] = 0.0f;
    if (sw == 2) {
        if (u % 2 && u < hi) {
            dst[plane + u / 2] = LOAD(T_IN, src + u);
            u++;
        }
        for (; u + 2 * VW <= hi; u += 2 * VW) {
            FV a = TLOAD(T_IN, src + u), b = TLOAD(T_IN, src + u + VW);
            EVEN_ODD(even, odd, a, b)
            LSTORE(even, dst + u / 2);
            LSTORE(odd, dst + plane + u / 2);
        }
    }
    LOOP for (; u < hi; u++) dst[u % sw * plane + u / sw] = LOAD(T_IN, src + u);
    LOOP for (; u < n; u++) dst[u % sw * plane + u / sw] = 0.0f;
}

// The window at row y0, column x0 of an image [H][W]: vn rows of n columns.
static void KERNEL(depthwise_window)(__local float *lx, int plane, int PW, __global const T_IN *in, int H,
                                     int W, int sh, int sw, int y0, int x0, int vn, int n) {
    for (int v = 0; v < vn; v++) {
        int iy = y0 + v, live = iy >= 0 && iy < H;
        KERNEL(depthwise_row)
        (lx + v % sh * sw * plane + v / sh * PW, plane, sw, in + (live ? iy : 0) * W + x0,
         live ? max(0, -x0) : n, live ? W - x0 : 0, n);
    }
}

// The same with uh-1 zero rows between any two of the image's, and uw-1 zero columns; of stride 1.
static void KERNEL(depthwise_spread)(__local float *lx, int PW, __global const T_IN *in, int H, int W, int uh,
                                     int uw, int y0, int x0, int vn, int n) {
    int first = x0 > 0 ? (x0 + uw - 1) / uw : 0;
    KERNEL(depthwise_zero)(lx, (vn - 1) * PW + n);
    for (int v = 0; v < vn; v++) {
        int iy = y0 + v;
        if (iy < 0 || iy % uh != 0 || iy / uh >= H) continue;
        __global const T_IN *src = in + iy / uh * W;
        __local float *dst = lx + v * PW - x0;
        LOOP for (int i = first; i < W && i * uw - x0 < n; i++) dst[i * uw] = LOAD(T_IN, src + i);
    }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
KERNEL(conv2d_depthwise)(__global T_OUT *restrict out, __global const T_IN *restrict in,
                         __global const float *restrict weight, __global const float *restrict bias, int P,
                         int G, int H, int W, int OH, int OW, int KH, int KW, int sh, int sw, int y0, int x0,
                         int dh, int dw, int uh, int uw, int flip, int has_bias, int per,
                         int ab EPILOGUE_PARAMS) {
    __local float lx[XL];
    __local float ly[YL];
    __local float lw[KL];
    __local int off[KL];
    int task = (int)get_group_id(0), taps = KH * KW;
    int PH = ((ab - 1) * sh + (KH - 1) * dh + sh) / sh, SW = (OW - 1) * sw + (KW - 1) * dw + 1,
        PW = (SW + sw - 1) / sw, plane = PH * PW;
    LOOP for (int k = 0; k < taps; k++) {
        int i = k / KW * dh, j = k % KW * dw;
        off[k] = (i % sh * sw + j % sw) * plane + i / sh * PW + j / sw;
    }
    for (int p = task * per; p < min(P, (task + 1) * per); p++) {
        int g = p % G;
        float add = has_bias ? bias[g] : 0.0f;
        EPILOGUE_CHANNEL(g);
        LOOP for (int k = 0; k < taps; k++) lw[k] = weight[g * taps + (flip ? taps - 1 - k : k)];
        for (int a0 = 0; a0 < OH; a0 += ab) {
            int an = min(ab, OH - a0), vn = (an - 1) * sh + (KH - 1) * dh + 1, Q = (an - 1) * PW + OW;
            if (uh * uw == 1) KERNEL(depthwise_window)
            (lx, plane, PW, in + p * H * W, H, W, sh, sw, a0 * sh + y0, x0, vn, SW);
            else KERNEL(depthwise_spread)(lx, PW, in + p * H * W, H, W, uh, uw, a0 + y0, x0, vn, SW);
            for (int q = 0; q < Q; q += 4 * VW) {
                FV s0 = (FV)(add), s1 = s0, s2 = s0, s3 = s0;
                for (int k = 0; k < taps; k++) {
                    __local const float *px = lx + off[k] + q;
                    FV w = (FV)(lw[k]);
                    s0 = fma(w, LLOAD(px), s0);
                    s1 = fma(w, LLOAD(px + VW), s1);
                    s2 = fma(w, LLOAD(px + 2 * VW), s2);
                    s3 = fma(w, LLOAD(px + 3 * VW), s3);
                }
                LSTORE(s0, ly + q);
                LSTORE(s1, ly + q + VW);
                LSTORE(s2, ly + q + 2 * VW);
                LSTORE(s3, ly + q + 3 * VW);
            }
            // Rows without anything in between are stored as one.
            int runs = PW == OW ? 1 : an, run = PW == OW ? an * OW : OW;
            for (int a = 0; a < runs; a++) {
                __global T_OUT *dst = out + (p * OH + a0 + a) * OW;
                __local const float *src = ly + a * PW;
                int b = 0;
                for (; b + VW <= run; b += VW) {
                    FV v = LLOAD(src + b);
                    TSTORE(T_OUT, KERNEL(epilogue_vector)(v EPILOGUE_VECTOR_AT(VW, dst - out + b)), dst + b);
                }
                LOOP for (; b < run; b++) {
                    float v = src[b];
                    STORE(T_OUT, KERNEL(epilogue)(v EPILOGUE_AT(dst - out + b)), dst + b);
                }
            }
        }
    }
}

#define DECL(i)                                                                                              \
    FV x##i = (FV)(0.0f);                                                                                    \
    __local const float *p##i = lx + off[min(k + i, taps - 1)];
#define STEP(i) x##i = fma(d, LLOAD(p##i + q), x##i);
#define KEEP(i)                                                                                              \
    if (k + i < taps) LSTORE(LLOAD(lt + (k + i) * VW) + x##i, lt + (k + i) * VW);

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
KERNEL(conv2d_depthwise_weight)(__global float *restrict part, __global const T_OUT *restrict dy,
                                __global const T_IN *restrict x, int N, int G, int H, int W, int OH, int OW,
                                int KH, int KW, int sh, int sw, int y0, int x0, int dh, int dw, int splits,
                                int ns, int per, int ab) {
    __local float lx[XL];
    __local float ld[YL];
    __local float lt[KL * VW];
    __local int off[KL];
    int tasks = (G + per - 1) / per, split = (int)get_group_id(0) / tasks, t = (int)get_group_id(0) % tasks;
    if (split >= splits) return;
    int taps = KH * KW, PH = ((ab - 1) * sh + (KH - 1) * dh + sh) / sh,
        SW = (OW - 1) * sw + (KW - 1) * dw + 1, PW = (SW + sw - 1) / sw, plane = PH * PW;
    LOOP for (int k = 0; k < taps; k++) {
        int i = k / KW * dh, j = k % KW * dw;
        off[k] = (i % sh * sw + j % sw) * plane + i / sh * PW + j / sw;
    }
    for (int g = t * per; g < min(G, (t + 1) * per); g++) {
        KERNEL(depthwise_zero)(lt, taps * VW);
        // What lies between rows and after the last is multiplied by 0: let it not be another channel's infinity.
        KERNEL(depthwise_zero)(lx, sh * sw * plane + VW);
        for (int n = split * ns; n < min(N, (split + 1) * ns); n++)
            for (int a0 = 0; a0 < OH; a0 += ab) {
                int an = min(ab, OH - a0), vn = (an - 1) * sh + (KH - 1) * dh + 1, Q = (an - 1) * PW + OW;
                KERNEL(depthwise_window)
                (lx, plane, PW, x + (n * G + g) * H * W, H, W, sh, sw, a0 * sh + y0, x0, vn, SW);
                for (int a = 0; a < an; a++) {
                    __global const T_OUT *src = dy + ((n * G + g) * OH + a0 + a) * OW;
                    __local float *dst = ld + a * PW;
                    int b = 0;
                    for (; b + VW <= OW; b += VW) LSTORE(TLOAD(T_OUT, src + b), dst + b);
                    LOOP for (; b < OW; b++) dst[b] = LOAD(T_OUT, src + b);
                    LOOP for (; b < PW; b++) dst[b] = 0.0f;
                }
                KERNEL(depthwise_zero)(ld + Q, VW);
                for (int k = 0; k < taps; k += 9) {
                    TILE_ROWS(9, DECL)
                    for (int q = 0; q < Q; q += VW) {
                        FV d = LLOAD(ld + q);
                        TILE_ROWS(9, STEP)
                    }
                    TILE_ROWS(9, KEEP)
                }
            }
        LOOP for (int k = 0; k < taps; k++) {
            float sum = 0.0f;
            LOOP for (int l = 0; l < VW; l++) sum += lt[k * VW + l];
            part[(split * G + g) * taps + k] = sum;
        }
    }
}
