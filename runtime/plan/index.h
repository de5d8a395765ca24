// SPDX-License-Identifier: Apache-2.0
// Who makes, reads and changes what in a plan, and where: made from the nodes when a pass begins, and never repaired. A pass that
// has moved nodes makes it again.
#ifndef CLV_PLAN_INDEX_H
#define CLV_PLAN_INDEX_H

#include "plan/ir.h"

/** Positions of nodes; -1: there is none. */
typedef struct clv__index {
    int *made_at;    // by value: the node that makes it last, or receives it
    int *read_at;    // by value: the last node that has it among its inputs, to read, change or send it
    int *written_at; // by value: the first node that changes it in place
    int *readers;    // by value: how many nodes have it among their inputs
    int *sent_at, *received_at; // by transfer
    clv__arena arena;
} clv__index;

/** What counts as one value. */
typedef enum clv__index_by {
    CLV__BY_VALUE,
    CLV__BY_ROOT // all values that share memory count for their root: when lives are known (lives.c)
} clv__index_by;

clv_status clv__index_make(const clv_plan *plan, clv__index_by by, clv__index *out);
void clv__index_reset(clv__index *index);

/** The node that makes a value; NULL: it is fed or kept. */
static inline clv__plan_node *clv__index_maker(const clv__index *index, const clv_plan *plan, int value) {
    return value >= 0 && index->made_at[value] >= 0 ? &plan->nodes[index->made_at[value]] : NULL;
}

#endif
