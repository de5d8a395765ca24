// SPDX-License-Identifier: Apache-2.0
//
// Sums along an axis of x [outer, V, inner]: y[i] = x[0] + ... + x[i], without x[i] if exclusive, from the other end if reverse. Line l is
// (l / inner, l % inner). A long axis is cut into chunks of `length`: each one's sum, then the sums of all chunks before each, then y.
//
//   cumsum_sums      item (line*chunks + chunk): part[item] = the sum of the chunk
//   cumsum_parts     item l: part of line l becomes, of each chunk, the sum of the chunks before it
//   cumsum_lines     item (line*chunks + chunk): y along the chunk, from part[item] on; chunks = 1: from 0, and part is any buffer
//   cumsum_columns   an item does VW neighbouring lines of one outer, whole: columns = inner / VW rounded up; inner >= VW. The last ones
//                    begin earlier, and do again what the item before does
//   cumprod_backward an item does a line: dx[i] = (product of those before i) * r[i], r[i] = dy[i] + x[i+1] * r[i+1]; exclusive: without dy[i]
//   cumprod_backward_group   inner = 1: the same with a group of ITEMS items for each line, which know from the workspace what stands before
//                    i. What comes of those behind is l[i] = x[i] * l[i+1] + b[i], b dy or x * dy, and such steps join as sums do
//   cumsum_group_sums, cumsum_group   inner = 1: the first and the third with a group of ITEMS items for each chunk, RUN elements each at a
//                    time by way of local memory
//
// Macros
//   T_X, T_Y   how x and y are stored: float, f16, bf16 or int; default float
//   SUM        what is added up: float or int; default float
//   VW         lines of an item of cumsum_columns: 4, 8 or 16; default 16
//   PRODUCT    1: products, of floats, not sums; default 0
//   ITEMS      items of a group, a power of two; default 256

#define T_X float
#define T_Y float
#define SUM float
#define VW 16
#define ITEMS 256
#define RUN 4
#define PRODUCT 0

#if PRODUCT
#define START 1
#define ADD *=
#else
#define START 0
#define ADD +=
#endif

#define PLACE(t) (((clv_offset)(line / inner) * V + (reverse ? V - 1 - (t) : (t))) * inner + line % inner)

__kernel void KERNEL(cumsum_sums)(__global SUM *restrict part, __global const T_X *restrict x, int lines,
                                  int V, int inner, int length, int chunks, int reverse) {
    const int id = (int)get_global_id(0), line = id / chunks, begin = id % chunks * length;
    if (line >= lines) return;
    SUM sum = START;
    for (int t = begin; t < min(begin + length, V); t++) sum ADD LOAD(T_X, x + PLACE(t));
    part[id] = sum;
}

__kernel void KERNEL(cumsum_parts)(__global SUM *restrict part, int lines, int chunks) {
    const int line = (int)get_global_id(0);
    if (line >= lines) return;
    SUM sum = START;
    for (int chunk = 0; chunk < chunks; chunk++) {
        const SUM own = part[line * chunks + chunk];
        part[line * chunks + chunk] = sum;
        sum ADD own;
    }
}

__kernel void KERNEL(cumsum_lines)(__global T_Y *restrict y, __global const T_X *restrict x,
                                   __global const SUM *restrict part, int lines, int V, int inner, int length,
                                   int chunks, int reverse, int exclusive) {
    const int id = (int)get_global_id(0), line = id / chunks, begin = id % chunks * length;
    if (line >= lines) return;
    SUM sum = START;
    if (chunks > 1) sum = part[id];
    for (int t = begin; t < min(begin + length, V); t++) {
        const clv_offset at = PLACE(t);
        const SUM before = sum;
        sum ADD LOAD(T_X, x + at);
        STORE(T_Y, exclusive ? before : sum, y + at);
    }
}

__kernel void KERNEL(cumsum_columns)(__global T_Y *restrict y, __global const T_X *restrict x, int n, int V,
                                     int inner, int columns, int reverse, int exclusive) {
    const int id = (int)get_global_id(0), column = min(id % columns * VW, inner - VW);
    if (id >= n) return;
    const clv_offset first = (clv_offset)(id / columns) * V * inner + column;
    PASTE(SUM, VW) sum = (PASTE(SUM, VW))(START);
    for (int t = 0; t < V; t++) {
        const clv_offset at = first + (clv_offset)(reverse ? V - 1 - t : t) * inner;
        const PASTE(SUM, VW) before = sum;
        sum ADD VLOAD(T_X, VW, x + at);
        VSTORE(T_Y, VW, exclusive ? before : sum, y + at);
    }
}

__kernel void KERNEL(cumprod_backward)(__global float *restrict dx, __global const T_Y *restrict dy,
                                       __global const T_X *restrict x, int lines, int V, int inner, int reverse,
                                       int exclusive) {
    const int line = (int)get_global_id(0);
    if (line >= lines) return;
    float later = 0.0f, before = 1.0f;
    for (int t = V - 1; t >= 0; t--) {
        const clv_offset at = PLACE(t);
        const float with = LOAD(T_Y, dy + at) + (exclusive ? LOAD(T_X, x + at) * later : later);
        dx[at] = exclusive ? later : with;
        later = exclusive ? with : LOAD(T_X, x + at) * with;
    }
    for (int t = 0; t < V; t++) {
        const clv_offset at = PLACE(t);
        dx[at] *= before;
        before *= LOAD(T_X, x + at);
    }
}

#define GROUP_PLACE(t) ((clv_offset)line * V + (reverse ? V - 1 - (t) : (t)))

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void
KERNEL(cumsum_group_sums)(__global SUM *restrict part, __global const T_X *restrict x, int V, int length,
                          int chunks, int reverse) {
    __local SUM own[ITEMS];
    const int group = (int)get_group_id(0), id = (int)get_local_id(0), line = group / chunks;
    const int begin = group % chunks * length, end = min(begin + length, V);
    SUM sum = START;
    for (int t = begin + id; t < end; t += ITEMS) sum ADD LOAD(T_X, x + GROUP_PLACE(t));
    own[id] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int apart = ITEMS / 2; apart > 0; apart /= 2) {
        if (id < apart) own[id] ADD own[id + apart];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (id == 0) part[group] = own[0];
}

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void
KERNEL(cumsum_group)(__global T_Y *restrict y, __global const T_X *restrict x,
                     __global const SUM *restrict part, int V, int length, int chunks, int reverse,
                     int exclusive) {
    __local SUM tile[ITEMS * (RUN + 1)]; // an item's run begins in a bank of its own
    __local SUM own[2][ITEMS];
    const int group = (int)get_group_id(0), id = (int)get_local_id(0), line = group / chunks;
    const int begin = group % chunks * length, end = min(begin + length, V);
    SUM carried = START;
    if (chunks > 1) carried = part[group];
    for (int first = begin; first < end; first += ITEMS * RUN) {
        for (int j = id; j < ITEMS * RUN; j += ITEMS) {
            SUM v = START;
            if (first + j < end) v = LOAD(T_X, x + GROUP_PLACE(first + j));
            tile[j / RUN * (RUN + 1) + j % RUN] = v;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        SUM sum = START;
        for (int r = 0; r < RUN; r++) sum ADD tile[id * (RUN + 1) + r];
        own[0][id] = sum;
        barrier(CLK_LOCAL_MEM_FENCE);
        int now = 0;
        for (int apart = 1; apart < ITEMS; apart *= 2, now ^= 1) {
            SUM v = own[now][id];
            if (id >= apart) v ADD own[now][id - apart];
            own[now ^ 1][id] = v;
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        sum = carried;
        if (id > 0) sum ADD own[now][id - 1];
        carried ADD own[now][ITEMS - 1];
        for (int r = 0; r < RUN; r++) {
            const SUM before = sum;
            sum ADD tile[id * (RUN + 1) + r];
            tile[id * (RUN + 1) + r] = exclusive ? before : sum;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int j = id; j < ITEMS * RUN; j += ITEMS)
            if (first + j < end) STORE(T_Y, tile[j / RUN * (RUN + 1) + j % RUN], y + GROUP_PLACE(first + j));
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void
KERNEL(cumprod_backward_group)(__global float *restrict dx, __global const T_Y *restrict dy,
                               __global const T_X *restrict x, __global const float *restrict before, int V,
                               int reverse, int exclusive) {
    __local float factors[ITEMS * (RUN + 1)], tile[ITEMS * (RUN + 1)];
    __local float2 own[2][ITEMS]; // l becomes own.x * l + own.y
    const int line = (int)get_group_id(0), id = (int)get_local_id(0);
    float carried = 0.0f;
    for (int first = 0; first < V; first += ITEMS * RUN) { // from the last element on
        for (int j = id; j < ITEMS * RUN; j += ITEMS) {
            const int at = j / RUN * (RUN + 1) + j % RUN, t = V - 1 - first - j;
            factors[at] = t >= 0 ? LOAD(T_X, x + GROUP_PLACE(t)) : 1.0f;
            tile[at] = t >= 0 ? LOAD(T_Y, dy + GROUP_PLACE(t)) : 0.0f;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        float2 step = (float2)(1.0f, 0.0f);
        for (int r = 0; r < RUN; r++) {
            const float a = factors[id * (RUN + 1) + r], g = tile[id * (RUN + 1) + r];
            step = (float2)(a * step.x, a * step.y + (exclusive ? g : a * g));
        }
        own[0][id] = step;
        barrier(CLK_LOCAL_MEM_FENCE);
        int now = 0;
        for (int apart = 1; apart < ITEMS; apart *= 2, now ^= 1) {
            float2 v = own[now][id];
            if (id >= apart) {
                const float2 other = own[now][id - apart];
                v = (float2)(v.x * other.x, v.x * other.y + v.y);
            }
            own[now ^ 1][id] = v;
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        const float2 all = own[now][ITEMS - 1];
        float later = id > 0 ? own[now][max(id - 1, 0)].x * carried + own[now][max(id - 1, 0)].y : carried;
        carried = all.x * carried + all.y;
        for (int r = 0; r < RUN; r++) {
            const float a = factors[id * (RUN + 1) + r], g = tile[id * (RUN + 1) + r];
            tile[id * (RUN + 1) + r] = exclusive ? later : g + later;
            later = a * later + (exclusive ? g : a * g);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int j = id; j < ITEMS * RUN; j += ITEMS) {
            const int at = j / RUN * (RUN + 1) + j % RUN, t = V - 1 - first - j;
            if (t >= 0) dx[GROUP_PLACE(t)] = tile[at] * before[GROUP_PLACE(t)];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
