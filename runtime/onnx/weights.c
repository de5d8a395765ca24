// SPDX-License-Identifier: Apache-2.0
#include "onnx/weights.h"

#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "io/array.h"
#include "onnx/import.h"
#include "onnx/known.h"

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

static clv__element element_of(const clv__onnx_tensor *tensor) {
    switch (tensor->dtype) {
    case CLV__ONNX_FLOAT16: return CLV__ELEMENT_F16;
    case CLV__ONNX_BFLOAT16: return CLV__ELEMENT_BF16;
    case CLV__ONNX_DOUBLE: return CLV__ELEMENT_F64;
    default: return CLV__ELEMENT_SAME;
    }
}

/** Its place in the file, under the name of the session's tensor. */
static clv_status add(clv__onnx_weights *weights, clv__error *error, clv__onnx_text as,
                      const clv__onnx_tensor *tensor) {
    char name[512];
    clv_shape shape;
    CLV_TRY(describe(error, as, tensor, name, sizeof name, &shape));
    CLV_TRY(clv_archive_add(weights->archive, name, CLV_DTYPE_F32, &shape, tensor->bytes, NULL));
    if (!clv__archive_store(weights->archive, element_of(tensor)))
        CLV_FAIL(error, CLV_E_HOST_MEMORY, "no memory for the names of weights");
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
    *weights = (clv__onnx_weights){0};
}
