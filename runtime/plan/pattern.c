// SPDX-License-Identifier: Apache-2.0
#include "plan/pattern.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static bool matches(const char *glob, const char *layer) {
    if (fnmatch(glob, layer, 0) == 0) return true;
    size_t n = strlen(glob); // `features.*` covers what lies in `features`, and `features` itself
    return n >= 2 && strcmp(glob + n - 2, ".*") == 0 && strlen(layer) == n - 2 &&
           memcmp(glob, layer, n - 2) == 0;
}

int clv__patterns_place(const clv__patterns *patterns, const char *layer) {
    for (size_t i = patterns->n; i-- > 0;) {
        if (*layer && matches(patterns->items[i].glob, layer)) return patterns->items[i].place;
    }
    return -1;
}

void clv__patterns_reset(clv__patterns *patterns) {
    for (size_t i = 0; i < patterns->n; i++) free(patterns->items[i].glob);
    free(patterns->items);
    *patterns = (clv__patterns){0};
}

/** The place of a device, made when it is new. `room` places have been allocated. */
static clv_status place_of(clv_plan *plan, clv_device *device, int *out) {
    for (*out = 0; *out < plan->n_places; (*out)++) {
        if (plan->places[*out].device == device) return CLV_OK;
    }
    if (!device->info.usable) {
        CLV_FAIL(clv__plan_error(plan), CLV_E_UNSUPPORTED, "device %s cannot be used: %s", device->info.name,
                 device->info.reason);
    }
    clv__place *moved = realloc(plan->places, ((size_t)plan->n_places + 1) * sizeof *moved);
    if (!moved) CLV_FAIL(clv__plan_error(plan), CLV_E_HOST_MEMORY, "no host memory for the plan");
    plan->places = moved;
    moved[plan->n_places++] = (clv__place){.device = device};
    return CLV_OK;
}

/** A mistyped way to choose devices (clv_place_choose) comes here too. */
static const char *nearest_method(const char *word, clv__nearest *nearest) {
    static const char *const methods[] = {"auto", "balanced", "sequential"};
    *nearest = (clv__nearest){.word = word};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) clv__nearest_offer(nearest, methods[i]);
    return clv__nearest_text(nearest);
}

static clv_status parse_one(clv_plan *plan, char *item, clv__patterns *out) {
    clv__error *error = clv__plan_error(plan);
    clv__nearest nearest;
    char *equals = strchr(item, '=');
    if (!equals || equals == item || !equals[1])
        CLV_FAIL(error, CLV_E_VALUE, "placement: '%s' is not of the form pattern=device%s", item,
                 nearest_method(item, &nearest));
    *equals = 0;
    clv_device *device;
    clv__pattern pattern = {0};
    CLV_TRY(clv_device_find(plan->graph->runtime, equals + 1, &device));
    CLV_TRY(place_of(plan, device, &pattern.place));
    pattern.glob = clv__strdup(clv__text_trim(item));
    if (!pattern.glob || !clv__grow(&out->items, &out->room, out->n + 1, sizeof *out->items)) {
        free(pattern.glob);
        CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for the plan");
    }
    out->items[out->n++] = pattern;
    return CLV_OK;
}

/** Devices that the graph's builder asked for. */
static clv_status places_of_hints(clv_plan *plan) {
    const char *last = NULL;
    for (size_t i = 0; i < plan->graph->n_nodes; i++) {
        const char *hint = plan->graph->nodes[i]->place_hint;
        if (!hint || hint == last) continue;
        clv_device *device;
        int place;
        CLV_TRY(clv_device_find(plan->graph->runtime, hint, &device));
        CLV_TRY(place_of(plan, device, &place));
        last = hint;
    }
    return CLV_OK;
}

static clv_status parse(clv_plan *plan, const clv_plan_config *config, clv__patterns *out) {
    if (!config || !config->place || !*config->place) {
        clv_device *device = config ? config->device : NULL;
        int place;
        if (!device) CLV_TRY(clv_device_find(plan->graph->runtime, NULL, &device));
        return place_of(plan, device, &place);
    }
    char *text = clv__strdup(config->place), *rest = text;
    clv_status status = CLV_OK;
    if (!text) CLV_FAIL(clv__plan_error(plan), CLV_E_HOST_MEMORY, "no host memory for the plan");
    for (char *item; status == CLV_OK && (item = strsep(&rest, ",")) != NULL;) {
        item = clv__text_trim(item);
        if (*item) status = parse_one(plan, item, out);
    }
    if (status == CLV_OK && out->n == 0)
        status = clv__error_set(clv__plan_error(plan), CLV_E_VALUE, "placement '%s' names no layer",
                                config->place);
    if (status != CLV_OK) clv__patterns_reset(out);
    free(text);
    return status;
}

clv_status clv__patterns_parse(clv_plan *plan, const clv_plan_config *config, clv__patterns *out) {
    CLV_TRY(parse(plan, config, out));
    clv_status status = places_of_hints(plan);
    if (status != CLV_OK) clv__patterns_reset(out);
    return status;
}

static clv_status check_covered(const clv__patterns *patterns, const clv_plan *plan, const bool *needed) {
    const clv_graph *graph = plan->graph;
    char uncovered[512] = "";
    size_t used = 0;
    const char *last = "";
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const clv__node *node = graph->nodes[i];
        if (!needed[i] || node->phase != CLV__FORWARD || node->place_hint || !*node->layer) continue;
        if (clv__patterns_place(patterns, node->layer) >= 0) continue;
        bool owns = false;
        for (int in = 0; in < node->io.n_in; in++)
            owns |= node->in[in] && node->in[in]->kind == CLV__PERSISTENT;
        if (!owns || strcmp(last, node->layer) == 0 || used >= sizeof uncovered) continue;
        int n = snprintf(uncovered + used, sizeof uncovered - used, "%s'%s'", used ? ", " : "", node->layer);
        if (n > 0) used += (size_t)n;
        last = node->layer;
    }
    if (!used) return CLV_OK;
    CLV_FAIL(clv__plan_error(plan), CLV_E_VALUE,
             "placement: no pattern covers %s; add one, or `*=device` first for all others", uncovered);
}

clv_status clv__patterns_match(const clv__patterns *patterns, const clv_plan *plan) {
    const clv_graph *graph = plan->graph;
    for (size_t k = 0; k < patterns->n; k++) {
        const char *glob = patterns->items[k].glob;
        bool matched = strcmp(glob, "*") == 0;
        for (size_t i = 0; i < graph->n_nodes && !matched; i++)
            matched = *graph->nodes[i]->layer && matches(glob, graph->nodes[i]->layer);
        clv__nearest nearest;
        if (!matched)
            CLV_FAIL(clv__plan_error(plan), CLV_E_NOT_FOUND, "placement: no layer matches '%s'%s", glob,
                     clv__graph_nearest(graph, glob, &nearest));
    }
    return CLV_OK;
}

clv_status clv__patterns_check(const clv__patterns *patterns, const clv_plan *plan, const bool *needed) {
    if (patterns->n == 0) return CLV_OK;
    CLV_TRY(clv__patterns_match(patterns, plan)); // a mistyped name leaves its layer uncovered, too
    return check_covered(patterns, plan, needed);
}
