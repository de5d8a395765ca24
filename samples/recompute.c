// SPDX-License-Identifier: Apache-2.0
// Gradient checkpointing: activations that are dropped and computed again for the backward pass. By name, as one would wrap
// modules in torch.utils.checkpoint, or as a budget asks for it; the gradients are the same to the last bit.
#include "common.h"

#include <string.h>

enum { BATCH = 64, WIDTH = 256, BLOCKS = 6 };

typedef struct model {
    clv_graph *graph;
    clv_tensor *x, *loss, *gradient;
} model;

/** Six blocks of linear, gelu, linear, with dropout: what the backward pass wants of each is several times its input. */
static int build(clv_runtime *runtime, model *m) {
    TRY(runtime, clv_graph_create(runtime, &m->graph));
    clv_graph_set_training(m->graph, true);
    clv_tensor *t = m->x = clv_input(m->graph, "x", CLV_DTYPE_F32, CLV_SHAPE(BATCH, WIDTH));
    for (int i = 0; i < BLOCKS; i++) {
        char name[16];
        snprintf(name, sizeof name, "block%d", i);
        clv_scope_push(m->graph, name);
        clv_tensor *inner = clv_gelu(clv_nn_linear(t, "up", 4 * WIDTH, NULL));
        t = clv_add(t, clv_nn_linear(clv_nn_dropout(inner, 0.1f), "down", WIDTH, NULL));
        clv_scope_pop(m->graph);
    }
    m->loss = clv_mean(clv_square(t), NULL, 0, false);
    clv_backward(m->loss);
    m->gradient = clv_gradient(clv_graph_find(m->graph, "block0.up.weight"));
    clv_output(m->gradient, "gradient");
    return 0;
}

/** Loss, and the gradient of the first weight, when `recompute` is asked for; how many bytes it took. */
static uint64_t train(clv_runtime *runtime, clv_device *device, const char *recompute, float *gradient) {
    model m;
    clv_plan *plan = NULL;
    clv_session *session = NULL;
    clv_run *run = NULL;
    int64_t ticket;
    static float x[BATCH * WIDTH];
    for (int i = 0; i < BATCH * WIDTH; i++) x[i] = (float)(i * 7 % 23) / 11 - 1;
    if (build(runtime, &m)) exit(1);
    TRY(runtime,
        clv_plan_create(m.graph, &(clv_plan_config){.device = device, .recompute = recompute}, &plan));
    TRY(runtime, clv_session_create(runtime, &(clv_session_config){.seed = 1}, &session));
    TRY(runtime, clv_run_create(session, plan, &run));
    TRY(runtime, clv_run_feed(run, m.x, x, sizeof x));
    TRY(runtime, clv_run_step(run, &ticket));
    TRY(runtime, clv_run_fetch(run, ticket, m.gradient, gradient, 4 * WIDTH * WIDTH * sizeof *gradient));
    clv_plan_recomputed again = clv_plan_info_get(plan).recomputed;
    uint64_t bytes = clv_plans_memory(&plan, 1, NULL).predicted_peak_bytes;
    printf("%-10s %9llu bytes; %d results computed again, %.0f %% more time expected\n",
           recompute ? recompute : "nothing", (unsigned long long)bytes, again.nodes, 100 * again.extra_time);
    CHECK(clv_device_memory(device).all.peak == bytes); // as the plan said
    clv_run_destroy(run);
    clv_session_destroy(session);
    clv_plan_destroy(plan);
    clv_graph_destroy(m.graph);
    clv_device_memory_reset_peak(device);
    return bytes;
}

int main(int argc, char **argv) {
    static float plain[4 * WIDTH * WIDTH], again[4 * WIDTH * WIDTH];
    clv_runtime *runtime = NULL;
    clv_device *device;
    TRY(runtime, clv_runtime_create(NULL, &runtime));
    TRY(runtime, clv_device_find(runtime, argc > 1 ? argv[1] : NULL, &device));
    uint64_t whole = train(runtime, device, NULL, plain);

    // Each block by itself: what is inside is computed again, what goes from block to block stays.
    uint64_t blocks = train(runtime, device, "block?.*", again);
    CHECK(blocks < whole);
    CHECK(memcmp(plain, again, sizeof plain) == 0); // dropout's masks are the same ones too

    // A budget, and as little computed again as it takes.
    uint64_t budget = (whole + blocks) / 2;
    clv_device_set_budget(device, budget);
    CHECK(train(runtime, device, "auto", again) <= budget);
    CHECK(memcmp(plain, again, sizeof plain) == 0);
    clv_runtime_destroy(runtime);
    return 0;
}
