// SPDX-License-Identifier: Apache-2.0
// Source: Salmon, Moraes, Dror, Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3"; the Random123 library.
#include "base/random.h"

#include <Random123/philox.h>
#include <math.h>
#include <string.h>

clv__philox clv__philox_at(uint32_t k0, uint32_t k1, uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3) {
    philox4x32_ctr_t counter = {{c0, c1, c2, c3}};
    philox4x32_key_t key = {{k0, k1}};
    philox4x32_ctr_t words = philox4x32(counter, key);
    return (clv__philox){{words.v[0], words.v[1], words.v[2], words.v[3]}};
}

void clv__random_init(clv__random *random, uint64_t seed, clv__stream stream, uint64_t id) {
    *random = (clv__random){.seed = seed, .id = id, .stream = (uint32_t)stream};
}

uint32_t clv__random_u32(clv__random *random) {
    if (random->have == 0) {
        random->block =
            clv__philox_at((uint32_t)random->seed, (uint32_t)(random->seed >> 32) ^ random->stream,
                           random->next++, 0, (uint32_t)random->id, (uint32_t)(random->id >> 32));
        random->have = 4;
    }
    return random->block.word[4 - random->have--];
}

uint32_t clv__random_below(clv__random *random, uint32_t n) {
    uint32_t limit = UINT32_MAX - (uint32_t)((1ull << 32) % n); // words above it would favour small results
    uint32_t word;
    do {
        word = clv__random_u32(random);
    } while (word > limit);
    return word % n;
}

float clv__random_uniform(clv__random *random) {
    return clv__uniform(clv__random_u32(random));
}

// ---- normal numbers ---------------------------------------------------------------------------------------------------
// Box and Muller: sqrt(-2 log u) * cos(2 pi v). A network has millions of first values, so logarithm and cosine are written
// out, without a branch: a compiler does several at once, and they are the same on every host, whatever its library.

/** log(u) for a normal u > 0, to some 1e-16: u = 2^k z with z between sqrt(1/2) and sqrt(2), and log(z) = 2 artanh((z-1) / (z+1)). */
static inline double log_of(double u) {
    const uint64_t root_half = 0x3fe6a09e667f3bcdu, bias = 1024, two52 = 0x4330000000000000u;
    uint64_t bits, k;
    memcpy(&bits, &u, sizeof bits);
    k = (bits - root_half + (bias << 52)) >> 52; // biased: no sign, whose shift not every vector unit has
    bits -= (k - bias) << 52;
    double z, power;
    memcpy(&z, &bits, sizeof z);
    k |= two52; // the integer as the last bits of 2^52
    memcpy(&power, &k, sizeof power);
    power -= 0x1p52 + 1024;
    double s = (z - 1) / (z + 1), t = s * s; // t <= 0.0295
    double sum = 1.0 / 21;
    sum = sum * t + 1.0 / 19;
    sum = sum * t + 1.0 / 17;
    sum = sum * t + 1.0 / 15;
    sum = sum * t + 1.0 / 13;
    sum = sum * t + 1.0 / 11;
    sum = sum * t + 1.0 / 9;
    sum = sum * t + 1.0 / 7;
    sum = sum * t + 1.0 / 5;
    sum = sum * t + 1.0 / 3;
    return power * 0x1.62e42fefa39efp-1 + (2 * s + 2 * s * t * sum);
}

/** cos(2 pi v) for 0 <= v < 1: the sine, by its series, of the angle that is left when v is folded twice. */
static inline double cos_of_turns(double v) {
    double x = (fabs(v - 0.5) - 0.25) * 0x1.921fb54442d18p+2, t = x * x; // |x| <= pi/2
    double sum = -1.0 / 25852016738884976640000.0;
    sum = sum * t + 1.0 / 51090942171709440000.0;
    sum = sum * t - 1.0 / 121645100408832000.0;
    sum = sum * t + 1.0 / 355687428096000.0;
    sum = sum * t - 1.0 / 1307674368000.0;
    sum = sum * t + 1.0 / 6227020800.0;
    sum = sum * t - 1.0 / 39916800.0;
    sum = sum * t + 1.0 / 362880.0;
    sum = sum * t - 1.0 / 5040.0;
    sum = sum * t + 1.0 / 120.0;
    sum = sum * t - 1.0 / 6.0;
    return x + x * t * sum;
}

void clv__random_normals(clv__random *random, double *out, int n) {
    enum { BLOCK = 64 };
    double logs[BLOCK], cosines[BLOCK];
    for (int from = 0; from < n; from += BLOCK) {
        int m = n - from < BLOCK ? n - from : BLOCK;
        for (int i = 0; i < BLOCK; i++) {
            logs[i] = i < m ? ((double)clv__random_u32(random) + 1.0) * 0x1p-32 : 1; // (0, 1]
            cosines[i] = i < m ? (double)clv__random_u32(random) * 0x1p-32 : 0;
        }
        for (int i = 0; i < BLOCK; i++) logs[i] = log_of(logs[i]);
        for (int i = 0; i < BLOCK; i++) cosines[i] = cos_of_turns(cosines[i]);
        for (int i = 0; i < m; i++) out[from + i] = sqrt(-2.0 * logs[i]) * cosines[i];
    }
}

double clv__random_normal(clv__random *random) {
    double u = ((double)clv__random_u32(random) + 1.0) * 0x1p-32;
    double v = (double)clv__random_u32(random) * 0x1p-32;
    return sqrt(-2.0 * log_of(u)) * cos_of_turns(v);
}
