// SPDX-License-Identifier: Apache-2.0
// A GPT: embeddings of tokens and positions, blocks of causal self-attention and a two-layer perceptron, each behind a
// layer norm and added to its input, and a linear layer to logits.
// Sources: Radford et al. 2019, "Language Models are Unsupervised Multitask Learners", section 2.3; names, layouts and
// first values of karpathy/minGPT.
#include <math.h>

#include "graph/graph.h"
#include "graph/op.h"
#include "nn/models.h"
#include "ops/attention/attention_step.h"

static const clv_init zeros = {.kind = CLV_INIT_ZEROS};

static clv_tensor *linear(clv_tensor *x, const char *name, int64_t out_features, float std, bool bias) {
    const clv_init weight_init = {CLV_INIT_NORMAL, 0, std};
    return clv_nn_linear(
        x, name, out_features,
        &(clv_nn_linear_config){.no_bias = !bias, .weight_init = &weight_init, .bias_init = &zeros});
}

/** Attention of one token to itself and those before it, whose keys and values are kept between steps. */
static clv_tensor *attend_past(clv_tensor *x, const clv_gpt_config *config, clv_tensor *position) {
    clv_graph *graph = clv__tensor_graph(x);
    const clv_shape kept = CLV_SHAPE(1, config->context, config->width);
    return clv__attention_step(x, clv__cache(graph, "keys", kept), clv__cache(graph, "values", kept),
                               position, config->heads);
}

/** position: of the one token that x is; NULL: x is the whole sequence. */
static clv_tensor *attention(clv_tensor *x, const clv_gpt_config *config, float std, clv_tensor *position) {
    x = linear(x, "c_attn", 3 * config->width, 0.02f, true);
    x = position ? attend_past(x, config, position)
                 : clv_self_attention(x, config->heads,
                                      &(clv_attention_config){.causal = true,
                                                              .dropout = clv__graph_dropout(
                                                                  clv_tensor_graph(x), config->dropout)});
    return clv_nn_dropout(linear(x, "c_proj", config->width, std, true), config->dropout);
}

static clv_tensor *block(clv_graph *graph, clv_tensor *x, const clv_gpt_config *config,
                         clv_tensor *position) {
    float std = (float)(0.02 / sqrt(2.0 * (double)config->layers)); // of what is added to the residual stream
    clv_tensor *y = clv_nn_layer_norm(x, "ln_1", 0);
    clv_scope_push(graph, "attn");
    x = clv_add(x, attention(y, config, std, position));
    clv_scope_pop(graph);
    y = clv_nn_layer_norm(x, "ln_2", 0);
    clv_scope_push(graph, "mlp");
    y = clv_gelu_tanh(linear(y, "c_fc", 4 * config->width, 0.02f, true));
    y = clv_nn_dropout(linear(y, "c_proj", config->width, std, true), config->dropout);
    clv_scope_pop(graph);
    return clv_add(x, y);
}

void clv__gpt_defaults(clv_gpt_config *config) {
    if (!config->vocabulary) config->vocabulary = 65;
    if (!config->context) config->context = 128;
    if (!config->width) config->width = 192;
    if (!config->heads) config->heads = 6;
    if (!config->layers) config->layers = 4;
}

/** What stands behind the embeddings of tokens and positions. */
static clv_tensor *blocks(clv_graph *graph, clv_tensor *x, const clv_gpt_config *config,
                          clv_tensor *position) {
    x = clv_nn_dropout(x, config->dropout);
    clv_scope_push(graph, "h");
    for (int i = 0; i < (int)config->layers; i++) {
        clv__scope_push_index(graph, i);
        x = block(graph, x, config, position);
        clv_scope_pop(graph);
    }
    clv_scope_pop(graph);
    x = clv_nn_layer_norm(x, "ln_f", 0);
    clv_scope_pop(graph); // transformer
    return linear(x, "lm_head", config->vocabulary, 0.02f, false);
}

static const clv_init small = {CLV_INIT_NORMAL, 0, 0.02f};

static bool check(clv_graph *graph, const clv_gpt_config *c) {
    if (c->heads < 1 || c->width % c->heads || c->layers < 1)
        clv__graph_fail(graph, CLV_E_VALUE,
                        "gpt: a width of %lld does not part into %lld heads, or no layers",
                        (long long)c->width, (long long)c->heads);
    else
        return true;
    return false;
}

clv_tensor *clv__gpt_next(clv_tensor *token, clv_tensor *position, const clv_gpt_config *config) {
    clv_graph *graph = clv_tensor_graph(token);
    if (!graph || !check(graph, config)) return NULL;
    clv_scope_push(graph, "transformer");
    clv_tensor *x = clv_nn_embedding(token, "wte", config->vocabulary, config->width, &small);
    x = clv_add(x, clv_nn_embedding(position, "wpe", config->context, config->width, &small));
    return blocks(graph, x, config, position);
}

clv_tensor *clv__build_gpt(clv_tensor *tokens, const clv_model *model) {
    clv_gpt_config c = model->user ? *(const clv_gpt_config *)model->user : (clv_gpt_config){0};
    clv_graph *graph = clv_tensor_graph(tokens);
    c.vocabulary = model->classes;
    c.context = model->input[0];
    clv__gpt_defaults(&c);
    const clv_shape shape = clv_tensor_shape(tokens);
    if (shape.rank != 2 || shape.dims[1] > c.context)
        return clv__graph_fail(graph, CLV_E_SHAPE,
                               "gpt: tokens must be [N,T] with T up to the context of %lld",
                               (long long)c.context);
    if (!check(graph, &c)) return NULL;
    clv_scope_push(graph, "transformer");
    clv_tensor *x = clv_nn_embedding(tokens, "wte", c.vocabulary, c.width, &small);
    clv_scope_push(graph, "wpe");
    clv_tensor *positions = clv_parameter(graph, "weight", CLV_SHAPE(c.context, c.width), small);
    clv_scope_pop(graph);
    return blocks(graph, clv_add(x, clv_slice(positions, 0, 0, shape.dims[1])), &c, NULL);
}

clv_model clv_gpt_model(const clv_gpt_config *config) {
    clv_model model = *clv_model_find("gpt");
    model.user = config;
    if (config && config->vocabulary) model.classes = config->vocabulary;
    if (config && config->context) model.input[0] = model.target[0] = config->context;
    return model;
}
