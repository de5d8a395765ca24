// SPDX-License-Identifier: Apache-2.0
// A model as Hugging Face keeps it: weights, and beside them config.json and tokenizer.json.
#ifndef CLV_INFER_HUGGING_FACE_H
#define CLV_INFER_HUGGING_FACE_H

#include "cleave/io.h"
#include "cleave/nn.h"

/** A file beside the weights, in a buffer of `bytes`; NULL: there is none. */
const char *clv__beside(const char *weights, const char *name, char *path, size_t bytes);

/**
 * The sizes in config.json beside weights.
 *
 * out     model, a static name, NULL: there is no config.json, or it is of no model that Cleave brings
 *
 * Errors  CLV_E_IO, CLV_E_FORMAT  the file, or sizes that cannot be;  CLV_E_UNSUPPORTED  a model of a kind that is not built
 */
clv_status clv__hugging_face_read(clv_runtime *runtime, const char *weights, clv_gpt_config *out);

/**
 * Weights under the names that a session has: a model's own prefix (`transformer.`, `model.`, `bert.`) that files of its inner part lack,
 * and older names of BERT's norms.
 *
 * has  is there such a tensor?
 */
clv_status clv__hugging_face_names(clv_archive *archive, bool (*has)(const void *of, const char *name),
                                   const void *of);

#endif
