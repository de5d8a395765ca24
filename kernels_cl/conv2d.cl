// SPDX-License-Identifier: Apache-2.0
//
// Two-dimensional convolution (cross-correlation, as in PyTorch) and its gradients. x [N, G*C, H, W], weight
// [G*O, C, KH, KW], y [N, G*O, OH, OW], with G groups of C input and O output channels:
//
//   y[n][g,o][oy][ox] = epilogue( bias[g,o] +
//       sum_{c,r,s} x[n][g,c][oy*sh - ph + r*dh][ox*sw - pw + s*dw] * weight[g,o][c][r][s] )
//
// where x outside the image is 0. has_bias = 0 leaves the bias out (any valid buffer may stand for it). Sums
// run in f32; their order depends on the sizes only. What is backward by the input is the transposed convolution, too, which
// has a bias for each channel of dx.
//
// Entries: plain, any work-group, no local memory, one work-item an element
//   conv2d_plain                  of y:  ((n*G*O + go)*OH + oy)*OW + ox = get_global_id(0)
//   conv2d_backward_input_plain   of dx: ((n*G*C + gc)*H + iy)*W + ix = get_global_id(0)
//   conv2d_backward_weight_plain  of part [chunks][D]: chunk*D + i = get_global_id(0), D = G*O*C*KH*KW,
//                                 i = ((go*C + c)*KH + r)*KW + s; sums the rows n*OH + oy in [chunk*rows, (chunk+1)*rows)
//   conv2d_backward_weight_add    of dw: i = get_global_id(0), sum of part[chunk][i] over chunks, in order
//
// Entries: CPU-class, work-group 1, one work-item a task
//   conv2d_tile   forward, and backward by the input:
//                   out[n][g,m][a*oys + py][b*oxs + px] = epilogue(bias[g,m] + sum_{c,r,s}
//                     in[n][g,c][a*iys + (py + qh - r*dh)/oys][b*ixs + (px + qw - s*dw)/oxs] * weight of (g,m,c,r,s))
//                 where both divisions leave nothing. Backward: oys, oxs are the stride and qh, qw the padding; pixels of
//                 the same phase (py, px) of the stride meet the same taps, and then dy at distance 1. Forward: one phase,
//                 iys, ixs are the stride, taps count from the kernel's end, qh = (KH-1)*dh - padding.
//                 task = (((i*G + g)*m_tasks + mt)*a_tasks + at)*b_tasks + bt computes mb channels of an ab x bb block
//                 of each phase, of the images [i*nb, (i+1)*nb): small ones fill register tiles together, one after the
//                 other. The window of cb input channels is copied to local memory with the phases of iys, ixs
//                 apart, so that the input of neighbouring outputs is one vector load: no im2col. Outputs between the
//                 window's rows are computed too, and thrown away. The phases of oys, oxs are joined when they are
//                 stored. With PH = ceil(((ab-1)*iys + ey + 1) / iys), where taps reach over ey + 1 rows, PW likewise,
//                 F = min(oys, OH) * min(oxs, OW), NR = NV*VW and Q = (nb-1)*PH*PW + (ab-1)*PW + bb rounded up to NR:
//                 needs cb*iys*ixs*nb*PH*PW + NR <= XL, mb*F*Q <= YL, cb*KH*KW <= KL, mb a multiple of MR, steps above 0.
//   conv2d_pack   its weights. task = g*panels + p, panels = ceil(M/MR), writes, of each phase one after the other,
//                   packed[task*C*KH*KW + C*(taps of phases before) + c*(taps of the phase) + i][l]
//                     = weight[g*g_stride + (p*MR + l)*m_stride + c*c_stride + r*KW + s]
//                 for its i-th tap (r, s), the last one first, and 0 where p*MR + l >= M; flip = 1: (KH-1 - r, KW-1 - s).
//   conv2d_backward_weight_tile   task = ((split*G + g)*c_tasks + ct)*o_tasks + ot sums the images [split*ns,
//                 (split+1)*ns) for cb input and ob output channels: part[split][g,o][c][r][s], and with one split part
//                 is dw. x and dy of nb images, a block of ab x bb outputs of each, go to local memory, dy transposed:
//                 vectors run over o, rows of the register tile over taps and c.
//                   halo = 1  a window with zeros around the image, as in conv2d_tile; nb = 1; every tap meets all outputs
//                   halo = 0  whole images as they lie in memory, ab = OH, bb = OW, for small ones: each tap meets the
//                             outputs for which it is inside of the image, on a list, and the rest costs nothing
//                 With SH = (ab-1)*sh + (KH-1)*dh + 1, SW likewise, or H and W without a halo, and R = cb, or cb rounded
//                 up to WR without: needs nb*cb*SH*SW <= XL, nb*ab*bb*ob <= YL, nb*ab*bb <= KL, ob*KP <= AL and
//                 KP <= KL where KP = R*KH*KW rounded up to WR; ob a multiple of 2*VW.
//   conv2d_backward_weight_sum    task t: dw[i] = sum_split part[split][i] for i in [t*per, (t+1)*per), i < D, in order
//
// Macros
//   T_IN, T_OUT     how tensors are stored, float, f16 or bf16; default float. IN: x, or dy of the gradient by the
//                   input; OUT: y, or its dx. The gradient by the weights reads x as IN and dy as OUT. Weights, bias, parts
//                   of sums and the weights' gradient are floats
//   EPI_*           the epilogue of conv2d_plain, conv2d_backward_input_plain and conv2d_tile, common/epilogue.cl; default none
//   TILE            1: with the CPU-class entries (pack, tile, sum), the default; 0: without, for devices that
//                   never run them and would compile them all the same
//   VW              lanes of a vector: 4, 8 or 16; default 16
//   MR, NV          register tile of conv2d_tile, rows and vectors: MR 4 or 8, NV 3; default 8 x 3 for VW 16,
//                   else 4 x 3
//   WR              rows of conv2d_backward_weight_tile's register tile, two vectors wide: 4, 8 or 10; default
//                   10 for VW 16, else 4
//   XL, YL, AL, KL  local arrays, in elements of 4 bytes: window; result, or transposed dy; sums of weights;
//                   lists of offsets, of pixels, and of conv2d_pack's taps (KH*KW <= KL). Default 40960, 40960, 20480, 2048.

#define T_IN float
#define T_OUT float
#define TILE 1
#define VW 16
#if VW == 16
#define MR 8
#else
#define MR 4
#endif
#define NV 3
#if VW == 16
#define WR 10
#else
#define WR 4
#endif
#define XL 40960
#define YL 40960
#define AL 20480
#define KL 2048

EPILOGUE_FUNCTION(KERNEL(epilogue), float)
EPILOGUE_FUNCTION(KERNEL(epilogue_vector), FV)
#define NR (NV * VW)
#define TERMS 256 // of a sum that is added to others: a chain of thousands would lose digits

// ---------------------------------------------------------------- plain

#define SIZES                                                                                                \
    int N, int G, int C, int H, int W, int O, int OH, int OW, int KH, int KW, int sh, int sw, int ph,        \
        int pw, int dh, int dw

__kernel void KERNEL(conv2d_plain)(__global T_OUT *restrict y, __global const T_IN *restrict x,
                                   __global const float *restrict weight, __global const float *restrict bias,
                                   SIZES, int has_bias EPILOGUE_PARAMS) {
    int i = (int)get_global_id(0);
    if (i >= N * G * O * OH * OW) return;
    int ox = i % OW, oy = i / OW % OH, go = i / (OW * OH) % (G * O), n = i / (OW * OH) / (G * O);
    x += (n * G + go / O) * C * H * W;
    weight += go * C * KH * KW;
    float sum = 0.0f;
    for (int c = 0; c < C; c++)
        for (int r = 0; r < KH; r++) {
            int iy = oy * sh - ph + r * dh;
            for (int s = 0; s < KW; s++) { // padding is a 0 that is multiplied: NaN with an infinite weight
                int ix = ox * sw - pw + s * dw;
                bool inside = iy >= 0 && iy < H && ix >= 0 && ix < W;
                float v = inside ? LOAD(T_IN, x + (c * H + iy) * W + ix) : 0.0f;
                sum = fma(v, weight[(c * KH + r) * KW + s], sum);
            }
        }
    if (has_bias) sum += bias[go];
    EPILOGUE_CHANNEL(go);
    STORE(T_OUT, KERNEL(epilogue)(sum EPILOGUE_AT(i)), y + i);
}

__kernel void KERNEL(conv2d_backward_input_plain)(__global T_OUT *restrict dx,
                                                  __global const T_IN *restrict dy,
                                                  __global const float *restrict weight,
                                                  __global const float *restrict bias, SIZES,
                                                  int has_bias EPILOGUE_PARAMS) {
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
    if (has_bias) sum += bias[gc];
    EPILOGUE_CHANNEL(gc);
    STORE(T_OUT, KERNEL(epilogue)(sum EPILOGUE_AT(i)), dx + i);
}

__kernel void KERNEL(conv2d_backward_weight_plain)(__global float *restrict part,
                                                   __global const T_OUT *restrict dy,
                                                   __global const T_IN *restrict x, SIZES, int chunks,
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

// How many of K taps a phase meets along one axis, see conv2d_tile: those with (phase + q - r*d) % steps == 0.
static int KERNEL(conv2d_taps)(int phase, int steps, int q, int d, int K) {
    int n = 0;
    LOOP for (int r = 0; r < K; r++) n += (phase + q - r * d) % steps == 0;
    return n;
}

// How far beyond the first pixel that a tap of any phase reads, *first, the last one is.
static int KERNEL(conv2d_reach)(int phases, int steps, int q, int d, int K, int *first) {
    int low = INT_MAX, high = INT_MIN;
    for (int phase = 0; phase < phases; phase++) LOOP for (int r = 0; r < K; r++) {
            int at = phase + q - r * d;
            if (at % steps != 0) continue;
            low = min(low, at / steps);
            high = max(high, at / steps);
        }
    *first = low <= high ? low : 0;
    return low <= high ? high - low : 0;
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
KERNEL(conv2d_pack)(__global float *restrict packed, __global const float *restrict weight, int G, int M,
                    int C, int OH, int OW, int KH, int KW, int oys, int oxs, int qh, int qw, int dh, int dw,
                    int g_stride, int m_stride, int c_stride, int flip) {
    __local int from[KL], to[KL], by[KL];
    int panels = (M + MR - 1) / MR, task = (int)get_group_id(0), p = task % panels, g = task / panels;
    if (g >= G) return;
    int whole = p * MR + MR <= M;
    packed += task * C * KH * KW * MR;
    weight += g * g_stride + p * MR * m_stride;
    if (whole && flip && oys == 1 && oxs == 1 &&
        c_stride == KH * KW) { // rows of weights as they lie in memory: transpose
        int k = 0, K = C * KH * KW;
        for (; k + VW <= K; k += VW) {
            FV r[MR], t[MR];
            UNROLL for (int l = 0; l < MR; l++) r[l] = GLOAD(weight + l * m_stride + k);
            TRANSPOSE(MR, r, t)
            UNROLL for (int l = 0; l < MR; l++) GSTORE(r[l], packed + k * MR + l * VW);
        }
        for (; k < K; k++) LOOP for (int l = 0; l < MR; l++) packed[k * MR + l] = weight[l * m_stride + k];
        return;
    }
    int n = 0;
    for (int py = 0; py < min(oys, OH); py++)
        for (int px = 0; px < min(oxs, OW); px++) {
            int first = n;
            for (int r = KH - 1; r >= 0; r--) LOOP for (int s = KW - 1; s >= 0; s--) {
                    if ((py + qh - r * dh) % oys != 0 || (px + qw - s * dw) % oxs != 0) continue;
                    from[n] = flip ? (KH - 1 - r) * KW + KW - 1 - s : r * KW + s;
                    to[n] = (C * first + n - first) * MR;
                    n++;
                }
            LOOP for (int i = first; i < n; i++) by[i] = (n - first) * MR;
        }
    for (int c = 0; c < C; c++)
        for (int i = 0; i < n; i++) {
            __global const float *src = weight + c * c_stride + from[i];
            __global float *dst = packed + to[i] + c * by[i];
            if (whole && m_stride == 1)
                PASTE(vstore, MR)(PASTE(vload, MR)(0, src), 0, dst);
            else if (whole)
                UNROLL for (int l = 0; l < MR; l++) dst[l] = src[l * m_stride];
            else
                LOOP for (int l = 0; l < MR; l++) dst[l] = p * MR + l < M ? src[l * m_stride] : 0.0f;
        }
}

// dst[i] = src[i] for lo <= i < hi, else 0, for i < n. What is left of whole vectors is copied by one that ends with the row, and
// a row shorter than a vector by two shorter ones: one by one, small images would take longer to copy than to convolve.
static void KERNEL(conv2d_row)(__local float *dst, __global const T_IN *src, int lo, int hi, int n) {
    int i = 0;
    lo = min(lo, n);
    hi = max(min(hi, n), lo);
    LOOP for (; i < lo; i++) dst[i] = 0.0f;
    for (; i + VW <= hi; i += VW) {
        PREFETCH(src + i + 512);
        LSTORE(TLOAD(T_IN, src + i), dst + i);
    }
    if (hi - lo >= VW) {
        LSTORE(TLOAD(T_IN, src + hi - VW), dst + hi - VW);
    } else if (VW > 8 && hi - lo >= 8) {
        vstore8(VLOAD(T_IN, 8, src + lo), 0, dst + lo);
        vstore8(VLOAD(T_IN, 8, src + hi - 8), 0, dst + hi - 8);
    } else if (VW > 4 && hi - lo >= 4) {
        vstore4(VLOAD(T_IN, 4, src + lo), 0, dst + lo);
        vstore4(VLOAD(T_IN, 4, src + hi - 4), 0, dst + hi - 4);
    } else {
        LOOP for (; i < hi; i++) dst[i] = LOAD(T_IN, src + i);
    }
    LOOP for (i = hi; i < n; i++) dst[i] = 0.0f;
}

// The same with every steps-th element beside its kind: dst[p*phase + i] = src[i*steps + p] for p < phases.
static void KERNEL(conv2d_row_apart)(__local float *dst, __global const T_IN *src, int lo, int hi, int n,
                                     int steps, int phases, int phase) {
    int first = min((max(lo, 0) + 1) / 2 * 2, n),
        end = min(hi, n) / 2 * 2; // between them vectors do it, the last from its end
    if (steps != 2 || first + 2 * VW > end) first = end = n;
    for (int i = first; i < end; i += 2 * VW) {
        i = min(i, end - 2 * VW);
        FV a = TLOAD(T_IN, src + i), b = TLOAD(T_IN, src + i + VW);
        EVEN_ODD(even, odd, a, b)
        LSTORE(even, dst + i / 2);
        if (phases == 2) LSTORE(odd, dst + phase + i / 2);
    }
    for (int p = 0; p < phases; p++) {
        LOOP for (int i = p; i < first; i += steps) dst[p * phase + i / steps] =
            i >= lo && i < hi ? LOAD(T_IN, src + i) : 0.0f;
        LOOP for (int i = end + p; i < n; i += steps) dst[p * phase + i / steps] =
            i >= lo && i < hi ? LOAD(T_IN, src + i) : 0.0f;
    }
}

#define DECL(i) TILE2_ZERO(i) FV z##i = (FV)(0.0f);
#define FORMER(i) TILE2_FORMER(i, L, t + i * pitch) z##i += LLOAD(t + i * pitch + 2 * VW);
#define STEP(i) TILE2_ADD(i, pa[i], b0, b1) z##i = fma((FV)(pa[i]), b2, z##i);
#define PUT(i) TILE2_PUT(i, L, t + i * pitch) LSTORE(z##i, t + i * pitch + 2 * VW);

// t[MR][pitch] (+)= sum_k pa[k][MR] * px[off[k] + 0..NR), in blocks of TERMS terms
static void KERNEL(conv2d_micro)(__local float *t, int pitch, __global const float *pa,
                                 __local const float *px, __local const int *off, int kn, int add) {
    int k = 0;
    do {
        int end = min(kn, k + TERMS);
        TILE_ROWS(MR, DECL);
        for (; k < end; k++) {
            __local const float *pb = px + off[k];
            FV b0 = LLOAD(pb), b1 = LLOAD(pb + VW), b2 = LLOAD(pb + 2 * VW);
            TILE_ROWS(MR, STEP);
            pa += MR;
        }
        if (add) {
            TILE_ROWS(MR, FORMER);
        }
        TILE_ROWS(MR, PUT);
        add = 1;
    } while (k < kn);
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
KERNEL(conv2d_tile)(__global T_OUT *restrict out, __global const T_IN *restrict in,
                    __global const float *restrict packed, __global const float *restrict bias, int N, int G,
                    int C, int H, int W, int M, int OH, int OW, int KH, int KW, int oys, int oxs, int qh,
                    int qw, int dh, int dw, int iys, int ixs, int nb, int ab, int bb, int cb, int mb,
                    int has_bias EPILOGUE_PARAMS) {
    __local float lx[XL];
    __local float ly[YL];
    __local int off[KL];
    int AH = (OH + oys - 1) / oys, AW = (OW + oxs - 1) / oxs, fy = min(oys, OH), fx = min(oxs, OW),
        F = fy * fx;
    int m_tasks = (M + mb - 1) / mb, a_tasks = (AH + ab - 1) / ab, b_tasks = (AW + bb - 1) / bb;
    int task = (int)get_group_id(0);
    int b0 = task % b_tasks * bb, a0 = task / b_tasks % a_tasks * ab,
        m0 = task / (b_tasks * a_tasks) % m_tasks * mb;
    int ng = task / (b_tasks * a_tasks) / m_tasks, g = ng % G, n0 = ng / G * nb;
    if (n0 >= N) return;
    int nn = min(nb, N - n0), bn = min(bb, AW - b0), an = min(ab, AH - a0), mn = min(mb, M - m0);
    int iy0, ix0, ey = KERNEL(conv2d_reach)(fy, oys, qh, dh, KH, &iy0),
                  ex = KERNEL(conv2d_reach)(fx, oxs, qw, dw, KW, &ix0);
    // The window: images of PH x PW, one after the other; of the first phase of iys x ixs, then of the next; then
    // the next channel.
    int PH = ((ab - 1) * iys + ey + iys) / iys, PW = ((bb - 1) * ixs + ex + ixs) / ixs;
    int plane = PH * PW, phase = nb * plane, step = iys * ixs * phase;
    int sh = (an - 1) * iys + ey + 1, sw = (bn - 1) * ixs + ex + 1;
    int y0 = a0 * iys + iy0, x0 = b0 * ixs + ix0;
    int Q = (nn - 1) * plane + (an - 1) * PW + bn, pitch = (Q + NR - 1) / NR * NR;
    // Rows that follow each other in memory and in the window are copied as one.
    int joined = iys == 1 && ixs == 1 && x0 == 0 && sw == W && PW == W, rows = joined ? 1 : sh,
        image = G * C * H * W;
    in += (n0 * G + g) * C * H * W;
    packed += (g * ((M + MR - 1) / MR) + m0 / MR) * C * KH * KW * MR;
    // Where the taps read: the phases' lists one after the other, each channel by channel.
    for (int f = 0, before = 0; f < F; f++) {
        __local int *list = off + cb * before;
        int n = 0;
        for (int r = KH - 1; r >= 0; r--) LOOP for (int s = KW - 1; s >= 0; s--) {
                int y = f / fx + qh - r * dh, x = f % fx + qw - s * dw;
                if (y % oys != 0 || x % oxs != 0) continue;
                y = y / oys - iy0;
                x = x / oxs - ix0;
                list[n++] = (y % iys * ixs + x % ixs) * phase + y / iys * PW + x / ixs;
            }
        LOOP for (int i = n; i < n * min(cb, C); i++) list[i] = list[i - n] + step;
        before += n;
    }
    for (int c0 = 0; c0 < C; c0 += cb) {
        int cn = min(cb, C - c0);
        for (int r = 0; r < cn * nn * rows; r++) {
            int c = r / (nn * rows), n = r / rows % nn, v = r % rows;
            __local float *dst = lx + c * step + n * plane + v % iys * ixs * phase + v / iys * PW;
            __global const T_IN *src = in + n * image + (c0 + c) * H * W + x0;
            if (ey == 0 && v % iys != 0) continue; // read by no tap
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
                KERNEL(conv2d_row_apart)(dst, src, lo, hi, sw, ixs, ex == 0 ? 1 : ixs, phase);
            }
        }
        for (int f = 0, before = 0; f < F; f++) {
            int n =
                KERNEL(conv2d_taps)(f / fx, oys, qh, dh, KH) * KERNEL(conv2d_taps)(f % fx, oxs, qw, dw, KW);
            for (int q = 0; q < (n > 0 || c0 == 0 ? Q : 0); q += NR) // without taps zeros, once
                for (int m = 0; m < mn; m += MR) KERNEL(conv2d_micro)
            (ly + (m * F + f) * pitch + q, F * pitch, packed + m * C * KH * KW + (C * before + c0 * n) * MR,
             lx + q, off + cb * before, cn * n, c0 > 0);
            before += n;
        }
    }
    // The same of results.
    joined = oys == 1 && oxs == 1 && bn == OW && PW == OW;
    for (int m = 0; m < mn; m++) {
        float add = has_bias ? bias[g * M + m0 + m] : 0.0f;
        EPILOGUE_CHANNEL(g * M + m0 + m);
        for (int i = 0; i < (joined ? nn : nn * an * fy); i++) {
            int n = joined ? i : i / fy / an, a = joined ? 0 : i / fy % an, py = joined ? 0 : i % fy;
            int y = (a0 + a) * oys + py, run = joined ? an * OW : min(bn * oxs, OW - b0 * oxs);
            if (y >= OH) continue;
            __local const float *src = ly + (m * F + py * fx) * pitch + n * plane + a * PW;
            __global T_OUT *dst = out + ((((n0 + n) * G + g) * M + m0 + m) * OH + y) * OW + b0 * oxs;
            int x = 0;
            if (oxs == 1) {
                for (; x + VW <= run; x += VW) {
                    FV v = LLOAD(src + x) + add;
                    TSTORE(T_OUT, KERNEL(epilogue_vector)(v EPILOGUE_VECTOR_AT(VW, dst - out + x)), dst + x);
                }
            } else if (oxs == 2) {
                for (; x + VW <= run; x += VW) { // half of a vector each; the other half is read inside of ly
                    FV v;
                    v.even = LLOAD(src + x / 2).lo;
                    v.odd = LLOAD(src + pitch + x / 2 - VW / 2).hi;
                    v += add;
                    TSTORE(T_OUT, KERNEL(epilogue_vector)(v EPILOGUE_VECTOR_AT(VW, dst - out + x)), dst + x);
                }
            }
            LOOP for (int px = 0, b = x / oxs; x < run; x++) {
                float v = src[px * pitch + b] + add;
                STORE(T_OUT, KERNEL(epilogue)(v EPILOGUE_AT(dst - out + x)), dst + x);
                if (++px == oxs) px = 0, b++;
            }
        }
    }
}

// ---------------------------------------------------------------- CPU-class: backward by the weights

// dst[k*pitch + l] = src[l*sl + k] for l < VW, k < kn; lanes l >= lanes get 0.
static void KERNEL(conv2d_transpose)(__local float *dst, int pitch, __global const T_OUT *src, int sl,
                                     int lanes, int kn) {
    int k = 0;
    for (; k + VW <= kn; k += VW) LOOP for (int l = 0; l < VW; l += TRANSPOSE_ROWS(VW)) {
            FV r[TRANSPOSE_ROWS(VW)], t[TRANSPOSE_ROWS(VW)];
            UNROLL for (int i = 0; i < TRANSPOSE_ROWS(VW); i++) r[i] =
                l + i < lanes ? TLOAD(T_OUT, src + (l + i) * sl + k) : (FV)(0.0f);
            TRANSPOSE(TRANSPOSE_ROWS(VW), r, t)
            PUT_COLUMNS(VW, r, dst + k * pitch + l, pitch)
        }
    for (; k < kn; k++)
        LOOP for (int l = 0; l < VW; l++) dst[k * pitch + l] =
            l < lanes ? LOAD(T_OUT, src + l * sl + k) : 0.0f;
}

#define WDECL(i) TILE2_ZERO(i) __local const float *p##i = px + off[i];
#define WFORMER(i) TILE2_FORMER(i, L, t + i * ob)
#define WSTEP(i) TILE2_ADD(i, p##i[at], d0, d1)
#define WPUT(i) TILE2_PUT(i, L, t + i * ob)

// t[WR][ob] += sum_{j < n} pd[pd_at[j]][0..2*VW) * px[off[row] + px_at[j]]
static void KERNEL(conv2d_weight_micro)(__local float *t, int ob, __local const float *pd,
                                        __local const float *px, __local const int *off,
                                        __local const int *pd_at, __local const int *px_at, int n) {
    TILE_ROWS(WR, WDECL);
    for (int j = 0; j < n; j++) {
        int at = px_at[j];
        FV d0 = LLOAD(pd + pd_at[j]), d1 = LLOAD(pd + pd_at[j] + VW);
        TILE_ROWS(WR, WSTEP);
    }
    TILE_ROWS(WR, WFORMER);
    TILE_ROWS(WR, WPUT);
}

// The pixels [y0, y0 + rows) x [x0, x0 + columns) of cn channels, zeros around the image, in planes of SH x SW.
static void KERNEL(conv2d_weight_window)(__local float *dst, __global const T_IN *src, int cn, int H, int W,
                                         int y0, int x0, int rows, int columns, int SH, int SW) {
    int joined = x0 == 0 && columns == W && SW == W; // as in conv2d_tile
    for (int i = 0; i < (joined ? cn : cn * rows); i++) {
        int c = joined ? i : i / rows, v = joined ? 0 : i % rows, iy = y0 + v, live = iy >= 0 && iy < H;
        int lo = live ? -x0 : columns, hi = live ? W - x0 : 0, n = columns;
        if (joined) {
            lo = -y0 * W;
            hi = (H - y0) * W;
            n = rows * W;
        } else if (!live) {
            iy = 0;
        }
        KERNEL(conv2d_row)(dst + (c * SH + v) * SW, src + (c * H + iy) * W + x0, max(lo, 0), hi, n);
    }
}

// The outputs of a block of nn images, an x bn each, that read a pixel inside of the window SH x SW at (a*sh + y, b*sw + x): how
// many, where their rows of ob channels begin, and the pixels.
static int KERNEL(conv2d_weight_pixels)(__local int *pd_at, __local int *px_at, int nn, int an, int bn, int y,
                                        int x, int sh, int sw, int SH, int SW, int image, int ob) {
    int j = 0;
    for (int n = 0; n < nn; n++)
        for (int a = 0; a < an; a++) {
            int v = a * sh + y;
            if (v < 0 || v >= SH) continue;
            LOOP for (int b = 0; b < bn; b++) {
                int u = b * sw + x;
                if (u < 0 || u >= SW) continue;
                px_at[j] = n * image + v * SW + u;
                pd_at[j++] = ((n * an + a) * bn + b) * ob;
            }
        }
    return j;
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
KERNEL(conv2d_backward_weight_tile)(__global float *restrict part, __global const T_OUT *restrict dy,
                                    __global const T_IN *restrict x, SIZES, int splits, int ns, int nb,
                                    int halo, int ab, int bb, int cb, int ob) {
    __local float lx[XL];
    __local float ld[YL];
    __local float lt[AL];
    __local int off[KL], px_at[KL], pd_at[KL];
    int c_tasks = (C + cb - 1) / cb, o_tasks = (O + ob - 1) / ob, task = (int)get_group_id(0);
    int o0 = task % o_tasks * ob, c0 = task / o_tasks % c_tasks * cb;
    int g = task / (o_tasks * c_tasks) % G, split = task / (o_tasks * c_tasks) / G;
    if (split >= splits) return;
    int cn = min(cb, C - c0), on = min(ob, (O - o0 + 2 * VW - 1) / (2 * VW) * (2 * VW)), taps = KH * KW;
    // Sums' rows: with a halo the taps of one channel after those of another, which share their pixels; else the channels of one
    // tap after those of another. The last ones of a register tile may be nobody's.
    int rows = halo ? cn : (cn + WR - 1) / WR * WR, kn = taps * rows, kp = (kn + WR - 1) / WR * WR;
    int c_step = halo ? taps : 1, tap_step = halo ? 1 : rows;
    int SH = halo ? (ab - 1) * sh + (KH - 1) * dh + 1 : H, SW = halo ? (bb - 1) * sw + (KW - 1) * dw + 1 : W;
    int image = cn * SH * SW, end = min(N, (split + 1) * ns);
    LOOP for (int k = 0; k < kp; k++) {
        int c = min(k / c_step % rows, cn - 1), tap = k / tap_step % taps;
        off[k] = c * SH * SW + (halo ? tap / KW * dh * SW + tap % KW * dw : 0);
    }
    for (int i = 0; i < kp * on; i += VW) LSTORE((FV)(0.0f), lt + i);
    for (int n0 = split * ns; n0 < end; n0 += nb)
        for (int a0 = 0; a0 < OH; a0 += ab)
            for (int b0 = 0; b0 < OW; b0 += bb) {
                int nn = min(nb, end - n0), an = min(ab, OH - a0), bn = min(bb, OW - b0);
                __global const T_IN *images = x + ((n0 * G + g) * C + c0) * H * W;
                if (halo) {
                    KERNEL(conv2d_weight_window)
                    (lx, images, cn, H, W, a0 * sh - ph, b0 * sw - pw, (an - 1) * sh + (KH - 1) * dh + 1,
                     (bn - 1) * sw + (KW - 1) * dw + 1, SH, SW);
                } else {
                    for (int n = 0; n < nn; n++)
                        KERNEL(conv2d_row)(lx + n * image, images + n * G * C * H * W, 0, image, image);
                }
                // Rows that follow each other in memory are transposed as one.
                int run = bn == OW ? an * bn : bn;
                int runs = bn == OW ? nn : nn * an;
                for (int i = 0; i < runs; i++) {
                    int n = n0 + (bn == OW ? i : i / an), a = a0 + (bn == OW ? 0 : i % an);
                    for (int l = 0; l < on; l += VW) KERNEL(conv2d_transpose)
                    (ld + i * run * on + l, on,
                     dy + (((n * G + g) * O + min(o0 + l, O - 1)) * OH + a) * OW + b0, OH * OW, O - o0 - l,
                     run);
                }
                for (int tap = 0; tap < (halo ? 1 : taps); tap++) {
                    int y = halo ? 0 : tap / KW * dh - ph, u = halo ? 0 : tap % KW * dw - pw;
                    int n = KERNEL(conv2d_weight_pixels)(pd_at, px_at, nn, an, bn, y, u, sh, sw, SH, SW,
                                                         image, on);
                    int first = tap * rows, last = halo ? kp : first + rows;
                    for (int l = 0; n > 0 && l < on; l += 2 * VW)
                        for (int k = first; k < last; k += WR) KERNEL(conv2d_weight_micro)
                    (lt + k * on + l, on, ld + l, lx, off + k, pd_at, px_at, n);
                }
            }
    // In blocks of the lanes of a vector and a few channels, which stay in the first cache.
    part += (((split * G + g) * O + o0) * C + c0) * taps;
    for (int l0 = 0; l0 < min(on, O - o0); l0 += VW)
        for (int c1 = 0; c1 < cn; c1 += 8)
            for (int l = l0; l < min(l0 + VW, O - o0); l++)
                for (int c = c1; c < min(c1 + 8, cn); c++)
                    LOOP for (int tap = 0; tap < taps; tap++) part[(l * C + c) * taps + tap] =
                        lt[(c * c_step + tap * tap_step) * on + l];
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
KERNEL(conv2d_backward_weight_sum)(__global float *restrict dw, __global const float *restrict part, int D,
                                   int splits, int per) {
    int i = (int)get_group_id(0) * per, end = min(D, i + per);
    for (; i + VW <= end; i += VW) {
        FV sum = (FV)(0.0f);
        LOOP for (int s = 0; s < splits; s++) sum += GLOAD(part + s * D + i);
        GSTORE(sum, dw + i);
    }
    for (; i < end; i++) {
        float sum = 0.0f;
        LOOP for (int s = 0; s < splits; s++) sum += part[s * D + i];
        dw[i] = sum;
    }
}
#endif // TILE
