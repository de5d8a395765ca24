// SPDX-License-Identifier: Apache-2.0
//
// Convolution over three dimensions and its gradients. x [N, G*C, D, H, W], weight [G*O, C, KD, KH, KW], y [N, G*O, OD, OH, OW], with G
// groups of C input and O output channels:
//
//   y[n][g,o][oz][oy][ox] = epilogue( bias[g,o] + sum_{c,q,r,s} x[n][g,c][oz*sd - pd + q*dd][oy*sh - ph + r*dh][ox*sw - pw + s*dw]
//                                                                * weight[g,o][c][q][r][s] )
//
// where x outside is 0. has_bias = 0 leaves the bias out (any valid buffer may stand for it).
//
// Entries: plain, one work-item an element
//   conv3d_plain                  of y
//   conv3d_backward_input_plain   of dx, and with a bias for each of its channels of the transposed convolution
//   conv3d_backward_weight_plain  of part [chunks][weights]: sums the rows (n*OD + oz)*OH + oy in [chunk*rows, (chunk+1)*rows)
//
// Entries: planes, for the way by convolutions over two dimensions of conv2d.cl and its kin. There the images of a batch are its planes,
// and the taps along D are channels of their own:
//   conv3d_unfold   out[(n*OD + od)*C + c][q][p] = in[first + n][c][od*sd - pd + q*dd][p], or 0 where that plane is outside; p < P
//   conv3d_fold     out[first + n][c][d][p] = epilogue( bias[c] + sum over q of in[(n*OD + od)*C + c][q][p] ), where
//                   od*sd - pd + q*dd = d; a plane without such an od is 0
//   conv3d_add      dw[i] = sum over `parts` of part[k*stride + i], in order; i < size
//   The first two of n < N, each in two ways: an item an element of out, or (.._planes) `per` planes of it, by vectors
//
// Macros
//   T_IN, T_OUT  how tensors are stored, float, f16 or bf16; default float. IN: x, or dy; OUT: y, or dx. The gradient by the weights reads
//                x as IN and dy as OUT
//   EPI_*        the epilogue of the plain entries but the last, and of conv3d_fold; common/epilogue.cl; default none
//   VW           lanes of a vector: 4, 8 or 16; default 16

#define T_IN float
#define T_OUT float
#define VW 16

EPILOGUE_FUNCTION(KERNEL(epilogue), float)
EPILOGUE_FUNCTION(KERNEL(epilogue_vector), FV)

// ---------------------------------------------------------------- plain

#define SIZES                                                                                                \
    int N, int G, int C, int D, int H, int W, int O, int OD, int OH, int OW, int KD, int KH, int KW, int sd, \
        int sh, int sw, int pd, int ph, int pw, int dd, int dh, int dw

__kernel void KERNEL(conv3d_plain)(__global T_OUT *restrict y, __global const T_IN *restrict x,
                                   __global const float *restrict weight, __global const float *restrict bias,
                                   SIZES, int has_bias EPILOGUE_PARAMS) {
    const int i = (int)get_global_id(0), pixels = OD * OH * OW, go = i / pixels % (G * O);
    const int n = i / pixels / (G * O);
    const int ox = i % OW, oy = i / OW % OH, oz = i / (OW * OH) % OD;
    if (i >= N * G * O * pixels) return;
    x += (clv_offset)(n * G + go / O) * C * D * H * W;
    weight += go * C * KD * KH * KW;
    float sum = 0.0f;
    for (int c = 0; c < C; c++)
        for (int q = 0; q < KD; q++) {
            const int iz = oz * sd - pd + q * dd;
            for (int r = 0; r < KH; r++) {
                const int iy = oy * sh - ph + r * dh;
                for (int s = 0; s < KW; s++) { // padding is a 0 that is multiplied: NaN with an infinite weight
                    const int ix = ox * sw - pw + s * dw;
                    const bool inside = iz >= 0 && iz < D && iy >= 0 && iy < H && ix >= 0 && ix < W;
                    const float v = inside ? LOAD(T_IN, x + ((c * D + iz) * H + iy) * W + ix) : 0.0f;
                    sum = fma(v, weight[((c * KD + q) * KH + r) * KW + s], sum);
                }
            }
        }
    if (has_bias) sum += bias[go];
    EPILOGUE_CHANNEL(go);
    STORE(T_OUT, KERNEL(epilogue)(sum EPILOGUE_AT(i)), y + i);
}

__kernel void KERNEL(conv3d_backward_input_plain)(__global T_OUT *restrict dx,
                                                  __global const T_IN *restrict dy,
                                                  __global const float *restrict weight,
                                                  __global const float *restrict bias, SIZES,
                                                  int has_bias EPILOGUE_PARAMS) {
    const int i = (int)get_global_id(0), pixels = D * H * W, gc = i / pixels % (G * C), g = gc / C;
    const int n = i / pixels / (G * C), ix = i % W, iy = i / W % H, iz = i / (W * H) % D;
    if (i >= N * G * C * pixels) return;
    const int plane = OD * OH * OW, taps = KD * KH * KW;
    dy += (clv_offset)(n * G + g) * O * plane;
    weight += (g * O * C + gc % C) * taps;
    float sum = 0.0f;
    for (int q = 0; q < KD; q++) {
        const int tz = iz + pd - q * dd;
        if (tz < 0 || tz % sd != 0 || tz / sd >= OD) continue;
        for (int r = 0; r < KH; r++) {
            const int ty = iy + ph - r * dh;
            if (ty < 0 || ty % sh != 0 || ty / sh >= OH) continue;
            for (int s = 0; s < KW; s++) {
                const int tx = ix + pw - s * dw;
                if (tx < 0 || tx % sw != 0 || tx / sw >= OW) continue;
                const int at = (tz / sd * OH + ty / sh) * OW + tx / sw, tap = (q * KH + r) * KW + s;
                for (int o = 0; o < O; o++)
                    sum = fma(LOAD(T_IN, dy + o * plane + at), weight[o * C * taps + tap], sum);
            }
        }
    }
    if (has_bias) sum += bias[gc];
    EPILOGUE_CHANNEL(gc);
    STORE(T_OUT, KERNEL(epilogue)(sum EPILOGUE_AT(i)), dx + i);
}

__kernel void KERNEL(conv3d_backward_weight_plain)(__global float *restrict part,
                                                   __global const T_OUT *restrict dy,
                                                   __global const T_IN *restrict x, SIZES, int chunks,
                                                   int rows) {
    const int i = (int)get_global_id(0), size = G * O * C * KD * KH * KW;
    int row = i / size * rows;
    const int end = min(row + rows, N * OD * OH);
    if (i >= chunks * size) return;
    const int s = i % KW, r = i / KW % KH, q = i / (KW * KH) % KD, c = i / (KW * KH * KD) % C;
    const int go = i / (KW * KH * KD) / C % (G * O);
    float sum = 0.0f;
    for (; row < end; row++) {
        const int n = row / OH / OD, oz = row / OH % OD, oy = row % OH;
        const int iz = oz * sd - pd + q * dd, iy = oy * sh - ph + r * dh;
        if (iz < 0 || iz >= D || iy < 0 || iy >= H) continue;
        __global const T_IN *px =
            x + ((((clv_offset)(n * G + go / O) * C + c) * D + iz) * H + iy) * W - pw + s * dw;
        __global const T_OUT *pd_ = dy + (((clv_offset)(n * G * O + go) * OD + oz) * OH + oy) * OW;
        float of_row = 0.0f; // two levels: a chain of thirty thousand terms would lose digits
        for (int ox = 0; ox < OW; ox++) {
            const int ix = ox * sw - pw + s * dw;
            if (ix >= 0 && ix < W) of_row = fma(LOAD(T_OUT, pd_ + ox), LOAD(T_IN, px + ox * sw), of_row);
        }
        sum += of_row;
    }
    part[i] = sum;
}

// ---------------------------------------------------------------- planes

#define PLANES int first, int N, int C, int D, int OD, int KD, int sd, int pd, int dd, int P

__kernel void KERNEL(conv3d_unfold)(__global T_IN *restrict out, __global const T_IN *restrict in, PLANES) {
    const int i = (int)get_global_id(0), p = i % P, plane = i / P, q = plane % KD, c = plane / KD % C;
    const int od = plane / KD / C % OD, n = plane / KD / C / OD, d = od * sd - pd + q * dd;
    if (n >= N) return;
    if (d >= 0 && d < D)
        out[i] = in[(((clv_offset)(first + n) * C + c) * D + d) * P + p];
    else
        out[i] = 0;
}

__kernel void KERNEL(conv3d_unfold_planes)(__global T_IN *restrict out, __global const T_IN *restrict in,
                                           PLANES, int per) {
    const int begin = (int)get_global_id(0) * per, end = min(begin + per, N * OD * C * KD);
    for (int plane = begin; plane < end; plane++) {
        const int q = plane % KD, c = plane / KD % C, od = plane / KD / C % OD, n = plane / KD / C / OD;
        const int d = od * sd - pd + q * dd, live = d >= 0 && d < D;
        __global const T_IN *from = in + (((clv_offset)(first + n) * C + c) * D + (live ? d : 0)) * P;
        __global T_IN *to = out + (clv_offset)plane * P;
        int p = 0;
        for (; p + VW <= P; p += VW)
            TSTORE(T_IN, live ? TLOAD(T_IN, from + p) : (FV)(0.0f), to + p);
        LOOP for (; p < P; p++) to[p] = live ? from[p] : 0;
    }
}

__kernel void KERNEL(conv3d_fold)(__global T_OUT *restrict out, __global const float *restrict in,
                                  __global const float *restrict bias, PLANES, int has_bias EPILOGUE_PARAMS) {
    const int i = (int)get_global_id(0), p = i % P, d = i / P % D, c = i / P / D % C, n = i / P / D / C;
    if (n >= N) return;
    float sum = has_bias ? bias[c] : 0.0f;
    for (int q = 0; q < KD; q++) {
        const int t = d + pd - q * dd, od = t / sd;
        if (t < 0 || t % sd != 0 || od >= OD) continue;
        sum += in[((((clv_offset)n * OD + od) * C + c) * KD + q) * P + p];
    }
    const int at = first * C * D * P + i;
    EPILOGUE_CHANNEL(c);
    STORE(T_OUT, KERNEL(epilogue)(sum EPILOGUE_AT(at)), out + at);
}

__kernel void KERNEL(conv3d_fold_planes)(__global T_OUT *restrict out, __global const float *restrict in,
                                         __global const float *restrict bias, PLANES, int has_bias,
                                         int per EPILOGUE_PARAMS) {
    const int begin = (int)get_global_id(0) * per, end = min(begin + per, N * C * D);
    for (int plane = begin; plane < end; plane++) {
        const int d = plane % D, c = plane / D % C, n = plane / D / C, at = (first * C * D + plane) * P;
        __global const float *from = in + (((clv_offset)n * OD * C + c) * KD) * P;
        const float add = has_bias ? bias[c] : 0.0f;
        EPILOGUE_CHANNEL(c);
        for (int p = 0; p < P; p += VW) {
            const int whole = p + VW <= P;
            FV sum = (FV)(add);
            for (int q = 0; q < KD; q++) {
                const int t = d + pd - q * dd, od = t / sd;
                if (t < 0 || t % sd != 0 || od >= OD) continue;
                __global const float *row = from + ((clv_offset)od * C * KD + q) * P;
                if (whole) {
                    sum += GLOAD(row + p);
                } else {
                    float rest[VW];
                    LOOP for (int i = 0; i < VW; i++) rest[i] = p + i < P ? row[p + i] : 0.0f;
                    sum += PASTE(vload, VW)(0, rest);
                }
            }
            if (whole) {
                TSTORE(T_OUT, KERNEL(epilogue_vector)(sum EPILOGUE_VECTOR_AT(VW, at + p)), out + at + p);
            } else {
                float rest[VW];
                PASTE(vstore, VW)(sum, 0, rest);
                LOOP for (int i = 0; p + i < P; i++)
                    STORE(T_OUT, KERNEL(epilogue)(rest[i] EPILOGUE_AT(at + p + i)), out + at + p + i);
            }
        }
    }
}

__kernel void KERNEL(conv3d_add)(__global float *restrict dw, __global const float *restrict part, int size,
                                 int parts, int stride) {
    const int i = (int)get_global_id(0);
    if (i >= size) return;
    float sum = 0.0f;
    for (int k = 0; k < parts; k++) sum += part[k * stride + i];
    dw[i] = sum;
}
