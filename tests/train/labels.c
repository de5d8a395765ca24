// SPDX-License-Identifier: Apache-2.0
// What trainings make of labels: smoothed, mixed, several for each sample, weighted by their class, ignored. As PyTorch did it step by step (make_labels.py), stopped and
// resumed, in parts and on replicas, evaluated; and what makes no sense.
#include <math.h>
#include <unistd.h>

#include "cleave/ops.h"
#include "data/dataset.h"
#include "data/mixup.h"
#include "io/formats.h"
#include "train/pytorch.h"
#include "train/small.h"

enum { STEPS = 9, ROWS = 12, CLASSES = 5, BATCHES = 3, MOST = 600 };

static clv_runtime *runtime;
static clv_archive *golden;
static clv_dataset *of_classes, *of_labels, *of_numbers, *of_ignored;

static clv_tensor *build_labels(clv_tensor *x, const clv_model *model) {
    clv_model classes = *model;
    classes.classes = model->target[0];
    return pytorch_build(x, &classes);
}

static const clv_model classes_model = {
    .name = "small", .build = pytorch_build, .input = {1, 4, 6}, .classes = CLASSES};
static const clv_model labels_model = {
    .name = "labels", .build = build_labels, .input = {1, 4, 6}, .target = {CLASSES}};

static const char *before(void) {
    return CLV_TEST_BINARY_DIR "/train_labels_before.safetensors";
}

static clv_dataset *dataset_of(const char *targets) {
    clv_array images = *clv_archive_find(golden, "images");
    clv_dataset *dataset = NULL;
    images.borrowed = true;
    assert_status(
        clv_dataset_from_arrays(runtime, &images, clv_archive_find(golden, targets), NULL, &dataset), CLV_OK,
        runtime);
    return dataset;
}

FIXTURE(setup) {
    runtime = clv__test_runtime(NULL);
    pytorch_read(runtime, CLV_TEST_SOURCE_DIR "/tests/golden/labels.safetensors", before(), &golden,
                 &of_classes);
    of_labels = dataset_of("several");
    of_numbers = dataset_of("numbers");
    of_ignored = dataset_of("ignored");
}

FIXTURE(teardown) {
    clv_dataset_destroy(of_classes);
    clv_dataset_destroy(of_labels);
    clv_dataset_destroy(of_numbers);
    clv_dataset_destroy(of_ignored);
    clv_archive_destroy(golden);
    clv_runtime_destroy(runtime);
    unlink(before());
}

// ---- as PyTorch -------------------------------------------------------------------------------------------------

typedef struct golden_case {
    const char *name, *loss; // NULL: the model's usual one
    bool several;            // targets are rows of numbers
    double smoothing, mixup, lr;
    bool weighted, ignored; // by these weights of classes; some labels count nothing
} golden_case;

static const float class_weights[CLASSES] = {0.5f, 2, 1, 0, 4};
static const clv_train_loss weighted = {
    .target = "labels", .class_weights = class_weights, .n_class_weights = CLASSES};

static const golden_case cases[] = {
    {"smooth", NULL, false, 0.1, 0, 0.1, false, false},
    {"mixup", NULL, false, 0, 0.4, 0.1, false, false},
    {"mixup_smooth", NULL, false, 0.1, 0.4, 0.1, false, false},
    {"bce", "bce_with_logits", true, 0, 0, 0.1, false, false},
    {"bce_mixup_smooth", "bce_with_logits", true, 0.25, 0.4, 0.1, false, false},
    {"mse_mixup", NULL, true, 0, 0.4, 0.05, false, false},
    {"weights", NULL, false, 0, 0, 0.1, true, false},
    {"ignored", NULL, false, 0, 0, 0.1, false, true},
    {"weights_ignored", NULL, false, 0, 0, 0.1, true, true},
    {"ignored_smooth", NULL, false, 0.1, 0, 0.1, false, true},
};
enum { CASES = sizeof cases / sizeof *cases };

static const clv_array *find(const char *name, const char *part, const char *tensor) {
    char key[256];
    snprintf(key, sizeof key, "%s/%s%s%s", name, part, *tensor ? "/" : "", tensor);
    const clv_array *array = clv_archive_find(golden, key);
    assert_non_null(array);
    return array;
}

static void near(const char *name, const char *what, double got, double want, double scale) {
    // Nine steps in float against double.
    if (!(fabs(got - want) <= 5e-5 * fmax(scale, fabs(want))))
        fail_msg("%s: %s is %.9g, not %.9g", name, what, got, want);
}

static clv_train_config config_of(const golden_case *c, clv_device *device) {
    return (clv_train_config){.device = device,
                              .model = c->several ? &labels_model : &classes_model,
                              .loss = clv_loss_find(c->loss),
                              .losses = c->weighted ? &weighted : NULL,
                              .n_losses = c->weighted,
                              .train = c->ignored    ? of_ignored
                                       : !c->several ? of_classes
                                       : c->loss     ? of_labels
                                                     : of_numbers,
                              .label_smoothing = c->smoothing,
                              .mixup = c->mixup,
                              .batch = 4,
                              .epochs = 3,
                              .seed = 7,
                              .no_shuffle = true,
                              .optimizer = {.kind = CLV_SGD, .momentum = 0.9f},
                              .lr = c->lr,
                              .weights = before()};
}

typedef struct watching {
    const golden_case *c;
    int64_t steps;
} watching;

static bool on_step(void *user, const clv_train_step *step) {
    watching *w = user;
    assert_int_equal(step->step, ++w->steps);
    const float *losses = find(w->c->name, "losses", "")->data;
    near(w->c->name, "a loss", step->loss, (double)losses[step->step - 1], 0.01);
    return true;
}

static clv_trainer *run(const clv_train_config *config) {
    return small_trained(runtime, config);
}

static void compare_weights(const golden_case *c, clv_session *session) {
    for (int i = 0; i < clv_session_info_get(session).n_tensors; i++) {
        const clv_session_tensor tensor = clv_session_get(session, i);
        float values[512];
        if (tensor.category != CLV_PARAMETERS) continue;
        assert_status(clv_session_read(session, i, values, tensor.bytes), CLV_OK, runtime);
        const float *after = find(c->name, "after", tensor.name)->data;
        for (size_t j = 0; j < tensor.bytes / sizeof(float); j++)
            near(c->name, tensor.name, (double)values[j], (double)after[j], 0.1);
    }
}

static void compare_gradients(const golden_case *c, const char *path) {
    clv_archive *gradients;
    assert_status(clv_safetensors_read(runtime, path, &gradients), CLV_OK, runtime);
    assert_int_equal(clv_archive_count(gradients), 5);
    for (size_t i = 0; clv_archive_get(gradients, i); i++) {
        const clv_array *got = clv_archive_get(gradients, i), *want = find(c->name, "gradient", got->name);
        assert_int_equal(clv_array_bytes(got), clv_array_bytes(want));
        for (size_t j = 0; j < clv_array_bytes(got) / sizeof(float); j++)
            near(c->name, got->name, (double)((const float *)got->data)[j],
                 (double)((const float *)want->data)[j], 0.01);
    }
    clv_archive_destroy(gradients);
}

static void as_pytorch(clv_device *device, const golden_case *c) {
    const char *path = CLV_TEST_BINARY_DIR "/train_labels_gradients.safetensors";
    watching seen = {c, 0};
    clv_train_config config = config_of(c, device);
    config.user = &seen;
    config.on_step = on_step;
    clv_trainer *trainer = run(&config);
    assert_int_equal(seen.steps, STEPS);
    compare_weights(c, clv_trainer_info_get(trainer).session);
    clv_trainer_destroy(trainer);
    seen.steps = 0;
    config.steps = 1;
    config.gradients = path;
    clv_trainer_destroy(run(&config));
    compare_gradients(c, path);
    unlink(path);
}

static void on_device(const char *spec) {
    clv_device *device = clv__test_device_or_skip(runtime, spec);
    for (int i = 0; i < CASES; i++) as_pytorch(device, &cases[i]);
}

TEST(the_script_has_the_lambdas) {
    const float *lambdas = clv_archive_find(golden, "lambdas")->data;
    for (int i = 0; i < STEPS; i++) {
        const clv__draw draw = {.seed = 7, .epoch = i / BATCHES};
        const double lambda = clv__mixup_lambda(&draw, i % BATCHES, 0.4);
        if (!(fabs(lambda - (double)lambdas[i]) < 1e-7))
            fail_msg("lambda %d is %.17g, not %.9g", i, lambda, (double)lambdas[i]);
    }
}

TEST_ON_DEVICES(on_device)

// ---- in other ways ----------------------------------------------------------------------------------------------

static clv_device *host(void) {
    return clv__test_device(runtime, "host");
}

/** The small models without statistics of the batch: in whatever parts, the same training. */
static clv_train_config plain_config(const golden_case *c, const clv_model *model) {
    clv_train_config config = config_of(c, host());
    config.model = model;
    config.weights = NULL;
    config.no_shuffle = false;
    return config;
}

static clv_tensor *build_plain_labels(clv_tensor *x, const clv_model *model) {
    return clv_nn_linear(clv_relu(clv_nn_linear(clv_flatten(x, 1), "fc1", 6, NULL)), "fc2",
                         model->classes ? model->classes : model->target[0], NULL);
}

static const clv_model plain_classes = {
    .name = "plain", .build = build_plain_labels, .input = {1, 4, 6}, .classes = CLASSES};
static const clv_model plain_labels = {
    .name = "plain", .build = build_plain_labels, .input = {1, 4, 6}, .target = {CLASSES}};

static int kept_of(const clv_train_config *config, float *kept) {
    int n;
    clv_trainer *trainer = run(config);
    assert_status(small_read(clv_trainer_info_get(trainer).session, kept, MOST, &n), CLV_OK, runtime);
    clv_trainer_destroy(trainer);
    return n;
}

TEST(in_parts_and_on_replicas) {
    static float whole[MOST], parts[MOST];
    const char *replicas[] = {"host", NULL};
    clv_device *other = NULL;
    if (clv_device_find(runtime, "gpu|accelerator|cpu", &other) == CLV_OK)
        replicas[1] = clv_device_info_get(other)->name;
    for (int i = 0; i < CASES; i++) {
        clv_train_config config = plain_config(&cases[i], cases[i].several ? &plain_labels : &plain_classes);
        const int n = kept_of(&config, whole);
        config.micro_batches = 2;
        assert_int_equal(kept_of(&config, parts), n);
        for (int k = 0; k < n; k++) assert_true(fabsf(whole[k] - parts[k]) < 1e-5f);
        if (!replicas[1]) continue;
        config.micro_batches = 0;
        config.placement = (clv_placement){.replicas = replicas, .n_replicas = 2};
        assert_int_equal(kept_of(&config, parts), n);
        for (int k = 0; k < n; k++) assert_true(fabsf(whole[k] - parts[k]) < 1e-5f);
    }
}

/** Probabilities are of the model's classes, which may be more than the dataset's. */
TEST(a_model_of_more_classes) {
    clv_model more = plain_classes;
    more.classes = CLASSES + 2;
    clv_train_config config = plain_config(&cases[2], &more);
    clv_trainer *trainer = run(&config);
    assert_true(isfinite(clv_trainer_result(trainer).train_loss));
    clv_trainer_destroy(trainer);
}

/** Near to the training in f32: logits are in f16, the loss is not. */
TEST(in_mixed_precision) {
    for (int i = 0; i < CASES; i++) {
        clv_train_config config = plain_config(&cases[i], cases[i].several ? &plain_labels : &plain_classes);
        clv_trainer *trainer = run(&config);
        const double loss = clv_trainer_result(trainer).train_loss;
        clv_trainer_destroy(trainer);
        config.precision = CLV_PRECISION_MIXED;
        trainer = run(&config);
        assert_true(fabs(clv_trainer_result(trainer).train_loss - loss) < 0.01);
        assert_int_equal(clv_trainer_result(trainer).skipped_steps, 0);
        clv_trainer_destroy(trainer);
    }
}

/** Stopped within an epoch and resumed: the same bits. */
static bool stop_after_four(void *user, const clv_train_step *step) {
    return step->step < 4; // the next one is under way
}

TEST(resumed_to_the_same_bits) {
    static float whole[MOST], resumed[MOST];
    const char *path = CLV_TEST_BINARY_DIR "/train_labels.ckpt";
    for (int i = 0; i < CASES; i++) {
        clv_train_config config = plain_config(&cases[i], cases[i].several ? &plain_labels : &plain_classes);
        const int n = kept_of(&config, whole);
        config.checkpoint = path;
        config.on_step = stop_after_four;
        clv_trainer *trainer = clv__test_trainer(runtime, &config);
        assert_status(clv_trainer_run(trainer), CLV_E_INTERRUPTED, runtime);
        assert_int_equal(clv_trainer_result(trainer).steps % BATCHES, 2); // in the middle of an epoch
        clv_trainer_destroy(trainer);
        config.on_step = NULL;
        config.checkpoint = NULL;
        config.resume = path;
        assert_int_equal(kept_of(&config, resumed), n);
        assert_memory_equal(whole, resumed, (size_t)n * sizeof *whole);
        unlink(path);
    }
}

static void expect_not_resumed(clv_train_config config, const char *sentence) {
    clv_trainer *trainer = clv__test_trainer(runtime, &config);
    assert_status(clv_trainer_run(trainer), CLV_E_VALUE, runtime);
    assert_holds(clv_runtime_error(runtime), sentence);
    clv_trainer_destroy(trainer);
}

/** A checkpoint goes on with what it was begun with. */
TEST(they_are_settings) {
    const char *path = CLV_TEST_BINARY_DIR "/train_labels_settings.ckpt";
    clv_train_config config = plain_config(&cases[2], &plain_classes);
    config.epochs = 1;
    config.checkpoint = path;
    clv_trainer_destroy(run(&config));
    config = plain_config(&cases[2], &plain_classes);
    config.resume = path;
    config.mixup = 0.2;
    expect_not_resumed(config, "was written with mixup 0.4, now it is 0.2");
    config.mixup = 0.4;
    config.label_smoothing = 0;
    expect_not_resumed(config, "was written with label_smoothing 0.1, now it is 0");
    config = plain_config(&cases[6], &plain_classes); // of weighted classes
    config.epochs = 1;
    config.checkpoint = path;
    clv_trainer_destroy(run(&config));
    config = plain_config(&cases[6], &plain_classes);
    config.resume = path;
    config.n_losses = 0;
    config.losses = NULL;
    expect_not_resumed(config, "was written with class_weights 'labels: 0.5 2 1 0 4', now it is ''");
    config = plain_config(&cases[3], &plain_labels); // of labels
    config.epochs = 1;
    config.checkpoint = path;
    clv_trainer_destroy(run(&config));
    config.checkpoint = NULL;
    config.resume = path;
    config.epochs = 2;
    config.loss = NULL;
    expect_not_resumed(config, "was written with loss 'bce_with_logits', now it is ''");
    unlink(path);
}

/** Checkpoints from before there were such settings mean none of them. */
TEST(older_checkpoints_go_on) {
    const char *path = CLV_TEST_BINARY_DIR "/train_labels_older.ckpt";
    clv_archive *archive = NULL;
    clv_train_config config = plain_config(&(golden_case){.lr = 0.1}, &plain_classes);
    config.epochs = 1;
    config.checkpoint = path;
    clv_trainer_destroy(run(&config));
    assert_status(clv__checkpoint_read_file(runtime, path, &archive), CLV_OK, runtime);
    clv_archive *older = clv__test_archive(runtime);
    for (size_t i = 0; clv_archive_get(archive, i); i++) {
        const clv_array *a = clv_archive_get(archive, i);
        assert_status(clv_archive_add(older, a->name, a->type, &a->shape, a->data, NULL), CLV_OK, runtime);
    }
    const char *key, *text;
    for (size_t i = 0; (key = clv_archive_text_at(archive, i, &text)); i++)
        if (strcmp(key, "mixup") && strcmp(key, "label_smoothing"))
            assert_status(clv_archive_set_text(older, key, text), CLV_OK, runtime);
    assert_status(clv__checkpoint_write(older, path), CLV_OK, runtime);
    clv_archive_destroy(archive);
    clv_archive_destroy(older);
    config.checkpoint = NULL;
    config.resume = path;
    config.epochs = 2;
    clv_trainer_destroy(run(&config));
    config.mixup = 0.5;
    expect_not_resumed(config, "was written with mixup 0, now it is 0.5");
    unlink(path);
}

// ---- evaluation ---------------------------------------------------------------------------------------------------

/** The share of right labels and the mean loss, by hand, for the weights that are there; without smoothing and mixup. */
TEST(labels_are_told_right) {
    clv_train_config config = plain_config(&cases[4], &plain_labels);
    config.test = of_labels;
    config.epochs = 30;
    clv_trainer *trainer = run(&config);
    const clv_metrics test = clv_trainer_result(trainer).test;
    clv_predictor_config how = {.device = host(), .model = &plain_labels, .loss = config.loss, .batch = ROWS};
    assert_status(clv_weights_save(clv_trainer_info_get(trainer).session, "labels.safetensors"), CLV_OK,
                  runtime);
    clv_trainer_destroy(trainer);
    clv_predictor *predictor = clv__test_predictor(runtime, &how);
    assert_status(clv_weights_load(clv_predictor_info_get(predictor).session, "labels.safetensors"), CLV_OK,
                  runtime);
    unlink("labels.safetensors");
    float x[ROWS * 24], y[ROWS * CLASSES], logits[ROWS * CLASSES];
    for (int i = 0; i < ROWS; i++) {
        clv__dataset_sample(of_labels, i, x + (ptrdiff_t)i * 24);
        clv__dataset_target(of_labels, i, y + (ptrdiff_t)i * CLASSES);
    }
    assert_status(clv_predictor_forward(predictor, x, ROWS, logits), CLV_OK, runtime);
    int right = 0;
    double sum = 0;
    for (int i = 0; i < ROWS * CLASSES; i++) {
        const double p = 1 / (1 + exp(-(double)logits[i]));
        right += (p > 0.5) == (y[i] == 1);
        sum -= log(y[i] == 1 ? p : 1 - p);
    }
    assert_int_equal(test.count, ROWS);
    assert_int_equal(test.targets, ROWS * CLASSES);
    assert_int_equal(test.correct, right);
    assert_true(test.accuracy == (double)right / (ROWS * CLASSES) && test.accuracy > 0.7);
    assert_true(fabs(test.loss - sum / (ROWS * CLASSES)) < 1e-6);
    clv_metrics again;
    assert_status(clv_evaluate(predictor, of_labels, NULL, NULL, &again), CLV_OK, runtime);
    assert_true(again.correct == right && fabs(again.loss - test.loss) < 1e-6);
    clv_predictor_destroy(predictor);
}

/** Loss, accuracy, metrics and counts of classes by hand, over batches: ignored labels, and weights of classes. */
TEST(classes_that_count) {
    const clv_metric *metrics[] = {clv_metric_find("accuracy"), clv_metric_find("top5")};
    clv_train_config config = plain_config(&cases[8], &plain_classes);
    config.test = of_ignored;
    config.metrics = metrics;
    config.n_metrics = 2;
    config.epochs = 20;
    clv_trainer *trainer = run(&config);
    const clv_metrics test = clv_trainer_result(trainer).test;
    clv_confusion *confusion = NULL;
    assert_status(clv_confusion_create(runtime, &plain_classes, NULL, &confusion), CLV_OK, runtime);
    clv_predictor_config how = {.device = host(),
                                .model = &plain_classes,
                                .losses = &weighted,
                                .n_losses = 1,
                                .confusion = confusion,
                                .batch = 5};
    assert_status(clv_weights_save(clv_trainer_info_get(trainer).session, "ignored.safetensors"), CLV_OK,
                  runtime);
    clv_trainer_destroy(trainer);
    clv_predictor *predictor = clv__test_predictor(runtime, &how);
    assert_status(clv_weights_load(clv_predictor_info_get(predictor).session, "ignored.safetensors"), CLV_OK,
                  runtime);
    unlink("ignored.safetensors");
    float x[ROWS * 24], logits[ROWS * CLASSES];
    int32_t y[ROWS];
    for (int i = 0; i < ROWS; i++) {
        clv__dataset_sample(of_ignored, i, x + (ptrdiff_t)i * 24);
        y[i] = clv__dataset_label(of_ignored, i);
    }
    assert_status(clv_predictor_forward(predictor, x, ROWS, logits), CLV_OK, runtime);
    double sum = 0, all = 0;
    int counted = 0;
    for (int i = 0; i < ROWS; i++) {
        double e = 0;
        if (y[i] == CLV_LABEL_IGNORED) continue;
        for (int c = 0; c < CLASSES; c++) e += exp((double)logits[i * CLASSES + c]);
        sum += (double)class_weights[y[i]] * (log(e) - (double)logits[i * CLASSES + y[i]]);
        all += (double)class_weights[y[i]];
        counted++;
    }
    assert_int_equal(counted, 8);
    assert_true(test.count == ROWS && test.targets == 8 && test.correct > 4);
    assert_true(test.accuracy == (double)test.correct / 8 && fabs(test.loss - sum / all) < 1e-6);
    assert_true(fabs(test.values[0].value - test.accuracy) < 1e-12 && test.values[1].value == 1);
    clv_metrics again;
    assert_status(clv_evaluate(predictor, of_ignored, NULL, NULL, &again), CLV_OK, runtime);
    assert_true(again.correct == test.correct && fabs(again.loss - test.loss) < 1e-6);
    assert_int_equal(clv_confusion_info_get(confusion).mean.targets, 8);
    clv_predictor_destroy(predictor);
    clv_confusion_destroy(confusion);
}

/** As sklearn's compute_class_weight("balanced"): of 8 labels, 5 classes. */
TEST(balanced_weights) {
    float weights[CLASSES + 1];
    assert_status(clv_dataset_class_weights(runtime, of_ignored, 0, CLASSES, weights), CLV_OK, runtime);
    int counts[CLASSES] = {0};
    for (int i = 0; i < ROWS; i++)
        if (clv__dataset_label(of_ignored, i) >= 0) counts[clv__dataset_label(of_ignored, i)]++;
    for (int c = 0; c < CLASSES; c++)
        assert_true(weights[c] == (counts[c] ? (float)(8.0 / (CLASSES * counts[c])) : 1));
    assert_status(clv_dataset_class_weights(runtime, of_ignored, 0, CLASSES + 1, weights), CLV_OK, runtime);
    assert_true(weights[CLASSES] == 1);
    assert_status(clv_dataset_class_weights(runtime, of_ignored, 0, CLASSES - 1, weights), CLV_E_VALUE,
                  runtime);
    assert_holds(clv_runtime_error(runtime), "weights of 4 classes, of a dataset that has 5");
    assert_status(clv_dataset_class_weights(runtime, of_numbers, 0, CLASSES, weights), CLV_E_VALUE, runtime);
    assert_holds(clv_runtime_error(runtime), "target 0 of the dataset holds numbers");
}

/** Another number may count nothing: then -100 is no label. */
TEST(another_ignored_label) {
    static uint8_t bytes[] = {1, 255, 0};
    static int64_t wide[] = {1, -100, 0};
    static float x[3];
    const int32_t background = 255, first = 0;
    clv_array samples = {.type = CLV_DTYPE_F32, .shape = CLV_SHAPE(3, 1), .data = x, .borrowed = true};
    clv_array y = {.type = CLV_DTYPE_U8, .shape = CLV_SHAPE(3), .data = bytes, .borrowed = true};
    clv_dataset_config config = {.ignore_index = &background};
    clv_dataset *dataset = NULL;
    assert_status(clv_dataset_from_arrays(runtime, &samples, &y, &config, &dataset), CLV_OK, runtime);
    assert_int_equal(clv_dataset_info_get(dataset).classes, 2);
    assert_int_equal(clv__dataset_label(dataset, 1), CLV_LABEL_IGNORED);
    clv_dataset_destroy(dataset);
    clv_field fields[] = {{.name = "x", .role = CLV_PORT_INPUT, .array = &samples},
                          {.name = "y", .role = CLV_PORT_TARGET, .array = &y}};
    config.ignore_index = &first;
    y.type = CLV_DTYPE_I64;
    y.data = wide;
    assert_status(clv_dataset_from_fields(runtime, NULL, fields, 2, &config, &dataset), CLV_E_VALUE, runtime);
    assert_holds(clv_runtime_error(runtime), "row 1 has -100, but values are 0 to");
    config.ignore_index = NULL;
    assert_status(clv_dataset_from_fields(runtime, NULL, fields, 2, &config, &dataset), CLV_OK, runtime);
    assert_int_equal(clv__dataset_label(dataset, 1), CLV_LABEL_IGNORED);
    assert_int_equal(clv_dataset_port_get(dataset, CLV_PORT_TARGET, 0).classes, 2);
    clv_dataset_destroy(dataset);
}

/** Logits so large that a naive formula gives infinities, and those that are not numbers: never right. */
TEST(sums_of_large_logits) {
    const clv_loss *loss = clv_loss_find("bce_with_logits");
    const float logits[] = {1000, -1000, 1000, -1000}, labels[] = {1, 0, 0, 1};
    const clv_loss_sizes sizes = {.n = 2, .output = 2, .target = 2};
    assert_true(loss->sum(logits, labels, &sizes, loss) ==
                1000); // two right, two wrong by 1000, means of two
    // cross entropy of probabilities is that of a class where they are one
    const clv_loss *entropy = clv_loss_find("cross_entropy");
    const float row[] = {0.5f, 2, -1}, one[] = {0, 1, 0}, mixed[] = {0.25f, 0.75f, 0};
    const int32_t first = 1, zero = 0;
    const clv_loss_sizes soft = {1, 3, 3, 3}, hard = {1, 3, 1, 3};
    const double a = entropy->sum(row, &zero, &hard, entropy), b = entropy->sum(row, &first, &hard, entropy);
    assert_true(fabs(entropy->sum(row, one, &soft, entropy) - b) < 1e-12);
    assert_true(fabs(entropy->sum(row, mixed, &soft, entropy) - (a / 4 + 3 * b / 4)) < 1e-12);
}

/** Targets may be probabilities from the beginning, as another model tells them. */
TEST(probabilities_as_targets) {
    static float rows[ROWS * CLASSES];
    for (int i = 0; i < ROWS * CLASSES; i++) rows[i] = i % CLASSES == i / CLASSES % CLASSES ? 0.6f : 0.1f;
    clv_array images = *clv_archive_find(golden, "images");
    clv_array y = {.type = CLV_DTYPE_F32, .shape = CLV_SHAPE(ROWS, CLASSES), .data = rows, .borrowed = true};
    clv_dataset *dataset = NULL;
    images.borrowed = true;
    assert_status(clv_dataset_from_arrays(runtime, &images, &y, NULL, &dataset), CLV_OK, runtime);
    clv_train_config config = plain_config(&cases[5], &plain_labels);
    config.train = config.test = dataset;
    config.mixup = 0;
    config.loss = clv_loss_find("cross_entropy");
    config.lr = 0.2;
    config.epochs = 200;
    clv_trainer *trainer = run(&config);
    const clv_train_result result = clv_trainer_result(trainer);
    const double entropy = -0.6 * log(0.6) - 0.4 * log(0.1); // no model is better
    assert_true(result.test.loss > entropy - 1e-6 && result.test.loss < entropy + 0.2);
    assert_true(fabs(result.test.loss - result.train_loss) < 0.05 && isnan(result.test.accuracy));
    clv_trainer_destroy(trainer);
    clv_dataset_destroy(dataset);
}

// ---- what makes no sense ------------------------------------------------------------------------------------------

static void expect_refused(const clv_train_config *config, clv_status status, const char *sentence) {
    clv_trainer *trainer = NULL;
    clv_graph *graph = NULL;
    assert_status(clv_trainer_create(runtime, config, &trainer), status, runtime);
    assert_holds(clv_runtime_error(runtime), sentence);
    assert_null(trainer);
    assert_status(clv_pass_graph(runtime, config, CLV_PASS_TRAIN, 4, &graph), status, runtime);
    assert_holds(clv_runtime_error(runtime), sentence);
    clv_graph_destroy(graph);
}

TEST(what_is_refused) {
    const double wrong[] = {-0.1, 1, 1.5, (double)NAN};
    clv_train_config config = plain_config(&cases[0], &plain_classes);
    for (int i = 0; i < 4; i++) {
        char sentence[128];
        snprintf(sentence, sizeof sentence, "label smoothing of %g: it must be at least 0, and below 1",
                 wrong[i]);
        config.label_smoothing = wrong[i];
        expect_refused(&config, CLV_E_VALUE, sentence);
    }
    config.losses = &weighted;
    config.n_losses = 1;
    config.label_smoothing = 0.1;
    expect_refused(&config, CLV_E_VALUE, "weights of classes do not go together with label smoothing");
    config.label_smoothing = 0;
    config.mixup = 0.2;
    expect_refused(&config, CLV_E_VALUE, "weights of classes do not go together with mixup");
    config.mixup = 0;
    static const float few[] = {1, 2}, none[CLASSES], below[CLASSES] = {1, -1};
    clv_train_loss odd = {.target = "labels", .class_weights = few, .n_class_weights = 2};
    config.losses = &odd;
    expect_refused(&config, CLV_E_VALUE, "target 'labels' has 2 weights of classes, and 5 classes");
    odd.n_class_weights = CLASSES;
    odd.class_weights = none;
    expect_refused(&config, CLV_E_VALUE, "the weights of all classes are 0");
    odd.class_weights = below;
    expect_refused(&config, CLV_E_VALUE, "the weight of class 1 is -1, it must be finite, and at least 0");
    clv_train_config numbers = plain_config(&cases[5], &plain_labels);
    numbers.mixup = 0;
    numbers.losses = &odd;
    numbers.n_losses = 1;
    expect_refused(&numbers, CLV_E_VALUE, "which are for classes and the loss cross_entropy, not for 'mse'");
    config.losses = NULL;
    config.n_losses = 0;
    config.train = of_ignored;
    config.mixup = 0.2;
    expect_refused(&config, CLV_E_VALUE, "mixup needs a class for each sample; here labels are -100");
    config.train = of_classes;
    config.mixup = -0.2;
    expect_refused(&config, CLV_E_VALUE,
                   "mixup with alpha -0.2: it must be above 0, and finite; 0 means no mixup");
    config.mixup = (double)INFINITY;
    expect_refused(&config, CLV_E_VALUE, "mixup with alpha inf: it must be above 0");
    config = plain_config(&cases[5], &plain_labels);
    config.label_smoothing = 0.1;
    expect_refused(&config, CLV_E_VALUE,
                   "label smoothing is for the losses cross_entropy and bce_with_logits, not for 'mse'");
    const clv_gpt_config sizes = {.vocabulary = 5, .context = 4, .width = 12, .heads = 3, .layers = 1};
    const clv_model gpt = clv_gpt_model(&sizes);
    config = plain_config(&cases[1], &gpt);
    expect_refused(
        &config, CLV_E_VALUE,
        "mixup needs samples that are numbers, with one class each or with numbers: those of model "
        "'gpt' are tokens");
    clv_model rows = plain_classes;
    rows.target[0] = 3;
    config.model = &rows;
    expect_refused(&config, CLV_E_VALUE, "those of model 'plain' are of several classes each");
}

/** Labels beside other logits. */
TEST(losses_that_do_not_fit) {
    static const struct {
        const char *loss, *sentence;
        int64_t classes;
        clv_dtype dtype;
        clv_status status;
    } wrong[] = {
        {"bce_with_logits",
         "bce_with_logits: targets [4,3] of f32 do not fit logits [4,5]; a number, 0 or 1, is "
         "wanted for each",
         3, CLV_DTYPE_F32, CLV_E_SHAPE},
        {"bce_with_logits", "bce_with_logits: targets [4,5] of i32 do not fit logits [4,5]", 5, CLV_DTYPE_I32,
         CLV_E_SHAPE},
        {"cross_entropy", "cross_entropy: probabilities [4,3] do not fit logits [4,5]; both must be [N,C]", 3,
         CLV_DTYPE_F32, CLV_E_SHAPE},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const clv_loss *loss = clv_loss_find(wrong[i].loss);
        clv_graph *graph = clv__test_graph(runtime);
        clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(4, 5)),
                   *y = clv_input(graph, "y", wrong[i].dtype, CLV_SHAPE(4, wrong[i].classes));
        assert_null(loss->build(x, y, loss));
        assert_status(clv_graph_status(graph), wrong[i].status, runtime);
        assert_holds(clv_runtime_error(runtime), wrong[i].sentence);
        clv_graph_destroy(graph);
    }
}

TEST_MAIN(setup, teardown)
