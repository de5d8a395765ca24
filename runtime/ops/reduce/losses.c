// SPDX-License-Identifier: Apache-2.0
// Losses made of other ops: an elementwise op over a model's result and its target, and a reduction. An elementwise op that only
// a loss uses is a row of elementwise.def. Source: torch.nn.functional's functions of the same names; focal:
// torchvision.ops.sigmoid_focal_loss.
#include "cleave/ops.h"
#include "graph/signature.h"
#include "ops/elementwise.h"

extern const clv__op clv__op_huber, clv__op_kl_term, clv__op_focal; // elementwise.def
extern const clv__op clv__op_huber_loss, clv__op_kl_div, clv__op_sigmoid_focal_loss;

/** Attributes of all of them, by the names that each gives. */
typedef struct loss_call {
    float a, b;
    int word, reduction;
} loss_call;

static const loss_call *call_of(const clv__call *call) {
    return call->attrs;
}

/** As the call says. */
static clv_tensor *reduced(const clv__call *call, clv_tensor *loss) {
    const clv_shape shape = clv_tensor_shape(loss);
    switch ((clv_reduction)call_of(call)->reduction) {
    case CLV_REDUCTION_MEAN: return clv_mean(loss, NULL, 0, false);
    case CLV_REDUCTION_SUM: return clv_sum(loss, NULL, 0, false);
    case CLV_REDUCTION_NONE: return loss;
    case CLV_REDUCTION_BATCHMEAN:
        if (shape.rank > 0) return clv_mul_scalar(clv_sum(loss, NULL, 0, false), 1.0F / (float)shape.dims[0]);
    }
    return clv__graph_fail(call->graph, CLV_E_SHAPE, "a loss without dimensions is of no batch");
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
#define LOSS .outputs = CLV__OUTPUTS({"loss", "f32"})
#define TWO(...) .in = {CLV__DIMS(__VA_ARGS__), CLV__DIMS(__VA_ARGS__)}, .n_in = 2
#define CALL(...)                                                                                            \
    .attrs = &(loss_call) {                                                                                  \
        __VA_ARGS__                                                                                          \
    }

static clv_tensor *build_l1(const clv__call *call) {
    return reduced(call, clv_abs(clv_sub(f32(call->in[0]), f32(call->in[1]))));
}

CLV__COMPOSITE(l1_loss) = {.name = "l1_loss",
                           .inputs = CLV__INPUTS({"x", "f32"}, {"target", "like x"}),
                           .attributes = CLV__ATTRIBUTES(REDUCTION),
                           LOSS,
                           CLV__SAMPLES({.label = "rows", .quick = true, TWO(5, 7)},
                                        {.label = "sum", TWO(33), CALL(.reduction = CLV_REDUCTION_SUM)}),
                           CLV__CALL(loss_call, build_l1)};

static clv_tensor *build_huber(const clv__call *call) {
    clv_tensor *in[] = {f32(call->in[0]), f32(call->in[1])};
    return reduced(call, clv__elementwise(&clv__op_huber, in, call_of(call)->a, 0));
}

CLV__COMPOSITE(huber_loss) = {
    .name = "huber_loss",
    .inputs = CLV__INPUTS({"x", "f32"}, {"target", "like x"}),
    WITH(NUMBER("delta", a, "1", CLV__ABOVE(0))),
    LOSS,
    CLV__SAMPLES({.label = "rows", .quick = true, TWO(5, 7), CALL(.a = 0.5F)},
                 {.label = "each", TWO(33), CALL(.a = 1, .reduction = CLV_REDUCTION_NONE)}),
    CLV__CALL(loss_call, build_huber)};

static clv_tensor *build_smooth_l1(const clv__call *call) {
    const float beta = call_of(call)->a;
    if (beta == 0) return build_l1(call);
    clv_tensor *in[] = {f32(call->in[0]), f32(call->in[1])};
    return clv_mul_scalar(reduced(call, clv__elementwise(&clv__op_huber, in, beta, 0)), 1 / beta);
}

CLV__COMPOSITE(smooth_l1_loss) = {
    .name = "smooth_l1_loss",
    .inputs = CLV__INPUTS({"x", "f32"}, {"target", "like x"}),
    WITH(NUMBER("beta", a, "1", CLV__AT_LEAST(0))),
    LOSS,
    CLV__SAMPLES({.label = "rows", .quick = true, TWO(5, 7), CALL(.a = 0.5F)}, {.label = "beta 0", TWO(33)}),
    CLV__CALL(loss_call, build_smooth_l1)};

// ---- probabilities --------------------------------------------------------------------------------------------------

static clv_tensor *build_bce(const clv__call *call) {
    clv_tensor *x = f32(call->in[0]), *target = f32(call->in[1]), *weight = call->in[2],
               *pos_weight = call->in[3];
    clv_tensor *log_p = clv_logsigmoid(x); // log(1 - p) is that less x, and no large x makes it infinite
    if (pos_weight)
        log_p = clv_mul(log_p, clv_add_scalar(clv_mul(target, clv_add_scalar(f32(pos_weight), -1)), 1));
    clv_tensor *loss = clv_sub(clv_sub(x, clv_mul(x, target)), log_p);
    return reduced(call, weight ? clv_mul(loss, f32(weight)) : loss);
}

#define POSITIVE                                                                                             \
    { CLV__FILL_UNIFORM, 0.1, 0.9 }
CLV__COMPOSITE(binary_cross_entropy_with_logits) = {
    .name = "binary_cross_entropy_with_logits",
    .inputs = CLV__INPUTS({"x", "f32"}, {"target", "like x"}, {"weight", "f32?"}, {"pos_weight", "f32?"}),
    .attributes = CLV__ATTRIBUTES(REDUCTION),
    LOSS,
    CLV__SAMPLES({.label = "rows", .quick = true, TWO(5, 7), .fill = {{CLV__FILL_UNIFORM, -4, 4}, POSITIVE}},
                 {.label = "weights",
                  .in = {CLV__DIMS(5, 7), CLV__DIMS(5, 7), CLV__DIMS(5, 1), CLV__DIMS(7)},
                  .n_in = 4,
                  .fill = {{CLV__FILL_UNIFORM, -4, 4}, POSITIVE, POSITIVE, POSITIVE}}),
    CLV__CALL(loss_call, build_bce)};

static clv_tensor *build_kl_div(const clv__call *call) {
    clv_tensor *in[] = {f32(call->in[0]), f32(call->in[1])};
    return reduced(call, call_of(call)->word ? clv_mul(clv_exp(in[1]), clv_sub(in[1], in[0]))
                                             : clv__elementwise(&clv__op_kl_term, in, 0, 0));
}

CLV__COMPOSITE(kl_div) = {.name = "kl_div",
                          .inputs = CLV__INPUTS({"x", "f32"}, {"target", "like x"}),
                          WITH(WORD("log_target")),
                          LOSS,
                          CLV__SAMPLES({.label = "of the batch",
                                        .quick = true,
                                        TWO(5, 7),
                                        CALL(.reduction = CLV_REDUCTION_BATCHMEAN),
                                        .fill = {{0}, POSITIVE}},
                                       {.label = "logarithms", TWO(33), CALL(.word = true)}),
                          CLV__CALL(loss_call, build_kl_div)};

static clv_tensor *build_nll(const clv__call *call) {
    clv_tensor *log_p = call->in[0], *labels = call->in[1], *weight = call->in[2];
    const clv_shape shape = clv_tensor_shape(labels);
    clv_shape column = {shape.rank + 1, {shape.dims[0], 1}};
    for (int d = 1; d < shape.rank; d++) column.dims[d + 1] = shape.dims[d];
    clv_tensor *loss = clv_neg(clv_reshape(clv_gather(f32(log_p), 1, clv_reshape(labels, column)), shape));
    if (weight) { // what counts nothing is nothing, whatever its label
        clv_tensor *zero = clv_full(call->graph, CLV_DTYPE_F32, (clv_shape){0}, 0);
        weight = clv_detach(f32(weight));
        loss = clv_where(clv_eq(weight, zero), zero, clv_mul(loss, weight));
    }
    return reduced(call, loss);
}

#define CLASSES                                                                                              \
    { CLV__FILL_INTEGER, 0, 4 }
CLV__COMPOSITE(nll_loss) = {
    .name = "nll_loss",
    .inputs = CLV__INPUTS({"x", "f32[N,C,*]"}, {"labels", "int[N,*]"}, {"weight", "f32[N,*]?"}),
    .attributes = CLV__ATTRIBUTES(REDUCTION),
    LOSS,
    CLV__SAMPLES({.label = "rows of 5",
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
    CLV__CALL(loss_call, build_nll)};

static clv_tensor *build_focal(const clv__call *call) {
    const loss_call *a = call_of(call);
    clv_tensor *in[] = {f32(call->in[0]), f32(call->in[1])};
    return reduced(call, clv__elementwise(&clv__op_focal, in, a->a, a->b));
}

CLV__COMPOSITE(sigmoid_focal_loss) = {
    .name = "sigmoid_focal_loss",
    .inputs = CLV__INPUTS({"x", "f32"}, {"target", "like x"}),
    WITH(NUMBER("alpha", a, "0.25", CLV__NOT_NAN), NUMBER("gamma", b, "2", CLV__AT_LEAST(0))),
    LOSS,
    CLV__SAMPLES({.label = "rows",
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
    CLV__CALL(loss_call, build_focal)};

// ---- margins --------------------------------------------------------------------------------------------------------

static clv_tensor *is_one(clv_tensor *target) {
    return clv_eq(target, clv_full(clv__tensor_graph(target), CLV_DTYPE_F32, (clv_shape){0}, 1));
}

static clv_tensor *build_hinge(const clv__call *call) {
    clv_tensor *x = f32(call->in[0]), *target = f32(call->in[1]);
    return reduced(call, clv_where(is_one(target), x, clv_relu(constant_minus(x, call_of(call)->a))));
}

#define SIGNS                                                                                                \
    { CLV__FILL_INTEGER, 0, 1 } // 1, and what is not
CLV__COMPOSITE(hinge_embedding_loss) = {.name = "hinge_embedding_loss",
                                        .inputs = CLV__INPUTS({"x", "f32"}, {"target", "like x"}),
                                        WITH(NUMBER("margin", a, "1", CLV__NOT_NAN)),
                                        LOSS,
                                        CLV__SAMPLES({.label = "rows",
                                                      .quick = true,
                                                      TWO(5, 7),
                                                      CALL(.a = 0.3F),
                                                      .fill = {{0}, SIGNS},
                                                      .no_gradient = true}),
                                        CLV__CALL(loss_call, build_hinge)};

static clv_tensor *build_ranking(const clv__call *call) {
    clv_tensor *off = clv_mul(clv_sub(f32(call->in[1]), f32(call->in[0])), f32(call->in[2]));
    return reduced(call, clv_relu(clv_add_scalar(off, call_of(call)->a)));
}

CLV__COMPOSITE(margin_ranking_loss) = {
    .name = "margin_ranking_loss",
    .inputs = CLV__INPUTS({"a", "f32"}, {"b", "like a"}, {"target", "like a"}),
    WITH(NUMBER("margin", a, "0", CLV__NOT_NAN)),
    LOSS,
    CLV__SAMPLES({.label = "pairs",
                  .quick = true,
                  .in = {CLV__DIMS(33), CLV__DIMS(33), CLV__DIMS(33)},
                  .n_in = 3,
                  CALL(.a = 0.3F)}),
    CLV__CALL(loss_call, build_ranking)};

/** sum(a b) over the last dimension. */
static clv_tensor *dots(clv_tensor *a, clv_tensor *b) {
    return clv_sum(clv_mul(a, b), (int[]){-1}, 1, false);
}

static clv_tensor *build_cosine(const clv__call *call) {
    const float tiny = 1e-12F;
    clv_tensor *a = f32(call->in[0]), *b = f32(call->in[1]);
    clv_tensor *lengths =
        clv_sqrt(clv_mul(clv_add_scalar(dots(a, a), tiny), clv_add_scalar(dots(b, b), tiny)));
    clv_tensor *cosine = clv_div(dots(a, b), lengths);
    clv_tensor *off = clv_relu(clv_add_scalar(cosine, -call_of(call)->a));
    return reduced(call, clv_where(is_one(f32(call->in[2])), constant_minus(cosine, 1), off));
}

CLV__COMPOSITE(cosine_embedding_loss) = {
    .name = "cosine_embedding_loss",
    .inputs = CLV__INPUTS({"a", "f32[N,D]"}, {"b", "f32[N,D]"}, {"target", "f32[N]"}),
    WITH(NUMBER("margin", a, "0", CLV__NOT_NAN)),
    LOSS,
    CLV__SAMPLES({.label = "rows",
                  .quick = true,
                  .in = {CLV__DIMS(6, 5), CLV__DIMS(6, 5), CLV__DIMS(6)},
                  .n_in = 3,
                  .fill = {{0}, {0}, SIGNS},
                  .no_gradient = true}),
    CLV__CALL(loss_call, build_cosine)};

/** (sum |a - b + eps|^p)^(1/p) over the last dimension. */
static clv_tensor *distance(clv_tensor *a, clv_tensor *b, float p) {
    clv_tensor *off = clv_add_scalar(clv_sub(a, b), 1e-6F);
    clv_tensor *each = p == 2 ? clv_square(off) : p == 1 ? clv_abs(off) : clv_pow_scalar(clv_abs(off), p);
    clv_tensor *sum = clv_sum(each, (int[]){-1}, 1, false);
    return p == 1 ? sum : clv_pow_scalar(sum, 1 / p);
}

static clv_tensor *build_triplet(const clv__call *call) {
    const loss_call *given = call_of(call);
    const float p = given->b;
    clv_tensor *a = f32(call->in[0]), *near = f32(call->in[1]), *far = f32(call->in[2]);
    clv_tensor *apart = distance(a, far, p);
    if (given->word) { // the smaller of the two
        clv_tensor *other = distance(near, far, p);
        apart = clv_where(clv_lt(other, apart), other, apart);
    }
    return reduced(call, clv_relu(clv_add_scalar(clv_sub(distance(a, near, p), apart), given->a)));
}

#define THREE(...) .in = {CLV__DIMS(__VA_ARGS__), CLV__DIMS(__VA_ARGS__), CLV__DIMS(__VA_ARGS__)}, .n_in = 3
CLV__COMPOSITE(triplet_margin_loss) = {
    .name = "triplet_margin_loss",
    .inputs = CLV__INPUTS({"anchor", "f32[N,D]"}, {"positive", "f32[N,D]"}, {"negative", "f32[N,D]"}),
    WITH(NUMBER("margin", a, "1", CLV__ABOVE(0)), NUMBER("p", b, "2", CLV__ABOVE(0)), WORD("swap")),
    LOSS,
    CLV__SAMPLES({.label = "rows", .quick = true, THREE(6, 5), CALL(.a = 1, .b = 2)},
                 {.label = "p 3, swap", THREE(6, 5), CALL(.a = 1.5F, .b = 3, .word = true)},
                 {.label = "p 1", THREE(6, 5), CALL(.a = 0.5F, .b = 1)}),
    CLV__CALL(loss_call, build_triplet)};
