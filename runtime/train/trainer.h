// SPDX-License-Identifier: Apache-2.0
// Inside of the trainer: its plans (trainer.c) and its loop (loop.c).
#ifndef CLV_TRAIN_TRAINER_H
#define CLV_TRAIN_TRAINER_H

#include "infer/losses.h"
#include "infer/placed.h"
#include "infer/predictor.h"
#include "train/state.h"

enum { CLV__FULL, CLV__LAST, CLV__STEPS }; // LAST: what is left at the end of an epoch; unused if nothing is

/** How busy the devices of the first plan were; busy.c. */
typedef struct clv__busy {
    clv_activity *last;       // by device: when a step was read last
    double *seconds, elapsed; // with work, by device; of the steps they are of
} clv__busy;

struct clv_trainer {
    clv_runtime *runtime;
    const clv_train_config
        *config;            // defaults filled in, layers placed; owned, and fixed once the trainer is made
    clv__match match;       // of the model's ports with the samples to train on
    int64_t batches, steps; // of an epoch; of the whole training
    bool period_follows;    // the schedule's period was left open: it is the training's length
    clv__step step[CLV__STEPS];
    clv_predictor *predictor; // NULL without a test set
    double replay_lr;         // of a replay: where the schedule plateau stands; 0: nowhere
    bool replay; // of another's steps: nothing is tested, nothing is looked for that a test set tells
    clv_device **replicas; // NULL without
    double *shares;        // of the replicas, 0 for one that is lost; NULL without
    char *evaluated_place; // of layers beside replicas; NULL without
    double single;         // seconds of a step without the other replicas, at most; 0: not measured
    clv_device **devices;  // of the training, the first is the first; those that are lost too
    clv_plan_memory *held; // by device: by plans that were made for other shares before
    int n_devices;
    clv_lost_device *lost; // their reasons are owned
    size_t n_lost, lost_room;
    char *ranks_place;       // the placement, of layers on devices of several ranks; NULL without
    clv_place_choice *place; // NULL: none was to be chosen
    clv_session *session;
    clv__position position;  // what is done; see clv__position
    clv_train_result result; // without what `position` knows
    double *times;           // of the steps, in seconds
    size_t n_times, times_room;
    int64_t timed_images; // of the steps in `times`
    double timed_seconds;
    clv__busy busy;
};

/** Is there a test set? And does this rank write files? */
static inline bool clv__trainer_tests(const clv_trainer *trainer) {
    return trainer->config->test && !trainer->replay;
}
bool clv__trainer_writes(const clv_trainer *trainer);
/** Has each of several ranks a part of every batch? Not where layers lie on devices of several. */
bool clv__trainer_shares_out(const clv_train_config *config);
/** Does the placement put layers on devices of several ranks? The ranks know it from then on. */
void clv__ranks_look(const clv_train_config *config);
/** Say in the placement that a device without a rank is rank 0's, as all ranks must plan alike. */
clv_status clv__ranks_place(clv_trainer *trainer, clv_train_config *config);
/** Shares of each batch for the ranks: given, or measured on all of them at once, a few steps each; equal
 *  ones otherwise. On all ranks. */
clv_status clv__ranks_share(const clv_trainer *trainer, const clv_train_config *config);
/** What layers on devices of other ranks have learnt is known on rank 0. On all ranks. */
clv_status clv__ranks_gather(const clv_trainer *trainer);
/** Do all ranks train the same? Else CLV_E_VALUE, with what differs. */
clv_status clv__ranks_compare(const clv_train_config *config, const clv_trainer *trainer);
/** Buffers, running statistics for example, are on all ranks as on the first. */
clv_status clv__ranks_take_buffers(clv_trainer *trainer);
/** This rank cannot begin: wait until the others know. Returns the status, with its sentence. */
clv_status clv__ranks_told(clv_runtime *runtime, struct clv_ranks *ranks, clv_status status);
/** Can these settings be those of several ranks? CLV_E_VALUE, CLV_E_UNSUPPORTED. */
clv_status clv__ranks_check(clv_runtime *runtime, const clv_train_config *config);

/** Of a training step: model, loss, gradients, updates. */
clv__graph_maker clv__step_graph;
/** Do label smoothing and mixup make sense for the model and its losses? CLV_E_VALUE. */
clv_status clv__labels_check(clv_runtime *runtime, const clv_train_config *config);
/** The loss of each target as clv__losses_find has it, in `room` where it smooths labels. */
clv_status clv__labels_losses(clv_runtime *runtime, const clv_train_config *config,
                              clv__target_loss out[CLV_MAX_PORTS], clv_loss room[CLV_MAX_PORTS]);
/** The targets that are fed to a step, as the loader gives them. */
void clv__labels_inputs(clv_graph *graph, const clv_train_config *config, int64_t batch, clv_tensor **out);
/** What a training reads its samples with, from a position on. */
clv_loader_config clv__labels_loader(const clv_train_config *config, int64_t epoch, int64_t index);
/** The output with a parameter's gradient, if the config asks for gradients; NULL if it has none. */
clv_tensor *clv__step_gradient(const clv__step *step, const clv_tensor *parameter);

/** Time a few steps on each replica alone, with an equal part of the batch, and set shares in proportion to
 *  speed, in whole samples. Where one has no room for that, shares are equal, with a warning. single: seconds
 *  that the first alone would need at most for a step of a whole batch; 0: not measured. Takes no memory that
 *  it does not give back, and leaves peaks as they were. */
clv_status clv__measure_shares(clv_runtime *runtime, const clv_train_config *config, double *shares,
                               double *single);

/** A trainer that does another's steps again, without its test set. */
clv_status clv__trainer_replay(const clv_trainer *trainer, const clv_train_config *config, clv_trainer **out);

/** Give up the runs; their plans and the session stay. */
void clv__trainer_rest(clv_trainer *trainer);
/** Plan the steps again for other shares, 0 for a replica that takes no part any more, and reserve what they
 *  need. If that fails the steps are as they were before, at rest. */
clv_status clv__trainer_share(clv_trainer *trainer, const double *shares);

/** Take the memory that all plans need. */
clv_status clv__trainer_reserve(const clv_trainer *trainer);
clv_status clv__trainer_refused(const clv_trainer *trainer, clv_status status);
/** Samples of a batch that each replica computes. */
void clv__trainer_rows(const clv_trainer *trainer, int64_t batch, int64_t *rows);

/** The learning rate of a step, where the training stands. */
double clv__trainer_lr(const clv_trainer *trainer, int64_t epoch, int64_t step);

/** A step was read: it took so many seconds, or is not to be counted (0). */
clv_status clv__trainer_see_busy(clv_trainer *trainer, double seconds);

/** All plans of the trainer; returns how many. */
int clv__trainer_plans(const clv_trainer *trainer, clv_plan *plans[CLV__STEPS + 1]);

/** clv_trainer_device_info.busy (busy.c). */
double clv__trainer_busy(const clv_trainer *trainer, const clv_device *device);

#endif
