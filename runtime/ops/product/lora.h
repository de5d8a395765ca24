// SPDX-License-Identifier: Apache-2.0
// Adapters of linear layers (LoRA), put in where a graph's layers are built: lora.c.
#ifndef CLV_OPS_LORA_H
#define CLV_OPS_LORA_H

#include "graph/graph.h"

/**
 * Linear layers that are built from now on have adapters, where the patterns cover their weight.
 *
 * layers  patterns over names of parameters and of the modules that they lie in, as clv_freeze; a module's last names will do, as in
 *         PEFT: `q_proj` is `layers.0.q_proj`, too. NULL: no adapters
 * rank    0: 8
 * alpha   0: as rank
 *
 * Errors  (sticky) CLV_E_VALUE  rank or alpha
 */
void clv__lora_begin(clv_graph *graph, const char *layers, int64_t rank, double alpha);
/** Each pattern of clv__lora_begin must have covered a linear layer (sticky CLV_E_NOT_FOUND). */
void clv__lora_end(clv_graph *graph);
/** y, the product of x and a weight, and what the weight's adapter adds to it, if it has one. `in_out`: the weight is [in, out], else
 *  [out, in]. */
clv_tensor *clv__lora_add(clv_tensor *y, clv_tensor *x, clv_tensor *weight, bool in_out);

/** The rank that is meant, and what an adapter's sum is multiplied with. */
static inline int64_t clv__lora_rank(int64_t rank) {
    return rank ? rank : 8;
}
static inline double clv__lora_scale(int64_t rank, double alpha) {
    return alpha == 0 ? 1 : alpha / (double)clv__lora_rank(rank);
}
/** The name of a weight's adapter, which is 'A' or 'B': `fc1.weight` has `fc1.lora_A.weight`. False: it is too long. */
bool clv__lora_name(const char *weight, char which, char *name, size_t bytes);
/** Is it such a name? */
bool clv__lora_is(const char *name);

#endif
