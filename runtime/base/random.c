// SPDX-License-Identifier: Apache-2.0
// Source: Salmon, Moraes, Dror, Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3"; the Random123
// library.
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

// ---- many at once -----------------------------------------------------------------------------------------
// A network has millions of first values, so what draws them is loops without a branch, of which a compiler
// does several turns at once. On an x86 they are compiled for each width of vectors, and the widest that the
// processor has is taken: the same bits, since no multiplication and addition are made one
// (-ffp-contract=off).

enum { LANES = 32, WORDS = 4 * LANES }; // counters at once, and the words, or numbers, that come of them

#define INLINE static inline __attribute__((always_inline)) // into each of the functions for a width

/** Philox4x32-10 for the sequence's next LANES counters; the words in the order of clv__random_u32. */
INLINE void next_words(clv__random *random, uint32_t *words) {
    uint32_t c0[LANES], c1[LANES], c2[LANES], c3[LANES];
    uint32_t k0 = (uint32_t)random->seed, k1 = (uint32_t)(random->seed >> 32) ^ random->stream;
    for (uint32_t i = 0; i < LANES; i++) {
        c0[i] = random->next + i;
        c1[i] = 0;
        c2[i] = (uint32_t)random->id;
        c3[i] = (uint32_t)(random->id >> 32);
    }
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < LANES; i++) {
            uint64_t a = (uint64_t)PHILOX_M4x32_0 * c0[i], b = (uint64_t)PHILOX_M4x32_1 * c2[i];
            c0[i] = (uint32_t)(b >> 32) ^ c1[i] ^ k0;
            c1[i] = (uint32_t)b;
            c2[i] = (uint32_t)(a >> 32) ^ c3[i] ^ k1;
            c3[i] = (uint32_t)a;
        }
        k0 += PHILOX_W32_0;
        k1 += PHILOX_W32_1;
    }
    for (int i = 0; i < LANES; i++) {
        words[4 * i] = c0[i];
        words[4 * i + 1] = c1[i];
        words[4 * i + 2] = c2[i];
        words[4 * i + 3] = c3[i];
    }
    random->next += LANES;
}

/** log(u) for a normal u > 0, to some 1e-12: u = 2^k z with z between sqrt(1/2) and sqrt(2), and log(z) = 2
 *  artanh((z-1) / (z+1)). */
INLINE double log_of(double u) {
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
    double sum = 1.0 / 13;
    sum = sum * t + 1.0 / 11;
    sum = sum * t + 1.0 / 9;
    sum = sum * t + 1.0 / 7;
    sum = sum * t + 1.0 / 5;
    sum = sum * t + 1.0 / 3;
    return power * 0x1.62e42fefa39efp-1 + (2 * s + 2 * s * t * sum);
}

typedef struct pair {
    double first, second;
} pair;

INLINE double negated_if(double x, uint32_t two) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits ^= (uint64_t)two << 62; // 2 becomes the sign
    memcpy(&x, &bits, sizeof x);
    return x;
}

/** Cosine and sine of `angle` 2^-32 turns, to some 1e-13: their series at what is left, at most an eighth of
 *  a turn, beside quarters. */
INLINE pair cos_and_sin(uint32_t angle) {
    const uint32_t quarter = (angle + (UINT32_C(1) << 29)) >> 30;
    const double x = (double)(int32_t)(angle - (quarter << 30)) * 0x1.921fb54442d18p-30, t = x * x;
    double c = -1.0 / 87178291200.0, s = 1.0 / 6227020800.0;
    c = c * t + 1.0 / 479001600.0;
    c = c * t - 1.0 / 3628800.0;
    c = c * t + 1.0 / 40320.0;
    c = c * t - 1.0 / 720.0;
    c = c * t + 1.0 / 24.0;
    c = c * t - 0.5;
    c = c * t + 1.0;
    s = s * t - 1.0 / 39916800.0;
    s = s * t + 1.0 / 362880.0;
    s = s * t - 1.0 / 5040.0;
    s = s * t + 1.0 / 120.0;
    s = s * t - 1.0 / 6.0;
    s = x + x * t * s;
    const double even = quarter & 1 ? s : c, odd = quarter & 1 ? c : s;
    return (pair){negated_if(even, (quarter + 1) & 2), negated_if(odd, quarter & 2)};
}

// Box and Muller: sqrt(-2 log u) times cos(2 pi v) and times sin(2 pi v). The functions are written out: the
// same on every host, whatever its library.

/** u in (0, 1] of the first of two words, v in [0, 1) of the second. */
INLINE pair normals_of(uint32_t first, uint32_t second) {
    const double radius = sqrt(-2.0 * log_of(((double)first + 1.0) * 0x1p-32));
    const pair at = cos_and_sin(second);
    return (pair){radius * at.first, radius * at.second};
}

INLINE void draw_normals(clv__random *random, double *out, int n_blocks) {
    uint32_t words[WORDS];
    for (; n_blocks > 0; n_blocks--, out += WORDS) {
        next_words(random, words);
        for (int i = 0; i < WORDS; i += 2) {
            const pair two = normals_of(words[i], words[i + 1]);
            out[i] = two.first;
            out[i + 1] = two.second;
        }
    }
}

INLINE void draw_uniforms(clv__random *random, float *out, int n_blocks) {
    uint32_t words[WORDS];
    for (; n_blocks > 0; n_blocks--, out += WORDS) {
        next_words(random, words);
        for (int i = 0; i < WORDS; i++) out[i] = clv__uniform(words[i]);
    }
}

/** Those of so many whole blocks: `normals` or `uniforms` is NULL. */
typedef void draw_fn(clv__random *random, double *normals, float *uniforms, int n_blocks);

INLINE void draw(clv__random *random, double *normals, float *uniforms, int n_blocks) {
    if (normals)
        draw_normals(random, normals, n_blocks);
    else
        draw_uniforms(random, uniforms, n_blocks);
}

static void draw_narrow(clv__random *random, double *normals, float *uniforms, int n_blocks) {
    draw(random, normals, uniforms, n_blocks);
}

#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("avx2"))) static void draw_256(clv__random *random, double *normals, float *uniforms,
                                                     int n_blocks) {
    draw(random, normals, uniforms, n_blocks);
}

__attribute__((target("avx512f,avx512dq,avx512vl"))) static void
draw_512(clv__random *random, double *normals, float *uniforms, int n_blocks) {
    draw(random, normals, uniforms, n_blocks);
}

static draw_fn *widest_draw(void) {
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        return draw_512;
    return __builtin_cpu_supports("avx2") ? draw_256 : draw_narrow;
}
#else
static draw_fn *widest_draw(void) {
    return draw_narrow;
}
#endif

double clv__random_normal(clv__random *random) {
    random->has_spare = !random->has_spare;
    if (!random->has_spare) return random->spare;
    const uint32_t first = clv__random_u32(random), second = clv__random_u32(random);
    const pair two = normals_of(first, second);
    random->spare = two.second;
    return two.first;
}

void clv__random_normals(clv__random *random, double *out, int n) {
    int i = 0;
    if (random->has_spare && n > 0) out[i++] = clv__random_normal(random);
    int blocks = random->have ? 0 : (n - i) / WORDS; // where a counter's words are left over, one at a time
    widest_draw()(random, out + i, NULL, blocks);
    for (i += blocks * WORDS; i < n; i++) out[i] = clv__random_normal(random);
}

void clv__random_uniforms(clv__random *random, float *out, int n) {
    int blocks = random->have ? 0 : n / WORDS;
    widest_draw()(random, NULL, out, blocks);
    for (int i = blocks * WORDS; i < n; i++) out[i] = clv__random_uniform(random);
}
