// SPDX-License-Identifier: Apache-2.0
// Fashion-MNIST from its four IDX files.
// Source: Xiao, Rasul, Vollgraf 2017, arXiv:1708.07747. Mean and std are those of the 60,000 training images.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "data/dataset.h"
#include "io/array.h"
#include "io/formats.h"

#define PACKAGE "dataset-fashion-mnist"
#define PACKAGE_FOLDER "/usr/share/datasets/fashion-mnist"

static const struct {
    const char *images, *labels;
} files[] = {
    [CLV_SPLIT_TRAIN] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte"},
    [CLV_SPLIT_TEST] = {"t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"},
};

/** The file in one of the places where it may stand, newly allocated; *out NULL if it is in none of them. */
static clv_status find_file(clv__error *error, const char *folder, const char *name, char **out) {
    static const struct {
        const char *folder, *ending;
    } places[] = {{"", ".gz"}, {"", ""}, {"fashion-mnist/", ".gz"}, {"fashion-mnist/", ""}};
    *out = NULL;
    size_t bytes = strlen(folder) + strlen(name) + 32;
    char *path = clv__alloc(bytes, 1);
    if (!path) CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for the name of a file");
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(path, bytes, "%s/%s%s%s", folder, places[i].folder, name, places[i].ending);
        if (access(path, F_OK) == 0) {
            *out = path;
            return CLV_OK;
        }
    }
    free(path);
    return CLV_OK;
}

static clv_status read_file(clv_runtime *runtime, const char *folder, const char *name, clv_array *array) {
    clv__error *error = clv__io_error(runtime);
    char *path;
    CLV_TRY(find_file(error, folder, name, &path));
    if (!path) {
        CLV_FAIL(error, CLV_E_IO,
                 "Fashion-MNIST is not in '%s': there is no file '%s.gz'. Install the package " PACKAGE
                 " (apt-get install " PACKAGE
                 "), or name the folder that has it: `folder` of clv_dataset_fashion_mnist, or the variable "
                 "CLEAVE_DATA_DIR",
                 folder, name);
    }
    clv_status status = clv__idx_read_file(runtime, path, array);
    free(path);
    return status;
}

// Xiao, Rasul, Vollgraf 2017, table 2
enum { N_CLASSES = 10 };
static const char *const class_names[N_CLASSES] = {
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"};

static clv_status check_images(clv__error *error, const char *folder, const char *name,
                               const clv_array *images) {
    char text[128];
    const clv_shape *shape = &images->shape;
    if (images->type != CLV_DTYPE_U8 || shape->rank != 3 || shape->dims[1] != 28 || shape->dims[2] != 28) {
        CLV_FAIL(error, CLV_E_FORMAT, "'%s' in '%s' holds %s of %s; Fashion-MNIST has [N,28,28] of u8", name,
                 folder, clv_shape_text(shape, text, sizeof text), clv_dtype_name(images->type));
    }
    return CLV_OK;
}

clv_status clv_dataset_fashion_mnist(clv_runtime *runtime, const char *folder, clv_split split,
                                     const clv_dataset_config *config, clv_dataset **out) {
    CLV_TRY(CLV__GIVEN(clv__io_error(runtime), out));
    *out = NULL;
    clv__error *error = clv__io_error(runtime);
    if (split != CLV_SPLIT_TRAIN && split != CLV_SPLIT_TEST) {
        CLV_FAIL(error, CLV_E_VALUE, "Fashion-MNIST has the splits train and test, not number %d",
                 (int)split);
    }
    if (!folder) folder = getenv("CLEAVE_DATA_DIR");
    if (!folder || !*folder) folder = PACKAGE_FOLDER;
    clv_array images = {0}, labels = {0};
    clv_status status = read_file(runtime, folder, files[split].labels, &labels);
    if (status == CLV_OK) status = read_file(runtime, folder, files[split].images, &images);
    if (status == CLV_OK) status = check_images(error, folder, files[split].images, &images);
    if (status == CLV_OK) {
        images.shape = CLV_SHAPE(images.shape.dims[0], 1, 28, 28); // a channel, as models want it
        clv__dataset_defaults defaults = {.mean = 0.2860f,
                                          .std = 0.3530f,
                                          .classes = N_CLASSES,
                                          .images = files[split].images,
                                          .labels = files[split].labels};
        status = clv__dataset_create(error, &images, &labels, config, &defaults, out);
        if (status != CLV_OK) clv__error_prefix(error, "'%s': ", folder);
    }
    if (status == CLV_OK && (*out)->classes == N_CLASSES) {
        (*out)->names = class_names;
        (*out)->n_names = N_CLASSES;
    }
    clv_array_reset(&images);
    clv_array_reset(&labels);
    return status;
}
