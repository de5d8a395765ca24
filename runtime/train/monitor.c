// SPDX-License-Identifier: Apache-2.0
// Which of the values that a test set tells says whether an epoch was better; and whether what is asked
// for around that can be. What is done with it in a training is in stopping.c.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/nearest.h"
#include "infer/metric.h"
#include "train/stopping.h"
#include "train/trainer.h"

int clv__monitored(const clv_train_config *config) {
    const char *name = clv__monitor_name(config);
    int i = 0;
    if (!name) return -1;
    while (i < config->n_metrics && !clv__metric_is(config->metrics[i], name)) i++;
    return i;
}

static clv_status check_monitor(const clv_train_config *config, clv__error *error) {
    const clv_loss *loss = config->loss ? config->loss : clv__loss_for(config->model);
    const int which = clv__monitored(config);
    for (int i = 0; i < config->n_losses; i++)
        if (config->losses[i].loss && !config->losses[i].loss->sum) loss = config->losses[i].loss;
    if (which < 0 && !loss->sum)
        CLV_FAIL(
            error, CLV_E_VALUE,
            "loss '%.100s' has no function `sum`, so a test set does not give it: monitor one of the metrics",
            loss->name);
    if (which < config->n_metrics) return CLV_OK;
    clv__nearest nearest = {.word = config->monitor};
    clv__nearest_offer(&nearest, "loss");
    for (int i = 0; i < config->n_metrics; i++) {
        const clv_metric *metric = config->metrics[i];
        char name[256];
        snprintf(name, sizeof name, "%.100s%s%.100s", metric->target ? metric->target : "",
                 metric->target ? ":" : "", metric->name);
        clv__nearest_offer(&nearest, name);
    }
    CLV_FAIL(error, CLV_E_NOT_FOUND,
             "there is no '%.100s' to monitor: it is 'loss' or one of the metrics asked for%s",
             config->monitor, clv__nearest_text(&nearest));
}

clv_status clv__stopping_check(const clv_train_config *config, clv__error *error) {
    CLV_TRY(clv__metrics_check(config->model, config->metrics, config->n_metrics, error));
    if (config->patience < 0)
        CLV_FAIL(error, CLV_E_VALUE, "a patience of %" PRId64 " epochs", config->patience);
    if (!(config->min_delta >= 0 && isfinite(config->min_delta)))
        CLV_FAIL(error, CLV_E_VALUE, "a min_delta of %g: it must be at least 0 and finite",
                 config->min_delta);
    const bool plateau = config->schedule.kind == CLV_SCHEDULE_PLATEAU;
    if (!clv__wants_best(config) && ((config->monitor && !plateau) || config->min_delta > 0))
        CLV_FAIL(error, CLV_E_VALUE, "%s, and none of them is given",
                 config->monitor && !plateau ? "monitor is for patience, best and the schedule plateau"
                                             : "min_delta is for patience and best");
    if (plateau && config->monitor && !config->test)
        CLV_FAIL(error, CLV_E_VALUE, "monitor: there is no test set to measure on");
    if (!config->test && (clv__wants_best(config) || config->n_metrics))
        CLV_FAIL(error, CLV_E_VALUE, "%s: there is no test set to measure on",
                 config->patience ? "patience"
                 : config->best   ? "best"
                                  : "metrics");
    return clv__wants_best(config) || (plateau && config->test) ? check_monitor(config, error) : CLV_OK;
}
