// SPDX-License-Identifier: Apache-2.0
// Tensors that lie in several values, and the nodes of the plan's own that take parts of them and put parts together: the tools of
// split.c. Rows are the first dimension: a tensor is cut along it, so that each piece is contiguous.
#ifndef CLV_PLAN_PIECES_H
#define CLV_PLAN_PIECES_H

#include "plan/ir.h"

/** One of a tensor's pieces. */
typedef struct clv__rows {
    int64_t n;
    int value;
} clv__rows;

/** A tensor, or a part of one, as values that hold its rows, one after the other. */
typedef struct clv__region {
    clv__desc desc;
    const clv_tensor *like; // what it is, or is a part of
    clv__rows *items;
    int n;
    bool copied; // its values are not the memory of those it was taken from
} clv__region;

/** Where nodes are written. */
typedef struct clv__pieces {
    clv_plan *plan;
    clv__arena scratch;   // regions
    const clv__node *of;  // what nodes are written for: their layer, phase and so on
    int place;
    int slices;           // parts that were done so far
    size_t limit;         // of an allocation at the place
    bool *fresh;          // by value: made by a node of its own, and nowhere else yet
    size_t fresh_room;
} clv__pieces;

bool clv__pieces_too_large(const clv__pieces *p, const clv__desc *desc);
/** A value of the plan's own, shaped as `desc`, for a part of `like`. */
clv_status clv__pieces_value(clv__pieces *p, const clv_tensor *like, const clv__desc *desc, int *out);
/** Write a node. out[]: values that are there. */
clv_status clv__pieces_node(clv__pieces *p, const clv__op *op, const void *attrs, const int *in, int n_in,
                            const int *out, int n_out);

/** A region of n items; and of one, which is a value. */
clv_status clv__region_make(clv__pieces *p, const clv__desc *desc, const clv_tensor *like, int n, clv__region *out);
clv_status clv__region_of(clv__pieces *p, int value, clv__region *out);
/** Elements [begin, end) of a dimension. */
clv_status clv__region_narrow(clv__pieces *p, const clv__region *from, int d, int64_t begin, int64_t end,
                              clv__region *out);
/** All of it as one value: `target`, or if that is -1 its own if it has one, or a new one. */
clv_status clv__region_whole(clv__pieces *p, const clv__region *from, int target, int *out);
/** n regions behind each other along a dimension. What fits is one value, `target` if that is not -1. */
clv_status clv__region_join(clv__pieces *p, const clv__region *parts, int n, int d, const clv__desc *desc, int target,
                            clv__region *out);
/** The sum of two, stored as `desc`. `target` as above. */
clv_status clv__region_add(clv__pieces *p, const clv__region terms[2], const clv__desc *desc, int target,
                           clv__region *out);
/** A region times a factor. */
clv_status clv__region_scale(clv__pieces *p, const clv__region *from, double factor, clv__region *out);

#endif
