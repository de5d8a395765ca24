// SPDX-License-Identifier: Apache-2.0
// A graph to a file (graph_file.h). A node is written as the call of the builder that appends it, so that reading needs nothing
// but builders, which look at all they are given. What clv_backward and optimizers appended is left out, and so is what builders append by
// themselves: casts of mixed precision, updates of running statistics.
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "cleave/io.h"
#include "device/device.h"
#include "graph/graph.h"
#include "graph/signature.h"
#include "io/array.h"
#include "nn/graph_file.h"
#include "tensor/dtype.h"

typedef struct writing {
    const clv_graph *graph;
    clv__error *error;
    int *number; // by node id: in the file, -1: left out
    int n_nodes;
    bool failed; // no memory for JSON
} writing;

static void put(writing *w, json_t *object, const char *key, json_t *value) {
    if (json_object_set_new(object, key, value)) w->failed = true;
}

static void append(writing *w, json_t *list, json_t *value) {
    if (json_array_append_new(list, value)) w->failed = true;
}

static json_t *whole_numbers(writing *w, const int64_t *numbers, int n) {
    json_t *list = json_array();
    for (int i = 0; i < n; i++) append(w, list, json_integer(numbers[i]));
    return list;
}

static json_t *shape_of(writing *w, const clv_tensor *tensor) {
    return whole_numbers(w, tensor->desc.shape.dims, tensor->desc.shape.rank);
}

/** JSON has no number for what is not finite. */
static json_t *number(double value) {
    if (isfinite(value)) return json_real(value);
    return json_string(isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
}

// ---- inputs and state -----------------------------------------------------------------------------------------------

static json_t *tensor_of(writing *w, const clv_tensor *tensor, bool natural) {
    json_t *object = json_object();
    put(w, object, "name", json_string(tensor->name));
    put(w, object, "dtype", json_string(clv_dtype_name(tensor->desc.dtype)));
    put(w, object, "shape", shape_of(w, tensor));
    if (tensor->requires_grad != natural)
        put(w, object, "requires_grad", json_boolean(tensor->requires_grad));
    return object;
}

static json_t *state_of(writing *w, const clv_tensor *tensor) {
    json_t *object = tensor_of(w, tensor, tensor->trainable);
    put(w, object, "kind",
        json_string(tensor->trainable ? "parameter"
                    : tensor->values  ? "constant"
                                      : "buffer"));
    if (tensor->values) return object;
    json_t *init = json_array();
    append(w, init, json_string(clv__init_words[tensor->init.kind]));
    append(w, init, json_real(tensor->init.a));
    append(w, init, json_real(tensor->init.b));
    put(w, object, "init", init);
    return object;
}

/** Made by clv_parameter, clv_buffer or clv_constant, not by an optimizer. */
static bool is_state(const clv_tensor *tensor) {
    return tensor->kind == CLV__PERSISTENT && (tensor->category == CLV_PARAMETERS || tensor->values);
}

static bool is_input(const writing *w, const clv_tensor *tensor) {
    return tensor->kind == CLV__INPUT && tensor != w->graph->random && tensor != w->graph->hyper;
}

// ---- nodes ----------------------------------------------------------------------------------------------------------

/** A cast that a half tensor has for readers that take no half. */
static bool is_automatic(const clv__node *node) {
    return node->io.n_in && node->in[0] && node->in[0]->as_float == node->out[0];
}

static json_t *value_of(const writing *w, const clv_tensor *tensor) {
    if (!tensor) return json_null();
    if (tensor->node && is_automatic(tensor->node)) tensor = tensor->node->in[0];
    if (!tensor->node) return json_string(tensor->name);
    const int at = w->number[tensor->node->id];
    return tensor->output_index ? json_pack("[i,i]", at, tensor->output_index) : json_integer(at);
}

static json_t *attribute_value(writing *w, const clv_op_attribute *attribute, const void *attrs) {
    clv__attribute_value value;
    clv__attribute_get(attribute, attrs, &value);
    switch (attribute->kind) {
    case CLV_ATTRIBUTE_NUMBER: return number(value.number);
    case CLV_ATTRIBUTE_INT:
    case CLV_ATTRIBUTE_BOOL: return json_integer((json_int_t)value.number);
    case CLV_ATTRIBUTE_DTYPE: return json_string(clv_dtype_name((clv_dtype)value.number));
    case CLV_ATTRIBUTE_PAIR:
    case CLV_ATTRIBUTE_LIST: return whole_numbers(w, value.list, value.n);
    case CLV_ATTRIBUTE_TEXT: return json_string(value.text);
    }
    return NULL;
}

static json_t *attributes_of(writing *w, const clv_op_attribute *list, const void *attrs) {
    json_t *object = json_object();
    for (int i = 0; list[i].name; i++) put(w, object, list[i].name, attribute_value(w, &list[i], attrs));
    return object;
}

/** The node's inputs, without those that builders add, and with running statistics, which another node follows. */
static json_t *inputs_of(writing *w, const clv__node *node) {
    json_t *list = json_array();
    for (int i = 0; i < node->io.n_in; i++)
        if (node->in[i] != w->graph->random || !node->in[i]) append(w, list, value_of(w, node->in[i]));
    const size_t after = (size_t)node->id + 1;
    const clv__node *next = after < w->graph->n_nodes ? w->graph->nodes[after] : NULL;
    enum { MEAN = 1 }; // of a batch norm: an output; of the update of running statistics: in[2]
    if (next && next->phase == CLV__UPDATE && next->io.n_in == 4 && next->in[2] &&
        next->in[2] == clv__node_out(node, MEAN))
        for (int i = 0; i < 2; i++) append(w, list, value_of(w, next->in[i]));
    return list;
}

static clv_status cannot(const writing *w, const clv__node *node, const char *why) {
    clv__node_title title;
    CLV_FAIL(w->error, CLV_E_UNSUPPORTED, "%s cannot be written to a file: %s", clv__title_of(node, &title),
             why);
}

static clv_status write_node(writing *w, const clv__node *node, json_t *nodes) {
    _Alignas(16) char room[CLV__ATTRS_BYTES] = {0};
    const void *attrs;
    const clv__op *op = clv__call_of(node, room, &attrs);
    if (!clv_op_find(op->name)) return cannot(w, node, "no builder of ops.h makes it");
    if (node->cut)
        return cannot(w, node, "it is computed for a part of the batch; write the graph before that is cut");
    json_t *object = json_object();
    append(w, nodes, object);
    put(w, object, "op", json_string(op->name));
    put(w, object, "inputs", inputs_of(w, node));
    if (op->attributes && op->attributes[0].name)
        put(w, object, "attributes", attributes_of(w, op->attributes, attrs));
    if (*node->layer) put(w, object, "layer", json_string(node->layer));
    if (node->place_hint && !node->io.op->moves) put(w, object, "place", json_string(node->place_hint));
    bool natural = false;
    for (int i = 0; i < node->io.n_in; i++) natural |= node->in[i] && node->in[i]->requires_grad;
    const clv_tensor *out = node->out[0];
    natural = natural && clv__is_float(out->desc.dtype) && !op->detaches;
    if (out->requires_grad != natural) put(w, object, "requires_grad", json_boolean(out->requires_grad));
    if (out->desc.dtype == CLV_DTYPE_F16 || out->desc.dtype == CLV_DTYPE_BF16)
        put(w, object, "dtype", json_string(clv_dtype_name(out->desc.dtype)));
    w->number[node->id] = w->n_nodes++;
    return CLV_OK;
}

// ---- the whole ------------------------------------------------------------------------------------------------------

static clv_status describe(writing *w, json_t *root) {
    const clv_graph *graph = w->graph;
    json_t *inputs = json_array(), *state = json_array(), *nodes = json_array(), *outputs = json_array();
    put(w, root, "version", json_integer(CLV__GRAPH_VERSION));
    put(w, root, "training", json_boolean(graph->training));
    put(w, root, "precision", json_string(clv__precision_words[graph->precision]));
    put(w, root, "inputs", inputs);
    put(w, root, "state", state);
    put(w, root, "nodes", nodes);
    put(w, root, "outputs", outputs);
    for (size_t i = 0; i < graph->n_tensors; i++) {
        const clv_tensor *tensor = graph->tensors[i];
        if (is_input(w, tensor)) append(w, inputs, tensor_of(w, tensor, false));
        if (is_state(tensor)) append(w, state, state_of(w, tensor));
    }
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const clv__node *node = graph->nodes[i];
        w->number[i] = -1;
        if (node->phase != CLV__FORWARD || is_automatic(node)) continue;
        CLV_TRY(write_node(w, node, nodes));
    }
    for (size_t i = 0; i < graph->n_tensors; i++) {
        const clv_tensor *tensor = graph->tensors[i];
        if (!tensor->is_output || w->number[tensor->node->id] < 0) continue;
        append(w, outputs, json_pack("[o,s]", value_of(w, tensor), tensor->name));
    }
    return CLV_OK;
}

static clv_status put_together(writing *w, const json_t *root, clv_archive *archive) {
    char *text = json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(17));
    clv_status status = CLV_OK;
    if (!text || w->failed)
        status = clv__error_set(w->error, CLV_E_HOST_MEMORY, "no host memory for the text of a graph");
    for (size_t i = 0; status == CLV_OK && i < w->graph->n_tensors; i++) {
        const clv_tensor *tensor = w->graph->tensors[i];
        if (tensor->values)
            status = clv_archive_add(archive, tensor->name, tensor->desc.dtype, &tensor->desc.shape,
                                     tensor->values, NULL);
    }
    if (status == CLV_OK) status = clv_archive_set_text(archive, CLV__GRAPH_KEY, text);
    free(text);
    return status;
}

clv_status clv__graph_to_archive(const clv_graph *graph, clv_archive *archive) {
    clv__error *error = clv__runtime_error_of(graph->runtime);
    CLV_TRY(clv__graph_built(graph));
    writing w = {.graph = graph, .error = error, .number = clv__alloc(graph->n_nodes + 1, sizeof(int))};
    json_t *root = json_object();
    clv_status status = CLV_OK;
    if (!root || !w.number)
        status = clv__error_set(error, CLV_E_HOST_MEMORY, "no host memory for the text of a graph");
    if (status == CLV_OK) status = describe(&w, root);
    if (status == CLV_OK) status = put_together(&w, root, archive);
    json_decref(root);
    free(w.number);
    return status;
}

clv_status clv_graph_write(const clv_graph *graph, const char *path) {
    CLV_TRY(CLV__GIVEN(NULL, graph));
    CLV_TRY(CLV__USABLE(clv__runtime_error_of(graph->runtime), path));
    clv_archive *archive;
    CLV_TRY(clv_archive_create(graph->runtime, &archive));
    clv_status status = clv__graph_to_archive(graph, archive);
    if (status == CLV_OK) status = clv_safetensors_write(archive, path);
    clv_archive_destroy(archive);
    return status;
}
