// SPDX-License-Identifier: Apache-2.0
// RMSprop, Adagrad and Lion: updates of each element alone, with what is kept of its gradients.
// Sources: torch.optim.RMSprop, torch.optim.Adagrad, release 2.15; Chen et al. 2023, arXiv:2302.06675, algorithm 2.
#include <math.h>

#include "ops/update/update.h"

enum { PARAM = CLV__UPDATE_PARAM, GRAD, TERM, STATE };

extern const clv__op clv__op_rmsprop_update, clv__op_adagrad_update, clv__op_lion_update;

// ---- RMSprop ------------------------------------------------------------------------------------------------------

typedef struct rmsprop_attrs {
    float alpha, rest, momentum, eps, weight_decay, lr_factor; // rest: 1 - alpha
} rmsprop_attrs;

enum { SQUARES = STATE, MEANS, BUFFER, RMSPROP_GROUP, RMSPROP_MOST = 9 };

static void rmsprop_lower(clv__launches *list, const clv__op_io *io) {
    const rmsprop_attrs *a = io->attrs;
    clv__launch *launch = clv__update_launch(list, io, "rmsprop_update",
                                             (const int[]){PARAM, SQUARES, MEANS, BUFFER, GRAD, TERM, -1});
    CLV__ARGS(list, launch, io, NULL,
              CLV__INTS(clv__has_in(io, clv__update_at(io, 0, MEANS)),
                        clv__has_in(io, clv__update_at(io, 0, BUFFER))),
              CLV__FLOATS(a->alpha, a->rest, a->momentum, a->eps, a->weight_decay, a->lr_factor));
}

static void rmsprop_slice(const clv__ref *ref, int group, double factor) {
    const rmsprop_attrs *a = ref->io->attrs;
    double *const *in = &ref->in[clv__update_at(ref->io, group, 0)];
    double *p = in[PARAM], *s = in[SQUARES], *m = in[MEANS], *b = in[BUFFER];
    const double lr = ref->in[CLV__UPDATE_HYPER][0] * (double)a->lr_factor, rest = (double)a->rest;
    for (int64_t i = 0; i < clv__update_numel(ref->io, group); i++) {
        const double g = clv__update_gradient(ref, group, i) * factor + (double)a->weight_decay * p[i];
        s[i] = (double)a->alpha * s[i] + rest * g * g;
        double variance = s[i];
        if (m) {
            m[i] += rest * (g - m[i]);
            variance = fmax(variance - m[i] * m[i], 0);
        }
        double step = g / (sqrt(variance) + (double)a->eps);
        if (b) step = b[i] = (double)a->momentum * b[i] + step;
        p[i] -= lr * step;
    }
}

static const rmsprop_attrs rmsprop_plain = {0.99f, 0.01f, 0, 1e-8f, 0, 1},
                           rmsprop_decay = {0.9f, 0.1f, 0.9f, 1e-8f, 0.1f, 0.5f};
static const clv__update_case rmsprop_cases[] = {
    {.label = "plain", .attrs = &rmsprop_plain, .states = 1, .positive = 1},
    {.label = "momentum, weight decay, clipped",
     .attrs = &rmsprop_decay,
     .states = 5,
     .positive = 1,
     .clip = true},
    {.label = "centered", .attrs = &rmsprop_plain, .states = 3, .positive = 1, .small = 2},
    {.label = "all, two terms",
     .attrs = &rmsprop_plain,
     .states = 7,
     .positive = 1,
     .small = 2,
     .terms = true},
    {0}};

CLV__TRAIN_OP(rmsprop_update) = {
    CLV__UPDATE(rmsprop, RMSPROP_GROUP, RMSPROP_MOST),
    .inputs = CLV__UPDATE_INPUTS({"square_avg", "f32[*]"}, {"grad_avg", "f32[*]?"},
                                 {"momentum_buffer", "f32[*]?"}),
    .split = clv__update_split,
};

void clv__rmsprop_add(const clv_optimizer_config *c, float lr_factor, clv_tensor *parameter,
                      const clv__gradients *all) {
    const double alpha = clv__update_or(c->alpha, 0.99);
    const rmsprop_attrs attrs = {.alpha = (float)alpha,
                                 .rest = (float)(1 - alpha),
                                 .momentum = c->momentum,
                                 .eps = c->eps == 0 ? 1e-8f : c->eps,
                                 .weight_decay = c->weight_decay,
                                 .lr_factor = lr_factor};
    clv_tensor *states[] = {clv__update_state(parameter, "square_avg"),
                            c->centered ? clv__update_state(parameter, "grad_avg") : NULL,
                            c->momentum > 0 ? clv__update_state(parameter, "momentum_buffer") : NULL};
    clv__update_add(&clv__op_rmsprop_update, &attrs, parameter, all, states, 3);
}

// ---- Adagrad, Lion: one state ---------------------------------------------------------------------------------------

enum { KEPT = STATE, ONE_GROUP, ONE_MOST = 13 };
static const int one_order[] = {PARAM, KEPT, GRAD, TERM, -1};

typedef struct adagrad_attrs {
    float eps, weight_decay, lr_factor;
} adagrad_attrs;

static void adagrad_lower(clv__launches *list, const clv__op_io *io) {
    const adagrad_attrs *a = io->attrs;
    clv__launch *launch = clv__update_launch(list, io, "adagrad_update", one_order);
    CLV__ARGS_F32(list, launch, a->eps, a->weight_decay, a->lr_factor);
}

static void adagrad_slice(const clv__ref *ref, int group, double factor) {
    const adagrad_attrs *a = ref->io->attrs;
    double *const *in = &ref->in[clv__update_at(ref->io, group, 0)];
    double *p = in[PARAM], *sum = in[KEPT];
    const double lr = ref->in[CLV__UPDATE_HYPER][0] * (double)a->lr_factor;
    for (int64_t i = 0; i < clv__update_numel(ref->io, group); i++) {
        const double g = clv__update_gradient(ref, group, i) * factor + (double)a->weight_decay * p[i];
        sum[i] += g * g;
        p[i] -= lr * g / (sqrt(sum[i]) + (double)a->eps);
    }
}

static const adagrad_attrs adagrad_plain = {1e-10f, 0, 1}, adagrad_decay = {1e-3f, 0.1f, 0.5f};
static const clv__update_case adagrad_cases[] = {
    {.label = "plain", .attrs = &adagrad_plain, .states = 1, .positive = 1},
    {.label = "weight decay, clipped, two terms",
     .attrs = &adagrad_decay,
     .states = 1,
     .positive = 1,
     .clip = true,
     .terms = true},
    {0}};

CLV__TRAIN_OP(adagrad_update) = {
    CLV__UPDATE(adagrad, ONE_GROUP, ONE_MOST),
    .inputs = CLV__UPDATE_INPUTS({"sum", "f32[*]"}),
    .split = clv__update_split,
};

void clv__adagrad_add(const clv_optimizer_config *c, float lr_factor, clv_tensor *parameter,
                      const clv__gradients *all) {
    const adagrad_attrs attrs = {c->eps == 0 ? 1e-10f : c->eps, c->weight_decay, lr_factor};
    clv_tensor *sum = clv__update_state(parameter, "sum");
    clv__update_add(&clv__op_adagrad_update, &attrs, parameter, all, &sum, 1);
}

typedef struct lion_attrs {
    float beta1, rest1, beta2, rest2, weight_decay, lr_factor; // rest: 1 - beta
} lion_attrs;

static void lion_lower(clv__launches *list, const clv__op_io *io) {
    const lion_attrs *a = io->attrs;
    clv__launch *launch = clv__update_launch(list, io, "lion_update", one_order);
    CLV__ARGS_F32(list, launch, a->beta1, a->rest1, a->beta2, a->rest2, a->weight_decay, a->lr_factor);
}

static void lion_slice(const clv__ref *ref, int group, double factor) {
    const lion_attrs *a = ref->io->attrs;
    double *const *in = &ref->in[clv__update_at(ref->io, group, 0)];
    double *p = in[PARAM], *m = in[KEPT];
    const double lr = ref->in[CLV__UPDATE_HYPER][0] * (double)a->lr_factor;
    for (int64_t i = 0; i < clv__update_numel(ref->io, group); i++) {
        const double g = clv__update_gradient(ref, group, i) * factor,
                     u = (double)a->beta1 * m[i] + (double)a->rest1 * g;
        p[i] -= lr * ((u > 0 ? 1 : u < 0 ? -1 : u) + (double)a->weight_decay * p[i]);
        m[i] = (double)a->beta2 * m[i] + (double)a->rest2 * g;
    }
}

static const lion_attrs lion_plain = {0.9f, 0.1f, 0.99f, 0.01f, 0, 1},
                        lion_decay = {0.5f, 0.5f, 0.9f, 0.1f, 0.1f, 0.5f};
static const clv__update_case lion_cases[] = {{.label = "plain", .attrs = &lion_plain, .states = 1},
                                              {.label = "weight decay, clipped, two terms",
                                               .attrs = &lion_decay,
                                               .states = 1,
                                               .clip = true,
                                               .terms = true},
                                              {0}};

CLV__TRAIN_OP(lion_update) = {
    CLV__UPDATE(lion, ONE_GROUP, ONE_MOST),
    .inputs = CLV__UPDATE_INPUTS({"exp_avg", "f32[*]"}),
    .split = clv__update_split,
};

void clv__lion_add(const clv_optimizer_config *c, float lr_factor, clv_tensor *parameter,
                   const clv__gradients *all) {
    const double beta1 = clv__update_beta1(c), beta2 = clv__update_beta2(c);
    const lion_attrs attrs = {(float)beta1,       (float)(1 - beta1), (float)beta2,
                              (float)(1 - beta2), c->weight_decay,    lr_factor};
    clv_tensor *average = clv__update_state(parameter, "exp_avg");
    clv__update_add(&clv__op_lion_update, &attrs, parameter, all, &average, 1);
}
