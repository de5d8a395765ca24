// SPDX-License-Identifier: Apache-2.0
// Mixed precision with a gradient scaler: activations in f16, weights and sums in f32, the loss scaled so that small gradients
// survive. One batch is spoilt on purpose: its step updates nothing and halves the scale. mixed_precision cpu
#include "common.h"

enum { BATCH = 64, STEPS = 60, SPOILT = 30 };

typedef struct step_graph {
    clv_graph *graph;
    clv_tensor *x, *labels, *loss;
    clv_plan *plan;
} step_graph;

static const clv_optimizer_config sgd = {.kind = CLV_SGD, .momentum = 0.9f};

/** 784-512-10 and its training step. The only lines that differ from f32 are the first two of the middle. */
static step_graph build(clv_runtime *runtime, clv_device *device, clv_precision precision) {
    step_graph g = {0};
    TRY(runtime, clv_graph_create(runtime, &g.graph));
    clv_graph_set_training(g.graph, true);
    clv_graph_set_precision(g.graph, precision);
    CHECK(clv_graph_modes_get(g.graph).precision == precision);
    if (precision == CLV_PRECISION_MIXED) clv_scaler_add(g.graph, NULL);
    g.x = clv_input(g.graph, "x", CLV_DTYPE_F32, CLV_SHAPE(BATCH, 784));
    g.labels = clv_input(g.graph, "labels", CLV_DTYPE_I32, CLV_SHAPE(BATCH));
    clv_tensor *hidden = clv_relu(clv_nn_linear(g.x, "fc1", 512, NULL));
    g.loss = clv_cross_entropy(clv_nn_linear(hidden, "fc2", 10, NULL), g.labels);
    clv_output(g.loss, "loss");
    clv_backward(g.loss);
    clv_optimizer_add(g.graph, &sgd);
    TRY(runtime, clv_plan_create(g.graph, &(clv_plan_config){.device = device}, &g.plan));
    return g;
}

static float kept(clv_runtime *runtime, clv_session *session, const char *name) {
    float value;
    TRY(runtime, clv_session_read(session, clv_session_find(session, name), &value, sizeof value));
    return value;
}

int main(int argc, char **argv) {
    clv_runtime *runtime = NULL;
    clv_device *device = NULL;
    clv_session *session = NULL;
    clv_run *run = NULL;
    TRY(runtime, clv_runtime_create(NULL, &runtime));
    TRY(runtime, clv_device_find(runtime, argc > 1 ? argv[1] : NULL, &device));
    step_graph plain = build(runtime, device, CLV_PRECISION_F32),
               g = build(runtime, device, CLV_PRECISION_MIXED);
    uint64_t in_f32 = clv_plans_memory(&plain.plan, 1, NULL).category[CLV_ACTIVATIONS],
             in_f16 = clv_plans_memory(&g.plan, 1, NULL).category[CLV_ACTIVATIONS];
    printf("activations: %llu bytes in f32, %llu in mixed precision\n", (unsigned long long)in_f32,
           (unsigned long long)in_f16);
    CHECK(in_f16 * 100 <= in_f32 * 60);

    TRY(runtime, clv_session_create(runtime, &(clv_session_config){.seed = 1}, &session));
    TRY(runtime, clv_run_create(session, g.plan, &run));
    static float images[BATCH * 784];
    static int32_t classes[BATCH];
    float first = 0, last = 0;
    for (int step = 1; step <= STEPS; step++) {
        float values[CLV_HYPER_VALUES];
        int64_t ticket;
        make_images((uint32_t)step, BATCH, images, classes);
        if (step == SPOILT) images[0] = 1e30f; // gradients that no f16 can hold
        clv_optimizer_hyper_values(g.graph, step, 0.02, values);
        TRY(runtime, clv_run_feed(run, g.x, images, sizeof images));
        TRY(runtime, clv_run_feed(run, g.labels, classes, sizeof classes));
        TRY(runtime, clv_run_feed(run, clv_optimizer_hyper(g.graph), values, sizeof values));
        TRY(runtime, clv_run_step(run, &ticket)); // the device decides itself whether to update
        if (step != 1 && step != STEPS) continue;
        TRY(runtime, clv_run_fetch(run, ticket, g.loss, &last, sizeof last));
        if (step == 1) first = last;
    }
    float scale = kept(runtime, session, "scaler.scale"), skipped = kept(runtime, session, "scaler.skipped");
    printf("loss %.3f, then %.3f; scale %g, %g step skipped\n", first, last, scale, skipped);
    CHECK(last < 0.5f * first);
    CHECK(skipped == 1 && scale == 32768);

    clv_run_destroy(run);
    clv_session_destroy(session);
    clv_plan_destroy(plain.plan), clv_plan_destroy(g.plan);
    clv_graph_destroy(plain.graph), clv_graph_destroy(g.graph);
    clv_runtime_destroy(runtime);
    return 0;
}
