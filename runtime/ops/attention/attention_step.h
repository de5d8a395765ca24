// SPDX-License-Identifier: Apache-2.0
// One token of causal self-attention, with a cache. Inside of the library: it changes its inputs, which a user's graph has no tensors
// for.
#ifndef CLV_OPS_ATTENTION_STEP_H
#define CLV_OPS_ATTENTION_STEP_H

#include "graph/op.h"

/**
 * The next token's attention to itself and all before it, as clv_self_attention does for whole sequences.
 *
 *     keys[n, position], values[n, position] = k, v       q, k, v = columns of x[n]
 *     y[n] = softmax(scale * q . keys[n, t]) values[n, t]   over t <= position, for each head; heads / kv_heads share keys
 *
 * x         [N, Q+2D] f32 | f16 | bf16   D = kv_heads * E, Q = heads * E
 * keys      [N, T, D] f32, changed     a clv__cache that nothing else reads; values alike
 * position  [1]       i32              outside of 0 ... T - 1 the result is NaN, and nothing is changed
 * heads     of queries                 scale is 1 / sqrt(E)
 * kv_heads  of keys and values, which divide heads and D
 * result    [N, Q]    f32
 *
 * Gradient  none
 */
clv_tensor *clv__attention_step(clv_tensor *x, clv_tensor *keys, clv_tensor *values, clv_tensor *position,
                                int64_t heads, int64_t kv_heads);

#endif
