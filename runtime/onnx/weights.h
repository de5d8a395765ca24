// SPDX-License-Identifier: Apache-2.0
// Weights of an ONNX file as an archive: what clv_weights_load reads.
#ifndef CLV_ONNX_WEIGHTS_H
#define CLV_ONNX_WEIGHTS_H

#include "cleave/io.h"
#include "cleave/plan.h"
#include "onnx/file.h"

/** Floats with a dimension: trained, or statistics. Others are constants of the graph. */
bool clv__onnx_is_parameter(const clv__onnx_tensor *tensor);
/** Does the file look like one of ONNX: by its name's end? */
bool clv__onnx_is_file(const char *path);
/** A file as one of weights: an archive whose arrays lie in the mapping, under the names of a session's tensors. Arrays are said to be
 *  f32, and are what the file has: clv__archive_data makes f32 of one. */
typedef struct clv__onnx_weights {
    const clv__onnx_model *model;
    clv__onnx_model *opened; // to be closed with it; NULL: another's
    clv_archive *archive;
    clv__error *error;
} clv__onnx_weights;

/** On failure there is nothing to be closed. */
clv_status clv__onnx_weights_open(clv_session *session, const char *path, clv__onnx_weights *out);
/** The same of a model that is open, and stays so. */
clv_status clv__onnx_weights_of(clv_session *session, const clv__onnx_model *model, clv__onnx_weights *out);
struct clv_onnx;
const clv__onnx_model *clv__onnx_model_of(const struct clv_onnx *onnx);
/** Zeros are fine. */
void clv__onnx_weights_close(clv__onnx_weights *weights);

#endif
