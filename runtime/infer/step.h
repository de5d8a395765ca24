// SPDX-License-Identifier: Apache-2.0
// What is planned for a batch, a forward pass or a step of a training, and how it is fed. A training is known here by the maker of its
// graph alone.
#ifndef CLV_INFER_STEP_H
#define CLV_INFER_STEP_H

#include "cleave/train.h"

enum { CLV__MOST_FED = 2 * CLV_MAX_PORTS };

/** Which of a dataset's inputs and targets each of a model's is. */
typedef struct clv__match {
    int input[CLV_MAX_PORTS], target[CLV_MAX_PORTS];
    int n_inputs; // the dataset's
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

/** Makes the graph of what is planned for a batch. shares: of the replicas, 0 for one that takes no part;
 *  NULL: equal. */
typedef clv_status clv__graph_maker(clv_runtime *runtime, const clv_train_config *config,
                                    const double *shares, int64_t batch, clv__step *step);
/** Of a forward pass: model, logits. */
clv__graph_maker clv__forward_graph;
/** Does the model take the dataset's samples, and do targets fit its results? By their names, or the only
 *  ones where the dataset has no names. CLV_E_NOT_FOUND, CLV_E_SHAPE, CLV_E_DTYPE, CLV_E_VALUE. */
clv_status clv__match_data(clv_runtime *runtime, const clv_model *model, const clv_dataset *dataset,
                           clv__match *match);
/** Give a run a batch for all the model's inputs and, where they are fed, targets. */
clv_status clv__step_feed(const clv__step *step, const clv__match *match, const clv_batch *batch);
/** The next batch, made where the run is fed from if it can be; before anything else uses the session it is fed. */
clv_status clv__step_next(const clv__step *step, const clv__match *match, clv_loader *loader, clv_batch *out);
/** Give a run a batch from an array for each. */
clv_status clv__step_feed_arrays(const clv__step *step, const void *const *fed);
/** Bytes of the largest of them. */
size_t clv__step_fed_bytes(const clv__step *step);
/** How it is planned. */
clv_plan_config clv__step_plan_config(const clv_train_config *config, clv__graph_maker *make);
/** The graph and its plan. same_session: as clv_plan_config. */
clv_status clv__step_build(clv_runtime *runtime, const clv_train_config *config, clv__graph_maker *make,
                           const double *shares, int64_t batch, const clv_plan *same_session,
                           clv__step *step);
void clv__step_destroy(clv__step *step);

#endif
