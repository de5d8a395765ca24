// SPDX-License-Identifier: Apache-2.0
// What a run exchanges with other ranks: sums of gradients, in buckets, while the device computes on.
#ifndef CLV_EXEC_EXCHANGE_H
#define CLV_EXEC_EXCHANGE_H

#include "exec/run.h"

struct clv_ranks;
typedef struct clv__exchange clv__exchange;

/** For the exchanged transfers of a bound run; *out is NULL where its plan has none. */
clv_status clv__exchange_create(clv_run *run, clv__exchange **out);
/** Nothing of the run is under way. NULL is fine. */
void clv__exchange_destroy(clv__exchange *exchange);

/** A worker has enqueued the reading of a value to staging memory, where it lies from `staged` on. event:
 *  when it is there, taken; NULL: it has no bytes. */
void clv__exchange_post(clv__exchange *exchange, const clv__executor *executor, int slot, int transfer,
                        char *staged, clv__bevent *event);
/** Wait until the sum is in staging memory. On failure the sentence is this thread's. */
clv_status clv__exchange_await(clv__exchange *exchange, const clv__executor *executor, int slot,
                               int transfer);

/** Bytes that a rank sends in a step, messages' heads included, as the plan tells: of `size` ranks number
 *  `rank`. */
int64_t clv__exchange_bytes(const clv_plan *plan, int rank, int size, size_t bucket_bytes);

#endif
