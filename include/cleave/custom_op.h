// SPDX-License-Identifier: Apache-2.0
// Ops by their names, and ops of a program's own: registered at run time, and from then on planned, placed, recomputed, profiled and
// checked as those of ops.h are, by the same data. samples/custom_op.c is a whole one; `cleave check --ops FILE` checks those of a
// shared library on a device.
#ifndef CLEAVE_CUSTOM_OP_H
#define CLEAVE_CUSTOM_OP_H

#include "device.h"
#include "graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A number by name. */
typedef struct clv_attribute {
    const char *name;
    double value;
} clv_attribute;

typedef struct clv_custom_op clv_custom_op; // of a program's own

// ---- every op by its name -------------------------------------------------------------------------------------------

/**
 * An input or output of an op.
 *
 * type  `f32[N,*,D]`: dtypes with `|` between them, or `any`, then the shape. A letter stands for the same length wherever it is in
 *       one signature, `*` for any number of dimensions, the same ones each time, `_` for any length; without brackets the shape is any.
 *       `int` is i32, and other integers but bool, which are cast to it: what is beyond i32 becomes its nearest end.
 *       `like x`: dtype and shape of the input x. Behind it `?`: may be left out; `...`: one or more. To a type f16 and bf16 are f32;
 *       a custom op's `f32|f16` says that its kernels take the tensor as it is stored, in two bytes too.
 */
typedef struct clv_op_value {
    const char *name, *type;
} clv_op_value;

/** What an attribute is. PAIR: one whole number for both or two, zeros too (padding [3,0]: none along W); LIST: up to CLV_MAX_RANK. */
typedef enum clv_attribute_kind {
    CLV_ATTRIBUTE_NUMBER = 1,
    CLV_ATTRIBUTE_INT,
    CLV_ATTRIBUTE_BOOL,
    CLV_ATTRIBUTE_DTYPE,
    CLV_ATTRIBUTE_PAIR,
    CLV_ATTRIBUTE_LIST,
    CLV_ATTRIBUTE_TEXT
} clv_attribute_kind;

/** An attribute of an op. */
typedef struct clv_op_attribute {
    const char *name;
    clv_attribute_kind kind;
    /** What it is if it is not given: a number; numbers with commas between them for a pair or a list; a text itself; the name of an
     *  attribute before, whose value it is. NULL: it must be given. */
    const char *fallback;
    double least, most;       /**< of each number, if there are such bounds; then it is not NaN */
    bool has_least, has_most, above, below; /**< above, below: the bound itself is not allowed */
    size_t at, bytes; /**< the library's own, 0 in a custom op: where its structure has it */
} clv_op_attribute;

/**
 * How an op is called, for bindings: the functions of ops.h without their `clv_`, and ops that were registered. Lists end with a name
 * that is NULL.
 */
typedef struct clv_op_signature {
    const char *name;
    CLV_UNTIL_NULL const clv_op_value *inputs;
    CLV_UNTIL_NULL const clv_op_attribute *attributes; /**< NULL: none */
    CLV_UNTIL_NULL const clv_op_value *outputs;
    CLV_OR_NULL const clv_custom_op *custom; /**< as it was registered; NULL: one of ops.h */
} clv_op_signature;

/** A value for an attribute, in the member that its kind asks for. A pair may be one `number`. */
typedef struct clv_op_argument {
    const char *name;
    double number;
    CLV_COUNT(n) const int64_t *list;
    int n; /**< in the list */
    const char *text;
} clv_op_argument;

/** The signatures: those of ops.h in its order, then registered ones. NULL outside, and for a name that is of none. */
CLV_API CLV_OR_NULL const clv_op_signature *clv_op_get(int i);
CLV_API CLV_OR_NULL const clv_op_signature *clv_op_find(const char *name);

/**
 * Build an op by its name: what the functions of ops.h do. graph: NULL: that of the first input that is not NULL; if all are, NULL is
 * what comes.
 *
 * Errors  (sticky) CLV_E_NOT_FOUND  no such op, or an attribute that it has not;  CLV_E_VALUE  inputs or attributes are missing, too
 *         many, or of another kind;  as ops.h says of the op
 */
CLV_API clv_tensor *clv_op_call(CLV_OR_NULL clv_graph *graph, const char *name,
                                CLV_OR_NULL CLV_COUNT(n) clv_tensor *const *inputs, int n,
                                CLV_OR_NULL CLV_COUNT(n_arguments) const clv_op_argument *arguments,
                                int n_arguments);

// ---- ops of a program's own ------------------------------------------------------------------------------------------

/** The i-th output of the op whose output `tensor` is; NULL if there is none. */
CLV_API clv_tensor *clv_op_output(clv_tensor *tensor, int i);

#ifndef CLEAVE_STABLE_ONLY // experimental
/** Type and shape of an input or output. NONE: an optional input that is not there. */
typedef struct clv_op_tensor {
    clv_dtype dtype;
    clv_shape shape;
} clv_op_tensor;

/** One use of an op: what its functions see. It may have more in a later version. */
typedef struct clv_op_use {
    int n_in, n_out, n_attributes;
    CLV_COUNT(n_in) const clv_op_tensor *in;
    CLV_COUNT(n_out) const clv_op_tensor *out;
    /** In the descriptor's order, each with its value: `number`, `list` and `n`, or `text`. A pair is a list of two. */
    CLV_COUNT(n_attributes) const clv_op_argument *attributes;
} clv_op_use;

/** An input of a case. */
typedef struct clv_op_sample_input {
    clv_dtype dtype; /**< NONE: an optional input that is not there */
    clv_shape shape;
    double lo, hi; /**< its values; both 0: from -1 to 1. Of integers: whole numbers, hi included */
} clv_op_sample_input;

/** A case for the check. */
typedef struct clv_op_sample {
    const char *label;
    CLV_COUNT(n_in) const clv_op_sample_input *in;
    int n_in;
    CLV_COUNT(n_attributes) const clv_op_argument *attributes; /**< those that are not to have their defaults */
    int n_attributes;
    bool quick;       /**< one of the few of `check --quick` */
    bool no_gradient; /**< the gradient is not compared with differences (steps, kinks) */
    CLV_RESERVED(4);
} clv_op_sample;

/**
 * A way to compute an op.
 *
 * kernel   OpenCL C 1.2. Every function and kernel is named KERNEL(name). The kernel's arguments are all outputs, all inputs (one that
 *          is not there is a null pointer), the number of work-items as an int, and the attributes: a number as a float, a whole number,
 *          a bool and a dtype as an int, a pair as two. Work-items beyond the number must do nothing.
 *          Macros say the rest. Of a tensor `x`: T_x, how it is stored (float, int, i8, u8, b8, i64; of one whose type lists f16: f16 and bf16
 *          too, to be read by LOAD(T_x, p) and written by STORE(T_x, v, p)). Of a list `axes`: N_axes, and L_axes, its numbers with
 *          commas between them. Of a text `mode` that is a name, as `reflect`: IS_mode_reflect. Other texts no kernel sees.
 */
typedef struct clv_op_variant {
    const char *name;   /**< the first is `plain`: it runs on every device */
    const char *kernel; /**< NULL: the text of the one before */
    const char *entry;  /**< NULL: the op's name */
    int64_t (*items)(
        const clv_op_use *use); /**< how many work-items; NULL: one for each element of output 0 */
    int group;                  /**< work-items in a group; 0: as suits the device */
    /** Can it run there with these shapes? NULL: always. A group that is too large for the device it cannot. */
    bool (*supports)(const clv_device_info *device, const clv_op_use *use);
    double relative; /**< expected time relative to that of `plain`: the smallest is taken, where no tuning says better; 0: 1 */
    CLV_RESERVED(4);
} clv_op_variant;

/**
 * An op. It is either a function of existing ops (`build`) or kernels (`variants` with `reference`, perhaps `infer` and `gradient`).
 * What is pointed to stays as it is until the process ends: the descriptor itself is copied.
 *
 *     static const clv_op_value inputs[] = {{"x", "f32[N,*]"}, {"scale", "f32[N]?"}, {NULL, NULL}};
 *     static const clv_op_value outputs[] = {{"y", "like x"}, {NULL, NULL}};
 *     static const clv_op_attribute attributes[] = {{.name = "beta", .kind = CLV_ATTRIBUTE_NUMBER, .fallback = "1"}, {.name = NULL}};
 */
struct clv_custom_op {
    size_t bytes;     /**< sizeof(clv_custom_op): a descriptor may have more in a later version */
    const char *name; /**< letters, digits and `_`; not that of an op that there is */
    CLV_UNTIL_NULL const clv_op_value *inputs; /**< NULL: none. A list (`...`) is for `build` alone */
    /** NULL: none. At most CLV_NODE_ARGUMENTS; a text has at most 31 bytes. */
    CLV_UNTIL_NULL const clv_op_attribute *attributes;
    CLV_UNTIL_NULL const clv_op_value *outputs; /**< one to eight; of `build` one */

    /** Make the op of others. Its gradient is theirs. All that follows is not looked at. */
    clv_tensor *(*build)(clv_graph *graph, const clv_op_use *use, clv_tensor *const *in);

    /**
     * Write what the types of the outputs do not say into `out`, which is what they say: NULL, or a sentence that begins with the mistake
     * ("x wants rank 2"), static. To it every float is an f32. NULL: they say all.
     */
    const char *(*infer)(const clv_op_use *use, clv_op_tensor *out);
    CLV_UNTIL_NULL const clv_op_variant *variants;
    /** The specification, in double: fill every element of every output. */
    void (*reference)(const clv_op_use *use, const double *const *in, double *const *out);
    /** Build the gradients dx of inputs from dy (NULL where none comes), with any ops. NULL: not differentiable. */
    void (*gradient)(const clv_op_use *use, clv_tensor *const *in, clv_tensor *const *out,
                     clv_tensor *const *dy, clv_tensor **dx);
    void (*cost)(const clv_op_use *use, double *flops, double *bytes); /**< NULL: a flop for each element */
    int64_t (*sum_length)(const clv_op_use *use); /**< terms behind an element, for tolerances; NULL: 1 */
    CLV_UNTIL_NULL const clv_op_sample *samples;  /**< at least one */
};

/**
 * Register an op for the whole process. The same one again is fine.
 *
 * Errors  CLV_E_VALUE  something that it needs is missing or out of range;  CLV_E_STATE  the name is taken, or there are too many;
 *         CLV_E_HOST_MEMORY
 */
CLV_API CLV_MUST_CHECK clv_status clv_op_register(clv_runtime *runtime, CLV_KEPT const clv_custom_op *op);
#endif // CLEAVE_STABLE_ONLY

// ---- a graph, node by node ------------------------------------------------------------------------------------------

#ifndef CLEAVE_STABLE_ONLY // experimental
enum { CLV_NODE_ARGUMENTS = 16 };

/** A node of a graph. What is pointed to is the graph's, and the arguments' lists lie in the structure itself. */
typedef struct clv_node_info {
    const char *op;    /**< its name; of a node that clv_backward, an optimizer or mixed precision appended, one without a signature */
    const char *layer; /**< the scope that it was built in, `layer1.0.conv1`; "": none */
    const char *phase; /**< `forward`, `backward`, `update` */
    CLV_COUNT(n_inputs) clv_tensor *const *inputs; /**< n_inputs; NULL: an optional one that is not there */
    CLV_COUNT(n_outputs) clv_tensor *const *outputs;
    int n_inputs, n_outputs;
    const clv_op_signature *signature; /**< NULL: clv_op_call does not make it */
    /** n_arguments of them: all that clv_op_call wants to make the same */
    clv_op_argument arguments[CLV_NODE_ARGUMENTS];
    int n_arguments;
    int64_t lists[CLV_NODE_ARGUMENTS][CLV_MAX_RANK];
} clv_node_info;

/**
 * The i-th node of a graph (clv_graph_info.n_nodes), in the order in which they were appended, which is one that they can be computed in.
 * Running statistics of batch_norm are moved by a node of their own, of phase `update`, behind it.
 *
 * out     filled; all zero past the end
 * result  is there such a node?
 */
CLV_API bool clv_graph_node_get(const clv_graph *graph, int index, CLV_OUT clv_node_info *out);
#endif // CLEAVE_STABLE_ONLY

/** What `--ops FILE` of `cleave check`, `train`, `eval`, `run`, `plan` and `compare` calls in a shared library: it registers the
 *  library's ops, and, for all but `check`, optimizers (clv_optimizer_register), models (clv_model_register) and losses
 *  (clv_loss_register). */
typedef clv_status (*clv_ops_init_function)(clv_runtime *runtime);
#define CLV_OPS_INIT "clv_ops_init"

#ifdef __cplusplus
}
#endif
#endif
