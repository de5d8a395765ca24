// SPDX-License-Identifier: Apache-2.0
#include "onnx/file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "io/formats.h"
#include "onnx/reader.h"

static clv_status check_opsets(const clv__onnx_reader *r, const clv__onnx_opset *opsets, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const int64_t version = opsets[i].version;
        if (opsets[i].domain.n || (version >= CLV__ONNX_OLDEST_OPSET && version <= CLV__ONNX_NEWEST_OPSET))
            continue;
        CLV_FAIL(r->error, CLV_E_UNSUPPORTED,
                 "it is of opset %" PRId64
                 ", and %d to %d are read; onnx.version_converter.convert_version(model, "
                 "%d) makes one of it",
                 version, CLV__ONNX_OLDEST_OPSET, CLV__ONNX_NEWEST_OPSET, CLV__ONNX_NEWEST_OPSET);
    }
    return CLV_OK;
}

static clv_status read_all(clv__onnx_reader *r) {
    clv__onnx_model *model = r->model;
    CLV_TRY(clv__onnx_decode_model(r));
    CLV_TRY(check_opsets(r, model->opsets, model->n_opsets));
    for (size_t i = 0; i < model->n_functions; i++)
        CLV_TRY(check_opsets(r, model->functions[i].opsets, model->functions[i].n_opsets));
    CLV_TRY(clv__onnx_expand(r));
    return clv__onnx_resolve(r);
}

/** A model without anything. */
static clv_status begin(clv__error *error, const char *path, clv__onnx_model **out) {
    clv__onnx_model *model = clv__alloc(1, sizeof *model);
    if (model) model->memory = clv__alloc(1, sizeof *model->memory);
    if (model && model->memory) model->path = clv__arena_strdup(&model->memory->arena, path);
    *out = model;
    if (model && model->path) return CLV_OK;
    clv__onnx_close(model);
    *out = NULL;
    CLV_FAIL(error, CLV_E_HOST_MEMORY, "'%s': no host memory to decode it", path);
}

/** Bytes into the model, which goes if it cannot be. */
static clv_status read_bytes(clv__error *error, clv__onnx_model *model, const void *bytes, size_t n,
                             bool has_folder, clv__onnx_model **out) {
    clv__input input;
    clv__input_memory(error, model->path, bytes, n, &input);
    clv_status status = clv__foreign_check(&input, CLV__WANT_MODEL);
    if (status == CLV_OK) {
        clv__onnx_reader r = {
            .error = error, .model = model, .bytes = bytes, .n = n, .has_folder = has_folder};
        status = read_all(&r);
        if (status != CLV_OK) clv__error_prefix(error, "'%s': ", model->path);
        free(r.folder);
    }
    if (status == CLV_OK)
        *out = model;
    else
        clv__onnx_close(model);
    return status;
}

clv_status clv__onnx_open_bytes(clv__error *error, const char *path, const void *bytes, size_t n,
                                clv__onnx_model **out) {
    clv__onnx_model *model;
    *out = NULL;
    CLV_TRY(begin(error, path, &model));
    return read_bytes(error, model, bytes, n, false, out);
}

clv_status clv__onnx_open(clv_runtime *runtime, const char *path, clv__onnx_model **out) {
    clv__error *error = clv__io_error(runtime);
    clv__onnx_model *model;
    *out = NULL;
    CLV_TRY(CLV__GIVEN(error, path));
    CLV_TRY(begin(error, path, &model));
    clv__onnx_mapping *file = &model->memory->file;
    clv_status status = clv__onnx_map(error, path, file);
    if (status == CLV_OK) return read_bytes(error, model, file->bytes, file->n, true, out);
    clv__onnx_close(model);
    return status;
}
