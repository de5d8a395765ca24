// SPDX-License-Identifier: Apache-2.0
// Devices of other ranks: a plan has places on them, and what is computed there is computed by their rank.
#ifndef CLV_EXEC_ELSEWHERE_H
#define CLV_EXEC_ELSEWHERE_H

#include "exec/run.h"

struct clv_ranks;
typedef struct clv__between clv__between;

/** Tell all ranks of the devices of each, which then have names: `1:gpu:0` is rank 1's `gpu:0`. Ranks that
 *  are planned have such as here. On all ranks. */
clv_status clv__elsewhere_list(struct clv_ranks *ranks);

/** Is one end of a transfer here, and the other there? */
bool clv__elsewhere_sends(const clv_run *run, int transfer);
bool clv__elsewhere_receives(const clv_run *run, int transfer);

/** Values of a run to and from devices of other ranks; *out is NULL where its plan has none there. */
clv_status clv__between_create(clv_run *run, clv__between **out);
/** Nothing of the run is under way. NULL is fine. */
void clv__between_destroy(clv__between *between);
/** A worker, about to write over what it sent in the slot's last step: wait until that has left. */
clv_status clv__between_free(clv__between *between, int slot, int transfer);
/** Wait until all that was posted has left, or cannot: another run may then have the staging memory. NULL is
 *  fine. */
void clv__between_settle(clv__between *between);
/** It lies in staging memory when the event, taken, says so; NULL: it has no bytes. */
void clv__between_post(clv__between *between, const clv__executor *executor, int slot, int transfer,
                       const char *staged, clv__bevent *event);
/** Wait until a value has come to `staged`, in the staging memory that its sender has here. */
clv_status clv__between_await(clv__between *between, const clv__executor *executor, int slot, int transfer,
                              char *staged);

#endif
