// SPDX-License-Identifier: Apache-2.0
// Inside of the trainer: its plans (trainer.c) and its loop (loop.c).
#ifndef CLV_TRAIN_TRAINER_H
#define CLV_TRAIN_TRAINER_H

#include "cleave/generate.h"
#include "train/state.h"

enum { CLV__MOST_FED = 2 * CLV_MAX_PORTS };

/** Which of a dataset's inputs and targets each of a model's is. */
typedef struct clv__match {
    int input[CLV_MAX_PORTS], target[CLV_MAX_PORTS];
} clv__match;

/** The loss of one of a model's targets. */
typedef struct clv__target_loss {
    const clv_loss *loss;
    double weight;
    const float *class_weights; // of its classes; NULL: all alike
    bool ignores;               // labels of the samples that are trained on may count nothing
} clv__target_loss;

/** A training step, or a forward pass, for one batch size. */
typedef struct clv__step {
    int64_t batch;
    clv_graph *graph;
    clv_tensor *fed[CLV__MOST_FED];     // the model's inputs, then, of a training step, its targets
    int n_inputs, n_targets;            // n_targets: of those that are fed
    clv_tensor *outputs[CLV_MAX_PORTS]; // of a forward pass
    clv_tensor *loss, *hyper;           // of a training step
    clv_plan *plan;
    clv_run *run; // NULL until clv_trainer_run
} clv__step;

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

/** Makes the graph of what is planned for a batch. shares: of the replicas, 0 for one that takes no part;
 *  NULL: equal. */
typedef clv_status clv__graph_maker(clv_runtime *runtime, const clv_train_config *config,
                                    const double *shares, int64_t batch, clv__step *step);
/** Of a training step: model, loss, gradients, updates. */
clv__graph_maker clv__step_graph;
/** Of a forward pass: model, logits. */
clv__graph_maker clv__forward_graph;
/** Does the model take the dataset's samples, and do targets fit its results? By their names, or the only
 *  ones where the dataset has no names. CLV_E_NOT_FOUND, CLV_E_SHAPE, CLV_E_DTYPE, CLV_E_VALUE. */
clv_status clv__match_data(clv_runtime *runtime, const clv_model *model, const clv_dataset *dataset,
                           clv__match *match);
/** The loss and the weight of each of the model's targets. CLV_E_VALUE, CLV_E_NOT_FOUND */
clv_status clv__losses_find(clv_runtime *runtime, const clv_train_config *config,
                            clv__target_loss out[CLV_MAX_PORTS]);
/** The loss of a target that none is given for. */
const clv_loss *clv__loss_usual(clv_port target);
/** Give a run a batch for all the model's inputs and, where they are fed, targets. */
clv_status clv__step_feed(const clv__step *step, const clv__match *match, const clv_batch *batch);
/** The same from an array for each. */
clv_status clv__step_feed_arrays(const clv__step *step, const void *const *fed);
/** Bytes of the largest of them. */
size_t clv__step_fed_bytes(const clv__step *step);
/** Do label smoothing and mixup make sense for the model and its losses? CLV_E_VALUE. */
clv_status clv__labels_check(clv_runtime *runtime, const clv_train_config *config);
/** The loss of each target as clv__losses_find has it, in `room` where it smooths labels. */
clv_status clv__labels_losses(clv_runtime *runtime, const clv_train_config *config,
                              clv__target_loss out[CLV_MAX_PORTS], clv_loss room[CLV_MAX_PORTS]);
/** The targets that are fed to a step, as the loader gives them. */
void clv__labels_inputs(clv_graph *graph, const clv_train_config *config, int64_t batch, clv_tensor **out);
/** What a training reads its samples with, from a position on. */
clv_loader_config clv__labels_loader(const clv_train_config *config, int64_t epoch, int64_t index);
/** How it is planned. */
clv_plan_config clv__step_plan_config(const clv_train_config *config, clv__graph_maker *make);
/** The graph and its plan. same_session: as clv_plan_config. */
clv_status clv__step_build(clv_runtime *runtime, const clv_train_config *config, clv__graph_maker *make,
                           const double *shares, int64_t batch, const clv_plan *same_session,
                           clv__step *step);
void clv__step_destroy(clv__step *step);
/** The output with a parameter's gradient, if the config asks for gradients; NULL if it has none. */
clv_tensor *clv__step_gradient(const clv__step *step, const clv_tensor *parameter);

/** What a plan is told of it: nothing with replicas, whose graph says it itself. */
const char *clv__placement_of_plan(const clv_placement *placement);
/** The same without replicas: what was replicated is on a device, placed layers are where they are. The
 *  caller frees it; NULL: no memory. */
char *clv__placement_beside(const clv_placement *placement, const char *device);
/** Choose devices for the layers of a graph if the placement wants that, and make it say what was chosen;
 *  *choice stays NULL if not. */
clv_status clv__placement_choose(clv_placement *placement, clv_graph *graph, const clv_plan_config *plan,
                                 clv_place_choice **choice);

/** What is timed on each replica alone: once made, so many seconds. */
typedef struct clv__timing clv__timing;
struct clv__timing {
    clv_runtime *runtime;
    const void *config; // of a training or a predictor
    clv_status (*seconds)(const clv__timing *timing, const char *spec, int64_t batch, double *seconds);
};
/** n times what one replica does, on values of zero. */
typedef struct clv__rounds {
    clv_status (*run)(const struct clv__rounds *todo, int n);
    const void *what;
    const float *zeros;
} clv__rounds;
/** Seconds of one of them, of the quickest round. bytes: of the zeros. */
clv_status clv__time_rounds(clv_runtime *runtime, clv__rounds todo, size_t bytes, double *seconds);
/** Shares in proportion to speed (clv__measure_shares). */
clv_status clv__measure(const clv__timing *timing, const clv_placement *placement, int64_t whole,
                        double *shares, double *single);

/** Where a replica alone is timed: placed layers stay where they are. The caller frees *place. */
clv_status clv__measured_place(clv_runtime *runtime, clv_placement *placement, const char *spec,
                               char **place);
/** The devices of what was timed: their peaks become as they were. */
enum { CLV__MOST_MEASURED = 64 };
typedef struct clv__measured_devices {
    clv_device *device[CLV__MOST_MEASURED];
    int n;
} clv__measured_devices;
clv__measured_devices clv__measured_on(const clv_plan *plan);
void clv__measured_end(const clv__measured_devices *used);

/** Time a few steps on each replica alone, with an equal part of the batch, and set shares in proportion to
 *  speed, in whole samples. Where one has no room for that, shares are equal, with a warning. single: seconds
 *  that the first alone would need at most for a step of a whole batch; 0: not measured. Takes no memory that
 *  it does not give back, and leaves peaks as they were. */
clv_status clv__measure_shares(clv_runtime *runtime, const clv_train_config *config, double *shares,
                               double *single);

/** The same for forward passes of a predictor in such batches. */
clv_status clv__measure_forward_shares(clv_runtime *runtime, const clv_predictor_config *config,
                                       int64_t batch, double *shares);
/** One forward pass of a whole batch of zeros, until it is done; its results are dropped. */
clv_status clv__predictor_time(clv_predictor *predictor, const void *zeros);
/** Bytes of a batch of its largest input. */
size_t clv__predictor_fed_bytes(const clv_predictor *predictor);

/** Are place and replicas as they can be: layers that are named beside replicas, devices that are there, each
 *  once, each with a sample of the batch at least? */
clv_status clv__placement_check(clv_runtime *runtime, const clv_placement *placement, int64_t batch);

/** Where shares do not fit budgets and memory, others that do and are near to them; as they were if none are
 *  found. */
clv_status clv__shares_fit(clv_runtime *runtime, const clv_train_config *config, clv__graph_maker *make,
                           double *shares);
/** The shares to begin with, as far as planning tells (clv_train_shares, clv_predict_shares). `call` is for
 *  sentences. */
clv_status clv__shares_planned(clv_runtime *runtime, const clv_train_config *config, clv__graph_maker *make,
                               const char *call, double *shares);

/** A trainer that does another's steps again, without its test set. */
clv_status clv__trainer_replay(const clv_trainer *trainer, const clv_train_config *config, clv_trainer **out);

/** Give up the runs; their plans and the session stay. */
void clv__trainer_rest(clv_trainer *trainer);
/** Plan the steps anew for other shares, 0 for a replica that takes no part any more, and reserve what they
 *  need. If that fails the steps are as they were before, at rest. */
clv_status clv__trainer_share(clv_trainer *trainer, const double *shares);

/** Take the memory that all plans need. */
clv_status clv__trainer_reserve(const clv_trainer *trainer);
/** What would make it fit; `call` is for sentences. */
clv_status clv__advise(clv_runtime *runtime, const clv_train_config *config, clv__graph_maker *make,
                       const char *call, clv_train_advice *out);
/** Memory was refused: put what would make it fit behind the sentence. Returns `status`. */
clv_status clv__refused(clv_runtime *runtime, const clv_train_config *config, clv__graph_maker *make,
                        clv_status status);
clv_status clv__trainer_refused(const clv_trainer *trainer, clv_status status);
/** Samples of a batch that each replica computes. */
void clv__trainer_rows(const clv_trainer *trainer, int64_t batch, int64_t *rows);

/** Give up a predictor's run, so that its session may grow; made again when it is needed. */
void clv__predictor_rest(clv_predictor *predictor);

/** The learning rate of a step, where the training stands. */
double clv__trainer_lr(const clv_trainer *trainer, int64_t epoch, int64_t step);

/** A step was read: it took so many seconds, or is not to be counted (0). */
clv_status clv__trainer_see_busy(clv_trainer *trainer, double seconds);

/** All plans of the trainer; returns how many. */
int clv__trainer_plans(const clv_trainer *trainer, clv_plan *plans[CLV__STEPS + 1]);

/** clv_trainer_device_info.busy (busy.c). */
double clv__trainer_busy(const clv_trainer *trainer, const clv_device *device);

/** Choose a token by its logits. number: how many were drawn before with this seed.
 *  Errors: CLV_E_VALUE  the sampling, or logits that are NaN or infinite (-infinity: a token that is not to
 *  be chosen; one must be) */
CLV_MUST_CHECK clv_status clv__sample_token(clv_runtime *runtime, const float *logits, int64_t n,
                                            const clv_sampling *sampling, uint64_t number, int32_t *token);
/** What is usual for a model's first target: `cross_entropy` of classes, else `mse`. */
const clv_loss *clv__loss_for(const clv_model *model);

#endif
