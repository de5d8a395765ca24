// SPDX-License-Identifier: Apache-2.0
// Part of place: in data parallel training over two devices of one kind, in memory that both see, the second does half of the
// updates, where otherwise it would wait for the first to do them all. Parameters and optimizer state stay at home: the second
// writes them where they lie (lend.c). What moves is the update, and with it the sum of its gradient's two terms, of which
// either device made one; of a parameter that is much of the model each does half. The values are the same bits.
//
// Not for small models, where the first device would wait longer for the second's end than the updates take; not where
// somebody else wants the sum (to fetch it, clip it, look for what is not finite), as in sums.c; not where somebody sees the
// parameter's memory under another name (a reshaped weight that is fetched); not what lies in pieces; and not where a failed step has to leave everything
// as it was (clv_plan_config.whole_steps), for the second device may fail when the first has begun to update.
#include <stdlib.h>
#include <string.h>

#include "ops/elementwise.h"
#include "plan/plan.h"

enum {
    LEAST_ELEMENTS = 1 << 17,  // of all updates that may be shared: below 0.05 ms of one core's work is saved
    LEAST_PARAMETER = 1 << 15, // elements of one that may move: smaller ones are few launches, all at home
    MOST_WHOLE = 4             // an update is cut in two if it is more than this part of all
};

typedef struct candidate {
    int node;     // id
    int to;       // place
    int64_t size; // elements of its parameter
} candidate;

typedef struct sharing {
    clv_plan *plan;
    const bool *needed; // by node id
    int *node_place;    // by node id
    int *made_at;       // by tensor id
    int *also_at;       // by node id
    int *readers;       // by tensor id: how many nodes that are needed read it
    candidate *candidates;
    int n;
} sharing;

static bool is_one_kind(const clv_plan *plan, int a, int b) {
    const clv_device_info *x = &plan->places[a].device->info, *y = &plan->places[b].device->info;
    return x->type == y->type && x->type != CLV_DEVICE_HOST && x->compute_units == y->compute_units &&
           strcmp(x->backend, y->backend) == 0 && strcmp(x->platform_name, y->platform_name) == 0 &&
           strcmp(x->driver, y->driver) == 0;
}

static bool only_reader(const sharing *s, const clv_tensor *tensor) {
    return s->readers[tensor->id] == 1 && !tensor->is_output;
}

/** Do nodes at these two places alone read it, and does nothing that is seen of it through a view leave its place or the step? That
 *  would be its memory under another name, which somebody reads while the update writes there. */
static bool stays_between(const sharing *s, const clv_tensor *tensor, int a, int b) {
    const clv_graph *graph = s->plan->graph;
    for (size_t id = 0; id < graph->n_nodes; id++) {
        const clv__node *node = graph->nodes[id];
        const int place = s->node_place[id];
        bool reads = false;
        for (int i = 0; s->needed[id] && i < node->io.n_in; i++) reads |= node->in[i] == tensor;
        if (!reads) continue;
        if (place != a && place != b) return false;
        if (!node->io.op->view) continue;
        if (node->out[0]->is_output || !stays_between(s, node->out[0], place, place)) return false;
    }
    return true;
}

/** May what the update changes be written where it lies, at `home`, from the other place? */
static bool can_be_written(const sharing *s, const clv__node *update, int home, int other) {
    for (int i = 0; i < update->io.n_in; i++) {
        const clv_tensor *in = update->in[i];
        if (!in || !(update->io.op->mutates & (1u << i))) continue;
        if (s->made_at[in->id] != home) return false;
        if (s->readers[in->id] > 1 && !stays_between(s, in, home, other)) return false; // one is the update
    }
    return true;
}

/** Is it made for its reader alone, and not wherever it is read, as a constant is? */
static bool is_term(const sharing *s, const clv_tensor *tensor) {
    return only_reader(s, tensor) && tensor->node && tensor->node->io.n_in > 0;
}

/** The sum that an update alone reads, and whose two terms were made for it alone; NULL if there is none. */
static const clv__node *sum_of(const sharing *s, const clv__node *update) {
    const clv__groups *groups = &update->io.op->groups;
    if (!groups->sum) return NULL;
    const clv_tensor *gradient = update->in[groups->first + groups->sum];
    const clv__node *sum = gradient->node;
    if (!sum || sum->phase != CLV__BACKWARD || !clv__elementwise_adds(&sum->io)) return NULL;
    bool alone = only_reader(s, gradient) && is_term(s, sum->in[0]) && is_term(s, sum->in[1]);
    return alone && s->node_place[sum->id] == s->node_place[update->id] ? sum : NULL;
}

/** Is it too large for one allocation there? (split.c) Pieces are carried by themselves, and need not be cut alike. */
static bool lies_in_pieces(const clv_plan *plan, const clv__desc *desc, int place) {
    return clv__desc_bytes(desc) > clv__split_largest(plan->places[place].device);
}

/** The other place at which an update may be done; -1 if there is none. */
static int other_place(const sharing *s, const clv__node *update) {
    const clv__node *sum = sum_of(s, update);
    if (!sum) return -1;
    const clv_plan *plan = s->plan;
    const clv__desc *parameter = &update->in[update->io.op->groups.first]->desc;
    const int home = s->node_place[update->id], first = s->made_at[sum->in[0]->id],
              second = s->made_at[sum->in[1]->id], other = first == home ? second : first;
    if ((first == home) == (second == home) || other < 0) return -1;
    if (lies_in_pieces(plan, parameter, home) || lies_in_pieces(plan, parameter, other)) return -1;
    bool possible = is_one_kind(plan, home, other) && clv__plan_may_lend(plan, home, other) &&
                    clv__plan_may_lend(plan, other, home) && can_be_written(s, update, home, other);
    return possible ? other : -1;
}

static int larger_first(const void *a, const void *b) {
    const candidate *x = a, *y = b;
    if (x->size != y->size) return x->size < y->size ? 1 : -1;
    return x->node - y->node;
}

/** Candidates, and how many elements each place updates without them. Returns how many these have. */
static int64_t find_candidates(sharing *s, int64_t *load) {
    const clv_graph *graph = s->plan->graph;
    int64_t all = 0;
    for (size_t id = 0; id < graph->n_nodes; id++) {
        const clv__node *node = graph->nodes[id];
        for (int i = 0; s->needed[id] && i < node->io.n_in; i++)
            if (node->in[i]) s->readers[node->in[i]->id]++;
    }
    for (size_t id = 0; id < graph->n_nodes; id++) {
        const clv__node *node = graph->nodes[id];
        if (!s->needed[id] || node->phase != CLV__UPDATE || !node->io.op->groups.size) continue;
        const int64_t size = clv_tensor_numel(node->in[node->io.op->groups.first]);
        const int to = size < LEAST_PARAMETER ? -1 : other_place(s, node);
        if (to < 0) {
            load[s->node_place[id]] += size;
        } else {
            s->candidates[s->n++] = (candidate){(int)id, to, size};
            all += size;
        }
    }
    return all;
}

/** The largest first, each where less is to be done so far. */
static void deal_out(const sharing *s, int64_t *load, int64_t all) {
    const clv_graph *graph = s->plan->graph;
    qsort(s->candidates, (size_t)s->n, sizeof *s->candidates, larger_first);
    for (int i = 0; i < s->n; i++) {
        const candidate *c = &s->candidates[i];
        const int home = s->node_place[c->node], sum = sum_of(s, graph->nodes[c->node])->id;
        if (c->size > all / MOST_WHOLE) {
            s->also_at[c->node] = s->also_at[sum] = c->to + 1;
            load[home] += c->size / 2;
            load[c->to] += c->size / 2;
        } else if (load[c->to] < load[home]) {
            s->node_place[c->node] = s->node_place[sum] = c->to;
            s->made_at[graph->nodes[sum]->out[0]->id] = c->to;
            load[c->to] += c->size;
        } else {
            load[home] += c->size;
        }
    }
}

clv_status clv__plan_share_updates(clv_plan *plan, const bool *needed, int *node_place, int *made_at,
                                   int *also_at) {
    plan->shares = false;
    if (plan->n_places == 1 || plan->whole_steps) return CLV_OK;
    if (plan->no_fuse) return CLV_OK; // sums are made by nodes of their own then
    const clv_graph *graph = plan->graph;
    sharing s = {.plan = plan,
                 .needed = needed,
                 .node_place = node_place,
                 .made_at = made_at,
                 .also_at = also_at,
                 .readers = clv__alloc(graph->n_tensors, sizeof *s.readers),
                 .candidates = clv__alloc(graph->n_nodes, sizeof *s.candidates)};
    int64_t *load = clv__alloc((size_t)plan->n_places, sizeof *load);
    clv_status status = CLV_OK;
    if (s.readers && s.candidates && load) {
        const int64_t all = find_candidates(&s, load);
        plan->shares = all >= LEAST_ELEMENTS;
        if (plan->shares) deal_out(&s, load, all);
    } else {
        status = clv__error_set(clv__plan_error(plan), CLV_E_HOST_MEMORY, "no host memory for the plan");
    }
    free(s.readers);
    free(s.candidates);
    free(load);
    return status;
}
