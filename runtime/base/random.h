// SPDX-License-Identifier: Apache-2.0
// Random numbers by counter: Philox4x32-10 (Random123). The same key and counter give the same four words
// everywhere, on the host and in kernels (kernels_cl/common/philox.cl), so nothing depends on order or on
// threads.
#ifndef CLV_BASE_RANDOM_H
#define CLV_BASE_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

/** What a stream of random numbers is for; the second key word, so that streams never meet. */
typedef enum clv__stream {
    CLV__STREAM_INIT = 1,
    CLV__STREAM_SHUFFLE,
    CLV__STREAM_DROPOUT,
    CLV__STREAM_TEST,
    CLV__STREAM_GENERATE,
    CLV__STREAM_AUGMENT,
    CLV__STREAM_MIXUP,
    CLV__STREAM_RANDOM
} clv__stream;

typedef struct clv__philox {
    uint32_t word[4];
} clv__philox;

/** Four random words for key (k0, k1) and counter (c0, c1, c2, c3). */
clv__philox clv__philox_at(uint32_t k0, uint32_t k1, uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3);

/** A word as a float in [0, 1): the upper 24 bits times 2^-24. */
static inline float clv__uniform(uint32_t word) {
    return (float)(word >> 8) * 0x1p-24f;
}

/** A sequence drawn from Philox: key (seed low, seed high ^ stream), counter (index, 0, id low, id high). */
typedef struct clv__random {
    uint64_t seed, id;
    uint32_t stream, next, have;
    clv__philox block;
    bool has_spare;
    double spare; // the second of two normal numbers: they come in pairs
} clv__random;

void clv__random_init(clv__random *random, uint64_t seed, clv__stream stream, uint64_t id);
uint32_t clv__random_u32(clv__random *random);
/** Uniform in [0, n), without bias; n >= 1. */
uint32_t clv__random_below(clv__random *random, uint32_t n);
/** Uniform in [0, 1). */
float clv__random_uniform(clv__random *random);
/** Standard normal, in double, to some 1e-12. Two of them take two words. */
double clv__random_normal(clv__random *random);
/** The next n of them, faster. */
void clv__random_normals(clv__random *random, double *out, int n);
void clv__random_uniforms(clv__random *random, float *out, int n);

#endif
