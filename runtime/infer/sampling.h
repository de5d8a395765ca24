// SPDX-License-Identifier: Apache-2.0
// Which token comes next.
#ifndef CLV_INFER_SAMPLING_H
#define CLV_INFER_SAMPLING_H

#include "cleave/generate.h"

/** Choose a token by its logits. number: how many were drawn before with this seed.
 *  Errors: CLV_E_VALUE  the sampling, or logits that are NaN or infinite (-infinity: a token that is not to
 *  be chosen; one must be) */
CLV_MUST_CHECK clv_status clv__sample_token(clv_runtime *runtime, const float *logits, int64_t n,
                                            const clv_sampling *sampling, uint64_t number, int32_t *token);

#endif
