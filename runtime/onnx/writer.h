// SPDX-License-Identifier: Apache-2.0
// How ops of ours become nodes of ONNX: rows (write_rows.c, write_moves.c), and what they call to write them.
#ifndef CLV_ONNX_WRITER_H
#define CLV_ONNX_WRITER_H

#include "base/memory.h"
#include "base/text.h"
#include "cleave/custom_op.h"
#include "onnx/file.h"
#include "onnx/wire.h"
#include "onnx/write.h"

/** Numbers of fields in onnx.proto. */
enum {
    NODE_INPUT = 1,
    NODE_OUTPUT,
    NODE_NAME,
    NODE_OP_TYPE,
    NODE_ATTRIBUTE,
    ATTRIBUTE_NAME = 1,
    ATTRIBUTE_F,
    ATTRIBUTE_I,
    ATTRIBUTE_S,
    ATTRIBUTE_T,
    ATTRIBUTE_INTS = 8,
    ATTRIBUTE_STRINGS,
    ATTRIBUTE_TYPE = 20,
    TENSOR_DIMS = 1,
    TENSOR_DTYPE,
    TENSOR_NAME = 8,
    TENSOR_RAW,
    TENSOR_EXTERNAL = 13,
    TENSOR_LOCATION,
    GRAPH_NODE = 1,
    GRAPH_NAME,
    GRAPH_INITIALIZER = 5,
    GRAPH_INPUT = 11,
    GRAPH_OUTPUT,
    MODEL_IR = 1,
    MODEL_PRODUCER,
    MODEL_PRODUCER_VERSION,
    MODEL_GRAPH = 7,
    MODEL_OPSET,
    MODEL_METADATA = 14,
    ENTRY_KEY = 1,
    ENTRY_VALUE
};

enum { CLV__ONNX_WRITTEN_OPSET = 18, CLV__ONNX_WRITTEN_IR = 8 };

typedef struct clv__onnx_writer clv__onnx_writer;

/** How an op is written: `onnx` alone is a node of that name with the same inputs; `write` does what else it takes, of rows that share it by
 *  `op` and `onnx`. */
typedef struct clv__onnx_write_row {
    const char *op, *onnx;
    void (*write)(clv__onnx_writer *w);
} clv__onnx_write_row;

/** Rows end with one whose op is NULL. */
extern const clv__onnx_write_row clv__onnx_write_rows[], clv__onnx_write_moves[], clv__onnx_write_recurrent[],
    clv__onnx_write_windows[];

struct clv__onnx_writer {
    const clv__onnx_writing *what;
    clv__error *error;
    clv_status status;    // of rows: the first fault stays
    clv__arena arena;     // of names
    const char **names;   // by id of tensors of one.graph; NULL: not made yet
    clv__text nodes, now; // fields of a GraphProto; of the node that is being written
    const char *base;     // what names of the node's values begin with
    int n_made;           // names that it has given
    clv_node_info node, other;
    const clv__onnx_write_row *row; // the node's
    const char *batch;              // the value that is [batch]; NULL: not made yet
};

/** A number, or so many times the batch. */
typedef struct clv__onnx_size {
    int64_t value;
    bool of_batch;
} clv__onnx_size;

/** The name of an input of the node; NULL: it is not there. */
const char *clv__writer_in(clv__onnx_writer *w, int i);
/** Its shape, for the first batch. */
const clv_shape *clv__writer_in_shape(const clv__onnx_writer *w, int i);
/** The name that the node's result has. */
const char *clv__writer_result(clv__onnx_writer *w);
/** Of its i-th. */
const char *clv__writer_result_of(clv__onnx_writer *w, int i);
/** The name of a tensor that another node reads, but no array that is part of the graph. */
const char *clv__writer_name_of(const clv__onnx_writer *w, const clv_tensor *tensor);
/** write_recurrent.c: a product that a node of a recurrence makes itself, so that no node is written for it. */
bool clv__writer_feeds_recurrence(const clv_tensor *z);

/** Begin a node; inputs and attributes follow, and clv__writer_end. Names of inputs end with NULL. */
void clv__writer_begin(clv__onnx_writer *w, const char *op, const char *const *inputs);
void clv__writer_put_input(clv__onnx_writer *w, const char *name);
void clv__writer_put_int(clv__onnx_writer *w, const char *name, int64_t value);
void clv__writer_put_float(clv__onnx_writer *w, const char *name, float value);
void clv__writer_put_ints(clv__onnx_writer *w, const char *name, const int64_t *values, int n);
void clv__writer_put_text(clv__onnx_writer *w, const char *name, const char *text);
/** A list of one text. */
void clv__writer_put_texts(clv__onnx_writer *w, const char *name, const char *text);
/** `as` NULL: a name of its own, which it returns. */
const char *clv__writer_end(clv__onnx_writer *w, const char *as);
/** Of several results, whose names end with NULL: clv__writer_also gives some. */
void clv__writer_end_with(clv__onnx_writer *w, const char *const *results);
const char *clv__writer_also(clv__onnx_writer *w);
/** A node without attributes. */
#define clv__writer_node_of(w, op, as, ...)                                                                  \
    (clv__writer_begin(w, op, (const char *const[]){__VA_ARGS__, NULL}), clv__writer_end(w, as))

/** Constants: a number of f32 without a dimension; floats; a list of i64; any tensor. */
const char *clv__writer_scalar(clv__onnx_writer *w, float value);
const char *clv__writer_constant(clv__onnx_writer *w, clv_dtype dtype, const clv_shape *shape,
                                 const void *data);
const char *clv__writer_list(clv__onnx_writer *w, const int64_t *values, int n);
/** A list in which the batch may stand. `reshape`: for a Reshape, where -1 says it. */
const char *clv__writer_sizes(clv__onnx_writer *w, const clv__onnx_size *sizes, int n, bool reshape);
/** As that type of ONNX. */
const char *clv__writer_cast(clv__onnx_writer *w, const char *value, clv__onnx_dtype to, const char *as);

/** Attributes of the node. Those that follow the batch are a fault, but of clv__writer_sizes_of. */
double clv__writer_number(clv__onnx_writer *w, const char *name);
int clv__writer_numbers(clv__onnx_writer *w, const char *name, int64_t out[CLV_MAX_RANK]);
int clv__writer_sizes_of(clv__onnx_writer *w, const char *name, clv__onnx_size out[CLV_MAX_RANK]);
const clv_op_argument *clv__writer_argument(const clv_node_info *node, const char *name);
/** A size as the two graphs have it. */
clv__onnx_size clv__writer_size_of(clv__onnx_writer *w, int64_t one, int64_t other);

/** A name for the next value of the node; `last`: for its result. */
const char *clv__writer_own_name(clv__onnx_writer *w, bool last);
void clv__writer_out_of_memory(clv__onnx_writer *w);
/** Dimensions and type of a TensorProto. */
void clv__writer_put_type(clv__text *tensor, clv_dtype dtype, const clv_shape *shape);
size_t clv__writer_bytes_of(const clv_tensor *tensor);

/** The node cannot be written: `why` ends the sentence. */
void clv__writer_cannot(clv__onnx_writer *w, const char *why);
/** The number of a type in ONNX. */
clv__onnx_dtype clv__writer_dtype_of(clv_dtype dtype);

#endif
