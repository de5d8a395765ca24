// SPDX-License-Identifier: Apache-2.0
// Shortened walks pass through the same elements in the same order as the long ones. Kernels and references both stand
// on this, so here it is held against plain counting.
#include "base/random.h"
#include "harness/harness.h"
#include "ops/collapse.h"

/** Position by counting through every dimension. */
static int64_t position(const clv__walk *walk, int t, int64_t index) {
    int64_t at = 0;
    for (int d = walk->rank - 1; d >= 0; d--) {
        at += index % walk->dims[d] * walk->strides[t][d];
        index /= walk->dims[d];
    }
    return at;
}

static void same_positions(const clv__walk *walk) {
    clv__walk brief = *walk;
    int64_t n = 1, m = 1;
    clv__walk_collapse(&brief);
    for (int d = 0; d < walk->rank; d++) n *= walk->dims[d];
    for (int d = 0; d < brief.rank; d++) m *= brief.dims[d];
    assert_true(brief.rank >= 1 && brief.rank <= (walk->rank ? walk->rank : 1));
    assert_int_equal(n, m);
    for (int t = 0; t < walk->n; t++) {
        for (int64_t i = 0; i < n; i++) assert_int_equal(clv__walk_at(&brief, t, i), position(walk, t, i));
    }
}

TEST(random_walks) {
    clv__random random;
    clv__random_init(&random, clv__test_seed(), CLV__STREAM_TEST, 0);
    for (int k = 0; k < 2000; k++) {
        clv_shape whole = {.rank = (int)clv__random_below(&random, CLV_MAX_RANK + 1)}, part;
        clv__walk walk = {.rank = whole.rank, .n = 3};
        for (int d = 0; d < whole.rank; d++) walk.dims[d] = whole.dims[d] = 1 + clv__random_below(&random, 3);
        part = whole;
        for (int d = 0; d < part.rank; d++) part.dims[d] = clv__random_below(&random, 2) ? part.dims[d] : 1;
        clv__strides_of(&whole, walk.strides[0]);
        clv__strides_broadcast(&part, &whole, walk.strides[1]);
        for (int d = 0; d < whole.rank; d++) walk.strides[2][d] = clv__random_below(&random, 7);
        same_positions(&walk);
    }
}

TEST(strides) {
    const clv_shape from = CLV_SHAPE(3, 1, 5), to = CLV_SHAPE(2, 3, 4, 5);
    int64_t got[CLV_MAX_RANK];
    clv__strides_of(&to, got);
    assert_memory_equal(got, ((int64_t[]){60, 20, 5, 1}), 4 * sizeof *got);
    clv__strides_broadcast(&from, &to, got);
    assert_memory_equal(got, ((int64_t[]){0, 5, 0, 1}), 4 * sizeof *got);
}

/** As short as promised. */
TEST(lengths) {
    const clv_shape x = CLV_SHAPE(8, 16, 5, 5), channels = CLV_SHAPE(1, 16, 1, 1);
    clv__walk walk = {.rank = 4, .n = 2};
    memcpy(walk.dims, x.dims, sizeof walk.dims);
    clv__strides_of(&x, walk.strides[0]);
    clv__strides_broadcast(&channels, &x, walk.strides[1]);
    clv__walk_collapse(&walk);
    assert_int_equal(walk.rank, 3);
    walk = (clv__walk){.rank = 4, .n = 1};
    memcpy(walk.dims, x.dims, sizeof walk.dims);
    clv__strides_of(&x, walk.strides[0]);
    clv__walk_collapse(&walk);
    assert_int_equal(walk.rank, 1);
    assert_int_equal(walk.dims[0], 8 * 16 * 25);
}

TEST_MAIN(NULL, NULL)
