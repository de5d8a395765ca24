// SPDX-License-Identifier: Apache-2.0
// Learning rates as PyTorch has them (tests/golden/make_schedules.py), and what a trainer makes of a warm-up.
#include <math.h>
#include <string.h>

#include "graph/graph.h"
#include "train/small.h"

enum { STEPS = 40 };
static const double LR = 0.25;

static clv_runtime *runtime;
static clv_archive *golden;

FIXTURE(setup) {
    runtime = clv__test_runtime(&(clv_runtime_config){.no_opencl = true});
    assert_status(
        clv_safetensors_read(runtime, CLV_TEST_SOURCE_DIR "/tests/golden/schedules.safetensors", &golden),
        CLV_OK, runtime);
}

FIXTURE(teardown) {
    clv_archive_destroy(golden);
    clv_runtime_destroy(runtime);
}

static const float *values_of(const char *name) {
    const clv_array *array = clv_archive_find(golden, name);
    if (!array) fail_msg("the golden file has no '%s'", name);
    return array->data;
}

static void near(const char *name, int step, double got, double wanted) {
    if (!(fabs(got - wanted) <= 1e-6 * fabs(wanted)))
        fail_msg("%s, step %d: %.9g, not %.9g", name, step, got, wanted);
}

TEST(test_rates) {
    static const struct {
        const char *name;
        clv_schedule schedule;
    } cases[] = {
        {"step", {.kind = CLV_SCHEDULE_STEP, .period = 7, .gamma = 0.5}},
        {"cosine", {.kind = CLV_SCHEDULE_COSINE, .period = STEPS, .min_lr = 0.01}},
        {"cosine, warm", {.kind = CLV_SCHEDULE_COSINE, .period = STEPS - 5, .min_lr = 0.01, .warmup = 5}},
        {"step, warm", {.kind = CLV_SCHEDULE_STEP, .period = 7, .gamma = 0.5, .warmup = 8}},
        {"constant, warm", {.warmup = 10}},
        {"exponential", {.kind = CLV_SCHEDULE_EXPONENTIAL, .gamma = 0.9}},
        {"exponential, warm", {.kind = CLV_SCHEDULE_EXPONENTIAL, .warmup = 6}},
        {"polynomial", {.kind = CLV_SCHEDULE_POLYNOMIAL, .period = 30}},
        {"polynomial, squares", {.kind = CLV_SCHEDULE_POLYNOMIAL, .period = STEPS, .gamma = 2, .warmup = 4}},
        {"one-cycle", {.kind = CLV_SCHEDULE_ONE_CYCLE, .period = STEPS + 1}},
        {"one-cycle, set",
         {.kind = CLV_SCHEDULE_ONE_CYCLE,
          .period = STEPS + 1,
          .turn = 0.45,
          .div_factor = 10,
          .final_factor = 50}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const float *wanted = values_of(cases[i].name);
        for (int step = 0; step < STEPS; step++) {
            clv_schedule schedule = cases[i].schedule;
            schedule.per_step = true;
            near(cases[i].name, step, clv_schedule_lr(&schedule, LR, 0, step), (double)wanted[step]);
            schedule.per_step = false; // the same in epochs
            schedule.warmup_epochs = true;
            near(cases[i].name, step, clv_schedule_lr(&schedule, LR, step, 1000), (double)wanted[step]);
        }
    }
}

/** What counts other things goes on beside the warm-up. */
TEST(test_products) {
    const clv_schedule steps = {.kind = CLV_SCHEDULE_STEP, .period = 2, .gamma = 0.5, .warmup = 8};
    near("epochs, warm in steps", 5, clv_schedule_lr(&steps, 1, 2, 5), 0.5 * 6 / 8);
    near("epochs, warm in steps", 8, clv_schedule_lr(&steps, 1, 4, 8), 0.25);
    // of very few steps, and behind the end
    const clv_schedule one = {.kind = CLV_SCHEDULE_ONE_CYCLE, .per_step = true, .period = 1};
    const clv_schedule ten = {.kind = CLV_SCHEDULE_ONE_CYCLE, .per_step = true, .period = 10, .turn = 0.1};
    assert_true(isfinite(clv_schedule_lr(&one, 1, 0, 0)));
    near("a turn at the first step", 0, clv_schedule_lr(&ten, 1, 0, 0), 1);
    near("behind the end", 20, clv_schedule_lr(&ten, 1, 0, 20), clv_schedule_lr(&ten, 1, 0, 9));
}

TEST(test_plateau) {
    static const struct {
        const char *name;
        clv_schedule schedule;
        bool larger;
    } cases[] = {
        {"plateau", {.kind = CLV_SCHEDULE_PLATEAU, .gamma = 0.3, .period = 3, .min_lr = 0.001}, false},
        {"plateau, larger", {.kind = CLV_SCHEDULE_PLATEAU, .turn = 0.05}, true},
    };
    for (int i = 0; i < 2; i++) {
        const clv_schedule *schedule = &cases[i].schedule;
        const float *wanted = values_of(cases[i].name), *values = values_of("values");
        clv_plateau plateau = {0};
        int drops = 0;
        for (int step = 0; step < STEPS; step++) {
            const double lr = plateau.lr > 0 ? plateau.lr : LR;
            near(cases[i].name, step, clv_schedule_lr(schedule, lr, step, 0), (double)wanted[step]);
            clv_plateau_see(schedule, &plateau, LR, (double)values[step], cases[i].larger);
            drops += plateau.lr < lr;
        }
        assert_true(drops > 2);
    }
    clv_plateau plateau = {0};
    clv_plateau_see(&cases[0].schedule, &plateau, LR, (double)NAN, false); // no value is no better
    assert_int_equal(plateau.worse, 1);
    assert_false(plateau.seen);
}

// ---- in a training ------------------------------------------------------------------------------------------------------

static double rates[64];

static bool keep(void *user, const clv_train_step *step) {
    rates[step->step - 1] = step->lr;
    return true;
}

/** Of four epochs of three steps. */
static void train(clv_schedule schedule) {
    clv_dataset *dataset = small_dataset(runtime, 12);
    clv_train_config config = small_config(&small_model, dataset, 5, 4);
    clv_device *host = clv__test_device(runtime, "host");
    config.device = host;
    config.test = NULL;
    config.lr = 1e-3;
    config.schedule = schedule;
    config.on_step = keep;
    clv_trainer *trainer = clv__test_trainer(runtime, &config);
    assert_status(clv_trainer_run(trainer), CLV_OK, runtime);
    clv_trainer_destroy(trainer);
    clv_dataset_destroy(dataset);
}

TEST(test_trainings) {
    train((clv_schedule){.kind = CLV_SCHEDULE_COSINE, .per_step = true, .warmup = 4});
    near("the last step of the warm-up", 3, rates[3], 1e-3);
    near("half of the rest", 8, rates[8], 0.5e-3); // 4 of 8 behind it
    train((clv_schedule){.kind = CLV_SCHEDULE_COSINE, .per_step = true, .warmup = 2, .warmup_epochs = true});
    near("warm in epochs", 2, rates[2], 0.5e-3);
    near("half of the rest", 9, rates[9], 0.5e-3); // 3 of 6 behind it
    train((clv_schedule){.kind = CLV_SCHEDULE_ONE_CYCLE, .per_step = true});
    near("the first of the cycle", 0, rates[0], 1e-3 / 25);
    near("the last of the cycle", 11, rates[11], 1e-3 / 25 / 1e4);
    // no test set: the training's loss is looked at, which falls by less than a half
    train((clv_schedule){.kind = CLV_SCHEDULE_PLATEAU, .period = 1, .gamma = 0.5, .turn = 0.5});
    near("the second epoch", 5, rates[5], 1e-3);
    near("the third", 6, rates[6], 0.5e-3);
    near("the fourth", 9, rates[9], 0.25e-3);
}

/** The same training, to a checkpoint or from it. */
static clv_status go(clv_schedule schedule, int64_t epochs, const char *checkpoint, const char *resume) {
    clv_dataset *dataset = small_dataset(runtime, 12);
    clv_train_config config = small_config(&small_model, dataset, 5, epochs);
    clv_device *host = clv__test_device(runtime, "host");
    config.device = host;
    config.test = NULL;
    config.lr = 1e-3;
    config.schedule = schedule;
    config.checkpoint = checkpoint;
    config.resume = resume;
    config.on_step = keep;
    clv_trainer *trainer = clv__test_trainer(runtime, &config);
    const clv_status status = clv_trainer_run(trainer);
    clv_trainer_destroy(trainer);
    clv_dataset_destroy(dataset);
    return status;
}

/** A schedule over the whole training follows its length when it goes on for longer; one of a given period
 *  is that of before. */
TEST(test_longer) {
    const char *path = CLV_TEST_BINARY_DIR "/train_schedules.ckpt";
    const clv_schedule cosine = {.kind = CLV_SCHEDULE_COSINE, .per_step = true},
                       cycle = {.kind = CLV_SCHEDULE_ONE_CYCLE, .per_step = true},
                       given = {.kind = CLV_SCHEDULE_COSINE, .per_step = true, .period = 6},
                       other = {.kind = CLV_SCHEDULE_COSINE, .per_step = true, .period = 12};
    assert_status(go(cosine, 2, path, NULL), CLV_OK, runtime);
    assert_status(go(cosine, 4, NULL, path), CLV_OK, runtime);
    for (int step = 6; step < 12; step++) // of 12
        near("cosine", step, rates[step], clv_schedule_lr(&other, 1e-3, step / 3, step));
    assert_status(go(given, 4, NULL, path), CLV_OK, runtime);
    assert_status(go(other, 4, NULL, path), CLV_E_VALUE, runtime);
    assert_non_null(strstr(clv_runtime_error(runtime), "was written with schedule.period 6, now it is 12"));
    assert_status(go(cycle, 2, path, NULL), CLV_OK, runtime);
    assert_status(go(cycle, 4, NULL, path), CLV_OK, runtime);
    near("the last of the cycle", 11, rates[11], 1e-3 / 25 / 1e4);
}

// ---- dropout, which a training can set ----------------------------------------------------------------------------------

/** How many nodes of a step drop this part. */
static int dropping(const char *model, const double *set, float p) {
    clv_graph *graph = NULL;
    int n = 0;
    const clv_train_config config = {.model = clv_model_find(model), .dropout = set};
    assert_status(clv_pass_graph(runtime, &config, CLV_PASS_TRAIN, 4, &graph), CLV_OK, runtime);
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const clv__node *node = graph->nodes[i];
        float part;
        memcpy(&part, node->attrs, sizeof part);
        n += !strcmp(node->io.op->name, "dropout") && part == p;
    }
    clv_graph_destroy(graph);
    return n;
}

TEST(test_dropout) {
    const double none = 0, some = 0.3, all = 1;
    assert_int_equal(dropping("cnn", NULL, 0.25f) + dropping("cnn", NULL, 0.5f),
                     2 * dropping("cnn", NULL, 0.5f));
    assert_int_equal(dropping("alexnet", NULL, 0.5f), dropping("alexnet", &some, 0.3f));
    assert_true(dropping("mobilenet_v2", NULL, 0.2f) > 0);
    assert_int_equal(dropping("mobilenet_v2", &none, 0.2f) + dropping("alexnet", &none, 0.5f), 0);
    assert_true(dropping("gpt", &some, 0.3f) > 0); // none of its own
    assert_int_equal(dropping("mlp", &none, 0), 0);
    clv_graph *graph = NULL;
    const clv_train_config mlp = {.model = clv_model_find("mlp"), .dropout = &some},
                           cnn = {.model = clv_model_find("cnn"), .dropout = &all};
    assert_status(clv_pass_graph(runtime, &mlp, CLV_PASS_TRAIN, 4, &graph), CLV_E_VALUE, runtime);
    assert_string_equal(clv_runtime_error(runtime),
                        "dropout of 0.3 is asked for, and model 'mlp' has no layer that drops values");
    clv_graph_destroy(graph);
    assert_status(clv_pass_graph(runtime, &cnn, CLV_PASS_TRAIN, 4, &graph), CLV_E_VALUE, runtime);
    assert_string_equal(clv_runtime_error(runtime), "dropout of 1: it must be below 1");
    clv_graph_destroy(graph);
}

TEST(test_what_cannot_be) {
    static const struct {
        clv_schedule schedule;
        const char *said;
    } cases[] = {
        {{.warmup = -1}, "a warm-up of -1"},
        {{.kind = CLV_SCHEDULE_ONE_CYCLE, .warmup = 3}, "one-cycle rises by itself"},
        {{.kind = CLV_SCHEDULE_ONE_CYCLE, .turn = 1}, "one-cycle with turn 1, div_factor"},
        {{.kind = CLV_SCHEDULE_PLATEAU, .gamma = 1}, "its factor, 1, must be at least 0 and below 1"},
        {{.kind = CLV_SCHEDULE_PLATEAU, .per_step = true}, "the schedule plateau counts epochs"},
    };
    clv_dataset *dataset = small_dataset(runtime, 12);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        clv_trainer *trainer = NULL;
        clv_train_config config = small_config(&small_model, dataset, 5, 4);
        config.schedule = cases[i].schedule;
        assert_status(clv_trainer_create(runtime, &config, &trainer), CLV_E_VALUE, runtime);
        if (!strstr(clv_runtime_error(runtime), cases[i].said)) fail_msg("'%s'", clv_runtime_error(runtime));
    }
    clv_dataset_destroy(dataset);
}

TEST_MAIN(setup, teardown)
