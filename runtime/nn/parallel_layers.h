// SPDX-License-Identifier: Apache-2.0
// Data parallel over some layers of a model: the layers that a placement names are computed whole where it says, all others by
// replicas, each its rows of the batch.
#ifndef CLV_NN_PARALLEL_LAYERS_H
#define CLV_NN_PARALLEL_LAYERS_H

#include "cleave/nn.h"

/** Where layers are computed. Strings need not outlive the call. */
typedef struct clv__parallel {
    const char *place;          // layers that are not replicated, as clv_plan_config.place
    const char *const *devices; // the replicas
    const double *shares;       // of the batch; NULL: equal
    int n;
} clv__parallel;

/**
 * Build what `body` builds, layer by layer: whole where how->place names the layer, else once for each replica. What is in no layer that
 * owns parameters goes where the newest of its data is. A value that crosses is cut or joined along its first dimension, which must
 * count samples, outermost. Nodes ask for their devices, so the plan needs no placement.
 *
 * body     called once for the whole batch and once for each replica, with inputs of as many rows, on graphs of its own; it must build
 *          the same nodes each time
 * results  n_results of them: where they are whole, there, else joined on the first replica; NULL after a mistake
 * means    results are means over the rows of what body was given: those of replicas become one mean, weighted by rows
 *
 * Errors   as clv_data_parallel;  CLV_E_NOT_FOUND  a pattern that matches no layer;  CLV_E_VALUE  no layer is left for the replicas;
 *          CLV_E_UNSUPPORTED  body builds other nodes for fewer rows;  CLV_E_SHAPE  what crosses has no rows
 */
void clv__parallel_layers(clv_tensor *const *inputs, int n_inputs, const clv__parallel *how, clv_layers body,
                          void *user, clv_tensor **results, int n_results, bool means);

#endif
