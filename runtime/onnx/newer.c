// SPDX-License-Identifier: Apache-2.0
// Ops of opsets 27 and 28: SwiGLU, and two that keep a state between calls. Source: the operators of ONNX
// 1.23.
#include <math.h>

#include "onnx/import.h"

static void build_swiglu(clv__onnx_use *use) {
    const float alpha = (float)clv__onnx_real(use, "alpha", 1);
    clv_tensor *a = clv__onnx_float(use, 0), *gate = alpha == 1 ? clv_silu(a) : NULL;
    if (!gate) gate = clv_mul(a, clv_sigmoid(clv_mul_scalar(a, alpha)));
    clv__onnx_give(use, 0, clv_mul(gate, clv__onnx_float(use, 1)));
}

/** Each channel [N, C, L] with its own kernel [C, 1, K], behind what it had before. */
static void build_causal_conv(clv__onnx_use *use) {
    const clv_shape s = clv__onnx_shape(use, 0), k = clv__onnx_shape(use, 1);
    if (s.rank != 3 || k.rank != 3 || k.dims[0] != s.dims[1] || k.dims[1] != 1 || k.dims[2] < 1) {
        clv__onnx_fail(use, CLV_E_SHAPE, "a kernel that is not [channels, 1, size]");
        return;
    }
    const int64_t C = s.dims[1], L = s.dims[2], past = k.dims[2] - 1;
    clv_tensor *x = clv__onnx_float(use, 0), *weight = clv__onnx_float(use, 1), *y = NULL;
    if (past && clv__onnx_has(use, 3))
        x = clv_concat((clv_tensor *[]){clv__onnx_float(use, 3), x}, 2, 2);
    else
        x = clv__onnx_pad(use, x, (int64_t[]){0, 0, past}, (int64_t[]){0, 0, 0}, 0);
    for (int64_t i = 0; i <= past; i++) {
        clv_tensor *w = clv__onnx_reshape(clv__onnx_part(weight, 2, i, 1), (int64_t[]){C, 1}, 2);
        clv_tensor *one = clv_mul(clv__onnx_part(x, 2, i, L), w);
        y = y ? clv_add(y, one) : one;
    }
    if (clv__onnx_has(use, 2))
        y = clv_add(y, clv__onnx_reshape(clv__onnx_float(use, 2), (int64_t[]){C, 1}, 2));
    const bool silu =
        clv__onnx_word(use, "activation", "silu", false) || clv__onnx_word(use, "activation", "swish", false);
    clv__onnx_give(use, 0, silu ? clv_silu(y) : y);
    clv__onnx_give(use, 1, clv__onnx_part(x, 2, L, past));
}

/** What a LinearAttention has of one step: [N, heads, ...]. */
static clv_tensor *of_step(clv_tensor *x, int64_t t, int64_t heads, int64_t rows, int64_t columns) {
    const int64_t n = clv_tensor_shape(x).dims[0];
    return x ? clv__onnx_reshape(clv__onnx_part(x, 1, t, 1), (int64_t[]){n, heads, rows, columns}, 4) : NULL;
}

/** The state [N, heads, K, V] after a step: what decays, and the outer product of key and value, or of its
 *  difference. */
static clv_tensor *next_state(clv_tensor *state, clv_tensor *k, clv_tensor *v, clv_tensor *decay,
                              clv_tensor *beta) {
    if (decay) state = clv_mul(state, clv_exp(decay));
    if (beta) v = clv_mul(clv_sub(v, clv_matmul_t(k, true, state, false)), beta);
    return clv_add(state, clv_mul(k, v));
}

static void build_linear_attention(clv__onnx_use *use) {
    const clv_shape q = clv__onnx_shape(use, 0), k = clv__onnx_shape(use, 1), v = clv__onnx_shape(use, 2),
                    g = clv__onnx_shape(use, 4), b = clv__onnx_shape(use, 5);
    const int64_t heads = clv__onnx_int(use, "q_num_heads", 1), kv = clv__onnx_int(use, "kv_num_heads", 1);
    if (q.rank != 3 || k.rank != 3 || v.rank != 3 || kv < 1 || heads % kv || k.dims[2] % kv ||
        v.dims[2] % kv || q.dims[1] < 1 || q.dims[1] > 1024) {
        clv__onnx_fail(use, CLV_E_UNSUPPORTED, "heads that do not fit, or more than 1024 steps");
        return;
    }
    const bool plain = clv__onnx_word(use, "update_rule", "linear", false),
               gated = clv__onnx_word(use, "update_rule", "gated", false),
               delta = clv__onnx_word(use, "update_rule", "delta", false);
    const int64_t N = q.dims[0], T = q.dims[1], K = k.dims[2] / kv, V = v.dims[2] / kv, each = heads / kv;
    double scale = clv__onnx_real(use, "scale", 0);
    if (scale == 0) scale = 1 / sqrt((double)K);
    clv_tensor *state = clv__onnx_has(use, 3)
                            ? clv__onnx_float(use, 3)
                            : clv_full(use->graph, CLV_DTYPE_F32, CLV_SHAPE(N, kv, K, V), 0);
    clv_tensor *decay = plain || delta ? NULL : clv__onnx_float(use, 4),
               *beta = plain || gated ? NULL : clv__onnx_float(use, 5), *all[1024];
    for (int64_t t = 0; t < T && !clv__onnx_failed(use); t++) {
        state = next_state(state, of_step(clv__onnx_float(use, 1), t, kv, K, 1),
                           of_step(clv__onnx_float(use, 2), t, kv, 1, V),
                           of_step(decay, t, kv, decay && g.dims[2] != kv ? K : 1, 1),
                           of_step(beta, t, beta ? b.dims[2] : 1, 1, 1));
        clv_tensor *y = clv_matmul(of_step(clv__onnx_float(use, 0), t, kv, each, K), state);
        all[t] = clv__onnx_reshape(clv_mul_scalar(y, (float)scale), (int64_t[]){N, 1, heads * V}, 3);
    }
    if (clv__onnx_failed(use)) return;
    clv__onnx_give(use, 0, T == 1 ? all[0] : clv_concat(all, (int)T, 1));
    clv__onnx_give(use, 1, state);
}

const clv__onnx_row clv__onnx_newer[] = {
    {"CausalConvWithState", .build = build_causal_conv},
    {"LinearAttention", .build = build_linear_attention},
    {"SwiGLU", .build = build_swiglu},
    {0},
};
