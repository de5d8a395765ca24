// SPDX-License-Identifier: Apache-2.0
// The search for the largest batch that fits: what it promises was tried, whatever fits.
#include "harness/harness.h"

#include "cleave/plan.h"

enum { MOST = 1 << 20 };

/** Which batches fit, and what was asked. */
typedef struct world {
    bool fits[MOST + 2];
    int n_tried;
    bool tried[MOST + 2];
    int fails_at; // this many tries before host memory is out; 0: it never is
} world;

static clv_status fits_in(void *user, int64_t batch) {
    world *w = user;
    assert_true(batch >= 1 && batch <= MOST);
    w->n_tried++;
    w->tried[batch] = true;
    if (w->n_tried == w->fails_at) return CLV_E_HOST_MEMORY;
    return w->fits[batch] ? CLV_OK : CLV_E_BUDGET;
}

static world *only(int64_t first, int64_t last) {
    world *w = test_calloc(1, sizeof *w);
    for (int64_t b = first; b <= last; b++) w->fits[b] = true;
    return w;
}

/** Search, and hold the promise against what was tried. */
static int64_t search(world *w, int64_t asked, int64_t most) {
    for (int i = 0; i <= MOST; i++) w->tried[i] = false;
    w->n_tried = 0;
    int64_t found = -1;
    assert_int_equal(clv_batch_search(asked, most, fits_in, w, &found), CLV_OK);
    assert_true(found <= most);
    if (!found) return 0;
    assert_true(w->tried[found] && w->fits[found]);
    for (int64_t next = found + 1; next <= most && next <= found + (most > asked ? 8 : 1); next++)
        assert_true(w->tried[next] && !w->fits[next]);
    return found;
}

TEST(test_one_limit) {
    static const int64_t limits[] = {1, 2, 3, 10, 63, 64, 65, 100, 1023, 4097, MOST},
                         asked[] = {1, 2, 7, 64, 65, 1000, MOST};
    for (size_t l = 0; l < sizeof limits / sizeof *limits; l++) {
        world *w = only(1, limits[l]);
        for (size_t a = 0; a < sizeof asked / sizeof *asked; a++) {
            assert_int_equal(search(w, asked[a], MOST), limits[l]);
            assert_true(w->n_tried <= 56);
            int64_t most = limits[l] < asked[a] ? limits[l] : asked[a]; // no more than was asked for
            assert_int_equal(search(w, asked[a], asked[a]), most);
            assert_true(w->n_tried <= 40);
        }
        test_free(w);
    }
}

/** Small batches need more than larger ones. */
TEST(test_small_ones_do_not_fit) {
    world *w = only(11, 11);
    assert_int_equal(search(w, 12, 12), 11);
    assert_int_equal(search(w, 11, MOST), 11);
    test_free(w);
    w = only(11, 40);
    for (int64_t asked = 1; asked <= 64; asked++) assert_int_equal(search(w, asked, MOST), 40);
    assert_int_equal(search(w, 30, 30), 30);
    assert_int_equal(search(w, 10, 10), 0);
    assert_int_equal(search(w, 100, 100), 40);
    test_free(w);
    w = only(2, 5); // batch norm wants two values
    assert_int_equal(search(w, 1, MOST), 5);
    assert_int_equal(search(w, 4096, MOST), 5);
    test_free(w);
}

TEST(test_holes) {
    world *w = only(1, 1000);
    for (int i = 3; i < 1000; i += 7) w->fits[i] = w->fits[i + 1] = false;
    for (int64_t asked = 1; asked <= 1024; asked++) assert_int_equal(search(w, asked, MOST), 1000);
    assert_true(search(w, 1000, 998) > 0);
    test_free(w);
}

TEST(test_nothing_fits) {
    world *w = only(1, 0);
    assert_int_equal(search(w, 64, MOST), 0);
    assert_true(w->n_tried <= 12);
    assert_int_equal(search(w, 1, MOST), 0);
    assert_true(w->n_tried <= 12);
    assert_int_equal(search(w, 1, 1), 0);
    assert_int_equal(search(w, 0, MOST), 0);
    assert_int_equal(search(w, 64, 0), 0);
    test_free(w);
}

/** What could not be planned for want of host memory is no batch that does not fit. */
TEST(test_host_memory) {
    world *w = only(1, 1000);
    for (int at = 1; at <= 12; at++) {
        int64_t found = -1;
        w->n_tried = 0;
        w->fails_at = at;
        assert_int_equal(clv_batch_search(64, MOST, fits_in, w, &found), CLV_E_HOST_MEMORY);
        assert_int_equal(found, 0);
        assert_int_equal(w->n_tried, at);
    }
    test_free(w);
}

TEST_MAIN(NULL, NULL)
