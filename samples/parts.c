// SPDX-License-Identifier: Apache-2.0
// One batch in parts: one after the other, which holds activations of one part at a time, and on two devices at once. The loss is that of
// the whole. (`cleave plan MODEL --micro-batches N` tells whether it saves memory: gradients are added up, which takes some.)
#include "common.h"

#include <string.h>

enum { BATCH = 64 };

/** The loss of some rows. */
static clv_tensor *loss_of(clv_tensor *const *tensors, void *user) {
    clv_tensor *x = tensors[0], *labels = tensors[1];
    (void)user;
    clv_tensor *hidden = clv_relu(clv_nn_linear(x, "fc1", 512, NULL));
    return clv_cross_entropy(clv_nn_linear(hidden, "fc2", 10, NULL), labels);
}

enum { WHOLE, MICRO_BATCHES, DEVICES, WAYS };

/** The loss of a step. */
static float step(clv_runtime *runtime, int way, const char *const *devices, int n) {
    static float images[BATCH * 784];
    static int32_t classes[BATCH];
    const clv_optimizer_config sgd = {.kind = CLV_SGD};
    clv_device *device;
    clv_graph *graph;
    clv_plan *plan;
    clv_session *session;
    clv_run *run;
    float value;
    make_images(1, BATCH, images, classes);
    TRY(runtime, clv_device_find(runtime, devices[0], &device));
    TRY(runtime, clv_graph_create(runtime, &graph));
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(BATCH, 784));
    clv_tensor *labels = clv_input(graph, "labels", CLV_DTYPE_I32, CLV_SHAPE(BATCH));
    clv_tensor *loss =
        way == WHOLE ? loss_of((clv_tensor *[]){x, labels}, NULL)
        : way == MICRO_BATCHES
            ? clv_micro_batches((clv_tensor *[]){x, labels}, 2, 4, loss_of, NULL)
            : clv_data_parallel_loss((clv_tensor *[]){x, labels}, 2, devices, NULL, n, loss_of, NULL);
    clv_output(loss, "loss");
    clv_backward(loss);
    clv_optimizer_add(graph, &sgd);
    TRY(runtime, clv_plan_create(graph, &(clv_plan_config){.device = device}, &plan));
    TRY(runtime, clv_session_create(runtime, &(clv_session_config){.seed = 1}, &session));
    TRY(runtime, clv_run_create(session, plan, &run));
    const clv_feed feeds[] = {{x, images, sizeof images}, {labels, classes, sizeof classes}};
    TRY(runtime, clv_run_do(run, &(clv_step){feeds, 2, 0.1, &(clv_fetch){loss, &value, sizeof value}, 1}));
    clv_run_destroy(run), clv_session_destroy(session), clv_plan_destroy(plan), clv_graph_destroy(graph);
    return value;
}

int main(void) {
    static const char *const names[WAYS] = {"whole", "in four parts", "on two devices"};
    clv_runtime *runtime;
    clv_device *best;
    float loss[WAYS];
    TRY(runtime, clv_runtime_create(NULL, &runtime));
    TRY(runtime, clv_device_find(runtime, "gpu|cpu|host", &best));
    const char *devices[] = {clv_device_info_get(best)->name, "host"};
    const int n = strcmp(devices[0], "host") ? 2 : 1; // nothing but the host: alone
    for (int way = 0; way < WAYS; way++) {
        loss[way] = step(runtime, way, devices, n);
        printf("%-15s loss %.6f\n", names[way], (double)loss[way]);
        CHECK(loss[way] - loss[WHOLE] < 1e-5f && loss[WHOLE] - loss[way] < 1e-5f);
    }
    clv_runtime_destroy(runtime);
    return 0;
}
