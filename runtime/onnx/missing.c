// SPDX-License-Identifier: Apache-2.0
// Which ops of a file there are not, asked before anything is built: those without a row, and those that the host alone computes where
// they are given what is fed.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/shown.h"
#include "onnx/import.h"
#include "onnx/weights.h"

/** What a value is while a graph is built: numbers on the host, a parameter that the host can look at too, or a tensor of the device. */
typedef enum kind { KNOWN, PARAMETER, FED } kind;

/** An op that there is not, how often, and where first. */
typedef struct lack {
    clv__onnx_text op, domain;
    bool of_fed; // of known numbers it could be computed
    const clv__onnx_node *first;
    size_t n;
} lack;

enum { MOST_LACKS = 64 };

typedef struct search {
    uint8_t *kinds; // by the model's numbers of values
    lack list[MOST_LACKS];
    size_t n;
} search;

static void note(search *s, const clv__onnx_node *node, bool of_fed) {
    size_t k = 0;
    while (k < s->n && !(clv__onnx_text_equal(s->list[k].op, node->op_type) &&
                         clv__onnx_text_equal(s->list[k].domain, node->domain)))
        k++;
    if (k == MOST_LACKS) return;
    if (k == s->n) s->list[s->n++] = (lack){node->op_type, node->domain, of_fed, node, 0};
    s->list[k].n++;
}

/** Is it one of so many ops? */
static bool is_of(const clv__onnx_node *node, const char *const *ops, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (clv__onnx_text_is(node->op_type, ops[i])) return true;
    return false;
}
#define IS_OF(node, list) is_of(node, list, sizeof(list) / sizeof *(list))
/** Their results follow from shapes, which are fixed when a graph is built. */
static const char *const of_shapes[] = {"EyeLike", "OptionalHasElement", "SequenceLength", "Shape", "Size"};
/** They hand on what they are given, or a part of it. */
static const char *const hand_on[] = {"Optional",          "OptionalGetElement", "SequenceAt",
                                      "SequenceConstruct", "SequenceEmpty",      "SequenceErase",
                                      "SequenceInsert"};

/** What a node's results are; what there is not of it is noted. As build_node of import.c decides. */
static kind look_at(search *s, const clv__onnx_node *node) {
    clv__onnx_side side = CLV__ONNX_DEVICE;
    const bool row = clv__onnx_row_of(node, &side) != NULL;
    kind most = KNOWN;
    for (size_t i = 0; i < node->n_inputs; i++) {
        const uint32_t value = node->input_values[i];
        if (value != CLV__ONNX_NO_VALUE && s->kinds[value] > most) most = s->kinds[value];
    }
    if (!row || (side == CLV__ONNX_HOST && most == FED)) {
        note(s, node, row);
        return FED;
    }
    if (side == CLV__ONNX_HOST || IS_OF(node, of_shapes)) return KNOWN;
    if (IS_OF(node, hand_on)) return most;
    const uint32_t first = node->n_inputs ? node->input_values[0] : CLV__ONNX_NO_VALUE;
    if (clv__onnx_text_is(node->op_type, "CastLike") && first != CLV__ONNX_NO_VALUE &&
        s->kinds[first] == KNOWN)
        return KNOWN; // only the type of the other counts
    if (most == PARAMETER && clv__onnx_text_is(node->op_type, "Identity")) return PARAMETER;
    return side == CLV__ONNX_EITHER && most == KNOWN ? KNOWN : FED;
}

static void look_through(search *s, const clv__onnx_graph *graph);

static void look_into(search *s, const clv__onnx_node *node) {
    for (size_t k = 0; k < node->n_attributes; k++) {
        const clv__onnx_attribute *attribute = &node->attributes[k];
        if (attribute->g) look_through(s, attribute->g);
        for (size_t i = 0; attribute->graphs && i < attribute->n; i++) look_through(s, &attribute->graphs[i]);
    }
}

static kind kind_of(const search *s, const clv__onnx_node *node, size_t i) {
    const bool there = i < node->n_inputs && node->input_values[i] != CLV__ONNX_NO_VALUE;
    return there ? (kind)s->kinds[node->input_values[i]] : KNOWN;
}

/**
 * Nodes with graphs, as control.c builds them: their course must be known. Then one branch of an If is never built, so neither is looked
 * at; a loop's graph is looked at as its first turn has it. What that leaves out is refused, node by node, when it is built.
 */
static void look_at_flow(search *s, const clv__onnx_node *node) {
    const bool branches = clv__onnx_text_is(node->op_type, "If"),
               loop = clv__onnx_text_is(node->op_type, "Loop");
    const clv__onnx_attribute *body = clv__onnx_attribute_find(node, "body");
    const bool before_9 = clv__onnx_text_is(node->op_type, "Scan") && node->opset < 9;
    const size_t out_first = loop ? 1 : 0;
    const bool of_fed =
        (branches || loop) && (kind_of(s, node, 0) == FED || (loop && kind_of(s, node, 1) == FED));
    if (branches && of_fed) look_into(s, node);
    if (of_fed) note(s, node, true);
    if (!branches && body && body->g) {
        for (size_t i = 0; i < body->g->n_inputs; i++)
            s->kinds[body->g->inputs[i].value] =
                (uint8_t)(loop && i < 2 ? KNOWN : kind_of(s, node, i + before_9));
        look_through(s, body->g);
    }
    for (size_t k = 0; k < node->n_outputs; k++) {
        const bool told = !branches && body && body->g && k + out_first < body->g->n_outputs;
        if (node->output_values[k] != CLV__ONNX_NO_VALUE)
            s->kinds[node->output_values[k]] = told ? s->kinds[body->g->outputs[k + out_first].value] : KNOWN;
    }
}

/** Graphs in it too, which are at most CLV__ONNX_DEEPEST deep. */
static void look_through(search *s, const clv__onnx_graph *graph) {
    for (size_t i = 0; i < graph->n_initializers; i++)
        s->kinds[graph->initializers[i].value] =
            clv__onnx_is_parameter(&graph->initializers[i]) ? PARAMETER : KNOWN;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const clv__onnx_node *node = &graph->nodes[i];
        clv__onnx_side side;
        if (clv__onnx_row_of(node, &side) && side == CLV__ONNX_FLOW) {
            look_at_flow(s, node);
            continue;
        }
        look_into(s, node);
        const kind made = look_at(s, node);
        for (size_t k = 0; k < node->n_outputs; k++)
            if (node->output_values[k] != CLV__ONNX_NO_VALUE) s->kinds[node->output_values[k]] = made;
    }
}

/** `NonZero of what is fed: 2 nodes, the first node 'n' (NonZero)`. */
static void tell(const lack *one, char *text, size_t bytes) {
    clv__shown_text op, domain;
    clv__onnx_node_text node;
    snprintf(text, bytes, "%s%s%s%s: %zu node%s, the first %s",
             one->domain.n ? clv__shown_bytes(one->domain.data, one->domain.n, &domain) : "",
             one->domain.n ? "." : "", clv__shown_bytes(one->op.data, one->op.n, &op),
             one->of_fed ? " of what is fed" : "", one->n, one->n == 1 ? "" : "s",
             clv__onnx_node_shown(one->first, &node));
}

static clv_status tell_all(const search *s, const char *path, clv__error *error) {
    char text[CLV__ERROR_BYTES * 3 / 4] = "", one[700], more[48] = "";
    size_t used = 0, i = 0;
    for (; i < s->n; i++) {
        tell(&s->list[i], one, sizeof one);
        if (used + strlen(one) + 3 > sizeof text) break;
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", i ? "; " : "", one);
    }
    if (i < s->n) snprintf(more, sizeof more, "; and %zu more", s->n - i);
    CLV_FAIL(error, CLV_E_UNSUPPORTED, "'%s' wants %zu op%s that Cleave does not have: %s%s", path, s->n,
             s->n == 1 ? "" : "s", text, more);
}

clv_status clv__onnx_check_ops(clv__error *error, const clv__onnx_model *model) {
    search s = {.kinds = calloc((size_t)model->n_values + 1, 1)};
    if (!s.kinds) CLV_FAIL(error, CLV_E_HOST_MEMORY, "no memory for '%s'", model->path);
    for (size_t i = 0; i < model->graph.n_inputs; i++) s.kinds[model->graph.inputs[i].value] = FED;
    look_through(&s, &model->graph);
    free(s.kinds);
    return s.n ? tell_all(&s, model->path, error) : CLV_OK;
}
