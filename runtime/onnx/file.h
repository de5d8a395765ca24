// SPDX-License-Identifier: Apache-2.0
// A model of an ONNX file, decoded and checked, and nothing computed: graphs, nodes, attributes, tensors as
// the file has them. Weights stay where they lie, in the mapping of the file or of one beside it; the rest
// is memory of the model, bounded by the file's size.
//
// Of a model that was opened this holds: no name is read that nothing makes; none is made twice in a graph;
// nodes come after those that they read (they are put in order if they are not); calls of the model's own
// functions are replaced by their nodes; every tensor's data are as long as its shape says. Nothing here
// knows an op: what a Conv is, importers know.
//
// Source: onnx/onnx.proto and docs/IR.md of ONNX 1.23; the Protocol Buffers documentation, "Encoding".
#ifndef CLV_ONNX_FILE_H
#define CLV_ONNX_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "cleave/runtime.h"

enum {
    CLV__ONNX_OLDEST_OPSET = 7, // of ONNX's own ops that are read: node tests of ONNX 1.23 are of 7 to 28
    CLV__ONNX_NEWEST_OPSET = 28,
    CLV__ONNX_DEEPEST = 64 // graphs in graphs, and functions in functions
};

/** Bytes of a file, which need not end in a zero, nor be UTF-8: clv__shown_bytes shows them in a sentence. */
typedef struct clv__onnx_text {
    const char *data; // never NULL
    size_t n;
} clv__onnx_text;

/** TensorProto.DataType (dtypes.def). */
typedef enum clv__onnx_dtype {
#define D(id, name, bits, list, ours) CLV__ONNX_##id,
#include "onnx/dtypes.def"
#undef D
    CLV__ONNX_DTYPES
} clv__onnx_dtype;

/** No value: an input or output that is left out. */
#define CLV__ONNX_NO_VALUE UINT32_MAX

/**
 * Values and where they lie. Of an initializer or an attribute.
 *
 * bytes   little-endian, row-major, AT ANY ADDRESS: copy them, or load by memcpy. Elements of less than a
 *         byte lie together, the first in the low bits. NULL of STRING alone
 */
typedef struct clv__onnx_tensor {
    clv__onnx_text name; // "": it has none
    clv__onnx_dtype dtype;
    uint32_t value; // of an initializer: its value; else NO_VALUE
    size_t rank;    // of any size: 9 is legal
    const int64_t *dims;
    int64_t numel;
    const uint8_t *bytes;
    size_t n_bytes;
    const clv__onnx_text *strings; // of STRING: numel of them
} clv__onnx_tensor;

/** A dimension: a number, else a name, else nothing is known of it. */
typedef struct clv__onnx_dim {
    int64_t size;        // -1: it is no number
    clv__onnx_text name; // "": it has none
} clv__onnx_dim;

typedef enum clv__onnx_kind {
    CLV__ONNX_OF_NO_TYPE, // the file does not say
    CLV__ONNX_OF_TENSOR,
    CLV__ONNX_OF_SEQUENCE,
    CLV__ONNX_OF_MAP,
    CLV__ONNX_OF_OPTIONAL,
    CLV__ONNX_OF_SPARSE,
    CLV__ONNX_OF_OPAQUE
} clv__onnx_kind;

/** What a file says of a value: ValueInfoProto. */
typedef struct clv__onnx_info {
    clv__onnx_text name;
    clv__onnx_kind kind;
    clv__onnx_dtype dtype; // of a tensor; UNDEFINED: not said
    bool has_shape;        // false: not even the rank is known
    bool buffer;           // of a module: a file of PyTorch says that it is no parameter
    size_t rank;
    const clv__onnx_dim *dims;
    uint32_t value; // whose; NO_VALUE: of a name that nothing makes (a value_info alone)
} clv__onnx_info;

/** AttributeProto.AttributeType, by its numbers. */
typedef enum clv__onnx_attribute_type {
    CLV__ONNX_ATTRIBUTE_NONE,
    CLV__ONNX_ATTRIBUTE_FLOAT,
    CLV__ONNX_ATTRIBUTE_INT,
    CLV__ONNX_ATTRIBUTE_STRING,
    CLV__ONNX_ATTRIBUTE_TENSOR,
    CLV__ONNX_ATTRIBUTE_GRAPH,
    CLV__ONNX_ATTRIBUTE_FLOATS,
    CLV__ONNX_ATTRIBUTE_INTS,
    CLV__ONNX_ATTRIBUTE_STRINGS,
    CLV__ONNX_ATTRIBUTE_TENSORS,
    CLV__ONNX_ATTRIBUTE_GRAPHS,
    CLV__ONNX_ATTRIBUTE_SPARSE_TENSOR, // from here on the type alone is kept
    CLV__ONNX_ATTRIBUTE_SPARSE_TENSORS,
    CLV__ONNX_ATTRIBUTE_TYPE,
    CLV__ONNX_ATTRIBUTE_TYPES,
    CLV__ONNX_ATTRIBUTE_TYPES_END
} clv__onnx_attribute_type;

/** What is not of its type is zero, NULL, or "". */
typedef struct clv__onnx_attribute {
    clv__onnx_text name;
    clv__onnx_text ref_attr_name; // in a function's body: which attribute of the call it is; "" in graphs
    clv__onnx_attribute_type type;
    float f;
    int64_t i;
    clv__onnx_text s;
    struct clv__onnx_tensor *t;
    struct clv__onnx_graph *g;
    size_t n;            // of the list that its type says
    const float *floats; // aligned, as are the others
    const int64_t *ints;
    const clv__onnx_text *strings;
    struct clv__onnx_tensor *tensors;
    struct clv__onnx_graph *graphs;
} clv__onnx_attribute;

/**
 * NodeProto.
 *
 * domain  "" is ONNX's own, also where the file has "ai.onnx"
 * opset   of its domain, where it stands: a function may have another than the model. 0: the file says none
 */
typedef struct clv__onnx_node {
    clv__onnx_text name; // "": it has none; nodes of functions: `CALL/NAME`
    clv__onnx_text op_type, domain, overload;
    int64_t opset;
    size_t n_inputs, n_outputs, n_attributes;
    const clv__onnx_text *inputs, *outputs;       // "": left out
    const uint32_t *input_values, *output_values; // the same as numbers into the model's values, or NO_VALUE
    const clv__onnx_attribute *attributes;
} clv__onnx_node;

/**
 * GraphProto: the model's, or one that an attribute has (If, Loop, Scan), whose nodes may read values of the
 * graphs around it.
 */
typedef struct clv__onnx_graph {
    clv__onnx_text name;
    size_t n_nodes, n_initializers, n_inputs, n_outputs, n_value_infos, n_sparse;
    clv__onnx_node *nodes; // each after those it reads
    clv__onnx_tensor *initializers;
    clv__onnx_info *inputs; // initializers may stand here too, and do up to IR version 3: ask the value
    clv__onnx_info *outputs;
    clv__onnx_info *value_infos;
    const clv__onnx_text *sparse; // names of sparse initializers; a model that uses one is refused
} clv__onnx_graph;

/**
 * Something with a name in a graph. All graphs of a model number theirs together, so that a table of n_values
 * has room for all.
 */
typedef struct clv__onnx_value {
    clv__onnx_text name;
    const clv__onnx_graph *graph;        // whose
    const clv__onnx_info *info;          // what the file says of it; NULL: nothing
    const clv__onnx_tensor *initializer; // NULL: it has none
    const clv__onnx_node *node;          // that makes it; NULL: an input, or an initializer
    uint32_t output;                     // which of the node's outputs
    bool input;                          // of its graph; an initializer is then what it is if nobody gives it
    bool sparse;
} clv__onnx_value;

/** The version of a set of ops. */
typedef struct clv__onnx_opset {
    clv__onnx_text domain; // "": ONNX's own
    int64_t version;
} clv__onnx_opset;

typedef struct clv__onnx_property {
    clv__onnx_text key, value;
} clv__onnx_property;

/** FunctionProto, as in the file. Graphs have no calls of it left. */
typedef struct clv__onnx_function {
    clv__onnx_text name, domain, overload;
    size_t n_inputs, n_outputs, n_attributes, n_defaults, n_nodes, n_opsets;
    const clv__onnx_text *inputs, *outputs;
    const clv__onnx_text *attributes;    // that a call has to give
    const clv__onnx_attribute *defaults; // those it need not
    clv__onnx_node *nodes;
    const clv__onnx_opset *opsets;
} clv__onnx_function;

/** ModelProto. */
typedef struct clv__onnx_model {
    int64_t ir_version, version;
    clv__onnx_text producer_name, producer_version, domain;
    size_t n_opsets, n_metadata, n_functions;
    const clv__onnx_opset *opsets;
    const clv__onnx_property *metadata;
    const clv__onnx_function *functions;
    clv__onnx_graph graph;
    const clv__onnx_value *values;
    uint32_t n_values;
    const char *path;  // of the file; for sentences
    size_t held_bytes; // of memory, beside mappings
    struct clv__onnx_memory *memory;
} clv__onnx_model;

/**
 * Read a model. Its file, and those with its external data, stay mapped until clv__onnx_close: meanwhile they
 * must not become shorter.
 *
 * Errors  CLV_E_IO           it cannot be read or mapped
 *         CLV_E_FORMAT       no ONNX model, cut, or against a rule of ONNX: the sentence has file, node or
 *                            tensor, and what is wrong
 *         CLV_E_UNSUPPORTED  an opset before 7 or after 28, a sparse tensor, a type that is not known, graphs
 *                            or functions more than 64 deep
 *         CLV_E_HOST_MEMORY
 */
CLV_MUST_CHECK clv_status clv__onnx_open(clv_runtime *runtime, const char *path, clv__onnx_model **out);
/**
 * The same of bytes that last as long as the model. `path` is for sentences. External data are refused: there
 * is no folder for them.
 */
CLV_MUST_CHECK clv_status clv__onnx_open_bytes(clv__error *error, const char *path, const void *bytes,
                                               size_t n, clv__onnx_model **out);
/** NULL is fine. */
void clv__onnx_close(clv__onnx_model *model);

bool clv__onnx_text_is(clv__onnx_text text, const char *as);
bool clv__onnx_text_equal(clv__onnx_text a, clv__onnx_text b);
/** NULL: the node has none of that name. */
const clv__onnx_attribute *clv__onnx_attribute_find(const clv__onnx_node *node, const char *name);

/** Bits of an element: 32 of FLOAT; 0 of STRING and what is unknown. */
int clv__onnx_dtype_bits(clv__onnx_dtype dtype);
/** `float`, `int64`, as ONNX writes them in types; "undefined" of what is unknown. */
const char *clv__onnx_dtype_name(clv__onnx_dtype dtype);

/** A node as it stands in a sentence: `node 'conv1' (Conv)`; of one without a name `node (Conv) of 'y'`. */
typedef struct clv__onnx_node_text {
    char text[288];
} clv__onnx_node_text;
const char *clv__onnx_node_shown(const clv__onnx_node *node, clv__onnx_node_text *room);

#endif
