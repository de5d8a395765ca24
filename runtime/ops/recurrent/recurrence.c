// SPDX-License-Identifier: Apache-2.0
// The recurrent part of an LSTM, a GRU or an RNN as one op: all steps of one layer in one direction. What the input adds to the gates is
// a product over all steps at once, and so are the gradients of the weights: ops before and behind (rnn.c). Kernels:
// kernels_cl/recurrence.cl, which has the formulas. Source: torch.nn.LSTM, GRU, RNN.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "graph/graph.h"
#include "graph/signature.h"
#include "ops/lower.h"
#include "ops/recurrent/recurrence.h"

extern const clv__op clv__op_recurrence;

// ---- shape rule -----------------------------------------------------------------------------------------------------

static const struct {
    int gates, saved;
} cells[] = {
    [CLV_CELL_LSTM] = {4, 5}, [CLV_CELL_GRU] = {3, 4}, [CLV_CELL_TANH] = {1, 1}, [CLV_CELL_RELU] = {1, 1}};

clv__recurrence clv__recurrence_of(const clv__op_io *io) {
    const clv__recurrence_attrs *attrs = io->attrs;
    const bool backward = clv__is_gradient(io);
    const clv_shape *weight = &io->in[backward ? CLV__RNN_B_WEIGHT : CLV__RNN_WEIGHT].shape,
                    *steps = &io->in[backward ? CLV__RNN_B_PREV : CLV__RNN_Z].shape;
    return (clv__recurrence){.cell = (clv_cell)attrs->cell,
                             .T = steps->dims[0],
                             .N = steps->dims[1],
                             .H = weight->dims[1],
                             .gates = cells[attrs->cell].gates,
                             .saved = cells[attrs->cell].saved,
                             .reverse = attrs->reverse,
                             .keep = attrs->keep,
                             .backward = backward};
}

static clv_status infer(clv__op_io *io, clv__error *error) {
    const clv__recurrence_attrs *attrs = io->attrs;
    const bool lstm = attrs->cell == CLV_CELL_LSTM;
    const clv_shape *z = &io->in[CLV__RNN_Z].shape, *weight = &io->in[CLV__RNN_WEIGHT].shape;
    const int64_t T = z->dims[0], N = z->dims[1], H = weight->dims[1], gates = cells[attrs->cell].gates;
    if (T < 1) CLV_FAIL(error, CLV_E_SHAPE, "z has no steps");
    if (H < 1) CLV_FAIL(error, CLV_E_SHAPE, "weight_hh has no columns");
    if (weight->dims[0] != gates * H)
        CLV_FAIL(error, CLV_E_SHAPE, "weight_hh has %lld rows, %lld gates of %lld need %lld",
                 (long long)weight->dims[0], (long long)gates, (long long)H, (long long)(gates * H));
    if (clv__has_in(io, CLV__RNN_C0) && !lstm)
        CLV_FAIL(error, CLV_E_VALUE, "c0 is given, and only an LSTM has such a state");
    io->n_out = CLV__RNN_OUT;
    io->out[CLV__RNN_Y] = clv__f32(CLV_SHAPE(T, N, H));
    io->out[CLV__RNN_H_N] = clv__f32(CLV_SHAPE(N, H));
    io->out[CLV__RNN_C_N] = clv__f32(CLV_SHAPE(N, lstm ? H : 0));
    io->out[CLV__RNN_SAVED] = clv__f32(CLV_SHAPE(attrs->keep ? T : 0, N, cells[attrs->cell].saved * H));
    io->out[CLV__RNN_PREV] = clv__f32(CLV_SHAPE(attrs->keep ? T : 0, N, H));
    return CLV_OK;
}

/** As a gradient's, and of a GRU the gradients of what the state adds to the gates, besides. What a cell does not have is empty. */
static clv_status backward_infer(clv__op_io *io, clv__error *error) {
    const clv__recurrence_attrs *attrs = io->attrs;
    const int cell = attrs->cell;
    CLV_TRY(clv__pair_infer(io, error));
    if (!attrs->keep) CLV_FAIL(error, CLV_E_VALUE, "what the gradient reads was not kept");
    if (cell != CLV_CELL_LSTM) io->out[CLV__RNN_DC0].shape.dims[1] = 0;
    io->out[io->n_out] = io->out[CLV__RNN_DZ];
    if (cell != CLV_CELL_GRU) io->out[io->n_out].shape.dims[0] = 0;
    io->n_out++;
    return CLV_OK;
}

// ---- references -----------------------------------------------------------------------------------------------------

static double sigmoid(double v) {
    return 1 / (1 + exp(-v));
}

/** One row of one use: where its tensors have it. */
typedef struct row {
    const clv__recurrence *r;
    const clv__ref *ref;
    int64_t n;
} row;

static bool is_live(const row *w, int64_t t) {
    const double *lengths = w->ref->in[w->r->backward ? CLV__RNN_B_LENGTHS : CLV__RNN_LENGTHS];
    return !lengths || (double)t < lengths[w->n];
}

/** Step t's `k` times H numbers of this row. */
static double *at(const row *w, double *of, int64_t t, int64_t k) {
    return of + (t * w->r->N + w->n) * k * w->r->H;
}

static double dot(const double *a, const double *b, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

/** Element u after a step: from z, the products p, h and *c; what is saved goes to s. */
static double next_state(clv_cell cell, const double *z, const double *p, double h, double *c, double *s) {
    if (cell == CLV_CELL_LSTM) {
        for (int g = 0; g < 4; g++) s[g] = g == 2 ? tanh(z[g] + p[g]) : sigmoid(z[g] + p[g]);
        *c = s[4] = s[1] * *c + s[0] * s[2];
        return s[3] * tanh(*c);
    }
    if (cell == CLV_CELL_GRU) {
        for (int g = 0; g < 2; g++) s[g] = sigmoid(z[g] + p[g]);
        s[2] = tanh(z[2] + s[0] * p[2]);
        s[3] = p[2];
        return (1 - s[1]) * s[2] + s[1] * h;
    }
    const double v = z[0] + p[0];
    return s[0] = cell == CLV_CELL_TANH ? tanh(v) : v <= 0 ? 0 : v;
}

static void step_of(const row *w, int64_t t) {
    const clv__recurrence *r = w->r;
    double *const *in = w->ref->in, *const *out = w->ref->out;
    double *h = out[CLV__RNN_H_N] + w->n * r->H, *y = at(w, out[CLV__RNN_Y], t, 1);
    const bool live = is_live(w, t);
    for (int64_t u = 0; u < r->H; u++) {
        double z[4], p[4], s[5] = {0},
                           *c = r->cell == CLV_CELL_LSTM ? out[CLV__RNN_C_N] + w->n * r->H + u : NULL;
        if (c) s[4] = *c;
        for (int64_t g = 0; g < r->gates; g++) {
            z[g] = at(w, in[CLV__RNN_Z], t, r->gates)[g * r->H + u];
            p[g] = dot(h, in[CLV__RNN_WEIGHT] + (g * r->H + u) * r->H, r->H) +
                   (in[CLV__RNN_BIAS] ? in[CLV__RNN_BIAS][g * r->H + u] : 0);
        }
        y[u] = live ? next_state(r->cell, z, p, h[u], c, s) : 0;
        for (int64_t k = 0; r->keep && k < r->saved; k++)
            at(w, out[CLV__RNN_SAVED], t, r->saved)[k * r->H + u] = s[k];
    }
    if (r->keep) memcpy(at(w, out[CLV__RNN_PREV], t, 1), h, (size_t)r->H * sizeof *h);
    if (live) memcpy(h, y, (size_t)r->H * sizeof *h);
}

/** A row of a state, or zeros. */
static void begin(double *to, const double *from, int64_t n, int64_t H) {
    for (int64_t u = 0; u < H; u++) to[n * H + u] = from ? from[n * H + u] : 0;
}

static void reference(const clv__ref *ref) {
    const clv__recurrence r = clv__recurrence_of(ref->io);
    for (int64_t n = 0; n < r.N; n++) {
        const row w = {&r, ref, n};
        begin(ref->out[CLV__RNN_H_N], ref->in[CLV__RNN_H0], n, r.H);
        if (r.cell == CLV_CELL_LSTM) begin(ref->out[CLV__RNN_C_N], ref->in[CLV__RNN_C0], n, r.H);
        for (int64_t s = 0; s < r.T; s++) step_of(&w, clv__recurrence_step(&r, s));
    }
}

/** Back through a step of one element: d of z, e of p; *dh and *dc become those before it, *dh but for what comes by the weights. */
static void previous(clv_cell cell, const double *s, double h, double c, double *dh, double *dc, double *d,
                     double *e) {
    const double of = *dh;
    if (cell == CLV_CELL_LSTM) {
        const double t = tanh(s[4]);
        *dc += of * s[3] * (1 - t * t);
        d[0] = *dc * s[2] * s[0] * (1 - s[0]);
        d[1] = *dc * c * s[1] * (1 - s[1]);
        d[2] = *dc * s[0] * (1 - s[2] * s[2]);
        d[3] = of * t * s[3] * (1 - s[3]);
        *dc *= s[1];
        *dh = 0;
    } else if (cell == CLV_CELL_GRU) {
        d[2] = of * (1 - s[1]) * (1 - s[2] * s[2]);
        d[1] = of * (h - s[2]) * s[1] * (1 - s[1]);
        d[0] = d[2] * s[3] * s[0] * (1 - s[0]);
        *dh = of * s[1];
    } else {
        d[0] = cell == CLV_CELL_TANH ? of * (1 - s[0] * s[0]) : s[0] > 0 ? of : 0;
        *dh = 0;
    }
    for (int g = 0; g < 4; g++) e[g] = d[g];
    if (cell == CLV_CELL_GRU) e[2] = d[2] * s[0];
}

static void step_back(const row *w, int64_t step) {
    const clv__recurrence *r = w->r;
    double *const *in = w->ref->in, *const *out = w->ref->out;
    const int64_t t = clv__recurrence_step(r, step), H = r->H;
    const bool lstm = r->cell == CLV_CELL_LSTM, live = is_live(w, t);
    double *dh = out[CLV__RNN_DH0] + w->n * H,
           *by_weights = at(w, out[r->cell == CLV_CELL_GRU ? CLV__RNN_DZH : CLV__RNN_DZ], t, r->gates);
    const double *c0 = in[CLV__RNN_B_C0];
    for (int64_t u = 0; u < H; u++) {
        double s[5], d[4] = {0}, e[4] = {0}, c = c0 ? c0[w->n * H + u] : 0, none = 0;
        for (int64_t k = 0; k < r->saved; k++) s[k] = at(w, in[CLV__RNN_B_SAVED], t, r->saved)[k * H + u];
        if (lstm && step > 0)
            c = at(w, in[CLV__RNN_B_SAVED], clv__recurrence_step(r, step - 1), r->saved)[4 * H + u];
        if (live && in[CLV__RNN_B_DY]) dh[u] += at(w, in[CLV__RNN_B_DY], t, 1)[u];
        if (live)
            previous(r->cell, s, at(w, in[CLV__RNN_B_PREV], t, 1)[u], c, dh + u,
                     lstm ? out[CLV__RNN_DC0] + w->n * H + u : &none, d, e);
        for (int64_t g = 0; g < r->gates; g++) {
            at(w, out[CLV__RNN_DZ], t, r->gates)[g * H + u] = d[g];
            by_weights[g * H + u] = e[g];
        }
    }
    for (int64_t k = 0; k < r->gates * H; k++)
        for (int64_t u = 0; u < H; u++) dh[u] += by_weights[k] * in[CLV__RNN_B_WEIGHT][k * H + u];
}

static void backward_reference(const clv__ref *ref) {
    const clv__recurrence r = clv__recurrence_of(ref->io);
    for (int64_t n = 0; n < r.N; n++) {
        const row w = {&r, ref, n};
        begin(ref->out[CLV__RNN_DH0], ref->in[CLV__RNN_B_DH_N], n, r.H);
        if (r.cell == CLV_CELL_LSTM) begin(ref->out[CLV__RNN_DC0], ref->in[CLV__RNN_B_DC_N], n, r.H);
        for (int64_t s = r.T - 1; s >= 0; s--) step_back(&w, s);
    }
}

static void cost(const clv__op_io *io, clv__cost *cost) {
    const clv__recurrence r = clv__recurrence_of(io);
    const double rows = (double)(r.T * r.N);
    *cost = (clv__cost){2 * rows * (double)(r.gates * r.H * r.H), 0};
    for (int i = 0; i < io->n_in; i++)
        cost->bytes += clv__has_in(io, i) ? 4 * (double)clv__numel(&io->in[i]) : 0;
    for (int i = 0; i < io->n_out; i++) cost->bytes += 4 * (double)clv__numel(&io->out[i]);
}

/** A step's roundings go on to the next one. */
static int64_t reduction(const clv__op_io *io) {
    const clv__recurrence r = clv__recurrence_of(io);
    return (r.backward ? r.gates : 1) * r.H + r.T;
}

// ---- gradient -------------------------------------------------------------------------------------------------------

static clv_tensor *rows_of(clv_tensor *x) {
    const clv_shape shape = clv_tensor_shape(x);
    return clv_reshape(x, CLV_SHAPE(shape.dims[0] * shape.dims[1], shape.dims[2]));
}

static void grad(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx) {
    clv__recurrence_attrs attrs = *(const clv__recurrence_attrs *)clv__node_attrs(node);
    clv_tensor *in[CLV__RNN_IN] = {0}, *out[CLV__RNN_OUT];
    bool wanted = false;
    const int n_in = clv__node_io(node)->n_in;
    for (int i = 0; i < n_in; i++) in[i] = clv__node_in(node, i), wanted |= clv__wants_grad(node, i);
    if (!wanted || !(dy[CLV__RNN_Y] || dy[CLV__RNN_H_N] || dy[CLV__RNN_C_N])) return;
    for (int i = 0; i < CLV__RNN_OUT; i++) out[i] = clv__node_out(node, i);
    if (!attrs.keep) { // not built for a training: once more, with what the gradient reads
        attrs.keep = true;
        clv_tensor *again = clv__node_add(&clv__op_recurrence, &attrs, in, n_in, ~UINT64_C(0));
        for (int i = 0; i < CLV__RNN_OUT; i++) out[i] = clv__sibling(again, i);
    }
    clv_tensor *dz = clv__pair_node(clv__op_recurrence.gradient, &attrs, dy, in, out);
    clv_tensor *of_products = attrs.cell == CLV_CELL_GRU ? clv__sibling(dz, CLV__RNN_DZH) : dz;
    const int given[] = {
        [CLV__RNN_Z] = CLV__RNN_DZ, [CLV__RNN_H0] = CLV__RNN_DH0, [CLV__RNN_C0] = CLV__RNN_DC0};
    for (int i = 0; i < CLV__RNN_LENGTHS && dz; i++) {
        if (!clv__wants_grad(node, i)) continue;
        if (i == CLV__RNN_WEIGHT)
            dx[i] = clv_matmul_t(rows_of(of_products), true, rows_of(out[CLV__RNN_PREV]), false);
        else if (i == CLV__RNN_BIAS)
            dx[i] = clv_sum(rows_of(of_products), (int[]){0}, 1, false);
        else
            dx[i] = clv__sibling(dz, given[i]);
    }
}

// ---- samples --------------------------------------------------------------------------------------------------------

enum { BIAS = 1, H0 = 2, C0 = 4, LENGTHS = 8, REVERSE = 16, KEEP = 32, QUICK = 64 };
static const struct {
    const char *label;
    clv_cell cell;
    int T, N, H, with;
} samples[] = {
    {"one", CLV_CELL_LSTM, 1, 1, 1, KEEP},
    {"lstm, all there is", CLV_CELL_LSTM, 5, 3, 7, BIAS | H0 | C0 | LENGTHS | KEEP | QUICK},
    {"lstm, back in time", CLV_CELL_LSTM, 4, 5, 9, C0 | LENGTHS | REVERSE | KEEP},
    {"lstm for inference", CLV_CELL_LSTM, 4, 2, 5, BIAS | H0 | QUICK},
    {"lstm of 33", CLV_CELL_LSTM, 3, 9, 33, H0 | KEEP},
    {"lstm of 64, 17 rows", CLV_CELL_LSTM, 2, 17, 64, KEEP},
    {"lstm, 40 steps", CLV_CELL_LSTM, 40, 2, 16, C0 | KEEP},
    {"gru, all there is", CLV_CELL_GRU, 5, 3, 7, BIAS | H0 | LENGTHS | KEEP | QUICK},
    {"gru, back in time", CLV_CELL_GRU, 4, 5, 9, BIAS | LENGTHS | REVERSE | KEEP},
    {"gru of 65", CLV_CELL_GRU, 3, 9, 65, H0 | KEEP},
    {"gru for inference", CLV_CELL_GRU, 4, 2, 5, BIAS},
    {"tanh, all there is", CLV_CELL_TANH, 5, 3, 7, BIAS | H0 | LENGTHS | KEEP},
    {"tanh, back in time, for inference", CLV_CELL_TANH, 4, 17, 32, LENGTHS | REVERSE},
    {"relu", CLV_CELL_RELU, 4, 5, 17, BIAS | H0 | LENGTHS | REVERSE | KEEP | QUICK},
    {"more terms than stay in a cache", CLV_CELL_LSTM, 2, 2, 66, H0 | KEEP},
    {"no rows", CLV_CELL_LSTM, 3, 0, 4, H0 | KEEP},
};

static bool sample(const clv__op *op, int i, clv__sample *out) {
    (void)op;
    if (i >= (int)(sizeof samples / sizeof *samples)) return false;
    const int64_t T = samples[i].T, N = samples[i].N, H = samples[i].H, G = cells[samples[i].cell].gates * H;
    const int with = samples[i].with;
    *(clv__recurrence_attrs *)(void *)out->attrs = (clv__recurrence_attrs){
        .cell = (int32_t)samples[i].cell, .reverse = !!(with & REVERSE), .keep = !!(with & KEEP)};
    snprintf(out->label, sizeof out->label, "%s", samples[i].label);
    out->n_in = CLV__RNN_IN;
    out->in[CLV__RNN_Z] = clv__f32(CLV_SHAPE(T, N, G));
    out->in[CLV__RNN_WEIGHT] = clv__f32(CLV_SHAPE(G, H));
    out->fill[CLV__RNN_WEIGHT] = (clv__fill){CLV__FILL_UNIFORM, -1 / sqrt((double)H), 1 / sqrt((double)H)};
    if (with & BIAS) out->in[CLV__RNN_BIAS] = clv__f32(CLV_SHAPE(G));
    if (with & H0) out->in[CLV__RNN_H0] = clv__f32(CLV_SHAPE(N, H));
    if (with & C0) out->in[CLV__RNN_C0] = clv__f32(CLV_SHAPE(N, H));
    if (with & LENGTHS) out->in[CLV__RNN_LENGTHS] = clv__i32(CLV_SHAPE(N));
    out->fill[CLV__RNN_LENGTHS] = (clv__fill){CLV__FILL_INTEGER, 0, (double)T};
    out->quick = with & QUICK;
    return true;
}

/** A gradient's: what it reads was kept. */
static void adapt(clv__sample *sample) {
    clv__recurrence_attrs *attrs = (clv__recurrence_attrs *)(void *)sample->attrs;
    attrs->keep = true;
    for (int i = CLV__RNN_B_SAVED; i <= CLV__RNN_B_PREV; i++)
        sample->in[i].shape.dims[0] = sample->in[CLV__RNN_B_DY].shape.dims[0];
}

// ---- descriptors ----------------------------------------------------------------------------------------------------

/** Along the rows. */
static bool split(const clv__op_io *io, int i, clv__split *out) {
    static const int8_t in[] = {1, CLV__SPLIT_WHOLE, CLV__SPLIT_WHOLE, 0, 0, 0}, results[] = {1, 0, 0, 1, 1};
    if (i > 0) return false;
    for (int k = 0; k < io->n_in; k++) out->in[k] = in[k];
    for (int k = 0; k < io->n_out; k++) out->out[k] = results[k];
    out->length = io->in[CLV__RNN_Z].shape.dims[1];
    return true;
}

static bool backward_split(const clv__op_io *io, int i, clv__split *out) {
    out->out[CLV__RNN_DZH] = 1;
    return clv__pair_split(io, i, out);
}

#define COMMON .variants = clv__recurrence_variants, .cost = cost, .reduction = reduction
CLV__TRAIN_OP(recurrence_backward) = {.name = "recurrence_backward",
                                      .gradient_of = &clv__op_recurrence,
                                      .takes = "e0 e1 e2 i1 o3 o4 i4 i5 s0 g0 g3 g4",
                                      .attrs_bytes = CLV__ATTRS_AND_SHAPE(clv__recurrence_attrs),
                                      .infer = backward_infer,
                                      .adapt = CLV__TRAINS(adapt),
                                      .split = backward_split,
                                      .split_attrs = clv__pair_split_attrs,
                                      .half_in = 1u << CLV__RNN_B_DY | 1u << CLV__RNN_B_PREV,
                                      .half_out = 1u << CLV__RNN_DZ | 1u << CLV__RNN_DZH,
                                      .reference = backward_reference,
                                      COMMON};

static clv_tensor *build(const clv__call *call) {
    return clv__node_add(&clv__op_recurrence, call->attrs, call->in, call->n_in, ~UINT64_C(3));
}

CLV__OP(recurrence) = {
    .name = "recurrence",
    .inputs = CLV__INPUTS({"z", "f32[T,N,G]"}, {"weight_hh", "f32[G,H]"}, {"bias_hh", "f32[G]?"},
                          {"h0", "f32[N,H]?"}, {"c0", "f32[N,H]?"}, {"lengths", "int[N]?"}),
    .attributes = CLV__ATTRIBUTES({CLV__ATTRIBUTE(INT, clv__recurrence_attrs, cell, "0"), CLV__AT_LEAST(0),
                                   CLV__AT_MOST(CLV_CELL_RELU)},
                                  {CLV__ATTRIBUTE(BOOL, clv__recurrence_attrs, reverse, "0")},
                                  {CLV__ATTRIBUTE(BOOL, clv__recurrence_attrs, keep, "0")}),
    .outputs = CLV__OUTPUTS({"y", "f32[T,N,H]"}, {"h_n", "f32[N,H]"}, {"c_n", "f32[N,_]"},
                            {"saved", "f32[_,N,_]"}, {"prev", "f32[_,N,H]"}),
    .attrs_bytes = sizeof(clv__recurrence_attrs),
    .build = build,
    .half_in = 1u << CLV__RNN_Z, // weights are parameters: f32
    .half_out = 1u << CLV__RNN_Y | 1u << CLV__RNN_PREV,
    .autocast = CLV__CAST_HALF,
    .infer = infer,
    .reference = reference,
    .gradient = CLV__TRAINS(&clv__op_recurrence_backward),
    .grad = CLV__TRAINS(grad),
    .sample = CLV__TRAINS(sample),
    .split = split,
    COMMON};
