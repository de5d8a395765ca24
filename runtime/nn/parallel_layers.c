// SPDX-License-Identifier: Apache-2.0
// Data parallel over some layers; see parallel_layers.h.
//
// A model is a function, and what it builds for some rows cannot be made of what it builds for others: shapes stand in attributes. So
// it is called on graphs that are thrown away, the sketches: one for the whole batch, one for each replica's rows. They have the
// same nodes in the same order. These are written into the caller's graph one by one, from the whole sketch or from
// each replica's, with slices and concats where a value goes from one kind to the other. Gradients and updates come later, as of
// any nodes.
#include "nn/parallel_layers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleave/ops.h"
#include "graph/graph.h"
#include "nn/batch_rows.h"
#include "nn/replicas.h"
#include "plan/pattern.h"

enum { REPLICATED = -1 };

/** A graph that is copied from and thrown away. */
typedef struct sketch {
    clv_graph *graph;
    clv_tensor *results[CLV_MAX_PORTS];
    clv__cut cut;       // while the caller's graph is at this part
    const char *device; // of a replica
    int64_t first;      // row of what is shared out here
    int64_t rows;
    clv_tensor **made; // by tensor id: the value in the caller's graph; NULL: not there, or not yet
} sketch;

typedef struct merging {
    clv_graph *graph; // the caller's
    clv_tensor *const *inputs;
    int n_inputs, n_results;
    clv_layers body;
    void *user;
    sketch whole, part[CLV__MOST_REPLICAS];
    int n_parts;
    clv_plan plan; // its places are the devices of the patterns
    clv__patterns patterns;
    int *node_place;    // by node id: of plan.places, or REPLICATED
    int *joined_at;     // by tensor id, of whole values of replicated nodes
    bool *of_batch;     // by tensor id: other rows, other values
    bool *rows_are_out; // by tensor id: samples are outermost along its first dimension
    clv__arena scratch;
} merging;

// ---- sketches -----------------------------------------------------------------------------------------------------------

/** Take over a mistake that stuck in another graph, or in the runtime. */
static bool fail_as(merging *m, clv_status status, const char *sentence) {
    clv__graph_fail(m->graph, status, "%s", sentence);
    return false;
}

static bool no_memory(merging *m) {
    return fail_as(m, CLV_E_HOST_MEMORY, "no host memory for the graph");
}

/** Call the body on a graph of its own, with inputs of some rows. */
static bool draw(merging *m, sketch *s) {
    clv_graph *graph = m->graph, *own;
    if (clv_graph_create(graph->runtime, &s->graph) != CLV_OK) return no_memory(m);
    own = s->graph;
    own->training = graph->training;
    own->precision = graph->precision;
    own->dropout = graph->dropout;
    own->cut = s->cut;
    own->next_random_id = graph->next_random_id;
    memcpy(own->scope, graph->scope, sizeof own->scope);
    memcpy(own->scope_ends, graph->scope_ends, sizeof own->scope_ends);
    clv_tensor *inputs[CLV__MOST_CUT];
    for (int i = 0; i < m->n_inputs; i++) {
        char name[32];
        clv_shape shape = clv_tensor_shape(m->inputs[i]);
        shape.dims[0] = s->rows;
        snprintf(name, sizeof name, "rows.%d", i);
        inputs[i] = clv_input(own, name, clv_tensor_dtype(m->inputs[i]), shape);
        if (inputs[i]) inputs[i]->requires_grad = m->inputs[i]->requires_grad;
    }
    if (own->error.status == CLV_OK) m->body(inputs, s->results, m->user);
    if (own->error.status != CLV_OK) return fail_as(m, own->error.status, own->error.text);
    return CLV__NEW(&m->scratch, s->made, own->n_tensors + 1) || no_memory(m);
}

static bool same_nodes(const clv__node *a, const clv__node *b) {
    if (a->io.op != b->io.op || a->io.n_in != b->io.n_in || a->io.n_out != b->io.n_out ||
        a->phase != b->phase || strcmp(a->layer, b->layer) != 0)
        return false;
    for (int i = 0; i < a->io.n_in; i++)
        if ((a->in[i] ? a->in[i]->id : -1) != (b->in[i] ? b->in[i]->id : -1)) return false;
    return true;
}

/** Are they the same but for sizes? Then nodes and tensors have the same numbers in both. */
static bool alike(const merging *m, const sketch *a, const sketch *b) {
    const clv_graph *one = a->graph, *other = b->graph;
    if (one->n_nodes != other->n_nodes || one->n_tensors != other->n_tensors) return false;
    for (size_t i = 0; i < one->n_nodes; i++)
        if (!same_nodes(one->nodes[i], other->nodes[i])) return false;
    for (size_t i = 0; i < one->n_tensors; i++) {
        const clv_tensor *x = one->tensors[i], *y = other->tensors[i];
        if (x->kind != y->kind || (x->kind != CLV__VALUE && strcmp(x->name, y->name) != 0)) return false;
    }
    for (int k = 0; k < m->n_results; k++)
        if (a->results[k]->id != b->results[k]->id) return false;
    return true;
}

static bool draw_all(merging *m, const clv__parallel *how) {
    clv_graph *graph = m->graph;
    const int64_t batch = m->whole.rows;
    int64_t rows[CLV__MOST_REPLICAS], first = 0;
    clv__replica_rows(batch, how->shares, how->n, rows);
    if (!draw(m, &m->whole)) return false;
    for (int i = 0; i < how->n; i++) {
        if (rows[i] == 0) continue; // a last batch smaller than the number of devices
        sketch *part = &m->part[m->n_parts++];
        *part = (sketch){.cut = {graph->cut.first + first, rows[i], 0, graph->cut.micro_batch},
                         .device = clv__arena_strdup(&graph->arena, how->devices[i]),
                         .first = first,
                         .rows = rows[i]};
        if (!part->device) return no_memory(m);
        if (!draw(m, part)) return false;
        if (!alike(m, &m->whole, part)) {
            clv__graph_fail(graph, CLV_E_UNSUPPORTED,
                            "data parallel: the model builds other nodes for %" PRId64
                            " rows than for %" PRId64
                            ", so layers cannot be placed while others are replicated: replicate all of it",
                            rows[i], batch);
            return false;
        }
        part->cut.replica = m->n_parts - 1; // not before: the first builds what the others leave out
        first += rows[i];
    }
    return true;
}

// ---- who computes what --------------------------------------------------------------------------------------------------

/** A node that no pattern names: with parameters it is replicated, else it is where the newest of its data is. */
static int follow(const merging *m, const clv__node *node) {
    const clv__node *newest = NULL;
    for (int i = 0; i < node->io.n_in; i++) {
        const clv_tensor *in = node->in[i];
        if (!in) continue;
        if (in->kind == CLV__PERSISTENT && *node->layer && node->phase == CLV__FORWARD) return REPLICATED;
        if (in->node && (!newest || in->node->id > newest->id)) newest = in->node;
    }
    return newest ? m->node_place[newest->id] : REPLICATED;
}

static bool owns_parameters(const clv__node *node) {
    for (int i = 0; i < node->io.n_in; i++)
        if (node->in[i] && node->in[i]->kind == CLV__PERSISTENT) return true;
    return false;
}

/** Read the patterns, hold them against the layers, and find out which nodes are replicated. */
static bool assign(merging *m, const clv__parallel *how) {
    const clv_graph *drawn = m->whole.graph;
    m->plan.graph = m->whole.graph;
    clv_status status = clv__patterns_parse(&m->plan, &(clv_plan_config){.place = how->place}, &m->patterns);
    if (status == CLV_OK) status = clv__patterns_match(&m->patterns, &m->plan);
    if (status != CLV_OK) return fail_as(m, status, clv_runtime_error(m->graph->runtime));
    if (!CLV__NEW(&m->scratch, m->node_place, drawn->n_nodes + 1)) return no_memory(m);
    bool any = false;
    for (size_t id = 0; id < drawn->n_nodes; id++) {
        const clv__node *node = drawn->nodes[id];
        const int place = clv__patterns_place(&m->patterns, node->layer);
        m->node_place[id] = place >= 0 ? place : follow(m, node);
        any |= m->node_place[id] == REPLICATED && owns_parameters(node);
    }
    if (any) return true;
    clv__graph_fail(m->graph, CLV_E_VALUE,
                    "placement '%s' names a device for every layer, so none is left for the replicas",
                    how->place);
    return false;
}

/** How many elements of the first dimension a sample has in all sketches; 0: it does not count samples. */
static int64_t per_row(const merging *m, int id) {
    const clv_shape whole = m->whole.graph->tensors[id]->desc.shape;
    if (whole.rank == 0 || whole.dims[0] % m->whole.rows != 0) return 0;
    const int64_t each = whole.dims[0] / m->whole.rows;
    for (int i = 0; i < m->n_parts; i++) {
        clv_shape part = m->part[i].graph->tensors[id]->desc.shape;
        if (part.rank == 0 || part.dims[0] != each * m->part[i].rows) return 0;
        part.dims[0] = whole.dims[0];
        if (!clv_shape_equal(&part, &whole)) return 0;
    }
    return each;
}

/** What follows the rows, and where they are outermost: a dimension that is theirs alone is, one that they share with another only if
 *  they have been in front of it from the beginning. */
static bool look_at_rows(merging *m) {
    const clv_graph *drawn = m->whole.graph;
    if (!CLV__NEW(&m->scratch, m->of_batch, drawn->n_tensors + 1) ||
        !CLV__NEW(&m->scratch, m->rows_are_out, drawn->n_tensors + 1) ||
        !CLV__NEW(&m->scratch, m->joined_at, drawn->n_tensors + 1))
        return no_memory(m);
    for (size_t id = 0; id < drawn->n_tensors; id++) {
        const clv_tensor *tensor = drawn->tensors[id];
        if (tensor->kind == CLV__INPUT) m->of_batch[id] = m->rows_are_out[id] = tensor != drawn->random;
        if (tensor->kind != CLV__VALUE) continue;
        bool of_batch = false, out = true;
        for (int i = 0; i < tensor->node->io.n_in; i++) {
            const clv_tensor *in = tensor->node->in[i];
            if (!in || !m->of_batch[in->id]) continue;
            of_batch = true;
            out &= m->rows_are_out[in->id];
        }
        const int64_t each = of_batch ? per_row(m, (int)id) : 0;
        m->of_batch[id] = of_batch;
        m->rows_are_out[id] = each > 0 && (each == 1 || out);
    }
    return true;
}

// ---- the caller's graph -------------------------------------------------------------------------------------------------

/** From here on nodes are of this part, and on this device. */
static void go_to(merging *m, const sketch *part, const char *device) {
    m->graph->cut = part->cut;
    m->graph->place_hint = device;
}

static const char *place_name(const merging *m, int place) {
    return m->plan.places[place].device->info.name;
}

/** Can this value be cut and joined by rows? Else the graph fails. */
static bool has_rows(merging *m, int id) {
    if (m->n_parts == 1 || m->rows_are_out[id]) return true;
    const clv_tensor *tensor = m->whole.graph->tensors[id];
    char shape[128];
    clv__graph_fail(
        m->graph, CLV_E_SHAPE,
        "data parallel: '%s' %s goes between layers that are replicated and layers that are placed, and "
        "its first dimension does not count the %" PRId64
        " samples: let `place` name the layers on both sides of it, or on none",
        tensor->name, clv_shape_text(&tensor->desc.shape, shape, sizeof shape), m->whole.rows);
    return false;
}

/** A value of replicas as one, on a device. */
static clv_tensor *join(merging *m, int id, const char *device) {
    clv_tensor *parts[CLV__MOST_REPLICAS];
    const bool each = m->of_batch[id];
    if (each && !has_rows(m, id)) return NULL;
    go_to(m, &m->whole, device);
    for (int i = 0; i < (each ? m->n_parts : 1); i++) parts[i] = clv_to(m->part[i].made[id], device);
    return each && m->n_parts > 1 ? clv_concat(parts, m->n_parts, 0) : parts[0];
}

/** A tensor of the whole sketch, for a node at a place. */
static clv_tensor *whole_value(merging *m, int id, int place) {
    clv_tensor **made = &m->whole.made[id];
    if (*made) return *made;
    if (!m->joined_at[id]) {
        *made = join(m, id, place_name(m, place));
        m->joined_at[id] = place + 1;
    }
    return *made;
}

/** A tensor of a replica's sketch. */
static clv_tensor *part_value(merging *m, sketch *part, int id) {
    clv_tensor **made = &part->made[id], *whole = m->whole.made[id];
    if (*made || !whole || whole->kind == CLV__PERSISTENT || (whole->kind == CLV__INPUT && !m->of_batch[id]))
        return *made ? *made : whole;
    const clv_tensor *of = m->whole.graph->tensors[id];
    const int place = of->node ? m->node_place[of->node->id] : REPLICATED;
    clv_tensor *rows = whole;
    if (m->of_batch[id] && m->n_parts > 1) {
        if (!has_rows(m, id)) return NULL;
        const int64_t each = clv_tensor_shape(whole).dims[0] / m->whole.rows;
        // what is fed is cut where it is read, what was computed where it lies
        go_to(m, part, place == REPLICATED ? part->device : place_name(m, place));
        rows = clv_slice(whole, 0, each * part->first, each * part->rows);
    }
    go_to(m, part, part->device);
    return *made = clv_to(rows, part->device);
}

/** Write a node of a sketch into the caller's graph. */
static bool write_node(merging *m, sketch *from, size_t id, int place) {
    const clv__node *node = from->graph->nodes[id];
    clv_graph *graph = m->graph;
    clv_tensor *inputs[CLV__MAX_IN];
    for (int i = 0; i < node->io.n_in; i++) {
        const int in = node->in[i] ? node->in[i]->id : -1;
        inputs[i] = in < 0 ? NULL : place == REPLICATED ? part_value(m, from, in) : whole_value(m, in, place);
    }
    if (graph->error.status != CLV_OK) return false;
    go_to(m, from, place == REPLICATED ? from->device : place_name(m, place));
    graph->layer_override = clv__arena_strdup(&graph->arena, node->layer);
    graph->phase = node->phase;
    if (!graph->layer_override) return no_memory(m);
    clv__node_add_to(graph, node->io.op, node->attrs, inputs, node->io.n_in, UINT64_MAX);
    graph->layer_override = NULL;
    graph->phase = CLV__FORWARD;
    if (graph->error.status != CLV_OK) return false;
    const clv__node *made = graph->nodes[graph->n_nodes - 1];
    for (int i = 0; i < node->io.n_out; i++) {
        const clv_tensor *of = node->out[i];
        clv_tensor *out = from->made[of->id] = made->out[i];
        out->requires_grad = of->requires_grad;
        if (of->is_output) clv_output(out, of->name);
    }
    return true;
}

/** Parameters and buffers, in the order of the model, and what is fed. */
static bool write_tensors(merging *m) {
    clv_graph *graph = m->graph;
    const clv_graph *drawn = m->whole.graph;
    for (size_t id = 0; id < drawn->n_tensors && graph->error.status == CLV_OK; id++) {
        const clv_tensor *of = drawn->tensors[id];
        clv_tensor **made = &m->whole.made[id];
        if (of->kind == CLV__VALUE) continue;
        if (of->kind == CLV__INPUT) {
            if (id < (size_t)m->n_inputs)
                *made = m->inputs[id];
            else if (of == drawn->random)
                *made = clv__graph_random(graph);
            else
                clv__graph_fail(
                    graph, CLV_E_UNSUPPORTED,
                    "data parallel: the model makes an input of its own, '%s', so layers cannot be "
                    "placed while others are replicated",
                    of->name);
            continue;
        }
        *made = clv__persistent(graph, of->name, of->desc, of->init, of->category, of->trainable);
        if (!*made) break;
        (*made)->requires_grad = of->requires_grad;
        if (!of->values || (*made)->values) continue;
        void *values = clv__arena_alloc(&graph->arena, clv_tensor_bytes(of) + 1, 1);
        if (!values) return no_memory(m);
        (*made)->values = memcpy(values, of->values, clv_tensor_bytes(of));
    }
    return graph->error.status == CLV_OK;
}

/** What changes a buffer is done once, by the first replica. */
static bool is_of_first(const clv__node *node) {
    return node->io.op->mutates != 0;
}

static bool write_nodes(merging *m) {
    for (size_t id = 0; id < m->whole.graph->n_nodes; id++) {
        const int place = m->node_place[id];
        const int n = is_of_first(m->whole.graph->nodes[id]) ? 1 : m->n_parts;
        if (place != REPLICATED) {
            if (!write_node(m, &m->whole, id, place)) return false;
            continue;
        }
        for (int i = 0; i < n; i++)
            if (!write_node(m, &m->part[i], id, REPLICATED)) return false;
    }
    return true;
}

/** The mean over all rows of the means over those of each replica. */
static clv_tensor *mean(merging *m, int id) {
    const char *first = m->part[0].device;
    clv_tensor *means[CLV__MOST_REPLICAS], *sum = NULL;
    for (int i = 0; i < m->n_parts; i++) {
        const sketch *part = &m->part[i];
        go_to(m, part, part->device);
        means[i] = part->made[id];
        if (m->n_parts > 1)
            means[i] = clv_mul_scalar(means[i], (float)((double)part->rows / (double)m->whole.rows));
    }
    go_to(m, &m->whole, first);
    for (int i = 0; i < m->n_parts; i++) {
        clv_tensor *term = clv_to(means[i], first);
        sum = i ? clv_add(sum, term) : term;
    }
    return sum;
}

static void write_results(merging *m, clv_tensor **results, bool means) {
    for (int k = 0; k < m->n_results; k++) {
        const int id = m->whole.results[k]->id;
        if (m->whole.made[id])
            results[k] = m->whole.made[id];
        else
            results[k] = means && m->of_batch[id] ? mean(m, id) : join(m, id, m->part[0].device);
    }
}

static void merge(merging *m, const clv__parallel *how, clv_tensor **results, bool means) {
    clv_graph *graph = m->graph;
    const clv__cut cut = graph->cut;
    const char *place = graph->place_hint;
    if (!draw_all(m, how) || !assign(m, how) || !look_at_rows(m)) return;
    if (write_tensors(m) && write_nodes(m)) write_results(m, results, means);
    graph->asked_dropout |= m->whole.graph->asked_dropout;
    graph->next_random_id = m->whole.graph->next_random_id;
    memcpy(graph->scope, m->whole.graph->scope, sizeof graph->scope); // one that was left open is told there
    memcpy(graph->scope_ends, m->whole.graph->scope_ends, sizeof graph->scope_ends);
    graph->cut = cut;
    graph->place_hint = place;
}

void clv__parallel_layers(clv_tensor *const *inputs, int n_inputs, const clv__parallel *how, clv_layers body,
                          void *user, clv_tensor **results, int n_results, bool means) {
    static const char call[] = "data parallel";
    const clv__batch_rows of = {inputs, n_inputs};
    clv_graph *graph = clv__batch_rows_graph(&of, call);
    for (int k = 0; k < n_results; k++) results[k] = NULL;
    if (!graph || !clv__batch_rows_check(graph, &of, call)) return;
    if (clv__replicas_check(graph->runtime, how->devices, how->shares, how->n, &graph->error) != CLV_OK)
        return;
    merging *m = clv__alloc(1, sizeof *m);
    if (!m) {
        clv__graph_fail(graph, CLV_E_HOST_MEMORY, "no host memory for the graph");
        return;
    }
    *m = (merging){.graph = graph,
                   .inputs = inputs,
                   .n_inputs = n_inputs,
                   .n_results = n_results,
                   .body = body,
                   .user = user,
                   .whole = {.cut = graph->cut, .rows = clv_tensor_shape(inputs[0]).dims[0]}};
    merge(m, how, results, means);
    clv__patterns_reset(&m->patterns);
    free(m->plan.places);
    clv_graph_destroy(m->whole.graph);
    for (int i = 0; i < m->n_parts; i++) clv_graph_destroy(m->part[i].graph);
    clv__arena_reset(&m->scratch);
    free(m);
}
