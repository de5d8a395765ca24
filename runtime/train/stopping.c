// SPDX-License-Identifier: Apache-2.0
// The best epoch: the test results of all epochs are compared, the weights of the best are kept in a file,
// and the training ends after too many epochs that were no better. What is known of it lies in the
// position, and so in checkpoints. A checkpoint is written before its epoch is tested, so a resumed
// training begins with that test.
#include "train/stopping.h"

#include <math.h>

#include "train/loop.h"

bool clv__training_untested(const clv__training *loop) {
    const clv_trainer *trainer = loop->trainer;
    const clv__position *position = &trainer->position;
    const bool judged = !clv__trainer_tests(trainer) || !clv__wants_best(trainer->config) ||
                        position->best.step == position->step;
    const bool seen =
        trainer->config->schedule.kind != CLV_SCHEDULE_PLATEAU || position->plateau.step == position->step;
    return position->step > 0 && position->index == 0 && !(judged && seen);
}

bool clv__training_exhausted(const clv__training *loop, int64_t more) {
    const int64_t patience = loop->trainer->config->patience;
    return patience > 0 && loop->trainer->position.best.since + more >= patience;
}

static clv_status write_best(clv__training *loop) {
    const clv_trainer *trainer = loop->trainer;
    const clv_train_config *config = trainer->config;
    if (!config->best) return CLV_OK;
    CLV_TRY(clv__ranks_gather(trainer));
    if (!clv__trainer_writes(trainer)) return CLV_OK;
    CLV_TRY(clv__training_check(loop));
    return config->save_best ? config->save_best(config->user, trainer->session, config->best)
                             : clv_weights_save(trainer->session, config->best);
}

/** What is monitored; *larger: is more of it better? */
static double monitored(const clv_train_config *config, const clv_metrics *test, bool *larger) {
    const int which = clv__monitored(config);
    *larger = which >= 0 && config->metrics[which]->larger_is_better;
    return which < 0 ? test->loss : test->values[which].value;
}

void clv__training_see_plateau(clv_trainer *trainer) {
    const clv_train_config *config = trainer->config;
    clv__position *position = &trainer->position;
    if (config->schedule.kind != CLV_SCHEDULE_PLATEAU || trainer->replay || position->index ||
        position->plateau.step == position->step)
        return; // a part of an epoch is none
    bool larger = false;
    const double value = clv__trainer_tests(trainer) ? monitored(config, &trainer->result.test, &larger)
                                                     : position->train_loss;
    clv_plateau_see(&config->schedule, &position->plateau.state, config->lr, value, larger);
    position->plateau.step = position->step;
}

clv_status clv__training_judge(clv__training *loop, const clv_metrics *test, int64_t epoch, bool *best) {
    clv_trainer *trainer = loop->trainer;
    const clv_train_config *config = trainer->config;
    clv__best *so_far = &trainer->position.best;
    *best = false;
    if (!clv__wants_best(config)) return CLV_OK;
    bool larger;
    const double value = monitored(config, test, &larger);
    const double gain = larger ? value - so_far->value : so_far->value - value;
    *best = isfinite(value) && (!so_far->epoch || gain > config->min_delta);
    so_far->step = trainer->position.step;
    so_far->since++;
    if (!*best) return CLV_OK;
    *so_far = (clv__best){.value = value, .epoch = epoch, .step = trainer->position.step};
    return write_best(loop);
}
