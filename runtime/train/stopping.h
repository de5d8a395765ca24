// SPDX-License-Identifier: Apache-2.0
// The best epoch of a training, and an end when there is none better: monitor.c, stopping.c.
#ifndef CLV_TRAIN_STOPPING_H
#define CLV_TRAIN_STOPPING_H

#include <string.h>

#include "base/error.h"
#include "cleave/train.h"

/** Is the best epoch looked for? */
static inline bool clv__wants_best(const clv_train_config *config) {
    return config->patience > 0 || config->best;
}
/** Are patience, min_delta, monitor, best and metrics as they can be? */
clv_status clv__stopping_check(const clv_train_config *config, clv__error *error);
/** Which of the metrics is monitored; -1: the loss; n_metrics: there is no such one. */
int clv__monitored(const clv_train_config *config);
/** What is monitored, for checkpoints; NULL: the loss. */
static inline const char *clv__monitor_name(const clv_train_config *config) {
    return config->monitor && strcmp(config->monitor, "loss") ? config->monitor : NULL;
}

#endif
