// SPDX-License-Identifier: Apache-2.0
// Ops right one by one, and together? A small network with everything in it (convolution, batch norm, dropout, pooling,
// clipping, an optimizer) trains some steps on every device; the interpreter does the same steps in double. Losses, every
// parameter, running statistics and optimizer state must agree, and the same run again must give the same bits.
#include <math.h>

#include "check/subject.h"
#include "cleave/nn.h"
#include "cleave/optim.h"
#include "cleave/plan.h"
#include "device/device.h"
#include "harness/harness.h"

enum { STEPS = 12, BATCH = 6, SIDE = 8, IMAGE = BATCH * SIDE * SIDE, SEED = 11 };

typedef struct network {
    clv_runtime *runtime;
    clv_graph *graph;
    clv_tensor *x, *labels, *loss;
    clv_optimizer_config optimizer;
} network;

static void build(network *n, clv_optimizer_config optimizer) {
    *n = (network){.runtime = clv__test_runtime(NULL), .optimizer = optimizer};
    n->graph = clv__test_graph(n->runtime);
    clv_graph_set_training(n->graph, true);
    n->x = clv_input(n->graph, "x", CLV_DTYPE_F32, CLV_SHAPE(BATCH, 1, SIDE, SIDE));
    n->labels = clv_input(n->graph, "labels", CLV_DTYPE_I32, CLV_SHAPE(BATCH));
    clv_tensor *h = clv_nn_conv2d(n->x, "conv", 4,
                                  &(clv_nn_conv2d_config){.kernel = {3}, .padding = {1}, .no_bias = true});
    h = clv_silu(clv_nn_batch_norm(h, "norm", NULL));
    h = clv_max_pool2d(h, &(clv_pool2d_config){.kernel = {2, 2}});
    h = clv_nn_dropout(clv_flatten(h, 1), 0.25f);
    h = clv_tanh(clv_nn_linear(h, "fc1", 17, NULL));
    n->loss = clv_cross_entropy(clv_nn_linear(h, "fc2", 3, NULL), n->labels);
    clv_output(n->loss, "loss");
    clv_backward(n->loss);
    clv_optimizer_add(n->graph, &n->optimizer);
    assert_status(clv_graph_status(n->graph), CLV_OK, n->runtime);
}

static void unbuild(network *n) {
    clv_graph_destroy(n->graph);
    clv_runtime_destroy(n->runtime);
}

/** The batch of a step: the same everywhere. */
static void batch(int step, float *x, int32_t *labels) {
    double values[IMAGE];
    clv__desc images = clv__f32(CLV_SHAPE(IMAGE));
    clv__fill_values(&(clv__fill){CLV__FILL_UNIFORM, 0, 1}, &images, SEED, (uint64_t)step, values);
    for (int i = 0; i < IMAGE; i++) x[i] = (float)values[i];
    for (int i = 0; i < BATCH; i++) {
        labels[i] = (i + step) % 3;
        for (int k = 0; k < SIDE; k++) x[i * SIDE * SIDE + labels[i] * SIDE + k] += 1; // something to learn
    }
}

static void hyper(const network *n, int step, float values[CLV_HYPER_VALUES]) {
    clv_optimizer_hyper_values(n->graph, step + 1, 0.01, values);
}

/** Train on a device; the session that is left. */
static clv_session *train(network *n, clv_device *device, float losses[STEPS]) {
    clv_plan *plan = clv__test_plan(n->runtime, n->graph, &(clv_plan_config){.device = device});
    clv_session *session = clv__test_session(n->runtime, &(clv_session_config){.seed = SEED});
    clv_run *run = clv__test_run(n->runtime, session, plan);
    for (int step = 0; step < STEPS; step++) {
        float x[IMAGE], values[CLV_HYPER_VALUES];
        int32_t labels[BATCH];
        int64_t ticket;
        batch(step, x, labels);
        hyper(n, step, values);
        assert_status(clv_run_feed(run, n->x, x, sizeof x), CLV_OK, n->runtime);
        assert_status(clv_run_feed(run, n->labels, labels, sizeof labels), CLV_OK, n->runtime);
        assert_status(clv_run_feed(run, clv_optimizer_hyper(n->graph), values, sizeof values), CLV_OK,
                      n->runtime);
        assert_status(clv_run_step(run, &ticket), CLV_OK, n->runtime);
        assert_status(clv_run_fetch(run, ticket, n->loss, &losses[step], sizeof losses[step]), CLV_OK,
                      n->runtime);
    }
    assert_status(clv_run_finish(run), CLV_OK, n->runtime);
    clv_run_destroy(run);
    clv_plan_destroy(plan);
    return session;
}

/** The same steps in double, from the first values a session gives. */
static void interpret(network *n, clv__values *values, double losses[STEPS]) {
    clv_device *host = clv__test_device(n->runtime, "host");
    clv_plan *plan = clv__test_plan(n->runtime, n->graph, &(clv_plan_config){.device = host});
    clv_session *session = clv__test_session(n->runtime, &(clv_session_config){.seed = SEED});
    assert_status(clv_session_reserve(session, &plan, 1), CLV_OK, n->runtime);
    assert_status(clv__values_init(values, n->graph, clv__runtime_error_of(n->runtime)), CLV_OK, n->runtime);
    for (int i = 0; i < clv_session_info_get(session).n_tensors; i++) {
        clv_session_tensor kept = clv_session_get(session, i);
        void *data = calloc(1, kept.bytes + 1);
        assert_non_null(data);
        assert_status(clv_session_read(session, i, data, kept.bytes), CLV_OK, n->runtime);
        clv__values_set(values, clv_graph_find(n->graph, kept.name), data);
        free(data);
    }
    clv_session_destroy(session);
    clv_plan_destroy(plan);
    for (int step = 0; step < STEPS; step++) {
        float x[IMAGE], step_values[CLV_HYPER_VALUES];
        int32_t labels[BATCH];
        batch(step, x, labels);
        hyper(n, step, step_values);
        clv__values_set(values, n->x, x);
        clv__values_set(values, n->labels, labels);
        clv__values_set(values, clv_optimizer_hyper(n->graph), step_values);
        clv__values_set_random(values, SEED, step);
        assert_status(clv__interpret(values, NULL, clv__runtime_error_of(n->runtime)), CLV_OK, n->runtime);
        losses[step] = clv__values_of(values, n->loss)[0];
    }
}

static void hold_session(network *n, clv_session *session, const clv__values *values, const char *device) {
    for (int i = 0; i < clv_session_info_get(session).n_tensors; i++) {
        clv_session_tensor kept = clv_session_get(session, i);
        const double *want = clv__values_of(values, clv_graph_find(n->graph, kept.name));
        float *got = calloc(1, kept.bytes + 4);
        double scale = 0;
        assert_non_null(got);
        assert_status(clv_session_read(session, i, got, kept.bytes), CLV_OK, n->runtime);
        int64_t numel = clv_shape_numel(&kept.shape);
        for (int64_t k = 0; k < numel; k++) scale = fmax(scale, fabs(want[k]));
        for (int64_t k = 0; k < numel; k++) {
            double have = kept.dtype == CLV_DTYPE_I32 ? ((int32_t *)got)[k] : got[k];
            if (!(fabs(have - want[k]) <= 2e-4 * scale))
                fail_msg("%s: %s[%d] is %.9g, the interpreter has %.9g", device, kept.name, (int)k, have,
                         want[k]);
        }
        free(got);
    }
}

static void same_bits(network *n, clv_session *a, clv_session *b) {
    assert_int_equal(clv_session_info_get(a).n_tensors, clv_session_info_get(b).n_tensors);
    for (int i = 0; i < clv_session_info_get(a).n_tensors; i++) {
        size_t bytes = clv_session_get(a, i).bytes;
        char *first = calloc(1, bytes + 1), *second = calloc(1, bytes + 1);
        assert_true(first && second);
        assert_status(clv_session_read(a, i, first, bytes), CLV_OK, n->runtime);
        assert_status(clv_session_read(b, i, second, bytes), CLV_OK, n->runtime);
        if (memcmp(first, second, bytes) != 0)
            fail_msg("%s has other bits in a second run", clv_session_get(a, i).name);
        free(first);
        free(second);
    }
}

static void follow(clv_optimizer_config optimizer) {
    network n;
    clv__values values;
    double want[STEPS];
    build(&n, optimizer);
    interpret(&n, &values, want);
    assert_true(want[STEPS - 1] < 0.8 * want[0]); // it learns: updates are not lost in the noise
    for (int i = -1; clv__test_next_device(n.runtime, &i);) {
        clv_device *device = clv_device_get(n.runtime, i);
        const char *name = clv_device_info_get(device)->name;
        float got[STEPS], again[STEPS];
        double worst = 0;
        clv_session *session = train(&n, device, got), *second = train(&n, device, again);
        for (int step = 0; step < STEPS; step++)
            worst = fmax(worst, fabs(got[step] - want[step]) / fabs(want[step]));
        print_message("%s: %d losses from %.6f to %.6f within %.2g\n", name, STEPS, got[0], got[STEPS - 1],
                      worst);
        assert_true(worst <= 1e-4);
        hold_session(&n, session, &values, name);
        assert_memory_equal(got, again, sizeof got);
        same_bits(&n, session, second);
        clv_session_destroy(session);
        clv_session_destroy(second);
    }
    clv__values_reset(&values);
    unbuild(&n);
}

TEST(with_nesterov_and_clipping) {
    follow((clv_optimizer_config){
        .kind = CLV_SGD, .momentum = 0.9f, .nesterov = true, .weight_decay = 1e-3f, .clip_norm = 5});
}

TEST(with_adamw) {
    follow((clv_optimizer_config){.kind = CLV_ADAMW});
}

TEST_MAIN(NULL, NULL)
