// SPDX-License-Identifier: Apache-2.0
// rotary_embedding: of each row of E features R pairs are turned, those behind them stay.
//
//     y[a] = x[a] * cos - x[b] * sin     y[b] = x[b] * cos + x[a] * sin     a = i, b = i + R; interleaved: a = 2i, b = 2i + 1
//
// Row r is turned by row r / inner % period of the tables [period, R]; `sign` -1 turns back. `each` work-items a row. T_X, T_Y: how x and y
// are stored, float (default), f16 or bf16.
#define T_X float
#define T_Y float

__kernel void KERNEL(rotary_embedding)(__global T_Y *restrict y, __global const T_X *restrict x,
                                       __global const float *restrict cosines,
                                       __global const float *restrict sines, int n, int each, int E, int R,
                                       int inner, int period, int interleaved, float sign) {
    const int item = (int)get_global_id(0);
    if (item >= n) return;
    const int row = item / each, from = row * E, t = row / inner % period * R;
    for (int i = item % each; i < E - R; i += each) {
        if (i >= R) {
            STORE(T_Y, LOAD(T_X, x + from + R + i), y + from + R + i);
            continue;
        }
        const int a = from + (interleaved ? 2 * i : i), b = interleaved ? a + 1 : a + R;
        const float p = LOAD(T_X, x + a), q = LOAD(T_X, x + b), c = cosines[t + i], s = sign * sines[t + i];
        STORE(T_Y, p * c - q * s, y + a);
        STORE(T_Y, q * c + p * s, y + b);
    }
}
