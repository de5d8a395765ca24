// SPDX-License-Identifier: Apache-2.0
// Building: tensors and nodes are appended, never removed; the first mistake sticks.
#include "graph/graph.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/modules.h"
#include "base/shown.h"
#include "device/device.h"
#include "graph/signature.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

// ---- the graph ----------------------------------------------------------------------------------------------------

clv_status clv_graph_create(clv_runtime *runtime, clv_graph **out) {
    CLV_TRY(CLV__GIVEN(NULL, runtime));
    CLV_TRY(CLV__USABLE(clv__runtime_error_of(runtime), out));
    *out = NULL;
    clv_graph *graph = clv__alloc(1, sizeof *graph);
    if (!graph) CLV_FAIL(clv__runtime_error_of(runtime), CLV_E_HOST_MEMORY, "no host memory for a graph");
    graph->runtime = runtime;
    graph->cut.micro_batch = -1;
    graph->dropout = -1;
    clv__error_init(&graph->error);
    *out = graph;
    return CLV_OK;
}

void clv_graph_destroy(clv_graph *graph) {
    if (!graph) return;
    clv__error_destroy(&graph->error);
    clv__arena_reset(&graph->arena);
    free(graph->tensors);
    clv__names_reset(&graph->names);
    free(graph->nodes);
    free(graph);
}

clv_status clv_graph_status(const clv_graph *graph) {
    CLV_TRY(CLV__GIVEN(NULL, graph));
    if (graph->error.status == CLV_OK) return CLV_OK;
    return clv__error_set(clv__runtime_error_of(graph->runtime), graph->error.status, "%s",
                          graph->error.text);
}

clv_status clv__graph_built(const clv_graph *graph) {
    CLV_TRY(clv_graph_status(graph));
    if (!*graph->scope) return CLV_OK;
    CLV_FAIL(clv__runtime_error_of(graph->runtime), CLV_E_STATE,
             "scope '%.*s' was pushed and not popped: call clv_scope_pop once for each clv_scope_push",
             (int)strlen(graph->scope) - 1, graph->scope);
}

clv_tensor *clv__graph_fail(clv_graph *graph, clv_status status, const char *format, ...) {
    if (!graph || graph->error.status != CLV_OK) return NULL;
    char text[CLV__ERROR_BYTES];
    va_list args;
    va_start(args, format);
    clv__format_shown(text, sizeof text, CLV__SHOWN_NAMES, format, args);
    va_end(args);
    clv__error_set(&graph->error, status, "%s", text);
    return NULL;
}

clv_graph_modes clv_graph_modes_get(const clv_graph *graph) {
    if (!graph) return (clv_graph_modes){.dropout = -1};
    return (clv_graph_modes){.training = graph->training,
                             .precision = graph->precision,
                             .place = graph->place_hint,
                             .dropout = graph->dropout};
}

/** The device that is hinted at: the graph's copy of its name. */
static void set_place(clv_graph *graph, const char *device) {
    if (device == graph->place_hint) return;
    graph->place_hint = device ? clv__arena_strdup(&graph->arena, device) : NULL;
    if (device && !graph->place_hint)
        clv__graph_fail(graph, CLV_E_HOST_MEMORY, "no host memory for the graph");
}

void clv_graph_modes_set(clv_graph *graph, const clv_graph_modes *modes) {
    if (!graph) return;
    if (modes->precision != CLV_PRECISION_F32 && modes->precision != CLV_PRECISION_MIXED &&
        modes->precision != CLV_PRECISION_MIXED_BF16) {
        clv__graph_fail(graph, CLV_E_VALUE, "there is no precision number %d", (int)modes->precision);
        return;
    }
    if (!(modes->dropout < 1))
        clv__graph_fail(graph, CLV_E_VALUE, "dropout of %g: it must be below 1", (double)modes->dropout);
    graph->training = modes->training;
    graph->precision = modes->precision;
    graph->dropout = modes->dropout;
    set_place(graph, modes->place);
}

bool clv__graph_training(const clv_graph *graph) {
    return graph->training;
}

float clv__graph_dropout(clv_graph *graph, float p) {
    if (!graph) return p;
    graph->asked_dropout = true;
    return graph->dropout >= 0 ? graph->dropout : p;
}

// ---- scopes and names ---------------------------------------------------------------------------------------------

/** A name that a caller gave: of a tensor, a scope. False: there is none, or it is empty, and the build has failed. */
static bool named(clv_graph *graph, const char *what, const char *name) {
    if (name && *name) return true;
    clv__graph_fail(graph, CLV_E_VALUE, "%s needs a name", what);
    return false;
}

void clv_scope_push(clv_graph *graph, const char *name) {
    if (!graph || !named(graph, "a scope", name)) return;
    size_t used = strlen(graph->scope);
    if (used + strlen(name) + 2 > sizeof graph->scope) {
        clv__graph_fail(graph, CLV_E_VALUE, "scope '%s%s' is longer than %zu bytes", graph->scope, name,
                        sizeof graph->scope - 2);
        return;
    }
    int n = snprintf(graph->scope + used, sizeof graph->scope - used, "%s.", name);
    graph->scope_ends[used + (size_t)n - 1] = 1;
}

void clv_scope_pop(clv_graph *graph) {
    if (!graph) return;
    size_t used = strlen(graph->scope);
    if (used == 0) {
        clv__graph_fail(graph, CLV_E_STATE, "clv_scope_pop without a clv_scope_push");
        return;
    }
    graph->scope_ends[--used] = 0; // its own dot
    while (used > 0 && !graph->scope_ends[used - 1]) used--;
    graph->scope[used] = 0;
}

static bool is_used(const clv_graph *graph, const clv_tensor *tensor) {
    return tensor->read_by > graph->layers_since;
}

bool clv__layer_push(clv_graph *graph, const char *name, const char *parameter) {
    char full[1024];
    if (graph->error.status != CLV_OK || !named(graph, "a layer", name)) return false;
    snprintf(full, sizeof full, "%s%s.%s", graph->scope, name, parameter);
    const clv_tensor *tensor = clv_graph_find(graph, full);
    if (tensor && is_used(graph, tensor)) {
        clv__graph_fail(
            graph, CLV_E_VALUE,
            "there is a layer '%s%s' already, its weights would be shared; give this one another name or "
            "scope, or share them on purpose: clv_parameter gives '%s' to any op",
            graph->scope, name, full);
        return false;
    }
    clv_scope_push(graph, name);
    return graph->error.status == CLV_OK;
}

clv__parts clv__parts_begin(const clv_graph *graph) {
    return (clv__parts){
        .outer = graph->cut, .outer_since = graph->layers_since, .first_random_id = graph->next_random_id};
}

void clv__parts_next(clv_graph *graph, clv__parts *parts, clv__cut cut) {
    cut.first += parts->outer.first; // a part of a part: rows are counted from the batch's first
    graph->cut = cut;
    graph->next_random_id = parts->first_random_id;
    if (parts->begun) graph->layers_since = graph->n_nodes;
    parts->begun = true;
}

void clv__parts_end(clv_graph *graph, const clv__parts *parts) {
    graph->cut = parts->outer;
    graph->layers_since = parts->outer_since;
}

/** The scope without its last dot, as a string of the graph. Consecutive tensors share it. */
static const char *current_layer(clv_graph *graph) {
    if (graph->layer_override) return graph->layer_override;
    size_t used = strlen(graph->scope);
    size_t length = used ? used - 1 : 0;
    if (graph->n_tensors) {
        const char *last = graph->tensors[graph->n_tensors - 1]->layer;
        if (strlen(last) == length && memcmp(last, graph->scope, length) == 0) return last;
    }
    char *layer = clv__arena_alloc(&graph->arena, length + 1, 1);
    if (layer) memcpy(layer, graph->scope, length);
    return layer;
}

/** The part of a full parameter name before its last dot: the layer. */
static const char *layer_of_name(clv_graph *graph, const char *name) {
    const char *dot = strrchr(name, '.');
    size_t length = dot ? (size_t)(dot - name) : 0;
    char *layer = clv__arena_alloc(&graph->arena, length + 1, 1);
    if (layer) memcpy(layer, name, length);
    return layer;
}

const char *clv__graph_place(const clv_graph *graph) {
    return graph ? graph->place_hint : NULL;
}

/** The oldest of that name; one that has another name by now is skipped. */
clv_tensor *clv_graph_find(const clv_graph *graph, const char *name) {
    if (!graph || !name) return NULL;
    clv_tensor *found = NULL;
    size_t at = 0, id;
    while (clv__names_next(&graph->names, name, &at, &id)) {
        if ((!found || (int)id < found->id) && strcmp(graph->tensors[id]->name, name) == 0)
            found = graph->tensors[id];
    }
    return found;
}

const char *clv__graph_nearest(const clv_graph *graph, const char *pattern, clv__nearest *nearest) {
    *nearest = (clv__nearest){.word = pattern};
    for (size_t i = 0; i < graph->n_nodes; i++) {
        if (graph->nodes[i]->phase == CLV__FORWARD)
            clv__nearest_offer_modules(nearest, graph->nodes[i]->layer);
    }
    return clv__nearest_text(nearest);
}

// ---- tensors ------------------------------------------------------------------------------------------------------

static clv_tensor *out_of_memory(clv_graph *graph) {
    return clv__graph_fail(graph, CLV_E_HOST_MEMORY, "no host memory for the graph");
}

static clv_tensor *tensor_add(clv_graph *graph, clv__tensor_kind kind, clv__desc desc, const char *name,
                              const char *layer) {
    clv_tensor *tensor = clv__arena_alloc(&graph->arena, 1, sizeof *tensor);
    if (!tensor || !name || !layer ||
        !clv__grow(&graph->tensors, &graph->tensors_room, graph->n_tensors + 1, sizeof *graph->tensors)) {
        return out_of_memory(graph);
    }
    tensor->graph = graph;
    tensor->id = (int)graph->n_tensors;
    tensor->kind = kind;
    tensor->desc = desc;
    tensor->name = name;
    tensor->layer = layer;
    tensor->category = kind == CLV__INPUT ? CLV_IO : CLV_ACTIVATIONS;
    if (kind != CLV__VALUE && !clv__names_add(&graph->names, name, graph->n_tensors))
        return out_of_memory(graph);
    graph->tensors[graph->n_tensors++] = tensor;
    return tensor;
}

/** A possible shape, whose elements a kernel's int can index. */
static bool sizes_fit(clv_graph *graph, const char *name, const clv__desc *desc) {
    char text[128];
    const char *fault = clv__shape_fault(&desc->shape);
    if (!fault && clv__numel(desc) > INT32_MAX)
        fault = "it has more than 2147483647 elements, the most a tensor can have";
    if (!fault) return true;
    clv__graph_fail(graph, CLV_E_SHAPE, "'%s': shape %s is not possible: %s", name,
                    clv_shape_text(&desc->shape, text, sizeof text), fault);
    return false;
}

clv_tensor *clv_input(clv_graph *graph, const char *name, clv_dtype dtype, clv_shape shape) {
    if (!graph || graph->error.status != CLV_OK) return NULL;
    clv__desc desc = {dtype, shape};
    if (!named(graph, "an input", name)) return NULL;
    if (clv_dtype_bytes(dtype) == 0)
        return clv__graph_fail(graph, CLV_E_DTYPE, "input '%s' needs a data type", name);
    if (clv_graph_find(graph, name)) {
        return clv__graph_fail(graph, CLV_E_VALUE, "the graph already has a tensor named '%s'", name);
    }
    if (!sizes_fit(graph, name, &desc)) return NULL;
    return tensor_add(graph, CLV__INPUT, desc, clv__arena_strdup(&graph->arena, name), current_layer(graph));
}

clv_tensor *clv__persistent(clv_graph *graph, const char *full_name, clv__desc desc, clv_init init,
                            clv_category category, bool trainable) {
    if (!graph || graph->error.status != CLV_OK) return NULL;
    if (!sizes_fit(graph, full_name, &desc)) return NULL;
    clv_tensor *old = clv_graph_find(graph, full_name);
    if (old) {
        if (old->kind == CLV__PERSISTENT && clv_shape_equal(&old->desc.shape, &desc.shape) &&
            old->desc.dtype == desc.dtype)
            return old;
        char was[128], is[128];
        return clv__graph_fail(
            graph, CLV_E_SHAPE, "'%s' is there already with shape %s, and now wanted as %s", full_name,
            clv_shape_text(&old->desc.shape, was, sizeof was), clv_shape_text(&desc.shape, is, sizeof is));
    }
    clv_tensor *tensor = tensor_add(graph, CLV__PERSISTENT, desc, clv__arena_strdup(&graph->arena, full_name),
                                    layer_of_name(graph, full_name));
    if (!tensor) return NULL;
    tensor->init = init;
    tensor->category = category;
    tensor->trainable = tensor->requires_grad = trainable;
    return tensor;
}

static clv_tensor *scoped_persistent(clv_graph *graph, const char *name, clv__desc desc, clv_init init,
                                     clv_category category, bool trainable) {
    if (!graph || !named(graph, trainable ? "a parameter" : "a buffer", name)) return NULL;
    char full[1024];
    int n = snprintf(full, sizeof full, "%s%s", graph->scope, name);
    if (n < 0 || (size_t)n >= sizeof full) {
        return clv__graph_fail(graph, CLV_E_VALUE, "the name '%s%s' is too long", graph->scope, name);
    }
    return clv__persistent(graph, full, desc, init, category, trainable);
}

clv_tensor *clv_parameter(clv_graph *graph, const char *name, clv_shape shape, clv_init init) {
    return scoped_persistent(graph, name, clv__f32(shape), init, CLV_PARAMETERS, true);
}

clv_tensor *clv_buffer(clv_graph *graph, const char *name, clv_dtype dtype, clv_shape shape, clv_init init) {
    return scoped_persistent(graph, name, (clv__desc){dtype, shape}, init, CLV_PARAMETERS, false);
}

clv_tensor *clv__cache(clv_graph *graph, const char *name, clv_shape shape) {
    return scoped_persistent(graph, name, clv__f32(shape), (clv_init){.kind = CLV_INIT_ZEROS},
                             CLV_ACTIVATIONS, false);
}

clv_tensor *clv_constant(clv_graph *graph, clv_dtype dtype, clv_shape shape, const void *data) {
    if (!graph || graph->error.status != CLV_OK) return NULL;
    const clv__desc desc = {dtype, shape};
    if (clv_dtype_bytes(dtype) == 0 || clv__is_half(dtype))
        return clv__graph_fail(graph, CLV_E_DTYPE, "a constant cannot be %s", clv_dtype_name(dtype));
    if (!sizes_fit(graph, "a constant", &desc)) return NULL;
    const size_t bytes = clv__desc_bytes(&desc);
    if (bytes && !data) return clv__graph_fail(graph, CLV_E_VALUE, "a constant needs its values");
    // A session finds tensors by name, whatever graph they are of: so the name is that of these values.
    char name[160];
    clv_shape_text(&shape, name, sizeof name);
    const uint64_t kind = XXH3_64bits_withSeed(name, strlen(name), (uint64_t)dtype);
    snprintf(name, sizeof name, "constant_%016" PRIx64, XXH3_64bits_withSeed(data, bytes, kind));
    clv_tensor *tensor =
        clv__persistent(graph, name, desc, (clv_init){.kind = CLV_INIT_ZEROS}, CLV_ACTIVATIONS, false);
    if (!tensor || tensor->values) return tensor;
    void *values = clv__arena_alloc(&graph->arena, bytes + 1, 1); // none is a value, too
    if (!values) return out_of_memory(graph);
    if (bytes) memcpy(values, data, bytes);
    tensor->values = values;
    return tensor;
}

void clv_input_late(clv_tensor *input) {
    if (!input) return;
    if (input->kind == CLV__INPUT)
        input->late = true;
    else
        clv__graph_fail(input->graph, CLV_E_VALUE, "'%s' is not an input, so it cannot be fed late",
                        input->name);
}

void clv_output(clv_tensor *tensor, const char *name) {
    if (!tensor) return;
    clv_graph *graph = tensor->graph;
    if (tensor->kind != CLV__VALUE) {
        clv__graph_fail(graph, CLV_E_VALUE, "'%s' is not computed, so it cannot be an output", tensor->name);
        return;
    }
    if (name && strcmp(name, tensor->name) != 0) {
        if (clv_graph_find(graph, name)) {
            clv__graph_fail(graph, CLV_E_VALUE, "the graph already has a tensor named '%s'", name);
            return;
        }
        char *copy = clv__arena_strdup(&graph->arena, name);
        if (!copy) {
            out_of_memory(graph);
            return;
        }
        tensor->name = copy;
    }
    if (!clv__names_add(&graph->names, tensor->name, (size_t)tensor->id)) {
        out_of_memory(graph);
        return;
    }
    tensor->is_output = true;
    if (tensor->category == CLV_ACTIVATIONS) tensor->category = CLV_IO;
}

void clv_requires_grad(clv_tensor *tensor, bool requires_grad) {
    if (!tensor) return;
    if (requires_grad && !clv__is_float(tensor->desc.dtype)) {
        clv__graph_fail(tensor->graph, CLV_E_DTYPE, "'%s' is %s: only floats have gradients", tensor->name,
                        clv_dtype_name(tensor->desc.dtype));
        return;
    }
    tensor->requires_grad = requires_grad;
}

clv_graph_info clv_graph_info_get(const clv_graph *graph) {
    clv_graph_info info = {.n_nodes = (int)graph->n_nodes, .hyper = graph->hyper};
    for (size_t i = 0; i < graph->n_tensors; i++) info.n_parameters += graph->tensors[i]->trainable;
    return info;
}

clv_tensor *clv_parameter_get(const clv_graph *graph, int index) {
    for (size_t i = 0; i < graph->n_tensors; i++) {
        if (graph->tensors[i]->trainable && index-- == 0) return graph->tensors[i];
    }
    return NULL;
}

clv_tensor_info clv_tensor_info_get(const clv_tensor *tensor) {
    if (!tensor) return (clv_tensor_info){.name = ""};
    const int64_t numel = clv__numel(&tensor->desc);
    return (clv_tensor_info){.graph = tensor->graph,
                             .name = tensor->name,
                             .dtype = tensor->desc.dtype,
                             .requires_grad = tensor->requires_grad,
                             .shape = tensor->desc.shape,
                             .numel = numel,
                             .bytes = (size_t)numel * clv_dtype_bytes(tensor->desc.dtype)};
}

clv_tensor *clv_gradient(const clv_tensor *tensor) {
    return tensor ? tensor->gradient : NULL;
}

clv_graph *clv__tensor_graph(const clv_tensor *tensor) {
    return tensor ? tensor->graph : NULL;
}

// ---- nodes --------------------------------------------------------------------------------------------------------

/** "x [4,3], weight [2,2]": the shapes behind a mistake. */
static void describe_inputs(const clv__op_io *io, char *text, size_t bytes) {
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; i < io->n_in && used < bytes; i++) {
        char shape[128];
        if (io->in[i].dtype == CLV_DTYPE_NONE) continue;
        int n =
            snprintf(text + used, bytes - used, "%s%s %s", used ? ", " : "", clv_dtype_name(io->in[i].dtype),
                     clv_shape_text(&io->in[i].shape, shape, sizeof shape));
        if (n > 0) used += (size_t)n;
    }
}

const char *clv__title(const clv__op *op, const char *layer, size_t number, clv__node_title *title) {
    char shown[CLV__NAME_BYTES + 1];
    clv__show_name(layer, strlen(layer), shown);
    if (*layer)
        snprintf(title->text, sizeof title->text, "%s '%s'", op->name, shown);
    else
        snprintf(title->text, sizeof title->text, "%s#%zu", op->name, number);
    return title->text;
}

static clv_tensor *node_fail(clv_graph *graph, const clv__op_io *io, const char *layer, clv_status status,
                             const char *text) {
    char inputs[1024], part[64] = "";
    clv__node_title title;
    describe_inputs(io, inputs, sizeof inputs);
    if (graph->cut.rows) // shapes are not what the caller knows: tell why
        snprintf(part, sizeof part, "; here the batch is cut, and a part has %lld row%s",
                 (long long)graph->cut.rows, graph->cut.rows == 1 ? "" : "s");
    return clv__graph_fail(graph, status, "%s: %s (inputs: %s%s)",
                           clv__title(io->op, layer, graph->n_nodes, &title), text, inputs, part);
}

bool clv__node_room(clv__arena *arena, clv__node *node, int n) {
    clv_tensor **in = clv__arena_alloc(arena, (size_t)n, sizeof *in);
    clv__desc *in_desc = clv__arena_alloc(arena, (size_t)n, sizeof *in_desc);
    if (!in || !in_desc) return false;
    for (int i = 0; i < node->io.n_in && i < n; i++) {
        in[i] = node->in[i];
        in_desc[i] = node->in_desc[i];
    }
    node->in = in;
    node->io.in = node->in_desc = in_desc;
    return true;
}

clv_tensor *clv__node_add(const clv__op *op, const void *attrs, clv_tensor *const *inputs, int n_in,
                          uint64_t optional) {
    clv_graph *graph = NULL;
    for (int i = 0; i < n_in && !graph; i++) graph = clv__tensor_graph(inputs[i]);
    return clv__node_add_to(graph, op, attrs, inputs, n_in, optional);
}

/** The op's shape rule, to which every stored float is an f32. */
static clv_status infer(clv__node *node, clv__error *mistake) {
    for (int i = 0; i < node->io.n_in; i++) {
        if (!node->in[i]) continue;
        node->in_desc[i] = node->in[i]->desc;
        if (clv__is_half(node->in_desc[i].dtype)) node->in_desc[i].dtype = CLV_DTYPE_F32;
    }
    clv_status status = clv__op_infer(&node->io, mistake);
    for (int i = 0; i < node->io.n_in; i++) {
        if (node->in[i]) node->in_desc[i].dtype = node->in[i]->desc.dtype;
    }
    return status;
}

/** A composite's inputs, and attributes. */
static clv_status fit(const clv__call *call, const clv__op_io *io, clv__error *error) {
    if (clv__is_composite(call->op)) CLV_TRY(clv__inputs_check(io, error));
    return clv__attributes_check(call->op->attributes, call->attrs, error);
}

bool clv__call_fits(const clv__call *call) {
    clv__desc in[CLV__MAX_IN];
    const clv__op *op = call->op;
    clv__op_io io = {.op = op, .attrs = call->attrs, .n_in = call->n_in, .in = in};
    if (io.n_in > CLV__MAX_IN) io.n_in = CLV__MAX_IN; // of a longer list the others are as its first ones
    for (int i = 0, row = 0; i < io.n_in; i++) {
        if (op->inputs[row + 1].name && i) row++;
        in[i] = call->in[i] ? call->in[i]->desc : (clv__desc){0};
        if (clv__is_half(in[i].dtype)) in[i].dtype = CLV_DTYPE_F32;
        if (in[i].dtype == CLV_DTYPE_F32 || !call->in[i]) continue;
        if (clv__type_casts(op->inputs[row].type, in[i].dtype)) in[i].dtype = CLV_DTYPE_I32;
    }
    if (fit(call, &io, NULL) == CLV_OK) return true;
    clv__error mistake; // the same once more, for the sentence
    clv__error_init(&mistake);
    const clv_status status = fit(call, &io, &mistake);
    node_fail(call->graph, &io, current_layer(call->graph), status, mistake.text);
    clv__error_destroy(&mistake);
    return false;
}

clv_tensor *clv__node_add_to(clv_graph *graph, const clv__op *op, const void *attrs,
                             clv_tensor *const *inputs, int n_in, uint64_t optional) {
    if (!graph || graph->error.status != CLV_OK) return NULL; // an earlier mistake, kept in the graph
    if (n_in > CLV__MAX_IN) {
        return clv__graph_fail(graph, CLV_E_VALUE, "%s has %d inputs, the most is %d", op->name, n_in,
                               CLV__MAX_IN);
    }

    clv__node *node = clv__arena_alloc(&graph->arena, 1, sizeof *node);
    const char *layer = current_layer(graph);
    if (!node || !layer || !clv__node_room(&graph->arena, node, n_in)) return out_of_memory(graph);
    node->graph = graph;
    node->layer = layer;
    node->phase = graph->phase;
    node->of = graph->gradient_of;
    node->cut = graph->cut.rows != 0;
    node->micro_batch = node->of ? node->of->micro_batch : graph->cut.micro_batch;
    node->place_hint = graph->phase == CLV__FORWARD ? graph->place_hint : NULL;
    node->attrs = clv__attrs_copy(&graph->arena, op, attrs);
    if (!node->attrs) return out_of_memory(graph);
    if (op->attrs_bytes) node->io.attrs = node->attrs;
    node->io.op = op;
    node->io.n_in = n_in;
    bool wants_grad = false;
    clv__node_title title;
    for (int i = 0; i < n_in; i++) {
        clv_tensor *in = inputs[i];
        if (!in) {
            if (optional & (UINT64_C(1) << i)) continue;
            return clv__graph_fail(graph, CLV_E_VALUE, "%s: input %d is NULL",
                                   clv__title(op, layer, graph->n_nodes, &title), i);
        }
        if (in->graph != graph) {
            return clv__graph_fail(graph, CLV_E_VALUE, "%s: '%s' belongs to another graph",
                                   clv__title(op, layer, graph->n_nodes, &title), in->name);
        }
        node->in[i] = in;
        wants_grad |= in->requires_grad;
    }
    if (!clv__node_cast_inputs(node)) return NULL;
    if (!clv__grow(&graph->nodes, &graph->nodes_room, graph->n_nodes + 1, sizeof *graph->nodes))
        return out_of_memory(graph);

    if (infer(node, NULL) != CLV_OK) {
        clv__error mistake; // the same once more, for the sentence
        clv__error_init(&mistake);
        const clv_status status = infer(node, &mistake);
        node_fail(graph, &node->io, layer, status, mistake.text);
        clv__error_destroy(&mistake);
        return NULL;
    }
    clv__node_store(node);

    char name[640];
    for (int i = 0; i < node->io.n_out; i++) {
        snprintf(name, sizeof name, i ? "%s%s%s#%zu.%d" : "%s%s%s#%zu", layer, *layer ? "." : "", op->name,
                 graph->n_nodes, i);
        if (!sizes_fit(graph, name, &node->io.out[i])) return NULL;
        clv_tensor *out =
            tensor_add(graph, CLV__VALUE, node->io.out[i], clv__arena_strdup(&graph->arena, name), layer);
        if (!out) return NULL;
        out->node = node;
        out->output_index = i;
        out->requires_grad = wants_grad && graph->phase == CLV__FORWARD && clv__is_float(out->desc.dtype);
        node->out[i] = out;
    }
    for (int i = 0; i < n_in; i++)
        if (node->in[i]) node->in[i]->read_by = graph->n_nodes + 1;
    node->id = (int)graph->n_nodes;
    graph->nodes[graph->n_nodes++] = node;
    return node->out[0];
}

clv_tensor *clv__sibling(clv_tensor *tensor, int i) {
    return tensor && tensor->node ? tensor->node->out[i] : NULL;
}

clv_tensor *clv__node_in(const clv__node *node, int i) {
    return i < node->io.n_in ? node->in[i] : NULL;
}

clv_tensor *clv__node_out(const clv__node *node, int i) {
    return i < node->io.n_out ? node->out[i] : NULL;
}

const void *clv__attrs_copy(clv__arena *arena, const clv__op *op, const void *attrs) {
    static const _Alignas(16) char none[CLV__ATTRS_BYTES];
    if (!op->attrs_bytes) return none;
    void *copy = clv__arena_alloc(arena, 1, op->attrs_bytes);
    return copy && attrs ? memcpy(copy, attrs, op->attrs_bytes)
                         : copy; // NULL: all zero, as the arena's memory is
}

const void *clv__node_attrs(const clv__node *node) {
    return node->attrs;
}

const char *clv__node_place(const clv__node *node) {
    return node->place_hint;
}

const clv__op_io *clv__node_io(const clv__node *node) {
    return &node->io;
}

bool clv__wants_grad(const clv__node *node, int i) {
    return i < node->io.n_in && node->in[i] && node->in[i]->requires_grad;
}

clv_tensor *clv__graph_random(clv_graph *graph) {
    if (!graph) return NULL;
    if (!graph->random) graph->random = clv_input(graph, "random_state", CLV_DTYPE_I32, CLV_SHAPE(4));
    return graph->random;
}

int32_t clv__graph_random_id(clv_graph *graph) {
    return graph ? graph->next_random_id++ : 0;
}

int64_t clv__graph_first_element(const clv_graph *graph, const clv_tensor *tensor) {
    int64_t rows = graph->cut.rows, n = clv__numel(&tensor->desc);
    return rows > 0 && n % rows == 0 ? graph->cut.first * (n / rows) : 0;
}

// ---- for infer functions --------------------------------------------------------------------------------------------

void clv__op_cost(const clv__op_io *io, clv__cost *cost) {
    *cost = (clv__cost){0};
    if (io->op->cost) {
        io->op->cost(io, cost); // counts four bytes an element; halves have two
        for (int i = 0; i < io->n_in + io->n_out; i++) {
            const clv__desc *desc = i < io->n_in ? &io->in[i] : &io->out[i - io->n_in];
            if (clv__is_half(desc->dtype)) cost->bytes -= 2.0 * (double)clv__numel(desc);
        }
        if (cost->bytes < 0) cost->bytes = 0;
        return;
    }
    for (int i = 0; i < io->n_out; i++) cost->flops += (double)clv__numel(&io->out[i]);
    for (int i = 0; i < io->n_in; i++)
        cost->bytes += (double)clv__numel(&io->in[i]) * (double)clv_dtype_bytes(io->in[i].dtype);
    for (int i = 0; i < io->n_out; i++)
        cost->bytes += (double)clv__numel(&io->out[i]) * (double)clv_dtype_bytes(io->out[i].dtype);
}

clv_status clv__want_dtype(const clv__op_io *io, int i, const char *what, clv_dtype dtype,
                           clv__error *error) {
    if (!clv__has_in(io, i)) CLV_FAIL(error, CLV_E_VALUE, "%s is missing", what);
    if (io->in[i].dtype != dtype) {
        CLV_FAIL(error, CLV_E_DTYPE, "%s is %s, it must be %s", what, clv_dtype_name(io->in[i].dtype),
                 clv_dtype_name(dtype));
    }
    return CLV_OK;
}

clv_status clv__want_axis(int axis, int rank, int *out, clv__error *error) {
    *out = axis < 0 ? axis + rank : axis;
    if (*out < 0 || *out >= rank) {
        CLV_FAIL(error, CLV_E_VALUE, "axis %d is outside a tensor of %d dimensions", axis, rank);
    }
    return CLV_OK;
}
