// SPDX-License-Identifier: Apache-2.0
// Shares of a batch from measured times. A step of data parallel training is
//
//     first     send parameters, compute its rows, wait for the others' gradients, add them, update
//     others    wait for parameters, compute, send gradients
//
// So devices of equal speed do not need equal time. While the first updates, the others wait: that is the
// lag. The first waits for the others' transfers. Idle time beyond these is slack. A step is as short as
// shares can make it when all slack is used up at the same time. Replica d then takes (slack_d - c) / a_d
// more rows, where a_d is its seconds for a row. The time c by which the step becomes shorter is the same for
// all, and follows from the rows, which sum to the batch.
//
// The lag is known as soon as the first had to wait, because then the slowest of the others had no slack.
// Before that, half of the others' idle time is taken for it, and the next look corrects the guess.
#include "train/balance.h"

#include <string.h>

static const double WORTH = 0.01, WAITS = 0.02, CHANGED = 1.1; // parts of a step

static double idle(const clv__seen *seen, int i) {
    double seconds = seen->step - seen->busy[i];
    return seconds > 0 ? seconds : 0;
}

static void learn_lag(clv__balance *balance, const clv__seen *seen) {
    double least = seen->step;
    for (int i = 1; i < seen->n; i++)
        if (seen->rows[i] && idle(seen, i) < least) least = idle(seen, i);
    bool waits = idle(seen, 0) > WAITS * seen->step;
    if (waits || !balance->lag_known) balance->lag = waits ? least : least / 2;
    balance->lag_known |= waits;
    if (balance->lag > least) balance->lag = least;
}

static double slack(const clv__balance *balance, const clv__seen *seen, int i) {
    double seconds = idle(seen, i) - (i > 0 ? balance->lag : 0);
    return seconds > 0 ? seconds : 0;
}

/** The rows that use up everybody's slack; returns what the step becomes shorter. */
static double use_slack(const clv__balance *balance, const clv__seen *seen, int64_t *rows) {
    double speed[CLV__MOST_REPLICAS] = {0}, shares[CLV__MOST_REPLICAS] = {0}, all = 0, more = 0, sum = 0;
    int64_t batch = 0;
    for (int i = 0; i < seen->n; i++) {
        if (!seen->rows[i] || !(seen->busy[i] > 0)) continue;
        speed[i] = (double)seen->rows[i] / seen->busy[i];
        all += speed[i];
        more += slack(balance, seen, i) * speed[i];
        batch += seen->rows[i];
    }
    double saved = all > 0 ? more / all : 0;
    for (int i = 0; i < seen->n; i++) {
        if (!seen->rows[i]) continue;
        shares[i] = (double)seen->rows[i] + (slack(balance, seen, i) - saved) * speed[i];
        if (shares[i] < 1) shares[i] = 1; // whoever takes part gets a sample
        sum += shares[i];
    }
    for (int i = 0; i < seen->n; i++) shares[i] /= sum;
    clv__replica_rows(batch, shares, seen->n, rows);
    return saved;
}

static bool same(const int64_t *a, const int64_t *b, int n) {
    return memcmp(a, b, (size_t)n * sizeof *a) == 0;
}

bool clv__balance_look(clv__balance *balance, const clv__seen *seen, int64_t *rows, double *saved) {
    const size_t bytes = (size_t)seen->n * sizeof *rows;
    *saved = 0;
    if (balance->settled && seen->step < CHANGED * balance->best) return false;
    if (balance->settled) *balance = (clv__balance){0}; // somebody else computes there now
    bool gained =
        balance->best == 0 || seen->step <= balance->best || same(seen->rows, balance->rows, seen->n);
    if (gained) {
        balance->best = seen->step;
        memcpy(balance->rows, seen->rows, bytes);
    }
    learn_lag(balance, seen);
    double shorter = use_slack(balance, seen, rows);
    *saved = balance->best - (seen->step - shorter);
    if (*saved > WORTH * (double)(1 << balance->changes) * balance->best &&
        !same(rows, seen->rows, seen->n)) {
        balance->changes++;
        return true;
    }
    balance->settled = true;
    *saved = seen->step - balance->best;
    memcpy(rows, balance->rows, bytes);
    return *saved > WORTH * balance->best; // back to the best
}
