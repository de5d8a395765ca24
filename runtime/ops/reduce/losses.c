// SPDX-License-Identifier: Apache-2.0
// Losses made of other ops: an elementwise op over a model's result and its target, and a reduction. An elementwise op that only
// a loss uses is a row of elementwise.def. Source: torch.nn.functional's functions of the same names; focal:
// torchvision.ops.sigmoid_focal_loss.
#include "cleave/ops.h"
#include "graph/signature.h"
#include "ops/elementwise.h"

extern const clv__op clv__op_huber, clv__op_kl_term, clv__op_focal; // elementwise.def
extern const clv__op clv__op_l1_loss, clv__op_huber_loss, clv__op_smooth_l1_loss,
    clv__op_binary_cross_entropy_with_logits, clv__op_kl_div, clv__op_nll_loss, clv__op_sigmoid_focal_loss,
    clv__op_hinge_embedding_loss, clv__op_margin_ranking_loss, clv__op_cosine_embedding_loss,
    clv__op_triplet_margin_loss;

/** Attributes of all of them, by the names that each gives. */
typedef struct loss_call {
    float a, b;
    int word, reduction;
} loss_call;

static const loss_call *call_of(const clv__call *call) {
    return call->attrs;
}

static bool takes(const clv__op *op, clv_tensor *const *in, int n, loss_call attrs) {
    return clv__composite_takes(op, &attrs, in, n);
}

static clv_tensor *reduced(clv_tensor *loss, clv_reduction reduction) {
    if (!loss) return NULL;
    const clv_shape shape = clv_tensor_shape(loss);
    switch (reduction) {
    case CLV_REDUCTION_MEAN: return clv_mean(loss, NULL, 0, false);
    case CLV_REDUCTION_SUM: return clv_sum(loss, NULL, 0, false);
    case CLV_REDUCTION_NONE: return loss;
    case CLV_REDUCTION_BATCHMEAN:
        if (shape.rank > 0) return clv_mul_scalar(clv_sum(loss, NULL, 0, false), 1.0F / (float)shape.dims[0]);
    }
    return clv__graph_fail(clv__tensor_graph(loss), CLV_E_SHAPE, "a loss without dimensions is of no batch");
}

static clv_tensor *f32(clv_tensor *x) {
    return clv_cast(x, CLV_DTYPE_F32);
}

static clv_tensor *constant_minus(clv_tensor *x, float value) {
    return clv_add_scalar(clv_neg(x), value);
}

const clv__op *clv__loss_call_of(const clv__node *node, void *attrs) {
    const clv__ew_attrs *a = clv__node_attrs(node);
    const clv__op *op = clv__node_io(node)->op;
    *(loss_call *)attrs = (loss_call){.a = a->p0, .b = a->p1, .reduction = CLV_REDUCTION_NONE};
    return op == &clv__op_huber     ? &clv__op_huber_loss
           : op == &clv__op_kl_term ? &clv__op_kl_div
                                    : &clv__op_sigmoid_focal_loss;
}

// ---- differences ----------------------------------------------------------------------------------------------------

#define WITH(...) .attributes = CLV__ATTRIBUTES(__VA_ARGS__, REDUCTION)
#define REDUCTION                                                                                            \
    { CLV__ATTRIBUTE(INT, loss_call, reduction, "0"), CLV__AT_LEAST(0), CLV__AT_MOST(3) }
#define NUMBER(text, member, usual, ...)                                                                     \
    {                                                                                                        \
        .name = text, .kind = CLV_ATTRIBUTE_NUMBER, .fallback = usual, .at = offsetof(loss_call, member),    \
        .bytes = sizeof(float), __VA_ARGS__                                                                  \
    }
#define WORD(text)                                                                                           \
    {                                                                                                        \
        .name = text, .kind = CLV_ATTRIBUTE_BOOL, .fallback = "0", .at = offsetof(loss_call, word),          \
        .bytes = sizeof(int)                                                                                 \
    }
#define COMPOSITE(id) .attributes_of_call = true, .attrs_bytes = sizeof(loss_call), .build = build_##id
#define LOSS .outputs = CLV__OUTPUTS({"loss", "f32"})
#define SAMPLES(...) .samples = CLV__TRAINS(((const clv__sample_row[]){__VA_ARGS__, {0}}))
#define TWO(...) .in = {CLV__DIMS(__VA_ARGS__), CLV__DIMS(__VA_ARGS__)}, .n_in = 2
#define CALL(...)                                                                                            \
    .attrs = &(loss_call) {                                                                                  \
        __VA_ARGS__                                                                                          \
    }

clv_tensor *clv_l1_loss(clv_tensor *x, clv_tensor *target, clv_reduction reduction) {
    if (!takes(&clv__op_l1_loss, (clv_tensor *[]){x, target}, 2, (loss_call){.reduction = reduction}))
        return NULL;
    return reduced(clv_abs(clv_sub(f32(x), f32(target))), reduction);
}

static clv_tensor *build_l1(const clv__call *call) {
    return clv_l1_loss(call->in[0], call->in[1], (clv_reduction)call_of(call)->reduction);
}

const clv__op clv__op_l1_loss = {.name = "l1_loss",
                                 .inputs = CLV__INPUTS({"x", "f32"}, {"target", "like x"}),
                                 .attributes = CLV__ATTRIBUTES(REDUCTION),
                                 LOSS,
                                 SAMPLES({.label = "rows", .quick = true, TWO(5, 7)},
                                         {.label = "sum", TWO(33), CALL(.reduction = CLV_REDUCTION_SUM)}),
                                 COMPOSITE(l1)};

clv_tensor *clv_huber_loss(clv_tensor *x, clv_tensor *target, float delta, clv_reduction reduction) {
    if (!takes(&clv__op_huber_loss, (clv_tensor *[]){x, target}, 2,
               (loss_call){.a = delta, .reduction = reduction}))
        return NULL;
    clv_tensor *in[] = {f32(x), f32(target)};
    return reduced(clv__elementwise(&clv__op_huber, in, delta, 0), reduction);
}

static clv_tensor *build_huber(const clv__call *call) {
    const loss_call *a = call_of(call);
    return clv_huber_loss(call->in[0], call->in[1], a->a, (clv_reduction)a->reduction);
}

const clv__op clv__op_huber_loss = {
    .name = "huber_loss",
    .inputs = CLV__INPUTS({"x", "f32"}, {"target", "like x"}),
    WITH(NUMBER("delta", a, "1", CLV__ABOVE(0))),
    LOSS,
    SAMPLES({.label = "rows", .quick = true, TWO(5, 7), CALL(.a = 0.5F)},
            {.label = "each", TWO(33), CALL(.a = 1, .reduction = CLV_REDUCTION_NONE)}),
    COMPOSITE(huber)};

clv_tensor *clv_smooth_l1_loss(clv_tensor *x, clv_tensor *target, float beta, clv_reduction reduction) {
    if (beta == 0) return clv_l1_loss(x, target, reduction);
    if (!takes(&clv__op_smooth_l1_loss, (clv_tensor *[]){x, target}, 2,
               (loss_call){.a = beta, .reduction = reduction}))
        return NULL;
    return clv_mul_scalar(clv_huber_loss(x, target, beta, reduction), 1 / beta);
}

static clv_tensor *build_smooth_l1(const clv__call *call) {
    const loss_call *a = call_of(call);
    return clv_smooth_l1_loss(call->in[0], call->in[1], a->a, (clv_reduction)a->reduction);
}

const clv__op clv__op_smooth_l1_loss = {
    .name = "smooth_l1_loss",
    .inputs = CLV__INPUTS({"x", "f32"}, {"target", "like x"}),
    WITH(NUMBER("beta", a, "1", CLV__AT_LEAST(0))),
    LOSS,
    SAMPLES({.label = "rows", .quick = true, TWO(5, 7), CALL(.a = 0.5F)}, {.label = "beta 0", TWO(33)}),
    COMPOSITE(smooth_l1)};

// ---- probabilities --------------------------------------------------------------------------------------------------

clv_tensor *clv_binary_cross_entropy_with_logits(clv_tensor *x, clv_tensor *target, clv_tensor *weight,
                                                 clv_tensor *pos_weight, clv_reduction reduction) {
    if (!takes(&clv__op_binary_cross_entropy_with_logits, (clv_tensor *[]){x, target, weight, pos_weight}, 4,
               (loss_call){.reduction = reduction}))
        return NULL;
    x = f32(x), target = f32(target);
    clv_tensor *log_p = clv_logsigmoid(x); // log(1 - p) is that less x, and no large x makes it infinite
    if (pos_weight)
        log_p = clv_mul(log_p, clv_add_scalar(clv_mul(target, clv_add_scalar(f32(pos_weight), -1)), 1));
    clv_tensor *loss = clv_sub(clv_sub(x, clv_mul(x, target)), log_p);
    return reduced(weight ? clv_mul(loss, f32(weight)) : loss, reduction);
}

static clv_tensor *build_bce(const clv__call *call) {
    return clv_binary_cross_entropy_with_logits(call->in[0], call->in[1], call->in[2], call->in[3],
                                                (clv_reduction)call_of(call)->reduction);
}

#define POSITIVE                                                                                             \
    { CLV__FILL_UNIFORM, 0.1, 0.9 }
const clv__op clv__op_binary_cross_entropy_with_logits = {
    .name = "binary_cross_entropy_with_logits",
    .inputs = CLV__INPUTS({"x", "f32"}, {"target", "like x"}, {"weight", "f32?"}, {"pos_weight", "f32?"}),
    .attributes = CLV__ATTRIBUTES(REDUCTION),
    LOSS,
    SAMPLES({.label = "rows", .quick = true, TWO(5, 7), .fill = {{CLV__FILL_UNIFORM, -4, 4}, POSITIVE}},
            {.label = "weights",
             .in = {CLV__DIMS(5, 7), CLV__DIMS(5, 7), CLV__DIMS(5, 1), CLV__DIMS(7)},
             .n_in = 4,
             .fill = {{CLV__FILL_UNIFORM, -4, 4}, POSITIVE, POSITIVE, POSITIVE}}),
    COMPOSITE(bce)};

clv_tensor *clv_kl_div(clv_tensor *x, clv_tensor *target, bool log_target, clv_reduction reduction) {
    if (!takes(&clv__op_kl_div, (clv_tensor *[]){x, target}, 2,
               (loss_call){.word = log_target, .reduction = reduction}))
        return NULL;
    clv_tensor *in[] = {f32(x), f32(target)};
    return reduced(log_target ? clv_mul(clv_exp(in[1]), clv_sub(in[1], in[0]))
                              : clv__elementwise(&clv__op_kl_term, in, 0, 0),
                   reduction);
}

static clv_tensor *build_kl_div(const clv__call *call) {
    const loss_call *a = call_of(call);
    return clv_kl_div(call->in[0], call->in[1], a->word, (clv_reduction)a->reduction);
}

const clv__op clv__op_kl_div = {.name = "kl_div",
                                .inputs = CLV__INPUTS({"x", "f32"}, {"target", "like x"}),
                                WITH(WORD("log_target")),
                                LOSS,
                                SAMPLES({.label = "of the batch",
                                         .quick = true,
                                         TWO(5, 7),
                                         CALL(.reduction = CLV_REDUCTION_BATCHMEAN),
                                         .fill = {{0}, POSITIVE}},
                                        {.label = "logarithms", TWO(33), CALL(.word = true)}),
                                COMPOSITE(kl_div)};

clv_tensor *clv_nll_loss(clv_tensor *log_p, clv_tensor *labels, clv_tensor *weight, clv_reduction reduction) {
    if (!takes(&clv__op_nll_loss, (clv_tensor *[]){log_p, labels, weight}, 3,
               (loss_call){.reduction = reduction}))
        return NULL;
    const clv_shape shape = clv_tensor_shape(labels);
    clv_shape column = {shape.rank + 1, {shape.dims[0], 1}};
    for (int d = 1; d < shape.rank; d++) column.dims[d + 1] = shape.dims[d];
    clv_tensor *loss = clv_neg(clv_reshape(clv_gather(f32(log_p), 1, clv_reshape(labels, column)), shape));
    if (weight) { // what counts nothing is nothing, whatever its label
        clv_tensor *zero = clv_full(clv__tensor_graph(weight), CLV_DTYPE_F32, (clv_shape){0}, 0);
        weight = clv_detach(f32(weight));
        loss = clv_where(clv_eq(weight, zero), zero, clv_mul(loss, weight));
    }
    return reduced(loss, reduction);
}

static clv_tensor *build_nll(const clv__call *call) {
    return clv_nll_loss(call->in[0], call->in[1], call->in[2], (clv_reduction)call_of(call)->reduction);
}

#define CLASSES                                                                                              \
    { CLV__FILL_INTEGER, 0, 4 }
const clv__op clv__op_nll_loss = {
    .name = "nll_loss",
    .inputs = CLV__INPUTS({"x", "f32[N,C,*]"}, {"labels", "int[N,*]"}, {"weight", "f32[N,*]?"}),
    .attributes = CLV__ATTRIBUTES(REDUCTION),
    LOSS,
    SAMPLES({.label = "rows of 5",
             .quick = true,
             .in = {CLV__DIMS(4, 5), CLV__DIMS(4)},
             .n_in = 2,
             .i32 = 2,
             .fill = {{0}, CLASSES}},
            {.label = "pixels, weights",
             .in = {CLV__DIMS(2, 5, 3), CLV__DIMS(2, 3), CLV__DIMS(2, 3)},
             .n_in = 3,
             .i32 = 2,
             .no_gradient = true, // weights have none
             .fill = {{0}, CLASSES, POSITIVE}}),
    COMPOSITE(nll)};

clv_tensor *clv_sigmoid_focal_loss(clv_tensor *x, clv_tensor *target, float alpha, float gamma,
                                   clv_reduction reduction) {
    if (!takes(&clv__op_sigmoid_focal_loss, (clv_tensor *[]){x, target}, 2,
               (loss_call){.a = alpha, .b = gamma, .reduction = reduction}))
        return NULL;
    clv_tensor *in[] = {f32(x), f32(target)};
    return reduced(clv__elementwise(&clv__op_focal, in, alpha, gamma), reduction);
}

static clv_tensor *build_focal(const clv__call *call) {
    const loss_call *a = call_of(call);
    return clv_sigmoid_focal_loss(call->in[0], call->in[1], a->a, a->b, (clv_reduction)a->reduction);
}

const clv__op clv__op_sigmoid_focal_loss = {
    .name = "sigmoid_focal_loss",
    .inputs = CLV__INPUTS({"x", "f32"}, {"target", "like x"}),
    WITH(NUMBER("alpha", a, "0.25", CLV__NOT_NAN), NUMBER("gamma", b, "2", CLV__AT_LEAST(0))),
    LOSS,
    SAMPLES({.label = "rows",
             .quick = true,
             TWO(5, 7),
             CALL(.a = 0.25F, .b = 2),
             .fill = {{CLV__FILL_UNIFORM, -4, 4}, POSITIVE},
             .no_gradient = true},
            {.label = "no alpha, gamma 0.5",
             TWO(33),
             CALL(.a = -1, .b = 0.5F),
             .fill = {{CLV__FILL_UNIFORM, -4, 4}, POSITIVE},
             .no_gradient = true}),
    COMPOSITE(focal)};

// ---- margins --------------------------------------------------------------------------------------------------------

static clv_tensor *is_one(clv_tensor *target) {
    return clv_eq(target, clv_full(clv__tensor_graph(target), CLV_DTYPE_F32, (clv_shape){0}, 1));
}

clv_tensor *clv_hinge_embedding_loss(clv_tensor *x, clv_tensor *target, float margin,
                                     clv_reduction reduction) {
    if (!takes(&clv__op_hinge_embedding_loss, (clv_tensor *[]){x, target}, 2,
               (loss_call){.a = margin, .reduction = reduction}))
        return NULL;
    x = f32(x), target = f32(target);
    return reduced(clv_where(is_one(target), x, clv_relu(constant_minus(x, margin))), reduction);
}

static clv_tensor *build_hinge(const clv__call *call) {
    const loss_call *a = call_of(call);
    return clv_hinge_embedding_loss(call->in[0], call->in[1], a->a, (clv_reduction)a->reduction);
}

#define SIGNS                                                                                                \
    { CLV__FILL_INTEGER, 0, 1 } // 1, and what is not
const clv__op clv__op_hinge_embedding_loss = {.name = "hinge_embedding_loss",
                                              .inputs = CLV__INPUTS({"x", "f32"}, {"target", "like x"}),
                                              WITH(NUMBER("margin", a, "1", CLV__NOT_NAN)),
                                              LOSS,
                                              SAMPLES({.label = "rows",
                                                       .quick = true,
                                                       TWO(5, 7),
                                                       CALL(.a = 0.3F),
                                                       .fill = {{0}, SIGNS},
                                                       .no_gradient = true}),
                                              COMPOSITE(hinge)};

clv_tensor *clv_margin_ranking_loss(clv_tensor *a, clv_tensor *b, clv_tensor *target, float margin,
                                    clv_reduction reduction) {
    if (!takes(&clv__op_margin_ranking_loss, (clv_tensor *[]){a, b, target}, 3,
               (loss_call){.a = margin, .reduction = reduction}))
        return NULL;
    clv_tensor *off = clv_mul(clv_sub(f32(b), f32(a)), f32(target));
    return reduced(clv_relu(clv_add_scalar(off, margin)), reduction);
}

static clv_tensor *build_ranking(const clv__call *call) {
    const loss_call *a = call_of(call);
    return clv_margin_ranking_loss(call->in[0], call->in[1], call->in[2], a->a, (clv_reduction)a->reduction);
}

const clv__op clv__op_margin_ranking_loss = {
    .name = "margin_ranking_loss",
    .inputs = CLV__INPUTS({"a", "f32"}, {"b", "like a"}, {"target", "like a"}),
    WITH(NUMBER("margin", a, "0", CLV__NOT_NAN)),
    LOSS,
    SAMPLES({.label = "pairs",
             .quick = true,
             .in = {CLV__DIMS(33), CLV__DIMS(33), CLV__DIMS(33)},
             .n_in = 3,
             CALL(.a = 0.3F)}),
    COMPOSITE(ranking)};

/** sum(a b) over the last dimension. */
static clv_tensor *dots(clv_tensor *a, clv_tensor *b) {
    return clv_sum(clv_mul(a, b), (int[]){-1}, 1, false);
}

clv_tensor *clv_cosine_embedding_loss(clv_tensor *a, clv_tensor *b, clv_tensor *target, float margin,
                                      clv_reduction reduction) {
    if (!takes(&clv__op_cosine_embedding_loss, (clv_tensor *[]){a, b, target}, 3,
               (loss_call){.a = margin, .reduction = reduction}))
        return NULL;
    const float tiny = 1e-12F;
    a = f32(a), b = f32(b);
    clv_tensor *lengths =
        clv_sqrt(clv_mul(clv_add_scalar(dots(a, a), tiny), clv_add_scalar(dots(b, b), tiny)));
    clv_tensor *cosine = clv_div(dots(a, b), lengths);
    return reduced(
        clv_where(is_one(f32(target)), constant_minus(cosine, 1), clv_relu(clv_add_scalar(cosine, -margin))),
        reduction);
}

static clv_tensor *build_cosine(const clv__call *call) {
    const loss_call *a = call_of(call);
    return clv_cosine_embedding_loss(call->in[0], call->in[1], call->in[2], a->a,
                                     (clv_reduction)a->reduction);
}

const clv__op clv__op_cosine_embedding_loss = {
    .name = "cosine_embedding_loss",
    .inputs = CLV__INPUTS({"a", "f32[N,D]"}, {"b", "f32[N,D]"}, {"target", "f32[N]"}),
    WITH(NUMBER("margin", a, "0", CLV__NOT_NAN)),
    LOSS,
    SAMPLES({.label = "rows",
             .quick = true,
             .in = {CLV__DIMS(6, 5), CLV__DIMS(6, 5), CLV__DIMS(6)},
             .n_in = 3,
             .fill = {{0}, {0}, SIGNS},
             .no_gradient = true}),
    COMPOSITE(cosine)};

/** (sum |a - b + eps|^p)^(1/p) over the last dimension. */
static clv_tensor *distance(clv_tensor *a, clv_tensor *b, float p) {
    clv_tensor *off = clv_add_scalar(clv_sub(a, b), 1e-6F);
    clv_tensor *each = p == 2 ? clv_square(off) : p == 1 ? clv_abs(off) : clv_pow_scalar(clv_abs(off), p);
    clv_tensor *sum = clv_sum(each, (int[]){-1}, 1, false);
    return p == 1 ? sum : clv_pow_scalar(sum, 1 / p);
}

clv_tensor *clv_triplet_margin_loss(clv_tensor *anchor, clv_tensor *positive, clv_tensor *negative,
                                    const clv_triplet_config *config, clv_reduction reduction) {
    const clv_triplet_config zero = {0}, *c = config ? config : &zero;
    const float margin = c->margin != 0 ? c->margin : 1, p = c->p != 0 ? c->p : 2;
    if (!takes(&clv__op_triplet_margin_loss, (clv_tensor *[]){anchor, positive, negative}, 3,
               (loss_call){.a = margin, .b = p, .word = c->swap, .reduction = reduction}))
        return NULL;
    clv_tensor *a = f32(anchor), *near = f32(positive), *far = f32(negative);
    clv_tensor *apart = distance(a, far, p);
    if (c->swap) { // the smaller of the two
        clv_tensor *other = distance(near, far, p);
        apart = clv_where(clv_lt(other, apart), other, apart);
    }
    return reduced(clv_relu(clv_add_scalar(clv_sub(distance(a, near, p), apart), margin)), reduction);
}

static clv_tensor *build_triplet(const clv__call *call) {
    const loss_call *a = call_of(call);
    return clv_triplet_margin_loss(call->in[0], call->in[1], call->in[2],
                                   &(clv_triplet_config){.margin = a->a, .p = a->b, .swap = a->word},
                                   (clv_reduction)a->reduction);
}

#define THREE(...) .in = {CLV__DIMS(__VA_ARGS__), CLV__DIMS(__VA_ARGS__), CLV__DIMS(__VA_ARGS__)}, .n_in = 3
const clv__op clv__op_triplet_margin_loss = {
    .name = "triplet_margin_loss",
    .inputs = CLV__INPUTS({"anchor", "f32[N,D]"}, {"positive", "f32[N,D]"}, {"negative", "f32[N,D]"}),
    WITH(NUMBER("margin", a, "1", CLV__ABOVE(0)), NUMBER("p", b, "2", CLV__ABOVE(0)), WORD("swap")),
    LOSS,
    SAMPLES({.label = "rows", .quick = true, THREE(6, 5), CALL(.a = 1, .b = 2)},
            {.label = "p 3, swap", THREE(6, 5), CALL(.a = 1.5F, .b = 3, .word = true)},
            {.label = "p 1", THREE(6, 5), CALL(.a = 0.5F, .b = 1)}),
    COMPOSITE(triplet)};
