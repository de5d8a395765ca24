// SPDX-License-Identifier: Apache-2.0
// The table of `cleave plan`: a row for each layer, made of the nodes of a plan.
#ifndef CLEAVE_PLAN_ROWS_H
#define CLEAVE_PLAN_ROWS_H

#include "cli.h"

typedef struct plan_row {
    char name[256];
    const char *op, *also, *variant, *chosen, *device;
    clv_shape output_shape;
    int64_t parameters;
    uint64_t bytes;
    double flops, most_flops;      // of all its nodes; of the one whose op it is told by
    uint64_t made[CLV_CATEGORIES]; // as of clv_plan_node; of workspaces the largest
    bool named;                    // a layer, not an op at the root
    bool elsewhere;                // on other devices than `device` too, its first: replicas
    int micro_batch;               // of the last node that was added; -1: of none
} plan_row;

typedef struct plan_rows {
    plan_row *items;
    int n;
} plan_rows;

/** Forward nodes make the rows. A layer's gradients and updates are added to its row, those of no layer get
 *  rows of their own. False if there is no memory for them; `items` is to be freed, texts live as long as the
 *  plan. */
bool cli_plan_rows(const clv_plan *plan, plan_rows *rows);

#endif
