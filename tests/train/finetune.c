// SPDX-License-Identifier: Apache-2.0
// Fine-tuning: parts of a model frozen, as PyTorch did it step by step; a new head on weights that are there; what is frozen keeps its
// bits, takes no gradient and no optimizer state, on one device, on several, and when a training is resumed.
#include <math.h>
#include <unistd.h>

#include "base/nearest.h"
#include "train/pytorch.h"
#include "train/small.h"

enum { STEPS = 9, TENSORS = 7 }; // conv1.weight, norm's two and its two statistics, fc's two

static clv_runtime *runtime;
static clv_archive *golden;
static clv_dataset *dataset;

static const clv_model model = {.name = "small", .build = pytorch_build, .input = {1, 4, 6}, .classes = 5};

static const char *before(void) {
    return CLV_TEST_BINARY_DIR "/train_finetune_before.safetensors";
}

FIXTURE(setup) {
    runtime = clv__test_runtime(NULL);
    pytorch_read(runtime, CLV_TEST_SOURCE_DIR "/tests/golden/finetune.safetensors", before(), &golden,
                 &dataset);
}

FIXTURE(teardown) {
    clv_dataset_destroy(dataset);
    clv_archive_destroy(golden);
    clv_runtime_destroy(runtime);
}

/** A training of the golden file. */
typedef struct golden_case {
    const char *name, *freeze;
    clv_optimizer_config optimizer;
    double lr;
    int trained; // parameters that are
    int states;  // of the optimizer for each
} golden_case;

static const golden_case cases[] = {
    {"head", "conv1,norm", {.kind = CLV_SGD, .momentum = 0.9f, .weight_decay = 0.01f}, 0.1, 2, 1},
    {"first", "conv1.*", {.kind = CLV_ADAM, .weight_decay = 0.02f}, 0.01, 4, 2},
    {"norm", "nor?.*", {.kind = CLV_SGD, .clip_norm = 0.5f}, 0.1, 3, 0},
    {"bias", "fc.bias", {.kind = CLV_ADAMW, .weight_decay = 0.1f}, 0.02, 4, 2},
};

static const clv_array *find(const char *name, const char *part, const char *tensor) {
    char key[256];
    snprintf(key, sizeof key, "%s%s%s%s%s", name, *name ? "/" : "", part, *tensor ? "/" : "", tensor);
    return clv_archive_find(golden, key);
}

static void near(const char *what, double got, double want, double scale) {
    // Nine steps in float against double; Adam divides by roots of small numbers.
    if (!(fabs(got - want) <= 5e-5 * fmax(scale, fabs(want))))
        fail_msg("%s is %.9g, not %.9g", what, got, want);
}

typedef struct watching {
    const float *losses;
    int64_t steps;
} watching;

static bool on_step(void *user, const clv_train_step *step) {
    watching *w = user;
    assert_int_equal(step->step, ++w->steps);
    near("loss", step->loss, w->losses[step->step - 1], 0.01);
    return true;
}

static clv_train_config config_of(const golden_case *c, clv_device *device) {
    return (clv_train_config){.device = device,
                              .model = &model,
                              .train = dataset,
                              .batch = 4,
                              .epochs = 3,
                              .no_shuffle = true,
                              .optimizer = c->optimizer,
                              .lr = c->lr,
                              .freeze = c->freeze,
                              .weights = before()};
}

/** Run it, and see that every device held what was predicted. */
static clv_trainer *run(const clv_train_config *config) {
    return small_trained(runtime, config);
}

static bool is_frozen(const golden_case *c, const char *tensor) {
    return !find(c->name, "gradient", tensor) && strncmp(tensor, "norm.running_", 13) != 0;
}

/** Weights as PyTorch's after the training; those that are frozen to the bit as they were. */
static void compare_weights(const golden_case *c, clv_session *session) {
    int compared = 0, states = 0;
    for (int i = 0; i < clv_session_info_get(session).n_tensors; i++) {
        clv_session_tensor tensor = clv_session_get(session, i);
        float values[512];
        states += tensor.category == CLV_OPTIMIZER;
        if (tensor.category != CLV_PARAMETERS) continue;
        assert_status(clv_session_read(session, i, values, tensor.bytes), CLV_OK, runtime);
        const clv_array *after = find(c->name, "after", tensor.name),
                        *first = find("", "before", tensor.name);
        assert_int_equal(clv_array_bytes(after), tensor.bytes);
        if (is_frozen(c, tensor.name)) assert_memory_equal(values, first->data, tensor.bytes);
        for (size_t j = 0; j < tensor.bytes / sizeof(float); j++)
            near(tensor.name, values[j], ((float *)after->data)[j], 0.1);
        compared++;
    }
    assert_int_equal(compared, TENSORS);
    assert_int_equal(states, c->trained * c->states);
}

static void train_as_pytorch(clv_device *device, const golden_case *c, const clv_placement *placement) {
    watching seen = {find(c->name, "losses", "")->data, 0};
    clv_train_config config = config_of(c, placement ? NULL : device);
    if (placement) config.placement = *placement;
    config.user = &seen;
    config.on_step = on_step;
    clv_trainer *trainer = run(&config);
    assert_int_equal(seen.steps, STEPS);
    compare_weights(c, clv_trainer_info_get(trainer).session);
    clv_trainer_destroy(trainer);
}

/** The gradients of the first step: PyTorch's, and none of what is frozen. */
static void first_gradients(clv_device *device, const golden_case *c) {
    const char *path = CLV_TEST_BINARY_DIR "/train_finetune_gradients.safetensors";
    clv_train_config config = config_of(c, device);
    clv_archive *gradients;
    config.optimizer.clip_norm = 0; // PyTorch's are noted before they are clipped
    config.steps = 1;
    config.gradients = path;
    clv_trainer_destroy(run(&config));
    assert_status(clv_safetensors_read(runtime, path, &gradients), CLV_OK, runtime);
    assert_int_equal(clv_archive_count(gradients), c->trained);
    for (int i = 0; i < c->trained; i++) {
        const clv_array *got = clv_archive_get(gradients, (size_t)i),
                        *want = find(c->name, "gradient", got->name);
        assert_non_null(want);
        assert_int_equal(clv_array_bytes(got), clv_array_bytes(want));
        for (size_t j = 0; j < clv_array_bytes(got) / sizeof(float); j++)
            near(got->name, ((float *)got->data)[j], ((float *)want->data)[j], 0.01);
    }
    clv_archive_destroy(gradients);
}

static void on_device(const char *spec) {
    clv_device *device = clv__test_device_or_skip(runtime, spec);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        train_as_pytorch(device, &cases[i], NULL);
        first_gradients(device, &cases[i]);
    }
}

TEST_ON_DEVICES(on_device)

/** Any OpenCL device beside the host; skips if there is none. */
static const char *other_device(void) {
    clv_device *device = clv__test_device_or_skip(runtime, "gpu|accelerator|cpu");
    return clv_device_info_get(device)->name;
}

/** Layers on two unlike devices, with what is frozen on either: the same numbers. */
TEST(test_placed) {
    char texts[2][128];
    const char *other = other_device();
    snprintf(texts[0], sizeof texts[0], "*=host,fc=%s", other);
    snprintf(texts[1], sizeof texts[1], "*=%s,conv1=host", other);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int k = 0; k < 2; k++) train_as_pytorch(NULL, &cases[i], &(clv_placement){.place = texts[k]});
    }
}

static float *read_tensor(clv_session *session, const char *name, size_t *bytes) {
    int at = clv_session_find(session, name);
    assert_true(at >= 0);
    *bytes = clv_session_get(session, at).bytes;
    float *values = malloc(*bytes);
    assert_non_null(values);
    assert_status(clv_session_read(session, at, values, *bytes), CLV_OK, runtime);
    return values;
}

/** On replicas each sees its own rows' statistics, so numbers are others; but frozen bits stay, and the rest learns. */
TEST(test_replicas) {
    const char *replicas[] = {"host", other_device()};
    const double shares[] = {0.5, 0.5};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const golden_case *c = &cases[i];
        clv_train_config config = config_of(c, NULL);
        config.placement = (clv_placement){.replicas = replicas, .shares = shares, .n_replicas = 2};
        clv_trainer *trainer = run(&config);
        clv_session *session = clv_trainer_info_get(trainer).session;
        int moved = 0, kept = 0;
        for (size_t k = 0; clv_archive_get(golden, k); k++) {
            const clv_array *array = clv_archive_get(golden, k);
            if (strncmp(array->name, "before/", 7)) continue;
            size_t bytes;
            float *values = read_tensor(session, array->name + 7, &bytes);
            bool same = memcmp(values, array->data, bytes) == 0;
            assert_int_equal(same, is_frozen(c, array->name + 7));
            moved += !same, kept += same;
            free(values);
        }
        assert_int_equal(moved + kept, TENSORS);
        clv_trainer_destroy(trainer);
    }
}

/** Less memory: no gradients, no optimizer state, no activations for what is frozen. */
TEST(test_memory) {
    const clv_model *cnn = clv_model_find("cnn");
    const char *const freezes[] = {NULL, "conv1,conv2", "conv1,conv2,fc1"};
    clv_plan_memory memory[3];
    int64_t frozen[3] = {0};
    for (int i = 0; i < 3; i++) {
        clv_train_config config = {
            .model = cnn, .batch = 16, .optimizer = {.kind = CLV_ADAM}, .freeze = freezes[i]};
        clv_graph *graph;
        clv_device *host = clv__test_device(runtime, "host");
        assert_status(clv_pass_graph(runtime, &config, CLV_PASS_TRAIN, 16, &graph), CLV_OK, runtime);
        clv_plan *plan = clv__test_plan(runtime, graph, &(clv_plan_config){.device = host});
        memory[i] = clv_plans_memory(&plan, 1, NULL);
        for (int n = 0; n < clv_plan_info_get(plan).n_kept; n++) {
            clv_plan_kept kept = clv_plan_kept_get(plan, n);
            if (kept.frozen) frozen[i] += clv_shape_numel(&kept.shape);
        }
        assert_int_equal(clv_graph_info_get(graph).n_parameters, 8); // frozen or not
        assert_false(freezes[i] && clv_tensor_info_get(clv_graph_find(graph, "conv1.weight")).requires_grad);
        assert_true(clv_tensor_info_get(clv_graph_find(graph, "fc2.weight")).requires_grad);
        assert_int_equal(!clv_gradient(clv_graph_find(graph, "conv1.weight")), freezes[i] != NULL);
        clv_plan_destroy(plan);
        clv_graph_destroy(graph);
    }
    const int64_t convs = 32 * 9 + 32 + 64 * 32 * 9 + 64, fc1 = 9216 * 128 + 128;
    assert_int_equal(frozen[0], 0);
    assert_int_equal(frozen[1], convs);
    assert_int_equal(frozen[2], convs + fc1);
    for (int i = 1; i < 3; i++) {
        int64_t saved = frozen[i] - frozen[i - 1];
        assert_int_equal(memory[i].category[CLV_PARAMETERS], memory[0].category[CLV_PARAMETERS]);
        assert_true(memory[i].category[CLV_OPTIMIZER] + 8 * (uint64_t)saved <=
                    memory[i - 1].category[CLV_OPTIMIZER]);
        assert_true(memory[i].predicted_peak_bytes < memory[i - 1].predicted_peak_bytes);
    }
    assert_true(memory[1].category[CLV_ACTIVATIONS] < memory[0].category[CLV_ACTIVATIONS]);
    assert_true(memory[2].category[CLV_GRADIENTS] < memory[1].category[CLV_GRADIENTS]);
}

/** Stopped in the middle and resumed: the same bits; with other parameters frozen it is refused. */
TEST(test_resume) {
    const char *path = CLV_TEST_BINARY_DIR "/train_finetune.ckpt";
    const golden_case *c = &cases[0];
    clv_device *host = clv__test_device(runtime, "host");
    clv_train_config config = config_of(c, host);
    config.epochs = 2; // with a checkpoint after each
    config.checkpoint = path;
    clv_trainer_destroy(run(&config));
    config = config_of(c, host);
    config.weights = NULL;
    config.resume = path;
    clv_trainer *trainer = run(&config);
    compare_weights(c, clv_trainer_info_get(trainer).session);
    clv_trainer_destroy(trainer);
    config.freeze = "conv1";
    trainer = clv__test_trainer(runtime, &config);
    assert_status(clv_trainer_run(trainer), CLV_E_VALUE, runtime);
    assert_holds(clv_runtime_error(runtime), "was written with freeze 'conv1,norm', now it is 'conv1'");
    clv_trainer_destroy(trainer);
    unlink(path);
}

/** Weights of five classes into a model of three: all but the head, which gets new first values and learns. */
TEST(test_new_head) {
    clv_model other = model;
    other.classes = 3;
    clv_array images = *clv_archive_find(golden, "images");
    int32_t labels[12];
    for (int i = 0; i < 12; i++) labels[i] = i % 3;
    clv_array y = {.type = CLV_DTYPE_I32, .shape = CLV_SHAPE(12), .data = labels, .borrowed = true};
    clv_dataset *three;
    images.borrowed = true;
    assert_status(clv_dataset_from_arrays(runtime, &images, &y, NULL, &three), CLV_OK, runtime);
    clv_device *host = clv__test_device(runtime, "host");
    clv_train_config config = config_of(&cases[0], host);
    config.model = &other;
    config.train = three;
    config.epochs = 40;
    clv_trainer *trainer = clv__test_trainer(runtime, &config);
    assert_status(clv_trainer_run(trainer), CLV_E_SHAPE, runtime);
    assert_holds(clv_runtime_error(runtime), "is of a model with 5 classes, this one has 3");
    assert_holds(clv_runtime_error(runtime), "'fc.weight' is [5,60] and must be [3,60]");
    assert_holds(clv_runtime_error(runtime), "clv_train_config.weights_except 'fc.*'");
    clv_trainer_destroy(trainer);
    config.weights_except = "fd.*";
    trainer = clv__test_trainer(runtime, &config);
    assert_status(clv_trainer_run(trainer), CLV_E_NOT_FOUND, runtime);
    assert_holds(clv_runtime_error(runtime), "did you mean 'fc'?");
    clv_trainer_destroy(trainer);
    config.weights_except = "fc.weight"; // strict in all else
    trainer = clv__test_trainer(runtime, &config);
    assert_status(clv_trainer_run(trainer), CLV_E_SHAPE, runtime);
    assert_holds(clv_runtime_error(runtime), "'fc.bias' is [5] and must be [3]");
    clv_trainer_destroy(trainer);
    config.weights_except = "fc.*";
    trainer = run(&config);
    assert_true(clv_trainer_result(trainer).train_loss < 0.5); // ln 3 by chance
    size_t bytes;
    float *conv = read_tensor(clv_trainer_info_get(trainer).session, "conv1.weight", &bytes);
    assert_memory_equal(conv, find("", "before", "conv1.weight")->data, bytes);
    free(conv);
    clv_trainer_destroy(trainer);
    clv_dataset_destroy(three);
}

/** Missing, unexpected and of another shape, all in one sentence; names that DataParallel and torch.compile put before all. */
TEST(test_strict) {
    const char *path = CLV_TEST_BINARY_DIR "/train_finetune_strict.safetensors";
    static const char *const prefixes[] = {"module.", "_orig_mod.", "module._orig_mod.", "model."};
    clv_device *host = clv__test_device(runtime, "host");
    clv_predictor_config config = {.device = host, .model = &model, .batch = 1};
    clv_predictor *predictor = clv__test_predictor(runtime, &config);
    clv_session *session = clv_predictor_info_get(predictor).session;
    for (int p = 0; p < 5; p++) {
        clv_archive *archive = clv__test_archive(runtime);
        for (size_t i = 0; clv_archive_get(golden, i); i++) {
            const clv_array *array = clv_archive_get(golden, i);
            char name[128];
            if (strncmp(array->name, "before/", 7)) continue;
            snprintf(name, sizeof name, "%s%s", p < 4 ? prefixes[p] : "", array->name + 7);
            if (p == 4 && !strcmp(name, "norm.bias")) continue;
            if (p == 4 && !strcmp(name, "norm.weight")) strcpy(name, "norm.wait");
            clv_shape shape = array->shape;
            if (p == 4 && !strcmp(name, "conv1.weight")) shape = CLV_SHAPE(1, 3, 2, 3);
            assert_status(clv_archive_add(archive, name, array->type, &shape, array->data, NULL), CLV_OK,
                          runtime);
        }
        assert_status(clv_safetensors_write(archive, path), CLV_OK, runtime);
        clv_archive_destroy(archive);
        float zeros[15] = {0};
        assert_status(clv_session_write(session, clv_session_find(session, "fc.bias"), zeros, 20), CLV_OK,
                      runtime);
        clv_status status = clv_weights_load(session, path);
        size_t bytes;
        float *bias = read_tensor(session, "fc.bias", &bytes);
        assert_status(status, p < 3 ? CLV_OK : CLV_E_NOT_FOUND, runtime);
        assert_memory_equal(bias, p < 3 ? find("", "before", "fc.bias")->data : zeros, bytes);
        free(bias);
    }
    assert_holds(clv_runtime_error(runtime), "missing 'norm.weight', 'norm.bias'; unexpected 'norm.wait'; "
                                             "'conv1.weight' is [1,3,2,3] and must be [3,1,2,3]");
    assert_status(clv_weights_load_except(session, path, "conv1,norm.weight, norm.bias,norm.wa*"), CLV_OK,
                  runtime);
    clv_predictor_destroy(predictor);
    unlink(path);
}

/** What is built on frozen parameters alone wants no gradient any more; what has others too, or asked for one itself, still does. */
TEST(test_frozen_values) {
    clv_graph *graph = clv__test_graph(runtime);
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(2, 4));
    clv_tensor *first = clv_relu(clv_nn_linear(x, "fc1", 4, NULL)), *other = clv_relu(x);
    clv_requires_grad(other, true);
    clv_tensor *both = clv_add(first, clv_relu(other)), *last = clv_nn_linear(first, "fc2", 2, NULL);
    assert_true(clv_tensor_info_get(first).requires_grad && clv_tensor_info_get(last).requires_grad);
    clv_freeze(graph, "fc1.weight");
    assert_true(clv_tensor_info_get(first).requires_grad); // its bias does
    clv_freeze(graph, "fc1");
    assert_false(clv_tensor_info_get(first).requires_grad);
    assert_true(clv_tensor_info_get(other).requires_grad && clv_tensor_info_get(both).requires_grad);
    assert_true(clv_tensor_info_get(last).requires_grad);
    clv_backward(clv_sum(last, NULL, 0, false));
    assert_status(clv_graph_status(graph), CLV_OK, runtime);
    assert_null(clv_gradient(first));
    assert_null(clv_gradient(clv_graph_find(graph, "fc1.bias")));
    assert_non_null(clv_gradient(clv_graph_find(graph, "fc2.bias")));
    clv_graph_destroy(graph);
}

TEST(test_refusals) {
    clv_train_config config = config_of(&cases[0], NULL);
    clv_trainer *trainer;
    config.device = clv__test_device(runtime, "host");
    config.freeze = "conv1,nrom.*";
    assert_status(clv_trainer_create(runtime, &config, &trainer), CLV_E_NOT_FOUND, runtime);
    assert_string_equal(clv_runtime_error(runtime),
                        "freeze: no parameter matches 'nrom.*'; did you mean 'norm'?");
    config.freeze = "norm.running_mean"; // no parameter
    assert_status(clv_trainer_create(runtime, &config, &trainer), CLV_E_NOT_FOUND, runtime);
    config.freeze = "*";
    assert_status(clv_trainer_create(runtime, &config, &trainer), CLV_E_VALUE, runtime);
    assert_holds(clv_runtime_error(runtime), "nothing is left to train");
    config.freeze = "";
    trainer = clv__test_trainer(runtime, &config);
    clv_trainer_destroy(trainer);

    clv_graph *graph = clv__test_graph(runtime);
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(2, 1, 4, 6));
    clv_requires_grad(x, true);
    clv_tensor *loss = clv_sum(pytorch_build(x, &model), NULL, 0, false);
    clv_freeze(graph, "*"); // the input's gradient is left
    clv_backward(loss);
    assert_status(clv_graph_status(graph), CLV_OK, runtime);
    assert_non_null(clv_gradient(x));
    assert_null(clv_gradient(clv_graph_find(graph, "fc.weight")));
    clv_freeze(graph, "fc");
    assert_status(clv_graph_status(graph), CLV_E_STATE, runtime);
    clv_graph_destroy(graph);
    clv_freeze(NULL, "fc");
}

TEST_MAIN(setup, teardown)
