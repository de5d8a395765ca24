// SPDX-License-Identifier: Apache-2.0
// What any model takes and gives: its ports. Whoever asks a model for inputs, targets or results asks here, so that a model of one input
// and one output is no special case anywhere else.
#include "nn/models.h"
#include "nn/ports.h"

#include <inttypes.h>
#include <string.h>

#include "cleave/ops.h"
#include "graph/graph.h"

static clv_port only_input(const clv_model *model) {
    clv_port port = {.name = "x", .dtype = model->dtype ? model->dtype : CLV_DTYPE_F32};
    if (port.dtype == CLV_DTYPE_I32) port.classes = model->classes; // tokens, of a model that tells tokens
    memcpy(port.dims, model->input, sizeof port.dims);
    return port;
}

static clv_port only_target(const clv_model *model) {
    clv_port port = {
        .name = "labels", .dtype = model->classes ? CLV_DTYPE_I32 : CLV_DTYPE_F32, .classes = model->classes};
    memcpy(port.dims, model->target, sizeof port.dims);
    return port;
}

clv_port clv_model_port_get(const clv_model *model, clv_port_role role, int index) {
    const bool input = role == CLV_PORT_INPUT;
    if (index < 0 || index >= clv_model_port_count(model, role)) return (clv_port){0};
    if (!model->build_all) return input ? only_input(model) : only_target(model);
    clv_port port = (input ? model->inputs : model->targets)[index];
    if (!port.dtype) port.dtype = !input && port.classes ? CLV_DTYPE_I32 : CLV_DTYPE_F32;
    return port;
}

// ---- is it a model? ---------------------------------------------------------------------------------------------------

static clv_status check_port(clv__error *error, const clv_model *model, const char *what,
                             const clv_port *port) {
    if (!port->name || !*port->name)
        CLV_FAIL(error, CLV_E_VALUE, "model '%s': %s %s has no name", model->name, *what == 'i' ? "an" : "a",
                 what);
    if (port->dtype != CLV_DTYPE_NONE && port->dtype != CLV_DTYPE_F32 && port->dtype != CLV_DTYPE_I32)
        CLV_FAIL(error, CLV_E_DTYPE, "model '%s': %s '%s' is of %s; f32 or i32 is wanted", model->name, what,
                 port->name, clv_dtype_name(port->dtype));
    if (port->classes < 0 || port->classes > INT32_MAX)
        CLV_FAIL(error, CLV_E_VALUE, "model '%s': %s '%s' has %" PRId64 " classes", model->name, what,
                 port->name, port->classes);
    for (int i = 0; i < CLV_MAX_RANK - 1; i++)
        if (port->dims[i] < 0)
            CLV_FAIL(error, CLV_E_SHAPE, "model '%s': a dimension of %s '%s' is %" PRId64, model->name, what,
                     port->name, port->dims[i]);
    return CLV_OK;
}

static clv_status check_count(clv__error *error, const clv_model *model, const char *what,
                              const clv_port *ports, int n) {
    if (n < 1 || n > CLV_MAX_PORTS || !ports)
        CLV_FAIL(error, CLV_E_VALUE, "model '%s' has build_all and %d %s; 1 to %d are wanted", model->name,
                 ports ? n : 0, what, CLV_MAX_PORTS);
    return CLV_OK;
}

static const clv_port *port_at(const clv_model *model, int i) {
    return i < model->n_inputs ? &model->inputs[i] : &model->targets[i - model->n_inputs];
}

clv_status clv__model_check(clv__error *error, const clv_model *model) {
    const char *name = model->name ? model->name : "";
    if (!model->build == !model->build_all)
        CLV_FAIL(error, CLV_E_VALUE, "model '%s' has %s; give one of them", name,
                 model->build ? "both build and build_all" : "neither build nor build_all");
    if (model->build && (model->n_inputs || model->n_targets))
        CLV_FAIL(error, CLV_E_VALUE, "model '%s' has build and named ports; these go with build_all", name);
    if (model->build) return CLV_OK;
    if (!model->name) CLV_FAIL(error, CLV_E_VALUE, "a model with build_all has no name");
    CLV_TRY(check_count(error, model, "inputs", model->inputs, model->n_inputs));
    CLV_TRY(check_count(error, model, "targets", model->targets, model->n_targets));
    for (int i = 0; i < model->n_inputs + model->n_targets; i++) {
        const clv_port *port = port_at(model, i);
        const bool target = i >= model->n_inputs;
        CLV_TRY(check_port(error, model, target ? "target" : "input", port));
        if (target && port->dtype && (port->dtype == CLV_DTYPE_I32) != (port->classes > 0))
            CLV_FAIL(error, CLV_E_DTYPE,
                     "model '%s': target '%s' has %" PRId64
                     " classes and is of %s; classes are i32, numbers f32",
                     name, port->name, port->classes, clv_dtype_name(port->dtype));
        for (int j = 0; j < i; j++)
            if (!strcmp(port->name, port_at(model, j)->name))
                CLV_FAIL(error, CLV_E_VALUE, "model '%s' has two ports of the name '%s'", name, port->name);
    }
    return CLV_OK;
}

// ---- in a graph -------------------------------------------------------------------------------------------------------

clv_shape clv__model_input_shape(const clv_model *model, int64_t n) {
    const clv_port port = clv_model_port_get(model, CLV_PORT_INPUT, 0);
    return clv_port_shape(&port, n);
}

clv_shape clv__model_target_shape(const clv_model *model, int64_t n) {
    const clv_port port = clv_model_port_get(model, CLV_PORT_TARGET, 0);
    return clv_port_shape(&port, n);
}

/** Does an output that tells classes apart have a score for each? No output, after a mistake, is fine. */
static bool has_classes(const clv_model *model, int i, clv_tensor *output) {
    const int64_t classes = clv_model_port_get(model, CLV_PORT_TARGET, i).classes;
    const clv_shape shape = clv_tensor_shape(output);
    char text[128];
    if (!output || !classes || (shape.rank > 0 && shape.dims[shape.rank - 1] == classes)) return true;
    clv__graph_fail(clv_tensor_graph(output), CLV_E_SHAPE,
                    "model '%s' has %" PRId64
                    " classes and built %s: the last dimension must have a score for each",
                    model->name ? model->name : "", classes, clv_shape_text(&shape, text, sizeof text));
    return false;
}

/** A model may be the caller's: is what it built a tensor of the graph? Else the graph has failed. */
static bool is_of_graph(clv_graph *graph, const clv_model *model, const clv_tensor *output) {
    if (output && clv_tensor_graph(output) == graph) return true;
    clv__graph_fail(graph, CLV_E_VALUE,
                    "model '%s' built %s; its function must return a tensor of its input's graph",
                    model->name ? model->name : "", output ? "a tensor of another graph" : "NULL");
    return false;
}

/** An output for each target, with a row for each sample: where the model forgot one, nobody else could say which. */
static bool are_there(clv_graph *graph, const clv_model *model, int64_t rows, clv_tensor *const *outputs) {
    for (int i = 0; i < clv_model_port_count(model, CLV_PORT_TARGET) && graph->error.status == CLV_OK; i++) {
        const char *name = model->targets[i].name;
        const clv_shape shape = clv_tensor_shape(outputs[i]);
        char text[128];
        if (!outputs[i])
            clv__graph_fail(graph, CLV_E_VALUE, "model '%s' built no output for target '%s'", model->name,
                            name);
        else if (clv_tensor_graph(outputs[i]) != graph)
            is_of_graph(graph, model, outputs[i]);
        else if (shape.rank < 1 || shape.dims[0] != rows)
            clv__graph_fail(graph, CLV_E_SHAPE,
                            "model '%s' built %s for target '%s'; it must have a row for each of %" PRId64
                            " samples",
                            model->name, clv_shape_text(&shape, text, sizeof text), name, rows);
        else
            has_classes(model, i, outputs[i]);
    }
    return graph->error.status == CLV_OK;
}

void clv_model_build_all(const clv_model *model, clv_tensor *const *inputs, int n, clv_tensor **outputs,
                         int n_outputs) {
    const int wanted = clv_model_port_count(model, CLV_PORT_INPUT),
              given = clv_model_port_count(model, CLV_PORT_TARGET);
    for (int i = 0; i < n_outputs; i++) outputs[i] = NULL;
    for (int i = 0; i < n; i++)
        if (!inputs[i]) return;
    if (n != wanted || n_outputs != given) {
        clv__graph_fail(
            n > 0 ? clv_tensor_graph(inputs[0]) : NULL, CLV_E_VALUE,
            "clv_model_build_all: model '%s' has %d inputs and %d outputs, and is given room for %d and %d",
            model->name, wanted, given, n, n_outputs);
        return;
    }
    if (!model->build_all) {
        clv_graph *graph = clv_tensor_graph(inputs[0]);
        const clv_shape x = clv_tensor_shape(inputs[0]);
        outputs[0] = model->build(inputs[0], model);
        if (!outputs[0]) clv__model_tell_smallest(graph, model, &x);
        if (!is_of_graph(graph, model, outputs[0]) || !has_classes(model, 0, outputs[0])) outputs[0] = NULL;
        return;
    }
    const clv_shape batch = clv_tensor_shape(inputs[0]);
    model->build_all(inputs, outputs, model);
    if (!are_there(clv_tensor_graph(inputs[0]), model, batch.dims[0], outputs))
        for (int i = 0; i < n_outputs; i++) outputs[i] = NULL;
}
