// SPDX-License-Identifier: Apache-2.0
// Metrics of an evaluation, added up batch by batch: metric.c.
#ifndef CLV_TRAIN_METRIC_H
#define CLV_TRAIN_METRIC_H

#include "base/error.h"
#include "cleave/train.h"

/** Are they whole, each once, and do they fit a model whose samples have results of so many elements? */
clv_status clv__metrics_check(const clv_model *model, const clv_metric *const *metrics, int n,
                              clv__error *error);
clv_status clv__metrics_fit(const clv_model *model, const clv_metric *const *metrics, int n, int64_t output,
                            clv__error *error);
/** Add a batch's sums to `values`. */
void clv__metrics_add(const clv_metric *const *metrics, int n, const float *output, const void *target,
                      const clv_loss_sizes *sizes, clv_metric_value values[CLV_MOST_METRICS]);
/** Sums over so many samples become what is told. */
void clv__metrics_end(const clv_metric *const *metrics, int n, int64_t samples,
                      clv_metric_value values[CLV_MOST_METRICS]);

#endif
