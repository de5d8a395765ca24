// SPDX-License-Identifier: Apache-2.0
// A training step with every value fetched; see side.h. It goes through plan, session and run as any training does.
#include "check/side.h"

#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "cleave/ops.h"
#include "cleave/train.h"
#include "graph/graph.h"
#include "tensor/dtype.h"

// Of the step that is compared. Any will do that moves the parameters by more than rounding does.
static const clv_optimizer_config optimizer = {.kind = CLV_SGD, .momentum = 0.9f};
static const double rate = 0.01;

// ---- the step ---------------------------------------------------------------------------------------------------------

static clv_status no_memory(const clv_graph *graph) {
    return clv__error_set(clv__runtime_error_of(graph->runtime), CLV_E_HOST_MEMORY,
                          "no memory for the values of a step with %zu tensors", graph->n_tensors);
}

static clv_status build(clv__scene *scene, const clv_model *model, int64_t batch) {
    clv_graph *graph = scene->graph;
    clv_graph_set_training(graph, true);
    clv_tensor *loss = NULL;
    clv_tensor *outputs[CLV_MAX_PORTS];
    const int n_inputs = clv_model_port_count(model, CLV_PORT_INPUT),
              n_targets = clv_model_port_count(model, CLV_PORT_TARGET);
    clv_model_tensors(graph, model, CLV_PORT_INPUT, batch, scene->fed);
    clv_model_tensors(graph, model, CLV_PORT_TARGET, batch, scene->fed + n_inputs);
    scene->n_fed = n_inputs + n_targets;
    clv_model_build_all(model, scene->fed, n_inputs, outputs, n_targets);
    for (int i = 0; i < n_targets; i++) {
        const clv_loss *given =
            clv_loss_find(clv_model_port_get(model, CLV_PORT_TARGET, i).classes ? "cross_entropy" : "mse");
        clv_tensor *one = given->build(outputs[i], scene->fed[n_inputs + i], given);
        loss = i ? clv_add(loss, one) : one;
    }
    clv_backward(loss);
    clv_optimizer_add(graph, &optimizer);
    scene->hyper = clv_optimizer_hyper(graph);
    CLV_TRY(clv_graph_status(graph));
    for (size_t i = 0; i < graph->n_tensors; i++)
        if (graph->tensors[i]->kind == CLV__VALUE) clv_output(graph->tensors[i], NULL);
    return clv_graph_status(graph);
}

/** Values of an input: those that are given, or made up: normal numbers; tokens and classes at random. */
static void *values_of(const clv_tensor *input, const void *given, int64_t classes, clv__random *random) {
    const int64_t n = clv_tensor_numel(input);
    const clv_dtype dtype = clv_tensor_dtype(input);
    const size_t each = clv_dtype_bytes(dtype);
    void *values = clv__alloc((size_t)n + 1, each);
    if (!values) return NULL;
    for (int64_t i = 0; i < n && !given; i++) {
        const double value = clv__is_float(dtype) ? clv__random_normal(random)
                             : classes            ? (double)clv__random_below(random, (uint32_t)classes)
                                                  : 0;
        clv__elements_narrow(dtype, &value, 1, (char *)values + (size_t)i * each);
    }
    if (given) memcpy(values, given, clv_tensor_bytes(input));
    return values;
}

static clv_status fill(clv__scene *scene, const clv_compare_config *config) {
    const clv_model *model = config->model;
    const int n_inputs = clv_model_port_count(model, CLV_PORT_INPUT);
    clv__random random;
    clv__random_init(&random, config->seed, CLV__STREAM_TEST, 0);
    for (int i = 0; i < scene->n_fed; i++) {
        const bool input = i < n_inputs;
        const clv_port port = input ? clv_model_port_get(model, CLV_PORT_INPUT, i)
                                    : clv_model_port_get(model, CLV_PORT_TARGET, i - n_inputs);
        const void *given = input ? (const void *)config->images : (const void *)config->labels;
        scene->values[i] = values_of(scene->fed[i], given, port.classes, &random);
        if (!scene->values[i]) return no_memory(scene->graph);
    }
    clv_optimizer_hyper_values(scene->graph, 1, rate, scene->hyper_values);
    return CLV_OK;
}

clv_status clv__scene_init(clv__scene *scene, clv_runtime *runtime, const clv_compare_config *config) {
    int64_t batch = config->batch ? config->batch : 8;
    *scene = (clv__scene){.seed = config->seed, .weights = config->weights, .variants = config->variants};
    clv_status status = clv_graph_create(runtime, &scene->graph);
    if (status == CLV_OK) status = build(scene, config->model, batch);
    if (status == CLV_OK) status = fill(scene, config);
    if (status != CLV_OK) clv__scene_reset(scene);
    return status;
}

void clv__scene_reset(clv__scene *scene) {
    for (int i = 0; i < scene->n_fed; i++) free(scene->values[i]);
    clv_graph_destroy(scene->graph);
    *scene = (clv__scene){0};
}

// ---- doing it ---------------------------------------------------------------------------------------------------------

/** A copy of an input's elements, as they are fed. The random state is fed by the run, from seed and step. */
static clv_status keep_input(clv__side *side, const clv__scene *scene, const clv_tensor *input) {
    size_t bytes = clv_tensor_bytes(input);
    const uint32_t state[4] = {(uint32_t)scene->seed, (uint32_t)(scene->seed >> 32), 0, 0};
    const void *from = input == scene->hyper ? (const void *)scene->hyper_values : (const void *)state;
    for (int i = 0; i < scene->n_fed; i++)
        if (input == scene->fed[i]) from = scene->values[i];
    side->before[input->id] = clv__alloc(1, bytes + 1);
    if (!side->before[input->id]) return no_memory(scene->graph);
    memcpy(side->before[input->id], from, bytes);
    return CLV_OK;
}

/** The persistents that the session holds, into `to`. */
static clv_status read_persistents(const clv__scene *scene, clv_session *session, void **to) {
    for (size_t i = 0; i < scene->graph->n_tensors; i++) {
        const clv_tensor *tensor = scene->graph->tensors[i];
        int index = tensor->kind == CLV__PERSISTENT ? clv_session_find(session, tensor->name) : -1;
        if (index < 0) continue;
        to[i] = clv__alloc(1, clv_tensor_bytes(tensor) + 1);
        if (!to[i]) return no_memory(scene->graph);
        CLV_TRY(clv_session_read(session, index, to[i], clv_tensor_bytes(tensor)));
    }
    return CLV_OK;
}

static clv_status feed(clv__side *side, const clv__scene *scene, clv_run *run) {
    const clv_graph *graph = scene->graph;
    for (size_t i = 0; i < graph->n_tensors; i++) {
        const clv_tensor *tensor = graph->tensors[i];
        if (tensor->kind != CLV__INPUT) continue;
        CLV_TRY(keep_input(side, scene, tensor));
        if (tensor == graph->random) continue;
        CLV_TRY(clv_run_feed(run, tensor, side->before[i], clv_tensor_bytes(tensor)));
    }
    return CLV_OK;
}

static clv_status fetch(clv__side *side, const clv__scene *scene, clv_run *run, int64_t ticket) {
    const clv_graph *graph = scene->graph;
    for (size_t i = 0; i < graph->n_tensors; i++) {
        const clv_tensor *tensor = graph->tensors[i];
        if (tensor->kind != CLV__VALUE) continue;
        side->after[i] = clv__alloc(1, clv_tensor_bytes(tensor) + 1);
        if (!side->after[i]) return no_memory(graph);
        CLV_TRY(clv_run_fetch(run, ticket, tensor, side->after[i], clv_tensor_bytes(tensor)));
    }
    return CLV_OK;
}

static clv_status step(clv__side *side, const clv__scene *scene, clv_session *session, clv_run **run) {
    int64_t ticket;
    CLV_TRY(clv_session_reserve(session, &side->plan, 1));
    if (scene->weights) CLV_TRY(clv_weights_load(session, scene->weights));
    CLV_TRY(read_persistents(scene, session, side->before));
    CLV_TRY(clv_run_create(session, side->plan, run));
    CLV_TRY(feed(side, scene, *run));
    CLV_TRY(clv_run_step(*run, &ticket));
    CLV_TRY(fetch(side, scene, *run, ticket));
    return read_persistents(scene, session, side->after);
}

clv_status clv__side_init(clv__side *side, const clv__scene *scene, clv_device *device) {
    clv_runtime *runtime = scene->graph->runtime;
    *side = (clv__side){.device = device};
    side->before = clv__alloc(scene->graph->n_tensors + 1, sizeof *side->before);
    side->after = clv__alloc(scene->graph->n_tensors + 1, sizeof *side->after);
    clv_session *session = NULL;
    clv_run *run = NULL;
    clv_status status = side->before && side->after ? CLV_OK : no_memory(scene->graph);
    const clv_plan_config plan = {.device = device, .variants = scene->variants, .no_fuse = true};
    if (status == CLV_OK) status = clv_plan_create(scene->graph, &plan, &side->plan);
    if (status == CLV_OK)
        status = clv_session_create(runtime, &(clv_session_config){.seed = scene->seed}, &session);
    if (status == CLV_OK) status = step(side, scene, session, &run);
    clv_run_destroy(run);
    clv_session_destroy(session);
    if (status != CLV_OK) clv__side_reset(side, scene);
    return status;
}

void clv__side_reset(clv__side *side, const clv__scene *scene) {
    for (size_t i = 0; scene->graph && i < scene->graph->n_tensors; i++) {
        if (side->before) free(side->before[i]);
        if (side->after) free(side->after[i]);
    }
    free(side->before);
    free(side->after);
    clv_plan_destroy(side->plan);
    *side = (clv__side){0};
}

const void *clv__side_given(const clv__side *side, const clv_tensor *tensor) {
    return tensor->kind == CLV__VALUE ? side->after[tensor->id] : side->before[tensor->id];
}

const char *clv__side_variant(const clv__side *side, const clv__node *node) {
    for (size_t i = 0; i < side->plan->n_nodes; i++) {
        const clv__plan_node *at = &side->plan->nodes[i];
        if (at->work == CLV__COMPUTE && at->node == node)
            return at->variant ? at->variant->name : "reference";
    }
    return "reference";
}
