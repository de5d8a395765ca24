// SPDX-License-Identifier: Apache-2.0
// A training loop of one's own: forward, cross entropy, backward, SGD. The code is the same on every device; name one
// as the argument: train_mlp cpu
#include "common.h"

enum { BATCH = 64, STEPS = 60 };

int main(int argc, char **argv) {
    clv_runtime *runtime = NULL;
    clv_device *device = NULL;
    TRY(runtime, clv_runtime_create(NULL, &runtime));
    TRY(runtime, clv_device_find(runtime, argc > 1 ? argv[1] : NULL, &device));

    // What is computed: 784-128-10, the loss, its gradients, and the update of every parameter.
    const clv_optimizer_config sgd = {.kind = CLV_SGD, .momentum = 0.9f};
    clv_graph *graph = NULL;
    TRY(runtime, clv_graph_create(runtime, &graph));
    clv_graph_set_training(graph, true);
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(BATCH, 784));
    clv_tensor *labels = clv_input(graph, "labels", CLV_DTYPE_I32, CLV_SHAPE(BATCH));
    clv_tensor *hidden = clv_relu(clv_nn_linear(x, "fc1", 128, NULL));
    clv_tensor *loss = clv_cross_entropy(clv_nn_linear(hidden, "fc2", 10, NULL), labels);
    clv_output(loss, "loss");
    clv_backward(loss);
    clv_optimizer_add(graph, &sgd);

    // How: planned for the device, with memory taken once.
    clv_plan *plan = NULL;
    clv_session *session = NULL;
    clv_run *run = NULL;
    TRY(runtime, clv_plan_create(graph, &(clv_plan_config){.device = device}, &plan));
    TRY(runtime, clv_session_create(runtime, &(clv_session_config){.seed = 1}, &session));
    TRY(runtime, clv_run_create(session, plan, &run));

    static float images[BATCH * 784];
    static int32_t classes[BATCH];
    float first = 0, last = 0;
    for (int step = 1; step <= STEPS; step++) {
        bool shown = step == 1 || step % 20 == 0;
        const clv_feed feeds[] = {{x, images, sizeof images}, {labels, classes, sizeof classes}};
        const clv_fetch fetches[] = {{loss, &last, sizeof last}};
        make_images((uint32_t)step, BATCH, images, classes);
        TRY(runtime, clv_run_do(run, &(clv_step){feeds, 2, 0.02, fetches, shown})); // waits only to fetch
        if (!shown) continue;
        if (step == 1) first = last;
        printf("step %2d on %s: loss %.4f\n", step, clv_device_info_get(device)->name, last);
    }
    CHECK(first > 2.0f && first < 3.5f); // ten classes by chance: ln 10 = 2.3
    CHECK(last < 0.5f * first);

    clv_run_destroy(run);
    clv_session_destroy(session);
    clv_plan_destroy(plan);
    clv_graph_destroy(graph);
    clv_runtime_destroy(runtime);
    return 0;
}
