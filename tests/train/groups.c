// SPDX-License-Identifier: Apache-2.0
// Groups of parameters with a rate, a decay or no update of their own: the numbers of PyTorch's param_groups, the same bits where groups
// change nothing, few launches, resumed, and what is refused.
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "train/pytorch.h"
#include "train/small.h"

static clv_runtime *runtime;
static clv_archive *golden;
static clv_dataset *dataset;
static clv_device *host;

static const clv_model model = {.name = "small", .build = pytorch_build, .input = {1, 4, 6}, .classes = 3};

static const char *before(void) {
    return CLV_TEST_BINARY_DIR "/train_groups_before.safetensors";
}

FIXTURE(setup) {
    runtime = clv__test_runtime(NULL);
    pytorch_read(runtime, CLV_TEST_SOURCE_DIR "/tests/golden/groups.safetensors", before(), &golden,
                 &dataset);
    host = clv__test_device(runtime, "host");
}

FIXTURE(teardown) {
    clv_dataset_destroy(dataset);
    clv_archive_destroy(golden);
    clv_runtime_destroy(runtime);
}

static const clv_param_group vectors[] = {{.max_rank = 1, .weight_decay = -1}};
static const clv_param_group rates[] = {
    {.patterns = "conv1", .lr = 0.1f, .weight_decay = 0.2f},
    {.patterns = "*.bias, fc.weight", .max_rank = 1, .lr = 2, .weight_decay = -1}};

/** The second group of `rates` is to have fc.bias alone: norm's is taken before. */
static const clv_param_group head[] = {{.patterns = "conv1", .lr = 0.1f, .weight_decay = 0.2f},
                                       {.patterns = "norm", .lr = 1},
                                       {.patterns = "*.bias", .lr = 2, .weight_decay = -1}};

#define GROUPS(array) .groups = array, .n_groups = (int)(sizeof array / sizeof *array)

static const struct golden_case {
    const char *name;
    clv_optimizer_config optimizer;
    double lr;
} cases[] = {
    {"sgd_vectors", {.momentum = 0.9f, .weight_decay = 0.1f, GROUPS(vectors)}, 0.05},
    {"sgd_rates", {.momentum = 0.9f, .weight_decay = 0.1f, GROUPS(head)}, 0.05},
    {"adamw_vectors", {.kind = CLV_ADAMW, .weight_decay = 0.3f, GROUPS(vectors)}, 0.02},
    {"adamw_rates", {.kind = CLV_ADAMW, .weight_decay = 0.3f, GROUPS(head)}, 0.02},
};

static clv_train_config config_of(const struct golden_case *c, clv_device *device) {
    return (clv_train_config){.device = device,
                              .model = &model,
                              .train = dataset,
                              .batch = 4,
                              .epochs = 3,
                              .no_shuffle = true,
                              .optimizer = c->optimizer,
                              .lr = c->lr,
                              .weights = before()};
}

/** Run it, and see that the device held what was predicted. */
static clv_trainer *run(const clv_train_config *config) {
    clv_trainer *trainer = clv__test_trainer(runtime, config);
    clv_device *device = clv_trainer_info_get(trainer).devices[0];
    clv_device_memory_reset_peak(device);
    assert_status(clv_trainer_run(trainer), CLV_OK, runtime);
    assert_int_equal(clv_device_memory(device).all.peak,
                     clv_trainer_device_info_get(trainer, NULL).memory.predicted_peak_bytes);
    return trainer;
}

enum { MOST = 1024 };

/** All of a category, one after the other; returns how many numbers. */
static int read_all(clv_session *session, clv_category category, float out[MOST]) {
    int n = 0;
    for (int i = 0; i < clv_session_info_get(session).n_tensors; i++) {
        const clv_session_tensor tensor = clv_session_get(session, i);
        if (tensor.category != category) continue;
        assert_true(n + (int)(tensor.bytes / 4) <= MOST);
        assert_status(clv_session_read(session, i, out + n, tensor.bytes), CLV_OK, runtime);
        n += (int)(tensor.bytes / 4);
    }
    return n;
}

static void as_pytorch(clv_session *session, const char *name) {
    for (int i = 0; i < clv_session_info_get(session).n_tensors; i++) {
        const clv_session_tensor tensor = clv_session_get(session, i);
        float values[MOST];
        char key[128];
        if (tensor.category != CLV_PARAMETERS) continue;
        snprintf(key, sizeof key, "%s/after/%s", name, tensor.name);
        const clv_array *want = clv_archive_find(golden, key);
        assert_non_null(want);
        assert_status(clv_session_read(session, i, values, tensor.bytes), CLV_OK, runtime);
        for (size_t j = 0; j < tensor.bytes / 4; j++) {
            const double wanted = (double)((float *)want->data)[j];
            if (!(fabs((double)values[j] - wanted) <= 5e-5 * fmax(0.1, fabs(wanted)))) // nine steps in float
                fail_msg("%s: %s[%zu] is %.9g, not %.9g", name, tensor.name, j, (double)values[j], wanted);
        }
    }
}

static void on_device(const char *spec) {
    clv_device *device = clv__test_device_or_skip(runtime, spec);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const clv_train_config config = config_of(&cases[i], device);
        clv_trainer *trainer = run(&config);
        as_pytorch(clv_trainer_info_get(trainer).session, cases[i].name);
        clv_trainer_destroy(trainer);
    }
}

TEST_ON_DEVICES(on_device)

/** Groups that say what is said for all anyway. */
TEST(test_same_bits) {
    static const clv_param_group nothing[] = {{.patterns = "conv1,fc"},
                                              {.max_rank = 1, .lr = 1, .weight_decay = 0.1f}};
    float a[2][MOST], b[2][MOST];
    clv_train_config config = config_of(&cases[0], host);
    for (int with = 0; with < 2; with++) {
        config.optimizer.groups = nothing;
        config.optimizer.n_groups = with ? 2 : 0;
        clv_trainer *trainer = run(&config);
        assert_true(read_all(clv_trainer_info_get(trainer).session, CLV_PARAMETERS, a[with]) > 0);
        assert_true(read_all(clv_trainer_info_get(trainer).session, CLV_OPTIMIZER, b[with]) > 0);
        clv_trainer_destroy(trainer);
    }
    assert_memory_equal(a[0], a[1], 200 * sizeof(float));
}

/** Parameters of a group share launches, wherever they stand in the model; what is frozen has no gradient and no state. */
TEST(test_launches_and_frozen) {
    static const clv_param_group frozen[] = {{.patterns = "conv1", .frozen = true},
                                             {.max_rank = 1, .weight_decay = -1}};
    clv_runtime *others = clv__test_runtime(&(clv_runtime_config){.no_opencl = true, .null_devices = true});
    clv_train_config config = config_of(&cases[0], NULL);
    config.device = clv__test_device(others, "null");
    config.model = clv_model_find("cnn");
    config.optimizer.groups = frozen;
    config.optimizer.n_groups = 2;
    clv_graph *graph;
    assert_status(clv_pass_graph(others, &config, CLV_PASS_TRAIN, 4, &graph), CLV_OK, others);
    clv_plan *plan = clv__test_plan(others, graph, &(clv_plan_config){.device = config.device});
    int updates = 0;
    for (int i = 0; i < clv_plan_info_get(plan).n_nodes; i++)
        updates += !strcmp(clv_plan_node_get(plan, i).op, "sgd_update");
    assert_int_equal(clv_graph_info_get(graph).n_parameters, 8);
    assert_int_equal(updates, 3); // fc1.weight, which is large and by itself; two weights; three biases
    assert_null(clv_gradient(clv_graph_find(graph, "conv1.weight")));
    assert_null(clv_graph_find(graph, "conv1.bias.momentum_buffer"));
    assert_non_null(clv_graph_find(graph, "conv2.bias.momentum_buffer"));
    clv_plan_destroy(plan);
    clv_graph_destroy(graph);
    clv_runtime_destroy(others);
}

/** Stopped in the middle and resumed: the same bits; with other groups it is refused. */
TEST(test_resume) {
    const char *path = CLV_TEST_BINARY_DIR "/train_groups.ckpt";
    clv_train_config config = config_of(&cases[3], host);
    config.epochs = 2;
    config.checkpoint = path;
    clv_trainer_destroy(run(&config));
    config = config_of(&cases[3], host);
    config.weights = NULL;
    config.resume = path;
    clv_trainer *trainer = run(&config);
    as_pytorch(clv_trainer_info_get(trainer).session, cases[3].name);
    clv_trainer_destroy(trainer);
    config.optimizer.n_groups = 1;
    trainer = clv__test_trainer(runtime, &config);
    assert_status(clv_trainer_run(trainer), CLV_E_VALUE, runtime);
    assert_holds(
        clv_runtime_error(runtime),
        "was written with optimizer.groups 'conv1: lr 0.100000001 weight_decay 0.200000003; norm: lr 1; "
        "*.bias: lr 2 weight_decay none', now it is 'conv1: lr 0.100000001 weight_decay 0.200000003'");
    clv_trainer_destroy(trainer);
    unlink(path);
}

TEST(test_refusals) {
    static const struct {
        clv_param_group groups[2];
        clv_status status;
        const char *said;
    } refused[] = {
        {{{.patterns = "nrom.*"}},
         CLV_E_NOT_FOUND,
         "clv_optimizer_freeze: parameter group 'nrom.*': no parameter matches 'nrom.*'; did you mean "
         "'norm'?"},
        {{{.patterns = "conv1", .max_rank = 1}},
         CLV_E_NOT_FOUND,
         "clv_optimizer_freeze: parameter group 'conv1': no parameter of at most max_rank dimensions "
         "matches"},
        {{{.max_rank = 1}, {.patterns = "*.bias"}},
         CLV_E_NOT_FOUND,
         "clv_optimizer_freeze: parameter group '*.bias': groups before it take all parameters that it "
         "matches"},
        {{{.patterns = "fc", .lr = -1}},
         CLV_E_VALUE,
         "clv_optimizer_freeze: parameter group 'fc': lr must be at least 0 (0: 1) and finite"},
        {{{.patterns = "fc", .weight_decay = NAN}},
         CLV_E_VALUE,
         "clv_optimizer_freeze: parameter group 'fc': weight_decay must be finite"},
        {{{.patterns = "fc", .max_rank = -1}},
         CLV_E_VALUE,
         "clv_optimizer_freeze: parameter group 'fc': max_rank must be at least 0 (0: any)"},
        {{{.frozen = true}}, CLV_E_VALUE, "freeze 'parameter groups': nothing is left to train"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        clv_train_config config = config_of(&cases[0], host);
        clv_trainer *trainer;
        config.optimizer.groups = refused[i].groups;
        config.optimizer.n_groups = refused[i].groups[1].patterns ? 2 : 1;
        assert_status(clv_trainer_create(runtime, &config, &trainer), refused[i].status, runtime);
        assert_string_equal(clv_runtime_error(runtime), refused[i].said);
    }
    clv_train_config config = config_of(&cases[0], host);
    clv_trainer *trainer;
    config.optimizer.n_groups = -1;
    assert_status(clv_trainer_create(runtime, &config, &trainer), CLV_E_VALUE, runtime);
    config.optimizer.groups = rates; // a later pattern may find nothing new
    config.optimizer.n_groups = 2;
    trainer = clv__test_trainer(runtime, &config);
    clv_trainer_destroy(trainer);
}

TEST_MAIN(setup, teardown)
