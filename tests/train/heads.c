// SPDX-License-Identifier: Apache-2.0
// Several inputs and several outputs: the numbers of PyTorch's training (tests/golden/make_heads.py), on one device, in micro-batches,
// over replicas, placed, in mixed precision; what a checkpoint keeps of the losses; and what is refused.
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cleave/check.h"
#include "data/dataset.h"
#include "train/pytorch.h"
#include "train/small.h"

enum { STEPS = 20, N = 11, WORDS = 5, KINDS = 3, PLACES = 2, MOST = 512 };

static clv_runtime *runtime;
static clv_archive *golden;
static clv_dataset *dataset;

static void build(clv_tensor *const *inputs, clv_tensor **outputs, const clv_model *model) {
    clv_tensor *both[] = {inputs[0], clv_nn_embedding(inputs[1], "words", WORDS, 3, NULL)};
    clv_tensor *x = clv_relu(clv_nn_linear(clv_concat(both, 2, 1), "body", 8, NULL));
    outputs[0] = clv_nn_linear(x, "kind", model->targets[0].classes, NULL);
    outputs[1] = clv_nn_linear(x, "place", PLACES, NULL);
}

static const clv_port inputs[] = {{.name = "row", .dims = {6}},
                                  {.name = "word", .dtype = CLV_DTYPE_I32, .classes = WORDS}};
static const clv_port targets[] = {{.name = "kind", .classes = KINDS}, {.name = "place", .dims = {PLACES}}};
static const clv_model model = {
    .name = "heads", .build_all = build, .inputs = inputs, .n_inputs = 2, .targets = targets, .n_targets = 2};

/** In another order than the model's. */
static const clv_field fields[] = {{.name = "place", .role = CLV_PORT_TARGET},
                                   {.name = "word"},
                                   {.name = "kind", .role = CLV_PORT_TARGET},
                                   {.name = "row"}};
static const clv_train_loss losses[] = {{.target = "place", .weight = 0.5}};

static const char *before(void) {
    return CLV_TEST_BINARY_DIR "/train_heads_before.safetensors";
}

FIXTURE(setup) {
    runtime = clv__test_runtime(NULL);
    pytorch_read_arrays(runtime, CLV_TEST_SOURCE_DIR "/tests/golden/heads.safetensors", before(), &golden);
    assert_status(clv_dataset_from_fields(runtime, golden, fields, 4, NULL, &dataset), CLV_OK, runtime);
}

FIXTURE(teardown) {
    clv_dataset_destroy(dataset);
    clv_archive_destroy(golden);
    clv_runtime_destroy(runtime);
}

static const struct golden_case {
    const char *name;
    clv_optimizer_config optimizer;
    double lr;
} cases[] = {
    {"sgd", {.momentum = 0.9f}, 0.1},
    {"adamw", {.kind = CLV_ADAMW, .weight_decay = 0.1f}, 0.02},
};
enum { N_CASES = sizeof cases / sizeof *cases };

static clv_train_config config_of(const struct golden_case *c, clv_device *device) {
    return (clv_train_config){.device = device,
                              .model = &model,
                              .losses = losses,
                              .n_losses = 1,
                              .train = dataset,
                              .test = dataset,
                              .batch = 4,
                              .steps = STEPS,
                              .no_shuffle = true,
                              .optimizer = c->optimizer,
                              .lr = c->lr,
                              .weights = before()};
}

static const float *find(const struct golden_case *c, const char *what) {
    char key[256];
    snprintf(key, sizeof key, "%s/%.100s", c->name, what);
    const clv_array *found = clv_archive_find(golden, key);
    assert_non_null(found);
    return found->data;
}

static void near(const char *what, double got, double want, double within) {
    if (!(fabs(got - want) <= within * fmax(0.1, fabs(want))))
        fail_msg("%s is %.9g, not %.9g", what, got, want);
}

typedef struct watching {
    const float *losses;
    int64_t steps;
    double within;
} watching;

static bool on_step(void *user, const clv_train_step *step) {
    watching *w = user;
    assert_int_equal(step->step, ++w->steps);
    near("loss", step->loss, w->losses[step->step - 1], w->within);
    return true;
}

static void weights_as_pytorch(const struct golden_case *c, clv_session *session, double within) {
    int compared = 0;
    for (int i = 0; i < clv_session_info_get(session).n_tensors; i++) {
        const clv_session_tensor tensor = clv_session_get(session, i);
        float values[MOST];
        char key[128];
        if (tensor.category != CLV_PARAMETERS) continue;
        snprintf(key, sizeof key, "after/%s", tensor.name);
        const float *want = find(c, key);
        assert_status(clv_session_read(session, i, values, tensor.bytes), CLV_OK, runtime);
        for (size_t j = 0; j < tensor.bytes / sizeof *values; j++)
            near(tensor.name, (double)values[j], (double)want[j], within);
        compared++;
    }
    assert_int_equal(compared, 7);
}

static void metrics_as_pytorch(const struct golden_case *c, const clv_metrics *got, double within) {
    const float *want = find(c, "evaluated");
    const int32_t correct = *(const int32_t *)(const void *)find(c, "correct");
    assert_int_equal(got->n_each, 2);
    assert_string_equal(got->each[0].name, "kind");
    assert_string_equal(got->each[1].name, "place");
    near("evaluated loss", got->loss, (double)want[0], within);
    near("evaluated kind", got->each[0].loss, (double)want[1], within);
    near("evaluated place", got->each[1].loss, (double)want[2], within);
    assert_int_equal(got->count, N);
    assert_int_equal(got->each[0].targets, N);
    assert_int_equal(got->each[1].targets, N * PLACES);
    assert_int_equal(got->targets, N); // those with classes
    assert_int_equal(got->correct, correct);
    assert_int_equal(got->each[0].correct, correct);
    assert_int_equal(got->each[1].correct, 0);
    assert_true(got->accuracy == (double)correct / N && isnan(got->each[1].accuracy));
}

static const struct of_training {
    double losses, weights; // how near they are to PyTorch's: twenty steps in float
} usual = {2e-5, 5e-5}, mixed = {2e-2, 5e-2};

/** Train as PyTorch did, and see that every device held what was predicted. */
static void train(const struct golden_case *c, clv_train_config config, const struct of_training *within) {
    watching seen = {find(c, "losses"), 0, within->losses};
    config.user = &seen;
    config.on_step = on_step;
    clv_trainer *trainer = small_trained(runtime, &config);
    assert_int_equal(seen.steps, STEPS);
    weights_as_pytorch(c, clv_trainer_info_get(trainer).session, within->weights);
    const clv_train_result result = clv_trainer_result(trainer);
    metrics_as_pytorch(c, &result.test, within->weights);
    clv_trainer_destroy(trainer);
}

static void on_device(const char *spec) {
    clv_device *device = clv__test_device_or_skip(runtime, spec);
    for (int i = 0; i < N_CASES; i++) {
        clv_train_config config = config_of(&cases[i], device);
        train(&cases[i], config, &usual);
        config.micro_batches = 2;
        train(&cases[i], config, &usual);
    }
    clv_train_config config = config_of(&cases[0], device);
    config.precision = CLV_PRECISION_MIXED;
    train(&cases[0], config, &mixed);
    config.precision = CLV_PRECISION_MIXED_BF16;
    config.micro_batches = 2;
    train(&cases[0], config, &mixed);
}

TEST_ON_DEVICES(on_device)

TEST(test_two_devices) {
    static const char *const devices[] = {"gpu|accelerator|cpu", "cpu:1|host"};
    const double shares[] = {0.75, 0.25};
    clv__test_device_or_skip(runtime, devices[0]);
    for (int i = 0; i < N_CASES; i++) {
        clv_train_config config = config_of(&cases[i], NULL);
        config.placement = (clv_placement){.replicas = devices, .n_replicas = 2};
        train(&cases[i], config, &usual);
        config.placement.shares = shares;
        config.micro_batches = 2;
        train(&cases[i], config, &usual);
        // parts: layers that lie somewhere, beside others that are replicated
        static const char *const parts[] = {"place=host", "body=cpu:1|host",
                                            "words=gpu|accelerator|cpu,kind=host"};
        for (int k = 0; k < (i == 0 ? 3 : 1); k++) {
            config.placement.place = parts[k];
            config.micro_batches = 1 + k % 2;
            train(&cases[i], config, &usual);
        }
        config.micro_batches = 2;
        config.placement = (clv_placement){.place = "kind=host,place=host,*=gpu|accelerator|cpu"};
        train(&cases[i], config, &usual);
    }
    clv_train_config config = config_of(&cases[0], NULL);
    config.placement = (clv_placement){.replicas = devices, .n_replicas = 2, .measure_shares = true};
    train(&cases[0], config, &usual);
    config.placement.place = "place=host";
    train(&cases[0], config, &usual);
}

// ---- without a trainer ------------------------------------------------------------------------------------------------

/** The same bits from arrays, and nothing is read that an array does not have. */
static void arrays_know_their_sizes(clv_predictor *predictor, const float *logits, const float *where) {
    const clv_array *row = clv_archive_find(golden, "row"), *word = clv_archive_find(golden, "word");
    const clv_array *arrays[] = {row, word};
    clv_array results[2], wrong = *row;
    assert_status(clv_predictor_forward_arrays(predictor, arrays, results), CLV_OK, runtime);
    assert_memory_equal(results[0].data, logits, N * KINDS * sizeof(float));
    assert_true(results[1].shape.dims[0] == N && results[1].shape.dims[1] == PLACES);
    near("place", (double)((const float *)results[1].data)[5], (double)where[5], 0);
    for (int i = 0; i < 2; i++) clv_array_reset(&results[i]);
    const struct {
        clv_shape shape;
        clv_dtype type;
        clv_status status;
    } mistakes[] = {
        {.shape = row->shape, .type = CLV_DTYPE_I32, .status = CLV_E_DTYPE},
        {.shape = {0}, .type = CLV_DTYPE_F32, .status = CLV_E_SHAPE},
        {.shape = CLV_SHAPE(N, 0), .type = CLV_DTYPE_F32, .status = CLV_E_SHAPE},
        {.shape = CLV_SHAPE(N, row->shape.dims[1] - 1), .type = CLV_DTYPE_F32, .status = CLV_E_SHAPE},
        {.shape = CLV_SHAPE(N - 1, row->shape.dims[1]), .type = CLV_DTYPE_F32, .status = CLV_E_SHAPE}};
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        wrong.shape = mistakes[i].shape;
        wrong.type = mistakes[i].type;
        arrays[0] = &wrong;
        assert_status(clv_predictor_forward_arrays(predictor, arrays, results), mistakes[i].status, runtime);
        assert_true(!results[0].data && !results[1].data);
    }
}

static void forward_as_pytorch(const struct golden_case *c, clv_session *session,
                               const clv_placement *placement, const char *path) {
    float logits[N * KINDS], where[N * PLACES];
    const void *samples[] = {clv_archive_find(golden, "row")->data, clv_archive_find(golden, "word")->data};
    clv_predictor_config config = {.model = &model, .batch = 4, .losses = losses, .n_losses = 1};
    clv_metrics metrics;
    if (placement) config.placement = *placement;
    assert_status(clv_weights_save(session, path), CLV_OK, runtime);
    clv_predictor *predictor = clv__test_predictor(runtime, &config);
    assert_status(clv_weights_load(clv_predictor_info_get(predictor).session, path), CLV_OK, runtime);
    assert_status(clv_predictor_forward_all(predictor, samples, 2, N, (float *[]){logits, where}, 2), CLV_OK,
                  runtime);
    for (int i = 0; i < N * KINDS; i++) near("logit", (double)logits[i], (double)find(c, "logits")[i], 1e-4);
    for (int i = 0; i < N * PLACES; i++) near("place", (double)where[i], (double)find(c, "places")[i], 1e-4);
    memset(where, 0, sizeof where);
    assert_status(clv_predictor_forward_all(predictor, samples, 2, 3, (float *[]){NULL, where}, 2), CLV_OK,
                  runtime);
    near("place", (double)where[5], (double)find(c, "places")[5], 1e-4);
    assert_true(where[6] == 0); // of no sample that was asked for
    assert_int_equal(clv_predictor_info_get(predictor).results[0].dims[0], KINDS);
    assert_int_equal(clv_predictor_info_get(predictor).results[1].dims[0], PLACES);
    assert_int_equal(clv_predictor_info_get(predictor).n_results, 2);
    assert_status(clv_evaluate(predictor, dataset, NULL, NULL, &metrics), CLV_OK, runtime);
    metrics_as_pytorch(c, &metrics, 1e-4);
    assert_status(clv_predictor_forward(predictor, samples[0], N, logits), CLV_E_VALUE, runtime);
    assert_string_equal(clv_runtime_error(runtime),
                        "model 'heads' has 2 inputs and 2 outputs, and arrays are given for 1 and 1");
    assert_status(clv_predictor_forward_all(predictor, (const void *[]){samples[0], NULL}, 2, N,
                                            (float *[]){logits, where}, 2),
                  CLV_E_VALUE, runtime);
    assert_string_equal(clv_runtime_error(runtime),
                        "clv_predictor_forward_all: no samples for input 'word' of model 'heads'");
    arrays_know_their_sizes(predictor, logits, where);
    clv_predictor_destroy(predictor);
    unlink(path);
}

TEST(test_predictor) {
    static const char *const devices[] = {"gpu|accelerator|cpu", "cpu:1|host"};
    const clv_placement two = {.replicas = devices, .n_replicas = 2},
                        parts = {.replicas = devices, .n_replicas = 2, .place = "body=cpu:1|host"};
    clv_device *device = clv__test_device(runtime, "host");
    const clv_train_config config = config_of(&cases[0], device);
    clv_trainer *trainer = clv__test_trainer(runtime, &config);
    assert_status(clv_trainer_run(trainer), CLV_OK, runtime);
    const char *path = CLV_TEST_BINARY_DIR "/train_heads_after.safetensors";
    forward_as_pytorch(&cases[0], clv_trainer_info_get(trainer).session, NULL, path);
    if (clv_device_find(runtime, devices[0], &device) == CLV_OK) {
        forward_as_pytorch(&cases[0], clv_trainer_info_get(trainer).session, &two, path);
        forward_as_pytorch(&cases[0], clv_trainer_info_get(trainer).session, &parts, path);
    }
    clv_trainer_destroy(trainer);
}

static clv_tensor *find_tensor(clv_graph *graph, const char *name) {
    clv_tensor *found = clv_graph_find(graph, name);
    if (!found) fail_msg("no '%s' in the graph", name);
    return found;
}

/** PyTorch's formula, of the classes' target alone. */
static clv_tensor *smoothed(clv_tensor *output, clv_tensor *target, const clv_loss *loss) {
    clv_tensor *all = clv_mean(clv_log_softmax(output, 1), NULL, 0, false);
    return clv_sub(clv_mul_scalar(clv_cross_entropy(output, target), 0.8f), clv_mul_scalar(all, 0.2f));
}

static double train_loss(clv_train_config config) {
    clv_trainer *trainer = clv__test_trainer(runtime, &config);
    assert_status(clv_trainer_run(trainer), CLV_OK, runtime);
    const double loss = clv_trainer_result(trainer).train_loss;
    clv_trainer_destroy(trainer);
    return loss;
}

/** Label smoothing is of the targets whose losses know of it; mixing is of one input and one target. */
TEST(test_labels) {
    static const clv_loss by_hand = {.name = "smoothed", .build = smoothed};
    const clv_train_loss with[] = {losses[0], {.target = "kind", .loss = &by_hand}};
    clv_device *host = clv__test_device(runtime, "host");
    clv_train_config config = config_of(&cases[0], host), other = config;
    const double hard = train_loss(config);
    config.label_smoothing = 0.2;
    other.losses = with;
    other.n_losses = 2;
    near("smoothed", train_loss(config), train_loss(other), 1e-6);
    assert_true(fabs(train_loss(config) - hard) > 1e-3);
    config.mixup = 0.2;
    clv_trainer *trainer = NULL;
    assert_int_equal(clv_trainer_create(runtime, &config, &trainer), CLV_E_VALUE);
    assert_holds(clv_runtime_error(runtime),
                 "mixup needs one input and one target: model 'heads' has 2 and 2");
}

/** Graphs have the ports' names; advice and a comparison of devices know of all of them. */
TEST(test_beside_the_trainer) {
    clv_device *other;
    clv_graph *graph;
    clv_train_advice advice;
    clv_device *host = clv__test_device(runtime, "host");
    const clv_train_config config = config_of(&cases[0], host);
    assert_status(clv_pass_graph(runtime, &config, CLV_PASS_TRAIN, 4, &graph), CLV_OK, runtime);
    assert_int_equal(clv_tensor_dtype(find_tensor(graph, "word")), CLV_DTYPE_I32);
    assert_int_equal(clv_tensor_dtype(find_tensor(graph, "kind")), CLV_DTYPE_I32);
    assert_int_equal(clv_tensor_numel(find_tensor(graph, "place")), 4 * PLACES);
    clv_graph_destroy(graph);
    assert_status(clv_pass_graph(runtime, &config, CLV_PASS_PREDICT, 4, &graph), CLV_OK, runtime);
    assert_int_equal(clv_tensor_numel(find_tensor(graph, "kind")), 4 * KINDS); // its result
    assert_null(clv_graph_find(graph, "logits"));
    clv_graph_destroy(graph);
    assert_status(clv_pass_advise(runtime, &config, CLV_PASS_TRAIN, &advice), CLV_OK, runtime);
    assert_int_equal(advice.largest_batch, 4);
    other = clv__test_device_or_skip(runtime, "gpu|accelerator|cpu");
    clv_compare_report *report;
    const clv_compare_config compared = {.model = &model, .a = host, .b = other};
    assert_status(clv_compare(runtime, &compared, &report), CLV_OK, runtime);
    assert_int_equal(report->first, -1);
    clv_free(report);
}

// ---- checkpoints ------------------------------------------------------------------------------------------------------

static clv_tensor *absolute(clv_tensor *output, clv_tensor *target, const clv_loss *loss) {
    return clv_mean(clv_abs(clv_sub(output, target)), NULL, 0, false);
}
static const clv_loss own = {.name = "absolute", .build = absolute};

/** Data of the same shapes, with another value in one row. */
static void expect_other_data(clv_train_config *config, const char *path) {
    char said[512];
    const clv_array *place = clv_archive_find(golden, "place");
    float *value = place->data, was = *value;
    *value = was + 1; // the dataset reads the archive's own
    clv_trainer *trainer = clv__test_trainer(runtime, config);
    assert_status(clv_trainer_run(trainer), CLV_E_VALUE, runtime);
    snprintf(said, sizeof said,
             "checkpoint '%s' was written by a training on other data of %d samples; go on with those, or "
             "begin with its parameters (clv_train_config.weights)",
             path, N);
    assert_string_equal(clv_runtime_error(runtime), said);
    clv_trainer_destroy(trainer);
    *value = was;
    trainer = clv__test_trainer(runtime, config);
    assert_status(clv_trainer_run(trainer), CLV_OK, runtime);
    clv_trainer_destroy(trainer);
}

TEST(test_resume) {
    const char *path = CLV_TEST_BINARY_DIR "/train_heads.checkpoint";
    float whole[MOST], parts[MOST];
    int n = 0, m = 0;
    clv_device *host = clv__test_device(runtime, "host");
    clv_train_config config = config_of(&cases[1], host);
    clv_trainer *trainer = clv__test_trainer(runtime, &config);
    assert_status(clv_trainer_run(trainer), CLV_OK, runtime);
    assert_status(small_read(clv_trainer_info_get(trainer).session, whole, MOST, &n), CLV_OK, runtime);
    clv_trainer_destroy(trainer);
    config.steps = 7;
    config.checkpoint = path;
    trainer = clv__test_trainer(runtime, &config);
    assert_status(clv_trainer_run(trainer), CLV_OK, runtime);
    clv_trainer_destroy(trainer);
    config.steps = STEPS;
    config.checkpoint = config.weights = NULL;
    config.resume = path;
    trainer = clv__test_trainer(runtime, &config);
    assert_status(clv_trainer_run(trainer), CLV_OK, runtime);
    assert_status(small_read(clv_trainer_info_get(trainer).session, parts, MOST, &m), CLV_OK, runtime);
    clv_trainer_destroy(trainer);
    assert_int_equal(n, m);
    assert_memory_equal(whole, parts, (size_t)n * sizeof *whole);
    static const struct {
        clv_train_loss loss;
        const char *now;
    } others[] = {
        {{.target = "place", .weight = 0.25}, "kind: cross_entropy, place: mse * 0.25"},
        {{.target = "place", .loss = &own, .weight = 0.5}, "kind: cross_entropy, place: absolute * 0.5"},
        {{.target = "kind", .weight = 1}, ""},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        char said[512];
        config.losses = &others[i].loss;
        trainer = clv__test_trainer(runtime, &config);
        assert_status(clv_trainer_run(trainer), CLV_E_VALUE, runtime);
        snprintf(said, sizeof said,
                 "checkpoint '%s' was written with losses 'kind: cross_entropy, place: mse * 0.5', now it is "
                 "'%s'; "
                 "go on with the settings it was written with",
                 path, others[i].now);
        assert_string_equal(clv_runtime_error(runtime), said);
        clv_trainer_destroy(trainer);
    }
    config.losses = losses;
    expect_other_data(&config, path);
    unlink(path);
}

// ---- what one model and one dataset have to do with each other ---------------------------------------------------------

/** Fields for a model of one input and one output, and the other way round. */
TEST(test_simple) {
    float numbers[8 * 24], bits[2][MOST];
    int32_t labels[8];
    int n[2];
    clv_dataset *plain = small_dataset(runtime, 8), *named;
    clv_device *host = clv__test_device(runtime, "host");
    for (int i = 0; i < 8; i++) {
        clv__dataset_sample(plain, i, numbers + (ptrdiff_t)i * 24);
        labels[i] = clv__dataset_label(plain, i);
    }
    clv_array x = {.type = CLV_DTYPE_F32, .shape = CLV_SHAPE(8, 1, 4, 6), .data = numbers, .borrowed = true},
              y = {.type = CLV_DTYPE_I32, .shape = CLV_SHAPE(8), .data = labels, .borrowed = true};
    const clv_field both[] = {{.name = "labels", .role = CLV_PORT_TARGET, .array = &y},
                              {.name = "x", .array = &x}};
    assert_status(clv_dataset_from_fields(runtime, NULL, both, 2, NULL, &named), CLV_OK, runtime);
    for (int i = 0; i < 2; i++) {
        clv_train_config config = small_config(&small_plain, i ? named : plain, 3, 2);
        config.device = host;
        clv_trainer *trainer = small_trained(runtime, &config);
        assert_status(small_read(clv_trainer_info_get(trainer).session, bits[i], MOST, &n[i]), CLV_OK,
                      runtime);
        clv_trainer_destroy(trainer);
    }
    assert_int_equal(n[0], n[1]);
    assert_memory_equal(bits[0], bits[1], (size_t)n[0] * sizeof **bits);
    clv_dataset_destroy(named);
    clv_dataset_destroy(plain);
}

/** A trainer that is refused, and says why. */
static void refused(const clv_train_config *config, clv_status status, const char *said) {
    clv_trainer *trainer = NULL;
    assert_status(clv_trainer_create(runtime, config, &trainer), status, runtime);
    assert_null(trainer);
    assert_string_equal(clv_runtime_error(runtime), said);
}

TEST(test_other_fields) {
    static float numbers[64];
    static int32_t whole[64] = {[3] = 6}, below[64] = {-1};
    const struct {
        const char *name;
        clv_port_role role;
        clv_array array;
        clv_status status;
        const char *said;
    } bad[] = {
        {"word",
         CLV_PORT_INPUT,
         {.type = CLV_DTYPE_F32, .shape = CLV_SHAPE(N), .data = numbers},
         CLV_E_DTYPE,
         "input 'word': samples of f32 do not fit model 'heads', which wants i32"},
        {"word",
         CLV_PORT_INPUT,
         {.type = CLV_DTYPE_I32, .shape = CLV_SHAPE(N), .data = whole},
         CLV_E_VALUE,
         "input 'word': indices up to 6 do not fit model 'heads', which takes 0 to 4"},
        {"word",
         CLV_PORT_INPUT,
         {.type = CLV_DTYPE_I32, .shape = CLV_SHAPE(N), .data = below},
         CLV_E_VALUE,
         "input 'word': some indices are below 0, model 'heads' takes 0 to 4"},
        {"row",
         CLV_PORT_INPUT,
         {.type = CLV_DTYPE_F32, .shape = CLV_SHAPE(N, 5), .data = numbers},
         CLV_E_SHAPE,
         "input 'row': samples of shape [5] do not fit model 'heads', which wants [6]"},
        {"place",
         CLV_PORT_TARGET,
         {.type = CLV_DTYPE_F32, .shape = CLV_SHAPE(N), .data = numbers},
         CLV_E_SHAPE,
         "target 'place': targets of shape [] do not fit model 'heads', which wants [2]"},
        {"place",
         CLV_PORT_TARGET,
         {.type = CLV_DTYPE_I32, .shape = CLV_SHAPE(N, 2), .data = whole},
         CLV_E_VALUE,
         "target 'place': labels of 7 classes do not fit model 'heads', which gives numbers: numpy mends it "
         "with "
         "y.astype('float32')"},
        {"kind",
         CLV_PORT_TARGET,
         {.type = CLV_DTYPE_F32, .shape = CLV_SHAPE(N), .data = numbers},
         CLV_E_VALUE,
         "target 'kind': targets that are numbers do not fit model 'heads', which is a classifier: "
         "labels are "
         "whole numbers; numpy mends it with y.astype('int64')"},
        {"kind",
         CLV_PORT_TARGET,
         {.type = CLV_DTYPE_I32, .shape = CLV_SHAPE(N), .data = whole},
         CLV_E_VALUE,
         "target 'kind': labels of 7 classes do not fit model 'heads', which has 3"},
        {"word",
         CLV_PORT_TARGET,
         {.type = CLV_DTYPE_I32, .shape = CLV_SHAPE(N), .data = whole},
         CLV_E_VALUE,
         "model 'heads' wants input 'word', and the dataset has it as a target"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        clv_field changed[4];
        clv_array arrays[4];
        for (int k = 0; k < 4; k++) {
            arrays[k] = *clv_archive_find(golden, fields[k].name);
            changed[k] = fields[k];
            if (!strcmp(bad[i].name, fields[k].name)) {
                arrays[k] = bad[i].array;
                changed[k].role = bad[i].role;
            }
            arrays[k].borrowed = true;
            changed[k].array = &arrays[k];
        }
        clv_dataset *other;
        assert_status(clv_dataset_from_fields(runtime, NULL, changed, 4, NULL, &other), CLV_OK, runtime);
        clv_train_config config = config_of(&cases[0], NULL);
        config.train = other;
        refused(&config, bad[i].status, bad[i].said);
        config.train = dataset;
        config.test = other;
        refused(&config, bad[i].status, bad[i].said);
        clv_dataset_destroy(other);
    }
}

/** Fields too few, and too many. */
TEST(test_other_names) {
    clv_dataset *other;
    clv_field more[] = {fields[0], fields[1], fields[2], fields[3], {.name = "sgd/logits"}};
    clv_train_config config = config_of(&cases[0], NULL);
    assert_status(clv_dataset_from_fields(runtime, golden, fields, 3, NULL, &other), CLV_OK, runtime);
    config.train = other;
    refused(&config, CLV_E_NOT_FOUND, "model 'heads' wants input 'row', and the dataset has 'word'");
    clv_dataset_destroy(other);
    assert_status(clv_dataset_from_fields(runtime, golden, fields + 1, 3, NULL, &other), CLV_OK, runtime);
    config.train = other;
    refused(&config, CLV_E_NOT_FOUND, "model 'heads' wants target 'place', and the dataset has 'kind'");
    clv_dataset_destroy(other);
    assert_status(clv_dataset_from_fields(runtime, golden, more, 5, NULL, &other), CLV_OK, runtime);
    config.train = other;
    refused(&config, CLV_E_VALUE,
            "the dataset has input 'sgd/logits', and model 'heads' takes 'row', 'word'");
    clv_dataset_destroy(other);
    other = small_dataset(runtime, 8);
    config.train = other;
    refused(&config, CLV_E_VALUE,
            "model 'heads' has 2 inputs and 2 targets, and the dataset one of each; clv_dataset_from_fields "
            "makes one "
            "of several");
    clv_dataset_destroy(other);
    config = small_config(&small_plain, dataset, 4, 1);
    refused(&config, CLV_E_NOT_FOUND, "model 'small' wants input 'x', and the dataset has 'word', 'row'");
}

TEST(test_other_losses) {
    const struct {
        clv_train_loss losses[2];
        int n;
        clv_status status;
        const char *said;
    } bad[] = {
        {{{.target = "plaice"}},
         1,
         CLV_E_NOT_FOUND,
         "losses: model 'heads' has no target 'plaice'; it has 'kind', 'place'"},
        {{{.weight = 2}}, 1, CLV_E_VALUE, "losses: one of them names no target"},
        {{{.target = "kind"}, {.target = "kind"}}, 2, CLV_E_VALUE, "losses: target 'kind' is named twice"},
        {{{.target = "kind", .weight = INFINITY}},
         1,
         CLV_E_VALUE,
         "losses: the weight of target 'kind' is inf, it must be finite"},
        {{{.target = "kind", .weight = -0.5}},
         1,
         CLV_E_VALUE,
         "losses: the weight of target 'kind' is -0.5, it must be at least 0"},
        {{{0}}, -1, CLV_E_VALUE, "losses: given, and n_losses is -1"},
    };
    clv_train_config config = config_of(&cases[0], NULL);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        config.losses = bad[i].losses;
        config.n_losses = bad[i].n;
        refused(&config, bad[i].status, bad[i].said);
    }
    config.losses = NULL;
    config.n_losses = 2;
    refused(&config, CLV_E_VALUE, "losses: NULL, and n_losses is 2");
    config.n_losses = 0;
    config.loss = &own;
    refused(&config, CLV_E_VALUE, "loss is for one target, and model 'heads' has 2: give losses");
    config.losses = losses;
    config.n_losses = 1;
    refused(&config, CLV_E_VALUE, "loss and losses are given; one of them is enough");
}

static void build_half(clv_tensor *const *in, clv_tensor **outputs, const clv_model *of) {
    build(in, outputs, of);
    outputs[1] = NULL;
}

static void build_turned(clv_tensor *const *in, clv_tensor **outputs, const clv_model *of) {
    build(in, outputs, of);
    outputs[0] = clv_mean(outputs[0], (int[]){0}, 1, false);
}

static clv_tensor *build_one(clv_tensor *x, const clv_model *of) {
    return x;
}

/** Models that are none. */
TEST(test_other_models) {
    static const clv_port twice[] = {{.name = "row", .dims = {6}}, {.name = "row", .dims = {6}}}, nameless[2],
                          half[] = {{.name = "row", .dtype = CLV_DTYPE_F16, .dims = {6}}, {.name = "word"}},
                          turned[] = {{.name = "row", .dims = {-6}}, {.name = "word"}},
                          few[] = {{.name = "kind", .classes = -1}, {.name = "place", .dims = {2}}},
                          numbers[] = {{.name = "kind", .dtype = CLV_DTYPE_I32},
                                       {.name = "place", .dims = {2}}};
    clv_model bad[12];
    static const char *const said[] = {
        "model 'heads' built no output for target 'place'",
        "model 'heads' built [3] for target 'kind'; it must have a row for each of 4 samples",
        "model 'heads' has both build and build_all; give one of them",
        "model 'heads' has neither build nor build_all; give one of them",
        "model 'heads' has build and named ports; these go with build_all",
        "a model with build_all has no name",
        "model 'heads' has two ports of the name 'row'",
        "model 'heads': an input has no name",
        "model 'heads': input 'row' is of f16; f32 or i32 is wanted",
        "model 'heads': a dimension of input 'row' is -6",
        "model 'heads': target 'kind' has -1 classes",
        "model 'heads': target 'kind' has 0 classes and is of i32; classes are i32, numbers f32",
    };
    for (int i = 0; i < 12; i++) bad[i] = model;
    bad[0].build_all = build_half;
    bad[1].build_all = build_turned;
    bad[2].build = build_one;
    bad[3].build_all = NULL;
    bad[4].build_all = NULL;
    bad[4].build = build_one;
    bad[5].name = NULL;
    bad[6].inputs = twice;
    bad[7].inputs = nameless;
    bad[8].inputs = half;
    bad[9].inputs = turned;
    bad[10].targets = few;
    bad[11].targets = numbers;
    for (int i = 0; i < 12; i++) {
        clv_train_config config = config_of(&cases[0], NULL);
        clv_predictor *predictor = NULL;
        clv_trainer *trainer = NULL;
        config.model = &bad[i];
        assert_true(clv_trainer_create(runtime, &config, &trainer) != CLV_OK);
        assert_null(trainer);
        assert_string_equal(clv_runtime_error(runtime), said[i]);
        assert_true(clv_predictor_create(runtime, &(clv_predictor_config){.model = &bad[i], .batch = 4},
                                         &predictor) != CLV_OK);
        assert_null(predictor);
        assert_string_equal(clv_runtime_error(runtime), said[i]);
    }
    clv_model none = model;
    none.n_targets = 0;
    clv_train_config config = config_of(&cases[0], NULL);
    config.model = &none;
    refused(&config, CLV_E_VALUE, "model 'heads' has build_all and 0 targets; 1 to 16 are wanted");
}

/** Samples that are not finite: of which input. */
TEST(test_not_finite) {
    clv_field changed[4];
    clv_array arrays[4];
    float *numbers = NULL;
    for (int k = 0; k < 4; k++) {
        arrays[k] = *clv_archive_find(golden, fields[k].name);
        arrays[k].borrowed = true;
        changed[k] = fields[k];
        changed[k].array = &arrays[k];
    }
    numbers = arrays[3].data;
    const float was = numbers[6];
    clv_dataset *other;
    numbers[6] = NAN; // the second sample's first
    assert_status(clv_dataset_from_fields(runtime, NULL, changed, 4, NULL, &other), CLV_OK, runtime);
    clv_train_config config = config_of(&cases[0], NULL);
    config.train = other;
    config.test = NULL;
    clv_trainer *trainer = clv__test_trainer(runtime, &config);
    assert_status(clv_trainer_run(trainer), CLV_E_NOT_FINITE, runtime);
    assert_holds(clv_runtime_error(runtime),
                 "the samples of step 1 themselves are not finite: element 6 of the batch's input 'row' is "
                 "nan; row 1 of the data is the first with such a value");
    clv_trainer_destroy(trainer);
    numbers[6] = was;
    float *places = arrays[0].data;
    const float place = places[3];
    places[3] = INFINITY;
    trainer = clv__test_trainer(runtime, &config);
    assert_status(clv_trainer_run(trainer), CLV_E_NOT_FINITE, runtime);
    assert_holds(clv_runtime_error(runtime),
                 "the targets of step 1 themselves are not finite: element 3 of the batch's target 'place' "
                 "is inf; row ");
    places[3] = place;
    clv_trainer_destroy(trainer);
    clv_dataset_destroy(other);
}

/** Metrics are of the first target, what is monitored is the loss of all; averages are read by every output. */
TEST(test_metrics_and_averages) {
    const char *best = CLV_TEST_BINARY_DIR "/train_heads_best.safetensors";
    const clv_metric *accuracy = clv_metric_find("accuracy"), *mae = clv_metric_find("mae");
    clv_train_config config = config_of(&cases[0], NULL);
    clv_metrics told;
    config.metrics = &accuracy;
    config.n_metrics = 1;
    config.patience = STEPS;
    config.best = best;
    config.ema_decay = 0.5;
    clv_trainer *trainer = small_trained(runtime, &config);
    const clv_train_result result = clv_trainer_result(trainer);
    clv_trainer_destroy(trainer);
    assert_true(result.test.values[0].value == result.test.each[0].accuracy);
    const clv_predictor_config of_best = {.model = &model, .losses = losses, .n_losses = 1};
    clv_predictor *predictor = clv__test_predictor(runtime, &of_best);
    assert_status(clv_weights_load(clv_predictor_info_get(predictor).session, best), CLV_OK, runtime);
    assert_status(clv_evaluate(predictor, dataset, NULL, NULL, &told), CLV_OK, runtime);
    near("the best weights' loss", told.loss, result.best_value, 1e-5);
    clv_predictor_destroy(predictor);
    config.metrics = &mae;
    refused(&config, CLV_E_VALUE,
            "metric 'mae' is for models that give numbers, and 'heads' gives classes: take accuracy or "
            "top5");
    unlink(best);
}

/** What is monitored may be of any target: the best epoch's weights give its value again. */
TEST(test_monitor_of_a_target) {
    const char *best = CLV_TEST_BINARY_DIR "/train_heads_best.safetensors";
    clv_metric mae = *clv_metric_find("mae");
    const clv_metric *metrics[] = {clv_metric_find("accuracy"), &mae};
    clv_train_config config = config_of(&cases[0], NULL);
    clv_metrics told;
    mae.target = "place";
    config.metrics = metrics;
    config.n_metrics = 2;
    config.patience = STEPS;
    config.monitor = "place:mae";
    config.best = best;
    clv_trainer *trainer = small_trained(runtime, &config);
    const clv_train_result result = clv_trainer_result(trainer);
    clv_trainer_destroy(trainer);
    assert_true(result.best_epoch > 0);
    const clv_predictor_config of_best = {
        .model = &model, .losses = losses, .n_losses = 1, .metrics = metrics, .n_metrics = 2};
    clv_predictor *predictor = clv__test_predictor(runtime, &of_best);
    assert_status(clv_weights_load(clv_predictor_info_get(predictor).session, best), CLV_OK, runtime);
    assert_status(clv_evaluate(predictor, dataset, NULL, NULL, &told), CLV_OK, runtime);
    assert_string_equal(told.values[1].target, "place");
    near("the best weights' mae", told.values[1].value, result.best_value, 1e-5);
    double sum = 0; // by hand
    float out[PLACES * N];
    const void *in[] = {clv_archive_find(golden, "row")->data, clv_archive_find(golden, "word")->data};
    const float *wanted = clv_archive_find(golden, "place")->data;
    if (clv_archive_find(golden, "word")->type == CLV_DTYPE_I32) {
        assert_status(clv_predictor_forward_all(predictor, in, 2, N, (float *[]){NULL, out}, 2), CLV_OK,
                      runtime);
        for (int i = 0; i < PLACES * N; i++) sum += fabs((double)out[i] - (double)wanted[i]);
        near("mae by hand", told.values[1].value, sum / (PLACES * N), 1e-5);
    }
    clv_predictor_destroy(predictor);
    config.monitor = "place:mea";
    refused(&config, CLV_E_NOT_FOUND,
            "there is no 'place:mea' to monitor: it is 'loss' or one of the metrics asked for; did you mean "
            "'place:mae'?");
    unlink(best);
}

TEST_MAIN(setup, teardown)
