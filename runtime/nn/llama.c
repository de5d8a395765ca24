// SPDX-License-Identifier: Apache-2.0
// A decoder as Llama is one: blocks of causal self-attention and a gated perceptron, each behind an RMS norm and added to its
// input; queries and keys are turned by their positions, and several heads of queries share one of keys and values.
// Sources: Touvron et al. 2023, arXiv:2302.13971, section 2.2; Su et al. 2021, arXiv:2104.09864, section 3.4 (rotary positions);
// Shazeer 2020, arXiv:2002.05202 (SwiGLU); Ainslie et al. 2023, arXiv:2305.13245 (grouped queries); names, layouts and first values of
// transformers.LlamaForCausalLM.
#include <math.h>
#include <stdlib.h>

#include "graph/graph.h"
#include "graph/op.h"
#include "nn/decoders.h"
#include "nn/models.h"
#include "ops/attention/attention_step.h"

/** How far the pairs of features are turned at each place, [T,heads,pairs]; at one place alike for all heads, [1,1,pairs]. */
typedef struct turn {
    clv_tensor *cos, *sin;
} turn;

/** What all layers share. */
typedef struct decoder {
    const clv_gpt_config *config;
    clv_tensor *position; // NULL: a whole sequence
    turn queries, keys;
    int64_t n, t, features; // sequences, tokens of one, features of a head
} decoder;

static clv_tensor *biased(clv_tensor *x, const char *name, int64_t out_features, bool bias) {
    static const clv_init init = {CLV_INIT_NORMAL, 0, 0.02f}, zeros = {.kind = CLV_INIT_ZEROS};
    return clv_nn_linear(
        x, name, out_features,
        &(clv_nn_linear_config){.no_bias = !bias, .weight_init = &init, .bias_init = &zeros});
}

static clv_tensor *linear(clv_tensor *x, const char *name, int64_t out_features) {
    return biased(x, name, out_features, false);
}

/** How far a place turns pair i: theta^(-2i / features), and less of pairs that turn slowly where that is stretched. */
static float frequency(const clv_gpt_config *c, int64_t i, int64_t features) {
    const float each = 1 / powf((float)c->rope_theta, (float)(2 * i) / (float)features),
                factor = c->rope_scaling[0];
    const float low = c->rope_scaling[1], high = c->rope_scaling[2], places = c->rope_scaling[3];
    const float often = places * each / 6.2831853f; // in the texts that it learnt from
    if (factor <= 0 || often > high) return each;
    if (often < low) return each / factor;
    const float share = (often - low) / (high - low);
    return (1 - share) * each / factor + share * each;
}

/**
 * cos (or sin) of position * frequency. In f32 as PyTorch has them. Of a whole sequence once for each head, since kernels
 * repeat an input along its first axes faster than along one between.
 */
static clv_tensor *turns(clv_graph *graph, float (*of)(float), const decoder *d) {
    const int64_t pairs = d->features / 2, places = d->position ? d->config->context : d->t,
                  heads = d->position ? 1 : d->config->heads, n = places * heads * pairs;
    float *table = clv__alloc((size_t)n, sizeof *table);
    if (!table) return clv__graph_fail(graph, CLV_E_HOST_MEMORY, "no host memory for rotary positions");
    for (int64_t i = 0; i < n; i++)
        table[i] = of((float)(i / pairs / heads) * frequency(d->config, i % pairs, d->features));
    clv_tensor *all =
        clv_constant(graph, CLV_DTYPE_F32,
                     d->position ? CLV_SHAPE(places, pairs) : CLV_SHAPE(places, heads, pairs), table);
    free(table);
    return d->position ? clv_reshape(clv_embedding(all, d->position), CLV_SHAPE(1, 1, pairs)) : all;
}

/** x, [..., heads * features], as [N,T,heads,features], turned: the first half of a head's features with the second. */
static clv_tensor *rotate(clv_tensor *x, int64_t heads, const turn *by, const decoder *d) {
    x = clv_reshape(x, CLV_SHAPE(d->n, d->t, heads, d->features));
    return clv_rotary_embedding(x, by->cos, by->sin, false);
}

static clv_tensor *attention(clv_tensor *x, const decoder *d) {
    const clv_gpt_config *c = d->config;
    clv_graph *graph = clv_tensor_graph(x);
    const int64_t own = c->heads * d->features, shared = c->kv_heads * d->features;
    const bool bias = c->qkv_bias != 0;
    clv_tensor *q = rotate(biased(x, "q_proj", own, bias), c->heads, &d->queries, d);
    clv_tensor *k = rotate(biased(x, "k_proj", shared, bias), c->kv_heads, &d->keys, d),
               *v = biased(x, "v_proj", shared, bias);
    if (!graph) return NULL;
    if (d->position) {
        const clv_shape kept = CLV_SHAPE(1, c->context, shared);
        clv_tensor *parts[] = {clv_reshape(q, CLV_SHAPE(1, own)), clv_reshape(k, CLV_SHAPE(1, shared)), v};
        x = clv__attention_step(clv_concat(parts, 3, 1), clv__cache(graph, "keys", kept),
                                clv__cache(graph, "values", kept), d->position, c->heads, c->kv_heads);
    } else {
        clv_tensor *parts[] = {clv_reshape(q, CLV_SHAPE(d->n, d->t, own)),
                               clv_reshape(k, CLV_SHAPE(d->n, d->t, shared)),
                               clv_reshape(v, CLV_SHAPE(d->n, d->t, shared))};
        x = clv_self_attention(clv_concat(parts, 3, 2), c->heads,
                               &(clv_attention_config){.causal = true,
                                                       .dropout = clv__graph_dropout(graph, c->dropout),
                                                       .kv_heads = c->kv_heads});
    }
    return linear(x, "o_proj", c->width);
}

static clv_tensor *block(clv_graph *graph, clv_tensor *x, const decoder *d) {
    clv_tensor *y = clv_nn_rms_norm(x, "input_layernorm", d->config->eps);
    clv_scope_push(graph, "self_attn");
    x = clv_add(x, attention(y, d));
    clv_scope_pop(graph);
    y = clv_nn_rms_norm(x, "post_attention_layernorm", d->config->eps);
    clv_scope_push(graph, "mlp");
    clv_tensor *gate = clv_silu(linear(y, "gate_proj", d->config->hidden));
    y = linear(clv_mul(gate, linear(y, "up_proj", d->config->hidden)), "down_proj", d->config->width);
    clv_scope_pop(graph);
    return clv_add(x, y);
}

clv_tensor *clv__llama_layers(clv_tensor *tokens, clv_tensor *position, const clv_gpt_config *config) {
    static const clv_init small = {CLV_INIT_NORMAL, 0, 0.02f};
    clv_graph *graph = clv_tensor_graph(tokens);
    const clv_shape shape = clv_tensor_shape(tokens);
    decoder d = {.config = config,
                 .position = position,
                 .n = position ? 1 : shape.dims[0],
                 .t = position ? 1 : shape.dims[1],
                 .features = config->head_dim};
    d.queries = d.keys = (turn){turns(graph, cosf, &d), turns(graph, sinf, &d)};
    if (!position && config->kv_heads < config->heads)
        d.keys = (turn){clv_slice(d.queries.cos, 1, 0, config->kv_heads),
                        clv_slice(d.queries.sin, 1, 0, config->kv_heads)};
    clv_scope_push(graph, "model");
    clv_tensor *embedding;
    clv_tensor *x = clv__decoder_embedding(graph, tokens, "embed_tokens", config->vocabulary, config->width,
                                           small, &embedding);
    clv_scope_push(graph, "layers");
    for (int i = 0; i < (int)config->layers; i++) {
        clv__scope_push_index(graph, i);
        x = block(graph, x, &d);
        clv_scope_pop(graph);
    }
    clv_scope_pop(graph);
    x = clv_nn_rms_norm(x, "norm", config->eps);
    clv_scope_pop(graph);
    return clv__decoder_logits(x, embedding, config);
}
