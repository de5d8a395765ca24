// SPDX-License-Identifier: Apache-2.0
// Ops that move elements and compute nothing, as lists of moves. Such an op says what its moves are; the
// launches, the reference and the cost are shared.
#ifndef CLV_OPS_MOVE_H
#define CLV_OPS_MOVE_H

#include "ops/collapse.h"

/** A copy of part of input `in`; tensor 0 of the walk is the output, tensor 1 the input. */
typedef struct clv__move {
    int in;
    clv__walk walk;
    int64_t to_offset, from_offset;
} clv__move;

/** What an op's `data` points to: its moves, one for each input or just one. */
typedef struct clv__mover {
    void (*move_of)(const clv__op_io *io, int i, clv__move *out);
    bool each_input;
    bool zero_first; // the moves leave parts of the output untouched
} clv__mover;

extern const clv__variant clv__move_variants[];
void clv__move_reference(const clv__ref *ref);
void clv__move_cost(const clv__op_io *io, clv__cost *cost);

#endif
