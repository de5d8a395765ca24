// SPDX-License-Identifier: Apache-2.0
// A GPT: embeddings of tokens and positions, blocks of causal self-attention and a two-layer perceptron, each behind a
// layer norm and added to its input, and a linear layer to logits. GPT-2 of Hugging Face has the same names, keeps weights of
// blocks as [in, out], and has no last layer of its own.
// Sources: Radford et al. 2019, "Language Models are Unsupervised Multitask Learners", section 2.3; names, layouts and
// first values of karpathy/minGPT; transformers.GPT2LMHeadModel.
#include <math.h>
#include <string.h>

#include "graph/graph.h"
#include "graph/op.h"
#include "nn/decoders.h"
#include "nn/models.h"
#include "ops/attention/attention_step.h"

static const clv_init zeros = {.kind = CLV_INIT_ZEROS};

/** x weight + bias with a weight [in, out], as Hugging Face's Conv1D. */
static clv_tensor *linear_in_out(clv_tensor *x, const char *name, int64_t out_features, clv_init init) {
    clv_graph *graph = clv_tensor_graph(x);
    const clv_shape shape = clv_tensor_shape(x);
    if (!graph) return NULL;
    clv_scope_push(graph, name);
    clv_tensor *weight =
        clv_parameter(graph, "weight", CLV_SHAPE(shape.dims[shape.rank - 1], out_features), init);
    x = clv_add(clv_matmul(x, weight), clv_parameter(graph, "bias", CLV_SHAPE(out_features), zeros));
    clv_scope_pop(graph);
    return x;
}

static clv_tensor *linear(clv_tensor *x, const char *name, int64_t out_features, float std,
                          const clv_gpt_config *config) {
    const clv_init init = {CLV_INIT_NORMAL, 0, std};
    if (clv__decoder_find(config->model)->in_out) return linear_in_out(x, name, out_features, init);
    return clv_nn_linear(x, name, out_features,
                         &(clv_nn_linear_config){.weight_init = &init, .bias_init = &zeros});
}

/** Attention of one token to itself and those before it, whose keys and values are kept between steps. */
static clv_tensor *attend_past(clv_tensor *x, const clv_gpt_config *config, clv_tensor *position) {
    clv_graph *graph = clv__tensor_graph(x);
    const clv_shape kept = CLV_SHAPE(1, config->context, config->width);
    return clv__attention_step(x, clv__cache(graph, "keys", kept), clv__cache(graph, "values", kept),
                               position, config->heads, config->heads);
}

/** position: of the one token that x is; NULL: x is the whole sequence. */
static clv_tensor *attention(clv_tensor *x, const clv_gpt_config *config, float std, clv_tensor *position) {
    x = linear(x, "c_attn", 3 * config->width, 0.02f, config);
    x = position ? attend_past(x, config, position)
                 : clv_self_attention(x, config->heads,
                                      &(clv_attention_config){.causal = true,
                                                              .dropout = clv__graph_dropout(
                                                                  clv_tensor_graph(x), config->dropout)});
    return clv_nn_dropout(linear(x, "c_proj", config->width, std, config), config->dropout);
}

static clv_tensor *block(clv_graph *graph, clv_tensor *x, const clv_gpt_config *config,
                         clv_tensor *position) {
    float std = (float)(0.02 / sqrt(2.0 * (double)config->layers)); // of what is added to the residual stream
    clv_tensor *y = clv_nn_layer_norm(x, "ln_1", config->eps);
    clv_scope_push(graph, "attn");
    x = clv_add(x, attention(y, config, std, position));
    clv_scope_pop(graph);
    y = clv_nn_layer_norm(x, "ln_2", config->eps);
    clv_scope_push(graph, "mlp");
    y = clv_gelu_tanh(linear(y, "c_fc", config->hidden ? config->hidden : 4 * config->width, 0.02f, config));
    y = clv_nn_dropout(linear(y, "c_proj", config->width, std, config), config->dropout);
    clv_scope_pop(graph);
    return clv_add(x, y);
}

clv_tensor *clv__gpt_layers(clv_tensor *tokens, clv_tensor *position, const clv_gpt_config *config) {
    static const clv_init small = {CLV_INIT_NORMAL, 0, 0.02f};
    clv_graph *graph = clv_tensor_graph(tokens);
    clv_scope_push(graph, "transformer");
    clv_tensor *wte, *wpe;
    clv_tensor *x =
        clv__decoder_embedding(graph, tokens, "wte", config->vocabulary, config->width, small, &wte);
    clv_tensor *places =
        clv__decoder_embedding(graph, position, "wpe", config->context, config->width, small, &wpe);
    x = clv_add(x, position ? places : clv_slice(wpe, 0, 0, clv_tensor_shape(tokens).dims[1]));
    x = clv_nn_dropout(x, config->dropout);
    clv_scope_push(graph, "h");
    for (int i = 0; i < (int)config->layers; i++) {
        clv__scope_push_index(graph, i);
        x = block(graph, x, config, position);
        clv_scope_pop(graph);
    }
    clv_scope_pop(graph);
    x = clv_nn_layer_norm(x, "ln_f", config->eps);
    clv_scope_pop(graph); // transformer
    return clv__decoder_logits(x, wte, config);
}
