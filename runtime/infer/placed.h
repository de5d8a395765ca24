// SPDX-License-Identifier: Apache-2.0
// Where layers and replicas lie, which shares of a batch replicas have, and what would make it fit.
#ifndef CLV_INFER_PLACED_H
#define CLV_INFER_PLACED_H

#include "infer/step.h"

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

/** Shares of replicas by the time of forward passes in such batches, each replica alone. */
clv_status clv__measure_forward_shares(clv_runtime *runtime, const clv_predictor_config *config,
                                       int64_t batch, double *shares);
/** Are place and replicas as they can be: layers that are named beside replicas, devices that are there, each
 *  once, each with a sample of the batch at least? */
clv_status clv__placement_check(clv_runtime *runtime, const clv_placement *placement, int64_t batch);

/** Where shares do not fit budgets and memory, others that do and are near to them; as they were if none are
 *  found. */
clv_status clv__shares_fit(clv_runtime *runtime, const clv_train_config *config, clv__graph_maker *make,
                           double *shares);
/** The shares to begin with, as far as planning tells (clv_pass_shares). */
clv_status clv__shares_planned(clv_runtime *runtime, const clv_train_config *config, clv__graph_maker *make,
                               double *shares);

/** What would make it fit (clv_pass_advise). */
clv_status clv__advise(clv_runtime *runtime, const clv_train_config *config, clv__graph_maker *make,
                       clv_train_advice *out);
/** Memory was refused: put what would make it fit behind the sentence. Returns `status`. */
clv_status clv__refused(clv_runtime *runtime, const clv_train_config *config, clv__graph_maker *make,
                        clv_status status);

#endif
