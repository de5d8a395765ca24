// SPDX-License-Identifier: Apache-2.0
// Learning rate schedules: pure functions of the position.
// Source: torch.optim.lr_scheduler (StepLR, CosineAnnealingLR in its closed form), release 2.0.
#include "cleave/train.h"

#include <math.h>

double clv_schedule_lr(const clv_schedule *schedule, double lr, int64_t epoch, int64_t step) {
    static const double pi = 3.14159265358979323846;
    int64_t t = schedule->per_step ? step : epoch;
    if (schedule->period < 1) return lr;
    switch (schedule->kind) {
    case CLV_SCHEDULE_STEP:
        return lr * pow(schedule->gamma != 0 ? schedule->gamma : 0.1, (double)(t / schedule->period));
    case CLV_SCHEDULE_COSINE:
        return schedule->min_lr +
               (lr - schedule->min_lr) * (1 + cos(pi * (double)t / (double)schedule->period)) / 2;
    default: return lr;
    }
}
