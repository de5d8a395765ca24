// SPDX-License-Identifier: Apache-2.0
// Random words by counter, Philox4x32-10, as runtime/base/random.c: the same key and counter give the same words.
//
//   clv_philox      four words for one counter
//   clv_philox16    four words each for sixteen counters that differ in their first word: words.s0 of lane l is word 0
//   clv_uniform     a word as a float in [0, 1): the upper 24 bits times 2^-24
//
// Source: Salmon, Moraes, Dror, Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3", section 3.3 and table 2
#define CLV_PHILOX_M0 0xD2511F53u
#define CLV_PHILOX_M1 0xCD9E8D57u
#define CLV_PHILOX_W0 0x9E3779B9u
#define CLV_PHILOX_W1 0xBB67AE85u

uint4 clv_philox(uint k0, uint k1, uint4 counter) {
    for (int round = 0; round < 10; round++) {
        uint high0 = mul_hi(CLV_PHILOX_M0, counter.x), low0 = CLV_PHILOX_M0 * counter.x;
        uint high1 = mul_hi(CLV_PHILOX_M1, counter.z), low1 = CLV_PHILOX_M1 * counter.z;
        counter = (uint4)(high1 ^ counter.y ^ k0, low1, high0 ^ counter.w ^ k1, low0);
        k0 += CLV_PHILOX_W0;
        k1 += CLV_PHILOX_W1;
    }
    return counter;
}

#ifdef CLV_NO_INT64
uint16 clv_philox_high(uint m, uint16 v) {
    return mul_hi((uint16)(m), v);
}
#else
// The upper halves of products by 64-bit lanes: twice as fast as mul_hi where that has no instruction.
uint16 clv_philox_high(uint m, uint16 v) {
    ulong8 pairs = as_ulong8(v);
    ulong8 low = (pairs & 0xFFFFFFFFul) * (ulong)m, high = (pairs >> 32) * (ulong)m;
    return as_uint16((low >> 32) | (high & 0xFFFFFFFF00000000ul));
}
#endif

// In and out: word[0] holds the sixteen first counter words, word[1..3] the others.
void clv_philox16(uint k0, uint k1, uint16 *word) {
    uint16 x = word[0], y = word[1], z = word[2], w = word[3];
    for (int round = 0; round < 10; round++) {
        uint16 high0 = clv_philox_high(CLV_PHILOX_M0, x), low0 = CLV_PHILOX_M0 * x;
        uint16 high1 = clv_philox_high(CLV_PHILOX_M1, z), low1 = CLV_PHILOX_M1 * z;
        x = high1 ^ y ^ k0;
        y = low1;
        z = high0 ^ w ^ k1;
        w = low0;
        k0 += CLV_PHILOX_W0;
        k1 += CLV_PHILOX_W1;
    }
    word[0] = x;
    word[1] = y;
    word[2] = z;
    word[3] = w;
}

float clv_uniform(uint word) {
    return (float)(word >> 8) * 0x1p-24f;
}

#undef CLV_PHILOX_M0
#undef CLV_PHILOX_M1
#undef CLV_PHILOX_W0
#undef CLV_PHILOX_W1
