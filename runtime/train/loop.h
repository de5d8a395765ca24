// SPDX-License-Identifier: Apache-2.0
// Inside of the trainer's loop: a training under way (loop.c), what it does when a device fails (lost.c), and
// how shares follow what was measured (adapt.c).
#ifndef CLV_TRAIN_LOOP_H
#define CLV_TRAIN_LOOP_H

#include "train/balance.h"
#include "train/trainer.h"

enum { CLV__MOST_HANDED = 2 }; // the step whose loss is read next, and the one that was handed over after it

/** A step that was handed to the devices and whose loss was not read yet. */
typedef struct clv__handed {
    clv__step *step;
    int64_t ticket, n;
    double lr, since; // since: when it was handed over
    bool first;       // of its run, which compiles kernels
} clv__handed;

/** Where counters stood when an epoch's steps began. */
typedef struct clv__watch {
    size_t steps;
    double seconds;
    clv_activity activity[CLV__MOST_REPLICAS];
    bool broken; // a device was lost since
} clv__watch;

/** What a rank tells of its steps of an epoch, in seconds. busy 0: too little is known. */
typedef struct clv__rank_pace {
    double busy, step;
    double startup; // until its first step was done
} clv__rank_pace;

typedef struct clv__training {
    clv_trainer *trainer;
    clv_loader *loader;
    clv__error *error;
    clv__handed handed[CLV__MOST_HANDED]; // the oldest first
    int n_handed;
    clv__step *last_step; // for the gradients: the last step that was done
    int64_t last_ticket;
    double last_time; // when the last loss was read; 0: none was since a pause (evaluation, checkpoint)
    bool first_read;  // the loss of this process's first step was read
    double epoch_seconds;
    int64_t saved_step;                   // the last step whose checkpoint is on disk; -1: none
    const char *saved_path;               // in this file
    bool stop;                            // a callback asked for it
    bool diverged;                        // a loss was not finite, and the log has a warning of it
    int64_t not_finite, not_finite_since; // losses in a row that are not; the step of the first
    bool told;                            // the error already says what is lost with a device
    double startup_seconds;               // until the first step of this process was done
    clv__watch watch;
    clv__rank_pace pace; // of this rank, in the last epoch
    clv__balance balance;
    bool told_of_loss; // replicas are slower than the first alone
    bool wants_rows;   // of the next epoch's batches:
    int64_t rows[CLV__MOST_REPLICAS];
    double saved_part; // of a step, as it is promised
} clv__training;

/** Read the loss of the oldest step handed over, tell it, and count the step as done. */
clv_status clv__training_read(clv__training *loop);
/** The step that was counted last had this loss: CLV_E_NOT_FINITE if the training is to end because of it. */
clv_status clv__training_see_loss(clv__training *loop, double loss);
/** CLV_E_NOT_FINITE if a parameter is not finite, unless trainings go on with such. */
clv_status clv__training_check(clv__training *loop);
/** At the end: has the last epoch a loss that is a number? */
clv_status clv__training_check_loss(clv__training *loop);
/** Write the checkpoint, if one is wanted and this position is not on disk. */
clv_status clv__training_save(clv__training *loop);

/** Does a checkpoint stand at the end of an epoch whose test is not counted? */
bool clv__training_untested(const clv__training *loop);
/** Has there been no better epoch for too long, once `more` of them are no better? */
bool clv__training_exhausted(const clv__training *loop, int64_t more);
/** An epoch ended, and was tested if there is a test set: the schedule plateau looks at what came of it. */
void clv__training_see_plateau(clv_trainer *trainer);
/** An epoch was tested: is it the best so far? Then its weights are written, if that is asked for. */
clv_status clv__training_judge(clv__training *loop, const clv_metrics *test, int64_t epoch, bool *best);

/**
 * A step failed: `status`, with its sentence. Count what was done all the same; then either go on without the
 * device (CLV_OK: continue from the position), or save what there is and fail with a sentence that says what
 * is lost. A status that is not a device's failure is returned as it is.
 */
clv_status clv__training_lost(clv__training *loop, clv_status status);
/** Begin to look at how busy the replicas are; the steps handed over are done. */
void clv__watch_begin(clv__training *loop);
/** Look, and decide whether the next epoch's batches should be shared out in another way. */
void clv__watch_end(clv__training *loop);
/** Do what was decided. */
clv_status clv__training_adapt(clv__training *loop);

/** A training ends with `status` outside of its steps (evaluation, a checkpoint). If it is a device's
 *  failure, say what is lost with it. Returns the status. */
clv_status clv__training_failed(clv__training *loop, clv_status status);

#endif
