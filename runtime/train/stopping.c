// SPDX-License-Identifier: Apache-2.0
// The best epoch: what the test set told of each is compared, the weights of the best are kept in a file,
// and the training ends after too many epochs that were no better. What is known of it lies in the
// position, and so in checkpoints. These are written before their epoch is tested, so that test comes
// first when one goes on.
#include "train/stopping.h"

#include <math.h>

#include "train/loop.h"

bool clv__training_untested(const clv__training *loop) {
    const clv_trainer *trainer = loop->trainer;
    const clv__position *position = &trainer->position;
    return trainer->predictor && clv__wants_best(trainer->config) && position->step > 0 &&
           position->index == 0 && position->best.step != position->step;
}

bool clv__training_exhausted(const clv__training *loop, int64_t more) {
    const int64_t patience = loop->trainer->config->patience;
    return patience > 0 && loop->trainer->position.best.since + more >= patience;
}

static clv_status write_best(clv__training *loop) {
    const clv_trainer *trainer = loop->trainer;
    const clv_train_config *config = trainer->config;
    if (!config->best) return CLV_OK;
    CLV_TRY(clv__training_check(loop));
    return config->save_best ? config->save_best(config->user, trainer->session, config->best)
                             : clv_weights_save(trainer->session, config->best);
}

clv_status clv__training_judge(clv__training *loop, const clv_metrics *test, int64_t epoch, bool *best) {
    clv_trainer *trainer = loop->trainer;
    const clv_train_config *config = trainer->config;
    clv__best *so_far = &trainer->position.best;
    *best = false;
    if (!clv__wants_best(config)) return CLV_OK;
    const int which = clv__monitored(config);
    const double value = which < 0 ? test->loss : test->values[which].value;
    const double gain = which >= 0 && config->metrics[which]->larger_is_better ? value - so_far->value
                                                                               : so_far->value - value;
    *best = isfinite(value) && (!so_far->epoch || gain > config->min_delta);
    so_far->step = trainer->position.step;
    so_far->since++;
    if (!*best) return CLV_OK;
    *so_far = (clv__best){.value = value, .epoch = epoch, .step = trainer->position.step};
    return write_best(loop);
}
