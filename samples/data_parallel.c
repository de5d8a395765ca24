// SPDX-License-Identifier: Apache-2.0
// Data parallel over a part of a model: `features` is computed on two unlike devices, each with its share of the batch, the
// classifier after it on the first. Gradients are those of the one-device run. Takes two devices as arguments.
#include "common.h"

#include <string.h>

enum { BATCH = 20, WEIGHTS = 128 * 784 };

static void features(clv_tensor *const *inputs, clv_tensor **results, void *user) {
    (void)user;
    results[0] = clv_relu(clv_nn_linear(inputs[0], "features", 128, NULL));
}

/** The gradient of features.weight; n devices, each with its share. */
static int gradient_of(clv_runtime *runtime, const char *const *devices, const double *shares, int n,
                       float *gradient) {
    clv_graph *graph = NULL;
    clv_plan *plan = NULL;
    clv_session *session = NULL;
    clv_run *run = NULL;
    clv_device *first = NULL;
    static float images[BATCH * 784];
    static int32_t classes[BATCH];
    int64_t ticket;
    make_images(1, BATCH, images, classes);
    TRY(runtime, clv_graph_create(runtime, &graph));
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(BATCH, 784));
    clv_tensor *labels = clv_input(graph, "labels", CLV_DTYPE_I32, CLV_SHAPE(BATCH));
    clv_tensor *hidden;
    clv_data_parallel(&x, 1, devices, shares, n, features, NULL, &hidden, 1);
    clv_tensor *loss = clv_cross_entropy(clv_nn_linear(hidden, "classifier", 10, NULL), labels);
    clv_backward(loss);
    clv_tensor *dw = clv_gradient(clv_graph_find(graph, "features.weight"));
    clv_output(dw, "gradient");
    TRY(runtime, clv_device_find(runtime, devices[0], &first));
    TRY(runtime, clv_plan_create(graph, &(clv_plan_config){.device = first}, &plan));
    TRY(runtime, clv_session_create(runtime, &(clv_session_config){.seed = 1}, &session));
    TRY(runtime, clv_run_create(session, plan, &run));
    TRY(runtime, clv_run_feed(run, x, images, sizeof images));
    TRY(runtime, clv_run_feed(run, labels, classes, sizeof classes));
    TRY(runtime, clv_run_step(run, &ticket));
    TRY(runtime, clv_run_fetch(run, ticket, dw, gradient, WEIGHTS * sizeof *gradient));
    for (int i = 0; i < clv_plan_info_get(plan).n_devices;
         i++) { // the first keeps the parameters, the others only rows
        clv_device *device = clv_plan_device_get(plan, i);
        printf("%s holds %llu bytes of parameters\n", clv_device_info_get(device)->name,
               (unsigned long long)clv_device_memory(device).category[CLV_PARAMETERS].current);
    }
    clv_run_destroy(run);
    clv_session_destroy(session);
    clv_plan_destroy(plan);
    clv_graph_destroy(graph);
    return 0;
}

int main(int argc, char **argv) {
    clv_runtime *runtime = NULL;
    clv_device *best = NULL;
    TRY(runtime, clv_runtime_create(NULL, &runtime));
    TRY(runtime, clv_device_find(runtime, "gpu|cpu|host", &best));
    const char *devices[2] = {argc > 2 ? argv[1] : clv_device_info_get(best)->name,
                              argc > 2 ? argv[2] : "host"};
    const double shares[2] = {0.7, 0.3};
    static float one[WEIGHTS], two[WEIGHTS];
    if (gradient_of(runtime, devices, NULL, 1, one)) return 1;
    if (strcmp(devices[0], devices[1]) !=
        0) { // on a machine with nothing but the host there is nothing to share with
        if (gradient_of(runtime, devices, shares, 2, two)) return 1;
        float worst = 0;
        for (int i = 0; i < WEIGHTS; i++) {
            float difference = one[i] < two[i] ? two[i] - one[i] : one[i] - two[i];
            if (!(difference <= worst)) worst = difference;
        }
        printf("largest difference of a gradient: %g\n", worst);
        CHECK(worst < 1e-5f);
    }
    clv_runtime_destroy(runtime);
    return 0;
}
