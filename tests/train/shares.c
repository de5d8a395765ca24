// SPDX-License-Identifier: Apache-2.0
// Shares that change while a model is trained: the same losses and weights to rounding, memory as predicted, and a device
// that becomes slow (tests/device/lost_layer.c) gets less to do.
#include <math.h>
#include <pthread.h>

#include "cleave/train.h"
#include "device/lost.h"
#include "exec/ranks.h"
#include "train/small.h"
#include "train/trainer.h"

enum { SAMPLES = 166, BATCH = 16, BATCHES = 11, EPOCHS = 6, MOST_FLOATS = 2048 };

static clv_runtime *runtime;
static clv_dataset *dataset;

static const char *const pair[] = {"cpu:0", "cpu:1"};

static int warnings;

static void on_log(void *user, clv_log_level level, const char *sentence) {
    if (level != CLV_LOG_WARNING ||
        !strstr(sentence, " ms with these replicas, and cpu:0 alone would take about 0.0 ms"))
        return;
    warnings++;
}

FIXTURE(setup) {
    dataset = small_dataset(runtime, SAMPLES);
}

FIXTURE(teardown) {
    clv_dataset_destroy(dataset);
}

/** What the callbacks see. */
typedef struct watching {
    int64_t stop_at; // a step; 0: none
    int epochs;
    double shares[EPOCHS][2];
} watching;

static bool on_step(void *user, const clv_train_step *step) {
    return step->step != ((watching *)user)->stop_at;
}

static bool on_epoch(void *user, const clv_train_epoch *epoch) {
    watching *seen = user;
    seen->shares[seen->epochs][0] = epoch->shares[0];
    seen->shares[seen->epochs++][1] = epoch->shares[1];
    return true;
}

static clv_train_config config_of(watching *seen) {
    clv_train_config config = small_config(&small_plain, dataset, BATCH, EPOCHS);
    config.placement = (clv_placement){.replicas = pair, .n_replicas = 2};
    config.lr = 0.01;
    config.user = seen;
    config.on_step = on_step;
    config.on_epoch = on_epoch;
    return config;
}

static void memory_is_as_predicted(const clv_trainer *trainer) {
    for (int i = 0; i < 2; i++) {
        clv_device *device = clv_trainer_info_get(trainer).devices[i];
        assert_int_equal(clv_device_memory(device).all.peak,
                         clv_trainer_device_info_get(trainer, device).memory.predicted_peak_bytes);
    }
}

static int read_weights(const clv_trainer *trainer, float *out) {
    int n;
    assert_status(small_read(clv_trainer_info_get(trainer).session, out, MOST_FLOATS, &n), CLV_OK, runtime);
    return n;
}

static void reset_peaks(void) {
    for (int i = 0; i < 2; i++) clv_device_memory_reset_peak(clv_device_get(runtime, i));
}

/** The weights of a training with equal shares throughout. */
static int train_equal(float *out) {
    watching seen = {0};
    clv_train_config config = config_of(&seen);
    reset_peaks();
    clv_trainer *trainer = clv__test_trainer(runtime, &config);
    assert_status(clv_trainer_run(trainer), CLV_OK, runtime);
    assert_int_equal(seen.epochs, EPOCHS);
    for (int i = 0; i < EPOCHS; i++) assert_true(seen.shares[i][0] == 0.5 && seen.shares[i][1] == 0.5);
    memory_is_as_predicted(trainer);
    int n = read_weights(trainer, out);
    clv_trainer_destroy(trainer);
    return n;
}

static void near(const float *a, const float *b, int n) {
    for (int i = 0; i < n; i++)
        if (!(fabsf(a[i] - b[i]) <= 1e-4f * fmaxf(1, fabsf(b[i]))))
            fail_msg("%d: %g is not %g", i, a[i], b[i]);
}

/** Other shares in the middle of an epoch, again and again, in both directions. */
TEST(test_shares_change) {
    static const double shares[][2] = {{0.25, 0.75}, {0.9375, 0.0625}, {1, 0}, {0.5, 0.5}};
    float want[MOST_FLOATS], got[MOST_FLOATS];
    int n = train_equal(want);
    watching seen = {0};
    clv_train_config config = config_of(&seen);
    reset_peaks();
    clv_trainer *trainer = clv__test_trainer(runtime, &config);
    for (int i = 0; i < 4; i++) {
        seen.stop_at = 7 * (i + 1);
        assert_status(clv_trainer_run(trainer), CLV_E_INTERRUPTED, runtime);
        assert_status(clv__trainer_share(trainer, shares[i]), CLV_OK, runtime);
        assert_true(clv_trainer_info_get(trainer).shares[0] == shares[i][0]);
        memory_is_as_predicted(trainer);
    }
    seen.stop_at = 0;
    assert_status(clv_trainer_run(trainer), CLV_OK, runtime);
    memory_is_as_predicted(trainer);
    assert_int_equal(clv_trainer_result(trainer).steps, EPOCHS * BATCHES);
    assert_int_equal(read_weights(trainer, got), n);
    near(got, want, n);
    clv_trainer_destroy(trainer);
    for (int i = 0; i < 2; i++)
        assert_int_equal(clv_device_memory(clv_device_get(runtime, i)).all.current, 0);
}

/** What does not fit a budget is not done, and what was there before goes on. */
TEST(test_shares_that_do_not_fit) {
    float want[MOST_FLOATS], got[MOST_FLOATS];
    int n = train_equal(want);
    watching seen = {.stop_at = 7};
    clv_train_config config = config_of(&seen);
    reset_peaks();
    clv_trainer *trainer = clv__test_trainer(runtime, &config);
    clv_device *second = clv_trainer_info_get(trainer).devices[1];
    clv_device_set_budget(second, clv_trainer_device_info_get(trainer, second).memory.predicted_peak_bytes);
    assert_status(clv_trainer_run(trainer), CLV_E_INTERRUPTED, runtime);
    assert_status(clv__trainer_share(trainer, (const double[]){0.25, 0.75}), CLV_E_BUDGET, runtime);
    assert_true(clv_trainer_info_get(trainer).shares[0] == 0.5);
    seen.stop_at = 0;
    assert_status(clv__trainer_reserve(trainer), CLV_OK, runtime);
    assert_status(clv_trainer_run(trainer), CLV_OK, runtime);
    memory_is_as_predicted(trainer);
    assert_int_equal(read_weights(trainer, got), n);
    assert_memory_equal(got, want, (size_t)n * sizeof(float));
    clv_trainer_destroy(trainer);
    clv_device_set_budget(second, 0);
}

/** Two alike, of which one becomes slow. */
TEST(test_shares_follow_what_is_measured) {
    float want[MOST_FLOATS], got[MOST_FLOATS];
    int n = train_equal(want);
    watching seen = {0};
    clv_train_config config = config_of(&seen);
    reset_peaks();
    clv_trainer *trainer = clv__test_trainer(runtime, &config);
    clv_train_config *own = (clv_train_config *)(uintptr_t)trainer->config; // constant for everybody else
    own->placement.measure_shares = true; // not before: they are to begin with equal ones
    trainer->single = 1e-9;               // whatever they do takes longer
    lost_slow(1, 150000);
    clv_status status = clv_trainer_run(trainer);
    lost_slow(-1, 0);
    assert_status(status, CLV_OK, runtime);
    for (int i = 0; i < EPOCHS; i++) {
        print_message("epoch %d: %g and %g\n", i + 1, seen.shares[i][0], seen.shares[i][1]);
        assert_true(fabs(seen.shares[i][0] + seen.shares[i][1] - 1) < 1e-9);
    }
    assert_int_equal(warnings, 1); // told once
    assert_true(seen.shares[0][1] == 0.5 &&
                seen.shares[1][1] < 0.5); // later ones depend on what else happens here
    memory_is_as_predicted(trainer);
    assert_int_equal(read_weights(trainer, got), n);
    near(got, want, n);
    clv_trainer_destroy(trainer);
}

/** One of two ranks, which are threads. */
typedef struct rank {
    clv_train_config config;
    clv_runtime *runtime;
    clv__loopback_end end;
    double least, sum; // the second's smallest share, and what both came to then
    clv_status status;
    float weights[MOST_FLOATS];
    int n;
} rank;

static pthread_barrier_t made, slowed;

/** Rank 0 is told. Later shares depend on what else happens here. */
static bool on_epoch_of_rank(void *user, const clv_train_epoch *epoch) {
    rank *own = user;
    const double *shares = own->config.ranks->shares;
    if (shares && shares[1] < own->least) {
        own->least = shares[1];
        own->sum = shares[0] + shares[1];
    }
    return true;
}

static void *be_rank(void *user) {
    rank *own = user;
    clv_trainer *trainer = NULL;
    own->status = clv__ranks_open(own->runtime, &clv__transport_loopback, &own->end, 60, &own->config.ranks);
    const bool is_rank = own->status == CLV_OK;
    if (is_rank) own->status = clv_trainer_create(own->runtime, &own->config, &trainer);
    pthread_barrier_wait(&made);
    pthread_barrier_wait(&slowed);
    if (own->status == CLV_OK) {
        clv_train_config *kept = (clv_train_config *)(uintptr_t)trainer->config;
        kept->placement.measure_shares = true; // not before: they are to begin with equal ones
        own->status = clv_trainer_run(trainer);
        on_epoch_of_rank(own, NULL);
    }
    if (own->status == CLV_OK)
        own->status = small_read(clv_trainer_info_get(trainer).session, own->weights, MOST_FLOATS, &own->n);
    clv_trainer_destroy(trainer);
    if (is_rank) clv_ranks_destroy(own->config.ranks);
    return NULL;
}

/** Two ranks with equal shares, of which one becomes slow. */
TEST(test_shares_of_ranks_follow_what_is_measured) {
    float want[MOST_FLOATS];
    static rank ranks[2];
    const int n = train_equal(want);
    pthread_t threads[2];
    clv__loopback *loopback = clv__loopback_create(2);
    assert_non_null(loopback);
    pthread_barrier_init(&made, NULL, 3);
    pthread_barrier_init(&slowed, NULL, 3);
    for (int i = 0; i < 2; i++) {
        rank *own = &ranks[i];
        const clv_runtime_config parts = {.partition = "cpu:0=2", .visible_devices = i ? "cpu:1" : "cpu:0"};
        assert_int_equal(clv_runtime_create(&parts, &own->runtime), CLV_OK);
        clv_device *device = clv_device_get(own->runtime, 0);
        assert_status(clv_device_activity_start(device), CLV_OK, own->runtime); // opened in this order
        own->config = small_config(&small_plain, small_dataset(own->runtime, SAMPLES), BATCH, EPOCHS);
        own->config.lr = 0.01;
        own->config.optimizer.clip_norm = 1e9f; // so each has all of the optimizer's state
        own->config.device = device;
        own->config.user = own;
        own->config.on_epoch = on_epoch_of_rank;
        own->least = 0.5;
        own->end = (clv__loopback_end){.loopback = loopback, .rank = i};
        assert_int_equal(pthread_create(&threads[i], NULL, be_rank, own), 0);
    }
    pthread_barrier_wait(&made);
    lost_slow(3, 600000); // behind the two of the other tests; so slow that plans made anew always pay
    pthread_barrier_wait(&slowed);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    lost_slow(-1, 0);
    print_message("the second: %g at least\n", ranks[0].least);
    for (int i = 0; i < 2; i++) {
        assert_status(ranks[i].status, CLV_OK, ranks[i].runtime);
        assert_int_equal(ranks[i].n, n);
        near(ranks[i].weights, want, n);
        assert_memory_equal(ranks[i].weights, ranks[0].weights, (size_t)n * sizeof(float));
        clv_dataset_destroy((clv_dataset *)(uintptr_t)ranks[i].config.train);
        clv_runtime_destroy(ranks[i].runtime);
    }
    assert_true(ranks[0].least < 0.5 && ranks[0].sum == 1);
    clv__loopback_destroy(loopback);
}

int main(void) {
    int status = 0;
    if (!(runtime = lost_runtime(on_log, &status))) return status;
    int failed = clv__tests_run(setup, teardown);
    clv_runtime_destroy(runtime);
    return failed;
}
