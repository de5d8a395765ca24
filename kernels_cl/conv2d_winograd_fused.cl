// SPDX-License-Identifier: Apache-2.0
//
// Convolution with a 3x3 kernel, stride 1, dilation 1, one group, by Winograd's F(2x2, 3x3) in one launch, for devices with lanes: what is
// transformed stays in local memory, so large images of few channels are read once for 32 channels of the result. An output tile of 2x2
// takes 16 products an input channel instead of 36. With in [N][C][H][W], out [N][M][OH][OW], tiles t = (n*TH + ty)*TW + tx that begin at
// row 2*ty + y0 and column 2*tx + x0 of in, and 16 e:
//
//   U[e][m][c] = (G w G')     V[e][c][t] = (B' d B)     R[e][m][t] = sum_c U V     out tile = epilogue( A' R[.][m][t] A + bias[m] )
//
// Made from the points 0, 1, -1 and infinity, as conv2d_winograd.cl says of its own; sources there. w is weight[m][c], or with flip weight[c][m]
// turned round, for the gradient by the input.
//
// Entries
//   winograd_fused_weight  An item a kernel, i < (number of blocks of 32 m)*32 * (number of blocks of TK c)*TK, whether it is there or 0. Block
//                          (mb, cb) of u is what a group of winograd_fused has in local memory at once: u[(mb*blocks + cb)*16*TK*32 + place],
//                          where place = (e*TK + c)*32 + m, and of each second e m is 16 further in a ring of 32.
//   winograd_fused         A group of 256 items makes 32 channels, from 32*gy on, of 32 tiles, from 32*gx on. Of each e sixteen items have
//                          8x8 sums of R each; for TK channels at a time an item transforms a tile of a channel, and the next ones are
//                          on their way while these are multiplied. R goes through local memory to items that have all e of an output tile,
//                          and these to items that stand along the rows of out. Halves of the 32 change places in each second e, so that
//                          neighbouring items that work on two e meet other banks.
//
// Macros
//   T_IN, T_OUT    how in and out are stored, float, f16 or bf16; default float
//   EPI_*          the epilogue of winograd_fused, common/epilogue.cl; default none
//   TK             channels at a time: 8, as 256 items have 32 tiles
// Local memory: 32 KiB.

#define T_IN float
#define T_OUT float
#define TK 8

EPILOGUE_FUNCTION(KERNEL(epilogue), float)
#define UNROLLED _Pragma("unroll")
#define STEP 2 // channels in a turn of the innermost loop: with four it takes up to 35 registers more
#define BLOCK (16 * TK * 32)
#define ODD(e) ((e) % 2 * 16)

// y = G x, y = B' x and y = A' x, of elements that lie ys and xs apart.
#define TRANSFORM_G(y, ys, x, xs)                                                                            \
    {                                                                                                        \
        const float a_ = 0.5f * ((x)[0] + (x)[2 * xs]), b_ = 0.5f * (x)[xs];                                 \
        (y)[0] = (x)[0], (y)[ys] = a_ + b_, (y)[2 * ys] = a_ - b_, (y)[3 * ys] = (x)[2 * xs];                \
    }
#define TRANSFORM_B(y, ys, x, xs)                                                                            \
    {                                                                                                        \
        (y)[0] = (x)[0] - (x)[2 * xs], (y)[ys] = (x)[xs] + (x)[2 * xs];                                      \
        (y)[2 * ys] = (x)[2 * xs] - (x)[xs], (y)[3 * ys] = (x)[xs] - (x)[3 * xs];                            \
    }
#define TRANSFORM_A(y, ys, x, xs)                                                                            \
    {                                                                                                        \
        (y)[0] = (x)[0] + (x)[xs] + (x)[2 * xs], (y)[ys] = (x)[xs] - (x)[2 * xs] - (x)[3 * xs];              \
    }

__kernel void KERNEL(winograd_fused_weight)(__global float *restrict u, __global const float *restrict weight, int size,
                                            int M, int C, int blocks, int flip) {
    const int i = (int)get_global_id(0);
    if (i >= size) return;
    const int k = i / 32 % TK, c = i / 32 / TK % blocks * TK + k, m = i / 32 / TK / blocks * 32 + i % 32;
    float w[9], y[12], z[16];
    UNROLLED for (int j = 0; j < 9; j++)
        w[j] = m < M && c < C ? weight[(flip ? c * M + m : m * C + c) * 9 + (flip ? 8 - j : j)] : 0.0f;
    UNROLLED for (int j = 0; j < 3; j++) TRANSFORM_G(y + j, 3, w + j, 3)
    UNROLLED for (int j = 0; j < 4; j++) TRANSFORM_G(z + 4 * j, 1, y + 3 * j, 1)
    u += i / 32 / TK * BLOCK + k * 32;
    UNROLLED for (int e = 0; e < 16; e++) u[e * TK * 32 + (i % 32 ^ ODD(e))] = z[e];
}

// TK channels from the turn's first on: the item's tile of its own channel. (U, which all groups read, comes when it is needed: on its way it
// would take sixteen registers more.)
#define FETCH(turn)                                                                                          \
    {                                                                                                        \
        const uint has = (turn) * TK + channel < C ? inside : 0;                                             \
        UNROLLED for (int i = 0; i < 4; i++) {                                                               \
            __global const T_IN *from = in + at + i * W;                                                     \
            UNROLLED for (int j = 0; j < 4; j++)                                                             \
                x[4 * i + j] = has >> (4 * i + j) & 1 ? LOAD(T_IN, from + j) : 0.0f;                         \
        }                                                                                                    \
        at += TK * H * W;                                                                                    \
    }
#define KEEP                                                                                                 \
    {                                                                                                        \
        float y[16];                                                                                         \
        UNROLLED for (int j = 0; j < 4; j++) TRANSFORM_B(y + j, 4, x + j, 4)                                 \
        UNROLLED for (int j = 0; j < 4; j++) TRANSFORM_B(x + 4 * j, 1, y + 4 * j, 1)                         \
        UNROLLED for (int e = 0; e < 16; e++)                                                                \
            tile[BLOCK + (e * TK + channel) * 32 + (id % 32 ^ ODD(e))] = x[e];                               \
    }
// Rows 16*h to 16*h + 15 of R, of which an item has the sums from 4*h on.
#define PUT(h)                                                                                               \
    UNROLLED for (int i = 0; i < 4; i++) {                                                                   \
        __local float *to = tile + e * 512 + (4 * row + i) * 32;                                             \
        vstore4(vload4(0, sums[4 * (h) + i]), 0, to + (4 * column ^ ODD(e)));                                \
        vstore4(vload4(1, sums[4 * (h) + i]), 0, to + (4 * column + 16 ^ ODD(e)));                           \
    }

__kernel __attribute__((reqd_work_group_size(256, 1, 1))) void
KERNEL(winograd_fused)(__global T_OUT *restrict out, __global const float4 *restrict u, __global const T_IN *restrict in,
                       __global const float *restrict bias, int N, int C, int H, int W, int M, int OH, int OW, int TH,
                       int TW, int y0, int x0, int has_bias EPILOGUE_PARAMS) {
    __local float tile[2 * BLOCK] __attribute__((aligned(16)));
    const int id = (int)get_local_id(0), e = id / 16, row = id / 4 % 4, column = id % 4;
    const int t0 = (int)get_group_id(0) * 32, m0 = (int)get_group_id(1) * 32, turns = (C + TK - 1) / TK;
    const int own = t0 + id % 32, channel = id / 32;
    const int h = own / TW % TH * 2 + y0, w = own % TW * 2 + x0;
    int at = ((own / TW / TH * C + channel) * H + h) * W + w;
    uint inside = 0;
    UNROLLED for (int j = 0; j < 16; j++)
        inside |= (uint)(own < N * TH * TW & (uint)(h + j / 4) < (uint)H & (uint)(w + j % 4) < (uint)W) << j;
    float x[16], sums[8][8];
    UNROLLED for (int i = 0; i < 8; i++) UNROLLED for (int j = 0; j < 8; j++) sums[i][j] = 0.0f;
    u += get_group_id(1) * turns * (BLOCK / 4);
    FETCH(0)
    for (int turn = 1; turn <= turns; turn++) {
        UNROLLED for (int j = 0; j < BLOCK / 1024; j++)((__local float4 *)tile)[j * 256 + id] = u[j * 256 + id];
        u += BLOCK / 4;
        KEEP
        barrier(CLK_LOCAL_MEM_FENCE);
        if (turn < turns) FETCH(turn)
        __local const float *near_u = tile + e * TK * 32 + (4 * row ^ ODD(e)), *far_u = near_u + (16 - 2 * ODD(e));
        __local const float *near_v = tile + BLOCK + e * TK * 32 + (4 * column ^ ODD(e)),
                            *far_v = near_v + (16 - 2 * ODD(e));
        _Pragma("nounroll") for (int step = 0; step < TK; step += STEP) {
            UNROLLED for (int k = 0; k < STEP; k++) {
                float a[8], b[8];
                vstore4(*(__local const float4 *)(near_u + k * 32), 0, a);
                vstore4(*(__local const float4 *)(far_u + k * 32), 1, a);
                vstore4(*(__local const float4 *)(near_v + k * 32), 0, b);
                vstore4(*(__local const float4 *)(far_v + k * 32), 1, b);
                UNROLLED for (int i = 0; i < 8; i++) UNROLLED for (int j = 0; j < 8; j++) sums[i][j] =
                    fma(a[i], b[j], sums[i][j]);
            }
            near_u += STEP * 32, far_u += STEP * 32, near_v += STEP * 32, far_v += STEP * 32;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    // The item's pixel of out, in all of its channels.
    const int t = t0 + id % 64 / 2, oh = t / TW % TH * 2 + id / 64 % 2, ow = t % TW * 2 + id % 2;
    const int pixel = (t / TW / TH * M * OH + oh) * OW + ow;
    const bool there = t < N * TH * TW & oh < OH & ow < OW;
    _Pragma("nounroll") for (int half_ = 0; half_ < 2; half_++) {
        float z[8];
        if (half_ == 0) {
            PUT(0)
        } else {
            PUT(1)
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        UNROLLED for (int i = 0; i < 2; i++) {
            float r[16], y[8];
            UNROLLED for (int j = 0; j < 16; j++) r[j] = tile[j * 512 + i * 256 + id / 32 * 32 + (id % 32 ^ ODD(j))];
            UNROLLED for (int j = 0; j < 4; j++) TRANSFORM_A(y + j, 4, r + j, 4)
            UNROLLED for (int j = 0; j < 2; j++) TRANSFORM_A(z + 4 * i + 2 * j, 1, y + 4 * j, 1)
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        UNROLLED for (int i = 0; i < 4; i++)
            vstore2(vload2(i, z), id % 32, tile + i / 2 * 1024 + id / 32 * 128 + i % 2 * 64);
        barrier(CLK_LOCAL_MEM_FENCE);
        _Pragma("nounroll") for (int i = 0; i < 8; i++) {
            const int m = m0 + 16 * half_ + 2 * i + id / 128, to = pixel + m * OH * OW;
            if (there && m < M) {
                const float v = tile[i * 256 + id] + (has_bias ? bias[m] : 0.0f);
                EPILOGUE_CHANNEL(m);
                STORE(T_OUT, KERNEL(epilogue)(v EPILOGUE_AT(to)), out + to);
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
