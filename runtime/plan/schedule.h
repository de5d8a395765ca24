// SPDX-License-Identifier: Apache-2.0
// The order in which a plan's nodes are computed. Pure; no device memory.
#ifndef CLV_PLAN_SCHEDULE_H
#define CLV_PLAN_SCHEDULE_H

#include "plan/ir.h"

typedef struct clv__schedule {
    int *nodes;          // ids of the graph's nodes that are needed
    size_t n;            // how many
    size_t first_update; // position of the first update; n if there is none
} clv__schedule;

/**
 * An order in which every node comes after those it reads from, and updates come last. Without micro-batches
 * it is the graph's order. With them each device works by 1F1B: see schedule.c.
 *
 * needed, node_place  by node id
 */
clv_status clv__schedule_make(const clv_plan *plan, const bool *needed, const int *node_place,
                              clv__schedule *out);
void clv__schedule_reset(clv__schedule *schedule);

#endif
