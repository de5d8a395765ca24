// SPDX-License-Identifier: Apache-2.0
// Walks over several tensors at once, made as short as they can be: dimensions of 1 dropped, neighbours that
// all tensors pass through as one merged. [8,16,5,5] op [1,16,1,1] becomes 3 dimensions, equal shapes become
// 1.
#ifndef CLV_OPS_COLLAPSE_H
#define CLV_OPS_COLLAPSE_H

#include "graph/op.h"

enum { CLV__MAX_WALK = 4 }; // tensors walked together

typedef struct clv__walk {
    int rank; // at least 1
    int n;    // tensors
    int64_t dims[CLV_MAX_RANK];
    int64_t strides[CLV__MAX_WALK][CLV_MAX_RANK]; // in elements; 0 repeats
} clv__walk;

/** Strides of a contiguous tensor of that shape. */
void clv__strides_of(const clv_shape *shape, int64_t *strides);
/** Strides that read a tensor of shape `from` as if it had the shape `to` (aligned at the end, 1 repeats); it
 *  must fit. */
void clv__strides_broadcast(const clv_shape *from, const clv_shape *to, int64_t *strides);
/** Shorten a walk whose dims, rank and strides are set. Order of the elements stays. */
void clv__walk_collapse(clv__walk *walk);
/** Position in tensor t of the walk's index-th element. */
int64_t clv__walk_at(const clv__walk *walk, int t, int64_t index);

#endif
