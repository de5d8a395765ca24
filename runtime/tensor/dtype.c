// SPDX-License-Identifier: Apache-2.0
#include "tensor/dtype.h"

#include <float.h>

#include "tensor/half.h"

static const clv__dtype_row rows[] = {
    [CLV_DTYPE_NONE] = {"NONE", "none", 0, 0, 0, "float"},
#define DTYPE(id, name, kind, type, least, most, kernels, safetensors, npy)                                  \
    [CLV_DTYPE_##id] = {#id, name, sizeof(type), (double)(least), (double)(most), kernels},
#include "tensor/dtypes.def"
};

const clv__dtype_row *clv__dtype(clv_dtype dtype) {
    return &rows[(size_t)dtype < sizeof rows / sizeof *rows ? dtype : CLV_DTYPE_NONE];
}

size_t clv_dtype_bytes(clv_dtype dtype) {
    return clv__dtype(dtype)->bytes;
}

const char *clv_dtype_name(clv_dtype dtype) {
    return clv__dtype(dtype)->name;
}

double clv__dtype_epsilon(clv_dtype dtype) {
    switch (dtype) {
    case CLV_DTYPE_F32: return (double)FLT_EPSILON;
    case CLV_DTYPE_F16: return 0x1p-10;
    case CLV_DTYPE_BF16: return 0x1p-7;
    default: return 0;
    }
}

double clv__dtype_smallest(clv_dtype dtype) {
    switch (dtype) {
    case CLV_DTYPE_F32:
    case CLV_DTYPE_BF16: return (double)FLT_MIN;
    case CLV_DTYPE_F16: return 0x1p-14;
    default: return 0;
    }
}

// By kind: an element as a double, as an integer, and a double as an element.
#define WIDEN_FLOAT(v) (double)(v)
#define WIDEN_F16(v) (double)clv__f16_to_float(v)
#define WIDEN_BF16(v) (double)clv__bf16_to_float(v)
#define WIDEN_WHOLE(v) (double)(v)
#define WIDEN_TRUTH(v) (v) != 0
#define WHOLE_FLOAT(v) 0
#define WHOLE_F16(v) 0
#define WHOLE_BF16(v) 0
#define WHOLE_WHOLE(v) (v)
#define WHOLE_TRUTH(v) (v) != 0
#define NARROW_FLOAT(type, v, least, most) (float)(v)
#define NARROW_F16(type, v, least, most) clv__f16_of_float((float)(v))
#define NARROW_BF16(type, v, least, most) clv__bf16_of_float((float)(v))
#define NARROW_WHOLE(type, v, least, most)                                                                   \
    (type)((v) >= (double)(most) ? (most) : (v) > (double)(least) ? (type)(v) : (v) == (v) ? (least) : 0)
#define NARROW_TRUTH(type, v, least, most) (v) != 0

void clv__elements_widen(clv_dtype dtype, const void *from, int64_t n, double *to) {
    switch (dtype) {
#define DTYPE(id, name, kind, type, least, most, kernels, safetensors, npy)                                  \
    case CLV_DTYPE_##id:                                                                                     \
        for (int64_t at = 0; at < n; at++) to[at] = WIDEN_##kind(((const type *)from)[at]);                  \
        break;
#include "tensor/dtypes.def"
    case CLV_DTYPE_NONE: break;
    }
}

void clv__elements_narrow(clv_dtype dtype, const double *from, int64_t n, void *to) {
    switch (dtype) {
#define DTYPE(id, name, kind, type, least, most, kernels, safetensors, npy)                                  \
    case CLV_DTYPE_##id:                                                                                     \
        for (int64_t at = 0; at < n; at++) ((type *)to)[at] = NARROW_##kind(type, from[at], least, most);    \
        break;
#include "tensor/dtypes.def"
    case CLV_DTYPE_NONE: break;
    }
}

int64_t clv__element_whole(clv_dtype dtype, const void *elements, int64_t i) {
    int64_t whole = 0;
    switch (dtype) {
#define DTYPE(id, name, kind, type, least, most, kernels, safetensors, npy)                                  \
    case CLV_DTYPE_##id:                                                                                     \
        whole = WHOLE_##kind(((const type *)elements)[i]);                                                   \
        break;
#include "tensor/dtypes.def"
    case CLV_DTYPE_NONE: break;
    }
    return whole;
}

double clv__dtype_nearest(clv_dtype dtype, double value) {
    uint64_t element = 0;
    clv__elements_narrow(dtype, &value, 1, &element);
    clv__elements_widen(dtype, &element, 1, &value);
    return value;
}
