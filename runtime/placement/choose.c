// SPDX-License-Identifier: Apache-2.0
// Choosing a placement: divide by estimates, plan what came out, and where it does not fit divide again with
// the estimates put right. Only a plan says that something fits. Errors come before anything is measured.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cleave/place.h"
#include "placement/describe.h"
#include "placement/divide.h"

enum { MOST_DIVISIONS = 12, MOST_STEPS = 48 }; // each costs a plan

typedef struct chooser {
    clv_graph *graph;
    const clv_place_config *config;
    clv__error *error;
    clv__goal goal;
    clv_device *devices[CLV__MOST_DEVICES];
    int n_devices;
    clv_plan *whole[CLV__MOST_DEVICES]; // the graph on each device alone
    clv__speed speeds[CLV__MOST_DEVICES];
    clv__layers layers;
    clv__limits limits;
    const char *recompute; // how plans are tried
} chooser;

/** A division, planned. */
typedef struct trial {
    clv__division division;
    clv__text text;
    bool fits;
    double fullest; // of the devices: bytes in proportion to the limit
    uint64_t most_bytes;
    uint64_t bytes[CLV__MOST_DEVICES];
    double seconds[CLV__MOST_DEVICES];
} trial;

// ---- what is asked for ------------------------------------------------------------------------------------

static bool goal_of(const char *place, clv__goal *goal) {
    static const struct {
        const char *name;
        clv__goal goal;
    } methods[] = {
        {"auto", CLV__GOAL_SECONDS}, {"balanced", CLV__GOAL_BYTES}, {"sequential", CLV__GOAL_FIRST}};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        if (place && *place && strcmp(place, methods[i].name) != 0) continue;
        *goal = methods[i].goal;
        return true;
    }
    return false;
}

static clv_status find_devices(chooser *c) {
    const clv_place_config *config = c->config;
    if (config->n_devices < 1 || !config->devices)
        CLV_FAIL(c->error, CLV_E_VALUE, "placement: '%s' needs devices to choose from",
                 config->place ? config->place : "auto");
    if (config->n_devices > CLV__MOST_DEVICES)
        CLV_FAIL(c->error, CLV_E_VALUE, "placement: %d devices, at most %d are possible", config->n_devices,
                 CLV__MOST_DEVICES);
    for (int i = 0; i < config->n_devices; i++) {
        CLV_TRY(clv_device_find(c->graph->runtime, config->devices[i], &c->devices[i]));
        for (int j = 0; j < i; j++) {
            if (c->devices[i] != c->devices[j]) continue;
            if (strcmp(config->devices[i], config->devices[j]) == 0)
                CLV_FAIL(c->error, CLV_E_VALUE, "placement: device '%s' is named twice", config->devices[i]);
            CLV_FAIL(c->error, CLV_E_VALUE, "placement: '%s' and '%s' are the same device, %s",
                     config->devices[j], config->devices[i], c->devices[i]->info.name);
        }
    }
    c->n_devices = config->n_devices;
    return CLV_OK;
}

static clv_status check_graph(const chooser *c) {
    if (c->config->plan.explicit_transfers)
        CLV_FAIL(
            c->error, CLV_E_VALUE,
            "placement: '%s' lets data cross between devices, and explicit transfers forbid it: say where "
            "layers are",
            c->config->place ? c->config->place : "auto");
    for (size_t i = 0; i < c->graph->n_nodes; i++) {
        const clv__node *node = c->graph->nodes[i];
        if (!node->place_hint) continue;
        clv__node_title title;
        CLV_FAIL(c->error, CLV_E_VALUE,
                 "placement: %s was put on '%s' when the graph was built: say where the other layers are",
                 clv__title_of(node, &title), node->place_hint);
    }
    return CLV_OK;
}

static clv_status plan_with(const chooser *c, clv_device *device, const char *place, clv_plan **out) {
    clv_plan_config config = c->config->plan;
    config.device = device;
    config.place = place;
    config.recompute = c->recompute;
    config.no_fuse |= !place; // the plan of which layers are weighed, one by one
    return clv_plan_create(c->graph, &config, out);
}

/** Devices and layers, and whether there are enough of these. */
static clv_status begin(chooser *c) {
    CLV_TRY(clv_graph_status(c->graph));
    CLV_TRY(find_devices(c));
    CLV_TRY(check_graph(c));
    CLV_TRY(plan_with(c, c->devices[0], NULL, &c->whole[0]));
    CLV_TRY(clv__layers_find(c->whole[0], &c->layers));
    if (c->n_devices > c->layers.n)
        CLV_FAIL(c->error, CLV_E_VALUE,
                 "placement: %d device%s for %d layer%s with parameters: name at most %d", c->n_devices,
                 c->n_devices == 1 ? "" : "s", c->layers.n, c->layers.n == 1 ? "" : "s", c->layers.n);
    return CLV_OK;
}

// ---- limits -----------------------------------------------------------------------------------------------

/** Bytes that may still be taken on a device. */
static uint64_t room_on(const clv_device *device) {
    clv_memory_info held = clv_device_memory(device);
    uint64_t room = UINT64_MAX, on_device = held.all.current - held.category[CLV_STAGING].current;
    if (held.budget) room = held.budget > held.all.current ? held.budget - held.all.current : 0;
    if (device->info.memory_bytes) {
        uint64_t left = device->info.memory_bytes > on_device ? device->info.memory_bytes - on_device : 0;
        if (left < room) room = left;
    }
    return room;
}

static void add_limits(const chooser *c, clv__text *text) {
    for (int i = 0; i < c->n_devices; i++)
        clv__text_add(text, "%s%s %s", i ? ", " : "", c->devices[i]->info.name,
                      clv__bytes_text(c->limits.bytes[i]).text);
}

/** A layer stays whole: some device must have room for its parameters at least. */
static clv_status check_limits(chooser *c) {
    uint64_t most = 0;
    for (int i = 0; i < c->n_devices; i++) {
        c->limits.bytes[i] = room_on(c->devices[i]);
        c->limits.factor[i] = 1;
        if (c->limits.bytes[i] > most) most = c->limits.bytes[i];
    }
    for (int i = 0; i < c->layers.n; i++) {
        const clv__layer *layer = &c->layers.items[i];
        if (layer->parameter_bytes <= most) continue;
        clv__text text = {0};
        add_limits(c, &text);
        clv_status status = clv__error_set(c->error, CLV_E_BUDGET,
                                           "placement: layer '%s' has %s (%" PRIu64
                                           " bytes) of parameters, more than any device may hold (%s): "
                                           "raise a budget, or name a larger device",
                                           layer->name, clv__bytes_text(layer->parameter_bytes).text,
                                           layer->parameter_bytes, clv__text_get(&text));
        clv__text_reset(&text);
        return status;
    }
    return CLV_OK;
}

// ---- trying -----------------------------------------------------------------------------------------------

static double fill_of(const chooser *c, int device, uint64_t bytes) {
    uint64_t limit = c->limits.bytes[device];
    return (double)bytes / (double)(limit ? limit : 1);
}

static void read_plan(const chooser *c, clv_plan *plan, trial *out) {
    for (int i = 0; i < c->n_devices; i++) {
        clv_plan_memory memory = clv_plans_memory(&plan, 1, c->devices[i]);
        out->bytes[i] = memory.predicted_peak_bytes;
        if (out->bytes[i] > out->most_bytes) out->most_bytes = out->bytes[i];
        if (fill_of(c, i, out->bytes[i]) > out->fullest) out->fullest = fill_of(c, i, out->bytes[i]);
    }
    for (size_t i = 0; i < plan->n_nodes; i++) {
        const clv_device *device = plan->places[plan->nodes[i].place].device;
        for (int k = 0; k < c->n_devices; k++) {
            if (c->devices[k] == device)
                out->seconds[k] += clv__speed_seconds(&c->speeds[k], plan, &plan->nodes[i]);
        }
    }
    out->fits = clv_plans_fit(&plan, 1) == CLV_OK;
}

/** Plan a division. Reset `out` when it is not needed any more. */
static clv_status try_division(const chooser *c, const clv__division *division, trial *out) {
    *out = (trial){.division = *division};
    clv_plan *plan = NULL;
    clv__division_describe(division, &c->layers, c->devices, &out->text);
    if (out->text.failed) CLV_FAIL(c->error, CLV_E_HOST_MEMORY, "no host memory for a placement");
    CLV_TRY(plan_with(c, NULL, clv__text_get(&out->text), &plan));
    read_plan(c, plan, out);
    clv_plan_destroy(plan);
    return CLV_OK;
}

static void trial_reset(trial *t) {
    clv__text_reset(&t->text);
    *t = (trial){0};
}

/** Where the plan wants more than there is, the estimate was too low: put it right. */
static void tighten(chooser *c, const trial *t) {
    for (int k = 0; k < t->division.n; k++) {
        int device = t->division.device[k], first = clv__division_first(&t->division, k);
        uint64_t estimate = clv__layers_bytes(&c->layers, device, first, t->division.end[k]);
        if (fill_of(c, device, t->bytes[device]) <= 1 || !estimate) continue;
        double factor = (double)t->bytes[device] / (double)estimate, before = c->limits.factor[device];
        c->limits.factor[device] = factor > before * 1.02 ? factor : before * 1.02;
    }
}

/** Is trial a better than b? For the goals that are told by exact bytes. */
static bool better(clv__goal goal, const trial *a, const trial *b) {
    if (goal == CLV__GOAL_FILL) return a->fullest < b->fullest;
    if (a->fits != b->fits) return a->fits;
    if (goal == CLV__GOAL_BYTES) return a->most_bytes < b->most_bytes;
    for (int k = 0; k < a->division.n; k++) { // FIRST
        if (a->division.end[k] != b->division.end[k]) return a->division.end[k] > b->division.end[k];
    }
    return false;
}

/** Move one cut back by a layer, or forward by up to three, as long as that is better. A cut further on may
 *  be better where the next one is not, because transfers and kernels' memory differ from layer to layer. If
 *  the goal is to fit at all, the first that fits ends the search. */
static clv_status improve(const chooser *c, clv__goal goal, trial *best) {
    static const int steps[] = {-1, 1, 2, 3};
    int left = MOST_STEPS;
    for (bool moved = true; moved && left > 0;) {
        moved = false;
        for (int k = 0; k + 1 < best->division.n; k++) {
            for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
                clv__division near = best->division;
                near.end[k] += steps[i];
                if (near.end[k] < clv__division_first(&near, k) || near.end[k] > near.end[k + 1]) continue;
                if (goal == CLV__GOAL_FILL && best->fits) return CLV_OK;
                trial other;
                clv_status status = left-- > 0 ? try_division(c, &near, &other) : CLV_OK;
                if (status != CLV_OK || left < 0) return status;
                bool won = better(goal, &other, best);
                if (won) {
                    trial_reset(best);
                    *best = other;
                    moved = true;
                } else {
                    trial_reset(&other);
                }
            }
        }
    }
    return CLV_OK;
}

static clv_status refuse(const chooser *c, const trial *t) {
    clv__text holds = {0};
    for (int i = 0; i < c->n_devices; i++) {
        clv__text_add(&holds, "%s%s (%" PRIu64 " bytes) on %s of %s", i ? ", " : "",
                      clv__bytes_text(t->bytes[i]).text, t->bytes[i], c->devices[i]->info.name,
                      clv__bytes_text(c->limits.bytes[i]).text);
    }
    clv_status status = clv__error_set(c->error, CLV_E_BUDGET,
                                       "placement: nothing fits; the nearest, %.300s, would hold %s: raise "
                                       "budgets to that, name more devices, "
                                       "or make the batch smaller",
                                       clv__text_get(&t->text), clv__text_get(&holds));
    clv__text_reset(&holds);
    return status;
}

/** What does not fit as it is may, if activations are computed again. */
static clv_status try_recomputing(chooser *c, trial *best) {
    trial other;
    c->recompute = c->config->plan.recompute;
    CLV_TRY(try_division(c, &best->division, &other));
    trial_reset(best);
    *best = other;
    return CLV_OK;
}

static clv_status search(chooser *c, trial *best) {
    clv__division division;
    for (int i = 0; i < MOST_DIVISIONS && clv__divide(&c->layers, c->goal, &c->limits, &division); i++) {
        CLV_TRY(try_division(c, &division, best));
        if (best->fits) return c->goal == CLV__GOAL_SECONDS ? CLV_OK : improve(c, c->goal, best);
        tighten(c, best);
        trial_reset(best);
    }
    // Not by the estimates; then the least that can be asked of the fullest device, exactly.
    if (!clv__divide(&c->layers, CLV__GOAL_FILL, &c->limits, &division))
        CLV_FAIL(c->error, CLV_E_HOST_MEMORY, "no host memory for a placement");
    CLV_TRY(try_division(c, &division, best));
    CLV_TRY(improve(c, CLV__GOAL_FILL, best));
    if (best->fits) return CLV_OK;
    if (c->recompute != c->config->plan.recompute) CLV_TRY(try_recomputing(c, best));
    return best->fits ? CLV_OK : refuse(c, best);
}

// ---- the result -------------------------------------------------------------------------------------------

static void choice_end(void *what) {
    clv_place_choice *choice = what;
    free(choice->place);
    free(choice->stages);
}

static clv_place_choice *choice_create(const char *place, int n_stages) {
    clv_place_choice *choice = clv__owned(sizeof *choice, choice_end);
    if (!choice) return NULL;
    choice->place = clv__strdup(place);
    choice->stages = clv__alloc((size_t)n_stages, sizeof *choice->stages);
    if (choice->place && choice->stages) return choice;
    clv_free(choice);
    return NULL;
}

static clv_status give(const chooser *c, const trial *best, clv_place_choice **out) {
    *out = choice_create(clv__text_get(&best->text), best->division.n);
    if (!*out) CLV_FAIL(c->error, CLV_E_HOST_MEMORY, "no host memory for a placement");
    for (int k = 0; k < best->division.n; k++) {
        int device = best->division.device[k], first = clv__division_first(&best->division, k);
        if (first == best->division.end[k]) continue;
        (*out)->stages[(*out)->n_stages++] = (clv_place_stage){.device = c->devices[device],
                                                               .layers = best->division.end[k] - first,
                                                               .bytes = best->bytes[device],
                                                               .seconds = best->seconds[device]};
    }
    return CLV_OK;
}

/** The device of a layer's first node. */
static clv_device *device_of(const clv_plan *plan, const char *layer) {
    for (size_t i = 0; i < plan->n_nodes; i++) {
        const clv__plan_node *node = &plan->nodes[i];
        if (node->work == CLV__COMPUTE && strcmp(node->node->layer, layer) == 0)
            return plan->places[node->place].device;
    }
    return NULL;
}

static clv_status give_text(const chooser *c, clv_plan *plan, clv_place_choice **out) {
    clv__layers layers = {0};
    clv_status status = clv__layers_find(plan, &layers);
    int n = clv_plan_info_get(plan).n_devices;
    if (status == CLV_OK && !(*out = choice_create(c->config->place, n)))
        status = clv__error_set(c->error, CLV_E_HOST_MEMORY, "no host memory for a placement");
    for (int i = 0; i < n && status == CLV_OK; i++) {
        clv_place_stage *stage = &(*out)->stages[(*out)->n_stages++];
        stage->device = clv_plan_device_get(plan, i);
        stage->bytes = clv_plans_memory(&plan, 1, stage->device).predicted_peak_bytes;
        for (int k = 0; k < layers.n; k++)
            stage->layers += device_of(plan, layers.items[k].name) == stage->device;
    }
    clv__layers_reset(&layers);
    return status;
}

/** A text that was given: what it says, planned. */
static clv_status take_text(const chooser *c, clv_place_choice **out) {
    clv_plan *plan;
    CLV_TRY(plan_with(c, NULL, c->config->place, &plan));
    clv_status status = give_text(c, plan, out);
    clv_plan_destroy(plan);
    return status;
}

static clv_status choose(chooser *c, clv_place_choice **out) {
    CLV_TRY(begin(c));
    for (int i = 1; i < c->n_devices; i++) CLV_TRY(plan_with(c, c->devices[i], NULL, &c->whole[i]));
    CLV_TRY(check_limits(c));
    for (int i = 0; i < c->n_devices; i++) CLV_TRY(clv__speed_of(c->devices[i], &c->speeds[i]));
    CLV_TRY(clv__layers_weigh(&c->layers, c->whole, c->speeds, c->n_devices));
    trial best = {0};
    clv_status status = search(c, &best);
    if (status == CLV_OK) status = give(c, &best, out);
    trial_reset(&best);
    return status;
}

static void chooser_reset(chooser *c) {
    for (int i = 0; i < CLV__MOST_DEVICES; i++) clv_plan_destroy(c->whole[i]);
    clv__layers_reset(&c->layers);
}

static chooser chooser_of(clv_graph *graph, const clv_place_config *config) {
    // Layers are moved before activations are dropped: `auto` is asked when nothing fits without.
    const char *recompute = config->plan.recompute;
    return (chooser){.graph = graph,
                     .config = config,
                     .error = clv__runtime_error_of(graph->runtime),
                     .recompute = recompute && strcmp(recompute, "auto") == 0 ? NULL : recompute};
}

static clv_status check_text(const chooser *c) {
    if (c->config->n_devices)
        CLV_FAIL(c->error, CLV_E_VALUE,
                 "placement: '%s' says where layers are, devices to choose from are for auto, balanced and "
                 "sequential",
                 c->config->place);
    return clv__plan_place_check(c->graph, c->config->place);
}

clv_status clv_place_check(clv_graph *graph, const clv_place_config *config) {
    CLV_TRY(CLV__GIVEN(NULL, graph));
    CLV_TRY(CLV__USABLE(clv__runtime_error_of(graph->runtime), config));
    chooser c = chooser_of(graph, config);
    if (!goal_of(config->place, &c.goal)) return check_text(&c);
    clv_status status = begin(&c);
    chooser_reset(&c);
    return status;
}

clv_status clv_place_choose(clv_graph *graph, const clv_place_config *config, clv_place_choice **out) {
    CLV_TRY(CLV__GIVEN(NULL, graph));
    CLV_TRY(CLV__USABLE(clv__runtime_error_of(graph->runtime), out));
    CLV_TRY(CLV__USABLE(clv__runtime_error_of(graph->runtime), config));
    *out = NULL;
    chooser c = chooser_of(graph, config);
    if (!goal_of(config->place, &c.goal)) {
        CLV_TRY(check_text(&c));
        return take_text(&c, out);
    }
    clv_status status = choose(&c, out);
    chooser_reset(&c);
    return status;
}
