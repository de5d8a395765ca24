// SPDX-License-Identifier: Apache-2.0
// Who makes each name that is read: values get numbers, nodes the numbers of what they read and make, and
// their order. A graph in a node sees the names of the graphs around it, and its own before those.
// Source: docs/IR.md of ONNX 1.23, "Graphs", "Names Within a Graph".
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/shown.h"
#include "onnx/names.h"
#include "onnx/reader.h"

/** What a name meant before a graph gave it another meaning. */
typedef struct covered {
    uint32_t name, value;
} covered;

typedef struct resolver {
    clv__onnx_reader *r;
    clv__onnx_names names;
    uint32_t *current; // by name: its value where we are, or NO_VALUE
    size_t current_room;
    covered *covered; // of the graphs that we are in
    size_t n_covered, covered_room;
    clv__onnx_value *values;
    uint32_t n_values;
} resolver;

// ---- counting --------------------------------------------------------------------------------------------

/** Values of a graph and those in it, at most. */
static uint64_t count_values(const clv__onnx_graph *g) {
    uint64_t n = (uint64_t)g->n_inputs + g->n_initializers + g->n_sparse;
    for (size_t i = 0; i < g->n_nodes; i++) {
        const clv__onnx_node *node = &g->nodes[i];
        n += node->n_outputs;
        for (size_t k = 0; k < node->n_attributes; k++) {
            const clv__onnx_attribute *a = &node->attributes[k];
            if (a->g) n += count_values(a->g);
            for (size_t j = 0; a->graphs && j < a->n; j++) n += count_values(&a->graphs[j]);
        }
    }
    return n;
}

// ---- names that are made ---------------------------------------------------------------------------------

static clv_status fail_name(resolver *z, clv__onnx_text name, const char *why) {
    clv__shown_text room;
    CLV_FAIL(z->r->error, CLV_E_FORMAT, "'%s' %s", clv__shown_bytes(name.data, name.n, &room), why);
}

static const char *maker_shown(const clv__onnx_value *value, clv__onnx_node_text *room) {
    if (value->node) return clv__onnx_node_shown(value->node, room);
    return value->input ? "an input" : "an initializer";
}

/** What the name means where we are; NO_VALUE: nothing. */
static uint32_t find(const resolver *z, clv__onnx_text name) {
    uint32_t number;
    return clv__onnx_names_find(&z->names, name, &number) ? z->current[number] : CLV__ONNX_NO_VALUE;
}

/** A new value under its name. */
static clv_status declare(resolver *z, const clv__onnx_value *made, uint32_t *out) {
    uint32_t name;
    bool is_new;
    *out = CLV__ONNX_NO_VALUE;
    if (!clv__onnx_names_put(&z->names, made->name, &name, &is_new) ||
        !clv__grow(&z->current, &z->current_room, (size_t)name + 1, sizeof *z->current) ||
        !clv__grow(&z->covered, &z->covered_room, z->n_covered + 1, sizeof *z->covered))
        return clv__onnx_no_memory(z->r);
    if (is_new) z->current[name] = CLV__ONNX_NO_VALUE;
    const uint32_t before = z->current[name];
    if (before != CLV__ONNX_NO_VALUE && z->values[before].graph == made->graph) {
        clv__onnx_node_text first, second;
        clv__shown_text shown;
        CLV_FAIL(z->r->error, CLV_E_FORMAT, "'%s' is made twice: by %s and by %s",
                 clv__shown_bytes(made->name.data, made->name.n, &shown),
                 maker_shown(&z->values[before], &first), maker_shown(made, &second));
    }
    z->covered[z->n_covered++] = (covered){.name = name, .value = before};
    z->values[z->n_values] = *made;
    *out = z->current[name] = z->n_values++;
    return CLV_OK;
}

/** An initializer of a graph in a node whose name another value has, of another graph: a name of its own, as sessions know tensors by them. */
static clv_status rename_initializer(resolver *z, clv__onnx_value *value, uint32_t number) {
    char end[16];
    const size_t n = (size_t)snprintf(end, sizeof end, "#%u", number);
    char *text = clv__onnx_take(z->r, value->name.n + n, 1);
    if (!text) return z->r->status;
    memcpy(text, value->name.data, value->name.n);
    memcpy(text + value->name.n, end, n);
    value->name = (clv__onnx_text){text, value->name.n + n};
    return CLV_OK;
}

static clv_status declare_inputs(resolver *z, clv__onnx_graph *g) {
    for (size_t i = 0; i < g->n_inputs; i++) {
        clv__onnx_info *info = &g->inputs[i];
        if (info->name.n == 0) CLV_FAIL(z->r->error, CLV_E_FORMAT, "input %zu of a graph has no name", i);
        CLV_TRY(declare(z, &(clv__onnx_value){.name = info->name, .graph = g, .info = info, .input = true},
                        &info->value));
    }
    for (size_t i = 0; i < g->n_initializers; i++) {
        clv__onnx_tensor *t = &g->initializers[i];
        if (t->name.n == 0) CLV_FAIL(z->r->error, CLV_E_FORMAT, "initializer %zu of a graph has no name", i);
        const uint32_t at = find(z, t->name);
        clv__onnx_value *input = at == CLV__ONNX_NO_VALUE ? NULL : &z->values[at];
        if (input && input->graph == g && input->input && !input->initializer) { // its value if none is given
            input->initializer = t;
            t->value = at;
            continue;
        }
        uint32_t number;
        const bool taken = g != &z->r->model->graph && clv__onnx_names_find(&z->names, t->name, &number);
        CLV_TRY(declare(z, &(clv__onnx_value){.name = t->name, .graph = g, .initializer = t}, &t->value));
        if (taken) CLV_TRY(rename_initializer(z, &z->values[t->value], t->value));
    }
    for (size_t i = 0; i < g->n_sparse; i++) {
        uint32_t number;
        CLV_TRY(declare(z, &(clv__onnx_value){.name = g->sparse[i], .graph = g, .sparse = true}, &number));
    }
    return CLV_OK;
}

static clv_status declare_outputs(resolver *z, clv__onnx_graph *g, clv__onnx_node *node) {
    uint32_t *numbers = clv__onnx_take(z->r, node->n_outputs, sizeof *numbers);
    if (!numbers) return z->r->status;
    node->output_values = numbers;
    for (size_t i = 0; i < node->n_outputs; i++) {
        numbers[i] = CLV__ONNX_NO_VALUE;
        if (node->outputs[i].n == 0) continue;
        const clv__onnx_value made = {
            .name = node->outputs[i], .graph = g, .node = node, .output = (uint32_t)i};
        CLV_TRY(declare(z, &made, &numbers[i]));
    }
    return CLV_OK;
}

/** What the file says of values of this graph. */
static void attach_infos(resolver *z, const clv__onnx_graph *g, clv__onnx_info *infos, size_t n) {
    for (size_t i = 0; i < n; i++) {
        infos[i].value = find(z, infos[i].name);
        if (infos[i].value == CLV__ONNX_NO_VALUE) continue;
        clv__onnx_value *value = &z->values[infos[i].value];
        if (value->graph == g && !value->info) value->info = &infos[i];
    }
}

// ---- names that are read ---------------------------------------------------------------------------------

static clv_status resolve_graph(resolver *z, clv__onnx_graph *g);

static clv_status resolve_inputs(resolver *z, clv__onnx_node *node) {
    clv__onnx_node_text room;
    clv__shown_text shown;
    uint32_t *numbers = clv__onnx_take(z->r, node->n_inputs, sizeof *numbers);
    if (!numbers) return z->r->status;
    node->input_values = numbers;
    for (size_t i = 0; i < node->n_inputs; i++) {
        const clv__onnx_text name = node->inputs[i];
        numbers[i] = name.n ? find(z, name) : CLV__ONNX_NO_VALUE;
        if (name.n == 0) continue;
        if (numbers[i] == CLV__ONNX_NO_VALUE)
            CLV_FAIL(z->r->error, CLV_E_FORMAT, "%s reads '%s', which nothing makes",
                     clv__onnx_node_shown(node, &room), clv__shown_bytes(name.data, name.n, &shown));
        if (z->values[numbers[i]].sparse)
            CLV_FAIL(z->r->error, CLV_E_UNSUPPORTED,
                     "%s reads '%s', a sparse tensor, and such are not read here",
                     clv__onnx_node_shown(node, &room), clv__shown_bytes(name.data, name.n, &shown));
    }
    for (size_t i = 0; i < node->n_attributes; i++) {
        const clv__onnx_attribute *a = &node->attributes[i];
        if (a->g) CLV_TRY(resolve_graph(z, a->g));
        for (size_t k = 0; a->graphs && k < a->n; k++) CLV_TRY(resolve_graph(z, &a->graphs[k]));
    }
    return CLV_OK;
}

static clv_status resolve_outputs(resolver *z, clv__onnx_graph *g) {
    for (size_t i = 0; i < g->n_outputs; i++) {
        clv__onnx_info *info = &g->outputs[i];
        if (info->name.n == 0) CLV_FAIL(z->r->error, CLV_E_FORMAT, "output %zu of a graph has no name", i);
        info->value = find(z, info->name);
        if (info->value == CLV__ONNX_NO_VALUE)
            return fail_name(z, info->name, "is an output of a graph, and nothing makes it");
        if (z->values[info->value].sparse) {
            (void)fail_name(z, info->name, "is a sparse tensor, and such are not read here");
            return CLV_E_UNSUPPORTED;
        }
    }
    return CLV_OK;
}

// ---- order -----------------------------------------------------------------------------------------------

/** Which nodes of a graph each of its nodes reads, itself or in its graphs: those of i begin at begins[i]. */
typedef struct edges {
    const clv__onnx_graph *graph;
    const clv__onnx_value *values;
    size_t *begins;
    size_t *items;
    size_t n, room;
} edges;

static bool add_edge(edges *e, uint32_t number) {
    if (number == CLV__ONNX_NO_VALUE) return true;
    const clv__onnx_value *value = &e->values[number];
    if (value->graph != e->graph || !value->node) return true;
    if (!clv__grow(&e->items, &e->room, e->n + 1, sizeof *e->items)) return false;
    e->items[e->n++] = (size_t)(value->node - e->graph->nodes);
    return true;
}

static bool add_edges(edges *e, const clv__onnx_node *node);

static bool add_edges_of_graph(edges *e, const clv__onnx_graph *g) {
    for (size_t i = 0; i < g->n_nodes; i++)
        if (!add_edges(e, &g->nodes[i])) return false;
    for (size_t i = 0; i < g->n_outputs; i++)
        if (!add_edge(e, g->outputs[i].value)) return false;
    return true;
}

static bool add_edges(edges *e, const clv__onnx_node *node) {
    for (size_t i = 0; i < node->n_inputs; i++)
        if (!add_edge(e, node->input_values[i])) return false;
    for (size_t i = 0; i < node->n_attributes; i++) {
        const clv__onnx_attribute *a = &node->attributes[i];
        if (a->g && !add_edges_of_graph(e, a->g)) return false;
        for (size_t k = 0; a->graphs && k < a->n; k++)
            if (!add_edges_of_graph(e, &a->graphs[k])) return false;
    }
    return true;
}

/** Marks of nodes on the way: not seen, on the path that leads here, done. */
enum { UNSEEN, ON_PATH, DONE };

/** Each node after those it reads, otherwise in the file's order; no recursion, however long the way. */
static clv_status find_order(resolver *z, const edges *e, size_t *path, size_t *at, uint8_t *marks,
                             size_t *order) {
    const clv__onnx_graph *g = e->graph;
    size_t n_order = 0;
    for (size_t first = 0; first < g->n_nodes; first++) {
        size_t depth = 0;
        if (marks[first] == DONE) continue;
        path[depth++] = first;
        marks[first] = ON_PATH;
        while (depth > 0) {
            const size_t node = path[depth - 1];
            if (e->begins[node] + at[node] == e->begins[node + 1]) {
                marks[node] = DONE;
                order[n_order++] = node;
                depth--;
                continue;
            }
            const size_t read = e->items[e->begins[node] + at[node]++];
            if (marks[read] == ON_PATH) {
                clv__onnx_node_text room;
                CLV_FAIL(z->r->error, CLV_E_FORMAT, "its nodes form a cycle: %s reads what comes of it",
                         clv__onnx_node_shown(&g->nodes[read], &room));
            }
            if (marks[read] == DONE) continue;
            path[depth++] = read;
            marks[read] = ON_PATH;
        }
    }
    return CLV_OK;
}

static void put_in_order(resolver *z, clv__onnx_graph *g, const size_t *order, clv__onnx_node *nodes) {
    for (size_t i = 0; i < g->n_nodes; i++) nodes[i] = g->nodes[order[i]];
    memcpy(g->nodes, nodes, g->n_nodes * sizeof *nodes);
    for (size_t i = 0; i < g->n_nodes; i++)
        for (size_t k = 0; k < g->nodes[i].n_outputs; k++)
            if (g->nodes[i].output_values[k] != CLV__ONNX_NO_VALUE)
                z->values[g->nodes[i].output_values[k]].node = &g->nodes[i];
}

static clv_status sort_nodes(resolver *z, clv__onnx_graph *g, const edges *e) {
    const size_t n = g->n_nodes;
    size_t *numbers = clv__alloc(n, 3 * sizeof *numbers);
    uint8_t *marks = clv__alloc(n, 1);
    clv__onnx_node *nodes = clv__alloc(n, sizeof *nodes);
    clv_status status = numbers && marks && nodes
                            ? find_order(z, e, numbers, numbers + n, marks, numbers + 2 * n)
                            : clv__onnx_no_memory(z->r);
    if (status == CLV_OK) put_in_order(z, g, numbers + 2 * n, nodes);
    free(numbers);
    free(marks);
    free(nodes);
    return status;
}

static clv_status order_nodes(resolver *z, clv__onnx_graph *g) {
    edges e = {.graph = g, .values = z->values, .begins = clv__alloc(g->n_nodes + 1, sizeof *e.begins)};
    bool good = e.begins != NULL, in_order = true;
    for (size_t i = 0; good && i < g->n_nodes; i++) {
        good = add_edges(&e, &g->nodes[i]);
        e.begins[i + 1] = e.n;
        for (size_t k = e.begins[i]; k < e.n; k++) in_order &= e.items[k] < i;
    }
    clv_status status = CLV_OK;
    if (!good)
        status = clv__onnx_no_memory(z->r);
    else if (!in_order)
        status = sort_nodes(z, g, &e);
    free(e.begins);
    free(e.items);
    return status;
}

// ---- all of it -------------------------------------------------------------------------------------------

static clv_status resolve_graph(resolver *z, clv__onnx_graph *g) {
    const size_t before = z->n_covered;
    CLV_TRY(declare_inputs(z, g));
    for (size_t i = 0; i < g->n_nodes; i++) CLV_TRY(declare_outputs(z, g, &g->nodes[i]));
    attach_infos(z, g, g->outputs, g->n_outputs);
    attach_infos(z, g, g->value_infos, g->n_value_infos);
    for (size_t i = 0; i < g->n_nodes; i++) CLV_TRY(resolve_inputs(z, &g->nodes[i]));
    CLV_TRY(resolve_outputs(z, g));
    CLV_TRY(order_nodes(z, g));
    while (z->n_covered > before) {
        const covered c = z->covered[--z->n_covered];
        z->current[c.name] = c.value;
    }
    return CLV_OK;
}

clv_status clv__onnx_resolve(clv__onnx_reader *r) {
    const uint64_t n = count_values(&r->model->graph);
    if (n >= CLV__ONNX_NO_VALUE)
        CLV_FAIL(r->error, CLV_E_UNSUPPORTED, "it has more values than can be numbered");
    resolver z = {.r = r, .values = clv__onnx_take(r, (size_t)n, sizeof *z.values)};
    if (!z.values) return r->status;
    clv_status status = resolve_graph(&z, &r->model->graph);
    r->model->values = z.values;
    r->model->n_values = z.n_values;
    free(z.covered);
    free(z.current);
    clv__onnx_names_reset(&z.names);
    return status;
}
