// SPDX-License-Identifier: Apache-2.0
// Optimizers: nodes that update parameters in place from their gradients, and the step values that are fed to them.
#ifndef CLEAVE_OPTIM_H
#define CLEAVE_OPTIM_H

#include "graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum clv_optimizer_kind { CLV_SGD, CLV_ADAM, CLV_ADAMW } clv_optimizer_kind;

/** Zero means PyTorch's default where one is named. Learning rate is not here: it is fed each step (clv_optimizer_hyper). */
typedef struct clv_optimizer_config {
    clv_optimizer_kind kind;
    float momentum;      /**< SGD; default 0 */
    float dampening;     /**< SGD; default 0 */
    bool nesterov;       /**< SGD */
    float weight_decay;  /**< default 0; ADAMW: default 0.01, negative means 0 */
    float beta1, beta2;  /**< ADAM, ADAMW; default 0.9, 0.999 */
    float eps;           /**< ADAM, ADAMW; default 1e-8 */
    float clip_norm;     /**< > 0: scale all gradients so that their global L2 norm is at most this (PyTorch: clip_grad_norm_) */
} clv_optimizer_config;

/**
 * Append one update node for every parameter that has a gradient (call clv_backward first). The state is kept in the
 * session under `<parameter>.momentum_buffer`, `<parameter>.exp_avg`, `<parameter>.exp_avg_sq` (PyTorch's names).
 *
 * Errors  (sticky) CLV_E_STATE no parameter has a gradient; CLV_E_VALUE a value outside its range
 */
CLV_API void clv_optimizer_add(clv_graph *graph, const clv_optimizer_config *config);

enum { CLV_HYPER_VALUES = 4 };
/** The graph's input of step values (`hyper`, f32[CLV_HYPER_VALUES]); NULL if it has no optimizer. */
CLV_API clv_tensor *clv_optimizer_hyper(const clv_graph *graph);
/**
 * The values to feed for a step: learning rate, first step or not, bias corrections.
 * step  counts from 1
 */
CLV_API void clv_optimizer_hyper_values(const clv_optimizer_config *config, int64_t step, double lr,
                                        float values[CLV_HYPER_VALUES]);

#ifdef __cplusplus
}
#endif
#endif
