// SPDX-License-Identifier: Apache-2.0
// A model as an ONNX file. The model is built as it predicts, for two batches: what differs between the two graphs follows the batch,
// and stays open in the file.
#ifndef CLV_ONNX_WRITE_H
#define CLV_ONNX_WRITE_H

#include "graph/graph.h"
#include "io/array.h"

/** A model, built for a batch. */
typedef struct clv__onnx_built {
    clv_graph *graph;
    int64_t batch;
    clv_tensor *inputs[CLV_MAX_PORTS], *outputs[CLV_MAX_PORTS];
} clv__onnx_built;

/** What is written. */
typedef struct clv__onnx_writing {
    clv__onnx_built one, other; // other.batch is one.batch if the batch is fixed
    const char *input_names[CLV_MAX_PORTS], *output_names[CLV_MAX_PORTS];
    int n_inputs, n_outputs;
    const clv_archive *weights; // parameters and buffers by name; its texts become metadata
    const char *graph_name;
    uint64_t
        most; // bytes of the file: of a larger one weights go to one beside it; 0: 2 GB, as Protocol Buffers end at 2 GiB
} clv__onnx_writing;

/**
 * Write the file.
 *
 * Errors  CLV_E_UNSUPPORTED  ops that ONNX has no node for: all, with counts; or something follows the batch in a way that ONNX cannot
 *                            say;  CLV_E_NOT_FOUND  `weights` lacks a parameter;  CLV_E_IO;  CLV_E_HOST_MEMORY
 */
CLV_MUST_CHECK clv_status clv__onnx_write(const clv__onnx_writing *what, const char *path, clv__error *error);

/** Has ONNX nodes for this op of ours? */
bool clv__onnx_writes(const char *op);

#endif
