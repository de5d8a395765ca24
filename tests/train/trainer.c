// SPDX-License-Identifier: Apache-2.0
// Trainings that PyTorch did too, step by step: losses, learning rates, weights at the end. And what a trainer refuses.
#include <math.h>
#include <unistd.h>

#include "cleave/train.h"
#include "data/dataset.h"
#include "harness/harness.h"
#include "io/formats.h"
#include "train/trainer.h"

static clv_runtime *runtime;
static clv_archive *golden;
static clv_dataset *dataset;

static clv_tensor *build(clv_tensor *x, const clv_model *model) {
    x = clv_nn_conv2d(x, "conv1", 3,
                      &(clv_nn_conv2d_config){.kernel = {2, 3}, .padding = {1, -1}, .no_bias = true});
    x = clv_relu(clv_nn_batch_norm(x, "norm", NULL));
    return clv_nn_linear(clv_flatten(x, 1), "fc", model->classes, NULL);
}

static const clv_model model = {.name = "small", .build = build, .input = {1, 4, 6}, .classes = 3};

FIXTURE(setup) {
    runtime = clv__test_runtime(NULL);
    clv_status status =
        clv_safetensors_read(runtime, CLV_TEST_SOURCE_DIR "/tests/golden/train.safetensors", &golden);
    assert_status(status, CLV_OK, runtime);
    clv_array images = *clv_archive_find(golden, "images");
    images.borrowed = true;
    status = clv_dataset_from_arrays(runtime, &images, clv_archive_find(golden, "labels"), NULL, &dataset);
    assert_status(status, CLV_OK, runtime);
}

FIXTURE(teardown) {
    clv_dataset_destroy(dataset);
    clv_archive_destroy(golden);
    clv_runtime_destroy(runtime);
}

/** A training of the golden file. */
typedef struct golden_case {
    const char *name;
    clv_optimizer_config optimizer;
    double lr;
    clv_schedule schedule;
} golden_case;

static const golden_case cases[] = {
    {"sgd", {.kind = CLV_SGD}, 0.1, {0}},
    {"momentum",
     {.kind = CLV_SGD, .momentum = 0.9f, .weight_decay = 0.01f},
     0.05,
     {.kind = CLV_SCHEDULE_STEP, .period = 2}},
    {"nesterov",
     {.kind = CLV_SGD, .momentum = 0.8f, .nesterov = true, .clip_norm = 0.5f},
     0.05,
     {.kind = CLV_SCHEDULE_STEP, .per_step = true, .period = 4, .gamma = 0.5}},
    {"adam",
     {.kind = CLV_ADAM, .weight_decay = 0.02f},
     0.01,
     {.kind = CLV_SCHEDULE_COSINE, .per_step = true}}, // period: the whole training
    {"adamw",
     {.kind = CLV_ADAMW, .weight_decay = 0.1f, .clip_norm = 0.1f},
     0.02,
     {.kind = CLV_SCHEDULE_COSINE, .min_lr = 0.001}},
};

static const float *values_of(const char *name, const char *part) {
    char key[256];
    snprintf(key, sizeof key, "%s/%s", name, part);
    const clv_array *array = clv_archive_find(golden, key);
    if (!array) fail_msg("the golden file has no '%s'", key);
    return array->data;
}

static void near(const char *what, double got, double want, double scale) {
    // Twelve steps in float against double; Adam divides by roots of small numbers.
    if (!(fabs(got - want) <= 5e-5 * fmax(scale, fabs(want))))
        fail_msg("%s is %.9g, not %.9g", what, got, want);
}

/** What on_step compares with. */
typedef struct watching {
    const float *losses, *rates;
    int64_t steps;
} watching;

static bool on_step(void *user, const clv_train_step *step) {
    watching *w = user;
    assert_int_equal(step->step, ++w->steps);
    assert_int_equal(step->batches, 3);
    assert_int_equal(step->batch, (step->step - 1) % 3 + 1);
    assert_int_equal(step->epoch, (step->step - 1) / 3 + 1);
    near("loss", step->loss, w->losses[step->step - 1], 0.01);
    near("lr", step->lr, w->rates[step->step - 1], 0);
    return true;
}

/** An epoch is told the rate of its last step. */
static bool on_epoch(void *user, const clv_train_epoch *epoch) {
    const watching *w = user;
    assert_int_equal(epoch->epoch, w->steps / 3);
    near("an epoch's lr", epoch->lr, w->rates[w->steps - 1], 0);
    return true;
}

/** Write the golden file's first weights as a file of their own. */
static void write_first_weights(const char *name, const char *path) {
    clv_archive *archive = clv__test_archive(runtime);
    char prefix[64];
    size_t length = (size_t)snprintf(prefix, sizeof prefix, "%s/before/", name);
    for (size_t i = 0; clv_archive_get(golden, i); i++) {
        const clv_array *array = clv_archive_get(golden, i);
        if (strncmp(array->name, prefix, length)) continue;
        clv_status status =
            clv_archive_add(archive, array->name + length, array->type, &array->shape, array->data, NULL);
        assert_status(status, CLV_OK, runtime);
    }
    assert_status(clv_safetensors_write(archive, path), CLV_OK, runtime);
    clv_archive_destroy(archive);
}

static void compare_weights(const char *name, clv_session *session) {
    int compared = 0;
    for (int i = 0; i < clv_session_info_get(session).n_tensors; i++) {
        clv_session_tensor tensor = clv_session_get(session, i);
        if (tensor.category != CLV_PARAMETERS) continue;
        float values[256];
        char part[128];
        assert_status(clv_session_read(session, i, values, tensor.bytes), CLV_OK, runtime);
        snprintf(part, sizeof part, "after/%s", tensor.name);
        const float *want = values_of(name, part);
        for (size_t j = 0; j < tensor.bytes / sizeof(float); j++) near(part, values[j], want[j], 0.1);
        compared++;
    }
    assert_int_equal(compared, 7); // three weights, two biases, two running statistics
}

static void train_as_pytorch(clv_device *device, const golden_case *c) {
    const char *path = CLV_TEST_BINARY_DIR "/train_trainer.safetensors";
    write_first_weights(c->name, path);
    watching seen = {values_of(c->name, "losses"), values_of(c->name, "rates"), 0};
    clv_train_config config = {.device = device,
                               .model = &model,
                               .train = dataset,
                               .test = dataset,
                               .batch = 4,
                               .epochs = 3,
                               .no_shuffle = true,
                               .optimizer = c->optimizer,
                               .lr = c->lr,
                               .schedule = c->schedule,
                               .weights = path,
                               .user = &seen,
                               .on_step = on_step,
                               .on_epoch = on_epoch};
    clv_device_memory_reset_peak(device);
    clv_trainer *trainer = clv__test_trainer(runtime, &config);
    assert_int_equal(clv_device_memory(device).all.current, 0); // planned, and nothing taken
    uint64_t predicted = clv_trainer_device_info_get(trainer, NULL).memory.predicted_peak_bytes;
    assert_status(clv_trainer_run(trainer), CLV_OK, runtime);
    assert_int_equal(seen.steps, 9);
    assert_int_equal(clv_device_memory(device).all.peak, predicted);
    compare_weights(c->name, clv_trainer_info_get(trainer).session);
    clv_train_result result = clv_trainer_result(trainer);
    assert_true(result.evaluated && result.test.count == 10);
    assert_int_equal(result.steps, 9);
    assert_int_equal(result.epochs, 3);
    near("train loss", result.train_loss, (4 * seen.losses[6] + 4 * seen.losses[7] + 2 * seen.losses[8]) / 10,
         0);
    clv_trainer_destroy(trainer);
    assert_int_equal(clv_device_memory(device).all.current, 0);
}

static void on_device(const char *spec) {
    clv_device *device = clv__test_device_or_skip(runtime, spec);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) train_as_pytorch(device, &cases[i]);
}

TEST_ON_DEVICES(on_device)

TEST(test_refusals) {
    clv_train_config good = {.model = &model, .train = dataset, .batch = 4, .epochs = 1, .lr = 0.1}, bad;
    clv_trainer *trainer;
    good.device = clv__test_device(runtime, "host");
#define REFUSED(status, change)                                                                              \
    bad = good;                                                                                              \
    bad.change;                                                                                              \
    assert_status(clv_trainer_create(runtime, &bad, &trainer), status, runtime);                             \
    assert_null(trainer)
    REFUSED(CLV_E_VALUE, model = NULL);
    REFUSED(CLV_E_VALUE, train = NULL);
    REFUSED(CLV_E_VALUE, batch = -1);
    REFUSED(CLV_E_VALUE, epochs = -1);
    REFUSED(CLV_E_VALUE, micro_batches = -1);
    assert_string_equal(clv_runtime_error(runtime),
                        "a batch of 4 samples cannot be cut into -1 micro-batches, each needs at least one");
    REFUSED(CLV_E_VALUE, micro_batches = 5);
    assert_string_equal(clv_runtime_error(runtime),
                        "a batch of 4 samples cannot be cut into 5 micro-batches, each needs at least one");
    REFUSED(CLV_E_VALUE, steps = -1);
    REFUSED(CLV_E_VALUE, lr = 0);
    REFUSED(CLV_E_VALUE, lr = NAN);
    REFUSED(CLV_E_VALUE, schedule.period = -1);
    REFUSED(CLV_E_VALUE, schedule.kind = (clv_schedule_kind)7);
    assert_string_equal(clv_runtime_error(runtime),
                        "schedule.kind is 7; it is one of clv_schedule_kind, 0 to 6");
    REFUSED(CLV_E_VALUE, optimizer.momentum = -1);
    REFUSED(CLV_E_SHAPE, model = clv_model_find("mlp"));
    REFUSED(CLV_E_VALUE, variants = "nothing=plain");
    clv_model two = model;
    two.classes = 2;
    REFUSED(CLV_E_VALUE, model = &two);
    assert_holds(clv_runtime_error(runtime), "classes");
#undef REFUSED
}

static bool stop_at_three(void *user, const clv_train_step *step) {
    return step->step < 3;
}

static bool stop_at_two(void *user, const clv_train_step *step) {
    return step->step < 2;
}

TEST(test_callback_stops) {
    clv_train_config config = {
        .model = &model, .train = dataset, .batch = 4, .epochs = 100, .lr = 0.1, .on_step = stop_at_two};
    config.device = clv__test_device(runtime, "host");
    clv_trainer *trainer = clv__test_trainer(runtime, &config);
    assert_status(clv_trainer_run(trainer), CLV_E_INTERRUPTED, runtime);
    int64_t steps = clv_trainer_result(trainer).steps; // those that were under way are finished
    assert_true(steps >= 2 && steps <= 3);
    clv_trainer_destroy(trainer);
}

static void count_diverged(void *user, clv_log_level level, const char *sentence) {
    if (level != CLV_LOG_WARNING || !strstr(sentence, "the loss of step ")) return;
    assert_holds(sentence, "learns nothing more");
    ++*(int *)user;
}

/** A training that runs away ends after a few steps, by saying whose values were the first. */
TEST(test_divergence_ends_it) {
    const char *path = CLV_TEST_BINARY_DIR "/train_nan.checkpoint";
    for (int i = 0; i < 3; i++) { // the second and the third with a checkpoint to go back to
        remove(path);
        clv_train_config config = {
            .model = &model, .train = dataset, .batch = 4, .steps = 50, .lr = i == 2 ? 1e25 : 1e30};
        if (i) config.checkpoint = path, config.checkpoint_every = 1;
        config.device = clv__test_device(runtime, "host");
        clv_trainer *trainer = clv__test_trainer(runtime, &config);
        assert_status(clv_trainer_run(trainer), CLV_E_NOT_FINITE, runtime);
        assert_in_range(clv_trainer_result(trainer).steps, 1, 8);
        const char *said = clv_runtime_error(runtime);
        assert_non_null(strstr(said, "the first values that are not finite are those of "));
        assert_int_equal(!strstr(said, "is as it was"), i == 0 || access(path, R_OK));
        clv_trainer_destroy(trainer);
        if (access(path, R_OK)) continue;
        clv_archive *archive; // nothing that is not finite was written
        assert_status(clv__checkpoint_read_file(runtime, path, &archive), CLV_OK, runtime);
        for (size_t a = 0; clv_archive_get(archive, a); a++) {
            clv_array *array = clv_archive_get(archive, a);
            for (int64_t e = 0; array->type == CLV_DTYPE_F32 && e < clv_shape_numel(&array->shape); e++)
                assert_true(isfinite(((const float *)array->data)[e]));
        }
        clv_archive_destroy(archive);
    }
}

/** Where mixed precision skips every step nothing was learnt, and that is no success. */
TEST(test_steps_that_are_all_skipped) {
    static float x[4 * 6];
    static int32_t y[4] = {0, 1, 0, 1};
    const clv_model linear = clv_model_for(clv_model_find("linear"), 1, 2, 3, 2);
    for (int i = 0; i < 4 * 6; i++) x[i] = 1e30f; // past what f16 holds
    clv_array images = {.type = CLV_DTYPE_F32, .shape = CLV_SHAPE(4, 1, 2, 3), .data = x, .borrowed = true};
    clv_array labels = {.type = CLV_DTYPE_I32, .shape = CLV_SHAPE(4), .data = y, .borrowed = true};
    clv_dataset *large = NULL;
    assert_status(clv_dataset_from_arrays(runtime, &images, &labels, NULL, &large), CLV_OK, runtime);
    clv_train_config config = {.model = &linear,
                               .train = large,
                               .batch = 4,
                               .steps = 2,
                               .lr = 0.1,
                               .precision = CLV_PRECISION_MIXED};
    for (int goes_on = 0; goes_on < 2; goes_on++) {
        config.on_nan = goes_on ? CLV_NAN_CONTINUE : CLV_NAN_STOP;
        config.device = clv__test_device(runtime, "host");
        clv_trainer *trainer = clv__test_trainer(runtime, &config);
        assert_status(clv_trainer_run(trainer), goes_on ? CLV_OK : CLV_E_NOT_FINITE, runtime);
        if (!goes_on) assert_holds(clv_runtime_error(runtime), "mixed precision skipped them");
        clv_trainer_destroy(trainer);
    }
    clv_dataset_destroy(large);
}

/** A training that runs away and is to go on is told of once. */
TEST(test_divergence_is_told_once) {
    int warnings = 0;
    clv_runtime *other = clv__test_runtime(
        &(clv_runtime_config){.no_opencl = true, .log = count_diverged, .log_user = &warnings});
    for (int i = 0; i < 2; i++) {
        clv_train_config config = {.model = &model,
                                   .train = dataset,
                                   .batch = 4,
                                   .steps = 8,
                                   .lr = i ? 1e30 : 0.01,
                                   .on_nan = CLV_NAN_CONTINUE};
        config.device = clv__test_device(other, "host");
        clv_trainer *trainer = clv__test_trainer(other, &config);
        assert_status(clv_trainer_run(trainer), CLV_OK, other);
        assert_int_equal(clv_trainer_result(trainer).steps, 8);
        assert_int_equal(warnings, i);
        clv_trainer_destroy(trainer);
    }
    clv_runtime_destroy(other);
}

static void keep_sentence(void *user, clv_log_level level, const char *sentence) {
    char *kept = user;
    if (level == CLV_LOG_WARNING && strstr(sentence, "the loss of step "))
        snprintf(kept + strlen(kept), 512 - strlen(kept), "%s\n", sentence);
}

/** Two steps that overflow f16 among others: they are skipped, the warning says no more than that, and what an interrupted
 *  training knows of the scaler is told. */
TEST(test_an_overflow_is_no_divergence) {
    char said[512] = "";
    clv_runtime *other =
        clv__test_runtime(&(clv_runtime_config){.no_opencl = true, .log = keep_sentence, .log_user = said});
    clv_array images, labels;
    clv_shape of_images = CLV_SHAPE(16, 1, 4, 6), of_labels = CLV_SHAPE(16);
    assert_status(clv_array_init(other, CLV_DTYPE_F32, &of_images, &images), CLV_OK, other);
    assert_status(clv_array_init(other, CLV_DTYPE_I64, &of_labels, &labels), CLV_OK, other);
    for (int i = 0; i < 16 * 24; i++) ((float *)images.data)[i] = (float)(i * 7 % 11) / 11;
    for (int i = 0; i < 16; i++) ((int64_t *)labels.data)[i] = i % 3;
    for (int spoilt = 4; spoilt <= 8; spoilt += 4) ((float *)images.data)[spoilt * 24] = 1e30f;
    clv_dataset *spoilt;
    assert_status(clv_dataset_from_arrays(other, &images, &labels, NULL, &spoilt), CLV_OK, other);
    clv_train_config config = {.model = clv_model_find("linear"),
                               .train = spoilt,
                               .batch = 4,
                               .epochs = 2,
                               .lr = 0.1,
                               .no_shuffle = true,
                               .precision = CLV_PRECISION_MIXED,
                               .on_step = stop_at_three};
    clv_model small = clv_model_for(config.model, 1, 4, 6, 3);
    config.model = &small;
    config.device = clv__test_device(other, "host");
    clv_trainer *trainer = clv__test_trainer(other, &config);
    assert_status(clv_trainer_run(trainer), CLV_E_INTERRUPTED, other);
    clv_train_result result = clv_trainer_result(trainer);
    assert_string_equal(said,
                        "the loss of step 2 is not a number: values went past what f16 holds, and the step "
                        "updates nothing; if losses stay so, a smaller learning rate, clip_norm, smaller "
                        "inputs or precision mixed-bf16 may help\n");
    assert_int_equal(result.skipped_steps, 2);
    assert_float_equal(result.loss_scale, 16384, 0);
    assert_float_equal(result.train_loss, 1.1, 0.5); // of the first step alone
    clv_trainer_destroy(trainer);
    clv_dataset_destroy(spoilt);
    clv_array_reset(&images);
    clv_array_reset(&labels);
    clv_runtime_destroy(other);
}

/** What clv_pass_graph gives is what a trainer plans. */
TEST(test_graph_is_the_trainers) {
    clv_train_config configs[] = {{.optimizer = {.kind = CLV_ADAM}},
                                  {.micro_batches = 2},
                                  {.precision = CLV_PRECISION_MIXED, .optimizer = {.clip_norm = 1}}};
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
        clv_train_config *config = &configs[i];
        clv_graph *graph;
        config->model = &model;
        config->train = dataset;
        config->batch = 4;
        config->steps = 1;
        config->lr = 0.1;
        clv_trainer *trainer = clv__test_trainer(runtime, config);
        assert_status(clv_pass_graph(runtime, config, CLV_PASS_TRAIN, 4, &graph), CLV_OK, runtime);
        clv_device *device = clv_trainer_info_get(trainer).devices[0];
        clv_plan *plan = clv__test_plan(runtime, graph, &(clv_plan_config){.device = device});
        const clv_plan *own = clv_trainer_info_get(trainer).plan;
        assert_int_equal(clv_plan_info_get(plan).n_nodes, clv_plan_info_get(own).n_nodes);
        for (int n = 0; n < clv_plan_info_get(plan).n_nodes; n++) {
            clv_plan_node a = clv_plan_node_get(plan, n), b = clv_plan_node_get(own, n);
            assert_string_equal(a.op, b.op);
            assert_string_equal(a.layer, b.layer);
            assert_int_equal(a.micro_batch, b.micro_batch);
        }
        assert_int_equal(clv_plans_memory(&plan, 1, NULL).predicted_peak_bytes,
                         clv_trainer_device_info_get(trainer, NULL).memory.predicted_peak_bytes);
        clv_plan_destroy(plan);
        clv_graph_destroy(graph);
        clv_trainer_destroy(trainer);
    }
    // more devices than there may be are a mistake of the graph
    const char *replicas[20];
    for (int i = 0; i < 20; i++) replicas[i] = "host";
    configs[0].placement = (clv_placement){.replicas = replicas, .n_replicas = 20};
    clv_graph *graph;
    assert_status(clv_pass_graph(runtime, &configs[0], CLV_PASS_TRAIN, 40, &graph), CLV_E_VALUE, runtime);
    assert_holds(clv_runtime_error(runtime), "20 devices, from 1 to 16 are possible");
    clv_graph_destroy(graph);
}

enum { BYTE_SAMPLES = 10, BYTE_EACH = 24 };

/** The samples as bytes, or as the numbers that the host makes of them. */
static clv_dataset *bytes_or_numbers(bool bytes, float std, int width) {
    clv_array images, labels;
    const clv_dataset_config normalised = {.mean = 0.45f, .std = std, .only_bytes = true};
    clv_dataset *made;
    const clv_shape shape = CLV_SHAPE(BYTE_SAMPLES, 1, 4, width), rows = CLV_SHAPE(BYTE_SAMPLES);
    assert_status(clv_array_init(runtime, bytes ? CLV_DTYPE_U8 : CLV_DTYPE_F32, &shape, &images), CLV_OK,
                  runtime);
    assert_status(clv_array_init(runtime, CLV_DTYPE_I32, &rows, &labels), CLV_OK, runtime);
    for (int i = 0; i < BYTE_SAMPLES * 4 * width; i++) {
        const uint8_t byte = (uint8_t)(i * 37);
        if (bytes)
            ((uint8_t *)images.data)[i] = byte;
        else
            ((float *)images.data)[i] = ((float)byte / 255.0f - 0.45f) / std;
    }
    for (int i = 0; i < BYTE_SAMPLES; i++) ((int32_t *)labels.data)[i] = i % 3;
    assert_status(clv_dataset_from_arrays(runtime, &images, &labels, &normalised, &made), CLV_OK, runtime);
    clv_array_reset(&labels);
    return made;
}

/** What is large enough is made where it is fed from, and has the same bits: numbers are here, bytes are not. */
TEST(test_large_batches_are_not_copied) {
    enum { WIDTH = 20000 };
    clv_model wide = model;
    wide.input[2] = WIDTH;
    float weights[2][3 * 6];
    double losses[2];
    for (int k = 0; k < 2; k++) {
        clv_dataset *set = bytes_or_numbers(k, 0.3f, WIDTH);
        const clv_train_config config = {
            .model = &wide, .train = set, .test = set, .batch = 4, .epochs = 3, .lr = 0.1}; // and a rest of 2
        clv_trainer *trainer = clv__test_trainer(runtime, &config);
        assert_true((clv__step_fed_bytes(&trainer->step[CLV__FULL]) >= CLV__LARGE_BATCH) == !k);
        assert_status(clv_trainer_run(trainer), CLV_OK, runtime);
        losses[k] = clv_trainer_result(trainer).test.loss;
        clv_session *session = clv_trainer_info_get(trainer).session;
        assert_status(clv_session_read(session, clv_session_find(session, "conv1.weight"), weights[k],
                                       sizeof weights[k]),
                      CLV_OK, runtime);
        clv_trainer_destroy(trainer);
        clv_dataset_destroy(set);
    }
    assert_memory_equal(weights[0], weights[1], sizeof weights[0]);
    assert_true(losses[0] == losses[1]);
}

/** A training on bytes feeds bytes, a quarter of what numbers are, and has the bits of one on numbers that the host normalised. */
TEST(test_bytes_are_fed_as_they_are) {
    clv_dataset *sets[2] = {bytes_or_numbers(false, 0.3f, 6), bytes_or_numbers(true, 0.3f, 6)},
                *other = bytes_or_numbers(true, 0.31f, 6);
    const clv_train_config ways[] = {{0},
                                     {.micro_batches = 2},
                                     {.precision = CLV_PRECISION_MIXED_BF16},
                                     {.mixup = 0.4}}; // mixed on the host, in numbers
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
        clv_trainer *trainers[2];
        clv_train_result results[2];
        float weights[2][3 * 6];
        for (int k = 0; k < 2; k++) {
            clv_train_config config = ways[way];
            config.model = &model;
            config.train = config.test = sets[k];
            config.batch = 4; // and a rest of 2
            config.epochs = 2;
            config.lr = 0.1;
            trainers[k] = clv__test_trainer(runtime, &config);
            const clv_tensor *x = clv_graph_find(trainers[k]->step[CLV__FULL].graph, "x");
            const bool bytes = k == 1 && !(config.mixup > 0);
            assert_int_equal(clv_tensor_dtype(x), bytes ? CLV_DTYPE_U8 : CLV_DTYPE_F32);
            assert_int_equal(clv_tensor_bytes(x), 4 * BYTE_EACH * (bytes ? 1 : sizeof(float)));
            assert_status(clv_trainer_run(trainers[k]), CLV_OK, runtime);
            results[k] = clv_trainer_result(trainers[k]);
            clv_session *session = clv_trainer_info_get(trainers[k]).session;
            assert_status(clv_session_read(session, clv_session_find(session, "conv1.weight"), weights[k],
                                           sizeof weights[k]),
                          CLV_OK, runtime);
        }
        assert_memory_equal(weights[0], weights[1], sizeof weights[0]);
        assert_true(results[0].test.loss == results[1].test.loss);
        for (int k = 0; k < 2; k++) clv_trainer_destroy(trainers[k]);
    }
    // a predictor is made for bytes that are normalised so, and says it
    clv_metrics metrics[2];
    clv_predictor_config predicts = {.model = &model, .batch = 4, .samples = sets[1]};
    clv_predictor *predictor = clv__test_predictor(runtime, &predicts);
    assert_status(clv_evaluate(predictor, sets[1], NULL, NULL, &metrics[0]), CLV_OK, runtime);
    assert_status(clv_evaluate(predictor, other, NULL, NULL, &metrics[1]), CLV_E_VALUE, runtime);
    assert_holds(clv_runtime_error(runtime),
                 "was planned for bytes, and this dataset normalises them in another way");
    assert_status(clv_evaluate(predictor, sets[0], NULL, NULL, &metrics[1]), CLV_E_VALUE, runtime);
    assert_holds(clv_runtime_error(runtime), "and this dataset has numbers; give it as `samples`");
    clv_predictor_destroy(predictor);
    predicts.samples = NULL;
    predictor = clv__test_predictor(runtime, &predicts);
    assert_status(clv_evaluate(predictor, sets[1], NULL, NULL, &metrics[1]), CLV_OK, runtime);
    assert_true(metrics[0].loss == metrics[1].loss);
    clv_predictor_destroy(predictor);
    for (int k = 0; k < 2; k++) clv_dataset_destroy(sets[k]);
    clv_dataset_destroy(other);
}

/** How many nodes of a trainer's plans, evaluation's too, are done as others. */
static int count_fused(const clv_trainer *trainer) {
    clv_plan *plans[CLV__STEPS + 1];
    int fused = 0, n = clv__trainer_plans(trainer, plans);
    assert_int_equal(n, 2); // a step's, and evaluation's
    for (int p = 0; p < n; p++) {
        for (int i = 0; i < clv_plan_info_get(plans[p]).n_nodes; i++)
            fused += clv_plan_node_get(plans[p], i).fused > 0;
    }
    return fused;
}

TEST(test_no_fuse_is_for_evaluation_too) {
    for (int i = 0; i < clv_runtime_info_get(runtime).n_devices; i++) {
        clv_device *device = clv_device_get(runtime, i);
        if (strcmp(clv_device_info_get(device)->backend, "opencl") != 0 ||
            !clv_device_info_get(device)->usable)
            continue;
        for (int no_fuse = 0; no_fuse < 2; no_fuse++) {
            clv_train_config config = {.device = device,
                                       .model = &model,
                                       .train = dataset,
                                       .test = dataset,
                                       .batch = clv_dataset_info_get(dataset).count,
                                       .steps = 1,
                                       .lr = 0.1,
                                       .no_fuse = no_fuse};
            clv_trainer *trainer = clv__test_trainer(runtime, &config);
            if (no_fuse)
                assert_int_equal(count_fused(trainer), 0);
            else
                assert_true(count_fused(trainer) > 0);
            clv_trainer_destroy(trainer);
        }
    }
}

TEST_MAIN(setup, teardown)
