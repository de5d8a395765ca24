// SPDX-License-Identifier: Apache-2.0
// What a node is given: as a tensor, or as numbers that are known.
#include <math.h>
#include <string.h>

#include "graph/graph.h"
#include "io/shown.h"
#include "onnx/import.h"
#include "onnx/known.h"

static clv_shape shape_of_data(const clv__made *value) {
    clv_shape shape = {.rank = (int)value->data->rank};
    for (int i = 0; i < shape.rank; i++) shape.dims[i] = value->data->dims[i];
    if (value->classes) shape.dims[value->class_axis] = value->classes;
    return shape;
}

/** An initializer of floats with a dimension, which is trained unless it is a buffer; one that is a number alone is a constant. */
static clv_tensor *persistent_of(clv__onnx_use *use, const clv__made *value, bool trained) {
    char name[512];
    if (value->name.n >= sizeof name) {
        clv__onnx_fail(use, CLV_E_VALUE, "the name of an initializer is longer than %zu bytes",
                       sizeof name - 1);
        return NULL;
    }
    memcpy(name, value->name.data, value->name.n);
    name[value->name.n] = 0;
    const clv__desc desc = {.dtype = CLV_DTYPE_F32, .shape = shape_of_data(value)};
    const int64_t rows = desc.shape.rank > 1 ? desc.shape.dims[0] : 0,
                  fan_in = rows > 0 ? clv_shape_numel(&desc.shape) / rows : 0;
    const float bound =
        fan_in > 0 ? 1 / sqrtf((float)fan_in) : 0; // as of PyTorch's layers, until weights are loaded
    const clv_init init = {.kind = fan_in > 0 ? CLV_INIT_UNIFORM : CLV_INIT_ZEROS, .a = -bound, .b = bound};
    return clv__persistent(use->graph, name, desc, init, CLV_PARAMETERS, trained);
}

bool clv__onnx_stays_small(const clv__made *value) {
    enum { FEW = 4096 };
    const clv__onnx_tensor *data = value ? value->data : NULL;
    return data && (data->dtype == CLV__ONNX_UINT8 || data->dtype == CLV__ONNX_INT8) && data->rank > 0 &&
           data->rank <= CLV_MAX_RANK && data->numel >= FEW;
}

bool clv__onnx_may_look(const clv__made *value) {
    const bool parameter = value && value->data && clv__onnx_is_float(value->type) && value->data->rank > 0;
    return !parameter && !clv__onnx_stays_small(value);
}

/** Made wider where it is read. */
static clv_tensor *small_as(clv__onnx_use *use, const clv__made *value, clv_dtype dtype) {
    const clv_dtype own = value->data->dtype == CLV__ONNX_UINT8 ? CLV_DTYPE_U8 : CLV_DTYPE_I8;
    return clv_cast(clv_constant(use->graph, own, shape_of_data(value), value->data->bytes), dtype);
}

clv_tensor *clv__onnx_tensor_of(clv__onnx_use *use, clv__made *value) {
    if (value->tensor || clv__onnx_failed(use)) return value->tensor;
    if (clv__onnx_stays_small(value)) return small_as(use, value, CLV_DTYPE_I32);
    if (value->same_as) return value->tensor = clv__onnx_tensor_of(use, value->same_as);
    const bool parameter = value->data && clv__onnx_is_float(value->type) && value->data->rank > 0;
    if (parameter) return value->tensor = persistent_of(use, value, !value->buffer);
    if (!value->known && value->data) value->known = clv__known_of(use, value->data, INT64_MAX);
    if (value->known) value->tensor = clv__onnx_constant(use, value->known);
    return value->tensor;
}

clv_tensor *clv__onnx_in(clv__onnx_use *use, int i) {
    return clv__onnx_has(use, i) ? clv__onnx_tensor_of(use, use->in[i]) : NULL;
}

clv_tensor *clv__onnx_buffer(clv__onnx_use *use, int i) {
    clv__made *value = clv__onnx_has(use, i) ? use->in[i] : NULL;
    if (value && value->data && value->data->rank && clv__onnx_is_float(value->type) && !value->tensor)
        value->tensor = persistent_of(use, value, false);
    return value ? clv__onnx_tensor_of(use, value) : NULL;
}

clv_tensor *clv__onnx_float(clv__onnx_use *use, int i) {
    if (clv__onnx_has(use, i) && clv__onnx_stays_small(use->in[i]) && !clv__onnx_failed(use))
        return small_as(use, use->in[i], CLV_DTYPE_F32);
    return clv__onnx_as_float(clv__onnx_in(use, i));
}

clv_tensor *clv__onnx_i32(clv__onnx_use *use, int i) {
    return clv__onnx_as_i32(clv__onnx_in(use, i));
}

const clv__known *clv__onnx_if_known(clv__onnx_use *use, int i) {
    clv__made *value = clv__onnx_has(use, i) ? use->in[i] : NULL;
    if (value && !value->known && value->data)
        value->known = clv__known_of(use, value->data, CLV__MOST_KNOWN);
    return value ? value->known : NULL;
}

const clv__known *clv__onnx_known(clv__onnx_use *use, int i) {
    const clv__known *known = clv__onnx_if_known(use, i);
    clv__shown_text shown;
    if (!known && clv__onnx_has(use, i))
        clv__onnx_fail(
            use, CLV_E_UNSUPPORTED,
            "'%s' depends on the values that are fed; a graph has fixed shapes, so it must be known",
            clv__shown_bytes(use->in[i]->name.data, use->in[i]->name.n, &shown));
    else if (!known)
        clv__onnx_fail(use, CLV_E_VALUE, "input %d is left out", i);
    return known;
}

double clv__onnx_number(clv__onnx_use *use, int i, double fallback) {
    if (!clv__onnx_has(use, i)) return fallback;
    const clv__known *known = clv__onnx_known(use, i);
    if (!known) return fallback;
    if (clv_shape_numel(&known->shape) != 1) {
        clv__onnx_fail(use, CLV_E_SHAPE, "input %d must be one number", i);
        return fallback;
    }
    return known->v[0];
}

int clv__onnx_numbers(clv__onnx_use *use, int i, int64_t *out, int most) {
    const clv__known *known = clv__onnx_known(use, i);
    if (!known) return -1;
    const int64_t n = clv_shape_numel(&known->shape);
    if (known->shape.rank > 1 || n > most) {
        clv__onnx_fail(use, CLV_E_SHAPE, "input %d must be a list of at most %d numbers", i, most);
        return -1;
    }
    for (int64_t k = 0; k < n; k++) out[k] = clv__onnx_whole(known->v[k]);
    return (int)n;
}

clv_shape clv__onnx_shape(clv__onnx_use *use, int i) {
    const clv__made *value = clv__onnx_has(use, i) ? use->in[i] : NULL;
    if (value && value->known) return value->known->shape;
    if (value && value->data) return shape_of_data(value);
    return value && value->tensor ? clv_tensor_shape(value->tensor) : (clv_shape){0};
}
