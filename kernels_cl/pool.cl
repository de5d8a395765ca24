// SPDX-License-Identifier: Apache-2.0
// Pooling over windows of [planes, H, W], planes = N*C. T_X, T_Y, T_DX: how x, y and dy, dx are stored: float,
// f16 or bf16; default float. avg_pool2d_planes_backward adds up in dx, which must be float for it.
//
// Output (oh, ow) looks at inputs h = oh*stride_h - pad_h + i*dilation_h, i < kernel_h, and w alike, inside [0,H) x [0,W).
// Gradients gather: a work-item owns one input (or one window, where windows do not overlap), so no atomics.
//
//   max_pool2d                   one work-item per output
//   max_pool2d_backward          one per input: sums dy over the windows whose first maximum it is
//   max_pool2d_winner            one per output: position h*W + w of the window's first maximum, -1 if it looks at nothing
//   max_pool2d_gather            one per input: as _backward, with the winners known
//   max_pool2d_backward_apart    one per window and remainder, stride == kernel, no padding, no dilation
//   max_pool2d_2x2               kernel 2, stride 2, no padding: each work-item does `rows` rows of outputs, eight at a time
//   max_pool2d_2x2_backward      the same, rows of pairs of input rows; an odd last row and column get zero
//   max_pool2d_rows              any window: each work-item does `rows` rows of outputs, eight at a time
//   max_pool2d_planes_backward   any window, work-group 1: each does `planes` planes. As many rows of x, with their padding, as a
//                                window is high must fit into ROOM, and kernel_w into ROOM / 16
//   avg_pool2d                   one per output
//   avg_pool2d_backward          one per input
//   avg_pool2d_rows              as that of max_pool2d
//   avg_pool2d_planes_backward   any window: each work-item does `rows` planes, handing dy out window by window
//   pool2d_direct                few taps, maxima or (MEAN 1) averages: each item does ROWS outputs below each other
//   pool2d_direct_backward       the same: each item does inputs [b*SH, (b + ROWS)*SH) x [c*SW, (c + 1)*SW). It looks at the windows that
//                                they are in, from b + FIRST(H) to b + ROWS - 1 + LAST(H), and finds their winners itself
//
// A NaN in a window wins, as in PyTorch; of several, the last.
// ROOM: elements of 4 bytes in each local array of max_pool2d_planes_backward, a multiple of 16, default 4096; see
// there.
// Of the direct kernels: MEAN: 1: they average; default 0, they take the largest. KH, KW, SH, SW, PH, PW, DH, DW: kernel, stride, padding,
// dilation; default 2, 2, 2, 2, 0, 0, 1, 1. ROWS: see there, default 2. ACCESS: elements of x and dx in an access along W, 1, or 2 where W
// and SW are even; default 1
#define T_X float
#define T_Y float
#define T_DX float
#define ROOM 4096
#define MEAN 0
#define KH 2
#define KW 2
#define SH 2
#define SW 2
#define PH 0
#define PW 0
#define DH 1
#define DW 1
#define ROWS 2
#define ACCESS 1

// Arguments of all kernels.
#define WINDOWS                                                                                              \
    int H, int W, int OH, int OW, int kernel_h, int kernel_w, int stride_h, int stride_w, int pad_h, int pad_w
#define DILATION int dilation_h, int dilation_w

// The first maximum of a window as h*W + w, -1 for a window that lies outside.
int KERNEL(pool_winner)(__global const T_X *plane, int H, int W, int h0, int w0, int kernel_h, int kernel_w,
                        int dilation_h, int dilation_w) {
    int at = -1;
    float best = -INFINITY;
    for (int i = 0; i < kernel_h; i++) {
        int h = h0 + i * dilation_h;
        if (h < 0 || h >= H) continue;
        for (int j = 0; j < kernel_w; j++) {
            int w = w0 + j * dilation_w;
            if (w < 0 || w >= W) continue;
            float v = LOAD(T_X, plane + h * W + w);
            if (at < 0 || v > best || v != v) {
                best = v;
                at = h * W + w;
            }
        }
    }
    return at;
}
#define WINNER(plane, h0, w0)                                                                                \
    KERNEL(pool_winner)(plane, H, W, h0, w0, kernel_h, kernel_w, dilation_h, dilation_w)

__kernel void KERNEL(max_pool2d)(__global T_Y *restrict y, __global const T_X *restrict x, int n, WINDOWS,
                                 DILATION) {
    int o = (int)get_global_id(0);
    if (o >= n) return;
    int ow = o % OW, oh = o / OW % OH;
    __global const T_X *plane = x + o / OW / OH * H * W;
    int at = WINNER(plane, oh * stride_h - pad_h, ow * stride_w - pad_w);
    STORE(T_Y, at < 0 ? -INFINITY : LOAD(T_X, plane + at), y + o);
}

// Windows along one axis that look at position `at`: [*first, *last].
void KERNEL(pool_windows)(int at, int outputs, int kernel_size, int stride, int pad, int dilation, int *first,
                          int *last) {
    int lowest =
        at + pad - (kernel_size - 1) * dilation; // a window that begins before this one ends before `at`
    *first = lowest <= 0 ? 0 : (lowest + stride - 1) / stride;
    *last = min((at + pad) / stride, outputs - 1);
}
#define LOOKING_AT(h, w, dilation_h, dilation_w)                                                             \
    int h_first, h_last, w_first, w_last;                                                                    \
    KERNEL(pool_windows)(h, OH, kernel_h, stride_h, pad_h, dilation_h, &h_first, &h_last);                   \
    KERNEL(pool_windows)(w, OW, kernel_w, stride_w, pad_w, dilation_w, &w_first, &w_last);

__kernel void KERNEL(max_pool2d_backward)(__global T_DX *restrict dx, __global const T_Y *restrict dy,
                                          __global const T_X *restrict x, int n, WINDOWS, DILATION) {
    int i = (int)get_global_id(0);
    if (i >= n) return;
    int w = i % W, h = i / W % H, p = i / W / H;
    LOOKING_AT(h, w, dilation_h, dilation_w)
    __global const T_X *plane = x + p * H * W;
    float sum = 0.0f;
    for (int oh = h_first; oh <= h_last; oh++) {
        for (int ow = w_first; ow <= w_last; ow++) {
            int at = WINNER(plane, oh * stride_h - pad_h, ow * stride_w - pad_w);
            if (at == h * W + w) sum += LOAD(T_Y, dy + (p * OH + oh) * OW + ow);
        }
    }
    STORE(T_DX, sum, dx + i);
}

__kernel void KERNEL(max_pool2d_winner)(__global int *restrict winner, __global const T_X *restrict x, int n,
                                        WINDOWS, DILATION) {
    int o = (int)get_global_id(0);
    if (o >= n) return;
    int ow = o % OW, oh = o / OW % OH;
    winner[o] = WINNER(x + o / OW / OH * H * W, oh * stride_h - pad_h, ow * stride_w - pad_w);
}

__kernel void KERNEL(max_pool2d_gather)(__global T_DX *restrict dx, __global const T_Y *restrict dy,
                                        __global const int *restrict winner, int n, WINDOWS, DILATION) {
    int i = (int)get_global_id(0);
    if (i >= n) return;
    int w = i % W, h = i / W % H, p = i / W / H;
    LOOKING_AT(h, w, dilation_h, dilation_w)
    float sum = 0.0f;
    for (int oh = h_first; oh <= h_last; oh++) {
        for (int ow = w_first; ow <= w_last; ow++) {
            int o = (p * OH + oh) * OW + ow;
            if (winner[o] == h * W + w) sum += LOAD(T_Y, dy + o);
        }
    }
    STORE(T_DX, sum, dx + i);
}

__kernel void KERNEL(max_pool2d_backward_apart)(__global T_DX *restrict dx, __global const T_Y *restrict dy,
                                                __global const T_X *restrict x, int n, int H, int W, int OH,
                                                int OW, int kernel_h, int kernel_w) {
    int tiles_w = (W + kernel_w - 1) / kernel_w, tiles_h = (H + kernel_h - 1) / kernel_h;
    int i = (int)get_global_id(0);
    if (i >= n) return; // n: planes * tiles_h * tiles_w
    int ow = i % tiles_w, oh = i / tiles_w % tiles_h, p = i / tiles_w / tiles_h;
    __global const T_X *plane = x + p * H * W;
    int at = -1;
    float value = 0.0f;
    if (oh < OH && ow < OW) {
        at = KERNEL(pool_winner)(plane, H, W, oh * kernel_h, ow * kernel_w, kernel_h, kernel_w, 1, 1);
        value = LOAD(T_Y, dy + (p * OH + oh) * OW + ow);
    }
    int h_end = min((oh + 1) * kernel_h, H), w_end = min((ow + 1) * kernel_w, W);
    for (int h = oh * kernel_h; h < h_end; h++)
        for (int w = ow * kernel_w; w < w_end; w++)
            STORE(T_DX, h * W + w == at ? value : 0.0f, dx + (p * H + h) * W + w);
}

// Which of a window's four, row by row, is its first maximum.
int KERNEL(pool_winner_of_four)(float2 up, float2 down) {
    int at = 0;
    float best = up.x;
    if (up.y > best || up.y != up.y) best = up.y, at = 1;
    if (down.x > best || down.x != down.x) best = down.x, at = 2;
    if (down.y > best || down.y != down.y) at = 3;
    return at;
}

// ---- 2x2, stride 2, for devices with wide vectors ----
// A row of outputs is done in vectors of eight (or four); the last one is moved back so that it ends with the row, and
// does a few outputs a second time. The largest value is the same in any order.

#define LARGER(a, b) select(a, b, (b > a) | (b != b))
#define LARGEST_OF_FOUR(wide, n)                                                                             \
    for (int o = 0;; o = min(o + n, OW - n)) {                                                               \
        float##wide a = VLOAD(T_X, wide, top + 2 * o), b = VLOAD(T_X, wide, bottom + 2 * o);                 \
        float##wide m = LARGER(a, b);                                                                        \
        float##n even = m.even, odd = m.odd;                                                                 \
        VSTORE(T_Y, n, LARGER(even, odd), to + o);                                                           \
        if (o == OW - n) break;                                                                              \
    }

__kernel void KERNEL(max_pool2d_2x2)(__global T_Y *restrict y, __global const T_X *restrict x, int n_rows,
                                     int rows, int H, int W, int OH, int OW) {
    int first = (int)get_global_id(0) * rows, last = min(first + rows, n_rows);
    for (int r = first; r < last; r++) {
        __global const T_X *top = x + (r / OH * H + r % OH * 2) * W, *bottom = top + W;
        __global T_Y *to = y + r * OW;
        if (OW >= 8) {
            LARGEST_OF_FOUR(16, 8)
        } else if (OW >= 4) {
            LARGEST_OF_FOUR(8, 4)
        } else {
            for (int o = 0; o < OW; o++) {
                float2 a = VLOAD(T_X, 2, top + 2 * o), b = VLOAD(T_X, 2, bottom + 2 * o);
                float2 m = LARGER(a, b);
                STORE(T_Y, m.y > m.x || m.y != m.y ? m.y : m.x, to + o);
            }
        }
    }
}

// The position that PyTorch's scan (a b / c d) ends on gets the window's gradient, the others zero.
#define SHARE_ROW(wide, n)                                                                                   \
    for (int o = 0;; o = min(o + n, OW - n)) {                                                               \
        float##wide up = VLOAD(T_X, wide, top + 2 * o), down = VLOAD(T_X, wide, bottom + 2 * o);             \
        float##n a = up.even, b = up.odd, c = down.even, d = down.odd, best = a, zero = (float##n)(0.0f);    \
        float##n g = VLOAD(T_Y, n, from + o);                                                                \
        int##n is_b = (b > best) | (b != b);                                                                 \
        best = select(best, b, is_b);                                                                        \
        int##n is_c = (c > best) | (c != c);                                                                 \
        best = select(best, c, is_c);                                                                        \
        int##n is_d = (d > best) | (d != d);                                                                 \
        up.even = select(g, zero, is_b | is_c | is_d);                                                       \
        up.odd = select(zero, g, is_b & ~(is_c | is_d));                                                     \
        down.even = select(zero, g, is_c & ~is_d);                                                           \
        down.odd = select(zero, g, is_d);                                                                    \
        VSTORE(T_DX, wide, up, to_top + 2 * o);                                                              \
        VSTORE(T_DX, wide, down, to_bottom + 2 * o);                                                         \
        if (o == OW - n) break;                                                                              \
    }

__kernel void KERNEL(max_pool2d_2x2_backward)(__global T_DX *restrict dx, __global const T_Y *restrict dy,
                                              __global const T_X *restrict x, int n_rows, int rows, int H,
                                              int W, int OH, int OW) {
    int pairs = (H + 1) / 2; // an odd last row counts as one
    int first = (int)get_global_id(0) * rows, last = min(first + rows, n_rows);
    for (int r = first; r < last; r++) {
        int p = r / pairs, oh = r % pairs;
        __global T_DX *to_top = dx + (p * H + oh * 2) * W, *to_bottom = to_top + W;
        if (oh >= OH) {
            for (int w = 0; w < W; w++) STORE(T_DX, 0.0f, to_top + w);
            continue;
        }
        __global const T_X *top = x + (p * H + oh * 2) * W, *bottom = top + W;
        __global const T_Y *from = dy + (p * OH + oh) * OW;
        if (OW >= 8) {
            SHARE_ROW(16, 8)
        } else if (OW >= 4) {
            SHARE_ROW(8, 4)
        } else {
            for (int o = 0; o < OW; o++) {
                float2 up = VLOAD(T_X, 2, top + 2 * o), down = VLOAD(T_X, 2, bottom + 2 * o);
                float g = LOAD(T_Y, from + o);
                int at = KERNEL(pool_winner_of_four)(up, down);
                VSTORE(T_DX, 2, (float2)(at == 0 ? g : 0.0f, at == 1 ? g : 0.0f), to_top + 2 * o);
                VSTORE(T_DX, 2, (float2)(at == 2 ? g : 0.0f, at == 3 ? g : 0.0f), to_bottom + 2 * o);
            }
        }
        if (W > 2 * OW) {
            STORE(T_DX, 0.0f, to_top + W - 1);
            STORE(T_DX, 0.0f, to_bottom + W - 1);
        }
    }
}

// ---- any window, for devices with wide vectors ----
// A row of outputs has a middle whose windows lie inside x along W: it goes by vectors of eight, the last one moved back.
// The columns before and after go one by one.

// Columns [*first, *end) whose windows read W inside [0, W); `spare` elements behind may be read too.
void KERNEL(pool_middle)(int W, int OW, int kernel_w, int stride_w, int pad_w, int dilation_w, int spare,
                         int *first, int *end) {
    int room = W - 1 - spare - (kernel_w - 1) * dilation_w + pad_w;
    *first = min((pad_w + stride_w - 1) / stride_w, OW);
    *end = room < 0 ? *first : max(*first, min(room / stride_w + 1, OW));
    if (*end - *first < 8) *end = *first;
}

// Eight elements that are `stride` apart; stride 2 reads one more.
float8 KERNEL(pool_load)(__global const T_X *from, int stride) {
    if (stride == 1) return VLOAD(T_X, 8, from);
    if (stride == 2) return VLOAD(T_X, 16, from).even;
    return (float8)(LOAD(T_X, from), LOAD(T_X, from + stride), LOAD(T_X, from + 2 * stride),
                    LOAD(T_X, from + 3 * stride), LOAD(T_X, from + 4 * stride), LOAD(T_X, from + 5 * stride),
                    LOAD(T_X, from + 6 * stride), LOAD(T_X, from + 7 * stride));
}

__kernel void KERNEL(max_pool2d_rows)(__global T_Y *restrict y, __global const T_X *restrict x, int n_rows,
                                      int rows, WINDOWS, DILATION) {
    int first = (int)get_global_id(0) * rows, last = min(first + rows, n_rows), left, right;
    KERNEL(pool_middle)(W, OW, kernel_w, stride_w, pad_w, dilation_w, stride_w == 2, &left, &right);
    for (int r = first; r < last; r++) {
        __global const T_X *plane = x + r / OH * H * W;
        __global T_Y *to = y + r * OW;
        int h0 = r % OH * stride_h - pad_h, i_first = h0 < 0 ? (-h0 + dilation_h - 1) / dilation_h : 0;
        for (int ow = left; ow < right; ow = ow + 8 < right ? min(ow + 8, right - 8) : right) {
            __global const T_X *from = plane + ow * stride_w - pad_w;
            float8 best = (float8)(-INFINITY);
            for (int i = i_first; i < kernel_h && h0 + i * dilation_h < H; i++) {
                for (int j = 0; j < kernel_w; j++) {
                    float8 v = KERNEL(pool_load)(from + (h0 + i * dilation_h) * W + j * dilation_w, stride_w);
                    best = LARGER(best, v);
                }
            }
            VSTORE(T_Y, 8, best, to + ow);
        }
        for (int ow = 0; ow < OW; ow++) {
            if (ow == left) ow = right;
            if (ow >= OW) break;
            int at = WINNER(plane, h0, ow * stride_w - pad_w);
            STORE(T_Y, at < 0 ? -INFINITY : LOAD(T_X, plane + at), to + ow);
        }
    }
}

// ---- gradient of max, any window, for devices with wide vectors ----
// A task does whole planes, row by row of outputs, sixteen windows at a time: which tap wins each, then the rows of dx that no
// later window looks at. In local memory rows of x and dx have the phases of the stride apart: column w is element
// (w + pad_w) / stride_w of phase (w + pad_w) % stride_w, so that neighbouring windows look at neighbours. What surrounds a row
// of x is -INFINITY. Rows that the next windows want too stay where they are, in rings.

// A row of x, its phases `pitch` apart.
void KERNEL(pool_spread)(__local float *to, __global const T_X *from, int W, int pitch, int stride_w,
                         int pad_w) {
    int w = 0;
    if (stride_w == 1) {
        for (; w + 16 <= W; w += 16) LSTORE_AS(float16, VLOAD(T_X, 16, from + w), to + pad_w + w);
    } else if (stride_w == 2) {
        __local float *even = to + pad_w % 2 * pitch + pad_w / 2,
                      *odd = to + (pad_w + 1) % 2 * pitch + (pad_w + 1) / 2;
        for (; w + 16 <= W; w += 16) {
            float16 v = VLOAD(T_X, 16, from + w);
            LSTORE_AS(float8, v.even, even + w / 2);
            LSTORE_AS(float8, v.odd, odd + w / 2);
        }
    }
    for (int c = (w + pad_w) % stride_w, q = (w + pad_w) / stride_w; w < W; w++) {
        to[c * pitch + q] = LOAD(T_X, from + w);
        if (++c == stride_w) c = 0, q++;
    }
}

// And back: a row of dx.
void KERNEL(pool_join)(__global T_DX *to, __local const float *from, int W, int pitch, int stride_w,
                       int pad_w) {
    int w = 0;
    if (stride_w == 1) {
        for (; w + 16 <= W; w += 16) VSTORE(T_DX, 16, LLOAD_AS(float16, from + pad_w + w), to + w);
    } else if (stride_w == 2) {
        __local const float *even = from + pad_w % 2 * pitch + pad_w / 2,
                            *odd = from + (pad_w + 1) % 2 * pitch + (pad_w + 1) / 2;
        for (; w + 16 <= W; w += 16) {
            float16 v;
            v.even = LLOAD_AS(float8, even + w / 2);
            v.odd = LLOAD_AS(float8, odd + w / 2);
            VSTORE(T_DX, 16, v, to + w);
        }
    }
    for (int c = (w + pad_w) % stride_w, q = (w + pad_w) / stride_w; w < W; w++) {
        STORE(T_DX, from[c * pitch + q], to + w);
        if (++c == stride_w) c = 0, q++;
    }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
KERNEL(max_pool2d_planes_backward)(__global T_DX *restrict dx, __global const T_Y *restrict dy,
                                   __global const T_X *restrict x, int n_planes, int planes, WINDOWS,
                                   DILATION) {
    __local float lx[ROOM], ldx[ROOM], ldy[ROOM];
    __local int winner[ROOM], opening[ROOM], phase[ROOM / 16], shift[ROOM / 16];
    int span = (kernel_h - 1) * dilation_h + 1, reach = (kernel_w - 1) * dilation_w / stride_w;
    int columns = (W - 1 + pad_w) / stride_w + 1, pitch = (max(OW, columns) + 15) / 16 * 16 + reach;
    int row = stride_w * pitch;              // of x or dx
    int looking = (span - 1) / stride_h + 1; // rows of windows that look at a row of x
    int first = (int)get_group_id(0) * planes, last = min(first + planes, n_planes);
    for (int j = 0; j < kernel_w; j++) {
        phase[j] = j * dilation_w % stride_w * pitch;
        shift[j] = j * dilation_w / stride_w;
    }
    // The first tap inside x along W: it wins where nothing is larger than -INFINITY.
    for (int o = 0; o < pitch; o++) opening[o] = (max(pad_w - o * stride_w, 0) + dilation_w - 1) / dilation_w;
    for (int i = 0; i < span * row; i++) lx[i] = -INFINITY;
    for (int i = 0; i < looking * pitch; i++) winner[i] = -1;
    for (int i = 0; i < looking * pitch; i++) ldy[i] = 0.0f;
    for (int p = first; p < last; p++) {
        int copied = 0, done = 0; // rows of x, rows of dx
        for (int oh = 0; oh < OH; oh++) {
            int h0 = oh * stride_h - pad_h, i_first = (max(-h0, 0) + dilation_h - 1) / dilation_h,
                i_end = min(kernel_h, (H - h0 + dilation_h - 1) / dilation_h);
            for (copied = max(copied, h0); copied < min(h0 + span, H); copied++) KERNEL(pool_spread)
            (lx + copied % span * row, x + (p * H + copied) * W, W, pitch, stride_w, pad_w);
            __local int *won = winner + oh % looking * pitch + reach;
            __local float *share = ldy + oh % looking * pitch + reach;
            int slot_first = (h0 + i_first * dilation_h) % span;
            for (int ow = 0; ow < OW; ow += 16) {
                float16 best = (float16)(-INFINITY);
                int16 at = LLOAD_AS(int16, opening + ow) + i_first * kernel_w;
                for (int i = i_first, slot = slot_first; i < i_end; i++) {
                    __local const float *from = lx + slot * row + ow;
                    slot += dilation_h;
                    if (slot >= span) slot -= span;
                    for (int j = 0; j < kernel_w; j++) {
                        float16 v = LLOAD_AS(float16, from + phase[j] + shift[j]);
                        int16 wins = (v > best) | (v != v);
                        best = select(best, v, wins);
                        at = select(at, (int16)(i * kernel_w + j), wins);
                    }
                }
                LSTORE_AS(int16, select((int16)(-1), at, LANES_16 < OW - ow), won + ow);
            }
            __global const T_Y *from = dy + (p * OH + oh) * OW;
            int ow = 0;
            for (; ow + 16 <= OW; ow += 16) LSTORE_AS(float16, VLOAD(T_Y, 16, from + ow), share + ow);
            for (; ow < OW; ow++) share[ow] = LOAD(T_Y, from + ow);
            for (int end = oh == OH - 1 ? H : min(H, h0 + stride_h); done < end; done++) {
                int o_first, o_last;
                KERNEL(pool_windows)(done, OH, kernel_h, stride_h, pad_h, dilation_h, &o_first, &o_last);
                for (int i = 0; i < row; i += 16) LSTORE_AS(float16, (float16)(0.0f), ldx + i);
                for (int o = o_first; o <= o_last; o++) {
                    int i = done + pad_h - o * stride_h;
                    if (i % dilation_h) continue;
                    won = winner + o % looking * pitch + reach;
                    share = ldy + o % looking * pitch + reach;
                    for (int j = kernel_w - 1; j >= 0; j--) {
                        int16 tap = (int16)(i / dilation_h * kernel_w + j);
                        for (int q = 0; q < columns; q += 16) {
                            __local float *sum = ldx + phase[j] + q;
                            int16 here = LLOAD_AS(int16, won + q - shift[j]) == tap;
                            float16 part =
                                select((float16)(0.0f), LLOAD_AS(float16, share + q - shift[j]), here);
                            LSTORE_AS(float16, LLOAD_AS(float16, sum) + part, sum);
                        }
                    }
                }
                KERNEL(pool_join)(dx + (p * H + done) * W, ldx, W, pitch, stride_w, pad_w);
            }
        }
    }
}

// ---- averages ----

// One over the number of elements that a window is divided by: all inside the padded input, or inside the input.
float KERNEL(pool_share)(int h0, int w0, int H, int W, int kernel_h, int kernel_w, int pad_h, int pad_w,
                         int exclude) {
    int h1 = min(h0 + kernel_h, exclude ? H : H + pad_h), w1 = min(w0 + kernel_w, exclude ? W : W + pad_w);
    if (exclude) {
        h0 = max(h0, 0);
        w0 = max(w0, 0);
    }
    return 1.0f / (float)((h1 - h0) * (w1 - w0));
}
#define SHARE_OF(h0, w0) KERNEL(pool_share)(h0, w0, H, W, kernel_h, kernel_w, pad_h, pad_w, exclude)

__kernel void KERNEL(avg_pool2d)(__global T_Y *restrict y, __global const T_X *restrict x, int n, WINDOWS,
                                 int exclude) {
    int o = (int)get_global_id(0);
    if (o >= n) return;
    int ow = o % OW, oh = o / OW % OH;
    __global const T_X *plane = x + o / OW / OH * H * W;
    int h0 = oh * stride_h - pad_h, w0 = ow * stride_w - pad_w;
    float sum = 0.0f;
    for (int h = max(h0, 0); h < min(h0 + kernel_h, H); h++) {
        float row = 0.0f; // sums of sums lose less
        for (int w = max(w0, 0); w < min(w0 + kernel_w, W); w++) row += LOAD(T_X, plane + h * W + w);
        sum += row;
    }
    STORE(T_Y, sum * SHARE_OF(h0, w0), y + o);
}

__kernel void KERNEL(avg_pool2d_backward)(__global T_DX *restrict dx, __global const T_Y *restrict dy, int n,
                                          WINDOWS, int exclude) {
    int i = (int)get_global_id(0);
    if (i >= n) return;
    int w = i % W, h = i / W % H, p = i / W / H;
    LOOKING_AT(h, w, 1, 1)
    float sum = 0.0f;
    for (int oh = h_first; oh <= h_last; oh++) {
        for (int ow = w_first; ow <= w_last; ow++) {
            float share = SHARE_OF(oh * stride_h - pad_h, ow * stride_w - pad_w);
            sum += LOAD(T_Y, dy + (p * OH + oh) * OW + ow) * share;
        }
    }
    STORE(T_DX, sum, dx + i);
}

__kernel void KERNEL(avg_pool2d_rows)(__global T_Y *restrict y, __global const T_X *restrict x, int n_rows,
                                      int rows, WINDOWS, int exclude) {
    int first = (int)get_global_id(0) * rows, last = min(first + rows, n_rows), left, right;
    KERNEL(pool_middle)(W, OW, kernel_w, stride_w, pad_w, 1, stride_w == 2, &left, &right);
    for (int r = first; r < last; r++) {
        __global const T_X *plane = x + r / OH * H * W;
        __global T_Y *to = y + r * OW;
        int h0 = r % OH * stride_h - pad_h, h_first = max(h0, 0), h_end = min(h0 + kernel_h, H);
        for (int ow = left; ow < right; ow = ow + 8 < right ? min(ow + 8, right - 8) : right) {
            int w0 = ow * stride_w - pad_w; // all eight windows are whole along W
            float8 sum = (float8)(0.0f);
            for (int h = h_first; h < h_end; h++) {
                float8 row = (float8)(0.0f);
                for (int j = 0; j < kernel_w; j++) row += KERNEL(pool_load)(plane + h * W + w0 + j, stride_w);
                sum += row;
            }
            float share = SHARE_OF(h0, w0);
            VSTORE(T_Y, 8, sum * share, to + ow);
        }
        for (int ow = 0; ow < OW; ow++) {
            if (ow == left) ow = right;
            if (ow >= OW) break;
            int w0 = ow * stride_w - pad_w;
            float sum = 0.0f;
            for (int h = h_first; h < h_end; h++) {
                float row = 0.0f;
                for (int w = max(w0, 0); w < min(w0 + kernel_w, W); w++) row += LOAD(T_X, plane + h * W + w);
                sum += row;
            }
            STORE(T_Y, sum * SHARE_OF(h0, w0), to + ow);
        }
    }
}

__kernel void KERNEL(avg_pool2d_planes_backward)(__global float *restrict dx, __global const T_Y *restrict dy,
                                                 int n_planes, int rows, WINDOWS, int exclude) {
    int first = (int)get_global_id(0) * rows, last = min(first + rows, n_planes);
    for (int p = first; p < last; p++) {
        __global float *to = dx + p * H * W;
        for (int i = 0; i < H * W; i++) to[i] = 0.0f;
        for (int oh = 0; oh < OH; oh++) {
            int h0 = oh * stride_h - pad_h, h_end = min(h0 + kernel_h, H);
            for (int ow = 0; ow < OW; ow++) {
                int w0 = ow * stride_w - pad_w, w_end = min(w0 + kernel_w, W);
                float part = LOAD(T_Y, dy + (p * OH + oh) * OW + ow) * SHARE_OF(h0, w0);
                for (int h = max(h0, 0); h < h_end; h++)
                    for (int w = max(w0, 0); w < w_end; w++) to[h * W + w] += part;
            }
        }
    }
}

// ---- few taps, for devices with lanes ----
// Loops over taps unroll, and most tests are done by the compiler. What an item looks at comes to registers first, all of it on its way at
// once; what neighbours look at too is in the cache.
#define UNROLLED _Pragma("unroll")
#define CEIL(a, b) ((a) > 0 ? ((a) + (b)-1) / (b) : (a) / (b))
#define INSIDE(h, w, height, width) ((uint)(h) < (uint)(height) && (uint)(w) < (uint)(width))

// `line`: rows h .. h + high - 1 and columns w .. w + wide - 1 of a plane, `beyond` where it ends; w is a multiple of ACCESS.
#define LINES(high, wide, h, w, beyond)                                                                      \
    float line[high][(wide) + 1];                                                                            \
    UNROLLED for (int i = 0; i < (high); i++) {                                                              \
        UNROLLED for (int j = 0; j < (wide); j += ACCESS) {                                                  \
            const bool valid = INSIDE((h) + i, (w) + j, H, W);                                               \
            const int at = valid ? ((h) + i) * W + (w) + j : 0;                                              \
            PAIR(const float2 v = ALOAD(T_X, 2, plane + at); line[i][j] = valid ? v.x : (beyond);            \
                 line[i][j + 1] = valid ? v.y : (beyond),                                                    \
                 const float v = LOAD(T_X, plane + at); line[i][j] = valid ? v : (beyond))                   \
        }                                                                                                    \
    }
#if ACCESS == 2
#define PAIR(two, one) two;
#else
#define PAIR(two, one) one;
#endif

__kernel void KERNEL(pool2d_direct)(__global T_Y *restrict y, __global const T_X *restrict x, int n, int H, int W,
                                    int OH, int OW, int exclude) {
    const int id = (int)get_global_id(0), down = (OH + ROWS - 1) / ROWS;
    if (id >= n) return; // n: planes * down * OW
    const int ow = id % OW, oh = id / OW % down * ROWS, p = id / OW / down;
    __global const T_X *plane = x + (clv_offset)p * H * W;
    const int before = (PW + ACCESS - 1) / ACCESS * ACCESS; // columns; the window begins at or after them
    LINES((ROWS - 1) * SH + (KH - 1) * DH + 1, (KW - 1) * DW + 1 + before - PW, oh * SH - PH, ow * SW - before,
          MEAN ? 0.0f : -INFINITY)
    UNROLLED for (int r = 0; r < ROWS; r++) {
        float result = MEAN ? 0.0f : -INFINITY;
        UNROLLED for (int i = 0; i < KH; i++) {
            float row = 0.0f; // sums of sums lose less
            UNROLLED for (int j = 0; j < KW; j++) {
                const float v = line[r * SH + i * DH][j * DW + before - PW];
                row += v;
                if (!MEAN && (v > result || v != v)) result = v;
            }
            if (MEAN) result += row;
        }
        if (MEAN) result *= KERNEL(pool_share)((oh + r) * SH - PH, ow * SW - PW, H, W, KH, KW, PH, PW, exclude);
        if (oh + r < OH) STORE(T_Y, result, y + (p * OH + oh + r) * OW + ow);
    }
}

#define FIRST(P, K, S, D) CEIL((P) - ((K)-1) * (D), S)
#define LAST(P, S) (((S)-1 + (P)) / (S))
#define FIRST_H FIRST(PH, KH, SH, DH)
#define FIRST_W FIRST(PW, KW, SW, DW)
#define WINDOWS_H (ROWS + LAST(PH, SH) - FIRST_H)
#define WINDOWS_W (1 + LAST(PW, SW) - FIRST_W)

__kernel void KERNEL(pool2d_direct_backward)(__global T_DX *restrict dx, __global const T_Y *restrict dy,
#if !MEAN
                                             __global const T_X *restrict x,
#endif
                                             int n, int H, int W, int OH, int OW, int exclude) {
    const int id = (int)get_global_id(0), across = (W + SW - 1) / SW, down = (H + ROWS * SH - 1) / (ROWS * SH);
    if (id >= n) return; // n: planes * down * across
    const int c = id % across, b = id / across % down * ROWS, p = id / across / down;
    float sums[ROWS * SH][SW + 1];
    UNROLLED for (int i = 0; i < ROWS * SH; i++) UNROLLED for (int j = 0; j < SW; j++) sums[i][j] = 0.0f;
#if !MEAN
    __global const T_X *plane = x + (clv_offset)p * H * W;
    const int left = FIRST_W * SW - PW, shift = left & (ACCESS - 1); // the leftmost window, from c*SW
    LINES((WINDOWS_H - 1) * SH + (KH - 1) * DH + 1, (WINDOWS_W - 1) * SW + (KW - 1) * DW + 1 + shift,
          (b + FIRST_H) * SH - PH, c * SW + left - shift, -INFINITY)
#endif
    UNROLLED for (int u = 0; u < WINDOWS_H; u++) {
        UNROLLED for (int v = 0; v < WINDOWS_W; v++) {
            const int oh = b + FIRST_H + u, ow = c + FIRST_W + v, h = oh * SH - PH, w = ow * SW - PW;
            const bool valid = INSIDE(oh, ow, OH, OW);
            const float from = LOAD(T_Y, dy + (valid ? (p * OH + oh) * OW + ow : 0));
            float part = valid ? from : 0.0f;
#if MEAN
            if (valid) part *= KERNEL(pool_share)(h, w, H, W, KH, KW, PH, PW, exclude);
#else
            // The first tap inside wins where nothing is larger than -INFINITY; where there is none, nobody is asked for it.
            const int first = max(-w + DW - 1, 0) / DW;
            int won = first < KW ? max(-h + DH - 1, 0) / DH * KW + first : -1;
            float best = -INFINITY;
            UNROLLED for (int i = 0; i < KH; i++) {
                UNROLLED for (int j = 0; j < KW; j++) {
                    const float tap = line[u * SH + i * DH][v * SW + j * DW + shift];
                    if (tap > best || tap != tap) best = tap, won = i * KW + j;
                }
            }
#endif
            UNROLLED for (int i = 0; i < KH; i++) {
                UNROLLED for (int j = 0; j < KW; j++) {
                    const int row = (FIRST_H + u) * SH - PH + i * DH, column = (FIRST_W + v) * SW - PW + j * DW;
                    if (row < 0 || row >= ROWS * SH || column < 0 || column >= SW) continue;
#if MEAN
                    sums[row][column] += part;
#else
                    sums[row][column] += won == i * KW + j ? part : 0.0f;
#endif
                }
            }
        }
    }
    UNROLLED for (int i = 0; i < ROWS * SH; i++) {
        UNROLLED for (int j = 0; j < SW; j += ACCESS) {
            const int row = b * SH + i, column = c * SW + j;
            __global T_DX *to = dx + ((clv_offset)p * H + row) * W + column;
            if (row < H && column < W)
                PAIR(ASTORE(T_DX, 2, (float2)(sums[i][j], sums[i][j + 1]), to), STORE(T_DX, sums[i][j], to))
        }
    }
}
