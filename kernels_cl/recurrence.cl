// SPDX-License-Identifier: Apache-2.0
//
// The recurrent part of an LSTM, a GRU or an RNN: T steps, each of which multiplies the state with weights and makes the next state.
// z [T,N,G*H] is what the input adds to each gate, weight [G*H,H]; with p_g = sum_k h[n][k] * weight[g*H + u][k] + bias[g*H + u]:
//
//     LSTM (CELL 0, G 4)  i, f, o = sigmoid(z + p)  g = tanh(z + p)        c = f*c + i*g      h = o * tanh(c)      gates i f g o
//     GRU  (CELL 1, G 3)  r, u = sigmoid(z + p)     n = tanh(z + r*p)      h = (1-u)*n + u*h                       gates r u n
//     RNN  (CELL 2, 3, G 1)  h = tanh(z + p), or relu
//
// A row n whose length is not above t has no step t: its state stays, y is 0, and so is its part of dz. For the gradient a step keeps
// `saved` [T,N,S*H], of an LSTM i f g o c, of a GRU r u n p_n, else h, and `prev` [T,N,H], the state before the step.
//
// Entries of the plain variant, a launch for each step:
//   recur_step   item n*H + u = get_global_id(0) makes that element of the next state; any work-group
//   recur_back   the same of the step t back: dh = dh + a weight, then the gradients of step t's gates, which it leaves in `a_next` for
//                the next launch. With t = -1, the last launch, dh is the gradient of the first state.
// Entries for GPUs:
//   recur_step_group, recur_back_group   the same in groups of 8 x 8 that share local memory: item (x, y) of group (gx, gy) has
//                                        u = 8*gx + x, n = 8*gy + y
// Entries for CPU-class devices, work-group 1. A group does all steps of `rows` rows, n = rows*group ..., with a state of its own:
//   recur_pack   panel p = get_global_id(0) of the weights, [K][NR], of NR = 2*VW neighbouring u. Forward (back 0) there is one for each
//                gate, p = u/NR*G + g, K = H; backward p = u/NR, K = G*H. Beyond H are zeros.
//   recur_tile, recur_tile_backward
//
// given: bits for what is there: 1 bias, or dy; 2 the state h, or dh_n; 4 the state c, or dc_n; 8 lengths; 16 c0; 32 recur_back:
// the first launch, so there is no a yet.
//
// Macros
//   CELL      0 LSTM, 1 GRU, 2 RNN with tanh, 3 RNN with relu; default 0
//   KEEP      1: saved and prev are written; default 0
//   T_Z, T_Y, T_PREV, T_DY, T_DZH   how z or dz, y, prev, dy, and the gradient of p of a GRU are stored: float, f16 or bf16; default float
//   VW        tile: lanes of a vector: 4, 8 or 16; default 16. A register tile is MR rows, 8 for VW 16, else 4, by 2 vectors
//   TILE      1: with the CPU-class entries, the default; 0: without, as in matmul.cl
//
// Source: Hochreiter, Schmidhuber 1997; Cho et al. 2014, arXiv:1406.1078; torch.nn.LSTM, GRU, RNN.

#define CELL 0
#define KEEP 0
#define T_Z float
#define T_Y float
#define T_PREV float
#define T_DY float
#define T_DZH float
#define VW 16
#define TILE 1

#if CELL == 0
#define GATES 4
#define SAVED 5
#define OF_LSTM(x) x
#define LSTM_ARG(x) x,
#else
#define OF_LSTM(x)
#define LSTM_ARG(x)
#endif
#if CELL == 1
#define GATES 3
#define SAVED 4
#define OF_GRU(x) x
#define GRU_ARG(x) x,
#else
#define OF_GRU(x)
#define GRU_ARG(x)
#endif
#if CELL > 1
#define GATES 1
#define SAVED 1
#endif
#if KEEP
#define KEPT(x) x
#define KEPT_ARG(x) x,
#else
#define KEPT(x)
#define KEPT_ARG(x)
#endif

#define SIGM(v) (1.0f / (1.0f + exp(-(v))))

// A step of floats or vectors F: from x (of z), p, h and, of an LSTM, c the next h and c, and s, what is saved.
// And back: from dh, s, h (prev), c (before the step), dc the gradients d of z, e of p (the same but of a GRU), dh and dc before it.
#if CELL == 0
#define FORWARD(F)                                                                                           \
    s[0] = SIGM(x[0] + p[0]);                                                                                \
    s[1] = SIGM(x[1] + p[1]);                                                                                \
    s[2] = tanh(x[2] + p[2]);                                                                                \
    s[3] = SIGM(x[3] + p[3]);                                                                                \
    c = s[1] * c + s[0] * s[2];                                                                              \
    s[4] = c;                                                                                                \
    h = s[3] * tanh(c);
#define BACKWARD(F)                                                                                          \
    {                                                                                                        \
        const F t_ = tanh(s[4]);                                                                             \
        d[3] = dh * t_ * s[3] * (1.0f - s[3]);                                                               \
        dc += dh * s[3] * (1.0f - t_ * t_);                                                                  \
        d[0] = dc * s[2] * s[0] * (1.0f - s[0]);                                                             \
        d[1] = dc * c * s[1] * (1.0f - s[1]);                                                                \
        d[2] = dc * s[0] * (1.0f - s[2] * s[2]);                                                             \
        dc *= s[1];                                                                                          \
        dh = (F)(0.0f);                                                                                      \
        for (int g = 0; g < GATES; g++) e[g] = d[g];                                                         \
    }
#elif CELL == 1
#define FORWARD(F)                                                                                           \
    s[0] = SIGM(x[0] + p[0]);                                                                                \
    s[1] = SIGM(x[1] + p[1]);                                                                                \
    s[2] = tanh(x[2] + s[0] * p[2]);                                                                         \
    s[3] = p[2];                                                                                             \
    h = (1.0f - s[1]) * s[2] + s[1] * h;
#define BACKWARD(F)                                                                                          \
    d[2] = dh * (1.0f - s[1]) * (1.0f - s[2] * s[2]);                                                        \
    d[1] = dh * (h - s[2]) * s[1] * (1.0f - s[1]);                                                           \
    d[0] = d[2] * s[3] * s[0] * (1.0f - s[0]);                                                               \
    e[0] = d[0];                                                                                             \
    e[1] = d[1];                                                                                             \
    e[2] = d[2] * s[0];                                                                                      \
    dh *= s[1];
#else
#if CELL == 2
#define FORWARD(F) s[0] = h = tanh(x[0] + p[0]);
#define BACKWARD(F)                                                                                          \
    e[0] = d[0] = dh * (1.0f - s[0] * s[0]);                                                                 \
    dh = (F)(0.0f);
#else
#define FORWARD(F)                                                                                           \
    h = x[0] + p[0];                                                                                         \
    s[0] = h = select((F)(0.0f), h, (h > 0.0f) | (h != h)); // NaN stays NaN
#define BACKWARD(F)                                                                                          \
    e[0] = d[0] = select((F)(0.0f), dh, s[0] > 0.0f);                                                        \
    dh = (F)(0.0f);
#endif
#endif

// ---------------------------------------------------------------- a launch for each step

#define STEP_ARGUMENTS                                                                                       \
    __global T_Y *y, __global float *h_next, LSTM_ARG(__global float *c_next)                               \
        KEPT_ARG(__global float *saved) KEPT_ARG(__global T_PREV *prev) __global const T_Z *z, __global const float *weight, \
        __global const float *bias, __global const float *h_before, LSTM_ARG(__global const float *c_before) \
            __global const int *lengths, int N, int H, int t, int given

// Element (n, u) of the state after step t, of the sums p[GATES] without bias.
#define STEP_END                                                                                             \
    {                                                                                                        \
        const int at = n * H + u, row = t * N + n, live = !(given & 8) || t < lengths[n];                    \
        float h = given & 2 ? h_before[at] : 0.0f;                                                           \
        OF_LSTM(float c = given & 4 ? c_before[at] : 0.0f;)                                                  \
        float x[GATES], s[SAVED];                                                                            \
        KEPT(STORE(T_PREV, h, prev + row * H + u);)                                                             \
        for (int k = 0; k < SAVED; k++) s[k] = 0.0f;                                                         \
        OF_LSTM(s[4] = c;)                                                                                   \
        if (live) {                                                                                          \
            for (int g = 0; g < GATES; g++) {                                                                \
                x[g] = LOAD(T_Z, z + (row * GATES + g) * H + u);                                             \
                p[g] += given & 1 ? bias[g * H + u] : 0.0f;                                                  \
            }                                                                                                \
            FORWARD(float)                                                                                   \
        }                                                                                                    \
        STORE(T_Y, live ? h : 0.0f, y + row * H + u);                                                        \
        h_next[at] = h;                                                                                      \
        OF_LSTM(c_next[at] = c;)                                                                             \
        KEPT(for (int k = 0; k < SAVED; k++) saved[(row * SAVED + k) * H + u] = s[k];)                       \
    }

__kernel void KERNEL(recur_step)(STEP_ARGUMENTS) {
    int item = (int)get_global_id(0), n = item / H, u = item % H;
    float p[GATES];
    if (n >= N) return;
    for (int g = 0; g < GATES; g++) p[g] = 0.0f;
    if (given & 2)
        for (int k = 0; k < H; k++)
            for (int g = 0; g < GATES; g++) p[g] = fma(h_before[n * H + k], weight[(g * H + u) * H + k], p[g]);
    STEP_END
}

#define BACK_ARGUMENTS                                                                                       \
    __global T_Z *dz, __global float *dh_carried, LSTM_ARG(__global float *dc_carried)                      \
        GRU_ARG(__global T_DZH *dzh) __global float *a_next, __global const T_DY *dy, __global const float *dh_n, \
        LSTM_ARG(__global const float *dc_n) __global const float *weight, __global const float *saved,     \
        __global const T_PREV *prev, LSTM_ARG(__global const float *c0) __global const int *lengths,           \
        __global const float *a, int N, int H, int t, int before, int given

// Element (n, u) of step t; `sum` is that of a and weight. `before` is the step that came before t.
#define BACK_END                                                                                             \
    {                                                                                                        \
        const int at = n * H + u, row = t * N + n, live = t >= 0 && (!(given & 8) || t < lengths[n]);        \
        float dh = sum, d[GATES], e[GATES], s[SAVED];                                                        \
        if (!(given & 32))                                                                                   \
            dh += dh_carried[at];                                                                            \
        else if (given & 2)                                                                                  \
            dh += dh_n[at];                                                                                  \
        OF_LSTM(float dc = !(given & 32) ? dc_carried[at] : given & 4 ? dc_n[at] : 0.0f;)                    \
        for (int g = 0; g < GATES; g++) d[g] = e[g] = 0.0f;                                                  \
        if (live) {                                                                                          \
            OF_LSTM(const float c = before >= 0   ? saved[((before * N + n) * SAVED + 4) * H + u]            \
                                    : given & 16 ? c0[at]                                                    \
                                                 : 0.0f;)                                                    \
            OF_GRU(const float h = LOAD(T_PREV, prev + row * H + u);)                                           \
            for (int k = 0; k < SAVED; k++) s[k] = saved[(row * SAVED + k) * H + u];                         \
            dh += given & 1 ? LOAD(T_DY, dy + row * H + u) : 0.0f;                                           \
            BACKWARD(float)                                                                                  \
        }                                                                                                    \
        dh_carried[at] = dh;                                                                                 \
        OF_LSTM(dc_carried[at] = dc;)                                                                        \
        for (int g = 0; t >= 0 && g < GATES; g++) {                                                          \
            STORE(T_Z, d[g], dz + (row * GATES + g) * H + u);                                                \
            OF_GRU(STORE(T_DZH, e[g], dzh + (row * GATES + g) * H + u);)                                       \
            a_next[(n * GATES + g) * H + u] = e[g];                                                          \
        }                                                                                                    \
    }

__kernel void KERNEL(recur_back)(BACK_ARGUMENTS) {
    int item = (int)get_global_id(0), n = item / H, u = item % H;
    float sum = 0.0f;
    if (n >= N) return;
    if (!(given & 32))
        for (int k = 0; k < GATES * H; k++) sum = fma(a[n * GATES * H + k], weight[k * H + u], sum);
    BACK_END
}

// ---------------------------------------------------------------- GPU-class

#define EDGE 8   // rows, and elements of the state, of a group
#define TERMS 32 // of a sum in local memory at a time

// Rows n0 ... of what has `width` columns, terms k0 ..., into lr[EDGE][TERMS + 1], zeros beyond.
#define GROUP_ROWS(from, width)                                                                              \
    for (int i = y_ * EDGE + x_; i < EDGE * TERMS; i += EDGE * EDGE) {                                       \
        const int r = i / TERMS, k = i % TERMS;                                                              \
        lr[r][k] = n0 + r < N && k0 + k < (width) ? from[(n0 + r) * (width) + k0 + k] : 0.0f;                \
    }

__kernel __attribute__((reqd_work_group_size(EDGE, EDGE, 1))) void KERNEL(recur_step_group)(STEP_ARGUMENTS) {
    __local float lr[EDGE][TERMS + 1];
    __local float lw[GATES * EDGE][TERMS + 1];
    const int x_ = (int)get_local_id(0), y_ = (int)get_local_id(1);
    const int u0 = (int)get_group_id(0) * EDGE, n0 = (int)get_group_id(1) * EDGE, u = u0 + x_, n = n0 + y_;
    float p[GATES];
    for (int g = 0; g < GATES; g++) p[g] = 0.0f;
    for (int k0 = 0; (given & 2) && k0 < H; k0 += TERMS) {
        GROUP_ROWS(h_before, H)
        for (int i = y_ * EDGE + x_; i < GATES * EDGE * TERMS; i += EDGE * EDGE) {
            const int r = i / TERMS, k = i % TERMS, of = u0 + r % EDGE;
            lw[r][k] = of < H && k0 + k < H ? weight[(r / EDGE * H + of) * H + k0 + k] : 0.0f;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < TERMS; k++)
            for (int g = 0; g < GATES; g++) p[g] = fma(lr[y_][k], lw[g * EDGE + x_][k], p[g]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (n < N && u < H) STEP_END
}

__kernel __attribute__((reqd_work_group_size(EDGE, EDGE, 1))) void KERNEL(recur_back_group)(BACK_ARGUMENTS) {
    __local float lr[EDGE][TERMS + 1];
    __local float lw[TERMS][EDGE + 1];
    const int x_ = (int)get_local_id(0), y_ = (int)get_local_id(1);
    const int u0 = (int)get_group_id(0) * EDGE, n0 = (int)get_group_id(1) * EDGE, u = u0 + x_, n = n0 + y_;
    const int K = GATES * H;
    float sum = 0.0f;
    for (int k0 = 0; !(given & 32) && k0 < K; k0 += TERMS) {
        GROUP_ROWS(a, K)
        for (int i = y_ * EDGE + x_; i < EDGE * TERMS; i += EDGE * EDGE) {
            const int k = i / EDGE, of = u0 + i % EDGE;
            lw[k][i % EDGE] = of < H && k0 + k < K ? weight[(k0 + k) * H + of] : 0.0f;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < TERMS; k++) sum = fma(lr[y_][k], lw[k][x_], sum);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (n < N && u < H) BACK_END
}

// ---------------------------------------------------------------- CPU-class

#if TILE

#if VW == 16
#define MR 8
#else
#define MR 4
#endif
#define NR (2 * VW)
#define TERMS_AT_ONCE 256 // of a panel: what stays in the nearest cache while all rows meet it

#define WHOLE(n, unit) (((n) + (unit)-1) / (unit) * (unit))

__kernel void KERNEL(recur_pack)(__global float *restrict to, __global const float *restrict weight, int panels, int H,
                                 int back) {
    const int panel = (int)get_global_id(0), K = back ? GATES * H : H;
    if (panel >= panels) return;
    const int u0 = (back ? panel : panel / GATES) * NR, g = panel % GATES;
    to += panel * K * NR;
    for (int k = 0; k < K; k++, to += NR)
        for (int j = 0; j < NR; j++)
            to[j] = u0 + j >= H ? 0.0f : back ? weight[k * H + u0 + j] : weight[(g * H + u0 + j) * H + k];
}

// VW neighbours, or the `lanes` that there are.
#define TAKE(name, T)                                                                                        \
    static FV KERNEL(name)(__global const T *from, int lanes) {                                              \
        if (lanes >= VW) return TLOAD(T, from);                                                              \
        float few[VW];                                                                                       \
        for (int l = 0; l < VW; l++) few[l] = l < lanes ? LOAD(T, from + l) : 0.0f;                          \
        return PASTE(vload, VW)(0, few);                                                                     \
    }
#define GIVE(name, T)                                                                                        \
    static void KERNEL(name)(__global T *to, int lanes, FV v) {                                              \
        if (lanes >= VW) {                                                                                   \
            TSTORE(T, v, to);                                                                                \
            return;                                                                                          \
        }                                                                                                    \
        float few[VW];                                                                                       \
        PASTE(vstore, VW)(v, 0, few);                                                                        \
        for (int l = 0; l < lanes; l++) STORE(T, few[l], to + l);                                            \
    }
TAKE(recur_take, float)
TAKE(recur_take_z, T_Z)
TAKE(recur_take_prev, T_PREV)
TAKE(recur_take_dy, T_DY)
GIVE(recur_give, float)
GIVE(recur_give_z, T_Z)
GIVE(recur_give_y, T_Y)
GIVE(recur_give_prev, T_PREV)
GIVE(recur_give_dzh, T_DZH)

// The register tile: c[MR][NR] (+)= sum_{k < n} a[r][k] * b[k][NR]. add: keep what c holds.
#define GET(r) TILE2_GET(r, G, c + r * c_r)
#define ADD(r) TILE2_ADD(r, a[r * a_r + k], b0, b1)
#define PUT(r) TILE2_PUT(r, G, c + r * c_r)
static void KERNEL(recur_micro)(__global float *c, int c_r, __global const float *a, int a_r, __global const float *b,
                                int n, int add) {
    TILE_ROWS(MR, TILE2_ZERO)
    if (add) {
        TILE_ROWS(MR, GET)
    }
    for (int k = 0; k < n; k++, b += NR) {
        FV b0 = GLOAD(b), b1 = GLOAD(b + VW);
        TILE_ROWS(MR, ADD)
    }
    TILE_ROWS(MR, PUT)
}

// A state of `all` rows of HP: that of the first `rows` rows, if it is there, and zeros.
static void KERNEL(recur_begin)(__global float *to, int HP, int all, __global const float *from, int rows, int H, int there) {
    for (int r = 0; r < all; r++)
        for (int u = 0; u < HP; u++) to[r * HP + u] = there && r < rows && u < H ? from[r * H + u] : 0.0f;
}
static void KERNEL(recur_end)(__global float *to, int H, __global const float *from, int HP, int rows) {
    for (int r = 0; r < rows; r++)
        for (int u = 0; u < H; u += VW) KERNEL(recur_give)(to + r * H + u, H - u, GLOAD(from + r * HP + u));
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
KERNEL(recur_tile)(__global T_Y *restrict y, __global float *restrict h_n, LSTM_ARG(__global float *restrict c_n)
                   KEPT_ARG(__global float *restrict saved) KEPT_ARG(__global T_PREV *restrict prev) __global const T_Z *restrict z,
                   __global const float *restrict panels, __global const float *restrict bias,
                   __global const float *restrict h0, LSTM_ARG(__global const float *restrict c0)
                   __global const int *restrict lengths, __global float *state, int N, int T, int H, int rows, int reverse,
                   int given) {
    const int group = (int)get_group_id(0), n0 = group * rows, n_rows = min(rows, N - n0);
    const int all = WHOLE(rows, MR), HP = WHOLE(H, NR);
    if (n0 >= N) return;
    __global float *now = state + group * all * (3 * HP + GATES * NR), *next = now + all * HP, *cells = next + all * HP,
                   *sums = cells + all * HP;
    KERNEL(recur_begin)(now, HP, all, h0 + n0 * H, n_rows, H, given & 2);
    KERNEL(recur_begin)(next, HP, all, h0, 0, H, 0);
    OF_LSTM(KERNEL(recur_begin)(cells, HP, all, c0 + n0 * H, n_rows, H, given & 4);)
    for (int step = 0; step < T; step++) {
        const int t = reverse ? T - 1 - step : step;
        for (int u0 = 0; u0 < H; u0 += NR) {
            for (int r = 0; r < n_rows; r++) { // runs of two vectors, far apart: they come while the products are made
                const int row = t * N + n0 + r;
                for (int g = 0; g < GATES; g++) PREFETCH(z + (row * GATES + g) * H + u0);
                PREFETCH_STORE(y + row * H + u0);
                KEPT(PREFETCH_STORE(prev + row * H + u0);)
                KEPT(for (int k = 0; k < SAVED; k++) PREFETCH_STORE(saved + (row * SAVED + k) * H + u0);)
            }
            for (int g = 0; g < GATES; g++)
                for (int r = 0; r < n_rows; r += MR)
                    KERNEL(recur_micro)(sums + (r * GATES + g) * NR, GATES * NR, now + r * HP, HP,
                                        panels + (u0 / NR * GATES + g) * H * NR, H, 0);
            for (int r = 0; r < n_rows; r++) {
                const int n = n0 + r, row = t * N + n, live = !(given & 8) || t < lengths[n];
                for (int u = u0; u < min(u0 + NR, H); u += VW) {
                    const int lanes = H - u;
                    FV h = GLOAD(now + r * HP + u), x[GATES], p[GATES], s[SAVED];
                    OF_LSTM(FV c = GLOAD(cells + r * HP + u);)
                    KEPT(KERNEL(recur_give_prev)(prev + row * H + u, lanes, h);)
                    for (int k = 0; k < SAVED; k++) s[k] = (FV)(0.0f);
                    OF_LSTM(s[4] = c;)
                    if (live) {
                        for (int g = 0; g < GATES; g++) {
                            x[g] = KERNEL(recur_take_z)(z + (row * GATES + g) * H + u, lanes);
                            p[g] = GLOAD(sums + (r * GATES + g) * NR + u - u0);
                            if (given & 1) p[g] += KERNEL(recur_take)(bias + g * H + u, lanes);
                        }
                        FORWARD(FV)
                    }
                    KERNEL(recur_give_y)(y + row * H + u, lanes, live ? h : (FV)(0.0f));
                    GSTORE(h, next + r * HP + u);
                    OF_LSTM(GSTORE(c, cells + r * HP + u);)
                    KEPT(for (int k = 0; k < SAVED; k++)
                             KERNEL(recur_give)(saved + (row * SAVED + k) * H + u, lanes, s[k]);)
                }
            }
        }
        __global float *other = now;
        now = next;
        next = other;
    }
    KERNEL(recur_end)(h_n + n0 * H, H, now, HP, n_rows);
    OF_LSTM(KERNEL(recur_end)(c_n + n0 * H, H, cells, HP, n_rows);)
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
KERNEL(recur_tile_backward)(__global T_Z *restrict dz, __global float *restrict dh0, LSTM_ARG(__global float *restrict dc0)
                            GRU_ARG(__global T_DZH *restrict dzh) __global const T_DY *restrict dy,
                            __global const float *restrict dh_n, LSTM_ARG(__global const float *restrict dc_n)
                            __global const float *restrict panels, __global const float *restrict saved,
                            __global const T_PREV *restrict prev, LSTM_ARG(__global const float *restrict c0)
                            __global const int *restrict lengths, __global float *state, int N, int T, int H, int rows,
                            int reverse, int given) {
    const int group = (int)get_group_id(0), n0 = group * rows, n_rows = min(rows, N - n0), K = GATES * H;
    const int all = WHOLE(rows, MR), HP = WHOLE(H, NR);
    if (n0 >= N) return;
    __global float *carried = state + group * all * (2 * HP + K), *cells = carried + all * HP, *a = cells + all * HP;
    KERNEL(recur_begin)(carried, HP, all, dh_n + n0 * H, n_rows, H, given & 2);
    KERNEL(recur_begin)(a, K, all, dh_n, 0, K, 0);
    OF_LSTM(KERNEL(recur_begin)(cells, HP, all, dc_n + n0 * H, n_rows, H, given & 4);)
    for (int step = T - 1; step >= 0; step--) {
        const int t = reverse ? T - 1 - step : step;
        for (int r = 0; r < n_rows; r++) {
            const int n = n0 + r, row = t * N + n, live = !(given & 8) || t < lengths[n];
            for (int u = 0; u < H; u += VW) {
                const int lanes = H - u;
                const int below = row + (r + 1 < n_rows); // the row that is next
                if (given & 1) PREFETCH(dy + below * H + u);
                for (int k = 0; k < SAVED; k++) PREFETCH(saved + (below * SAVED + k) * H + u);
                for (int g = 0; g < GATES; g++) PREFETCH_STORE(dz + (below * GATES + g) * H + u);
                FV dh = GLOAD(carried + r * HP + u), d[GATES], e[GATES], s[SAVED];
                OF_LSTM(FV dc = GLOAD(cells + r * HP + u);)
                for (int g = 0; g < GATES; g++) d[g] = e[g] = (FV)(0.0f);
                if (live) {
                    OF_LSTM(FV c = (FV)(0.0f);
                            if (step > 0) c = KERNEL(recur_take)(
                                saved + (((reverse ? t + 1 : t - 1) * N + n) * SAVED + 4) * H + u, lanes);
                            else if (given & 16) c = KERNEL(recur_take)(c0 + n * H + u, lanes);)
                    OF_GRU(const FV h = KERNEL(recur_take_prev)(prev + row * H + u, lanes);)
                    for (int k = 0; k < SAVED; k++) s[k] = KERNEL(recur_take)(saved + (row * SAVED + k) * H + u, lanes);
                    if (given & 1) dh += KERNEL(recur_take_dy)(dy + row * H + u, lanes);
                    BACKWARD(FV)
                }
                GSTORE(dh, carried + r * HP + u);
                OF_LSTM(GSTORE(dc, cells + r * HP + u);)
                for (int g = 0; g < GATES; g++) {
                    KERNEL(recur_give_z)(dz + (row * GATES + g) * H + u, lanes, d[g]);
                    OF_GRU(KERNEL(recur_give_dzh)(dzh + (row * GATES + g) * H + u, lanes, e[g]);)
                    KERNEL(recur_give)(a + r * K + g * H + u, lanes, e[g]);
                }
            }
        }
        for (int u = 0; u < H; u += NR)
            for (int k = 0; k < K; k += TERMS_AT_ONCE)
                for (int r = 0; r < n_rows; r += MR)
                    KERNEL(recur_micro)(carried + r * HP + u, HP, a + r * K + k, K, panels + (u / NR * K + k) * NR,
                                        min(TERMS_AT_ONCE, K - k), 1);
    }
    KERNEL(recur_end)(dh0 + n0 * H, H, carried, HP, n_rows);
    OF_LSTM(KERNEL(recur_end)(dc0 + n0 * H, H, cells, HP, n_rows);)
}
#endif // TILE
