// SPDX-License-Identifier: Apache-2.0
// LSTM, GRU and RNN: each direction is a product over all steps and clv_recurrence, with gates in PyTorch's order. What that does not
// have (other activations, peepholes, a reset before the product) is written out step by step. Source: the operators of ONNX 1.23;
// Hochreiter, Schmidhuber 1997; Cho et al. 2014.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "onnx/import.h"
#include "onnx/known.h"

enum { MOST_STEPS = 4096 };

/** A node, and of one direction its weights. */
typedef struct recurrent {
    clv__onnx_use *use;
    int gates, direction; // which of the node's directions this is
    bool batch_first, backward;
    int64_t steps, batch, hidden;
    clv_tensor *lengths;               // [N] i32; NULL: all steps count
    clv_tensor *of_input, *input_bias; // [gates * H, F], [gates * H]
    clv_tensor *weight, *bias;         // of the state: [gates * H, H], [gates * H]
    clv_tensor *peephole[3];           // of i, o, f; NULL: none
    clv_tensor *(*combine)(struct recurrent *, clv_tensor *, clv_tensor *,
                           clv_tensor **); // one step: h of z, h, c
} recurrent;

// ---- activations -------------------------------------------------------------------------------------

/** A number of a list of floats; `fallback` where the list ends before. */
static float listed(const clv__onnx_use *use, const char *name, int i, float fallback) {
    const clv__onnx_attribute *list = clv__onnx_attribute_find(use->node, name);
    return list && (size_t)i < list->n ? list->floats[i] : fallback;
}

static bool same_word(clv__onnx_text text, const char *word) {
    if (text.n != strlen(word)) return false;
    for (size_t i = 0; i < text.n; i++)
        if ((text.data[i] | 32) != (word[i] | 32)) return false;
    return true;
}

static clv_tensor *activated(clv__onnx_use *use, clv__onnx_text name, int at, clv_tensor *x) {
#define ALPHA(fallback) listed(use, "activation_alpha", at, fallback)
#define BETA(fallback) listed(use, "activation_beta", at, fallback)
    if (same_word(name, "sigmoid")) return clv_sigmoid(x);
    if (same_word(name, "tanh")) return clv_tanh(x);
    if (same_word(name, "relu")) return clv_relu(x);
    if (same_word(name, "affine")) return clv_add_scalar(clv_mul_scalar(x, ALPHA(1)), BETA(0));
    if (same_word(name, "leakyrelu")) return clv_leaky_relu(x, ALPHA(0.01f));
    if (same_word(name, "scaledtanh")) return clv_mul_scalar(clv_tanh(clv_mul_scalar(x, BETA(1))), ALPHA(1));
    if (same_word(name, "hardsigmoid"))
        return clv_clamp(clv_add_scalar(clv_mul_scalar(x, ALPHA(0.2f)), BETA(0.5f)), 0, 1);
    if (same_word(name, "elu")) return clv_elu(x, ALPHA(1));
    if (same_word(name, "softsign")) return clv_div(x, clv_add_scalar(clv_abs(x), 1));
    if (same_word(name, "softplus")) return clv_softplus(x);
    if (same_word(name, "thresholdedrelu"))
        return clv_where(clv__onnx_with(use, clv_gt, x, (double)ALPHA(1)), x, clv__onnx_scalar(use, 0, true));
#undef ALPHA
#undef BETA
    clv__onnx_fail(use, CLV_E_UNSUPPORTED, "one of its activations is not known");
    return NULL;
}

/** The node's activation `i` of this direction, and which of the node's that is. */
static clv__onnx_text activation(const recurrent *r, int i, const char *fallback, int *at) {
    const clv__onnx_attribute *list = clv__onnx_attribute_find(r->use->node, "activations");
    const int each = r->gates == 4 ? 3 : r->gates == 3 ? 2 : 1;
    *at = r->direction * each + i;
    if (list && (size_t)*at < list->n) return list->strings[*at];
    return (clv__onnx_text){.data = fallback, .n = strlen(fallback)};
}

/** It, and its input clipped where the node says so. */
static clv_tensor *act(const recurrent *r, int i, const char *fallback, clv_tensor *x) {
    const float clip = (float)clv__onnx_real(r->use, "clip", 0);
    int at;
    const clv__onnx_text name = activation(r, i, fallback, &at);
    if (clip > 0) x = clv_clamp(x, -clip, clip);
    return activated(r->use, name, at, x);
}

// ---- one step ----------------------------------------------------------------------------------------

static clv_tensor *gate(const recurrent *r, clv_tensor *z, int i) {
    return clv__onnx_part(z, 1, i * r->hidden, r->hidden);
}

static clv_tensor *less_than_one(recurrent *r, clv_tensor *x) {
    return clv_sub(clv__onnx_scalar(r->use, 1, true), x);
}

static clv_tensor *rnn_step(recurrent *r, clv_tensor *z, clv_tensor *h, clv_tensor **c) {
    (void)c;
    return act(r, 0, "tanh", clv_add(z, clv_linear(h, r->weight, r->bias)));
}

static clv_tensor *lstm_step(recurrent *r, clv_tensor *z, clv_tensor *h, clv_tensor **c) {
    z = clv_add(z, clv_linear(h, r->weight, r->bias));
    clv_tensor *i = gate(r, z, 0), *o = gate(r, z, 1), *f = gate(r, z, 2), *g = gate(r, z, 3);
    clv_tensor *const *p = r->peephole;
    if (p[0]) i = clv_add(i, clv_mul(p[0], *c));
    if (p[0]) f = clv_add(f, clv_mul(p[2], *c));
    i = act(r, 0, "sigmoid", i);
    f = clv__onnx_int(r->use, "input_forget", 0) ? less_than_one(r, i) : act(r, 0, "sigmoid", f);
    *c = clv_add(clv_mul(f, *c), clv_mul(i, act(r, 1, "tanh", g)));
    if (p[0]) o = clv_add(o, clv_mul(p[1], *c));
    return clv_mul(act(r, 0, "sigmoid", o), act(r, 2, "tanh", *c));
}

/** Update, reset, new. */
static clv_tensor *gru_step(recurrent *r, clv_tensor *z, clv_tensor *h, clv_tensor **c) {
    (void)c;
    const int64_t H = r->hidden;
    clv_tensor *two = clv__onnx_part(r->weight, 0, 0, 2 * H), *third = clv__onnx_part(r->weight, 0, 2 * H, H),
               *two_bias = r->bias ? clv__onnx_part(r->bias, 0, 0, 2 * H) : NULL,
               *third_bias = r->bias ? clv__onnx_part(r->bias, 0, 2 * H, H) : NULL;
    clv_tensor *both = clv_add(clv__onnx_part(z, 1, 0, 2 * H), clv_linear(h, two, two_bias));
    both = act(r, 0, "sigmoid", both);
    clv_tensor *update = gate(r, both, 0), *reset = gate(r, both, 1);
    clv_tensor *past = clv__onnx_int(r->use, "linear_before_reset", 0)
                           ? clv_mul(reset, clv_linear(h, third, third_bias))
                           : clv_linear(clv_mul(reset, h), third, third_bias);
    clv_tensor *made = act(r, 1, "tanh", clv_add(gate(r, z, 2), past));
    return clv_add(clv_mul(less_than_one(r, update), made), clv_mul(update, h));
}

// ---- a direction -------------------------------------------------------------------------------------

/** This direction's part of an input whose axis `axis` has the directions, in other dimensions. */
static clv_tensor *part_of(recurrent *r, int i, int axis, const int64_t *dims, int rank) {
    clv_tensor *x = clv__onnx_float(r->use, i);
    return x ? clv__onnx_reshape(clv__onnx_part(x, axis, r->direction, 1), dims, rank) : NULL;
}

/** Is an initializer zeros? PyTorch writes the states that nobody gives so, for the file's batch. */
static bool is_zeros(const clv__onnx_tensor *data) {
    double v[64];
    for (int64_t i = 0; data && i < data->numel; i += 64) {
        const int64_t n = data->numel - i < 64 ? data->numel - i : 64;
        if (!clv__onnx_widen(data, i, n, v)) return false;
        for (int64_t k = 0; k < n; k++)
            if (v[k] != 0) return false;
    }
    return data != NULL;
}

/** The first state of this direction; NULL: zeros. */
static clv_tensor *state_of(recurrent *r, int i) {
    if (clv__onnx_has(r->use, i) && is_zeros(r->use->in[i]->data)) return NULL;
    return part_of(r, i, r->batch_first ? 1 : 0, (int64_t[]){r->batch, r->hidden}, 2);
}

static void read_weights(recurrent *r, const clv_tensor *x) {
    const int64_t rows = r->gates * r->hidden, width = clv_tensor_shape(x).dims[2], twice = 2 * rows,
                  thrice = 3 * r->hidden;
    clv_tensor *own = part_of(r, 1, 0, (int64_t[]){rows, width}, 2), *bias = part_of(r, 3, 0, &twice, 1),
               *holes = r->gates == 4 ? part_of(r, 7, 0, &thrice, 1) : NULL;
    r->weight = part_of(r, 2, 0, (int64_t[]){rows, r->hidden}, 2);
    r->bias = bias ? clv__onnx_part(bias, 0, rows, rows) : NULL;
    r->of_input = own;
    r->input_bias = bias ? clv__onnx_part(bias, 0, 0, rows) : NULL;
    for (int i = 0; i < 3; i++)
        r->peephole[i] = holes ? clv__onnx_part(holes, 0, i * r->hidden, r->hidden) : NULL;
}

/** Is this direction's activation `i` the one of that name? */
static bool activates(const recurrent *r, int i, const char *name, const char *fallback) {
    int at;
    return same_word(activation(r, i, fallback, &at), name);
}

/** Can clv_recurrence do this direction? Then it says which cell it is. */
static bool is_cell(const recurrent *r, clv_cell *cell) {
    const clv__onnx_use *use = r->use;
    if (clv__onnx_real(use, "clip", 0) > 0) return false;
    if (r->gates == 1) {
        const bool relu = activates(r, 0, "relu", "tanh");
        *cell = relu ? CLV_CELL_RELU : CLV_CELL_TANH;
        return relu || activates(r, 0, "tanh", "tanh");
    }
    *cell = r->gates == 4 ? CLV_CELL_LSTM : CLV_CELL_GRU;
    const bool usual = activates(r, 0, "sigmoid", "sigmoid") && activates(r, 1, "tanh", "tanh");
    if (r->gates == 3) return usual && clv__onnx_int(use, "linear_before_reset", 0);
    return usual && activates(r, 2, "tanh", "tanh") && !r->peephole[0] &&
           !clv__onnx_int(use, "input_forget", 0);
}

/** Rows of weights with the gates in PyTorch's order: input, forget, cell, output; reset, update, new. */
static clv_tensor *ordered(const recurrent *r, clv_tensor *w) {
    static const int orders[5][4] = {[1] = {0}, [3] = {1, 0, 2}, [4] = {0, 2, 3, 1}};
    clv_tensor *parts[4];
    if (!w || r->gates == 1) return w;
    for (int g = 0; g < r->gates; g++)
        parts[g] = clv__onnx_part(w, 0, orders[r->gates][g] * r->hidden, r->hidden);
    return clv_concat(parts, r->gates, 0);
}

/** All steps as one node: results of each [T, 1, N, H], and the last state. */
static clv_tensor *run_cell(const recurrent *r, clv_tensor *x, clv_cell cell, clv_tensor **h,
                            clv_tensor **c) {
    clv_recurrent_state state = {*h, *c};
    clv_tensor *z = clv_linear(x, ordered(r, r->of_input), ordered(r, r->input_bias));
    clv_tensor *y =
        clv_recurrence(z, ordered(r, r->weight), ordered(r, r->bias), r->lengths, cell, r->backward, &state);
    *h = state.h, *c = state.c;
    return clv__onnx_reshape(y, (int64_t[]){r->steps, 1, r->batch, r->hidden}, 4);
}

/** The same, written out. */
static clv_tensor *run(recurrent *r, clv_tensor *x, clv_tensor **h, clv_tensor **c) {
    if (r->steps > MOST_STEPS) {
        clv__onnx_fail(r->use, CLV_E_UNSUPPORTED, "%lld steps; 1 to %d are written out", (long long)r->steps,
                       MOST_STEPS);
        return NULL;
    }
    clv_tensor **all = malloc((size_t)(r->steps + 1) * sizeof(clv_tensor *)), *y = NULL;
    clv_tensor *zero = clv__onnx_scalar(r->use, 0, true), *input = clv_linear(x, r->of_input, r->input_bias);
    clv_tensor *none = clv_full(r->use->graph, CLV_DTYPE_F32, CLV_SHAPE(r->batch, r->hidden), 0);
    *h = *h ? *h : none;
    *c = *c || r->gates < 4 ? *c : none;
    clv_tensor *lengths =
        r->lengths ? clv__onnx_reshape(r->lengths, (int64_t[]){r->batch, 1}, 2) : NULL; // beside [N, H]
    for (int64_t i = 0; all && i < r->steps; i++) {
        const int64_t t = r->backward ? r->steps - 1 - i : i;
        clv_tensor *z = clv__onnx_part(input, 0, t, 1), *next_c = *c;
        z = clv__onnx_reshape(z, (int64_t[]){r->batch, r->gates * r->hidden}, 2);
        clv_tensor *next = r->combine(r, z, *h, &next_c), *told = next;
        if (lengths) {
            clv_tensor *live = clv__onnx_with(r->use, clv_gt, lengths, (double)t);
            told = clv_where(live, next, zero);
            next = clv_where(live, next, *h);
            next_c = r->gates == 4 ? clv_where(live, next_c, *c) : next_c;
        }
        *h = next, *c = next_c;
        all[t] = clv__onnx_reshape(told, (int64_t[]){1, 1, r->batch, r->hidden}, 4);
    }
    if (all) y = r->steps == 1 ? all[0] : clv_concat(all, (int)r->steps, 0);
    free(all);
    return y;
}

static clv_tensor *joined(clv_tensor **parts, int n, int axis) {
    return n == 1 ? parts[0] : clv_concat(parts, n, axis);
}

static void build(clv__onnx_use *use) {
    const int gates = use->row->which;
    recurrent r = {.use = use, .gates = gates};
    r.combine = gates == 4 ? lstm_step : gates == 3 ? gru_step : rnn_step;
    r.batch_first = clv__onnx_int(use, "layout", 0) != 0;
    clv_tensor *x = clv__onnx_float(use, 0), *y[2], *h[2], *c[2];
    if (r.batch_first) x = clv__onnx_permute(x, (int[]){1, 0, 2}, 3);
    const clv_shape shape = clv_tensor_shape(x);
    r.steps = shape.dims[0], r.batch = shape.dims[1], r.hidden = clv__onnx_shape(use, 2).dims[2];
    if (clv__onnx_failed(use)) return;
    if (shape.rank != 3 || r.steps < 1) {
        clv__onnx_fail(use, CLV_E_SHAPE, "x has no steps");
        return;
    }
    if (clv__onnx_has(use, 4)) r.lengths = clv__onnx_i32(use, 4);
    const int n = clv__onnx_word(use, "direction", "bidirectional", false) ? 2 : 1;
    for (r.direction = 0; r.direction < n; r.direction++) {
        const int k = r.direction;
        r.backward = k || clv__onnx_word(use, "direction", "reverse", false);
        read_weights(&r, x);
        h[k] = state_of(&r, 5), c[k] = gates == 4 ? state_of(&r, 6) : NULL;
        clv_cell cell;
        y[k] = is_cell(&r, &cell) ? run_cell(&r, x, cell, &h[k], &c[k]) : run(&r, x, &h[k], &c[k]);
        const int64_t one[3] = {1, r.batch, r.hidden};
        h[k] = clv__onnx_reshape(h[k], one, 3);
        c[k] = clv__onnx_reshape(c[k], one, 3);
        if (clv__onnx_failed(use)) return;
    }
    clv_tensor *all = joined(y, n, 1), *last = joined(h, n, 0), *cell = gates == 4 ? joined(c, n, 0) : NULL;
    const bool turn = r.batch_first;
    clv__onnx_give(use, 0, turn ? clv__onnx_permute(all, (int[]){2, 0, 1, 3}, 4) : all);
    clv__onnx_give(use, 1, turn ? clv__onnx_permute(last, (int[]){1, 0, 2}, 3) : last);
    if (cell) clv__onnx_give(use, 2, turn ? clv__onnx_permute(cell, (int[]){1, 0, 2}, 3) : cell);
}

const clv__onnx_row clv__onnx_recurrent[] = {
    {"GRU", build, .which = 3},
    {"LSTM", build, .which = 4},
    {"RNN", build, .which = 1},
    {0},
};
