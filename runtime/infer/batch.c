// SPDX-License-Identifier: Apache-2.0
// The largest batch that fits, found by trying. Memory does not simply grow with the batch: other sizes have
// other variants, and these have other workspaces, so a batch of 10 may need more than one of 11. A batch
// that was not tried says nothing of others.
#include "cleave/plan.h"

/** What is asked of a batch, and of which. */
typedef struct search {
    clv_status (*fits)(void *user, int64_t batch);
    void *user;
    int64_t most;
    clv_status failed; // not OK: a batch could not even be planned, so the search ends
} search;

static bool fits(search *s, int64_t batch) {
    if (s->failed != CLV_OK) return false;
    clv_status status = s->fits(s->user, batch);
    if (status == CLV_E_HOST_MEMORY) s->failed = status;
    return status == CLV_OK;
}

/** Down from *bad, which does not fit, by eighths of it and then by halves. Returns the first that fits, 0 if
 *  none does; *bad is the last that does not. */
static int64_t find_below(search *s, int64_t *bad) {
    const int64_t step = *bad < 16 ? 1 : *bad / 8;
    for (int64_t batch = *bad; batch > 0; *bad = batch) {
        batch = batch > step ? batch - step : batch / 2;
        if (batch && fits(s, batch)) return batch;
    }
    return 0;
}

/** Up from `good`, which fits, by doubling. Returns the last that fits; *bad is the first that does not, or
 *  beyond the most. */
static int64_t find_above(search *s, int64_t good, int64_t *bad) {
    while (good < s->most) {
        int64_t batch = good > s->most / 2 ? s->most : 2 * good;
        *bad = batch;
        if (!fits(s, batch)) return good;
        good = batch;
    }
    *bad = s->most + 1;
    return good;
}

/** The last that fits of the HOLE that follow on `good`, the next of which does not; `good` if none of them
 *  fits. *bad is one above it that does not. */
static int64_t find_beyond(search *s, int64_t good, int64_t *bad) {
    enum { HOLE = 8 };
    const int64_t end = s->most - good < HOLE ? s->most : good + HOLE;
    for (int64_t batch = end; batch > good + 1; batch--) {
        if (!fits(s, batch)) continue;
        *bad = batch + 1;
        return batch == end ? find_above(s, batch, bad) : batch;
    }
    return good;
}

clv_status clv_batch_search(int64_t asked, int64_t most, clv_status (*try)(void *user, int64_t batch),
                            void *user, int64_t *largest) {
    enum { SMALL = 64 };
    if (!try || !largest) return CLV_E_VALUE;
    *largest = 0;
    if (most > INT64_MAX / 4) most = INT64_MAX / 4; // doubled below
    search s = {try, user, most, CLV_OK};
    int64_t good = 0, bad = asked < most ? asked : most;
    if (bad < 1) return CLV_OK;
    if (fits(&s, bad)) {
        good = find_above(&s, bad, &bad);
    } else {
        int64_t above = 2 * bad;
        good = find_below(&s, &bad);
        for (; !good && above <= SMALL && above <= most; above *= 2) // a batch may be too small as well
            good = fits(&s, above) ? find_above(&s, above, &bad) : 0;
    }
    for (int64_t before = 0; good && good != before && s.failed == CLV_OK;) {
        while (bad - good > 1 && s.failed == CLV_OK) {
            int64_t middle = good + (bad - good) / 2;
            if (fits(&s, middle))
                good = middle;
            else
                bad = middle;
        }
        before = good;
        if (most > asked) good = find_beyond(&s, good, &bad);
    }
    if (s.failed == CLV_OK) *largest = good;
    return s.failed;
}
