// SPDX-License-Identifier: Apache-2.0
// Connectionist temporal classification: x [T, N, C] are logarithms of probabilities, a lattice has L = 2S + 1 places for each step: blank,
// first label, blank, second label, ... blank. Sample n has input_lengths[n] steps and target_lengths[n] labels; its targets are row n of
// [N, S], or, `padded` 0, come one sample after the other in [S].
//
//   ctc_alpha   an item, or a group of ITEMS, does a sample's steps from `begin` to before `end`: alpha[n][t][s] = log of the probability of all ways
//               to place s by step t; after the last step nll[n]
//   ctc_beta    the same from the last step back: share[n][t][s] = probability that the way goes through there, given the targets. `row` has
//               the newest 2 rows of beta of each sample
//   ctc_chain   item (n*S + j): of sample n's label j twice the place of the next label that is the same, 0 for none, and 1 more if none
//               before it is
//   ctc_put     item ((t*N + n) * (S + 1) + j): dx of the blank, j 0, or of label j - 1, if that is the first of its kind: the sum of
//               the shares, times -dy[n]. All of dx is 0 before
//
// T_X, T_DX  how x and dx are stored: float (default), f16 or bf16
// ITEMS      of a sample; default 1, in groups of any size. With more it is a group's: places of a step are done side by side
//
// What lies outside, lengths or labels, or a label that is the blank, makes nll[n] NaN, and reads nothing that it should not.
#define T_X float
#define T_DX float
#define ITEMS 1

#if ITEMS == 1
#define CTC_WAIT
#define CTC_GROUP
#define CTC_PLACE                                                                                            \
    const int n = (int)get_global_id(0), id = 0;                                                             \
    if (n >= N) return;
#else
#define CTC_WAIT barrier(CLK_GLOBAL_MEM_FENCE);
#define CTC_GROUP __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
#define CTC_PLACE const int n = (int)get_group_id(0), id = (int)get_local_id(0);
#endif

#define CTC_SUM(suffix)                                                                                      \
    static float##suffix KERNEL(ctc_sum##suffix)(float##suffix a, float##suffix b, float##suffix c) {        \
        float##suffix m = fmax(fmax(a, b), c);                                                               \
        m = select(m, (float##suffix)(0.0f), m == (float##suffix)(-INFINITY));                               \
        return log(exp(a - m) + exp(b - m) + exp(c - m)) + m;                                                \
    }
CTC_SUM()
CTC_SUM(16)

static int KERNEL(ctc_is_label)(int label, int C, int blank) {
    return label >= 0 && label < C && label != blank;
}

/** Where a sample's targets begin, its steps and labels within what there is, and whether they are what was given. */
static int4 KERNEL(ctc_sample)(__global const int *targets, __global const int *input_lengths,
                               __global const int *target_lengths, int n, int T, int C, int S, int padded, int blank) {
    int base = padded ? n * S : 0, room = S;
    for (int i = 0; i < n && !padded; i++) base = min(S, base + clamp(target_lengths[i], 0, S));
    if (!padded) room = S - base;
    const int steps = clamp(input_lengths[n], 0, T), labels = clamp(target_lengths[n], 0, room);
    int good = steps == input_lengths[n] && labels == target_lengths[n];
    for (int j = 0; j < labels; j++) good &= KERNEL(ctc_is_label)(targets[base + j], C, blank);
    return (int4)(base, steps, labels, good);
}

#define SAMPLE                                                                                               \
    CTC_PLACE                                                                                                \
    const int L = 2 * S + 1;                                                                                 \
    const int4 sample =                                                                                      \
        KERNEL(ctc_sample)(targets, input_lengths, target_lengths, n, T, C, S, padded, blank);                      \
    const int steps = sample.y, places = 2 * sample.z + 1;                                                   \
    targets += sample.x;
// The class of place s, and whether a way may come to it past the blank before it.
#define CLASS(s) ((s) & 1 && KERNEL(ctc_is_label)(targets[(s) / 2], C, blank) ? targets[(s) / 2] : blank)
#define SKIPS(s) ((s) & 1 && (s) > 1 && targets[(s) / 2] != targets[(s) / 2 - 1])
#define EMITTED(t, s) LOAD(T_X, x + ((clv_offset)(t) * N + n) * C + CLASS(s))
#define INPUTS                                                                                               \
    __global const T_X *restrict x, __global const int *restrict targets,                                    \
        __global const int *restrict input_lengths, __global const int *restrict target_lengths

__kernel CTC_GROUP void KERNEL(ctc_alpha)(__global float *nll, __global float *alpha, INPUTS, int T, int N, int C, int S, int padded,
                  int blank, int zero_infinity, int begin, int end) {
    SAMPLE
    __global float *rows = alpha + (clv_offset)n * T * L;
    for (int t = begin; t < end; t++) {
        __global float *row = rows + (clv_offset)t * L;
        __global const float *before = row - L;
        int s = id;
#if ITEMS == 1
        // Sixteen places at once, the first of them a label's.
        if (t > 0 && t < steps) {
            for (; s < min(3, places); s++)
                row[s] = KERNEL(ctc_sum)(before[s], s > 0 ? before[s - 1] : -INFINITY,
                                         -INFINITY) +
                         EMITTED(t, s);
            const float of_blank = LOAD(T_X, x + ((clv_offset)t * N + n) * C + blank);
            for (; s + 16 <= places; s += 16) {
                float emitted[16];
                int skips[16];
                for (int k = 0; k < 16; k += 2) {
                    emitted[k] = EMITTED(t, s + k);
                    skips[k] = SKIPS(s + k) ? -1 : 0;
                    emitted[k + 1] = of_blank;
                    skips[k + 1] = 0;
                }
                const float16 past =
                    select((float16)(-INFINITY), vload16(0, before + s - 2), vload16(0, skips));
                vstore16(KERNEL(ctc_sum16)(vload16(0, before + s), vload16(0, before + s - 1), past) +
                             vload16(0, emitted),
                         0, row + s);
            }
        }
#endif
        for (; s < L; s += ITEMS) {
            float v = -INFINITY;
            if (t < steps && s < places && t == 0) v = s < 2 ? EMITTED(t, s) : -INFINITY;
            if (t < steps && s < places && t > 0)
                v = KERNEL(ctc_sum)(before[s], s > 0 ? before[s - 1] : -INFINITY,
                                    SKIPS(s) ? before[s - 2] : -INFINITY) +
                    EMITTED(t, s);
            row[s] = v;
        }
        CTC_WAIT
    }
    if (id || end < T) return;
    float loss = places == 1 ? 0.0f : INFINITY;
    if (steps > 0) {
        __global const float *last = rows + (clv_offset)(steps - 1) * L;
        loss = -KERNEL(ctc_sum)(last[places - 1], places > 1 ? last[places - 2] : -INFINITY, -INFINITY);
    }
    if (zero_infinity && loss == INFINITY) loss = 0.0f;
    nll[n] = sample.w ? loss : NAN;
}

__kernel CTC_GROUP void KERNEL(ctc_beta)(__global float *share, __global float *row, INPUTS, __global const float *restrict nll,
                 __global const float *restrict alpha, int T, int N, int C, int S, int padded, int blank,
                 int begin, int end) {
    SAMPLE
    const float loss = nll[n];
    for (int t = end - 1; t >= begin; t--) {
        __global float *to = row + ((clv_offset)n * 2 + t % 2) * L;
        __global const float *after = row + ((clv_offset)n * 2 + (t + 1) % 2) * L;
        const clv_offset at = ((clv_offset)n * T + t) * L;
        int s = id;
        for (; s < L; s += ITEMS) {
            float v = -INFINITY;
            if (t == steps - 1 && s < places) v = s >= places - 2 ? 0.0f : -INFINITY;
            if (t < steps - 1 && s < places)
                v = KERNEL(ctc_sum)(after[s] + EMITTED(t + 1, s),
                                    s + 1 < places ? after[s + 1] + EMITTED(t + 1, s + 1) : -INFINITY,
                                    s + 2 < places && SKIPS(s + 2) ? after[s + 2] + EMITTED(t + 1, s + 2)
                                                                   : -INFINITY);
            to[s] = v;
            share[at + s] = t < steps && s < places ? exp(alpha[at + s] + v + loss) : 0.0f;
        }
        CTC_WAIT
    }
}

__kernel void KERNEL(ctc_chain)(__global int *chain, __global const int *restrict targets,
                                __global const int *restrict input_lengths,
                                __global const int *restrict target_lengths, int T, int N, int C, int S,
                                int padded, int blank) {
    const int i = (int)get_global_id(0), n = i / S, j = i % S;
    if (n >= N) return;
    const int4 sample =
        KERNEL(ctc_sample)(targets, input_lengths, target_lengths, n, T, C, S, padded, blank);
    int next = 0, first = j < sample.z;
    if (first) {
        targets += sample.x;
        for (int k = 0; k < j; k++) first &= targets[k] != targets[j];
        for (int k = sample.z - 1; k > j; k--) next = targets[k] == targets[j] ? k : next;
        first &= KERNEL(ctc_is_label)(targets[j], C, blank);
    }
    chain[i] = 2 * next + first;
}

__kernel void KERNEL(ctc_put)(__global T_DX *restrict dx, __global const float *restrict dy,
                              __global const int *restrict targets, __global const int *restrict target_lengths,
                              __global const float *restrict share, __global const int *restrict chain, int T,
                              int N, int C, int S, int padded, int blank) {
    const int i = (int)get_global_id(0), j = i % (S + 1), n = i / (S + 1) % N, t = i / (S + 1) / N;
    if (t >= T) return;
    __global const float *from = share + ((clv_offset)n * T + t) * (2 * S + 1);
    __global const int *next = chain + n * S;
    int base = padded ? n * S : 0, c = blank;
    float sum = 0.0f;
    if (j == 0) {
        for (int s = 0; s <= S; s++) sum += from[2 * s];
    } else {
        if (!(next[j - 1] & 1)) return;
        for (int k = 0; k < n && !padded; k++) base = min(S, base + clamp(target_lengths[k], 0, S));
        c = targets[base + j - 1];
        for (int k = j - 1, more = 1; more; k = next[k] / 2, more = k > 0) sum += from[2 * k + 1];
    }
    STORE(T_DX, -sum * dy[n], dx + ((clv_offset)t * N + n) * C + c);
}
