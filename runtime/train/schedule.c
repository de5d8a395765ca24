// SPDX-License-Identifier: Apache-2.0
// Learning rate schedules: pure functions of the position, and for PLATEAU of what was seen so far.
// Source: torch.optim.lr_scheduler (StepLR, CosineAnnealingLR in its closed form, ExponentialLR,
// PolynomialLR, OneCycleLR, LinearLR, SequentialLR, ReduceLROnPlateau), release 2.0.
#include "train/trainer.h"

#include <math.h>

static const double PI = 3.14159265358979323846;

/** From one value to another along half a cosine, of which a part is done. */
static double along_cosine(double from, double to, double part) {
    return to + (from - to) * (1 + cos(PI * part)) / 2;
}

static double one_cycle(const clv_schedule *schedule, double lr, int64_t t) {
    const double first = lr / (schedule->div_factor > 0 ? schedule->div_factor : 25);
    const double last = first / (schedule->final_factor > 0 ? schedule->final_factor : 1e4);
    const double end = (double)(schedule->period - 1);
    const double top = (schedule->turn > 0 ? schedule->turn : 0.3) * (double)schedule->period - 1;
    const double at = (double)t < end ? (double)t : end;
    if (at <= top) return along_cosine(first, lr, top > 0 ? at / top : 1);
    return along_cosine(lr, last, end > top ? (at - top) / (end - top) : 1);
}

static double polynomial(const clv_schedule *schedule, double lr, int64_t t) {
    const double left = t < schedule->period ? 1 - (double)t / (double)schedule->period : 0;
    return schedule->min_lr + (lr - schedule->min_lr) * pow(left, schedule->gamma != 0 ? schedule->gamma : 1);
}

static double rate(const clv_schedule *schedule, double lr, int64_t t) {
    if (schedule->kind == CLV_SCHEDULE_EXPONENTIAL)
        return lr * pow(schedule->gamma != 0 ? schedule->gamma : 0.95, (double)t);
    if (schedule->period < 1) return lr;
    switch (schedule->kind) {
    case CLV_SCHEDULE_STEP:
        return lr * pow(schedule->gamma != 0 ? schedule->gamma : 0.1, (double)(t / schedule->period));
    case CLV_SCHEDULE_COSINE: return along_cosine(lr, schedule->min_lr, (double)t / (double)schedule->period);
    case CLV_SCHEDULE_POLYNOMIAL: return polynomial(schedule, lr, t);
    case CLV_SCHEDULE_ONE_CYCLE: return one_cycle(schedule, lr, t);
    default: return lr;
    }
}

double clv_schedule_lr(const clv_schedule *schedule, double lr, int64_t epoch, int64_t step) {
    const int64_t warmup = schedule->warmup, warm = schedule->warmup_epochs ? epoch : step;
    int64_t t = schedule->per_step ? step : epoch;
    double factor = 1;
    if (warmup > 0 && schedule->kind != CLV_SCHEDULE_ONE_CYCLE) {
        if (warm < warmup) factor = (double)(warm + 1) / (double)warmup;
        if (schedule->per_step != schedule->warmup_epochs) t = t > warmup ? t - warmup : 0;
    }
    return factor * rate(schedule, lr, t);
}

/** Better by more than a part of the best. */
static bool is_better(const clv_schedule *schedule, const clv_plateau *state, double value, bool larger) {
    const double part = schedule->turn > 0 ? schedule->turn : schedule->turn < 0 ? 0 : 1e-4;
    if (!state->seen) return true;
    return larger ? value > state->best * (1 + part) : value < state->best * (1 - part);
}

void clv_plateau_see(const clv_schedule *schedule, clv_plateau *state, double lr, double value, bool larger) {
    static const double LEAST = 1e-8; // a smaller drop is none
    if (!(state->lr > 0)) state->lr = lr;
    if (!isnan(value) && is_better(schedule, state, value, larger)) {
        state->best = value;
        state->seen = true;
        state->worse = 0;
    } else {
        state->worse++;
    }
    if (state->worse < (schedule->period > 0 ? schedule->period : 11)) return;
    const double dropped = state->lr * (schedule->gamma != 0 ? schedule->gamma : 0.1);
    const double next = dropped > schedule->min_lr ? dropped : schedule->min_lr;
    if (state->lr - next > LEAST) state->lr = next;
    state->worse = 0;
}

double clv__trainer_lr(const clv_trainer *trainer, int64_t epoch, int64_t step) {
    const clv_train_config *config = trainer->config;
    const double now = trainer->replay_lr > 0 ? trainer->replay_lr : trainer->position.plateau.state.lr;
    return clv_schedule_lr(&config->schedule, now > 0 ? now : config->lr, epoch, step);
}
