// SPDX-License-Identifier: Apache-2.0
// Quantised numbers: integers of a few bits that stand for floats, q = round(x / scale) + zero point.
// Computed in f32, in which sums of
// products are exact up to 2^24. Source: the operators of ONNX 1.23.
#include <math.h>

#include "onnx/import.h"

/** The ends of an integer type's range; false: it is none that is known. */
static bool range_of(int type, double *low, double *high) {
    static const struct {
        int type;
        double low, high;
    } ranges[] = {{CLV__ONNX_UINT8, 0, 255},        {CLV__ONNX_INT8, -128, 127}, {CLV__ONNX_UINT16, 0, 65535},
                  {CLV__ONNX_INT16, -32768, 32767}, {CLV__ONNX_UINT4, 0, 15},    {CLV__ONNX_INT4, -8, 7},
                  {CLV__ONNX_UINT2, 0, 3},          {CLV__ONNX_INT2, -2, 1}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (ranges[i].type == type) {
            *low = ranges[i].low, *high = ranges[i].high;
            return true;
        }
    return false;
}

/** round(x) + zero, held to the type's range; NULL zero: 0. */
static clv_tensor *quantised(clv__onnx_use *use, clv_tensor *x, clv_tensor *zero, int type) {
    double low, high;
    if (!range_of(type, &low, &high)) {
        clv__onnx_fail(use, CLV_E_UNSUPPORTED, "numbers quantised to %s",
                       clv__onnx_dtype_name((clv__onnx_dtype)type));
        return NULL;
    }
    x = clv_round(x);
    if (zero) x = clv_add(x, zero);
    return clv__onnx_as_i32(clv_clamp(x, (float)low, (float)high));
}

static int type_of(const clv__onnx_use *use, int i, int fallback) {
    return i < use->n_in && use->in[i] ? use->in[i]->type : fallback;
}

/** A scale, which is not trained, or a zero point. */
static clv_tensor *setting(clv__onnx_use *use, int i) {
    return clv__onnx_as_float(clv__onnx_buffer(use, i));
}

/** A scale or zero point for x: one, one along an axis, or one for each block along it. NULL: it is left
 *  out. */
static clv_tensor *for_each(clv__onnx_use *use, int i, const clv_shape *x) {
    const clv_shape own = clv__onnx_shape(use, i);
    const int64_t block = clv__onnx_int(use, "block_size", 0), n = clv_shape_numel(&own);
    clv_tensor *given = setting(use, i);
    if (!given || n == 1) return clv__onnx_reshape(given, NULL, 0);
    const int axis = clv__onnx_axis(use, clv__onnx_int(use, "axis", 1), x->rank);
    if (own.rank == 1 && n == x->dims[axis]) {
        clv_shape to = {.rank = x->rank - axis, .dims = {n, 1, 1, 1, 1, 1, 1, 1}};
        return clv__onnx_reshape(given, to.dims, to.rank);
    }
    if (own.rank != x->rank || block < 1 || own.dims[axis] * block < x->dims[axis]) {
        clv__onnx_fail(use, CLV_E_SHAPE, "scales that fit neither an axis nor its blocks");
        return NULL;
    }
    clv_shape wide = own;
    int64_t dims[CLV_MAX_RANK + 1];
    for (int d = own.rank; d > axis + 1; d--) dims[d] = own.dims[d - 1];
    for (int d = 0; d <= axis; d++) dims[d] = own.dims[d];
    dims[axis + 1] = 1;
    clv_tensor *y = own.rank < CLV_MAX_RANK ? clv__onnx_reshape(given, dims, own.rank + 1) : NULL;
    clv_shape each = clv_tensor_shape(y);
    each.dims[axis + 1] = block;
    wide.dims[axis] = clv__onnx_times(wide.dims[axis], block);
    return clv__onnx_part(clv_reshape(clv_broadcast_to(y, each), wide), axis, 0, x->dims[axis]);
}

static void build_quantize(clv__onnx_use *use) {
    const clv_shape shape = clv__onnx_shape(use, 0);
    const int wanted = (int)clv__onnx_int(use, "output_dtype", 0),
              type = type_of(use, 2, wanted ? wanted : CLV__ONNX_UINT8);
    clv_tensor *x = clv_div(clv__onnx_float(use, 0), for_each(use, 1, &shape));
    clv__onnx_give_type(use, 0, quantised(use, x, for_each(use, 2, &shape), type), type);
}

static void build_dequantize(clv__onnx_use *use) {
    const clv_shape shape = clv__onnx_shape(use, 0);
    clv_tensor *x = clv__onnx_float(use, 0), *zero = for_each(use, 2, &shape);
    if (zero) x = clv_sub(x, zero);
    clv__onnx_give_type(use, 0, clv_mul(x, for_each(use, 1, &shape)), type_of(use, 1, CLV__ONNX_FLOAT));
}

/** The range of x, and 0, by 255 steps. */
static void build_dynamic_quantize(clv__onnx_use *use) {
    clv_tensor *x = clv__onnx_float(use, 0);
    clv_tensor *high = clv_relu(clv_max(x, NULL, 0, false)),
               *low = clv_neg(clv_relu(clv_max(clv_neg(x), NULL, 0, false)));
    clv_tensor *scale = clv_div(clv_sub(high, low), clv__onnx_scalar(use, 255, true));
    clv_tensor *zero = quantised(use, clv_div(clv_neg(low), scale), NULL, CLV__ONNX_UINT8);
    clv_tensor *y = quantised(use, clv_div(x, scale), clv__onnx_as_float(zero), CLV__ONNX_UINT8);
    clv__onnx_give_type(use, 0, y, CLV__ONNX_UINT8);
    clv__onnx_give_type(use, 1, scale, CLV__ONNX_FLOAT);
    clv__onnx_give_type(use, 2, zero, CLV__ONNX_UINT8);
}

// ---- products ----------------------------------------------------------------------------------------

/** An input less its zero point; those of rows or columns stand along axis `axis` of it. */
static clv_tensor *centred(clv__onnx_use *use, int i, int zero, int axis) {
    clv_tensor *x = clv__onnx_float(use, i), *z = setting(use, zero);
    const clv_shape own = clv_tensor_shape(z), s = clv_tensor_shape(x);
    if (!z || !x) return x;
    if (clv_shape_numel(&own) == 1) return clv_sub(x, clv__onnx_reshape(z, NULL, 0));
    if (own.rank != 1) return clv_sub(x, z);
    axis = axis < 0 ? axis + s.rank : axis;
    if (axis < 0 || axis >= s.rank) {
        clv__onnx_fail(use, CLV_E_SHAPE, "zero points along an axis that the numbers do not have");
        return NULL;
    }
    clv_shape to = {.rank = s.rank - axis, .dims = {own.dims[0], 1, 1, 1, 1, 1, 1, 1}};
    return clv_sub(x, clv__onnx_reshape(z, to.dims, to.rank));
}

/** A scale as it multiplies a result: one, or one along axis `axis` of so many dimensions. */
static clv_tensor *scale_of(clv__onnx_use *use, int i, int axis, int rank) {
    const clv_shape own = clv__onnx_shape(use, i);
    const int64_t n = clv_shape_numel(&own);
    if (n == 1) return clv__onnx_reshape(setting(use, i), NULL, 0);
    if (own.rank != 1) return setting(use, i);
    if (rank < axis) {
        clv__onnx_fail(use, CLV_E_SHAPE, "scales along an axis that the numbers do not have");
        return NULL;
    }
    clv_shape to = {.rank = rank - axis, .dims = {n, 1, 1, 1, 1, 1, 1, 1}};
    return clv__onnx_reshape(setting(use, i), to.dims, to.rank);
}

static void build_matmul_integer(clv__onnx_use *use) {
    clv_tensor *y = clv_matmul(centred(use, 0, 2, -2), centred(use, 1, 3, -1));
    clv__onnx_give_type(use, 0, clv__onnx_as_i32(y), CLV__ONNX_INT32);
}

/** Sums of products as the result's integers: times both scales, by its own. */
static void give_scaled(clv__onnx_use *use, clv_tensor *sums, clv_tensor *a, clv_tensor *b) {
    const int type = type_of(use, 7, CLV__ONNX_UINT8);
    clv_tensor *scale = clv_div(clv_mul(a, b), scale_of(use, 6, 0, 1));
    clv_tensor *zero = clv__onnx_has(use, 7) ? scale_of(use, 7, 0, 1) : NULL;
    clv__onnx_give_type(use, 0, quantised(use, clv_mul(sums, scale), zero, type), type);
}

static void build_qlinear_matmul(clv__onnx_use *use) {
    const int a = clv__onnx_shape(use, 0).rank, b = clv__onnx_shape(use, 3).rank;
    clv_tensor *sums = clv_matmul(centred(use, 0, 2, -2), centred(use, 3, 5, -1));
    give_scaled(use, sums, scale_of(use, 1, a - 2, a), scale_of(use, 4, b - 1, b));
}

static void build_conv_integer(clv__onnx_use *use) {
    clv_tensor *in[2] = {centred(use, 0, 2, 0), centred(use, 1, 3, 0)};
    clv__onnx_give_type(use, 0, clv__onnx_as_i32(clv__onnx_by(use, "Conv", in, 2)), CLV__ONNX_INT32);
}

/** The bias is of the sums: i32 in both scales multiplied. */
static void build_qlinear_conv(clv__onnx_use *use) {
    const int rank = clv__onnx_shape(use, 0).rank;
    clv_tensor *in[3] = {centred(use, 0, 2, 1), centred(use, 3, 5, 0), clv__onnx_float(use, 8)};
    clv_tensor *sums = clv__onnx_by(use, "Conv", in, 3);
    give_scaled(use, sums, scale_of(use, 1, 0, 1), scale_of(use, 4, 1, rank));
}

// ---- of ONNX Runtime --------------------------------------------------------------------------------------------------
// Its quantiser writes these in its own domain, com.microsoft. Source: docs/ContribOperators.md of ONNX Runtime 1.32.

/** The floats that the integers of input i stand for; scale and zero point are behind it. */
static clv_tensor *real(clv__onnx_use *use, int i) {
    return clv_mul(centred(use, i, i + 2, 0), scale_of(use, i + 1, 0, 1));
}

/** By the scale and zero point that are inputs i and i + 1. */
static void give_by(clv__onnx_use *use, clv_tensor *y, int i) {
    const int type = type_of(use, i + 1, type_of(use, 0, CLV__ONNX_UINT8));
    clv_tensor *zero = clv__onnx_has(use, i + 1) ? scale_of(use, i + 1, 0, 1) : NULL;
    clv__onnx_give_type(use, 0, quantised(use, clv_div(y, scale_of(use, i, 0, 1)), zero, type), type);
}

static void build_q_add(clv__onnx_use *use) {
    give_by(use, clv_add(real(use, 0), real(use, 3)), 6);
}

static void build_q_mul(clv__onnx_use *use) {
    give_by(use, clv_mul(real(use, 0), real(use, 3)), 6);
}

static void build_q_sigmoid(clv__onnx_use *use) {
    give_by(use, clv_sigmoid(real(use, 0)), 3);
}

static void build_q_leaky_relu(clv__onnx_use *use) {
    give_by(use, clv_leaky_relu(real(use, 0), (float)clv__onnx_real(use, "alpha", 0.01)), 3);
}

static void build_q_average_pool(clv__onnx_use *use) {
    clv_tensor *x = real(use, 0);
    if (clv__onnx_int(use, "channels_last", 0))
        clv__onnx_fail(use, CLV_E_UNSUPPORTED, "windows where the channels are the last dimension");
    give_by(use, clv__onnx_by(use, "AveragePool", &x, 1), 3);
}

/** Along an axis, or before version 13 of all dimensions from it on. */
static void build_q_softmax(clv__onnx_use *use) {
    clv_tensor *x = real(use, 0);
    const clv_shape s = clv_tensor_shape(x);
    const int axis = clv__onnx_axis(use, clv__onnx_int(use, "axis", -1), s.rank);
    if (clv__onnx_failed(use)) return;
    if (clv__onnx_int(use, "opset", 13) >= 13) {
        give_by(use, clv_softmax(x, axis), 3);
        return;
    }
    int64_t rows = 1;
    for (int d = 0; d < axis; d++) rows *= s.dims[d];
    const int64_t n = clv_shape_numel(&s), width = rows ? n / rows : 0;
    give_by(use, clv_reshape(clv_softmax(clv_reshape(x, CLV_SHAPE(rows, width)), 1), s), 3);
}

/** All dimensions behind the channels, or between samples and channels. */
static void build_q_global_pool(clv__onnx_use *use) {
    const int rank = clv__onnx_shape(use, 0).rank, last = clv__onnx_int(use, "channels_last", 0) != 0;
    int axes[CLV_MAX_RANK], n = 0;
    for (int d = last ? 1 : 2; d < rank - last; d++) axes[n++] = d;
    give_by(use, clv_mean(real(use, 0), axes, n, true), 3);
}

static void build_q_concat(clv__onnx_use *use) {
    enum { MOST = 64 };
    clv_tensor *parts[MOST];
    const int n = (use->n_in - 2) / 3,
              axis = clv__onnx_axis(use, clv__onnx_int(use, "axis", 0), clv__onnx_shape(use, 2).rank);
    if (n < 1 || n > MOST)
        clv__onnx_fail(use, CLV_E_UNSUPPORTED, "%d values, and 1 to %d are known", n, MOST);
    for (int i = 0; i < n && !clv__onnx_failed(use); i++) parts[i] = real(use, 2 + 3 * i);
    if (!clv__onnx_failed(use)) give_by(use, clv_concat(parts, n, axis), 0);
}

/** Turned, where an attribute says so. */
static clv_tensor *as_said(const clv__onnx_use *use, clv_tensor *x, const char *name) {
    return x && clv__onnx_int(use, name, 0) ? clv__onnx_permute(x, (int[]){1, 0}, 2) : x;
}

/** The bias is of the sums, as in QLinearConv. Without a scale the result is of floats. */
static void build_q_gemm(clv__onnx_use *use) {
    clv_tensor *a = as_said(use, centred(use, 0, 2, 0), "transA"),
               *b = as_said(use, centred(use, 3, 5, clv__onnx_int(use, "transB", 0) ? 0 : 1), "transB");
    clv_tensor *y = clv_matmul(a, b), *scale = clv_mul(scale_of(use, 1, 0, 1), scale_of(use, 4, 0, 1));
    const double alpha = clv__onnx_real(use, "alpha", 1);
    if (alpha != 1) scale = clv__onnx_with(use, clv_mul, scale, alpha);
    if (clv__onnx_has(use, 6)) y = clv_add(y, clv__onnx_float(use, 6));
    y = clv_mul(y, scale);
    if (clv__onnx_has(use, 7))
        give_by(use, y, 7);
    else
        clv__onnx_give_type(use, 0, y, CLV__ONNX_FLOAT);
}

/** Integers of floats and of integers, or of both, as floats: a, b, their scales, their zero points, a bias. */
static void build_matmul_to_float(clv__onnx_use *use) {
    const int b = clv__onnx_shape(use, 1).rank;
    clv_tensor *y = clv_matmul(centred(use, 0, 4, -2), centred(use, 1, 5, -1));
    y = clv_mul(y, clv_mul(scale_of(use, 2, 0, 1), scale_of(use, 3, b - 1, b)));
    if (clv__onnx_has(use, 6)) y = clv_add(y, clv__onnx_float(use, 6));
    clv__onnx_give_type(use, 0, y, CLV__ONNX_FLOAT);
}

const clv__onnx_row clv__onnx_microsoft[] = {
    {"DequantizeLinear", .build = build_dequantize},
    {"MatMulIntegerToFloat", .build = build_matmul_to_float},
    {"QGemm", .build = build_q_gemm},
    {"QLinearAdd", .build = build_q_add},
    {"QLinearAveragePool", .build = build_q_average_pool},
    {"QLinearConcat", .build = build_q_concat},
    {"QLinearGlobalAveragePool", .build = build_q_global_pool},
    {"QLinearLeakyRelu", .build = build_q_leaky_relu},
    {"QLinearMul", .build = build_q_mul},
    {"QLinearSigmoid", .build = build_q_sigmoid},
    {"QLinearSoftmax", .build = build_q_softmax},
    {"QuantizeLinear", .build = build_quantize},
    {0},
};

const clv__onnx_row clv__onnx_quantized[] = {
    {"ConvInteger", .build = build_conv_integer},
    {"DequantizeLinear", .build = build_dequantize},
    {"DynamicQuantizeLinear", .build = build_dynamic_quantize},
    {"MatMulInteger", .build = build_matmul_integer},
    {"QLinearConv", .build = build_qlinear_conv},
    {"QLinearMatMul", .build = build_qlinear_matmul},
    {"QuantizeLinear", .build = build_quantize},
    {0},
};
