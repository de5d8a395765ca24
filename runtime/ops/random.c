// SPDX-License-Identifier: Apache-2.0
// Random numbers within a graph, by counter as dropout's (dropout.c): uniform and normal ones, and what is chosen by them. A part of a
// batch draws the numbers that its rows have in the whole batch. Source: torch.rand, randn, bernoulli, multinomial.
#include <math.h>
#include <string.h>

#include "base/number.h"
#include "base/random.h"
#include "cleave/ops.h"
#include "graph/graph.h"
#include "graph/signature.h"
#include "ops/lower.h"

typedef struct random_attrs {
    float a, b;    // low and high, or mean and standard deviation
    int32_t id;    // of the node in its graph
    int32_t none;  // 0: no padding, which keys of tuning files would hold
    int64_t first; // position of the first element in the whole batch's tensor
    clv_shape shape;
} random_attrs;

_Static_assert(CLV__STREAM_RANDOM == 8, "kernels_cl/random.cl knows the stream by its number");

static bool is_normal(const clv__op_io *io) {
    return io->op->data != NULL;
}

static clv_status infer(clv__op_io *io, clv__error *error) {
    const random_attrs *a = io->attrs;
    CLV_TRY(clv__want_dtype(io, 0, "the random state", CLV_DTYPE_I32, error));
    if (clv__numel(&io->in[0]) != 4) CLV_FAIL(error, CLV_E_SHAPE, "the random state must have 4 elements");
    if (!isfinite(a->a) || !isfinite(a->b) || (is_normal(io) && a->b < 0))
        CLV_FAIL(error, CLV_E_VALUE, "%g and %g are no %s", (double)a->a, (double)a->b,
                 is_normal(io) ? "mean and standard deviation" : "limits");
    return clv__one_out(io, clv__f32(a->shape));
}

static float factor_of(const clv__op_io *io) {
    const random_attrs *a = io->attrs;
    return is_normal(io) ? a->b : a->b - a->a;
}

static void plain(clv__launches *list, const clv__op_io *io) {
    const random_attrs *a = io->attrs;
    const int64_t n = clv__numel(&io->out[0]), skip = a->first % 4, items = n ? clv__div_up(skip + n, 4) : 0;
    clv__launch *launch = clv__launch_items(list, "random", "random", CLV__ELEMENTS, items);
    clv__define_number(list, launch, "NORMAL", is_normal(io), 0);
    CLV__ARGS(list, launch, io, "o0=T_Y i0",
              CLV__INTS(n, items, (int32_t)(uint32_t)(a->first / 4), skip, a->id),
              CLV__FLOATS(a->a, factor_of(io)));
}

static const clv__variant variants[] = {{"plain", .lower = plain}, {0}};

static void reference(const clv__ref *ref) {
    const random_attrs *a = ref->io->attrs;
    const double *state = ref->in[0], whole_turn = 2 * acos(-1.0);
    const uint32_t k0 = (uint32_t)(int32_t)state[0], k1 = (uint32_t)(int32_t)state[1] ^ CLV__STREAM_RANDOM,
                   step = (uint32_t)(int32_t)state[2];
    for (int64_t i = 0; i < clv__numel(&ref->io->out[0]); i++) {
        const int64_t at = a->first + i;
        const clv__philox words = clv__philox_at(k0, k1, (uint32_t)(at / 4), step, (uint32_t)a->id, 0);
        const double u = (double)clv__uniform(words.word[at % 4 & 2]),
                     v = (double)clv__uniform(words.word[at % 4 | 1]);
        double drawn = at % 2 ? v : u;
        if (is_normal(ref->io))
            drawn = sqrt(-2 * log(u + 0x1p-24)) * (at % 2 ? sin(whole_turn * v) : cos(whole_turn * v));
        ref->out[0][i] = (double)a->a + (double)factor_of(ref->io) * drawn;
    }
}

static void cost(const clv__op_io *io, clv__cost *cost) {
    const double n = (double)clv__numel(&io->out[0]);
    *cost = (clv__cost){20 * n, 4 * n};
}

static bool sample(const clv__op *op, int i, clv__sample *out) {
    static const struct random_case {
        clv_shape shape;
        int64_t first;
        float a, b;
        bool quick;
    } cases[] = {{CLV__DIMS(63), 0, 0, 1, true},
                 {CLV__DIMS(3, 5), 7, -1, 2, true},
                 {{0}, 0, 0, 1, true},
                 {CLV__DIMS(1), 3, 5, 5, false},
                 {CLV__DIMS(4099), 2, 0, 1, false},
                 {CLV__DIMS(0, 3), 0, 0, 1, false},
                 {CLV__DIMS(64, 65), 4, 0, 3, false}};
    (void)op;
    if (i < 0 || (size_t)i >= sizeof cases / sizeof *cases) return false;
    clv__format(out->label, sizeof out->label, "%lld elements from %lld, %g and %g",
                (long long)clv_shape_numel(&cases[i].shape), (long long)cases[i].first, (double)cases[i].a,
                (double)cases[i].b);
    memcpy(out->attrs, &(random_attrs){cases[i].a, cases[i].b, i, 0, cases[i].first, cases[i].shape},
           sizeof(random_attrs));
    out->n_in = 1;
    out->in[0] = clv__i32(CLV_SHAPE(4));
    out->fill[0] = (clv__fill){CLV__FILL_INTEGER, 0, 1000};
    out->quick = cases[i].quick;
    out->no_gradient = true;
    return true;
}

static bool split(const clv__op_io *io, int i, clv__split *out) {
    out->length = clv__split_length(&io->out[0].shape, 0);
    out->out[0] = 0;
    return i == 0;
}

static void split_attrs(const clv__op_io *io, const clv__split *split, int64_t begin, int64_t end,
                        void *attrs) {
    random_attrs *a = attrs;
    a->first += begin * (clv__numel(&io->out[0]) / split->length);
    a->shape.dims[0] = end - begin;
}

static clv_tensor *build_random(const clv__call *call) {
    random_attrs attrs = *(const random_attrs *)call->attrs;
    const clv_shape *shape = &attrs.shape;
    const clv__cut *cut = &call->graph->cut;
    attrs.id = clv__graph_random_id(call->graph);
    if (shape->rank > 0 && shape->rank <= CLV_MAX_RANK && cut->rows > 0 && shape->dims[0] == cut->rows)
        attrs.first = cut->first * clv__dims_product(shape, 1, shape->rank);
    return clv__node_add_to(call->graph, call->op, &attrs, (clv_tensor *[]){clv__graph_random(call->graph)},
                            1, 0);
}

#define RANDOM(id, first, second)                                                                            \
    .name = #id, .inputs = CLV__NO_INPUTS,                                                                   \
    .attributes = CLV__ATTRIBUTES({CLV__ATTRIBUTE(LIST, random_attrs, shape, NULL)}, NUMBER(first, a, "0"),  \
                                  NUMBER(second, b, "1")),                                                   \
    .outputs = CLV__OUTPUTS({"y", "f32"}), .build = build_random, .attrs_bytes = sizeof(random_attrs),       \
    .random = true, .infer = infer, .variants = variants, .reference = reference,                            \
    .sample = CLV__TRAINS(sample), .cost = cost, .split = split, .split_attrs = split_attrs, .half_out = 1
#define NUMBER(text, member, default_text)                                                                   \
    {                                                                                                        \
        .name = text, .kind = CLV_ATTRIBUTE_NUMBER, .fallback = default_text,                                \
        .at = offsetof(random_attrs, member), .bytes = sizeof(float)                                         \
    }
static const int normal = 1;
CLV__OP(random_uniform) = {RANDOM(random_uniform, "low", "high")};
CLV__OP(random_normal) = {RANDOM(random_normal, "mean", "std"), .data = &normal};

// ---- what is chosen by them ---------------------------------------------------------------------------------

static clv_tensor *build_bernoulli(const clv__call *call) {
    clv_tensor *p = call->in[0], *u = clv_random_uniform(call->graph, clv_tensor_shape(p), 0, 1);
    return clv_cast(clv_lt(u, clv_detach(p)), CLV_DTYPE_F32);
}

CLV__COMPOSITE(bernoulli) = {.name = "bernoulli",
                             .inputs = CLV__INPUTS({"p", "f32"}),
                             .outputs = CLV__OUTPUTS({"y", "f32"}),
                             CLV__SAMPLES({.label = "rows",
                                           .quick = true,
                                           .in = {CLV__DIMS(5, 7)},
                                           .fill = {{0, 0.01, 1}},
                                           .no_gradient = true}),
                             .build = build_bernoulli};

typedef struct multinomial_call {
    int64_t n;
    bool replacement;
} multinomial_call;

/** How many sums of weights are not above a uniform part of all: that many classes come before. */
static clv_tensor *with_replacement(clv_tensor *weights, int64_t N, int64_t C, int64_t n) {
    clv_graph *graph = clv__tensor_graph(weights);
    clv_tensor *sums = clv_cumsum(weights, 1, false, false);
    clv_tensor *u = clv_mul(clv_random_uniform(graph, CLV_SHAPE(N, n), 0, 1), clv_slice(sums, 1, C - 1, 1));
    clv_tensor *before = clv_le(clv_reshape(sums, CLV_SHAPE(N, 1, C)), clv_reshape(u, CLV_SHAPE(N, n, 1)));
    const int last = 2;
    return clv_cast(clv_clamp(clv_sum(clv_cast(before, CLV_DTYPE_F32), &last, 1, false), 0, (float)(C - 1)),
                    CLV_DTYPE_I32);
}

/** The largest weights over exponential numbers. */
static clv_tensor *without_replacement(clv_tensor *weights, int64_t N, int64_t C, int64_t n) {
    clv_tensor *waits = clv_neg(
        clv_log(clv_random_uniform(clv__tensor_graph(weights), CLV_SHAPE(N, C), 0x1p-25f, 0.9999999f)));
    clv_tensor *places = NULL;
    clv_topk(clv_div(weights, waits), n, 1, true, &places);
    return places;
}

static clv_tensor *build_multinomial(const clv__call *call) {
    const int64_t n = ((const multinomial_call *)call->attrs)->n;
    const bool replacement = ((const multinomial_call *)call->attrs)->replacement;
    clv_tensor *weights = call->in[0];
    const clv_shape shape = clv_tensor_shape(weights);
    const int64_t C = shape.rank ? shape.dims[shape.rank - 1] : 0, N = shape.rank == 2 ? shape.dims[0] : 1;
    if (shape.rank < 1 || shape.rank > 2 || C < 1)
        return clv__graph_fail(call->graph, CLV_E_SHAPE,
                               "multinomial: weights must be [C] or [N, C], C at least 1");
    if (!replacement && n > C)
        return clv__graph_fail(call->graph, CLV_E_VALUE,
                               "multinomial: %lld of %lld classes without replacement", (long long)n,
                               (long long)C);
    weights = clv_reshape(clv_detach(weights), CLV_SHAPE(N, C));
    clv_tensor *y = replacement ? with_replacement(weights, N, C, n) : without_replacement(weights, N, C, n);
    return shape.rank == 1 ? clv_reshape(y, CLV_SHAPE(n)) : y;
}

CLV__COMPOSITE(multinomial) = {
    .name = "multinomial",
    .inputs = CLV__INPUTS({"weights", "f32"}),
    .attributes = CLV__ATTRIBUTES({CLV__ATTRIBUTE(INT, multinomial_call, n, NULL), CLV__AT_LEAST(1)},
                                  {CLV__ATTRIBUTE(BOOL, multinomial_call, replacement, "0")}),
    .outputs = CLV__OUTPUTS({"y", "i32"}),
    CLV__SAMPLES({.label = "with replacement",
                  .quick = true,
                  .in = {CLV__DIMS(3, 7)},
                  .fill = {{0, 0.1, 1}},
                  .no_gradient = true,
                  .attrs = &(multinomial_call){9, true}},
                 {.label = "without",
                  .in = {CLV__DIMS(5)},
                  .fill = {{0, 0.1, 1}},
                  .no_gradient = true,
                  .attrs = &(multinomial_call){3, false}}),
    CLV__CALL(multinomial_call, build_multinomial)};
