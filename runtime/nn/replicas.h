// SPDX-License-Identifier: Apache-2.0
// How a batch is shared out over replicas: what may be asked for, and who gets which rows. Pure; no device memory.
#ifndef CLV_NN_REPLICAS_H
#define CLV_NN_REPLICAS_H

#include <stdint.h>

#include "base/error.h"
#include "cleave/runtime.h"

enum { CLV__MOST_REPLICAS = 16 };

/**
 * Are these good for data parallel? 1 to 16 devices, none twice under whatever names; shares above 0 that sum to 1. A device
 * that is not there is the plan's matter: a graph may be built without it.
 *
 * shares  n of them; NULL: equal
 *
 * Errors  CLV_E_VALUE
 */
clv_status clv__replicas_check(clv_runtime *runtime, const char *const *devices, const double *shares, int n,
                               clv__error *error);

/**
 * Rows of each replica: whole numbers nearest to its share that sum to the batch (largest remainders; of equals the first).
 * The first, where parameters live, gets at least one; others get none where the batch is too small for them.
 *
 * shares  n of them, as checked; NULL: equal
 */
void clv__replica_rows(int64_t batch, const double *shares, int n, int64_t *rows);

#endif
