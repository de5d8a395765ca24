// SPDX-License-Identifier: Apache-2.0
// Functions of a model's own: each call becomes the function's nodes, under names of their own. What a call
// gives stands where the body names it: inputs and outputs by their places, attributes by their names. Also
// which version of its ops each node is of.
// Source: docs/IR.md of ONNX 1.23, "Functions".
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/shown.h"
#include "onnx/names.h"
#include "onnx/reader.h"

/** A node in a list that grows in the model's memory. */
typedef struct made {
    clv__onnx_node node;
    struct made *next;
} made;

typedef struct made_list {
    made *first, **end;
    size_t n;
} made_list;

/** What a name of a body becomes. */
typedef struct meaning {
    clv__onnx_text text;
    bool output, made; // a function's output is made by one node
} meaning;

/** Names of a function's body, or of a graph in it. */
typedef struct scope {
    const struct scope *around;
    clv__onnx_names names;
    meaning *meanings; // by their numbers
    size_t room;
} scope;

typedef struct call {
    const clv__onnx_function *function;
    const clv__onnx_node *node; // its names and attributes are those of the graph that it is in
    clv__onnx_text prefix;
    int depth;
} call;

typedef struct expander {
    clv__onnx_reader *r;
    const clv__onnx_function **functions; // sorted
    clv__onnx_names taken, prefixes;
    uint64_t suffix; // the next
    size_t work;     // names of bodies that were looked at
} expander;

static clv_status take_node(expander *x, const clv__onnx_node *node, made_list *list) {
    made *m = clv__onnx_take(x->r, 1, sizeof *m);
    if (!m) return x->r->status;
    m->node = *node;
    *list->end = m;
    list->end = &m->next;
    list->n++;
    return CLV_OK;
}

static clv_status flatten(expander *x, const made_list *list, clv__onnx_graph *graph) {
    graph->nodes = clv__onnx_take(x->r, list->n, sizeof *graph->nodes);
    graph->n_nodes = 0;
    if (!graph->nodes) return x->r->status;
    for (const made *m = list->first; m; m = m->next) graph->nodes[graph->n_nodes++] = m->node;
    return CLV_OK;
}

// ---- functions and opsets --------------------------------------------------------------------------------

static int compare_texts(clv__onnx_text a, clv__onnx_text b) {
    const int order = memcmp(a.data, b.data, a.n < b.n ? a.n : b.n);
    return order ? order : (a.n > b.n) - (a.n < b.n);
}

static int compare_keys(const clv__onnx_text *a, const clv__onnx_text *b) {
    int order = 0;
    for (int i = 0; i < 3 && order == 0; i++) order = compare_texts(a[i], b[i]);
    return order;
}

static int by_key(const void *a, const void *b) {
    const clv__onnx_function *x = *(const clv__onnx_function *const *)a,
                             *y = *(const clv__onnx_function *const *)b;
    return compare_keys((clv__onnx_text[]){x->name, x->domain, x->overload},
                        (clv__onnx_text[]){y->name, y->domain, y->overload});
}

static const clv__onnx_function *find_function(const expander *x, const clv__onnx_node *node) {
    const clv__onnx_text key[] = {node->op_type, node->domain, node->overload};
    size_t low = 0, high = x->r->model->n_functions;
    while (low < high) {
        const clv__onnx_function *f = x->functions[(low + high) / 2];
        const int order = compare_keys(key, (clv__onnx_text[]){f->name, f->domain, f->overload});
        if (order == 0) return f;
        if (order < 0)
            high = (low + high) / 2;
        else
            low = (low + high) / 2 + 1;
    }
    return NULL;
}

static clv_status sort_functions(expander *x) {
    const clv__onnx_model *model = x->r->model;
    clv__shown_text room;
    x->functions = clv__alloc(model->n_functions, sizeof *x->functions);
    if (!x->functions) return clv__onnx_no_memory(x->r);
    for (size_t i = 0; i < model->n_functions; i++) x->functions[i] = &model->functions[i];
    qsort(x->functions, model->n_functions, sizeof *x->functions, by_key);
    for (size_t i = 1; i < model->n_functions; i++)
        if (by_key(&x->functions[i - 1], &x->functions[i]) == 0)
            CLV_FAIL(x->r->error, CLV_E_FORMAT, "function '%s' is there twice",
                     clv__shown_bytes(x->functions[i]->name.data, x->functions[i]->name.n, &room));
    return CLV_OK;
}

static int64_t find_opset(const clv__onnx_opset *opsets, size_t n, clv__onnx_text domain) {
    for (size_t i = 0; i < n; i++)
        if (clv__onnx_text_equal(opsets[i].domain, domain)) return opsets[i].version;
    return 0;
}

/** `f` NULL: of the model. */
static clv_status set_opset(expander *x, const clv__onnx_function *f, clv__onnx_node *node) {
    const clv__onnx_model *model = x->r->model;
    clv__onnx_node_text room;
    node->opset = f ? find_opset(f->opsets, f->n_opsets, node->domain) : 0;
    if (!node->opset) node->opset = find_opset(model->opsets, model->n_opsets, node->domain);
    if (!node->opset && node->domain.n == 0 && !find_function(x, node))
        CLV_FAIL(x->r->error, CLV_E_FORMAT, "%s is an op of ONNX, and the file does not say of which opset",
                 clv__onnx_node_shown(node, &room));
    return CLV_OK;
}

// ---- names -----------------------------------------------------------------------------------------------

static clv_status put(expander *x, clv__onnx_names *names, clv__onnx_text text, uint32_t *number,
                      bool *is_new) {
    return clv__onnx_names_put(names, text, number, is_new) ? CLV_OK : clv__onnx_no_memory(x->r);
}

/** `PREFIX/NAME`, NAME without a prefix, `#3` behind it where that is taken. */
static clv_status make_name(expander *x, clv__onnx_names *taken, clv__onnx_text prefix, clv__onnx_text name,
                            clv__onnx_text *out) {
    char *text;
    uint32_t number;
    for (bool is_new = false, again = false; !is_new; again = true) {
        char suffix[24] = "";
        if (again) snprintf(suffix, sizeof suffix, "#%" PRIu64, ++x->suffix);
        size_t n = prefix.n + (prefix.n > 0) + name.n, more = strlen(suffix);
        if (!(text = clv__onnx_take(x->r, n + more, 1))) return x->r->status;
        memcpy(text, prefix.data, prefix.n);
        if (prefix.n) text[prefix.n] = '/';
        memcpy(text + n - name.n, name.data, name.n);
        memcpy(text + n, suffix, more);
        *out = (clv__onnx_text){.data = text, .n = n + more};
        if (!taken) return CLV_OK;
        CLV_TRY(put(x, taken, *out, &number, &is_new));
    }
    return CLV_OK;
}

/** A name of a body and what it becomes; *out NULL: it was there. */
static clv_status add(expander *x, scope *s, clv__onnx_text name, clv__onnx_text to, meaning **out) {
    uint32_t number;
    bool is_new;
    *out = NULL;
    if (++x->work > clv__onnx_limit(x->r)) return clv__onnx_too_much(x->r);
    CLV_TRY(put(x, &s->names, name, &number, &is_new));
    if (!is_new) return CLV_OK;
    if (!clv__grow(&s->meanings, &s->room, (size_t)number + 1, sizeof *s->meanings))
        return clv__onnx_no_memory(x->r);
    s->meanings[number] = (meaning){.text = to};
    *out = &s->meanings[number];
    return CLV_OK;
}

static clv_status fail_name(expander *x, const call *c, clv__onnx_text name, const char *why) {
    clv__shown_text function, shown;
    CLV_FAIL(x->r->error, CLV_E_FORMAT, "function '%s': '%s' %s",
             clv__shown_bytes(c->function->name.data, c->function->name.n, &function),
             clv__shown_bytes(name.data, name.n, &shown), why);
}

/** A name that is made in the body, so it gets one of its own; a function's outputs have theirs. */
static clv_status declare(expander *x, const call *c, scope *s, clv__onnx_text name) {
    uint32_t number;
    meaning *m;
    clv__onnx_text to;
    if (name.n == 0) return CLV_OK;
    if (clv__onnx_names_find(&s->names, name, &number)) {
        m = &s->meanings[number];
        if (!m->output || m->made) return fail_name(x, c, name, "is made twice");
        m->made = true;
        return CLV_OK;
    }
    CLV_TRY(make_name(x, &x->taken, c->prefix, name, &to));
    return add(x, s, name, to, &m);
}

/** What a name means where `s` is; NULL for `s`: itself. */
static clv_status rename_text(expander *x, const call *c, const scope *s, clv__onnx_text name,
                              clv__onnx_text *out) {
    uint32_t number;
    *out = name;
    if (!s || name.n == 0) return CLV_OK;
    for (; s; s = s->around) {
        if (!clv__onnx_names_find(&s->names, name, &number)) continue;
        *out = s->meanings[number].text;
        return CLV_OK;
    }
    return fail_name(x, c, name, "is read, and nothing makes it");
}

static clv_status rename_all(expander *x, const call *c, const scope *s, const clv__onnx_text *from, size_t n,
                             const clv__onnx_text **out) {
    clv__onnx_text *to = clv__onnx_take(x->r, n, sizeof *to);
    if (!to) return x->r->status;
    for (size_t i = 0; i < n; i++) CLV_TRY(rename_text(x, c, s, from[i], &to[i]));
    *out = to;
    return CLV_OK;
}

static void scope_reset(scope *s) {
    clv__onnx_names_reset(&s->names);
    free(s->meanings);
}

// ---- copies of bodies ------------------------------------------------------------------------------------

static clv_status copy_graph(expander *x, const call *c, const scope *around, const clv__onnx_graph *from,
                             clv__onnx_graph *to);

/** Graphs of an attribute are copied. `c` NULL: names stay. */
static clv_status copy_graphs(expander *x, const call *c, const scope *s, clv__onnx_attribute *a) {
    if (a->g) {
        clv__onnx_graph *g = clv__onnx_take(x->r, 1, sizeof *g);
        if (!g) return x->r->status;
        CLV_TRY(copy_graph(x, c, s, a->g, g));
        a->g = g;
    }
    if (a->graphs) {
        clv__onnx_graph *graphs = clv__onnx_take(x->r, a->n, sizeof *graphs);
        if (!graphs) return x->r->status;
        for (size_t i = 0; i < a->n; i++) CLV_TRY(copy_graph(x, c, s, &a->graphs[i], &graphs[i]));
        a->graphs = graphs;
    }
    return CLV_OK;
}

static const clv__onnx_attribute *find_given(const call *c, clv__onnx_text name) {
    for (size_t i = 0; i < c->node->n_attributes; i++)
        if (clv__onnx_text_equal(c->node->attributes[i].name, name)) return &c->node->attributes[i];
    for (size_t i = 0; i < c->function->n_defaults; i++)
        if (clv__onnx_text_equal(c->function->defaults[i].name, name)) return &c->function->defaults[i];
    return NULL;
}

/** An attribute of the body; *there false: it is one of the call's, which the call does not give. */
static clv_status copy_attribute(expander *x, const call *c, const scope *s, const clv__onnx_attribute *from,
                                 clv__onnx_attribute *to, bool *there) {
    *there = true;
    *to = *from;
    if (!c || from->ref_attr_name.n == 0) return copy_graphs(x, c, s, to);
    const clv__onnx_attribute *given = find_given(c, from->ref_attr_name);
    *there = given != NULL;
    if (!given) return CLV_OK;
    if (from->type != CLV__ONNX_ATTRIBUTE_NONE && from->type != given->type)
        return fail_name(x, c, from->ref_attr_name, "is an attribute of another type where it is called");
    *to = *given;
    to->name = from->name;
    to->ref_attr_name = (clv__onnx_text){.data = ""};
    return copy_graphs(x, NULL, NULL, to);
}

static clv_status copy_node(expander *x, const call *c, const scope *s, const clv__onnx_node *from,
                            clv__onnx_node *to) {
    *to = *from;
    CLV_TRY(rename_all(x, c, s, from->inputs, from->n_inputs, &to->inputs));
    CLV_TRY(rename_all(x, c, s, from->outputs, from->n_outputs, &to->outputs));
    clv__onnx_attribute *attributes = clv__onnx_take(x->r, from->n_attributes, sizeof *attributes);
    if (!attributes) return x->r->status;
    to->n_attributes = 0;
    to->attributes = attributes;
    for (size_t i = 0; i < from->n_attributes; i++) {
        bool there;
        CLV_TRY(copy_attribute(x, c, s, &from->attributes[i], &attributes[to->n_attributes], &there));
        to->n_attributes += there;
    }
    if (!c) return CLV_OK;
    CLV_TRY(make_name(x, NULL, c->prefix, from->name.n ? from->name : from->op_type, &to->name));
    return set_opset(x, c->function, to);
}

static clv_status expand_call(expander *x, const clv__onnx_function *f, const clv__onnx_node *node, int depth,
                              made_list *list);

static clv_status copy_nodes(expander *x, const call *c, const scope *s, const clv__onnx_node *nodes,
                             size_t n, made_list *list) {
    for (size_t i = 0; i < n; i++) {
        clv__onnx_node node;
        CLV_TRY(copy_node(x, c, s, &nodes[i], &node));
        const clv__onnx_function *f = find_function(x, &node);
        CLV_TRY(f ? expand_call(x, f, &node, c ? c->depth + 1 : 1, list) : take_node(x, &node, list));
    }
    return CLV_OK;
}

static clv_status copy_infos(expander *x, const call *c, const scope *s, const clv__onnx_info *from, size_t n,
                             clv__onnx_info **out) {
    clv__onnx_info *to = clv__onnx_take(x->r, n, sizeof *to);
    if (!to) return x->r->status;
    for (size_t i = 0; i < n; i++) {
        to[i] = from[i];
        CLV_TRY(rename_text(x, c, s, from[i].name, &to[i].name));
    }
    *out = to;
    return CLV_OK;
}

/** Names that a graph of a body makes. */
static clv_status declare_graph(expander *x, const call *c, scope *s, const clv__onnx_graph *g) {
    for (size_t i = 0; i < g->n_inputs; i++) CLV_TRY(declare(x, c, s, g->inputs[i].name));
    for (size_t i = 0; i < g->n_initializers; i++) {
        uint32_t number;
        if (!clv__onnx_names_find(&s->names, g->initializers[i].name, &number)) // else it is an input's
            CLV_TRY(declare(x, c, s, g->initializers[i].name));
    }
    for (size_t i = 0; i < g->n_sparse; i++) CLV_TRY(declare(x, c, s, g->sparse[i]));
    for (size_t i = 0; i < g->n_nodes; i++)
        for (size_t k = 0; k < g->nodes[i].n_outputs; k++) CLV_TRY(declare(x, c, s, g->nodes[i].outputs[k]));
    return CLV_OK;
}

static clv_status copy_parts(expander *x, const call *c, const scope *s, const clv__onnx_graph *from,
                             clv__onnx_graph *to) {
    made_list list = {.end = &list.first};
    *to = *from;
    to->n_value_infos = 0; // of names that are others now
    CLV_TRY(copy_infos(x, c, s, from->inputs, from->n_inputs, &to->inputs));
    CLV_TRY(copy_infos(x, c, s, from->outputs, from->n_outputs, &to->outputs));
    CLV_TRY(rename_all(x, c, s, from->sparse, from->n_sparse, &to->sparse));
    to->initializers = clv__onnx_take(x->r, from->n_initializers, sizeof *to->initializers);
    if (!to->initializers) return x->r->status;
    for (size_t i = 0; i < from->n_initializers; i++) {
        to->initializers[i] = from->initializers[i];
        CLV_TRY(rename_text(x, c, s, from->initializers[i].name, &to->initializers[i].name));
    }
    CLV_TRY(copy_nodes(x, c, s, from->nodes, from->n_nodes, &list));
    return flatten(x, &list, to);
}

static clv_status copy_graph(expander *x, const call *c, const scope *around, const clv__onnx_graph *from,
                             clv__onnx_graph *to) {
    scope own = {.around = around};
    if (x->r->depth == CLV__ONNX_DEEPEST)
        CLV_FAIL(x->r->error, CLV_E_UNSUPPORTED, "graphs lie in each other more than %d deep",
                 CLV__ONNX_DEEPEST);
    x->r->depth++;
    clv_status status = c ? declare_graph(x, c, &own, from) : CLV_OK;
    if (status == CLV_OK) status = copy_parts(x, c, c ? &own : NULL, from, to);
    x->r->depth--;
    scope_reset(&own);
    return status;
}

// ---- calls -----------------------------------------------------------------------------------------------

/** Inputs become those of the call, outputs too; what the body makes beside them gets names of its own. */
static clv_status declare_function(expander *x, const call *c, scope *s) {
    const clv__onnx_function *f = c->function;
    const clv__onnx_text none = {.data = ""};
    meaning *m;
    for (size_t i = 0; i < f->n_inputs; i++) {
        CLV_TRY(add(x, s, f->inputs[i], i < c->node->n_inputs ? c->node->inputs[i] : none, &m));
        if (!m) return fail_name(x, c, f->inputs[i], "is twice an input");
    }
    for (size_t i = 0; i < f->n_outputs; i++) {
        clv__onnx_text to = i < c->node->n_outputs ? c->node->outputs[i] : none;
        if (to.n == 0) CLV_TRY(make_name(x, &x->taken, c->prefix, f->outputs[i], &to));
        CLV_TRY(add(x, s, f->outputs[i], to, &m));
        if (!m) return fail_name(x, c, f->outputs[i], "is an output, and is an input or an output already");
        m->output = true;
    }
    for (size_t i = 0; i < f->n_nodes; i++)
        for (size_t k = 0; k < f->nodes[i].n_outputs; k++) CLV_TRY(declare(x, c, s, f->nodes[i].outputs[k]));
    for (uint32_t i = 0; i < s->names.n; i++)
        if (s->meanings[i].output && !s->meanings[i].made)
            return fail_name(x, c, s->names.texts[i], "is an output, and nothing makes it");
    return CLV_OK;
}

static clv_status expand_call(expander *x, const clv__onnx_function *f, const clv__onnx_node *node, int depth,
                              made_list *list) {
    call c = {.function = f, .node = node, .depth = depth};
    scope s = {0};
    clv__onnx_node_text room;
    clv__shown_text shown;
    if (depth > CLV__ONNX_DEEPEST)
        CLV_FAIL(x->r->error, CLV_E_UNSUPPORTED, "function '%s' calls itself, or calls lie more than %d deep",
                 clv__shown_bytes(f->name.data, f->name.n, &shown), CLV__ONNX_DEEPEST);
    if (node->n_inputs > f->n_inputs || node->n_outputs > f->n_outputs)
        CLV_FAIL(x->r->error, CLV_E_FORMAT,
                 "%s has %zu inputs and %zu outputs, and the function that it calls %zu and %zu",
                 clv__onnx_node_shown(node, &room), node->n_inputs, node->n_outputs, f->n_inputs,
                 f->n_outputs);
    clv__onnx_text name = node->name;
    for (size_t i = 0; i < node->n_outputs && name.n == 0; i++) name = node->outputs[i];
    CLV_TRY(
        make_name(x, &x->prefixes, (clv__onnx_text){.data = ""}, name.n ? name : node->op_type, &c.prefix));
    clv_status status = declare_function(x, &c, &s);
    if (status == CLV_OK) status = copy_nodes(x, &c, &s, f->nodes, f->n_nodes, list);
    scope_reset(&s);
    return status;
}

// ---- the model's graphs ----------------------------------------------------------------------------------

/** All names that graphs of the file make. */
static clv_status take_names(expander *x, const clv__onnx_graph *g) {
    uint32_t number;
    bool is_new;
    for (size_t i = 0; i < g->n_inputs; i++) CLV_TRY(put(x, &x->taken, g->inputs[i].name, &number, &is_new));
    for (size_t i = 0; i < g->n_initializers; i++)
        CLV_TRY(put(x, &x->taken, g->initializers[i].name, &number, &is_new));
    for (size_t i = 0; i < g->n_sparse; i++) CLV_TRY(put(x, &x->taken, g->sparse[i], &number, &is_new));
    for (size_t i = 0; i < g->n_nodes; i++) {
        const clv__onnx_node *node = &g->nodes[i];
        for (size_t k = 0; k < node->n_outputs; k++)
            CLV_TRY(put(x, &x->taken, node->outputs[k], &number, &is_new));
        for (size_t k = 0; k < node->n_attributes; k++) {
            const clv__onnx_attribute *a = &node->attributes[k];
            if (a->g) CLV_TRY(take_names(x, a->g));
            for (size_t j = 0; a->graphs && j < a->n; j++) CLV_TRY(take_names(x, &a->graphs[j]));
        }
    }
    return CLV_OK;
}

static clv_status expand_graph(expander *x, clv__onnx_graph *g) {
    bool calls = false;
    made_list list = {.end = &list.first};
    x->r->depth++; // 64 at most, since it was decoded
    for (size_t i = 0; i < g->n_nodes; i++) {
        clv__onnx_node *node = &g->nodes[i];
        CLV_TRY(set_opset(x, NULL, node));
        calls |= find_function(x, node) != NULL;
        for (size_t k = 0; k < node->n_attributes; k++) {
            const clv__onnx_attribute *a = &node->attributes[k];
            clv__onnx_node_text room;
            if (a->ref_attr_name.n)
                CLV_FAIL(x->r->error, CLV_E_FORMAT, "%s refers to an attribute of a function, and is in none",
                         clv__onnx_node_shown(node, &room));
            if (a->g) CLV_TRY(expand_graph(x, a->g));
            for (size_t j = 0; a->graphs && j < a->n; j++) CLV_TRY(expand_graph(x, &a->graphs[j]));
        }
    }
    for (size_t i = 0; calls && i < g->n_nodes; i++) {
        const clv__onnx_function *f = find_function(x, &g->nodes[i]);
        CLV_TRY(f ? expand_call(x, f, &g->nodes[i], 1, &list) : take_node(x, &g->nodes[i], &list));
    }
    x->r->depth--;
    return calls ? flatten(x, &list, g) : CLV_OK;
}

static clv_status expand(expander *x) {
    CLV_TRY(sort_functions(x));
    if (x->r->model->n_functions) CLV_TRY(take_names(x, &x->r->model->graph));
    return expand_graph(x, &x->r->model->graph);
}

clv_status clv__onnx_expand(clv__onnx_reader *r) {
    expander x = {.r = r};
    clv_status status = expand(&x);
    free(x.functions);
    clv__onnx_names_reset(&x.taken);
    clv__onnx_names_reset(&x.prefixes);
    return status;
}
