// SPDX-License-Identifier: Apache-2.0
// LSTM, GRU and RNN of several layers and both directions, made of products and `recurrence`, a node for each layer and direction. Names,
// weights and the order of gates are PyTorch's. Source: torch.nn.LSTM, GRU, RNN.
#include <stdio.h>
#include <string.h>

#include "graph/graph.h"
#include "graph/signature.h"
#include "ops/lower.h"
#include "ops/recurrent/recurrence.h"

/** A call: what it has of each layer and direction. */
typedef struct network {
    const char *name;
    clv_cell cell;
    clv_tensor *const *weights;
    int each; // weights of a layer in one direction
    int64_t layers, directions;
    bool reverse;
    float dropout;
    clv_tensor *lengths;
    clv_recurrent_state first; // of all; NULL: zeros
} network;

enum { W_IH, W_HH, B_IH, B_HH, MOST_PARTS = 64 };

/** Is all there in the shapes that products and `recurrence` do not ask for themselves? Else the graph has the mistake. */
static bool fits(const network *w, clv_tensor *x, int n_weights) {
    clv_graph *graph = clv__tensor_graph(x);
    const int64_t parts = w->layers * w->directions;
    if (clv_tensor_shape(x).rank != 3)
        return clv__graph_fail(graph, CLV_E_SHAPE, "%s: x must be [T,N,F], or with batch_first [N,T,F]",
                               w->name);
    if (w->layers < 1 || w->layers > MOST_PARTS / w->directions)
        return clv__graph_fail(graph, CLV_E_VALUE, "%s: layers is %lld, it must be from 1 to %lld", w->name,
                               (long long)w->layers, (long long)(MOST_PARTS / w->directions));
    if (n_weights != 2 * parts && n_weights != 4 * parts)
        return clv__graph_fail(
            graph, CLV_E_SHAPE,
            "%s: %d weights are given, there must be %lld, weight_ih and weight_hh of each layer and "
            "direction, or %lld with bias_ih and bias_hh",
            w->name, n_weights, (long long)(2 * parts), (long long)(4 * parts));
    clv_tensor *const states[] = {w->first.h, w->first.c};
    for (int i = 0; i < 2; i++) {
        const clv_shape state = states[i] ? clv_tensor_shape(states[i]) : (clv_shape){0};
        if (states[i] && (state.rank != 3 || state.dims[0] != parts))
            return clv__graph_fail(graph, CLV_E_SHAPE,
                                   "%s: %s must be [%lld,N,H]: a state for each layer and direction", w->name,
                                   i ? "c0" : "h0", (long long)parts);
    }
    return true;
}

/** The k-th of the states, as [N,H]. */
static clv_tensor *state_of(clv_tensor *all, int64_t k) {
    if (!all) return NULL;
    const clv_shape shape = clv_tensor_shape(all);
    if (shape.dims[0] > 1) all = clv_slice(all, 0, k, 1);
    return clv_reshape(all, CLV_SHAPE(shape.dims[1], shape.dims[2]));
}

static clv_tensor *as_one_of_several(clv_tensor *state) {
    if (!state) return NULL;
    const clv_shape shape = clv_tensor_shape(state);
    return clv_reshape(state, CLV_SHAPE(1, shape.dims[0], shape.dims[1]));
}

static clv_tensor *joined(clv_tensor *const *parts, int64_t n, int axis) {
    return n == 1 ? parts[0] : clv_concat(parts, (int)n, axis);
}

/** One layer in one direction. Both biases of an LSTM or RNN are added up anyway; a GRU's reset gate stands between them. */
static clv_tensor *part_of(const network *w, clv_tensor *x, int64_t k, clv_recurrent_state *state) {
    clv_tensor *const *weights = w->weights + k * w->each;
    clv_tensor *bias = w->each == 2 ? NULL : weights[B_IH], *bias_hh = w->each == 2 ? NULL : weights[B_HH];
    if (bias && w->cell != CLV_CELL_GRU) {
        bias = clv_add(bias, bias_hh);
        bias_hh = NULL;
    }
    *state = (clv_recurrent_state){state_of(w->first.h, k), state_of(w->first.c, k)};
    clv_tensor *z = clv_linear(x, weights[W_IH], bias);
    return clv_recurrence(z, weights[W_HH], bias_hh, w->lengths, w->cell,
                          w->reverse != (k % w->directions > 0), state);
}

static clv_tensor *layers_of(const network *w, clv_tensor *x, clv_recurrent_state *last) {
    clv_tensor *y[2], *h[MOST_PARTS], *c[MOST_PARTS];
    const int64_t parts = w->layers * w->directions;
    for (int64_t layer = 0; layer < w->layers && x; layer++) {
        if (layer > 0) x = clv_dropout(x, w->dropout);
        for (int64_t d = 0; d < w->directions; d++) {
            const int64_t k = layer * w->directions + d;
            clv_recurrent_state state;
            y[d] = part_of(w, x, k, &state);
            if (!last) continue;
            h[k] = as_one_of_several(state.h);
            c[k] = as_one_of_several(state.c);
        }
        x = joined(y, w->directions, 2);
    }
    if (!last) return x;
    *last = (clv_recurrent_state){0};
    if (!x) return NULL;
    last->h = joined(h, parts, 0);
    if (w->cell == CLV_CELL_LSTM) last->c = joined(c, parts, 0);
    return x;
}

static clv_tensor *network_of(const char *name, clv_cell cell, clv_tensor *x, clv_tensor *lengths,
                              clv_tensor *const *weights, int n_weights, const clv_recurrent_config *config,
                              clv_recurrent_state *state) {
    const clv_recurrent_config c = config ? *config : (clv_recurrent_config){0};
    network w = {.name = name,
                 .cell = cell,
                 .weights = weights,
                 .layers = c.layers ? c.layers : 1,
                 .directions = c.bidirectional ? 2 : 1,
                 .reverse = c.reverse,
                 .dropout = c.dropout,
                 .lengths = lengths};
    if (state) {
        w.first = *state;
        *state = (clv_recurrent_state){0};
    }
    if (!x || !fits(&w, x, weights ? n_weights : 0)) return NULL;
    w.each = n_weights / (int)(w.layers * w.directions);
    if (c.batch_first) x = clv_permute(x, (int[]){1, 0, 2}, 3);
    clv_tensor *y = layers_of(&w, x, state);
    return c.batch_first ? clv_permute(y, (int[]){1, 0, 2}, 3) : y;
}

clv_tensor *clv_lstm(clv_tensor *x, clv_tensor *lengths, clv_tensor *const *weights, int n_weights,
                     const clv_recurrent_config *config, clv_recurrent_state *state) {
    return network_of("lstm", CLV_CELL_LSTM, x, lengths, weights, n_weights, config, state);
}

clv_tensor *clv_gru(clv_tensor *x, clv_tensor *lengths, clv_tensor *const *weights, int n_weights,
                    const clv_recurrent_config *config, clv_recurrent_state *state) {
    return network_of("gru", CLV_CELL_GRU, x, lengths, weights, n_weights, config, state);
}

clv_tensor *clv_rnn(clv_tensor *x, clv_tensor *lengths, clv_tensor *const *weights, int n_weights,
                    const clv_recurrent_config *config, clv_recurrent_state *state) {
    const clv_cell cell = config && config->relu ? CLV_CELL_RELU : CLV_CELL_TANH;
    return network_of("rnn", cell, x, lengths, weights, n_weights, config, state);
}

// ---- by name --------------------------------------------------------------------------------------------------------

extern const clv__op clv__op_lstm, clv__op_rnn;

/** Inputs before the weights: x, h0, of an LSTM c0, lengths. */
static int before_weights(const clv__op *op) {
    return op == &clv__op_lstm ? 4 : 3;
}

static clv_tensor *build(const clv__call *call) {
    const int n = before_weights(call->op);
    const bool lstm = call->op == &clv__op_lstm;
    if (call->n_in < n || !call->in[0])
        return clv__graph_fail(call->graph, CLV_E_VALUE, "%s: x is NULL, or inputs are missing",
                               call->op->name);
    clv_recurrent_state state = {call->in[1], lstm ? call->in[2] : NULL};
    const clv_recurrent_config *config = call->attrs;
    const clv_cell cell = lstm                       ? CLV_CELL_LSTM
                          : call->op != &clv__op_rnn ? CLV_CELL_GRU
                          : config->relu             ? CLV_CELL_RELU
                                                     : CLV_CELL_TANH;
    return network_of(call->op->name, cell, call->in[0], call->in[n - 1], call->in + n, call->n_in - n,
                      config, state.h || state.c ? &state : NULL);
}

enum { BIAS = 1, H0 = 2, C0 = 4, LENGTHS = 8, QUICK = 16 };
static const struct {
    const char *label;
    clv_recurrent_config config;
    int T, N, F, H, with;
} samples[] = {
    {"a layer", {.layers = 1}, 4, 2, 3, 5, BIAS},
    {"two layers, both directions", {.layers = 2, .bidirectional = true}, 3, 4, 6, 5, BIAS | LENGTHS | QUICK},
    {"the batch first, without bias", {.layers = 1, .batch_first = true}, 5, 3, 4, 6, LENGTHS | H0 | C0},
    {"the last step first", {.layers = 2, .reverse = true}, 3, 2, 5, 8, BIAS | C0},
};

static bool sample(const clv__op *op, int i, clv__sample *out) {
    if (i >= (int)(sizeof samples / sizeof *samples)) return false;
    const clv_recurrent_config *config = &samples[i].config;
    const int64_t T = samples[i].T, N = samples[i].N, H = samples[i].H,
                  directions = config->bidirectional ? 2 : 1;
    const int with = samples[i].with, n = before_weights(op), each = with & BIAS ? 4 : 2;
    const bool lstm = op == &clv__op_lstm;
    const int64_t rows = (lstm ? 4 : op == &clv__op_rnn ? 1 : 3) * H, parts = config->layers * directions;
    snprintf(out->label, sizeof out->label, "%s", samples[i].label);
    memcpy(out->attrs, config, sizeof *config);
    out->in[0] =
        clv__f32(config->batch_first ? CLV_SHAPE(N, T, samples[i].F) : CLV_SHAPE(T, N, samples[i].F));
    if (with & H0) out->in[1] = clv__f32(CLV_SHAPE(parts, N, H));
    if (with & C0 && lstm) out->in[2] = clv__f32(CLV_SHAPE(parts, N, H));
    if (with & LENGTHS) out->in[n - 1] = clv__i32(CLV_SHAPE(N));
    out->fill[n - 1] = (clv__fill){CLV__FILL_INTEGER, 1, (double)T};
    for (int64_t k = 0; k < parts; k++) {
        clv__desc *to = out->in + n + k * each;
        to[W_IH] = clv__f32(CLV_SHAPE(rows, k < directions ? samples[i].F : directions * H));
        to[W_HH] = clv__f32(CLV_SHAPE(rows, H));
        if (with & BIAS) to[B_IH] = to[B_HH] = clv__f32(CLV_SHAPE(rows));
    }
    out->n_in = n + (int)parts * each;
    out->quick = with & QUICK;
    return true;
}

#define ATTRIBUTES                                                                                           \
    {CLV__ATTRIBUTE(INT, clv_recurrent_config, layers, "1"), CLV__AT_LEAST(1)},                              \
        {CLV__ATTRIBUTE(BOOL, clv_recurrent_config, bidirectional, "0")},                                    \
        {CLV__ATTRIBUTE(BOOL, clv_recurrent_config, reverse, "0")},                                          \
        {CLV__ATTRIBUTE(BOOL, clv_recurrent_config, batch_first, "0")}, {                                    \
        CLV__ATTRIBUTE(NUMBER, clv_recurrent_config, dropout, "0")                                           \
    }
#define COMMON                                                                                               \
    .outputs = CLV__OUTPUTS({"y", "f32[_,_,_]"}), .attributes_of_call = true,                                \
    .attrs_bytes = sizeof(clv_recurrent_config), .sample = CLV__TRAINS(sample), .build = build

CLV__COMPOSITE(lstm) = {.name = "lstm",
                        .inputs = CLV__INPUTS({"x", "f32[_,_,_]"}, {"h0", "f32[_,_,_]?"},
                                              {"c0", "f32[_,_,_]?"}, {"lengths", "int[_]?"},
                                              {"weights", "f32..."}),
                        .attributes = CLV__ATTRIBUTES(ATTRIBUTES),
                        COMMON};

CLV__COMPOSITE(gru) = {.name = "gru",
                       .inputs = CLV__INPUTS({"x", "f32[_,_,_]"}, {"h0", "f32[_,_,_]?"},
                                             {"lengths", "int[_]?"}, {"weights", "f32..."}),
                       .attributes = CLV__ATTRIBUTES(ATTRIBUTES),
                       COMMON};

CLV__COMPOSITE(rnn) = {
    .name = "rnn",
    .inputs = CLV__INPUTS({"x", "f32[_,_,_]"}, {"h0", "f32[_,_,_]?"}, {"lengths", "int[_]?"},
                          {"weights", "f32..."}),
    .attributes = CLV__ATTRIBUTES(ATTRIBUTES, {CLV__ATTRIBUTE(BOOL, clv_recurrent_config, relu, "0")}),
    COMMON};
