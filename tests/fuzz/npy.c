// SPDX-License-Identifier: Apache-2.0
// Any bytes as a .npy file: refused with a sentence, or an array no larger than the file accounts for. What is read goes
// on as a caller would take it: a model is made for its samples and computes them on the host; and it is learnt from as a dataset,
// with itself as targets.
#include "fuzz/fuzz.h"

#include "cleave/train.h"
#include "data/dataset.h"
#include "nn/models.h"

enum { MOST = 4096 }; // numbers of an array that is computed

static clv_runtime *runtime;

/** A model for the samples and its results: as many rows as there are samples, or a sentence. */
static void compute(const clv_array *array, const clv_model *model) {
    const clv_shape *shape = &array->shape, sample = clv_shape_make(shape->rank - 1, shape->dims + 1);
    clv_model sized;
    clv_predictor *predictor = NULL;
    clv_array result;
    if (shape->rank < 1 || shape->dims[0] > MOST) return;
    if (clv_model_for_samples(runtime, model, NULL, &sample, &sized) != CLV_OK) return;
    const clv_shape wants = clv__model_input_shape(&sized, 1);
    REQUIRE(clv_shape_numel(&wants) == clv_shape_numel(&sample));
    if (clv_shape_numel(&sample) > MOST) return;
    clv_device *host;
    REQUIRE(clv_device_find(runtime, "host", &host) == CLV_OK);
    const clv_predictor_config config = {.device = host, .model = &sized, .batch = 2};
    REQUIRE(clv_predictor_create(runtime, &config, &predictor) == CLV_OK);
    clv_status status = clv_predictor_forward_arrays(predictor, &array, &result);
    REQUIRE((status == CLV_OK) == (array->type == CLV_DTYPE_F32));
    if (status == CLV_OK) REQUIRE(result.shape.dims[0] == shape->dims[0]);
    clv_array_reset(&result);
    clv_predictor_destroy(predictor);
}

/** Each sample and target is read to buffers of their sizes. */
static void learn(clv_array *array) {
    clv_array borrowed = *array;
    clv_dataset *dataset;
    borrowed.borrowed = true;
    if (clv_dataset_from_arrays(runtime, &borrowed, array, NULL, &dataset) != CLV_OK) return;
    const clv_shape sample = clv_dataset_info_get(dataset).sample,
                    target = clv_dataset_info_get(dataset).target;
    REQUIRE(clv_shape_numel(&sample) > 0 && clv_shape_numel(&target) > 0);
    char *x = malloc((size_t)clv_shape_numel(&sample) * 4), *y = malloc((size_t)clv_shape_numel(&target) * 4);
    REQUIRE(x && y);
    clv__dataset_sample(dataset, clv_dataset_info_get(dataset).count - 1, x);
    clv__dataset_target(dataset, clv_dataset_info_get(dataset).count - 1, y);
    free(x);
    free(y);
    clv_dataset_destroy(dataset);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    clv__error error;
    clv__error_init(&error);
    clv__input input;
    clv_array array;
    clv__input_memory(&error, "x", data, size, &input);
    clv_status status = clv__npy_read(&input, &array);
    REQUIRE((status == CLV_OK) == (array.data != NULL));
    if (status != CLV_OK) require_sentence(&error, status);
    REQUIRE(clv_array_bytes(&array) <= 2 * size); // half becomes float
    if (!runtime) {
        const clv_runtime_config config = {.no_opencl = true};
        REQUIRE(clv_runtime_create(&config, &runtime) == CLV_OK);
    }
    if (status == CLV_OK) {
        compute(&array, clv_model_find("linear"));
        learn(&array);
    }
    clv_array_reset(&array);
    clv__error_destroy(&error);
    return 0;
}
