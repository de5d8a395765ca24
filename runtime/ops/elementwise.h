// SPDX-License-Identifier: Apache-2.0
// A row of elementwise.def as the program sees it, and elementwise ops that other families use in their
// gradients.
#ifndef CLV_OPS_ELEMENTWISE_H
#define CLV_OPS_ELEMENTWISE_H

#include "graph/op.h"

enum { CLV__EW_INPUTS = 3 };

typedef enum clv__ew_types {
    CLV__EW_FLOAT,   // all f32
    CLV__EW_SAME,    // all f32 or all i32
    CLV__EW_COMPARE, // inputs alike, of any dtype, result i32
    CLV__EW_INTEGER, // all i32, i8, u8 or bool
    CLV__EW_CHOOSE,  // the first i32, the others alike, and the result as they are
    CLV__EW_CONVERT, // any dtype, the result of clv__ew_attrs.dtype: one of the two is an integer
} clv__ew_types;

/** What an elementwise descriptor's `data` points to. */
typedef struct clv__ew_row {
    const char *expression; // over the names and P0, P1; see elementwise.def
    const char *names[CLV__EW_INPUTS];
    int n_in;
    clv__ew_types types;
    double (*eval)(const double *in, double p0, double p1); // the same expression in C
    float sample_p0, sample_p1;
    double lo, hi; // range of samples' values
} clv__ew_row;

typedef struct clv__ew_attrs {
    float p0, p1;
    clv_dtype dtype; // of CONVERT alone, the last: others have no such attribute
} clv__ew_attrs;

/** Is this use the sum of two f32 tensors of the result's shape? */
bool clv__elementwise_adds(const clv__op_io *io);

/** How a graph's file calls an op of a loss's elements: as the loss without a reduction (reduce/losses.c). */
const clv__op *clv__loss_call_of(const clv__node *node, void *attrs);

/** Append an elementwise node. */
clv_tensor *clv__elementwise(const clv__op *op, clv_tensor *const *inputs, float p0, float p1);

#endif
