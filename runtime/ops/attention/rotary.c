// SPDX-License-Identifier: Apache-2.0
// rotary_embedding: pairs of features turned by the angle of their place. The gradient of x is turned back.
// Source: Su et al. 2021, arXiv:2104.09864.
#include "cleave/ops.h"
#include "graph/signature.h"
#include "ops/lower.h"

typedef struct rotary_attrs {
    bool interleaved;
} rotary_attrs;

extern const clv__op clv__op_rotary_embedding, clv__op_rotary_embedding_backward;

/** Rows of E features, of which R pairs are turned; row r by row r / inner % period of the tables. */
typedef struct sizes {
    int64_t rows, E, R, inner, period;
} sizes;

/** False: the tables repeat along another dimension than x's first ones and those before its last. */
static bool measure(const clv_shape *x, const clv_shape *table, sizes *s) {
    int d = x->rank - 2, k = table->rank - 2;
    *s = (sizes){1, x->dims[x->rank - 1], table->dims[table->rank - 1], 1, 1};
    for (int i = 0; i < x->rank - 1; i++) s->rows *= x->dims[i];
    for (; k >= 0 && d >= 0 && table->dims[k] == 1; k--, d--) s->inner *= x->dims[d];
    for (; k >= 0 && d >= 0 && table->dims[k] == x->dims[d]; k--, d--) s->period *= x->dims[d];
    while (k >= 0 && table->dims[k] == 1) k--;
    return k < 0 && table->rank <= x->rank;
}

static clv_status infer(clv__op_io *io, clv__error *error) {
    const clv_shape *x = &io->in[0].shape, *c = &io->in[1].shape;
    sizes s;
    if (!x->rank || !c->rank || !measure(x, c, &s) || !clv_shape_equal(c, &io->in[2].shape))
        CLV_FAIL(error, CLV_E_SHAPE, "cos and sin are not of one shape that x repeats");
    if (s.R < 1 || 2 * s.R > s.E)
        CLV_FAIL(error, CLV_E_SHAPE, "%lld pairs cannot be turned in %lld features", (long long)s.R,
                 (long long)s.E);
    return clv__one_out(io, io->in[0]);
}

/** Tables that repeat in another way are written out. */
static clv_tensor *build(const clv__call *call) {
    clv_tensor *in[3] = {call->in[0], call->in[1], call->in[2]};
    const clv_shape x = clv_tensor_shape(in[0]), c = clv_tensor_shape(in[1]), other = clv_tensor_shape(in[2]);
    sizes s;
    if (x.rank && c.rank && (!clv_shape_equal(&c, &other) || !measure(&x, &c, &s))) {
        clv_shape all = x;
        all.dims[x.rank - 1] = c.dims[c.rank - 1];
        for (int i = 1; i < 3; i++) in[i] = clv_broadcast_to(in[i], all);
    }
    return clv__node_add(call->op, call->attrs, in, 3, 0);
}

// ---- launches and reference -------------------------------------------------------------------------------------------

static bool turns_back(const clv__op_io *io) {
    return io->op == &clv__op_rotary_embedding_backward;
}

/** On threads a row for each work-item, on lanes a pair, or a feature that stays. */
static void rows(clv__launches *list, const clv__op_io *io) {
    const bool interleaved = ((const rotary_attrs *)io->attrs)->interleaved;
    sizes s;
    measure(&io->in[0].shape, &io->in[1].shape, &s);
    const int64_t each = clv__threads(list->device) ? 1 : s.E - s.R, n = s.rows * each;
    CLV__LAUNCH(list, io, "rotary", "rotary_embedding", CLV__ELEMENTS, n, "o0=T_Y i0=T_X i1 i2",
                CLV__INTS(n, each, s.E, s.R, s.inner, s.period, interleaved),
                CLV__FLOATS(turns_back(io) ? -1.0F : 1.0F));
}

static void reference(const clv__ref *ref) {
    const bool interleaved = ((const rotary_attrs *)ref->io->attrs)->interleaved;
    sizes s;
    measure(&ref->io->in[0].shape, &ref->io->in[1].shape, &s);
    for (int64_t r = 0; r < s.rows; r++) {
        const double *x = ref->in[0] + r * s.E;
        double *y = ref->out[0] + r * s.E;
        for (int64_t i = 0; i < s.R; i++) {
            const int64_t t = r / s.inner % s.period * s.R + i, a = interleaved ? 2 * i : i,
                          b = interleaved ? a + 1 : i + s.R;
            const double c = ref->in[1][t], v = turns_back(ref->io) ? -ref->in[2][t] : ref->in[2][t];
            y[a] = x[a] * c - x[b] * v;
            y[b] = x[b] * c + x[a] * v;
        }
        for (int64_t i = 2 * s.R; i < s.E; i++) y[i] = x[i];
    }
}

// ---- gradients --------------------------------------------------------------------------------------------------------

/** The first of each pair, and the second: [rows, R]. */
static void halves(clv_tensor *x, const sizes *s, bool interleaved, clv_tensor *out[2]) {
    x = clv_slice(clv_reshape(clv_cast(x, CLV_DTYPE_F32), CLV_SHAPE(s->rows, s->E)), 1, 0, 2 * s->R);
    if (interleaved) x = clv_reshape(x, CLV_SHAPE(s->rows, s->R, 2));
    for (int i = 0; i < 2; i++)
        out[i] = interleaved ? clv_reshape(clv_slice(x, 2, i, 1), CLV_SHAPE(s->rows, s->R))
                             : clv_slice(x, 1, i * s->R, s->R);
}

/** Of all rows that a row of a table turned. */
static clv_tensor *as_table(clv_tensor *x, const sizes *s, const clv_shape *table) {
    const int64_t own = s->inner * s->period;
    x = clv_reshape(x, CLV_SHAPE(own ? s->rows / own : 0, s->period, s->inner, s->R));
    return clv_reshape(clv_sum(x, (const int[]){0, 2}, 2, false), *table);
}

static void grad(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx) {
    const clv__op_io *io = clv__node_io(node);
    const rotary_attrs *attrs = io->attrs;
    const clv_shape *table = &io->in[1].shape;
    clv_tensor *in[3] = {clv__node_in(node, 0), clv__node_in(node, 1), clv__node_in(node, 2)}, *x[2], *d[2];
    sizes s;
    if (!dy[0]) return;
    if (clv__wants_grad(node, 0))
        dx[0] = clv__node_add(&clv__op_rotary_embedding_backward, attrs,
                              (clv_tensor *const[]){dy[0], in[1], in[2]}, 3, 0);
    if (!clv__wants_grad(node, 1) && !clv__wants_grad(node, 2)) return;
    measure(&io->in[0].shape, table, &s);
    halves(in[0], &s, attrs->interleaved, x);
    halves(dy[0], &s, attrs->interleaved, d);
    if (clv__wants_grad(node, 1))
        dx[1] = as_table(clv_add(clv_mul(d[0], x[0]), clv_mul(d[1], x[1])), &s, table);
    if (clv__wants_grad(node, 2))
        dx[2] = as_table(clv_sub(clv_mul(d[1], x[0]), clv_mul(d[0], x[1])), &s, table);
}

/** Along x's first dimension, and the tables' if they have it. */
static bool split(const clv__op_io *io, int i, clv__split *out) {
    const clv_shape *x = &io->in[0].shape, *table = &io->in[1].shape;
    if (i || x->rank < 2) return false;
    clv__split_all(io, 0, out);
    if (table->rank < x->rank || table->dims[0] != x->dims[0] || x->dims[0] == 1)
        out->in[1] = out->in[2] = CLV__SPLIT_WHOLE;
    return true;
}

// ---- descriptors ------------------------------------------------------------------------------------------------------

#define ROW(text, interleaved_, x, table)                                                                    \
    .label = text, .in = {x, table, table}, .n_in = 3, .attrs = &(rotary_attrs) {                            \
        interleaved_                                                                                         \
    }
#define S(...) CLV__DIMS(__VA_ARGS__)
static const clv__sample_row samples[] = {
    {ROW("halves", false, S(2, 3, 5, 8), S(5, 4)), .quick = true},
    {ROW("neighbours, two features stay", true, S(2, 5, 8), S(5, 3)), .quick = true},
    {ROW("heads behind places", false, S(2, 7, 3, 6), S(7, 1, 3)), .quick = true},
    {ROW("a table for each sample", true, S(3, 4, 2, 10), S(3, 4, 1, 5))},
    {ROW("one place, three features stay", false, S(4, 3, 9), S(1, 1, 3))},
    {ROW("long rows", false, S(3, 700), S(3, 331))},
    {ROW("one pair", true, S(1, 2), S(1, 1))},
    {ROW("none", false, S(0, 4, 4), S(4, 2))},
    {0}};
#undef ROW
#undef S

static const clv__variant variants[] = {{"rows", .lower = rows}, {0}};

CLV__TRAIN_OP(rotary_embedding_backward) = {CLV__GRADIENT_OF(rotary_embedding, "d0 i1 i2 g0"),
                                            .attrs_bytes = sizeof(rotary_attrs),
                                            .half_in = 1,
                                            .half_out = 1,
                                            .variants = variants,
                                            .reference = reference};

CLV__OP(rotary_embedding) = {
    .name = "rotary_embedding",
    .inputs = CLV__INPUTS({"x", "f32"}, {"cos", "f32"}, {"sin", "f32"}),
    .attributes = CLV__ATTRIBUTES({CLV__ATTRIBUTE(BOOL, rotary_attrs, interleaved, "0")}),
    .outputs = CLV__OUTPUTS({"y", "like x"}),
    .attrs_bytes = sizeof(rotary_attrs),
    .half_in = 1,
    .half_out = 1,
    .build = build,
    .infer = infer,
    .gradient = CLV__TRAINS(&clv__op_rotary_embedding_backward),
    .grad = CLV__TRAINS(grad),
    .variants = variants,
    .reference = reference,
    .samples = CLV__TRAINS(samples),
    .split = split,
};
