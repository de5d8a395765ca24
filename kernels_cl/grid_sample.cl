// SPDX-License-Identifier: Apache-2.0
// x [N, C, D, H, W] (ND 3; of ND 2 D is 1, of ND 1 H too) at the places of grid [N, P, ND], which begin with that along W, from -1 to 1:
// y [N, C, P]. Each place takes TAPS elements along each dimension, by weights.
//
//   grid_sample             an item does `each` channels of a place of y: item (n*blocks + block)*P + p
//   grid_sample_backward_x  an item does `rows` rows of one channel of one sample of dx [N, C, R, ...], R the first of its ND dimensions:
//                           item (n*C + c)*slabs + slab. It goes through all places, in their order
//   grid_sample_backward_grid  an item does a place of dgrid [N, P, ND]
//
// T_X, T_GRID, T_Y   how x, grid and y (in gradients dy) are stored: float (default), f16, bf16
// T_DGRID            how dgrid is
// ND                 dimensions, 1, 2 (default) or 3
// TAPS               1: the nearest; 2: linearly (default); 4: Keys's weights, of a = -0.75
// EDGES              what lies outside: 0 zeros (default), 1 the nearest element within, 2 x as in mirrors
// CORNERS            1: -1 and 1 are the middles of the first and the last element; 0 (default): their outer ends
#define T_X float
#define T_GRID float
#define T_Y float
#define T_DGRID float
#define ND 2
#define TAPS 2
#define EDGES 0
#define CORNERS 0

// A place as mirrors at both ends see it, and how it moves with what it was.
float KERNEL(grid_mirrored)(float v, int size, float *slope) {
    const float low = CORNERS ? 0.0f : -0.5f, span = CORNERS ? (float)(size - 1) : (float)size;
    if (span <= 0.0f) {
        *slope = 0.0f;
        return 0.0f;
    }
    const float away = fabs(v - low), turns = floor(away / span), rest = away - turns * span;
    const int back = (int)fmod(turns, 2.0f) != 0;
    *slope *= (v < low ? -1.0f : 1.0f) * (back ? -1.0f : 1.0f);
    return (back ? span - rest : rest) + low;
}

// Within a dimension, unless what is outside is zero.
float KERNEL(grid_within)(float v, int size, float *slope) {
#if EDGES == 2
    v = KERNEL(grid_mirrored)(v, size, slope);
#endif
#if EDGES > 0
    if (v <= 0.0f || v >= (float)(size - 1)) *slope = 0.0f;
    v = fmin(fmax(v, 0.0f), (float)(size - 1));
#endif
    return v;
}

// Along a dimension: the elements that place g takes from, -1: none; their weights, and how these change with g.
void KERNEL(grid_taps)(float g, int size, int *at, float *weight, float *change) {
    float slope = 0.5f * (float)(CORNERS ? size - 1 : size), unused = 0.0f;
    float v = CORNERS ? (g + 1.0f) * 0.5f * (float)(size - 1) : ((g + 1.0f) * (float)size - 1.0f) * 0.5f;
    if (TAPS < 4) v = KERNEL(grid_within)(v, size, &slope);
    v = fmin(fmax(v, -1e6f), 2e9f); // no number is far outside
    const float low = TAPS == 1 ? rint(v) : floor(v), t = v - low;
#if TAPS == 1
    weight[0] = 1.0f, change[0] = 0.0f;
#elif TAPS == 2
    weight[0] = 1.0f - t, weight[1] = t;
    change[0] = -slope, change[1] = slope;
#else
    const float a = -0.75f;
    for (int k = 0; k < 4; k++) {
        const float d = k == 0 ? t + 1.0f : k == 1 ? t : k == 2 ? 1.0f - t : 2.0f - t, way = k < 2 ? slope : -slope;
        const int near = k == 1 || k == 2;
        weight[k] = near ? ((a + 2.0f) * d - (a + 3.0f)) * d * d + 1.0f : ((a * d - 5.0f * a) * d + 8.0f * a) * d - 4.0f * a;
        change[k] = way * (near ? (3.0f * (a + 2.0f) * d - 2.0f * (a + 3.0f)) * d : (3.0f * a * d - 10.0f * a) * d + 8.0f * a);
    }
#endif
    for (int k = 0; k < TAPS; k++) {
        float one = low + (float)(TAPS == 4 ? k - 1 : k);
        if (TAPS == 4) one = KERNEL(grid_within)(one, size, &unused);
        at[k] = one >= 0.0f && one <= (float)(size - 1) ? (int)one : -1;
    }
}

#define GRID_ARGS                                                                                            \
    int at[3][TAPS];                                                                                         \
    float weight[3][TAPS], change[3][TAPS];                                                                  \
    const int sizes[3] = {D, H, W};                                                                          \
    for (int k = 0; k < TAPS; k++) at[0][k] = at[1][k] = k ? -1 : 0, weight[0][k] = weight[1][k] = 1.0f;     \
    for (int d = 0; d < ND; d++)                                                                             \
        KERNEL(grid_taps)                                                                                    \
        (LOAD(T_GRID, grid + (n * P + p) * ND + d), sizes[2 - d], at[2 - d], weight[2 - d], change[2 - d]);

// All elements that a place takes from: i, j and k count those along D, H and W.
#define GRID_EACH(body)                                                                                      \
    for (int i = 0; i < (ND > 2 ? TAPS : 1); i++)                                                            \
        for (int j = 0; j < (ND > 1 ? TAPS : 1); j++)                                                        \
            for (int k = 0; k < TAPS; k++)                                                                   \
                if (at[0][i] >= 0 && at[1][j] >= 0 && at[2][k] >= 0) {                                       \
                    const int from = (at[0][i] * H + at[1][j]) * W + at[2][k];                               \
                    body                                                                                     \
                }

__kernel void KERNEL(grid_sample)(__global T_Y *restrict y, __global const T_X *restrict x,
                                  __global const T_GRID *restrict grid, int items, int C, int D, int H, int W, int P,
                                  int each) {
    const int id = (int)get_global_id(0), blocks = (C + each - 1) / each;
    if (id >= items) return;
    const int p = id % P, n = id / P / blocks, first = id / P % blocks * each;
    GRID_ARGS
    for (int c = first; c < min(first + each, C); c++) {
        __global const T_X *plane = x + (n * C + c) * D * H * W;
        float sum = 0.0f;
        GRID_EACH(sum += weight[0][i] * weight[1][j] * weight[2][k] * LOAD(T_X, plane + from);)
        STORE(T_Y, sum, y + (n * C + c) * P + p);
    }
}

__kernel void KERNEL(grid_sample_backward_x)(__global float *restrict dx, __global const T_Y *restrict dy,
                                             __global const T_GRID *restrict grid, int items, int C, int D, int H,
                                             int W, int P, int slabs, int rows) {
    const int id = (int)get_global_id(0);
    if (id >= items) return;
    const int plane = id / slabs, n = plane / C, all = D * H * W, row = all / (ND == 3 ? D : ND == 2 ? H : W);
    const int begin = id % slabs * rows * row, end = min(begin + rows * row, all);
    __global float *to = dx + plane * all;
    for (int i = begin; i < end; i++) to[i] = 0.0f;
    for (int p = 0; p < P; p++) {
        GRID_ARGS
        const float g = LOAD(T_Y, dy + plane * P + p);
        GRID_EACH(if (from >= begin && from < end) to[from] += weight[0][i] * weight[1][j] * weight[2][k] * g;)
    }
}

__kernel void KERNEL(grid_sample_backward_grid)(__global T_DGRID *restrict dgrid, __global const T_Y *restrict dy,
                                                __global const T_X *restrict x, __global const T_GRID *restrict grid,
                                                int items, int C, int D, int H, int W, int P) {
    const int id = (int)get_global_id(0), p = id % P, n = id / P;
    if (id >= items) return;
    GRID_ARGS
    float sum[3] = {0.0f, 0.0f, 0.0f};
    for (int c = 0; c < C; c++) {
        __global const T_X *plane = x + (n * C + c) * D * H * W;
        const float g = LOAD(T_Y, dy + (n * C + c) * P + p);
        GRID_EACH(
            const float v = g * LOAD(T_X, plane + from);
            sum[0] += v * weight[0][i] * weight[1][j] * change[2][k];
            if (ND > 1) sum[1] += v * weight[0][i] * change[1][j] * weight[2][k];
            if (ND > 2) sum[2] += v * change[0][i] * weight[1][j] * weight[2][k];)
    }
    for (int d = 0; d < ND; d++) STORE(T_DGRID, sum[d], dgrid + id * ND + d);
}
