// SPDX-License-Identifier: Apache-2.0
// Optimizers of a program's own (clv_custom_optimizer): its function builds the new values of a parameter and its states as ops, and
// its results are checked before they are stored.
//
// The values of one parameter are stored before the next one's are made, so that a step holds those of one at a time.
#include "ops/update/custom_optimizer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/registry.h"
#include "cleave/ops.h"
#include "device/device.h"

// The library's own bounds; the descriptor has lists.
enum { MOST_STATES = 16, MOST_ATTRIBUTES = 64 };

/** How many attributes the descriptor has; one more than MOST_ATTRIBUTES: too many. States the same. */
static int count_attributes(const clv_custom_optimizer *custom) {
    int n = 0;
    while (custom->attributes && n <= MOST_ATTRIBUTES && custom->attributes[n].name) n++;
    return n;
}
static int count_states(const clv_custom_optimizer *custom) {
    int n = 0;
    while (custom->states && n <= MOST_STATES && custom->states[n].name) n++;
    return n;
}

static int find_attribute(const clv_custom_optimizer *custom, const char *name) {
    for (int i = 0; name && custom->attributes && custom->attributes[i].name; i++)
        if (!strcmp(custom->attributes[i].name, name)) return i;
    return -1;
}

/** The values of the attributes, defaults filled in. */
static void read_attributes(const clv_optimizer_config *config, double values[MOST_ATTRIBUTES]) {
    const clv_custom_optimizer *custom = config->custom;
    for (int i = 0; custom->attributes && custom->attributes[i].name; i++)
        values[i] = custom->attributes[i].value;
    for (int i = 0; i < config->n_attributes; i++)
        values[find_attribute(custom, config->attributes[i].name)] = config->attributes[i].value;
}

/** What is wrong with the descriptor; NULL: nothing. */
static const char *mistake_of(const clv_custom_optimizer *custom) {
    if (custom->bytes != sizeof *custom) return "bytes is not sizeof(clv_custom_optimizer)";
    if (!custom->name || !*custom->name) return "it needs a name";
    if (!custom->update) return "it needs an update function";
    if (count_states(custom) > MOST_STATES) return "it has more than 16 states";
    if (count_attributes(custom) > MOST_ATTRIBUTES) return "it has more than 64 attributes";
    for (int i = 0; i < count_states(custom); i++) {
        if (!*custom->states[i].name) return "a state needs a name";
        if (!isfinite(custom->states[i].first)) return "a state's first value must be finite";
        for (int k = 0; k < i; k++)
            if (!strcmp(custom->states[i].name, custom->states[k].name))
                return "two states have the same name";
    }
    return NULL;
}

static clv__registry registered = CLV__REGISTRY("optimizer");

clv_status clv_optimizer_register(clv_runtime *runtime, const clv_custom_optimizer *optimizer) {
    static const char *const brought[] = {"sgd",     "momentum", "adam", "adamw", "rmsprop",
                                          "adagrad", "lion",     "lamb", "muon"};
    CLV_TRY(CLV__GIVEN(NULL, runtime));
    clv__error *error = clv__runtime_error_of(runtime);
    CLV_TRY(CLV__GIVEN(error, optimizer));
    const char *wrong = mistake_of(optimizer);
    bool taken = false;
    if (wrong)
        CLV_FAIL(error, CLV_E_VALUE, "custom optimizer '%.100s': %s",
                 optimizer->bytes == sizeof *optimizer && optimizer->name ? optimizer->name : "", wrong);
    for (size_t i = 0; i < sizeof brought / sizeof *brought; i++)
        taken |= !strcmp(brought[i], optimizer->name);
    return clv__registry_add(&registered, error, optimizer->name, taken, optimizer);
}

const clv_custom_optimizer *clv_custom_optimizer_find(const char *name) {
    return clv__registry_find(&registered, name);
}

bool clv__custom_optimizer_check(clv_graph *graph, const clv_optimizer_config *config) {
    const clv_custom_optimizer *custom = config->custom;
    const char *wrong = mistake_of(custom);
    if (wrong) {
        clv__graph_fail(graph, CLV_E_VALUE, "clv_optimizer_add: custom optimizer '%.100s': %s",
                        custom->bytes == sizeof *custom && custom->name ? custom->name : "", wrong);
        return false;
    }
    if (config->kind || config->momentum != 0 || config->dampening != 0 || config->nesterov ||
        config->beta1 != 0 || config->beta2 != 0 || config->eps != 0) {
        clv__graph_fail(
            graph, CLV_E_VALUE,
            "clv_optimizer_add: kind, momentum, dampening, nesterov, beta1, beta2 and eps are not of "
            "optimizer '%.100s': give it attributes",
            custom->name);
        return false;
    }
    for (int i = 0; i < config->n_attributes; i++) {
        const char *name = config->attributes ? config->attributes[i].name : NULL;
        if (find_attribute(custom, name) < 0) {
            clv__graph_fail(graph, CLV_E_NOT_FOUND,
                            "clv_optimizer_add: optimizer '%.100s' has no attribute '%.100s'", custom->name,
                            name ? name : "");
            return false;
        }
        if (isfinite(config->attributes[i].value)) continue;
        clv__graph_fail(graph, CLV_E_VALUE, "clv_optimizer_add: optimizer '%.100s': '%.100s' is not finite",
                        custom->name, name);
        return false;
    }
    return true;
}

/** Are a tensor's bytes those of a session tensor, which may be overwritten before it is read? */
static bool is_kept(const clv_tensor *tensor) {
    while (tensor->node && tensor->node->io.op->view) tensor = tensor->node->in[0];
    return tensor->kind == CLV__PERSISTENT;
}

/** Can what the update made be stored in `target`? `what` it is of the parameter. */
static bool fits(const clv_custom_optimizer *custom, const clv_tensor *parameter, const char *what,
                 const clv_tensor *target, const clv_tensor *made) {
    char is[128], wanted[128];
    clv_graph *graph = parameter->graph;
    if (graph->error.status != CLV_OK) return false;
    if (!made)
        clv__graph_fail(graph, CLV_E_VALUE, "optimizer '%.100s': its update makes no %s of '%.300s'",
                        custom->name, what, parameter->name);
    else if (made->graph != graph || made->desc.dtype != CLV_DTYPE_F32 ||
             !clv_shape_equal(&made->desc.shape, &target->desc.shape))
        clv__graph_fail(graph, CLV_E_SHAPE,
                        "optimizer '%.100s': its update makes %s %s as the %s of '%.300s', which is f32 %s",
                        custom->name, clv_dtype_name(made->desc.dtype),
                        clv_shape_text(&made->desc.shape, is, sizeof is), what, parameter->name,
                        clv_shape_text(&target->desc.shape, wanted, sizeof wanted));
    else
        return true;
    return false;
}

static clv_tensor *state_of(clv_tensor *parameter, const clv_optimizer_state *state) {
    char name[1200];
    const int n = snprintf(name, sizeof name, "%s.%s", parameter->name, state->name);
    if (n < 0 || (size_t)n >= sizeof name)
        return clv__graph_fail(parameter->graph, CLV_E_VALUE, "the name '%.500s.%.500s' is too long",
                               parameter->name, state->name);
    const clv_init first = {CLV_INIT_UNIFORM, state->first, state->first};
    return clv__persistent(parameter->graph, name, parameter->desc, first, CLV_OPTIMIZER, false);
}

void clv__custom_optimizer_add(const clv_optimizer_config *config, float lr_factor, clv_tensor *parameter,
                               const clv__gradients *all) {
    const clv_custom_optimizer *custom = config->custom;
    clv_graph *graph = parameter->graph;
    const clv_precision precision = graph->precision;
    const int n_states = count_states(custom);
    double values[MOST_ATTRIBUTES] = {0};
    clv_tensor *made[1 + MOST_STATES] = {0}, *targets[1 + MOST_STATES] = {parameter};
    clv_update_use use = {.parameter = parameter,
                          .states = &targets[1],
                          .n_states = n_states,
                          .weight_decay = (double)config->weight_decay,
                          .attributes = values,
                          .n_attributes = count_attributes(custom)};
    graph->precision = CLV_PRECISION_F32; // parameters and states are f32, whatever the layers compute in
    read_attributes(config, values);
    use.gradient = all->factor ? clv_mul(parameter->gradient, all->factor) : parameter->gradient;
    use.lr = clv_slice(all->hyper, 0, 0, 1);
    if (lr_factor != 1) use.lr = clv_mul_scalar(use.lr, lr_factor);
    use.first = clv_slice(all->hyper, 0, 1, 1);
    use.step = clv_slice(all->hyper, 0, 4, 1);
    for (int i = 0; i < n_states; i++) targets[i + 1] = state_of(parameter, &custom->states[i]);
    if (graph->error.status == CLV_OK) custom->update(&use, &made[0], &made[1]);
    for (int i = 0; i <= n_states; i++) {
        if (!fits(custom, parameter, i ? custom->states[i - 1].name : "new value", targets[i], made[i]))
            break;
        if (made[i] != targets[i] && is_kept(made[i])) made[i] = clv_mul_scalar(made[i], 1); // a copy
    }
    for (int i = 0; graph->error.status == CLV_OK && i <= n_states; i++)
        if (made[i] != targets[i]) clv__assign_add(targets[i], made[i], 0, all);
    graph->precision = precision;
}

void clv__custom_optimizer_text(const clv_optimizer_config *config, clv__text *out) {
    double values[MOST_ATTRIBUTES] = {0};
    if (!config->custom) return;
    read_attributes(config, values);
    clv__text_add(out, "%s", config->custom->name);
    for (int i = 0; config->custom->attributes && config->custom->attributes[i].name; i++)
        clv__text_add(out, " %s=%.17g", config->custom->attributes[i].name, values[i]);
}
