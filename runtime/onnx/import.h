// SPDX-License-Identifier: Apache-2.0
// From a file's nodes to a graph. A row says how nodes of one op are built of ours. Where all that a node reads is known while the graph
// is built, as shapes are and all that is made of them, what the row builds is computed on the host.
#ifndef CLV_ONNX_IMPORT_H
#define CLV_ONNX_IMPORT_H

#include "cleave/ops.h"
#include "onnx/file.h"

/** Numbers that are known while a graph is built. Doubles hold all types; integers beyond 2^53 stand for bounds alone. */
typedef struct clv__known {
    int type; // CLV__ONNX_FLOAT and so on
    clv_shape shape;
    double *v;
} clv__known;

enum {
    CLV__MOST_KNOWN = 1 << 20,   // elements of a result; more are computed on the device
    CLV__KNOWN_IN_ALL = 1 << 26, // of all nodes: what a small file can ask for is bounded
    CLV__MOST_LOOPED = 1 << 16   // nodes that the turns of all loops are and make, with the turns themselves
};

/** What is made of a value of the file. `known` and `tensor` are each made when first asked for, of what there is. */
typedef struct clv__made {
    clv__onnx_text name;
    int type; // CLV__ONNX_FLOAT and so on; the tensor is f32, or i32 for integers and truth values
    const clv__known *known;      // NULL: not known
    const clv__onnx_tensor *data; // an initializer
    clv_tensor *tensor;           // NULL: nobody asked yet
    const clv__onnx_node *later;  // makes it when it is first read; NULL: it was made
    struct clv__made *same_as;    // of an Identity of an initializer: that one
    struct clv__made **parts;     // of a sequence: its n_parts tensors; else NULL
    int n_parts;
    bool buffer;    // an initializer that is not trained
    bool none;      // an optional value that is not there
    bool fed;       // it depends on what is fed, if only on its shape
    int batch_axis; // of what is fed: the dimension in which the samples are
    int64_t
        outside; // in that dimension, how many there are for each of which the samples follow one another; 0: one
    int64_t classes; // of the last layer, where another number is wanted: the length of class_axis
    int class_axis;
} clv__made;

/** A file may be written for one batch, the first dimension of all its inputs, and constants in it say so. 0: it leaves it open. */
typedef struct clv__batches {
    int64_t of_file, now;
} clv__batches;

struct clv__import;
/** What nodes with graphs of their own build those with. */
typedef struct clv__flow {
    void (*build)(struct clv__import *import, const clv__onnx_node *node, bool now);
    clv__made *made;   // by the model's numbers of values
    int graphs, loops; // that are around the node
    int64_t left;      // of CLV__MOST_LOOPED
} clv__flow;

struct clv__onnx_row;
/** A node while it is built. */
typedef struct clv__onnx_use {
    struct clv__import *import;
    const struct clv__onnx_row *row;
    int64_t *known_left; // of CLV__KNOWN_IN_ALL
    clv__batches batches;
    clv_graph *graph;
    const clv__onnx_node *node;
    clv__flow *flow;
    int opset, n_in, n_out; // inputs and outputs behind the last that is there are not counted
    clv__made **in;         // NULL: left out
    clv__made **out;        // NULL: nobody reads it
} clv__onnx_use;

/** How nodes of an op are built. After a failure (clv__onnx_fail) nothing that it does counts. */
typedef struct clv__onnx_row {
    const char *op;
    void (*build)(clv__onnx_use *use);
    const char *ours; // for rows that share `build`: which op of ours it is
    int which;        // and what else they differ in
} clv__onnx_row;

/** The first mistake of the build: a sentence behind the node's name. */
void clv__onnx_fail(clv__onnx_use *use, clv_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
bool clv__onnx_failed(const clv__onnx_use *use);

// ---- inputs ---------------------------------------------------------------------------------------------------------

/** Is there such an input? */
static inline bool clv__onnx_has(const clv__onnx_use *use, int i) {
    return i < use->n_in && use->in[i];
}
clv_tensor *clv__onnx_tensor_of(clv__onnx_use *use, clv__made *value);
/** Is it an initializer of bytes (weights of a quantised model) that stays so on the device, and is made wider where it is read? */
bool clv__onnx_stays_small(const clv__made *value);
/** The input as a tensor: f32 or i32. NULL: left out, or the build has failed. */
clv_tensor *clv__onnx_in(clv__onnx_use *use, int i);
/** The same as f32. */
clv_tensor *clv__onnx_float(clv__onnx_use *use, int i);
/** The same as i32. */
clv_tensor *clv__onnx_i32(clv__onnx_use *use, int i);
/** An initializer that is not trained: running statistics. */
clv_tensor *clv__onnx_buffer(clv__onnx_use *use, int i);
/** Its numbers; NULL after a failure: they are not known. */
const clv__known *clv__onnx_known(clv__onnx_use *use, int i);
/** The same without a failure. */
const clv__known *clv__onnx_if_known(clv__onnx_use *use, int i);
/** The only number of an input; `fallback` where it is left out. */
double clv__onnx_number(clv__onnx_use *use, int i, double fallback);
/** Known whole numbers of rank 0 or 1, at most `most`; how many there are, -1 after a failure. */
int clv__onnx_numbers(clv__onnx_use *use, int i, int64_t *out, int most);
/** Sizes, places and bounds are no larger than this, so that a few of them can be added and multiplied. */
#define CLV__ONNX_FAR ((int64_t)1 << 40)
/** A number cut to a whole one, on either side at most so far; what is none is 0. */
static inline int64_t clv__onnx_whole(double value) {
    const double most = (double)CLV__ONNX_FAR;
    return value != value   ? 0
           : value >= most  ? CLV__ONNX_FAR
           : value <= -most ? -CLV__ONNX_FAR
                            : (int64_t)value;
}
/** A product that does not overflow: on either side at most 2^61. */
static inline int64_t clv__onnx_times(int64_t a, int64_t b) {
    const int64_t most = (int64_t)1 << 61;
    int64_t y;
    if (__builtin_mul_overflow(a, b, &y)) return (a < 0) == (b < 0) ? most : -most;
    return y > most ? most : y < -most ? -most : y;
}
/** Its shape, of rank 0 after a failure. */
clv_shape clv__onnx_shape(clv__onnx_use *use, int i);
bool clv__onnx_is_float(int type);
/** Is the result a float, by the type of the first input? */
bool clv__onnx_of_floats(const clv__onnx_use *use);

// ---- attributes -----------------------------------------------------------------------------------------------------

int64_t clv__onnx_int(const clv__onnx_use *use, const char *name, int64_t fallback);
double clv__onnx_real(const clv__onnx_use *use, const char *name, double fallback);
/** Is the text attribute this one? `is_default`: it is where it is left out. */
bool clv__onnx_word(const clv__onnx_use *use, const char *name, const char *word, bool is_default);
/** A list of whole numbers, at most `most`; how many there are, 0 where it is left out. */
int clv__onnx_ints(clv__onnx_use *use, const char *name, int64_t *out, int most);
/** An axis from the end or the beginning; fails outside of the rank. */
int clv__onnx_axis(clv__onnx_use *use, int64_t axis, int rank);

// ---- outputs --------------------------------------------------------------------------------------------------------

/** The result, of the first input's type unless clv__onnx_give_type says another. NULL fails with the graph's sentence. */
void clv__onnx_give(clv__onnx_use *use, int i, clv_tensor *tensor);
void clv__onnx_give_type(clv__onnx_use *use, int i, clv_tensor *tensor, int type);
/** Numbers of a tensor of the file, and room for them: zeros. */
clv__known *clv__onnx_room_for(clv__onnx_use *use, int type, clv_shape shape);
/** Numbers that are made while the graph is built, of which there is a bound, and room for them: zeros. */
clv__known *clv__onnx_new_known(clv__onnx_use *use, int type, clv_shape shape);
/** The same for places, which go with the graph. */
int64_t *clv__onnx_indices(clv__onnx_use *use, int64_t n);
void clv__onnx_give_known(clv__onnx_use *use, int i, const clv__known *known);

// ---- what rows are made of ------------------------------------------------------------------------------------------

clv_tensor *clv__onnx_scalar(clv__onnx_use *use, double value, bool is_float);
static inline bool clv__onnx_tensor_is_float(const clv_tensor *x) {
    const clv_dtype dtype = clv_tensor_dtype(x);
    return dtype == CLV_DTYPE_F32 || dtype == CLV_DTYPE_F16 || dtype == CLV_DTYPE_BF16;
}
/** A constant of the graph. */
clv_tensor *clv__onnx_constant(clv__onnx_use *use, const clv__known *known);
clv_tensor *clv__onnx_as_float(clv_tensor *x);
clv_tensor *clv__onnx_as_i32(clv_tensor *x);
/** Back to integers where the result is not of floats. */
clv_tensor *clv__onnx_as_given(const clv__onnx_use *use, clv_tensor *x);
clv_tensor *clv__onnx_reshape(clv_tensor *x, const int64_t *dims, int rank);
clv_tensor *clv__onnx_permute(clv_tensor *x, const int *axes, int rank);
/** Zeros, or `value`, before and behind along each dimension; negative cuts. */
clv_tensor *clv__onnx_pad(clv__onnx_use *use, clv_tensor *x, const int64_t *before, const int64_t *after,
                          double value);
/** Part of an axis; all of it is x itself. */
clv_tensor *clv__onnx_part(clv_tensor *x, int axis, int64_t start, int64_t length);
/** What stands along an axis at the places of an i32 tensor, none negative: the axis becomes its shape. */
clv_tensor *clv__onnx_rows(clv_tensor *x, int axis, clv_tensor *index);
/** The same of places that are known. */
clv_tensor *clv__onnx_pick(clv__onnx_use *use, clv_tensor *x, int axis, const int64_t *index, int64_t n);

/** x compared, or computed, with a number of its type. */
clv_tensor *clv__onnx_with(clv__onnx_use *use, clv_tensor *(*of)(clv_tensor *, clv_tensor *), clv_tensor *x,
                           double value);
/** Along an axis times a table [its numbers, those of the result]. */
clv_tensor *clv__onnx_along(clv__onnx_use *use, clv_tensor *x, int axis, const clv__known *table);
/** 0 to n - 1 along an axis of so many, i32. */
clv_tensor *clv__onnx_places(clv__onnx_use *use, int64_t n, int axis, int rank);
/** Indices of which the negative count from the end. */
clv_tensor *clv__onnx_wrapped(clv__onnx_use *use, clv_tensor *index, int64_t size);
/** As one dimension. */
clv_tensor *clv__onnx_flat(clv_tensor *x);
/** What the row of an op of products makes of at most four f32 tensors under the attributes of this node. */
clv_tensor *clv__onnx_by(clv__onnx_use *use, const char *op, clv_tensor *const *in, int n);

/** What a constant says of a dimension that was the file's batch, for the one that there is now; `exactly`: not a multiple of it. */
static inline int64_t clv__onnx_of_batch(const clv__onnx_use *use, int64_t said, bool exactly) {
    const clv__batches b = use->batches;
    if (!b.of_file || b.of_file == b.now || said < 1 || said % b.of_file) return said;
    return exactly && said != b.of_file ? said : clv__onnx_times(said / b.of_file, b.now);
}
/** The batch that a file was written for; 0: any. */
int64_t clv__onnx_batch_of(const clv__onnx_model *model);
/** Initializers that have a dimension of classes: those of the node that the first result is made by, behind sums and names. */
enum { CLV__ONNX_CLASS_VALUES = 8 };
typedef struct clv__onnx_class_value {
    uint32_t value;
    int axis;
} clv__onnx_class_value;
/** Returns how many. */
size_t clv__onnx_class_values(const clv__onnx_model *model,
                              clv__onnx_class_value out[CLV__ONNX_CLASS_VALUES]);

/** Where the nodes of a table are computed. */
typedef enum clv__onnx_side {
    CLV__ONNX_DEVICE,
    CLV__ONNX_EITHER, // on the host if all inputs are known, by the references of what the row builds
    CLV__ONNX_HOST,   // while the graph is built, of what is known
    CLV__ONNX_FLOW    // they have graphs, which are built
} clv__onnx_side;
/** The tables, one for each family; each ends with an op that is NULL. */
typedef struct clv__onnx_table {
    const clv__onnx_row *rows;
    clv__onnx_side side;
} clv__onnx_table;
extern const clv__onnx_row clv__onnx_elementwise[], clv__onnx_moves[], clv__onnx_products[],
    clv__onnx_norms[], clv__onnx_reductions[], clv__onnx_attention[], clv__onnx_einsum[], clv__onnx_losses[],
    clv__onnx_quantized[], clv__onnx_recurrent[], clv__onnx_resize[], clv__onnx_scans[], clv__onnx_signal[],
    clv__onnx_bits[], clv__onnx_newer[], clv__onnx_random[], clv__onnx_sequences[], clv__onnx_control[],
    clv__onnx_microsoft[], clv__onnx_known_rows[], clv__onnx_windows[];
/** All but those of ONNX Runtime's domain, which come last; ends with NULL. */
extern const clv__onnx_table clv__onnx_tables[];

/** The row of a node's op; NULL: there is none. */
const clv__onnx_row *clv__onnx_row_of(const clv__onnx_node *node, clv__onnx_side *side);
/** Initializers of floats are parameters, whose numbers nothing is made of while a graph is built. */
bool clv__onnx_may_look(const clv__made *value);
/** What the row makes of inputs that are all known; false: it cannot be computed here. */
bool clv__onnx_fold(clv__onnx_use *use);
/** Input 0 as of another type, if it is known. */
bool clv__onnx_give_cast(clv__onnx_use *use, int type);

/** Room for a sequence of n tensors, the result i; NULL: nobody reads it, or after a failure. */
clv__made *clv__onnx_sequence(clv__onnx_use *use, int i, int n);

/** Ops that there are not: one sentence with all of them, and CLV_E_UNSUPPORTED. */
clv_status clv__onnx_check_ops(clv__error *error, const clv__onnx_model *model);

/** Append a file's graph: its inputs are there, its outputs are to be. classes: the last layer has so many results; 0: as the file has.
 *  Result: the node that could not be built; -1: none, or not for one node. */
int64_t clv__onnx_build_in(const clv__onnx_model *model, clv_graph *graph, int64_t classes,
                           clv_tensor *const *inputs, clv_tensor **outputs);
static inline void clv__onnx_build(const clv__onnx_model *model, int64_t classes, clv_tensor *const *inputs,
                                   clv_tensor **outputs) {
    clv__onnx_build_in(model, clv_tensor_graph(inputs[0]), classes, inputs, outputs);
}

#endif
