// SPDX-License-Identifier: Apache-2.0
// What trainings and evaluations ask of a loss besides its functions.
#ifndef CLV_INFER_LOSSES_H
#define CLV_INFER_LOSSES_H

#include "infer/step.h"

/** Does it smooth labels, by the double that `user` points to? */
bool clv__loss_smooths(const clv_loss *loss);
/** Append it to the graph, as its `build`, with what each label counts (clv_nn_label_weights). */
clv_tensor *clv__loss_build_weighted(const clv_loss *loss, clv_tensor *output, clv_tensor *target,
                                     clv_tensor *weight);
/** The sum over the samples, and how much they count together: *counted becomes more by that. */
double clv__loss_sum(const clv__target_loss *of, const float *output, const void *targets,
                     const clv_loss_sizes *sizes, double *counted);
/** How many of the targets count. */
int64_t clv__loss_counted(clv_port target, const void *targets, const clv_loss_sizes *sizes);
/** Are targets told right or wrong: classes, or labels of bce_with_logits or focal? */
bool clv__loss_tells_right(const clv_loss *loss, clv_port target);
/** How many of the targets are told right; 0 where that is not told. */
int64_t clv__loss_count_right(const clv_loss *loss, clv_port target, const float *output, const void *targets,
                              const clv_loss_sizes *sizes);

/** The loss and the weight of each of the model's targets. CLV_E_VALUE, CLV_E_NOT_FOUND */
clv_status clv__losses_find(clv_runtime *runtime, const clv_train_config *config,
                            clv__target_loss out[CLV_MAX_PORTS]);
/** The loss of a target that none is given for. */
const clv_loss *clv__loss_usual(clv_port target);
/** What is usual for a model's first target: `cross_entropy` of classes, else `mse`. */
const clv_loss *clv__loss_for(const clv_model *model);

#endif
