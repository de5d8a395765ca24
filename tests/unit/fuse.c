// SPDX-License-Identifier: Apache-2.0
// Several nodes of the graph done as one: which, which not, and that nothing but the number of launches shows it.
#include <math.h>

#include "cleave/nn.h"
#include "cleave/ops.h"
#include "cleave/optim.h"
#include "plan/plan.h"
#include "unit/world.h"

static clv_plan *planned(clv_graph *graph, clv_plan_config config) {
    if (!config.device && !config.place) config.device = find("null:0");
    return clv__test_plan(runtime, graph, &config);
}

/** The plan's nodes as a text, views left out: `linear+relu sgd_update*8`. */
static const char *text_of(const clv_plan *plan) {
    static char text[1024];
    size_t n = 0;
    text[0] = 0;
    for (int i = 0; i < clv_plan_info_get(plan).n_nodes; i++) {
        clv_plan_node node = clv_plan_node_get(plan, i);
        if (!strcmp(node.variant, "view")) continue;
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", n ? " " : "", node.op);
        if (*node.also) n += (size_t)snprintf(text + n, sizeof text - n, "+%s", node.also);
        if (node.fused && !*node.also) n += (size_t)snprintf(text + n, sizeof text - n, "*%d", node.fused);
    }
    return text;
}

/** Plan a graph that ends in y, and give it back. */
static void expect(clv_graph *graph, clv_tensor *y, clv_plan_config config, const char *text) {
    clv_output(y, NULL);
    size_t n_nodes = graph->n_nodes;
    clv_plan *plan = planned(graph, config);
    assert_string_equal(text_of(plan), text);
    assert_int_equal(graph->n_nodes, n_nodes);
    assert_status(clv__plan_again(plan), CLV_OK, runtime); // as after a quarantine
    assert_string_equal(text_of(plan), text);
    clv_plan_destroy(plan);
    clv_graph_destroy(graph);
}

// ---- what becomes one ---------------------------------------------------------------------------------------------------

static clv_tensor *input(clv_graph *graph, const char *name) {
    return clv_input(graph, name, CLV_DTYPE_F32, CLV_SHAPE(6, 8));
}

TEST(test_elementwise_ops_follow_what_they_read_last) {
    clv_graph *g = new_graph();
    clv_tensor *x = input(g, "x");
    expect(g, clv_add(clv_relu(clv_nn_linear(x, "fc", 8, NULL)), x), (clv_plan_config){0}, "linear+relu+add");
    g = new_graph();
    x = input(g, "x");
    expect(g, clv_add(clv_relu(clv_nn_linear(x, "fc", 8, NULL)), x), (clv_plan_config){.no_fuse = true},
           "linear relu add");
    g = new_graph(); // the second product is made last: the first one is a further input of its epilogue
    x = input(g, "x");
    clv_tensor *first = clv_nn_linear(x, "a", 8, NULL);
    expect(g, clv_relu(clv_add(first, clv_nn_linear(x, "b", 8, NULL))), (clv_plan_config){0},
           "linear linear+add+relu");
    g = new_graph(); // four steps, then the next node begins
    x = input(g, "x");
    for (int i = 0; i < 6; i++) x = clv_relu(x);
    expect(g, x, (clv_plan_config){0}, "relu+relu+relu+relu+relu relu");
    g = new_graph(); // the same value twice
    x = clv_matmul_t(input(g, "x"), false, input(g, "w"), true);
    expect(g, clv_mul(x, x), (clv_plan_config){0}, "matmul+mul");
}

TEST(test_what_is_seen_stays) {
    clv_graph *g = new_graph(); // fetched
    clv_tensor *y = clv_nn_linear(input(g, "x"), "fc", 8, NULL);
    clv_output(y, "y");
    expect(g, clv_relu(y), (clv_plan_config){0}, "linear relu");
    g = new_graph(); // read twice
    y = clv_nn_linear(input(g, "x"), "fc", 8, NULL);
    expect(g, clv_matmul_t(clv_relu(y), false, y, true), (clv_plan_config){0}, "linear relu matmul");
    g = new_graph(); // read by a view
    y = clv_nn_linear(input(g, "x"), "fc", 8, NULL);
    expect(g, clv_add(clv_reshape(y, CLV_SHAPE(8, 6)), clv_input(g, "z", CLV_DTYPE_F32, CLV_SHAPE(8, 6))),
           (clv_plan_config){0}, "linear add");
    g = new_graph(); // repeated along an axis that is not the channels'
    y = clv_nn_linear(input(g, "x"), "fc", 8, NULL);
    expect(g, clv_add(y, clv_input(g, "column", CLV_DTYPE_F32, CLV_SHAPE(6, 1))), (clv_plan_config){0},
           "linear add");
    g = new_graph(); // made larger
    y = clv_sum(input(g, "x"), (int[]){0}, 1, false);
    expect(g, clv_add(clv_relu(y), input(g, "z")), (clv_plan_config){0}, "sum relu add");
    g = new_graph(); // not a float
    y = clv_nn_linear(input(g, "x"), "fc", 8, NULL);
    expect(g, clv_gt(y, input(g, "z")), (clv_plan_config){0}, "linear gt");
    g = new_graph(); // three further inputs
    y = clv_nn_linear(input(g, "x"), "fc", 8, NULL);
    for (int i = 0; i < 3; i++) y = clv_mul(y, input(g, i == 0 ? "a" : i == 1 ? "b" : "c"));
    expect(g, y, (clv_plan_config){0}, "linear+mul+mul mul");
}

static clv_tensor *image(clv_graph *graph, const char *name) {
    return clv_input(graph, name, CLV_DTYPE_F32, CLV_SHAPE(2, 4, 5, 5));
}

static clv_tensor *convolved(clv_tensor *x) {
    return clv_nn_conv2d(x, "conv", 4, &(clv_nn_conv2d_config){.kernel = {1}});
}

/** Batch norm with running statistics is done to a result that has its channels: in evaluation it is no launch. */
TEST(test_batch_norm_follows_what_has_its_channels) {
    clv_graph *g = new_graph();
    clv_tensor *x = image(g, "x"), *y = clv_nn_batch_norm(convolved(x), "norm", NULL);
    expect(g, clv_relu(clv_add(y, x)), (clv_plan_config){0}, "conv2d+batch_norm_eval+add+relu");
    g = new_graph();
    y = clv_nn_batch_norm(convolved(image(g, "x")), "norm", NULL);
    expect(g, clv_relu(y), (clv_plan_config){.no_fuse = true}, "conv2d batch_norm_eval relu");
    g = new_graph();
    y = clv_nn_batch_norm(convolved(image(g, "x")), "norm", NULL);
    expect(g, clv_relu(y), (clv_plan_config){.variants = "batch_norm_eval=plain"},
           "conv2d batch_norm_eval+relu");
    g = new_graph();
    y = clv_nn_batch_norm(clv_relu(convolved(image(g, "x"))), "a", NULL);
    y = clv_nn_batch_norm(y, "b", &(clv_nn_batch_norm_config){.no_affine = true});
    expect(g, y, (clv_plan_config){0},
           "conv2d+relu+batch_norm_eval batch_norm_eval"); // four elements a channel
    g = new_graph();
    y = clv_nn_batch_norm(clv_nn_linear(input(g, "x"), "fc", 8, NULL), "norm",
                          &(clv_nn_batch_norm_config){.no_affine = true});
    expect(g, y, (clv_plan_config){0}, "linear+batch_norm_eval");
    g = new_graph(); // of [2,4,5], where a product knows the last dimension
    y = clv_nn_linear(clv_input(g, "x", CLV_DTYPE_F32, CLV_SHAPE(2, 4, 7)), "fc", 5, NULL);
    expect(g, clv_nn_batch_norm(y, "norm", NULL), (clv_plan_config){0}, "linear batch_norm_eval");
    g = new_graph(); // an elementwise op knows none
    y = clv_nn_batch_norm(clv_relu(image(g, "x")), "norm", NULL);
    expect(g, y, (clv_plan_config){0}, "relu batch_norm_eval");
    g = new_graph(); // seen as it was
    y = convolved(image(g, "x"));
    expect(g, clv_add(clv_nn_batch_norm(y, "norm", NULL), y), (clv_plan_config){0},
           "conv2d batch_norm_eval+add");
    g = new_graph(); // statistics of the batch are not there when the convolution stores
    clv_graph_set_training(g, true);
    y = clv_nn_batch_norm(convolved(image(g, "x")), "norm", NULL);
    expect(g, clv_relu(y), (clv_plan_config){0}, "conv2d batch_norm+relu batch_norm_update");
}

TEST(test_elementwise_ops_with_an_input_for_each_channel) {
    static const struct {
        clv_shape shape;
        const char *text;
    } of_images[] = {{CLV__DIMS(4, 1, 1), "conv2d+mul"},
                     {CLV__DIMS(1, 4, 1, 1), "conv2d+mul"},
                     {CLV__DIMS(5), "conv2d mul"},
                     {CLV__DIMS(1), "conv2d mul"},
                     {CLV__DIMS(2, 4, 1, 1), "conv2d mul"}};
    for (size_t i = 0; i < sizeof of_images / sizeof *of_images; i++) {
        clv_graph *g = new_graph();
        clv_tensor *c = clv_input(g, "c", CLV_DTYPE_F32, of_images[i].shape);
        expect(g, clv_mul(convolved(image(g, "x")), c), (clv_plan_config){0}, of_images[i].text);
    }
    clv_graph *g = new_graph();
    clv_tensor *row = clv_input(g, "row", CLV_DTYPE_F32, CLV_SHAPE(8));
    expect(g, clv_sub(row, clv_nn_linear(input(g, "x"), "fc", 8, NULL)), (clv_plan_config){0}, "linear+sub");
    g = new_graph();
    row = clv_input(g, "row", CLV_DTYPE_F32, CLV_SHAPE(8));
    expect(g, clv_add(clv_relu(input(g, "x")), row), (clv_plan_config){0}, "relu add");
    g = new_graph(); // kernels read floats there
    clv_tensor *y = clv_matmul(input(g, "x"), clv_input(g, "w", CLV_DTYPE_F32, CLV_SHAPE(8, 8)));
    y = clv_mul(y, clv_input(g, "row", CLV_DTYPE_F16, CLV_SHAPE(8)));
    expect(g, y, (clv_plan_config){0}, "matmul mul");
}

/** What follows an op that was added without its last, optional input is not taken for that. */
TEST(test_inputs_that_are_left_out_have_their_places) {
    clv_graph *g = new_graph();
    clv_tensor *x = input(g, "x"), *weight = clv_parameter(g, "w", CLV_SHAPE(8, 8), (clv_init){0});
    clv_tensor *y = clv__node_add(clv__op_find("linear"), NULL, (clv_tensor *[]){x, weight}, 2, 0);
    clv_output(clv_add(y, x), NULL);
    clv_plan *plan = planned(g, (clv_plan_config){0});
    assert_string_equal(text_of(plan), "linear+add");
    const clv__op_io *io = &plan->nodes[0].node->io;
    assert_int_equal(io->epilogue->first, 3);
    assert_int_equal(io->n_in, 4);
    assert_false(clv__has_in(io, 2));
    clv_plan_destroy(plan);
    clv_graph_destroy(g);
}

TEST(test_pins_and_places) {
    clv_graph *g = new_graph(); // a pinned variant is never replaced
    clv_tensor *y = clv_nn_linear(input(g, "x"), "fc", 8, NULL);
    expect(g, clv_relu(clv_add(y, y)), (clv_plan_config){.variants = "relu=plain"}, "linear+add relu");
    g = new_graph();
    y = clv_nn_linear(input(g, "x"), "fc", 8, NULL);
    expect(g, clv_relu(y), (clv_plan_config){.variants = "*=plain"}, "linear+relu");
    g = new_graph(); // on two devices
    y = clv_nn_linear(input(g, "x"), "a", 8, NULL);
    y = clv_add(clv_nn_linear(input(g, "z"), "b", 8, NULL), y);
    expect(g, clv_relu(y), (clv_plan_config){.place = "a=null:0,b=null:1"},
           "linear send linear receive add+relu");
}

TEST(test_updates_in_groups) {
    for (int adam = 0; adam < 2; adam++) {
        clv_graph *g = new_graph();
        clv_graph_set_training(g, true);
        clv_tensor *x = input(g, "x");
        for (int i = 0; i < 8; i++) {
            char name[8];
            snprintf(name, sizeof name, "fc%d", i);
            x = clv_nn_linear(x, name, 8, NULL);
        }
        x = clv_sum(x, NULL, 0, false);
        clv_output(x, "loss");
        clv_backward(x);
        clv_optimizer_add(
            g, &(clv_optimizer_config){.kind = adam ? CLV_ADAM : CLV_SGD, .clip_norm = adam ? 1 : 0});
        clv_plan *plan = planned(g, (clv_plan_config){0});
        const char *end =
            adam ? " sum_squares*16 clip_scale adam_update*11 adam_update*5" : " sgd_update*13 sgd_update*3";
        assert_string_equal(text_of(plan) + strlen(text_of(plan)) - strlen(end), end);
        clv_plan_destroy(plan);
        clv_graph_destroy(g);
    }
}

/** A launch counts its elements in an int: parameters that are too many for one come apart. Where several devices compute, large ones
 *  are in groups too (on one they are updated by themselves: early.c). */
TEST(test_updates_that_cannot_be_counted_together) {
    clv_device_info *info = &find("null")->info;
    const uint64_t largest = info->max_alloc_bytes;
    info->max_alloc_bytes =
        8ull << 30; // smaller ones lie in several allocations, and are updated piece by piece
    clv_graph *g = new_graph();
    clv_graph_set_training(g, true);
    clv_tensor *sum = NULL;
    for (int i = 0; i < 3; i++) {
        char name[8];
        snprintf(name, sizeof name, "p%d", i);
        clv_tensor *p = clv_parameter(g, name, CLV_SHAPE(i ? 1 << 30 : 8), (clv_init){.kind = CLV_INIT_ONES});
        p = clv_sum(p, NULL, 0, false);
        sum = sum ? clv_add(sum, p) : p;
    }
    clv_output(sum, "loss");
    clv_graph_set_place(g, "null:1");
    clv_output(clv_relu(input(g, "x")), "elsewhere");
    clv_graph_set_place(g, NULL);
    clv_backward(sum);
    clv_optimizer_add(g, &(clv_optimizer_config){.kind = CLV_SGD});
    clv_plan *plan = planned(g, (clv_plan_config){0});
    const char *end = " sgd_update*2 sgd_update";
    assert_string_equal(text_of(plan) + strlen(text_of(plan)) - strlen(end), end);
    clv_plan_destroy(plan);
    clv_graph_destroy(g);
    info->max_alloc_bytes = largest;
}

// ---- that nothing shows it ----------------------------------------------------------------------------------------------

enum { ROWS = 8, STEPS = 3 };

typedef struct model {
    clv_graph *graph;
    clv_tensor *x, *labels, *loss, *hyper;
} model;

/** Products and normalisations with all that can follow them, forward and backward, and more parameters than fit in a group. */
static model build(const clv_optimizer_config *optimizer, clv_precision precision) {
    model m = {0};
    m.graph = new_graph();
    clv_graph_set_training(m.graph, true);
    clv_graph_set_precision(m.graph, precision);
    m.x = clv_input(m.graph, "x", CLV_DTYPE_F32, CLV_SHAPE(ROWS, 3, 9, 9));
    m.labels = clv_input(m.graph, "labels", CLV_DTYPE_I32, CLV_SHAPE(ROWS));
    clv_tensor *t = m.x;
    for (int i = 0; i < 3; i++) {
        char name[8];
        snprintf(name, sizeof name, "b%d", i);
        clv_scope_push(m.graph, name);
        clv_tensor *y = clv_nn_conv2d(t, "conv", 6, &(clv_nn_conv2d_config){.kernel = {3}, .padding = {1}});
        y = clv_nn_batch_norm(y, "norm", NULL);
        t = i == 0 ? clv_relu6(y) : clv_leaky_relu(clv_add(y, t), 0.3f);
        clv_scope_pop(m.graph);
    }
    t = clv_reshape(t, CLV_SHAPE(ROWS, 6 * 9 * 9));
    t = clv_nn_linear(t, "fc1", 40, NULL);
    t = precision == CLV_PRECISION_F32 ? clv_square(t) : clv_gelu_tanh(t);
    t = clv_relu(clv_nn_batch_norm(clv_nn_linear(t, "fc2", 33, NULL), "norm", NULL));
    m.loss = clv_cross_entropy(clv_nn_linear(t, "fc3", 5, NULL), m.labels);
    clv_output(m.loss, "loss");
    if (precision == CLV_PRECISION_MIXED) clv_scaler_add(m.graph, NULL);
    clv_backward(m.loss);
    clv_optimizer_add(m.graph, optimizer);
    m.hyper = clv_optimizer_hyper(m.graph);
    assert_status(clv_graph_status(m.graph), CLV_OK, runtime);
    return m;
}

/** The loss of the last of a few steps; `all`: what they leave in the session, for the caller to free. Memory is as predicted. */
static float train(clv_device *device, bool no_fuse, const clv_optimizer_config *optimizer,
                   clv_precision precision, int *launches, float **all, size_t *n) {
    model m = build(optimizer, precision);
    clv_plan *plan = planned(m.graph, (clv_plan_config){.device = device, .no_fuse = no_fuse});
    static float x[ROWS * 3 * 9 * 9];
    float hyper[CLV_HYPER_VALUES], loss;
    int32_t labels[ROWS];
    int64_t ticket = 0;
    clv_device_memory_reset_peak(device);
    clv_session *session = clv__test_session(runtime, &(clv_session_config){.seed = 7});
    clv_run *run = clv__test_run(runtime, session, plan);
    for (int step = 0; step < STEPS; step++) {
        for (size_t i = 0; i < sizeof x / sizeof *x; i++)
            x[i] = (float)((i * 13 + (size_t)step * 5) % 29) / 14 - 1;
        for (int i = 0; i < ROWS; i++) labels[i] = (i + step) % 5;
        clv_optimizer_hyper_values(m.graph, step + 1, 0.05, hyper);
        assert_status(clv_run_feed(run, m.x, x, sizeof x), CLV_OK, runtime);
        assert_status(clv_run_feed(run, m.labels, labels, sizeof labels), CLV_OK, runtime);
        assert_status(clv_run_feed(run, m.hyper, hyper, sizeof hyper), CLV_OK, runtime);
        assert_status(clv_run_step(run, &ticket), CLV_OK, runtime);
    }
    assert_status(clv_run_fetch(run, ticket, m.loss, &loss, sizeof loss), CLV_OK, runtime);
    assert_int_equal(clv_device_memory(device).all.peak,
                     clv_plans_memory(&plan, 1, NULL).predicted_peak_bytes);
    *launches = 0;
    for (int i = 0; i < clv_plan_info_get(plan).n_nodes; i++)
        *launches += clv_plan_node_get(plan, i).launches;
    *all = session_values(session, n);
    clv__test_end(run, session, plan, m.graph);
    return loss;
}

static bool is_opencl(const clv_device *device) {
    return strcmp(clv_device_info_get((clv_device *)device)->backend, "opencl") == 0;
}

/** Each op is a statement of its own in the kernel: no compiler here makes other bits of it. (A driver's tanh may: it may round otherwise
 *  for one value than for vectors.) In mixed precision what is not stored is not rounded to two bytes either, so results differ, by as
 *  little as that rounding. */
TEST(test_training_is_the_same) {
    const clv_optimizer_config optimizers[] = {{.kind = CLV_SGD, .momentum = 0.9f},
                                               {.kind = CLV_ADAMW, .clip_norm = 0.5f}};
    clv_device *device;
    for (int d = -1; (device = clv__test_next_device(runtime, &d));) {
        for (int o = 0; o < 2; o++) {
            float *apart, *fused;
            size_t n, n_fused;
            int launches, fewer;
            train(device, true, &optimizers[o], CLV_PRECISION_F32, &launches, &apart, &n);
            train(device, false, &optimizers[o], CLV_PRECISION_F32, &fewer, &fused, &n_fused);
            assert_int_equal(n, n_fused);
            assert_memory_equal(apart, fused, n * sizeof *apart);
            assert_true(is_opencl(device) ? fewer < launches - 20 : fewer == launches);
            free(apart);
            free(fused);
        }
        float *apart, *fused;
        size_t n;
        int launches;
        float one = train(device, true, &optimizers[0], CLV_PRECISION_MIXED, &launches, &apart, &n);
        float other = train(device, false, &optimizers[0], CLV_PRECISION_MIXED, &launches, &fused, &n);
        assert_float_equal(one, other, 0.02f);
        free(apart);
        free(fused);
    }
}

// ---- evaluation ---------------------------------------------------------------------------------------------------------

enum { IMAGES = 3, CLASSES = 5 };

static clv_tensor *block(clv_tensor *x, const char *name, int channels, clv_nn_conv2d_config config) {
    clv_scope_push(clv_tensor_graph(x), name);
    x = clv_nn_batch_norm(clv_nn_conv2d(x, "conv", channels, &config), "norm", NULL);
    clv_scope_pop(clv_tensor_graph(x));
    return x;
}

/** Convolutions and products of several kinds, each with a batch norm and more after it. */
static clv_tensor *evaluated(clv_tensor *x) {
    clv_graph *g = clv_tensor_graph(x);
    clv_tensor *t = clv_relu(block(x, "wide", 20, (clv_nn_conv2d_config){.kernel = {3}, .padding = {1}}));
    t = clv_relu(clv_add(block(t, "square", 20, (clv_nn_conv2d_config){.kernel = {3}, .padding = {1}}), t));
    t = clv_relu6(block(
        t, "depthwise", 20,
        (clv_nn_conv2d_config){.kernel = {3}, .stride = {2}, .padding = {1}, .groups = 20, .no_bias = true}));
    t = block(t, "point", 6, (clv_nn_conv2d_config){.kernel = {1}, .no_bias = true});
    // a long sum, and rows that are no whole vectors
    t = clv_nn_linear(clv_flatten(t, 1), "fc1", 33, &(clv_nn_linear_config){.no_bias = true});
    t = clv_nn_batch_norm(t, "norm1", &(clv_nn_batch_norm_config){.no_affine = true});
    t = clv_relu(clv_mul(t, clv_parameter(g, "factor", CLV_SHAPE(33), (clv_init){0})));
    t = clv_nn_batch_norm(clv_nn_linear(t, "fc2", 32, NULL), "norm2", NULL);
    return clv_nn_linear(clv_leaky_relu(t, 0.3f), "fc3", CLASSES, NULL);
}

/** What comes out of a model whose weights are from -1 to 1, and running statistics from 0.5 to 1.5. */
static void evaluate(clv_device *device, bool no_fuse, clv_precision precision, float out[IMAGES * CLASSES],
                     int *launches) {
    clv_graph *g = new_graph();
    clv_graph_set_precision(g, precision);
    clv_tensor *x = clv_input(g, "x", CLV_DTYPE_F32, CLV_SHAPE(IMAGES, 3, 19, 17)), *y = evaluated(x);
    if (precision == CLV_PRECISION_MIXED) y = clv_cast(y, CLV_DTYPE_F32);
    clv_output(y, "y");
    clv_plan *plan = planned(g, (clv_plan_config){.device = device, .no_fuse = no_fuse});
    static float values[1 << 16];
    int64_t ticket;
    clv_device_memory_reset_peak(device);
    clv_session *session = clv__test_session(runtime, &(clv_session_config){.seed = 7});
    clv_run *run = clv__test_run(runtime, session, plan);
    for (int t = 0; t < clv_session_info_get(session).n_tensors; t++) {
        clv_session_tensor tensor = clv_session_get(session, t);
        assert_true(tensor.bytes <= sizeof values);
        bool running = strstr(tensor.name, "running") != NULL;
        for (size_t i = 0; i < tensor.bytes / 4; i++) {
            float v = (float)((i * 17 + (size_t)t * 7) % 41) / 40;
            values[i] = running ? 0.5f + v : 2 * v - 1;
        }
        assert_status(clv_session_write(session, t, values, tensor.bytes), CLV_OK, runtime);
    }
    for (size_t i = 0; i < clv_tensor_bytes(x) / 4; i++) values[i] = (float)(i * 13 % 29) / 14 - 1;
    assert_status(clv_run_feed(run, x, values, clv_tensor_bytes(x)), CLV_OK, runtime);
    assert_status(clv_run_step(run, &ticket), CLV_OK, runtime);
    assert_status(clv_run_fetch(run, ticket, y, out, IMAGES * CLASSES * sizeof *out), CLV_OK, runtime);
    assert_int_equal(clv_device_memory(device).all.peak,
                     clv_plans_memory(&plan, 1, NULL).predicted_peak_bytes);
    *launches = 0;
    for (int i = 0; i < clv_plan_info_get(plan).n_nodes; i++)
        *launches += clv_plan_node_get(plan, i).launches;
    clv__test_end(run, session, plan, g);
}

TEST(test_evaluation_is_the_same) {
    clv_device *device;
    for (int d = -1; (device = clv__test_next_device(runtime, &d));) {
        float apart[IMAGES * CLASSES], fused[IMAGES * CLASSES];
        int launches, fewer;
        evaluate(device, true, CLV_PRECISION_F32, apart, &launches);
        evaluate(device, false, CLV_PRECISION_F32, fused, &fewer);
        assert_memory_equal(apart, fused, sizeof apart);
        assert_int_equal(launches - fewer, is_opencl(device) ? 13 : 0);
        evaluate(device, true, CLV_PRECISION_MIXED, apart, &launches);
        evaluate(device, false, CLV_PRECISION_MIXED, fused, &fewer);
        float most = 0;
        for (int i = 0; i < IMAGES * CLASSES; i++) most = fmaxf(most, fabsf(apart[i]));
        for (int i = 0; i < IMAGES * CLASSES; i++) assert_float_equal(apart[i], fused[i], 0.01f * most);
    }
}

TEST_MAIN(setup, teardown)
