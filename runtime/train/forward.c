// SPDX-License-Identifier: Apache-2.0
// The graph of a forward pass, and how it, or a step (step.c), is planned. Without training
// (CLEAVE_INFERENCE) there is only this.
#include "cleave/ops.h"
#include "train/trainer.h"

static clv_tensor *model_logits(clv_tensor *x, void *user) {
    clv_tensor *logits = clv_model_build(user, x);
    return clv_tensor_dtype(logits) == CLV_DTYPE_F32 ? logits : clv_cast(logits, CLV_DTYPE_F32);
}

clv_status clv__forward_graph(clv_runtime *runtime, const clv_train_config *config, const double *shares,
                              int64_t batch, clv__step *step) {
    const clv_placement *placement = &config->placement;
    void *model = (void *)(uintptr_t)config->model;
    step->batch = batch;
    CLV_TRY(clv_graph_create(runtime, &step->graph));
    clv_graph_set_precision(step->graph, config->precision);
    step->x = clv_model_input(step->graph, config->model, batch);
    clv_output(placement->n_replicas ? clv_data_parallel(step->x, placement->replicas, shares,
                                                         placement->n_replicas, model_logits, model)
                                     : model_logits(step->x, model),
               "logits");
    return clv_graph_status(step->graph);
}

clv_status clv_predict_graph(clv_runtime *runtime, const clv_train_config *config, int64_t batch,
                             clv_graph **out) {
    CLV_TRY(CLV__GIVEN(NULL, runtime));
    CLV_TRY(CLV__USABLE(clv__runtime_error_of(runtime), out));
    CLV_TRY(CLV__USABLE(clv__runtime_error_of(runtime), config));
    *out = NULL;
    if (!config->model || batch < 1)
        CLV_FAIL(clv__runtime_error_of(runtime), CLV_E_VALUE, "clv_predict_graph: %s",
                 config->model ? "the batch must be at least 1" : "a model must be given");
    clv__step step = {0};
    clv_status status = clv__forward_graph(runtime, config, config->placement.shares, batch, &step);
    *out = step.graph;
    return status;
}

clv_plan_config clv__step_plan_config(const clv_train_config *config, clv__graph_maker *make) {
    return (clv_plan_config){.device = config->device,
                             .place = config->placement.place,
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

void clv__step_destroy(clv__step *step) {
    clv_run_destroy(step->run);
    clv_plan_destroy(step->plan);
    clv_graph_destroy(step->graph);
    *step = (clv__step){0};
}
