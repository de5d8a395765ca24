// SPDX-License-Identifier: Apache-2.0
// Uses of ops that the plan puts in itself where it does others in parts (plan/pieces.c). Each returns the op and writes its
// attributes; `attrs` has room for CLV__ATTRS_BYTES.
#ifndef CLV_OPS_PARTS_H
#define CLV_OPS_PARTS_H

#include "graph/op.h"

/** `length` elements of an axis from `start` on: one input. */
const clv__op *clv__parts_slice(int axis, int64_t start, int64_t length, void *attrs);
/** 1 to CLV__MAX_IN inputs, one behind the other along an axis. */
const clv__op *clv__parts_concat(int axis, void *attrs);
/** The sum of two of one shape. */
const clv__op *clv__parts_add(void *attrs);
/** One input times a number. */
const clv__op *clv__parts_scale(float factor, void *attrs);

#endif
