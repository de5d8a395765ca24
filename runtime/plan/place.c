// SPDX-License-Identifier: Apache-2.0
// The nodes that lead to an output or update something in place; the place of each; their order (schedule.c);
// and a transfer wherever a value is needed on another device than the one it was made on.
//
// Rules, in this order: a gradient is computed where its forward node is; an update where its parameter is; a forward
// node goes where the graph's builder put it (clv_graph_set_place), else where the last pattern that matches its layer
// says; a node without a layer of its own (a relu between two layers) follows the newest of the data it gets, or if that is
// fed (a slice of the batch) goes where it is read. Parameters live where their layer is first used.
//
// A value is sent as soon as it is made and received as late as it can be, just before its first use, so that devices
// wait for each other as little as possible; parameters that are used away from home are sent first of all. Updates come
// last, after everything they read has arrived: a step that fails before them changes nothing that lasts.
#include <stdlib.h>

#include "plan/passes.h"
#include "plan/pattern.h"
#include "plan/plan.h"
#include "plan/schedule.h"

typedef struct placing {
    clv_plan *plan;
    const clv__patterns *patterns;
    bool strict;
    bool *needed;    // by node id
    int *node_place; // by node id
    // place where a tensor is made or kept, by tensor id; -1: not yet, or fed wherever it is used
    int *made_at;
    bool *wanted;    // by tensor id * n_places + place: used there
    int *on_its_way; // the same: transfer that was sent there, plus one
    int *value_at;   // the same: the tensor's value there, plus one
    // by tensor id: the node that exchanges it with other ranks as soon as it is made; NULL: none
    const clv__node **exchanged_by;
} placing;

/** The value of a tensor at a place, -1 if it is not there yet. While nodes are placed there is one at most. */
static int value_at(const placing *p, const clv_tensor *tensor, int place) {
    return tensor ? p->value_at[tensor->id * p->plan->n_places + place] - 1 : -1;
}

// ---- what is needed -----------------------------------------------------------------------------------------------------

/** Does a node write in place what is kept of a training? A cache is of what is computed only. */
static bool updates(const clv__node *node) {
    for (int i = 0; i < node->io.n_in; i++)
        if (node->io.op->mutates >> i & 1 && node->in[i] && node->in[i]->category != CLV_ACTIVATIONS)
            return true;
    return false;
}

static void find_needed(placing *p) {
    const clv_graph *graph = p->plan->graph;
    for (int id = (int)graph->n_nodes - 1; id >= 0; id--) {
        const clv__node *node = graph->nodes[id];
        if (node->io.op->mutates) p->needed[id] = true;
        for (int i = 0; i < node->io.n_out; i++) p->needed[id] |= node->out[i]->is_output;
        if (!p->needed[id]) continue;
        p->plan->trains |= updates(node);
        for (int i = 0; i < node->io.n_in; i++) {
            if (node->in[i] && node->in[i]->node) p->needed[node->in[i]->node->id] = true;
        }
    }
}

// ---- where it is computed -----------------------------------------------------------------------------------------------

/** A forward node goes where the newest of its data was made: what is added to a result far behind stays where the work is
 *  now. -1: none has a place. */
static int follow_newest(const placing *p, const clv__node *node) {
    const clv_tensor *newest = NULL;
    for (int i = 0; i < node->io.n_in; i++) {
        const clv_tensor *in = node->in[i];
        if (in && in->node && p->made_at[in->id] >= 0 && (!newest || in->node->id > newest->node->id))
            newest = in;
    }
    return newest ? p->made_at[newest->id] : -1;
}

/** Where the data comes from: the place of the first input that has one; -1: none has. */
static int follow_inputs(const placing *p, const clv__node *node) {
    for (int pass = 0; pass < 2; pass++) { // values before parameters
        for (int i = 0; i < node->io.n_in; i++) {
            const clv_tensor *in = node->in[i];
            if (in && in->kind == (pass ? CLV__PERSISTENT : CLV__VALUE) && p->made_at[in->id] >= 0)
                return p->made_at[in->id];
        }
    }
    return -1;
}

/** State that nothing has used yet is where the parameter is that it is made from; -1: it is made from none. */
static int beside_parameter(const placing *p, const clv__node *node) {
    for (int i = 0; i < node->io.n_in; i++) {
        const clv_tensor *in = node->in[i];
        if (in && in->trainable && p->made_at[in->id] >= 0) return p->made_at[in->id];
    }
    return -1;
}

/** The place the builder asked for; the devices have been found before. */
static int hinted_place(const clv_plan *plan, const char *hint) {
    clv_device *device;
    if (clv_device_find(plan->graph->runtime, hint, &device) != CLV_OK) return 0;
    const clv__place *place = clv__plan_place_of(plan, device);
    return place ? (int)(place - plan->places) : 0;
}

/** -1: its data has no place yet, so it goes where its result is used. */
static int choose_place(const placing *p, const clv__node *node) {
    if (p->plan->n_places == 1) return 0;
    if (node->phase == CLV__FORWARD && node->place_hint) return hinted_place(p->plan, node->place_hint);
    if (node->phase == CLV__BACKWARD && node->of) return p->node_place[node->of->id];
    if (node->phase == CLV__UPDATE || node->phase == CLV__BACKWARD) {
        for (int i = 0; i < node->io.n_in; i++) {
            if (node->in[i] && node->io.op->mutates >> i & 1 && p->made_at[node->in[i]->id] >= 0)
                return p->made_at[node->in[i]->id];
        }
        const int at = node->io.op->mutates ? beside_parameter(p, node) : -1;
        return at >= 0 ? at : follow_inputs(p, node);
    }
    int place = clv__patterns_place(p->patterns, node->layer);
    if (place < 0) place = follow_newest(p, node);
    return place >= 0 ? place : follow_inputs(p, node);
}

/** The node is computed there, what it makes is there, and so are parameters that it is the first to use. */
static void settle(placing *p, const clv__node *node, int place) {
    p->node_place[node->id] = place;
    for (int i = 0; i < node->io.n_out; i++) p->made_at[node->out[i]->id] = place;
    for (int i = 0; i < node->io.n_in && place >= 0; i++) {
        const clv_tensor *in = node->in[i];
        if (!in || in->kind != CLV__PERSISTENT || p->made_at[in->id] >= 0) continue;
        // optimizer state has no layer of its own: it is where its parameter is updated, whoever looks at it before
        if (in->category == CLV_OPTIMIZER && node->phase == CLV__FORWARD) continue;
        int own = in->category == CLV_OPTIMIZER ? -1 : clv__patterns_place(p->patterns, in->layer);
        p->made_at[in->id] = own >= 0 ? own : place;
    }
}

/** Forward nodes that follow what is fed, which is wherever it is used: they go to the first node that reads them. */
static void settle_at_readers(placing *p) {
    const clv_graph *graph = p->plan->graph;
    for (int id = (int)graph->n_nodes - 1; id >= 0; id--) {
        const clv__node *node = graph->nodes[id];
        if (!p->needed[id] || node->phase != CLV__FORWARD) continue;
        settle(p, node, p->node_place[id] >= 0 ? p->node_place[id] : 0);
        for (int i = 0; i < node->io.n_in; i++) {
            const clv_tensor *in = node->in[i];
            if (in && in->node && p->made_at[in->id] < 0) p->node_place[in->node->id] = p->node_place[id];
        }
    }
}

static void assign(placing *p) {
    const clv_graph *graph = p->plan->graph;
    for (size_t id = 0; id < graph->n_nodes; id++) {
        const clv__node *node = graph->nodes[id];
        if (p->needed[id] && node->phase == CLV__FORWARD) settle(p, node, choose_place(p, node));
    }
    settle_at_readers(p);
    for (size_t id = 0; id < graph->n_nodes; id++) {
        const clv__node *node = graph->nodes[id];
        if (!p->needed[id] || node->phase == CLV__FORWARD) continue;
        int place = choose_place(p, node);
        settle(p, node, place >= 0 ? place : 0);
    }
    for (size_t id = 0; id < graph->n_nodes; id++) {
        const clv__node *node = graph->nodes[id];
        for (int i = 0; i < node->io.n_in && p->needed[id]; i++) {
            const clv_tensor *in = node->in[i];
            if (!in) continue;
            p->wanted[in->id * p->plan->n_places + p->node_place[id]] = true;
            // optimizer state that is looked at and never updated
            if (in->kind == CLV__PERSISTENT && p->made_at[in->id] < 0) p->made_at[in->id] = p->node_place[id];
        }
        if (p->needed[id] && node->io.op->mutates) p->plan->places[p->node_place[id]].updates = true;
    }
}

// ---- values, nodes, transfers ---------------------------------------------------------------------------------------------

static clv_status add_value(placing *p, const clv_tensor *tensor, int place, bool copy, int *out) {
    int number;
    clv__value value = clv__value_of(tensor, place);
    value.copy = copy;
    CLV_TRY(clv__plan_append_value(p->plan, &value, &number));
    p->value_at[tensor->id * p->plan->n_places + place] = number + 1;
    if (out) *out = number;
    return CLV_OK;
}

/** Send a value to another place. It is received when it is needed there. */
static clv_status send_to(placing *p, const clv_tensor *tensor, int place) {
    clv_plan *plan = p->plan;
    int from = value_at(p, tensor, p->made_at[tensor->id]);
    if (!clv__grow(&plan->transfers, &plan->transfers_room, plan->n_transfers + 1, sizeof *plan->transfers))
        return clv__plan_no_memory(plan);
    int number = (int)plan->n_transfers++;
    plan->transfers[number] = (clv__transfer){.from = from, .to = -1, .bytes = plan->values[from].bytes};
    p->on_its_way[tensor->id * plan->n_places + place] = number + 1;
    clv__plan_node end = clv__plan_node_of(CLV__SEND, tensor->node, plan->values[from].place);
    end.in[0] = from;
    end.transfer = number;
    return clv__plan_append(plan, &end);
}

/** Strict mode: data may cross only where clv_to says so. Weights of a layer that the builder put somewhere go with it, and
 *  gradients cross back where the data crossed. */
static clv_status check_crossing(const placing *p, const clv_tensor *tensor, const clv__node *node,
                                 int place) {
    if (!p->strict || node->phase != CLV__FORWARD || node->io.op->moves) return CLV_OK;
    if (tensor->kind == CLV__PERSISTENT && node->place_hint) return CLV_OK;
    const clv_plan *plan = p->plan;
    const char *here = plan->places[p->made_at[tensor->id]].device->info.name,
               *there = plan->places[place].device->info.name;
    CLV_FAIL(clv__plan_error(plan), CLV_E_MISMATCH,
             "%s '%s' is computed on %s, and its input '%s' is on %s: move it with clv_to(x, \"%s\"), put "
             "both on one device, or "
             "allow implicit transfers",
             node->io.op->name, node->layer, there, tensor->name, here, there);
}

static clv_status send_where_wanted(placing *p, const clv_tensor *tensor);

static bool is_exchanged(const clv_tensor *tensor) {
    return tensor->node && tensor->node->io.op->exchanges;
}

static clv_status receive_at(placing *p, const clv_tensor *tensor, int place, const clv__node *needed_by) {
    clv_plan *plan = p->plan;
    const int home = p->made_at[tensor->id];
    if (is_exchanged(tensor) && place != home && value_at(p, tensor, home) < 0)
        CLV_TRY(receive_at(p, tensor, home, needed_by));
    int number = p->on_its_way[tensor->id * plan->n_places + place] - 1, to = -1;
    const bool exchanged = plan->transfers[number].exchanged != NULL;
    if (!exchanged) CLV_TRY(check_crossing(p, tensor, needed_by, place));
    CLV_TRY(add_value(p, tensor, place, !exchanged, &to));
    plan->transfers[number].to = to;
    clv__plan_node end = clv__plan_node_of(CLV__RECEIVE, tensor->node, place);
    end.out[0] = to;
    end.transfer = number;
    CLV_TRY(clv__plan_append(plan, &end));
    return exchanged ? send_where_wanted(p, tensor) : CLV_OK;
}

/** A constant is made wherever it is read. */
static bool is_made_anywhere(const clv_tensor *tensor) {
    return tensor->node && tensor->node->io.n_in == 0 && !tensor->is_output;
}

/** Send a tensor to every other place that wants it. */
static clv_status send_where_wanted(placing *p, const clv_tensor *tensor) {
    if (is_made_anywhere(tensor)) return CLV_OK;
    for (int place = 0; place < p->plan->n_places; place++) {
        if (place != p->made_at[tensor->id] && p->wanted[tensor->id * p->plan->n_places + place])
            CLV_TRY(send_to(p, tensor, place));
    }
    return CLV_OK;
}

/** Parameters are at home, and on their way to wherever else they are used. */
static clv_status begin_with_persistents(placing *p) {
    const clv_graph *graph = p->plan->graph;
    for (size_t i = 0; i < graph->n_tensors; i++) {
        const clv_tensor *tensor = graph->tensors[i];
        if (tensor->kind != CLV__PERSISTENT || p->made_at[i] < 0) continue;
        CLV_TRY(add_value(p, tensor, p->made_at[i], false, NULL));
        CLV_TRY(send_where_wanted(p, tensor));
    }
    return CLV_OK;
}

/** Write a node without inputs at a place. */
static clv_status make_there(placing *p, const clv__node *node, int place) {
    clv__plan_node at = clv__plan_node_of(CLV__COMPUTE, node, place);
    CLV_TRY(add_value(p, node->out[0], place, false, &at.out[0]));
    return clv__plan_append(p->plan, &at);
}

/** A tensor that the node reads is at its place: fed or made there, or received. */
static clv_status ensure_input(placing *p, const clv_tensor *in, const clv__node *node, int place) {
    if (value_at(p, in, place) >= 0) return CLV_OK;
    if (in->kind == CLV__INPUT) return add_value(p, in, place, false, NULL);
    if (is_made_anywhere(in)) return make_there(p, in->node, place);
    return receive_at(p, in, place, node);
}

static clv_status ensure_inputs(placing *p, const clv__node *node, int place) {
    for (int i = 0; i < node->io.n_in; i++)
        if (node->in[i]) CLV_TRY(ensure_input(p, node->in[i], node, place));
    return CLV_OK;
}

/** Hand what the node exchanges to the other ranks, as soon as it is made. What comes of it is received when it is needed. */
static clv_status exchange(placing *p, const clv__node *node) {
    clv_plan *plan = p->plan;
    const int place = p->node_place[node->id];
    int *sent = &p->on_its_way[node->out[0]->id * plan->n_places + place];
    if (*sent) return CLV_OK;
    CLV_TRY(ensure_inputs(p, node, place));
    if (!clv__grow(&plan->transfers, &plan->transfers_room, plan->n_transfers + 1, sizeof *plan->transfers))
        return clv__plan_no_memory(plan);
    const int number = (int)plan->n_transfers++, from = value_at(p, node->in[0], place);
    const int into = node->io.n_in > 1 ? value_at(p, node->in[1], place) : from;
    const clv__exchanged *how = node->attrs;
    const size_t whole = plan->values[into].bytes, part = (size_t)how->length * sizeof(float),
                 at = (size_t)how->begin * sizeof(float);
    clv__transfer *transfer = &plan->transfers[number];
    *transfer = (clv__transfer){.from = from,
                                .to = -1,
                                .bytes = whole,
                                .exchanged = node,
                                .sent_bytes = whole,
                                .came_bytes = whole,
                                .into = into};
    if (how->kind == CLV__EXCHANGE_GATHER) transfer->sent_at = at, transfer->sent_bytes = part;
    if (how->kind == CLV__EXCHANGE_SCATTER) transfer->came_at = at, transfer->came_bytes = part;
    *sent = number + 1;
    clv__plan_node end = clv__plan_node_of(CLV__SEND, node, place);
    end.in[0] = from;
    end.transfer = number;
    return clv__plan_append(plan, &end);
}

static clv_status exchange_made(placing *p, const clv__node *node, int place) {
    for (int i = 0; i < node->io.n_out; i++) {
        const clv__node *by = p->exchanged_by[node->out[i]->id];
        if (by && p->node_place[by->id] == place) CLV_TRY(exchange(p, by));
    }
    return CLV_OK;
}

/** In the order in which they were handed over: who waits for the last one has all. */
static clv_status receive_exchanged(placing *p) {
    for (size_t i = 0; i < p->plan->n_transfers; i++) { // a received one may be sent on
        const clv__transfer *transfer = &p->plan->transfers[i];
        if (!transfer->exchanged || transfer->to >= 0) continue;
        const clv__node *by = transfer->exchanged;
        CLV_TRY(receive_at(p, by->out[0], p->node_place[by->id], by));
    }
    return CLV_OK;
}

static clv_status write_node(placing *p, const clv__node *node) {
    const int place = p->node_place[node->id];
    if (node->io.op->exchanges) return exchange(p, node);
    clv__plan_node at = clv__plan_node_of(CLV__COMPUTE, node, place);
    if (node->io.op->part) at.within = (size_t)((const clv__exchanged *)node->attrs)->begin * sizeof(float);
    CLV_TRY(ensure_inputs(p, node, place));
    for (int i = 0; i < node->io.n_in; i++) at.in[i] = value_at(p, node->in[i], place);
    for (int i = 0; i < node->io.n_out; i++) CLV_TRY(add_value(p, node->out[i], place, false, &at.out[i]));
    CLV_TRY(clv__plan_append(p->plan, &at));
    for (int i = 0; i < node->io.n_out; i++) CLV_TRY(send_where_wanted(p, node->out[i]));
    return exchange_made(p, node, place);
}

/** What updates read and no update made is there before the first of them writes: a transfer that fails leaves everything
 *  that lasts as it was. */
static clv_status receive_for_updates(placing *p) {
    const clv_graph *graph = p->plan->graph;
    CLV_TRY(receive_exchanged(p));
    for (size_t id = 0; id < graph->n_nodes; id++) {
        const clv__node *node = graph->nodes[id];
        if (!p->needed[id] || node->phase != CLV__UPDATE) continue;
        for (int i = 0; i < node->io.n_in; i++) {
            const clv_tensor *in = node->in[i];
            if (!in || (in->node && in->node->phase == CLV__UPDATE)) continue;
            CLV_TRY(ensure_input(p, in, node, p->node_place[id]));
        }
    }
    return CLV_OK;
}

static bool has_groups(const clv__schedule *schedule, const clv_graph *graph, size_t i) {
    if (i >= schedule->n) return false;
    const clv__op *op = graph->nodes[schedule->nodes[i]]->io.op;
    return op->groups.size > 0 && op->mutates;
}

/** Uses that change groups of tensors and make nothing depend on no other: those of a place follow each other, so that they can
 *  be done together. From node i of the schedule; *next: the first after them. */
static clv_status write_groups(placing *p, const clv__schedule *schedule, size_t i, size_t *next) {
    const clv_graph *graph = p->plan->graph;
    *next = i;
    while (has_groups(schedule, graph, *next)) ++*next;
    for (int place = 0; place < p->plan->n_places; place++) {
        for (size_t j = i; j < *next; j++) {
            const int id = schedule->nodes[j];
            if (p->node_place[id] == place) CLV_TRY(write_node(p, graph->nodes[id]));
        }
    }
    return CLV_OK;
}

/** In the order of the schedule: updates come last. */
static clv_status write_down(placing *p) {
    const clv_graph *graph = p->plan->graph;
    clv__schedule schedule;
    CLV_TRY(clv__schedule_make(p->plan, p->needed, p->node_place, &schedule));
    clv_status status = begin_with_persistents(p);
    for (size_t i = 0, next; i < schedule.n && status == CLV_OK; i = next) {
        next = i + 1;
        if (i == schedule.first_update) status = receive_for_updates(p);
        if (status != CLV_OK) break;
        status = has_groups(&schedule, graph, i) ? write_groups(p, &schedule, i, &next)
                                                 : write_node(p, graph->nodes[schedule.nodes[i]]);
    }
    if (status == CLV_OK) status = receive_exchanged(p);
    clv__schedule_reset(&schedule);
    return status;
}

// ---- what each place holds ----------------------------------------------------------------------------------------------

static clv_status collect(clv_plan *plan, int place, clv__tensor_kind kind, int **values, int *n) {
    *values = clv__arena_alloc(&plan->arena, plan->n_values + 1, sizeof **values);
    if (!*values) return clv__plan_no_memory(plan);
    for (size_t i = 0; i < plan->n_values; i++) {
        const clv__value *value = &plan->values[i];
        if (value->place != place || value->copy || value->tensor->kind != kind) continue;
        if (kind != CLV__VALUE || value->tensor->is_output) (*values)[(*n)++] = (int)i;
    }
    return CLV_OK;
}

/** One alignment for all places, so that a tensor of one can be read by another where it is. */
static void align(clv_plan *plan) {
    size_t most = 0;
    for (int i = 0; i < plan->n_places; i++) {
        const size_t wanted = plan->places[i].device->info.alignment_bytes;
        if (wanted > most) most = wanted;
    }
    for (int i = 0; i < plan->n_places; i++) plan->places[i].alignment = most;
}

static clv_status describe_places(clv_plan *plan) {
    align(plan);
    for (int i = 0; i < plan->n_places; i++) {
        clv__place *at = &plan->places[i];
        const clv__place *there =
            plan->same_session ? clv__plan_place_of(plan->same_session, at->device) : NULL;
        if (there) at->same_session_bytes = there->activations.bytes; // what the session has anyway
        CLV_TRY(collect(plan, i, CLV__INPUT, &at->inputs, &at->n_inputs));
        CLV_TRY(collect(plan, i, CLV__VALUE, &at->outputs, &at->n_outputs));
        CLV_TRY(collect(plan, i, CLV__PERSISTENT, &at->persistents, &at->n_persistents));
        for (int k = 0; k < at->n_inputs && (plan->n_places > 1 || plan->n_transfers > 0); k++)
            if (plan->values[at->inputs[k]].tensor->late)
                CLV_FAIL(clv__plan_error(plan), CLV_E_UNSUPPORTED,
                         "input '%s' is fed late, which a plan on several devices or ranks cannot do",
                         plan->values[at->inputs[k]].tensor->name);
    }
    return CLV_OK;
}

clv_status clv__plan_place_check(clv_graph *graph, const char *place) {
    CLV_TRY(clv__graph_built(graph));
    clv_plan plan = {.graph = graph};
    clv__patterns patterns = {0};
    placing p = {.plan = &plan, .needed = clv__alloc(graph->n_nodes, sizeof *p.needed)};
    clv_status status = p.needed ? CLV_OK : clv__plan_no_memory(&plan);
    if (status == CLV_OK) status = clv__patterns_parse(&plan, &(clv_plan_config){.place = place}, &patterns);
    if (status == CLV_OK) {
        find_needed(&p);
        status = clv__patterns_check(&patterns, &plan, p.needed);
    }
    clv__patterns_reset(&patterns);
    free(plan.places);
    free(p.needed);
    return status;
}

static clv_status place(placing *p, const clv__patterns *patterns, clv__arena *scratch) {
    clv_plan *plan = p->plan;
    const clv_graph *graph = plan->graph;
    const size_t n = (size_t)plan->n_places;
    const size_t nodes = graph->n_nodes, tensors = graph->n_tensors;
    if (!CLV__NEW(scratch, p->needed, nodes) || !CLV__NEW(scratch, p->node_place, nodes) ||
        !CLV__NEW(scratch, p->made_at, tensors) || !CLV__NEW(scratch, p->wanted, tensors * n) ||
        !CLV__NEW(scratch, p->on_its_way, tensors * n) || !CLV__NEW(scratch, p->value_at, tensors * n) ||
        !CLV__NEW(scratch, p->exchanged_by, tensors))
        return clv__plan_no_memory(plan);
    for (size_t i = 0; i < graph->n_tensors; i++) p->made_at[i] = -1;
    find_needed(p);
    CLV_TRY(clv__patterns_check(patterns, plan, p->needed));
    for (size_t id = 0; id < nodes; id++)
        if (p->needed[id] && graph->nodes[id]->io.op->exchanges && graph->nodes[id]->io.n_in == 1)
            p->exchanged_by[graph->nodes[id]->in[0]->id] = graph->nodes[id];
    assign(p);
    CLV_TRY(write_down(p));
    CLV_TRY(describe_places(plan));
    if (plan->n_nodes == 0)
        CLV_FAIL(clv__plan_error(plan), CLV_E_VALUE,
                 "the graph has no outputs and updates nothing: mark a result with clv_output");
    return CLV_OK;
}

static clv_status run(clv_plan *plan) {
    clv__patterns patterns = {0};
    clv__arena scratch = {0};
    placing p = {.plan = plan, .patterns = &patterns, .strict = plan->config->explicit_transfers};
    clv_status status = clv__patterns_parse(plan, plan->config, &patterns);
    if (status == CLV_OK) status = place(&p, &patterns, &scratch);
    clv__patterns_reset(&patterns);
    clv__arena_reset(&scratch);
    return status;
}

const clv__pass clv__pass_place = {.run = run};
