// SPDX-License-Identifier: Apache-2.0
// Bits of whole numbers; shifts by sums and comparisons alone, so that nothing overflows. Integers are i32 here; those of 64 bits have the
// lower 32. Source: BitShift and the Bitwise operators of ONNX 1.23.
#include "onnx/import.h"

/** A number's bits of an integer type, and whether the last is a sign. */
typedef struct width {
    int bits;
    bool is_signed;
} width;

static width width_of(clv__onnx_use *use) {
    switch (use->n_in && use->in[0] ? use->in[0]->type : 0) {
    case CLV__ONNX_UINT8: return (width){8, false};
    case CLV__ONNX_INT8: return (width){8, true};
    case CLV__ONNX_UINT16: return (width){16, false};
    case CLV__ONNX_INT16: return (width){16, true};
    case CLV__ONNX_INT32:
    case CLV__ONNX_INT64: return (width){32, true};
    default: clv__onnx_fail(use, CLV_E_UNSUPPORTED, "bits of this type"); return (width){0};
    }
}

/** In two halves, for -2^31 is no value of clv_full. */
static clv_tensor *times(clv__onnx_use *use, clv_tensor *x, double value) {
    clv_tensor *half = value < -1 ? clv__onnx_with(use, clv_mul, x, value / 2) : NULL;
    return half ? clv_add(half, half) : clv__onnx_with(use, clv_mul, x, value);
}

/** The bits from the highest, which is a sign's where there is one, to the lowest; 0 or 1. */
static void bits_of(clv__onnx_use *use, width w, clv_tensor *x, clv_tensor *out[32]) {
    for (int i = w.bits - 1; i >= 0; i--) {
        const double value = (double)(1ll << i);
        const bool sign = w.is_signed && i == w.bits - 1;
        out[i] = sign ? clv__onnx_with(use, clv_lt, x, 0) : clv__onnx_with(use, clv_ge, x, value);
        x = clv_sub(x, times(use, out[i], sign ? -value : value));
    }
}

static void build_bitwise(clv__onnx_use *use) {
    clv_tensor *in[] = {clv__onnx_in(use, 0), clv__onnx_in(use, 1)};
    width_of(use);
    if (!clv__onnx_failed(use)) clv__onnx_give(use, 0, clv_op_call(NULL, use->row->ours, in, 2, NULL, 0));
}

static void build_not(clv__onnx_use *use) {
    const width w = width_of(use);
    const double all = w.is_signed ? -1 : (double)(1ll << w.bits) - 1;
    clv__onnx_give(use, 0, clv_sub(clv__onnx_scalar(use, all, false), clv__onnx_in(use, 0)));
}

/** Twice x, without what goes past the highest bit. */
static clv_tensor *doubled(clv__onnx_use *use, width w, clv_tensor *x) {
    const double quarter = (double)(1ll << (w.bits - 2));
    clv_tensor *past = clv__onnx_with(use, clv_ge, x, w.is_signed ? quarter : 2 * quarter);
    if (w.is_signed) past = clv_sub(past, clv__onnx_with(use, clv_lt, x, -quarter));
    past = times(use, past, quarter);
    x = clv_sub(clv_sub(x, past), past);
    return clv_add(x, x);
}

/** Each amount that may be is tried; one that is outside of the bits leaves the sign, or nothing. */
static void build_shift(clv__onnx_use *use) {
    const width w = width_of(use);
    clv_tensor *x = clv__onnx_in(use, 0), *by = clv__onnx_in(use, 1), *bits[32] = {NULL};
    if (clv__onnx_failed(use)) return;
    if (clv__onnx_word(use, "direction", "LEFT", false)) {
        clv_tensor *y = clv_mul(clv_add(x, by), clv__onnx_scalar(use, 0, false));
        for (int s = 0; s < w.bits; s++) {
            y = clv_where(clv__onnx_with(use, clv_eq, by, s), x, y);
            x = doubled(use, w, x);
        }
        clv__onnx_give(use, 0, y);
        return;
    }
    bits_of(use, w, x, bits);
    clv_tensor *left = w.is_signed ? clv_neg(bits[w.bits - 1]) : times(use, x, 0), *y = left;
    for (int s = w.bits - 1; s >= 0; s--) {
        if (!w.is_signed || s < w.bits - 1) left = clv_add(clv_add(left, left), bits[s]);
        y = clv_where(clv__onnx_with(use, clv_eq, by, s), left, y);
    }
    clv__onnx_give(use, 0, y);
}

const clv__onnx_row clv__onnx_bits[] = {
    {"BitShift", .build = build_shift},
    {"BitwiseAnd", build_bitwise, .ours = "bitwise_and"},
    {"BitwiseNot", .build = build_not},
    {"BitwiseOr", build_bitwise, .ours = "bitwise_or"},
    {"BitwiseXor", build_bitwise, .ours = "bitwise_xor"},
    {0},
};
