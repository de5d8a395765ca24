// SPDX-License-Identifier: Apache-2.0
// The order of execution with micro-batches: one forward, one backward (1F1B, PipeDream-flush: Narayanan et
// al. 2021, arXiv:2104.04473, section 2.2.1). Without micro-batches it is the graph's order.
//
// Levels are the depth of the pipeline. The forward nodes of a micro-batch begin on level 0, and a value that
// crosses to another device is one level higher there. What one device computes on one level is a stage; a
// backward node belongs to the stage of its forward node. Of K levels, a stage on level k first computes K -
// k micro-batches forward, then one backward and one forward by turns. So at most K - k micro-batches wait
// there for their backward pass. A device with one stage does exactly that. A device that the data visits
// several times does what is ready, higher levels first. On one device each micro-batch goes forward and back
// before the next begins.
//
// A task is a stage, a micro-batch and a direction. Tasks are dealt out in rounds, one for each device, which
// gives one order for all devices: a device that waits always waits for one that can go on. A task may have
// nodes whose inputs are not computed yet, such as the gradient of a weight that two stages share, or a loss
// that is more than a sum. They are put off until their inputs are there; the order is still right, only less
// parallel. Nodes of no micro-batch, and nodes that several micro-batches read, made of parameters alone, are
// computed as soon as their inputs are there.
//
// A result that nothing else reads, such as the sum of losses of several devices, comes last before the
// updates if its device would wait for another's part of it.
#include "plan/schedule.h"

#include <assert.h>
#include <stdlib.h>

/** What one place computes on one level. */
typedef struct stage {
    bool used;
    int n_forward, n_backward; // micro-batches done
    // the same when the round began: what other devices can count on, as a round's tasks run side by side
    int ready_forward, ready_backward;
} stage;

typedef struct scheduling {
    const clv_plan *plan;
    const clv_graph *graph;
    const bool *needed;
    const int *place;  // by node id: its device's number in the plan
    int *micro_batch;  // by node id: whose task it belongs to, -1: nobody's
    int *level;        // by node id, of forward nodes with a micro-batch
    bool *independent; // by node id: reads nothing that its micro-batch computes, so it may have any level
    int n_micro_batches, n_levels;
    stage *stages;   // [level][place]
    int *tasks;      // by task: where its nodes begin in `members`; one more entry than there are tasks
    int *members;    // node ids, task by task, in the graph's order
    bool *postponed; // by node id: a result that comes last before the updates
    bool *written;   // by node id: it stands in the order
    int *waiting;    // ids of nodes that are put off, in the order they came
    int *lowest;     // by node id: the lowest level of those that read it, plus one; 0: nobody does
    size_t n_waiting;
    clv__schedule *out;
    clv__arena scratch; // of all that is by node or task
} scheduling;

void clv__schedule_reset(clv__schedule *schedule) {
    free(schedule->nodes);
    *schedule = (clv__schedule){0};
}

// ---- micro-batches and levels -----------------------------------------------------------------------------

/** A node that two micro-batches read belongs to none: a parameter that is prepared once, or the gradient
 *  that a sum of losses gives to all of them. What such a forward node reads belongs to none either. */
static void release_shared(scheduling *s, const clv__node *node) {
    int reader = s->micro_batch[node->id]; // -1: it was released itself
    if (node->micro_batch < 0 || (reader < 0 && node->phase == CLV__BACKWARD)) return;
    for (int i = 0; i < node->io.n_in; i++) {
        const clv__node *from = node->in[i] ? node->in[i]->node : NULL;
        if (from && (reader < 0 || s->micro_batch[from->id] > reader)) s->micro_batch[from->id] = -1;
    }
}

static void find_micro_batches(scheduling *s) {
    int n = (int)s->graph->n_nodes;
    for (int id = n - 1; id >= 0; id--) {
        if (s->needed[id] && s->graph->nodes[id]->phase == CLV__FORWARD)
            release_shared(s, s->graph->nodes[id]);
    }
    for (int id = 0; id < n; id++) { // a gradient goes with its forward node
        const clv__node *node = s->graph->nodes[id];
        if (node->phase == CLV__BACKWARD && node->of) s->micro_batch[id] = s->micro_batch[node->of->id];
        if (node->phase == CLV__UPDATE) s->micro_batch[id] = -1;
    }
    for (int id = n - 1; id >= 0; id--) {
        if (s->needed[id] && s->graph->nodes[id]->phase == CLV__BACKWARD)
            release_shared(s, s->graph->nodes[id]);
    }
}

static bool has_level(const scheduling *s, const clv__node *node) {
    return node->phase == CLV__FORWARD && s->needed[node->id] && s->micro_batch[node->id] >= 0;
}

/** Each node's level is as low as what it reads allows. */
static void find_levels(scheduling *s) {
    for (size_t id = 0; id < s->graph->n_nodes; id++) {
        const clv__node *node = s->graph->nodes[id];
        if (!has_level(s, node)) continue;
        s->independent[id] = true;
        for (int i = 0; i < node->io.n_in; i++) {
            const clv__node *from = node->in[i] ? node->in[i]->node : NULL;
            if (!from || !has_level(s, from)) continue;
            int level = s->level[from->id] + (s->place[from->id] != s->place[id]);
            if (level > s->level[id]) s->level[id] = level;
            s->independent[id] &= s->independent[from->id] && s->place[from->id] == s->place[id];
        }
        if (s->level[id] >= s->n_levels) s->n_levels = s->level[id] + 1;
    }
}

/** A node that reads nothing of its micro-batch, such as a slice of the batch, gets the level of its first
 *  reader. */
static void raise_independent_nodes(scheduling *s) {
    int *lowest = s->lowest;
    for (int id = (int)s->graph->n_nodes - 1; id >= 0; id--) {
        const clv__node *node = s->graph->nodes[id];
        if (!has_level(s, node)) continue;
        if (s->independent[id] && lowest[id]) s->level[id] = lowest[id] - 1;
        for (int i = 0; i < node->io.n_in; i++) {
            const clv__node *from = node->in[i] ? node->in[i]->node : NULL;
            if (!from || !has_level(s, from)) continue;
            int level = s->level[id] - (s->place[from->id] != s->place[id]);
            if (!lowest[from->id] || level < lowest[from->id] - 1) lowest[from->id] = level + 1;
        }
    }
}

// ---- results that can wait --------------------------------------------------------------------------------

/** Would its device wait for another device, or for a postponed result? */
static bool waits(const scheduling *s, const clv__node *node) {
    for (int i = 0; i < node->io.n_in; i++) {
        const clv__node *from = node->in[i] ? node->in[i]->node : NULL;
        if (from && (s->postponed[from->id] || s->place[from->id] != s->place[node->id])) return true;
    }
    return false;
}

static bool is_read(const clv__node *node, const bool *read) {
    for (int i = 0; i < node->io.n_out; i++)
        if (read[node->out[i]->id]) return true;
    return false;
}

static clv_status find_postponed(scheduling *s) {
    const clv_graph *graph = s->graph;
    bool *read =
        clv__arena_alloc(&s->scratch, graph->n_tensors, sizeof *read); // by a node that is not postponed
    if (!read) return clv__plan_no_memory(s->plan);
    for (int id = (int)graph->n_nodes - 1; id >= 0; id--) {
        const clv__node *node = graph->nodes[id];
        s->postponed[id] = s->needed[id] && node->phase == CLV__FORWARD && !node->io.op->mutates &&
                           s->micro_batch[id] < 0 && !is_read(node, read);
        for (int i = 0; i < node->io.n_in && s->needed[id] && !s->postponed[id]; i++)
            if (node->in[i]) read[node->in[i]->id] = true;
    }
    for (size_t id = 0; id < graph->n_nodes; id++) // in the graph's order: their inputs were decided before
        if (s->postponed[id]) s->postponed[id] = waits(s, graph->nodes[id]);
    return CLV_OK;
}

// ---- tasks ------------------------------------------------------------------------------------------------

static stage *stage_at(const scheduling *s, int level, int place) {
    return &s->stages[level * s->plan->n_places + place];
}

static int task_of(const scheduling *s, int level, int place, bool backward, int micro_batch) {
    return ((level * s->plan->n_places + place) * 2 + backward) * s->n_micro_batches + micro_batch;
}

/** -1: none */
static int task_of_node(const scheduling *s, int id) {
    const clv__node *node = s->graph->nodes[id];
    if (!s->needed[id] || s->micro_batch[id] < 0 || node->phase == CLV__UPDATE) return -1;
    int forward = node->phase == CLV__FORWARD ? id : node->of->id;
    stage_at(s, s->level[forward], s->place[forward])->used = true;
    return task_of(s, s->level[forward], s->place[forward], node->phase == CLV__BACKWARD, s->micro_batch[id]);
}

static clv_status gather_tasks(scheduling *s) {
    size_t n_stages = (size_t)s->n_levels * (size_t)s->plan->n_places,
           n_tasks = n_stages * 2 * (size_t)s->n_micro_batches;
    if (!CLV__NEW(&s->scratch, s->stages, n_stages) || !CLV__NEW(&s->scratch, s->tasks, n_tasks + 2) ||
        !CLV__NEW(&s->scratch, s->members, s->graph->n_nodes))
        return clv__plan_no_memory(s->plan);
    for (int id = 0; id < (int)s->graph->n_nodes;
         id++) { // count; a task's number stands two entries further on
        int task = task_of_node(s, id);
        if (task >= 0) s->tasks[task + 2]++;
    }
    for (size_t t = 2; t < n_tasks + 2; t++) s->tasks[t] += s->tasks[t - 1];
    for (int id = 0; id < (int)s->graph->n_nodes; id++) { // its end so far stands one entry further on
        int task = task_of_node(s, id);
        if (task >= 0) s->members[s->tasks[task + 1]++] = id;
    }
    return CLV_OK;
}

// ---- writing the order down -------------------------------------------------------------------------------

static void put(scheduling *s, int id) {
    s->written[id] = true;
    s->out->nodes[s->out->n++] = id;
}

static bool can_compute(const scheduling *s, int id) {
    const clv__node *node = s->graph->nodes[id];
    for (int i = 0; i < node->io.n_in; i++) {
        if (node->in[i] && node->in[i]->node && !s->written[node->in[i]->node->id]) return false;
    }
    return true;
}

/** Write the nodes that were put off and can be computed now. Each may be what another waits for. */
static void put_waiting(scheduling *s) {
    for (bool any = true; any;) {
        size_t left = 0;
        any = false;
        for (size_t i = 0; i < s->n_waiting; i++) {
            int id = s->waiting[i];
            if (can_compute(s, id)) {
                put(s, id);
                any = true;
            } else {
                s->waiting[left++] = id;
            }
        }
        s->n_waiting = left;
    }
}

static void put_or_wait(scheduling *s, int id) {
    if (can_compute(s, id))
        put(s, id);
    else
        s->waiting[s->n_waiting++] = id;
}

static void put_task(scheduling *s, int task) {
    for (int i = s->tasks[task]; i < s->tasks[task + 1]; i++) put_or_wait(s, s->members[i]);
    put_waiting(s);
}

// ---- one forward, one backward ----------------------------------------------------------------------------

/** Had all devices of a level done n micro-batches when this round began? */
static bool level_has_done(const scheduling *s, int level, bool backward, int n) {
    for (int place = 0; place < s->plan->n_places; place++) {
        const stage *at = stage_at(s, level, place);
        if (at->used && (backward ? at->ready_backward : at->ready_forward) < n) return false;
    }
    return true;
}

/** Do the next task of a stage, forward or backward as 1F1B says; false: it is over, or its inputs are not
 *  there yet. */
static bool advance(scheduling *s, int level, int place) {
    stage *at = stage_at(s, level, place);
    int in_flight = at->n_forward - at->n_backward;
    if (!at->used || at->n_backward == s->n_micro_batches) return false;
    if (at->n_forward < s->n_micro_batches && in_flight < s->n_levels - level) {
        if (level > 0 && !level_has_done(s, level - 1, false, at->n_forward + 1)) return false;
        put_task(s, task_of(s, level, place, false, at->n_forward++));
    } else {
        if (level + 1 < s->n_levels && !level_has_done(s, level + 1, true, at->n_backward + 1)) return false;
        put_task(s, task_of(s, level, place, true, at->n_backward++));
    }
    return true;
}

/** Each device does one task, if it can. False: none could, as all is done. */
static bool do_round(scheduling *s) {
    bool any = false;
    for (int i = 0; i < s->n_levels * s->plan->n_places; i++) {
        s->stages[i].ready_forward = s->stages[i].n_forward;
        s->stages[i].ready_backward = s->stages[i].n_backward;
    }
    for (int place = 0; place < s->plan->n_places; place++) {
        bool busy = false;
        for (int level = s->n_levels - 1; level >= 0 && !busy; level--) busy = advance(s, level, place);
        any |= busy;
    }
    return any;
}

/** Updates of micro-batches (running statistics) in their order, then the others in the graph's. */
static void put_updates(scheduling *s) {
    s->out->first_update = s->out->n;
    for (int m = 0; m <= s->n_micro_batches; m++) {
        for (int id = 0; id < (int)s->graph->n_nodes; id++) {
            const clv__node *node = s->graph->nodes[id];
            if (s->needed[id] && node->phase == CLV__UPDATE &&
                node->micro_batch == (m < s->n_micro_batches ? m : -1))
                put(s, id);
        }
    }
}

static void put_all(scheduling *s) {
    for (int id = 0; id < (int)s->graph->n_nodes; id++) {
        if (s->needed[id] && s->graph->nodes[id]->phase != CLV__UPDATE && s->micro_batch[id] < 0 &&
            !s->postponed[id])
            put_or_wait(s, id);
    }
    put_waiting(s);
    while (do_round(s)) continue;
    assert(s->n_waiting == 0);
    for (int i = 0; i < s->n_levels * s->plan->n_places; i++)
        assert(!s->stages[i].used || s->stages[i].n_backward == s->n_micro_batches);
    for (int id = 0; id < (int)s->graph->n_nodes; id++)
        if (s->postponed[id]) put(s, id);
    put_updates(s);
}

static clv_status make(scheduling *s) {
    size_t n = s->graph->n_nodes;
    s->out->nodes = clv__alloc(n, sizeof(int));
    clv__arena *scratch = &s->scratch;
    if (!s->out->nodes || !CLV__NEW(scratch, s->micro_batch, n) || !CLV__NEW(scratch, s->level, n) ||
        !CLV__NEW(scratch, s->independent, n) || !CLV__NEW(scratch, s->postponed, n) ||
        !CLV__NEW(scratch, s->written, n) || !CLV__NEW(scratch, s->waiting, n) ||
        !CLV__NEW(scratch, s->lowest, n))
        return clv__plan_no_memory(s->plan);
    for (size_t id = 0; id < n; id++) {
        s->micro_batch[id] = s->graph->nodes[id]->micro_batch;
        if (s->micro_batch[id] >= s->n_micro_batches) s->n_micro_batches = s->micro_batch[id] + 1;
    }
    find_micro_batches(s);
    if (s->plan->trains && s->plan->n_places > 1) CLV_TRY(find_postponed(s));
    find_levels(s);
    raise_independent_nodes(s);
    CLV_TRY(gather_tasks(s));
    put_all(s);
    return CLV_OK;
}

clv_status clv__schedule_make(const clv_plan *plan, const bool *needed, const int *node_place,
                              clv__schedule *out) {
    scheduling s = {.plan = plan, .graph = plan->graph, .needed = needed, .place = node_place, .out = out};
    *out = (clv__schedule){0};
    clv_status status = make(&s);
    clv__arena_reset(&s.scratch);
    if (status != CLV_OK) clv__schedule_reset(out);
    return status;
}
