// SPDX-License-Identifier: Apache-2.0
// Source: Salmon, Moraes, Dror, Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3"; the Random123 library.
#include "base/random.h"

#include <Random123/philox.h>
#include <math.h>

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

double clv__random_normal(clv__random *random) {
    double u = ((double)clv__random_u32(random) + 1.0) * 0x1p-32; // (0, 1]
    double v = (double)clv__random_u32(random) * 0x1p-32;
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}
