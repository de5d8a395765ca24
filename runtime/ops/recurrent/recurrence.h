// SPDX-License-Identifier: Apache-2.0
// Shared by the files of recurrence: what a use is about, and its variants.
#ifndef CLV_OPS_RECURRENCE_H
#define CLV_OPS_RECURRENCE_H

#include "cleave/ops.h"
#include "graph/op.h"

typedef struct clv__recurrence_attrs {
    int32_t cell, reverse;
    int32_t keep; // what its gradient reads is kept
} clv__recurrence_attrs;

enum { CLV__RNN_Z, CLV__RNN_WEIGHT, CLV__RNN_BIAS, CLV__RNN_H0, CLV__RNN_C0, CLV__RNN_LENGTHS, CLV__RNN_IN };
enum { CLV__RNN_Y, CLV__RNN_H_N, CLV__RNN_C_N, CLV__RNN_SAVED, CLV__RNN_PREV, CLV__RNN_OUT };
// of its gradient
enum {
    CLV__RNN_B_DY,
    CLV__RNN_B_DH_N,
    CLV__RNN_B_DC_N,
    CLV__RNN_B_WEIGHT,
    CLV__RNN_B_SAVED,
    CLV__RNN_B_PREV,
    CLV__RNN_B_C0,
    CLV__RNN_B_LENGTHS
};
enum { CLV__RNN_DZ, CLV__RNN_DH0, CLV__RNN_DC0, CLV__RNN_DZH };

/** T steps of N rows, with a state of H and `gates` gates; `saved`: how often H a step keeps. */
typedef struct clv__recurrence {
    clv_cell cell;
    int64_t T, N, H, gates, saved;
    bool reverse, keep, backward;
} clv__recurrence;

/** Of a use of recurrence or of its gradient. */
clv__recurrence clv__recurrence_of(const clv__op_io *io);
/** The step that comes s-th. */
static inline int64_t clv__recurrence_step(const clv__recurrence *r, int64_t s) {
    return r->reverse ? r->T - 1 - s : s;
}

// runtime/ops/recurrent/recurrence_lower.c
extern const clv__variant clv__recurrence_variants[];

#endif
