// SPDX-License-Identifier: Apache-2.0
//
// Depthwise convolution and its gradients for devices with lanes: every group has one input and one output channel. Kernel, stride,
// dilation and padding are macros, so that loops over taps unroll and most tests are done by the compiler. A plane p of P is a channel
// of an image, p = n*C + c.
//
// Entries
//   channels_forward  an item makes ROWS rows of a column of y:   get_global_id(0) = (p*blocks + block)*OW + ox, rows from block*ROWS on
//                       y[p][oy][ox] = epilogue( bias[c] + sum_{i,j} x[p][oy*SH - PH + i*DH][ox*SW - PW + j*DW] * w[c][i][j] )
//   channels_input    an item makes ROWS rows of a column of dx, ROWS a multiple of SH, indexed in the same way:
//                       dx[p][iy][ix] = epilogue( sum_{i,j} dy[p][(iy + PH - i*DH)/SH][(ix + PW - j*DW)/SW] * w[c][i][j] )
//                     over the taps where both divisions leave no rest. Outside of an image everything is 0.
//   channels_weight   a group of ITEMS sums some images of a channel, group = split*C + c, images [split*images, (split+1)*images):
//                       part[split][c][i*KW + j] = sum_{n,oy,ox} dy[n][c][oy][ox] * x[n][c][oy*SH - PH + i*DH][ox*SW - PW + j*DW]
//                     In turns, `planes` images at a time, or one and `rows` rows of dy, a multiple of ROWS, by `wide` columns: the
//                     pixels of x and dy come to local memory, with zeros where there are none, and an item sums columns of ROWS
//                     pixels. Last a tree adds the items' sums. Of x there are `height` rows and `width` columns. Pixels that
//                     neighbouring items want lie side by side: in each of ROWS runs those of every ROWS-th row of dy, from block to
//                     block and plane to plane; in each of ROWS*SH*SW those of every ROWS*SH-th row and SW-th column of x. Runs are
//                     dy_pitch and x_pitch apart. ROWS*(SH*SW*x_pitch + dy_pitch) <= FLOATS.
//                     x_lanes and dy_lanes, powers of two up to ITEMS: items along a row of what they bring
//
// Macros
//   T_IN, T_OUT        how tensors are stored, float, f16 or bf16; default float. IN: x, or dy of the gradient by the input; OUT: y, or
//                      its dx. The gradient by the weights reads x as IN and dy as OUT
//   EPI_*              the epilogue, common/epilogue.cl; default none
//   KH, KW, SH, SW, DH, DW, PH, PW   kernel, stride, dilation, padding; default 3, 3, 1, 1, 1, 1, 1, 1
//   ROWS               rows of an item, default 4
//   ITEMS              of a group of channels_weight, a power of two; default 128. Local memory: 4*(ITEMS + FLOATS) bytes
//   FLOATS             pixels in its local memory; default 3072

#define T_IN float
#define T_OUT float
#define KH 3
#define KW 3
#define SH 1
#define SW 1
#define DH 1
#define DW 1
#define PH 1
#define PW 1
#define ROWS 4
#define ITEMS 128
#define FLOATS 3072

EPILOGUE_FUNCTION(KERNEL(epilogue), float)
#define UNROLLED _Pragma("unroll")

// The item's column, plane, channel and first row, of planes of `height` x `width`; items beyond the last are done.
#define WHERE(height, width)                                                                                 \
    const int blocks = (height + ROWS - 1) / ROWS, id = (int)get_global_id(0), column = id % width;          \
    const int p = id / width / blocks, row = id / width % blocks * ROWS;                                     \
    if (p >= P) return;                                                                                      \
    const int c = p % C;                                                                                     \
    float sums[ROWS], taps[KH * KW];                                                                         \
    UNROLLED for (int i = 0; i < KH * KW; i++) taps[i] = w[c * KH * KW + i];                                   \
    UNROLLED for (int i = 0; i < ROWS; i++) sums[i] = 0.0f;
#define STORE_ROWS(height, width)                                                                            \
    EPILOGUE_CHANNEL(c);                                                                                     \
    UNROLLED for (int i = 0; i < ROWS; i++) {                                                                \
        const int at = (p * height + row + i) * width + column;                                              \
        if (row + i < height) STORE(T_OUT, KERNEL(epilogue)(sums[i] EPILOGUE_AT(at)), out + at);             \
    }
// The element of a plane of `height` x `width`, or 0 outside of it.
#define INSIDE(h, w, height, width) ((uint)(h) < (uint)(height) && (uint)(w) < (uint)(width))
#define FETCH(T, from, h, w, height, width, valid)                                                           \
    (valid ? LOAD(T, (from) + (valid ? (h) * (width) + (w) : 0)) : 0.0f)

__kernel void KERNEL(channels_forward)(__global T_OUT *restrict out, __global const T_IN *restrict in,
                                       __global const float *restrict w, __global const float *restrict bias, int P,
                                       int C, int H, int W, int OH, int OW, int has_bias EPILOGUE_PARAMS) {
    WHERE(OH, OW)
    in += (clv_offset)p * H * W;
    if (has_bias) UNROLLED for (int i = 0; i < ROWS; i++) sums[i] = bias[c];
    const int x = column * SW - PW;
    // Row by row of x: the taps of all rows of y that meet it.
    UNROLLED for (int v = 0; v < (ROWS - 1) * SH + (KH - 1) * DH + 1; v++) {
        const int y = row * SH - PH + v;
        float line[KW];
        UNROLLED for (int j = 0; j < KW; j++) {
            const bool valid = INSIDE(y, x + j * DW, H, W);
            line[j] = FETCH(T_IN, in, y, x + j * DW, H, W, valid);
        }
        UNROLLED for (int r = 0; r < ROWS; r++)
            UNROLLED for (int i = 0; i < KH; i++)
                if (r * SH + i * DH == v)
                    UNROLLED for (int j = 0; j < KW; j++) sums[r] = fma(line[j], taps[i * KW + j], sums[r]);
    }
    STORE_ROWS(OH, OW)
}

__kernel void KERNEL(channels_input)(__global T_OUT *restrict out, __global const T_IN *restrict in,
                                     __global const float *restrict w, __global const float *restrict bias,
                                     int P, int C, int H, int W, int OH, int OW,
                                     int has_bias EPILOGUE_PARAMS) {
    WHERE(H, W)
    if (has_bias) UNROLLED for (int i = 0; i < ROWS; i++) sums[i] = bias[c];
    in += (clv_offset)p * OH * OW;
    UNROLLED for (int r = 0; r < ROWS; r++) {
        UNROLLED for (int i = 0; i < KH; i++) {
            if ((r + PH - i * DH) % SH != 0) continue; // row is a multiple of SH
            const int y = row / SH + (r + PH - i * DH) / SH;
            UNROLLED for (int j = 0; j < KW; j++) {
                const int u = column + PW - j * DW, x = u / SW;
                const bool valid = u >= 0 && u % SW == 0 && INSIDE(y, x, OH, OW);
                const float v = FETCH(T_IN, in, y, x, OH, OW, valid);
                sums[r] = fma(v, taps[i * KW + j], sums[r]);
            }
        }
    }
    STORE_ROWS(H, W)
}

// The rows from row0 on and the columns from column0 on of some planes, `apart` elements from each other, to local memory, as
// runs of every high-th row and step-th column. `lanes` items stand along a row.
#define GATHER(T, to, from, apart, high, step, pitch, height, width, lanes, row0, column0, H, W)             \
    for (int q = id / (lanes), row = q % (height), plane = q / (height); q < now * (height);                 \
         q += ITEMS / (lanes)) {                                                                             \
        const int h = row + (row0), block = plane * (((height) + (high)-1) / (high)) + row / (high);         \
        __global const T *line = from + (clv_offset)plane * (apart) + clamp(h, 0, H - 1) * (W);              \
        __local float *run = to + row % (high) * (step) * (pitch) + block * (((width) + (step)-1) / (step)); \
        for (int at = id & ((lanes)-1); at < (width); at += (lanes)) {                       \
            const int w = at + (column0);                                                                    \
            const float value = LOAD(T, line + clamp(w, 0, W - 1));                                          \
            run[at % (step) * (pitch) + at / (step)] = INSIDE(h, w, H, W) ? value : 0.0f;                    \
        }                                                                                                    \
        for (row += ITEMS / (lanes); row >= (height); row -= (height)) plane++;                              \
    }

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void
KERNEL(channels_weight)(__global float *restrict part, __global const T_OUT *restrict dy,
                        __global const T_IN *restrict x, int N, int C, int H, int W, int OH, int OW, int images,
                        int planes, int rows, int wide, int height, int width, int x_pitch, int dy_pitch, int x_lanes, int dy_lanes) {
    __local float tree[ITEMS], tile[FLOATS];
    const int id = (int)get_local_id(0), group = (int)get_group_id(0), c = group % C;
    const int end = min(N, group / C * images + images);
    const int x_blocks = (height + ROWS * SH - 1) / (ROWS * SH), x_wide = (width + SW - 1) / SW;
    float sums[KH * KW];
    UNROLLED for (int i = 0; i < KH * KW; i++) sums[i] = 0.0f;
    for (int n = group / C * images; n < end; n += planes) {
        const int now = min(planes, end - n), columns = now * rows / ROWS * wide;
        __local float *to = tile + ROWS * SH * SW * x_pitch;
        for (int first = 0, left = 0; first < OH;) {
            GATHER(T_IN, tile, x + (clv_offset)(n * C + c) * H * W, C * H * W, ROWS * SH, SW, x_pitch, height,
                   width, x_lanes, first * SH - PH, left * SW - PW, H, W)
            GATHER(T_OUT, to, dy + (clv_offset)(n * C + c) * OH * OW, C * OH * OW, ROWS, 1, dy_pitch, rows,
                   wide, dy_lanes, first, left, OH, OW)
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int at = id, ox = id % wide, block = id / wide; at < columns; at += ITEMS) {
                const int of_x = block + block / (rows / ROWS) * (x_blocks - rows / ROWS);
                __local const float *from = tile + of_x * x_wide + ox;
                float v[ROWS];
                UNROLLED for (int r = 0; r < ROWS; r++) v[r] = to[r * dy_pitch + at];
                // Row by row of x: the taps of all rows of dy that meet it.
                UNROLLED for (int u = 0; u < (ROWS - 1) * SH + (KH - 1) * DH + 1; u++) {
                    UNROLLED for (int j = 0; j < KW; j++) {
                        const int run = u % (ROWS * SH) * SW + j * DW % SW;
                        const float value = from[run * x_pitch + u / (ROWS * SH) * x_wide + j * DW / SW];
                        UNROLLED for (int r = 0; r < ROWS; r++)
                            UNROLLED for (int i = 0; i < KH; i++)
                                if (r * SH + i * DH == u) sums[i * KW + j] = fma(v[r], value, sums[i * KW + j]);
                    }
                }
                ox += ITEMS % wide;
                block += ITEMS / wide;
                if (ox >= wide) {
                    ox -= wide;
                    block++;
                }
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            left += wide;
            if (left >= OW) left = 0, first += rows;
        }
    }
    UNROLLED for (int i = 0; i < KH * KW; i++) {
        tree[id] = sums[i];
        for (int apart = ITEMS / 2; apart > 0; apart /= 2) {
            TREE_MEET(2 * apart)
            if (id < apart) tree[id] += tree[id + apart];
        }
        if (id == 0) part[group * KH * KW + i] = tree[0];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
