// SPDX-License-Identifier: Apache-2.0
//
// Two-dimensional convolution (cross-correlation, as in PyTorch) and its gradients. x [N, G*C, H, W], weight
// [G*O, C, KH, KW], y [N, G*O, OH, OW], with G groups of C input and O output channels:
//
//   y[n][g,o][oy][ox] = epilogue( bias[g,o] +
//       sum_{c,r,s} x[n][g,c][oy*sh - ph + r*dh][ox*sw - pw + s*dw] * weight[g,o][c][r][s] )
//
// where x outside the image is 0. has_bias = 0 leaves the bias out (any valid buffer may stand for it). Sums
// run in f32; their order depends on the sizes only.
//
// Entries: plain, any work-group, no local memory, one work-item an element
//   conv2d_plain                  of y:  ((n*G*O + go)*OH + oy)*OW + ox = get_global_id(0)
//   conv2d_backward_input_plain   of dx: ((n*G*C + gc)*H + iy)*W + ix = get_global_id(0)
//   conv2d_backward_weight_plain  of part [chunks][D]: chunk*D + i = get_global_id(0), D = G*O*C*KH*KW,
//                                 i = ((go*C + c)*KH + r)*KW + s; sums the rows n*OH + oy in [chunk*rows, (chunk+1)*rows)
//   conv2d_backward_weight_add    of dw: i = get_global_id(0), sum of part[chunk][i] over chunks, in order
//
// Entries: CPU-class, work-group 1, one work-item a task
//   conv2d_pack   the weights of conv2d_tile. task = g*panels + p, panels = ceil(M/MR), writes, i < kh, j <
// kw,
//                   packed[((g*panels + p)*C + c)*taps + i*kw + j][l]
//                     = weight[g*g_stride + (p*MR + l)*m_stride + c*c_stride + (r0 + i*rd)*KW + s0 + j*sd]
//                 and 0 where p*MR + l >= M; taps = kh*kw.
//   conv2d_tile   forward, and backward by the input for one phase of the stride:
//                   out[n][g,m][oy0 + a*oys][ox0 + b*oxs] = epilogue(bias[g,m] +
//                     sum_{c,i,j} in[n][g,c][iy0 + a*iys + i*ty][ix0 + b*ixs + j*tx] * packed[g][m][c][i][j])
//                 for a < AH, b < AW. task = (((n*G + g)*m_tasks + mt)*a_tasks + at)*b_tasks + bt computes mb
//                 channels of an ab x bb block. The window of cb input channels is copied to local memory
//                 with the phases of the stride apart, so that the input of neighbouring outputs is one
//                 vector load: no im2col. Outputs between the window's rows are computed too, and thrown
//                 away. With PH = ceil(((ab-1)*iys + (kh-1)*ty + 1) / iys), PW likewise, NR = NV*VW and Q =
//                 (ab-1)*PW + bb rounded up to NR: needs cb*iys*ixs*PH*PW + NR <= XL, mb*Q <= YL, cb*taps <=
//                 KL, mb a multiple of MR, steps above 0. kh = kw = 0 makes bias alone.
//   conv2d_backward_weight_tile   task = ((split*G + g)*c_tasks + ct)*o_tasks + ot sums the images [split*ns,
//                 (split+1)*ns) for cb input and ob output channels: part[split][g][k][o], k = c*KH*KW + r*KW
//                 + s, o < OP = O rounded up to 2*VW. dy is transposed in local memory, vectors run over o;
//                 blocks of ab x bb outputs at a time. Needs cb*((ab-1)*sh + (KH-1)*dh + 1)*((bb-1)*sw +
//                 (KW-1)*dw + 1) <= XL, ab*bb*ob <= YL, ob*KP <= AL and KP <= KL where KP = cb*KH*KW rounded
//                 up to WR; ob a multiple of 2*VW.
//   conv2d_backward_weight_sum    task = g*ceil(K/per) + t, K = C*KH*KW: for per values of k, splits in order,
//                 dw[g,o][k] = sum_split part[split][g][k][o].
//
// Macros
//   KERNEL(name)    how entries and helpers are named; default name
//   T_IN, T_OUT     how tensors are stored, float, f16 or bf16; default float. IN: x, or dy of the gradient by the
//                   input; OUT: y, or its dx. The gradient by the weights reads x as IN and dy as OUT. Weights, bias, parts
//                   of sums and the weights' gradient are floats
//   EPI_*           the epilogue of conv2d_plain, conv2d_backward_input_plain and conv2d_tile, common/epilogue.cl; default none
//   TILE            1: with the CPU-class entries (pack, tile, sum), the default; 0: without, for devices that
//                   never run them and would compile them all the same
//   VW              lanes of a vector: 4, 8 or 16; default 16
//   MR, NV          register tile of conv2d_tile, rows and vectors: MR 4 or 8, NV 3; default 8 x 3 for VW 16,
//                   else 4 x 3
//   WR              rows of conv2d_backward_weight_tile's register tile, two vectors wide: 4, 6, 12; default
//                   12 for VW 16, else 4
//   XL, YL, AL, KL  local arrays, in elements of 4 bytes: window; result, or transposed dy; sums of weights;
//                   offsets. Default 40960, 40960, 20480, 2048.

#ifndef KERNEL
#define KERNEL(name) name
#endif
#ifndef T_IN
#define T_IN float
#endif
#ifndef T_OUT
#define T_OUT float
#endif
#ifndef TILE
#define TILE 1
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
#ifndef NV
#define NV 3
#endif
#ifndef WR
#if VW == 16
#define WR 12
#else
#define WR 4
#endif
#endif
#ifndef XL
#define XL 40960
#endif
#ifndef YL
#define YL 40960
#endif
#ifndef AL
#define AL 20480
#endif
#ifndef KL
#define KL 2048
#endif

#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
#define FV CAT(float, VW)
// Vectors at any multiple of 4 bytes. Where the compiler is known to keep a typedef's lower alignment, plain
// accesses: a long body of vloadN and vstoreN doubles PoCL's compile time.
#ifdef __clang__
typedef FV __attribute__((aligned(4))) KERNEL(conv2d_vector);
#define GLOAD(p) (*(__global const KERNEL(conv2d_vector) *)(p))
#define LLOAD(p) (*(__local const KERNEL(conv2d_vector) *)(p))
#define GSTORE(v, p) (*(__global KERNEL(conv2d_vector) *)(p) = (v))
#define LSTORE(v, p) (*(__local KERNEL(conv2d_vector) *)(p) = (v))
#else
#define GLOAD(p) CAT(vload, VW)(0, p)
#define LLOAD(p) CAT(vload, VW)(0, p)
#define GSTORE(v, p) CAT(vstore, VW)(v, 0, p)
#define LSTORE(v, p) CAT(vstore, VW)(v, 0, p)
#endif
// Vectors of a tensor that is stored as T.
#define TLOAD(T, p) CAT(tload_, T)(p)
#define tload_float(p) GLOAD(p)
#define tload_f16(p) VLOAD(f16, VW, p)
#define tload_bf16(p) VLOAD(bf16, VW, p)
#define TSTORE(T, v, p) CAT(tstore_, T)(v, p)
#define tstore_float(v, p) GSTORE(v, p)
#define tstore_f16(v, p) VSTORE(f16, VW, v, p)
#define tstore_bf16(v, p) VSTORE(bf16, VW, v, p)
EPILOGUE_FUNCTION(KERNEL(epilogue), float)
EPILOGUE_FUNCTION(KERNEL(epilogue_vector), FV)
#define NR (NV * VW)
// On a loop that runs seldom or over tails: an optimiser's unrolled copies would only cost compile time.
#define LOOP _Pragma("clang loop vectorize(disable) unroll(disable)")

// ---------------------------------------------------------------- plain

__kernel void KERNEL(conv2d_plain)(__global T_OUT *restrict y, __global const T_IN *restrict x,
                                   __global const float *restrict weight, __global const float *restrict bias,
                                   int N, int G, int C, int H, int W, int O, int OH, int OW, int KH, int KW,
                                   int sh, int sw, int ph, int pw, int dh, int dw,
                                   int has_bias EPILOGUE_PARAMS) {
    int i = (int)get_global_id(0);
    if (i >= N * G * O * OH * OW) return;
    int ox = i % OW, oy = i / OW % OH, go = i / (OW * OH) % (G * O), n = i / (OW * OH) / (G * O);
    x += (n * G + go / O) * C * H * W;
    weight += go * C * KH * KW;
    float sum = 0.0f;
    for (int c = 0; c < C; c++)
        for (int r = 0; r < KH; r++) {
            int iy = oy * sh - ph + r * dh;
            if (iy < 0 || iy >= H) continue;
            for (int s = 0; s < KW; s++) {
                int ix = ox * sw - pw + s * dw;
                if (ix >= 0 && ix < W)
                    sum = fma(LOAD(T_IN, x + (c * H + iy) * W + ix), weight[(c * KH + r) * KW + s], sum);
            }
        }
    if (has_bias) sum += bias[go];
    EPILOGUE_CHANNEL(go);
    STORE(T_OUT, KERNEL(epilogue)(sum EPILOGUE_AT(i)), y + i);
}

__kernel void KERNEL(conv2d_backward_input_plain)(__global T_OUT *restrict dx,
                                                  __global const T_IN *restrict dy,
                                                  __global const float *restrict weight, int N, int G, int C,
                                                  int H, int W, int O, int OH, int OW, int KH, int KW, int sh,
                                                  int sw, int ph, int pw, int dh, int dw EPILOGUE_PARAMS) {
    int i = (int)get_global_id(0);
    if (i >= N * G * C * H * W) return;
    int ix = i % W, iy = i / W % H, gc = i / (W * H) % (G * C), n = i / (W * H) / (G * C), g = gc / C,
        c = gc % C;
    dy += (n * G + g) * O * OH * OW;
    weight += (g * O * C + c) * KH * KW;
    float sum = 0.0f;
    for (int r = 0; r < KH; r++) {
        int ty = iy + ph - r * dh;
        if (ty < 0 || ty % sh != 0 || ty / sh >= OH) continue;
        for (int s = 0; s < KW; s++) {
            int tx = ix + pw - s * dw;
            if (tx < 0 || tx % sw != 0 || tx / sw >= OW) continue;
            int at = ty / sh * OW + tx / sw;
            for (int o = 0; o < O; o++)
                sum = fma(LOAD(T_IN, dy + o * OH * OW + at), weight[(o * C * KH + r) * KW + s], sum);
        }
    }
    EPILOGUE_CHANNEL(gc);
    STORE(T_OUT, KERNEL(epilogue)(sum EPILOGUE_AT(i)), dx + i);
}

__kernel void KERNEL(conv2d_backward_weight_plain)(__global float *restrict part,
                                                   __global const T_OUT *restrict dy,
                                                   __global const T_IN *restrict x, int N, int G, int C,
                                                   int H, int W, int O, int OH, int OW, int KH, int KW,
                                                   int sh, int sw, int ph, int pw, int dh, int dw, int chunks,
                                                   int rows) {
    int i = (int)get_global_id(0), D = G * O * C * KH * KW, row = i / D * rows, end = min(row + rows, N * OH);
    if (i >= chunks * D) return;
    int s = i % KW, r = i / KW % KH, c = i / (KW * KH) % C, go = i / (KW * KH) / C % (G * O);
    float sum = 0.0f;
    for (; row < end; row++) {
        int n = row / OH, oy = row % OH, iy = oy * sh - ph + r * dh;
        if (iy < 0 || iy >= H) continue;
        __global const T_IN *px = x + (((n * G + go / O) * C + c) * H + iy) * W - pw + s * dw;
        __global const T_OUT *pd = dy + ((n * G * O + go) * OH + oy) * OW;
        float of_row = 0.0f; // two levels: a chain of thirty thousand terms would lose digits
        for (int ox = 0; ox < OW; ox++) {
            int ix = ox * sw - pw + s * dw;
            if (ix >= 0 && ix < W) of_row = fma(LOAD(T_OUT, pd + ox), LOAD(T_IN, px + ox * sw), of_row);
        }
        sum += of_row;
    }
    part[i] = sum;
}

__kernel void KERNEL(conv2d_backward_weight_add)(__global float *restrict dw,
                                                 __global const float *restrict part, int D, int chunks) {
    int i = (int)get_global_id(0);
    if (i >= D) return;
    float sum = 0.0f;
    for (int chunk = 0; chunk < chunks; chunk++) sum += part[chunk * D + i];
    dw[i] = sum;
}

// ---------------------------------------------------------------- CPU-class: forward, backward by the input

#if TILE

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
KERNEL(conv2d_pack)(__global float *restrict packed, __global const float *restrict weight, int G, int M,
                    int C, int KW, int g_stride, int m_stride, int c_stride, int kh, int kw, int r0, int rd,
                    int s0, int sd) {
    int panels = (M + MR - 1) / MR, task = (int)get_group_id(0), p = task % panels, g = task / panels;
    if (g >= G) return;
    int whole = p * MR + MR <= M,
        all = (kw == 1 || sd == 1) && (kh == 1 || rd * KW == kw) && c_stride == kh * kw;
    packed += task * C * kh * kw * MR;
    weight += g * g_stride + p * MR * m_stride;
    if (whole && all) { // rows of weights as they lie in memory: transpose
        __global const float *src = weight + r0 * KW + s0;
        int k = 0, K = C * kh * kw;
        for (; k + VW <= K; k += VW) {
            FV r[MR], t[MR];
            UNROLL for (int l = 0; l < MR; l++) r[l] = GLOAD(src + l * m_stride + k);
            TRANSPOSE(MR, r, t)
            UNROLL for (int l = 0; l < MR; l++) GSTORE(r[l], packed + k * MR + l * VW);
        }
        for (; k < K; k++) LOOP for (int l = 0; l < MR; l++) packed[k * MR + l] = src[l * m_stride + k];
        return;
    }
    for (int c = 0; c < C; c++)
        for (int i = 0; i < kh; i++)
            for (int j = 0; j < kw; j++) {
                __global const float *src = weight + c * c_stride + (r0 + i * rd) * KW + s0 + j * sd;
                if (whole && m_stride == 1) {
                    CAT(vstore, MR)(CAT(vload, MR)(0, src), 0, packed);
                    packed += MR;
                    continue;
                }
                LOOP for (int l = 0; l < MR; l++) *packed++ = p * MR + l < M ? src[l * m_stride] : 0.0f;
            }
}

// dst[i] = src[i] for lo <= i < hi, else 0, for i < n.
static void KERNEL(conv2d_row)(__local float *dst, __global const T_IN *src, int lo, int hi, int n) {
    int i = 0;
    lo = min(lo, n);
    hi = max(min(hi, n), lo);
    LOOP for (; i < lo; i++) dst[i] = 0.0f;
    for (; i + VW <= hi; i += VW) LSTORE(TLOAD(T_IN, src + i), dst + i);
    LOOP for (; i < hi; i++) dst[i] = LOAD(T_IN, src + i);
    LOOP for (; i < n; i++) dst[i] = 0.0f;
}

#define ROWS4(X) X(0) X(1) X(2) X(3)
#define ROWS6(X) ROWS4(X) X(4) X(5)
#define ROWS8(X) ROWS6(X) X(6) X(7)
#define ROWS12(X) ROWS8(X) X(8) X(9) X(10) X(11)

#define DECL(i) FV x##i = (FV)(0.0f), y##i = (FV)(0.0f), z##i = (FV)(0.0f);
#define KEEP(i)                                                                                              \
    x##i = LLOAD(t + i * pitch);                                                                             \
    y##i = LLOAD(t + i * pitch + VW);                                                                        \
    z##i = LLOAD(t + i * pitch + 2 * VW);
#define STEP(i)                                                                                              \
    {                                                                                                        \
        FV v = (FV)(pa[i]);                                                                                  \
        x##i = fma(v, b0, x##i);                                                                             \
        y##i = fma(v, b1, y##i);                                                                             \
        z##i = fma(v, b2, z##i);                                                                             \
    }
#define PUT(i)                                                                                               \
    LSTORE(x##i, t + i * pitch);                                                                             \
    LSTORE(y##i, t + i * pitch + VW);                                                                        \
    LSTORE(z##i, t + i * pitch + 2 * VW);

// t[MR][pitch] (+)= sum_k pa[k][MR] * px[off[k] + 0..NR)
static void KERNEL(conv2d_micro)(__local float *t, int pitch, __global const float *pa,
                                 __local const float *px, __local const int *off, int kn, int add) {
    CAT(ROWS, MR)(DECL);
    if (add) {
        CAT(ROWS, MR)(KEEP);
    }
    for (int k = 0; k < kn; k++) {
        __local const float *pb = px + off[k];
        FV b0 = LLOAD(pb), b1 = LLOAD(pb + VW), b2 = LLOAD(pb + 2 * VW);
        CAT(ROWS, MR)(STEP);
        pa += MR;
    }
    CAT(ROWS, MR)(PUT);
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
KERNEL(conv2d_tile)(__global T_OUT *restrict out, __global const T_IN *restrict in,
                    __global const float *restrict packed, __global const float *restrict bias, int N, int G,
                    int C, int H, int W, int M, int OH, int OW, int AH, int AW, int oy0, int ox0, int oys,
                    int oxs, int kh, int kw, int iy0, int ix0, int iys, int ixs, int ty, int tx, int nb,
                    int ab, int bb, int cb, int mb, int has_bias EPILOGUE_PARAMS) {
    __local float lx[XL];
    __local float ly[YL];
    __local int off[KL];
    int m_tasks = (M + mb - 1) / mb, a_tasks = (AH + ab - 1) / ab, b_tasks = (AW + bb - 1) / bb;
    int task = (int)get_group_id(0);
    int b0 = task % b_tasks * bb, a0 = task / b_tasks % a_tasks * ab,
        m0 = task / (b_tasks * a_tasks) % m_tasks * mb;
    int ng = task / (b_tasks * a_tasks) / m_tasks, g = ng % G, n0 = ng / G * nb;
    if (n0 >= N) return;
    int nn = min(nb, N - n0), bn = min(bb, AW - b0), an = min(ab, AH - a0), mn = min(mb, M - m0),
        taps = kh * kw;
    // The window: images of PH x PW, one after the other; of the first phase of iys x ixs, then of the next; then
    // the next channel.
    int PH = ((ab - 1) * iys + max(kh - 1, 0) * ty + iys) / iys,
        PW = ((bb - 1) * ixs + max(kw - 1, 0) * tx + ixs) / ixs;
    int plane = PH * PW, phase = nb * plane, step = iys * ixs * phase;
    int sh = (an - 1) * iys + max(kh - 1, 0) * ty + 1, sw = (bn - 1) * ixs + max(kw - 1, 0) * tx + 1;
    int y0 = a0 * iys + iy0, x0 = b0 * ixs + ix0;
    int Q = (nn - 1) * plane + (an - 1) * PW + bn, pitch = (Q + NR - 1) / NR * NR;
    // Rows that follow each other in memory and in the window are copied as one.
    int joined = iys == 1 && ixs == 1 && x0 == 0 && sw == W && PW == W, rows = joined ? 1 : sh,
        image = G * C * H * W;
    in += (n0 * G + g) * C * H * W;
    packed += (g * ((M + MR - 1) / MR) + m0 / MR) * C * taps * MR;
    for (int c = 0; c < min(cb, C); c++)
        for (int i = 0; i < kh; i++)
            LOOP for (int j = 0; j < kw; j++) off[(c * kh + i) * kw + j] =
                c * step + (i * ty % iys * ixs + j * tx % ixs) * phase + i * ty / iys * PW + j * tx / ixs;
    for (int c0 = 0; c0 < C; c0 += cb) {
        int cn = min(cb, C - c0);
        for (int r = 0; r < (taps ? cn * nn * rows : 0); r++) {
            int c = r / (nn * rows), n = r / rows % nn, v = r % rows;
            __local float *dst = lx + c * step + n * plane + v % iys * ixs * phase + v / iys * PW;
            __global const T_IN *src = in + n * image + (c0 + c) * H * W + x0;
            if (kh == 1 && v % iys != 0) continue; // read by no tap
            int iy = y0 + v, live = iy >= 0 && iy < H;
            int lo = live ? -x0 : sw, hi = live ? W - x0 : 0, n_row = sw;
            if (joined) {
                lo = -y0 * W;
                hi = (H - y0) * W;
                n_row = sh * W;
            } else if (!live) {
                iy = 0;
            }
            src += iy * W;
            if (ixs == 1) {
                KERNEL(conv2d_row)(dst, src, max(lo, 0), hi, n_row);
            } else {
                for (int p = 0; p < (kw == 1 ? 1 : ixs); p++)
                    LOOP for (int u = p, i = p * phase; u < sw; u += ixs, i++) dst[i] =
                        u >= lo && u < hi ? LOAD(T_IN, src + u) : 0.0f;
            }
        }
        for (int q = 0; q < Q; q += NR)
            for (int m = 0; m < mn; m += MR) KERNEL(conv2d_micro)
        (ly + m * pitch + q, pitch, packed + (m * C + c0 * MR) * taps, lx + q, off, cn * taps, c0 > 0);
    }
    // The same of results.
    joined = oys == 1 && oxs == 1 && bn == OW && PW == OW;
    for (int m = 0; m < mn; m++) {
        float add = has_bias ? bias[g * M + m0 + m] : 0.0f;
        EPILOGUE_CHANNEL(g * M + m0 + m);
        for (int r = 0; r < (joined ? nn : nn * an); r++) {
            int n = joined ? r : r / an, a = joined ? 0 : r % an, run = joined ? an * OW : bn;
            __local const float *src = ly + m * pitch + n * plane + a * PW;
            __global T_OUT *dst =
                out + ((((n0 + n) * G + g) * M + m0 + m) * OH + oy0 + (a0 + a) * oys) * OW + ox0 + b0 * oxs;
            int b = 0;
            if (oxs == 1) {
                for (; b + VW <= run; b += VW) {
                    FV v = LLOAD(src + b) + add;
                    TSTORE(T_OUT, KERNEL(epilogue_vector)(v EPILOGUE_VECTOR_AT(VW, dst - out + b)), dst + b);
                }
            }
            LOOP for (; b < run; b++) {
                float v = src[b] + add;
                STORE(T_OUT, KERNEL(epilogue)(v EPILOGUE_AT(dst - out + b * oxs)), dst + b * oxs);
            }
        }
    }
}

// ---------------------------------------------------------------- CPU-class: backward by the weights

// dst[k*pitch + l] = src[l*sl + k] for l < VW, k < kn; lanes l >= lanes get 0.
static void KERNEL(conv2d_transpose)(__local float *dst, int pitch, __global const T_OUT *src, int sl,
                                     int lanes, int kn) {
    int k = 0;
    for (; k + VW <= kn; k += VW)
        LOOP for (int l = 0; l < VW; l += TRANSPOSE_ROWS(VW)) {
            FV r[TRANSPOSE_ROWS(VW)], t[TRANSPOSE_ROWS(VW)];
            UNROLL for (int i = 0; i < TRANSPOSE_ROWS(VW); i++)
                r[i] = l + i < lanes ? TLOAD(T_OUT, src + (l + i) * sl + k) : (FV)(0.0f);
            TRANSPOSE(TRANSPOSE_ROWS(VW), r, t)
            PUT_COLUMNS(VW, r, dst + k * pitch + l, pitch)
        }
    for (; k < kn; k++)
        LOOP for (int l = 0; l < VW; l++) dst[k * pitch + l] =
            l < lanes ? LOAD(T_OUT, src + l * sl + k) : 0.0f;
}

#define WDECL(i)                                                                                             \
    FV x##i = LLOAD(t + i * ob), y##i = LLOAD(t + i * ob + VW);                                              \
    __local const float *p##i = px + off[i];
#define WSTEP(i)                                                                                             \
    {                                                                                                        \
        FV v = (FV)(p##i[at]);                                                                               \
        x##i = fma(v, d0, x##i);                                                                             \
        y##i = fma(v, d1, y##i);                                                                             \
    }
#define WPUT(i)                                                                                              \
    LSTORE(x##i, t + i * ob);                                                                                \
    LSTORE(y##i, t + i * ob + VW);

// t[WR][ob] += sum over the pixels (a, b) of pd[a*bn + b][0..2*VW) * px[off[row] + a*ya + b*xb]
static void KERNEL(conv2d_weight_micro)(__local float *t, int ob, __local const float *pd,
                                        __local const float *px, __local const int *off, int an, int bn,
                                        int ya, int xb) {
    CAT(ROWS, WR)(WDECL);
    for (int a = 0; a < an; a++) {
        int at = a * ya;
        for (int b = 0; b < bn; b++) {
            FV d0 = LLOAD(pd), d1 = LLOAD(pd + VW);
            CAT(ROWS, WR)(WSTEP);
            at += xb;
            pd += ob;
        }
    }
    CAT(ROWS, WR)(WPUT);
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
KERNEL(conv2d_backward_weight_tile)(__global float *restrict part, __global const T_OUT *restrict dy,
                                    __global const T_IN *restrict x, int N, int G, int C, int H, int W, int O,
                                    int OH, int OW, int KH, int KW, int sh, int sw, int ph, int pw, int dh,
                                    int dw, int splits, int ns, int ab, int bb, int cb, int ob) {
    __local float lx[XL];
    __local float ld[YL];
    __local float lt[AL];
    __local int off[KL];
    int c_tasks = (C + cb - 1) / cb, o_tasks = (O + ob - 1) / ob, task = (int)get_group_id(0);
    int o0 = task % o_tasks * ob, c0 = task / o_tasks % c_tasks * cb;
    int g = task / (o_tasks * c_tasks) % G, split = task / (o_tasks * c_tasks) / G;
    if (split >= splits) return;
    int cn = min(cb, C - c0), OP = (O + 2 * VW - 1) / (2 * VW) * (2 * VW), on = min(ob, OP - o0);
    int taps = KH * KW, kn = cn * taps, kp = (kn + WR - 1) / WR * WR;
    int SH = (ab - 1) * sh + (KH - 1) * dh + 1, SW = (bb - 1) * sw + (KW - 1) * dw + 1;
    LOOP for (int k = 0; k < kp; k++) {
        int c = k / taps, r = k / KW % KH, s = k % KW;
        off[k] = k < kn ? (c * SH + r * dh) * SW + s * dw : 0;
    }
    for (int i = 0; i < kp * on; i += VW) LSTORE((FV)(0.0f), lt + i);
    for (int n = split * ns; n < min(N, (split + 1) * ns); n++)
        for (int a0 = 0; a0 < OH; a0 += ab)
            for (int b0 = 0; b0 < OW; b0 += bb) {
                int an = min(ab, OH - a0), bn = min(bb, OW - b0);
                int y0 = a0 * sh - ph, x0 = b0 * sw - pw, vn = (an - 1) * sh + (KH - 1) * dh + 1;
                int width = (bn - 1) * sw + (KW - 1) * dw + 1;
                int joined = x0 == 0 && width == W && SW == W, rows = joined ? 1 : vn; // as in conv2d_tile
                for (int cv = 0; cv < cn * rows; cv++) {
                    int c = cv / rows, v = cv % rows, iy = y0 + v, live = iy >= 0 && iy < H;
                    __global const T_IN *src = x + ((n * G + g) * C + c0 + c) * H * W + x0;
                    int lo = live ? -x0 : SW, hi = live ? W - x0 : 0, n_row = width;
                    if (joined) {
                        lo = -y0 * W;
                        hi = (H - y0) * W;
                        n_row = vn * W;
                    } else if (!live) {
                        iy = 0;
                    }
                    KERNEL(conv2d_row)(lx + (c * SH + v) * SW, src + iy * W, max(lo, 0), hi, n_row);
                }
                // Rows that follow each other in memory are transposed as one.
                int runs = bn == OW ? 1 : an, run = bn == OW ? an * bn : bn;
                for (int a = 0; a < runs; a++)
                    for (int l = 0; l < on; l += VW) KERNEL(conv2d_transpose)
                (ld + a * bn * on + l, on,
                 dy + (((n * G + g) * O + min(o0 + l, O - 1)) * OH + a0 + a) * OW + b0, OH * OW, O - o0 - l,
                 run);
                for (int l = 0; l < on; l += 2 * VW)
                    for (int k = 0; k < kp; k += WR) KERNEL(conv2d_weight_micro)
                (lt + k * on + l, on, ld + l, lx, off + k, an, bn, sh * SW, sw);
            }
    part += ((split * G + g) * C + c0) * taps * OP + o0;
    for (int k = 0; k < kn; k++)
        for (int l = 0; l < on; l += VW) GSTORE(LLOAD(lt + k * on + l), part + k * OP + l);
}

#define KB TRANSPOSE_ROWS(VW)
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
KERNEL(conv2d_backward_weight_sum)(__global float *restrict dw, __global const float *restrict part, int G,
                                   int O, int K, int splits, int per) {
    float column[VW * KB];
    int k_tasks = (K + per - 1) / per, task = (int)get_group_id(0), k0 = task % k_tasks * per,
        g = task / k_tasks;
    if (g >= G) return;
    int end = min(K, k0 + per), OP = (O + 2 * VW - 1) / (2 * VW) * (2 * VW);
    for (int l = 0; l < O; l += VW)
        for (int k = k0; k < end; k += KB) {
            FV r[KB], t[KB];
            int kn = min(KB, end - k), on = min(VW, O - l);
            UNROLL for (int i = 0; i < KB; i++) r[i] = (FV)(0.0f);
            LOOP for (int s = 0; s < splits; s++) {
                UNROLL for (int i = 0; i < KB; i++)
                    r[i] += GLOAD(part + ((s * G + g) * K + min(k + i, K - 1)) * OP + l);
            }
            TRANSPOSE(KB, r, t)
            PUT_COLUMNS(VW, r, column, KB)
            LOOP for (int i = 0; i < on; i++) {
                __global float *dst = dw + (g * O + l + i) * K + k;
                if (kn == KB) CAT(vstore, KB)(CAT(vload, KB)(i, column), 0, dst);
                LOOP for (int j = kn == KB ? KB : 0; j < kn; j++) dst[j] = column[i * KB + j];
            }
        }
}
#endif // TILE

#undef CAT_
#undef CAT
#undef FV
#undef GLOAD
#undef LLOAD
#undef GSTORE
#undef LSTORE
#undef TLOAD
#undef tload_float
#undef tload_f16
#undef tload_bf16
#undef TSTORE
#undef tstore_float
#undef tstore_f16
#undef tstore_bf16
#undef NR
#undef LOOP
#undef ROWS4
#undef ROWS6
#undef ROWS8
#undef ROWS12
#undef DECL
#undef KEEP
#undef STEP
#undef PUT
#undef KB
#undef WDECL
#undef WSTEP
#undef WPUT
