// SPDX-License-Identifier: Apache-2.0
// Room in an arena: what is found by passing over groups of blocks is what looking at each block finds. Names in a table: what was
// added is found, in its order.
#include "harness/harness.h"

#include <string.h>

#include "base/names.h"
#include "plan/room.h"

enum { BLOCKS = 700 };

/** The lowest offset, by looking at each block in the order of offsets. */
static size_t look_at_each(const clv__block *sorted, int n, const clv__block *now, size_t chunk) {
    size_t start = 0;
    for (int i = 0; i <= n; i++) {
        if (i < n && (sorted[i].last < now->first || sorted[i].first > now->last)) continue;
        size_t end_of_chunk = (start / chunk + 1) * chunk;
        if (now->bytes <= chunk && start + now->bytes > end_of_chunk) start = end_of_chunk;
        if (i == n || start + now->bytes <= sorted[i].offset) break;
        if (sorted[i].offset + sorted[i].bytes > start) start = sorted[i].offset + sorted[i].bytes;
    }
    return start;
}

/** Blocks with lives of `longest` positions at most among `moments`, some of them nested as in a training. */
static void fill(uint32_t seed, int moments, int longest, size_t largest, size_t chunk) {
    clv__block sorted[BLOCKS];
    clv__room room = {.chunk = chunk};
    uint64_t state = seed;
    for (int n = 0; n < BLOCKS; n++) {
        uint32_t draw[3];
        for (int i = 0; i < 3; i++) {
            state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            draw[i] = (uint32_t)(state >> 33);
        }
        clv__block now = {
            .id = n, .bytes = 1 + draw[0] % largest, .first = (int)(draw[1] % (uint32_t)moments)};
        now.last = draw[2] % 3 ? now.first + (int)(draw[2] % (uint32_t)longest) : 2 * moments - now.first;
        now.offset = clv__room_find(&room, &now);
        assert_int_equal(now.offset, look_at_each(sorted, n, &now, chunk));
        assert_true(clv__room_add(&room, &now));
        int at = n;
        for (; at > 0 && sorted[at - 1].offset > now.offset; at--) sorted[at] = sorted[at - 1];
        sorted[at] = now;
    }
    clv__room_reset(&room);
}

TEST(test_same_as_each) {
    for (uint32_t seed = 1; seed <= 12; seed++) {
        fill(seed, 50, 5, 1000, SIZE_MAX / 4);
        fill(seed, 1000, 400, 100, SIZE_MAX / 4);
        fill(seed, 1000, 3, 1, SIZE_MAX / 4);
        fill(seed, 300, 100, 64, 100); // cut into chunks, some blocks nearly as large as one
        fill(seed, 20, 20, 300, 256);  // and some larger
    }
}

TEST(test_names) {
    clv__names names = {0};
    char name[32];
    size_t at = 0, number;
    assert_false(clv__names_next(&names, "a", &at, &number));
    for (size_t i = 0; i < 3000; i++) { // each name three times
        snprintf(name, sizeof name, "layer%zu.weight", i % 1000);
        assert_true(clv__names_add(&names, name, i));
    }
    for (size_t i = 0; i < 1000; i++) {
        size_t expected = i;
        at = 0;
        snprintf(name, sizeof name, "layer%zu.weight", i);
        while (clv__names_next(&names, name, &at, &number)) {
            if (number % 1000 != i) continue; // another of that hash
            assert_int_equal(number, expected);
            expected += 1000;
        }
        assert_int_equal(expected, 3000 + i);
    }
    clv__names_empty(&names);
    at = 0;
    assert_false(clv__names_next(&names, "layer1.weight", &at, &number));
    assert_true(clv__names_add(&names, "layer1.weight", 7));
    assert_true(clv__names_next(&names, "layer1.weight", &at, &number));
    assert_int_equal(number, 7);
    clv__names_reset(&names);
}

TEST_MAIN(NULL, NULL)
