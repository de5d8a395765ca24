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
CLV_API CLV_MUST_CHECK clv_status clv_gpt_weights_save(clv_session *session,
                                                       CLV_OR_NULL const clv_gpt_config *config,
                                                       const clv_vocabulary *vocabulary, const char *path);
/**
 * What weights of a GPT say of it. Reads no weights into a model: clv_weights_load does.
 *
 * config      written: sizes, without zeros; dropout is 0, or what config.json beside weights of a BERT says
 * vocabulary  the caller's; NULL: not wanted
 *
 * Errors      CLV_E_IO, CLV_E_FORMAT  the file, or sizes that are no model's;  CLV_E_NOT_FOUND  weights that say nothing of that kind
 */
CLV_API CLV_MUST_CHECK clv_status clv_gpt_weights_read(clv_runtime *runtime, const char *path,
                                                       CLV_OUT clv_gpt_config *config,
                                                       CLV_OR_NULL clv_vocabulary **vocabulary);

/** A GPT that writes one token after the other. */
typedef struct clv_generator clv_generator;

typedef struct clv_generator_config {
    clv_device *device;        /**< NULL: the best device */
    const clv_gpt_config *gpt; /**< must be given; copied */
    clv_precision precision;   /**< as clv_graph_set_precision */
    const char *variants;      /**< as clv_plan_config */
    /** compute the whole context for each token, instead of keeping keys and values of those before it */
    bool no_cache;
    CLV_RESERVED(8);
} clv_generator_config;

/**
 * Plan the model and take its memory. Its weights are first values until clv_weights_load reads others into its session (clv_generator_info_get).
 *
 * Notes   keys and values of earlier tokens stay on the device, as activations: 2 * layers * context * width * 4 bytes.
 * Errors  CLV_E_VALUE; as clv_plan_create and clv_session_reserve
 */
CLV_API CLV_MUST_CHECK clv_status clv_generator_create(clv_runtime *runtime,
                                                       const clv_generator_config *config,
                                                       clv_generator **out);
CLV_API void clv_generator_destroy(clv_generator *generator);
/** What it uses; both borrowed. */
typedef struct clv_generator_info {
    clv_session *session;
    clv_plan *plan;
    CLV_RESERVED(4);
} clv_generator_info;
CLV_API clv_generator_info clv_generator_info_get(const clv_generator *generator);

/** How the next token is chosen. All zero: the one with the largest logit, the first of equals. */
typedef struct clv_sampling {
    /** > 0: draw it, with probabilities softmax(logits / temperature): 1 are the model's own, less is bolder */
    double temperature;
    int64_t top_k; /**< > 0: only among this many of the most probable */
    double
        top_p; /**< > 0: among the fewest most probable whose probabilities sum to at least this; at most 1 */
    uint64_t seed; /**< the same gives the same tokens */
    int64_t
        tokens; /**< > 0: only among this many of the first, where a model has more rows than its vocabulary has tokens */
    CLV_RESERVED(3);
} clv_sampling;

/**
 * Go on with a text.
 *
 * prompt    n tokens, at least 1
 * sampling  NULL: all zero
 * most      tokens to make, unless `tell` ends it before
 * tell      called with each as soon as it is known; false: enough
 *
 * Notes     a text longer than the context is cut: when it is full its last half is kept. Each call starts again.
 * Errors    CLV_E_VALUE  no prompt, a token that the model does not know, numbers outside their range, logits that are not finite; as
 *           clv_run_fetch
 */
CLV_API CLV_MUST_CHECK clv_status clv_generate(clv_generator *generator, CLV_COUNT(n) const int32_t *prompt,
                                               int64_t n, CLV_OR_NULL const clv_sampling *sampling,
                                               int64_t most, bool (*tell)(void *user, int32_t token),
                                               void *user);

#ifdef __cplusplus
}
#endif
#endif
