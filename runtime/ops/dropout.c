// SPDX-License-Identifier: Apache-2.0
// Dropout with a mask drawn by Philox counters: the gradient draws it again, so no memory holds it, and a
// resumed training has the same masks. A part of a batch (a replica's, a micro-batch) draws the part of the mask that its
// rows have in the whole batch. Source: Hinton et al. 2012, arXiv:1207.0580; torch.nn.Dropout.
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "base/random.h"
#include "cleave/ops.h"
#include "graph/graph.h"
#include "graph/signature.h"
#include "ops/lower.h"

typedef struct dropout_attrs {
    float p;
    int32_t id;    // of the node in its graph: nodes draw different numbers in the same step
    int64_t first; // position of x's first element in the whole batch's tensor
} dropout_attrs;

_Static_assert(CLV__STREAM_DROPOUT == 3, "kernels_cl/dropout.cl knows the stream by its number");

static clv_status infer(clv__op_io *io, clv__error *error) {
    CLV_TRY(clv__want_dtype(io, 1, "the random state", CLV_DTYPE_I32, error));
    if (clv__numel(&io->in[1]) != 4) CLV_FAIL(error, CLV_E_SHAPE, "the random state must have 4 elements");
    return clv__one_out(io, io->in[0]);
}

static float scale_of(float p) {
    return p < 1 ? 1 / (1 - p) : 0;
}

/** Counters have 32 bits, so positions end at four times as much. */
static int32_t first_counter(const dropout_attrs *a) {
    return (int32_t)(uint32_t)(a->first / 4);
}

enum { PLAIN, VECTOR, ALIGNED }; // numbers of variants

/** Four elements for each work-item, or many on devices with wide vectors. */
static void lower(clv__launches *list, const clv__op_io *io) {
    enum { BLOCK = 64, BLOCKS = 64 };
    const dropout_attrs *a = io->attrs;
    const bool plain = io->variant->number == PLAIN, vector = io->variant->number == VECTOR;
    const int64_t n = clv__numel(&io->out[0]), skip = a->first % 4;
    const int64_t items = n == 0 ? 0 : vector ? clv__div_up(n, BLOCK * BLOCKS) : clv__div_up(skip + n, 4);
    clv__launch *launch =
        CLV__LAUNCH(list, io, "dropout",
                    plain    ? "dropout"
                    : vector ? "dropout_vector"
                             : "dropout_aligned",
                    vector ? CLV__TASKS : CLV__ELEMENTS, items, "o0=T_Y i0=T_X i1", CLV__INTS(n));
    if (vector) clv__arg_i32(list, launch, BLOCKS);
    clv__arg_i32(list, launch, first_counter(a));
    if (plain) clv__arg_i32(list, launch, skip);
    CLV__ARGS(list, launch, io, NULL, CLV__INTS(a->id), CLV__FLOATS(a->p, scale_of(a->p)));
}

static bool aligned_supports(const clv_device_info *device, const clv__op_io *io) {
    (void)device;
    return ((const dropout_attrs *)io->attrs)->first % 4 == 0;
}

static bool vector_supports(const clv_device_info *device, const clv__op_io *io) {
    return clv__threads(device) && clv__numel(&io->out[0]) >= 64 && aligned_supports(device, io);
}

static const clv__variant variants[] = {
    {"plain", .lower = lower},
    {"vector", vector_supports, .lower = lower, .relative = 0.3, .number = VECTOR},
    {"aligned", aligned_supports, .lower = lower, .relative = 0.3, .lanes = true, .number = ALIGNED},
    {0}};

static void reference(const clv__ref *ref) {
    const dropout_attrs *a = ref->io->attrs;
    const double *state = ref->in[1];
    uint32_t k0 = (uint32_t)(int32_t)state[0], k1 = (uint32_t)(int32_t)state[1] ^ CLV__STREAM_DROPOUT;
    uint32_t step = (uint32_t)(int32_t)state[2];
    int64_t n = clv__numel(&ref->io->out[0]);
    for (int64_t i = 0; i < n; i++) {
        int64_t at = a->first + i;
        clv__philox words = clv__philox_at(k0, k1, (uint32_t)(at / 4), step, (uint32_t)a->id, 0);
        ref->out[0][i] =
            clv__uniform(words.word[at % 4]) >= a->p ? ref->in[0][i] * (double)scale_of(a->p) : 0;
    }
}

static void cost(const clv__op_io *io, clv__cost *cost) {
    double n = (double)clv__numel(&io->out[0]);
    *cost = (clv__cost){20 * n, 8 * n};
}

static const struct dropout_case {
    int64_t n;
    float p;
    int64_t first;
    bool quick;
} cases[] = {
    {63, 0.5f, 0, true},    {130, 0.25f, 0, true},  {1, 0.5f, 0, false},       {2, 0.5f, 0, false},
    {5, 0.1f, 0, false},    {64, 0.9f, 0, false},   {65, 0.5f, 0, false},      {257, 0.0f, 0, false},
    {127, 1.0f, 0, false},  {4099, 0.5f, 0, false}, {8191, 0.75f, 0, false},   {0, 0.5f, 0, false},
    {200, 0.5f, 100, true}, {201, 0.5f, 201, true}, {4099, 0.5f, 3, false},    {1, 0.5f, 7, false},
    {2, 0.5f, 2, false},    {67, 0.5f, 66, false},  {8191, 0.5f, 8188, false},
};

static bool sample(const clv__op *op, int i, clv__sample *out) {
    (void)op;
    if (i < 0 || (size_t)i >= sizeof cases / sizeof *cases) return false;
    clv__format(out->label, sizeof out->label, "%lld elements from %lld, p %g", (long long)cases[i].n,
                (long long)cases[i].first, (double)cases[i].p);
    memcpy(out->attrs, &(dropout_attrs){cases[i].p, i, cases[i].first}, sizeof(dropout_attrs));
    out->n_in = 2;
    out->in[0] = clv__f32(CLV_SHAPE(cases[i].n));
    out->in[1] = clv__i32(CLV_SHAPE(4));
    out->fill[1] = (clv__fill){CLV__FILL_INTEGER, 0, 1000};
    out->quick = cases[i].quick;
    return true;
}

static void grad(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx);

/** Along the rows: a part draws the numbers of its own elements. */
static bool split(const clv__op_io *io, int i, clv__split *out) {
    out->length = clv__split_length(&io->in[0].shape, 0);
    out->in[0] = out->out[0] = 0;
    return i == 0;
}

static void split_attrs(const clv__op_io *io, const clv__split *split, int64_t begin, int64_t end,
                        void *attrs) {
    (void)end;
    ((dropout_attrs *)attrs)->first += begin * (clv__numel(&io->in[0]) / split->length);
}

static clv_tensor *build(const clv__call *call) {
    clv_tensor *x = call->in[0];
    dropout_attrs attrs = *(const dropout_attrs *)call->attrs;
    if (attrs.p == 0 || !clv__graph_training(call->graph)) return x;
    attrs.id = clv__graph_random_id(call->graph);
    attrs.first = clv__graph_first_element(call->graph, x);
    return clv__node_add(call->op, &attrs, (clv_tensor *[]){x, clv__graph_random(call->graph)}, 2, 0);
}

CLV__OP(dropout) = {
    .name = "dropout",
    .inputs = CLV__INPUTS({"x", "f32"}),
    .attributes = CLV__ATTRIBUTES({CLV__ATTRIBUTE(NUMBER, dropout_attrs, p, "0.5"), CLV__AT_LEAST(0),
                                   CLV__AT_MOST(1)}),
    .outputs = CLV__OUTPUTS({"y", "like x"}),
    .build = build,
    .attrs_bytes = sizeof(dropout_attrs),
    .inplace = 1,
    .half_in = 1,
    .half_out = 1,
    .random = true,
    .infer = infer,
    .grad = CLV__TRAINS(grad),
    .variants = variants,
    .reference = reference,
    .sample = CLV__TRAINS(sample),
    .cost = cost,
    .split = split,
    .split_attrs = split_attrs,
};

static void grad(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx) {
    dx[0] = clv__node_add(&clv__op_dropout, clv__node_attrs(node),
                          (clv_tensor *[]){dy[0], clv__node_in(node, 1)}, 2, 0);
}
