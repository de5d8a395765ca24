// SPDX-License-Identifier: Apache-2.0
// What a run exchanges with other ranks: sums of gradients, in buckets, while the device computes on.
#ifndef CLV_EXEC_EXCHANGE_H
#define CLV_EXEC_EXCHANGE_H

#include "exec/run.h"

struct clv_ranks;
typedef struct clv__exchange clv__exchange;

/** Before each message. A rank that is elsewhere, or trains something else, is found out by it. */
enum { CLV__EXCHANGE_MAGIC = 0x43584731 }; // "CXG1"
typedef struct clv__exchange_head {
    uint32_t magic, phase;
    int32_t rank, bucket;
    int64_t ticket;
    uint64_t digest; // of the plan's values
    uint64_t bytes;  // behind the head
    uint64_t stop;   // this rank was asked to stop
} clv__exchange_head;
/** What is wrong with a message of `came` bytes that should begin so; NULL: nothing. `stop` may be anything.
 *  */
const char *clv__exchange_fault(const clv__exchange_head *wanted, const void *message, size_t came);

/** For the exchanged transfers of a bound run; *out is NULL where its plan has none. */
clv_status clv__exchange_create(clv_run *run, clv__exchange **out);
/** Nothing of the run is under way. NULL is fine. */
void clv__exchange_destroy(clv__exchange *exchange);
/** Did a rank want to stop, as all of them know since step `ticket`, which is done, or before? */
bool clv__exchange_stops(const clv__exchange *exchange, int64_t ticket);

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

/** A link between ranks: each can send, and receive, so much at once; a message is so long under way. */
typedef struct clv__link {
    double bytes_per_second, latency;
} clv__link;
/** Seconds of a step whose nodes compute so long each, if all ranks compute alike: nodes in their order; a
 *  bucket is exchanged when its values are there and the bucket before is done; what wants a sum waits for
 *  its bucket. Below 0: no host memory. */
double clv__exchange_seconds(const clv_plan *plan, int size, size_t bucket_bytes, const double *seconds,
                             clv__link link);
/** The bucket of each transfer, -1: it is not exchanged. How many buckets there are; below 0: no host
 *  memory. */
int clv__exchange_buckets(const clv_plan *plan, size_t bucket_bytes, int *bucket_of);

#endif
