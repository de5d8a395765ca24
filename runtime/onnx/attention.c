// SPDX-License-Identifier: Apache-2.0
// Attention, and what turns its queries and keys by their positions. Source: Attention and RotaryEmbedding of
// ONNX 1.23.
#include <math.h>

#include "onnx/import.h"

/** A node's tensors, heads apart: [batch, heads, places, features]. */
typedef struct attention {
    clv_tensor *q, *k, *v;
    clv_tensor *bias; // of the scores; NULL: none
    int64_t n, heads, kv_heads, t, s, past;
    float scale;
    bool joined; // the file has heads side by side, and so has its result
} attention;

/** [N, T, heads * E] as [N, heads, T, E]. */
static clv_tensor *heads_apart(clv__onnx_use *use, clv_tensor *x, int64_t heads) {
    const clv_shape s = clv_tensor_shape(x);
    if (!x || s.rank == 4) return x;
    if (s.rank != 3 || heads < 1 || s.dims[2] % heads) {
        clv__onnx_fail(use, CLV_E_SHAPE, "features that %lld heads do not divide", (long long)heads);
        return NULL;
    }
    x = clv__onnx_reshape(x, (int64_t[]){s.dims[0], s.dims[1], heads, s.dims[2] / heads}, 4);
    return clv__onnx_permute(x, (int[]){0, 2, 1, 3}, 4);
}

static clv_tensor *heads_joined(clv_tensor *x) {
    const clv_shape s = clv_tensor_shape(x);
    x = clv__onnx_permute(x, (int[]){0, 2, 1, 3}, 4);
    return clv__onnx_reshape(x, (int64_t[]){s.dims[0], s.dims[2], s.dims[1] * s.dims[3]}, 3);
}

/** Each head so many times, one beside the other. */
static clv_tensor *repeated(clv_tensor *x, int64_t times) {
    clv_shape s = clv_tensor_shape(x);
    if (times == 1 || !x) return x;
    x = clv__onnx_reshape(x, (int64_t[]){s.dims[0], s.dims[1], 1, s.dims[2], s.dims[3]}, 5);
    x = clv_broadcast_to(x, CLV_SHAPE(s.dims[0], s.dims[1], times, s.dims[2], s.dims[3]));
    s.dims[1] = clv__onnx_times(s.dims[1], times);
    return clv_reshape(x, s);
}

static bool read_attention(clv__onnx_use *use, attention *a) {
    a->joined = clv__onnx_shape(use, 0).rank == 3;
    a->q = heads_apart(use, clv__onnx_float(use, 0), clv__onnx_int(use, "q_num_heads", 0));
    a->k = heads_apart(use, clv__onnx_float(use, 1), clv__onnx_int(use, "kv_num_heads", 0));
    a->v = heads_apart(use, clv__onnx_float(use, 2), clv__onnx_int(use, "kv_num_heads", 0));
    if (clv__onnx_has(use, 4)) {
        a->past = clv__onnx_shape(use, 4).dims[2];
        a->k = clv_concat((clv_tensor *[]){clv__onnx_float(use, 4), a->k}, 2, 2);
        a->v = clv_concat((clv_tensor *[]){clv__onnx_float(use, 5), a->v}, 2, 2);
    }
    const clv_shape q = clv_tensor_shape(a->q), k = clv_tensor_shape(a->k);
    if (clv__onnx_failed(use)) return false;
    if (q.rank != 4 || k.rank != 4 || !k.dims[1] || q.dims[1] % k.dims[1]) {
        clv__onnx_fail(use, CLV_E_SHAPE, "%lld heads of queries and %lld of keys", (long long)q.dims[1],
                       (long long)k.dims[1]);
        return false;
    }
    a->n = q.dims[0], a->heads = q.dims[1], a->t = q.dims[2];
    a->kv_heads = k.dims[1], a->s = k.dims[2];
    a->scale = (float)clv__onnx_real(use, "scale", 1 / sqrt((double)q.dims[3]));
    return true;
}

// ---- which keys a query sees -------------------------------------------------------------------------

/** 0 where it is seen, -infinity where not. */
static clv_tensor *bias_of(clv__onnx_use *use, clv_tensor *seen) {
    clv_tensor *none = clv__onnx_scalar(use, -INFINITY, true);
    return seen ? clv_where(seen, clv__onnx_scalar(use, 0, true), none) : NULL;
}

/** The mask of the file, longer to all keys where it is shorter. */
static clv_tensor *given_bias(clv__onnx_use *use, const attention *a) {
    clv_tensor *mask = clv__onnx_in(use, 3);
    if (!mask) return NULL;
    if (!clv__onnx_tensor_is_float(mask)) mask = bias_of(use, mask);
    const clv_shape s = clv_tensor_shape(mask);
    int64_t before[CLV_MAX_RANK] = {0}, after[CLV_MAX_RANK] = {0};
    if (s.rank && s.dims[s.rank - 1] < a->s) after[s.rank - 1] = a->s - s.dims[s.rank - 1];
    return clv__onnx_pad(use, mask, before, after, -INFINITY);
}

/** What holds for places alone, where it is known which one the first query has: between `left` before and
 *  `right` after. */
static clv_tensor *known_window(clv__onnx_use *use, const attention *a, int64_t left, int64_t right) {
    clv__known *bias = clv__onnx_new_known(use, CLV__ONNX_FLOAT, CLV_SHAPE(a->t, a->s));
    for (int64_t i = 0; bias && i < a->t * a->s; i++) {
        const int64_t back = i / a->s + a->past - i % a->s;
        const bool seen = (left < 0 || back <= left) && (right < 0 || -back <= right);
        bias->v[i] = seen ? 0 : -INFINITY;
    }
    return bias ? clv__onnx_constant(use, bias) : NULL;
}

/** The same where the lengths that are fed say it: the last query is the last that is no padding. */
static clv_tensor *fed_window(clv__onnx_use *use, const attention *a, int64_t left, int64_t right) {
    clv_tensor *length = clv__onnx_reshape(clv__onnx_i32(use, 6), (int64_t[]){a->n, 1, 1, 1}, 4);
    clv_tensor *row = clv__onnx_places(use, a->t, 2, 4), *column = clv__onnx_places(use, a->s, 3, 4);
    row = clv_add(row, clv_sub(length, clv__onnx_scalar(use, (double)a->t, false)));
    clv_tensor *back = clv_sub(row, column), *seen = clv_lt(column, length);
    if (left >= 0) seen = clv_mul(seen, clv__onnx_with(use, clv_le, back, (double)left));
    if (right >= 0) seen = clv_mul(seen, clv__onnx_with(use, clv_ge, back, -(double)right));
    return bias_of(use, seen);
}

static void read_bias(clv__onnx_use *use, attention *a) {
    const int64_t left = clv__onnx_int(use, "left_window_size", -1);
    int64_t right = clv__onnx_int(use, "right_window_size", -1);
    if (clv__onnx_int(use, "is_causal", 0)) right = 0;
    a->bias = given_bias(use, a);
    clv_tensor *window = NULL;
    if (clv__onnx_has(use, 6))
        window = fed_window(use, a, left, right);
    else if (left >= 0 || right >= 0)
        window = known_window(use, a, left, right);
    if (window) a->bias = a->bias ? clv_add(a->bias, window) : window;
}

// ---- scores ------------------------------------------------------------------------------------------

/** Nothing but scores, a mask and a softmax. */
static bool plain(clv__onnx_use *use, const attention *a) {
    return !(use->n_out > 3 && use->out[3]) && clv__onnx_real(use, "softcap", 0) == 0 && a->scale != 0;
}

/** No mask but that of a future that the op hides itself. */
static bool causal_alone(clv__onnx_use *use, const attention *a) {
    return clv__onnx_int(use, "is_causal", 0) && a->t + a->past == a->s && !clv__onnx_has(use, 3) &&
           !clv__onnx_has(use, 6) && clv__onnx_int(use, "left_window_size", -1) < 0;
}

/** Rows that see no key are zeros, not NaN. */
static clv_tensor *guarded_softmax(clv__onnx_use *use, const attention *a, clv_tensor *scores) {
    if (!a->bias) return clv_softmax(scores, 3);
    const int last = clv_tensor_shape(a->bias).rank - 1;
    clv_tensor *most = clv_max(a->bias, &last, 1, true), *zero = clv__onnx_scalar(use, 0, true);
    clv_tensor *none = clv__onnx_with(use, clv_eq, most, -INFINITY);
    return clv_where(none, zero, clv_softmax(clv_where(none, zero, scores), 3));
}

static clv_tensor *scored(clv__onnx_use *use, attention *a, clv_tensor *k, clv_tensor *v) {
    const float cap = (float)clv__onnx_real(use, "softcap", 0);
    const int64_t mode = clv__onnx_int(use, "qk_matmul_output_mode", 0);
    read_bias(use, a);
    clv_tensor *scores = clv_mul_scalar(clv_matmul_t(a->q, false, k, true), a->scale), *told = scores;
    if (cap > 0) scores = clv_mul_scalar(clv_tanh(clv_mul_scalar(scores, 1 / cap)), cap);
    if (mode == 1) told = scores;
    if (a->bias) scores = clv_add(scores, a->bias);
    if (mode == 2) told = scores;
    clv_tensor *weights = guarded_softmax(use, a, scores);
    clv__onnx_give(use, 3, mode == 3 ? weights : told);
    return clv_matmul(weights, v);
}

static void build_attention(clv__onnx_use *use) {
    attention a = {0};
    if (!read_attention(use, &a)) return;
    clv_tensor *y;
    if (plain(use, &a)) {
        clv_attention_config config = {.causal = causal_alone(use, &a), .scale = a.scale, .enable_gqa = true};
        if (!config.causal) read_bias(use, &a);
        config.attn_mask = a.bias;
        y = clv_scaled_dot_product_attention(a.q, a.k, a.v, &config);
    } else {
        y = scored(use, &a, repeated(a.k, a.heads / a.kv_heads), repeated(a.v, a.heads / a.kv_heads));
    }
    clv__onnx_give(use, 0, a.joined ? heads_joined(y) : y);
    clv__onnx_give(use, 1, a.k);
    clv__onnx_give(use, 2, a.v);
}

// ---- rotary positions --------------------------------------------------------------------------------

/** The cosines or sines of each place: [N, T, 1, pairs]. */
static clv_tensor *turns(clv__onnx_use *use, int i, const clv_shape *x, int64_t pairs) {
    clv_tensor *table = clv__onnx_float(use, i);
    if (clv__onnx_has(use, 3)) table = clv__onnx_rows(table, 0, clv__onnx_i32(use, 3));
    const clv_shape s = clv_tensor_shape(table);
    if (table && clv_shape_numel(&s) != x->dims[0] * x->dims[1] * pairs) {
        clv__onnx_fail(use, CLV_E_SHAPE, "a table of other places or features than x");
        return NULL;
    }
    return clv__onnx_reshape(table, (int64_t[]){x->dims[0], x->dims[1], 1, pairs}, 4);
}

static void build_rotary(clv__onnx_use *use) {
    const clv_shape given = clv__onnx_shape(use, 0);
    const int64_t heads = clv__onnx_int(use, "num_heads", 0);
    clv_tensor *x = clv__onnx_float(use, 0);
    if (given.rank == 3 && heads > 0 && given.dims[2] % heads == 0)
        x = clv__onnx_reshape(x, (int64_t[]){given.dims[0], given.dims[1], heads, given.dims[2] / heads}, 4);
    else if (given.rank == 4)
        x = clv__onnx_permute(x, (int[]){0, 2, 1, 3}, 4);
    else
        clv__onnx_fail(use, CLV_E_SHAPE, "an input of rank %d and %lld heads", given.rank, (long long)heads);
    const clv_shape s = clv_tensor_shape(x);
    const int64_t wanted = clv__onnx_int(use, "rotary_embedding_dim", 0), dim = wanted ? wanted : s.dims[3];
    if (clv__onnx_failed(use)) return;
    if (dim < 2 || dim % 2 || dim > s.dims[3]) {
        clv__onnx_fail(use, CLV_E_SHAPE, "%lld of %lld features are turned", (long long)dim,
                       (long long)s.dims[3]);
        return;
    }
    clv_tensor *y = clv_rotary_embedding(x, turns(use, 1, &s, dim / 2), turns(use, 2, &s, dim / 2),
                                         clv__onnx_int(use, "interleaved", 0) != 0);
    if (given.rank == 4) y = clv__onnx_permute(y, (int[]){0, 2, 1, 3}, 4);
    clv__onnx_give(use, 0, clv__onnx_reshape(y, given.dims, given.rank));
}

const clv__onnx_row clv__onnx_attention[] = {
    {"Attention", .build = build_attention},
    {"RotaryEmbedding", .build = build_rotary},
    {0},
};
