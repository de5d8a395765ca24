// SPDX-License-Identifier: Apache-2.0
// Tensors with a row for each sample of a batch, which is cut: what micro-batches and data parallel ask of them first.
#ifndef CLV_NN_BATCH_ROWS_H
#define CLV_NN_BATCH_ROWS_H

#include "cleave/nn.h"

enum { CLV__MOST_CUT = 3 * CLV_MAX_PORTS }; // inputs, targets, and what labels count

typedef struct clv__batch_rows {
    clv_tensor *const *tensors;
    int n;
} clv__batch_rows;

/** The graph of all of them, as long as it has no mistake and none is NULL; else NULL. */
clv_graph *clv__batch_rows_graph(const clv__batch_rows *of, const char *call);
/** Have they the same number of rows? false: the graph has failed. `call` begins the sentence. */
bool clv__batch_rows_check(clv_graph *graph, const clv__batch_rows *of, const char *call);

#endif
