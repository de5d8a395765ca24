// SPDX-License-Identifier: Apache-2.0
// LAMB: Adam's step, whose length is the parameter's own norm. The norms of a parameter and of its step are made of parts in a launch
// of their own, so a parameter is not done in parts.
// Source: You et al. 2019, arXiv:1904.00962, algorithm 2, with bias correction and phi(z) = z.
#include <math.h>

#include "ops/update/update.h"

enum { PARAM = CLV__UPDATE_PARAM, GRAD, TERM, STATE };
enum { AVG = STATE, AVG_SQ, GROUP, MOST = 11 };

extern const clv__op clv__op_lamb_update;

typedef struct lamb_attrs {
    float beta1, rest1, beta2, rest2, eps, weight_decay, lr_factor; // rest: 1 - beta
} lamb_attrs;

static void lamb_lower(clv__launches *list, const clv__op_io *io) {
    const lamb_attrs *a = io->attrs;
    const int slices = clv__groups_most(io->op, list->device), n = clv__groups_of(io);
    int64_t parts, sizes[MOST] = {0};
    for (int g = 0; g < n; g++) sizes[g] = clv__update_numel(io, g);
    clv__launch *launch = clv__update_launch_slices(
        list, io, "lamb_moments", (const int[]){PARAM, AVG, AVG_SQ, GRAD, TERM, -1}, &parts);
    const clv__part norms = clv__floats(list, 2 * parts), trust = clv__floats(list, parts ? slices : 0);
    clv__arg_i32(list, launch, clv__has_in(io, clv__update_at(io, 0, TERM)));
    CLV__ARGS(list, launch, NULL, "w", .part = norms,
              CLV__FLOATS(a->beta1, a->rest1, a->beta2, a->rest2, a->eps, a->weight_decay));
    launch =
        clv__sharing_launch(list, io, "optimizer", "lamb_trust", clv__update_sharing(io), parts ? slices : 0);
    clv__arg_part(list, launch, norms);
    clv__arg_part(list, launch, trust);
    CLV__ARGS(list, launch, NULL, NULL, .n_ints = slices, .ints = sizes);
    clv__arg_i32(list, launch, slices);
    launch =
        clv__update_launch_slices(list, io, "lamb_update", (const int[]){PARAM, AVG, AVG_SQ, -1}, &parts);
    CLV__ARGS(list, launch, NULL, "w", .part = trust, CLV__FLOATS(a->eps, a->weight_decay, a->lr_factor));
}

static void lamb_slice(const clv__ref *ref, int group, double factor) {
    const lamb_attrs *a = ref->io->attrs;
    double *const *in = &ref->in[clv__update_at(ref->io, group, 0)];
    const double *hyper = ref->in[CLV__UPDATE_HYPER];
    const double bias = hyper[2] != 0 ? hyper[0] / hyper[2] : 1;
    double *p = in[PARAM], *m = in[AVG], *v = in[AVG_SQ], norm = 0, length = 0;
    const int64_t n = clv__update_numel(ref->io, group);
    for (int pass = 0; pass < 2; pass++) {
        const double trust = norm > 0 && length > 0 ? sqrt(norm) / sqrt(length) : 1;
        for (int64_t i = 0; i < n; i++) {
            const double g = clv__update_gradient(ref, group, i) * factor;
            if (!pass) {
                m[i] = (double)a->beta1 * m[i] + (double)a->rest1 * g;
                v[i] = (double)a->beta2 * v[i] + (double)a->rest2 * g * g;
            }
            const double r =
                m[i] / bias / (sqrt(v[i]) / hyper[3] + (double)a->eps) + (double)a->weight_decay * p[i];
            if (pass) p[i] -= hyper[0] * (double)a->lr_factor * trust * r;
            norm += p[i] * p[i];
            length += r * r;
        }
    }
}

static const lamb_attrs lamb_plain = {0.9f, 0.1f, 0.999f, 0.001f, 1e-6f, 0, 1},
                        lamb_decay = {0.9f, 0.1f, 0.99f, 0.01f, 1e-3f, 0.1f, 0.5f};
static const clv__update_case lamb_cases[] = {
    {.label = "plain", .attrs = &lamb_plain, .states = 3, .positive = 2},
    {.label = "weight decay, clipped", .attrs = &lamb_decay, .states = 3, .positive = 2, .clip = true},
    {.label = "two terms", .attrs = &lamb_plain, .states = 3, .positive = 2, .terms = true},
    {0}};

CLV__TRAIN_OP(lamb_update) = {
    CLV__UPDATE(lamb, GROUP, MOST),
    .inputs = CLV__UPDATE_INPUTS({"exp_avg", "f32[*]"}, {"exp_avg_sq", "f32[*]"}),
};

void clv__lamb_add(const clv_optimizer_config *c, float lr_factor, clv_tensor *parameter,
                   const clv__gradients *all) {
    const double beta1 = clv__update_beta1(c), beta2 = clv__update_beta2(c);
    const lamb_attrs attrs = {(float)beta1,       (float)(1 - beta1),           (float)beta2,
                              (float)(1 - beta2), c->eps == 0 ? 1e-6f : c->eps, c->weight_decay,
                              lr_factor};
    clv_tensor *states[] = {clv__update_state(parameter, "exp_avg"),
                            clv__update_state(parameter, "exp_avg_sq")};
    clv__update_add(&clv__op_lamb_update, &attrs, parameter, all, states, 2);
}
