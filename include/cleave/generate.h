// SPDX-License-Identifier: Apache-2.0
// Writing with a GPT: what its weights say of it, and tokens one after the other.
#ifndef CLEAVE_GENERATE_H
#define CLEAVE_GENERATE_H

#include "data.h"
#include "nn.h"
#include "plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Write a session's weights (clv_weights_save), and with them what is needed to use them: sizes of the model and the vocabulary, as
 * texts of the safetensors file.
 *
 * config      as the model was made with; zeros mean the defaults
 *
 * Errors      as clv_weights_save
 */
CLV_API CLV_MUST_CHECK clv_status clv_gpt_weights_save(clv_session *session, const clv_gpt_config *config,
                                                       const clv_vocabulary *vocabulary, const char *path);
/**
 * What weights of a GPT say of it. Reads no weights into a model: clv_weights_load does.
 *
 * config      written: sizes, without zeros; dropout is 0
 * vocabulary  the caller's
 *
 * Errors      CLV_E_IO, CLV_E_FORMAT  the file, or sizes that are no model's;  CLV_E_NOT_FOUND  weights that say nothing of that kind
 */
CLV_API CLV_MUST_CHECK clv_status clv_gpt_weights_read(clv_runtime *runtime, const char *path,
                                                       clv_gpt_config *config, clv_vocabulary **vocabulary);

#ifdef __cplusplus
}
#endif
#endif
