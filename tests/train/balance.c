// SPDX-License-Identifier: Apache-2.0
// Shares that follow measured time, on made-up machines: they come near the best there is in a few changes, then stay.
#include "harness/harness.h"

#include <math.h>

#include "train/balance.h"

/** A machine: seconds a row, of each replica; the first's updates; the others' transfers. */
typedef struct machine {
    int n;
    int64_t batch;
    double row[4], update, transfer, noise;
} machine;

static uint64_t random_state;

static double uniform(double least, double most) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return least + (most - least) * (double)(random_state >> 40) / (double)(1 << 24);
}

static double step_of(const machine *m, const int64_t *rows) {
    double parallel = m->row[0] * (double)rows[0];
    for (int i = 1; i < m->n; i++) parallel = fmax(parallel, m->row[i] * (double)rows[i] + m->transfer);
    return parallel + m->update;
}

static clv__seen look_at(const machine *m, const int64_t *rows) {
    clv__seen seen = {.n = m->n, .step = step_of(m, rows) * (1 + uniform(-m->noise, m->noise))};
    for (int i = 0; i < m->n; i++) {
        seen.rows[i] = rows[i];
        seen.busy[i] = m->row[i] * (double)rows[i] + (i ? m->transfer / 2 : m->update);
        seen.busy[i] *= 1 + uniform(-m->noise, m->noise);
    }
    return seen;
}

/** The shortest step there is: the rows each can do in a time, until they make a batch. */
static double best_step(const machine *m) {
    double low = 0, high = m->row[0] * (double)m->batch;
    for (int turn = 0; turn < 60; turn++) {
        double middle = (low + high) / 2;
        int64_t rows = (int64_t)(middle / m->row[0]);
        for (int i = 1; i < m->n; i++)
            rows += middle > m->transfer ? (int64_t)((middle - m->transfer) / m->row[i]) : 0;
        if (rows >= m->batch)
            high = middle;
        else
            low = middle;
    }
    return high + m->update;
}

/** Look as often as wished; returns how often shares changed. */
static int adapt(clv__balance *balance, const machine *m, int64_t *rows, int looks) {
    int changes = 0;
    for (int i = 0; i < looks; i++) {
        int64_t next[CLV__MOST_REPLICAS], sum = 0;
        double saved;
        clv__seen seen = look_at(m, rows);
        if (!clv__balance_look(balance, &seen, next, &saved)) continue;
        assert_true(saved > 0 && saved < seen.step);
        assert_memory_not_equal(next, rows, (size_t)m->n * sizeof *rows);
        changes++;
        for (int r = 0; r < m->n; r++) {
            assert_true(next[r] >= 1);
            sum += rows[r] = next[r];
        }
        assert_int_equal(sum, m->batch);
    }
    return changes;
}

static machine make_machine(double noise) {
    machine m = {.n = 2 + (int)uniform(0, 3), .batch = (int64_t)uniform(48, 300), .noise = noise};
    for (int i = 0; i < m.n; i++) m.row[i] = exp(uniform(log(1e-4), log(1e-3)));
    double alone = m.row[0] * (double)m.batch / m.n;
    m.update = uniform(0, 0.3) * alone;
    m.transfer = uniform(0, 0.2) * alone;
    return m;
}

/** As they are measured alone: in proportion to speed. */
static void rows_alone(const machine *m, int64_t *rows) {
    double shares[4], sum = 0;
    for (int i = 0; i < m->n; i++) sum += shares[i] = 1 / (m->row[i] * (double)m->batch / m->n + m->update);
    for (int i = 0; i < m->n; i++) shares[i] /= sum;
    clv__replica_rows(m->batch, shares, m->n, rows);
    for (int i = 0; i < m->n; i++) {
        if (rows[i] == 0) rows[i]++, rows[rows[0] > 1 ? 0 : 1]--;
    }
}

TEST(test_shares_come_near_the_best) {
    random_state = clv__test_seed();
    double worst = 0, worst_before = 0;
    int most_changes = 0;
    for (int i = 0; i < 3000; i++) {
        machine m = make_machine(0);
        int64_t rows[4];
        rows_alone(&m, rows);
        double best = best_step(&m), before = step_of(&m, rows);
        clv__balance balance = {0};
        int changes = adapt(&balance, &m, rows, 12);
        double after = step_of(&m, rows), a_row = 0;
        for (int r = 0; r < m.n; r++) a_row = fmax(a_row, m.row[r]); // whole samples cannot do better
        assert_true(after <= before * 1.011);
        if (after > best * 1.03 + a_row)
            fail_msg("a step of %g s, the best is %g s, before it was %g s (%d replicas, batch %d)", after,
                     best, before, m.n, (int)m.batch);
        assert_true(balance.settled);
        worst = fmax(worst, after / best);
        worst_before = fmax(worst_before, before / best);
        if (changes > most_changes) most_changes = changes;
    }
    print_message("at most %d changes, at worst %.3f of the best step, %.3f before\n", most_changes, worst,
                  worst_before);
    assert_true(most_changes <= 6);
}

/** Measured times are never twice the same: shares do not swing. */
TEST(test_noise_settles) {
    random_state = clv__test_seed();
    for (int i = 0; i < 1000; i++) {
        machine m = make_machine(0.02);
        int64_t rows[4];
        rows_alone(&m, rows);
        double before = step_of(&m, rows);
        clv__balance balance = {0};
        int changes = adapt(&balance, &m, rows, 40);
        assert_true(changes <= 9);
        assert_true(step_of(&m, rows) < before * 1.05);
    }
}

/** A device that becomes slow later, because somebody else computes there. */
TEST(test_a_device_becomes_slow) {
    machine m = {.n = 2, .batch = 64, .row = {1e-3, 1e-3}, .update = 2e-3, .transfer = 1e-3};
    int64_t rows[4] = {32, 32};
    clv__balance balance = {0};
    adapt(&balance, &m, rows, 6);
    assert_in_range(rows[0], 31, 34);
    m.row[1] = 2e-3;
    adapt(&balance, &m, rows, 6);
    assert_in_range(rows[0], 41, 45);
    m.row[1] =
        1e-3; // and quick again: a shorter step asks for nothing, until it is noticed that the other one waits
    adapt(&balance, &m, rows, 6);
}

/** A replica that is lost takes no part in it. */
TEST(test_a_lost_replica) {
    clv__balance balance = {0};
    clv__seen seen = {.n = 3, .rows = {10, 0, 50}, .busy = {0.06, 0, 0.01}, .step = 0.06};
    int64_t rows[CLV__MOST_REPLICAS];
    double saved;
    assert_true(clv__balance_look(&balance, &seen, rows, &saved));
    assert_int_equal(rows[1], 0);
    assert_int_equal(rows[0] + rows[2], 60);
    assert_true(rows[0] < 10 && rows[0] >= 1);
}

TEST_MAIN(NULL, NULL)
