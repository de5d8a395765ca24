// SPDX-License-Identifier: Apache-2.0
// One model on two devices: layers where you put them, and what is carried between. Takes two devices as arguments; by
// default the best one and the host.
#include "common.h"

enum { BATCH = 32 };

typedef struct model {
    clv_graph *graph;
    clv_tensor *x, *loss;
} model;

/** 784-128-10 with a mean square. */
static int build(clv_runtime *runtime, model *m) {
    TRY(runtime, clv_graph_create(runtime, &m->graph));
    m->x = clv_input(m->graph, "x", CLV_DTYPE_F32, CLV_SHAPE(BATCH, 784));
    clv_tensor *hidden = clv_relu(clv_nn_linear(m->x, "features", 128, NULL));
    m->loss = clv_mean(clv_square(clv_nn_linear(hidden, "classifier", 10, NULL)), NULL, 0, false);
    clv_backward(m->loss);
    clv_output(m->loss, "loss");
    clv_output(clv_gradient(clv_graph_find(m->graph, "features.weight")), "gradient");
    return 0;
}

static int loss_of(clv_runtime *runtime, const model *m, const clv_plan_config *config, float *loss,
                   clv_plan **plan) {
    clv_session *session = NULL;
    clv_run *run = NULL;
    static float images[BATCH * 784];
    static int32_t classes[BATCH];
    int64_t ticket;
    make_images(1, BATCH, images, classes);
    TRY(runtime, clv_plan_create(m->graph, config, plan));
    TRY(runtime, clv_session_create(runtime, &(clv_session_config){.seed = 1}, &session));
    TRY(runtime, clv_run_create(session, *plan, &run));
    TRY(runtime, clv_run_feed(run, m->x, images, sizeof images));
    TRY(runtime, clv_run_step(run, &ticket));
    TRY(runtime, clv_run_fetch(run, ticket, m->loss, loss, sizeof *loss));
    clv_run_destroy(run);
    clv_session_destroy(session);
    return 0;
}

int main(int argc, char **argv) {
    const char *first = argc > 2 ? argv[1] : "gpu|cpu|host", *second = argc > 2 ? argv[2] : "host";
    clv_runtime *runtime = NULL;
    clv_device *devices[2];
    TRY(runtime, clv_runtime_create(NULL, &runtime));
    TRY(runtime, clv_device_find(runtime, first, &devices[0]));
    TRY(runtime, clv_device_find(runtime, second, &devices[1]));
    const char *a = clv_device_info_get(devices[0])->name, *b = clv_device_info_get(devices[1])->name;

    model m = {0};
    clv_plan *plan = NULL;
    float whole = 0, split = 0;
    if (build(runtime, &m) || loss_of(runtime, &m, &(clv_plan_config){.device = devices[0]}, &whole, &plan))
        return 1;
    clv_plan_destroy(plan);

    // The same graph, its layers on two devices.
    char place[256];
    snprintf(place, sizeof place, "features=%s,classifier=%s", a, b);
    if (loss_of(runtime, &m, &(clv_plan_config){.place = place}, &split, &plan)) return 1;
    printf("%s: loss %.6f on one device, %.6f on two\n", place, whole, split);
    for (int i = 0; i < clv_plan_info_get(plan).n_transfers; i++) {
        clv_plan_transfer t = clv_plan_transfer_get(plan, i);
        printf("  %s -> %s: %s, %llu bytes a step\n", clv_device_info_get(t.from)->name,
               clv_device_info_get(t.to)->name, t.tensor, (unsigned long long)t.bytes);
    }
    CHECK(split > whole * 0.9999f && split < whole * 1.0001f);
    CHECK(devices[0] == devices[1] ||
          clv_plan_info_get(plan).n_transfers == 2); // the hidden values, and their gradient
    clv_plan_destroy(plan);
    clv_graph_destroy(m.graph);
    clv_runtime_destroy(runtime);
    return 0;
}
