// SPDX-License-Identifier: Apache-2.0
// Trainings over several processes, on one machine or on many, by MPI.
#ifndef CLEAVE_RANKS_H
#define CLEAVE_RANKS_H

#include "plan.h"

#ifdef __cplusplus
extern "C" {
#endif

struct clv_ranks;

#ifndef CLEAVE_STABLE_ONLY // experimental
/**
 * The processes of a training. Each runs the same program, and gives the ranks to its trainer (clv_train_config.ranks):
 *
 *     mpirun -n 4 ./program
 *
 *     clv_ranks_create(runtime, NULL, &ranks);
 *     clv_train_config config = {..., .ranks = ranks};
 *     ... a trainer ...
 *     clv_ranks_destroy(ranks);
 *
 * Each computes a part of every batch on devices of its own; gradients are added up in the order of ranks, so the bits are those of as
 * many replicas in one process. Each tests a part of the test set; rank 0 writes checkpoints.
 */
typedef struct clv_ranks clv_ranks;

typedef struct clv_ranks_config {
    const char *engine; /**< what carries messages: `mpi`; NULL: that one */
    double patience;    /**< seconds; a rank that is not heard of for so long is lost; joining may take twelve times as long; 0: 5 */
    /** > 0: for planning alone: no process, but what the rank of this number among this many would be to clv_pass_graph */
    int planned, rank;
    CLV_RESERVED(5);
} clv_ranks_config;

typedef struct clv_ranks_info {
    int rank, size;     /**< which of how many */
    int local;          /**< which of those on this machine, from 0: to choose a device by */
    int64_t sent_bytes; /**< to others so far, of values that were exchanged */
    /** why the training ended; NULL: it did not, or not for a rank's sake. Borrowed until clv_ranks_destroy */
    const char *lost;
    bool tells; /**< this one of the ranks that are left reports it */
    CLV_RESERVED(6);
} clv_ranks_info;

/**
 * Join the ranks that this process was started with, once in a process. Waits for all of them.
 *
 * config  NULL: defaults
 *
 * Errors  CLV_E_NOT_FOUND  there is no such engine, or its library cannot be opened: the sentence says what is missing
 *         CLV_E_RANK_LOST  a rank does not answer, or is of another version of Cleave
 */
CLV_API CLV_MUST_CHECK clv_status clv_ranks_create(clv_runtime *runtime,
                                                   CLV_OR_NULL const clv_ranks_config *config,
                                                   clv_ranks **out);
/** NULL is fine. Waits for the other ranks, unless one is lost. */
CLV_API void clv_ranks_destroy(clv_ranks *ranks);
/**
 * This process cannot take part: what else than its trainer failed, before or beside it. Before the first step it waits until all
 * ranks are there (clv_trainer_run), so that each failure is reported once: by rank 0, with the rank, or without where all have
 * the same (clv_ranks_info.lost). A trainer says by itself what fails in it. NULL for ranks is fine.
 */
CLV_API void clv_ranks_fail(clv_ranks *ranks, const char *sentence);
/**
 * A rank is lost: go on with those that are left, as fewer ranks (clv_train_config.on_rank_failure). After clv_trainer_run failed with
 * CLV_E_RANK_LOST and the trainer was destroyed; then make another one that resumes from the checkpoint. Waits for the others, and may
 * change this rank's number: rank 0 writes files. More than half must be left, or half with rank 0 among them, so that no two parts
 * of a broken network go on.
 *
 * Errors  CLV_E_RANK_LOST  they cannot: no checkpoint of this training was written yet, too few are left, all are
 *         CLV_E_STATE      none is lost, or the engine ends all ranks when one is
 */
CLV_API CLV_MUST_CHECK clv_status clv_ranks_go_on(clv_ranks *ranks);
CLV_API clv_ranks_info clv_ranks_info_get(const clv_ranks *ranks);
/** Bytes that this rank sends to others in each step of a plan of clv_pass_graph, heads of messages included; it receives about as many. */
CLV_API int64_t clv_ranks_step_bytes(const clv_ranks *ranks, const clv_plan *plan);
/**
 * Seconds of such a step at least, by the figures of the plan's device's maker (clv_plan_device_info.least_seconds), if each rank can
 * send, and receive, `bytes_per_second` at once, and a message is `latency` seconds under way: exchanges go on beside the backward
 * pass, and what wants their sums waits. 0: the device has no figures.
 */
CLV_API double clv_ranks_step_seconds(const clv_ranks *ranks, const clv_plan *plan, double bytes_per_second,
                                      double latency);
#endif // CLEAVE_STABLE_ONLY

#ifdef __cplusplus
}
#endif
#endif
