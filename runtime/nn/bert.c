// SPDX-License-Identifier: Apache-2.0
// BERT: tokens, their places and their segments embedded; blocks of attention and a two-layer perceptron, each added to its input and
// normalised behind that; classes are predicted from the first token.
// Source: Devlin et al. 2018, arXiv:1810.04805; names of transformers.BertForSequenceClassification.
#include "graph/graph.h"
#include "nn/models.h"

static const clv_init narrow = {CLV_INIT_NORMAL, 0, 0.02f}, zeros = {.kind = CLV_INIT_ZEROS};

static clv_tensor *linear(clv_tensor *x, const char *name, int64_t out_features) {
    return clv_nn_linear(x, name, out_features,
                         &(clv_nn_linear_config){.weight_init = &narrow, .bias_init = &zeros});
}

/** mask: what is added to the scores of each token, [N,1,1,T]. */
static clv_tensor *attention(clv_tensor *x, clv_tensor *mask, const clv_gpt_config *c) {
    clv_graph *graph = clv_tensor_graph(x);
    clv_scope_push(graph, "self");
    clv_tensor *parts[] = {linear(x, "query", c->width), linear(x, "key", c->width),
                           linear(x, "value", c->width)};
    x = clv_self_attention(
        clv_concat(parts, 3, 2), c->heads,
        &(clv_attention_config){.attn_mask = mask, .dropout = clv__graph_dropout(graph, c->dropout)});
    clv_scope_pop(graph);
    return x;
}

/** What a layer gives, added to what it was given, and normalised. */
static clv_tensor *output(clv_tensor *x, clv_tensor *before, const clv_gpt_config *c) {
    clv_graph *graph = clv_tensor_graph(x);
    clv_scope_push(graph, "output");
    x = clv_nn_dropout(linear(x, "dense", c->width), c->dropout);
    x = clv_nn_layer_norm(clv_add(x, before), "LayerNorm", c->eps);
    clv_scope_pop(graph);
    return x;
}

static clv_tensor *layer(clv_tensor *x, clv_tensor *mask, const clv_gpt_config *c) {
    clv_graph *graph = clv_tensor_graph(x);
    clv_scope_push(graph, "attention");
    x = output(attention(x, mask, c), x, c);
    clv_scope_pop(graph);
    clv_scope_push(graph, "intermediate");
    clv_tensor *y = clv_gelu(linear(x, "dense", c->hidden));
    clv_scope_pop(graph);
    return output(y, x, c);
}

static clv_tensor *embeddings(clv_tensor *tokens, clv_tensor *types, const clv_gpt_config *c) {
    clv_graph *graph = clv_tensor_graph(tokens);
    clv_scope_push(graph, "embeddings");
    clv_tensor *x = clv_nn_embedding(tokens, "word_embeddings", c->vocabulary, c->width, &narrow);
    clv_scope_push(graph, "position_embeddings");
    clv_tensor *places = clv_parameter(graph, "weight", CLV_SHAPE(c->context, c->width), narrow);
    clv_scope_pop(graph);
    x = clv_add(x, clv_nn_embedding(types, "token_type_embeddings", 2, c->width, &narrow));
    x = clv_add(x, clv_slice(places, 0, 0, clv_tensor_shape(tokens).dims[1]));
    x = clv_nn_dropout(clv_nn_layer_norm(x, "LayerNorm", c->eps), c->dropout);
    clv_scope_pop(graph);
    return x;
}

void clv__build_bert(clv_tensor *const *inputs, clv_tensor **outputs, const clv_model *model) {
    static const clv_gpt_config base = {.dropout = 0.1f};
    clv_gpt_config sizes = model->user ? *(const clv_gpt_config *)model->user : base, *c = &sizes;
    clv_graph *graph = clv_tensor_graph(inputs[0]);
    const clv_shape s = clv_tensor_shape(inputs[0]);
    outputs[0] = NULL;
    if (!graph) return;
    sizes.model = model->name;
    clv__gpt_defaults(&sizes);
    if (c->heads < 1 || c->width % c->heads) {
        clv__graph_fail(graph, CLV_E_VALUE, "bert: a width of %lld cannot be divided into %lld heads",
                        (long long)c->width, (long long)c->heads);
        return;
    }
    if (s.rank != 2 || s.dims[1] < 1 || s.dims[1] > c->context) {
        clv__graph_fail(graph, CLV_E_SHAPE, "bert: tokens must be [N,T] with T up to %lld",
                        (long long)c->context);
        return;
    }
    // -10000 before exp is 0 in f32, and a number in f16; not infinite, so that a text of which nothing is seen sees all alike
    clv_tensor *hidden = clv_add_scalar(clv_cast(inputs[1], CLV_DTYPE_F32), -1);
    clv_tensor *mask = clv_reshape(clv_mul_scalar(hidden, 10000), CLV_SHAPE(s.dims[0], 1, 1, s.dims[1]));
    clv_scope_push(graph, "bert");
    clv_tensor *x = embeddings(inputs[0], inputs[2], c);
    clv_scope_push(graph, "encoder");
    clv_scope_push(graph, "layer");
    for (int i = 0; i < (int)c->layers; i++) {
        clv__scope_push_index(graph, i);
        x = layer(x, mask, c);
        clv_scope_pop(graph);
    }
    clv_scope_pop(graph);
    clv_scope_pop(graph);
    clv_scope_push(graph, "pooler");
    x = clv_reshape(clv_slice(x, 1, 0, 1), CLV_SHAPE(s.dims[0], c->width));
    x = clv_tanh(linear(x, "dense", c->width));
    clv_scope_pop(graph);
    clv_scope_pop(graph);
    outputs[0] = linear(clv_nn_dropout(x, c->dropout), "classifier", model->targets[0].classes);
}
