// SPDX-License-Identifier: Apache-2.0
// Trainings of other things than images and classes: numbers with `mse`, a loss of one's own, and texts; with micro-batches and
// replicas, resumed, evaluated.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cleave/ops.h"
#include "data/dataset.h"
#include "train/small.h"
#include "infer/losses.h"

TEST_RUNTIME
static clv_device *host;

static int setup(void **state) {
    runtime = clv__test_runtime(
        &(clv_runtime_config){.no_opencl = true, .null_devices = false, .partition = "host=2"});
    return clv_device_find(runtime, "host:0", &host) == CLV_OK ||
                   clv_device_find(runtime, "host", &host) == CLV_OK
               ? 0
               : -1;
}

// ---- numbers ----------------------------------------------------------------------------------------------------

enum { ROWS = 12, IN = 3, OUT = 2 };

/** y = A x + b for a matrix that a linear layer can learn. */
static clv_dataset *numbers(void) {
    static float x[ROWS * IN], y[ROWS * OUT];
    clv_dataset *dataset = NULL;
    for (int i = 0; i < ROWS; i++) {
        for (int k = 0; k < IN; k++) x[i * IN + k] = (float)((i * 5 + k * 7) % 11) / 5 - 1;
        for (int o = 0; o < OUT; o++)
            y[i * OUT + o] =
                x[i * IN] * (float)(o + 1) - x[i * IN + 1] * 0.5f + x[i * IN + 2] * 0.25f + (float)o;
    }
    clv_array images = {.type = CLV_DTYPE_F32, .shape = CLV_SHAPE(ROWS, IN), .data = x, .borrowed = true};
    clv_array targets = {.type = CLV_DTYPE_F32, .shape = CLV_SHAPE(ROWS, OUT), .data = y, .borrowed = true};
    assert_status(clv_dataset_from_arrays(runtime, &images, &targets, NULL, &dataset), CLV_OK, runtime);
    return dataset;
}

static clv_tensor *line(clv_tensor *x, const clv_model *model) {
    return clv_nn_linear(x, "fc", model->target[0] ? model->target[0] : 1, NULL);
}

static const clv_model regression = {.name = "line", .build = line, .input = {IN}, .target = {OUT}};

static clv_train_config config_of(const clv_model *model, const clv_dataset *dataset) {
    return (clv_train_config){.model = model,
                              .train = dataset,
                              .test = dataset,
                              .batch = 5,
                              .epochs = 3,
                              .seed = 7,
                              .device = host,
                              .optimizer = {.kind = CLV_SGD, .momentum = 0.5f},
                              .lr = 0.05};
}

/** Train, and read what the session keeps. */
static clv_train_result train(const clv_train_config *config, float *kept, int most, int *n) {
    clv_trainer *trainer = clv__test_trainer(runtime, config);
    assert_status(clv_trainer_run(trainer), CLV_OK, runtime);
    const clv_train_result result = clv_trainer_result(trainer);
    if (kept)
        assert_status(small_read(clv_trainer_info_get(trainer).session, kept, most, n), CLV_OK, runtime);
    clv_trainer_destroy(trainer);
    return result;
}

TEST(numbers_are_learnt) {
    clv_dataset *dataset = numbers();
    clv_train_config config = config_of(&regression, dataset);
    config.epochs = 200;
    float kept[64];
    int n;
    const clv_train_result result = train(&config, kept, 64, &n);
    assert_true(result.train_loss < 1e-4 && result.test.loss < 1e-4);
    assert_true(isnan(result.test.accuracy));
    assert_int_equal(result.test.count, ROWS);
    assert_int_equal(result.test.targets, ROWS * OUT);
    assert_int_equal(result.test.correct, 0);
    // weight [2,3] and bias are the matrix that made the targets
    const float want[] = {1, -0.5f, 0.25f, 2, -0.5f, 0.25f};
    for (int i = 0; i < 6; i++) assert_true(fabsf(kept[i] - want[i]) < 0.05f);
    clv_dataset_destroy(dataset);
}

/** What the graph says of a loss, in steps too small to change anything, is what the host says. */
TEST(graph_and_host_agree) {
    static const char *const names[] = {"mse", "l1", "huber", "focal", "bce_with_logits", "kl_div"};
    clv_dataset *dataset = numbers();
    double told[6];
    for (int i = 0; i < 6; i++) {
        clv_train_config config = config_of(&regression, dataset);
        config.loss = clv_loss_find(names[i]);
        config.lr = 1e-12;
        config.batch = ROWS;
        const clv_train_result result = train(&config, NULL, 0, NULL);
        told[i] = result.test.loss;
        assert_true(fabs(result.train_loss - told[i]) < 1e-5 * fabs(told[i]));
        for (int k = 0; k < i; k++) assert_true(told[k] != told[i]);
    }
    clv_dataset_destroy(dataset);
}

static clv_tensor *log_probabilities(clv_tensor *x, const clv_model *model) {
    return clv_log_softmax(clv_nn_linear(x, "fc", model->classes, NULL), -1);
}

/** Of logarithms of probabilities nll and cross_entropy are one, in training and evaluation. */
TEST(nll_is_cross_entropy) {
    static float x[ROWS * IN];
    static int32_t y[ROWS];
    const clv_model model = {.name = "classes", .build = log_probabilities, .input = {IN}, .classes = 4};
    clv_dataset *dataset = NULL;
    for (int i = 0; i < ROWS * IN; i++) x[i] = (float)(i * 5 % 11) / 5 - 1;
    for (int i = 0; i < ROWS; i++) y[i] = i * i % 4;
    clv_array inputs = {.type = CLV_DTYPE_F32, .shape = CLV_SHAPE(ROWS, IN), .data = x, .borrowed = true};
    clv_array targets = {.type = CLV_DTYPE_I32, .shape = CLV_SHAPE(ROWS), .data = y, .borrowed = true};
    assert_status(clv_dataset_from_arrays(runtime, &inputs, &targets, NULL, &dataset), CLV_OK, runtime);
    clv_train_result results[2];
    for (int i = 0; i < 2; i++) {
        clv_train_config config = config_of(&model, dataset);
        config.loss = clv_loss_find(i ? "nll" : "cross_entropy");
        results[i] = train(&config, NULL, 0, NULL);
    }
    assert_true(results[0].test.loss > 0.1);
    assert_true(fabs(results[0].test.loss - results[1].test.loss) < 1e-6);
    assert_true(fabs(results[0].train_loss - results[1].train_loss) < 1e-6);
    clv_dataset_destroy(dataset);
}

/** The mean of what evaluation tells is the mean of the squares, by the weights that are there. */
TEST(evaluation_tells_the_loss) {
    clv_dataset *dataset = numbers();
    clv_train_config config = config_of(&regression, dataset);
    float kept[64], x[IN], y[OUT];
    int n;
    const clv_train_result result = train(&config, kept, 64, &n);
    double sum = 0;
    for (int i = 0; i < ROWS; i++) {
        clv__dataset_sample(dataset, i, x);
        clv__dataset_target(dataset, i, y);
        for (int o = 0; o < OUT; o++) {
            double at = (double)kept[OUT * IN + o];
            for (int k = 0; k < IN; k++) at += (double)kept[o * IN + k] * (double)x[k];
            sum += (at - (double)y[o]) * (at - (double)y[o]);
        }
    }
    assert_true(fabs(result.test.loss - sum / (ROWS * OUT)) < 1e-6 * sum);
    clv_dataset_destroy(dataset);
}

// ---- a loss of one's own ------------------------------------------------------------------------------------------

static clv_tensor *squares(clv_tensor *output, clv_tensor *target, const clv_loss *loss) {
    return clv_mse_loss(output, target);
}

/** Absolute differences, times a factor that stands behind `user`. */
static clv_tensor *absolute(clv_tensor *output, clv_tensor *target, const clv_loss *loss) {
    clv_tensor *mean = clv_mean(clv_abs(clv_sub(output, target)), NULL, 0, false);
    return clv_mul_scalar(mean, *(const float *)loss->user);
}

TEST(a_loss_of_ones_own) {
    clv_dataset *dataset = numbers();
    float a[64], b[64];
    int n, m;
    const clv_loss own = {.name = "squares", .build = squares};
    clv_train_config config = config_of(&regression, dataset);
    const clv_train_result built_in = train(&config, a, 64, &n);
    config.loss = &own;
    const clv_train_result result = train(&config, b, 64, &m);
    assert_int_equal(n, m);
    assert_memory_equal(a, b, (size_t)n * sizeof *a); // the same bits
    assert_true(result.train_loss == built_in.train_loss);
    assert_true(isnan(result.test.loss)); // nobody said how it is told on the host
    const float two = 2;
    const clv_loss doubled = {.name = "absolute", .build = absolute, .user = &two};
    config.loss = &doubled;
    const double far = train(&config, NULL, 0, NULL).train_loss;
    config.epochs = 100;
    assert_true(train(&config, NULL, 0, NULL).train_loss < far / 4);
    clv_dataset_destroy(dataset);
}

static clv_tensor *forgotten(clv_tensor *output, clv_tensor *target, const clv_loss *loss) {
    return NULL;
}

static clv_tensor *of_another_graph(clv_tensor *output, clv_tensor *target, const clv_loss *loss) {
    return (clv_tensor *)(uintptr_t)loss->user;
}

static clv_tensor *no_result(clv_tensor *x, const clv_model *model) {
    return (clv_tensor *)(uintptr_t)model->user;
}

/** A function of the caller's that returns what is no tensor of the graph is told as such. */
TEST(what_functions_return) {
    clv_dataset *dataset = numbers();
    clv_trainer *trainer = NULL;
    clv_graph *graph = clv__test_graph(runtime);
    clv_tensor *foreign = clv_input(graph, "foreign", CLV_DTYPE_F32, CLV_SHAPE(1));
    const clv_loss losses[] = {{.name = "own", .build = forgotten},
                               {.name = "own", .build = of_another_graph, .user = foreign}};
    static const char *const what[] = {"NULL", "a tensor of another graph"};
    char said[256];
    for (int i = 0; i < 2; i++) {
        clv_train_config config = config_of(&regression, dataset);
        config.loss = &losses[i];
        assert_status(clv_trainer_create(runtime, &config, &trainer), CLV_E_VALUE, runtime);
        snprintf(said, sizeof said,
                 "loss 'own': its function 'build' returned %s; it must return a tensor of the graph that "
                 "output and target are of",
                 what[i]);
        assert_string_equal(clv_runtime_error(runtime), said);
        clv_model model = regression;
        model.build = no_result;
        model.user = i ? foreign : NULL;
        config = config_of(&model, dataset);
        assert_status(clv_trainer_create(runtime, &config, &trainer), CLV_E_VALUE, runtime);
        snprintf(said, sizeof said,
                 "model 'line' built %s; its function must return a tensor of its input's graph", what[i]);
        assert_string_equal(clv_runtime_error(runtime), said);
    }
    clv_graph_destroy(graph);
    clv_dataset_destroy(dataset);
}

/** A checkpoint goes on with the loss it was begun with, and no other. */
TEST(the_loss_is_a_setting) {
    clv_dataset *dataset = numbers();
    const clv_loss own = {.name = "squares", .build = squares};
    clv_train_config config = config_of(&regression, dataset);
    config.loss = &own;
    config.epochs = 1;
    config.checkpoint = "train_losses.checkpoint";
    train(&config, NULL, 0, NULL);
    config.checkpoint = NULL;
    config.resume = "train_losses.checkpoint";
    config.epochs = 2;
    train(&config, NULL, 0, NULL);
    config.loss = NULL;
    clv_trainer *trainer = clv__test_trainer(runtime, &config);
    assert_status(clv_trainer_run(trainer), CLV_E_VALUE, runtime);
    assert_holds(clv_runtime_error(runtime), "was written with loss 'squares', now it is ''");
    clv_trainer_destroy(trainer);
    remove("train_losses.checkpoint");
    clv_dataset_destroy(dataset);
}

TEST(losses_by_name) {
    assert_null(clv_loss_get(-1));
    assert_null(clv_loss_get(1000));
    assert_null(clv_loss_find("none"));
    assert_null(clv_loss_find(NULL));
    for (int i = 0; clv_loss_get(i); i++)
        assert_ptr_equal(clv_loss_find(clv_loss_get(i)->name), clv_loss_get(i));
    assert_string_equal(clv__loss_for(&regression)->name, "mse");
    assert_string_equal(clv__loss_for(clv_model_find("gpt"))->name, "cross_entropy");
}

// ---- texts ----------------------------------------------------------------------------------------------------------

static clv_dataset *text(int64_t context) {
    static const char letters[] =
        "to be or not to be, that is the question: whether it is nobler in the mind to be";
    clv_vocabulary *vocabulary = NULL;
    clv_dataset *dataset = NULL;
    assert_status(
        clv_vocabulary_create(runtime, CLV_VOCABULARY_CHARACTERS, letters, sizeof letters - 1, &vocabulary),
        CLV_OK, runtime);
    const clv_text_config config = {.vocabulary = vocabulary, .context = context, .stride = 3};
    assert_status(clv_dataset_text(runtime, letters, sizeof letters - 1, &config, &dataset), CLV_OK, runtime);
    clv_vocabulary_destroy(vocabulary);
    return dataset;
}

/** A text is learnt by heart; in parts and over two devices it is the same training up to rounding. */
TEST(texts_are_learnt) {
    enum { MOST = 40000 };
    static float whole[MOST], parts[MOST];
    clv_dataset *dataset = text(8);
    const clv_gpt_config sizes = {.vocabulary = clv_dataset_info_get(dataset).classes,
                                  .context = 8,
                                  .width = 12,
                                  .heads = 3,
                                  .layers = 2};
    const clv_model model = clv_gpt_model(&sizes);
    clv_train_config config = config_of(&model, dataset);
    config.optimizer = (clv_optimizer_config){.kind = CLV_SGD};
    config.batch = 6;
    config.epochs = 1;
    int n, m;
    const clv_train_result first = train(&config, whole, MOST, &n);
    assert_int_equal(first.test.targets, first.test.count * 8);
    assert_true(first.test.accuracy > 0 && first.test.accuracy < 0.6);
    config.micro_batches = 3;
    train(&config, parts, MOST, &m);
    assert_int_equal(n, m);
    for (int i = 0; i < n; i++) assert_true(fabsf(whole[i] - parts[i]) < 1e-5f);
    config.micro_batches = 0;
    config.optimizer = (clv_optimizer_config){.kind = CLV_ADAMW};
    config.lr = 0.01;
    config.epochs = 60;
    const clv_train_result last = train(&config, NULL, 0, NULL);
    assert_true(last.test.accuracy > 0.9 && last.test.loss < 0.5 && last.test.loss < first.test.loss);
    clv_dataset_destroy(dataset);
}

// ---- what does not fit --------------------------------------------------------------------------------------------

static void expect_refused(const clv_model *model, const clv_dataset *dataset, clv_status status,
                           const char *sentence) {
    clv_train_config config = config_of(model, dataset);
    clv_trainer *trainer = NULL;
    assert_status(clv_trainer_create(runtime, &config, &trainer), status, runtime);
    assert_holds(clv_runtime_error(runtime), sentence);
    assert_null(trainer);
}

static clv_tensor *four_scores(clv_tensor *x, const clv_model *model) {
    return clv_nn_linear(clv_flatten(x, 1), "fc", 4, NULL);
}

TEST(what_does_not_fit) {
    clv_dataset *of_numbers = numbers(), *of_images = small_dataset(runtime, 6), *of_text = text(8);
    const clv_gpt_config sizes = {.vocabulary = 5, .context = 8, .width = 12, .heads = 3, .layers = 1};
    const clv_model few = clv_gpt_model(&sizes), gpt = *clv_model_find("gpt");
    clv_model one = regression, wide = regression, image = small_model;
    one.target[0] = 0;
    wide.input[0] = 4;
    image.classes = 0;
    expect_refused(&one, of_numbers, CLV_E_SHAPE,
                   "targets of shape [2] do not fit model 'line', which wants []");
    expect_refused(&wide, of_numbers, CLV_E_SHAPE,
                   "samples of shape [3] do not fit model 'line', which wants [4]");
    expect_refused(&small_model, of_text, CLV_E_DTYPE,
                   "samples of i32 do not fit model 'small', which wants f32");
    expect_refused(&gpt, of_images, CLV_E_DTYPE, "samples of f32 do not fit model 'gpt', which wants i32");
    expect_refused(&gpt, of_text, CLV_E_SHAPE,
                   "samples of shape [8] do not fit model 'gpt', which wants [128]");
    expect_refused(&few, of_text, CLV_E_VALUE, "classes do not fit model 'gpt', which has 5");
    expect_refused(&image, of_images, CLV_E_VALUE,
                   "labels of 3 classes do not fit model 'small', which gives numbers");
    const clv_model other = {.name = "other", .build = four_scores, .input = {1, 4, 4}, .classes = 3};
    clv_model four = small_model;
    four.name = "four", four.build = four_scores;
    expect_refused(
        &four, of_images, CLV_E_SHAPE,
        "model 'four' has 3 classes and built [5,4]: the last dimension must have a score for each");
    clv_predictor *predictor = NULL;
    const clv_predictor_config how = {.device = host, .model = &other};
    assert_status(clv_predictor_create(runtime, &how, &predictor), CLV_E_SHAPE, runtime);
    assert_null(predictor);
    const clv_loss without = {.name = "empty"};
    clv_train_config config = config_of(&regression, of_numbers);
    clv_trainer *trainer = NULL;
    config.loss = &without;
    assert_status(clv_trainer_create(runtime, &config, &trainer), CLV_E_VALUE, runtime);
    assert_holds(clv_runtime_error(runtime), "loss 'empty' has no function 'build'");
    clv_dataset_destroy(of_numbers);
    clv_dataset_destroy(of_images);
    clv_dataset_destroy(of_text);
}

TEST_MAIN(setup, end_runtime)
