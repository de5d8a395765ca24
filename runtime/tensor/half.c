// SPDX-License-Identifier: Apache-2.0
#include "tensor/half.h"

#include <float.h>
#include <string.h>

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

float clv__f16_to_float(uint16_t stored) {
    uint32_t sign = (uint32_t)(stored & 0x8000) << 16, exponent = (stored >> 10) & 31,
             fraction = stored & 0x3ff;
    if (exponent == 0) { // zero or subnormal: fraction * 2^-24
        float value = (float)fraction * 0x1p-24f;
        return sign ? -value : value;
    }
    return float_of(sign | (exponent == 31 ? 255u << 23 : (exponent + 112) << 23) | fraction << 13);
}

float clv__bf16_to_float(uint16_t stored) {
    return float_of((uint32_t)stored << 16);
}

uint16_t clv__f16_of_float(float value) {
    uint32_t bits = bits_of(value), sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
    if (size > 0x7f800000) return (uint16_t)(sign | 0x7e00);
    if (size >= 0x47800000) return (uint16_t)(sign | 0x7c00); // 65536 and more
    if (size < 0x38800000) {                                  // below 2^-14: a multiple of 2^-24
        float shifted = float_of(size) + 0.5f;
        return (uint16_t)(sign | (bits_of(shifted) - 0x3f000000));
    }
    return (uint16_t)(sign | (size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13);
}

uint16_t clv__bf16_of_float(float value) {
    uint32_t bits = bits_of(value);
    if ((bits & 0x7fffffff) > 0x7f800000) return (uint16_t)((bits | 0x00400000) >> 16);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
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

void clv__elements_widen(clv_dtype dtype, const void *from, int64_t n, double *to) {
    const float *f = from;
    const int32_t *i = from;
    const uint16_t *h = from;
    const uint8_t *u = from;
    for (int64_t at = 0; dtype == CLV_DTYPE_F32 && at < n; at++) to[at] = (double)f[at]; // most tensors
    for (int64_t at = 0; dtype != CLV_DTYPE_F32 && at < n; at++) {
        switch (dtype) {
        case CLV_DTYPE_I32: to[at] = (double)i[at]; break;
        case CLV_DTYPE_F16: to[at] = (double)clv__f16_to_float(h[at]); break;
        case CLV_DTYPE_BF16: to[at] = (double)clv__bf16_to_float(h[at]); break;
        case CLV_DTYPE_U8: to[at] = u[at]; break;
        case CLV_DTYPE_I64: to[at] = (double)((const int64_t *)from)[at]; break;
        default: to[at] = (double)f[at];
        }
    }
}

/** The nearest of a type's numbers; the least of a NaN. */
static double within(double value, double least, double most) {
    return value > most ? most : value > least ? value : least;
}

/** As convert_long_sat_rtz, for numbers. */
static int64_t whole(double value) {
    return value >= 0x1p63 ? INT64_MAX : value > -0x1p63 ? (int64_t)value : INT64_MIN;
}

void clv__elements_narrow(clv_dtype dtype, const double *from, int64_t n, void *to) {
    float *f = to;
    int32_t *i = to;
    uint16_t *h = to;
    uint8_t *u = to;
    for (int64_t at = 0; dtype == CLV_DTYPE_F32 && at < n; at++) f[at] = (float)from[at]; // most tensors
    for (int64_t at = 0; dtype != CLV_DTYPE_F32 && at < n; at++) {
        switch (dtype) {
        case CLV_DTYPE_I32: i[at] = (int32_t)from[at]; break;
        case CLV_DTYPE_F16: h[at] = clv__f16_of_float((float)from[at]); break;
        case CLV_DTYPE_BF16: h[at] = clv__bf16_of_float((float)from[at]); break;
        case CLV_DTYPE_U8: u[at] = (uint8_t)within(from[at], 0, UINT8_MAX); break;
        case CLV_DTYPE_I64: ((int64_t *)to)[at] = whole(from[at]); break;
        default: f[at] = (float)from[at];
        }
    }
}
