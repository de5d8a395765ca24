// SPDX-License-Identifier: Apache-2.0
// Ten steps of every optimizer against PyTorch; the cases stand in make_optimizer.py. The gradients are inputs: with the
// loss sum(a * ga) + sum(b * gb) they are the gradients of a and b.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/interpret.h"
#include "cleave/cleave.h"
#include "golden/golden.h"

GOLDEN_OPEN(optimizer)

enum { STEPS = 10 };
static const char *const parameters[2] = {"a", "b"};

#define NO_SCALER                                                                                            \
    { .scale = 0 }
#define SCALER                                                                                               \
    { .scale = 64, .growth_interval = 3 }

static const struct trajectory {
    const char *name;
    clv_optimizer_config config;
    // clip_norm alternates between two norms; a graph has one, so a second graph takes the odd steps
    float other_clip;
    clv_scaler_config scaler; // scale 0: none
} trajectories[] = {
    {"sgd", {.kind = CLV_SGD}, 0, NO_SCALER},
    {"sgd_decay", {.kind = CLV_SGD, .weight_decay = 0.1f}, 0, NO_SCALER},
    {"sgd_momentum", {.kind = CLV_SGD, .momentum = 0.9f}, 0, NO_SCALER},
    {"sgd_dampening",
     {.kind = CLV_SGD, .momentum = 0.9f, .dampening = 0.5f, .weight_decay = 0.05f},
     0,
     NO_SCALER},
    {"sgd_nesterov",
     {.kind = CLV_SGD, .momentum = 0.8f, .nesterov = true, .weight_decay = 0.05f},
     0,
     NO_SCALER},
    {"adam", {.kind = CLV_ADAM}, 0, NO_SCALER},
    {"adam_decay", {.kind = CLV_ADAM, .weight_decay = 0.1f}, 0, NO_SCALER},
    {"adam_betas", {.kind = CLV_ADAM, .beta1 = 0.8f, .beta2 = 0.95f, .eps = 1e-3f}, 0, NO_SCALER},
    {"adamw", {.kind = CLV_ADAMW}, 0, NO_SCALER},
    {"adamw_decay", {.kind = CLV_ADAMW, .weight_decay = 0.3f}, 0, NO_SCALER},
    {"adamw_no_decay", {.kind = CLV_ADAMW, .weight_decay = -1}, 0, NO_SCALER},
    {"sgd_clip", {.kind = CLV_SGD, .momentum = 0.9f, .clip_norm = 1.5f}, 100, NO_SCALER},
    {"adam_clip", {.kind = CLV_ADAM, .clip_norm = 1.5f}, 100, NO_SCALER},
    {"sgd_scaler", {.kind = CLV_SGD, .momentum = 0.9f}, 0, SCALER},
    {"adam_scaler", {.kind = CLV_ADAM}, 0, SCALER},
    {"rmsprop", {.kind = CLV_RMSPROP}, 0, NO_SCALER},
    {"rmsprop_momentum",
     {.kind = CLV_RMSPROP, .alpha = 0.9f, .momentum = 0.8f, .weight_decay = 0.05f},
     0,
     NO_SCALER},
    {"rmsprop_centered",
     {.kind = CLV_RMSPROP, .alpha = 0.95f, .eps = 1e-3f, .centered = true, .momentum = 0.5f},
     0,
     NO_SCALER},
    {"adagrad", {.kind = CLV_ADAGRAD}, 0, NO_SCALER},
    {"adagrad_decay", {.kind = CLV_ADAGRAD, .weight_decay = 0.1f, .eps = 1e-3f}, 0, NO_SCALER},
    {"lion", {.kind = CLV_LION}, 0, NO_SCALER},
    {"lion_decay", {.kind = CLV_LION, .beta1 = 0.8f, .beta2 = 0.95f, .weight_decay = 0.1f}, 0, NO_SCALER},
    {"lamb", {.kind = CLV_LAMB}, 0, NO_SCALER},
    {"lamb_decay",
     {.kind = CLV_LAMB, .beta1 = 0.8f, .beta2 = 0.95f, .eps = 1e-3f, .weight_decay = 0.1f},
     0,
     NO_SCALER},
    {"muon", {.kind = CLV_MUON}, 0, NO_SCALER},
    {"muon_decay", {.kind = CLV_MUON, .momentum = 0.9f, .weight_decay = 0.3f}, 0, NO_SCALER},
    {"rmsprop_scaler", {.kind = CLV_RMSPROP, .momentum = 0.5f}, 0, SCALER},
    {"lamb_scaler", {.kind = CLV_LAMB}, 0, SCALER},
};

static const clv_array *array_of(const golden *g, const char *name, const char *parameter,
                                 const char *suffix) {
    char full[128];
    snprintf(full, sizeof full, "%s/%s%s", name, parameter, suffix);
    const clv_array *array = clv_archive_find(g->archive, full);
    if (!array) fail_msg("the golden file has no %s", full);
    return array;
}

static clv_graph *build(golden *g, const struct trajectory *t, float clip_norm) {
    clv_tensor *parts[2];
    clv_optimizer_config config = t->config;
    config.clip_norm = clip_norm;
    clv_graph *graph = clv__test_graph(g->runtime);
    for (int k = 0; k < 2; k++) {
        clv_shape shape = array_of(g, t->name, parameters[k], "")->shape;
        clv_tensor *p = clv_parameter(graph, parameters[k], shape, (clv_init){0});
        clv_tensor *gradient = clv_input(graph, k ? "gb" : "ga", CLV_DTYPE_F32, shape);
        parts[k] = clv_sum(clv_mul(p, gradient), NULL, 0, false);
    }
    clv_tensor *loss = clv_add(parts[0], parts[1]);
    if (t->scaler.scale > 0) clv_scaler_add(graph, &t->scaler);
    clv_backward(loss);
    clv_optimizer_add(graph, &config);
    clv_output(loss, "loss");
    if (clv_graph_status(graph) != CLV_OK) fail_msg("%s: %s", t->name, clv_runtime_error(g->runtime));
    return graph;
}

/** What a step is fed with: gradients and hyper values, by name. */
static const float *fed(const golden *g, const clv_graph *graph, const struct trajectory *t, int step,
                        const char *name, float *hyper) {
    clv_optimizer_hyper_values(graph, step + 1, 0.1 / (1 + step), hyper);
    if (strcmp(name, "hyper") == 0) return hyper;
    const clv_array *grads = array_of(g, t->name, strcmp(name, "gb") == 0 ? "b" : "a", ".grads");
    return (const float *)grads->data + (size_t)step * clv_array_bytes(grads) / 4 / STEPS;
}

static void compare(const golden *g, const struct trajectory *t, int step, const char *name,
                    const double *got, double tolerance) {
    const clv_array *steps = array_of(g, t->name, name, ".steps");
    size_t n = clv_array_bytes(steps) / 4 / STEPS;
    for (size_t i = 0; i < n; i++) {
        double want = (double)((const float *)steps->data)[(size_t)step * n + i];
        if (!(fabs(got[i] - want) <= tolerance)) {
            fail_msg("%s: %s[%zu] after step %d is %.9g, PyTorch gives %.9g", t->name, name, i, step + 1,
                     got[i], want);
        }
    }
}

/** Persistent values of one graph into the other: parameters and state have the same names. */
static void carry(const clv__values *from, clv__values *to) {
    for (size_t i = 0; i < to->graph->n_tensors; i++) {
        const clv_tensor *tensor = to->graph->tensors[i];
        if (tensor->kind != CLV__PERSISTENT) continue;
        const clv_tensor *other = clv_graph_find(from->graph, tensor->name);
        assert_non_null(other);
        memcpy(to->data[i], clv__values_of(from, other), (size_t)clv__numel(&tensor->desc) * sizeof(double));
    }
}

TEST(references) {
    golden *g = *state;
    for (size_t c = 0; c < sizeof trajectories / sizeof *trajectories; c++) {
        const struct trajectory *t = &trajectories[c];
        clv_graph *graphs[2] = {build(g, t, t->config.clip_norm), build(g, t, t->other_clip)};
        clv__values values[2] = {0};
        for (int i = 0; i < 2; i++) assert_int_equal(clv__values_init(&values[i], graphs[i], NULL), CLV_OK);
        for (int k = 0; k < 2; k++)
            clv__values_set(&values[0], clv_graph_find(graphs[0], parameters[k]),
                            array_of(g, t->name, parameters[k], "")->data);
        if (t->scaler.scale > 0)
            clv__values_set(&values[0], clv_graph_find(graphs[0], "scaler.scale"), &t->scaler.scale);
        for (int step = 0; step < STEPS; step++) {
            clv__values *now = &values[step % 2];
            float hyper[CLV_HYPER_VALUES];
            if (step) carry(&values[1 - step % 2], now);
            for (size_t i = 0; i < now->graph->n_tensors; i++) {
                const clv_tensor *tensor = now->graph->tensors[i];
                if (tensor->kind == CLV__INPUT)
                    clv__values_set(now, tensor, fed(g, now->graph, t, step, tensor->name, hyper));
            }
            assert_int_equal(clv__interpret(now, NULL, NULL), CLV_OK);
            // Attributes and hyper values are floats: 6e-8 of a step of 0.1, ten times.
            for (int k = 0; k < 2; k++)
                compare(g, t, step, parameters[k],
                        clv__values_of(now, clv_graph_find(now->graph, parameters[k])), 1e-6);
            if (t->scaler.scale > 0)
                compare(g, t, step, "scale", clv__values_of(now, clv_graph_find(now->graph, "scaler.scale")),
                        0);
        }
        for (size_t i = 0; i < graphs[0]->n_nodes; i++) // what clips and what updates
            if (graphs[0]->nodes[i]->phase == CLV__UPDATE) golden_pinned(g, graphs[0]->nodes[i]->io.op);
        for (int i = 0; i < 2; i++) {
            clv__values_reset(&values[i]);
            clv_graph_destroy(graphs[i]);
        }
    }
}

static void succeed(const golden *g, clv_status status) {
    if (status != CLV_OK) fail_msg("%s", clv_runtime_error(g->runtime));
}

/** The same with float kernels, by a planned run; without the alternating norms, which need two graphs. */
static void on_device(golden *g, clv_device *device, const struct trajectory *t) {
    clv_graph *graph = build(g, t, 0);
    clv_plan *plan;
    clv_session *session;
    clv_run *run;
    succeed(g, clv_plan_create(graph, &(clv_plan_config){.device = device}, &plan));
    succeed(g, clv_session_create(g->runtime, NULL, &session));
    succeed(g, clv_run_create(session, plan, &run));
    for (int k = 0; k < 2; k++) {
        const clv_array *first = array_of(g, t->name, parameters[k], "");
        succeed(g, clv_session_write(session, clv_session_find(session, parameters[k]), first->data,
                                     clv_array_bytes(first)));
    }
    for (int step = 0; step < STEPS; step++) {
        static const char *const inputs[] = {"ga", "gb", "hyper"};
        float hyper[CLV_HYPER_VALUES], got[32];
        double values[32];
        for (int i = 0; i < 3; i++) {
            const clv_tensor *input = clv_graph_find(graph, inputs[i]);
            succeed(g, clv_run_feed(run, input, fed(g, clv__tensor_graph(input), t, step, inputs[i], hyper),
                                    clv_tensor_bytes(input)));
        }
        succeed(g, clv_run_step(run, NULL));
        for (int k = 0; k < 2; k++) {
            size_t bytes = clv_array_bytes(array_of(g, t->name, parameters[k], ""));
            succeed(g, clv_session_read(session, clv_session_find(session, parameters[k]), got, bytes));
            for (size_t i = 0; i < bytes / 4; i++) values[i] = (double)got[i];
            compare(g, t, step, parameters[k], values, 4e-6); // values up to 3, rounded to float ten times
        }
        if (t->scaler.scale == 0) continue;
        succeed(g, clv_session_read(session, clv_session_find(session, "scaler.scale"), got, sizeof *got));
        values[0] = (double)got[0];
        compare(g, t, step, "scale", values, 0);
    }
    clv__test_end(run, session, plan, graph);
}

TEST(devices) {
    golden *g = *state;
    for (int i = 0; i < clv_runtime_info_get(g->runtime).n_devices; i++) {
        clv_device *device = clv_device_get(g->runtime, i);
        if (!clv_device_info_get(device)->usable) continue;
        for (size_t c = 0; c < sizeof trajectories / sizeof *trajectories; c++)
            if (!trajectories[c].other_clip) on_device(g, device, &trajectories[c]);
    }
}

TEST(refusals) {
    static const struct {
        clv_optimizer_config config;
        const char *part;
    } cases[] = {
        {{.kind = (clv_optimizer_kind)8}, "kind"},
        {{.kind = CLV_SGD, .momentum = -0.1f}, "momentum"},
        {{.kind = CLV_SGD, .dampening = NAN}, "dampening"},
        {{.kind = CLV_SGD, .nesterov = true}, "nesterov"},
        {{.kind = CLV_SGD, .momentum = 0.9f, .dampening = 0.1f, .nesterov = true}, "nesterov"},
        {{.kind = CLV_ADAM, .weight_decay = -1}, "weight_decay"},
        {{.kind = CLV_ADAM, .beta1 = 1}, "beta1"},
        {{.kind = CLV_ADAM, .beta2 = -0.5f}, "beta2"},
        {{.kind = CLV_ADAM, .eps = -1e-8f}, "eps"},
        {{.kind = CLV_ADAM, .clip_norm = INFINITY}, "clip_norm"},
        {{.kind = CLV_RMSPROP, .alpha = 1}, "alpha"},
        {{.kind = CLV_LION, .weight_decay = -1}, "weight_decay"},
    };
    golden *g = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        clv_graph *graph = clv__test_graph(g->runtime);
        clv_tensor *p = clv_parameter(graph, "p", CLV_SHAPE(3), (clv_init){0});
        clv_backward(clv_sum(clv_mul(p, p), NULL, 0, false));
        clv_optimizer_add(graph, &cases[i].config);
        assert_int_equal(clv_graph_status(graph), CLV_E_VALUE);
        if (!strstr(clv_runtime_error(g->runtime), cases[i].part))
            fail_msg("'%s' says nothing of %s", clv_runtime_error(g->runtime), cases[i].part);
        clv_graph_destroy(graph);
    }
    clv_graph *graph = clv__test_graph(g->runtime);
    clv_parameter(graph, "p", CLV_SHAPE(3), (clv_init){0});
    clv_optimizer_add(graph, &(clv_optimizer_config){.kind = CLV_SGD}); // no gradients yet
    assert_int_equal(clv_graph_status(graph), CLV_E_STATE);
    clv_graph_destroy(graph);
}

TEST_MAIN(golden_open_optimizer, golden_close)
