// SPDX-License-Identifier: Apache-2.0
// Metrics of an evaluation: against values by hand, over several batches, ties and scores that are not numbers among them; one of a
// program's own; of any target; and what is refused. The model gives back its samples, so results are known.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "train/small.h"

TEST_RUNTIME
static clv_device *host;

FIXTURE(setup) {
    runtime = clv__test_runtime(&(clv_runtime_config){.no_opencl = true});
    host = clv__test_device(runtime, "host");
}

static clv_tensor *as_it_is(clv_tensor *x, const clv_model *model) {
    return clv_mul_scalar(x, 1);
}

/** Evaluate samples as their own results. */
static clv_status evaluate(const clv_model *model, const clv_dataset *dataset, int64_t batch,
                           const clv_metric *const *metrics, int n, clv_metrics *out) {
    const clv_predictor_config config = {
        .device = host, .model = model, .batch = batch, .metrics = metrics, .n_metrics = n};
    clv_predictor *predictor = NULL;
    clv_status status = clv_predictor_create(runtime, &config, &predictor);
    if (status == CLV_OK) status = clv_evaluate(predictor, dataset, NULL, NULL, out);
    clv_predictor_destroy(predictor);
    return status;
}

static clv_dataset *dataset_of(clv_shape x_shape, float *x, clv_dtype type, clv_shape y_shape, void *y) {
    clv_array samples = {.type = CLV_DTYPE_F32, .shape = x_shape, .data = x, .borrowed = true};
    clv_array targets = {.type = type, .shape = y_shape, .data = y, .borrowed = true};
    clv_dataset *dataset = NULL;
    assert_status(clv_dataset_from_arrays(runtime, &samples, &targets, NULL, &dataset), CLV_OK, runtime);
    return dataset;
}

static void close_to(double got, double wanted) {
    if (!(fabs(got - wanted) <= 1e-7 * fmax(1, fabs(wanted)))) fail_msg("%.12g, not %.12g", got, wanted);
}

// ---- classes ----------------------------------------------------------------------------------------------------

enum { CLASSES = 7, ROWS = 8 };

TEST(of_classes) {
    static float scores[ROWS][CLASSES] = {
        {9, 8, 7, 6, 5, 4, 3},    // 0 right, and among the five
        {9, 8, 7, 6, 5, 4, 3},    // 4 the fifth
        {9, 8, 7, 6, 5, 4, 3},    // 5 the sixth
        {1, 1, 1, 1, 1, 1, 1},    // 4: of equal ones the first are larger
        {1, 1, 1, 1, 1, 1, 1},    // 5
        {-1, -2, -3, 4, 5, 6, 7}, // 6 right
        {1, 2, 3, 4, 5, 6, 0},    // 1 is the fifth
        {1, 2, 3, 4, 5, 6, 0},    // 0 is not
    };
    static int32_t labels[ROWS] = {0, 4, 5, 4, 5, 6, 1, 0};
    const clv_model model = {.name = "same", .build = as_it_is, .input = {CLASSES}, .classes = CLASSES};
    clv_dataset *dataset =
        dataset_of(CLV_SHAPE(ROWS, CLASSES), &scores[0][0], CLV_DTYPE_I32, CLV_SHAPE(ROWS), labels);
    const clv_metric *metrics[] = {clv_metric_find("top5"), clv_metric_find("accuracy")};
    clv_metrics told;
    for (int64_t batch = 1; batch <= ROWS + 1; batch++) {
        assert_status(evaluate(&model, dataset, batch, metrics, 2, &told), CLV_OK, runtime);
        assert_int_equal(told.n_values, 2);
        assert_string_equal(told.values[0].name, "top5");
        assert_string_equal(told.values[1].name, "accuracy");
        close_to(told.values[0].value, 5.0 / ROWS);
        close_to(told.values[1].value, 2.0 / ROWS);
        assert_true(told.values[1].value == told.accuracy);
    }
    scores[0][6] = NAN; // no class of such scores is told right
    assert_status(evaluate(&model, dataset, 3, metrics, 2, &told), CLV_OK, runtime);
    close_to(told.values[0].value, 4.0 / ROWS);
    close_to(told.values[1].value, 1.0 / ROWS);
    assert_true(told.values[1].value == told.accuracy);
    clv_dataset_destroy(dataset);
}

/** Of several labels a sample each counts alike. */
TEST(of_several_labels) {
    static float scores[3][2][6] = {{{1, 2, 3, 4, 5, 6}, {1, 2, 3, 4, 5, 6}},
                                    {{1, 2, 3, 4, 5, 6}, {1, 2, 3, 4, 5, 6}},
                                    {{1, 2, 3, 4, 5, 6}, {6, 5, 4, 3, 2, 1}}};
    static int32_t labels[3][2] = {{5, 0}, {1, 0}, {5, 0}}; // right, not; fifth, not; right, right
    const clv_loss_sizes sizes = {.n = 3, .output = 12, .target = 2};
    const clv_metric *accuracy = clv_metric_find("accuracy"), *top5 = clv_metric_find("top5");
    close_to(accuracy->sum(&scores[0][0][0], labels, &sizes, accuracy), 3.0 / 2);
    close_to(top5->sum(&scores[0][0][0], labels, &sizes, top5), 4.0 / 2);
    assert_true(!accuracy->finish && !top5->finish); // the means are told as they are
}

// ---- of each class ----------------------------------------------------------------------------------------------

static void close_class(clv_class_metrics one, int64_t targets, int64_t told, int64_t right, double precision,
                        double recall, double f1) {
    assert_int_equal(one.targets, targets);
    assert_int_equal(one.told, told);
    assert_int_equal(one.right, right);
    close_to(one.precision, precision);
    close_to(one.recall, recall);
    close_to(one.f1, f1);
}

/** Against sklearn's precision_recall_fscore_support; of class 3 there is nothing, and it is not among the means. */
TEST(of_each_class) {
    enum { OF = 4, SAMPLES = 7 };
    static const int8_t told[SAMPLES] = {0, 0, 1, 1, 2, 0, 1};
    static int32_t labels[SAMPLES] = {0, 0, 0, 1, 1, 2, 1};
    static float scores[SAMPLES][OF];
    const clv_model model = {.name = "same", .build = as_it_is, .input = {OF}, .classes = OF};
    clv_dataset *dataset = NULL;
    memset(scores, 0, sizeof scores);
    for (int i = 0; i < SAMPLES; i++) scores[i][told[i]] = 1;
    dataset = dataset_of(CLV_SHAPE(SAMPLES, OF), &scores[0][0], CLV_DTYPE_I32, CLV_SHAPE(SAMPLES), labels);
    clv_confusion *confusion = NULL;
    assert_status(clv_confusion_create(runtime, &model, NULL, &confusion), CLV_OK, runtime);
    const clv_predictor_config config = {.device = host, .model = &model, .batch = 3, .confusion = confusion};
    clv_metrics metrics;
    clv_predictor *predictor = clv__test_predictor(runtime, &config);
    assert_status(clv_evaluate(predictor, dataset, NULL, NULL, &metrics), CLV_OK, runtime);
    assert_int_equal(metrics.not_finite, 0);
    assert_int_equal(clv_confusion_info_get(confusion).classes, OF);
    assert_false(clv_confusion_info_get(confusion).of_labels);
    close_class(clv_confusion_get(confusion, 0), 3, 3, 2, 2.0 / 3, 2.0 / 3, 2.0 / 3);
    close_class(clv_confusion_get(confusion, 1), 3, 3, 2, 2.0 / 3, 2.0 / 3, 2.0 / 3);
    close_class(clv_confusion_get(confusion, 2), 1, 1, 0, 0, 0, 0);
    close_class(clv_confusion_get(confusion, 3), 0, 0, 0, 0, 0, 0);
    close_class(clv_confusion_get(confusion, OF), 0, 0, 0, 0, 0, 0);
    close_class(clv_confusion_info_get(confusion).mean, 7, 7, 4, 4.0 / 9, 4.0 / 9, 4.0 / 9);
    assert_int_equal(clv_confusion_count(confusion, 0, 1), 1);
    assert_int_equal(clv_confusion_count(confusion, 1, 2), 1);
    assert_int_equal(clv_confusion_count(confusion, 2, 0), 1);
    assert_int_equal(clv_confusion_count(confusion, 2, 1), 0);
    assert_int_equal(clv_confusion_count(confusion, OF, 0), -1);
    scores[6][3] = NAN; // told to be of no class, and counted
    assert_status(clv_evaluate(predictor, dataset, NULL, NULL, &metrics), CLV_OK, runtime);
    assert_int_equal(metrics.not_finite, 1);
    close_class(clv_confusion_get(confusion, 1), 6, 5, 3, 3.0 / 5, 3.0 / 6,
                6.0 / 11); // added to what was there
    clv_predictor_destroy(predictor);
    clv_confusion_destroy(confusion);
    clv_dataset_destroy(dataset);
}

TEST(of_each_label) {
    static const float results[3][2] = {{1, -1}, {0.5f, 2}, {-3, 0}}, labels[3][2] = {{1, 1}, {0, 1}, {0, 0}};
    const clv_model model = {.name = "same", .build = as_it_is, .input = {2}, .target = {2}};
    const clv_model other = {.name = "same", .build = as_it_is, .input = {3}, .classes = 3};
    const clv_model many = {.name = "same",
                            .build = as_it_is,
                            .input = {CLV_CONFUSION_CLASSES + 1},
                            .classes = CLV_CONFUSION_CLASSES + 1};
    clv_confusion *confusion = NULL;
    clv_predictor *predictor = NULL;
    assert_status(clv_confusion_create(runtime, &model, NULL, &confusion), CLV_OK, runtime);
    clv_confusion_add(confusion, &results[0][0], labels, 3);
    assert_true(clv_confusion_info_get(confusion).of_labels);
    close_class(clv_confusion_get(confusion, 0), 1, 2, 1, 0.5, 1, 2.0 / 3);
    close_class(clv_confusion_get(confusion, 1), 2, 1, 1, 1, 0.5, 2.0 / 3);
    close_class(clv_confusion_info_get(confusion).mean, 3, 3, 2, 0.75, 0.75, 2.0 / 3);
    assert_int_equal(clv_confusion_count(confusion, 0, 0), -1);
    // numbers are no labels, and a model's confusions are no other's
    clv_predictor_config config = {.device = host, .model = &model, .confusion = confusion};
    assert_status(clv_predictor_create(runtime, &config, &predictor), CLV_E_VALUE, runtime);
    assert_string_equal(clv_runtime_error(runtime),
                        "target 'labels' of model 'same' gives numbers: there are no classes to count");
    config.loss = clv_loss_find("bce_with_logits");
    predictor = clv__test_predictor(runtime, &config);
    clv_predictor_destroy(predictor);
    config.loss = NULL;
    config.model = &other;
    assert_status(clv_predictor_create(runtime, &config, &predictor), CLV_E_VALUE, runtime);
    clv_confusion_destroy(confusion);
    assert_status(clv_confusion_create(runtime, &many, NULL, &confusion), CLV_OK, runtime);
    assert_int_equal(clv_confusion_count(confusion, 0, 0), -1);
    clv_confusion_destroy(confusion);
    assert_status(clv_confusion_create(runtime, &many, "kind", &confusion), CLV_E_NOT_FOUND, runtime);
    assert_string_equal(clv_runtime_error(runtime), "model 'same' has no target 'kind'; it has 'labels'");
    assert_null(confusion);
}

TEST(the_most_probable) {
    const float logits[5] = {1, 3, -INFINITY, 3, 2}, nan[2] = {1, NAN}, none[2] = {-INFINITY, -INFINITY};
    int32_t which[5];
    double p[5];
    assert_int_equal(clv_top_classes(logits, 5, 3, which, p), 3);
    assert_int_equal(which[0], 1); // the first of equal ones
    assert_int_equal(which[1], 3);
    assert_int_equal(which[2], 4);
    const double sum = 2 + exp(-1) + exp(-2);
    close_to(p[0], 1 / sum);
    close_to(p[2], exp(-1) / sum);
    assert_int_equal(clv_top_classes(logits, 5, 9, which, NULL), 5);
    assert_int_equal(which[4], 2);
    assert_int_equal(clv_top_classes(nan, 2, 1, which, p), 0);
    assert_int_equal(clv_top_classes(none, 2, 1, which, p), 0);
    assert_int_equal(clv_top_classes(logits, 5, 0, which, p), 0);
}

// ---- numbers ----------------------------------------------------------------------------------------------------

static double half_the_largest(const float *output, const void *target, const clv_loss_sizes *sizes,
                               const clv_metric *metric) {
    double sum = 0;
    for (int64_t i = 0; i < sizes->n; i++) {
        float largest = output[i * sizes->output];
        for (int64_t k = 1; k < sizes->output; k++) largest = fmaxf(largest, output[i * sizes->output + k]);
        sum += (double)largest;
    }
    return sum * *(const double *)metric->user;
}

static double negative(double mean, const clv_metric *metric) {
    return -mean - *(const double *)metric->user;
}

TEST(of_numbers) {
    enum { N = 5, OUT = 3 };
    static float results[N * OUT], targets[N * OUT];
    static const double half = 0.5;
    double absolute = 0, squares = 0, largest = 0;
    for (int i = 0; i < N * OUT; i++) {
        results[i] = (float)(i * 5 % 7) - 3;
        targets[i] = (float)(i * 3 % 4) / 2;
        const double off = (double)results[i] - (double)targets[i];
        absolute += fabs(off);
        squares += off * off;
    }
    for (int i = 0; i < N; i++)
        largest += (double)fmaxf(results[i * OUT], fmaxf(results[i * OUT + 1], results[i * OUT + 2]));
    const clv_model model = {.name = "same", .build = as_it_is, .input = {OUT}, .target = {OUT}};
    clv_dataset *dataset = dataset_of(CLV_SHAPE(N, OUT), results, CLV_DTYPE_F32, CLV_SHAPE(N, OUT), targets);
    const clv_metric own = {.name = "own", .sum = half_the_largest, .finish = negative, .user = &half};
    const clv_metric *metrics[] = {clv_metric_find("rmse"), &own, clv_metric_find("mae")};
    clv_metrics told;
    for (int64_t batch = 1; batch <= N; batch++) {
        assert_status(evaluate(&model, dataset, batch, metrics, 3, &told), CLV_OK, runtime);
        close_to(told.values[0].value, sqrt(squares / (N * OUT)));
        close_to(told.values[1].value, -0.5 * largest / N - 0.5);
        close_to(told.values[2].value, absolute / (N * OUT));
        close_to(told.loss, squares / (N * OUT));
    }
    assert_status(evaluate(&model, dataset, 2, NULL, 0, &told), CLV_OK, runtime);
    assert_int_equal(told.n_values, 0);
    clv_dataset_destroy(dataset);
}

/** Of one number of a target, by its name: the mean over that alone. */
TEST(of_one_number) {
    static float results[6] = {1, 100, 2, 200, 3, 300}, targets[6] = {1.5f, 90, 2, 230, 1, 300};
    static const char *const names[] = {"rooms", "price"};
    clv_model model = {.name = "same", .build = as_it_is, .input = {2}, .target = {2}, .number_names = names};
    clv_dataset *dataset = dataset_of(CLV_SHAPE(3, 2), results, CLV_DTYPE_F32, CLV_SHAPE(3, 2), targets);
    clv_metric price = *clv_metric_find("mae"), rooms = *clv_metric_find("rmse"), other = price;
    price.target = "price", rooms.target = "rooms", other.target = "cost";
    const clv_metric *metrics[] = {&price, &rooms, clv_metric_find("mae")}, *wrong = &other,
                     *twice[] = {&price, &price};
    clv_metrics told;
    for (int64_t batch = 1; batch <= 3; batch++) {
        assert_status(evaluate(&model, dataset, batch, metrics, 3, &told), CLV_OK, runtime);
        close_to(told.values[0].value, (10 + 30 + 0) / 3.);
        close_to(told.values[1].value, sqrt((0.25 + 0 + 4) / 3));
        close_to(told.values[2].value, (0.5 + 10 + 0 + 30 + 2 + 0) / 6);
        assert_string_equal(told.values[0].target, "price");
        assert_string_equal(told.values[1].target, "rooms");
        assert_null(told.values[2].target);
    }
    assert_status(evaluate(&model, dataset, 2, &wrong, 1, &told), CLV_E_NOT_FOUND, runtime);
    assert_string_equal(clv_runtime_error(runtime),
                        "metric 'mae': model 'same' has no target 'cost'; it has 'rooms', 'price'");
    assert_status(evaluate(&model, dataset, 2, twice, 2, &told), CLV_E_VALUE, runtime);
    assert_string_equal(clv_runtime_error(runtime), "metric 'mae' is asked for twice");
    model.target[0] = 1; // names of a number, and results of two: nothing is read beyond
    other.targets = CLV_METRIC_ANY, other.target = "rooms";
    assert_status(evaluate(&model, dataset, 2, &wrong, 1, &told), CLV_E_SHAPE, runtime);
    clv_dataset_destroy(dataset);
}

// ---- of any target ----------------------------------------------------------------------------------------------

/** Results are the inputs. */
static void both_as_they_are(clv_tensor *const *in, clv_tensor **out, const clv_model *model) {
    for (int i = 0; i < 2; i++) out[i] = clv_mul_scalar(in[i], 1);
}

static const clv_port two_inputs[] = {{.name = "scores", .dims = {CLASSES}},
                                      {.name = "numbers", .dims = {2}}};
static const clv_port two_targets[] = {{.name = "kind", .classes = CLASSES}, {.name = "price", .dims = {2}}};
static const clv_model two = {.name = "two",
                              .build_all = both_as_they_are,
                              .inputs = two_inputs,
                              .n_inputs = 2,
                              .targets = two_targets,
                              .n_targets = 2};

/** Metrics of the second target, beside the first one's, against sums by hand. */
TEST(of_any_target) {
    static float scores[ROWS * CLASSES], numbers[ROWS * 2], prices[ROWS * 2];
    static int32_t kinds[ROWS];
    double absolute = 0, squares = 0;
    int right = 0;
    for (int i = 0; i < ROWS; i++) {
        kinds[i] = i % CLASSES;
        scores[i * CLASSES + (i < 5 ? kinds[i] : 6)] = 1;
        right += i < 5 || kinds[i] == 6;
        for (int k = 2 * i; k < 2 * i + 2; k++) {
            numbers[k] = (float)(k * 5 % 7) - 3, prices[k] = (float)(k * 3 % 4) / 2;
            absolute += fabs((double)numbers[k] - (double)prices[k]);
            squares += ((double)numbers[k] - (double)prices[k]) * ((double)numbers[k] - (double)prices[k]);
        }
    }
    clv_array arrays[] = {{NULL, CLV_DTYPE_F32, CLV_SHAPE(ROWS, CLASSES), scores, true},
                          {NULL, CLV_DTYPE_F32, CLV_SHAPE(ROWS, 2), numbers, true},
                          {NULL, CLV_DTYPE_F32, CLV_SHAPE(ROWS, 2), prices, true},
                          {NULL, CLV_DTYPE_I32, CLV_SHAPE(ROWS), kinds, true}};
    const clv_field fields[] = {
        {.name = "scores", .array = &arrays[0]},
        {.name = "numbers", .array = &arrays[1]},
        {.name = "price", .role = CLV_PORT_TARGET, .array = &arrays[2]},
        {.name = "kind", .role = CLV_PORT_TARGET, .array = &arrays[3], .classes = CLASSES}};
    clv_dataset *dataset = NULL;
    assert_status(clv_dataset_from_fields(runtime, NULL, fields, 4, NULL, &dataset), CLV_OK, runtime);
    clv_metric mae = *clv_metric_find("mae"), rmse = *clv_metric_find("rmse"),
               kind = *clv_metric_find("accuracy");
    mae.target = rmse.target = "price", kind.target = "kind";
    const clv_metric *metrics[] = {&mae, clv_metric_find("top5"), &rmse, &kind};
    clv_metrics told;
    for (int64_t batch = 1; batch <= ROWS; batch += 2) {
        assert_status(evaluate(&two, dataset, batch, metrics, 4, &told), CLV_OK, runtime);
        assert_int_equal(told.n_values, 4);
        assert_string_equal(told.values[0].target, "price");
        assert_null(told.values[1].target);
        assert_string_equal(told.values[3].target, "kind");
        close_to(told.values[0].value, absolute / (ROWS * 2));
        close_to(told.values[2].value, sqrt(squares / (ROWS * 2)));
        close_to(told.values[3].value, (double)right / ROWS);
        assert_true(told.values[3].value == told.each[0].accuracy);
    }
    mae.target = "weight";
    assert_status(evaluate(&two, dataset, 4, metrics, 1, &told), CLV_E_NOT_FOUND, runtime);
    assert_string_equal(clv_runtime_error(runtime),
                        "metric 'mae': model 'two' has no target 'weight'; it has 'kind', 'price'");
    mae.target = "kind";
    assert_status(evaluate(&two, dataset, 4, metrics, 1, &told), CLV_E_VALUE, runtime);
    assert_string_equal(
        clv_runtime_error(runtime),
        "metric 'mae' is for numbers, and target 'kind' holds classes: take accuracy or top5");
    metrics[0] = clv_metric_find("accuracy"); // of the first target, which `kind` names too
    assert_status(evaluate(&two, dataset, 4, metrics, 4, &told), CLV_E_VALUE, runtime);
    assert_string_equal(clv_runtime_error(runtime), "metric 'accuracy' is asked for twice");
    clv_dataset_destroy(dataset);
}

TEST(by_name) {
    assert_true(clv_metric_get(3) && !clv_metric_get(4));
    for (int i = 0; clv_metric_get(i); i++)
        assert_ptr_equal(clv_metric_find(clv_metric_get(i)->name), clv_metric_get(i));
    assert_null(clv_metric_get(4));
    assert_null(clv_metric_get(-1));
    assert_null(clv_metric_find("loss"));
    assert_null(clv_metric_find(NULL));
    assert_true(clv_metric_find("top5")->larger_is_better && !clv_metric_find("rmse")->larger_is_better);
}

TEST(refusals) {
    static float x[4] = {0};
    static int32_t y[2] = {0};
    const clv_model classes = {.name = "classes", .build = as_it_is, .input = {2}, .classes = 2};
    const clv_model numbers = {.name = "numbers", .build = as_it_is, .input = {2}, .target = {2}};
    const clv_model less = {.name = "less", .build = as_it_is, .input = {2}, .target = {1}};
    clv_dataset *dataset = dataset_of(CLV_SHAPE(2, 2), x, CLV_DTYPE_I32, CLV_SHAPE(2), y);
    const clv_metric *mae = clv_metric_find("mae"), *top5 = clv_metric_find("top5"),
                     *accuracy = clv_metric_find("accuracy");
    clv_metric nameless = *mae, loss = *mae, empty = *mae;
    nameless.name = NULL, loss.name = "loss", empty.sum = NULL;
    const struct {
        const clv_model *model;
        const clv_metric *metrics[3];
        int n;
        clv_status status;
        const char *said;
    } refused[] = {
        {&numbers,
         {top5},
         1,
         CLV_E_VALUE,
         "metric 'top5' is for models that give classes, and 'numbers' gives numbers: take mae or rmse"},
        {&classes,
         {accuracy, mae},
         2,
         CLV_E_VALUE,
         "metric 'mae' is for models that give numbers, and 'classes' gives classes: take accuracy or "
         "top5"},
        {&classes, {accuracy, top5, accuracy}, 3, CLV_E_VALUE, "metric 'accuracy' is asked for twice"},
        {&classes,
         {accuracy, NULL},
         2,
         CLV_E_VALUE,
         "metric 2 of those asked for needs a name and a function `sum`"},
        {&numbers,
         {&nameless},
         1,
         CLV_E_VALUE,
         "metric 1 of those asked for needs a name and a function `sum`"},
        {&numbers, {&empty}, 1, CLV_E_VALUE, "metric 1 of those asked for needs a name and a function `sum`"},
        {&numbers,
         {&loss},
         1,
         CLV_E_VALUE,
         "a metric cannot be called 'loss', which evaluation gives in any case"},
        {&numbers, {mae}, -1, CLV_E_VALUE, "-1 metrics: there can be 0 to 8"},
        {&numbers, {mae}, 9, CLV_E_VALUE, "9 metrics: there can be 0 to 8"},
        {&less,
         {mae},
         1,
         CLV_E_SHAPE,
         "metric 'mae' wants 1 numbers of each sample, and model 'less' gives 2"},
    };
    clv_metrics told;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        assert_status(evaluate(refused[i].model, dataset, 2, refused[i].metrics, refused[i].n, &told),
                      refused[i].status, runtime);
        assert_string_equal(clv_runtime_error(runtime), refused[i].said);
    }
    assert_status(evaluate(&numbers, dataset, 2, NULL, 1, &told), CLV_E_VALUE, runtime);
    clv_dataset_destroy(dataset);
}

TEST_MAIN(setup, end_runtime)
