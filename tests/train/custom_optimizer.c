// SPDX-License-Identifier: Apache-2.0
// Optimizers of a program's own: SGD with momentum written as one gives the bits of the built-in one, Lion the numbers of a reference in
// double; with groups, clipping, mixed precision, resumed, on several devices, in the memory that was planned; and what is refused.
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cleave/custom_op.h"
#include "cleave/ops.h"
#include "cleave/train.h"
#include "train/small.h"

enum { MOST = 2048 };

static clv_runtime *runtime;
static clv_dataset *dataset;
static clv_device *host;

// ---- SGD with momentum ----------------------------------------------------------------------------------------------------

// In the order of the built-in one, so that a compiler contracts the same products and sums.
static const char kernel[] =
    "__kernel void KERNEL(momentum_step)(__global float *q, __global float *c, __global const float *p,\n"
    "                                    __global const float *g, __global const float *b,\n"
    "                                    __global const float *lr, int n, float momentum, float decay,\n"
    "                                    float one) {\n"
    "    const int i = get_global_id(0);\n"
    "    if (i >= n) return;\n"
    "    const float d = g[i] * one + decay * p[i];\n"
    "    c[i] = momentum * b[i] + one * d;\n"
    "    q[i] = p[i] - lr[0] * c[i];\n"
    "}\n";

static void reference(const clv_op_use *use, const double *const *in, double *const *out) {
    for (int64_t i = 0; i < clv_shape_numel(&use->in[0].shape); i++) {
        const double d = in[1][i] + use->attributes[1].number * in[0][i];
        out[1][i] = use->attributes[0].number * in[2][i] + d;
        out[0][i] = in[0][i] - in[3][0] * out[1][i];
    }
}

static const clv_op_value inputs[] = {
    {"parameter", "f32[*]"}, {"gradient", "f32[*]"}, {"buffer", "f32[*]"}, {"lr", "f32[1]"}, {NULL, NULL}};
static const clv_op_value outputs[] = {
    {"new_parameter", "like parameter"}, {"new_buffer", "like parameter"}, {NULL, NULL}};
static const clv_op_attribute settings[] = {
    {.name = "momentum", .kind = CLV_ATTRIBUTE_NUMBER, .fallback = "0"},
    {.name = "decay", .kind = CLV_ATTRIBUTE_NUMBER, .fallback = "0"},
    {.name = "one", .kind = CLV_ATTRIBUTE_NUMBER, .fallback = "1"},
    {.name = NULL}};
static const clv_op_sample_input vectors[] = {{.dtype = CLV_DTYPE_F32, .shape = {1, {9}}},
                                              {.dtype = CLV_DTYPE_F32, .shape = {1, {9}}},
                                              {.dtype = CLV_DTYPE_F32, .shape = {1, {9}}},
                                              {.dtype = CLV_DTYPE_F32, .shape = {1, {1}}}};
static const clv_op_sample samples[] = {{.label = "vector", .in = vectors, .n_in = 4, .quick = true},
                                        {.label = NULL}};
static const clv_op_variant variants[] = {{.name = "plain", .kernel = kernel}, {.name = NULL}};
static const clv_custom_op momentum_step = {.bytes = sizeof momentum_step,
                                            .name = "momentum_step",
                                            .inputs = inputs,
                                            .attributes = settings,
                                            .outputs = outputs,
                                            .variants = variants,
                                            .reference = reference,
                                            .samples = samples};

static void momentum_update(const clv_update_use *use, clv_tensor **parameter, clv_tensor **states) {
    clv_tensor *in[] = {use->parameter, use->gradient, use->states[0], use->lr};
    // as the built-in one means them: the float nearest to what was written
    const clv_op_argument given[] = {{.name = "momentum", .number = (double)(float)use->attributes[0]},
                                     {.name = "decay", .number = use->weight_decay}};
    *parameter = clv_op_call(clv_tensor_graph(use->parameter), "momentum_step", in, 4, given, 2);
    states[0] = clv_op_output(*parameter, 1);
}

static const clv_attribute momentum_attributes[] = {{"momentum", 0.5}, {NULL, 0}};
static const clv_custom_optimizer custom_momentum = {
    .bytes = sizeof custom_momentum,
    .name = "custom_momentum",
    .states = (const clv_optimizer_state[]){{"momentum_buffer", 0}, {NULL, 0}},
    .attributes = momentum_attributes,
    .update = momentum_update};
static const clv_attribute nine[] = {{"momentum", 0.9}};
static const clv_param_group groups[] = {{.max_rank = 1, .lr = 0.5f, .weight_decay = -1}};

// ---- Lion -------------------------------------------------------------------------------------------------------------

static clv_tensor *mix(clv_tensor *a, clv_tensor *b, double part) {
    return clv_add(clv_mul_scalar(a, (float)part), clv_mul_scalar(b, (float)(1 - part)));
}

static void lion_update(const clv_update_use *use, clv_tensor **parameter, clv_tensor **states) {
    clv_tensor *way = mix(use->states[0], use->gradient, use->attributes[0]), *zero = clv_mul_scalar(way, 0);
    clv_tensor *back = clv_mul_scalar(use->lr, -1);
    clv_tensor *step =
        clv_where(clv_gt(way, zero), use->lr, clv_where(clv_gt(zero, way), back, clv_mul_scalar(use->lr, 0)));
    *parameter = clv_sub(use->parameter, step);
    states[0] = mix(use->states[0], use->gradient, use->attributes[1]);
}

static const clv_attribute betas[] = {{"beta1", 0.9}, {"beta2", 0.99}, {NULL, 0}};
static const clv_custom_optimizer lion = {.bytes = sizeof lion,
                                          .name = "leo",
                                          .states = (const clv_optimizer_state[]){{"exp_avg", 0}, {NULL, 0}},
                                          .attributes = betas,
                                          .update = lion_update};

// ---- trainings --------------------------------------------------------------------------------------------------------

FIXTURE(setup) {
    runtime = clv__test_runtime(NULL);
    assert_status(clv_op_register(runtime, &momentum_step), CLV_OK, runtime);
    dataset = small_dataset(runtime, 10);
    host = clv__test_device(runtime, "host");
}

FIXTURE(teardown) {
    clv_dataset_destroy(dataset);
    clv_runtime_destroy(runtime);
}

static clv_train_config config_of(clv_device *device, const clv_optimizer_config *optimizer) {
    clv_train_config config = small_config(&small_model, dataset, 4, 3);
    config.device = device;
    config.optimizer = *optimizer;
    return config;
}

/** Train, see that the devices held what was predicted, and read all that is kept. */
static int train(const clv_train_config *config, float kept[MOST]) {
    int n;
    clv_trainer *trainer = small_trained(runtime, config);
    assert_status(small_read(clv_trainer_info_get(trainer).session, kept, MOST, &n), CLV_OK, runtime);
    clv_trainer_destroy(trainer);
    return n;
}

static const clv_optimizer_config built_in = {
    .momentum = 0.9f, .weight_decay = 0.01f, .groups = groups, .n_groups = 1};
static const clv_optimizer_config as_own = {.weight_decay = 0.01f,
                                            .groups = groups,
                                            .n_groups = 1,
                                            .custom = &custom_momentum,
                                            .attributes = nine,
                                            .n_attributes = 1};

static void same_bits(clv_device *device) {
    float a[MOST] = {0}, b[MOST] = {0};
    clv_train_config one = config_of(device, &built_in), two = config_of(device, &as_own);
    const int n = train(&one, a);
    assert_true(n > 50);
    assert_int_equal(train(&two, b), n);
    for (int i = 0; i < n; i++) // a zero may have either sign
        if (!(a[i] == b[i]))
            fail_msg("number %d is %.9g, the built-in one has %.9g", i, (double)b[i], (double)a[i]);
    for (int clipped = 0; clipped < 2; clipped++) {
        one.precision = two.precision = clipped ? CLV_PRECISION_F32 : CLV_PRECISION_MIXED;
        one.optimizer.clip_norm = two.optimizer.clip_norm = clipped ? 0.5f : 0;
        train(&one, a), train(&two, b);
        // the gradient is rounded once more, after it was scaled
        for (int i = 0; i < n; i++) assert_true(fabsf(a[i] - b[i]) <= 2e-5f * fmaxf(1, fabsf(a[i])));
    }
}

TEST(momentum_on_host) {
    same_bits(host);
}

TEST(momentum_on_opencl) {
    clv_device *device = clv__test_device_or_skip(runtime, "gpu|accelerator|cpu");
    same_bits(device);
}

/** Layers on two devices: the same numbers. */
TEST(on_two_devices) {
    char place[128];
    clv_device *device = clv__test_device_or_skip(runtime, "gpu|accelerator|cpu");
    snprintf(place, sizeof place, "*=host,fc=%s", clv_device_info_get(device)->name);
    clv_train_config config = config_of(host, &as_own);
    config.model = &small_plain;
    static const char *const names[] = {"conv.weight", "fc.weight", "fc.bias", "fc.weight.momentum_buffer"};
    float values[2][4][256] = {0};
    for (int placed = 0; placed < 2; placed++) {
        if (placed) config.device = NULL, config.placement.place = place;
        clv_trainer *trainer = clv__test_trainer(runtime, &config);
        assert_status(clv_trainer_run(trainer), CLV_OK, runtime);
        clv_session *session = clv_trainer_info_get(trainer).session;
        for (int k = 0; k < 4; k++) {
            const int at = clv_session_find(session, names[k]);
            const size_t bytes = clv_session_get(session, at).bytes;
            assert_true(bytes <= sizeof values[placed][k]);
            assert_status(clv_session_read(session, at, values[placed][k], bytes), CLV_OK, runtime);
        }
        clv_trainer_destroy(trainer);
    }
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < 256; i++) assert_true(fabsf(values[0][k][i] - values[1][k][i]) <= 2e-5f);
}

/** Five steps of Lion on p, whose loss is the mean of (p - i)^2, against the formulas in double. */
TEST(lion_as_written) {
    enum { N = 7, STEPS = 5 };
    float wanted[N], got[N], momentum[N];
    double p[N] = {0}, m[N] = {0};
    for (int i = 0; i < N; i++) wanted[i] = (float)(i - 3);
    clv_graph *graph = clv__test_graph(runtime);
    clv_graph_set_training(graph, true);
    clv_tensor *to = clv_input(graph, "to", CLV_DTYPE_F32, CLV_SHAPE(N));
    clv_tensor *x = clv_parameter(graph, "p", CLV_SHAPE(N), (clv_init){.kind = CLV_INIT_ZEROS});
    clv_backward(clv_mse_loss(x, to));
    clv_optimizer_add(graph, &(clv_optimizer_config){.custom = &lion});
    clv_plan *plan = clv__test_plan(runtime, graph, &(clv_plan_config){.device = host});
    clv_session *session = clv__test_session(runtime, NULL);
    clv_run *run = clv__test_run(runtime, session, plan);
    for (int step = 0; step < STEPS; step++) {
        clv_feed feed = {to, wanted, sizeof wanted};
        assert_status(clv_run_do(run, &(clv_step){&feed, 1, 0.1, NULL, 0}), CLV_OK, runtime);
        for (int i = 0; i < N; i++) {
            const double g = 2 * (p[i] - (double)wanted[i]) / N, way = 0.9 * m[i] + 0.1 * g;
            p[i] -= 0.1 * ((way > 0) - (way < 0));
            m[i] = 0.99 * m[i] + 0.01 * g;
        }
    }
    assert_status(clv_session_read(session, clv_session_find(session, "p"), got, sizeof got), CLV_OK,
                  runtime);
    assert_status(
        clv_session_read(session, clv_session_find(session, "p.exp_avg"), momentum, sizeof momentum), CLV_OK,
        runtime);
    for (int i = 0; i < N; i++) {
        assert_true(fabs((double)got[i] - p[i]) < 1e-6);
        assert_true(fabs((double)momentum[i] - m[i]) < 1e-7);
    }
    clv_run_destroy(run), clv_session_destroy(session), clv_plan_destroy(plan), clv_graph_destroy(graph);
}

/** Interrupted and resumed: the same bits. With another optimizer, or other attributes, it is refused. */
TEST(resumed) {
    const char *path = CLV_TEST_BINARY_DIR "/train_custom_optimizer.ckpt";
    float a[MOST] = {0}, b[MOST] = {0};
    clv_train_config config = config_of(host, &as_own);
    const int n = train(&config, a);
    config.epochs = 1;
    config.checkpoint = path;
    train(&config, b);
    config = config_of(host, &as_own);
    config.resume = path;
    assert_int_equal(train(&config, b), n);
    assert_memory_equal(a, b, (size_t)n * sizeof *a);
    config.optimizer.n_attributes = 0;
    clv_trainer *trainer = clv__test_trainer(runtime, &config);
    assert_status(clv_trainer_run(trainer), CLV_E_VALUE, runtime);
    assert_holds(clv_runtime_error(runtime),
                 "was written with optimizer.custom 'custom_momentum momentum=0.9");
    assert_holds(clv_runtime_error(runtime), "now it is 'custom_momentum momentum=0.5'");
    clv_trainer_destroy(trainer);
    unlink(path);
}

// ---- swapped states and refusals ------------------------------------------------------------------------------------------

/** The state takes the old parameter, and the parameter the old state: neither is overwritten before it is read. */
static void swap_update(const clv_update_use *use, clv_tensor **parameter, clv_tensor **states) {
    *parameter = use->states[0];
    states[0] = use->parameter;
    states[1] = clv_reshape(use->parameter, clv_tensor_shape(use->parameter));
}

TEST(values_change_places) {
    const clv_custom_optimizer swap = {
        .bytes = sizeof swap,
        .name = "swap",
        .states = (const clv_optimizer_state[]){{"other", 7}, {"before", 3}, {NULL, 0}},
        .update = swap_update};
    clv_train_config config = config_of(host, &(clv_optimizer_config){.custom = &swap});
    float was[3], is[3], before[3];
    config.model = &small_plain;
    config.steps = 1;
    clv_trainer *trainer = clv__test_trainer(runtime, &config);
    assert_status(clv_trainer_run(trainer), CLV_OK, runtime);
    clv_session *session = clv_trainer_info_get(trainer).session;
    assert_status(clv_session_read(session, clv_session_find(session, "fc.bias"), is, sizeof is), CLV_OK,
                  runtime);
    assert_status(clv_session_read(session, clv_session_find(session, "fc.bias.other"), was, sizeof was),
                  CLV_OK, runtime);
    assert_status(
        clv_session_read(session, clv_session_find(session, "fc.bias.before"), before, sizeof before), CLV_OK,
        runtime);
    for (int i = 0; i < 3; i++) assert_true(is[i] == 7 && was[i] != 7 && before[i] == was[i]);
    clv_trainer_destroy(trainer);
}

static void flat_update(const clv_update_use *use, clv_tensor **parameter, clv_tensor **states) {
    *parameter = clv_sum(use->parameter, NULL, 0, false);
}

static void no_state_update(const clv_update_use *use, clv_tensor **parameter, clv_tensor **states) {
    *parameter = use->parameter;
}

TEST(refusals) {
    clv_custom_optimizer flat = {.bytes = sizeof flat, .name = "flat", .update = flat_update};
    clv_custom_optimizer less = {.bytes = sizeof less,
                                 .name = "less",
                                 .states = (const clv_optimizer_state[]){{"m", 0}, {NULL, 0}},
                                 .update = no_state_update};
    clv_custom_optimizer none = {.bytes = sizeof none, .name = "none"}, older = lion, twice = lion;
    older.bytes = 8;
    twice.states = (const clv_optimizer_state[]){{"m", 0}, {"m", 0}, {NULL, 0}};
    const clv_attribute unknown = {"beta3", 1}, endless = {"beta1", NAN};
    const struct {
        clv_optimizer_config config;
        clv_status status;
        const char *said;
    } cases[] = {
        {{.custom = &flat},
         CLV_E_SHAPE,
         "optimizer 'flat': its update makes f32 [] as the new value of 'conv.weight', which is f32 "
         "[3,1,2,3]"},
        {{.custom = &less}, CLV_E_VALUE, "optimizer 'less': its update makes no m of 'conv.weight'"},
        {{.custom = &none},
         CLV_E_VALUE,
         "clv_optimizer_add: custom optimizer 'none': it needs an update function"},
        {{.custom = &older},
         CLV_E_VALUE,
         "clv_optimizer_add: custom optimizer '': bytes is not sizeof(clv_custom_optimizer)"},
        {{.custom = &twice},
         CLV_E_VALUE,
         "clv_optimizer_add: custom optimizer 'leo': two states have the same name"},
        {{.custom = &lion, .attributes = &unknown, .n_attributes = 1},
         CLV_E_NOT_FOUND,
         "clv_optimizer_add: optimizer 'leo' has no attribute 'beta3'"},
        {{.custom = &lion, .attributes = &endless, .n_attributes = 1},
         CLV_E_VALUE,
         "clv_optimizer_add: optimizer 'leo': 'beta1' is not finite"},
        {{.custom = &lion, .momentum = 0.9f},
         CLV_E_VALUE,
         "clv_optimizer_add: kind, momentum, dampening, nesterov, beta1, beta2 and eps are not of optimizer "
         "'leo': "
         "give it attributes"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        clv_train_config config = config_of(host, &cases[i].config);
        clv_trainer *trainer;
        assert_status(clv_trainer_create(runtime, &config, &trainer), cases[i].status, runtime);
        assert_string_equal(clv_runtime_error(runtime), cases[i].said);
    }
}

// ---- registered -----------------------------------------------------------------------------------------------------------

static clv_tensor *nothing(clv_tensor *output, clv_tensor *target, const clv_loss *loss) {
    return output;
}

static clv_tensor *itself(clv_tensor *x, const clv_model *model) {
    return x;
}

/** Optimizers, models and losses are found by name, once each; what Cleave brings keeps its names. */
TEST(registered) {
    static clv_custom_optimizer mine, other;
    static const clv_loss loss = {.name = "mine", .build = nothing},
                          same = {.name = "mine", .build = nothing}, mse = {.name = "mse", .build = nothing};
    static const clv_model model = {.name = "mine", .build = itself, .input = {1}},
                           cnn = {.name = "cnn", .build = itself, .input = {1}},
                           anonymous = {.build = itself};
    mine = other = custom_momentum;
    assert_null(clv_custom_optimizer_find("mine"));
    mine.name = other.name = "mine";
    assert_status(clv_optimizer_register(runtime, &mine), CLV_OK, runtime);
    assert_status(clv_optimizer_register(runtime, &mine), CLV_OK, runtime);
    assert_ptr_equal(clv_custom_optimizer_find("mine"), &mine);
    assert_status(clv_optimizer_register(runtime, &other), CLV_E_STATE, runtime);
    assert_string_equal(clv_runtime_error(runtime), "another optimizer is called 'mine' already");
    other.name = "momentum";
    assert_status(clv_optimizer_register(runtime, &other), CLV_E_STATE, runtime);
    other.name = "wrong", other.update = NULL;
    assert_status(clv_optimizer_register(runtime, &other), CLV_E_VALUE, runtime);
    assert_string_equal(clv_runtime_error(runtime), "custom optimizer 'wrong': it needs an update function");
    assert_null(clv_loss_find("mine"));
    assert_status(clv_loss_register(runtime, &loss), CLV_OK, runtime);
    assert_ptr_equal(clv_loss_find("mine"), &loss);
    assert_status(clv_loss_register(runtime, &same), CLV_E_STATE, runtime);
    assert_status(clv_loss_register(runtime, &mse), CLV_E_STATE, runtime);
    assert_string_equal(clv_runtime_error(runtime), "another loss is called 'mse' already");
    assert_null(clv_model_find("mine"));
    assert_status(clv_model_register(runtime, &model), CLV_OK, runtime);
    assert_ptr_equal(clv_model_find("mine"), &model);
    assert_status(clv_model_register(runtime, &cnn), CLV_E_STATE, runtime);
    assert_status(clv_model_register(runtime, &anonymous), CLV_E_VALUE, runtime);
    assert_string_equal(clv_runtime_error(runtime), "a model without a name cannot be registered");
}

TEST_MAIN(setup, teardown)
