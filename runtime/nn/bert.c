// SPDX-License-Identifier: Apache-2.0
// BERT: tokens, their places and their segments embedded; blocks of attention and a two-layer perceptron, each added to its input and
// normalised behind that; classes are told of the first token.
// Source: Devlin et al. 2018, arXiv:1810.04805; names of transformers.BertForSequenceClassification.
#include <math.h>

#include "graph/graph.h"
#include "nn/models.h"

static const clv_init narrow = {CLV_INIT_NORMAL, 0, 0.02f}, zeros = {.kind = CLV_INIT_ZEROS};
static const float eps = 1e-12f;

static clv_tensor *linear(clv_tensor *x, const char *name, int64_t out_features) {
    return clv_nn_linear(x, name, out_features,
                         &(clv_nn_linear_config){.weight_init = &narrow, .bias_init = &zeros});
}

/**
 * Attention to the tokens that the mask lets be seen. Scores are q k^T, so a column that is 1 in queries, and in keys 0 or far below it,
 * hides keys; no scores are kept that way. There are four more columns in each head, so that vectors stay whole: [N,T,heads,4].
 */
typedef struct columns {
    clv_tensor *queries, *keys, *values;
} columns;
enum { MORE = 4 };

static clv_tensor *column(clv_tensor *first, const clv__bert_config *c) {
    clv_graph *graph = clv_tensor_graph(first);
    clv_shape s = clv_tensor_shape(first); // [N,T,1,1]
    if (!graph) return NULL;
    s.dims[3] = MORE - 1;
    clv_tensor *all = clv_concat((clv_tensor *[]){first, clv_full(graph, CLV_DTYPE_F32, s, 0)}, 2, 3);
    return clv_broadcast_to(all, CLV_SHAPE(s.dims[0], s.dims[1], c->heads, MORE));
}

/** mask: 1 where a token is seen. -1000 before exp is 0 in f32, and times sqrt(features) still a number in f16. */
static columns columns_of(clv_tensor *mask, const clv__bert_config *c) {
    clv_graph *graph = clv_tensor_graph(mask);
    const clv_shape s = clv_tensor_shape(mask), one = CLV_SHAPE(s.dims[0], s.dims[1], 1, 1);
    const float far = 1000 * (float)sqrt((double)(c->width / c->heads));
    clv_tensor *ones = clv_full(graph, CLV_DTYPE_F32, one, 1);
    clv_tensor *hidden = clv_sub(ones, clv_reshape(clv_cast(mask, CLV_DTYPE_F32), one));
    return (columns){column(ones, c), column(clv_mul_scalar(hidden, -far), c),
                     clv_full(graph, CLV_DTYPE_F32, CLV_SHAPE(s.dims[0], s.dims[1], c->heads, MORE), 0)};
}

static clv_tensor *widen(clv_tensor *x, clv_tensor *more, const clv__bert_config *c) {
    const clv_shape s = clv_tensor_shape(x);
    if (!x || s.rank != 3) return NULL; // after a mistake
    x = clv_reshape(x, CLV_SHAPE(s.dims[0], s.dims[1], c->heads, s.dims[2] / c->heads));
    return clv_reshape(clv_concat((clv_tensor *[]){x, more}, 2, 3),
                       CLV_SHAPE(s.dims[0], s.dims[1], s.dims[2] + c->heads * MORE));
}

static clv_tensor *attention(clv_tensor *x, const columns *more, const clv__bert_config *c) {
    clv_graph *graph = clv_tensor_graph(x);
    const clv_shape s = clv_tensor_shape(x);
    const int64_t features = c->width / c->heads;
    if (!graph || s.rank != 3) return NULL; // after a mistake
    clv_scope_push(graph, "self");
    clv_tensor *parts[] = {widen(linear(x, "query", c->width), more->queries, c),
                           widen(linear(x, "key", c->width), more->keys, c),
                           widen(linear(x, "value", c->width), more->values, c)};
    x = clv_self_attention(clv_concat(parts, 3, 2), c->heads,
                           &(clv_attention_config){.scale = (float)(1 / sqrt((double)features)),
                                                   .dropout = clv__graph_dropout(graph, c->dropout)});
    x = clv_reshape(x, CLV_SHAPE(s.dims[0], s.dims[1], c->heads, features + MORE));
    x = clv_reshape(clv_slice(x, 3, 0, features), s);
    clv_scope_pop(graph);
    return x;
}

/** What a layer gives, added to what it was given, and normalised. */
static clv_tensor *output(clv_tensor *x, clv_tensor *before, const clv__bert_config *c) {
    clv_graph *graph = clv_tensor_graph(x);
    clv_scope_push(graph, "output");
    x = clv_nn_dropout(linear(x, "dense", c->width), c->dropout);
    x = clv_nn_layer_norm(clv_add(x, before), "LayerNorm", eps);
    clv_scope_pop(graph);
    return x;
}

static clv_tensor *layer(clv_tensor *x, const columns *more, const clv__bert_config *c) {
    clv_graph *graph = clv_tensor_graph(x);
    clv_scope_push(graph, "attention");
    x = output(attention(x, more, c), x, c);
    clv_scope_pop(graph);
    clv_scope_push(graph, "intermediate");
    clv_tensor *y = clv_gelu(linear(x, "dense", c->hidden));
    clv_scope_pop(graph);
    return output(y, x, c);
}

static clv_tensor *embeddings(clv_tensor *tokens, clv_tensor *types, const clv__bert_config *c) {
    clv_graph *graph = clv_tensor_graph(tokens);
    clv_scope_push(graph, "embeddings");
    clv_tensor *x = clv_nn_embedding(tokens, "word_embeddings", c->vocabulary, c->width, &narrow);
    clv_scope_push(graph, "position_embeddings");
    clv_tensor *places = clv_parameter(graph, "weight", CLV_SHAPE(c->places, c->width), narrow);
    clv_scope_pop(graph);
    x = clv_add(x, clv_nn_embedding(types, "token_type_embeddings", 2, c->width, &narrow));
    x = clv_add(x, clv_slice(places, 0, 0, clv_tensor_shape(tokens).dims[1]));
    x = clv_nn_dropout(clv_nn_layer_norm(x, "LayerNorm", eps), c->dropout);
    clv_scope_pop(graph);
    return x;
}

void clv__build_bert(clv_tensor *const *inputs, clv_tensor **outputs, const clv_model *model) {
    static const clv__bert_config base = {30522, 512, 768, 12, 12, 3072, 0.1f};
    const clv__bert_config *c = model->user ? model->user : &base;
    clv_graph *graph = clv_tensor_graph(inputs[0]);
    const clv_shape s = clv_tensor_shape(inputs[0]);
    outputs[0] = NULL;
    if (!graph) return;
    if (s.rank != 2 || s.dims[1] < 1 || s.dims[1] > c->places) {
        clv__graph_fail(graph, CLV_E_SHAPE, "bert: tokens must be [N,T] with T up to %lld",
                        (long long)c->places);
        return;
    }
    const columns more = columns_of(inputs[1], c);
    clv_scope_push(graph, "bert");
    clv_tensor *x = embeddings(inputs[0], inputs[2], c);
    clv_scope_push(graph, "encoder");
    clv_scope_push(graph, "layer");
    for (int i = 0; i < (int)c->layers; i++) {
        clv__scope_push_index(graph, i);
        x = layer(x, &more, c);
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
