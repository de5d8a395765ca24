// SPDX-License-Identifier: Apache-2.0
// Models that tell the next token: their table, sizes where none are given, and what they have in common, an embedding before
// and logits behind. Their layers are in gpt.c, llama.c and lstm_lm.c.
#include "nn/decoders.h"

#include <string.h>

#include "graph/graph.h"
#include "nn/models.h"

// tokens, places and last are tensors that a file of the model has, for sizes that are held against it.
static const clv__decoder decoders[] = {
    {.name = "gpt",
     .sizes = {.vocabulary = 65, .context = 128, .width = 192, .heads = 6, .layers = 4},
     .layers = clv__gpt_layers,
     .steps = true,
     .base = "transformer.",
     .tokens = "transformer.wte.weight",
     .places = "transformer.wpe.weight",
     .last = {"transformer.h.", ".ln_1.weight"}},
    {.name = "gpt2",
     .sizes = {.vocabulary = 50257, .context = 1024, .width = 768, .heads = 12, .layers = 12, .tied = 1},
     .layers = clv__gpt_layers,
     .steps = true,
     .in_out = true,
     .base = "transformer.",
     .tokens = "transformer.wte.weight",
     .places = "transformer.wpe.weight",
     .last = {"transformer.h.", ".ln_1.weight"}},
    {.name = "llama",
     .sizes = {.vocabulary = 32000,
               .context = 256,
               .width = 288,
               .heads = 6,
               .layers = 6,
               .eps = 1e-6f,
               .rope_theta = 10000},
     .layers = clv__llama_layers,
     .steps = true,
     .base = "model.",
     .tokens = "model.embed_tokens.weight",
     .last = {"model.layers.", ".input_layernorm.weight"}},
    {.name = "lstm_lm",
     .sizes = {.vocabulary = 33278, .context = 35, .width = 200, .heads = 1, .layers = 2},
     .layers = clv__lstm_lm_layers,
     .tokens = "encoder.weight",
     .last = {"rnn.weight_ih_l", ""}},
    {.name = "bert_base", // no decoder: bert.c has its layers
     .sizes = {.vocabulary = 30522, .context = 512, .width = 768, .heads = 12, .layers = 12, .eps = 1e-12f},
     .base = "bert.",
     .tokens = "bert.embeddings.word_embeddings.weight",
     .places = "bert.embeddings.position_embeddings.weight",
     .last = {"bert.encoder.layer.", ".output.dense.weight"}},
};

const clv__decoder *clv__decoder_find(const char *name) {
    for (size_t i = 0; name && i < sizeof decoders / sizeof *decoders; i++)
        if (!strcmp(decoders[i].name, name)) return &decoders[i];
    return name ? NULL : decoders;
}

bool clv__rope_scaling_can_be(const float scaling[4]) {
    return scaling[0] >= 1 && scaling[1] > 0 && scaling[2] > scaling[1] && scaling[3] >= 1 &&
           scaling[0] <= 1e6f && scaling[2] <= 1e6f && scaling[3] <= 1e9f;
}

void clv__gpt_defaults(clv_gpt_config *c) {
    const clv__decoder *decoder = clv__decoder_find(c->model);
    if (!decoder) return; // is told when it is built
    const clv_gpt_config *own = &decoder->sizes;
    const bool llama = own->rope_theta > 0;
    if (!c->vocabulary) c->vocabulary = own->vocabulary;
    if (!c->context) c->context = own->context;
    if (!c->width) c->width = own->width;
    if (!c->heads) c->heads = own->heads;
    if (!c->layers) c->layers = own->layers;
    if (decoder == decoders) return; // the others' fields are not its own
    if (c->eps <= 0) c->eps = own->eps;
    if (!c->tied) c->tied = own->tied ? own->tied : -1;
    if (!c->hidden && llama) // a multiple of 32, for products
        c->hidden = (8 * c->width / 3 + 31) / 32 * 32;
    if (!c->hidden) c->hidden = decoder->layers == clv__lstm_lm_layers ? c->width : 4 * c->width;
    if (llama && !c->kv_heads) c->kv_heads = c->heads % 2 ? c->heads : c->heads / 2;
    if (llama && c->rope_theta <= 0) c->rope_theta = own->rope_theta;
    if (llama && !c->head_dim && c->heads > 0) c->head_dim = c->width / c->heads;
}

static bool check(clv_graph *graph, const clv__decoder *decoder, const clv_gpt_config *c) {
    const char *name = decoder ? decoder->name : c->model;
    if (!decoder || !decoder->layers)
        clv__graph_fail(graph, CLV_E_VALUE, "there is no model of texts '%.100s'", name);
    else if (c->heads < 1 || (c->width % c->heads && !c->head_dim) || c->layers < 1)
        clv__graph_fail(graph, CLV_E_VALUE,
                        "%s: a width of %lld cannot be divided into %lld heads, or there are no layers", name,
                        (long long)c->width, (long long)c->heads);
    else if (c->rope_theta > 0 &&
             (c->kv_heads < 1 || c->heads % c->kv_heads || c->head_dim < 1 || c->head_dim % 2))
        clv__graph_fail(
            graph, CLV_E_VALUE,
            "%s: %lld query heads cannot share %lld key heads, or the %lld features of a head are odd", name,
            (long long)c->heads, (long long)c->kv_heads, (long long)c->head_dim);
    else if (c->rope_scaling[0] != 0 && !clv__rope_scaling_can_be(c->rope_scaling))
        clv__graph_fail(graph, CLV_E_VALUE,
                        "%s: rope_scaling must be a factor of at least 1, two rising numbers, and a length",
                        name);
    else if (c->hidden < 0 ||
             (c->tied == 1 && decoder->layers == clv__lstm_lm_layers && c->hidden != c->width))
        clv__graph_fail(graph, CLV_E_VALUE, "%s: %lld hidden features, and a tied embedding of %lld", name,
                        (long long)c->hidden, (long long)c->width);
    else
        return true;
    return false;
}

clv_tensor *clv__gpt_next(clv_tensor *token, clv_tensor *position, const clv_gpt_config *config) {
    clv_graph *graph = clv_tensor_graph(token);
    const clv__decoder *decoder = clv__decoder_find(config->model);
    return graph && check(graph, decoder, config) ? decoder->layers(token, position, config) : NULL;
}

clv_tensor *clv__build_decoder(clv_tensor *tokens, const clv_model *model) {
    clv_gpt_config c = model->user ? *(const clv_gpt_config *)model->user : (clv_gpt_config){0};
    clv_graph *graph = clv_tensor_graph(tokens);
    if (!c.model && clv__decoder_find(model->name)) c.model = model->name;
    c.vocabulary = model->classes;
    c.context = model->input[0];
    clv__gpt_defaults(&c);
    const clv_shape shape = clv_tensor_shape(tokens);
    const clv__decoder *decoder = clv__decoder_find(c.model);
    if (!graph || !check(graph, decoder, &c)) return NULL;
    if (shape.rank != 2 || shape.dims[1] > c.context)
        return clv__graph_fail(graph, CLV_E_SHAPE,
                               "%s: tokens must be [N,T] with T up to the context of %lld", decoder->name,
                               (long long)c.context);
    return decoder->layers(tokens, NULL, &c);
}

clv_tensor *clv__decoder_embedding(clv_graph *graph, clv_tensor *indices, const char *name, int64_t rows,
                                   int64_t width, clv_init init, clv_tensor **weight) {
    clv_scope_push(graph, name);
    *weight = clv_parameter(graph, "weight", CLV_SHAPE(rows, width), init);
    clv_tensor *y = indices ? clv_embedding(*weight, indices) : *weight;
    clv_scope_pop(graph);
    return y;
}

clv_tensor *clv__decoder_logits(clv_tensor *x, clv_tensor *embedding, const clv_gpt_config *config) {
    const clv_init init = {CLV_INIT_NORMAL, 0, 0.02f};
    if (config->tied == 1) return clv_linear(x, embedding, NULL);
    return clv_nn_linear(x, "lm_head", config->vocabulary,
                         &(clv_nn_linear_config){.no_bias = true, .weight_init = &init});
}

clv_model clv_gpt_model(const clv_gpt_config *config) {
    const clv__decoder *decoder = clv__decoder_find(config ? config->model : NULL);
    clv_model model = *clv_model_find(decoder ? decoder->name : "gpt");
    model.user = config;
    if (model.build_all) return model;
    if (config && config->vocabulary) model.classes = config->vocabulary;
    if (config && config->context) model.input[0] = model.target[0] = config->context;
    return model;
}
