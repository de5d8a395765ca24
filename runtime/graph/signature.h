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
            .name = NULL                                                                                     \
        }                                                                                                    \
    }
/** Of a descriptor whose attributes are another structure than its nodes' (attributes_of_call), or that is a composite. */
#define CLV__CALL(type, function) .attributes_of_call = true, .attrs_bytes = sizeof(type), .build = function

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

// Of a custom op: a text among the attributes, in the structure itself; a name of an input, output or attribute.
enum { CLV__TEXT_BYTES = 32, CLV__VALUE_NAME_BYTES = 32 };

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

/** The inputs alone against their types. */
clv_status clv__inputs_check(const clv__op_io *io, clv__error *error);
/** Outputs as their types say, for an `infer` to go on with: NONE and -1 are what they do not say. */
clv_status clv__outputs_of_types(clv__op_io *io, clv__error *error);

/** The shape of input i, which may be left out, as the letters of the others say. */
clv_status clv__input_shape(const clv__op_io *io, int i, clv_shape *out, clv__error *error);

/** Are a use's outputs, which its `infer` has made, what the signature says? For tests: nothing else asks. */
clv_status clv__op_outputs_check(const clv__op_io *io, clv__error *error);

/** The attributes of a structure against their bounds. */
clv_status clv__attributes_check(const clv_op_attribute *list, const void *attrs, clv__error *error);

/** What a structure says of an attribute, and the other way round. */
typedef struct clv__attribute_value {
    double number;
    int64_t list[2 * CLV_MAX_RANK]; // padding has two for each dimension
    int n;                          // of a pair, a list
    const char *text;
} clv__attribute_value;
void clv__attribute_get(const clv_op_attribute *attribute, const void *attrs, clv__attribute_value *out);
void clv__attribute_set(const clv_op_attribute *attribute, void *attrs, const clv__attribute_value *value);
/** Every attribute that has a default is that. */
void clv__attributes_default(const clv_op_attribute *list, void *attrs);

/** What a call says of its attributes, into a structure of zeros; what it does not say is the default. Bounds are not looked at. The
 *  sentence begins with `op`. */
clv_status clv__arguments_read(const char *op, const clv_op_attribute *list, const clv_op_argument *arguments,
                               int n, void *attrs, clv__error *error);
/** The other way round, at most CLV_NODE_ARGUMENTS, and how many; texts stay where they are. */
int clv__arguments_of(const clv_op_attribute *list, const void *attrs, clv_op_argument *out,
                      int64_t (*lists)[CLV_MAX_RANK]);

/** How many inputs a signature has, and must have; *list: the last one stands for any number of them. */
int clv__inputs_count(const clv_op_value *inputs, int *least, bool *list);
/** Is a tensor of that dtype cast to i32 for an input of this type? Integers are where it says `int`, but those that it names. */
bool clv__type_casts(const char *type, clv_dtype dtype);
/** Bit i: input i may be left out. */
uint64_t clv__inputs_optional(const clv_op_value *inputs);

/** Bit i: it, or the input that it is like, lists f16. */
uint64_t clv__values_halves(const clv_op_value *values, const clv_op_value *inputs);

/** Are names and types well formed, and without `infers` the outputs' types whole? The sentence says what is wrong. */
clv_status clv__signature_valid(const clv_op_signature *signature, bool infers, clv__error *error);
bool clv__is_value_name(const char *name);
/** Are a custom op's attributes? Names and kinds first, then, in their places in a structure, the defaults. */
clv_status clv__attributes_valid(const clv_op_attribute *list, clv__error *error);
clv_status clv__attributes_valid_defaults(const clv_op_attribute *list, void *attrs, clv__error *error);
/** Give each a place in a structure; its bytes. */
size_t clv__attributes_place(clv_op_attribute *list);

/** The call that made a node: its op, and where its attributes are: the node's, or in `room`, of CLV__ATTRS_BYTES zeros. */
const clv__op *clv__call_of(const clv__node *node, void *room, const void **attrs);

#endif
