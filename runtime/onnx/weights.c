// SPDX-License-Identifier: Apache-2.0
#include "onnx/weights.h"

#include <string.h>

#include "device/device.h"
#include "onnx/import.h"
#include "onnx/known.h"

bool clv__onnx_is_parameter(const clv__onnx_tensor *tensor) {
    return clv__onnx_is_float((int)tensor->dtype) && tensor->rank > 0;
}

bool clv__onnx_is_file(const char *path) {
    const size_t n = strlen(path);
    return n > 5 && !strcmp(path + n - 5, ".onnx");
}

/** A copy, as f32. */
static clv_status put(clv__error *error, clv_archive *archive, clv__onnx_text as,
                      const clv__onnx_tensor *tensor) {
    char name[512];
    clv_array *array;
    clv_shape shape = {.rank = (int)tensor->rank};
    if (as.n >= sizeof name || tensor->rank > CLV_MAX_RANK)
        CLV_FAIL(error, CLV_E_UNSUPPORTED, "an initializer of %zu dimensions whose name has %zu bytes",
                 tensor->rank, as.n);
    memcpy(name, as.data, as.n);
    name[as.n] = 0;
    for (int d = 0; d < shape.rank; d++) shape.dims[d] = tensor->dims[d];
    CLV_TRY(clv_archive_add(archive, name, CLV_DTYPE_F32, &shape, NULL, &array));
    if (tensor->dtype == CLV__ONNX_FLOAT) {
        memcpy(array->data, tensor->bytes, (size_t)tensor->numel * sizeof(float));
        return CLV_OK;
    }
    double some[256];
    for (int64_t at = 0; at < tensor->numel; at += 256) {
        const int64_t n = tensor->numel - at < 256 ? tensor->numel - at : 256;
        clv__onnx_widen(tensor, at, n, some);
        for (int64_t i = 0; i < n; i++) ((float *)array->data)[at + i] = (float)some[i];
    }
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
    while (node && node->n_inputs == 1 && clv__onnx_text_is(node->op_type, "Identity") &&
           node->input_values[0] != CLV__ONNX_NO_VALUE) {
        value = node->input_values[0];
        node = model->values[value].node;
    }
    return node ? NULL : model->values[value].initializer;
}

clv_status clv__onnx_weights_read(clv_session *session, const char *path, clv_archive **out) {
    clv_runtime *runtime = clv_session_info_get(session).runtime;
    clv__error *error = clv__runtime_error_of(runtime);
    clv__onnx_model *model = NULL;
    *out = NULL;
    clv_status status = clv__onnx_open(runtime, path, &model);
    if (status == CLV_OK) status = clv_archive_create(runtime, out);
    for (uint32_t i = 0; status == CLV_OK && i < model->n_values; i++) {
        const clv__onnx_tensor *tensor = initializer_of(model, i);
        if (tensor && clv__onnx_is_parameter(tensor) && holds(session, model->values[i].name))
            status = put(error, *out, model->values[i].name, tensor);
    }
    clv__onnx_close(model);
    if (status != CLV_OK) {
        clv_archive_destroy(*out);
        *out = NULL;
    }
    return status;
}
