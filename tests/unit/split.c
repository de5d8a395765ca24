// SPDX-License-Identifier: Apache-2.0
// Tensors that are larger than the largest allocation: on devices that are told to have a small one, networks are cut into many
// parts, take the memory that was predicted, in pieces that are small enough, and come to what they come to whole.
#include <math.h>

#include "cleave/cleave.h"
#include "plan/plan.h"
#include "unit/world.h"

enum { STEPS = 3, CLASSES = 10 };

typedef struct model {
    clv_graph *graph;
    clv_tensor *x, *labels, *loss, *logits, *hyper, *gradient;
} model;

/** What is trained, and how. */
typedef struct setting {
    const char *name;
    clv_tensor *(*net)(clv_tensor *x);
    clv_shape input;
    clv_dtype dtype;
    clv_optimizer_config optimizer;
    clv_precision precision;
    const char *recompute;
    uint64_t largest; // allocation, where it is cut
    double near;      // how far results may be apart
} setting;

static clv_tensor *mlp(clv_tensor *x) {
    x = clv_dropout(clv_relu(clv_nn_linear(x, "fc1", 200, NULL)), 0.1f);
    x = clv_gelu_tanh(clv_nn_linear(x, "fc2", 133, &(clv_nn_linear_config){.no_bias = true}));
    return clv_nn_linear(x, "fc3", CLASSES, NULL);
}

static clv_tensor *cnn(clv_tensor *x) {
    clv_graph *graph = clv_tensor_graph(x);
    clv_nn_conv2d_config same = {.kernel = {3}, .padding = {1}};
    x = clv_relu(clv_nn_batch_norm(clv_nn_conv2d(x, "conv1", 12, &same), "norm1", NULL));
    clv_tensor *shortcut = x;
    clv_scope_push(graph, "body");
    x = clv_nn_conv2d(x, "conv2", 12, &(clv_nn_conv2d_config){.kernel = {3}, .padding = {1}, .groups = 12});
    x = clv_relu(clv_add(clv_nn_batch_norm(x, "norm2", NULL), shortcut));
    x = clv_max_pool2d(x, &(clv_pool2d_config){.kernel = {2}, .stride = {2}});
    x = clv_leaky_relu(clv_nn_conv2d(x, "conv3", 20, &same), 0.1f);
    x = clv_avg_pool2d(x, &(clv_pool2d_config){.kernel = {2}, .stride = {2}});
    clv_scope_pop(graph);
    x = clv_adaptive_avg_pool2d(x, 2, 2);
    return clv_nn_linear(clv_flatten(x, 1), "fc", CLASSES, NULL);
}

/** [B,T] indices; each text is one sample: the mean over its tokens. */
static clv_tensor *text(clv_tensor *x) {
    clv_tensor *y =
        clv_gpt(x, &(clv_gpt_config){.vocabulary = 97, .context = 16, .width = 48, .heads = 4, .layers = 2});
    y = clv_mean(clv_softmax(clv_layer_norm(y, NULL, NULL, 1e-5f), -1), (int[]){1}, 1, false);
    return clv_nn_linear(y, "head", CLASSES, NULL);
}

static model build(const setting *s) {
    model m = {.graph = new_graph()};
    clv_graph_set_training(m.graph, true);
    clv_graph_set_precision(m.graph, s->precision);
    m.x = clv_input(m.graph, "x", s->dtype, s->input);
    m.labels = clv_input(m.graph, "labels", CLV_DTYPE_I32, CLV_SHAPE(s->input.dims[0]));
    m.logits = s->net(m.x);
    m.loss = clv_cross_entropy(m.logits, m.labels);
    clv_output(m.loss, "loss");
    clv_output(clv_cast(m.logits, CLV_DTYPE_F32), "logits");
    if (s->precision != CLV_PRECISION_F32) clv_scaler_add(m.graph, &(clv_scaler_config){.scale = 64});
    clv_backward(m.loss);
    clv_tensor *weight = clv_graph_find(m.graph, "fc1.weight");
    if (weight) clv_output(m.gradient = clv_gradient(weight), "gradient");
    clv_optimizer_add(m.graph, &s->optimizer);
    m.hyper = clv_optimizer_hyper(m.graph);
    assert_status(clv_graph_status(m.graph), CLV_OK, runtime);
    return m;
}

/** All that a training leaves: what the session keeps, the last loss, a gradient; and how the plan was. */
typedef struct left {
    float *values;
    size_t n;
    int parts, places_with_parts;
} left;

static void keep(left *l, const void *values, size_t bytes) {
    l->values = realloc(l->values, (l->n + bytes / 4) * 4);
    memcpy(l->values + l->n, values, bytes);
    l->n += bytes / 4;
}

/** Every allocation is small enough, or none is asked for. */
static void check_sizes(const clv_plan *plan) {
    for (size_t i = 0; i < plan->n_values; i++) {
        const clv__value *value = &plan->values[i];
        const clv_device_info *info = &plan->places[value->place].device->info;
        if (value->segment != CLV__NOWHERE) assert_true(value->bytes <= info->max_alloc_bytes);
    }
    for (int i = 0; i < plan->n_places; i++)
        assert_true(plan->places[i].workspace_bytes <= plan->places[i].device->info.max_alloc_bytes);
}

static void count_parts(const clv_plan *plan, left *l) {
    bool has[8] = {false};
    for (size_t i = 0; i < plan->n_nodes; i++) {
        if (plan->nodes[i].slices < 2 || plan->nodes[i].slice < 0) continue;
        l->parts++;
        has[plan->nodes[i].place] = true;
    }
    for (int i = 0; i < plan->n_places; i++) l->places_with_parts += has[i];
}

static void feed(clv_run *run, const model *m, const setting *s, int step) {
    static float x[1 << 16];
    int32_t labels[256];
    float hyper[CLV_HYPER_VALUES];
    const int64_t n = clv_shape_numel(&s->input);
    assert_true(n <= 1 << 16);
    for (int64_t i = 0; i < n; i++) {
        const int64_t v = (i * 13 + step * 5 + i / 7) % 29;
        const int32_t whole = (int32_t)(v * 3);
        if (s->dtype == CLV_DTYPE_I32)
            memcpy(&x[i], &whole, sizeof whole);
        else
            x[i] = (float)v / 14 - 1;
    }
    for (int64_t i = 0; i < s->input.dims[0]; i++) labels[i] = (int32_t)((i + step) % CLASSES);
    clv_optimizer_hyper_values(m->graph, step + 1, 0.05, hyper);
    assert_status(clv_run_feed(run, m->x, x, (size_t)n * 4), CLV_OK, runtime);
    assert_status(clv_run_feed(run, m->labels, labels, (size_t)s->input.dims[0] * 4), CLV_OK, runtime);
    assert_status(clv_run_feed(run, m->hyper, hyper, sizeof hyper), CLV_OK, runtime);
}

static void read_all(clv_session *session, left *l) {
    for (int i = 0; i < clv_session_info_get(session).n_tensors; i++) {
        const size_t bytes = clv_session_get(session, i).bytes;
        float *values = malloc(bytes + 4);
        assert_status(clv_session_read(session, i, values, bytes), CLV_OK, runtime);
        keep(l, values, bytes);
        free(values);
    }
}

/** Some steps on a plan's devices; memory is as predicted on each of them. */
static left train_by(const model *m, const setting *s, const clv_plan_config *config) {
    left l = {0};
    int64_t ticket = 0;
    static float fetched[1 << 16];
    clv_plan *plan = clv__test_plan(runtime, m->graph, config);
    assert_status(clv_plans_fit(&plan, 1), CLV_OK, runtime);
    check_sizes(plan);
    count_parts(plan, &l);
    for (int i = 0; i < plan->n_places; i++) clv_device_memory_reset_peak(plan->places[i].device);
    clv_session *session = clv__test_session(runtime, &(clv_session_config){.seed = 7});
    clv_run *run = clv__test_run(runtime, session, plan);
    for (int step = 0; step < STEPS; step++) {
        feed(run, m, s, step);
        assert_status(clv_run_step(run, &ticket), CLV_OK, runtime);
        clv_tensor *const outputs[] = {m->loss, clv_graph_find(m->graph, "logits"), m->gradient};
        for (int i = 0; i < 3; i++) {
            if (!outputs[i]) continue;
            const size_t bytes = clv_tensor_bytes(outputs[i]);
            assert_true(bytes <= sizeof fetched);
            assert_status(clv_run_fetch(run, ticket, outputs[i], fetched, bytes), CLV_OK, runtime);
            keep(&l, fetched, bytes);
        }
    }
    for (int i = 0; i < plan->n_places; i++) {
        clv_device *device = plan->places[i].device;
        assert_int_equal(clv_device_memory(device).all.peak,
                         clv_plans_memory(&plan, 1, device).predicted_peak_bytes);
    }
    read_all(session, &l);
    clv_run_destroy(run);
    clv_session_destroy(session);
    clv_plan_destroy(plan);
    return l;
}

static left train(const setting *s, clv_device *device) {
    model m = build(s);
    left l = train_by(&m, s, &(clv_plan_config){.device = device, .recompute = s->recompute});
    clv_graph_destroy(m.graph);
    return l;
}

/** The same on a device that allocates no more than `largest` at a time. */
static left train_small(const setting *s, clv_device *device) {
    const uint64_t before = device->info.max_alloc_bytes;
    device->info.max_alloc_bytes = s->largest;
    left l = train(s, device);
    device->info.max_alloc_bytes = before;
    return l;
}

static void compare(const char *name, const left *whole, const left *parts, double near) {
    assert_int_equal(whole->n, parts->n);
    double most = 0;
    for (size_t i = 0; i < whole->n; i++) {
        const double a = (double)whole->values[i], b = (double)parts->values[i],
                     apart = fabs(a - b) / (1 + fabs(a));
        if (memcmp(&whole->values[i], &parts->values[i], 4) != 0 && !(apart <= most)) most = apart;
    }
    print_message("%s: %d parts, at most %.2g apart\n", name, parts->parts, most);
    if (!(most <= near)) fail_msg("%s: whole and in parts are %g apart", name, most);
}

static bool is_opencl(const clv_device *device) {
    return strcmp(device->info.backend, "opencl") ==
           0; // the host's references have workspaces larger than their tensors
}

static void try_setting(const setting *s) {
    clv_device *device;
    for (int d = -1; (device = clv__test_next_device(runtime, &d));) {
        if (!is_opencl(device)) continue;
        left whole = train(s, device), parts = train_small(s, device);
        assert_int_equal(whole.parts, 0);
        assert_true(parts.parts > 20);
        compare(s->name, &whole, &parts, s->near);
        free(whole.values);
        free(parts.values);
    }
}

/** Batches of 6: only parameters, gradients and optimizer state are too large. */
TEST(test_parameters_in_parts) {
    const setting settings[] = {
        {"mlp, sgd",
         mlp,
         CLV_SHAPE(6, 96),
         CLV_DTYPE_F32,
         {.kind = CLV_SGD, .momentum = 0.9f},
         CLV_PRECISION_F32,
         NULL,
         16 << 10,
         1e-6},
        {"mlp, adam, clipped",
         mlp,
         CLV_SHAPE(6, 96),
         CLV_DTYPE_F32,
         {.kind = CLV_ADAM, .clip_norm = 0.5f, .eps = 1e-3f},
         CLV_PRECISION_F32,
         NULL,
         16 << 10,
         1e-6},
        {"mlp, mixed",
         mlp,
         CLV_SHAPE(6, 96),
         CLV_DTYPE_F32,
         {.kind = CLV_SGD, .momentum = 0.9f},
         CLV_PRECISION_MIXED,
         NULL,
         16 << 10,
         2e-2},
    };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) try_setting(&settings[i]);
}

TEST(test_activations_in_parts) {
    const setting settings[] = {
        {"mlp, a large batch",
         mlp,
         CLV_SHAPE(150, 96),
         CLV_DTYPE_F32,
         {.kind = CLV_SGD, .momentum = 0.9f},
         CLV_PRECISION_F32,
         NULL,
         24 << 10,
         1e-5},
        {"cnn",
         cnn,
         CLV_SHAPE(19, 3, 16, 16),
         CLV_DTYPE_F32,
         {.kind = CLV_SGD, .momentum = 0.9f},
         CLV_PRECISION_F32,
         NULL,
         64 << 10,
         1e-4},
        {"cnn, recomputed",
         cnn,
         CLV_SHAPE(19, 3, 16, 16),
         CLV_DTYPE_F32,
         {.kind = CLV_SGD, .momentum = 0.9f},
         CLV_PRECISION_F32,
         "body",
         64 << 10,
         1e-4},
        {"cnn, mixed",
         cnn,
         CLV_SHAPE(19, 3, 16, 16),
         CLV_DTYPE_F32,
         {.kind = CLV_SGD, .momentum = 0.9f},
         CLV_PRECISION_MIXED,
         NULL,
         80 << 10,
         5e-2},
        {"text",
         text,
         CLV_SHAPE(21, 16),
         CLV_DTYPE_I32,
         {.kind = CLV_SGD, .momentum = 0.9f},
         CLV_PRECISION_F32,
         NULL,
         24 << 10,
         1e-4},
    };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) try_setting(&settings[i]);
}

// ---- several devices --------------------------------------------------------------------------------------------------------

enum { BATCH = 24, MANY = 1000 };

/** A replica's loss, or a micro-batch's. */
static clv_tensor *body(clv_tensor *const *tensors, void *user) {
    clv_tensor *x = tensors[0], *labels = tensors[1];
    clv_tensor *y = clv_relu(clv_nn_linear(x, "fc1", 500, NULL));
    y = clv_nn_linear(y, "fc2", 280, NULL);
    return clv_cross_entropy(clv_nn_linear(clv_relu(y), "fc3", CLASSES, NULL), labels);
}

typedef enum arrangement { ALONE, PLACED, REPLICAS, MICRO_BATCHES } arrangement;

static left arranged(arrangement how, const setting *s, clv_device *const devices[2]) {
    const char *const names[] = {devices[0]->info.name, devices[1]->info.name};
    char place[128];
    snprintf(place, sizeof place, "fc1=%s,fc2=%s,fc3=%s", names[0], names[1], names[0]);
    model m = {.graph = new_graph()};
    clv_graph_set_training(m.graph, true);
    m.x = clv_input(m.graph, "x", s->dtype, s->input);
    m.labels = clv_input(m.graph, "labels", CLV_DTYPE_I32, CLV_SHAPE(BATCH));
    m.loss = how == REPLICAS
                 ? clv_data_parallel_loss((clv_tensor *[]){m.x, m.labels}, 2, names, NULL, 2, body, NULL)
             : how == MICRO_BATCHES ? clv_micro_batches((clv_tensor *[]){m.x, m.labels}, 2, 3, body, NULL)
                                    : body((clv_tensor *[]){m.x, m.labels}, NULL);
    clv_output(m.loss, "loss");
    clv_backward(m.loss);
    clv_optimizer_add(m.graph, &s->optimizer);
    m.hyper = clv_optimizer_hyper(m.graph);
    assert_status(clv_graph_status(m.graph), CLV_OK, runtime);
    left l = train_by(&m, s, &(clv_plan_config){.device = devices[0], .place = how == PLACED ? place : NULL});
    clv_graph_destroy(m.graph);
    return l;
}

/** What is carried between devices is carried in pieces, also where only one end has to, or each cuts otherwise. */
TEST(test_several_devices) {
    // with the last, replicas of one kind share the update of fc2, which is whole, while fc1 is in pieces
    const uint64_t limits[][2] = {
        {40 << 10, 40 << 10}, {20 << 10, 90 << 10}, {90 << 10, 20 << 10}, {600 << 10, 600 << 10}};
    const setting s = {"",
                       NULL,
                       CLV_SHAPE(BATCH, MANY),
                       CLV_DTYPE_F32,
                       {.kind = CLV_SGD, .momentum = 0.9f},
                       CLV_PRECISION_F32,
                       NULL,
                       0,
                       1e-6};
    clv_device *devices[2] = {0}, *device;
    for (int d = -1, n = 0; n < 2 && (device = clv__test_next_device(runtime, &d));)
        if (is_opencl(device)) devices[n++] = device;
    if (!devices[0]) skip();
    const bool twins = devices[1] != NULL;
    if (!twins) devices[1] = find("host"); // which has no small workspaces: it keeps its largest allocation
    const uint64_t before[] = {devices[0]->info.max_alloc_bytes, devices[1]->info.max_alloc_bytes};
    static const char *const names[] = {"alone", "placed", "replicas", "micro-batches"};
    for (arrangement how = PLACED; how <= MICRO_BATCHES; how++) {
        left whole = arranged(how, &s, devices);
        assert_int_equal(whole.parts, 0);
        for (size_t k = 0; k < sizeof limits / sizeof *limits; k++) {
            for (int i = 0; i < 1 + twins; i++) devices[i]->info.max_alloc_bytes = limits[k][i];
            left parts = arranged(how, &s, devices);
            for (int i = 0; i < 2; i++) devices[i]->info.max_alloc_bytes = before[i];
            const bool both = twins && (how == REPLICAS || (how == PLACED && k < 3));
            assert_int_equal(parts.places_with_parts, both ? 2 : 1);
            compare(names[how], &whole, &parts, s.near);
            free(parts.values);
        }
        free(whole.values);
    }
}

// ---- what is kept -----------------------------------------------------------------------------------------------------------

static clv_plan *plan_on(clv_graph *graph, clv_device *device) {
    return clv__test_plan(runtime, graph, &(clv_plan_config){.device = device});
}

/** y = x W^T, with W [37,100] from a normal distribution, or constant. */
static clv_graph *product(clv_tensor **x, clv_tensor **y, int64_t rows, clv_init init) {
    clv_graph *graph = new_graph();
    *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(rows, 100));
    clv_tensor *bias = clv_parameter(graph, "bias", CLV_SHAPE(37), (clv_init){CLV_INIT_UNIFORM, -1, 1});
    *y = clv_linear(*x, clv_parameter(graph, "W", CLV_SHAPE(37, 100), init), bias);
    clv_output(*y, "y");
    assert_status(clv_graph_status(graph), CLV_OK, runtime);
    return graph;
}

/** To everybody but the plan a tensor is one: first values, reading, writing, moving between devices that cut it otherwise. */
TEST(test_a_kept_tensor_is_one) {
    static const clv_init inits[] = {
        {CLV_INIT_NORMAL, 0.5f, 2}, {CLV_INIT_UNIFORM, -1, 3}, {CLV_INIT_ONES, 0, 0}};
    clv_device *device, *host = find("host");
    for (int d = -1; (device = clv__test_next_device(runtime, &d));) {
        const uint64_t before = device->info.max_alloc_bytes, host_before = host->info.max_alloc_bytes;
        for (int k = 0; k < 3; k++) {
            float values[2][3700], other[3700];
            for (int cut = 0; cut < 2; cut++) {
                clv_tensor *x, *y;
                clv_graph *graph = product(&x, &y, 2, inits[k]);
                if (cut) device->info.max_alloc_bytes = 4000; // 8 rows in a piece
                clv_plan *plan = plan_on(graph, device);
                assert_int_equal(clv_plan_kept_get(plan, clv_plan_info_get(plan).n_kept - 1).pieces,
                                 cut ? 5 : 1);
                clv_session *session = clv__test_session(runtime, &(clv_session_config){.seed = 3});
                if (device->info.type == CLV_DEVICE_HOST)
                    plan->places[0].workspace_bytes = 0; // it is not run
                assert_status(clv_session_reserve(session, &plan, 1), CLV_OK, runtime);
                const int at = clv_session_find(session, "W");
                assert_int_equal(clv_session_info_get(session).n_tensors, 2);
                assert_int_equal(clv_session_get(session, at).bytes, sizeof other);
                assert_status(clv_session_read(session, at, values[cut], sizeof other), CLV_OK, runtime);
                for (int i = 0; i < 3700; i++) other[i] = (float)i;
                assert_status(clv_session_write(session, at, other, sizeof other), CLV_OK, runtime);
                memset(other, 0, sizeof other);
                assert_status(clv_session_read(session, at, other, sizeof other), CLV_OK, runtime);
                for (int i = 0; i < 3700; i++) assert_true(other[i] == (float)i);
                if (device != host) {
                    const uint64_t held = clv_device_memory(host).category[CLV_PARAMETERS].current;
                    host->info.max_alloc_bytes = 1600; // 4 rows
                    assert_status(clv_session_move(session, "W", host), CLV_OK, runtime);
                    assert_int_equal(clv_device_memory(host).category[CLV_PARAMETERS].current,
                                     held + sizeof other);
                    memset(other, 0, sizeof other);
                    assert_status(
                        clv_session_read(session, clv_session_find(session, "W"), other, sizeof other),
                        CLV_OK, runtime);
                    for (int i = 0; i < 3700; i++) assert_true(other[i] == (float)i);
                    host->info.max_alloc_bytes = host_before;
                }
                clv_session_destroy(session);
                clv_plan_destroy(plan);
                clv_graph_destroy(graph);
            }
            assert_memory_equal(values[0], values[1], sizeof other);
            device->info.max_alloc_bytes = before;
        }
    }
}

/** Rows of a product are computed as in the whole, so it has the same bits; and two plans of a session find one parameter. */
TEST(test_products_have_the_same_bits) {
    static float x[300 * 100], y[2][300 * 37];
    for (int i = 0; i < 300 * 100; i++) x[i] = (float)(i * 13 % 29) / 14 - 1;
    clv_device *device;
    for (int d = -1; (device = clv__test_next_device(runtime, &d));) {
        const uint64_t before = device->info.max_alloc_bytes;
        for (int cut = 0; cut < 2 && is_opencl(device); cut++) {
            if (cut) device->info.max_alloc_bytes = 8192;
            clv_session *session = clv__test_session(runtime, &(clv_session_config){.seed = 3});
            for (int64_t rows = 2; rows <= 300; rows += 298) {
                clv_tensor *in, *out;
                int64_t ticket;
                clv_graph *graph = product(&in, &out, rows, (clv_init){CLV_INIT_NORMAL, 0, 1});
                clv_plan *plan = plan_on(graph, device);
                clv_run *run = clv__test_run(runtime, session, plan);
                assert_status(clv_run_feed(run, in, x, clv_tensor_bytes(in)), CLV_OK, runtime);
                assert_status(clv_run_step(run, &ticket), CLV_OK, runtime);
                assert_status(clv_run_fetch(run, ticket, out, y[cut], clv_tensor_bytes(out)), CLV_OK,
                              runtime);
                assert_int_equal(clv_session_info_get(session).n_tensors, 2);
                clv_run_destroy(run);
                clv_plan_destroy(plan);
                clv_graph_destroy(graph);
            }
            clv_session_destroy(session);
        }
        device->info.max_alloc_bytes = before;
        if (is_opencl(device)) assert_memory_equal(y[0], y[1], sizeof y[0]);
    }
}

// ---- what cannot be done ------------------------------------------------------------------------------------------------------

static void refused(clv_graph *graph, clv_device *device, const char *sentence, bool smaller_batch) {
    clv_plan *plan = plan_on(graph, device);
    assert_status(clv_plans_fit(&plan, 1), CLV_E_DEVICE_MEMORY, runtime);
    assert_holds(clv_runtime_error(runtime), sentence);
    assert_holds(clv_runtime_error(runtime), "but its largest single allocation is 8.0 KiB (8192 bytes)");
    assert_int_equal(strstr(clv_runtime_error(runtime), "smaller batch") != NULL, smaller_batch);
    clv_plan_destroy(plan);
    clv_graph_destroy(graph);
}

/** The sentence names the op, the layer, the tensor and its bytes; and a smaller batch only where that would help. */
TEST(test_what_cannot_be_split_is_refused) {
    clv_device *device = find("null:0");
    const uint64_t before = device->info.max_alloc_bytes;
    device->info.max_alloc_bytes = 8192;
    clv_graph *graph = new_graph();
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(1500));
    clv_scope_push(graph, "ends");
    clv_output(clv_concat((clv_tensor *[]){x, x}, 2, 0), "y");
    clv_scope_pop(graph);
    refused(graph, device, "concat 'ends' cannot be done in parts of 'y' [3000], which has 12000 bytes; ",
            true);
    graph = new_graph();
    x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(3, 4000));
    clv_output(clv_nn_linear(x, "fc", 4, NULL), "y");
    refused(graph, device,
            "'fc.weight' [4,4000], which has 64000 bytes, too many in one row of its first dimension; ",
            false);
    graph = new_graph();
    x = clv_input(graph, "x", CLV_DTYPE_I32, CLV_SHAPE(3));
    clv_tensor *table = clv_parameter(graph, "table", CLV_SHAPE(3000), (clv_init){0});
    clv_output(clv_concat((clv_tensor *[]){table, table}, 2, 0), "y");
    refused(graph, device, "[6000], which has 24000 bytes", false);
    device->info.max_alloc_bytes = before;
}

TEST_MAIN(setup, teardown)
