// SPDX-License-Identifier: Apache-2.0
// A training loop of one's own on batches of a loader, with running averages of the parameters: batches are made in a thread while the
// device computes, and the averages are tried without losing the parameters. The argument: a device.
#include "common.h"

enum { N = 640, BATCH = 64, EPOCHS = 4 };

int main(int argc, char **argv) {
    static float images[N * 784], sample[784];
    static int32_t classes[N];
    const clv_loader_config batches = {.batch = BATCH, .shuffle = true, .seed = 1};
    clv_runtime *runtime;
    clv_device *device;
    clv_loader *loader;
    clv_graph *graph;
    clv_plan *plan;
    clv_session *session;
    clv_run *run;
    TRY(runtime, clv_runtime_create(NULL, &runtime));
    TRY(runtime, clv_device_find(runtime, argc > 1 ? argv[1] : NULL, &device));
    clv_dataset *dataset = made_up_dataset(runtime, N, images, classes);
    TRY(runtime, clv_loader_create(runtime, dataset, &batches, &loader));
    printf("%lld batches an epoch, made in %zu bytes\n", (long long)clv_loader_info_get(loader).batches,
           clv_loader_info_get(loader).bytes);

    TRY(runtime, clv_graph_create(runtime, &graph));
    clv_graph_set_training(graph, true);
    clv_tensor *x = clv_input(graph, "x", clv_dataset_info_get(dataset).dtype, CLV_SHAPE(BATCH, 784));
    clv_tensor *labels = clv_input(graph, "labels", CLV_DTYPE_I32, CLV_SHAPE(BATCH));
    clv_tensor *hidden = clv_nn_rms_norm(clv_relu(clv_nn_linear(x, "fc1", 64, NULL)), "norm", 1e-5f);
    clv_tensor *loss = clv_cross_entropy(clv_nn_linear(hidden, "fc2", 10, NULL), labels);
    CHECK(!clv_tensor_info_get(x).requires_grad && clv_tensor_info_get(loss).requires_grad);
    clv_output(loss, "loss");
    clv_backward(loss);
    clv_optimizer_add(graph, &(clv_optimizer_config){.kind = CLV_ADAM});
    clv_averages_add(graph, 0.9);
    TRY(runtime, clv_plan_create(graph, &(clv_plan_config){.device = device}, &plan));
    TRY(runtime, clv_session_create(runtime, &(clv_session_config){.seed = 1}, &session));
    TRY(runtime, clv_run_create(session, plan, &run));
    TRY(runtime, clv_averages_begin(session));

    float first = 0, last = 0;
    clv_loader_info at = clv_loader_info_get(loader);
    for (int step = 0; at.epoch < EPOCHS; step++) {
        clv_batch batch;
        TRY(runtime, clv_loader_next(loader, &batch));
        const clv_feed feeds[] = {{x, batch.samples, clv_tensor_bytes(x)},
                                  {labels, batch.targets, clv_tensor_bytes(labels)}};
        const clv_fetch fetches[] = {{loss, step ? &last : &first, sizeof last}};
        TRY(runtime, clv_run_do(run, &(clv_step){feeds, 2, 1e-3, fetches, 1}));
        clv_loader_release(loader, &batch);
        at = clv_loader_info_get(loader); // what a checkpoint would keep
    }
    TRY(runtime, clv_averages_swap(session)); // here the parameters are their averages: evaluate, save
    CHECK(clv_session_info_get(session).averages_swapped);
    TRY(runtime, clv_averages_swap(session));
    printf("loss %.4f, after %d epochs %.4f\n", (double)first, EPOCHS, (double)last);
    CHECK(last < 0.5f * first);

    int32_t class; // a sample is asked for by its number, too
    clv_dataset_read(dataset, 7, (void *[]){sample, &class});
    CHECK(class == classes[7] && sample[5] == images[7 * 784 + 5]);
    clv_run_destroy(run), clv_session_destroy(session), clv_plan_destroy(plan), clv_graph_destroy(graph);
    clv_loader_destroy(loader), clv_dataset_destroy(dataset), clv_runtime_destroy(runtime);
    return 0;
}
