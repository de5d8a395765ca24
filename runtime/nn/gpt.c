// SPDX-License-Identifier: Apache-2.0
// A GPT: embeddings of tokens and positions, blocks of causal self-attention and a two-layer perceptron, each behind a
// layer norm and added to its input, and a linear layer to logits.
// Sources: Radford et al. 2019, "Language Models are Unsupervised Multitask Learners", section 2.3; names, layouts and
// first values of karpathy/minGPT.
#include <math.h>

#include "graph/op.h"
#include "nn/models.h"

static const clv_init zeros = {.kind = CLV_INIT_ZEROS};

static clv_tensor *linear(clv_tensor *x, const char *name, int64_t out_features, float std, bool bias) {
    const clv_init weight_init = {CLV_INIT_NORMAL, 0, std};
    return clv_nn_linear(
        x, name, out_features,
        &(clv_nn_linear_config){.no_bias = !bias, .weight_init = &weight_init, .bias_init = &zeros});
}

/** Queries, keys or values of one token, by head. */
static clv_tensor *heads_of(clv_tensor *x, int part, const clv_gpt_config *config) {
    const int64_t width = config->width;
    return clv_reshape(clv_slice(x, 2, part * width, width),
                       CLV_SHAPE(config->heads, 1, width / config->heads));
}

/** Attention of one token to those before it, whose keys and values are known, and to itself. */
static clv_tensor *attend_past(clv_tensor *x, const clv_gpt_config *config, const clv__gpt_past *past,
                               int i) {
    clv_tensor *query = heads_of(x, 0, config), *key = heads_of(x, 1, config),
               *value = heads_of(x, 2, config);
    clv_tensor *keys = past->keys[i], *values = past->values[i];
    const int64_t T = config->context;
    const float scale = (float)(1 / sqrt((double)config->width / (double)config->heads));
    clv_tensor *none = clv_full(clv_tensor_graph(x), CLV_DTYPE_F32, CLV_SHAPE(1), -INFINITY);
    clv_tensor *before = clv_where(past->before, clv_matmul_t(query, false, keys, true), none);
    clv_tensor *scores[2] = {before, clv_matmul_t(query, false, key, true)}; // [H,1,T] and [H,1,1]
    clv_tensor *weights = clv_softmax(clv_mul_scalar(clv_concat(scores, 2, 2), scale), 2);
    clv_tensor *y =
        clv_add(clv_matmul(clv_slice(weights, 2, 0, T), values), clv_mul(clv_slice(weights, 2, T, 1), value));
    past->made[i] = x;
    return clv_reshape(y, CLV_SHAPE(1, 1, config->width));
}

/** past: of one token; NULL: x is the whole sequence. */
static clv_tensor *attention(clv_tensor *x, const clv_gpt_config *config, float std,
                             const clv__gpt_past *past, int i) {
    x = linear(x, "c_attn", 3 * config->width, 0.02f, true);
    x = past ? attend_past(x, config, past, i)
             : clv_self_attention(x, config->heads,
                                  &(clv_attention_config){.causal = true, .dropout = config->dropout});
    return clv_nn_dropout(linear(x, "c_proj", config->width, std, true), config->dropout);
}

static clv_tensor *block(clv_graph *graph, clv_tensor *x, const clv_gpt_config *config,
                         const clv__gpt_past *past, int i) {
    float std = (float)(0.02 / sqrt(2.0 * (double)config->layers)); // of what is added to the residual stream
    clv_tensor *y = clv_nn_layer_norm(x, "ln_1", 0);
    clv_scope_push(graph, "attn");
    x = clv_add(x, attention(y, config, std, past, i));
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
                          const clv__gpt_past *past) {
    x = clv_nn_dropout(x, config->dropout);
    clv_scope_push(graph, "h");
    for (int i = 0; i < (int)config->layers; i++) {
        clv__scope_push_index(graph, i);
        x = block(graph, x, config, past, i);
        clv_scope_pop(graph);
    }
    clv_scope_pop(graph);
    x = clv_nn_layer_norm(x, "ln_f", 0);
    clv_scope_pop(graph); // transformer
    return linear(x, "lm_head", config->vocabulary, 0.02f, false);
}

static const clv_init small = {CLV_INIT_NORMAL, 0, 0.02f};

static bool check(clv_graph *graph, const clv_tensor *tokens, const clv_gpt_config *c) {
    const clv_shape shape = clv_tensor_shape(tokens);
    if (shape.rank != 2 || shape.dims[1] > c->context)
        clv__graph_fail(graph, CLV_E_SHAPE, "gpt: tokens must be [N,T] with T up to the context of %lld",
                        (long long)c->context);
    else if (c->heads < 1 || c->width % c->heads || c->layers < 1)
        clv__graph_fail(graph, CLV_E_VALUE,
                        "gpt: a width of %lld does not part into %lld heads, or no layers",
                        (long long)c->width, (long long)c->heads);
    else
        return true;
    return false;
}

clv_tensor *clv_gpt(clv_tensor *tokens, const clv_gpt_config *config) {
    static const clv_gpt_config defaults = {0};
    clv_gpt_config c = config ? *config : defaults;
    clv_graph *graph = clv_tensor_graph(tokens);
    if (!graph) return NULL;
    clv__gpt_defaults(&c);
    if (!check(graph, tokens, &c)) return NULL;
    clv_scope_push(graph, "transformer");
    clv_tensor *x = clv_nn_embedding(tokens, "wte", c.vocabulary, c.width, &small);
    clv_scope_push(graph, "wpe");
    clv_tensor *positions = clv_parameter(graph, "weight", CLV_SHAPE(c.context, c.width), small);
    clv_scope_pop(graph);
    return blocks(graph, clv_add(x, clv_slice(positions, 0, 0, clv_tensor_shape(tokens).dims[1])), &c, NULL);
}

clv_tensor *clv__gpt_next(clv_tensor *token, clv_tensor *position, const clv_gpt_config *config,
                          const clv__gpt_past *past) {
    clv_graph *graph = clv_tensor_graph(token);
    if (!graph || !check(graph, token, config)) return NULL;
    clv_scope_push(graph, "transformer");
    clv_tensor *x = clv_nn_embedding(token, "wte", config->vocabulary, config->width, &small);
    x = clv_add(x, clv_nn_embedding(position, "wpe", config->context, config->width, &small));
    return blocks(graph, x, config, past);
}

clv_tensor *clv__build_gpt(clv_tensor *x, const clv_model *model) {
    clv_gpt_config config = model->user ? *(const clv_gpt_config *)model->user : (clv_gpt_config){0};
    config.vocabulary = model->classes;
    config.context = model->input[0];
    return clv_gpt(x, &config);
}

clv_model clv_gpt_model(const clv_gpt_config *config) {
    clv_model model = *clv_model_find("gpt");
    model.user = config;
    if (config && config->vocabulary) model.classes = config->vocabulary;
    if (config && config->context) model.input[0] = model.target[0] = config->context;
    return model;
}
