// SPDX-License-Identifier: Apache-2.0
// Order of execution with micro-batches: one forward, one backward (1F1B, PipeDream-flush: Narayanan et al.
// 2021, arXiv:2104.04473, section 2.2.1).
//
// The forward nodes of a micro-batch lie on levels: a value that crosses to another place gets one level
// higher. What a place computes on a level is a stage; of K levels, a stage on level k first computes K - k
// micro-batches forward and then one backward and one forward by turns, so never more than K - k of them wait
// there for their backward pass. A place with one stage does exactly that; one that the data visits several
// times does what is ready, later levels first. On one place each micro-batch goes forward and back before
// the next begins.
//
// These tasks (a stage, a micro-batch, a direction) are dealt out in rounds, a task for each place, which
// gives one order for all places: who waits always waits for somebody who can go on. Nodes that a task has
// but cannot compute yet (a gradient of a weight that two stages share, a loss that is more than a sum) wait
// until they can: then the order is still right, only less parallel. Nodes of no micro-batch, and those that
// several share (made of parameters alone), are computed as soon as what they read is there.
//
// Results on which no other work hangs, as the sum of losses that several devices have computed, come last
// before the updates if their place would wait for another's part of them.
#include "plan/schedule.h"

#include <assert.h>
#include <stdlib.h>

/** What one place computes on one level. */
typedef struct stage {
    bool used;
    int n_forward, n_backward; // micro-batches done
    int ready_forward,
        ready_backward; // the same at the beginning of the round: what other places can count on
} stage;

typedef struct scheduling {
    const clv_plan *plan;
    const clv_graph *graph;
    const bool *needed;
    const int *place; // by node id
    int *micro_batch; // by node id: whose task it belongs to, -1: nobody's
    int *level;       // by node id, of forward nodes with a micro-batch
    bool *loose;      // by node id: waits for nothing of its micro-batch, so it has no level of its own
    int n_micro_batches, n_levels;
    stage *stages;   // [level][place]
    int *tasks;      // where the nodes of each task begin in `members`, by task; one more than there are
    int *members;    // node ids, task by task, in the graph's order
    bool *postponed; // by node id: such a result
    bool *written;   // by node id
    int *waiting;    // node ids, in the order they came
    size_t n_waiting;
    clv__schedule *out;
} scheduling;

void clv__schedule_reset(clv__schedule *schedule) {
    free(schedule->nodes);
    *schedule = (clv__schedule){0};
}

// ---- micro-batches and levels -----------------------------------------------------------------------------

/** What an earlier micro-batch reads too belongs to none, as a parameter that was prepared once or the
 *  gradient that a sum of losses hands to all. Of forward nodes neither does what that is made of. */
static void share(scheduling *s, const clv__node *node) {
    int reader = s->micro_batch[node->id];
    if (node->micro_batch < 0 || (reader < 0 && node->phase == CLV__BACKWARD)) return;
    for (int i = 0; i < node->io.n_in; i++) {
        const clv__node *from = node->in[i] ? node->in[i]->node : NULL;
        if (from && (reader < 0 || s->micro_batch[from->id] > reader)) s->micro_batch[from->id] = -1;
    }
}

static void find_micro_batches(scheduling *s) {
    int n = (int)s->graph->n_nodes;
    for (int id = n - 1; id >= 0; id--) {
        if (s->needed[id] && s->graph->nodes[id]->phase == CLV__FORWARD) share(s, s->graph->nodes[id]);
    }
    for (int id = 0; id < n; id++) { // a gradient goes with its forward node
        const clv__node *node = s->graph->nodes[id];
        if (node->phase == CLV__BACKWARD && node->of) s->micro_batch[id] = s->micro_batch[node->of->id];
        if (node->phase == CLV__UPDATE) s->micro_batch[id] = -1;
    }
    for (int id = n - 1; id >= 0; id--) {
        if (s->needed[id] && s->graph->nodes[id]->phase == CLV__BACKWARD) share(s, s->graph->nodes[id]);
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
        s->loose[id] = true;
        for (int i = 0; i < node->io.n_in; i++) {
            const clv__node *from = node->in[i] ? node->in[i]->node : NULL;
            if (!from || !has_level(s, from)) continue;
            int level = s->level[from->id] + (s->place[from->id] != s->place[id]);
            if (level > s->level[id]) s->level[id] = level;
            s->loose[id] &= s->loose[from->id] && s->place[from->id] == s->place[id];
        }
        if (s->level[id] >= s->n_levels) s->n_levels = s->level[id] + 1;
    }
}

/** What waits for nothing, as slices of the batch, is computed with what reads it first. */
static void raise_loose_nodes(scheduling *s) {
    int *lowest = s->waiting; // scratch: the lowest level that reads a node, plus one; 0: none yet
    for (int id = (int)s->graph->n_nodes - 1; id >= 0; id--) {
        const clv__node *node = s->graph->nodes[id];
        if (!has_level(s, node)) continue;
        if (s->loose[id] && lowest[id]) s->level[id] = lowest[id] - 1;
        for (int i = 0; i < node->io.n_in; i++) {
            const clv__node *from = node->in[i] ? node->in[i]->node : NULL;
            if (!from || !has_level(s, from)) continue;
            int level = s->level[id] - (s->place[from->id] != s->place[id]);
            if (!lowest[from->id] || level < lowest[from->id] - 1) lowest[from->id] = level + 1;
        }
    }
}

// ---- results that can wait --------------------------------------------------------------------------------

/** Would its place wait for another, or for what is postponed? */
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
    bool *read = clv__alloc(graph->n_tensors, sizeof *read); // by nodes that are none of them
    if (!read) return clv__plan_no_memory(s->plan);
    for (int id = (int)graph->n_nodes - 1; id >= 0; id--) {
        const clv__node *node = graph->nodes[id];
        s->postponed[id] = s->needed[id] && node->phase == CLV__FORWARD && !node->io.op->mutates &&
                           s->micro_batch[id] < 0 && !is_read(node, read);
        for (int i = 0; i < node->io.n_in && s->needed[id] && !s->postponed[id]; i++)
            if (node->in[i]) read[node->in[i]->id] = true;
    }
    for (size_t id = 0; id < graph->n_nodes; id++) // what they wait for comes before them
        if (s->postponed[id]) s->postponed[id] = waits(s, graph->nodes[id]);
    free(read);
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
    s->stages = clv__alloc(n_stages, sizeof *s->stages);
    s->tasks = clv__alloc(n_tasks + 2, sizeof *s->tasks);
    s->members = clv__alloc(s->graph->n_nodes, sizeof *s->members);
    if (!s->stages || !s->tasks || !s->members) return clv__plan_no_memory(s->plan);
    for (int id = 0; id < (int)s->graph->n_nodes; id++) { // count, two places further on
        int task = task_of_node(s, id);
        if (task >= 0) s->tasks[task + 2]++;
    }
    for (size_t t = 2; t < n_tasks + 2; t++) s->tasks[t] += s->tasks[t - 1];
    for (int id = 0; id < (int)s->graph->n_nodes;
         id++) { // now one place further on is where the task goes on
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

/** Write what waited and can be computed now. */
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

/** Have all places of a level done so many micro-batches by the beginning of this round? */
static bool level_has_done(const scheduling *s, int level, bool backward, int n) {
    for (int place = 0; place < s->plan->n_places; place++) {
        const stage *at = stage_at(s, level, place);
        if (at->used && (backward ? at->ready_backward : at->ready_forward) < n) return false;
    }
    return true;
}

/** Do the next task of a stage, if it is its turn and what it needs is there. */
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

/** Every place does a task, or waits. False: all is done. */
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
    s->micro_batch = clv__alloc(n, sizeof(int));
    s->level = clv__alloc(n, sizeof(int));
    s->loose = clv__alloc(n, sizeof(bool));
    s->postponed = clv__alloc(n, sizeof(bool));
    s->written = clv__alloc(n, sizeof(bool));
    s->waiting = clv__alloc(n, sizeof(int));
    if (!s->out->nodes || !s->micro_batch || !s->level || !s->loose || !s->postponed || !s->written ||
        !s->waiting)
        return clv__plan_no_memory(s->plan);
    for (size_t id = 0; id < n; id++) {
        s->micro_batch[id] = s->graph->nodes[id]->micro_batch;
        if (s->micro_batch[id] >= s->n_micro_batches) s->n_micro_batches = s->micro_batch[id] + 1;
    }
    find_micro_batches(s);
    if (s->plan->trains && s->plan->n_places > 1) CLV_TRY(find_postponed(s));
    find_levels(s);
    raise_loose_nodes(s);
    CLV_TRY(gather_tasks(s));
    put_all(s);
    return CLV_OK;
}

clv_status clv__schedule_make(const clv_plan *plan, const bool *needed, const int *node_place,
                              clv__schedule *out) {
    scheduling s = {.plan = plan, .graph = plan->graph, .needed = needed, .place = node_place, .out = out};
    *out = (clv__schedule){0};
    clv_status status = make(&s);
    free(s.micro_batch);
    free(s.level);
    free(s.loose);
    free(s.stages);
    free(s.tasks);
    free(s.members);
    free(s.postponed);
    free(s.written);
    free(s.waiting);
    if (status != CLV_OK) clv__schedule_reset(out);
    return status;
}
