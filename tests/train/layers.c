// SPDX-License-Identifier: Apache-2.0
// Layers and models: parameters under PyTorch's names and shapes, first values within PyTorch's bounds, mistakes that stick.
#include <math.h>

#include "cleave/nn.h"
#include "cleave/optim.h"
#include "cleave/plan.h"
#include "cleave/train.h"
#include "harness/harness.h"
#include "harness/parallel.h"
#include "nn/models.h"

TEST_RUNTIME
static clv_device *host;

FIXTURE(setup) {
    runtime = clv__test_runtime(&(clv_runtime_config){.no_opencl = true});
    host = clv__test_device(runtime, "host");
}

static clv_graph *new_graph(void) {
    return clv__test_graph(runtime);
}

static void expect_shape(const clv_tensor *tensor, clv_shape want) {
    assert_non_null(tensor);
    clv_shape got = clv_tensor_shape(tensor);
    char a[96], b[96];
    if (!clv_shape_equal(&got, &want))
        fail_msg("'%s' is %s, not %s", clv_tensor_name(tensor), clv_shape_text(&got, a, sizeof a),
                 clv_shape_text(&want, b, sizeof b));
}

/** Names and shapes as torch.nn's state_dict of the same layers has them. */
TEST(test_names_and_shapes) {
    clv_graph *graph = new_graph();
    clv_scope_push(graph, "features");
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(2, 6, 9, 8));
    clv_nn_conv2d_config conv = {
        .kernel = {3}, .stride = {2}, .padding = {1, 1}, .groups = 2, .no_bias = true};
    x = clv_nn_conv2d(x, "0", 4, &conv);
    expect_shape(x, CLV_SHAPE(2, 4, 5, 4));
    x = clv_nn_batch_norm(x, "1", NULL);
    x = clv_nn_conv2d(x, "2", 5, &(clv_nn_conv2d_config){.kernel = {1, 3}, .padding = {0, 1}});
    expect_shape(x, CLV_SHAPE(2, 5, 5, 4));
    clv_scope_pop(graph);
    clv_scope_push(graph, "classifier");
    clv_scope_push(graph, "1.2"); // one scope: one pop
    clv_nn_linear(clv_flatten(x, 1), "3.4", 7, NULL);
    clv_scope_pop(graph);
    clv_nn_linear(clv_flatten(x, 1), "5", 7, NULL);
    clv_scope_pop(graph);
    expect_shape(clv_graph_find(graph, "classifier.1.2.3.4.bias"), CLV_SHAPE(7));
    expect_shape(clv_graph_find(graph, "classifier.5.bias"), CLV_SHAPE(7));
    x = clv_nn_linear(clv_flatten(x, 1), "fc", 7, NULL);
    expect_shape(x, CLV_SHAPE(2, 7));
    assert_status(clv_graph_status(graph), CLV_OK, runtime);
    expect_shape(clv_graph_find(graph, "features.0.weight"), CLV_SHAPE(4, 3, 3, 3));
    assert_null(clv_graph_find(graph, "features.0.bias"));
    expect_shape(clv_graph_find(graph, "features.1.weight"), CLV_SHAPE(4));
    expect_shape(clv_graph_find(graph, "features.1.running_var"), CLV_SHAPE(4));
    expect_shape(clv_graph_find(graph, "features.2.weight"), CLV_SHAPE(5, 4, 1, 3));
    expect_shape(clv_graph_find(graph, "features.2.bias"), CLV_SHAPE(5));
    expect_shape(clv_graph_find(graph, "fc.weight"), CLV_SHAPE(7, 100));
    clv_graph_destroy(graph);
}

/** What the session holds under a name, n floats; to be freed. */
static float *values_of(clv_session *session, const char *name, size_t *n) {
    int i = clv_session_find(session, name);
    assert_true(i >= 0);
    clv_session_tensor tensor = clv_session_get(session, i);
    float *values = malloc(tensor.bytes);
    assert_non_null(values);
    assert_status(clv_session_read(session, i, values, tensor.bytes), CLV_OK, runtime);
    *n = tensor.bytes / sizeof(float);
    return values;
}

/** Uniform within the bound: never beyond it, near to it somewhere, mean near zero, variance a third of its square. */
static void expect_uniform(clv_session *session, const char *name, double bound) {
    size_t n;
    float *values = values_of(session, name, &n);
    double sum = 0, squares = 0, most = 0;
    for (size_t j = 0; j < n; j++) {
        sum += values[j];
        squares += (double)values[j] * values[j];
        most = fmax(most, fabs((double)values[j]));
    }
    free(values);
    if (most > bound * 1.000001 || (n >= 100 && most < 0.95 * bound))
        fail_msg("'%s' goes to %g, not %g", name, most, bound);
    if (n >= 1000 && fabs(sum / (double)n) > 0.05 * bound)
        fail_msg("'%s' has mean %g", name, sum / (double)n);
    if (n >= 1000 && fabs(squares / (double)n - bound * bound / 3) > 0.05 * bound * bound)
        fail_msg("'%s' is not uniform", name);
}

static void expect_normal(clv_session *session, const char *name, double std) {
    size_t n;
    float *values = values_of(session, name, &n);
    double sum = 0, squares = 0;
    for (size_t j = 0; j < n; j++) sum += values[j], squares += (double)values[j] * values[j];
    free(values);
    double mean = sum / (double)n, got = sqrt(squares / (double)n);
    if (fabs(mean) > 0.1 * std || fabs(got / std - 1) > 0.1)
        fail_msg("'%s' has mean %g, deviation %g, not %g", name, mean, got, std);
}

TEST(test_first_values) {
    const clv_model *cnn = clv_model_find("cnn");
    clv_graph *graph = new_graph();
    clv_tensor *x = clv_model_input(graph, cnn, 1);
    clv_output(clv_model_build(cnn, x), "logits");
    clv_plan *plan = clv__test_plan(runtime, graph, &(clv_plan_config){.device = host});
    clv_session *session = clv__test_session(runtime, &(clv_session_config){.seed = 3});
    assert_status(clv_session_reserve(session, &plan, 1), CLV_OK, runtime);
    expect_uniform(session, "conv1.weight", 1 / sqrt(9.0));
    expect_uniform(session, "conv1.bias", 1 / sqrt(9.0));
    expect_uniform(session, "conv2.weight", 1 / sqrt(288.0));
    expect_uniform(session, "fc1.weight", 1 / sqrt(9216.0));
    expect_uniform(session, "fc1.bias", 1 / sqrt(9216.0));
    expect_uniform(session, "fc2.weight", 1 / sqrt(128.0));
    clv__test_end(NULL, session, plan, graph);
}

/** Every model builds for training and for prediction, for any batch, and gives logits. */
TEST(test_models) {
    assert_null(clv_model_get(-1));
    assert_null(clv_model_get(1000));
    assert_null(clv_model_find("none"));
    assert_null(clv_model_find(NULL));
    for (int i = 0; clv_model_get(i); i++) {
        const clv_model *model = clv_model_get(i);
        assert_ptr_equal(clv_model_find(model->name), model);
        for (int training = 0; training < 2; training++) {
            clv_graph *graph = new_graph();
            clv_graph_set_training(graph, training);
            if (model->build_all) {
                clv_tensor *in[CLV_MAX_PORTS], *outputs[CLV_MAX_PORTS];
                clv_model_tensors(graph, model, CLV_PORT_INPUT, 3, in);
                clv_model_build_all(model, in, model->n_inputs, outputs, model->n_targets);
                expect_shape(outputs[0], CLV_SHAPE(3, model->targets[0].classes));
                clv_graph_destroy(graph);
                continue;
            }
            clv_tensor *x = clv_model_input(graph, model, 3);
            const clv_model eleven = clv_model_for(model, 0, 0, 0, 11);
            clv_shape logits = clv__model_target_shape(model, 3);
            logits.dims[logits.rank++] = 11;
            expect_shape(clv_model_build(&eleven, x), logits);
            assert_status(clv_graph_status(graph), CLV_OK, runtime);
            clv_graph_destroy(graph);
        }
    }
}

/** A training step of every model, at its own size and batch 8, can be planned; nothing is computed and nothing taken. */
TEST(test_models_plan) {
    clv_runtime *other = clv__test_runtime(&(clv_runtime_config){.no_opencl = true, .null_devices = true});
    clv_device *null = NULL;
    for (int i = 0; i < clv_runtime_info_get(other).n_devices; i++)
        if (!strcmp(clv_device_info_get(clv_device_get(other, i))->backend, "null"))
            null = clv_device_get(other, i);
    assert_non_null(null);
    for (int i = 0; clv_model_get(i); i++) {
        const clv_model *model = clv_model_get(i);
        clv_graph *graph = clv__test_graph(other);
        clv_graph_set_training(graph, true);
        clv_tensor *in[CLV_MAX_PORTS], *outputs[CLV_MAX_PORTS];
        const int n_inputs = clv_model_port_count(model, CLV_PORT_INPUT);
        clv_model_tensors(graph, model, CLV_PORT_INPUT, 8, in);
        clv_model_build_all(model, in, n_inputs, outputs, 1);
        const clv_loss *given = clv_loss_find("cross_entropy");
        clv_tensor *loss = given->build(outputs[0], clv_model_target(graph, model, 8), given);
        clv_output(loss, "loss");
        clv_backward(loss);
        clv_optimizer_add(graph, &(clv_optimizer_config){.kind = CLV_SGD});
        for (int k = 0; k < clv_graph_info_get(graph).n_parameters; k++)
            assert_non_null(clv_gradient(clv_parameter_get(graph, k)));
        clv_plan *plan = clv__test_plan(other, graph, &(clv_plan_config){.device = null});
        assert_true(clv_plans_memory(&plan, 1, NULL).predicted_peak_bytes > 0);
        clv_plan_destroy(plan);
        clv_graph_destroy(graph);
    }
    clv_runtime_destroy(other);
}

/** A copy of a model for other images and classes; the others of its sizes stay. */
TEST(test_model_for) {
    const clv_model *resnet18 = clv_model_find("resnet18");
    clv_model small = clv_model_for(resnet18, 0, 64, 48, 10);
    assert_int_equal(small.input[0], 3);
    assert_int_equal(small.input[1], 64);
    assert_int_equal(small.input[2], 48);
    assert_int_equal(small.classes, 10);
    assert_int_equal(clv_model_for(resnet18, 1, 0, 0, 0).classes, 1000);
    clv_graph *graph = new_graph();
    clv_tensor *x = clv_model_input(graph, &small, 2);
    expect_shape(clv_model_build(&small, x), CLV_SHAPE(2, 10));
    clv_graph_destroy(graph);
}

/** torchvision begins convolutions with variance 2 / fan_out, classifiers of VGG with a deviation of 0.01. */
TEST(test_first_values_of_torchvision) {
    clv_model model = clv_model_for(clv_model_find("mobilenet_v2"), 3, 32, 32, 100);
    clv_graph *graph = new_graph();
    clv_tensor *x = clv_model_input(graph, &model, 1);
    clv_output(clv_model_build(&model, x), "logits");
    clv_plan *plan = clv__test_plan(runtime, graph, &(clv_plan_config){.device = host});
    clv_session *session = clv__test_session(runtime, &(clv_session_config){.seed = 3});
    assert_status(clv_session_reserve(session, &plan, 1), CLV_OK, runtime);
    expect_normal(session, "features.18.0.weight", sqrt(2.0 / 1280));
    expect_normal(session, "features.2.conv.1.0.weight", sqrt(2.0 / (96 * 9)));
    expect_normal(session, "classifier.1.weight", 0.01);
    clv__test_end(NULL, session, plan, graph);
}

TEST(test_dropout_only_in_training) {
    clv_graph *graph = new_graph();
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(4, 4));
    assert_ptr_equal(clv_nn_dropout(x, 0.5f), x);
    clv_graph_set_training(graph, true);
    clv_tensor *y = clv_nn_dropout(x, 0.5f);
    assert_non_null(y);
    assert_ptr_not_equal(y, x);
    clv_graph_destroy(graph);
}

TEST(test_mistakes_stick) {
    assert_null(clv_nn_linear(NULL, "a", 3, NULL));
    assert_null(clv_nn_conv2d(NULL, "a", 3, NULL));
    assert_null(clv_nn_batch_norm(NULL, "a", NULL));
    assert_null(clv_nn_dropout(NULL, 0.5f));
    for (int i = 0; i < 6; i++) {
        clv_graph *graph = new_graph();
        clv_tensor *image = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(2, 3, 8, 8));
        clv_tensor *flat = clv_input(graph, "flat", CLV_DTYPE_F32, CLV_SHAPE(5));
        clv_nn_conv2d_config kernel = {.kernel = {3}}, groups = {.kernel = {3}, .groups = 2};
        clv_tensor *bad = i == 0   ? clv_nn_linear(image, "fc", -1, NULL)
                          : i == 1 ? clv_nn_conv2d(image, "conv", 4, NULL) // no kernel
                          : i == 2 ? clv_nn_conv2d(image, "conv", 4, &groups)
                          : i == 3 ? clv_nn_conv2d(flat, "conv", 4, &kernel)
                          : i == 4 ? clv_nn_batch_norm(flat, "norm", NULL)
                                   : clv_nn_conv2d(image, "conv", -1, &kernel);
        if (bad || clv_graph_status(graph) == CLV_OK) fail_msg("mistake %d went through", i);
        clv_graph_destroy(graph);
    }
}

/** Two layers of one name would train one set of weights without a word. */
TEST(test_a_name_is_used_once) {
    static const clv_nn_conv2d_config kernel = {.kernel = {3}};
    for (int i = 0; i < 5; i++) {
        clv_graph *graph = new_graph();
        clv_tensor *image = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(2, 3, 8, 8));
        clv_scope_push(graph, "part");
        for (int k = 0; k < 2; k++) {
            if (i == 0) clv_nn_conv2d(image, "twin", 3, &kernel);
            if (i == 1) clv_nn_linear(image, "twin", 8, NULL);
            if (i == 2) clv_nn_batch_norm(image, "twin", NULL);
            if (i == 3) clv_nn_batch_norm(image, "twin", &(clv_nn_batch_norm_config){.no_affine = true});
            if (i == 4) clv_nn_layer_norm(image, "twin", 0);
        }
        assert_status(clv_graph_status(graph), CLV_E_VALUE, runtime);
        assert_holds(clv_runtime_error(runtime), "there is a layer 'part.twin' already");
        clv_graph_destroy(graph);
    }
    // On purpose: parameters made by name are shared; scopes tell layers apart.
    clv_graph *graph = new_graph();
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(2, 5));
    clv_parameter(graph, "a.weight", CLV_SHAPE(5, 5), (clv_init){.kind = CLV_INIT_ONES});
    x = clv_nn_linear(x, "a", 5, NULL);
    x = clv_linear(x, clv_parameter(graph, "a.weight", CLV_SHAPE(5, 5), (clv_init){.kind = CLV_INIT_ONES}),
                   NULL);
    clv_scope_push(graph, "b");
    x = clv_nn_linear(x, "a", 5, NULL);
    clv_scope_pop(graph);
    assert_non_null(x);
    assert_int_equal(clv_graph_info_get(graph).n_parameters, 4);
    clv_graph_destroy(graph);
}

static clv_tensor *one_layer(clv_tensor *x, void *user) {
    x = clv_nn_linear(x, "fc", 5, NULL);
    return user ? clv_nn_linear(x, "fc", 5, NULL) : x;
}

/** Replicas have the same layers on purpose; within one, and beside them, a name is used once. */
TEST(test_replicas_share_names) {
    static const char *const devices[] = {"host", "cpu"};
    for (int i = 0; i < 4; i++) {
        clv_graph *graph = new_graph();
        clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(4, 5));
        if (i == 1) x = clv_nn_linear(x, "fc", 5, NULL);
        x = parallel_of(x, devices, NULL, 2, one_layer, i == 2 ? &i : NULL);
        if (i == 3) x = clv_nn_linear(x, "fc", 5, NULL);
        assert_status(clv_graph_status(graph), i == 0 ? CLV_OK : CLV_E_VALUE, runtime);
        clv_graph_destroy(graph);
    }
}

static void count_warning(void *user, clv_log_level level, const char *sentence) {
    if (level == CLV_LOG_WARNING && strstr(sentence, "not set to training")) ++*(int *)user;
}

TEST(test_optimizer_wants_training) {
    int warnings = 0;
    clv_runtime *other = clv__test_runtime(
        &(clv_runtime_config){.no_opencl = true, .log = count_warning, .log_user = &warnings});
    for (int training = 1; training >= 0; training--) {
        clv_graph *graph = clv__test_graph(other);
        clv_graph_set_training(graph, training);
        clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(4, 5));
        clv_backward(clv_mean(clv_nn_linear(x, "fc", 5, NULL), NULL, 0, false));
        clv_optimizer_add(graph, &(clv_optimizer_config){.kind = CLV_SGD});
        assert_status(clv_graph_status(graph), CLV_OK, other);
        assert_int_equal(warnings, !training);
        clv_graph_destroy(graph);
    }
    clv_runtime_destroy(other);
}

/** Samples of a model's shape, and what others seem to be. */
TEST(test_samples) {
    clv_model grey = {.name = "grey", .input = {1, 28, 28}, .classes = 2},
              colour = {.name = "colour", .input = {3, 32, 32}, .classes = 2},
              row = {.name = "row", .input = {1, 1, 60}, .classes = 2},
              deep = {.name = "deep", .input = {32, 32, 3}, .classes = 2};
    const struct {
        const clv_model *model;
        clv_shape sample;
        const char *said; // NULL: fits
    } cases[] = {
        {&grey, CLV_SHAPE(1, 28, 28), NULL},
        {&grey, CLV_SHAPE(28, 28), NULL},
        {&grey, CLV_SHAPE(28, 28, 1), "their channels are last (NHWC)"},
        {&grey, CLV_SHAPE(32, 32, 3), "their channels are last (NHWC)"},
        {&grey, CLV_SHAPE(784), "x.reshape(-1, 1, 28, 28)"},
        {&grey, CLV_SHAPE(28, 1, 28), "x.reshape(-1, 1, 28, 28)"},
        {&grey, CLV_SHAPE(1, 1, 28, 28), "x.reshape(-1, 1, 28, 28)"},
        {&grey, CLV_SHAPE(1, 28, 27), "which wants [1,28,28]"},
        {&grey, CLV_SHAPE(27, 28), "which wants [1,28,28]"},
        {&colour, CLV_SHAPE(3, 32, 32), NULL},
        {&colour, CLV_SHAPE(32, 32, 3), "x.transpose(0, 3, 1, 2)"},
        {&colour, CLV_SHAPE(40, 30, 4), "x.transpose(0, 3, 1, 2)"},
        {&colour, CLV_SHAPE(32, 32), "which wants [3,32,32]"},
        {&row, CLV_SHAPE(60), NULL},
        {&row, CLV_SHAPE(1, 60), NULL},
        {&row, CLV_SHAPE(61), "which wants [1,1,60]"},
        {&deep, CLV_SHAPE(32, 32, 3), NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        clv_status status = clv__model_check_samples(runtime, cases[i].model, "images 'x'", &cases[i].sample);
        assert_status(status, cases[i].said ? CLV_E_SHAPE : CLV_OK, runtime);
        if (!cases[i].said) continue;
        assert_holds(clv_runtime_error(runtime), cases[i].said);
        assert_holds(clv_runtime_error(runtime), "images 'x' of shape [");
    }
}

TEST_MAIN(setup, end_runtime)
