// SPDX-License-Identifier: Apache-2.0
// Where a training stands, and the file that keeps it.
#ifndef CLV_TRAIN_STATE_H
#define CLV_TRAIN_STATE_H

#include "base/text.h"
#include "infer/weights.h"

/** The best epoch so far, where it is looked for. */
typedef struct clv__best {
    double value;
    int64_t epoch;       // from 1; 0: none
    int64_t since, step; // epochs since; the position's step when a test was counted last, 0: none was
} clv__best;

/** The schedule plateau; the position's step when an epoch was seen last, 0: none was. */
typedef struct clv__seen_plateau {
    clv_plateau state;
    int64_t step;
} clv__seen_plateau;

/**
 * What is done of a training: a step is done when its loss was read. With the session's tensors and the
 * settings it says all that follows. The session counts the steps that were handed to the devices
 * (clv_session_info.step); while the loop runs that is `step` and those whose loss is not read yet.
 */
typedef struct clv__position {
    int64_t step, epoch, index; // index: batches of the epoch
    double loss_sum;            // of the epoch's samples so far
    int64_t loss_count;
    double train_loss; // the last mean that was told
    clv__best best;
    clv__seen_plateau plateau;
} clv__position;

/** A checkpoint: tensors, settings that must agree when going on, position. */
clv_status clv__checkpoint_save(const clv_train_config *config, clv_session *session,
                                const clv__position *position);
/** The settings that a checkpoint has, one in a line. */
void clv__settings_text(const clv_train_config *config, clv_runtime *runtime, clv__text *out);
/** period_follows: the schedule's period is the training's length, and so may be another than before. */
clv_status clv__checkpoint_load(const clv_train_config *config, bool period_follows, clv_session *session,
                                clv__position *position);

#endif
