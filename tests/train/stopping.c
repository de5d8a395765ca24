// SPDX-License-Identifier: Apache-2.0
// The best epoch and an end by patience: with values that a metric makes up, so that every end is known; the weights that are kept; the
// same after each interruption; and what is refused.
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "io/formats.h"
#include "train/small.h"

static clv_runtime *runtime;
static clv_device *host;
static clv_dataset *dataset;

enum { SAMPLES = 12, BATCH = 5, BATCHES = 3, EPOCHS = 8, MOST = 1024 };

FIXTURE(setup) {
    runtime = clv__test_runtime(&(clv_runtime_config){.no_opencl = true});
    dataset = small_dataset(runtime, SAMPLES);
    host = clv__test_device(runtime, "host");
}

FIXTURE(teardown) {
    clv_dataset_destroy(dataset);
    clv_runtime_destroy(runtime);
}

// ---- a metric that tells what it is told to -------------------------------------------------------------------------------

/** One value for each epoch. */
typedef struct script {
    double values[EPOCHS];
    int next;
} script;

static double nothing(const float *output, const void *target, const clv_loss_sizes *sizes,
                      const clv_metric *metric) {
    return 0;
}

static double next_value(double mean, const clv_metric *metric) {
    script *s = (script *)(uintptr_t)metric->user;
    assert_in_range(s->next, 0, EPOCHS - 1);
    return s->values[s->next++];
}

static const char *best_path(void) {
    return CLV_TEST_BINARY_DIR "/train_stopping_best.safetensors";
}

static const char *checkpoint(void) {
    return CLV_TEST_BINARY_DIR "/train_stopping.ckpt";
}

typedef struct seen {
    int epochs;
    uint64_t best; // a bit for each that was told to be the best
    int stop_at;   // in this epoch's on_epoch; 0: not
    int64_t stop_step;
} seen;

static bool on_epoch(void *user, const clv_train_epoch *epoch) {
    seen *s = user;
    s->epochs++;
    if (epoch->best) s->best |= UINT64_C(1) << epoch->epoch;
    return epoch->epoch != s->stop_at;
}

static bool on_step(void *user, const clv_train_step *step) {
    return step->step != ((seen *)user)->stop_step;
}

static const clv_metric *const *one(const clv_metric *metric) {
    static const clv_metric *list[1];
    list[0] = metric;
    return list;
}

static clv_train_config config_of(const clv_metric *metric, seen *told) {
    clv_train_config config = small_config(&small_model, dataset, BATCH, EPOCHS);
    config.device = host;
    config.metrics = one(metric);
    config.n_metrics = 1;
    config.monitor = metric->name;
    config.user = told;
    config.on_epoch = on_epoch;
    config.on_step = on_step;
    return config;
}

/** Train to an end, which has to come with `status`; what is kept then. */
static clv_train_result train(const clv_train_config *config, clv_status status, float kept[MOST], int *n) {
    clv_trainer *trainer = clv__test_trainer(runtime, config);
    assert_status(clv_trainer_run(trainer), status, runtime);
    if (kept)
        assert_status(small_read(clv_trainer_info_get(trainer).session, kept, MOST, n), CLV_OK, runtime);
    const clv_train_result result = clv_trainer_result(trainer);
    clv_trainer_destroy(trainer);
    return result;
}

static void same_files(const char *a, const char *b) {
    clv_archive *one_file, *other;
    assert_status(clv_safetensors_read(runtime, a, &one_file), CLV_OK, runtime);
    assert_status(clv_safetensors_read(runtime, b, &other), CLV_OK, runtime);
    assert_int_equal(clv_archive_count(one_file), clv_archive_count(other));
    for (size_t i = 0; clv_archive_get(one_file, i); i++) {
        const clv_array *array = clv_archive_get(one_file, i), *same = clv_archive_find(other, array->name);
        assert_non_null(same);
        assert_memory_equal(array->data, same->data, clv_array_bytes(array));
    }
    clv_archive_destroy(one_file);
    clv_archive_destroy(other);
}

static const struct stop_case {
    const char *what;
    double values[EPOCHS];
    bool larger;
    int64_t patience;
    double min_delta;
    int64_t best, epochs; // 0: none is
    clv_train_end end;
    uint64_t told;
} cases[] = {
    {"smaller", {5, 4, 4.5, 3, 3, 3.5, 9, 9}, false, 3, 0, 4, 7, CLV_END_PATIENCE, 1 << 1 | 1 << 2 | 1 << 4},
    {"larger", {1, 2, 1.5, 1, 9, 9, 9, 9}, true, 2, 0, 2, 4, CLV_END_PATIENCE, 1 << 1 | 1 << 2},
    {"by more than", {1, 2, 2.25, 2.5, 9, 9, 9, 9}, true, 2, 0.5, 2, 4, CLV_END_PATIENCE, 1 << 1 | 1 << 2},
    {"to the end", {8, 7, 6, 5, 4, 3, 2, 1}, false, 1, 0, 8, 8, CLV_END_STEPS, 0x1fe},
    {"at the end", {1, 1, 1, 1, 1, 1, 1, 1}, false, 7, 0, 1, 8, CLV_END_STEPS, 1 << 1},
    {"not a number",
     {(double)NAN, 4, (double)NAN, (double)-INFINITY, 9, 9, 9, 9},
     false,
     2,
     0,
     2,
     4,
     CLV_END_PATIENCE,
     1 << 2},
    {"never one",
     {(double)NAN, (double)NAN, (double)INFINITY, 9, 9, 9, 9, 9},
     true,
     3,
     0,
     0,
     3,
     CLV_END_PATIENCE,
     0},
    {"at once", {1, 1, 9, 9, 9, 9, 9, 9}, false, 1, 0, 1, 2, CLV_END_PATIENCE, 1 << 1},
    {"no patience", {3, 1, 2, 2, 2, 2, 2, 2}, false, 0, 0, 2, 8, CLV_END_STEPS, 1 << 1 | 1 << 2},
};
enum { CASES = sizeof cases / sizeof *cases };

static clv_metric metric_of(const struct stop_case *c, script *s, int next) {
    memcpy(s->values, c->values, sizeof s->values);
    s->next = next;
    return (clv_metric){
        .name = "made_up", .sum = nothing, .finish = next_value, .larger_is_better = c->larger, .user = s};
}

static void check(const struct stop_case *c, const clv_train_result *result) {
    if (result->best_epoch != c->best || result->epochs != c->epochs || result->end != c->end)
        fail_msg("%s: the best is %d of %d, ended by %d", c->what, (int)result->best_epoch,
                 (int)result->epochs, (int)result->end);
    if (c->best)
        assert_true(result->best_value == c->values[c->best - 1]);
    else
        assert_true(isnan(result->best_value));
}

TEST(ends_as_it_should) {
    for (int i = 0; i < CASES; i++) {
        script s;
        seen told = {0};
        const clv_metric metric = metric_of(&cases[i], &s, 0);
        clv_train_config config = config_of(&metric, &told);
        config.patience = cases[i].patience;
        config.min_delta = cases[i].min_delta;
        config.best = best_path();
        unlink(best_path());
        const clv_train_result result = train(&config, CLV_OK, NULL, NULL);
        check(&cases[i], &result);
        assert_int_equal(told.epochs, cases[i].epochs);
        assert_int_equal(told.best, cases[i].told);
        assert_int_equal(access(best_path(), F_OK), cases[i].best ? 0 : -1);
    }
    unlink(best_path());
}

/** The file has the weights of a training that ends with the best epoch. So has the averages of them, where these are kept. */
TEST(best_weights_are_kept) {
    const char *other = CLV_TEST_BINARY_DIR "/train_stopping_other.safetensors";
    for (int averaged = 0; averaged < 2; averaged++) {
        script s;
        seen told = {0};
        const clv_metric metric = metric_of(&cases[0], &s, 0);
        clv_train_config config = config_of(&metric, &told);
        config.patience = cases[0].patience;
        config.best = best_path();
        config.ema_decay = averaged ? 0.6 : 0;
        train(&config, CLV_OK, NULL, NULL);
        config = config_of(&metric, &told);
        config.monitor = NULL;
        config.n_metrics = 0;
        config.test = NULL;
        config.epochs = cases[0].best;
        config.ema_decay = averaged ? 0.6 : 0;
        clv_trainer *trainer = small_trained(runtime, &config);
        assert_status(clv_weights_save(clv_trainer_info_get(trainer).session, other), CLV_OK, runtime);
        clv_trainer_destroy(trainer);
        same_files(best_path(), other);
    }
    unlink(best_path());
    unlink(other);
}

/** Interrupted in every step and after every epoch, and resumed: the same end and the same bits. */
TEST(resumed) {
    const char *whole_best = CLV_TEST_BINARY_DIR "/train_stopping_whole.safetensors";
    const struct stop_case *c = &cases[0];
    float whole[MOST] = {0}, parts[MOST] = {0};
    int n, n_parts;
    script s;
    seen told = {0};
    clv_metric metric = metric_of(c, &s, 0);
    clv_train_config config = config_of(&metric, &told);
    config.patience = c->patience;
    config.best = whole_best;
    config.ema_decay = 0.5;
    train(&config, CLV_OK, whole, &n);
    config.best = best_path();
    for (int at = 1; at < 2 * c->epochs * BATCHES;
         at++) { // a step; or the end of an epoch, which has been tested
        const bool in_step = at < c->epochs * BATCHES;
        const int64_t epoch = in_step ? at / BATCHES : at - c->epochs * BATCHES + 1;
        if (epoch >= c->epochs) break;
        told = (seen){.stop_at = in_step ? 0 : (int)epoch, .stop_step = in_step ? at : 0};
        metric = metric_of(c, &s, 0);
        config.resume = NULL;
        config.checkpoint = checkpoint();
        unlink(best_path());
        const clv_train_result first = train(&config, CLV_E_INTERRUPTED, NULL, NULL);
        assert_int_equal(first.end, CLV_END_NOT);
        // a checkpoint of an epoch's end is tested first
        metric = metric_of(c, &s, (int)(in_step && at % BATCHES ? epoch : epoch - 1));
        told = (seen){0};
        config.resume = checkpoint();
        const clv_train_result result = train(&config, CLV_OK, parts, &n_parts);
        check(c, &result);
        assert_int_equal(n_parts, n);
        assert_memory_equal(whole, parts, (size_t)n * sizeof *whole);
        same_files(best_path(), whole_best);
    }
    // from the end once more: it is tested, and ends there
    metric = metric_of(c, &s, (int)c->epochs - 1);
    const clv_train_result again = train(&config, CLV_OK, parts, &n_parts);
    check(c, &again);
    assert_memory_equal(whole, parts, (size_t)n * sizeof *whole);
    unlink(best_path()), unlink(whole_best), unlink(checkpoint());
}

static double rate_of[EPOCHS + 1];

static bool keep_rate(void *user, const clv_train_epoch *epoch) {
    rate_of[epoch->epoch] = epoch->lr;
    return on_epoch(user, epoch);
}

/** The schedule plateau looks at what is monitored, and knows where it stood when a training goes on. */
TEST(plateau_resumed) {
    static const struct stop_case c = {"plateau", {5, 4, 4.5, 3, 3, 3.5, 3.25, 9}, .epochs = EPOCHS};
    static const double factors[] = {1, 1, 1, 0.5, 0.5, 0.25, 0.125, 0.0625}; // of each epoch's rate
    float whole[MOST] = {0}, parts[MOST] = {0};
    int n, n_parts;
    script s;
    seen told = {0};
    clv_metric metric = metric_of(&c, &s, 0);
    clv_train_config config = config_of(&metric, &told);
    config.on_epoch = keep_rate;
    config.schedule = (clv_schedule){.kind = CLV_SCHEDULE_PLATEAU, .period = 1, .gamma = 0.5};
    train(&config, CLV_OK, whole, &n);
    for (int i = 0; i < EPOCHS; i++) assert_float_equal(rate_of[i + 1], config.lr * factors[i], 1e-9);
    for (int at = 1; at < EPOCHS * BATCHES; at += 2) { // in a step, or at the end of an epoch
        const int epoch = at / BATCHES;
        told = (seen){.stop_step = at};
        metric = metric_of(&c, &s, 0);
        config.resume = NULL;
        config.checkpoint = checkpoint();
        train(&config, CLV_E_INTERRUPTED, NULL, NULL);
        metric = metric_of(
            &c, &s, at % BATCHES ? epoch : epoch - 1); // a checkpoint of an epoch's end is tested first
        told = (seen){0};
        config.resume = checkpoint();
        train(&config, CLV_OK, parts, &n_parts);
        assert_int_equal(n_parts, n);
        assert_memory_equal(whole, parts, (size_t)n * sizeof *whole);
    }
    unlink(checkpoint());
}

/** The last step's gradients are written, though nobody knows that it is the last before it is tested. */
TEST(gradients_of_the_last_step) {
    const char *early = CLV_TEST_BINARY_DIR "/train_stopping_early.safetensors",
               *full = CLV_TEST_BINARY_DIR "/train_stopping_full.safetensors";
    script s;
    seen told = {0};
    clv_metric metric = metric_of(&cases[0], &s, 0);
    clv_train_config config = config_of(&metric, &told);
    config.patience = cases[0].patience;
    config.gradients = early;
    train(&config, CLV_OK, NULL, NULL);
    metric = metric_of(&cases[0], &s, 0);
    config.patience = 0;
    config.monitor = NULL;
    config.epochs = cases[0].epochs;
    config.gradients = full;
    train(&config, CLV_OK, NULL, NULL);
    same_files(early, full);
    unlink(early), unlink(full);
}

/** The loss, where nothing else is named. */
TEST(the_loss_is_monitored) {
    static const char *const names[] = {NULL, "loss"};
    for (int i = 0; i < 2; i++) {
        clv_train_config config = small_config(&small_model, dataset, BATCH, 3);
        config.device = host;
        config.patience = 3;
        config.monitor = names[i];
        const clv_train_result result = train(&config, CLV_OK, NULL, NULL);
        assert_int_equal(result.best_epoch, 3); // it learns
        assert_true(result.best_value == result.test.loss);
        assert_int_equal(result.end, CLV_END_STEPS);
    }
    clv_train_config config = small_config(&small_model, dataset, BATCH, 2);
    config.device = host;
    const clv_train_result result = train(&config, CLV_OK, NULL, NULL);
    assert_int_equal(result.best_epoch, 0); // nobody asked
    assert_true(isnan(result.best_value));
    assert_int_equal(result.end, CLV_END_STEPS);
}

static clv_status no_file(void *user, clv_session *session, const char *path) {
    assert_ptr_equal(user, &dataset);
    assert_non_null(session);
    assert_string_equal(path, "as given");
    return CLV_E_IO;
}

/** How the best is written may be told; what fails there ends the training. */
TEST(written_in_another_way) {
    clv_train_config config = small_config(&small_model, dataset, BATCH, 3);
    config.device = host;
    config.best = "as given";
    config.save_best = no_file;
    config.user = &dataset;
    assert_int_equal(train(&config, CLV_E_IO, NULL, NULL).epochs, 1);
    config.save_best = NULL;
    config.best = CLV_TEST_BINARY_DIR "/not_there/best.safetensors";
    train(&config, CLV_E_IO, NULL, NULL);
}

// ---- what is refused ------------------------------------------------------------------------------------------------------

static clv_tensor *build_absolute(clv_tensor *output, clv_tensor *target, const clv_loss *loss) {
    return clv_cross_entropy(output, target);
}

TEST(refusals) {
    const clv_loss silent = {.name = "silent", .build = build_absolute};
    const struct {
        clv_train_config config;
        clv_status status;
        bool untested;
        const char *said;
    } refused[] = {
        {{.patience = -1}, CLV_E_VALUE, false, "a patience of -1 epochs"},
        {{.patience = 1, .min_delta = -0.5},
         CLV_E_VALUE,
         false,
         "a min_delta of -0.5: it must be at least 0 and finite"},
        {{.patience = 1, .min_delta = (double)NAN},
         CLV_E_VALUE,
         false,
         "a min_delta of nan: it must be at least 0 and finite"},
        {{.patience = 1}, CLV_E_VALUE, true, "patience: there is no test set to measure on"},
        {{.best = "b"}, CLV_E_VALUE, true, "best: there is no test set to measure on"},
        {{.metrics = one(clv_metric_find("top5")), .n_metrics = 1},
         CLV_E_VALUE,
         true,
         "metrics: there is no test set to measure on"},
        {{.monitor = "loss"},
         CLV_E_VALUE,
         false,
         "monitor is for patience, best and the schedule plateau, and none of them is given"},
        {{.min_delta = 0.1},
         CLV_E_VALUE,
         false,
         "min_delta is for patience and best, and none of them is given"},
        {{.patience = 1, .monitor = "top6", .metrics = one(clv_metric_find("top5")), .n_metrics = 1},
         CLV_E_NOT_FOUND,
         false,
         "there is no 'top6' to monitor: it is 'loss' or one of the metrics asked for; did you mean 'top5'?"},
        {{.patience = 1, .loss = &silent},
         CLV_E_VALUE,
         false,
         "loss 'silent' has no function `sum`, so a test set does not give it: monitor one of the metrics"},
        {{.n_metrics = 9}, CLV_E_VALUE, false, "9 metrics: there can be 0 to 8"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        clv_train_config config = refused[i].config, base = small_config(&small_model, dataset, BATCH, 2);
        clv_trainer *trainer = NULL;
        config.device = host;
        config.model = base.model;
        config.train = base.train;
        config.test = refused[i].untested ? NULL : base.test;
        config.batch = base.batch;
        config.lr = base.lr;
        assert_status(clv_trainer_create(runtime, &config, &trainer), refused[i].status, runtime);
        assert_string_equal(clv_runtime_error(runtime), refused[i].said);
    }
}

/** A checkpoint says what it was written with, and what it says of the best epoch must be possible. */
TEST(checkpoints_are_checked) {
    script s;
    seen told = {0};
    clv_metric metric = metric_of(&cases[0], &s, 0);
    clv_train_config config = config_of(&metric, &told), good;
    clv_trainer *trainer;
    char said[512];
    config.patience = 5;
    config.min_delta = 0.25;
    config.epochs = 3;
    config.checkpoint = checkpoint();
    train(&config, CLV_OK, NULL, NULL);
    config.checkpoint = NULL;
    config.resume = checkpoint();
    good = config;
    static const char *const wanted[] = {"patience 5, now it is 4", "min_delta 0.25, now it is 0",
                                         "monitor 'made_up', now it is ''"};
    for (int i = 0; i < 3; i++) {
        config = good;
        if (i == 0) config.patience = 4;
        if (i == 1) config.min_delta = 0;
        if (i == 2) config.monitor = NULL;
        trainer = clv__test_trainer(runtime, &config);
        assert_status(clv_trainer_run(trainer), CLV_E_VALUE, runtime);
        snprintf(said, sizeof said,
                 "checkpoint '%s' was written with %s; go on with the settings it was written with",
                 checkpoint(), wanted[i]);
        assert_string_equal(clv_runtime_error(runtime), said);
        clv_trainer_destroy(trainer);
    }
    static const char *const keys[] = {"best.epoch", "best.since", "best.step", "best.value"};
    for (int i = 0; i < 4; i++) {
        clv_archive *archive;
        assert_status(clv__checkpoint_read_file(runtime, checkpoint(), &archive), CLV_OK, runtime);
        assert_status(clv_archive_set_text(archive, keys[i], i < 3 ? "99" : "nan"), CLV_OK, runtime);
        const char *spoilt = CLV_TEST_BINARY_DIR "/train_stopping_spoilt.ckpt";
        assert_status(clv__checkpoint_write(archive, spoilt), CLV_OK, runtime);
        clv_archive_destroy(archive);
        config = good;
        config.resume = spoilt;
        trainer = clv__test_trainer(runtime, &config);
        assert_status(clv_trainer_run(trainer), CLV_E_FORMAT, runtime);
        snprintf(said, sizeof said, "checkpoint '%s' has a best epoch that its position cannot have", spoilt);
        assert_string_equal(clv_runtime_error(runtime), said);
        clv_trainer_destroy(trainer);
        unlink(spoilt);
    }
    unlink(checkpoint());
}

/** A loss that is no number any more is looked for by doing steps again, from a checkpoint of such a training too. */
TEST(looked_for_again) {
    script s;
    seen told = {0};
    clv_metric metric = metric_of(&cases[0], &s, 0);
    clv_train_config config = config_of(&metric, &told);
    config.patience = 8;
    config.ema_decay = 0.5;
    config.best = best_path();
    config.checkpoint = checkpoint();
    config.schedule = (clv_schedule){.kind = CLV_SCHEDULE_STEP, .period = 1, .gamma = 1e38};
    clv_trainer *trainer = clv__test_trainer(runtime, &config);
    assert_status(clv_trainer_run(trainer), CLV_E_NOT_FINITE, runtime);
    assert_holds(clv_runtime_error(runtime), "the first values that are not finite are those of");
    clv_trainer_destroy(trainer);
    unlink(checkpoint()), unlink(best_path());
}

TEST_MAIN(setup, teardown)
