// SPDX-License-Identifier: Apache-2.0
// Optimizers: nodes that update parameters in place from their gradients, and the step values that are fed to them.
#ifndef CLEAVE_OPTIM_H
#define CLEAVE_OPTIM_H

#include "custom_op.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum clv_optimizer_kind {
    CLV_SGD,
    CLV_ADAM,
    CLV_ADAMW,
    CLV_RMSPROP,
    CLV_ADAGRAD,
    CLV_LION,
    CLV_LAMB,
    CLV_MUON
} clv_optimizer_kind;

/**
 * Parameters that are updated in another way than the others. A parameter belongs to the first group that covers it.
 *
 *     {.max_rank = 1, .weight_decay = -1}              no weight decay on biases and norms
 *     {.patterns = "conv1,layer1.*", .lr = 0.1f}       a tenth of the learning rate
 */
typedef struct clv_param_group {
    const char *
        patterns; /**< over names of parameters and of the modules that they lie in, as clv_freeze; NULL: all */
    int max_rank;       /**< > 0: only parameters of at most this many dimensions */
    float lr;           /**< factor of the learning rate; 0: 1 */
    float weight_decay; /**< 0: as all others; negative: none */
    bool frozen;        /**< not updated. Without a gradient too where clv_optimizer_freeze was called */
    CLV_RESERVED(4);
} clv_param_group;

typedef struct clv_custom_optimizer clv_custom_optimizer; // of a program's own

#ifndef CLEAVE_STABLE_ONLY // experimental
/** What is kept for each parameter, in its shape: as `<parameter>.<name>` in the session. */
typedef struct clv_optimizer_state {
    const char *name;
    float first; /**< each element's first value */
} clv_optimizer_state;

/** One parameter's update: what its function builds from. All tensors are f32. */
typedef struct clv_update_use {
    clv_tensor *parameter, *gradient; /**< the gradient unscaled, and clipped if that is asked for */
    CLV_COUNT(n_states) clv_tensor *const *states;
    int n_states, n_attributes;
    clv_tensor *lr;      /**< [1] the learning rate of this step and this group */
    clv_tensor *first;   /**< [1] 1 in the first step, or 0 */
    clv_tensor *step;    /**< [1] from 1 */
    double weight_decay; /**< of this group; what it means is the optimizer's affair */
    CLV_COUNT(n_attributes) const double *attributes; /**< in the descriptor's order */
} clv_update_use;

/** An optimizer of a program's own: samples/custom_optimizer.c is one. It must outlive the graphs and trainers that use it. */
struct clv_custom_optimizer {
    size_t bytes;     /**< sizeof(clv_custom_optimizer): a descriptor may have more in a later version */
    const char *name; /**< written to checkpoints */
    CLV_UNTIL_NULL const clv_optimizer_state *states; /**< ends with a name that is NULL. NULL: none */
    CLV_UNTIL_NULL const clv_attribute
        *attributes; /**< hyperparameters: names and defaults; ends with a name that is NULL. NULL: none */
    /**
     * Append the nodes that compute the parameter's new value and those of its states, of the same shapes, with any ops (ops.h,
     * clv_op_call). What it writes to `parameter` and `states` is stored when all of them are made.
     */
    void (*update)(const clv_update_use *use, clv_tensor **parameter, clv_tensor **states);
};

/**
 * Register an optimizer for the whole process, under its name: for `cleave train --ops FILE --optimizer NAME` and whoever asks
 * clv_custom_optimizer_find. The same one again is fine. It must outlive the process's trainings.
 *
 * Errors  CLV_E_VALUE  the descriptor; the sentence says what;  CLV_E_STATE  the name is taken, those of the command line's
 *         --optimizer too, or 64 are registered
 */
CLV_TRAIN_API CLV_MUST_CHECK clv_status
clv_optimizer_register(clv_runtime *runtime, CLV_KEPT const clv_custom_optimizer *optimizer);
/** The one that was registered under that name; NULL if there is none. */
CLV_TRAIN_API CLV_OR_NULL const clv_custom_optimizer *clv_custom_optimizer_find(const char *name);
#endif // CLEAVE_STABLE_ONLY

/** Zero means PyTorch's default where one is named. Learning rate is not here: it is fed each step (clv_optimizer_hyper). */
typedef struct clv_optimizer_config {
    clv_optimizer_kind kind;
    float momentum;     /**< SGD, RMSPROP; default 0. MUON: default 0.95 */
    float dampening;    /**< SGD; default 0 */
    bool nesterov;      /**< SGD */
    float weight_decay; /**< default 0; ADAMW: default 0.01, MUON: 0.1, negative means 0 */
    float beta1, beta2; /**< all but SGD, RMSPROP, ADAGRAD; default 0.9, 0.999; LION: 0.9, 0.99 */
    float eps;          /**< default 1e-8; ADAGRAD: 1e-10, LAMB: 1e-6 */
    /** > 0: scale all gradients so that their global L2 norm is at most this (PyTorch: clip_grad_norm_) */
    float clip_norm;
    CLV_COUNT(n_groups)
    const clv_param_group *groups; /**< n_groups of them; what is in none is updated as said above */
    int n_groups;
    /** One of your own: of the settings above weight_decay, clip_norm and groups are its; the others must be 0. NULL: none */
    const clv_custom_optimizer *custom;
    CLV_COUNT(n_attributes)
    const clv_attribute *attributes; /**< of it: those that are not to have their defaults */
    int n_attributes;
    float alpha;   /**< RMSPROP; default 0.99 */
    bool centered; /**< RMSPROP */
    CLV_RESERVED(7);
} clv_optimizer_config;

/**
 * Freeze the parameters of frozen groups, as clv_freeze does: no gradient is computed for them. Call it before clv_backward. Trainers
 * do it.
 *
 * Errors  (sticky) as clv_optimizer_add of groups;  CLV_E_VALUE  nothing is left to train;  CLV_E_STATE  clv_backward was called
 */
CLV_TRAIN_API void clv_optimizer_freeze(clv_graph *graph, const clv_optimizer_config *config);

/** Zero means PyTorch's default. */
typedef struct clv_scaler_config {
    float scale;             /**< at the beginning; default 65536 */
    float growth, backoff;   /**< factors of the scale; default 2 and 0.5 */
    int64_t growth_interval; /**< steps without an overflow after which the scale grows; default 2000 */
    CLV_RESERVED(4);
} clv_scaler_config;

/**
 * Scale the loss, for graphs that keep gradients in f16 (clv_graph_set_precision), whose small values would become zero.
 *
 *     gradients are those of  scale * loss;  the optimizer divides them by it before it clips and updates
 *     one of them is NaN or infinite:  nothing is updated in this step,  scale *= backoff,  skipped += 1
 *     growth_interval steps in a row without:  scale *= growth
 *
 * Call it before clv_backward. The state is kept in the session, and so in checkpoints: `scaler.scale`,
 * `scaler.growth_tracker`, `scaler.skipped`, f32[1] each. It lives on the device, nobody waits for it. What clv_gradient gives
 * is scaled. Running statistics of batch_norm are updated in skipped steps too, as in PyTorch.
 *
 * config  NULL: the defaults. scale > 0, growth > 1, 0 < backoff < 1, growth_interval from 1 to 2^31 - 1
 *
 * Errors  (sticky) CLV_E_VALUE  a value outside its range;  CLV_E_STATE  clv_backward was called, or there is a scaler
 * Source  torch.amp.GradScaler
 */
CLV_TRAIN_API void clv_scaler_add(clv_graph *graph, CLV_OR_NULL const clv_scaler_config *config);

/**
 * Append one update node for every parameter p that has a gradient g (call clv_backward first).
 *
 *     clip_norm > 0:  g *= min(1, clip_norm / (norm of all gradients together + 1e-6))
 *
 *     SGD      g += weight_decay * p
 *              momentum > 0:  b = g in the first step, later  b = momentum * b + (1 - dampening) * g
 *                             g = b,  with nesterov  g += momentum * b
 *              p -= lr * g
 *     ADAM     g += weight_decay * p
 *              m = beta1 * m + (1 - beta1) * g;   v = beta2 * v + (1 - beta2) * g^2
 *              p -= lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + eps)
 *     ADAMW    p *= 1 - lr * weight_decay, then as ADAM without the weight_decay
 *
 *     RMSPROP  g += weight_decay * p;   v = alpha * v + (1 - alpha) * g^2;   d = v
 *              centered:  a += (1 - alpha) * (g - a);   d = v - a^2
 *              u = g / (sqrt(d) + eps);   momentum > 0:  b = momentum * b + u;  u = b
 *              p -= lr * u
 *     ADAGRAD  g += weight_decay * p;   s += g^2;   p -= lr * g / (sqrt(s) + eps)
 *     LION     p -= lr * (sign(beta1 * m + (1 - beta1) * g) + weight_decay * p);   m = beta2 * m + (1 - beta2) * g
 *     LAMB     m and v as ADAM;   u = m / (1 - beta1^t) / (sqrt(v) / sqrt(1 - beta2^t) + eps) + weight_decay * p
 *              p -= lr * |p| / |u| * u,  the norms of the whole parameter; where one is 0:  p -= lr * u
 *     MUON     of two dimensions [M, N]:  b += (1 - momentum) * (g - b);   u = g + momentum * (b - g)
 *              p -= lr * (sqrt(max(1, M / N)) * O(u) + weight_decay * p),  O(u): nearly the orthogonal matrix nearest to u
 *              all others as ADAMW, with this weight_decay
 *
 *     custom   what its function builds
 *
 * The state is kept in the session, zero at first, under PyTorch's names: b as `<parameter>.momentum_buffer`, m as
 * `<parameter>.exp_avg`, v as `<parameter>.exp_avg_sq`; of RMSPROP v as `<parameter>.square_avg` and a as `<parameter>.grad_avg`, of
 * ADAGRAD s as `<parameter>.sum`.
 *
 * config  momentum, dampening, weight_decay, eps, clip_norm at least 0 and finite; 0 <= beta1, beta2, alpha < 1; nesterov
 *         needs a momentum and no dampening. A float means the decimal number that was written: 1 - 0.999f is 0.001
 *         here
 *
 * Notes     warns through the runtime's log if the graph is not set to training (clv_graph_set_training).
 * Errors    (sticky) CLV_E_STATE  no parameter has a gradient, or the graph has an optimizer already;
 *           CLV_E_VALUE  a value outside its range, config NULL;  CLV_E_NOT_FOUND  a group, or one of its patterns, covers no
 *           parameter, or groups before it take all of them; a custom optimizer has no such attribute;  CLV_E_SHAPE  its update makes
 *           what has not the shape of the parameter
 * Numerics  f32; the norm is a tree of fixed shape. A gradient that is NaN makes its elements NaN, and with
 *           clip_norm all parameters: nothing hides it.
 *           MUON iterates in f32, PyTorch in bf16.
 * Source    torch.optim.SGD, Adam, AdamW, RMSprop, Adagrad, Muon; Chen et al. 2023, arXiv:2302.06675 (Lion); You et al. 2019,
 *           arXiv:1904.00962 (LAMB); torch.nn.utils.clip_grad_norm_.
 */
CLV_TRAIN_API void clv_optimizer_add(clv_graph *graph, CLV_KEPT const clv_optimizer_config *config);

/**
 * Append an update of a running average for each parameter that has a gradient, behind the optimizer's (clv_optimizer_add). What a
 * trainer does with `ema_decay`, with the same bits, for loops of your own; what is done with averages is in train.h
 * (clv_averages_swap).
 *
 *     a = p after the first step that updates anything, later  a = decay * a + (1 - decay) * p
 *
 * The session keeps a as `<parameter>.average`, as optimizer state. A step that a scaler skips moves none. Frozen parameters and
 * buffers have none.
 *
 * decay    between 0 and 1
 *
 * Errors   (sticky) CLV_E_VALUE  decay is not between 0 and 1; there is such a tensor already;  CLV_E_STATE  no optimizer
 * Source   torch.optim.swa_utils.AveragedModel with get_ema_multi_avg_fn
 */
CLV_TRAIN_API void clv_averages_add(clv_graph *graph, double decay);

/**
 * A buffer takes a value of the step, behind all that reads it: averages of what goes through a layer, vectors of a spectral norm. Call it
 * behind clv_optimizer_add. A step that a scaler skips changes nothing.
 *
 * buffer  of clv_buffer, f32
 * value   of its shape, f32
 *
 * Errors  (sticky) CLV_E_VALUE  no buffer;  CLV_E_SHAPE, CLV_E_DTYPE  the value is no such;  CLV_E_STATE  no optimizer
 */
CLV_TRAIN_API void clv_buffer_update(clv_tensor *buffer, clv_tensor *value);

enum { CLV_HYPER_VALUES = 5 };
/** The graph's input of step values. */
static inline clv_tensor *clv_optimizer_hyper(const clv_graph *graph) {
    return clv_graph_info_get(graph).hyper;
}
/**
 * The values to feed for a step.
 *
 *     values[0]  lr                         values[2]  lr / (1 - beta1^step)
 *     values[1]  1 in the first step, or 0  values[3]  sqrt(1 - beta2^step)      values[4]  step
 *
 * graph   whose optimizer the values are for; NULL, or one without an optimizer: the betas' defaults
 * step    counts from 1
 * lr      learning rate of this step
 */
CLV_TRAIN_API void clv_optimizer_hyper_values(CLV_OR_NULL const clv_graph *graph, int64_t step, double lr,
                                              CLV_OUT float values[CLV_HYPER_VALUES]);

#ifdef __cplusplus
}
#endif
#endif
