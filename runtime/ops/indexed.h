// SPDX-License-Identifier: Apache-2.0
// Ops that move elements by an index, between a table and a list: gather, scatter, embedding and their kin.
// Such an op says which way, and what the index counts; shape rule, launches, reference, cost and the ways to
// be done in parts are shared.
//
// The table has an axis of V elements. Each element of the list belongs to a line of the table along that
// axis, and the index says where on it. An index outside 0 .. V-1 belongs nowhere: what is taken there is
// NaN, 0 of whole numbers, and what is put there is lost.
#ifndef CLV_OPS_INDEXED_H
#define CLV_OPS_INDEXED_H

#include "graph/signature.h"

/** What happens to an element. Several for one place: the last in the list's order is copied; all are added,
 *  in that order. */
typedef enum clv__indexed_mode {
    CLV__TAKE, // inputs: table, index. Output: list
    CLV__COPY, // inputs: table, index, list. Output: the table, changed
    CLV__ADD   // the same; or of a gradient: list, index. Output: a table of zeros, changed
} clv__indexed_mode;

/** What an index stands for. */
typedef enum clv__index_kind {
    /** One for each element of the list, and of its shape. The table's other dimensions are at least that. */
    CLV__ELEMENTS_OF,
    /** Any shape: each for a whole slice across the axis. The list has the index's dimensions in its place. */
    CLV__SLICES_OF,
    /** The last dimension has an index for each of the table's first dimensions: a slice across all of these. */
    CLV__TUPLES_OF
} clv__index_kind;

/** What an op's `data` points to. The op's attributes begin with an int: the axis; of tuples, how many first
 *  dimensions all tensors share. */
typedef struct clv__indexed {
    clv__indexed_mode mode;
    clv__index_kind kind;
    bool no_attribute; // that int is 0
} clv__indexed;
typedef struct clv__indexed_attrs {
    int axis;
} clv__indexed_attrs;

extern const clv__variant clv__take_variants[], clv__put_variants[];
clv_status clv__indexed_infer(clv__op_io *io, clv__error *error);
void clv__indexed_reference(const clv__ref *ref);
void clv__indexed_cost(const clv__op_io *io, clv__cost *cost);
int64_t clv__indexed_reduction(const clv__op_io *io);
bool clv__indexed_split(const clv__op_io *io, int i, clv__split *out);

/** Of a descriptor: `way` is take or put, then a clv__indexed. */
#define CLV__INDEXED(way, ...)                                                                               \
    .data = &(const clv__indexed){__VA_ARGS__}, .variants = clv__##way##_variants,                           \
    .reference = clv__indexed_reference, .cost = clv__indexed_cost, .reduction = clv__indexed_reduction
/** Of one that is no gradient: what pair.c would do. */
#define CLV__INDEXED_RULES .infer = clv__indexed_infer, .split = clv__indexed_split

#endif
