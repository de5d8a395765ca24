// SPDX-License-Identifier: Apache-2.0
// What a batch of 64 pictures of 224 x 224 costs the host before a device has it: made by the loader, copied by
// clv_run_feed. Prints milliseconds of processor time for a batch, those of it in clv_run_feed, and bytes fed: feed.c
// [bytes]. For feed.sh.
#include <cleave/cleave.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { BATCH = 64, SIDE = 224, BATCHES = 4, STEPS = 24 };

static double now(clockid_t clock) {
    struct timespec at;
    clock_gettime(clock, &at);
    return 1e3 * (double)at.tv_sec + 1e-6 * (double)at.tv_nsec;
}

#define TRY(call)                                                                                            \
    do {                                                                                                     \
        if ((call) != CLV_OK) return fprintf(stderr, "%s\n", clv_runtime_error(runtime)), 1;                 \
    } while (0)

int main(int argc, char **argv) {
    (void)argv;
    const clv_shape all = CLV_SHAPE(BATCHES * BATCH, 3, SIDE, SIDE), rows = CLV_SHAPE(BATCHES * BATCH);
    const clv_shape shape = CLV_SHAPE(BATCH, 3, SIDE, SIDE);
    clv_runtime *runtime = NULL;
    clv_device *device;
    clv_array images, labels;
    clv_dataset *dataset;
    clv_loader *loader;
    clv_graph *graph;
    clv_plan *plan;
    clv_session *session;
    clv_run *run;
    TRY(clv_runtime_create(&(clv_runtime_config){.no_opencl = true, .null_devices = true}, &runtime));
    TRY(clv_device_find(runtime, "null:0", &device)); // it computes nothing
    TRY(clv_array_init(runtime, CLV_DTYPE_U8, &all, &images));
    TRY(clv_array_init(runtime, CLV_DTYPE_I32, &rows, &labels));
    for (size_t i = 0; i < clv_array_bytes(&images); i++)
        ((uint8_t *)images.data)[i] = (uint8_t)(i * 37 >> 3);
    TRY(clv_dataset_from_arrays(runtime, &images, &labels, &(clv_dataset_config){.mean = 0.45f, .std = 0.22f},
                                &dataset));
    clv_loader_config config = {.batch = BATCH, .shuffle = true, .seed = 1};
    TRY(clv_graph_create(runtime, &graph));
#ifdef NUMBERS_ALONE // a build that feeds no bytes
    if (argc > 1) return fprintf(stderr, "this build feeds no bytes\n"), 2;
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, shape), *y = clv_relu(x);
#else
    config.bytes = argc > 1;
    clv_tensor *x = clv_input(graph, "x", config.bytes ? CLV_DTYPE_U8 : CLV_DTYPE_F32, shape);
    clv_tensor *y = clv_relu(config.bytes ? clv_nn_normalize(x, &(float){0.45f}, &(float){0.22f}, 1) : x);
#endif
    clv_output(clv_sum(y, NULL, 0, false), "sum");
    TRY(clv_plan_create(graph, &(clv_plan_config){.device = device}, &plan));
    TRY(clv_session_create(runtime, NULL, &session));
    TRY(clv_run_create(session, plan, &run));
    TRY(clv_loader_create(runtime, dataset, &config, &loader));
    double begin = 0, fed = 0;
    for (int step = -BATCHES; step < STEPS; step++) { // the first touch memory for the first time
        clv_batch batch;
        if (step == 0) begin = now(CLOCK_PROCESS_CPUTIME_ID), fed = 0;
        TRY(clv_loader_next(loader, &batch));
        const double before = now(CLOCK_THREAD_CPUTIME_ID);
        TRY(clv_run_feed(run, x, batch.samples, clv_tensor_bytes(x)));
        fed += now(CLOCK_THREAD_CPUTIME_ID) - before;
        clv_loader_release(loader, &batch);
        TRY(clv_run_step(run, NULL));
        TRY(clv_run_finish(run));
    }
    printf("%.2f %.2f %zu\n", (now(CLOCK_PROCESS_CPUTIME_ID) - begin) / STEPS, fed / STEPS,
           clv_tensor_bytes(x));
    clv_run_destroy(run), clv_session_destroy(session), clv_plan_destroy(plan), clv_graph_destroy(graph);
    clv_loader_destroy(loader), clv_dataset_destroy(dataset);
    clv_array_reset(&labels), clv_runtime_destroy(runtime);
    return 0;
}
