// SPDX-License-Identifier: Apache-2.0
// What is kept of a training: its session's tensors, and where it stands.
#ifndef CLV_TRAIN_STATE_H
#define CLV_TRAIN_STATE_H

#include "base/error.h"
#include "cleave/train.h"
#include "device/device.h"

/** Add the session's tensors of a category to an archive, their names after the prefix. */
clv_status clv__state_put(clv_session *session, clv_category category, const char *prefix,
                          clv_archive *archive);
/** Add what is used of the parameters and buffers, under their names: running averages where the session has
 *  them and uses them. */
clv_status clv__weights_put(clv_session *session, clv_archive *archive);
/** Add what the weights are of, if the session knows it (weights_info.c). */
clv_status clv__weights_tell(const clv_session *session, clv_archive *archive);
/** Which tensors of a session stand in an archive, and under which names. */
typedef struct clv__section {
    clv_category category;
    const char *prefix; // before their names there
    const char *except; // patterns of those that are not read; NULL: none
    bool whole;         // it makes no sense to leave some out
} clv__section;

/** The way back. Names, dtypes and shapes must agree; nothing is changed before they do. `path` is for
 *  sentences. */
clv_status clv__state_take(clv_session *session, const clv__section *section, const clv_archive *archive,
                           const char *path, clv__error *error);

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

/** What names of parameters and buffers begin with in a checkpoint. */
#define CLV__MODEL_SECTION "model."

/** Is it an archive that clv__checkpoint_save wrote? */
bool clv__checkpoint_is(const clv_archive *archive);

/** A checkpoint: tensors, settings that must agree when going on, position. */
clv_status clv__checkpoint_save(const clv_train_config *config, clv_session *session,
                                const clv__position *position);
/** period_follows: the schedule's period is the training's length, and so may be another than before. */
clv_status clv__checkpoint_load(const clv_train_config *config, bool period_follows, clv_session *session,
                                clv__position *position);

#endif
