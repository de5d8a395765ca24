// SPDX-License-Identifier: Apache-2.0
// Trainings that PyTorch made first (tests/golden/make_finetune.py, make_groups.py, make_heads.py): the model that the first two have in
// common, their samples, and first weights as a file of their own.
#ifndef CLV_TESTS_TRAIN_PYTORCH_H
#define CLV_TESTS_TRAIN_PYTORCH_H

#include "cleave/train.h"
#include "harness/harness.h"

static inline clv_tensor *pytorch_build(clv_tensor *x, const clv_model *model) {
    x = clv_nn_conv2d(x, "conv1", 3,
                      &(clv_nn_conv2d_config){.kernel = {2, 3}, .padding = {1, -1}, .no_bias = true});
    x = clv_relu(clv_nn_batch_norm(x, "norm", NULL));
    return clv_nn_linear(clv_flatten(x, 1), "fc", model->classes, NULL);
}

/** Read a golden file: its arrays, the caller's; its first weights (`before/`) go to the file `before`. */
static inline void pytorch_read_arrays(clv_runtime *runtime, const char *path, const char *before,
                                       clv_archive **golden) {
    assert_status(clv_safetensors_read(runtime, path, golden), CLV_OK, runtime);
    clv_archive *first = clv__test_archive(runtime);
    for (size_t i = 0; clv_archive_get(*golden, i); i++) {
        const clv_array *array = clv_archive_get(*golden, i);
        if (strncmp(array->name, "before/", 7)) continue;
        clv_status status =
            clv_archive_add(first, array->name + 7, array->type, &array->shape, array->data, NULL);
        assert_status(status, CLV_OK, runtime);
    }
    assert_status(clv_safetensors_write(first, before), CLV_OK, runtime);
    clv_archive_destroy(first);
}

/** The same and its samples, the caller's. */
static inline void pytorch_read(clv_runtime *runtime, const char *path, const char *before,
                                clv_archive **golden, clv_dataset **dataset) {
    pytorch_read_arrays(runtime, path, before, golden);
    clv_array images = *clv_archive_find(*golden, "images");
    images.borrowed = true;
    const clv_array *labels = clv_archive_find(*golden, "labels");
    assert_status(clv_dataset_from_arrays(runtime, &images, labels, NULL, dataset), CLV_OK, runtime);
}

#endif
