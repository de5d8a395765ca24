// SPDX-License-Identifier: Apache-2.0
// Random numbers: of the session's seed and the step, whatever seed a node says. Source: the operators of ONNX 1.23.
#include "onnx/import.h"

/** Of so many, or as many as an input has; integers are what they were drawn as, cut off. */
enum { UNIFORM, NORMAL, LIKE };
static void build_drawn(clv__onnx_use *use) {
    const bool like = use->row->which & LIKE, normal = use->row->which & NORMAL;
    int64_t dims[CLV_MAX_RANK];
    const int n = like ? 0 : clv__onnx_ints(use, "shape", dims, CLV_MAX_RANK);
    const clv_shape shape = like ? clv__onnx_shape(use, 0) : clv_shape_make(n, dims);
    const int type = (int)clv__onnx_int(use, "dtype", like ? use->in[0]->type : CLV__ONNX_FLOAT);
    const float a = (float)clv__onnx_real(use, normal ? "mean" : "low", 0),
                b = (float)clv__onnx_real(use, normal ? "scale" : "high", 1);
    if (clv__onnx_failed(use)) return;
    clv_tensor *y =
        normal ? clv_random_normal(use->graph, shape, a, b) : clv_random_uniform(use->graph, shape, a, b);
    clv__onnx_give_type(use, 0, clv__onnx_is_float(type) ? y : clv__onnx_as_i32(y), type);
}

static void build_bernoulli(clv__onnx_use *use) {
    const int type = (int)clv__onnx_int(use, "dtype", use->in[0]->type);
    clv_tensor *y = clv_bernoulli(clv__onnx_float(use, 0));
    clv__onnx_give_type(use, 0, clv__onnx_is_float(type) ? y : clv__onnx_as_i32(y), type);
}

/** Of logarithms of weights. */
static void build_multinomial(clv__onnx_use *use) {
    const int type = (int)clv__onnx_int(use, "dtype", CLV__ONNX_INT32);
    clv_tensor *weights = clv_softmax(clv__onnx_float(use, 0), -1); // no logarithm is too large for it
    clv__onnx_give_type(use, 0, clv_multinomial(weights, clv__onnx_int(use, "sample_size", 1), true), type);
}

const clv__onnx_row clv__onnx_random[] = {
    {"Bernoulli", .build = build_bernoulli},
    {"Multinomial", .build = build_multinomial},
    {"RandomNormal", build_drawn, .which = NORMAL},
    {"RandomNormalLike", build_drawn, .which = NORMAL | LIKE},
    {"RandomUniform", build_drawn, .which = UNIFORM},
    {"RandomUniformLike", build_drawn, .which = UNIFORM | LIKE},
    {0},
};
