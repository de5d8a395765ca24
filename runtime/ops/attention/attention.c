// SPDX-License-Identifier: Apache-2.0
// Attention: what queries see of values, by how well the keys fit. Made of products and a softmax; the softmax that hides the
// future is an op of its own, because half of what a mask and a whole softmax would read and write is never seen.
#include <math.h>

#include "cleave/ops.h"
#include "graph/signature.h"
#include "ops/lower.h"

typedef struct attention_attrs {
    float scale;
} attention_attrs;

/** Rows of S keys, T of them for the queries of each sequence. */
typedef struct scores {
    int64_t n_rows, T, S;
} scores;

static scores scores_of(const clv__op_io *io) {
    const clv_shape *x = &io->in[0].shape;
    return (scores){clv__dims_product(x, 0, x->rank - 1), x->dims[x->rank - 2], x->dims[x->rank - 1]};
}

static float scale_of(const clv__op_io *io) {
    return ((const attention_attrs *)io->attrs)->scale;
}

// ---- kernels ----------------------------------------------------------------------------------------------

enum { PLAIN, BY_GROUP, ROWS };      // variants
enum { GROUP = 64, MOST_EACH = 16 }; // of the kernel file; elements that an item has registers for

static void lower(clv__launches *list, const clv__op_io *io) {
    static const char *const entries[][2] = {
        [PLAIN] = {"causal_softmax", "causal_softmax_backward"},
        [BY_GROUP] = {"causal_softmax_group", "causal_softmax_group_backward"},
        [ROWS] = {"causal_softmax_rows", "causal_softmax_rows_backward"}};
    const int variant = (int)(io->variant - io->op->variants);
    const scores s = scores_of(io);
    const int64_t per_item = variant == ROWS ? clv__rows_for(s.S) : 1;
    int64_t each = 1;
    if (s.n_rows * s.S == 0) return;
    while (variant == BY_GROUP && each * GROUP < s.S) each *= 2;
    clv__launch *launch = clv__launch_kernel(list, "attention", entries[variant][clv__is_gradient(io)]);
    clv__define_number(list, launch, "EACH", each, 1);
    clv__arg_tensors(list, launch, io, clv__is_gradient(io) ? "o0=T_DX i0 i1" : "o0 i0=T_X");
    if (variant != BY_GROUP) clv__arg_i32(list, launch, s.n_rows);
    if (variant == ROWS) clv__arg_i32(list, launch, per_item);
    CLV__ARGS(list, launch, io, NULL, CLV__INTS(s.T, s.S), CLV__FLOATS(scale_of(io)));
    if (variant == BY_GROUP)
        clv__launch_grid(launch, (size_t)s.n_rows * GROUP, GROUP);
    else
        clv__launch_over(list, launch, variant == ROWS ? CLV__TASKS : CLV__ELEMENTS,
                         clv__div_up(s.n_rows, per_item));
}

static bool plain_supports(const clv_device_info *device, const clv__op_io *io) {
    return clv__loops_fit(device, 3 * scores_of(io).S);
}

static bool rows_supports(const clv_device_info *device, const clv__op_io *io) {
    scores s = scores_of(io);
    return clv__threads(device) && s.S >= 16 &&
           clv__loops_fit(device, (s.S / 16 * 4 + 64) * clv__rows_for(s.S));
}

static bool group_supports(const clv_device_info *device, const clv__op_io *io) {
    return scores_of(io).S <= GROUP * MOST_EACH && clv__loops_fit(device, GROUP + 3 * MOST_EACH) &&
           device->max_work_group >= GROUP && clv__tile_local_bytes(device) >= GROUP * sizeof(float);
}

static const clv__variant variants[] = {
    [PLAIN] = {"plain", plain_supports, .lower = lower},
    [BY_GROUP] = {"group", group_supports, .lower = lower, .relative = 0.1, .lanes = true},
    [ROWS] = {"rows", rows_supports, .lower = lower, .relative = 0.2},
    {0}};

// ---- references -------------------------------------------------------------------------------------------

static int64_t seen_by(const scores *s, int64_t row) {
    int64_t seen = row % s->T + 1 + s->S - s->T;
    return seen < 0 ? 0 : seen;
}

static void reference(const clv__ref *ref) {
    scores s = scores_of(ref->io);
    double scale = scale_of(ref->io);
    for (int64_t r = 0; r < s.n_rows; r++) {
        const double *x = ref->in[0] + r * s.S;
        double *y = ref->out[0] + r * s.S, largest = -INFINITY, sum = 0;
        int64_t seen = seen_by(&s, r);
        for (int64_t i = 0; i < seen; i++) largest = fmax(largest, scale * x[i]);
        for (int64_t i = 0; i < seen; i++) sum += exp(scale * x[i] - largest);
        for (int64_t i = 0; i < s.S; i++) y[i] = i < seen ? exp(scale * x[i] - largest) / sum : 0;
    }
}

static void backward_reference(const clv__ref *ref) {
    scores s = scores_of(ref->io);
    double scale = scale_of(ref->io);
    for (int64_t r = 0; r < s.n_rows; r++) {
        const double *dy = ref->in[0] + r * s.S, *y = ref->in[1] + r * s.S;
        double *dx = ref->out[0] + r * s.S, sum = 0;
        int64_t seen = seen_by(&s, r);
        for (int64_t i = 0; i < seen; i++) sum += dy[i] * y[i];
        for (int64_t i = 0; i < s.S; i++) dx[i] = i < seen ? scale * y[i] * (dy[i] - sum) : 0;
    }
}

static void cost(const clv__op_io *io, clv__cost *cost) {
    double n = (double)clv__numel(&io->out[0]);
    *cost = (clv__cost){2.5 * n, 2 * n * (io->n_in + 2)}; // half is seen; all is written
}

static int64_t reduction(const clv__op_io *io) {
    return scores_of(io).S;
}

// ---- samples ----------------------------------------------------------------------------------------------

#define ROW(what, scale, reach, quick_, ...)                                                                 \
    {                                                                                                        \
        .label = what, .in = {CLV__DIMS(__VA_ARGS__)}, .attrs = &(attention_attrs){scale},                   \
        .fill = {{CLV__FILL_UNIFORM, -(reach), reach}}, .quick = quick_                                      \
    }
static const clv__sample_row samples[] = {
    ROW("5x5", 1, 3, true, 5, 5),
    ROW("heads of 33", 0.25f, 9, true, 2, 3, 33, 33),
    ROW("more keys than queries", 0.5f, 3, true, 3, 4, 23),
    ROW("more queries than keys", 2, 3, true, 9, 4),
    ROW("queries that see nothing, vectors", 0.5f, 3, false, 2, 40, 18),
    ROW("one", 3, 3, false, 1, 1),
    ROW("16x16, large scores", 1, 500, false, 16, 16),
    ROW("128x128", 0.125f, 9, false, 2, 128, 128),
    {.label = "the first score is infinite",
     .in = {CLV__DIMS(3, 19, 19)},
     .attrs = &(attention_attrs){0.5f},
     .fill = {{CLV__FILL_FIRST_INFINITE, -3, 3}},
     .no_gradient = true},
    ROW("one query of long rows", 1, 5, false, 2, 1, 2049),
    ROW("three queries of 1000 keys", 0.5f, 5, false, 2, 3, 1000),
    ROW("none", 1, 3, false, 0, 4, 4),
    ROW("no keys", 1, 3, false, 4, 0),
    {0},
};
#undef ROW

// ---- descriptors ------------------------------------------------------------------------------------------

extern const clv__op clv__op_causal_softmax;
#define COMMON                                                                                               \
    .attrs_bytes = sizeof(attention_attrs), .variants = variants, .cost = cost, .reduction = reduction
const clv__op clv__op_causal_softmax_backward = {CLV__GRADIENT_OF(causal_softmax, "d0 o0 g0"), .half_out = 1,
                                                 .reference = backward_reference, COMMON};

const clv__op clv__op_causal_softmax = {
    .name = "causal_softmax",
    .inputs = CLV__INPUTS({"x", "f32[*,T,S]"}),
    .attributes = CLV__ATTRIBUTES({CLV__ATTRIBUTE(NUMBER, attention_attrs, scale, "1")}),
    .outputs = CLV__OUTPUTS({"y", "like x"}),
    .half_in = 1, // the result is f32 in mixed precision, as that of softmax
    .autocast = CLV__CAST_FLOAT,
    .reference = reference,
    .samples = CLV__TRAINS(samples),
    .split = clv__split_matrices,
    CLV__GRADIENT(causal_softmax),
    COMMON};

clv_tensor *clv_causal_softmax(clv_tensor *x, float scale) {
    return clv__node_add(&clv__op_causal_softmax, &(attention_attrs){scale}, &x, 1, 0);
}

clv_tensor *clv_scaled_dot_product_attention(clv_tensor *query, clv_tensor *key, clv_tensor *value,
                                             const clv_attention_config *config) {
    static const clv_attention_config defaults = {0};
    const clv_attention_config *c = config ? config : &defaults;
    if (!query) return NULL; // after a mistake
    clv_shape q = clv_tensor_shape(query);
    if (q.rank < 2 || q.dims[q.rank - 1] == 0)
        return clv__graph_fail(clv__tensor_graph(query), CLV_E_SHAPE,
                               "scaled_dot_product_attention: query must be [...,T,E], E at least 1");
    float scale = c->scale != 0 ? c->scale : (float)(1 / sqrt((double)q.dims[q.rank - 1]));
    clv_tensor *weights;
    if (c->causal)
        weights = clv_causal_softmax(clv_matmul_t(query, false, key, true), scale);
    else
        weights = clv_softmax(clv_matmul_t(clv_mul_scalar(query, scale), false, key, true), -1);
    return clv_matmul(clv_dropout(weights, c->dropout), value);
}

static clv_tensor *build_scaled_dot_product_attention(const clv__call *call) {
    return clv_scaled_dot_product_attention(call->in[0], call->in[1], call->in[2], call->attrs);
}

const clv__op clv__op_scaled_dot_product_attention = {
    .name = "scaled_dot_product_attention",
    .inputs = CLV__INPUTS({"query", "f32[*,T,E]"}, {"key", "f32[*,S,E]"}, {"value", "f32[*,S,D]"}),
    .attributes = CLV__ATTRIBUTES({CLV__ATTRIBUTE(BOOL, clv_attention_config, causal, "0")},
                                  {CLV__ATTRIBUTE(NUMBER, clv_attention_config, scale, "0")},
                                  {CLV__ATTRIBUTE(NUMBER, clv_attention_config, dropout, "0")}),
    .outputs = CLV__OUTPUTS({"y", "f32[*,T,D]"}),
    .attributes_of_call = true,
    .attrs_bytes = sizeof(clv_attention_config),
    .samples = CLV__TRAINS(
        ((const clv__sample_row[]){{.label = "causal",
                                    .quick = true,
                                    .in = {CLV__DIMS(2, 5, 4), CLV__DIMS(2, 5, 4), CLV__DIMS(2, 5, 4)},
                                    .attrs = &(clv_attention_config){.causal = true},
                                    .n_in = 3},
                                   {.label = "other lengths",
                                    .in = {CLV__DIMS(2, 5, 4), CLV__DIMS(2, 3, 4), CLV__DIMS(2, 3, 6)},
                                    .attrs = &(clv_attention_config){.scale = 2},
                                    .n_in = 3},
                                   {0}})),
    .build = build_scaled_dot_product_attention};
