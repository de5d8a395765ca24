// SPDX-License-Identifier: Apache-2.0
// Who holds the memory of a plan: for the sentence of a refusal, which names layers and the tensor that is too large.
#include <stdlib.h>
#include <string.h>

#include "plan/plan.h"

enum { NAMED = 3 };

/** Bytes of a layer on a device. */
typedef struct holder {
    const char *layer; // so many characters of it
    int length;
    size_t bytes;
} holder;

/** The layer of a tensor: of optimizer state that of its parameter, of what is in no layer the tensor itself. */
static holder holder_of(const clv_tensor *tensor, size_t bytes) {
    const char *end = tensor->category == CLV_OPTIMIZER ? strrchr(tensor->layer, '.') : NULL;
    holder out = {tensor->layer, (int)strlen(tensor->layer), bytes};
    if (end) out.length = (int)(end - tensor->layer);
    if (!*tensor->layer) out = (holder){tensor->name, (int)strlen(tensor->name), bytes};
    return out;
}

static bool in_arena(const clv__value *value) {
    return value->segment == CLV__IN_ACTIVATIONS || value->segment == CLV__IN_GRADIENTS;
}

/** Is this a value with memory of its own in an arena of the place? */
static bool lives_at(const clv_plan *plan, const clv__place *place, size_t i) {
    const clv__value *value = &plan->values[i];
    return &plan->places[value->place] == place && value->root == (int)i && in_arena(value) &&
           value->first <= value->last && value->bytes;
}

/** The position at which most bytes live in the place's arenas. */
static int fullest_moment(const clv_plan *plan, const clv__place *place, int64_t *curve) {
    int at = 0;
    int64_t living = 0, most = -1;
    memset(curve, 0, (plan->n_nodes + 2) * sizeof *curve);
    for (size_t i = 0; i < plan->n_values; i++) {
        const clv__value *value = &plan->values[i];
        if (!lives_at(plan, place, i)) continue;
        curve[value->first] += (int64_t)value->bytes;
        curve[value->last + 1] -= (int64_t)value->bytes;
    }
    for (int k = 0; k < (int)plan->n_nodes; k++) {
        living += curve[k];
        int64_t now = living;
        if (&plan->places[plan->nodes[k].place] == place)
            now += (int64_t)plan->nodes[k].launches.workspace_bytes;
        if (now > most) most = now, at = k;
    }
    return at;
}

static int by_layer(const void *a, const void *b) {
    const holder *x = a, *y = b;
    int order = strncmp(x->layer, y->layer, (size_t)(x->length < y->length ? x->length : y->length));
    return order ? order : x->length - y->length;
}

/** What lives at that moment, by layer, the layers in the order of their names; returns how many. */
static int gather(const clv_plan *plan, const clv__place *place, int moment, holder *all) {
    int n = 0, merged = 0;
    for (int i = 0; i < place->n_persistents; i++) {
        const clv__value *value = &plan->values[place->persistents[i]];
        all[n++] = holder_of(value->tensor, value->bytes);
    }
    for (size_t i = 0; i < plan->n_values; i++) {
        const clv__value *value = &plan->values[i];
        if (lives_at(plan, place, i) && value->first <= moment && value->last >= moment)
            all[n++] = holder_of(value->tensor, value->bytes);
    }
    qsort(all, (size_t)n, sizeof *all, by_layer);
    for (int i = 0; i < n; i++) {
        if (merged && by_layer(&all[merged - 1], &all[i]) == 0)
            all[merged - 1].bytes += all[i].bytes;
        else
            all[merged++] = all[i];
    }
    return merged;
}

/** Of the plans, the one that asks for most in the device's arenas; NULL: none has a part there. */
static const clv_plan *largest_plan(clv_plan *const *plans, int n, const clv_device *device) {
    const clv_plan *found = NULL;
    size_t most = 0;
    for (int p = 0; p < n; p++) {
        const clv__place *place = clv__plan_place_of(plans[p], device);
        if (!place) continue;
        size_t bytes = place->gradients.bytes + place->activations.bytes + place->workspace_bytes;
        if (!found || bytes > most) found = plans[p], most = bytes;
    }
    return found;
}

static void name_most(holder *all, int n, clv__text *text) {
    for (int k = 0; k < NAMED && k < n; k++) {
        int most = 0;
        for (int i = 1; i < n; i++)
            if (all[i].bytes > all[most].bytes) most = i;
        if (!all[most].bytes) return;
        const char *before = k ? ", " : "; the layers that hold most of it: ";
        if (all[most].length)
            clv__text_add(text, "%s'%.*s' %s", before, all[most].length < 80 ? all[most].length : 80,
                          all[most].layer, clv__bytes_text(all[most].bytes).text);
        else
            clv__text_add(text, "%sops outside of layers %s", before, clv__bytes_text(all[most].bytes).text);
        all[most].bytes = 0;
    }
}

void clv__plans_holders(clv_plan *const *plans, int n, const clv_device *device, clv__text *text) {
    const clv_plan *plan = largest_plan(plans, n, device);
    const clv__place *place = plan ? clv__plan_place_of(plan, device) : NULL;
    if (!place) return;
    int64_t *curve = clv__alloc(plan->n_nodes + 2, sizeof *curve);
    holder *all = clv__alloc(plan->n_values + (size_t)place->n_persistents, sizeof *all);
    if (curve && all) name_most(all, gather(plan, place, fullest_moment(plan, place, curve), all), text);
    free(curve);
    free(all);
}

// ---- the largest piece ----------------------------------------------------------------------------------------------

/** The node that makes a value, else the first that reads it; NULL: none. */
static const clv__plan_node *user_of(const clv_plan *plan, int value) {
    const clv__plan_node *reader = NULL;
    for (size_t at = 0; at < plan->n_nodes; at++) {
        const clv__plan_node *node = &plan->nodes[at];
        for (int i = 0; i < CLV__MAX_OUT; i++)
            if (node->out[i] == value && node->work == CLV__COMPUTE) return node;
        for (int i = 0; i < CLV__MAX_IN && !reader; i++)
            if (node->in[i] == value && node->work == CLV__COMPUTE) reader = node;
    }
    return reader;
}

clv__piece clv__place_largest(const clv_plan *plan, const clv__place *place) {
    clv__piece most = {.bytes = place->workspace_bytes, .value = -1};
    for (size_t i = 0; i < plan->n_values; i++) {
        const clv__value *value = &plan->values[i];
        if (&plan->places[value->place] == place && value->segment != CLV__NOWHERE &&
            value->segment != CLV__IN_SHARED && value->bytes > most.bytes)
            most = (clv__piece){.bytes = value->bytes, .value = (int)i};
    }
    return most;
}

/** By tensor id: does its size, or something that it is made of, come from what is fed? Nodes stand in the order of their making. */
static void find_fed(const clv_graph *graph, bool *fed) {
    for (size_t i = 0; i < graph->n_tensors; i++) {
        const clv_tensor *tensor = graph->tensors[i];
        fed[i] = tensor->kind == CLV__INPUT && tensor != graph->random && tensor != graph->hyper;
        for (int k = 0; tensor->node && k < tensor->node->io.n_in; k++) {
            const clv_tensor *in = tensor->node->in[k];
            if (in && (size_t)in->id < i) fed[i] |= fed[in->id];
        }
    }
}

/** Is it smaller with a smaller batch? A parameter is not, nor is its gradient, which is made of what is fed. */
static bool follows_batch(const clv_plan *plan, const clv__value *value) {
    const clv_graph *graph = plan->graph;
    const clv_tensor *tensor = value->tensor;
    if (tensor->kind == CLV__PERSISTENT || tensor->category == CLV_GRADIENTS || tensor->id < 0) return false;
    for (size_t i = 0; tensor->node && tensor->node->phase != CLV__FORWARD && i < plan->n_values; i++) {
        const clv__value *other = &plan->values[i]; // perhaps a term of its gradient
        if (other->tensor->kind == CLV__PERSISTENT && clv_shape_equal(&other->desc.shape, &value->desc.shape))
            return false;
    }
    bool *fed = clv__alloc(graph->n_tensors, sizeof *fed);
    if (!fed) return false;
    find_fed(graph, fed);
    const bool follows = fed[tensor->id];
    free(fed);
    return follows;
}

bool clv__piece_text(const clv_plan *plan, const clv__piece *piece, clv__text *text) {
    const clv__value *value = piece->value < 0 ? NULL : &plan->values[piece->value];
    char shape[160];
    int too_large;
    bool row;
    const clv__node *undone = clv__plan_unsplit(plan, &too_large, &row);
    if (undone) { // what made it too large
        const clv__value *of = &plan->values[too_large];
        clv__node_title title;
        clv__text_add(text, "; %s cannot be done in parts of '%.120s' %s, which has %zu bytes%s",
                      clv__title_of(undone, &title), of->tensor->name,
                      clv_shape_text(&of->desc.shape, shape, sizeof shape), of->bytes,
                      row ? ", too many in one row of its first dimension" : "");
        return follows_batch(plan, of);
    }
    if (!value) {
        clv__text_add(text, "; the largest single buffer is workspace of kernels");
        return true;
    }
    const clv__plan_node *user = user_of(plan, piece->value);
    const char *name = value->tensor->name;
    clv__text_add(text, "; the largest single buffer is %s%.120s%s%s", *name ? "'" : "a tensor", name,
                  *name ? "' " : " ", clv_shape_text(&value->desc.shape, shape, sizeof shape));
    clv__node_title title;
    if (user) clv__text_add(text, " of %.120s", clv__title_of(user->node, &title));
    return follows_batch(plan, value);
}
