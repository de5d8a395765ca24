// SPDX-License-Identifier: Apache-2.0
#include "tensor/half.h"

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
