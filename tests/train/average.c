// SPDX-License-Identifier: Apache-2.0
// Running averages of parameters: the numbers of PyTorch's AveragedModel, on one device and on two, with micro-batches, replicas and
// frozen parts; a skipped step that moves none; resumed; tested and saved in the place of the parameters; and what is refused. Buffers that
// take a value in each step.
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "infer/averages.h"
#include "train/pytorch.h"
#include "train/small.h"

static clv_runtime *runtime;
static clv_archive *golden, *older;
static clv_dataset *dataset;
static clv_device *host;

static const clv_model model = {.name = "small", .build = pytorch_build, .input = {1, 4, 6}, .classes = 3};

static const char *before(void) {
    return CLV_TEST_BINARY_DIR "/train_average_before.safetensors";
}

FIXTURE(setup) {
    clv_dataset *same;
    runtime = clv__test_runtime(NULL);
    pytorch_read(runtime, CLV_TEST_SOURCE_DIR "/tests/golden/groups.safetensors", before(), &older, &same);
    clv_dataset_destroy(same);
    pytorch_read(runtime, CLV_TEST_SOURCE_DIR "/tests/golden/average.safetensors", before(), &golden,
                 &dataset);
    host = clv__test_device(runtime, "host");
}

FIXTURE(teardown) {
    clv_dataset_destroy(dataset);
    clv_archive_destroy(golden);
    clv_archive_destroy(older);
    clv_runtime_destroy(runtime);
}

typedef struct golden_case {
    const char *name;
    double decay, lr;
    clv_optimizer_config optimizer;
} golden_case;

static const golden_case cases[] = {
    {"sgd", 0.9, 0.05, {.momentum = 0.9f, .weight_decay = 0.1f}},
    {"adam", 0.4, 0.02, {.kind = CLV_ADAM}},
};

static clv_train_config config_of(const golden_case *c, clv_device *device) {
    return (clv_train_config){.device = device,
                              .model = &model,
                              .train = dataset,
                              .test = dataset,
                              .batch = 4,
                              .epochs = 7,
                              .steps = 20,
                              .no_shuffle = true,
                              .optimizer = c->optimizer,
                              .lr = c->lr,
                              .ema_decay = c->decay,
                              .weights = before()};
}

static clv_trainer *run(const clv_train_config *config) {
    return small_trained(runtime, config);
}

static void near(const char *what, float got, float wanted, double least) {
    if (!(fabs((double)got - (double)wanted) <= 1e-4 * fmax(least, fabs((double)wanted))))
        fail_msg("%s is %.9g, not %.9g", what, (double)got, (double)wanted);
}

static void all_near(const char *what, const float *got, const clv_array *wanted) {
    assert_non_null(wanted);
    for (int64_t i = 0; i < clv_shape_numel(&wanted->shape); i++)
        near(what, got[i], ((float *)wanted->data)[i], 0.1);
}

enum { MOST = 1024 };

static int read_named(clv_session *session, const char *name, float out[MOST]) {
    const int at = clv_session_find(session, name);
    if (at < 0) fail_msg("there is no '%s'", name);
    const clv_session_tensor tensor = clv_session_get(session, at);
    assert_true(tensor.bytes <= MOST * sizeof *out);
    assert_status(clv_session_read(session, at, out, tensor.bytes), CLV_OK, runtime);
    return (int)(tensor.bytes / sizeof *out);
}

/** The session's parameters are those of PyTorch's model, its averages those of the averaged one. */
static void as_pytorch(clv_session *session, const clv_archive *file, const char *name) {
    float values[MOST];
    int averages = 0;
    for (int i = 0; i < clv_session_info_get(session).n_tensors; i++) {
        const clv_session_tensor tensor = clv_session_get(session, i);
        char key[160];
        if (tensor.category != CLV_PARAMETERS) continue;
        snprintf(key, sizeof key, "%s/after/%s", name, tensor.name);
        read_named(session, tensor.name, values);
        all_near(key, values, clv_archive_find(file, key));
        if (!tensor.trainable) continue;
        snprintf(key, sizeof key, "%s.average", tensor.name);
        read_named(session, key, values);
        snprintf(key, sizeof key, "%s/average/%s", name, tensor.name);
        all_near(key, values, clv_archive_find(file, key));
        averages++;
    }
    assert_int_equal(averages, 5);
}

/** What was saved are the averages, and buffers, under PyTorch's names. */
static void saved_as_pytorch(clv_session *session, const char *name) {
    const char *path = CLV_TEST_BINARY_DIR "/train_average_saved.safetensors";
    clv_archive *saved;
    assert_status(clv_weights_save(session, path), CLV_OK, runtime);
    assert_status(clv_safetensors_read(runtime, path, &saved), CLV_OK, runtime);
    assert_int_equal(clv_archive_count(saved), 7);
    for (size_t i = 0; clv_archive_get(saved, i); i++) {
        const clv_array *array = clv_archive_get(saved, i);
        char key[160];
        snprintf(key, sizeof key, "%s/average/%s", name, array->name);
        all_near(key, array->data, clv_archive_find(golden, key));
    }
    clv_archive_destroy(saved);
    unlink(path);
}

static void on_device(const char *spec) {
    clv_device *device = clv__test_device_or_skip(runtime, spec);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const clv_train_config config = config_of(&cases[i], device);
        clv_trainer *trainer = run(&config);
        as_pytorch(clv_trainer_info_get(trainer).session, golden, cases[i].name);
        saved_as_pytorch(clv_trainer_info_get(trainer).session, cases[i].name);
        char key[64];
        snprintf(key, sizeof key, "%s/average/test", cases[i].name);
        const float *test = clv_archive_find(golden, key)->data;
        near(key, (float)clv_trainer_result(trainer).test.loss, test[0], 0.1);
        assert_true(clv_trainer_result(trainer).test.accuracy == (double)test[1]);
        clv_trainer_destroy(trainer);
    }
}

TEST_ON_DEVICES(on_device)

/** Nine steps of AveragedModel itself (make_groups.py), for groups of parameters that are updated apart. */
TEST(as_averaged_model) {
    static const clv_param_group vectors[] = {{.max_rank = 1, .weight_decay = -1}};
    golden_case c = {"sgd_vectors", 0.8, 0.05, {.momentum = 0.9f, .weight_decay = 0.1f}};
    c.optimizer.groups = vectors;
    c.optimizer.n_groups = 1;
    clv_train_config config = config_of(&c, host);
    config.steps = 0;
    config.epochs = 3;
    clv_trainer *trainer = run(&config);
    as_pytorch(clv_trainer_info_get(trainer).session, older, c.name);
    clv_trainer_destroy(trainer);
}

/** Layers on two devices: an average lies beside its parameter, and the numbers are the same. */
TEST(on_two_devices) {
    char place[128];
    clv_device *device = clv__test_device_or_skip(runtime, "gpu|accelerator|cpu");
    snprintf(place, sizeof place, "*=host,fc=%s", clv_device_info_get(device)->name);
    for (int clipped = 0; clipped < 2; clipped++) {
        clv_train_config config = config_of(&cases[0], NULL);
        config.placement.place = place;
        if (clipped) config.optimizer.clip_norm = 1e6f; // a factor of all gradients, from one of the devices
        clv_trainer *trainer = run(&config);
        clv_session *session = clv_trainer_info_get(trainer).session;
        as_pytorch(session, golden, "sgd");
        saved_as_pytorch(session, "sgd");
        static const char *const names[] = {"conv1.weight", "norm.bias", "fc.weight", "fc.bias"};
        for (int i = 0; i < 4; i++) {
            char average[64];
            snprintf(average, sizeof average, "%s.average", names[i]);
            assert_ptr_equal(clv_session_get(session, clv_session_find(session, average)).device,
                             clv_session_get(session, clv_session_find(session, names[i])).device);
        }
        clv_trainer_destroy(trainer);
    }
}

/** Of replicas and of parts of a batch, with a part frozen: the averages are of what is trained, and evaluation uses them. */
TEST(cut_and_frozen) {
    static const char *const replicas[] = {"cpu:0", "cpu:1"};
    clv_runtime *two = NULL;
    clv_device *second;
    if (clv_runtime_create(&(clv_runtime_config){.partition = "cpu:0=2"}, &two) != CLV_OK ||
        clv_device_find(two, "cpu:1", &second) != CLV_OK) {
        clv_runtime_destroy(two);
        skip();
    }
    clv_dataset *samples = small_dataset(two, 10);
    float kept[3][MOST];
    double losses[3];
    int n[3];
    for (int way = 0; way < 3; way++) {
        clv_train_config config = small_config(&small_plain, samples, 5, 3);
        config.ema_decay = 0.7;
        config.freeze = "conv.bias";
        if (way == 1) config.micro_batches = 2;
        if (way == 2) config.placement.replicas = replicas, config.placement.n_replicas = 2;
        if (way != 2) config.device = clv__test_device(two, "cpu:0");
        clv_trainer *trainer = small_trained(two, &config);
        clv_session *session = clv_trainer_info_get(trainer).session;
        assert_true(clv_session_find(session, "conv.weight.average") >= 0);
        assert_int_equal(clv_session_find(session, "conv.bias.average"), -1);
        assert_status(small_read(session, kept[way], MOST, &n[way]), CLV_OK, two);
        losses[way] = clv_trainer_result(trainer).test.loss;
        clv_trainer_destroy(trainer);
        assert_int_equal(n[way], n[0]);
        for (int i = 0; i < n[0]; i++) assert_true(fabsf(kept[way][i] - kept[0][i]) <= 2e-5f);
        assert_true(fabs(losses[way] - losses[0]) < 1e-5);
    }
    clv_dataset_destroy(samples);
    clv_runtime_destroy(two);
}

// ---- steps that are skipped -----------------------------------------------------------------------------------------------

/** The averages, or the parameters, after so many steps of a training whose first and fourth are skipped. */
static int after_steps(clv_device *device, const clv_dataset *samples, int64_t steps, bool averages,
                       float out[MOST]) {
    static const char *const names[] = {"conv.weight", "conv.bias", "fc.weight", "fc.bias"};
    clv_train_config config = small_config(&small_plain, samples, 4, 1);
    int n = 0;
    config.device = device;
    config.precision = CLV_PRECISION_MIXED;
    config.test = NULL;
    config.no_shuffle = true;
    config.steps = steps;
    config.ema_decay = 0.5;
    config.on_nan = CLV_NAN_CONTINUE; // one step alone is skipped, which is no training
    clv_trainer *trainer = small_trained(runtime, &config);
    assert_int_equal(clv_trainer_result(trainer).skipped_steps, 1 + (steps >= 4));
    for (int i = 0; i < 4; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s%s", names[i], averages ? ".average" : "");
        n += read_named(clv_trainer_info_get(trainer).session, name, out + n);
    }
    clv_trainer_destroy(trainer);
    return n;
}

TEST(skipped_steps_move_none) {
    enum { N = 20, STEPS = 5 };
    static float images[N * SMALL_NUMEL];
    static int32_t labels[N];
    for (int i = 0; i < N * SMALL_NUMEL; i++) images[i] = (float)(i * 7 % 11) / 11;
    for (int i = 0; i < N; i++) labels[i] = i % 3;
    images[0] = images[12 * SMALL_NUMEL] = 1e30f; // past what f16 holds
    clv_array x = {.type = CLV_DTYPE_F32, .shape = CLV_SHAPE(N, 1, 4, 6), .data = images, .borrowed = true};
    clv_array y = {.type = CLV_DTYPE_I32, .shape = CLV_SHAPE(N), .data = labels, .borrowed = true};
    clv_dataset *samples;
    assert_status(clv_dataset_from_arrays(runtime, &x, &y, NULL, &samples), CLV_OK, runtime);
    static const char *const specs[] = {"host", "gpu|accelerator|cpu"};
    for (int s = 0; s < 2; s++) {
        float averages[STEPS + 1][MOST], parameters[STEPS + 1][MOST];
        clv_device *device;
        int n = 0;
        if (clv_device_find(runtime, specs[s], &device) != CLV_OK) continue;
        for (int steps = 1; steps <= STEPS; steps++) {
            n = after_steps(device, samples, steps, true, averages[steps]);
            assert_int_equal(after_steps(device, samples, steps, false, parameters[steps]), n);
        }
        const size_t bytes = (size_t)n * sizeof(float);
        assert_memory_equal(averages[1], parameters[1], bytes); // nothing is updated: the first values
        assert_memory_not_equal(parameters[2], parameters[1], bytes);
        assert_memory_equal(averages[2], parameters[2], bytes); // the first step that counts copies
        assert_memory_not_equal(averages[3], parameters[3], bytes);
        assert_memory_equal(averages[4], averages[3], bytes);
        for (int step = 3; step <= STEPS; step += 2)
            for (int i = 0; i < n; i++)
                assert_true(averages[step][i] == 0.5f * averages[step - 1][i] + 0.5f * parameters[step][i]);
    }
    clv_dataset_destroy(samples);
}

// ---- resumed, and refused -------------------------------------------------------------------------------------------------

static int all_kept(const clv_train_config *config, float out[MOST]) {
    clv_trainer *trainer = run(config);
    int n;
    assert_status(small_read(clv_trainer_info_get(trainer).session, out, MOST, &n), CLV_OK, runtime);
    clv_trainer_destroy(trainer);
    return n;
}

TEST(resumed) {
    const char *path = CLV_TEST_BINARY_DIR "/train_average.ckpt";
    float whole[MOST] = {0}, parts[MOST] = {0};
    clv_train_config config = config_of(&cases[1], host);
    config.test = NULL;
    const int n = all_kept(&config, whole);
    for (int64_t steps = 5; steps <= 6; steps++) { // within an epoch, and at its end
        config = config_of(&cases[1], host);
        config.test = NULL;
        config.steps = steps;
        config.checkpoint = path;
        all_kept(&config, parts);
        config = config_of(&cases[1], host);
        config.test = NULL;
        config.weights = NULL;
        config.resume = path;
        assert_int_equal(all_kept(&config, parts), n);
        assert_memory_equal(whole, parts, (size_t)n * sizeof *whole);
    }
    char said[512];
    config.resume = path;
    config.ema_decay = 0;
    clv_trainer *trainer = clv__test_trainer(runtime, &config);
    assert_status(clv_trainer_run(trainer), CLV_E_VALUE, runtime);
    snprintf(said, sizeof said,
             "checkpoint '%s' was written with ema_decay 0.4, now it is 0; go on with the settings it was "
             "written with",
             path);
    assert_string_equal(clv_runtime_error(runtime), said);
    clv_trainer_destroy(trainer);
    unlink(path);
}

static void keeps_average(const clv_update_use *use, clv_tensor **parameter, clv_tensor **states) {
    *parameter = use->parameter;
    states[0] = use->gradient;
}

TEST(refusals) {
    static const clv_optimizer_state states[] = {{"average", 0}, {NULL, 0}};
    static const clv_custom_optimizer custom = {
        .bytes = sizeof custom, .name = "own", .states = states, .update = keeps_average};
    static const struct {
        double decay;
        const clv_custom_optimizer *custom;
        const char *said;
    } refused[] = {
        {1, NULL, "an ema_decay of 1: it must be between 0 and 1 (0: no averages)"},
        {-0.5, NULL, "an ema_decay of -0.5: it must be between 0 and 1 (0: no averages)"},
        {(double)NAN, NULL, "an ema_decay of nan: it must be between 0 and 1 (0: no averages)"},
        {0.5, &custom,
         "ema_decay: there is a 'conv1.weight.average' already, and the average of 'conv1.weight' would be "
         "kept "
         "under that name"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        clv_train_config config = config_of(&cases[0], host);
        clv_trainer *trainer;
        config.ema_decay = refused[i].decay;
        if (refused[i].custom) config.optimizer = (clv_optimizer_config){.custom = refused[i].custom};
        assert_status(clv_trainer_create(runtime, &config, &trainer), CLV_E_VALUE, runtime);
        assert_string_equal(clv_runtime_error(runtime), refused[i].said);
    }
}

/** All averages in few launches, large ones by themselves. */
TEST(few_launches) {
    clv_runtime *others = clv__test_runtime(&(clv_runtime_config){.no_opencl = true, .null_devices = true});
    clv_train_config config = {.model = clv_model_find("cnn"), .ema_decay = 0.9, .lr = 0.1};
    clv_graph *graph;
    int launches = 0;
    config.device = clv__test_device(others, "null");
    assert_status(clv_pass_graph(others, &config, CLV_PASS_TRAIN, 4, &graph), CLV_OK, others);
    clv_plan *plan = clv__test_plan(others, graph, &(clv_plan_config){.device = config.device});
    for (int i = 0; i < clv_plan_info_get(plan).n_nodes; i++)
        launches += !strcmp(clv_plan_node_get(plan, i).op, "assign_update");
    assert_int_equal(clv_graph_info_get(graph).n_parameters, 8);
    assert_int_equal(launches, 2); // fc1.weight, and all others
    clv_plan_destroy(plan);
    clv_graph_destroy(graph);
    clv_runtime_destroy(others);
}

// ---- in a loop of one's own ---------------------------------------------------------------------------------------

enum { OWN_BATCH = 5 }; // of ten samples: all batches are whole

/** Graph, plan, session and run of one step, with averages as the trainer keeps them. */
typedef struct own_loop {
    clv_graph *graph;
    clv_plan *plan;
    clv_session *session;
    clv_run *run;
    clv_tensor *x, *y;
} own_loop;

static void own_begin(own_loop *loop, const golden_case *c) {
    *loop = (own_loop){0};
    loop->graph = clv__test_graph(runtime);
    clv_graph_set_training(loop->graph, true);
    loop->x = clv_model_input(loop->graph, &model, OWN_BATCH);
    loop->y = clv_model_target(loop->graph, &model, OWN_BATCH);
    clv_tensor *loss = clv_cross_entropy(clv_model_build(&model, loop->x), loop->y);
    clv_output(loss, "loss");
    clv_backward(loss);
    clv_optimizer_add(loop->graph, &c->optimizer);
    clv_averages_add(loop->graph, c->decay);
    loop->plan = clv__test_plan(runtime, loop->graph, &(clv_plan_config){.device = host});
    loop->session = clv__test_session(runtime, &(clv_session_config){.seed = 1});
    assert_status(clv_session_reserve(loop->session, &loop->plan, 1), CLV_OK, runtime);
    assert_status(clv_weights_load(loop->session, before()), CLV_OK, runtime);
    assert_status(clv_averages_begin(loop->session), CLV_OK, runtime);
    loop->run = clv__test_run(runtime, loop->session, loop->plan);
}

static clv_status own_step(own_loop *loop, const clv_batch *batch, double lr) {
    clv_feed feeds[] = {{loop->x, batch->samples, clv_tensor_bytes(loop->x)},
                        {loop->y, batch->targets, clv_tensor_bytes(loop->y)}};
    return clv_run_do(loop->run, &(clv_step){feeds, 2, lr, NULL, 0});
}

static void own_end(own_loop *loop) {
    clv__test_end(loop->run, loop->session, loop->plan, loop->graph);
}

/** Do the tensors of that name have the same bits in both sessions? */
static void same_bits(clv_session *a, clv_session *b, const char *name, const char *of_b) {
    float x[MOST], y[MOST];
    const int n = read_named(a, name, x);
    assert_int_equal(read_named(b, of_b, y), n);
    if (memcmp(x, y, (size_t)n * sizeof *x) != 0) fail_msg("'%s' is not '%s'", name, of_b);
}

/** Each parameter and each average of the loop is as the trainer's; swapped: the one is the other. */
static void same_as(clv_session *own, clv_session *trained, bool swapped) {
    for (int i = 0; i < clv_session_info_get(trained).n_tensors; i++) {
        const clv_session_tensor tensor = clv_session_get(trained, i);
        char average[200];
        snprintf(average, sizeof average, "%s.average", tensor.name);
        if (tensor.category != CLV_PARAMETERS) continue;
        const bool kept = clv_session_find(trained, average) >= 0;
        same_bits(own, trained, tensor.name, kept && swapped ? average : tensor.name);
        if (kept) same_bits(own, trained, average, swapped ? tensor.name : average);
    }
}

static void same_files(const char *a, const char *b) {
    char x[1 << 16], y[1 << 16];
    FILE *of_a = fopen(a, "rb"), *of_b = fopen(b, "rb");
    assert_non_null(of_a);
    assert_non_null(of_b);
    const size_t n = fread(x, 1, sizeof x, of_a);
    assert_true(n > 0 && n < sizeof x);
    assert_int_equal(fread(y, 1, sizeof y, of_b), n);
    assert_memory_equal(x, y, n);
    fclose(of_a);
    fclose(of_b);
    unlink(a);
    unlink(b);
}

/** The same steps by hand: parameters and averages have the trainer's bits, in place and exchanged. */
TEST(in_own_loop) {
    enum { STEPS = 20 };
    const char *by_hand = CLV_TEST_BINARY_DIR "/train_average_hand.safetensors",
               *by_trainer = CLV_TEST_BINARY_DIR "/train_average_trainer.safetensors";
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        clv_train_config config = config_of(&cases[i], host);
        config.batch = OWN_BATCH;
        config.epochs = STEPS / 2;
        clv_trainer *trainer = run(&config);
        clv_session *trained = clv_trainer_info_get(trainer).session;
        clv_loader *loader;
        clv_batch batch;
        own_loop own;
        float first[MOST], after[MOST];
        own_begin(&own, &cases[i]);
        const int n = read_named(own.session, "conv1.weight", first); // begun as the parameters are
        read_named(own.session, "conv1.weight.average", after);
        assert_memory_equal(first, after, (size_t)n * sizeof *first);
        assert_status(clv_loader_create(runtime, dataset, &(clv_loader_config){.batch = OWN_BATCH}, &loader),
                      CLV_OK, runtime);
        for (int step = 0; step < STEPS; step++) {
            assert_status(clv_loader_next(loader, &batch), CLV_OK, runtime);
            assert_int_equal(batch.n, OWN_BATCH);
            assert_status(own_step(&own, &batch, cases[i].lr), CLV_OK, runtime);
            clv_loader_release(loader, &batch);
        }
        same_as(own.session, trained, false);
        assert_status(clv_averages_swap(own.session), CLV_OK, runtime);
        assert_true(clv_session_info_get(own.session).averages_swapped);
        same_as(own.session, trained, true);
        assert_status(clv_loader_next(loader, &batch), CLV_OK, runtime);
        assert_status(own_step(&own, &batch, cases[i].lr), CLV_E_STATE, runtime);
        assert_string_equal(clv_runtime_error(runtime),
                            "clv_run_step: the parameters hold their averages, and the step would train "
                            "those; swap them back first (clv_averages_swap)");
        assert_status(clv_averages_begin(own.session), CLV_E_STATE, runtime);
        assert_status(clv_weights_describe(own.session, &config), CLV_OK, runtime); // as the trainer's are
        assert_status(clv__averages_save(own.session, by_hand), CLV_OK, runtime);
        assert_status(clv_weights_save(trained, by_trainer), CLV_OK, runtime);
        same_files(by_hand, by_trainer);
        assert_status(clv_averages_swap(own.session), CLV_OK, runtime);
        assert_false(clv_session_info_get(own.session).averages_swapped);
        same_as(own.session, trained, false);
        assert_status(clv__averages_save(own.session, by_hand), CLV_OK, runtime);
        assert_status(clv__averages_save(trained, by_trainer), CLV_OK, runtime);
        same_files(by_hand, by_trainer);
        assert_status(own_step(&own, &batch, cases[i].lr), CLV_OK, runtime); // and on it goes
        clv_loader_destroy(loader);
        own_end(&own);
        assert_status(clv_averages_swap(trained), CLV_E_STATE, runtime);
        assert_holds(clv_runtime_error(runtime), "the session is a trainer's");
        clv_trainer_destroy(trainer);
    }
}

TEST(without_averages) {
    clv_train_config config = config_of(&cases[0], host);
    config.ema_decay = 0;
    clv_trainer *trainer = run(&config);
    clv_session *session = clv_trainer_info_get(trainer).session;
    assert_status(clv_averages_begin(session), CLV_E_STATE, runtime);
    assert_status(clv__averages_save(session, "x"), CLV_E_STATE, runtime);
    assert_status(clv_averages_swap(session), CLV_E_STATE, runtime);
    assert_string_equal(clv_runtime_error(runtime),
                        "clv_averages_swap: the session keeps no averages: clv_averages_add appends them to "
                        "the graph of its steps, before clv_session_reserve or clv_run_create");
    assert_false(clv_session_info_get(session).averages_swapped);
    assert_false(clv_session_info_get(NULL).averages_swapped);
    clv_trainer_destroy(trainer);
}

// ---- buffers ------------------------------------------------------------------------------------------------------

/** A training graph of one parameter of three, and a buffer that stands beside it. */
static clv_graph *with_buffer(bool optimizer, clv_tensor **parameter, clv_tensor **buffer) {
    clv_graph *graph = clv__test_graph(runtime);
    clv_graph_set_training(graph, true);
    *parameter = clv_parameter(graph, "w", CLV_SHAPE(3), (clv_init){.kind = CLV_INIT_ONES});
    *buffer = clv_buffer(graph, "seen", CLV_DTYPE_F32, CLV_SHAPE(3), (clv_init){.kind = CLV_INIT_ZEROS});
    clv_tensor *loss = clv_mean(clv_square(clv_add(*parameter, *buffer)), (int[]){0}, 1, false);
    clv_output(loss, "loss");
    if (!optimizer) return graph;
    clv_backward(loss);
    clv_optimizer_add(graph, &(clv_optimizer_config){.kind = CLV_SGD});
    return graph;
}

TEST(buffer_takes_values) {
    clv_tensor *parameter, *buffer;
    clv_graph *graph = with_buffer(true, &parameter, &buffer);
    clv_buffer_update(buffer, clv_add_scalar(clv_mul_scalar(buffer, 2), 1));
    clv_plan *plan = clv__test_plan(runtime, graph, &(clv_plan_config){.device = host});
    clv_session *session = clv__test_session(runtime, NULL);
    assert_status(clv_session_reserve(session, &plan, 1), CLV_OK, runtime);
    clv_run *run = clv__test_run(runtime, session, plan);
    const float losses[] = {1, 4, 16}; // of 1 + 0, 1 + 1, 1 + 3
    float seen[3], loss;
    for (int i = 0; i < 3; i++) {
        clv_fetch fetch = {clv_graph_find(graph, "loss"), &loss, sizeof loss};
        assert_status(clv_run_do(run, &(clv_step){NULL, 0, 0, &fetch, 1}), CLV_OK, runtime);
        assert_float_equal(loss, losses[i], 0);
    }
    assert_status(clv_session_read(session, clv_session_find(session, "seen"), seen, sizeof seen), CLV_OK,
                  runtime);
    for (int i = 0; i < 3; i++) assert_float_equal(seen[i], 7, 0);
    clv__test_end(run, session, plan, graph);
}

TEST(buffer_refusals) {
    static const struct {
        bool optimizer, to_parameter, wide, whole;
        clv_status status;
    } refused[] = {{true, true, false, false, CLV_E_VALUE},
                   {false, false, false, false, CLV_E_STATE},
                   {true, false, true, false, CLV_E_SHAPE},
                   {true, false, false, true, CLV_E_DTYPE}};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        clv_tensor *parameter, *buffer;
        clv_graph *graph = with_buffer(refused[i].optimizer, &parameter, &buffer);
        clv_tensor *value = clv_full(graph, refused[i].whole ? CLV_DTYPE_I32 : CLV_DTYPE_F32,
                                     refused[i].wide ? CLV_SHAPE(4) : CLV_SHAPE(3), 1);
        clv_buffer_update(refused[i].to_parameter ? parameter : buffer, value);
        assert_int_equal(clv_graph_status(graph), refused[i].status);
        clv_graph_destroy(graph);
    }
}

TEST_MAIN(setup, teardown)
