// SPDX-License-Identifier: Apache-2.0
// Models of ONNX files, as models of this library: to run, to evaluate, to plan, and to train. Experimental.
//
//     clv_onnx *onnx;
//     clv_onnx_read(runtime, "net.onnx", NULL, &onnx);
//     clv_model model = *clv_onnx_info_get(onnx).model;    // as any other: clv_trainer_create, clv_predictor_create, clv_model_build
//     ...
//     clv_weights_load(session, "net.onnx");                // the file is one of weights, too
//     clv_onnx_write(session, &model, NULL, "trained.onnx"); // any model and its weights, for ONNX Runtime and others
#ifndef CLEAVE_ONNX_H
#define CLEAVE_ONNX_H

#include "nn.h"
#include "plan.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifndef CLEAVE_STABLE_ONLY // experimental
/** A model that was read from a file. */
typedef struct clv_onnx clv_onnx;

typedef struct clv_onnx_config {
    /** what stands for dimensions that the file leaves open, beside the batch, which is the first: `seq=128,height=224` */
    CLV_OR_NULL const char *dims;
    bool numbers; /**< its results are numbers, not classes */
    /** inputs of any shape and number, for clv_onnx_append: nothing is said of a batch, nothing is built yet, and ops that are missing
     *  stand in clv_onnx_info.missing */
    bool any_shape;
    /** of several results those that are targets, `logits,box=mse`: a loss other than cross_entropy, nll and ctc says that it is numbers. The
     *  target of one with ctc has as many labels as steps; in a copy of the model, or of its ports, the dimension may be less. NULL, or none
     *  of these is there: all */
    CLV_OR_NULL const char *targets;
    /** with a target of the loss `ctc`: the name of one more input of the model, whole numbers [N], how many steps of each sample count. Its
     *  result is then the logarithms of probabilities, where past them only the blank can be. A dataset with lengths below 0 or above the
     *  steps is refused; of other inputs, which nobody looks at, these are none and all steps. NULL: none, and all steps count */
    CLV_OR_NULL const char *input_lengths;
    CLV_RESERVED(2);
} clv_onnx_config;

typedef struct clv_onnx_info {
    /** its inputs and results as ports; of one input and one result `x` and `labels`. Borrowed, as all here. A copy with other `classes`
     *  (clv_model_for) has another last layer. NULL with any_shape, as ports */
    const clv_model *model;
    const char *producer; /**< the program that wrote the file; "": it does not say */
    int64_t ir_version, opset;
    int64_t n_nodes, n_parameters; /**< of the file's graph; numbers that are trained */
    /** n_inputs inputs, then n_targets results, under the file's own names; of one of each, too */
    const clv_port *ports;
    int n_inputs, n_targets;
    int64_t
        batch; /**< the first dimension of all inputs, where the file fixes it; 0: open. Any other is taken, too */
    const char
        *missing; /**< with any_shape: a sentence of all ops that Cleave has not, with counts; "": none */
    /** parameters of the layer that has other sizes with other `classes`: "fc.weight,fc.bias", as clv_train_config.weights_except; "":
     *  none. Of a model of one result */
    const char *class_parameters;
} clv_onnx_info;

/**
 * Read a model from an ONNX file: opsets 9 to 28, ONNX's own ops.
 *
 * The first dimension of every input and result is the batch; a result that has it second, as sequences of PyTorch's, is given with the
 * first two exchanged. Weights are initializers of floats with a dimension: they are parameters of
 * the same names, first zero; clv_weights_load of the same file gives them their values. Statistics of BatchNormalization are buffers. In
 * a training graph BatchNormalization and Dropout do what they do in training. Integers are i32, f16, bf16 and f64 are f32. A result
 * of two dimensions gives classes, if config does not say `numbers`; so does one of three of a model of tokens. Where a shape
 * depends on numbers that are fed (NonZero, a Reshape by a computed shape) the model cannot be built; the sentence names the node.
 *
 * config   NULL means all zero
 * out      the caller's, until clv_onnx_destroy; it must outlive its model's uses. The file stays mapped
 *
 * Errors   CLV_E_IO, CLV_E_FORMAT   the file cannot be read, or is no ONNX model;  CLV_E_UNSUPPORTED  ops or an opset that Cleave has not:
 *          all of them, with counts;  CLV_E_VALUE  a dimension is open, and `dims` does not say it, or says one that is not open;
 *          CLV_E_SHAPE  its nodes do not fit each other;  CLV_E_HOST_MEMORY
 * Source   the ONNX specification, operators of opset 28.
 */
CLV_API CLV_MUST_CHECK clv_status clv_onnx_read(clv_runtime *runtime, const char *path,
                                                CLV_OR_NULL const clv_onnx_config *config,
                                                CLV_OUT clv_onnx **out);
/**
 * The same of bytes: a ModelProto, as files have it.
 *
 * name     for sentences
 * Errors   as clv_onnx_read;  CLV_E_FORMAT  external data: there is no folder for them
 */
CLV_API CLV_MUST_CHECK clv_status clv_onnx_read_bytes(clv_runtime *runtime, const char *name,
                                                      CLV_COUNT(bytes) CLV_KEPT const void *data,
                                                      size_t bytes, CLV_OR_NULL const clv_onnx_config *config,
                                                      CLV_OUT clv_onnx **out);
/** NULL is fine. */
CLV_API void clv_onnx_destroy(CLV_OR_NULL clv_onnx *onnx);
CLV_API clv_onnx_info clv_onnx_info_get(const clv_onnx *onnx);

/** What a file says of an input or a result. */
typedef struct clv_onnx_value {
    const char *name;           /**< NULL: there is no such value */
    int type;                   /**< TensorProto.DataType: 1 float, 7 int64, 9 bool; 0: not said */
    int rank;                   /**< -1: not said */
    int64_t dims[CLV_MAX_RANK]; /**< -1: open */
    CLV_RESERVED(2);
} clv_onnx_value;
/** The i-th of its inputs that are no initializers, and behind these n_inputs the results. */
CLV_API clv_onnx_value clv_onnx_value_get(const clv_onnx *onnx, int index);

/**
 * Append a file's nodes to a graph, for inputs of any shapes.
 *
 * graph     of the inputs
 * inputs    n_inputs of them (clv_onnx_info), in the file's order. Floats are cast to f32, all others to i32
 * outputs   the n_targets results: f32 or i32
 * failed    the file's node that could not be built, from 0; -1: none, or not for one node. NULL: not wanted
 *
 * Errors    the graph's first mistake, as clv_graph_status;  CLV_E_VALUE  another number of inputs or outputs
 */
CLV_API CLV_MUST_CHECK clv_status clv_onnx_append(const clv_onnx *onnx, clv_graph *graph,
                                                  CLV_COUNT(n_inputs) clv_tensor *const *inputs, int n_inputs,
                                                  CLV_OUT CLV_COUNT(n_outputs) clv_tensor **outputs,
                                                  int n_outputs, CLV_OUT CLV_OR_NULL int64_t *failed);

/** Write the file's weights to a session that plans of its graphs were reserved in. Errors as clv_weights_load. */
CLV_API CLV_MUST_CHECK clv_status clv_onnx_weights_load(clv_session *session, const clv_onnx *onnx);

typedef struct clv_onnx_write_config {
    int64_t
        batch; /**< samples of a batch; 0: any number, as the first dimension `batch` of inputs and results */
    CLV_RESERVED(4);
} clv_onnx_write_config;

/**
 * Write a model with a session's weights to an ONNX file, as it predicts: opset 18, f32, one graph, in ONNX's own ops.
 *
 * Parameters and running statistics are initializers under their names. Inputs and results have the names of the model's ports; the
 * result of a model with one is `logits`. Inputs of i32 are int64 there, as PyTorch has them. What the session knows of its weights
 * (clv_weights_describe: classes, normalization, columns) stands in the metadata under the keys that safetensors have it under. Above
 * 2 GB weights go to a file beside it, `PATH.data`. Running averages are written where the session has them, as by clv_weights_save.
 *
 * session  with the model's parameters: a trainer's, a predictor's
 * config   NULL means all zero
 *
 * Errors   CLV_E_UNSUPPORTED  ops that ONNX has no node for, all of them, with counts; or the model is another one for each batch, and
 *          `batch` is 0;  CLV_E_NOT_FOUND, CLV_E_SHAPE  the session lacks a parameter of the model;  CLV_E_VALUE  a batch below 0;
 *          CLV_E_IO;  CLV_E_HOST_MEMORY  a copy of all weights is made
 * Source   the ONNX specification, IR version 8, operators of opset 18.
 */
CLV_API CLV_MUST_CHECK clv_status clv_onnx_write(clv_session *session, const clv_model *model,
                                                 CLV_OR_NULL const clv_onnx_write_config *config,
                                                 const char *path);
#endif // CLEAVE_STABLE_ONLY

#ifdef __cplusplus
}
#endif
#endif
