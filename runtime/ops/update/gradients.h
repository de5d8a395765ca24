// SPDX-License-Identifier: Apache-2.0
// What an update needs of all gradients together: gradients.c.
#ifndef CLV_OPS_GRADIENTS_H
#define CLV_OPS_GRADIENTS_H

#include "cleave/optim.h"
#include "graph/graph.h"

/** What updates read besides their own gradient. */
typedef struct clv__gradients {
    clv_tensor *factor; // f32[1], of all gradients; negative: this step updates nothing. NULL: 1
    clv_tensor *hyper;  // f32[CLV_HYPER_VALUES]
} clv__gradients;

/** Append the nodes that make it: clipping if clip_norm > 0, and what the graph's scaler asks for. hyper is the fed input;
 *  log_beta1 and log_beta2 are those of Adam, 0 without. */
clv__gradients clv__gradients_add(clv_graph *graph, clv_tensor *const *parameters, size_t n, float clip_norm,
                                  double log_beta1, double log_beta2);

#endif
