// SPDX-License-Identifier: Apache-2.0
// The training that tests have in common: samples of [1,4,6] or any other size, two models for them, settings, and what a session keeps
// read as one row of numbers. A training takes a moment.
#ifndef CLV_TESTS_TRAIN_SMALL_H
#define CLV_TESTS_TRAIN_SMALL_H

#include "cleave/data.h"
#include "cleave/train.h"
#include "harness/harness.h"

enum { SMALL_MOST = 256, SMALL_NUMEL = 4 * 6, SMALL_LARGEST = 12 * 12, SMALL_CLASSES = 3 };

/** n samples of [1,height,width], whose labels can be learnt; the caller's. Not more than SMALL_MOST of SMALL_LARGEST numbers. */
static inline clv_dataset *small_samples(clv_runtime *runtime, int64_t n, int64_t height, int64_t width,
                                         int classes) {
    static float images[SMALL_MOST * SMALL_LARGEST];
    static int32_t labels[SMALL_MOST];
    const int numel = (int)(height * width);
    clv_dataset *dataset = NULL;
    assert_in_range(n, 1, SMALL_MOST);
    assert_in_range(numel, 1, SMALL_LARGEST);
    for (int i = 0; i < SMALL_MOST; i++) {
        labels[i] = i % classes;
        for (int j = 0; j < numel; j++)
            images[i * numel + j] = (float)((i * 7 + j * (1 + i % classes)) % 31) / 15 - 1;
    }
    clv_array x = {
        .type = CLV_DTYPE_F32, .shape = CLV_SHAPE(n, 1, height, width), .data = images, .borrowed = true};
    clv_array y = {.type = CLV_DTYPE_I32, .shape = CLV_SHAPE(n), .data = labels, .borrowed = true};
    assert_status(clv_dataset_from_arrays(runtime, &x, &y, NULL, &dataset), CLV_OK, runtime);
    return dataset;
}

/** n samples for the models below. */
static inline clv_dataset *small_dataset(clv_runtime *runtime, int64_t n) {
    return small_samples(runtime, n, 4, 6, SMALL_CLASSES);
}

static inline clv_tensor *small_build(clv_tensor *x, const clv_model *model) {
    x = clv_nn_conv2d(x, "conv", 3, &(clv_nn_conv2d_config){.kernel = {2, 3}});
    x = clv_relu(clv_nn_batch_norm(x, "norm", NULL));
    return clv_nn_linear(clv_dropout(clv_flatten(x, 1), 0.2f), "fc", model->classes, NULL);
}

static inline clv_tensor *small_build_plain(clv_tensor *x, const clv_model *model) {
    x = clv_relu(clv_nn_conv2d(x, "conv", 3, &(clv_nn_conv2d_config){.kernel = {2, 3}}));
    return clv_nn_linear(clv_flatten(x, 1), "fc", model->classes, NULL);
}

/** With statistics of the batch, and random numbers. */
static const clv_model small_model = {
    .name = "small", .build = small_build, .input = {1, 4, 6}, .classes = SMALL_CLASSES};
/** Without: a batch may be cut in any way. */
static const clv_model small_plain = {
    .name = "small", .build = small_build_plain, .input = {1, 4, 6}, .classes = SMALL_CLASSES};

/** Trained and tested on the same samples; what a test asks for comes on top. */
static inline clv_train_config small_config(const clv_model *model, const clv_dataset *dataset, int64_t batch,
                                            int64_t epochs) {
    return (clv_train_config){.model = model,
                              .train = dataset,
                              .test = dataset,
                              .batch = batch,
                              .epochs = epochs,
                              .seed = 3,
                              .optimizer = {.kind = CLV_SGD, .momentum = 0.9f},
                              .lr = 0.05};
}

/** Train to the end, and see that every device held what was predicted. */
static inline void small_run(clv_runtime *runtime, clv_trainer *trainer) {
    for (int i = 0; i < clv_trainer_info_get(trainer).n_devices; i++)
        clv_device_memory_reset_peak(clv_trainer_info_get(trainer).devices[i]);
    assert_status(clv_trainer_run(trainer), CLV_OK, runtime);
    for (int i = 0; i < clv_trainer_info_get(trainer).n_devices; i++) {
        clv_device *device = clv_trainer_info_get(trainer).devices[i];
        assert_int_equal(clv_device_memory(device).all.peak,
                         clv_trainer_device_info_get(trainer, device).memory.predicted_peak_bytes);
    }
}

/** A training that was run to its end so. */
static inline clv_trainer *small_trained(clv_runtime *runtime, const clv_train_config *config) {
    clv_trainer *trainer = clv__test_trainer(runtime, config);
    small_run(runtime, trainer);
    return trainer;
}

/** All that a session keeps, in its order; *n: how many numbers, `most` at most. */
static inline clv_status small_read(clv_session *session, float *out, int most, int *n) {
    *n = 0;
    for (int i = 0; i < clv_session_info_get(session).n_tensors; i++) {
        const size_t bytes = clv_session_get(session, i).bytes;
        if (*n + (int)(bytes / sizeof(float)) > most) return CLV_E_INTERNAL;
        clv_status status = clv_session_read(session, i, out + *n, bytes);
        if (status != CLV_OK) return status;
        *n += (int)(bytes / sizeof(float));
    }
    return CLV_OK;
}

#endif
