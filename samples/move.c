// SPDX-License-Identifier: Apache-2.0
// A model's parameters to another device and back, as PyTorch's `model.to(device)`: values and names stay, the account shows
// where the bytes are. Takes two devices as arguments; by default the best one and the host.
#include "common.h"

#include <string.h>

enum { BATCH = 4 };

/** Logits of the model on a device, with the parameters that the session keeps there. */
static void logits_on(clv_runtime *runtime, clv_session *session, clv_device *device,
                      float logits[BATCH * 10]) {
    clv_graph *graph = NULL;
    clv_plan *plan = NULL;
    clv_run *run = NULL;
    static float images[BATCH * 784];
    static int32_t classes[BATCH];
    int64_t ticket;
    make_images(1, BATCH, images, classes);
    TRY(runtime, clv_graph_create(runtime, &graph));
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(BATCH, 784));
    clv_tensor *y = clv_nn_linear(clv_relu(clv_nn_linear(x, "fc1", 32, NULL)), "fc2", 10, NULL);
    clv_output(y, "logits");
    TRY(runtime, clv_plan_create(graph, &(clv_plan_config){.device = device}, &plan));
    TRY(runtime, clv_run_create(session, plan, &run));
    TRY(runtime, clv_run_feed(run, x, images, sizeof images));
    TRY(runtime, clv_run_step(run, &ticket));
    TRY(runtime, clv_run_fetch(run, ticket, y, logits, BATCH * 10 * sizeof *logits));
    clv_run_destroy(run); // before the parameters move
    clv_plan_destroy(plan);
    clv_graph_destroy(graph);
}

static unsigned long long parameters_on(const clv_device *device) {
    unsigned long long bytes = clv_device_memory(device).category[CLV_PARAMETERS].current;
    printf("%-8s holds %llu bytes of parameters\n", clv_device_info_get(device)->name, bytes);
    return bytes;
}

int main(int argc, char **argv) {
    clv_runtime *runtime = NULL;
    clv_session *session = NULL;
    clv_device *home, *away;
    float before[BATCH * 10], there[BATCH * 10], after[BATCH * 10];
    TRY(runtime, clv_runtime_create(NULL, &runtime));
    TRY(runtime, clv_device_find(runtime, argc > 2 ? argv[1] : "gpu|cpu|host", &home));
    TRY(runtime, clv_device_find(runtime, argc > 2 ? argv[2] : "host", &away));
    TRY(runtime, clv_session_create(runtime, &(clv_session_config){.seed = 1}, &session));
    logits_on(runtime, session, home, before);
    unsigned long long bytes = parameters_on(home);

    TRY(runtime, clv_session_move(session, NULL, away)); // NULL: all; "fc1" would be one layer
    CHECK(parameters_on(away) == bytes && (home == away || parameters_on(home) == 0));
    clv_session_tensor weight = clv_session_get(session, clv_session_find(session, "fc1.weight"));
    CHECK(weight.device == away && weight.bytes == 32 * 784 * sizeof(float));
    logits_on(runtime, session, away, there);
    for (int i = 0; i < BATCH * 10; i++) CHECK(there[i] > before[i] - 1e-5f && there[i] < before[i] + 1e-5f);

    TRY(runtime, clv_session_move(session, NULL, home));
    CHECK(parameters_on(home) == bytes && (home == away || parameters_on(away) == 0));
    logits_on(runtime, session, home, after);
    CHECK(memcmp(before, after, sizeof before) == 0); // the same bits
    printf("logits are the same\n");
    clv_session_destroy(session);
    clv_runtime_destroy(runtime);
    return 0;
}
