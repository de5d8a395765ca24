// SPDX-License-Identifier: Apache-2.0
// Metrics of an evaluation, added up batch by batch: metric.c.
#ifndef CLV_INFER_METRIC_H
#define CLV_INFER_METRIC_H

#include "base/error.h"
#include "cleave/train.h"

/** Is `name` what it is called: `accuracy`, or `kind:accuracy` where it names its target? */
bool clv__metric_is(const clv_metric *metric, const char *name);
/** Are they whole, each once, of targets that there are? And do they fit a model whose results have so many
 *  elements of each sample (by target)? */
clv_status clv__metrics_check(const clv_model *model, const clv_metric *const *metrics, int n,
                              clv__error *error);
clv_status clv__metrics_fit(const clv_model *model, const clv_metric *const *metrics, int n,
                            const int64_t outputs[CLV_MAX_PORTS], clv__error *error);
/** Add a batch's sums of the model's i-th target to `values`. */
void clv__metrics_add(const clv_model *model, int i, const clv_metric *const *metrics, int n,
                      const float *output, const void *target, const clv_loss_sizes *sizes,
                      clv_metric_value values[CLV_MOST_METRICS]);
/** Sums over so many samples, by target, become what is told. */
void clv__metrics_end(const clv_model *model, const clv_metric *const *metrics, int n,
                      const double samples[CLV_MAX_PORTS], clv_metric_value values[CLV_MOST_METRICS]);

#endif
