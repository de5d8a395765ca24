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
/** All such initializers that the session has tensors of, as f32. As clv__onnx_open. */
CLV_MUST_CHECK clv_status clv__onnx_weights_read(clv_session *session, const char *path, clv_archive **out);

#endif
