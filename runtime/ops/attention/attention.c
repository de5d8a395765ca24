// SPDX-License-Identifier: Apache-2.0
// Attention: what queries see of values, by how well the keys fit. Made of products and a softmax; the softmax that hides the
// future is an op of its own, because half of what a mask and a whole softmax would read and write is never seen.
#include <math.h>

#include "cleave/ops.h"
#include "graph/graph.h"
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
CLV__TRAIN_OP(causal_softmax_backward) = {CLV__GRADIENT_OF(causal_softmax, "d0 o0 g0"), .half_out = 1,
                                          .reference = backward_reference, COMMON};

CLV__OP(causal_softmax) = {
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

// ---- any mask, grouped queries -------------------------------------------------------------------------------

/** x [..., heads, rows, columns] as [..., groups, heads / groups, rows, columns]; of one head, and of none, it stays as broad as it is. */
static clv_tensor *grouped(clv_tensor *x, int64_t groups) {
    clv_shape s = clv_tensor_shape(x);
    if (!x || s.rank < 3) return x;
    const int at = s.rank - 3;
    const int64_t heads = s.dims[at], each = heads == 1 ? 1 : heads / groups;
    if (s.rank == CLV_MAX_RANK || (heads != 1 && heads % groups))
        return clv__graph_fail(clv__tensor_graph(x), CLV_E_SHAPE,
                               "scaled_dot_product_attention: %lld query heads cannot share %lld key heads",
                               (long long)heads, (long long)groups);
    for (int d = s.rank; d > at + 1; d--) s.dims[d] = s.dims[d - 1];
    s.rank++;
    s.dims[at] = heads / each, s.dims[at + 1] = each;
    return clv_reshape(x, s);
}

/** 1, or 0, where a query sees a key, the others 0, or -infinity. */
static clv_tensor *seen_before(clv_graph *graph, int64_t T, int64_t S, bool added) {
    clv_tensor *ones = clv_full(graph, CLV_DTYPE_F32, CLV_SHAPE(T, S), !added);
    clv_tensor *seen = clv_causal_mask(ones, added ? -INFINITY : 0);
    return added ? seen : clv_cast(seen, CLV_DTYPE_BOOL);
}

/** The softmax of what is seen; zeros where nothing is. */
static clv_tensor *masked_softmax(clv_tensor *x, clv_tensor *mask, bool causal) {
    clv_graph *graph = clv__tensor_graph(x);
    const clv_shape s = clv_tensor_shape(x);
    if (!x) return NULL;
    const bool added = clv__is_float(clv_tensor_dtype(mask));
    clv_tensor *zero = clv_full(graph, CLV_DTYPE_F32, (clv_shape){0}, 0);
    clv_tensor *past = causal ? seen_before(graph, s.dims[s.rank - 2], s.dims[s.rank - 1], added) : NULL;
    if (!added) {
        if (past) mask = clv_logical_and(clv_cast(mask, CLV_DTYPE_BOOL), past);
        clv_tensor *hidden = clv_full(graph, CLV_DTYPE_F32, (clv_shape){0}, -INFINITY);
        return clv_where(mask, clv_softmax(clv_where(mask, x, hidden), -1), zero);
    }
    if (past) mask = clv_add(mask, past);
    const int last = clv_tensor_shape(mask).rank - 1;
    clv_tensor *none = last < 0 ? mask : clv_max(mask, &last, 1, true); // of a row
    none = clv_eq(none, clv_full(graph, CLV_DTYPE_F32, (clv_shape){0}, -INFINITY));
    return clv_where(none, zero, clv_softmax(clv_where(none, zero, clv_add(x, mask)), -1));
}

static clv_tensor *heads_behind(clv_tensor *x) {
    return clv_permute(x, (int[]){0, 2, 1, 3}, 4);
}

/** Queries, keys and values of as many places as the one op takes them, side by side, so that no scores are kept. */
static clv_tensor *side_by_side(clv_tensor *query, clv_tensor *key, clv_tensor *value) {
    clv_tensor *parts[] = {query, key, value};
    for (int i = 0; i < 3; i++) {
        const clv_shape s = clv_tensor_shape(parts[i]);
        parts[i] =
            clv_reshape(heads_behind(parts[i]), CLV_SHAPE(s.dims[0], s.dims[2], s.dims[1] * s.dims[3]));
    }
    return clv_concat(parts, 3, 2);
}

/** [N,heads,T,E] of all three, of keys perhaps fewer heads; and nothing wants the mask's gradient, which would make the scores again. */
static bool fits_one_op(clv_tensor *query, clv_tensor *key, clv_tensor *value,
                        const clv_attention_config *c) {
    clv_shape q = clv_tensor_shape(query);
    const clv_shape k = clv_tensor_shape(key), v = clv_tensor_shape(value),
                    m = clv_tensor_shape(c->attn_mask);
    const bool drops = c->dropout != 0 &&
                       (clv__graph_training(clv_tensor_graph(query)) || !(c->dropout > 0 && c->dropout <= 1));
    if (!key || !value || drops || q.rank != 4 || k.rank != 4 || k.dims[1] < 1 || q.dims[1] % k.dims[1] ||
        (q.dims[1] != k.dims[1] && !c->enable_gqa) || clv_shape_numel(&q) == 0)
        return false;
    q.dims[1] = k.dims[1];
    return clv_shape_equal(&q, &k) && clv_shape_equal(&q, &v) &&
           (!c->attn_mask || (m.rank >= 1 && m.rank <= 4 && !c->attn_mask->requires_grad));
}

static clv_tensor *build_scaled_dot_product_attention(const clv__call *call) {
    clv_attention_config with_mask = *(const clv_attention_config *)call->attrs;
    with_mask.attn_mask = call->in[3];
    const clv_attention_config *c = &with_mask;
    clv_tensor *query = call->in[0], *key = call->in[1], *value = call->in[2];
    const clv_shape q = clv_tensor_shape(query), k = clv_tensor_shape(key);
    clv_tensor *mask = c->attn_mask;
    if (q.rank < 2 || q.dims[q.rank - 1] == 0)
        return clv__graph_fail(clv__tensor_graph(query), CLV_E_SHAPE,
                               "scaled_dot_product_attention: query must be [...,T,E], E at least 1");
    if (fits_one_op(query, key, value, c)) {
        clv_tensor *y = clv_self_attention(
            side_by_side(query, key, value), q.dims[1],
            &(clv_attention_config){
                .attn_mask = c->attn_mask, .causal = c->causal, .scale = c->scale, .kv_heads = k.dims[1]});
        return heads_behind(clv_reshape(y, CLV_SHAPE(q.dims[0], q.dims[2], q.dims[1], q.dims[3])));
    }
    const bool groups = c->enable_gqa && q.rank > 2 && k.rank > 2 && k.dims[k.rank - 3] != q.dims[q.rank - 3];
    if (groups) {
        const int64_t heads = k.dims[k.rank - 3];
        if (heads < 1)
            return clv__graph_fail(clv__tensor_graph(query), CLV_E_SHAPE,
                                   "scaled_dot_product_attention: key has no heads");
        query = grouped(query, heads), key = grouped(key, heads), value = grouped(value, heads);
        if (mask) mask = grouped(mask, heads);
        if (!query || !key || !value) return NULL;
    }
    float scale = c->scale != 0 ? c->scale : (float)(1 / sqrt((double)q.dims[q.rank - 1]));
    clv_tensor *weights;
    if (c->causal && !mask)
        weights = clv_causal_softmax(clv_matmul_t(query, false, key, true), scale);
    else {
        weights = clv_matmul_t(clv_mul_scalar(query, scale), false, key, true);
        weights = mask ? masked_softmax(weights, mask, c->causal) : clv_softmax(weights, -1);
    }
    clv_tensor *y = clv_matmul(clv_dropout(weights, c->dropout), value);
    if (!groups || !y) return y;
    clv_shape s = clv_tensor_shape(y), joined = q;
    joined.dims[q.rank - 1] = s.dims[s.rank - 1];
    return clv_reshape(y, joined);
}

CLV__COMPOSITE(scaled_dot_product_attention) = {
    .name = "scaled_dot_product_attention",
    .inputs = CLV__INPUTS({"query", "f32[*,T,E]"}, {"key", "f32"}, {"value", "f32"}, {"attn_mask", "any?"}),
    .attributes = CLV__ATTRIBUTES({CLV__ATTRIBUTE(BOOL, clv_attention_config, causal, "0")},
                                  {CLV__ATTRIBUTE(NUMBER, clv_attention_config, scale, "0")},
                                  {CLV__ATTRIBUTE(NUMBER, clv_attention_config, dropout, "0")},
                                  {CLV__ATTRIBUTE(BOOL, clv_attention_config, enable_gqa, "0")}),
    .outputs = CLV__OUTPUTS({"y", "f32[*,T,_]"}),
    CLV__SAMPLES({.label = "causal",
                  .quick = true,
                  .in = {CLV__DIMS(2, 5, 4), CLV__DIMS(2, 5, 4), CLV__DIMS(2, 5, 4)},
                  .attrs = &(clv_attention_config){.causal = true},
                  .n_in = 3},
                 {.label = "other lengths",
                  .in = {CLV__DIMS(2, 5, 4), CLV__DIMS(2, 3, 4), CLV__DIMS(2, 3, 6)},
                  .attrs = &(clv_attention_config){.scale = 2},
                  .n_in = 3},
                 {.label = "a mask that is added, causal",
                  .in = {CLV__DIMS(2, 5, 4), CLV__DIMS(2, 5, 4), CLV__DIMS(2, 5, 4), CLV__DIMS(5, 5)},
                  .attrs = &(clv_attention_config){.causal = true},
                  .n_in = 4},
                 {.label = "truths",
                  .in = {CLV__DIMS(2, 3, 5, 4), CLV__DIMS(2, 3, 6, 4), CLV__DIMS(2, 3, 6, 4),
                         CLV__DIMS(2, 1, 1, 6)},
                  .fill = {{0}, {0}, {0}, {CLV__FILL_INTEGER, 0, 1}},
                  .i32 = 8,
                  .whole = CLV_DTYPE_BOOL,
                  .attrs = &(clv_attention_config){0},
                  .n_in = 4}),
    CLV__CALL(clv_attention_config, build_scaled_dot_product_attention)};
