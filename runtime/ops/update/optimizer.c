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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "cleave/optim.h"
#include "device/device.h"
#include "graph/graph.h"
#include "graph/signature.h"
#include "ops/update/gradients.h"
#include "ops/update/custom_optimizer.h"
#include "ops/update/param_groups.h"
#include "ops/slices.h"

extern const clv__op clv__op_sgd_update, clv__op_adam_update;

// ---- the caller's numbers ---------------------------------------------------------------------------------

/** The decimal number the caller wrote: 0.999f means 0.999, not 0.99900001287. 1 - beta2 has lost 5e-5 of
 * itself otherwise. */
static double decimal(float value) {
    char text[32];
    clv__format(text, sizeof text, "%.7g", (double)value);
    double written = clv__number_read(text, NULL);
    return (float)written == value ? written : (double)value;
}

static double beta1_of(const clv_optimizer_config *config) {
    return config->beta1 == 0 ? 0.9 : decimal(config->beta1);
}
static double beta2_of(const clv_optimizer_config *config) {
    return config->beta2 == 0 ? 0.999 : decimal(config->beta2);
}

void clv_optimizer_hyper_values(const clv_graph *graph, int64_t step, double lr,
                                float values[CLV_HYPER_VALUES]) {
    const clv_optimizer_config none = {0}, *config = graph ? &graph->optimizer : &none;
    values[0] = (float)lr;
    values[1] = step <= 1 ? 1.0f : 0.0f;
    values[2] = (float)(lr / (1 - pow(beta1_of(config), (double)step)));
    values[3] = (float)sqrt(1 - pow(beta2_of(config), (double)step));
    values[4] = (float)step;
}

// Inputs of every update: what is the same for all parameters, then groups that begin alike.
enum { HYPER, CLIP, FIRST };
enum { PARAM, GRAD, TERM, STATE }; // in a group: the gradient is GRAD, or GRAD + TERM; states from STATE on

// Bits of a group's inputs, for all groups.
#define IN_EACH_GROUP(bits, size, most)                                                                      \
    ((((UINT64_C(1) << (size) * (most)) - 1) / ((1u << (size)) - 1) * (bits)) << FIRST)

/** Input `which` of a group, as an index. */
static int at(const clv__op_io *io, int group, int which) {
    return FIRST + group * io->op->groups.size + which;
}

static int64_t numel_of(const clv__op_io *io, int group) {
    return clv__numel(&io->in[at(io, group, PARAM)]);
}

/** What is the same for all parameters, and what every group begins with; its states follow. */
#define UPDATE_INPUTS(...)                                                                                   \
    CLV__INPUTS({"hyper", "f32[5]"}, {"clip_factor", "f32[1]?"}, {"parameter", "f32[*]"},                    \
                {"gradient", "f32[*]"}, {"term", "f32[*]?"}, __VA_ARGS__)
_Static_assert(CLV_HYPER_VALUES == 5, "as the type of hyper says");

/** Element i of a group's gradient. */
static double gradient_at(const clv__ref *ref, int group, int64_t i) {
    double *const *in = &ref->in[at(ref->io, group, 0)];
    return in[TERM] ? in[GRAD][i] + in[TERM][i] : in[GRAD][i];
}

static const clv__sharing sharings[CLV__SHARINGS] = {{1, 1, 1}, {1, 2048, 16}, {CLV__SHARING_ITEMS, 1024, 4}};

/** What both updates' launches begin with: the tensors of each slice, groups that are not there included (no elements), hyper
 *  and clip, sizes. `order`: of a group's inputs, ends with -1. */
static clv__launch *update_launch(clv__launches *list, const clv__op_io *io, const char *entry,
                                  const int *order) {
    const clv__sharing *share = clv__sharing_of(io, sharings);
    const int n = clv__groups_of(io), slices = clv__groups_most(io->op, list->device);
    int64_t groups = 0;
    for (int g = 0; g < n; g++) groups += clv__div_up(numel_of(io, g), share->count);
    clv__launch *launch = clv__sharing_launch(list, io, "optimizer", entry, share, groups);
    for (int g = 0; g < slices; g++) {
        for (const int *which = order; *which >= 0; which++) clv__arg_in(list, launch, at(io, g, *which));
    }
    clv__arg_in(list, launch, HYPER);
    clv__arg_in(list, launch, CLIP);
    for (int g = 0; g < slices; g++) clv__arg_i32(list, launch, g < n ? numel_of(io, g) : 0);
    CLV__ARGS_I32(list, launch, clv__has_in(io, CLIP), clv__has_in(io, at(io, 0, TERM)));
    return launch;
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
    clv__launch *launch = update_launch(list, io, "sgd_update", (const int[]){PARAM, BUFFER, GRAD, TERM, -1});
    CLV__ARGS(list, launch, io, NULL, CLV__INTS(clv__has_in(io, at(io, 0, BUFFER)), a->nesterov),
              CLV__FLOATS(a->momentum, a->undamped, a->weight_decay, a->lr_factor));
}

static void sgd_slice(const clv__ref *ref, int group, double factor) {
    const sgd_attrs *a = ref->io->attrs;
    const int64_t n = numel_of(ref->io, group);
    double *const *in = &ref->in[at(ref->io, group, 0)];
    double *p = in[PARAM], *b = in[BUFFER], lr = ref->in[HYPER][0] * (double)a->lr_factor,
           momentum = (double)a->momentum;
    bool first = ref->in[HYPER][1] > 0.5;
    for (int64_t i = 0; i < n; i++) {
        double g = gradient_at(ref, group, i) * factor + (double)a->weight_decay * p[i];
        if (b) {
            b[i] = first ? g : momentum * b[i] + (double)a->undamped * g;
            g = a->nesterov ? g + momentum * b[i] : b[i];
        }
        p[i] -= lr * g;
    }
}

static void sgd_reference(const clv__ref *ref) {
    double factor = ref->in[CLIP] ? ref->in[CLIP][0] : 1;
    for (int g = 0; factor >= 0 && g < clv__groups_of(ref->io); g++) sgd_slice(ref, g, factor);
}

static void update_cost(const clv__op_io *io, clv__cost *cost) {
    for (int g = 0; g < clv__groups_of(io); g++) {
        double n = (double)numel_of(io, g);
        int states = 0;
        for (int i = STATE; i < io->op->groups.size; i++) states += clv__has_in(io, at(io, g, i));
        cost->flops += (4 + 6 * states) * n;
        cost->bytes += 4 * n * (3 + 2 * states + clv__has_in(io, at(io, g, TERM)));
    }
}

/** Sizes of the parameters of a sample. */
static const struct update_shapes {
    bool quick;
    int64_t n[SGD_MOST];
    int groups; // those of no elements included
} shapes[] = {
    {true, {130}, 1},
    {true, {17, 65, 1}, 3},
    {false, {1}, 1},
    {false, {2}, 1},
    {false, {63}, 1},
    {false, {64}, 1},
    {false, {65}, 1},
    {false, {4097}, 1},
    {false, {9001}, 1},
    {false, {0}, 1},
    {false, {0, 8193, 0, 16, 4096, 0}, 6},
    {false, {100, 1, 4097, 2, 33, 64}, 6},
    {false, {100, 1, 9001, 2, 33, 0}, 6},
    {false, {3, 1, 257, 1025, 7, 0, 64, 1023, 5, 2, 1}, 11},
};

typedef struct update_case {
    const char *label;
    const void *attrs;
    bool first, states, clip, terms;
} update_case;

/** The i-th sample: the cases on each of the shapes, with hyper values of a first or a later step. */
static bool update_sample(const clv__op *op, const update_case *cases, int n_cases, int i, clv__sample *out) {
    if (i < 0 || i >= n_cases * (int)(sizeof shapes / sizeof *shapes)) return false;
    const struct update_shapes *s = &shapes[i / n_cases];
    const update_case *c = &cases[i % n_cases];
    const clv__groups *groups = &op->groups;
    int n = snprintf(out->label, sizeof out->label, "%s,", c->label);
    for (int g = 0; g < s->groups; g++)
        n += snprintf(out->label + n, sizeof out->label - (size_t)n, " %lld", (long long)s->n[g]);
    snprintf(out->label + n, sizeof out->label - (size_t)n, " elements");
    memcpy(out->attrs, c->attrs, op->attrs_bytes);
    out->quick = s->quick;
    out->n_in = groups->first + s->groups * groups->size;
    out->in[HYPER] = clv__f32(CLV_SHAPE(CLV_HYPER_VALUES));
    out->fill[HYPER] =
        c->first ? (clv__fill){CLV__FILL_UNIFORM, 0.6, 0.9} : (clv__fill){CLV__FILL_UNIFORM, 0.1, 0.4};
    if (c->clip) out->in[CLIP] = clv__f32(CLV_SHAPE(1));
    out->fill[CLIP] = (clv__fill){CLV__FILL_UNIFORM, 0.1, 0.9};
    for (int k = groups->first; k < out->n_in; k++) {
        const int group = (k - groups->first) / groups->size, which = (k - groups->first) % groups->size;
        if (which == TERM ? c->terms : which < STATE || c->states)
            out->in[k] = clv__f32(CLV_SHAPE(s->n[group]));
        if (which > STATE) out->fill[k] = (clv__fill){CLV__FILL_UNIFORM, 0.01, 1}; // Adam's squares
    }
    return true;
}

static bool sgd_sample(const clv__op *op, int i, clv__sample *out) {
    static const sgd_attrs plain = {0, 1, 0, 0, 1}, decay = {0, 1, 0.1f, 0, 0.5f},
                           damped = {0.9f, 0.5f, 0.01f, 0, 1}, nesterov = {0.9f, 1, 0.01f, 1, 1};
    static const update_case cases[] = {
        {"plain", &plain, false, false, false, false},
        {"weight decay, clipped", &decay, false, false, true, false},
        {"momentum, first step", &damped, true, true, false, false},
        {"momentum, dampening, two terms", &damped, false, true, true, true},
        {"Nesterov", &nesterov, false, true, false, false},
    };
    return update_sample(op, cases, sizeof cases / sizeof *cases, i, out);
}

static const clv__variant sgd_variants[] = CLV__SHARING_VARIANTS(sgd_lower);

/** Along every dimension of the parameter; of a use with one group. */
static bool update_split(const clv__op_io *io, int i, clv__split *out) {
    const clv_shape *shape = &io->in[at(io, 0, PARAM)].shape;
    if (clv__groups_of(io) == 1) out->length = clv__split_length(shape, i);
    for (int k = FIRST; k < io->n_in; k++)
        if (clv__has_in(io, k)) out->in[k] = (int8_t)i;
    return i < shape->rank;
}

const clv__op clv__op_sgd_update = {
    .name = "sgd_update",
    .inputs = UPDATE_INPUTS({"momentum_buffer", "f32[*]?"}),
    .outputs = CLV__NO_OUTPUTS,
    .attrs_bytes = sizeof(sgd_attrs),
    .groups = {FIRST, SGD_GROUP, SGD_MOST, .sum = GRAD},
    .mutates = IN_EACH_GROUP(1u << PARAM | 1u << BUFFER, SGD_GROUP, SGD_MOST),
    .variants = sgd_variants,
    .reference = sgd_reference,
    .sample = sgd_sample,
    .cost = update_cost,
    .split = update_split,
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
        update_launch(list, io, "adam_update", (const int[]){PARAM, AVG, AVG_SQ, GRAD, TERM, -1});
    CLV__ARGS_F32(list, launch, a->beta1, a->rest1, a->beta2, a->rest2, a->eps, a->coupled_decay,
                  a->decoupled_decay, a->lr_factor);
}

static void adam_slice(const clv__ref *ref, int group, double factor) {
    const adam_attrs *a = ref->io->attrs;
    const int64_t n = numel_of(ref->io, group);
    double *const *in = &ref->in[at(ref->io, group, 0)];
    const double *hyper = ref->in[HYPER], lr_factor = (double)a->lr_factor;
    double *p = in[PARAM], *m = in[AVG], *v = in[AVG_SQ];
    for (int64_t i = 0; i < n; i++) {
        double g = gradient_at(ref, group, i) * factor + (double)a->coupled_decay * p[i];
        p[i] *= 1 - hyper[0] * lr_factor * (double)a->decoupled_decay;
        m[i] = (double)a->beta1 * m[i] + (double)a->rest1 * g;
        v[i] = (double)a->beta2 * v[i] + (double)a->rest2 * g * g;
        p[i] -= hyper[2] * lr_factor * m[i] / (sqrt(v[i]) / hyper[3] + (double)a->eps);
    }
}

static void adam_reference(const clv__ref *ref) {
    double factor = ref->in[CLIP] ? ref->in[CLIP][0] : 1;
    for (int g = 0; factor >= 0 && g < clv__groups_of(ref->io); g++) adam_slice(ref, g, factor);
}

static bool adam_sample(const clv__op *op, int i, clv__sample *out) {
    static const adam_attrs adam = {0.9f, 0.1f, 0.999f, 0.001f, 1e-8f, 0, 0, 1},
                            decay = {0.9f, 0.1f, 0.99f, 0.01f, 1e-3f, 0.1f, 0, 1},
                            adamw = {0.9f, 0.1f, 0.999f, 0.001f, 1e-8f, 0, 0.1f, 0.5f};
    static const update_case cases[] = {
        {"Adam", &adam, false, true, false, false},
        {"Adam, weight decay, clipped", &decay, false, true, true, false},
        {"AdamW, two terms", &adamw, false, true, false, true},
    };
    return update_sample(op, cases, sizeof cases / sizeof *cases, i, out);
}

static const clv__variant adam_variants[] = CLV__SHARING_VARIANTS(adam_lower);

const clv__op clv__op_adam_update = {
    .name = "adam_update",
    .inputs = UPDATE_INPUTS({"exp_avg", "f32[*]"}, {"exp_avg_sq", "f32[*]"}),
    .outputs = CLV__NO_OUTPUTS,
    .attrs_bytes = sizeof(adam_attrs),
    .groups = {FIRST, ADAM_GROUP, ADAM_MOST, .sum = GRAD},
    .mutates = IN_EACH_GROUP(1u << PARAM | 1u << AVG | 1u << AVG_SQ, ADAM_GROUP, ADAM_MOST),
    .variants = adam_variants,
    .reference = adam_reference,
    .sample = adam_sample,
    .cost = update_cost,
    .split = update_split,
};

// ---- building ---------------------------------------------------------------------------------------------

static clv_status check(const clv_optimizer_config *c, const char **what, double *value) {
    const struct {
        const char *what;
        float value;
        bool ok;
    } rules[] = {
        {"kind must be CLV_SGD, CLV_ADAM or CLV_ADAMW", (float)c->kind,
         c->kind == CLV_SGD || c->kind == CLV_ADAM || c->kind == CLV_ADAMW},
        {"momentum must be at least 0", c->momentum, c->momentum >= 0},
        {"dampening must be at least 0", c->dampening, c->dampening >= 0},
        {"weight_decay must be at least 0 (negative means none for AdamW only)", c->weight_decay,
         c->weight_decay >= 0 || (c->kind == CLV_ADAMW && c->weight_decay < 0)},
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

static clv_tensor *state_of(clv_graph *graph, const clv_tensor *parameter, const char *state) {
    char name[1200];
    int n = snprintf(name, sizeof name, "%s.%s", parameter->name, state);
    if (n < 0 || (size_t)n >= sizeof name) {
        return clv__graph_fail(graph, CLV_E_VALUE, "the name '%s.%s' is too long", parameter->name, state);
    }
    return clv__persistent(graph, name, parameter->desc, (clv_init){.kind = CLV_INIT_ZEROS}, CLV_OPTIMIZER,
                           false);
}

static void add_sgd(const clv_optimizer_config *c, float lr_factor, clv_tensor *parameter,
                    const clv__gradients *all) {
    sgd_attrs attrs = {.momentum = c->momentum,
                       .undamped = (float)(1 - decimal(c->dampening)),
                       .weight_decay = c->weight_decay,
                       .nesterov = c->nesterov,
                       .lr_factor = lr_factor};
    clv_graph *graph = parameter->graph;
    clv_tensor *buffer = c->momentum > 0 ? state_of(graph, parameter, "momentum_buffer") : NULL;
    clv_tensor *inputs[] = {all->hyper, all->factor, parameter, parameter->gradient, NULL, buffer};
    clv__node_add(&clv__op_sgd_update, &attrs, inputs, FIRST + SGD_GROUP,
                  1u << CLIP | 1u << (FIRST + TERM) | 1u << (FIRST + BUFFER));
}

static void add_adam(const clv_optimizer_config *c, float lr_factor, clv_tensor *parameter,
                     const clv__gradients *all) {
    double beta1 = beta1_of(c), beta2 = beta2_of(c);
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
    clv_graph *graph = parameter->graph;
    clv_tensor *inputs[] = {all->hyper,
                            all->factor,
                            parameter,
                            parameter->gradient,
                            NULL,
                            state_of(graph, parameter, "exp_avg"),
                            state_of(graph, parameter, "exp_avg_sq")};
    clv__node_add(&clv__op_adam_update, &attrs, inputs, FIRST + ADAM_GROUP,
                  1u << CLIP | 1u << (FIRST + TERM));
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
    bool adam = config->kind != CLV_SGD;
    const clv__gradients all =
        clv__gradients_add(graph, parameters, n, config->clip_norm, adam ? log(beta1_of(config)) : 0,
                           adam ? log(beta2_of(config)) : 0);
    graph->update_hyper = all.hyper;
    graph->update_factor = all.factor;
    for (size_t i = 0; i < n; i++) {
        const int group = clv__param_group_of(config, parameters[i]);
        const clv_optimizer_config own = clv__param_group_config(config, group);
        graph->layer_override = parameters[i]->layer;
        (config->custom ? clv__custom_optimizer_add
         : adam         ? add_adam
                        : add_sgd)(&own, clv__param_group_lr(config, group), parameters[i], &all);
    }
    graph->layer_override = NULL;
    graph->phase = CLV__FORWARD;
}
