// SPDX-License-Identifier: Apache-2.0
// A language model of an LSTM: tokens embedded, some layers of an LSTM from a state of zeros, a linear layer to logits.
// Sources: Zaremba et al. 2014, arXiv:1409.2329; names and first values of pytorch/examples, word_language_model.
#include "graph/graph.h"
#include "nn/decoders.h"
#include "nn/models.h"

clv_tensor *clv__lstm_lm_layers(clv_tensor *tokens, clv_tensor *position, const clv_gpt_config *config) {
    static const clv_init small = {CLV_INIT_UNIFORM, -0.1f, 0.1f}, zeros = {.kind = CLV_INIT_ZEROS};
    clv_graph *graph = clv_tensor_graph(tokens);
    (void)position; // no layers for one token
    clv_tensor *embedding;
    clv_tensor *x = clv__decoder_embedding(graph, tokens, "encoder", config->vocabulary, config->width, small,
                                           &embedding);
    const clv_recurrent_config rnn = {
        .layers = config->layers, .batch_first = true, .dropout = config->dropout};
    x = clv_nn_dropout(x, config->dropout);
    x = clv_nn_dropout(clv_nn_lstm(x, NULL, "rnn", config->hidden, &rnn, NULL), config->dropout);
    if (config->tied != 1)
        return clv_nn_linear(x, "decoder", config->vocabulary,
                             &(clv_nn_linear_config){.weight_init = &small, .bias_init = &zeros});
    clv_scope_push(graph, "decoder");
    clv_tensor *bias = clv_parameter(graph, "bias", CLV_SHAPE(config->vocabulary), zeros);
    clv_scope_pop(graph);
    return clv_linear(x, embedding, bias);
}
