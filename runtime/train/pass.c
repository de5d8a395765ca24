// SPDX-License-Identifier: Apache-2.0
// What is asked of a step or of a forward pass without a trainer or a predictor: its graph, its shares, what
// would make it fit. A library for inference alone (CLEAVE_INFERENCE) knows forward passes.
#include "device/device.h"
#include "infer/placed.h"
#include "train/trainer.h"

#ifdef CLEAVE_INFERENCE
#define STEP_GRAPH NULL
#else
#define STEP_GRAPH clv__step_graph
#endif

/** Who makes the graph of a pass of `batch` samples; `call` is for sentences. */
static clv_status find_maker(clv_runtime *runtime, const char *call, const clv_train_config *config,
                             clv_pass pass, int64_t batch, clv__graph_maker **out) {
    clv__error *error = clv__runtime_error_of(runtime);
    if (pass != CLV_PASS_TRAIN && pass != CLV_PASS_PREDICT)
        CLV_FAIL(error, CLV_E_VALUE, "%s: there is no pass %d", call, (int)pass);
    if (!config->model || batch < 1)
        CLV_FAIL(error, CLV_E_VALUE, "%s: %s", call,
                 config->model ? "the batch must be at least 1" : "a model must be given");
    *out = pass == CLV_PASS_TRAIN ? STEP_GRAPH : clv__forward_graph;
    if (!*out)
        CLV_FAIL(error, CLV_E_UNSUPPORTED,
                 "%s: this Cleave is built for inference alone (CLEAVE_INFERENCE) and trains nothing", call);
    return CLV_OK;
}

clv_status clv_pass_graph(clv_runtime *runtime, const clv_train_config *config, clv_pass pass, int64_t batch,
                          clv_graph **out) {
    clv__graph_maker *make = NULL;
    CLV_TRY(CLV__GIVEN(NULL, runtime));
    CLV_TRY(CLV__USABLE(clv__runtime_error_of(runtime), out));
    CLV_TRY(CLV__USABLE(clv__runtime_error_of(runtime), config));
    *out = NULL;
    CLV_TRY(find_maker(runtime, __func__, config, pass, batch, &make));
    clv__step step = {0};
    clv_train_config whole = *config;
    whole.batch = batch; // not what is left of a larger one
    clv_status status = make(runtime, &whole, config->placement.shares, batch, &step);
    *out = step.graph;
    return status;
}

clv_status clv_pass_shares(clv_runtime *runtime, const clv_train_config *config, clv_pass pass,
                           double *shares) {
    clv__graph_maker *make = NULL;
    CLV_TRY(CLV__GIVEN(NULL, runtime));
    CLV_TRY(CLV__USABLE(clv__runtime_error_of(runtime), shares));
    CLV_TRY(CLV__USABLE(clv__runtime_error_of(runtime), config));
    CLV_TRY(find_maker(runtime, __func__, config, pass, config->batch, &make));
    return clv__shares_planned(runtime, config, make, shares);
}

clv_status clv_pass_advise(clv_runtime *runtime, const clv_train_config *config, clv_pass pass,
                           clv_train_advice *out) {
    clv__graph_maker *make = NULL;
    CLV_TRY(CLV__GIVEN(NULL, runtime));
    CLV_TRY(CLV__USABLE(clv__runtime_error_of(runtime), out));
    CLV_TRY(CLV__USABLE(clv__runtime_error_of(runtime), config));
    CLV_TRY(find_maker(runtime, __func__, config, pass, config->batch, &make));
    return clv__advise(runtime, config, make, out);
}
