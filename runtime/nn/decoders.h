// SPDX-License-Identifier: Apache-2.0
// Models that tell the next token (clv_gpt_config): a row of a table for each, and what their files share.
#ifndef CLV_NN_DECODERS_H
#define CLV_NN_DECODERS_H

#include "cleave/nn.h"

/** A kind of them. */
typedef struct clv__decoder {
    const char *name;
    clv_gpt_config sizes; // where none are given
    /** Logits of tokens [N,T]; with a position, [1], of one token [1], by what earlier steps kept. A config without zeros. */
    clv_tensor *(*layers)(clv_tensor *tokens, clv_tensor *position, const clv_gpt_config *config);
    bool steps;  // are there such layers for one token?
    bool in_out; // weights lie [in, out]
    // Of its weights: what stands before all names but the last layer's (NULL: nothing), the embeddings of tokens and of places
    // (NULL: none), and a tensor of the last layer, whose number stands between both.
    const char *base, *tokens, *places, *last[2];
} clv__decoder;

/** NULL: `gpt`. NULL if there is none of that name. */
const clv__decoder *clv__decoder_find(const char *name);

clv_tensor *clv__gpt_layers(clv_tensor *tokens, clv_tensor *position, const clv_gpt_config *config);
clv_tensor *clv__llama_layers(clv_tensor *tokens, clv_tensor *position, const clv_gpt_config *config);
clv_tensor *clv__lstm_lm_layers(clv_tensor *tokens, clv_tensor *position, const clv_gpt_config *config);

/** Are these rope_scaling of a clv_gpt_config? */
bool clv__rope_scaling_can_be(const float scaling[4]);

/** The rows of an embedding that indices name, or its whole weight, [rows, width], where they are NULL; the weight in any case. */
clv_tensor *clv__decoder_embedding(clv_graph *graph, clv_tensor *indices, const char *name, int64_t rows,
                                   int64_t width, clv_init init, clv_tensor **weight);
/** The last layer, `lm_head`, or the embedding in its place. */
clv_tensor *clv__decoder_logits(clv_tensor *x, clv_tensor *embedding, const clv_gpt_config *config);

#endif
