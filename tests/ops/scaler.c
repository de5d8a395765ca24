// SPDX-License-Identifier: Apache-2.0
// The loss scaler as a user sees it, on every device: a training with it is the training without it, bit for bit, a step
// whose gradients overflow changes nothing but the scale, and the steps after it are those of a training that never had it.
#include <math.h>

#include "cleave/nn.h"
#include "cleave/optim.h"
#include "cleave/plan.h"
#include "cleave/ops.h"
#include "graph/signature.h"
#include "harness/harness.h"

enum { ROWS = 6, IN = 10, OUT = 3, STEPS = 6, MOST = 16, FLOATS = 128 };

typedef struct training {
    clv_runtime *runtime;
    clv_graph *graph;
    clv_tensor *x, *labels, *loss;
    clv_optimizer_config optimizer;
    clv_plan *plan;
    clv_session *session;
    clv_run *run;
    int step; // as the host counts: skipped ones too
} training;

static void begin(training *t, clv_runtime *runtime, clv_device *device, clv_optimizer_config optimizer,
                  const clv_scaler_config *scaler) {
    *t = (training){.runtime = runtime, .optimizer = optimizer};
    t->graph = clv__test_graph(runtime);
    clv_graph_set_training(t->graph, true);
    t->x = clv_input(t->graph, "x", CLV_DTYPE_F32, CLV_SHAPE(ROWS, IN));
    t->labels = clv_input(t->graph, "labels", CLV_DTYPE_I32, CLV_SHAPE(ROWS));
    t->loss = clv_cross_entropy(clv_nn_linear(t->x, "fc", OUT, NULL), t->labels);
    clv_output(t->loss, "loss");
    if (scaler) clv_scaler_add(t->graph, scaler);
    clv_backward(t->loss);
    clv_optimizer_add(t->graph, &t->optimizer);
    t->plan = clv__test_plan(runtime, t->graph, &(clv_plan_config){.device = device});
    t->session = clv__test_session(runtime, &(clv_session_config){.seed = 5});
    t->run = clv__test_run(runtime, t->session, t->plan);
}

/** One step with the data of number `data`; one element of it replaced by `poison` if that is not 0. */
static void do_step(training *t, int data, float poison) {
    float x[ROWS * IN], hyper[CLV_HYPER_VALUES];
    int32_t labels[ROWS];
    for (int i = 0; i < ROWS * IN; i++) x[i] = (float)((i * 7 + data * 5) % 13) / 4 - 1.5f;
    for (int i = 0; i < ROWS; i++) labels[i] = (i + data) % OUT;
    if (poison != 0) x[3] = poison;
    clv_optimizer_hyper_values(t->graph, ++t->step, 0.1, hyper);
    assert_status(clv_run_feed(t->run, t->x, x, sizeof x), CLV_OK, t->runtime);
    assert_status(clv_run_feed(t->run, t->labels, labels, sizeof labels), CLV_OK, t->runtime);
    assert_status(clv_run_feed(t->run, clv_optimizer_hyper(t->graph), hyper, sizeof hyper), CLV_OK,
                  t->runtime);
    assert_status(clv_run_step(t->run, NULL), CLV_OK, t->runtime);
}

static float scaler_value(training *t, const char *name) {
    float value;
    assert_status(clv_session_read(t->session, clv_session_find(t->session, name), &value, sizeof value),
                  CLV_OK, t->runtime);
    return value;
}

/** All that is kept but the scaler's own: parameters and optimizer state. */
static void read_all(training *t, float values[MOST][FLOATS], int *n) {
    *n = 0;
    for (int i = 0; i < clv_session_info_get(t->session).n_tensors; i++) {
        clv_session_tensor kept = clv_session_get(t->session, i);
        if (strncmp(kept.name, "scaler.", 7) == 0) continue;
        memset(values[*n], 0, sizeof values[*n]);
        assert_status(clv_session_read(t->session, i, values[(*n)++], kept.bytes), CLV_OK, t->runtime);
    }
    assert_true(*n >= 2);
}

static void end(training *t) {
    clv__test_end(t->run, t->session, t->plan, t->graph);
}

static void hold_equal(training *a, training *b, float relative) {
    float of_a[MOST][FLOATS], of_b[MOST][FLOATS];
    int n, m;
    read_all(a, of_a, &n);
    read_all(b, of_b, &m);
    assert_int_equal(n, m);
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < FLOATS; k++) {
            if (!(fabsf(of_a[i][k] - of_b[i][k]) <= relative * fabsf(of_b[i][k])))
                fail_msg("tensor %d[%d]: %.9g and %.9g", i, k, (double)of_a[i][k], (double)of_b[i][k]);
        }
    }
}

static const struct {
    clv_optimizer_config optimizer;
    float relative; // after a skipped step: Adam's corrections are made on the device then
} kinds[] = {
    {{.kind = CLV_SGD}, 0},
    {{.kind = CLV_SGD, .momentum = 0.9f, .dampening = 0.5f, .clip_norm = 0.25f}, 0},
    {{.kind = CLV_ADAMW, .weight_decay = 0.1f}, 2e-5f},
};

static void on_every_device(void (*test)(clv_runtime *runtime, clv_device *device, int kind)) {
    clv_runtime *runtime = clv__test_runtime(NULL);
    for (int i = -1; clv__test_next_device(runtime, &i);) {
        for (int kind = 0; kind < (int)(sizeof kinds / sizeof *kinds); kind++)
            test(runtime, clv_device_get(runtime, i), kind);
    }
    clv_runtime_destroy(runtime);
}

static void scaled_is_plain(clv_runtime *runtime, clv_device *device, int kind) {
    training plain, scaled;
    begin(&plain, runtime, device, kinds[kind].optimizer, NULL);
    begin(&scaled, runtime, device, kinds[kind].optimizer, &(clv_scaler_config){.growth_interval = 4});
    for (int i = 0; i < STEPS; i++) do_step(&plain, i, 0), do_step(&scaled, i, 0);
    hold_equal(&scaled, &plain, 0);
    assert_true(scaler_value(&scaled, "scaler.scale") == 131072); // it has grown once
    assert_true(scaler_value(&scaled, "scaler.growth_tracker") == STEPS - 4);
    assert_true(scaler_value(&scaled, "scaler.skipped") == 0);
    end(&plain);
    end(&scaled);
}

static void overflow_is_skipped(clv_runtime *runtime, clv_device *device, int kind) {
    training with, without, before;
    begin(&with, runtime, device, kinds[kind].optimizer, &(clv_scaler_config){0});
    begin(&without, runtime, device, kinds[kind].optimizer, NULL);
    begin(&before, runtime, device, kinds[kind].optimizer, NULL);
    do_step(&with, 0, INFINITY); // the very first, as often in practice
    assert_true(scaler_value(&with, "scaler.scale") == 32768);
    for (int i = 0; i < 2; i++) do_step(&with, i, 0), do_step(&without, i, 0), do_step(&before, i, 0);
    assert_true(scaler_value(&with, "scaler.growth_tracker") == 2);
    do_step(&with, 2, NAN);
    hold_equal(&with, &before, kinds[kind].relative);
    assert_true(scaler_value(&with, "scaler.scale") == 16384);
    assert_true(scaler_value(&with, "scaler.growth_tracker") == 0);
    assert_true(scaler_value(&with, "scaler.skipped") == 2);
    for (int i = 2; i < STEPS; i++) do_step(&with, i, 0), do_step(&without, i, 0);
    hold_equal(&with, &without, kinds[kind].relative);
    assert_true(scaler_value(&with, "scaler.skipped") == 2);
    end(&with);
    end(&without);
    end(&before);
}

TEST(test_scaled_is_plain) {
    on_every_device(scaled_is_plain);
}

TEST(test_overflow_is_skipped) {
    on_every_device(overflow_is_skipped);
}

TEST(test_mistakes) {
    static const struct {
        clv_scaler_config config;
        const char *says;
    } wrong[] = {
        {{.scale = -1}, "clv_scaler_add: scale must be above 0 and finite"},
        {{.growth = 1}, "clv_scaler_add: growth must be above 1 and finite"},
        {{.backoff = 1}, "clv_scaler_add: backoff must be between 0 and 1"},
        {{.growth_interval = -1}, "clv_scaler_add: growth_interval must be at least 1"},
    };
    clv_runtime *runtime = clv__test_runtime(NULL);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        clv_graph *graph = clv__test_graph(runtime);
        clv_scaler_add(graph, &wrong[i].config);
        assert_status(clv_graph_status(graph), CLV_E_VALUE, runtime);
        assert_string_equal(clv_runtime_error(runtime), wrong[i].says);
        clv_graph_destroy(graph);
    }
    for (int late = 0; late < 2; late++) {
        clv_graph *graph = clv__test_graph(runtime);
        clv_tensor *weight = clv_parameter(graph, "w", CLV_SHAPE(4), (clv_init){.kind = CLV_INIT_ONES});
        clv_tensor *loss = clv_mean(clv_square(weight), NULL, 0, false);
        if (!late) clv_scaler_add(graph, NULL);
        if (late) clv_backward(loss);
        clv_scaler_add(graph, NULL);
        assert_status(clv_graph_status(graph), CLV_E_STATE, runtime);
        assert_string_equal(clv_runtime_error(runtime),
                            late ? "clv_scaler_add: call it before clv_backward, which begins with the scale"
                                 : "clv_scaler_add: the graph has a scaler already");
        clv_graph_destroy(graph);
    }
    clv_runtime_destroy(runtime);
}

/** A sample of an op of groups, with one of its last group's inputs changed. */
static void refuses(const clv__op *op, const clv__sample *sample, const clv__desc *wrong, int i,
                    clv_status status) {
    clv__sample changed = *sample;
    clv__error error;
    changed.in[i] = *wrong;
    clv__op_io io = {.op = op, .attrs = changed.attrs, .n_in = changed.n_in, .in = changed.in};
    clv__error_init(&error);
    if (clv__op_infer(&io, &error) != status)
        fail_msg("%s takes another input %d: %s", op->name, i, error.text);
    clv__error_destroy(&error);
}

/** Of ops with groups of inputs, which the plan makes of several: a group is as the first one, and whole. */
TEST(test_groups_are_held) {
    int held = 0;
    for (int k = 0; clv__ops[k]; k++) {
        const clv__op *op = clv__ops[k];
        clv__sample sample;
        if (!op->groups.size) continue;
        for (int i = 0; clv__op_sample(op, i, &sample); i++) {
            const int last = sample.n_in - op->groups.size;
            if (last <= op->groups.first) continue;
            for (int j = last; j < sample.n_in; j++) {
                const clv__desc none = {0}, was = sample.in[j];
                const bool there = was.dtype != CLV_DTYPE_NONE, alone = op->groups.size == 1;
                clv__desc other = sample.in[j];
                other.dtype = CLV_DTYPE_I32;
                if (there) refuses(op, &sample, &other, j, CLV_E_DTYPE);
                if (there) refuses(op, &sample, &none, j, CLV_E_VALUE);
                other = (clv__desc){CLV_DTYPE_F32, CLV_SHAPE(2, 3, 5)};
                if (there && !alone) refuses(op, &sample, &other, j, CLV_E_SHAPE);
                if (!there) refuses(op, &sample, &sample.in[last], j, CLV_E_VALUE);
                held++;
            }
            sample.n_in--;
            if (op->groups.size > 1) refuses(op, &sample, &sample.in[0], 0, CLV_E_VALUE);
        }
    }
    assert_true(held > 20);
}

TEST_MAIN(NULL, NULL)
