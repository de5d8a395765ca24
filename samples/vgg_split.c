// SPDX-License-Identifier: Apache-2.0
// A VGG's features on one device, its classifier on another. First VGG11 as it is, planned and not run: how many bytes each
// device would hold. Then a narrow one, trained a step: loss as on one device, memory as predicted on both. Takes two devices as
// arguments; by default the best one and the host.
#include "common.h"

#include <string.h>

enum { BATCH = 4 };

/** VGG's pattern in small: 3x3 convolutions and pooling, then linear layers. */
static clv_tensor *narrow_vgg(clv_tensor *x, const clv_model *model) {
    clv_graph *graph = clv_tensor_graph(x);
    const clv_nn_conv2d_config conv = {.kernel = {3}, .padding = {1, 1}};
    clv_scope_push(graph, "features");
    x = clv_relu(clv_nn_conv2d(x, "0", 8, &conv));
    x = clv_max_pool2d(x, &(clv_pool2d_config){.kernel = {2}});
    x = clv_relu(clv_nn_conv2d(x, "3", 16, &conv));
    x = clv_flatten(clv_max_pool2d(x, &(clv_pool2d_config){.kernel = {2}}), 1);
    clv_scope_pop(graph);
    clv_scope_push(graph, "classifier");
    x = clv_nn_linear(clv_relu(clv_nn_linear(x, "0", 32, NULL)), "3", model->classes, NULL);
    clv_scope_pop(graph);
    return x;
}

/** A training step of the model. */
static clv_tensor *build(clv_graph *graph, const clv_model *model, clv_tensor **x, clv_tensor **labels) {
    clv_graph_set_training(graph, true);
    *x = clv_model_input(graph, model, BATCH);
    *labels = clv_input(graph, "labels", CLV_DTYPE_I32, CLV_SHAPE(BATCH));
    clv_tensor *loss = clv_cross_entropy(clv_model_build(model, *x), *labels);
    clv_output(loss, "loss");
    clv_backward(loss);
    return loss;
}

/** Plan the step with this placement; run it if `value` is wanted. */
static void step(clv_runtime *runtime, const clv_model *model, const char *place, float *value) {
    clv_graph *graph = NULL;
    clv_plan *plan = NULL;
    clv_session *session = NULL;
    clv_run *run = NULL;
    clv_tensor *x, *labels;
    static float images[BATCH * 784];
    static int32_t classes[BATCH];
    int64_t ticket;
    TRY(runtime, clv_graph_create(runtime, &graph));
    clv_tensor *loss = build(graph, model, &x, &labels);
    TRY(runtime, clv_plan_create(graph, &(clv_plan_config){.place = place}, &plan));
    printf("%s, %s\n", model->name, place);
    for (int i = 0; i < clv_plan_info_get(plan).n_devices; i++) {
        clv_plan_memory memory = clv_plans_memory(&plan, 1, clv_plan_device_get(plan, i));
        printf("  %-8s %12llu bytes, of which %llu are parameters\n",
               clv_device_info_get(memory.device)->name, (unsigned long long)memory.predicted_peak_bytes,
               (unsigned long long)memory.category[CLV_PARAMETERS]);
        clv_device_memory_reset_peak(memory.device);
    }
    if (value) {
        make_images(1, BATCH, images, classes);
        TRY(runtime, clv_session_create(runtime, &(clv_session_config){.seed = 1}, &session));
        TRY(runtime, clv_run_create(session, plan, &run));
        TRY(runtime, clv_run_feed(run, x, images, sizeof images));
        TRY(runtime, clv_run_feed(run, labels, classes, sizeof classes));
        TRY(runtime, clv_run_step(run, &ticket));
        TRY(runtime, clv_run_fetch(run, ticket, loss, value, sizeof *value));
        for (int i = 0; i < clv_plan_info_get(plan).n_devices; i++) {
            clv_device *device = clv_plan_device_get(plan, i);
            CHECK(clv_device_memory(device).all.peak ==
                  clv_plans_memory(&plan, 1, device).predicted_peak_bytes);
        }
    }
    clv_run_destroy(run);
    clv_session_destroy(session);
    clv_plan_destroy(plan);
    clv_graph_destroy(graph);
}

int main(int argc, char **argv) {
    clv_runtime *runtime = NULL;
    clv_device *devices[2];
    TRY(runtime, clv_runtime_create(NULL, &runtime));
    TRY(runtime, clv_device_find(runtime, argc > 2 ? argv[1] : "gpu|cpu|host", &devices[0]));
    TRY(runtime, clv_device_find(runtime, argc > 2 ? argv[2] : "host", &devices[1]));
    const char *a = clv_device_info_get(devices[0])->name, *b = clv_device_info_get(devices[1])->name;
    char one[64], two[160];
    snprintf(one, sizeof one, "*=%s", a);
    snprintf(two, sizeof two, "features.*=%s,classifier.*=%s", a, b);

    clv_model vgg11 = clv_model_for(clv_model_find("vgg11"), 3, 64, 64, 10);
    step(runtime, &vgg11, two, NULL);

    const clv_model narrow = {
        .name = "a narrow VGG", .build = narrow_vgg, .input = {1, 28, 28}, .classes = 10};
    float whole = 0, split = 0;
    step(runtime, &narrow, one, &whole);
    step(runtime, &narrow, two, &split);
    printf("loss %.6f on one device, %.6f on two\n", whole, split);
    CHECK(split > whole * 0.9999f && split < whole * 1.0001f);
    clv_runtime_destroy(runtime);
    return 0;
}
