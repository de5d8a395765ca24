// SPDX-License-Identifier: Apache-2.0
// A graph says what is computed: inputs, parameters, ops, layers, gradients. No device, no memory.
//
// Builder calls nest, `clv_relu(clv_matmul(x, w))`, and never fail on the spot: the first mistake sticks in the graph,
// every later call returns NULL, and clv_graph_status, or the plan, reports the one sentence.
// Shapes are fixed while building. For another batch size call the function that builds the model again: it costs
// microseconds, and parameters are shared by name between all plans of a session.
#ifndef CLEAVE_GRAPH_H
#define CLEAVE_GRAPH_H

#include "runtime.h"
#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clv_graph clv_graph;

CLV_API CLV_MUST_CHECK clv_status clv_graph_create(clv_runtime *runtime, clv_graph **out);
/** Destroys the graph and its tensors. Plans made from it must be gone. NULL is fine. */
CLV_API void clv_graph_destroy(clv_graph *graph);

/** CLV_OK, or the first mistake made while building; its sentence is put into the runtime (clv_runtime_error). */
CLV_API CLV_MUST_CHECK clv_status clv_graph_status(const clv_graph *graph);

/** How floats are stored between ops. Every op computes in f32. */
typedef enum clv_precision {
    CLV_PRECISION_F32,
    CLV_PRECISION_MIXED, /**< f16 where torch.autocast has it; gradients want a loss scaler (clv_scaler_add) */
    CLV_PRECISION_MIXED_BF16 /**< the same with bf16: float's range, fewer digits, no scaler */
} clv_precision;

/**
 * How a graph is built from now on. A function of layers that changes it puts back what it found:
 *
 *     const clv_graph_modes before = clv_graph_modes_get(graph);
 *     clv_graph_set_place(graph, "gpu:0");
 *     ...
 *     clv_graph_modes_set(graph, &before);
 *
 * In a precision of two bytes ops store their results as within PyTorch's autocast:
 *
 *     in two bytes   matmul, linear, conv2d, layer_norm
 *     in f32         softmax, log_softmax, losses, sum, exp, log, pow_scalar, square, embedding, statistics
 *     as the inputs  all others: two bytes if all inputs have them
 *
 * Parameters stay f32, and ops read them as they are. A gradient has the type of its tensor. Sums are made in f32.
 * These are PyTorch's lists for GPUs, on every device; its list for CPUs leaves more to the inputs (exp, softmax, sum and the like),
 * where a sum or a square soon passes the largest f16. Of layer_norm, in f32 there, the result here is what the next product would
 * make of it, in half the memory. tests/golden/autocast.c holds the rest against PyTorch, op by op.
 */
typedef struct clv_graph_modes {
    bool
        training; /**< layers behave as in training: dropout drops, batch_norm uses the batch. At first false */
    clv_precision precision; /**< at first F32 */
    /** what is built is computed on this device (a device spec), whatever the plan's placement says; NULL: as that says. Parameters made
     *  and first used here live here. Copied. See also clv_to, clv_data_parallel */
    const char *place;
    /** every layer that drops values drops this part of them, whatever part it was built with; 0: none does; below 0, as at first: each
     *  its own. Not of clv_dropout, which is given a part */
    float dropout;
    CLV_RESERVED(4);
} clv_graph_modes;
CLV_API clv_graph_modes clv_graph_modes_get(CLV_OR_NULL const clv_graph *graph);
/** Errors  (sticky) CLV_E_VALUE  no such precision, or a dropout of 1 and more */
CLV_API void clv_graph_modes_set(clv_graph *graph, const clv_graph_modes *modes);

static inline void clv_graph_set_training(clv_graph *graph, bool training) {
    clv_graph_modes modes = clv_graph_modes_get(graph);
    modes.training = training;
    clv_graph_modes_set(graph, &modes);
}
static inline void clv_graph_set_precision(clv_graph *graph, clv_precision precision) {
    clv_graph_modes modes = clv_graph_modes_get(graph);
    modes.precision = precision;
    clv_graph_modes_set(graph, &modes);
}
static inline void clv_graph_set_place(clv_graph *graph, const char *device) {
    clv_graph_modes modes = clv_graph_modes_get(graph);
    modes.place = device;
    clv_graph_modes_set(graph, &modes);
}
static inline void clv_graph_set_dropout(clv_graph *graph, float p) {
    clv_graph_modes modes = clv_graph_modes_get(graph);
    modes.dropout = p;
    clv_graph_modes_set(graph, &modes);
}

/** Names of layers and parameters made from now on begin with `name.`; calls nest, pop ends the last one. A name may hold dots
 *  and is one scope all the same. A plan is refused (CLV_E_STATE) while a scope is not popped. */
CLV_API void clv_scope_push(clv_graph *graph, const char *name);
CLV_API void clv_scope_pop(clv_graph *graph);

/** How a parameter gets its first values. */
typedef enum clv_init_kind { CLV_INIT_ZEROS, CLV_INIT_ONES, CLV_INIT_UNIFORM, CLV_INIT_NORMAL } clv_init_kind;
typedef struct clv_init {
    clv_init_kind kind;
    float a, b; /**< UNIFORM: from a to b; NORMAL: mean a, standard deviation b */
} clv_init;

/** A tensor that the caller feeds before each step. Names are unique within a graph. */
CLV_API clv_tensor *clv_input(clv_graph *graph, const char *name, clv_dtype dtype, clv_shape shape);

#ifndef CLEAVE_STABLE_ONLY // experimental
/**
 * Feed this input in the middle of a step: clv_run_step then computes what comes before the first node that reads it, and
 * clv_run_resume the rest. So a program can fetch results, compute with them itself, and feed what the backward pass begins with.
 *
 * input   made by clv_input. NULL is fine
 *
 * Errors  CLV_E_VALUE  it is no input;  CLV_E_UNSUPPORTED  by clv_plan_create: the plan is on several devices
 */
CLV_API void clv_input_late(clv_tensor *input);
#endif // CLEAVE_STABLE_ONLY

/** A trained tensor, f32. It lives in the session, found by its full name (scope included). The same name twice in one
 *  graph is the same tensor (tied weights), if the shapes agree. */
CLV_API clv_tensor *clv_parameter(clv_graph *graph, const char *name, clv_shape shape, clv_init init);

/** As a parameter, saved with the weights, but not trained: running statistics. Of any type. */
CLV_API clv_tensor *clv_buffer(clv_graph *graph, const char *name, clv_dtype dtype, clv_shape shape,
                               clv_init init);

/**
 * An array that is part of the graph: a table, a mask, a filter that is not trained. The values are copied. A session keeps them on
 * the device as long as it lives; memory reports count them among activations, and weights and checkpoints are without them. The same
 * array twice in a graph is one tensor. One number for all elements: clv_full, which takes no memory for good.
 *
 * dtype   any but f16 and bf16
 * data    the elements in C order; NULL only for a shape without elements
 *
 * Gradient  none
 * Errors  (sticky) CLV_E_DTYPE  one of these;  CLV_E_SHAPE  the shape is not possible;  CLV_E_VALUE  data is NULL
 * Source  onnx: Constant
 */
CLV_API clv_tensor *clv_constant(clv_graph *graph, clv_dtype dtype, clv_shape shape,
                                 CLV_COUNT(shape) const void *data);

/** Mark a tensor as a result: it can be fetched after each step. Give it a name to find it by; NULL keeps its own. */
CLV_API void clv_output(clv_tensor *tensor, CLV_OR_NULL const char *name);

/** The tensor of that name: input, parameter, buffer or output. NULL if there is none. */
CLV_API clv_tensor *clv_graph_find(const clv_graph *graph, const char *name);

/**
 * Does a gradient flow to this tensor? For any of them: true for an input asks for its gradient; false for a parameter freezes it
 * (no gradient, so no update and no optimizer state); false for the result of an op cuts the graph there, as clv_detach does for
 * one reader of it. Ask before ops read the tensor: what was built from it keeps what was true then. Default: true for
 * parameters and for what follows from a tensor with it, false for inputs and buffers. NULL is fine.
 *
 * Errors  (sticky) CLV_E_DTYPE  true for a tensor that is not a float
 * Source  torch.Tensor.requires_grad_
 */
CLV_API void clv_requires_grad(clv_tensor *tensor, bool requires_grad);

/**
 * Freeze parameters, as PyTorch's `requires_grad_(False)`: they take no gradient and no optimizer state, nothing is computed
 * backwards that leads to them alone, and no activation is kept for it. Call it when the model is built, before clv_backward.
 *
 *     clv_freeze(graph, "conv1,layer1.*");      // all but the head: clv_freeze(graph, "conv*,bn*,layer*")
 *
 * patterns  over names of parameters and of the modules that they lie in (`*` any text, `?` one character), with commas;
 *           NULL or "" freezes nothing
 *
 * Notes   Running statistics of batch_norm are no parameters: as in PyTorch they follow the batches of a graph that is set to
 *         training, whether weight and bias are frozen or not. Dropout goes on too.
 * Errors  (sticky) CLV_E_NOT_FOUND  a pattern matches no parameter;  CLV_E_VALUE  nothing is left to train;  CLV_E_STATE
 *         clv_backward was called before
 */
CLV_TRAIN_API void clv_freeze(clv_graph *graph, CLV_OR_NULL const char *patterns);

/**
 * Append the nodes that compute d loss / d p for every parameter p (and input with requires_grad) that leads to `loss`.
 *
 * loss    one element, f32
 * Errors  (sticky) CLV_E_SHAPE loss has more than one element; CLV_E_UNSUPPORTED an op on the way has no gradient;
 *         CLV_E_STATE no parameter leads to the loss. The sentence names the op that stopped the gradient: by its layer, or where
 *         it is in none by its number, as in the name of its result (`argmax#3`)
 */
CLV_TRAIN_API void clv_backward(clv_tensor *loss);

/** The gradient that clv_backward made for a tensor, same shape; NULL if none flows to it. To fetch it, mark it with
 *  clv_output. */
CLV_TRAIN_API clv_tensor *clv_gradient(const clv_tensor *tensor);

/**
 * Write a graph to a file: inputs, parameters and buffers with their first values' rule, constants with their values, ops by
 * name with attributes (clv_op_call), outputs. Weights are not part of it: clv_weights_save has those. The file is of the safetensors
 * format, with the constants as its tensors and the graph as JSON in its metadata, under `cleave.graph`.
 *
 * What clv_backward, optimizers and scalers append is left out: call them again on the graph that is read. Ops of one's own are
 * written by name and must be registered where the file is read.
 *
 * Errors  CLV_E_UNSUPPORTED  a node that no function of ops.h appends (a key-value cache's), or of a part of the batch (replicas,
 *         micro-batches); the sentence names it;  CLV_E_STATE  a scope is open;  CLV_E_IO;  as clv_graph_status
 */
CLV_API CLV_MUST_CHECK clv_status clv_graph_write(const clv_graph *graph, const char *path);

/**
 * Build the graph that clv_graph_write wrote: the same nodes with the same names, training or not, in the same precision. Tensors are
 * found by name (clv_graph_find). A file is not trusted: each of its calls is looked at as a caller's is.
 *
 * graph   an empty one; after an error it cannot be built on
 *
 * Errors  CLV_E_STATE  the graph is not empty;  CLV_E_FORMAT  it is no graph; the sentence names file and node;
 *         CLV_E_UNSUPPORTED  another version;  CLV_E_NOT_FOUND  an op that there is not;  as the calls of ops, clv_safetensors_read
 */
CLV_API CLV_MUST_CHECK clv_status clv_graph_read(clv_graph *graph, const char *path);

typedef struct clv_graph_info {
    int n_nodes;      /**< for clv_graph_node_get */
    int n_parameters; /**< for clv_parameter_get */
    /** its input of step values (`hyper`, f32[CLV_HYPER_VALUES], optim.h); NULL if it has no optimizer */
    clv_tensor *hyper;
    CLV_RESERVED(3);
} clv_graph_info;
CLV_API clv_graph_info clv_graph_info_get(const clv_graph *graph);

/** The i-th parameter (trained tensor) of the graph, in the order they were made; NULL past the end. */
CLV_API clv_tensor *clv_parameter_get(const clv_graph *graph, int index);

#ifdef __cplusplus
}
#endif
#endif
