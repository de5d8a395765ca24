// SPDX-License-Identifier: Apache-2.0
#include "io/array.h"

#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "tensor/half.h"

size_t clv__array_dtype_bytes(clv_dtype type) {
    return clv__is_half(type) ? 0 : clv_dtype_bytes(type);
}

clv__error *clv__io_error(clv_runtime *runtime) {
    return runtime ? clv__runtime_error_of(runtime) : NULL;
}

bool clv__shape_bytes(const clv_shape *shape, size_t element_bytes, size_t *out) {
    const int64_t numel = clv_shape_numel(
        shape); // bounded whatever zeros are in it: no shape is legal in one order and not in another
    return numel >= 0 && clv__size_mul((size_t)numel, element_bytes, out) && *out <= PTRDIFF_MAX;
}

clv_status clv__array_init(clv__error *error, clv_dtype type, const clv_shape *shape, clv_array *array) {
    *array = (clv_array){0};
    char text[128];
    if (clv__array_dtype_bytes(type) == 0) {
        CLV_FAIL(error, CLV_E_VALUE, "an array's element type cannot be %s", clv_dtype_name(type));
    }
    size_t bytes;
    if (!clv__shape_bytes(shape, clv__array_dtype_bytes(type), &bytes)) {
        CLV_FAIL(error, CLV_E_SHAPE,
                 "an array cannot have the shape %s: a dimension is negative or it is too large",
                 clv_shape_text(shape, text, sizeof text));
    }
    void *data = clv__alloc(bytes, 1);
    if (!data) {
        CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for an array of %zu bytes (%s %s)", bytes,
                 clv_dtype_name(type), clv_shape_text(shape, text, sizeof text));
    }
    *array = (clv_array){.type = type, .shape = *shape, .data = data};
    return CLV_OK;
}

clv_status clv_array_init(clv_runtime *runtime, clv_dtype type, const clv_shape *shape, clv_array *array) {
    CLV_TRY(CLV__GIVEN(clv__io_error(runtime), array));
    CLV_TRY(CLV__GIVEN(clv__io_error(runtime), shape));
    return clv__array_init(clv__io_error(runtime), type, shape, array);
}

void clv_array_reset(clv_array *array) {
    if (!array) return;
    if (!array->borrowed) free(array->data);
    free(array->name);
    *array = (clv_array){0};
}

size_t clv_array_bytes(const clv_array *array) {
    size_t bytes;
    return clv__shape_bytes(&array->shape, clv__array_dtype_bytes(array->type), &bytes) ? bytes : 0;
}

size_t clv__element_bytes(clv__element element, clv_dtype type) {
    switch (element) {
    case CLV__ELEMENT_F16: return 2;
    case CLV__ELEMENT_BF16: return 2;
    case CLV__ELEMENT_F64: return 8;
    default: return clv__array_dtype_bytes(type);
    }
}

void clv__element_convert(clv__element element, const void *from, size_t n, float *to) {
    const char *bytes = from; // perhaps not aligned
    for (size_t i = 0; i < n; i++) {
        if (element == CLV__ELEMENT_F64) {
            double value;
            memcpy(&value, bytes + i * sizeof value, sizeof value);
            to[i] = (float)value;
            continue;
        }
        uint16_t value;
        memcpy(&value, bytes + i * sizeof value, sizeof value);
        to[i] = element == CLV__ELEMENT_F16 ? clv__f16_to_float(value) : clv__bf16_to_float(value);
    }
}
