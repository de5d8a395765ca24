// SPDX-License-Identifier: Apache-2.0
// A session's model and weights as an ONNX file: the model is built for two batches, the weights are gathered in an archive.
#include "cleave/onnx.h"
#include "device/device.h"
#include "infer/weights.h"
#include "io/array.h"
#include "nn/ports.h"
#include "onnx/write.h"

/** The model as it predicts. */
static clv_status build(clv_runtime *runtime, const clv_model *model, int64_t batch, clv__onnx_built *out) {
    out->batch = batch;
    CLV_TRY(clv_graph_create(runtime, &out->graph));
    clv_model_tensors(out->graph, model, CLV_PORT_INPUT, batch, out->inputs);
    const int n_outputs = clv_model_port_count(model, CLV_PORT_TARGET);
    clv_model_build_all(model, out->inputs, clv_model_port_count(model, CLV_PORT_INPUT), out->outputs,
                        n_outputs);
    return clv_graph_status(out->graph);
}

static void name_ports(const clv_model *model, clv__onnx_writing *what) {
    what->n_inputs = clv_model_port_count(model, CLV_PORT_INPUT);
    what->n_outputs = clv_model_port_count(model, CLV_PORT_TARGET);
    for (int i = 0; i < what->n_inputs; i++)
        what->input_names[i] = clv_model_port_get(model, CLV_PORT_INPUT, i).name;
    for (int i = 0; i < what->n_outputs; i++)
        what->output_names[i] =
            model->build_all ? clv_model_port_get(model, CLV_PORT_TARGET, i).name : "logits";
}

clv_status clv_onnx_write(clv_session *session, const clv_model *model, const clv_onnx_write_config *config,
                          const char *path) {
    CLV_TRY(CLV__GIVEN(NULL, session));
    clv_runtime *runtime = clv_session_info_get(session).runtime;
    clv__error *error = clv__runtime_error_of(runtime);
    CLV_TRY(CLV__USABLE(error, model));
    CLV_TRY(CLV__USABLE(error, path));
    const int64_t batch = config ? config->batch : 0;
    if (batch < 0) CLV_FAIL(error, CLV_E_VALUE, "a batch of %lld: 0 leaves it open", (long long)batch);
    CLV_TRY(clv__model_check(error, model));
    clv__onnx_writing what = {.graph_name = model->name ? model->name : "model"};
    clv_archive *archive = NULL;
    name_ports(model, &what);
    // primes, so that no other size is taken for one that follows the batch
    clv_status status = build(runtime, model, batch ? batch : 2, &what.one);
    if (status == CLV_OK) status = build(runtime, model, batch ? batch : 3, &what.other);
    if (status == CLV_OK) status = clv_archive_create(runtime, &archive);
    if (status == CLV_OK) status = clv__weights_put(session, archive);
    what.weights = archive;
    if (status == CLV_OK) status = clv__onnx_write(&what, path, error);
    clv_archive_destroy(archive);
    clv_graph_destroy(what.one.graph);
    clv_graph_destroy(what.other.graph);
    return status;
}
