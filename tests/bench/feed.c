// SPDX-License-Identifier: Apache-2.0
// What a batch of 128 pictures of 224 x 224 (77 MB as numbers) costs the host before a device has it, in a training on a device that
// computes nothing. Prints milliseconds a step, of processor time and on the clock. For feed.sh.
#include <cleave/cleave.h>
#include <stdio.h>
#include <time.h>

#ifdef ARRAYS_HAD_TYPES // of a build before arrays had dtypes: arrays' own
#define CLV_DTYPE_U8 CLV_ARRAY_U8
#define CLV_DTYPE_I32 CLV_ARRAY_I32
#endif

enum { BATCH = 128, SIDE = 224, BATCHES = 2, FIRST = 6, STEPS = 30 };

static double now(clockid_t clock) {
    struct timespec at;
    clock_gettime(clock, &at);
    return 1e3 * (double)at.tv_sec + 1e-6 * (double)at.tv_nsec;
}

static clv_tensor *net(clv_tensor *x, const clv_model *model) {
    return clv_nn_linear(clv_mean(x, (int[]){2, 3}, 2, false), "fc", model->classes, NULL);
}

typedef struct times {
    double processor, clock;
} times;

/** The first steps touch memory for the first time. */
static bool on_step(void *user, const clv_train_step *at) {
    times *t = user;
    if (at->step != FIRST && at->step != STEPS) return true;
    const double sign = at->step == FIRST ? -1 : 1;
    t->processor += sign * now(CLOCK_PROCESS_CPUTIME_ID), t->clock += sign * now(CLOCK_MONOTONIC);
    return true;
}

#define TRY(call)                                                                                            \
    do {                                                                                                     \
        if ((call) != CLV_OK) return fprintf(stderr, "%s\n", clv_runtime_error(runtime)), 1;                 \
    } while (0)

int main(void) {
    const clv_shape all = CLV_SHAPE(BATCHES * BATCH, 3, SIDE, SIDE), rows = CLV_SHAPE(BATCHES * BATCH);
    const clv_model model = {.name = "net", .build = net, .input = {3, SIDE, SIDE}, .classes = 10};
    clv_runtime *runtime = NULL;
    clv_array images, labels;
    clv_dataset *dataset;
    clv_trainer *trainer;
    times t = {0};
    clv_train_config config = {
        .model = &model, .batch = BATCH, .steps = STEPS, .lr = 0.1, .on_step = on_step, .user = &t};
    TRY(clv_runtime_create(&(clv_runtime_config){.no_opencl = true, .null_devices = true}, &runtime));
    TRY(clv_device_find(runtime, "null:0", &config.device));
    TRY(clv_array_init(runtime, CLV_DTYPE_U8, &all, &images));
    TRY(clv_array_init(runtime, CLV_DTYPE_I32, &rows, &labels));
    for (size_t i = 0; i < clv_array_bytes(&images); i++)
        ((uint8_t *)images.data)[i] = (uint8_t)(i * 37 >> 3);
    TRY(clv_dataset_from_arrays(runtime, &images, &labels,
                                &(clv_dataset_config){.mean = 0.45f, .std = 0.22f, .classes = 10}, &dataset));
    config.train = dataset;
    TRY(clv_trainer_create(runtime, &config, &trainer));
    TRY(clv_trainer_run(trainer));
    printf("%.2f %.2f\n", t.processor / (STEPS - FIRST), t.clock / (STEPS - FIRST));
    clv_trainer_destroy(trainer), clv_dataset_destroy(dataset);
    clv_array_reset(&labels), clv_runtime_destroy(runtime);
    return 0;
}
