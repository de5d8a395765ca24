// SPDX-License-Identifier: Apache-2.0
// An op's signature, as data: what it takes, its attributes, what it gives (include/cleave/custom_op.h has the grammar of the
// types). One row in an op's descriptor; from it come the checks of every use, the call by name, the graph file, and the
// table that bindings read.
#ifndef CLV_GRAPH_SIGNATURE_H
#define CLV_GRAPH_SIGNATURE_H

#include <math.h>
#include <stddef.h>

#include "graph/op.h"

// ---- to write a row -----------------------------------------------------------------------------------------

#define CLV__INPUTS(...)                                                                                     \
    (const clv_op_value[]) {                                                                                 \
        __VA_ARGS__, {                                                                                       \
            NULL, NULL                                                                                       \
        }                                                                                                    \
    }
#define CLV__OUTPUTS CLV__INPUTS
#define CLV__ATTRIBUTES(...)                                                                                 \
    (const clv_op_attribute[]) {                                                                             \
        __VA_ARGS__, {                                                                                       \
            .name = NULL                                                                                      \
        }                                                                                                    \
    }

/** An attribute that is a member of the op's structure of the same name: its kind, and its default as text, NULL: there is none. */
#define CLV__ATTRIBUTE(what, type, member, default_text)                                                     \
    .name = #member, .kind = CLV_ATTRIBUTE_##what, .fallback = default_text, .at = offsetof(type, member),   \
    .bytes = sizeof(((type *)NULL)->member)
/** One whose structure is a shape and nothing else. */
#define CLV__SHAPE_ATTRIBUTE(text) .name = text, .kind = CLV_ATTRIBUTE_LIST, .bytes = sizeof(clv_shape)
#define CLV__NO_INPUTS                                                                                       \
    (const clv_op_value[]) {                                                                                 \
        { NULL, NULL }                                                                                       \
    }
// What its numbers may be.
#define CLV__AT_LEAST(bound) .least = bound, .has_least = true
#define CLV__ABOVE(bound) .least = bound, .has_least = true, .above = true
#define CLV__AT_MOST(bound) .most = bound, .has_most = true
#define CLV__BELOW(bound) .most = bound, .has_most = true, .below = true
#define CLV__NOT_NAN CLV__AT_LEAST(-INFINITY)
#define CLV__POSITIVE_SIZE CLV__AT_LEAST(1), CLV__AT_MOST(1 << 20) // kernels count positions in int

enum { CLV__MOST_ATTRIBUTES = 8 };

/** A list that is no shape: axes. */
typedef struct clv__ints {
    int n, at[CLV_MAX_RANK];
} clv__ints;

/** The end of a table, of outputs: a use has none. */
#define CLV__NO_OUTPUTS CLV__NO_INPUTS

// ---- to read one --------------------------------------------------------------------------------------------

/**
 * The whole rule of a use: inputs against their types, attributes against their bounds, then the op's `infer`, or without
 * one the outputs as their types say. The sentence begins with the mistake. An op without a signature has its `infer` alone.
 */
clv_status clv__op_infer(clv__op_io *io, clv__error *error);

/** The shape of input i, which may be left out, as the letters of the others say. */
clv_status clv__input_shape(const clv__op_io *io, int i, clv_shape *out, clv__error *error);

/** Are a use's outputs, which its `infer` has made, what the signature says? For tests: nothing else asks. */
clv_status clv__op_outputs_check(const clv__op_io *io, clv__error *error);

/** The attributes of a structure against their bounds. */
clv_status clv__attributes_check(const clv_op_attribute *list, const void *attrs, clv__error *error);

/** What a structure says of an attribute, and the other way round; `list` has room for CLV_MAX_RANK numbers. */
typedef struct clv__attribute_value {
    double number;
    int64_t list[CLV_MAX_RANK];
    int n; // of a pair, a list
    const char *text;
} clv__attribute_value;
void clv__attribute_get(const clv_op_attribute *attribute, const void *attrs, clv__attribute_value *out);
void clv__attribute_set(const clv_op_attribute *attribute, void *attrs, const clv__attribute_value *value);
/** Every attribute that has a default is that. */
void clv__attributes_default(const clv_op_attribute *list, void *attrs);

/** How many inputs a signature has, and must have; *list: the last one stands for any number of them. */
int clv__inputs_count(const clv_op_value *inputs, int *least, bool *list);
/** Is a tensor of that dtype cast to i32 for an input of this type? Integers are where it says `int`, but those that it names. */
bool clv__type_casts(const char *type, clv_dtype dtype);
/** Bit i: input i may be left out. */
uint64_t clv__inputs_optional(const clv_op_value *inputs);

/** The call that made a node: its op, and where its attributes are: the node's, or in `room`, of CLV__ATTRS_BYTES zeros. */
const clv__op *clv__call_of(const clv__node *node, void *room, const void **attrs);

#endif
