// SPDX-License-Identifier: Apache-2.0
// The largest batch that fits, found by trying. Memory does not simply grow with the batch: other sizes have other variants, and
// these other workspaces, so a batch of 10 may need more than one of 11. Nothing is concluded from a batch that was not tried.
#include "cleave/plan.h"

/** What is asked of a batch, and of which. */
typedef struct search {
    bool (*fits)(void *user, int64_t batch);
    void *user;
    int64_t most;
} search;

/** Down from *bad, which does not fit, by eighths of it and then by halves. Returns the first that fits, 0 if none does; *bad is
 *  the last that does not. */
static int64_t find_below(const search *s, int64_t *bad) {
    const int64_t step = *bad < 16 ? 1 : *bad / 8;
    for (int64_t batch = *bad; batch > 0; *bad = batch) {
        batch = batch > step ? batch - step : batch / 2;
        if (batch && s->fits(s->user, batch)) return batch;
    }
    return 0;
}

/** Up from `good`, which fits, by doubling. Returns the last that fits; *bad is the first that does not, or beyond the most. */
static int64_t find_above(const search *s, int64_t good, int64_t *bad) {
    while (good < s->most) {
        int64_t batch = good > s->most / 2 ? s->most : 2 * good;
        *bad = batch;
        if (!s->fits(s->user, batch)) return good;
        good = batch;
    }
    *bad = s->most + 1;
    return good;
}

int64_t clv_batch_search(int64_t asked, int64_t most, bool (*fits)(void *user, int64_t batch), void *user) {
    enum { SMALL = 64 };
    if (most > INT64_MAX / 4) most = INT64_MAX / 4; // doubled below
    const search s = {fits, user, most};
    int64_t good = 0, bad = asked < most ? asked : most;
    if (bad < 1) return 0;
    if (fits(user, bad)) {
        good = find_above(&s, bad, &bad);
    } else {
        int64_t above = 2 * bad;
        good = find_below(&s, &bad);
        for (; !good && above <= SMALL && above <= most; above *= 2) // a batch may be too small as well
            good = fits(user, above) ? find_above(&s, above, &bad) : 0;
    }
    while (good && bad - good > 1) {
        int64_t middle = good + (bad - good) / 2;
        if (fits(user, middle))
            good = middle;
        else
            bad = middle;
    }
    return good;
}
