// SPDX-License-Identifier: Apache-2.0
// Optimizers as ops: each update node reads a gradient and writes a parameter and its state in place. What
// changes from step to step comes through the graph's `hyper` input, so that the arguments of launches never
// change:
//     hyper[0]  learning rate
//     hyper[1]  1 in the first step, else 0
//     hyper[2]  Adam's step size, learning rate / (1 - beta1^t)
//     hyper[3]  sqrt(1 - beta2^t)
//     hyper[4]  t, the step
// and what depends on all gradients together (clipping, loss scaling) as one factor of every gradient: gradients.c.
// Sources: torch.optim.SGD, Adam, AdamW and clip_grad_norm_; Kingma, Ba 2014, arXiv:1412.6980; Loshchilov,
// Hutter 2017, arXiv:1711.05101.
//
// The builder makes one node for each parameter; the plan makes one of several (plan/groups.c), whose inputs are those of all in
// groups, so that a step has few launches. A launch takes all groups of its node, as slices. (Parameters and states are allocations
// of their own, which move to other devices one by one: so a launch takes a pointer to each, not offsets from one.)
#include <math.h>

#include "device/device.h"
#include "ops/update/custom_optimizer.h"
#include "ops/update/param_groups.h"
#include "ops/update/update.h"

extern const clv__op clv__op_sgd_update, clv__op_adam_update;

enum { HYPER = CLV__UPDATE_HYPER, FIRST = CLV__UPDATE_FIRST };
enum { PARAM = CLV__UPDATE_PARAM, GRAD, TERM, STATE };

void clv_optimizer_hyper_values(const clv_graph *graph, int64_t step, double lr,
                                float values[CLV_HYPER_VALUES]) {
    const clv_optimizer_config none = {0}, *config = graph ? &graph->optimizer : &none;
    values[0] = (float)lr;
    values[1] = step <= 1 ? 1.0f : 0.0f;
    values[2] = (float)(lr / (1 - pow(clv__update_beta1(config), (double)step)));
    values[3] = (float)sqrt(1 - pow(clv__update_beta2(config), (double)step));
    values[4] = (float)step;
}

// ---- SGD --------------------------------------------------------------------------------------------------

typedef struct sgd_attrs {
    float momentum, undamped, weight_decay; // undamped: 1 - dampening
    int nesterov;
    float lr_factor; // of hyper's learning rate
} sgd_attrs;

enum { BUFFER = STATE, SGD_GROUP, SGD_MOST = 13 };

static void sgd_lower(clv__launches *list, const clv__op_io *io) {
    const sgd_attrs *a = io->attrs;
    clv__launch *launch =
        clv__update_launch(list, io, "sgd_update", (const int[]){PARAM, BUFFER, GRAD, TERM, -1});
    CLV__ARGS(list, launch, io, NULL, CLV__INTS(clv__has_in(io, clv__update_at(io, 0, BUFFER)), a->nesterov),
              CLV__FLOATS(a->momentum, a->undamped, a->weight_decay, a->lr_factor));
}

static void sgd_slice(const clv__ref *ref, int group, double factor) {
    const sgd_attrs *a = ref->io->attrs;
    const int64_t n = clv__update_numel(ref->io, group);
    double *const *in = &ref->in[clv__update_at(ref->io, group, 0)];
    double *p = in[PARAM], *b = in[BUFFER], lr = ref->in[HYPER][0] * (double)a->lr_factor,
           momentum = (double)a->momentum;
    bool first = ref->in[HYPER][1] > 0.5;
    for (int64_t i = 0; i < n; i++) {
        double g = clv__update_gradient(ref, group, i) * factor + (double)a->weight_decay * p[i];
        if (b) {
            b[i] = first ? g : momentum * b[i] + (double)a->undamped * g;
            g = a->nesterov ? g + momentum * b[i] : b[i];
        }
        p[i] -= lr * g;
    }
}

static const sgd_attrs sgd_plain = {0, 1, 0, 0, 1}, sgd_decay = {0, 1, 0.1f, 0, 0.5f},
                       sgd_damped = {0.9f, 0.5f, 0.01f, 0, 1}, sgd_nesterov = {0.9f, 1, 0.01f, 1, 1};
static const clv__update_case sgd_cases[] = {
    {.label = "plain", .attrs = &sgd_plain},
    {.label = "weight decay, clipped", .attrs = &sgd_decay, .clip = true},
    {.label = "momentum, first step", .attrs = &sgd_damped, .states = 1, .first = true},
    {.label = "momentum, dampening, two terms",
     .attrs = &sgd_damped,
     .states = 1,
     .clip = true,
     .terms = true},
    {.label = "Nesterov", .attrs = &sgd_nesterov, .states = 1},
    {0}};

CLV__TRAIN_OP(sgd_update) = {
    CLV__UPDATE(sgd, SGD_GROUP, SGD_MOST),
    .inputs = CLV__UPDATE_INPUTS({"momentum_buffer", "f32[*]?"}),
    .split = clv__update_split,
};

// ---- Adam, AdamW ------------------------------------------------------------------------------------------

typedef struct adam_attrs {
    float beta1, rest1, beta2, rest2, eps; // rest: 1 - beta
    float coupled_decay,
        decoupled_decay; // Adam adds decay * p to the gradient, AdamW takes lr * decay * p from p
    float lr_factor;     // of both of hyper's rates
} adam_attrs;

enum { AVG = STATE, AVG_SQ, ADAM_GROUP, ADAM_MOST = 11 };

static void adam_lower(clv__launches *list, const clv__op_io *io) {
    const adam_attrs *a = io->attrs;
    clv__launch *launch =
        clv__update_launch(list, io, "adam_update", (const int[]){PARAM, AVG, AVG_SQ, GRAD, TERM, -1});
    CLV__ARGS_F32(list, launch, a->beta1, a->rest1, a->beta2, a->rest2, a->eps, a->coupled_decay,
                  a->decoupled_decay, a->lr_factor);
}

static void adam_slice(const clv__ref *ref, int group, double factor) {
    const adam_attrs *a = ref->io->attrs;
    const int64_t n = clv__update_numel(ref->io, group);
    double *const *in = &ref->in[clv__update_at(ref->io, group, 0)];
    const double *hyper = ref->in[HYPER], lr_factor = (double)a->lr_factor;
    double *p = in[PARAM], *m = in[AVG], *v = in[AVG_SQ];
    for (int64_t i = 0; i < n; i++) {
        double g = clv__update_gradient(ref, group, i) * factor + (double)a->coupled_decay * p[i];
        p[i] *= 1 - hyper[0] * lr_factor * (double)a->decoupled_decay;
        m[i] = (double)a->beta1 * m[i] + (double)a->rest1 * g;
        v[i] = (double)a->beta2 * v[i] + (double)a->rest2 * g * g;
        p[i] -= hyper[2] * lr_factor * m[i] / (sqrt(v[i]) / hyper[3] + (double)a->eps);
    }
}

static const adam_attrs adam_adam = {0.9f, 0.1f, 0.999f, 0.001f, 1e-8f, 0, 0, 1},
                        adam_decay = {0.9f, 0.1f, 0.99f, 0.01f, 1e-3f, 0.1f, 0, 1},
                        adam_adamw = {0.9f, 0.1f, 0.999f, 0.001f, 1e-8f, 0, 0.1f, 0.5f};
static const clv__update_case adam_cases[] = {
    {.label = "Adam", .attrs = &adam_adam, .states = 3, .positive = 2},
    {.label = "Adam, weight decay, clipped", .attrs = &adam_decay, .states = 3, .positive = 2, .clip = true},
    {.label = "AdamW, two terms", .attrs = &adam_adamw, .states = 3, .positive = 2, .terms = true},
    {0}};

CLV__TRAIN_OP(adam_update) = {
    CLV__UPDATE(adam, ADAM_GROUP, ADAM_MOST),
    .inputs = CLV__UPDATE_INPUTS({"exp_avg", "f32[*]"}, {"exp_avg_sq", "f32[*]"}),
    .split = clv__update_split,
};

// ---- building ---------------------------------------------------------------------------------------------

static void add_sgd(const clv_optimizer_config *c, float lr_factor, clv_tensor *parameter,
                    const clv__gradients *all) {
    sgd_attrs attrs = {.momentum = c->momentum,
                       .undamped = (float)(1 - clv__update_decimal(c->dampening)),
                       .weight_decay = c->weight_decay,
                       .nesterov = c->nesterov,
                       .lr_factor = lr_factor};
    clv_tensor *buffer = c->momentum > 0 ? clv__update_state(parameter, "momentum_buffer") : NULL;
    clv__update_add(&clv__op_sgd_update, &attrs, parameter, all, &buffer, 1);
}

void clv__adam_add(const clv_optimizer_config *c, float lr_factor, clv_tensor *parameter,
                   const clv__gradients *all) {
    double beta1 = clv__update_beta1(c), beta2 = clv__update_beta2(c);
    adam_attrs attrs = {.beta1 = (float)beta1,
                        .rest1 = (float)(1 - beta1),
                        .beta2 = (float)beta2,
                        .rest2 = (float)(1 - beta2),
                        .eps = c->eps == 0 ? 1e-8f : c->eps,
                        .lr_factor = lr_factor};
    if (c->kind == CLV_ADAM)
        attrs.coupled_decay = c->weight_decay;
    else
        attrs.decoupled_decay = c->weight_decay == 0 ? 0.01f : c->weight_decay < 0 ? 0 : c->weight_decay;
    clv_tensor *states[] = {clv__update_state(parameter, "exp_avg"),
                            clv__update_state(parameter, "exp_avg_sq")};
    clv__update_add(&clv__op_adam_update, &attrs, parameter, all, states, 2);
}

/** Who builds the updates of each kind, and whether they take rates that depend on the betas (hyper[2] and [3]). */
static const struct {
    clv__update_builder *add;
    bool betas;
} kinds[] = {[CLV_SGD] = {add_sgd, false},
             [CLV_ADAM] = {clv__adam_add, true},
             [CLV_ADAMW] = {clv__adam_add, true},
             [CLV_RMSPROP] = {clv__rmsprop_add, false},
             [CLV_ADAGRAD] = {clv__adagrad_add, false},
             [CLV_LION] = {clv__lion_add, false},
             [CLV_LAMB] = {clv__lamb_add, true},
             [CLV_MUON] = {clv__muon_add, true}};
enum { KINDS = sizeof kinds / sizeof *kinds };

static clv_status check(const clv_optimizer_config *c, const char **what, double *value) {
    const struct {
        const char *what;
        float value;
        bool ok;
    } rules[] = {
        {"kind must be one of clv_optimizer_kind", (float)c->kind, (unsigned)c->kind < KINDS},
        {"momentum must be at least 0", c->momentum, c->momentum >= 0},
        {"dampening must be at least 0", c->dampening, c->dampening >= 0},
        {"weight_decay must be at least 0 (negative means none for AdamW and Muon only)", c->weight_decay,
         c->weight_decay >= 0 || ((c->kind == CLV_ADAMW || c->kind == CLV_MUON) && c->weight_decay < 0)},
        {"alpha must be from 0 up to, not including, 1", c->alpha, c->alpha >= 0 && c->alpha < 1},
        {"beta1 must be from 0 up to, not including, 1", c->beta1, c->beta1 >= 0 && c->beta1 < 1},
        {"beta2 must be from 0 up to, not including, 1", c->beta2, c->beta2 >= 0 && c->beta2 < 1},
        {"eps must be at least 0", c->eps, c->eps >= 0},
        {"clip_norm must be at least 0 (0: no clipping)", c->clip_norm, c->clip_norm >= 0},
        {"nesterov needs a momentum above 0, and no dampening", c->momentum,
         c->kind != CLV_SGD || !c->nesterov || (c->momentum > 0 && c->dampening == 0)},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        if (rules[i].ok && isfinite(rules[i].value)) continue;
        *what = rules[i].what;
        *value = (double)rules[i].value;
        return CLV_E_VALUE;
    }
    return CLV_OK;
}

/** Parameters that are updated, those of one group one after the other: the plan joins neighbours. Those of no group come first.
 *  NULL: the graph has failed. */
static clv_tensor **updated(clv_graph *graph, const clv_optimizer_config *config, size_t *n) {
    clv_tensor **parameters = clv__arena_alloc(&graph->arena, graph->n_tensors + 1, sizeof(clv_tensor *));
    *n = 0;
    if (!parameters)
        return clv__graph_fail(graph, CLV_E_HOST_MEMORY, "no host memory for the optimizer"), NULL;
    for (int group = -1; group < config->n_groups; group++) {
        if (group >= 0 && config->groups[group].frozen) continue;
        for (size_t i = 0; i < graph->n_tensors; i++) {
            clv_tensor *tensor = graph->tensors[i];
            if (tensor->trainable && tensor->gradient && clv__param_group_of(config, tensor) == group)
                parameters[(*n)++] = tensor;
        }
    }
    if (*n == 0)
        clv__graph_fail(
            graph, CLV_E_STATE,
            "clv_optimizer_add: no parameter has a gradient; call clv_backward with the loss first");
    return *n ? parameters : NULL;
}

/** May the graph have such an optimizer? False: it has failed. */
static bool may_add(clv_graph *graph, const clv_optimizer_config *config) {
    const char *what;
    double value;
    if (!graph || graph->error.status != CLV_OK) return false;
    if (!config)
        clv__graph_fail(graph, CLV_E_VALUE, "clv_optimizer_add: config is NULL");
    else if (check(config, &what, &value) != CLV_OK)
        clv__graph_fail(graph, CLV_E_VALUE, "clv_optimizer_add: %s (it is %g)", what, value);
    else if (graph->hyper)
        clv__graph_fail(graph, CLV_E_STATE, "clv_optimizer_add: the graph has an optimizer already");
    else if (!config->custom || clv__custom_optimizer_check(graph, config))
        return clv__param_groups_check(graph, config, "clv_optimizer_add");
    return false;
}

void clv_optimizer_add(clv_graph *graph, const clv_optimizer_config *config) {
    size_t n;
    if (!may_add(graph, config)) return;
    clv_tensor **parameters = updated(graph, config, &n);
    if (!parameters) return;
    if (!graph->training)
        clv__log(graph->runtime, CLV_LOG_WARNING,
                 "the graph is not set to training: dropout and batch_norm behave as in evaluation; call "
                 "clv_graph_set_training(graph, true) before building");
    graph->phase = CLV__UPDATE;
    graph->layer_override = "";
    graph->optimizer = *config;
    graph->optimizer.groups = NULL; // the caller's
    graph->optimizer.n_groups = graph->optimizer.n_attributes = 0;
    graph->optimizer.custom = NULL;
    graph->optimizer.attributes = NULL;
    graph->hyper = clv_input(graph, "hyper", CLV_DTYPE_F32, CLV_SHAPE(CLV_HYPER_VALUES));
    const bool betas = kinds[config->kind].betas;
    const clv__gradients all = clv__gradients_add(graph, parameters, n, config->clip_norm,
                                                  betas ? log(clv__update_beta1(config)) : 0,
                                                  betas ? log(clv__update_beta2(config)) : 0);
    graph->update_hyper = all.hyper;
    graph->update_factor = all.factor;
    for (size_t i = 0; i < n; i++) {
        const int group = clv__param_group_of(config, parameters[i]);
        const clv_optimizer_config own = clv__param_group_config(config, group);
        graph->layer_override = parameters[i]->layer;
        (config->custom ? clv__custom_optimizer_add : kinds[config->kind].add)(
            &own, clv__param_group_lr(config, group), parameters[i], &all);
    }
    graph->layer_override = NULL;
    graph->phase = CLV__FORWARD;
}
