// SPDX-License-Identifier: Apache-2.0
// The most a device can do, to hold measured times against. No op uses these.
//
//   peak_fma    item i < n_items runs `turns` turns of twelve independent chains x = x * a + b and stores their sum in out[i]:
//               24 * PEAK_VW flops a turn. Twelve chains cover a latency of 4 to 6 cycles on two units, and leave registers.
//   peak_cache  out[v] = in[v] + t for the `run` vectors of item i, `turns` times over: data that stays in caches
//   peak_copy   out[v] = in[v] for the vectors v = i * first + t * step, t < turns, v < n
//
// PEAK_VW   vector width: 1, 2, 4, 8 or 16 (default 16)
#define PEAK_VW 16

#if PEAK_VW == 1
#define PEAK_V float
#else
#define PEAK_V PASTE(float, PEAK_VW)
#endif

#define PEAK_CHAINS(M) M(0) M(1) M(2) M(3) M(4) M(5) M(6) M(7) M(8) M(9) M(10) M(11)
#define PEAK_START(j) PEAK_V x##j = (PEAK_V)(0.001f * (float)(i + j));
#define PEAK_TURN(j) x##j = fma(x##j, va, vb);
#define PEAK_SUM(j) sum += x##j;

kernel void KERNEL(peak_fma)(global PEAK_V *restrict out, int n_items, int turns, float a, float b) {
    const int i = get_global_id(0);
    if (i >= n_items) return;
    const PEAK_V va = (PEAK_V)(a), vb = (PEAK_V)(b);
    PEAK_CHAINS(PEAK_START)
    for (int t = 0; t < turns; t++) {
        PEAK_CHAINS(PEAK_TURN)
    }
    PEAK_V sum = (PEAK_V)(0.0f);
    PEAK_CHAINS(PEAK_SUM)
    out[i] = sum;
}

kernel void KERNEL(peak_copy)(global PEAK_V *restrict out, const global PEAK_V *restrict in, int n, int first,
                              int step, int turns) {
    int v = get_global_id(0) * first;
    for (int t = 0; t < turns && v < n; t++, v += step) out[v] = in[v];
}

kernel void KERNEL(peak_cache)(global PEAK_V *restrict out, const global PEAK_V *restrict in, int n_items,
                               int run, int turns) {
    const int first = get_global_id(0) * run;
    if ((int)get_global_id(0) >= n_items) return;
    for (int t = 0; t < turns; t++) {
        for (int v = first; v < first + run; v++) out[v] = in[v] + (PEAK_V)((float)t);
    }
}
