// SPDX-License-Identifier: Apache-2.0
// The graph of a forward pass, and how it, or a step (step.c), is planned. Without training
// (CLEAVE_INFERENCE) there is only this.
#include "cleave/ops.h"
#include "data/dataset.h"
#include "device/device.h"
#include "exec/ranks.h"
#include "exec/run.h"
#include "nn/parallel_layers.h"
#include "nn/ports.h"
#include "infer/placed.h"
#include "infer/samples.h"
#include "ops/product/lora.h"
#include "ops/update/over_ranks.h"

static void model_outputs(clv_tensor *const *fed, clv_tensor **outputs, void *user) {
    const clv__bytes *bytes = user;
    const clv_model *model = bytes->model;
    const int n = clv_model_port_count(model, CLV_PORT_TARGET);
    clv_tensor *inputs[CLV_MAX_PORTS];
    clv__bytes_normalize(bytes, fed, inputs);
    clv_model_build_all(model, inputs, clv_model_port_count(model, CLV_PORT_INPUT), outputs, n);
    for (int i = 0; i < n; i++)
        if (clv_tensor_dtype(outputs[i]) != CLV_DTYPE_F32) outputs[i] = clv_cast(outputs[i], CLV_DTYPE_F32);
}

clv_status clv__forward_graph(clv_runtime *runtime, const clv_train_config *config, const double *shares,
                              int64_t batch, clv__step *step) {
    const clv_placement *placement = &config->placement;
    clv__bytes bytes;
    const int n_outputs = clv_model_port_count(config->model, CLV_PORT_TARGET);
    step->batch = batch;
    CLV_TRY(clv__model_check(clv__runtime_error_of(runtime), config->model));
    step->n_inputs = clv_model_port_count(config->model, CLV_PORT_INPUT);
    CLV_TRY(clv__bytes_find(runtime, config, &bytes));
    CLV_TRY(clv_graph_create(runtime, &step->graph));
    clv_graph_set_precision(step->graph, config->precision);
    clv__lora_begin(step->graph, config->lora.layers, config->lora.rank, config->lora.alpha);
    clv__bytes_inputs(step->graph, &bytes, batch, step->fed);
    const clv__parallel parallel = {placement->place, placement->replicas, shares, placement->n_replicas};
    if (placement->n_replicas && placement->place)
        clv__parallel_layers(step->fed, step->n_inputs, &parallel, model_outputs, &bytes, step->outputs,
                             n_outputs, false);
    else if (placement->n_replicas)
        clv_data_parallel(step->fed, step->n_inputs, placement->replicas, shares, placement->n_replicas,
                          model_outputs, &bytes, step->outputs, n_outputs);
    else
        model_outputs(step->fed, step->outputs, &bytes);
    clv__lora_end(step->graph);
#ifndef CLEAVE_INFERENCE
    for (int i = 0; i < n_outputs && config->ranks && config->ranks->layered; i++)
        step->outputs[i] = clv__over_ranks(step->outputs[i], config->ranks->place.size,
                                           false); // one has them, the others add zeros
#endif
    for (int i = 0; i < n_outputs; i++)
        clv_output(step->outputs[i], config->model->build_all
                                         ? clv_model_port_get(config->model, CLV_PORT_TARGET, i).name
                                         : "logits");
    return clv_graph_status(step->graph);
}

clv_plan_config clv__step_plan_config(const clv_train_config *config, clv__graph_maker *make) {
    return (clv_plan_config){.device = config->device,
                             .place = clv__placement_of_plan(&config->placement),
                             .explicit_transfers = config->placement.explicit_transfers,
                             .variants = config->variants,
                             .no_fuse = config->no_fuse,
                             .own_session = make == clv__forward_graph,
                             .recompute = config->recompute};
}

clv_status clv__step_build(clv_runtime *runtime, const clv_train_config *config, clv__graph_maker *make,
                           const double *shares, int64_t batch, const clv_plan *same_session,
                           clv__step *step) {
    CLV_TRY(make(runtime, config, shares, batch, step));
    clv_plan_config plan = clv__step_plan_config(config, make);
    plan.same_session = same_session;
    return clv_plan_create(step->graph, &plan, &step->plan);
}

clv_status clv__step_feed_arrays(const clv__step *step, const void *const *fed) {
    for (int i = 0; i < step->n_inputs + step->n_targets; i++)
        CLV_TRY(clv_run_feed(step->run, step->fed[i], fed[i], clv_tensor_bytes(step->fed[i])));
    return CLV_OK;
}

clv_status clv__step_feed(const clv__step *step, const clv__match *match, const clv_batch *batch) {
    const void *fed[CLV__MOST_FED];
    for (int i = 0; i < step->n_inputs; i++) fed[i] = batch->each_input[match->input[i]];
    for (int i = 0; i < step->n_targets; i++) fed[step->n_inputs + i] = batch->each_target[match->target[i]];
    return clv__step_feed_arrays(step, fed);
}

clv_status clv__step_next(const clv__step *step, const clv__match *match, clv_loader *loader,
                          clv_batch *out) {
    void *to[CLV__MOST_FIELDS] = {NULL};
    if (!step->run || clv__step_fed_bytes(step) < CLV__LARGE_BATCH) return clv_loader_next(loader, out);
    for (int i = 0; i < step->n_inputs + step->n_targets; i++) {
        const int k =
            i < step->n_inputs ? match->input[i] : match->n_inputs + match->target[i - step->n_inputs];
        CLV_TRY(clv__run_lend(step->run, step->fed[i], &to[k]));
    }
    return clv__loader_next_into(loader, to, clv_tensor_shape(step->fed[0]).dims[0], out);
}

size_t clv__step_fed_bytes(const clv__step *step) {
    size_t most = 0;
    for (int i = 0; i < step->n_inputs + step->n_targets; i++)
        if (clv_tensor_bytes(step->fed[i]) > most) most = clv_tensor_bytes(step->fed[i]);
    return most;
}

void clv__step_destroy(clv__step *step) {
    clv_run_destroy(step->run);
    clv_plan_destroy(step->plan);
    clv_graph_destroy(step->graph);
    *step = (clv__step){0};
}
