// SPDX-License-Identifier: Apache-2.0
#include "onnx/weights.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "device/device.h"
#include "onnx/import.h"
#include "onnx/known.h"
#include "tensor/half.h"

bool clv__onnx_is_parameter(const clv__onnx_tensor *tensor) {
    return clv__onnx_is_float((int)tensor->dtype) && tensor->rank > 0;
}

bool clv__onnx_is_file(const char *path) {
    const size_t n = strlen(path);
    return n > 5 && !strcmp(path + n - 5, ".onnx");
}

/** The shape of a tensor that an archive can have; its name as a text. */
static clv_status describe(clv__error *error, clv__onnx_text as, const clv__onnx_tensor *tensor, char *name,
                           size_t bytes, clv_shape *shape) {
    *shape = (clv_shape){.rank = (int)tensor->rank};
    if (as.n >= bytes || tensor->rank > CLV_MAX_RANK)
        CLV_FAIL(error, CLV_E_UNSUPPORTED, "an initializer of %zu dimensions whose name has %zu bytes",
                 tensor->rank, as.n);
    memcpy(name, as.data, as.n);
    name[as.n] = 0;
    for (int d = 0; d < shape->rank; d++) shape->dims[d] = tensor->dims[d];
    return CLV_OK;
}

/** Its place in the file, under the name of the session's tensor. */
static clv_status add(clv__onnx_weights *weights, clv__error *error, clv__onnx_text as,
                      const clv__onnx_tensor *tensor) {
    char name[512];
    clv_shape shape;
    const size_t n = clv_archive_count(weights->archive);
    CLV_TRY(describe(error, as, tensor, name, sizeof name, &shape));
    if (!clv__grow(&weights->tensors, &weights->room, n + 1, sizeof *weights->tensors))
        CLV_FAIL(error, CLV_E_HOST_MEMORY, "no memory for the names of weights");
    CLV_TRY(clv_archive_add(weights->archive, name, CLV_DTYPE_F32, &shape, tensor->bytes, NULL));
    weights->tensors[n] = tensor;
    return CLV_OK;
}

/** Halves by a table of all 65536 of their type: several times faster than one by one. */
static bool halves_as_f32(clv__onnx_weights *weights, const clv__onnx_tensor *tensor) {
    enum { HALVES = 1 << 16 };
    if (!weights->halves) weights->halves = clv__alloc(HALVES, sizeof(float));
    if (!weights->halves) return false;
    if (weights->halves_are != tensor->dtype)
        for (int i = 0; i < HALVES; i++)
            weights->halves[i] = tensor->dtype == CLV__ONNX_FLOAT16 ? clv__f16_to_float((uint16_t)i)
                                                                    : clv__bf16_to_float((uint16_t)i);
    weights->halves_are = tensor->dtype;
    for (int64_t i = 0; i < tensor->numel; i++) {
        uint16_t half;
        memcpy(&half, tensor->bytes + 2 * i, sizeof half);
        weights->numbers[i] = weights->halves[half];
    }
    return true;
}

static bool as_f32(clv__onnx_weights *weights, const clv__onnx_tensor *tensor) {
    double some[256];
    if (tensor->numel > weights->n_numbers) { // no more than the largest takes
        free(weights->numbers);
        weights->numbers = clv__alloc((size_t)tensor->numel, sizeof(float));
        weights->n_numbers = weights->numbers ? tensor->numel : 0;
        if (!weights->numbers) return false;
    }
    if (tensor->dtype != CLV__ONNX_DOUBLE) return halves_as_f32(weights, tensor);
    for (int64_t at = 0; at < tensor->numel; at += 256) {
        const int64_t n = tensor->numel - at < 256 ? tensor->numel - at : 256;
        clv__onnx_widen(tensor, at, n, some);
        for (int64_t i = 0; i < n; i++) weights->numbers[at + i] = (float)some[i];
    }
    return true;
}

clv_status clv__onnx_weights_data(void *of, const clv_array *array, const void **out) {
    clv__onnx_weights *weights = of;
    size_t i = 0;
    while (clv_archive_get(weights->archive, i) != array) i++;
    const clv__onnx_tensor *tensor = weights->tensors[i];
    *out = tensor->bytes;
    if (tensor->dtype == CLV__ONNX_FLOAT || !tensor->numel) return CLV_OK;
    if (!as_f32(weights, tensor))
        CLV_FAIL(weights->error, CLV_E_HOST_MEMORY, "no memory for the %lld numbers of '%s'",
                 (long long)tensor->numel, array->name);
    *out = weights->numbers;
    return CLV_OK;
}

/** Has a session a tensor of that name? Floats that say scales or ranges are none of its parameters. */
static bool holds(const clv_session *session, clv__onnx_text name) {
    for (int i = 0; i < clv_session_info_get(session).n_tensors; i++)
        if (clv__onnx_text_is(name, clv_session_get(session, i).name)) return true;
    return false;
}

/** A value's initializer; of an Identity of one, that one. */
static const clv__onnx_tensor *initializer_of(const clv__onnx_model *model, uint32_t value) {
    const clv__onnx_node *node = model->values[value].node;
    while (node && model->values[value].graph == &model->graph && node->n_inputs == 1 &&
           clv__onnx_text_is(node->op_type, "Identity") && node->input_values[0] != CLV__ONNX_NO_VALUE) {
        value = node->input_values[0];
        node = model->values[value].node;
    }
    return node ? NULL : model->values[value].initializer;
}

clv_status clv__onnx_weights_of(clv_session *session, const clv__onnx_model *model, clv__onnx_weights *out) {
    clv_runtime *runtime = clv_session_info_get(session).runtime;
    clv__error *error = clv__runtime_error_of(runtime);
    *out = (clv__onnx_weights){.error = error, .model = model};
    clv_status status = clv_archive_create(runtime, &out->archive);
    for (uint32_t i = 0; status == CLV_OK && i < model->n_values; i++) {
        const clv__onnx_tensor *tensor = initializer_of(model, i);
        if (tensor && clv__onnx_is_parameter(tensor) && holds(session, model->values[i].name))
            status = add(out, error, model->values[i].name, tensor);
    }
    if (status != CLV_OK) clv__onnx_weights_close(out);
    return status;
}

clv_status clv__onnx_weights_open(clv_session *session, const char *path, clv__onnx_weights *out) {
    clv__onnx_model *model;
    *out = (clv__onnx_weights){0};
    CLV_TRY(clv__onnx_open(clv_session_info_get(session).runtime, path, &model));
    const clv_status status = clv__onnx_weights_of(session, model, out);
    if (status == CLV_OK)
        out->opened = model;
    else
        clv__onnx_close(model);
    return status;
}

void clv__onnx_weights_close(clv__onnx_weights *weights) {
    clv_archive_destroy(weights->archive);
    clv__onnx_close(weights->opened);
    free(weights->tensors);
    free(weights->numbers);
    free(weights->halves);
    *weights = (clv__onnx_weights){0};
}
