// SPDX-License-Identifier: Apache-2.0
//
// Convolution with a 3x3 kernel, stride 1, dilation 1, one group, by Winograd's F(4x4, 3x3), for devices with lanes. What is computed,
// and its sources, are in conv2d_winograd.cl: from in [N][C][H][W], out [N][M][OH][OW] and tiles t = (n*TH + ty)*TW + tx
//
//   U[e][o][i] = (G w G')     V[e][c][t] = (B' d B)     R[e][m][t] = sum_c U V (gemm.cl)     out tile = A' R[.][m][t] A
//
// and the gradient by the weights, with tiles cut from dy [N][M][OH][OW]:
//
//   Y[e][m][t] = (A dy A')    S[e][m][c] = sum_t Y V (gemm.cl)    dw[m][c] = G' S[.][m][c] G
//
// with 36 e, and o and i the channels of weight as it lies, so that the gradient by the input (flip: taps turned round) reads U with
// M and C exchanged. What a tile reads begins at row 4*ty + y0, column 4*tx + x0.
//
// Images go through local memory, so that neighbouring items have neighbouring addresses of it. There a pixel lies by its row and its
// column modulo 4, then by tile, so that items four pixels apart have neighbouring addresses, and neighbouring pixels other banks.
//
// Entries, groups of ITEMS
//   winograd_lanes_transform  The first `kernels` groups make U of ITEMS kernels each, an item a kernel:    u[e*OI + i], OI of them.
//                             Of the others each makes V of a channel of `planes` images, or of `strips` rows of tiles of one:
//                               v[(e*C + c)*TP + t], group = kernels + chunk*C + c
//                             With ADJOINT in, C, H and W are those of dy, and V is Y.
//   winograd_lanes_output     A group makes out of `strips` rows of tiles, counted n*TH + ty, of a channel from r[(e*M + m)*TP + t],
//                             group = chunk*M + m:
//                               out = epilogue( A' R A + bias[m] )
//   winograd_lanes_weight     A group makes dw of ITEMS kernels from s[e*OI + i].
//
// Macros
//   T_IN, T_OUT    how in and out are stored, float, f16 or bf16; default float
//   EPI_*          the epilogue of winograd_lanes_output, common/epilogue.cl; default none
//   ADJOINT        1: of winograd_lanes_transform, tiles are those of dy; default 0
//   ITEMS          of a group, a power of two; default 128
//   AREA           16*(AREA + 4) floats, at least 9*ITEMS, are in local memory; an odd multiple of 8, default 232.
//                  planes*(strips + 1)*(TW + 1), of winograd_lanes_output strips*TW, are at most that

#define T_IN float
#define T_OUT float
#define ADJOINT 0
#define ITEMS 128
#define AREA 232

EPILOGUE_FUNCTION(KERNEL(epilogue), float)
#define UNROLLED _Pragma("unroll")
#define P (2.0f / 3.0f)
#define Q (1.0f / P)
#define S (P * P + Q * Q)

// y = G x, y = B' x, y = A' x, y = A x and y = G' x, of elements that lie ys and xs apart.
#define TRANSFORM_G(y, ys, x, xs)                                                                            \
    {                                                                                                        \
        const float a_ = (x)[0] * (-81.0f / 130.0f) - (x)[2 * xs] * (36.0f / 130.0f);                        \
        const float c_ = (x)[0] * (8.0f / 65.0f) + (x)[2 * xs] * (18.0f / 65.0f);                            \
        const float b_ = (x)[xs] * (54.0f / 130.0f), d_ = (x)[xs] * (12.0f / 65.0f);                         \
        (y)[0] = (x)[0], (y)[ys] = a_ - b_, (y)[2 * ys] = a_ + b_;                                           \
        (y)[3 * ys] = c_ + d_, (y)[4 * ys] = c_ - d_, (y)[5 * ys] = (x)[2 * xs];                             \
    }
#define TRANSFORM_B(y, ys, x, xs)                                                                            \
    {                                                                                                        \
        const float a_ = fma(-Q * Q, (x)[2 * xs], (x)[4 * xs]), b_ = fma(P, (x)[3 * xs], -Q * (x)[xs]);      \
        const float c_ = fma(-P * P, (x)[2 * xs], (x)[4 * xs]), d_ = fma(Q, (x)[3 * xs], -P * (x)[xs]);      \
        const float e_ = fma(-S, (x)[2 * xs], (x)[0] + (x)[4 * xs]);                                         \
        const float f_ = fma(-S, (x)[3 * xs], (x)[xs] + (x)[5 * xs]);                                        \
        (y)[0] = e_, (y)[ys] = a_ + b_, (y)[2 * ys] = a_ - b_;                                               \
        (y)[3 * ys] = c_ + d_, (y)[4 * ys] = c_ - d_, (y)[5 * ys] = f_;                                      \
    }
#define TRANSFORM_A(y, ys, x, xs)                                                                            \
    {                                                                                                        \
        const float a_ = (x)[xs] + (x)[2 * xs], b_ = (x)[xs] - (x)[2 * xs];                                  \
        const float c_ = (x)[3 * xs] + (x)[4 * xs], d_ = (x)[3 * xs] - (x)[4 * xs];                          \
        (y)[0] = (x)[0] + a_ + c_, (y)[ys] = fma(P, b_, Q * d_), (y)[2 * ys] = fma(P * P, a_, Q * Q * c_);   \
        (y)[3 * ys] = fma(P * P * P, b_, fma(Q * Q * Q, d_, (x)[5 * xs]));                                   \
    }
#define TRANSFORM_ADJOINT_A(y, ys, x, xs)                                                                    \
    {                                                                                                        \
        const float a_ = fma(P * P, (x)[2 * xs], (x)[0]), b_ = fma(P * P * P, (x)[3 * xs], P * (x)[xs]);     \
        const float c_ = fma(Q * Q, (x)[2 * xs], (x)[0]), d_ = fma(Q * Q * Q, (x)[3 * xs], Q * (x)[xs]);     \
        (y)[0] = (x)[0], (y)[ys] = a_ + b_, (y)[2 * ys] = a_ - b_;                                           \
        (y)[3 * ys] = c_ + d_, (y)[4 * ys] = c_ - d_, (y)[5 * ys] = (x)[3 * xs];                             \
    }
#define TRANSFORM_ADJOINT_G(y, ys, x, xs)                                                                    \
    {                                                                                                        \
        const float a_ = (x)[xs] + (x)[2 * xs], b_ = (x)[3 * xs] + (x)[4 * xs];                              \
        const float c_ = (x)[2 * xs] - (x)[xs], d_ = (x)[3 * xs] - (x)[4 * xs];                              \
        (y)[0] = (x)[0] - a_ * (81.0f / 130.0f) + b_ * (8.0f / 65.0f);                                       \
        (y)[ys] = c_ * (54.0f / 130.0f) + d_ * (12.0f / 65.0f);                                              \
        (y)[2 * ys] = (x)[5 * xs] - a_ * (36.0f / 130.0f) + b_ * (18.0f / 65.0f);                            \
    }
// What a tile is read as: so many rows and columns, the last ones beside the next tile's.
#if ADJOINT
#define READ 4
#define TRANSFORM TRANSFORM_ADJOINT_A
#else
#define READ 6
#define TRANSFORM TRANSFORM_B
#endif
// Where a pixel lies in local memory, of tiles in rows of `pitch`. So rows below each other lie in different banks, the short ones of
// small images, too, which 32 items fill together: of in with the columns beside it, and of out.
#define IN_ROW (4 * AREA + 4)
#define OUT_ROW (4 * AREA + 15)
#define PLACE(row, h, w, pitch) ((h) % 4 * (row) + (w) % 4 * AREA + (h) / 4 * (pitch) + (w) / 4)

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void
KERNEL(winograd_lanes_transform)(__global float *restrict u, __global float *restrict v,
                                 __global const float *restrict weight, __global const T_IN *restrict in, int kernels,
                                 int OI, int flip, int N, int C, int H, int W, int TH, int TW, int TP, int y0, int x0,
                                 int planes, int strips) {
    __local float tile[4 * IN_ROW];
    const int id = (int)get_local_id(0), group = (int)get_group_id(0);
    float y[36], z[36];
    if (group < kernels) {
        const int first = group * ITEMS, n = min(ITEMS, OI - first);
        for (int i = id; i < 9 * n; i += ITEMS) tile[i] = weight[9 * first + i];
        barrier(CLK_LOCAL_MEM_FENCE);
        if (id >= n) return;
        float w[9];
        UNROLLED for (int k = 0; k < 9; k++) w[k] = tile[9 * id + (flip ? 8 - k : k)];
        UNROLLED for (int j = 0; j < 3; j++) TRANSFORM_G(y + j, 3, w + j, 3)
        UNROLLED for (int i = 0; i < 6; i++) TRANSFORM_G(z + 6 * i, 1, y + 3 * i, 1)
        UNROLLED for (int e = 0; e < 36; e++) u[e * OI + first + id] = z[e];
        return;
    }
    const int c = (group - kernels) % C, chunk = (group - kernels) / C, chunks = (TH + strips - 1) / strips;
    const int n0 = chunk / chunks * planes, strip0 = chunk % chunks * strips, now = min(strips, TH - strip0);
    const int width = 4 * TW + READ - 4, height = 4 * now + READ - 4, pitch = TW + 1, images = min(planes, N - n0);
    for (int i = id; i < images * height * width; i += ITEMS) {
        const int column = i % width, w = column + x0, row = i / width % height, plane = i / width / height;
        const int h = 4 * strip0 + row + y0;
        // Beyond the edge the nearest pixel is read, and left out: so neighbours stay neighbours.
        const float value = LOAD(T_IN, in + ((clv_offset)((n0 + plane) * C + c) * H + clamp(h, 0, H - 1)) * W + clamp(w, 0, W - 1));
        tile[PLACE(IN_ROW, row, column, pitch) + plane * (now + 1) * pitch] =
            (uint)h < (uint)H && (uint)w < (uint)W ? value : 0.0f;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    v += c * TP + (n0 * TH + strip0) * TW;
    for (int i = id; i < images * now * TW; i += ITEMS) {
        const int strip = i / TW;
        __local const float *from = tile + (strip + strip / now) * pitch + i % TW;
        float x[READ * READ];
        UNROLLED for (int k = 0; k < READ * READ; k++) x[k] = from[PLACE(IN_ROW, k / READ, k % READ, pitch)];
        UNROLLED for (int j = 0; j < READ; j++) TRANSFORM(y + j, READ, x + j, READ)
        UNROLLED for (int k = 0; k < 6; k++) TRANSFORM(z + 6 * k, 1, y + READ * k, 1)
        UNROLLED for (int e = 0; e < 36; e++) v[e * C * TP + i] = z[e];
    }
}

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void
KERNEL(winograd_lanes_output)(__global T_OUT *restrict out, __global const float *restrict r,
                              __global const float *restrict bias, int N, int M, int OH, int OW, int TH, int TW, int TP,
                              int strips, int has_bias EPILOGUE_PARAMS) {
    __local float tile[4 * OUT_ROW];
    const int id = (int)get_local_id(0), m = (int)get_group_id(0) % M;
    const int strip0 = (int)get_group_id(0) / M * strips, now = min(strips, N * TH - strip0);
    const float add = has_bias ? bias[m] : 0.0f;
    r += m * TP + strip0 * TW;
    for (int i = id; i < now * TW; i += ITEMS) {
        float x[36], y[24], z[16];
        UNROLLED for (int e = 0; e < 36; e++) x[e] = r[e * M * TP + i];
        UNROLLED for (int j = 0; j < 6; j++) TRANSFORM_A(y + j, 6, x + j, 6)
        UNROLLED for (int k = 0; k < 4; k++) TRANSFORM_A(z + 4 * k, 1, y + 6 * k, 1)
        UNROLLED for (int k = 0; k < 16; k++) tile[PLACE(OUT_ROW, k / 4, k % 4, 0) + i] = z[k];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    EPILOGUE_CHANNEL(m);
    // Rows of out, counted n*OH + h: all that these strips have.
    const int end = strip0 + now, row0 = strip0 / TH * OH + strip0 % TH * 4, rows = end / TH * OH + end % TH * 4 - row0;
    for (int i = id; i < rows * OW; i += ITEMS) {
        const int w = i % OW, n = (row0 + i / OW) / OH, h = (row0 + i / OW) % OH, strip = n * TH + h / 4 - strip0;
        const int at = ((n * M + m) * OH + h) * OW + w;
        const float v = tile[PLACE(OUT_ROW, strip * 4 + h % 4, w, TW)] + add;
        STORE(T_OUT, KERNEL(epilogue)(v EPILOGUE_AT(at)), out + at);
    }
}

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void
KERNEL(winograd_lanes_weight)(__global float *restrict dw, __global const float *restrict s, int OI) {
    __local float tile[9 * ITEMS];
    const int id = (int)get_local_id(0), first = (int)get_group_id(0) * ITEMS, n = min(ITEMS, OI - first);
    if (id < n) {
        float x[36], y[18], z[9];
        UNROLLED for (int e = 0; e < 36; e++) x[e] = s[e * OI + first + id];
        UNROLLED for (int j = 0; j < 6; j++) TRANSFORM_ADJOINT_G(y + j, 6, x + j, 6)
        UNROLLED for (int i = 0; i < 3; i++) TRANSFORM_ADJOINT_G(z + 3 * i, 1, y + 6 * i, 1)
        UNROLLED for (int k = 0; k < 9; k++) tile[9 * id + k] = z[k];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = id; i < 9 * n; i += ITEMS) dw[9 * first + i] = tile[i];
}
