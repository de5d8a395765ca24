// SPDX-License-Identifier: Apache-2.0
#include "onnx/known.h"

#include <string.h>

#include "tensor/half.h"

#define WIDEN(type)                                                                                          \
    for (int64_t i = 0; i < n; i++) {                                                                        \
        type one;                                                                                            \
        memcpy(&one, data->bytes + (size_t)(first + i) * sizeof one, sizeof one);                            \
        out[i] = (double)one;                                                                                \
    }                                                                                                        \
    return true

/** Two-byte floats. */
static bool widen_half(const clv__onnx_tensor *data, int64_t first, int64_t n, float (*float_of)(uint16_t),
                       double *out) {
    for (int64_t i = 0; i < n; i++) {
        uint16_t one;
        memcpy(&one, data->bytes + (size_t)(first + i) * sizeof one, sizeof one);
        out[i] = (double)float_of(one);
    }
    return true;
}

/** Elements of four bits, the first in the low ones. */
static bool widen_nibbles(const clv__onnx_tensor *data, int64_t first, int64_t n, bool is_signed,
                          double *out) {
    for (int64_t i = 0; i < n; i++) {
        const int one = data->bytes[(first + i) / 2] >> ((first + i) % 2 ? 4 : 0) & 15;
        out[i] = is_signed && one > 7 ? one - 16 : one;
    }
    return true;
}

bool clv__onnx_widen(const clv__onnx_tensor *data, int64_t first, int64_t n, double *out) {
    switch (data->dtype) {
    case CLV__ONNX_FLOAT: WIDEN(float);
    case CLV__ONNX_DOUBLE: WIDEN(double);
    case CLV__ONNX_UINT8: WIDEN(uint8_t);
    case CLV__ONNX_INT8: WIDEN(int8_t);
    case CLV__ONNX_UINT16: WIDEN(uint16_t);
    case CLV__ONNX_INT16: WIDEN(int16_t);
    case CLV__ONNX_INT32: WIDEN(int32_t);
    case CLV__ONNX_INT64: WIDEN(int64_t);
    case CLV__ONNX_UINT32: WIDEN(uint32_t);
    case CLV__ONNX_UINT64: WIDEN(uint64_t);
    case CLV__ONNX_BOOL: WIDEN(uint8_t);
    case CLV__ONNX_FLOAT16: return widen_half(data, first, n, clv__f16_to_float, out);
    case CLV__ONNX_BFLOAT16: return widen_half(data, first, n, clv__bf16_to_float, out);
    case CLV__ONNX_INT4: return widen_nibbles(data, first, n, true, out);
    case CLV__ONNX_UINT4: return widen_nibbles(data, first, n, false, out);
    default: return false;
    }
}

const clv__known *clv__known_of(clv__onnx_use *use, const clv__onnx_tensor *data, int64_t most) {
    clv_shape shape = {.rank = (int)data->rank};
    if (data->rank > CLV_MAX_RANK || data->numel > most) return NULL;
    for (int i = 0; i < shape.rank; i++) shape.dims[i] = data->dims[i];
    clv__known *known = clv__onnx_room_for(use, (int)data->dtype, shape);
    return known && clv__onnx_widen(data, 0, data->numel, known->v) ? known : NULL;
}
