// SPDX-License-Identifier: Apache-2.0
// What trainings and evaluations ask of a loss besides its functions.
#ifndef CLV_TRAIN_LOSSES_H
#define CLV_TRAIN_LOSSES_H

#include "cleave/train.h"

/** Does it smooth labels, by the double that `user` points to? */
bool clv__loss_smooths(const clv_loss *loss);
/** Are targets told right or wrong: classes, or labels of bce_with_logits? */
bool clv__loss_tells_right(const clv_loss *loss, clv_port target);
/** How many of the targets are told right; 0 where that is not told. */
int64_t clv__loss_count_right(const clv_loss *loss, clv_port target, const float *output, const void *targets,
                              const clv_loss_sizes *sizes);

#endif
